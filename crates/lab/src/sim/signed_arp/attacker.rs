//! Who sees what the LAN lets him see and sends whatever he likes; perhaps with keys that the site believes (`forger`).

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bump::Generator;
use identity::distributor::RequestMaster;
use wire::arp::{Arp, Operation};
use wire::dhcp::{MessageType, View};
use wire::ethernet::{HEADER_LEN, Header};
use wire::sarp::data::{Answer, NONCE_LEN, Question, Record};
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

use super::dhcp::message::Words;
use super::forger::{Forger, OWN};
use super::stack::{arp_frame, framed};
use crate::sim::captured::{Captured, cut, flip_bits, mutate};

/// Most frames of one burst.
const BURST_MAX: u64 = 20;
/// Frames of a flood.
const FLOOD: usize = 200;

/// The attacker.
pub struct Attacker {
    random: Generator,
    captured: Captured,
    /// The oldest signed reply of each address to each card.
    first_replies: BTreeMap<(Ipv4Addr, MacAddress), Vec<u8>>,
    victims: Vec<(MacAddress, Ipv4Addr)>,
    distributors: Vec<(MacAddress, Ipv4Addr)>,
    /// What he can sign with.
    pub forgers: Vec<Forger>,
    /// What was asked of distributors last, of hosts last, and of DHCP servers last.
    asked_distributor: Option<Vec<u8>>,
    asked_host: Option<Vec<u8>>,
    asked_server: Option<Vec<u8>>,
}

impl Attacker {
    /// An attacker on the LAN of `victims`, some of whom are distributors.
    pub fn new(
        victims: Vec<(MacAddress, Ipv4Addr)>,
        distributors: Vec<(MacAddress, Ipv4Addr)>,
        random: Generator,
    ) -> Attacker {
        let (captured, first_replies) = (Captured::default(), BTreeMap::new());
        let [asked_distributor, asked_host, asked_server] = [None, None, None];
        let forgers = Vec::new();
        Attacker {
            random,
            captured,
            first_replies,
            victims,
            distributors,
            forgers,
            asked_distributor,
            asked_host,
            asked_server,
        }
    }

    /// He sees a frame; what he sends at once comes back. `stamp` is the time as most S-ARP clocks show it.
    pub fn see(&mut self, stamp: u64, frame: &[u8], attacks: bool) -> Vec<Vec<u8>> {
        let Ok((header, message)) = Header::parse(frame) else { return Vec::new() };
        if attacks {
            self.captured.see(&mut self.random, frame);
        }
        if View::new(frame).is_ok_and(|view| view.kind().operation() == wire::dhcp::Operation::Request) {
            self.asked_server = Some(frame.to_vec());
        }
        if header.ethertype != EtherType::ARP {
            return Vec::new();
        }
        match Message::parse(message) {
            Ok(asked) if matches!(asked.kind, Kind::TimeRequest | Kind::KeyRequest) => {
                self.asked_distributor = Some(frame.to_vec());
                Vec::new()
            }
            _ => match Arp::parse(message) {
                Ok(arp) if arp.operation == Operation::Reply => {
                    self.first_replies.entry((arp.sender_ip, arp.target_mac)).or_insert_with(|| frame.to_vec());
                    Vec::new()
                }
                Ok(arp) => {
                    self.asked_host = Some(frame.to_vec());
                    self.interrupt(stamp, message, &arp, attacks)
                }
                Err(_) => Vec::new(),
            },
        }
    }

    /// Answers a question before its owner can; who has a key of the owner's does so to the end.
    fn interrupt(&mut self, stamp: u64, question: &[u8], arp: &Arp, attacks: bool) -> Vec<Vec<u8>> {
        let mut answers = Vec::new();
        for forger in &self.forgers {
            let speaks_for_it = forger.ip == arp.target_ip;
            if (speaks_for_it && self.random.chance(2)) || (attacks && self.random.chance(6)) {
                let from_own = !attacks && forger.is_copy;
                answers.extend(forger.answer(&mut self.random, stamp, question, from_own));
            }
        }
        if attacks && self.random.chance(4) {
            answers.extend(self.first_replies.get(&(arp.target_ip, arp.sender_mac)).cloned());
        }
        if attacks && self.random.chance(6) {
            answers.push(self.false_reply(arp));
        }
        answers
    }

    fn false_reply(&mut self, question: &Arp) -> Vec<u8> {
        let (target_mac, target_ip) = (question.sender_mac, question.sender_ip);
        let sender_mac = OWN.0;
        let reply =
            Arp { operation: Operation::Reply, sender_mac, sender_ip: question.target_ip, target_mac, target_ip };
        arp_frame(target_mac, sender_mac, &reply)
    }

    /// What he sends now.
    pub fn deed(&mut self, stamp: u64) -> Vec<Vec<u8>> {
        match self.random.below(14) {
            0..=2 => self.replay(),
            3 => self.altered(|frame, random| flip_bits(frame, random)),
            4 => self.altered(cut),
            5 => self.altered(|frame, random| mutate(frame, random)),
            6 => self.altered(tag),
            7 => self.splice(),
            8 => vec![self.forged_arp()],
            9 => self.false_distributor(stamp).into_iter().collect(),
            10 => self.rogue_server(),
            11 => vec![self.false_request()],
            12 if self.random.chance(20) => self.flood(),
            _ => self.forged_by_key(stamp),
        }
    }

    /// Forged ARP, or what a host asked a distributor, again and again.
    fn flood(&mut self) -> Vec<Vec<u8>> {
        match self.asked_distributor.clone().filter(|_| self.random.chance(2)) {
            Some(asked) => vec![asked; FLOOD],
            None => (0..FLOOD).map(|_| self.forged_arp()).collect(),
        }
    }

    fn any_of(&mut self, from: &[(MacAddress, Ipv4Addr)]) -> (MacAddress, Ipv4Addr) {
        from.get(self.random.below(from.len() as u64) as usize).copied().unwrap_or(OWN)
    }

    fn any_victim(&mut self) -> (MacAddress, Ipv4Addr) {
        let victims = std::mem::take(&mut self.victims);
        let victim = self.any_of(&victims);
        self.victims = victims;
        victim
    }

    /// The same bytes again, one frame or a row of them, perhaps to another.
    fn replay(&mut self) -> Vec<Vec<u8>> {
        let count = if self.random.chance(8) { 1 + self.random.below(BURST_MAX) } else { 1 };
        let to = self.random.chance(4).then(|| self.any_victim().0);
        let mut frames: Vec<Vec<u8>> = (0..count).filter_map(|_| self.captured.any(&mut self.random)).collect();
        if let Some(to) = to {
            frames.iter_mut().filter_map(|frame| frame.get_mut(..6)).for_each(|place| place.copy_from_slice(&to.0));
        }
        frames
    }

    fn altered(&mut self, alter: impl FnOnce(&mut Vec<u8>, &mut Generator)) -> Vec<Vec<u8>> {
        let Some(mut frame) = self.captured.any(&mut self.random).filter(|frame| !frame.is_empty()) else {
            return Vec::new();
        };
        alter(&mut frame, &mut self.random);
        vec![frame]
    }

    /// A captured frame with the addresses, the sender or the end of another.
    fn splice(&mut self) -> Vec<Vec<u8>> {
        let both = (self.captured.any(&mut self.random), self.captured.any(&mut self.random));
        let (Some(mut frame), Some(other)) = both else { return Vec::new() };
        let range = match self.random.below(5) {
            0 => 0..6,
            1 => 6..12,
            2 => HEADER_LEN + 8..HEADER_LEN + 18,
            3 => HEADER_LEN + 18..HEADER_LEN + 28,
            _ => HEADER_LEN + 28..frame.len().min(other.len()),
        };
        if let (Some(place), Some(bytes)) = (frame.get_mut(range.clone()), other.get(range)) {
            place.copy_from_slice(bytes);
        }
        vec![frame]
    }

    /// "I am that host", as a reply, a question or an announcement, under his own or the victim's address.
    fn forged_arp(&mut self) -> Vec<u8> {
        let ((target_mac, target_ip), (claimed_mac, claimed_ip)) = (self.any_victim(), self.any_victim());
        let sender_mac = if self.random.chance(3) { claimed_mac } else { OWN.0 };
        let operation = if self.random.chance(2) { Operation::Request } else { Operation::Reply };
        let target_ip = if self.random.chance(4) { claimed_ip } else { target_ip };
        let to = if self.random.chance(3) { MacAddress::BROADCAST } else { target_mac };
        arp_frame(to, sender_mac, &Arp { operation, sender_mac, sender_ip: claimed_ip, target_mac, target_ip })
    }

    /// An answer in a distributor's name to what was asked last, with the right nonce and a signature of his own.
    fn false_distributor(&mut self, stamp: u64) -> Option<Vec<u8>> {
        let asked = self.asked_distributor.clone()?;
        let message = Message::parse(asked.get(HEADER_LEN..)?).ok()?;
        let question = Question::parse(message.data).ok()?;
        let key = self.forgers.first().map(|forger| forger.public_key())?;
        let record = Record { algorithm: 1, mac: None, key: &key }.emit();
        let (kind, rest) = match message.kind {
            Kind::TimeRequest => (Kind::TimeReply, Vec::new()),
            _ if self.random.chance(2) => (Kind::KeyInvalid, Vec::new()),
            _ => (Kind::KeyReply, record),
        };
        let shifted = stamp.wrapping_add(self.random.below(1 << 20) << 32);
        let (host, nonce) = (question.host, question.nonce);
        let data = Answer { fraction: shifted as u32, host, nonce, rest: &rest }.emit();
        let arp = Arp {
            operation: Operation::Reply,
            sender_mac: MacAddress::ZERO,
            sender_ip: message.arp.target_ip,
            target_mac: message.arp.sender_mac,
            target_ip: message.arp.sender_ip,
        };
        let seconds = (shifted >> 32) as u32;
        let unsigned = Message { arp, kind, seconds, data: &data, signature: &[] }.signed_bytes();
        let signature = self.forgers.first()?.sign(&unsigned)?;
        let distributors = std::mem::take(&mut self.distributors);
        let from = self.any_of(&distributors).0;
        self.distributors = distributors;
        Some(framed(message.arp.sender_mac, from, &seal(unsigned, &signature)))
    }

    /// A request to a distributor under a key that nobody has.
    fn false_request(&mut self) -> Vec<u8> {
        let distributors = std::mem::take(&mut self.distributors);
        let (to, ip) = self.any_of(&distributors);
        self.distributors = distributors;
        let host = 1 + self.random.below(12);
        let data = Question { host, nonce: self.random.bytes::<NONCE_LEN>() }.emit();
        let kind = if self.random.chance(2) { Kind::TimeRequest } else { Kind::KeyRequest };
        let target_ip = if kind == Kind::KeyRequest { self.any_victim().1 } else { ip };
        let arp = Arp { operation: Operation::Request, sender_mac: OWN.0, sender_ip: OWN.1, target_mac: to, target_ip };
        let unsigned = Message { arp, kind, seconds: 0, data: &data, signature: &[] }.signed_bytes();
        let credential = RequestMaster::from_bytes(self.random.bytes()).key_of(host).credential(&unsigned);
        framed(to, OWN.0, &seal(unsigned, &credential))
    }

    /// Answers as a DHCP server to what was asked last, or speaks for a client that has an address.
    fn rogue_server(&mut self) -> Vec<Vec<u8>> {
        let Some(asked) = self.asked_server.clone() else { return Vec::new() };
        let Ok(view) = View::new(&asked) else { return Vec::new() };
        let kinds = [MessageType::Offer, MessageType::Ack, MessageType::Nak, MessageType::Release];
        let kind = kinds[self.random.below(4) as usize];
        let (_, given) = self.any_victim();
        let words = Words::new(kind, OWN.0, view.chaddr(), view.xid());
        let frame = match kind {
            MessageType::Release => Words { ciaddr: given, server: Some(given), ..words }.frame(),
            _ => Words { yiaddr: given, server: Some(OWN.1), lease_s: Some(86_400), ..words }.frame(),
        };
        vec![frame]
    }

    /// Whatever an enrolled liar, or who has a stolen key, can do.
    fn forged_by_key(&mut self, stamp: u64) -> Vec<Vec<u8>> {
        let at = self.random.below(self.forgers.len() as u64) as usize;
        let (victim, other) = (self.any_victim(), self.any_victim());
        let (asked_host, asked_server) = (self.asked_host.clone(), self.asked_server.clone());
        let Some(forger) = self.forgers.get(at) else { return Vec::new() };
        let random = &mut self.random;
        match random.below(6) {
            0 => asked_host.and_then(|frame| forger.answer(random, stamp, frame.get(HEADER_LEN..)?, false)),
            1 => forger.announcement(random, stamp, victim.1),
            2 => forger.request(random, &self.distributors, victim.1),
            3 => asked_server.and_then(|frame| forger.false_reply(random, stamp, &frame, victim.1)),
            4 => forger.lease_request(random, stamp, victim.1, Some(other.0)),
            _ => forger.lease_request(random, stamp, victim.1, None),
        }
        .into_iter()
        .collect()
    }
}

/// A VLAN tag in front, which some kernels look through.
fn tag(frame: &mut Vec<u8>, random: &mut Generator) {
    if frame.len() >= HEADER_LEN {
        let tci = if random.chance(2) { [0, 0] } else { [0, 7] };
        frame.splice(12..12, [EtherType::VLAN.0.to_be_bytes(), tci].concat());
    }
}
