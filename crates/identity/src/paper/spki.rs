//! A public key as certificates hold it: SubjectPublicKeyInfo with id-dsa and its parameters (RFC 3279, section 2.3.2).

use x509_cert::der::asn1::{Any, BitString, ObjectIdentifier, UintRef};
use x509_cert::der::{self, Decode, Encode, Tag};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

use super::PublicKey;
use crate::profile::KeyLength;

const ID_DSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10040.4.1");

impl PublicKey {
    /// The key in DER; `None` when the encoder fails, which it does for no key.
    pub(crate) fn to_spki(&self) -> Option<Vec<u8>> {
        self.encode().ok()
    }

    fn encode(&self) -> der::Result<Vec<u8>> {
        let mut parameters = Vec::new();
        for number in super::arithmetic(self.length).parameters() {
            parameters.extend(UintRef::new(&number)?.to_der()?);
        }
        let parameters = Some(Any::new(Tag::Sequence, parameters)?);
        let key = UintRef::new(&self.bytes)?.to_der()?;
        let spki = SubjectPublicKeyInfoOwned {
            algorithm: AlgorithmIdentifierOwned { oid: ID_DSA, parameters },
            subject_public_key: BitString::from_bytes(&key)?,
        };
        spki.to_der()
    }
}

/// The key in `spki`; `None` for any other kind of key, and for other primes than ours: those are known to be what they say.
pub(super) fn public_key(spki: &[u8]) -> Option<PublicKey> {
    let parsed = SubjectPublicKeyInfoOwned::from_der(spki).ok()?;
    let number = UintRef::from_der(parsed.subject_public_key.as_bytes()?).ok()?;
    KeyLength::ALL.into_iter().find_map(|length| {
        let mut bytes = vec![0; length.bytes().checked_sub(number.as_bytes().len())?];
        bytes.extend(number.as_bytes());
        let key = PublicKey::new(length, &bytes)?;
        let is_whole = super::arithmetic(length).contains(&bytes) && key.to_spki()? == spki;
        is_whole.then_some(key)
    })
}
