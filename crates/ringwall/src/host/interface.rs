//! What a host's daemon holds beside its frames: the taken interface and what follows it, and its identity.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bump::ClockTrust;
use cll::Effect;
use identity::HostIdentity;
use system::takeover::{self, Change, Follower, Taken, state};

use super::outpost::Standing;
use super::refresh::Refresh;
use super::reports;
use super::revocation::{Look, Revocations};
use super::tickets::TicketFiles;
use crate::config::{Config, Mode, OnExit, Trains};
use crate::daemon::{Being, Command, Journal, Link, Order, Report, SideNames, Snapshot, Ward};
use crate::failure::Failure;
use crate::protocol::{self, Answer, Identity, Sarp, Status, Takeover};
use crate::shield::KeyWatch;

/// A guarded interface.
pub(super) struct Interface {
    config: Config,
    identity: Option<Arc<HostIdentity>>,
    /// The key distributors, in the order in which they are asked.
    distributors: Vec<protocol::Distributor>,
    /// The host's own key, where it is looked up.
    refresh: Option<Refresh>,
    /// The key files of a shield's pairs.
    keys: Option<KeyWatch>,
    /// The certificates that the site has taken back, where a file is named.
    revocations: Option<Revocations>,
    /// Tickets of the link layer on disk, where they are kept.
    tickets: Option<TicketFiles>,
    taken: Taken,
    follower: Follower,
    /// Where forged frames of the link layer end.
    layers: Option<Standing>,
    legacy: Vec<Effect>,
    carrier: bool,
}

impl Interface {
    /// The interface that was `taken`.
    pub(super) fn new(
        config: &Config,
        identity: Option<Arc<HostIdentity>>,
        taken: Taken,
        follower: Follower,
        layers: Option<Standing>,
    ) -> Interface {
        Interface {
            config: config.clone(),
            identity,
            distributors: Vec::new(),
            refresh: None,
            keys: None,
            revocations: None,
            tickets: None,
            taken,
            follower,
            layers,
            legacy: Vec::new(),
            carrier: true,
        }
    }

    /// Has `status` name the key distributors.
    pub(super) fn name_distributors(&mut self, distributors: Vec<protocol::Distributor>) {
        self.distributors = distributors;
    }

    /// Has this host's own key changed as its configuration wants.
    pub(super) fn keep_key(&mut self, refresh: Refresh) {
        self.refresh = Some(refresh);
    }

    /// Has changed key files of a shield's pairs come into force.
    pub(super) fn watch_keys(&mut self, keys: KeyWatch) {
        self.keys = Some(keys);
    }

    /// Has the file with the site's revoked certificates followed.
    pub(super) fn keep_revocations(&mut self, revocations: Revocations) {
        self.revocations = Some(revocations);
    }

    /// Has what associations are resumed with kept on disk.
    pub(super) fn keep_tickets(&mut self, tickets: TicketFiles) {
        self.tickets = Some(tickets);
    }

    fn write_tickets(&mut self, journal: &mut Journal) {
        if let Some(Err(error)) = self.tickets.as_mut().map(TicketFiles::write) {
            journal.note("tickets-lost", &format!("{error}; after a reboot handshakes take their place"));
        }
    }

    fn follow_revocations(&mut self, snapshot: &Snapshot, journal: &mut Journal, link: &Link) {
        let Some(revocations) = &mut self.revocations else { return };
        match revocations.look(snapshot.now.since_boot) {
            Look::Same => return,
            Look::Refused(why) => return journal.note("revocations", &why),
            Look::Newer(list) => {
                journal.note("revocations", &format!("a newer list, with {} certificates", list.len()));
                if link.order(Order::Revoke(list)).is_err() {
                    journal.note(
                        "revocations",
                        "the data path took no command, restart the daemon to have the list in force",
                    );
                }
            }
        }
        if revocations.names_us() {
            journal.note(
                "revocations",
                "this host's own certificate is revoked: its peers end their associations with it",
            );
        }
    }

    fn follow_own_key(&mut self, snapshot: &Snapshot, journal: &mut Journal, link: &Link) {
        let (Some(refresh), Report::Keys(report)) = (&mut self.refresh, &snapshot.report) else { return };
        let wanted = refresh.step(report, snapshot.now.since_boot);
        // A data path that takes no command now is asked again later.
        let began = wanted.map(|key| link.order(Order::ChangeKey(key)));
        if began.is_some_and(|sent| sent.is_err()) {
            journal.note("own-key", "the data path took no command to change this host's key");
        }
    }

    pub(super) fn wire_mtu(&self) -> u16 {
        u16::try_from(self.taken.nic_mtu).unwrap_or(u16::MAX)
    }

    fn set_neighbour(&mut self, effect: &Effect, journal: &mut Journal) {
        let Effect::PermanentNeighbour { ip, mac } = effect else { return };
        if let Err(error) = takeover::set_permanent_neighbour(&self.config.host.interface, *ip, *mac) {
            journal.note("legacy-neighbour", &format!("{ip} at {mac}: {error}"));
        }
    }

    /// What is sealed must fit the card, and the stack must know how much that leaves.
    fn follow_mtu(&mut self, nic_mtu: u32, link: &Link) -> io::Result<()> {
        let overhead = self.taken.nic_mtu.saturating_sub(self.taken.inner_mtu);
        self.taken.nic_mtu = nic_mtu;
        self.taken.inner_mtu = nic_mtu.saturating_sub(overhead);
        link.command(Command::WireMtu(self.wire_mtu()))?;
        self.follower.apply_mtu(self.taken.inner_mtu)
    }

    /// The kernel forgets permanent neighbours when a device goes down.
    fn renew_neighbours(&mut self, up: bool, journal: &mut Journal) {
        if up {
            for effect in self.legacy.clone() {
                self.set_neighbour(&effect, journal);
            }
        }
    }

    fn takeover(&self, snapshot: &Snapshot) -> Takeover {
        let host = &self.config.host;
        let state = state::load(&host.state_dir, &host.interface).ok().flatten();
        let revert_at = state.and_then(|state| state.revert_at());
        Takeover {
            way: format!("{:?}", self.taken.way).to_lowercase(),
            adopted: self.taken.adopted,
            on_exit: host.on_exit.word().to_owned(),
            carrier: self.carrier,
            wire_mtu: self.taken.nic_mtu,
            inner_mtu: self.taken.inner_mtu,
            reverts_in_s: revert_at.map(|at| at.since(snapshot.now.since_boot).as_secs()),
            probes: self.probes(snapshot),
            warnings: self.taken.warnings.clone(),
        }
    }

    /// How signed ARP is, in that mode.
    fn sarp(&self, snapshot: &Snapshot) -> Option<Sarp> {
        let Report::Keys(report) = &snapshot.report else { return None };
        let now = snapshot.now.since_boot;
        let own_key = self.refresh.as_ref().map(|refresh| reports::own_key(refresh.standing(report, now)));
        Some(Sarp { own_key, ..reports::sarp(report, snapshot.now, &self.config, &self.distributors) })
    }

    /// How the shield is, in that mode.
    fn shield(&self, snapshot: &Snapshot) -> Option<protocol::Shield> {
        let (Report::Shielding(peers), Some(section)) = (&snapshot.report, &self.config.shield) else { return None };
        Some(crate::shield::reports::standing(section, peers))
    }

    fn follow_keys(&mut self, journal: &mut Journal, link: &Link) {
        let changed = self.keys.as_mut().and_then(|keys| keys.changed(journal));
        if changed.is_some_and(|peers| link.order(Order::SetPeers(peers)).is_err()) {
            journal.note("keys-kept", "the data path took no command to change keys; start the daemon again");
        }
    }

    /// What was found out about the kernel and the card.
    fn probes(&self, snapshot: &Snapshot) -> BTreeMap<String, String> {
        let probes = self.taken.probes.iter().map(|probe| (probe.name.clone(), probe.outcome.clone()));
        if matches!(self.config.host.mode, Mode::Sarp | Mode::Shield) {
            return probes.collect();
        }
        let trains = match (self.config.cll.trains, snapshot.may_couple) {
            (Trains::Off, _) => "no: switched off by cll.trains",
            (_, false) => "no: this kernel does not cut UDP for packet sockets, frames go one by one",
            (Trains::Auto, true) => "yes, for bulk",
            (Trains::Always, true) => "yes, always",
        };
        probes.chain([("trains".to_owned(), trains.to_owned())]).collect()
    }
}

impl Ward for Interface {
    const SIDES: SideNames = SideNames { inner: "stack", outer: "wire" };

    fn name(&self) -> &str {
        &self.config.host.interface
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.follower.descriptors().into()
    }

    /// The inner device does what the card does.
    fn follow(&mut self, journal: &mut Journal, link: &Link) -> Result<(), Failure> {
        while let Some(change) = self.follower.next_change().map_err(Failure::new)? {
            journal.note("interface", &format!("{change:?}"));
            let applied = match change {
                Change::Carrier(carrier) => {
                    self.carrier = carrier;
                    self.follower.apply_carrier(carrier)
                }
                Change::Mtu(mtu) => self.follow_mtu(mtu, link),
                Change::NicGone | Change::InnerGone | Change::Mac(_) | Change::InnerMac(_) => {
                    let line =
                        format!("{}: {change:?}; start the daemon again when it is back", self.config.host.interface);
                    return Err(Failure::new(line));
                }
                Change::NicUp(_) | Change::InnerMtu(_) => Ok(()),
                Change::InnerUp(up) => {
                    self.renew_neighbours(up, journal);
                    Ok(())
                }
            };
            if let Err(error) = applied {
                journal.note("interface", &format!("{change:?} could not be followed: {error}"));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect, journal: &mut Journal) {
        if self.tickets.as_mut().is_some_and(|tickets| tickets.take(&effect)) {
            return;
        }
        self.set_neighbour(&effect, journal);
        self.legacy.push(effect);
    }

    fn look_after(&mut self, snapshot: &Snapshot, journal: &mut Journal, link: &Link) {
        self.follow_keys(journal, link);
        self.follow_own_key(snapshot, journal, link);
        self.follow_revocations(snapshot, journal, link);
        self.write_tickets(journal);
    }

    fn known(&self, snapshot: &Snapshot) -> Answer {
        reports::known(&snapshot.report)
    }

    fn status(&self, being: &Being, snapshot: &Snapshot) -> Answer {
        let host = &self.config.host;
        let trust = snapshot.now.wall.map_or(ClockTrust::Wrong, |wall| wall.trust);
        Answer::Status(Box::new(Status {
            version: being.version.clone(),
            state: being.state.clone(),
            interface: host.interface.clone(),
            mode: host.mode.word().to_owned(),
            profile: host.profile.word().to_owned(),
            weakened: self.config.weakened(),
            uptime_s: being.uptime_s,
            takeover: self.takeover(snapshot),
            identity: self.identity.as_deref().map(|identity| describe(identity, snapshot)),
            peers: reports::peer_count(&snapshot.report),
            revoked: self.revocations.as_ref().map(|revocations| revocations.list().len()),
            sarp: self.sarp(snapshot),
            shield: self.shield(snapshot),
            layers: self.layers.as_ref().map(reports::layers),
            frames: reports::frames(&snapshot.ledger),
            drops: reports::drops(&snapshot.ledger),
            ports: reports::ports(snapshot, Interface::SIDES),
            clock: format!("{trust:?}").to_lowercase(),
            not_carried: owned(host.mode.not_carried()),
            not_protected: owned(host.mode.not_protected()),
        }))
    }

    fn give_back(mut self) -> Result<(), Failure> {
        if let Some(Err(error)) = self.tickets.as_mut().map(TicketFiles::write_all) {
            tracing::warn!(error, "tickets are not kept; after a restart handshakes take their place");
        }
        let host = &self.config.host;
        // Whoever gives the interface back must be its only holder.
        drop(self.taken);
        match host.on_exit {
            OnExit::Closed => Ok(()),
            OnExit::Restore => {
                takeover::release(&host.interface, &host.run_dir, &host.state_dir)?;
                Ok(())
            }
        }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn describe(identity: &HostIdentity, snapshot: &Snapshot) -> Identity {
    let certificate = identity.certificate();
    Identity {
        name: certificate.name().to_owned(),
        site: identity.site_name(),
        mac: certificate.mac().to_string(),
        addresses: certificate.addresses().iter().map(ToString::to_string).collect(),
        router: certificate.is_router(),
        certificate_days_left: reports::days_left(certificate.not_after_unix(), snapshot.now),
    }
}
