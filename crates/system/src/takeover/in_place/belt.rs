//! What holds should the rules be taken away: somebody else's `nft flush ruleset` takes ours along.
//!
//! Filters of `tc` at the card drop whatever lacks the daemon's mark. While the rules stand nothing else
//! comes to the one at the egress, so what that has dropped says that they are gone. Where only some
//! frames are kept for the daemon a second one stands at the ingress, since the rules alone would keep
//! those from the stack. The program's source is `bpf/keep.c`.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::super::TakeoverError;
use super::super::filter::MARK;
use super::super::nft::hand_over;
use super::OPENED_MARK;
use super::redirect::TC;
use crate::bpf::{self, Instruction, Keys, Kind, Map, Program, Shape, Shared};
use crate::namespace::in_mount_tree;

/// Made of `bpf/keep.c` by the `make.py` of the shield's programs.
const PROGRAM: &[u8] = include_bytes!("../../../bpf/keep.bpf");
/// The filter's number among those of the card, "RW".
const HANDLE: &str = "0x5257";

// The words of the one entry of the map.
const DROPPED: usize = 0;
const MARKED: usize = 1;
const KEPT: usize = 2;
const WORDS: usize = 3;

/// Where a filter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// On the way from the wire to the stack.
    Ingress,
    /// On the way from the stack to the wire.
    Egress,
}

impl Side {
    fn word(self) -> &'static str {
        match self {
            Side::Ingress => "ingress",
            Side::Egress => "egress",
        }
    }

    /// Whose frames it lets pass.
    fn mark(self) -> u32 {
        match self {
            Side::Ingress => OPENED_MARK,
            Side::Egress => MARK,
        }
    }
}

/// Of which frames it drops those without a mark; the numbers are those of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Of all.
    All = 0,
    /// Of ARP, and of what has a tag, behind which ARP may be.
    Arp = 1,
}

/// The belt of a card. It stays when this is dropped.
#[derive(Clone, Debug)]
pub(super) struct Belt(Shared);

impl Belt {
    fn word(&self, at: usize) -> Option<&std::sync::atomic::AtomicU64> {
        self.0.words().get(at)
    }

    /// Frames that it has dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.word(DROPPED).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// Puts the belt around `card`; its program gets the name `path`. And whether the place for such
/// filters is made for it.
pub(super) fn stand(
    interface: &str,
    path: &Path,
    card: &str,
    (side, of): (Side, Of),
) -> Result<(Belt, bool), TakeoverError> {
    let failed =
        |cause: std::io::Error| TakeoverError::Filter { interface: interface.to_owned(), cause: cause.to_string() };
    let (program, belt) = load(side, of).map_err(failed)?;
    let (mut outcome, mut is_new) = (Ok(()), false);
    let work = || {
        crate::files::remove_if_there(path)?;
        bpf::pin(&program, path)?;
        is_new = tc(interface, &format!("qdisc add dev {card} clsact\n")).is_ok();
        let (path, side) = (path.display(), side.word());
        outcome = tc(
            interface,
            &format!(
                "filter replace dev {card} {side} pref 1 handle {HANDLE} protocol all bpf direct-action \
                 object-pinned {path}\n"
            ),
        );
        Ok(())
    };
    in_mount_tree(work).map_err(failed)?;
    outcome.map(|()| (belt, is_new))
}

fn load(side: Side, of: Of) -> std::io::Result<(Program, Belt)> {
    let map = Map::create(Shape { keys: Keys::Places, shared: true, key_len: 4, value_len: WORDS * 8, entries: 1 })?;
    let belt = Belt(map.share()?);
    for (at, value) in [(MARKED, side.mark().into()), (KEPT, of as u64)] {
        if let Some(word) = belt.word(at) {
            word.store(value, Ordering::Relaxed);
        }
    }
    let program = Program::load(Kind::Classifier, "ringwall_belt", &Instruction::read(PROGRAM), &[map])?;
    Ok((program, belt))
}

/// Takes the belt away from this side. That there is none is no error.
pub(super) fn open(interface: &str, card: &str, side: Side) {
    let side = side.word();
    let _gone = tc(interface, &format!("filter del dev {card} {side} pref 1 handle {HANDLE} protocol all bpf\n"));
}

/// Takes the place for such filters away, if nobody else uses it.
pub(super) fn give_place_back(interface: &str, card: &str) {
    let _used = tc(interface, &format!("qdisc del dev {card} clsact\n"));
}

fn tc(interface: &str, script: &str) -> Result<(), TakeoverError> {
    hand_over(interface, &TC, &["-batch", "-"], script)
}
