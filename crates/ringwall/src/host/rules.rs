//! What is in force of this host's own file and of the site's policy: the file may be stricter, and where it is looser that is said.
//!
//! Of two modes the stricter counts, unless `host.loosens_policy` says that the file's does. Lists are joined; where both name an address
//! the site's entry counts, since it is the one that a manager changes when a printer is replaced.

use std::path::Path;

use cll::{Legacy, Migration, Policy};
use identity::certificate::HostCertificate;
use identity::policy::{LegacyHost, Mode, SitePolicy};

use crate::config::{self, Config};
use crate::failure::Failure;

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
    /// What `config` says, read from `file`.
    pub(super) fn of(config: &Config, file: &Path) -> Result<OwnRules, Failure> {
        let policy = config.policy(file)?;
        let mode = config.host.sets_mode.then_some(policy.migration);
        Ok(OwnRules { mode, loosens: config.host.loosens_policy, policy, legacy: config.legacy(file)? })
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
        self.join_legacy(&site.content().legacy, own, &mut rules);
        rules
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
        config.cll.migration = config::MigrationName::of(self.policy.migration);
        config.cll.exception =
            self.policy.exceptions.iter().map(|(mac, mode)| config::exception(*mac, *mode)).collect();
        config.cll.legacy = self.legacy.iter().map(config::legacy_host).collect();
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
