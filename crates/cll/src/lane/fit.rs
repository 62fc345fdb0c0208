//! What the stack sends that has no room in one sealed frame.
//!
//! A card that stays in place has the wire's MTU, and so has what the stack makes for it. So this
//! host does as a router does between two links: a new TCP connection agrees on segments that fit
//! (RFC 4459, section 3.2), a sender that may be told is told (RFC 1191, RFC 8201), and IPv4 packets
//! that allow it travel in fragments (RFC 791, section 3.2).

use bump::frame::Checksum;
use bump::{DropReason, Fate, Frame, Ledger, Meta, Now, Side, sink};
use wire::checksum::{Sum, pseudo_header_v6, update};
use wire::cll::data::OVERHEAD_MAX;
use wire::ethernet::{self, Header};
use wire::layer::{protocol, transport_layer};
use wire::offload::complete_checksum;
use wire::{EtherType, MacAddress, icmp, ipv4, ipv6, tcp};

use super::outbound::{Cutting, write_piece};
use super::{Lane, Outputs};

/// A SYN is no longer than this: headers of the greatest lengths.
const SYN_FRAME_MAX: usize = ethernet::HEADER_LEN + 60 + 60;
/// Bytes of the packet behind its header that its sender knows it again by (RFC 792).
const QUOTED: usize = 8;
const HOP_LIMIT: u8 = 64;
/// Bytes of an IPv4 header's flags and offset, and what they mean.
const FRAGMENT_AT: usize = 6;
const MORE_FRAGMENTS: u16 = 0x2000;
const DONT_FRAGMENT: u16 = 0x4000;
/// The option of TCP that says how long segments may be (RFC 9293, section 3.7.1).
const MSS: u8 = 2;
const MSS_LEN: usize = 4;

/// How much one frame of the wire has room for.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Longest frame on the wire, with its Ethernet header.
    frame_max: usize,
    /// What is kept free in it.
    kept_free: usize,
}

impl Room {
    /// Of a wire whose frames are at most so long, with their Ethernet header.
    pub(super) fn new(frame_max: usize) -> Room {
        Room { frame_max, kept_free: 0 }
    }

    /// The same with so many bytes kept free.
    pub(super) fn less(self, kept_free: u16) -> Room {
        Room { kept_free: usize::from(kept_free), ..self }
    }

    pub(super) fn frame_max(self) -> usize {
        self.frame_max
    }

    /// The longest packet that one sealed frame has room for, less what is kept free in it.
    fn packet_max(self) -> usize {
        self.frame_max.saturating_sub(ethernet::HEADER_LEN + OVERHEAD_MAX + self.kept_free)
    }

    /// Has a new TCP connection agree on segments that fit.
    pub(super) fn clamp(self, frame: &mut Frame<'_>) {
        if frame.bytes.len() <= SYN_FRAME_MAX {
            let _unchanged = clamp_to(self.packet_max(), frame);
        }
    }
}

impl Lane {
    /// Gives a frame for `peer` its fate if it does not fit; none if it does.
    pub(super) fn fit(
        &mut self,
        now: Now,
        peer: MacAddress,
        frame: &mut Frame<'_>,
        cutting: &Cutting,
        out: &mut Outputs<'_>,
    ) -> Option<Fate> {
        let room = self.room.less(self.settings.kept_free);
        let max = room.packet_max();
        if cutting.longest(frame.bytes.len()).saturating_sub(ethernet::HEADER_LEN) <= max {
            return None;
        }
        let (header, packet) = Header::parse(frame.bytes).ok()?;
        Some(match header.ethertype {
            EtherType::IPV4 => match ipv4::View::new(packet) {
                Ok(ip) if ip.dont_fragment() => {
                    tell(&header, &fragmentation_needed(&ip, packet, max), &mut self.ledger, out)
                }
                Ok(_) => self.seal_in_fragments(now, peer, frame, cutting, out),
                Err(_) => Fate::Dropped(DropReason::Malformed),
            },
            EtherType::IPV6 => match ipv6::View::new(packet) {
                Ok(ip) => tell(&header, &packet_too_big(&ip, packet, max), &mut self.ledger, out),
                Err(_) => Fate::Dropped(DropReason::Malformed),
            },
            // Nobody could be told, and it may fit all the same.
            _ => return None,
        })
    }

    fn seal_in_fragments(
        &mut self,
        now: Now,
        peer: MacAddress,
        frame: &mut Frame<'_>,
        cutting: &Cutting,
        out: &mut Outputs<'_>,
    ) -> Fate {
        let mut fate = Fate::Dropped(DropReason::TooBig);
        for mut whole in whole_frames(frame, cutting) {
            for mut fragment in fragments(&mut whole, self.room.less(self.settings.kept_free).packet_max()) {
                let mut frame = Frame { bytes: &mut fragment, meta: Meta::plain() };
                fate = self.seal_to(now, peer, &mut frame, out);
                if fate != Fate::Forwarded {
                    return fate;
                }
            }
        }
        fate
    }
}

/// Hands the stack a packet in the name of the host that it wrote to.
fn tell(header: &Header, packet: &[u8], ledger: &mut Ledger, out: &mut Outputs<'_>) -> Fate {
    let back = Header { destination: header.source, source: header.destination, ethertype: header.ethertype };
    if sink::copy_parts(out.sink, Side::STACK, &[&back.emit(), packet], ethernet::MIN_LEN, Meta::plain()) {
        ledger.make(Side::STACK);
        return Fate::Answered;
    }
    Fate::Dropped(DropReason::PortFull)
}

/// The packets that a frame stands for, each with its whole checksum; none if it is no good.
fn whole_frames(frame: &mut Frame<'_>, cutting: &Cutting) -> Vec<Vec<u8>> {
    let plan = match cutting {
        Cutting::Whole { checksum_partial } => {
            let mut whole = frame.bytes.to_vec();
            if let (true, Checksum::Partial { start, offset }) = (*checksum_partial, frame.meta.checksum) {
                let _ = complete_checksum(&mut whole, usize::from(start), usize::from(offset));
            }
            return vec![whole];
        }
        Cutting::Pieces(plan) | Cutting::CompletedPieces(plan) => plan,
    };
    let piece = |index: usize| {
        let mut piece = vec![0; plan.segment_len(index)];
        write_piece(plan, frame.bytes, index, true, &mut piece).then_some(piece)
    };
    (0..plan.segments()).filter_map(piece).collect()
}

/// A packet of IPv4 in pieces of at most `max` bytes. Options go along with the first alone, unless
/// they say otherwise; packets that have any are not cut.
fn fragments(whole: &mut [u8], max: usize) -> Vec<Vec<u8>> {
    let (ethernet, packet) = whole.split_at(ethernet::HEADER_LEN);
    let Ok(ip) = ipv4::View::new(packet) else { return Vec::new() };
    let len_each = max.saturating_sub(ipv4::HEADER_LEN) / 8 * 8;
    if ip.header_len() != ipv4::HEADER_LEN || len_each == 0 {
        return Vec::new();
    }
    let (offset, more) = (ip.fragment_offset(), ip.more_fragments());
    let payload = ip.payload();
    let cut = |(index, part): (usize, &[u8])| {
        let at = offset + index * len_each;
        let is_last = (index + 1) * len_each >= payload.len();
        let flags = if is_last && !more { 0 } else { MORE_FRAGMENTS };
        let mut header = [0; ipv4::HEADER_LEN];
        header.copy_from_slice(&packet[..ipv4::HEADER_LEN]);
        let total_len = (ipv4::HEADER_LEN + part.len()) as u16;
        header[ipv4::TOTAL_LENGTH..ipv4::TOTAL_LENGTH + 2].copy_from_slice(&total_len.to_be_bytes());
        header[FRAGMENT_AT..FRAGMENT_AT + 2].copy_from_slice(&(flags | (at / 8) as u16).to_be_bytes());
        ipv4::fill_checksum(&mut header);
        [ethernet, &header, part].concat()
    };
    payload.chunks(len_each).enumerate().map(cut).collect()
}

/// Destination Unreachable, "fragmentation needed and DF set", about `packet` (RFC 1191, section 4).
fn fragmentation_needed(ip: &ipv4::View<'_>, packet: &[u8], max: usize) -> Vec<u8> {
    let quoted = &packet[..packet.len().min(ip.header_len() + QUOTED)];
    let mut message = vec![icmp::v4::UNREACHABLE, icmp::v4::FRAGMENTATION_NEEDED, 0, 0, 0, 0];
    message.extend((max as u16).to_be_bytes());
    message.extend(quoted);
    let checksum = Sum::ZERO.bytes(&message).checksum();
    message[icmp::CHECKSUM..icmp::CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    let mut header = [0; ipv4::HEADER_LEN];
    header[0] = 0x45;
    let total_len = (ipv4::HEADER_LEN + message.len()) as u16;
    header[ipv4::TOTAL_LENGTH..ipv4::TOTAL_LENGTH + 2].copy_from_slice(&total_len.to_be_bytes());
    header[FRAGMENT_AT..FRAGMENT_AT + 2].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    (header[8], header[9]) = (HOP_LIMIT, icmp::PROTOCOL_V4);
    header[ipv4::SOURCE..ipv4::SOURCE + 4].copy_from_slice(&ip.destination().octets());
    header[ipv4::SOURCE + 4..].copy_from_slice(&ip.source().octets());
    ipv4::fill_checksum(&mut header);
    [&header[..], &message].concat()
}

/// Packet Too Big about `packet` (RFC 4443, section 3.2).
fn packet_too_big(ip: &ipv6::View<'_>, packet: &[u8], max: usize) -> Vec<u8> {
    let quoted = &packet[..packet.len().min(ipv6::HEADER_LEN + QUOTED)];
    let mut message = vec![icmp::v6::PACKET_TOO_BIG, 0, 0, 0];
    message.extend((max as u32).to_be_bytes());
    message.extend(quoted);
    let (source, destination) = (ip.destination(), ip.source());
    let pseudo_header = pseudo_header_v6(source, destination, icmp::PROTOCOL_V6, message.len() as u32);
    let checksum = pseudo_header.bytes(&message).checksum();
    message[icmp::CHECKSUM..icmp::CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    let header = ipv6::header(source, destination, icmp::PROTOCOL_V6, HOP_LIMIT, message.len() as u16);
    [&header[..], &message].concat()
}

/// Lowers what a SYN says of the longest segment to what a packet of `packet_max` bytes has room for.
fn clamp_to(packet_max: usize, frame: &mut Frame<'_>) -> Option<()> {
    let (protocol, tcp_at) = transport_layer(frame.bytes)?;
    if protocol != protocol::TCP {
        return None;
    }
    let segment = tcp::View::new(frame.bytes.get(tcp_at..)?).ok()?;
    if segment.flags() & tcp::flag::SYN == 0 {
        return None;
    }
    let value_at = tcp_at + tcp::HEADER_LEN + mss_value_at(segment.options())?;
    let headers_len = tcp_at - ethernet::HEADER_LEN + tcp::HEADER_LEN;
    let most = u16::try_from(packet_max.saturating_sub(headers_len)).ok()?;
    let value = u16::from_be_bytes([*frame.bytes.get(value_at)?, *frame.bytes.get(value_at + 1)?]);
    if value <= most {
        return None;
    }
    let is_whole = !matches!(frame.meta.checksum, Checksum::Partial { .. });
    let words = |bytes: &[u8]| [word(bytes, tcp_at, value_at), word(bytes, tcp_at, value_at + 1)];
    let before = words(frame.bytes);
    frame.bytes[value_at..value_at + 2].copy_from_slice(&most.to_be_bytes());
    let after = words(frame.bytes);
    if is_whole {
        let at = tcp_at + tcp::CHECKSUM;
        let former = u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
        // An aligned value is one word, another lies in two.
        let count = if (value_at - tcp_at).is_multiple_of(2) { 1 } else { 2 };
        let changed = before.iter().zip(after).take(count);
        let checksum = changed.fold(former, |sum, (old, new)| update(sum, *old, new));
        frame.bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    Some(())
}

/// The word of the checksum in which byte `at` lies.
fn word(bytes: &[u8], tcp_at: usize, at: usize) -> u16 {
    let start = tcp_at + (at - tcp_at) / 2 * 2;
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    u16::from_be_bytes([byte(start), byte(start + 1)])
}

/// Where among the options of a SYN the longest segment stands.
fn mss_value_at(options: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *options.get(at)? {
            0 => return None,
            1 => at += 1,
            MSS if usize::from(*options.get(at + 1)?) == MSS_LEN => return Some(at + 2),
            _ => at += usize::from(*options.get(at + 1)?).max(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1455;

    fn frame_of(packet: &[u8], ethertype: u16) -> Vec<u8> {
        [&[2; 12][..], &ethertype.to_be_bytes(), packet].concat()
    }

    /// A SYN over IPv4 with these options, and its checksum.
    fn syn(options: &[u8]) -> Vec<u8> {
        let tcp_len = tcp::HEADER_LEN + options.len();
        let mut packet = vec![0x45, 0, 0, (ipv4::HEADER_LEN + tcp_len) as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        let mut segment =
            vec![0x1f, 0x90, 0, 80, 0, 0, 0, 9, 0, 0, 0, 0, ((tcp_len / 4) as u8) << 4, 2, 0xff, 0xff, 0, 0, 0, 0];
        segment.extend(options);
        packet.extend(segment);
        let mut frame = frame_of(&packet, 0x0800);
        let sum = tcp_sum(&frame);
        frame[14 + 20 + 16..14 + 20 + 18].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    /// The checksum as its receiver counts it: zero if it is right, less the field if that is zero.
    fn tcp_sum(frame: &[u8]) -> u16 {
        let ip = ipv4::View::new(&frame[14..]).expect("IPv4");
        let sum = wire::checksum::pseudo_header_v4(ip.source(), ip.destination(), 6, ip.payload().len() as u16);
        sum.bytes(ip.payload()).checksum()
    }

    #[test]
    fn a_syn_agrees_on_segments_that_fit_and_its_checksum_stays_right() {
        let aligned = syn(&[2, 4, 0x05, 0xb4]);
        let odd = syn(&[1, 2, 4, 0x05, 0xb4, 0, 0, 0]);
        for (mut bytes, at) in [(aligned, 2), (odd, 3)] {
            assert_eq!(tcp_sum(&bytes), 0);
            clamp_to(MAX, &mut Frame { bytes: &mut bytes, meta: Meta::plain() }).expect("changed");
            let value = &bytes[14 + 40 + at..14 + 40 + at + 2];
            assert_eq!((u16::from_be_bytes([value[0], value[1]]), tcp_sum(&bytes)), (1415, 0));
            assert!(clamp_to(MAX, &mut Frame { bytes: &mut bytes, meta: Meta::plain() }).is_none(), "it fits now");
        }
        for options in [&[][..], &[0, 2, 4, 0], &[2, 3, 9, 0], &[8, 0, 0, 0], &[1, 1, 1, 2]] {
            let mut bytes = syn(options);
            let before = bytes.clone();
            assert!(clamp_to(MAX, &mut Frame { bytes: &mut bytes, meta: Meta::plain() }).is_none(), "{options:?}");
            assert_eq!(bytes, before);
        }
    }

    #[test]
    fn a_partial_checksum_is_left_to_whoever_completes_it() {
        let mut bytes = syn(&[2, 4, 0x05, 0xb4]);
        let before = bytes[14 + 36..14 + 38].to_vec();
        let meta = Meta { checksum: Checksum::Partial { start: 34, offset: 16 }, ..Meta::plain() };
        clamp_to(MAX, &mut Frame { bytes: &mut bytes, meta }).expect("changed");
        assert_eq!(bytes[14 + 36..14 + 38], before);
    }

    #[test]
    fn fragments_are_the_packet_again() {
        let payload: Vec<u8> = (0..2900_u32).map(|byte| byte as u8).collect();
        let total_len = (20 + payload.len()) as u16;
        let mut packet = vec![0x45, 0, (total_len >> 8) as u8, total_len as u8, 0x12, 0x34, 0, 0, 64, 17, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(&payload);
        let mut found = vec![0; payload.len()];
        let cut = fragments(&mut frame_of(&packet, 0x0800), MAX);
        assert_eq!(cut.len(), 3);
        for (index, fragment) in cut.iter().enumerate() {
            let ip = ipv4::View::new(&fragment[14..]).expect("IPv4");
            assert!(ip.checksum_is_right() && usize::from(ip.total_len()) <= MAX && ip.identification() == 0x1234);
            assert_eq!(ip.more_fragments(), index < 2);
            found[ip.fragment_offset()..][..ip.payload().len()].copy_from_slice(ip.payload());
        }
        assert_eq!(found, payload);
    }

    #[test]
    fn a_fragment_that_is_cut_again_keeps_its_place() {
        let mut packet = vec![0x45, 0, 0x05, 0xdc, 0, 7, 0x20, 100, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.resize(1500, 3);
        let cut = fragments(&mut frame_of(&packet, 0x0800), MAX);
        let places: Vec<_> = cut
            .iter()
            .map(|one| ipv4::View::new(&one[14..]).expect("IPv4"))
            .map(|ip| (ip.fragment_offset(), ip.more_fragments(), ip.payload().len()))
            .collect();
        assert_eq!(places, [(800, true, 1432), (2232, true, 48)]);
    }

    #[test]
    fn a_sender_is_told_what_fits_by_the_host_that_it_wrote_to() {
        let mut packet = vec![0x45, 0, 0x05, 0xdc, 0, 7, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.resize(1500, 3);
        let told = fragmentation_needed(&ipv4::View::new(&packet).expect("IPv4"), &packet, MAX);
        let ip = ipv4::View::new(&told).expect("IPv4");
        assert!(ip.checksum_is_right() && Sum::ZERO.bytes(ip.payload()).checksum() == 0);
        assert_eq!((ip.source().octets(), ip.destination().octets()), ([10, 0, 0, 2], [10, 0, 0, 1]));
        assert_eq!((&ip.payload()[..2], &ip.payload()[6..8]), (&[3, 4][..], &1455_u16.to_be_bytes()[..]));
        assert_eq!(ip.payload()[8..], packet[..28]);
        let (source, destination) = ("2001:db8::1".parse().expect("v6"), "2001:db8::2".parse().expect("v6"));
        let packet = [&ipv6::header(source, destination, 17, 64, 1460)[..], &[3; 1460]].concat();
        let told = packet_too_big(&ipv6::View::new(&packet).expect("IPv6"), &packet, MAX);
        let ip = ipv6::View::new(&told).expect("IPv6");
        let message = &told[ipv6::HEADER_LEN..];
        let sum = pseudo_header_v6(destination, source, 58, message.len() as u32).bytes(message).checksum();
        assert_eq!((sum, ip.source(), ip.destination()), (0, destination, source));
        assert_eq!((&message[..2], &message[4..8]), (&[2, 0][..], &1455_u32.to_be_bytes()[..]));
    }
}
