//! The slow half of the link layer: who may speak with us, and under which keys.
//!
//! - `stack.rs`: what our own stack's ARP asks for; `discovery.rs`: what its neighbour discovery does, and IPv6 addresses.
//! - `initiator.rs`: handshakes that we open; `replies.rs`: what is replied to them, until it is judged.
//! - `responder.rs`: handshakes of others that we answer.
//! - `clear.rs`: questions and hosts in clear, in the modes of migration that have them.
//! - `lists.rs`: the site's revocation list and policy, from peer to peer; `site_policy.rs`: what the policy changes.
//! - `rollover`: new keys through an association that there is.
//! - `broadcast`: frames to groups.
//! - `resumption`: back to one that was, by a ticket.
//! - `freshness.rs`, and the budgets of `shield`: what stands in front of the first signature.
//! - `peers.rs`, `upkeep.rs`: associations and their age.
//! - `site_keys.rs`: under which site key a message goes out, and under which ones it is heard.
//! - `dhcp.rs`: DHCP, and the certificate that this host shows.

mod broadcast;
mod clear;
mod dhcp;
mod dhcp_clear;
mod discovery;
mod freshness;
mod initiator;
mod lists;
mod peers;
mod replies;
mod responder;
mod resumption;
mod rollover;
mod site_keys;
pub(crate) mod site_policy;
mod stack;
mod upkeep;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use bump::{
    DropReason, Fate, Generator, Instant, LaneId, Ledger, Meta, Now, Outbox, Side, Sink, Ticket, Torn, sink, time,
};
use identity::agreement::KeyPair;
use identity::certificate::HostCertificate;
use identity::revocation::RevocationList;
use identity::{Generation, Verified};
use shield::{Apart, Bucket, ByRecency, PerSource, RecencyRates};
use wire::arp;
use wire::cll::handshake::{LANES_MAX, set_site_tag, tagged_parts};
use wire::cll::revocation::Subject;
use wire::cll::{Agreement, Offer, PacketType, Resolution, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::{EtherType, MacAddress};

use self::dhcp::Dhcp;
pub use self::dhcp::LeaseReport;
use crate::event::{Effect, EndCause, Event};
use crate::job::{CertificateTime, Completion, CompletionKind, Job, JobKind, Refusal};
use crate::keys::SendKey;
use crate::limits;
use crate::message::{AssociationId, Incoming, Order, OrderKind, Outgoing, Request};
use crate::neighbours::Neighbours;
use crate::observed::PlainReport;
use crate::origin::Origin;
use crate::revocation::Revoked;
use crate::settings::Settings;
use broadcast::Broadcasts;
use clear::Clear;
use freshness::Freshness;
use initiator::Openings;
use lists::Handed;
use peers::{Association, Peers};
use responder::Answers;
use resumption::Resumptions;
use rollover::{Rollovers, Sealed};
use site_keys::SiteKeys;

/// What a job under way belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    KeyPairs,
    KemPairs,
    Opening(initiator::OpeningId),
    Answer(responder::AnswerId),
    Rollover(rollover::RolloverId),
    Broadcast(broadcast::Duty),
    Dhcp(u64),
    TicketKey,
}

/// The slow half of the link layer.
pub struct Control {
    settings: Arc<Settings>,
    ledger: Ledger,
    random: Generator,
    peers: Peers,
    openings: Openings,
    answers: Answers,
    rollovers: Rollovers,
    neighbours: Neighbours,
    own_origin: Origin,
    /// Addresses for which our stack is asked whether it has them, and since when.
    probes: BTreeMap<Ipv6Addr, Instant>,
    probe_budget: Bucket,
    claims_told: Bucket,
    broadcasts: Broadcasts,
    wire_mtu: u16,
    dhcp: Dhcp,
    resumptions: Resumptions,
    revoked: Arc<Revoked>,
    clear: Clear,
    lists: Handed,
    freshness: Freshness,
    site_keys: SiteKeys,
    answer_budget: Apart<Bucket>,
    answer_budget_per_source: Apart<PerSource>,
    challenge_budget: ByRecency,
    reply_budget: Apart<Bucket>,
    reply_budget_per_source: Apart<PerSource>,
    signature_budget: Bucket,
    unknown_budget: Apart<Bucket>,
    unknown_asked: BTreeMap<MacAddress, Instant>,
    key_pairs: Vec<KeyPair>,
    key_pairs_ordered: bool,
    tasks: BTreeMap<Ticket, Task>,
    next_ticket: u64,
    next_sweep: Option<Instant>,
}

fn answers_per_source() -> PerSource {
    PerSource::new(limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::SOURCES_MAX)
}

/// A budget of so much in a second, of which a second's worth may come in one go.
fn steady(per_second: u32) -> Bucket {
    Bucket::new(per_second, per_second)
}

fn by_recency(proved: u32, others: u32) -> ByRecency {
    let (per_source, sources_max) = (limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::CHALLENGED_SOURCES_MAX);
    ByRecency::new(RecencyRates { per_source, sources_max, proved, others })
}

/// One call into control: when, and where its results go.
struct Call<'a> {
    now: Now,
    sink: &'a mut dyn Sink,
    out: &'a mut Outbox<Control>,
}

impl Call<'_> {
    fn order(&mut self, lane: u8, kind: OrderKind) {
        if self.out.orders.push((LaneId(lane), Order(kind))).is_err() {
            self.out.overflowed += 1;
        }
    }
}

/// One association, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerReport {
    /// Name in its certificate.
    pub name: String,
    /// Its hardware address.
    pub mac: MacAddress,
    /// Addresses in its certificate.
    pub addresses: Vec<Ipv4Addr>,
    /// IPv6 addresses that it holds here.
    pub ipv6_addresses: Vec<Ipv6Addr>,
    /// Whether its certificate says that it forwards for others.
    pub router: bool,
    /// End of its certificate, in seconds since 1970.
    pub certificate_not_after_unix: u64,
    /// `established`, `agreeing` (payload waits for ML-KEM), `leaving` or `candidate`.
    pub state: &'static str,
    /// Whether this host asked.
    pub initiated: bool,
    /// How many rollovers led to it since the handshake.
    pub rollovers: u32,
    /// Whether a ticket led to it, and no signature.
    pub resumed: bool,
    /// How old the association is.
    pub age: Duration,
    /// How long it may still live.
    pub remaining: Duration,
    /// How long ago a frame was opened.
    pub last_opened_ago: Option<Duration>,
    /// What its keys come from: `X25519`, `X25519+ML-KEM-768`, and `+PSK` behind it where there is
    /// a pre-shared key.
    pub agreement: String,
    /// How we protect what we send.
    pub sends: String,
    /// How the peer protects what it sends.
    pub receives: String,
}

impl Control {
    /// A control without associations. `random` is for nonces and indices, never for keys.
    #[must_use]
    pub fn new(now: Now, settings: Arc<Settings>, mut random: Generator) -> Control {
        let mut challenge_budget = by_recency(limits::CHALLENGES_OF_PROVED_PER_SECOND, limits::CHALLENGES_PER_SECOND);
        settings.heard.iter().for_each(|&(mac, unix_ms)| challenge_budget.hear(mac, unix_ms));
        Control {
            broadcasts: Broadcasts::new(&mut random, now, &settings),
            wire_mtu: settings.wire_mtu,
            clear: Clear::new(settings.rules()),
            lists: Handed::default(),
            freshness: Freshness::new(&mut random, now, settings.clock_tolerance),
            site_keys: site_keys::at_start(
                &settings.identity,
                certificate_time(&settings, &Revoked::default(), now).unix_s(),
                now,
            ),
            neighbours: Neighbours::new(settings.identity.certificate()),
            own_origin: Origin::of(settings.identity.certificate()),
            probes: BTreeMap::new(),
            probe_budget: steady(limits::PROBES_PER_SECOND),
            claims_told: Bucket::new(1, limits::CLAIMS_TOLD_BURST),
            dhcp: Dhcp::new(now, &settings, random.bytes()),
            settings,
            ledger: Ledger::new(),
            random,
            peers: Peers::default(),
            openings: Openings::default(),
            answers: Answers::default(),
            rollovers: Rollovers::default(),
            resumptions: Resumptions::default(),
            revoked: Arc::default(),
            answer_budget: Apart {
                proved: Bucket::new(limits::ANSWERS_PER_SECOND, limits::ANSWERS_BURST),
                strangers: Bucket::new(limits::STRANGERS_ANSWERED_PER_SECOND, limits::STRANGERS_ANSWERED_BURST),
            },
            answer_budget_per_source: Apart::new(answers_per_source),
            challenge_budget,
            reply_budget: Apart::new(|| Bucket::new(limits::REPLIES_PER_SECOND, limits::REPLIES_BURST)),
            reply_budget_per_source: Apart::new(answers_per_source),
            signature_budget: steady(limits::SIGNATURES_PER_SECOND),
            unknown_budget: Apart {
                proved: steady(limits::UNKNOWN_PER_SECOND),
                strangers: steady(limits::UNKNOWN_OF_STRANGERS_PER_SECOND),
            },
            unknown_asked: BTreeMap::new(),
            key_pairs: Vec::new(),
            key_pairs_ordered: false,
            tasks: BTreeMap::new(),
            next_ticket: 0,
            next_sweep: None,
        }
    }

    /// To be called once before the first frame: prepares key pairs, and names the legacy hosts to the kernel.
    pub fn start(&mut self, out: &mut Outbox<Control>) {
        for legacy in &self.settings.legacy {
            out.effect(Effect::PermanentNeighbour { ip: legacy.ip, mac: legacy.mac });
        }
        self.order_key_pairs(out);
        self.order_kem_pairs(out);
    }

    /// A handshake with ourselves, to be called once before the first frame. Its key pairs come
    /// from `keys`.
    ///
    /// # Errors
    /// What does not work, in words.
    pub fn self_test(&self, keys: &mut dyn bump::SecretSource) -> Result<(), crate::SelfTestError> {
        crate::self_test::run(&self.settings, keys)
    }

    /// The wire carries packets of another size from now on, in bytes.
    pub fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.wire_mtu = wire_mtu;
    }

    /// All associations.
    #[must_use]
    pub fn peers(&self, now: Instant) -> Vec<PeerReport> {
        let mut reports = Vec::new();
        for (_, peer) in self.peers.iter() {
            let current = peer.current.iter().map(|one| (one, if one.is_bare() { "agreeing" } else { "established" }));
            let leaving = peer.leaving.iter().map(|one| (&one.association, "leaving"));
            let candidates = peer.candidates.iter().map(|one| (&one.association, "candidate"));
            let all = current.chain(leaving).chain(candidates);
            reports.extend(all.map(|(association, state)| PeerReport {
                ipv6_addresses: self.neighbours.addresses_of(association.certificate.mac()),
                ..report(association, state, now)
            }));
        }
        reports
    }

    /// Adds the hosts that spoke ARP in clear to the `reports` of lanes, and takes out who has proved himself since.
    pub(crate) fn report_plain_hosts(&self, now: Instant, reports: &mut BTreeMap<MacAddress, PlainReport>) {
        self.clear.observed.report(now, reports);
        // A lane that knows nothing of a proof keeps what it heard before.
        reports.retain(|mac, report| !self.clear.is_proved_since(*mac, now - report.heard_ago));
    }

    /// Hosts that have proved themselves and are remembered for it.
    #[must_use]
    pub fn proved_hosts(&self) -> usize {
        self.clear.rules.proved.len()
    }

    /// Associations in use with one hardware address under which payload moves; never more than
    /// one.
    #[must_use]
    pub fn established_with(&self, mac: MacAddress) -> usize {
        usize::from(self.peers.current_by_mac(mac).is_some_and(|current| !current.is_bare()))
    }

    /// Handshakes that this host has open.
    #[must_use]
    pub fn open_handshakes(&self) -> usize {
        self.openings.len()
    }

    /// Rollovers that are under way, whoever asked.
    #[must_use]
    pub fn open_rollovers(&self) -> usize {
        self.rollovers.open()
    }

    /// The site has taken certificates back: nobody with one of them is believed from now on, and what there is with them ends.
    pub(crate) fn revoke(
        &mut self,
        now: Now,
        list: Arc<Verified<RevocationList>>,
        sink: &mut dyn Sink,
        out: &mut Outbox<Self>,
    ) {
        self.revoked = Arc::new(Revoked::by(Some(list)));
        let revoked = Arc::clone(&self.revoked);
        let mut call = Call { now, sink, out };
        self.forget_group_senders(&mut call, |certificate| revoked.names(certificate));
        self.forget_tickets_of(&mut call, |certificate| revoked.names(certificate));
        for mac in self.peers.with_certificate(|certificate| revoked.names(certificate)) {
            self.forget_addresses(&mut call, mac);
            self.end_all(&mut call, mac, EndCause::Revoked);
        }
        self.offer_list_to_all(&mut call, Subject::Revocations);
    }

    /// Ends whatever there is with `mac`.
    fn end_all(&mut self, call: &mut Call<'_>, mac: MacAddress, cause: EndCause) {
        let in_use = self.peers.current_by_mac(mac).map(|current| current.id);
        for association in self.peers.take_all(mac) {
            if Some(association.id) == in_use {
                self.stop_all(call, &association, cause);
            } else {
                self.stop_receiving(call, &association);
            }
        }
    }

    fn task(&mut self, out: &mut Outbox<Control>, task: Task, job: JobKind) -> bool {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        if out.jobs.push((ticket, Job(job))).is_err() {
            return false;
        }
        self.tasks.insert(ticket, task);
        true
    }

    fn order_key_pairs(&mut self, out: &mut Outbox<Control>) {
        let missing = limits::KEY_PAIRS_AHEAD - self.key_pairs.len().min(limits::KEY_PAIRS_AHEAD);
        if !self.key_pairs_ordered && missing > limits::KEY_PAIRS_AHEAD / 2 {
            let job = JobKind::PrepareKeyPairs(self.settings.profile(), missing);
            self.key_pairs_ordered = self.task(out, Task::KeyPairs, job);
        }
    }

    /// Whether the host with this hardware address has proved itself to us, before our start or since. Who has comes out of his own
    /// budgets: whoever has the site key can make messages in the names of strangers without end.
    fn is_proved(&self, mac: MacAddress) -> bool {
        self.freshness.remembers(mac) || self.clear.rules.proved.contains(mac)
    }

    /// A key pair for an answer to this host: the last ones are not for strangers.
    fn take_key_pair_for(&mut self, out: &mut Outbox<Control>, mac: MacAddress) -> Option<KeyPair> {
        if self.key_pairs.len() <= limits::KEY_PAIRS_RESERVED && !self.is_proved(mac) {
            self.order_key_pairs(out);
            return None;
        }
        self.take_key_pair(out)
    }

    fn take_key_pair(&mut self, out: &mut Outbox<Control>) -> Option<KeyPair> {
        let pair = self.key_pairs.pop();
        self.order_key_pairs(out);
        pair
    }

    /// Whether this host does ML-KEM. The paper profile has none.
    fn offers_post_quantum(&self) -> bool {
        self.settings.post_quantum.is_on() && self.settings.agreement() == Agreement::X25519
    }

    fn offer(&self, receiver_index: u32) -> Offer {
        Offer {
            agreement: self.settings.agreement(),
            suite: self.settings.send_suite.id(),
            confidential: self.settings.confidential,
            slow_nonce: self.settings.slow_nonce,
            lanes: self.settings.lanes.clamp(1, LANES_MAX),
            receiver_index,
            lifetime_s: u32::try_from(self.settings.lifetime.as_secs()).unwrap_or(u32::MAX),
            compression: self.settings.compression,
            post_quantum: self.offers_post_quantum(),
            pre_shared: !self.settings.pre_shared.is_empty(),
        }
    }

    /// The shorter of both claims within the limits (paper, section 5.2); and never beyond the
    /// certificate of either side: what a certificate proves ends with it.
    fn agreed_lifetime(&self, now: Now, peer: &HostCertificate, own: &Offer, peers: &Offer) -> Duration {
        let shorter = Duration::from_secs(u64::from(own.lifetime_s.min(peers.lifetime_s)));
        let agreed = shorter.max(self.settings.lifetime_min).min(limits::LIFETIME_MAX);
        let time = self.certificate_time(now);
        let certified = |certificate: &HostCertificate| {
            // It was issued after it began, so it has no longer to live than its period, whatever
            // our clock shows.
            let unix_s = time.unix_s().max(certificate.not_before_unix());
            Duration::from_secs(certificate.not_after_unix().saturating_sub(unix_s).saturating_add(1))
        };
        agreed.min(certified(peer)).min(certified(self.settings.identity.certificate()))
    }

    /// The time against which certificates are judged. A clock that is behind what the authority
    /// has signed, our own certificate's first second or the list of revoked certificates, is
    /// certainly wrong: all that is known is that it is later.
    fn certificate_time(&self, now: Now) -> CertificateTime {
        certificate_time(&self.settings, &self.revoked, now)
    }

    fn is_own_site(&self, frame: &[u8], tag: &[u8; SITE_TAG_LEN]) -> bool {
        self.site_key_of(frame, tag).is_some()
    }

    /// Under which site key a message has its tag.
    fn site_key_of(&self, frame: &[u8], tag: &[u8; SITE_TAG_LEN]) -> Option<Generation> {
        let (ethernet, message) = frame.split_at(ETHERNET_LEN);
        let [before, after] = tagged_parts(message);
        let found = self.site_keys.verify(b"handshake", &[ethernet, before, after], tag);
        found.or(self.settings.weaken.site_tag.then(|| self.settings.identity.generation()))
    }

    /// Tags `message` for `destination`, under the site key of this generation where one is named,
    /// and sends it.
    fn send_message(
        &mut self,
        call: &mut Call<'_>,
        destination: MacAddress,
        message: &mut [u8],
        under: Option<Generation>,
    ) {
        let ethertype = self.settings.ethertype;
        let ethernet = Header { destination, source: self.settings.mac, ethertype }.emit();
        let [before, after] = tagged_parts(message);
        let Some(site_key) = self.site_keys.get(under) else { return };
        let tag = site_key.frame_tag(b"handshake", &[&ethernet, before, after]);
        set_site_tag(message, &tag);
        let frame = [&ethernet[..], message].concat();
        if sink::copy(call.sink, Side::WIRE, &frame, Meta::plain()) {
            self.ledger.make(Side::WIRE);
        }
    }

    /// Hands the stack an ARP message that is proved.
    fn send_arp_up(&mut self, call: &mut Call<'_>, arp: &arp::Arp) {
        let header = Header { destination: self.settings.mac, source: arp.sender_mac, ethertype: EtherType::ARP };
        let frame = [&header.emit()[..], &arp.emit()].concat();
        if sink::copy(call.sink, Side::STACK, &frame, Meta::plain()) {
            self.ledger.make(Side::STACK);
        }
    }

    /// Makes `association` the one in use, unless a simultaneous one goes first.
    fn establish(&mut self, call: &mut Call<'_>, association: Association, send: Vec<SendKey>) {
        let now = call.now.since_boot;
        let mac = association.certificate.mac();
        if self.peers.get(mac).is_some_and(|peer| peer.keeps_current_against(&association, self.settings.mac)) {
            self.retire(call, association);
            return;
        }
        self.make_room(call, mac);
        self.learn_certificate(call, &association.certificate);
        if !association.is_quiet {
            call.out.event(established(&association));
        }
        self.note_proof(call, &association);
        let (id, carries_payload) = (association.id, !association.is_bare());
        self.settle_rollover(call, mac, id);
        if let Some(old) = self.peers.set_current(association) {
            self.retire(call, old);
        }
        for (lane, key) in send.into_iter().enumerate() {
            let first_sequence = self.random.number() % limits::SEQUENCE_START_BELOW;
            let outgoing = Outgoing { association: id, peer: mac, key, first_sequence, carries_payload };
            call.order(lane as u8, OrderKind::Send(Box::new(outgoing)));
        }
        self.close_openings_for(call, mac);
        if carries_payload {
            self.offer_lists(call, mac);
        }
        self.next_sweep.get_or_insert(now + limits::SWEEP_INTERVAL);
    }

    /// Lets a replaced association open frames for a while, and ends the one that did so before.
    fn retire(&mut self, call: &mut Call<'_>, association: Association) {
        let grace = call.now.since_boot + limits::OUTGOING_GRACE;
        let until = grace.min(association.expires);
        if let Some(before) = self.peers.add_leaving(association, until) {
            self.peers.forget(&before);
            self.stop_receiving(call, &before);
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
                self.stop_all(call, &association, EndCause::Evicted);
            }
        }
    }

    /// Makes room for a candidate. A replayed request makes one too, so it takes nothing from a
    /// confirmed association.
    fn make_room_for_candidate(&mut self, call: &mut Call<'_>, newcomer: MacAddress) {
        if self.peers.len() < limits::PEERS_MAX + limits::CANDIDATE_PEERS_MAX || self.peers.get(newcomer).is_some() {
            return;
        }
        if let Some(mac) = self.peers.oldest_unconfirmed() {
            for association in self.peers.take_all(mac) {
                self.stop_receiving(call, &association);
            }
        }
    }

    fn end_current(&mut self, call: &mut Call<'_>, mac: MacAddress, cause: EndCause) {
        if let Some(association) = self.peers.take_current(mac) {
            self.stop_all(call, &association, cause);
        }
    }

    /// Takes all keys of an association away from the lanes and says so.
    fn stop_all(&mut self, call: &mut Call<'_>, association: &Association, cause: EndCause) {
        self.stop_receiving(call, association);
        self.stop_sending(call, association);
        call.out.event(ended(association, cause));
    }

    fn stop_sending(&mut self, call: &mut Call<'_>, association: &Association) {
        for lane in 0..self.settings.lanes {
            call.order(lane, OrderKind::StopSending(association.certificate.mac(), association.id));
        }
    }

    fn stop_receiving(&mut self, call: &mut Call<'_>, association: &Association) {
        for index in association.receiver_indices() {
            call.order(self.lane_of(index), OrderKind::StopReceiving(index));
        }
    }

    /// Which of our lanes receives frames with this index.
    fn lane_of(&self, receiver_index: u32) -> u8 {
        (receiver_index % u32::from(LANES_MAX)) as u8 % self.settings.lanes
    }

    /// Gives the lanes the keys to receive with.
    fn install_receivers(
        &mut self,
        call: &mut Call<'_>,
        association: &Association,
        keys: Vec<crate::keys::ReceiveKey>,
        awaits_first_frame: bool,
    ) {
        for key in keys {
            let lane = self.lane_of(key.receiver_index);
            let origin = Arc::clone(&association.origin);
            let carries_payload = !association.is_bare();
            let incoming = Incoming { association: association.id, origin, key, awaits_first_frame, carries_payload };
            call.order(lane, OrderKind::Receive(Box::new(incoming)));
        }
    }

    fn refuse(&mut self, call: &mut Call<'_>, frame: &[u8], refusal: Refusal) {
        let Refusal { reason, detail } = refusal;
        if let Ok((header, message)) = Header::parse(frame)
            && let Some(ip) = claimed_ip(message)
        {
            call.out.event(Event::Refused { mac: header.source, ip, reason, detail });
        }
        self.ledger.release(call.now.since_boot, Side::WIRE, Fate::Dropped(reason), frame);
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
}

impl bump::Control for Control {
    type Request = Request;
    type Order = Order;
    type Job = Job;
    type Completion = Completion;
    type Effect = Effect;
    type Event = Event;

    fn request(&mut self, now: Now, lane: LaneId, request: Request, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let mut call = Call { now, sink, out };
        let (from, fate, frame) = match request {
            Request::StackArp(frame) => (Side::STACK, self.stack_arp(&mut call, &frame), frame),
            Request::StackNeighbour(frame) => (Side::STACK, self.stack_neighbour(&mut call, &frame), frame),
            Request::StackGroup(frame) => (Side::STACK, self.group_frame_of_stack(&mut call, &frame), frame),
            Request::Handshake(frame) => (Side::WIRE, self.wire_message(&mut call, &frame), frame),
            Request::PlainArp(frame) => (Side::WIRE, self.plain_arp(&mut call, &frame), frame),
            Request::PlainNeighbour(frame) => (Side::WIRE, self.plain_neighbour(&mut call, &frame), frame),
            Request::Dhcp(from, frame) => (from, self.dhcp_frame(&mut call, from, &frame), frame),
            Request::Claim(claim) => (Side::WIRE, self.judge_claim(&mut call, &claim), claim.sealed),
            Request::Control(association, frame, message) => {
                let sealed = Sealed { association, frame: &frame, message: &message };
                (Side::WIRE, self.sealed_message(&mut call, &sealed), frame)
            }
            Request::Wanted(mac) => return self.open_for_lane(&mut call, lane, mac),
            Request::FirstFrame(id) => return self.promote(&mut call, id),
            Request::Activity(id, activity) => return self.peers.note(now.since_boot, id, activity),
            Request::UnknownIndex(mac) => return self.unknown_index(&mut call, mac),
            Request::Worn(id) => return self.renew_worn(&mut call, id),
            Request::Plain(word) => return self.word(&mut call, word),
            Request::HeardPlain(mac) => return self.hear_plain(&mut call, mac),
        };
        self.ledger.settle(now.since_boot, from, fate, &frame);
    }

    fn complete(
        &mut self,
        now: Now,
        ticket: Ticket,
        completion: Completion,
        sink: &mut dyn Sink,
        out: &mut Outbox<Self>,
    ) {
        let mut call = Call { now, sink, out };
        match (self.tasks.remove(&ticket), completion.0) {
            (Some(Task::KeyPairs), CompletionKind::KeyPairs(pairs)) => self.stock_key_pairs(&mut call, pairs),
            (Some(Task::KeyPairs), _) => {
                self.key_pairs_ordered = false;
                self.key_pairs_lost(&mut call);
            }
            (Some(Task::KemPairs), CompletionKind::KemPairs(pairs)) => self.stock_kem_pairs(&mut call, pairs),
            (Some(Task::KemPairs), _) => self.stock_kem_pairs(&mut call, Vec::new()),
            (Some(Task::Opening(id)), CompletionKind::Signed(message)) => self.request_signed(&mut call, id, message),
            (Some(Task::Opening(id)), CompletionKind::Finished(result)) => self.reply_judged(&mut call, id, result),
            (Some(Task::Opening(id)), _) => self.opening_job_lost(&mut call, id),
            (Some(Task::Answer(id)), CompletionKind::Answered(result)) => self.request_judged(&mut call, id, result),
            (Some(Task::Answer(id)), _) => self.answer_job_lost(&mut call, id),
            (Some(Task::Broadcast(duty)), completion) => self.broadcast_done(&mut call, duty, completion),
            (Some(Task::Rollover(id)), CompletionKind::Signed(message)) => self.rollover_signed(&mut call, id, message),
            (Some(Task::Rollover(id)), CompletionKind::Answered(result)) => {
                self.rollover_request_judged(&mut call, id, result);
            }
            (Some(Task::Rollover(id)), CompletionKind::Finished(result)) => {
                self.rollover_reply_judged(&mut call, id, result);
            }
            (Some(Task::Rollover(id)), _) => self.rollover_job_lost(&mut call, id),
            (Some(Task::Dhcp(number)), CompletionKind::Dhcp(done)) => self.dhcp_done(&mut call, number, Some(*done)),
            (Some(Task::Dhcp(number)), _) => self.dhcp_done(&mut call, number, None),
            (Some(Task::TicketKey), kind) => self.ticket_key_made(&mut call, kind),
            (None, _) => {}
        }
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let mut call = Call { now, sink, out };
        self.follow_site_keys(&mut call);
        self.send_unproved(&mut call);
        self.retransmit(&mut call, budget);
        self.expire_answers(&mut call);
        lists::ask_for_lists(self, &mut call);
        self.repeat_rollovers(&mut call, budget);
        self.broadcast_tick(&mut call);
        self.sweep(&mut call, budget);
        self.end_lease(&mut call);
    }

    fn about(&self, request: &Request) -> Torn {
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

    /// The associations that may be half done end, on both sides by the next handshake; openings
    /// and answers go by their own time.
    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let mut call = Call { now, sink, out };
        let macs: Vec<_> = self.peers.iter().map(|(mac, _)| *mac).filter(|mac| torn.includes(mac.0)).collect();
        for mac in macs {
            for association in self.peers.take_all(mac) {
                self.stop_all(&mut call, &association, EndCause::InternalError);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let handshakes = time::earlier(self.openings.deadline(), self.answers.deadline());
        let clear = time::earlier(self.clear.deadline(), self.lists.deadline());
        let rollovers = time::earlier(self.rollovers.deadline(), self.broadcasts.deadline());
        let upkeep = time::earlier(self.next_sweep, self.dhcp.deadline());
        let upkeep = time::earlier(upkeep, self.site_keys.deadline());
        time::earlier(time::earlier(time::earlier(handshakes, clear), rollovers), upkeep)
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Control {
    fn stock_key_pairs(&mut self, call: &mut Call<'_>, pairs: Vec<KeyPair>) {
        self.key_pairs_ordered = false;
        self.key_pairs.extend(pairs);
        self.key_pairs.truncate(limits::KEY_PAIRS_AHEAD);
        self.sign_waiting(call);
        self.sign_waiting_rollovers(call);
    }

    /// A candidate's first frame was opened: the peer has the keys (paper, "Complete and Incomplete SAs").
    fn promote(&mut self, call: &mut Call<'_>, id: AssociationId) {
        if let Some(candidate) = self.peers.take_candidate(id) {
            self.establish(call, candidate.association, candidate.send);
        }
    }
}

/// How the side that offered `sender` protects what it sends to the other.
fn protection(sender: &Offer, receiver: &Offer) -> String {
    let name = identity::aead::Suite::from_id(sender.suite).map_or("unknown", identity::aead::Suite::name);
    let only = if sender.confidential { "" } else { " (authentication only)" };
    let compression = sender.compression.towards(receiver.compression);
    let compression = compression.map_or_else(String::new, |algorithm| format!(", {}", algorithm.name()));
    format!("{name}{only}{compression}")
}

fn established(association: &Association) -> Event {
    let certificate = &association.certificate;
    if association.rollovers > 0 {
        let (name, mac) = (certificate.name().to_owned(), certificate.mac());
        return Event::Renewed { name, mac, initiated: association.initiated_by_us, rollovers: association.rollovers };
    }
    let (name, mac, initiated) = (certificate.name().to_owned(), certificate.mac(), association.initiated_by_us);
    let receives = protection(&association.peers, &association.own);
    let sends = protection(&association.own, &association.peers);
    if association.is_resumed() {
        return Event::Resumed { name, mac, initiated, receives, sends };
    }
    Event::Established { name, mac, addresses: certificate.addresses().to_vec(), initiated, receives, sends }
}

/// See [`Control::certificate_time`].
fn certificate_time(settings: &Settings, revoked: &Revoked, now: Now) -> CertificateTime {
    let wall_unix_s = now.trusted_unix_ms().unwrap_or(0) / 1000;
    let issued_unix_s = settings.identity.certificate().not_before_unix();
    let signed_unix_s = issued_unix_s.max(revoked.issued_unix_s());
    if wall_unix_s < signed_unix_s {
        CertificateTime::NotBefore(signed_unix_s)
    } else {
        CertificateTime::Shown(wall_unix_s)
    }
}

/// The address for which a message of a handshake or resumption speaks, which is a claim.
fn claimed_ip(message: &[u8]) -> Option<IpAddr> {
    Resolution::in_message(message).map(|resolution| resolution.sender_ip())
}

fn agreement_name(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::X25519 => "X25519",
        Agreement::Group14 => "group 14",
    }
}

fn ended(association: &Association, cause: EndCause) -> Event {
    let certificate = &association.certificate;
    Event::Ended { name: certificate.name().to_owned(), mac: certificate.mac(), cause }
}

fn report(association: &Association, state: &'static str, now: Instant) -> PeerReport {
    let certificate = &association.certificate;
    PeerReport {
        name: certificate.name().to_owned(),
        mac: certificate.mac(),
        addresses: certificate.addresses().to_vec(),
        ipv6_addresses: Vec::new(),
        router: certificate.is_router(),
        certificate_not_after_unix: certificate.not_after_unix(),
        state,
        initiated: association.initiated_by_us,
        rollovers: association.rollovers,
        resumed: association.is_resumed(),
        age: now.since(association.born),
        remaining: association.expires.since(now),
        last_opened_ago: association.last_opened.map(|at| now.since(at)),
        agreement: association.secrecy.describe(agreement_name(association.own.agreement)),
        sends: protection(&association.own, &association.peers),
        receives: protection(&association.peers, &association.own),
    }
}
