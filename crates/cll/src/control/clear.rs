//! Questions, answers and hosts in clear, where the mode of migration lets them pass (paper, section 7.1).
//!
//! A question of our stack opens a handshake as ever. In mode `observe` it goes out in clear beside it, in mode `prefer` only
//! when nobody has proved himself within a moment; so a proof always comes first where there is one. What comes in clear is handed
//! to the stack unless it speaks for a host that has proved itself and never falls back.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, LaneId, Meta, Outbox, Side, sink, time};
use identity::certificate::HostCertificate;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;

use super::peers::Association;
use super::stack::forward_in_clear;
use super::{Call, Control};
use crate::event::{Effect, EndCause, Event};
use crate::limits::{
    CLEAR_ANSWER_MAX, CLEAR_ASKERS_MAX, CLEAR_WAITING_MAX, DOWNGRADE_TOLD_EVERY, FALL_BACK_AFTER, HANDSHAKE_GIVE_UP,
    LENIENT_GIVE_UP, PROVED_MAX,
};
use crate::message::{OrderKind, PlainWord};
use crate::migration::{Claim, Migration, Policy, ProvedHost, Rules, is_contradiction};
use crate::observed::PlainHosts;
use crate::origin::{Claims, Origin, Passage};

/// What control knows about frames in clear.
#[derive(Default)]
pub(super) struct Clear {
    pub(super) rules: Arc<Rules>,
    /// Questions of our stack that go out in clear at this moment unless somebody proves himself before.
    questions: BTreeMap<IpAddr, (Instant, Vec<u8>)>,
    /// Hosts to which frames go in clear from this moment on unless they prove themselves before.
    hosts: BTreeMap<MacAddress, Instant>,
    /// Who asked our stack in clear, and until when he is answered so.
    askers: BTreeMap<MacAddress, Instant>,
    pub(super) observed: PlainHosts,
    /// When each host proved itself last; at most [`PROVED_MAX`].
    proved_at: BTreeMap<MacAddress, Instant>,
    /// When an operator last heard of ARP in the name of a host that has proved itself.
    downgrades_told: BTreeMap<MacAddress, Instant>,
}

impl Clear {
    pub(super) fn new(rules: Arc<Rules>) -> Clear {
        Clear { rules, ..Clear::default() }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let questions = self.questions.values().map(|(at, _)| *at).min();
        time::earlier(questions, self.hosts.values().copied().min())
    }

    fn note_proof_of(&mut self, now: Instant, mac: MacAddress) {
        self.observed.remove(mac);
        if self.proved_at.len() < PROVED_MAX || self.proved_at.contains_key(&mac) {
            self.proved_at.insert(mac, now);
        }
    }

    /// Whether the host has proved itself since it was last heard in clear, and so speaks in clear no more.
    pub(super) fn is_proved_since(&self, mac: MacAddress, heard: Instant) -> bool {
        self.proved_at.get(&mac).is_some_and(|at| *at >= heard)
    }

    fn add_asker(&mut self, now: Instant, mac: MacAddress) {
        self.askers.retain(|_, until| *until > now);
        if self.askers.len() < CLEAR_ASKERS_MAX {
            self.askers.insert(mac, now + CLEAR_ANSWER_MAX);
        }
    }

    /// Whether this host asked in clear a moment ago and has not been answered.
    pub(super) fn take_asker(&mut self, now: Instant, mac: MacAddress) -> bool {
        self.askers.remove(&mac).is_some_and(|until| until > now)
    }
}

/// What is let pass, and how it is to be counted.
enum Pass {
    /// A manager's machine speaks for itself.
    Management,
    /// Mode `enforce` would drop it for this reason.
    Excused(DropReason),
}

impl Control {
    /// The operator decided otherwise.
    pub(crate) fn set_policy(&mut self, policy: Policy, out: &mut Outbox<Self>) {
        let proved = self.clear.rules.proved.clone();
        self.change_rules(Rules { policy, proved }, out);
    }

    /// The operator has a host forgotten: it may fall back now.
    pub(crate) fn forget(&mut self, mac: MacAddress, out: &mut Outbox<Self>) {
        let mut rules = (*self.clear.rules).clone();
        if rules.proved.forget(mac) {
            self.clear.proved_at.remove(&mac);
            self.change_rules(rules, out);
        }
    }

    fn change_rules(&mut self, rules: Rules, out: &mut Outbox<Self>) {
        self.clear.observed.retain(|mac| rules.is_lenient_towards(mac));
        self.clear.rules = Arc::new(rules);
        for lane in 0..self.settings.lanes {
            let order = crate::message::Order(OrderKind::Rules(Arc::clone(&self.clear.rules)));
            if out.orders.push((LaneId(lane), order)).is_err() {
                out.overflowed += 1;
            }
        }
    }

    /// This association proves who its peer is: nothing waits for that any longer, and it is remembered.
    pub(super) fn note_proof(&mut self, call: &mut Call<'_>, association: &Association) {
        let certificate = &association.certificate;
        let (now, mac, neighbours) = (call.now.since_boot, certificate.mac(), &self.neighbours);
        self.clear.questions.retain(|ip, _| match ip {
            IpAddr::V4(ip) => !certificate.addresses().contains(ip),
            IpAddr::V6(ip) => neighbours.holder(now, *ip) != Some(mac),
        });
        self.clear.hosts.remove(&mac);
        self.remember_proof(call, certificate);
    }

    /// The host with this certificate has proved itself, by a handshake or as a sender to groups.
    pub(super) fn remember_proof(&mut self, call: &mut Call<'_>, certificate: &HostCertificate) {
        self.clear.note_proof_of(call.now.since_boot, certificate.mac());
        let addresses = certificate.addresses().iter().copied().map(IpAddr::V4);
        let addresses = addresses.chain(certificate.ipv6_addresses().iter().copied().map(IpAddr::V6)).collect();
        let host = ProvedHost { name: certificate.name().to_owned(), mac: certificate.mac(), addresses };
        if !self.clear.rules.proved.would_take(&host) {
            return;
        }
        let mut rules = (*self.clear.rules).clone();
        rules.proved.enter(host.clone());
        self.change_rules(rules, call.out);
        call.out.effect(Effect::Remember(host));
    }

    /// How long a handshake is tried. Where most do not speak CLL yet it makes room sooner, and its end is no news.
    pub(super) fn patience(&self, now: Instant, ip: Option<IpAddr>, mac: Option<MacAddress>) -> Duration {
        if self.wait(now, ip, mac).is_some() { LENIENT_GIVE_UP } else { HANDSHAKE_GIVE_UP }
    }

    /// How long this is kept back for a proof; `None` if it never goes out in clear.
    fn wait(&self, now: Instant, ip: Option<IpAddr>, mac: Option<MacAddress>) -> Option<Duration> {
        let rules = &self.clear.rules;
        // An address that a proved host made itself is in no certificate.
        let mac = mac.or_else(|| self.proved_holder(now, ip?));
        match (ip, mac) {
            (Some(ip), Some(mac)) => Some(rules.wait_for_address(ip)?.max(rules.wait_for_host(mac)?)),
            (Some(ip), None) => rules.wait_for_address(ip),
            (None, Some(mac)) => rules.wait_for_host(mac),
            (None, None) => None,
        }
    }

    /// Our stack has asked, and a handshake for it is open or could not be opened.
    pub(super) fn ask_in_clear(
        &mut self,
        call: &mut Call<'_>,
        target: IpAddr,
        frame: &[u8],
        opened: Result<(), DropReason>,
    ) -> Fate {
        let asked_mac = Header::parse(frame).ok().map(|(header, _)| header.destination).filter(|mac| !mac.is_group());
        let Some(wait) = self.wait(call.now.since_boot, Some(target), asked_mac) else {
            return opened.map_or_else(Fate::Dropped, |()| Fate::Consumed);
        };
        let at_once = wait.is_zero() || opened.is_err() || self.clear.questions.len() >= CLEAR_WAITING_MAX;
        if at_once {
            return forward_in_clear(call, frame);
        }
        let due = call.now.since_boot + wait;
        self.clear.questions.entry(target).or_insert((due, frame.to_vec()));
        Fate::Consumed
    }

    /// Frames wait in `lane` for a host. Without a handshake nothing would ever release them.
    pub(super) fn open_for_lane(&mut self, call: &mut Call<'_>, lane: LaneId, mac: MacAddress) {
        if self.peers.current_by_mac(mac).is_some_and(Association::is_bare) {
            // They wait for ML-KEM. Its end, good or not, releases them.
            return;
        }
        let opened = self.open_for_mac(call, mac);
        match self.wait(call.now.since_boot, None, Some(mac)) {
            None if opened.is_err() => call.order(lane.0, OrderKind::GiveUp(mac)),
            None => {}
            Some(wait) if wait.is_zero() || opened.is_err() || self.clear.hosts.len() >= CLEAR_WAITING_MAX => {
                self.go_in_clear(call, mac);
            }
            Some(wait) => _ = self.clear.hosts.entry(mac).or_insert(call.now.since_boot + wait),
        }
    }

    fn go_in_clear(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        for lane in 0..self.settings.lanes {
            call.order(lane, OrderKind::InClear(mac));
        }
    }

    /// Nobody has proved himself in time: what waited for that goes out in clear.
    pub(super) fn send_unproved(&mut self, call: &mut Call<'_>) {
        let now = call.now.since_boot;
        let questions = self.clear.questions.extract_if(.., |_, (at, _)| *at <= now);
        for (_, (_, frame)) in questions {
            if sink::copy(call.sink, Side::WIRE, &frame, Meta::plain()) {
                self.ledger.make(Side::WIRE);
            }
        }
        let hosts: Vec<MacAddress> = self.clear.hosts.extract_if(.., |_, at| *at <= now).map(|(mac, _)| mac).collect();
        hosts.into_iter().for_each(|mac| self.go_in_clear(call, mac));
    }

    /// ARP, neighbour discovery or a group frame of our stack that does not go with CLL: in clear where the mode lets
    /// everything pass.
    pub(super) fn uncarried(&mut self, call: &mut Call<'_>, frame: &[u8], reason: DropReason) -> Fate {
        if !self.clear.rules.is_lenient_to_groups() {
            return Fate::Dropped(reason);
        }
        self.ledger.excuse(reason);
        forward_in_clear(call, frame)
    }

    /// The fate of an ARP frame that came in clear.
    pub(super) fn plain_arp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, message)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let Ok(arp) = Arp::parse(message) else { return Fate::Dropped(DropReason::BadArp) };
        match self.judge_plain_arp(call, &header, &arp) {
            Err(reason) => return Fate::Dropped(reason),
            Ok(Pass::Management) => {}
            Ok(Pass::Excused(reason)) => self.excuse(call, header.source, reason),
        }
        if arp.operation == Operation::Request && self.is_ours(arp.target_ip) {
            self.clear.add_asker(call.now.since_boot, header.source);
        }
        if sink::copy(call.sink, Side::STACK, frame, Meta::plain()) {
            Fate::Forwarded
        } else {
            Fate::Dropped(DropReason::PortFull)
        }
    }

    fn judge_plain_arp(&mut self, call: &mut Call<'_>, header: &Header, arp: &Arp) -> Result<Pass, DropReason> {
        let is_announcement = arp.sender_ip == arp.target_ip;
        if header.destination.is_group() && !is_announcement && !self.is_ours(arp.target_ip) {
            return Err(DropReason::ArpTarget);
        }
        if self.is_ours(arp.sender_ip) {
            return Err(DropReason::ArpConflict);
        }
        let is_its_own =
            arp.sender_mac == header.source && self.speaks_for_itself(call, header.source, arp.sender_ip.into());
        if header.destination.is_group() && is_announcement && is_its_own && self.signs_groups(header.source) {
            return Err(DropReason::GroupDuplicate);
        }
        let manager = self.clear.rules.policy.management_by_mac(header.source);
        if manager.is_some_and(|manager| arp.sender_mac == manager.mac && arp.sender_ip == manager.ip) {
            return Ok(Pass::Management);
        }
        if !self.clear.rules.is_lenient_towards(header.source) {
            return Err(DropReason::PlainArp);
        }
        let sender_ip = (!arp.sender_ip.is_unspecified()).then_some(arp.sender_ip.into());
        match self.clear.rules.claim(&[header.source, arp.sender_mac], sender_ip) {
            Claim::Refused(owner) => {
                self.tell_downgrade(call, header.source, owner);
                Err(DropReason::Downgrade)
            }
            Claim::Noted(_) => Ok(Pass::Excused(DropReason::Downgrade)),
            // Whoever can prove himself goes first, or the quickest liar would be believed.
            Claim::Nothing if self.clear.questions.contains_key(&arp.sender_ip.into()) => Err(DropReason::PlainArp),
            Claim::Nothing => Ok(Pass::Excused(DropReason::PlainArp)),
        }
    }

    /// The fate of a neighbour solicitation or advertisement that came in clear.
    pub(super) fn plain_neighbour(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, _)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let claims = match Origin::of_stranger(header.source).check(frame) {
            Ok(Passage::Ipv6(claims)) => claims,
            Ok(Passage::Free) => Claims::default(),
            Err(reason) => return Fate::Dropped(reason),
        };
        match self.judge_plain_neighbour(call, &header, &claims) {
            Err(reason) => return Fate::Dropped(reason),
            Ok(reason) => self.excuse(call, header.source, reason),
        }
        if claims.source.is_some() && claims.target.is_none() {
            self.clear.add_asker(call.now.since_boot, header.source);
        }
        if sink::copy(call.sink, Side::STACK, frame, Meta::plain()) {
            Fate::Forwarded
        } else {
            Fate::Dropped(DropReason::PortFull)
        }
    }

    /// For which reason mode `enforce` would drop it, or why it is dropped.
    fn judge_plain_neighbour(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        claims: &Claims,
    ) -> Result<DropReason, DropReason> {
        let (now, mac) = (call.now.since_boot, header.source);
        let claimed: Vec<Ipv6Addr> = [claims.source, claims.target].into_iter().flatten().collect();
        if claimed.iter().any(|address| self.neighbours.is_own(*address)) {
            return Err(DropReason::AddressTaken);
        }
        let is_announcement = header.destination.is_group() && (claims.target.is_some() || claims.question.is_some());
        let is_its_own = claimed.iter().all(|address| self.speaks_for_itself(call, mac, (*address).into()));
        if is_announcement && is_its_own && self.signs_groups(mac) {
            return Err(DropReason::GroupDuplicate);
        }
        let mut reason = DropReason::Unsealed;
        for address in claimed {
            let holder = self.proved_holder(now, address.into()).unwrap_or(mac);
            match self.clear.rules.claim(&[mac, holder], Some(address.into())) {
                Claim::Refused(owner) => {
                    self.tell_downgrade(call, mac, owner);
                    return Err(DropReason::Downgrade);
                }
                Claim::Noted(_) => reason = DropReason::Downgrade,
                // Whoever can prove himself goes first, as with ARP.
                Claim::Nothing if self.clear.questions.contains_key(&address.into()) => {
                    return Err(DropReason::Unsealed);
                }
                Claim::Nothing => {}
            }
        }
        Ok(reason)
    }

    /// The proved host that has an IPv6 address.
    fn proved_holder(&self, now: Instant, ip: IpAddr) -> Option<MacAddress> {
        let IpAddr::V6(address) = ip else { return None };
        self.neighbours.holder(now, address).filter(|mac| self.clear.rules.proved.contains(*mac))
    }

    /// Whether no other host than this one has proved that it has the address.
    fn speaks_for_itself(&self, call: &Call<'_>, mac: MacAddress, ip: IpAddr) -> bool {
        let is_anothers = self.proved_holder(call.now.since_boot, ip).is_some_and(|holder| holder != mac);
        !is_anothers && self.clear.rules.claim_of_address(mac, Some(ip)) == Claim::Nothing
    }

    /// Whether this host's group frames come signed, so that their copies in clear need not be heard. One that has fallen back signs
    /// nothing.
    fn signs_groups(&self, mac: MacAddress) -> bool {
        let never_falls_back = self.clear.rules.towards(mac) != Migration::Observe;
        let is_proved =
            self.clear.rules.proved.contains(mac) && (never_falls_back || self.name_of_group_sender(mac).is_some());
        self.settings.broadcasting.carried && (is_proved || self.peers.current_by_mac(mac).is_some())
    }

    /// Whether group frames of our stack leave in clear beside the signed ones. A stack's tag would lead into another network.
    pub(super) fn copies_groups_in_clear(&self, header: &Header) -> bool {
        self.clear.rules.is_lenient_to_groups() && !header.ethertype.is_vlan()
    }

    /// What contradicts the certificate of a proved host: only noted where everything is.
    pub(super) fn excuse_insider(
        &mut self,
        call: &mut Call<'_>,
        mac: MacAddress,
        admitted: Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let Err(reason) = admitted else { return Ok(()) };
        if !is_contradiction(reason) || self.clear.rules.towards(mac) != Migration::Observe {
            return Err(reason);
        }
        self.note_excused(call, mac, reason);
        Ok(())
    }

    /// Counts what mode `enforce` would have dropped, and tells an operator now and then.
    pub(super) fn note_excused(&mut self, call: &mut Call<'_>, mac: MacAddress, reason: DropReason) {
        self.ledger.excuse(reason);
        if self.clear.observed.note(call.now.since_boot, mac, reason) {
            call.out.event(Event::Plain { mac, reason });
        }
    }

    fn is_ours(&self, ip: Ipv4Addr) -> bool {
        self.settings.identity.certificate().addresses().contains(&ip) || self.dhcp.unproved_address() == Some(ip)
    }

    /// Counts what came in clear; frames for its sender go in clear from now on, unless it has a key or may not.
    fn excuse(&mut self, call: &mut Call<'_>, mac: MacAddress, reason: DropReason) {
        self.note_excused(call, mac, reason);
        if self.peers.current_by_mac(mac).is_some() {
            self.hear_plain(call, mac);
        } else if !self.clear.rules.proved.contains(mac) {
            self.go_in_clear(call, mac);
        }
    }

    /// A peer spoke in clear. In mode `observe`, one that does nothing else for a while has fallen back.
    pub(super) fn hear_plain(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        if self.clear.rules.towards(mac) != Migration::Observe {
            return;
        }
        let now = call.now.since_boot;
        if self.peers.speaks_in_clear(now, mac).is_some_and(|time| time >= FALL_BACK_AFTER) {
            self.end_current(call, mac, EndCause::FellBack);
            self.go_in_clear(call, mac);
        }
    }

    pub(super) fn tell_downgrade(&mut self, call: &mut Call<'_>, mac: MacAddress, owner: MacAddress) {
        let now = call.now.since_boot;
        let told = self.clear.downgrades_told.get(&owner);
        if told.is_none_or(|at| now.since(*at) >= DOWNGRADE_TOLD_EVERY) {
            self.clear.downgrades_told.retain(|_, at| now.since(*at) < DOWNGRADE_TOLD_EVERY);
            self.clear.downgrades_told.insert(owner, now);
            self.word(call, PlainWord::Refused { mac, owner });
        }
    }

    /// What an operator should hear. Who says it keeps to the limits.
    pub(super) fn word(&mut self, call: &mut Call<'_>, word: PlainWord) {
        let event = match word {
            PlainWord::Passed { mac, reason } => Some(Event::Plain { mac, reason }),
            PlainWord::Refused { mac, owner } => {
                let name = self.clear.rules.proved.name(owner).unwrap_or("a host forgotten since").to_owned();
                Some(Event::Downgrade { mac, name, owner })
            }
            PlainWord::Management { mac } => {
                let manager = self.clear.rules.policy.management_by_mac(mac);
                manager.map(|manager| Event::Management { mac, ip: manager.ip })
            }
        };
        event.into_iter().for_each(|event| call.out.event(event));
    }
}
