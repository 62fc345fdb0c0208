//! The paper profile with the real program: hosts that sign with DSA and SHA-1 find each other, everybody is told what they are,
//! and a modern host has nothing to do with them.

use ringwall_lab::net::talk::reach;

use crate::bad_input::{assert_one_line, assert_refused, read, write};
use crate::sarp::{assert_metrics, assert_says, await_time, resolve_anew, sign};
use crate::stage::{Outcome, Plan, SOON, Site, Stage, perform};
use crate::takeover::furnish;

/// What a paper host's configuration must say.
fn paper(plan: Plan) -> Plan {
    plan.host("profile = \"paper\"")
}

/// A site of the paper profile whose distributor is `k`, and the identities of `k`, `a` and `b`.
fn found(stage: &Stage) -> Result<(Site, [std::path::PathBuf; 3]), ringwall_lab::failure::Failure> {
    let site = Site::found_with(stage.run, "paper", &["--profile", "paper"])?;
    let issue = |name: &str, more: &str| {
        let host = stage.host(name);
        site.issue(name, &format!("--mac {} --ip {}{more}", host.mac, host.ip))
    };
    let identities = [issue("k", " --role akd")?, issue("a", " --dsa-bits 1024")?, issue("b", " --dsa-bits 512")?];
    Ok((site, identities))
}

#[test]
fn hosts_with_dsa_keys_find_each_other_and_say_what_they_are() {
    perform(&["k", "a", "b"], |stage| {
        let (site, [k, a, b]) = found(stage)?;
        let mut distributor = stage.prepare("k", paper(Plan::distributor()).identity(k))?;
        // The stage writes down its own site's repository.
        let own = stage.site.repository().display().to_string();
        write(&distributor.config, &read(&distributor.config).replace(&own, &site.repository().display().to_string()));
        distributor.start(&[])?;
        await_time(&distributor)?;
        let near = sign(stage, "a", paper(Plan::sarp()).identity(a))?;
        let far = sign(stage, "b", paper(Plan::sarp()).identity(b))?;
        for (one, other) in [("a", "b"), ("b", "a"), ("a", "k"), ("k", "b")] {
            reach(&stage.host(one).namespace, stage.host(other).ip, SOON)?;
            resolve_anew(stage.host(one), stage.host(other))?;
        }
        for guarded in [&distributor, &near, &far] {
            let status = guarded.status()?;
            assert!(status["sarp"]["signatures"].as_u64() >= Some(1), "{status}");
            assert_eq!(status["profile"], "paper");
            assert_says(guarded, &["status"], &["NOT PROTECTED: profile paper", "DSA", "NOT for real use"])?;
            assert_says(guarded, &["config", "check"], &["NOT for real use"])?;
            assert!(guarded.log().contains("NOT for real use"), "{}", guarded.log());
            assert_metrics(guarded, &[("weakened_layers", 1.0)])?;
        }
        Ok(())
    });
}

#[test]
fn profiles_that_do_not_fit_are_refused_in_one_line() {
    perform(&["k", "a", "b"], |stage| {
        furnish(stage.host("a"))?;
        let (_site, [_, a, _]) = found(stage)?;
        let refuses = |plan: Plan, words: &[&str]| -> Outcome { assert_refused(&stage.prepare("a", plan)?, words) };
        let file = a.display().to_string();
        // A host that does not say `profile = "paper"`, in either mode.
        refuses(
            Plan::sarp().identity(a.clone()),
            &[&file, "paper profile", "NOT for real use", "profile = \"paper\""],
        )?;
        refuses(Plan::default().identity(a.clone()), &[&file, "paper profile", "NOT for real use"])?;
        // One that says so with a modern identity.
        let modern = stage.site.issue("a", &format!("--mac {} --ip {}", stage.host("a").mac, stage.host("a").ip))?;
        let file = modern.display().to_string();
        refuses(paper(Plan::sarp()).identity(modern), &[&file, "modern profile", "site init --profile paper"])?;
        // The link layer has no such profile yet.
        let wrong = stage.prepare("a", paper(Plan::default()).identity(a))?;
        let words = ["profile = \"paper\" needs mode = \"sarp\"", "host.mode"];
        assert_refused(&wrong, &words)?;
        assert_one_line(&wrong.ask(&["config", "check"])?, &words);
        Ok(())
    });
}

/// A modern site has no such keys, and a paper site takes no keys from its hosts.
#[test]
fn a_site_keeps_to_its_profile() {
    perform(&["a"], |stage| {
        let a = stage.host("a");
        let refused = stage.site.issue("a", &format!("--mac {} --ip {} --dsa-bits 1024", a.mac, a.ip));
        let line = refused.expect_err("modern").to_string();
        assert!(line.contains("'site init --profile paper'"), "{line}");
        Ok(())
    });
}
