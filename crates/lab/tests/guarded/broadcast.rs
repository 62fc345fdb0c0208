//! Broadcast and multicast between real stacks and programs: they reach guarded hosts, and nothing plain, forged or recorded
//! does.

use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Forwarding, Frame, Host, LanPlan, Running, pcap, process};
use rustix::process::Signal;
use wire::EtherType;
use wire::cll::PacketType;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, perform_on};
use crate::wire::*;

const MDNS: &str = "224.0.0.251";

/// Joins the group of mDNS and says what comes, on a port that is no system's.
const RECEIVE: &str = r#"
import socket, struct, sys
inlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inlet.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE: what is lost is not to be this program's loss
inlet.bind(("", 5454))
own = socket.inet_aton(sys.argv[1])
inlet.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.0.0.251") + own)
print("ready")
while True:
    payload, (sender, _) = inlet.recvfrom(70000)
    print("got", payload[:40].decode(errors="replace").rstrip("."), "of", len(payload), "from", sender)
"#;

/// Sends a text, filled up to a length, to a group.
const SEND: &str = r#"
import socket, sys
own, group, text, length, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
outlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
outlet.bind((own, 0))
outlet.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
outlet.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
for number in range(count):
    outlet.sendto((text + "." * length)[:max(length, len(text))].encode(), (group, 5454))
"#;

fn listen(stage: &Stage, name: &str) -> Result<Running, Failure> {
    let host = stage.host(name);
    let script = stage.file("hear.py");
    std::fs::write(&script, RECEIVE).map_err(Failure::file("writing", &script))?;
    let mut receiver = launch(stage, host, "python3", &format!("-u {} {}", script.display(), host.ip))?;
    receiver.await_output("ready", SOON)?;
    Ok(receiver)
}

fn say(from: &Host, group: &str, text: &str, length: usize, count: u32) -> Outcome {
    let own = from.ip.to_string();
    python(from, SEND, &[&own, group, text, &length.to_string(), &count.to_string()]).map(drop)
}

fn heard(receiver: &Running, text: &str) -> usize {
    receiver.output().lines().filter(|line| line.starts_with(&format!("got {text} of "))).count()
}

fn await_heard(receiver: &Running, text: &str, count: usize) -> Outcome {
    process::until(&format!("{count} of {text}"), SOON, || Ok(heard(receiver, text) >= count))
}

fn guard(stage: &Stage, name: &str) -> Result<Guarded, Failure> {
    // The default route serves the limited broadcast.
    stage.guard(name, Plan::default())
}

#[test]
fn a_broadcast_and_a_multicast_reach_programs_on_all_guarded_hosts_and_are_signed() {
    perform(&["a", "b", "c"], |stage| {
        let guarded = [guard(stage, "a")?, guard(stage, "b")?, guard(stage, "c")?];
        let receivers = [listen(stage, "b")?, listen(stage, "c")?];
        let watch = watch_sent(stage, stage.host("a"))?;
        let directed = format!("{}.255", stage.host("a").ip.to_string().rsplit_once('.').map_or("", |(net, _)| net));
        for (group, text, length) in
            [(MDNS, "small-multicast", 40), (MDNS, "full-multicast", 1407), (directed.as_str(), "broadcast", 40)]
        {
            say(stage.host("a"), group, text, length, 1)?;
            receivers.iter().try_for_each(|receiver| await_heard(receiver, text, 1))?;
        }
        // More than fits one packet: the stack cuts it into fragments, each of which is signed.
        say(stage.host("a"), MDNS, "fragmented", 5000, 1)?;
        receivers.iter().try_for_each(|receiver| await_heard(receiver, "fragmented", 1))?;
        for receiver in &receivers {
            assert!(receiver.output().contains("got full-multicast of 1407"), "{}", receiver.output());
        }
        let frames = watch.stop()?;
        assert_eq!(frames.iter().find(|frame| is_clear(frame)), None, "in clear");
        assert!(frames.iter().any(|frame| frame.cll_type() == Some(PacketType::GroupFrame)));
        guarded[1].await_event("group-sender", SOON)?;
        Ok(())
    });
}

#[test]
fn a_flood_of_the_stack_shares_signatures_and_arrives() {
    perform(&["a", "b"], |stage| {
        let _guarded = (guard(stage, "a")?, guard(stage, "b")?);
        let receiver = listen(stage, "b")?;
        say(stage.host("a"), MDNS, "first", 40, 1)?;
        await_heard(&receiver, "first", 1)?;
        let watch = watch_sent(stage, stage.host("a"))?;
        say(stage.host("a"), MDNS, "burst", 200, 300)?;
        await_heard(&receiver, "burst", 290)?;
        let frames = watch.stop()?;
        let groups: Vec<_> = frames.iter().filter(|frame| frame.cll_type() == Some(PacketType::GroupFrame)).collect();
        let batched = groups.iter().filter(|frame| frame.0[53] > 1).count();
        assert!(batched > groups.len() / 2, "{batched} of {} group frames share a signature", groups.len());
        Ok(())
    });
}

#[test]
fn nothing_plain_or_forged_of_a_third_host_arrives() {
    perform(&["a", "b", "c"], |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        let guarded = [guard(stage, "a")?, guard(stage, "b")?];
        let receiver = listen(stage, "b")?;
        say(a, MDNS, "honest", 40, 1)?;
        await_heard(&receiver, "honest", 1)?;
        say(c, MDNS, "plain", 40, 3)?;
        guarded[1].await_drops("unsealed", 3)?;
        let watch = watch_sent(stage, a)?;
        say(a, MDNS, "model", 40, 1)?;
        await_heard(&receiver, "model", 1)?;
        await_frames(&watch, "the signed frame", 1, |frame| frame.cll_type() == Some(PacketType::GroupFrame))?;
        let model = watch.stop()?.into_iter().find(|frame| frame.cll_type() == Some(PacketType::GroupFrame));
        let model = model.ok_or(Failure::Unreadable("a signed frame".to_owned()))?;
        let mut forged = model.clone();
        let at = forged.0.windows(5).position(|bytes| bytes == b"model").expect("group frames are not encrypted");
        forged.0[at..at + 5].copy_from_slice(b"liars");
        play(stage, c, &[&forged, &model, &forged, &model].map(Clone::clone))?;
        guarded[1].await_drops("repeated", 3)?;
        // Later the kernel lets the same tag pass, each time after four times as long, and the daemon looks at what is behind it.
        for (frame, reason, turn_after_ms) in [(forged, "group-tag", 1000), (model, "group-replayed", 3500)] {
            process::pause(Duration::from_millis(turn_after_ms))?;
            play(stage, c, &[frame])?;
            guarded[1].await_drops(reason, 1)?;
        }
        say(a, MDNS, "still-honest", 40, 1)?;
        await_heard(&receiver, "still-honest", 1)?;
        assert_eq!((heard(&receiver, "plain"), heard(&receiver, "liars"), heard(&receiver, "model")), (0, 0, 1));
        Ok(())
    });
}

/// Sends these frames from the card of `host`.
fn play(stage: &Stage, host: &Host, frames: &[Frame]) -> Outcome {
    let file = stage.file("play.pcap");
    pcap::write(&file, frames)?;
    let mut command = host.namespace.command("tcpreplay");
    command.args(["--topspeed", "-i", "e0"]).arg(&file);
    process::must(command).map(drop)
}

#[test]
fn a_recording_is_refused_after_a_restart_of_the_receiver_and_of_the_sender() {
    let plan = LanPlan { hosts: vec!["a", "b", "c"], forwarding: Forwarding::Hub, ..LanPlan::default() };
    perform_on(&plan, |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        let (mut near, mut far) = (guard(stage, "a")?, guard(stage, "b")?);
        let receiver = listen(stage, "b")?;
        let watch = watch_sent(stage, a)?;
        say(a, MDNS, "recorded", 40, 1)?;
        await_heard(&receiver, "recorded", 1)?;
        await_frames(&watch, "the signed frame", 1, |frame| frame.cll_type() == Some(PacketType::GroupFrame))?;
        let recording: Vec<_> =
            watch.stop()?.into_iter().filter(|frame| frame.cll_type() == Some(PacketType::GroupFrame)).collect();
        far.stop(Signal::KILL);
        far.start(&[])?;
        play(stage, c, &recording)?;
        far.await_event("group-sender", SOON)?;
        say(a, MDNS, "after-the-receiver", 40, 1)?;
        await_heard(&receiver, "after-the-receiver", 1)?;
        near.stop(Signal::KILL);
        near.start(&[])?;
        process::pause(Duration::from_millis(1500))?;
        say(a, MDNS, "after-the-sender", 40, 1)?;
        await_heard(&receiver, "after-the-sender", 1)?;
        play(stage, c, &recording)?;
        far.await_drops("group-unproved", 1)?;
        assert_eq!(heard(&receiver, "recorded"), 1, "{}", receiver.output());
        Ok(())
    });
}

/// Listens for, or sends, a magic packet: six times ff and the hardware address sixteen times.
const WAKE: &str = r#"
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0842))
wire.bind(("e0", 0x0842))
if sys.argv[1] == "hear":
    print("ready")
    while True:
        frame = wire.recv(2000)
        print("got", len(frame), frame[14:20].hex())
source = wire.getsockname()[4]
wire.send(b"\xff" * 6 + source + b"\x08\x42" + b"\xff" * 6 + bytes.fromhex("020000000077") * 16)
"#;

#[test]
fn wake_on_lan_reaches_guarded_hosts_and_its_pattern_stands_on_the_wire() {
    perform(&["a", "b"], |stage| {
        let _guarded = (guard(stage, "a")?, guard(stage, "b")?);
        let script = stage.file("wake.py");
        std::fs::write(&script, WAKE).map_err(Failure::file("writing", &script))?;
        let mut sleeper = launch(stage, stage.host("b"), "python3", &format!("-u {} hear", script.display()))?;
        sleeper.await_output("ready", SOON)?;
        let watch = watch_sent(stage, stage.host("a"))?;
        python(stage.host("a"), WAKE, &["send"])?;
        sleeper.await_output("got 116 ffffffffffff", SOON)?;
        let pattern = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 0x77].repeat(16)].concat();
        let frames = watch.stop()?;
        let carries = |frame: &&Frame| frame.is(EtherType::CLL) && frame.contains(&pattern);
        assert!(frames.iter().any(|frame| carries(&frame)), "a sleeping card finds it anywhere in the frame");
        assert_eq!(frames.iter().find(|frame| is_clear(frame)), None, "in clear");
        Ok(())
    });
}

#[test]
fn legacy_hosts_hear_and_are_heard_only_by_configuration() {
    perform(&["a", "b", "c"], |stage| {
        let c = stage.host("c");
        let legacy = format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\nbroadcast = true\n", c.ip, c.mac);
        let _open = stage.guard("a", Plan::default().cll("broadcast_to_legacy = true").tail(&legacy))?;
        let closed = stage.guard("b", Plan::default())?;
        let (at_a, at_b, at_c) = (listen(stage, "a")?, listen(stage, "b")?, listen(stage, "c")?);
        say(stage.host("a"), MDNS, "to-all", 40, 1)?;
        await_heard(&at_c, "to-all", 1)?;
        await_heard(&at_b, "to-all", 1)?;
        say(c, MDNS, "a-printer", 40, 1)?;
        await_heard(&at_a, "a-printer", 1)?;
        closed.await_drops("unsealed", 2)?;
        assert_eq!((heard(&at_b, "to-all"), heard(&at_b, "a-printer")), (1, 0));
        Ok(())
    });
}
