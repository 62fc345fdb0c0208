//! What our own stack's ARP asks for (paper, section 5.2): a request opens a handshake, a reply completes one.

use bump::{DropReason, Fate, Side};
use wire::arp::{Arp, Operation};
use wire::cll::Resolution;
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::core::Call;
use super::machines::Machines;
use crate::message::OrderKind;

impl Machines {
    /// The fate of an ARP frame of the stack.
    pub(super) fn stack_arp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, message)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let Ok(arp) = Arp::parse(message) else { return Fate::Dropped(DropReason::BadArp) };
        if arp.sender_ip.is_unspecified() {
            return call.uncarried(frame, DropReason::ArpProbe);
        }
        if arp.sender_mac != call.core.settings.mac || !call.core.settings.is_own(arp.sender_ip) {
            return call.uncarried(frame, DropReason::ArpNotOurs);
        }
        if arp.sender_ip == arp.target_ip && header.destination.is_group() {
            // Nobody is asked: our stack tells all that it has this address, which its certificate proves.
            return self.group_frame_of_stack(call, frame);
        }
        match arp.operation {
            Operation::Request => self.stack_asks(call, &header, &arp, frame),
            Operation::Reply => self.stack_answers(call, &header, &arp, frame),
        }
    }

    fn stack_asks(&mut self, call: &mut Call<'_>, header: &Header, arp: &Arp, frame: &[u8]) -> Fate {
        if call.core.settings.legacy_by_mac(header.destination).is_some() {
            return call.pass(Side::WIRE, frame);
        }
        if let Some(legacy) = call.core.settings.legacy_by_ip(arp.target_ip) {
            let answer = Resolution::from(*arp).reply(legacy.mac, None);
            call.send_resolution_up(&answer, legacy.router);
            return Fate::Answered;
        }
        if let Some(manager) = call.core.rules.policy.management_by_ip(arp.target_ip) {
            let answer = Resolution::from(*arp).reply(manager.mac, None);
            call.send_resolution_up(&answer, false);
            return Fate::Answered;
        }
        if let Some(mac) = self.lively_peer(call, arp) {
            call.order(0, OrderKind::Seal(mac, readdress(frame, mac)));
            return Fate::Forwarded;
        }
        let destination = if header.destination.is_group() { MacAddress::BROADCAST } else { header.destination };
        let opened = self.open_for_ip(call, (*arp).into(), destination);
        self.ask_in_clear(call, arp.target_ip.into(), frame, opened)
    }

    /// The peer that has the wanted address, if its association works: it can be asked under the seal.
    fn lively_peer(&self, call: &Call<'_>, arp: &Arp) -> Option<MacAddress> {
        let current = self.peers.current_by_ip(arp.target_ip)?;
        current.is_lively(call.now.since_boot).then(|| current.certificate.mac())
    }

    fn stack_answers(&mut self, call: &mut Call<'_>, header: &Header, arp: &Arp, frame: &[u8]) -> Fate {
        if call.core.settings.legacy_by_mac(header.destination).is_some() {
            return call.pass(Side::WIRE, frame);
        }
        let asked_in_clear = self.clear.take_asker(call.now.since_boot, header.destination);
        let asked_by_handshake = self.send_replies_that_waited(call, arp.target_mac, arp.sender_ip.into());
        if asked_in_clear {
            return call.pass(Side::WIRE, frame);
        }
        if asked_by_handshake {
            return Fate::Consumed;
        }
        if self.peers.current_by_mac(header.destination).is_some() {
            call.order(0, OrderKind::Seal(header.destination, frame.to_vec()));
            return Fate::Forwarded;
        }
        call.uncarried(frame, DropReason::ArpUnasked)
    }
}

/// The same ARP frame, addressed to one host.
fn readdress(frame: &[u8], destination: MacAddress) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if let Some(place) = frame.get_mut(..6) {
        place.copy_from_slice(&destination.0);
    }
    debug_assert!(Header::parse(&frame).is_ok_and(|(header, _)| header.ethertype == EtherType::ARP));
    frame
}
