//! A connection as the scrubber knows it: who, in which state, and how far each half is.
//!
//! The states are the paper's (its figure 2), named for what they await: INIT is [`AwaitSynAck`], INIT2 is [`AwaitAck`], ESTAB
//! and CLOSE are [`Established`] before and after the first FIN, CLOSED is [`Established`] at its end or [`Ending`].

use bump::{DropReason, Side};

use crate::context::Context;
use crate::tcp::adoption::AwaitProof;
use crate::tcp::catch_up::{self, Lies};
use crate::tcp::class::Class;
use crate::tcp::established::Established;
use crate::tcp::handshake::{AwaitAck, AwaitSynAck, Next};
use crate::tcp::key::Key;
use crate::tcp::made::{self, Made};
use crate::tcp::memory::Memory;
use crate::tcp::place::Place;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::shift::Shift;
use crate::tcp::work::Work;

/// What the scrubber knows of a connection.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) key: Key,
    pub(crate) state: State,
    pub(crate) shift: Shift,
    /// The largest hop limit of a packet to the trusted side.
    pub(crate) hop_limit: u8,
    /// The side that began it here.
    pub(crate) opened_by: Side,
    /// The side of the host whose share of the table it takes: the one that opened it, or the
    /// untrusted side where that is not known.
    pub(crate) holder: Side,
    /// Packets forwarded, by the side that they came from.
    pub(crate) packets: [u32; 2],
    pub(crate) bytes: Bytes,
    /// When it began here and when it was seen last, in whole seconds since boot.
    pub(crate) opened: u32,
    pub(crate) last_seen: u32,
    pub(crate) place: Place,
}

impl Flow {
    /// Whether its handshake, or its adoption, came to its end just now.
    pub(crate) fn has_just_begun(&self) -> bool {
        self.place.class() == Class::HalfOpen && self.state.class().is_held()
    }

    /// How far each half was acknowledged, by the side that sends, where both are known.
    pub(crate) fn heard(&self) -> Option<[u32; 2]> {
        let State::Established(established) = &self.state else { return None };
        Some(established.halves.each_ref().map(|half| half.unacknowledged))
    }

    /// Whether it is in use and of the share of the host on side `side`.
    pub(crate) fn is_held_by(&self, side: Side) -> bool {
        self.place.class().is_held() && self.holder == side
    }

    /// Whether its handshake was not seen.
    pub(crate) fn is_older(&self) -> bool {
        matches!(&self.state, State::Established(established) if !established.agreed.is_known)
    }
}

/// Bytes of data forwarded, by the side that they came from: each count has 48 bits, 26 days at
/// a gigabit a second, and both take 12 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bytes {
    low: [u32; 2],
    high: [u16; 2],
}

impl Bytes {
    const MAX: u64 = (1 << 48) - 1;

    pub(crate) fn of(self, side: usize) -> u64 {
        u64::from(self.high[side]) << 32 | u64::from(self.low[side])
    }

    pub(crate) fn both(self) -> [u64; 2] {
        [self.of(0), self.of(1)]
    }

    pub(crate) fn add(&mut self, side: usize, len: usize) {
        let sum = self.of(side).saturating_add(len as u64).min(Bytes::MAX);
        (self.high[side], self.low[side]) = ((sum >> 32) as u16, sum as u32);
    }
}

/// A million idle connections fit into a quarter of a gigabyte, the four bytes of a place in the table included.
const _: () = assert!(size_of::<Flow>() + size_of::<u32>() <= 256);

/// Where a connection stands.
#[derive(Debug)]
pub(crate) enum State {
    AwaitSynAck(AwaitSynAck),
    AwaitAck(AwaitAck),
    AwaitProof(AwaitProof),
    Established(Established),
    Ended(Ending),
}

/// Why nothing of a connection passes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It fell silent. What begins again in its middle could say other bytes than before. Its ends are
    /// told at its next segment, as below.
    Expired { untold: Option<[u32; 2]> },
    /// It is older than the scrubber and was not adopted. Its ends were told.
    Older,
    /// A rule ended it.
    Severed,
    /// An operator ended it, and it stays so. Until its next segment nobody told its ends; these are the sequence numbers to do
    /// it with, by the side that sends.
    Blocked { untold: Option<[u32; 2]> },
}

impl Ending {
    /// Tells both hosts if nobody did, and says why the segment is dropped.
    fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> DropReason {
        let (untold, reason) = match self {
            Ending::Expired { untold } => (untold, DropReason::TcpNoConnection),
            Ending::Blocked { untold } => (untold, DropReason::FlowSevered),
            Ending::Older => {
                let reset = closed(work);
                work.made.extend(reset);
                return DropReason::TcpNoConnection;
            }
            Ending::Severed => return DropReason::FlowSevered,
        };
        work.made.extend(untold.take().map(|next| made::resets(work.key, next)).into_iter().flatten());
        reason
    }
}

/// What a closed port answers (RFC 9293, section 3.10.7.1): whoever did not hear that a connection is
/// over hears it again.
fn closed(work: &Work<'_, '_, '_>) -> Option<Made> {
    let segment = &*work.segment;
    let is_plain = segment.flags & (flag::ACK | flag::SYN | flag::RST) == flag::ACK;
    is_plain.then(|| made::reset(work.key, work.context.from, segment.acknowledgement, None))
}

impl From<Next> for State {
    fn from(next: Next) -> State {
        match next {
            Next::AwaitAck(state) => State::AwaitAck(state),
            Next::Established(established) => State::Established(established),
        }
    }
}

impl State {
    pub(crate) fn class(&self) -> Class {
        match self {
            State::AwaitSynAck(_) | State::AwaitAck(_) | State::AwaitProof(_) => Class::HalfOpen,
            State::Established(established) => established.class(),
            State::Ended(Ending::Blocked { .. }) => Class::Blocked,
            State::Ended(_) => Class::Ended,
        }
    }

    /// Judges a segment and goes on to the next state.
    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<(), DropReason> {
        let next = match self {
            State::AwaitSynAck(state) => state.receive(work)?.map(State::from),
            State::AwaitAck(state) => state.receive(work)?.map(State::Established),
            State::AwaitProof(state) => state.receive(work)?.map(State::Established),
            State::Established(state) => {
                state.receive(work)?;
                None
            }
            State::Ended(ending) => return Err(ending.receive(work)),
        };
        if let Some(next) = next {
            *self = next;
        }
        Ok(())
    }

    /// Whether the SYN in `work` may begin a new connection in this one's place.
    pub(crate) fn may_begin_anew(&self, from: Side, segment: &Segment<'_>, context: &mut Context<'_>) -> bool {
        match self {
            State::AwaitSynAck(_) | State::AwaitAck(_) => false,
            State::AwaitProof(_) | State::Ended(Ending::Expired { .. } | Ending::Older) => true,
            State::Established(established) => established.may_begin_anew(from, segment, context),
            State::Ended(Ending::Severed | Ending::Blocked { .. }) => false,
        }
    }

    /// Whether a SYN would take the place of the one of its side that is not answered yet.
    pub(crate) fn is_renewed_by(&self, from: Side, syn: &Segment<'_>) -> bool {
        let State::AwaitSynAck(state) = self else { return false };
        let (initiator, next) = state.initiator();
        initiator == from && next != syn.sequence.wrapping_add(1)
    }

    /// The next sequence number of each half, by side, where both are known.
    pub(crate) fn next(&self) -> Option<[u32; 2]> {
        match self {
            State::AwaitAck(state) => Some(state.next()),
            State::Established(established) => Some(established.halves.each_ref().map(|half| half.in_sequence)),
            State::AwaitProof(state) => state.next(),
            State::AwaitSynAck(_) | State::Ended(_) => None,
        }
    }

    /// The resets that end it for both sides, where it is known what they must say.
    pub(crate) fn resets(&self, shift: Shift, key: &Key) -> Option<[Made; 2]> {
        if let State::AwaitSynAck(state) = self {
            let (initiator, next) = state.initiator();
            return Some(made::refusals(key, initiator, next, shift));
        }
        if let State::AwaitProof(state) = self {
            return state.resets(key);
        }
        Some(made::resets(key, self.next()?))
    }

    /// Whether the receiver of what side `from` sends must say first how far it is.
    pub(crate) fn awaits_word_on(&self, from: Side) -> bool {
        matches!(self, State::Established(established) if established.awaits[from as usize])
    }

    /// Where a segment from side `from` lies, if it becomes a question and would be sent again.
    pub(crate) fn lies(&self, from: Side, segment: &Segment<'_>) -> Option<Lies> {
        let State::Established(established) = self else { return None };
        let is_asked = established.awaits[from as usize] && !established.is_reset();
        is_asked.then(|| catch_up::lies(segment, &established.halves[from as usize])).flatten()
    }

    /// Whether nothing that is sent again goes on any more: a host has reset it, or it ended here.
    pub(crate) fn is_cut(&self) -> bool {
        match self {
            State::Established(established) => established.is_reset(),
            State::Ended(_) => true,
            State::AwaitSynAck(_) | State::AwaitAck(_) | State::AwaitProof(_) => false,
        }
    }

    /// Gives back all memory.
    pub(crate) fn give_back(&mut self, memory: &mut Memory) {
        if let State::Established(established) = self {
            established.give_back(memory);
        }
    }
}
