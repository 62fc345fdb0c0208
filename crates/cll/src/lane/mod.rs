//! One queue's share of the link layer: sealing, opening, holding, and the frames that pass in clear by configuration.
//!
//! Outbound and inbound are read top to bottom in `outbound.rs` and `inbound.rs`; each rule is a line with its reason.
//! A lane judges only what a key or the configuration can judge. ARP of the stack and handshakes go to control.

mod admitted;
mod clear;
mod fit;
mod group;
mod inbound;
mod legacy;
mod outbound;

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::{Batch, DropReason, Fate, Frame, Instant, Ledger, Mailbox, Meta, Now, Side, Sink, Torn, sink};
use shield::{Checks, Outpost, Switches, Window};
use wire::{EtherType, MacAddress, ethernet};

use crate::compression::{CompressionReport, Compressor};
use crate::hold::Hold;
use crate::keys::ReceiveKey;
use crate::limits::SWEEP_INTERVAL;
use crate::message::{Activity, AssociationId, Incoming, Order, OrderKind, Outgoing, Request};
use crate::observed::PlainReport;
use crate::origin::Origin;
use crate::settings::Settings;
use admitted::Admitted;
use clear::Clear;
pub(crate) use outbound::not_for_groups;

/// Sends to one peer.
struct Sender {
    association: AssociationId,
    key: crate::keys::SendKey,
    next_sequence: u32,
    first_sequence: u32,
    /// After this many frames control is told that the key should be replaced.
    worn_at: u32,
}

/// Receives from one lane of one peer.
struct Receiver {
    association: AssociationId,
    origin: Arc<Origin>,
    key: ReceiveKey,
    checks: Checks,
    awaits_first_frame: bool,
    carries_payload: bool,
}

/// One queue's share of the link layer.
pub struct Lane {
    settings: Arc<Settings>,
    ledger: Ledger,
    senders: BTreeMap<MacAddress, Sender>,
    /// Keys under which no payload leaves, because an ML-KEM exchange is under way. What the stack
    /// sends goes on under an older key, if there is one, or waits.
    bare: BTreeMap<MacAddress, Sender>,
    receivers: BTreeMap<u32, Receiver>,
    switches: Switches,
    outpost: Option<Box<dyn Outpost>>,
    legacy: BTreeMap<MacAddress, Origin>,
    clear: Clear,
    /// IPv6 addresses of peers, as control decided.
    admitted: Admitted,
    compressor: Compressor,
    hold: Hold,
    activity: BTreeMap<AssociationId, Activity>,
    report_at: Option<Instant>,
    /// Longest frame on the wire, with its Ethernet header.
    wire_frame_max: usize,
}

impl Lane {
    /// A lane without associations.
    #[must_use]
    pub fn new(settings: Arc<Settings>) -> Lane {
        let legacy = origins(&settings);
        Lane {
            wire_frame_max: settings.wire_frame_max(),
            switches: settings.switches(),
            outpost: None,
            clear: Clear::new(settings.rules()),
            settings,
            ledger: Ledger::new(),
            senders: BTreeMap::new(),
            bare: BTreeMap::new(),
            receivers: BTreeMap::new(),
            legacy,
            admitted: Admitted::default(),
            compressor: Compressor::default(),
            hold: Hold::default(),
            activity: BTreeMap::new(),
            report_at: None,
        }
    }

    /// Has the cheap checks made in front of this lane as well, for all keys that are installed from now on.
    pub fn set_outpost(&mut self, outpost: Box<dyn Outpost>) {
        self.outpost = Some(outpost);
    }

    /// Enters what was dropped in front of this lane.
    pub fn add_outpost_to_ledger(&self, ledger: &mut Ledger) {
        if let Some(outpost) = &self.outpost {
            shield::outpost::enter(&**outpost, ledger);
        }
    }

    /// What compression did.
    #[must_use]
    pub fn compression(&self) -> &CompressionReport {
        self.compressor.report()
    }

    /// Bytes of frames that wait for a handshake.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.hold.bytes()
    }

    /// Peers to which this lane has a key.
    #[must_use]
    pub fn sending_to(&self) -> usize {
        self.senders.len()
    }

    /// Keys with which this lane receives.
    #[must_use]
    pub fn receiving_keys(&self) -> usize {
        self.receivers.len()
    }

    /// Adds the hosts that spoke in clear to `reports`.
    pub(crate) fn report_plain_hosts(&self, now: Instant, reports: &mut BTreeMap<MacAddress, PlainReport>) {
        self.clear.observed.report(now, reports);
    }

    /// The wire carries packets of another size from now on, in bytes.
    pub fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.wire_frame_max = usize::from(wire_mtu) + ethernet::HEADER_LEN;
    }

    fn passes_in_clear(&self, ethertype: EtherType) -> bool {
        self.settings.pass.contains(&ethertype)
    }

    /// Notes what happened under `association`, to be reported with the next sweep.
    fn note(&mut self, now: Now, association: AssociationId, note: impl FnOnce(&mut Activity)) {
        note(self.activity.entry(association).or_default());
        self.report_at.get_or_insert(now.since_boot + SWEEP_INTERVAL);
    }

    fn install_receiver(&mut self, incoming: Incoming) {
        let Incoming { association, origin, key, awaits_first_frame, carries_payload } = incoming;
        let index = key.receiver_index;
        let peer = origin.mac();
        // The outpost learns of a key here, before the peer can have it: our answer is still in the port.
        let window = self.outpost.as_mut().map_or_else(Window::new, |outpost| outpost.admit(index, peer, &key.nonces));
        let checks = Checks::new(peer, &key.nonces, window);
        let receiver = Receiver { association, origin, key, checks, awaits_first_frame, carries_payload };
        self.receivers.insert(index, receiver);
    }

    /// The window goes before its memory may serve another.
    fn remove_receiver(&mut self, index: u32) {
        let removed = self.receivers.remove(&index).is_some();
        if let Some(outpost) = self.outpost.as_mut().filter(|_| removed) {
            outpost.dismiss(index);
        }
    }

    fn install_sender(&mut self, now: Now, outgoing: Outgoing, out: &mut Outputs<'_>) {
        let Outgoing { association, peer, key, first_sequence, carries_payload } = outgoing;
        let worn_at = self.settings.rekey_after_frames;
        let sender = Sender { association, key, next_sequence: first_sequence, first_sequence, worn_at };
        self.clear.peer_has_key(peer);
        if !carries_payload {
            self.bare.insert(peer, sender);
            return;
        }
        self.bare.remove(&peer);
        self.senders.insert(peer, sender);
        self.release_held(now, peer, out);
    }

    /// Gives the frames that waited for `peer` their final fate, now that there is a key.
    fn release_held(&mut self, now: Now, peer: MacAddress, out: &mut Outputs<'_>) {
        for mut held in self.hold.take(peer) {
            let mut frame = Frame { bytes: &mut held.bytes, meta: held.meta };
            let fate = self.seal_to(now, peer, &mut frame, out);
            self.ledger.release(now.since_boot, Side::STACK, fate, &held.bytes);
        }
    }

    fn stop_sending(&mut self, peer: MacAddress, association: AssociationId) {
        for keys in [&mut self.senders, &mut self.bare] {
            if keys.get(&peer).is_some_and(|sender| sender.association == association) {
                keys.remove(&peer);
            }
        }
    }

    /// Whether there is an association with `peer`, also one under which no payload moves yet.
    fn knows(&self, peer: MacAddress) -> bool {
        self.senders.contains_key(&peer) || self.bare.contains_key(&peer)
    }

    fn give_up(&mut self, now: Now, peer: MacAddress) {
        for held in self.hold.take(peer) {
            let fate = Fate::Dropped(DropReason::HoldExpired);
            self.ledger.release(now.since_boot, Side::STACK, fate, &held.bytes);
        }
    }

    /// Seals a frame that control took from the stack; control has settled its fate already.
    fn seal_for_control(&mut self, now: Now, peer: MacAddress, bytes: &mut [u8], out: &mut Outputs<'_>) {
        let mut frame = Frame { bytes, meta: Meta::plain() };
        let fate = if self.bare.contains_key(&peer) && !self.senders.contains_key(&peer) {
            self.hold(peer, &frame, out)
        } else {
            self.seal_to(now, peer, &mut frame, out)
        };
        if matches!(fate, Fate::Dropped(_) | Fate::Held) {
            self.ledger.receive(Side::STACK);
            self.ledger.settle(now.since_boot, Side::STACK, fate, bytes);
        }
    }

    /// Brings the books together with the frames that wait: those that went with a panic are
    /// dropped, and one that was kept before it was entered counts.
    fn count_held(&mut self, now: Now) {
        let waiting = self.hold.frames();
        for _ in waiting..self.ledger.held {
            let fate = Fate::Dropped(DropReason::InternalError);
            self.ledger.release(now.since_boot, Side::STACK, fate, &[]);
        }
        self.ledger.held = waiting;
    }

    /// Hands `frame` to control, or drops it when control is behind.
    fn ask_control(out: &mut Outputs<'_>, request: Request) -> Option<Fate> {
        match out.requests.push(request) {
            Ok(()) => None,
            Err(_) => Some(Fate::Dropped(DropReason::ControlBusy)),
        }
    }
}

/// What the hosts on the legacy list may claim, by hardware address.
fn origins(settings: &Settings) -> BTreeMap<MacAddress, Origin> {
    settings.legacy.iter().map(|legacy| (legacy.mac, Origin::of_legacy(legacy))).collect()
}

/// Where a lane's results go.
struct Outputs<'a> {
    sink: &'a mut dyn Sink,
    requests: &'a mut Mailbox<Request>,
}

impl Outputs<'_> {
    /// Forwards `frame` as it is.
    fn forward(&mut self, to: Side, frame: &Frame<'_>) -> Fate {
        if sink::copy(self.sink, to, frame.bytes, frame.meta) {
            Fate::Forwarded
        } else {
            Fate::Dropped(DropReason::PortFull)
        }
    }
}

impl bump::Lane for Lane {
    type Request = Request;
    type Order = Order;

    fn process(
        &mut self,
        now: Now,
        from: Side,
        batch: &mut dyn Batch,
        sink: &mut dyn Sink,
        requests: &mut Mailbox<Request>,
    ) {
        let mut out = Outputs { sink, requests };
        while let Some(mut frame) = batch.next_frame() {
            self.ledger.receive(from);
            let fate = match from {
                Side::STACK => self.outbound(now, &mut frame, &mut out),
                Side::WIRE => self.inbound(now, &mut frame, &mut out),
            };
            // A frame that control judges gets its fate there.
            if let Some(fate) = fate {
                self.ledger.settle(now.since_boot, from, fate, frame.bytes);
            }
        }
    }

    fn obey(&mut self, now: Now, order: Order, sink: &mut dyn Sink, requests: &mut Mailbox<Request>) {
        let mut out = Outputs { sink, requests };
        match order.0 {
            OrderKind::Receive(incoming) => self.install_receiver(*incoming),
            OrderKind::Send(outgoing) => self.install_sender(now, *outgoing, &mut out),
            OrderKind::StopReceiving(index) => self.remove_receiver(index),
            OrderKind::StopSending(peer, association) => self.stop_sending(peer, association),
            OrderKind::Seal(peer, mut frame) => self.seal_for_control(now, peer, &mut frame, &mut out),
            OrderKind::ShowLife(peer) => self.show_life(peer, &mut out),
            OrderKind::Control(peer, message) => self.send_control(peer, &message, &mut out),
            OrderKind::InClear(peer) => self.go_in_clear(now, peer, &mut out),
            OrderKind::Rules(rules) => self.clear.set_rules(rules),
            OrderKind::Admit(peer, address, until) => self.admitted.admit(peer, address, until),
            OrderKind::Withdraw(peer, address) => self.admitted.withdraw(peer, address),
            OrderKind::GiveUp(peer) => self.give_up(now, peer),
            OrderKind::Settle(settings) => {
                self.clear.settle(&settings);
                (self.legacy, self.settings) = (origins(&settings), settings);
            }
            OrderKind::SiteKeys(hint_keys) => {
                if let Some(outpost) = &mut self.outpost {
                    outpost.expect(&hint_keys);
                }
            }
        }
    }

    fn tick(&mut self, now: Now, budget: usize, _sink: &mut dyn Sink, requests: &mut Mailbox<Request>) {
        if self.report_at.is_none_or(|at| at > now.since_boot) {
            return;
        }
        for _ in 0..budget {
            let Some((association, activity)) = self.activity.pop_first() else { break };
            if requests.push(Request::Activity(association, activity)).is_err() {
                self.activity.insert(association, activity);
                break;
            }
        }
        self.report_at = (!self.activity.is_empty()).then_some(now.since_boot + SWEEP_INTERVAL);
    }

    fn about(&self, order: &Order) -> Torn {
        match &order.0 {
            OrderKind::Receive(incoming) => Torn::Host(incoming.origin.mac().0),
            OrderKind::Send(outgoing) => Torn::Host(outgoing.peer.0),
            OrderKind::StopReceiving(index) => {
                let of_key = self.receivers.get(index).map(|receiver| receiver.origin.mac().0);
                of_key.map_or(Torn::Anything, Torn::Host)
            }
            OrderKind::StopSending(peer, _)
            | OrderKind::Seal(peer, _)
            | OrderKind::ShowLife(peer)
            | OrderKind::Control(peer, _)
            | OrderKind::InClear(peer)
            | OrderKind::Admit(peer, ..)
            | OrderKind::Withdraw(peer, _)
            | OrderKind::GiveUp(peer) => Torn::Host(peer.0),
            OrderKind::Rules(_) | OrderKind::Settle(_) | OrderKind::SiteKeys(_) => Torn::Anything,
        }
    }

    /// A sequence number may have been used and not counted, and a window may not know what was
    /// opened: such keys go.
    fn mend(&mut self, now: Now, torn: Torn) {
        self.senders.retain(|peer, _| !torn.includes(peer.0));
        let of_torn = |receiver: &Receiver| torn.includes(receiver.origin.mac().0);
        let indices = self.receivers.iter().filter(|(_, receiver)| of_torn(receiver)).map(|(index, _)| *index);
        indices.collect::<Vec<_>>().into_iter().for_each(|index| self.remove_receiver(index));
        self.count_held(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.report_at
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
