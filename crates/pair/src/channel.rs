//! Messages sealed for the other gateway, and opened.
//!
//! Both have one pre-shared key. Each start of a gateway draws an *epoch* at random, and the key of
//! its messages is derived from both. So a nonce needs no memory over a restart: it is the path of a
//! message and its number on that path. In front of the ciphertext, and authenticated with it:
//!
//! ```text
//! version (1) | path (1) | epoch of the sender (16) | number on this path (8)
//! ```
//!
//! An epoch is believed only when its sender repeats a challenge that was drawn since the last one
//! was (section "Freshness" of record 0097): whoever recorded an earlier run cannot play it back.

use std::fmt;

use bump::Generator;
use identity::aead::{OpeningKey, SealingKey, Suite, TAG_LEN};
use identity::schedule::Schedule;
use zeroize::Zeroizing;

use crate::limits::MESSAGE_MAX_BYTES;
use crate::message::Heartbeat;

const VERSION: u8 = 1;
const EPOCH_LEN: usize = 16;
const HEADER_LEN: usize = 2 + EPOCH_LEN + 8;
/// What sealing adds to a plaintext, in bytes.
pub const OVERHEAD: usize = HEADER_LEN + TAG_LEN;
/// Longest plaintext.
pub(crate) const PLAINTEXT_MAX_BYTES: usize = MESSAGE_MAX_BYTES - OVERHEAD;
/// The path stands above the number, which would take longer than any machine lives to reach it.
const PATH_SHIFT: u32 = 62;
const SUITE: Suite = Suite::Aes256Gcm;

/// A start of a gateway.
pub(crate) type Epoch = [u8; EPOCH_LEN];

/// Where a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Path {
    /// The link that is there for it.
    Sync,
    /// The segment of the protected hosts.
    Trusted,
    /// The segment of everybody else.
    Untrusted,
}

impl Path {
    /// Every path.
    pub const ALL: [Path; 3] = [Path::Sync, Path::Trusted, Path::Untrusted];

    fn read(number: u8) -> Option<Path> {
        Path::ALL.into_iter().find(|path| *path as u8 == number)
    }
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// It is too short, too long, or of another version.
    Malformed,
    /// It was sealed for another path.
    WrongPath,
    /// It is our own.
    Reflected,
    /// It was not sealed with this key, or was changed since.
    Forged,
    /// It was heard already, or is older than what is remembered.
    Replayed,
    /// Its sender did not show that it speaks now.
    Unproven,
    /// It is authentic and says nothing that this version knows.
    Unreadable,
    /// Records that came out of their order; a round of all of them follows.
    Late,
    /// Records for a gateway that is active itself.
    NotOnStandby,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Refusal; 9] = [
        Refusal::Malformed,
        Refusal::WrongPath,
        Refusal::Reflected,
        Refusal::Forged,
        Refusal::Replayed,
        Refusal::Unproven,
        Refusal::Unreadable,
        Refusal::Late,
        Refusal::NotOnStandby,
    ];

    /// The word in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::WrongPath => "wrong-path",
            Refusal::Reflected => "reflected",
            Refusal::Forged => "forged",
            Refusal::Replayed => "replayed",
            Refusal::Unproven => "unproven",
            Refusal::Unreadable => "unreadable",
            Refusal::Late => "late",
            Refusal::NotOnStandby => "not-on-standby",
        }
    }
}

/// The key that both gateways have.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

impl Secret {
    /// The key made of `bytes`, which were drawn at random.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    /// Bytes for another purpose that both gateways derive alike, such as the shifts of flows.
    #[must_use]
    pub fn derive<const N: usize>(&self, purpose: &[u8]) -> Zeroizing<[u8; N]> {
        Schedule::from_key(&self.0).expand(&[b"ringwall pair 1", purpose])
    }

    fn of_epoch(&self, epoch: &Epoch) -> (Zeroizing<[u8; 32]>, [u8; 12]) {
        let schedule = Schedule::from_key(&self.0);
        let key = schedule.expand(&[b"ringwall pair 1 message key", epoch]);
        let iv: Zeroizing<[u8; 12]> = schedule.expand(&[b"ringwall pair 1 message iv", epoch]);
        (key, *iv)
    }
}

/// The numbers heard on one path: the newest, and which of the 63 before it.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    newest: u64,
    seen: u64,
}

impl Window {
    fn is_fresh(&self, number: u64) -> bool {
        if self.seen == 0 || number > self.newest {
            return true;
        }
        let age = self.newest - number;
        age < 64 && self.seen >> age & 1 == 0
    }

    fn enter(&mut self, number: u64) {
        if self.seen == 0 || number > self.newest {
            let ahead = number.saturating_sub(self.newest);
            self.seen = if self.seen == 0 || ahead >= 64 { 0 } else { self.seen << ahead };
            self.newest = number;
            self.seen |= 1;
        } else {
            self.seen |= 1 << (self.newest - number);
        }
    }
}

/// A run of the other gateway.
struct Run {
    epoch: Epoch,
    key: OpeningKey,
    windows: [Window; Path::ALL.len()],
    /// The newest challenge that it gave.
    challenge: u64,
}

/// Seals and opens.
pub(crate) struct Channel {
    secret: Secret,
    epoch: Epoch,
    sealing: Option<SealingKey>,
    numbers: [u64; Path::ALL.len()],
    generator: Generator,
    challenge: u64,
    /// The run that proved itself.
    peer: Option<Run>,
    /// A run that did not yet.
    candidate: Option<Run>,
}

/// An authentic plaintext.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) plaintext: Vec<u8>,
    pub(crate) path: Path,
    epoch: Epoch,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("peer", &self.peer.is_some()).finish_non_exhaustive()
    }
}

impl Channel {
    pub(crate) fn new(secret: Secret, mut generator: Generator) -> Channel {
        let epoch = generator.bytes();
        let (key, iv) = secret.of_epoch(&epoch);
        let challenge = u64::from_be_bytes(generator.bytes());
        Channel {
            secret,
            epoch,
            sealing: SealingKey::new(SUITE, &key[..], iv).ok(),
            numbers: [0; 3],
            generator,
            challenge,
            peer: None,
            candidate: None,
        }
    }

    /// This run, and the one that it speaks with: they break ties.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn peer_epoch(&self) -> Option<Epoch> {
        self.peer.as_ref().map(|run| run.epoch)
    }

    pub(crate) fn challenge(&self) -> u64 {
        self.challenge
    }

    /// What was said to the challenge so far proves nothing from now on.
    pub(crate) fn renew_challenge(&mut self) {
        self.challenge = u64::from_be_bytes(self.generator.bytes());
    }

    /// What the other one must hear to believe that this run is there now.
    pub(crate) fn echoes(&self) -> [u64; 2] {
        [&self.peer, &self.candidate].map(|run| run.as_ref().map_or(0, |run| run.challenge))
    }

    pub(crate) fn seal(&mut self, path: Path, plaintext: &[u8]) -> Option<Vec<u8>> {
        let number = self.numbers[path as usize];
        self.numbers[path as usize] += 1;
        let mut message = Vec::with_capacity(plaintext.len() + OVERHEAD);
        message.extend_from_slice(&[VERSION, path as u8]);
        message.extend_from_slice(&self.epoch);
        message.extend_from_slice(&number.to_be_bytes());
        let mut sealed = plaintext.to_vec();
        let tag = self.sealing.as_ref()?.seal(sequence(path, number), &message, &mut sealed).ok()?;
        message.extend_from_slice(&sealed);
        message.extend_from_slice(&tag);
        (message.len() <= MESSAGE_MAX_BYTES).then_some(message)
    }

    /// Opens `message` in the order of cost: form, path, sender, tag, then whether it is new.
    pub(crate) fn open(&mut self, path: Path, message: &[u8]) -> Result<Opened, Refusal> {
        let (header, sealed) = message.split_first_chunk::<HEADER_LEN>().ok_or(Refusal::Malformed)?;
        let (ciphertext, tag) = sealed.split_last_chunk::<TAG_LEN>().ok_or(Refusal::Malformed)?;
        if message.len() > MESSAGE_MAX_BYTES || header[0] != VERSION {
            return Err(Refusal::Malformed);
        }
        if Path::read(header[1]).ok_or(Refusal::Malformed)? != path {
            return Err(Refusal::WrongPath);
        }
        let (mut epoch, mut number) = ([0; EPOCH_LEN], [0; 8]);
        epoch.copy_from_slice(&header[2..2 + EPOCH_LEN]);
        number.copy_from_slice(&header[2 + EPOCH_LEN..]);
        let number = u64::from_be_bytes(number);
        if epoch == self.epoch {
            return Err(Refusal::Reflected);
        }
        let known = [&mut self.peer, &mut self.candidate].into_iter().flatten().find(|run| run.epoch == epoch);
        let mut plaintext = vec![0; ciphertext.len()];
        let mut opened = |run: &mut Run| {
            let open = run.key.open(sequence(path, number), header, ciphertext, tag, &mut plaintext);
            open.map_err(|_| Refusal::Forged)?;
            let window = &mut run.windows[path as usize];
            if number >> PATH_SHIFT != 0 || !window.is_fresh(number) {
                return Err(Refusal::Replayed);
            }
            window.enter(number);
            Ok(())
        };
        match known {
            Some(run) => opened(run)?,
            None => {
                let mut run = Run::begin(&self.secret, epoch).ok_or(Refusal::Forged)?;
                opened(&mut run)?;
                self.candidate = Some(run);
            }
        }
        Ok(Opened { plaintext, path, epoch })
    }

    /// Enters whom a heartbeat shows. True if its sender is the peer, `Err` if it did not show that
    /// it is there now.
    pub(crate) fn prove(&mut self, opened: &Opened, heartbeat: &Heartbeat) -> Result<Proof, Refusal> {
        if let Some(peer) = self.peer.as_mut().filter(|run| run.epoch == opened.epoch) {
            peer.challenge = heartbeat.challenge;
            return Ok(Proof::Known);
        }
        let candidate = self.candidate.as_mut().ok_or(Refusal::Unproven)?;
        candidate.challenge = heartbeat.challenge;
        if !heartbeat.echoes.contains(&self.challenge) {
            return Err(Refusal::Unproven);
        }
        self.renew_challenge();
        self.peer = self.candidate.take();
        Ok(Proof::New)
    }

    /// Whether `opened` is of the run that proved itself.
    pub(crate) fn is_proven(&self, opened: &Opened) -> bool {
        self.peer_epoch() == Some(opened.epoch)
    }
}

/// Who sent a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The run that was known.
    Known,
    /// A new run takes its place.
    New,
}

impl Run {
    fn begin(secret: &Secret, epoch: Epoch) -> Option<Run> {
        let (key, iv) = secret.of_epoch(&epoch);
        let key = OpeningKey::new(SUITE, &key[..], iv).ok()?;
        Some(Run { epoch, key, windows: Default::default(), challenge: 0 })
    }
}

fn sequence(path: Path, number: u64) -> u64 {
    (path as u64) << PATH_SHIFT | number
}
