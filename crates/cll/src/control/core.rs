//! What the machines of control share and none of them owns, and what one call gives to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Generator, LaneId, Ledger, Meta, Now, Outbox, Side, Sink, Ticket, sink};
use identity::agreement::KeyPair;
use identity::certificate::HostCertificate;
use identity::policy::SitePolicy;
use identity::{Generation, Verified};
use shield::{Bucket, ByRecency, PerSource, RecencyRates};
use wire::arp::Operation;
use wire::cll::handshake::{LANES_MAX, set_site_tag, tagged_parts};
use wire::cll::resolution::Neighbour;
use wire::cll::{Agreement, NONCE_LEN, Offer, Resolution, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::nd::{advertisement, solicitation};
use wire::{EtherType, MacAddress};

use super::freshness::Freshness;
use super::machines::Wish;
use super::peers::Association;
use super::site_keys::SiteKeys;
use super::{Control, Task};
use crate::event::{Effect, EndCause, Event};
use crate::glimpse::Glimpse;
use crate::job::{CertificateTime, Job, JobKind, Origins, Refusal};
use crate::keys::ReceiveKey;
use crate::limits;
use crate::message::{Incoming, Order, OrderKind};
use crate::migration::{Migration, ProvedHost, Rules, is_contradiction};
use crate::observed::{PlainHosts, Proofs};
use crate::revocation::Revoked;
use crate::settings::{Legacy, Settings};

/// The fate of a frame, or why it is dropped.
pub(super) type Verdict = Result<Fate, DropReason>;

/// What the machines share.
pub(super) struct Core {
    pub(super) settings: Arc<Settings>,
    pub(super) ledger: Ledger,
    pub(super) random: Generator,
    pub(super) revoked: Arc<Revoked>,
    /// The site's policy, if there is one.
    pub(super) site_policy: Option<Arc<Verified<SitePolicy>>>,
    pub(super) site_keys: SiteKeys,
    pub(super) rules: Arc<Rules>,
    pub(super) freshness: Freshness,
    pub(super) observed: PlainHosts,
    pub(super) proofs: Proofs,
    pub(super) key_pairs: KeyPairs,
    pub(super) signature_budget: Bucket,
    /// Receiver indices in use, each of lane 0.
    pub(super) indices: BTreeSet<u32>,
    pub(super) tasks: Tasks,
}

/// Key pairs that are made ahead.
#[derive(Default)]
pub(super) struct KeyPairs {
    ready: Vec<KeyPair>,
    is_ordered: bool,
}

impl KeyPairs {
    /// Those that were ordered; none if the job was lost.
    pub(super) fn stock(&mut self, pairs: Vec<KeyPair>) {
        self.is_ordered = false;
        self.ready.extend(pairs);
        self.ready.truncate(limits::KEY_PAIRS_AHEAD);
    }
}

/// Jobs under way, and what each belongs to.
#[derive(Default)]
pub(super) struct Tasks {
    by_ticket: BTreeMap<Ticket, Task>,
    last: u64,
}

impl Tasks {
    /// What a job belonged to that is over.
    pub(super) fn end(&mut self, ticket: Ticket) -> Option<Task> {
        self.by_ticket.remove(&ticket)
    }
}

/// One call into control: when, what all machines share, and where results go.
pub(super) struct Call<'a> {
    pub(super) now: Now,
    pub(super) core: &'a mut Core,
    pub(super) sink: &'a mut dyn Sink,
    pub(super) out: &'a mut Outbox<Control>,
    /// What the machine at work wants of others.
    pub(super) wishes: VecDeque<Wish>,
}

/// What becomes of frames, and what leaves.
impl Call<'_> {
    pub(super) fn order(&mut self, lane: u8, kind: OrderKind) {
        if self.out.orders.push((LaneId(lane), Order(kind))).is_err() {
            self.out.overflowed += 1;
        }
    }

    /// The same order to all lanes.
    pub(super) fn order_all(&mut self, kind: impl Fn() -> OrderKind) {
        (0..self.core.settings.lanes).for_each(|lane| self.order(lane, kind()));
    }

    /// Enters the final fate of a frame that was held.
    pub(super) fn release(&mut self, from: Side, fate: Fate, frame: &[u8]) {
        self.core.ledger.release(self.now.since_boot, from, fate, frame);
    }

    /// Sends a frame of our own; counted if it found room.
    pub(super) fn make(&mut self, to: Side, frame: &[u8]) -> bool {
        let is_sent = sink::copy(self.sink, to, frame, Meta::plain());
        if is_sent {
            self.core.ledger.make(to);
        }
        is_sent
    }

    /// Passes a frame on as it came.
    pub(super) fn pass(&mut self, to: Side, frame: &[u8]) -> Fate {
        let is_sent = sink::copy(self.sink, to, frame, Meta::plain());
        if is_sent { Fate::Forwarded } else { Fate::Dropped(DropReason::PortFull) }
    }

    /// ARP, neighbour discovery or a group frame of our stack that does not go with CLL: in clear
    /// where the mode lets everything pass.
    pub(super) fn uncarried(&mut self, frame: &[u8], reason: DropReason) -> Fate {
        if !self.core.rules.is_lenient_to_groups() {
            return Fate::Dropped(reason);
        }
        self.core.ledger.excuse(reason);
        self.pass(Side::WIRE, frame)
    }

    /// Tags `message` for `destination`, under the site key of this generation where one is named,
    /// and sends it.
    pub(super) fn send_message(&mut self, destination: MacAddress, message: &mut [u8], under: Option<Generation>) {
        let Settings { mac: source, ethertype, .. } = *self.core.settings;
        let ethernet = Header { destination, source, ethertype }.emit();
        let [before, after] = tagged_parts(message);
        let Some(site_key) = self.core.site_keys.get(under) else { return };
        let tag = site_key.frame_tag(b"handshake", &[&ethernet, before, after]);
        set_site_tag(message, &tag);
        self.make(Side::WIRE, &[&ethernet[..], message].concat());
    }

    /// Sends the peer a message of the link layer under the seal.
    pub(super) fn send_sealed(&mut self, mac: MacAddress, message: &[u8]) {
        self.order(0, OrderKind::Control(mac, message.to_vec()));
    }

    /// Hands the stack what a handshake has proved, in its own words: ARP, or neighbour discovery.
    pub(super) fn send_resolution_up(&mut self, resolution: &Resolution, is_router: bool) {
        let own_mac = self.core.settings.mac;
        let (source, ethertype, packet) = match *resolution {
            Resolution::Arp(arp) => (arp.sender_mac, EtherType::ARP, arp.emit().to_vec()),
            Resolution::Neighbour(Neighbour { operation, sender_mac, sender_ip, target_ip, .. }) => {
                let packet = match operation {
                    Operation::Request => solicitation(sender_ip, sender_mac, target_ip, target_ip),
                    Operation::Reply => advertisement(sender_ip, sender_mac, target_ip, is_router),
                };
                (sender_mac, EtherType::IPV6, packet)
            }
        };
        let header = Header { destination: own_mac, source, ethertype };
        self.make(Side::STACK, &[&header.emit()[..], &packet].concat());
    }

    /// Names the refusal of a message of the wire to the operator and in the counters.
    pub(super) fn refuse(&mut self, frame: &[u8], Refusal { reason, detail }: Refusal) {
        if let Ok((header, message)) = Header::parse(frame)
            && let Some(claimed) = Resolution::in_message(message)
        {
            self.out.event(Event::Refused { mac: header.source, ip: claimed.sender_ip(), reason, detail });
        }
        self.release(Side::WIRE, Fate::Dropped(reason), frame);
    }
}

/// Jobs, and what is made ahead for them.
impl Call<'_> {
    /// Hands a job over; false if there are too many.
    pub(super) fn task(&mut self, task: Task, job: JobKind) -> bool {
        self.core.tasks.last += 1;
        let ticket = Ticket(self.core.tasks.last);
        if self.out.jobs.push((ticket, Job(job))).is_err() {
            return false;
        }
        self.core.tasks.by_ticket.insert(ticket, task);
        true
    }

    /// Has key pairs made if there are few.
    pub(super) fn order_key_pairs(&mut self) {
        let missing = limits::KEY_PAIRS_AHEAD.saturating_sub(self.core.key_pairs.ready.len());
        if !self.core.key_pairs.is_ordered && missing > limits::KEY_PAIRS_AHEAD / 2 {
            let job = JobKind::PrepareKeyPairs(self.core.settings.profile(), missing);
            self.core.key_pairs.is_ordered = self.task(Task::KeyPairs, job);
        }
    }

    pub(super) fn take_key_pair(&mut self) -> Option<KeyPair> {
        let pair = self.core.key_pairs.ready.pop();
        self.order_key_pairs();
        pair
    }

    /// A key pair for an answer to this host: the last ones are not for strangers.
    pub(super) fn take_key_pair_for(&mut self, mac: MacAddress) -> Option<KeyPair> {
        if self.core.key_pairs.ready.len() <= limits::KEY_PAIRS_RESERVED && !self.is_proved(mac) {
            self.order_key_pairs();
            return None;
        }
        self.take_key_pair()
    }

    /// Draws a receiver index that is not in use; its low bits are left for the lane.
    pub(super) fn draw_index(&mut self) -> u32 {
        loop {
            let index = self.core.random.number() & !u32::from(LANES_MAX - 1);
            if self.core.indices.insert(index) {
                return index;
            }
        }
    }

    /// Gives back an index under which nothing is received any more.
    pub(super) fn return_index(&mut self, index: u32) {
        self.core.indices.remove(&index);
    }
}

/// What this host offers, and by what it judges others.
impl Call<'_> {
    pub(super) fn offer(&self, receiver_index: u32) -> Offer {
        let settings = &self.core.settings;
        Offer {
            agreement: settings.agreement(),
            suite: settings.send_suite.id(),
            confidential: settings.confidential,
            slow_nonce: settings.slow_nonce,
            lanes: settings.lanes.clamp(1, LANES_MAX),
            receiver_index,
            lifetime_s: u32::try_from(settings.lifetime.as_secs()).unwrap_or(u32::MAX),
            compression: settings.compression,
            post_quantum: self.offers_post_quantum(),
            pre_shared: !settings.pre_shared.is_empty(),
        }
    }

    /// Whether this host does ML-KEM. The paper profile has none.
    pub(super) fn offers_post_quantum(&self) -> bool {
        self.core.settings.post_quantum.is_on() && self.core.settings.agreement() == Agreement::X25519
    }

    /// The shorter of both claims within the limits (paper, section 5.2); and never beyond the
    /// certificate of either side: what a certificate proves ends with it.
    pub(super) fn agreed_lifetime(&self, peer: &HostCertificate, own: &Offer, peers: &Offer) -> Duration {
        let settings = &self.core.settings;
        let shorter = Duration::from_secs(u64::from(own.lifetime_s.min(peers.lifetime_s)));
        let agreed = shorter.max(settings.lifetime_min).min(limits::LIFETIME_MAX);
        let time = self.certificate_time();
        let certified = |certificate: &HostCertificate| {
            // It was issued after it began, so it has no longer to live than its period, whatever
            // our clock shows.
            let unix_s = time.unix_s().max(certificate.not_before_unix());
            Duration::from_secs(certificate.not_after_unix().saturating_sub(unix_s).saturating_add(1))
        };
        agreed.min(certified(peer)).min(certified(settings.identity.certificate()))
    }

    /// The time against which certificates are judged.
    pub(super) fn certificate_time(&self) -> CertificateTime {
        certificate_time(&self.core.settings, &self.core.revoked, self.now)
    }

    /// What a job needs to judge others' certificates.
    pub(super) fn origins(&self) -> Origins {
        let Core { settings, revoked, .. } = &*self.core;
        Origins { settings: Arc::clone(settings), revoked: Arc::clone(revoked), time: self.certificate_time() }
    }

    /// Under which site key a message has its tag.
    pub(super) fn site_key_of(&self, frame: &[u8], tag: &[u8; SITE_TAG_LEN]) -> Option<Generation> {
        let (ethernet, message) = frame.split_at(ETHERNET_LEN);
        let [before, after] = tagged_parts(message);
        let Core { settings, site_keys, .. } = &*self.core;
        let found = site_keys.verify(b"handshake", &[ethernet, before, after], tag);
        found.or(settings.weaken.site_tag.then(|| settings.identity.generation()))
    }
}

/// Who has proved himself.
impl Call<'_> {
    /// Whether the host with this hardware address has proved itself to us, before our start or
    /// since. It has budgets of its own: whoever has the site key can make messages in the names of
    /// strangers without end.
    pub(super) fn is_proved(&self, mac: MacAddress) -> bool {
        self.core.freshness.remembers(mac) || self.core.rules.proved.contains(mac)
    }

    /// What a verified sender's clock showed: recordings of what it said before are worth nothing
    /// from now on.
    pub(super) fn remember_stamp(&mut self, mac: MacAddress, unix_ms: u64, nonce: [u8; NONCE_LEN]) {
        self.core.freshness.remember(mac, unix_ms, nonce);
        self.out.effect(Effect::RememberTime { mac, unix_ms });
    }

    /// Goes by these settings from now on, as all lanes do.
    pub(super) fn settle(&mut self, settings: Settings) {
        let settings = Arc::new(settings);
        self.core.settings = Arc::clone(&settings);
        self.order_all(|| OrderKind::Settle(Arc::clone(&settings)));
    }

    /// The hosts admitted in clear are these from now on.
    pub(super) fn set_legacy(&mut self, legacy: Vec<Legacy>) {
        let settings = Arc::clone(&self.core.settings);
        for gone in settings.legacy.iter().filter(|one| !legacy.contains(one)) {
            self.out.effect(Effect::ForgetNeighbour { ip: gone.ip, mac: gone.mac });
        }
        for new in legacy.iter().filter(|one| !settings.legacy.contains(one)) {
            self.out.effect(Effect::PermanentNeighbour { ip: new.ip, mac: new.mac });
            self.core.observed.remove(new.mac);
        }
        self.settle(Settings { legacy, ..Settings::clone(&settings) });
    }

    /// Goes by these rules from now on, as all lanes do.
    pub(super) fn change_rules(&mut self, rules: Rules) {
        self.core.observed.retain(|mac| rules.is_lenient_towards(mac));
        let rules = Arc::new(rules);
        self.core.rules = Arc::clone(&rules);
        self.order_all(|| OrderKind::Rules(Arc::clone(&rules)));
    }

    /// The host proves itself now, so what it said in clear before is not told any more, whichever
    /// lane has heard it.
    pub(super) fn forget_clear(&mut self, mac: MacAddress) {
        self.core.observed.remove_proved(self.now.since_boot, mac);
        self.core.proofs.note(self.now.since_boot, mac);
    }

    /// The host with this certificate has proved itself, by a handshake or as a sender to groups.
    pub(super) fn remember_proof(&mut self, certificate: &HostCertificate) {
        self.forget_clear(certificate.mac());
        let addresses = certificate.names().all_addresses();
        let host = ProvedHost { name: certificate.name().to_owned(), mac: certificate.mac(), addresses };
        if !self.core.rules.proved.would_take(&host) {
            return;
        }
        let mut rules = (*self.core.rules).clone();
        rules.proved.enter(host.clone());
        self.change_rules(rules);
        self.out.effect(Effect::Remember(host));
    }

    /// What contradicts the certificate of a proved host: only noted where everything is.
    pub(super) fn excuse_insider(
        &mut self,
        mac: MacAddress,
        admitted: Result<(), DropReason>,
    ) -> Result<(), DropReason> {
        let Err(reason) = admitted else { return Ok(()) };
        if !is_contradiction(reason) || self.core.rules.towards(mac) != Migration::Observe {
            return Err(reason);
        }
        self.note_plain(mac, reason, Glimpse::SEALED);
        Ok(())
    }

    /// Counts what a stricter mode would have dropped.
    pub(super) fn note_plain(&mut self, mac: MacAddress, reason: DropReason, glimpse: Glimpse) {
        self.core.ledger.excuse(reason);
        if self.core.observed.note(self.now.since_boot, mac, reason, glimpse) {
            self.out.event(Event::Plain { mac, reason });
        }
    }
}

/// Keys of associations in the lanes.
impl Call<'_> {
    /// Takes all keys of an association away from the lanes and says so.
    pub(super) fn stop_all(&mut self, association: &Association, cause: EndCause) {
        self.stop_receiving(association);
        self.stop_sending(association);
        self.out.event(association.ended(cause));
    }

    pub(super) fn stop_sending(&mut self, association: &Association) {
        self.order_all(|| OrderKind::StopSending(association.certificate.mac(), association.id));
    }

    /// Takes the keys to receive with away; their indices are free again.
    pub(super) fn stop_receiving(&mut self, association: &Association) {
        self.return_index(association.own.receiver_index);
        for index in association.receiver_indices() {
            self.order(self.lane_of(index), OrderKind::StopReceiving(index));
        }
    }

    /// Which of our lanes receives frames with this index.
    fn lane_of(&self, receiver_index: u32) -> u8 {
        (receiver_index % u32::from(LANES_MAX)) as u8 % self.core.settings.lanes
    }

    /// Gives the lanes the keys to receive with.
    pub(super) fn install_receivers(
        &mut self,
        association: &Association,
        keys: Vec<ReceiveKey>,
        awaits_first_frame: bool,
    ) {
        for key in keys {
            let lane = self.lane_of(key.receiver_index);
            let origin = Arc::clone(&association.origin);
            let carries_payload = !association.is_bare();
            let incoming = Incoming { association: association.id, origin, key, awaits_first_frame, carries_payload };
            self.order(lane, OrderKind::Receive(Box::new(incoming)));
        }
    }
}

/// The time against which certificates are judged. A clock that is behind what the authority has
/// signed, our own certificate's first second or the list of revoked certificates, is certainly
/// wrong: all that is known is that it is later.
pub(super) fn certificate_time(settings: &Settings, revoked: &Revoked, now: Now) -> CertificateTime {
    let wall_unix_s = now.trusted_unix_ms().unwrap_or(0) / 1000;
    let issued_unix_s = settings.identity.certificate().not_before_unix();
    let signed_unix_s = issued_unix_s.max(revoked.issued_unix_s());
    if wall_unix_s < signed_unix_s {
        CertificateTime::NotBefore(signed_unix_s)
    } else {
        CertificateTime::Shown(wall_unix_s)
    }
}

/// A budget of so much in a second, of which a second's worth may come in one go.
pub(super) fn steady(per_second: u32) -> Bucket {
    Bucket::new(per_second, per_second)
}

/// A budget for messages that carry their sender's time.
pub(super) fn by_recency(proved: u32, others: u32) -> ByRecency {
    let (per_source, sources_max) = (limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::CHALLENGED_SOURCES_MAX);
    ByRecency::new(RecencyRates { per_source, sources_max, proved, others })
}

pub(super) fn answers_per_source() -> PerSource {
    PerSource::new(limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::SOURCES_MAX)
}
