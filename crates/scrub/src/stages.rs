//! What a whole packet passes behind the network layer, in order: its transport's stage, then what hides the host, then its
//! way out.

use bump::sink::Collected;
use bump::time::earlier;
use bump::{DropReason, Fate, Instant, Ledger, Sink};
use wire::layer::protocol;

use crate::context::Context;
use crate::departure::Departure;
use crate::exchange::Exchanges;
use crate::fingerprint::Fingerprint;
use crate::icmp::pace::{Delayed, Pace};
use crate::keys::{Key, Keys};
use crate::packet::Packet;
use crate::settings::Settings;
use crate::tcp::Flows;
use crate::{emit, icmp, opaque, udp};

/// The way out: where packets are written, and the books for those that the scrubber makes itself.
pub(crate) struct Exit<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) ledger: &'a mut Ledger,
}

/// The stages, with what they remember from one packet to the next.
#[derive(Debug)]
pub(crate) struct Stages {
    pub(crate) flows: Flows,
    exchanges: Exchanges,
    pace: Pace,
    fingerprint: Fingerprint,
    delayed: Delayed,
    /// Room in which a packet is written before it is cut.
    scratch: Vec<u8>,
}

impl Stages {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Stages {
        let tables = Key::new(&keys.tables);
        Stages {
            flows: Flows::new(settings, keys),
            exchanges: Exchanges::new(settings, &tables),
            pace: Pace::new(settings, &tables),
            fingerprint: Fingerprint::new(&Key::new(&keys.identification)),
            delayed: Delayed::default(),
            scratch: Vec::new(),
        }
    }

    /// Takes a packet through the stages and writes it, and beside it what the scrubber has to say for itself.
    pub(crate) fn run(
        &mut self,
        context: &mut Context<'_>,
        mut packet: Packet<'_>,
        exit: &mut Exit<'_>,
    ) -> Result<Fate, DropReason> {
        let departure = self.transport(context, &mut packet);
        let fate = departure.and_then(|departure| self.leave(context, &mut packet, departure, exit.sink));
        if packet.ip.protocol() == protocol::TCP {
            self.send_made(context, &packet, exit);
        }
        fate
    }

    /// Writes the segments that TCP itself wants sent beside a packet.
    fn send_made(&mut self, context: &mut Context<'_>, beside: &Packet<'_>, exit: &mut Exit<'_>) {
        let mut header = Vec::new();
        for made in self.flows.made() {
            let Some(mut packet) = made.packet(&beside.link, context.from, &mut header) else { continue };
            self.fingerprint.rewrite(context, made.to, &mut packet);
            if emit::whole(&packet, made.to, exit.sink).is_ok() {
                exit.ledger.make(made.to);
            }
        }
    }

    /// Hides the host behind a packet and writes it, at once or when its time has come.
    fn leave(
        &mut self,
        context: &mut Context<'_>,
        packet: &mut Packet<'_>,
        departure: Departure,
        sink: &mut dyn Sink,
    ) -> Result<Fate, DropReason> {
        let at = match departure {
            Departure::Never => return Ok(Fate::Consumed),
            Departure::Now => None,
            Departure::At(at) => Some(at),
        };
        packet.clear_dont_fragment(context);
        let (from, to) = (context.from, context.from.other());
        self.fingerprint.rewrite(context, to, packet);
        let mtu = context.settings.mtu;
        let Some(at) = at else {
            return emit::packet(packet, mtu, to, sink, &mut self.scratch).map(|()| Fate::Forwarded);
        };
        let mut frames = Collected::new();
        emit::packet(packet, mtu, to, &mut frames, &mut self.scratch)?;
        self.delayed.hold(at, from, frames.take())
    }

    /// The transport stage, by protocol.
    fn transport(&mut self, context: &mut Context<'_>, packet: &mut Packet<'_>) -> Result<Departure, DropReason> {
        match packet.ip.protocol() {
            protocol::TCP => return self.flows.scrub(context, packet),
            // A part that nobody joined: what it carries is no header.
            _ if packet.ip.fragment().is_some() => {}
            protocol::UDP => udp::scrub(context, packet, &mut self.exchanges)?,
            _ if icmp::is_icmp(packet) => {
                return icmp::scrub(context, packet, &mut self.exchanges, &self.flows, &mut self.pace);
            }
            _ => opaque::scrub(context, packet, &mut self.exchanges)?,
        }
        Ok(Departure::Now)
    }

    /// Lets go what has waited for its time, and forgets connections whose time is over.
    pub(crate) fn tick(&mut self, now: Instant, budget: usize, exit: &mut Exit<'_>) {
        self.flows.tick(now, budget);
        self.delayed.release(now, budget, exit.sink, exit.ledger);
    }

    /// When [`tick`](Stages::tick) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        earlier(self.flows.deadline(), self.delayed.deadline())
    }
}
