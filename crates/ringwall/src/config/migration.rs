//! How a site moves to sealed frames: `cll.migration`, `[[cll.exception]]` and `[[cll.management]]`, and when an end is warned of.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use cll::{Legacy, Management, Migration, Policy};
use serde::{Deserialize, Serialize};
use wire::MacAddress;

use super::duration::parse_time;
use super::{Config, LegacyHost, LegacyRole, Mode, station};
use crate::failure::Failure;

/// The port that a management machine reaches where the file names none: SSH.
const SSH: u16 = 22;
/// More managers' machines than this are no exception any more, and each frame in clear is compared with all of them.
const MANAGEMENT_MAX: usize = 8;
/// More exceptions than this are another mode.
const EXCEPTIONS_MAX: usize = 256;
/// Warnings before a certificate ends, if the file says nothing else.
const WARN_BEFORE: [&str; 3] = ["30d", "7d", "1d"];

/// Modes of migration by the word an operator uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MigrationName {
    Observe,
    Prefer,
    #[default]
    Enforce,
}

impl MigrationName {
    /// The word for a mode.
    pub(crate) fn of(mode: Migration) -> MigrationName {
        match mode {
            Migration::Observe => MigrationName::Observe,
            Migration::Prefer => MigrationName::Prefer,
            Migration::Enforce => MigrationName::Enforce,
        }
    }

    pub(crate) fn mode(self) -> Migration {
        match self {
            MigrationName::Observe => Migration::Observe,
            MigrationName::Prefer => Migration::Prefer,
            MigrationName::Enforce => Migration::Enforce,
        }
    }
}

/// A host that is treated otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExceptionHost {
    pub(crate) mac: String,
    pub(crate) mode: MigrationName,
}

/// A manager's machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagementHost {
    pub(crate) ip: Ipv4Addr,
    pub(crate) mac: String,
    #[serde(default = "ssh")]
    pub(crate) port: u16,
}

/// An exception as a file says it.
pub(crate) fn exception(mac: MacAddress, mode: Migration) -> ExceptionHost {
    ExceptionHost { mac: mac.to_string(), mode: MigrationName::of(mode) }
}

/// A legacy host as a file says it.
pub(crate) fn legacy_host(host: &Legacy) -> LegacyHost {
    let role = if host.router { LegacyRole::Router } else { LegacyRole::Host };
    LegacyHost { ip: host.ip, mac: host.mac.to_string(), role, broadcast: host.broadcast }
}

/// Whether the text of a configuration names a mode of migration, which need not be the one that it
/// has without a word.
pub(super) fn sets_mode(text: &str) -> bool {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.is_some_and(|table| table.get("cll").is_some_and(|section| section.get("migration").is_some()))
}

fn ssh() -> u16 {
    SSH
}

pub(super) fn default_warn_before() -> Vec<String> {
    WARN_BEFORE.iter().map(|text| (*text).to_owned()).collect()
}

/// Before the first warning, so that who renews in time is never warned.
pub(super) fn default_renew_before() -> String {
    "45d".to_owned()
}

impl Config {
    /// What the operator decided about frames in clear.
    pub(crate) fn policy(&self, file: &Path) -> Result<Policy, Failure> {
        let mut exceptions = BTreeMap::new();
        for one in &self.cll.exception {
            let mac = station(file, "cll.exception", "one host", &one.mac)?;
            if exceptions.insert(mac, one.mode.mode()).is_some() {
                let what = format!("cll.exception names {mac} twice");
                return Err(Failure::file(file, what, "keep one of the two"));
            }
        }
        let management = self.cll.management.iter().map(|one| {
            let mac = station(file, "cll.management", "one host", &one.mac)?;
            Ok(Management { mac, ip: one.ip, port: one.port })
        });
        let management = management.collect::<Result<_, Failure>>()?;
        Ok(Policy { migration: self.cll.migration.mode(), exceptions, management })
    }

    /// Nobody is on two lists that say different things of him.
    pub(super) fn check_migration(&self, file: &Path) -> Result<(), Failure> {
        let policy = self.policy(file)?;
        for (key, count, most) in [
            ("cll.exception", policy.exceptions.len(), EXCEPTIONS_MAX),
            ("cll.management", policy.management.len(), MANAGEMENT_MAX),
        ] {
            if count > most {
                return Err(Failure::file(file, format!("{count} sections [[{key}]]"), &format!("use at most {most}")));
            }
        }
        if self.host.mode != Mode::Cll && (policy != Policy::default()) {
            let what = "cll.migration, cll.exception and cll.management need mode = \"cll\"";
            return Err(Failure::file(file, what, "set host.mode, or remove them"));
        }
        let legacy = self.legacy(file)?;
        let listed = legacy.iter().map(|host| ("cll.legacy", host.mac, host.ip));
        let managers = policy.management.iter().map(|host| ("cll.management", host.mac, host.ip));
        let (mut macs, mut ips) = (BTreeMap::new(), BTreeMap::new());
        for (key, mac, ip) in listed.chain(managers) {
            check_once(file, &mut macs, key, mac)?;
            check_once(file, &mut ips, key, ip)?;
        }
        let listed: BTreeSet<MacAddress> = legacy.iter().map(|host| host.mac).collect();
        match policy.exceptions.keys().find(|mac| listed.contains(mac)) {
            None => self.warn_before(file).and(self.renew_before(file)).map(drop),
            Some(mac) => {
                let what = format!("{mac} is in cll.legacy, which is in clear for good, and in cll.exception");
                Err(Failure::file(file, what, "remove it from one of the two"))
            }
        }
    }

    /// What a guarded host drops in this version because it is not carried. DHCP passes in clear before mode `enforce`.
    pub(crate) fn not_carried(&self) -> Vec<String> {
        let mut all: Vec<String> = self.host.mode.not_carried().iter().map(|&what| what.to_owned()).collect();
        let is_loose = self.cll.migration != MigrationName::Enforce;
        let carries_dhcp = self.dhcp.client || self.dhcp.server;
        if self.host.mode == Mode::Cll && !is_loose && !carries_dhcp {
            all.insert(0, "DHCP (neither dhcp.client nor dhcp.server is on)".to_owned());
        }
        all
    }

    /// How long before the end of a certificate it is warned of, the longest first.
    pub(crate) fn warn_before(&self, file: &Path) -> Result<Vec<Duration>, Failure> {
        let times = self.host.warn_before.iter().map(|text| {
            parse_time(text)
                .map_err(|remedy| Failure::file(file, format!("host.warn_before: \"{text}\" is no time"), &remedy))
        });
        let mut times = times.collect::<Result<Vec<_>, _>>()?;
        times.sort_unstable_by(|one, other| other.cmp(one));
        Ok(times)
    }

    /// How long before its end this host's certificate is renewed.
    pub(crate) fn renew_before(&self, file: &Path) -> Result<Duration, Failure> {
        let text = &self.host.renew_before;
        parse_time(text)
            .map_err(|remedy| Failure::file(file, format!("host.renew_before: \"{text}\" is no time"), &remedy))
    }

    /// What is unwise about frames in clear, one line each.
    pub(super) fn migration_warnings(&self) -> Vec<String> {
        let mode = self.cll.migration;
        let mut warnings = Vec::new();
        if mode == MigrationName::Observe {
            warnings.push(
                "cll.migration = \"observe\": sealed where the peer does it, and no protection: whoever speaks in clear is believed"
                    .to_owned(),
            );
        }
        if mode == MigrationName::Prefer {
            warnings.push(
                "cll.migration = \"prefer\": hosts that have never proved themselves are believed in clear".to_owned(),
            );
        }
        let loose = self.cll.exception.iter().filter(|one| one.mode.mode() < mode.mode());
        warnings.extend(loose.map(|one| {
            format!(
                "cll.exception: whoever takes the hardware address {} is treated by mode {}",
                one.mac,
                one.mode.mode().word()
            )
        }));
        warnings
    }
}

/// `found` on two lists, or twice on one, would be treated by whichever comes first.
fn check_once<T: Ord + Copy + std::fmt::Display>(
    file: &Path,
    before: &mut BTreeMap<T, &'static str>,
    key: &'static str,
    found: T,
) -> Result<(), Failure> {
    let what = match before.insert(found, key) {
        None => return Ok(()),
        Some(other) if other == key => format!("{key} names {found} twice"),
        Some(other) => format!("{found} is in {other} and in {key}"),
    };
    Err(Failure::file(file, what, "keep one of the two"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[host]\ninterface = \"eth0\"\n";
    const LEGACY: &str = "[[cll.legacy]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n";

    fn read(text: &str) -> Result<Config, String> {
        Config::read(Path::new("host.toml"), &format!("{HEAD}{text}")).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_policy_is_read_and_enforce_is_what_nothing_means() {
        let policy = |text: &str| read(text).expect("valid").policy(Path::new("host.toml")).expect("valid");
        assert_eq!(policy(""), Policy::default());
        assert_eq!(Policy::default().migration, Migration::Enforce);
        let read = policy(
            "[cll]\nmigration = \"prefer\"\n[[cll.exception]]\nmac = \"02:00:00:00:00:07\"\nmode = \"observe\"\n\
             [[cll.management]]\nip = \"10.0.0.8\"\nmac = \"02:00:00:00:00:08\"\n",
        );
        assert_eq!(read.migration, Migration::Prefer);
        assert_eq!(read.towards(MacAddress([2, 0, 0, 0, 0, 7])), Migration::Observe);
        let manager = Management { mac: MacAddress([2, 0, 0, 0, 0, 8]), ip: [10, 0, 0, 8].into(), port: 22 };
        assert_eq!(read.management, [manager]);
    }

    #[test]
    fn what_is_no_protection_says_so() {
        let warnings = |text: &str| read(text).expect("valid").warnings();
        assert!(warnings("").is_empty());
        assert!(warnings("[cll]\nmigration = \"observe\"\n")[0].contains("no protection"));
        assert!(warnings("[cll]\nmigration = \"prefer\"\n")[0].contains("never proved themselves"));
        let exception = "[[cll.exception]]\nmac = \"02:00:00:00:00:07\"\nmode = \"observe\"\n";
        assert!(warnings(exception)[0].contains("02:00:00:00:00:07"));
    }

    #[test]
    fn contradictions_are_named() {
        let again = LEGACY.replace("0.9", "0.8");
        let manager = LEGACY.replace("legacy", "management").replace(":09", ":08");
        let cases = [
            (format!("{LEGACY}{LEGACY}"), "cll.legacy names 02:00:00:00:00:09 twice"),
            (format!("{LEGACY}{again}"), "cll.legacy names 02:00:00:00:00:09 twice"),
            (format!("{LEGACY}{manager}"), "10.0.0.9 is in cll.legacy and in cll.management"),
            (
                format!("{LEGACY}[[cll.exception]]\nmac = \"02:00:00:00:00:09\"\nmode = \"observe\"\n"),
                "in clear for good",
            ),
            ("[cll]\nmigration = \"perhaps\"\n".to_owned(), "host.toml:4"),
            ("[[cll.exception]]\nmac = \"x\"\nmode = \"observe\"\n".to_owned(), "cll.exception"),
            ("[[cll.exception]]\nmac = \"02:00:00:00:00:09\"\n".to_owned(), "mode"),
            ("warn_before = [\"soon\"]\n".to_owned(), "host.warn_before"),
            ("renew_before = \"soon\"\n".to_owned(), "host.renew_before"),
            ("mode = \"sarp\"\n[cll]\nmigration = \"observe\"\n".to_owned(), "need mode = \"cll\""),
        ];
        for (text, words) in cases {
            let line = read(&text).expect_err("a contradiction");
            assert!(line.contains(words) && !line.contains('\n'), "{line}");
        }
    }
}
