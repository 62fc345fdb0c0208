//! Forged data frames end where the configuration says, are named the same everywhere, and keep nobody from talking.

use std::os::fd::OwnedFd;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::{Mailbox, reach};
use ringwall_lab::net::{Forwarding, Frame, Host, LanPlan, link, process};
use rustix::process::Signal;
use serde_json::Value;
use system::bpf::{Instruction, Kind, Program};
use system::port::{PacketPort, Sender};
use system::xdp::{self, Mode};
use wire::cll::train;
use wire::ethernet::HEADER_LEN;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform_on};
use crate::wire::*;

/// Frames of each kind.
const FORGED: u64 = 200;
/// Payload by which the frame is known.
const MARKED: usize = 700;
/// Where a message has its fields.
const INDEX_AT: usize = HEADER_LEN + 2;
const SPIN_AT: usize = HEADER_LEN + 10;

fn hub() -> LanPlan {
    LanPlan { hosts: vec!["a", "b", "c"], forwarding: Forwarding::Hub, ..LanPlan::default() }
}

/// A frame of `b` to `a` as the wire had it, which `a` has opened.
fn sealed_frame(stage: &Stage) -> Result<Frame, Failure> {
    let (a, b) = (stage.host("a"), stage.host("b"));
    reach(&b.namespace, a.ip, SOON)?;
    let watch = watch_sent(stage, b)?;
    let (from, to) = (Mailbox::open(b, PORT)?, Mailbox::open(a, PORT)?);
    process::until("a sealed datagram", SOON, || {
        from.send(a, PORT, &[0x5a; MARKED]);
        process::pause(Duration::from_millis(50))?;
        Ok(!to.take()?.is_empty())
    })?;
    watch.await_frame("a sealed frame", SOON, |frame| frame.is_between(b.mac, a.mac) && frame.0.len() > MARKED)
}

/// Puts copies of `frame` on the wire in the place of host `c`, some of them as datagrams of a train.
fn send(port: &mut PacketPort, frame: &[u8]) {
    let head = train::head(frame, frame.len() - HEADER_LEN).expect("short");
    let carried = [&head[..], &frame[HEADER_LEN..]].concat();
    for number in 0..FORGED {
        let bytes = if number.is_multiple_of(4) { &carried[..] } else { frame };
        let room = port.sender.reserve(bytes.len()).expect("room");
        room[..bytes.len()].copy_from_slice(bytes);
        port.sender.commit(bytes.len(), bump::Meta::plain());
        port.sender.flush();
    }
}

/// Sends frames with a wrong index, a wrong nonce, a wrong tag under a right nonce, and a repeated one.
fn forge(stage: &Stage, frame: &Frame) -> Outcome {
    let c: &Host = stage.host("c");
    let mut port = c.namespace.enter(|| link::open(INTERFACE))?;
    let changed = |at: usize| {
        let mut frame = frame.0.clone();
        frame[at] ^= 0x40;
        frame
    };
    for bytes in [changed(INDEX_AT), changed(SPIN_AT), changed(frame.0.len() - 1), frame.0.clone()] {
        send(&mut port, &bytes);
    }
    Ok(())
}

fn count(of: &Value, word: &str) -> u64 {
    of[word].as_u64().unwrap_or_else(|| panic!("no {word} in {of}"))
}

/// What `a` says of the forged frames once all have come: drops, and those of the kernel.
fn judged(a: &Guarded) -> Result<(Value, Value), Failure> {
    let mut status = Value::Null;
    process::until("all forged frames", SOON, || {
        status = a.status()?;
        let drops = &status["drops"];
        let words = ["unknown-index", "bad-spin", "replayed", "too-old", "bad-tag"];
        Ok(words.iter().map(|word| count(drops, word)).sum::<u64>() >= 4 * FORGED)
    })?;
    let frames = &status["frames"];
    let taken = count(frames, "received_from_stack") + count(frames, "received_from_wire");
    let fates = ["forwarded_to_wire", "forwarded_to_stack", "answered", "consumed", "held", "dropped"];
    assert_eq!(taken, fates.iter().map(|name| count(frames, name)).sum::<u64>(), "{frames}");
    Ok((status["drops"].clone(), status["layers"].clone()))
}

/// Forges frames against `a` under these layers, with `line` in both configurations; returns what `a` says.
fn under(layers: &'static str, line: &'static str, judge: fn(&Value, &Value)) {
    perform_on(&hub(), |stage| {
        let plan = || Plan::default().cll(&format!("layers = \"{layers}\"")).cll(line);
        let (a, _b) = (stage.guard("a", plan())?, stage.guard("b", plan())?);
        let frame = sealed_frame(stage)?;
        forge(stage, &frame)?;
        let (drops, said) = judged(&a)?;
        assert_eq!(said["in_force"], layers, "{said}");
        judge(&drops, &said["dropped_in_kernel"]);
        reach(&stage.host("a").namespace, stage.host("b").ip, SOON).map(drop)
    });
}

/// A wrong tag with a number that was delivered is a repetition to whoever looks at the number first.
fn by_nonces(drops: &Value) {
    assert_eq!(count(drops, "unknown-index"), FORGED, "{drops}");
    assert_eq!(count(drops, "bad-spin"), FORGED, "{drops}");
    assert_eq!(count(drops, "replayed"), 2 * FORGED, "{drops}");
}

#[test]
fn forged_frames_end_in_the_kernel() {
    under("kernel", "", |drops, in_kernel| {
        by_nonces(drops);
        assert_eq!((count(in_kernel, "bad-spin"), count(in_kernel, "replayed")), (FORGED, 2 * FORGED), "{in_kernel}");
        // Now and then one passes, for it may be a peer's that outlived a restart.
        assert!((FORGED / 2..FORGED).contains(&count(in_kernel, "unknown-index")), "{in_kernel}");
    });
}

/// Where no driver says what was joined, what came in datagrams of a train is left to the daemon: every fourth frame.
#[test]
fn forged_frames_end_where_the_kernel_stands_in_for_the_driver() {
    under("kernel", "kernel_hook = \"xdp-generic\"", |drops, in_kernel| {
        by_nonces(drops);
        let (spin, replayed) = (FORGED / 4 * 3, 2 * FORGED / 4 * 3);
        assert_eq!((count(in_kernel, "bad-spin"), count(in_kernel, "replayed")), (spin, replayed), "{in_kernel}");
    });
}

/// Whether the kernel says that a program is in front of the card of `a`.
fn is_at_card(a: &Guarded) -> Result<bool, Failure> {
    Ok(a.on_card("link show dev CARD")?.contains("prog/xdp"))
}

#[test]
fn forged_frames_end_in_front_of_the_card_where_nothing_is_left_behind() {
    perform_on(&hub(), |stage| {
        let mut a = stage.guard("a", Plan::default().cll("kernel_hook = \"xdp\""))?;
        let _b = stage.guard("b", Plan::default())?;
        let (here, there) = (stage.host("a"), stage.host("b"));
        let frame = sealed_frame(stage)?;
        forge(stage, &frame)?;
        let (drops, said) = judged(&a)?;
        by_nonces(&drops);
        assert_eq!([&said["in_force"], &said["hook"]], ["kernel", "xdp"]);
        assert_eq!(said["reason"], Value::Null);
        let in_kernel = &said["dropped_in_kernel"];
        assert_eq!((count(in_kernel, "bad-spin"), count(in_kernel, "replayed")), (FORGED, 2 * FORGED), "{in_kernel}");
        assert!(is_at_card(&a)?, "{}", a.on_card("link show dev CARD")?);
        let text = process::told(a.command(&["status"]))?;
        assert!(text.contains("layers: kernel, hook xdp\n"), "{text}");
        for (from, to) in [(there, here), (here, there)] {
            let stream = Stream::start(&from.namespace, &to.namespace, to.ip, PORT)?;
            stream.await_progress(1 << 22, SOON)?;
        }

        a.stop(Signal::KILL);
        process::until("an empty card", SOON, || Ok(!is_at_card(&a)?))?;
        a.start(&[])?;
        assert!(is_at_card(&a)?, "{}", a.on_card("link show dev CARD")?);
        reach(&here.namespace, there.ip, SOON).map(drop)
    });
}

/// Puts somebody else's program in front of the card of `host`, as long as the descriptor is open.
pub fn occupy(host: &Host) -> Result<OwnedFd, Failure> {
    const SET: u8 = 0xb7;
    const EXIT: u8 = 0x95;
    let instruction = |operation, operand| Instruction { operation, registers: 0, offset: 0, operand };
    let program = Program::load(Kind::Xdp, "other", &[instruction(SET, 2), instruction(EXIT, 0)], &[])
        .map_err(Failure::io("loading a program"))?;
    host.namespace.enter(|| {
        let index = link::index_of(INTERFACE)?;
        xdp::attach(&program, index, Mode::Native).map_err(|error| Failure::Usage(error.to_string()))
    })
}

#[test]
fn where_another_program_has_the_card_the_socket_serves() {
    perform_on(&hub(), |stage| {
        let _other = occupy(stage.host("a"))?;
        let a = stage.guard("a", Plan::default().cll("kernel_hook = \"xdp\""))?;
        let _b = stage.guard("b", Plan::default())?;
        let frame = sealed_frame(stage)?;
        forge(stage, &frame)?;
        let (drops, said) = judged(&a)?;
        by_nonces(&drops);
        assert_eq!([&said["in_force"], &said["hook"]], ["kernel", "socket"]);
        assert_eq!(count(&said["dropped_in_kernel"], "bad-spin"), FORGED, "{said}");
        let why = "the shield's program cannot stand at the hook xdp: another XDP program is on the card";
        assert_eq!(said["reason"], why, "{said}");
        assert_eq!(a.log().matches(why).count(), 1, "{}", a.log());
        let text = process::told(a.command(&["status"]))?;
        assert!(text.contains(&format!("layers: kernel, hook socket ({why})\n")), "{text}");
        assert!(is_at_card(&a)?, "the other's program stays");
        Ok(())
    });
}

#[test]
fn a_slow_nonce_beside_the_spinning_one_is_understood() {
    under("kernel", "slow_nonce = true", |drops, _| by_nonces(drops));
}

#[test]
fn forged_frames_end_at_the_twin() {
    under("twin", "", |drops, in_kernel| {
        by_nonces(drops);
        assert_eq!(
            in_kernel.as_object().into_iter().flatten().filter(|(_, count)| **count != 0).count(),
            0,
            "{in_kernel}"
        );
    });
}

#[test]
fn forged_frames_end_at_the_tag_where_no_layer_is_wanted() {
    under("none", "", |drops, _| {
        assert_eq!(count(drops, "unknown-index"), FORGED, "{drops}");
        // The number comes before the tag in any case, and that one was delivered.
        assert_eq!((count(drops, "bad-spin"), count(drops, "replayed")), (0, 3 * FORGED), "{drops}");
    });
}
