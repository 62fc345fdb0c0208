//! The site's policy (docs/protocol.md, section 30): from a file that is put in its place, and from
//! peers.
//!
//! As with revocation lists the authority's signature is what counts, not who wrote the file or
//! gave the policy. The newest is kept in the state directory, so that an older one never comes
//! back, and one that is refused changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bump::{Instant, Now};
use identity::certificate::utc_text;
use identity::policy::{BadPolicy, SitePolicy};
use identity::{HostIdentity, Verified, pem};
use wire::MacAddress;

use crate::daemon::Journal;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::modes::site_policy;
use crate::monitor::{Disk, Home, Kept, Version};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const REMEDY: &str = "copy `policy.pem` of the site's directory there, whole";

/// The policy in force, and where newer ones come from.
pub(crate) struct Policies {
    file: PathBuf,
    /// The version of the file when it was last read.
    seen: Option<Version>,
    disk: Disk,
    identity: Arc<HostIdentity>,
    in_force: Option<Arc<Verified<SitePolicy>>>,
    /// Since when and from where it is in force here, in words.
    origin: String,
    /// Since when, in seconds since 1970.
    since_unix_s: Option<u64>,
    /// The data path has not been told of it.
    is_news: bool,
    refused: BTreeMap<BadPolicy, u64>,
    look_at: Instant,
}

impl Policies {
    /// Reads the policy of the file, if there is one, and the one that was kept. Neither is needed:
    /// what cannot be read is said and left out, since a host must not be locked out.
    pub(crate) fn open(config: &Config, identity: &Arc<HostIdentity>, now: Now, disk: &Disk) -> Policies {
        let mut policies = Policies {
            file: config.policy_file(),
            seen: None,
            disk: disk.clone(),
            identity: Arc::clone(identity),
            in_force: None,
            origin: String::new(),
            since_unix_s: None,
            is_news: false,
            refused: BTreeMap::new(),
            look_at: Instant::default(),
        };
        let kept = Home::new(&config.host.state_dir, &config.host.interface).path(&Kept::Policy);
        if kept.exists() {
            // The monitor writes this file, and reads it to nobody: it is there for the next start.
            let read = read(&Disk::own(None), &kept).and_then(|bytes| {
                let judged = policies.judge(&bytes);
                judged.map_err(|bad| Failure::file(&kept, bad, REMEDY))
            });
            match read {
                Ok(policy) => policies.put_in_force(policy, now, "kept from an earlier run".to_owned()),
                Err(failure) => tracing::warn!("{failure}; it is left out"),
            }
        }
        match policies.look_at_file(now) {
            Ok(_) => {}
            Err(failure) => tracing::warn!("{failure}; it is left out"),
        }
        policies.is_news = false;
        policies
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Option<&Arc<Verified<SitePolicy>>> {
        self.in_force.as_ref()
    }

    /// This host's certificate is this one from now on.
    pub(crate) fn follow(&mut self, identity: &Arc<HostIdentity>) {
        self.identity = Arc::clone(identity);
    }

    /// A peer gave this policy.
    pub(crate) fn take(&mut self, from: MacAddress, bytes: &[u8], now: Now, journal: &mut Journal) {
        match self.judge(bytes) {
            Ok(policy) => self.put_in_force(policy, now, format!("given by {from}")),
            // Two peers may give the same one.
            Err(BadPolicy::Older) if self.in_force.as_ref().is_some_and(|own| own.bytes() == bytes) => return,
            Err(bad) => {
                self.count(bad);
                return journal
                    .note("policy", &format!("the policy that {from} gave is refused ({}): {bad}", bad.word()));
            }
        }
        self.keep(journal);
    }

    /// Looks for a newer policy in the file, from time to time.
    pub(crate) fn look(&mut self, now: Now, journal: &mut Journal) {
        if now.since_boot < self.look_at {
            return;
        }
        self.look_at = now.since_boot + LOOK_EVERY;
        match self.look_at_file(now) {
            Ok(true) => self.keep(journal),
            Ok(false) => {}
            Err(failure) => journal.note("policy", &failure.to_string()),
        }
    }

    /// A policy of which the data path has not been told.
    pub(crate) fn news(&self) -> Option<Arc<Verified<SitePolicy>>> {
        self.in_force.clone().filter(|_| self.is_news)
    }

    /// The data path has been told.
    pub(crate) fn told(&mut self) {
        self.is_news = false;
    }

    /// Whether the file had a newer policy.
    fn look_at_file(&mut self, now: Now) -> Result<bool, Failure> {
        let seen = self.disk.version(&self.file);
        if seen == self.seen || seen.is_none() {
            self.seen = seen;
            return Ok(false);
        }
        self.seen = seen;
        let bytes = read(&self.disk, &self.file).inspect_err(|_| self.count(BadPolicy::Malformed))?;
        match self.judge(&bytes) {
            Ok(policy) => {
                let origin = format!("from {}", self.file.display());
                self.put_in_force(policy, now, origin);
                Ok(true)
            }
            Err(BadPolicy::Older) if self.in_force.as_ref().is_some_and(|own| own.bytes() == bytes) => Ok(false),
            Err(bad) => {
                self.count(bad);
                let what = format!("refused ({}): {bad}, the policy before stays in force", bad.word());
                Err(Failure::file(&self.file, what, REMEDY))
            }
        }
    }

    fn judge(&self, bytes: &[u8]) -> Result<Verified<SitePolicy>, BadPolicy> {
        let policy = self.identity.anchor().verify_policy(bytes)?;
        let is_newer = self.in_force.as_ref().is_none_or(|own| own.version() < policy.version());
        if is_newer { Ok(policy) } else { Err(BadPolicy::Older) }
    }

    fn put_in_force(&mut self, policy: Verified<SitePolicy>, now: Now, origin: String) {
        self.in_force = Some(Arc::new(policy));
        self.since_unix_s = now.wall.map(|wall| wall.unix_ms / 1000);
        (self.origin, self.is_news) = (origin, true);
    }

    fn count(&mut self, bad: BadPolicy) {
        *self.refused.entry(bad).or_default() += 1;
    }

    fn keep(&self, journal: &mut Journal) {
        let Some(policy) = &self.in_force else { return };
        journal.note("policy", &format!("version {} is in force, {}", policy.version(), self.origin));
        let text = pem::encode(pem::SITE_POLICY, policy.bytes());
        if let Err(error) = self.disk.write(&Kept::Policy, &text) {
            journal.note("policy", &format!("it is not kept beyond the end of this daemon: {error}"));
        }
    }

    /// What `status` says. `notes` is how this host's own file differs.
    pub(crate) fn status(&self, notes: &[String]) -> Option<site_policy::SitePolicy> {
        if self.in_force.is_none() && self.refused.is_empty() {
            return None;
        }
        let group = self.in_force.as_ref().and_then(|policy| policy.group_of(self.identity.certificate().name()));
        let next = group.and_then(|group| group.next);
        let refused =
            BadPolicy::ALL.into_iter().filter_map(|bad| Some((bad.word().to_owned(), *self.refused.get(&bad)?)));
        Some(site_policy::SitePolicy {
            version: self.in_force.as_ref().map(|policy| policy.version()),
            issued: self.in_force.as_ref().map(|policy| utc_text(policy.content().issued_unix)),
            since: self.since_unix_s.filter(|_| self.in_force.is_some()).map(utc_text),
            origin: self.origin.clone(),
            group: group.map(|group| group.patterns.join(",")),
            mode: group.map(|group| group.mode.word().to_owned()),
            changes: next.map(|(at, mode)| format!("{} from {} on", mode.word(), utc_text(at))),
            own_file: notes.to_vec(),
            refused: refused.collect(),
        })
    }
}

fn read(disk: &Disk, file: &Path) -> Result<Vec<u8>, Failure> {
    let read = disk.read(file).map_err(|error| Failure::file(file, error, REMEDY))?;
    pem::single(&read.text, pem::SITE_POLICY)
        .map(|bytes| bytes.to_vec())
        .map_err(|error| Failure::file(file, error, REMEDY))
}
