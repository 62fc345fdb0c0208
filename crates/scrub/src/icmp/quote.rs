//! The packet that an error quotes: its header and at least eight bytes of what it carries.
//!
//! Hosts differ in how much they quote, and some give fields back in the wrong byte order, zeroed, or as they were when the
//! packet had made its hops: nmap reads RIPL, RID, RIPCK, RUCK and RUD from that. Errors of trusted hosts quote all alike:
//! the packet as its sender sent it, and no more of it than the receiver needs to find the connection.

use std::net::IpAddr;

use wire::icmp::{HEADER_LEN, REST};
use wire::{ipv4, ipv6};

use super::kind::Error;
use crate::context::Context;
use crate::exchange::{Exchange, HEAD_LEN, Sent};
use crate::ip::Ip;
use crate::opaque;
use crate::packet::Packet;
use crate::rule::Rule;

/// Offset of the type of service of IPv4.
const TYPE_OF_SERVICE: usize = 1;
/// Offset of the time to live of IPv4.
const TIME_TO_LIVE: usize = 8;
/// Offset of the hop limit of IPv6.
const HOP_LIMIT: usize = 7;
/// Next header of a fragment header, which unlike the others has a fixed length.
const FRAGMENT: u8 = 44;
/// Next headers that are looked through: hop-by-hop options, routing, destination options.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// Extension headers that are looked through: those that RFC 8200 knows, each once, destination options twice.
const EXTENSIONS_MAX: usize = 5;
/// Fewest bytes that an error quotes in front of extensions (RFC 4884, section 5).
const EXTENDED_QUOTE_LEN_MIN: usize = 128;

/// Where in an error its quote lies, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(crate) exchange: Exchange,
    /// Offset in the message of what the quoted packet carries.
    pub(crate) carried_at: usize,
}

impl Quote {
    /// Reads the quote of the error `message`, which `ip` carries and which is no shorter than its header.
    pub(crate) fn read(ip: &Ip, message: &[u8]) -> Option<Quote> {
        let packet = message.get(HEADER_LEN..)?;
        let (source, destination, protocol, carried): (IpAddr, IpAddr, u8, usize) = match ip {
            Ip::V4(_) => {
                let header = ipv4::View::new(packet).ok()?;
                (header.source().into(), header.destination().into(), header.protocol(), header.header_len())
            }
            Ip::V6(_) => {
                let header = ipv6::View::new(packet).ok()?;
                let (protocol, carried) = behind_extensions(packet)?;
                (header.source().into(), header.destination().into(), protocol, carried)
            }
        };
        let head = packet.get(carried..)?.first_chunk::<HEAD_LEN>()?;
        let exchange = Exchange::of(source, destination, protocol, head);
        Some(Quote { exchange, carried_at: HEADER_LEN + carried })
    }

    /// Cuts the quote of an error of a trusted host and writes what is left in the one form. `sent` is the quoted packet, or
    /// a later one of the same exchange, as its sender sent it. The checksum is left to the caller.
    pub(crate) fn rewrite(
        &self,
        context: &mut Context<'_>,
        packet: &mut Packet<'_>,
        error: Error,
        sent: Option<&Sent>,
    ) {
        let end = self.carried_at + self.len_max(context, &packet.ip, packet.transport.bytes());
        if context.acts_if(end < packet.transport.len(), Rule::IcmpQuote) {
            packet.transport.truncate(end);
        }
        if context.on(Rule::IcmpQuoteForm) {
            let message = packet.transport.bytes_mut();
            let is_cleared = clear_unused(message, error, &packet.ip);
            // A report about the path is about the very packet that was too long, and not about a later one.
            let sent_head = sent.filter(|_| error != Error::TooBig);
            let hop_limit = sent.map_or(context.settings.hop_limit, |sent| sent.hop_limit);
            let is_restored = self.restore(message, &packet.ip, hop_limit, sent_head);
            context.acts_if(is_cleared | is_restored, Rule::IcmpQuoteForm);
        }
    }

    /// Bytes of what the quoted packet carries that may leave.
    fn len_max(&self, context: &Context<'_>, ip: &Ip, message: &[u8]) -> usize {
        if !opaque::is_tunnel(self.exchange.protocol, &message[self.carried_at..]) {
            return HEAD_LEN;
        }
        // Extensions behind a longer quote are a router's own words, and the field that says where they begin is cleared.
        let extensions_at = HEADER_LEN
            + match ip {
                Ip::V4(_) => usize::from(message[REST + 1]) * 4,
                Ip::V6(_) => usize::from(message[REST]) * 8,
            };
        let is_extended = extensions_at >= HEADER_LEN + EXTENDED_QUOTE_LEN_MIN && extensions_at > self.carried_at;
        let quoted_len = if is_extended { extensions_at - self.carried_at } else { usize::MAX };
        context.settings.icmp_quote_len.min(quoted_len).max(HEAD_LEN)
    }

    /// Writes the quoted header with this hop limit and, where it is known, as its sender sent the rest of it.
    fn restore(&self, message: &mut [u8], ip: &Ip, hop_limit: u8, sent: Option<&Sent>) -> bool {
        let header = &mut message[HEADER_LEN..self.carried_at];
        let mut differs = match ip {
            Ip::V4(_) => restore_v4(header, hop_limit, sent),
            Ip::V6(_) => restore_v6(header, hop_limit, sent),
        };
        if let Some(head) = sent.and_then(|sent| sent.head) {
            differs |= put(message, self.carried_at, &head);
        }
        differs
    }
}

/// What the IPv6 packet carries, and where it begins.
fn behind_extensions(packet: &[u8]) -> Option<(u8, usize)> {
    let (mut next, mut at) = (*packet.get(6)?, ipv6::HEADER_LEN);
    for _ in 0..=EXTENSIONS_MAX {
        let len = match next {
            FRAGMENT => 8,
            next if EXTENSIONS.contains(&next) => 8 + usize::from(*packet.get(at + 1)?) * 8,
            _ => return Some((next, at)),
        };
        (next, at) = (*packet.get(at)?, at + len);
    }
    None
}

/// Clears what an error of this kind does not use of its header: RFC 792 and RFC 4443 want zeros, and not all hosts write them.
fn clear_unused(message: &mut [u8], error: Error, ip: &Ip) -> bool {
    let unused = match (error, ip) {
        (Error::Plain, _) => REST..HEADER_LEN,
        (Error::TooBig, Ip::V4(_)) => REST..REST + 2,
        (Error::ShortPointer, _) => REST + 1..HEADER_LEN,
        (Error::TooBig, Ip::V6(_)) | (Error::Word, _) => return false,
    };
    let differs = message[unused.clone()].iter().any(|byte| *byte != 0);
    message[unused].fill(0);
    differs
}

fn restore_v4(header: &mut [u8], hop_limit: u8, sent: Option<&Sent>) -> bool {
    let mut differs = put(header, TIME_TO_LIVE, &[hop_limit]);
    if let Some(sent) = sent {
        differs |= put(header, TYPE_OF_SERVICE, &[sent.class]);
    }
    if let Some(sent) = sent.filter(|sent| sent.head.is_some()) {
        differs |= put(header, ipv4::TOTAL_LENGTH, &sent.len.to_be_bytes());
        differs |= put(header, ipv4::IDENTIFICATION, &sent.label.to_be_bytes());
    }
    let checksum = [header[ipv4::CHECKSUM], header[ipv4::CHECKSUM + 1]];
    ipv4::fill_checksum(header);
    differs | (checksum != [header[ipv4::CHECKSUM], header[ipv4::CHECKSUM + 1]])
}

fn restore_v6(header: &mut [u8], hop_limit: u8, sent: Option<&Sent>) -> bool {
    let mut differs = put(header, HOP_LIMIT, &[hop_limit]);
    if let Some(sent) = sent {
        let first = 6 << 28 | u32::from(sent.class) << 20 | sent.label;
        differs |= put(header, 0, &first.to_be_bytes());
    }
    if let Some(sent) = sent.filter(|sent| sent.head.is_some()) {
        differs |= put(header, ipv6::PAYLOAD_LENGTH, &sent.len.to_be_bytes());
    }
    differs
}

/// Writes `new` at `at`; says whether anything else stood there.
fn put(bytes: &mut [u8], at: usize, new: &[u8]) -> bool {
    let place = &mut bytes[at..at + new.len()];
    let differs = place != new;
    place.copy_from_slice(new);
    differs
}
