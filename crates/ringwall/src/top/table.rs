//! The tables: each row with its cells and what is explained of it. Everything in them is fit for a terminal.

use bump::DropReason;

use super::sample::{Daemon, Sample};
use crate::client::reason_lines;
use crate::output::clean;
use crate::protocol::attacks::Attack;
use crate::protocol::{Flow, Peer};
use crate::status::Certificate;

const DAY_S: u64 = 86_400;

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Drops,
    Peers,
    Attacks,
    Flows,
    Certificates,
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    /// In sentences, one a line.
    pub(super) explained: Vec<String>,
}

impl Row {
    fn new(cells: Vec<String>, explained: Vec<String>) -> Row {
        let clean_all = |texts: Vec<String>| texts.iter().map(|text| clean(text)).collect();
        Row { cells: clean_all(cells), explained: clean_all(explained) }
    }

    /// Whether a cell has `text`, which is in small letters.
    pub(super) fn has(&self, text: &str) -> bool {
        self.cells.iter().any(|cell| cell.to_lowercase().contains(text))
    }
}

impl Pane {
    pub(super) const ALL: [Pane; 5] = [Pane::Drops, Pane::Peers, Pane::Attacks, Pane::Flows, Pane::Certificates];

    pub(super) fn title(self) -> &'static str {
        match self {
            Pane::Drops => "Drops",
            Pane::Peers => "Peers",
            Pane::Attacks => "Attacks",
            Pane::Flows => "Flows",
            Pane::Certificates => "Certificates",
        }
    }

    pub(super) fn columns(self) -> &'static [&'static str] {
        match self {
            Pane::Drops => &["interface", "reason", "per second", "in all"],
            Pane::Peers => &["interface", "name", "hardware", "state", "heard", "addresses"],
            Pane::Attacks => &["interface", "kind", "source", "claims", "frames", "last"],
            Pane::Flows => &["trusted", "untrusted", "state", "idle", "bytes out", "bytes in"],
            Pane::Certificates => &["interface", "of", "ends in"],
        }
    }

    /// Its rows. `before` is an older sample, for rates.
    pub(super) fn rows(self, now: &Sample, before: Option<&Sample>) -> Vec<Row> {
        let of = |daemon: &Daemon| match self {
            Pane::Drops => drops(daemon, now, before),
            Pane::Peers => daemon.peers.iter().map(|one| peer(daemon, one)).collect(),
            Pane::Attacks => daemon.attacks.iter().map(|one| attack(daemon, one)).collect(),
            Pane::Flows => daemon.flows.iter().map(flow).collect(),
            Pane::Certificates => certificates(daemon, now.unix_s),
        };
        now.daemons.iter().flat_map(of).collect()
    }
}

/// Reasons that counted something, the fastest first.
fn drops(daemon: &Daemon, now: &Sample, before: Option<&Sample>) -> Vec<Row> {
    let counted = DropReason::ALL.iter().filter_map(|reason| {
        let count = daemon.drops.get(reason.word()).copied().filter(|count| *count > 0)?;
        Some((rate(daemon, reason.word(), now, before), count, *reason))
    });
    let mut counted: Vec<_> = counted.collect();
    counted.sort_by(|one, other| other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)));
    let row = |(rate, count, reason): (f64, u64, DropReason)| {
        let cells = vec![daemon.interface.clone(), reason.word().to_owned(), format!("{rate:.1}"), count.to_string()];
        Row::new(cells, reason_lines(reason, count, &daemon.examples))
    };
    counted.into_iter().map(row).collect()
}

/// Frames a second since `before`; of a daemon that started since, none.
fn rate(daemon: &Daemon, word: &str, now: &Sample, before: Option<&Sample>) -> f64 {
    let Some(before) = before else { return 0.0 };
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64();
    let old = before.daemons.iter().find(|old| old.interface == daemon.interface && old.uptime_s <= daemon.uptime_s);
    let (Some(old), true) = (old, seconds > 0.0) else { return 0.0 };
    let count = |of: &Daemon| of.drops.get(word).copied().unwrap_or(0);
    let more = u32::try_from(count(daemon).saturating_sub(count(old))).unwrap_or(u32::MAX);
    f64::from(more) / seconds
}

fn peer(daemon: &Daemon, peer: &Peer) -> Row {
    let heard = peer.last_opened_s.map_or_else(|| "never".to_owned(), |seconds| format!("{seconds} s"));
    let addresses = peer.addresses.join(" ");
    let cells =
        vec![daemon.interface.clone(), peer.name.clone(), peer.mac.clone(), peer.state.clone(), heard, addresses];
    let mut explained = vec![
        format!("{}, for {} s; sent as {}, heard as {}", peer.state, peer.age_s, peer.sends, peer.receives),
        format!("keys from {}; rollovers {}; resumed {}", peer.agreement, peer.rollovers, yes(peer.resumed)),
    ];
    for (reason, count) in &peer.in_clear.would_drop {
        explained.push(format!("would be dropped in mode enforce: {count} {reason}"));
    }
    explained.push(format!("more: ringwall why {}", peer.mac));
    Row::new(cells, explained)
}

fn yes(it: bool) -> &'static str {
    if it { "yes" } else { "no" }
}

fn attack(daemon: &Daemon, attack: &Attack) -> Row {
    let source = attack.source.mac.clone().unwrap_or_else(|| attack.source.who());
    let (kind, last) = (attack.sort.kind.clone(), attack.span.last.clone());
    let cells = vec![daemon.interface.clone(), kind, source, attack.claimed.who(), attack.count.to_string(), last];
    Row::new(cells, vec![attack.sentence.clone(), format!("do: {}", attack.sort.advice)])
}

fn flow(flow: &Flow) -> Row {
    let (out, back) = (flow.bytes_from_trusted, flow.bytes_from_untrusted);
    let cells = vec![
        flow.trusted.to_string(),
        flow.untrusted.to_string(),
        flow.state.clone(),
        format!("{} s", flow.idle_s),
        out.to_string(),
        back.to_string(),
    ];
    let packets = format!("packets out {}, in {}", flow.packets_from_trusted, flow.packets_from_untrusted);
    let held = format!("{packets}; {} bytes are kept until they are acknowledged", flow.retained_bytes);
    let held = if flow.carried { format!("{packets}; the kernel carries it") } else { held };
    Row::new(cells, vec![held, format!("end it: ringwall gate block {} {}", flow.trusted, flow.untrusted)])
}

/// Those of one daemon, the one that ends first before the others.
fn certificates(daemon: &Daemon, unix_s: u64) -> Vec<Row> {
    let mut all: Vec<&Certificate> = daemon.certificates.iter().filter(|one| one.not_after_unix > 0).collect();
    all.sort_by_key(|one| one.not_after_unix);
    let row = |one: &&Certificate| {
        let left = match one.not_after_unix.checked_sub(unix_s) {
            None => "OVER".to_owned(),
            Some(left) if left < 2 * DAY_S => format!("{} h", left / 3600),
            Some(left) => format!("{} days", left / DAY_S),
        };
        let ends = identity::certificate::utc_text(one.not_after_unix);
        let explained = vec![format!("it ends at {ends}"), "renew it on its own host: ringwall host renew".to_owned()];
        Row::new(vec![daemon.interface.clone(), one.of.clone(), left], explained)
    };
    all.iter().map(row).collect()
}

/// Cells beside each other, so wide as their columns need; the last has what is left.
pub(super) fn aligned(columns: &[&str], rows: &[&Row]) -> Vec<String> {
    let heads: Vec<String> = columns.iter().map(|head| (*head).to_owned()).collect();
    let all = || std::iter::once(&heads).chain(rows.iter().map(|row| &row.cells));
    let widest =
        |at: usize| all().filter_map(|cells| cells.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(widest).collect();
    let line = |cells: &Vec<String>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all().map(line).collect()
}

/// `text` in lines of at most `width` letters, broken between words where that is possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut letters: Vec<char> = word.chars().collect();
        loop {
            let used = lines.last().map_or(0, |line| line.chars().count());
            let gap = usize::from(used > 0);
            let Some(line) = lines.last_mut() else { break };
            if used + gap + letters.len() <= width {
                line.extend(std::iter::repeat_n(' ', gap).chain(letters));
                break;
            }
            if used > 0 {
                lines.push(String::new());
            } else {
                let rest = letters.split_off(width.max(1).min(letters.len()));
                line.extend(letters);
                letters = rest;
                lines.push(String::new());
            }
        }
    }
    lines
}
