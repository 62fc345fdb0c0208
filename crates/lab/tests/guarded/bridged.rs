//! A host with guests: its card is the port of a bridge, and the bridge is what is guarded.

use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Frame, Host};
use rustix::process::Signal;

use crate::attacks::spoof;
use crate::stage::{Outcome, Plan, SOON, perform};
use crate::wire::*;

/// Makes the card of `host` the port of a bridge, which has its addresses, and takes the cable of
/// `guest` from the LAN to that bridge.
fn take_in(host: &Host, guest: &Host) -> Outcome {
    for order in [
        format!("link set {INTERFACE} down"),
        format!("link set {INTERFACE} name card"),
        "address flush dev card".to_owned(),
        format!("link add {INTERFACE} address {} type bridge", host.mac),
        format!("link set card master {INTERFACE} up"),
        format!("address add {}/24 dev {INTERFACE}", host.ip),
        format!("link set {INTERFACE} up"),
    ] {
        host.namespace.ip(&order)?;
    }
    guest.namespace.ip(&format!("link del {INTERFACE}"))?;
    let (cable, there) = (format!("link add guest type veth peer name {INTERFACE}"), guest.namespace.name());
    host.namespace.ip(&format!("{cable} netns {there}"))?;
    host.namespace.ip(&format!("link set guest master {INTERFACE} up"))?;
    guest.namespace.ip(&format!("link set {INTERFACE} address {} up", guest.mac))?;
    guest.namespace.ip(&format!("address add {}/24 dev {INTERFACE}", guest.ip)).map(drop)
}

/// The host seals what is its own. What its guests say passes as if nobody guarded anything, and is
/// to the host what it would be from any other plain host.
#[test]
fn of_a_bridge_the_host_is_guarded_and_its_guests_pass() {
    perform(&["a", "b", "c", "x"], |stage| {
        let [a, b, c, guest] = ["a", "b", "c", "x"].map(|name| stage.host(name));
        take_in(a, guest)?;
        reach(&guest.namespace, a.ip, SOON)?;
        let (mut near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        assert_eq!(near.status()?["takeover"]["way"], "in-place");
        let sent = watch_sent_in_clear(stage, a)?;
        reach(&a.namespace, b.ip, SOON)?;
        reach(&guest.namespace, c.ip, SOON)?;
        reach(&c.namespace, guest.ip, SOON)?;
        assert!(!pings(&guest.namespace, a.ip, "-W 1")?, "a guest is no peer");
        near.await_drops("unsealed", 1)?;
        spoof(guest, a, b)?;
        assert!(pings(&a.namespace, b.ip, "")?, "what a guest says of a peer is not believed");
        near.stop(Signal::KILL);
        assert!(!pings(&a.namespace, b.ip, "-W 1")?, "a dead daemon lets a ping through");
        reach(&guest.namespace, c.ip, SOON)?;
        near.launch(&[])?;
        near.await_ready()?;
        reach(&a.namespace, b.ip, SOON)?;
        let sent = sent.stop()?;
        let of = |host: &Host| sent.iter().filter(|frame| frame.source() == host.mac).count();
        assert_eq!(of(a), 0, "the host's own in clear: {:?}", first_of(&sent, a));
        assert!(of(guest) > 0, "the guest is heard on the wire");
        near.release()?;
        reach(&a.namespace, c.ip, SOON).map(drop)
    });
}

fn first_of<'a>(frames: &'a [Frame], host: &Host) -> Option<&'a Frame> {
    frames.iter().find(|frame| frame.source() == host.mac)
}
