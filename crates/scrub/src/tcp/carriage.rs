//! Which connections a program in the kernel carries (record 0123), and how they go there and come back.
//!
//! What waits in the daemon's socket is older than what the program sees, so a connection of which
//! anything waits there comes back at once. One with little under way is handed over in the hope that
//! nothing waits. A busy one is [drained](Drain) first.

use bump::{DropReason, Instant, Ledger, Side};

use crate::carried::{Carried, Carrier, Half as Numbers, Headers, Moved, NotTaken, Room};
use crate::context::Context;
use crate::fingerprint;
use crate::keys::{self, Keys};
use crate::limits::{
    CARRIED_FAR, CARRIED_OPEN_MAX_BYTES, CARRIED_PACKETS_MIN, CARRIED_STAYS_MAX, DRAIN_PACKETS, DRAINED_ROOM_BYTES,
    SHORT_ROOM_MAX_BYTES,
};
use crate::settings::Settings;
use crate::tcp::class::Class;
use crate::tcp::drain::{Drain, Pace};
use crate::tcp::established::Established;
use crate::tcp::flow::{Flow, State};
use crate::tcp::half::{Fin, Half};
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::memory::{Holder, Memory, NoRoom, Purpose};
use crate::tcp::report::CarriedFlows;
use crate::tcp::retained::Bytes;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::{ahead, is_within};

/// Why a connection was not taken back whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotBack {
    /// A processor has a half of it at this moment. It is the kernel's as before.
    Locked,
    /// There is no memory for what is under way, so it must end.
    NoRoom(NoRoom),
    /// There is no memory for what lies behind a hole. It is the kernel's as before.
    BehindHole(NoRoom),
}

/// Why a connection is taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// Somebody said something that is not clean, or nothing for long. Memory behind a hole must be
    /// there, as for any other connection: who leaves a hole may never fill it.
    Judging,
    /// It ends, or all do.
    Ending,
}

/// Connections that are carried, and what was tried with them.
#[derive(Debug)]
pub(crate) struct Carriage {
    carrier: Option<Carrier>,
    /// Whether the rules are such that the program does all that they say.
    rules_allow: bool,
    /// The key of flow labels.
    labels: keys::Key,
    /// What was tried with the latest connection of each place.
    attempts: Vec<Attempts>,
    looked_at: Instant,
    /// How often connections went and came.
    counts: CarriedFlows,
    /// Whose segment is judged while the connection is carried, and from which side it came.
    borrowed: Option<(Key, Side)>,
}

/// What was tried with a connection.
#[derive(Clone, Debug, Default)]
struct Attempts {
    key: Option<Key>,
    /// Clean segments that the daemon has heard since it was handed over last.
    since: u32,
    /// How often in a row it came back soon.
    short_stays: u8,
    /// Of this place, whoever has it.
    pace: Pace,
    drain: Option<Drain>,
    /// Whether it was drained before it was handed over last.
    is_drained: bool,
}

impl Carriage {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Carriage {
        let labels = keys::Key::new(&keys.identification);
        let rules_allow = settings.may_be_carried();
        let (looked_at, counts) = (Instant::default(), CarriedFlows::default());
        Carriage { carrier: None, rules_allow, labels, attempts: Vec::new(), looked_at, counts, borrowed: None }
    }

    /// Has connections carried from now on, if the rules let any be.
    pub(crate) fn begin(&mut self, carrier: Carrier) {
        if self.rules_allow {
            self.attempts = vec![Attempts::default(); crate::carried::layout::PLACES as usize];
            self.carrier = Some(carrier);
        }
    }

    /// How much is carried.
    pub(crate) fn counts(&self) -> CarriedFlows {
        let (flows, segments) = self.carrier.as_ref().map(|it| (it.len(), it.counts().segments)).unwrap_or_default();
        CarriedFlows { flows, segments: segments.iter().sum(), ..self.counts }
    }

    /// Whether the connection of `key` is carried.
    pub(crate) fn holds(&self, key: &Key) -> bool {
        self.carrier.as_ref().is_some_and(|carrier| carrier.holds(key).is_some())
    }

    /// Enters in the books what was carried.
    pub(crate) fn add_to_ledger(&self, total: &mut Ledger) {
        let Some(carrier) = &self.carrier else { return };
        let counts = carrier.counts();
        for side in 0..2 {
            let (passed, wrong, failed) = (counts.segments[side], counts.bad_checksums[side], counts.failed[side]);
            total.received[side] += passed + wrong + failed;
            total.forwarded[side] += passed;
            total.emitted[1 - side] += passed;
            total.dropped[DropReason::TcpChecksum as usize] += wrong;
            total.dropped[DropReason::InternalError as usize] += failed;
        }
    }

    /// The oldest number of the half of `sender` that is not acknowledged, and the next, if the
    /// connection is carried.
    pub(crate) fn under_way(&self, key: &Key, sender: Side) -> Option<(u32, u32)> {
        self.carrier.as_ref()?.under_way(key, sender)
    }

    /// What was carried since the last look, and which connections were silent for long.
    pub(crate) fn look(&mut self, now: Instant) -> (Vec<Moved>, Vec<Key>) {
        self.looked_at = now;
        self.carrier.as_mut().map(|carrier| carrier.look(now)).unwrap_or_default()
    }

    /// When it was looked at last: the time, to a second or so.
    pub(crate) fn looked_at(&self) -> Instant {
        self.looked_at
    }

    /// When [`look`](Carriage::look) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.carrier.as_ref()?.deadline()
    }

    /// All connections that are carried.
    pub(crate) fn all(&self) -> Vec<Key> {
        self.carrier.as_ref().map(Carrier::all).unwrap_or_default()
    }

    /// Takes back a connection of which nothing is known any more.
    pub(crate) fn discard(&mut self, key: &Key) {
        if let Some(carrier) = &mut self.carrier {
            let _nobody_asks = carrier.take_back_if(key, |_| true);
        }
    }

    /// Has `flow` judge `segment` though it is carried, if that changes nothing of its data:
    /// [`give`](Carriage::give) enters what it changes. So a stale or a forged segment does not
    /// bring the connection back.
    pub(crate) fn borrow(&mut self, context: &Context<'_>, flow: &mut Flow, segment: &Segment<'_>) -> bool {
        let Some(carrier) = &mut self.carrier else { return false };
        let State::Established(established) = &mut flow.state else { return false };
        let from = context.from;
        let Some((halves, last, hop_limit)) = carrier.borrow(&flow.key, from) else { return false };
        let shift = if from == Side::UNTRUSTED { flow.shift.sequence } else { 0 };
        let (sender, receiver) = (&halves[from as usize], &halves[from.other() as usize]);
        if !changes_no_data(context, segment, segment.acknowledgement.wrapping_sub(shift), sender, receiver) {
            carrier.give(&flow.key, from, None);
            return false;
        }
        let now = (context.now.as_nanos() / 1_000_000_000) as u32;
        for (half, numbers) in established.halves.iter_mut().zip(&halves) {
            half.go_on_from(numbers, now);
        }
        let half = &mut established.halves[from as usize];
        half.last_acknowledged = last.or(half.last_acknowledged);
        flow.hop_limit = flow.hop_limit.max(hop_limit);
        self.borrowed = Some((flow.key, from));
        true
    }

    /// Ends a [loan](Carriage::borrow), if there is one, once the segment was judged, and enters
    /// what it has changed.
    pub(crate) fn give(&mut self, flow: &Flow) {
        let (Some((key, from)), Some(carrier)) = (self.borrowed.take(), &mut self.carrier) else { return };
        let changed = match &flow.state {
            State::Established(established) if flow.key == key => {
                let [sender, receiver] = [from, from.other()].map(|side| established.halves[side as usize].numbers(0));
                Some((sender, receiver, flow.hop_limit))
            }
            _ => None,
        };
        let changed = changed.as_ref().map(|(sender, receiver, hop_limit)| (sender, receiver, *hop_limit));
        carrier.give(&key, from, changed);
    }

    /// Takes a connection back, if it is carried, and enters what has passed; `now` is in seconds.
    pub(crate) fn take_back(
        &mut self,
        flow: &mut Flow,
        memory: &mut Memory,
        now: u32,
        what_for: For,
    ) -> Result<(), NotBack> {
        if let (Some((key, from)), Some(carrier)) = (self.borrowed.take(), &mut self.carrier) {
            // A panic has ended the judgement of its segment.
            carrier.give(&key, from, None);
        }
        let Some(carrier) = &mut self.carrier else { return Ok(()) };
        let account = memory.account(&flow.key, Holder { side: flow.holder, is_older: flow.is_older() });
        let mut refused = NoRoom::All;
        let has_room = |halves: &[Numbers; 2]| {
            let with_holes = halves.iter().filter(|half| what_for == For::Judging && half.has_island());
            let len = |half: &Numbers| half.end().wrapping_sub(half.unacknowledged) as usize;
            let within = |half| memory.within(len(half), 0, Purpose::BehindHole, &account);
            with_holes.map(within).all(|room| room.map_err(|why| refused = why).is_ok())
        };
        let Some(taken) = carrier.take_back_if(&flow.key, has_room) else { return Ok(()) };
        let taken = taken.map_err(|why| match why {
            NotTaken::Locked => NotBack::Locked,
            NotTaken::Unwanted => NotBack::BehindHole(refused),
        })?;
        let attempts = &mut self.attempts[carrier.place(&flow.key)];
        if attempts.key == Some(flow.key) {
            attempts.learn(taken.halves.iter().map(|half| u64::from(half.packets)).sum());
            self.counts.short_stays += u64::from(attempts.short_stays > 0);
        }
        flow.add_carried(&taken.new);
        flow.hop_limit = flow.hop_limit.max(taken.hop_limit);
        let State::Established(established) = &mut flow.state else { return Ok(()) };
        let mut outcome = Ok(());
        for ((half, numbers), kept) in established.halves.iter_mut().zip(&taken.halves).zip(taken.kept) {
            half.go_on_from(numbers, now);
            let Some(kept) = kept else { continue };
            half.last_acknowledged = kept.last.or(half.last_acknowledged);
            if kept.bytes.is_empty() && kept.island.is_none() {
                continue;
            }
            let is_behind = what_for == For::Judging && kept.island.is_some();
            let purpose = if is_behind { Purpose::BehindHole } else { Purpose::Returned };
            match Bytes::returned(account, &kept, purpose, memory) {
                Ok(retained) => half.store.bytes = Some(Box::new(retained)),
                Err(why) => outcome = Err(NotBack::NoRoom(why)),
            }
        }
        outcome
    }

    /// After a segment of `flow` went on: hands the connection over if it may be, or goes on to drain it.
    pub(crate) fn after(
        &mut self,
        context: &Context<'_>,
        flow: &mut Flow,
        segment: &mut Segment<'_>,
        (memory, made): (&mut Memory, &mut Vec<Made>),
    ) {
        let Some(carrier) = self.carrier.as_mut().filter(|_| context.severed_by().is_none()) else { return };
        if carrier.is_taken(&flow.key) {
            return;
        }
        let attempts = &mut self.attempts[carrier.place(&flow.key)];
        let Some(established) = clean(flow, segment) else {
            attempts.stop(context.now, flow, made);
            return;
        };
        if !attempts.follow(&flow.key, context.now) {
            return;
        }
        let long_halves = long_halves(context, flow, established);
        let is_busy = match attempts.next(context, &flow.key, established, (segment, made), (carrier, long_halves)) {
            Next::Wait => return,
            Next::HandOver(is_busy) => is_busy,
        };
        let carried = handed_over(context, &self.labels, flow, is_busy);
        if carried.is_some_and(|carried| carrier.carry(context.now, &carried)) {
            self.counts.handed_over += 1;
            // The program's ring has it now.
            flow.state.give_back(memory);
        } else if attempts.is_drained {
            attempts.pace.learn(false);
        }
    }
}

/// What is to be tried next with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Wait,
    /// Who has exhausted his window, by side, and will have much under way.
    HandOver([bool; 2]),
}

impl Attempts {
    /// Follows the connection of `key` from now on. False while another one of its place is drained.
    fn follow(&mut self, key: &Key, now: Instant) -> bool {
        if self.key == Some(*key) {
            self.since = self.since.saturating_add(1);
            return true;
        }
        if self.drain.as_ref().is_some_and(|drain| !drain.is_over(now)) {
            return false;
        }
        if let Some(drain) = self.drain.take() {
            self.pace.ended(&drain, now, true);
        }
        *self = Attempts { key: Some(*key), since: 1, pace: self.pace, ..Attempts::default() };
        true
    }

    /// After a segment that is not clean: its connection is not drained any more, if it was.
    fn stop(&mut self, now: Instant, flow: &Flow, made: &mut Vec<Made>) {
        let Some(drain) = self.drain.take_if(|_| self.key == Some(flow.key)) else { return };
        if let State::Established(established) = &flow.state {
            made.extend(drain.updates(&flow.key, established));
        }
        self.pace.ended(&drain, now, true);
    }

    /// What to try after one more segment.
    fn next(
        &mut self,
        context: &Context<'_>,
        key: &Key,
        established: &Established,
        (segment, made): (&mut Segment<'_>, &mut Vec<Made>),
        (carrier, long_halves): (&Carrier, u32),
    ) -> Next {
        let open = established.halves.each_ref().map(|half| half.in_sequence.wrapping_sub(half.unacknowledged));
        if let Some(drain) = &mut self.drain {
            drain.hold(context.from, established, segment);
            if !segment.data().is_empty() {
                drain.hear_data(context.now, context.from);
            }
            let exhausted = drain.exhausted(established);
            let is_drained = open == [0; 2] && exhausted.contains(&true);
            if !is_drained && !drain.is_over(context.now) {
                return Next::Wait;
            }
            made.extend(drain.updates(key, established));
            self.pace.ended(drain, context.now, !is_drained);
            (self.drain, self.is_drained) = (None, is_drained);
            return if is_drained { Next::HandOver(exhausted) } else { Next::Wait };
        }
        let is_open = open.iter().all(|bytes| *bytes <= CARRIED_OPEN_MAX_BYTES);
        if is_open && self.since >= CARRIED_PACKETS_MIN << self.short_stays {
            (self.since, self.is_drained) = (0, false);
            return Next::HandOver([false; 2]);
        }
        let is_busy = self.short_stays > 0 || !is_open;
        let may_drain = self.pace.allows(context.now) && carrier.drains(key, long_halves, DRAINED_ROOM_BYTES);
        if is_busy && self.since >= DRAIN_PACKETS && may_drain {
            self.drain = Some(Drain::begin(context.now, established, &self.pace));
        }
        Next::Wait
    }

    /// So many segments were carried. Who comes back soon is handed over later the next time.
    fn learn(&mut self, segments: u64) {
        self.since = 0;
        let was_long = segments >= CARRIED_FAR;
        self.short_stays = if was_long { 0 } else { (self.short_stays + 1).min(CARRIED_STAYS_MAX) };
        if self.is_drained {
            self.pace.learn(was_long);
        }
    }
}

/// Whether a segment from the host of `sender` changes nothing of what both have sent. It has nothing
/// new, or somebody has guessed its numbers, and the engine refuses it or makes it a question.
fn changes_no_data(
    context: &Context<'_>,
    segment: &Segment<'_>,
    acknowledgement: u32,
    sender: &Numbers,
    receiver: &Numbers,
) -> bool {
    if segment.has(flag::SYN) {
        // A trusted host may begin anew in the connection's place.
        return context.from == Side::UNTRUSTED || !segment.opens();
    }
    if segment.has(flag::RST) {
        return context.scrubs() && segment.sequence != sender.in_sequence;
    }
    // Without one a rule that is off may let it pass.
    if !segment.has(flag::ACK) {
        return false;
    }
    let has_fin = segment.has(flag::FIN);
    let end = segment.end().wrapping_add(u32::from(has_fin));
    let oldest = receiver.unacknowledged.wrapping_sub(receiver.window_max);
    let is_refused = !is_within(acknowledgement, oldest, receiver.in_sequence);
    // A believed host's FIN counts wherever it stands.
    let is_stale = ahead(sender.unacknowledged, end) >= 0 && (context.scrubs() || !has_fin);
    let is_outside = context.scrubs() && ahead(segment.sequence, sender.edge) > 1;
    let is_bare = !segment.says() && ahead(segment.sequence, sender.end()) <= 0;
    is_refused || is_stale || is_outside || is_bare
}

/// The state of a connection of which the program would carry `segment` and all that may follow.
fn clean<'f>(flow: &'f Flow, segment: &Segment<'_>) -> Option<&'f Established> {
    let State::Established(established) = &flow.state else { return None };
    let agreed = &established.agreed;
    let has_plain_options =
        segment.options.others.as_slice().is_empty() && segment.options.timestamps.is_some() == agreed.timestamps;
    let is_plain = segment.flags & !flag::PSH == flag::ACK && has_plain_options;
    let is_settled = agreed.is_known
        && !agreed.is_told
        && agreed.others.as_slice().is_empty()
        && established.awaits == [false; 2]
        && established.class() == Class::Established;
    let is_in_order = |half: &Half| half.in_sequence == half.end && half.fin == Fin::None;
    let may = is_plain && is_settled && established.halves.iter().all(is_in_order);
    let key = &flow.key;
    let is_usual = key.vlans == 0
        && !fingerprint::has_port_of_neighbours([key.trusted_port, key.untrusted_port])
        && !fingerprint::stays_on_link(key.trusted, key.untrusted);
    (may && is_usual).then_some(established)
}

/// Halves that are kept and take a long ring, also if they do not exhaust their window: one at least.
fn long_halves(context: &Context<'_>, flow: &Flow, established: &Established) -> u32 {
    let is_long = |side: usize| usual_room(flow.bytes.of(side), &established.halves[side]) > SHORT_ROOM_MAX_BYTES;
    let both = context.settings.both_directions && is_long(0) && is_long(1);
    if both { 2 } else { 1 }
}

/// What a half has under way at most: one that has sent little so far has little.
fn usual_room(sent: u64, half: &Half) -> u32 {
    u32::try_from(sent / 4).unwrap_or(u32::MAX).min(half.window_max)
}

/// What the program is told of a connection; `is_busy` as in [`Next::HandOver`].
fn handed_over(context: &Context<'_>, labels: &keys::Key, flow: &mut Flow, is_busy: [bool; 2]) -> Option<Carried> {
    let State::Established(established) = &mut flow.state else { return None };
    let has_stamps = established.agreed.timestamps;
    let ip_len = if flow.key.trusted.is_ipv4() { 20 } else { 40 };
    let payload = context.settings.mtu.saturating_sub(ip_len + 20 + if has_stamps { 12 } else { 0 });
    let payload = u16::try_from(payload).unwrap_or(u16::MAX);
    let scrubs = [context.settings.both_directions, true];
    let (mut halves, mut kept) = ([Numbers::default(); 2], [None, None]);
    for (side, half) in established.halves.iter_mut().enumerate() {
        halves[side] = half.numbers(if scrubs[side] { payload.min(half.mss) } else { payload });
        if scrubs[side] {
            let bytes = half.store.bytes.as_mut().map(|retained| retained.bytes()).unwrap_or_default();
            if bytes.len() != half.in_sequence.wrapping_sub(half.unacknowledged) as usize {
                return None;
            }
            let usual = usual_room(flow.bytes.of(side), half);
            let room = if is_busy[side] {
                Room { least: DRAINED_ROOM_BYTES, wanted: half.window_max.max(DRAINED_ROOM_BYTES) }
            } else {
                Room { least: usual, wanted: usual }
            };
            kept[side] = Some((room, bytes));
        }
    }
    let ports = u32::from(flow.key.trusted_port) << 16 | u32::from(flow.key.untrusted_port);
    let label = fingerprint::flow_label(labels, flow.key.trusted, flow.key.untrusted, ports);
    let shifts = [flow.shift.sequence, flow.shift.timestamps];
    let headers = Headers { label, hop_limit: flow.hop_limit, has_stamps, has_sack: established.agreed.sack };
    Some(Carried { key: flow.key, shifts, headers, halves, kept })
}

impl Half {
    /// What the program is told of it.
    fn numbers(&self, piece_max: u16) -> Numbers {
        Numbers {
            in_sequence: self.in_sequence,
            unacknowledged: self.unacknowledged,
            is_reached: self.reached == self.end,
            edge: self.edge,
            window_max: self.window_max,
            stamp: self.stamp,
            piece_max,
            scales: [self.scale.own, self.scale.told],
            ..Numbers::default()
        }
    }

    /// Goes on from where the program had come to.
    fn go_on_from(&mut self, numbers: &Numbers, now: u32) {
        // Numbers come round after 4 GiB, so that they say nothing by themselves.
        if numbers.unacknowledged != self.unacknowledged || numbers.bytes >= 1 << 31 {
            self.last_acknowledged = None;
        }
        if numbers.stamp != self.stamp {
            (self.stamp, self.stamp_at) = (numbers.stamp, now);
        }
        self.unacknowledged = numbers.unacknowledged;
        (self.in_sequence, self.end) = (numbers.in_sequence, numbers.end());
        // Where it has not come to the end, it does not matter how far it has.
        self.reached = self.end.wrapping_sub(u32::from(!numbers.is_reached));
        (self.edge, self.window_max) = (numbers.edge, numbers.window_max);
    }
}

impl Flow {
    /// Enters packets and bytes of data that were carried, by the side that sent.
    pub(crate) fn add_carried(&mut self, new: &[(u32, u64); 2]) {
        for (side, (packets, bytes)) in new.iter().enumerate() {
            self.packets[side] = self.packets[side].saturating_add(*packets);
            self.bytes.add(side, *bytes as usize);
        }
    }
}
