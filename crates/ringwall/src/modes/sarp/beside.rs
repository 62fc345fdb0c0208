//! What a daemon that signs ARP keeps beside frames: its own key, the hosts that it believes, and
//! who distributes keys.

use std::convert::Infallible;

use identity::HostIdentity;
use watch::{Around, Known};

use super::guard::{Order, SignedArp};
use super::known_hosts::KnownHosts;
use super::parts::{Distributor, Sarp};
use super::refresh::Refresh;
use super::reports;
use crate::daemon::{Journal, Link, Snapshot};
use crate::failure::Failure;
use crate::host::interface::{Beside, Held};
use crate::host::renewed;
use crate::modes::kept_leases::{KeptLease, LeaseFile};
use crate::modes::parts::Parts;
use crate::protocol::{Answer, Ask};

/// All of that.
pub(super) struct Keeping {
    pub(super) refresh: Refresh,
    /// Whom it believes without a signature.
    pub(super) known: KnownHosts,
    /// In the order in which they are asked.
    pub(super) distributors: Vec<Distributor>,
    pub(super) lease_file: Option<LeaseFile>,
}

impl Keeping {
    /// Keeps what this host has by lease, whenever that has changed.
    fn keep_leases(&mut self, snapshot: &Snapshot<SignedArp>, journal: &mut Journal) {
        let Some(file) = &mut self.lease_file else { return };
        let now = snapshot.now.since_boot;
        let own = snapshot.report.leases.iter().filter(|lease| !lease.given);
        let kept = own.map(|lease| KeptLease {
            address: lease.ip,
            until: lease.remaining.map(|remaining| now + remaining),
            certificate: Vec::new(),
        });
        file.keep(kept.collect());
        if let Err(error) = file.write() {
            journal.note("lease-not-kept", &error);
        }
    }
}

/// Has other keys that hosts share come into force.
fn take_shared_keys(held: &mut Held, journal: &mut Journal, link: &Link<SignedArp>) -> Result<Option<String>, Failure> {
    let Some(in_force) = held.identity.clone() else { return Ok(None) };
    let Some(read) = renewed::reread(held, &in_force)? else { return Ok(None) };
    if read.certificate().der() != in_force.certificate().der() {
        return Ok(Some("the certificate is in force with the next start of the daemon".to_owned()));
    }
    if let Some(keys) = shared_keys(&read) {
        link.order(Order::Share(Box::new(keys))).map_err(Failure::new)?;
    }
    let line = renewed::shared_keys_line(&read);
    journal.note("shared-keys", &line);
    held.identity = Some(read);
    Ok(Some(line))
}

/// What a host that signs ARP shares with others.
fn shared_keys(identity: &HostIdentity) -> Option<sarp::SharedKeys> {
    Some(sarp::SharedKeys {
        site_keys: identity.site_keys().clone(),
        request_keys: identity.request_keys()?.clone(),
        masters: identity.request_masters().cloned(),
    })
}

impl Beside for Keeping {
    type Kind = SignedArp;

    fn carry_out(&mut self, _held: &Held, effect: Infallible, _journal: &mut Journal) {
        match effect {}
    }

    fn reload(
        &mut self,
        held: &mut Held,
        journal: &mut Journal,
        link: &Link<SignedArp>,
    ) -> Result<Vec<String>, Failure> {
        let mut lines = held.reread()?;
        lines.extend(take_shared_keys(held, journal, link)?);
        Ok(lines)
    }

    fn obey(&mut self, held: &mut Held, ask: &Ask, journal: &mut Journal, link: &Link<SignedArp>) -> Answer {
        match ask {
            Ask::Renewed => Answer::of(take_shared_keys(held, journal, link).map(Vec::from_iter)),
            _ => ask.not_known(),
        }
    }

    fn look_after(
        &mut self,
        _held: &mut Held,
        snapshot: &Snapshot<SignedArp>,
        journal: &mut Journal,
        link: &Link<SignedArp>,
    ) {
        self.known.follow(snapshot.now, journal, link);
        self.keep_leases(snapshot, journal);
        let wanted = self.refresh.step(&snapshot.report, snapshot.now.since_boot);
        // A data path that takes no command now is asked again later.
        let began = wanted.map(|key| link.order(Order::ChangeKey(key)));
        if began.is_some_and(|sent| sent.is_err()) {
            journal.note("own-key", "the data path took no command to change this host's key");
        }
    }

    fn around(&self, held: &Held, snapshot: &Snapshot<SignedArp>) -> Around {
        let report = &snapshot.report;
        let listed = held.config.sarp.known_hosts().into_iter().chain(self.known.hosts().iter().copied());
        let others: Vec<Known> = listed.map(|host| reports::believed(&host)).collect();
        held.around(reports::leased(report), reports::met(report), others)
    }

    fn known(&self, snapshot: &Snapshot<SignedArp>) -> Answer {
        reports::known(&snapshot.report)
    }

    fn peers(&self, snapshot: &Snapshot<SignedArp>) -> usize {
        reports::peer_count(&snapshot.report)
    }

    fn parts(&self, held: &Held, snapshot: &Snapshot<SignedArp>) -> Parts {
        let (report, now) = (&snapshot.report, snapshot.now);
        let own_key = Some(reports::own_key(self.refresh.standing(report, now.since_boot)));
        let known_hosts = self.known.hosts().len();
        let standing = reports::standing(report, now, &held.config, &self.distributors);
        let sarp = Some(Sarp { own_key, known_hosts, ..standing });
        Parts { policy: self.known.policy_status(), sarp, ..Parts::default() }
    }
}
