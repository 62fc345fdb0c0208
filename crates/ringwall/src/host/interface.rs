//! What a host's daemon holds beside its frames: the taken interface and what follows it, and its identity.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bump::{ClockTrust, DropReason, Ledger, Now, Side};
use cll::{Effect, Instruction};
use identity::HostIdentity;
use identity::certificate::utc_text;
use system::takeover::{self, Change, Fence, Follower, Taken};
use watch::Around;
use wire::MacAddress;

use super::around;
use super::expiry::Expiry;
use super::known_hosts::SarpSide;
use super::outpost::Standing;
use super::progress::Progress;
use super::renewed;
use super::reports;
use super::revocation::Revocations;
use super::signed::Signed;
use super::tickets::TicketFiles;
use crate::config::{Config, Mode, OnExit, Records, Trains, UNREADABLE, changed_keys, restart_line};
use crate::daemon::reports::precedence;
use crate::daemon::{Being, Command, Journal, Link, Order, Report, SideNames, Snapshot, Ward};
use crate::failure::Failure;
use crate::monitor::Disk;
use crate::protocol::{self, Answer, Ask, Identity, Sarp, Status, Takeover};
use crate::shield::KeyWatch;

/// A guarded interface.
pub(super) struct Interface {
    config: Config,
    disk: Disk,
    identity: Option<Arc<HostIdentity>>,
    /// The key distributors, in the order in which they are asked.
    distributors: Vec<protocol::Distributor>,
    /// The host's own key, where it is looked up.
    sarp: Option<SarpSide>,
    /// The key files of a shield's pairs.
    keys: Option<KeyWatch>,
    /// What the site's authority signs for all hosts, in mode `cll`.
    signed: Option<Signed>,
    /// Tickets of the link layer on disk, where they are kept.
    tickets: Option<TicketFiles>,
    taken: Taken,
    follower: Follower,
    /// Where forged frames of the link layer end.
    layers: Option<Standing>,
    legacy: Vec<(Ipv4Addr, MacAddress)>,
    /// How far the move to sealed frames is, in mode `cll`.
    progress: Option<Progress>,
    /// Certificates whose end is watched.
    expiry: Option<Expiry>,
    carrier: bool,
}

impl Interface {
    /// The interface that was `taken`.
    pub(super) fn new(
        config: &Config,
        disk: &Disk,
        identity: Option<Arc<HostIdentity>>,
        taken: Taken,
        follower: Follower,
        layers: Option<Standing>,
    ) -> Interface {
        Interface {
            config: config.clone(),
            disk: disk.clone(),
            identity,
            distributors: Vec::new(),
            sarp: None,
            keys: None,
            signed: None,
            tickets: None,
            taken,
            follower,
            layers,
            legacy: Vec::new(),
            progress: None,
            expiry: None,
            carrier: true,
        }
    }

    /// Has `status` name the key distributors.
    pub(super) fn name_distributors(&mut self, distributors: Vec<protocol::Distributor>) {
        self.distributors = distributors;
    }

    /// Has this host's own key changed as its configuration wants.
    pub(super) fn keep_sarp(&mut self, side: SarpSide) {
        self.sarp = Some(side);
    }

    /// Has changed key files of a shield's pairs come into force.
    pub(super) fn watch_keys(&mut self, keys: KeyWatch) {
        self.keys = Some(keys);
    }

    /// What a link layer's daemon keeps: who has proved himself, when certificates end, and what
    /// the authority signs.
    pub(super) fn keep_progress(&mut self, progress: Progress, expiry: Expiry, signed: Signed) {
        (self.progress, self.expiry, self.signed) = (Some(progress), Some(expiry), Some(signed));
        self.adopt_rules();
    }

    /// What is in clear comes to the data path only where some of it may be let in.
    fn set_guard(&self) {
        if let Some(fence) = &self.taken.fence {
            fence.set_open(self.config.lets_clear_in());
        }
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

    /// What the site's authority has signed comes into force.
    fn follow_signed(&mut self, snapshot: &Snapshot, journal: &mut Journal, link: &Link) {
        if let Some(signed) = &mut self.signed {
            signed.follow_revocations(snapshot.now, journal, link);
        }
        self.apply_rules(snapshot.now, journal, link);
    }

    /// The rules that follow from the policy and this host's own file come into force.
    fn apply_rules(&mut self, now: Now, journal: &mut Journal, link: &Link) {
        if self.signed.as_mut().is_some_and(|signed| signed.follow_policy(now, journal, link)) {
            self.adopt_rules();
        }
    }

    /// What is said and done elsewhere goes by the rules in force.
    fn adopt_rules(&mut self) {
        let (Some(signed), Some(progress)) = (&self.signed, &mut self.progress) else { return };
        signed.rules().write_to(&mut self.config);
        progress.follow(&signed.rules().policy);
        self.set_guard();
    }

    /// Has a renewed certificate in the identity file come into force; says so if there is one.
    fn take_identity(&mut self, journal: &mut Journal, link: &Link) -> Result<Option<String>, Failure> {
        let Some(in_force) = &self.identity else { return Ok(None) };
        let now = self.config.clock().now();
        let Some(renewed) = renewed::reread(&self.config, in_force, now, &self.disk)? else { return Ok(None) };
        link.order(Order::Instruct(Instruction::Renewed(Arc::clone(&renewed)))).map_err(Failure::new)?;
        let line = if renewed.certificate().der() == in_force.certificate().der() {
            let line = shared_keys_line(&renewed);
            journal.note("shared-keys", &line);
            line
        } else {
            let until = utc_text(renewed.certificate().not_after_unix());
            let line = format!("this host's certificate is renewed until {until}; peers see it with new keys");
            journal.note("certificate-renewed", &line);
            line
        };
        self.expiry.iter_mut().for_each(|expiry| expiry.follow(&renewed));
        self.signed.iter_mut().for_each(|signed| signed.follow(&renewed));
        self.identity = Some(renewed);
        Ok(Some(line))
    }

    /// Has other keys that hosts share come into force in mode `sarp`.
    fn take_shared_keys(&mut self, journal: &mut Journal, link: &Link) -> Result<Option<String>, Failure> {
        let Some(in_force) = &self.identity else { return Ok(None) };
        let now = self.config.clock().now();
        let Some(read) = renewed::reread(&self.config, in_force, now, &self.disk)? else { return Ok(None) };
        if read.certificate().der() != in_force.certificate().der() {
            return Ok(Some("the certificate is in force with the next start of the daemon".to_owned()));
        }
        if let Some(keys) = sarp_keys(&read) {
            link.order(Order::Share(Box::new(keys))).map_err(Failure::new)?;
        }
        let line = shared_keys_line(&read);
        journal.note("shared-keys", &line);
        self.identity = Some(read);
        Ok(Some(line))
    }

    /// The same beside other things that were read again; what cannot come into force is only named.
    fn reread_identity(&mut self, journal: &mut Journal, link: &Link) -> Option<String> {
        self.take_identity(journal, link).unwrap_or_else(|failure| Some(format!("warning: {failure}")))
    }

    /// The configuration read again where no mode of migration is in it: what needs a restart is named.
    fn reread(&mut self, journal: &mut Journal, link: &Link) -> Result<Vec<String>, Failure> {
        let file = self.disk.configuration().ok_or_else(|| Failure::new("there is no configuration file"))?;
        let text = self.disk.read(file).map_err(|error| Failure::file(file, error, UNREADABLE))?.text;
        let read = Config::read(file, &text)?;
        self.config.records.follow(&read.records);
        let mut lines = vec!["the places in [records] are in force".to_owned()];
        lines.extend(restart_line(&changed_keys(&self.config, &read)));
        if self.config.host.mode == Mode::Sarp {
            lines.extend(self.take_shared_keys(journal, link)?);
        }
        Ok(lines)
    }

    fn not_protected(&self) -> Vec<String> {
        let loosened = self.progress.as_ref().and_then(Progress::not_protected);
        owned(self.config.host.mode.not_protected()).into_iter().chain(loosened).collect()
    }

    fn follow_own_key(&mut self, snapshot: &Snapshot, journal: &mut Journal, link: &Link) {
        let (Some(side), Report::Keys(report)) = (&mut self.sarp, &snapshot.report) else { return };
        side.known.follow(snapshot.now, journal, link);
        let wanted = side.refresh.step(report, snapshot.now.since_boot);
        // A data path that takes no command now is asked again later.
        let began = wanted.map(|key| link.order(Order::ChangeKey(key)));
        if began.is_some_and(|sent| sent.is_err()) {
            journal.note("own-key", "the data path took no command to change this host's key");
        }
    }

    pub(super) fn wire_mtu(&self) -> u16 {
        u16::try_from(self.taken.nic_mtu).unwrap_or(u16::MAX)
    }

    fn set_neighbour(&mut self, ip: Ipv4Addr, mac: MacAddress, journal: &mut Journal) {
        if let Err(error) = takeover::set_permanent_neighbour(&self.config.host.interface, ip, mac) {
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
            for (ip, mac) in self.legacy.clone() {
                self.set_neighbour(ip, mac, journal);
            }
        }
    }

    fn takeover(&self, snapshot: &Snapshot) -> Takeover {
        let host = &self.config.host;
        let revert_at = self.disk.reverts_at();
        Takeover {
            way: self.taken.way.word().to_owned(),
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

    /// What of the site's authority is in force.
    fn signed_status(&self) -> protocol::Signed {
        let of_sarp = || self.sarp.as_ref().and_then(|side| side.known.policy_status());
        let revocations = self.signed.as_ref().map(Signed::revocations).and_then(Revocations::list);
        protocol::Signed {
            revoked: revocations.map(|list| list.len()),
            policy: self.signed.as_ref().and_then(Signed::policy_status).or_else(of_sarp),
        }
    }

    /// How signed ARP is, in that mode.
    fn sarp(&self, snapshot: &Snapshot) -> Option<Sarp> {
        let Report::Keys(report) = &snapshot.report else { return None };
        let now = snapshot.now.since_boot;
        let own_key = self.sarp.as_ref().map(|side| reports::own_key(side.refresh.standing(report, now)));
        let known_hosts = self.sarp.as_ref().map_or(0, |side| side.known.hosts().len());
        Some(Sarp { own_key, known_hosts, ..reports::sarp(report, snapshot.now, &self.config, &self.distributors) })
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

    /// Network managers give a wireless card made-up addresses while it looks for a network, and its
    /// own when it joins one. What they may be told to do is to keep a made-up one.
    fn note_made_up_address(&self, mac: MacAddress, journal: &mut Journal) {
        let bound = self.identity.as_ref().map(|identity| identity.certificate().mac());
        if let Some(bound) = bound.filter(|bound| *bound != mac) {
            let line =
                format!("no peer answers while the card's hardware address is {mac}: the certificate is for {bound}");
            let remedy = "should it stay, have the network manager use the permanent address for this network";
            journal.note("interface", &format!("{line}; {remedy}"));
        }
    }

    /// What was found out about the kernel and the card.
    fn probes(&self, snapshot: &Snapshot) -> BTreeMap<String, String> {
        let probes = self.taken.probes.iter().map(|probe| (probe.name.clone(), probe.outcome.clone()));
        let probes = probes.chain(precedence(snapshot));
        if matches!(self.config.host.mode, Mode::Sarp | Mode::Shield) {
            return probes.collect();
        }
        let trains = match (self.config.trains(), snapshot.may_couple) {
            (Trains::Off, _) if self.config.cll.trains == Trains::Off => "no: switched off by cll.trains",
            (Trains::Off, _) => "no: this kernel does not cut UDP, so nothing is kept free for them",
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
        if self.taken.fence.as_ref().is_some_and(Fence::is_torn) {
            let interface = &self.config.host.interface;
            let line = format!("{interface}: somebody took nftables' rules away, and with them ours; nothing leaves");
            return Err(Failure::new(format!("{line} until the daemon is started again")));
        }
        while let Some(change) = self.follower.next_change().map_err(Failure::new)? {
            journal.note("interface", &change.to_string());
            let applied = match change {
                Change::Carrier(carrier) => {
                    self.carrier = carrier;
                    self.follower.apply_carrier(carrier)
                }
                Change::Mtu(mtu) => self.follow_mtu(mtu, link),
                // Nobody goes by the address of the TAP beside a card; udev may change it.
                Change::InnerMac(_) if self.taken.fence.is_some() => Ok(()),
                Change::Mac(mac) if self.taken.fence.is_some() && self.config.is_wireless => {
                    self.note_made_up_address(mac, journal);
                    Ok(())
                }
                Change::NicGone | Change::InnerGone | Change::Mac(_) | Change::InnerMac(_) => {
                    let line =
                        format!("{}: {change}; start the daemon again when it is back", self.config.host.interface);
                    return Err(Failure::new(line));
                }
                Change::InnerMtu(_) => Ok(()),
                Change::NicUp(up) | Change::InnerUp(up) => {
                    self.renew_neighbours(up, journal);
                    Ok(())
                }
            };
            if let Err(error) = applied {
                journal.note("interface", &format!("{change} could not be followed: {error}"));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: Effect, journal: &mut Journal) {
        if self.tickets.as_mut().is_some_and(|tickets| tickets.take(&effect)) {
            return;
        }
        match effect {
            Effect::PermanentNeighbour { ip, mac } => {
                self.set_neighbour(ip, mac, journal);
                self.legacy.push((ip, mac));
            }
            Effect::Remember(host) => {
                if let Some(progress) = &mut self.progress {
                    progress.remember(host, journal);
                }
            }
            Effect::CheckRevocationList { from, der } => {
                if let Some(signed) = &mut self.signed {
                    signed.take_list(from, &der, journal);
                }
            }
            Effect::CheckPolicy { from, bytes } => {
                let now = self.config.clock().now();
                if let Some(signed) = &mut self.signed {
                    signed.take_policy(from, &bytes, now, journal);
                }
            }
            Effect::ForgetNeighbour { ip, mac } => {
                self.legacy.retain(|known| *known != (ip, mac));
                forget_neighbour(&self.config.host.interface, ip, journal);
            }
            Effect::RememberTime { mac, unix_ms } => {
                if let Some(progress) = &mut self.progress {
                    progress.remember_time(mac, unix_ms);
                }
            }
            // Of no use without the files.
            Effect::KeepTicket(_) | Effect::ForgetTicket(_) | Effect::KeepTicketKeys(_) | Effect::KeepSpent(_) => {}
        }
    }

    fn reload(&mut self, journal: &mut Journal, link: &Link) -> Result<Vec<String>, Failure> {
        let Some(progress) = &mut self.progress else { return self.reread(journal, link) };
        let before = self.config.cll.migration;
        let (read, lines) = progress.reload(&mut self.config)?;
        if let Some(signed) = &mut self.signed {
            signed.reread(&read)?;
        }
        let now = self.config.clock().now();
        self.apply_rules(now, journal, link);
        self.adopt_rules();
        let mode = self.config.cll.migration.mode().word();
        let line = format!("mode {mode} (it was {})", before.mode().word());
        let lines = std::iter::once(line).chain(lines).chain(self.reread_identity(journal, link)).collect();
        self.set_guard();
        Ok(lines)
    }

    fn records(&self) -> &Records {
        &self.config.records
    }

    fn around(&self, snapshot: &Snapshot) -> Around {
        let proved = self.progress.as_ref().map_or(&[][..], Progress::proved);
        let mut around = around::of_host(&self.config, self.identity.as_deref(), proved, snapshot);
        around.known.extend(self.sarp.iter().flat_map(|side| side.known.hosts()).map(around::believed));
        around
    }

    fn obey(&mut self, ask: &Ask, journal: &mut Journal, link: &Link) -> Answer {
        if self.config.host.mode == Mode::Sarp && *ask == Ask::Renewed {
            let taken = self.take_shared_keys(journal, link).map(Vec::from_iter);
            return taken
                .map_or_else(|failure| Answer::Error { line: failure.to_string() }, |lines| Answer::Done { lines });
        }
        let Some(progress) = &mut self.progress else {
            return Answer::Error { line: "only the daemon of a host in mode cll knows this order".to_owned() };
        };
        let done = match ask {
            Ask::Renewed => self.take_identity(journal, link).map(Vec::from_iter),
            Ask::Forget { who } => progress.forget(who, journal, link),
            _ => Ok(Vec::new()),
        };
        self.set_guard();
        done.map_or_else(|failure| Answer::Error { line: failure.to_string() }, |lines| Answer::Done { lines })
    }

    fn look_after(&mut self, snapshot: &Snapshot, journal: &mut Journal, link: &Link) {
        self.follow_keys(journal, link);
        self.follow_own_key(snapshot, journal, link);
        self.follow_signed(snapshot, journal, link);
        if let Some(expiry) = &mut self.expiry {
            expiry.look(snapshot.now, journal);
        }
        if let Some(progress) = &mut self.progress {
            progress.save_times(snapshot.now.since_boot, journal);
        }
        self.write_tickets(journal);
    }

    fn amend(&self, ledger: &mut Ledger) {
        let Some(fence) = &self.taken.fence else { return };
        let (arp, others) = (fence.arp_dropped(), fence.others_dropped());
        ledger.received[Side::WIRE as usize] += arp + others;
        ledger.dropped[DropReason::PlainArp as usize] += arp;
        ledger.dropped[DropReason::Unsealed as usize] += others;
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
            signed: self.signed_status(),
            migration: self.progress.as_ref().map(|progress| progress.status(snapshot)),
            warnings: self.expiry.as_ref().map_or_else(Vec::new, |expiry| expiry.warnings(snapshot.now)),
            sarp: self.sarp(snapshot),
            shield: self.shield(snapshot),
            layers: self.layers.as_ref().map(reports::layers),
            compression: reports::compression(&snapshot.report),
            leases: reports::leases(&snapshot.report),
            frames: reports::frames(&snapshot.ledger),
            drops: reports::drops(&snapshot.ledger),
            ports: reports::ports(snapshot, Interface::SIDES),
            clock: format!("{trust:?}").to_lowercase(),
            not_carried: self.config.not_carried(),
            not_protected: self.not_protected(),
            attacks: being.attacks.clone(),
        }))
    }

    fn give_back(mut self) -> Result<(), Failure> {
        if let Some(Err(error)) = self.tickets.as_mut().map(TicketFiles::write_all) {
            tracing::warn!(error, "tickets are not kept; after a restart handshakes take their place");
        }
        // Whoever gives the interface back must be its only holder.
        drop(self.taken);
        match self.config.host.on_exit {
            OnExit::Closed => Ok(()),
            OnExit::Restore => self.disk.give_back(),
        }
    }
}

fn forget_neighbour(interface: &str, ip: Ipv4Addr, journal: &mut Journal) {
    if let Err(error) = takeover::remove_permanent_neighbour(interface, ip) {
        journal.note("legacy-neighbour", &format!("{ip}: {error}"));
    }
}

/// What a host that signs ARP shares with others.
fn sarp_keys(identity: &HostIdentity) -> Option<sarp::SharedKeys> {
    Some(sarp::SharedKeys {
        site_keys: identity.site_keys().clone(),
        request_keys: identity.request_keys()?.clone(),
        masters: identity.request_masters().cloned(),
    })
}

/// What is said of other shared keys.
fn shared_keys_line(identity: &HostIdentity) -> String {
    let (term, _) = identity.site_keys().newest();
    let from = utc_text(term.from_unix_s);
    format!("this host has the site key of generation {} and sends with it from {from}", term.generation)
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
        authority_days_left: reports::days_left(identity.anchor().not_after_unix(), snapshot.now),
        certificate_not_after_unix: certificate.not_after_unix(),
        authority_not_after_unix: identity.anchor().not_after_unix(),
        shared_keys: identity.generation().0,
    }
}
