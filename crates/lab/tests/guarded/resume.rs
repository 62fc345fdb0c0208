//! Associations are resumed after a host was killed: in one exchange, with one signature, and
//! nothing but tickets on disk.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::process;
use ringwall_lab::net::talk::reach;
use rustix::process::Signal;

use crate::stage::{Guarded, Plan, SOON, perform};

/// A ticket is given within two sweeps and written within two turns of the supervisor.
const TICKETS_WRITTEN: Duration = Duration::from_secs(10);

pub fn resuming() -> Plan {
    Plan::default().cll("resumption = true")
}

/// What a daemon leaves that was killed while it wrote a ticket.
const BEGUN: &str = ".new-begun";

/// Where the daemon keeps tickets.
fn tickets_of(guarded: &Guarded) -> PathBuf {
    guarded.directory.join("state").join(format!("{}.tickets", INTERFACE))
}

/// Files of tickets that have their names; none if there is no directory. A file that is still being written has another
/// name, and a daemon that is killed meanwhile has not kept it.
fn ticket_files(guarded: &Guarded) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(tickets_of(guarded)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|file| file.extension().is_some_and(|end| end == "pem")).collect()
}

/// What a host keeps of its own tickets: the keys that it issues them with, and which were used.
const OWN_FILES: [&str; 2] = ["keys.pem", "spent.pem"];

/// What is in the file of the peer's ticket; empty if there is none.
fn ticket(guarded: &Guarded) -> String {
    let files = ticket_files(guarded).into_iter().filter(|file| !OWN_FILES.iter().any(|own| file.ends_with(own)));
    files.map(|file| std::fs::read_to_string(file).unwrap_or_default()).collect()
}

/// Waits for its own key and a ticket of the peer that is another than `before`.
pub fn await_ticket(guarded: &Guarded, before: &str) -> Result<String, Failure> {
    process::until("a new ticket and a key on disk", TICKETS_WRITTEN, || {
        let ticket = ticket(guarded);
        Ok(tickets_of(guarded).join("keys.pem").exists() && !ticket.is_empty() && ticket != before)
    })?;
    Ok(ticket(guarded))
}

fn is_resumed(guarded: &Guarded) -> Result<bool, Failure> {
    let peers = guarded.json(&["peers"])?;
    let in_use = peers.as_array().and_then(|peers| peers.iter().find(|peer| peer["state"] == "established"));
    Ok(in_use.is_some_and(|peer| peer["resumed"] == true))
}

#[test]
fn a_killed_host_is_back_in_one_exchange_whichever_it_is_and_both_are() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let mut guarded = [stage.guard("a", resuming())?, stage.guard("b", resuming())?];
        reach(&a.namespace, b.ip, SOON)?;
        let mut tickets = [String::new(), String::new()];
        for killed in [&[0][..], &[1], &[0, 1]] {
            for (one, before) in guarded.iter().zip(&mut tickets) {
                *before = await_ticket(one, before)?;
            }
            killed.iter().for_each(|host| guarded[*host].stop(Signal::KILL));
            killed.iter().try_for_each(|host| guarded[*host].start(&[]))?;
            let time = reach(&a.namespace, b.ip, SOON)?;
            eprintln!("{killed:?} killed: back after {time:?}");
            for one in &guarded {
                assert!(is_resumed(one)?, "{} after {killed:?}: {}", one.host.name, one.events()?);
            }
            for host in killed {
                let events = guarded[*host].events()?;
                assert!(events.contains("resumed") && !events.contains("challenged"), "{events}");
                assert_eq!(guarded[*host].drops("ticket-unknown")?, 0, "{events}");
            }
        }
        Ok(())
    });
}

#[test]
fn what_lies_on_disk_is_for_root_only_and_goes_when_tickets_are_switched_off() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (mut near, mut far) = (stage.guard("a", resuming())?, stage.guard("b", resuming())?);
        reach(&a.namespace, b.ip, SOON)?;
        await_ticket(&near, "")?;
        for file in ticket_files(&near) {
            assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600, "{}", file.display());
        }
        // Damage costs a handshake.
        await_ticket(&far, "")?;
        for guarded in [&mut near, &mut far] {
            guarded.stop(Signal::TERM);
            for file in ticket_files(guarded) {
                std::fs::write(&file, "no ticket\n").expect("written");
            }
            std::fs::write(tickets_of(guarded).join(BEGUN), "half a tick").expect("written");
            guarded.start(&[])?;
            assert!(!tickets_of(guarded).join(BEGUN).exists());
        }
        reach(&a.namespace, b.ip, SOON)?;
        assert!(!is_resumed(&near)?);
        await_ticket(&near, "")?;
        near.stop(Signal::TERM);
        std::fs::write(tickets_of(&near).join(BEGUN), "half a tick").expect("written");
        let text = std::fs::read_to_string(&near.config).expect("a configuration");
        std::fs::write(&near.config, text.replace("resumption = true", "resumption = false")).expect("written");
        near.start(&[])?;
        assert!(!tickets_of(&near).exists());
        reach(&a.namespace, b.ip, SOON).map(drop)
    });
}
