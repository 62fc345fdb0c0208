//! All hosts of the site, as its service tells.

use std::io;

use askama::Template;

use super::super::look::{Look, unix_s};
use super::super::site::{Clear, Legacy, Site};
use super::frame::{Frame, number, span, time};
use super::listing::{Pager, ROWS, filter};
use super::peers::left;
use crate::output::clean;
use crate::site::BriefHost;

/// What was told longer ago than this is called old, whether or not the service is away.
const OLD_AFTER_S: u64 = 15 * 60;
/// Days before its end at which a certificate is pressing.
const PRESSING_S: u64 = 7 * 86_400;
/// The mode in which nothing in clear is let in.
const ENFORCE: &str = "enforce";

/// How a host of the site stands. One host may stand in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Missing,
    Attacked,
    Lenient,
    Behind,
    Ending,
}

impl Standing {
    const ALL: [Standing; 5] =
        [Standing::Missing, Standing::Attacked, Standing::Lenient, Standing::Behind, Standing::Ending];

    fn word(self) -> &'static str {
        match self {
            Standing::Missing => "missing",
            Standing::Attacked => "attacked",
            Standing::Lenient => "lenient",
            Standing::Behind => "behind",
            Standing::Ending => "ending",
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Standing::Missing => "did not report within five minutes",
            Standing::Attacked => "with attacks that go on",
            Standing::Lenient => "let hosts in that speak in clear",
            Standing::Behind => "without the newest policy",
            Standing::Ending => "whose certificate ends within 7 days",
        }
    }

    /// Of who is missing nothing else is known for now.
    fn is_of(self, host: &BriefHost, site: &Site) -> bool {
        let is_here = !host.is_silent;
        match self {
            Standing::Missing => host.is_silent,
            Standing::Attacked => is_here && host.attacks_open > 0,
            Standing::Lenient => is_here && host.migration.as_deref().is_some_and(|mode| mode != ENFORCE),
            Standing::Behind => is_here && host.policy_version < site.told.policy_version,
            Standing::Ending => host.certificate_not_after_unix < unix_s() + PRESSING_S,
        }
    }
}

/// A standing to choose, and how many stand so.
struct Choice {
    word: &'static str,
    meaning: &'static str,
    count: String,
    is_chosen: bool,
    /// Whether nobody should.
    is_wrong: bool,
}

/// A row of the list.
struct Row {
    name: String,
    link: String,
    mac: String,
    addresses: String,
    mode: String,
    policy: String,
    reported: String,
    dropped: String,
    attacks: String,
    has_attacks: bool,
    certificate: String,
    is_silent: bool,
}

impl Row {
    fn of(host: &BriefHost) -> Row {
        let word = |word: &Option<String>| word.as_deref().map_or_else(String::new, clean);
        let mode = [word(&host.mode), word(&host.migration)].join(" ");
        let ago = |unix: u64| format!("{} ago", span(unix_s().saturating_sub(unix)));
        Row {
            name: clean(&host.name),
            link: format!("/host?who={}", super::super::http::encode(&host.name)),
            mac: clean(&host.mac),
            addresses: clean(&host.addresses.join(" ")),
            mode: if mode.trim().is_empty() { "not known".to_owned() } else { mode.trim().to_owned() },
            policy: host.policy_version.map_or_else(|| "none".to_owned(), |version| version.to_string()),
            reported: host.reported_unix.map_or_else(|| "never".to_owned(), ago),
            dropped: host.dropped.map_or_else(|| "not known".to_owned(), number),
            attacks: number(host.attacks_open),
            has_attacks: host.attacks_open > 0,
            certificate: left(host.certificate_not_after_unix).unwrap_or_else(|| "over".to_owned()),
            is_silent: host.is_silent,
        }
    }
}

/// Who would be cut off.
struct ClearRow {
    mac: String,
    name: String,
    addresses: String,
    protocols: String,
    frames: String,
    heard_by: String,
    last: String,
}

impl ClearRow {
    fn of(clear: &Clear) -> ClearRow {
        ClearRow {
            mac: clean(&clear.mac),
            name: clear.enrolled_as.as_deref().map_or_else(|| "not enrolled".to_owned(), clean),
            addresses: clean(&clear.addresses.join(" ")),
            protocols: clean(&clear.protocols.join(" ")),
            frames: number(clear.frames),
            heard_by: number(clear.heard_by),
            last: time(clear.last_unix.saturating_mul(1000)),
        }
    }
}

struct LegacyRow {
    ip: String,
    mac: String,
    role: &'static str,
}

impl LegacyRow {
    fn of(legacy: &Legacy) -> LegacyRow {
        let role = if legacy.router { "router" } else { "host" };
        LegacyRow { ip: clean(&legacy.ip), mac: clean(&legacy.mac), role }
    }
}

#[derive(Template)]
#[template(path = "console/site.html")]
struct Page {
    frame: Frame,
    service: String,
    /// When it was told; none where nothing was.
    told: Option<String>,
    /// Why there is nothing newer.
    away: Option<String>,
    is_old: bool,
    total: String,
    policy: String,
    choices: Vec<Choice>,
    text: String,
    rows: Vec<Row>,
    pager: Pager,
    is_cut: bool,
    plain: Plain,
    listed: Listed,
}

/// Whom enforcing would cut off.
struct Plain {
    rows: Vec<ClearRow>,
    /// How many more there are, if any.
    more: String,
    /// Why it is not known.
    no_forecast: Option<String>,
}

impl Plain {
    fn of(site: &Site) -> Plain {
        let told = &site.told;
        let more = told.clear_left_out.saturating_add(told.clear.len().saturating_sub(ROWS) as u64);
        Plain {
            rows: told.clear.iter().take(ROWS).map(ClearRow::of).collect(),
            more: if more > 0 { number(more) } else { String::new() },
            no_forecast: told.no_forecast.as_deref().map(clean),
        }
    }
}

/// Whom the policy lists as unable to speak under seal.
struct Listed {
    rows: Vec<LegacyRow>,
    more: u64,
}

impl Listed {
    fn of(site: &Site) -> Listed {
        let told = &site.told;
        let more = told.legacy_left_out.saturating_add(told.legacy.len().saturating_sub(ROWS) as u64);
        Listed { rows: told.legacy.iter().take(ROWS).map(LegacyRow::of).collect(), more }
    }
}

/// None where no service is asked.
pub(in super::super) fn site(look: &Look, query: &str) -> io::Result<Option<String>> {
    let (daemons, Some(site)) = (look.daemons()?, look.site()?) else { return Ok(None) };
    let (text, standing) = (filter(query, "q"), filter(query, "standing"));
    let hosts = &site.told.hosts;
    let choices = Standing::ALL.map(|one| choice(one, &site, &standing));
    let chosen = Standing::ALL.into_iter().find(|one| one.word() == standing);
    let fits = |host: &&BriefHost| chosen.is_none_or(|one| one.is_of(host, &site)) && has(host, &text);
    let found: Vec<&BriefHost> = hosts.iter().filter(fits).collect();
    let pager = Pager::new("/site", query, &[("q", &text), ("standing", &standing)], found.len());
    let page = Page {
        frame: Frame::of("/site", "Site", look, &daemons),
        service: clean(&site.service),
        told: site.told_unix.map(|unix| time(unix * 1000)),
        away: site.failing.as_ref().map(|why| format!("{}: {}", time(why.since_unix * 1000), clean(&why.why))),
        is_old: site.told_unix.is_some_and(|unix| unix + OLD_AFTER_S < unix_s()) || site.failing.is_some(),
        total: number(hosts.len() as u64),
        policy: site.told.policy_version.map_or_else(|| "no policy".to_owned(), |version| format!("version {version}")),
        choices: choices.into(),
        text: clean(&text),
        rows: found.iter().skip(pager.skip()).take(ROWS).map(|host| Row::of(host)).collect(),
        pager,
        is_cut: site.told.is_cut,
        plain: Plain::of(&site),
        listed: Listed::of(&site),
    };
    super::made(&page).map(Some)
}

fn choice(standing: Standing, site: &Site, chosen: &str) -> Choice {
    let count = site.told.hosts.iter().filter(|host| standing.is_of(host, site)).count();
    Choice {
        word: standing.word(),
        meaning: standing.meaning(),
        count: number(count as u64),
        is_chosen: standing.word() == chosen,
        is_wrong: count > 0 && matches!(standing, Standing::Missing | Standing::Attacked | Standing::Ending),
    }
}

/// Whether a name or an address of it has this in it.
fn has(host: &BriefHost, text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let is_in = |word: &String| word.to_ascii_lowercase().contains(&text);
    [&host.name, &host.mac].into_iter().chain(&host.addresses).any(is_in)
}
