//! The way in place, on real interfaces.

use std::os::fd::OwnedFd;

use serde_json::Value;

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with};

use bump::Batch as _;

use super::super::state::{Below, Phase};
use super::super::tests::room::{PEER, Room, Spoiler, assert_same, room};
use super::super::{Fence, Taken, Way, not_opened};
use super::hook::Side;
use super::{Names, below};
use crate::bpf::{Kind, Program};
use crate::ingress::{EXIT, SET, instruction};
use crate::netlink::Connection;
use crate::port::{PacketOptions, PacketPort, Receiver as _};
use crate::xdp;

/// A sealed frame to all, and one in clear to all.
const SEALED: &str = "bytes([255]*6+[2,0,0,0,0,2,7,208]+[0]*46)";
const IN_CLEAR: &str = "bytes([255]*6+[2,0,0,0,0,2,8,6]+[7]*46)";

fn take(room: &Room) -> Taken {
    room.take(Way::InPlace).expect("it works here")
}

/// Sends a frame by a packet socket, with a mark if that is not zero; what came of it.
fn send(room: &Room, interface: &str, mark: u32, frame: &str) -> Result<String, String> {
    let marked = format!("s.setsockopt(socket.SOL_SOCKET,36,{mark});");
    room.run_python(&format!(
        "import socket;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,0);{}s.bind(('{interface}',0));s.send({frame})",
        if mark == 0 { "" } else { &marked }
    ))
}

fn send_from_peer(room: &Room, frame: &str) {
    flood_from_peer(room, frame, 1);
}

fn flood_from_peer(room: &Room, frame: &str, times: usize) {
    let script = format!(
        "import socket;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,0);s.bind(('peer0',0))\n\
         for _ in range({times}): s.send({frame})"
    );
    room.at_peer(|| {
        let sent = std::process::Command::new("python3").args(["-c", &script]).status().expect("python3 runs");
        assert!(sent.success());
    });
}

fn listening(room: &Room) -> OwnedFd {
    room.at_host(|| {
        socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, Some(eth::ALL)).expect("root may")
    })
}

/// EtherTypes of what a socket has heard of the other host.
fn heard(socket: &OwnedFd) -> Vec<u16> {
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut frame = [0; 2048];
    let mut found = Vec::new();
    while recv(socket, &mut frame[..], RecvFlags::DONTWAIT).is_ok() {
        if frame[6..12] == [2, 0, 0, 0, 0, 2] {
            found.push(u16::from_be_bytes([frame[12], frame[13]]));
        }
    }
    found
}

#[test]
fn nothing_of_the_card_changes_and_nothing_is_left() {
    let room = room!();
    let before = room.picture();
    let rules = room.in_host("nft list ruleset");
    let taken = take(&room);
    assert_eq!((taken.way, taken.wire_name.as_str(), taken.warnings.len()), (Way::InPlace, "eth0", 0));
    let mut during = room.picture();
    // What `ip` says of the guard.
    for (_, answer) in &mut during {
        answer.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut).for_each(|device| {
            device.remove("xdp");
        });
    }
    assert_same(&before, &during);
    drop(taken);
    let report = room.release("eth0").expect("nothing holds it");
    assert!(report.nic_found && report.warnings.is_empty());
    assert_same(&before, &room.picture());
    assert_eq!(room.in_host("nft list ruleset"), rules);
    assert!(!room.has_leftovers());
    assert!(!room.in_host("ip link").contains("rw."));
}

#[test]
fn what_is_not_sealed_reaches_no_socket_and_nothing_leaves_with_and_without_a_daemon() {
    let room = room!();
    room.introduce();
    assert!(room.hears_udp() && room.answers_arp(), "the test itself must work");
    let ears = listening(&room);
    send_from_peer(&room, IN_CLEAR);
    let found = heard(&ears);
    assert!(found.contains(&0x0806), "the test itself must work: {found:x?}");
    let taken = take(&room);
    let fence = taken.fence.as_ref().expect("it stands");
    let check = || {
        heard(&ears);
        // More than are handed to the daemon.
        flood_from_peer(&room, IN_CLEAR, 100);
        send_from_peer(&room, SEALED);
        assert_eq!(heard(&ears), [0x07d0]);
        let frames = room.frames_at_peer();
        assert!(!room.hears_udp() && !room.answers_arp());
        room.speak();
        assert_eq!(room.frames_at_peer(), frames, "a frame left in clear");
    };
    check();
    assert!(fence.arp_dropped() > 0);
    drop(taken);
    check();
    let again = take(&room);
    assert!(again.adopted);
    check();
    assert!(again.fence.as_ref().expect("it stands").arp_dropped() > 0);
}

/// A segment of TCP whose kernel cuts it into many, behind a vnet header that says so.
const SUPER_FRAME: &str = "bytes([1,1,54,0,168,5,34,0,16,0]+[255]*6+[2,0,0,0,0,2,8,0,69,0,234,96]+[0]*4+[64,6,0,0]\
                           +[10,9,0,2,10,9,0,1]+[0]*12+[80]+[0]*7+[7]*59960)";
const SUPER_FRAME_LEN: usize = 14 + 60_000;

fn send_super_frame_from_peer(room: &Room) {
    let script = format!(
        "import socket;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,0);s.setsockopt(263,15,1);\
         s.bind(('peer0',0));s.send({SUPER_FRAME})"
    );
    room.at_peer(|| {
        let sent = std::process::Command::new("python3").args(["-c", &script]).status().expect("python3 runs");
        assert!(sent.success());
    });
}

/// The port as the daemon has it.
fn wire_port(room: &Room, taken: &Taken) -> PacketPort {
    let options = PacketOptions { filter: Some(not_opened(None)), ..PacketOptions::new(taken.wire_index) };
    let mut port = room.at_host(|| PacketPort::open(&options).expect("root may"));
    port.receive_also(taken.fence.as_ref().and_then(Fence::clear).expect("it stands"));
    port
}

/// EtherType, length, and whether tag and cuts are told, of what the daemon reads of the other
/// host.
fn read(port: &mut PacketPort) -> Vec<(u16, usize, bool, bool)> {
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut found = Vec::new();
    while port.receiver.fill().expect("it stands") {
        while let Some(frame) = port.receiver.next_frame() {
            if frame.bytes[6..12] == [2, 0, 0, 0, 0, 2] {
                let ethertype = u16::from_be_bytes([frame.bytes[12], frame.bytes[13]]);
                found.push((ethertype, frame.bytes.len(), frame.meta.vlan.is_some(), frame.meta.gso.is_some()));
            }
        }
    }
    found.sort_unstable();
    found
}

/// The socket hears all devices of the namespace, that TAP too, and was opened before.
#[test]
fn what_is_in_clear_is_heard_by_the_daemon_alone_whether_all_of_it_or_a_sample() {
    let room = room!();
    room.in_host("ip addr flush dev eth0");
    let ears = listening(&room);
    let taken = take(&room);
    let fence = taken.fence.clone().expect("it stands");
    let mut port = wire_port(&room, &taken);
    for open in [false, true] {
        fence.set_open(open);
        heard(&ears);
        read(&mut port);
        send_from_peer(&room, IN_CLEAR);
        send_from_peer(&room, SEALED);
        send_from_peer(&room, TAGGED);
        send_super_frame_from_peer(&room);
        assert_eq!(heard(&ears), [0x07d0], "open: {open}");
        let tagged = (0x8100, 64, true, false);
        let joined = (0x0800, SUPER_FRAME_LEN, false, true);
        assert_eq!(read(&mut port), [(0x07d0, 60, false, false), joined, (0x0806, 60, false, false), tagged]);
    }
    // What this host itself sends by the TAP is not the wire's.
    assert!(room.in_host("ip link show dev rw1.eth0").contains("NOARP"));
    send(&room, "rw1.eth0", 0, IN_CLEAR).expect_err("refused");
    assert_eq!(read(&mut port), []);
    drop((port, fence, taken));
    assert!(!room.in_host("ip link").contains("rw1."), "it goes with the daemon");
    send_from_peer(&room, IN_CLEAR);
    assert_eq!(heard(&ears), Vec::<u16>::new());
}

#[test]
fn frames_of_the_stack_come_to_the_tap_and_what_it_is_given_comes_to_the_stack() {
    let room = room!();
    let taken = take(&room);
    let tap = taken.queue().expect("one");
    room.speak();
    let mut frame = [0; 2048];
    let mut found = false;
    while let Ok(len) = rustix::io::read(tap, &mut frame) {
        found |= len > 12 + 34 && frame[12 + 12..12 + 14] == [8, 6];
    }
    assert!(found, "the stack asked for {PEER}");
    let ears = listening(&room);
    // To the card's address, which is not the TAP's, behind an empty vnet header.
    let mac = taken.inner_mac.0;
    let udp = room.at_host(|| std::net::UdpSocket::bind("10.9.0.1:7777").expect("free"));
    udp.set_read_timeout(Some(std::time::Duration::from_secs(2))).expect("a limit");
    let packet = [
        0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0x66, 0xb9, 10, 9, 0, 2, 10, 9, 0, 1, 0x1e, 0x61, 0x1e, 0x61, 0, 12, 0, 0,
        b'o', b'p', b'e', b'n',
    ];
    let opened = [&[0; 12][..], &mac, &[2, 0, 0, 0, 0, 2], &[8, 0], &packet, &[0; 14]].concat();
    rustix::io::write(tap, &opened).expect("written");
    let mut text = [0; 16];
    assert_eq!(udp.recv(&mut text).map(|len| text[..len].to_vec()).ok(), Some(b"open".to_vec()));
    assert!(heard(&ears).contains(&0x0800), "programs with packet sockets hear it as on any card");
}

#[test]
fn only_the_daemons_frames_leave() {
    let room = room!();
    let taken = take(&room);
    let mark = taken.mark.expect("it has one");
    let frames = room.frames_at_peer();
    // It went to the TAP.
    send(&room, "eth0", 0, SEALED).expect("taken");
    assert_eq!(room.frames_at_peer(), frames);
    send(&room, "eth0", mark, SEALED).expect("sent");
    assert_eq!(room.frames_at_peer(), frames + 1);
}

/// A socket that hears ARP alone, as programs that claim addresses open.
fn listening_for_arp() -> OwnedFd {
    socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, Some(eth::ARP)).expect("root may")
}

/// Waits until a socket has heard so many frames of the other host.
fn await_heard(socket: &OwnedFd, count: usize) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let mut found = 0;
    while found < count {
        assert!(std::time::Instant::now() < end, "{found} of {count} frames");
        found += heard(socket).len();
    }
}

/// ARP behind a tag with VLAN number 0.
const TAGGED: &str = "bytes([255]*6+[2,0,0,0,0,2,129,0,0,0,8,6]+[7]*46)";

/// ARP of the other host behind tags with these VLAN numbers.
fn in_vlans(numbers: &[u8]) -> String {
    let tags: String = numbers.iter().map(|number| format!("129,0,0,{number},")).collect();
    format!("bytes([255]*6+[2,0,0,0,0,2,{tags}8,6]+[7]*46)")
}

/// With a device of another kind, since what is asked is whether it is there.
#[test]
fn a_vlan_is_shut_at_the_card_below_from_the_moment_at_which_its_device_is_gone() {
    let room = room!();
    room.in_host("ip link add made0 type veth peer name made1");
    let below = Below { card: "eth0".to_owned(), index: 0, vlan: 5 };
    let hook = below::hook(&below, Side::Ingress);
    let path = Names(format!("{}_test", std::process::id())).below().expect("mounted");
    room.at_host(|| {
        let device = Connection::open().expect("a socket").link_by_name("made0").expect("readable").expect("there");
        let program = below::load(5, device.index).expect("loaded");
        assert!(hook.put("eth0", &path, &program).expect("it works here"));
    });
    let ears = room.at_host(listening_for_arp);
    let passes = |numbers: &[u8]| {
        heard(&ears);
        send_from_peer(&room, &in_vlans(numbers));
        let passes = !heard(&ears).is_empty();
        eprintln!("{numbers:?} passes: {passes}");
        passes
    };
    let ours: [&[u8]; 3] = [&[5], &[0, 5], &[0, 0, 5]];
    let others: [&[u8]; 3] = [&[], &[0], &[6]];
    assert!(ours.iter().chain(&others).all(|numbers| passes(numbers)), "the test itself must work");
    room.in_host("ip link del made0");
    assert!(!ours.iter().any(|numbers| passes(numbers)));
    assert!(others.iter().all(|numbers| passes(numbers)));
    room.at_host(|| below::open("eth0", &below));
    assert!(ours.iter().all(|numbers| passes(numbers)));
    Names::remove(path).expect("removed");
}

/// Has VLAN 5 of a card shut for a device that is there; where, and what could not be done.
fn shut_below(room: &Room, card: &str) -> (Below, Vec<String>) {
    let path = Names(format!("{}_{card}", std::process::id())).below().expect("mounted");
    let shut = room.at_host(|| {
        let link = Connection::open().expect("a socket").link_by_name(card).expect("readable").expect("there");
        let below = Below { card: link.name, index: link.index, vlan: 5 };
        let program = below::load(5, link.index).expect("loaded");
        let warnings = below::shut("eth0", &below, &path, &program);
        (below, warnings)
    });
    Names::remove(path).expect("removed");
    shut
}

/// On which sides of a card the filters of VLAN 5 are.
fn shut_at(room: &Room, card: &str) -> [bool; 2] {
    ["ingress", "egress"].map(|side| room.in_host(&format!("tc filter show dev {card} {side}")).contains("0x52570005"))
}

#[test]
fn a_vlan_that_moves_to_another_card_is_open_at_the_former_under_whichever_name() {
    let room = room!();
    room.in_host("ip link add made0 type veth peer name made1");
    let (former, warnings) = shut_below(&room, "made0");
    assert_eq!((warnings, shut_at(&room, "made0")), (Vec::new(), [true, true]));
    room.in_host("ip link set made0 name lan0");
    // Another card has the name meanwhile, whose VLAN is somebody else's.
    room.in_host("ip link set made1 name made0");
    let (now, _) = shut_below(&room, "made0");
    let mut noted = Some(former);
    let warnings = room.at_host(|| below::note("eth0", &mut noted, Some(&now)));
    assert_eq!((warnings, &noted), (Vec::new(), &Some(now.clone())));
    assert_eq!((shut_at(&room, "lan0"), shut_at(&room, "made0")), ([false, false], [true, true]));
    // The same one is left as it is, and no card or no filter is no failure.
    let warnings = room.at_host(|| below::note("eth0", &mut noted, Some(&now)));
    assert_eq!((warnings, shut_at(&room, "made0")), (Vec::new(), [true, true]));
    assert_eq!(room.at_host(|| below::note("eth0", &mut noted, None)), Vec::<String>::new());
    assert_eq!((shut_at(&room, "made0"), noted), ([false, false], None));
    assert_eq!(room.at_host(|| below::open("eth0", &now)), Vec::<String>::new());
    room.in_host("ip link del made0");
    assert_eq!(room.at_host(|| below::open("eth0", &now)), Vec::<String>::new());
}

#[test]
fn what_others_have_at_the_card_below_is_a_warning_and_no_failure() {
    let foreign = "tc filter add dev eth0 ingress pref 1 protocol all u32 match u32 0 0 flowid 1:1";
    let cases: [(&[&str], [bool; 2], &str); 2] = [
        (&["tc qdisc add dev eth0 clsact", foreign], [false, true], ""),
        // It has one place, which `tc` shows for either side.
        (&["tc qdisc add dev eth0 ingress"], [true, true], "no place at the egress"),
    ];
    for (commands, shut, why) in cases {
        let room = room!();
        commands.iter().for_each(|command| drop(room.in_host(command)));
        let (below, warnings) = shut_below(&room, "eth0");
        assert_eq!((warnings.len(), shut_at(&room, "eth0")), (1, shut), "{commands:?}");
        assert!(warnings.iter().all(|text| text.contains(why)), "{warnings:?}");
        assert_eq!(room.at_host(|| below::open("eth0", &below)), Vec::<String>::new());
        assert_eq!(shut_at(&room, "eth0"), [false, false]);
    }
}

#[test]
fn where_arp_alone_is_kept_all_else_passes_with_and_without_a_daemon_and_without_the_rules() {
    let room = room!();
    let before = room.picture();
    room.introduce();
    let (ears, far) = (room.at_host(listening_for_arp), room.at_peer(listening_for_arp));
    send_from_peer(&room, IN_CLEAR);
    send_from_peer(&room, TAGGED);
    await_heard(&ears, 2);
    let taken = room.take_kept().expect("it works here");
    let check = || {
        heard(&ears);
        send_from_peer(&room, IN_CLEAR);
        send_from_peer(&room, TAGGED);
        assert_eq!(heard(&ears), Vec::<u16>::new());
        assert!(room.hears_udp() && !room.answers_arp());
        // It goes to the TAP, or without the rules is refused.
        let _refused = send(&room, "eth0", 0, IN_CLEAR);
        assert_eq!(heard(&far), Vec::<u16>::new(), "ARP left");
        send(&room, "eth0", super::super::nft::MARK, IN_CLEAR).expect("sent");
        await_heard(&far, 1);
    };
    check();
    let fence = taken.fence.clone().expect("it stands");
    assert!(!fence.is_torn());
    room.in_host("nft flush ruleset");
    check();
    assert!(fence.is_torn());
    drop(taken);
    let again = room.take_kept().expect("it works here");
    assert!(again.adopted);
    drop(again);
    check();
    room.release("eth0").expect("nothing holds it");
    assert_same(&before[..1], &room.picture()[..1]);
    assert!(!room.has_leftovers() && room.in_host("nft list ruleset").is_empty());
    assert_eq!(room.in_host("tc qdisc show dev eth0 clsact"), "");
}

#[test]
fn who_was_in_front_of_the_card_before_stays_and_another_way_is_open() {
    let room = room!();
    let before = room.picture();
    let pass = [instruction(SET, 0, 0, 0, 2), instruction(EXIT, 0, 0, 0, 0)];
    let other = Program::load(Kind::Xdp, "other", &pass, &[]).expect("loaded");
    let held = room.at_host(|| {
        let card = Connection::open().expect("a socket").link_by_name("eth0").expect("readable").expect("there");
        xdp::attach(&other, card.index, xdp::Mode::Generic).expect("nobody is there")
    });
    let error = room.take(Way::InPlace).expect_err("the place is taken");
    assert!(error.is_of_the_way() && error.to_string().contains("another XDP program"), "{error}");
    room.release("eth0").expect("nothing holds it");
    drop(held);
    assert_same(&before, &room.picture());
    assert!(!room.has_leftovers() && room.in_host("nft list ruleset").is_empty());
    drop(room.take(Way::Namespace).expect("it works here"));
}

/// A host that changes its mode while it is taken.
#[test]
fn another_mode_adopts_what_stands_and_leaves_nothing_of_the_one_before() {
    let room = room!();
    room.introduce();
    drop(take(&room));
    let kept = room.take_kept().expect("it works here");
    assert!(kept.adopted && room.hears_udp() && !room.answers_arp());
    assert!(!room.in_host("ip link show dev eth0").contains("xdp"));
    drop(kept);
    drop(take(&room));
    assert!(!room.hears_udp() && !room.answers_arp());
    assert!(!room.in_host("tc filter show dev eth0 ingress").contains("0x5257"));
}

/// What Debian's nftables.service does with each start.
#[test]
fn without_the_rules_nothing_leaves_and_it_shows() {
    let room = room!();
    room.introduce();
    let taken = take(&room);
    let fence = taken.fence.clone().expect("it stands");
    room.speak();
    assert!(!fence.is_torn());
    room.in_host("nft flush ruleset");
    let frames = room.frames_at_peer();
    room.speak();
    assert_eq!(room.frames_at_peer(), frames, "a frame left in clear");
    assert!(fence.is_torn());
    send(&room, "eth0", taken.mark.expect("it has one"), SEALED).expect("sent");
    assert_eq!(room.frames_at_peer(), frames + 1, "the daemon's own frames leave");
    drop(taken);
    let again = take(&room);
    room.speak();
    assert!(!again.fence.as_ref().expect("it stands").is_torn());
    assert!(room.in_host("tc filter show dev eth0 egress").contains("0x5257"));
    drop(again);
    room.release("eth0").expect("nothing holds it");
    assert_eq!(room.in_host("tc qdisc show dev eth0 clsact"), "");
}

#[test]
fn every_half_done_state_can_be_released_and_can_be_taken_on() {
    let room = room!();
    let before = room.picture();
    let spoilers: [Spoiler; 4] = [
        ("the TAP is missing", |room| drop(room.in_host("ip link del rw.eth0"))),
        ("the rules are missing", |room| drop(room.in_host("nft flush ruleset"))),
        ("the card has another name", |room| {
            drop(room.in_host("ip link set eth0 down"));
            drop(room.in_host("ip link set eth0 up"));
        }),
        ("all is done but not written down", |_| {}),
    ];
    for (name, spoil) in spoilers {
        for phase in [Phase::Taking, Phase::Releasing] {
            for taken_on_first in [false, true] {
                drop(take(&room));
                spoil(&room);
                room.set_phase(phase);
                if taken_on_first {
                    drop(take(&room));
                    assert!(room.in_host("nft list ruleset").contains("fwd to \"rw.eth0\""), "{name}");
                }
                room.release("eth0").unwrap_or_else(|error| panic!("{name}: {error}"));
                eprintln!("{name}, {phase:?}, taken on first: {taken_on_first}");
                assert_eq!(room.in_host("nft list ruleset"), "");
            }
        }
    }
    assert_same(&before[..1], &room.picture()[..1]);
}
