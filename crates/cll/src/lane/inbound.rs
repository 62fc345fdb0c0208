//! From the wire to the stack: hostile until proved. Cheap checks first (`shield`), then the tag, then origin.

use bump::{Checksum, DropReason, Fate, Frame, Mailbox, Meta, Now, Side};
use wire::cll::data::{INNER_HEADER_LEN, OVERHEAD, TAG_LEN};
use wire::cll::{DataHeader, InnerHeader, PacketType};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::layer::transport_checksum;
use wire::{Error, MacAddress};

use super::receivers::Receiver;
use super::{Lane, Outputs};
use crate::AssociationId;
use crate::message::{Claim, Request};
use crate::origin::{Claims, Passage};
use crate::settings::{Settings, Weaken};

impl Lane {
    /// The rules for a frame of the wire, in order. `None` means that its fate is entered elsewhere.
    pub(super) fn inbound(&mut self, now: Now, frame: &mut Frame<'_>, out: &mut Outputs<'_>) -> Option<Fate> {
        let Ok((header, _)) = Header::parse(frame.bytes) else { return Some(Fate::Dropped(DropReason::Runt)) };
        if header.source.is_group() {
            return Some(Fate::Dropped(DropReason::GroupSource));
        }
        if header.source == self.settings.mac {
            return Some(Fate::Dropped(DropReason::OwnSource));
        }
        if frame.meta.vlan.is_some() {
            return Some(Fate::Dropped(DropReason::Vlan));
        }
        if self.settings.passes_in_clear(header.ethertype) {
            return Some(out.forward(Side::STACK, frame));
        }
        if header.destination != self.settings.mac && !header.destination.is_group() {
            return Some(Fate::Dropped(DropReason::NotForUs));
        }
        if header.ethertype == self.settings.ethertype {
            return self.inbound_cll(now, &header, frame, out);
        }
        let refused = match self.legacy.judge(&self.settings, &header, frame) {
            Some(Ok(())) => return Some(out.forward(Side::STACK, frame)),
            Some(Err(reason)) => Some(reason),
            None => None,
        };
        self.inbound_stranger(now, &header, frame, refused, out)
    }

    fn inbound_cll(&mut self, now: Now, header: &Header, frame: &Frame<'_>, out: &mut Outputs<'_>) -> Option<Fate> {
        let kind = match PacketType::of(&frame.bytes[ETHERNET_LEN..]) {
            Ok(kind) => kind,
            Err(Error::Unsupported(_)) => return Some(Fate::Dropped(DropReason::BadVersion)),
            Err(_) => return Some(Fate::Dropped(DropReason::Malformed)),
        };
        match kind {
            PacketType::Unicast => {
                self.open(now, header, frame, out).unwrap_or_else(|reason| Some(Fate::Dropped(reason)))
            }
            // Whoever is neither client nor server keeps its queue to control for handshakes.
            PacketType::Dhcp if !self.settings.speaks_dhcp() => Some(Fate::Dropped(DropReason::DhcpNotClient)),
            PacketType::Dhcp => out.ask_control(Request::Dhcp(Side::WIRE, frame.bytes.to_vec())),
            _ => out.ask_control(Request::Handshake(frame.bytes.to_vec())),
        }
    }

    /// Opens a sealed frame and delivers what is in it; `None` means that its fate is entered
    /// elsewhere. Read the order as the order of cost.
    fn open(
        &mut self,
        now: Now,
        header: &Header,
        frame: &Frame<'_>,
        out: &mut Outputs<'_>,
    ) -> Result<Option<Fate>, DropReason> {
        let (data, sealed) = read(self.settings.mac, header, frame.bytes)?;
        let switches = self.receivers.switches;
        let Some(receiver) = self.receivers.get_mut(data.receiver_index) else {
            let _ = out.requests.push(Request::UnknownIndex(header.source));
            return Err(DropReason::UnknownIndex);
        };
        let plain_len = ETHERNET_LEN + sealed.len() - INNER_HEADER_LEN - TAG_LEN;
        receiver.checks.before_tag(header.source, &data, switches)?;
        let room = out.sink.reserve(Side::STACK, plain_len).ok_or(DropReason::PortFull)?;
        let room = &mut room[..plain_len];
        let inner = receiver.open_body(&data, frame.bytes, sealed, &self.settings.weaken, room)?;
        receiver.checks.after_tag(&data, switches)?;
        let room = if inner.compressed {
            let len_max = self.room.frame_max().saturating_sub(ETHERNET_LEN + OVERHEAD);
            let packed = self.compressor.accept(receiver.key.compression, &inner, &room[ETHERNET_LEN..], len_max)?;
            self.compressor.expand_for_stack(&packed, out.sink)?
        } else {
            room
        };
        let association = receiver.association;
        if receiver.awaits_first_frame && out.requests.push(Request::FirstFrame(association)).is_ok() {
            receiver.awaits_first_frame = false;
        }
        if matches!(inner.ethertype, InnerHeader::NOTHING | InnerHeader::CONTROL) {
            self.activities.note(now, association, |activity| activity.opened = true);
            let message = room[ETHERNET_LEN..].to_vec();
            return Ok(hear_peer(association, &inner, frame.bytes, message, out));
        }
        if !receiver.carries_payload {
            return Err(DropReason::KemPending);
        }
        let restored = receiver.restore(header, &inner, &self.settings, room);
        let meta = if inner.checksum_partial { partial_checksum(room)? } else { Meta::plain() };
        let peer = receiver.origin.mac();
        let claims = match restored {
            Ok(claims) => {
                // What it sent in clear before is history: it had no key until it heard from us.
                if !receiver.has_opened && out.requests.push(Request::FirstPayload(association)).is_ok() {
                    receiver.has_opened = true;
                    self.clear.observed.remove_proved(now.since_boot, peer);
                }
                claims
            }
            Err(reason) if self.refuses_insider(now, header.source, reason, (frame.bytes, room), out.requests) => {
                return Ok(None);
            }
            Err(_) => None,
        };
        self.clear.heard_sealed(header.source);
        if let Some(claims) = claims.filter(|claims| !self.admitted.covers(now.since_boot, peer, claims)) {
            let (sealed, opened) = (frame.bytes.to_vec(), room.to_vec());
            let claim = Claim { association, claims, sealed, opened, meta };
            return Ok(self.ask_about(now, claim, out));
        }
        let plain_len = room.len();
        out.sink.commit(Side::STACK, plain_len, meta);
        self.ledger.emitted[Side::STACK as usize] += 1;
        self.activities.note(now, association, |activity| {
            activity.opened = true;
            activity.opened_payload = true;
        });
        Ok(Some(Fate::Forwarded))
    }

    /// Whether a peer may not seal what it has, and drops that. Where it speaks in another's name, that
    /// name stands in what was sealed and nowhere else, so that is the example.
    fn refuses_insider(
        &mut self,
        now: Now,
        peer: MacAddress,
        reason: DropReason,
        (sealed, opened): (&[u8], &[u8]),
        requests: &mut Mailbox<Request>,
    ) -> bool {
        let excused = self.clear.excuse_insider(now, peer, reason, &mut self.ledger, requests);
        if let Err(reason) = excused {
            let example = if speaks_for_another(reason) { opened } else { sealed };
            self.ledger.settle(now.since_boot, Side::WIRE, Fate::Dropped(reason), example);
        }
        excused.is_err()
    }

    /// Asks control whether the peer has what a frame claims. Control delivers it then.
    fn ask_about(&mut self, now: Now, claim: Claim, out: &mut Outputs<'_>) -> Option<Fate> {
        self.activities.note(now, claim.association, |activity| {
            activity.opened = true;
            activity.opened_payload = true;
        });
        out.ask_control(Request::Claim(Box::new(claim)))
    }
}

/// Whether a sealed frame was dropped for the name in which it speaks.
pub(crate) fn speaks_for_another(reason: DropReason) -> bool {
    matches!(reason, DropReason::InnerSource | DropReason::InnerArp)
}

/// What was opened is for the link layer and not for the stack: a message, or nothing but that its sender lives.
fn hear_peer(
    association: AssociationId,
    inner: &InnerHeader,
    sealed: &[u8],
    message: Vec<u8>,
    out: &mut Outputs<'_>,
) -> Option<Fate> {
    if inner.ethertype == InnerHeader::NOTHING {
        return Some(Fate::Consumed);
    }
    out.ask_control(Request::Control(association, sealed.to_vec(), message))
}

/// The header of a data frame for this host, and what is sealed behind it.
fn read<'f>(own: MacAddress, header: &Header, frame: &'f [u8]) -> Result<(DataHeader, &'f [u8]), DropReason> {
    if header.destination != own {
        return Err(DropReason::NotForUs);
    }
    let (data, sealed) = DataHeader::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
    if sealed.len() < INNER_HEADER_LEN + TAG_LEN {
        return Err(DropReason::Malformed);
    }
    Ok((data, sealed))
}

impl Receiver {
    /// Puts the plain Ethernet header in front of the payload and checks who it says it is from. What it claims about IPv6
    /// addresses is left to be judged.
    fn restore(
        &self,
        header: &Header,
        inner: &InnerHeader,
        settings: &Settings,
        room: &mut [u8],
    ) -> Result<Option<Claims>, DropReason> {
        let restored = Header { ethertype: inner.ethertype, ..*header };
        room[..ETHERNET_LEN].copy_from_slice(&restored.emit());
        match self.origin.check(room) {
            Ok(Passage::Ipv6(_)) if !settings.ipv6 => Err(DropReason::Ipv6),
            _ if settings.weaken.cross_layer => Ok(None),
            Ok(Passage::Ipv6(claims)) => Ok(Some(claims)),
            Ok(Passage::Free) => Ok(None),
            Err(reason) => Err(reason),
        }
    }

    /// Opens the sealed body into `room`, whose last bytes then hold the payload, with space before it for an Ethernet
    /// header. The inner header lands in the last bytes of that space, so that nothing is moved afterwards.
    fn open_body(
        &self,
        data: &DataHeader,
        frame: &[u8],
        sealed: &[u8],
        weaken: &Weaken,
        room: &mut [u8],
    ) -> Result<InnerHeader, DropReason> {
        let (body, tag) = sealed.split_last_chunk::<TAG_LEN>().ok_or(DropReason::Malformed)?;
        let clear_len = ETHERNET_LEN + data.emitted_len();
        let plaintext = &mut room[ETHERNET_LEN - INNER_HEADER_LEN..];
        let sequence = u64::from(data.sequence);
        if self.key.confidential {
            let opened = self.key.key.open(sequence, &frame[..clear_len], body, tag, plaintext);
            opened.map_err(|_| DropReason::BadTag)?;
        } else {
            let covered = &frame[..clear_len + body.len()];
            let opened = self.key.key.open(sequence, covered, &[], tag, &mut []);
            if opened.is_err() && !weaken.tag {
                return Err(DropReason::BadTag);
            }
            plaintext.copy_from_slice(body);
        }
        InnerHeader::parse(plaintext).map(|(inner, _)| inner).map_err(|_| DropReason::InnerMalformed)
    }
}

/// The metadata of an inner frame whose checksum was left to be completed: where the sum starts and where it belongs.
fn partial_checksum(frame: &[u8]) -> Result<Meta, DropReason> {
    let (start, offset) = transport_checksum(frame).ok_or(DropReason::InnerMalformed)?;
    let narrow = |at: usize| u16::try_from(at).map_err(|_| DropReason::InnerMalformed);
    Ok(Meta { checksum: Checksum::Partial { start: narrow(start)?, offset: narrow(offset)? }, ..Meta::plain() })
}
