//! The forecast: who would be cut off, and which uses of the network with him, if hosts enforced
//! now.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use identity::certificate::utc_text;
use serde::Serialize;
use wire::MacAddress;

use super::report::{BreakUse, Report};

/// The mode that would let nothing more of it pass.
pub const ENFORCE: &str = "enforce";

/// What would break.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// Who would not be heard any more.
    pub sources: Vec<Source>,
    /// What they use.
    pub protocols: BTreeSet<String>,
    /// Sources that reports had no room for.
    pub left_out: u64,
}

/// A host in clear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Its hardware address, which is a claim.
    pub mac: String,
    /// The host of the site that has this hardware address: it is enrolled and does not speak under
    /// seal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enrolled_as: Option<String>,
    /// The addresses that it was heard with.
    pub addresses: BTreeSet<IpAddr>,
    /// What it does.
    pub uses: Vec<Used>,
    /// The hosts that hear it.
    pub heard_by: BTreeSet<String>,
}

/// One of its uses, summed up over all who hear it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Such as tcp/9100.
    pub protocol: String,
    /// How many mode enforce would have refused.
    pub frames: u64,
    /// When the last of them came.
    pub last_unix_ms: u64,
    /// The same, as a person reads it.
    pub last: String,
    /// The addresses in the last frame, which are claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<IpAddr>,
    /// Where it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<IpAddr>,
}

impl Forecast {
    /// Of these reports, each with the name of its host, by what was heard since then. `name_of`
    /// says whose a hardware address is by the site's record.
    pub fn of<'a>(
        reports: impl Iterator<Item = (&'a str, &'a Report)>,
        since_unix_ms: u64,
        name_of: impl Fn(&str) -> Option<String>,
    ) -> Forecast {
        let mut sources: BTreeMap<&str, Source> = BTreeMap::new();
        let mut left_out: u64 = 0;
        for (host, report) in reports.filter(|(_, report)| report.is_lenient()) {
            // A report's numbers are its host's.
            left_out = left_out.saturating_add(report.breaks_left_out);
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
    #[must_use]
    pub fn without(mut self, macs: &[MacAddress]) -> Forecast {
        self.sources.retain(|source| !macs.iter().any(|mac| mac.to_string() == source.mac));
        let uses = self.sources.iter().flat_map(|source| &source.uses);
        self.protocols = uses.map(|used| used.protocol.clone()).collect();
        self
    }

    /// What is said of it; `who` are the hosts that would enforce.
    #[must_use]
    pub fn lines(&self, who: &str) -> Vec<String> {
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
    #[must_use]
    pub fn is_lenient(&self) -> bool {
        self.policy.migration.as_deref().is_some_and(|mode| mode != ENFORCE)
    }
}

impl Source {
    fn add(&mut self, host: &str, used: &BreakUse) {
        self.heard_by.insert(host.to_owned());
        self.addresses.extend(used.source.filter(|address| !address.is_unspecified()));
        let fresh = Used {
            protocol: used.protocol.clone(),
            frames: 0,
            last_unix_ms: used.last_unix_ms,
            last: moment(used.last_unix_ms),
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
#[must_use]
pub fn shortened(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

/// So many of them, in words.
#[must_use]
pub fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A moment in UTC as RFC 3339 has it, with milliseconds.
fn moment(unix_ms: u64) -> String {
    format!("{}.{:03}Z", utc_text(unix_ms / 1000).trim_end_matches('Z'), unix_ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::super::report::example::{break_of, report};
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

    #[test]
    fn the_largest_numbers_of_two_hosts_end_nobody_who_adds_them_up() {
        let mut lying = report(5000);
        lying.breaks_left_out = u64::MAX;
        let read = Report::parse(&lying.bytes()).expect("within limits");
        let all = Forecast::of([("a", &read), ("b", &read)].into_iter(), 0, |_| None);
        assert_eq!(all.left_out, u64::MAX);
    }
}
