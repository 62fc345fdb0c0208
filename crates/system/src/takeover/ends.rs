//! The ends of a pair of devices, wherever they are.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;

use super::state::{InnerKind, State};
use crate::namespace;
use crate::netlink::Connection;
use crate::netlink::link::Link;

/// What is in the card's namespace of a pair.
#[derive(Debug)]
pub(super) struct Pair {
    /// The end that stays.
    pub(super) outer: Link,
    /// The other end, if it has not gone to the stack yet.
    pub(super) staged: Option<Link>,
}

/// The pair that `state` speaks of, as far as it is in the card's namespace.
pub(super) fn find(wire: &mut Connection, state: &State) -> io::Result<Option<Pair>> {
    let InnerKind::Veth { outer } = &state.inner else { return Ok(None) };
    let mut links = wire.links()?;
    let Some(at) = links.iter().position(|link| link.is_veth() && link.name == *outer) else { return Ok(None) };
    let outer = links.swap_remove(at);
    let staged = links.into_iter().find(|link| is_other_end(link, &outer));
    Ok(Some(Pair { outer, staged }))
}

/// Whether both are ends of one cable in the same namespace.
fn is_other_end(link: &Link, outer: &Link) -> bool {
    link.is_veth() && link.below == Some(outer.index) && outer.below == Some(link.index)
}

impl Pair {
    /// Whether `link`, in the card's namespace, is one of its ends.
    pub(super) fn has(&self, link: &Link) -> bool {
        link.index == self.outer.index || self.staged.as_ref().is_some_and(|staged| staged.index == link.index)
    }

    /// The inner end, if it is in the namespace of `host`, under whatever name. `apart` is the
    /// card's namespace.
    pub(super) fn inner_end(&self, host: &mut Connection, apart: BorrowedFd<'_>) -> io::Result<Option<Link>> {
        // The kernel gives a namespace its number when a device that leads there is listed for the
        // first time.
        let links = host.links()?;
        let Some(number) = host.number_of_namespace(apart)? else { return Ok(None) };
        let leads_there = |link: &Link| {
            link.elsewhere.is_some_and(|other| other.namespace == number && other.index == self.outer.index)
        };
        Ok(links.into_iter().find(|link| link.is_veth() && leads_there(link)))
    }
}

/// Whether `link` is the inner end of a pair whose outer end lies in the namespace that is pinned
/// to `pin`.
pub(super) fn leads_to(host: &mut Connection, link: &Link, pin: &Path) -> io::Result<bool> {
    let Some(other) = link.elsewhere.filter(|_| link.is_veth()) else { return Ok(false) };
    let Some(apart) = namespace::open_pin(pin)? else { return Ok(false) };
    Ok(host.number_of_namespace(apart.as_fd())? == Some(other.namespace))
}
