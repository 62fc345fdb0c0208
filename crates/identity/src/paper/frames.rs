//! Frames of the paper profile: CBC, then an HMAC over the ciphertext (the CLL paper, section 4).
//!
//! Two things differ from the paper, so that frames stand alone and keep their length (record 0037). The initialisation vector
//! is not the last block of the frame before but the encryption of the frame's own number (NIST SP 800-38A, appendix C). And
//! the last two blocks are coupled by ciphertext stealing instead of padded (addendum to SP 800-38A, CBC-CS1).
//!
//! One suite has neither, to measure what nonces alone are worth: its tag is zeros that nobody looks at.

use cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, InnerIvInit, KeyInit};
use cts::{CbcCs1, Decrypt, Encrypt};
use digest::common::BlockSizeUser;
use digest::consts::{U12, U16, U20, U24, U32};
use digest::{Digest, FixedOutput, Mac};
use hmac::SimpleHmac;
use subtle::ConstantTimeEq;

use super::cipher::{Mars, Seed, Twofish};
use super::has160::Has160;
use super::suite::{Cipher, Hash, PaperSuite};
use crate::aead::TAG_LEN;
use crate::{BadTag, KeyError};

type Rc5<KeyLen> = rc5::RC5<u32, U12, KeyLen>;
type Rc6<KeyLen> = rc6::RC6<u32, U20, KeyLen>;

/// A cipher in CBC mode, whatever its blocks. Nothing is shorter than a block but what is empty.
trait Chain: Send + Sync {
    fn encrypt_frame(&self, nonce: &[u8; 12], body: &mut [u8]) -> Result<(), cts::Error>;
    fn decrypt_frame(&self, nonce: &[u8; 12], body: &mut [u8]) -> Result<(), cts::Error>;
}

impl<C: BlockCipherEncrypt + BlockCipherDecrypt + Send + Sync> Chain for C {
    fn encrypt_frame(&self, nonce: &[u8; 12], body: &mut [u8]) -> Result<(), cts::Error> {
        CbcCs1::inner_iv_init(self, &vector(self, nonce)).encrypt(body)
    }

    fn decrypt_frame(&self, nonce: &[u8; 12], body: &mut [u8]) -> Result<(), cts::Error> {
        CbcCs1::inner_iv_init(self, &vector(self, nonce)).decrypt(body)
    }
}

/// The initialisation vector of a frame: its nonce, encrypted. A block of 16 bytes takes the nonce and four zeros, one of 8
/// bytes the nonce's last 8, which hold the number.
fn vector<C: BlockCipherEncrypt>(cipher: &C, nonce: &[u8; 12]) -> Block<C> {
    let mut block = Block::<C>::default();
    let taken = if block.len() < nonce.len() { &nonce[nonce.len() - block.len()..] } else { &nonce[..] };
    block[..taken.len()].copy_from_slice(taken);
    cipher.encrypt_block(&mut block);
    block
}

/// An HMAC with its key, whatever its hash.
trait Authenticate: Send + Sync {
    fn tag(&self, parts: [&[u8]; 3]) -> [u8; TAG_LEN];
}

impl<D> Authenticate for SimpleHmac<D>
where
    D: Digest + FixedOutput + BlockSizeUser + Clone + Send + Sync,
{
    /// The first 16 bytes (RFC 2104, section 5), which are all of HMAC-MD5.
    fn tag(&self, parts: [&[u8]; 3]) -> [u8; TAG_LEN] {
        let mut mac = self.clone();
        parts.iter().for_each(|part| Mac::update(&mut mac, part));
        let whole = mac.finalize().into_bytes();
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&whole[..TAG_LEN]);
        tag
    }
}

/// The keys of one direction; none in the suite without a tag.
pub(crate) struct FrameKey(Option<Keys>);

struct Keys {
    chain: Box<dyn Chain>,
    mac: Box<dyn Authenticate>,
}

impl FrameKey {
    /// Of `key`, the first bytes are the cipher's.
    pub(crate) fn new(suite: PaperSuite, key: &[u8]) -> Result<FrameKey, KeyError> {
        let length = KeyError::Length { expected: suite.key_len(), found: key.len() };
        let (cipher_key, mac_key) = key.split_at_checked(suite.cipher_key_len()).ok_or(length)?;
        let Some(((cipher, _), hash)) = suite.parts() else {
            return if key.is_empty() { Ok(FrameKey(None)) } else { Err(length) };
        };
        if mac_key.len() != hash.len() {
            return Err(length);
        }
        Ok(FrameKey(Some(Keys { chain: chain(cipher, cipher_key)?, mac: mac(hash, mac_key)? })))
    }

    /// Encrypts `in_out`, if it is not empty, and returns the tag over nonce, `associated` and ciphertext. Without keys there is
    /// nothing to encrypt with, and the tag is zeros.
    pub(crate) fn seal(
        &self,
        nonce: &[u8; 12],
        associated: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_LEN], KeyError> {
        let Some(keys) = &self.0 else {
            return if in_out.is_empty() { Ok([0; TAG_LEN]) } else { Err(KeyError::Refused) };
        };
        if !in_out.is_empty() {
            keys.chain.encrypt_frame(nonce, in_out).map_err(|_| KeyError::Refused)?;
        }
        Ok(keys.mac.tag([nonce, associated, in_out]))
    }

    /// Checks `tag`, then decrypts. Without keys every tag is right, and nothing can be encrypted.
    pub(crate) fn open(
        &self,
        nonce: &[u8; 12],
        associated: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        plaintext_out: &mut [u8],
    ) -> Result<(), BadTag> {
        let Some(keys) = &self.0 else {
            return if ciphertext.is_empty() { Ok(()) } else { Err(BadTag) };
        };
        let expected = keys.mac.tag([nonce, associated, ciphertext]);
        if ciphertext.len() != plaintext_out.len() || !bool::from(expected.ct_eq(tag)) {
            return Err(BadTag);
        }
        if ciphertext.is_empty() {
            return Ok(());
        }
        plaintext_out.copy_from_slice(ciphertext);
        keys.chain.decrypt_frame(nonce, plaintext_out).map_err(|_| BadTag)
    }
}

fn chain(cipher: Cipher, key: &[u8]) -> Result<Box<dyn Chain>, KeyError> {
    match (cipher, key.len()) {
        (Cipher::Aes, 16) => keyed::<aes::Aes128>(key),
        (Cipher::Aes, 24) => keyed::<aes::Aes192>(key),
        (Cipher::Aes, _) => keyed::<aes::Aes256>(key),
        (Cipher::Twofish, _) => boxed(Twofish::new(key)),
        (Cipher::Serpent, _) => keyed::<serpent::Serpent>(key),
        (Cipher::Rc6, 16) => keyed::<Rc6<U16>>(key),
        (Cipher::Rc6, 24) => keyed::<Rc6<U24>>(key),
        (Cipher::Rc6, _) => keyed::<Rc6<U32>>(key),
        (Cipher::Mars, _) => boxed(Mars::new(key)),
        (Cipher::Cast256, _) => keyed::<cast6::Cast6>(key),
        (Cipher::Blowfish, _) => keyed::<blowfish::Blowfish>(key),
        (Cipher::Rc5, 16) => keyed::<Rc5<U16>>(key),
        (Cipher::Rc5, 24) => keyed::<Rc5<U24>>(key),
        (Cipher::Rc5, _) => keyed::<Rc5<U32>>(key),
        (Cipher::Cast128, _) => keyed::<cast5::Cast5>(key),
        (Cipher::Seed, _) => boxed(Seed::new(key)),
        // GOST 28147-89 with the box and the order of bytes of GOST R 34.12-2015 (RFC 8891).
        (Cipher::Gost, _) => keyed::<magma::Magma>(key),
    }
}

fn keyed<C: KeyInit + Chain + 'static>(key: &[u8]) -> Result<Box<dyn Chain>, KeyError> {
    boxed(C::new_from_slice(key).ok())
}

fn boxed<C: Chain + 'static>(cipher: Option<C>) -> Result<Box<dyn Chain>, KeyError> {
    Ok(Box::new(cipher.ok_or(KeyError::Unsupported)?))
}

fn mac(hash: Hash, key: &[u8]) -> Result<Box<dyn Authenticate>, KeyError> {
    match hash {
        Hash::Md5 => authenticator::<md5::Md5>(key),
        Hash::Sha1 => authenticator::<sha1::Sha1>(key),
        Hash::Sha256 => authenticator::<sha2::Sha256>(key),
        Hash::Ripemd160 => authenticator::<ripemd::Ripemd160>(key),
        Hash::Has160 => authenticator::<Has160>(key),
    }
}

fn authenticator<D>(key: &[u8]) -> Result<Box<dyn Authenticate>, KeyError>
where
    D: Digest + FixedOutput + BlockSizeUser + Clone + Send + Sync + 'static,
{
    Ok(Box::new(<SimpleHmac<D> as KeyInit>::new_from_slice(key).map_err(|_| KeyError::Unsupported)?))
}

#[cfg(test)]
mod tests;
