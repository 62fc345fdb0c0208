//! What changes while a site lives: distributors come and go, clocks are wrong and step, keys are replaced and revoked.
//! Nobody lends a hand on the hosts that stay: no restart, no cleared table but where a test says so.
//!
//! That a revoked host is cut off after ten minutes by those who have its key, and that the time is asked for every ten
//! minutes, is held by the tests without sockets in `crates/sarp/tests`, where ten minutes pass in no time.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use ringwall_lab::net::talk::{Ping, reach};
use rustix::process::Signal;

use crate::sarp::*;
use crate::stage::{Guarded, Plan, SOON, Stage, perform};
use crate::wire::*;

/// One day.
const DAY_S: i32 = 86_400;

fn is_silent(guarded: &Guarded) -> Result<bool, Failure> {
    Ok(guarded.status()?["sarp"]["distributors_silent"] == true)
}

fn unix_s() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    i64::try_from(since_epoch.as_secs()).expect("before the sun ends")
}

#[test]
fn while_the_only_distributor_is_away_known_hosts_work_on_and_new_ones_wait() {
    perform(&["k", "a", "b", "d", "e"], |stage| {
        let [a, b, d, e] = ["a", "b", "d", "e"].map(|name| stage.host(name));
        let mut distributor = sign(stage, "k", Plan::distributor())?;
        let near = sign(stage, "a", Plan::sarp())?;
        let (_far, _new) = (sign(stage, "b", Plan::sarp())?, sign(stage, "d", Plan::sarp())?);
        reach(&a.namespace, b.ip, SOON)?;
        reach(&b.namespace, a.ip, SOON)?;
        distributor.stop(Signal::KILL);

        assert!(pings(&a.namespace, b.ip, "")?, "what the kernel knows");
        resolve_anew(a, b)?;
        resolve_anew(b, a)?;
        assert!(!is_silent(&near)?, "nobody had to be asked");
        assert_apart(a, d)?;
        near.await_event("no key distributor answers", SOON)?;
        assert!(is_silent(&near)?);
        near.await_drops("sarp-pending-expired", 1)?;
        assert_says(&near, &["status"], &["NO KEY DISTRIBUTOR ANSWERS"])?;
        assert_says(&near, &["explain", "sarp-pending-expired"], &["See whether a distributor can be reached"])?;
        assert_metrics(&near, &[("sarp_distributors_silent", 1.0), ("sarp_clock_set", 1.0)])?;

        // Who starts now has no time, so it signs nothing and believes nothing; in plain ARP it asks and answers.
        let late = stage.guard("e", Plan::sarp())?;
        assert_apart(a, e)?;
        assert_apart(e, a)?;
        near.await_drops("plain-arp", 1)?;
        late.await_event("no key distributor answers", SOON)?;
        assert_says(&late, &["status"], &["S-ARP clock: not set yet", "NO KEY DISTRIBUTOR ANSWERS"])?;
        assert_metrics(&late, &[("sarp_clock_set", 0.0)])?;
        assert!(pings(&a.namespace, b.ip, "")?, "known hosts work on");

        distributor.start(&[])?;
        reach(&a.namespace, d.ip, FOLLOWED)?;
        await_time(&late)?;
        reach(&e.namespace, a.ip, FOLLOWED)?;
        reach(&a.namespace, e.ip, FOLLOWED)?;
        assert!(!is_silent(&near)? && !is_silent(&late)?);
        assert_metrics(&near, &[("sarp_distributors_silent", 0.0)])
    });
}

#[test]
fn a_second_distributor_takes_over_from_the_first() {
    perform(&["j", "k", "a", "b", "d"], |stage| {
        let [a, b, d] = ["a", "b", "d"].map(|name| stage.host(name));
        // Both are in every identity that is issued after them.
        let mut distributors = vec![stage.prepare("j", Plan::distributor())?, stage.prepare("k", Plan::distributor())?];
        for distributor in &mut distributors {
            distributor.start(&[])?;
            await_time(distributor)?;
        }
        let near = sign(stage, "a", Plan::sarp())?;
        let (_far, _new) = (sign(stage, "b", Plan::sarp())?, sign(stage, "d", Plan::sarp())?);
        reach(&a.namespace, b.ip, SOON)?;
        let asked_first = || Ok::<_, Failure>(near.status()?["sarp"]["asked_first"].as_str().map(str::to_owned));
        let first = asked_first()?.expect("one answered");
        let second = if first == "j" { "k" } else { "j" };
        distributors.iter_mut().filter(|one| one.host.name == first).for_each(|one| one.stop(Signal::KILL));
        let took = reach(&a.namespace, d.ip, SOON)?;
        eprintln!("with the first distributor dead an unknown host was found after {took:?}");
        assert_eq!(asked_first()?.as_deref(), Some(second));
        assert!(!is_silent(&near)?);
        assert!(!near.events()?.contains("no key distributor answers"), "{}", near.events()?);
        Ok(())
    });
}

#[test]
fn a_distributor_is_added_later_by_its_certificate() {
    perform(&["j", "k", "a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let mut first = sign(stage, "k", Plan::distributor())?;
        let mut near = sign(stage, "a", Plan::sarp())?;
        let far = sign(stage, "b", Plan::sarp())?;
        // It could not fetch a key later; it has no file.
        reach(&b.namespace, a.ip, SOON)?;
        assert_eq!(far.status()?["sarp"]["distributors"].as_array().map(Vec::len), Some(1));
        // The identities of the hosts are older than the second distributor.
        let _second = sign(stage, "j", Plan::distributor())?;
        near.stop(Signal::TERM);
        let certificate = stage.site.certificate("j")?;
        let named = format!("distributors = [\"{}\"]", certificate.display());
        let mut near = stage.prepare("a", same_identity(stage, "a").sarp_line(&named))?;
        near.start(&[])?;
        await_time(&near)?;
        first.stop(Signal::KILL);
        reach(&a.namespace, b.ip, SOON)?;
        let sarp = near.status()?["sarp"].clone();
        assert_eq!((&sarp["distributors"][1]["name"], &sarp["asked_first"]), (&"j".into(), &"j".into()), "{sarp}");
        Ok(())
    });
}

#[test]
fn a_renewed_distributor_is_named_by_its_new_certificate() {
    perform(&["k", "a"], |stage| {
        stage.prepare("k", Plan::distributor())?;
        let mut near = stage.prepare("a", Plan::sarp())?;
        // Its new key is in no identity that is older. Certificates tell their age in seconds.
        process::pause(Duration::from_millis(1100))?;
        let _distributor = sign(stage, "k", Plan::distributor())?;
        near.start(&[])?;
        near.await_event("no key distributor answers", SOON)?;
        near.await_drops("sarp-signature", 1)?;
        near.stop(Signal::TERM);
        let named = format!("distributors = [\"{}\"]", stage.site.certificate("k")?.display());
        let mut near = stage.prepare("a", same_identity(stage, "a").sarp_line(&named))?;
        near.start(&[])?;
        await_time(&near)?;
        assert_eq!(near.status()?["sarp"]["distributors"].as_array().map(Vec::len), Some(1));
        Ok(())
    });
}

/// With the identity that was issued last to host `name`.
fn same_identity(stage: &Stage, name: &str) -> Plan {
    Plan::sarp().identity(stage.file(&format!("site.{name}.pem")))
}

/// How far the S-ARP clock of a host is from right, in seconds.
fn clock_error_s(guarded: &Guarded) -> Result<i64, Failure> {
    let status = guarded.status()?;
    Ok(status["sarp"]["clock_unix_s"].as_i64().expect("it has the time") - unix_s())
}

#[test]
fn hosts_follow_a_distributor_whose_clock_is_wrong_and_steps() {
    perform(&["k", "a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let mut distributor = stage.prepare("k", Plan::distributor().clock_offset_s(-DAY_S))?;
        distributor.start(&[])?;
        let near = sign(stage, "a", Plan::sarp())?;
        let mut far = sign(stage, "b", Plan::sarp())?;
        assert_says(&distributor, &["status"], &["NOT PROTECTED", "clock_offset_s = -86400"])?;
        assert_eq!(distributor.status()?["weakened"][0], "right time (clock_offset_s = -86400)");
        let mut before_s = -DAY_S;
        for (offset_s, word) in [(DAY_S, "ahead by 172"), (-DAY_S, "back by 172")] {
            resolve_anew(a, b)?;
            resolve_anew(b, a)?;
            let error_s = clock_error_s(&near)?;
            assert!((error_s - i64::from(before_s)).abs() <= 5, "{error_s} s, not {before_s} s");
            distributor.stop(Signal::TERM);
            distributor = stage.prepare("k", same_distributor(stage).clock_offset_s(offset_s))?;
            distributor.start(&[])?;
            await_time(&distributor)?;
            // One host hears of the new time at its start; the other when it is answered with a stamp of that time.
            far.stop(Signal::TERM);
            far.start(&[])?;
            await_time(&far)?;
            resolve_anew(a, b)?;
            near.await_event(word, SOON)?;
            before_s = offset_s;
        }
        resolve_anew(b, a)?;
        assert_eq!(near.status()?["weakened"], serde_json::json!([]));
        Ok(())
    });
}

/// The distributor with the identity that it has.
fn same_distributor(stage: &Stage) -> Plan {
    Plan::distributor().identity(stage.file("site.k.pem"))
}

#[test]
fn a_host_of_1970_takes_part_and_a_distributor_of_1970_says_nothing() {
    perform(&["k", "a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let since_1970 = -i32::try_from(unix_s()).expect("before 2038");
        let mut distributor = sign(stage, "k", Plan::distributor())?;
        let (near, _far) =
            (sign(stage, "a", Plan::sarp().clock_offset_s(since_1970))?, sign(stage, "b", Plan::sarp())?);
        assert_eq!(near.status()?["clock"], "wrong");
        assert!(clock_error_s(&near)?.abs() <= 5);
        resolve_anew(a, b)?;
        resolve_anew(b, a)?;

        distributor.stop(Signal::TERM);
        let mut of_1970 = stage.prepare("k", same_distributor(stage).clock_offset_s(since_1970))?;
        of_1970.start(&[])?;
        drop(near);
        let near = stage.guard("a", same_identity(stage, "a"))?;
        near.await_event("no key distributor answers", SOON)?;
        of_1970.await_drops("sarp-no-clock", 1)?;
        assert!(near.status()?["sarp"]["clock_unix_s"].is_null());
        assert_eq!(of_1970.status()?["clock"], "wrong");

        of_1970.stop(Signal::TERM);
        let mut right = stage.prepare("k", same_distributor(stage))?;
        right.start(&[])?;
        await_time(&near)?;
        reach(&a.namespace, b.ip, FOLLOWED).map(drop)
    });
}

/// Issues host `name` a new identity in the place of the one it has; returns a copy of the old one.
fn renew(stage: &Stage, name: &str) -> Result<PathBuf, Failure> {
    let host = stage.host(name);
    let (current, old) = (stage.file(&format!("site.{name}.pem")), stage.file(&format!("old.{name}.pem")));
    std::fs::copy(&current, &old).map_err(Failure::file("copying", &current))?;
    stage.site.issue(name, &format!("--mac {} --ip {}", host.mac, host.ip))?;
    Ok(old)
}

#[test]
fn a_new_key_is_followed_in_traffic_and_the_old_one_is_refused() {
    perform(&["k", "a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (near, mut far) = (sign(stage, "a", Plan::sarp())?, sign(stage, "b", Plan::sarp())?);
        reach(&a.namespace, b.ip, SOON)?;
        let traffic = Ping::start(a, b, &stage.run.directory())?;
        let old = renew(stage, "b")?;
        far.stop(Signal::TERM);
        far.start(&[])?;
        reach(&a.namespace, b.ip, FOLLOWED)?;
        // The kernel keeps its entry while traffic flows; a new question meets the new key.
        resolve_anew(a, b)?;
        near.await_event(&format!("{} has a new key", b.ip), SOON)?;
        assert!(traffic.stop()?.received > 0);

        // Somebody has a copy of the old identity, with the host's addresses and all.
        far.stop(Signal::KILL);
        let refused = near.drops("sarp-signature")?;
        let mut thief = stage.prepare("b", Plan::sarp().identity(old))?;
        thief.start(&[])?;
        await_time(&thief)?;
        forget(a)?;
        assert_apart(a, b)?;
        near.await_drops("sarp-signature", refused + 1)?;
        near.await_event(&format!("{} at {} was refused", b.ip, b.mac), SOON)?;
        assert!(a.neighbour(b.ip)?.is_none(), "{:?}", a.neighbour(b.ip)?);
        thief.stop(Signal::KILL);
        let mut owner = stage.prepare("b", same_identity(stage, "b"))?;
        owner.start(&[])?;
        reach(&a.namespace, b.ip, FOLLOWED).map(drop)
    });
}

#[test]
fn a_revoked_host_is_refused_by_all_who_ask_for_its_key_until_it_is_enrolled_again() {
    perform(&["k", "a", "b", "d"], |stage| {
        let [a, b, d] = ["a", "b", "d"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let (mut near, new) = (sign(stage, "a", Plan::sarp())?, sign(stage, "d", Plan::sarp())?);
        let mut revoked = sign(stage, "b", Plan::sarp())?;
        reach(&a.namespace, b.ip, SOON)?;
        stage.site.revoke("b")?;

        assert_apart(d, b)?;
        new.await_drops("sarp-no-key", 1)?;
        new.await_event(&format!("{} answers but has no good key", b.ip), SOON)?;
        assert!(d.neighbour(b.ip)?.is_none());
        // Who has the key believes it for up to ten minutes, as docs/s-arp.md says; not after a restart.
        resolve_anew(a, b)?;
        near.stop(Signal::TERM);
        near.start(&[])?;
        await_time(&near)?;
        assert_apart(a, b)?;
        near.await_drops("sarp-no-key", 1)?;
        // A restart does not help the revoked one.
        revoked.stop(Signal::TERM);
        revoked.start(&[])?;
        await_time(&revoked)?;
        assert_apart(d, b)?;

        renew(stage, "b")?;
        revoked.stop(Signal::TERM);
        revoked.start(&[])?;
        reach(&d.namespace, b.ip, FOLLOWED)?;
        reach(&a.namespace, b.ip, FOLLOWED)?;
        resolve_anew(b, d)?;
        assert!(process::within(SOON, || Ok(new.json(&["peers"])?.to_string().contains(&b.ip.to_string())))?);
        Ok(())
    });
}
