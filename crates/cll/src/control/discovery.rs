//! IPv6 (no paper has it): who has which address, and what lanes and our own stack are told of it.
//!
//! Who has which address is decided by `neighbours`; lanes ask here when a frame claims what they
//! do not know.
//!
//! Which addresses our own stack has is learned from what it sends. A program that starts anew may have missed that, so
//! for an unknown address the stack is asked, without naming anybody, whether it has it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use bump::{DropReason, Instant, Side};
use identity::Verified;
use identity::certificate::HostCertificate;
use shield::Bucket;
use wire::cll::resolution::Neighbour;
use wire::cll::{Handshake, Resolution};
use wire::ethernet::Header;
use wire::nd::{group_mac, solicitation, solicited_node};
use wire::{EtherType, MacAddress};

use super::core::{Call, steady};
use crate::event::Event;
use crate::job::Refusal;
use crate::limits::{ADDRESS_REFRESH, CLAIMS_TOLD_BURST, PROBE_ANSWER_MAX, PROBES_OPEN_MAX, PROBES_PER_SECOND};
use crate::message::OrderKind;
use crate::neighbours::{Claimed, Neighbours};
use crate::origin::{Claims, Origin, Passage};

/// Who has which address.
pub(super) struct Addresses {
    neighbours: Neighbours,
    own_origin: Origin,
    /// Addresses for which our stack is asked whether it has them, and since when.
    probes: BTreeMap<Ipv6Addr, Instant>,
    probe_budget: Bucket,
    claims_told: Bucket,
}

impl Addresses {
    pub(super) fn new(own: &Verified<HostCertificate>) -> Addresses {
        Addresses {
            neighbours: Neighbours::new(own),
            own_origin: Origin::of(own),
            probes: BTreeMap::new(),
            probe_budget: steady(PROBES_PER_SECOND),
            claims_told: Bucket::new(1, CLAIMS_TOLD_BURST),
        }
    }

    /// This host shows another certificate.
    pub(super) fn on_identity(&mut self, call: &mut Call<'_>) {
        let certificate = call.core.settings.identity.certificate().clone();
        self.own_origin = Origin::of(&certificate);
        self.learn_certificate(call, &certificate);
    }

    /// The host that has an IPv6 address.
    pub(super) fn holder(&self, now: Instant, address: Ipv6Addr) -> Option<MacAddress> {
        self.neighbours.holder(now, address)
    }

    /// All IPv6 addresses of a host.
    pub(super) fn of_host(&self, mac: MacAddress) -> Vec<Ipv6Addr> {
        self.neighbours.addresses_of(mac)
    }

    /// Whether our own stack has this IPv6 address.
    pub(super) fn is_own(&self, address: Ipv6Addr) -> bool {
        self.neighbours.is_own(address)
    }

    /// Whether the host with this certificate has the address.
    pub(super) fn has(&self, now: Instant, certificate: &HostCertificate, ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(ip) => certificate.addresses().contains(&ip),
            IpAddr::V6(ip) => self.holder(now, ip) == Some(certificate.mac()),
        }
    }

    /// The proved host that has an IPv6 address.
    pub(super) fn proved_holder(&self, call: &Call<'_>, ip: IpAddr) -> Option<MacAddress> {
        let IpAddr::V6(address) = ip else { return None };
        self.holder(call.now.since_boot, address).filter(|mac| call.core.rules.proved.contains(*mac))
    }

    /// How long what is for this address or host is kept back for a proof; `None` if it never goes
    /// out in clear.
    pub(super) fn wait(&self, call: &Call<'_>, ip: Option<IpAddr>, mac: Option<MacAddress>) -> Option<Duration> {
        let rules = &call.core.rules;
        // An address that a proved host made itself is in no certificate.
        let mac = mac.or_else(|| self.proved_holder(call, ip?));
        match (ip, mac) {
            (Some(ip), Some(mac)) => Some(rules.wait_for_address(ip)?.max(rules.wait_for_host(mac)?)),
            (Some(ip), None) => rules.wait_for_address(ip),
            (None, Some(mac)) => rules.wait_for_host(mac),
            (None, None) => None,
        }
    }

    /// What a frame of our stack claims; none where peers would refuse it.
    pub(super) fn own_claims(&self, frame: &[u8]) -> Option<Claims> {
        match self.own_origin.check(frame) {
            Ok(Passage::Ipv6(claims)) => Some(claims),
            _ => None,
        }
    }

    /// The stack is about to take an address and asks all whether somebody has it.
    pub(super) fn begin_own(&mut self, call: &mut Call<'_>, target: Ipv6Addr) {
        if let Ok(claimed) = self.neighbours.begin_own(call.now.since_boot, target) {
            withdraw(call, &claimed.withdrawn);
        }
    }

    /// Our stack uses this address. Should another host have it, that host's claim stays.
    pub(super) fn note_own(&mut self, call: &mut Call<'_>, address: Ipv6Addr) {
        if let Ok(claimed) = self.neighbours.claim(call.now.since_boot, call.core.settings.mac, address) {
            withdraw(call, &claimed.withdrawn);
        }
    }

    /// Our stack does not answer for an address.
    pub(super) fn forget_own(&mut self, gone: IpAddr) {
        if let IpAddr::V6(gone) = gone {
            self.neighbours.forget_own(gone);
        }
    }

    /// Whether our stack was asked whether it has this address and has not answered yet; the answer
    /// is here.
    pub(super) fn take_probe(&mut self, address: Ipv6Addr) -> bool {
        self.probes.remove(&address).is_some()
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
        let source = call.core.settings.mac;
        let anothers = self.holder(now, target).is_some_and(|holder| holder != source);
        if !anothers && self.probe_budget.take(now) {
            self.probes.insert(target, now);
            let group = solicited_node(target);
            let packet = solicitation(Ipv6Addr::UNSPECIFIED, source, group, target);
            let header = Header { destination: group_mac(group), source, ethertype: EtherType::IPV6 };
            call.make(Side::STACK, &[&header.emit()[..], &packet].concat());
        }
    }

    /// Judges what the cross-layer check left open of a frame of the proved host at `mac` with this
    /// name.
    pub(super) fn admit_passage(
        &mut self,
        call: &mut Call<'_>,
        (mac, name): (MacAddress, &str),
        passage: Result<Passage, DropReason>,
    ) -> Result<(), DropReason> {
        match passage {
            Ok(Passage::Ipv6(_)) if !call.core.settings.ipv6 => Err(DropReason::Ipv6),
            _ if call.core.settings.weaken.cross_layer => Ok(()),
            Ok(Passage::Ipv6(claims)) => self.admit(call, (mac, name), &claims),
            Ok(Passage::Free) => Ok(()),
            Err(reason) => Err(reason),
        }
    }

    /// Judges what a frame of the proved host at `mac` claims, and tells the lanes.
    pub(super) fn admit(
        &mut self,
        call: &mut Call<'_>,
        (mac, name): (MacAddress, &str),
        claims: &Claims,
    ) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        for address in [claims.source, claims.target].into_iter().flatten() {
            let claimed = self.neighbours.claim(now, mac, address);
            let claimed = claimed.inspect_err(|reason| self.tell_refused(call, (mac, name), address, *reason))?;
            bind(call, (mac, name), address, &claimed);
        }
        let Some(question) = claims.question else { return Ok(()) };
        // The stack's answer is now meant for all.
        self.probes.remove(&question);
        let claimed = self.neighbours.question(now, mac, question);
        let claimed = claimed.inspect_err(|reason| self.tell_refused(call, (mac, name), question, *reason))?;
        announce(call, (mac, name), question, &claimed);
        Ok(())
    }

    fn tell_refused(&mut self, call: &mut Call<'_>, (mac, name): (MacAddress, &str), ip: Ipv6Addr, reason: DropReason) {
        if self.claims_told.take(call.now.since_boot) {
            call.out.event(Event::ClaimRefused { name: name.to_owned(), mac, ip, reason });
        }
    }

    /// The host with this certificate was proved: what it names is the host's.
    pub(super) fn learn_certificate(&mut self, call: &mut Call<'_>, certificate: &HostCertificate) {
        withdraw(call, &self.neighbours.certify(certificate));
    }

    /// The site believes this host no more.
    pub(super) fn forget_host(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        withdraw(call, &self.neighbours.forget_host(mac));
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
        let (mac, name) = (certificate.mac(), certificate.name());
        let claimed = self.neighbours.claim(call.now.since_boot, mac, address).map_err(|reason| {
            let detail = format!("{name} may not speak for {address} at {mac}");
            Refusal { reason, detail }
        })?;
        bind(call, (mac, name), address, &claimed);
        Ok(())
    }
}

/// The host at `mac` has this address: its frames pass the lanes.
fn bind(call: &mut Call<'_>, (mac, name): (MacAddress, &str), address: Ipv6Addr, claimed: &Claimed) {
    announce(call, (mac, name), address, claimed);
    let until = call.now.since_boot + ADDRESS_REFRESH;
    call.order_all(|| OrderKind::Admit(mac, address, until));
}

/// Tells what a good claim changed.
fn announce(call: &mut Call<'_>, (mac, name): (MacAddress, &str), ip: Ipv6Addr, claimed: &Claimed) {
    withdraw(call, &claimed.withdrawn);
    if claimed.denies_ours {
        call.out.event(Event::AddressDenied { name: name.to_owned(), mac, ip });
    }
}

fn withdraw(call: &mut Call<'_>, withdrawn: &[(MacAddress, Ipv6Addr)]) {
    let own_mac = call.core.settings.mac;
    for (mac, address) in withdrawn.iter().filter(|(mac, _)| *mac != own_mac) {
        call.order_all(|| OrderKind::Withdraw(*mac, *address));
    }
}
