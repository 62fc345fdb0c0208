//! What `ringwall why` says between real hosts, with nothing wrong and with a cause that was put there.

use std::time::{Duration, Instant};

use identity::certificate::Role;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, Lan, process};
use serde_json::Value;

use crate::stage::{Guarded, Outcome, Plan, SOON, Site, Stage, perform};
use crate::wire::pings;

const DAY: Duration = Duration::from_secs(86_400);
/// Within this a daemon has read a new revocation list.
const LIST_READ_MAX: Duration = Duration::from_secs(20);

/// What it says of `host`, and its exit status.
fn why(guarded: &Guarded, host: &str) -> Result<(Value, Option<i32>), Failure> {
    let answer = guarded.ask(&["why", host, "--json"])?;
    let said: Value = serde_json::from_str(&answer.stdout)
        .map_err(|error| Failure::Unreadable(format!("why: {error}: {} {}", answer.stdout, answer.stderr)))?;
    assert_eq!((&said["schema"], &said["schema_version"]), (&"ringwall-why".into(), &1.into()));
    Ok((said, answer.status.code()))
}

/// The findings of all checks called `name`, one line each.
fn told(said: &Value, name: &str) -> Vec<String> {
    let lines = said["answers"][0]["findings"].as_array().expect("a list");
    let line = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        format!("{}: {}; {}", text("level"), text("what"), text("remedy"))
    };
    lines.iter().filter(|one| one["check"] == name).map(line).collect()
}

fn assert_told((said, code): &(Value, Option<i32>), name: &str, words: &[&str], exit: i32) {
    let lines = told(said, name);
    let fits = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(fits, "no {name} with {words:?} in {said:#}");
    assert_eq!(*code, Some(exit), "{said:#}");
}

fn of(host: &Host) -> String {
    host.ip.to_string()
}

#[test]
fn two_that_are_sealed_hear_that_all_is_well_by_every_name_of_the_other() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        // The question itself begins the handshake.
        let said = why(&near, &of(b))?;
        assert_told(&said, "association", &["good: sealed with b ", &b.mac.to_string()], 0);
        assert_told(&said, "mtu", &["good", "full size"], 0);
        for name in ["b", &b.mac.to_string()] {
            assert_told(&why(&near, name)?, "association", &["good: sealed with b"], 0);
        }
        assert_told(&why(&near, &of(a))?, "way", &["is this host"], 0);
        let text = near.ask(&["why", &of(b)])?.stdout;
        assert!(text.starts_with(&format!("e0 and b, {}, {}\nok        way: ", b.ip, b.mac)), "{text}");
        Ok(())
    });
}

#[test]
fn a_certificate_that_is_over_is_named_at_the_end_that_refuses_and_asked_for_at_the_other() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let short = stage.site.issue_for(b, Role::Host, Duration::from_secs(4))?;
        let issued = Instant::now();
        let far = stage.guard("b", Plan::default().identity(short))?;
        let near = stage.guard("a", Plan::default())?;
        process::pause(Duration::from_secs(6).saturating_sub(issued.elapsed()))?;
        let said = why(&near, &of(b))?;
        assert_told(&said, "refused", &["critical", "certificate", "expired at", "ringwall host renew"], 2);
        assert_told(&why(&far, &of(a))?, "own-certificate", &["critical", "is over", "every host refuses it"], 2);
        Ok(())
    });
}

#[test]
fn a_revoked_host_is_named_as_such_by_both_ends() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let list = stage.site.directory().join("revoked.crl.pem");
        let plan = || Plan::default().cll(&format!("revocation_list = \"{}\"", list.display()));
        let (near, far) = (stage.guard("a", plan())?, stage.guard("b", plan())?);
        reach(&a.namespace, b.ip, SOON)?;
        stage.site.revoke("b")?;
        near.await_event("the site has revoked the peer's certificate", LIST_READ_MAX)?;
        process::until("b's list", LIST_READ_MAX, || Ok(far.status()?["revoked"] == 1))?;
        let said = why(&near, &of(b))?;
        assert_told(&said, "refused", &["critical", "certificate of b was revoked", "ringwall site issue"], 2);
        assert_told(&why(&far, &of(a))?, "own-certificate", &["critical", "own certificate was revoked"], 2);
        Ok(())
    });
}

#[test]
fn a_clock_that_is_wrong_is_named_with_how_far_it_is_off() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let of_two_days = stage.site.issue_for(a, Role::Host, 2 * DAY)?;
        let near = stage.guard("a", Plan::default().identity(of_two_days))?;
        let far = stage.guard("b", Plan::default().clock_offset_s(3 * 86_400 + 3600))?;
        assert!(!pings(&b.namespace, a.ip, "")?);
        // By b's clock the certificate of a is over; a has verified what b asked, and knows both clocks.
        let there = why(&far, &of(a))?;
        assert_told(&there, "refused", &["critical", "expired at", "this host's clock is wrong"], 2);
        let here = why(&near, &of(b))?;
        assert_told(&here, "clock", &["warning", "the clock of b is 3 days ahead", "date -u"], 1);
        assert_told(&here, "association", &["warning", "no frame of it has come", "type there `ringwall why"], 1);
        Ok(())
    });
}

#[test]
fn a_host_in_clear_is_dropped_by_enforce_and_let_in_by_prefer_and_listed_by_choice() {
    perform(&["a", "c"], |stage| {
        let (a, plain) = (stage.host("a"), stage.host("c"));
        let near = stage.guard("a", Plan::default().cll("migration = \"enforce\""))?;
        let silent = why(&near, &of(plain))?;
        assert_told(&silent, "answer", &["critical", "not enrolled", "ringwall join", "type there"], 2);
        assert!(!pings(&plain.namespace, a.ip, "")?);
        let said = why(&near, &of(plain))?;
        assert_told(&said, "clear", &["critical", &plain.mac.to_string(), "mode enforce", "plain-arp"], 2);
        drop(near);

        let near = stage.guard("a", Plan::default().cll("migration = \"prefer\""))?;
        reach(&plain.namespace, a.ip, SOON)?;
        let said = why(&near, &plain.mac.to_string())?;
        assert_told(&said, "clear", &["warning", "mode prefer", "lets it", "enforce would have dropped"], 1);
        drop(near);

        let listed = format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\nrole = \"host\"\n", plain.ip, plain.mac);
        let near = stage.guard("a", Plan::default().tail(&listed))?;
        assert_told(&why(&near, &of(plain))?, "list", &["warning", "on the legacy list", "never sealed"], 1);
        Ok(())
    });
}

#[test]
fn a_host_of_another_site_is_named_as_such() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let identity = Site::found(stage.run, "foreign")?.issue("b", &format!("--mac {} --ip {}", b.mac, b.ip))?;
        let (near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default().identity(identity))?);
        assert!(!pings(&b.namespace, a.ip, "")?);
        near.await_drops("handshake-site-mac", 1)?;
        let said = why(&near, &of(b))?;
        // In the kernel it ends without a trace of whom it was; elsewhere its frame is kept.
        assert_told(&said, "answer", &["warning", "another site's key", "may be of another site", "ringwall join"], 2);
        drop(near);
        let near = stage.guard("a", Plan::default().cll("layers = \"twin\""))?;
        assert!(!pings(&b.namespace, a.ip, "")?);
        near.await_drops("handshake-site-mac", 1)?;
        let said = why(&near, &of(b))?;
        assert_told(&said, "refused", &["critical", "of another site, or has an old site key", "ringwall join"], 2);
        Ok(())
    });
}

#[test]
fn a_path_for_short_packets_only_and_a_daemon_that_is_gone_are_told() {
    perform(&["a", "b"], |stage: &Stage| -> Outcome {
        let b = stage.host("b");
        let (mut near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        stage.lan.bridge.ip(&format!("link set {} mtu 1300", Lan::port(b)))?;
        let said = why(&near, &of(b))?;
        assert_told(&said, "mtu", &["critical", "smaller MTU", "raise it"], 2);
        near.stop(rustix::process::Signal::TERM);
        let answer = near.ask(&["why", &of(b)])?;
        assert_eq!((answer.status.code(), answer.stdout.as_str()), (Some(3), ""));
        assert!(answer.stderr.contains("start the daemon"), "{}", answer.stderr);
        Ok(())
    });
}
