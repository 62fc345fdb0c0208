//! What a host tells the site's service of itself (docs/decisions/0088-a-service-of-the-site.md),
//! and what follows from it: what would break if it enforced.
//!
//! - `gather.rs`: from what a daemon says to a report; `forecast.rs`: `ringwall forecast`;
//!   `command.rs`: `ringwall report`; `asking.rs`: the way to the service.
//!
//! What a report and a forecast are, `authority::rollout` says.

mod asking;
mod command;
pub(crate) mod forecast;
mod gather;

pub(crate) use asking::{Proof, Way};
pub(crate) use authority::rollout::report::{BREAKS_MAX, BYTES_MAX, BadReport, Break, BreakUse, Report, USES_MAX};
pub(crate) use command::{
    ENROLMENT_PATH, Newest, ORDER_PATH, POLICY_PATH, RENEWAL_PATH, REPORT_PATH, REVOKED_PATH, ReportArguments, report,
};
pub(crate) use forecast::{ForecastArguments, forecast, unix_s};

#[cfg(test)]
pub(crate) mod tests {
    use std::net::IpAddr;

    use authority::rollout::report::{DaemonPart, PolicyPart, SCHEMA, SCHEMA_VERSION};

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
}
