//! What the machines of a host share and none of them owns alone, and what one call into the bump gives to them.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::{DropReason, Fate, Generator, Instant, Ledger, Mailbox, Meta, Now, Side, Sink, sink};
use dhcp::Lease;
use identity::signing::SigningKey;
use shield::Bucket;
use shield::sarp::Outpost;
use wire::arp::{Arp, Operation};
use wire::ethernet::{Header, MIN_LEN};
use wire::sarp::data::{RESOLUTION_NONCE_LEN, Resolution};
use wire::sarp::{Kind, Message};
use wire::{EtherType, MacAddress};

use super::work::{Task, Work};
use crate::clock::{Clock, Stamp};
use crate::event::Event;
use crate::job::JobKind;
use crate::limits;
use crate::settings::Settings;

/// The fate of a frame, or why it is dropped.
pub(super) type Verdict = Result<Fate, DropReason>;

/// What ties a signed answer to its question.
pub(super) type Nonce = [u8; RESOLUTION_NONCE_LEN];

/// Later than any clock here will show.
const FOREVER: Instant = Instant::from_nanos(u64::MAX);

/// What the machines share.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) settings: Arc<Settings>,
    /// What we sign with.
    pub(super) key: Arc<SigningKey>,
    pub(super) ledger: Ledger,
    pub(super) random: Generator,
    pub(super) clock: Clock,
    /// The addresses that our DHCP client has, newest last.
    pub(super) leased: Vec<Lease>,
    pub(super) outpost: Option<Box<dyn Outpost>>,
    pub(super) work: Work,
    pub(super) events: Mailbox<Event>,
    pub(super) events_lost: u64,
    stranger_events: Bucket,
}

impl Core {
    pub(super) fn new(settings: Arc<Settings>, random: Generator) -> Core {
        Core {
            key: Arc::clone(&settings.key),
            settings,
            ledger: Ledger::new(),
            random,
            clock: Clock::default(),
            leased: Vec::new(),
            outpost: None,
            work: Work::new(),
            events: Mailbox::new(limits::EVENTS_MAX),
            events_lost: 0,
            stranger_events: Bucket::new(limits::STRANGER_EVENTS_PER_SECOND, limits::STRANGER_EVENTS_PER_SECOND),
        }
    }

    /// Tells `outpost` of our addresses and of known hosts, and of all questions and proofs from now on.
    pub(super) fn set_outpost(&mut self, mut outpost: Box<dyn Outpost>) {
        self.settings.addresses.iter().for_each(|ip| outpost.own(*ip, FOREVER));
        self.settings.known_hosts.iter().for_each(|known| outpost.acquaint(known.mac, known.ip));
        self.outpost = Some(outpost);
    }

    /// Tells who checks in front of us which leases we have, and until when.
    pub(super) fn tell_leases(&mut self) {
        let Core { outpost: Some(outpost), leased, .. } = self else { return };
        leased.iter().for_each(|lease| outpost.own(lease.address, lease.until.unwrap_or(FOREVER)));
    }
}

/// One call into the bump: when it is, what all machines share, and where frames go.
pub(super) struct Call<'a> {
    pub(super) time: Now,
    pub(super) core: &'a mut Core,
    pub(super) sink: &'a mut dyn Sink,
}

impl Call<'_> {
    pub(super) fn now(&self) -> Instant {
        self.time.since_boot
    }

    /// The S-ARP clock, once a distributor has told the time.
    pub(super) fn clock(&self) -> Option<Stamp> {
        self.core.clock.read(self.now())
    }

    /// A stamp for a message of our own.
    pub(super) fn stamp(&mut self) -> Option<Stamp> {
        self.core.clock.stamp(self.time.since_boot)
    }

    /// Whether `stamp` is within the window of our clock.
    pub(super) fn is_near(&self, stamp: Stamp) -> bool {
        self.clock().is_some_and(|clock| clock.distance(stamp) <= self.core.settings.window)
    }

    /// Whether this host may speak for `ip`: by its certificate, or by a lease that lasts.
    pub(super) fn is_own(&self, ip: Ipv4Addr) -> bool {
        let is_leased = || self.core.leased.iter().any(|lease| lease.address == ip && lease.holds(self.now()));
        self.core.settings.is_own(ip) || is_leased()
    }

    /// The ARP message of a request by this host.
    pub(super) fn arp_to(&self, target_mac: MacAddress, target_ip: Ipv4Addr) -> Arp {
        let Core { settings, leased, .. } = &*self.core;
        let leased = || Some(leased.iter().rfind(|lease| lease.holds(self.now()))?.address);
        let sender_ip = settings.addresses.first().copied().or_else(leased).unwrap_or(Ipv4Addr::UNSPECIFIED);
        Arp { operation: Operation::Request, sender_mac: settings.mac, sender_ip, target_mac, target_ip }
    }

    pub(super) fn report(&mut self, event: Event) {
        self.core.events_lost += u64::from(self.core.events.push(event).is_err());
    }

    /// News that a stranger can cause with every frame; their counters tell how many there were.
    pub(super) fn report_stranger(&mut self, event: Event) {
        if self.core.stranger_events.take(self.time.since_boot) {
            self.report(event);
        }
    }

    /// Starts `job`; the frame of `task` is held until it is done.
    pub(super) fn start(&mut self, job: JobKind, task: Task) -> Fate {
        self.core.work.start(job, task)
    }

    /// Has a message of our own signed, stamped with the S-ARP clock.
    pub(super) fn sign(&mut self, arp: Arp, nonce: Option<Nonce>, task: Task) -> Fate {
        let Some(stamp) = self.stamp() else { return Fate::Dropped(DropReason::SarpNoClock) };
        let data = Resolution { fraction: Some(stamp.fraction()), nonce }.emit();
        let message = Message { arp, kind: Kind::Resolution, seconds: stamp.seconds(), data: &data, signature: &[] };
        let job = JobKind::Sign { key: Arc::clone(&self.core.key), unsigned: message.signed_bytes() };
        self.start(job, task)
    }

    /// Sends an ARP message, padded with zeros so that no old bytes leak (the paper's footnote 2).
    pub(super) fn send(&mut self, to: MacAddress, message: &[u8], good: Fate) -> Fate {
        let header = Header { destination: to, source: self.core.settings.mac, ethertype: EtherType::ARP };
        let sent = sink::copy_parts(self.sink, Side::WIRE, &[&header.emit(), message], MIN_LEN, Meta::plain());
        self.emitted(sent, Side::WIRE, good)
    }

    /// Tells the stack what is proved, as a plain ARP message to it alone.
    pub(super) fn tell_stack(&mut self, arp: &Arp) -> Fate {
        let header = Header { destination: self.core.settings.mac, source: arp.sender_mac, ethertype: EtherType::ARP };
        let parts = [&header.emit()[..], &arp.emit()];
        let told = sink::copy_parts(self.sink, Side::STACK, &parts, 0, Meta::plain());
        self.emitted(told, Side::STACK, Fate::Forwarded)
    }

    /// Passes a frame on as it is.
    pub(super) fn pass(&mut self, to: Side, frame: &[u8], meta: Meta) -> Fate {
        let passed = sink::copy(self.sink, to, frame, meta);
        self.emitted(passed, to, Fate::Forwarded)
    }

    fn emitted(&mut self, is_emitted: bool, to: Side, good: Fate) -> Fate {
        self.core.ledger.emitted[to as usize] += u64::from(is_emitted);
        if is_emitted { good } else { Fate::Dropped(DropReason::PortFull) }
    }

    /// A frame that was held has its fate, unless it is held on.
    pub(super) fn release(&mut self, from: Side, fate: Fate, frame: &[u8]) {
        if fate != Fate::Held {
            self.core.ledger.release(self.time.since_boot, from, fate, frame);
        }
    }
}
