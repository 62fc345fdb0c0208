//! `ringwall forecast`: what would break if this host enforced now.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use authority::rollout::forecast::{ENFORCE, Forecast};
use clap::Args;

use super::{Report, gather};
use crate::client::{DaemonArgs, print_json};
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::output::say;

/// What its JSON is called, and its version, which changes when a field goes or means something
/// else.
pub(crate) const SCHEMA: &str = "ringwall-forecast";
pub(crate) const SCHEMA_VERSION: u32 = 1;
/// Who was not heard for this long has gone, as a rule.
pub(crate) const SINCE: &str = "7d";

/// Options of `ringwall forecast`
#[derive(Args, Debug)]
pub(crate) struct ForecastArguments {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// What was heard within this time: 30s, 5m, 1h, 7d.
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = SINCE)]
    since: Duration,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// `ringwall forecast`
pub(crate) fn forecast(arguments: &ForecastArguments) -> Result<(), Failure> {
    let now_ms = now_unix_ms();
    let since_ms = now_ms.saturating_sub(millis(arguments.since));
    let mut told = Vec::new();
    for socket in arguments.daemon.sockets()? {
        let report = gather::gather(&socket, now_ms)?;
        let interface = report.daemon.interface.clone();
        let forecast = Forecast::of([(interface.as_str(), &report)].into_iter(), since_ms, |_| None);
        told.push((report, forecast));
    }
    if arguments.json {
        let daemons = told.iter().map(|(report, forecast)| {
            serde_json::json!({
                "interface": report.daemon.interface, "mode": report.daemon.mode,
                "migration": report.policy.migration, "uptime_s": report.daemon.uptime_s, "forecast": forecast,
            })
        });
        let whole: serde_json::Value = daemons.collect();
        return print_json(&serde_json::json!({
            "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "daemons": whole,
        }));
    }
    told.iter().for_each(|(report, forecast)| print(report, forecast));
    Ok(())
}

fn print(report: &Report, forecast: &Forecast) {
    let interface = &report.daemon.interface;
    match report.policy.migration.as_deref() {
        None => say!("{interface}: mode {} seals no frames, so there is nothing to enforce", report.daemon.mode),
        Some(ENFORCE) => say!("{interface}: it enforces already; `ringwall explain` says what that drops"),
        Some(mode) => {
            let heard = Duration::from_secs(report.daemon.uptime_s).as_secs() / 60;
            say!("{interface}: mode {mode}, {heard} minutes after the start of its daemon");
            forecast.lines(interface).iter().for_each(|line| say!("{line}"));
        }
    }
}

/// The time, which a certificate is judged by.
pub(crate) fn unix_s() -> Option<u64> {
    let unix_s = now_unix_ms() / 1000;
    (unix_s > 0).then_some(unix_s)
}

pub(crate) fn now_unix_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
