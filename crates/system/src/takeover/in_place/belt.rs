//! What holds should the rules be taken away: somebody else's `nft flush ruleset` takes ours along.
//!
//! Filters of `tc` at the card drop whatever lacks the daemon's mark. While the rules stand nothing else
//! comes to the one at the egress, so what that has dropped says that they are gone. Where only some
//! frames are kept for the daemon a second one stands at the ingress, since the rules alone would keep
//! those from the stack. The program's source is `bpf/keep.c`.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::super::TakeoverError;
use super::super::nft::MARK;
use super::OPENED_MARK;
use super::hook::{Hook, Side};
use crate::bpf::{Instruction, Keys, Kind, Map, Program, Shape, Shared};

/// Made of `bpf/keep.c` by the `make.py` of the shield's programs.
const PROGRAM: &[u8] = include_bytes!("../../../bpf/keep.bpf");
/// The filter's number among those of the card, "RW".
const HANDLE: u32 = 0x5257;

// The words of the one entry of the map.
const DROPPED: usize = 0;
const MARKED: usize = 1;
const KEPT: usize = 2;
const WORDS: usize = 3;

/// Of which frames it drops those without a mark; the numbers are those of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Of all.
    All = 0,
    /// Of ARP, and of what has a tag, behind which ARP may be.
    Arp = 1,
}

/// Where it stands on one side of `card`.
pub(super) fn hook(card: &str, side: Side) -> Hook<'_> {
    Hook { card, side, handle: HANDLE }
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

/// Puts the belt around a card; its program gets the name `path`. And whether the place for such
/// filters is made for it.
pub(super) fn stand(interface: &str, path: &Path, hook: &Hook, of: Of) -> Result<(Belt, bool), TakeoverError> {
    let (program, belt) = load(hook.side, of)
        .map_err(|cause| TakeoverError::Filter { interface: interface.to_owned(), cause: cause.to_string() })?;
    Ok((belt, hook.put(interface, path, &program)?))
}

fn load(side: Side, of: Of) -> std::io::Result<(Program, Belt)> {
    let map = Map::create(Shape { keys: Keys::Places, shared: true, key_len: 4, value_len: WORDS * 8, entries: 1 })?;
    let belt = Belt(map.share()?);
    let mark = match side {
        Side::Ingress => OPENED_MARK,
        Side::Egress => MARK,
    };
    for (at, value) in [(MARKED, mark.into()), (KEPT, of as u64)] {
        if let Some(word) = belt.word(at) {
            word.store(value, Ordering::Relaxed);
        }
    }
    let program = Program::load(Kind::Classifier, "ringwall_belt", &Instruction::read(PROGRAM), &[map])?;
    Ok((program, belt))
}
