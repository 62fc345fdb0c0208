//! Two hosts that send again what is lost, while a second scrubber goes on with what a first one told of their
//! connection, and segments are lost, held up and overtaken on the way.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;

use std::collections::BTreeMap;
use std::time::Duration;

use bump::Side;
use proptest::prelude::*;
use scrub::{Settings, Told};

use tcp_support::*;

/// Data in a segment, in bytes.
const PIECE: u32 = 1000;
/// As Linux: before a host first sends again, and between two answers to segments without data that are old.
const TIMEOUT_MS: u64 = 200;
const OLD_ANSWERS_MS: u64 = 500;

/// A host of a connection, as far as Linux shows: RFC 9293, section 3.10.7.4, RFC 6298 and RFC 7323, section 5.
struct Host {
    acknowledged: u32,
    next: u32,
    wanted: u32,
    heard: u32,
    /// What it said last of `heard`.
    told: u32,
    islands: BTreeMap<u32, u32>,
    stamp_heard: u32,
    timer: Option<u64>,
    timeout_ms: u64,
    retries: u32,
    retries_max: u32,
    answered_old_at: Option<u64>,
    out: Vec<Seg>,
}

impl Host {
    fn new(own: u32, other: u32) -> Host {
        Host {
            acknowledged: own,
            next: own,
            wanted: own,
            heard: other,
            told: other,
            islands: BTreeMap::new(),
            stamp_heard: 0,
            timer: None,
            timeout_ms: TIMEOUT_MS,
            retries: 0,
            retries_max: 0,
            answered_old_at: None,
            out: Vec::new(),
        }
    }

    fn send(&mut self, now: u64, sequence: u32, len: u32) {
        let data: Vec<u8> = (sequence..sequence + len).map(|at| (at / 7) as u8).collect();
        self.told = self.heard;
        self.out.push(seg(ACK, sequence, self.heard).stamps(now as u32, self.stamp_heard).window(500).data(&data));
    }

    /// Sends what it wants to have said, in pieces.
    fn say(&mut self, now: u64) {
        while self.next < self.wanted && self.next < self.acknowledged + 10 * PIECE {
            let len = (self.wanted - self.next).min(PIECE);
            self.send(now, self.next, len);
            self.next += len;
            self.timer.get_or_insert(now + self.timeout_ms);
        }
    }

    /// Its timer is due: the oldest piece once more.
    fn wake(&mut self, now: u64) {
        self.retries += 1;
        self.retries_max = self.retries_max.max(self.retries);
        self.timeout_ms *= 2;
        self.timer = Some(now + self.timeout_ms);
        self.send(now, self.acknowledged, (self.next - self.acknowledged).min(PIECE));
    }

    fn answer_old(&mut self, now: u64, is_limited: bool) {
        if is_limited && self.answered_old_at.is_some_and(|at| now < at + OLD_ANSWERS_MS) {
            return;
        }
        if is_limited {
            self.answered_old_at = Some(now);
        }
        self.send(now, self.next, 0);
    }

    fn hear(&mut self, now: u64, seg: &Seg) {
        let (value, _) = seg.read_stamps().expect("agreed");
        let (begin, end, is_bare) = (seg.sequence, seg.end(), seg.data.is_empty());
        if value < self.stamp_heard || end < self.told || begin > self.heard + 60_000 {
            self.answer_old(now, is_bare);
            return;
        }
        if begin <= self.told {
            self.stamp_heard = value;
        }
        let expected: Vec<u8> = (begin..end).map(|at| (at / 7) as u8).collect();
        assert_eq!(seg.data, expected, "bytes as they were said");
        if seg.acknowledgement > self.acknowledged && seg.acknowledgement <= self.next {
            self.acknowledged = seg.acknowledgement;
            (self.retries, self.timeout_ms) = (0, TIMEOUT_MS);
            self.timer = (self.acknowledged < self.next).then_some(now + self.timeout_ms);
        }
        if is_bare {
            return;
        }
        let last = self.islands.entry(begin).or_insert(end);
        *last = end.max(*last);
        while let Some(entry) = self.islands.first_entry().filter(|entry| *entry.key() <= self.heard) {
            self.heard = self.heard.max(entry.remove());
        }
        self.send(now, self.next, 0);
    }
}

/// What happens to the connection.
#[derive(Clone, Debug)]
struct Plan {
    word: u32,
    both_directions: bool,
    /// When the next scrubber was told last, when one ends, and when the next begins.
    takeovers: Vec<[u64; 3]>,
    /// Segments from the takeover on, by number, of which each is lost.
    lost: Vec<usize>,
    /// How long segments are on their way before and behind the scrubber, in turn.
    delays: Vec<u64>,
}

fn plans() -> impl Strategy<Value = Plan> {
    let lost = proptest::collection::vec(0_usize..60, 0..5);
    let delays = proptest::collection::vec(prop_oneof![4 => 1_u64..4, 1 => 1_u64..60], 1..40);
    let word = prop_oneof![Just(64_u32), Just(20_000)];
    let takeovers = proptest::collection::vec((0_u64..400, 0_u64..300, 0_u64..900), 1..4);
    (word, any::<bool>(), takeovers, lost, delays).prop_map(|(word, both_directions, takeovers, lost, delays)| {
        let mut began = 0;
        let takeovers = takeovers.iter().map(|(until_told, until_end, outage)| {
            let told = began + until_told;
            began = told + until_end + outage;
            [told, told + until_end, began]
        });
        Plan { word, both_directions, takeovers: takeovers.collect(), lost, delays }
    })
}

struct World {
    plan: Plan,
    /// The active one and its successor.
    gates: [Gate; 2],
    hosts: [Host; 2],
    /// Segments under way, by time and number: from whom, and whether they have passed.
    way: BTreeMap<(u64, usize), (Side, bool, Seg)>,
    number: usize,
    takeovers_done: usize,
    after_takeover: usize,
}

const START_MS: u64 = 1_000;

impl World {
    fn new(plan: Plan) -> World {
        let settings = Settings { both_directions: plan.both_directions, ..plain() };
        let mut gates = [Gate::new(settings.clone()), Gate::new(settings)];
        gates.iter_mut().for_each(|gate| gate.scrubber.follow_changes());
        gates[0].open_with_stamps(1, 1);
        let (client, server) = (CLIENT + 1, SERVER + 1);
        let hosts = [Host::new(server, client), Host::new(client, server)];
        World { plan, gates, hosts, way: BTreeMap::new(), number: 0, takeovers_done: 0, after_takeover: 0 }
    }

    fn launch(&mut self, now: u64, from: Side, passed: bool, seg: Seg) {
        let delay = self.plan.delays[self.number % self.plan.delays.len()];
        self.number += 1;
        self.way.insert((now + delay, self.number), (from, passed, seg));
    }

    fn tell(&mut self) {
        self.gates[0].scrubber.begin_round();
        let [first, second] = &mut self.gates;
        let mut record = Vec::new();
        while first.scrubber.next_record(first.now, &mut record) == Told::Record {
            second.scrubber.take_record(second.now, &record).expect("a record");
            record.clear();
        }
    }

    /// The successor goes on, and a gateway that knows nothing is there for the next time.
    fn take_over(&mut self) {
        self.gates.swap(0, 1);
        let settings = Settings { both_directions: self.plan.both_directions, ..plain() };
        let mut next = Gate::new(settings);
        next.scrubber.follow_changes();
        next.now = self.gates[0].now;
        self.gates[1] = next;
        self.takeovers_done += 1;
    }

    fn pass(&mut self, at: u64, from: Side, seg: &Seg) {
        if self.plan.takeovers.iter().any(|[_, ends, begins]| (*ends..*begins).contains(&at)) {
            return;
        }
        let out = self.gates[0].pass(from, seg);
        for (side, segs) in [(Side::UNTRUSTED, out.inside), (Side::TRUSTED, out.outside)] {
            for seg in segs {
                self.lose_or_launch(at, side, true, seg);
            }
        }
    }

    fn lose_or_launch(&mut self, at: u64, from: Side, passed: bool, seg: Seg) {
        self.after_takeover += usize::from(self.takeovers_done > 0);
        if self.takeovers_done == 0 || !self.plan.lost.contains(&self.after_takeover) {
            self.launch(START_MS + at, from, passed, seg);
        }
    }

    fn step(&mut self, at: u64) {
        let now = START_MS + at;
        for gate in &mut self.gates {
            gate.wait(Duration::from_millis(1));
        }
        for [told, _, begins] in self.plan.takeovers.clone() {
            if at == told {
                self.tell();
            }
            if at == begins {
                self.take_over();
            }
        }
        while let Some(entry) = self.way.first_entry().filter(|entry| entry.key().0 <= now) {
            let (from, passed, seg) = entry.remove();
            if passed {
                self.hosts[from.other() as usize].hear(now, &seg);
            } else {
                self.pass(at, from, &seg);
            }
        }
        for side in [Side::TRUSTED, Side::UNTRUSTED] {
            let host = &mut self.hosts[side as usize];
            if host.timer.is_some_and(|due| due <= now) {
                host.wake(now);
            }
            host.say(now);
            for seg in std::mem::take(&mut host.out) {
                self.lose_or_launch(at, side, false, seg);
            }
        }
    }

    /// The client says words, and the server says as much when it has heard each.
    fn talk(&mut self) -> u32 {
        let first = [SERVER + 1, CLIENT + 1];
        let mut quiet_since = None;
        for at in 0..60_000 {
            let word = self.plan.word;
            let [server, client] = &mut self.hosts;
            server.wanted = first[0] + (server.heard - first[1]) / word * word;
            let is_answered = client.heard - first[0] == client.wanted - first[1];
            let since = *quiet_since.get_or_insert(at);
            if !is_answered {
                quiet_since = None;
            } else if at >= since + 50 {
                if self.takeovers_done == self.plan.takeovers.len() {
                    return server.retries_max.max(client.retries_max);
                }
                client.wanted += word;
                quiet_since = None;
            }
            self.step(at);
        }
        panic!("no answer: {:?}", self.plan);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// An outage of less than a second asks for three at most, and each segment that is lost for two.
    #[test]
    fn every_connection_goes_on(plan in plans()) {
        let losses = plan.lost.len() as u32;
        let retries = World::new(plan).talk();
        prop_assert!(retries <= 9 + 2 * losses, "{retries} retransmissions with {losses} losses");
    }
}
