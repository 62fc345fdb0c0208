//! One host: its link layer, its jobs, and what it sealed and was given.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::sink::Collected;
use bump::{
    Bump, ClockTrust, Control as _, ErasingGenerator, Generator, Instant, Lane as _, Ledger, Now, Side, Ticket, Wall,
};
use cll::limits::{CANDIDATES_PER_PEER_MAX, HANDSHAKES_OPEN_MAX, HELD_BYTES_MAX};
use cll::{Cll, Effect, Event, HeldTicket, IssuingKey, Job, Remembered, Settings, TicketId};
use identity::aead::Suite;
use wire::MacAddress;
use wire::cll::Compression;
use wire::cll::handshake::LANES_MAX;

use crate::input::Input;
use crate::site::{self, START_UNIX_S};

const WIRE_MTU: u16 = 1500;
/// Compresses with LZ4 and reads it.
const COMPRESSES: Compression = Compression(0x11);

/// One host.
pub(super) struct Host {
    pub(super) cll: Cll,
    pub(super) settings: Settings,
    pub(super) jobs: VecDeque<(Ticket, Job)>,
    /// Every frame with payload that it sealed.
    pub(super) sealed: BTreeSet<Vec<u8>>,
    /// What honest frames were before they were sealed.
    pub(super) plain: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Every sealed frame whose payload its stack was given.
    pub(super) opened: BTreeSet<Vec<u8>>,
    /// What its stack sent to groups, and how often less what of it was delivered.
    pub(super) shouted: BTreeMap<Vec<u8>, u32>,
    /// What its stack was given last.
    pub(super) last_delivered: Vec<u8>,
    keys: ErasingGenerator,
    /// What outlives the program.
    disk: (BTreeMap<MacAddress, HeldTicket>, Vec<IssuingKey>, Vec<TicketId>),
    clock_error_s: Option<i64>,
    lives: u8,
}

impl Host {
    pub(super) fn new(number: usize, at: Instant, input: &mut Input<'_>) -> Host {
        let settings = settings(number, input);
        let clock_error_s = [Some(0), Some(3600), Some(-3600), None][input.below(4)];
        Host {
            cll: start(&settings, number, 0, now(at, clock_error_s)),
            settings,
            jobs: VecDeque::new(),
            sealed: BTreeSet::new(),
            plain: BTreeMap::new(),
            opened: BTreeSet::new(),
            shouted: BTreeMap::new(),
            last_delivered: Vec::new(),
            keys: ErasingGenerator::from_seed(&[100 + number as u8; 32]),
            disk: Default::default(),
            clock_error_s,
            lives: 0,
        }
    }

    /// Hardware address and first address.
    pub(super) fn own(&self) -> (MacAddress, Ipv4Addr) {
        (self.settings.mac, self.settings.identity.certificate().addresses()[0])
    }

    pub(super) fn now(&self, at: Instant) -> Now {
        now(at, self.clock_error_s)
    }

    /// Its program dies and starts anew.
    pub(super) fn restart(&mut self, number: usize, at: Instant) {
        self.lives += 1;
        self.jobs.clear();
        let now = self.now(at);
        self.cll = start(&self.settings, number, self.lives, now);
        let (tickets, keys, spent) = &self.disk;
        let remembered =
            Remembered { tickets: tickets.values().cloned().collect(), keys: keys.clone(), spent: spent.clone() };
        cll::remember(&mut self.cll, now, remembered, &mut Collected::new());
    }

    /// Does the work of a job.
    pub(super) fn run(&mut self, job: Job) -> cll::Completion {
        job.run(&mut self.keys)
    }

    /// Takes out what a call left in the link layer, and checks what must hold between any two calls.
    pub(super) fn settle(&mut self, peer: &str) {
        while let Some(job) = self.cll.next_job() {
            self.jobs.push_back(job);
        }
        while let Some(event) = self.cll.next_event() {
            if let Event::Established { name, .. } | Event::Resumed { name, .. } = &event {
                assert_eq!(name, peer, "an association with somebody else");
            }
            assert!(!event.to_string().contains('\n'));
        }
        while let Some(effect) = self.cll.next_effect() {
            match effect {
                Effect::KeepTicket(ticket) => _ = self.disk.0.insert(ticket.mac(), *ticket),
                Effect::ForgetTicket(mac) => _ = self.disk.0.remove(&mac),
                Effect::KeepTicketKeys(keys) => self.disk.1 = keys,
                Effect::KeepSpent(id) => self.disk.2.push(id),
                // A list or policy of the peer's making is not signed by the site, and what is
                // remembered is not read again here.
                Effect::PermanentNeighbour { .. }
                | Effect::ForgetNeighbour { .. }
                | Effect::KeepLease(_)
                | Effect::ForgetLease
                | Effect::CheckRevocationList { .. }
                | Effect::CheckPolicy { .. }
                | Effect::Remember(_)
                | Effect::RememberTime { .. } => {}
            }
        }
        self.check_limits();
    }

    /// The books of all its parts. They balance together, because a lane hands frames over to control.
    fn books(&self) -> impl Iterator<Item = &Ledger> {
        std::iter::once(self.cll.control.ledger()).chain(self.cll.lanes.iter().map(|lane| lane.ledger()))
    }

    /// Frames of the wire whose payload its stack was given.
    pub(super) fn opened_frames(&self) -> u64 {
        self.books().map(|ledger| ledger.forwarded[Side::WIRE as usize]).sum()
    }

    fn check_limits(&self) {
        assert_eq!(self.books().map(Ledger::balance).sum::<i128>(), 0, "every frame has one fate");
        assert!(self.cll.control.open_handshakes() <= HANDSHAKES_OPEN_MAX);
        // One association in use, one on its way out, and candidates, for each lane of the one peer.
        let keys_max = (2 + CANDIDATES_PER_PEER_MAX) * usize::from(LANES_MAX);
        for lane in &self.cll.lanes {
            assert!(lane.held_bytes() <= HELD_BYTES_MAX);
            assert!(lane.receiving_keys() <= keys_max, "{} keys to receive with", lane.receiving_keys());
            assert!(lane.sending_to() <= 1, "there is one peer");
        }
    }
}

/// Settings by the input. The stack of host 0 may lie: then its own link layer lets it, and the other must not believe it.
fn settings(number: usize, input: &mut Input<'_>) -> Settings {
    let choice = input.byte();
    let bit = |at: u32| choice >> at & 1 != 0;
    let mut settings = Settings::new(Arc::clone(&site::identities()[number]), WIRE_MTU);
    settings.confidential = !bit(0);
    settings.send_suite = Suite::ALL[usize::from(choice >> 1) % Suite::ALL.len()];
    settings.lanes = 1 + u8::from(bit(3)) * 2;
    settings.weaken.cross_layer = bit(4) && number == 0;
    // Who has the first suite compresses, too, so that no script becomes another; all read.
    settings.compression = if choice & 6 == 0 { COMPRESSES } else { Compression(0x10) };
    if bit(5) {
        settings.rekey_after_frames = 8;
    }
    if bit(6) {
        settings.lifetime = Duration::from_secs(20);
        settings.lifetime_min = Duration::from_secs(20);
    }
    if bit(7) {
        settings.resumption = Some(Duration::from_secs(3600));
    }
    settings
}

fn start(settings: &Settings, number: usize, life: u8, now: Now) -> Cll {
    let mut seed = [number as u8; 32];
    seed[0] = life;
    cll::start(now, settings.clone(), Generator::from_seed(seed), &mut Collected::new())
}

fn now(at: Instant, clock_error_s: Option<i64>) -> Now {
    let true_ms = (START_UNIX_S * 1000 + at.as_nanos() / 1_000_000) as i64;
    let unix_ms = |error: i64| u64::try_from(true_ms + error * 1000).expect("after 1970");
    Now {
        since_boot: at,
        wall: clock_error_s.map(|error| Wall { unix_ms: unix_ms(error), trust: ClockTrust::Plausible }),
    }
}
