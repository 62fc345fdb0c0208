//! The forecast: who would be cut off, and which uses of the network with him, if hosts enforced
//! now.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde::Serialize;
use wire::MacAddress;

use super::{Report, gather};
use crate::client::{DaemonArgs, print_json};
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::output::say;
use crate::recorder::rfc3339;

/// What its JSON is called, and its version, which changes when a field goes or means something
/// else.
pub(crate) const SCHEMA: &str = "ringwall-forecast";
pub(crate) const SCHEMA_VERSION: u32 = 1;
/// Who was not heard for this long has gone, as a rule.
pub(crate) const SINCE: &str = "7d";
/// The mode that would let nothing more of it pass.
const ENFORCE: &str = "enforce";

/// What would break.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Forecast {
    /// Who would not be heard any more.
    pub(crate) sources: Vec<Source>,
    /// What they use.
    pub(crate) protocols: BTreeSet<String>,
    /// Sources that reports had no room for.
    pub(crate) left_out: u64,
}

/// A host in clear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Source {
    pub(crate) mac: String,
    /// The host of the site that has this hardware address: it is enrolled and does not speak under
    /// seal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) enrolled_as: Option<String>,
    /// The addresses that it was heard with.
    pub(crate) addresses: BTreeSet<IpAddr>,
    pub(crate) uses: Vec<Used>,
    /// The hosts that hear it.
    pub(crate) heard_by: BTreeSet<String>,
}

/// One of its uses, summed up over all who hear it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Used {
    pub(crate) protocol: String,
    pub(crate) frames: u64,
    pub(crate) last_unix_ms: u64,
    pub(crate) last: String,
    /// The addresses in the last frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) destination: Option<IpAddr>,
}

impl Forecast {
    /// Of these reports, each with the name of its host, by what was heard since then. `name_of`
    /// says whose a hardware address is by the site's record.
    pub(crate) fn of<'a>(
        reports: impl Iterator<Item = (&'a str, &'a Report)>,
        since_unix_ms: u64,
        name_of: impl Fn(&str) -> Option<String>,
    ) -> Forecast {
        let mut sources: BTreeMap<&str, Source> = BTreeMap::new();
        let mut left_out = 0;
        for (host, report) in reports.filter(|(_, report)| report.is_lenient()) {
            left_out += report.breaks_left_out;
            for one in &report.breaks {
                for used in one.uses.iter().filter(|used| used.last_unix_ms >= since_unix_ms) {
                    let source = sources.entry(&one.mac).or_insert_with(|| Source {
                        mac: one.mac.clone(),
                        enrolled_as: name_of(&one.mac),
                        addresses: BTreeSet::new(),
                        uses: Vec::new(),
                        heard_by: BTreeSet::new(),
                    });
                    source.add(host, used);
                }
            }
        }
        let sources: Vec<Source> = sources.into_values().collect();
        let protocols = sources.iter().flat_map(|source| &source.uses).map(|used| used.protocol.clone()).collect();
        Forecast { sources, protocols, left_out }
    }

    /// The same without these, who may be cut off.
    pub(crate) fn without(mut self, macs: &[MacAddress]) -> Forecast {
        self.sources.retain(|source| !macs.iter().any(|mac| mac.to_string() == source.mac));
        let uses = self.sources.iter().flat_map(|source| &source.uses);
        self.protocols = uses.map(|used| used.protocol.clone()).collect();
        self
    }

    /// What is said of it; `who` are the hosts that would enforce.
    pub(crate) fn lines(&self, who: &str) -> Vec<String> {
        if self.sources.is_empty() && self.left_out == 0 {
            return vec![format!("if {who} enforced now, nothing that was heard would break")];
        }
        let (hosts, protocols) = (count(self.sources.len(), "host"), count(self.protocols.len(), "protocol"));
        let mut lines = vec![format!("if {who} enforced now, {hosts} and {protocols} would break:")];
        lines.extend(self.sources.iter().flat_map(Source::lines));
        if self.left_out > 0 {
            lines.push(format!("  and {} that reports have no room for; see `ringwall peers`", self.left_out));
        }
        lines
    }
}

impl Report {
    /// Whether enforcing would change anything for it.
    pub(crate) fn is_lenient(&self) -> bool {
        self.policy.migration.as_deref().is_some_and(|mode| mode != ENFORCE)
    }
}

impl Source {
    fn add(&mut self, host: &str, used: &super::BreakUse) {
        self.heard_by.insert(host.to_owned());
        self.addresses.extend(used.source.filter(|address| !address.is_unspecified()));
        let fresh = Used {
            protocol: used.protocol.clone(),
            frames: 0,
            last_unix_ms: used.last_unix_ms,
            last: rfc3339(used.last_unix_ms),
            source: used.source,
            destination: used.destination,
        };
        let place = self.uses.iter().position(|one| one.protocol == used.protocol);
        let place = place.unwrap_or_else(|| {
            self.uses.push(fresh.clone());
            self.uses.len() - 1
        });
        let frames = self.uses[place].frames.saturating_add(used.frames);
        if used.last_unix_ms > self.uses[place].last_unix_ms {
            self.uses[place] = fresh;
        }
        self.uses[place].frames = frames;
    }

    fn lines(&self) -> Vec<String> {
        let addresses: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        let addresses = if addresses.is_empty() { "no address".to_owned() } else { addresses.join(", ") };
        let enrolled = self.enrolled_as.as_ref().map(|name| format!(", enrolled as {name}"));
        let heard_by: Vec<&str> = self.heard_by.iter().map(String::as_str).collect();
        let enrolled = enrolled.unwrap_or_default();
        let mut lines = vec![format!("  {} ({addresses}{enrolled}), heard by {}", self.mac, shortened(&heard_by))];
        lines.extend(self.uses.iter().map(|used| {
            let address = |address: Option<IpAddr>| address.map_or_else(|| "-".to_owned(), |ip| ip.to_string());
            let (from, to) = (address(used.source), address(used.destination));
            format!("    {:<16} {:>8} frames, last {} from {from} to {to}", used.protocol, used.frames, used.last)
        }));
        lines
    }
}

/// The first of them.
pub(crate) fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

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

#[cfg(test)]
mod tests {
    use super::super::tests::{break_of, report};
    use super::*;

    #[test]
    fn reports_of_several_hosts_are_added_up_by_source_and_protocol() {
        let (mut first, mut second) = (report(5000), report(9000));
        first.breaks.push(break_of(8, "udp/161", 4000));
        second.breaks[0].uses.push(break_of(9, "arp", 8000).uses.remove(0));
        let name_of = |mac: &str| (mac == "02:00:00:00:00:08").then(|| "desk-8".to_owned());
        let forecast = Forecast::of([("a", &first), ("b", &second)].into_iter(), 0, name_of);
        assert_eq!(forecast.protocols.iter().map(String::as_str).collect::<Vec<_>>(), ["arp", "tcp/9100", "udp/161"]);
        let [desk, printer] = &forecast.sources[..] else { panic!("{forecast:?}") };
        assert_eq!((desk.enrolled_as.as_deref(), desk.heard_by.len()), (Some("desk-8"), 1));
        assert_eq!(printer.heard_by.iter().collect::<Vec<_>>(), ["a", "b"]);
        let used = &printer.uses[0];
        assert_eq!((used.protocol.as_str(), used.frames, used.last_unix_ms), ("tcp/9100", 14, 9000));
        let text = forecast.lines("group desk-*").join("\n");
        assert!(text.starts_with("if group desk-* enforced now, 2 hosts and 3 protocols would break:\n"), "{text}");
        assert!(text.contains("02:00:00:00:00:08 (192.0.2.8, enrolled as desk-8), heard by a\n"), "{text}");
    }

    #[test]
    fn what_is_old_or_refused_already_would_break_nothing() {
        let (old, mut strict) = (report(5000), report(9000));
        strict.policy.migration = Some("enforce".to_owned());
        let mut signed_arp = report(9000);
        signed_arp.policy.migration = None;
        let all = [("a", &old), ("b", &strict), ("c", &signed_arp)];
        let forecast = Forecast::of(all.into_iter(), 5001, |_| None);
        assert_eq!(forecast, Forecast::default());
        assert_eq!(forecast.lines("all"), ["if all enforced now, nothing that was heard would break"]);
    }

    #[test]
    fn what_a_report_had_no_room_for_is_said() {
        let mut full = report(5000);
        (full.breaks, full.breaks_left_out) = (Vec::new(), 3);
        let lines = Forecast::of([("a", &full)].into_iter(), 0, |_| None).lines("a");
        assert!(lines[1].contains("and 3 that reports have no room for"), "{lines:?}");
    }
}
