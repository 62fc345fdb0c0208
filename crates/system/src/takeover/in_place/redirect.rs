//! From the TAP to the stack: what the daemon writes is received by the card.
//!
//! The kernel's action `mirred` is the one way that a program in front of the card does not see
//! again. The filter that has it is a program, which marks the frame as opened and undoes what the
//! kernel concluded from the TAP's own address: that a frame to the card's address is for another
//! host. It matches every frame. A filter `u32` did before, and Linux 6.12 logged a warning with a
//! trace of calls when a later daemon replaced it.

use std::path::Path;

use super::super::TakeoverError;
use super::super::nft::hand_over;
use super::OPENED_MARK;
use crate::bpf::{self, Instruction, Kind, Program};
use crate::ingress::{CALL, COPY, EXIT, JUMP_UNLESS_EQUAL, LOAD_WORD, SET, STORE_WORD, instruction};
use crate::namespace::in_mount_tree;

/// Where `tc` is looked for.
pub(super) const TC: [&str; 3] = ["tc", "/usr/sbin/tc", "/sbin/tc"];

// Where `struct __sk_buff` has what a frame is to this host, and its mark (linux/bpf.h).
const ADDRESSEE: i16 = 4;
const MARK: i16 = 8;
const TO_US: i32 = 0;
const TO_ANOTHER: i32 = 3;
const CHANGE_ADDRESSEE: i32 = 32;
/// The filter matches, so its action is carried out.
const MATCHES: i32 = -1;

/// Has the card receive whatever comes in at the TAP. The program gets the name `path`.
pub(super) fn from_tap(interface: &str, path: &Path, tap: &str, card: &str) -> Result<(), TakeoverError> {
    let failed =
        |cause: std::io::Error| TakeoverError::Filter { interface: interface.to_owned(), cause: cause.to_string() };
    let program = Program::load(Kind::Classifier, "ringwall_mark", &program(), &[]).map_err(failed)?;
    let script = script(path, tap, card);
    let mut outcome = Ok(());
    let work = || {
        crate::files::remove_if_there(path)?;
        bpf::pin(&program, path)?;
        outcome = hand_over(interface, &TC, &["-batch", "-"], &script).map(drop);
        Ok(())
    };
    in_mount_tree(work).map_err(failed)?;
    outcome
}

fn script(path: &Path, tap: &str, card: &str) -> String {
    let path = path.display();
    format!(
        "qdisc replace dev {tap} clsact\n\
         filter replace dev {tap} ingress pref 1 handle 1 protocol all bpf object-pinned {path} \
         action mirred ingress redirect dev {card}\n"
    )
}

fn program() -> Vec<Instruction> {
    vec![
        instruction(COPY, 6, 1, 0, 0),
        instruction(SET, 2, 0, 0, OPENED_MARK.cast_signed()),
        instruction(STORE_WORD, 1, 2, MARK, 0),
        instruction(LOAD_WORD, 2, 1, ADDRESSEE, 0),
        instruction(JUMP_UNLESS_EQUAL, 2, 0, 3, TO_ANOTHER),
        instruction(COPY, 1, 6, 0, 0),
        instruction(SET, 2, 0, 0, TO_US),
        instruction(CALL, 0, 0, 0, CHANGE_ADDRESSEE),
        instruction(SET, 0, 0, 0, MATCHES),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}
