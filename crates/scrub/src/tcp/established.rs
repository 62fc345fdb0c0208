//! An established connection, up to its end (the paper's states ESTAB, CLOSE and CLOSED).

use bump::{DropReason, Side};

use crate::context::Context;
use crate::rule::Rule;
use crate::tcp::agreed::Agreed;
use crate::tcp::class::Class;
use crate::tcp::greeting::Greeting;
use crate::tcp::half::{Fin, Half};
use crate::tcp::memory::Memory;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;
use crate::tcp::work::Work;
use crate::tcp::{acknowledgement, catch_up, closing, question, stream, timestamps};

/// A connection whose handshake is complete.
#[derive(Debug)]
pub(crate) struct Established {
    /// By the side that sends.
    pub(crate) halves: [Half; 2],
    pub(crate) agreed: Agreed,
    /// The sequence number of the SYN that began it, where the handshake was seen.
    pub(crate) opened_at: u32,
    /// Halves of which another scrubber told how far they were, by the side that sends: their peer
    /// must say how far they are.
    pub(crate) awaits: [bool; 2],
}

impl Established {
    /// The connection that `initiator` opened by `syn` and its peer answered by `answer`.
    pub(crate) fn agree(initiator: Side, syn: &Greeting, answer: &Greeting, now: u32) -> Established {
        let mut halves = [Half::new(syn, answer, now), Half::new(answer, syn, now)];
        if initiator == Side::UNTRUSTED {
            halves.reverse();
        }
        Established { halves, agreed: Agreed::of(syn, answer), opened_at: syn.sequence, awaits: [false; 2] }
    }

    /// A connection older than the scrubber, by the next sequence number of the trusted and of the untrusted host.
    pub(crate) fn adopt(trusted: u32, untrusted: u32, now: u32) -> Established {
        let halves = [Half::adopted(trusted, now), Half::adopted(untrusted, now)];
        Established { halves, agreed: Agreed::unknown(), opened_at: 0, awaits: [false; 2] }
    }

    /// From now on the peers of the halves that are `scrubbed` must say how far they are.
    pub(crate) fn await_word(&mut self, scrubbed: [bool; 2]) {
        self.agreed.is_told = true;
        self.awaits = scrubbed;
    }

    /// The half of the host on side `from`, and that of its peer.
    fn split(&mut self, from: Side) -> (&mut Half, &mut Half) {
        let [inner, outer] = &mut self.halves;
        if from == Side::Inner { (inner, outer) } else { (outer, inner) }
    }

    /// Judges a segment, in the order of RFC 9293, section 3.10.7.4, but that timestamps and acknowledgement come before
    /// anything changes.
    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<(), DropReason> {
        let agreed = self.agreed;
        let mut awaits = self.awaits;
        let (sender, receiver) = self.split(work.context.from);
        let is_late = sender.is_reset && !work.segment.has(flag::RST);
        work.context.refuse_if(is_late, Rule::TcpReset, DropReason::TcpNoConnection)?;
        if work.segment.has(flag::SYN) || (receiver.is_reset && !work.segment.has(flag::RST)) {
            return question::instead(work, Rule::TcpHandshake, sender, receiver, &agreed);
        }
        agreed.limit(work.context, work.segment)?;
        let is_question = awaits != [false; 2] && catch_up::catch_up(work, sender, receiver, &agreed, &mut awaits)?;
        if is_question {
            self.awaits = awaits;
            return Ok(());
        }
        if work.segment.has(flag::RST) {
            closing::reset(work, sender, receiver, &agreed)?;
            if sender.is_reset {
                // Neither says a byte more, so nothing that was said is needed again.
                self.give_back(work.memory);
            }
            return Ok(());
        }
        timestamps::judge(work, sender, &agreed)?;
        acknowledgement::judge(work, receiver, &agreed)?;
        if work.context.scrubs() {
            stream::judge(work, sender, receiver, &agreed)?;
        } else {
            stream::follow(work, sender);
        }
        acknowledgement::take(work, sender, receiver, &agreed);
        timestamps::remember(work, sender);
        self.awaits = awaits;
        Ok(())
    }

    /// Whether a host has reset it.
    pub(crate) fn is_reset(&self) -> bool {
        self.halves.iter().any(|half| half.is_reset)
    }

    pub(crate) fn class(&self) -> Class {
        if self.is_reset() || self.halves.iter().all(Half::is_closed) {
            Class::Closed
        } else if self.halves.iter().any(|half| matches!(half.fin, Fin::At(_))) {
            Class::Closing
        } else {
            Class::Established
        }
    }

    /// Whether the SYN from `from` may begin a new connection in this one's place. The SYN that
    /// began it may not: it was sent again before its answer was heard, or another segment overtook
    /// it. What else a trusted host says of its own connections is believed; after a reset nobody
    /// waits; otherwise RFC 6191, section 2.
    pub(crate) fn may_begin_anew(&self, from: Side, segment: &Segment<'_>, context: &mut Context<'_>) -> bool {
        if self.agreed.is_known && self.opened_at == segment.sequence {
            return false;
        }
        if from == Side::TRUSTED || self.is_reset() {
            return true;
        }
        if self.class() != Class::Closed {
            return false;
        }
        let half = &self.halves[from as usize];
        let stamp = segment.options.timestamps.filter(|_| half.has_stamp);
        let is_later = stamp.is_some_and(|stamps| ahead(stamps.value, half.stamp) > 0);
        let may = is_later || ahead(segment.sequence, half.end) > 0;
        !context.acts_if(!may, Rule::TcpPortReuse)
    }

    /// Gives back what is retained.
    pub(crate) fn give_back(&mut self, memory: &mut Memory) {
        for mut retained in self.halves.iter_mut().filter_map(|half| half.store.bytes.take()) {
            retained.give_back(memory);
        }
    }
}
