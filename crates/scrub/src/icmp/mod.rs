//! ICMP and ICMPv6: what asks, what answers, what reports an error, and neighbour discovery.
//!
//! Answers of trusted hosts are what fingerprints are taken from (the paper's section IV-B2), so their form and their timing
//! are made alike. Answers of untrusted hosts pass if something called for them.

pub(crate) mod kind;
pub(crate) mod pace;
pub(crate) mod quote;

use bump::{Checksum, DropReason, Side};
use wire::checksum::{self, Sum};
use wire::icmp::{CHECKSUM, CODE, HEADER_LEN, PROTOCOL_V4, PROTOCOL_V6, REST};
use wire::layer::protocol;

use self::kind::{Error, Kind};
use self::pace::Pace;
use self::quote::Quote;
use crate::checksum::{fill, is_right};
use crate::context::Context;
use crate::departure::Departure;
use crate::exchange::{Exchange, Exchanges, HEAD_LEN};
use crate::ip::Ip;
use crate::packet::Packet;
use crate::rule::Rule;
use crate::tcp::Flows;

/// Least MTU that a frag-needed may announce: what every host must take (RFC 791, 3.2).
const MTU_MIN_V4: u32 = 576;
/// The same for IPv6 (RFC 8200, 5).
const MTU_MIN_V6: u32 = 1280;

/// Whether `packet` is ICMP of its own version of IP; of the other one hosts know nothing.
pub(crate) fn is_icmp(packet: &Packet<'_>) -> bool {
    packet.ip.protocol() == protocol_of(&packet.ip)
}

fn protocol_of(ip: &Ip) -> u8 {
    match ip {
        Ip::V4(_) => PROTOCOL_V4,
        Ip::V6(_) => PROTOCOL_V6,
    }
}

/// Judges a message, rewrites it, and says when it may leave.
pub(crate) fn scrub(
    context: &mut Context<'_>,
    packet: &mut Packet<'_>,
    exchanges: &mut Exchanges,
    flows: &Flows,
    pace: &mut Pace,
) -> Result<Departure, DropReason> {
    let Some(kind) = read(context, packet)? else { return Ok(Departure::Now) };
    match kind {
        Kind::EchoRequest => echo_request(context, packet, exchanges)?,
        Kind::EchoReply => echo_reply(context, packet, exchanges)?,
        Kind::Error(error) => report(context, packet, error, exchanges, flows)?,
        Kind::Neighbour => neighbour(context, packet)?,
        Kind::Other => {}
    }
    if context.from == Side::TRUSTED && kind.is_answer() {
        make_alike(context, packet);
    }
    pace.departure(context, packet, kind)
}

/// The kind of the message, if it is whole and of use. `None` for one that is neither, when no rule minds: it goes on as it is.
fn read(context: &mut Context<'_>, packet: &Packet<'_>) -> Result<Option<Kind>, DropReason> {
    let bytes = packet.transport.bytes();
    let is_whole = bytes.len() >= HEADER_LEN && is_right(packet.checksum, pseudo_header(packet), bytes);
    context.refuse_if(!is_whole, Rule::IcmpChecksum, DropReason::IcmpMalformed)?;
    if !is_whole {
        return Ok(None);
    }
    let is_of_use = kind::is_of_use(packet.ip.protocol(), bytes[0]);
    context.refuse_if(!is_of_use, Rule::IcmpTypes, DropReason::IcmpType)?;
    Ok(Kind::of(packet.ip.protocol(), bytes[0], bytes[CODE]))
}

fn pseudo_header(packet: &Packet<'_>) -> Sum {
    match &packet.ip {
        Ip::V4(_) => Sum::ZERO,
        Ip::V6(_) => packet.ip.pseudo_header(packet.transport.len()),
    }
}

fn echo_request(
    context: &mut Context<'_>,
    packet: &mut Packet<'_>,
    exchanges: &mut Exchanges,
) -> Result<(), DropReason> {
    if context.scrubs() {
        context.refuse_if(packet.is_to_group(), Rule::IcmpBroadcast, DropReason::IcmpBroadcast)?;
        limit_size(context, packet)?;
    }
    exchanges.remember(context, packet);
    clear_code(context, packet);
    Ok(())
}

fn echo_reply(context: &mut Context<'_>, packet: &mut Packet<'_>, exchanges: &mut Exchanges) -> Result<(), DropReason> {
    let is_unsolicited = !was_requested(context, packet, exchanges);
    context.refuse_if(is_unsolicited, Rule::IcmpUnsolicited, DropReason::IcmpUnsolicited)?;
    if context.scrubs() {
        limit_size(context, packet)?;
    }
    exchanges.remember(context, packet);
    clear_code(context, packet);
    Ok(())
}

fn limit_size(context: &mut Context<'_>, packet: &Packet<'_>) -> Result<(), DropReason> {
    let is_too_long = packet.transport.len() > context.settings.icmp_echo_max_bytes;
    context.refuse_if(is_too_long, Rule::IcmpSize, DropReason::IcmpSize)
}

/// Whether the other side sent the request that this reply answers, to this host or to a group.
fn was_requested(context: &Context<'_>, reply: &Packet<'_>, exchanges: &Exchanges) -> bool {
    let Some(head) = reply.transport.bytes().first_chunk::<HEAD_LEN>() else { return false };
    let mut head = *head;
    head[0] = match &reply.ip {
        Ip::V4(_) => wire::icmp::v4::ECHO_REQUEST,
        Ip::V6(_) => wire::icmp::v6::ECHO_REQUEST,
    };
    let asked = Exchange::of(reply.ip.destination(), reply.ip.source(), reply.ip.protocol(), &head);
    let was_sent = |exchange: &Exchange| exchanges.sent(context, reply, exchange).is_some();
    was_sent(&asked) || was_sent(&asked.to_anyone())
}

/// Hosts differ in whether they repeat the code of a request.
fn clear_code(context: &mut Context<'_>, packet: &mut Packet<'_>) {
    let bytes = packet.transport.bytes_mut();
    let old = [bytes[0], bytes[CODE]];
    if !context.acts_if(old[1] != 0, Rule::IcmpEchoCode) {
        return;
    }
    bytes[CODE] = 0;
    // A partial checksum is summed when the message leaves.
    if !matches!(packet.checksum, Checksum::Partial { .. }) {
        let sum = u16::from_be_bytes([bytes[CHECKSUM], bytes[CHECKSUM + 1]]);
        let new = checksum::update(sum, u16::from_be_bytes(old), u16::from_be_bytes([old[0], 0]));
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&new.to_be_bytes());
    }
}

/// An error: it quotes a packet of its receiver that was sent lately, and says nothing about whoever reports it.
fn report(
    context: &mut Context<'_>,
    packet: &mut Packet<'_>,
    error: Error,
    exchanges: &Exchanges,
    flows: &Flows,
) -> Result<(), DropReason> {
    let quoted = Quote::read(&packet.ip, packet.transport.bytes());
    context.refuse_if(quoted.is_none(), Rule::IcmpQuote, DropReason::IcmpMalformed)?;
    let Some(quoted) = quoted else { return Ok(()) };
    if context.scrubs() && error == Error::TooBig {
        judge_mtu(context, packet)?;
    }
    let is_foreign = quoted.exchange.source != packet.ip.destination();
    context.refuse_if(is_foreign, Rule::IcmpUnsolicited, DropReason::IcmpUnsolicited)?;
    let link = packet.link;
    let sent = exchanges.sent(context, packet, &quoted.exchange).copied();
    let was_sent = match quoted.exchange.protocol {
        protocol::TCP => {
            let segment = &mut packet.transport.bytes_mut()[quoted.carried_at..];
            let is_known = flows.know(context.from, &link, &quoted.exchange, segment);
            // Without a handshake nobody knows what is under way.
            is_known || !context.on(Rule::TcpHandshake)
        }
        _ => sent.is_some(),
    };
    context.refuse_if(!was_sent, Rule::IcmpUnsolicited, DropReason::IcmpUnsolicited)?;
    if context.from == Side::TRUSTED {
        quoted.rewrite(context, packet, error, sent.as_ref());
    }
    complete(packet);
    Ok(())
}

fn judge_mtu(context: &mut Context<'_>, packet: &Packet<'_>) -> Result<(), DropReason> {
    let bytes = packet.transport.bytes();
    let word = u32::from_be_bytes([bytes[REST], bytes[REST + 1], bytes[REST + 2], bytes[REST + 3]]);
    let is_too_small = match &packet.ip {
        Ip::V4(_) => word & 0xffff < MTU_MIN_V4,
        Ip::V6(_) => word < MTU_MIN_V6,
    };
    context.refuse_if(is_too_small, Rule::IcmpMtu, DropReason::IcmpMtu)
}

/// Neighbour discovery of another link is forged, and its fragments hide it from whoever watches over it (RFC 6980).
fn neighbour(context: &mut Context<'_>, packet: &Packet<'_>) -> Result<(), DropReason> {
    let is_wrong = packet.ip.hop_limit() != u8::MAX || packet.longest_fragment.is_some();
    context.refuse_if(is_wrong, Rule::NeighbourDiscovery, DropReason::NeighbourDiscovery)
}

/// Hosts differ in the class of their answers and in whether they may be fragmented.
fn make_alike(context: &mut Context<'_>, packet: &mut Packet<'_>) {
    if !context.on(Rule::IcmpAnswerForm) {
        return;
    }
    let differs = match &mut packet.ip {
        Ip::V4(header) => {
            let is_classed = std::mem::take(&mut header.type_of_service) != 0;
            std::mem::take(&mut header.dont_fragment) || is_classed
        }
        Ip::V6(header) => std::mem::take(&mut header.traffic_class) != 0,
    };
    context.acts_if(differs, Rule::IcmpAnswerForm);
}

/// Sums the message anew, which was right before it was rewritten.
fn complete(packet: &mut Packet<'_>) {
    let pseudo_header = pseudo_header(packet);
    fill(pseudo_header, packet.transport.bytes_mut(), CHECKSUM);
    packet.checksum = Checksum::Complete;
}
