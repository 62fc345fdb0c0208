//! The way by filter.

use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, socket_with};
use serde_json::Value;

use super::room::{PEER, Room, Spoiler, assert_same, room};
use crate::takeover::state::Phase;
use crate::takeover::{TakeoverError, Way};

#[test]
fn what_was_taken_is_given_back_exactly() {
    let room = room!();
    let before = room.picture();
    let taken = room.take(Way::Filter).expect("the filter works here");
    assert_eq!((taken.way, taken.wire_name.as_str()), (Way::Filter, "rw.eth0"));
    assert_eq!(taken.warnings, Vec::<String>::new());
    let card = room.in_host("ip addr show dev rw.eth0");
    assert!(!card.contains("inet") && card.contains("ALLMULTI"), "{card}");
    drop(taken);
    let report = room.release("eth0").expect("nothing holds it");
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_same(&before, &room.picture());
    assert_eq!(room.in_host("nft list ruleset"), "");
    assert!(!room.has_leftovers());
}

#[test]
fn nothing_from_the_wire_reaches_anybody_and_nothing_leaves() {
    let room = room!();
    room.introduce();
    assert!(room.hears_udp() && room.answers_arp(), "the test itself must work");
    let taken = room.take(Way::Filter).expect("the filter works here");
    let everything = room.at_host(packet_socket);
    let frames = room.frames_at_peer();
    assert!(!room.hears_udp());
    assert!(!room.answers_arp());
    room.speak();
    assert_eq!(room.frames_at_peer(), frames, "a frame left in clear");
    let mut frame = [0; 128];
    rustix::net::recv(&everything, &mut frame, RecvFlags::DONTWAIT).expect("the daemon hears what the stack does not");
    drop(taken);
    // After a crash the filter stands and the route points at the dead device.
    assert!(!room.hears_udp());
    let route: Value = serde_json::from_str(&room.in_host(&format!("ip -j route get {PEER}"))).expect("JSON");
    assert_eq!(route[0]["dev"], "eth0");
    assert!(room.take(Way::Auto).expect("it is there").adopted);
}

fn packet_socket() -> OwnedFd {
    let all = Some(eth::ALL);
    socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, all).expect("root may")
}

#[test]
fn only_marked_frames_leave() {
    let room = room!();
    let taken = room.take(Way::Filter).expect("the filter works here");
    let mark = taken.mark.expect("a mark belongs to the filter");
    let frames = room.frames_at_peer();
    let send = |marked: bool| {
        let mut script = String::from("import socket;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,0);");
        if marked {
            script += &format!("s.setsockopt(socket.SOL_SOCKET,36,{mark});");
        }
        script += "s.bind(('rw.eth0',0));s.send(bytes([255]*6+[2,0,0,0,0,1,7,208]+[0]*46))";
        room.run_python(&script)
    };
    // The sender learns of the drop.
    assert!(send(false).is_err());
    assert_eq!(room.frames_at_peer(), frames);
    send(true).expect("the frame leaves");
    assert_eq!(room.frames_at_peer(), frames + 1);
}

#[test]
fn a_device_that_cannot_move_is_closed_by_filter_unless_the_namespace_was_asked_for() {
    let room = room!();
    room.in_host("ip link add br0 type bridge");
    room.in_host("ip addr add 10.8.0.1/24 dev br0");
    room.in_host("ip link set br0 up");
    let mut request = room.request(Way::Namespace);
    request.interface = "br0".into();
    let error = room.at_host(|| crate::takeover::take(&request)).expect_err("bridges stay where they are");
    assert!(matches!(error, TakeoverError::CannotMove { .. }), "{error}");
    assert!(!room.has_leftovers(), "nothing half done");
    request.way = Way::Auto;
    let taken = room.at_host(|| crate::takeover::take(&request)).expect("the filter works here");
    assert_eq!(taken.way, Way::Filter);
    let way = taken.probes.iter().find(|probe| probe.name == "way").expect("the reason is noted");
    assert!(way.outcome.contains("cannot move"), "{way:?}");
    drop(taken);
    room.release("br0").expect("nothing holds it");
    assert!(room.in_host("ip addr show dev br0").contains("10.8.0.1/24"));
    assert_eq!(room.in_host("nft list ruleset"), "");
}

#[test]
fn every_half_done_state_can_be_released_and_can_be_taken_on() {
    let room = room!();
    let before = room.picture();
    let spoilers: [Spoiler; 4] = [
        ("only the inner device is missing", |room| drop(room.in_host("ip link del eth0"))),
        ("the card has its name still", |room| {
            room.in_host("ip link del eth0");
            room.in_host("ip link set rw.eth0 name eth0");
        }),
        ("nothing but the state file has been written", |room| {
            room.in_host("ip link del eth0");
            room.in_host("ip link set rw.eth0 name eth0");
            room.in_host("nft flush ruleset");
        }),
        ("all is done but not written down", |_| {}),
    ];
    for (name, spoil) in spoilers {
        for phase in [Phase::Taking, Phase::Releasing] {
            for taken_on_first in [false, true] {
                drop(room.take(Way::Filter).unwrap_or_else(|error| panic!("{name}: {error}")));
                spoil(&room);
                room.set_phase(phase);
                if taken_on_first {
                    drop(room.take(Way::Filter).unwrap_or_else(|error| panic!("{name}: {error}")));
                }
                room.release("eth0").unwrap_or_else(|error| panic!("{name}: {error}"));
                eprintln!("{name}, {phase:?}, taken on first: {taken_on_first}");
                assert_same(&before, &room.picture());
                assert_eq!(room.in_host("nft list ruleset"), "");
            }
        }
    }
}
