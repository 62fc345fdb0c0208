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

/// A node and the one beside it, the left one first; the last of an odd row has none.
type Pair = [Option<Hash>; 2];

/// The nodes between a leaf and its root, each with the one beside it.
///
/// If the root is right, all of them are: whoever makes a leaf that leads to one of them has found a collision. So a leaf of a
/// tree that is known is proved at the first of its nodes that is in the way of the leaf before; leaves that come in their order
/// need one hash more than their own, instead of one for each row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Way {
    place: Place,
    /// From the leaf up to the root, which is alone.
    pairs: Vec<Pair>,
}

impl Way {
    /// From `leaf` by `path`, whose length fits `place`.
    pub(crate) fn of(leaf: Hash, place: Place, path: &[u8]) -> Way {
        let mut climb = Climb::from(leaf, place, path);
        while climb.width > 1 {
            climb.ascend();
        }
        Way { place, pairs: climb.into_pairs() }
    }

    /// Where it leads to.
    pub(crate) fn root(&self) -> Hash {
        self.pairs.last().and_then(|pair| pair[0]).unwrap_or_default()
    }

    pub(crate) fn leaves(&self) -> u8 {
        self.place.leaves
    }

    /// Whether `leaf` is at `place` of the same tree. If so, this becomes its way.
    pub(crate) fn proves(&mut self, leaf: Hash, place: Place, path: &[u8]) -> bool {
        if place.leaves != self.place.leaves {
            return false;
        }
        let mut climb = Climb::from(leaf, place, path);
        loop {
            if let Some(known) = self.node(climb.pairs.len(), climb.at) {
                let is_same = known == climb.hash;
                if is_same {
                    self.pairs.splice(..climb.pairs.len(), climb.pairs);
                    self.place = place;
                }
                return is_same;
            }
            climb.ascend();
        }
    }

    /// The node number `at` of the row so far above the leaves, if it is in this way or beside it.
    fn node(&self, row: usize, at: u8) -> Option<Hash> {
        let is_here = (self.place.leaf >> row) ^ at <= 1;
        self.pairs.get(row).filter(|_| is_here).and_then(|pair| pair[usize::from(at % 2)])
    }
}

/// On the way up.
struct Climb<'a> {
    hash: Hash,
    at: u8,
    width: u8,
    beside: &'a [Hash],
    /// What was passed.
    pairs: Vec<Pair>,
}

impl<'a> Climb<'a> {
    fn from(leaf: Hash, place: Place, path: &'a [u8]) -> Climb<'a> {
        let (beside, _) = path.as_chunks::<HASH_LEN>();
        Climb { hash: leaf, at: place.leaf, width: place.leaves, beside, pairs: Vec::new() }
    }

    /// To the node above.
    fn ascend(&mut self) {
        let own = Some(self.hash);
        let sibling = self.beside.first().filter(|_| self.at ^ 1 < self.width).copied();
        let pair = if self.at.is_multiple_of(2) { [own, sibling] } else { [sibling, own] };
        if let [Some(left), Some(right)] = &pair {
            self.hash = node(left, right);
            self.beside = &self.beside[1..];
        }
        self.pairs.push(pair);
        self.at /= 2;
        self.width = self.width.div_ceil(2);
    }

    fn into_pairs(mut self) -> Vec<Pair> {
        self.pairs.push([Some(self.hash), None]);
        self.pairs
    }
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
                assert_eq!(Way::of(leaf, place, &path).root(), tree.root(), "leaf {at} of {count}");
                let elsewhere = Place { leaf: place.leaf ^ 1, ..place };
                if elsewhere.leaf < count && elsewhere.path_nodes() == place.path_nodes() {
                    assert_ne!(Way::of(leaf, elsewhere, &path).root(), tree.root(), "leaf {at} of {count}");
                }
            }
        }
    }

    /// Whatever leaf came before: what is in the tree is proved as by the way to the root, and nothing else is.
    #[test]
    fn a_known_way_proves_its_tree_and_nothing_else() {
        for count in 1..=LEAVES_MAX {
            let (tree, leaves) = (Tree::over(leaves(count)), leaves(count));
            let place = |leaf: usize| Place { leaf: leaf as u8, leaves: count };
            let stride = if count % 7 == 0 { 5 } else { 7 };
            let mut known = Way::of(leaves[0], place(0), &tree.path(0));
            for at in (0..leaves.len()).chain((0..leaves.len()).map(|step| step * stride % leaves.len())) {
                let (leaf, path) = (leaves[at], tree.path(at));
                assert!(!known.proves(sha256(&[&leaf]), place(at), &path), "a forged leaf {at} of {count}");
                let elsewhere = (at + 1) % leaves.len();
                assert!(elsewhere == at || !known.proves(leaf, place(elsewhere), &tree.path(elsewhere)));
                assert!(known.proves(leaf, place(at), &path), "leaf {at} of {count}");
                assert_eq!(known, Way::of(leaf, place(at), &path), "leaf {at} of {count}");
            }
        }
    }

    #[test]
    fn a_way_does_not_prove_a_leaf_of_another_tree() {
        for count in 1..=LEAVES_MAX {
            let leaves = leaves(count);
            let mut others = leaves.clone();
            others[0] = [9; HASH_LEN];
            let (tree, other) = (Tree::over(leaves.clone()), Tree::over(others.clone()));
            for at in 0..usize::from(count) {
                let place = Place { leaf: at as u8, leaves: count };
                let mut known = Way::of(leaves[0], Place { leaf: 0, ..place }, &tree.path(0));
                let is_in_both = others[at] == leaves[at];
                assert_eq!(known.proves(others[at], place, &other.path(at)), is_in_both, "leaf {at} of {count}");
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
