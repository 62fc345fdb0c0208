//! What our own stack's ARP asks for (paper, section 5.2): a request opens a handshake, a reply completes one.

use bump::{DropReason, Fate, Meta, Side, sink};
use wire::arp::{Arp, Operation};
use wire::cll::Resolution;
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::{Call, Control};
use crate::message::OrderKind;

impl Control {
    /// The fate of an ARP frame of the stack.
    pub(super) fn stack_arp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, message)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let Ok(arp) = Arp::parse(message) else { return Fate::Dropped(DropReason::BadArp) };
        if arp.sender_ip.is_unspecified() {
            return Fate::Dropped(DropReason::ArpProbe);
        }
        if arp.sender_mac != self.settings.mac || !self.settings.is_own(arp.sender_ip) {
            return Fate::Dropped(DropReason::ArpNotOurs);
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
        if self.settings.legacy_by_mac(header.destination).is_some() {
            return forward_in_clear(call, frame);
        }
        if let Some(legacy) = self.settings.legacy_by_ip(arp.target_ip) {
            let answer = Resolution::from(*arp).reply(legacy.mac, None);
            self.send_resolution_up(call, &answer, legacy.router);
            return Fate::Answered;
        }
        if let Some(mac) = self.lively_peer(call, arp) {
            call.order(0, OrderKind::Seal(mac, readdress(frame, mac)));
            return Fate::Forwarded;
        }
        let destination = if header.destination.is_group() { MacAddress::BROADCAST } else { header.destination };
        match self.open_for_ip(call, (*arp).into(), destination) {
            Ok(()) => Fate::Consumed,
            Err(reason) => Fate::Dropped(reason),
        }
    }

    /// The peer that has the wanted address, if its association works: it can be asked under the seal.
    fn lively_peer(&self, call: &Call<'_>, arp: &Arp) -> Option<MacAddress> {
        let current = self.peers.current_by_ip(arp.target_ip)?;
        current.is_lively(call.now.since_boot).then(|| current.certificate.mac())
    }

    fn stack_answers(&mut self, call: &mut Call<'_>, header: &Header, arp: &Arp, frame: &[u8]) -> Fate {
        if self.settings.legacy_by_mac(header.destination).is_some() {
            return forward_in_clear(call, frame);
        }
        if self.send_replies_that_waited(call, arp.target_mac, arp.sender_ip.into()) {
            return Fate::Consumed;
        }
        if self.peers.current_by_mac(header.destination).is_some() {
            call.order(0, OrderKind::Seal(header.destination, frame.to_vec()));
            return Fate::Forwarded;
        }
        Fate::Dropped(DropReason::ArpUnasked)
    }
}

fn forward_in_clear(call: &mut Call<'_>, frame: &[u8]) -> Fate {
    if sink::copy(call.sink, Side::WIRE, frame, Meta::plain()) {
        Fate::Forwarded
    } else {
        Fate::Dropped(DropReason::PortFull)
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
