//! Taking a network interface over, and giving it back exactly.
//!
//! The card moves into a network namespace of its own, where the stack, other programs' sockets, ARP and neighbour
//! discovery cannot reach it by construction ([`Way::Namespace`]). An inner device takes its name, hardware address,
//! addresses and routes.
//!
//! The inner device is one of two kinds. With a persistent TAP ([`Inner::Tap`]) every frame passes the daemon, and
//! nothing passes without one. With one end of a pair ([`Inner::Veth`]) the kernel joins the other end with the card, in
//! the card's namespace: data goes at the kernel's own speed, without a daemon as well until the stack wants to hear ARP
//! again, while what is kept for the daemon (ARP) reaches its sockets on both devices and passes no other way (record
//! 0013).
//!
//! Order: the state file first, then the card leaves, then the inner device arrives; so no clear frame can leave at any
//! moment. A pair is made and joined beside the card before its inner end goes to the stack, so that a kernel that cannot
//! join is known before anything that works is taken away. Every step looks at what is there before it does anything.
//! Hence one procedure takes an interface, puts right what a crash left half done, adopts what a stopped daemon left
//! behind, and changes the kind of the inner device; and another one gives it back from any point.
//!
//! By the other way the card stays where it is, and has no inner device either ([`Way::InPlace`], `in_place`).
//!
//! A gateway has no inner device: its cards move into one namespace together (`gateway`).
//!
//! Not carried over by namespace: queueing disciplines, and multicast groups that programs joined on the card. Bonds,
//! bridges and cards of wireless networks, which move with their radio only, stay in place or are refused.

mod ends;
mod error;
mod follow;
mod gateway;
mod in_place;
mod interfaces;
mod join;
mod kept;
mod made;
mod nft;
mod nic;
mod pair;
mod place;
mod release;
mod seclude;
mod secluded;
mod settings;
mod shortcut;
mod snapshot;
pub mod state;
mod take;
#[cfg(test)]
pub(crate) mod tests;
mod work;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wire::MacAddress;

pub use error::TakeoverError;
pub use follow::{Change, Follower};
pub use gateway::{
    Gateway, GatewayCard, GatewayFollower, GatewayRequest, Role, hold_gateway, let_gateway_go, release_gateway,
    take_gateway,
};
pub use in_place::{Admitted, Fence, OPENED_MARK, not_opened};
pub use interfaces::{Found, Sort, addresses, interfaces, is_wireless};
pub use kept::{Instruction, Kept};
pub use made::{Appearance, Made};
pub use place::is_interface_name;
pub use release::{Report, release};
pub use shortcut::Shortcut;
pub use state::boot_id;
pub use take::take;

use place::Lock;

use crate::namespace;
use crate::netlink::Connection;
use crate::netlink::link::Link;

/// How a card is kept away from the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// In a network namespace of its own. A former version's file may have left the choice open.
    #[serde(alias = "auto")]
    Namespace,
    /// Where it is, with everything that it has; what is kept for the daemon is [`Inner`]'s.
    InPlace,
    /// Under another name, behind rules that drop everything both ways but the daemon's frames. Nothing
    /// is taken so any more: what a former version left behind goes on by namespace, or is given back
    /// (record 0115).
    Filter,
}

impl Way {
    /// The word in the configuration and in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Way::Namespace => "namespace",
            Way::InPlace => "in-place",
            Way::Filter => "filter",
        }
    }
}

/// What stands in for the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// A TAP: the daemon carries every frame.
    Tap,
    /// One end of a pair: the kernel carries the frames, but those that are kept for the daemon. A kernel that cannot
    /// join is a refusal.
    Veth {
        /// What is kept.
        kept: Kept,
    },
}

/// Which interface to take, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The interface's name.
    pub interface: String,
    /// Directory for locks and pinned namespaces; must not outlive a boot.
    pub run_dir: PathBuf,
    /// Directory for the state file.
    pub state_dir: PathBuf,
    /// Bytes that sealing adds to a frame: the inner device's MTU is smaller by as many.
    pub overhead_bytes: u16,
    /// How.
    pub way: Way,
    /// What is to stand in for the card.
    pub inner: Inner,
    /// What is let in at a card that stays in place.
    pub admitted: Admitted,
}

/// What was found out about the kernel, and which way was taken because of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// What was probed.
    pub name: String,
    /// What came out.
    pub outcome: String,
}

/// What the daemon has of the inner device.
#[derive(Debug)]
pub enum StackSide {
    /// A TAP.
    Tap {
        /// Its queue, with vnet headers of [`VNET_HEADER_LEN`](crate::tap_device::VNET_HEADER_LEN) bytes, non-blocking.
        queue: OwnedFd,
    },
    /// The outer end of a pair, in the card's namespace. There, sockets for one EtherType hear what is kept for the
    /// daemon.
    Veth {
        /// Its interface index.
        outer_index: u32,
        /// Its name.
        outer_name: String,
        /// What takes most of the bulk past the rules, where the kernel can.
        shortcut: Option<Shortcut>,
    },
}

/// A taken interface. Dropping it gives nothing back: the inner device and its routes stay, and no frame passes but what
/// the kernel carries by itself between the card and a pair. Who wants to give it back drops this value first, because
/// [`release`] refuses what a living daemon holds.
#[derive(Debug)]
pub struct Taken {
    /// What the daemon has of the inner device.
    pub stack: StackSide,
    /// Interface index of the inner device.
    pub inner_index: u32,
    /// Hardware address of card and inner device.
    pub inner_mac: MacAddress,
    /// MTU of the card in bytes.
    pub nic_mtu: u32,
    /// MTU of the inner device in bytes.
    pub inner_mtu: u32,
    /// The way that was taken.
    pub way: Way,
    /// Interface index of the card, in its namespace.
    pub wire_index: u32,
    /// Name of the card, in its namespace.
    pub wire_name: String,
    /// The card's namespace, if it has one of its own.
    pub wire_namespace: Option<OwnedFd>,
    /// The mark that frames must carry to leave a card that stays in place.
    pub mark: Option<u32>,
    /// What stands around a card that stays in place.
    pub fence: Option<Fence>,
    /// What was found out about the kernel.
    pub probes: Vec<Probe>,
    /// Whether it had been taken before and was adopted.
    pub adopted: bool,
    /// What the kernel refused to carry over, one line each.
    pub warnings: Vec<String>,
    /// Tells others that a living daemon has the interface.
    _lock: Lock,
}

impl Taken {
    /// The TAP's queue; none if the inner device is no TAP.
    #[must_use]
    pub fn queue(&self) -> Option<&OwnedFd> {
        match &self.stack {
            StackSide::Tap { queue } => Some(queue),
            StackSide::Veth { .. } => None,
        }
    }

    /// Index of the pair's outer end, in the card's namespace; none if the inner device is a TAP.
    #[must_use]
    pub fn outer_index(&self) -> Option<u32> {
        match &self.stack {
            StackSide::Tap { .. } => None,
            StackSide::Veth { outer_index, .. } => Some(*outer_index),
        }
    }
}

/// Runs `work` where the card is, on a short-lived thread in its namespace: what `work` opens there stays there.
///
/// # Errors
/// Fails if the namespace cannot be entered.
pub fn in_wire_namespace<T: Send>(taken: &Taken, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    match &taken.wire_namespace {
        Some(namespace) => namespace::run_inside(namespace.as_fd(), work),
        None => Ok(work()),
    }
}

/// An Ethernet interface that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its interface index.
    pub index: u32,
    /// Its hardware address.
    pub mac: MacAddress,
    /// The one that it was made with, if its driver tells. A wireless card has others while it
    /// looks for a network.
    pub permanent_mac: Option<MacAddress>,
    /// Whether it is switched on.
    pub is_up: bool,
}

/// What `interface` is; none if there is no such Ethernet interface.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn card(interface: &str) -> Result<Option<Card>, TakeoverError> {
    use error::Doing;
    let mut connection = Connection::open().doing(interface, "open a routing socket")?;
    let link = connection.link_by_name(interface).doing(interface, "look the interface up")?;
    let ethernet = link.filter(|link| link.is_ethernet);
    Ok(ethernet.map(|link| Card {
        index: link.index,
        mac: link.mac,
        permanent_mac: link.permanent_mac,
        is_up: link.is_up(),
    }))
}

/// The hardware address of `interface`, which taking it does not change; none if there is no such Ethernet interface.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn hardware_address(interface: &str) -> Result<Option<MacAddress>, TakeoverError> {
    Ok(card(interface)?.map(|card| card.mac))
}

/// Forgets every hardware address that the stack learned on `interface`.
///
/// # Errors
/// Fails if there is no such interface or the kernel refuses.
pub fn flush_neighbours(interface: &str) -> Result<(), TakeoverError> {
    on_interface(interface, "forget neighbours", |connection, link| connection.forget_learned_neighbours(link.index))
}

/// Forgets every hardware address that the stack heard on `interface`; those that were set for it by
/// this program stay.
///
/// # Errors
/// Fails if there is no such interface or the kernel refuses.
pub fn forget_heard_neighbours(interface: &str) -> Result<(), TakeoverError> {
    on_interface(interface, "forget neighbours", |connection, link| connection.forget_heard_neighbours(link.index))
}

/// Sets a permanent neighbour on `interface`. The kernel forgets it when the interface goes down or changes its
/// hardware address.
///
/// # Errors
/// Fails if there is no such interface or the kernel refuses.
pub fn set_permanent_neighbour(interface: &str, ip: Ipv4Addr, mac: MacAddress) -> Result<(), TakeoverError> {
    on_interface(interface, "set a permanent neighbour", |connection, link| {
        connection.set_neighbour(link.index, ip, mac)
    })
}

/// Removes a permanent neighbour from `interface`; that it is not there is no error.
///
/// # Errors
/// Fails if there is no such interface or the kernel refuses.
pub fn remove_permanent_neighbour(interface: &str, ip: Ipv4Addr) -> Result<(), TakeoverError> {
    on_interface(interface, "remove a permanent neighbour", |connection, link| {
        match connection.remove_neighbour(link.index, ip) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            other => other,
        }
    })
}

fn on_interface(
    interface: &str,
    step: &'static str,
    work: impl FnOnce(&mut Connection, &Link) -> io::Result<()>,
) -> Result<(), TakeoverError> {
    use error::Doing;
    let mut connection = Connection::open().doing(interface, "open a routing socket")?;
    let link = connection.link_by_name(interface).doing(interface, "look the interface up")?;
    let link = link.ok_or_else(|| TakeoverError::NoSuchInterface { interface: interface.to_owned() })?;
    work(&mut connection, &link).doing(interface, step)
}
