//! One queue's share of the link layer: sealing, opening, holding, and the frames that pass in clear by configuration.
//!
//! Outbound and inbound are read top to bottom in `outbound.rs` and `inbound.rs`; each rule is a line with its reason.
//! A lane judges only what a key or the configuration can judge. ARP of the stack and handshakes go to control.

mod activities;
mod admitted;
mod clear;
mod fit;
mod group;
mod inbound;
mod legacy;
mod outbound;
mod receivers;
mod senders;

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::{Batch, DropReason, Fate, Frame, Instant, Ledger, Mailbox, Meta, Now, Side, Sink, Torn, sink};
use shield::Outpost;
use wire::cll::InnerHeader;
use wire::ethernet::Header;
use wire::{MacAddress, ethernet};

use crate::compression::{CompressionReport, Compressor};
use crate::hold::Hold;
use crate::message::{Order, OrderKind, Outgoing, Request};
use crate::observed::PlainReport;
use crate::settings::Settings;
use activities::Activities;
use admitted::Admitted;
use clear::Clear;
use fit::Room;
pub(crate) use inbound::speaks_for_another;
use legacy::LegacyHosts;
pub(crate) use outbound::not_for_groups;
use receivers::Receivers;
use senders::{Sender, Senders};

/// One queue's share of the link layer.
pub struct Lane {
    settings: Arc<Settings>,
    ledger: Ledger,
    senders: Senders,
    receivers: Receivers,
    legacy: LegacyHosts,
    clear: Clear,
    /// IPv6 addresses of peers, as control decided.
    admitted: Admitted,
    compressor: Compressor,
    hold: Hold,
    activities: Activities,
    room: Room,
}

impl Lane {
    /// A lane without associations.
    #[must_use]
    pub fn new(settings: Arc<Settings>) -> Lane {
        Lane {
            room: Room::new(settings.wire_frame_max()),
            receivers: Receivers::new(settings.switches()),
            clear: Clear::new(settings.rules()),
            legacy: LegacyHosts::new(&settings),
            settings,
            ledger: Ledger::new(),
            senders: Senders::default(),
            admitted: Admitted::default(),
            compressor: Compressor::default(),
            hold: Hold::default(),
            activities: Activities::default(),
        }
    }

    /// Has the cheap checks made in front of this lane as well, for all keys that are installed from now on.
    pub fn set_outpost(&mut self, outpost: Box<dyn Outpost>) {
        self.receivers.set_outpost(outpost);
    }

    /// Enters what was dropped in front of this lane.
    pub fn add_outpost_to_ledger(&self, ledger: &mut Ledger) {
        self.receivers.add_outpost_to(ledger);
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
        self.room = Room::new(usize::from(wire_mtu) + ethernet::HEADER_LEN);
    }

    fn install_sender(&mut self, now: Now, outgoing: Outgoing, out: &mut Outputs<'_>) {
        let Outgoing { association, peer, key, first_sequence, carries_payload } = outgoing;
        let worn_at = self.settings.rekey_after_frames;
        let sender = Sender { association, key, next_sequence: first_sequence, first_sequence, worn_at };
        self.clear.peer_has_key(now, peer);
        if !carries_payload {
            self.senders.install_bare(peer, sender);
            return;
        }
        self.senders.install(peer, sender);
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

    fn give_up(&mut self, now: Now, peer: MacAddress) {
        for held in self.hold.take(peer) {
            let fate = Fate::Dropped(DropReason::HoldExpired);
            self.ledger.release(now.since_boot, Side::STACK, fate, &held.bytes);
        }
    }

    /// Seals a frame that control took from the stack; control has settled its fate already.
    fn seal_for_control(&mut self, now: Now, peer: MacAddress, bytes: &mut [u8], out: &mut Outputs<'_>) {
        let mut frame = Frame { bytes, meta: Meta::plain() };
        let fate = if self.senders.has_only_bare(peer) {
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
}

/// Where a lane's results go.
struct Outputs<'a> {
    sink: &'a mut dyn Sink,
    requests: &'a mut Mailbox<Request>,
}

impl Outputs<'_> {
    /// Hands a frame to control, or drops it when control is behind.
    fn ask_control(&mut self, request: Request) -> Option<Fate> {
        match self.requests.push(request) {
            Ok(()) => None,
            Err(_) => Some(Fate::Dropped(DropReason::ControlBusy)),
        }
    }

    /// A stack's tag is in the frame itself; in clear it would lead into another network of the
    /// switch.
    fn send_in_clear(&mut self, header: &Header, frame: &Frame<'_>) -> Fate {
        if header.ethertype.is_vlan() {
            return Fate::Dropped(DropReason::Vlan);
        }
        self.forward(Side::WIRE, frame)
    }

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
            OrderKind::Receive(incoming) => self.receivers.install(*incoming),
            OrderKind::Send(outgoing) => self.install_sender(now, *outgoing, &mut out),
            OrderKind::StopReceiving(index) => self.receivers.remove(index),
            OrderKind::StopSending(peer, association) => self.senders.stop(peer, association),
            OrderKind::Seal(peer, mut frame) => self.seal_for_control(now, peer, &mut frame, &mut out),
            // A frame without payload: "I have the key, and I live".
            OrderKind::ShowLife(peer) => self.send_own(peer, InnerHeader::NOTHING, &[], &mut out),
            OrderKind::Control(peer, message) => self.send_own(peer, InnerHeader::CONTROL, &message, &mut out),
            OrderKind::InClear(peer, ask_after) => self.go_in_clear(now, peer, ask_after, &mut out),
            OrderKind::Rules(rules) => self.clear.set_rules(rules),
            OrderKind::Admit(peer, address, until) => self.admitted.admit(peer, address, until),
            OrderKind::Withdraw(peer, address) => self.admitted.withdraw(peer, address),
            OrderKind::GiveUp(peer) => self.give_up(now, peer),
            OrderKind::Settle(settings) => {
                self.clear.settle(&settings);
                (self.legacy, self.settings) = (LegacyHosts::new(&settings), settings);
            }
            OrderKind::SiteKeys(hint_keys) => self.receivers.expect(&hint_keys),
        }
    }

    fn tick(&mut self, now: Now, budget: usize, _sink: &mut dyn Sink, requests: &mut Mailbox<Request>) {
        self.activities.sweep(now, budget, requests);
    }

    fn about(&self, order: &Order) -> Torn {
        match &order.0 {
            OrderKind::Receive(incoming) => Torn::Host(incoming.origin.mac().0),
            OrderKind::Send(outgoing) => Torn::Host(outgoing.peer.0),
            OrderKind::StopReceiving(index) => {
                let of_key = self.receivers.get(*index).map(|receiver| receiver.origin.mac().0);
                of_key.map_or(Torn::Anything, Torn::Host)
            }
            OrderKind::StopSending(peer, _)
            | OrderKind::Seal(peer, _)
            | OrderKind::ShowLife(peer)
            | OrderKind::Control(peer, _)
            | OrderKind::InClear(peer, _)
            | OrderKind::Admit(peer, ..)
            | OrderKind::Withdraw(peer, _)
            | OrderKind::GiveUp(peer) => Torn::Host(peer.0),
            OrderKind::Rules(_) | OrderKind::Settle(_) | OrderKind::SiteKeys(_) => Torn::Anything,
        }
    }

    /// A sequence number may have been used and not counted, and a window may not know what was
    /// opened: such keys go.
    fn mend(&mut self, now: Now, torn: Torn) {
        self.senders.mend(torn);
        self.receivers.mend(torn);
        self.count_held(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.activities.deadline()
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}
