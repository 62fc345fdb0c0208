//! The simulated LAN: a hub or a learning switch, and what it does to frames on their way.

use std::collections::BTreeMap;
use std::time::Duration;

use bump::Generator;
use wire::MacAddress;
use wire::ethernet::Header;

/// What joins the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everybody sees everything.
    Hub,
    /// Learns who is where; frames to others are seen only while it does not know.
    Switch,
}

/// How badly frames are treated. All chances are "once in so many", zero for never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Harm {
    /// A frame does not arrive.
    pub lost_one_in: u64,
    /// A frame arrives twice.
    pub doubled_one_in: u64,
    /// A frame is overtaken by others.
    pub late_one_in: u64,
    /// A frame arrives with a few bits changed.
    pub corrupted_one_in: u64,
    /// Longest delay of a late frame.
    pub late_by_max: Duration,
}

/// How badly frames are treated in a run of `random`'s seed.
pub fn draw_harm(random: &mut Generator) -> Harm {
    let late_by_max_millis = if random.chance(3) { 3_000 } else { 50 };
    let mut one_in = |often: u64, rarely: u64| {
        if random.chance(2) { often + random.below(rarely - often) } else { 0 }
    };
    Harm {
        lost_one_in: one_in(4, 100),
        doubled_one_in: one_in(3, 100),
        late_one_in: one_in(3, 50),
        corrupted_one_in: one_in(5, 200),
        late_by_max: Duration::from_millis(late_by_max_millis),
    }
}

/// Most addresses that a switch learns, as a small real one.
const LEARNED_MAX: usize = 1024;
/// The shortest way through the LAN.
const DELAY_MIN: Duration = Duration::from_micros(20);
const JITTER_MICROS: u64 = 180;

/// The LAN.
#[derive(Debug)]
pub struct Fabric {
    kind: Kind,
    harm: Harm,
    ports: usize,
    learned: BTreeMap<MacAddress, usize>,
    random: Generator,
}

/// A frame on its way to one port.
pub struct Flight {
    /// Where it arrives.
    pub port: usize,
    /// How long it takes.
    pub delay: Duration,
    /// What arrives.
    pub frame: Vec<u8>,
}

impl Fabric {
    /// A LAN with so many ports.
    pub fn new(kind: Kind, harm: Harm, ports: usize, random: Generator) -> Fabric {
        Fabric { kind, harm, ports, learned: BTreeMap::new(), random }
    }

    /// From now on every frame arrives once, soon, and as it was sent, and the switch has forgotten cloned addresses.
    pub fn heal(&mut self) {
        self.harm = Harm::default();
        self.learned.clear();
    }

    /// What becomes of `frame`, which enters at port `from`.
    pub fn carry(&mut self, from: usize, frame: &[u8]) -> Vec<Flight> {
        let ports = match Header::parse(frame) {
            Ok((header, _)) => self.ports_for(from, &header),
            Err(_) => (0..self.ports).filter(|&port| port != from).collect(),
        };
        ports.into_iter().flat_map(|port| self.fly(port, frame)).collect()
    }

    fn ports_for(&mut self, from: usize, header: &Header) -> Vec<usize> {
        if self.kind == Kind::Switch && !header.source.is_group() && self.learned.len() < LEARNED_MAX {
            self.learned.insert(header.source, from);
        }
        match self.learned.get(&header.destination) {
            Some(&port) => {
                if port == from {
                    Vec::new()
                } else {
                    vec![port]
                }
            }
            None => (0..self.ports).filter(|&port| port != from).collect(),
        }
    }

    fn fly(&mut self, port: usize, frame: &[u8]) -> Vec<Flight> {
        if self.random.chance(self.harm.lost_one_in) {
            return Vec::new();
        }
        let copies = if self.random.chance(self.harm.doubled_one_in) { 2 } else { 1 };
        (0..copies).map(|_| Flight { port, delay: self.delay(), frame: self.perhaps_corrupted(frame) }).collect()
    }

    fn delay(&mut self) -> Duration {
        let mut delay = DELAY_MIN;
        if self.random.chance(self.harm.late_one_in) {
            delay += Duration::from_micros(self.random.below(self.harm.late_by_max.as_micros() as u64));
        } else if self.harm.late_one_in != 0 {
            delay += Duration::from_micros(self.random.below(JITTER_MICROS));
        }
        delay
    }

    fn perhaps_corrupted(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        if !frame.is_empty() && self.random.chance(self.harm.corrupted_one_in) {
            for _ in 0..=self.random.below(3) {
                let at = self.random.below(frame.len() as u64) as usize;
                frame[at] ^= 1 << self.random.below(8);
            }
        }
        frame
    }
}
