//! A shield in front of an IPsec stack that knows nothing of it (Touch and Yang, section 4: "SPI spinning").
//!
//! A bump between card and stack. Towards the wire the SPI of every ESP packet to a peer with a shield is permuted anew; from the
//! wire it is turned back, and only a known SPI under a fresh sequence number goes on to the stack, whose cryptography costs a
//! hundred times as much. Size and form of packets stay as they are. Everything that is no IPsec passes untouched.
//!
//! - `packet.rs`: where a frame has its SPI; `permutation.rs`: what stands there on the wire.
//! - `peer.rs`: what is known of a peer, and the order of checks; `window.rs`, `candidates.rs`: what it works with; `ike.rs`: which
//!   messages of IKE have a budget of their own.
//! - `outpost.rs`, `kernel.rs`: the same checks in the kernel, by the program `bpf/ipsec.c`, and the way on to the stack without this
//!   one, by `bpf/onward.c`.
//! - `settings.rs`, `report.rs`, `limits.rs`.
//!
//! It trusts the local stack and whoever has the pair's key; it proves nothing about a packet's content, which is the stack's
//! own affair.

mod candidates;
mod ike;
pub mod kernel;
pub mod limits;
mod name;
mod outpost;
mod packet;
mod peer;
mod permutation;
mod report;
mod settings;
mod window;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::IpAddr;

use bump::{
    Batch, Bump, Checksum, DropReason, Fate, Frame, GsoKind, Instant, Ledger, Meta, Now, Side, Sink, Ticket, Torn, sink,
};
use wire::checksum::update;
use wire::ethernet::Header;
use wire::offload::{Cut, Kind, Plan};

use candidates::Candidates;
pub use outpost::{Maps, Outpost};
pub use packet::{Content, ESP, EspPlace, Found, IKE_PORT, IkePlace, NAT_TRAVERSAL_PORT, find};
use peer::{Common, Peer};
pub use permutation::{End, KEY_LEN, LOWEST, Permutation};
use report::Verdict;
pub use report::{Event, PeerCounters, PeerReport};
pub use settings::{EpochKey, Layers, PairKeys, PeerSettings, Rates, Settings};

/// The bump.
#[derive(Debug)]
pub struct Shield {
    settings: Settings,
    peers: Vec<Peer>,
    by_address: BTreeMap<IpAddr, usize>,
    common: Common,
    /// Place of the peer whose packet is being judged.
    in_hand: Option<usize>,
    events: VecDeque<Event>,
    ledger: Ledger,
}

impl Shield {
    /// A shield that knows no association yet.
    #[must_use]
    pub fn new(settings: Settings) -> Shield {
        let listed = || settings.peers.iter().take(limits::PEERS_MAX).zip(1..);
        let peers = listed().map(|(peer, number)| Peer::new(number, peer, &settings.rates)).collect();
        let by_address = listed().map(|(peer, number)| (peer.address, number as usize - 1)).collect();
        Shield {
            settings,
            peers,
            by_address,
            common: Common { candidates: Candidates::new(), outpost: None },
            in_hand: None,
            events: VecDeque::new(),
            ledger: Ledger::new(),
        }
    }

    /// Has the kernel make the same checks before: `maps` are those of its program.
    pub fn set_outpost(&mut self, maps: Box<dyn Maps>) {
        self.common.outpost = Some(Outpost::new(maps, &self.settings));
        self.peers.iter().for_each(|peer| peer.tell(&mut self.common));
    }

    /// Takes the keys of those in `peers` that are peers already: a change of epochs. What is known stays known.
    pub fn set_keys(&mut self, peers: &[PeerSettings]) {
        for new in peers {
            if let Some(peer) = self.by_address.get(&new.address).and_then(|at| self.peers.get_mut(*at)) {
                peer.set_keys(new);
                peer.tell(&mut self.common);
            }
        }
    }

    /// Every peer as it stands.
    #[must_use]
    pub fn report(&self) -> Vec<PeerReport> {
        let report = |peer: &Peer| PeerReport {
            address: peer.address,
            epochs: peer.epochs(),
            known: peer.known(),
            counters: peer.counted(&self.common),
        };
        self.peers.iter().map(report).collect()
    }

    /// Gives one arriving frame its fate.
    fn pass(&mut self, now: Instant, from: Side, frame: &mut Frame<'_>, sink: &mut dyn Sink) -> Fate {
        let Some(found) = find(frame.bytes) else { return emit(sink, from.other(), frame) };
        if found.content == Content::Other {
            return emit(sink, from.other(), frame);
        }
        if is_tagged(frame) {
            return Fate::Dropped(DropReason::Vlan);
        }
        match frame.meta.gso.map(|gso| gso.kind) {
            Some(GsoKind::Udp) => return self.pass_pieces(now, from, frame, sink),
            // Neither IKE nor ESP is what the kernel cuts as TCP.
            Some(_) => return Fate::Dropped(DropReason::BadSuperFrame),
            None => {}
        }
        match self.judge(now, from, &found, frame.bytes, frame.meta.checksum) {
            Ok(()) => emit(sink, from.other(), frame),
            Err(reason) => Fate::Dropped(reason),
        }
    }

    /// A frame that stands for several datagrams: each is a packet of its own.
    fn pass_pieces(&mut self, now: Instant, from: Side, frame: &Frame<'_>, sink: &mut dyn Sink) -> Fate {
        let Some((plan, meta)) = plan(frame) else { return Fate::Dropped(DropReason::BadSuperFrame) };
        let mut fate = Fate::Dropped(DropReason::PortFull);
        for index in 0..plan.segments() {
            let Some(room) = sink.reserve(from.other(), plan.segment_len(index)) else { break };
            let Some(len) = plan.write(frame.bytes, index, room) else { break };
            let found = find(&room[..len]);
            let judged = found.map_or(Ok(()), |found| self.judge(now, from, &found, &mut room[..len], meta.checksum));
            match judged {
                Ok(()) => {
                    sink.commit(from.other(), len, meta);
                    fate = Fate::Forwarded;
                }
                Err(reason) if fate != Fate::Forwarded => fate = Fate::Dropped(reason),
                Err(_) => {}
            }
        }
        fate
    }

    /// Whether the packet may go on; its SPI is the one of the side it goes to then.
    fn judge(
        &mut self,
        now: Instant,
        from: Side,
        found: &Found,
        bytes: &mut [u8],
        checksum: Checksum,
    ) -> Result<(), DropReason> {
        let address = if from == Side::WIRE { found.source } else { found.destination };
        self.in_hand = self.by_address.get(&address).copied();
        let peer = self.in_hand.and_then(|at| self.peers.get_mut(at));
        match (from, peer) {
            (Side::STACK, None) => Ok(()),
            (Side::STACK, Some(peer)) => {
                match found.content {
                    Content::Esp(place) => seal(peer, place, bytes, checksum),
                    Content::Ike(place) => peer.note_ike(now, &bytes[place.start..place.end], &mut self.common),
                    _ => {}
                }
                Ok(())
            }
            // Nobody can say whose a later fragment is, and alone it is nothing.
            (Side::WIRE, None) if found.content == Content::LaterFragment || !self.settings.layers.source => Ok(()),
            (Side::WIRE, None) => Err(DropReason::ShieldStranger),
            (Side::WIRE, Some(peer)) => match found.content {
                Content::Esp(place) => {
                    let (index, low) = header(bytes, place);
                    if index < LOWEST {
                        return Err(DropReason::ShieldUnreadable);
                    }
                    let verdict = peer.judge(now, (index, low), &self.settings, &mut self.common);
                    let spi = heeded(verdict)?;
                    if let (Verdict::Learned(spi), true) = (verdict, peer.has_shield()) {
                        tell(&mut self.events, Event::SpiLearned { peer: address, spi });
                    }
                    put(bytes, place, index, spi, checksum);
                    Ok(())
                }
                content => budgeted(now, peer, content, bytes, self.settings.layers.budgets),
            },
        }
    }
}

/// Puts what stands on the wire in the place of the SPI.
fn seal(peer: &mut Peer, place: EspPlace, bytes: &mut [u8], checksum: Checksum) {
    let (spi, low) = header(bytes, place);
    if peer.has_shield() && spi >= LOWEST {
        put(bytes, place, spi, peer.seal(spi, low), checksum);
    }
}

/// What is no ESP passes in bounded numbers.
fn budgeted(now: Instant, peer: &mut Peer, content: Content, bytes: &[u8], is_bounded: bool) -> Result<(), DropReason> {
    if content == Content::Unreadable {
        return Err(DropReason::ShieldUnreadable);
    }
    if !is_bounded {
        return Ok(());
    }
    let (is_taken, reason) = match content {
        Content::Ike(place) => (peer.ike.take(now, &bytes[place.start..place.end]), DropReason::ShieldIkeBudget),
        Content::Keepalive => (peer.keepalive.take(now), DropReason::ShieldKeepaliveBudget),
        Content::LaterFragment => (peer.fragment.take(now), DropReason::ShieldFragmentBudget),
        Content::Esp(_) | Content::Unreadable | Content::Other => return Ok(()),
    };
    if is_taken {
        return Ok(());
    }
    peer.counters.over_budget += 1;
    Err(reason)
}

/// The SPI to go on with, or why not.
fn heeded(verdict: Verdict) -> Result<u32, DropReason> {
    match verdict {
        Verdict::Pass(spi) | Verdict::Learned(spi) => Ok(spi),
        Verdict::Unknown => Err(DropReason::ShieldSpi),
        Verdict::OutOfRange => Err(DropReason::ShieldRange),
        Verdict::Used => Err(DropReason::ShieldReplay),
        Verdict::Far => Err(DropReason::ShieldFar),
    }
}

fn tell(events: &mut VecDeque<Event>, event: Event) {
    if events.len() >= limits::EVENTS_MAX {
        events.pop_front();
    }
    events.push_back(event);
}

fn emit(sink: &mut dyn Sink, to: Side, frame: &Frame<'_>) -> Fate {
    if sink::copy(sink, to, frame.bytes, frame.meta) { Fate::Forwarded } else { Fate::Dropped(DropReason::PortFull) }
}

/// Whether a tag stands in the frame or beside it. The kernel takes one of VLAN 0 off and reads on, so it must not lead past.
fn is_tagged(frame: &Frame<'_>) -> bool {
    let in_frame = Header::parse(frame.bytes).is_ok_and(|(header, _)| header.ethertype.is_vlan());
    in_frame || frame.meta.vlan.is_some()
}

/// How a frame of datagrams is cut, and what is known of each piece.
fn plan(frame: &Frame<'_>) -> Option<(Plan, Meta)> {
    let cut = Cut { kind: Kind::Udp, size: frame.meta.gso?.size };
    let transport = match frame.meta.checksum {
        Checksum::Partial { start, .. } => Some(usize::from(start)),
        _ => None,
    };
    let plan = Plan::new(frame.bytes, transport, cut).ok()?;
    let (start, offset) = plan.checksum();
    let checksum = Checksum::Partial { start: start as u16, offset: offset as u16 };
    Some((plan, Meta { checksum, gso: None, ..frame.meta }))
}

/// What stands in the place of the SPI, and the low half of the sequence number.
fn header(bytes: &[u8], place: EspPlace) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    (word(place.spi), word(place.spi + 4))
}

/// Writes `new` in the place of the SPI, where `old` is. The checksum of the UDP header stays right: one that is still to be
/// completed covers the pseudo header only, and none at all (zero, RFC 768) stays none.
fn put(bytes: &mut [u8], place: EspPlace, old: u32, new: u32, checksum: Checksum) {
    bytes[place.spi..place.spi + 4].copy_from_slice(&new.to_be_bytes());
    let Some(at) = place.checksum.filter(|_| !matches!(checksum, Checksum::Partial { .. })) else { return };
    let stored = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    if stored == 0 {
        return;
    }
    let high = update(stored, (old >> 16) as u16, (new >> 16) as u16);
    let whole = match update(high, old as u16, new as u16) {
        0 => 0xffff,
        other => other,
    };
    bytes[at..at + 2].copy_from_slice(&whole.to_be_bytes());
}

impl Bump for Shield {
    type Job = Infallible;
    type Completion = Infallible;
    type Effect = Infallible;
    type Event = Event;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        while let Some(mut frame) = batch.next_frame() {
            self.in_hand = None;
            self.ledger.receive(from);
            let fate = self.pass(now.since_boot, from, &mut frame, sink);
            self.ledger.settle(now.since_boot, from, fate, frame.bytes);
        }
    }

    fn complete(&mut self, _now: Now, _ticket: Ticket, completion: Infallible, _sink: &mut dyn Sink) {
        match completion {}
    }

    fn tick(&mut self, _now: Now, _budget: usize, _sink: &mut dyn Sink) {}

    /// A window may not know what has passed: what is known of the peer is learned anew, as after a
    /// start.
    fn mend(&mut self, _now: Now, _torn: Torn, _sink: &mut dyn Sink) {
        if let Some(peer) = self.in_hand.take().and_then(|at| self.peers.get_mut(at)) {
            peer.forget_all(&mut self.common);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn next_job(&mut self) -> Option<(Ticket, Infallible)> {
        None
    }

    fn next_effect(&mut self) -> Option<Infallible> {
        None
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.ledger);
        let Some(outpost) = &self.common.outpost else { return };
        // Number 0 is that of strangers.
        for number in 0..=self.peers.len() as u32 {
            for (reason, count) in kernel::COUNTED.iter().zip(outpost.counts(number)) {
                total.received[Side::WIRE as usize] += count;
                total.dropped[*reason as usize] += count;
            }
            total.received[Side::WIRE as usize] += outpost.passed(number);
            total.forwarded[Side::WIRE as usize] += outpost.passed(number);
        }
    }
}
