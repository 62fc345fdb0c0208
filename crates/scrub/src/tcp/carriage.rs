//! Which connections a program in the kernel carries (record 0123), and how they go there and come back.
//!
//! What waits in the daemon's socket is older than what the program sees, so a connection of which
//! anything waits there comes back at once. One with little under way is handed over in the hope that
//! nothing waits. A busy one is [drained](Drain) first.

use bump::{DropReason, Instant, Ledger, Side};

use crate::carried::{Carried, Carrier, Half as Numbers, Moved, StillLocked};
use crate::context::Context;
use crate::fingerprint;
use crate::keys::{self, Keys};
use crate::limits::{
    CARRIED_FAR, CARRIED_LONG_S, CARRIED_OPEN_MAX_BYTES, CARRIED_PACKETS_MIN, CARRIED_STAYS_MAX, DRAIN_AGAIN,
    DRAIN_DOUBLINGS_MAX, DRAIN_PACKETS, DRAINED_ROOM_BYTES,
};
use crate::settings::Settings;
use crate::tcp::class::Class;
use crate::tcp::drain::Drain;
use crate::tcp::established::Established;
use crate::tcp::flow::{Flow, State};
use crate::tcp::half::{Fin, Half};
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::memory::{Holder, Memory, NoRoom};
use crate::tcp::retained::Bytes;
use crate::tcp::segment::{Segment, flag};

/// Why a connection was not taken back whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotBack {
    /// A processor has a half of it at this moment. It is the kernel's as before.
    Locked,
    /// There is no memory for what is under way, so it must end.
    NoRoom(NoRoom),
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
}

/// What was tried with a connection.
#[derive(Clone, Debug, Default)]
struct Attempts {
    key: Option<Key>,
    /// Clean segments that the daemon has heard since it was handed over last.
    since: u32,
    /// How often in a row it came back soon.
    short_stays: u8,
    /// When a connection of this place may be drained next, and how often one was.
    drain_at: Option<Instant>,
    drains: u8,
    /// When it was handed over last, in seconds.
    handed_over_at: u32,
    drain: Option<Drain>,
}

impl Carriage {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Carriage {
        let labels = keys::Key::new(&keys.identification);
        let rules_allow = settings.may_be_carried();
        Carriage { carrier: None, rules_allow, labels, attempts: Vec::new(), looked_at: Instant::default() }
    }

    /// Has connections carried from now on, if the rules let any be.
    pub(crate) fn begin(&mut self, carrier: Carrier) {
        if self.rules_allow {
            self.attempts = vec![Attempts::default(); crate::carried::layout::PLACES as usize];
            self.carrier = Some(carrier);
        }
    }

    /// Connections that are carried now.
    pub(crate) fn len(&self) -> usize {
        self.carrier.as_ref().map_or(0, Carrier::len)
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
            let _nobody_asks = carrier.take_back(key);
        }
    }

    /// Takes a connection back, if it is carried, and enters what has passed; `now` is in seconds.
    pub(crate) fn take_back(&mut self, flow: &mut Flow, memory: &mut Memory, now: u32) -> Result<(), NotBack> {
        let Some(taken) = self.carrier.as_mut().and_then(|carrier| carrier.take_back(&flow.key)) else {
            return Ok(());
        };
        let taken = taken.map_err(|StillLocked| NotBack::Locked)?;
        let attempts = &mut self.attempts[Carrier::place(&flow.key)];
        if attempts.key == Some(flow.key) {
            attempts.learn(taken.halves.iter().map(|half| u64::from(half.packets)).sum(), now);
        }
        flow.add_carried(&taken.new);
        flow.hop_limit = flow.hop_limit.max(taken.hop_limit);
        let account = memory.account(&flow.key, Holder { side: flow.holder, is_older: flow.is_older() });
        let State::Established(established) = &mut flow.state else { return Ok(()) };
        let mut outcome = Ok(());
        for ((half, numbers), kept) in established.halves.iter_mut().zip(&taken.halves).zip(taken.kept) {
            half.go_on_from(numbers, now);
            let Some((last, bytes)) = kept else { continue };
            half.last_acknowledged = last.or(half.last_acknowledged);
            if bytes.is_empty() {
                continue;
            }
            match Bytes::returned(account, &bytes, memory) {
                Ok(retained) => half.retained = Some(Box::new(retained)),
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
        let Some(established) = clean(flow, segment) else { return };
        if carrier.is_taken(&flow.key) {
            return;
        }
        let attempts = &mut self.attempts[Carrier::place(&flow.key)];
        if !attempts.follow(&flow.key, context.now) {
            return;
        }
        let room = match attempts.next(context, &flow.key, established, (segment, made), carrier) {
            Next::Wait => return,
            Next::HandOver(room) => room,
        };
        let carried = handed_over(context, &self.labels, flow, room);
        if carried.is_some_and(|carried| carrier.carry(context.now, &carried)) {
            attempts.handed_over_at = (context.now.as_nanos() / 1_000_000_000) as u32;
            // The program's ring has it now.
            flow.state.give_back(memory);
        }
    }
}

/// What is to be tried next with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Wait,
    /// With at least so much room for what is under way, by the side that sends, in bytes.
    HandOver([u32; 2]),
}

impl Attempts {
    /// Follows the connection of `key` from now on. False while another one of its place is drained.
    fn follow(&mut self, key: &Key, now: Instant) -> bool {
        if self.key == Some(*key) {
            self.since = self.since.saturating_add(1);
            return true;
        }
        if self.drain.as_ref().is_some_and(|drain| drain.until > now) {
            return false;
        }
        // How soon one may be drained again is a matter of the place, whoever has it.
        let (drain_at, drains) = (self.drain_at, self.drains);
        *self = Attempts { key: Some(*key), since: 1, drain_at, drains, ..Attempts::default() };
        true
    }

    /// What to try after one more segment.
    fn next(
        &mut self,
        context: &Context<'_>,
        key: &Key,
        established: &Established,
        (segment, made): (&mut Segment<'_>, &mut Vec<Made>),
        carrier: &Carrier,
    ) -> Next {
        let open = established.halves.each_ref().map(|half| half.in_sequence.wrapping_sub(half.unacknowledged));
        if let Some(drain) = &mut self.drain {
            drain.hold(context.from, established, segment);
            let exhausted = drain.exhausted(established);
            let is_drained = open == [0; 2] && exhausted.contains(&true);
            if !is_drained && drain.until > context.now {
                return Next::Wait;
            }
            made.extend(drain.updates(key, established));
            self.drain = None;
            let room = exhausted.map(|is_busy| if is_busy { DRAINED_ROOM_BYTES } else { 0 });
            return if is_drained { Next::HandOver(room) } else { Next::Wait };
        }
        let is_open = open.iter().all(|bytes| *bytes <= CARRIED_OPEN_MAX_BYTES);
        if is_open && self.since >= CARRIED_PACKETS_MIN << self.short_stays {
            self.since = 0;
            return Next::HandOver([0; 2]);
        }
        let is_busy = self.short_stays > 0 || !is_open;
        if is_busy && self.since >= DRAIN_PACKETS && carrier.drains(DRAINED_ROOM_BYTES) && self.may_drain(context.now) {
            self.drain = Some(Drain::begin(context.now, established));
        }
        Next::Wait
    }

    /// So many segments were carried. Who comes back soon is handed over later the next time.
    fn learn(&mut self, segments: u64, now: u32) {
        self.since = 0;
        self.short_stays = if segments < CARRIED_FAR { (self.short_stays + 1).min(CARRIED_STAYS_MAX) } else { 0 };
        // Who can have a connection taken back by one segment does not have it drained each time.
        if now.saturating_sub(self.handed_over_at) >= CARRIED_LONG_S {
            self.drains = 0;
        }
    }

    /// Whether the connection may be drained at `now`; if so that is entered.
    fn may_drain(&mut self, now: Instant) -> bool {
        if self.drain_at.is_some_and(|at| at > now) {
            return false;
        }
        self.drain_at = Some(now + DRAIN_AGAIN * (1 << self.drains));
        self.drains = (self.drains + 1).min(DRAIN_DOUBLINGS_MAX);
        true
    }
}

/// The state of a connection of which the program would carry `segment` and all that may follow.
fn clean<'f>(flow: &'f Flow, segment: &Segment<'_>) -> Option<&'f Established> {
    let State::Established(established) = &flow.state else { return None };
    let agreed = &established.agreed;
    let has_plain_options = segment.options.sack.as_slice().is_empty()
        && segment.options.others.as_slice().is_empty()
        && segment.options.timestamps.is_some() == agreed.timestamps;
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

/// What the program is told of a connection; `room` as in [`Next::HandOver`].
fn handed_over(context: &Context<'_>, labels: &keys::Key, flow: &mut Flow, room: [u32; 2]) -> Option<Carried> {
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
            // A connection that has sent little so far has little under way.
            let sent = u32::try_from(flow.bytes.of(side) / 4).unwrap_or(u32::MAX);
            let bytes = half.retained.as_mut().map(|retained| retained.bytes()).unwrap_or_default();
            if bytes.len() != half.in_sequence.wrapping_sub(half.unacknowledged) as usize {
                return None;
            }
            kept[side] = Some((sent.min(half.window_max).max(room[side]), bytes));
        }
    }
    let ports = u32::from(flow.key.trusted_port) << 16 | u32::from(flow.key.untrusted_port);
    let label = fingerprint::flow_label(labels, flow.key.trusted, flow.key.untrusted, ports);
    let shifts = [flow.shift.sequence, flow.shift.timestamps];
    Some(Carried { key: flow.key, shifts, label, hop_limit: flow.hop_limit, has_stamps, halves, kept })
}

impl Half {
    /// What the program is told of it.
    fn numbers(&self, piece_max: u16) -> Numbers {
        Numbers {
            in_sequence: self.in_sequence,
            unacknowledged: self.unacknowledged,
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
        (self.in_sequence, self.end, self.reached) = (numbers.in_sequence, numbers.in_sequence, numbers.in_sequence);
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
