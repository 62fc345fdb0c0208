//! A stack that believes all ARP it hears, as Linux does without protection: an answer changes an entry, and so does a
//! question that is for this host.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{Instant, time};
use wire::arp::{Arp, Operation};
use wire::ethernet::{Header, MIN_LEN};
use wire::{EtherType, MacAddress};

/// How often a question is repeated, and how long after.
const QUESTIONS: u32 = 3;
const REPEAT: Duration = Duration::from_secs(1);

/// The stack of one machine.
#[derive(Debug)]
pub struct Stack {
    /// The hardware address of its card.
    pub mac: MacAddress,
    /// Its address, if it has one now.
    pub ip: Option<Ipv4Addr>,
    table: BTreeMap<Ipv4Addr, MacAddress>,
    /// How often each open question was asked, and when it is asked again.
    asking: BTreeMap<Ipv4Addr, (u32, Instant)>,
}

impl Stack {
    /// A stack that knows nobody.
    pub fn new(mac: MacAddress, ip: Option<Ipv4Addr>) -> Stack {
        Stack { mac, ip, table: BTreeMap::new(), asking: BTreeMap::new() }
    }

    /// Forgets everybody.
    pub fn flush(&mut self) {
        self.table.clear();
        self.asking.clear();
    }

    /// Where it believes `ip` to be.
    pub fn knows(&self, ip: Ipv4Addr) -> Option<MacAddress> {
        self.table.get(&ip).copied()
    }

    /// Wants to know anew where `ip` is.
    pub fn ask(&mut self, now: Instant, ip: Ipv4Addr) {
        if self.ip.is_some() && self.ip != Some(ip) {
            self.table.remove(&ip);
            self.asking.insert(ip, (0, now));
        }
    }

    /// When the next question is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.asking.values().map(|(_, at)| Some(*at)).fold(None, time::earlier)
    }

    /// The questions that are due.
    pub fn tick(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let Some(own) = self.ip else {
            self.asking.clear();
            return Vec::new();
        };
        let mac = self.mac;
        let mut questions = Vec::new();
        self.asking.retain(|wanted, (count, at)| {
            if *at > now {
                return true;
            }
            (*count, *at) = (*count + 1, now + REPEAT);
            if *count <= QUESTIONS {
                questions.push(question((mac, own), *wanted));
            }
            *count <= QUESTIONS
        });
        questions
    }

    /// Takes a frame; returns its answer.
    pub fn receive(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let (header, message) = Header::parse(frame).ok()?;
        let arp = Arp::parse(message).ok().filter(|_| header.ethertype == EtherType::ARP)?;
        let was_asked = self.asking.remove(&arp.sender_ip).is_some();
        let is_for_us = arp.operation == Operation::Request && Some(arp.target_ip) == self.ip;
        let learns = was_asked || is_for_us || self.table.contains_key(&arp.sender_ip);
        if learns && !arp.sender_ip.is_unspecified() {
            self.table.insert(arp.sender_ip, arp.sender_mac);
        }
        let sender_ip = self.ip.filter(|_| is_for_us)?;
        let (sender_mac, target_mac, target_ip) = (self.mac, arp.sender_mac, arp.sender_ip);
        let reply = Arp { operation: Operation::Reply, sender_mac, sender_ip, target_mac, target_ip };
        Some(arp_frame(arp.sender_mac, sender_mac, &reply))
    }
}

/// Where is `wanted`?
pub fn question((mac, own): (MacAddress, Ipv4Addr), wanted: Ipv4Addr) -> Vec<u8> {
    let (target_mac, target_ip) = (MacAddress::ZERO, wanted);
    let arp = Arp { operation: Operation::Request, sender_mac: mac, sender_ip: own, target_mac, target_ip };
    arp_frame(MacAddress::BROADCAST, mac, &arp)
}

/// An ARP message in its frame.
pub fn arp_frame(to: MacAddress, from: MacAddress, arp: &Arp) -> Vec<u8> {
    framed(to, from, &arp.emit())
}

/// Any message of the ARP type in its frame.
pub fn framed(to: MacAddress, from: MacAddress, message: &[u8]) -> Vec<u8> {
    let header = Header { destination: to, source: from, ethertype: EtherType::ARP };
    let mut frame = [&header.emit()[..], message].concat();
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}
