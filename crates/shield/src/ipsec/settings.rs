//! What an operator decides: peers and their keys, which layers are on, how much passes without proof.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use zeroize::Zeroize;

use super::permutation::{End, KEY_LEN, LOWEST};

/// Everything about one host's shield.
#[derive(Clone, Debug)]
pub struct Settings {
    /// At most [`PEERS_MAX`](super::limits::PEERS_MAX); of two with one address the later counts.
    pub peers: Vec<PeerSettings>,
    /// The SPIs that this host's IPsec stack gives out.
    pub spis: RangeInclusive<u32>,
    /// Which layers are on.
    pub layers: Layers,
    /// How much passes without proof.
    pub rates: Rates,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { peers: Vec::new(), spis: LOWEST..=u32::MAX, layers: Layers::default(), rates: Rates::default() }
    }
}

/// An IPsec peer.
#[derive(Clone, Debug)]
pub struct PeerSettings {
    /// As its packets say.
    pub address: IpAddr,
    /// What its shield and ours share; without it the peer has no shield.
    pub keys: Option<PairKeys>,
}

/// What both shields of a pair know.
#[derive(Clone, Debug)]
pub struct PairKeys {
    /// Which end this host is.
    pub end: End,
    /// The keys that what arrives may be under, one at least and at most [`EPOCHS_MAX`](super::limits::EPOCHS_MAX).
    pub epochs: Vec<EpochKey>,
    /// The number of the epoch that this host sends under, one of those.
    pub send: u32,
}

/// The pair's key in one epoch.
#[derive(Clone)]
pub struct EpochKey {
    /// The epoch's number.
    pub number: u32,
    /// The key.
    pub key: [u8; KEY_LEN],
}

impl std::fmt::Debug for EpochKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EpochKey {}", self.number)
    }
}

impl Drop for EpochKey {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// The layers, each of which can be off so that its worth can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    /// IPsec of hosts that are no peers ends here.
    pub source: bool,
    /// An SPI that this host's stack does not give out ends here.
    pub range: bool,
    /// An SPI that is not known passes in small numbers only.
    pub spi: bool,
    /// A sequence number passes once; of peers with a shield only.
    pub window: bool,
    /// IKE, keepalives and fragments pass in bounded numbers only.
    pub budgets: bool,
}

impl Default for Layers {
    fn default() -> Layers {
        Layers { source: true, range: true, spi: true, window: true, budgets: true }
    }
}

/// Packets a second of each peer; as many may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// ESP with an SPI that is not known yet.
    pub unknown_spi: u32,
    /// IKE.
    pub ike: u32,
    /// Keepalives.
    pub keepalive: u32,
    /// Later fragments.
    pub fragment: u32,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates { unknown_spi: 100, ike: 200, keepalive: 10, fragment: 10_000 }
    }
}
