//! What a person is told of: one record for each attack, whatever mode noticed it.
//!
//! A record is plain data. It says who did what in whose name against whom, since when and how often,
//! and what to do. [`kind`] has the closed list of what there is; `docs/records.md` is made from it.

pub mod kind;

use std::fmt;
use std::net::IpAddr;

pub use kind::{Kind, Severity};

use crate::DropReason;

/// Longest sample of a frame in a record, in bytes.
pub const SAMPLE_BYTES: usize = crate::witness::SIGHTING_BYTES;

/// An Ethernet address, as a frame says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HardwareAddress(pub [u8; 6]);

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// How far an attack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It was noticed now.
    Opened,
    /// It goes on.
    Growing,
    /// Nothing more was seen of it for a while.
    Closed,
}

impl Phase {
    /// The phase as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Phase::Opened => "opened",
            Phase::Growing => "growing",
            Phase::Closed => "closed",
        }
    }
}

/// One party of an attack, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// Its hardware address.
    pub mac: Option<HardwareAddress>,
    /// Its network address.
    pub ip: Option<IpAddr>,
    /// Its name in the site.
    pub name: Option<String>,
}

impl Party {
    /// Whether anything is known of it.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.mac.is_some() || self.ip.is_some() || self.name.is_some()
    }
}

/// In the order in which a person wants it: name, network address, hardware address.
impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.clone();
        let parts = name.into_iter().chain(self.ip.map(|ip| ip.to_string()));
        let parts: Vec<String> = parts.chain(self.mac.map(|mac| mac.to_string())).collect();
        match parts.split_first() {
            None => f.write_str("unknown"),
            Some((first, [])) => f.write_str(first),
            Some((first, rest)) => write!(f, "{first} ({})", rest.join(", ")),
        }
    }
}

/// One thing that a person is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number since the start of the daemon; the same in all phases.
    pub number: u64,
    /// What kind it is.
    pub kind: Kind,
    /// How far it is.
    pub phase: Phase,
    /// Who did it; unknown where the frames were counted and none was kept.
    pub source: Party,
    /// Whom the frames were for.
    pub target: Party,
    /// In whose name it was done: the claim, and who has it in truth.
    pub claimed: Party,
    /// Whether more was claimed or done than fits one record, so that it stands for several.
    pub is_sum: bool,
    /// For which reason the frames were dropped.
    pub reason: DropReason,
    /// How many frames.
    pub count: u64,
    /// The first, in milliseconds since 1970.
    pub first_ms: u64,
    /// The last.
    pub last_ms: u64,
    /// The flow by its Community ID, where the frame has ports.
    pub community_id: Option<String>,
    /// Protocol of the transport layer, and the two ports.
    pub flow: Option<(u8, u16, u16)>,
    /// The beginning of one frame, [`SAMPLE_BYTES`] at most.
    pub sample: Vec<u8>,
}

impl Record {
    /// Who, what, in whose name, against whom: one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let source = match (&self.source, self.is_sum) {
            (party, _) if party.is_known() => party.to_string(),
            (_, true) => "Many".to_owned(),
            (_, false) => "Somebody (only counted, so nobody can say who)".to_owned(),
        };
        let claimed = match (&self.claimed, self.is_sum) {
            (party, _) if party.is_known() => party.to_string(),
            (_, true) => "many".to_owned(),
            (_, false) => "an unknown host".to_owned(),
        };
        let target = if self.target.is_known() { self.target.to_string() } else { "this host".to_owned() };
        let sentence = self.kind.sentence();
        sentence.replace("{source}", &source).replace("{claimed}", &claimed).replace("{target}", &target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: Kind) -> Record {
        let party = |last, address: Option<[u8; 4]>, name: Option<&str>| Party {
            mac: Some(HardwareAddress([2, 0, 0, 0, 0, last])),
            ip: address.map(IpAddr::from),
            name: name.map(str::to_owned),
        };
        Record {
            number: 1,
            kind,
            phase: Phase::Opened,
            source: party(0x66, None, None),
            target: party(0x0a, None, None),
            claimed: party(0x0b, Some([192, 0, 2, 11]), Some("desk-11")),
            is_sum: false,
            reason: DropReason::PlainArp,
            count: 200,
            first_ms: 1,
            last_ms: 2,
            community_id: None,
            flow: None,
            sample: Vec::new(),
        }
    }

    #[test]
    fn the_sentence_says_who_claimed_what_against_whom() {
        let said = record(Kind::ArpSpoofing).sentence();
        for part in ["02:00:00:00:00:66", "desk-11 (192.0.2.11, 02:00:00:00:00:0b)", "02:00:00:00:00:0a"] {
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn an_unknown_source_is_said_to_be_unknown() {
        let counted = Record { source: Party::default(), ..record(Kind::ForgedSealed) };
        assert!(counted.sentence().contains("only counted"), "{}", counted.sentence());
    }

    #[test]
    fn every_sentence_is_filled_in_whole() {
        for kind in Kind::ALL {
            let said = record(*kind).sentence();
            assert!(!said.contains(['{', '}']) && said.contains("02:00:00:00:00:66"), "{said}");
        }
    }
}
