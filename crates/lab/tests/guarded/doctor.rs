//! What `ringwall doctor` says of a real host, with nothing wrong and with a fault that was put
//! there.

use std::time::Duration;

use identity::certificate::Role;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use serde_json::Value;

use crate::layers::occupy;
use crate::stage::{Guarded, Outcome, Plan, perform};

/// What it says, and its exit status.
fn examine(guarded: &Guarded) -> Result<(Value, Option<i32>), Failure> {
    let answer = guarded.ask(&["doctor", "--json"])?;
    let said = serde_json::from_str(&answer.stdout)
        .map_err(|error| Failure::Unreadable(format!("doctor: {error}: {} {}", answer.stdout, answer.stderr)))?;
    Ok((said, answer.status.code()))
}

/// The line of the check called `name`.
fn line<'a>(said: &'a Value, name: &str) -> &'a Value {
    let lines = said["checks"].as_array().expect("a list");
    lines.iter().find(|line| line["check"] == name).unwrap_or_else(|| panic!("no {name} in {said}"))
}

fn assert_says(said: &Value, name: &str, level: &str, word: &str) {
    let line = line(said, name);
    let text =
        format!("{}; {}", line["what"].as_str().unwrap_or_default(), line["remedy"].as_str().unwrap_or_default());
    assert!(line["level"] == level && text.contains(word), "{name} is to be {level} and say \"{word}\": {line}");
}

#[test]
fn a_host_that_is_well_and_then_stopped_is_told_apart() {
    perform(&["a"], |stage| {
        let mut near = stage.guard("a", Plan::way("namespace"))?;
        let (said, _) = examine(&near)?;
        assert_eq!((&said["schema"], &said["schema_version"]), (&"ringwall-doctor".into(), &1.into()));
        for name in ["configuration", "card", "xdp", "mtu", "identity", "authority", "site-key", "peers"] {
            assert_eq!(line(&said, name)["level"], "good", "{}", line(&said, name));
        }
        let daemon = &line(&said, "daemon")["level"];
        assert!(daemon == "good" || daemon == "warning", "{said}");
        near.stop(rustix::process::Signal::TERM);
        let (said, code) = examine(&near)?;
        assert_says(&said, "daemon", "critical", "closed");
        assert_eq!(code, Some(2));
        let text = near.ask(&["doctor"])?.stdout;
        assert!(
            text.lines().any(|line| line.starts_with("critical  daemon e0: none runs, and e0 is closed; ")),
            "{text}"
        );
        near.release()?;
        assert_says(&examine(&near)?.0, "daemon", "warning", "not guarded");
        Ok(())
    });
}

#[test]
fn a_certificate_that_is_over_is_named_before_a_start_fails() {
    perform(&["a"], |stage| {
        let (hour, two) = (Duration::from_secs(3600), Duration::from_secs(7200));
        let identity = stage.site.issue_ago(stage.host("a"), Role::Host, hour, two)?;
        let near = stage.prepare("a", Plan::default().identity(identity))?;
        let (said, code) = examine(&near)?;
        assert_says(&said, "identity", "critical", "over since 1 h");
        assert_eq!(code, Some(2));
        assert!(!process::ask(near.command(&["host", "run"]), &[])?.status.success(), "and it does fail");
        Ok(())
    });
}

#[test]
fn an_xdp_program_of_somebody_else_is_named() {
    perform(&["a"], |stage| -> Outcome {
        let near = stage.prepare("a", Plan::default())?;
        let program = occupy(stage.host("a"))?;
        let (said, _) = examine(&near)?;
        assert_says(&said, "xdp", "warning", "somebody else");
        drop(program);
        assert_says(&examine(&near)?.0, "xdp", "good", "no XDP program");
        Ok(())
    });
}
