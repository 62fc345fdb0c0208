//! Programs of a few instructions at the ingress of an interface (`bpf(2)`, the hook `tcx` of Linux 6.6), written down as numbers.
//!
//! The kernel's verifier has proved before a program runs that it ends and reads nothing but the frame. It is attached by a
//! descriptor and gone with it, so that nothing is left behind.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

// Commands, kinds and helpers of linux/bpf.h.
const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
/// Sends the frame out by another interface.
pub(crate) const REDIRECT: i32 = 23;
/// Has the other end of a pair receive the frame.
pub(crate) const REDIRECT_PEER: i32 = 155;

// Operations.
pub(crate) const LOAD_BYTE: u8 = 0x71;
pub(crate) const LOAD_HALF: u8 = 0x69;
pub(crate) const LOAD_WORD: u8 = 0x61;
pub(crate) const COPY: u8 = 0xbf;
pub(crate) const SET: u8 = 0xb7;
pub(crate) const ADD: u8 = 0x07;
pub(crate) const FROM_BIG_ENDIAN: u8 = 0xdc;
pub(crate) const JUMP_IF_EQUAL: u8 = 0x15;
pub(crate) const JUMP_UNLESS_EQUAL: u8 = 0x55;
pub(crate) const JUMP_IF_BEYOND: u8 = 0x2d;
pub(crate) const CALL: u8 = 0x85;
pub(crate) const EXIT: u8 = 0x95;

/// One instruction as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    operation: u8,
    /// Destination in the low half, source in the high one.
    registers: u8,
    /// How far a jump leads, or where a value lies.
    pub(crate) offset: i16,
    operand: i32,
}

/// `operation` from register `from` to register `to`.
pub(crate) fn instruction(operation: u8, to: u8, from: u8, offset: i16, operand: i32) -> Instruction {
    Instruction { operation, registers: from << 4 | to, offset, operand }
}

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

/// The head of `union bpf_attr` for [`PROG_LOAD`]; the kernel takes the rest as zero.
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    at: u64,
    license: u64,
    log_level: u32,
    log_len: u32,
    log_at: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    hook: u32,
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
    let license = c"Apache-2.0";
    let load = Load {
        kind: SCHED_CLS,
        instructions: program.len() as u32,
        at: program.as_ptr() as u64,
        license: license.as_ptr() as u64,
        log_level: 0,
        log_len: 0,
        log_at: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"ringwall\0\0\0\0\0\0\0\0",
        interface: 0,
        hook: TCX_INGRESS,
    };
    // SAFETY: both pointers in `load` are to values that outlive the call, with the lengths that it states.
    let loaded = unsafe { call(PROG_LOAD, &load) }?;
    let attach = Attach { program: loaded.as_fd().as_raw_fd().cast_unsigned(), interface, hook: TCX_INGRESS, flags: 0 };
    // SAFETY: there is no pointer in it.
    unsafe { call(LINK_CREATE, &attach) }
}

/// Calls `bpf`, which answers with a descriptor.
///
/// # Safety
/// `attributes` must be what `command` reads, and its pointers valid for as much as it says.
unsafe fn call<T>(command: libc::c_long, attributes: &T) -> io::Result<OwnedFd> {
    // SAFETY: the kernel reads `attributes` with the size given, and the caller vouches for what it points to.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    let descriptor = i32::try_from(result).ok().filter(|descriptor| *descriptor >= 0);
    // SAFETY: the kernel has just opened it for us, and nobody else knows of it.
    descriptor.map(|open| unsafe { OwnedFd::from_raw_fd(open) }).ok_or_else(io::Error::last_os_error)
}
