//! Making and reading proofs. What costs a signature is kept apart from what does not, so that it can run elsewhere.

use bump::DropReason;
use identity::Succession;
use identity::hash::sha256;
use identity::signing::SigningKey;
use identity::site_key::SiteKey;
use wire::dhcp::proof::{Claim, Maker, NONCE_LEN, Proof};
use wire::dhcp::{OPTION_PROOF, View};

use crate::stamp;

/// Keep the signatures of clients, of servers and of S-ARP messages apart.
const LABELS: [(Maker, &[u8]); 2] =
    [(Maker::Client, b"ringwall s-dhcp client"), (Maker::Server, b"ringwall s-dhcp server")];
/// Keeps the tag apart from other uses of the site key.
const TAG_LABEL: &[u8] = b"s-dhcp";

/// What the signature of a proof covers.
#[must_use]
pub fn signed_bytes(maker: Maker, claim: &Claim) -> Vec<u8> {
    let label = LABELS.iter().find(|(known, _)| *known == maker).map_or(&b""[..], |(_, label)| label);
    [label, &claim.emit()].concat()
}

/// The name of a server's key in a proof: the first bytes of its digest.
#[must_use]
pub fn key_name(public_key: &[u8]) -> u64 {
    let digest = sha256(&[public_key]);
    digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first))
}

/// Who proves something, when, and for which exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    pub(crate) who: u64,
    pub(crate) stamp: u64,
    pub(crate) nonce: [u8; NONCE_LEN],
}

/// A message of our own that is to be proved.
#[derive(Debug)]
pub struct Proving {
    frame: Vec<u8>,
    maker: Maker,
    claim: Claim,
    tag: [u8; 16],
}

impl Proving {
    pub(crate) fn new(
        maker: Maker,
        message: &View<'_>,
        frame: &[u8],
        by: Stamped,
        site_keys: &Succession<SiteKey>,
    ) -> Result<Proving, DropReason> {
        let Stamped { who, stamp, nonce } = by;
        let claim = claim_of(message, who, stamp, nonce)?;
        let site_key = site_keys.sending(stamp::seconds(stamp)).1;
        let tag = site_key.tag(TAG_LABEL, &[&signed_bytes(maker, &claim)]);
        Ok(Proving { frame: frame.to_vec(), maker, claim, tag })
    }

    /// Signs, and puts the proof into the message.
    ///
    /// # Errors
    /// [`DropReason::JobLost`] if the key does not sign, [`DropReason::TooBig`] if the message has no room for a proof.
    pub fn run(self, key: &SigningKey) -> Result<Vec<u8>, DropReason> {
        let signature = key.sign(&signed_bytes(self.maker, &self.claim)).map_err(|_| DropReason::JobLost)?;
        let Claim { who, stamp, nonce, .. } = self.claim;
        let proof = Proof { maker: self.maker, who, stamp, nonce, tag: self.tag, signature: &signature }.emit();
        let message = View::new(&self.frame).map_err(|_| DropReason::DhcpMalformed)?;
        message.with_proof(&proof).ok_or(DropReason::TooBig)
    }
}

/// A message of somebody of this site, whose signature has not been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The message, with its proof.
    pub frame: Vec<u8>,
    /// What it claims.
    pub claim: Claim,
    /// Who is said to have made it.
    pub maker: Maker,
    /// The signature.
    pub signature: Vec<u8>,
}

impl Claimed {
    /// Reads the proof in a message, at this moment of the S-ARP clock where it shows one. The tag
    /// says that a host of the site made it, and no more.
    pub(crate) fn read(
        maker: Maker,
        message: &View<'_>,
        frame: &[u8],
        (site_keys, now): (&Succession<SiteKey>, Option<u64>),
    ) -> Result<Claimed, DropReason> {
        let option = message.option(OPTION_PROOF).ok_or(DropReason::DhcpUnsigned)?;
        let proof = Proof::parse(&option).map_err(|_| DropReason::DhcpMalformed)?;
        if proof.maker != maker {
            return Err(DropReason::DhcpMalformed);
        }
        let claim = claim_of(message, proof.who, proof.stamp, proof.nonce)?;
        let signed = signed_bytes(maker, &claim);
        let is_tag_of = |site_key: &SiteKey| site_key.verify(TAG_LABEL, &[&signed], &proof.tag);
        // Without a clock none of them is known to have ended.
        let now_unix_s = now.map_or(0, stamp::seconds);
        if !site_keys.accepted(now_unix_s).any(|(_, site_key)| is_tag_of(site_key)) {
            return Err(DropReason::DhcpTag);
        }
        Ok(Claimed { frame: frame.to_vec(), claim, maker, signature: proof.signature.to_vec() })
    }

    /// What is left when the message itself is on its way: enough for a distributor.
    pub(crate) fn without_frame(&self) -> Claimed {
        Claimed { frame: Vec::new(), claim: self.claim, maker: self.maker, signature: self.signature.clone() }
    }

    /// What the signature must cover.
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        signed_bytes(self.maker, &self.claim)
    }

    /// The message as a DHCP program expects it.
    ///
    /// # Errors
    /// None for what was read before.
    pub fn bare(&self) -> Result<Vec<u8>, DropReason> {
        let message = View::new(&self.frame).map_err(|_| DropReason::DhcpMalformed)?;
        message.without_proof().ok_or(DropReason::TooBig)
    }
}

fn claim_of(message: &View<'_>, who: u64, stamp: u64, nonce: [u8; NONCE_LEN]) -> Result<Claim, DropReason> {
    let digest = sha256(&[&message.canonical()]);
    Claim::of(message, who, stamp, nonce, digest).map_err(|_| DropReason::DhcpMalformed)
}
