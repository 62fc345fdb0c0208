//! Instructions of programs in the kernel (linux/bpf.h), for programs of a few of them.

use std::mem::size_of;

/// Looks a key up in a map.
pub(crate) const LOOK_UP: i32 = 1;
/// Sends the frame out by another interface.
pub(crate) const REDIRECT: i32 = 23;
/// Has the other end of a pair receive the frame.
pub(crate) const REDIRECT_PEER: i32 = 155;

// Operations.
pub(crate) const LOAD_BYTE: u8 = 0x71;
pub(crate) const LOAD_HALF: u8 = 0x69;
pub(crate) const LOAD_WORD: u8 = 0x61;
pub(crate) const STORE_WORD: u8 = 0x63;
pub(crate) const COPY: u8 = 0xbf;
pub(crate) const SET: u8 = 0xb7;
pub(crate) const ADD: u8 = 0x07;
pub(crate) const MASK: u8 = 0x57;
pub(crate) const FROM_BIG_ENDIAN: u8 = 0xdc;
pub(crate) const JUMP_IF_EQUAL: u8 = 0x15;
pub(crate) const JUMP_UNLESS_EQUAL: u8 = 0x55;
pub(crate) const JUMP_IF_BEYOND: u8 = 0x2d;
pub(crate) const CALL: u8 = 0x85;
pub(crate) const EXIT: u8 = 0x95;

/// `operation` from register `from` to register `to`.
pub(crate) fn instruction(operation: u8, to: u8, from: u8, offset: i16, operand: i32) -> Instruction {
    Instruction { operation, registers: from << 4 | to, offset, operand }
}

/// One instruction as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub operation: u8,
    /// Destination in the low half, source in the high one.
    pub registers: u8,
    /// Of a jump or an address.
    pub offset: i16,
    /// A constant.
    pub operand: i32,
}

impl Instruction {
    /// Bytes of an instruction.
    pub const LEN: usize = size_of::<Instruction>();

    /// The instructions in `code`, which a compiler for little-endian machines wrote; what is left over is ignored.
    #[must_use]
    pub fn read(code: &[u8]) -> Vec<Instruction> {
        let read = |&[operation, registers, a, b, c, d, e, f]: &[u8; Instruction::LEN]| Instruction {
            operation,
            registers,
            offset: i16::from_le_bytes([a, b]),
            operand: i32::from_le_bytes([c, d, e, f]),
        };
        code.as_chunks().0.iter().map(read).collect()
    }
}
