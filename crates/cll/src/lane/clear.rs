//! Frames in clear of and to hosts that are on no list: what the mode of migration lets pass (paper, section 7.1).
//!
//! A frame in clear proves nothing. It is let in where the operator says so, unless it contradicts a proof that this host has and
//! keeps to; and it is counted under the reason for which mode `enforce` would have dropped it. A manager's machine is let in
//! in every mode, to one TCP port.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Frame, Instant, Ledger, Mailbox, Now, Side, sink};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::layer::{self, network_layer, protocol};
use wire::{EtherType, MacAddress, icmp, ipv4, ipv6};

use super::activities::Activities;
use super::admitted::Admitted;
use super::outbound::{is_dhcp, not_carried};
use super::{Lane, Outputs};
use crate::glimpse::Glimpse;
use crate::limits::{ASK_AGAIN, CLEAR_HOSTS_MAX, DOWNGRADE_TOLD_EVERY, FALL_BACK_LOOK, MANAGEMENT_TOLD_EVERY};
use crate::message::{AssociationId, PlainWord, Request};
use crate::migration::{Claim, Management, Migration, Rules, is_contradiction};
use crate::observed::PlainHosts;
use crate::settings::Settings;

/// What a lane knows about frames in clear.
pub(super) struct Clear {
    pub(super) rules: Arc<Rules>,
    /// Hosts to which frames go in clear, and when each is asked again whether it speaks CLL.
    hosts: BTreeMap<MacAddress, Instant>,
    pub(super) observed: PlainHosts,
    /// When an operator last heard of a downgrade, by the host that was spoken for.
    downgrades_told: BTreeMap<MacAddress, Instant>,
    /// When control was last told that a peer speaks in clear.
    heard: BTreeMap<MacAddress, Instant>,
    /// Managers' machines that spoke in clear since they were last heard under a seal, and when an operator last heard of it.
    managers: BTreeMap<MacAddress, Instant>,
}

impl Clear {
    pub(super) fn new(rules: Arc<Rules>) -> Clear {
        Clear {
            rules,
            hosts: BTreeMap::new(),
            observed: PlainHosts::default(),
            downgrades_told: BTreeMap::new(),
            heard: BTreeMap::new(),
            managers: BTreeMap::new(),
        }
    }

    /// Goes by other rules from now on.
    pub(super) fn set_rules(&mut self, rules: Arc<Rules>) {
        let is_proof_news = |mac: &MacAddress| rules.proved.contains(*mac) && !self.rules.proved.contains(*mac);
        self.hosts.retain(|mac, _| rules.wait_for_host(*mac).is_some() && !is_proof_news(mac));
        self.observed.retain(|mac| rules.is_lenient_towards(mac) && !is_proof_news(&mac));
        self.managers.retain(|mac, _| rules.policy.management_by_mac(*mac).is_some());
        self.downgrades_told.retain(|mac, _| rules.proved.contains(*mac));
        self.rules = rules;
    }

    /// These hosts are admitted in clear from now on.
    pub(super) fn settle(&mut self, settings: &Settings) {
        self.observed.retain(|mac| settings.legacy_by_mac(mac).is_none());
    }

    /// There is a key to this host: it proves itself, and what was said of it before is history.
    pub(super) fn peer_has_key(&mut self, now: Now, mac: MacAddress) {
        self.hosts.remove(&mac);
        self.heard.remove(&mac);
        self.observed.remove_proved(now.since_boot, mac);
    }

    /// A frame of this host was opened.
    pub(super) fn heard_sealed(&mut self, mac: MacAddress) {
        if !self.managers.is_empty() {
            self.managers.remove(&mac);
        }
    }

    /// Whether frames to this host go in clear. From time to time control is asked to try a handshake again.
    fn goes_to(&mut self, now: Now, mac: MacAddress, requests: &mut Mailbox<Request>) -> bool {
        let Some(ask_at) = self.hosts.get_mut(&mac) else { return false };
        if *ask_at <= now.since_boot && requests.push(Request::Wanted(mac)).is_ok() {
            *ask_at = now.since_boot + ASK_AGAIN;
        }
        true
    }

    /// The manager's machine that the frame is from, if it goes to the port that is open to it.
    fn manager_of(&self, header: &Header, frame: &[u8]) -> Option<Management> {
        let manager = self.rules.policy.management_by_mac(header.source)?;
        let ports = Ports::of(frame)?;
        (ports.source_ip == manager.ip && ports.destination == manager.port && !header.destination.is_group())
            .then_some(*manager)
    }

    /// Whether the frame is the answer of that port, and its manager's machine is not to be had otherwise.
    fn answers_manager(&self, header: &Header, frame: &[u8], has_key: bool) -> bool {
        let Some(manager) = self.rules.policy.management_by_mac(header.destination) else { return false };
        let wants_clear = !has_key || self.managers.contains_key(&manager.mac);
        wants_clear
            && Ports::of(frame).is_some_and(|ports| ports.destination_ip == manager.ip && ports.source == manager.port)
    }

    /// What a frame in clear claims; `by_mac` if that its source is a proved host's counts, too.
    fn claim(&self, admitted: &Admitted, source: MacAddress, frame: &[u8], by_mac: bool) -> Claim {
        let rules = &self.rules;
        let ip = network_source(frame);
        let holder = match ip {
            Some(IpAddr::V6(address)) => admitted.holder(address).filter(|holder| *holder != source),
            _ => None,
        };
        let own = by_mac.then_some(source);
        let macs: Vec<MacAddress> = own.into_iter().chain(holder).collect();
        let ip = ip.filter(|ip| by_mac || rules.claim_of_address(source, Some(*ip)) != Claim::Nothing);
        rules.claim(&macs, ip)
    }

    /// Whether group frames of this host come signed as well, key or not. Frames to one that has
    /// fallen back go in clear.
    fn signs_groups(&self, mac: MacAddress) -> bool {
        self.rules.proved.contains(mac) && !self.hosts.contains_key(&mac)
    }

    fn refuse_claim(&mut self, now: Now, mac: MacAddress, owner: MacAddress, out: &mut Outputs<'_>) -> Fate {
        let told = self.downgrades_told.get(&owner);
        if told.is_none_or(|at| now.since_boot.since(*at) >= DOWNGRADE_TOLD_EVERY)
            && out.requests.push(Request::Plain(PlainWord::Refused { mac, owner })).is_ok()
        {
            self.downgrades_told.insert(owner, now.since_boot);
        }
        Fate::Dropped(DropReason::Downgrade)
    }

    /// Counts what mode `enforce` would have dropped, and tells an operator now and then.
    fn excuse(
        &mut self,
        now: Now,
        mac: MacAddress,
        (reason, glimpse): (DropReason, Glimpse),
        ledger: &mut Ledger,
        requests: &mut Mailbox<Request>,
    ) {
        ledger.excuse(reason);
        if self.observed.note(now.since_boot, mac, reason, glimpse) {
            // One that is lost is told again with the next hour's; `peers` has it in any case.
            let _ = requests.push(Request::Plain(PlainWord::Passed { mac, reason }));
        }
    }

    /// A frame under a seal whose inside contradicts the peer's certificate: dropped, but where
    /// everything is only noted.
    pub(super) fn excuse_insider(
        &mut self,
        now: Now,
        mac: MacAddress,
        reason: DropReason,
        ledger: &mut Ledger,
        requests: &mut Mailbox<Request>,
    ) -> Result<(), DropReason> {
        if !is_contradiction(reason) || self.rules.towards(mac) != Migration::Observe {
            return Err(reason);
        }
        self.excuse(now, mac, (reason, Glimpse::SEALED), ledger, requests);
        Ok(())
    }

    /// A peer that has a key speaks in clear all the same: control judges whether it has fallen
    /// back. What was opened before is told first.
    fn hear_plain(
        &mut self,
        now: Now,
        (mac, association): (MacAddress, AssociationId),
        activities: &mut Activities,
        requests: &mut Mailbox<Request>,
    ) {
        let last = self.heard.get(&mac);
        if last.is_some_and(|at| now.since_boot.since(*at) < FALL_BACK_LOOK) {
            return;
        }
        if activities.tell(association, requests) && requests.push(Request::HeardPlain(mac)).is_ok() {
            self.heard.insert(mac, now.since_boot);
        }
    }

    fn let_manager_in(&mut self, now: Now, manager: Management, frame: &Frame<'_>, out: &mut Outputs<'_>) -> Fate {
        let told = self.managers.get(&manager.mac).copied();
        let is_due = told.is_none_or(|at| now.since_boot.since(at) >= MANAGEMENT_TOLD_EVERY);
        if is_due && out.requests.push(Request::Plain(PlainWord::Management { mac: manager.mac })).is_ok() {
            self.managers.insert(manager.mac, now.since_boot);
        } else {
            self.managers.entry(manager.mac).or_insert(now.since_boot);
        }
        out.forward(Side::STACK, frame)
    }

    /// Frames to this host go in clear from now on, if the mode allows it; whether it does. The
    /// host is asked again when it was to be: it may send ARP in clear meanwhile, or somebody in its
    /// name.
    fn go_to(&mut self, now: Now, mac: MacAddress, ask_after: Duration) -> bool {
        if !self.rules.is_lenient_towards(mac) {
            return false;
        }
        if self.hosts.len() >= CLEAR_HOSTS_MAX && !self.hosts.contains_key(&mac) {
            self.hosts.pop_first();
        }
        let due = now.since_boot + ask_after;
        self.hosts.entry(mac).and_modify(|ask_at| *ask_at = (*ask_at).min(due)).or_insert(due);
        true
    }
}

/// Addresses and ports of a whole TCP packet over IPv4, or of a first fragment of one.
struct Ports {
    source_ip: std::net::Ipv4Addr,
    destination_ip: std::net::Ipv4Addr,
    source: u16,
    destination: u16,
}

impl Ports {
    fn of(frame: &[u8]) -> Option<Ports> {
        // Without a look behind VLAN tags: in clear they would lead into another network.
        let (header, packet) = Header::parse(frame).ok()?;
        if header.ethertype != EtherType::IPV4 {
            return None;
        }
        let ip = ipv4::View::new(packet).ok()?;
        let (protocol, at) = layer::transport_of(frame, EtherType::IPV4, ETHERNET_LEN)?;
        let &[a, b, c, d] = frame.get(at..at + 4).filter(|_| protocol == protocol::TCP)? else { return None };
        Some(Ports {
            source_ip: ip.source(),
            destination_ip: ip.destination(),
            source: u16::from_be_bytes([a, b]),
            destination: u16::from_be_bytes([c, d]),
        })
    }
}

/// Whether it is a neighbour solicitation or advertisement, which tells the stack who has an address.
fn speaks_of_neighbours(header: &Header, packet: &[u8]) -> bool {
    use icmp::v6::{NEIGHBOUR_ADVERTISEMENT, NEIGHBOUR_SOLICITATION};
    let Some(Ok(Some(upper))) = (header.ethertype == EtherType::IPV6)
        .then(|| ipv6::View::new(packet))
        .and_then(Result::ok)
        .map(|packet| packet.upper_layer())
    else {
        return false;
    };
    upper.protocol == icmp::PROTOCOL_V6
        && matches!(upper.bytes.first(), Some(&NEIGHBOUR_SOLICITATION | &NEIGHBOUR_ADVERTISEMENT))
}

/// The source address of an IP packet; looks through VLAN tags.
fn network_source(frame: &[u8]) -> Option<IpAddr> {
    let (ethertype, at) = network_layer(frame)?;
    let packet = frame.get(at..)?;
    match ethertype {
        EtherType::IPV4 => ipv4::View::new(packet).ok().map(|packet| packet.source().into()),
        EtherType::IPV6 => ipv6::View::new(packet).ok().map(|packet| packet.source().into()),
        _ => None,
    }
}

impl Lane {
    /// A frame in clear of a host that is not on the legacy list, or that the list lets not pass,
    /// which is then `refused`.
    /// `None` means that control decides.
    pub(super) fn inbound_stranger(
        &mut self,
        now: Now,
        header: &Header,
        frame: &Frame<'_>,
        refused: Option<DropReason>,
        out: &mut Outputs<'_>,
    ) -> Option<Fate> {
        if let Some(manager) = self.clear.manager_of(header, frame.bytes) {
            return Some(self.clear.let_manager_in(now, manager, frame, out));
        }
        let is_arp = header.ethertype == EtherType::ARP;
        let is_manager = self.clear.rules.policy.management_by_mac(header.source).is_some();
        if is_arp && (is_manager || self.clear.rules.is_lenient_towards(header.source)) {
            return out.ask_control(Request::PlainArp(frame.bytes.to_vec()));
        }
        let is_lenient = self.clear.rules.is_lenient_towards(header.source);
        if is_lenient && self.settings.ipv6 && speaks_of_neighbours(header, &frame.bytes[ETHERNET_LEN..]) {
            return out.ask_control(Request::PlainNeighbour(frame.bytes.to_vec()));
        }
        let refused = refused.unwrap_or(if is_arp { DropReason::PlainArp } else { DropReason::Unsealed });
        if !is_lenient {
            return Some(Fate::Dropped(refused));
        }
        if self.settings.speaks_dhcp() && is_dhcp(header.ethertype, &frame.bytes[ETHERNET_LEN..]) {
            // Its halves know whose address is proved, and whether our program has asked in clear.
            return out.ask_control(Request::Dhcp(Side::WIRE, frame.bytes.to_vec()));
        }
        Some(self.let_in(now, header, frame, refused, out))
    }

    /// `refused` is why mode `enforce` would drop it.
    fn let_in(
        &mut self,
        now: Now,
        header: &Header,
        frame: &Frame<'_>,
        refused: DropReason,
        out: &mut Outputs<'_>,
    ) -> Fate {
        // What does not travel under a seal comes in clear from hosts that have proved themselves, too.
        let is_group = header.destination.is_group();
        let is_ipv6_off = header.ethertype == EtherType::IPV6 && !self.settings.ipv6;
        let payload = &frame.bytes[ETHERNET_LEN..];
        let is_carried = !is_dhcp(header.ethertype, payload) && not_carried(header, payload).is_none() && !is_ipv6_off;
        let is_sealed = is_carried && !is_group;
        let claim = self.clear.claim(&self.admitted, header.source, frame.bytes, is_sealed);
        let signs_groups = |lane: &Lane| {
            let is_known = lane.clear.signs_groups(header.source) || lane.senders.has(header.source);
            lane.settings.broadcasting.carried && is_known
        };
        if is_carried && is_group && claim == Claim::Nothing && signs_groups(self) {
            return Fate::Dropped(DropReason::GroupDuplicate);
        }
        let reason = match claim {
            Claim::Refused(owner) => return self.clear.refuse_claim(now, header.source, owner, out),
            Claim::Noted(_) => DropReason::Downgrade,
            Claim::Nothing => refused,
        };
        let passed = (reason, Glimpse::of(frame.bytes));
        self.clear.excuse(now, header.source, passed, &mut self.ledger, out.requests);
        if let Some(association) = self.senders.association(header.source).filter(|_| is_sealed) {
            self.clear.hear_plain(now, (header.source, association), &mut self.activities, out.requests);
        }
        out.forward(Side::STACK, frame)
    }

    /// A frame of our stack that is not carried under a seal: in clear where the mode allows it.
    pub(super) fn outbound_uncarried(
        &mut self,
        header: &Header,
        frame: &Frame<'_>,
        reason: DropReason,
        out: &mut Outputs<'_>,
    ) -> Fate {
        let rules = &self.clear.rules;
        let is_lenient = match header.destination.is_group() {
            true => rules.is_lenient_to_groups(),
            false => rules.is_lenient_towards(header.destination),
        };
        if reason == DropReason::Malformed || !is_lenient {
            return Fate::Dropped(reason);
        }
        self.ledger.excuse(reason);
        out.send_in_clear(header, frame)
    }

    /// Whether a frame of our stack to one host leaves in clear.
    pub(super) fn leaves_in_clear(
        &mut self,
        now: Now,
        header: &Header,
        frame: &Frame<'_>,
        out: &mut Outputs<'_>,
    ) -> bool {
        let has_key = self.senders.knows(header.destination);
        self.clear.answers_manager(header, frame.bytes, has_key)
            || (!has_key && self.clear.goes_to(now, header.destination, out.requests))
    }

    /// Frames to this host go in clear from now on, first those that wait.
    pub(super) fn go_in_clear(&mut self, now: Now, mac: MacAddress, ask_after: Duration, out: &mut Outputs<'_>) {
        if self.senders.knows(mac) || !self.clear.go_to(now, mac, ask_after) {
            return;
        }
        for held in self.hold.take(mac) {
            let fate = if sink::copy(out.sink, Side::WIRE, &held.bytes, held.meta) {
                Fate::Forwarded
            } else {
                Fate::Dropped(DropReason::PortFull)
            };
            self.ledger.release(now.since_boot, Side::STACK, fate, &held.bytes);
        }
    }
}
