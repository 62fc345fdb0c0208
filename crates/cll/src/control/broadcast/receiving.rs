//! Group frames of others: hostile until proved. Cheap checks first, then one signature for each batch, then origin.
//!
//! All frames of a sender are judged in the order in which they came: one that needs a check holds up those behind it, or
//! a later frame would make it old.

use std::sync::Arc;

use bump::{DropReason, Fate, Meta, Side, sink};
use wire::cll::broadcast::Part;
use wire::cll::{GroupFrame, InnerHeader};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::layer::network_layer;
use wire::{EtherType, MacAddress};

use super::super::{Call, Control};
use super::Duty;
use super::senders::{Parts, Sender};
use crate::job::Refusal;
use crate::job::broadcast::{CheckRoot, Work};
use crate::limits::{GROUP_SENDERS_IN_CHECK_MAX, GROUP_WAITING_PER_SENDER_MAX};
use crate::merkle::{Hash, Way};
use crate::{lane, merkle};

impl Control {
    /// A group frame of the wire, unproved. Read the order as the order of cost.
    pub(super) fn group_frame(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        frame: &[u8],
    ) -> Result<Fate, DropReason> {
        let message = GroupFrame::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if !header.destination.is_group() {
            return Err(DropReason::NotForUs);
        }
        self.check_group_tag(frame)?;
        let unix_s = self.certificate_time(call.now);
        let is_proved = |sender: &Sender| {
            sender.incarnation == message.head.stamp.incarnation && sender.certificate.not_after_unix() >= unix_s
        };
        if self.broadcasts.senders.get(header.source).is_some_and(is_proved) {
            self.judge_group_frame(call, frame)
        } else {
            self.hold_unproved(call, header.source, frame)
        }
    }

    /// A frame of a sender that has proved itself: is it new, and is its root one that the sender signed?
    pub(super) fn judge_group_frame(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let (header, message) = read(frame)?;
        let stamp = message.head.stamp;
        let unchecked = self.settings.weaken.freshness;
        let sender = self.broadcasts.senders.get_mut(header.source).ok_or(DropReason::GroupUnproved)?;
        if sender.incarnation != stamp.incarnation {
            return Err(DropReason::GroupUnproved);
        }
        if !sender.is_newer(&stamp) && !unchecked {
            return Err(DropReason::GroupReplayed);
        }
        let idle = sender.check.is_none();
        if idle && sender.knows(leaf(frame, &message), message.head.place, message.proof.path) {
            return self.take_group_frame(call, frame);
        }
        if sender.waiting.len() >= GROUP_WAITING_PER_SENDER_MAX {
            return Err(DropReason::GroupBudget);
        }
        if idle {
            self.check_root(call, header.source, frame)?;
        }
        if let Some(sender) = self.broadcasts.senders.get_mut(header.source) {
            sender.waiting.push_back(frame.to_vec());
        }
        Ok(Fate::Held)
    }

    /// Has the signature over the root of `frame` checked, within budgets.
    fn check_root(&mut self, call: &mut Call<'_>, mac: MacAddress, frame: &[u8]) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        let (_, message) = read(frame)?;
        if self.broadcasts.senders.in_check() >= GROUP_SENDERS_IN_CHECK_MAX {
            return Err(DropReason::GroupBudget);
        }
        let within = self.broadcasts.check_budget_per_source.take(now, mac) && self.broadcasts.check_budget.take(now);
        if !within && !self.settings.weaken.budgets {
            return Err(DropReason::GroupBudget);
        }
        let way = way(frame, &message);
        let sender = self.broadcasts.senders.get(mac).ok_or(DropReason::GroupUnproved)?;
        let check = CheckRoot {
            certificate: Arc::clone(&sender.certificate),
            signed: merkle::signed(sender.incarnation, way.leaves(), &way.root()),
            signature: message.proof.signature.to_vec(),
        };
        self.broadcasts.checks += 1;
        let check_id = self.broadcasts.checks;
        if !self.broadcast_task(call, Duty::Root(mac, check_id), Work::CheckRoot(Box::new(check))) {
            return Err(DropReason::ControlBusy);
        }
        if let Some(sender) = self.broadcasts.senders.get_mut(mac) {
            sender.check = Some(check_id);
        }
        Ok(())
    }

    /// The verdict on the root of the first frame that waits. Those behind it have their turn now, up to the next check.
    pub(super) fn root_checked(
        &mut self,
        call: &mut Call<'_>,
        mac: MacAddress,
        check: u64,
        result: Result<(), Refusal>,
    ) {
        let Some(sender) = self.broadcasts.senders.get_mut(mac).filter(|sender| sender.check == Some(check)) else {
            return;
        };
        sender.check = None;
        let first = sender.waiting.pop_front();
        match (first, result) {
            (Some(frame), Err(refusal)) => self.refuse_group(call, mac, &frame, refusal),
            (Some(frame), Ok(())) => {
                if let Ok((_, message)) = read(&frame) {
                    sender.remember_batch(way(&frame, &message));
                }
                self.settle_waiting(call, &frame);
            }
            (None, _) => {}
        }
        self.work_off(call, mac);
    }

    /// Judges what waits of a sender until a signature must be checked.
    fn work_off(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        while let Some(sender) = self.broadcasts.senders.get_mut(mac) {
            let Some(frame) = sender.waiting.pop_front() else { return };
            let known = read(&frame).is_ok_and(|(_, message)| {
                let (place, path) = (message.head.place, message.proof.path);
                sender.knows(leaf(&frame, &message), place, path) || !sender.is_newer(&message.head.stamp)
            });
            if known {
                self.settle_waiting(call, &frame);
            } else if let Err(reason) = self.check_root(call, mac, &frame) {
                self.release_from_wire(call, Fate::Dropped(reason), &frame);
            } else if let Some(sender) = self.broadcasts.senders.get_mut(mac) {
                return sender.waiting.push_front(frame);
            }
        }
    }

    /// Takes a frame that waited and whose root is known.
    fn settle_waiting(&mut self, call: &mut Call<'_>, frame: &[u8]) {
        let fate = self.take_group_frame(call, frame).unwrap_or_else(Fate::Dropped);
        if fate != Fate::Held {
            self.release_from_wire(call, fate, frame);
        }
    }

    /// An authentic frame: takes its stamp, joins parts, checks what it says about its sender and delivers it.
    fn take_group_frame(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let (header, message) = read(frame)?;
        let unchecked = self.settings.weaken.freshness;
        let sender = self.broadcasts.senders.get_mut(header.source).ok_or(DropReason::GroupUnproved)?;
        // Looked at again, because frames before it were taken since.
        if !sender.is_newer(&message.head.stamp) && !unchecked {
            return Err(DropReason::GroupReplayed);
        }
        sender.take_stamp(call.now.since_boot, &message.head.stamp);
        if message.part == Part::WHOLE {
            self.drop_parts(call, header.source);
            return self.deliver_group_frame(call, &header, &message, message.payload);
        }
        if message.part.number == 0 {
            self.drop_parts(call, header.source);
            let parts = Parts::begin(call.now.since_boot, header.destination, &message, frame);
            self.broadcasts.senders.keep_parts(header.source, parts);
            return Ok(Fate::Held);
        }
        self.join_part(call, &header, &message, frame)
    }

    fn join_part(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        message: &GroupFrame<'_>,
        frame: &[u8],
    ) -> Result<Fate, DropReason> {
        let sender = self.broadcasts.senders.get_mut(header.source).ok_or(DropReason::GroupUnproved)?;
        let mut parts = sender.parts.take().ok_or(DropReason::GroupIncomplete)?;
        if !parts.append(header.destination, message) {
            self.release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
            return Err(DropReason::GroupIncomplete);
        }
        if !parts.is_whole() {
            parts.frames.push(frame.to_vec());
            self.broadcasts.senders.keep_parts(header.source, parts);
            return Ok(Fate::Held);
        }
        self.release_parts(call, &parts, Fate::Consumed);
        self.deliver_group_frame(call, header, message, &parts.payload)
    }

    /// Restores the stack's frame and hands it up, if what it says about its sender agrees with the certificate.
    fn deliver_group_frame(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        message: &GroupFrame<'_>,
        payload: &[u8],
    ) -> Result<Fate, DropReason> {
        let restored = Header { ethertype: message.ethertype, ..*header };
        let inner = [&restored.emit()[..], payload].concat();
        if matches!(message.ethertype, InnerHeader::NOTHING | InnerHeader::CONTROL) {
            return Err(DropReason::InnerMalformed);
        }
        // What our stack may not send to groups is not taken from others' stacks either.
        let (ethertype, at) = network_layer(&inner).ok_or(DropReason::InnerMalformed)?;
        if let Some(reason) = lane::not_for_groups(ethertype, &inner[at..]) {
            return Err(reason);
        }
        if self.is_for_one(ethertype, &inner[at..]) {
            return Err(DropReason::GroupUnicast);
        }
        let sender = self.broadcasts.senders.get(header.source).ok_or(DropReason::GroupUnproved)?;
        let passage = sender.origin.check(&inner);
        let admitted = self.admit_passage(call, header.source, passage);
        self.excuse_insider(call, header.source, admitted)?;
        if !sink::copy(call.sink, Side::STACK, &inner, Meta::plain()) {
            return Err(DropReason::PortFull);
        }
        self.ledger.emitted[Side::STACK as usize] += 1;
        Ok(Fate::Forwarded)
    }

    /// What is for one host does not come in a frame to all (RFC 1122, section 3.3.6; for IPv6, which has no other
    /// addresses of groups, the kernel has a switch).
    fn is_for_one(&self, ethertype: EtherType, packet: &[u8]) -> bool {
        match ethertype {
            EtherType::IPV4 => wire::ipv4::View::new(packet)
                .is_ok_and(|packet| self.settings.identity.certificate().addresses().contains(&packet.destination())),
            EtherType::IPV6 => wire::ipv6::View::new(packet).is_ok_and(|packet| !packet.destination().is_multicast()),
            _ => false,
        }
    }

    fn drop_parts(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let parts = self.broadcasts.senders.get_mut(mac).and_then(|sender| sender.parts.take());
        if let Some(parts) = parts {
            self.release_parts(call, &parts, Fate::Dropped(DropReason::GroupIncomplete));
        }
    }

    fn release_parts(&mut self, call: &mut Call<'_>, parts: &Parts, fate: Fate) {
        for frame in &parts.frames {
            self.release_from_wire(call, fate, frame);
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
            self.release_from_wire(call, Fate::Dropped(reason), frame);
        }
        if let Some(parts) = &sender.parts {
            self.release_parts(call, parts, Fate::Dropped(reason));
        }
    }
}

fn read(frame: &[u8]) -> Result<(Header, GroupFrame<'_>), DropReason> {
    let (header, message) = Header::parse(frame).map_err(|_| DropReason::Runt)?;
    Ok((header, GroupFrame::parse(message).map_err(|_| DropReason::Malformed)?))
}

fn leaf(frame: &[u8], message: &GroupFrame<'_>) -> Hash {
    let (ethernet, bytes) = frame.split_at(ETHERNET_LEN);
    merkle::leaf(ethernet, &bytes[..message.unproved_len()])
}

/// The way from a frame to the root that its sender signed.
fn way(frame: &[u8], message: &GroupFrame<'_>) -> Way {
    Way::of(leaf(frame, message), message.head.place, message.proof.path)
}
