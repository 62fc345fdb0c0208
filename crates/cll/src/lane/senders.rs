//! The keys under which a lane sends.

use std::collections::BTreeMap;

use bump::{DropReason, Torn};
use wire::MacAddress;

use crate::keys::SendKey;
use crate::limits::SEQUENCE_LAST;
use crate::message::AssociationId;

/// Sends to one peer.
pub(super) struct Sender {
    pub(super) association: AssociationId,
    pub(super) key: SendKey,
    pub(super) next_sequence: u32,
    pub(super) first_sequence: u32,
    /// After this many frames control is told that the key should be replaced.
    pub(super) worn_at: u32,
}

/// All of them, by peer.
#[derive(Default)]
pub(super) struct Senders {
    of: BTreeMap<MacAddress, Sender>,
    /// Keys under which no payload leaves, because an ML-KEM exchange is under way. What the stack
    /// sends goes on under an older key, if there is one, or waits.
    bare: BTreeMap<MacAddress, Sender>,
}

impl Senders {
    /// Peers to which payload leaves.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    /// Installs a key under which payload leaves.
    pub(super) fn install(&mut self, peer: MacAddress, sender: Sender) {
        self.bare.remove(&peer);
        self.of.insert(peer, sender);
    }

    /// Installs a key under which no payload leaves yet.
    pub(super) fn install_bare(&mut self, peer: MacAddress, sender: Sender) {
        self.bare.insert(peer, sender);
    }

    pub(super) fn stop(&mut self, peer: MacAddress, association: AssociationId) {
        for keys in [&mut self.of, &mut self.bare] {
            if keys.get(&peer).is_some_and(|sender| sender.association == association) {
                keys.remove(&peer);
            }
        }
    }

    /// Whether payload for `peer` has a key.
    pub(super) fn has(&self, peer: MacAddress) -> bool {
        self.of.contains_key(&peer)
    }

    /// Whether `peer` has a key under which no payload moves yet, and no other.
    pub(super) fn has_only_bare(&self, peer: MacAddress) -> bool {
        self.bare.contains_key(&peer) && !self.has(peer)
    }

    /// Whether there is an association with `peer`, also one under which no payload moves yet.
    pub(super) fn knows(&self, peer: MacAddress) -> bool {
        self.has(peer) || self.bare.contains_key(&peer)
    }

    /// Under which association payload for `peer` leaves.
    pub(super) fn association(&self, peer: MacAddress) -> Option<AssociationId> {
        self.of.get(&peer).map(|sender| sender.association)
    }

    /// What sends to `peer`; for the link layer itself, `own`, under the newest key.
    pub(super) fn get_mut(&mut self, peer: MacAddress, own: bool) -> Option<&mut Sender> {
        let bare = if own { self.bare.get_mut(&peer) } else { None };
        bare.or_else(|| self.of.get_mut(&peer))
    }

    /// Removes the keys of whom a panic may have touched.
    pub(super) fn mend(&mut self, torn: Torn) {
        self.of.retain(|peer, _| !torn.includes(peer.0));
    }
}

impl Sender {
    /// The next sequence number, unless the key is used up.
    pub(super) fn take_sequence(&mut self) -> Result<u32, DropReason> {
        if self.next_sequence > SEQUENCE_LAST {
            return Err(DropReason::SequenceEnd);
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Ok(sequence)
    }

    /// Whether the key has reached the age at which it should be replaced, and control should hear
    /// of it: the handshake that replaces it may fail, so it hears again after every sixteenth of
    /// that age. A key that is used up always is.
    pub(super) fn is_worn(&mut self, rekey_after_frames: u32) -> bool {
        let used_up = self.next_sequence > SEQUENCE_LAST;
        let worn = self.next_sequence - self.first_sequence >= self.worn_at;
        if worn {
            self.worn_at = self.worn_at.saturating_add((rekey_after_frames / 16).max(1));
        }
        worn || used_up
    }
}
