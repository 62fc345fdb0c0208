//! An attack is told to a person: who, what, in whose name, against whom; and whoever only talks is no attacker.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Frame, Host, link, process};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use wire::EtherType;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;

use crate::sarp::{resolve_anew, sign};
use crate::stage::{Guarded, Outcome, Plan, Stage, perform};
use crate::wire::answers_arp;

/// How long the way to a file, a socket and a program may take on a loaded machine.
const TOLD: Duration = Duration::from_secs(60);
/// Forged answers of one attack.
const FORGED: u64 = 200;

/// Has `liar` tell `victim` by ARP that it has the address of `owner`.
pub fn spoof(liar: &Host, victim: &Host, owner: &Host) -> Outcome {
    let arp = Arp {
        operation: Operation::Reply,
        sender_mac: liar.mac,
        sender_ip: owner.ip,
        target_mac: victim.mac,
        target_ip: victim.ip,
    };
    let header = Header { destination: victim.mac, source: liar.mac, ethertype: EtherType::ARP };
    let mut bytes = [header.emit().as_slice(), &arp.emit()].concat();
    bytes.resize(60, 0);
    let mut port = liar.namespace.enter(|| link::open_to_send(INTERFACE))?;
    for _ in 0..FORGED {
        link::put(&mut port, &Frame(bytes.clone()));
        system::port::Sender::flush(&mut port.sender);
    }
    Ok(())
}

/// Waits until `guarded` tells of so many attacks.
fn await_attacks(guarded: &Guarded, count: usize) -> Result<Value, Failure> {
    let mut status = Value::Null;
    process::until(&format!("{count} attacks on {}", guarded.host.name), TOLD, || {
        status = guarded.status()?;
        Ok(status["attacks"].as_array().is_some_and(|attacks| attacks.len() >= count))
    })?;
    assert_eq!(status["attacks"].as_array().map(Vec::len), Some(count), "{}", status["attacks"]);
    Ok(status)
}

/// The attack is that of `liar` in the name of `owner`, and nobody is advised to enrol him.
fn assert_told(guarded: &Guarded, liar: &Host, owner: &Host) -> Outcome {
    let status = await_attacks(guarded, 1)?;
    let attack = &status["attacks"][0];
    assert_eq!((&attack["kind"], &attack["phase"]), (&"arp-spoofing".into(), &"opened".into()), "{attack}");
    assert_eq!(attack["source"]["mac"], liar.mac.to_string(), "{attack}");
    assert_eq!(attack["claimed"]["ip"], owner.ip.to_string(), "{attack}");
    assert_eq!(attack["claimed"]["mac"], owner.mac.to_string(), "{attack}");
    assert_eq!(attack["target"]["mac"], guarded.host.mac.to_string(), "{attack}");
    let answer = guarded.ask(&["status"])?;
    assert_eq!(answer.status.code(), Some(1), "{}", answer.stdout);
    let first = answer.stdout.lines().next().unwrap_or_default();
    let liar = liar.mac.to_string();
    assert!(first.starts_with("WARNING e0: ATTACKED (arp-spoofing): ") && first.contains(&liar), "{first}");
    assert!(first.contains("disconnect") && !first.to_lowercase().contains("enrol"), "{first}");
    guarded.await_event("arp-spoofing", TOLD)
}

fn assert_nobody_attacks(guarded: &Guarded) -> Outcome {
    let status = guarded.status()?;
    assert_eq!((&status["attacks_opened"], &status["attacks"]), (&0.into(), &Value::Array(Vec::new())), "{status}");
    Ok(())
}

/// Waits until the file has a line with all of these words.
fn await_line(file: &Path, words: &[&str]) -> Outcome {
    process::until(&format!("{words:?} in {}", file.display()), TOLD, || {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        Ok(text.lines().any(|line| words.iter().all(|word| line.contains(word))))
    })
}

/// A host that tells of attacks in every way that a test can hear.
struct Told {
    guarded: Guarded,
    eve: PathBuf,
    mail: PathBuf,
    syslog: UnixDatagram,
}

fn guard_and_listen(stage: &Stage) -> Result<Told, Failure> {
    let [eve, mail, socket] = ["eve.json", "mail", "log.sock"].map(|name| stage.file(name));
    let syslog = UnixDatagram::bind(&socket).map_err(Failure::io("listening as syslog"))?;
    syslog.set_read_timeout(Some(TOLD)).map_err(Failure::io("listening as syslog"))?;
    let (eve_name, mail_name, socket) = (eve.display(), mail.display(), socket.display());
    let records = format!(
        "[records]\neve_file = \"{eve_name}\"\nsyslog = \"{socket}\"\n\
         command = \"echo $RINGWALL_KIND $RINGWALL_SOURCE_MAC >> {mail_name}\"\n"
    );
    // Where the card stays, what is in clear is counted in front of it, and no frame of it is kept.
    let guarded = stage.guard("a", Plan::way("namespace").tail(&records))?;
    Ok(Told { guarded, eve, mail, syslog })
}

#[test]
fn a_forged_address_is_one_attack_told_everywhere_and_a_hangup_cuts_nothing() {
    perform(&["a", "b", "x"], |stage| {
        let [a, b, x] = ["a", "b", "x"].map(|name| stage.host(name));
        let mut told = guard_and_listen(stage)?;
        let _far = stage.guard("b", Plan::way("namespace"))?;
        reach(&a.namespace, b.ip, TOLD)?;
        // A stranger asks, and is not answered.
        assert!(!answers_arp(x, a.ip)?);
        told.guarded.await_drops("plain-arp", 1)?;
        assert_nobody_attacks(&told.guarded)?;

        spoof(x, a, b)?;
        assert_told(&told.guarded, x, b)?;
        let liar = x.mac.to_string();
        await_line(&told.eve, &["\"event_type\":\"alert\"", &liar, "claimed_name=b"])?;
        await_line(&told.mail, &["arp-spoofing", &liar])?;
        let mut message = [0; 4096];
        let len = told.syslog.recv(&mut message).map_err(Failure::io("hearing as syslog"))?;
        let message = String::from_utf8_lossy(&message[..len]);
        assert!(message.starts_with("<84>1 ") && message.contains(&liar), "{message}");
        hang_up(&mut told, [a, b, x])
    });
}

/// Files are opened anew, the configuration is read again, and the network goes on.
fn hang_up(told: &mut Told, [a, b, x]: [&Host; 3]) -> Outcome {
    let moved = told.eve.with_extension("old");
    std::fs::rename(&told.eve, &moved).map_err(Failure::file("moving", &told.eve))?;
    let config = &told.guarded.config;
    let text = std::fs::read_to_string(config).map_err(Failure::file("reading", config))?;
    let text = text.replace("[cll]\n", "[cll]\nidle_s = 1200\n");
    std::fs::write(config, text).map_err(Failure::file("writing", config))?;
    kill_process(told.guarded.pid(), Signal::HUP).expect("the daemon runs");
    process::until("what needs a restart", TOLD, || {
        Ok(told.guarded.log().contains("next start of the daemon: cll.idle_s"))
    })?;
    told.guarded.ensure_alive()?;
    reach(&a.namespace, b.ip, TOLD)?;
    // Another claim is another attack.
    spoof(x, a, a)?;
    await_line(&told.eve, &["\"event_type\":\"alert\"", &x.mac.to_string(), "claimed_name=a"])
}

#[test]
fn a_forged_answer_to_a_host_that_signs_is_one_attack() {
    perform(&["k", "a", "b", "x"], |stage| {
        let [a, b, x] = ["a", "b", "x"].map(|name| stage.host(name));
        let mut distributor = sign(stage, "k", Plan::distributor())?;
        let mut near = sign(stage, "a", Plan::sarp())?;
        let _far = sign(stage, "b", Plan::sarp())?;
        reach(&a.namespace, b.ip, TOLD)?;
        // A plain host is asked in clear, answers so, and is not believed.
        assert!(!crate::wire::pings(&a.namespace, x.ip, "-W 1")?);
        assert_nobody_attacks(&near)?;
        spoof(x, a, b)?;
        assert_told(&near, x, b)?;
        for guarded in [&mut near, &mut distributor] {
            kill_process(guarded.pid(), Signal::HUP).expect("the daemon runs");
            process::until("the configuration that was read again", TOLD, || {
                Ok(guarded.log().contains("read again: "))
            })?;
            guarded.ensure_alive()?;
        }
        resolve_anew(a, b)
    });
}
