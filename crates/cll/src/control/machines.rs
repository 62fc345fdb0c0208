//! Which machine of control each message, each end of a job and each deadline belongs to.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use bump::{DropReason, Fate, Generator, Instant, LaneId, Now, Side, Torn, time};
use shield::{Apart, Bucket, ByRecency, PerSource, RecencyRates};
use wire::MacAddress;
use wire::cll::PacketType;
use wire::ethernet::Header;

use super::broadcast::Broadcasts;
use super::clear::Clear;
use super::core::{Call, steady};
use super::dhcp::Dhcp;
use super::freshness::Freshness;
use super::initiator::Openings;
use super::lists::Lists;
use super::peers::{Association, Peers};
use super::responder::Answers;
use super::resumption::Resumptions;
use super::rollover::{Rollovers, Sealed};
use super::{PeerReport, Task};
use crate::event::EndCause;
use crate::job::CompletionKind;
use crate::keys::SendKey;
use crate::limits;
use crate::message::{AssociationId, OrderKind, Outgoing, Request};
use crate::neighbours::Neighbours;
use crate::origin::Origin;
use crate::settings::Settings;

/// The machines of control, each with a state of its own.
pub(super) struct Machines {
    pub(super) peers: Peers,
    pub(super) openings: Openings,
    pub(super) answers: Answers,
    pub(super) rollovers: Rollovers,
    pub(super) neighbours: Neighbours,
    pub(super) own_origin: Origin,
    /// Addresses for which our stack is asked whether it has them, and since when.
    pub(super) probes: BTreeMap<Ipv6Addr, Instant>,
    pub(super) probe_budget: Bucket,
    pub(super) claims_told: Bucket,
    pub(super) broadcasts: Broadcasts,
    pub(super) wire_mtu: u16,
    pub(super) dhcp: Dhcp,
    pub(super) resumptions: Resumptions,
    pub(super) clear: Clear,
    pub(super) lists: Lists,
    pub(super) answer_budget: Apart<Bucket>,
    pub(super) answer_budget_per_source: Apart<PerSource>,
    pub(super) reply_budget: Apart<Bucket>,
    pub(super) reply_budget_per_source: Apart<PerSource>,
    pub(super) unknown_budget: Apart<Bucket>,
    pub(super) unknown_asked: BTreeMap<MacAddress, Instant>,
    pub(super) next_sweep: Option<Instant>,
}

fn answers_per_source() -> PerSource {
    PerSource::new(limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::SOURCES_MAX)
}

pub(super) fn by_recency(proved: u32, others: u32) -> ByRecency {
    let (per_source, sources_max) = (limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::CHALLENGED_SOURCES_MAX);
    ByRecency::new(RecencyRates { per_source, sources_max, proved, others })
}

impl Machines {
    pub(super) fn new(now: Now, settings: &Settings, random: &mut Generator) -> (Machines, Freshness) {
        let broadcasts = Broadcasts::new(random, now, settings);
        let freshness = Freshness::new(random, now, settings.clock_tolerance, &settings.heard);
        let machines = Machines {
            broadcasts,
            wire_mtu: settings.wire_mtu,
            clear: Clear::default(),
            lists: Lists::default(),
            neighbours: Neighbours::new(settings.identity.certificate()),
            own_origin: Origin::of(settings.identity.certificate()),
            probes: BTreeMap::new(),
            probe_budget: steady(limits::PROBES_PER_SECOND),
            claims_told: Bucket::new(1, limits::CLAIMS_TOLD_BURST),
            dhcp: Dhcp::new(now, settings, random.bytes()),
            peers: Peers::default(),
            openings: Openings::default(),
            answers: Answers::default(),
            rollovers: Rollovers::default(),
            resumptions: Resumptions::default(),
            answer_budget: Apart {
                proved: Bucket::new(limits::ANSWERS_PER_SECOND, limits::ANSWERS_BURST),
                strangers: Bucket::new(limits::STRANGERS_ANSWERED_PER_SECOND, limits::STRANGERS_ANSWERED_BURST),
            },
            answer_budget_per_source: Apart::new(answers_per_source),
            reply_budget: Apart::new(|| Bucket::new(limits::REPLIES_PER_SECOND, limits::REPLIES_BURST)),
            reply_budget_per_source: Apart::new(answers_per_source),
            unknown_budget: Apart {
                proved: steady(limits::UNKNOWN_PER_SECOND),
                strangers: steady(limits::UNKNOWN_OF_STRANGERS_PER_SECOND),
            },
            unknown_asked: BTreeMap::new(),
            next_sweep: None,
        };
        (machines, freshness)
    }

    pub(super) fn peer_reports(&self, now: Instant) -> Vec<PeerReport> {
        let mut reports = Vec::new();
        for (_, peer) in self.peers.iter() {
            let current = peer.current.iter().map(|one| (one, if one.is_bare() { "agreeing" } else { "established" }));
            let leaving = peer.leaving.iter().map(|one| (&one.association, "leaving"));
            let candidates = peer.candidates.iter().map(|one| (&one.association, "candidate"));
            let all = current.chain(leaving).chain(candidates);
            reports.extend(all.map(|(association, state)| PeerReport {
                ipv6_addresses: self.neighbours.addresses_of(association.certificate.mac()),
                ..association.report(state, now)
            }));
        }
        reports
    }

    /// Nobody with a certificate on the new list is believed from now on, and what there is with
    /// them ends.
    pub(super) fn revoke(&mut self, call: &mut Call<'_>) {
        let revoked = std::sync::Arc::clone(&call.core.revoked);
        self.forget_group_senders(call, |certificate| revoked.names(certificate));
        self.forget_tickets_of(call, |certificate| revoked.names(certificate));
        for mac in self.peers.with_certificate(|certificate| revoked.names(certificate)) {
            self.forget_addresses(call, mac);
            self.end_all(call, mac, EndCause::Revoked);
        }
        self.offer_list_to_all(call);
    }

    /// Ends whatever there is with `mac`.
    pub(super) fn end_all(&mut self, call: &mut Call<'_>, mac: MacAddress, cause: EndCause) {
        let in_use = self.peers.current_by_mac(mac).map(|current| current.id);
        for association in self.peers.take_all(mac) {
            if Some(association.id) == in_use {
                call.stop_all(&association, cause);
            } else {
                call.stop_receiving(&association);
            }
        }
    }

    /// Makes `association` the one in use, unless a simultaneous one goes first.
    pub(super) fn establish(&mut self, call: &mut Call<'_>, association: Association, send: Vec<SendKey>) {
        let now = call.now.since_boot;
        let mac = association.certificate.mac();
        if self.peers.get(mac).is_some_and(|peer| peer.keeps_current_against(&association, call.core.settings.mac)) {
            self.retire(call, association);
            return;
        }
        self.make_room(call, mac);
        self.learn_certificate(call, &association.certificate);
        if !association.is_quiet {
            call.out.event(association.established());
        }
        self.note_proof(call, &association);
        let (id, carries_payload) = (association.id, !association.is_bare());
        self.settle_rollover(call, mac, id);
        if let Some(old) = self.peers.set_current(association) {
            self.retire(call, old);
        }
        for (lane, key) in send.into_iter().enumerate() {
            let first_sequence = call.core.random.number() % limits::SEQUENCE_START_BELOW;
            let outgoing = Outgoing { association: id, peer: mac, key, first_sequence, carries_payload };
            call.order(lane as u8, OrderKind::Send(Box::new(outgoing)));
        }
        self.close_openings_for(call, mac);
        if carries_payload {
            self.offer_list(call, mac);
        }
        self.next_sweep.get_or_insert(now + limits::SWEEP_INTERVAL);
    }

    /// Lets a replaced association open frames for a while, and ends the one that did so before.
    pub(super) fn retire(&mut self, call: &mut Call<'_>, association: Association) {
        let grace = call.now.since_boot + limits::OUTGOING_GRACE;
        let until = grace.min(association.expires);
        if let Some(before) = self.peers.add_leaving(association, until) {
            self.peers.forget(&before);
            call.stop_receiving(&before);
        }
    }

    /// Makes room for an association with `newcomer` that is confirmed, at the cost of the least
    /// useful one.
    fn make_room(&mut self, call: &mut Call<'_>, newcomer: MacAddress) {
        let is_known = self.peers.current_by_mac(newcomer).is_some();
        if is_known || self.peers.established() < limits::PEERS_MAX {
            return;
        }
        if let Some(mac) = self.peers.least_useful() {
            for association in self.peers.take_all(mac) {
                call.stop_all(&association, EndCause::Evicted);
            }
        }
    }

    /// Makes room for a candidate. A replayed request makes one too, so it takes nothing from a
    /// confirmed association.
    pub(super) fn make_room_for_candidate(&mut self, call: &mut Call<'_>, newcomer: MacAddress) {
        if self.peers.len() < limits::PEERS_MAX + limits::CANDIDATE_PEERS_MAX || self.peers.get(newcomer).is_some() {
            return;
        }
        if let Some(mac) = self.peers.oldest_unconfirmed() {
            for association in self.peers.take_all(mac) {
                call.stop_receiving(&association);
            }
        }
    }

    pub(super) fn end_current(&mut self, call: &mut Call<'_>, mac: MacAddress, cause: EndCause) {
        if let Some(association) = self.peers.take_current(mac) {
            call.stop_all(&association, cause);
        }
    }

    /// A handshake message of the wire. `Held` means that a job decides; it settles the frame when it completes.
    fn wire_message(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, message)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        let outcome = match PacketType::of(message) {
            Ok(PacketType::HandshakeRequest) => self.answer_request(call, &header, frame),
            Ok(PacketType::HandshakeReply) => self.take_reply(call, &header, frame),
            Ok(PacketType::Challenge) => self.take_challenge(call, &header, frame),
            Ok(kind @ (PacketType::GroupFrame | PacketType::Announcement | PacketType::Question)) => {
                self.group_message(call, kind, &header, frame)
            }
            Ok(PacketType::ResumptionRequest) => self.answer_resumption(call, &header, frame),
            Ok(PacketType::ResumptionReply) => self.take_resumption_reply(call, &header, frame),
            Ok(PacketType::Unicast | PacketType::Dhcp) | Err(_) => Err(DropReason::Malformed),
        };
        outcome.unwrap_or_else(Fate::Dropped)
    }

    pub(super) fn request(&mut self, call: &mut Call<'_>, lane: LaneId, request: Request) {
        let (from, fate, frame) = match request {
            Request::StackArp(frame) => (Side::STACK, self.stack_arp(call, &frame), frame),
            Request::StackNeighbour(frame) => (Side::STACK, self.stack_neighbour(call, &frame), frame),
            Request::StackGroup(frame) => (Side::STACK, self.group_frame_of_stack(call, &frame), frame),
            Request::Handshake(frame) => (Side::WIRE, self.wire_message(call, &frame), frame),
            Request::PlainArp(frame) => (Side::WIRE, self.plain_arp(call, &frame), frame),
            Request::PlainNeighbour(frame) => (Side::WIRE, self.plain_neighbour(call, &frame), frame),
            Request::Dhcp(from, frame) => (from, self.dhcp_frame(call, from, &frame), frame),
            Request::Claim(claim) => (Side::WIRE, self.judge_claim(call, &claim), claim.sealed),
            Request::Control(association, frame, message) => {
                let sealed = Sealed { association, frame: &frame, message: &message };
                (Side::WIRE, self.sealed_message(call, &sealed), frame)
            }
            Request::Wanted(mac) => return self.open_for_lane(call, lane, mac),
            Request::FirstFrame(id) => return self.promote(call, id),
            Request::Activity(id, activity) => return self.peers.note(call.now.since_boot, id, activity),
            Request::UnknownIndex(mac) => return self.unknown_index(call, mac),
            Request::Worn(id) => return self.renew_worn(call, id),
            Request::Plain(word) => return self.word(call, word),
            Request::HeardPlain(mac) => return self.hear_plain(call, mac),
        };
        call.core.ledger.settle(call.now.since_boot, from, fate, &frame);
    }

    pub(super) fn complete(&mut self, call: &mut Call<'_>, task: Task, completion: CompletionKind) {
        match (task, completion) {
            (Task::KeyPairs, CompletionKind::KeyPairs(pairs)) => {
                call.core.key_pairs.stock(pairs);
                self.sign_waiting(call);
                self.sign_waiting_rollovers(call);
            }
            (Task::KeyPairs, _) => {
                call.core.key_pairs.stock(Vec::new());
                self.key_pairs_lost(call);
            }
            (Task::KemPairs, CompletionKind::KemPairs(pairs)) => self.stock_kem_pairs(call, pairs),
            (Task::KemPairs, _) => self.stock_kem_pairs(call, Vec::new()),
            (Task::Opening(id), CompletionKind::Signed(message)) => self.request_signed(call, id, message),
            (Task::Opening(id), CompletionKind::Finished(result)) => self.reply_judged(call, id, result),
            (Task::Opening(id), _) => self.opening_job_lost(call, id),
            (Task::Answer(id), CompletionKind::Answered(result)) => self.request_judged(call, id, result),
            (Task::Answer(id), _) => self.answer_job_lost(call, id),
            (Task::Broadcast(duty), completion) => self.broadcast_done(call, duty, completion),
            (Task::Rollover(id), CompletionKind::Signed(message)) => self.rollover_signed(call, id, message),
            (Task::Rollover(id), CompletionKind::Answered(result)) => self.rollover_request_judged(call, id, result),
            (Task::Rollover(id), CompletionKind::Finished(result)) => self.rollover_reply_judged(call, id, result),
            (Task::Rollover(id), _) => self.rollover_job_lost(call, id),
            (Task::Dhcp(number), CompletionKind::Dhcp(done)) => self.dhcp_done(call, number, Some(*done)),
            (Task::Dhcp(number), _) => self.dhcp_done(call, number, None),
            (Task::TicketKey, kind) => self.ticket_key_made(call, kind),
        }
    }

    pub(super) fn tick(&mut self, call: &mut Call<'_>, budget: usize) {
        call.follow_site_keys();
        self.send_unproved(call);
        self.retransmit(call, budget);
        self.expire_answers(call);
        self.ask_for_list(call);
        self.repeat_rollovers(call, budget);
        self.broadcast_tick(call);
        self.sweep(call, budget);
        self.end_lease(call);
    }

    pub(super) fn about(&self, request: &Request) -> Torn {
        let of_peer = |id| self.peers.peer_of(id).map_or(Torn::Anything, |mac| Torn::Host(mac.0));
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
            Request::FirstFrame(id) | Request::Activity(id, _) | Request::Worn(id) | Request::Control(id, ..) => {
                of_peer(*id)
            }
            Request::Plain(_) => Torn::Host([0; 6]),
        }
    }

    pub(super) fn mend(&mut self, call: &mut Call<'_>, torn: Torn) {
        let macs: Vec<_> = self.peers.iter().map(|(mac, _)| *mac).filter(|mac| torn.includes(mac.0)).collect();
        for mac in macs {
            for association in self.peers.take_all(mac) {
                call.stop_all(&association, EndCause::InternalError);
            }
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let handshakes = time::earlier(self.openings.deadline(), self.answers.deadline());
        let clear = time::earlier(self.clear.deadline(), self.lists.deadline());
        let rollovers = time::earlier(self.rollovers.deadline(), self.broadcasts.deadline());
        let upkeep = time::earlier(self.next_sweep, self.dhcp.deadline());
        time::earlier(time::earlier(time::earlier(handshakes, clear), rollovers), upkeep)
    }

    /// A candidate's first frame was opened: the peer has the keys (paper, "Complete and Incomplete SAs").
    pub(super) fn promote(&mut self, call: &mut Call<'_>, id: AssociationId) {
        if let Some(candidate) = self.peers.take_candidate(id) {
            self.establish(call, candidate.association, candidate.send);
        }
    }
}
