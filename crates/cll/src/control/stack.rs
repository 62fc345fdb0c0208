//! What our own stack's ARP and neighbour discovery ask for (paper, section 5.2): a question opens
//! a handshake, an answer completes one.

use std::net::{IpAddr, Ipv6Addr};

use bump::{DropReason, Fate, Side};
use wire::arp::{Arp, Operation};
use wire::cll::Resolution;
use wire::cll::resolution::Neighbour;
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::core::Call;
use super::initiator::Known;
use super::machines::Machines;
use crate::message::OrderKind;
use crate::origin::Claims;

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
            return self.broadcasts.sending.on_frame(call, frame);
        }
        if call.core.settings.legacy_by_mac(header.destination).is_some() {
            return call.pass(Side::WIRE, frame);
        }
        match arp.operation {
            Operation::Request => self.stack_asks(call, &header, &arp, frame),
            Operation::Reply => {
                let asked = (arp.target_mac, arp.sender_ip.into());
                self.stack_answers(call, &header, asked, frame, DropReason::ArpUnasked)
            }
        }
    }

    fn stack_asks(&mut self, call: &mut Call<'_>, header: &Header, arp: &Arp, frame: &[u8]) -> Fate {
        let settings = &call.core.settings;
        let legacy = settings.legacy_by_ip(arp.target_ip).map(|legacy| (legacy.mac, legacy.router));
        let manager = call.core.rules.policy.management_by_ip(arp.target_ip).map(|manager| (manager.mac, false));
        if let Some((mac, is_router)) = legacy.or(manager) {
            call.send_resolution_up(&Resolution::from(*arp).reply(mac, None), is_router);
            return Fate::Answered;
        }
        let current = self.associations.peers.current_by_ip(arp.target_ip);
        if let Some(current) = current.filter(|current| current.is_lively(call.now.since_boot)) {
            // It can be asked under the seal.
            let mac = current.certificate.mac();
            call.order(0, OrderKind::Seal(mac, readdress(frame, mac)));
            return Fate::Forwarded;
        }
        self.seek(call, (*arp).into(), header, frame)
    }

    /// Opens a handshake for the address that our stack asks for.
    fn seek(&mut self, call: &mut Call<'_>, question: Resolution, header: &Header, frame: &[u8]) -> Fate {
        let destination = if header.destination.is_group() { MacAddress::BROADCAST } else { header.destination };
        let target = question.target_ip();
        let known = Known { addresses: &self.addresses, tickets: &self.resumptions };
        let opened = self.openings.open_for_ip(call, &known, question, destination);
        self.clear.ask(call, &self.addresses, target, frame, opened)
    }

    /// Our stack answers the host at `asked` for its address.
    fn stack_answers(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        (asker, own_ip): (MacAddress, IpAddr),
        frame: &[u8],
        unasked: DropReason,
    ) -> Fate {
        let asked_in_clear = self.clear.take_asker(call.now.since_boot, header.destination);
        let asked_by_handshake = self.answers.on_stack_answer(call, asker, own_ip);
        if asked_in_clear {
            return call.pass(Side::WIRE, frame);
        }
        if asked_by_handshake {
            return Fate::Consumed;
        }
        if self.associations.peers.current_by_mac(header.destination).is_some() {
            call.order(0, OrderKind::Seal(header.destination, frame.to_vec()));
            return Fate::Forwarded;
        }
        call.uncarried(frame, unasked)
    }

    /// The fate of a neighbour solicitation or advertisement of the stack.
    pub(super) fn stack_neighbour(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, packet)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        // Peers judge it like this, so what they would refuse need not leave.
        let Some(claims) = self.addresses.own_claims(frame) else {
            return call.uncarried(frame, DropReason::DiscoveryNotOurs);
        };
        let target =
            wire::nd::Message::parse(&packet[wire::ipv6::HEADER_LEN..]).ok().and_then(|message| message.target);
        match (claims, target) {
            (Claims { question: Some(target), .. }, _) => {
                self.addresses.begin_own(call, target);
                self.broadcasts.sending.on_frame(call, frame)
            }
            (Claims { target: Some(target), .. }, _) => self.stack_advertises(call, &header, target, frame),
            (Claims { source: Some(source), .. }, Some(target)) => {
                self.addresses.note_own(call, source);
                self.stack_solicits(call, &header, (source, target), frame)
            }
            _ => call.uncarried(frame, DropReason::DiscoveryNotOurs),
        }
    }

    /// The stack asks who has an address.
    fn stack_solicits(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        (sender_ip, target_ip): (Ipv6Addr, Ipv6Addr),
        frame: &[u8],
    ) -> Fate {
        let now = call.now.since_boot;
        let holder = self.addresses.holder(now, target_ip).and_then(|mac| self.associations.peers.current_by_mac(mac));
        if let Some(current) = holder.filter(|current| current.is_lively(now)) {
            call.order(0, OrderKind::Seal(current.certificate.mac(), frame.to_vec()));
            return Fate::Forwarded;
        }
        let (operation, sender_mac) = (Operation::Request, call.core.settings.mac);
        let question = Neighbour { operation, sender_mac, sender_ip, target_mac: MacAddress::ZERO, target_ip };
        self.seek(call, question.into(), header, frame)
    }

    /// The stack says that it has an address.
    fn stack_advertises(&mut self, call: &mut Call<'_>, header: &Header, target: Ipv6Addr, frame: &[u8]) -> Fate {
        self.addresses.note_own(call, target);
        if !header.destination.is_group() {
            let asked = (header.destination, target.into());
            return self.stack_answers(call, header, asked, frame, DropReason::DiscoveryUnasked);
        }
        if self.addresses.take_probe(target) { Fate::Consumed } else { self.broadcasts.sending.on_frame(call, frame) }
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
