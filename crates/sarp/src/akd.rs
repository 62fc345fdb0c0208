//! The authoritative key distributor (sections 3.1 and 3.5): says, signed, whose key belongs to an address and what time
//! it is. It trusts its repository and the wall clock of its machine; requests prove themselves before anything is looked up or
//! signed, first by a check that costs a tenth of a tag, then by a tag that costs a tenth of a signature.

mod enrolling;
mod masters;

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Instant, Now};
use identity::distributor::{RequestMaster, verify_with_record};
use identity::signing::SigningKey;
use identity::{Profile, Succession};
use shield::PerSource;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::dhcp::MessageType;
use wire::dhcp::proof::Maker;
use wire::sarp::data::{
    Answer, CHECK_LEN, CREDENTIAL_LEN, Change, Lease, LeaseAction, NONCE_LEN, Question, Record, Refusal, TAG_LEN,
};
use wire::sarp::enrolment::Application;
use wire::sarp::{DATA_AT, Kind, Message, seal};

use crate::clock::Stamp;
use crate::limits;
use crate::settings::Weaken;

pub(crate) use enrolling::Enrolling;
use enrolling::EnrolmentGate;
pub use enrolling::Outcome;
use masters::{InFront, Masters};

/// Where a distributor finds keys.
pub trait Records {
    /// What is known of the host with this address.
    fn find(&self, ip: Ipv4Addr) -> Lookup;

    /// As [`find`](Records::find), for many at once and in their order. What was changed before the call is in the answers.
    fn find_all(&self, ips: &[Ipv4Addr]) -> Vec<Lookup> {
        ips.iter().map(|ip| self.find(*ip)).collect()
    }

    /// Whether [`find`](Records::find) may be asked on a quiet data path: it never goes over a network and never waits for a
    /// change.
    fn is_at_hand(&self) -> bool {
        false
    }

    /// Whether this distributor itself still belongs to the site, as far as that is known. Where a look may go over a network,
    /// it is taken only if whoever asks `may_wait`.
    fn may_answer(&self, _may_wait: bool) -> bool {
        true
    }

    /// Puts the key `new` in the place of the key `old` of the host with this address; false, with nothing changed, if the
    /// key is not `old` any more or the repository cannot be written.
    fn replace(&self, ip: Ipv4Addr, old: &[u8], new: RecordKey<'_>) -> bool;

    /// The host with this number.
    fn host(&self, _number: u64) -> HostLookup {
        HostLookup::Failed
    }

    /// Gives a host an address, or more time with it.
    fn lease(&self, _grant: &Grant) -> Binding {
        Binding::Failed
    }

    /// Takes from a host an address that it was given.
    fn unbind(&self, _host: u64, _ip: Ipv4Addr) -> Binding {
        Binding::Failed
    }

    /// Enters who applies with a token, from this hardware address, unless somebody else has; `None` if the repository cannot be
    /// asked, here and below.
    fn apply(&self, _application: &Application<'_>, _mac: MacAddress) -> Option<Outcome> {
        None
    }

    /// What became of a token.
    fn fetch(&self, _token: u64) -> Option<Outcome> {
        None
    }

    /// Forgets what was sealed under a token: its host has it.
    fn close(&self, _token: u64) -> Option<Outcome> {
        None
    }
}

/// What a repository says of a host by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostLookup {
    /// A host with a good key.
    Good(Member),
    /// There is none, or it is not good any more.
    NotGood,
    /// The repository cannot be asked.
    Failed,
}

/// A host as a repository keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The algorithm's number.
    pub algorithm: u8,
    /// The public key.
    pub key: Vec<u8>,
    /// The hardware address that the site binds to it, if any.
    pub mac: Option<MacAddress>,
    /// Whether it may ask about others' addresses.
    pub serves_dhcp: bool,
}

/// An address for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The host.
    pub host: u64,
    /// The address.
    pub ip: Ipv4Addr,
    /// For how long from now; `None` for ever.
    pub time: Option<Duration>,
    /// Whether the host must have the address already.
    pub only_if_held: bool,
}

/// What became of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// What was asked.
    Done,
    /// Nothing, for this reason.
    Refused(Refusal),
    /// The repository cannot be read or written; the server asks another distributor.
    Failed,
}

/// A public key as the repository keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordKey<'a> {
    /// The algorithm's number.
    pub algorithm: u8,
    /// The key.
    pub key: &'a [u8],
}

/// What a repository says of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A host with a good key.
    Good {
        /// The algorithm's number.
        algorithm: u8,
        /// The public key.
        key: Vec<u8>,
        /// The hardware address that the site binds to it, if any.
        mac: Option<MacAddress>,
    },
    /// The host was revoked, or its time is over.
    Invalid,
    /// Nobody has this address.
    NotFound,
    /// The repository cannot be asked; the host asks another distributor.
    Failed,
}

/// The repository of a host that distributes nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoRecords;

impl Records for NoRecords {
    fn find(&self, _ip: Ipv4Addr) -> Lookup {
        Lookup::Failed
    }

    fn replace(&self, _ip: Ipv4Addr, _old: &[u8], _new: RecordKey<'_>) -> bool {
        false
    }
}

/// The distributor of one machine; part of the machine's own [`Host`](crate::Host).
pub struct Akd {
    key: Arc<SigningKey>,
    masters: Masters,
    budget: PerSource<u64>,
    repeats: PerSource<u64>,
    lease_budget: PerSource<u64>,
    gate: EnrolmentGate,
    seen: SeenNonces,
}

/// Nonces of requests for as long as they could be timely, in two generations, so that forgetting the old ones takes no walk.
#[derive(Default)]
struct SeenNonces {
    generations: [BTreeSet<[u8; NONCE_LEN]>; 2],
    began_at: Instant,
}

impl SeenNonces {
    fn contains(&self, nonce: &[u8; NONCE_LEN]) -> bool {
        self.generations.iter().any(|generation| generation.contains(nonce))
    }

    /// Forgets the older generation when its time is over; false when there is no room for one more nonce all the same.
    fn make_room(&mut self, now: Instant) -> bool {
        // A stamp may be ahead of the clock by the window and is timely until it is behind by the window.
        if now.since(self.began_at) > limits::REQUEST_WINDOW * 2 {
            self.generations.swap(0, 1);
            self.generations[0].clear();
            self.began_at = now;
        }
        self.generations[0].len() < limits::REQUEST_NONCES_MAX / 2
    }

    fn remember(&mut self, nonce: [u8; NONCE_LEN]) {
        self.generations[0].insert(nonce);
    }
}

impl fmt::Debug for Akd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Akd").finish_non_exhaustive()
    }
}

/// A request that has proved itself, ready to be looked up and answered.
pub(crate) struct Answering {
    key: Arc<SigningKey>,
    asked: Asked,
    arp: Arp,
    stamp: Stamp,
    question: Question,
}

#[derive(Clone, Debug)]
enum Asked {
    Time,
    Key(Ipv4Addr),
    /// The whole message, tagged but with its signatures unchecked.
    Change(Vec<u8>),
    /// The whole message, tagged but with the client's signature unchecked.
    Lease(Vec<u8>),
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Akd {
    /// A distributor that signs with `key` and knows each host of its site by the keys made from `masters`.
    #[must_use]
    pub fn new(key: Arc<SigningKey>, masters: impl Into<Succession<RequestMaster>>) -> Akd {
        let budget = PerSource::new(limits::REQUESTS_PER_HOST_PER_SECOND, limits::REQUESTING_HOSTS_MAX);
        let repeats = PerSource::new(limits::REPEATS_PER_HOST_PER_SECOND, limits::REQUESTING_HOSTS_MAX);
        let lease_budget = PerSource::new(limits::LEASE_QUESTIONS_PER_HOST_PER_SECOND, limits::REQUESTING_HOSTS_MAX);
        let (masters, gate) = (Masters::new(masters.into()), EnrolmentGate::new());
        Akd { key, masters, budget, repeats, lease_budget, gate, seen: SeenNonces::default() }
    }

    /// The masters of the site are these from now on.
    pub(crate) fn share(&mut self, masters: &Succession<RequestMaster>, in_front: InFront<'_>) {
        self.masters.share(masters.clone(), in_front);
    }

    /// Goes by the masters that count now, if it is known when that is.
    pub(crate) fn follow(&mut self, now: Now, in_front: InFront<'_>) {
        if let Some(unix_ms) = now.trusted_unix_ms() {
            self.masters.follow(unix_ms / 1000, in_front);
        }
    }

    /// Judges a request; what is returned runs as a job. What is `in_front` is told by what it can tell the next.
    pub(crate) fn request(
        &mut self,
        now: Now,
        message: &Message<'_>,
        weaken: Weaken,
        in_front: InFront<'_>,
    ) -> Result<Answering, DropReason> {
        let (question, asked) = self.prove(message, weaken, in_front)?;
        let unix_ms = now.trusted_unix_ms().ok_or(DropReason::SarpNoClock)?;
        let stamp = Stamp::from_unix_ms(unix_ms);
        if !self.is_admitted(now.since_boot, stamp, message, &question)? && !weaken.budgets {
            return Err(DropReason::SarpBudget);
        }
        Ok(Answering { key: Arc::clone(&self.key), asked, arp: message.arp, stamp, question })
    }

    /// Charges a request to its host: to the large share if it is certainly no recording, else to the small one. A host without
    /// the time cannot stamp its requests, one that gets no answer repeats its nonce, and what cannot be remembered could
    /// come again. False where the share is used up.
    fn is_admitted(
        &mut self,
        now: Instant,
        stamp: Stamp,
        message: &Message<'_>,
        question: &Question,
    ) -> Result<bool, DropReason> {
        let is_timely = Stamp::new(message.seconds, 0).distance(stamp) <= limits::REQUEST_WINDOW;
        if !is_timely && matches!(message.kind, Kind::KeyChange | Kind::Lease) {
            return Err(DropReason::SarpStale);
        }
        let is_new = is_timely && self.seen.make_room(now) && !self.seen.contains(&question.nonce);
        let budget = match (is_new, message.kind) {
            (true, Kind::Lease) => &mut self.lease_budget,
            (true, _) => &mut self.budget,
            (false, _) => &mut self.repeats,
        };
        if !budget.take(now, question.host) {
            return Ok(false);
        }
        // Only what is within the budget, so no single host can fill the memory.
        if is_new {
            self.seen.remember(question.nonce);
        }
        Ok(true)
    }

    /// Reads a request and checks that the host which it names made it: what can be told of its head first, then all of it.
    fn prove(
        &mut self,
        message: &Message<'_>,
        weaken: Weaken,
        in_front: InFront<'_>,
    ) -> Result<(Question, Asked), DropReason> {
        let (question, check, tag) = claimed(message)?;
        let head = message.request_head().ok_or(DropReason::SarpMalformed)?;
        let key = match self.masters.key_of_check(question.host, &head, &check, in_front) {
            Some(key) => key,
            None if weaken.request_tag => self.masters.key_of(question.host),
            None => return Err(DropReason::SarpRequestCheck),
        };
        let signed = message.signed_bytes();
        let is_right = match message.kind {
            Kind::KeyChange => key.verify_change(&without_credential(signed), &tag),
            _ => key.verify(&signed, &tag),
        };
        if is_right || weaken.request_tag { Ok((question, asked(message))) } else { Err(DropReason::SarpRequestTag) }
    }
}

/// Who asks, by what the message says, and its check and tag.
fn claimed(message: &Message<'_>) -> Result<(Question, [u8; CHECK_LEN], [u8; TAG_LEN]), DropReason> {
    let malformed = |_| DropReason::SarpMalformed;
    let at_the_end = <[u8; CREDENTIAL_LEN]>::try_from(message.signature).map_err(|_| DropReason::SarpRequestCheck);
    let (question, credential) = match message.kind {
        Kind::KeyChange => {
            let change = Change::parse(message.data).map_err(malformed)?;
            (change.question, change.credential)
        }
        Kind::Lease => (Lease::parse(message.data).map_err(malformed)?.question, at_the_end?),
        _ => (Question::parse(message.data).map_err(malformed)?, at_the_end?),
    };
    let (mut check, mut tag) = ([0; CHECK_LEN], [0; TAG_LEN]);
    check.copy_from_slice(&credential[..CHECK_LEN]);
    tag.copy_from_slice(&credential[CHECK_LEN..]);
    Ok((question, check, tag))
}

fn asked(message: &Message<'_>) -> Asked {
    match message.kind {
        Kind::KeyChange => Asked::Change(message.emit()),
        Kind::Lease => Asked::Lease(message.emit()),
        Kind::KeyRequest => Asked::Key(message.arp.target_ip),
        _ => Asked::Time,
    }
}

/// The bytes of a key change that its tag covers.
fn without_credential(mut signed_bytes: Vec<u8>) -> Vec<u8> {
    if let Some(credential) = signed_bytes.get_mut(DATA_AT..).and_then(|data| data.get_mut(Change::CREDENTIAL)) {
        credential.fill(0);
    }
    signed_bytes
}

impl Answering {
    /// Whether it writes, or asks a repository that may be far away.
    pub(crate) fn may_wait(&self, records: &dyn Records) -> bool {
        match self.asked {
            Asked::Time => false,
            Asked::Key(_) => !records.is_at_hand(),
            Asked::Change(_) | Asked::Lease(_) => true,
        }
    }

    /// Whose key is asked for.
    pub(crate) fn wanted(&self) -> Option<Ipv4Addr> {
        match self.asked {
            Asked::Key(ip) => Some(ip),
            Asked::Time | Asked::Change(_) | Asked::Lease(_) => None,
        }
    }

    /// Signs, and looks up what was not looked up before, which is `found`; `None` when the repository cannot be read or written,
    /// or says that we are no distributor any more.
    pub(crate) fn run(self, records: &dyn Records, found: Option<Lookup>) -> Option<Vec<u8>> {
        if !records.may_answer(self.may_wait(records)) {
            return None;
        }
        let profile = self.key.profile();
        let (kind, record) = match &self.asked {
            Asked::Time => (Kind::TimeReply, Vec::new()),
            Asked::Key(ip) => describe(found.unwrap_or_else(|| records.find(*ip)))?,
            Asked::Lease(message) => {
                answer_about_lease(records, profile, &Lease::parse(Message::parse(message).ok()?.data).ok()?)?
            }
            Asked::Change(message) => (change_key(records, profile, &Message::parse(message).ok()?)?, Vec::new()),
        };
        let Question { host, nonce } = self.question;
        let data = Answer { fraction: self.stamp.fraction(), host, nonce, rest: &record }.emit();
        let (arp, seconds) = (answer_to(&self.arp), self.stamp.seconds());
        let unsigned = Message { arp, kind, seconds, data: &data, signature: &[] }.signed_bytes();
        let signature = self.key.sign(&unsigned).ok()?;
        Some(seal(unsigned, &signature))
    }
}

fn describe(found: Lookup) -> Option<(Kind, Vec<u8>)> {
    match found {
        Lookup::Good { algorithm, key, mac } => Some((Kind::KeyReply, Record { algorithm, mac, key: &key }.emit())),
        Lookup::Invalid => Some((Kind::KeyInvalid, Vec::new())),
        Lookup::NotFound => Some((Kind::KeyNotFound, Vec::new())),
        Lookup::Failed => None,
    }
}

/// Agrees that a DHCP client has an address, or refuses (section 3.5.2).
fn answer_about_lease(records: &dyn Records, profile: Profile, lease: &Lease<'_>) -> Option<(Kind, Vec<u8>)> {
    let refuse = |why: Refusal| Some((Kind::LeaseRefused, vec![why as u8]));
    match records.host(lease.question.host) {
        HostLookup::Good(asking) if asking.serves_dhcp => {}
        HostLookup::Good(_) | HostLookup::NotGood => return refuse(Refusal::NotServer),
        HostLookup::Failed => return None,
    }
    let client = match records.host(lease.host) {
        HostLookup::Good(client) => client,
        HostLookup::NotGood => return refuse(Refusal::NotGood),
        HostLookup::Failed => return None,
    };
    if let Err(why) = check_client(profile, &client, lease) {
        return refuse(why);
    }
    match enter_lease(records, lease) {
        Binding::Done => {
            let record = Record { algorithm: client.algorithm, mac: client.mac, key: &client.key }.emit();
            Some((Kind::LeaseAgreed, record))
        }
        Binding::Refused(why) => refuse(why),
        Binding::Failed => None,
    }
}

/// Whether the client signed that it wants this address. Without the client's word a server hears
/// whose key it is, and speaks of what was agreed to before.
fn check_client(profile: Profile, client: &Member, lease: &Lease<'_>) -> Result<(), Refusal> {
    let speaks_for_itself = lease.action != LeaseAction::Bind;
    let (claim, signature) = match lease.claim {
        Some(claim) => claim,
        None if speaks_for_itself => return Ok(()),
        None => return Err(Refusal::Signature),
    };
    if client.mac.is_some_and(|mac| mac != claim.chaddr) {
        return Err(Refusal::Mac);
    }
    let wants = claim.kind == MessageType::Request && claim.wanted() == Some(lease.address);
    let signed = dhcp::proof::signed_bytes(Maker::Client, &claim);
    let is_right = verify_with_record(profile, (client.algorithm, &client.key), &signed, signature).is_ok();
    if is_right && (lease.action != LeaseAction::Bind || wants) { Ok(()) } else { Err(Refusal::Signature) }
}

fn enter_lease(records: &dyn Records, lease: &Lease<'_>) -> Binding {
    let (host, ip) = (lease.host, lease.address);
    match lease.action {
        LeaseAction::Check => Binding::Done,
        LeaseAction::Bind => records.lease(&Grant { host, ip, time: Some(limits::PROPOSAL_TIME), only_if_held: false }),
        LeaseAction::Extend => {
            let time = (lease.seconds != u32::MAX).then(|| Duration::from_secs(u64::from(lease.seconds)));
            records.lease(&Grant { host, ip, time, only_if_held: true })
        }
        LeaseAction::Unbind => records.unbind(host, ip),
    }
}

/// Enters a host's new key (section 3.2) if the old one signed for it and the new one proves itself. A host that did not
/// hear our answer asks again: its new key is entered already then. The request has proved who asks, so a refusal is told. A
/// key of another profile than the distributor's is none.
fn change_key(records: &dyn Records, profile: Profile, message: &Message<'_>) -> Option<Kind> {
    let change = Change::parse(message.data).ok()?;
    if verify_with_record(profile, (change.algorithm, change.key), &change.proved_bytes(), change.proof).is_err() {
        return Some(Kind::KeyInvalid);
    }
    let ip = message.arp.sender_ip;
    let (algorithm, key) = match records.find(ip) {
        Lookup::Good { algorithm, key, .. } => (algorithm, key),
        Lookup::Invalid => return Some(Kind::KeyInvalid),
        Lookup::NotFound => return Some(Kind::KeyNotFound),
        Lookup::Failed => return None,
    };
    if key == change.key {
        return Some(Kind::KeyChanged);
    }
    if verify_with_record(profile, (algorithm, &key), &message.signed_bytes(), message.signature).is_err() {
        return Some(Kind::KeyInvalid);
    }
    let new = RecordKey { algorithm: change.algorithm, key: change.key };
    records.replace(ip, &key, new).then_some(Kind::KeyChanged)
}

/// The ARP message of an answer, as the original daemon writes it: from the address asked about, hardware address zero.
fn answer_to(request: &Arp) -> Arp {
    Arp {
        operation: Operation::Reply,
        sender_mac: MacAddress::ZERO,
        sender_ip: request.target_ip,
        target_mac: request.sender_mac,
        target_ip: request.sender_ip,
    }
}
