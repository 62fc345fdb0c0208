//! What a site's authority decides for all its hosts: who is admitted in clear, and how strict each
//! is (docs/protocol.md, section 30).
//!
//! The policy is signed by the authority, so it may come by any way: as a file, or from a peer.
//! Versions order policies; an older one never replaces a newer one, which whoever keeps them sees
//! to. Nobody can tell whether a newer one exists.

use std::fmt;

pub use wire::policy::{Exception, Group, KnownHost, LegacyHost, Mode, Policy as Content};

use crate::certificate::{BadSignature, TrustAnchor, Verified};
use crate::limits::MAX_POLICY_LEN;

/// What stands before a policy where it is signed, so that the signature is none under anything
/// else.
const SIGNED_LABEL: &[u8] = b"ringwall site policy 1";

/// A site's policy with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePolicy {
    content: Content,
    bytes: Vec<u8>,
}

/// Why a policy was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BadPolicy {
    /// It is longer than any policy.
    TooLong,
    /// It is no policy, or not written in the one way there is.
    Malformed,
    /// The authority of this site did not sign it.
    Forged,
    /// A newer one is known, or another of the same version.
    Older,
}

impl BadPolicy {
    /// Every reason.
    pub const ALL: [BadPolicy; 4] = [BadPolicy::TooLong, BadPolicy::Malformed, BadPolicy::Forged, BadPolicy::Older];

    /// The word in counters.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            BadPolicy::TooLong => "too-long",
            BadPolicy::Malformed => "malformed",
            BadPolicy::Forged => "forged",
            BadPolicy::Older => "older",
        }
    }
}

impl fmt::Display for BadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadPolicy::TooLong => write!(f, "longer than the {MAX_POLICY_LEN} bytes of a site policy"),
            BadPolicy::Malformed => f.write_str("no site policy that is read here"),
            BadPolicy::Forged => f.write_str("not signed by this site's authority: damaged, forged, or another site's"),
            BadPolicy::Older => f.write_str("not newer than the one in force"),
        }
    }
}

impl std::error::Error for BadPolicy {}

/// What the authority signs for this content.
#[must_use]
pub fn signed_bytes(content: &Content) -> Vec<u8> {
    [&(SIGNED_LABEL.len() as u16).to_be_bytes(), SIGNED_LABEL, &content.emit()].concat()
}

/// A policy with the authority's signature behind it.
#[must_use]
pub fn with_signature(content: &Content, signature: &[u8]) -> Vec<u8> {
    [content.emit(), signature.to_vec()].concat()
}

impl SitePolicy {
    /// What it says.
    #[must_use]
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Its number.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.content.version
    }

    /// The policy with its signature.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How strict the host of this name is at `unix_s`; `None` if no group means it. A host that
    /// knows no time is as strict as before a change.
    #[must_use]
    pub fn mode_of(&self, name: &str, unix_s: Option<u64>) -> Option<Mode> {
        self.group_of(name).map(|group| match group.next {
            Some((at, next)) if unix_s.is_some_and(|now| now >= at) => next,
            _ => group.mode,
        })
    }

    /// The group that means the host of this name: that with the most exact pattern, of several the
    /// strictest.
    #[must_use]
    pub fn group_of(&self, name: &str) -> Option<&Group> {
        let exactness = |group: &Group| {
            let fitting = group.patterns.iter().filter(|pattern| matches(pattern, name));
            fitting.map(|pattern| (!pattern.contains('*'), pattern.bytes().filter(|byte| *byte != b'*').count())).max()
        };
        let means = self.content.groups.iter().filter_map(|group| Some((exactness(group)?, group.mode, group)));
        means.max_by_key(|(exactness, mode, _)| (*exactness, *mode)).map(|(_, _, group)| group)
    }
}

/// Whether `name` is what `pattern` means, where `*` stands for any letters, also none.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl TrustAnchor {
    /// Checks that this authority signed the policy `bytes`, and reads it.
    ///
    /// # Errors
    /// [`BadPolicy`], the first reason found; never that it is older.
    pub fn verify_policy(&self, bytes: &[u8]) -> Result<Verified<SitePolicy>, BadPolicy> {
        if bytes.len() > MAX_POLICY_LEN {
            return Err(BadPolicy::TooLong);
        }
        let (content, signature) = Content::parse(bytes).map_err(|_| BadPolicy::Malformed)?;
        let signed: Result<(), BadSignature> = self.verify_signature(&signed_bytes(&content), signature);
        signed.map_err(|_| BadPolicy::Forged)?;
        Ok(Verified::vouch(SitePolicy { content, bytes: bytes.to_vec() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(patterns: &[&str], mode: Mode) -> Group {
        Group { patterns: patterns.iter().map(|&one| one.to_owned()).collect(), mode, next: None }
    }

    fn policy(groups: Vec<Group>) -> SitePolicy {
        SitePolicy { content: Content { version: 1, groups, ..Content::default() }, bytes: Vec::new() }
    }

    const POLICY: &str = include_str!("../../../vectors/policy.txt");
    const SITE: &str = include_str!("../../../vectors/site.txt");

    fn vector(file: &str, name: &str) -> Vec<u8> {
        let line = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        crate::test_hex::bytes(line.expect("in the file"))
    }

    #[test]
    fn the_golden_policy_is_read_and_written_alike() {
        let anchor = TrustAnchor::from_der(&vector(SITE, "authority.certificate")).expect("an authority");
        let bytes = vector(POLICY, "policy");
        let policy = anchor.verify_policy(&bytes).expect("signed by the other program");
        assert_eq!((policy.version(), policy.bytes()), (3, &bytes[..]));
        let Content { legacy, known, exceptions, groups, .. } = policy.content();
        let last = |mac: wire::MacAddress| mac.0[5];
        assert_eq!(
            legacy.iter().map(|one| (last(one.mac), one.router, one.broadcast)).collect::<Vec<_>>(),
            [(8, false, true), (9, true, false)]
        );
        assert_eq!((last(known[0].mac), known[0].ip.octets()[3]), (7, 7));
        assert_eq!((last(exceptions[0].mac), exceptions[0].mode), (6, Mode::Observe));
        assert_eq!(groups[1].patterns, ["cam-1", "desk-*"]);
        let modes = [1_800_003_599, 1_800_003_600].map(|now| policy.mode_of("desk-17", Some(now)));
        assert_eq!(modes, [Some(Mode::Prefer), Some(Mode::Enforce)]);
    }

    #[test]
    fn what_the_authority_did_not_sign_as_a_policy_is_refused() {
        let anchor = TrustAnchor::from_der(&vector(SITE, "authority.certificate")).expect("an authority");
        let bytes = vector(POLICY, "policy");
        let refusal = |bytes: &[u8]| anchor.verify_policy(bytes).err();
        // Another time of the change, which is as well formed as the one that was signed.
        let at = bytes.windows(8).position(|window| window == 1_800_003_600_u64.to_be_bytes()).expect("a time");
        let mut later = bytes.clone();
        later[at + 7] ^= 1;
        assert_eq!(refusal(&later), Some(BadPolicy::Forged));
        assert_eq!(refusal(&bytes[..bytes.len() - 64]), Some(BadPolicy::Forged));
        assert_eq!(refusal(&[&bytes[..], &[0]].concat()), Some(BadPolicy::Forged));
        assert_eq!(refusal(&bytes[1..]), Some(BadPolicy::Malformed));
        assert_eq!(refusal(&[]), Some(BadPolicy::Malformed));
        assert_eq!(refusal(&[1; MAX_POLICY_LEN + 1]), Some(BadPolicy::TooLong));
    }

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, name, is_meant) in [
            ("desk-1", "desk-1", true),
            ("desk-1", "desk-17", false),
            ("desk-*", "desk-17", true),
            ("desk-*", "desk-", true),
            ("desk-*", "disk-17", false),
            ("*", "anything", true),
            ("*-lab", "a-lab", true),
            ("*-lab", "lab", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), is_meant, "{pattern} {name}");
        }
    }

    #[test]
    fn the_most_exact_pattern_counts_and_of_two_the_stricter() {
        use Mode::{Enforce, Observe, Prefer};
        let policy = policy(vec![
            group(&["*"], Observe),
            group(&["*-17"], Prefer),
            group(&["cam-1", "desk-*"], Prefer),
            group(&["desk-1*"], Observe),
            group(&["desk-17"], Enforce),
            group(&["lab-*"], Observe),
            group(&["lab*-"], Enforce),
        ]);
        for (name, mode) in [
            ("desk-17", Enforce),
            ("desk-18", Observe),
            ("desk-2", Prefer),
            ("cam-1", Prefer),
            ("cam-17", Prefer),
            ("gate", Observe),
            ("lab-", Enforce),
        ] {
            assert_eq!(policy.mode_of(name, Some(0)), Some(mode), "{name}");
        }
    }

    #[test]
    fn a_mode_changes_at_its_time_and_not_without_a_clock() {
        let mut changing = group(&["desk-*"], Mode::Prefer);
        changing.next = Some((1000, Mode::Enforce));
        let policy = policy(vec![changing]);
        let modes = [None, Some(999), Some(1000), Some(u64::MAX)].map(|now| policy.mode_of("desk-1", now));
        let [prefer, enforce] = [Mode::Prefer, Mode::Enforce].map(Some);
        assert_eq!(modes, [prefer, prefer, enforce, enforce]);
        assert_eq!(policy.mode_of("gate", Some(0)), None, "no group means it");
    }
}
