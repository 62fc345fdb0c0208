//! Tickets: what a host gives a peer, so that both come back to an association without a signature.
//!
//! A ticket is sealed under a key that only its issuer has, so the issuer remembers nothing of it: what it says, its issuer
//! once said to itself. The secret in it is known to both ends. It is never a traffic key and leads to none without a fresh key
//! agreement (RFC 8446, section 2.2, "psk_dhe_ke"), so whoever steals it later reads nothing.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::aead::{OpeningKey, SealingKey, Suite, TAG_LEN};
use crate::agreement::{Secret, SharedSecret};
use crate::schedule::{AddedSecret, Schedule};
use crate::site_key::SiteKey;
use crate::{BadTag, KeyError};

/// Bytes of a ticket key and of a resumption secret.
pub const KEY_LEN: usize = 32;
/// Bytes of the number in front of a ticket, drawn at random for each.
pub const ID_LEN: usize = 16;
/// What sealing adds to a ticket's content, in bytes.
pub const OVERHEAD: usize = ID_LEN + TAG_LEN;
/// Bytes of a binder.
pub const BINDER_LEN: usize = 32;

const SUITE: Suite = Suite::Aes256Gcm;
const KEY_LABEL: &[u8] = b"ringwall cll 2 ticket key";
const IV_LABEL: &[u8] = b"ringwall cll 2 ticket iv";

/// The key under which one host seals the tickets that it issues; overwritten when dropped.
#[derive(Clone)]
pub struct TicketKey(Zeroizing<[u8; KEY_LEN]>);

impl TicketKey {
    /// The key made of `bytes`, which are drawn at random.
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> TicketKey {
        TicketKey(Zeroizing::new(bytes))
    }

    /// Its bytes, for the file in which they outlive the program.
    #[must_use]
    pub fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// A ticket with this content: the number, the sealed content, the tag. Key and nonce follow from the number, which is so
    /// long that it never repeats by chance.
    ///
    /// # Errors
    /// [`KeyError::Refused`] for a content beyond the cipher's limit, which is far above any ticket.
    pub fn seal(&self, id: [u8; ID_LEN], content: &[u8]) -> Result<Vec<u8>, KeyError> {
        let (key, iv) = self.of(&id);
        let mut ticket = Vec::with_capacity(content.len() + OVERHEAD);
        ticket.extend_from_slice(&id);
        ticket.extend_from_slice(content);
        let tag = SealingKey::new(SUITE, &*key, *iv)?.seal(0, &id, &mut ticket[ID_LEN..])?;
        ticket.extend_from_slice(&tag);
        Ok(ticket)
    }

    /// The content of a ticket of ours.
    ///
    /// # Errors
    /// [`BadTag`] when another key sealed it, or nobody did.
    pub fn open(&self, ticket: &[u8]) -> Result<Zeroizing<Vec<u8>>, BadTag> {
        let (id, sealed) = ticket.split_first_chunk::<ID_LEN>().ok_or(BadTag)?;
        let (sealed, tag) = sealed.split_last_chunk::<TAG_LEN>().ok_or(BadTag)?;
        let (key, iv) = self.of(id);
        let mut content = Zeroizing::new(vec![0; sealed.len()]);
        let key = OpeningKey::new(SUITE, &*key, *iv).map_err(|_| BadTag)?;
        key.open(0, id, sealed, tag, &mut content)?;
        Ok(content)
    }

    fn of(&self, id: &[u8; ID_LEN]) -> (Zeroizing<[u8; 32]>, Zeroizing<[u8; 12]>) {
        let schedule = Schedule::from_key(&self.0);
        (schedule.expand(&[KEY_LABEL, id]), schedule.expand(&[IV_LABEL, id]))
    }
}

impl PartialEq for TicketKey {
    fn eq(&self, other: &TicketKey) -> bool {
        self.0[..].ct_eq(&other.0[..]).into()
    }
}

impl Eq for TicketKey {}

impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketKey(redacted)")
    }
}

/// What both ends of a ticket know and nobody else; overwritten when dropped.
#[derive(Clone)]
pub struct ResumptionSecret(Zeroizing<[u8; KEY_LEN]>);

impl ResumptionSecret {
    /// The secret made of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> ResumptionSecret {
        ResumptionSecret(Zeroizing::new(bytes))
    }

    /// Its bytes, for a ticket's content and for its holder's file.
    #[must_use]
    pub fn bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// What shows that the sender of `parts` has this secret. `label` keeps messages apart.
    #[must_use]
    pub fn binder(&self, label: &[u8], parts: &[&[u8]]) -> [u8; BINDER_LEN] {
        let key = Schedule::from_key(&self.0).expand(&[b"ringwall cll 2 binder"]);
        *SiteKey::from_bytes(*key).whole_tag(label, parts)
    }

    /// Whether `binder` is right; takes the same time wherever it differs.
    #[must_use]
    pub fn verify(&self, label: &[u8], parts: &[&[u8]], binder: &[u8; BINDER_LEN]) -> bool {
        self.binder(label, parts)[..].ct_eq(&binder[..]).into()
    }

    /// The keys of the association that this secret and a fresh key agreement lead to, and a
    /// pre-shared key where there is one. `transcript` is the SHA-256 of the whole exchange. `None`
    /// for the key agreement of the paper profile, which has no tickets.
    #[must_use]
    pub fn schedule(
        &self,
        shared: &SharedSecret,
        pre_shared: Option<&AddedSecret>,
        transcript: &[u8; 32],
    ) -> Option<Schedule> {
        let Secret::X25519(_) = &shared.0 else { return None };
        let proved = AddedSecret::from_bytes(*Schedule::from_key(&self.0).expand(&[b"ringwall cll 2 resumed"]));
        let added: Vec<&AddedSecret> = std::iter::once(&proved).chain(pre_shared).collect();
        Schedule::with(shared, &added, transcript)
    }
}

impl PartialEq for ResumptionSecret {
    fn eq(&self, other: &ResumptionSecret) -> bool {
        self.0[..].ct_eq(&other.0[..]).into()
    }
}

impl Eq for ResumptionSecret {}

impl fmt::Debug for ResumptionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResumptionSecret(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::KeyPair;

    #[test]
    fn only_its_own_key_opens_a_ticket_and_only_unchanged() {
        let key = TicketKey::from_bytes([1; 32]);
        let ticket = key.seal([2; 16], b"what a host says to itself").expect("sealed");
        assert_eq!(ticket.len(), 26 + OVERHEAD);
        assert_eq!(**key.open(&ticket).expect("opened"), *b"what a host says to itself");
        assert_eq!(TicketKey::from_bytes([3; 32]).open(&ticket), Err(BadTag));
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(key.open(&changed), Err(BadTag), "byte {at}");
            assert_eq!(key.open(&ticket[..at]), Err(BadTag), "{at} bytes");
        }
        assert_ne!(ticket[16..], key.seal([4; 16], b"what a host says to itself").expect("sealed")[16..]);
    }

    #[test]
    fn a_binder_is_of_one_secret_one_label_and_one_message() {
        let secret = ResumptionSecret::from_bytes([1; 32]);
        let binder = secret.binder(b"request", &[b"one", b"two"]);
        assert!(secret.verify(b"request", &[b"onetwo"], &binder));
        assert!(!secret.verify(b"reply", &[b"onetwo"], &binder));
        assert!(!secret.verify(b"request", &[b"onetwi"], &binder));
        assert!(!ResumptionSecret::from_bytes([2; 32]).verify(b"request", &[b"onetwo"], &binder));
    }

    #[test]
    fn keys_need_the_secret_the_agreement_and_the_transcript() {
        let pair = |seed: u8| KeyPair::from_random(&[seed; 32]).expect("a key pair");
        let shared = |seed: u8| pair(1).agree(pair(seed).public()).expect("shared");
        let key = |secret: u8, peer: u8, transcript: u8| {
            let secret = ResumptionSecret::from_bytes([secret; 32]);
            *secret.schedule(&shared(peer), None, &[transcript; 32]).expect("X25519").expand::<32>(&[b"key"])
        };
        let right = key(1, 2, 3);
        assert_eq!(right, key(1, 2, 3));
        assert!([key(9, 2, 3), key(1, 9, 3), key(1, 2, 9)].iter().all(|other| *other != right));
        let pre_shared = AddedSecret::from_bytes([5; 32]);
        let with = ResumptionSecret::from_bytes([1; 32]).schedule(&shared(2), Some(&pre_shared), &[3; 32]);
        assert_ne!(*with.expect("X25519").expand::<32>(&[b"key"]), right, "a pre-shared key counts");
    }

    #[test]
    fn nothing_secret_is_printed() {
        let text = format!("{:?} {:?}", TicketKey::from_bytes([1; 32]), ResumptionSecret::from_bytes([1; 32]));
        assert_eq!(text, "TicketKey(redacted) ResumptionSecret(redacted)");
    }
}
