//! What of the other host was refused here, and why it does not answer.

use std::collections::BTreeSet;

use bump::DropReason;

use super::checks::clear;
use super::facts::{Facts, Known, Path, Way};
use crate::finding::Finding;
use crate::protocol::Key;

/// Drop reasons that keep two hosts apart, of frames that make no event.
const APART: [&str; 6] =
    ["handshake-site-mac", "inner-source", "bad-version", "wrong-peer", "arp-not-ours", "certificate-address"];

pub(super) fn refused(facts: &Facts) -> Vec<Finding> {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for event in facts.news() {
        let about = &event.about;
        // What mode enforce would drop is no refusal yet.
        let Some(reason) = about.reason.as_deref().filter(|_| event.event != "plain") else { continue };
        if told.insert(reason) {
            found.push(refusal(facts, reason, about.detail.as_deref().unwrap_or_default()));
        }
    }
    for example in facts.dropped().filter(|one| APART.contains(&one.reason.as_str())) {
        if told.insert(&example.reason) {
            found.push(refusal(facts, &example.reason, ""));
        }
    }
    found
}

/// The words of `identity::certificate::Refusal`, and what is to be done; the first that fits counts.
const CERTIFICATE: [(&str, &str); 5] = [
    ("revoked", "issue it a new certificate (`ringwall site issue`) if it may come back; otherwise leave it out"),
    (
        "expired",
        "renew it there (`ringwall host renew`), or issue a new one (`ringwall site issue`); if it is good, \
         this host's clock is wrong: `date -u`",
    ),
    ("not valid before", "set this host's clock, or that of the authority: `date -u`"),
    ("another site's authority", "enrol it with this site: `ringwall join` there"),
    ("authority's signature", "enrol it with this site: `ringwall join` there"),
];

/// One refusal, with the remedy that fits its cause.
fn refusal(facts: &Facts, reason: &str, detail: &str) -> Finding {
    let host = facts.target.word();
    let known = DropReason::ALL.iter().find(|one| one.word() == reason);
    let (meaning, remedy) = known.map_or(("", ""), |one| (one.meaning(), one.remedy()));
    let cause = if detail.is_empty() { meaning.trim_end_matches('.') } else { detail };
    let what = match known {
        Some(DropReason::BadCertificate) => format!("the certificate of {host} is refused here: {cause}"),
        Some(DropReason::HandshakeSiteMac) => {
            format!("{host} is of another site, or has an old site key: its handshakes are not made with this site's")
        }
        _ => format!("refused here ({reason}): {cause}"),
    };
    let remedy = match known {
        Some(DropReason::BadCertificate) => {
            CERTIFICATE.iter().find(|(word, _)| detail.contains(word)).map_or(remedy, |(_, remedy)| remedy)
        }
        Some(DropReason::HandshakeSiteMac) => {
            "enrol it with this site (`ringwall join` there), or fetch the site's key: `ringwall host renew` on both"
        }
        _ => remedy,
    };
    Finding::critical(what, remedy)
}

pub(super) fn challenge(facts: &Facts) -> Vec<Finding> {
    if facts.is_sealed() {
        return Vec::new();
    }
    // Whoever has answered the challenge is past it.
    let newest = facts.news().find(|event| event.event != "no-answer");
    let challenged = newest.filter(|event| event.event == "challenged");
    let what = |_| {
        Finding::warning(
            format!("{} was asked to prove that its handshake is fresh, and has not done so", facts.target.word()),
            "ask again in some seconds; a recording that somebody plays looks the same",
        )
    };
    challenged.map(what).into_iter().collect()
}

pub(super) fn answer(facts: &Facts) -> Vec<Finding> {
    let has_key = |keys: &[Key]| keys.iter().any(|key| facts.target.has_ip(&key.address));
    let is_known = match &facts.known {
        Known::Peers(_) => facts.peer().is_some(),
        Known::Keys(keys) => has_key(keys),
        Known::Nobody => true,
    };
    let is_met = is_known || facts.listed().is_some() || matches!(facts.path, Path::Whole | Path::Short(_));
    let is_other = !matches!(facts.way, Way::Link | Way::Unknown);
    // A frame that was dropped for something else says nothing of why nobody answers.
    let is_told = !refused(facts).is_empty() || !clear(facts).is_empty();
    if is_met || is_other || is_told {
        return Vec::new();
    }
    let host = facts.target.word();
    let is_asked = facts.is_tried || facts.news().any(|event| event.event == "no-answer");
    if !is_asked {
        let what = format!("nothing passed between this host and {host} lately");
        return vec![Finding::unknown(what, "ask with its address and without --no-probe, so that it is tried")];
    }
    let entry = facts.neighbour.as_ref().map_or_else(String::new, |state| format!(" (neighbour entry: {state})"));
    let what = match facts.news().next().is_some() && !facts.target.macs.is_empty() {
        true => format!("{host} is there and does not answer this host's handshake{entry}"),
        false => {
            format!("{host} does not answer{entry}: off, not on this network, not enrolled, or it refuses this host")
        }
    };
    let remedy = format!("see that it runs and is enrolled (`ringwall join`); {}", facts.ask_there());
    std::iter::once(Finding::critical(what, remedy)).chain(foreign(facts)).collect()
}

/// Handshakes of another site that end in the kernel, which does not keep whose they were.
fn foreign(facts: &Facts) -> Option<Finding> {
    let word = DropReason::HandshakeSiteMac.word();
    let count = facts.status.parts.layers.as_ref()?.dropped_in_kernel.get(word).copied().filter(|count| *count > 0)?;
    let what =
        format!("{count} handshakes with another site's key were dropped in the kernel: it may be of another site");
    let remedy = "compare `this host` in `ringwall status` on both; enrol it with this site (`ringwall join` there)";
    Some(Finding::warning(what, remedy))
}
