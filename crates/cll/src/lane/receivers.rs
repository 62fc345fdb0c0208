//! The keys with which a lane receives, and the same checks in front of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::{Ledger, Torn};
use shield::kernel::HintKeys;
use shield::{Checks, Outpost, Switches, Window};

use crate::keys::ReceiveKey;
use crate::message::{AssociationId, Incoming};
use crate::origin::Origin;

/// Receives from one lane of one peer.
pub(super) struct Receiver {
    pub(super) association: AssociationId,
    pub(super) origin: Arc<Origin>,
    pub(super) key: ReceiveKey,
    pub(super) checks: Checks,
    pub(super) awaits_first_frame: bool,
    /// Whether it has opened a good frame of the peer's stack, and control knows.
    pub(super) has_opened: bool,
    pub(super) carries_payload: bool,
}

/// All of them, by the index that a sender writes.
pub(super) struct Receivers {
    of: BTreeMap<u32, Receiver>,
    pub(super) switches: Switches,
    outpost: Option<Box<dyn Outpost>>,
}

impl Receivers {
    /// None yet; `switches` are the checks that a laboratory left out.
    pub(super) fn new(switches: Switches) -> Receivers {
        Receivers { of: BTreeMap::new(), switches, outpost: None }
    }

    /// Has the cheap checks made in front of the lane as well, for all keys that come from now on.
    pub(super) fn set_outpost(&mut self, outpost: Box<dyn Outpost>) {
        self.outpost = Some(outpost);
    }

    /// Enters what was dropped in front of the lane.
    pub(super) fn add_outpost_to(&self, ledger: &mut Ledger) {
        if let Some(outpost) = &self.outpost {
            shield::outpost::enter(&**outpost, ledger);
        }
    }

    /// Has the outpost let handshakes pass that show one of these keys of the site.
    pub(super) fn expect(&mut self, hint_keys: &HintKeys) {
        if let Some(outpost) = &mut self.outpost {
            outpost.expect(hint_keys);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn get(&self, index: u32) -> Option<&Receiver> {
        self.of.get(&index)
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Receiver> {
        self.of.get_mut(&index)
    }

    pub(super) fn install(&mut self, incoming: Incoming) {
        let Incoming { association, origin, key, awaits_first_frame, carries_payload } = incoming;
        let index = key.receiver_index;
        let peer = origin.mac();
        // The outpost learns of a key here, before the peer can have it: our answer is still in the port.
        let window = self.outpost.as_mut().map_or_else(Window::new, |outpost| outpost.admit(index, peer, &key.nonces));
        let checks = Checks::new(peer, &key.nonces, window);
        let has_opened = false;
        let receiver = Receiver { association, origin, key, checks, awaits_first_frame, has_opened, carries_payload };
        self.of.insert(index, receiver);
    }

    /// The window goes before its memory may serve another.
    pub(super) fn remove(&mut self, index: u32) {
        let removed = self.of.remove(&index).is_some();
        if let Some(outpost) = self.outpost.as_mut().filter(|_| removed) {
            outpost.dismiss(index);
        }
    }

    /// Removes the keys of whom a panic may have touched.
    pub(super) fn mend(&mut self, torn: Torn) {
        let of_torn = |receiver: &Receiver| torn.includes(receiver.origin.mac().0);
        let indices = self.of.iter().filter(|(_, receiver)| of_torn(receiver)).map(|(index, _)| *index);
        indices.collect::<Vec<_>>().into_iter().for_each(|index| self.remove(index));
    }
}
