//! A peer whose link layer runs in this program: it seals a stream before the clock starts, so that a processor which carries the
//! bridge as well can send faster than the receiver takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Batch, Bump, Generator, Meta, Side};
use cll::{Cll, Settings};
use identity::HostIdentity;
use identity::aead::Suite;
use system::clock::Clock;
use system::port::{PacketPort, Receiver, Sender};
use system::random::{self, KernelSource};
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header, MIN_LEN};
use wire::{EtherType, MacAddress};

use crate::failure::Failure;
use crate::net::{Host, link, process};

/// MTU of the wire.
const WIRE_MTU: u16 = 1500;
/// How long a handshake may take.
const MEET_LIMIT: Duration = Duration::from_secs(10);
/// How long it rests between two looks for an answer, which is how exact the time of a handshake is.
const REST: Duration = Duration::from_micros(100);
/// Pieces of upkeep in one call.
const TICK_BUDGET: usize = 16;
/// Frames sealed in one batch, as a port hands them over.
const BATCH: usize = 64;

/// A host that speaks by this program.
pub struct Peer {
    /// Where its frames go out.
    pub port: PacketPort,
    link: Cll,
    clock: Clock,
    keys: KernelSource,
    /// MTU of what it seals.
    pub mtu: usize,
}

impl Peer {
    /// Takes the place of the daemon of `own`, which must have none, and makes an association with `other` in which it seals with `suite`.
    ///
    /// # Errors
    /// The port cannot be opened, or `other` does not answer.
    pub fn meet(own: &Host, identity: HostIdentity, other: &Host, suite: Suite) -> Result<Peer, Failure> {
        let mut peer = Peer::open(own, identity, suite)?;
        peer.ask_for(own, other)?;
        Ok(peer)
    }

    /// Takes the place of the daemon of `own` and says nothing yet.
    ///
    /// # Errors
    /// The port cannot be opened.
    pub fn open(own: &Host, identity: HostIdentity, suite: Suite) -> Result<Peer, Failure> {
        let port = own.namespace.enter(|| link::open(crate::net::lan::INTERFACE))?;
        let mut settings = Settings::new(Arc::new(identity), WIRE_MTU);
        settings.send_suite = suite;
        if suite.is_nonce_only() {
            // It goes with no other, and encrypts nothing.
            (settings.require.suites, settings.confidential) = (vec![suite], false);
        }
        let mtu = usize::from(settings.inner_mtu());
        let (mut clock, mut sink) = (Clock::new(), Collected::new());
        let link = cll::start(clock.now(), settings, generator()?, &mut sink);
        let mut peer = Peer { port, link, clock, keys: KernelSource, mtu };
        peer.work(&mut sink);
        peer.say(sink);
        Ok(peer)
    }

    /// The request for a handshake with `other`, as it would go on the wire.
    ///
    /// # Errors
    /// It makes none.
    pub fn request(&mut self, own: &Host, other: &Host) -> Result<Vec<u8>, Failure> {
        let frames = self.process(Side::STACK, vec![question(own, other)]).take();
        let request = frames.into_iter().find(|(to, ..)| *to == Side::WIRE).map(|(_, bytes, _)| bytes);
        request.ok_or_else(|| Failure::Unreadable(format!("no request of {}", own.name)))
    }

    /// Asks by ARP, which is the handshake, until the answer is there.
    ///
    /// # Errors
    /// `other` does not answer.
    pub fn ask_for(&mut self, own: &Host, other: &Host) -> Result<(), Failure> {
        let question = question(own, other);
        let mut sink = self.process(Side::STACK, vec![question]);
        let start = Instant::now();
        while start.elapsed() < MEET_LIMIT {
            let answered = sink.take().into_iter().fold(false, |answered, (to, bytes, _)| match to {
                Side::STACK => answered || is_arp(&bytes),
                Side::WIRE => {
                    self.put(&bytes);
                    answered
                }
            });
            self.port.sender.flush();
            if answered {
                return Ok(());
            }
            process::pause(REST)?;
            sink = self.hear()?;
        }
        Err(Failure::Late { what: format!("an answer of {} to a handshake", other.name), limit: MEET_LIMIT })
    }

    /// The wire's frames of these plain ones. They are to leave in this order, before the association ends.
    ///
    /// # Errors
    /// Not each came to one frame: there is no association any more, or one does not fit.
    pub fn seal(&mut self, plain: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Failure> {
        let (wanted, mut sealed) = (plain.len(), Vec::with_capacity(plain.len()));
        let mut plain = plain.into_iter();
        loop {
            let batch: Vec<Vec<u8>> = plain.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                break;
            }
            let frames = self.process(Side::STACK, batch).take();
            sealed.extend(frames.into_iter().filter(|(to, ..)| *to == Side::WIRE).map(|(_, bytes, _)| bytes));
        }
        if sealed.len() == wanted {
            return Ok(sealed);
        }
        Err(Failure::Unreadable(format!("{} sealed frames of {wanted}", sealed.len())))
    }

    /// What has arrived, and upkeep.
    fn hear(&mut self) -> Result<Collected, Failure> {
        let mut heard = Vec::new();
        while self.port.receiver.fill().map_err(Failure::io("hearing the receiver"))? {
            while let Some(frame) = self.port.receiver.next_frame() {
                heard.push(frame.bytes.to_vec());
            }
        }
        let mut sink = self.process(Side::WIRE, heard);
        self.link.tick(self.clock.now(), TICK_BUDGET, &mut sink);
        self.work(&mut sink);
        Ok(sink)
    }

    fn process(&mut self, from: Side, frames: Vec<Vec<u8>>) -> Collected {
        let mut frames: Vec<_> = frames.into_iter().map(|bytes| (bytes, Meta::plain())).collect();
        let mut sink = Collected::new();
        self.link.process(self.clock.now(), from, &mut Frames::new(&mut frames), &mut sink);
        self.work(&mut sink);
        sink
    }

    /// Does what the link layer wants done, at once.
    fn work(&mut self, sink: &mut Collected) {
        while let Some((ticket, job)) = self.link.next_job() {
            let completion = job.run(&mut self.keys);
            self.link.complete(self.clock.now(), ticket, completion, sink);
        }
    }

    /// Sends what goes to the wire; nobody listens at the stack.
    fn say(&mut self, mut sink: Collected) {
        let wire = sink.take().into_iter().filter(|(to, ..)| *to == Side::WIRE).map(|(_, bytes, _)| bytes);
        self.send(&wire.collect::<Vec<_>>());
    }

    /// Sends a few frames.
    pub fn send(&mut self, frames: &[Vec<u8>]) {
        for frame in frames {
            self.put(frame);
        }
        self.port.sender.flush();
    }

    /// Puts a frame where the next flush finds it. Where there is no room it is lost, as on any card.
    fn put(&mut self, frame: &[u8]) {
        if let Some(room) = self.port.sender.reserve(frame.len()) {
            room[..frame.len()].copy_from_slice(frame);
            self.port.sender.commit(frame.len(), Meta::plain());
        }
    }
}

fn generator() -> Result<Generator, Failure> {
    random::seed().map(|seed| Generator::from_seed(*seed)).map_err(Failure::io("drawing a seed"))
}

fn is_arp(frame: &[u8]) -> bool {
    Header::parse(frame).is_ok_and(|(header, _)| header.ethertype == EtherType::ARP)
}

/// The question of `own` where `other` is.
pub fn question(own: &Host, other: &Host) -> Vec<u8> {
    let header = Header { destination: MacAddress::BROADCAST, source: own.mac, ethertype: EtherType::ARP };
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: own.mac,
        sender_ip: own.ip,
        target_mac: MacAddress::ZERO,
        target_ip: other.ip,
    };
    let mut frame = Vec::with_capacity(MIN_LEN.max(HEADER_LEN));
    frame.extend(header.emit());
    frame.extend(arp.emit());
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}
