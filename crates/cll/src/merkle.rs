//! One signature for many messages: a hash tree over a batch, so that each of its messages proves itself alone.
//!
//! The shape is that of RFC 9162, section 2.1: leaves and nodes are hashed with different first bytes, so that no node can
//! stand for a leaf, and the last of an odd row moves up as it is. The signature is over the root and the number of leaves.

use identity::hash::sha256;
use wire::cll::broadcast::{HASH_LEN, INCARNATION_LEN, Place};
use wire::cll::handshake::tagged_parts;

/// A hash of the tree.
pub(crate) type Hash = [u8; HASH_LEN];

const LEAF: &[u8] = &[0];
const NODE: &[u8] = &[1];
/// Separates this signature from all others of the same key.
const ROOT_LABEL: &[u8] = b"ringwall cll 2 broadcast";

/// The leaf of a message: everything in front of its proof but the tag, with the Ethernet header.
pub(crate) fn leaf(ethernet: &[u8], unproved: &[u8]) -> Hash {
    let [before, after] = tagged_parts(unproved);
    sha256(&[LEAF, ethernet, before, after])
}

fn node(left: &Hash, right: &Hash) -> Hash {
    sha256(&[NODE, left, right])
}

/// What is signed for a batch.
pub(crate) fn signed(incarnation: [u8; INCARNATION_LEN], leaves: u8, root: &Hash) -> Vec<u8> {
    [ROOT_LABEL, &incarnation, &[leaves], root].concat()
}

/// The root to which `leaf` leads by `path`, whose length fits `place`.
pub(crate) fn root_of(leaf: Hash, place: Place, path: &[u8]) -> Hash {
    let (mut at, mut width, mut hash) = (place.leaf, place.leaves, leaf);
    let (mut beside, _) = path.as_chunks::<HASH_LEN>();
    while width > 1 {
        if at ^ 1 < width
            && let Some((sibling, rest)) = beside.split_first()
        {
            hash = if at % 2 == 0 { node(&hash, sibling) } else { node(sibling, &hash) };
            beside = rest;
        }
        at /= 2;
        width = width.div_ceil(2);
    }
    hash
}

/// The tree over a batch.
pub(crate) struct Tree {
    /// From the leaves up to the root.
    rows: Vec<Vec<Hash>>,
}

impl Tree {
    /// The tree over `leaves`, of which there is at least one.
    pub(crate) fn over(leaves: Vec<Hash>) -> Tree {
        let mut rows = vec![leaves];
        while let Some(row) = rows.last().filter(|row| row.len() > 1) {
            let above = row.chunks(2).map(|pair| if let [left, right] = pair { node(left, right) } else { pair[0] });
            let above = above.collect();
            rows.push(above);
        }
        Tree { rows }
    }

    pub(crate) fn root(&self) -> Hash {
        self.rows.last().and_then(|row| row.first()).copied().unwrap_or_default()
    }

    /// The hashes beside the way from leaf `at` to the root.
    pub(crate) fn path(&self, at: usize) -> Vec<u8> {
        let rows = self.rows.iter().enumerate();
        let beside = rows.filter_map(|(height, row)| row.get((at >> height) ^ 1));
        beside.flatten().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use wire::cll::broadcast::LEAVES_MAX;

    use super::*;

    fn leaves(count: u8) -> Vec<Hash> {
        (0..count).map(|at| leaf(&[at; 14], &[7; 60])).collect()
    }

    #[test]
    fn every_leaf_of_every_batch_leads_to_its_root_and_to_no_other_place() {
        for count in 1..=LEAVES_MAX {
            let tree = Tree::over(leaves(count));
            for (at, leaf) in leaves(count).into_iter().enumerate() {
                let place = Place { leaf: at as u8, leaves: count };
                let path = tree.path(at);
                assert_eq!(path.len(), place.path_nodes() * HASH_LEN, "leaf {at} of {count}");
                assert_eq!(root_of(leaf, place, &path), tree.root(), "leaf {at} of {count}");
                let elsewhere = Place { leaf: place.leaf ^ 1, ..place };
                if elsewhere.leaf < count && elsewhere.path_nodes() == place.path_nodes() {
                    assert_ne!(root_of(leaf, elsewhere, &path), tree.root(), "leaf {at} of {count}");
                }
            }
        }
    }

    /// RFC 9162, section 2.1.1: the hash of (d0 d1) d2, written out.
    #[test]
    fn three_leaves_make_the_tree_of_the_rfc() {
        let [a, b, c] = [0_u8, 1, 2].map(|at| leaf(&[at; 14], &[7; 60]));
        let left = sha256(&[&[1], &a, &b]);
        assert_eq!(Tree::over(vec![a, b, c]).root(), sha256(&[&[1], &left, &c]));
    }

    #[test]
    fn the_tag_is_no_part_of_a_leaf_and_everything_else_is() {
        let message = [7_u8; 60];
        let first = leaf(&[1; 14], &message);
        for at in 0..message.len() {
            let mut changed = message;
            changed[at] ^= 1;
            assert_eq!(leaf(&[1; 14], &changed) == first, (2..18).contains(&at), "byte {at}");
        }
        assert_ne!(leaf(&[2; 14], &message), first);
    }
}
