//! Indexes that were met once: the second packet of an association proves the first.
//!
//! Behind a peer's permutation two packets of one association show the same SPI under different sequence numbers. Who has not the
//! key hits the same SPI twice once in 2^32 times. The table has a fixed size and forgets by being written over.

use super::limits::{CANDIDATES, NEAR_PACKETS};

/// A packet that nobody can place yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Number of the peer, from one.
    pub(super) peer: u32,
    pub(super) spi: u32,
    pub(super) sequence: u64,
}

/// All candidates of all peers.
#[derive(Debug)]
pub(super) struct Candidates(Box<[Candidate]>);

impl Candidates {
    pub(super) fn new() -> Candidates {
        Candidates(vec![Candidate::default(); CANDIDATES].into_boxed_slice())
    }

    /// Whether `new` is the second of its association; it is entered otherwise.
    pub(super) fn confirms(&mut self, new: Candidate) -> bool {
        let entry = &mut self.0[place(&new)];
        let is_same = (entry.peer, entry.spi) == (new.peer, new.spi);
        let distance = entry.sequence.abs_diff(new.sequence);
        if is_same && distance != 0 && distance <= NEAR_PACKETS {
            *entry = Candidate::default();
            return true;
        }
        // A packet that comes again proves nothing, and must not keep the entry of the one before from being met.
        if !is_same || distance > NEAR_PACKETS {
            *entry = new;
        }
        false
    }
}

/// Fibonacci hashing (Knuth, volume 3, section 6.4): SPIs that were counted up spread over the table as well as random ones.
fn place(candidate: &Candidate) -> usize {
    let mixed = (candidate.spi ^ candidate.peer.rotate_left(16)).wrapping_mul(0x9e37_79b1);
    (mixed >> (u32::BITS - CANDIDATES.trailing_zeros())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(candidates: &mut Candidates, peer: u32, spi: u32, sequence: u64) -> bool {
        candidates.confirms(Candidate { peer, spi, sequence })
    }

    #[test]
    fn only_a_second_packet_near_the_first_confirms() {
        let mut candidates = Candidates::new();
        assert!(!met(&mut candidates, 1, 0xc000_0001, 7));
        assert!(!met(&mut candidates, 1, 0xc000_0001, 7), "the same packet again");
        assert!(!met(&mut candidates, 2, 0xc000_0001, 8), "another peer");
        assert!(met(&mut candidates, 1, 0xc000_0001, 9));
        assert!(!met(&mut candidates, 1, 0xc000_0001, 10), "the entry is used up");
        assert!(!met(&mut candidates, 1, 0xc000_0001, 11 + NEAR_PACKETS), "too far from the one before");
        assert!(met(&mut candidates, 1, 0xc000_0001, 10 + NEAR_PACKETS), "in disorder, too");
    }
}
