//! Attacks 30, 31, 36 and 39: who has which address.

use std::net::Ipv6Addr;
use std::time::Duration;

use rustix::process::Signal;
use wire::icmp::v6::{ECHO_REQUEST, NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION, PACKET_TOO_BIG};

use super::{Cast, FLOOD_MBIT, Icmp, NETWORK, SOON, TRIAL, address_lines};
use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::guard::Guard;
use crate::net::lan::{INTERFACE, limit_rate};
use crate::net::{Frame, Host, process};

/// How long a host is given to ask anew whom it has forgotten.
const ASKED: Duration = Duration::from_millis(400);
/// How long a tool takes until it listens.
const START: Duration = Duration::from_millis(500);
/// The address that the victim is about to take.
const WANTED: &str = "2001:db8:5::36";
/// Where the attacker is in the site's network.
const OUTSIDE: &str = "2001:db8:1::66";
/// As many entries for hosts that are not there are an exhausted table; a kernel's default limit is 1024.
const EXHAUSTED_MIN: usize = 200;
/// A guarded router has hardly any.
const UNTOUCHED_MAX: usize = 5;

impl Cast {
    /// Whether the victim sends to the attacker what is for `address`.
    fn is_fooled_about(&self, address: Ipv6Addr) -> Result<bool, Failure> {
        Ok(self.victim.neighbour(address)?.is_some_and(|entry| entry.mac == self.attacker.mac))
    }

    /// Whether `frame` says that `address` is at the attacker.
    fn claims(&self, frame: &Frame, address: Ipv6Addr) -> bool {
        let message = Icmp::of(frame).and_then(|icmp| icmp.message);
        message.is_some_and(|said| said.target == Some(address) && said.target_link == Some(self.attacker.mac))
    }

    fn words_to_victim(&self, about: Ipv6Addr) -> [String; 3] {
        [self.victim.mac.to_string(), self.victim.link_local().to_string(), about.to_string()]
    }
}

/// Attack 30: whenever a asks for b, the attacker answers as well, and overrides b's answer.
pub fn overridden_entry(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let address = cast.friend.link_local();
    let window = scene.open()?;
    let tool = cast.launch(scene, "atk6-parasite6", &[INTERFACE])?;
    let _voice = cast.say_for_tool(scene, "claim", &cast.words_to_victim(address))?;
    let fooled = process::within(TRIAL, || {
        cast.victim.namespace.ip(&format!("-6 neigh flush dev {INTERFACE}"))?;
        process::pause(ASKED)?;
        cast.is_fooled_about(address)
    })?;
    tool.stop(Signal::TERM);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| cast.claims(frame, address);
    Ok(Finding {
        reached: fooled,
        harmless: !fooled && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("a takes {} for b", if fooled { "m" } else { "nobody else" }),
        record,
    })
}

/// Attack 31: a solicitation in the router's name makes a learn the router's address, although a never asked.
pub fn false_solicitation(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let address = cast.router.link_local();
    let window = scene.open()?;
    let voice = cast.say(scene, "ask", &cast.words_to_victim(address))?;
    let fooled = process::within(TRIAL, || cast.is_fooled_about(address))?;
    drop(voice);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| {
        let source = Icmp::of(frame).map(|icmp| icmp.source);
        cast.has_sent(frame, NEIGHBOUR_SOLICITATION) && source == Some(address)
    };
    Ok(Finding {
        reached: fooled,
        harmless: !fooled && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("a {} the router at m", if fooled { "has" } else { "does not have" }),
        record,
    })
}

/// Attack 36: a asks whether anybody has the address that it is about to take, and the attacker says yes.
pub fn denied_address(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let window = scene.open()?;
    let tool = cast.launch(scene, "atk6-dos-new-ip6", &[INTERFACE])?;
    process::pause(START)?;
    let _voice = cast.say_for_tool(scene, "deny", &[WANTED.to_owned()])?;
    cast.victim.namespace.ip(&format!("-6 addr add {WANTED}/64 dev {INTERFACE}"))?;
    let denied = is_denied(&cast.victim)?;
    tool.stop(Signal::TERM);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| {
        let target = Icmp::of(frame).and_then(|icmp| icmp.message).and_then(|said| said.target);
        Icmp::is(frame, NEIGHBOUR_ADVERTISEMENT) && target.is_some_and(|target| target.to_string() == WANTED)
    };
    Ok(Finding {
        reached: denied,
        harmless: !denied && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("a {} the address", if denied { "gives up" } else { "has" }),
        record,
    })
}

/// Whether the host found that somebody else has the address, once it has asked.
fn is_denied(host: &Host) -> Result<bool, Failure> {
    let mut denied = false;
    process::until("the end of duplicate address detection", SOON, || {
        let line = address_lines(host, WANTED)?.concat();
        denied = line.contains("dadfailed");
        Ok(denied || !line.contains("tentative"))
    })?;
    Ok(denied)
}

/// Attack 39: packets for hosts that are not there make the router ask for each of them.
pub fn exhausted_table(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let _server = cast.serve(scene)?;
    let attacker = &cast.attacker.namespace;
    attacker.ip(&format!("-6 addr replace {OUTSIDE}/64 dev {INTERFACE} nodad"))?;
    limit_rate(attacker, INTERFACE, FLOOD_MBIT)?;
    let window = scene.open()?;
    let network = format!("{NETWORK}:");
    let words = [cast.router.mac.to_string(), OUTSIDE.to_owned(), network.clone()];
    let flood = match scene.guard {
        Guard::None => cast.launch(scene, "atk6-ndpexhaust26", &[INTERFACE, &network])?,
        // The tool wants to be told first where the router is.
        _ => cast.say(scene, "sweep", &words)?,
    };
    let mut entries = 0;
    let exhausted = process::within(TRIAL * 2, || {
        let shown = cast.router.namespace.ip(&format!("-6 neigh show dev {INTERFACE} nud all"))?;
        entries = shown.lines().filter(|line| line.starts_with(NETWORK)).count();
        Ok(entries >= EXHAUSTED_MIN)
    })?;
    drop(flood);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| cast.has_sent(frame, PACKET_TOO_BIG) || cast.has_sent(frame, ECHO_REQUEST);
    Ok(Finding {
        reached: exhausted,
        harmless: entries <= UNTOUCHED_MAX && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("the router has {entries} entries in its network"),
        record,
    })
}
