//! Keys are replaced under load without a loss, and a host that the site has revoked is out, on real interfaces.

use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, Running, process};
use serde_json::Value;

use crate::bad_input::{assert_refused, write};
use crate::stage::{Guarded, Plan, SOON, Site, Stage, perform, span};
use crate::wire::*;

/// Each host sends as many datagrams in a second, in bursts of ten; in the long run half of what both ways can carry.
const RATE_PER_SECOND: u64 = 4000;
/// How long what they can carry is measured.
const CAPACITY_MEASURED_FOR: Duration = Duration::from_secs(10);
/// Within this a daemon has read a new revocation list.
const LIST_READ_MAX: Duration = Duration::from_secs(10);

fn rekeying() -> Plan {
    Plan::default().host("profile = \"lab\"").tail("[lab]\nrekey_every_s = 2\nrekey_after_frames = 5000\n")
}

#[test]
fn keys_are_replaced_every_second_under_load_and_nothing_is_lost() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (near, far) = (stage.guard("a", rekeying())?, stage.guard("b", rekeying())?);
        reach(&a.namespace, b.ip, SOON)?;
        let seconds = span(Duration::from_secs(20), Duration::from_secs(600)).as_secs();
        let rate = match span(Duration::ZERO, CAPACITY_MEASURED_FOR).as_secs() {
            0 => RATE_PER_SECOND,
            measured => capacity(stage, measured)? / 2,
        };
        let before = [overflows(&near)?, overflows(&far)?];
        let receivers = [start_counter(stage, a, "at-a")?, start_counter(stage, b, "at-b")?];
        let senders = [start_sender(stage, a, b, (seconds, rate))?, start_sender(stage, b, a, (seconds, rate))?];
        let mut sent = Vec::new();
        for mut sender in senders {
            sender.await_output("sent ", SOON + Duration::from_secs(2 * seconds))?;
            sent.push(number_after(&sender.output(), "sent "));
        }
        let mut lost = 0;
        for (mut receiver, sent) in receivers.into_iter().zip(sent.into_iter().rev()) {
            // What ports lost never comes; then the whole time is waited for.
            let _some_lost = process::until("every datagram", SOON, || {
                Ok(receiver.output().contains(&format!("distinct {sent}\n")))
            });
            let output = receiver.output();
            receiver.ensure_alive()?;
            let distinct = number_after(output.rsplit_once('\n').map_or(&output, |(lines, _)| lines), "distinct ");
            eprintln!("{distinct} of {sent} datagrams");
            lost += sent - distinct;
            assert!(sent > rate * seconds / 4, "the load was no load: {sent}");
            assert!(!output.contains("twice"), "{output}");
        }
        let lost_at_ports = overflows(&near)? + overflows(&far)? - before[0] - before[1];
        eprintln!("{lost} datagrams lost, {lost_at_ports} frames lost at ports");
        assert!(lost <= lost_at_ports, "the link layers lost some: {lost} datagrams, {lost_at_ports} at ports");
        for guarded in [&near, &far] {
            let peers = guarded.json(&["peers"])?;
            let rollovers = in_use(&peers).and_then(|peer| peer["rollovers"].as_u64());
            assert!(rollovers > Some(seconds / 4), "{peers}");
            assert!(guarded.events()?.contains("new keys with"), "{}", guarded.events()?);
            for word in ["unknown-index", "too-old", "replayed", "bad-tag", "sequence-end", "hold-expired"] {
                assert_eq!(guarded.drops(word)?, 0, "{word} on {}", guarded.host.name);
            }
        }
        Ok(())
    });
}

fn in_use(peers: &Value) -> Option<&Value> {
    peers.as_array()?.iter().find(|peer| peer["state"] == "established")
}

/// Frames that were lost in front of this host's daemon or behind it for want of room: in the card's and the inner device's
/// queues, and in its ports.
fn overflows(guarded: &Guarded) -> Result<u64, Failure> {
    let status = guarded.status()?;
    let lost = ["stack_kernel_drops", "wire_kernel_drops", "stack_send_errors", "wire_send_errors"];
    let at_ports: u64 = lost.iter().filter_map(|name| status["ports"][name].as_u64()).sum();
    let inner = guarded.host.namespace.ip(&format!("-j -s link show dev {INTERFACE}"))?;
    let inner: Value = serde_json::from_str(&inner).map_err(|error| Failure::Unreadable(error.to_string()))?;
    let in_queue = inner[0]["stats64"]["tx"]["dropped"].as_u64().expect("a counter");
    Ok(at_ports + in_queue + guarded.drops("port-full")? + guarded.drops("control-busy")?)
}

fn number_after(text: &str, word: &str) -> u64 {
    let rest = text.rsplit_once(word).map_or("", |(_, rest)| rest);
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap_or_default()
}

fn start_counter(stage: &Stage, host: &Host, name: &str) -> Result<Running, Failure> {
    let script = write(&stage.file(&format!("{name}.py")), COUNT);
    let mut counter = start(stage, host, name, &[&script.display().to_string()])?;
    counter.await_output("ready", SOON)?;
    Ok(counter)
}

/// Datagrams a second that arrive each way, the slower one, when both hosts send as many as they can.
fn capacity(stage: &Stage, seconds: u64) -> Result<u64, Failure> {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let receivers = [start_counter(stage, a, "capacity-at-a")?, start_counter(stage, b, "capacity-at-b")?];
    for mut sender in [start_sender(stage, a, b, (seconds, 0))?, start_sender(stage, b, a, (seconds, 0))?] {
        sender.await_output("sent ", SOON + Duration::from_secs(2 * seconds))?;
    }
    process::pause(SOON)?;
    let arrived = receivers.map(|receiver| number_after(&receiver.output(), "distinct "));
    eprintln!("{arrived:?} datagrams arrived in {seconds} s of all that could be sent");
    Ok(arrived.into_iter().min().unwrap_or_default() / seconds)
}

/// `rate` 0 stands for as many as it can.
fn start_sender(stage: &Stage, from: &Host, to: &Host, (seconds, rate): (u64, u64)) -> Result<Running, Failure> {
    let script = write(&stage.file("send.py"), SEND);
    let arguments = [script.display().to_string(), to.ip.to_string(), seconds.to_string(), rate.to_string()];
    start(stage, from, &format!("from-{}", from.name), &arguments.each_ref().map(String::as_str))
}

fn start(stage: &Stage, host: &Host, name: &str, arguments: &[&str]) -> Result<Running, Failure> {
    let mut command = host.namespace.command("/usr/bin/python3");
    command.arg("-u").args(arguments);
    Running::start(command, &stage.file(&format!("{name}.log")))
}

/// Numbered datagrams in bursts of ten, at the rate that is asked for as far as the machine can.
const SEND: &str = r#"
import socket, struct, sys, time
outlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
outlet.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
seconds, rate = int(sys.argv[2]), int(sys.argv[3])
start, number = time.monotonic(), 0
while time.monotonic() - start < seconds:
    for _ in range(10):
        outlet.sendto(struct.pack("!Q", number) + bytes(400), (sys.argv[1], 4000))
        number += 1
    ahead = start + number / rate - time.monotonic() if rate else 0
    if ahead > 0:
        time.sleep(ahead)
print("sent", number)
"#;

/// Counts distinct numbers, and says so when none came for a moment.
const COUNT: &str = r#"
import socket, struct
inlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inlet.setsockopt(socket.SOL_SOCKET, 33, 1 << 25)
inlet.bind(("0.0.0.0", 4000))
inlet.settimeout(0.5)
print("ready")
seen, told = set(), 0
while True:
    try:
        number = struct.unpack("!Q", inlet.recv(2000)[:8])[0]
        if number in seen:
            print("twice", number)
        seen.add(number)
    except socket.timeout:
        if len(seen) != told:
            told = len(seen)
            print("distinct", told)
"#;

fn following(site: &Site) -> Plan {
    Plan::default().cll(&format!("revocation_list = \"{}\"", site.directory().join("revoked.crl.pem").display()))
}

#[test]
fn a_revoked_host_is_out_within_seconds_until_it_is_issued_again() {
    perform(&["a", "b", "c"], |stage| {
        let (a, b, c) = (stage.host("a"), stage.host("b"), stage.host("c"));
        let near = stage.guard("a", following(&stage.site))?;
        let mut far = stage.guard("b", Plan::default())?;
        let _third = stage.guard("c", following(&stage.site))?;
        for host in [b, c] {
            reach(&a.namespace, host.ip, SOON)?;
        }
        assert_eq!(near.status()?["revoked"], 0);
        stage.site.revoke("b")?;
        near.await_event("the site has revoked the peer's certificate", LIST_READ_MAX)?;
        assert_eq!(near.status()?["revoked"], 1);
        assert!(!pings(&a.namespace, b.ip, "-W 2")? && !pings(&b.namespace, a.ip, "-W 2")?);
        near.await_drops("bad-certificate", 1)?;
        reach(&a.namespace, c.ip, SOON)?;
        stage.site.issue("b", &format!("--mac {} --ip {} --role host", b.mac, b.ip))?;
        far.stop(rustix::process::Signal::TERM);
        far.start(&[])?;
        reach(&b.namespace, a.ip, SOON).map(drop)
    });
}

#[test]
fn a_list_that_cannot_be_believed_is_refused_at_the_start_and_changes_nothing_later() {
    perform(&["a", "b"], |stage| {
        let place = stage.file("list.pem");
        let plan = || Plan::default().cll(&format!("revocation_list = \"{}\"", place.display()));
        let list = place.display().to_string();
        assert_refused(&stage.prepare("a", plan())?, &[&list, "copy `revoked.crl.pem`"])?;
        let other = Site::found(stage.run, "other")?;
        std::fs::copy(other.directory().join("revoked.crl.pem"), &place).expect("copied");
        assert_refused(
            &stage.prepare("a", plan())?,
            &[&list, "from a site of the same name", "copy `revoked.crl.pem`"],
        )?;
        let own = stage.site.directory().join("revoked.crl.pem");
        let first = std::fs::read(&own).expect("there from the start");
        stage.site.issue("gone", "--mac 02:00:00:00:07:07 --ip 10.9.9.9 --role host")?;
        stage.site.revoke("gone")?;
        std::fs::copy(&own, &place).expect("copied");
        let guarded = stage.guard("a", plan())?;
        for (text, why) in [(&b"no list"[..], "no PEM block"), (&first, "older than the list in force")] {
            std::fs::write(&place, text).expect("written");
            guarded.await_event(why, LIST_READ_MAX)?;
            assert_eq!(guarded.status()?["revoked"], 1, "what is known stays known");
        }
        Ok(())
    });
}
