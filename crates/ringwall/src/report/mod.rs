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

pub(crate) use asking::{Proof, RETRY_AFTER, Way};
pub(crate) use authority::rollout::report::{BREAKS_MAX, BYTES_MAX, BadReport, Break, BreakUse, Report, USES_MAX};
pub(crate) use command::{
    ENROLMENT_PATH, NEWER_PATH, Newest, NewestBrought, ORDER_PATH, POLICY_PATH, RENEWAL_PATH, REPORT_PATH,
    REVOKED_PATH, ReportArguments, report,
};
pub(crate) use forecast::{ForecastArguments, forecast, unix_s};

#[cfg(test)]
use authority::rollout::report::{DaemonPart, PolicyPart, SCHEMA, SCHEMA_VERSION};

#[cfg(test)]
#[path = "../../../authority/tests/common/report.rs"]
mod example;

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::example::report;
    use super::*;

    /// What a host in this state reports.
    pub(crate) fn of_status(status: &crate::protocol::Status) -> Report {
        super::gather::report(status, Vec::new(), 1000)
    }
}
