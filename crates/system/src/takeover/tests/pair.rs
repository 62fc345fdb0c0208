//! The pair that the kernel joins with the card.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::Duration;

use bump::{Batch, Meta};
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::Value;
use wire::MacAddress;

use super::room::{BY_NAMESPACE, HOST, OVERHEAD, PEER, Room, Spoiler, assert_same, assert_stands_in, room};
use crate::namespace::{current, run_inside};
use crate::netlink::Connection;
use crate::netlink::link::{LinkChange, NO_ARP};
use crate::port::{PacketOptions, PacketPort, Receiver, Sender};
use crate::takeover::state::{InnerKind, Phase};
use crate::takeover::{Follower, Inner, Kept, Request, StackSide, Taken, TakeoverError, Way, take};

/// Bytes of a transfer: hundreds of super-frames.
const TRANSFER_BYTES: usize = 8 << 20;
/// Time in which a frame crosses a cable, with room for a busy machine.
const CROSSING: Duration = Duration::from_millis(60);
/// Tags behind which this kernel learns from ARP, and some behind which it does not.
const TEACHING: [&[u8]; 5] = [
    &[0x81, 0, 0, 0],
    &[0x88, 0xa8, 0, 0],
    &[0x81, 0, 0, 0, 0x81, 0, 0, 0],
    &[0x88, 0xa8, 0, 0, 0x81, 0, 0, 0],
    &[0x81, 0, 0, 0, 0x81, 0, 0, 0, 0x81, 0, 0, 0],
];
const OTHER_TAGS: [&[u8]; 4] =
    [&[0x91, 0, 0, 0], &[0x81, 0, 0, 5], &[0x91, 0, 0, 0, 0x81, 0, 0, 0], &[0x81, 0, 0, 0, 0x91, 0, 0, 0]];

fn outer(taken: &Taken) -> (u32, String) {
    match &taken.stack {
        StackSide::Veth { outer_index, outer_name, .. } => (*outer_index, outer_name.clone()),
        StackSide::Tap { .. } => panic!("a TAP, says {:?}", taken.probes),
    }
}

fn probe<'a>(taken: &'a Taken, name: &str) -> &'a str {
    taken.probes.iter().find(|probe| probe.name == name).map_or("", |probe| &probe.outcome)
}

/// Names of what is in the card's namespace.
fn at_the_card(room: &Room) -> Vec<String> {
    let links = room.at_card(|| Connection::open().and_then(|mut wire| wire.links())).expect("readable");
    links.into_iter().map(|link| link.name).collect()
}

fn rules_at_the_card(room: &Room) -> String {
    room.at_card(|| {
        let output = std::process::Command::new("nft").args(["list", "ruleset"]).output().expect("nft runs");
        String::from_utf8(output.stdout).expect("text")
    })
}

fn ports(room: &Room, taken: &Taken) -> (PacketPort, PacketPort) {
    let open = |index| PacketPort::open(&PacketOptions::kept(Kept::Arp, index)).expect("root may");
    room.at_card(|| (open(outer(taken).0), open(taken.wire_index)))
}

/// A port that hears everything on `name` in the calling thread's namespace.
fn ear(name: &str) -> PacketPort {
    let link = Connection::open().and_then(|mut here| here.link_by_name(name)).expect("readable").expect(name);
    PacketPort::open(&PacketOptions::new(link.index)).expect("root may")
}

/// The ARP frames that have come, tagged ones included.
fn arp(port: &mut PacketPort) -> Vec<Vec<u8>> {
    arp_where(port, |_| true)
}

/// The ARP frames that have come and that nothing says to have had a tag.
fn untagged_arp(port: &mut PacketPort) -> Vec<Vec<u8>> {
    arp_where(port, |meta| meta.vlan.is_none())
}

fn arp_where(port: &mut PacketPort, wanted: impl Fn(&Meta) -> bool) -> Vec<Vec<u8>> {
    sleep(CROSSING);
    let mut frames = Vec::new();
    while port.receiver.fill().expect("the interface is there") {
        while let Some(frame) = port.receiver.next_frame() {
            let is_arp = frame.bytes[12..].windows(4).take(13).any(|window| window == [8, 6, 0, 1]);
            if is_arp && wanted(&frame.meta) {
                frames.push(frame.bytes.to_vec());
            }
        }
    }
    frames
}

fn send(port: &mut PacketPort, frame: &[u8]) {
    port.sender.reserve(frame.len()).expect("room").copy_from_slice(frame);
    port.sender.commit(frame.len(), Meta::plain());
    assert!(!port.sender.flush().waits(), "the frame leaves");
}

/// A request that asks for `target` and says that 10.9.0.`host` is at 02::`host`, behind `tags`.
fn request(tags: &[u8], host: u8, target: &str) -> Vec<u8> {
    let sender = [2, 0, 0, 0, 0, host];
    let target: std::net::Ipv4Addr = target.parse().expect("an address");
    let parts: [&[u8]; 9] = [
        &[0xff; 6],
        &sender,
        tags,
        &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1],
        &sender,
        &[10, 9, 0, host],
        &[0; 6],
        &target.octets(),
        &[0; 18],
    ];
    parts.concat()
}

/// Whether the answer of `ip neigh` names the hardware address of 10.9.0.`host`.
fn knows(neighbours: &str, host: u8) -> bool {
    let start = format!("10.9.0.{host} ");
    neighbours.lines().any(|line| line.starts_with(&start) && line.contains("lladdr"))
}

#[test]
fn what_was_taken_is_given_back_exactly() {
    let room = room!();
    let before = room.picture();
    let taken = room.take_pair().expect("a veth can move");
    assert_eq!(taken.warnings, Vec::<String>::new());
    assert_eq!(outer(&taken).1, "rw.eth0");
    assert_eq!(probe(&taken, "inner device"), "veth, joined in the kernel");
    assert_eq!(at_the_card(&room), ["lo", "eth0", "rw.eth0"]);
    drop(taken);
    let report = room.release("eth0").expect("nothing holds it");
    assert!(report.nic_found);
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_same(&before, &room.picture());
    assert_eq!(room.in_host("nft list ruleset"), "");
    assert!(!room.has_leftovers());
}

#[test]
fn the_inner_device_has_what_the_card_had() {
    let room = room!();
    let before = room.picture();
    let taken = room.take_pair().expect("a veth can move");
    assert_stands_in(&before, &room.picture());
    let links = room.at_card(|| Connection::open().and_then(|mut wire| wire.links())).expect("readable");
    let mtus: Vec<_> = links.iter().filter(|link| link.is_veth()).map(|link| link.mtu).collect();
    assert_eq!((mtus, taken.inner_mtu), (vec![1500, 1500], 1500 - u32::from(OVERHEAD)));
    let silent = links.iter().find(|link| link.name == "rw.eth0").is_some_and(|outer| outer.flags & NO_ARP != 0);
    let card = room.at_card(|| run("ip link show dev eth0"));
    let addresses = room.at_card(|| run("ip -o addr show"));
    assert!(silent && card.contains("ALLMULTI") && addresses.is_empty(), "{card}{addresses}");
    for (name, value) in [("arp_ignore", "8"), ("arp_accept", "0"), ("forwarding", "0")] {
        for device in ["all", "eth0", "rw/eth0"] {
            let setting = format!("net.ipv4.conf.{device}.{name}");
            assert_eq!(room.at_card(|| run(&format!("sysctl -n {setting}"))).trim(), value, "{setting}");
        }
    }
}

#[test]
fn without_a_daemon_the_kernel_carries_data_but_no_arp() {
    let room = room!();
    room.acquaint();
    drop(room.take_pair().expect("a veth can move"));
    room.in_host(&format!("ping -c 2 -W 1 {PEER}"));
    room.in_peer(&format!("ping -c 2 -W 1 {HOST}"));
    assert!(room.hears_udp());
    let before = room.at_card(|| count(&ip_statistics("rw.eth0")));
    transfer(&room);
    let after = room.at_card(|| count(&ip_statistics("rw.eth0")));
    let frame = (after.1 - before.1) / (after.0 - before.0);
    assert!(frame > 3000, "frames of {frame} bytes: super-frames are cut too early");
    // ARP, on the other hand, nobody reads.
    let mut peer = room.at_peer(|| ear("peer0"));
    assert!(!room.answers_arp());
    room.try_in_host("ping -c 1 -W 1 10.9.0.3");
    assert_eq!(arp(&mut peer), Vec::<Vec<u8>>::new(), "ARP left without the daemon");
    assert!(!knows(&room.in_host("ip neigh show dev eth0"), 3));
}

/// The first two numbers of the kernel's version.
fn kernel_version() -> [u32; 2] {
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.parse().ok());
    [(); 2].map(|()| numbers.next().expect("a number"))
}

/// Without rules whatever still passes took the shortcut.
#[test]
fn the_bulk_passes_by_a_program_and_what_is_kept_does_not() {
    let room = room!();
    if kernel_version() < [6, 6] {
        eprintln!("SKIPPED the_bulk_passes_by_a_program_and_what_is_kept_does_not: needs Linux 6.6");
        return;
    }
    room.acquaint();
    for kept in [Kept::Arp, Kept::ArpAndDhcp, Kept::Ipsec] {
        let wanted = Request { inner: Inner::Veth { kept }, ..room.request(Way::Namespace) };
        let taken = room.at_host(|| take(&wanted)).expect("a veth can move");
        assert_eq!(probe(&taken, "bulk"), "past the rules");
        room.in_peer(&format!("ip neigh replace {HOST} lladdr 02:00:00:00:00:99 dev peer0 nud permanent"));
        assert!(!room.hears_udp(), "the stack took what was sent to somebody else");
        room.introduce();
        assert!(room.hears_udp());
        room.at_card(|| run("nft flush ruleset"));
        transfer(&room);
        assert_eq!(room.hears_udp(), kept == Kept::Arp);
        let mut peer = room.at_peer(|| ear("peer0"));
        let mut host = room.at_host(|| ear("eth0"));
        send(&mut peer, &request_of_arp());
        send(&mut host, &request(&[0x81, 0, 0, 0], 45, PEER));
        assert!(arp(&mut host).is_empty() && arp(&mut peer).is_empty());
        drop(taken);
        assert!(!room.hears_udp(), "the program outlived the daemon");
    }
}

/// Packets and bytes that arrived at an interface.
fn count(statistics: &str) -> (u64, u64) {
    let value: Value = serde_json::from_str(statistics).expect("JSON");
    let received = &value[0]["stats64"]["rx"];
    (received["packets"].as_u64().expect("a count"), received["bytes"].as_u64().expect("a count"))
}

fn ip_statistics(name: &str) -> String {
    let output = std::process::Command::new("ip").args(["-j", "-s", "link", "show", "dev", name]).output();
    String::from_utf8(output.expect("ip runs").stdout).expect("text")
}

/// TCP from the guarded host to the other one and back.
fn transfer(room: &Room) {
    let listener = room.at_peer(|| TcpListener::bind((PEER, 5000))).expect("a free port");
    let echo = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody comes");
        let mut bytes = vec![0; TRANSFER_BYTES];
        stream.read_exact(&mut bytes).expect("all arrives");
        stream.write_all(&bytes).expect("all leaves");
    });
    let mut stream = room.at_host(|| TcpStream::connect((PEER, 5000))).expect("it passes");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a time-out");
    let sent: Vec<u8> = (0..TRANSFER_BYTES).map(|at| (at / 7 % 251) as u8).collect();
    stream.write_all(&sent).expect("all leaves");
    let mut received = vec![0; TRANSFER_BYTES];
    stream.read_exact(&mut received).expect("all comes back");
    assert!(sent == received, "what came back is not what was sent");
    echo.join().expect("the other host ends well");
}

#[test]
fn arp_reaches_the_daemon_and_nobody_else() {
    let room = room!();
    assert!(room.answers_arp(), "the test itself must work");
    let taken = room.take_pair().expect("a veth can move");
    let (mut stack, mut wire) = ports(&room, &taken);
    let mut host = room.at_host(|| ear("eth0"));
    let mut peer = room.at_peer(|| ear("peer0"));
    // From the wire.
    send(&mut peer, &request(&[], 40, HOST));
    assert_eq!(arp(&mut wire), [request(&[], 40, HOST)]);
    assert_eq!((arp(&mut host).len(), arp(&mut stack).len(), arp(&mut peer).len()), (0, 0, 0));
    // From the stack.
    send(&mut host, &request(&[], 41, PEER));
    assert_eq!(arp(&mut stack), [request(&[], 41, PEER)]);
    assert_eq!((arp(&mut peer).len(), arp(&mut wire).len(), arp(&mut host).len()), (0, 0, 0));
    // From the daemon, which does not hear itself.
    send(&mut wire, &request(&[], 42, PEER));
    send(&mut stack, &request(&[], 43, HOST));
    assert_eq!(arp(&mut peer)[..], [request(&[], 42, PEER)]);
    assert_eq!(arp(&mut host)[..], [request(&[], 43, HOST)]);
    assert!(knows(&room.in_peer("ip neigh"), 42) && knows(&room.in_host("ip neigh"), 43));
    // The answers of the stacks come; none of them is our own frame, and the card's namespace neither answered nor learned.
    let answers = (arp(&mut stack), arp(&mut wire));
    assert_eq!((answers.0.len(), answers.1.len()), (1, 1), "{answers:?}");
    assert!(answers.0[0][20..22] == [0, 2] && answers.1[0][20..22] == [0, 2], "{answers:?}");
    assert_eq!(room.at_card(|| run("ip neigh show")), "");
}

fn run(command: &str) -> String {
    let words: Vec<_> = command.split(' ').collect();
    let output = std::process::Command::new(words[0]).args(&words[1..]).output().expect(command);
    assert!(output.status.success(), "{command}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn after_the_carrier_was_lost_arp_is_heard_again() {
    let room = room!();
    let taken = room.take_pair().expect("a veth can move");
    let (mut stack, _) = ports(&room, &taken);
    let mut host = room.at_host(|| ear("eth0"));
    let mut follower = room.at_host(|| Follower::open(&taken)).expect("root may");
    for carrier in [false, true] {
        follower.apply_carrier(carrier).expect("root may");
        assert!(arp(&mut stack).is_empty() && arp(&mut host).is_empty());
    }
    send(&mut host, &request(&[], 44, PEER));
    assert_eq!(arp(&mut stack), [request(&[], 44, PEER)]);
}

#[test]
fn arp_behind_tags_reaches_nobody() {
    let room = room!();
    let mut peer = room.at_peer(|| ear("peer0"));
    for (tags, number) in TEACHING.into_iter().zip(50..) {
        send(&mut peer, &request(tags, number, HOST));
        sleep(CROSSING);
        assert!(knows(&room.in_host("ip neigh"), number), "the test itself must work: {tags:x?}");
    }
    assert_eq!(arp(&mut peer).len(), TEACHING.len(), "and it answers");
    let taken = room.take_pair().expect("a veth can move");
    let (mut stack, mut wire) = ports(&room, &taken);
    let mut host = room.at_host(|| ear("eth0"));
    for (tags, number) in TEACHING.into_iter().chain(OTHER_TAGS).zip(60..) {
        send(&mut peer, &request(tags, number, HOST));
        send(&mut host, &request(tags, number + 20, PEER));
        let heard = [&mut host, &mut peer].map(|port| arp(port).len());
        let taken_for_plain = [&mut stack, &mut wire].map(|port| untagged_arp(port).len());
        assert_eq!((heard, taken_for_plain), ([0; 2], [0; 2]), "{tags:x?}");
        assert!(!knows(&room.in_host("ip neigh"), number), "{tags:x?}");
        assert!(!knows(&room.in_peer("ip neigh"), number + 20), "{tags:x?}");
    }
    // What has no tag still comes.
    send(&mut peer, &request(&[], 90, HOST));
    send(&mut host, &request(&[], 91, PEER));
    assert_eq!((arp(&mut wire).len(), arp(&mut stack).len()), (1, 1));
}

/// A datagram to UDP port `port` of the broadcast address, from 10.9.0.`host`; `fragment` is the field of flags and offset.
fn datagram(host: u8, port: u16, header_words: u8, fragment: u16) -> Vec<u8> {
    let header_len = header_words * 4;
    let mut packet = vec![0x40 | header_words, 0, 0, header_len + 16, 0, 0];
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, 17, 0, 0, 10, 9, 0, host, 255, 255, 255, 255]);
    packet.resize(usize::from(header_len), 1);
    let sum = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x12, 0x34]);
    packet.extend(port.to_be_bytes());
    packet.extend([0, 16, 0, 0]);
    packet.extend(*b"datagram");
    [&[0xff; 6][..], &[2, 0, 0, 0, 0, host], &[8, 0], &packet, &[0; 18]].concat()
}

fn datagrams(port: &mut PacketPort) -> usize {
    sleep(CROSSING);
    let mut count = 0;
    while port.receiver.fill().expect("the interface is there") {
        while let Some(frame) = port.receiver.next_frame() {
            count += usize::from(frame.bytes.windows(8).any(|window| window == b"datagram"));
        }
    }
    count
}

/// Left the rule for DHCP out, then the one for broken headers: a datagram came through.
#[test]
fn dhcp_reaches_the_daemon_and_nobody_else_where_it_is_kept() {
    let room = room!();
    let request = Request { inner: Inner::Veth { kept: Kept::ArpAndDhcp }, ..room.request(Way::Namespace) };
    let taken = room.at_host(|| take(&request)).expect("a veth can move");
    let open = |index| PacketPort::open(&PacketOptions::kept(Kept::ArpAndDhcp, index)).expect("root may");
    let (mut stack, mut wire) = room.at_card(|| (open(outer(&taken).0), open(taken.wire_index)));
    let (mut host, mut peer) = (room.at_host(|| ear("eth0")), room.at_peer(|| ear("peer0")));
    let broken = |change: fn(&mut [u8])| {
        let mut frame = datagram(40, 68, 5, 0);
        change(&mut frame[14..]);
        frame
    };
    // What is sent, whether the daemon hears it, and whether it passes.
    let cases = [
        (datagram(40, 67, 5, 0), 1, 0),
        (datagram(40, 68, 5, 0), 1, 0),
        (datagram(40, 68, 7, 0), 1, 0),
        (datagram(40, 67, 5, 0x2000), 1, 0),
        (datagram(40, 53, 5, 0), 0, 1),
        (datagram(40, 53, 7, 0x2000), 0, 1),
        (datagram(40, 67, 5, 0x0001), 0, 1),
        (broken(|packet| packet[0] = 0x65), 1, 0),
        (broken(|packet| packet[0] = 0x44), 0, 0),
        (broken(|packet| packet[3] = 200), 1, 0),
    ];
    for (frame, kept, passed) in cases {
        send(&mut peer, &frame);
        assert_eq!((datagrams(&mut wire), datagrams(&mut host)), (kept, passed), "from the wire: {frame:x?}");
        send(&mut host, &frame);
        assert_eq!((datagrams(&mut stack), datagrams(&mut peer)), (kept, passed), "from the stack: {frame:x?}");
    }
    send(&mut peer, &request_of_arp());
    assert_eq!((arp(&mut wire).len(), arp(&mut host).len()), (1, 0));
}

fn request_of_arp() -> Vec<u8> {
    request(&[], 45, HOST)
}

#[test]
fn every_half_done_state_can_be_released_and_can_be_taken_on() {
    let room = room!();
    room.acquaint();
    let spoilers: [Spoiler; 4] = [
        ("the pair is missing", |room| drop(room.in_host("ip link del eth0"))),
        ("the pair is made but not joined", |room| {
            stage_again(room);
            room.at_card(|| run("nft flush ruleset"));
        }),
        ("the pair is joined but not handed over", stage_again),
        ("the joining rules are missing", |room| drop(room.at_card(|| run("nft flush ruleset")))),
    ];
    let take = |room: &Room| {
        let taken = room.take_pair()?;
        room.in_host(&format!("ping -c 1 -W 1 {PEER}"));
        Ok(taken)
    };
    room.spoil(&spoilers, take);
    room.spoil(&BY_NAMESPACE, take);
}

/// Brings the inner end back where it was made.
fn stage_again(room: &Room) {
    let pin = room.pin();
    room.at_host(|| {
        let mut host = Connection::open().expect("a socket");
        let inner = host.link_by_name("eth0").expect("readable").expect("there");
        let change = LinkChange::of(inner.index).name("veth7").namespace(pin.as_fd(), None);
        host.change_link(&change).expect("it moves");
    });
}

#[test]
fn another_kind_makes_the_device_anew_and_loses_nothing() {
    let room = room!();
    room.acquaint();
    let before = room.picture();
    drop(room.take(Way::Namespace).expect("a veth can move"));
    room.in_host("ip addr add 10.9.0.8/24 dev eth0");
    let taken = room.take_pair().expect("it is there");
    assert!(taken.adopted);
    assert_eq!(taken.warnings, Vec::<String>::new());
    assert_eq!((outer(&taken).1.as_str(), probe(&taken, "inner device offloads")), ("rw.eth0", ""));
    drop(taken);
    room.in_host(&format!("ping -c 1 -W 1 {PEER}"));
    room.in_host("ip addr del 10.9.0.8/24 dev eth0");
    room.in_host("ip route add 198.18.0.0/15 via 10.9.0.2");
    assert!(room.take_pair().expect("it is there").adopted);
    let taken = room.take(Way::Namespace).expect("it is there");
    assert_eq!((taken.queue().is_some(), probe(&taken, "inner device")), (true, "TAP"));
    assert_eq!(taken.warnings, Vec::<String>::new());
    assert_eq!((at_the_card(&room).len(), rules_at_the_card(&room).as_str()), (2, ""));
    assert!(room.in_host("ip route").contains("198.18.0.0/15"), "changes made meanwhile survive");
    room.in_host("ip route del 198.18.0.0/15");
    assert_stands_in(&before, &room.picture());
    drop(taken);
    room.release("eth0").expect("nothing holds it");
    assert_same(&before, &room.picture());
    assert!(!room.has_leftovers());
}

/// The pair is ready and written down, and the TAP of before is still what the stack has.
#[test]
fn a_crash_between_two_kinds_loses_nothing() {
    let room = room!();
    let before = room.picture();
    for (released_at_once, phase) in [(true, Phase::Taken), (true, Phase::Taking), (false, Phase::Taken)] {
        drop(room.take(Way::Namespace).expect("a veth can move"));
        room.in_host("ip addr add 10.9.0.8/24 dev eth0");
        room.at_card(|| run("ip link add rw.eth0 type veth peer name veth7"));
        room.change_state(|state| {
            state.inner = InnerKind::Veth { outer: "rw.eth0".into() };
            state.phase = phase;
        });
        if !released_at_once {
            outer(&room.take_pair().expect("it is there"));
        }
        room.release("eth0").expect("nothing holds it");
        if phase == Phase::Taken {
            room.in_host("ip addr del 10.9.0.8/24 dev eth0");
        }
        assert_same(&before, &room.picture());
        assert!(!room.has_leftovers());
    }
}

#[test]
fn where_the_kernel_cannot_join_the_card_is_refused_and_stays_shut_until_it_can() {
    let room = room!();
    room.introduce();
    let before = room.picture();
    let error = take_without_nft(&room).expect_err("nothing carries the bulk");
    assert!(error.to_string().contains("nft refused"), "{error}");
    assert!(!room.hears_udp());
    room.release("eth0").expect("nothing holds it");
    assert_same(&before, &room.picture());
    // What stood before stands after it.
    outer(&room.take_pair().expect("a veth can move"));
    assert!(take_without_nft(&room).is_err());
    assert!(room.in_host("ip -d link show dev eth0").contains("veth"));
    outer(&room.take_pair().expect("it is there"));
    room.release("eth0").expect("nothing holds it");
    assert_same(&before, &room.picture());
    assert!(!room.has_leftovers());
}

/// Takes the interface where every `nft` fails.
fn take_without_nft(room: &Room) -> Result<Taken, TakeoverError> {
    let mut request = room.request(Way::Namespace);
    request.inner = Inner::Veth { kept: Kept::Arp };
    room.at_host(|| {
        // SAFETY: this short-lived thread gets a mount tree and a root of its own; nobody else's change.
        unsafe { unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) }.expect("root may");
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("root may");
        let nft = run("which nft");
        mount_bind("/bin/false", nft.trim()).expect("root may");
        take(&request)
    })
}

#[test]
fn a_card_that_is_gone_is_not_mistaken_for_what_stands_in_for_it() {
    let room = room!();
    drop(room.take_pair().expect("a veth can move"));
    room.in_peer("ip link del peer0");
    let error = room.take_pair().expect_err("there is no card");
    assert!(matches!(error, TakeoverError::NicGone { .. }), "{error}");
    assert!(room.in_host("ip -o link").contains("eth0"), "the inner device stays");
    assert!(!room.release("eth0").expect("what is left can be cleaned up").nic_found);
    assert!(!room.in_host("ip -o link").contains("eth0"));
    assert!(!room.has_leftovers());
}

#[test]
fn an_inner_device_that_somebody_carried_off_is_made_anew() {
    let room = room!();
    let before = room.picture();
    for taken_on_first in [true, false] {
        drop(room.take_pair().expect("a veth can move"));
        room.in_host(&format!("ip link set eth0 netns {} name other0", room.peer));
        if taken_on_first {
            drop(room.take_pair().expect("there can be another"));
            assert!(!room.in_peer("ip -o link").contains("other0"));
        }
        room.release("eth0").expect("nothing holds it");
        assert!(!room.in_peer("ip -o link").contains("other0"));
        if taken_on_first {
            assert_same(&before, &room.picture());
        }
        assert!(!room.has_leftovers());
    }
}

#[test]
fn an_inner_device_whose_state_was_lost_is_not_taken_for_a_card() {
    let room = room!();
    drop(room.take_pair().expect("a veth can move"));
    let file = room.state_dir().join("eth0.takeover.json");
    let text = std::fs::read(&file).expect("there");
    std::fs::remove_file(&file).expect("there");
    let error = room.take_pair().expect_err("that is ours");
    assert!(matches!(error, TakeoverError::StateLost { .. }), "{error}");
    std::fs::write(&file, text).expect("writable");
    room.release("eth0").expect("nothing holds it");
}

#[test]
fn a_file_from_before_there_was_a_choice_means_a_tap() {
    let room = room!();
    let before = room.picture();
    drop(room.take(Way::Namespace).expect("a veth can move"));
    let file = room.state_dir().join("eth0.takeover.json");
    let mut state: Value = serde_json::from_slice(&std::fs::read(&file).expect("there")).expect("JSON");
    assert_eq!(state.as_object_mut().expect("fields").remove("inner"), Some(Value::from("tap")));
    std::fs::write(&file, state.to_string()).expect("writable");
    assert!(room.take(Way::Namespace).expect("readable").adopted);
    std::fs::write(&file, state.to_string()).expect("writable");
    room.release("eth0").expect("readable");
    assert_same(&before, &room.picture());
}

#[test]
fn a_name_and_an_address_changed_meanwhile_are_put_right() {
    let room = room!();
    drop(room.take_pair().expect("a veth can move"));
    room.in_host("ip link set eth0 down");
    room.in_host("ip link set eth0 name other0 address 02:00:00:00:00:98 mtu 1300");
    room.in_host("ip link set other0 up");
    let taken = room.take_pair().expect("it is there");
    let link = room.in_host("ip link show dev eth0");
    let MacAddress(mac) = taken.inner_mac;
    let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
    assert!(link.contains(&mac) && link.contains("mtu 1460"), "{link}");
    assert!(taken.adopted);
    let home = room.at_host(current).expect("readable");
    assert!(run_inside(home.as_fd(), || ear("eth0")).is_ok());
}
