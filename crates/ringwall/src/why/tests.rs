//! Checks at given facts, and their document.

use std::fmt::Write as _;

use identity::certificate::Refusal;

use super::facts::{Facts, Known, Path, Target, Way};
use super::*;
use crate::metrics::tests::link_layer;
use crate::modes::name::Mode;
use crate::protocol::{About, Answer, Event, Example, Key, Peer};
use crate::verdict::Level;

/// Set, the document is written instead of compared (packaging/pages.sh).
const WRITE_VARIABLE: &str = "RINGWALL_WRITE_PAGES";
const NOW_MS: u64 = 1_795_000_000_000;
const MAC: &str = "02:00:00:00:00:02";
const IP: &str = "192.0.2.2";

/// A host that was asked for by its address, tried, and has not answered.
fn facts() -> Facts {
    let Answer::Status(mut status) = *link_layer().status else { panic!("a host") };
    status.attacks.open.clear();
    Facts {
        target: Target {
            asked: IP.to_owned(),
            name: None,
            macs: vec![MAC.to_owned()],
            ips: vec![IP.parse().expect("it")],
        },
        status,
        known: Known::Peers(Vec::new()),
        events: Vec::new(),
        examples: Vec::new(),
        way: Way::Link,
        neighbour: None,
        path: Path::Untried,
        is_tried: true,
        unix_ms: NOW_MS,
    }
}

fn peer(state: &str) -> Peer {
    let Answer::Peers { mut peers } = *link_layer().known else { panic!("peers") };
    let peer = peers.remove(0);
    Peer { state: state.to_owned(), addresses: vec![IP.to_owned()], ..peer }
}

fn refused(reason: &str, detail: &str, ago_ms: u64) -> Event {
    let (reason, detail) = (Some(reason.to_owned()), Some(detail.to_owned()));
    let about = About { mac: Some(MAC.to_owned()), reason, detail, ..About::default() };
    Event { number: 1, unix_ms: NOW_MS - ago_ms, event: "refused".to_owned(), text: String::new(), about }
}

fn dropped(reason: &str, ago_ms: u64) -> Example {
    Example {
        reason: reason.to_owned(),
        from: "wire".to_owned(),
        ago_ms,
        len: 60,
        source: MAC.to_owned(),
        destination: "-".to_owned(),
        ethertype: "-".to_owned(),
        packet: None,
        head_hex: String::new(),
    }
}

/// Everything but the way, as one text with the name of each check.
fn told(facts: &Facts) -> Vec<String> {
    let lines = lines(facts).into_iter().filter(|line| line.check != "way");
    lines.map(|line| line.finding.line(line.check)).collect()
}

#[track_caller]
fn assert_told(facts: &Facts, starts: &[&str]) {
    let told = told(facts);
    let fits = told.len() == starts.len() && told.iter().zip(starts).all(|(line, start)| line.starts_with(start));
    assert!(fits, "{told:#?} is not {starts:#?}");
}

#[test]
fn each_refusal_of_a_certificate_has_the_remedy_of_its_cause() {
    let cases = [
        (Refusal::Expired { not_after_unix: 1 }.to_string(), "ringwall host renew"),
        (Refusal::NotYetValid { not_before_unix: 1 }.to_string(), "set this host's clock"),
        (Refusal::ForeignIssuer.to_string(), "enrol it with this site"),
        (Refusal::BadSignature.to_string(), "enrol it with this site"),
        ("the certificate of b was revoked".to_owned(), "issue it a new certificate"),
    ];
    for (detail, remedy) in cases {
        let facts = Facts { events: vec![refused("bad-certificate", &detail, 1000)], ..facts() };
        let told = told(&facts);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(&detail) && told[0].contains(remedy), "{remedy}: {told:?}");
    }
}

#[test]
fn what_an_association_has_settled_is_told_no_more_and_what_came_after_it_is() {
    // The association is 60 s old.
    let before = refused("bad-certificate", "it expired at noon", 61_000);
    let sealed = || Known::Peers(vec![peer("established")]);
    let facts = || Facts { known: sealed(), events: vec![before.clone()], ..facts() };
    assert_told(&facts(), &["ok        association: sealed with b"]);
    let after = refused("inner-source", "", 59_000);
    let facts = || Facts { events: vec![before.clone(), after.clone()], ..facts() };
    assert_told(&facts(), &["ok        association", "critical  refused: refused here (inner-source)"]);
    let long_ago =
        Facts { known: Known::Peers(Vec::new()), events: vec![refused("weak-offer", "", 700_000)], ..facts() };
    assert_told(&long_ago, &["critical  answer"]);
}

#[test]
fn who_is_silent_is_told_from_who_was_not_asked() {
    assert_told(&facts(), &["critical  answer: 192.0.2.2 does not answer"]);
    let mut quiet = facts();
    quiet.is_tried = false;
    assert_told(&quiet, &["unknown   answer: nothing passed"]);
    let own = quiet.ask_there();
    assert!(own.contains("type there `ringwall why 02:00:00:00:00:01`"), "{own}");
}

#[test]
fn what_says_nothing_of_an_association_makes_nothing_good() {
    // A switch floods frames for others.
    let flooded = Facts { examples: vec![dropped("not-for-us", 10)], ..facts() };
    assert_told(&flooded, &["critical  answer"]);
    let mut shield = Facts { known: Known::Nobody, ..facts() };
    shield.status.mode = Mode::Shield;
    assert_told(&shield, &["unknown   association: mode shield"]);
}

#[test]
fn in_mode_sarp_a_key_stands_for_an_answer() {
    let key = |heard| Key { address: IP.to_owned(), mac: Some(MAC.to_owned()), fetched_s: 1, heard };
    let of = |keys| {
        let mut facts = Facts { known: Known::Keys(keys), path: Path::Silent, ..facts() };
        let sarp = r#"{ "clock_unix_s": 1, "window_s": 60, "sign_requests": true, "keys": 1, "open_requests": 0,
            "distributors_silent": false, "asked_first": null, "distributors": [], "known_hosts": 0 }"#;
        facts.status.parts.sarp = Some(serde_json::from_str(sarp).expect("as the protocol has it"));
        facts
    };
    assert_told(&of(vec![key(true)]), &["ok        key: the key of 192.0.2.2 is here"]);
    assert_told(&of(vec![key(false)]), &["warning   key"]);
    assert_told(&of(Vec::new()), &["warning   key: no key", "critical  answer"]);
    let mut silent = of(vec![key(true)]);
    silent.status.parts.sarp.as_mut().expect("it").distributors_silent = true;
    assert_told(&silent, &["critical  key: no key distributor", "ok        key"]);
}

#[test]
fn frames_in_clear_are_told_with_the_rule_that_drops_them() {
    let mut plain = Facts { examples: vec![dropped("unsealed", 5000)], ..facts() };
    assert_told(&plain, &["critical  clear: 192.0.2.2 (02:00:00:00:00:02) speaks in clear, and mode prefer"]);
    let policy = plain.status.parts.policy.as_mut().expect("one");
    (policy.group, policy.mode) = (Some("desks".to_owned()), Some("prefer".to_owned()));
    assert!(told(&plain)[0].contains("of the group desks (site policy, version 4)"), "{:?}", told(&plain));
    plain.examples = vec![dropped("downgrade", 5000)];
    assert!(told(&plain)[0].contains("ringwall host forget"), "{:?}", told(&plain));
    plain.examples.clear();
    plain.known = Known::Peers(vec![peer("plain")]);
    assert_told(&plain, &["warning   clear"]);
}

#[test]
fn clocks_a_minute_apart_are_told_and_a_clock_that_is_right_is_not() {
    let ahead = |seconds| {
        let mut peer = peer("established");
        peer.shown.clock_ahead_s = Some(seconds);
        Facts { known: Known::Peers(vec![peer]), ..facts() }
    };
    assert_told(&ahead(60), &["ok        association"]);
    assert_told(&ahead(-61), &["warning   clock: the clock of b is 61 s behind", "ok        association"]);
    assert_told(&ahead(3 * 86_400), &["warning   clock: the clock of b is 3 days ahead", "ok        association"]);
}

#[test]
fn states_between_and_lists_and_paths_have_their_words() {
    let of = |state| Facts { known: Known::Peers(vec![peer(state)]), ..facts() };
    assert_told(&of("candidate"), &["warning   association: a handshake with b"]);
    assert_told(&of("agreeing"), &["warning   association: the ML-KEM exchange"]);
    let short = Facts { path: Path::Short(1435), ..of("established") };
    assert_told(&short, &["ok        association", "critical  mtu: 192.0.2.2 answers short pings, and none of 1435"]);
    let mut listed = facts();
    let migration = listed.status.parts.migration.as_mut().expect("one");
    migration.legacy = [(IP.to_owned(), MAC.to_owned())].into();
    assert_told(&listed, &["warning   list: 192.0.2.2 is on the legacy list"]);
    let challenged = Event { event: "challenged".to_owned(), ..refused("x", "", 10) };
    let challenged = Event { about: About { mac: Some(MAC.to_owned()), ..About::default() }, ..challenged };
    assert_told(&Facts { events: vec![challenged], ..facts() }, &["warning   challenge", "critical  answer"]);
}

#[test]
fn other_ways_are_unknown_and_say_whom_to_ask() {
    let of = |way| overall(lines(&Facts { way, ..facts() }).iter().map(|line| line.finding.level));
    assert_eq!(of(Way::Here), Level::Good);
    assert_eq!(of(Way::Via("192.0.2.1".parse().expect("it"))), Level::Unknown);
    assert_eq!(of(Way::Nowhere("unreachable".to_owned())), Level::Critical);
}

#[test]
fn the_document_names_every_check_of_why() {
    let mut page = String::from(
        "# What `ringwall why HOST` looks at\n\nMade by `packaging/pages.sh`; a test compares. It changes nothing; \
         unless `--no-probe` is given it sends HOST\none datagram to the port discard, and some pings once they \
         can talk. What \
         happened up to ten minutes ago counts,\nunless an association has settled it since. Exit status as with \
         `ringwall doctor`.\n\n| check | what it looks at |\n|---|---|\n",
    );
    for Check { name, about, .. } in CHECKS {
        let _ = writeln!(page, "| `{name}` | {about} |");
    }
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/why.md");
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        std::fs::write(&file, page).expect("written");
    } else {
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), page, "run packaging/pages.sh");
    }
}
