//! The shortcut past the rules: a program of some twenty instructions at the ingress of card and outer end that takes what the
//! rules ([`join`](super::join)) would join anyway, and leaves to them whatever it is not sure of.
//!
//! It only ever passes what the rules pass, so it is a matter of speed: it spares the rules, and on the way in also the queue between
//! the two ends of the pair. It lives as long as the daemon that holds it; a kernel without it, or a daemon that is gone, leaves
//! everything to the rules. The kernel's verifier has proved before it runs that it ends and reads nothing but the frame.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use super::Kept;
use crate::ingress::{
    ADD, CALL, COPY, EXIT, FROM_BIG_ENDIAN, Instruction, JUMP_IF_BEYOND, JUMP_IF_EQUAL, JUMP_UNLESS_EQUAL, LOAD_BYTE,
    LOAD_HALF, LOAD_WORD, REDIRECT, REDIRECT_PEER, SET, attach, instruction,
};
use crate::namespace::run_inside;

// Fields of `struct __sk_buff`.
const ADDRESSEE: i16 = 4;
const HAS_TAG: i16 = 20;
const DATA: i16 = 76;
const DATA_END: i16 = 80;

/// Bytes that are looked at: those of an Ethernet and an IPv4 header. What is shorter goes by the rules.
const HEADERS_LEN: i32 = 34;
const ETHERTYPE_AT: i16 = 12;
const PROTOCOL_AT: i16 = 23;
const NEXT_HEADER_AT: i16 = 20;
const IPV4: i32 = 0x0800;
const IPV6: i32 = 0x86dd;
const TCP: i32 = 6;
/// What a frame to the address of the interface that it came to is called.
const TO_US: i32 = 0;
/// Says that the next one at the hook decides, in the end the rules.
const NEXT: i32 = -1;

// Where jumps lead, before the program is put together.
const TO_RULES: i16 = i16::MAX;
const TO_SHORTCUT: i16 = i16::MAX - 1;

/// Which way a program takes frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// To the stack: the frame goes on at the inner end at once, without waiting in a queue. The kernel takes every such frame for one
    /// to its own address, so only those that the card heard as such may go this way.
    Inwards,
    /// To the wire.
    Outwards,
}

/// The programs at both ends. They are gone when this is dropped.
#[derive(Debug)]
pub struct Shortcut {
    _links: [OwnedFd; 2],
}

/// Joins `card` and `outer`, interface indexes in `namespace`, for what is not kept for sure.
pub(super) fn open(namespace: BorrowedFd<'_>, kept: Kept, card: u32, outer: u32) -> io::Result<Shortcut> {
    let attach = || {
        let inwards = attach(card, &program(kept, Direction::Inwards, outer))?;
        let outwards = attach(outer, &program(kept, Direction::Outwards, card))?;
        Ok(Shortcut { _links: [inwards, outwards] })
    };
    run_inside(namespace, attach)?
}

/// A frame without a tag is redirected to the interface `target` if it is IPv6 or, where DHCP is kept, TCP over IPv4;
/// where it is not, if it is IPv4. Where IPsec is kept, it is TCP over either. Register 1 comes in as the frame's description.
fn program(kept: Kept, direction: Direction, target: u32) -> Vec<Instruction> {
    let mut program = vec![
        instruction(LOAD_WORD, 2, 1, HAS_TAG, 0),
        instruction(JUMP_UNLESS_EQUAL, 2, 0, TO_RULES, 0),
        instruction(LOAD_WORD, 2, 1, DATA, 0),
        instruction(LOAD_WORD, 3, 1, DATA_END, 0),
        instruction(COPY, 4, 2, 0, 0),
        instruction(ADD, 4, 0, 0, HEADERS_LEN),
        instruction(JUMP_IF_BEYOND, 4, 3, TO_RULES, 0),
        instruction(LOAD_HALF, 4, 2, ETHERTYPE_AT, 0),
        instruction(FROM_BIG_ENDIAN, 4, 0, 0, 16),
    ];
    let is_tcp = [
        instruction(LOAD_BYTE, 5, 2, PROTOCOL_AT, 0),
        // Where a packet of the other version goes on, its own field in the register.
        instruction(JUMP_UNLESS_EQUAL, 5, 0, TO_RULES, TCP),
    ];
    let not_v4 = instruction(JUMP_UNLESS_EQUAL, 4, 0, TO_RULES, IPV4);
    match kept {
        Kept::Arp => program.extend([instruction(JUMP_IF_EQUAL, 4, 0, TO_SHORTCUT, IPV6), not_v4]),
        Kept::ArpAndDhcp => {
            program.extend([instruction(JUMP_IF_EQUAL, 4, 0, TO_SHORTCUT, IPV6), not_v4]);
            program.extend(is_tcp);
        }
        Kept::Ipsec => {
            program.push(instruction(LOAD_BYTE, 5, 2, NEXT_HEADER_AT, 0));
            // Past the next two.
            program.extend([instruction(JUMP_IF_EQUAL, 4, 0, 2, IPV6), not_v4]);
            program.extend(is_tcp);
        }
    }
    let shortcut = program.len();
    if direction == Direction::Inwards {
        program.push(instruction(LOAD_WORD, 4, 1, ADDRESSEE, 0));
        program.push(instruction(JUMP_UNLESS_EQUAL, 4, 0, TO_RULES, TO_US));
    }
    let helper = if direction == Direction::Inwards { REDIRECT_PEER } else { REDIRECT };
    program.extend([
        instruction(SET, 1, 0, 0, target.cast_signed()),
        instruction(SET, 2, 0, 0, 0),
        instruction(CALL, 0, 0, 0, helper),
        instruction(EXIT, 0, 0, 0, 0),
    ]);
    let rules = program.len();
    program.extend([instruction(SET, 0, 0, 0, NEXT), instruction(EXIT, 0, 0, 0, 0)]);
    for (at, instruction) in program.iter_mut().enumerate() {
        match instruction.offset {
            TO_RULES => instruction.offset = (rules - at - 1) as i16,
            TO_SHORTCUT => instruction.offset = (shortcut - at - 1) as i16,
            _ => {}
        }
    }
    program
}
