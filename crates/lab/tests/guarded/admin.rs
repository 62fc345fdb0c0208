//! What an administrator sees and what others must not: commands and their JSON, metrics,
//! priorities, modes of files, and no secret in any of it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use ringwall_lab::net::talk::reach;
use serde_json::Value;

use crate::stage::{Guarded, Plan, SOON, Stage, perform};
use crate::wire::*;

fn talking_pair(stage: &Stage, plan: Plan) -> Result<(Guarded, Guarded), Failure> {
    let guarded = (stage.guard("a", plan)?, stage.guard("b", Plan::default())?);
    reach(&stage.host("a").namespace, stage.host("b").ip, SOON)?;
    Ok(guarded)
}

fn said(guarded: &Guarded, words: &[&str]) -> Result<String, Failure> {
    let command = guarded.command(words);
    if words.first() == Some(&"status") { process::told(command) } else { process::must(command) }
}

#[test]
fn status_and_peers_tell_the_same_as_text_and_as_json() {
    perform(&["a", "b"], |stage| {
        let (near, _far) = talking_pair(stage, Plan::default())?;
        let b = stage.host("b");
        let (status, text) = (near.status()?, said(&near, &["status"])?);
        assert_eq!(
            (&status["state"], &status["interface"], &status["peers"]),
            (&"running".into(), &"e0".into(), &1.into())
        );
        assert_eq!(status["takeover"]["way"], "in-place");
        for word in ["e0 running", "taken over by in-place", "peers: 1", "not carried", "IPv6"] {
            assert!(text.contains(word), "no \"{word}\" in {text}");
        }
        let (peers, text) = (near.json(&["peers"])?, said(&near, &["peers"])?);
        assert_eq!(peers[0]["name"], "b");
        assert_eq!(peers[0]["mac"], b.mac.to_string());
        assert_eq!(peers[0]["addresses"][0], b.ip.to_string());
        assert!(
            text.lines().nth(1).is_some_and(|line| line.starts_with("b ") && line.contains("established")),
            "{text}"
        );
        Ok(())
    });
}

#[test]
fn events_tell_what_happened_in_order() {
    perform(&["a", "b"], |stage| {
        let (near, _far) = talking_pair(stage, Plan::default())?;
        let text = said(&near, &["events"])?;
        assert!(text.contains("established") && text.contains("association with b"), "{text}");
        let lines = said(&near, &["events", "--json"])?;
        let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let numbers: Vec<u64> = events.iter().filter_map(|event| event["number"].as_u64()).collect();
        assert!(numbers.len() == events.len() && numbers.is_sorted(), "{lines}");
        assert!(events.iter().any(|event| event["event"] == "established"), "{lines}");
        Ok(())
    });
}

#[test]
fn explain_says_why_a_frame_was_dropped_and_what_to_do() {
    perform(&["a", "b", "c"], |stage| {
        let (near, _far) = talking_pair(stage, Plan::default())?;
        assert!(!answers_arp(stage.host("c"), stage.host("a").ip)?);
        near.await_drops("plain-arp", 1)?;
        let source = stage.host("c").mac.to_string();
        for words in [vec!["explain"], vec!["explain", "plain-arp"]] {
            let text = said(&near, &words)?;
            assert!(text.contains("plain-arp (") && text.contains("do:") && text.contains(&source), "{text}");
        }
        let unseen = said(&near, &["explain", "replayed"])?;
        assert!(unseen.contains("replayed (0 frames)") && !unseen.contains("plain-arp"), "{unseen}");
        let answer = near.json(&["explain"])?;
        let examples = answer["examples"].as_array().expect("a list");
        let of_ours = |example: &&Value| example["reason"] == "plain-arp" && example["source"] == source;
        assert!(examples.iter().any(|example| of_ours(&example)), "{answer}");
        assert!(answer["counts"]["plain-arp"].as_u64() >= Some(1));
        Ok(())
    });
}

#[test]
fn metrics_are_text_that_prometheus_reads() {
    perform(&["a", "b"], |stage| {
        let (near, _far) = talking_pair(stage, Plan::default())?;
        let text = said(&near, &["metrics"])?;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("name and value");
            assert!(name.starts_with("ringwall_") && name.ends_with('}') && value.parse::<f64>().is_ok(), "{line}");
        }
        for start in [
            "ringwall_dropped_frames_total{interface=\"e0\",reason=\"replayed\"} 0",
            "ringwall_forwarded_frames_total{interface=\"e0\",side=\"wire\"}",
            "ringwall_peers{interface=\"e0\"",
            "ringwall_association_handshake_timestamp_seconds{interface=\"e0\",name=\"b\"",
            "ringwall_certificate_not_after_timestamp_seconds{",
        ] {
            assert!(text.lines().any(|line| line.starts_with(start)), "no {start} in {text}");
        }
        let open = said(&near, &["metrics", "--open-metrics"])?;
        assert!(open.ends_with("# EOF\n") && !text.contains("# EOF"), "{open}");
        Ok(())
    });
}

#[test]
fn the_configuration_in_force_is_a_configuration() {
    perform(&["a"], |stage| {
        let guarded = stage.prepare("a", Plan::default().cll("send_suite = \"aes-128-gcm\""))?;
        assert!(said(&guarded, &["config", "check"])?.contains("no mistake"));
        let shown = said(&guarded, &["config", "show"])?;
        for word in ["send_suite = \"aes-128-gcm\"", "on_exit = \"closed\"", "ethertype = 2000", "IPv6", "DHCP"] {
            assert!(shown.contains(word), "no {word} in {shown}");
        }
        std::fs::write(&guarded.config, &shown).expect("a writable file");
        assert_eq!(said(&guarded, &["config", "show"])?, shown);
        Ok(())
    });
}

#[test]
fn whoever_switched_protection_off_is_told_so() {
    perform(&["a"], |stage| {
        for (line, tail) in [("mode = \"null\"", ""), ("mode = \"cll\"", "[lab]\nweaken = [\"tag\"]\n")] {
            let guarded = stage.guard("a", Plan::default().host("profile = \"lab\"").host(line).tail(tail))?;
            assert!(said(&guarded, &["status"])?.contains("NOT PROTECTED"));
            assert!(guarded.log().contains("NOT protected"), "{}", guarded.log());
        }
        Ok(())
    });
}

/// Name, policy and real-time priority of each thread (proc_pid_stat(5), fields 2, 41 and 40).
fn scheduling(guarded: &Guarded) -> Vec<(String, u32, u32)> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", guarded.id())).expect("it runs").flatten();
    let of_thread = |line: String| {
        let (name, fields) = line.rsplit_once(')').expect("a name in brackets");
        let fields: Vec<_> = fields.split_whitespace().collect();
        let field = |number: usize| fields[number - 3].parse().expect("a number");
        (name.split_once('(').expect("a bracket").1.to_owned(), field(41), field(40))
    };
    tasks.map(|task| of_thread(std::fs::read_to_string(task.path().join("stat")).expect("it runs"))).collect()
}

#[test]
fn the_data_path_alone_comes_first_where_that_is_wanted() {
    const FIFO: u32 = 1;
    perform(&["a", "b"], |stage| {
        let (near, far) = talking_pair(stage, Plan::default().host("real_time_priority = 10"))?;
        let threads = scheduling(&near);
        let first: Vec<_> = threads.iter().filter(|(_, policy, priority)| (*policy, *priority) != (0, 0)).collect();
        assert_eq!(first, [&("ringwall-data".to_owned(), FIFO, 10)], "{threads:?}");
        assert_eq!(near.status()?["takeover"]["probes"]["real-time priority"], "10");
        assert!(said(&near, &["status"])?.contains("real-time priority: 10"));
        assert!(scheduling(&far).iter().all(|(_, policy, priority)| (*policy, *priority) == (0, 0)));
        assert!(far.status()?["takeover"]["probes"]["real-time priority"].is_null());
        Ok(())
    });
}

#[test]
fn what_is_secret_or_gives_orders_is_for_root_alone() {
    perform(&["a"], |stage| {
        let identity = stage.site.issue("a", &format!("--mac {} --ip {}", stage.host("a").mac, stage.host("a").ip))?;
        let guarded = stage.guard("a", Plan::default().identity(identity.clone()))?;
        let socket = guarded.directory.join("run/e0.sock");
        for file in [identity, socket, guarded.directory.join("state/e0.takeover.json")] {
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        let mut keys = 0;
        for entry in std::fs::read_dir(stage.site.directory()).expect("it is there").flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            if text.contains("PRIVATE KEY") || text.contains("SITE KEY") {
                keys += 1;
                assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
            }
        }
        assert!(keys > 0, "the authority's key was not found");
        Ok(())
    });
}

fn mode(file: &Path) -> u32 {
    std::fs::metadata(file).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn no_secret_is_in_any_log_or_answer() {
    perform(&["a", "b"], |stage| {
        let a = stage.host("a");
        let identity = stage.site.issue("a", &format!("--mac {} --ip {}", a.mac, a.ip))?;
        let mut near = stage.prepare("a", Plan::default().identity(identity.clone()))?;
        let mut command = near.command(&["host", "run"]);
        command.env("RINGWALL_LOG", "trace");
        near.launch_command(command)?;
        near.await_ready()?;
        let _far = stage.guard("b", Plan::default())?;
        reach(&a.namespace, stage.host("b").ip, SOON)?;
        reach(&stage.host("b").namespace, a.ip, SOON)?;
        let mut told = near.log();
        for question in [vec!["status", "--json"], vec!["peers", "--json"], vec!["events"], vec!["explain", "--json"]] {
            told.push_str(&said(&near, &question)?);
        }
        told.push_str(&said(&near, &["metrics"])?);
        told.push_str(&said(&near, &["config", "show"])?);
        assert!(told.contains("association with b"), "the log is empty: {told}");
        let text = std::fs::read_to_string(&identity).expect("it is there");
        let secrets = secrets(&text);
        assert!(secrets.len() >= 6);
        for secret in secrets {
            assert!(!told.contains(&secret), "a secret was told, written as {secret:?}");
        }
        Ok(())
    });
}

/// The secret parts of an identity file, as logs might write them.
fn secrets(pem: &str) -> Vec<String> {
    let blocks = identity::pem::blocks(pem).expect("an identity file");
    let secret = blocks.iter().filter(|block| block.label.ends_with("KEY"));
    let mut written = Vec::new();
    for block in secret {
        // The key proper is at the end, whatever structure is around it.
        let key = &block.bytes[block.bytes.len() - 32..];
        written.push(key[..8].iter().map(|byte| format!("{byte:02x}")).collect());
        written.push(key[..8].iter().map(|byte| format!("{byte:02X}")).collect());
        written.push(format!("{:?}", &key[..8]).trim_end_matches(']').to_owned());
    }
    let is_base64 = |line: &&str| line.len() >= 16 && !line.contains('-') && !line.contains(' ');
    let bodies = pem.split("-----BEGIN ").filter(|block| block.lines().next().is_some_and(|line| line.contains("KEY")));
    written.extend(bodies.flat_map(str::lines).filter(is_base64).map(str::to_owned));
    written
}

#[test]
fn commands_of_a_dead_daemon_say_so() {
    perform(&["a"], |stage| {
        let mut guarded = stage.guard("a", Plan::default())?;
        guarded.stop(rustix::process::Signal::KILL);
        let answer = guarded.ask(&["status"])?;
        assert!(!answer.status.success() && answer.stderr.contains("ringwall host run"), "{}", answer.stderr);
        assert!(said(&guarded, &["host", "release"])?.contains("given back"));
        assert!(said(&guarded, &["host", "release"])?.contains("not taken over"));
        Ok(())
    });
}
