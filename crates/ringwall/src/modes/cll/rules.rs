//! What is in force of this host's own file and of the site's policy: the file may be stricter, and
//! where it is looser that is said.
//!
//! Of two modes the stricter counts, unless `host.loosens_policy` says that the file's does. Lists
//! are joined; where both name an address the site's entry counts, since it is the one that a
//! manager changes when a printer is replaced.

use cll::{Legacy, Migration, Policy};
use identity::certificate::HostCertificate;
use identity::policy::{LegacyHost, Mode, SitePolicy};

use super::config::MigrationName;
use super::config::migration::{exception, legacy_host};
use crate::modes::file::Config;

/// What a host's own file says of all this.
#[derive(Clone, Debug)]
pub(super) struct OwnRules {
    /// The mode that the file names, if it names one.
    mode: Option<Migration>,
    /// Whether that counts also where it is looser than the site's.
    loosens: bool,
    policy: Policy,
    legacy: Vec<Legacy>,
}

/// What is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) policy: Policy,
    pub(super) legacy: Vec<Legacy>,
    /// Where the file differs from the policy, one line each.
    pub(super) notes: Vec<String>,
}

impl OwnRules {
    /// What `config` says.
    pub(super) fn of(config: &Config) -> OwnRules {
        let policy = config.cll.policy();
        let mode = config.sets_mode.then_some(policy.migration);
        OwnRules { mode, loosens: config.host.loosens_policy, policy, legacy: config.cll.legacy() }
    }

    /// What is in force on the host with this certificate at `unix_s`.
    pub(super) fn with(&self, site: Option<&SitePolicy>, own: &HostCertificate, unix_s: Option<u64>) -> Rules {
        let mut rules = Rules { policy: self.policy.clone(), legacy: self.legacy.clone(), notes: Vec::new() };
        let Some(site) = site else { return rules };
        if let Some(mode) = site.mode_of(own.name(), unix_s) {
            rules.policy.migration = self.mode_beside(migration(mode), &mut rules.notes);
        }
        for one in &site.content().exceptions {
            let (mac, mode) = (one.mac, migration(one.mode));
            match self.policy.exceptions.get(&mac) {
                Some(own) if *own < mode => {
                    rules.notes.push(format!("the exception of {mac} is \"{}\", and the site's counts", own.word()));
                    rules.policy.exceptions.insert(mac, mode);
                }
                Some(_) => {}
                None => _ = rules.policy.exceptions.insert(mac, mode),
            }
        }
        self.note_exceptions(site, &mut rules);
        self.join_legacy(&site.content().legacy, own, &mut rules);
        rules
    }

    /// An exception of the file that the policy lacks counts; it is said where it loosens.
    fn note_exceptions(&self, site: &SitePolicy, rules: &mut Rules) {
        let known = &site.content().exceptions;
        for (mac, mode) in self.policy.exceptions.iter().filter(|(mac, _)| !known.iter().any(|one| one.mac == **mac)) {
            if *mode < rules.policy.migration {
                let word = mode.word();
                rules.notes.push(format!("LOOSER than the policy: cll.exception treats {mac} by mode \"{word}\""));
            }
        }
    }

    fn mode_beside(&self, site: Migration, notes: &mut Vec<String>) -> Migration {
        let Some(own) = self.mode else { return site };
        if own >= site {
            return own;
        }
        let words = (own.word(), site.word());
        if self.loosens {
            notes.push(format!("LOOSER than the policy: mode \"{}\" where the site says \"{}\"", words.0, words.1));
            return own;
        }
        notes.push(format!("cll.migration = \"{}\" is looser than the site's \"{}\", which counts", words.0, words.1));
        site
    }

    fn join_legacy(&self, site: &[LegacyHost], own: &HostCertificate, rules: &mut Rules) {
        let is_ours = |one: &&LegacyHost| one.mac == own.mac() || own.addresses().contains(&one.ip);
        let site: Vec<Legacy> = site.iter().filter(|one| !is_ours(one)).map(legacy).collect();
        let same = |one: &Legacy, other: &Legacy| one.mac == other.mac || one.ip == other.ip;
        for one in &self.legacy {
            match site.iter().find(|other| same(one, other)) {
                Some(other) if other == one => {}
                Some(other) => rules.notes.push(format!(
                    "cll.legacy has {} at {}, and the site's {} at {} counts",
                    one.ip, one.mac, other.ip, other.mac
                )),
                None => rules
                    .notes
                    .push(format!("LOOSER than the policy: cll.legacy admits {} at {} in clear", one.ip, one.mac)),
            }
        }
        rules.legacy.retain(|one| !site.iter().any(|other| same(one, other)));
        rules.legacy.extend(site);
        // A host that all hear in clear is no exception.
        rules.policy.exceptions.retain(|mac, _| !rules.legacy.iter().any(|one| one.mac == *mac));
    }
}

impl Rules {
    /// Has `config` say what is in force.
    pub(super) fn write_to(&self, config: &mut Config) {
        config.cll.migration = MigrationName::of(self.policy.migration);
        config.cll.exception = self.policy.exceptions.iter().map(|(mac, mode)| exception(*mac, *mode)).collect();
        config.cll.legacy = self.legacy.iter().map(legacy_host).collect();
    }
}

fn migration(mode: Mode) -> Migration {
    match mode {
        Mode::Observe => Migration::Observe,
        Mode::Prefer => Migration::Prefer,
        Mode::Enforce => Migration::Enforce,
    }
}

fn legacy(one: &LegacyHost) -> Legacy {
    Legacy { mac: one.mac, ip: one.ip, router: one.router, broadcast: one.broadcast }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::Ipv4Addr;
    use std::path::Path;

    use authority::{Request, Site};
    use identity::policy::{Content, Exception, Group};
    use identity::{HostIdentity, Verified};
    use wire::MacAddress;

    use super::*;

    const UNIX_S: u64 = 1_800_000_000;

    fn mac(number: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, number])
    }

    fn ip(number: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 0, 2, number)
    }

    fn site_host(number: u8, at: u8) -> LegacyHost {
        LegacyHost { mac: mac(at), ip: ip(number), router: false, broadcast: false }
    }

    /// The host desk-1 with address 192.0.2.1, and a policy of its site with these changes.
    fn site(change: impl FnOnce(&mut Content)) -> (HostIdentity, Verified<SitePolicy>) {
        let mut generator = bump::Generator::from_seed([1; 32]);
        let mut random = |bytes: &mut [u8]| bytes.fill_with(|| generator.bytes::<1>()[0]);
        let site = Site::create("lab", &mut random, UNIX_S).expect("made");
        let request = Request::new("desk-1", mac(1), vec![ip(1)]).expect("good");
        let pem = site.issue_identity(&request, &mut random, UNIX_S).expect("issued");
        let mut content = Content { version: 1, ..Content::default() };
        change(&mut content);
        (HostIdentity::from_pem(&pem).expect("whole"), site.policy(&content).expect("in order"))
    }

    fn own(lines: &str) -> OwnRules {
        let text = format!("[host]\ninterface = \"e0\"\n{lines}\n");
        let config = Config::read(Path::new("e0.toml"), &text).expect("good");
        OwnRules::of(&config)
    }

    fn group(mode: Mode) -> Group {
        Group { patterns: vec!["desk-*".to_owned()], mode, next: None }
    }

    fn mode(own: &OwnRules, site_mode: Option<Mode>) -> (Migration, usize) {
        let (identity, policy) = site(|content| content.groups = site_mode.map(group).into_iter().collect());
        let rules = own.with(Some(&policy), identity.certificate(), Some(UNIX_S));
        (rules.policy.migration, rules.notes.len())
    }

    #[test]
    fn a_file_is_stricter_than_the_policy_or_says_so() {
        use Migration::{Enforce, Observe, Prefer};
        let silent = own("");
        assert_eq!(mode(&silent, None), (Enforce, 0), "nobody says anything");
        for (site, expected) in [(Mode::Observe, Observe), (Mode::Prefer, Prefer), (Mode::Enforce, Enforce)] {
            assert_eq!(mode(&silent, Some(site)), (expected, 0), "the file names no mode");
        }
        let prefer = own("[cll]\nmigration = \"prefer\"");
        assert_eq!(mode(&prefer, None), (Prefer, 0), "no group means this host");
        assert_eq!(mode(&prefer, Some(Mode::Observe)), (Prefer, 0));
        assert_eq!(mode(&prefer, Some(Mode::Enforce)), (Enforce, 1), "the stricter, and it is said");
        let loose = own("loosens_policy = true\n[cll]\nmigration = \"prefer\"");
        assert_eq!(mode(&loose, Some(Mode::Enforce)), (Prefer, 1), "looser, and it is said");
        assert_eq!(mode(&loose, Some(Mode::Observe)), (Prefer, 0));
    }

    #[test]
    fn a_mode_comes_into_force_at_its_time() {
        let changes = Group { next: Some((UNIX_S + 60, Mode::Enforce)), ..group(Mode::Observe) };
        let (identity, policy) = site(|content| content.groups = vec![changes]);
        let at = |unix_s| own("").with(Some(&policy), identity.certificate(), unix_s).policy.migration;
        assert_eq!(
            [Some(UNIX_S + 59), Some(UNIX_S + 60), None].map(at),
            [Migration::Observe, Migration::Enforce, Migration::Observe]
        );
    }

    #[test]
    fn lists_are_joined_and_the_site_counts_where_they_differ() {
        let (identity, policy) = site(|content| {
            // A printer that was replaced, one that the file has as well, one of the site alone,
            // and two that name this host.
            content.legacy =
                vec![site_host(90, 1), site_host(7, 7), site_host(8, 80), site_host(9, 9), site_host(1, 91)];
            content.legacy.sort_unstable();
            content.exceptions = vec![
                Exception { mac: mac(20), mode: Mode::Prefer },
                Exception { mac: mac(21), mode: Mode::Observe },
                Exception { mac: mac(22), mode: Mode::Observe },
            ];
        });
        let listed = |number: u8, at: u8| format!("[[cll.legacy]]\nip = \"{}\"\nmac = \"{}\"\n", ip(number), mac(at));
        let excepted = |at: u8, mode| format!("[[cll.exception]]\nmac = \"{}\"\nmode = \"{mode}\"\n", mac(at));
        let lines = [
            listed(7, 7),
            listed(8, 8),
            listed(6, 6),
            excepted(20, "observe"),
            excepted(21, "enforce"),
            excepted(23, "observe"),
        ];
        let rules = own(&lines.concat()).with(Some(&policy), identity.certificate(), Some(UNIX_S));
        let pairs: BTreeMap<Ipv4Addr, MacAddress> = rules.legacy.iter().map(|one| (one.ip, one.mac)).collect();
        let expected = [(6, 6), (7, 7), (8, 80), (9, 9)].map(|(number, at)| (ip(number), mac(at)));
        assert_eq!((pairs, rules.legacy.len()), (BTreeMap::from(expected), 4));
        let modes = [20, 21, 22, 23].map(|number| rules.policy.exceptions[&mac(number)]);
        assert_eq!(modes, [Migration::Prefer, Migration::Enforce, Migration::Observe, Migration::Observe]);
        let said = |what: &str| rules.notes.iter().any(|note| note.contains(what));
        assert!(said("192.0.2.8 at 02:00:00:00:00:08, and the site's 192.0.2.8 at 02:00:00:00:00:50 counts"));
        assert!(said("LOOSER than the policy: cll.legacy admits 192.0.2.6"), "{:?}", rules.notes);
        assert!(said("exception of 02:00:00:00:00:14 is \"observe\", and the site's counts"));
        assert!(said("LOOSER than the policy: cll.exception treats 02:00:00:00:00:17"), "{:?}", rules.notes);
    }

    #[test]
    fn what_is_in_force_is_what_the_configuration_says_then() {
        let (identity, policy) = site(|content| {
            content.legacy = vec![site_host(9, 9)];
            content.groups = vec![group(Mode::Prefer)];
        });
        let mut config = Config::read(Path::new("e0.toml"), "[host]\ninterface = \"e0\"\n").expect("good");
        let rules = own("").with(Some(&policy), identity.certificate(), Some(UNIX_S));
        rules.write_to(&mut config);
        assert_eq!(config.cll.policy(), rules.policy);
        assert_eq!(config.cll.legacy(), rules.legacy);
        assert!(config.cll.lets_clear_in(config.lab.as_ref()));
    }
}
