//! One signature for many messages: a hash tree over a batch, so that each of its messages proves itself alone.
//!
//! The shape is that of RFC 9162, section 2.1: leaves and nodes are hashed with different first bytes, so that no node can
//! stand for a leaf, and the last of an odd row moves up as it is. The signature is over the root and the number of leaves.

use std::collections::VecDeque;

use identity::hash::sha256;
use wire::cll::broadcast::{HASH_LEN, INCARNATION_LEN, PATH_NODES_MAX, Place};
use wire::cll::handshake::tagged_parts;

use crate::limits::GROUP_ROOTS_MAX;

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

/// Rows of the highest tree, leaves and root included.
const ROWS_MAX: usize = PATH_NODES_MAX + 1;

/// The nodes between a leaf and its root, each with the one beside it.
///
/// If the root is right, all of them are: whoever makes a leaf that leads to one of them has found a collision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    place: Place,
    /// From the leaf up to the root, which is alone; none above it.
    pairs: [Pair; ROWS_MAX],
}

impl Way {
    /// From `leaf` by `path`, whose length fits `place`.
    pub(crate) fn of(leaf: Hash, place: Place, path: &[u8]) -> Way {
        Climb::from(leaf, place, path).into_way()
    }

    /// Where it leads to.
    pub(crate) fn root(&self) -> Hash {
        self.pairs.iter().rev().find_map(|pair| pair[0]).unwrap_or_default()
    }

    pub(crate) fn leaves(&self) -> u8 {
        self.place.leaves
    }

    /// The node number `at` of the row so far above the leaves, if it is in this way or beside it.
    fn node(&self, row: usize, at: u8) -> Option<&Hash> {
        let is_here = (self.place.leaf >> row) ^ at <= 1;
        self.pairs.get(row).filter(|_| is_here).and_then(|pair| pair[usize::from(at % 2)].as_ref())
    }
}

/// The batches of one sender whose roots were found right: of each the way of the leaf that came last, newest batch last.
///
/// A leaf of one of them is proved at the first of its nodes that is in the way of the leaf before, or beside it. So leaves
/// that come in their order need one hash more than their own, instead of one for each row.
#[derive(Debug, Default)]
pub(crate) struct Batches(VecDeque<Box<Way>>);

impl Batches {
    /// Whether `leaf` is at `place` of one of them. If so, its way is the one that is remembered of that batch.
    ///
    /// # Errors
    /// It is in none: the way to the root that would have to be signed.
    pub(crate) fn prove(&mut self, leaf: Hash, place: Place, path: &[u8]) -> Result<(), Box<Way>> {
        let mut climb = Climb::from(leaf, place, path);
        loop {
            let (hash, leaves) = (&climb.hash, place.leaves);
            let knows = |way: &&mut Box<Way>| way.leaves() == leaves && way.node(climb.row, climb.at) == Some(hash);
            if let Some(way) = self.0.iter_mut().rev().find(knows) {
                way.pairs[..climb.row].copy_from_slice(&climb.pairs[..climb.row]);
                way.place = place;
                return Ok(());
            }
            if climb.width == 1 {
                return Err(Box::new(climb.into_way()));
            }
            climb.ascend();
        }
    }

    /// Remembers a batch whose root was found right by one of its ways, and forgets the oldest.
    pub(crate) fn remember(&mut self, way: Box<Way>) {
        if self.0.len() == GROUP_ROOTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(way);
    }
}

/// On the way up.
struct Climb<'a> {
    place: Place,
    hash: Hash,
    row: usize,
    at: u8,
    width: u8,
    beside: &'a [Hash],
    /// What was passed.
    pairs: [Pair; ROWS_MAX],
}

impl<'a> Climb<'a> {
    fn from(leaf: Hash, place: Place, path: &'a [u8]) -> Climb<'a> {
        let (beside, _) = path.as_chunks::<HASH_LEN>();
        let (at, width) = (place.leaf, place.leaves);
        Climb { place, hash: leaf, row: 0, at, width, beside, pairs: [[None; 2]; ROWS_MAX] }
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
        self.pairs[self.row] = pair;
        self.row += 1;
        self.at /= 2;
        self.width = self.width.div_ceil(2);
    }

    fn into_way(mut self) -> Way {
        while self.width > 1 {
            self.ascend();
        }
        self.pairs[self.row] = [Some(self.hash), None];
        Way { place: self.place, pairs: self.pairs }
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

    /// What is remembered of one batch, of which this way was found right.
    fn known(way: Way) -> Batches {
        let mut batches = Batches::default();
        batches.remember(Box::new(way));
        batches
    }

    /// Whatever leaf came before: what is in the tree is proved as by the way to the root, and nothing else is.
    #[test]
    fn a_known_way_proves_its_tree_and_nothing_else() {
        for count in 1..=LEAVES_MAX {
            let (tree, leaves) = (Tree::over(leaves(count)), leaves(count));
            let place = |leaf: usize| Place { leaf: leaf as u8, leaves: count };
            let stride = if count % 7 == 0 { 5 } else { 7 };
            let mut known = known(Way::of(leaves[0], place(0), &tree.path(0)));
            for at in (0..leaves.len()).chain((0..leaves.len()).map(|step| step * stride % leaves.len())) {
                let (leaf, path) = (leaves[at], tree.path(at));
                let forged = sha256(&[&leaf]);
                let unproved = known.prove(forged, place(at), &path);
                assert_eq!(unproved, Err(Box::new(Way::of(forged, place(at), &path))), "a forged leaf {at} of {count}");
                let elsewhere = (at + 1) % leaves.len();
                assert!(elsewhere == at || known.prove(leaf, place(elsewhere), &tree.path(elsewhere)).is_err());
                assert_eq!(known.prove(leaf, place(at), &path), Ok(()), "leaf {at} of {count}");
                assert_eq!(*known.0[0], Way::of(leaf, place(at), &path), "leaf {at} of {count}");
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
                let mut known = known(Way::of(leaves[0], Place { leaf: 0, ..place }, &tree.path(0)));
                let is_in_both = others[at] == leaves[at];
                assert_eq!(known.prove(others[at], place, &other.path(at)).is_ok(), is_in_both, "leaf {at} of {count}");
            }
        }
    }

    /// Batches overtake each other; each keeps its own way, and one that is forgotten proves nothing more.
    #[test]
    fn the_last_batches_prove_their_leaves_in_any_order_and_the_one_before_them_does_not() {
        let place = |leaf: usize| Place { leaf: leaf as u8, leaves: 5 };
        let batch = |number: u8| -> Vec<Hash> { (0..5).map(|at| leaf(&[number; 14], &[at; 60])).collect() };
        let way = |number: u8, at: usize| {
            Box::new(Way::of(batch(number)[at], place(at), &Tree::over(batch(number)).path(at)))
        };
        let newest = GROUP_ROOTS_MAX as u8;
        let mut known = Batches::default();
        (0..=newest).for_each(|number| known.remember(way(number, 0)));
        for at in [3, 1, 4, 2, 0] {
            for number in 0..=newest {
                let proved = known.prove(batch(number)[at], place(at), &Tree::over(batch(number)).path(at));
                assert_eq!(proved, if number > 0 { Ok(()) } else { Err(way(0, at)) }, "leaf {at} of batch {number}");
            }
            assert!(known.0.iter().eq(&(1..=newest).map(|number| way(number, at)).collect::<Vec<_>>()));
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
