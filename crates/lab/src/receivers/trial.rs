//! One attack at one receiver, with or without the scrubber between them, and models that listen beside it.

use std::collections::VecDeque;

use bump::Side;
use wire::layer::protocol::TCP;
use wire::{layer, tcp};

use super::attack::{Attack, Carrier};
use super::connection::{Connection, STAMP, stamps};
use super::gate::Gate;
use super::neighbour::{self, Said};
use super::packet::{Packet, Segment, Version};
use super::{Model, Reading, Receiver};
use crate::failure::Failure;

/// Where the attacker's sequence numbers begin: they wrap within the stream.
const FIRST: u32 = u32::MAX - 20;
/// Identifications of one trial of a connection: more packets than all but the longest scripts have. They come again after 256
/// trials, and the kernel forgets fragments after a second.
const IDENTIFICATIONS: u16 = 256;
/// Frames that one frame of the attacker may set off before this is taken for a loop.
const ECHOES_MAX: usize = 64;

/// One attack among many, with numbers that no other at the same receiver has had lately.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// What carries it.
    pub(super) carrier: Carrier,
    /// What is sent.
    pub(super) attack: Attack,
    /// Its place in the order of all.
    pub(super) number: u64,
}

/// All frames between the attacker and a receiver of `attack`, both ways, in order and without the scrubber: what a capture on
/// their link shows. The receiver is the first model.
///
/// # Errors
/// There is none.
pub fn transcript(carrier: Carrier, attack: Attack, number: u64) -> Result<Vec<Vec<u8>>, Failure> {
    let mut host = Model::all().remove(0);
    let mut frames = Vec::new();
    let trial = Trial { recorded: Some(&mut frames), ..Trial::new(&mut host, &mut [], false)? };
    trial.run(&Case { carrier, attack, number })?;
    Ok(frames)
}

/// A receiver, who listens beside it, and what is between them and the attacker.
pub(super) struct Trial<'a> {
    receiver: &'a mut dyn Receiver,
    beside: &'a mut [Model],
    gate: Option<Gate>,
    /// What came back to the attacker and was not looked at yet.
    heard: Vec<Vec<u8>>,
    /// Where frames are written down, if they are.
    recorded: Option<&'a mut Vec<Vec<u8>>>,
}

impl<'a> Trial<'a> {
    /// A trial of a receiver that has begun anew.
    pub(super) fn new(
        receiver: &'a mut dyn Receiver,
        beside: &'a mut [Model],
        is_scrubbed: bool,
    ) -> Result<Trial<'a>, Failure> {
        receiver.begin_anew()?;
        for model in beside.iter_mut() {
            model.begin_anew()?;
        }
        Ok(Trial { receiver, beside, gate: is_scrubbed.then(Gate::new), heard: Vec::new(), recorded: None })
    }

    /// Runs `case`; what the receiver read, and what each model beside it did.
    pub(super) fn run(mut self, case: &Case) -> Result<(Reading, Vec<Reading>), Failure> {
        let version = case.carrier.version();
        // What a trial leaves unfinished must not meet the next. Numbers come again after more trials than anybody remembers.
        let trial = case.number * 2 + u64::from(self.gate.is_some());
        let source_port = 20_000 + (trial % 40_000) as u16;
        match case.carrier {
            Carrier::Fragments(_) => {
                // A datagram for the attack, and an honest one.
                let identification = (trial % 30_000 * 2) as u16;
                self.send_all(&case.attack.datagrams(version, source_port, identification))?;
            }
            Carrier::Segments(_) => {
                let identification = (trial % (1 << 16)) as u16;
                let identification = identification.wrapping_mul(IDENTIFICATIONS);
                self.stream(version, source_port, identification, &case.attack)?;
            }
        }
        let read = self.receiver.read()?;
        let beside: Result<_, _> = self.beside.iter_mut().map(Receiver::read).collect();
        Ok((read, beside?))
    }

    /// A connection: its handshake, the attack, and a reset.
    fn stream(
        &mut self,
        version: Version,
        source_port: u16,
        identification: u16,
        attack: &Attack,
    ) -> Result<(), Failure> {
        let unopened =
            Connection { version, source_port, first: FIRST, acknowledgement: 0, stamp: None, identification };
        let syn = Segment {
            sequence: FIRST.wrapping_sub(1),
            flags: tcp::flag::SYN,
            options: [&[2, 4, 5, 0xb4][..], &stamps(STAMP, 0), &[1, 1, 4, 2]].concat(),
            ..unopened.segment(0, &[])
        };
        self.send(&unopened.packet(&syn))?;
        let connection = self.answered(unopened)?;
        self.send(&connection.packet(&connection.segment(0, &[])))?;
        let packets = attack.segments(&connection);
        self.send_all(&packets)?;
        let end = self.acknowledged(&connection).unwrap_or(FIRST);
        let reset = Segment { sequence: end, flags: tcp::flag::RST, ..connection.segment(0, &[]) };
        self.send(&connection.packet(&reset))
    }

    /// The connection as the receiver's SYN-ACK makes it.
    fn answered(&mut self, unopened: Connection) -> Result<Connection, Failure> {
        let heard = std::mem::take(&mut self.heard);
        let answers = heard.iter().filter_map(|frame| segment_to(frame, unopened.source_port));
        let wanted = tcp::flag::SYN | tcp::flag::ACK;
        let answer = answers.into_iter().find(|answer| answer.flags() & wanted == wanted);
        let Some(answer) = answer else {
            return Err(Failure::Unreadable(format!("{}: no answer to a SYN", self.receiver.name())));
        };
        let stamp = answer.options().windows(10).find(|option| option[..2] == [8, 10]);
        let stamp = stamp.map(|option| u32::from_be_bytes([option[2], option[3], option[4], option[5]]));
        Ok(Connection { acknowledgement: answer.sequence().wrapping_add(1), stamp, ..unopened })
    }

    /// What the receiver acknowledged last.
    fn acknowledged(&self, connection: &Connection) -> Option<u32> {
        let last = self.heard.iter().rev().find_map(|frame| segment_to(frame, connection.source_port))?;
        Some(last.acknowledgement())
    }

    fn send_all(&mut self, packets: &[Packet]) -> Result<(), Failure> {
        packets.iter().try_for_each(|packet| self.send(packet))
    }

    /// Sends a packet, and lets everything happen that it sets off.
    fn send(&mut self, packet: &Packet) -> Result<(), Failure> {
        let mut under_way: VecDeque<_> = self.pass(Side::UNTRUSTED, packet.frame()).into();
        for _ in 0..ECHOES_MAX {
            let Some((to, frame)) = under_way.pop_front() else { return Ok(()) };
            if to == Side::UNTRUSTED {
                self.heard.push(frame);
                continue;
            }
            for model in self.beside.iter_mut() {
                model.listen(&frame);
            }
            for answer in self.deliver(&frame)? {
                under_way.extend(self.pass(Side::TRUSTED, answer));
            }
        }
        Err(Failure::Unreadable(format!("{}: an echo without end", self.receiver.name())))
    }

    /// What the receiver has to say to a frame, as far as it is not about its link.
    fn deliver(&mut self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let mut traffic = Vec::new();
        let mut said = self.receiver.take(frame)?;
        while let Some(frame) = (!said.is_empty()).then(|| said.remove(0)) {
            match neighbour::judge(&frame) {
                Said::Question(answer) => said.extend(self.receiver.take(&answer)?),
                Said::Chatter => {}
                Said::Traffic => traffic.push(frame),
            }
        }
        Ok(traffic)
    }

    fn pass(&mut self, from: Side, frame: Vec<u8>) -> Vec<(Side, Vec<u8>)> {
        if let Some(recorded) = &mut self.recorded {
            recorded.push(frame.clone());
        }
        match &mut self.gate {
            Some(gate) => gate.pass(from, frame),
            None => vec![(from.other(), frame)],
        }
    }
}

/// The TCP segment to port `port` in a frame.
fn segment_to(frame: &[u8], port: u16) -> Option<tcp::View<'_>> {
    let (protocol, start) = layer::transport_layer(frame).filter(|(protocol, _)| *protocol == TCP)?;
    debug_assert_eq!(protocol, TCP);
    let segment = tcp::View::new(frame.get(start..)?).ok()?;
    (segment.destination_port() == port).then_some(segment)
}
