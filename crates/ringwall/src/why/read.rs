//! Finding out what is known of the other host: from the daemon, from the kernel, and by one datagram to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path as File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use wire::arp::Arp;
use wire::cll::Resolution;
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::facts::{Facts, Known, Path, Target, Way};
use crate::client::{self, DaemonArgs};
use crate::failure::Failure;
use crate::protocol::{Answer, Ask, Event, Status};

/// How long a handshake may take that a datagram sets off; a second is the first repetition.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(4);
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The port of RFC 863: whoever hears it throws it away.
const DISCARD_PORT: u16 = 9;
/// Bytes of IPv4 or IPv6 header, and of ICMP's, in a ping.
const PING_OVERHEAD: [u32; 2] = [28, 48];

/// What each daemon that is meant knows of `host`; with `probe` after a datagram to it.
pub(super) fn facts(host: &str, daemons: &DaemonArgs, probe: bool) -> Result<Vec<Facts>, Failure> {
    let sockets = daemons.sockets()?;
    let mut found = Vec::new();
    let mut failed = None;
    for socket in &sockets {
        match one(host, socket) {
            Ok(facts) => found.push((socket, facts)),
            Err(failure) => failed = Some(failure),
        }
    }
    // Of several daemons those count that lead to it, if one does.
    let leads = |facts: &Facts| facts.way == Way::Link || facts.peer().is_some();
    if found.iter().any(|(_, facts)| leads(facts)) {
        found.retain(|(_, facts)| leads(facts));
    }
    if let (true, Some(failure)) = (found.is_empty(), failed) {
        return Err(failure);
    }
    found.into_iter().map(|(socket, facts)| if probe { tried(socket, facts) } else { Ok(facts) }).collect()
}

/// Without sending anything.
fn one(host: &str, socket: &File) -> Result<Facts, Failure> {
    let status = match client::ask(socket, &Ask::Status)? {
        Answer::Status(status) => status,
        Answer::Gate(_) => {
            let line = format!("a gateway knows no hosts; see `ringwall gate flows --address {host}`");
            return Err(Failure::new(line));
        }
        _ => return Err(client::unexpected(socket)),
    };
    let mut facts = Facts {
        target: Target { asked: host.to_owned(), ..Target::default() },
        status,
        known: Known::Nobody,
        events: Vec::new(),
        examples: Vec::new(),
        way: Way::Unknown,
        neighbour: None,
        path: Path::Untried,
        is_tried: false,
        unix_ms: 0,
    };
    ask_again(socket, &mut facts)?;
    name(&mut facts);
    Ok(facts)
}

/// What changes while one waits.
fn ask_again(socket: &File, facts: &mut Facts) -> Result<(), Failure> {
    facts.known = match client::ask(socket, &Ask::Peers)? {
        Answer::Peers { peers } => Known::Peers(peers),
        Answer::Keys { keys } => Known::Keys(keys),
        _ => Known::Nobody,
    };
    if let Answer::Events { events } = client::ask(socket, &Ask::Events { after: 0 })? {
        facts.events = events;
    }
    if let Answer::Drops { examples, .. } = client::ask(socket, &Ask::Drops)? {
        facts.examples = examples;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    facts.unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    Ok(())
}

/// Finds all names of the host that is asked about, and where packets to it go.
fn name(facts: &mut Facts) {
    let asked = facts.target.asked.clone();
    if let Ok(ip) = asked.parse() {
        facts.target.ips = vec![ip];
    } else if let Ok(mac) = asked.parse::<MacAddress>() {
        facts.target.macs = vec![mac.to_string()];
    } else {
        facts.target.name = Some(asked.clone());
    }
    let neighbours = Neighbours::read(&facts.status.interface);
    // Each may lead to the next: a name to an address, that to a hardware address.
    for _ in 0..2 {
        learn(&mut facts.target, &facts.known, &facts.status, &neighbours);
    }
    if facts.target.ips.is_empty() && facts.target.macs.is_empty() {
        let found = (asked.as_str(), DISCARD_PORT).to_socket_addrs().into_iter().flatten();
        facts.target.ips.extend(found.map(|address| address.ip()));
        facts.target.ips.dedup();
        learn(&mut facts.target, &facts.known, &facts.status, &neighbours);
    }
    claimants(facts);
    facts.neighbour = neighbours.state(&facts.target);
    facts.way = facts.target.ips.first().map_or(Way::Unknown, |ip| way(*ip, &facts.status));
}

/// Takes over what the daemon, its lists and the kernel know.
fn learn(target: &mut Target, known: &Known, status: &Status, neighbours: &Neighbours) {
    let mut found = Vec::new();
    if let Known::Peers(peers) = known {
        for peer in peers.iter().filter(|peer| target.is_peer(peer)) {
            let name = (peer.state != "plain").then(|| peer.name.clone());
            found.push((name, Some(peer.mac.clone()), peer.addresses.clone()));
        }
    }
    let legacy = status.parts.migration.iter().flat_map(|migration| &migration.legacy);
    for (ip, mac) in legacy.chain(neighbours.entries()).filter(|(ip, mac)| target.has_ip(ip) || target.has_mac(mac)) {
        found.push((None, Some(mac.clone()), vec![ip.clone()]));
    }
    for (name, mac, ips) in found {
        target.name = target.name.take().or(name);
        target.macs.extend(mac.filter(|mac| !target.macs.contains(mac)));
        for ip in ips.iter().filter_map(|ip| ip.parse::<IpAddr>().ok()) {
            if !target.ips.contains(&ip) {
                target.ips.push(ip);
            }
        }
    }
}

/// Who speaks for its addresses, if nobody is known to have them: claims, which are told as such.
fn claimants(facts: &mut Facts) {
    if !facts.target.macs.is_empty() {
        return;
    }
    let of_events = facts.events.iter().filter(|event| facts.target.is_in(&event.about));
    let of_events = of_events.filter_map(|event| event.about.mac.clone());
    let of_drops =
        facts.examples.iter().filter(|one| speaks_for(&one.head_hex).is_some_and(|ip| facts.target.ips.contains(&ip)));
    let mut macs: Vec<String> = of_events.chain(of_drops.map(|one| one.source.clone())).collect();
    macs.sort_unstable();
    macs.dedup();
    // Many claimants are somebody who makes them up, and none of them is it for certain.
    macs.truncate(4);
    facts.target.macs = macs;
}

/// The address that the sender of a frame speaks for whose beginning is this: in ARP, or in a handshake.
fn speaks_for(head_hex: &str) -> Option<IpAddr> {
    let bytes = (0..head_hex.len() / 2).map(|at| u8::from_str_radix(head_hex.get(2 * at..2 * at + 2)?, 16).ok());
    let head = bytes.collect::<Option<Vec<u8>>>()?;
    let (header, message) = Header::parse(&head).ok()?;
    match header.ethertype {
        EtherType::ARP => Arp::parse(message).ok().map(|arp| arp.sender_ip.into()),
        EtherType::IPV4 | EtherType::IPV6 => None,
        _ => Resolution::in_message(message).map(|resolution| resolution.sender_ip()),
    }
}

/// The kernel's neighbour entries of an interface: address, hardware address, state.
struct Neighbours(Vec<(String, String, String)>, Vec<(String, String)>);

impl Neighbours {
    fn read(interface: &str) -> Neighbours {
        let told = ip(&["neighbour", "show", "dev", interface]).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entry = |one: &Value| {
            let states = one["state"].as_array().into_iter().flatten().filter_map(Value::as_str);
            (text(&one["dst"]), text(&one["lladdr"]), states.collect::<Vec<_>>().join(" "))
        };
        let all: Vec<_> = told.as_array().into_iter().flatten().map(entry).collect();
        let known = all.iter().filter(|(_, mac, _)| !mac.is_empty());
        let known = known.map(|(ip, mac, _)| (ip.clone(), mac.clone())).collect();
        Neighbours(all, known)
    }

    /// Those whose hardware address is known.
    fn entries(&self) -> impl Iterator<Item = (&String, &String)> {
        self.1.iter().map(|(ip, mac)| (ip, mac))
    }

    fn state(&self, target: &Target) -> Option<String> {
        self.0.iter().find(|(ip, ..)| target.has_ip(ip)).map(|(_, _, state)| state.clone())
    }
}

/// What `ip -json` says.
fn ip(words: &[&str]) -> Result<Value, String> {
    let output = Command::new("ip").arg("-json").args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("ip: {error}"))
}

fn way(target: IpAddr, status: &Status) -> Way {
    let routes = match ip(&["route", "get", &target.to_string()]) {
        Ok(routes) => routes,
        Err(why) => return Way::Nowhere(why),
    };
    let route = &routes[0];
    let device = route["dev"].as_str().unwrap_or_default();
    match route["gateway"].as_str().and_then(|router| router.parse().ok()) {
        _ if route["type"] == "local" => Way::Here,
        Some(router) => Way::Via(router),
        None if device == status.interface => Way::Link,
        None => Way::Elsewhere(device.to_owned()),
    }
}

/// Sends it a datagram, if it can be, and looks what becomes of that.
fn tried(socket: &File, mut facts: Facts) -> Result<Facts, Failure> {
    let Some(target) = facts.target.ips.iter().find(|ip| is_askable(ip)).copied() else { return Ok(facts) };
    if facts.way != Way::Link || matches!(facts.known, Known::Nobody) {
        return Ok(facts);
    }
    let newest = facts.events.last().map_or(0, |event| event.number);
    if !facts.is_sealed() {
        facts.is_tried = knock(target).is_ok();
        let end = Instant::now() + ANSWER_TIME_MAX;
        while facts.is_tried && !is_settled(&facts, newest) && Instant::now() < end {
            std::thread::sleep(LOOK_INTERVAL);
            ask_again(socket, &mut facts)?;
        }
        name(&mut facts);
    }
    if facts.is_sealed() || facts.listed().is_some() || facts.peer().is_some() || matches!(facts.known, Known::Keys(_))
    {
        facts.is_tried = true;
        facts.path = path(target, &facts.status);
        ask_again(socket, &mut facts)?;
    }
    Ok(facts)
}

/// A link-local address means nothing without its interface.
fn is_askable(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    }
}

/// Whether it is known what became of a handshake: it led to an association, or was refused after the event with the
/// number `newest`.
fn is_settled(facts: &Facts, newest: u64) -> bool {
    let is_refused = |event: &&Event| event.number > newest && event.about.reason.is_some();
    facts.peer().is_some_and(|peer| matches!(peer.state.as_str(), "established" | "plain"))
        || facts.news().any(|event| is_refused(&event))
}

fn knock(target: IpAddr) -> std::io::Result<()> {
    let own: IpAddr = if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind(SocketAddr::new(own, 0))?.send_to(&[], SocketAddr::new(target, DISCARD_PORT)).map(drop)
}

/// Whether packets of all sizes reach it, by `ping`.
fn path(target: IpAddr, status: &Status) -> Path {
    let longest = if status.takeover.inner_mtu == 0 { status.takeover.wire_mtu } else { status.takeover.inner_mtu };
    let overhead = PING_OVERHEAD[usize::from(target.is_ipv6())];
    match (is_answered(target, 0), is_answered(target, longest.saturating_sub(overhead))) {
        (false, _) => Path::Silent,
        (true, true) => Path::Whole,
        (true, false) => Path::Short(longest),
    }
}

/// One ping of so many bytes that nobody may cut; a second one if the first is lost.
fn is_answered(target: IpAddr, bytes: u32) -> bool {
    let mut ping = Command::new("ping");
    ping.args(["-n", "-q", "-M", "do", "-c", "1", "-W", "1", "-s", &bytes.to_string(), &target.to_string()]);
    ping.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    (0..2).any(|_| ping.status().is_ok_and(|status| status.success()))
}
