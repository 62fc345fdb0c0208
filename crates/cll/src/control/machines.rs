//! Which machine of control each message, each end of a job and each deadline belongs to.
//!
//! A machine may look at others that it is handed, and says by a [`Wish`] what it wants of them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bump::{DropReason, Fate, Generator, Instant, LaneId, Now, Side, Torn, sink};
use identity::policy::SitePolicy;
use identity::revocation::RevocationList;
use identity::{HostIdentity, Verified};
use wire::MacAddress;
use wire::cll::PacketType;
use wire::cll::resumption::GRANT_FIRST_BYTE;
use wire::cll::revocation::{Message as ListMessage, Subject};
use wire::ethernet::Header;

use super::associations::Associations;
use super::broadcast::{Broadcasts, Judges};
use super::clear::{self, Clear, Others};
use super::core::Call;
use super::dhcp::Dhcp;
use super::discovery::Addresses;
use super::freshness::Freshness;
use super::initiator::{Known, Openings};
use super::lists::Lists;
use super::peers::{Association, Born};
use super::responder::{Answers, Around};
use super::resumption::Resumptions;
use super::rollover::{Rollovers, Sealed};
use super::{PeerReport, Task};
use crate::event::{EndCause, Event};
use crate::job::CompletionKind;
use crate::keys::SendKey;
use crate::limits::{FALL_BACK_AFTER, SPREAD_TO_MAX};
use crate::message::{AssociationId, Claim, OrderKind, Request};
use crate::revocation::Revoked;
use crate::settings::Settings;

/// A part of control that does something when its time has come.
pub(super) trait Machine {
    /// When something is due next.
    fn deadline(&self) -> Option<Instant>;

    /// Does what is due, within `budget`; true if it did one thing, and more may be due.
    fn tick(&mut self, call: &mut Call<'_>, budget: usize) -> bool;
}

/// What a machine wants of others. It is fulfilled when the machine has done its part.
pub(super) enum Wish {
    /// The peer is owed a sign of life.
    SignOfLife(MacAddress),
    /// The peer has no ticket of its association.
    Ticket(MacAddress),
    /// The association is to have a secret of ML-KEM.
    Kem(MacAddress),
    /// The association is old.
    Rollover(MacAddress),
    /// The host is to prove itself by a handshake.
    Handshake(MacAddress),
    /// The same, if this is still its association in use.
    HandshakeInstead(MacAddress, AssociationId),
    /// An exchange that this host began is done: its association is complete from the start.
    Complete(Box<Born>),
    /// An exchange that the peer began is done, but for the first frame under the new keys.
    Candidate(Box<Born>),
    /// The host has not answered: an association with it that was in doubt is over.
    EndDoubted(MacAddress),
    /// Our stack does not answer for this address of its own.
    ForgetOwn(IpAddr),
    /// This host shows this identity from now on.
    Identity(Arc<HostIdentity>),
    /// The same, because it has this address by a lease.
    Leased(Arc<HostIdentity>, Ipv4Addr),
    /// The same, because its lease of this address is over.
    LeaseLost(Arc<HostIdentity>, Ipv4Addr),
    /// An operator should hear that somebody spoke in clear for a host that has proved itself.
    TellDowngrade { mac: MacAddress, owner: MacAddress },
}

/// How many machines there are.
const MACHINES: usize = 10;

/// All machines, in the order in which they do what is due.
macro_rules! machines {
    ($self:ident, $($borrow:tt)+) => {
        [
            $($borrow)+ $self.clear,
            $($borrow)+ $self.openings,
            $($borrow)+ $self.answers,
            $($borrow)+ $self.revocations,
            $($borrow)+ $self.policies,
            $($borrow)+ $self.rollovers,
            $($borrow)+ $self.broadcasts.sending,
            $($borrow)+ $self.broadcasts.receiving,
            $($borrow)+ $self.associations,
            $($borrow)+ $self.dhcp,
        ]
    };
}

/// The machines of control, each with a state of its own.
pub(super) struct Machines {
    pub(super) associations: Associations,
    pub(super) addresses: Addresses,
    pub(super) openings: Openings,
    pub(super) answers: Answers,
    pub(super) rollovers: Rollovers,
    pub(super) broadcasts: Broadcasts,
    pub(super) dhcp: Dhcp,
    pub(super) resumptions: Resumptions,
    pub(super) clear: Clear,
    pub(super) revocations: Lists,
    pub(super) policies: Lists,
}

impl Machines {
    pub(super) fn new(now: Now, settings: &Settings, random: &mut Generator) -> (Machines, Freshness) {
        let broadcasts = Broadcasts::new(random, now, settings);
        let freshness = Freshness::new(random, now, settings.clock_tolerance, &settings.heard);
        let machines = Machines {
            broadcasts,
            clear: Clear::default(),
            revocations: Lists::new(Subject::Revocations),
            policies: Lists::new(Subject::Policy),
            addresses: Addresses::new(settings.identity.certificate()),
            dhcp: Dhcp::new(now, settings, random.bytes()),
            associations: Associations::default(),
            openings: Openings::default(),
            answers: Answers::default(),
            rollovers: Rollovers::default(),
            resumptions: Resumptions::default(),
        };
        (machines, freshness)
    }

    pub(super) fn peer_reports(&self, now: Instant) -> Vec<PeerReport> {
        let mut reports = self.associations.peers.reports(now);
        reports.iter_mut().for_each(|report| report.ipv6_addresses = self.addresses.of_host(report.mac));
        reports
    }

    /// Nobody with a certificate on the new list is believed from now on, and what there is with
    /// them ends.
    pub(super) fn revoke(&mut self, call: &mut Call<'_>, list: Arc<Verified<RevocationList>>) {
        let revoked = Arc::new(Revoked::by(Some(list)));
        call.core.revoked = Arc::clone(&revoked);
        self.broadcasts.receiving.on_revocation(call, &mut self.addresses);
        self.resumptions.forget_of(call, |certificate| revoked.names(certificate));
        for mac in self.associations.peers.with_certificate(|certificate| revoked.names(certificate)) {
            self.addresses.forget_host(call, mac);
            self.associations.end_all(call, mac, EndCause::Revoked);
        }
        self.revocations.offer_to_all(call, &self.associations.peers);
    }

    /// This policy is in force: peers are told.
    pub(super) fn set_site_policy(&mut self, call: &mut Call<'_>, policy: Arc<Verified<SitePolicy>>) {
        call.core.site_policy = Some(policy);
        self.policies.offer_to_all(call, &self.associations.peers);
    }

    /// Opens handshakes with some hosts that have proved themselves before and are no peers now: an
    /// offer comes with the association. Every host to which something is news does so, so it
    /// reaches all in a few rounds, whoever talks with whom.
    pub(super) fn spread(&mut self, call: &mut Call<'_>) {
        let is_peer = |mac: MacAddress| self.associations.peers.current_by_mac(mac).is_some();
        let mut others: Vec<MacAddress> = call.core.rules.proved.macs().filter(|mac| !is_peer(*mac)).collect();
        for _ in 0..SPREAD_TO_MAX.min(others.len()) {
            let at = call.core.random.below(others.len() as u64) as usize;
            // Where no room is for a handshake, its peer hears of it from others.
            let _ = self.open_for_mac(call, others.swap_remove(at));
        }
    }

    /// Makes `association` the one in use, unless a simultaneous one goes first.
    pub(super) fn establish(&mut self, call: &mut Call<'_>, association: Association, send: Vec<SendKey>) {
        let (id, mac) = (association.id, association.certificate.mac());
        let before = self.associations.peers.get(mac);
        if before.is_some_and(|peer| peer.keeps_current_against(&association, call.core.settings.mac)) {
            return self.associations.retire(call, association);
        }
        self.associations.make_room(call, mac);
        self.addresses.learn_certificate(call, &association.certificate);
        if !association.is_quiet {
            call.out.event(association.established());
        }
        self.clear.on_proof(call, &self.addresses, &association.certificate);
        let carries_payload = !association.is_bare();
        self.rollovers.on_established(call, mac, id);
        self.associations.put_in_use(call, association, send);
        if let Some(current) = self.associations.peers.current_by_mac(mac) {
            self.openings.on_established(call, &self.addresses, &current.certificate);
        }
        if carries_payload {
            self.revocations.offer(call, mac);
            self.policies.offer(call, mac);
        }
    }

    /// This host shows another certificate from now on; true if that has other addresses. Peers see
    /// a newer certificate for the same addresses by a rollover (paper, section 5.4: "re-exchange
    /// their current certificates"). What there is under other addresses ends, and to groups it
    /// speaks as somebody new.
    fn change_identity(&mut self, call: &mut Call<'_>, identity: Arc<HostIdentity>) -> bool {
        let before = call.core.settings.identity.certificate().addresses();
        let moves = identity.certificate().addresses() != before;
        call.settle_identity(identity);
        self.addresses.on_identity(call);
        // A ticket names the certificate under which it was given; ours of before are refused by
        // that name.
        self.resumptions.forget_of(call, |_| true);
        let macs = self.associations.peers.macs();
        if moves {
            self.broadcasts.sending.on_other_addresses(call);
            self.openings.abandon(call);
            self.fulfil(call);
            self.answers.abandon(call);
            macs.into_iter().for_each(|mac| self.associations.end_all(call, mac, EndCause::OwnAddress));
        } else {
            // Where none can begin now, the association ends with the certificate that the peer
            // knows.
            macs.into_iter().for_each(|mac| _ = self.rollovers.begin_rollover(call, &self.associations.peers, mac));
        }
        moves
    }

    /// Does what a machine wants of others. What cannot be begun now is wished again.
    pub(super) fn fulfil(&mut self, call: &mut Call<'_>) {
        while let Some(wish) = call.wishes.pop_front() {
            match wish {
                Wish::SignOfLife(mac) => call.order(0, OrderKind::ShowLife(mac)),
                Wish::Ticket(mac) => self.resumptions.give(call, &mut self.associations.peers, mac),
                Wish::Kem(mac) => self.rollovers.begin_kem(call, &mut self.associations.peers, mac),
                Wish::Rollover(mac) => _ = self.rollovers.begin_rollover(call, &self.associations.peers, mac),
                Wish::Handshake(mac) => _ = self.open_for_mac(call, mac),
                Wish::HandshakeInstead(mac, of) => {
                    if self.associations.peers.current_by_mac(mac).is_some_and(|current| current.id == of) {
                        _ = self.open_for_mac(call, mac);
                    }
                }
                Wish::Complete(born) => self.complete_exchange(call, *born),
                Wish::Candidate(born) => self.add_candidate(call, *born),
                Wish::EndDoubted(mac) => self.associations.end_doubted(call, mac),
                Wish::ForgetOwn(ip) => self.addresses.forget_own(ip),
                Wish::Identity(identity) => _ = self.change_identity(call, identity),
                Wish::Leased(identity, ip) => {
                    if self.change_identity(call, identity) {
                        call.out.event(Event::AddressLeased { ip });
                    }
                }
                Wish::LeaseLost(identity, ip) => {
                    self.change_identity(call, identity);
                    call.out.event(Event::LeaseLost { ip });
                }
                Wish::TellDowngrade { mac, owner } => self.clear.tell_downgrade(call, mac, owner),
            }
        }
    }

    /// An exchange that this host began is done. Its association is complete from the start (paper,
    /// "Complete and Incomplete SAs").
    fn complete_exchange(&mut self, call: &mut Call<'_>, born: Born) {
        let Born { birth, message, answer } = born;
        let (association, send, receive) = self.associations.peers.bear(call.now.since_boot, birth);
        let (mac, is_bare) = (association.certificate.mac(), association.is_bare());
        call.install_receivers(&association, receive, false);
        self.establish(call, association, send);
        // The first frame tells the peer that we have the keys, also when nothing else is to be
        // sent yet.
        match message {
            Some(message) => call.send_sealed(mac, &message),
            None if is_bare => self.rollovers.begin_kem(call, &mut self.associations.peers, mac),
            None => call.order(0, OrderKind::ShowLife(mac)),
        }
        if let Some((resolution, is_router)) = answer {
            call.send_resolution_up(&resolution, is_router);
        }
    }

    /// An exchange that the peer began has made an association that no frame has confirmed yet.
    fn add_candidate(&mut self, call: &mut Call<'_>, born: Born) {
        let mac = born.birth.agreed.peer.mac();
        let id = self.associations.add_candidate(call, born.birth);
        if call.core.settings.weaken.promotion {
            self.promote(call, id);
        }
        if let Some(reply) = born.message {
            call.send_sealed(mac, &reply);
        }
    }

    /// The fate of an opened frame about which a lane asks.
    fn judge_claim(&mut self, call: &mut Call<'_>, claim: &Claim) -> Fate {
        let Some(mac) = self.associations.peers.peer_of(claim.association) else {
            return Fate::Dropped(DropReason::UnknownIndex);
        };
        let senders = &self.broadcasts.receiving;
        let name = self.associations.peers.name_of(mac).or_else(|| senders.name_of(mac)).unwrap_or_default();
        let admitted = self.addresses.admit(call, (mac, name), &claim.claims);
        if let Err(reason) = call.excuse_insider(mac, admitted) {
            return Fate::Dropped(reason);
        }
        if !sink::copy(call.sink, Side::STACK, &claim.opened, claim.meta) {
            return Fate::Dropped(DropReason::PortFull);
        }
        call.core.ledger.emitted[Side::STACK as usize] += 1;
        Fate::Forwarded
    }

    /// An ARP frame or one of neighbour discovery that came in clear.
    fn plain(&mut self, call: &mut Call<'_>, frame: &[u8], is_arp: bool) -> Fate {
        let Ok((header, _)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let is_group_sender = self.broadcasts.receiving.name_of(header.source).is_some();
        let unproved_address = self.dhcp.unproved_address();
        let (addresses, associations) = (&self.addresses, &mut self.associations);
        let mut others = Others { addresses, associations, is_group_sender, unproved_address };
        if is_arp {
            self.clear.on_plain_arp(call, &mut others, frame)
        } else {
            self.clear.on_plain_neighbour(call, &mut others, frame)
        }
    }

    /// Opens a handshake with a host whose hardware address is all that is known, or all that
    /// matters.
    fn open_for_mac(&mut self, call: &mut Call<'_>, mac: MacAddress) -> Result<(), DropReason> {
        let known = Known { addresses: &self.addresses, tickets: &self.resumptions };
        self.openings.open_for_mac(call, &known, mac)
    }

    /// Frames wait in `lane` for a host.
    fn wanted(&mut self, call: &mut Call<'_>, lane: LaneId, mac: MacAddress) {
        if self.associations.peers.current_by_mac(mac).is_some_and(Association::is_bare) {
            // They wait for ML-KEM. Its end, good or not, releases them.
            return;
        }
        let opened = self.open_for_mac(call, mac);
        let wait = self.addresses.wait(call, None, Some(mac));
        self.clear.on_wanted(call, lane, (mac, wait), opened);
    }

    /// The fate of a frame whose payload is a message of the link layer. `Held` means that a job
    /// decides.
    fn sealed_message(&mut self, call: &mut Call<'_>, sealed: &Sealed<'_>) -> Fate {
        let peers = &mut self.associations.peers;
        if sealed.message.first() == Some(&GRANT_FIRST_BYTE) {
            return self.resumptions.take(call, peers, sealed).unwrap_or_else(Fate::Dropped);
        }
        if ListMessage::is(sealed.message) {
            return self.list_message(call, sealed).map_or_else(Fate::Dropped, |()| Fate::Consumed);
        }
        self.rollovers.on_message(call, peers, sealed)
    }

    /// A sealed message about the revocation list or the policy of the site.
    fn list_message(&mut self, call: &mut Call<'_>, sealed: &Sealed<'_>) -> Result<(), DropReason> {
        let mac = self.associations.peers.peer_of(sealed.association).ok_or(DropReason::HandshakeUnasked)?;
        let message = ListMessage::parse(sealed.message).map_err(|_| DropReason::InnerMalformed)?;
        match message.list().subject {
            Subject::Revocations => self.revocations.on_message(call, mac, &message),
            Subject::Policy => self.policies.on_message(call, mac, &message),
        }
    }

    /// A handshake message of the wire. `Held` means that a job decides; it settles the frame when
    /// it completes.
    fn wire_message(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, message)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let (openings, addresses, tickets) = (&self.openings, &mut self.addresses, &self.resumptions);
        let mut around = Around { openings, addresses, tickets };
        let outcome = match PacketType::of(message) {
            Ok(PacketType::HandshakeRequest) => self.answers.on_request(call, &mut around, &header, frame),
            Ok(PacketType::ResumptionRequest) => self.answers.on_resumption(call, &around, &header, frame),
            Ok(PacketType::HandshakeReply | PacketType::ResumptionReply) => {
                self.openings.on_reply(call, &header, frame)
            }
            Ok(PacketType::Challenge) => self.openings.on_challenge(call, &mut self.resumptions, &header, frame),
            Ok(kind @ (PacketType::GroupFrame | PacketType::Announcement | PacketType::Question)) => {
                let mut judges = Judges { addresses: &mut self.addresses, peers: &self.associations.peers };
                self.broadcasts.on_message(call, &mut judges, kind, &header, frame)
            }
            Ok(PacketType::Unicast | PacketType::Dhcp) | Err(_) => Err(DropReason::Malformed),
        };
        outcome.unwrap_or_else(Fate::Dropped)
    }

    pub(super) fn request(&mut self, call: &mut Call<'_>, lane: LaneId, request: Request) {
        let (from, fate, frame) = match request {
            Request::StackArp(frame) => (Side::STACK, self.stack_arp(call, &frame), frame),
            Request::StackNeighbour(frame) => (Side::STACK, self.stack_neighbour(call, &frame), frame),
            Request::StackGroup(frame) => (Side::STACK, self.broadcasts.sending.on_frame(call, &frame), frame),
            Request::Handshake(frame) => (Side::WIRE, self.wire_message(call, &frame), frame),
            Request::PlainArp(frame) => (Side::WIRE, self.plain(call, &frame, true), frame),
            Request::PlainNeighbour(frame) => (Side::WIRE, self.plain(call, &frame, false), frame),
            Request::Dhcp(from, frame) => (from, self.dhcp.on_frame(call, from, &frame), frame),
            Request::Claim(claim) => (Side::WIRE, self.judge_claim(call, &claim), claim.sealed),
            Request::Control(association, frame, message) => {
                let sealed = Sealed { association, frame: &frame, message: &message };
                (Side::WIRE, self.sealed_message(call, &sealed), frame)
            }
            Request::Wanted(mac) => return self.wanted(call, lane, mac),
            Request::FirstFrame(id) => return self.promote(call, id),
            Request::FirstPayload(id) => {
                return if let Some(mac) = self.associations.peers.peer_of(id) {
                    call.forget_clear(mac);
                };
            }
            Request::Activity(id, activity) => return self.associations.peers.note(call.now.since_boot, id, activity),
            Request::UnknownIndex(mac) => {
                if self.associations.on_unknown_index(call, mac) {
                    call.wishes.push_back(Wish::Handshake(mac));
                }
                return self.fulfil(call);
            }
            Request::Worn(id) => {
                // What cannot be begun now is asked for again by the lane.
                let mac = self.associations.peers.current_of(id).map(|current| current.certificate.mac());
                return mac.map_or((), |mac| _ = self.rollovers.begin_rollover(call, &self.associations.peers, mac));
            }
            Request::Plain(word) => return clear::tell(call, word),
            Request::HeardPlain(mac) => {
                return clear::on_peer_in_clear(call, &mut self.associations, mac, FALL_BACK_AFTER);
            }
        };
        self.fulfil(call);
        call.core.ledger.settle(call.now.since_boot, from, fate, &frame);
    }

    pub(super) fn complete(&mut self, call: &mut Call<'_>, task: Task, completion: CompletionKind) {
        match (task, completion) {
            (Task::KeyPairs, CompletionKind::KeyPairs(pairs)) => {
                call.core.key_pairs.stock(pairs);
                self.openings.sign_waiting(call);
                self.rollovers.sign_waiting(call);
            }
            (Task::KeyPairs, _) => {
                call.core.key_pairs.stock(Vec::new());
                self.openings.on_key_pairs_lost(call);
            }
            (Task::KemPairs, CompletionKind::KemPairs(pairs)) => self.rollovers.on_kem_pairs(call, pairs),
            (Task::KemPairs, _) => self.rollovers.on_kem_pairs(call, Vec::new()),
            (Task::Opening(id), CompletionKind::Signed(message)) => self.openings.on_signed(call, id, message),
            (Task::Opening(id), CompletionKind::Finished(result)) => {
                self.openings.on_finished(call, &mut self.addresses, &mut self.resumptions, id, result);
            }
            (Task::Opening(id), _) => self.openings.on_job_lost(call, id),
            (Task::Answer(id), CompletionKind::Answered(result)) => {
                self.answers.on_answered(call, &mut self.addresses, &mut self.resumptions, id, result);
            }
            (Task::Answer(id), _) => self.answers.on_job_lost(call, id),
            (Task::Broadcast(duty), completion) => {
                let mut judges = Judges { addresses: &mut self.addresses, peers: &self.associations.peers };
                self.broadcasts.on_done(call, &mut judges, duty, completion);
            }
            (Task::Rollover(id), CompletionKind::Signed(message)) => self.rollovers.on_signed(call, id, message),
            (Task::Rollover(id), CompletionKind::Answered(result)) => {
                self.rollovers.on_answered(call, &self.associations.peers, id, result)
            }
            (Task::Rollover(id), CompletionKind::Finished(result)) => {
                self.rollovers.on_finished(call, &self.associations.peers, id, result)
            }
            (Task::Rollover(id), _) => self.rollovers.on_job_lost(call, id),
            (Task::Dhcp(number), CompletionKind::Dhcp(done)) => self.dhcp.on_done(call, number, Some(*done)),
            (Task::Dhcp(number), _) => self.dhcp.on_done(call, number, None),
            (Task::TicketKey, kind) => self.resumptions.on_key(call, kind),
        }
        self.fulfil(call);
    }

    /// Lets each machine do what is due.
    pub(super) fn tick(&mut self, call: &mut Call<'_>, budget: usize) {
        call.follow_site_keys();
        for at in 0..MACHINES {
            for _ in 0..budget {
                let all: [&mut dyn Machine; MACHINES] = machines!(self, &mut);
                let more = all[at].tick(call, budget);
                self.fulfil(call);
                if !more {
                    break;
                }
            }
        }
    }

    pub(super) fn about(&self, request: &Request) -> Torn {
        let of_peer = |id| self.associations.peers.peer_of(id).map_or(Torn::Anything, |mac| Torn::Host(mac.0));
        match request {
            Request::StackArp(frame) | Request::StackNeighbour(frame) | Request::StackGroup(frame) => {
                Torn::by_frame(Side::STACK, frame)
            }
            Request::Handshake(frame) | Request::PlainArp(frame) | Request::PlainNeighbour(frame) => {
                Torn::by_frame(Side::WIRE, frame)
            }
            Request::Dhcp(from, frame) => Torn::by_frame(*from, frame),
            Request::Claim(claim) => of_peer(claim.association),
            Request::Wanted(mac) | Request::UnknownIndex(mac) | Request::HeardPlain(mac) => Torn::Host(mac.0),
            Request::FirstFrame(id)
            | Request::FirstPayload(id)
            | Request::Activity(id, _)
            | Request::Worn(id)
            | Request::Control(id, ..) => of_peer(*id),
            Request::Plain(_) => Torn::Host([0; 6]),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let all: [&dyn Machine; MACHINES] = machines!(self, &);
        all.into_iter().filter_map(Machine::deadline).min()
    }

    /// A candidate's first frame was opened: the peer has the keys (paper, "Complete and Incomplete
    /// SAs").
    pub(super) fn promote(&mut self, call: &mut Call<'_>, id: AssociationId) {
        if let Some(candidate) = self.associations.peers.take_candidate(id) {
            self.establish(call, candidate.association, candidate.send);
        }
    }
}
