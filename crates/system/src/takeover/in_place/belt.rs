//! What holds should the rules be taken away: somebody else's `nft flush ruleset` takes ours along.
//!
//! A filter of `tc` at the card's egress drops whatever lacks the daemon's mark. While the rules stand
//! nothing else comes to it, so what it has dropped says that they are gone.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::super::TakeoverError;
use super::super::filter::MARK;
use super::super::nft::hand_over;
use super::redirect::TC;
use crate::bpf::{self, Instruction, Keys, Kind, Map, Program, Shape, Shared};
use crate::ingress::{ADD_IN_MEMORY, EXIT, JUMP_IF_EQUAL, LOAD_WORD, SET, find_only_entry, instruction};
use crate::namespace::in_mount_tree;

// Where `struct __sk_buff` has the mark (linux/bpf.h), and what a filter of `tc` answers (linux/pkt_cls.h).
const MARK_AT: i16 = 8;
const NEXT: i32 = -1;
const DROP: i32 = 2;
/// The filter's number among those of the card, "RW".
const HANDLE: &str = "0x5257";

/// The belt of a card. It stays when this is dropped.
#[derive(Clone, Debug)]
pub(super) struct Belt(Shared);

impl Belt {
    /// Frames that the rules would have kept from it.
    pub(super) fn dropped(&self) -> u64 {
        self.0.words().first().map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// Puts the belt around `card`; its program gets the name `path`. And whether the place for such
/// filters is made for it.
pub(super) fn stand(interface: &str, path: &Path, card: &str) -> Result<(Belt, bool), TakeoverError> {
    let failed =
        |cause: std::io::Error| TakeoverError::Filter { interface: interface.to_owned(), cause: cause.to_string() };
    let shape = Shape { keys: Keys::Places, shared: true, key_len: 4, value_len: 8, entries: 1 };
    let map = Map::create(shape).map_err(failed)?;
    let belt = Belt(map.share().map_err(failed)?);
    let program = Program::load(Kind::Classifier, "ringwall_belt", &program(), &[map]).map_err(failed)?;
    let (mut outcome, mut is_new) = (Ok(()), false);
    let work = || {
        crate::files::remove_if_there(path)?;
        bpf::pin(&program, path)?;
        is_new = tc(interface, &format!("qdisc add dev {card} clsact\n")).is_ok();
        let path = path.display();
        outcome = tc(
            interface,
            &format!(
                "filter replace dev {card} egress pref 1 handle {HANDLE} protocol all bpf direct-action \
                 object-pinned {path}\n"
            ),
        );
        Ok(())
    };
    in_mount_tree(work).map_err(failed)?;
    outcome.map(|()| (belt, is_new))
}

/// Takes the belt away, and the place for such filters where it was made for it. That there is none is no error.
pub(super) fn open(interface: &str, card: &str, is_own: bool) {
    let delete = format!("filter del dev {card} egress pref 1 handle {HANDLE} protocol all bpf\n");
    let _gone = tc(interface, &delete);
    if is_own {
        let _used = tc(interface, &format!("qdisc del dev {card} clsact\n"));
    }
}

fn tc(interface: &str, script: &str) -> Result<(), TakeoverError> {
    hand_over(interface, &TC, &["-batch", "-"], script)
}

/// Counts and drops what has another mark than the daemon's frames.
fn program() -> Vec<Instruction> {
    let find = find_only_entry();
    let count = [
        instruction(JUMP_IF_EQUAL, 0, 0, 2, 0),
        instruction(SET, 1, 0, 0, 1),
        instruction(ADD_IN_MEMORY, 0, 1, 0, 0),
        instruction(SET, 0, 0, 0, DROP),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    let own = (find.len() + count.len()) as i16;
    let judge = [instruction(LOAD_WORD, 2, 1, MARK_AT, 0), instruction(JUMP_IF_EQUAL, 2, 0, own, MARK.cast_signed())];
    let pass = [instruction(SET, 0, 0, 0, NEXT), instruction(EXIT, 0, 0, 0, 0)];
    [&judge[..], &find, &count, &pass].concat()
}
