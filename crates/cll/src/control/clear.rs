//! Questions, answers and hosts in clear, where the mode of migration lets them pass (paper, section 7.1).
//!
//! A question of our stack opens a handshake as ever. In mode `observe` it goes out in clear beside it, in mode `prefer` only
//! when nobody has proved himself within a moment; so a proof always comes first where there is one. What comes in clear is handed
//! to the stack unless it speaks for a host that has proved itself and never falls back.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bump::{DropReason, Fate, Instant, LaneId, Side, time};
use identity::certificate::HostCertificate;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;

use super::associations::Associations;
use super::core::Call;
use super::discovery::Addresses;
use super::machines::Machine;
use crate::event::{EndCause, Event};
use crate::glimpse::Glimpse;
use crate::limits::{
    ASK_AGAIN, ASK_AGAIN_UNASKED, CLEAR_ANSWER_MAX, CLEAR_ASKERS_MAX, CLEAR_WAITING_MAX, DOWNGRADE_TOLD_EVERY,
    FALL_BACK_AFTER, SWEEP_INTERVAL,
};
use crate::message::{OrderKind, PlainWord};
use crate::migration::{Claim, Migration};
use crate::origin::{Claims, Origin, Passage};

/// What control knows about frames in clear.
#[derive(Default)]
pub(super) struct Clear {
    /// Questions of our stack that go out in clear at this moment unless somebody proves himself before.
    questions: BTreeMap<IpAddr, (Instant, Vec<u8>)>,
    /// Hosts to which frames go in clear from this moment on unless they prove themselves before.
    hosts: BTreeMap<MacAddress, Instant>,
    /// Who asked our stack in clear, and until when he is answered so.
    askers: BTreeMap<MacAddress, Instant>,
    /// When an operator last heard of ARP in the name of a host that has proved itself.
    downgrades_told: BTreeMap<MacAddress, Instant>,
}

impl Clear {
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

impl Clear {
    /// The host with this certificate proves who it is: nothing waits for that any longer, and it
    /// is remembered.
    pub(super) fn on_proof(&mut self, call: &mut Call<'_>, addresses: &Addresses, certificate: &HostCertificate) {
        let (now, mac) = (call.now.since_boot, certificate.mac());
        self.questions.retain(|ip, _| !addresses.has(now, certificate, *ip));
        self.hosts.remove(&mac);
        call.remember_proof(certificate);
    }

    /// Our stack has asked, and a handshake for it is open or could not be opened.
    pub(super) fn ask(
        &mut self,
        call: &mut Call<'_>,
        addresses: &Addresses,
        target: IpAddr,
        frame: &[u8],
        opened: Result<(), DropReason>,
    ) -> Fate {
        let asked_mac = Header::parse(frame).ok().map(|(header, _)| header.destination).filter(|mac| !mac.is_group());
        let Some(wait) = addresses.wait(call, Some(target), asked_mac) else {
            return opened.map_or_else(Fate::Dropped, |()| Fate::Consumed);
        };
        if wait.is_zero() || opened.is_err() || self.questions.len() >= CLEAR_WAITING_MAX {
            return call.pass(Side::WIRE, frame);
        }
        let due = call.now.since_boot + wait;
        self.questions.entry(target).or_insert((due, frame.to_vec()));
        Fate::Consumed
    }

    /// Frames wait in `lane` for a host to which a handshake is open or could not be opened.
    /// Without one nothing would ever release them.
    pub(super) fn on_wanted(
        &mut self,
        call: &mut Call<'_>,
        lane: LaneId,
        (mac, wait): (MacAddress, Option<Duration>),
        opened: Result<(), DropReason>,
    ) {
        match wait {
            None if opened.is_err() => call.order(lane.0, OrderKind::GiveUp(mac)),
            None => {}
            Some(_) if opened.is_err() => call.order_all(|| OrderKind::InClear(mac, ASK_AGAIN_UNASKED)),
            Some(wait) if wait.is_zero() || self.hosts.len() >= CLEAR_WAITING_MAX => go_in_clear(call, mac),
            Some(wait) => _ = self.hosts.entry(mac).or_insert(call.now.since_boot + wait),
        }
    }

    /// The fate of an ARP frame that came in clear.
    pub(super) fn on_plain_arp(&mut self, call: &mut Call<'_>, others: &mut Others<'_>, frame: &[u8]) -> Fate {
        let Ok((header, message)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let Ok(arp) = Arp::parse(message) else { return Fate::Dropped(DropReason::BadArp) };
        let judged = self.judge_plain_arp(call, others, &header, &arp);
        let asks = arp.operation == Operation::Request && others.is_ours(call, arp.target_ip);
        self.let_in(call, others, (header.source, asks), judged, frame)
    }

    /// For which reason mode `enforce` would drop it, if for any, or why it is dropped.
    fn judge_plain_arp(
        &mut self,
        call: &mut Call<'_>,
        others: &Others<'_>,
        header: &Header,
        arp: &Arp,
    ) -> Result<Option<DropReason>, DropReason> {
        let is_announcement = arp.sender_ip == arp.target_ip;
        if header.destination.is_group() && !is_announcement && !others.is_ours(call, arp.target_ip) {
            return Err(DropReason::ArpTarget);
        }
        if others.is_ours(call, arp.sender_ip) {
            return Err(DropReason::ArpConflict);
        }
        let is_its_own =
            arp.sender_mac == header.source && others.speaks_for_itself(call, header.source, arp.sender_ip.into());
        if header.destination.is_group() && is_announcement && is_its_own && others.sign_groups(call, header.source) {
            return Err(DropReason::GroupDuplicate);
        }
        let manager = call.core.rules.policy.management_by_mac(header.source);
        if manager.is_some_and(|manager| arp.sender_mac == manager.mac && arp.sender_ip == manager.ip) {
            return Ok(None);
        }
        if !call.core.rules.is_lenient_towards(header.source) {
            return Err(DropReason::PlainArp);
        }
        let sender_ip = (!arp.sender_ip.is_unspecified()).then_some(arp.sender_ip.into());
        match call.core.rules.claim(&[header.source, arp.sender_mac], sender_ip) {
            Claim::Refused(owner) => {
                self.tell_downgrade(call, header.source, owner);
                Err(DropReason::Downgrade)
            }
            Claim::Noted(_) => Ok(Some(DropReason::Downgrade)),
            // Whoever can prove himself goes first, or the quickest liar would be believed.
            Claim::Nothing if self.questions.contains_key(&arp.sender_ip.into()) => Err(DropReason::PlainArp),
            Claim::Nothing => Ok(Some(DropReason::PlainArp)),
        }
    }

    /// The fate of a neighbour solicitation or advertisement that came in clear.
    pub(super) fn on_plain_neighbour(&mut self, call: &mut Call<'_>, others: &mut Others<'_>, frame: &[u8]) -> Fate {
        let Ok((header, _)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let claims = match Origin::of_stranger(header.source).check(frame) {
            Ok(Passage::Ipv6(claims)) => claims,
            Ok(Passage::Free) => Claims::default(),
            Err(reason) => return Fate::Dropped(reason),
        };
        let judged = self.judge_plain_neighbour(call, others, &header, &claims);
        let asks = claims.source.is_some() && claims.target.is_none();
        self.let_in(call, others, (header.source, asks), judged.map(Some), frame)
    }

    /// Hands the stack what may pass in clear, perhaps for a reason for which mode `enforce` would
    /// drop it. Who asks our stack is answered in clear, too.
    fn let_in(
        &mut self,
        call: &mut Call<'_>,
        others: &mut Others<'_>,
        (mac, asks): (MacAddress, bool),
        judged: Result<Option<DropReason>, DropReason>,
        frame: &[u8],
    ) -> Fate {
        match judged {
            Err(reason) => return Fate::Dropped(reason),
            Ok(excused) => excused.into_iter().for_each(|reason| excuse(call, others, mac, (reason, frame))),
        }
        if asks {
            self.add_asker(call.now.since_boot, mac);
        }
        call.pass(Side::STACK, frame)
    }

    /// For which reason mode `enforce` would drop it, or why it is dropped.
    fn judge_plain_neighbour(
        &mut self,
        call: &mut Call<'_>,
        others: &Others<'_>,
        header: &Header,
        claims: &Claims,
    ) -> Result<DropReason, DropReason> {
        let mac = header.source;
        let claimed: Vec<Ipv6Addr> = [claims.source, claims.target].into_iter().flatten().collect();
        if claimed.iter().any(|address| others.addresses.is_own(*address)) {
            return Err(DropReason::AddressTaken);
        }
        let is_announcement = header.destination.is_group() && (claims.target.is_some() || claims.question.is_some());
        let is_its_own = claimed.iter().all(|address| others.speaks_for_itself(call, mac, (*address).into()));
        if is_announcement && is_its_own && others.sign_groups(call, mac) {
            return Err(DropReason::GroupDuplicate);
        }
        let mut reason = DropReason::Unsealed;
        for address in claimed {
            let holder = others.addresses.proved_holder(call, address.into()).unwrap_or(mac);
            match call.core.rules.claim(&[mac, holder], Some(address.into())) {
                Claim::Refused(owner) => {
                    self.tell_downgrade(call, mac, owner);
                    return Err(DropReason::Downgrade);
                }
                Claim::Noted(_) => reason = DropReason::Downgrade,
                // Whoever can prove himself goes first, as with ARP.
                Claim::Nothing if self.questions.contains_key(&address.into()) => {
                    return Err(DropReason::Unsealed);
                }
                Claim::Nothing => {}
            }
        }
        Ok(reason)
    }

    /// An operator hears now and then that somebody spoke in clear for a host that has proved
    /// itself.
    pub(super) fn tell_downgrade(&mut self, call: &mut Call<'_>, mac: MacAddress, owner: MacAddress) {
        let now = call.now.since_boot;
        let told = self.downgrades_told.get(&owner);
        if told.is_none_or(|at| now.since(*at) >= DOWNGRADE_TOLD_EVERY) {
            self.downgrades_told.retain(|_, at| now.since(*at) < DOWNGRADE_TOLD_EVERY);
            self.downgrades_told.insert(owner, now);
            tell(call, PlainWord::Refused { mac, owner });
        }
    }
}

impl Machine for Clear {
    fn deadline(&self) -> Option<Instant> {
        let questions = self.questions.values().map(|(at, _)| *at).min();
        time::earlier(questions, self.hosts.values().copied().min())
    }

    /// Nobody has proved himself in time: what waited for that goes out in clear.
    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        let now = call.now.since_boot;
        for (_, (_, frame)) in self.questions.extract_if(.., |_, (at, _)| *at <= now) {
            call.make(Side::WIRE, &frame);
        }
        let hosts: Vec<_> = self.hosts.extract_if(.., |_, at| *at <= now).map(|(mac, _)| mac).collect();
        hosts.into_iter().for_each(|mac| go_in_clear(call, mac));
        false
    }
}

/// What other machines know of a sender in clear.
pub(super) struct Others<'a> {
    pub(super) addresses: &'a Addresses,
    pub(super) associations: &'a mut Associations,
    /// Whether the sender has proved itself as a sender to groups.
    pub(super) is_group_sender: bool,
    /// The address that this host has by a lease in clear.
    pub(super) unproved_address: Option<Ipv4Addr>,
}

impl Others<'_> {
    fn is_ours(&self, call: &Call<'_>, ip: Ipv4Addr) -> bool {
        call.core.settings.identity.certificate().addresses().contains(&ip) || self.unproved_address == Some(ip)
    }

    /// Whether no other host than this one has proved that it has the address.
    fn speaks_for_itself(&self, call: &Call<'_>, mac: MacAddress, ip: IpAddr) -> bool {
        let is_anothers = self.addresses.proved_holder(call, ip).is_some_and(|holder| holder != mac);
        !is_anothers && call.core.rules.claim_of_address(mac, Some(ip)) == Claim::Nothing
    }

    /// Whether this host's group frames come signed, so that their copies in clear need not be heard. One that has fallen back signs
    /// nothing.
    fn sign_groups(&self, call: &Call<'_>, mac: MacAddress) -> bool {
        let rules = &call.core.rules;
        let never_falls_back = rules.towards(mac) != Migration::Observe;
        let is_proved = rules.proved.contains(mac) && (never_falls_back || self.is_group_sender);
        call.core.settings.broadcasting.carried && (is_proved || self.associations.peers.current_by_mac(mac).is_some())
    }
}

fn go_in_clear(call: &mut Call<'_>, mac: MacAddress) {
    call.order_all(|| OrderKind::InClear(mac, ASK_AGAIN));
}

/// Counts what came in clear; frames for its sender go in clear from now on, unless it has a key or
/// may not.
fn excuse(call: &mut Call<'_>, others: &mut Others<'_>, mac: MacAddress, (reason, frame): (DropReason, &[u8])) {
    call.note_plain(mac, reason, Glimpse::of(frame));
    if others.associations.peers.current_by_mac(mac).is_some() {
        // What lanes have opened may not be told yet.
        on_peer_in_clear(call, others.associations, mac, FALL_BACK_AFTER + SWEEP_INTERVAL);
    } else if !call.core.rules.proved.contains(mac) {
        go_in_clear(call, mac);
    }
}

/// A peer spoke in clear. In mode `observe`, one that does nothing else for so long has fallen back.
pub(super) fn on_peer_in_clear(
    call: &mut Call<'_>,
    associations: &mut Associations,
    mac: MacAddress,
    fallen_after: Duration,
) {
    if call.core.rules.towards(mac) != Migration::Observe {
        return;
    }
    let silence = associations.peers.speaks_in_clear(call.now.since_boot, mac);
    if silence.is_some_and(|time| time >= fallen_after) {
        associations.end_current(call, mac, EndCause::FellBack);
        go_in_clear(call, mac);
    }
}

/// What an operator should hear. Who says it keeps to the limits.
pub(super) fn tell(call: &mut Call<'_>, word: PlainWord) {
    let event = match word {
        PlainWord::Passed { mac, reason } => Some(Event::Plain { mac, reason }),
        PlainWord::Refused { mac, owner } => {
            let name = call.core.rules.proved.name(owner).unwrap_or("a host forgotten since").to_owned();
            Some(Event::Downgrade { mac, name, owner })
        }
        PlainWord::Management { mac } => {
            let manager = call.core.rules.policy.management_by_mac(mac);
            manager.map(|manager| Event::Management { mac, ip: manager.ip })
        }
    };
    event.into_iter().for_each(|event| call.out.event(event));
}
