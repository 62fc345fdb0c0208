//! Whom this machine knows: the list, the map, and one host.

use std::io;

use askama::Template;

use super::super::look::{Daemon, Look, unix_s};
use super::attacks::{Open, Past, open_attacks};
use super::frame::{Frame, number, span, time};
use super::hosts::{Group, Seen, counts, keep, seen};
use super::listing::{Pager, ROWS, filter};
use super::scene::{Scene, link};
use crate::output::clean;
use crate::protocol::Peer;
use crate::recorder::history::Wanted;

/// Rows of the history of one host.
const ROWS_OF_HOST: u32 = 50;

/// A row of the list.
struct Row {
    link: String,
    name: String,
    interface: String,
    mac: String,
    addresses: String,
    group: &'static str,
    state: String,
    heard: String,
}

impl Row {
    fn of(seen: &Seen<'_>) -> Row {
        Row {
            link: link(seen),
            name: seen.name(),
            interface: clean(seen.interface),
            mac: clean(seen.mac()),
            addresses: seen.addresses(),
            group: seen.group.word(),
            state: seen.state(),
            heard: seen.heard(),
        }
    }
}

/// A group to choose, and how many are in it.
struct Choice {
    word: &'static str,
    meaning: &'static str,
    count: String,
    is_chosen: bool,
}

fn choices(seen: &[Seen<'_>], chosen: &str) -> Vec<Choice> {
    let choice = |(group, count): (Group, usize)| Choice {
        word: group.word(),
        meaning: group.meaning(),
        count: number(count as u64),
        is_chosen: group.word() == chosen,
    };
    Group::ALL.into_iter().zip(counts(seen)).map(choice).collect()
}

#[derive(Template)]
#[template(path = "console/peers.html")]
struct Peers {
    frame: Frame,
    choices: Vec<Choice>,
    text: String,
    rows: Vec<Row>,
    pager: Pager,
}

pub(in super::super) fn peers(look: &Look, query: &str) -> io::Result<String> {
    let (daemons, known) = (look.daemons()?, look.known()?);
    let mut seen = seen(&daemons, &known);
    let (text, group) = (filter(query, "q"), filter(query, "group"));
    let choices = choices(&seen, &group);
    keep(&mut seen, &group, &text);
    let pager = Pager::new("/peers", query, &[("q", &text), ("group", &group)], seen.len());
    let rows = seen.iter().skip(pager.skip()).take(ROWS).map(Row::of).collect();
    super::made(&Peers {
        frame: Frame::of("/peers", "Peers", look, &daemons),
        choices,
        text: clean(&text),
        rows,
        pager,
    })
}

#[derive(Template)]
#[template(path = "console/map.html")]
struct Map {
    frame: Frame,
    choices: Vec<Choice>,
    total: String,
    scene: Scene,
    /// This machine, in the middle.
    own: String,
}

pub(in super::super) fn map(look: &Look) -> io::Result<String> {
    let (daemons, known) = (look.daemons()?, look.known()?);
    let seen = seen(&daemons, &known);
    let own = daemons.iter().filter_map(Daemon::host).filter_map(|status| status.identity.as_ref()).next();
    let own = own.map_or_else(|| "this machine".to_owned(), |own| clean(&own.name));
    let (choices, total) = (choices(&seen, ""), number(seen.len() as u64));
    super::made(&Map { frame: Frame::of("/map", "Map", look, &daemons), choices, total, scene: Scene::new(seen), own })
}

/// What one daemon says of a host: names of facts, and facts.
struct Side {
    interface: String,
    group: &'static str,
    meaning: &'static str,
    facts: Vec<(&'static str, String)>,
}

impl Side {
    fn of(seen: &Seen<'_>) -> Side {
        let mut facts = vec![
            ("name", seen.name()),
            ("hardware address", clean(seen.mac())),
            ("addresses", seen.addresses()),
            ("state", seen.state()),
            ("heard", seen.heard()),
        ];
        facts.extend(seen.peer().iter().flat_map(|peer| of_peer(peer)));
        Side { interface: clean(seen.interface), group: seen.group.word(), meaning: seen.group.meaning(), facts }
    }
}

fn of_peer(peer: &Peer) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("for", span(peer.age_s)),
        ("sent to it", clean(&peer.sends)),
        ("heard from it", clean(&peer.receives)),
        ("keys from", clean(&peer.agreement)),
        ("rollovers", peer.rollovers.to_string()),
    ];
    if peer.router {
        facts.push(("role", "router".to_owned()));
    }
    if peer.shown.certificate_not_after_unix > 0 {
        facts.push(("certificate ends", time(peer.shown.certificate_not_after_unix.saturating_mul(1000))));
    }
    facts.extend(peer.shown.clock_ahead_s.map(|ahead| ("its clock", clock(ahead))));
    let dropped =
        |(reason, count): (&String, &u64)| ("enforcing would drop", format!("{} {}", number(*count), clean(reason)));
    facts.extend(peer.in_clear.would_drop.iter().map(dropped));
    let broken = |what: &crate::modes::cll::peers::ClearUse| {
        ("enforcing would break", format!("{}, {} frames", clean(&what.protocol), number(what.frames)))
    };
    facts.extend(peer.in_clear.would_break.iter().map(broken));
    facts
}

fn clock(ahead_s: i64) -> String {
    match ahead_s {
        0 => "the same as here".to_owned(),
        1.. => format!("{} ahead", span(ahead_s.unsigned_abs())),
        _ => format!("{} behind", span(ahead_s.unsigned_abs())),
    }
}

#[derive(Template)]
#[template(path = "console/host.html")]
struct Host {
    frame: Frame,
    who: String,
    sides: Vec<Side>,
    open: Vec<Open>,
    past: Vec<Past>,
}

pub(in super::super) fn host(look: &Look, query: &str) -> io::Result<String> {
    let (daemons, known) = (look.daemons()?, look.known()?);
    let who = filter(query, "who");
    let all = seen(&daemons, &known);
    let is_it = |one: &&Seen<'_>| {
        one.id() == who || one.mac() == who || one.name() == who || one.addresses().split(' ').any(|own| own == who)
    };
    let sides: Vec<Side> = all.iter().filter(is_it).map(Side::of).collect();
    let newest = Some((ROWS_OF_HOST, 0));
    let mut past = look.history(Wanted { about: Some(who.clone()), newest, ..Wanted::default() })?;
    past.reverse();
    let about = |open: &Open| [&open.source, &open.claimed].iter().any(|party| party.split(' ').any(|one| one == who));
    let open = open_attacks(&daemons).into_iter().filter(about).collect();
    let named = sides.first().and_then(|side| side.facts.first()).filter(|(_, name)| name != "no name");
    let title = named.map_or_else(|| who.clone(), |(_, name)| name.clone());
    super::made(&Host {
        frame: Frame::of("/host", &format!("Host {title}"), look, &daemons),
        who: clean(&who),
        sides,
        open,
        past: past.iter().map(Past::of).collect(),
    })
}

/// How long until a time; none where it is over.
pub(super) fn left(not_after_unix: u64) -> Option<String> {
    not_after_unix.checked_sub(unix_s()).map(span)
}
