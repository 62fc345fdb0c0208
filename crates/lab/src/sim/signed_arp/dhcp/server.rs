//! A DHCP server program: each client keeps its address while its lease lasts, and gets any free one otherwise.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{Generator, Instant};
use wire::MacAddress;
use wire::dhcp::{MessageType, OPTION_REQUESTED, OPTION_SERVER, View};

use super::message::Words;

/// How long an offered address is kept for its client.
const OFFER_HELD: Duration = Duration::from_secs(20);

/// The program. What it knows outlives the daemon beside it.
#[derive(Debug)]
pub struct Server {
    mac: MacAddress,
    ip: Ipv4Addr,
    pool: Vec<Ipv4Addr>,
    lease_s: u32,
    /// Who has an address or was offered it, and until when.
    held: BTreeMap<Ipv4Addr, (MacAddress, Instant)>,
}

impl Server {
    /// A server that has given nothing yet.
    pub fn new(mac: MacAddress, ip: Ipv4Addr, pool: Vec<Ipv4Addr>, lease_s: u32) -> Server {
        Server { mac, ip, pool, lease_s, held: BTreeMap::new() }
    }

    /// Takes a message; returns its answer.
    pub fn receive(&mut self, now: Instant, random: &mut Generator, frame: &[u8]) -> Option<Vec<u8>> {
        let view = View::new(frame).ok()?;
        let client = view.chaddr();
        let meant = view.address_option(OPTION_SERVER).ok()?;
        match view.kind() {
            MessageType::Discover => {
                let offered = self.choose(now, random, client)?;
                self.held.entry(offered).or_insert((client, now + OFFER_HELD));
                Some(self.answer(MessageType::Offer, &view, offered))
            }
            MessageType::Request if meant.is_none_or(|server| server == self.ip) => self.grant(now, &view),
            MessageType::Release => {
                self.held.retain(|ip, (holder, _)| *ip != view.ciaddr() || *holder != client);
                None
            }
            _ => None,
        }
    }

    fn grant(&mut self, now: Instant, view: &View<'_>) -> Option<Vec<u8>> {
        let requested = view.address_option(OPTION_REQUESTED).ok()?.unwrap_or(view.ciaddr());
        if !self.pool.contains(&requested) {
            return None;
        }
        let is_free = self.holder(now, requested).is_none_or(|holder| holder == view.chaddr());
        if !is_free {
            return Some(self.answer(MessageType::Nak, view, Ipv4Addr::UNSPECIFIED));
        }
        let until = now + Duration::from_secs(u64::from(self.lease_s));
        self.held.insert(requested, (view.chaddr(), until));
        Some(self.answer(MessageType::Ack, view, requested))
    }

    fn holder(&self, now: Instant, ip: Ipv4Addr) -> Option<MacAddress> {
        self.held.get(&ip).filter(|(_, until)| now < *until).map(|(holder, _)| *holder)
    }

    fn choose(&mut self, now: Instant, random: &mut Generator, client: MacAddress) -> Option<Ipv4Addr> {
        self.held.retain(|_, (_, until)| now < *until);
        if let Some((ip, _)) = self.held.iter().find(|(_, (holder, _))| *holder == client) {
            return Some(*ip);
        }
        let free: Vec<Ipv4Addr> = self.pool.iter().filter(|ip| !self.held.contains_key(ip)).copied().collect();
        free.get(random.below(free.len() as u64) as usize).copied()
    }

    fn answer(&self, kind: MessageType, view: &View<'_>, given: Ipv4Addr) -> Vec<u8> {
        let lease_s = (kind != MessageType::Nak).then_some(self.lease_s);
        let words = Words::new(kind, self.mac, view.chaddr(), view.xid());
        Words { yiaddr: given, server: Some(self.ip), lease_s, ..words }.frame()
    }
}
