//! What a gateway's daemon holds beside its frames: its cards, and what it says of itself.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use bump::{Ledger, Side};
use scrub::Rule;
use system::takeover::{Change, Gateway, GatewayFollower, Role};
use watch::Around;

use super::config::{Gate, GateConfig, Mtu};
use super::kind::{Order, PairOrder, Scrubbed, Scrubbing};
use super::orders;
use super::paired;
use super::paired::report::PairReport;
use super::parts::{Carried, GateCard, GateFlows, GateFrames, GateMemory, GateStatus};
use crate::config::{OnExit, Records, UNREADABLE, changed_keys, restart_line};
use crate::daemon::reports::{drops, ports, precedence};
use crate::daemon::{Being, Command, Journal, Link, SideNames, Snapshot, Ward, unix_ms};
use crate::failure::Failure;
use crate::monitor::Disk;
use crate::protocol::flow_record::FlowRecord;
use crate::protocol::{Answer, Ask};

/// The cards of a gateway.
pub(super) struct Cards {
    gate: Gate,
    disk: Disk,
    /// The interface towards the protected hosts, which the daemon is called by.
    trusted: String,
    gateway: Gateway,
    follower: GatewayFollower,
    /// What was found out about the kernel.
    probes: BTreeMap<String, String>,
    /// What the operator should know, such as that nothing is scrubbed.
    warnings: Vec<String>,
    /// The configuration file as it was read last.
    file: GateConfig,
    /// What the cards are to a gateway of a pair.
    paired: Option<PairedCards>,
    flows: FlowRecords,
}

/// What became of the records of connections that are over.
#[derive(Clone, Copy, Debug, Default)]
struct FlowRecords {
    told: u64,
    /// More than [`flows_per_s`](Records::flows_per_s) in a second.
    left_out: u64,
    /// The recorder was too slow.
    lost: u64,
}

/// The other gateway must know at once what a card has no link for.
struct PairedCards {
    /// The sync link.
    sync: UdpSocket,
    /// Which links the data path knows of.
    told: Option<pair::Cards>,
    /// How often the cards are read, and when they were.
    every: Duration,
    read_at: Instant,
}

/// Messages of the sync link that are taken at once, and bytes of the longest.
const MESSAGES_AT_ONCE: usize = 64;
const MESSAGE_ROOM: usize = pair::limits::MESSAGE_MAX_BYTES + 1;

impl Cards {
    pub(super) fn new(
        gate: Gate,
        disk: &Disk,
        trusted: &str,
        gateway: Gateway,
        follower: GatewayFollower,
        probes: BTreeMap<String, String>,
        warnings: Vec<String>,
    ) -> Cards {
        let (disk, trusted, file) = (disk.clone(), trusted.to_owned(), GateConfig::default());
        Cards {
            gate,
            disk,
            trusted,
            gateway,
            follower,
            probes,
            warnings,
            file,
            paired: None,
            flows: FlowRecords::default(),
        }
    }

    /// Has changes of the file named against what it said at the start.
    pub(super) fn follow_file(&mut self, file: GateConfig) {
        self.file = file;
    }

    /// Hands what comes on the sync link to the data path, and tells it each heartbeat which cards
    /// have a link.
    pub(super) fn pair_on(&mut self, sync: UdpSocket, heartbeat: Duration) {
        self.paired = Some(PairedCards { sync, told: None, every: heartbeat, read_at: Instant::now() });
    }

    fn hear_messages(&self, link: &Link<Scrubbed>) {
        let Some(PairedCards { sync, .. }) = &self.paired else { return };
        let mut messages = Vec::new();
        let mut room = [0; MESSAGE_ROOM];
        // An error is that of a message sent before, to a gateway that is not there.
        while messages.len() < MESSAGES_AT_ONCE {
            match sync.recv(&mut room) {
                Ok(len) => messages.push(room[..len].to_vec()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => messages.push(Vec::new()),
            }
        }
        messages.retain(|message| !message.is_empty());
        if !messages.is_empty() {
            // What a busy data path does not take is lost, as on the way.
            let _lost = link.order(Order::Pair(PairOrder::Hear(messages)));
        }
    }

    /// Tells a gateway of a pair which cards have a link; again, if a busy data path took nothing.
    fn tell_links(&mut self, link: &Link<Scrubbed>) {
        let cards = paired::start::cards(&self.gateway);
        let Some(PairedCards { told, .. }) = &mut self.paired else { return };
        if *told != Some(cards) && link.order(Order::Pair(PairOrder::Cards(cards))).is_ok() {
            *told = Some(cards);
        }
    }

    /// Enters what the kernel tells of the cards.
    fn hear_changes(&mut self, journal: &mut Journal, link: &Link<Scrubbed>) -> Result<(), Failure> {
        while let Some((role, change)) = self.follower.next_change().map_err(Failure::new)? {
            self.take_note(role, change, journal, link)?;
        }
        Ok(())
    }

    /// Whether the cards of a pair's gateway are to be read again.
    fn is_look_due(&mut self) -> bool {
        let paired = self.paired.as_mut().filter(|paired| paired.read_at.elapsed() >= paired.every);
        paired.is_some_and(|paired| {
            paired.read_at = Instant::now();
            true
        })
    }

    /// Enters what happened to a card; an error if it cannot go on.
    fn take_note(
        &mut self,
        role: Role,
        change: Change,
        journal: &mut Journal,
        link: &Link<Scrubbed>,
    ) -> Result<(), Failure> {
        let Some(card) = self.gateway.cards.iter_mut().find(|card| card.role == role) else { return Ok(()) };
        let name = card.name.clone();
        match change {
            Change::Carrier(carrier) => {
                card.carrier = carrier;
                journal.note("card", &format!("{name} ({}): carrier {}", role.word(), on_off(carrier)));
            }
            Change::NicUp(up) => journal.note("card", &format!("{name} ({}): turned {}", role.word(), on_off(up))),
            Change::Mtu(mtu) => {
                card.mtu = mtu;
                journal.note("card", &format!("{name} ({}): MTU {mtu}", role.word()));
                self.tell_mtu(journal, link);
            }
            Change::NicGone => {
                let line =
                    format!("{name} ({}): the card is gone; start the daemon again when it is back", role.word());
                return Err(Failure::new(line));
            }
            // A gateway has no address of its own, and no inner device.
            Change::Mac(_) | Change::InnerUp(_) | Change::InnerMtu(_) | Change::InnerMac(_) | Change::InnerGone => {}
        }
        Ok(())
    }

    /// Has the scrubber cut what leaves for the smaller link, unless the configuration says for
    /// which.
    fn tell_mtu(&self, journal: &mut Journal, link: &Link<Scrubbed>) {
        if self.gate.mtu.is_some() {
            return;
        }
        let mtu = u16::try_from(self.gateway.mtu()).unwrap_or(u16::MAX);
        if let Err(error) = link.command(Command::WireMtu(mtu)) {
            journal.note("card", &format!("MTU {mtu} could not be followed: {error}"));
        }
    }

    fn card(&self, role: Role) -> Option<GateCard> {
        let card = self.gateway.card(role)?;
        Some(GateCard { interface: card.name.clone(), mac: card.mac.to_string(), mtu: card.mtu, carrier: card.carrier })
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl Ward for Cards {
    type Kind = Scrubbed;

    const SIDES: SideNames = SideNames { inner: "trusted", outer: "untrusted" };

    fn name(&self) -> &str {
        &self.trusted
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let syncs = self.paired.iter().map(|paired| paired.sync.as_fd());
        self.follower.descriptors().chain(syncs).collect()
    }

    fn patience(&self) -> Duration {
        self.paired.as_ref().map_or(Duration::MAX, |paired| paired.every)
    }

    fn follow(&mut self, journal: &mut Journal, link: &Link<Scrubbed>) -> Result<(), Failure> {
        self.hear_messages(link);
        self.hear_changes(journal, link)?;
        if self.is_look_due() {
            self.follower.look().map_err(Failure::new)?;
            self.hear_changes(journal, link)?;
        }
        self.tell_links(link);
        Ok(())
    }

    /// Nothing of what is scrubbed changes without a restart, which is announced by name.
    fn reload(&mut self, _journal: &mut Journal, _link: &Link<Scrubbed>) -> Result<Vec<String>, Failure> {
        let Some(file) = self.disk.configuration() else {
            return Ok(vec!["this gateway was started without a file".to_owned()]);
        };
        let text = self.disk.read(file).map_err(|error| Failure::file(file, error, UNREADABLE))?.text;
        let read = GateConfig::read(file, &text)?;
        self.file.records.follow(&read.records);
        let mut lines = vec!["the places in [records] are in force".to_owned()];
        lines.extend(restart_line(&changed_keys(&self.file, &read)));
        Ok(lines)
    }

    fn records(&self) -> &Records {
        &self.file.records
    }

    // A gateway has no address, and believes nobody.
    fn around(&self, _snapshot: &Snapshot<Scrubbed>) -> Around {
        Around { asks_in_clear: true, ..Around::default() }
    }

    fn ended_flows(&mut self, link: &Link<Scrubbed>) -> Vec<FlowRecord> {
        let max = self.file.records.flows_per_s as usize;
        let Ok(ended) = link.question(|reply| Command::Order(Order::TakeEnded(max, reply))) else { return Vec::new() };
        let unix_ms = ended.now.wall.map_or_else(unix_ms, |wall| wall.unix_ms);
        let records = ended.records(unix_ms);
        self.flows.told += records.len() as u64;
        self.flows.left_out = ended.left_out;
        records
    }

    fn lose_flows(&mut self, count: usize) {
        self.flows.told -= count as u64;
        self.flows.lost += count as u64;
    }

    // A scrubber wants nothing of the kernel.
    fn carry_out(&mut self, effect: Infallible, _journal: &mut Journal) {
        match effect {}
    }

    fn obey(&mut self, ask: &Ask, _journal: &mut Journal, link: &Link<Scrubbed>) -> Answer {
        orders::of_flows(ask, link)
    }

    fn known(&self, _snapshot: &Snapshot<Scrubbed>) -> Answer {
        Answer::Error { line: "a gateway has no peers".to_owned() }
    }

    fn status(&self, being: &Being, snapshot: &Snapshot<Scrubbed>) -> Answer {
        let mut counters = ports(snapshot, Cards::SIDES);
        let mut rules = BTreeMap::new();
        let (mut flows, mut memory, mut pair) = (GateFlows::default(), GateMemory::default(), None);
        if let Some(scrubbing) = &snapshot.report {
            rules = acted(scrubbing);
            let scrub::FlowCounts { all, half_open, validates_addresses, carried } = scrubbing.flows;
            let scrub::CarriedFlows { flows: now, segments, handed_over, short_stays } = carried;
            let carried = Carried { flows: now, segments, handed_over, short_stays };
            flows = GateFlows { all, half_open, validates_addresses, carried };
            memory = GateMemory { held: scrubbing.memory_bytes, idle: scrubbing.memory_idle_bytes };
            pair = scrubbing.pair.as_ref().map(PairReport::status);
            if let Some(mirror) = scrubbing.mirror {
                counters.insert("mirror_sent_frames".to_owned(), mirror.sent);
                counters.insert("mirror_lost_frames".to_owned(), mirror.lost);
            }
        }
        if self.file.records.flows_per_s > 0 {
            let FlowRecords { told, left_out, lost } = self.flows;
            counters.insert("flow_records_told".to_owned(), told);
            counters.insert("flow_records_left_out".to_owned(), left_out + lost);
        }
        Answer::Gate(Box::new(GateStatus {
            version: being.version.clone(),
            state: being.state.clone(),
            uptime_s: being.uptime_s,
            interface: self.trusted.clone(),
            preset: self.gate.preset.word().to_owned(),
            changed_rules: self.gate.rules.iter().map(|(rule, action)| ((*rule).into(), (*action).into())).collect(),
            trusted: self.card(Role::Trusted),
            untrusted: self.card(Role::Untrusted),
            mirror: self.card(Role::Mirror),
            mtu: self.gate.mtu.map_or(self.gateway.mtu() as usize, Mtu::size),
            adopted: self.gateway.adopted,
            on_exit: self.gate.on_exit.word().to_owned(),
            probes: self.probes.clone().into_iter().chain(precedence(snapshot)).collect(),
            frames: frames(&snapshot.ledger),
            flows,
            memory,
            pair,
            rules,
            drops: drops(&snapshot.ledger),
            ports: counters,
            warnings: self.warnings.clone(),
            attacks: being.attacks.clone(),
        }))
    }

    fn give_back(self) -> Result<(), Failure> {
        // Whoever gives the cards back must be their only holder.
        drop(self.gateway);
        match self.gate.on_exit {
            OnExit::Closed => Ok(()),
            OnExit::Restore => self.disk.give_back(),
        }
    }
}

/// How often each rule acted, those at zero too: a name that is missing would look like one that
/// does not exist.
fn acted(scrubbing: &Scrubbing) -> BTreeMap<String, u64> {
    Rule::ALL.iter().map(|rule| (rule.name().to_owned(), scrubbing.counters.of(*rule))).collect()
}

fn frames(ledger: &Ledger) -> GateFrames {
    let (trusted, untrusted) = (Side::TRUSTED as usize, Side::UNTRUSTED as usize);
    GateFrames {
        received_from_trusted: ledger.received[trusted],
        received_from_untrusted: ledger.received[untrusted],
        forwarded_to_untrusted: ledger.forwarded[trusted],
        forwarded_to_trusted: ledger.forwarded[untrusted],
        answered: ledger.answered.iter().sum(),
        consumed: ledger.consumed.iter().sum(),
        held: ledger.held,
        dropped: ledger.dropped.iter().sum(),
        made_for_untrusted: ledger.made[untrusted],
        made_for_trusted: ledger.made[trusted],
    }
}
