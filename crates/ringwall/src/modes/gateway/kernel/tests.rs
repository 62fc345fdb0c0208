//! Two scrubbers with the same keys hear the same segments of one connection: one judges all of
//! them, the other has the kernel's programs carry what they take. What leaves must be the same,
//! byte by byte: honest streams, losses, segments that overtake others, selective acknowledgements,
//! retransmissions that say something else, old numbers, wrong sums.
//!
//! `RINGWALL_CARRIED_CASES` says how many connections, for a long run; `RINGWALL_CARRIED_SEED`
//! which first.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump as _, Generator, Instant, Ledger, Meta, Now, Side};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use scrub::{Action, Keys, Preset, Rule, Scrubber};
use wire::checksum;

use super::*;

const CASES_DEFAULT: u64 = 60;
const STEPS: u32 = 120;
/// Of the places of connections.
const SEED: u64 = 0x1234_5678_9abc_def0;
/// The loopback device, as which a trial shows every frame.
const TRIAL_INTERFACE: u32 = 1;
/// What the second program answers for a frame that goes out (`TC_ACT_REDIRECT`).
const REDIRECTED: u32 = 7;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
const URG: u8 = 32;
const ECE: u8 = 64;

/// The programs without cards.
struct Trial {
    in_front: Program,
    onward: Program,
    settings: Map,
    told: Settings,
}

impl Trial {
    /// And the memory that is shared with them.
    fn open(told: Settings) -> (Trial, Carrier) {
        let maps = maps([0; 2], &told, SEED).expect("root may make maps");
        let load = |kind, program| Program::load(kind, NAME, &Instruction::read(program), &maps).expect("a program");
        let in_front = load(Kind::SocketFilter, layout::IN_FRONT);
        let onward = load(ingress::KIND, layout::ONWARD);
        let share = |at: usize| {
            let shared = maps[at].share().expect("shared memory");
            Box::new(Memory { shared, _held: Vec::new() }) as Box<dyn Words>
        };
        let carrier = Carrier::new(share(layout::ENTRIES), share(layout::POOL), SEED);
        let settings = maps.into_iter().next().expect("the settings");
        (Trial { in_front, onward, settings, told }, carrier)
    }

    /// What becomes of a frame, if the kernel takes it.
    fn carry(&self, from: Side, frame: &[u8]) -> Option<Option<Vec<u8>>> {
        let other = TRIAL_INTERFACE + 1;
        let interfaces = if from == Side::TRUSTED { [TRIAL_INTERFACE, other] } else { [other, TRIAL_INTERFACE] };
        self.settings.put(&[0; 4], &layout::settings(interfaces, &self.told, SEED)).expect("told");
        if self.in_front.try_on(frame, 0).expect("tried") {
            return None;
        }
        let (verdict, frame) = self.onward.try_changing(frame).expect("tried");
        Some((verdict == REDIRECTED).then_some(frame))
    }
}

/// A segment before it is written.
#[derive(Clone, Debug)]
struct Wanted {
    from: Side,
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    window: u16,
    stamps: Option<(u32, u32)>,
    /// In front of the timestamps.
    options: Vec<u8>,
    /// Blocks of a selective acknowledgement, behind them.
    blocks: Vec<(u32, u32)>,
    data: Vec<u8>,
    hop_limit: u8,
    class: u8,
    dont_fragment: bool,
    breaks_checksum: bool,
    padded: bool,
}

/// The two ends of the connection.
#[derive(Clone, Copy)]
struct Ends {
    is_ipv6: bool,
}

impl Ends {
    fn address(self, side: Side) -> IpAddr {
        match (self.is_ipv6, side) {
            (false, Side::TRUSTED) => Ipv4Addr::new(192, 0, 2, 10).into(),
            (false, _) => Ipv4Addr::new(198, 51, 100, 7).into(),
            (true, Side::TRUSTED) => Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 10).into(),
            (true, _) => Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7).into(),
        }
    }

    fn frame(self, wanted: &Wanted) -> Vec<u8> {
        let (source, destination) = (self.address(wanted.from), self.address(wanted.from.other()));
        let tcp = wanted.tcp(source, destination);
        let mut frame = vec![2, 0, 0, 0, 0, 2 - wanted.from as u8, 2, 0, 0, 0, 0, 1 + wanted.from as u8];
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let flags = if wanted.dont_fragment { 0x40 } else { 0 };
                let total = (20 + tcp.len()) as u16;
                let mut header = vec![0x45, wanted.class];
                header.extend(total.to_be_bytes());
                header.extend([0x12, 0x34, flags, 0, wanted.hop_limit, 6, 0, 0]);
                header.extend([source.octets(), destination.octets()].concat());
                wire::ipv4::fill_checksum(&mut header);
                frame.extend([0x08, 0x00]);
                frame.extend(header);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                frame.extend([0x86, 0xdd]);
                frame.extend((6 << 28 | u32::from(wanted.class) << 20 | 0x12345).to_be_bytes());
                frame.extend((tcp.len() as u16).to_be_bytes());
                frame.extend([6, wanted.hop_limit]);
                frame.extend([source.octets(), destination.octets()].concat());
            }
            _ => unreachable!("both are of one version"),
        }
        frame.extend(tcp);
        if wanted.padded && frame.len() < 60 {
            frame.resize(60, 0);
        }
        frame
    }
}

impl Wanted {
    fn tcp(&self, source: IpAddr, destination: IpAddr) -> Vec<u8> {
        let ports: [u16; 2] = if self.from == Side::TRUSTED { [443, 50_123] } else { [50_123, 443] };
        let mut options = self.options.clone();
        if let Some((value, echo)) = self.stamps {
            options.extend([1, 1, 8, 10]);
            options.extend([value.to_be_bytes(), echo.to_be_bytes()].concat());
        }
        if !self.blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * self.blocks.len() as u8]);
            let bytes = |(left, right): &(u32, u32)| [left.to_be_bytes(), right.to_be_bytes()].concat();
            options.extend(self.blocks.iter().flat_map(bytes));
        }
        let mut tcp: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        tcp.extend([self.sequence.to_be_bytes(), self.acknowledgement.to_be_bytes()].concat());
        tcp.extend([((20 + options.len()) / 4 * 16) as u8, self.flags]);
        tcp.extend([self.window.to_be_bytes(), [0; 2], [0; 2]].concat());
        tcp.extend(options);
        tcp.extend(&self.data);
        let pseudo = match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(to)) => checksum::pseudo_header_v4(source, to, 6, tcp.len() as u16),
            (IpAddr::V6(source), IpAddr::V6(to)) => checksum::pseudo_header_v6(source, to, 6, tcp.len() as u32),
            _ => unreachable!("both are of one version"),
        };
        // What a host on the same machine leaves to be summed looks like that, and nothing says so here.
        let is_unfinished = self.breaks_checksum && self.sequence.is_multiple_of(2);
        let sum =
            if is_unfinished { pseudo.fold() } else { pseudo.bytes(&tcp).checksum() ^ u16::from(self.breaks_checksum) };
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        tcp
    }
}

/// A host: what it has sent, in its own numbers, and what it says.
struct Host {
    first: u32,
    sent: Vec<u8>,
    /// How far its peer has acknowledged, counted from the first byte.
    acknowledged: usize,
    stamp: u32,
    window: u16,
}

/// Segments that the kernel took.
#[derive(Clone, Copy, Debug, Default)]
struct Carried {
    all: u32,
    /// In bursts of which some overtake others.
    overtaking: u32,
    /// With blocks of selective acknowledgement.
    selective: u32,
    /// That say again what was said.
    repeated: u32,
    /// That the engine judged, and left the connection where it was.
    borrowed: u32,
    /// Of these, with a SYN, a RST and a FIN.
    guessed: [u32; 3],
}

/// One connection through both scrubbers.
struct Case {
    random: Generator,
    ends: Ends,
    has_stamps: bool,
    has_sack: bool,
    /// Whether little happens that brings a connection back.
    is_calm: bool,
    hosts: [Host; 2],
    /// Of sequence numbers and of timestamps.
    shift: [u32; 2],
    plain: Scrubber,
    carrying: Scrubber,
    trial: Trial,
    now: Instant,
    carried: Carried,
    trace: Vec<String>,
}

fn settings(random: &mut Generator) -> Settings {
    let preset = if random.chance(4) { Preset::Strict } else { Preset::Balanced };
    let mut settings = Settings::preset(preset);
    let off = [Rule::TcpFlags, Rule::TcpReset, Rule::TcpHandshake, Rule::TcpFin, Rule::TcpReservedBits];
    if random.chance(3) {
        for rule in off.into_iter().filter(|_| random.chance(2)) {
            settings.rules.set(rule, Action::Off);
        }
    }
    settings
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut bytes = [3; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        let mut random = Generator::from_seed(bytes);
        let settings = settings(&mut random);
        let keys = || Keys { tables: [1; 16], sequence: [2; 16], identification: [3; 16] };
        let (trial, carrier) = Trial::open(settings.clone());
        let (plain, mut carrying) = (Scrubber::new(settings.clone(), keys()), Scrubber::new(settings, keys()));
        carrying.carry_by(carrier.without_drains());
        let mut host = || Host {
            first: random.number(),
            sent: Vec::new(),
            acknowledged: 0,
            stamp: random.number(),
            window: 20_000 + random.below(40_000) as u16,
        };
        let mut hosts = [host(), host()];
        if random.chance(4) {
            hosts[Side::TRUSTED as usize].window = 500 + random.below(2000) as u16;
        }
        let ends = Ends { is_ipv6: random.chance(2) };
        let (has_stamps, has_sack, is_calm) = (random.chance(2), !random.chance(4), random.chance(2));
        let now = Instant::default() + Duration::from_secs(100);
        let (shift, carried, trace) = ([0; 2], Carried::default(), Vec::new());
        Case { random, ends, has_stamps, has_sack, is_calm, hosts, shift, plain, carrying, trial, now, carried, trace }
    }

    /// Both hear a frame; what left.
    fn both(&mut self, from: Side, frame: &[u8]) -> Vec<(Side, Vec<u8>)> {
        self.now = self.now + Duration::from_millis(1);
        let now = Now { since_boot: self.now, wall: None };
        let of_plain = heard(&mut self.plain, now, from, frame);
        let of_carrying = match self.trial.carry(from, frame) {
            Some(out) => {
                self.carried.all += 1;
                out.into_iter().map(|frame| (from.other(), frame)).collect()
            }
            None => {
                let was_carried = self.is_carried();
                let out = heard(&mut self.carrying, now, from, frame);
                let stays = u32::from(was_carried && self.is_carried());
                self.carried.borrowed += stays;
                let flags = frame[if self.ends.is_ipv6 { 67 } else { 47 }];
                for (count, flag) in self.carried.guessed.iter_mut().zip([SYN, RST, FIN]) {
                    *count += stays * u32::from(flags & flag != 0);
                }
                out
            }
        };
        assert_eq!(of_carrying, of_plain, "after {} carried: {:#?}", self.carried.all, self.trace);
        of_plain
    }

    fn is_carried(&self) -> bool {
        self.carrying.flows(self.now).any(|flow| flow.is_carried)
    }

    /// What a host of `from` says next, honestly and without data.
    fn next(&self, from: Side) -> Wanted {
        let [own, peer] = [&self.hosts[from as usize], &self.hosts[from.other() as usize]];
        let peer_shift = if from == Side::UNTRUSTED { self.shift } else { [0; 2] };
        let peer_at = peer.first.wrapping_add(1 + peer.acknowledged as u32);
        Wanted {
            from,
            sequence: own.first.wrapping_add(1 + own.sent.len() as u32),
            acknowledgement: peer_at.wrapping_add(peer_shift[0]),
            flags: ACK,
            window: own.window,
            stamps: self.has_stamps.then(|| (own.stamp, peer.stamp.wrapping_add(peer_shift[1]))),
            options: Vec::new(),
            blocks: Vec::new(),
            data: Vec::new(),
            hop_limit: 60,
            class: 0,
            dont_fragment: true,
            breaks_checksum: false,
            padded: false,
        }
    }

    fn say(&mut self, wanted: &Wanted) -> Vec<(Side, Vec<u8>)> {
        self.trace.push(format!(
            "{:?} seq {} ack {} flags {:#x} window {} stamps {:?} options {} blocks {:?} data {} \
             hop {} class {} df {} broken {}",
            wanted.from,
            wanted.sequence,
            wanted.acknowledgement,
            wanted.flags,
            wanted.window,
            wanted.stamps,
            wanted.options.len(),
            wanted.blocks,
            wanted.data.len(),
            wanted.hop_limit,
            wanted.class,
            wanted.dont_fragment,
            wanted.breaks_checksum
        ));
        let frame = self.ends.frame(wanted);
        let before = self.carried.all;
        let out = self.both(wanted.from, &frame);
        self.carried.selective += u32::from(!wanted.blocks.is_empty()) * (self.carried.all - before);
        out
    }

    fn greet(&mut self) {
        let opener = if self.random.chance(2) { Side::TRUSTED } else { Side::UNTRUSTED };
        for (from, flags) in [(opener, SYN), (opener.other(), SYN | ACK)] {
            let mut wanted = self.next(from);
            wanted.sequence = wanted.sequence.wrapping_sub(1);
            (wanted.flags, wanted.options) = (flags, vec![2, 4, 5, 0xb4, 1, 3, 3, 2]);
            if self.has_sack {
                wanted.options.extend([1, 1, 4, 2]);
            }
            if flags == SYN {
                wanted.acknowledgement = 0;
                // Or they are offered and not taken.
                let offered = self.random.chance(2).then(|| (self.hosts[from as usize].stamp, 0));
                wanted.stamps = wanted.stamps.map(|(value, _)| (value, 0)).or(offered);
            }
            let out = self.say(&wanted);
            let frame = &out.iter().find(|(to, _)| *to == from.other()).expect("it goes on").1;
            if from == Side::TRUSTED {
                let tcp = &frame[if self.ends.is_ipv6 { 54 } else { 34 }..];
                let number = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().expect("four bytes"));
                self.shift[0] = number(4).wrapping_sub(wanted.sequence);
                let kinds: Vec<_> = (20..tcp.len()).collect();
                let stamp_at = kinds.into_iter().find(|at| tcp[*at..].starts_with(&[8, 10]));
                if let (Some(at), Some((value, _))) = (stamp_at, wanted.stamps) {
                    self.shift[1] = number(at + 2).wrapping_sub(value);
                }
            }
        }
        let wanted = self.next(opener);
        self.say(&wanted);
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.random.number() as u8).collect()
    }

    /// Data that was not sent before.
    fn send(&mut self, from: Side) {
        let len = 1 + self.random.below(1400) as usize;
        let mut wanted = self.next(from);
        wanted.data = self.bytes(len);
        wanted.flags |= if self.random.chance(2) { PSH } else { 0 };
        self.hosts[from as usize].sent.extend(&wanted.data);
        self.say(&wanted);
    }

    /// Several segments, of which some overtake others and some are lost at first. The peer says
    /// what it has.
    fn overtake(&mut self, from: Side) {
        let count = 2 + self.random.below(4) as usize;
        let mut segments: Vec<(usize, Wanted)> = Vec::new();
        for _ in 0..count {
            let len = 1 + self.random.below(1400) as usize;
            let mut wanted = self.next(from);
            wanted.data = self.bytes(len);
            let at = self.hosts[from as usize].sent.len();
            self.hosts[from as usize].sent.extend(&wanted.data);
            segments.push((at, wanted));
        }
        // Mostly one is late only.
        if self.random.chance(3) {
            let (one, other) = (self.random.below(count as u64) as usize, self.random.below(count as u64) as usize);
            segments.swap(one, other);
        } else {
            let mut late = segments.remove(self.random.below(count as u64) as usize);
            // It may say otherwise what others have said behind it.
            if self.random.chance(4) {
                let more = self.bytes(self.hosts[from as usize].sent.len() - late.0 - late.1.data.len());
                late.1.data.extend(more);
                late.1.data.truncate(1400);
            }
            segments.push(late);
        }
        let (mut heard, before) = (Vec::new(), self.carried.all - self.carried.selective);
        for (at, wanted) in segments {
            heard.push((at, at + wanted.data.len()));
            self.say(&wanted);
            if self.random.chance(2) {
                self.tell(from.other(), &heard);
            }
        }
        self.carried.overtaking += self.carried.all - self.carried.selective - before;
        self.hosts[from as usize].acknowledged = self.hosts[from as usize].sent.len();
        let wanted = self.next(from.other());
        self.say(&wanted);
    }

    /// The host of `from` acknowledges what it has heard: parts of what its peer has sent.
    fn tell(&mut self, from: Side, heard: &[(usize, usize)]) {
        let mut parts = heard.to_vec();
        parts.sort_unstable();
        let peer = &mut self.hosts[from.other() as usize];
        for (begin, end) in &parts {
            if *begin <= peer.acknowledged {
                peer.acknowledged = peer.acknowledged.max(*end);
            }
        }
        let (first, acknowledged) = (peer.first, peer.acknowledged);
        let shift = if from == Side::UNTRUSTED { self.shift[0] } else { 0 };
        let number = |at: usize| first.wrapping_add(1 + at as u32).wrapping_add(shift);
        let mut wanted = self.next(from);
        let blocks = parts.iter().filter(|(begin, _)| self.has_sack && *begin > acknowledged).take(3);
        wanted.blocks = blocks.map(|(begin, end)| (number(*begin), number(*end))).collect();
        if self.random.chance(6) {
            wanted.data = self.bytes(20);
            self.hosts[from as usize].sent.extend(&wanted.data);
        }
        self.say(&wanted);
    }

    /// What its peer may have heard already, mostly as it was.
    fn repeat(&mut self, from: Side) {
        let host = &self.hosts[from as usize];
        let open = &host.sent[host.acknowledged..];
        if open.is_empty() {
            return self.send(from);
        }
        let at = self.random.below(open.len() as u64) as usize;
        let len = 1 + self.random.below(1400.min(open.len() - at) as u64) as usize;
        let (at, len) = if self.random.chance(2) { (0, open.len().min(1400)) } else { (at, len) };
        let mut data = open[at..at + len].to_vec();
        if self.random.chance(5) {
            data[self.random.below(len as u64) as usize] ^= 0x55;
        }
        let back = (open.len() - at) as u32;
        let mut wanted = self.next(from);
        (wanted.sequence, wanted.data) = (wanted.sequence.wrapping_sub(back), data);
        let before = self.carried.all;
        self.say(&wanted);
        self.carried.repeated += self.carried.all - before;
    }

    /// A selective acknowledgement of anything: of what was heard twice, or never sent.
    fn disturb_blocks(&mut self, wanted: &mut Wanted) {
        let count = 1 + self.random.below(3);
        for _ in 0..count {
            let left = wanted.acknowledgement.wrapping_add(self.random.below(9000) as u32).wrapping_sub(6000);
            wanted.blocks.push((left, left.wrapping_add(self.random.below(3000) as u32).wrapping_sub(100)));
        }
    }

    /// The host of `from` has heard some of what was sent to it, mostly all.
    fn acknowledge(&mut self, from: Side) {
        let peer = &mut self.hosts[from.other() as usize];
        let open = peer.sent.len() - peer.acknowledged;
        let part = if self.random.chance(4) { self.random.below(open as u64 + 1) as usize } else { open };
        peer.acknowledged += part;
        let wanted = self.next(from);
        self.say(&wanted);
    }

    /// More than the shortest ring holds, none of it acknowledged, and then the oldest said otherwise.
    fn burst(&mut self) {
        self.settle();
        for _ in 0..3 {
            self.acknowledge(Side::TRUSTED);
            self.acknowledge(Side::UNTRUSTED);
        }
        for _ in 0..10 {
            let mut wanted = self.next(Side::UNTRUSTED);
            wanted.data = self.bytes(1400);
            self.hosts[Side::UNTRUSTED as usize].sent.extend(&wanted.data);
            self.say(&wanted);
        }
        let mut wanted = self.next(Side::UNTRUSTED);
        let host = &self.hosts[Side::UNTRUSTED as usize];
        let open = host.sent.len() - host.acknowledged;
        wanted.sequence = wanted.sequence.wrapping_sub(open as u32);
        wanted.data = host.sent[host.acknowledged..][..open.min(1400)].iter().map(|byte| byte ^ 0x55).collect();
        self.say(&wanted);
    }

    /// A SYN, FIN or RST of somebody who knows addresses and ports, and guesses the numbers: far off, a
    /// little, or only what is acknowledged.
    fn guess(&mut self, wanted: &mut Wanted, off: usize) {
        let far = self.random.number();
        let near = (self.random.below(3000) as u32).wrapping_sub(1500);
        let flags = self.random.below(8) as usize;
        wanted.flags = [SYN, SYN | ACK, RST, RST | ACK, FIN | ACK, FIN | PSH, FIN | ACK, PSH][flags];
        wanted.sequence = wanted.sequence.wrapping_add([far, near, near, 0][off]);
        wanted.acknowledgement = wanted.acknowledgement.wrapping_add([far, 0, near, far][off]);
    }

    /// Something that an honest host says rarely, or never.
    fn disturb(&mut self, from: Side) {
        let mut wanted = self.next(from);
        let number = self.random.number();
        match self.random.below(22) {
            // Bytes that were sent before, said otherwise or not.
            0..=3 => {
                let host = &self.hosts[from as usize];
                let open = host.sent.len() - host.acknowledged;
                let back = self.random.below(open as u64 + 200).min(host.sent.len() as u64) as usize;
                let at = host.sent.len() - back;
                wanted.data = host.sent[at..(at + 1 + number as usize % 900).min(host.sent.len())].to_vec();
                if self.random.chance(2) {
                    wanted.data.iter_mut().for_each(|byte| *byte ^= 0x55);
                }
                wanted.sequence = wanted.sequence.wrapping_sub(back as u32);
            }
            4 => wanted.sequence = wanted.sequence.wrapping_add(1 + number % 3000),
            5 => wanted.sequence = wanted.sequence.wrapping_sub(1),
            6 => wanted.acknowledgement = wanted.acknowledgement.wrapping_add(number % 5000).wrapping_sub(2500),
            7 => wanted.stamps = wanted.stamps.map(|(value, echo)| (value.wrapping_sub(number % 9), echo)),
            8 => wanted.breaks_checksum = from == Side::UNTRUSTED,
            9 => wanted.hop_limit = (number % 256) as u8,
            10 => wanted.class = (number % 256) as u8,
            11 => wanted.dont_fragment = from == Side::UNTRUSTED,
            12 => wanted.flags |= [URG, ECE, PSH, RST | SYN][number as usize % 4],
            13 => wanted.options = vec![1, 1, 30, 2],
            14 => wanted.padded = true,
            15 => self.disturb_blocks(&mut wanted),
            // What its peer has acknowledged long ago, said otherwise or not.
            17 | 18 => {
                let host = &self.hosts[from as usize];
                let at = self.random.below(host.acknowledged as u64 + 1) as usize;
                wanted.data = host.sent[at..host.acknowledged.min(at + 1 + number as usize % 900)].to_vec();
                if self.random.chance(2) {
                    wanted.data.iter_mut().for_each(|byte| *byte ^= 0x55);
                }
                wanted.sequence = wanted.sequence.wrapping_sub((host.sent.len() - at) as u32);
            }
            16 => wanted.sequence = wanted.sequence.wrapping_sub(number % 4000),
            19..=21 => {
                let off = self.random.below(4) as usize;
                self.guess(&mut wanted, off);
            }
            _ => wanted.window = number as u16,
        }
        if self.random.chance(3) && wanted.data.is_empty() && !wanted.breaks_checksum {
            wanted.data = self.bytes(1 + number as usize % 500);
            let next = self.next(from).sequence;
            if wanted.sequence == next && !self.is_refused(&wanted) {
                self.hosts[from as usize].sent.extend(&wanted.data);
            }
        }
        self.say(&wanted);
    }

    /// Whether the peer may not hear it, so that it is not what its host will go on from.
    fn is_refused(&self, wanted: &Wanted) -> bool {
        let usual = self.next(wanted.from);
        wanted.acknowledgement != usual.acknowledgement
            || wanted.stamps != usual.stamps
            || wanted.hop_limit < 8
            || wanted.flags & (RST | SYN) != 0
            || wanted.flags & ACK == 0
    }

    /// Both are told what time it is, and list the same.
    fn look(&mut self) {
        let now = Now { since_boot: self.now, wall: None };
        let mut sink = Collected::new();
        self.plain.tick(now, 100, &mut sink);
        self.carrying.tick(now, 100, &mut sink);
        let books = |scrubber: &Scrubber| {
            let mut ledger = Ledger::new();
            scrubber.add_to_ledger(&mut ledger);
            (ledger.received, ledger.forwarded, ledger.dropped)
        };
        self.now = self.now + Duration::from_secs(1);
        let now = Now { since_boot: self.now, wall: None };
        self.carrying.tick(now, 100, &mut sink);
        self.plain.tick(now, 100, &mut sink);
        assert_eq!(books(&self.carrying), books(&self.plain), "{:#?}", self.trace);
        let seen = |flow: scrub::FlowReport| (flow.packets, flow.bytes, flow.state);
        let flows = |scrubber: &Scrubber| scrubber.flows(self.now).map(seen).collect();
        let (of_carrying, of_plain): (Vec<_>, Vec<_>) = (flows(&self.carrying), flows(&self.plain));
        assert_eq!(of_carrying, of_plain, "{:#?}", self.trace);
    }

    /// Both hosts have heard all.
    fn settle(&mut self) {
        for side in [Side::TRUSTED, Side::UNTRUSTED] {
            self.hosts[side as usize].acknowledged = self.hosts[side as usize].sent.len();
        }
        for side in [Side::TRUSTED, Side::UNTRUSTED] {
            let wanted = self.next(side);
            self.say(&wanted);
        }
    }

    fn run(&mut self) {
        self.greet();
        if self.random.chance(2) {
            self.burst();
        }
        for step in 0..STEPS {
            let from = if self.random.chance(3) { Side::TRUSTED } else { Side::UNTRUSTED };
            let far = self.hosts.iter().any(|host| host.sent.len() - host.acknowledged > 20_000);
            if far || step % 9 == 8 && !self.random.chance(3) {
                self.settle();
            }
            for host in &mut self.hosts {
                host.stamp = host.stamp.wrapping_add(1);
            }
            match self.random.below(20) {
                0..=8 => self.send(from),
                9..=13 => self.acknowledge(from),
                14..=15 => self.overtake(from),
                16..=17 => self.repeat(from),
                _ if self.is_calm && !self.random.chance(4) => self.acknowledge(from),
                _ => self.disturb(from),
            }
            if self.random.chance(12) {
                let mut wanted = self.next(Side::UNTRUSTED);
                self.guess(&mut wanted, 0);
                self.say(&wanted);
            }
            if step % 40 == 39 {
                self.look();
            }
        }
        let mut wanted = self.next(Side::UNTRUSTED);
        wanted.flags |= FIN;
        self.say(&wanted);
    }
}

/// What leaves when a scrubber hears a frame.
fn heard(scrubber: &mut Scrubber, now: Now, from: Side, frame: &[u8]) -> Vec<(Side, Vec<u8>)> {
    let mut frames = [(frame.to_vec(), Meta::plain())];
    let mut sink = Collected::new();
    scrubber.process(now, from, &mut Frames::new(&mut frames), &mut sink);
    sink.take().into_iter().map(|(to, frame, _)| (to, frame)).collect()
}

#[test]
fn kernels_that_cannot_carry_are_told_from_those_that_can() {
    for release in ["6.11.0", "6.12.117+deb12-amd64", "7.0-rc1", "10.1"] {
        assert_eq!(usable(release, ""), Ok(()), "{release}");
    }
    for release in ["6.1.0-56-amd64", "6.10.14", "5.15", ""] {
        assert!(usable(release, "").is_err(), "{release}");
    }
    for build in ["#1 SMP PREEMPT_RT Debian 6.12.43-1", "#1 SMP PREEMPT RT Debian 5.10.2"] {
        assert!(usable("6.12.43", build).is_err(), "{build}");
    }
    assert!(usable("6.12.43", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.43-1 (2026-08-27)").is_ok());
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn what_the_kernel_carries_leaves_as_the_engine_would_have_it() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: the kernel takes programs of root only");
        return;
    }
    if let Err(why) = usable(&read("/proc/sys/kernel/osrelease"), "") {
        eprintln!("SKIPPED: {why}");
        return;
    }
    // Both programs of one frame run on one processor, as they do behind a card.
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    sched_setaffinity(None, &here).expect("this thread stays where it is");
    let first = number("RINGWALL_CARRIED_SEED", 1);
    let mut carried = Carried::default();
    for seed in first..first + number("RINGWALL_CARRIED_CASES", CASES_DEFAULT) {
        eprintln!("RINGWALL_CARRIED_SEED={seed}");
        let mut case = Case::new(seed);
        case.run();
        carried.all += case.carried.all;
        carried.overtaking += case.carried.overtaking;
        carried.selective += case.carried.selective;
        carried.repeated += case.carried.repeated;
        carried.borrowed += case.carried.borrowed;
        carried.guessed.iter_mut().zip(case.carried.guessed).for_each(|(all, more)| *all += more);
    }
    eprintln!("{carried:?} segments");
    let Carried { all, overtaking, selective, repeated, borrowed, guessed } = carried;
    let are_tried =
        overtaking > 200 && selective > 50 && repeated > 50 && borrowed > 20 && guessed.iter().all(|count| *count > 1);
    assert!(all > 1000 && are_tried, "{carried:?}");
}
