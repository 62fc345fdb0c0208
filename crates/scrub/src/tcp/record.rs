//! A connection as another scrubber is told of it, with the same keys and the same rules.
//!
//! What is retained is not told: it is as much as passes. So a connection that was told begins as
//! one of which the receiver of each scrubbed half must say first how far it is ([`catch_up`]). What
//! was refused stays refused.
//!
//! Numbers are in network order, and a record has one form only.
//!
//! [`catch_up`]: crate::tcp::catch_up

use std::net::IpAddr;

use bump::Side;

use crate::tcp::agreed::{Agreed, Ecn};
use crate::tcp::established::Established;
use crate::tcp::flow::{Bytes, Ending, Flow, State};
use crate::tcp::half::{Fin, Half, Scale, WINDOW_SCALE_MAX};
use crate::tcp::key::Key;
use crate::tcp::options::Few;
use crate::tcp::place::Place;
use crate::tcp::shift::Shift;

const VERSION: u8 = 2;
const ESTABLISHED: u8 = 1;
const EXPIRED: u8 = 2;
const SEVERED: u8 = 3;
const BLOCKED: u8 = 4;
/// The bit of an established one's flags that says who opened it.
const OPENED_BY_UNTRUSTED: u8 = 5;

/// Appends `flow` as it stands at `now`, in whole seconds since boot. False where there is nothing
/// to tell: a handshake that is not complete is repeated by its hosts.
pub(crate) fn write(flow: &Flow, now: u32, record: &mut Vec<u8>) -> bool {
    let tag = match &flow.state {
        State::Established(_) => ESTABLISHED,
        State::Ended(Ending::Expired { .. } | Ending::Older) => EXPIRED,
        State::Ended(Ending::Severed) => SEVERED,
        State::Ended(Ending::Blocked { .. }) => BLOCKED,
        State::AwaitSynAck(_) | State::AwaitAck(_) | State::AwaitProof(_) => return false,
    };
    record.extend_from_slice(&[VERSION, tag, if flow.key.trusted.is_ipv4() { 4 } else { 6 }]);
    for address in [flow.key.trusted, flow.key.untrusted] {
        match address {
            IpAddr::V4(address) => record.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => record.extend_from_slice(&address.octets()),
        }
    }
    record.extend_from_slice(&flow.key.trusted_port.to_be_bytes());
    record.extend_from_slice(&flow.key.untrusted_port.to_be_bytes());
    let silent = now.saturating_sub(flow.last_seen);
    for number in [flow.key.vlans, flow.shift.sequence, flow.shift.timestamps, silent] {
        record.extend_from_slice(&number.to_be_bytes());
    }
    record.push(flow.hop_limit);
    if let State::Established(established) = &flow.state {
        agreed(&established.agreed, (flow.opened_by, established.opened_at), record);
        established.halves.iter().for_each(|told| half(told, now, record));
    }
    true
}

fn agreed(agreed: &Agreed, (opened_by, opened_at): (Side, u32), record: &mut Vec<u8>) {
    let ecn = match agreed.ecn {
        Ecn::None => 0,
        Ecn::Classic => 1,
        Ecn::Accurate => 2,
    };
    let opened_by = u8::from(opened_by == Side::UNTRUSTED) << OPENED_BY_UNTRUSTED;
    let known = u8::from(agreed.sack) | u8::from(agreed.timestamps) << 1 | u8::from(agreed.is_known) << 2;
    let flags = known | ecn << 3 | opened_by;
    let others = agreed.others.as_slice();
    record.extend_from_slice(&[flags, others.len() as u8]);
    record.extend_from_slice(others);
    record.extend_from_slice(&opened_at.to_be_bytes());
}

fn half(half: &Half, now: u32, record: &mut Vec<u8>) {
    let (fin, at) = match half.fin {
        // What waited for a hole is sent again by its sender.
        Fin::None | Fin::Waiting(_) => (0, 0),
        Fin::At(at) => (1, at),
    };
    let age = now.saturating_sub(half.stamp_at);
    for number in [half.unacknowledged, half.end, half.edge, half.window_max, at, half.stamp, age] {
        record.extend_from_slice(&number.to_be_bytes());
    }
    record.extend_from_slice(&half.mss.to_be_bytes());
    let flags = fin | u8::from(half.has_stamp) << 1 | u8::from(half.is_reset) << 2;
    record.extend_from_slice(&[half.scale.own, half.scale.told, flags]);
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn short(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn address(&mut self, version: u8) -> Option<IpAddr> {
        match version {
            4 => self.take::<4>().map(IpAddr::from),
            6 => self.take::<16>().map(IpAddr::from),
            _ => None,
        }
    }
}

/// Reads a record at `now`; `None` if it is none. `scrubbed` says which halves are scrubbed.
pub(crate) fn read(record: &[u8], now: u32, scrubbed: [bool; 2]) -> Option<Flow> {
    let mut reader = Reader(record);
    if reader.byte()? != VERSION {
        return None;
    }
    let (tag, version) = (reader.byte()?, reader.byte()?);
    let (trusted, untrusted) = (reader.address(version)?, reader.address(version)?);
    let (trusted_port, untrusted_port) = (reader.short()?, reader.short()?);
    let vlans = reader.word()?;
    let shift = Shift { sequence: reader.word()?, timestamps: reader.word()? };
    let last_seen = now.saturating_sub(reader.word()?);
    let hop_limit = reader.byte()?;
    // Of one that is over it is not told who opened it; servers have the lower port.
    let mut opened_by = if trusted_port > untrusted_port { Side::TRUSTED } else { Side::UNTRUSTED };
    let mut holder = Side::UNTRUSTED;
    let state = match tag {
        ESTABLISHED => {
            let (established, opener) = established(&mut reader, now, scrubbed)?;
            opened_by = opener;
            holder = if established.agreed.is_known { opener } else { Side::UNTRUSTED };
            State::Established(established)
        }
        EXPIRED => State::Ended(Ending::Expired { untold: None }),
        SEVERED => State::Ended(Ending::Severed),
        BLOCKED => State::Ended(Ending::Blocked { untold: None }),
        _ => return None,
    };
    let key = Key { trusted, untrusted, trusted_port, untrusted_port, vlans };
    let (packets, bytes, place) = ([0; 2], Bytes::default(), Place::none());
    let opened = last_seen;
    let flow = Flow { key, state, shift, hop_limit, opened_by, holder, packets, bytes, opened, last_seen, place };
    reader.0.is_empty().then_some(flow)
}

/// An established connection, and who opened it.
fn established(reader: &mut Reader<'_>, now: u32, scrubbed: [bool; 2]) -> Option<(Established, Side)> {
    let flags = reader.byte()?;
    let opener = if flags >> OPENED_BY_UNTRUSTED & 1 == 1 { Side::UNTRUSTED } else { Side::TRUSTED };
    let ecn = match (flags & !(1 << OPENED_BY_UNTRUSTED)) >> 3 {
        0 => Ecn::None,
        1 => Ecn::Classic,
        2 => Ecn::Accurate,
        _ => return None,
    };
    let bit = |at: u8| flags >> at & 1 == 1;
    let mut others = Few::default();
    for _ in 0..reader.byte()? {
        others.push(reader.byte()?).then_some(())?;
    }
    let agreed = Agreed { sack: bit(0), timestamps: bit(1), ecn, others, is_known: bit(2), is_told: true };
    let opened_at = reader.word()?;
    let halves = [read_half(reader, now)?, read_half(reader, now)?];
    let mut established = Established { halves, agreed, opened_at, awaits: [false; 2] };
    established.await_word(scrubbed);
    Some((established, opener))
}

fn read_half(reader: &mut Reader<'_>, now: u32) -> Option<Half> {
    let unacknowledged = reader.word()?;
    let (end, edge, window_max) = (reader.word()?, reader.word()?, reader.word()?);
    let (at, stamp, age) = (reader.word()?, reader.word()?, reader.word()?);
    let mss = reader.short()?;
    let scale = Scale { own: reader.byte()?, told: reader.byte()? };
    let flags = reader.byte()?;
    if flags >> 3 != 0 || scale.own.max(scale.told) > WINDOW_SCALE_MAX || (flags & 1 == 0 && at != 0) {
        return None;
    }
    Some(Half {
        end,
        in_sequence: end,
        reached: end,
        edge,
        window_max,
        fin: if flags & 1 == 1 { Fin::At(at) } else { Fin::None },
        stamp,
        stamp_at: now.saturating_sub(age),
        mss,
        scale,
        has_stamp: flags >> 1 & 1 == 1,
        is_reset: flags >> 2 & 1 == 1,
        ..Half::at(unacknowledged, now)
    })
}

/// Which halves are scrubbed, by the side that sends.
pub(crate) fn scrubbed(both_directions: bool) -> [bool; 2] {
    let mut scrubbed = [both_directions; 2];
    scrubbed[Side::UNTRUSTED as usize] = true;
    scrubbed
}
