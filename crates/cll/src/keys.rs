//! The keys of an association: for each direction and lane one for the seal and one or two for the nonces.
//!
//! Both sides derive all of them from the key agreement and the whole handshake (paper, section 5.2: four keys from the
//! master key). A key belongs to one direction, one lane and one handshake, so no two senders ever share a counter.

use identity::KeyError;
use identity::aead::{OpeningKey, SealingKey, Suite};
use identity::agreement::SharedSecret;
use identity::schedule::{AddedSecret, Schedule};
use identity::ticket::ResumptionSecret;
use shield::spin::KEY_LEN as SPIN_KEY_LEN;
use shield::{NonceKeys, Nonces};
use wire::cll::Offer;
use wire::cll::compression::Algorithm;
use zeroize::Zeroizing;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    FromInitiator,
    FromResponder,
}

impl Direction {
    fn label(self) -> &'static [u8] {
        match self {
            Direction::FromInitiator => b"from initiator",
            Direction::FromResponder => b"from responder",
        }
    }

    fn other(self) -> Direction {
        match self {
            Direction::FromInitiator => Direction::FromResponder,
            Direction::FromResponder => Direction::FromInitiator,
        }
    }
}

/// What one lane needs to send to the peer.
pub(crate) struct SendKey {
    pub(crate) receiver_index: u32,
    pub(crate) key: SealingKey,
    pub(crate) nonces: Nonces,
    pub(crate) confidential: bool,
    /// With what frames may be compressed.
    pub(crate) compression: Option<Algorithm>,
}

/// What one lane needs to receive from one lane of the peer.
pub(crate) struct ReceiveKey {
    pub(crate) receiver_index: u32,
    pub(crate) key: OpeningKey,
    pub(crate) nonces: NonceKeys,
    pub(crate) confidential: bool,
    /// With what frames may have been compressed.
    pub(crate) compression: Option<Algorithm>,
}

/// All keys of an association, for each lane of the side that sends.
pub(crate) struct AssociationKeys {
    pub(crate) send: Vec<SendKey>,
    pub(crate) receive: Vec<ReceiveKey>,
    pub(crate) tickets: TicketSecrets,
    /// What the association that replaces this one may begin with.
    pub(crate) kept: AddedSecret,
}

/// What the two tickets of an association are made for, each until its ticket is given or has come.
#[derive(Default)]
pub(crate) struct TicketSecrets {
    /// Of the ticket that this host gives.
    pub(crate) given: Option<ResumptionSecret>,
    /// Of the ticket that the peer gives.
    pub(crate) taken: Option<ResumptionSecret>,
}

impl TicketSecrets {
    fn derive(schedule: &Schedule, giving: Direction) -> TicketSecrets {
        let secret = |direction: Direction| {
            let bytes = schedule.expand(&[b"ringwall cll 2 resumption", direction.label()]);
            Some(ResumptionSecret::from_bytes(*bytes))
        };
        TicketSecrets { given: secret(giving), taken: secret(giving.other()) }
    }
}

/// One side's offer with the suite it names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) offer: Offer,
    pub(crate) suite: Suite,
}

/// Derives all keys. `added` goes in beside what is shared; `own` is what we offered, `peers` what
/// the peer did, `sending` who we are.
pub(crate) fn derive(
    shared: &SharedSecret,
    added: &[&AddedSecret],
    transcript: &[u8; 32],
    sending: Direction,
    own: Chosen,
    peers: Chosen,
) -> Result<AssociationKeys, KeyError> {
    let schedule = Schedule::with(shared, added, transcript).ok_or(KeyError::Unsupported)?;
    derive_from(&schedule, sending, own, peers)
}

/// As [`derive`], from what key agreement and transcript came to.
pub(crate) fn derive_from(
    schedule: &Schedule,
    sending: Direction,
    own: Chosen,
    peers: Chosen,
) -> Result<AssociationKeys, KeyError> {
    let send = (0..own.offer.lanes)
        .map(|lane| {
            let material = Material::derive(schedule, sending, lane, own.suite);
            Ok(SendKey {
                receiver_index: peers.offer.receiver_index + u32::from(lane),
                key: SealingKey::new(own.suite, material.key(own.suite), *material.iv)?,
                nonces: Nonces::new(&material.nonces(own.offer)),
                confidential: own.offer.confidential,
                compression: own.offer.compression.towards(peers.offer.compression),
            })
        })
        .collect::<Result<Vec<_>, KeyError>>()?;
    let receive = (0..peers.offer.lanes)
        .map(|lane| {
            let material = Material::derive(schedule, sending.other(), lane, peers.suite);
            Ok(ReceiveKey {
                receiver_index: own.offer.receiver_index + u32::from(lane),
                key: OpeningKey::new(peers.suite, material.key(peers.suite), *material.iv)?,
                nonces: material.nonces(peers.offer),
                confidential: peers.offer.confidential,
                compression: peers.offer.compression.towards(own.offer.compression),
            })
        })
        .collect::<Result<Vec<_>, KeyError>>()?;
    Ok(AssociationKeys { send, receive, tickets: TicketSecrets::derive(schedule, sending), kept: schedule.kept() })
}

/// Bytes of the longest keys of a suite: of one of the paper profile, a cipher's and an HMAC's.
const LONGEST_KEY: usize = 64;

pub(crate) struct Material {
    key: Zeroizing<[u8; LONGEST_KEY]>,
    pub(crate) iv: Zeroizing<[u8; 12]>,
    pub(crate) spin: Zeroizing<[u8; SPIN_KEY_LEN]>,
    pub(crate) slow: Zeroizing<[u8; SPIN_KEY_LEN]>,
}

impl Material {
    pub(crate) fn derive(schedule: &Schedule, direction: Direction, lane: u8, suite: Suite) -> Material {
        let context: [&[u8]; 2] = [direction.label(), &[lane, suite.id()]];
        Material {
            key: schedule.expand(&[b"ringwall cll 2 key", context[0], context[1]]),
            iv: schedule.expand(&[b"ringwall cll 2 iv", context[0], context[1]]),
            spin: schedule.expand(&[b"ringwall cll 2 spin", context[0], context[1]]),
            slow: schedule.expand(&[b"ringwall cll 2 slow", context[0], context[1]]),
        }
    }

    pub(crate) fn key(&self, suite: Suite) -> &[u8] {
        &self.key[..suite.key_len()]
    }

    /// The keys of the nonces that go with the sender's `offer`.
    fn nonces(&self, offer: Offer) -> NonceKeys {
        NonceKeys { spin: self.spin.clone(), slow: offer.slow_nonce.then(|| self.slow.clone()) }
    }
}
