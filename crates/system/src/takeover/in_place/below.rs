//! Below the device of a VLAN: what shuts the VLAN while its device is gone.
//!
//! Guard, rules and belt go with the device. Whoever makes it again would have it open until a
//! daemon comes, from its first frame on. So filters of `tc` at the card below, on both sides, drop
//! the VLAN's frames unless the very device is there that is guarded. The kernel takes a device
//! that goes out of the map that the program asks. Behind a tag with number 0, which the kernel
//! takes off, there may be any other.
//!
//! Before the first daemon of a boot rules of `closed.sh` do the same. It reads in a file that is
//! written here what to shut before the device is there.
//!
//! Limits: a packet socket on the card that bypasses queueing, or writes the tag itself, sends in
//! the VLAN past this. The card keeps an empty place for filters, which others may have come to
//! use.

use std::io;
use std::path::Path;

use super::super::TakeoverError;
use super::super::error::Doing;
use super::super::state::Below;
use super::super::work::Work;
use super::Names;
use super::hook::{Hook, Side};
use crate::bpf::{Instruction, Keys, Kind, LOAD_64, Map, PSEUDO_MAP_FD, Program, Shape};
use crate::files;
use crate::instruction::{
    ADD, CALL, COPY, EXIT, JUMP_IF_EQUAL, JUMP_UNLESS_EQUAL, LOAD_WORD, LOOK_UP, MASK, SET, STORE_WORD, instruction,
};
use crate::netlink::Connection;
use crate::netlink::link::Link;

// Where `struct __sk_buff` has a frame's protocol, and number and priority of its tag, zero without
// one (linux/bpf.h).
const PROTOCOL: i16 = 16;
const IS_TAGGED: i16 = 20;
const TAG: i16 = 24;
/// Of a tag the VLAN's number (IEEE 802.1Q, 9.6).
const NUMBER: i32 = 0x0fff;
/// EtherTypes of tags.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// What the program answers: the next filter decides, or nobody gets the frame.
const NEXT: i32 = -1;
const DROP: i32 = 2;

impl Work<'_> {
    /// Has the VLAN whose device is `device` shut from the moment at which the device is gone. Of
    /// another device, or with the card in another namespace, it does nothing. Others' filters may be
    /// in the way at the card, which is no reason to leave the device itself without a guard.
    pub(super) fn shut_when_gone(&mut self, names: &Names, device: &Link) {
        if let Err(error) = self.try_shut_when_gone(names, device) {
            self.warnings.push(open_when_gone(&error));
        }
    }

    fn try_shut_when_gone(&mut self, names: &Names, device: &Link) -> Result<(), TakeoverError> {
        let links = self.host.links().doing(self.interface(), "list the interfaces")?;
        let card = links.into_iter().find(|link| device.below == Some(link.index));
        let below = card.zip(device.vlan).map(|(card, vlan)| Below { card: card.name, index: card.index, vlan });
        self.warnings.extend(note(&self.place.interface, &mut self.state.below, below.as_ref()));
        self.save()?;
        let Some(below) = below else { return Ok(()) };
        let note = format!("{} {}\n", below.card, below.vlan);
        files::replace_private(&self.place.vlan, note.as_bytes())
            .map_err(|cause| TakeoverError::File { file: self.place.vlan.clone(), cause })?;
        let program = load(below.vlan, device.index).doing(self.interface(), "load what shuts its VLAN")?;
        let path = names.below()?;
        self.warnings.extend(shut(&self.place.interface, &below, &path, &program));
        Ok(())
    }
}

/// Notes where the VLAN is shut, in place of what is `noted`. The former filters go: they know a
/// device that is gone, and would cut the VLAN off for good. What stays, one line each.
pub(super) fn note(interface: &str, noted: &mut Option<Below>, now: Option<&Below>) -> Vec<String> {
    let former = std::mem::replace(noted, now.cloned()).filter(|former| Some(former) != now);
    former.map_or_else(Vec::new, |former| open(interface, &former))
}

/// Puts the filters at both sides of the card; what could not be put, one line each.
pub(super) fn shut(interface: &str, below: &Below, path: &Path, program: &Program) -> Vec<String> {
    let outcomes = Side::BOTH.into_iter().map(|side| hook(below, side).put(interface, path, program));
    outcomes.filter_map(Result::err).map(|error| open_when_gone(&error)).collect()
}

fn open_when_gone(error: &TakeoverError) -> String {
    format!("the VLAN is open while its device is not there: {}", why(error))
}

fn why(error: &TakeoverError) -> String {
    if let TakeoverError::Filter { cause, .. } = error { cause.clone() } else { error.to_string() }
}

/// Takes the filters away, under whichever name the card has now; what stays, one line each. That
/// there are none, or no such card, is no error.
pub(super) fn open(interface: &str, below: &Below) -> Vec<String> {
    let name = match name_now(below) {
        Ok(Some(name)) => name,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![format!("look for the card {}: {error}", below.card)],
    };
    let below = Below { card: name, ..*below };
    let outcomes = Side::BOTH.into_iter().map(|side| hook(&below, side).clear(interface));
    let failures = outcomes.filter_map(Result::err);
    failures.map(|error| format!("VLAN {} stays shut at {}: {}", below.vlan, below.card, why(&error))).collect()
}

fn name_now(below: &Below) -> io::Result<Option<String>> {
    let links = Connection::open()?.links()?;
    let is_it = |link: &Link| if below.index == 0 { link.name == below.card } else { link.index == below.index };
    Ok(links.into_iter().find(is_it).map(|link| link.name))
}

/// Its number is "RW", and which VLAN.
pub(super) fn hook(below: &Below, side: Side) -> Hook<'_> {
    Hook { card: &below.card, side, handle: 0x5257_0000 | u32::from(below.vlan) }
}

/// What drops frames of this VLAN unless the device of this number is there.
pub(super) fn load(vlan: u16, device: u32) -> io::Result<Program> {
    let map = Map::create(Shape { keys: Keys::Devices, shared: false, key_len: 4, value_len: 4, entries: 1 })?;
    map.put(&0_u32.to_ne_bytes(), &device.to_ne_bytes())?;
    Program::load(Kind::Classifier, "ringwall_below", &program(vlan), &[map])
}

fn program(vlan: u16) -> Vec<Instruction> {
    let tag = |number: u16| i32::from(number.to_be());
    vec![
        instruction(LOAD_WORD, 2, 1, PROTOCOL, 0),
        instruction(LOAD_WORD, 3, 1, TAG, 0),
        instruction(LOAD_WORD, 4, 1, IS_TAGGED, 0),
        instruction(JUMP_IF_EQUAL, 4, 0, 13, 0),
        instruction(MASK, 3, 0, 0, NUMBER),
        instruction(JUMP_IF_EQUAL, 3, 0, 3, vlan.into()),
        instruction(JUMP_UNLESS_EQUAL, 3, 0, 10, 0),
        instruction(JUMP_IF_EQUAL, 2, 0, 1, tag(TAGS[0])),
        instruction(JUMP_UNLESS_EQUAL, 2, 0, 8, tag(TAGS[1])),
        // Is the device there?
        instruction(SET, 1, 0, 0, 0),
        instruction(STORE_WORD, 10, 1, -4, 0),
        instruction(COPY, 2, 10, 0, 0),
        instruction(ADD, 2, 0, 0, -4),
        instruction(LOAD_64, 1, PSEUDO_MAP_FD, 0, 0),
        instruction(0, 0, 0, 0, 0),
        instruction(CALL, 0, 0, 0, LOOK_UP),
        instruction(JUMP_IF_EQUAL, 0, 0, 2, 0),
        instruction(SET, 0, 0, 0, NEXT),
        instruction(EXIT, 0, 0, 0, 0),
        instruction(SET, 0, 0, 0, DROP),
        instruction(EXIT, 0, 0, 0, 0),
    ]
}
