//! How a site moves to sealed frames: `cll.migration`, `[[cll.exception]]` and
//! `[[cll.management]]`, and when an end is warned of.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cll::{Legacy, Management, Migration, Policy};
use wire::MacAddress;

use super::Cll;
use super::names::{ExceptionHost, LegacyHost, LegacyRole, ManagementHost, MigrationName};
use crate::config::Station;
use crate::failure::Failure;
use crate::modes::name::Mode;

/// More managers' machines than this are no exception any more, and each frame in clear is compared
/// with all of them.
const MANAGEMENT_MAX: usize = 8;
/// More exceptions than this are another mode.
const EXCEPTIONS_MAX: usize = 256;
/// An exception as a file says it.
pub(crate) fn exception(mac: MacAddress, mode: Migration) -> ExceptionHost {
    ExceptionHost { mac: Station::of(mac), mode: MigrationName::of(mode) }
}

/// A legacy host as a file says it.
pub(crate) fn legacy_host(host: &Legacy) -> LegacyHost {
    let role = if host.router { LegacyRole::Router } else { LegacyRole::Host };
    LegacyHost { ip: host.ip, mac: Station::of(host.mac), role, broadcast: host.broadcast }
}

/// Whether the text of a configuration names a mode of migration, which need not be the one that it
/// has without a word.
pub(crate) fn sets_mode(text: &str) -> bool {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.is_some_and(|table| table.get("cll").is_some_and(|section| section.get("migration").is_some()))
}

impl Cll {
    /// What the operator decided about frames in clear.
    pub(crate) fn policy(&self) -> Policy {
        let exceptions = self.exception.iter().map(|one| (one.mac.mac(), one.mode.mode()));
        let manager = |one: &ManagementHost| Management { mac: one.mac.mac(), ip: one.ip, port: one.port };
        Policy {
            migration: self.migration.mode(),
            exceptions: exceptions.collect(),
            management: self.management.iter().map(manager).collect(),
        }
    }

    /// Nobody is on two lists that say different things of him.
    pub(super) fn check_migration(&self, mode: Mode, file: &Path) -> Result<(), Failure> {
        for (key, count, most) in [
            ("cll.exception", self.exception.len(), EXCEPTIONS_MAX),
            ("cll.management", self.management.len(), MANAGEMENT_MAX),
        ] {
            if count > most {
                return Err(Failure::file(file, format!("{count} sections [[{key}]]"), &format!("use at most {most}")));
            }
        }
        if mode != Mode::Cll && self.policy() != Policy::default() {
            let what = "cll.migration, cll.exception and cll.management need mode = \"cll\"";
            return Err(Failure::file(file, what, "set host.mode, or remove them"));
        }
        let mut excepted = BTreeMap::new();
        for one in &self.exception {
            check_once(file, &mut excepted, "cll.exception", one.mac.mac())?;
        }
        let listed = self.legacy.iter().map(|host| ("cll.legacy", host.mac.mac(), host.ip));
        let managers = self.management.iter().map(|host| ("cll.management", host.mac.mac(), host.ip));
        let (mut macs, mut ips) = (BTreeMap::new(), BTreeMap::new());
        for (key, mac, ip) in listed.chain(managers) {
            check_once(file, &mut macs, key, mac)?;
            check_once(file, &mut ips, key, ip)?;
        }
        let in_clear: BTreeSet<MacAddress> = self.legacy.iter().map(|host| host.mac.mac()).collect();
        match excepted.keys().find(|mac| in_clear.contains(mac)) {
            None => Ok(()),
            Some(mac) => {
                let what = format!("{mac} is in cll.legacy, which is in clear for good, and in cll.exception");
                Err(Failure::file(file, what, "remove it from one of the two"))
            }
        }
    }

    /// What is unwise about frames in clear, one line each.
    pub(super) fn migration_warnings(&self) -> Vec<String> {
        let mode = self.migration;
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
        let loose = self.exception.iter().filter(|one| one.mode.mode() < mode.mode());
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
    use crate::modes::file::Config;

    const HEAD: &str = "[host]\ninterface = \"eth0\"\n";
    const LEGACY: &str = "[[cll.legacy]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n";

    fn read(text: &str) -> Result<Config, String> {
        Config::read(Path::new("host.toml"), &format!("{HEAD}{text}")).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_policy_is_read_and_enforce_is_what_nothing_means() {
        let policy = |text: &str| read(text).expect("valid").cll.policy();
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
            ("[[cll.exception]]\nmac = \"x\"\nmode = \"observe\"\n".to_owned(), "host.toml:4: cll.exception.mac: "),
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
