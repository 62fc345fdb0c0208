//! Where datagrams of a stream through a tunnel end: what is counted by everything that they pass.

use std::collections::BTreeMap;

use super::hosts::Hosts;
use crate::failure::Failure;
use crate::guard::Daemon;
use crate::net::{Host, process};

/// The port of ESP in UDP (RFC 3948).
const NAT_TRAVERSAL_PORT: u16 = 4500;
/// What a shield's ports count of frames that nobody got.
const PORTS: [&str; 4] = ["wire_kernel_drops", "stack_kernel_drops", "wire_send_errors", "stack_send_errors"];

/// What has ended where, since each began to count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// In the queue to the sender's strongSwan.
    pub sender_queue: u64,
    /// In both shields: dropped for a reason, or for want of room in a port.
    pub shields: u64,
    /// The same by reason or counter, those at zero left out.
    pub reasons: BTreeMap<String, u64>,
    /// At the socket of the receiver's strongSwan, which did not read fast enough.
    pub strongswan_socket: u64,
    /// At the sockets of the receiver's other programs, of which the stream's is one.
    pub other_sockets: u64,
}

impl Losses {
    /// What all counters show now.
    ///
    /// # Errors
    /// A host does not say.
    pub fn look(hosts: &Hosts) -> Result<Losses, Failure> {
        let (a, b) = (hosts.lan.host("a")?, hosts.lan.host("b")?);
        let mut reasons = BTreeMap::new();
        for shield in hosts.ends() {
            add_shield(shield, &mut reasons)?;
        }
        let sockets = read(a, &["/proc/net/udp", "/proc/net/udp6"])?;
        let strongswan_socket = dropped_at(&sockets, NAT_TRAVERSAL_PORT);
        let all = no_room(&read(a, &["/proc/net/snmp"])?)?;
        Ok(Losses {
            sender_queue: queue_drops(b)?,
            shields: reasons.values().sum(),
            reasons,
            strongswan_socket,
            other_sockets: all.saturating_sub(strongswan_socket),
        })
    }

    /// What came to it since `before`.
    pub fn since(&self, before: &Losses) -> Losses {
        let rise = |(name, count): (&String, &u64)| {
            let rise = count - before.reasons.get(name).copied().unwrap_or_default();
            (rise > 0).then(|| (name.clone(), rise))
        };
        Losses {
            sender_queue: self.sender_queue - before.sender_queue,
            shields: self.shields - before.shields,
            reasons: self.reasons.iter().filter_map(rise).collect(),
            strongswan_socket: self.strongswan_socket - before.strongswan_socket,
            other_sockets: self.other_sockets.saturating_sub(before.other_sockets),
        }
    }

    /// What has ended at some place that is known.
    pub fn placed(&self) -> u64 {
        self.sender_queue + self.shields + self.strongswan_socket + self.other_sockets
    }
}

fn add_shield(shield: &Daemon, reasons: &mut BTreeMap<String, u64>) -> Result<(), Failure> {
    let status = shield.status()?;
    for (name, count) in shield.drops()? {
        *reasons.entry(name).or_default() += count;
    }
    for name in PORTS {
        let missing = || Failure::Unreadable(format!("{name} among {}", status["ports"]));
        *reasons.entry(name.to_owned()).or_default() += status["ports"][name].as_u64().ok_or_else(missing)?;
    }
    Ok(())
}

/// Packets for which the queues to the programs behind a host's tunnels had no room.
fn queue_drops(host: &Host) -> Result<u64, Failure> {
    let text = host.namespace.ip("-json -details -statistics link show")?;
    let links: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
    let tunnels = links.iter().filter(|link| link["linkinfo"]["info_kind"] == "tun");
    Ok(tunnels.filter_map(|link| link["stats64"]["tx"]["dropped"].as_u64()).sum())
}

fn read(host: &Host, files: &[&str]) -> Result<String, Failure> {
    let mut command = host.namespace.command("cat");
    command.args(files);
    process::must(command)
}

/// What the sockets of `port` had no room for, in the kernel's tables of sockets: the second word of a line is the address, the last
/// one what was dropped.
fn dropped_at(sockets: &str, port: u16) -> u64 {
    let port = format!(":{port:04X}");
    let is_of_port = |line: &&str| line.split_whitespace().nth(1).is_some_and(|address| address.ends_with(&port));
    let dropped = |line: &str| line.split_whitespace().last().and_then(|count| count.parse::<u64>().ok());
    sockets.lines().filter(is_of_port).filter_map(dropped).sum()
}

/// What all sockets of UDP over IPv4 had no room for: a line of names and a line of numbers.
fn no_room(counters: &str) -> Result<u64, Failure> {
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    let found = pairs.find(|(name, _)| *name == "RcvbufErrors").and_then(|(_, number)| number.parse().ok());
    found.ok_or_else(|| Failure::Unreadable("/proc/net/snmp".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_kernel_are_read() {
        let sockets = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
             7: 00000000:1194 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5 2 0 41\n \
             9: 00000000:01F4 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5 2 0 7\n";
        assert_eq!((dropped_at(sockets, 4500), dropped_at(sockets, 500), dropped_at(sockets, 7000)), (41, 7, 0));
        let counters = "Tcp: A B\nTcp: 1 2\nUdp: InDatagrams NoPorts RcvbufErrors\nUdp: 100 3 44\n";
        assert_eq!(no_room(counters).ok(), Some(44));
        assert!(no_room("Udp: InDatagrams\nUdp: 1\n").is_err());
    }

    #[test]
    fn only_what_has_risen_has_a_name() {
        let losses = |spi, replay| Losses {
            shields: spi + replay,
            reasons: [("shield-spi".to_owned(), spi), ("shield-replay".to_owned(), replay)].into(),
            ..Losses::default()
        };
        let since = losses(5, 2).since(&losses(5, 1));
        assert_eq!((since.shields, since.placed()), (1, 1));
        assert_eq!(since.reasons, [("shield-replay".to_owned(), 1)].into());
    }
}
