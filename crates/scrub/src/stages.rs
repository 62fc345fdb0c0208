//! What a whole packet passes behind the network layer, in order: its transport's stage, then what hides the host, then its
//! way out.

use bump::sink::Collected;
use bump::{DropReason, Fate, Instant, Ledger, Sink};
use wire::layer::protocol;

use crate::context::Context;
use crate::exchange::Exchanges;
use crate::fingerprint::Fingerprint;
use crate::icmp::pace::{Delayed, Departure, Pace};
use crate::keys::{Key, Keys};
use crate::packet::Packet;
use crate::settings::Settings;
use crate::{emit, icmp, ip, opaque, udp};

/// The stages, with what they remember from one packet to the next.
#[derive(Debug)]
pub(crate) struct Stages {
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
            exchanges: Exchanges::new(settings, &tables),
            pace: Pace::new(settings, &tables),
            fingerprint: Fingerprint::new(&Key::new(&keys.identification)),
            delayed: Delayed::default(),
            scratch: Vec::new(),
        }
    }

    /// Takes a packet through the stages and writes it.
    pub(crate) fn run(
        &mut self,
        context: &mut Context<'_>,
        mut packet: Packet<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Fate, DropReason> {
        let departure = self.transport(context, &mut packet)?;
        ip::clear_dont_fragment(context, &mut packet);
        let (from, to) = (context.from, context.from.other());
        self.fingerprint.rewrite(context, to, &mut packet);
        let mtu = context.settings.mtu;
        match departure {
            Departure::Now => emit::packet(&packet, mtu, to, sink, &mut self.scratch).map(|()| Fate::Forwarded),
            Departure::At(at) => {
                let mut frames = Collected::new();
                emit::packet(&packet, mtu, to, &mut frames, &mut self.scratch)?;
                self.delayed.hold(at, from, frames.take())
            }
        }
    }

    /// The transport stage, by protocol.
    fn transport(&mut self, context: &mut Context<'_>, packet: &mut Packet<'_>) -> Result<Departure, DropReason> {
        match packet.ip.protocol() {
            protocol::TCP => {}
            protocol::UDP => udp::scrub(context, packet, &mut self.exchanges)?,
            _ if icmp::is_icmp(packet) => {
                let segments = &mut |_: &mut Context<'_>, _: &icmp::quote::Quote, _: &mut [u8]| true;
                return icmp::scrub(context, packet, &mut self.exchanges, segments, &mut self.pace);
            }
            _ => opaque::scrub(context, packet, &mut self.exchanges)?,
        }
        Ok(Departure::Now)
    }

    /// Lets go what has waited for its time.
    pub(crate) fn tick(&mut self, now: Instant, budget: usize, sink: &mut dyn Sink, ledger: &mut Ledger) {
        self.delayed.release(now, budget, sink, ledger);
    }

    /// When [`tick`](Stages::tick) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.delayed.deadline()
    }
}
