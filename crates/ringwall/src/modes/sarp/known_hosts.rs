//! Hosts without signed ARP that a host of mode `sarp` believes: those of its own file and those of
//! the site's policy.

use std::sync::Arc;

use bump::Now;
use identity::HostIdentity;
use sarp::KnownHost;

use super::guard::{Order, SignedArp};
use crate::daemon::{Journal, Link};
use crate::host::policy::Policies;
use crate::modes::file::Config;
use crate::modes::site_policy;
use crate::monitor::Disk;

/// The hosts that are believed.
pub(super) struct KnownHosts {
    policies: Policies,
    own: Vec<KnownHost>,
    in_force: Vec<KnownHost>,
    /// Where the file differs from the policy.
    notes: Vec<String>,
}

impl KnownHosts {
    /// Reads both for the first time.
    pub(super) fn open(config: &Config, identity: &Arc<HostIdentity>, now: Now, disk: &Disk) -> KnownHosts {
        let policies = Policies::open(config, identity, now, disk);
        let mut known =
            KnownHosts { policies, own: config.sarp.known_hosts(), in_force: Vec::new(), notes: Vec::new() };
        (known.in_force, known.notes) = known.joined();
        known.notes.iter().for_each(|note| tracing::warn!("{note}"));
        known
    }

    /// Those in force.
    pub(super) fn hosts(&self) -> &[KnownHost] {
        &self.in_force
    }

    /// Both lists; where they differ the site's entry counts, as with legacy hosts.
    fn joined(&self) -> (Vec<KnownHost>, Vec<String>) {
        let listed = self.policies.policy().map(|policy| &policy.content().known[..]).unwrap_or_default();
        let of_site: Vec<KnownHost> = listed.iter().map(|one| KnownHost { ip: one.ip, mac: one.mac }).collect();
        let mut notes = Vec::new();
        for own in self.own.iter().filter(|_| self.policies.policy().is_some()) {
            match of_site.iter().find(|one| one.ip == own.ip) {
                Some(one) if one == own => {}
                Some(one) => {
                    notes.push(format!(
                        "sarp.known_hosts has {} at {}, and the site's {} counts",
                        own.ip, own.mac, one.mac
                    ));
                }
                None => {
                    notes.push(format!("LOOSER than the policy: sarp.known_hosts believes {} at {}", own.ip, own.mac))
                }
            }
        }
        let own = self.own.iter().filter(|own| !of_site.iter().any(|one| one.ip == own.ip)).copied();
        (own.chain(of_site.iter().copied()).collect(), notes)
    }

    /// Has a newer policy of the file come into force. A data path that takes no command now is
    /// told later.
    pub(super) fn follow(&mut self, now: Now, journal: &mut Journal, link: &Link<SignedArp>) {
        self.policies.look(now, journal);
        let (hosts, notes) = self.joined();
        if hosts == self.in_force || link.order(Order::KnownHosts(hosts.clone())).is_err() {
            return;
        }
        notes.iter().filter(|note| !self.notes.contains(note)).for_each(|note| journal.note("policy", note));
        (self.in_force, self.notes) = (hosts, notes);
    }

    /// What `status` says of the policy.
    pub(super) fn policy_status(&self) -> Option<site_policy::SitePolicy> {
        self.policies.status(&self.notes)
    }
}
