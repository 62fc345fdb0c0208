//! What leaves a link layer towards the wire, and what arrives there.

use std::hash::{DefaultHasher, Hash, Hasher};

use bump::Instant;
use cll::limits;
use wire::EtherType;
use wire::cll::handshake::LANES_MAX;
use wire::cll::resumption::Kind;
use wire::cll::{DataHeader, GroupFrame, Handshake, NONCE_LEN, PacketType, Resumption};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::{Facts, Judge, KeyUse, PASSED, SETTLED};
use crate::sim::agenda::START;
use crate::sim::link_layer::datagram::MARKER;
use crate::sim::link_layer::scenario::Part;

/// In a clean run a key is replaced before it has sealed this many times as many frames as it should.
const WORN_FACTOR: u32 = 2;
/// Frames that may leave while the handshake that replaces it is under way.
const SLACK_FRAMES: u32 = 512;

impl Judge {
    /// The link layer of `host` puts `frame` on the wire.
    pub fn leaves(&mut self, at: Instant, host: usize, frame: &[u8]) {
        let facts = self.facts[host];
        let Ok((header, message)) = Header::parse(frame) else {
            return self.violate(at, host, "runt on the wire", format!("{} bytes", frame.len()));
        };
        if header.source != facts.mac {
            self.violate(at, host, "foreign source on the wire", format!("{}", header.source));
        }
        if header.ethertype != EtherType::CLL {
            return self.leaves_in_clear(at, host, &header);
        }
        if facts.confidential && frame.windows(MARKER.len()).any(|window| window == MARKER) {
            self.violate(at, host, "plain text on the wire", format!("to {}", header.destination));
        }
        match PacketType::of(message) {
            Ok(PacketType::Unicast) => self.leaves_sealed(at, host, &header, frame),
            Ok(PacketType::HandshakeRequest | PacketType::HandshakeReply) => self.leaves_handshake(at, host, message),
            Ok(PacketType::GroupFrame) => self.leaves_to_group(at, host, &header, message),
            // No host of this simulation speaks DHCP; a stack that asks gets its frame dropped.
            Ok(PacketType::Dhcp) => self.violate(at, host, "DHCP on the wire", format!("to {}", header.destination)),
            Ok(PacketType::ResumptionRequest | PacketType::ResumptionReply) => {
                self.leaves_resumption(at, host, message)
            }
            Ok(PacketType::Challenge | PacketType::Announcement | PacketType::Question) => {}
            Err(error) => self.violate(at, host, "unreadable frame on the wire", error.to_string()),
        }
    }

    /// In clear goes what is for a legacy host, and what passes by configuration.
    fn leaves_in_clear(&mut self, at: Instant, host: usize, header: &Header) {
        let to_legacy = |facts: &Facts| facts.part == Part::Legacy && facts.mac == header.destination;
        let passed = self.scenario.passes && header.ethertype == PASSED;
        if !passed && !self.facts.iter().any(to_legacy) {
            let detail = format!("{:?} to {}", header.ethertype, header.destination);
            self.violate(at, host, "clear frame on the wire", detail);
        }
    }

    /// No two frames to groups have one stamp, in whatever life of the host.
    fn leaves_to_group(&mut self, at: Instant, host: usize, header: &Header, message: &[u8]) {
        let Ok(frame) = GroupFrame::parse(message) else {
            return self.violate(at, host, "unreadable frame on the wire", "group frame");
        };
        let stamp = frame.head.stamp;
        let is_new = self.stamps.insert((stamp.incarnation, stamp.time_ms, stamp.counter));
        if !is_new || !header.destination.is_group() {
            self.violate(at, host, "stamp used again", format!("{stamp:?} to {}", header.destination));
        }
    }

    fn leaves_sealed(&mut self, at: Instant, host: usize, header: &Header, frame: &[u8]) {
        let Ok((data, _)) = DataHeader::parse(&frame[ETHERNET_LEN..]) else {
            return self.violate(at, host, "unreadable frame on the wire", "sealed frame");
        };
        let key = (host, header.destination, data.receiver_index);
        let new = KeyUse { since: at, first_sequence: data.sequence, last_sequence: data.sequence };
        let before = self.keys.insert(key, new);
        if let Some(before) = before {
            self.keys.insert(key, KeyUse { last_sequence: data.sequence, ..before });
            self.check_key_use(at, host, &data, before);
        }
        if self.answers.is_unproved(host, base(data.receiver_index)) {
            let detail = format!("index {:08x} to {}", data.receiver_index, header.destination);
            self.violate(at, host, "responder sent before it opened a frame", detail);
        }
        self.sealed.insert(hash(frame));
    }

    /// A number is used once, and a worn key is replaced.
    fn check_key_use(&mut self, at: Instant, host: usize, data: &DataHeader, before: KeyUse) {
        let detail = format!("{} under {:08x}", data.sequence, data.receiver_index);
        if data.sequence <= before.last_sequence {
            return self.violate(at, host, "sequence number used again", detail);
        }
        let used = data.sequence - before.first_sequence;
        let used_max = self.scenario.rekey_after_frames.map_or(u32::MAX, |frames| frames.saturating_mul(WORN_FACTOR));
        // A key that is worn sooner than this lives on, because its successor would count as simultaneous with it.
        let is_old = at.since(before.since) > limits::SIMULTANEOUS + limits::SWEEP_INTERVAL;
        if self.scenario.clean && is_old && used > used_max.saturating_add(SLACK_FRAMES) {
            self.violate(at, host, "key used for too long", detail);
        }
    }

    fn leaves_handshake(&mut self, at: Instant, host: usize, message: &[u8]) {
        let Ok(handshake) = Handshake::parse(message) else {
            return self.violate(at, host, "unreadable frame on the wire", "handshake");
        };
        let is_request = handshake.kind == PacketType::HandshakeRequest;
        self.offers(at, host, is_request, handshake.nonce, handshake.offer.receiver_index);
    }

    fn leaves_resumption(&mut self, at: Instant, host: usize, message: &[u8]) {
        let Ok(resumption) = Resumption::parse(message) else {
            return self.violate(at, host, "unreadable frame on the wire", "resumption");
        };
        let is_request = matches!(resumption.kind, Kind::Request(_));
        self.offers(at, host, is_request, resumption.nonce, resumption.offer.receiver_index);
    }

    /// A request or reply offers this receiver index.
    fn offers(&mut self, at: Instant, host: usize, is_request: bool, nonce: [u8; NONCE_LEN], index: u32) {
        if is_request {
            self.answers.asked(nonce, index);
            self.requests_when_settled += u64::from(at.since(START) > SETTLED && at < self.scenario.traffic_stops());
        } else {
            self.answers.answered(host, nonce, index);
        }
    }

    /// The link layer of `host` is about to see `frame`.
    pub fn arrives(&mut self, host: usize, frame: &[u8]) {
        let sealed = frame.get(ETHERNET_LEN..).and_then(|message| DataHeader::parse(message).ok());
        if let Some((data, _)) = sealed
            && self.sealed.contains(&hash(frame))
        {
            self.answers.heard(host, base(data.receiver_index));
        }
    }
}

fn base(receiver_index: u32) -> u32 {
    receiver_index & !u32::from(LANES_MAX - 1)
}

fn hash(frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.hash(&mut hasher);
    hasher.finish()
}
