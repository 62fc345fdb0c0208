//! The program in the kernel drops nothing that the daemon's own checks would let through, and
//! everything that those are there for: honest, forged, cut and changed messages, judged by it and
//! by what reads and verifies them here.
//!
//! `RINGWALL_TWIN_FRAMES` says how many, for a long run; `RINGWALL_TWIN_SEED` which.

use std::collections::BTreeMap;

use bump::Generator;
use identity::distributor::RequestMaster;
use identity::limits::MAX_HOST_NUMBER;
use identity::token::{DRAWN_LEN, NumberKey};
use shield::limits::{KERNEL_REPEAT_INTERVAL, KERNEL_REQUESTS_PER_HOST_PER_SECOND};
use shield::sarp::Keeps;
use system::takeover::Kept;
use wire::arp::{self, Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header};
use wire::sarp::data::{CHECK_LEN, CREDENTIAL_LEN, Question};
use wire::sarp::{Kind, Message, REQUEST_HEAD_LEN, seal};
use wire::{EtherType, MacAddress};

use super::*;
use crate::modes::cll::kernel::tests::{is_skipped, setting};

const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
const OWN_IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FRAMES_DEFAULT: u64 = 30_000;
/// Questions of one source and of all that are answered in a second; the kernel passes twice as
/// many.
const SHARE: u32 = 10;
const ANSWERS: u32 = 100;
const TOKEN_SHARE: u32 = 200;
/// The longest tick of a kernel's clock, by which budgets are filled.
const TICK_S: f64 = 0.01;
const ASKED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
const NOT_ASKED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);
const FOREVER: Instant = Instant::from_nanos(u64::MAX);
const REQUESTS: [Kind; 4] = [Kind::TimeRequest, Kind::KeyRequest, Kind::KeyChange, Kind::Lease];
const ENROLMENT: [Kind; 2] = [Kind::Apply, Kind::Fetch];
/// Hosts that ask. Of the others the program knows no keys.
const HOSTS: u64 = 256;
const KNOWN_HOSTS: u64 = 192;
/// Where a key change has its check, in its data.
const CHANGE_CHECK_AT: usize = REQUEST_HEAD_LEN - wire::sarp::DATA_AT;

/// The program, and what the daemon checks by.
struct Both {
    program: Program,
    maps: SarpMaps,
    is_distributor: bool,
    /// Two in force; the program knows both keys of hosts with an even number, and the first of
    /// others.
    masters: [RequestMaster; 2],
    numbers: [NumberKey; 2],
    random: Generator,
}

impl Both {
    fn open(hook: Hook, is_distributor: bool, keeps: Keeps) -> Both {
        let masters = [9, 10].map(|seed| RequestMaster::from_bytes([seed; 32]));
        let numbers = [0, 1].map(|at: usize| NumberKey::of(&masters[at]));
        let own = Own {
            numbers: numbers.iter().filter(|_| is_distributor).map(|numbers| numbers.bytes().clone()).collect(),
            keeps,
            answers_per_source_per_second: SHARE,
            strangers_answered_per_second: ANSWERS,
            checks_per_token_per_second: TOKEN_SHARE,
        };
        let (mut maps, program) = load(hook, &own).expect("root may load a program");
        sarp::Outpost::expect(&mut maps, ASKED, FOREVER);
        sarp::Outpost::own(&mut maps, OWN_IP, FOREVER);
        for host in (0..KNOWN_HOSTS).chain([MAX_HOST_NUMBER, MAX_HOST_NUMBER + 1]) {
            let known = if host % 2 == 0 { 2 } else { 1 };
            let keys: Vec<Key> =
                masters[..known].iter().map(|master| master.key_of(host).check_key().bytes().clone()).collect();
            sarp::Outpost::know(&mut maps, host, &keys);
        }
        let mut seed = [4; 32];
        seed[..8].copy_from_slice(&setting("RINGWALL_TWIN_SEED", 1).to_be_bytes());
        let both = Both { program, maps, is_distributor, masters, numbers, random: Generator::from_seed(seed) };
        both.let_idle_pass(false);
        both
    }

    /// The two words behind the counters are the times from which on the next answer passes that
    /// nobody asked for, and the next question about others.
    fn let_idle_pass(&self, pass: bool) {
        let words = self.maps.counters.0.words().iter().skip(sarp::COUNTED.len()).take(2);
        words.for_each(|word| word.store(if pass { 0 } else { u64::MAX }, Ordering::Relaxed));
    }

    fn number(&mut self, below: usize) -> usize {
        u32::from_be_bytes(self.random.bytes()) as usize % below
    }

    fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[self.number(N)]
    }

    /// Somebody who asks: a host, or a number that is the highest, too high, or far too high.
    fn asker(&mut self) -> u64 {
        match self.number(16) {
            0 => self.one_of([MAX_HOST_NUMBER, MAX_HOST_NUMBER + 1, 1 << 32, u64::MAX]),
            _ => self.number(HOSTS as usize) as u64,
        }
    }

    /// A request with a right check, or with one drawn at random.
    fn request(&mut self, kind: Kind) -> Vec<u8> {
        let host = self.asker();
        let question = Question { host, nonce: self.random.bytes() };
        let mut data = [&question.emit()[..], &[0; CREDENTIAL_LEN]].concat();
        data.resize(data.len() + self.number(90), 3);
        if matches!(kind, Kind::TimeRequest | Kind::KeyRequest) {
            data.truncate(Question::LEN);
        }
        let mut check: [u8; CHECK_LEN] = self.random.bytes();
        if self.number(2) == 0 {
            let head = message(kind, &data).request_head().expect("long enough");
            let master = self.number(2);
            check = self.masters[master].key_of(host).check_key().check(&head);
        }
        if kind == Kind::KeyChange {
            data[CHANGE_CHECK_AT..CHANGE_CHECK_AT + CHECK_LEN].copy_from_slice(&check);
            return seal(message(kind, &data).signed_bytes(), &[1; 64]);
        }
        let credential = [&check[..], &[5; CREDENTIAL_LEN - CHECK_LEN]].concat();
        seal(message(kind, &data).signed_bytes(), &credential)
    }

    /// A message about a token that there is, or of a made-up number.
    fn enrolment(&mut self, kind: Kind) -> Vec<u8> {
        let drawn: [u8; DRAWN_LEN] = self.random.bytes();
        let made_up = u64::from_be_bytes(self.random.bytes());
        let master = self.number(2);
        let number = if self.number(2) == 0 { self.numbers[master].number(drawn) } else { made_up };
        let data = [&number.to_be_bytes()[..], &[6; 60]].concat();
        seal(message(kind, &data).signed_bytes(), &[7; 16])
    }

    /// A message between hosts, plain or with something of a signature.
    fn resolution(&mut self) -> Vec<u8> {
        let operation = self.one_of([Operation::Request, Operation::Reply]);
        let (sender_ip, target_ip) = (self.one_of([ASKED, NOT_ASKED]), self.one_of([OWN_IP, NOT_ASKED]));
        let arp = Arp { operation, sender_ip, target_ip, ..body() };
        let signed = Message { arp, ..message(Kind::Resolution, &[]) }.signed_bytes();
        if self.number(2) == 0 { arp.emit().to_vec() } else { seal(signed, &[2; 64]) }
    }

    /// Another frame: as it is, cut, lengthened, or with a few bits changed.
    fn frame(&mut self) -> Vec<u8> {
        let message = match self.number(8) {
            0..3 => {
                let kind = self.one_of(REQUESTS);
                self.request(kind)
            }
            3..5 => {
                let kind = self.one_of(ENROLMENT);
                self.enrolment(kind)
            }
            5 => seal(message(Kind::KeyReply, &[3; 70]).signed_bytes(), &[1; 64]),
            _ => self.resolution(),
        };
        let mut frame = [&ethernet(EtherType::ARP)[..], &message].concat();
        for _ in 0..self.number(4).saturating_sub(1) {
            let (at, bit) = (HEADER_LEN + self.number(frame.len() - HEADER_LEN), self.number(8));
            frame[at] ^= 1 << bit;
        }
        if self.number(8) == 0 {
            let len = HEADER_LEN + self.number(frame.len() + 30);
            frame.resize(len, 0);
        }
        frame
    }

    /// What the program drops `frame` for.
    fn kernel(&self, frame: &[u8]) -> Option<DropReason> {
        let before = sarp::Outpost::dropped(&self.maps);
        let passes = self.program.try_on(frame, 0).expect("a verdict");
        let after = sarp::Outpost::dropped(&self.maps);
        let counted = sarp::COUNTED.iter().zip(before.iter().zip(after)).filter(|(_, (one, other))| **one != *other);
        let counted: Vec<_> = counted.map(|(reason, _)| *reason).collect();
        assert_eq!(counted.len(), usize::from(!passes), "each drop has one counter");
        counted.first().copied()
    }

    /// Whether the daemon's check is right. None where it does not come so far, because something
    /// else is wrong before that, and where the program cannot know it.
    fn is_right(&self, message: &Message<'_>) -> Option<bool> {
        let check = match message.kind {
            Kind::KeyChange => message.data.get(CHANGE_CHECK_AT..CHANGE_CHECK_AT + CHECK_LEN)?,
            kind if REQUESTS.contains(&kind) => message.signature.get(..CHECK_LEN)?,
            kind if ENROLMENT.contains(&kind) => {
                let number = message.data.first_chunk().map(|number| u64::from_be_bytes(*number))?;
                return Some(self.numbers.iter().any(|numbers| numbers.knows(number)));
            }
            _ => return None,
        };
        let host = u64::from_be_bytes(*message.data.first_chunk()?);
        let (head, check) = (message.request_head()?, check.try_into().ok()?);
        let is_right_by = |master: &RequestMaster| master.key_of(host).check_key().verify(&head, check);
        let known = if host % 2 == 0 { 2 } else { 1 };
        let is_right = self.masters[..known].iter().any(is_right_by);
        match host {
            0..KNOWN_HOSTS | MAX_HOST_NUMBER => Some(is_right),
            KNOWN_HOSTS..MAX_HOST_NUMBER => Some(true),
            _ => Some(false),
        }
    }

    /// Shows one frame to both.
    fn step(&mut self) -> Option<DropReason> {
        let frame = self.frame();
        let (kernel, bytes) = (self.kernel(&frame), &frame[HEADER_LEN..]);
        let Ok(message) = Message::parse(bytes) else {
            // Nothing but a plain message can have another fate than to be dropped.
            if let Some(plain) = Arp::parse(bytes).ok().filter(|_| !Message::is_one(bytes)) {
                assert_eq!(kernel, of_resolution(plain, kernel), "{frame:02x?}");
            }
            return kernel;
        };
        let expected = match self.is_right(&message) {
            Some(_) if !self.is_distributor => Some(DropReason::ArpTarget),
            Some(false) if ENROLMENT.contains(&message.kind) => Some(DropReason::SarpEnrolNumber),
            Some(false) => Some(DropReason::SarpRequestCheck),
            // Too short for what is checked: the daemon drops it as malformed.
            None if REQUESTS.contains(&message.kind) || ENROLMENT.contains(&message.kind) => return kernel,
            None if message.kind == Kind::Resolution => of_resolution(message.arp, kernel),
            Some(true) | None => None,
        };
        assert_eq!(kernel, expected, "{frame:02x?}");
        kernel
    }
}

/// What a message between hosts is dropped for. A question for us may be one too many.
fn of_resolution(arp: Arp, kernel: Option<DropReason>) -> Option<DropReason> {
    let is_at = |one: Ipv4Addr, other: Ipv4Addr| sarp::place_of(one) == sarp::place_of(other);
    match arp.operation {
        Operation::Reply if is_at(arp.sender_ip, ASKED) => None,
        Operation::Reply => Some(DropReason::SarpUnasked),
        Operation::Request if is_at(arp.target_ip, OWN_IP) => kernel.filter(|reason| *reason == DropReason::SarpBudget),
        Operation::Request => Some(DropReason::ArpTarget),
    }
}

fn body() -> Arp {
    Arp { operation: Operation::Request, sender_mac: PEER, sender_ip: NOT_ASKED, target_mac: OWN, target_ip: OWN_IP }
}

fn message(kind: Kind, data: &[u8]) -> Message<'_> {
    Message { arp: body(), kind, seconds: 77, data, signature: &[] }
}

fn ethernet(ethertype: EtherType) -> [u8; HEADER_LEN] {
    Header { destination: OWN, source: PEER, ethertype }.emit()
}

fn agree(hook: Hook, is_distributor: bool, reasons: &[DropReason]) {
    let mut both = Both::open(hook, is_distributor, Keeps::Arp);
    let mut fates: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..setting("RINGWALL_TWIN_FRAMES", FRAMES_DEFAULT) {
        *fates.entry(both.step().map_or("passed", DropReason::word)).or_default() += 1;
    }
    // Every check had something to do, or the test says nothing about it.
    for reason in reasons {
        assert!(fates.get(reason.word()).is_some_and(|count| *count > 100), "{}: {fates:?}", reason.word());
    }
    assert!(fates["passed"] > 1000, "{fates:?}");
}

#[test]
fn kernel_and_daemon_agree() {
    if is_skipped("kernel_and_daemon_agree") {
        return;
    }
    let [malformed, not_for_us, check, number, unasked, budget, _] = sarp::COUNTED;
    for hook in [Hook::Socket, Hook::Xdp] {
        agree(hook, true, &[malformed, not_for_us, check, number, unasked, budget]);
        agree(hook, false, &[malformed, not_for_us, unasked, budget]);
    }
}

#[test]
fn an_answer_is_let_through_while_its_question_is_open_and_another_now_and_then() {
    if is_skipped("an_answer_is_let_through_while_its_question_is_open_and_another_now_and_then") {
        return;
    }
    let mut both = Both::open(Hook::Xdp, false, Keeps::Arp);
    let of = |sender_ip| {
        let arp = Arp { operation: Operation::Reply, sender_ip, ..body() };
        [&ethernet(EtherType::ARP)[..], &arp.emit()].concat()
    };
    assert_eq!(both.kernel(&of(NOT_ASKED)), Some(DropReason::SarpUnasked));
    let now = system::clock::Clock::new().now().since_boot;
    sarp::Outpost::expect(&mut both.maps, NOT_ASKED, now + std::time::Duration::from_secs(60));
    assert_eq!(both.kernel(&of(NOT_ASKED)), None);
    // A question that is over, of another address.
    let over = Ipv4Addr::new(10, 0, 0, 10);
    sarp::Outpost::expect(&mut both.maps, over, now);
    assert_eq!(both.kernel(&of(over)), Some(DropReason::SarpUnasked));
    both.let_idle_pass(true);
    assert_eq!(both.kernel(&of(over)), None);
    let began = std::time::Instant::now();
    let passed = (0..1000).filter(|_| both.kernel(&of(over)).is_none()).count();
    // However slow this machine is: one in a millisecond.
    assert!(passed as u128 <= 1 + began.elapsed().as_millis() && passed < 1000, "{passed} in {:?}", began.elapsed());
}

/// Who asks too much has his share and takes nobody else's; all together are answered so often and
/// no more.
#[test]
fn each_source_has_its_share_of_the_answers() {
    if is_skipped("each_source_has_its_share_of_the_answers") {
        return;
    }
    let question = |number: u32| {
        let [_, high, middle, low] = number.to_be_bytes();
        let arp = Arp { sender_mac: MacAddress([2, 0, 9, high, middle, low]), ..body() };
        [&ethernet(EtherType::ARP)[..], &arp.emit()].concat()
    };
    for hook in [Hook::Socket, Hook::Xdp] {
        let both = Both::open(hook, false, Keeps::Arp);
        let passed = |number, times: u32| {
            let began = std::time::Instant::now();
            let passed = (0..times).filter(|_| both.kernel(&question(number)).is_none()).count() as u32;
            (passed, began.elapsed().as_secs_f64() + TICK_S)
        };
        // Twice what is answered in a second, and as much again for the time that it took.
        let (of_one, time) = passed(1, 1000);
        assert!(of_one >= 2 * SHARE - 1 && f64::from(of_one) <= f64::from(2 * SHARE) * (1.0 + time), "{of_one}");
        assert!(passed(2, 1).0 == 1, "somebody else is answered");
        let began = std::time::Instant::now();
        let of_all = (3..2000).filter(|number| both.kernel(&question(*number)).is_none()).count();
        let most = f64::from(2 * ANSWERS) * (1.0 + began.elapsed().as_secs_f64() + TICK_S);
        assert!(of_all as f64 <= most && of_all as u32 >= 2 * ANSWERS - of_one - 2, "{of_all} of {most}");
    }
}

/// Who has proved himself has his share while strangers have used up theirs, and no more than that;
/// and they have theirs beside it.
#[test]
fn strangers_take_nothing_from_who_has_proved_himself() {
    if is_skipped("strangers_take_nothing_from_who_has_proved_himself") {
        return;
    }
    let question = |sender_mac, sender_ip| {
        let arp = Arp { sender_mac, sender_ip, ..body() };
        [&ethernet(EtherType::ARP)[..], &arp.emit()].concat()
    };
    let stranger = |number: u32| {
        let [_, high, middle, low] = number.to_be_bytes();
        question(MacAddress([2, 0, 9, high, middle, low]), NOT_ASKED)
    };
    for hook in [Hook::Socket, Hook::Xdp] {
        let mut both = Both::open(hook, false, Keeps::Arp);
        sarp::Outpost::acquaint(&mut both.maps, PEER, ASKED);
        let began = std::time::Instant::now();
        let of_strangers = (0..2000).filter(|number| both.kernel(&stranger(*number)).is_none()).count() as u32;
        assert!((2 * ANSWERS - 1..2000).contains(&of_strangers), "{of_strangers}");
        let times = 1000;
        let passed = (0..times).filter(|_| both.kernel(&question(PEER, ASKED)).is_none()).count();
        let most = f64::from(2 * SHARE) * (1.0 + began.elapsed().as_secs_f64() + TICK_S);
        assert!(passed as u32 >= 2 * SHARE - 1 && passed as f64 <= most, "{passed} of {most}");
        // One half of the pair proves nothing: these are strangers, who have what all strangers
        // have.
        let halves = [(PEER, NOT_ASKED), (MacAddress([2, 0, 9, 9, 9, 9]), ASKED)];
        let of_half = |(mac, ip)| (0..times).filter(|_| both.kernel(&question(mac, ip)).is_none()).count() as u32;
        let of_strangers = of_strangers + halves.map(of_half).iter().sum::<u32>();
        let most = f64::from(2 * ANSWERS) * (1.0 + began.elapsed().as_secs_f64() + TICK_S);
        assert!(f64::from(of_strangers) <= most, "{of_strangers} of {most}");
    }
}

/// A host asks as often as it likes within a wide share, and a recording of it takes nothing of
/// that.
#[test]
fn each_host_has_its_share_of_a_distributor() {
    if is_skipped("each_host_has_its_share_of_a_distributor") {
        return;
    }
    let share = KERNEL_REQUESTS_PER_HOST_PER_SECOND;
    for hook in [Hook::Socket, Hook::Xdp] {
        let mut both = Both::open(hook, true, Keeps::Arp);
        let request = |both: &mut Both, host| {
            let unsigned =
                message(Kind::KeyRequest, &Question { host, nonce: both.random.bytes() }.emit()).signed_bytes();
            let credential = both.masters[0].key_of(host).credential(&unsigned);
            [&ethernet(EtherType::ARP)[..], &seal(unsigned, &credential)].concat()
        };
        let passed = |both: &Both, frames: &mut dyn Iterator<Item = Vec<u8>>| {
            let began = std::time::Instant::now();
            let fates: Vec<_> = frames.map(|frame| both.kernel(&frame)).collect();
            assert!(fates.iter().flatten().all(|reason| *reason == DropReason::SarpBudget), "{fates:?}");
            (fates.iter().filter(|fate| fate.is_none()).count(), began.elapsed().as_secs_f64() + TICK_S)
        };
        let recorded = request(&mut both, 1);
        let (of_recording, time) = passed(&both, &mut std::iter::repeat_n(recorded, 20_000));
        let most = 1.0 + time / KERNEL_REPEAT_INTERVAL.as_secs_f64();
        assert!(of_recording > 0 && of_recording as f64 <= most, "{of_recording} of {most}");
        let frames: Vec<_> = (0..3 * share).map(|_| request(&mut both, 1)).collect();
        let (of_host, time) = passed(&both, &mut frames.into_iter());
        let most = f64::from(share) * (1.0 + time);
        let least = share as usize - of_recording - 1;
        assert!(of_host >= least && of_host as f64 <= most, "{of_host} of {most}");
        let other = request(&mut both, 2);
        assert_eq!(both.kernel(&other), None, "somebody else's share is another");
    }
}

/// Who has overheard the number of a token has that token's share.
#[test]
fn each_token_has_its_share_of_a_distributor() {
    if is_skipped("each_token_has_its_share_of_a_distributor") {
        return;
    }
    for hook in [Hook::Socket, Hook::Xdp] {
        let both = Both::open(hook, true, Keeps::Arp);
        let about = |token: u8| {
            let number = both.numbers[0].number([token; DRAWN_LEN]).to_be_bytes();
            let application = seal(message(Kind::Apply, &[&number[..], &[6; 60]].concat()).signed_bytes(), &[7; 16]);
            [&ethernet(EtherType::ARP)[..], &application].concat()
        };
        let began = std::time::Instant::now();
        let fates: Vec<_> = std::iter::repeat_n(about(1), 5000).map(|frame| both.kernel(&frame)).collect();
        let most = f64::from(2 * TOKEN_SHARE) * (1.0 + began.elapsed().as_secs_f64() + TICK_S);
        let passed = fates.iter().filter(|fate| fate.is_none()).count();
        assert!(passed as u32 >= 2 * TOKEN_SHARE - 1 && passed as f64 <= most, "{passed} of {most}");
        assert!(fates.iter().flatten().all(|reason| *reason == DropReason::SarpEnrolBudget));
        assert_eq!(both.kernel(&about(2)), None, "another token has its own");
    }
}

/// Until the daemon has made its key, what names a host passes.
#[test]
fn a_host_whose_key_is_not_made_yet_is_left_to_the_daemon() {
    if is_skipped("a_host_whose_key_is_not_made_yet_is_left_to_the_daemon") {
        return;
    }
    let mut both = Both::open(Hook::Xdp, true, Keeps::Arp);
    let host = KNOWN_HOSTS;
    let data = Question { host, nonce: [3; 16] }.emit();
    let unsigned = message(Kind::TimeRequest, &data).signed_bytes();
    let right = both.masters[0].key_of(host).credential(&unsigned);
    let frame = |credential: &[u8]| [&ethernet(EtherType::ARP)[..], &seal(unsigned.clone(), credential)].concat();
    let (right, wrong) = (frame(&right), frame(&[7; CREDENTIAL_LEN]));
    assert_eq!([&right, &wrong].map(|frame| both.kernel(frame)), [None, None]);
    let key = |master: &RequestMaster| master.key_of(host).check_key().bytes().clone();
    let [former, next] = both.masters.each_ref().map(key);
    sarp::Outpost::know(&mut both.maps, host, &[next.clone(), former.clone()]);
    assert_eq!([&right, &wrong].map(|frame| both.kernel(frame)), [None, Some(DropReason::SarpRequestCheck)]);
    // The former master is over: its numbers count no more, and hosts are left to the daemon until
    // they are named again.
    let application = |numbers: &NumberKey| {
        let number = numbers.number([8; DRAWN_LEN]).to_be_bytes();
        let message = seal(message(Kind::Apply, &[&number[..], &[6; 60]].concat()).signed_bytes(), &[7; 16]);
        [&ethernet(EtherType::ARP)[..], &message].concat()
    };
    let applications = both.numbers.each_ref().map(application);
    assert_eq!([0, 1].map(|at: usize| both.kernel(&applications[at])), [None, None]);
    let numbers = both.numbers[1].bytes().clone();
    sarp::Outpost::begin_anew(&mut both.maps, &[numbers]);
    let fates = [0, 1].map(|at: usize| both.kernel(&applications[at]));
    assert_eq!(fates, [Some(DropReason::SarpEnrolNumber), None]);
    let again = frame(&both.masters[0].key_of(host).credential(&unsigned));
    assert_eq!([&again, &wrong].map(|frame| both.kernel(frame)), [None, None]);
    sarp::Outpost::know(&mut both.maps, host, &[next]);
    assert_eq!(both.kernel(&again), Some(DropReason::SarpRequestCheck));
}

/// At the socket it is the filter as well; in front of the card what is not its business goes on.
#[test]
fn what_is_kept_is_what_the_filter_keeps() {
    if is_skipped("what_is_kept_is_what_the_filter_keeps") {
        return;
    }
    let datagram = |protocol: u8, fragment: u8, port: u16, options: usize| {
        let mut ip = vec![0; 20 + options];
        (ip[0], ip[7], ip[9]) = (0x45 + (options / 4) as u8, fragment, protocol);
        [&ethernet(EtherType::IPV4)[..], &ip, &[0, 9], &port.to_be_bytes(), &[0; 20]].concat()
    };
    let mut frames = vec![
        [&ethernet(EtherType::ARP)[..], &[0; arp::LEN]].concat(),
        [&ethernet(EtherType::IPV6)[..], &[0; 60]].concat(),
        ethernet(EtherType::IPV4).to_vec(),
    ];
    for (port, options) in [(67, 0), (68, 0), (67, 8), (69, 0), (0x0043, 40), (0x4300, 0)] {
        frames.extend([(17, 0), (17, 1), (6, 0)].map(|(protocol, part)| datagram(protocol, part, port, options)));
        let mut cut = datagram(17, 0, port, options);
        cut.truncate(HEADER_LEN + 20 + options + 3);
        frames.push(cut);
    }
    for frame in frames {
        for (keeps, kept) in [(Keeps::Arp, Kept::Arp), (Keeps::ArpAndDhcp, Kept::ArpAndDhcp)] {
            let program = Both::open(Hook::Socket, false, keeps).program;
            assert_eq!(program.try_on(&frame, 0).expect("a verdict"), kept.takes(&frame), "{keeps:?} {frame:02x?}");
        }
        let in_front = Both::open(Hook::Xdp, false, Keeps::Arp).program;
        assert!(in_front.try_on(&frame, 0).expect("a verdict"), "{frame:02x?}");
    }
}
