//! The LAN: hosts, each with its own network stack, joined by a bridge that is itself out of everybody's reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use wire::MacAddress;

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::link::{self, ImpairedPort, LinkCounters};
pub use crate::net::link::{BROADCAST, INTERFACE};
use crate::net::{Namespace, Running, process, talk};

/// Length of the prefix that all hosts share.
const PREFIX_LEN: u8 = 24;
/// Member name of the bridge's namespace.
const BRIDGE: &str = "bridge";
/// Name of the bridge in it.
const BRIDGE_INTERFACE: &str = "br0";
/// How long a plain host may take to answer a first ping.
const REACH_LIMIT: Duration = Duration::from_secs(30);

/// Below the addresses of numbered hosts, servers and printers.
const HOSTS_FROM: u8 = 130;
const SERVERS_FROM: u8 = 200;
const SERVERS_MAX: u8 = 4;
const PRINTERS_FROM: u8 = 240;

/// How the bridge forwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// As a switch: to the port where the address was last seen.
    Switch,
    /// As a hub: to every port, which gives an eavesdropper the mirror port of a switch.
    Hub,
}

/// What LAN to make.
#[derive(Clone, Debug)]
pub struct LanPlan {
    /// Names of the hosts; the n-th gets the n-th address unless [`address_of`] knows better.
    pub hosts: Vec<&'static str>,
    /// How the bridge forwards.
    pub forwarding: Forwarding,
    /// Rate of every port in each direction, in Mbit/s; `None` is as fast as the machine.
    pub rate_mbit: Option<u32>,
    /// The host between whom and the bridge our own impairing link is put.
    pub impaired: Option<ImpairedPort>,
}

impl Default for LanPlan {
    fn default() -> Self {
        LanPlan { hosts: vec!["a", "b", "c", "m"], forwarding: Forwarding::Switch, rate_mbit: None, impaired: None }
    }
}

/// A host on the LAN.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name, one letter in the drawings.
    pub name: &'static str,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its hardware address.
    pub mac: MacAddress,
    /// Where its stack lives.
    pub namespace: Namespace,
}

/// An entry of a host's neighbour table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Where the host sends frames for the address.
    pub mac: MacAddress,
    /// The kernel's word for how sure it is, for example `REACHABLE`.
    pub state: String,
}

impl Host {
    /// What the host believes about `ip`; `None` without a hardware address.
    ///
    /// # Errors
    /// `ip` fails or its output is not what it was.
    pub fn neighbour(&self, ip: impl Into<IpAddr>) -> Result<Option<Neighbour>, Failure> {
        let ip = ip.into();
        let text = self.namespace.ip(&format!("-json neigh show to {ip} dev {INTERFACE} nud all"))?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        let table: Value = serde_json::from_str(&text)
            .map_err(|error| Failure::Unreadable(format!("`ip -json neigh show`: {error}")))?;
        let Some(entry) = table.get(0) else { return Ok(None) };
        let mac = entry.get("lladdr").and_then(Value::as_str).and_then(|text| text.parse().ok());
        let state = entry["state"][0].as_str().unwrap_or("NONE").to_owned();
        Ok(mac.filter(|&mac| mac != MacAddress::ZERO).map(|mac| Neighbour { mac, state }))
    }

    /// The link-local IPv6 address that it makes of its hardware address (RFC 4291, appendix A).
    #[must_use]
    pub fn link_local(&self) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets[..2].copy_from_slice(&[0xfe, 0x80]);
        octets[8..].copy_from_slice(&wire::nd::interface_identifier(self.mac));
        octets.into()
    }

    /// Gives the host a fixed belief, as somebody has who reads addresses off the wire.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn pin_neighbour(&self, other: &Host) -> Result<(), Failure> {
        let arguments = format!("neigh replace {} lladdr {} dev {INTERFACE} nud permanent", other.ip, other.mac);
        self.namespace.ip(&arguments).map(drop)
    }
}

/// A LAN. Dropping it removes its namespaces.
#[derive(Debug)]
pub struct Lan {
    /// The bridge's namespace.
    pub bridge: Namespace,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Where files of this LAN go.
    pub directory: PathBuf,
    link: Option<Namespace>,
    link_process: Option<Running>,
    stays: bool,
}

impl Lan {
    /// Makes the LAN of `plan` for `run`.
    ///
    /// # Errors
    /// iproute2 fails, for example because the LAN exists already.
    pub fn create(run: &Run, plan: &LanPlan) -> Result<Lan, Failure> {
        let bridge = Namespace::create(run, BRIDGE)?;
        let mut lan =
            Lan { bridge, hosts: Vec::new(), directory: run.directory(), link: None, link_process: None, stays: false };
        lan.make_bridge(plan.forwarding)?;
        for &name in &plan.hosts {
            lan.add_host(run, name, plan)?;
        }
        Ok(lan)
    }

    /// The host called `name`.
    ///
    /// # Errors
    /// The plan had no such host.
    pub fn host(&self, name: &str) -> Result<&Host, Failure> {
        self.hosts
            .iter()
            .find(|host| host.name == name)
            .ok_or_else(|| Failure::Usage(format!("there is no host {name} on this LAN")))
    }

    /// Ends the impairing link, which cuts its host off, and returns what became of its frames.
    ///
    /// # Errors
    /// The plan had none, it was ended already, or it ended by itself.
    pub fn end_link(&mut self) -> Result<LinkCounters, Failure> {
        let missing = || Failure::Usage("there is no impairing link on this LAN".to_owned());
        link::stop(self.link_process.take().ok_or_else(missing)?)
    }

    /// The bridge's interface towards `host`: what it sends is what the host's wire carries.
    #[must_use]
    pub fn port(host: &Host) -> String {
        format!("p-{}", host.name)
    }

    /// Where plain frames of `host` are heard in both directions: the TAP beside a card that stays
    /// in place, else the interface of the stack.
    #[must_use]
    pub fn plain_side(host: &Host) -> String {
        let tap = format!("rw.{INTERFACE}");
        let is_there = host.namespace.ip(&format!("link show dev {tap}")).is_ok();
        if is_there { tap } else { INTERFACE.to_owned() }
    }

    /// Unplugs `host`.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn unplug(&self, host: &Host) -> Result<(), Failure> {
        self.bridge.ip(&format!("link set {} down", Lan::port(host))).map(drop)
    }

    /// Lets the stacks of `one` and `other` find each other; returns how long the first answer took.
    ///
    /// # Errors
    /// They do not within 30 s.
    pub fn acquaint(&self, one: &Host, other: &Host) -> Result<Duration, Failure> {
        talk::reach(&one.namespace, other.ip, REACH_LIMIT)
    }

    /// As [`acquaint`](Lan::acquaint), over IPv6.
    ///
    /// # Errors
    /// As [`acquaint`](Lan::acquaint).
    pub fn acquaint_over_ipv6(&self, one: &Host, other: &Host) -> Result<Duration, Failure> {
        talk::reach(&one.namespace, format!("{}%{INTERFACE}", other.link_local()), REACH_LIMIT)
    }

    /// Leaves the LAN standing when this value goes.
    pub fn leave_standing(&mut self) {
        self.stays = true;
        if let Some(process) = self.link_process.take() {
            process.release();
        }
    }

    fn make_bridge(&self, forwarding: Forwarding) -> Result<(), Failure> {
        let options = match forwarding {
            Forwarding::Switch => "mcast_snooping 0",
            // What is forgotten at once is flooded always.
            Forwarding::Hub => "mcast_snooping 0 ageing_time 0",
        };
        self.bridge.ip(&format!("link add {BRIDGE_INTERFACE} type bridge {options}"))?;
        // A switch does not filter; this kernel would show every IP frame on the bridge to its packet filter.
        for family in ["iptables", "ip6tables", "arptables"] {
            self.bridge.set_kernel_parameter_if_there(&format!("bridge/bridge-nf-call-{family}"), "0")?;
        }
        self.bridge.ip(&format!("link set {BRIDGE_INTERFACE} up")).map(drop)
    }

    fn add_host(&mut self, run: &Run, name: &'static str, plan: &LanPlan) -> Result<(), Failure> {
        let (ip, mac) = address_of(name);
        let host = Host { name, ip, mac, namespace: Namespace::create(run, name)? };
        let port = Lan::port(&host);
        let impaired = plan.impaired.as_ref().filter(|impaired| impaired.host == name);
        match impaired {
            Some(_) => {
                let namespace = Namespace::create(run, "link")?;
                pair(&self.bridge, &port, &namespace, link::OUTER)?;
                pair(&namespace, link::INNER, &host.namespace, INTERFACE)?;
                self.link = Some(namespace);
            }
            None => pair(&self.bridge, &port, &host.namespace, INTERFACE)?,
        }
        host.namespace.ip(&format!("link set {INTERFACE} address {mac} up"))?;
        host.namespace.ip(&format!("address add {ip}/{PREFIX_LEN} dev {INTERFACE}"))?;
        self.bridge.ip(&format!("link set {port} master {BRIDGE_INTERFACE} up"))?;
        if let Some(rate_mbit) = plan.rate_mbit {
            limit_rate(&self.bridge, &port, rate_mbit)?;
            limit_rate(&host.namespace, INTERFACE, rate_mbit)?;
        }
        impaired.map_or(Ok(()), |impaired| self.start_link(&host, impaired))?;
        self.hosts.push(host);
        Ok(())
    }

    fn start_link(&mut self, host: &Host, impaired: &ImpairedPort) -> Result<(), Failure> {
        let Some(namespace) = &self.link else { return Ok(()) };
        let ends = [(&host.namespace, INTERFACE), (namespace, link::INNER)];
        let port = Lan::port(host);
        for (there, interface) in ends.into_iter().chain([(namespace, link::OUTER), (&self.bridge, &port)]) {
            // What sends into the link must send what a wire would carry; what the link receives is not to be joined.
            set_offloads(there, interface, &["tx", "off", "tso", "off", "gso", "off", "gro", "off"])?;
            there.ip(&format!("link set {interface} up"))?;
        }
        self.link_process = Some(link::start(namespace, impaired, &self.directory)?);
        Ok(())
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        if self.stays {
            return;
        }
        // The link goes first: a process inside would keep its namespace alive.
        drop(self.link_process.take());
        let members = self.hosts.iter().map(|host| &host.namespace).chain([&self.bridge]).chain(&self.link);
        for namespace in members {
            // What cannot be removed here is tried again, and reported, by the sweep at the end of the run.
            let _swept_later = namespace.delete();
        }
    }
}

/// Joins a new interface `near` in `here` to a new one called `far` in `there`.
fn pair(here: &Namespace, near: &str, there: &Namespace, far: &str) -> Result<(), Failure> {
    here.ip(&format!("link add {near} type veth peer name {far} netns {}", there.name())).map(drop)
}

/// Addresses of the host called `name`. The attacker's stand out in captures and tables. On a large
/// LAN hosts, servers and printers are numbered: h1 to h60, d1 to d4, p1 to p9.
pub fn address_of(name: &str) -> (Ipv4Addr, MacAddress) {
    let (letter, digits) = name.split_at_checked(1).unwrap_or((name, ""));
    let number = match (letter.as_bytes(), digits.parse::<u8>()) {
        ([b'h'], Ok(count)) => HOSTS_FROM.saturating_add(count),
        ([letter @ b'a'..=b'g'], Ok(count)) => SERVERS_FROM.saturating_add((letter - b'a') * SERVERS_MAX + count),
        ([b'p'], Ok(count)) => PRINTERS_FROM.saturating_add(count),
        ([b'm'], _) => 0x66,
        ([letter @ b'a'..=b'v'], _) => letter - b'a' + 1,
        _ => 0x77,
    };
    (Ipv4Addr::new(10, 77, 0, number), MacAddress([2, 0, 0, 0x77, 0, number]))
}

/// Sets offloads of `interface`; `settings` as for `ethtool --offload`.
///
/// # Errors
/// ethtool is missing or refuses.
pub fn set_offloads(namespace: &Namespace, interface: &str, settings: &[&str]) -> Result<(), Failure> {
    let mut command = namespace.command("ethtool");
    command.args(["-K", interface]).args(settings);
    process::must(command).map(drop)
}

/// Limits what `interface` sends to `rate_mbit`, with a bucket of 10 ms and a queue of 50 ms.
///
/// # Errors
/// `tc` refuses.
pub fn limit_rate(namespace: &Namespace, interface: &str, rate_mbit: u32) -> Result<(), Failure> {
    // A bucket below one super-frame would drop what the stack hands over in one piece.
    let burst_bytes = (u64::from(rate_mbit) * 1_000_000 / 8 / 100).max(128 * 1024);
    let mut command = Command::new("tc");
    command.args(["-n", namespace.name(), "qdisc", "add", "dev", interface, "root", "tbf"]);
    command.args(["rate", &format!("{rate_mbit}mbit"), "burst", &burst_bytes.to_string(), "latency", "50ms"]);
    process::must(command).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_distinct_unicast_local_addresses() {
        let mut seen = Vec::new();
        for name in ["a", "b", "c", "i", "k", "m", "h", "h1", "h60", "a1", "d1", "d2", "e1", "g4", "p", "p1", "p9"] {
            let (ip, mac) = address_of(name);
            assert!(!mac.is_group() && mac.0[0] & 2 != 0, "{name}");
            assert!(!seen.contains(&ip), "{name}");
            seen.push(ip);
        }
        assert_eq!(address_of("a").0, Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(address_of("c").0, Ipv4Addr::new(10, 77, 0, 3));
    }
}
