//! Two hosts and the wire between them.

use std::collections::VecDeque;
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, Instant, Meta, Side};
use cll::{Cll, Completion};
use wire::arp::Arp;
use wire::ethernet::{HEADER_LEN, Header};
use wire::icmp::PROTOCOL_V6;
use wire::layer::network_layer;
use wire::{EtherType, ipv4, ipv6, nd};

use super::frames::{Ends, arp_answer, damage, is_sealed, retag};
use super::host::Host;
use crate::input::Input;
use crate::site::HOSTS;

/// Frames of the past that the wire remembers.
const RECORDED_MAX: usize = 64;
/// Calls that one moment may cause before it is taken for a circle.
const CALLS_MAX: usize = 10_000;
/// Seconds of an honest wire after which the hosts must talk.
const RECOVERY_S: u8 = 15;

/// What led to a call.
enum Cause<'f> {
    /// The wire brought this frame.
    Wire(&'f [u8]),
    /// Anything else.
    Own,
}

/// Two hosts and the wire between them.
pub(super) struct World {
    hosts: [Host; 2],
    at: Instant,
    in_flight: VecDeque<(usize, Vec<u8>)>,
    recorded: VecDeque<Vec<u8>>,
    /// Whether frames are delivered and jobs are run at once.
    prompt: bool,
    answers: [bool; 2],
}

impl World {
    pub(super) fn new(input: &mut Input<'_>) -> World {
        let at = Instant::from_millis(1_000_000);
        let choice = input.byte();
        let bit = |at: u32| choice >> at & 1 != 0;
        let mut world = World {
            hosts: [Host::new(0, at, input), Host::new(1, at, input)],
            at,
            in_flight: VecDeque::new(),
            recorded: VecDeque::new(),
            prompt: true,
            answers: [true; 2],
        };
        world.call(0, Cause::Own, |_, _, _| ());
        world.call(1, Cause::Own, |_, _, _| ());
        if !bit(0) {
            world.honest(usize::from(bit(1)), b"first contact");
        }
        world.prompt = !bit(2);
        world.answers = [!bit(3), !bit(4)];
        world
    }

    /// One step of the script.
    pub(super) fn step(&mut self, input: &mut Input<'_>) {
        let choice = input.byte();
        let host = usize::from(choice >> 7);
        match choice & 0x1f {
            0..=4 => self.stack_step(host, choice & 0x1f, input),
            5 => drop(self.carry()),
            6 => drop(self.in_flight.pop_front()),
            7..=11 => self.attack(host, choice & 0x1f, input),
            12 => self.run_job(host, false),
            13 => self.run_job(host, true),
            14 => self.pass(Duration::from_millis(u64::from(input.word()) / 4)),
            15 => {
                self.hosts[host].restart(host, self.at);
                self.call(host, Cause::Own, |_, _, _| ());
            }
            16 => self.prompt = !self.prompt,
            17 => self.answers[host] = !self.answers[host],
            18..=20 => {
                let frame = self.ends(host).shout(input);
                self.stack_sends(host, frame, Meta::plain());
            }
            _ => self.honest(host, input.counted(100)),
        }
    }

    fn ends(&self, from: usize) -> Ends {
        Ends { from: self.hosts[from].own(), to: self.hosts[1 - from].own() }
    }

    fn stack_step(&mut self, host: usize, choice: u8, input: &mut Input<'_>) {
        let ends = self.ends(host);
        let (frame, meta) = match choice {
            0 => ends.segment(input, false),
            1 => ends.segment(input, true),
            2 => (ends.arp(input), Meta::plain()),
            3 => ends.anything(input),
            // In the name of the other host.
            _ => (Ends { from: (ends.from.0, ends.to.1), ..ends }.datagram(input.counted(60)), Meta::plain()),
        };
        self.stack_sends(host, frame, meta);
    }

    fn attack(&mut self, host: usize, choice: u8, input: &mut Input<'_>) {
        let mut frame = self.recorded(input);
        match choice {
            7 => {}
            8 => damage(&mut frame, input),
            9 => {
                damage(&mut frame, input);
                retag(&mut frame);
            }
            10 => {
                let other = self.recorded(input);
                let at = input.below(frame.len().min(other.len()) + 1);
                frame.truncate(at);
                frame.extend(&other[at..]);
                retag(&mut frame);
            }
            _ => frame = input.counted(1600).to_vec(),
        }
        self.wire_brings(host, frame);
    }

    fn recorded(&self, input: &mut Input<'_>) -> Vec<u8> {
        let count = self.recorded.len();
        if count == 0 { Vec::new() } else { self.recorded[count - 1 - input.below(count)].clone() }
    }

    /// An honest datagram, whose bytes must arrive as they are if they arrive.
    fn honest(&mut self, host: usize, payload: &[u8]) {
        let frame = self.ends(host).datagram(payload);
        let before = self.hosts[host].sealed.len();
        let (at, mut batch) = (self.hosts[host].now(self.at), [(frame.clone(), Meta::plain())]);
        let prompt = std::mem::replace(&mut self.prompt, false);
        self.call(host, Cause::Own, |cll, sink, _| cll.process(at, Side::STACK, &mut Frames::new(&mut batch), sink));
        let this = &mut self.hosts[host];
        if this.sealed.len() == before + 1
            && let Some((_, sealed)) = self.in_flight.back().filter(|(from, frame)| *from == host && is_sealed(frame))
        {
            this.plain.insert(sealed.clone(), frame);
        }
        self.prompt = prompt;
        self.follow_up();
    }

    fn stack_sends(&mut self, host: usize, frame: Vec<u8>, meta: Meta) {
        // Frames to groups come as they are, or the judge would have to cut them.
        let to_group = frame.first().is_some_and(|first| first & 1 != 0);
        let meta = if to_group { Meta::plain() } else { meta };
        if to_group {
            *self.hosts[host].shouted.entry(frame.clone()).or_default() += 1;
        }
        let (at, mut batch) = (self.hosts[host].now(self.at), [(frame, meta)]);
        self.call(host, Cause::Own, |cll, sink, _| cll.process(at, Side::STACK, &mut Frames::new(&mut batch), sink));
    }

    fn wire_brings(&mut self, host: usize, frame: Vec<u8>) {
        let (at, mut batch) = (self.hosts[host].now(self.at), [(frame.clone(), Meta::plain())]);
        self.call(host, Cause::Wire(&frame), |cll, sink, lane| {
            cll.process_on(lane, at, Side::WIRE, &mut Frames::new(&mut batch), sink);
        });
    }

    /// Carries the oldest frame that is on its way; false when there is none.
    fn carry(&mut self) -> bool {
        let Some((from, frame)) = self.in_flight.pop_front() else { return false };
        self.wire_brings(1 - from, frame);
        true
    }

    fn run_job(&mut self, host: usize, is_lost: bool) {
        let at = self.hosts[host].now(self.at);
        let Some((ticket, job)) = self.hosts[host].jobs.pop_front() else { return };
        let completion = if is_lost { Completion::lost() } else { self.hosts[host].run(job) };
        self.call(host, Cause::Own, |cll, sink, _| cll.complete(at, ticket, completion, sink));
    }

    /// Lets time pass; everything due on the way is done.
    fn pass(&mut self, time: Duration) {
        let end = self.at + time;
        for _ in 0..CALLS_MAX {
            let deadlines = self.hosts.iter().filter_map(|host| host.cll.deadline());
            let Some(next) = deadlines.min().filter(|next| *next <= end) else {
                self.at = end;
                return;
            };
            self.at = self.at.max(next);
            for host in 0..self.hosts.len() {
                let at = self.hosts[host].now(self.at);
                self.call(host, Cause::Own, |cll, sink, _| cll.tick(at, 64, sink));
            }
        }
        panic!("the deadline does not move on");
    }

    /// One call into a link layer: judges what came out of it, then lets it have its effects.
    fn call(&mut self, host: usize, cause: Cause<'_>, act: impl FnOnce(&mut Cll, &mut Collected, usize)) {
        let mut sink = Collected::new();
        let lanes = self.hosts[host].cll.lanes.len();
        let lane = match &cause {
            // The low three bits of the receiver index name the lane.
            Cause::Wire(frame) if is_sealed(frame) => frame.get(19).map_or(0, |byte| usize::from(byte % 8) % lanes),
            _ => 0,
        };
        let before = self.hosts[host].opened_frames();
        act(&mut self.hosts[host].cll, &mut sink, lane);
        self.hosts[host].settle(HOSTS[1 - host]);
        // What a lane opens it hands over first; the ARP that control adds comes behind it.
        let mut payloads = self.hosts[host].opened_frames() - before;
        let mut questions = Vec::new();
        for (side, frame, meta) in sink.take() {
            match side {
                Side::WIRE => self.leaves(host, frame, meta),
                Side::STACK => {
                    let is_payload = payloads > 0;
                    payloads -= u64::from(is_payload);
                    self.judge(host, &cause, is_payload, &frame);
                    questions.push(frame);
                }
            }
        }
        if self.answers[host] {
            let own = self.hosts[host].own();
            for answer in questions.iter().filter_map(|frame| arp_answer(frame, own)) {
                self.stack_sends(host, answer, Meta::plain());
            }
        }
        self.follow_up();
    }

    /// A prompt world runs jobs and carries frames at once.
    fn follow_up(&mut self) {
        if !self.prompt {
            return;
        }
        self.prompt = false;
        for _ in 0..CALLS_MAX {
            let before = (self.hosts[0].jobs.len(), self.hosts[1].jobs.len());
            self.run_job(0, false);
            self.run_job(1, false);
            if !self.carry() && before == (0, 0) {
                self.prompt = true;
                return;
            }
        }
        panic!("frames run in a circle");
    }

    /// Nothing in clear and nothing in another's name leaves a host.
    fn leaves(&mut self, host: usize, frame: Vec<u8>, meta: Meta) {
        let this = &mut self.hosts[host];
        let (header, _) = Header::parse(&frame).expect("a frame");
        assert_eq!(header.ethertype, this.settings.ethertype, "a frame in clear on the wire");
        assert_eq!((header.source, meta), (this.settings.mac, Meta::plain()));
        assert!(frame.len() <= this.settings.wire_frame_max());
        if is_sealed(&frame) {
            assert!(this.sealed.insert(frame.clone()), "the same sealed frame twice: a sequence number was used twice");
        }
        if self.recorded.len() == RECORDED_MAX {
            self.recorded.pop_front();
        }
        self.recorded.push_back(frame.clone());
        self.in_flight.push_back((host, frame));
    }

    /// A stack is given what the other host sealed, once, and beside it only ARP that the other's certificate bears out.
    fn judge(&mut self, host: usize, cause: &Cause<'_>, is_payload: bool, frame: &[u8]) {
        let [first, second] = &mut self.hosts;
        let (this, other) = if host == 0 { (first, second) } else { (second, first) };
        let (header, payload) = Header::parse(frame).expect("a frame");
        if header.source == this.settings.mac {
            return assert_question_in_nobodys_name(&header, payload);
        }
        assert_eq!(header.source, other.settings.mac);
        if header.destination.is_group() {
            let left = other.shouted.get_mut(frame).expect("a frame to a group that nobody sent");
            *left = left.checked_sub(1).expect("a frame to a group reached the stack twice");
            if !this.settings.weaken.cross_layer {
                check_origin(frame, other);
            }
            return;
        }
        assert_eq!(header.destination, this.settings.mac);
        if !is_payload && tells_what_fits(&header, payload, this.settings.inner_mtu()) {
            return;
        }
        if !this.settings.weaken.cross_layer {
            check_origin(frame, other);
        }
        if !is_payload {
            if header.ethertype == EtherType::IPV6 {
                return check_ipv6(payload, other);
            }
            assert_eq!(header.ethertype, EtherType::ARP, "only ARP and neighbour discovery come from a handshake");
            let arp = Arp::parse(payload).expect("our own message");
            let certificate = other.settings.identity.certificate();
            assert!(certificate.binds(arp.sender_mac, arp.sender_ip), "{arp:?} is not what the certificate says");
            return;
        }
        let Cause::Wire(sealed) = cause else { panic!("a payload came from nowhere") };
        assert!(other.sealed.contains(*sealed), "a frame reached the stack that nobody sealed");
        assert!(this.opened.insert(sealed.to_vec()), "a frame reached the stack twice");
        if let Some(plain) = other.plain.get(*sealed) {
            assert!(frame.starts_with(plain) && frame[plain.len()..].iter().all(|byte| *byte == 0));
        }
        this.last_delivered = frame.to_vec();
    }

    /// When the wire is honest again and stacks answer, both hosts talk before long.
    pub(super) fn recover(&mut self) {
        self.prompt = true;
        self.answers = [true; 2];
        self.follow_up();
        for second in 0..RECOVERY_S {
            if self.talk(second) && self.talk(second) {
                return;
            }
            self.pass(Duration::from_secs(1));
        }
        panic!("the hosts do not talk after {RECOVERY_S} s on an honest wire");
    }

    /// Whether a datagram of each host arrives at the other.
    fn talk(&mut self, second: u8) -> bool {
        (0..self.hosts.len()).fold(true, |all, host| {
            let payload = [second, host as u8, 0xee];
            self.honest(host, &payload);
            all && self.hosts[1 - host].last_delivered == self.ends(host).datagram(&payload)
        })
    }
}

/// Whether a stack hears that its packet has no room in a sealed frame: from whom it was for, and of its own packet.
fn tells_what_fits(header: &Header, packet: &[u8], fits: u16) -> bool {
    match header.ethertype {
        EtherType::IPV4 => {
            let Some([3, 4, _, _, _, _, high, low, quoted @ ..]) = packet.get(ipv4::HEADER_LEN..) else { return false };
            u16::from_be_bytes([*high, *low]) == fits
                && quoted.get(12..16) == packet.get(16..20)
                && quoted.get(16..20) == packet.get(12..16)
        }
        EtherType::IPV6 => {
            let Some([2, 0, _, _, 0, 0, high, low, quoted @ ..]) = packet.get(ipv6::HEADER_LEN..) else { return false };
            u16::from_be_bytes([*high, *low]) == fits
                && quoted.get(8..24) == packet.get(24..40)
                && quoted.get(24..40) == packet.get(8..24)
        }
        _ => false,
    }
}

/// Whatever it carries, an inner packet or ARP message speaks only for its sender; a router may forward.
fn check_origin(frame: &[u8], sender: &Host) {
    let certificate = sender.settings.identity.certificate();
    let Some((ethertype, at)) = network_layer(frame) else { panic!("no network layer") };
    debug_assert!(at >= HEADER_LEN);
    if ethertype == EtherType::IPV4 && !certificate.is_router() {
        let source = ipv4::View::new(&frame[at..]).expect("a whole header").source();
        assert!(certificate.addresses().contains(&source), "a false source address {source}");
    }
    if ethertype == EtherType::ARP {
        let arp = Arp::parse(&frame[at..]).expect("a whole message");
        assert!(certificate.binds(arp.sender_mac, arp.sender_ip), "a false ARP message {arp:?}");
    }
    if ethertype == EtherType::IPV6 {
        check_ipv6(&frame[at..], sender);
    }
}

/// What a packet proves by itself; who has which address is the bump's own table.
fn check_ipv6(packet: &[u8], sender: &Host) {
    let header = ipv6::View::new(packet).expect("a whole header");
    assert!(!header.source().is_multicast() && !header.source().is_loopback());
    let Some(upper) = header.upper_layer().expect("whole headers") else { return };
    if upper.protocol != PROTOCOL_V6 || !upper.bytes.first().is_some_and(|first| nd::is_discovery(*first)) {
        return;
    }
    let message = nd::Message::parse(upper.bytes).expect("well formed");
    assert!(header.hop_limit() == 255 && !upper.is_behind_extensions, "hidden neighbour discovery");
    assert!(message.source_link.is_none_or(|mac| mac == sender.settings.mac), "{message:?}");
    if matches!(message.kind, nd::Kind::RouterAdvertisement | nd::Kind::Redirect) {
        assert!(sender.settings.identity.certificate().is_router(), "{message:?} of a host");
    } else {
        assert!(message.target_link.is_none_or(|mac| mac == sender.settings.mac), "{message:?}");
    }
}

/// The link layer asks its own stack whether it has an IPv6 address.
fn assert_question_in_nobodys_name(header: &Header, packet: &[u8]) {
    assert_eq!(header.ethertype, EtherType::IPV6, "a frame of our own came back");
    let source = ipv6::View::new(packet).expect("our own packet").source();
    let message = nd::Message::parse(&packet[ipv6::HEADER_LEN..]).expect("our own message");
    assert!(source.is_unspecified() && message.source_link.is_none() && message.kind == nd::Kind::Solicitation);
}
