//! Group frames of others: hostile until proved. Cheap checks first, then one signature for each batch, then origin.
//!
//! All frames of a sender are judged in the order in which they came: one that needs a check holds up those behind it, or
//! a later frame would make it old.

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::{DropReason, Fate, Instant, Meta, Side, sink, time};
use shield::{Apart, Bucket, PerSource};
use wire::cll::InnerHeader;
use wire::cll::broadcast::Part;
use wire::ethernet::Header;
use wire::layer::behind_tags;
use wire::{EtherType, MacAddress};

use super::super::core::{Call, Verdict, steady};
use super::super::discovery::Addresses;
use super::super::machines::Machine;
use super::super::peers::Peers;
use super::asking::Asked;
use super::frame::{Authentic, Heard};
use super::senders::{Check, Parts, Sender, Senders};
use super::{Duty, check_tag, refuse};
use crate::job::Refusal;
use crate::job::broadcast::{CheckRoot, Work};
use crate::limits::{
    GROUP_CHECKS_PER_SECOND, GROUP_CHECKS_PER_SOURCE_PER_SECOND, GROUP_QUESTIONS_PER_SECOND,
    GROUP_SENDERS_IN_CHECK_MAX, GROUP_WAITING_PER_SENDER_MAX, SOURCES_MAX,
};
use crate::merkle::Way;
use crate::{lane, merkle};

/// Group frames of others, and their senders.
pub(crate) struct Receiving {
    pub(super) senders: Senders,
    pub(super) asked: BTreeMap<MacAddress, Asked>,
    pub(super) question_budget: Apart<Bucket>,
    check_budget: Bucket,
    check_budget_per_source: PerSource,
    /// Checks of roots so far.
    checks: u64,
}

/// Who judges what a proved frame says about its sender.
pub(crate) struct Judges<'a> {
    pub(crate) addresses: &'a mut Addresses,
    pub(crate) peers: &'a Peers,
}

impl Receiving {
    pub(super) fn new(now: Instant) -> Receiving {
        Receiving {
            senders: Senders::new(now),
            asked: BTreeMap::new(),
            question_budget: Apart::new(|| steady(GROUP_QUESTIONS_PER_SECOND)),
            check_budget: steady(GROUP_CHECKS_PER_SECOND),
            check_budget_per_source: PerSource::new(GROUP_CHECKS_PER_SOURCE_PER_SECOND, SOURCES_MAX),
            checks: 0,
        }
    }

    /// Senders of group frames that have proved themselves.
    pub(crate) fn len(&self) -> usize {
        self.senders.len()
    }

    /// The name in the certificate of a sender that has proved itself.
    pub(crate) fn name_of(&self, mac: MacAddress) -> Option<&str> {
        self.senders.get(mac).map(|sender| sender.certificate.name())
    }

    /// A group frame of the wire, unproved. Read the order as the order of cost.
    pub(super) fn on_frame(&mut self, call: &mut Call<'_>, judges: &mut Judges<'_>, frame: &[u8]) -> Verdict {
        let heard = Heard::read(frame)?;
        if !heard.header.destination.is_group() {
            return Err(DropReason::NotForUs);
        }
        check_tag(call, frame)?;
        let unix_s = call.certificate_time().unix_s();
        let is_proved = |sender: &Sender| {
            sender.incarnation == heard.message.head.stamp.incarnation && sender.certificate.not_after_unix() >= unix_s
        };
        if self.senders.get(heard.header.source).is_some_and(is_proved) {
            self.judge_group_frame(call, judges, heard)
        } else {
            self.hold_unproved(call, heard.header.source, frame)
        }
    }

    /// A frame of a sender that has proved itself: is it new, and is its root one that the sender signed?
    pub(super) fn judge_group_frame(
        &mut self,
        call: &mut Call<'_>,
        judges: &mut Judges<'_>,
        heard: Heard<'_>,
    ) -> Verdict {
        let sender = self.sender_of_new(call, &heard)?;
        let mut unknown = None;
        if sender.check.is_none() {
            match heard.prove(&mut sender.batches) {
                Ok(authentic) => return self.take_group_frame(call, judges, authentic),
                Err(way) => unknown = Some(way),
            }
        }
        if sender.waiting.len() >= GROUP_WAITING_PER_SENDER_MAX {
            return Err(DropReason::GroupBudget);
        }
        if let Some(way) = unknown {
            self.check_root(call, &heard, way)?;
        }
        if let Some(sender) = self.senders.get_mut(heard.header.source) {
            sender.waiting.push_back(heard.bytes.to_vec());
        }
        Ok(Fate::Held)
    }

    /// The sender of a frame, if the frame is of its incarnation and newer than what was taken.
    fn sender_of_new(&mut self, call: &Call<'_>, heard: &Heard<'_>) -> Result<&mut Sender, DropReason> {
        let unchecked = call.core.settings.weaken.freshness;
        let stamp = &heard.message.head.stamp;
        let sender = self.senders.get_mut(heard.header.source).ok_or(DropReason::GroupUnproved)?;
        if sender.incarnation != stamp.incarnation {
            return Err(DropReason::GroupUnproved);
        }
        if sender.is_newer(stamp) || unchecked { Ok(sender) } else { Err(DropReason::GroupReplayed) }
    }

    /// Has the signature over the root of `way`, which is the one of `heard`, checked, within budgets.
    fn check_root(&mut self, call: &mut Call<'_>, heard: &Heard<'_>, way: Box<Way>) -> Result<(), DropReason> {
        let (now, mac) = (call.now.since_boot, heard.header.source);
        if self.senders.in_check() >= GROUP_SENDERS_IN_CHECK_MAX {
            return Err(DropReason::GroupBudget);
        }
        let within = self.check_budget_per_source.take(now, mac) && self.check_budget.take(now);
        if !within && !call.core.settings.weaken.budgets {
            return Err(DropReason::GroupBudget);
        }
        let sender = self.senders.get(mac).ok_or(DropReason::GroupUnproved)?;
        let check = CheckRoot {
            certificate: Arc::clone(&sender.certificate),
            signed: merkle::signed(sender.incarnation, way.leaves(), &way.root()),
            signature: heard.message.proof.signature.to_vec(),
        };
        self.checks += 1;
        let number = self.checks;
        if !call.broadcast_task(Duty::Root(mac, number), Work::CheckRoot(Box::new(check))) {
            return Err(DropReason::ControlBusy);
        }
        if let Some(sender) = self.senders.get_mut(mac) {
            sender.check = Some(Check { number, way });
        }
        Ok(())
    }

    /// The verdict on the root of the first frame that waits. Those behind it have their turn now, up to the next check.
    pub(super) fn on_root(
        &mut self,
        call: &mut Call<'_>,
        judges: &mut Judges<'_>,
        (mac, number): (MacAddress, u64),
        result: Result<(), Refusal>,
    ) {
        let Some(sender) = self.senders.get_mut(mac) else { return };
        let Some(check) = sender.check.take_if(|check| check.number == number) else { return };
        let first = sender.waiting.pop_front();
        match (first, result) {
            (Some(frame), Err(refusal)) => refuse(call, mac, &frame, refusal),
            (Some(frame), Ok(())) => {
                let authentic = Heard::read(&frame).map(|heard| heard.proved_by(check.way, &mut sender.batches));
                let fate = authentic.and_then(|authentic| self.take_group_frame(call, judges, authentic));
                settle_waiting(call, fate, &frame);
            }
            (None, _) => {}
        }
        self.work_off(call, judges, mac);
    }

    /// Judges what waits of a sender until a signature must be checked.
    fn work_off(&mut self, call: &mut Call<'_>, judges: &mut Judges<'_>, mac: MacAddress) {
        while let Some(sender) = self.senders.get_mut(mac) {
            let Some(frame) = sender.waiting.pop_front() else { return };
            let fate = match self.prove_waiting(call, &frame) {
                Ok((_, Ok(authentic))) => self.take_group_frame(call, judges, authentic),
                Ok((heard, Err(way))) => match self.check_root(call, &heard, way) {
                    Ok(()) => return self.wait_first(mac, frame),
                    Err(reason) => Err(reason),
                },
                Err(reason) => Err(reason),
            };
            settle_waiting(call, fate, &frame);
        }
    }

    /// Whether a frame that waited is still new and its root is known by now.
    fn prove_waiting<'f>(
        &mut self,
        call: &Call<'_>,
        frame: &'f [u8],
    ) -> Result<(Heard<'f>, Result<Authentic<'f>, Box<Way>>), DropReason> {
        let heard = Heard::read(frame)?;
        let sender = self.sender_of_new(call, &heard)?;
        Ok((heard, heard.prove(&mut sender.batches)))
    }

    fn wait_first(&mut self, mac: MacAddress, frame: Vec<u8>) {
        if let Some(sender) = self.senders.get_mut(mac) {
            sender.waiting.push_front(frame);
        }
    }

    /// Takes the stamp of an authentic frame, joins parts, checks what it says about its sender and delivers it.
    fn take_group_frame(&mut self, call: &mut Call<'_>, judges: &mut Judges<'_>, frame: Authentic<'_>) -> Verdict {
        let heard = frame.into_heard();
        let Heard { bytes, header, message } = heard;
        // Looked at again, because frames before it may have been taken since.
        let sender = self.sender_of_new(call, &heard)?;
        sender.take_stamp(call.now.since_boot, &message.head.stamp);
        if message.part.number > 0 {
            return self.join_part(call, judges, &heard);
        }
        if let Some(parts) = sender.parts.take() {
            release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
        }
        if message.part == Part::WHOLE {
            return self.deliver_group_frame(call, judges, &heard, message.payload);
        }
        let parts = Parts::begin(call.now.since_boot, header.destination, &message, bytes);
        self.senders.keep_parts(header.source, parts);
        Ok(Fate::Held)
    }

    fn join_part(&mut self, call: &mut Call<'_>, judges: &mut Judges<'_>, heard: &Heard<'_>) -> Verdict {
        let Heard { bytes, header, message } = heard;
        let sender = self.senders.get_mut(header.source).ok_or(DropReason::GroupUnproved)?;
        let mut parts = sender.parts.take().ok_or(DropReason::GroupIncomplete)?;
        if !parts.append(header.destination, message) {
            release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
            return Err(DropReason::GroupIncomplete);
        }
        if !parts.is_whole() {
            parts.frames.push(bytes.to_vec());
            self.senders.keep_parts(header.source, parts);
            return Ok(Fate::Held);
        }
        release_parts(call, &parts, Fate::Consumed);
        self.deliver_group_frame(call, judges, heard, &parts.payload)
    }

    /// Restores the stack's frame and hands it up, if what it says about its sender agrees with the certificate.
    fn deliver_group_frame(
        &mut self,
        call: &mut Call<'_>,
        judges: &mut Judges<'_>,
        heard: &Heard<'_>,
        payload: &[u8],
    ) -> Verdict {
        let restored = Header { ethertype: heard.message.ethertype, ..heard.header };
        if matches!(restored.ethertype, InnerHeader::NOTHING | InnerHeader::CONTROL) {
            return Err(DropReason::InnerMalformed);
        }
        // What our stack may not send to groups is not taken from others' stacks either.
        let (ethertype, packet) = behind_tags(restored.ethertype, payload).ok_or(DropReason::InnerMalformed)?;
        if let Some(reason) = lane::not_for_groups(ethertype, packet) {
            return Err(reason);
        }
        if is_for_one(call, ethertype, packet) {
            return Err(DropReason::GroupUnicast);
        }
        let sender = self.senders.get(restored.source).ok_or(DropReason::GroupUnproved)?;
        let passage = sender.origin.check_packet(ethertype, packet);
        let name = judges.peers.name_of(restored.source).unwrap_or(sender.certificate.name());
        let admitted = judges.addresses.admit_passage(call, (restored.source, name), passage);
        if let Err(reason) = call.excuse_insider(restored.source, admitted) {
            if lane::speaks_for_another(reason) {
                let opened = [&restored.emit()[..], payload].concat();
                call.core.ledger.expose(call.now.since_boot, Side::WIRE, reason, &opened);
            }
            return Err(reason);
        }
        if !sink::copy_parts(call.sink, Side::STACK, &[&restored.emit(), payload], 0, Meta::plain()) {
            return Err(DropReason::PortFull);
        }
        call.core.ledger.emitted[Side::STACK as usize] += 1;
        Ok(Fate::Forwarded)
    }

    /// Forgets senders whose certificate was taken back.
    pub(crate) fn on_revocation(&mut self, call: &mut Call<'_>, addresses: &mut Addresses) {
        for mac in self.senders.with_certificate(|certificate| call.core.revoked.names(certificate)) {
            addresses.forget_host(call, mac);
            if let Some(sender) = self.senders.remove(call.now.since_boot, mac) {
                drop_frames_of(call, &sender, DropReason::BadCertificate);
            }
        }
    }
}

impl Machine for Receiving {
    fn deadline(&self) -> Option<Instant> {
        time::earlier(self.asked.values().map(|asked| asked.due).min(), self.senders.deadline())
    }

    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        self.repeat_questions(call);
        for parts in self.senders.take_old_parts(call.now.since_boot) {
            release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
        }
        false
    }
}

/// Enters the fate of a frame that waited.
fn settle_waiting(call: &mut Call<'_>, fate: Verdict, frame: &[u8]) {
    let fate = fate.unwrap_or_else(Fate::Dropped);
    if fate != Fate::Held {
        call.release(Side::WIRE, fate, frame);
    }
}

/// What is for one host does not come in a frame to all (RFC 1122, section 3.3.6; for IPv6, which
/// has no other addresses of groups, the kernel has a switch).
fn is_for_one(call: &Call<'_>, ethertype: EtherType, packet: &[u8]) -> bool {
    match ethertype {
        EtherType::IPV4 => wire::ipv4::View::new(packet)
            .is_ok_and(|packet| call.core.settings.identity.certificate().addresses().contains(&packet.destination())),
        EtherType::IPV6 => wire::ipv6::View::new(packet).is_ok_and(|packet| !packet.destination().is_multicast()),
        _ => false,
    }
}

fn release_parts(call: &mut Call<'_>, parts: &Parts, fate: Fate) {
    for frame in &parts.frames {
        call.release(Side::WIRE, fate, frame);
    }
}

/// Drops what waits of a sender that is forgotten.
pub(super) fn drop_frames_of(call: &mut Call<'_>, sender: &Sender, reason: DropReason) {
    for frame in &sender.waiting {
        call.release(Side::WIRE, Fate::Dropped(reason), frame);
    }
    if let Some(parts) = &sender.parts {
        release_parts(call, parts, Fate::Dropped(reason));
    }
}
