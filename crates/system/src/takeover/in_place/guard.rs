//! The program in front of the card's receive path: what is not sealed ends there, before the kernel
//! has made anything of it, so that neither the stack nor any packet socket hears it.
//!
//! It is held to the card by a link of the kernel's with a name, so that it outlives the daemon and
//! nobody replaces it by accident.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use wire::EtherType;
use wire::cll::train;

use crate::bpf::{self, Instruction, Keys, Kind, Map, Program, Shape, Shared};
use crate::ingress::{
    ADD, ADD_IN_MEMORY, COPY, EXIT, JUMP, JUMP_IF_BEYOND, JUMP_IF_EQUAL, JUMP_UNLESS_EQUAL, LOAD_BYTE, LOAD_DOUBLE,
    LOAD_HALF, LOAD_WORD, SET, find_only_entry, instruction,
};
use crate::namespace::in_mount_tree;
use crate::netlink::link::Link;
use crate::xdp::{self, Mode, XdpError};

/// Most EtherTypes that are let in; each costs an instruction.
const ADMITTED_MAX: usize = 64;

// Where `struct xdp_md` has the frame's ends, and a frame its EtherType.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const ETHERNET_LEN: i32 = 14;
const ETHERTYPE_AT: i16 = 12;
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const UDP: i32 = 17;
/// 169.254, the first half of an address of the link.
const LINK_LOCAL: u16 = 0xa9fe;

// The words of the one entry of the map: frames that were dropped, and whether all may pass.
const ARP_DROPPED: usize = 0;
const OTHERS_DROPPED: usize = 1;
const OPEN: usize = 2;
const WORDS: usize = 3;

// Where jumps lead, before the program is put together.
const TO_PASS: i16 = i16::MAX;
const TO_DROP: i16 = i16::MAX - 1;
const TO_END: i16 = i16::MAX - 2;
const TO_ARP: i16 = i16::MAX - 3;

/// The guard of a card. It stays when this is dropped.
#[derive(Clone, Debug)]
pub(super) struct Guard(Shared);

impl Guard {
    fn count(&self, word: usize) -> u64 {
        self.0.words().get(word).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Messages of ARP that it has dropped since this daemon took the card.
    pub(super) fn arp_dropped(&self) -> u64 {
        self.count(ARP_DROPPED)
    }

    /// Other frames that it has dropped since then.
    pub(super) fn others_dropped(&self) -> u64 {
        self.count(OTHERS_DROPPED)
    }

    /// Lets all frames come to the daemon, which judges those in clear by its rules; or, as at the
    /// start, those alone that are admitted.
    pub(super) fn set_open(&self, open: bool) {
        if let Some(word) = self.0.words().get(OPEN) {
            word.store(open.into(), Ordering::Relaxed);
        }
    }
}

fn map() -> std::io::Result<Map> {
    Map::create(Shape { keys: Keys::Places, shared: true, key_len: 4, value_len: WORDS * 8, entries: 1 })
}

/// What comes to the daemon from a card that stays in place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// EtherTypes of frames that are let in whatever they hold.
    pub ethertypes: Vec<EtherType>,
    /// The port of datagrams that sealed frames travel in: to it, from and to addresses of the link
    /// (RFC 3927), without options.
    pub train_port: u16,
}

/// Puts the guard in front of `card`, or another in its place, under the name `path`; and in which
/// way it stands there.
pub(super) fn stand(path: &Path, card: &Link, admitted: &Admitted) -> Result<(Guard, &'static str), XdpError> {
    if admitted.ethertypes.len() > ADMITTED_MAX {
        return Err(XdpError::Refused(std::io::ErrorKind::InvalidInput.into()));
    }
    let map = map()?;
    let guard = Guard(map.share()?);
    let program = Program::load(Kind::Xdp, "ringwall_guard", &program(admitted), &[map])?;
    let mut former = None;
    in_mount_tree(|| {
        former = bpf::pinned(path)?;
        Ok(())
    })?;
    if let Some(link) = former {
        if bpf::exchange(&link, &program).is_ok() {
            return Ok((guard, "as before, in front of the card"));
        }
        // The card that it was on is gone.
        in_mount_tree(|| crate::files::remove_if_there(path))?;
    }
    let (link, mode) = attach(&program, card)?;
    in_mount_tree(|| bpf::pin(&link, path))?;
    Ok((guard, mode))
}

/// By the driver where there is a card. A pair of virtual devices would then lose its super-frames,
/// which cost it more than the kernel's own hook.
fn attach(program: &Program, card: &Link) -> Result<(OwnedFd, &'static str), XdpError> {
    let by_kernel = || Ok((xdp::attach(program, card.index, Mode::Generic)?, "by the kernel"));
    if card.is_veth() {
        return by_kernel();
    }
    match xdp::attach(program, card.index, Mode::Native) {
        Ok(link) => Ok((link, "by the card's driver")),
        Err(XdpError::Occupied) => Err(XdpError::Occupied),
        Err(_) => by_kernel(),
    }
}

/// Lets frames of `admitted` pass, and all while the map says so; counts what it drops.
fn program(admitted: &Admitted) -> Vec<Instruction> {
    let as_loaded = |ethertype: &EtherType| i32::from(ethertype.0.to_be());
    let mut program = vec![
        // The EtherType, for frames that are too short to have one.
        instruction(SET, 6, 0, 0, 0),
        instruction(LOAD_WORD, 2, 1, DATA, 0),
        instruction(LOAD_WORD, 3, 1, DATA_END, 0),
        instruction(COPY, 4, 2, 0, 0),
        instruction(ADD, 4, 0, 0, ETHERNET_LEN),
        instruction(JUMP_IF_BEYOND, 4, 3, TO_DROP, 0),
        instruction(LOAD_HALF, 6, 2, ETHERTYPE_AT, 0),
    ];
    program.extend(admitted.ethertypes.iter().map(|one| instruction(JUMP_IF_EQUAL, 6, 0, TO_PASS, as_loaded(one))));
    program.extend(train(admitted.train_port));
    let drop = program.len();
    program.extend(find_only_entry());
    program.extend([
        instruction(JUMP_IF_EQUAL, 0, 0, TO_END, 0),
        instruction(LOAD_DOUBLE, 1, 0, at(OPEN), 0),
        instruction(JUMP_UNLESS_EQUAL, 1, 0, TO_PASS, 0),
        instruction(SET, 1, 0, 0, 1),
        instruction(JUMP_IF_EQUAL, 6, 0, TO_ARP, as_loaded(&EtherType::ARP)),
        instruction(ADD_IN_MEMORY, 0, 1, at(OTHERS_DROPPED), 0),
        instruction(JUMP, 0, 0, TO_END, 0),
    ]);
    let arp = program.len();
    program.push(instruction(ADD_IN_MEMORY, 0, 1, at(ARP_DROPPED), 0));
    let end = program.len();
    program.extend([instruction(SET, 0, 0, 0, XDP_DROP), instruction(EXIT, 0, 0, 0, 0)]);
    let pass = program.len();
    program.extend([instruction(SET, 0, 0, 0, XDP_PASS), instruction(EXIT, 0, 0, 0, 0)]);
    for (at, instruction) in program.iter_mut().enumerate() {
        let target = match instruction.offset {
            TO_PASS => pass,
            TO_DROP => drop,
            TO_END => end,
            TO_ARP => arp,
            _ => continue,
        };
        instruction.offset = (target - at - 1) as i16;
    }
    program
}

/// Lets a datagram to this port pass whose headers are those of a train (docs/protocol.md, section 18),
/// and drops all else. Register 2 is at the frame's start, 3 at its end, 6 holds its EtherType.
fn train(port: u16) -> Vec<Instruction> {
    let half = |word: u16| i32::from(word.to_be());
    let fields = [
        (LOAD_BYTE, 14, 0x45),
        (LOAD_BYTE, 23, UDP),
        (LOAD_HALF, 26, half(LINK_LOCAL)),
        (LOAD_HALF, 30, half(LINK_LOCAL)),
        (LOAD_HALF, 36, half(port)),
    ];
    let mut program = vec![
        instruction(JUMP_UNLESS_EQUAL, 6, 0, TO_DROP, half(EtherType::IPV4.0)),
        instruction(COPY, 4, 2, 0, 0),
        instruction(ADD, 4, 0, 0, train::HEAD_LEN as i32),
        instruction(JUMP_IF_BEYOND, 4, 3, TO_DROP, 0),
    ];
    for (load, at, wanted) in fields {
        program.extend([instruction(load, 5, 2, at, 0), instruction(JUMP_UNLESS_EQUAL, 5, 0, TO_DROP, wanted)]);
    }
    program.push(instruction(JUMP, 0, 0, TO_PASS, 0));
    program
}

/// Where a word of the entry lies.
const fn at(word: usize) -> i16 {
    word as i16 * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_admitted_passes_and_the_rest_is_counted() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: the kernel takes programs of root only");
            return;
        }
        let map = map().expect("a map");
        let guard = Guard(map.share().expect("its memory"));
        let admitted = Admitted { ethertypes: vec![EtherType(0x07d0), EtherType(0x888e)], train_port: train::PORT };
        let program = Program::load(Kind::Xdp, "guard_test", &super::program(&admitted), &[map]).expect("loaded");
        let frame = |ethertype: u16| [&[2; 12][..], &ethertype.to_be_bytes(), &[0; 46]].concat();
        let passes = |ethertype| program.try_on(&frame(ethertype), 0).expect("judged");
        assert!(passes(0x07d0) && passes(0x888e));
        let others = [0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8, 0x9100, 0xd007, 0x07d1, 0x0000, 0xffff];
        assert!(others.iter().all(|ethertype| !passes(*ethertype)));
        assert_eq!((guard.arp_dropped(), guard.others_dropped()), (1, others.len() as u64 - 1));
        let mut train = frame(0x0800);
        train[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        train[26..36].copy_from_slice(&[169, 254, 7, 1, 169, 254, 2, 2, 1, 2]);
        train[36..38].copy_from_slice(&train::PORT.to_be_bytes());
        assert!(program.try_on(&train, 0).expect("judged"));
        for at in [14, 23, 26, 31, 36, 37] {
            let mut other = train.clone();
            other[at] ^= 1;
            assert!(!program.try_on(&other, 0).expect("judged"), "byte {at}");
        }
        let counted = guard.others_dropped();
        assert!(!program.try_on(&train[..41], 0).expect("judged") && guard.others_dropped() == counted + 1);
        guard.set_open(true);
        assert!(others.iter().all(|ethertype| passes(*ethertype)));
        guard.set_open(false);
        assert!(!passes(0x0806) && guard.arp_dropped() == 2);
    }
}
