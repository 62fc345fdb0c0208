//! Who of the two forwards.
//!
//! Both begin on standby. A standby takes over when the other one was silent for three heartbeats,
//! or says that it does not forward and is not the one that should. An active one stands down when
//! it hears that the other one with the higher priority is active too, when one of its cards has no
//! link and the other gateway's have, when it is told to, and when it was not run for longer than
//! its lease: then the other one has taken over, or is about to. It stands down before it judges
//! another frame, so a gateway that was stopped does not forward beside its successor.
//!
//! Two that are both active have missed each other's messages for three heartbeats on all three
//! paths. The first that gets through ends it: the one with the lower priority stands down, and the
//! other one answers such a message at once.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bump::{Generator, Instant};

use crate::channel::{Channel, Opened, Path, Proof, Refusal, Secret};
use crate::limits::{
    EVENTS_MAX, HEARTBEATS_MISSED, LEASE_HEARTBEATS, MESSAGES_WAITING_MAX, RECORDS_BEFORE_HANDOVER, YIELD_HEARTBEATS,
};
use crate::message::{self, Cards, Heartbeat, Message, Role};
use crate::stream::{Incoming, Outgoing, Source};

/// What a gateway is told.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The higher one keeps the turn where both have it, and takes it where neither has.
    pub priority: u8,
    /// Whether it takes the turn from an active one with a lower priority.
    pub preempt: bool,
    /// Between two heartbeats.
    pub heartbeat: Duration,
    /// Records that are sent in a second at most.
    pub records_per_s: u32,
}

/// Why a gateway took over or stood down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The other one was silent.
    Silence,
    /// The other one does not forward.
    PeerOnStandby,
    /// An operator told the one that was active.
    Handover,
    /// The other one has a higher priority and takes the turn.
    Preempted,
    /// Both were active.
    Split,
    /// A card has no link.
    Card,
    /// It was not run for longer than its lease.
    Stopped,
}

impl Why {
    /// In an operator's words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Why::Silence => "the other gateway is silent",
            Why::PeerOnStandby => "the other gateway does not forward",
            Why::Handover => "an operator told it to hand over",
            Why::Preempted => "the other gateway has a higher priority",
            Why::Split => "both were active, and the other one has precedence",
            Why::Card => "one of its cards has no link",
            Why::Stopped => "it was stopped for longer than its lease",
        }
    }
}

/// Something worth telling an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It forwards from now on.
    TookOver(Why),
    /// It forwards nothing from now on.
    StoodDown(Why),
    /// The other gateway proved itself.
    PeerSeen,
    /// It was silent for three heartbeats.
    PeerLost,
    /// It knows all that the active one told.
    InSync,
}

/// Why a gateway does not hand over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// It is not the active one.
    NotActive,
    /// Nobody is there.
    NoPeer,
    /// The other one has a card without a link.
    PeerUnwell,
    /// The other one does not know all flows yet.
    NotInSync,
}

impl NotNow {
    /// In an operator's words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            NotNow::NotActive => "this gateway is not the active one",
            NotNow::NoPeer => "the other gateway is not heard",
            NotNow::PeerUnwell => "a card of the other gateway has no link",
            NotNow::NotInSync => "the other gateway does not know all flows yet",
        }
    }
}

/// How the pair is.
#[derive(Clone, Debug)]
pub struct Report {
    /// What this gateway does.
    pub role: Role,
    /// For how long.
    pub since: Duration,
    /// The last heartbeat of the other one and its age, if it is heard.
    pub peer: Option<(Heartbeat, Duration)>,
    /// Whether the one on standby knows all that it was told.
    pub in_sync: bool,
    /// Whether the other one is heard, and not on the sync link.
    pub sync_is_silent: bool,
    /// Age of the newest records, on standby.
    pub lag: Option<Duration>,
    /// Messages sent and taken.
    pub messages: [u64; 2],
    /// Records sent and taken.
    pub records: [u64; 2],
    /// Times that batches were missing.
    pub losses: u64,
    /// Messages refused, by reason.
    pub refused: BTreeMap<Refusal, u64>,
}

/// What is known of the other gateway.
#[derive(Debug, Default)]
struct Peer {
    /// Its last heartbeat.
    last: Option<Heartbeat>,
    /// Whether it was heard of late.
    is_there: bool,
    /// Whether its last heartbeat was said since this gateway does what it does: one that was stopped
    /// finds older ones waiting, and may send one that is.
    is_fresh: bool,
    /// When something of it was accepted on the sync link last.
    sync_heard: Option<Instant>,
    /// Whether an operator gave it the turn, which is not taken back then.
    was_handed_turn: bool,
}

/// When what happened.
#[derive(Debug)]
struct Times {
    role_since: Instant,
    /// Since when the other one is silent.
    silent_since: Instant,
    /// When the last heartbeat left on all paths.
    sent: Instant,
    /// Until when the other one has the turn.
    yields_until: Option<Instant>,
    latest: Instant,
}

/// A gateway of a pair.
#[derive(Debug)]
pub struct Pair {
    settings: Settings,
    channel: Channel,
    role: Role,
    cards: Cards,
    peer: Peer,
    times: Times,
    /// Whether switches must hear where hosts are.
    announces: bool,
    outgoing: Outgoing,
    incoming: Incoming,
    waiting: VecDeque<(Path, Vec<u8>)>,
    events: VecDeque<Event>,
    messages: [u64; 2],
    refused: BTreeMap<Refusal, u64>,
}

impl Pair {
    /// A gateway that begins on standby, and says at once that it is there.
    #[must_use]
    pub fn new(settings: Settings, secret: Secret, generator: Generator, now: Instant, cards: Cards) -> Pair {
        let mut pair = Pair {
            settings,
            channel: Channel::new(secret, generator),
            role: Role::Standby,
            cards,
            peer: Peer::default(),
            times: Times { role_since: now, silent_since: now, sent: now, yields_until: None, latest: now },
            announces: false,
            outgoing: Outgoing::new(settings.records_per_s),
            incoming: Incoming::default(),
            waiting: VecDeque::new(),
            events: VecDeque::new(),
            messages: [0; 2],
            refused: BTreeMap::new(),
        };
        pair.incoming.begin_anew();
        pair.beat(now);
        pair
    }

    /// What it does. Whoever forwards frames calls [`wake`](Pair::wake) before he asks.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// When [`wake`](Pair::wake) or [`pull`](Pair::pull) next has something to do.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let beat = self.times.sent + self.settings.heartbeat;
        let silence = self.times.silent_since + self.dead_after();
        let next = if self.role == Role::Standby && silence > self.times.latest { beat.min(silence) } else { beat };
        self.outgoing.deadline().filter(|_| self.tells()).map_or(next, |at| next.min(at))
    }

    fn dead_after(&self) -> Duration {
        self.settings.heartbeat * HEARTBEATS_MISSED
    }

    /// Goes on to `now`: before every frame, and at the deadline.
    pub fn wake(&mut self, now: Instant) {
        let lease = self.settings.heartbeat * LEASE_HEARTBEATS;
        if self.role == Role::Active && self.peer.is_there && now.since(self.times.sent) > lease {
            self.stand_down(now, Why::Stopped);
            self.times.silent_since = now;
        }
        // One that was stopped heard nothing meanwhile, whoever spoke: what waits is heard first.
        if self.role == Role::Standby && now.since(self.times.latest) > lease {
            self.times.silent_since = now;
        }
        self.times.latest = now;
        self.look_for_peer(now);
        if now.since(self.times.sent) >= self.settings.heartbeat {
            self.beat(now);
        }
    }

    fn look_for_peer(&mut self, now: Instant) {
        if now.since(self.times.silent_since) < self.dead_after() {
            return;
        }
        if std::mem::take(&mut self.peer.is_there) {
            self.peer.was_handed_turn = false;
            self.incoming.begin_anew();
            self.tell(Event::PeerLost);
        }
        if self.role == Role::Standby && self.cards.are_well() {
            self.take_over(now, Why::Silence);
        }
    }

    /// The links of its cards are `cards`.
    pub fn set_cards(&mut self, now: Instant, cards: Cards) {
        self.wake(now);
        if self.cards != cards {
            self.cards = cards;
            self.decide(now);
            self.beat(now);
        }
    }

    /// Takes a message that came on `path`, and has `source` take the records in it.
    ///
    /// # Errors
    /// Why the message was refused; it is counted.
    pub fn hear(&mut self, now: Instant, path: Path, message: &[u8], source: &mut dyn Source) -> Result<(), Refusal> {
        self.wake(now);
        let heard = self.open(now, path, message, source);
        match heard {
            Ok(()) => {
                self.messages[1] += 1;
                self.peer.sync_heard = if path == Path::Sync { Some(now) } else { self.peer.sync_heard };
            }
            Err(refusal) => *self.refused.entry(refusal).or_default() += 1,
        }
        heard
    }

    fn open(&mut self, now: Instant, path: Path, message: &[u8], source: &mut dyn Source) -> Result<(), Refusal> {
        let opened = self.channel.open(path, message)?;
        match message::read(&opened.plaintext).ok_or(Refusal::Unreadable)? {
            Message::Heartbeat(heartbeat) => self.hear_heartbeat(now, &opened, heartbeat, source),
            Message::Records { batch, records } => {
                self.expect_records(now, &opened, batch)?;
                for record in records {
                    self.incoming.records += 1;
                    if !source.take_record(now, record) {
                        self.incoming.note_unread();
                    }
                }
                Ok(())
            }
            Message::RoundOver { batch, round } => {
                self.expect_records(now, &opened, batch)?;
                if self.incoming.round_over(round) {
                    self.tell(Event::InSync);
                }
                Ok(())
            }
        }
    }

    fn expect_records(&mut self, now: Instant, opened: &Opened, batch: u64) -> Result<(), Refusal> {
        if !self.channel.is_proven(opened) {
            return Err(Refusal::Unproven);
        }
        if self.role == Role::Active {
            return Err(Refusal::NotOnStandby);
        }
        self.incoming.take(now, batch)
    }

    fn hear_heartbeat(
        &mut self,
        now: Instant,
        opened: &Opened,
        heartbeat: Heartbeat,
        source: &mut dyn Source,
    ) -> Result<(), Refusal> {
        let is_fresh = heartbeat.echoes.contains(&self.channel.challenge());
        match self.channel.prove(opened, &heartbeat) {
            Ok(Proof::Known) => {}
            Ok(Proof::New) => {
                self.incoming.begin_anew();
                self.outgoing.begin_anew();
                self.peer = Peer::default();
                self.beat(now);
            }
            Err(refusal) => {
                // It is told the challenge that it must repeat, at once if it is not told soon.
                self.answer(now);
                return Err(refusal);
            }
        }
        self.times.silent_since = now;
        let was_active = self.peer.last.is_some_and(|last| last.role == Role::Active);
        // Switches may have learned last from what it forwarded.
        self.announces |= self.role == Role::Active && was_active && heartbeat.role == Role::Standby;
        (self.peer.last, self.peer.is_fresh) = (Some(heartbeat), is_fresh);
        if !std::mem::replace(&mut self.peer.is_there, true) {
            self.tell(Event::PeerSeen);
        }
        self.decide(now);
        if self.role == Role::Active {
            self.outgoing.want(heartbeat.wanted, source);
        } else if heartbeat.role == Role::Active {
            if !was_active {
                self.incoming.begin_anew();
            }
            if opened.path == Path::Sync {
                self.incoming.hear_next(heartbeat.next_batch);
            }
        }
        Ok(())
    }

    /// Whether this gateway comes before the other one, all else being equal.
    fn has_precedence(&self, peer: &Heartbeat) -> bool {
        (self.settings.priority, Some(self.channel.epoch())) > (peer.priority, self.channel.peer_epoch())
    }

    /// What follows from how both are.
    fn decide(&mut self, now: Instant) {
        let Some(peer) = self.peer.last.filter(|_| self.peer.is_there) else { return };
        match (self.role, peer.role) {
            (Role::Active, Role::Active) if self.has_precedence(&peer) || !self.peer.is_fresh => self.answer(now),
            (Role::Active, Role::Active) => self.stand_down(now, Why::Split),
            (Role::Active, Role::Standby) => {
                if !self.cards.are_well() && peer.cards.are_well() {
                    self.stand_down(now, Why::Card);
                } else if self.peer.is_fresh && peer.preempts && peer.in_sync && peer.cards.are_well() {
                    self.yield_to_peer(now, Why::Preempted);
                }
            }
            (Role::Standby, Role::Active) => self.times.yields_until = None,
            (Role::Standby, Role::Standby) => {
                let yields = self.times.yields_until.is_some_and(|until| until > now);
                let may = self.peer.is_fresh && !yields && self.cards.are_well();
                if may && (peer.yields || !peer.cards.are_well() || self.has_precedence(&peer)) {
                    let why = if peer.yields { Why::Handover } else { Why::PeerOnStandby };
                    self.take_over(now, why);
                }
            }
        }
    }

    /// Has the other gateway take over, after it was told what is left to tell.
    ///
    /// # Errors
    /// Why it must not, or need not.
    pub fn hand_over(&mut self, now: Instant, source: &mut dyn Source) -> Result<(), NotNow> {
        self.wake(now);
        let peer = self.peer.last.filter(|_| self.peer.is_there);
        match peer {
            _ if self.role != Role::Active => Err(NotNow::NotActive),
            None => Err(NotNow::NoPeer),
            Some(peer) if !peer.cards.are_well() => Err(NotNow::PeerUnwell),
            Some(peer) if !peer.in_sync => Err(NotNow::NotInSync),
            Some(_) => {
                let last = self.outgoing.pull_at_once(now, source, RECORDS_BEFORE_HANDOVER);
                last.iter().for_each(|plaintext| self.send(Path::Sync, plaintext));
                self.peer.was_handed_turn = true;
                self.yield_to_peer(now, Why::Handover);
                Ok(())
            }
        }
    }

    fn yield_to_peer(&mut self, now: Instant, why: Why) {
        self.times.yields_until = Some(now + self.settings.heartbeat * YIELD_HEARTBEATS);
        self.stand_down(now, why);
    }

    fn take_over(&mut self, now: Instant, why: Why) {
        self.times.yields_until = None;
        (self.announces, self.peer.was_handed_turn) = (true, false);
        self.change(now, Role::Active, Event::TookOver(why));
        self.beat(now);
    }

    /// Where it leaves the turn to the other one, that one hears it behind the last records.
    fn stand_down(&mut self, now: Instant, why: Why) {
        self.change(now, Role::Standby, Event::StoodDown(why));
        self.incoming.begin_anew();
        if self.times.yields_until.is_some() {
            let heartbeat = self.heartbeat(now).write();
            self.send(Path::Sync, &heartbeat);
        } else {
            self.beat(now);
        }
    }

    fn change(&mut self, now: Instant, role: Role, event: Event) {
        (self.role, self.times.role_since) = (role, now);
        self.channel.renew_challenge();
        self.peer.is_fresh = false;
        self.tell(event);
    }

    /// True once after a takeover, and once after the other one stood down that was active as well:
    /// switches must hear where hosts are.
    pub fn takes_announcement(&mut self) -> bool {
        std::mem::take(&mut self.announces)
    }

    /// Whether the sync link was silent for as long as makes a gateway dead.
    fn is_sync_silent(&self, now: Instant) -> bool {
        self.peer.sync_heard.is_none_or(|at| now.since(at) >= self.dead_after())
    }

    /// Whether it knows all that it was told, and would hear more.
    fn is_in_sync(&self, now: Instant) -> bool {
        self.incoming.in_sync && !self.is_sync_silent(now)
    }

    /// Whether there is somebody to tell records to.
    fn tells(&self) -> bool {
        let is_on_standby = self.peer.last.is_some_and(|last| last.role == Role::Standby);
        self.role == Role::Active && self.peer.is_there && is_on_standby
    }

    /// Sends what records are due: after frames, and at the deadline.
    pub fn pull(&mut self, now: Instant, source: &mut dyn Source) {
        if self.tells() {
            let due = self.outgoing.pull(now, source);
            due.iter().for_each(|plaintext| self.send(Path::Sync, plaintext));
        }
    }

    fn heartbeat(&self, now: Instant) -> Heartbeat {
        let preempts = self.settings.preempt
            && self.peer.last.is_some_and(|last| last.priority < self.settings.priority)
            && self.role == Role::Standby
            && !self.peer.was_handed_turn;
        Heartbeat {
            role: self.role,
            cards: self.cards,
            yields: self.times.yields_until.is_some_and(|until| until > now),
            preempts,
            in_sync: self.is_in_sync(now),
            priority: self.settings.priority,
            challenge: self.channel.challenge(),
            echoes: self.channel.echoes(),
            wanted: self.incoming.wanted,
            next_batch: self.outgoing.next_batch(),
        }
    }

    /// A heartbeat on every path.
    fn beat(&mut self, now: Instant) {
        self.times.sent = now;
        let heartbeat = self.heartbeat(now).write();
        Path::ALL.into_iter().for_each(|path| self.send(path, &heartbeat));
    }

    /// A heartbeat before its time, so that nobody has us send many.
    fn answer(&mut self, now: Instant) {
        if now.since(self.times.sent) * 10 >= self.settings.heartbeat {
            self.beat(now);
        }
    }

    fn send(&mut self, path: Path, plaintext: &[u8]) {
        let Some(message) = self.channel.seal(path, plaintext) else { return };
        if self.waiting.len() < MESSAGES_WAITING_MAX {
            self.messages[0] += 1;
            self.waiting.push_back((path, message));
        }
    }

    fn tell(&mut self, event: Event) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// The next message to send.
    pub fn next_message(&mut self) -> Option<(Path, Vec<u8>)> {
        self.waiting.pop_front()
    }

    /// The next event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// How the pair is at `now`.
    #[must_use]
    pub fn report(&self, now: Instant) -> Report {
        let peer = self.peer.last.filter(|_| self.peer.is_there);
        let is_active = self.role == Role::Active;
        Report {
            role: self.role,
            since: now.since(self.times.role_since),
            peer: peer.map(|peer| (peer, now.since(self.times.silent_since))),
            in_sync: if is_active { peer.is_some_and(|peer| peer.in_sync) } else { self.is_in_sync(now) },
            sync_is_silent: peer.is_some() && self.is_sync_silent(now),
            lag: self.incoming.age(now).filter(|_| !is_active),
            messages: self.messages,
            records: [self.outgoing.records, self.incoming.records],
            losses: self.incoming.losses,
            refused: self.refused.clone(),
        }
    }
}
