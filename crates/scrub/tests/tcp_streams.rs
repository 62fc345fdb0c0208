//! The property that defines the scrubber, for TCP: whatever an attacker sends, all receivers read the same bytes; and honest
//! connections keep theirs and come to their end.
//!
//! Cases are drawn from seeds. A failure names its seed; `RINGWALL_SCRUB_CASES` sets how many are tried.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "receivers/tcp.rs"]
mod receivers;
mod tcp_support;

use bump::{Checksum, DropReason, Generator, Meta, Side};
use receivers::{Reading, Receiver};
use scrub::settings::OutOfOrder;
use scrub::{FlowLimits, Preset, Rule, Settings};
use tcp_support::*;

const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;

fn cases() -> u64 {
    std::env::var("RINGWALL_SCRUB_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(200)
}

fn generator(seed: u64) -> Generator {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Generator::from_seed(bytes)
}

/// Runs `case` for every seed and names the one that failed.
fn for_seeds(case: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in 0..cases() {
        if let Err(panic) = std::panic::catch_unwind(|| case(seed)) {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            panic!("seed {seed}: {}", text.unwrap_or_default());
        }
    }
}

/// All receivers hear what went to the server.
fn hear(receivers: &mut [Receiver], segs: &[Seg]) {
    for seg in segs {
        for receiver in receivers.iter_mut() {
            if seg.has(RST) {
                receiver.hear_reset(seg.sequence);
            } else {
                receiver.hear(seg.sequence, &seg.data, seg.has(FIN));
            }
        }
    }
}

/// Hosts agree with hosts and observers with observers; an observer has read a part of what hosts have.
fn agree(receivers: &[Receiver]) {
    let host = &receivers[0];
    for receiver in receivers {
        let stream = receiver.stream();
        if receiver.reading == Reading::OnArrival {
            assert_eq!(stream, host.stream(), "{:?}", receiver.policy);
        } else {
            assert!(host.stream().starts_with(stream), "{:?}: {stream:?} and {:?}", receiver.policy, host.stream());
            assert_eq!(stream, receivers[1].stream(), "{:?}", receiver.policy);
        }
        assert_eq!(receiver.acknowledgement(), host.acknowledgement(), "{:?}", receiver.policy);
        assert_eq!(
            (receiver.is_at_end(), receiver.is_reset),
            (host.is_at_end(), host.is_reset),
            "{:?}",
            receiver.policy
        );
    }
}

/// The server acknowledges what it has.
fn acknowledge(gate: &mut Gate, receivers: &mut [Receiver], window: u16) {
    let out = gate.server(seg(ACK, S, receivers[0].acknowledgement()).window(window));
    assert_eq!(out.dropped, None, "an honest acknowledgement passes");
    receivers.iter_mut().for_each(Receiver::acknowledge);
}

#[test]
fn three_chunks_in_every_relation_are_read_alike_by_all() {
    let chunks: Vec<(u32, u32)> = (0..6).flat_map(|start| (start + 1..6).map(move |end| (start, end))).collect();
    let mut count = 0;
    for mode in [OutOfOrder::Retain, OutOfOrder::Drop] {
        for (first, second) in chunks.iter().flat_map(|first| chunks.iter().map(move |second| (first, second))) {
            for third in &chunks {
                // With a hole in front nothing is read before the last segment; without, some is.
                for (hole, acknowledges) in [(0, false), (0, true), (1, false)] {
                    three_chunks(mode, [*first, *second, *third], hole, acknowledges);
                    count += 1;
                }
            }
        }
    }
    assert_eq!(count, 2 * 15 * 15 * 15 * 3);
}

fn three_chunks(mode: OutOfOrder, chunks: [(u32, u32); 3], hole: u32, acknowledges: bool) {
    let mut settings = plain();
    settings.out_of_order = mode;
    settings.flows.max = 4;
    let mut gate = Gate::established(settings);
    let mut receivers = Receiver::all(C, 60_000);
    for ((start, end), letter) in chunks.into_iter().zip(b"abc") {
        let data = vec![*letter; (end - start) as usize];
        let out = gate.client(seg(ACK, C + hole + start, S).data(&data));
        hear(&mut receivers, &out.inside);
        agree(&receivers);
        if acknowledges {
            acknowledge(&mut gate, &mut receivers, 60_000);
            agree(&receivers);
        }
    }
    let out = gate.client(seg(ACK, C, S).data(&[b'd'; 8]));
    hear(&mut receivers, &out.inside);
    acknowledge(&mut gate, &mut receivers, 60_000);
    agree(&receivers);
    assert_eq!(receivers[0].stream().len(), 8, "{chunks:?}");
}

/// Something that an attacker who knows the connection may send.
fn attack(generator: &mut Generator, next: u32) -> (Seg, Option<u16>) {
    let spread = [8, 64, 600, 70_000][generator.below(4) as usize];
    let back = generator.below(spread / 2) as u32;
    let sequence = next.wrapping_add(generator.below(spread) as u32).wrapping_sub(back);
    let most = if generator.chance(4) { 900 } else { 24 };
    let len = generator.below(most) as usize;
    let letters = generator.number();
    let data: Vec<u8> = (0..len).map(|at| b'a' + ((letters as usize + at / 3) % 3) as u8).collect();
    let mut sent = seg(ACK, sequence, S).data(&data);
    match generator.below(40) {
        0 | 1 => sent.flags |= FIN,
        2 => (sent.flags, sent.acknowledgement) = (RST, 0),
        3 => sent.flags = RST | ACK,
        4 => (sent.flags, sent.acknowledgement) = (SYN, 0),
        5 => sent.flags |= URG | PSH,
        6 => sent.flags = generator.number() as u16 & 0x1ff,
        7 => sent.sequence = generator.number(),
        8 => sent.acknowledgement = S.wrapping_add(generator.number()),
        9 => sent = sent.stamps(generator.number(), 0),
        10 => sent.options = generator.bytes::<12>().to_vec(),
        11 => sent.flags |= SYN,
        _ => {}
    }
    sent.urgent = if generator.chance(9) { generator.number() as u16 } else { 0 };
    sent.window = if generator.chance(9) { 0 } else { 60_000 };
    let size = (len > 100 && generator.chance(2)).then_some(100);
    (sent, size)
}

fn send(gate: &mut Gate, sent: &Seg, size: Option<u16>) -> Out {
    match size {
        Some(size) => gate.super_frame(Side::UNTRUSTED, sent, size).0,
        None => gate.client(sent.clone()),
    }
}

fn settings_of(generator: &mut Generator) -> Settings {
    let mut settings = plain();
    if generator.chance(4) {
        settings.out_of_order = OutOfOrder::Drop;
    }
    if generator.chance(8) {
        settings.memory_max_bytes = 2048;
    }
    settings.flows.max = 8;
    settings
}

#[test]
fn receivers_read_the_same_whatever_an_attacker_sends() {
    for_seeds(|seed| {
        let generator = &mut generator(seed);
        let mut gate = Gate::new(settings_of(generator));
        if generator.chance(3) {
            gate.ends = Ends::v6();
        }
        gate.open();
        let window = [200, 5000, 60_000][generator.below(3) as usize];
        let mut receivers = Receiver::all(C, 60_000);
        for _ in 0..generator.below(90) {
            let next = receivers[0].acknowledgement();
            let (sent, size) = attack(generator, next);
            let out = send(&mut gate, &sent, size);
            if !generator.chance(8) {
                hear(&mut receivers, &out.inside);
            }
            agree(&receivers);
            // After a reset that reached nobody a new connection may begin; what receivers still say is of the old one.
            let begins_anew = gate.scrubber.flows(gate.now).any(|flow| flow.state == "await syn-ack");
            if receivers[0].is_reset || begins_anew {
                return;
            }
            if generator.chance(3) {
                acknowledge(&mut gate, &mut receivers, window);
                agree(&receivers);
            }
        }
    });
}

#[test]
fn what_left_leaves_a_second_scrubber_as_it_is() {
    for_seeds(|seed| {
        let generator = &mut generator(seed ^ 0x1de0);
        let mut settings = settings_of(generator);
        settings.memory_max_bytes = 1 << 20;
        let (mut first, mut second) = (Gate::new(settings.clone()), Gate::new(settings));
        let mut receivers = Receiver::all(C, 60_000);
        let mut steps = vec![
            (Side::UNTRUSTED, seg(SYN, CLIENT, 0).options(&[1, 3, 3, 2, 4, 2, 2, 4, 5, 0xb4])),
            (Side::TRUSTED, seg(SYN | ACK, SERVER, C).options(&[2, 4, 5, 0xb4, 4, 2])),
            (Side::UNTRUSTED, seg(ACK, C, S)),
        ];
        for _ in 0..generator.below(60) {
            let next = receivers[0].acknowledgement();
            let step = match generator.below(4) {
                0 => (Side::TRUSTED, seg(ACK, S, next).window(5000)),
                _ => (Side::UNTRUSTED, attack(generator, next).0),
            };
            steps.push(step);
            for (from, sent) in steps.drain(..) {
                let out = first.pass(from, &sent);
                hear(&mut receivers, &out.inside);
                for (from, left) in [(Side::UNTRUSTED, &out.inside), (Side::TRUSTED, &out.outside)] {
                    for seg in left {
                        let again = second.pass(from, seg);
                        let same = if from == Side::UNTRUSTED { &again.inside } else { &again.outside };
                        assert_eq!((same.first(), again.dropped), (Some(seg), None), "after {sent:?}");
                        assert_eq!(again.inside.len() + again.outside.len(), 1, "after {sent:?}");
                    }
                }
            }
        }
    });
}

/// An honest host: what it sends, what it has heard, and a timer that counts steps.
struct Host {
    first: u32,
    sends: Vec<u8>,
    /// Bytes of it that the peer has acknowledged; one more for the FIN.
    acknowledged: usize,
    /// The end of what was sent.
    sent: usize,
    idle_steps: u32,
    receiver: Receiver,
    stamp: u32,
    echo: u32,
    window: u16,
}

impl Host {
    fn new(first: u32, peer_first: u32, sends: Vec<u8>, stamp: u32) -> Host {
        let receiver = Receiver::new(receivers::Policy::First, Reading::OnArrival, peer_first, 60_000);
        Host { first, sends, acknowledged: 0, sent: 0, idle_steps: 0, receiver, stamp, echo: 0, window: 60_000 }
    }

    fn is_done(&self) -> bool {
        self.acknowledged == self.sends.len() + 1 && self.receiver.is_at_end()
    }

    fn seg(&self, at: usize, len: usize) -> Seg {
        let end = (at + len).min(self.sends.len());
        let start = at.min(end);
        let sequence = self.first.wrapping_add(at as u32);
        let mut sent = seg(ACK, sequence, self.receiver.acknowledgement()).data(&self.sends[start..end]);
        if at <= self.sends.len() && at + len > self.sends.len() {
            sent.flags |= FIN;
        }
        let mut options = sent.clone().stamps(self.stamp, self.echo).options;
        let islands = self.receiver.islands();
        if !islands.is_empty() {
            let blocks: Vec<_> = islands.iter().rev().take(3).collect();
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            options.extend(blocks.iter().flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()]).flatten());
        }
        sent.options = options;
        sent.window(self.window)
    }

    /// What it says in one step: new data, after a while old data in other pieces, else an acknowledgement.
    fn speak(&mut self, generator: &mut Generator) -> Vec<Seg> {
        self.stamp = self.stamp.wrapping_add(generator.below(3) as u32);
        self.idle_steps += 1;
        let total = self.sends.len() + 1;
        let mut said = Vec::new();
        if self.idle_steps > 6 && self.acknowledged < total {
            self.idle_steps = 0;
            let len = 1 + generator.below(3000) as usize;
            said.push(
                self.seg(self.acknowledged, len.min(self.sent.max(1) - self.acknowledged.min(self.sent.max(1) - 1))),
            );
        }
        while self.sent < total && self.sent < self.acknowledged + 20_000 && said.len() < 4 {
            let len = (1 + generator.below(2000) as usize).min(total - self.sent);
            said.push(self.seg(self.sent, len));
            self.sent += len;
        }
        if said.is_empty() {
            said.push(self.seg(self.sent, 0));
        }
        said
    }

    fn hear(&mut self, seg: &Seg) {
        assert!(!seg.has(RST) && !seg.has(SYN), "nobody reset: {seg:?}");
        if let Some((value, _)) = seg.read_stamps() {
            self.echo = value;
        }
        let acknowledged = seg.acknowledgement.wrapping_sub(self.first) as usize;
        if acknowledged > self.acknowledged && acknowledged <= self.sends.len() + 1 {
            assert!(acknowledged <= self.sent, "what was not sent cannot be acknowledged");
            self.acknowledged = acknowledged;
            self.idle_steps = 0;
        }
        self.receiver.hear(seg.sequence, &seg.data, seg.has(FIN));
    }
}

fn text(generator: &mut Generator) -> Vec<u8> {
    let most = [3, 3000, 60_000][generator.below(3) as usize];
    let len = generator.below(most) as usize;
    let seed = generator.number() as usize;
    (0..len).map(|at| (at.wrapping_mul(2_654_435_761) >> 7).wrapping_add(seed) as u8).collect()
}

/// Opens a connection from `opener`, with timestamps and selective acknowledgements, through whatever shifts there are.
fn handshake(gate: &mut Gate, opener: Side, client: &mut Host, server: &mut Host) {
    let (initiator, responder) = if opener == Side::UNTRUSTED { (client, server) } else { (server, client) };
    let options = |value: u32, echo: u32| {
        let stamps = [value.to_be_bytes(), echo.to_be_bytes()].concat();
        [&[2, 4, 5, 0xb4, 4, 2, 8, 10][..], &stamps, &[1, 3, 3, 4]].concat()
    };
    let syn = seg(SYN, initiator.first.wrapping_sub(1), 0).options(&options(initiator.stamp, 0));
    let out = gate.pass(opener, &syn);
    let heard = if opener == Side::UNTRUSTED { out.to_server() } else { out.to_client() }.clone();
    responder.receiver = Receiver::new(receivers::Policy::First, Reading::OnArrival, heard.sequence + 1, 60_000);
    responder.echo = heard.read_stamps().expect("timestamps").0;
    let answer = seg(SYN | ACK, responder.first.wrapping_sub(1), heard.sequence + 1);
    let out = gate.pass(opener.other(), &answer.options(&options(responder.stamp, responder.echo)));
    let heard = if opener == Side::UNTRUSTED { out.to_client() } else { out.to_server() }.clone();
    assert_eq!(heard.acknowledgement, initiator.first);
    initiator.receiver = Receiver::new(receivers::Policy::First, Reading::OnArrival, heard.sequence + 1, 60_000);
    initiator.echo = heard.read_stamps().expect("timestamps").0;
    (initiator.window, responder.window) = (60_000 >> 4, 60_000 >> 4);
    let confirmation = initiator.seg(0, 0);
    gate.pass(opener, &confirmation);
}

#[test]
fn honest_connections_keep_their_streams_and_come_to_their_end() {
    for_seeds(|seed| {
        let generator = &mut generator(seed ^ 0x40_0e57);
        let preset = [Preset::Balanced, Preset::Strict, Preset::Paper][generator.below(3) as usize];
        let mut gate = Gate::new(Settings { flows: FlowLimits::at_most(8), ..Settings::preset(preset) });
        gate.scrubber = scrub::Scrubber::new(honest_settings(preset), keys());
        if generator.chance(2) {
            gate.ends = Ends::v6();
        }
        let (client_text, server_text) = (text(generator), text(generator));
        let mut client = Host::new(generator.number(), 0, client_text, generator.number());
        let mut server = Host::new(generator.number(), 0, server_text, generator.number());
        let opener = if generator.chance(2) { Side::UNTRUSTED } else { Side::TRUSTED };
        handshake(&mut gate, opener, &mut client, &mut server);
        converse(&mut gate, generator, &mut client, &mut server);
        if preset == Preset::Balanced {
            // What hosts refuse themselves: a segment that a later one of its sender has overtaken.
            let ledger = gate.ledger();
            let wrong = |reason: &&DropReason| **reason != DropReason::TcpTimestamp && ledger.drops(**reason) > 0;
            assert_eq!(DropReason::ALL.iter().find(wrong), None, "nothing honest is dropped");
        }
        assert_eq!(server.receiver.stream(), client.sends);
        assert_eq!(client.receiver.stream(), server.sends);
        assert_eq!(gate.scrubber.retained_bytes(), 0, "what was acknowledged is forgotten");
    });
}

/// Everything but what refuses segments longer than the MSS: the hosts here have super-frames in mind.
fn honest_settings(preset: Preset) -> Settings {
    let mut settings = Settings::preset(preset);
    settings.flows.max = 8;
    settings.rules.set(Rule::TcpMss, scrub::Action::Off);
    // These hosts agree on timestamps, scale and selective acknowledgement.
    settings.rules.set(Rule::TcpPlainHandshake, scrub::Action::Off);
    settings
}

/// Segments on their way: those of both hosts, before and behind the scrubber, in any order, some lost, some twice.
fn converse(gate: &mut Gate, generator: &mut Generator, client: &mut Host, server: &mut Host) {
    let (loss, disorder) = (generator.below(12), generator.below(4));
    let mut under_way: Vec<(u64, Side, Seg)> = Vec::new();
    for step in 0..6000_u64 {
        if client.is_done() && server.is_done() {
            return;
        }
        for (side, host) in [(Side::UNTRUSTED, &mut *client), (Side::TRUSTED, &mut *server)] {
            for said in host.speak(generator) {
                let copies = if generator.below(100) < loss { 0 } else { 1 + u64::from(generator.chance(40)) };
                for _ in 0..copies {
                    under_way.push((step + 1 + generator.below(1 + disorder), side, said.clone()));
                }
            }
        }
        let (due, later): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|(at, ..)| *at <= step);
        under_way = later;
        for (_, side, said) in due {
            let out = pass_honest(gate, side, &said);
            assert!(out.outside.iter().chain(&out.inside).all(|seg| !seg.has(RST)));
            for (host, heard) in [(&mut *server, &out.inside), (&mut *client, &out.outside)] {
                for seg in heard.iter().filter(|_| generator.below(100) >= loss) {
                    host.hear(seg);
                }
            }
        }
    }
    panic!(
        "stalled: client {}/{} server {}/{}",
        client.acknowledged,
        client.sends.len(),
        server.acknowledged,
        server.sends.len()
    );
}

/// Long segments travel as super-frames with their checksum left to the card.
fn pass_honest(gate: &mut Gate, side: Side, said: &Seg) -> Out {
    if said.data.len() <= 1400 {
        return gate.pass(side, said);
    }
    let (out, metas) = gate.super_frame(side, said, 1400);
    for meta in metas {
        assert!(matches!(meta, Meta { checksum: Checksum::Partial { .. } | Checksum::Complete, .. }));
    }
    out
}
