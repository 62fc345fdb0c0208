//! The three-way handshake in its one usual form (RFC 9293, section 3.5; the paper's states INIT and INIT2).
//!
//! What a SYN or a SYN-ACK says counts when it is first said; who says it again is made to say the same. Nothing is agreed that
//! one side did not offer, and no data passes before the initiator has shown that it heard the answer.

use bump::{DropReason, Side};

use crate::context::Context;
use crate::limits;
use crate::rule::Rule;
use crate::tcp::agreed::{Agreed, Ecn};
use crate::tcp::closing;
use crate::tcp::established::Established;
use crate::tcp::events;
use crate::tcp::events::Event;
use crate::tcp::greeting::Greeting;
use crate::tcp::options::{Few, Options, kind};
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;
use crate::tcp::shift::Shift;
use crate::tcp::work::Work;

/// Answers of which the initiator may choose by what it acknowledges: a server without state may give another after a while.
const ANSWERS_MAX: usize = 2;

/// INIT: a SYN went on.
#[derive(Debug)]
pub(crate) struct AwaitSynAck {
    initiator: Side,
    syn: Greeting,
    /// The SYN in whose place it came: the answer to that may be under way.
    before: Option<Greeting>,
    /// The sequence number at which the initiator resets what the responder takes for an older connection.
    challenged_at: Option<u32>,
    /// Whether the responder refused.
    is_refused: bool,
    /// Whether it was reported that the answer must have taken another path.
    is_reported: bool,
}

/// INIT2: a SYN-ACK went on.
#[derive(Debug)]
pub(crate) struct AwaitAck {
    initiator: Side,
    syn: Greeting,
    answers: Few<Greeting, ANSWERS_MAX>,
}

/// What follows a SYN.
#[derive(Debug)]
pub(crate) enum Next {
    AwaitAck(AwaitAck),
    Established(Established),
}

/// A segment that has no place in the handshake.
fn misplaced<T>(work: &mut Work<'_, '_, '_>) -> Result<Option<T>, DropReason> {
    work.context.refuse_if(true, Rule::TcpHandshake, DropReason::TcpHandshake)?;
    Ok(None)
}

/// Makes a SYN or SYN-ACK carry nothing but what opens a connection.
fn clean(work: &mut Work<'_, '_, '_>) {
    let segment = &mut *work.segment;
    if work.context.on(Rule::TcpSynData) {
        let had_fast_open = segment.options.remove_fast_open();
        if work.context.acts_if(had_fast_open || !segment.data().is_empty(), Rule::TcpSynData) {
            segment.truncate(0);
        }
    }
    // A signature covers length and flags of the header (RFC 2385, section 2; RFC 5925, section
    // 5.1), so nothing may go.
    if segment.options.is_signed() {
        return;
    }
    let has_others = !segment.options.others.as_slice().is_empty();
    if work.context.acts_if(has_others, Rule::TcpUnknownOptions) {
        segment.options.others.retain(|_| false);
    }
    plain(work.context, &mut work.segment.options, &mut work.segment.flags);
}

/// Leaves of what hosts offer each other only what all of them do: the segment size. Nothing can be offered in a host's name, so
/// hosts look alike only by offering less.
fn plain(context: &mut Context<'_>, options: &mut Options<'_>, flags: &mut u16) {
    let offers = options.window_scale.is_some() || options.sack_permitted || options.timestamps.is_some();
    if context.acts_if(offers || *flags & flag::ECN != 0, Rule::TcpPlainHandshake) {
        (options.window_scale, options.sack_permitted, options.timestamps) = (None, false, None);
        *flags &= !flag::ECN;
    }
}

/// Clears what is no offer of ECN: neither the classic one (RFC 3168, section 6.1.1) nor the accurate one (RFC 9768).
fn offer_of_ecn(context: &mut Context<'_>, segment: &mut Segment<'_>) {
    let offered = segment.flags & flag::ECN;
    let is_offer = [0, flag::CWR | flag::ECE, flag::ECN].contains(&offered);
    if context.acts_if(!is_offer, Rule::TcpReservedBits) {
        segment.flags &= !flag::ECN;
    }
}

/// Gives the handshake of a trusted host common values (rule `tcp-initial-window`). None of them is ever raised but the scale,
/// and later windows are written in it.
fn common_values(work: &mut Work<'_, '_, '_>) {
    let is_covered = work.segment.options.is_signed();
    if is_covered || work.context.from != Side::TRUSTED || !work.context.on(Rule::TcpInitialWindow) {
        return;
    }
    work.context.acted(Rule::TcpInitialWindow);
    let segment = &mut *work.segment;
    segment.window = segment.window.min(limits::INITIAL_WINDOW);
    segment.options.window_scale = segment.options.window_scale.map(|_| limits::WINDOW_SCALE);
    let unused = limits::SEGMENT_UNUSED + if work.key.trusted.is_ipv6() { 60 } else { 40 };
    let mss = work.context.settings.mtu.saturating_sub(unused).min(usize::from(u16::MAX)) as u16;
    segment.options.mss = segment.options.mss.map(|own| own.min(mss));
}

impl Greeting {
    /// What the segment in `work` says; `None` of the options beyond the first few stay in it.
    fn hear(work: &mut Work<'_, '_, '_>) -> Greeting {
        let options = &mut work.segment.options;
        let mut others = Few::default();
        let has_too_many = options.others.retain(|kind| others.push(kind));
        let window_scale = options.window_scale;
        let stamps = options.timestamps.map(|stamps| (stamps.value, stamps.value));
        let window = work.segment.window;
        work.context.acts_if(has_too_many, Rule::TcpOptions);
        common_values(work);
        let options = &work.segment.options;
        Greeting {
            sequence: work.segment.sequence,
            data_len: work.segment.data().len().min(usize::from(u16::MAX)) as u16,
            window,
            mss: options.mss,
            window_scale,
            told_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            stamps,
            ecn: work.segment.flags & flag::ECN,
            others,
        }
    }

    /// Makes a repetition say what was said first. Less may be said: hosts leave options out when nobody answers.
    fn pin(&mut self, work: &mut Work<'_, '_, '_>) {
        common_values(work);
        let options = &mut work.segment.options;
        let before = (options.mss, options.window_scale, options.sack_permitted, options.timestamps.is_some());
        options.mss = options.mss.and(self.mss);
        options.window_scale = options.window_scale.and(self.told_scale);
        options.sack_permitted &= self.sack_permitted;
        match (&mut self.stamps, options.timestamps) {
            (Some((_, latest)), Some(stamps)) => *latest = stamps.value,
            (Some(_), None) => {}
            (None, _) => options.timestamps = None,
        }
        let after = (options.mss, options.window_scale, options.sack_permitted, options.timestamps.is_some());
        let others = self.others;
        let lost = options.others.retain(|kind| others.as_slice().contains(&kind));
        work.context.acts_if(lost || before != after, Rule::TcpHandshake);
        work.segment.flags &= !flag::ECN | self.ecn;
    }
}

impl AwaitSynAck {
    /// Begins with the SYN in `work`.
    pub(crate) fn begin(work: &mut Work<'_, '_, '_>) -> AwaitSynAck {
        clean(work);
        offer_of_ecn(work.context, work.segment);
        let syn = Greeting::hear(work);
        let initiator = work.context.from;
        AwaitSynAck { initiator, syn, before: None, challenged_at: None, is_refused: false, is_reported: false }
    }

    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        let is_initiator = work.context.from == self.initiator;
        let has = |flags| work.segment.has(flags);
        match (has(flag::SYN), has(flag::ACK), has(flag::RST)) {
            (true, false, _) if is_initiator => self.repeat(work),
            (true, true, _) if !is_initiator => self.answer(work),
            (_, _, true) if is_initiator => self.give_up(work),
            (_, _, true) => self.refuse(work),
            (false, true, _) if is_initiator => self.report(work),
            (false, true, _) => self.challenge(work),
            // A SYN from the other end would be a simultaneous open, or a handshake in four parts.
            _ => misplaced(work),
        }
    }

    /// The SYN again. One with another number takes its place: until there is an answer nobody is
    /// bound by the first, and who forges a SYN that is never answered keeps nobody out. Which of
    /// them counts is what the answer acknowledges.
    fn repeat(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        if work.segment.sequence != self.syn.sequence {
            let before = Some(self.syn).filter(|_| !self.is_refused);
            *self = AwaitSynAck { before, ..AwaitSynAck::begin(work) };
            return Ok(None);
        }
        self.is_refused = false;
        clean(work);
        self.syn.pin(work);
        Ok(None)
    }

    fn answer(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        if self.is_refused {
            return misplaced(work);
        }
        let next = work.segment.acknowledgement;
        let mut syn = self.before.filter(|before| before.sequence.wrapping_add(1) == next).unwrap_or(self.syn);
        // The connection begins behind the data that the responder took with the SYN.
        let taken = next.wrapping_sub(syn.sequence).wrapping_sub(1);
        if taken <= syn.data_len.into() {
            syn.sequence = syn.sequence.wrapping_add(taken);
        }
        let answer = hear_answer(work, &syn)?;
        let mut answers = Few::default();
        answers.push(answer);
        Ok(Some(Next::AwaitAck(AwaitAck { initiator: self.initiator, syn, answers })))
    }

    /// A closed port. Some hosts believe a reset only with a fitting echo of their timestamp, so it must fit for all.
    fn refuse(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        let next = self.syn.sequence.wrapping_add(1);
        let is_wrong = !work.segment.has(flag::ACK) || work.segment.acknowledgement != next;
        work.context.refuse_if(is_wrong, Rule::TcpReset, DropReason::TcpReset)?;
        if work.context.scrubs() {
            let is_wrong = work.segment.options.timestamps.is_some_and(|stamps| !echoes(&self.syn, stamps.echo));
            work.context.refuse_if(is_wrong, Rule::TcpTimestamps, DropReason::TcpTimestamp)?;
        }
        closing::strip(work);
        if work.context.from == Side::TRUSTED && work.context.on(Rule::TcpResetForm) {
            // The sequence number of a reset to a SYN is zero (RFC 9293, section 3.10.7.1), also once it is shifted.
            work.segment.sequence = 0_u32.wrapping_sub(work.shift.sequence);
            work.segment.flags = flag::RST | flag::ACK;
            work.segment.window = 0;
        }
        self.is_refused = true;
        Ok(None)
    }

    /// The responder acknowledges something else: it remembers an older connection, and the initiator will reset that
    /// (RFC 9293, section 3.5.1, figure 9). The acknowledgement passes, bare.
    fn challenge(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        let acknowledgement = work.segment.acknowledgement;
        if acknowledgement == self.syn.sequence.wrapping_add(1) || !work.context.on(Rule::TcpHandshake) {
            return misplaced(work);
        }
        work.segment.truncate(0);
        (work.segment.flags, work.segment.urgent_pointer) = (flag::ACK, 0);
        work.segment.options = Options::default();
        self.challenged_at = Some(acknowledgement);
        Ok(None)
    }

    /// The initiator resets what the responder takes for an older connection, or the one that it began itself.
    fn give_up(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        let sequence = work.segment.sequence;
        let is_own = sequence == self.syn.sequence.wrapping_add(1);
        let is_wrong = !is_own && self.challenged_at != Some(sequence);
        work.context.refuse_if(is_wrong, Rule::TcpReset, DropReason::TcpReset)?;
        closing::reset_form(work);
        self.is_refused |= is_own;
        Ok(None)
    }

    /// The initiator goes on without an answer from here: it heard one that took another path.
    fn report(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        let knows = work.segment.sequence == self.syn.sequence.wrapping_add(1);
        if knows && work.context.settings.misses_segments {
            return self.go_on(work);
        }
        if knows && !std::mem::replace(&mut self.is_reported, true) {
            let event = Event::AsymmetricPath { flow: work.key.id() };
            work.events.report_rarely(work.context.now, events::Kind::AsymmetricPath, event);
        }
        misplaced(work)
    }
}

impl AwaitSynAck {
    /// The answer comes later or was missed: a bare acknowledgement waits for it no longer than data does.
    fn go_on(&self, work: &mut Work<'_, '_, '_>) -> Result<Option<Next>, DropReason> {
        if work.segment.data().is_empty() {
            return Ok(None);
        }
        let (own, other) = (work.segment.sequence, work.segment.acknowledgement);
        let (trusted, untrusted) = if self.initiator == Side::TRUSTED { (own, other) } else { (other, own) };
        let mut established = Established::adopt(trusted, untrusted, work.seconds());
        established.receive(work)?;
        Ok(Some(Next::Established(established)))
    }
}

/// Whether `echo` lies between the first and the latest timestamp of a SYN, as Linux demands.
fn echoes(syn: &Greeting, echo: u32) -> bool {
    syn.stamps.is_some_and(|(first, latest)| ahead(echo, first) >= 0 && ahead(latest, echo) >= 0)
}

/// Judges a SYN-ACK to `syn` and takes out of it what `syn` did not offer.
fn hear_answer(work: &mut Work<'_, '_, '_>, syn: &Greeting) -> Result<Greeting, DropReason> {
    let is_wrong = work.segment.acknowledgement != syn.sequence.wrapping_add(1);
    work.context.refuse_if(is_wrong, Rule::TcpHandshake, DropReason::TcpHandshake)?;
    if let Some(stamps) = work.segment.options.timestamps
        && syn.stamps.is_some()
    {
        // Hosts differ in what they do about a wrong one: Linux resets, others go on.
        let is_wrong = work.context.scrubs() && !echoes(syn, stamps.echo);
        work.context.refuse_if(is_wrong, Rule::TcpTimestamps, DropReason::TcpTimestamp)?;
    }
    clean(work);
    only_offered(work, syn);
    if work.context.from == Side::TRUSTED && work.segment.options.is_signed() {
        *work.shift = Shift::default();
    }
    Ok(Greeting::hear(work))
}

fn only_offered(work: &mut Work<'_, '_, '_>, syn: &Greeting) {
    let segment = &mut *work.segment;
    let options = &mut segment.options;
    let has_strange_stamps = options.timestamps.is_some() && syn.stamps.is_none();
    if work.context.acts_if(has_strange_stamps, Rule::TcpTimestamps) {
        options.timestamps = None;
    }
    if work.context.on(Rule::TcpOptions) {
        let is_strange = (options.window_scale.is_some() && syn.window_scale.is_none())
            || (options.sack_permitted && !syn.sack_permitted);
        options.window_scale = options.window_scale.filter(|_| syn.window_scale.is_some());
        options.sack_permitted &= syn.sack_permitted;
        let may_count = syn.ecn == flag::ECN;
        let is_offered =
            |kind| syn.others.as_slice().contains(&kind) || (may_count && kind::ACCURATE_ECN.contains(&kind));
        let had_others = options.others.retain(is_offered);
        work.context.acts_if(is_strange || had_others, Rule::TcpOptions);
    }
    let is_strange = segment.flags & flag::ECN != 0 && Ecn::agreed(syn.ecn, segment.flags & flag::ECN) == Ecn::None;
    if work.context.acts_if(is_strange, Rule::TcpReservedBits) {
        segment.flags &= !flag::ECN;
    }
}

impl AwaitAck {
    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Established>, DropReason> {
        let is_initiator = work.context.from == self.initiator;
        let has = |flags| work.segment.has(flags);
        let is_same_syn = work.segment.sequence == self.syn.sequence;
        match (has(flag::SYN), has(flag::ACK), has(flag::RST)) {
            (true, false, _) if is_initiator && is_same_syn => {
                clean(work);
                self.syn.pin(work);
                Ok(None)
            }
            (true, true, _) if !is_initiator => self.answer_again(work),
            (_, _, true) => self.reset(work),
            (false, true, _) if is_initiator => self.confirm(work),
            // Data of a responder whose answer is not confirmed: it sends it again.
            _ => misplaced(work),
        }
    }

    /// The same answer again, or a second one of a server that keeps no state.
    fn answer_again(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Established>, DropReason> {
        let sequence = work.segment.sequence;
        if let Some(first) = self.answers.as_slice().first() {
            // Hosts give up ECN when nobody answers; what was agreed stays agreed.
            work.segment.flags = work.segment.flags & !flag::ECN | first.ecn;
        }
        let answer = hear_answer(work, &self.syn)?;
        let first = self.answers.as_slice().first().copied().unwrap_or(answer);
        // What follows from the options would depend on which of the answers was heard.
        let is_same_offer = Agreed::of(&self.syn, &answer) == Agreed::of(&self.syn, &first)
            && answer.window_scale == first.window_scale
            && answer.mss == first.mss;
        let is_known = self.answers.as_slice().iter().any(|known| known.sequence == sequence);
        let may_pass = is_same_offer && (is_known || self.answers.push(answer));
        work.context.refuse_if(!may_pass, Rule::TcpHandshake, DropReason::TcpHandshake)?;
        Ok(None)
    }

    /// The initiator heard an answer. Its own acknowledgement may be lost, then the first data carries it.
    fn confirm(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Established>, DropReason> {
        let acknowledgement = work.segment.acknowledgement;
        let heard = self.answers.as_slice().iter().find(|answer| answer.sequence.wrapping_add(1) == acknowledgement);
        let is_early = ahead(work.segment.sequence, self.syn.sequence) <= 0;
        let Some(answer) = heard.filter(|_| !is_early) else { return misplaced(work) };
        let mut established = Established::agree(self.initiator, &self.syn, answer, work.seconds());
        match established.receive(work) {
            Ok(()) => Ok(Some(established)),
            Err(reason) => {
                established.give_back(work.memory);
                Err(reason)
            }
        }
    }

    /// Exactly at the next sequence number, from either end.
    fn reset(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Established>, DropReason> {
        let from_initiator = work.context.from == self.initiator;
        let sequence = work.segment.sequence;
        let exact = |greeting: &Greeting| greeting.sequence.wrapping_add(1) == sequence;
        let answers = self.answers.as_slice();
        let answer = if from_initiator {
            let acknowledged = work.segment.acknowledgement;
            let heard = answers.iter().find(|answer| answer.sequence.wrapping_add(1) == acknowledged);
            heard.or(answers.first()).filter(|_| exact(&self.syn))
        } else {
            answers.iter().find(|answer| exact(answer))
        };
        let Some(answer) = answer else {
            work.context.refuse_if(true, Rule::TcpReset, DropReason::TcpReset)?;
            return Ok(None);
        };
        let mut established = Established::agree(self.initiator, &self.syn, answer, work.seconds());
        established.receive(work)?;
        Ok(Some(established))
    }
}

impl AwaitSynAck {
    /// Who opens, and the sequence number behind the SYN.
    pub(crate) fn initiator(&self) -> (Side, u32) {
        (self.initiator, self.syn.sequence.wrapping_add(1))
    }
}

impl AwaitAck {
    /// The next sequence numbers, by side.
    pub(crate) fn next(&self) -> [u32; 2] {
        let answer = self.answers.as_slice().last().map_or(0, |answer| answer.sequence);
        let mut next = [answer.wrapping_add(1); 2];
        next[self.initiator as usize] = self.syn.sequence.wrapping_add(1);
        next
    }
}
