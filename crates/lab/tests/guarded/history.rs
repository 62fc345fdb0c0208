//! What happened is kept on disk, and outlives the daemon.

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use ringwall_lab::net::talk::reach;
use rustix::process::Signal;
use serde_json::Value;

use crate::attacks::spoof;
use crate::stage::{Guarded, Plan, SOON, perform};

/// The rows that `ringwall history` gives with these options.
fn rows(guarded: &Guarded, options: &[&str]) -> Result<Vec<Value>, Failure> {
    let said = guarded.json(&[&["history"], options].concat())?;
    assert_eq!((&said["schema"], &said["schema_version"]), (&"ringwall-history".into(), &1.into()), "{said}");
    Ok(said["rows"].as_array().cloned().unwrap_or_default())
}

#[test]
fn attacks_addresses_and_changes_are_kept_and_outlive_the_daemon() {
    perform(&["a", "b", "x"], |stage| {
        let [a, b, x] = ["a", "b", "x"].map(|name| stage.host(name));
        let lines = format!("[records]\nhistory_file = \"{}\"\n", stage.file("history.db").display());
        let mut near = stage.guard("a", Plan::way("namespace").tail(&lines))?;
        let _far = stage.guard("b", Plan::way("namespace"))?;
        reach(&a.namespace, b.ip, SOON)?;
        let about = b.ip.to_string();
        process::until("who has the address", SOON, || Ok(!rows(&near, &["--about", &about])?.is_empty()))?;
        spoof(x, a, b)?;
        process::until("the attack", SOON, || Ok(!rows(&near, &["--kind", "arp-spoofing"])?.is_empty()))?;
        let held = rows(&near, &["--kind", "address", "--about", &about])?;
        assert_eq!((&held[0]["name"], &held[0]["mac"]), (&"b".into(), &b.mac.to_string().into()), "{held:?}");
        assert_eq!(held[0]["is_open"], true, "{held:?}");
        process::must(near.command(&["host", "reload"]))?;

        near.stop(Signal::TERM);
        near.start(&[])?;
        process::until("the second start", SOON, || Ok(rows(&near, &["--kind", "started"])?.len() == 2))?;
        let attacks = rows(&near, &["--kind", "arp-spoofing", "--since", "1h"])?;
        assert_eq!((attacks.len(), &attacks[0]["mac"]), (1, &x.mac.to_string().into()), "{attacks:?}");
        assert_eq!(attacks[0]["is_open"], false, "nobody goes on telling of it: {attacks:?}");
        for kind in ["stopped", "policy"] {
            assert_eq!(rows(&near, &["--kind", kind])?.len(), 1, "{kind}");
        }
        let text = process::must(near.command(&["history", "--about", &x.mac.to_string()]))?;
        assert!(text.lines().count() == 1 && text.contains("  arp-spoofing  ") && text.contains("Z  "), "{text}");
        Ok(())
    });
}
