//! Who answered whose handshake, and whether the answer is confirmed: until a frame was opened under an association, the
//! side that answered must not send under it (paper, "Complete and Incomplete SAs").

use std::collections::HashMap;

use wire::cll::NONCE_LEN;

/// All handshakes of a run.
#[derive(Debug, Default)]
pub struct Answers {
    /// Where the initiator of each request wants to receive.
    asked: HashMap<[u8; NONCE_LEN], u32>,
    /// Whether the initiator proved that an answer arrived, by the host that answered and the base of the indices it
    /// would send to. A request that was signed anew may be answered twice; proof of either will do.
    proved: HashMap<(usize, u32), bool>,
    /// The base of the indices it would send to, by the host that answered and the base of those under which it receives.
    by_own_index: HashMap<(usize, u32), u32>,
}

impl Answers {
    /// A request went out; its initiator receives from `index` on.
    pub fn asked(&mut self, nonce: [u8; NONCE_LEN], index: u32) {
        self.asked.insert(nonce, index);
    }

    /// `host` answers the request with this nonce and receives from `own_index` on.
    pub fn answered(&mut self, host: usize, nonce: [u8; NONCE_LEN], own_index: u32) {
        if let Some(&index) = self.asked.get(&nonce) {
            self.proved.entry((host, index)).or_insert(false);
            self.by_own_index.insert((host, own_index), index);
        }
    }

    /// `host` sees a genuine frame under `own_index`.
    pub fn heard(&mut self, host: usize, own_index: u32) {
        if let Some(index) = self.by_own_index.remove(&(host, own_index)) {
            self.proved.insert((host, index), true);
        }
    }

    /// Whether `host` answered the owner of `index` and has no proof yet that an answer arrived.
    pub fn is_unproved(&self, host: usize, index: u32) -> bool {
        self.proved.get(&(host, index)) == Some(&false)
    }
}
