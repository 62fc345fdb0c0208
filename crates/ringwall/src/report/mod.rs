//! What a host tells the site's service of itself (docs/decisions/0088-a-service-of-the-site.md),
//! and what follows from it: what would break if it enforced.
//!
//! - `gather.rs`: from what a daemon says to a report; `forecast.rs`: from reports to a forecast,
//!   and `ringwall forecast`;
//!   `command.rs`: `ringwall report`; `asking.rs`: the way to the service.
//!
//! A report comes from a host that has proved who it is, and is believed no further: everything in
//! it has a limit, and what is shown to a person has no character that a terminal obeys.

mod asking;
mod command;
pub(crate) mod forecast;
mod gather;

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use wire::MacAddress;

pub(crate) use asking::{Proof, Way};
pub(crate) use command::{
    ENROLMENT_PATH, Newest, ORDER_PATH, POLICY_PATH, RENEWAL_PATH, REPORT_PATH, REVOKED_PATH, ReportArguments, report,
};
pub(crate) use forecast::{ForecastArguments, forecast, unix_s};

/// What it is called, and its version, which changes when a field goes or means something else.
const SCHEMA: &str = "ringwall-report";
const SCHEMA_VERSION: u32 = 1;

/// Longest report, in bytes of JSON.
pub(crate) const BYTES_MAX: usize = 128 << 10;
/// Hosts in clear that are named in one.
pub(crate) const BREAKS_MAX: usize = 128;
/// Uses of the network in one, of all of these together.
pub(crate) const USES_MAX: usize = 512;
/// Longest word in it, in bytes.
const WORD_MAX: usize = 64;
// A use is shorter than 200 bytes of JSON, whatever its addresses; a host in clear has 100 beside
// them.
const _: () = assert!(200 * USES_MAX + 100 * BREAKS_MAX + 4096 < BYTES_MAX, "every report that is made can be sent");

/// Everything that a host tells.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Report {
    pub(crate) schema: String,
    pub(crate) schema_version: u32,
    pub(crate) made_unix_ms: u64,
    pub(crate) daemon: DaemonPart,
    pub(crate) policy: PolicyPart,
    /// Associations that stand.
    pub(crate) sealed: u64,
    pub(crate) attacks_open: u64,
    pub(crate) attacks_opened: u64,
    /// Frames that were dropped, for whatever reason; a host of before does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dropped: Option<u64>,
    pub(crate) certificate_not_after_unix: u64,
    /// Who speaks in clear and was let in, although mode enforce would not have.
    pub(crate) breaks: Vec<Break>,
    /// How many more there are.
    pub(crate) breaks_left_out: u64,
}

/// Which daemon it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct DaemonPart {
    pub(crate) version: String,
    pub(crate) interface: String,
    pub(crate) mode: String,
    pub(crate) state: String,
    pub(crate) way: String,
    pub(crate) uptime_s: u64,
}

/// What it has of what the site decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct PolicyPart {
    pub(crate) version: Option<u64>,
    /// How strict it is: observe, prefer or enforce; none where frames are not sealed at all.
    pub(crate) migration: Option<String>,
}

/// A host that speaks in clear.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Break {
    /// Its hardware address, which is a claim.
    pub(crate) mac: String,
    pub(crate) uses: Vec<BreakUse>,
}

/// One use that it makes of the network.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct BreakUse {
    pub(crate) protocol: String,
    pub(crate) frames: u64,
    pub(crate) last_unix_ms: u64,
    /// The addresses in the last frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) destination: Option<IpAddr>,
}

/// Why a report is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadReport {
    TooLong,
    Malformed,
    /// Of another version of this program.
    Version,
    /// More of something than a host may tell, or a word that a terminal would obey.
    Limits,
}

impl Report {
    /// Reads one. Fields that a later version adds are left out.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Report, BadReport> {
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
    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Whether it may be shown to a person.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.len() <= WORD_MAX && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A host that observes, and a printer at 02:00:00:00:00:09 that it hears.
    pub(crate) fn report(made_unix_ms: u64) -> Report {
        Report {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            made_unix_ms,
            daemon: DaemonPart {
                version: "0.1.0".to_owned(),
                interface: "eth0".to_owned(),
                mode: "cll".to_owned(),
                state: "guarding".to_owned(),
                way: "in-place".to_owned(),
                uptime_s: 60,
            },
            policy: PolicyPart { version: Some(3), migration: Some("observe".to_owned()) },
            sealed: 2,
            attacks_open: 0,
            attacks_opened: 1,
            dropped: Some(12),
            certificate_not_after_unix: 1_800_000_000,
            breaks: vec![break_of(9, "tcp/9100", made_unix_ms)],
            breaks_left_out: 0,
        }
    }

    /// What a host in this state reports.
    pub(crate) fn of_status(status: &crate::protocol::Status) -> Report {
        super::gather::report(status, Vec::new(), 1000)
    }

    pub(crate) fn break_of(mac: u8, protocol: &str, last_unix_ms: u64) -> Break {
        let ip = |last| Some(IpAddr::from([192, 0, 2, last]));
        let (source, destination) = (ip(mac), ip(10));
        let one = BreakUse { protocol: protocol.to_owned(), frames: 7, last_unix_ms, source, destination };
        Break { mac: format!("02:00:00:00:00:{mac:02x}"), uses: vec![one] }
    }

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
