//! What stacks send arrives as it was sent: large, fragmented, segmented by the kernel, tunnelled.

use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Frame, Running, lan};

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, ip, perform};
use crate::wire::*;

/// Bytes over TCP that need many super-frames each way.
const BULK: u64 = 32 << 20;

fn guard_both(stage: &Stage) -> Result<(Guarded, Guarded), Failure> {
    let guarded = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
    reach(&stage.host("a").namespace, stage.host("b").ip, SOON)?;
    Ok(guarded)
}

#[test]
fn tcp_arrives_unchanged_both_ways_at_once() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (near, far) = guard_both(stage)?;
        let up = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
        let down = Stream::start(&b.namespace, &a.namespace, a.ip, 5002)?;
        up.await_progress(BULK, SOON)?;
        down.await_progress(BULK, SOON)?;
        for guarded in [near, far] {
            let ports = &guarded.status()?["ports"];
            assert!(ports["stack_received_super_frames"].as_u64() > Some(0), "offloads are not in use: {ports}");
            assert_eq!(ports["wire_send_errors"], 0, "{ports}");
        }
        Ok(())
    });
}

/// Bulk both ways in trains; `offloads` are set on both cards before. Returns the frames that `a` put on the wire.
fn bulk_in_trains(stage: &Stage, offloads: &[&str]) -> Result<Vec<Frame>, Failure> {
    let (a, b) = (stage.host("a"), stage.host("b"));
    for host in [a, b] {
        lan::set_offloads(&host.namespace, lan::INTERFACE, offloads)?;
    }
    let plan = || Plan::default().cll("trains = \"always\"");
    let (near, far) = (stage.guard("a", plan())?, stage.guard("b", plan())?);
    reach(&a.namespace, b.ip, SOON)?;
    let watch = watch_sent(stage, a)?;
    let up = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
    let down = Stream::start(&b.namespace, &a.namespace, a.ip, 5002)?;
    up.await_progress(BULK / 4, SOON)?;
    down.await_progress(BULK / 4, SOON)?;
    for guarded in [&near, &far] {
        let status = guarded.status()?;
        let ports = &status["ports"];
        assert_eq!(status["takeover"]["probes"]["trains"], "yes, always", "{status}");
        assert!(ports["wire_sent_joined"].as_u64() > Some(1000), "few frames rode in trains: {ports}");
        assert!(ports["wire_received_segments"].as_u64() > Some(1000), "few were unloaded: {ports}");
        assert_eq!((&ports["wire_send_errors"], &ports["wire_received_unreadable"]), (&0.into(), &0.into()), "{ports}");
    }
    drop((up, down));
    let frames = watch.stop();
    drop((near, far));
    frames
}

#[test]
fn bulk_rides_in_trains_that_nobody_needs_to_cut() {
    perform(&["a", "b"], |stage| {
        let frames = bulk_in_trains(stage, &["tso", "on", "gso", "on"])?;
        assert_eq!(frames.iter().find(|frame| is_clear(frame)), None, "in clear");
        assert!(frames.iter().any(|frame| frame.0.len() > 8 * 1400), "no train of eight full frames");
        Ok(())
    });
}

/// As on a card that cannot cut UDP: the kernel does it.
#[test]
fn bulk_rides_in_trains_that_the_kernel_cuts() {
    perform(&["a", "b"], |stage| {
        let frames = bulk_in_trains(stage, &["tx", "off", "tso", "off", "gso", "off", "gro", "off"])?;
        assert_eq!(frames.iter().find(|frame| is_clear(frame)), None, "in clear");
        let longest = frames.iter().map(|frame| frame.0.len()).max();
        assert!((Some(1500)..=Some(1514)).contains(&longest), "{longest:?} bytes is no full frame");
        Ok(())
    });
}

#[test]
fn a_host_without_trains_speaks_with_one_that_has_them() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let near = stage.guard("a", Plan::default().cll("trains = \"always\""))?;
        let far = stage.guard("b", Plan::default().cll("trains = \"off\""))?;
        reach(&a.namespace, b.ip, SOON)?;
        let up = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
        let down = Stream::start(&b.namespace, &a.namespace, a.ip, 5002)?;
        up.await_progress(BULK / 4, SOON)?;
        down.await_progress(BULK / 4, SOON)?;
        let (near, far) = (near.status()?, far.status()?);
        assert_eq!((&near["takeover"]["inner_mtu"], &far["takeover"]["inner_mtu"]), (&1435.into(), &1463.into()));
        assert!(far["ports"]["wire_received_segments"].as_u64() > Some(1000), "{far}");
        assert_eq!(far["ports"]["wire_sent_joined"], 0, "{far}");
        Ok(())
    });
}

#[test]
fn datagrams_larger_than_a_packet_arrive_whole() {
    perform(&["a", "b"], |stage| {
        let _guarded = guard_both(stage)?;
        let receiver = start_receiver(stage)?;
        python(stage.host("a"), SEND_LARGE, &[&stage.host("b").ip.to_string()])?;
        await_report(receiver, "received 20 of 60000")
    });
}

#[test]
fn datagrams_that_the_kernel_segments_arrive_as_they_were() {
    perform(&["a", "b"], |stage| {
        let _guarded = guard_both(stage)?;
        let receiver = start_receiver(stage)?;
        let sent = python(stage.host("a"), SEND_SEGMENTED, &[&stage.host("b").ip.to_string()])?;
        if sent.contains("unsupported") {
            eprintln!("SKIPPED datagrams_that_the_kernel_segments_arrive_as_they_were: this kernel has no UDP_SEGMENT");
            return Ok(());
        }
        // Forty super-datagrams of sixteen segments each.
        await_report(receiver, "received 640 of 1300")
    });
}

fn start_receiver(stage: &Stage) -> Result<Running, Failure> {
    let b = stage.host("b");
    let script = stage.file("receive.py");
    std::fs::write(&script, RECEIVE).expect("a writable directory");
    let mut receiver = launch(stage, b, "python3", &format!("-u {}", script.display()))?;
    receiver.await_output("ready", SOON)?;
    Ok(receiver)
}

/// Waits for the receiver's report. Of a burst a socket may lose some, not all: what counts is that all of one length
/// come, and unchanged.
fn await_report(mut receiver: Running, wanted: &str) -> Outcome {
    receiver
        .await_output(wanted, SOON)
        .map_err(|failure| Failure::Unreadable(format!("{failure}: {}", receiver.output())))?;
    assert!(!receiver.output().contains("damaged"), "{}", receiver.output());
    Ok(())
}

/// Counts datagrams by length and checks their content.
const RECEIVE: &str = r#"
import socket, collections
inlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inlet.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE: what is lost is not to be this program's loss
inlet.bind(("0.0.0.0", 4000))
print("ready")
seen = collections.Counter()
while True:
    payload = inlet.recv(70000)
    if any(byte != payload[0] for byte in payload[::97]) or payload[-1] != payload[0]:
        print("damaged", payload[:32])
    seen[len(payload)] += 1
    print("received", seen[len(payload)], "of", len(payload))
"#;

const SEND_LARGE: &str = r#"
import socket, sys, time
outlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(20):
    outlet.sendto(bytes([number + 1]) * 60000, (sys.argv[1], 4000))
    time.sleep(0.02)
"#;

const SEND_SEGMENTED: &str = r#"
import socket, sys, time
outlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    outlet.setsockopt(17, 103, 1300)
except OSError:
    print("unsupported")
    sys.exit()
for number in range(40):
    payload = b"".join(bytes([16 * number % 240 + part + 1]) * 1300 for part in range(16))
    outlet.sendto(payload, (sys.argv[1], 4000))
    time.sleep(0.01)
"#;

#[test]
fn tcp_through_a_tunnel_over_the_guarded_interface_is_not_black_holed() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let _guarded = guard_both(stage)?;
        for (host, other, inner) in [(a, b, 1), (b, a, 2)] {
            let add = format!("link add vx0 type vxlan id 5 remote {} local {} dstport 4789 dev e0", other.ip, host.ip);
            if let Err(failure) = host.namespace.ip(&add) {
                eprintln!("SKIPPED tcp_through_a_tunnel_over_the_guarded_interface_is_not_black_holed: {failure}");
                return Ok(());
            }
            host.namespace.ip(&format!("address add 10.88.0.{inner}/24 dev vx0"))?;
            host.namespace.ip("link set vx0 up")?;
        }
        let far = ip("10.88.0.2");
        reach(&a.namespace, far, SOON)?;
        let up = Stream::start(&a.namespace, &b.namespace, far, 5001)?;
        up.await_progress(BULK, SOON)?;
        drop(up);
        let down = Stream::start(&b.namespace, &a.namespace, ip("10.88.0.1"), 5002)?;
        down.await_progress(BULK, SOON)
    });
}

#[test]
fn a_tagged_frame_in_clear_is_dropped_by_name_both_ways() {
    perform(&["a", "c"], |stage| {
        let (a, c) = (stage.host("a"), stage.host("c"));
        // Only a legacy host is sent anything in clear.
        let legacy = format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\n", c.ip, c.mac);
        let guarded = stage.guard("a", Plan::default().tail(&legacy))?;
        let (sent, stack) = (watch_sent(stage, a)?, watch_stack(stage, a)?);
        python(a, SEND_TAGGED, &[&c.mac.to_string()])?;
        guarded.await_drops("vlan-tagged", 1)?;
        python(c, SEND_TAGGED, &[&a.mac.to_string()])?;
        guarded.await_drops("vlan-tagged", 2)?;
        assert_eq!((sent.stop()?, stack.stop()?), (Vec::new(), Vec::new()));
        Ok(())
    });
}

/// Sends a frame with the tag of VLAN 7 and an IPv4 packet in it.
const SEND_TAGGED: &str = r#"
import socket, sys
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("e0", 0))
source = wire.getsockname()[4]
packet = bytes.fromhex("45000028000100004011000001020304010203050007000700140000") + bytes(12)
wire.send(bytes.fromhex(sys.argv[1].replace(":", "")) + source + bytes.fromhex("810000070800") + packet)
"#;
