//! Forged messages of signed ARP end where the configuration says, are named the same everywhere, and keep nobody from being found.

use std::net::Ipv4Addr;
use std::time::Duration;

use bump::Generator;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, link, process};
use serde_json::Value;
use system::port::Sender;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::sarp::data::Question;
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

use crate::sarp::{resolve_anew, sign};
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, ip, perform};

/// Messages of each kind.
const FORGED: u64 = 400;
/// Messages that are sent without a pause.
const TOGETHER: usize = 50;
/// An address that nobody has and nobody asks about.
const NOBODY: &str = "10.66.0.77";

/// A message of host `m`, from whose card it comes.
fn frame(stage: &Stage, to: &Host, message: &[u8]) -> Vec<u8> {
    let header = Header { destination: to.mac, source: stage.host("m").mac, ethertype: EtherType::ARP };
    [&header.emit()[..], message, &[0; 20]].concat()
}

/// An answer with something of a signature.
fn answer(stage: &Stage, to: &Host, about: Ipv4Addr) -> Vec<u8> {
    let m = stage.host("m");
    let arp =
        Arp { operation: Operation::Reply, sender_mac: m.mac, sender_ip: about, target_mac: to.mac, target_ip: to.ip };
    let message = Message { arp, kind: Kind::Resolution, seconds: 0, data: &[], signature: &[] };
    frame(stage, to, &seal(message.signed_bytes(), &[2; 64]))
}

/// A request of `kind` by somebody who holds no key of the site.
fn request(stage: &Stage, to: &Host, kind: Kind, random: &mut Generator) -> Vec<u8> {
    let m = stage.host("m");
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: m.mac,
        sender_ip: m.ip,
        target_mac: MacAddress::ZERO,
        target_ip: to.ip,
    };
    let question = Question { host: u64::from_be_bytes(random.bytes()) >> 1, nonce: random.bytes() };
    // Of a fetch, how much is there already.
    let rest: &[u8] = if kind == Kind::Fetch { &[0, 0] } else { &[] };
    let data = [&question.emit()[..], rest].concat();
    let message = Message { arp, kind, seconds: 0, data: &data, signature: &[] };
    frame(stage, to, &seal(message.signed_bytes(), &random.bytes::<24>()))
}

/// Sends them no faster than a host's ring holds them: each is to be judged, by the kernel or the daemon.
fn send(stage: &Stage, frames: impl Iterator<Item = Vec<u8>>) -> Outcome {
    let mut port = stage.host("m").namespace.enter(|| link::open(INTERFACE))?;
    for (number, bytes) in frames.enumerate() {
        if number % TOGETHER == TOGETHER - 1 {
            process::pause(Duration::from_millis(10))?;
        }
        let room = port.sender.reserve(bytes.len()).expect("room");
        room[..bytes.len()].copy_from_slice(&bytes);
        port.sender.commit(bytes.len(), bump::Meta::plain());
        port.sender.flush();
    }
    Ok(())
}

fn count(of: &Value, word: &str) -> u64 {
    of[word].as_u64().unwrap_or_default()
}

/// How many of [`FORGED`] messages `guarded` dropped in the kernel, by `word`, after it dropped all; its books are right. Questions of the
/// others for each other are dropped by the same word as some of them.
fn in_kernel(guarded: &Guarded, word: &str) -> Result<u64, Failure> {
    process::until(&format!("all for {word}"), SOON, || Ok(count(&guarded.status()?["drops"], word) >= FORGED))?;
    let status = guarded.status()?;
    let frames = &status["frames"];
    let taken = count(frames, "received_from_stack") + count(frames, "received_from_wire");
    let fates = ["forwarded_to_wire", "forwarded_to_stack", "answered", "consumed", "held", "dropped"];
    assert_eq!(taken, fates.iter().map(|name| count(frames, name)).sum::<u64>(), "{frames}");
    Ok(count(&status["layers"]["dropped_in_kernel"], word).min(FORGED))
}

/// Forges messages to a distributor and to a host that have `line` in their configuration. How many of them ended in the kernel:
/// requests, applications, requests to the wrong host, answers.
fn under(line: &'static str, hook: Option<&'static str>, judge: fn([u64; 4])) {
    perform(&["k", "a", "b", "m"], |stage| {
        let [k, a, b] = ["k", "a", "b"].map(|name| stage.host(name));
        let distributor = sign(stage, "k", Plan::distributor().sarp_line(line))?;
        let (near, _far) = (sign(stage, "a", Plan::sarp().sarp_line(line))?, sign(stage, "b", Plan::sarp())?);
        for guarded in [&distributor, &near] {
            let layers = &guarded.status()?["layers"];
            assert_eq!(layers["in_force"], if hook.is_some() { "kernel" } else { "twin" }, "{layers}");
            assert_eq!(layers["hook"].as_str(), hook, "{layers}");
        }
        let mut random = Generator::from_seed([1; 32]);
        for (to, kind) in [(k, Kind::KeyRequest), (k, Kind::Fetch), (a, Kind::KeyRequest)] {
            send(stage, (0..FORGED).map(|_| request(stage, to, kind, &mut random)))?;
        }
        send(stage, (0..FORGED).map(|_| answer(stage, a, ip(NOBODY))))?;
        judge([
            in_kernel(&distributor, "sarp-request-check")?,
            in_kernel(&distributor, "sarp-enrol-number")?,
            in_kernel(&near, "arp-target")?,
            in_kernel(&near, "sarp-unasked")?,
        ]);
        // Nobody asked for this either, and it is reported.
        process::pause(Duration::from_millis(20))?;
        send(stage, std::iter::once(answer(stage, a, a.ip)))?;
        near.await_event("claims our address", SOON)?;
        resolve_anew(a, b)?;
        resolve_anew(b, a)?;
        reach(&a.namespace, k.ip, SOON).map(drop)
    });
}

/// Of answers that nobody asked for one passes in a millisecond.
fn all_but_a_few(ended: [u64; 4]) {
    assert_eq!(ended[..3], [FORGED; 3]);
    assert!((1..FORGED).contains(&ended[3]), "{ended:?}");
}

#[test]
fn forged_messages_end_in_the_kernel() {
    under("", Some("socket"), all_but_a_few);
}

#[test]
fn forged_messages_end_in_front_of_the_card() {
    under("kernel_hook = \"xdp\"", Some("xdp"), all_but_a_few);
}

#[test]
fn forged_messages_end_in_the_daemon_where_that_is_wanted() {
    under("kernel = false", None, |ended| assert_eq!(ended, [0; 4]));
}
