//! The slow half of a handshake: signatures, certificates, key agreement. Runs on a worker thread, never on the data path.
//!
//! A job owns all it needs and touches nothing else, so it can run anywhere; the lab runs it in virtual time. One job
//! does all the public key work of one message, because every hand-over between threads costs as much as a signature.
//!
//! Here the messages of the ARP handshake; `rollover.rs` has those that replace the keys of an
//! association, `resumption.rs` those that lead back to one by a ticket, `kem.rs` those that bring
//! a secret of ML-KEM into one, `broadcast.rs` what is said to all, `dhcp.rs` the certificates that
//! come with leases.

pub(crate) mod broadcast;
mod dhcp;
mod kem;
mod resumption;
mod rollover;

use std::net::IpAddr;
use std::sync::Arc;

use bump::{DropReason, SecretSource};
use identity::agreement::KeyPair;
use identity::certificate::HostCertificate;
use identity::kem::KemPair;
use identity::pre_shared::PreSharedKey;
use identity::schedule::AddedSecret;
use identity::ticket::TicketKey;
use identity::{HostIdentity, Profile, Verified, hash};
use wire::MacAddress;
use wire::arp::Operation;
use wire::cll::handshake::{Handshake, append_signature, unsigned_parts};
use wire::cll::{COOKIE_LEN, Offer, Resolution};

pub(crate) use self::dhcp::{DhcpDone, DhcpJob};
use crate::keys::{AssociationKeys, Chosen, Direction, derive};
use crate::revocation::Revoked;
use crate::secrecy::Secrecy;
use crate::settings::Settings;
use crate::ticket::Proof;
pub(crate) use kem::{AnswerKem, FinishKem, Inside};
pub(crate) use resumption::{AnswerResumption, FinishResumption, bind_request};
pub(crate) use rollover::{AnswerRollover, FinishRollover, SignRollover, Successor};

/// Separates the two signatures, so that none can stand for the other.
const REQUEST_LABEL: &[u8] = b"ringwall cll 2 request";
const REPLY_LABEL: &[u8] = b"ringwall cll 2 reply";

/// What this host knows of the time when it judges a certificate, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CertificateTime {
    /// The wall clock shows this.
    Shown(u64),
    /// The wall clock is wrong; it is this second or a later one.
    NotBefore(u64),
}

impl CertificateTime {
    /// The earliest second that it can be.
    pub(crate) fn unix_s(self) -> u64 {
        let (CertificateTime::Shown(unix_s) | CertificateTime::NotBefore(unix_s)) = self;
        unix_s
    }
}

/// What every judgement needs beside the messages.
#[derive(Clone, Debug)]
pub(crate) struct Origins {
    pub(crate) settings: Arc<Settings>,
    pub(crate) revoked: Arc<Revoked>,
    pub(crate) time: CertificateTime,
}

/// Slow work of the link layer.
#[derive(Debug)]
pub struct Job(pub(crate) JobKind);

#[derive(Debug)]
pub(crate) enum JobKind {
    /// Make key pairs for handshakes to come.
    PrepareKeyPairs(Profile, usize),
    /// Make pairs of ML-KEM for exchanges to come.
    PrepareKemPairs(usize),
    /// Sign our request.
    SignRequest(SignRequest),
    /// Judge a request and write the reply.
    Answer(Box<Answer>),
    /// Judge the reply to our request.
    Finish(Box<Finish>),
    /// Sign our request for a rollover.
    SignRollover(SignRollover),
    /// Judge a request for a rollover and write the reply.
    AnswerRollover(Box<AnswerRollover>),
    /// Judge the reply to our request for a rollover.
    FinishRollover(Box<FinishRollover>),
    /// Answer a request with ML-KEM.
    AnswerKem(Box<AnswerKem>),
    /// Take the reply to ours.
    FinishKem(Box<FinishKem>),
    /// Work for frames to groups.
    Broadcast(broadcast::Work),
    /// A certificate of DHCP.
    Dhcp(Box<DhcpJob>),
    /// Make a key for tickets to come.
    MakeTicketKey,
    /// Judge a request with a ticket and write the reply.
    AnswerResumption(Box<AnswerResumption>),
    /// Judge the reply to our request with a ticket.
    FinishResumption(Box<FinishResumption>),
}

/// What a job came to.
pub struct Completion(pub(crate) CompletionKind);

pub(crate) enum CompletionKind {
    KeyPairs(Vec<KeyPair>),
    KemPairs(Vec<KemPair>),
    /// Our request, signed.
    Signed(Option<Vec<u8>>),
    /// The peer's request was good; here is the signed reply.
    Answered(Result<Box<Answered>, Refusal>),
    /// The peer's reply was good.
    Finished(Result<Box<Finished>, Refusal>),
    /// Work for frames to groups.
    Broadcast(broadcast::Outcome),
    /// What became of a certificate of DHCP.
    Dhcp(Box<DhcpDone>),
    /// A key for tickets.
    TicketKey(TicketKey),
    /// The worker died or was too busy.
    Lost,
}

impl Completion {
    /// The completion of a job that could not be run.
    #[must_use]
    pub fn lost() -> Completion {
        Completion(CompletionKind::Lost)
    }
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            CompletionKind::KeyPairs(_) => "KeyPairs",
            CompletionKind::KemPairs(_) => "KemPairs",
            CompletionKind::Signed(_) => "Signed",
            CompletionKind::Answered(_) => "Answered",
            CompletionKind::Finished(_) => "Finished",
            CompletionKind::Broadcast(_) => "Broadcast",
            CompletionKind::Dhcp(_) => "Dhcp",
            CompletionKind::TicketKey(_) => "TicketKey",
            CompletionKind::Lost => "Lost",
        })
    }
}

/// Why a handshake message was refused, for counters and for the operator.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: DropReason,
    pub(crate) detail: String,
}

impl Refusal {
    pub(crate) fn new(reason: DropReason, detail: impl ToString) -> Refusal {
        Refusal { reason, detail: detail.to_string() }
    }
}

impl From<DropReason> for Refusal {
    fn from(reason: DropReason) -> Refusal {
        Refusal::new(reason, reason.meaning())
    }
}

#[derive(Debug)]
pub(crate) struct SignRequest {
    pub(crate) identity: Arc<HostIdentity>,
    pub(crate) unsigned: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) origins: Origins,
    pub(crate) request: Vec<u8>,
    pub(crate) unsigned_reply: Vec<u8>,
    pub(crate) key_pair: KeyPair,
}

pub(crate) struct Answered {
    pub(crate) peer: Verified<HostCertificate>,
    pub(crate) keys: AssociationKeys,
    pub(crate) reply: Vec<u8>,
    pub(crate) transcript: [u8; 32],
    pub(crate) proof: Proof,
    pub(crate) secrecy: Secrecy,
}

impl Answered {
    /// What both sides have agreed on, and our reply.
    pub(crate) fn split(self) -> (Finished, Vec<u8>) {
        let Answered { peer, keys, reply, transcript, proof, secrecy } = self;
        (Finished { peer, keys, transcript, proof, secrecy }, reply)
    }
}

#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) origins: Origins,
    pub(crate) request: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    pub(crate) key_pair: Arc<KeyPair>,
    pub(crate) asked_ip: Option<IpAddr>,
    pub(crate) asked_mac: Option<MacAddress>,
}

/// What both sides have agreed on.
pub(crate) struct Finished {
    pub(crate) peer: Verified<HostCertificate>,
    pub(crate) keys: AssociationKeys,
    pub(crate) transcript: [u8; 32],
    pub(crate) proof: Proof,
    pub(crate) secrecy: Secrecy,
}

impl Job {
    /// Whether a handshake waits for the result; key pairs and keys of tickets are made ahead and nobody waits for them.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        !matches!(self.0, JobKind::PrepareKeyPairs(..) | JobKind::PrepareKemPairs(_) | JobKind::MakeTicketKey)
    }

    /// Does the work. Private keys and keys of tickets come from `secrets`.
    #[must_use]
    pub fn run(self, secrets: &mut dyn SecretSource) -> Completion {
        Completion(match self.0 {
            JobKind::PrepareKeyPairs(profile, count) => CompletionKind::KeyPairs(prepare(profile, count, secrets)),
            JobKind::PrepareKemPairs(count) => {
                CompletionKind::KemPairs((0..count).filter_map(|_| KemPair::generate().ok()).collect())
            }
            JobKind::SignRequest(job) => CompletionKind::Signed(job.run()),
            JobKind::Answer(job) => CompletionKind::Answered(job.run().map(Box::new)),
            JobKind::Finish(job) => CompletionKind::Finished(job.run().map(Box::new)),
            JobKind::SignRollover(job) => CompletionKind::Signed(job.run()),
            JobKind::AnswerRollover(job) => CompletionKind::Answered(job.run().map(Box::new)),
            JobKind::FinishRollover(job) => CompletionKind::Finished(job.run().map(Box::new)),
            JobKind::AnswerKem(job) => CompletionKind::Answered(job.run().map(Box::new)),
            JobKind::FinishKem(job) => CompletionKind::Finished(job.run().map(Box::new)),
            JobKind::Broadcast(work) => CompletionKind::Broadcast(work.run()),
            JobKind::Dhcp(job) => CompletionKind::Dhcp(Box::new(job.run())),
            JobKind::MakeTicketKey => secrets
                .secret()
                .map_or(CompletionKind::Lost, |secret| CompletionKind::TicketKey(TicketKey::from_bytes(*secret))),
            JobKind::AnswerResumption(job) => CompletionKind::Answered(job.run().map(Box::new)),
            JobKind::FinishResumption(job) => CompletionKind::Finished(job.run().map(Box::new)),
        })
    }
}

fn prepare(profile: Profile, count: usize, secrets: &mut dyn SecretSource) -> Vec<KeyPair> {
    (0..count).filter_map(|_| KeyPair::of_profile(profile, &*secrets.secret()?).ok()).collect()
}

impl SignRequest {
    pub(crate) fn run(self) -> Option<Vec<u8>> {
        let signature = self.identity.sign(&signed_request(unsigned_parts(&self.unsigned))).ok()?;
        let mut message = self.unsigned;
        append_signature(&mut message, &signature);
        Some(message)
    }
}

impl Answer {
    pub(crate) fn run(self) -> Result<Answered, Refusal> {
        let settings = &self.origins.settings;
        let request = parse(&self.request)?;
        let signed = signed_request(request.signed_parts(&self.request));
        let peer = judge(&self.origins, &request, &signed, false)?;
        let peers = accept(settings, request.offer)?;
        let own = parse_own(&self.unsigned_reply, settings)?;
        let mut reply = self.unsigned_reply;
        let signed = signed_reply(&self.request, unsigned_parts(&reply));
        let signature = settings.identity.sign(&signed).map_err(|error| Refusal::new(DropReason::JobLost, error))?;
        append_signature(&mut reply, &signature);
        let transcript = transcript(&self.request, &reply);
        let shared =
            self.key_pair.agree(request.key_share).map_err(|error| Refusal::new(DropReason::BadKeyShare, error))?;
        let pre_shared = settings.pre_shared.first();
        let added = added(pre_shared);
        let keys = derive(&shared, &added, &transcript, Direction::FromResponder, own, peers)
            .map_err(|error| Refusal::new(DropReason::JobLost, error))?;
        let proof = Proof::signed(self.origins.time.unix_s());
        Ok(Answered { peer, keys, reply, transcript, proof, secrecy: secrecy_of(pre_shared) })
    }
}

impl Finish {
    pub(crate) fn run(self) -> Result<Finished, Refusal> {
        let settings = &self.origins.settings;
        let reply = parse(&self.reply)?;
        let signed = signed_reply(&self.request, reply.signed_parts(&self.reply));
        let peer = judge(&self.origins, &reply, &signed, settings.weaken.reply_check)?;
        self.check_asked(&reply)?;
        let peers = accept(settings, reply.offer)?;
        let own = Chosen { offer: parse(&self.request)?.offer, suite: settings.send_suite };
        let shared =
            self.key_pair.agree(reply.key_share).map_err(|error| Refusal::new(DropReason::BadKeyShare, error))?;
        let transcript = transcript(&self.request, &self.reply);
        let pre_shared = self.pre_shared_of(&reply)?;
        let keys = derive(&shared, &added(pre_shared), &transcript, Direction::FromInitiator, own, peers)
            .map_err(|error| Refusal::new(DropReason::JobLost, error))?;
        let proof = Proof::signed(self.origins.time.unix_s());
        Ok(Finished { peer, keys, transcript, proof, secrecy: secrecy_of(pre_shared) })
    }

    /// Which of our pre-shared keys the responder has answered with.
    fn pre_shared_of(&self, reply: &Handshake<'_>) -> Result<Option<&PreSharedKey>, Refusal> {
        if self.origins.settings.pre_shared.is_empty() {
            return Ok(None);
        }
        let request = hash_without_tag(&self.request);
        let key = self.origins.settings.pre_shared.iter().find(|key| key.verify(&request, &reply.cookie));
        key.map(Some).ok_or_else(|| Refusal::new(DropReason::PreSharedKey, "pre-shared keys differ"))
    }

    /// The one who answers must be the one who was asked.
    fn check_asked(&self, reply: &Handshake<'_>) -> Result<(), Refusal> {
        let ip_fits = self.asked_ip.is_none_or(|ip| ip == reply.resolution.sender_ip());
        let mac_fits = self.asked_mac.is_none_or(|mac| mac == reply.resolution.sender_mac());
        if (ip_fits && mac_fits) || self.origins.settings.weaken.cross_layer {
            return Ok(());
        }
        Err(Refusal::new(DropReason::CertificateAddress, "the answer comes from another host than the one asked"))
    }
}

/// What stands in the cookie of our reply: it shows the initiator which pre-shared key this host
/// has.
pub(crate) fn pre_shared_check(settings: &Settings, request: &[u8]) -> [u8; COOKIE_LEN] {
    settings.pre_shared.first().map_or([0; COOKIE_LEN], |key| key.check(&hash_without_tag(request)))
}

/// What goes into the keys beside the key agreement.
fn added(pre_shared: Option<&PreSharedKey>) -> Vec<&AddedSecret> {
    pre_shared.into_iter().map(PreSharedKey::secret).collect()
}

fn secrecy_of(pre_shared: Option<&PreSharedKey>) -> Secrecy {
    Secrecy { post_quantum: false, pre_shared: pre_shared.map(PreSharedKey::name) }
}

fn parse(message: &[u8]) -> Result<Handshake<'_>, Refusal> {
    Handshake::parse(message).map_err(|error| Refusal::new(DropReason::Malformed, error))
}

/// Certificate, signature, and the addresses that the certificate binds: whatever follows may rely on the sender.
fn judge(
    origins: &Origins,
    message: &Handshake<'_>,
    signed: &[u8],
    signature_unchecked: bool,
) -> Result<Verified<HostCertificate>, Refusal> {
    let peer = origins.judge_certificate(message.certificate)?;
    let signature = peer.verify_signature(signed, message.signature);
    if !signature_unchecked {
        signature.map_err(|error| Refusal::new(DropReason::BadSignature, error))?;
    }
    // Cross-layer check of the paper's section 5.2: claimed IP and MAC against the certificate.
    if !origins.settings.weaken.cross_layer && !binds(&peer, &message.resolution) {
        let (ip, mac) = (message.resolution.sender_ip(), message.resolution.sender_mac());
        let detail = format!("{} claims {ip} at {mac}", peer.name());
        return Err(Refusal::new(DropReason::CertificateAddress, detail));
    }
    Ok(peer)
}

/// Whether the certificate binds the sender's addresses. A host without an IPv4 address claims none where only hardware
/// addresses matter. Whether the host may have an IPv6 address is not in the certificate; control judges it.
fn binds(peer: &HostCertificate, message: &Resolution) -> bool {
    let claims_none = message.operation() == Operation::Reply || message.is_by_hardware_address();
    let is_bound = match message {
        Resolution::Arp(arp) if arp.sender_ip.is_unspecified() => claims_none,
        Resolution::Arp(arp) => peer.addresses().contains(&arp.sender_ip),
        Resolution::Neighbour(_) => true,
    };
    is_bound && peer.mac() == message.sender_mac()
}

impl Origins {
    /// This site's authority issued it, it is valid now, and it was not taken back.
    fn judge_certificate(&self, certificate: &[u8]) -> Result<Verified<HostCertificate>, Refusal> {
        let anchor = self.settings.identity.anchor();
        let peer = match self.time {
            CertificateTime::Shown(unix_s) => anchor.verify(certificate, unix_s),
            CertificateTime::NotBefore(unix_s) => anchor.verify_since(certificate, unix_s),
        };
        let peer = peer.map_err(|refusal| Refusal::new(DropReason::BadCertificate, refusal))?;
        if self.revoked.names(&peer) {
            let detail = format!("the certificate of {} was revoked", peer.name());
            return Err(Refusal::new(DropReason::BadCertificate, detail));
        }
        Ok(peer)
    }
}

fn accept(settings: &Settings, offer: Offer) -> Result<Chosen, Refusal> {
    let suite = settings.require.accept(&offer);
    let suite = suite.ok_or_else(|| {
        let protection = if offer.confidential { "encrypts" } else { "only authenticates" };
        Refusal::new(DropReason::WeakOffer, format!("the peer {protection} with suite {}", offer.suite))
    })?;
    settings.check_secrets(&offer).map_err(|(reason, detail)| Refusal::new(reason, detail))?;
    Ok(Chosen { offer, suite })
}

/// Our own reply is not signed yet; an empty signature makes it readable.
fn parse_own(unsigned_reply: &[u8], settings: &Settings) -> Result<Chosen, Refusal> {
    let mut readable = unsigned_reply.to_vec();
    append_signature(&mut readable, &[]);
    Ok(Chosen { offer: parse(&readable)?.offer, suite: settings.send_suite })
}

fn signed_request([before, after]: [&[u8]; 2]) -> Vec<u8> {
    [REQUEST_LABEL, before, after].concat()
}

/// A reply's signature covers the whole request, so that neither side can be shown another's handshake.
fn signed_reply(request: &[u8], [before, after]: [&[u8]; 2]) -> Vec<u8> {
    [REPLY_LABEL, &hash_without_tag(request), before, after].concat()
}

pub(crate) fn transcript(request: &[u8], reply: &[u8]) -> [u8; 32] {
    hash::sha256(&[b"ringwall cll 2 transcript", &hash_without_tag(request), &hash_without_tag(reply)])
}

/// The site tag stands outside: it is renewed when the same message goes to another Ethernet address.
fn hash_without_tag(message: &[u8]) -> [u8; 32] {
    hash::sha256(&wire::cll::handshake::tagged_parts(message))
}
