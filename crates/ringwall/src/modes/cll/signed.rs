//! What the site's authority signs for all hosts, and what follows from it for this one: lists of
//! revoked certificates, the policy, and the rules in force.

use std::sync::Arc;

use bump::Now;
use cll::Instruction;
use identity::certificate::HostCertificate;
use identity::policy::SitePolicy;
use identity::{HostIdentity, Verified};
use wire::MacAddress;

use super::guard::LinkLayer;
use super::revocation::{Look, Revocations};
use super::rules::{OwnRules, Rules};
use crate::daemon::{Journal, Link};
use crate::failure::Failure;
use crate::host::policy::Policies;
use crate::modes::file::Config;
use crate::modes::site_policy;
use crate::monitor::Disk;

/// What the authority signs, and what is in force of it.
pub(super) struct Signed {
    identity: Arc<HostIdentity>,
    revocations: Revocations,
    policies: Policies,
    own: OwnRules,
    in_force: Rules,
}

impl Signed {
    /// Reads all that is there for the first time.
    pub(super) fn open(
        config: &Config,
        identity: &Arc<HostIdentity>,
        now: Now,
        disk: &Disk,
    ) -> Result<Signed, Failure> {
        let revocations = Revocations::open(config, identity, disk)?;
        let policies = Policies::open(config, identity, now, disk);
        let own = OwnRules::of(config);
        let in_force = rules(&own, &policies, identity.certificate(), now);
        in_force.notes.iter().for_each(|note| tracing::warn!("{note}"));
        Ok(Signed { identity: Arc::clone(identity), revocations, policies, own, in_force })
    }

    pub(super) fn revocations(&self) -> &Revocations {
        &self.revocations
    }

    pub(super) fn policy(&self) -> Option<&Arc<Verified<SitePolicy>>> {
        self.policies.policy()
    }

    /// The rules in force.
    pub(super) fn rules(&self) -> &Rules {
        &self.in_force
    }

    /// This host's certificate is this one from now on.
    pub(super) fn follow(&mut self, identity: &Arc<HostIdentity>) {
        self.identity = Arc::clone(identity);
        self.revocations.follow(identity);
        self.policies.follow(identity);
    }

    /// A peer gave this revocation list.
    pub(super) fn take_list(&mut self, from: MacAddress, der: &[u8], journal: &mut Journal) {
        self.revocations.take(from, der, journal);
    }

    /// A peer gave this policy.
    pub(super) fn take_policy(&mut self, from: MacAddress, bytes: &[u8], now: Now, journal: &mut Journal) {
        self.policies.take(from, bytes, now, journal);
    }

    /// The host's own file says this from now on.
    pub(super) fn reread(&mut self, read: &Config) {
        self.own = OwnRules::of(read);
    }

    /// Looks for a newer list of revoked certificates.
    pub(super) fn follow_revocations(&mut self, now: Now, journal: &mut Journal, link: &Link<LinkLayer>) {
        match self.revocations.look(now.since_boot) {
            Look::Same => return,
            Look::Refused(why) => return journal.note("revocations", &why),
            Look::Newer(list) => {
                journal.note("revocations", &format!("a newer list, with {} certificates", list.len()));
                if link.order(Instruction::Revoke(list)).is_err() {
                    journal.note(
                        "revocations",
                        "the data path took no command, restart the daemon to have the list in force",
                    );
                }
            }
        }
        if self.revocations.names_us() {
            journal.note(
                "revocations",
                "this host's own certificate is revoked: its peers end their associations with it",
            );
        }
    }

    /// Looks for a newer policy, and has what follows from it, from the time or from the host's own
    /// file come into force; whether anything has. A data path that takes no command now is told
    /// later.
    pub(super) fn follow_policy(&mut self, now: Now, journal: &mut Journal, link: &Link<LinkLayer>) -> bool {
        self.policies.look(now, journal);
        if let Some(policy) = self.policies.news()
            && link.order(Instruction::SitePolicy(policy)).is_ok()
        {
            self.policies.told();
        }
        let rules = rules(&self.own, &self.policies, self.identity.certificate(), now);
        if rules == self.in_force || tell(&self.in_force, &rules, link).is_err() {
            return false;
        }
        if rules.policy.migration != self.in_force.policy.migration {
            let (new, old) = (rules.policy.migration.word(), self.in_force.policy.migration.word());
            journal.note("mode", &format!("mode {new} (it was {old})"));
        }
        let news = rules.notes.iter().filter(|note| !self.in_force.notes.contains(note));
        news.for_each(|note| journal.note("policy", note));
        self.in_force = rules;
        true
    }

    /// What `status` says of the policy.
    pub(super) fn policy_status(&self) -> Option<site_policy::SitePolicy> {
        self.policies.status(&self.in_force.notes)
    }
}

/// Has the data path go by other rules.
fn tell(before: &Rules, rules: &Rules, link: &Link<LinkLayer>) -> std::io::Result<()> {
    if rules.legacy != before.legacy {
        link.order(Instruction::Legacy(rules.legacy.clone()))?;
    }
    if rules.policy != before.policy {
        link.order(Instruction::Policy(rules.policy.clone()))?;
    }
    Ok(())
}

fn rules(own: &OwnRules, policies: &Policies, certificate: &HostCertificate, now: Now) -> Rules {
    let unix_s = now.trusted_unix_ms().map(|unix_ms| unix_ms / 1000);
    own.with(policies.policy().map(|policy| &***policy), certificate, unix_s)
}
