//! Frames that stacks send, and what the wire does to frames.

use std::net::Ipv4Addr;

use bump::{Checksum, Gso, GsoKind, Meta};
use wire::arp::{Arp, Operation};
use wire::checksum::{Sum, pseudo_header_v4};
use wire::cll::PacketType;
use wire::cll::handshake::{set_site_tag, tagged_parts};
use wire::ethernet::{HEADER_LEN, Header};
use wire::{EtherType, MacAddress, ipv4};

use crate::input::Input;
use crate::site;

/// Longest payload of a super-frame, in bytes.
const SUPER_PAYLOAD_MAX: usize = 20_000;

/// The two ends of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) from: (MacAddress, Ipv4Addr),
    pub(super) to: (MacAddress, Ipv4Addr),
}

impl Ends {
    fn ethernet(&self, ethertype: EtherType) -> Vec<u8> {
        Header { destination: self.to.0, source: self.from.0, ethertype }.emit().to_vec()
    }

    fn ipv4(&self, protocol: u8, segment: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        packet[2..4].copy_from_slice(&((ipv4::HEADER_LEN + segment.len()) as u16).to_be_bytes());
        packet.extend(self.from.1.octets());
        packet.extend(self.to.1.octets());
        ipv4::fill_checksum(&mut packet);
        packet.extend(segment);
        [self.ethernet(EtherType::IPV4), packet].concat()
    }

    /// A UDP datagram without a checksum, which RFC 768 allows.
    pub(super) fn datagram(&self, payload: &[u8]) -> Vec<u8> {
        let mut segment = vec![0x12, 0x34, 0x56, 0x78];
        segment.extend(((8 + payload.len()) as u16).to_be_bytes());
        segment.extend([0, 0]);
        segment.extend(payload);
        self.ipv4(17, &segment)
    }

    /// A datagram to a group, whose length and group the input chooses; up to what needs several parts.
    pub(super) fn shout(&self, input: &mut Input<'_>) -> Vec<u8> {
        let mut frame = self.datagram(&vec![input.byte(); usize::from(input.word()) % 1400]);
        let group = if input.chance() { MacAddress::BROADCAST } else { MacAddress([1, 0, 0x5e, 0, 0, 0xfb]) };
        frame[..6].copy_from_slice(&group.0);
        frame
    }

    /// A TCP segment or super-frame, its checksum left to be completed.
    pub(super) fn segment(&self, input: &mut Input<'_>, is_super: bool) -> (Vec<u8>, Meta) {
        let len = if is_super { input.below(SUPER_PAYLOAD_MAX) } else { input.below(200) };
        let mut segment = vec![1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
        segment.resize(segment.len() + len, input.byte());
        let sum: Sum = pseudo_header_v4(self.from.1, self.to.1, 6, segment.len() as u16);
        segment[16..18].copy_from_slice(&sum.fold().to_be_bytes());
        let gso = is_super.then(|| Gso { kind: GsoKind::TcpV4, size: input.word() % 1500, ecn: input.chance() });
        let checksum = Checksum::Partial { start: 34, offset: 16 };
        (self.ipv4(6, &segment), Meta { checksum, gso, ..Meta::plain() })
    }

    /// An ARP message to the peer or to all, from and about these ends or about some other address.
    pub(super) fn arp(&self, input: &mut Input<'_>) -> Vec<u8> {
        let choice = input.byte();
        let bit = |at: u32| choice >> at & 1 != 0;
        let stranger = Ipv4Addr::new(10, 0, 0, 77);
        let arp = Arp {
            operation: if bit(0) { Operation::Reply } else { Operation::Request },
            sender_mac: self.from.0,
            sender_ip: if bit(1) { self.to.1 } else { self.from.1 },
            target_mac: if bit(2) { self.to.0 } else { MacAddress::ZERO },
            target_ip: if bit(3) { stranger } else { self.to.1 },
        };
        let destination = if bit(4) { self.to.0 } else { MacAddress::BROADCAST };
        let header = Header { destination, source: self.from.0, ethertype: EtherType::ARP };
        [&header.emit()[..], &arp.emit()].concat()
    }

    /// Bytes of the input behind an Ethernet header, with metadata of the input.
    pub(super) fn anything(&self, input: &mut Input<'_>) -> (Vec<u8>, Meta) {
        let meta = input.meta();
        let types = [EtherType::IPV4, EtherType::ARP, EtherType::IPV6, EtherType::VLAN, EtherType::CLL, EtherType(0)];
        let ethertype = types[input.below(types.len())];
        let broadcast = input.below(8) == 1;
        let mut frame = if broadcast { [0xff; 6].to_vec() } else { self.to.0.0.to_vec() };
        frame.extend(self.from.0.0);
        frame.extend(ethertype.0.to_be_bytes());
        frame.extend(input.counted(200));
        if input.below(16) == 1 {
            frame.truncate(input.below(40));
        }
        (frame, meta)
    }
}

/// The stack's answer to an ARP request for its address.
pub(super) fn arp_answer(frame: &[u8], own: (MacAddress, Ipv4Addr)) -> Option<Vec<u8>> {
    let (header, message) = Header::parse(frame).ok()?;
    let asked = Arp::parse(message).ok().filter(|_| header.ethertype == EtherType::ARP)?;
    if asked.operation != Operation::Request || asked.target_ip != own.1 {
        return None;
    }
    let answer = Arp {
        operation: Operation::Reply,
        sender_mac: own.0,
        sender_ip: own.1,
        target_mac: asked.sender_mac,
        target_ip: asked.sender_ip,
    };
    let header = Header { destination: asked.sender_mac, source: own.0, ethertype: EtherType::ARP };
    Some([&header.emit()[..], &answer.emit()].concat())
}

/// Whether it carries a sealed payload.
pub(super) fn is_sealed(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&EtherType::CLL.0.to_be_bytes())
        && frame.get(HEADER_LEN..).map(PacketType::of) == Some(Ok(PacketType::Unicast))
}

/// Changes a few bytes, or the length.
pub(super) fn damage(frame: &mut Vec<u8>, input: &mut Input<'_>) {
    for _ in 0..=input.below(4) {
        let at = usize::from(input.word());
        let change = input.byte();
        if let Some(len) = std::num::NonZero::new(frame.len()) {
            frame[at % len] ^= change;
        }
    }
    match input.below(8) {
        1 => frame.truncate(input.below(frame.len() + 1)),
        2 => frame.extend(input.counted(64)),
        _ => {}
    }
}

/// Gives whatever has a site tag a right one, as every host of the site can.
pub(super) fn retag(frame: &mut [u8]) {
    if frame.len() < HEADER_LEN + wire::cll::SITE_TAG_AT + wire::cll::SITE_TAG_LEN || is_sealed(frame) {
        return;
    }
    let (ethernet, message) = frame.split_at_mut(HEADER_LEN);
    let [before, after] = tagged_parts(message);
    let label: &[u8] = match PacketType::of(message) {
        Ok(PacketType::GroupFrame | PacketType::Announcement | PacketType::Question) => b"broadcast",
        _ => b"handshake",
    };
    let tag = site::identities()[0].site_key().frame_tag(label, &[ethernet, before, after]);
    set_site_tag(message, &tag);
}
