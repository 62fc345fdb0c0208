//! What routes, rules and lists say of the other host.

use std::collections::BTreeMap;

use super::facts::{Facts, Known, Path, Way};
use crate::finding::Finding;
use crate::protocol::attacks::PartyOf;
use crate::protocol::{OWN_REVOKED, Peer, Status};

/// Two clocks further apart than this are worth a word, in seconds: handshakes are challenged then.
const CLOCKS_APART_S: u64 = 60;

pub(super) fn way(facts: &Facts) -> Vec<Finding> {
    let host = facts.target.word();
    let interface = &facts.status.interface;
    let found = match &facts.way {
        Way::Here => Finding::good(format!("{host} is this host")),
        Way::Link => Finding::good(format!("packets to {host} leave by {interface}, straight to it")),
        Way::Via(router) => Finding::unknown(
            format!("{host} is not in this network: packets to it go to the router {router}"),
            format!("what is sealed ends there; ask `ringwall why {router}`"),
        ),
        Way::Elsewhere(other) => Finding::unknown(
            format!("packets to {host} leave by {other}, which this daemon does not guard"),
            format!("see `ip route get {host}`"),
        ),
        Way::Nowhere(why) => {
            Finding::critical(format!("the kernel has no route to {host}: {why}"), "see `ip address` and `ip route`")
        }
        Way::Unknown => return Vec::new(),
    };
    vec![found]
}

pub(super) fn card(facts: &Facts) -> Vec<Finding> {
    let lost = || Finding::critical(format!("{} has no carrier", facts.status.interface), "look at cable and switch");
    if facts.status.takeover.carrier { Vec::new() } else { vec![lost()] }
}

pub(super) fn layers(facts: &Facts) -> Vec<Finding> {
    let weakened = &facts.status.weakened;
    let is_null = matches!(facts.known, Known::Nobody) && !facts.status.mode.protects();
    match (is_null, weakened.as_slice()) {
        (true, _) => vec![Finding::critical("mode null protects nothing", "choose another host.mode")],
        (false, []) => Vec::new(),
        (false, _) => {
            let what = format!("a laboratory changed this host: {}", weakened.join(", "));
            vec![Finding::warning(what, "remove [lab] and host.profile")]
        }
    }
}

pub(super) fn own_certificate(facts: &Facts) -> Vec<Finding> {
    let Some(own) = &facts.status.identity else { return Vec::new() };
    let mut found = Vec::new();
    let ends = own.certificate_not_after_unix.min(own.authority_not_after_unix);
    if ends != 0 && ends <= facts.unix_ms / 1000 {
        found.push(Finding::critical(
            "this host's own certificate, or its authority's, is over: every host refuses it",
            "renew it (`ringwall host renew`), or have the authority issue a new one (`ringwall site issue`)",
        ));
    }
    if facts.status.warnings.iter().any(|warning| warning == OWN_REVOKED) {
        let remedy = "have the authority issue a new certificate (`ringwall site issue`), or take this host out";
        found.push(Finding::critical(OWN_REVOKED, remedy));
    }
    found
}

pub(super) fn clock(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    if facts.status.clock == "wrong" {
        let what = "this host's clock cannot be right: certificates are judged by when they were issued";
        found.push(Finding::warning(what, "set it, and have chrony or systemd-timesyncd keep it"));
    }
    let Some((peer, ahead)) = facts.peer().and_then(|peer| Some((peer, peer.shown.clock_ahead_s?))) else {
        return found;
    };
    if ahead.unsigned_abs() > CLOCKS_APART_S {
        let side = if ahead > 0 { "ahead of" } else { "behind" };
        let what = format!("the clock of {} is {} {side} this host's", peer.name, span(ahead.unsigned_abs()));
        found.push(Finding::warning(
            what,
            "compare `date -u` on both with a clock that is right, and set the wrong one",
        ));
    }
    found
}

/// A time that a person reads.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

pub(super) fn association(facts: &Facts) -> Vec<Finding> {
    if matches!(facts.known, Known::Nobody) && facts.status.mode.protects() && facts.way != Way::Here {
        let what = format!("mode {} has no associations of its own with hosts", facts.status.mode.word());
        return vec![Finding::unknown(what, "see `ringwall peers` and `ringwall explain`")];
    }
    let Some(peer) = facts.peer().filter(|peer| peer.state != "plain") else { return Vec::new() };
    let heard = peer.last_opened_s.map_or_else(|| "never".to_owned(), |ago| format!("{} ago", span(ago)));
    let who = format!("{} ({})", peer.name, peer.mac);
    let found = match peer.state.as_str() {
        "established" => Finding::good(format!(
            "sealed with {who} for {}, last heard {heard}; sends {}, hears {}",
            span(peer.age_s),
            peer.sends,
            peer.receives
        )),
        "agreeing" => Finding::warning(
            format!("the ML-KEM exchange with {who} is not over, and payload waits for it"),
            "ask again in some seconds; if it stays so, see `ringwall events` on both hosts",
        ),
        "candidate" => Finding::warning(
            format!("a handshake with {who} was answered {} ago, and no frame of it has come since", span(peer.age_s)),
            format!("if it stays so, {} refused the answer; {}", peer.name, facts.ask_there()),
        ),
        other => Finding::warning(format!("the association with {who} is {other}"), "ask again in some seconds"),
    };
    vec![found]
}

pub(super) fn key(facts: &Facts) -> Vec<Finding> {
    let (Known::Keys(keys), Some(sarp)) = (&facts.known, &facts.status.parts.sarp) else { return Vec::new() };
    let mut found = Vec::new();
    if sarp.distributors_silent {
        let remedy = "see whether a distributor runs and can be reached";
        found.push(Finding::critical("no key distributor answers: keys that are not here cannot be fetched", remedy));
    }
    let host = facts.target.word();
    if let Some(key) = keys.iter().find(|key| facts.target.has_ip(&key.address)) {
        let bound = key.mac.as_deref().unwrap_or("any hardware address");
        let what = format!("the key of {host} is here, for {bound}");
        found.push(match key.heard {
            true => Finding::good(format!("{what}, and a message of its owner was verified")),
            false => Finding::warning(format!("{what}; no message of its owner has come"), facts.ask_there()),
        });
    } else if facts.way == Way::Link {
        let what = format!("no key of {host} is here: it was not asked for, or the site has none");
        found.push(Finding::warning(what, "enrol it (`ringwall join`), or list it in sarp.known_hosts"));
    }
    found
}

pub(super) fn list(facts: &Facts) -> Vec<Finding> {
    let Some(migration) = &facts.status.parts.migration else { return Vec::new() };
    let host = facts.target.word();
    let mut found = Vec::new();
    if let Some((ip, mac)) = facts.listed() {
        let what = format!("{host} is on the legacy list ({ip} at {mac}): it is spoken to in clear, and never sealed");
        let remedy =
            "once it is enrolled, take it off: `ringwall site policy legacy remove`, or [[cll.legacy]] of this file";
        found.push(Finding::warning(what, remedy));
    }
    if let Some((mac, mode)) = migration.exceptions.iter().find(|(mac, _)| facts.target.has_mac(mac)) {
        let what = format!("an exception treats {mac} by mode {mode}, whatever the mode of this host is");
        found.push(Finding::warning(what, "take it out of the site's policy, or of cll.exception"));
    }
    let is_named = |manager: &&String| facts.target.macs.iter().any(|mac| manager.contains(mac.as_str()));
    if let Some(manager) = migration.management.iter().find(is_named) {
        let what = format!("it is a management machine, answered in clear: {manager}");
        found.push(Finding::warning(what, "that is meant; otherwise take it out of cll.management"));
    }
    found
}

/// Reasons for which frames in clear end here.
const IN_CLEAR: [&str; 4] = ["unsealed", "plain-arp", "downgrade", "legacy-address"];

pub(super) fn clear(facts: &Facts) -> Vec<Finding> {
    let host = facts.target.word();
    let mut reasons: BTreeMap<&str, &str> = BTreeMap::new();
    for one in facts.dropped().filter(|one| IN_CLEAR.contains(&one.reason.as_str())) {
        reasons.insert(&one.reason, &one.source);
    }
    if let Some(mac) = reasons.get("downgrade") {
        let what =
            format!("frames in clear came from {mac}, which has proved itself: somebody forges, or it fell back");
        return vec![Finding::critical(what, format!("if it was taken back to clear, `ringwall host forget {mac}`"))];
    }
    if let Some(mac) = reasons.get("legacy-address") {
        let what = format!("{mac} uses another address than the legacy list gives it");
        return vec![Finding::critical(what, "correct the list, or look for the machine that clones it")];
    }
    if let (Some((reason, mac)), None) = (reasons.iter().next(), facts.listed()) {
        let what = format!("{host} ({mac}) speaks in clear, and {} drops that ({reason})", rule(&facts.status));
        let remedy = "enrol it (`ringwall join` there), or, if it cannot be, put it on the legacy list";
        return vec![Finding::critical(what, remedy)];
    }
    facts.peer().filter(|peer| peer.state == "plain").map(|peer| let_in(facts, peer)).into_iter().collect()
}

/// A host in clear that the mode in force lets in.
fn let_in(facts: &Facts, peer: &Peer) -> Finding {
    let dropped: u64 = peer.in_clear.would_drop.values().sum();
    let what = format!(
        "{} ({}) speaks in clear, and {} lets it; enforce would have dropped {dropped} frames",
        facts.target.word(),
        peer.mac,
        rule(&facts.status)
    );
    Finding::warning(what, "enrol it (`ringwall join` there); who else would be cut off: `ringwall forecast`")
}

/// The mode in force, and who says so.
fn rule(status: &Status) -> String {
    let mode = status.parts.migration.as_ref().map_or("enforce", |migration| migration.mode.mode().word());
    let policy = status.parts.policy.as_ref();
    match policy.and_then(|policy| Some((policy.group.as_ref()?, policy.version?, policy.mode.as_ref()?))) {
        Some((group, version, of_group)) if of_group == mode => {
            format!("mode {mode} of the group {group} (site policy, version {version})")
        }
        _ => format!("mode {mode} (cll.migration of this host)"),
    }
}

pub(super) fn mtu(facts: &Facts) -> Vec<Finding> {
    let host = facts.target.word();
    match facts.path {
        Path::Untried | Path::Silent => Vec::new(),
        Path::Whole => vec![Finding::good(format!("{host} answers pings, also those of full size"))],
        Path::Short(bytes) => {
            let what =
                format!("{host} answers short pings, and none of {bytes} bytes: something between has a smaller MTU");
            let remedy = "raise it on switch, bridge or tunnel between, or lower the card's on both hosts";
            vec![Finding::critical(what, remedy)]
        }
    }
}

pub(super) fn attack(facts: &Facts) -> Vec<Finding> {
    let is_party = |party: &PartyOf| {
        party.mac.as_ref().is_some_and(|mac| facts.target.has_mac(mac))
            || party.ip.as_ref().is_some_and(|ip| facts.target.has_ip(ip))
    };
    let open = facts.status.attacks.open.iter().filter(|attack| is_party(&attack.source) || is_party(&attack.claimed));
    open.map(|attack| Finding::warning(attack.sentence.clone(), attack.sort.advice.clone())).collect()
}
