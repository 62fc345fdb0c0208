//! Programs at the ingress of an interface (`bpf(2)`, the hook `tcx` of Linux 6.6), behind all packet sockets and in front of the rules:
//! those of a few instructions, written down as numbers, and such as were loaded elsewhere.
//!
//! The kernel's verifier has proved before a program runs that it ends and reads nothing but the frame. It is attached by a
//! descriptor and gone with it, so that nothing is left behind.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::bpf::{self, Kind, Program};
pub(crate) use crate::instruction::*;

// A command, a hook and helpers of linux/bpf.h.
const LINK_CREATE: libc::c_long = 28;
const TCX_INGRESS: u32 = 46;
/// What a program for this place is loaded as.
pub const KIND: Kind = Kind::Device(TCX_INGRESS);

/// Sends whatever comes in at `interface` out by `target`, both in the calling thread's namespace, until the descriptor is closed.
pub(crate) fn redirect_all(interface: u32, target: u32) -> io::Result<OwnedFd> {
    let program = [
        instruction(SET, 1, 0, 0, target.cast_signed()),
        instruction(SET, 2, 0, 0, 0),
        instruction(CALL, 0, 0, 0, REDIRECT),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    attach(interface, &program)
}

/// The head of `union bpf_attr` for [`LINK_CREATE`].
#[repr(C)]
struct Attach {
    program: u32,
    interface: u32,
    hook: u32,
    flags: u32,
}

/// Puts `program` in front of what else is at the ingress of `interface`, in the calling thread's namespace.
pub(crate) fn attach(interface: u32, program: &[Instruction]) -> io::Result<OwnedFd> {
    attach_loaded(&Program::load(KIND, "ringwall", program, &[])?, interface)
}

/// Puts `program`, of [`KIND`], at the ingress of `interface`, in the calling thread's namespace, behind those that are there, until the
/// descriptor is closed.
///
/// # Errors
/// The kernel is older than Linux 6.6, or the program of another kind.
pub fn attach_loaded(program: &Program, interface: u32) -> io::Result<OwnedFd> {
    link(program, interface, TCX_INGRESS, 0)
}

/// Puts `program` at the hook of this number of `interface`, in the calling thread's namespace.
pub(crate) fn link(program: &Program, interface: u32, hook: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_fd().as_raw_fd().cast_unsigned();
    let mut attach = Attach { program, interface, hook, flags };
    // SAFETY: there is no pointer in it.
    unsafe { bpf::open(LINK_CREATE, &mut attach) }
}
