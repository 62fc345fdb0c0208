//! What an operator of a site says to its service: orders under his own signature, and answers that
//! he alone can open (record 0108).
//!
//! The service hands orders on. It can withhold one, and make none up.

use std::fmt;

use zeroize::Zeroizing;

use crate::certificate::{OperatorCertificate, Refusal, TrustAnchor, Verified};
use crate::hash::sha256;
use crate::pem::{self, PemError};
use crate::signing::SigningKey;
use crate::{BadSignature, BadTag, KeyError, sealing};

/// What stands before an order where it is signed, so that the signature is none under anything
/// else.
const SIGNED_LABEL: &[u8] = b"ringwall order 1";
/// The use of the answer's seal.
const ANSWER_INFO: &[u8] = b"ringwall answer to an order 1";
/// Stands before what the authority signs of an answer.
const ANSWER_SIGNED: &[u8] = b"ringwall signed answer to an order 1";
/// Longest order, in bytes.
pub const ORDER_LEN_MAX: usize = 4096;

/// What the signature is over: the certificate, with its length in 4 bytes in front, and the order.
fn signed_bytes(certificate: &[u8], order: &[u8]) -> Vec<u8> {
    let length = u32::try_from(certificate.len()).unwrap_or(u32::MAX).to_be_bytes();
    [SIGNED_LABEL, &length, certificate, order].concat()
}

/// Why a file is not that of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadOperatorFile {
    /// It is not PEM, or has other blocks.
    Pem(PemError),
    /// A certificate in it is refused.
    Certificate(Refusal),
    /// Its key is refused.
    Key(KeyError),
    /// Its key is not that of its certificate.
    OtherKey,
}

impl fmt::Display for BadOperatorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadOperatorFile::Pem(error) => error.fmt(f),
            BadOperatorFile::Certificate(refusal) => refusal.fmt(f),
            BadOperatorFile::Key(error) => error.fmt(f),
            BadOperatorFile::OtherKey => f.write_str("its key is not that of its certificate"),
        }
    }
}

impl std::error::Error for BadOperatorFile {}

/// What an operator owns: his certificate, the authority's, and his key.
pub struct Operator {
    certificate: Verified<OperatorCertificate>,
    anchor: TrustAnchor,
    key: SigningKey,
    key_der: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Operator {
    /// Reads the file that the site gave him: his certificate, the authority's, and his key.
    ///
    /// # Errors
    /// [`BadOperatorFile`].
    pub fn from_pem(text: &str) -> Result<Operator, BadOperatorFile> {
        let mut blocks = pem::blocks(text).map_err(BadOperatorFile::Pem)?.into_iter();
        let mut next = |label: &'static str| {
            let block = blocks.next().filter(|block| block.label == label);
            block.map(|block| block.bytes).ok_or(BadOperatorFile::Pem(PemError::WrongLabel(label)))
        };
        let (own, authority) = (next(pem::CERTIFICATE)?, next(pem::CERTIFICATE)?);
        let key_der = next(pem::PRIVATE_KEY)?;
        let anchor = TrustAnchor::from_der(&authority).map_err(BadOperatorFile::Certificate)?;
        let certificate = anchor.verify_operator_whenever(&own).map_err(BadOperatorFile::Certificate)?;
        let key = SigningKey::from_pkcs8_der(&key_der).map_err(BadOperatorFile::Key)?;
        if key.public_bytes() != certificate.public_bytes() {
            return Err(BadOperatorFile::OtherKey);
        }
        Ok(Operator { certificate, anchor, key, key_der })
    }

    /// His certificate.
    #[must_use]
    pub fn certificate(&self) -> &Verified<OperatorCertificate> {
        &self.certificate
    }

    /// The authority of his site.
    #[must_use]
    pub fn anchor(&self) -> &TrustAnchor {
        &self.anchor
    }

    pub(crate) fn key_der(&self) -> &[u8] {
        &self.key_der
    }

    /// `order` under his signature.
    ///
    /// # Errors
    /// A failure of the signature.
    pub fn sign(&self, order: &[u8]) -> Result<SignedOrder, KeyError> {
        let certificate = self.certificate.der().to_vec();
        let signature = self.key.sign(&signed_bytes(&certificate, order))?;
        Ok(SignedOrder { certificate, order: order.to_vec(), signature })
    }
}

/// An order as it travels; nothing in it is proved before [`TrustAnchor::verify_order`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedOrder {
    /// Of who says that he gives it, in DER.
    pub certificate: Vec<u8>,
    /// What is ordered.
    pub order: Vec<u8>,
    /// Under both.
    pub signature: Vec<u8>,
}

impl SignedOrder {
    /// Three blocks in PEM.
    #[must_use]
    pub fn to_pem(&self) -> String {
        let parts = [
            pem::encode(pem::CERTIFICATE, &self.certificate),
            pem::encode(pem::ORDER, &self.order),
            pem::encode(pem::ORDER_SIGNATURE, &self.signature),
        ];
        parts.iter().map(|part| part.as_str()).collect()
    }

    /// Reads what [`to_pem`](SignedOrder::to_pem) wrote.
    ///
    /// # Errors
    /// [`PemError`] where it is something else.
    pub fn from_pem(text: &str) -> Result<SignedOrder, PemError> {
        let mut blocks = pem::blocks(text)?.into_iter();
        let mut next = |label: &'static str| {
            let block = blocks.next().filter(|block| block.label == label);
            block.map(|block| block.bytes.to_vec()).ok_or(PemError::WrongLabel(label))
        };
        let (certificate, order) = (next(pem::CERTIFICATE)?, next(pem::ORDER)?);
        let signature = next(pem::ORDER_SIGNATURE)?;
        if blocks.next().is_some() { Err(PemError::Several) } else { Ok(SignedOrder { certificate, order, signature }) }
    }
}

/// Why an order is not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOrdered {
    /// Its certificate is none of an operator of this site, or not of this time.
    Certificate(Refusal),
    /// It is not signed by the owner of the certificate, or too long.
    Signature,
}

impl TrustAnchor {
    /// Checks that an operator of this site has signed an order; who it is.
    ///
    /// # Errors
    /// [`NotOrdered`].
    pub fn verify_order(&self, signed: &SignedOrder, unix_s: u64) -> Result<Verified<OperatorCertificate>, NotOrdered> {
        let SignedOrder { certificate, order, signature } = signed;
        let operator = self.verify_operator(certificate, unix_s).map_err(NotOrdered::Certificate)?;
        if order.len() > ORDER_LEN_MAX {
            return Err(NotOrdered::Signature);
        }
        let checked: Result<(), BadSignature> = operator.verify_signature(&signed_bytes(certificate, order), signature);
        checked.map_err(|_| NotOrdered::Signature).map(|()| operator)
    }
}

/// What the authority signs of an answer: what came of that order, and of no other one.
#[must_use]
pub fn answer_bytes(order: &[u8], answer: &[u8]) -> Vec<u8> {
    [ANSWER_SIGNED, &sha256(&[order]), answer].concat()
}

impl TrustAnchor {
    /// Checks that the authority has signed `answer` to `order`.
    ///
    /// # Errors
    /// [`BadSignature`], whatever is wrong with the signature.
    pub fn verify_answer(&self, order: &[u8], answer: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.verify_signature(&answer_bytes(order, answer), signature)
    }
}

/// Seals `answer` for who has made `order`, in which `receiver` stands, and for that order.
///
/// # Errors
/// As [`sealing::seal`].
pub fn seal_answer(receiver: &[u8; sealing::KEY_LEN], order: &[u8], answer: &[u8]) -> Result<Vec<u8>, KeyError> {
    sealing::seal(receiver, ANSWER_INFO, &sha256(&[order]), answer)
}

/// Opens the answer to `order`.
///
/// # Errors
/// [`BadTag`], whatever is wrong with it.
pub fn open_answer(
    private: &[u8; sealing::KEY_LEN],
    order: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, BadTag> {
    sealing::open(private, ANSWER_INFO, &sha256(&[order]), sealed)
}
