//! What a gateway's supervisor has its scrubber do, for whoever asks.

use bump::Side;
use scrub::{FlowId, FlowReport};

use super::kind::{Blocking, OnStandby, Order, PairOrder, Scrubbed, Wanted, Wish};
use crate::daemon::reports::silence;
use crate::daemon::{Command, Link, Unanswered};
use crate::protocol::{Answer, Ask, Flow};

/// Connections in one answer: the data path stands still while it lists them, about a millisecond
/// for so many.
const FLOWS_LISTED_MAX: usize = 10_000;
const ON_STANDBY: &str = "nothing was changed: this gateway is on standby; ask the active gateway of the pair";

/// The answer to a question or an order about connections.
pub(super) fn of_flows(ask: &Ask, link: &Link<Scrubbed>) -> Answer {
    let answer = match ask {
        Ask::Flows { limit, address, state } => {
            let limit = (*limit).min(FLOWS_LISTED_MAX);
            let wanted = Wanted { limit, address: *address, state: state.clone() };
            let told = link.question(|reply| Command::Order(Order::ListFlows(wanted, reply)));
            told.map(|flows| Answer::Flows { flows: flows.iter().map(flow).collect() })
        }
        Ask::Block { trusted, untrusted, vlans, undo, if_remembered } => {
            let flow = FlowId { trusted: *trusted, untrusted: *untrusted, vlans: *vlans };
            let wish = match (undo, if_remembered) {
                (true, _) => Wish::Unblock,
                (false, true) => Wish::BlockRemembered,
                (false, false) => Wish::Block,
            };
            let told = link.question(|reply| Command::Order(Order::Block(Blocking { flow, wish }, reply)));
            told.map(|done| match done {
                Ok(changed) => Answer::Blocked { changed },
                Err(OnStandby) => Answer::Error { line: ON_STANDBY.to_owned() },
            })
        }
        Ask::HandOver => {
            let told = link.question(|reply| Command::Order(Order::Pair(PairOrder::HandOver(reply))));
            told.map(|done| match done {
                Ok(()) => Answer::Done { lines: vec!["handed over: the other gateway forwards".to_owned()] },
                Err(why) => Answer::Error { line: format!("not handed over: {}", why.words()) },
            })
        }
        _ => return ask.not_known(),
    };
    answer.unwrap_or_else(|why| match why {
        Unanswered::Silence => silence(),
        Unanswered::Declined => ask.not_known(),
    })
}

fn flow(report: &FlowReport) -> Flow {
    Flow {
        trusted: report.flow.trusted,
        untrusted: report.flow.untrusted,
        vlans: report.flow.vlans,
        state: report.state.to_owned(),
        idle_s: report.idle.as_secs(),
        retained_bytes: report.retained_bytes,
        packets_from_trusted: report.packets[Side::TRUSTED as usize],
        packets_from_untrusted: report.packets[Side::UNTRUSTED as usize],
        bytes_from_trusted: report.bytes[Side::TRUSTED as usize],
        bytes_from_untrusted: report.bytes[Side::UNTRUSTED as usize],
        carried: report.is_carried,
    }
}
