//! The slow half of an ML-KEM exchange inside an association (docs/protocol.md, section 28).
//!
//! The seal proves who speaks, so there is no certificate and no signature here. The new keys come
//! from what the association hands on and from the fresh secret: whoever wants them must break both
//! the key agreement that was signed and ML-KEM.

use std::sync::Arc;

use bump::DropReason;
use identity::certificate::HostCertificate;
use identity::kem::{KemPair, encapsulate};
use identity::schedule::{AddedSecret, Schedule};
use identity::{Verified, hash};
use wire::cll::rollover::{Kem, Kind, Rollover};

use super::{Answered, Finished, Refusal, Successor, accept};
use crate::keys::{AssociationKeys, Chosen, Direction, derive_from};
use crate::secrecy::Secrecy;
use crate::settings::Settings;
use crate::ticket::Proof;

const TRANSCRIPT_LABEL: &[u8] = b"ringwall cll 2 ml-kem transcript";

/// The association inside which it happens.
#[derive(Debug)]
pub(crate) struct Inside {
    pub(crate) settings: Arc<Settings>,
    pub(crate) successor: Successor,
    /// The peer's certificate, as the association has it.
    pub(crate) certificate: Verified<HostCertificate>,
    pub(crate) proof: Proof,
}

/// A request of the peer.
#[derive(Debug)]
pub(crate) struct AnswerKem {
    pub(crate) inside: Inside,
    pub(crate) request: Vec<u8>,
    pub(crate) own: Chosen,
}

/// A reply to our request.
#[derive(Debug)]
pub(crate) struct FinishKem {
    pub(crate) inside: Inside,
    pub(crate) request: Vec<u8>,
    pub(crate) reply: Vec<u8>,
    pub(crate) pair: Arc<KemPair>,
}

impl AnswerKem {
    pub(crate) fn run(self) -> Result<Answered, Refusal> {
        let request = parse(&self.request)?;
        let peers = self.inside.accept(&request)?;
        let (ciphertext, secret) =
            encapsulate(request.value).map_err(|error| Refusal::new(DropReason::BadKeyShare, error))?;
        let (nonce, offer) = (request.nonce, self.own.offer);
        let reply = Kem { kind: Kind::Reply, nonce, offer, value: &ciphertext }.emit();
        let messages = (&self.request[..], &reply[..]);
        let (keys, transcript) = self.inside.keys(&secret, messages, Direction::FromResponder, self.own, peers)?;
        let secrecy = self.inside.secrecy();
        Ok(Answered { peer: self.inside.certificate, keys, reply, transcript, proof: self.inside.proof, secrecy })
    }
}

impl FinishKem {
    pub(crate) fn run(self) -> Result<Finished, Refusal> {
        let (request, reply) = (parse(&self.request)?, parse(&self.reply)?);
        let peers = self.inside.accept(&reply)?;
        let own = Chosen { offer: request.offer, suite: self.inside.settings.send_suite };
        let secret =
            self.pair.decapsulate(reply.value).map_err(|error| Refusal::new(DropReason::BadKeyShare, error))?;
        let messages = (&self.request[..], &self.reply[..]);
        let (keys, transcript) = self.inside.keys(&secret, messages, Direction::FromInitiator, own, peers)?;
        let secrecy = self.inside.secrecy();
        Ok(Finished { peer: self.inside.certificate, keys, transcript, proof: self.inside.proof, secrecy })
    }
}

impl Inside {
    fn accept(&self, message: &Kem<'_>) -> Result<Chosen, Refusal> {
        if !message.offer.post_quantum {
            return Err(Refusal::new(DropReason::WeakOffer, "an ML-KEM exchange whose offer does without it"));
        }
        accept(&self.settings, message.offer)
    }

    fn keys(
        &self,
        secret: &AddedSecret,
        (request, reply): (&[u8], &[u8]),
        sending: Direction,
        own: Chosen,
        peers: Chosen,
    ) -> Result<(AssociationKeys, [u8; 32]), Refusal> {
        let kept = self.successor.kept.as_deref();
        let kept = kept.ok_or_else(|| Refusal::new(DropReason::JobLost, "the association hands nothing on"))?;
        let transcript = transcript(&self.successor.of, request, reply);
        let schedule = Schedule::encapsulated(secret, kept, &transcript);
        let keys = derive_from(&schedule, sending, own, peers);
        Ok((keys.map_err(|error| Refusal::new(DropReason::JobLost, error))?, transcript))
    }

    fn secrecy(&self) -> Secrecy {
        Secrecy { post_quantum: true, ..self.successor.secrecy }
    }
}

fn parse(message: &[u8]) -> Result<Kem<'_>, Refusal> {
    match Rollover::parse(message) {
        Ok(Rollover::Kem(kem)) => Ok(kem),
        Ok(_) => Err(Refusal::new(DropReason::InnerMalformed, "no message with ML-KEM")),
        Err(error) => Err(Refusal::new(DropReason::InnerMalformed, error)),
    }
}

pub(crate) fn transcript(old: &[u8; 32], request: &[u8], reply: &[u8]) -> [u8; 32] {
    hash::sha256(&[TRANSCRIPT_LABEL, old, &hash::sha256(&[request]), &hash::sha256(&[reply])])
}
