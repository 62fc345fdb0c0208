//! What a host's daemon holds beside its frames: the taken interface and what follows it, its
//! identity, and [`Beside`], which is what its mode keeps.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bump::{ClockTrust, DropReason, Ledger, Now, Side};
use identity::HostIdentity;
use system::takeover::{Change, Fence, Follower, Kept, Taken};
use watch::{Around, Known};
use wire::MacAddress;

use super::kernel::Standing;
use super::reports;
use crate::config::{OnExit, Records, UNREADABLE, changed_keys, restart_line};
use crate::daemon::reports::{drops, ports, precedence};
use crate::daemon::{Being, Command, Journal, Kind, Link, SideNames, Snapshot, Ward};
use crate::failure::Failure;
use crate::modes::cll::config::Trains;
use crate::modes::file::Config;
use crate::modes::parts::Parts;
use crate::monitor::Disk;
use crate::protocol::{Answer, Ask};
use crate::status::{Identity, Status, Takeover};

/// What a daemon holds whatever its mode.
pub(crate) struct Held {
    pub(crate) config: Config,
    pub(crate) disk: Disk,
    pub(crate) identity: Option<Arc<HostIdentity>>,
    pub(crate) taken: Taken,
    pub(super) follower: Follower,
    /// Where forged frames end.
    pub(super) standing: Option<Standing>,
    /// What alone comes to this program, where the kernel carries the rest.
    pub(super) kept: Option<Kept>,
    /// What passes as it came, for anybody to forge.
    pub(super) not_protected: &'static [&'static str],
    pub(super) carrier: bool,
}

/// What a mode's daemon keeps beside its frames, and does with it.
pub(crate) trait Beside {
    /// What supervisor and bump say to each other.
    type Kind: Kind;

    /// Before the first frame.
    fn begin(&mut self, _held: &mut Held) {}

    /// Carries out what the bump wants of the machine.
    fn carry_out(&mut self, held: &Held, effect: <Self::Kind as Kind>::Effect, journal: &mut Journal);

    /// A device came up, of which the kernel had forgotten what was entered by hand.
    fn came_up(&mut self, _held: &Held, _journal: &mut Journal) {}

    /// Sees to what is due from time to time.
    fn look_after(
        &mut self,
        _held: &mut Held,
        _snapshot: &Snapshot<Self::Kind>,
        _journal: &mut Journal,
        _link: &Link<Self::Kind>,
    ) {
    }

    /// Reads the configuration again; what came of it, in lines.
    fn reload(
        &mut self,
        held: &mut Held,
        _journal: &mut Journal,
        _link: &Link<Self::Kind>,
    ) -> Result<Vec<String>, Failure> {
        held.reread()
    }

    /// Carries out an order of an operator.
    fn obey(&mut self, _held: &mut Held, ask: &Ask, _journal: &mut Journal, _link: &Link<Self::Kind>) -> Answer {
        ask.not_known()
    }

    /// What is known of whose address is whose.
    fn around(&self, held: &Held, _snapshot: &Snapshot<Self::Kind>) -> Around {
        held.around(Vec::new(), Vec::new(), Vec::new())
    }

    /// Whom the bump knows.
    fn known(&self, snapshot: &Snapshot<Self::Kind>) -> Answer;

    /// How many hosts have proved themselves.
    fn peers(&self, _snapshot: &Snapshot<Self::Kind>) -> usize {
        0
    }

    /// The parts of `status` that are this mode's.
    fn parts(&self, _held: &Held, _snapshot: &Snapshot<Self::Kind>) -> Parts {
        Parts::default()
    }

    /// Certificates that end soon, and one that the site has taken back.
    fn warnings(&self, _held: &Held, _now: Now) -> Vec<String> {
        Vec::new()
    }

    /// What it leaves open for now, beside what its mode always does.
    fn not_protected(&self) -> Option<String> {
        None
    }

    /// The last act.
    fn end(&mut self) {}
}

/// A guarded interface.
pub(crate) struct Interface<B> {
    pub(crate) held: Held,
    pub(crate) beside: B,
}

impl Held {
    pub(crate) fn wire_mtu(&self) -> u16 {
        u16::try_from(self.taken.nic_mtu).unwrap_or(u16::MAX)
    }

    /// The configuration read again where nothing of the mode is in it: what needs a restart is
    /// named.
    pub(crate) fn reread(&mut self) -> Result<Vec<String>, Failure> {
        let file = self.disk.configuration().ok_or_else(|| Failure::new("there is no configuration file"))?;
        let text = self.disk.read(file).map_err(|error| Failure::file(file, error, UNREADABLE))?.text;
        let read = Config::read(file, &text)?;
        self.config.records.follow(&read.records);
        let mut lines = vec!["the places in [records] are in force".to_owned()];
        lines.extend(restart_line(&changed_keys(&self.config, &read)));
        Ok(lines)
    }

    /// This host, with addresses that it leased, those that the bump has `met`, and `others` that
    /// are known.
    pub(crate) fn around(&self, leased: Vec<std::net::IpAddr>, met: Vec<Known>, others: Vec<Known>) -> Around {
        let own = self.identity.as_deref().map_or_else(Known::default, |identity| {
            let certificate = identity.certificate();
            let addresses = certificate.addresses().iter().map(|ip| (*ip).into()).chain(leased);
            let name = Some(certificate.name().to_owned());
            Known { name, mac: Some(certificate.mac()), addresses: addresses.collect() }
        });
        let count = met.len();
        let known = met.into_iter().chain(others).collect();
        Around { own, known, met: count, asks_in_clear: true, known_are_sealed: false }
    }

    /// What is sealed must fit the card, and the stack must know how much that leaves.
    fn follow_mtu<K: Kind>(&mut self, nic_mtu: u32, link: &Link<K>) -> io::Result<()> {
        let overhead = self.taken.nic_mtu.saturating_sub(self.taken.inner_mtu);
        self.taken.nic_mtu = nic_mtu;
        self.taken.inner_mtu = nic_mtu.saturating_sub(overhead);
        link.command(Command::WireMtu(self.wire_mtu()))?;
        self.follower.apply_mtu(self.taken.inner_mtu)
    }

    /// Network managers give a wireless card made-up addresses while it looks for a network, and
    /// its own when it joins one. What they may be told to do is to keep a made-up one.
    fn note_made_up_address(&self, mac: MacAddress, journal: &mut Journal) {
        let bound = self.identity.as_ref().map(|identity| identity.certificate().mac());
        if let Some(bound) = bound.filter(|bound| *bound != mac) {
            let line = format!("the card's hardware address is {mac}, its certificate's is {bound}: no peer answers");
            let remedy = "should it stay, have the network manager use the permanent address for this network";
            journal.note("interface", &format!("{line}; {remedy}"));
        }
    }

    fn takeover<K: Kind>(&self, snapshot: &Snapshot<K>) -> Takeover {
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

    /// What was found out about the kernel and the card.
    fn probes<K: Kind>(&self, snapshot: &Snapshot<K>) -> BTreeMap<String, String> {
        let probes = self.taken.probes.iter().map(|probe| (probe.name.clone(), probe.outcome.clone()));
        let probes = probes.chain(precedence(snapshot));
        if self.kept.is_some() {
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

    /// What `status` says in every mode.
    fn status<K: Kind>(&self, being: &Being, snapshot: &Snapshot<K>) -> Status {
        let host = &self.config.host;
        let trust = snapshot.now.wall.map_or(ClockTrust::Wrong, |wall| wall.trust);
        Status {
            version: being.version.clone(),
            state: being.state.clone(),
            interface: host.interface.clone(),
            mode: host.mode,
            profile: host.profile,
            weakened: self.config.weakened(),
            uptime_s: being.uptime_s,
            takeover: self.takeover(snapshot),
            identity: self.identity.as_deref().map(|identity| describe(identity, snapshot.now)),
            peers: 0,
            parts: Parts { layers: self.standing.as_ref().map(reports::layers), ..Parts::default() },
            warnings: Vec::new(),
            frames: reports::frames(&snapshot.ledger),
            drops: drops(&snapshot.ledger),
            ports: ports(snapshot, SIDES),
            clock: format!("{trust:?}").to_lowercase(),
            not_carried: self.config.not_carried(),
            not_protected: self.not_protected.iter().map(|&what| what.to_owned()).collect(),
            attacks: being.attacks.clone(),
        }
    }
}

const SIDES: SideNames = SideNames { inner: "stack", outer: "wire" };

impl<B: Beside> Ward for Interface<B> {
    type Kind = B::Kind;

    const SIDES: SideNames = SIDES;

    fn name(&self) -> &str {
        &self.held.config.host.interface
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.held.follower.descriptors().into()
    }

    /// The inner device does what the card does.
    fn follow(&mut self, journal: &mut Journal, link: &Link<Self::Kind>) -> Result<(), Failure> {
        if self.held.taken.fence.as_ref().is_some_and(Fence::is_torn) {
            let interface = &self.held.config.host.interface;
            let line = format!("{interface}: somebody took nftables' rules away, and with them ours; nothing leaves");
            return Err(Failure::new(format!("{line} until the daemon is started again")));
        }
        while let Some(change) = self.held.follower.next_change().map_err(Failure::new)? {
            journal.note("interface", &change.to_string());
            let applied = match change {
                Change::Carrier(carrier) => {
                    self.held.carrier = carrier;
                    self.held.follower.apply_carrier(carrier)
                }
                Change::Mtu(mtu) => self.held.follow_mtu(mtu, link),
                // Nobody goes by the address of the TAP beside a card; udev may change it.
                Change::InnerMac(_) if self.held.taken.fence.is_some() => Ok(()),
                Change::Mac(mac) if self.held.taken.fence.is_some() && self.held.config.is_wireless => {
                    self.held.note_made_up_address(mac, journal);
                    Ok(())
                }
                Change::NicGone | Change::InnerGone | Change::Mac(_) | Change::InnerMac(_) => {
                    let line = format!(
                        "{}: {change}; start the daemon again when it is back",
                        self.held.config.host.interface
                    );
                    return Err(Failure::new(line));
                }
                Change::InnerMtu(_) => Ok(()),
                Change::NicUp(up) | Change::InnerUp(up) => {
                    if up {
                        self.beside.came_up(&self.held, journal);
                    }
                    Ok(())
                }
            };
            if let Err(error) = applied {
                journal.note("interface", &format!("{change} could not be followed: {error}"));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, effect: <B::Kind as Kind>::Effect, journal: &mut Journal) {
        self.beside.carry_out(&self.held, effect, journal);
    }

    fn reload(&mut self, journal: &mut Journal, link: &Link<B::Kind>) -> Result<Vec<String>, Failure> {
        self.beside.reload(&mut self.held, journal, link)
    }

    fn records(&self) -> &Records {
        &self.held.config.records
    }

    fn around(&self, snapshot: &Snapshot<B::Kind>) -> Around {
        self.beside.around(&self.held, snapshot)
    }

    fn obey(&mut self, ask: &Ask, journal: &mut Journal, link: &Link<B::Kind>) -> Answer {
        self.beside.obey(&mut self.held, ask, journal, link)
    }

    fn look_after(&mut self, snapshot: &Snapshot<B::Kind>, journal: &mut Journal, link: &Link<B::Kind>) {
        self.beside.look_after(&mut self.held, snapshot, journal, link);
    }

    fn amend(&self, ledger: &mut Ledger) {
        let Some(fence) = &self.held.taken.fence else { return };
        let (arp, others) = (fence.arp_dropped(), fence.others_dropped());
        ledger.received[Side::WIRE as usize] += arp + others;
        ledger.dropped[DropReason::PlainArp as usize] += arp;
        ledger.dropped[DropReason::Unsealed as usize] += others;
    }

    fn known(&self, snapshot: &Snapshot<B::Kind>) -> Answer {
        self.beside.known(snapshot)
    }

    fn status(&self, being: &Being, snapshot: &Snapshot<B::Kind>) -> Answer {
        let mut status = self.held.status(being, snapshot);
        status.peers = self.beside.peers(snapshot);
        status.parts = Parts { layers: status.parts.layers, ..self.beside.parts(&self.held, snapshot) };
        status.warnings = self.beside.warnings(&self.held, snapshot.now);
        status.not_protected.extend(self.beside.not_protected());
        Answer::Status(Box::new(status))
    }

    fn give_back(mut self) -> Result<(), Failure> {
        self.beside.end();
        let Held { config, disk, taken, .. } = self.held;
        // Whoever gives the interface back must be its only holder.
        drop(taken);
        match config.host.on_exit {
            OnExit::Closed => Ok(()),
            OnExit::Restore => disk.give_back(),
        }
    }
}

fn describe(identity: &HostIdentity, now: Now) -> Identity {
    let certificate = identity.certificate();
    Identity {
        name: certificate.name().to_owned(),
        site: identity.site_name(),
        mac: certificate.mac().to_string(),
        addresses: certificate.addresses().iter().map(ToString::to_string).collect(),
        router: certificate.is_router(),
        certificate_days_left: reports::days_left(certificate.not_after_unix(), now),
        authority_days_left: reports::days_left(identity.anchor().not_after_unix(), now),
        certificate_not_after_unix: certificate.not_after_unix(),
        authority_not_after_unix: identity.anchor().not_after_unix(),
        shared_keys: identity.generation().0,
    }
}
