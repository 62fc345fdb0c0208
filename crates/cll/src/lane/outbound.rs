//! From the stack to the wire (paper, section 5.3): which frames leave, and how they are sealed.

use bump::{Checksum, DropReason, Fate, Frame, GsoKind, Meta, Now, Side};
use wire::cll::InnerHeader;
use wire::cll::compression::Algorithm;
use wire::cll::data::{INNER_HEADER_LEN, PAYLOAD_MIN, TAG_LEN};
use wire::ethernet::{self, Header};
use wire::layer::transport_checksum;
use wire::offload::{Cut, Kind, Plan, complete_checksum};
use wire::{EtherType, MacAddress};

use super::senders::Sender;
use super::{Lane, Outputs};
use crate::compression::Compressor;
use crate::hold::Kept;
use crate::message::Request;
use crate::origin;
use crate::settings::Settings;

impl Lane {
    /// The rules for a frame of the stack, in order. `None` means that control decides.
    pub(super) fn outbound(&mut self, now: Now, frame: &mut Frame<'_>, out: &mut Outputs<'_>) -> Option<Fate> {
        let Ok((header, payload)) = Header::parse(frame.bytes) else {
            return Some(Fate::Dropped(DropReason::Runt));
        };
        if header.source != self.settings.mac {
            return Some(Fate::Dropped(DropReason::SourceNotOurs));
        }
        if frame.meta.vlan.is_some() {
            return Some(Fate::Dropped(DropReason::Vlan));
        }
        if self.settings.passes_in_clear(header.ethertype) {
            return Some(out.forward(Side::WIRE, frame));
        }
        let has_key = |lane: &Lane| lane.senders.has(header.destination);
        if header.ethertype == EtherType::ARP && !(asks_for_others(&self.settings, payload) && has_key(self)) {
            return out.ask_control(Request::StackArp(frame.bytes.to_vec()));
        }
        let is_server = self.settings.dhcp.server.is_some();
        if is_dhcp(header.ethertype, payload) && (is_server || !self.legacy.has(header.destination)) {
            return self.stack_dhcp(&header, frame, out);
        }
        if header.ethertype == EtherType::IPV6 {
            if !self.settings.ipv6 {
                return Some(self.outbound_uncarried(&header, frame, DropReason::Ipv6, out));
            }
            if is_for_control(payload, || has_key(self)) {
                return out.ask_control(Request::StackNeighbour(frame.bytes.to_vec()));
            }
        }
        if let Some(reason) = not_carried(&header, payload) {
            return Some(self.outbound_uncarried(&header, frame, reason, out));
        }
        if header.destination.is_group() {
            return self.send_to_group(now, frame, out);
        }
        if self.legacy.has(header.destination) || self.leaves_in_clear(now, &header, frame, out) {
            return Some(out.send_in_clear(&header, frame));
        }
        if has_key(self) {
            return Some(self.seal_to(now, header.destination, frame, out));
        }
        Some(self.hold(header.destination, frame, out))
    }

    /// DHCP leaves in frames of its own, by way of control; where this host has no part in that, in clear as the mode allows.
    fn stack_dhcp(&mut self, header: &Header, frame: &mut Frame<'_>, out: &mut Outputs<'_>) -> Option<Fate> {
        if !self.settings.speaks_dhcp() {
            return Some(self.outbound_uncarried(header, frame, DropReason::Dhcp, out));
        }
        // No program sends several messages as one.
        if frame.meta.gso.is_some() {
            return Some(Fate::Dropped(DropReason::DhcpMalformed));
        }
        if let Checksum::Partial { start, offset } = frame.meta.checksum
            && complete_checksum(frame.bytes, usize::from(start), usize::from(offset)).is_err()
        {
            return Some(Fate::Dropped(DropReason::DhcpMalformed));
        }
        out.ask_control(Request::Dhcp(Side::STACK, frame.bytes.to_vec()))
    }

    pub(super) fn hold(&mut self, destination: MacAddress, frame: &Frame<'_>, out: &mut Outputs<'_>) -> Fate {
        match self.hold.keep(destination, frame) {
            Kept::First => match out.requests.push(Request::Wanted(destination)) {
                Ok(()) => Fate::Held,
                Err(_) => {
                    drop(self.hold.take(destination));
                    Fate::Dropped(DropReason::ControlBusy)
                }
            },
            Kept::Behind => Fate::Held,
            Kept::Full => Fate::Dropped(DropReason::HoldFull),
        }
    }

    /// Seals `frame` to `peer`, in one piece or in as many as its metadata says.
    pub(super) fn seal_to(&mut self, now: Now, peer: MacAddress, frame: &mut Frame<'_>, out: &mut Outputs<'_>) -> Fate {
        self.room.less(self.settings.kept_free).clamp(frame);
        let cutting = match Cutting::of(frame) {
            Ok(cutting) => cutting,
            Err(reason) => return Fate::Dropped(reason),
        };
        if let Some(fate) = self.fit(now, peer, frame, &cutting, out) {
            return fate;
        }
        let rekey_after_frames = self.settings.rekey_after_frames;
        let Some(mut seal) = self.seal_for(peer, false) else { return Fate::Dropped(DropReason::HoldExpired) };
        let mut emitted = 0;
        let result = seal.frame(frame.bytes, &cutting, &mut emitted, out);
        let association = seal.sender.association;
        if seal.sender.is_worn(rekey_after_frames) {
            // Should control be busy, the lane tells it again later.
            let _ = out.requests.push(Request::Worn(association));
        }
        self.ledger.emitted[Side::WIRE as usize] += emitted;
        if emitted > 0 {
            self.activities.note(now, association, |activity| activity.sealed_payload = true);
        }
        result.map_or_else(Fate::Dropped, |()| Fate::Forwarded)
    }

    /// What seals to `peer`; for the link layer itself, `own`, under the newest key.
    fn seal_for(&mut self, peer: MacAddress, own: bool) -> Option<Seal<'_>> {
        let sender = self.senders.get_mut(peer, own)?;
        Some(Seal {
            ethernet: Header { destination: peer, source: self.settings.mac, ethertype: self.settings.ethertype },
            wire_frame_max: self.room.frame_max(),
            compression: sender.key.compression,
            leaves_the_rest: false,
            compressor: &mut self.compressor,
            sender,
        })
    }

    /// Sends `peer` a message of the link layer itself. What cannot be sent now is repeated by its
    /// sender.
    pub(super) fn send_own(&mut self, peer: MacAddress, ethertype: EtherType, payload: &[u8], out: &mut Outputs<'_>) {
        let Some(mut seal) = self.seal_for(peer, true) else { return };
        // What the link layer says itself is never compressed.
        seal.compression = None;
        let inner = InnerHeader { ethertype, checksum_partial: false, compressed: false };
        let write = |place: &mut [u8]| {
            place[ethernet::HEADER_LEN..].copy_from_slice(payload);
            true
        };
        if seal.payload(inner, payload.len(), write, out).is_ok() {
            self.ledger.make(Side::WIRE);
        }
    }
}

/// Whether it is an ARP request of this host. To a peer whose key is here it is sealed like any
/// frame. Replies always go to control, where a handshake may wait for them.
fn asks_for_others(settings: &Settings, message: &[u8]) -> bool {
    wire::arp::Arp::parse(message)
        .is_ok_and(|arp| arp.operation == wire::arp::Operation::Request && settings.is_own(arp.sender_ip))
}

/// Neighbour discovery opens and completes handshakes as ARP does: a solicitation, unless it goes to
/// a peer whose key is here, and every advertisement.
fn is_for_control(packet: &[u8], has_key: impl FnOnce() -> bool) -> bool {
    use wire::icmp::{PROTOCOL_V6, v6::NEIGHBOUR_ADVERTISEMENT, v6::NEIGHBOUR_SOLICITATION};
    let Ok(ip) = wire::ipv6::View::new(packet) else { return false };
    let icmp_type = packet.get(wire::ipv6::HEADER_LEN).copied().filter(|_| ip.next_header() == PROTOCOL_V6);
    match icmp_type {
        Some(NEIGHBOUR_SOLICITATION) => !has_key(),
        Some(NEIGHBOUR_ADVERTISEMENT) => true,
        _ => false,
    }
}

/// Frames that this version does not carry, by name.
pub(super) fn not_carried(header: &Header, payload: &[u8]) -> Option<DropReason> {
    if matches!(header.ethertype, InnerHeader::NOTHING | InnerHeader::CONTROL) {
        // Behind the seal these would be ours. As lengths they are too short for any frame.
        return Some(DropReason::Malformed);
    }
    if header.destination.is_group() { not_for_groups(header.ethertype, payload) } else { None }
}

/// What does not travel as a signed group frame, whoever sends it.
pub(crate) fn not_for_groups(ethertype: EtherType, payload: &[u8]) -> Option<DropReason> {
    is_dhcp(ethertype, payload).then_some(DropReason::Dhcp)
}

pub(super) fn is_dhcp(ethertype: EtherType, packet: &[u8]) -> bool {
    ethertype == EtherType::IPV4 && wire::ipv4::View::new(packet).is_ok_and(|packet| origin::is_dhcp(&packet))
}

/// How a frame of the stack becomes frames of the wire.
pub(super) enum Cutting {
    /// As it is. The checksum may be left partial, because the seal vouches for the payload.
    Whole { checksum_partial: bool },
    /// In pieces, each with a partial checksum of the transport header that our flag means.
    Pieces(Plan),
    /// In pieces whose inner checksum must be completed, because the flag can only mean the outermost transport header.
    CompletedPieces(Plan),
}

impl Cutting {
    pub(super) fn of(frame: &mut Frame<'_>) -> Result<Cutting, DropReason> {
        let partial = match frame.meta.checksum {
            Checksum::Partial { start, offset } => Some((usize::from(start), usize::from(offset))),
            _ => None,
        };
        let Some(gso) = frame.meta.gso else { return Self::of_single(frame.bytes, partial) };
        let kind = match gso.kind {
            GsoKind::TcpV4 | GsoKind::TunnelledTcpV4 => Kind::TcpV4,
            GsoKind::TcpV6 | GsoKind::TunnelledTcpV6 => Kind::TcpV6,
            GsoKind::Udp => Kind::Udp,
        };
        let plan = Plan::new(frame.bytes, partial.map(|(start, _)| start), Cut { kind, size: gso.size })
            .map_err(|_| DropReason::BadSuperFrame)?;
        Ok(if transport_checksum(frame.bytes) == Some(plan.checksum()) {
            Cutting::Pieces(plan)
        } else {
            Cutting::CompletedPieces(plan)
        })
    }

    /// The longest frame that comes of one of `len` bytes.
    pub(super) fn longest(&self, len: usize) -> usize {
        match self {
            Cutting::Whole { .. } => len,
            Cutting::Pieces(plan) | Cutting::CompletedPieces(plan) => plan.segment_len(0),
        }
    }

    fn of_single(frame: &mut [u8], partial: Option<(usize, usize)>) -> Result<Cutting, DropReason> {
        let Some((start, offset)) = partial else { return Ok(Cutting::Whole { checksum_partial: false }) };
        let checksum_partial = transport_checksum(frame) == Some((start, offset));
        if !checksum_partial {
            complete_checksum(frame, start, offset).map_err(|_| DropReason::BadSuperFrame)?;
        }
        Ok(Cutting::Whole { checksum_partial })
    }
}

/// What all frames to one peer have in common, while one of the stack is sealed.
struct Seal<'a> {
    ethernet: Header,
    wire_frame_max: usize,
    /// With what the next payload is compressed, where that makes it smaller.
    compression: Option<Algorithm>,
    /// A piece of this super-frame got no smaller.
    leaves_the_rest: bool,
    compressor: &'a mut Compressor,
    sender: &'a mut Sender,
}

impl Seal<'_> {
    /// Seals a frame of the stack; `emitted` counts the frames that left, also when one in the middle could not.
    fn frame(
        &mut self,
        frame: &[u8],
        cutting: &Cutting,
        emitted: &mut u64,
        out: &mut Outputs<'_>,
    ) -> Result<(), DropReason> {
        let (plan, complete) = match cutting {
            Cutting::Whole { checksum_partial } => {
                let inner = inner_header(frame, *checksum_partial)?;
                let write = |place: &mut [u8]| {
                    place.copy_from_slice(frame);
                    true
                };
                self.payload(inner, frame.len() - ethernet::HEADER_LEN, write, out)?;
                *emitted += 1;
                return Ok(());
            }
            Cutting::Pieces(plan) => (plan, false),
            Cutting::CompletedPieces(plan) => (plan, true),
        };
        let inner = inner_header(frame, !complete)?;
        for index in 0..plan.segments() {
            let len = plan.segment_len(index) - ethernet::HEADER_LEN;
            self.payload(inner, len, |place| write_piece(plan, frame, index, complete, place), out)?;
            *emitted += 1;
        }
        Ok(())
    }

    /// Seals `len` bytes of payload. `write` is given the place of a whole plain frame, Ethernet header included, that
    /// ends where the payload ends; what it writes in front of the payload is overwritten.
    fn payload(
        &mut self,
        inner: InnerHeader,
        len: usize,
        write: impl FnOnce(&mut [u8]) -> bool,
        out: &mut Outputs<'_>,
    ) -> Result<(), DropReason> {
        let body_at = self.sender.body_at();
        let payload_at = body_at + INNER_HEADER_LEN;
        let frame_len = |len: usize| payload_at + len.max(PAYLOAD_MIN) + TAG_LEN;
        // Also of what would be compressed: what fits must not hang on what it says.
        if frame_len(len) > self.wire_frame_max {
            return Err(DropReason::TooBig);
        }
        // Room first: a full port must not cost a sequence number.
        let room = out.sink.reserve(Side::WIRE, frame_len(len)).ok_or(DropReason::PortFull)?;
        if !write(&mut room[payload_at - ethernet::HEADER_LEN..payload_at + len]) {
            return Err(DropReason::BadSuperFrame);
        }
        let (inner, len) = self.compress(inner, &mut room[payload_at..payload_at + len]);
        let frame_len = frame_len(len);
        let frame = &mut room[..frame_len];
        frame[payload_at + len..frame_len - TAG_LEN].fill(0);
        let sequence = self.sender.take_sequence()?;
        self.write_headers(sequence, frame);
        frame[body_at..payload_at].copy_from_slice(&inner.emit());
        self.sender.seal(sequence, frame)?;
        out.sink.commit(Side::WIRE, frame_len, Meta::plain());
        Ok(())
    }

    /// Compresses `payload` in place if that was agreed and makes it smaller; how long it is then.
    fn compress(&mut self, inner: InnerHeader, payload: &mut [u8]) -> (InnerHeader, usize) {
        let Some(algorithm) = self.compression else { return (inner, payload.len()) };
        if self.leaves_the_rest {
            self.compressor.leave(payload.len());
            return (inner, payload.len());
        }
        match self.compressor.shrink(algorithm, payload) {
            Some(len) => (InnerHeader { compressed: true, ..inner }, len),
            None => {
                // The rest of a super-frame is like this piece, most likely: as it is it costs no time and travels in a train.
                self.leaves_the_rest = true;
                (inner, payload.len())
            }
        }
    }

    fn write_headers(&self, sequence: u32, frame: &mut [u8]) {
        frame[..ethernet::HEADER_LEN].copy_from_slice(&self.ethernet.emit());
        let key = &self.sender.key;
        let header = key.nonces.header(key.receiver_index, sequence);
        header.emit(&mut frame[ethernet::HEADER_LEN..]);
    }
}

fn inner_header(frame: &[u8], checksum_partial: bool) -> Result<InnerHeader, DropReason> {
    let (header, _) = Header::parse(frame).map_err(|_| DropReason::Runt)?;
    Ok(InnerHeader { ethertype: header.ethertype, checksum_partial, compressed: false })
}

pub(super) fn write_piece(plan: &Plan, frame: &[u8], index: usize, complete: bool, place: &mut [u8]) -> bool {
    if plan.write(frame, index, place).is_none() {
        return false;
    }
    let (start, offset) = plan.checksum();
    !complete || complete_checksum(place, start, offset).is_ok()
}

impl Sender {
    /// Where the sealed body starts in a frame.
    fn body_at(&self) -> usize {
        ethernet::HEADER_LEN + self.key.nonces.header_len()
    }

    /// Encrypts the body in place, or only authenticates it, and writes the tag to the end of `frame`.
    fn seal(&self, sequence: u32, frame: &mut [u8]) -> Result<(), DropReason> {
        let tag_at = frame.len() - TAG_LEN;
        let (sealed, tag_place) = frame.split_at_mut(tag_at);
        let tag = if self.key.confidential {
            let (clear, body) = sealed.split_at_mut(self.body_at());
            self.key.key.seal(u64::from(sequence), clear, body)
        } else {
            self.key.key.seal(u64::from(sequence), sealed, &mut [])
        };
        tag_place.copy_from_slice(&tag.map_err(|_| DropReason::SequenceEnd)?);
        Ok(())
    }
}
