//! Following later changes.

use std::io;
use std::time::{Duration, Instant};

use super::room::{Room, assert_same, room};
use crate::netlink::Connection;
use crate::privilege::{Capability, keep};
use crate::takeover::{Change, Follower, Inner, Kept, Request, Taken, Way, in_wire_namespace, release, state, take};

/// Longest time until a change is heard of.
const PATIENCE: Duration = Duration::from_secs(3);

fn wait_for(follower: &mut Follower, wanted: Change) {
    let begin = Instant::now();
    let mut seen = Vec::new();
    while begin.elapsed() < PATIENCE {
        match follower.next_change().expect("the sockets work") {
            Some(change) if change == wanted => return,
            Some(change) => seen.push(change),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    panic!("no {wanted:?} among {seen:?}");
}

fn at_card(taken: &Taken, command: &str) {
    let words: Vec<_> = command.split(' ').collect();
    let run = || std::process::Command::new(words[0]).args(&words[1..]).status();
    assert!(in_wire_namespace(taken, run).expect("root may enter").expect("it runs").success(), "{command}");
}

fn follow(room: &Room, taken: &Taken) -> Follower {
    room.at_host(|| Follower::open(taken)).expect("root may")
}

#[test]
fn the_inner_device_follows_the_card() {
    let room = room!();
    let taken = room.take(Way::Namespace).expect("a veth can move");
    let mut follower = follow(&room, &taken);
    assert_eq!(follower.next_change().expect("works"), Some(Change::Carrier(true)));
    room.in_peer("ip link set peer0 down");
    wait_for(&mut follower, Change::Carrier(false));
    follower.apply_carrier(false).expect("a TAP");
    assert!(room.in_host("ip link show dev eth0").contains("NO-CARRIER"));
    room.in_peer("ip link set peer0 up");
    wait_for(&mut follower, Change::Carrier(true));
    follower.apply_carrier(true).expect("a TAP");
    assert!(!room.in_host("ip link show dev eth0").contains("NO-CARRIER"));
    at_card(&taken, "ip link set eth0 mtu 1400");
    wait_for(&mut follower, Change::Mtu(1400));
    follower.apply_mtu(1360).expect("root may");
    wait_for(&mut follower, Change::InnerMtu(1360));
    at_card(&taken, "ip link set eth0 address 02:00:00:00:00:99");
    let mac = "02:00:00:00:00:99".parse().expect("an address");
    wait_for(&mut follower, Change::Mac(mac));
    room.in_host("ip link set eth0 address 02:00:00:00:00:99");
    wait_for(&mut follower, Change::InnerMac(mac));
    // A card that got another address meanwhile is still found: under a second take-over, and on the way home.
    drop((taken, follower));
    let taken = room.take(Way::Namespace).expect("it is there");
    assert_eq!(taken.inner_mac, mac);
    drop(taken);
    assert!(room.release("eth0").expect("nothing holds it").nic_found);
    assert!(room.in_host("ip link show dev eth0").contains("02:00:00:00:00:99"));
}

/// With what a daemon has left of its privileges: entering the card's namespace is not among it.
#[test]
fn the_pair_follows_the_card() {
    let room = room!();
    let taken = room.take_pair().expect("a veth can move");
    let mut follower = follow(&room, &taken);
    assert_eq!(follower.next_change().expect("works"), Some(Change::Carrier(true)));
    room.in_peer("ip link set peer0 down");
    wait_for(&mut follower, Change::Carrier(false));
    let mut follower = unprivileged(&room, follower, |follower| follower.apply_carrier(false));
    assert!(room.in_host("ip link show dev eth0").contains("NO-CARRIER"));
    room.in_peer("ip link set peer0 up");
    wait_for(&mut follower, Change::Carrier(true));
    let mut follower = unprivileged(&room, follower, |follower| follower.apply_carrier(true));
    assert!(!room.in_host("ip link show dev eth0").contains("NO-CARRIER"));
    for mtu in [1400, 2000] {
        at_card(&taken, &format!("ip link set eth0 mtu {mtu}"));
        wait_for(&mut follower, Change::Mtu(mtu));
        follower = unprivileged(&room, follower, |follower| follower.apply_mtu(mtu - 40));
        wait_for(&mut follower, Change::InnerMtu(mtu - 40));
        let outer = room.at_card(|| Connection::open().and_then(|mut wire| wire.link_by_name("rw.eth0")));
        assert_eq!(outer.expect("readable").expect("there").mtu, mtu);
    }
    room.in_host("ip link set eth0 down");
    wait_for(&mut follower, Change::InnerUp(false));
    at_card(&taken, "ip link del rw.eth0");
    wait_for(&mut follower, Change::InnerGone);
    room.in_peer("ip link del peer0");
    wait_for(&mut follower, Change::NicGone);
}

/// Lets `follower` act on a thread that may administer the network and nothing else, and gives it back.
fn unprivileged(
    room: &Room,
    mut follower: Follower,
    act: impl FnOnce(&mut Follower) -> io::Result<()> + Send,
) -> Follower {
    room.at_host(|| {
        keep(&[Capability::NetAdmin]).expect("root may drop");
        act(&mut follower).expect("administering is enough");
    });
    follower
}

#[test]
fn the_end_of_a_device_is_told() {
    let room = room!();
    let taken = room.take(Way::Namespace).expect("a veth can move");
    let mut follower = follow(&room, &taken);
    room.in_host("ip link set eth0 down");
    wait_for(&mut follower, Change::InnerUp(false));
    room.in_host("ip link del eth0");
    wait_for(&mut follower, Change::InnerGone);
    room.in_peer("ip link del peer0");
    wait_for(&mut follower, Change::NicGone);
    drop(taken);
    let report = room.release("eth0").expect("what is left can be cleaned up");
    assert!(!report.nic_found && !room.has_leftovers());
}

#[test]
fn the_privileges_that_are_kept_suffice_for_the_way_out() {
    let room = room!();
    let before = room.picture();
    let pair = Request { inner: Inner::Veth { kept: Kept::Arp }, ..room.request(Way::Namespace) };
    for request in [room.request(Way::Namespace), pair] {
        let report = room.at_host(|| {
            drop(take(&request).expect("both ways work here"));
            keep(&Capability::FOR_RELEASE).expect("root may drop");
            release("eth0", &request.run_dir, &request.state_dir)
        });
        assert_eq!(report.expect("allowed").warnings, Vec::<String>::new());
        assert_same(&before, &room.picture());
    }
}

#[test]
fn lost_notifications_are_made_good() {
    let room = room!();
    let taken = room.take(Way::InPlace).expect("it works here");
    let mut follower = follow(&room, &taken);
    // More notifications than the socket holds, nobody reading.
    let flood = "for i in $(seq 400); do echo link set lo mtu $((2000+i)); done | ip -batch -";
    room.run_shell(flood).expect("root may");
    room.in_host("ip link set eth0 mtu 1300");
    wait_for(&mut follower, Change::Mtu(1300));
}

#[test]
fn a_confirmed_take_over_is_not_reverted() {
    let room = room!();
    let directory = room.state_dir();
    assert!(state::confirm(&directory, "eth0").is_err(), "not taken yet");
    drop(room.take(Way::Namespace).expect("a veth can move"));
    let deadline = bump::Instant::from_millis(5_000);
    state::set_revert_at(&directory, "eth0", deadline).expect("taken");
    let load = || state::load(&directory, "eth0").expect("readable").expect("taken");
    assert_eq!(load().revert_at(), Some(deadline));
    drop(room.take(Way::Namespace).expect("adopting keeps the deadline"));
    assert_eq!(load().revert_at(), Some(deadline));
    state::confirm(&directory, "eth0").expect("taken");
    assert_eq!(load().revert_at(), None);
}
