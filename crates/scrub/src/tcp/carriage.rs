//! Which connections a program in the kernel carries (record 0123), and how they go there and come
//! back.
//!
//! What waits in the daemon's socket is older than what the program sees, so a connection of which
//! anything waits there comes back at once. One of which little is under way is handed over in the
//! hope that nothing does. A busy one is calmed: its windows end where they ended, until the sender
//! has used them up and its peer has heard all, and then the sender is told of the room that there
//! is.

use bump::{DropReason, Instant, Ledger, Side};

use crate::carried::{Carried, Carrier, Half as Numbers, Taken};
use crate::context::Context;
use crate::fingerprint;
use crate::keys::{self, Keys};
use crate::limits::{
    CALM_AGAIN, CALM_DOUBLINGS_MAX, CALM_PACKETS, CALM_TIME, CALMED_KEPT_BYTES, CARRIED_AGAIN_PACKETS, CARRIED_FAR,
    CARRIED_OPEN_MAX_BYTES, CARRIED_PACKETS_MIN, HOP_LIMIT_FIRST,
};
use crate::settings::Settings;
use crate::tcp::class::Class;
use crate::tcp::established::Established;
use crate::tcp::flow::{Flow, State};
use crate::tcp::half::{Fin, Half};
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::memory::{Holder, Memory};
use crate::tcp::options::Timestamps;
use crate::tcp::retained::{Bytes, Reconciled, Retained};
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;

/// What was carried cannot be taken back whole: the connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// Connections that are carried, and what was tried with them.
#[derive(Debug)]
pub(crate) struct Carriage {
    carrier: Option<Carrier>,
    /// Whether the rules are such that the program does all that they say.
    may: bool,
    /// The key of flow labels.
    labels: keys::Key,
    /// By place.
    tries: Vec<Tries>,
    looked_at: Instant,
}

/// What was tried with the latest connection of a place.
#[derive(Clone, Debug, Default)]
struct Tries {
    key: Option<Key>,
    /// Its packets when it was handed over last, and whether nothing was carried then: more was
    /// under way than was seen.
    packets: u32,
    was_vain: bool,
    /// When it may be calmed next, and how often it was.
    calm_at: Option<Instant>,
    times: u8,
    /// While it is being calmed.
    calm: Option<Calm>,
}

/// A connection that is being calmed.
#[derive(Clone, Debug)]
struct Calm {
    /// Where windows end for so long, by the side that sends.
    edges: [u32; 2],
    /// Whether its host was told of less room than there is.
    is_told_less: [bool; 2],
    until: Instant,
}

impl Carriage {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Carriage {
        let labels = keys::Key::new(&keys.identification);
        Carriage {
            carrier: None,
            may: settings.may_be_carried(),
            labels,
            tries: Vec::new(),
            looked_at: Instant::default(),
        }
    }

    /// Has connections carried from now on, if the rules let any be.
    pub(crate) fn begin(&mut self, carrier: Carrier) {
        if self.may {
            self.tries = vec![Tries::default(); crate::carried::layout::PLACES as usize];
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
            let (passed, wrong) = (counts.segments[side], counts.bad_checksums[side]);
            total.received[side] += passed + wrong;
            total.forwarded[side] += passed;
            total.emitted[1 - side] += passed;
            total.dropped[DropReason::TcpChecksum as usize] += wrong;
        }
    }

    /// How far the half of `sender` is, if the connection is carried: the oldest number that is not
    /// acknowledged, and the next.
    pub(crate) fn under_way(&self, key: &Key, sender: Side) -> Option<(u32, u32)> {
        self.carrier.as_ref()?.under_way(key, sender)
    }

    /// Which connections have moved since the last look, and which have not for long.
    pub(crate) fn look(&mut self, now: Instant) -> (Vec<Key>, Vec<Key>) {
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

    /// All that are carried.
    pub(crate) fn all(&self) -> Vec<Key> {
        self.carrier.as_ref().map(Carrier::all).unwrap_or_default()
    }

    /// Nobody asks any more what became of a connection.
    pub(crate) fn forget(&mut self, key: &Key) {
        if let Some(carrier) = &mut self.carrier {
            // What is not given back is nobody's any more.
            let _taken = carrier.take_back(key);
        }
    }

    /// Takes a connection back, if it is carried, and enters what has passed; `now` is in seconds.
    pub(crate) fn take_back(&mut self, flow: &mut Flow, memory: &mut Memory, now: u32) -> Result<(), Lost> {
        let Some(taken) = self.carrier.as_mut().and_then(|carrier| carrier.take_back(&flow.key)) else {
            return Ok(());
        };
        let holder = Holder { side: flow.holder, is_older: flow.is_older() };
        let taken = taken.map_err(|_stuck| Lost)?;
        self.tries[Carrier::place(&flow.key)].learn(taken.halves.iter().map(|half| u64::from(half.packets)).sum());
        for (side, half) in taken.halves.iter().enumerate() {
            flow.packets[side] = flow.packets[side].saturating_add(half.packets);
            flow.bytes.add(side, half.bytes as usize);
        }
        flow.hop_limit = flow.hop_limit.max(taken.hop_limit);
        let State::Established(established) = &mut flow.state else { return Err(Lost) };
        let account = memory.account(&flow.key, holder);
        let Taken { halves, kept, .. } = taken;
        let numbers = halves.iter().zip(kept);
        for (half, (numbers, kept)) in established.halves.iter_mut().zip(numbers) {
            half.go_on_from(numbers, now);
            let Some((last, mut bytes)) = kept else { continue };
            half.last_acknowledged = last.or(half.last_acknowledged);
            if bytes.is_empty() {
                continue;
            }
            let mut retained = Bytes::new(account);
            if retained.reconcile(0, &mut bytes, memory) != Reconciled::AsItWas {
                return Err(Lost);
            }
            half.retained = Some(Box::new(retained));
        }
        Ok(())
    }

    /// After a segment of `flow` went on: hands the connection over if it may be, or goes on to
    /// calm it.
    pub(crate) fn after(
        &mut self,
        context: &Context<'_>,
        flow: &mut Flow,
        segment: &mut Segment<'_>,
        (memory, made): (&mut Memory, &mut Vec<Made>),
    ) {
        let Some(carrier) = self.carrier.as_mut().filter(|_| context.severed_by().is_none()) else { return };
        let Some(established) = clean(flow, segment) else { return };
        let under_way = established.halves.each_ref().map(|half| half.in_sequence.wrapping_sub(half.unacknowledged));
        let tries = &mut self.tries[Carrier::place(&flow.key)];
        if tries.key != Some(flow.key) {
            *tries = Tries { key: Some(flow.key), ..Tries::default() };
        }
        let mut kept_min = 0;
        if let Some(calm) = &mut tries.calm {
            calm.hold_windows(context.from, established, segment);
            let has_all = under_way == [0; 2] && calm.is_used_up(established);
            if !has_all && calm.until > context.now {
                return;
            }
            made.extend(calm.told(&flow.key, established));
            tries.calm = None;
            if !has_all {
                return;
            }
            kept_min = CALMED_KEPT_BYTES;
        } else {
            let packets = flow.packets[0].saturating_add(flow.packets[1]);
            let is_open = under_way.iter().all(|bytes| *bytes <= CARRIED_OPEN_MAX_BYTES);
            match tries.next(packets, is_open) {
                Next::HandOver => {}
                Next::Calm if carrier.calms() && !carrier.is_taken(&flow.key) && tries.may_calm(context.now) => {
                    tries.calm = Some(Calm::begin(context.now, established));
                    return;
                }
                Next::Calm | Next::Wait => return,
            }
        }
        let carried = handed_over(context, &self.labels, flow, kept_min);
        if carried.is_some_and(|carried| carrier.carry(context.now, &carried)) {
            // The program's ring has it now.
            flow.state.give_back(memory);
        }
    }
}

/// What is to be tried next with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Wait,
    HandOver,
    Calm,
}

impl Tries {
    /// What to try after so many packets. Where little is under way it is likely that the daemon
    /// has heard all, unless that was in vain.
    fn next(&mut self, packets: u32, is_open: bool) -> Next {
        let since = packets.wrapping_sub(self.packets);
        let enough = if self.was_vain { CARRIED_AGAIN_PACKETS } else { CARRIED_PACKETS_MIN };
        if is_open && since >= enough {
            self.packets = packets;
            return Next::HandOver;
        }
        let may_calm = (self.was_vain || !is_open) && since >= CALM_PACKETS;
        if may_calm { Next::Calm } else { Next::Wait }
    }

    /// So many segments were carried. Who was carried far is calmed soon again.
    fn learn(&mut self, segments: u64) {
        self.was_vain = segments == 0;
        if segments >= CARRIED_FAR {
            self.times = 0;
        }
    }

    /// Whether the connection may be calmed at `now`; if so it is entered.
    fn may_calm(&mut self, now: Instant) -> bool {
        if self.calm_at.is_some_and(|at| at > now) {
            return false;
        }
        self.calm_at = Some(now + CALM_TIME + CALM_AGAIN * (1 << self.times));
        self.times = (self.times + 1).min(CALM_DOUBLINGS_MAX);
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

/// What the program is told of a connection, of which at least `kept_min` bytes may be under way.
fn handed_over(context: &Context<'_>, labels: &keys::Key, flow: &mut Flow, kept_min: u32) -> Option<Carried> {
    let State::Established(established) = &mut flow.state else { return None };
    let has_stamps = established.agreed.timestamps;
    let ip_len = if flow.key.trusted.is_ipv4() { 20 } else { 40 };
    let room = context.settings.mtu.saturating_sub(ip_len + 20 + if has_stamps { 12 } else { 0 });
    let room = u16::try_from(room).unwrap_or(u16::MAX);
    let scrubs = [context.settings.both_directions, true];
    let (mut halves, mut kept) = ([Numbers::default(); 2], [None, None]);
    for (side, half) in established.halves.iter_mut().enumerate() {
        halves[side] = half.numbers(if scrubs[side] { room.min(half.mss) } else { room });
        if scrubs[side] {
            // Who has sent little so far has little under way.
            let sent = u32::try_from(flow.bytes.of(side) / 4).unwrap_or(u32::MAX);
            let bytes = half.retained.as_mut().map(|retained| retained.bytes()).unwrap_or_default();
            if bytes.len() != half.in_sequence.wrapping_sub(half.unacknowledged) as usize {
                return None;
            }
            kept[side] = Some((sent.min(half.window_max).max(kept_min), bytes));
        }
    }
    let ports = u32::from(flow.key.trusted_port) << 16 | u32::from(flow.key.untrusted_port);
    let label = fingerprint::flow_label(labels, flow.key.trusted, flow.key.untrusted, ports);
    let shifts = [flow.shift.sequence, flow.shift.timestamps];
    Some(Carried { key: flow.key, shifts, label, hop_limit: flow.hop_limit, has_stamps, halves, kept })
}

impl Calm {
    fn begin(now: Instant, established: &Established) -> Calm {
        let edges = established.halves.each_ref().map(|half| half.edge);
        Calm { edges, is_told_less: [false; 2], until: now + CALM_TIME }
    }

    /// Whether a host was told of less room than there is and has used up all that it was told of:
    /// it can have sent nothing more.
    fn is_used_up(&self, established: &Established) -> bool {
        [Side::TRUSTED, Side::UNTRUSTED].iter().any(|side| {
            let room = ahead(self.edges[*side as usize], established.halves[*side as usize].in_sequence).max(0);
            let scale = established.halves[side.other() as usize].scale.told;
            self.is_told_less[*side as usize] && room.cast_unsigned() >> scale == 0
        })
    }

    /// Lets the window that `segment`, from side `from`, grants end where it ended.
    fn hold_windows(&mut self, from: Side, established: &Established, segment: &mut Segment<'_>) {
        let to = from.other() as usize;
        let room = ahead(self.edges[to], segment.acknowledgement).max(0).cast_unsigned();
        let room = (room >> established.halves[from as usize].scale.told).min(u32::from(u16::MAX)) as u16;
        if segment.window > room {
            segment.window = room;
            self.is_told_less[to] = true;
        }
    }

    /// Tells whoever was told of less room how much there is.
    fn told(&self, key: &Key, established: &Established) -> impl Iterator<Item = Made> {
        [Side::TRUSTED, Side::UNTRUSTED].map(|to| self.told_to(to, key, established)).into_iter().flatten()
    }

    fn told_to(&self, to: Side, key: &Key, established: &Established) -> Option<Made> {
        if !self.is_told_less[to as usize] {
            return None;
        }
        let (own, other) = (&established.halves[to as usize], &established.halves[to.other() as usize]);
        let window = own.edge.wrapping_sub(own.unacknowledged) >> other.scale.told;
        let has_stamps = established.agreed.timestamps && own.has_stamp && other.has_stamp;
        Some(Made {
            key: *key,
            to,
            hop_limit: HOP_LIMIT_FIRST,
            flags: flag::ACK,
            sequence: other.in_sequence,
            acknowledgement: own.unacknowledged,
            window: window.min(u32::from(u16::MAX)) as u16,
            timestamps: has_stamps.then_some(Timestamps { value: other.stamp, echo: own.stamp }),
            sack: None,
        })
    }
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
        if numbers.unacknowledged != self.unacknowledged {
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
