//! Attacks that are under way, the time line of those that were, and the rest of the history.

use std::io;

use askama::Template;
use bump::record::Kind;

use super::super::http::encode;
use super::super::look::{Daemon, Look, unix_s};
use super::frame::{Frame, number, time};
use super::listing::{Pager, ROWS, asked, filter};
use super::scene::{Line, time_line};
use crate::output::clean;
use crate::protocol::attacks::Attack;
use crate::recorder::history::{Row, Wanted};

/// Pages of the history that there may be.
const PAGES_MAX: usize = 10_000;
/// Kinds of rows that are no attacks.
const CHANGES: [&str; 5] = ["address", "started", "stopped", "policy", "order"];

/// An attack that is under way.
pub(super) struct Open {
    pub(super) interface: String,
    pub(super) kind: String,
    pub(super) severity: String,
    /// Who, with the hardware address that he has in truth.
    pub(super) source: String,
    /// Where his page is, if he has an address to be found by.
    pub(super) source_link: String,
    pub(super) claimed: String,
    pub(super) sentence: String,
    pub(super) advice: String,
    pub(super) count: String,
    pub(super) first: String,
    pub(super) last: String,
}

impl Open {
    fn of(attack: &Attack) -> Open {
        Open {
            interface: clean(&attack.place.interface),
            kind: clean(&attack.sort.kind),
            severity: clean(&attack.sort.severity),
            source: clean(&attack.source.who()),
            source_link: attack.source.mac.as_ref().map(|mac| format!("/host?who={}", encode(mac))).unwrap_or_default(),
            claimed: clean(&attack.claimed.who()),
            sentence: clean(&attack.sentence),
            advice: clean(&attack.sort.advice),
            count: number(attack.count),
            first: time(attack.span.first_unix_ms),
            last: time(attack.span.last_unix_ms),
        }
    }
}

pub(super) fn open_attacks(daemons: &[Daemon]) -> Vec<Open> {
    daemons.iter().filter_map(Daemon::account).flat_map(|account| &account.attacks().open).map(Open::of).collect()
}

/// A row of the history.
pub(super) struct Past {
    pub(super) first: String,
    /// When it ended, if it did.
    pub(super) last: Option<String>,
    pub(super) interface: String,
    pub(super) kind: String,
    pub(super) who: String,
    pub(super) count: String,
    pub(super) text: String,
}

impl Past {
    pub(super) fn of(row: &Row) -> Past {
        let who: Vec<&str> = [&row.name, &row.ip, &row.mac].into_iter().flatten().map(String::as_str).collect();
        Past {
            first: time(row.first_unix_ms),
            last: (!row.is_open).then(|| time(row.last_unix_ms)),
            interface: clean(&row.interface),
            kind: clean(&row.kind),
            who: if who.is_empty() { "-".to_owned() } else { clean(&who.join(" ")) },
            count: number(row.count),
            text: clean(&row.text),
        }
    }
}

/// One page of the history, the newest first, and whether there are more.
struct Found {
    rows: Vec<Row>,
    pager: Pager,
}

/// The rows of the page that a query asks for.
fn find(look: &Look, path: &str, query: &str, attacks_only: bool) -> io::Result<Found> {
    let (kind, about) = (filter(query, "kind"), filter(query, "about"));
    let page = asked(query).min(PAGES_MAX);
    let after = u32::try_from((page - 1) * ROWS).unwrap_or(u32::MAX);
    let one = |text: &String| (!text.is_empty()).then(|| text.clone());
    let wanted = Wanted {
        kind: one(&kind),
        about: one(&about),
        attacks_only,
        // One more than is shown says whether there is another page.
        newest: Some((ROWS as u32 + 1, after)),
        ..Wanted::default()
    };
    let mut rows = look.history(wanted)?;
    rows.reverse();
    let total = (page - 1) * ROWS + rows.len();
    rows.truncate(ROWS);
    let pager = Pager::new(path, query, &[("kind", &kind), ("about", &about)], total);
    Ok(Found { rows, pager })
}

/// What may be chosen in a form.
struct Choice {
    word: &'static str,
    is_chosen: bool,
}

fn choices(words: impl Iterator<Item = &'static str>, chosen: &str) -> Vec<Choice> {
    words.map(|word| Choice { word, is_chosen: word == chosen }).collect()
}

#[derive(Template)]
#[template(path = "console/attacks.html")]
struct Attacks {
    frame: Frame,
    open: Vec<Open>,
    line: Line,
    past: Vec<Past>,
    pager: Pager,
    kinds: Vec<Choice>,
    about: String,
}

pub(in super::super) fn attacks(look: &Look, query: &str) -> io::Result<String> {
    let daemons = look.daemons()?;
    let Found { rows, pager } = find(look, "/attacks", query, true)?;
    super::made(&Attacks {
        frame: Frame::of("/attacks", "Attacks", look, &daemons),
        open: open_attacks(&daemons),
        line: time_line(&rows, unix_s() * 1000),
        past: rows.iter().map(Past::of).collect(),
        pager,
        kinds: choices(Kind::ALL.iter().map(|kind| kind.word()), &filter(query, "kind")),
        about: clean(&filter(query, "about")),
    })
}

#[derive(Template)]
#[template(path = "console/history.html")]
struct History {
    frame: Frame,
    past: Vec<Past>,
    pager: Pager,
    kinds: Vec<Choice>,
    about: String,
}

pub(in super::super) fn history(look: &Look, query: &str) -> io::Result<String> {
    let daemons = look.daemons()?;
    let Found { rows, pager } = find(look, "/history", query, false)?;
    let words = CHANGES.into_iter().chain(Kind::ALL.iter().map(|kind| kind.word()));
    super::made(&History {
        frame: Frame::of("/history", "History", look, &daemons),
        past: rows.iter().map(Past::of).collect(),
        pager,
        kinds: choices(words, &filter(query, "kind")),
        about: clean(&filter(query, "about")),
    })
}
