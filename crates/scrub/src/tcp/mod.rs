//! TCP: the transport scrubber (the paper's section III) and the TCP half of the fingerprint scrubber (section IV-B3).
//!
//! Every segment is read into fields ([`segment`]), judged by itself ([`header`]) and then by the state of its connection.

mod header;
pub(crate) mod options;
pub(crate) mod segment;
mod serial;

use bump::DropReason;
use wire::layer::protocol;

use crate::context::Context;
use crate::packet::{Packet, Transport};
use crate::rule::{Action, Rule};
use crate::settings::Settings;
use segment::{Segment, flag};

/// Everything that is known about connections.
#[derive(Debug)]
pub(crate) struct Flows {
    /// Whether any rule of TCP is on; without one, segments pass unread.
    is_active: bool,
}

/// The rules of this room.
const RULES: std::ops::RangeInclusive<Rule> = Rule::TcpHeader..=Rule::TcpInitialWindow;

impl Flows {
    pub(crate) fn new(settings: &Settings) -> Flows {
        let is_on = |rule: &Rule| settings.rules.action(*rule) != Action::Off;
        Flows { is_active: Rule::ALL.iter().filter(|rule| RULES.contains(rule)).any(is_on) }
    }

    /// Judges the segment in `packet`, if it carries one, and puts it there as fields.
    pub(crate) fn scrub(&mut self, context: &mut Context<'_>, packet: &mut Packet<'_>) -> Result<(), DropReason> {
        if !self.is_active || packet.ip.protocol() != protocol::TCP {
            return Ok(());
        }
        let Transport::Bytes(bytes) = &mut packet.transport else { return Ok(()) };
        let mut segment = segment::read(context, &packet.ip, packet.checksum, std::mem::take(bytes))?;
        header::judge(context, &mut segment)?;
        leave(context, packet, segment);
        Ok(())
    }
}

/// Gives the segment the form in which it leaves, and the packet the metadata that fit it.
fn leave<'a>(context: &mut Context<'_>, packet: &mut Packet<'a>, mut segment: Segment<'a>) {
    let order = context.on(Rule::TcpOptionOrder).then_some(&context.settings.option_order);
    segment.settle(order);
    if let Some(gso) = &mut packet.gso {
        gso.ecn &= segment.has(flag::CWR);
        if segment.data().len() <= usize::from(gso.size) {
            packet.gso = None;
        }
    }
    packet.transport = Transport::Tcp(segment);
}
