//! The slow half of a rollover (paper, section 5.4): a new key agreement, and both certificates judged again.
//!
//! The seal proves that the association's peer speaks. The signature proves more: that it holds the key of the certificate
//! that it has now, so that who once stole traffic keys is out after the next rollover. What is signed and what the new keys
//! come from includes the transcript of the association in which the messages travel, so that they mean nothing in another.

use std::sync::Arc;

use bump::DropReason;
use identity::agreement::KeyPair;
use identity::certificate::HostCertificate;
use identity::schedule::AddedSecret;
use identity::{HostIdentity, Verified, hash};
use wire::MacAddress;
use wire::cll::handshake::append_signature;
use wire::cll::rollover::{Keys, Rollover};

use super::{Answered, Finished, Origins, Refusal, accept};
use crate::keys::{Chosen, Direction, derive};
use crate::secrecy::Secrecy;
use crate::ticket::Proof;

const REQUEST_LABEL: &[u8] = b"ringwall cll 2 rollover request";
const REPLY_LABEL: &[u8] = b"ringwall cll 2 rollover reply";
const TRANSCRIPT_LABEL: &[u8] = b"ringwall cll 2 rollover transcript";

/// The association that a rollover replaces.
#[derive(Clone, Debug)]
pub(crate) struct Successor {
    /// Its transcript.
    pub(crate) of: [u8; 32],
    /// Its peer, which must be that of the new one.
    pub(crate) peer: MacAddress,
    /// What it hands on.
    pub(crate) kept: Option<Arc<AddedSecret>>,
    /// The secrets that are in that.
    pub(crate) secrecy: Secrecy,
}

impl Successor {
    /// What goes into the new keys beside the new key agreement.
    fn added(&self) -> Vec<&AddedSecret> {
        self.kept.as_deref().into_iter().collect()
    }
}

#[derive(Debug)]
pub(crate) struct SignRollover {
    pub(crate) identity: Arc<HostIdentity>,
    pub(crate) successor: Successor,
    pub(crate) unsigned: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct AnswerRollover {
    pub(crate) origins: Origins,
    pub(crate) successor: Successor,
    pub(crate) request: Vec<u8>,
    pub(crate) unsigned_reply: Vec<u8>,
    pub(crate) own: Chosen,
    pub(crate) key_pair: KeyPair,
}

#[derive(Debug)]
pub(crate) struct FinishRollover {
    pub(crate) origins: Origins,
    pub(crate) successor: Successor,
    pub(crate) request: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    pub(crate) key_pair: Arc<KeyPair>,
}

impl SignRollover {
    pub(crate) fn run(self) -> Option<Vec<u8>> {
        let signed = [REQUEST_LABEL, &self.successor.of, &self.unsigned].concat();
        let signature = self.identity.sign(&signed).ok()?;
        let mut message = self.unsigned;
        append_signature(&mut message, &signature);
        Some(message)
    }
}

impl AnswerRollover {
    pub(crate) fn run(self) -> Result<Answered, Refusal> {
        let settings = &self.origins.settings;
        let request = parse(&self.request)?;
        let signed_request = request.signed_part(&self.request);
        let signed = [REQUEST_LABEL, &self.successor.of, signed_request].concat();
        let peer = judge(&self.origins, self.successor.peer, &request, &signed)?;
        let peers = accept(settings, request.offer)?;
        let mut reply = self.unsigned_reply;
        let signed = signed_reply(&self.successor, &self.request, &reply);
        let signature = settings.identity.sign(&signed).map_err(|error| Refusal::new(DropReason::JobLost, error))?;
        append_signature(&mut reply, &signature);
        let transcript = transcript(&self.successor, &self.request, &reply);
        let shared =
            self.key_pair.agree(request.key_share).map_err(|error| Refusal::new(DropReason::BadKeyShare, error))?;
        let added = self.successor.added();
        let keys = derive(&shared, &added, &transcript, Direction::FromResponder, self.own, peers)
            .map_err(|error| Refusal::new(DropReason::JobLost, error))?;
        let proof = Proof::signed(self.origins.time.unix_s());
        Ok(Answered { peer, keys, reply, transcript, proof, secrecy: self.successor.secrecy })
    }
}

impl FinishRollover {
    pub(crate) fn run(self) -> Result<Finished, Refusal> {
        let settings = &self.origins.settings;
        let reply = parse(&self.reply)?;
        let signed = signed_reply(&self.successor, &self.request, reply.signed_part(&self.reply));
        let peer = judge(&self.origins, self.successor.peer, &reply, &signed)?;
        let peers = accept(settings, reply.offer)?;
        let own = Chosen { offer: parse(&self.request)?.offer, suite: settings.send_suite };
        let shared =
            self.key_pair.agree(reply.key_share).map_err(|error| Refusal::new(DropReason::BadKeyShare, error))?;
        let transcript = transcript(&self.successor, &self.request, &self.reply);
        let added = self.successor.added();
        let keys = derive(&shared, &added, &transcript, Direction::FromInitiator, own, peers)
            .map_err(|error| Refusal::new(DropReason::JobLost, error))?;
        let proof = Proof::signed(self.origins.time.unix_s());
        Ok(Finished { peer, keys, transcript, proof, secrecy: self.successor.secrecy })
    }
}

fn parse(message: &[u8]) -> Result<Keys<'_>, Refusal> {
    match Rollover::parse(message) {
        Ok(Rollover::Keys(keys)) => Ok(keys),
        Ok(_) => Err(Refusal::new(DropReason::InnerMalformed, "no message with a certificate")),
        Err(error) => Err(Refusal::new(DropReason::InnerMalformed, error)),
    }
}

/// The certificate that the peer has now, its signature, and that it is the same host as before.
fn judge(
    origins: &Origins,
    expected: MacAddress,
    message: &Keys<'_>,
    signed: &[u8],
) -> Result<Verified<HostCertificate>, Refusal> {
    let peer = origins.judge_certificate(message.certificate)?;
    let signature = peer.verify_signature(signed, message.signature);
    signature.map_err(|error| Refusal::new(DropReason::BadSignature, error))?;
    if peer.mac() != expected {
        let detail = format!("{} has a certificate for {} in the association of {expected}", peer.name(), peer.mac());
        return Err(Refusal::new(DropReason::CertificateAddress, detail));
    }
    Ok(peer)
}

/// A reply's signature covers the whole request, as in the handshake.
fn signed_reply(successor: &Successor, request: &[u8], unsigned_reply: &[u8]) -> Vec<u8> {
    [REPLY_LABEL, &successor.of, &hash::sha256(&[request]), unsigned_reply].concat()
}

pub(crate) fn transcript(successor: &Successor, request: &[u8], reply: &[u8]) -> [u8; 32] {
    hash::sha256(&[TRANSCRIPT_LABEL, &successor.of, &hash::sha256(&[request]), &hash::sha256(&[reply])])
}
