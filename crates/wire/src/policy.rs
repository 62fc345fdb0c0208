//! What a site's authority decides for all hosts, as bytes (docs/protocol.md, section 30). The
//! signature behind it is judged elsewhere.
//!
//! ```text
//!  0  format, 1: 0x01      1  version, 8      9  when it was issued, in seconds since 1970, 8
//! 17  number of legacy hosts, 2: hardware address 6, IPv4 address 4, flags 1 (bit 0 router, bit 1
//! broadcasts are let in)
//!     number of known hosts, 2: IPv4 address 4, hardware address 6
//!     number of exceptions, 2: hardware address 6, mode 1
//!     number of groups, 2: mode 1, next mode 1, when it changes to that 8 (0 never, then the next is the same),
//!                          number of patterns 1: length 1, pattern
//! ```
//! There is one way to write a policy: each list is sorted by what comes first in an entry, groups
//! by their patterns, and nothing is in it twice.

use std::net::Ipv4Addr;

use crate::reader::Reader;
use crate::{Error, Field, MacAddress};

/// First byte of a policy.
pub const FORMAT: u8 = 1;
/// Legacy hosts in a policy, at most.
pub const LEGACY_MAX: usize = 1024;
/// Known hosts in a policy, at most.
pub const KNOWN_MAX: usize = 1024;
/// Exceptions in a policy, at most.
pub const EXCEPTIONS_MAX: usize = 256;
/// Groups in a policy, at most.
pub const GROUPS_MAX: usize = 64;
/// Patterns of a group, at most.
pub const PATTERNS_MAX: usize = 64;
/// Bytes of a pattern, at most: a host's name is no longer.
pub const PATTERN_LEN_MAX: usize = 64;

const ROUTER: u8 = 1;
const BROADCAST: u8 = 2;

/// How strictly a host keeps to sealed frames, the loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Contradictions are only noted.
    Observe,
    /// Who has proved himself is heard in clear no more.
    Prefer,
    /// Sealed, or not at all.
    Enforce,
}

impl Mode {
    /// All of them, by their number.
    pub const ALL: [Mode; 3] = [Mode::Observe, Mode::Prefer, Mode::Enforce];

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Mode::Observe => "observe",
            Mode::Prefer => "prefer",
            Mode::Enforce => "enforce",
        }
    }

    /// The mode that is called `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.word() == word)
    }

    fn of(byte: u8) -> Result<Mode, Error> {
        Mode::ALL.get(usize::from(byte)).copied().ok_or(Error::Invalid(Field::SitePolicy))
    }
}

/// A host that is admitted in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LegacyHost {
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its address.
    pub ip: Ipv4Addr,
    /// It forwards for others.
    pub router: bool,
    /// Its broadcasts and multicasts are let in.
    pub broadcast: bool,
}

/// A host without signed ARP whose addresses are taken from the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownHost {
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its hardware address.
    pub mac: MacAddress,
}

/// A host towards which everybody is otherwise strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exception {
    /// Its hardware address.
    pub mac: MacAddress,
    /// The mode towards it.
    pub mode: Mode,
}

/// Hosts by their names, and their mode.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Whom it means: names, in which a `*` stands for any letters.
    pub patterns: Vec<String>,
    /// Their mode.
    pub mode: Mode,
    /// Their mode from this moment on, in seconds since 1970.
    pub next: Option<(u64, Mode)>,
}

/// A site's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Later ones have a higher number; the first has 1.
    pub version: u64,
    /// When it was issued, in seconds since 1970.
    pub issued_unix: u64,
    /// Hosts admitted in clear, by hardware address.
    pub legacy: Vec<LegacyHost>,
    /// Hosts without signed ARP, by address.
    pub known: Vec<KnownHost>,
    /// Hosts treated otherwise, by hardware address.
    pub exceptions: Vec<Exception>,
    /// Modes of migration, by patterns.
    pub groups: Vec<Group>,
}

impl Policy {
    /// Reads a policy that makes up the beginning of `bytes`; gives what is behind it, too.
    ///
    /// # Errors
    /// What is cut short, unknown, not in order, or too much.
    pub fn parse(bytes: &[u8]) -> Result<(Policy, &[u8]), Error> {
        let mut reader = Reader::new(bytes, Field::SitePolicy);
        if reader.u8()? != FORMAT {
            return Err(Error::Unsupported(Field::SitePolicy));
        }
        let policy = Policy {
            version: reader.u64()?,
            issued_unix: reader.u64()?,
            legacy: list(&mut reader, LEGACY_MAX, legacy)?,
            known: list(&mut reader, KNOWN_MAX, known)?,
            exceptions: list(&mut reader, EXCEPTIONS_MAX, exception)?,
            groups: list(&mut reader, GROUPS_MAX, group)?,
        };
        if policy.version == 0 || !policy.is_canonical() {
            return Err(Error::Invalid(Field::SitePolicy));
        }
        Ok((policy, reader.rest()))
    }

    /// Whether every list has its order and limit, and nothing is in it twice.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        let Policy { legacy, known, exceptions, groups, .. } = self;
        let fits = [
            (legacy.len(), LEGACY_MAX),
            (known.len(), KNOWN_MAX),
            (exceptions.len(), EXCEPTIONS_MAX),
            (groups.len(), GROUPS_MAX),
        ];
        fits.iter().all(|(len, most)| len <= most)
            && rises(legacy.iter().map(|one| one.mac))
            && rises(known.iter().map(|one| one.ip))
            && rises(exceptions.iter().map(|one| one.mac))
            && rises(groups.iter().map(|one| &one.patterns))
            && groups.iter().all(Group::is_canonical)
    }

    /// The policy as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = vec![FORMAT];
        out.extend(self.version.to_be_bytes());
        out.extend(self.issued_unix.to_be_bytes());
        count(&mut out, self.legacy.len());
        for one in &self.legacy {
            out.extend(one.mac.0);
            out.extend(one.ip.octets());
            out.push((u8::from(one.router) * ROUTER) | (u8::from(one.broadcast) * BROADCAST));
        }
        count(&mut out, self.known.len());
        for one in &self.known {
            out.extend(one.ip.octets());
            out.extend(one.mac.0);
        }
        count(&mut out, self.exceptions.len());
        for one in &self.exceptions {
            out.extend(one.mac.0);
            out.push(one.mode as u8);
        }
        count(&mut out, self.groups.len());
        self.groups.iter().for_each(|one| one.emit(&mut out));
        out
    }
}

impl Group {
    fn is_canonical(&self) -> bool {
        let is_pattern = |pattern: &String| {
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte);
            (1..=PATTERN_LEN_MAX).contains(&pattern.len()) && pattern.bytes().all(is_letter)
        };
        (1..=PATTERNS_MAX).contains(&self.patterns.len())
            && rises(self.patterns.iter())
            && self.patterns.iter().all(is_pattern)
            && self.next.is_none_or(|(at, _)| at > 0)
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let (at, next) = self.next.unwrap_or((0, self.mode));
        out.extend([self.mode as u8, next as u8]);
        out.extend(at.to_be_bytes());
        out.push(self.patterns.len() as u8);
        for pattern in &self.patterns {
            out.push(pattern.len() as u8);
            out.extend(pattern.as_bytes());
        }
    }
}

fn count(out: &mut Vec<u8>, number: usize) {
    out.extend((number as u16).to_be_bytes());
}

fn rises<T: PartialOrd>(mut keys: impl Iterator<Item = T>) -> bool {
    let Some(mut last) = keys.next() else { return true };
    keys.all(|key| {
        let rises = last < key;
        last = key;
        rises
    })
}

fn list<T>(
    reader: &mut Reader<'_>,
    most: usize,
    one: impl Fn(&mut Reader<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let number = usize::from(reader.u16()?);
    if number > most {
        return Err(Error::Invalid(Field::SitePolicy));
    }
    (0..number).map(|_| one(reader)).collect()
}

fn legacy(reader: &mut Reader<'_>) -> Result<LegacyHost, Error> {
    let (mac, ip, flags) = (MacAddress(reader.array()?), Ipv4Addr::from(reader.array::<4>()?), reader.u8()?);
    if flags & !(ROUTER | BROADCAST) != 0 {
        return Err(Error::Invalid(Field::SitePolicy));
    }
    Ok(LegacyHost { mac, ip, router: flags & ROUTER != 0, broadcast: flags & BROADCAST != 0 })
}

fn known(reader: &mut Reader<'_>) -> Result<KnownHost, Error> {
    Ok(KnownHost { ip: Ipv4Addr::from(reader.array::<4>()?), mac: MacAddress(reader.array()?) })
}

fn exception(reader: &mut Reader<'_>) -> Result<Exception, Error> {
    Ok(Exception { mac: MacAddress(reader.array()?), mode: Mode::of(reader.u8()?)? })
}

fn group(reader: &mut Reader<'_>) -> Result<Group, Error> {
    let (mode, next, at) = (Mode::of(reader.u8()?)?, Mode::of(reader.u8()?)?, reader.u64()?);
    if at == 0 && next != mode {
        return Err(Error::Invalid(Field::SitePolicy));
    }
    let number = reader.u8()?;
    let patterns = (0..number).map(|_| {
        let len = usize::from(reader.u8()?);
        String::from_utf8(reader.bytes(len)?.to_vec()).map_err(|_| Error::Invalid(Field::SitePolicy))
    });
    let patterns = patterns.collect::<Result<_, _>>()?;
    Ok(Group { patterns, mode, next: (at > 0).then_some((at, next)) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Policy {
        let mac = |number: u8| MacAddress([2, 0, 0, 0, 0, number]);
        let ip = |number: u8| Ipv4Addr::new(192, 0, 2, number);
        let legacy = |number, router, broadcast| LegacyHost { mac: mac(number), ip: ip(number), router, broadcast };
        let group = |patterns: &[&str], mode, next| Group {
            patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
            mode,
            next,
        };
        Policy {
            version: 3,
            issued_unix: 0x0102_0304,
            legacy: vec![legacy(8, false, true), legacy(9, true, false)],
            known: vec![KnownHost { ip: ip(7), mac: mac(7) }],
            exceptions: vec![Exception { mac: mac(6), mode: Mode::Enforce }],
            groups: vec![
                group(&["*"], Mode::Observe, None),
                group(&["cam-1", "desk-*"], Mode::Prefer, Some((0x0506, Mode::Enforce))),
            ],
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let expected = [
            &[1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 1, 2, 3, 4][..],
            &[0, 2, 2, 0, 0, 0, 0, 8, 192, 0, 2, 8, 2, 2, 0, 0, 0, 0, 9, 192, 0, 2, 9, 1],
            &[0, 1, 192, 0, 2, 7, 2, 0, 0, 0, 0, 7],
            &[0, 1, 2, 0, 0, 0, 0, 6, 2],
            &[0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, b'*'],
            &[1, 2, 0, 0, 0, 0, 0, 0, 5, 6, 2, 5, b'c', b'a', b'm', b'-', b'1', 6, b'd', b'e', b's', b'k', b'-', b'*'],
        ];
        assert_eq!(example().emit(), expected.concat());
        let behind = [&expected.concat()[..], b"signature"].concat();
        assert_eq!(Policy::parse(&behind), Ok((example(), &b"signature"[..])));
    }

    #[test]
    fn there_is_one_way_to_write_a_policy() {
        type Change = fn(&mut Policy);
        let changes: [Change; 11] = [
            |policy| policy.version = 0,
            |policy| policy.legacy.swap(0, 1),
            |policy| policy.legacy[1].mac = policy.legacy[0].mac,
            |policy| policy.known.push(policy.known[0]),
            |policy| policy.exceptions.push(Exception { mode: Mode::Observe, ..policy.exceptions[0] }),
            |policy| policy.groups.swap(0, 1),
            |policy| policy.groups[1].patterns.swap(0, 1),
            |policy| policy.groups[0].patterns.clear(),
            |policy| policy.groups[0].patterns[0] = "a b".to_owned(),
            |policy| policy.groups[0].patterns[0] = "a".repeat(PATTERN_LEN_MAX + 1),
            |policy| policy.known = vec![policy.known[0]; KNOWN_MAX + 1],
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut policy = example();
            change(&mut policy);
            assert!(Policy::parse(&policy.emit()).is_err(), "change {number}");
        }
        let good = example().emit();
        for len in 0..good.len() {
            assert!(Policy::parse(&good[..len]).is_err(), "{len} bytes");
        }
        for (at, value) in [(0, 2), (29, 4), (61, 3), (64, 1)] {
            let mut bytes = good.clone();
            bytes[at] = value;
            assert!(Policy::parse(&bytes).is_err(), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic_and_what_parses_emits_itself(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            random in proptest::collection::vec(any::<u8>(), 0..80), is_random: bool,
        ) {
            let mut bytes = if is_random { random } else { example().emit() };
            for (at, value) in changes {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = value;
                }
            }
            if let Ok((parsed, rest)) = Policy::parse(&bytes) {
                prop_assert_eq!([&parsed.emit()[..], rest].concat(), bytes);
            }
        }
    }
}
