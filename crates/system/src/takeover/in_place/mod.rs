//! The way that leaves the card where it is: its name, number, addresses, routes, queues and open
//! sockets stay, and so does whoever manages it.
//!
//! Around the card stand four things. A program in front of its receive path drops whatever is not
//! sealed, so that no socket hears it either ([`guard`]). Rules at its egress let the daemon's own
//! frames pass, and send all others to a TAP beside it, where the daemon reads them. What comes in
//! clear and is for the daemon to judge goes to a second TAP ([`clear`]). What the daemon opens it
//! writes into that TAP; a filter of `tc` marks it and has the card receive it, behind the program.
//! Rules at the card's ingress drop whatever lacks that mark. A filter of `tc` behind the rules
//! holds should somebody take those away ([`belt`]).
//!
//! Where the kernel carries the bulk and only some frames are kept for the daemon ([`Kept`]), nothing
//! stands in front of the receive path: the daemon's packet socket on the card hears what is kept, and
//! the rules and filters behind all packet sockets drop it ([`divert`]).
//!
//! A VLAN is shut at the card below it, too, whenever its own device is gone ([`below`]).
//!
//! Order: the rules drop everything both ways before anything else is made, and let pass only when
//! all of it stands. All of it outlives the daemon, and without a reader at the TAP nothing passes.
//!
//! Limits: a process with CAP_NET_RAW in this namespace sends past every hook by AF_XDP, and with
//! CAP_NET_ADMIN it can set the daemon's mark. The namespace of its own is the way that holds against
//! those.

mod below;
mod belt;
mod clear;
mod divert;
pub(super) mod fence;
mod guard;
mod hook;
mod redirect;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};

use super::error::Doing;
use super::nft::{self, MARK, table_name};
use super::nic::free_name;
use super::place::{BPF_FILES, Place};
use super::secluded::Secluded;
use super::state::{InnerKind, Phase, State};
use super::work::Work;
use super::{Inner, Instruction, Kept, StackSide, TakeoverError, settings};
use crate::namespace;
use crate::netlink::link::{Link, LinkChange, NO_ARP, UP};
use crate::tap_device;

pub use fence::Fence;
pub use guard::Admitted;

use belt::{Belt, Of};
use guard::Guard;
use hook::Side;

/// What a socket's filter begins with that is to leave out what the daemon itself has opened. With the
/// extension `mark` of the kernel's filters (Linux, Documentation/networking/filter.rst).
const NOT_OPENED: [Instruction; 3] = [(0x20, 0, 0, 0xffff_f014), (0x15, 0, 1, OPENED_MARK), (0x06, 0, 0, 0)];
/// A filter that takes everything.
const ALL: &[Instruction] = &[(0x06, 0, 0, u32::MAX)];

/// The filter of the daemon's socket on a card that stays in place: it hears all that the guard lets
/// pass, or what is `kept`, and never what it has opened itself.
#[must_use]
pub fn not_opened(kept: Option<Kept>) -> Vec<Instruction> {
    [&NOT_OPENED[..], kept.map_or(ALL, Kept::filter)].concat()
}

/// The mark of frames that the daemon has opened, on their way from the TAP through the card to the
/// stack. No other frame that comes in has one.
pub const OPENED_MARK: u32 = 0x5257_4f50;

/// Our directory among the files of kind `bpf`.
const DIRECTORY: &str = "ringwall";
/// The number of that kind (linux/magic.h).
const BPF_MAGIC: i64 = 0xcafe_4a11;

impl Work<'_> {
    /// Closes the card where it is. Nothing of it changes.
    pub(super) fn close_in_place(&mut self) -> Result<Secluded, TakeoverError> {
        let card = self.card_here(None)?;
        if self.state.phase != Phase::Taken {
            nft::run(self.interface(), &self.rules(&card.name, None, None))?;
            self.touched = true;
        }
        let names = Names::of(self.place, &self.state);
        let guard = match self.request.inner {
            Inner::Tap => Some(self.guard(&names, &card)?),
            Inner::Veth { .. } => None,
        };
        let belt = self.belt(&names, &card.name, guard.is_some())?;
        self.state.nic_name.clone_from(&card.name);
        self.state.probe("way", "in place");
        self.save()?;
        Ok(Secluded { link: card, own: None, fence: Some(Fence { guard, belt }) })
    }

    fn guard(&mut self, names: &Names, card: &Link) -> Result<Guard, TakeoverError> {
        let (guard, mode) = guard::stand(&names.of_guard()?, card, &self.request.admitted)
            .map_err(|cause| TakeoverError::Guard { interface: self.place.interface.clone(), cause })?;
        self.state.probe("guard", mode);
        Ok(guard)
    }

    /// The belt at the egress. Behind a guard nothing has to stand at the ingress.
    fn belt(&mut self, names: &Names, card: &str, guarded: bool) -> Result<Belt, TakeoverError> {
        let interface = self.place.interface.as_str();
        let of = if guarded { Of::All } else { Of::Arp };
        if !guarded {
            let (_, is_new) = belt::stand(interface, &names.divert()?, &belt::hook(card, Side::Ingress), of)?;
            self.state.own_clsact |= is_new;
        }
        let (belt, is_new) = belt::stand(interface, &names.belt()?, &belt::hook(card, Side::Egress), of)?;
        self.state.own_clsact |= is_new;
        Ok(belt)
    }

    fn rules(&self, card: &str, tap: Option<&str>, clear: Option<&str>) -> String {
        match self.request.inner {
            Inner::Tap => rules(self.interface(), card, tap) + &clear::rules(self.interface(), clear),
            Inner::Veth { kept } => divert::rules(self.interface(), kept, card, tap),
        }
    }

    /// Takes away what only another mode of the daemon before needs, once all stands that this one does.
    fn put_other_away(&mut self, names: &Names, card: &str) -> Result<(), TakeoverError> {
        match self.request.inner {
            Inner::Tap => {
                belt::hook(card, Side::Ingress).clear(self.interface())?;
                Names::remove(names.divert()?)
            }
            Inner::Veth { .. } => {
                self.state.forget_probe("guard");
                Names::remove(names.of_guard()?)
            }
        }
    }

    /// Puts the TAP beside the card, and opens the way between the two; what the daemon has of the TAP,
    /// and its number.
    pub(super) fn stand_beside(&mut self, secluded: &mut Secluded) -> Result<(StackSide, u32), TakeoverError> {
        let card = &secluded.link;
        let links = self.host.links().doing(&self.place.interface, "list the interfaces")?;
        let name = match &self.state.inner {
            InnerKind::Beside { tap } => tap.clone(),
            _ => free_name(&self.place.interface, &links),
        };
        let is_there = links.iter().any(|link| link.name == name);
        if !is_there || self.state.phase != Phase::Taken {
            self.state.phase = Phase::Taking;
        }
        self.state.inner = InnerKind::Beside { tap: name.clone() };
        self.save()?;
        let (queue, offloads) = tap_device::open(&name, None).doing(&self.place.interface, "open the TAP")?;
        self.state.probe("inner device offloads", offloads);
        let index = self.furnish(&name, card.mtu).doing(&self.place.interface, "set the TAP up")?;
        let names = Names::of(self.place, &self.state);
        redirect::from_tap(self.interface(), &names.mark()?, &name, &card.name)?;
        let guard = secluded.fence.as_mut().and_then(|fence| fence.guard.as_mut());
        let clear = guard.map(|guard| self.hand_clear_over(guard)).transpose()?;
        nft::run(self.interface(), &self.rules(&card.name, Some(&name), clear.as_deref()))?;
        self.put_other_away(&names, &card.name)?;
        self.shut_when_gone(&names, &secluded.link);
        Ok((StackSide::Tap { queue }, index))
    }

    /// A TAP that says nothing by itself.
    fn furnish(&mut self, name: &str, mtu: u32) -> io::Result<u32> {
        settings::disable_ipv6(name)?;
        let tap = self.host.link_by_name(name)?.ok_or(io::ErrorKind::NotFound)?;
        if tap.mtu != mtu {
            self.host.change_link(&LinkChange::of(tap.index).mtu(mtu))?;
        }
        self.host.change_link(&LinkChange::of(tap.index).flag(NO_ARP, true).flag(UP, true))?;
        Ok(tap.index)
    }
}

/// Takes away what stands around the card; what stays at a card below, one line each. The card is in
/// clear then.
pub(super) fn open(
    place: &Place,
    state: &State,
    delete: impl FnOnce(&str) -> io::Result<()>,
) -> Result<Vec<String>, TakeoverError> {
    let interface = place.interface.as_str();
    if let InnerKind::Beside { tap } = &state.inner {
        delete(tap).doing(interface, "remove the TAP")?;
    }
    for side in Side::BOTH {
        belt::hook(&state.nic_name, side).clear(interface)?;
    }
    if state.own_clsact {
        hook::give_place_back(interface, &state.nic_name);
    }
    let warnings = state.below.as_ref().map_or_else(Vec::new, |below| below::open(interface, below));
    Names::of(place, state).forget()?;
    nft::remove_table(interface)?;
    Ok(warnings)
}

/// What comes in at the card, and what goes out by it: the first only with the mark of what was
/// opened, the second only with that of the daemon's socket. All else goes to the TAP, or is dropped
/// while there is none.
fn rules(interface: &str, card: &str, tap: Option<&str>) -> String {
    let table = table_name(interface);
    let to_stack =
        if tap.is_some() { format!("meta mark {OPENED_MARK:#x} meta mark set 0 accept") } else { String::new() };
    let from_stack = tap.map_or_else(String::new, |tap| format!("fwd to \"{tap}\""));
    format!(
        "table netdev {table}\n\
         delete table netdev {table}\n\
         table netdev {table} {{\n\
         chain from_wire {{ type filter hook ingress device \"{card}\" priority -500; policy drop;\n{to_stack}\n}}\n\
         chain to_wire {{ type filter hook egress device \"{card}\" priority -500; policy drop;\n\
         meta mark {MARK:#x} accept\n{from_stack}\n}}\n\
         }}\n"
    )
}

/// Names of what outlives the daemon in the kernel. Interfaces of other namespaces may have the same
/// name.
struct Names(String);

impl Names {
    fn of(place: &Place, state: &State) -> Names {
        // Names in that file system have no dots.
        Names(format!("{}_{}", state.host_namespace, table_name(&place.interface)))
    }

    fn of_guard(&self) -> Result<PathBuf, TakeoverError> {
        self.name("guard")
    }

    fn divert(&self) -> Result<PathBuf, TakeoverError> {
        self.name("divert")
    }

    fn belt(&self) -> Result<PathBuf, TakeoverError> {
        self.name("belt")
    }

    fn below(&self) -> Result<PathBuf, TakeoverError> {
        self.name("below")
    }

    fn mark(&self) -> Result<PathBuf, TakeoverError> {
        self.name("mark")
    }

    fn name(&self, what: &str) -> Result<PathBuf, TakeoverError> {
        let directory = Path::new(BPF_FILES).join(DIRECTORY);
        namespace::in_mount_tree(|| {
            if !statfs(BPF_FILES).is_ok_and(|found| found.f_type == BPF_MAGIC) {
                mount("bpf", BPF_FILES, "bpf", MountFlags::NOSUID | MountFlags::NOEXEC, None)?;
            }
            std::fs::create_dir_all(&directory)
        })
        .map_err(|cause| TakeoverError::File { file: Path::new(BPF_FILES).to_owned(), cause })?;
        Ok(directory.join(format!("{}_{what}", self.0)))
    }

    /// Removes all of them; that there are none is no error.
    fn forget(&self) -> Result<(), TakeoverError> {
        let names = [self.of_guard()?, self.divert()?, self.belt()?, self.below()?, self.mark()?];
        names.into_iter().try_for_each(Names::remove)
    }

    fn remove(file: PathBuf) -> Result<(), TakeoverError> {
        namespace::in_mount_tree(|| crate::files::remove_if_there(&file))
            .map(drop)
            .map_err(|cause| TakeoverError::File { file, cause })
    }
}
