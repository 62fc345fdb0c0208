//! TCP: the transport scrubber (the paper's section III) and the TCP half of the fingerprint scrubber (section IV-B3).
//!
//! Every segment is read into fields ([`segment`]), judged by itself ([`header`]) and then by the state of its connection
//! ([`flow`], [`handshake`], [`established`]). Three ideas carry the rest:
//!
//! - *The first version of a byte is the only one* ([`stream`], [`retained`]). It is kept until its receiver acknowledges it;
//!   afterwards nobody hears that byte again.
//! - *What only the receiver can judge becomes a harmless question* ([`question`]), which the receiver answers with its own
//!   state. So nothing is eaten silently and nobody who guesses gets through.
//! - *Numbers of trusted hosts are shifted at the edge* ([`shift`]): everything here works in the trusted host's own.

mod acknowledgement;
mod adoption;
mod agreed;
mod carriage;
mod catch_up;
mod changes;
mod class;
mod closing;
mod drain;
mod ended;
mod established;
pub(crate) mod events;
mod flow;
mod greeting;
mod half;
mod handshake;
mod header;
pub(crate) mod key;
mod made;
mod memory;
pub(crate) mod options;
mod parked;
mod place;
mod question;
mod quote;
mod record;
mod report;
mod retained;
pub(crate) mod segment;
pub(crate) mod serial;
mod shift;
pub(crate) mod sources;
mod stream;
mod table;
mod timestamps;
mod told;
mod validation;
mod work;

use std::ops::RangeInclusive;

use bump::{DropReason, Instant, Side, time};
use wire::layer::protocol;

use crate::context::Context;
use crate::departure::Departure;
use crate::ip::Ip;
use crate::keys::{self, Keys};
use crate::limits::BLOCKED_MAX;
use crate::packet::{Packet, Transport};
use crate::rule::{Action, Rule};
use crate::settings::{Adopt, Settings};
use adoption::AwaitProof;
use carriage::{Carriage, For, NotBack};
use changes::Changes;
use class::Class;
use ended::Ends;
use events::{Event, Events};
use flow::{Bytes, Ending, Flow, State};
use handshake::AwaitSynAck;
use key::Key;
use memory::{Holder, Memory};
use parked::Parking;
use place::{Index, Place};
use segment::{Segment, flag};
use shift::Shift;
use table::Table;
use validation::Validation;
use work::{Work, seconds};

pub use ended::{Came, FlowEnd, Over};
pub use key::FlowId;
pub(crate) use made::Made;
pub(crate) use parked::Parked;
pub use parked::Waits;
pub use report::{CarriedFlows, FlowCounts, FlowReport};
pub use told::{BadRecord, Told};

/// Everything that is known about connections.
#[derive(Debug)]
pub(crate) struct Flows {
    /// Whether any rule of TCP is on; without one, segments pass unread.
    is_active: bool,
    table: Table,
    /// The memory for unacknowledged data.
    pub(crate) memory: Memory,
    events: Events,
    /// Segments of the scrubber's own that the latest packet called for.
    made: Vec<Made>,
    /// The connection of the segment that is being judged.
    in_hand: Option<Key>,
    /// The key of all shifts.
    secret: keys::Key,
    /// What another scrubber is to be told.
    changes: Changes,
    /// What waits after another scrubber's end.
    pub(crate) parking: Parking,
    /// What is over.
    ends: Ends,
    validation: Validation,
    /// What a program in the kernel carries.
    pub(crate) carriage: Carriage,
}

/// The rules of this room.
const RULES: RangeInclusive<Rule> = Rule::TcpHeader..=Rule::TcpInitialWindow;

impl Flows {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Flows {
        let is_on = |rule: &Rule| settings.rules.action(*rule) != Action::Off;
        Flows {
            is_active: Rule::ALL.iter().filter(|rule| RULES.contains(rule)).any(is_on),
            table: Table::new(keys::Key::new(&keys.tables), settings.flows, settings.idle),
            memory: Memory::of(settings, keys::Key::new(&keys.tables)),
            events: Events::default(),
            made: Vec::new(),
            in_hand: None,
            secret: keys::Key::new(&keys.sequence),
            changes: Changes::default(),
            parking: Parking::default(),
            ends: Ends::default(),
            validation: Validation::new(settings, keys),
            carriage: Carriage::new(settings, keys),
        }
    }

    /// Judges the segment in `packet`, if it carries one, and puts it there as fields. What the scrubber itself wants sent
    /// waits in [`made`](Flows::made), whatever becomes of the packet.
    pub(crate) fn scrub(
        &mut self,
        context: &mut Context<'_>,
        packet: &mut Packet<'_>,
    ) -> Result<Departure, DropReason> {
        self.made.clear();
        if !self.is_active || packet.ip.protocol() != protocol::TCP || packet.ip.fragment().is_some() {
            return Ok(Departure::Now);
        }
        let Transport::Bytes(bytes) = &mut packet.transport else { return Ok(Departure::Now) };
        let mut segment = segment::read(context, &packet.ip, packet.checksum, std::mem::take(bytes))?;
        let key = Key::of(context.from, &packet.link, &packet.ip, segment.source_port, segment.destination_port);
        let piece_len = packet.gso.map_or(segment.data().len(), |gso| usize::from(gso.size));
        let has_header = header::judge(context, &mut segment);
        if has_header.is_ok() && self.validation.hear(context, &key, &segment) {
            return Ok(Departure::Never);
        }
        let judged = has_header.and_then(|()| self.track(context, &key, &mut packet.ip, &mut segment, piece_len));
        self.sever_if_told(context, &key, judged)?;
        leave(context, packet, segment);
        Ok(Departure::Now)
    }

    /// Finds the connection and lets it judge the segment.
    fn track(
        &mut self,
        context: &mut Context<'_>,
        key: &Key,
        ip: &mut Ip,
        segment: &mut Segment<'_>,
        piece_len: usize,
    ) -> Result<(), DropReason> {
        self.in_hand = Some(*key);
        let found = self.table.find(key);
        if let Some(index) = found
            && !self.table.get_mut(index).is_some_and(|flow| self.carriage.borrow(context, flow, segment))
        {
            self.take_back(index, context.now, For::Judging)?;
        }
        let known = found.and_then(|index| self.table.get(index)).filter(|_| segment.opens());
        let ends = known.is_some_and(|flow| flow.state.may_begin_anew(context.from, segment, context));
        let is_renewed = known.is_some_and(|flow| flow.state.is_renewed_by(context.from, segment));
        let Some(index) = found.filter(|_| !ends) else {
            if !self.may_begin(context, key, found, segment)? {
                return Ok(());
            }
            found.into_iter().for_each(|index| self.forget(index, Over::Reused));
            return self.begin(context, key, ip, segment);
        };
        if is_renewed {
            self.validate(context, key, segment)?;
        }
        let Some(flow) = self.table.get_mut(index) else { return Ok(()) };
        if context.from == Side::UNTRUSTED {
            flow.shift.back(segment);
        }
        let (from, to) = (context.from, context.from.other());
        let asked = flow.state.lies(from, segment);
        let was_awaited = flow.state.awaits_word_on(to);
        let mut work = Work {
            segment,
            key,
            holder: Holder { side: flow.holder, is_older: flow.is_older() },
            shift: &mut flow.shift,
            memory: &mut self.memory,
            events: &mut self.events,
            made: &mut self.made,
            piece_len,
            context,
        };
        let judged = flow.state.receive(&mut work);
        if judged.is_ok() {
            flow.pass(context, ip, segment);
            self.carriage.after(context, flow, segment, (&mut self.memory, &mut self.made));
            let has_spoken = was_awaited && !flow.state.awaits_word_on(to);
            self.parking.note(index, asked, has_spoken.then_some(to));
        }
        self.carriage.give(flow);
        let begun_by = flow.has_just_begun().then(|| (flow.holder, flow.is_older()));
        made::finish(&mut self.made, flow.shift, flow.hop_limit);
        judged?;
        if let Some(holder) = begun_by {
            self.within_share(context, key, Some(index), holder)?;
        }
        if let (Some((Side::UNTRUSTED, false)), Some(flow)) = (begun_by, self.table.get(index)) {
            self.validation.completed(context.now, key, flow.opened);
        }
        self.touch(index, context.now);
        Ok(())
    }

    /// Refuses a connection where its holder has as many as one host may, and ends it if it has
    /// begun.
    fn within_share(
        &mut self,
        context: &Context<'_>,
        key: &Key,
        begun: Option<Index>,
        (holder, is_older): (Side, bool),
    ) -> Result<(), DropReason> {
        let Some(source) = self.table.exhausted(key, holder, is_older) else { return Ok(()) };
        if let Some(index) = begun {
            // Many may have been half-open at a time. Nothing of it is kept, or those would fill
            // the table.
            let heard = self.table.get(index).and_then(Flow::heard);
            self.sever(index, context.now, heard, Ending::Severed);
            self.remove(index);
        }
        self.events.report_rarely(context.now, events::Kind::SourceFull, Event::SourceFull { source });
        // Who sent the segment is to blame only for what he opened himself.
        let is_his = source.is_host() && holder == context.from && !is_older;
        Err(if is_his { DropReason::FlowsOfSource } else { DropReason::FlowsOfNetwork })
    }

    /// Whether a connection may begin with a segment, in the place of `found`. `Ok(false)` lets it
    /// pass unjudged.
    fn may_begin(
        &mut self,
        context: &mut Context<'_>,
        key: &Key,
        found: Option<Index>,
        segment: &mut Segment<'_>,
    ) -> Result<bool, DropReason> {
        if !segment.opens() {
            return self.may_adopt(context, key, segment);
        }
        // The share of the one before is free again, if it is of the same host.
        let known = found.and_then(|index| self.table.get(index));
        if !known.is_some_and(|flow| flow.is_held_by(context.from)) {
            self.within_share(context, key, None, (context.from, false))?;
        }
        self.validate(context, key, segment)?;
        Ok(true)
    }

    /// Refuses a SYN whose sender has to show first that it receives, and asks it.
    fn validate(&mut self, context: &Context<'_>, key: &Key, syn: &Segment<'_>) -> Result<(), DropReason> {
        self.validation.admit(context, key, syn).map_err(|challenge| {
            let requests = self.validation.excess(context.now).unwrap_or_default();
            let event = Event::ValidatesAddresses { requests };
            self.events.report_rarely(context.now, events::Kind::ValidatesAddresses, event);
            self.made.extend(challenge);
            DropReason::AddressNotValidated
        })
    }

    /// Enters a connection that may begin with a segment.
    fn begin(
        &mut self,
        context: &mut Context<'_>,
        key: &Key,
        ip: &mut Ip,
        segment: &mut Segment<'_>,
    ) -> Result<(), DropReason> {
        let mut shift = first_shift(&self.secret, context, key, segment);
        if context.from == Side::UNTRUSTED {
            shift.back(segment);
        }
        let opens = segment.opens();
        let side = if opens { context.from } else { Side::UNTRUSTED };
        let holder = Holder { side, is_older: !opens };
        let (memory, events, made) = (&mut self.memory, &mut self.events, &mut self.made);
        let piece_len = segment.data().len();
        let mut work = Work { segment, key, holder, shift: &mut shift, memory, events, made, piece_len, context };
        let state = if work.segment.opens() {
            State::AwaitSynAck(AwaitSynAck::begin(&mut work))
        } else {
            let mut state = State::AwaitProof(AwaitProof::begin(work.seconds()));
            state.receive(&mut work)?;
            state
        };
        let now = seconds(context.now);
        let key = *key;
        let mut flow = Flow {
            key,
            state,
            shift,
            hop_limit: 0,
            opened_by: context.from,
            holder: holder.side,
            packets: [0; 2],
            bytes: Bytes::default(),
            opened: now,
            last_seen: now,
            place: Place::none(),
        };
        flow.pass(context, ip, segment);
        self.make_room(context)?;
        self.table.insert(flow);
        Ok(())
    }

    /// Whether a segment in the middle of an unknown connection may begin its adoption. `Ok(false)` lets it pass unjudged.
    fn may_adopt(
        &mut self,
        context: &mut Context<'_>,
        key: &Key,
        segment: &mut Segment<'_>,
    ) -> Result<bool, DropReason> {
        if !context.on(Rule::TcpHandshake) {
            return Ok(false);
        }
        if context.settings.adopt != Adopt::No && adoption::may_begin(segment) {
            if context.settings.adopt != Adopt::End || context.from == Side::TRUSTED {
                return Ok(true);
            }
            // A question and nothing more: what the trusted host answers is the first that is kept.
            if self.validation.may_ask(context.now) {
                catch_up::ask(context, segment, None);
                return Ok(false);
            }
        }
        // Under a flood half-open connections are forgotten, and their answers come all the same.
        let (_, max) = self.table.len_and_max();
        let may_be_forgotten = self.table.len_of(Class::HalfOpen) >= max / 2;
        if context.from == Side::TRUSTED && segment.has(flag::SYN | flag::ACK) && !may_be_forgotten {
            let event = Event::AsymmetricPath { flow: key.id() };
            self.events.report_rarely(context.now, events::Kind::AsymmetricPath, event);
        }
        Err(context.refused(Rule::TcpHandshake, DropReason::TcpNoConnection))
    }

    /// Makes room in the table: half-open connections first.
    fn make_room(&mut self, context: &Context<'_>) -> Result<(), DropReason> {
        let (len, max) = self.table.len_and_max();
        let index = if self.table.len_of(Class::HalfOpen) > max / 2 {
            self.table.oldest(Class::HalfOpen)
        } else if len == max {
            self.table.dispensable(seconds(context.now))
        } else {
            return Ok(());
        };
        let Some(index) = index else {
            self.events.report_rarely(context.now, events::Kind::FlowsFull, Event::FlowsFull);
            return Err(DropReason::FlowsFull);
        };
        self.forget(index, Over::Evicted);
        Ok(())
    }

    /// Forgets a connection, which is over for the reason `over` if it was not before.
    fn forget(&mut self, index: Index, over: Over) {
        if let Some(flow) = self.remove(index).filter(|flow| !flow.place.class().is_over()) {
            self.ends.enter(&flow, flow.last_seen, over);
        }
    }

    /// Forgets a connection, of which nothing is told.
    fn remove(&mut self, index: Index) -> Option<Flow> {
        self.parking.end(index);
        let now = self.carriage.looked_at();
        if let Some(flow) = self.table.get_mut(index) {
            // What becomes of it is nobody's concern any more, but what has passed is counted.
            let _gone = self.carriage.take_back(flow, &mut self.memory, seconds(now), For::Ending);
        }
        let mut flow = self.table.remove(index)?;
        flow.state.give_back(&mut self.memory);
        Some(flow)
    }

    /// Takes a connection back from the kernel, if it is there.
    ///
    /// # Errors
    /// A processor has it at this moment: who sent the segment in hand sends it again.
    fn take_back(&mut self, index: Index, now: Instant, what_for: For) -> Result<(), DropReason> {
        let Some(flow) = self.table.get_mut(index) else { return Ok(()) };
        let key = flow.key;
        match self.carriage.take_back(flow, &mut self.memory, seconds(now), what_for) {
            Ok(()) => return Ok(()),
            Err(NotBack::Locked) => return Err(DropReason::InternalError),
            Err(NotBack::BehindHole(why)) => {
                let (kind, event, reason) = stream::refusal(&key, flow.holder, why);
                self.events.report_rarely(now, kind, event);
                return Err(reason);
            }
            Err(NotBack::NoRoom(_)) => {}
        }
        // The first version of what is under way is lost, so its ends are told at its next segment.
        let untold = flow.state.next();
        flow.state.give_back(&mut self.memory);
        flow.state = State::Ended(Ending::Expired { untold });
        self.events.report_rarely(now, events::Kind::MemoryFull, Event::MemoryFull { flow: key.id() });
        self.touch(index, now);
        Ok(())
    }

    /// Takes all connections back.
    pub(crate) fn take_all_back(&mut self) {
        let now = self.carriage.looked_at();
        for index in self.carriage.all().iter().filter_map(|key| self.table.find(key)).collect::<Vec<_>>() {
            // One that is locked comes back with its next segment that is not clean.
            let _locked = self.take_back(index, now, For::Ending);
        }
    }

    /// Enters what the kernel has carried, and takes back what is idle.
    fn look_at_carried(&mut self, at: Instant) {
        let (moved, idle) = self.carriage.look(at);
        for (key, new) in moved {
            let Some(index) = self.table.find(&key) else { continue };
            if let Some(flow) = self.table.get_mut(index) {
                flow.add_carried(&new);
            }
            self.touch(index, at);
        }
        for key in idle {
            match self.table.find(&key) {
                // One that is locked comes back at the next look.
                Some(index) => drop(self.take_back(index, at, For::Judging)),
                None => self.carriage.discard(&key),
            }
        }
    }

    /// Ends the connection for both sides if a rule that applied says so.
    fn sever_if_told(
        &mut self,
        context: &mut Context<'_>,
        key: &Key,
        judged: Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let Some(rule) = context.severed_by() else { return judged };
        let Some(index) = self.table.find(key) else { return judged };
        match self.table.get(index).map(|flow| &flow.state) {
            None | Some(State::Ended(_)) => {}
            Some(State::AwaitProof(state)) if judged == Err(DropReason::FlowSevered) && state.next().is_some() => {
                self.sever(index, context.now, None, Ending::Older);
                self.events.count_older(context.now);
            }
            Some(_) => {
                self.sever(index, context.now, None, Ending::Severed);
                self.events.report(Event::Severed { rule, flow: key.id() });
            }
        }
        Err(judged.err().unwrap_or(DropReason::FlowSevered))
    }

    /// Ends the connection at `index` for both sides: at these sequence numbers, by the side that
    /// sends, where it is not as it stands.
    fn sever(&mut self, index: Index, now: Instant, next: Option<[u32; 2]>, ending: Ending) {
        let Some(flow) = self.table.get_mut(index) else { return };
        // Also one that a rule ends before it is looked for. One that is locked passes no more all
        // the same.
        let _locked = self.carriage.take_back(flow, &mut self.memory, seconds(now), For::Ending);
        let resets = next.map(|next| made::resets(&flow.key, next));
        self.made.clear();
        self.made.extend(resets.or_else(|| flow.state.resets(flow.shift, &flow.key)).into_iter().flatten());
        made::finish(&mut self.made, flow.shift, flow.hop_limit);
        flow.state.give_back(&mut self.memory);
        flow.state = State::Ended(ending);
        self.parking.forget_question();
        self.touch(index, now);
    }

    /// Another packet comes next.
    pub(crate) fn put_down(&mut self) {
        self.in_hand = None;
        self.parking.put_down();
    }

    /// The packet in hand is put together of fragments, and cannot come again alone.
    pub(crate) fn put_down_whole(&mut self) {
        self.in_hand = None;
        self.parking.forget_question();
    }

    /// A panic cut the judgement of a segment short: nothing of its connection passes any more.
    pub(crate) fn end_torn(&mut self, now: Instant) {
        self.made.clear();
        let index = self.in_hand.take().and_then(|key| self.table.find(&key));
        if let Some(index) = index
            && let Some(flow) = self.table.get_mut(index)
        {
            // Also one that was handed over just before.
            let _locked = self.carriage.take_back(flow, &mut self.memory, seconds(now), For::Ending);
            flow.state.give_back(&mut self.memory);
            flow.state = State::Ended(Ending::Severed);
            self.touch(index, now);
        }
    }

    /// Notes that a connection was seen, and that it is another one than before.
    fn touch(&mut self, index: Index, now: Instant) {
        let last_seen = self.table.get(index).map_or(0, |flow| flow.last_seen);
        let was_over = self.table.touch(index, seconds(now)).is_none_or(Class::is_over);
        if self.table.get(index).is_some_and(|flow| flow.state.is_cut()) {
            self.parking.end(index);
        }
        if let Some(flow) = self.table.get(index).filter(|flow| !was_over && flow.place.class().is_over()) {
            let over = ended::over(&flow.state);
            self.ends.enter(flow, if over == Over::Silent { last_seen } else { flow.last_seen }, over);
        }
        self.changes.mark(index);
    }

    /// Connections that are over since this was called last, and how many more there ever were; of
    /// the next ones at most `max` are kept.
    pub(crate) fn take_ended(&mut self, max: usize) -> (Vec<FlowEnd>, u64) {
        self.ends.take(max)
    }

    /// Segments that the scrubber itself wants sent beside the latest packet, in order.
    pub(crate) fn made(&self) -> &[Made] {
        &self.made
    }

    /// Forgets at most `budget` connections whose time has come.
    pub(crate) fn tick(&mut self, at: Instant, budget: usize) {
        self.events.tell_older(at);
        self.look_at_carried(at);
        let now = seconds(at);
        for _ in 0..budget {
            let Some(index) = self.table.expired(now) else {
                if self.table.deadline().is_none_or(|deadline| seconds(deadline) > now) {
                    return;
                }
                continue;
            };
            match self.table.get_mut(index) {
                Some(flow) if flow.state.class() == Class::Established => {
                    // What another scrubber told of it may be long past.
                    let is_own = ![Side::TRUSTED, Side::UNTRUSTED].iter().any(|side| flow.state.awaits_word_on(*side));
                    let untold = flow.state.next().filter(|_| is_own);
                    flow.state.give_back(&mut self.memory);
                    flow.state = State::Ended(Ending::Expired { untold });
                    self.touch(index, at);
                }
                _ => self.forget(index, Over::Silent),
            }
        }
    }

    /// When [`tick`](Flows::tick) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let others = [self.parking.deadline(), self.events.deadline(), self.carriage.deadline()];
        others.into_iter().fold(self.table.deadline(), time::earlier)
    }

    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// Holes that were acknowledged and never filled here, and their bytes.
    pub(crate) fn missing(&self) -> (u64, u64) {
        self.events.missing()
    }

    /// Every connection, as it stands at `now`.
    pub(crate) fn reports(&self, now: Instant) -> impl Iterator<Item = FlowReport> {
        self.table.iter().map(move |flow| flow.report(seconds(now), self.carriage.holds(&flow.key)))
    }

    /// How many connections there are at `now`.
    pub(crate) fn counts(&self, now: Instant) -> FlowCounts {
        FlowCounts {
            all: self.table.len_and_max().0,
            half_open: self.table.len_of(Class::HalfOpen),
            validates_addresses: self.validation.excess(now).is_some(),
            carried: self.carriage.counts(),
        }
    }

    /// Blocks a connection: it ends for both sides at its next segment, and no other begins in its place. False if as many as
    /// may be are blocked already.
    pub(crate) fn block(&mut self, at: Instant, id: &FlowId) -> bool {
        let key = Key::from(id);
        let now = seconds(at);
        if self.table.len_of(Class::Blocked) >= BLOCKED_MAX {
            return false;
        }
        if let Some(index) = self.table.find(&key) {
            // One that is locked ends all the same, at its next segment.
            let _locked = self.take_back(index, at, For::Ending);
            let Some(flow) = self.table.get_mut(index) else { return false };
            let untold = flow.state.next();
            flow.state.give_back(&mut self.memory);
            flow.state = State::Ended(Ending::Blocked { untold });
            self.touch(index, at);
            return true;
        }
        let state = State::Ended(Ending::Blocked { untold: None });
        let (shift, place) = (Shift::default(), Place::none());
        let (opened_by, holder) = (Side::UNTRUSTED, Side::UNTRUSTED);
        let (packets, bytes) = ([0; 2], Bytes::default());
        let (opened, last_seen, hop_limit) = (now, now, 0);
        let flow = Flow { key, state, shift, hop_limit, opened_by, holder, packets, bytes, opened, last_seen, place };
        let (len, max) = self.table.len_and_max();
        if let (true, Some(index)) = (len == max, self.table.dispensable(now)) {
            self.forget(index, Over::Evicted);
        }
        let inserted = self.table.insert(flow);
        inserted.into_iter().for_each(|index| self.changes.mark(index));
        inserted.is_some()
    }

    /// Whether the connection is remembered and not blocked.
    pub(crate) fn remembers(&self, id: &FlowId) -> bool {
        self.known(id).is_some_and(|(_, class)| class != Class::Blocked)
    }

    /// Lets a blocked connection begin again. False if it was not blocked.
    pub(crate) fn unblock(&mut self, id: &FlowId) -> bool {
        let Some((index, Class::Blocked)) = self.known(id) else { return false };
        self.remove(index);
        true
    }

    fn known(&self, id: &FlowId) -> Option<(Index, Class)> {
        let index = self.table.find(&Key::from(id))?;
        Some((index, self.table.get(index)?.state.class()))
    }
}

/// The shift of a connection that begins with `segment`, to be taken back if it turns out that none was used before.
fn first_shift(secret: &keys::Key, context: &Context<'_>, key: &Key, segment: &Segment<'_>) -> Shift {
    // The receiver would find the signature wrong if the number that it covers were another.
    let is_signed = context.from == Side::TRUSTED && segment.options.is_signed();
    let is_older_than_keys = !segment.opens() && context.settings.adopt == Adopt::Unshifted;
    if is_signed || is_older_than_keys { Shift::default() } else { Shift::of(context, secret, key) }
}

impl Flow {
    /// Enters a segment that goes on, and gives it the numbers and the hop limit with which it does.
    fn pass(&mut self, context: &mut Context<'_>, ip: &mut Ip, segment: &mut Segment<'_>) {
        let from = context.from as usize;
        self.packets[from] = self.packets[from].saturating_add(1);
        self.bytes.add(from, segment.data().len());
        if context.from == Side::TRUSTED {
            self.shift.forth(segment);
            return;
        }
        // A packet that dies on its way tells an observer what its receiver never hears.
        if context.acts_if(ip.hop_limit() < self.hop_limit, Rule::HopLimitFloor) {
            ip.set_hop_limit(self.hop_limit);
        }
        self.hop_limit = self.hop_limit.max(ip.hop_limit());
    }
}

/// Gives the segment the form in which it leaves, and the packet the metadata that fit it.
fn leave<'a>(context: &mut Context<'_>, packet: &mut Packet<'a>, mut segment: Segment<'a>) {
    // A signature may cover the options as they stand (RFC 5925, section 5.1).
    let has_own_order = !context.on(Rule::TcpOptionOrder) || segment.options.is_signed();
    segment.settle((!has_own_order).then_some(&context.settings.option_order));
    if let Some(gso) = &mut packet.gso {
        gso.ecn &= segment.has(flag::CWR);
        if segment.data().len() <= usize::from(gso.size) {
            packet.gso = None;
        }
    }
    packet.transport = Transport::Tcp(segment);
}
