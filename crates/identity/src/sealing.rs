//! Secrets for one host: HPKE in its base mode (RFC 9180) with X25519, HKDF-SHA256 and AES-128-GCM.
//!
//! What is sealed says nothing of who sealed it; that has to follow from what is inside, or from how it came. The randomness
//! of the sealing side comes from the library.

use rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
use rustls::crypto::hpke::{EncapsulatedSecret, Hpke, HpkePrivateKey, HpkePublicKey};
use zeroize::Zeroizing;

use crate::aead::TAG_LEN;
use crate::agreement::KeyPair;
use crate::{BadTag, KeyError};

/// Bytes of either half of the receiver's key, and of the encapsulated key in front of what is sealed.
pub const KEY_LEN: usize = 32;
/// What sealing adds, in bytes.
pub const OVERHEAD: usize = KEY_LEN + TAG_LEN;

/// The public half of the receiver's key whose private half is `private`.
///
/// # Errors
/// [`KeyError::Refused`] when the library fails, which it does for no 32 random bytes.
pub fn public_half(private: [u8; KEY_LEN]) -> Result<[u8; KEY_LEN], KeyError> {
    KeyPair::from_random(&private)?.public().try_into().map_err(|_| KeyError::Refused)
}

/// Seals `plaintext` to the owner of `receiver`: the encapsulated key, then the ciphertext with its tag. `info` names the use,
/// `associated` is authenticated with it.
///
/// # Errors
/// [`KeyError::Refused`] when `receiver` is a point of low order.
pub fn seal(receiver: &[u8; KEY_LEN], info: &[u8], associated: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, KeyError> {
    let receiver = HpkePublicKey(receiver.to_vec());
    let sealed = DH_KEM_X25519_HKDF_SHA256_AES_128.seal(info, associated, plaintext, &receiver);
    let (EncapsulatedSecret(encapsulated), ciphertext) = sealed.map_err(|_| KeyError::Refused)?;
    Ok([encapsulated, ciphertext].concat())
}

/// Opens what [`seal`] made, with the private half of the receiver's key.
///
/// # Errors
/// [`BadTag`], whatever is wrong with it.
pub fn open(
    receiver: &[u8; KEY_LEN],
    info: &[u8],
    associated: &[u8],
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, BadTag> {
    let (encapsulated, ciphertext) = sealed.split_at_checked(KEY_LEN).ok_or(BadTag)?;
    let receiver = HpkePrivateKey::from(receiver.to_vec());
    let encapsulated = EncapsulatedSecret(encapsulated.to_vec());
    let opened = DH_KEM_X25519_HKDF_SHA256_AES_128.open(&encapsulated, info, associated, ciphertext, &receiver);
    opened.map(Zeroizing::new).map_err(|_| BadTag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_hex::{array, bytes};

    /// RFC 9180, appendix A.1.1: the receiver's key, what it is told, and the first message.
    const RECEIVER: &str = "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8";
    const INFO: &str = "4f6465206f6e2061204772656369616e2055726e";
    const ASSOCIATED: &str = "436f756e742d30";
    const ENCAPSULATED: &str = "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431";
    const CIPHERTEXT: &str =
        "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a";

    #[test]
    fn the_first_message_of_rfc_9180_opens() {
        let sealed = [bytes(ENCAPSULATED), bytes(CIPHERTEXT)].concat();
        let opened = open(&array(RECEIVER), &bytes(INFO), &bytes(ASSOCIATED), &sealed).expect("opened");
        assert_eq!(*opened, b"Beauty is truth, truth beauty");
    }

    #[test]
    fn only_what_was_sealed_opens_and_only_for_its_receiver() {
        let receiver = array(RECEIVER);
        let public = public_half(receiver).expect("key");
        let sealed = seal(&public, b"info", b"associated", b"secret").expect("sealed");
        assert_eq!(sealed.len(), 6 + OVERHEAD);
        assert_eq!(**open(&receiver, b"info", b"associated", &sealed).expect("opened"), *b"secret");
        assert_eq!(open(&[7; 32], b"info", b"associated", &sealed), Err(BadTag));
        assert_eq!(open(&receiver, b"other", b"associated", &sealed), Err(BadTag));
        assert_eq!(open(&receiver, b"info", b"other", &sealed), Err(BadTag));
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(&receiver, b"info", b"associated", &changed), Err(BadTag), "byte {at}");
            assert_eq!(open(&receiver, b"info", b"associated", &sealed[..at]), Err(BadTag), "{at} bytes");
        }
        assert_eq!(seal(&[0; 32], b"info", b"", b"secret"), Err(KeyError::Refused));
    }
}
