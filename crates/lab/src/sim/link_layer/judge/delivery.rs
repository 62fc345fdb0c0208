//! What a link layer delivers to its stack: nothing that nobody sent, nothing changed, nothing twice, no lie.

use bump::{Instant, Meta};
use wire::arp::Arp;
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::{EtherType, ipv4};

use super::{Facts, Judge, PASSED};
use crate::sim::link_layer::datagram::{Number, complete, number_in};
use crate::sim::link_layer::scenario::Part;

/// Shortest frame on a wire, to which cards pad.
const PADDED_LEN: usize = 60;

impl Judge {
    /// The link layer of `host` delivers `frame` to its stack.
    pub fn delivered(&mut self, at: Instant, host: usize, frame: &[u8], meta: Meta) {
        let Ok((header, payload)) = Header::parse(frame) else {
            return self.violate(at, host, "runt delivered", format!("{} bytes", frame.len()));
        };
        if self.scenario.passes && header.ethertype == PASSED {
            return;
        }
        let legacy = self.facts.iter().find(|facts| facts.part == Part::Legacy && facts.mac == header.source).copied();
        match (legacy, header.ethertype) {
            (Some(legacy), _) => self.delivered_by_legacy(at, host, &header, frame, legacy),
            (None, EtherType::ARP) => self.delivered_arp(at, host, &header, payload),
            (None, _) => self.delivered_datagram(at, host, &header, frame, meta),
        }
    }

    /// A legacy host proves nothing, but it may only be itself.
    fn delivered_by_legacy(&mut self, at: Instant, host: usize, header: &Header, frame: &[u8], legacy: Facts) {
        let payload = &frame[ETHERNET_LEN..];
        let claims = match header.ethertype {
            EtherType::ARP => Arp::parse(payload).ok().map(|arp| arp.sender_ip),
            EtherType::IPV4 => ipv4::View::new(payload).ok().map(|view| view.source()),
            _ => None,
        };
        if claims.is_some_and(|ip| ip != legacy.ip) {
            self.violate(at, host, "legacy host with another's address delivered", format!("{claims:?}"));
        }
        self.reached(at, frame);
    }

    fn delivered_arp(&mut self, at: Instant, host: usize, header: &Header, message: &[u8]) {
        let Ok(arp) = Arp::parse(message) else {
            return self.violate(at, host, "malformed ARP delivered", "unreadable");
        };
        let is_true = |facts: &Facts| facts.ip == arp.sender_ip && facts.mac == arp.sender_mac;
        if arp.sender_mac != header.source || !self.facts.iter().any(is_true) {
            let detail = format!("{} at {} from {}", arp.sender_ip, arp.sender_mac, header.source);
            self.violate(at, host, "false ARP delivered", detail);
        } else {
            self.deliveries += 1;
        }
    }

    fn delivered_datagram(&mut self, at: Instant, host: usize, header: &Header, frame: &[u8], meta: Meta) {
        let mut completed = frame.to_vec();
        complete(&mut completed, meta);
        let Some((number, record)) = number_in(frame).and_then(|number| Some((number, self.books.record(number)?)))
        else {
            return self.violate(at, host, "unproved frame delivered", format!("{header:?}"));
        };
        let sender = self.facts[record.from];
        let (is_lie, as_sent) = (record.is_lie, is_padded(&completed, &record.frame));
        if is_lie || header.source != sender.mac {
            self.violate(at, host, "lie delivered", format!("{number:?} from {} says {header:?}", sender.mac));
        } else if !header.destination.is_group() && header.destination != self.facts[host].mac {
            self.violate(at, host, "frame for another host delivered", format!("{number:?} {header:?}"));
        } else if !as_sent {
            self.violate(at, host, "changed frame delivered", format!("{number:?} {header:?}"));
        } else if !self.enter_delivery(at, host, header, number) {
            self.violate(at, host, "frame delivered twice", format!("{number:?} {header:?}"));
        } else {
            self.deliveries += 1;
        }
    }

    /// Enters a delivery; false when there was the same before.
    fn enter_delivery(&mut self, at: Instant, host: usize, header: &Header, number: Number) -> bool {
        if header.destination.is_group() { self.books.deliver_to(number, host) } else { self.books.deliver(number, at) }
    }

    /// A host without link layer got this frame, or a link layer got it from one. Nothing protects it on the way, so it
    /// counts only when it is as it was sent.
    pub fn reached(&mut self, at: Instant, frame: &[u8]) {
        let Some(number) = number_in(frame) else { return };
        if self.books.record(number).is_some_and(|record| is_padded(frame, &record.frame)) {
            self.books.deliver(number, at);
        }
    }
}

/// Whether `delivered` is `sent`, perhaps with zeros behind it up to the shortest frame that a wire carries.
fn is_padded(delivered: &[u8], sent: &[u8]) -> bool {
    let Some((front, padding)) = delivered.split_at_checked(sent.len()) else { return false };
    front == sent && padding.iter().all(|&byte| byte == 0) && (padding.is_empty() || delivered.len() <= PADDED_LEN)
}
