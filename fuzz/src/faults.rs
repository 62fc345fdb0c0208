//! Panics in the middle of a link layer's work (record 0068): three hosts, and one of them fails at
//! points that the input chooses while it handles what another sends.
//!
//! The laws: the association that a panic may have torn ends, and no other; the third host's frames
//! pass as before, in both directions and without a handshake; no sequence number is used twice
//! under one key; every frame has a fate, and at most as many have a second one as there were
//! panics; the host whose association went has a new one before long.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, ErasingGenerator, Generator, Instant, Ledger, Meta, Now, Side, Sink, Wall, inject};
use cll::{Cll, EndCause, Event, Job, Settings};
use identity::{HostIdentity, Profile};
use system::boundary::{self, Beyond, Boundary};
use wire::arp::{Arp, Operation};
use wire::cll::{DataHeader, PacketType};
use wire::ethernet::{HEADER_LEN, Header};
use wire::{EtherType, MacAddress, ipv4};

use crate::input::Input;
use crate::site::START_UNIX_S;

/// Steps of one script.
const STEPS_MAX: usize = 12;
/// Points that a script can choose among; one call has fewer.
const POINTS: usize = 64;
/// Between two steps: so many panics in a minute are never reached.
const STEP_TIME: Duration = Duration::from_secs(5);
/// Seconds after which two hosts talk again.
const RECOVERY_S: usize = 20;
/// Deliveries at one moment after which frames are taken to run in a circle.
const DELIVERIES_MAX: usize = 10_000;

/// The host that fails, the one whose frames it fails on, and the one that must not notice.
const FAILING: usize = 0;
const CAUSE: usize = 1;
const OTHER: usize = 2;

/// Runs one script.
pub fn faults(data: &[u8]) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| boundary::install(|| {}));
    let mut input = Input::new(data);
    let mut lan = Lan::new();
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        lan.step(&mut input);
    }
}

struct Host {
    cll: Cll,
    boundary: Boundary,
    mac: MacAddress,
    ip: Ipv4Addr,
    delivered: Vec<Vec<u8>>,
    keys: ErasingGenerator,
    lives: u8,
    /// Whose associations ended because of a panic since it was last asked.
    ended: BTreeSet<MacAddress>,
}

struct Lan {
    hosts: [Host; 3],
    at: Instant,
    in_flight: VecDeque<(usize, Vec<u8>)>,
    /// Frames to the failing host.
    recorded: Vec<Vec<u8>>,
    /// Under which index and number the failing host sealed.
    sealed: BTreeSet<(MacAddress, u32, u32)>,
    unsealed: usize,
    /// After how many points the failing host's next calls panic.
    points: Option<u32>,
    faults: usize,
    faults_ever: i128,
    /// A panic was at a timer or after a job: then it may have torn anybody's state, and all
    /// associations end.
    is_anybodys: bool,
}

fn identities() -> &'static [String; 3] {
    static MADE: OnceLock<[String; 3]> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut random = Generator::from_seed([77; 32]);
        let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0]);
        let year = Duration::from_secs(365 * 86_400);
        let site =
            authority::Site::create_for("faults", year, Profile::Modern, &mut fill, START_UNIX_S).expect("a site");
        [1, 2, 3].map(|number| {
            let ip = Ipv4Addr::new(10, 0, 0, number);
            let request = authority::Request::new(&format!("h{number}"), mac(number), vec![ip]).expect("a request");
            site.issue_identity(&request, &mut fill, START_UNIX_S).expect("an identity").to_string()
        })
    })
}

fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

fn now(at: Instant) -> Now {
    let unix_ms = START_UNIX_S * 1000 + at.as_nanos() / 1_000_000;
    Now { since_boot: at, wall: Some(Wall { unix_ms, trust: ClockTrust::Plausible }) }
}

impl Host {
    fn new(number: usize, at: Instant, lives: u8) -> Host {
        let identity = HostIdentity::from_pem(&identities()[number]).expect("an identity");
        let ip = identity.certificate().addresses()[0];
        let settings = Settings::new(identity.into(), 1500);
        let mut seed = [number as u8; 32];
        seed[1] = lives;
        Host {
            mac: settings.mac,
            ip,
            cll: cll::start(now(at), settings, Generator::from_seed(seed), &mut Collected::new()),
            boundary: Boundary::default(),
            delivered: Vec::new(),
            keys: ErasingGenerator::from_seed(&[100 + number as u8; 32]),
            lives,
            ended: BTreeSet::new(),
        }
    }

    fn books(&self) -> Ledger {
        let mut books = Ledger::new();
        self.cll.add_to_ledger(&mut books);
        self.boundary.add_to_ledger(&mut books);
        books
    }

    fn next_job(&mut self) -> Option<(bump::Ticket, Job)> {
        while self.cll.next_effect().is_some() {}
        while let Some(event) = self.cll.next_event() {
            if let Event::Ended { mac, cause: EndCause::InternalError, .. } = event {
                self.ended.insert(mac);
            }
        }
        self.cll.next_job()
    }
}

/// A port that may fail before it gives room, and before and after it takes a frame.
struct Port<'a>(&'a mut Collected);

impl Sink for Port<'_> {
    fn reserve(&mut self, to: Side, capacity: usize) -> Option<&mut [u8]> {
        inject::point();
        self.0.reserve(to, capacity)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        inject::point();
        self.0.commit(to, len, meta);
        inject::point();
    }
}

impl Lan {
    fn new() -> Lan {
        let at = Instant::from_millis(1_000_000);
        Lan {
            hosts: [0, 1, 2].map(|number| Host::new(number, at, 0)),
            at,
            in_flight: VecDeque::new(),
            recorded: Vec::new(),
            sealed: BTreeSet::new(),
            unsealed: 0,
            points: None,
            faults: 0,
            faults_ever: 0,
            is_anybodys: false,
        }
    }

    /// One panic at most, while the failing host handles something of the cause.
    fn step(&mut self, input: &mut Input<'_>) {
        self.talk_before_long(CAUSE);
        self.talk_before_long(OTHER);
        let kind = input.below(5);
        self.faults = 0;
        self.points = Some(input.below(POINTS) as u32);
        let choice = input.byte();
        match kind {
            0 => self.send(CAUSE, FAILING, &[choice; 9]),
            1 => self.send(FAILING, CAUSE, &[choice; 9]),
            2 => self.repeat(choice, input),
            3 => {
                self.hosts[CAUSE] = Host::new(CAUSE, self.at, self.hosts[CAUSE].lives + 1);
                self.send(CAUSE, FAILING, &[choice; 9]);
            }
            _ => self.pass(STEP_TIME),
        }
        self.points = None;
        inject::disarm();
        let ended = std::mem::take(&mut self.hosts[FAILING].ended);
        if !std::mem::take(&mut self.is_anybodys) {
            let of_cause = if self.faults > 0 && kind < 2 { vec![self.hosts[CAUSE].mac] } else { Vec::new() };
            assert!(ended.iter().eq(&of_cause) || kind > 1, "{ended:?} ended after a panic on the cause's");
            let before = self.unsealed;
            assert!(self.talks(OTHER), "a panic on a frame of one host cost another's");
            assert_eq!(self.unsealed, before, "the other host had to prove itself again");
        }
        self.talk_before_long(OTHER);
        self.talk_before_long(CAUSE);
        self.pass(STEP_TIME);
    }

    /// A frame of the cause again, with a byte changed.
    fn repeat(&mut self, choice: u8, input: &mut Input<'_>) {
        let of_cause = self.recorded.iter().filter(|frame| frame[6..12] == self.hosts[CAUSE].mac.0).collect::<Vec<_>>();
        let Some(frame) = of_cause.get(usize::from(choice) % of_cause.len().max(1)) else { return };
        let mut frame = (*frame).clone();
        let at = HEADER_LEN + input.below(frame.len() - HEADER_LEN);
        frame[at] ^= input.byte();
        self.wire_brings(FAILING, frame);
        self.settle();
    }

    fn talk_before_long(&mut self, with: usize) {
        for _ in 0..RECOVERY_S {
            if self.talks(with) {
                return;
            }
            self.pass(Duration::from_secs(1));
        }
        panic!("host {with} and the one that failed do not talk after {RECOVERY_S} s");
    }

    /// Whether a datagram arrives each way.
    fn talks(&mut self, with: usize) -> bool {
        [(with, FAILING), (FAILING, with)].into_iter().fold(true, |all, (from, to)| {
            let payload = self.at.as_nanos().to_be_bytes();
            self.send(from, to, &payload);
            all && self.hosts[to].delivered.last() == Some(&self.datagram(from, to, &payload))
        })
    }

    fn datagram(&self, from: usize, to: usize, payload: &[u8]) -> Vec<u8> {
        let (from, to) = (&self.hosts[from], &self.hosts[to]);
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
        packet[3] = (ipv4::HEADER_LEN + 8 + payload.len()) as u8;
        packet.extend([from.ip.octets(), to.ip.octets()].concat());
        ipv4::fill_checksum(&mut packet);
        packet.extend([0x12, 0x34, 0x56, 0x78, 0, 8 + payload.len() as u8, 0, 0]);
        packet.extend(payload);
        let header = Header { destination: to.mac, source: from.mac, ethertype: EtherType::IPV4 };
        [&header.emit()[..], &packet].concat()
    }

    fn send(&mut self, from: usize, to: usize, payload: &[u8]) {
        let mut batch = [(self.datagram(from, to, payload), Meta::plain())];
        self.call(from, |host, at, sink| {
            host.boundary.process(&mut host.cll, at, Side::STACK, &mut Frames::new(&mut batch), sink)
        });
        self.settle();
    }

    fn wire_brings(&mut self, to: usize, frame: Vec<u8>) {
        let mut batch = [(frame, Meta::plain())];
        self.call(to, |host, at, sink| {
            host.boundary.process(&mut host.cll, at, Side::WIRE, &mut Frames::new(&mut batch), sink)
        });
    }

    fn pass(&mut self, time: Duration) {
        let end = self.at + time;
        for _ in 0..DELIVERIES_MAX {
            let next = self.hosts.iter().filter_map(|host| host.cll.deadline()).min().filter(|next| *next <= end);
            let Some(next) = next else {
                self.at = end;
                return;
            };
            self.at = self.at.max(next);
            for number in 0..self.hosts.len() {
                self.call_for_nobody(number, |cll, at, sink| cll.tick(at, 64, sink));
            }
            self.settle();
        }
        panic!("the deadline does not move on");
    }

    /// One call into a link layer behind its boundary. The one that fails does so while its points
    /// last.
    fn call(&mut self, number: usize, act: impl FnOnce(&mut Host, Now, &mut dyn Sink) -> Result<(), Beyond>) {
        let (host, mut sink) = (&mut self.hosts[number], Collected::new());
        if let Some(points) = self.points.filter(|_| number == FAILING) {
            inject::arm(points);
        }
        let outcome = act(host, now(self.at), &mut Port(&mut sink));
        let left = inject::disarm();
        if number == FAILING && self.points.is_some() {
            self.points = left;
        }
        assert_eq!(outcome, Ok(()));
        while host.boundary.next_fault().is_some() {
            assert_eq!(number, FAILING, "nothing was injected there");
            self.faults += 1;
            self.faults_ever += 1;
        }
        // A frame that counts as lost may have left a job behind that gives it another fate.
        let twice_max = if number == FAILING { self.faults_ever } else { 0 };
        let balance = host.books().balance();
        assert!((-twice_max..=0).contains(&balance), "{balance}: every frame has a fate, and only lost ones a second");
        for (side, frame, _) in sink.take() {
            match side {
                Side::WIRE => self.leaves(number, frame),
                Side::STACK => self.arrives(number, frame),
            }
        }
    }

    fn leaves(&mut self, number: usize, frame: Vec<u8>) {
        let (header, message) = Header::parse(&frame).expect("a frame");
        assert_eq!(header.ethertype, EtherType::CLL, "a frame in clear on the wire");
        if PacketType::of(message) == Ok(PacketType::Unicast) {
            let (data, _) = DataHeader::parse(message).expect("our own");
            let is_new =
                number != FAILING || self.sealed.insert((header.destination, data.receiver_index, data.sequence));
            assert!(is_new, "a sequence number was used twice");
        } else {
            self.unsealed += 1;
        }
        self.in_flight.push_back((number, frame));
    }

    /// The stack answers ARP for its own address.
    fn arrives(&mut self, number: usize, frame: Vec<u8>) {
        let (header, message) = Header::parse(&frame).expect("a frame");
        let host = &mut self.hosts[number];
        if header.ethertype == EtherType::IPV4 {
            host.delivered.push(frame);
            return;
        }
        let Ok(asked) = Arp::parse(message) else { return };
        if asked.operation != Operation::Request || asked.target_ip != host.ip {
            return;
        }
        let (sender_mac, sender_ip) = (host.mac, host.ip);
        let (target_mac, target_ip) = (asked.sender_mac, asked.sender_ip);
        let answer = Arp { operation: Operation::Reply, sender_mac, sender_ip, target_mac, target_ip };
        let header = Header { destination: target_mac, source: sender_mac, ethertype: EtherType::ARP };
        let mut batch = [([&header.emit()[..], &answer.emit()].concat(), Meta::plain())];
        self.call(number, |host, at, sink| {
            host.boundary.process(&mut host.cll, at, Side::STACK, &mut Frames::new(&mut batch), sink)
        });
    }

    /// Runs jobs and carries frames until nothing is left of either.
    fn settle(&mut self) {
        for _ in 0..DELIVERIES_MAX {
            let before = self.in_flight.len();
            let jobs = (0..self.hosts.len()).filter(|&number| self.run_job(number)).count();
            if let Some((from, frame)) = self.in_flight.pop_front() {
                self.carry(from, &frame);
            } else if jobs == 0 && before == 0 {
                return;
            }
        }
        panic!("frames run in a circle");
    }

    fn run_job(&mut self, number: usize) -> bool {
        let host = &mut self.hosts[number];
        let Some((ticket, job)) = host.next_job() else { return false };
        let completion = job.run(&mut host.keys);
        self.call_for_nobody(number, |cll, at, sink| cll.complete(at, ticket, completion, sink));
        true
    }

    /// A call that is about no frame.
    fn call_for_nobody(&mut self, number: usize, act: impl FnOnce(&mut Cll, Now, &mut dyn Sink)) {
        let before = self.faults;
        self.call(number, |host, at, sink| host.boundary.call(&mut host.cll, at, sink, |cll, sink| act(cll, at, sink)));
        self.is_anybodys |= self.faults > before;
    }

    fn carry(&mut self, from: usize, frame: &[u8]) {
        for to in (0..self.hosts.len()).filter(|to| *to != from) {
            if frame[0] & 1 != 0 || frame[..6] == self.hosts[to].mac.0 {
                if to == FAILING {
                    self.recorded.push(frame.to_vec());
                }
                self.wire_brings(to, frame.to_vec());
            }
        }
    }
}
