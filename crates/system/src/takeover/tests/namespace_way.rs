//! The way by namespace.
#![allow(unsafe_code)]

use std::os::fd::AsFd;

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use serde_json::Value;

use super::room::{BY_NAMESPACE, OVERHEAD, PEER, Room, assert_same, assert_stands_in, room};
use crate::namespace::{create, run_inside};
use crate::netlink::Connection;
use crate::takeover::{Request, TakeoverError, Way, in_wire_namespace, set_permanent_neighbour};
use crate::takeover::{flush_neighbours, forget_heard_neighbours, remove_permanent_neighbour, take};

#[test]
fn what_was_taken_is_given_back_exactly() {
    let room = room!();
    let before = room.picture();
    let taken = room.take(Way::Namespace).expect("a veth can move");
    assert_eq!(taken.way, Way::Namespace);
    assert!(!taken.adopted);
    assert_eq!(taken.warnings, Vec::<String>::new());
    assert_eq!(taken.inner_mtu, 1500 - u32::from(OVERHEAD));
    drop(taken);
    let report = room.release("eth0").expect("nothing holds it");
    assert!(report.nic_found);
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_same(&before, &room.picture());
    assert!(!room.has_leftovers());
}

#[test]
fn the_inner_device_has_what_the_card_had() {
    let room = room!();
    let before = room.picture();
    let taken = room.take(Way::Namespace).expect("a veth can move");
    assert_stands_in(&before, &room.picture());
    assert_eq!(
        in_wire_namespace(&taken, || Connection::open().and_then(|mut wire| wire.links()))
            .expect("entered")
            .expect("read")
            .len(),
        2
    );
}

#[test]
fn nothing_from_the_wire_reaches_anybody_and_nothing_leaves() {
    let room = room!();
    room.introduce();
    assert!(room.hears_udp(), "the test itself must work");
    assert!(room.answers_arp(), "the test itself must work");
    let taken = room.take(Way::Namespace).expect("a veth can move");
    let frames = room.frames_at_peer();
    assert!(!room.hears_udp());
    assert!(!room.answers_arp());
    room.speak();
    assert_eq!(room.frames_at_peer(), frames, "a frame left in clear");
    drop(taken);
}

#[test]
fn after_a_crash_the_route_points_at_the_dead_device_and_the_next_start_adopts_it() {
    let room = room!();
    let before = room.picture();
    drop(room.take(Way::Namespace).expect("a veth can move"));
    let route: Value = serde_json::from_str(&room.in_host(&format!("ip -j route get {PEER}"))).expect("JSON");
    assert_eq!(route[0]["dev"], "eth0");
    room.in_host("ip addr add 10.9.0.8/24 dev eth0");
    room.in_host("ip route add 198.18.0.0/15 via 10.9.0.2");
    let taken = room.take(Way::Namespace).expect("it is there");
    assert!(taken.adopted);
    assert!(room.in_host("ip addr show dev eth0").contains("10.9.0.8/24"), "changes made meanwhile survive");
    assert!(matches!(room.release("eth0"), Err(TakeoverError::Busy { .. })));
    drop(taken);
    room.release("eth0").expect("nothing holds it");
    assert!(room.in_host("ip route").contains("198.18.0.0/15"), "changes made meanwhile survive");
    room.in_host("ip addr del 10.9.0.8/24 dev eth0");
    room.in_host("ip route del 198.18.0.0/15");
    assert_same(&before, &room.picture());
}

/// `ip netns exec` and service managers give a process a mount tree that dies with it. The pin must not.
#[test]
fn the_pin_survives_the_mount_tree_in_which_it_was_made() {
    let room = room!();
    let before = room.picture();
    room.at_host(|| {
        // SAFETY: this short-lived thread gets a mount tree and a root of its own; nobody else's change.
        unsafe { unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) }.expect("root may");
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("root may");
        take(&room.request(Way::Namespace)).map(drop)
    })
    .expect("a veth can move");
    let taken = room.take(Way::Namespace).expect("the card is still there");
    assert!(taken.adopted);
    drop(taken);
    room.release("eth0").expect("nothing holds it");
    assert_same(&before, &room.picture());
}

#[test]
fn an_interface_that_cannot_be_taken_is_named_and_leaves_nothing() {
    let room = room!();
    let mut request = room.request(Way::Namespace);
    request.interface = "nosuch0".into();
    let error = room.at_host(|| take(&request)).expect_err("there is none");
    assert_eq!(error.to_string(), "interface nosuch0: no such interface: `ip link` shows those that exist");
    room.in_host("ip link add br0 type bridge");
    room.in_host("ip link set eth0 master br0");
    let error = room.take(Way::Namespace).expect_err("it belongs to a bridge");
    assert!(error.to_string().contains("belongs to br0"), "{error}");
    room.in_host("ip link set eth0 nomaster");
    room.in_host("ip link add link eth0 name mac0 type macvlan");
    let error = room.take(Way::Namespace).expect_err("it carries a device");
    assert!(error.to_string().contains("carries mac0"), "{error}");
    room.in_host("ip link del mac0");
    room.in_host("ip link set eth0 mtu 600");
    assert!(matches!(room.take(Way::Namespace), Err(TakeoverError::MtuTooSmall { mtu: 600, .. })));
    assert!(matches!(room.release("eth0"), Err(TakeoverError::NotTaken { .. })));
    assert!(!room.has_leftovers());
}

#[test]
fn a_device_that_cannot_move_is_refused_by_name_and_stays_as_it_was() {
    let room = room!();
    for line in ["link add br0 type bridge", "addr add 10.8.0.1/24 dev br0", "link set br0 up"] {
        room.in_host(&format!("ip {line}"));
    }
    let before = room.in_host("ip addr show dev br0");
    let request = Request { interface: "br0".into(), ..room.request(Way::Namespace) };
    let error = room.at_host(|| take(&request)).expect_err("bridges stay where they are");
    assert!(matches!(error, TakeoverError::CannotMove { .. }), "{error}");
    assert!(error.to_string().contains("host.takeover = \"in-place\""), "{error}");
    assert_eq!(room.in_host("ip addr show dev br0"), before);
    assert!(!room.has_leftovers(), "nothing half done");
}

#[test]
fn a_second_daemon_and_another_namespace_are_refused() {
    let room = room!();
    let taken = room.take(Way::Namespace).expect("a veth can move");
    let error = room.take(Way::Namespace).expect_err("the first one lives");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(taken);
    let elsewhere = create(|| Ok(())).expect("root may");
    let request = room.request(Way::Namespace);
    let error = run_inside(elsewhere.as_fd(), || take(&request)).expect("root may").expect_err("not here");
    assert!(matches!(error, TakeoverError::OtherNamespace { .. }), "{error}");
}

#[test]
fn every_half_done_state_can_be_released_and_can_be_taken_on() {
    let room = room!();
    let take = |room: &Room| room.take(Way::Namespace);
    room.spoil(&[("only the inner device is missing", |room| drop(room.in_host("ip link del eth0")))], take);
    room.spoil(&BY_NAMESPACE, take);
}

#[test]
fn neighbours_are_forgotten_or_set_for_good() {
    let room = room!();
    room.in_host("ip neigh add 10.9.0.50 lladdr 02:00:00:00:00:50 dev eth0 nud reachable");
    room.at_host(|| flush_neighbours("eth0")).expect("root may");
    let neighbours = room.in_host("ip neigh show dev eth0");
    assert!(!neighbours.contains("10.9.0.50") && neighbours.contains("10.9.0.77"), "{neighbours}");
    let ip = "10.9.0.60".parse().expect("an address");
    let mac = "02:00:00:00:00:60".parse().expect("an address");
    room.at_host(|| set_permanent_neighbour("eth0", ip, mac)).expect("root may");
    let neighbours = room.in_host("ip neigh show dev eth0 nud permanent");
    assert!(neighbours.contains("10.9.0.60 lladdr 02:00:00:00:00:60 PERMANENT"), "{neighbours}");
    // Where only what was heard is to be forgotten, it stays.
    room.in_host("ip neigh add 10.9.0.51 lladdr 02:00:00:00:00:51 dev eth0 nud reachable");
    room.at_host(|| forget_heard_neighbours("eth0")).expect("root may");
    let neighbours = room.in_host("ip neigh show dev eth0");
    assert!(!neighbours.contains("10.9.0.51") && neighbours.contains("10.9.0.60"), "{neighbours}");
    // What an earlier run has set is forgotten with what was learned; what somebody else has set stays, also when we want it.
    let theirs = "10.9.0.77".parse().expect("an address");
    let line = room.in_host("ip neigh show 10.9.0.77 dev eth0");
    let their_mac = line.split(' ').nth(2).and_then(|mac| mac.parse().ok()).expect("it has one");
    room.at_host(|| set_permanent_neighbour("eth0", theirs, their_mac)).expect("root may");
    room.at_host(|| flush_neighbours("eth0")).expect("root may");
    let neighbours = room.in_host("ip neigh show dev eth0 nud permanent");
    assert!(!neighbours.contains("10.9.0.60") && neighbours.contains("10.9.0.77"), "{neighbours}");
    room.at_host(|| set_permanent_neighbour("eth0", ip, mac)).expect("root may");
    room.at_host(|| remove_permanent_neighbour("eth0", ip)).expect("root may");
    room.at_host(|| remove_permanent_neighbour("eth0", ip)).expect("once is enough");
    assert!(!room.in_host("ip neigh show dev eth0 nud permanent").contains("10.9.0.60"));
}
