//! What an enrolled host may seal as compressed, on its way through the receiver's lane.
//!
//! Two hosts shake hands; the second only authenticates and takes frames with a wrong tag, so that what stands behind a seal can be
//! written by the fuzzer. A reader of LZ4 of our own, written from its document, says what must come of it.

use std::sync::Arc;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, DropReason, ErasingGenerator, Generator, Instant, Ledger, Meta, Now, Side, Wall};
use cll::{Cll, Settings};
use wire::EtherType;
use wire::cll::Compression;
use wire::cll::compression::Algorithm;
use wire::cll::data::{HEADER_LEN, OVERHEAD};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use crate::site::{self, START_UNIX_S};

const WIRE_MTU: u16 = 1500;
const EXPERIMENT: EtherType = EtherType(0x88b5);
/// More frames than the sender seals in a handshake.
const SEALED_MEANWHILE: u32 = 100;
/// How many frames a pair of hosts is used for.
const FRAMES_PER_PAIR: u32 = 1000;

thread_local! {
    static PAIR: std::cell::RefCell<Option<Pair>> = const { std::cell::RefCell::new(None) };
}

/// A receiver, and a frame that was sealed for it.
struct Pair {
    receiver: Cll,
    frame: Vec<u8>,
    used: u32,
}

/// Seals the input as a compressed payload: length, then a block.
pub fn cll_compressed(payload: &[u8]) {
    if payload.len() + ETHERNET_LEN + OVERHEAD > ETHERNET_LEN + usize::from(WIRE_MTU) {
        return;
    }
    PAIR.with_borrow_mut(|slot| {
        let mut pair = slot.take().filter(|pair| pair.used < FRAMES_PER_PAIR).unwrap_or_else(Pair::shake_hands);
        pair.receive(payload);
        *slot = Some(pair);
    });
}

fn now() -> Now {
    let wall = Wall { unix_ms: START_UNIX_S * 1000, trust: ClockTrust::Plausible };
    Now { since_boot: Instant::from_millis(1_000_000), wall: Some(wall) }
}

impl Pair {
    fn shake_hands() -> Pair {
        let settings = [0, 1].map(|number| {
            let mut settings = Settings::new(Arc::clone(&site::identities()[number]), WIRE_MTU);
            settings.confidential = false;
            settings.compression = Compression::new(Some(Algorithm::Lz4), &[Algorithm::Lz4]);
            settings.weaken.tag = number == 1;
            settings
        });
        let macs = [settings[0].mac, settings[1].mac];
        let mut sink = Collected::new();
        let mut hosts = settings.map(|settings| cll::start(now(), settings, Generator::from_seed([1; 32]), &mut sink));
        let plain = Header { destination: macs[1], source: macs[0], ethertype: EXPERIMENT }.emit();
        // Nothing waits for the stack: the frame that waits asks by hardware address.
        let mut crossing = vec![(0, Side::STACK, [&plain[..], &[7; 60]].concat())];
        let mut sealed = Vec::new();
        while let Some((host, side, frame)) = crossing.pop() {
            if side == Side::WIRE && host == 1 && frame.get(ETHERNET_LEN) == Some(&0x21) {
                sealed.clone_from(&frame);
            }
            hosts[host].process(now(), side, &mut Frames::new(&mut [(frame, Meta::plain())]), &mut sink);
            work(&mut hosts[host], &mut sink);
            let made = sink.take().into_iter().filter(|(side, ..)| *side == Side::WIRE);
            crossing.splice(0..0, made.map(|(_, frame, _)| (1 - host, Side::WIRE, frame)));
        }
        let [_, receiver] = hosts;
        assert_eq!(receiver.control.established_with(macs[0]), 1, "the hosts shook hands");
        Pair { receiver, frame: sealed, used: 0 }
    }

    fn books(&self) -> Ledger {
        let mut books = Ledger::new();
        self.receiver.add_to_ledger(&mut books);
        books
    }

    fn receive(&mut self, payload: &[u8]) {
        self.used += 1;
        let body_at = ETHERNET_LEN + HEADER_LEN;
        let mut frame = self.frame[..body_at].to_vec();
        let number =
            u32::from_be_bytes([frame[body_at - 8], frame[body_at - 7], frame[body_at - 6], frame[body_at - 5]]);
        frame[body_at - 8..body_at - 4].copy_from_slice(&(number + SEALED_MEANWHILE + self.used).to_be_bytes());
        frame.extend(EXPERIMENT.0.to_be_bytes());
        frame.push(0x02);
        frame.extend(payload);
        frame.extend([0; 16]);
        let before = self.books();
        let mut sink = Collected::new();
        self.receiver.process(now(), Side::WIRE, &mut Frames::new(&mut [(frame, Meta::plain())]), &mut sink);
        let given: Vec<Vec<u8>> =
            sink.take().into_iter().filter(|(side, ..)| *side == Side::STACK).map(|(_, frame, _)| frame).collect();
        let after = self.books();
        assert_eq!(after.balance(), 0, "every frame has one fate");
        let drops = |reason| after.drops(reason) - before.drops(reason);
        let found: Vec<_> = DropReason::ALL.iter().filter(|reason| drops(**reason) > 0).collect();
        match expected(payload) {
            Ok(plain) => {
                let given: Vec<&[u8]> = given.iter().map(|frame| &frame[ETHERNET_LEN..]).collect();
                assert_eq!((given, found), (vec![&plain[..]], Vec::new()));
            }
            Err(reason) => assert_eq!((given.len(), found), (0, vec![&reason])),
        }
    }
}

fn work(host: &mut Cll, sink: &mut Collected) {
    let mut keys = ErasingGenerator::from_seed(&[2; 32]);
    while let Some((ticket, job)) = host.next_job() {
        host.complete(now(), ticket, job.run(&mut keys), sink);
    }
    while host.next_event().is_some() || host.next_effect().is_some() {}
}

/// What the protocol says becomes of this payload.
fn expected(payload: &[u8]) -> Result<Vec<u8>, DropReason> {
    let (length, block) = payload.split_first_chunk::<2>().ok_or(DropReason::CompressedMalformed)?;
    let len = usize::from(u16::from_be_bytes(*length));
    if len > usize::from(WIRE_MTU) - OVERHEAD {
        return Err(DropReason::CompressedTooLong);
    }
    let plain = if payload.len() < len { expand(block, len) } else { None };
    plain.filter(|plain| plain.len() == len).ok_or(DropReason::CompressedMalformed)
}

/// Reads a block of LZ4 that expands to `len_max` bytes at most.
fn expand(block: &[u8], len_max: usize) -> Option<Vec<u8>> {
    let (mut at, mut out) = (0, Vec::new());
    let byte = |at: &mut usize| {
        let value = block.get(*at).copied();
        *at += 1;
        value.map(usize::from)
    };
    loop {
        let token = byte(&mut at)?;
        let mut literals = token >> 4;
        if literals == 15 {
            literals += more(&byte, &mut at)?;
        }
        out.extend_from_slice(block.get(at..at.checked_add(literals)?)?);
        at += literals;
        if out.len() > len_max {
            return None;
        }
        if at == block.len() {
            return Some(out);
        }
        let offset = byte(&mut at)? | byte(&mut at)? << 8;
        let mut length = 4 + (token & 15);
        if token & 15 == 15 {
            length += more(&byte, &mut at)?;
        }
        if offset == 0 || offset > out.len() || out.len() + length > len_max {
            return None;
        }
        (0..length).for_each(|_| out.push(out[out.len() - offset]));
    }
}

/// The rest of a length, in bytes of which all but the last are 255.
fn more(byte: &impl Fn(&mut usize) -> Option<usize>, at: &mut usize) -> Option<usize> {
    let mut sum = 0;
    loop {
        let next = byte(at)?;
        sum += next;
        if next != 255 {
            return Some(sum);
        }
    }
}

/// Well made payloads: of equal bytes, of text, without a match.
#[must_use]
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let equal = [&[0, 100, 0x1f, b'x', 1, 0, 75, 0x50][..], b"xxxxx"].concat();
    let text = [&[0, 46, 0x9f][..], b"over and ", &[9, 0, 13, 0x50], b"ever."].concat();
    let without = [&[0, 20, 0xf0, 5][..], &[b'y'; 20]].concat();
    vec![equal, text, without, vec![5, 0xbb, 0x1f, 0, 1, 0, 255, 255, 255, 255, 255, 0, 0x50, 1, 2, 3, 4, 5]]
}
