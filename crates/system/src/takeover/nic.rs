//! Finding the card, wherever it is, and naming it.

use std::io;
use std::os::fd::BorrowedFd;

use super::ends;
use super::place::MAX_NAME_LEN;
use super::snapshot::Snapshot;
use super::state::State;
use crate::netlink::Connection;
use crate::netlink::link::{Link, LinkChange, UP};

/// The card in its own namespace, where nothing else is but the loopback and our pair.
pub(super) fn card_in_namespace(wire: &mut Connection, state: &State) -> io::Result<Option<Link>> {
    let pair = ends::find(wire, state)?;
    let is_ours = |link: &Link| pair.as_ref().is_some_and(|pair| pair.has(link));
    Ok(wire.links()?.into_iter().find(|link| link.is_ethernet && !is_ours(link)))
}

/// The card in the namespace of `host`. Surest is its number together with its hardware address or name. It has another
/// number after its namespace died under it, and another hardware address if somebody gave it one meanwhile. A device whose
/// other end lies in namespace `apart` is never the card but stands in for it.
pub(super) fn card_among(
    host: &mut Connection,
    state: &State,
    apart: Option<BorrowedFd<'_>>,
) -> io::Result<Option<Link>> {
    let mut links = host.links()?;
    let apart = apart.map(|apart| host.number_of_namespace(apart)).transpose()?.flatten();
    let stands_in = |link: &Link| link.elsewhere.is_some_and(|other| Some(other.namespace) == apart);
    links.retain(|link| !stands_in(link));
    Ok(card_like(links, &state.home, &[&state.nic_name, &state.interface]))
}

/// The one among `links` that was like `home` and had one of `names`. Other VLANs of a card have the
/// hardware address of this one, so a device that is made anew is known by its name.
pub(super) fn card_like(mut links: Vec<Link>, home: &Snapshot, names: &[&String]) -> Option<Link> {
    let is_number = |link: &Link| link.index == home.index;
    let is_mac = |link: &Link| link.mac == home.mac();
    let is_name = |link: &Link| names.contains(&&link.name);
    links.retain(|link| link.is_ethernet && !link.is_tap() && link.kind == home.kind);
    let position = links
        .iter()
        .position(|link| is_number(link) && (is_mac(link) || is_name(link)))
        .or_else(|| links.iter().position(|link| is_mac(link) && !link.is_made()))
        .or_else(|| links.iter().position(is_name));
    position.map(|position| links.swap_remove(position))
}

/// Sends a link with `change` to `namespace`, where it gets `index` unless another device has that.
pub(super) fn send(
    from: &mut Connection,
    change: &LinkChange,
    namespace: BorrowedFd<'_>,
    index: u32,
) -> io::Result<()> {
    match from.change_link(&change.clone().namespace(namespace, Some(index))) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            from.change_link(&change.clone().namespace(namespace, None))
        }
        other => other,
    }
}

/// Renames a link, turning it off for the moment where the kernel insists.
pub(super) fn rename(host: &mut Connection, link: &Link, name: &str) -> io::Result<()> {
    match host.change_link(&LinkChange::of(link.index).name(name)) {
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            host.change_link(&LinkChange::of(link.index).flag(UP, false))?;
            host.change_link(&LinkChange::of(link.index).name(name))?;
            host.change_link(&LinkChange::of(link.index).flag(UP, true))
        }
        other => other,
    }
}

/// A name for a device of ours that nobody has: `rw.eth0`, or `rw1.eth0` and so on.
pub(super) fn free_name(interface: &str, links: &[Link]) -> String {
    let candidate = |number: usize| {
        let prefix = if number == 0 { "rw.".to_owned() } else { format!("rw{number}.") };
        let kept = MAX_NAME_LEN - prefix.len();
        prefix + &interface[..interface.len().min(kept)]
    };
    let mut number = 0;
    while links.iter().any(|link| link.name == candidate(number)) {
        number += 1;
    }
    candidate(number)
}

#[cfg(test)]
mod tests {
    use wire::MacAddress;

    use super::*;

    fn link(index: u32, name: &str, mac: u8, kind: Option<&str>) -> Link {
        Link {
            index,
            name: name.to_owned(),
            is_ethernet: true,
            mac: MacAddress([2, 0, 0, 0, 0, mac]),
            permanent_mac: None,
            mtu: 1500,
            flags: UP,
            queue_len: 1000,
            bus: None,
            kind: kind.map(str::to_owned),
            master: None,
            below: None,
            elsewhere: None,
            vlan: None,
        }
    }

    fn home(link: &Link) -> Snapshot {
        Snapshot {
            index: link.index,
            mac: link.mac.0,
            kind: link.kind.clone(),
            mtu: link.mtu,
            up: true,
            all_multicast: false,
            queue_len: link.queue_len,
            addresses: Vec::new(),
            routes: Vec::new(),
            neighbours: Vec::new(),
            settings: Vec::new(),
        }
    }

    #[test]
    fn a_vlan_that_is_made_anew_is_not_mistaken_for_another_of_the_same_card() {
        let (card, other) = (link(2, "eth0", 1, None), link(4, "eth0.6", 1, Some("vlan")));
        let before = link(3, "eth0.5", 1, Some("vlan"));
        let found = |links: &[&Link]| {
            let links = links.iter().map(|link| (*link).clone()).collect();
            card_like(links, &home(&before), &[&before.name]).map(|link| link.index)
        };
        assert_eq!(found(&[&card, &other, &before]), Some(3));
        assert_eq!(found(&[&card, &other]), None);
        assert_eq!(found(&[&card, &other, &link(9, "eth0.5", 1, Some("vlan"))]), Some(9));
    }

    #[test]
    fn a_card_that_has_another_name_and_number_is_known_by_its_address() {
        let before = link(2, "eth0", 1, None);
        let links = vec![link(3, "eth1", 2, None), link(7, "lan0", 1, None), link(8, "lan0.5", 1, Some("vlan"))];
        let found = card_like(links, &home(&before), &[&before.name]);
        assert_eq!(found.map(|link| link.index), Some(7));
    }
}
