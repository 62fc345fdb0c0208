//! IPv6 (no paper has it): what neighbour discovery of our own stack asks for, and which addresses proved hosts may use.
//!
//! A solicitation of the stack opens a handshake and its advertisement completes one, as ARP does (`stack.rs`). Who has
//! which address is decided by `neighbours`; lanes ask here when a frame claims what they do not know.
//!
//! Which addresses our own stack has is learned from what it sends. A program that starts anew may have missed that, so
//! for an unknown address the stack is asked, without naming anybody, whether it has it.

use std::net::{IpAddr, Ipv6Addr};

use bump::{DropReason, Fate, Side, sink};
use identity::certificate::HostCertificate;
use wire::arp::Operation;
use wire::cll::resolution::Neighbour;
use wire::cll::{Handshake, Resolution};
use wire::ethernet::Header;
use wire::nd::{group_mac, solicitation, solicited_node};
use wire::{EtherType, MacAddress};

use super::core::Call;
use super::machines::Machines;
use crate::event::Event;
use crate::job::Refusal;
use crate::limits::{ADDRESS_REFRESH, PROBE_ANSWER_MAX, PROBES_OPEN_MAX};
use crate::message::{Claim, OrderKind};
use crate::neighbours::Claimed;
use crate::origin::{Claims, Passage};

impl Machines {
    /// The fate of a neighbour solicitation or advertisement of the stack.
    pub(super) fn stack_neighbour(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, packet)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        // Peers judge it like this, so what they would refuse need not leave.
        let Ok(Passage::Ipv6(claims)) = self.own_origin.check(frame) else {
            return call.uncarried(frame, DropReason::DiscoveryNotOurs);
        };
        let target =
            wire::nd::Message::parse(&packet[wire::ipv6::HEADER_LEN..]).ok().and_then(|message| message.target);
        match (claims, target) {
            (Claims { question: Some(target), .. }, _) => self.stack_takes(call, target, frame),
            (Claims { target: Some(target), .. }, _) => self.stack_advertises(call, &header, target, frame),
            (Claims { source: Some(source), .. }, Some(target)) => {
                self.note_own(call, source);
                self.stack_solicits(call, &header, (source, target), frame)
            }
            _ => call.uncarried(frame, DropReason::DiscoveryNotOurs),
        }
    }

    /// The stack is about to take an address and asks all whether somebody has it.
    fn stack_takes(&mut self, call: &mut Call<'_>, target: Ipv6Addr, frame: &[u8]) -> Fate {
        if let Ok(claimed) = self.neighbours.begin_own(call.now.since_boot, target) {
            self.withdraw(call, &claimed.withdrawn);
        }
        self.group_frame_of_stack(call, frame)
    }

    /// The stack asks who has an address.
    fn stack_solicits(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        (source, target): (Ipv6Addr, Ipv6Addr),
        frame: &[u8],
    ) -> Fate {
        if let Some(mac) = self.lively_holder(call, target) {
            call.order(0, OrderKind::Seal(mac, frame.to_vec()));
            return Fate::Forwarded;
        }
        let destination = if header.destination.is_group() { MacAddress::BROADCAST } else { header.destination };
        let question = Neighbour {
            operation: Operation::Request,
            sender_mac: call.core.settings.mac,
            sender_ip: source,
            target_mac: if destination.is_group() { MacAddress::ZERO } else { destination },
            target_ip: target,
        };
        let opened = self.open_for_ip(call, question.into(), destination);
        self.ask_in_clear(call, target.into(), frame, opened)
    }

    /// The stack says that it has an address.
    fn stack_advertises(&mut self, call: &mut Call<'_>, header: &Header, target: Ipv6Addr, frame: &[u8]) -> Fate {
        self.note_own(call, target);
        if header.destination.is_group() {
            return match self.probes.remove(&target) {
                Some(_) => Fate::Consumed,
                None => self.group_frame_of_stack(call, frame),
            };
        }
        let asked_in_clear = self.clear.take_asker(call.now.since_boot, header.destination);
        let asked_by_handshake = self.send_replies_that_waited(call, header.destination, target.into());
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
        call.uncarried(frame, DropReason::DiscoveryUnasked)
    }

    /// The peer that has an address, if its association works: it can be asked under the seal.
    fn lively_holder(&self, call: &Call<'_>, address: Ipv6Addr) -> Option<MacAddress> {
        let now = call.now.since_boot;
        let current = self.peers.current_by_mac(self.neighbours.holder(now, address)?)?;
        current.is_lively(now).then(|| current.certificate.mac())
    }

    /// Our stack uses this address. Should another host have it, that host's claim stays.
    fn note_own(&mut self, call: &mut Call<'_>, address: Ipv6Addr) {
        if let Ok(claimed) = self.neighbours.claim(call.now.since_boot, call.core.settings.mac, address) {
            self.withdraw(call, &claimed.withdrawn);
        }
    }

    /// A request asks for an address that our stack was not heard to have. The site tag in front of it is good.
    pub(super) fn ask_stack_for(&mut self, call: &mut Call<'_>, request: &Handshake<'_>, frame: &[u8]) {
        let now = call.now.since_boot;
        let Resolution::Neighbour(Neighbour { target_ip: target, .. }) = request.resolution else { return };
        self.probes.retain(|_, asked| now.since(*asked) < PROBE_ANSWER_MAX);
        let is_asked = self.probes.contains_key(&target) || self.probes.len() >= PROBES_OPEN_MAX;
        if is_asked || !call.core.settings.ipv6 || call.site_key_of(frame, &request.site_tag).is_none() {
            return;
        }
        // A certificate names what the stack may have; that it has it, it says itself.
        let anothers = self.neighbours.holder(now, target).is_some_and(|holder| holder != call.core.settings.mac);
        if !anothers && self.probe_budget.take(now) {
            self.probes.insert(target, now);
            let group = solicited_node(target);
            let packet = solicitation(Ipv6Addr::UNSPECIFIED, call.core.settings.mac, group, target);
            let (source, destination) = (call.core.settings.mac, group_mac(group));
            let header = Header { destination, source, ethertype: EtherType::IPV6 };
            call.make(Side::STACK, &[&header.emit()[..], &packet].concat());
        }
    }

    /// The fate of an opened frame about which a lane asks.
    pub(super) fn judge_claim(&mut self, call: &mut Call<'_>, claim: &Claim) -> Fate {
        let Some(mac) = self.peers.peer_of(claim.association) else {
            return Fate::Dropped(DropReason::UnknownIndex);
        };
        let admitted = self.admit(call, mac, &claim.claims);
        if let Err(reason) = call.excuse_insider(mac, admitted) {
            return Fate::Dropped(reason);
        }
        if !sink::copy(call.sink, Side::STACK, &claim.opened, claim.meta) {
            return Fate::Dropped(DropReason::PortFull);
        }
        call.core.ledger.emitted[Side::STACK as usize] += 1;
        Fate::Forwarded
    }

    /// Judges what the cross-layer check left open of a frame of the proved host at `mac`.
    pub(super) fn admit_passage(
        &mut self,
        call: &mut Call<'_>,
        mac: MacAddress,
        passage: Result<Passage, DropReason>,
    ) -> Result<(), DropReason> {
        match passage {
            Ok(Passage::Ipv6(_)) if !call.core.settings.ipv6 => Err(DropReason::Ipv6),
            _ if call.core.settings.weaken.cross_layer => Ok(()),
            Ok(Passage::Ipv6(claims)) => self.admit(call, mac, &claims),
            Ok(Passage::Free) => Ok(()),
            Err(reason) => Err(reason),
        }
    }

    /// Judges what a frame of the proved host at `mac` claims, and tells the lanes.
    pub(super) fn admit(&mut self, call: &mut Call<'_>, mac: MacAddress, claims: &Claims) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        for address in [claims.source, claims.target].into_iter().flatten() {
            let decided = self.neighbours.claim(now, mac, address);
            let claimed = decided.inspect_err(|reason| self.tell_refused(call, (mac, address), *reason))?;
            self.bind(call, mac, address, &claimed);
        }
        let Some(question) = claims.question else { return Ok(()) };
        // The stack's answer is now meant for all.
        self.probes.remove(&question);
        let decided = self.neighbours.question(now, mac, question);
        let claimed = decided.inspect_err(|reason| self.tell_refused(call, (mac, question), *reason))?;
        self.announce(call, (mac, question), &claimed);
        Ok(())
    }

    /// The host at `mac` has this address: its frames pass the lanes.
    fn bind(&mut self, call: &mut Call<'_>, mac: MacAddress, address: Ipv6Addr, claimed: &Claimed) {
        self.announce(call, (mac, address), claimed);
        let until = call.now.since_boot + ADDRESS_REFRESH;
        call.order_all(|| OrderKind::Admit(mac, address, until));
    }

    /// Tells what a good claim changed.
    fn announce(&mut self, call: &mut Call<'_>, (mac, ip): (MacAddress, Ipv6Addr), claimed: &Claimed) {
        self.withdraw(call, &claimed.withdrawn);
        if claimed.denies_ours {
            call.out.event(Event::AddressDenied { name: self.name_of(mac), mac, ip });
        }
    }

    fn tell_refused(&mut self, call: &mut Call<'_>, (mac, ip): (MacAddress, Ipv6Addr), reason: DropReason) {
        if self.claims_told.take(call.now.since_boot) {
            call.out.event(Event::ClaimRefused { name: self.name_of(mac), mac, ip, reason });
        }
    }

    fn name_of(&self, mac: MacAddress) -> String {
        let peer = self.peers.current_by_mac(mac).map(|current| current.certificate.name());
        peer.or_else(|| self.name_of_group_sender(mac)).unwrap_or_default().to_owned()
    }

    fn withdraw(&mut self, call: &mut Call<'_>, withdrawn: &[(MacAddress, Ipv6Addr)]) {
        let own_mac = call.core.settings.mac;
        for (mac, address) in withdrawn.iter().filter(|(mac, _)| *mac != own_mac) {
            call.order_all(|| OrderKind::Withdraw(*mac, *address));
        }
    }

    /// The host with this certificate was proved: what it names is the host's.
    pub(super) fn learn_certificate(&mut self, call: &mut Call<'_>, certificate: &HostCertificate) {
        let withdrawn = self.neighbours.certify(certificate);
        self.withdraw(call, &withdrawn);
    }

    /// The site believes this host no more.
    pub(super) fn forget_addresses(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let withdrawn = self.neighbours.forget_host(mac);
        self.withdraw(call, &withdrawn);
    }

    /// Whether the sender of a proved handshake message may have the IPv6 address for which it speaks, if it does for one.
    pub(super) fn admit_resolution(
        &mut self,
        call: &mut Call<'_>,
        certificate: &HostCertificate,
        resolution: &Resolution,
    ) -> Result<(), Refusal> {
        self.learn_certificate(call, certificate);
        let IpAddr::V6(address) = resolution.sender_ip() else { return Ok(()) };
        if call.core.settings.weaken.cross_layer {
            return Ok(());
        }
        let mac = certificate.mac();
        let claimed = self.neighbours.claim(call.now.since_boot, mac, address).map_err(|reason| {
            let detail = format!("{} may not speak for {address} at {mac}", certificate.name());
            Refusal { reason, detail }
        })?;
        self.bind(call, mac, address, &claimed);
        Ok(())
    }
}
