//! A key that the site believes, in bad hands: an enrolled host that lies, or the copy of an honest host's key.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::Generator;
use identity::distributor::RequestKey;
use identity::hash::sha256;
use identity::signing::SigningKey;
use identity::site_key::SiteKey;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::dhcp::proof::{Claim, Maker, Proof};
use wire::dhcp::{MessageType, View};
use wire::sarp::data::{NONCE_LEN, Question, Resolution};
use wire::sarp::{Kind, Message, seal};

use super::dhcp::message::Words;
use super::stack::framed;

/// The hardware and IP address of his own machine.
pub const OWN: (MacAddress, Ipv4Addr) = (MacAddress([2, 0, 0, 0, 0, 0xee]), Ipv4Addr::new(10, 0, 0, 0xee));

/// Who has a key.
pub struct Forger {
    /// The address that the key belongs to.
    pub ip: Ipv4Addr,
    /// The hardware address that goes with it.
    pub mac: MacAddress,
    /// Whether it is the copy of an honest host's key.
    pub is_copy: bool,
    /// Whether the site binds the hardware address.
    pub is_bound: bool,
    /// The number of the host in the repository.
    pub host: u64,
    /// The key.
    pub key: Arc<SigningKey>,
    /// What its requests to distributors are proved with.
    pub request_key: RequestKey,
    /// What all hosts of the site share.
    pub site_key: SiteKey,
}

impl Forger {
    /// The public half of the key.
    pub fn public_key(&self) -> Vec<u8> {
        self.key.record_key().map(|(_, key)| key.to_vec()).unwrap_or_default()
    }

    /// A signature.
    pub fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.key.sign(message).ok()
    }

    /// A signed answer to a question, with its nonce and a good stamp: of the owner's address, or of the asked one, at a
    /// machine of the attacker's or at the owner's.
    /// A copy that is to leave the owner's port alone is used from the attacker's machine only.
    pub fn answer(&self, random: &mut Generator, stamp: u64, question: &[u8], from_own: bool) -> Option<Vec<u8>> {
        let asked = Arp::parse(question).ok()?;
        let nonce = Message::parse(question).ok().and_then(|message| Resolution::parse(message.data).ok()?.nonce);
        let sender_ip = if random.chance(3) { asked.target_ip } else { self.ip };
        let sender_mac = if from_own || random.chance(2) { OWN.0 } else { self.mac };
        let (target_mac, target_ip) = (asked.sender_mac, asked.sender_ip);
        let arp = Arp { operation: Operation::Reply, sender_mac, sender_ip, target_mac, target_ip };
        self.resolution(random, stamp, arp, nonce, target_mac)
    }

    /// "I am at another hardware address now", for the owner's address or another's.
    pub fn announcement(&self, random: &mut Generator, stamp: u64, victim: Ipv4Addr) -> Option<Vec<u8>> {
        let sender_ip = if random.chance(2) { victim } else { self.ip };
        let target_ip = if random.chance(2) { victim } else { sender_ip };
        let sender_mac = if random.chance(2) { OWN.0 } else { self.mac };
        let arp = Arp { operation: Operation::Request, sender_mac, sender_ip, target_mac: MacAddress::ZERO, target_ip };
        self.resolution(random, stamp, arp, None, MacAddress::BROADCAST)
    }

    fn resolution(
        &self,
        random: &mut Generator,
        stamp: u64,
        arp: Arp,
        nonce: Option<[u8; 8]>,
        to: MacAddress,
    ) -> Option<Vec<u8>> {
        // Up to two seconds ahead, so that it is newer than what the owner says himself.
        let stamp = stamp + random.below(2 << 32);
        let data = Resolution { fraction: Some(stamp as u32), nonce }.emit();
        let seconds = (stamp >> 32) as u32;
        let unsigned = Message { arp, kind: Kind::Resolution, seconds, data: &data, signature: &[] }.signed_bytes();
        let signature = self.sign(&unsigned)?;
        Some(framed(to, arp.sender_mac, &seal(unsigned, &signature)))
    }

    /// A request to a distributor with a right credential.
    pub fn request(
        &self,
        random: &mut Generator,
        distributors: &[(MacAddress, Ipv4Addr)],
        about: Ipv4Addr,
    ) -> Option<Vec<u8>> {
        let (to, _) = *distributors.get(random.below(distributors.len() as u64) as usize)?;
        let data = Question { host: self.host, nonce: random.bytes::<NONCE_LEN>() }.emit();
        let arp = Arp {
            operation: Operation::Request,
            sender_mac: OWN.0,
            sender_ip: self.ip,
            target_mac: to,
            target_ip: about,
        };
        let unsigned = Message { arp, kind: Kind::KeyRequest, seconds: 0, data: &data, signature: &[] }.signed_bytes();
        let credential = self.request_key.credential(&unsigned);
        Some(framed(to, OWN.0, &seal(unsigned, &credential)))
    }

    /// A DHCP message of its own for an address that another has, in the name of its own card or of another.
    pub fn lease_request(
        &self,
        random: &mut Generator,
        stamp: u64,
        wanted: Ipv4Addr,
        chaddr: Option<MacAddress>,
    ) -> Option<Vec<u8>> {
        // Where nothing is bound, a host may use any card, so it would be no lie.
        let chaddr = chaddr.filter(|_| self.is_bound).unwrap_or(self.mac);
        let kinds = [MessageType::Discover, MessageType::Request, MessageType::Release, MessageType::Decline];
        let kind = kinds[random.below(4) as usize];
        let words = Words::new(kind, chaddr, chaddr, random.number());
        let frame = match kind {
            MessageType::Discover => words.frame(),
            MessageType::Release => Words { ciaddr: wanted, ..words }.frame(),
            _ => Words { requested: Some(wanted), ..words }.frame(),
        };
        self.proved(random, stamp, Maker::Client, self.host, &frame, random_nonce)
    }

    /// A DHCP reply in the name of a server, with the right nonce, to what was asked last.
    pub fn false_reply(&self, random: &mut Generator, stamp: u64, asked: &[u8], given: Ipv4Addr) -> Option<Vec<u8>> {
        let view = View::new(asked).ok()?;
        let option = view.option(wire::dhcp::OPTION_PROOF)?;
        let nonce = Proof::parse(&option).ok()?.nonce;
        let kind = if view.kind() == MessageType::Discover { MessageType::Offer } else { MessageType::Ack };
        let words = Words::new(kind, OWN.0, view.chaddr(), view.xid());
        let frame = Words { yiaddr: given, server: Some(self.ip), lease_s: Some(3600), ..words }.frame();
        let name = dhcp::proof::key_name(&self.public_key());
        self.proved(random, stamp, Maker::Server, name, &frame, move |_| nonce)
    }

    fn proved(
        &self,
        random: &mut Generator,
        stamp: u64,
        maker: Maker,
        who: u64,
        frame: &[u8],
        nonce: impl FnOnce(&mut Generator) -> [u8; NONCE_LEN],
    ) -> Option<Vec<u8>> {
        let view = View::new(frame).ok()?;
        let nonce = nonce(random);
        let claim = Claim::of(&view, who, stamp, nonce, sha256(&[&view.canonical()])).ok()?;
        let signed = dhcp::proof::signed_bytes(maker, &claim);
        let tag = self.site_key.tag(b"s-dhcp", &[&signed]);
        let signature = self.sign(&signed)?;
        view.with_proof(&Proof { maker, who, stamp, nonce, tag, signature: &signature }.emit())
    }
}

fn random_nonce(random: &mut Generator) -> [u8; NONCE_LEN] {
    random.bytes()
}
