//! Receivers as they were published, each with its own mind about what overlaps: hosts that reassemble fragments and streams by
//! one of seven policies. They need no machine, so they are what most cases run against; and since they answer nobody they can
//! listen beside a real host, as an intrusion detection system does.

use std::collections::HashMap;

use wire::layer::protocol::{TCP, UDP};
use wire::layer::{self};
use wire::{EtherType, ipv4, ipv6, tcp, udp};

use super::packet::{ETHERNET_LEN, Packet, Segment, Version, has_right_checksum, turned};
use super::{Carrier, Reading, Receiver};
use crate::failure::Failure;

// One text of the published policies for the scrubber's own tests and for these.
#[path = "../../../scrub/tests/receivers/ip.rs"]
mod fragments;
#[path = "../../../scrub/tests/receivers/tcp.rs"]
mod streams;

/// Where the models' own sequence numbers begin.
const FIRST: u32 = 5_000_000;
/// The window that they offer.
const WINDOW: u16 = 60_000;
/// The IPv6 header that makes a fragment, and its length.
const IPV6_FRAGMENT: u8 = 44;
const IPV6_FRAGMENT_LEN: usize = 8;
/// Hops that lie before the model that is further away.
const HOPS_BEFORE: u8 = 3;

/// A policy for fragments, one for streams, and the name of both.
const POLICIES: [(&str, fragments::Policy, streams::Policy); 7] = [
    ("model first", fragments::Policy::First, streams::Policy::First),
    ("model last", fragments::Policy::Last, streams::Policy::Last),
    ("model BSD", fragments::Policy::Bsd, streams::Policy::Bsd),
    ("model BSD-right", fragments::Policy::BsdRight, streams::Policy::Right),
    ("model Linux", fragments::Policy::Linux, streams::Policy::Linux),
    ("model Windows", fragments::Policy::Windows, streams::Policy::Windows),
    ("model Solaris", fragments::Policy::Solaris, streams::Policy::Solaris),
];

/// A connection to a model.
#[derive(Debug)]
struct Connection {
    version: Version,
    source_port: u16,
    receiver: streams::Receiver,
}

/// Flags and sequence number of an answer.
type Answer = (u8, u32);

/// A packet of which fragments wait: version, identification, protocol.
type Waiting = (Version, u32, u8);

/// One model.
#[derive(Debug)]
pub struct Model {
    name: &'static str,
    fragments: fragments::Policy,
    streams: streams::Policy,
    hops_before: u8,
    waiting: HashMap<Waiting, fragments::Host>,
    connection: Option<Connection>,
    datagrams: Vec<Vec<u8>>,
}

impl Model {
    /// One of each policy, and one more that is as the first but some hops further away, where packets whose hops are used up
    /// never arrive.
    #[must_use]
    pub fn all() -> Vec<Model> {
        let models = POLICIES.map(|(name, fragments, streams)| Model::new(name, fragments, streams, 0));
        let far = Model::new("model first, 3 hops on", fragments::Policy::First, streams::Policy::First, HOPS_BEFORE);
        models.into_iter().chain([far]).collect()
    }

    fn new(name: &'static str, fragments: fragments::Policy, streams: streams::Policy, hops_before: u8) -> Model {
        let (waiting, datagrams) = (HashMap::new(), Vec::new());
        Model { name, fragments, streams, hops_before, waiting, connection: None, datagrams }
    }

    /// Hears a frame and says nothing, as one that only listens.
    pub fn listen(&mut self, frame: &[u8]) {
        // What it would answer to is for hosts.
        let _answer = self.hear(frame);
    }

    /// With which flags and sequence number it answers a frame, if it does.
    fn hear(&mut self, frame: &[u8]) -> Option<Answer> {
        let (version, protocol, part, bytes) = self.network_layer(frame)?;
        let whole = match part {
            None => bytes.to_vec(),
            Some((identification, fragment)) => {
                let key = (version, identification, protocol);
                let host = self.waiting.entry(key).or_insert_with(|| fragments::Host::new(self.fragments));
                let whole = host.take(&fragment)?;
                self.waiting.remove(&key);
                whole
            }
        };
        if !has_right_checksum(version, protocol, &whole) {
            return None;
        }
        match protocol {
            TCP => self.hear_segment(version, &whole),
            UDP => {
                self.datagrams.push(udp::View::new(&whole).ok()?.payload().to_vec());
                None
            }
            _ => None,
        }
    }

    fn network_layer<'a>(&self, frame: &'a [u8]) -> Option<Heard<'a>> {
        let packet = frame.get(ETHERNET_LEN..)?;
        let heard = match layer::network_layer(frame)? {
            (EtherType::IPV4, _) => of_v4(packet)?,
            (EtherType::IPV6, _) => of_v6(packet)?,
            _ => return None,
        };
        let hop_limit = packet[if heard.0 == Version::V4 { 8 } else { 7 }];
        (hop_limit > self.hops_before).then_some(heard)
    }

    fn hear_segment(&mut self, version: Version, bytes: &[u8]) -> Option<Answer> {
        let segment = tcp::View::new(bytes).ok()?;
        let has = |flag: u8| segment.flags() & flag != 0;
        if has(tcp::flag::SYN) {
            return self.hear_syn(version, &segment);
        }
        let connection = self.connection.as_mut()?;
        if has(tcp::flag::RST) {
            connection.receiver.hear_reset(segment.sequence());
            return None;
        }
        if !has(tcp::flag::ACK) || segment.source_port() != connection.source_port {
            return None;
        }
        connection.receiver.hear(segment.sequence(), segment.payload(), has(tcp::flag::FIN));
        (!segment.payload().is_empty()).then_some((tcp::flag::ACK, FIRST.wrapping_add(1)))
    }

    /// One connection at a time: a SYN that comes when there is one says nothing new.
    fn hear_syn(&mut self, version: Version, segment: &tcp::View<'_>) -> Option<Answer> {
        if self.connection.is_some() || segment.flags() & tcp::flag::ACK != 0 {
            return None;
        }
        let (first, reading) = (segment.sequence().wrapping_add(1), streams::Reading::OnArrival);
        let receiver = streams::Receiver::new(self.streams, reading, first, WINDOW.into());
        self.connection = Some(Connection { version, source_port: segment.source_port(), receiver });
        Some((tcp::flag::SYN | tcp::flag::ACK, FIRST))
    }
}

impl Connection {
    fn answer(&self, (flags, sequence): Answer) -> Vec<u8> {
        let segment = Segment {
            source_port: self.source_port,
            sequence,
            acknowledgement: self.receiver.acknowledgement(),
            flags,
            options: if flags & tcp::flag::SYN == 0 { Vec::new() } else { vec![2, 4, 5, 0xb4] },
            data: Vec::new(),
        };
        turned(Packet::new(self.version, TCP, 0, segment.bytes(self.version)).frame())
    }
}

/// What a packet is to a host: version, protocol, of what it is a part and which, and its bytes.
type Heard<'a> = (Version, u8, Option<(u32, fragments::Fragment)>, &'a [u8]);

fn of_v4(packet: &[u8]) -> Option<Heard<'_>> {
    let header = ipv4::View::new(packet).ok().filter(ipv4::View::checksum_is_right)?;
    let bytes = header.payload();
    let fragment = || fragments::Fragment {
        offset: header.fragment_offset(),
        bytes: bytes.to_vec(),
        more: header.more_fragments(),
    };
    let part = header.is_fragment().then(|| (header.identification().into(), fragment()));
    Some((Version::V4, header.protocol(), part, bytes))
}

fn of_v6(packet: &[u8]) -> Option<Heard<'_>> {
    let header = ipv6::View::new(packet).ok()?;
    let payload = packet.get(ipv6::HEADER_LEN..)?.get(..header.payload_len().into())?;
    if header.next_header() != IPV6_FRAGMENT {
        let (protocol, start) = header.skip_extensions()?;
        return Some((Version::V6, protocol, None, packet.get(start..ipv6::HEADER_LEN + payload.len())?));
    }
    let (head, bytes) = payload.split_first_chunk::<IPV6_FRAGMENT_LEN>()?;
    let place = u16::from_be_bytes([head[2], head[3]]);
    let identification = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
    let fragment = fragments::Fragment { offset: usize::from(place & !7), bytes: bytes.to_vec(), more: place & 1 != 0 };
    Some((Version::V6, head[0], Some((identification, fragment)), bytes))
}

impl Receiver for Model {
    fn name(&self) -> &str {
        self.name
    }

    fn cannot(&self, _carrier: Carrier) -> Option<&'static str> {
        None
    }

    fn begin_anew(&mut self) -> Result<(), Failure> {
        self.waiting.clear();
        self.connection = None;
        self.datagrams.clear();
        Ok(())
    }

    fn take(&mut self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let answer = self.hear(frame);
        Ok(answer
            .zip(self.connection.as_ref())
            .map(|(answer, connection)| connection.answer(answer))
            .into_iter()
            .collect())
    }

    fn read(&mut self) -> Result<Reading, Failure> {
        let stream = self.connection.as_ref().map_or(Vec::new(), |connection| connection.receiver.stream().to_vec());
        Ok(Reading { stream, datagrams: self.datagrams.clone() })
    }
}
