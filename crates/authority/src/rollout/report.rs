//! What a host tells the site's service of itself
//! (docs/decisions/0088-a-service-of-the-site.md).
//!
//! A report comes from a host that has proved who it is, and is believed no further: everything in
//! it has a limit, and what is shown to a person has no character that a terminal obeys.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wire::MacAddress;

/// What it is called.
pub const SCHEMA: &str = "ringwall-report";
/// Its version, which changes when a field goes or means something else.
pub const SCHEMA_VERSION: u32 = 1;

/// Longest report, in bytes of JSON.
pub const BYTES_MAX: usize = 128 << 10;
/// Hosts in clear that are named in one.
pub const BREAKS_MAX: usize = 128;
/// Uses of the network in one, of all of these together.
pub const USES_MAX: usize = 512;
/// Longest word in it, in bytes.
const WORD_MAX: usize = 64;
// A use is shorter than 200 bytes of JSON, whatever its addresses; a host in clear has 100 beside
// them.
const _: () = assert!(200 * USES_MAX + 100 * BREAKS_MAX + 4096 < BYTES_MAX, "every report that is made can be sent");

/// Everything that a host tells.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// When it was made, by the host's clock.
    pub made_unix_ms: u64,
    /// Which daemon it is.
    pub daemon: DaemonPart,
    /// What it has of what the site decides.
    pub policy: PolicyPart,
    /// Associations that stand.
    pub sealed: u64,
    /// Attacks that go on.
    pub attacks_open: u64,
    /// Attacks since its start.
    pub attacks_opened: u64,
    /// Frames that were dropped, for whatever reason; a host of before does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
    /// Of the site keys that it has; a host of before does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site_key_generation: Option<u32>,
    /// End of its certificate.
    pub certificate_not_after_unix: u64,
    /// Who speaks in clear and was let in, although mode enforce would not have.
    pub breaks: Vec<Break>,
    /// How many more there are.
    pub breaks_left_out: u64,
}

/// Which daemon it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct DaemonPart {
    /// Of the program.
    pub version: String,
    /// The interface that it guards.
    pub interface: String,
    /// Its mode, such as cll.
    pub mode: String,
    /// Whether it guards, in a word.
    pub state: String,
    /// How it took the interface over.
    pub way: String,
    /// How long it runs.
    pub uptime_s: u64,
}

/// What it has of what the site decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct PolicyPart {
    /// Version of the policy that it has.
    pub version: Option<u64>,
    /// How strict it is: observe, prefer or enforce; none where frames are not sealed at all.
    pub migration: Option<String>,
}

/// A host that speaks in clear.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Break {
    /// Its hardware address, which is a claim.
    pub mac: String,
    /// What it does.
    pub uses: Vec<BreakUse>,
}

/// One use that it makes of the network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct BreakUse {
    /// Such as tcp/9100.
    pub protocol: String,
    /// How many mode enforce would have refused.
    pub frames: u64,
    /// When the last of them came, by the host's clock.
    pub last_unix_ms: u64,
    /// The addresses in the last frame, which are claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Where it went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
}

/// Why a report is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadReport {
    /// Longer than [`BYTES_MAX`].
    TooLong,
    /// No report.
    Malformed,
    /// Of another version of this program.
    Version,
    /// More of something than a host may tell, or a word that a terminal would obey.
    Limits,
}

impl Report {
    /// Reads one. Fields that a later version adds are left out.
    ///
    /// # Errors
    /// [`BadReport`], the first reason found.
    pub fn parse(bytes: &[u8]) -> Result<Report, BadReport> {
        if bytes.len() > BYTES_MAX {
            return Err(BadReport::TooLong);
        }
        let report: Report = serde_json::from_slice(bytes).map_err(|_| BadReport::Malformed)?;
        if (report.schema.as_str(), report.schema_version) != (SCHEMA, SCHEMA_VERSION) {
            return Err(BadReport::Version);
        }
        if report.is_within_limits() { Ok(report) } else { Err(BadReport::Limits) }
    }

    fn is_within_limits(&self) -> bool {
        let DaemonPart { version, interface, mode, state, way, .. } = &self.daemon;
        let mut words = [version, interface, mode, state, way].into_iter().chain(&self.policy.migration);
        let uses = || self.breaks.iter().flat_map(|one| &one.uses);
        let macs = self.breaks.iter().map(|one| &one.mac);
        words.all(|word| is_word(word))
            && self.breaks.len() <= BREAKS_MAX
            && uses().count() <= USES_MAX
            && uses().all(|one| is_word(&one.protocol))
            && macs.clone().all(|mac| mac.parse::<MacAddress>().is_ok_and(|parsed| parsed.to_string() == *mac))
    }

    /// Itself as the service gets it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Whether it may be shown to a person.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= WORD_MAX && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

#[cfg(test)]
#[path = "../../tests/common/report.rs"]
pub(crate) mod example;

#[cfg(test)]
mod tests {
    use super::example::{break_of, report};
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = report(1000);
        assert_eq!(Report::parse(&report.bytes()), Ok(report));
    }

    #[test]
    fn what_is_no_report_or_exceeds_a_limit_is_refused_by_name() {
        let changed = |change: &dyn Fn(&mut Report)| {
            let mut report = report(1000);
            change(&mut report);
            Report::parse(&report.bytes())
        };
        assert_eq!(Report::parse(b"{}"), Err(BadReport::Malformed));
        assert_eq!(Report::parse(&vec![b' '; BYTES_MAX + 1]), Err(BadReport::TooLong));
        assert_eq!(changed(&|report| report.schema_version = 2), Err(BadReport::Version));
        for change in [
            (&|report: &mut Report| report.daemon.state = "\u{1b}[2J".to_owned()) as &dyn Fn(&mut Report),
            &|report| report.daemon.interface = "e".repeat(WORD_MAX + 1),
            &|report| report.daemon.way.clear(),
            &|report| report.policy.migration = Some("a\nb".to_owned()),
            &|report| report.breaks[0].mac = "02:00:00:00:00".to_owned(),
            &|report| report.breaks[0].mac = "02-00-00-00-00-09".to_owned(),
            &|report| report.breaks[0].uses[0].protocol = "tcp/\u{202e}9100".to_owned(),
            &|report| report.breaks = vec![break_of(1, "arp", 1); BREAKS_MAX + 1],
            &|report| report.breaks[0].uses = vec![report.breaks[0].uses[0].clone(); USES_MAX + 1],
        ] {
            assert_eq!(changed(change), Err(BadReport::Limits));
        }
    }

    proptest::proptest! {
        /// Nothing that a host sends ends the service, and what is taken can be shown.
        #[test]
        fn no_bytes_end_it(place in 0_usize..700, byte: u8, cut in 0_usize..700) {
            let mut bytes = report(1000).bytes();
            let place = place % bytes.len();
            bytes[place] = byte;
            bytes.truncate(bytes.len() - cut % bytes.len());
            if let Ok(read) = Report::parse(&bytes) {
                proptest::prop_assert!(read.is_within_limits());
                proptest::prop_assert_eq!(Report::parse(&read.bytes()), Ok(read));
            }
        }
    }
}
