//! What passed lately, so that an answer can be told from one that nobody called for, and so that an error quotes a packet as
//! its sender sent it, whatever the host that reports it made of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::icmp::{PROTOCOL_V4, PROTOCOL_V6};
use wire::ipv6;
use wire::layer::protocol;

use crate::context::Context;
use crate::ethernet::Link;
use crate::icmp::kind::Kind;
use crate::ip::Ip;
use crate::keys::{Key, Subject};
use crate::lately::Lately;
use crate::limits;
use crate::packet::Packet;
use crate::rule::Rule;
use crate::settings::Settings;

/// Bytes of a transport header that every error quotes (RFC 792).
pub(crate) const HEAD_LEN: usize = 8;
/// What this table asks its key for.
const PURPOSE: u8 = 1;

/// What a packet is to whoever answers it: who speaks with whom, and about what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    /// Ports of UDP; type, identifier and sequence number of an echo message; zero for all others.
    pub(crate) selector: u64,
}

/// A packet as its sender sent it, as far as an error quotes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// IPv4: the length of the packet; IPv6: that of what follows the header.
    pub(crate) len: u16,
    pub(crate) hop_limit: u8,
    /// Type of service or traffic class.
    pub(crate) class: u8,
    /// IPv4: identification, flags and offset; IPv6: the flow label.
    pub(crate) label: u32,
    /// The first bytes behind the IP header; `None` when the packet stood for several, which differ in them.
    pub(crate) head: Option<[u8; HEAD_LEN]>,
}

/// The exchanges that were seen last, of either side.
#[derive(Debug)]
pub(crate) struct Exchanges {
    key: Key,
    /// By the side that sent.
    sent: [Lately<Sent>; 2],
}

impl Exchange {
    /// The exchange of a packet between these addresses whose transport header begins with `head`.
    pub(crate) fn of(source: IpAddr, destination: IpAddr, protocol: u8, head: &[u8; HEAD_LEN]) -> Exchange {
        let is_echo = || matches!(Kind::of(protocol, head[0], head[1]), Some(Kind::EchoRequest | Kind::EchoReply));
        let selector = match protocol {
            protocol::UDP => u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]])),
            PROTOCOL_V4 | PROTOCOL_V6 if is_echo() => {
                u64::from_be_bytes([0, 0, 0, head[0], head[4], head[5], head[6], head[7]])
            }
            _ => 0,
        };
        Exchange { source, destination, protocol, selector }
    }

    /// The same request, made to whoever hears it.
    pub(crate) fn to_anyone(self) -> Exchange {
        let nobody: IpAddr = match self.destination {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Exchange { destination: nobody, ..self }
    }

    /// Where it lies in the table, apart from one between the same addresses in other VLANs.
    fn place(&self, key: &Key, link: &Link<'_>) -> u64 {
        let subject = Subject::new(PURPOSE).between(self.source, self.destination);
        key.place(&subject.protocol(self.protocol).number(self.selector).number(link.vlans().into()))
    }
}

impl Sent {
    fn of(packet: &Packet<'_>, head: [u8; HEAD_LEN]) -> Sent {
        let payload_len = packet.transport.len();
        let head = packet.gso.is_none().then_some(head);
        match &packet.ip {
            Ip::V4(header) => Sent {
                len: (header.len() + payload_len) as u16,
                hop_limit: header.time_to_live,
                class: header.type_of_service,
                label: u32::from(header.identification) << 16 | u32::from(header.flags_and_offset()),
                head,
            },
            Ip::V6(header) => Sent {
                len: (header.len() - ipv6::HEADER_LEN + payload_len) as u16,
                hop_limit: header.hop_limit,
                class: header.traffic_class,
                label: header.flow_label,
                head,
            },
        }
    }
}

impl Exchanges {
    pub(crate) fn new(settings: &Settings, key: &Key) -> Exchanges {
        let table = || Lately::new(settings.exchanges_max, limits::EXCHANGE_LIFETIME);
        Exchanges { key: key.clone(), sent: [table(), table()] }
    }

    /// Remembers `packet` as sent by the side it came from.
    pub(crate) fn remember(&mut self, context: &Context<'_>, packet: &Packet<'_>) {
        let is_asked_for = context.on(Rule::IcmpUnsolicited) || context.on(Rule::IcmpQuoteForm);
        let Some(head) = packet.transport.bytes().first_chunk().filter(|_| is_asked_for) else { return };
        let exchange = Exchange::of(packet.ip.source(), packet.ip.destination(), packet.ip.protocol(), head);
        let is_to_anyone = exchange.selector != 0 && exchange.protocol != protocol::UDP && packet.is_to_group();
        let exchange = if is_to_anyone { exchange.to_anyone() } else { exchange };
        let place = exchange.place(&self.key, &packet.link);
        self.sent[context.from as usize].put(context.now, place, Sent::of(packet, *head));
    }

    /// What the receiver of the `answer` sent last in `exchange`, if it did lately.
    pub(crate) fn sent(&self, context: &Context<'_>, answer: &Packet<'_>, exchange: &Exchange) -> Option<&Sent> {
        let side = context.from.other();
        self.sent[side as usize].get(context.now, exchange.place(&self.key, &answer.link)).map(|(_, sent)| sent)
    }
}
