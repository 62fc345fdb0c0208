//! A host without certificate that sees what the LAN lets it see and sends whatever it likes.

use std::net::Ipv4Addr;

use bump::Generator;
use identity::site_key::SiteKey;
use wire::arp::{Arp, Operation};
use wire::cll::data;
use wire::cll::handshake::{SIGNED_FROM, set_site_tag, tagged_parts};
use wire::cll::{DataHeader, PacketType};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::{EtherType, MacAddress};

use super::datagram::{Number, Parcel, Shape};
use super::stack::arp_frame;
use crate::sim::captured::{Captured, cut, flip_bits, mutate};

/// Most frames of one burst.
const BURST_MAX: u64 = 20;
/// Frames of a flood.
const FLOOD: usize = 200;

/// The attacker.
pub struct Attacker {
    random: Generator,
    captured: Captured,
    victims: Vec<(MacAddress, Ipv4Addr)>,
    /// The key that all hosts of the site share, if a host gave it away.
    site_key: Option<SiteKey>,
    /// Numbers in forged datagrams; no stack ever sends them.
    next: u64,
}

impl Attacker {
    /// An attacker on the LAN of `victims`.
    pub fn new(victims: Vec<(MacAddress, Ipv4Addr)>, site_key: Option<SiteKey>, random: Generator) -> Attacker {
        Attacker { random, captured: Captured::default(), victims, site_key, next: 1 << 60 }
    }

    /// The site key is of no use any more: who has it can keep others from talking, though not lie to them.
    pub fn forget_site_key(&mut self) {
        self.site_key = None;
    }

    /// It sees a frame.
    pub fn see(&mut self, frame: &[u8]) {
        self.captured.see(&mut self.random, frame);
    }

    /// What it sends now.
    pub fn deed(&mut self) -> Vec<Vec<u8>> {
        match self.random.below(14) {
            0 | 1 => self.replay(),
            2 => self.altered(|frame, _| reflect(frame)),
            3 => self.splice(),
            4 => self.altered(|frame, random| flip_bits(frame, random)),
            5 => self.altered(cut),
            6 => self.altered(|frame, random| mutate(frame, random)),
            7 => vec![self.noise()],
            8 => vec![self.unknown_index()],
            9 => vec![self.forged_arp()],
            10 => vec![self.forged_datagram()],
            11 => self.retagged(),
            12 if self.random.chance(20) => (0..FLOOD).map(|_| self.unknown_index()).collect(),
            _ => self.altered(|frame, random| clone_address(frame, random)),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn any_captured(&mut self) -> Option<Vec<u8>> {
        self.captured.any(&mut self.random)
    }

    fn any_victim(&mut self) -> (MacAddress, Ipv4Addr) {
        let at = self.below(self.victims.len());
        self.victims[at]
    }

    /// The same bytes again, one frame or a row of them.
    fn replay(&mut self) -> Vec<Vec<u8>> {
        let count = if self.random.chance(8) { 1 + self.random.below(BURST_MAX) } else { 1 };
        (0..count).filter_map(|_| self.any_captured()).collect()
    }

    fn altered(&mut self, alter: impl FnOnce(&mut Vec<u8>, &mut Generator)) -> Vec<Vec<u8>> {
        let Some(mut frame) = self.any_captured() else { return Vec::new() };
        alter(&mut frame, &mut self.random);
        vec![frame]
    }

    /// A captured frame with the addresses or the index of another.
    fn splice(&mut self) -> Vec<Vec<u8>> {
        let (Some(mut frame), Some(other)) = (self.any_captured(), self.any_captured()) else { return Vec::new() };
        let range = match self.random.below(5) {
            0 => 0..6,
            1 => 6..12,
            2 => 0..12,
            3 => 16..20,
            _ => 16..24,
        };
        if let (Some(place), Some(bytes)) = (frame.get_mut(range.clone()), other.get(range)) {
            place.copy_from_slice(bytes);
        }
        vec![frame]
    }

    /// A captured message with a site tag, changed behind the site tag, which is right again.
    fn retagged(&mut self) -> Vec<Vec<u8>> {
        let is_tagged = |frame: &&Vec<u8>| {
            let kind = frame.get(ETHERNET_LEN..).map(PacketType::of);
            matches!(kind, Some(Ok(kind)) if kind != PacketType::Unicast)
        };
        let captured: Vec<&Vec<u8>> = self.captured.all().iter().filter(is_tagged).collect();
        let chosen = self.random.below(captured.len() as u64) as usize;
        let (Some(frame), Some(site_key)) = (captured.get(chosen), &self.site_key) else { return Vec::new() };
        let mut frame = frame.to_vec();
        let first = ETHERNET_LEN + SIGNED_FROM;
        if frame.len() > first {
            let at = first + self.random.below((frame.len() - first) as u64) as usize;
            frame[at] ^= 1 << self.random.below(8);
        }
        let (ethernet, message) = frame.split_at_mut(ETHERNET_LEN);
        let [before, after] = tagged_parts(message);
        let label: &[u8] = match PacketType::of(message) {
            Ok(PacketType::GroupFrame | PacketType::Announcement | PacketType::Question) => b"broadcast",
            _ => b"handshake",
        };
        let tag = site_key.frame_tag(label, &[ethernet, before, after]);
        set_site_tag(message, &tag);
        vec![frame]
    }

    /// Random bytes under our EtherType, or under any.
    fn noise(&mut self) -> Vec<u8> {
        let (to, _) = self.any_victim();
        let ethertype = if self.random.chance(4) { EtherType(self.random.number() as u16) } else { EtherType::CLL };
        let source = MacAddress(self.random.bytes());
        let mut frame = Header { destination: to, source, ethertype }.emit().to_vec();
        let len = self.below(200);
        frame.extend((0..len).map(|_| self.random.bytes::<1>()[0]));
        if let (Some(first), false) = (frame.get_mut(ETHERNET_LEN), self.random.chance(4)) {
            *first = [0x21, 0x22, 0x23, 0x24, 0x28, 0x29, 0x2a][self.random.below(7) as usize];
        }
        frame
    }

    /// A well-formed sealed frame that nobody sealed, from a random or a cloned address.
    fn unknown_index(&mut self) -> Vec<u8> {
        let (destination, _) = self.any_victim();
        let mut source = MacAddress(self.random.bytes());
        source.0[0] &= 0xfe;
        if self.random.chance(2) {
            source = self.any_victim().0;
        }
        let header = DataHeader {
            receiver_index: self.random.number(),
            sequence: self.random.number(),
            spin: self.random.number(),
            slow_nonce: None,
        };
        let mut frame = Header { destination, source, ethertype: EtherType::CLL }.emit().to_vec();
        frame.resize(ETHERNET_LEN + data::HEADER_LEN, 0);
        header.emit(&mut frame[ETHERNET_LEN..]);
        frame.extend(self.random.bytes::<64>());
        frame
    }

    /// "I am that host", as a reply, a request or a gratuitous announcement, under its own or the victim's address.
    fn forged_arp(&mut self) -> Vec<u8> {
        let ((target_mac, target_ip), (claimed_mac, claimed_ip)) = (self.any_victim(), self.any_victim());
        let own = MacAddress([2, 0, 0, 0, 0, 0xee]);
        let sender_mac = if self.random.chance(3) { claimed_mac } else { own };
        let operation = if self.random.chance(2) { Operation::Request } else { Operation::Reply };
        let target_ip = if self.random.chance(4) { claimed_ip } else { target_ip };
        let destination = if self.random.chance(3) { MacAddress::BROADCAST } else { target_mac };
        arp_frame(destination, &Arp { operation, sender_mac, sender_ip: claimed_ip, target_mac, target_ip })
    }

    /// A plain datagram in another's name.
    fn forged_datagram(&mut self) -> Vec<u8> {
        let ((to, destination), (from, source)) = (self.any_victim(), self.any_victim());
        self.next += 1;
        let shape = if self.random.chance(3) {
            Shape::Raw { payload_len: 40 }
        } else {
            Shape::Udp { payload_len: 60, partial: false }
        };
        let parcel = Parcel { first: Number(self.next), shape, source, destination, port: 53, secret: false };
        parcel.pack(from, to).bytes
    }
}

fn reflect(frame: &mut [u8]) {
    if let Some(addresses) = frame.get_mut(..12) {
        addresses.rotate_left(6);
    }
}

/// The victim's own address as a source, or everybody as destination.
fn clone_address(frame: &mut [u8], random: &mut Generator) {
    let Ok((mut header, _)) = Header::parse(frame) else { return };
    if random.chance(2) {
        header.source = header.destination;
    } else {
        header.destination = MacAddress::BROADCAST;
    }
    frame[..ETHERNET_LEN].copy_from_slice(&header.emit());
}
