//! The site's policy on real hosts: an edit at the authority is in force everywhere without a
//! restart, and what is no policy of the site or an older one changes nothing.

use std::fs;
use std::time::Duration;

use ringwall_lab::net::process;
use ringwall_lab::net::talk::reach;
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{Guarded, Outcome, Plan, SOON, Site, Stage, perform};
use crate::wire::pings;

/// The hosts; the authority's machine is the first.
const GUARDED: [&str; 4] = ["a", "b", "c", "d"];
const PRINTER: &str = "p";
/// An edit has reached every host by then.
const REACHED: Duration = Duration::from_secs(60);

/// All hosts guarded, the authority's with the policy as a file, after each has met some other.
fn guard_all(stage: &Stage) -> Result<Vec<Guarded>, ringwall_lab::failure::Failure> {
    let file = stage.site.directory().join("policy.pem");
    let mut all = vec![stage.guard("a", Plan::default().host(&format!("policy = \"{}\"", file.display())))?];
    for name in &GUARDED[1..] {
        all.push(stage.guard(name, Plan::default())?);
    }
    // A chain: d has never heard of a.
    for pair in all.windows(2) {
        reach(&pair[0].host.namespace, pair[1].host.ip, SOON)?;
    }
    Ok(all)
}

fn version(guarded: &Guarded) -> Result<Value, ringwall_lab::failure::Failure> {
    Ok(guarded.status()?["policy"]["version"].clone())
}

fn await_version(all: &[Guarded], wanted: u64) -> Outcome {
    process::until(&format!("version {wanted} everywhere"), REACHED, || {
        let mut everywhere = true;
        for guarded in all {
            everywhere &= version(guarded)? == wanted;
        }
        Ok(everywhere)
    })
}

#[test]
fn a_printer_that_the_authority_lists_is_reached_from_every_host_without_a_restart() {
    perform(&["a", "b", "c", "d", PRINTER], |stage| {
        let printer = stage.host(PRINTER);
        let mut all = guard_all(stage)?;
        let ids: Vec<u32> = all.iter().map(Guarded::id).collect();
        assert!(!pings(&all[3].host.namespace, printer.ip, "-W 1")?, "nobody hears it before");
        stage.site.order(&format!("policy legacy add --ip {} --mac {}", printer.ip, printer.mac))?;
        for guarded in &all {
            reach(&guarded.host.namespace, printer.ip, REACHED)?;
            reach(&printer.namespace, guarded.host.ip, SOON)?;
            assert_eq!(version(guarded)?, 1);
        }
        assert_eq!(all.iter().map(Guarded::id).collect::<Vec<_>>(), ids, "no daemon was started again");
        let text = process::must(all[3].command(&["status"]))?;
        assert!(text.contains("site policy: version 1, in force since 20"), "{text}");
        // What a peer gave is kept.
        all[3].stop(Signal::TERM);
        all[3].start(&[])?;
        reach(&all[3].host.namespace, printer.ip, SOON)?;
        // It is taken out as it was put in.
        stage.site.order(&format!("policy legacy remove {}", printer.ip))?;
        await_version(&all, 2)?;
        for guarded in &all {
            assert!(!pings(&guarded.host.namespace, printer.ip, "-W 1")?, "{}", guarded.host.name);
        }
        Ok(())
    });
}

#[test]
fn a_group_changes_its_mode_by_the_policy_and_back_by_itself() {
    perform(&["a", "b", "c", "d", "x"], |stage| {
        let stranger = stage.host("x");
        let all = guard_all(stage)?;
        stage.site.order("policy mode c,d observe")?;
        await_version(&all, 1)?;
        let mode = |guarded: &Guarded| Ok(guarded.status()?["migration"]["mode"].clone());
        process::until("c and d observe", SOON, || {
            let modes = all.iter().map(mode).collect::<Result<Vec<_>, ringwall_lab::failure::Failure>>()?;
            Ok(modes == ["enforce", "enforce", "observe", "observe"])
        })?;
        reach(&stranger.namespace, all[3].host.ip, SOON)?;
        assert!(!pings(&stranger.namespace, all[0].host.ip, "-W 1")?);
        stage.site.order("policy mode c,d enforce")?;
        stage.site.order("policy mode c,d observe --for 15s")?;
        await_version(&all, 3)?;
        assert!(all[3].status()?["policy"]["changes"].as_str().is_some_and(|text| text.starts_with("enforce from 20")));
        process::until("c and d enforce again", REACHED, || {
            Ok(mode(&all[2])? == "enforce" && mode(&all[3])? == "enforce")
        })?;
        assert!(!pings(&stranger.namespace, all[3].host.ip, "-W 1")?);
        all[3].await_event("mode enforce (it was observe)", SOON)
    });
}

#[test]
fn a_policy_that_is_forged_older_or_too_long_changes_nothing_and_is_counted() {
    perform(&["a"], |stage| {
        let file = stage.file("policy.pem");
        let guarded = stage.guard("a", Plan::default().host(&format!("policy = \"{}\"", file.display())))?;
        let of_site = |site: &Site, number: u8| {
            site.order(&format!("policy legacy add --ip 10.77.0.{number} --mac 02:00:00:00:aa:{number:02}"))?;
            Ok::<Vec<u8>, ringwall_lab::failure::Failure>(fs::read(site.directory().join("policy.pem")).expect("there"))
        };
        let put = |content: &[u8]| {
            let whole = stage.file("policy.new");
            fs::write(&whole, content).and_then(|()| fs::rename(&whole, &file)).expect("a file of our own");
        };
        let (first, second) = (of_site(&stage.site, 81)?, of_site(&stage.site, 82)?);
        put(&second);
        process::until("version 2", SOON, || Ok(version(&guarded)? == 2))?;
        let other = Site::found(stage.run, "policy-other")?;
        for _ in 0..3 {
            of_site(&other, 91)?;
        }
        let too_long =
            identity::pem::encode(identity::pem::SITE_POLICY, &vec![1; identity::limits::MAX_POLICY_LEN + 1]);
        let foreign = of_site(&other, 92)?;
        for (content, word) in [
            (&first[..], "older"),
            (&foreign, "forged"),
            (too_long.as_bytes(), "too-long"),
            (&b"nonsense"[..], "malformed"),
        ] {
            put(content);
            process::until(word, SOON, || Ok(guarded.status()?["policy"]["refused"][word] == 1))?;
            assert_eq!(version(&guarded)?, 2, "{word}");
        }
        guarded.await_event("refused (forged)", SOON)?;
        put(&of_site(&stage.site, 83)?);
        process::until("version 3", SOON, || Ok(version(&guarded)? == 3))
    });
}

#[test]
fn a_host_of_mode_sarp_believes_who_the_policy_knows_without_a_restart() {
    perform(&["k", "a", "p"], |stage| {
        let (keys, printer) = (stage.host("k"), stage.host("p"));
        let _distributor = stage.guard("k", Plan::distributor())?;
        let file = stage.site.directory().join("policy.pem");
        let guarded = stage.guard("a", Plan::sarp().host(&format!("policy = \"{}\"", file.display())))?;
        reach(&guarded.host.namespace, keys.ip, SOON)?;
        let id = guarded.id();
        assert!(!pings(&guarded.host.namespace, printer.ip, "-W 1")?, "nobody believes it before");
        stage.site.order(&format!("policy known add --ip {} --mac {}", printer.ip, printer.mac))?;
        reach(&guarded.host.namespace, printer.ip, REACHED)?;
        assert_eq!((version(&guarded)?, guarded.id()), (1.into(), id));
        stage.site.order(&format!("policy known remove {}", printer.ip))?;
        process::until("version 2", SOON, || Ok(version(&guarded)? == 2))?;
        guarded.host.namespace.ip(&format!("neighbour flush dev {}", ringwall_lab::net::lan::INTERFACE))?;
        assert!(!pings(&guarded.host.namespace, printer.ip, "-W 1")?);
        Ok(())
    });
}
