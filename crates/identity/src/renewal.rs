//! What a request for renewal is answered with: sealed, so that nobody but the host whose key signed the request can open it.
//!
//! A request is not fresh, so whoever has recorded one can have it answered (record 0041). The key to seal to follows from the
//! host's private key, so that a host keeps nothing between the request and its answer, and stands in the request under the
//! signature. Who sealed is not proved here; what is inside is signed by the site.

use zeroize::Zeroizing;

use crate::schedule::Schedule;
use crate::{BadTag, KeyError, pem, sealing};

/// Keeps the key apart from all others that might follow from a private key.
const SALT: &[u8] = b"ringwall renewal";
const KEY_LABEL: &[u8] = b"sealing key";
/// The use that HPKE is told.
const INFO: &[u8] = b"ringwall renewal";
/// A SubjectPublicKeyInfo of X25519 up to the key (RFC 8410, sections 3 and 4).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00];

/// What a host opens answers with; overwritten when dropped.
pub struct AnswerKey(Zeroizing<[u8; sealing::KEY_LEN]>);

impl AnswerKey {
    /// The one of the host with this private key, in PKCS#8 and DER.
    #[must_use]
    pub fn of(private_key_der: &[u8]) -> AnswerKey {
        AnswerKey(Schedule::extract(SALT, private_key_der).expand(&[KEY_LABEL]))
    }

    /// What stands in a request: the public half as a SubjectPublicKeyInfo.
    ///
    /// # Errors
    /// As [`sealing::public_half`].
    pub fn to_spki(&self) -> Result<Vec<u8>, KeyError> {
        Ok([&SPKI_PREFIX[..], &sealing::public_half(*self.0)?].concat())
    }

    /// Opens an answer, a text with exactly one block.
    ///
    /// # Errors
    /// [`BadTag`], whatever is wrong with it.
    pub fn open(&self, answer_pem: &str) -> Result<Zeroizing<String>, BadTag> {
        let sealed = pem::single(answer_pem, pem::SEALED_BUNDLE).map_err(|_| BadTag)?;
        let bundle = sealing::open(&self.0, INFO, &[], &sealed)?;
        let bundle = std::str::from_utf8(&bundle).map_err(|_| BadTag)?;
        Ok(Zeroizing::new(bundle.to_owned()))
    }
}

/// The key in a SubjectPublicKeyInfo, if it is one to seal answers to.
pub(crate) fn from_spki(spki: &[u8]) -> Option<[u8; sealing::KEY_LEN]> {
    spki.strip_prefix(&SPKI_PREFIX)?.try_into().ok()
}

/// Seals a bundle for the host whose request had `receiver`; gives the answer, which is no secret, as a text of one block.
///
/// # Errors
/// [`KeyError::Refused`] when `receiver` is a point of low order.
pub fn seal(receiver: &[u8; sealing::KEY_LEN], bundle_pem: &str) -> Result<String, KeyError> {
    let sealed = sealing::seal(receiver, INFO, &[], bundle_pem.as_bytes())?;
    Ok(pem::encode(pem::SEALED_BUNDLE, &sealed).to_string())
}

/// Whether a text is an answer that [`seal`] made, rather than a bundle as it is.
#[must_use]
pub fn is_sealed(text: &str) -> bool {
    pem::single(text, pem::SEALED_BUNDLE).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::CertificateRequest;
    use crate::test_hex::bytes;

    /// Made by `vectors/make.py` from the written protocol alone.
    const VECTORS: &str = include_str!("../../../vectors/renewal.txt");

    fn vector(name: &str) -> Vec<u8> {
        let line = VECTORS.lines().filter_map(|line| line.split_once(" = ")).find(|(found, _)| *found == name);
        bytes(line.expect("in the file").1)
    }

    fn text(name: &str) -> String {
        String::from_utf8(vector(name)).expect("text")
    }

    #[test]
    fn the_golden_answer_opens_with_the_key_that_follows_from_the_private_key() {
        let key = AnswerKey::of(&vector("private_key"));
        assert_eq!(key.0.as_slice(), vector("sealing.private"));
        assert_eq!(key.to_spki().expect("a key"), vector("sealing.spki"));
        assert_eq!(key.open(&text("answer.text")).expect("opened").as_str(), text("bundle.text"));
        assert!(is_sealed(&text("answer.text")) && !is_sealed(&text("bundle.text")));
    }

    #[test]
    fn the_golden_request_names_the_key_to_seal_to() {
        let request = CertificateRequest::from_der(&vector("request")).expect("signed by its key");
        let receiver = request.answer_key().expect("it names one");
        assert_eq!(vector("sealing.spki")[12..], receiver);
        let answer = seal(&receiver, "a bundle").expect("sealed");
        assert_eq!(AnswerKey::of(&vector("private_key")).open(&answer).expect("opened").as_str(), "a bundle");
        let stranger = AnswerKey::of(&[7; 48]);
        assert!(stranger.open(&answer).is_err() && !answer.contains("a bundle"));
    }

    #[test]
    fn only_a_whole_key_of_this_kind_is_one() {
        let spki = vector("sealing.spki");
        assert_eq!(from_spki(&spki), spki[12..].try_into().ok());
        assert_eq!(from_spki(&spki[..43]), None);
        assert_eq!(from_spki(&[&spki[..], &[0]].concat()), None);
        let ed25519: Vec<u8> = spki.iter().enumerate().map(|(at, byte)| if at == 8 { 0x70 } else { *byte }).collect();
        assert_eq!(from_spki(&ed25519), None);
    }
}
