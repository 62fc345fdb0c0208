//! The scrubber as a bump that a daemon drives, and the null bump in its place for measurements.

use std::convert::Infallible;

use bump::{Instant, Now, Sink};
use scrub::settings::Network;
use scrub::{Event, FlowId, Scrubber};
use system::null::NullBump;

use super::ended::Ended;
use super::kind::{Order, Scrubbed, Scrubbing, Wish};
use crate::daemon::{Described, Guard};
use crate::protocol::About;

/// What is told of a host, or of a network of which nobody knows who is to blame.
fn of_source(word: &'static str, source: &Network, what: &str) -> Described {
    let ip = source.address.to_string();
    let (who, about) = if source.is_host() {
        (ip.clone(), About { ip: Some(ip), ..About::default() })
    } else {
        (format!("the network {ip}/{}", source.prefix_len), About::default())
    };
    Described { word, text: format!("{who} {what}"), about }
}

impl Guard<Scrubbed> for Scrubber {
    fn describe(event: &Event) -> Described {
        let (word, text) = match event {
            Event::Severed { rule, flow } => ("severed", format!("{} ended by the rule {rule}", named(flow))),
            Event::AsymmetricPath { flow } => {
                let what = "segments of the other direction take another path; a gateway must be the only one";
                ("asymmetric-path", format!("{}: {what}", named(flow)))
            }
            Event::OlderEnded { count } => {
                let what = "TCP connections that this gateway does not know were ended at both hosts (gate.adopt)";
                ("older-ended", format!("{count} {what}"))
            }
            Event::FlowsFull => ("flows-full", "new connections are refused: raise gate.flows_max".to_owned()),
            Event::SourceFull { source } => {
                let what = "holds as many connections as it may: its new ones are refused (shares.flows)";
                return of_source("source-full", source, what);
            }
            Event::SourceMemoryFull { source } => {
                let what = "holds as much memory for unacknowledged data as it may: what needs more is dropped \
                            (shares.memory)";
                return of_source("source-memory-full", source, what);
            }
            Event::ValidatesAddresses { requests } => {
                let what = "connections were begun within 30 s and not completed: untrusted hosts show that they \
                            receive before another begins (shares.half_open)";
                ("validates-addresses", format!("{requests} {what}"))
            }
            Event::MemoryFull { flow } => {
                let what =
                    "no memory for unacknowledged data: raise gate.memory_max_bytes, or see `ringwall gate flows`";
                ("memory-full", format!("{}: {what}", named(flow)))
            }
        };
        Described { word, text, about: About::default() }
    }

    fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.set_mtu(wire_mtu.into());
    }

    fn report(&self, now: Instant) -> Option<Box<Scrubbing>> {
        Some(Box::new(Scrubbing {
            counters: self.counters().clone(),
            mirror: None,
            pair: None,
            waits: self.waits(),
            flows: self.flow_counts(now),
            memory_bytes: self.retained_bytes() + self.fragments_memory_bytes(),
            memory_idle_bytes: self.idle_bytes(),
        }))
    }

    fn obey(&mut self, now: Now, order: Order, _sink: &mut dyn Sink) {
        // Who asked and does not wait any more misses an answer, nothing else.
        match order {
            Order::ListFlows(wanted, reply) => {
                let flows = self.flows(now.since_boot).filter(|report| wanted.takes(report)).take(wanted.limit);
                reply.give(flows.collect());
            }
            Order::TakeEnded(max, reply) => {
                let (flows, left_out) = self.take_ended(max);
                reply.give(Ended { flows, left_out, now });
            }
            Order::Block(wanted, reply) => {
                let flow = &wanted.flow;
                let changed = match wanted.wish {
                    Wish::Unblock => self.unblock(flow),
                    Wish::BlockRemembered if !self.remembers(flow) => false,
                    Wish::Block | Wish::BlockRemembered => self.block(now.since_boot, flow),
                };
                reply.give(Ok(changed));
            }
            // Who asks a gateway that is alone hears that there is no answer.
            Order::Pair(_) => {}
        }
    }
}

/// It knows no connections: who asks for some hears that there is no answer.
impl Guard<Scrubbed> for NullBump {
    fn describe(event: &Infallible) -> Described {
        match *event {}
    }

    fn obey(&mut self, _now: Now, _order: Order, _sink: &mut dyn Sink) {}

    fn report(&self, _now: Instant) -> Option<Box<Scrubbing>> {
        None
    }
}

/// A connection in an operator's words.
fn named(flow: &FlowId) -> String {
    let FlowId { trusted, untrusted, vlans } = flow;
    let vlan = if *vlans == 0 { String::new() } else { format!(" (VLAN {})", vlan_text(*vlans)) };
    format!("{trusted} - {untrusted}{vlan}")
}

/// One VLAN identifier, or the outer and the inner one.
pub(crate) fn vlan_text(vlans: u32) -> String {
    match (vlans >> 12, vlans & 0xfff) {
        (0, inner) => inner.to_string(),
        (outer, inner) => format!("{outer}.{inner}"),
    }
}
