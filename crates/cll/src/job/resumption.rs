//! The slow half of a resumption (docs/protocol.md, section 25): a ticket opened, a binder, a key
//! agreement, one signature, and certificates judged again.
//!
//! The binder shows that the peer has the secret of the ticket, which only the holder of the ticket and its issuer ever had. The
//! new keys come from that secret and from fresh key shares, so a ticket that is stolen later opens nothing.
//!
//! The issuer also signs its reply: whoever copied the holder's tickets from its disk is not the
//! issuer to the holder. The holder signs nothing, so whoever copied the issuer's ticket key can be
//! any holder to the issuer until the key is replaced.

use std::net::IpAddr;
use std::sync::Arc;

use bump::DropReason;
use identity::Verified;
use identity::agreement::KeyPair;
use identity::certificate::HostCertificate;
use identity::hash;
use identity::pre_shared::PreSharedKey;
use identity::schedule::AddedSecret;
use identity::ticket::{ResumptionSecret, TicketKey};
use wire::MacAddress;
use wire::cll::Resolution;
use wire::cll::handshake::tagged_parts;
use wire::cll::resumption::{Kind, Resumption, append_signature};

use super::{Answered, Finished, Origins, Refusal, accept, binds, hash_without_tag};
use crate::keys::{AssociationKeys, Chosen, Direction, derive_from};
use crate::secrecy::Secrecy;
use crate::settings::Settings;
use crate::ticket::{Content, HeldTicket, Proof, id_of, name_of};

const REQUEST_LABEL: &[u8] = b"ringwall cll 2 resumption request";
const REPLY_LABEL: &[u8] = b"ringwall cll 2 resumption reply";
const SIGNATURE_LABEL: &[u8] = b"ringwall cll 2 resumption signature";
const TRANSCRIPT_LABEL: &[u8] = b"ringwall cll 2 resumption transcript";

/// A request with a ticket that this host may have issued.
#[derive(Debug)]
pub(crate) struct AnswerResumption {
    pub(crate) origins: Origins,
    /// This host's keys, newest first.
    pub(crate) ticket_keys: Vec<TicketKey>,
    pub(crate) request: Vec<u8>,
    pub(crate) unbound_reply: Vec<u8>,
    pub(crate) own: Chosen,
    pub(crate) key_pair: KeyPair,
}

/// A reply to our request with a ticket.
#[derive(Debug)]
pub(crate) struct FinishResumption {
    pub(crate) origins: Origins,
    pub(crate) held: Arc<HeldTicket>,
    pub(crate) request: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    pub(crate) key_pair: Arc<KeyPair>,
    pub(crate) asked_ip: Option<IpAddr>,
}

impl AnswerResumption {
    pub(crate) fn run(self) -> Result<Answered, Refusal> {
        let request = parse(&self.request)?;
        let Kind::Request(ticket) = request.kind else { return Err(Refusal::new(DropReason::Malformed, "no request")) };
        let content = self.open_ticket(ticket)?;
        if !content.secret.verify(REQUEST_LABEL, &tagged_parts(request.bound_part(&self.request)), &request.binder) {
            return Err(bad_binder());
        }
        let peer = self.origins.judge(&content.certificate, &request.resolution)?;
        let peers = accept(&self.origins.settings, request.offer)?;
        let reply = bind_reply(&content.secret, &self.request, self.unbound_reply);
        let reply = self.origins.sign_reply(&self.request, reply)?;
        let pre_shared = pre_shared_of(&self.origins.settings, content.secrecy);
        let exchange = Exchange { secret: &content.secret, pre_shared, request: &self.request, reply: &reply };
        let (own, sending) = (self.own, Direction::FromResponder);
        let (keys, transcript) = exchange.keys(&self.key_pair, request.key_share, sending, own, peers)?;
        let proof = Proof { signed_unix_s: content.span.signed, ticket: id_of(ticket) };
        Ok(Answered { peer, keys, reply, transcript, proof, secrecy: content.secrecy })
    }

    /// What we once wrote into this ticket, if it is ours, still good, and we are who we were.
    fn open_ticket(&self, ticket: &[u8]) -> Result<Content, Refusal> {
        let opened = self.ticket_keys.iter().find_map(|key| key.open(ticket).ok());
        let content = opened.as_deref().and_then(|content| Content::parse(content));
        let content =
            content.ok_or_else(|| Refusal::new(DropReason::TicketUnknown, "no key of ours opens the ticket"))?;
        let settings = &self.origins.settings;
        if content.issuer != name_of(settings.identity.certificate()) {
            let detail = "the ticket was issued under another certificate of ours";
            return Err(Refusal::new(DropReason::TicketUnknown, detail));
        }
        if !content.secrecy.is_in_force(settings) {
            let detail = "the ticket was issued under another pre-shared key, or without the one that there is now";
            return Err(Refusal::new(DropReason::TicketUnknown, detail));
        }
        if !content.span.includes(self.origins.time.unix_s(), settings.clock_tolerance) {
            return Err(Refusal::new(DropReason::TicketExpired, "the ticket's time is over, or our clock is wrong"));
        }
        Ok(content)
    }
}

impl FinishResumption {
    pub(crate) fn run(self) -> Result<Finished, Refusal> {
        let reply = parse(&self.reply)?;
        let Kind::Reply(signature) = reply.kind else { return Err(Refusal::new(DropReason::Malformed, "no reply")) };
        let secret = &self.held.secret;
        let [before, after] = tagged_parts(reply.bound_part(&self.reply));
        if !secret.verify(REPLY_LABEL, &[&hash_without_tag(&self.request), before, after], &reply.binder) {
            return Err(bad_binder());
        }
        let peer = self.origins.judge(self.held.issuer.der(), &reply.resolution)?;
        let signed = signed_reply(&self.request, reply.signed_part(&self.reply));
        peer.verify_signature(&signed, signature).map_err(|error| Refusal::new(DropReason::BadSignature, error))?;
        if self.asked_ip.is_some_and(|asked| asked != reply.resolution.sender_ip()) {
            return Err(Refusal::new(
                DropReason::CertificateAddress,
                "the answer is for another address than the one asked",
            ));
        }
        let peers = accept(&self.origins.settings, reply.offer)?;
        let secrecy = self.held.secrecy;
        let pre_shared = pre_shared_of(&self.origins.settings, secrecy);
        let exchange = Exchange { secret, pre_shared, request: &self.request, reply: &self.reply };
        let own = Chosen { offer: parse(&self.request)?.offer, suite: self.origins.settings.send_suite };
        let sending = Direction::FromInitiator;
        let (keys, transcript) = exchange.keys(&self.key_pair, reply.key_share, sending, own, peers)?;
        let proof = Proof { signed_unix_s: self.held.span.signed, ticket: id_of(&self.held.ticket) };
        Ok(Finished { peer, keys, transcript, proof, secrecy })
    }
}

impl Origins {
    /// The certificate as it stands now, and that it binds the addresses in the message (paper, section 5.2).
    fn judge(&self, certificate: &[u8], message: &Resolution) -> Result<Verified<HostCertificate>, Refusal> {
        let peer = self.judge_certificate(certificate)?;
        if !self.settings.weaken.cross_layer && !binds(&peer, message) {
            return Err(misbound(&peer, message.sender_ip(), message.sender_mac()));
        }
        Ok(peer)
    }

    /// Appends our signature to a bound reply.
    fn sign_reply(&self, request: &[u8], mut bound: Vec<u8>) -> Result<Vec<u8>, Refusal> {
        let signature = self.settings.identity.sign(&signed_reply(request, &bound));
        append_signature(&mut bound, &signature.map_err(|error| Refusal::new(DropReason::JobLost, error))?);
        Ok(bound)
    }
}

/// What a reply's signature covers: the request, and all of the reply before the signature but its
/// site tag.
fn signed_reply(request: &[u8], bound: &[u8]) -> Vec<u8> {
    let [before, after] = tagged_parts(bound);
    [SIGNATURE_LABEL, &hash_without_tag(request), before, after].concat()
}

fn misbound(peer: &HostCertificate, ip: IpAddr, mac: MacAddress) -> Refusal {
    let detail = format!("the ticket of {} came from {ip} at {mac}", peer.name());
    Refusal::new(DropReason::CertificateAddress, detail)
}

fn bad_binder() -> Refusal {
    Refusal::new(DropReason::BadBinder, "the sender does not have the secret of the ticket")
}

fn parse(message: &[u8]) -> Result<Resumption<'_>, Refusal> {
    Resumption::parse(message).map_err(|error| Refusal::new(DropReason::Malformed, error))
}

/// The pre-shared key under which a ticket was issued, which is in force.
fn pre_shared_of(settings: &Settings, secrecy: Secrecy) -> Option<&AddedSecret> {
    secrecy.pre_shared.and_then(|name| settings.pre_shared_named(name)).map(PreSharedKey::secret)
}

/// A whole exchange.
struct Exchange<'a> {
    secret: &'a ResumptionSecret,
    pre_shared: Option<&'a AddedSecret>,
    request: &'a [u8],
    reply: &'a [u8],
}

impl Exchange<'_> {
    fn keys(
        &self,
        own_pair: &KeyPair,
        peers_share: &[u8],
        sending: Direction,
        own: Chosen,
        peers: Chosen,
    ) -> Result<(AssociationKeys, [u8; 32]), Refusal> {
        let shared = own_pair.agree(peers_share).map_err(|error| Refusal::new(DropReason::BadKeyShare, error))?;
        let transcript = transcript(self.request, self.reply);
        let schedule = self.secret.schedule(&shared, self.pre_shared, &transcript);
        let schedule = schedule.ok_or_else(|| Refusal::new(DropReason::BadKeyShare, "tickets go with X25519"))?;
        let keys = derive_from(&schedule, sending, own, peers);
        Ok((keys.map_err(|error| Refusal::new(DropReason::JobLost, error))?, transcript))
    }
}

/// Appends its binder to our request. It costs two hashes, so nobody hands it over to a worker.
pub(crate) fn bind_request(secret: &ResumptionSecret, mut unbound: Vec<u8>) -> Vec<u8> {
    let binder = secret.binder(REQUEST_LABEL, &tagged_parts(&unbound));
    unbound.extend_from_slice(&binder);
    unbound
}

fn bind_reply(secret: &ResumptionSecret, request: &[u8], mut unbound: Vec<u8>) -> Vec<u8> {
    let [before, after] = tagged_parts(&unbound);
    let binder = secret.binder(REPLY_LABEL, &[&hash_without_tag(request), before, after]);
    unbound.extend_from_slice(&binder);
    unbound
}

fn transcript(request: &[u8], reply: &[u8]) -> [u8; 32] {
    hash::sha256(&[TRANSCRIPT_LABEL, &hash_without_tag(request), &hash_without_tag(reply)])
}
