//! This machine: what it dropped and why, certificates, its gateway, and this console.

use std::collections::BTreeMap;
use std::io;

use askama::Template;
use bump::DropReason;

use super::super::What;
use super::super::look::{Daemon, Known, Look, unix_s};
use super::frame::{Frame, number, span, time};
use super::listing::{Pager, ROWS, filter};
use super::overview::{Health, health};
use super::peers::left;
use crate::output::clean;
use crate::protocol::{Answer, Example, Flow, GateStatus};
use crate::status::Certificate;

/// Days before its end at which a certificate is pressing.
const PRESSING_S: u64 = 7 * 86_400;
/// Frames that are shown of one reason.
const EXAMPLES_MAX: usize = 5;

/// A reason, how often, what it means and what to do.
struct Reason {
    interface: String,
    word: &'static str,
    count: String,
    meaning: &'static str,
    remedy: &'static str,
    /// Frames that were dropped lately.
    examples: Vec<String>,
}

#[derive(Template)]
#[template(path = "console/drops.html")]
struct Drops {
    frame: Frame,
    reasons: Vec<Reason>,
}

pub(in super::super) fn drops(look: &Look) -> io::Result<String> {
    let daemons = look.daemons()?;
    let mut reasons = Vec::new();
    for daemon in daemons.iter() {
        let Some((_, counts)) = daemon.drops() else { continue };
        let examples = match look.tell(&daemon.name, What::Drops)? {
            Ok(Answer::Drops { examples, .. }) => examples,
            _ => Vec::new(),
        };
        let counted = DropReason::ALL.iter().filter_map(|reason| {
            let count = counts.get(reason.word()).copied().filter(|count| *count > 0)?;
            Some((count, reason))
        });
        let mut counted: Vec<_> = counted.collect();
        counted.sort_by_key(|other| std::cmp::Reverse(other.0));
        reasons.extend(counted.into_iter().map(|(count, reason)| told(daemon, *reason, count, &examples)));
    }
    super::made(&Drops { frame: Frame::of("/drops", "Drops", look, &daemons), reasons })
}

fn told(daemon: &Daemon, reason: DropReason, count: u64, examples: &[Example]) -> Reason {
    let of_it = examples.iter().filter(|example| example.reason == reason.word()).take(EXAMPLES_MAX);
    let line = |example: &Example| {
        let packet = example.packet.as_ref().map_or_else(String::new, |packet| format!(": {packet}"));
        let (ago, from) = (span(example.ago_ms / 1000), &example.from);
        let path = format!("{} to {}", example.source, example.destination);
        clean(&format!("{ago} ago from the {from}, {path}, {}, {} bytes{packet}", example.ethertype, example.len))
    };
    Reason {
        interface: clean(daemon.interface()),
        word: reason.word(),
        count: number(count),
        meaning: reason.meaning(),
        remedy: reason.remedy(),
        examples: of_it.map(line).collect(),
    }
}

/// A certificate, and how much of it is left.
struct Ending {
    interface: String,
    of: String,
    ends: String,
    left: String,
    class: &'static str,
    word: &'static str,
}

#[derive(Template)]
#[template(path = "console/certificates.html")]
struct Certificates {
    frame: Frame,
    endings: Vec<Ending>,
    total: usize,
}

pub(in super::super) fn certificates(look: &Look) -> io::Result<String> {
    let (daemons, known) = (look.daemons()?, look.known()?);
    let own = daemons.iter().filter_map(|daemon| Some((daemon.interface(), daemon.host()?.certificates())));
    let own = own.flat_map(|(interface, all)| all.into_iter().map(move |one| (interface, one)));
    let mut all: Vec<(&str, Certificate)> = own.chain(known.iter().flat_map(of_peers)).collect();
    all.retain(|(_, one)| one.not_after_unix > 0);
    all.sort_by_key(|(_, one)| one.not_after_unix);
    let total = all.len();
    // Those that end first are those that somebody must see to.
    let endings = all.iter().take(ROWS).map(|(interface, one)| ending(interface, one)).collect();
    super::made(&Certificates { frame: Frame::of("/certificates", "Certificates", look, &daemons), endings, total })
}

fn of_peers(known: &Known) -> Vec<(&str, Certificate)> {
    let Answer::Peers { peers } = &known.answer else { return Vec::new() };
    let of = |peer: &crate::protocol::Peer| {
        let not_after_unix = peer.shown.certificate_not_after_unix;
        (known.interface.as_str(), Certificate { of: peer.name.clone(), not_after_unix })
    };
    peers.iter().map(of).collect()
}

fn ending(interface: &str, one: &Certificate) -> Ending {
    let is_pressing = one.not_after_unix.saturating_sub(unix_s()) < PRESSING_S;
    let (class, word) = match (left(one.not_after_unix), is_pressing) {
        (None, _) => ("critical", "over"),
        (Some(_), true) => ("warning", "ends soon"),
        (Some(_), false) => ("good", "good"),
    };
    Ending {
        interface: clean(interface),
        of: clean(&one.of),
        ends: time(one.not_after_unix.saturating_mul(1000)),
        left: left(one.not_after_unix).unwrap_or_else(|| "nothing".to_owned()),
        class,
        word,
    }
}

/// A connection through a gateway.
struct Connection {
    trusted: String,
    untrusted: String,
    state: String,
    idle: String,
    out: String,
    back: String,
}

impl Connection {
    fn of(flow: &Flow) -> Connection {
        Connection {
            trusted: flow.trusted.to_string(),
            untrusted: flow.untrusted.to_string(),
            state: clean(&flow.state),
            idle: span(flow.idle_s),
            out: number(flow.bytes_from_trusted),
            back: number(flow.bytes_from_untrusted),
        }
    }
}

/// One gateway.
struct Gate {
    interface: String,
    preset: String,
    changed: Vec<(String, String)>,
    cards: Vec<(&'static str, String, &'static str)>,
    flows: String,
    memory: String,
    rules: Vec<(String, String)>,
    drops: Vec<(String, String)>,
}

impl Gate {
    fn of(status: &GateStatus) -> Gate {
        let counted = |counts: &BTreeMap<String, u64>| {
            let mut all: Vec<_> = counts.iter().filter(|(_, count)| **count > 0).collect();
            all.sort_by(|one, other| other.1.cmp(one.1));
            all.into_iter().map(|(word, count)| (clean(word), number(*count))).collect()
        };
        let cards = [("trusted", &status.trusted), ("untrusted", &status.untrusted), ("mirror", &status.mirror)];
        let card = |(role, card): (&'static str, &Option<crate::modes::gateway::parts::GateCard>)| {
            let card = card.as_ref()?;
            Some((role, clean(&card.interface), if card.carrier { "on" } else { "off" }))
        };
        Gate {
            interface: clean(&status.interface),
            preset: clean(&status.preset),
            changed: status.changed_rules.iter().map(|(rule, does)| (clean(rule), clean(does))).collect(),
            cards: cards.into_iter().filter_map(card).collect(),
            flows: number(status.flows.all as u64),
            memory: number(status.memory.held as u64),
            rules: counted(&status.rules),
            drops: counted(&status.drops),
        }
    }
}

#[derive(Template)]
#[template(path = "console/gateway.html")]
struct Gateway {
    frame: Frame,
    gates: Vec<Gate>,
    text: String,
    connections: Vec<Connection>,
    pager: Pager,
}

pub(in super::super) fn gateway(look: &Look, query: &str) -> io::Result<String> {
    let daemons = look.daemons()?;
    let text = filter(query, "q");
    let mut connections = Vec::new();
    for daemon in daemons.iter().filter(|daemon| daemon.gate().is_some()) {
        if let Ok(Answer::Flows { flows }) = look.tell(&daemon.name, What::Flows)? {
            connections.extend(flows.iter().map(Connection::of));
        }
    }
    let has = |one: &Connection| [&one.trusted, &one.untrusted, &one.state].iter().any(|field| field.contains(&text));
    connections.retain(has);
    let pager = Pager::new("/gateway", query, &[("q", &text)], connections.len());
    let connections = connections.into_iter().skip(pager.skip()).take(ROWS).collect();
    let gates = daemons.iter().filter_map(Daemon::gate).map(Gate::of).collect();
    super::made(&Gateway {
        frame: Frame::of("/gateway", "Gateway", look, &daemons),
        gates,
        text: clean(&text),
        connections,
        pager,
    })
}

#[derive(Template)]
#[template(path = "console/about.html")]
struct About {
    frame: Frame,
    version: &'static str,
    sessions: usize,
    refused: Vec<(&'static str, String)>,
    health: Vec<Health>,
    /// What `ringwall status` prints of each daemon.
    told: Vec<(String, Vec<String>)>,
}

pub(in super::super) fn about(
    look: &Look,
    sessions: usize,
    refused: &BTreeMap<&'static str, u64>,
) -> io::Result<String> {
    let daemons = look.daemons()?;
    let lines = |daemon: &Daemon| {
        let lines = daemon.account().map(|account| account.lines()).unwrap_or_default();
        (clean(daemon.interface()), lines.iter().map(|line| clean(line)).collect())
    };
    super::made(&About {
        frame: Frame::of("/about", "About", look, &daemons),
        version: env!("CARGO_PKG_VERSION"),
        sessions,
        refused: refused.iter().map(|(word, count)| (*word, number(*count))).collect(),
        health: health(&daemons),
        told: daemons.iter().map(lines).collect(),
    })
}
