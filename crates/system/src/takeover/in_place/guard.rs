//! The program in front of the card's receive path: what is not sealed ends there, before the
//! kernel has made anything of it, so that neither the stack nor any packet socket hears it. What
//! the daemon is to judge of it goes to a TAP that it alone reads ([`clear`](super::clear)): all,
//! where some of it may be let in, and else a sample. The program's source is `bpf/guard.c`.
//!
//! It is held to the card by a link of the kernel's with a name, so that it outlives the daemon and
//! nobody replaces it by accident.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::EtherType;

use crate::bpf::{self, Instruction, Keys, Kind, Map, Program, Shape, Shared};
use crate::namespace::in_mount_tree;
use crate::netlink::link::Link;
use crate::xdp::{self, Mode, XdpError};

/// Made of `bpf/guard.c` by the `make.py` of the shield's programs.
const PROGRAM: &[u8] = include_bytes!("../../../bpf/guard.bpf");
/// Most EtherTypes that are let in.
const ADMITTED_MAX: usize = 64;
/// Places for the budgets of senders.
const SOURCES: u32 = 256;
/// MTU up to which a driver has a frame in one piece, which it can hand to another device.
const PIECE_MTU_MAX: u32 = 3000;

// The words of the one entry of the map.
const ARP_DROPPED: usize = 0;
const OTHERS_DROPPED: usize = 1;
const OPEN: usize = 2;
const CLEAR: usize = 3;
const TRAIN_PORT: usize = 4;
const ADMITTED: usize = 7;
const WORDS: usize = ADMITTED + ADMITTED_MAX;

/// The guard of a card. It stays when this is dropped.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    entry: Shared,
    /// What the program hands frames in clear to. It goes with the daemon.
    clear: Option<Arc<OwnedFd>>,
}

impl Guard {
    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.entry.words().get(at)
    }

    fn count(&self, word: usize) -> u64 {
        self.word(word).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn set(&self, word: usize, value: u64) {
        if let Some(word) = self.word(word) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn admit(&self, admitted: &Admitted) {
        // As they lie in a frame.
        self.set(TRAIN_PORT, admitted.train_port.to_be().into());
        for (at, ethertype) in admitted.ethertypes.iter().enumerate() {
            self.set(ADMITTED + at, ethertype.0.to_be().into());
        }
    }

    /// Messages of ARP that it has dropped since this daemon took the card.
    pub(super) fn arp_dropped(&self) -> u64 {
        self.count(ARP_DROPPED)
    }

    /// Other frames that it has dropped since then.
    pub(super) fn others_dropped(&self) -> u64 {
        self.count(OTHERS_DROPPED)
    }

    /// Hands all frames in clear to the daemon, which judges them by its rules; or, as at the
    /// start, a sample.
    pub(super) fn set_open(&self, open: bool) {
        self.set(OPEN, open.into());
    }

    /// Begins to hand frames in clear to the TAP of this number.
    pub(super) fn hand_to(&mut self, tap: OwnedFd, index: u32) {
        self.clear = Some(Arc::new(tap));
        self.set(CLEAR, index.into());
    }

    /// The TAP that frames in clear are read from.
    pub(super) fn clear(&self) -> Option<Arc<OwnedFd>> {
        self.clear.clone()
    }
}

/// The maps of the program: its entry and the budgets of senders.
fn maps() -> std::io::Result<[Map; 2]> {
    let shape = Shape { keys: Keys::Places, shared: true, key_len: 4, value_len: WORDS * 8, entries: 1 };
    let sources = Shape { shared: false, value_len: 8, entries: SOURCES, ..shape };
    Ok([Map::create(shape)?, Map::create(sources)?])
}

fn load(admitted: &Admitted) -> Result<(Program, Guard), XdpError> {
    if admitted.ethertypes.len() > ADMITTED_MAX {
        return Err(XdpError::Refused(std::io::ErrorKind::InvalidInput.into()));
    }
    let maps = maps()?;
    let guard = Guard { entry: maps[0].share()?, clear: None };
    guard.admit(admitted);
    Ok((Program::load(Kind::Xdp, "ringwall_guard", &Instruction::read(PROGRAM), &maps)?, guard))
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
    let (program, guard) = load(admitted)?;
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
/// which cost it more than the kernel's own hook; a bond would pass the program on to its cards, and
/// take no card any more whose driver knows no XDP; and a driver hands frames in several pieces to
/// no TAP.
fn attach(program: &Program, card: &Link) -> Result<(OwnedFd, &'static str), XdpError> {
    let by_kernel = || Ok((xdp::attach(program, card.index, Mode::Generic)?, "by the kernel"));
    if card.kind.is_some() || card.mtu > PIECE_MTU_MAX {
        return by_kernel();
    }
    match xdp::attach(program, card.index, Mode::Native) {
        Ok(link) => Ok((link, "by the card's driver")),
        Err(XdpError::Occupied) => Err(XdpError::Occupied),
        Err(_) => by_kernel(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use wire::cll::train;

    use super::*;

    /// What the program answers, by the numbers of linux/bpf.h.
    const DROP: u32 = 1;
    const PASS: u32 = 2;
    const REDIRECT: u32 = 4;

    fn guard() -> Option<(Program, Guard)> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: the kernel takes programs of root only");
            return None;
        }
        let admitted = Admitted { ethertypes: vec![EtherType(0x07d0), EtherType(0x888e)], train_port: train::PORT };
        Some(load(&admitted).expect("loaded"))
    }

    fn frame_of(source: u8, ethertype: u16) -> Vec<u8> {
        [&[2; 11][..], &[source], &ethertype.to_be_bytes(), &[0; 46]].concat()
    }

    fn verdict(program: &Program, frame: &[u8]) -> u32 {
        program.try_changing(frame).expect("judged").0
    }

    fn any_descriptor() -> OwnedFd {
        UdpSocket::bind("127.0.0.1:0").expect("a socket").into()
    }

    #[test]
    fn only_what_is_admitted_passes_and_the_rest_is_counted() {
        let Some((program, guard)) = guard() else { return };
        let judged = |ethertype| verdict(&program, &frame_of(2, ethertype));
        assert_eq!((judged(0x07d0), judged(0x888e)), (PASS, PASS));
        let others = [0x0800, 0x0806, 0x86dd, 0x8100, 0x88a8, 0x9100, 0xd007, 0x07d1, 0x0000, 0xffff];
        assert!(others.iter().all(|ethertype| judged(*ethertype) == DROP));
        assert_eq!((guard.arp_dropped(), guard.others_dropped()), (1, others.len() as u64 - 1));
        let mut train = frame_of(2, 0x0800);
        train[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
        train[26..36].copy_from_slice(&[169, 254, 7, 1, 169, 254, 2, 2, 1, 2]);
        train[36..38].copy_from_slice(&train::PORT.to_be_bytes());
        assert_eq!(verdict(&program, &train), PASS);
        for at in [14, 23, 26, 31, 36, 37] {
            let mut other = train.clone();
            other[at] ^= 1;
            assert_eq!(verdict(&program, &other), DROP, "byte {at}");
        }
        let counted = guard.others_dropped();
        assert_eq!((verdict(&program, &train[..41]), guard.others_dropped()), (DROP, counted + 1));
    }

    #[test]
    fn open_hands_everything_over_and_to_nobody_while_there_is_no_tap() {
        let Some((program, mut guard)) = guard() else { return };
        guard.set_open(true);
        assert_eq!(verdict(&program, &frame_of(2, 0x0806)), DROP);
        guard.hand_to(any_descriptor(), 1);
        for ethertype in [0x0800, 0x0806, 0x86dd, 0x8100] {
            assert!((0..200).all(|_| verdict(&program, &frame_of(2, ethertype)) == REDIRECT));
        }
        assert_eq!((verdict(&program, &frame_of(2, 0x07d0)), guard.arp_dropped()), (PASS, 1));
    }

    /// Sends so many frames by each of `sources`; how many were handed over.
    fn flood(program: &Program, sources: std::ops::Range<u8>, ethertype: u16, times: usize) -> usize {
        let frames: Vec<_> = sources.map(|source| frame_of(source, ethertype)).collect();
        let verdicts = (0..times).flat_map(|_| &frames).map(|frame| verdict(program, frame));
        verdicts.filter(|verdict| *verdict == REDIRECT).count()
    }

    /// Beside what is handed over at once, 20 in a second are of one source and 200 of all.
    #[test]
    fn shut_it_hands_over_a_sample_that_no_flood_enlarges_and_counts_the_rest() {
        let Some((program, mut guard)) = guard() else { return };
        guard.hand_to(any_descriptor(), 1);
        let begun = std::time::Instant::now();
        let of_one = flood(&program, 7..8, 0x0800, 2000);
        let of_all = flood(&program, 0..250, 0x0800, 20);
        // What is of another kind has its own budget.
        let arp = flood(&program, 99..100, 0x0806, 1);
        let seconds = begun.elapsed().as_secs() as usize + 1;
        assert!((16..=16 + 20 * seconds).contains(&of_one), "{of_one}");
        assert!(of_one + of_all <= 64 + 200 * seconds && of_all > 16, "{of_all}");
        assert_eq!(arp, 1);
        assert_eq!(guard.others_dropped() as usize, 7000 - of_one - of_all);
        assert_eq!(guard.arp_dropped(), 0);
    }

    /// An ARP answer of host 7 that claims the address 10.0.0.`last`.
    fn claim_of(last: u8) -> Vec<u8> {
        let mut frame = frame_of(7, 0x0806);
        frame[28..32].copy_from_slice(&[10, 0, 0, last]);
        frame
    }

    #[test]
    fn a_flood_of_one_claim_by_arp_hides_no_other_claim_of_the_same_source() {
        let Some((program, mut guard)) = guard() else { return };
        guard.hand_to(any_descriptor(), 1);
        let (loud, quiet) = (claim_of(1), claim_of(2));
        let refused = (0..1000).filter(|_| verdict(&program, &loud) == DROP).count();
        assert!(refused > 0, "the flood spends its budget");
        assert_eq!(verdict(&program, &quiet), REDIRECT);
    }
}
