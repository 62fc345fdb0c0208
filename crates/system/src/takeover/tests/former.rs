//! What a former version has left behind, which had a third way: the card under another name, behind a filter.

use std::os::fd::AsFd;

use serde_json::Value;

use super::room::{OVERHEAD, Room, assert_same, inside_of, room};
use crate::namespace::{current, identity};
use crate::netlink::Connection;
use crate::netlink::link::{Link, LinkChange};
use crate::privilege::{Capability, keep};
use crate::takeover::place::Place;
use crate::takeover::snapshot::Snapshot;
use crate::takeover::state::{Phase, State};
use crate::takeover::{TakeoverError, Way};
use crate::tap_device;

/// The filter as that version had it.
const FILTER: &str = "nft 'table netdev ringwall_eth0 {
    chain from_wire { type filter hook ingress device \"rw.eth0\" priority -500; policy drop; }
    chain to_wire { type filter hook egress device \"rw.eth0\" priority -500; policy drop;
        meta mark 0x52574c4c accept; }
}'";

/// The card lies where it was, as `rw.eth0`, with nothing but the filter; a TAP has its name and all else.
fn leave_behind_a_filter(room: &Room) {
    let place = Place::of("eth0", &room.run_dir(), &room.state_dir()).expect("a good name");
    let mut state = room.at_host(|| {
        let here = identity(current().expect("readable").as_fd()).expect("readable");
        let home = Snapshot::take(&mut socket(), &link("eth0")).expect("readable");
        State::begin(&place, Way::Filter, here, home).expect("readable")
    });
    for line in ["addr flush dev eth0", "link set eth0 down", "link set eth0 name rw.eth0"] {
        room.in_host(&format!("ip {line}"));
    }
    room.in_host("sysctl -qw net/ipv6/conf/rw.eth0/disable_ipv6=1");
    room.run_shell(FILTER).expect("root may");
    room.in_host("ip link set rw.eth0 up allmulticast on");
    room.at_host(|| {
        tap_device::open("eth0", None).expect("root may");
        let change = LinkChange::of(link("eth0").index).mac(state.home.mac()).mtu(1500 - u32::from(OVERHEAD));
        socket().change_link(&change).expect("root may");
        state.home.give(&mut socket(), link("eth0").index, "eth0").expect("root may");
    });
    state.phase = Phase::Taken;
    state.nic_name = "rw.eth0".into();
    state.save(&place.state).expect("writable");
}

fn socket() -> Connection {
    Connection::open().expect("a socket")
}

fn link(name: &str) -> Link {
    socket().link_by_name(name).expect("readable").expect("there")
}

#[test]
fn a_card_behind_a_filter_is_given_back_exactly() {
    let room = room!();
    let before = room.picture();
    leave_behind_a_filter(&room);
    let report = room.release("eth0").expect("nothing holds it");
    assert_eq!((report.nic_found, report.warnings), (true, Vec::new()));
    assert_same(&before, &room.picture());
    assert_eq!(room.in_host("nft list ruleset"), "");
    assert!(!room.has_leftovers());
}

#[test]
fn a_card_behind_a_filter_goes_on_by_namespace_and_opens_at_no_moment() {
    let room = room!();
    room.introduce();
    let before = room.picture();
    leave_behind_a_filter(&room);
    assert!(!room.hears_udp());
    let frames = room.frames_at_peer();
    let taken = room.take(Way::InPlace).expect("what is taken keeps its inner device");
    assert_eq!((taken.way, taken.adopted), (Way::Namespace, true));
    let (addresses, routes) = (room.in_host("ip addr show dev eth0"), room.in_host("ip route show table all"));
    assert!(addresses.contains("10.9.0.5/24") && addresses.contains("2001:db8::1/64"), "{addresses}");
    assert!(routes.contains("198.51.100.0/24 via 10.9.0.2") && routes.contains("default via 10.9.0.2"), "{routes}");
    assert!(!room.hears_udp() && !room.answers_arp());
    room.speak();
    assert_eq!(room.frames_at_peer(), frames, "a frame left in clear");
    assert_eq!(room.in_host("nft list ruleset"), "");
    drop(taken);
    room.release("eth0").expect("nothing holds it");
    assert_same(&before, &room.picture());
}

#[test]
fn a_card_behind_a_filter_that_cannot_move_stays_shut_and_the_remedy_is_said() {
    let room = room!();
    room.introduce();
    let before = room.picture();
    leave_behind_a_filter(&room);
    let request = room.request(Way::Namespace);
    let refused = room.at_host(|| {
        keep(&[Capability::NetAdmin]).expect("root may drop");
        crate::takeover::take(&request).map(drop)
    });
    let error = refused.expect_err("no namespace can be made");
    assert!(matches!(error, TakeoverError::BehindFilter { .. }), "{error}");
    assert!(error.to_string().contains("`ringwall host release`"), "{error}");
    assert!(!room.hears_udp());
    room.release("eth0").expect("nothing holds it");
    assert_same(&before, &room.picture());
}

/// A crash before the way was decided.
#[test]
fn a_file_that_leaves_the_way_open_means_a_namespace() {
    let room = room!();
    let before = room.picture();
    drop(room.take(Way::Namespace).expect("a veth can move"));
    let file = room.state_dir().join("eth0.takeover.json");
    let mut state: Value = serde_json::from_slice(&std::fs::read(&file).expect("there")).expect("JSON");
    assert_eq!(state["way"], "namespace");
    state["way"] = "auto".into();
    std::fs::write(&file, state.to_string()).expect("writable");
    assert!(room.take(Way::InPlace).expect("readable").adopted);
    assert_eq!(room.at_card(|| inside_of("/proc/sys/net/ipv6/conf/eth0/disable_ipv6")), "1");
    room.release("eth0").expect("nothing holds it");
    assert_same(&before, &room.picture());
}
