//! Group frames of others: hostile until proved. Cheap checks first, then one signature for each batch, then origin.
//!
//! All frames of a sender are judged in the order in which they came: one that needs a check holds up those behind it, or
//! a later frame would make it old.

use std::sync::Arc;

use bump::{DropReason, Fate, Meta, Side, sink};
use wire::cll::InnerHeader;
use wire::cll::broadcast::Part;
use wire::ethernet::Header;
use wire::layer::behind_tags;
use wire::{EtherType, MacAddress};

use super::super::core::Call;
use super::super::machines::Machines;
use super::Duty;
use super::frame::{Authentic, Heard};
use super::senders::{Check, Parts, Sender};
use crate::job::Refusal;
use crate::job::broadcast::{CheckRoot, Work};
use crate::limits::{GROUP_SENDERS_IN_CHECK_MAX, GROUP_WAITING_PER_SENDER_MAX};
use crate::merkle::Way;
use crate::{lane, merkle};

impl Machines {
    /// A group frame of the wire, unproved. Read the order as the order of cost.
    pub(super) fn group_frame(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let heard = Heard::read(frame)?;
        if !heard.header.destination.is_group() {
            return Err(DropReason::NotForUs);
        }
        self.check_group_tag(call, frame)?;
        let unix_s = call.certificate_time().unix_s();
        let is_proved = |sender: &Sender| {
            sender.incarnation == heard.message.head.stamp.incarnation && sender.certificate.not_after_unix() >= unix_s
        };
        if self.broadcasts.senders.get(heard.header.source).is_some_and(is_proved) {
            self.judge_group_frame(call, heard)
        } else {
            self.hold_unproved(call, heard.header.source, frame)
        }
    }

    /// A frame of a sender that has proved itself: is it new, and is its root one that the sender signed?
    pub(super) fn judge_group_frame(&mut self, call: &mut Call<'_>, heard: Heard<'_>) -> Result<Fate, DropReason> {
        let sender = self.sender_of_new(call, &heard)?;
        let mut unknown = None;
        if sender.check.is_none() {
            match heard.prove(&mut sender.batches) {
                Ok(authentic) => return self.take_group_frame(call, authentic),
                Err(way) => unknown = Some(way),
            }
        }
        if sender.waiting.len() >= GROUP_WAITING_PER_SENDER_MAX {
            return Err(DropReason::GroupBudget);
        }
        if let Some(way) = unknown {
            self.check_root(call, &heard, way)?;
        }
        if let Some(sender) = self.broadcasts.senders.get_mut(heard.header.source) {
            sender.waiting.push_back(heard.bytes.to_vec());
        }
        Ok(Fate::Held)
    }

    /// The sender of a frame, if the frame is of its incarnation and newer than what was taken.
    fn sender_of_new(&mut self, call: &Call<'_>, heard: &Heard<'_>) -> Result<&mut Sender, DropReason> {
        let unchecked = call.core.settings.weaken.freshness;
        let stamp = &heard.message.head.stamp;
        let sender = self.broadcasts.senders.get_mut(heard.header.source).ok_or(DropReason::GroupUnproved)?;
        if sender.incarnation != stamp.incarnation {
            return Err(DropReason::GroupUnproved);
        }
        if sender.is_newer(stamp) || unchecked { Ok(sender) } else { Err(DropReason::GroupReplayed) }
    }

    /// Has the signature over the root of `way`, which is the one of `heard`, checked, within budgets.
    fn check_root(&mut self, call: &mut Call<'_>, heard: &Heard<'_>, way: Box<Way>) -> Result<(), DropReason> {
        let (now, mac) = (call.now.since_boot, heard.header.source);
        if self.broadcasts.senders.in_check() >= GROUP_SENDERS_IN_CHECK_MAX {
            return Err(DropReason::GroupBudget);
        }
        let within = self.broadcasts.check_budget_per_source.take(now, mac) && self.broadcasts.check_budget.take(now);
        if !within && !call.core.settings.weaken.budgets {
            return Err(DropReason::GroupBudget);
        }
        let sender = self.broadcasts.senders.get(mac).ok_or(DropReason::GroupUnproved)?;
        let check = CheckRoot {
            certificate: Arc::clone(&sender.certificate),
            signed: merkle::signed(sender.incarnation, way.leaves(), &way.root()),
            signature: heard.message.proof.signature.to_vec(),
        };
        self.broadcasts.checks += 1;
        let number = self.broadcasts.checks;
        if !call.broadcast_task(Duty::Root(mac, number), Work::CheckRoot(Box::new(check))) {
            return Err(DropReason::ControlBusy);
        }
        if let Some(sender) = self.broadcasts.senders.get_mut(mac) {
            sender.check = Some(Check { number, way });
        }
        Ok(())
    }

    /// The verdict on the root of the first frame that waits. Those behind it have their turn now, up to the next check.
    pub(super) fn root_checked(
        &mut self,
        call: &mut Call<'_>,
        mac: MacAddress,
        number: u64,
        result: Result<(), Refusal>,
    ) {
        let Some(sender) = self.broadcasts.senders.get_mut(mac) else { return };
        let Some(check) = sender.check.take_if(|check| check.number == number) else { return };
        let first = sender.waiting.pop_front();
        match (first, result) {
            (Some(frame), Err(refusal)) => self.refuse_group(call, mac, &frame, refusal),
            (Some(frame), Ok(())) => {
                let authentic = Heard::read(&frame).map(|heard| heard.proved_by(check.way, &mut sender.batches));
                let fate = authentic.and_then(|authentic| self.take_group_frame(call, authentic));
                self.settle_waiting(call, fate, &frame);
            }
            (None, _) => {}
        }
        self.work_off(call, mac);
    }

    /// Judges what waits of a sender until a signature must be checked.
    fn work_off(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        while let Some(sender) = self.broadcasts.senders.get_mut(mac) {
            let Some(frame) = sender.waiting.pop_front() else { return };
            let fate = match self.prove_waiting(call, &frame) {
                Ok((_, Ok(authentic))) => self.take_group_frame(call, authentic),
                Ok((heard, Err(way))) => match self.check_root(call, &heard, way) {
                    Ok(()) => return self.wait_first(mac, frame),
                    Err(reason) => Err(reason),
                },
                Err(reason) => Err(reason),
            };
            self.settle_waiting(call, fate, &frame);
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
        if let Some(sender) = self.broadcasts.senders.get_mut(mac) {
            sender.waiting.push_front(frame);
        }
    }

    /// Enters the fate of a frame that waited.
    fn settle_waiting(&mut self, call: &mut Call<'_>, fate: Result<Fate, DropReason>, frame: &[u8]) {
        let fate = fate.unwrap_or_else(Fate::Dropped);
        if fate != Fate::Held {
            call.release(Side::WIRE, fate, frame);
        }
    }

    /// Takes the stamp of an authentic frame, joins parts, checks what it says about its sender and delivers it.
    fn take_group_frame(&mut self, call: &mut Call<'_>, frame: Authentic<'_>) -> Result<Fate, DropReason> {
        let heard = frame.into_heard();
        let Heard { bytes, header, message } = heard;
        // Looked at again, because frames before it may have been taken since.
        let sender = self.sender_of_new(call, &heard)?;
        sender.take_stamp(call.now.since_boot, &message.head.stamp);
        if message.part.number > 0 {
            return self.join_part(call, &heard);
        }
        if let Some(parts) = sender.parts.take() {
            self.release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
        }
        if message.part == Part::WHOLE {
            return self.deliver_group_frame(call, &heard, message.payload);
        }
        let parts = Parts::begin(call.now.since_boot, header.destination, &message, bytes);
        self.broadcasts.senders.keep_parts(header.source, parts);
        Ok(Fate::Held)
    }

    fn join_part(&mut self, call: &mut Call<'_>, heard: &Heard<'_>) -> Result<Fate, DropReason> {
        let Heard { bytes, header, message } = heard;
        let sender = self.broadcasts.senders.get_mut(header.source).ok_or(DropReason::GroupUnproved)?;
        let mut parts = sender.parts.take().ok_or(DropReason::GroupIncomplete)?;
        if !parts.append(header.destination, message) {
            self.release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
            return Err(DropReason::GroupIncomplete);
        }
        if !parts.is_whole() {
            parts.frames.push(bytes.to_vec());
            self.broadcasts.senders.keep_parts(header.source, parts);
            return Ok(Fate::Held);
        }
        self.release_parts(call, &parts, Fate::Consumed);
        self.deliver_group_frame(call, heard, &parts.payload)
    }

    /// Restores the stack's frame and hands it up, if what it says about its sender agrees with the certificate.
    fn deliver_group_frame(
        &mut self,
        call: &mut Call<'_>,
        heard: &Heard<'_>,
        payload: &[u8],
    ) -> Result<Fate, DropReason> {
        let restored = Header { ethertype: heard.message.ethertype, ..heard.header };
        if matches!(restored.ethertype, InnerHeader::NOTHING | InnerHeader::CONTROL) {
            return Err(DropReason::InnerMalformed);
        }
        // What our stack may not send to groups is not taken from others' stacks either.
        let (ethertype, packet) = behind_tags(restored.ethertype, payload).ok_or(DropReason::InnerMalformed)?;
        if let Some(reason) = lane::not_for_groups(ethertype, packet) {
            return Err(reason);
        }
        if Self::is_for_one(call, ethertype, packet) {
            return Err(DropReason::GroupUnicast);
        }
        let sender = self.broadcasts.senders.get(restored.source).ok_or(DropReason::GroupUnproved)?;
        let passage = sender.origin.check_packet(ethertype, packet);
        let name = self.associations.peers.name_of(restored.source).unwrap_or(sender.certificate.name());
        let admitted = self.addresses.admit_passage(call, (restored.source, name), passage);
        call.excuse_insider(restored.source, admitted)?;
        if !sink::copy_parts(call.sink, Side::STACK, &[&restored.emit(), payload], 0, Meta::plain()) {
            return Err(DropReason::PortFull);
        }
        call.core.ledger.emitted[Side::STACK as usize] += 1;
        Ok(Fate::Forwarded)
    }

    /// What is for one host does not come in a frame to all (RFC 1122, section 3.3.6; for IPv6, which has no other
    /// addresses of groups, the kernel has a switch).
    fn is_for_one(call: &Call<'_>, ethertype: EtherType, packet: &[u8]) -> bool {
        match ethertype {
            EtherType::IPV4 => wire::ipv4::View::new(packet).is_ok_and(|packet| {
                call.core.settings.identity.certificate().addresses().contains(&packet.destination())
            }),
            EtherType::IPV6 => wire::ipv6::View::new(packet).is_ok_and(|packet| !packet.destination().is_multicast()),
            _ => false,
        }
    }

    fn release_parts(&mut self, call: &mut Call<'_>, parts: &Parts, fate: Fate) {
        for frame in &parts.frames {
            call.release(Side::WIRE, fate, frame);
        }
    }

    /// Drops the first parts of frames whose rest has not come.
    pub(super) fn expire_parts(&mut self, call: &mut Call<'_>) {
        for parts in self.broadcasts.senders.take_old_parts(call.now.since_boot) {
            self.release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
        }
    }

    /// Forgets a sender and what waits of it.
    pub(super) fn forget_group_sender(&mut self, call: &mut Call<'_>, mac: MacAddress, reason: DropReason) {
        if let Some(sender) = self.broadcasts.senders.remove(call.now.since_boot, mac) {
            self.drop_frames_of(call, &sender, reason);
        }
    }

    /// Drops what waits of a sender that is forgotten.
    pub(super) fn drop_frames_of(&mut self, call: &mut Call<'_>, sender: &Sender, reason: DropReason) {
        for frame in &sender.waiting {
            call.release(Side::WIRE, Fate::Dropped(reason), frame);
        }
        if let Some(parts) = &sender.parts {
            self.release_parts(call, parts, Fate::Dropped(reason));
        }
    }
}
