//! A gateway's cards in throw-away namespaces.

use std::os::fd::AsFd;

use serde_json::Value;

use super::{
    Gateway, GatewayFollower, GatewayRequest, Role, hold_gateway, let_gateway_go, release_gateway, take_gateway,
};
use crate::namespace::{create, run_inside};
use crate::takeover::tests::room::{Room, assert_same, inside_of, room};
use crate::takeover::{Change, TakeoverError};

/// Gives the host of `room` a second card and takes all addresses away.
fn furnish(room: &Room) {
    room.in_host("ip addr flush dev eth0");
    // Routes that name the device go when it is turned off; an IPv6 address of its own comes back, as every link has.
    room.in_host("ip link set eth0 down");
    room.in_host("ip link set eth0 up");
    room.in_host("ip link add eth1 type veth peer name far1");
    room.in_host("ip link set eth1 up mtu 1400");
    room.in_host("ip link set far1 up");
}

/// The host's picture. The kernel orders routes of the same kind by when their devices came.
fn picture(room: &Room) -> Vec<(String, Value)> {
    let mut picture = room.picture();
    for list in picture.iter_mut().filter_map(|(_, value)| value.as_array_mut()) {
        list.sort_by_key(Value::to_string);
    }
    picture
}

fn request(room: &Room) -> GatewayRequest {
    GatewayRequest {
        trusted: "eth0".into(),
        untrusted: "eth1".into(),
        mirror: None,
        run_dir: room.run_dir(),
        state_dir: room.state_dir(),
    }
}

fn take(room: &Room) -> Result<Gateway, TakeoverError> {
    let request = request(room);
    room.at_host(|| take_gateway(&request))
}

fn release(room: &Room) -> Result<crate::takeover::Report, TakeoverError> {
    room.at_host(|| release_gateway("eth0", &room.run_dir(), &room.state_dir()))
}

#[test]
fn both_cards_go_adopted_or_not_and_come_back_as_they_were() {
    let room = room!();
    furnish(&room);
    let before = picture(&room);
    let gateway = take(&room).expect("veths can move");
    let names: Vec<_> = gateway.cards.iter().map(|card| (card.role, card.name.as_str(), card.mtu)).collect();
    assert_eq!(names, [(Role::Trusted, "eth0", 1500), (Role::Untrusted, "eth1", 1400)]);
    assert_eq!((gateway.adopted, gateway.mtu()), (false, 1400));
    assert!(!room.in_host("ip -br link").contains("eth0"), "it has left");
    let error = take(&room).expect_err("the first one lives");
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(gateway);
    let again = take(&room).expect("what is left is adopted");
    assert!(again.adopted);
    drop(again);
    let report = release(&room).expect("nothing holds it");
    assert!(report.nic_found);
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_same(&before, &picture(&room));
    assert!(room.in_host("ip -br link show dev eth1").contains("UP"));
    assert!(!room.has_leftovers());
    assert!(matches!(release(&room), Err(TakeoverError::NotTaken { .. })));
}

#[test]
fn the_cards_neither_answer_nor_speak() {
    let room = room!();
    furnish(&room);
    let gateway = take(&room).expect("veths can move");
    let frames = room.frames_at_peer();
    assert!(!room.answers_arp());
    let settings = gateway.inside(|| inside_of("/proc/sys/net/ipv4/conf/eth0/forwarding")).expect("entered");
    assert_eq!(settings, "0");
    let addresses = gateway.inside(|| std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default());
    assert!(!addresses.expect("entered").contains("eth"), "no IPv6 address");
    assert_eq!(room.frames_at_peer(), frames, "a frame left by itself");
}

#[test]
fn what_cannot_be_a_gateways_card_is_named_and_leaves_nothing() {
    let room = room!();
    furnish(&room);
    room.in_host("ip addr add 10.9.0.1/24 dev eth1");
    let error = take(&room).expect_err("it has an address").to_string();
    assert!(error.starts_with("interface eth1: has the address 10.9.0.1"), "{error}");
    room.in_host("ip addr flush dev eth1");
    room.in_host("ip link add br0 type bridge");
    room.in_host("ip link set eth1 master br0");
    let error = take(&room).expect_err("it belongs to a bridge").to_string();
    assert!(error.contains("eth1: belongs to br0"), "{error}");
    assert!(room.in_host("ip -br link").contains("eth0"), "the other one has stayed");
    assert!(!room.has_leftovers());
}

#[test]
fn others_than_those_that_are_held_are_refused() {
    let room = room!();
    furnish(&room);
    drop(take(&room).expect("veths can move"));
    let other = GatewayRequest { mirror: Some("far1".into()), ..request(&room) };
    let error = room.at_host(|| take_gateway(&other)).expect_err("not these").to_string();
    assert!(error.contains("holds eth0, eth1") && error.contains("gate release"), "{error}");
    let elsewhere = create(|| Ok(())).expect("root may");
    let same = request(&room);
    let error = run_inside(elsewhere.as_fd(), || take_gateway(&same)).expect("root may").expect_err("not here");
    assert!(matches!(error, TakeoverError::OtherNamespace { .. }), "{error}");
    release(&room).expect("nothing holds it");
}

#[test]
fn a_card_that_has_not_left_yet_is_taken_on_or_stays() {
    let room = room!();
    furnish(&room);
    let before = picture(&room);
    for taken_on_first in [false, true] {
        drop(take(&room).expect("veths can move"));
        room.move_card_home();
        if taken_on_first {
            drop(take(&room).expect("it goes on"));
        }
        assert!(release(&room).expect("from any state").nic_found);
        assert_same(&before, &picture(&room));
        assert!(!room.has_leftovers());
    }
}

#[test]
fn changes_of_either_card_are_told() {
    let room = room!();
    furnish(&room);
    let gateway = take(&room).expect("veths can move");
    let mut follower = GatewayFollower::open(&gateway).expect("sockets");
    while follower.next_change().expect("readable").is_some() {}
    room.in_host("ip link set far1 down");
    let change = loop {
        let mut watched: Vec<_> = follower
            .descriptors()
            .map(|descriptor| crate::wait::PollFd::from_borrowed_fd(descriptor, crate::wait::PollFlags::IN))
            .collect();
        let ready = crate::wait::wait(&mut watched, Some(std::time::Duration::from_secs(5))).expect("poll");
        assert!(ready > 0, "nothing was told");
        if let Some(change) = follower.next_change().expect("readable") {
            break change;
        }
    };
    assert_eq!(change, (Role::Untrusted, Change::Carrier(false)));
    drop(gateway);
    release(&room).expect("nothing holds it");
}

#[test]
fn a_namespace_that_was_made_before_is_used_and_goes_only_when_it_is_empty() {
    let room = room!();
    furnish(&room);
    let at_host = |step: fn(&str, &std::path::Path, &std::path::Path) -> Result<(), TakeoverError>| {
        room.at_host(|| step("eth0", &room.run_dir(), &room.state_dir())).expect("root may");
    };
    at_host(hold_gateway);
    let made = crate::namespace::identity(room.pin().as_fd()).expect("it lives");
    at_host(hold_gateway);
    drop(take(&room).expect("veths can move"));
    at_host(let_gateway_go);
    assert_eq!(crate::namespace::identity(room.pin().as_fd()).expect("it lives"), made, "it has the cards");
    release(&room).expect("nothing holds it");
    at_host(hold_gateway);
    at_host(let_gateway_go);
    assert!(!room.has_leftovers());
}
