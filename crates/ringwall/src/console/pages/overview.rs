//! The first page: how it is, what to do, who attacks, who speaks how, and what was dropped.

use std::io;

use askama::Template;

use super::super::http::value;
use super::super::look::{Daemon, Look};
use super::attacks::{Open, open_attacks};
use super::chart::{BARS, Chart};
use super::frame::{Frame, number};
use super::hosts::{Group, counts, seen};
use crate::output::clean;
use crate::verdict::Level;

/// Steps of one bar when the last hour is shown: a minute.
const STEPS_OF_HOUR: u64 = 6;

/// How one daemon is.
pub(super) struct Health {
    pub(super) interface: String,
    pub(super) mode: &'static str,
    pub(super) word: &'static str,
    /// Of its colour.
    pub(super) class: &'static str,
    pub(super) what: String,
    pub(super) remedy: String,
    pub(super) others: usize,
}

/// How many speak in one way.
struct Tally {
    word: &'static str,
    meaning: &'static str,
    count: String,
}

/// What a gateway does, in numbers.
struct Gate {
    interface: String,
    flows: String,
    dropped: String,
    acted: String,
}

#[derive(Template)]
#[template(path = "console/overview.html")]
struct Overview {
    frame: Frame,
    health: Vec<Health>,
    tallies: Vec<Tally>,
    known: String,
    open: Vec<Open>,
    opened: String,
    chart: Chart,
    is_hour: bool,
    gates: Vec<Gate>,
}

pub(super) fn class(level: Level) -> &'static str {
    match level {
        Level::Good => "good",
        Level::Warning => "warning",
        Level::Critical | Level::Unknown => "critical",
    }
}

/// The worst first.
pub(super) fn health(daemons: &[Daemon]) -> Vec<Health> {
    let mut all: Vec<_> = daemons.iter().map(|daemon| (daemon, daemon.verdict())).collect();
    all.sort_by_key(|other| std::cmp::Reverse(other.1.level));
    let health = |(daemon, verdict): (&Daemon, crate::verdict::Verdict)| Health {
        interface: clean(daemon.interface()),
        mode: daemon.account().map_or("no answer", |account| account.mode()),
        word: verdict.level.word(),
        class: class(verdict.level),
        what: clean(&verdict.what),
        remedy: clean(&verdict.remedy),
        others: verdict.others,
    };
    all.into_iter().map(health).collect()
}

fn gate(daemon: &Daemon) -> Option<Gate> {
    let status = daemon.gate()?;
    Some(Gate {
        interface: clean(&status.interface),
        flows: number(status.flows.all as u64),
        dropped: number(status.frames.dropped),
        acted: number(status.rules.values().sum()),
    })
}

pub(in super::super) fn overview(look: &Look, query: &str) -> io::Result<String> {
    let (daemons, known) = (look.daemons()?, look.known()?);
    let seen = seen(&daemons, &known);
    let tally = |(group, count): (Group, usize)| Tally {
        word: group.word(),
        meaning: group.meaning(),
        count: number(count as u64),
    };
    let is_hour = value(query, "span").is_some_and(|span| span == "hour");
    let steps = if is_hour { STEPS_OF_HOUR } else { 1 };
    let opened = daemons.iter().filter_map(Daemon::account).map(|account| account.attacks().opened).sum();
    super::made(&Overview {
        frame: Frame::of("/", "Overview", look, &daemons),
        health: health(&daemons),
        tallies: Group::ALL.into_iter().zip(counts(&seen)).map(tally).collect(),
        known: number(seen.len() as u64),
        open: open_attacks(&daemons),
        opened: number(opened),
        chart: Chart::new(&look.trend(BARS, steps), steps),
        is_hour,
        gates: daemons.iter().filter_map(gate).collect(),
    })
}
