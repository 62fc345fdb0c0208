//! Who answered whose handshake, and whether the answer is confirmed: until a frame was opened under an association, the
//! side that answered must not send under it (paper, "Complete and Incomplete SAs").

use std::collections::HashMap;

use wire::cll::NONCE_LEN;

/// One answered handshake, seen from the host that answered.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The base of the indices under which this host receives.
    own_index: u32,
    /// A frame under one of them was seen that its sender really made.
    proved: bool,
}

/// All handshakes of a run.
#[derive(Debug, Default)]
pub struct Answers {
    /// Where the initiator of each request wants to receive.
    asked: HashMap<[u8; NONCE_LEN], u32>,
    /// By the host that answered and the base of the indices it would send to.
    answers: HashMap<(usize, u32), Answer>,
    /// The key above, by the host that answered and the base of the indices under which it receives.
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
            let answer = self.answers.entry((host, index)).or_insert(Answer { own_index, proved: false });
            if answer.own_index != own_index {
                *answer = Answer { own_index, proved: false };
            }
            self.by_own_index.insert((host, own_index), index);
        }
    }

    /// `host` sees a genuine frame under `own_index`.
    pub fn heard(&mut self, host: usize, own_index: u32) {
        let Some(index) = self.by_own_index.remove(&(host, own_index)) else { return };
        if let Some(answer) = self.answers.get_mut(&(host, index)) {
            answer.proved = true;
        }
    }

    /// Whether `host` answered the owner of `index` and has no proof yet that the answer arrived.
    pub fn is_unproved(&self, host: usize, index: u32) -> bool {
        self.answers.get(&(host, index)).is_some_and(|answer| !answer.proved)
    }
}
