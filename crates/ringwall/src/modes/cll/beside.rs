//! What a link layer's daemon keeps beside frames: who has proved himself, when certificates end,
//! what the authority signs for all hosts, tickets, and the neighbours that it entered.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::Now;
use cll::{Effect, Instruction};
use identity::certificate::utc_text;
use system::takeover;
use watch::{Around, Known};
use wire::MacAddress;

use super::config::MigrationName;
use super::guard::LinkLayer;
use super::progress::Progress;
use super::signed::Signed;
use super::tickets::TicketFiles;
use super::{leases, reports};
use crate::daemon::{Journal, Link, Snapshot};
use crate::failure::Failure;
use crate::host::expiry::Expiry;
use crate::host::interface::{Beside, Held};
use crate::host::renewed;
use crate::modes::kept_leases::{KeptLease, LeaseFile};
use crate::modes::parts::Parts;
use crate::modes::site_policy::Revoked;
use crate::protocol::{Answer, Ask, OWN_REVOKED};

/// All of that.
pub(super) struct Keeping {
    pub(super) progress: Progress,
    pub(super) expiry: Expiry,
    pub(super) signed: Signed,
    /// Tickets on disk, where they are kept.
    pub(super) tickets: Option<TicketFiles>,
    pub(super) lease_file: Option<LeaseFile>,
    pub(super) legacy: Vec<(Ipv4Addr, MacAddress)>,
}

impl Keeping {
    /// What is said and done elsewhere goes by the rules in force.
    fn adopt_rules(&mut self, held: &mut Held) {
        self.signed.rules().write_to(&mut held.config);
        self.progress.follow(&self.signed.rules().policy);
        set_guard(held);
    }

    /// The rules that follow from the policy and this host's own file come into force.
    fn apply_rules(&mut self, held: &mut Held, now: Now, journal: &mut Journal, link: &Link<LinkLayer>) {
        let before = held.config.cll.migration;
        if self.signed.follow_policy(now, journal, link) {
            self.adopt_rules(held);
            forget_what_is_not_believed(held, before, journal);
        }
    }

    /// Has a renewed certificate in the identity file come into force; says so if there is one.
    fn take_identity(
        &mut self,
        held: &mut Held,
        journal: &mut Journal,
        link: &Link<LinkLayer>,
    ) -> Result<Option<String>, Failure> {
        let Some(in_force) = held.identity.clone() else { return Ok(None) };
        let Some(renewed) = renewed::reread(held, &in_force)? else { return Ok(None) };
        let is_same = renewed.certificate().der() == in_force.certificate().der();
        leases::settings(&held.config, &renewed, held.config.cll.ipv6, 0)?;
        if held.config.dhcp.server && !is_same {
            let what = "it is renewed, and leases that this host gave hang on the certificate before";
            return Err(renewed::another(&held.config, what));
        }
        link.order(Instruction::Renewed(Arc::clone(&renewed))).map_err(Failure::new)?;
        let line = if is_same {
            let line = renewed::shared_keys_line(&renewed);
            journal.note("shared-keys", &line);
            line
        } else {
            let until = utc_text(renewed.certificate().not_after_unix());
            let line = format!("this host's certificate is renewed until {until}; peers see it with new keys");
            journal.note("certificate-renewed", &line);
            line
        };
        self.expiry.follow(&renewed);
        self.signed.follow(&renewed);
        held.identity = Some(renewed);
        Ok(Some(line))
    }

    fn keep(&mut self, leases: Vec<KeptLease>) {
        self.lease_file.iter_mut().for_each(|file| file.keep(leases.clone()));
    }

    fn write_lease(&mut self, journal: &mut Journal) {
        if let Some(Err(error)) = self.lease_file.as_mut().map(LeaseFile::write) {
            journal.note("lease-not-kept", &error);
        }
    }

    fn write_tickets(&mut self, journal: &mut Journal) {
        if let Some(Err(error)) = self.tickets.as_mut().map(TicketFiles::write) {
            journal.note("tickets-lost", &format!("{error}; after a reboot handshakes take their place"));
        }
    }
}

/// What is in clear comes to the data path only where some of it may be let in.
fn set_guard(held: &Held) {
    if let Some(fence) = &held.taken.fence {
        fence.set_open(held.config.cll.lets_clear_in(held.config.lab.as_ref()));
    }
}

/// Where a mode is in force that believes less than the one `before`, the stack forgets what it has
/// learned. It would go on to send to whoever had spoken in another's name, until it asks again.
fn forget_what_is_not_believed(held: &Held, before: MigrationName, journal: &mut Journal) {
    if held.config.cll.migration.mode() <= before.mode() {
        return;
    }
    let interface = &held.config.host.interface;
    if let Err(error) = takeover::forget_heard_neighbours(interface) {
        journal.note("neighbours-kept", &format!("what {interface} has learned in clear stays for a while: {error}"));
    }
}

fn set_neighbour(held: &Held, ip: Ipv4Addr, mac: MacAddress, journal: &mut Journal) {
    if let Err(error) = takeover::set_permanent_neighbour(&held.config.host.interface, ip, mac) {
        journal.note("legacy-neighbour", &format!("{ip} at {mac}: {error}"));
    }
}

fn forget_neighbour(interface: &str, ip: Ipv4Addr, journal: &mut Journal) {
    if let Err(error) = takeover::remove_permanent_neighbour(interface, ip) {
        journal.note("legacy-neighbour", &format!("{ip}: {error}"));
    }
}

impl Beside for Keeping {
    type Kind = LinkLayer;

    fn begin(&mut self, held: &mut Held) {
        self.adopt_rules(held);
    }

    fn carry_out(&mut self, held: &Held, effect: Effect, journal: &mut Journal) {
        if self.tickets.as_mut().is_some_and(|tickets| tickets.take(&effect)) {
            return;
        }
        match effect {
            Effect::PermanentNeighbour { ip, mac } => {
                set_neighbour(held, ip, mac, journal);
                self.legacy.push((ip, mac));
            }
            Effect::Remember(host) => self.progress.remember(host, journal),
            Effect::CheckRevocationList { from, der } => self.signed.take_list(from, &der, journal),
            Effect::CheckPolicy { from, bytes } => {
                self.signed.take_policy(from, &bytes, held.config.clock().now(), journal)
            }
            Effect::ForgetNeighbour { ip, mac } => {
                self.legacy.retain(|known| *known != (ip, mac));
                forget_neighbour(&held.config.host.interface, ip, journal);
            }
            Effect::RememberTime { mac, unix_ms } => {
                self.progress.remember_time(mac, unix_ms, held.config.clock().now())
            }
            // Of no use without the files.
            Effect::KeepTicket(_) | Effect::ForgetTicket(_) | Effect::KeepTicketKeys(_) | Effect::KeepSpent(_) => {}
            Effect::KeepLease(lease) => self.keep(vec![leases::for_file(lease)]),
            Effect::ForgetLease => self.keep(Vec::new()),
        }
    }

    fn came_up(&mut self, held: &Held, journal: &mut Journal) {
        for (ip, mac) in &self.legacy {
            set_neighbour(held, *ip, *mac, journal);
        }
    }

    fn reload(
        &mut self,
        held: &mut Held,
        journal: &mut Journal,
        link: &Link<LinkLayer>,
    ) -> Result<Vec<String>, Failure> {
        let before = held.config.cll.migration;
        let (read, lines) = self.progress.reload(&mut held.config)?;
        self.signed.reread(&read);
        let now = held.config.clock().now();
        self.apply_rules(held, now, journal, link);
        self.adopt_rules(held);
        forget_what_is_not_believed(held, before, journal);
        let mode = held.config.cll.migration.mode().word();
        let line = format!("mode {mode} (it was {})", before.mode().word());
        // What cannot come into force is only named.
        let renewed = self.take_identity(held, journal, link);
        let renewed = renewed.unwrap_or_else(|failure| Some(format!("warning: {failure}")));
        set_guard(held);
        Ok(std::iter::once(line).chain(lines).chain(renewed).collect())
    }

    fn obey(&mut self, held: &mut Held, ask: &Ask, journal: &mut Journal, link: &Link<LinkLayer>) -> Answer {
        let done = match ask {
            Ask::Renewed => self.take_identity(held, journal, link).map(Vec::from_iter),
            Ask::Forget { who } => self.progress.forget(who, journal, link),
            _ => return ask.not_known(),
        };
        set_guard(held);
        Answer::of(done)
    }

    fn look_after(
        &mut self,
        held: &mut Held,
        snapshot: &Snapshot<LinkLayer>,
        journal: &mut Journal,
        link: &Link<LinkLayer>,
    ) {
        self.signed.follow_revocations(snapshot.now, journal, link);
        self.apply_rules(held, snapshot.now, journal, link);
        self.expiry.look(snapshot.now, journal);
        self.progress.save_times(snapshot.now.since_boot, journal);
        self.write_tickets(journal);
        self.write_lease(journal);
    }

    fn around(&self, held: &Held, snapshot: &Snapshot<LinkLayer>) -> Around {
        let link = &snapshot.report;
        let listed = held.config.cll.legacy.iter();
        let listed =
            listed.map(|host| Known { name: None, mac: Some(host.mac.mac()), addresses: vec![host.ip.into()] });
        let others = self.progress.proved().iter().map(reports::proved_host).chain(listed);
        let is_enforcing = held.config.cll.migration == MigrationName::Enforce;
        let around = held.around(reports::leased(link), reports::met(link), others.collect());
        Around { asks_in_clear: !is_enforcing, known_are_sealed: is_enforcing, ..around }
    }

    fn known(&self, snapshot: &Snapshot<LinkLayer>) -> Answer {
        reports::known(&snapshot.report, self.progress.clocks())
    }

    fn peers(&self, snapshot: &Snapshot<LinkLayer>) -> usize {
        reports::peer_count(&snapshot.report)
    }

    fn parts(&self, held: &Held, snapshot: &Snapshot<LinkLayer>) -> Parts {
        let link = &snapshot.report;
        Parts {
            revoked: self.signed.revocations().list().map(|list| Revoked(list.len())),
            policy: self.signed.policy_status(),
            migration: Some(self.progress.status(&held.config.cll.legacy, link, &snapshot.ledger)),
            compression: reports::compression(link),
            leases: reports::leases(link),
            ..Parts::default()
        }
    }

    fn warnings(&self, held: &Held, now: Now) -> Vec<String> {
        let list = self.signed.revocations().list();
        let own = held.identity.as_ref().map(|own| own.certificate());
        let is_revoked = list.zip(own).is_some_and(|(list, own)| list.names(own));
        self.expiry.warnings(now).into_iter().chain(is_revoked.then(|| OWN_REVOKED.to_owned())).collect()
    }

    fn not_protected(&self) -> Option<String> {
        self.progress.not_protected()
    }

    fn end(&mut self) {
        if let Some(Err(error)) = self.tickets.as_mut().map(TicketFiles::write_all) {
            tracing::warn!(error, "tickets are not kept; after a restart handshakes take their place");
        }
        if let Some(Err(error)) = self.lease_file.as_mut().map(LeaseFile::write) {
            tracing::warn!(error, "the lease is not kept");
        }
    }
}
