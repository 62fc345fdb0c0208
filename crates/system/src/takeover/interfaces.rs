//! The interfaces of this network namespace, for whoever has to choose one.

use std::net::Ipv4Addr;
use std::path::Path;

use super::error::Doing;
use super::{TakeoverError, made, on_interface};
use crate::netlink::Connection;
use crate::netlink::address::local;
use crate::netlink::link::{Link, VETH_KIND};

/// Where the kernel shows the interfaces of this network namespace, by name.
const INTERFACES: &str = "/sys/class/net";

/// What an interface is, as far as guarding it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A card, or the end of a cable between namespaces.
    Card,
    /// A bond, a bridge, or the device of a VLAN: it can be guarded, and the manager of the network
    /// makes it.
    Made,
    /// A TUN or TAP device, ours among them.
    Tap,
    /// It speaks no Ethernet, such as the loopback.
    NotEthernet,
    /// It belongs to this bridge, bond or VRF.
    MemberOf(String),
    /// Another device that the kernel makes on top of others, with the kernel's word for it, such
    /// as macvlan.
    Virtual(String),
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// What it is.
    pub sort: Sort,
    /// Whether it is switched on.
    pub is_up: bool,
}

/// All interfaces, in the kernel's order.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn interfaces() -> Result<Vec<Found>, TakeoverError> {
    let mut connection = Connection::open().doing("all", "open a routing socket")?;
    let links = connection.links().doing("all", "list the interfaces")?;
    Ok(links.iter().map(|link| found(link, &links)).collect())
}

fn found(link: &Link, all: &[Link]) -> Found {
    let name_of = |index: u32| all.iter().find(|one| one.index == index).map_or("another", |one| one.name.as_str());
    let sort = match (link.master, link.kind.as_deref()) {
        _ if link.is_tap() => Sort::Tap,
        _ if !link.is_ethernet => Sort::NotEthernet,
        (Some(master), _) => Sort::MemberOf(name_of(master).to_owned()),
        (None, None | Some(VETH_KIND)) => Sort::Card,
        (None, Some(kind)) if made::KINDS.contains(&kind) => Sort::Made,
        (None, Some(kind)) => Sort::Virtual(kind.to_owned()),
    };
    Found { name: link.name.clone(), sort, is_up: link.is_up() }
}

/// Whether `interface` is a card of a wireless network: it hangs on one of the kernel's radios.
#[must_use]
pub fn is_wireless(interface: &str) -> bool {
    Path::new(INTERFACES).join(interface).join("phy80211").exists()
}

/// The IPv4 addresses of `interface`.
///
/// # Errors
/// Fails if there is no such interface or the kernel refuses.
pub fn addresses(interface: &str) -> Result<Vec<Ipv4Addr>, TakeoverError> {
    let mut found = Vec::new();
    on_interface(interface, "read its addresses", |connection, link| {
        let bodies = connection.addresses(link.index)?;
        found.extend(bodies.iter().filter_map(|body| <[u8; 4]>::try_from(local(body)?).ok()));
        Ok(())
    })?;
    Ok(found.into_iter().map(Ipv4Addr::from).collect())
}
