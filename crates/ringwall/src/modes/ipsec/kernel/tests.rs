//! The program in the kernel, for the socket and for the card, and its twin judge the same packets:
//! honest, forged, replayed, cut and changed ones. What the kernel hands to the stack by itself is
//! what the twin would have.
//!
//! `RINGWALL_TWIN_FRAMES` says how many, for a long run; `RINGWALL_TWIN_SEED` which.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, Generator, Ledger, Meta, Side};
use shield::ipsec::{End, EpochKey, PairKeys, PeerSettings, Rates, Settings, Shield};
use system::clock::Clock;
use system::takeover::Kept;

use super::*;
use crate::modes::cll::kernel::tests::{is_skipped, setting};

const OWN: &str = "10.0.0.1";
/// With a shield and two epochs, with one over IPv6, without.
const PEERS: [&str; 3] = ["10.0.0.2", "fd00::2", "10.0.0.4"];
const OWN_V6: &str = "fd00::1";
const STRANGERS: [&str; 2] = ["10.0.0.9", "fd00::9"];
/// What this host's stack gives out.
const SPIS: std::ops::RangeInclusive<u32> = 0x4000_0000..=0xbfff_ffff;
const FRAMES_DEFAULT: u64 = 20_000;
/// More IKE than may pass.
const OVER: Option<DropReason> = Some(DropReason::ShieldIkeBudget);
/// Few: what passes on trial must not hide what does not.
const RATE: u32 = 1;
/// Bytes of an Ethernet and an IPv6 header.
const HEADERS_LEN: usize = 54;
/// Stands for the outer end of a pair; nothing is sent there in a test run.
const OUTER: u32 = 1;
// Verdicts of a program behind the sockets, from linux/bpf.h and linux/pkt_cls.h.
const NEXT: u32 = u32::MAX;
const REDIRECT: u32 = 7;

/// Bytes in front of what an IP packet carries.
fn ip_header(from: IpAddr, to: IpAddr, protocol: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            frame.extend([8, 0, 0x45, 0]);
            frame.extend((20 + len as u16).to_be_bytes());
            frame.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
            frame.extend(from.octets());
            frame.extend(to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((len as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(from.octets());
            frame.extend(to.octets());
        }
        _ => panic!("a packet has addresses of one kind"),
    }
    frame
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn own_beside(peer: IpAddr) -> IpAddr {
    address(if peer.is_ipv4() { OWN } else { OWN_V6 })
}

fn keys(end: End, epochs: u32) -> PairKeys {
    let epochs = (1..=epochs).map(|number| EpochKey { number, key: [number as u8; 16] }).collect();
    PairKeys { end, epochs, send: 1 }
}

fn shield_of(peers: Vec<PeerSettings>) -> Shield {
    let rates = Rates { unknown_spi: RATE, ike: RATE, keepalive: RATE, fragment: RATE };
    Shield::new(Settings { peers, spis: SPIS, rates, ..Settings::default() })
}

fn keys_of(peer: usize, end: End) -> Option<PairKeys> {
    [Some(keys(end, 2)), Some(keys(end, 1)), None][peer].clone()
}

/// This host's.
fn own_shield() -> Shield {
    let peers = (0..3).map(|peer| PeerSettings { address: address(PEERS[peer]), keys: keys_of(peer, End::A) });
    shield_of(peers.collect())
}

/// Both, and the peers' own shields.
struct Both {
    hook: Hook,
    program: Program,
    twin: Shield,
    books: Books,
    onward: Option<Onward>,
    senders: Vec<Shield>,
    clock: Clock,
    random: Generator,
    /// SPI and next sequence number of the associations in use, by peer.
    associations: Vec<(usize, u32, u32)>,
    last: Vec<u8>,
}

impl Both {
    fn open(hook: Hook, seed: u64) -> Both {
        Both::open_with_way(hook, seed, None)
    }

    /// The same, where the kernel hands on to the stack by this way.
    fn open_with_way(hook: Hook, seed: u64, way: Option<u32>) -> Both {
        let (mut maps, program) = load(hook).expect("root may load a program");
        let books = maps.books();
        let onward = maps.onward.take().expect("tried").expect("this kernel takes it");
        maps.way = way;
        let mut twin = own_shield();
        twin.set_outpost(Box::new(maps));
        let sender = |peer| {
            let own = own_beside(address(PEERS[peer]));
            shield_of(vec![PeerSettings { address: own, keys: keys_of(peer, End::B) }])
        };
        let mut bytes = [3; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        let mut both = Both {
            hook,
            program,
            twin,
            books,
            onward: way.map(|_| onward),
            senders: (0..3).map(sender).collect(),
            clock: Clock::new(),
            random: Generator::from_seed(bytes),
            associations: Vec::new(),
            last: Vec::new(),
        };
        (0..6).for_each(|number| both.associate(number % 3));
        both
    }

    fn number(&mut self, below: u32) -> u32 {
        u32::from_be_bytes(self.random.bytes()) % below
    }

    fn associate(&mut self, peer: usize) {
        let spi = SPIS.start() + self.number(1 << 30);
        let start = self.number(1 << 30);
        self.associations.push((peer, spi, start));
    }

    fn honest(&mut self) -> Vec<u8> {
        self.plain_and_sealed().1
    }

    /// A packet of an association, as the peer's stack made it and sealed by its shield: the next
    /// one, an old one, or one from far ahead.
    fn plain_and_sealed(&mut self) -> (Vec<u8>, Vec<u8>) {
        let which = self.number(self.associations.len() as u32) as usize;
        let (how, back, form) = (self.number(60), self.number(1500), self.number(3));
        let in_udp = form == 0;
        let (peer, spi, next) = self.associations[which];
        let sequence = match how {
            0 => next.wrapping_add(1 << 20),
            1..15 => next.saturating_sub(back),
            _ => next,
        };
        self.associations[which].2 += u32::from(how >= 15);
        let mut esp = spi.to_be_bytes().to_vec();
        esp.extend(sequence.to_be_bytes());
        esp.resize(40, 0xa5);
        let (from, to) = (address(PEERS[peer]), own_beside(address(PEERS[peer])));
        let mut plain = match form {
            0 => datagram(from, to, [4500, 4500], &esp),
            1 => packet(from, to, 50, &esp),
            _ => packet(from, to, 51, &[&[6, 4, 0, 0][..], &esp].concat()),
        };
        if in_udp && sequence % 2 == 0 {
            let at = plain.len() - esp.len() - 2;
            plain[at..at + 2].copy_from_slice(&(sequence as u16 & 0x7fff | 1).to_be_bytes());
        }
        let (mut frames, mut sink) = (vec![(plain.clone(), Meta::plain())], Collected::new());
        self.senders[peer].process(self.clock.now(), Side::STACK, &mut Frames::new(&mut frames), &mut sink);
        (plain, sink.take().remove(0).1)
    }

    /// A packet of ESP, sealed by the shield of the peer that sends it.
    fn sealed(&mut self, peer: usize, spi: u32, sequence: u32) -> Vec<u8> {
        let mut esp = [spi.to_be_bytes(), sequence.to_be_bytes()].concat();
        esp.resize(40, 0);
        let from = address(PEERS[peer]);
        let (mut frames, mut sink) =
            (vec![(packet(from, own_beside(from), 50, &esp), Meta::plain())], Collected::new());
        self.senders[peer].process(self.clock.now(), Side::STACK, &mut Frames::new(&mut frames), &mut sink);
        sink.take().remove(0).1
    }

    /// Whether both let it through. As in the daemon, the twin sees what the kernel does.
    fn show(&mut self, frame: &[u8]) -> bool {
        self.kernel(frame, 0).0 && self.twin(frame).is_none()
    }

    /// Of a peer or a stranger: something that is no ESP, or ESP that nobody sealed.
    fn other(&mut self) -> Vec<u8> {
        let senders = [PEERS[0], PEERS[1], PEERS[2], STRANGERS[0], STRANGERS[1]];
        let from = address(senders[self.number(5) as usize]);
        let to = own_beside(from);
        let random = self.random.bytes::<40>();
        match self.number(13) {
            10 => packet(from, to, 51, &random),
            11 => later_fragment(packet(from, to, 51, &random)),
            12 => packet(from, to, 60, &[&[51, 0, 0, 0, 0, 0, 0, 0][..], &random].concat()),
            0 => datagram(from, to, [500, 500], &random),
            1 => datagram(from, to, [4500, 4500], &[&[0; 4][..], &random].concat()),
            2 => datagram(from, to, [4500, 4500], &[0xff]),
            3 => datagram(from, to, [53, 4500], &random[..self.number(12) as usize]),
            4 => later_fragment(packet(from, to, 17, &random)),
            5 => packet(from, to, 60, &[&[50, 0, 0, 0, 0, 0, 0, 0][..], &random].concat()),
            6 => packet(from, to, 44, &[&[17, 0, 0, random[0] & 9, 0, 0, 0, 0][..], &random].concat()),
            7 => packet(from, to, 6, &random),
            _ => packet(from, to, 50, &random),
        }
    }

    /// One of all that, now and then the one before again, cut, lengthened or with a few bits
    /// changed.
    fn frame(&mut self) -> (Vec<u8>, u32) {
        let mut frame = match self.number(8) {
            0 if !self.last.is_empty() => self.last.clone(),
            1..5 => self.honest(),
            _ => self.other(),
        };
        self.last.clone_from(&frame);
        for _ in 0..self.number(5).saturating_sub(2) {
            let (at, bit) = (12 + self.number(frame.len().min(70) as u32 - 12) as usize, self.number(8));
            frame[at] ^= 1 << bit;
        }
        if self.number(12) == 0 {
            let len = 14 + self.number(frame.len() as u32 + 10) as usize;
            frame.resize(len, 7);
        }
        let gso_size = if self.number(30) == 0 { 1 + self.number(100) } else { 0 };
        // A driver hands over nothing that was joined.
        (frame, if self.hook == Hook::Socket { gso_size } else { 0 })
    }

    /// What the kernel says: whether the frame is let through, and why not if it says that.
    fn kernel(&self, frame: &[u8], gso_size: u32) -> (bool, Option<DropReason>) {
        // Of strangers and of each peer; all the others stay empty.
        let seen = || [0, 1, 2, 3].map(|number| self.books.of(number));
        let before = seen();
        let passes = self.program.try_on(frame, gso_size).expect("a verdict");
        let after = seen();
        let reasons = |of_one: usize| kernel::COUNTED.into_iter().zip(before[of_one].iter().zip(after[of_one]));
        let counted: Vec<_> = (0..4).flat_map(reasons).filter(|(_, (before, after))| *before != after).collect();
        assert!(counted.len() <= usize::from(!passes), "a drop has one counter");
        (passes, counted.first().map(|(reason, _)| *reason))
    }

    /// What becomes of a frame to this host where the kernel hands on by itself.
    fn fate(&self, frame: &[u8]) -> Fate {
        let onward = self.onward.as_ref().expect("a way");
        let (passes, dropped) = self.kernel(frame, 0);
        let hears = match self.hook {
            Hook::Socket => passes,
            Hook::Xdp | Hook::XdpGeneric => passes && onward.at_socket.try_on(frame, 0).expect("a verdict"),
        };
        if let Some(reason) = dropped {
            return Fate::Dropped(reason);
        }
        let verdict = onward.program.try_changing(frame);
        match verdict.unwrap_or_else(|error| panic!("{error}: {frame:02x?}")) {
            (NEXT, _) if hears => Fate::Heard,
            (NEXT, _) => Fate::NotKept,
            (REDIRECT, bytes) if !hears => Fate::Onward(bytes),
            (verdict, _) => panic!("{verdict}, and the daemon hears it: {hears}: {frame:02x?}"),
        }
    }

    /// What the twin drops the same frame for.
    fn twin(&mut self, frame: &[u8]) -> Option<DropReason> {
        let dropped = |twin: &Shield| {
            let mut ledger = Ledger::new();
            twin.add_to_ledger(&mut ledger);
            ledger.dropped
        };
        let before = dropped(&self.twin);
        let (mut frames, mut sink) = (vec![(frame.to_vec(), Meta::plain())], Collected::new());
        self.twin.process(self.clock.now(), Side::WIRE, &mut Frames::new(&mut frames), &mut sink);
        let after = dropped(&self.twin);
        DropReason::ALL.iter().copied().find(|reason| before[*reason as usize] != after[*reason as usize])
    }
}

/// What becomes of a frame in the kernel.
enum Fate {
    Dropped(DropReason),
    /// The daemon decides.
    Heard,
    /// It is none of IPsec.
    NotKept,
    /// It went to the stack like this.
    Onward(Vec<u8>),
}

/// What goes on to the stack of a frame from the wire.
fn past(shield: &mut Shield, now: bump::Now, frame: &[u8]) -> Option<Vec<u8>> {
    let (mut frames, mut sink) = (vec![(frame.to_vec(), Meta::plain())], Collected::new());
    shield.process(now, Side::WIRE, &mut Frames::new(&mut frames), &mut sink);
    sink.take().pop().map(|(_, bytes, _)| bytes)
}

fn packet(from: IpAddr, to: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    [ip_header(from, to, protocol, payload.len()), payload.to_vec()].concat()
}

fn datagram(from: IpAddr, to: IpAddr, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut udp: Vec<u8> = ports.into_iter().flat_map(u16::to_be_bytes).collect();
    udp.extend((8 + payload.len() as u16).to_be_bytes());
    udp.extend([0, 0]);
    packet(from, to, 17, &[&udp, payload].concat())
}

/// Of IPv4; one of IPv6 is made another way.
fn later_fragment(mut packet: Vec<u8>) -> Vec<u8> {
    if packet[12] == 8 {
        packet[21] = 9;
    }
    packet
}

/// What is bounded by a budget, of which kernel and twin have one each.
fn is_of_budget(reason: DropReason) -> bool {
    !matches!(
        reason,
        DropReason::ShieldStranger | DropReason::ShieldUnreadable | DropReason::ShieldRange | DropReason::ShieldReplay
    )
}

fn agree(hook: Hook) {
    let mut both = Both::open(hook, setting("RINGWALL_TWIN_SEED", 1));
    let mut fates: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut past_kernel, mut past_twin) = (0, 0);
    for turn in 0..setting("RINGWALL_TWIN_FRAMES", FRAMES_DEFAULT) {
        if turn % 1_000 == 999 {
            both.associations.remove(0);
            both.associate((turn / 1_000 % 3) as usize);
        }
        let (frame, gso_size) = both.frame();
        let (passes, kernel) = both.kernel(&frame, gso_size);
        let shown = || format!("{frame:02x?} in segments of {gso_size}");
        let kept = Kept::Ipsec.takes(&frame);
        // In front of the card others hear what is not kept.
        let is_left_out = !kept && hook == Hook::Socket;
        assert_eq!(!passes && kernel.is_none(), is_left_out, "what is kept: {}", shown());
        if !kept || gso_size != 0 {
            assert_eq!(kernel, None, "{}", shown());
            continue;
        }
        let twin = both.twin(&frame);
        *fates.entry(kernel.map_or("passed", DropReason::word)).or_default() += 1;
        match (kernel, twin) {
            (Some(kernel), Some(twin)) => assert_eq!(kernel, twin, "{}", shown()),
            (Some(kernel), None) => assert!(is_of_budget(kernel), "{kernel:?}: {}", shown()),
            // A number far ahead is the daemon's affair, and budgets are wider in the kernel.
            (None, Some(twin)) => assert!(is_of_budget(twin), "{twin:?}: {}", shown()),
            (None, None) => {}
        }
        past_kernel += u64::from(kernel.is_none());
        past_twin += u64::from(twin.is_none());
    }
    // Every layer had something to do, or the test says nothing about it.
    for reason in kernel::COUNTED {
        assert!(fates.contains_key(reason.word()), "nothing was dropped for {}: {fates:?}", reason.word());
    }
    assert!(past_kernel >= past_twin && past_twin > 1000, "{past_kernel} and {past_twin}: {fates:?}");
    eprintln!("{}: {fates:?}, {past_twin} past the twin", hook.word());
}

#[test]
fn kernel_and_twin_agree_about_ipsec() {
    if is_skipped("kernel_and_twin_agree_about_ipsec") {
        return;
    }
    agree(Hook::Socket);
}

#[test]
fn kernel_and_twin_agree_about_ipsec_in_front_of_the_card() {
    if is_skipped("kernel_and_twin_agree_about_ipsec_in_front_of_the_card") {
        return;
    }
    agree(Hook::Xdp);
}

/// A shield without any help sees every frame; the kernel and its twin share them, and the same
/// comes to the stack.
#[test]
fn what_the_kernel_hands_on_a_shield_alone_would_have() {
    if is_skipped("what_the_kernel_hands_on_a_shield_alone_would_have") {
        return;
    }
    [Hook::Socket, Hook::Xdp].into_iter().for_each(hand_on);
}

fn hand_on(hook: Hook) {
    let mut both = Both::open_with_way(hook, setting("RINGWALL_TWIN_SEED", 1), Some(OUTER));
    let mut alone = own_shield();
    let (mut onward, mut heard, mut restored) = (0, 0, 0);
    for turn in 0..setting("RINGWALL_TWIN_FRAMES", FRAMES_DEFAULT) {
        if turn % 1_000 == 999 {
            both.associations.remove(0);
            both.associate((turn / 1_000 % 3) as usize);
        }
        let (mut plain, mut frame) = match turn % 4 {
            0 => (None, both.frame().0),
            _ => {
                let (plain, sealed) = both.plain_and_sealed();
                (Some(plain), sealed)
            }
        };
        // The kernel tries no program of this kind on a packet whose IP header is cut; the others
        // have had those above.
        if frame.len() < HEADERS_LEN {
            continue;
        }
        // The test run's own device has this address.
        [plain.as_mut(), Some(&mut frame)].into_iter().flatten().for_each(|frame| frame[..6].fill(0));
        let now = both.clock.now();
        let shown = || format!("{turn}: {frame:02x?}");
        match both.fate(&frame) {
            Fate::Onward(bytes) => {
                assert_eq!(past(&mut alone, now, &frame).as_ref(), Some(&bytes), "{}", shown());
                restored += u64::from(plain.as_ref() == Some(&bytes));
                assert!(plain.is_none_or(|plain| plain == bytes), "as the peer's stack made it: {}", shown());
                onward += 1;
            }
            Fate::Heard => {
                assert_eq!(past(&mut both.twin, now, &frame), past(&mut alone, now, &frame), "{}", shown());
                heard += 1;
            }
            Fate::Dropped(DropReason::ShieldReplay) => assert_eq!(past(&mut alone, now, &frame), None, "{}", shown()),
            // Who is bounded by a budget is bounded by the kernel's first.
            Fate::Dropped(_) | Fate::NotKept => {}
        }
    }
    assert!(onward > 1_000 && heard > 100 && restored > 1_000, "{onward} onward, {restored} restored, {heard} heard");
    let report = both.twin.report();
    assert_eq!(report.iter().map(|peer| peer.counters.passed_in_kernel).sum::<u64>(), onward);
    assert!(report[2].counters.passed_in_kernel == 0, "nothing proves who sends without a shield");
    let mut ledger = Ledger::new();
    both.twin.add_to_ledger(&mut ledger);
    assert_eq!(ledger.balance(), 0);
}

/// Datagrams that the kernel joined look like a long one, and the second may be honest.
#[test]
fn where_joining_is_hidden_no_datagram_is_judged() {
    if is_skipped("where_joining_is_hidden_no_datagram_is_judged") {
        return;
    }
    let (stranger, own, stranger_s) = (address(STRANGERS[0]), address(OWN), Some(DropReason::ShieldStranger));
    for (hook, of_datagram) in [(Hook::Xdp, stranger_s), (Hook::XdpGeneric, None)] {
        let both = Both::open(hook, 3);
        let esp = [0x5a; 40];
        assert_eq!(both.kernel(&packet(stranger, own, 50, &esp), 0).1, stranger_s);
        assert_eq!(both.kernel(&datagram(stranger, own, [4500, 4500], &esp), 0).1, of_datagram, "{}", hook.word());
    }
}

/// A new association under a flood: the kernel lets its second packet through although nothing is
/// left of the budget.
#[test]
fn a_flood_does_not_keep_an_association_from_being_learned() {
    if is_skipped("a_flood_does_not_keep_an_association_from_being_learned") {
        return;
    }
    let mut both = Both::open(Hook::Socket, 5);
    let known = |both: &Both| both.twin.report()[0].known;
    both.associations.retain(|(peer, ..)| *peer == 0);
    both.associations.truncate(1);
    let forge = |both: &mut Both| {
        let mut esp = both.random.bytes::<40>();
        esp[0] |= 0x40;
        packet(address(PEERS[0]), address(OWN), 50, &esp)
    };
    for _ in 0..10_000 {
        let forged = forge(&mut both);
        both.show(&forged);
    }
    let before = known(&both);
    let mut lost = 0;
    for _ in 0..20 {
        both.associations[0].2 += 1;
        let (peer, spi, sequence) = both.associations[0];
        let sealed = both.sealed(peer, spi, sequence);
        lost += usize::from(!both.show(&sealed));
        for _ in 0..25 {
            let forged = forge(&mut both);
            both.show(&forged);
        }
    }
    assert_eq!(known(&both), before + 1);
    assert!(lost <= 2, "{lost} of 20 were lost");
}

/// All associations of a peer with a shield have the same bit in its sieve. One more is learned
/// than are remembered, with a bit elsewhere: whatever becomes of the word with the others' bit
/// comes from forgetting the first.
#[test]
fn forgetting_an_association_leaves_those_beside_it_known() {
    const PEER: usize = 1;
    const SAME_BIT: u32 = 512;
    const OTHER_WORD: u32 = 64;
    if is_skipped("forgetting_an_association_leaves_those_beside_it_known") {
        return;
    }
    let mut both = Both::open(Hook::Socket, 9);
    let known_max = limits::KNOWN_MAX as u32;
    let spi = |number: u32| SPIS.start() + number * SAME_BIT + if number == known_max { OTHER_WORD } else { 0 };
    for number in 0..=known_max {
        for sequence in 1..=4 {
            let sealed = both.sealed(PEER, spi(number), sequence);
            both.show(&sealed);
        }
    }
    assert_eq!(both.twin.report()[PEER].known, limits::KNOWN_MAX);
    // So far ahead that no packet is near another, which would prove an association that is not
    // known.
    let far = |turn: u32| turn * 100_000;
    let forgotten = (1..=5).filter(|turn| {
        let sealed = both.sealed(PEER, spi(0), far(*turn));
        !both.kernel(&sealed, 0).0
    });
    assert!(forgotten.count() >= 1, "the first is known still");
    for number in 1..=known_max {
        let sealed = both.sealed(PEER, spi(number), far(1));
        assert!(both.kernel(&sealed, 0).0, "{number} is not known any more");
    }
}

/// A message of IKE with these SPIs.
fn ike(initiator: u64, responder: u64, [first, exchange, flags]: [u8; 3], body: &[u8]) -> Vec<u8> {
    let fields = [first, 0x20, exchange, flags, 0, 0, 0, 1];
    let len = 28 + body.len() as u32;
    let head = [&initiator.to_be_bytes()[..], &responder.to_be_bytes(), &fields, &len.to_be_bytes()].concat();
    [&head[..], body].concat()
}

/// What this host's stack has sent before has a budget of its own, in the kernel as in the twin.
#[test]
fn a_flood_of_ike_leaves_what_has_begun_its_budgets() {
    if !is_skipped("a_flood_of_ike_leaves_what_has_begun_its_budgets") {
        [Hook::Socket, Hook::Xdp].into_iter().for_each(flood_with_ike);
    }
}

fn flood_with_ike(hook: Hook) {
    let cookie = [&[0, 0, 0, 32, 0, 0, 0x40, 6][..], b"a cookie of twenty-four."].concat();
    let (asked, echoed) = (ike(3, 0, [41, 34, 0x20], &cookie), ike(3, 0, [41, 34, 8], &cookie));
    let pairs = [
        (ike(1, 2, [46, 35, 0x20], &[9; 60]), ike(1, 2, [46, 36, 8], &[9; 60])),
        (ike(4, 5, [33, 34, 0x20], &[0; 40]), ike(4, 5, [46, 35, 8], &[9; 60])),
        (ike(6, 0, [33, 34, 8], &[0; 40]), ike(6, 7, [33, 34, 0x20], &[0; 40])),
        (asked, echoed),
    ];
    for peer in PEERS.map(address) {
        for (sent, heard) in &pairs {
            for port in [500, 4500] {
                let mut both = Both::open(hook, 7);
                let marker: &[u8] = if port == 500 { &[] } else { &[0; 4] };
                let of = |from, to, message: &[u8]| datagram(from, to, [port, port], &[marker, message].concat());
                let (own, mut number) = (own_beside(peer), 100);
                let mut fate = |both: &mut Both, message: &[u8]| {
                    for _ in 0..10 {
                        number += 1;
                        let forged = of(peer, own, &ike(number, 0, [33, 34, 8], &[0; 40]));
                        let (_, kernel) = both.kernel(&forged, 0);
                        let twin = both.twin(&forged);
                        let spent = number % 10 == 0;
                        assert!(!spent || (kernel, twin) == (OVER, OVER), "{kernel:?}, {twin:?}");
                    }
                    let heard = of(peer, own, message);
                    (both.kernel(&heard, 0).1, both.twin(&heard))
                };
                assert_eq!(fate(&mut both, heard), (OVER, OVER), "nothing is known of it");
                let (mut frames, mut sink) = (vec![(of(own, peer, sent), Meta::plain())], Collected::new());
                both.twin.process(both.clock.now(), Side::STACK, &mut Frames::new(&mut frames), &mut sink);
                assert_eq!(fate(&mut both, heard), (None, None), "{heard:02x?}");
                let mut other = heard.clone();
                other[7] ^= 0x40;
                assert_eq!(fate(&mut both, &other), (OVER, OVER), "an SPI that nobody sent");
            }
        }
    }
}
