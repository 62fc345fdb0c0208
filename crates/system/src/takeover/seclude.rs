//! Bringing the card where the stack cannot reach it: into a namespace of its own, or behind a filter.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::error::Doing;
use super::nic::{card_among, card_in_namespace, free_name, rename};
use super::secluded::{OwnNamespace, Secluded};
use super::work::Work;
use super::{TakeoverError, Way, filter, settings};
use crate::namespace::{self, MountTree};
use crate::netlink::Connection;
use crate::netlink::link::{ALL_MULTICAST, Link, LinkChange, UP};
use crate::netlink::route::Dependence;

/// Why the card did not get into a namespace.
enum Refusal {
    /// It cannot, or we may not: another way may be open.
    Immovable(io::Error),
    /// Something went wrong.
    Failed(TakeoverError),
}

impl From<TakeoverError> for Refusal {
    fn from(error: TakeoverError) -> Refusal {
        Refusal::Failed(error)
    }
}

impl Work<'_> {
    /// Brings the card where the stack cannot reach it, in the way that was asked for or decided before.
    pub(super) fn seclude(&mut self) -> Result<Secluded, TakeoverError> {
        if self.state.way == Way::InPlace {
            return self.close_in_place();
        }
        if self.state.way == Way::Filter {
            if !self.touched {
                self.state.probe("way", "filter, as asked for");
            }
            return self.by_filter();
        }
        match self.by_namespace() {
            Ok(card) => Ok(card),
            Err(Refusal::Failed(error)) => Err(error),
            Err(Refusal::Immovable(cause)) if self.state.way == Way::Auto => {
                namespace::unpin(&self.place.pin).doing(self.interface(), "remove the empty namespace")?;
                self.state.way = Way::Filter;
                self.state.probe("way", format!("filter, because the card cannot move into a namespace: {cause}"));
                self.save()?;
                self.by_filter()
            }
            Err(Refusal::Immovable(cause)) => {
                Err(TakeoverError::CannotMove { interface: self.interface().to_owned(), cause })
            }
        }
    }

    fn by_namespace(&mut self) -> Result<Secluded, Refusal> {
        let namespace = self.namespace()?;
        let mut wire = namespace::run_inside(namespace.as_fd(), Connection::open)
            .and_then(|connection| connection)
            .doing(self.interface(), "enter the card's namespace")?;
        let mut link = card_in_namespace(&mut wire, &self.state).doing(self.interface(), "look for the card")?;
        if link.is_none() {
            self.move_card(&namespace)?;
            link = card_in_namespace(&mut wire, &self.state).doing(self.interface(), "look for the card")?;
        }
        let link = link.ok_or_else(|| TakeoverError::NicGone { interface: self.interface().to_owned() })?;
        let change = LinkChange::of(link.index).flag(ALL_MULTICAST, true).flag(UP, true);
        wire.change_link(&change).doing(self.interface(), "turn the card on")?;
        self.state.way = Way::Namespace;
        self.state.nic_name = link.name.clone();
        self.state.probe("way", "namespace");
        self.save()?;
        Ok(Secluded { link, own: Some(OwnNamespace { descriptor: namespace, wire }), fence: None })
    }

    /// The card's namespace: the one that is pinned, or a new one.
    fn namespace(&mut self) -> Result<OwnedFd, Refusal> {
        let pin = &self.place.pin;
        if let Some(namespace) = namespace::open_pin(pin).doing(self.interface(), "open the card's namespace")? {
            return Ok(namespace);
        }
        let fresh = namespace::create(settings::silence_namespace).map_err(Refusal::Immovable)?;
        let tree = namespace::pin(fresh.as_fd(), pin).map_err(Refusal::Immovable)?;
        self.state.probe(
            "namespace pinned in",
            match tree {
                MountTree::Initial => "the initial mount tree",
                MountTree::Own => "this process's own mount tree: it does not survive that tree",
            },
        );
        Ok(fresh)
    }

    /// Moves the card away. This is the moment from which nothing leaves in clear.
    fn move_card(&mut self, namespace: &OwnedFd) -> Result<(), Refusal> {
        let card = self.card_here(Some(namespace.as_fd()))?;
        let change = LinkChange::of(card.index).namespace(namespace.as_fd(), None);
        self.host.change_link(&change).map_err(|cause| match cause.raw_os_error() {
            Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM | libc::EBUSY) => Refusal::Immovable(cause),
            _ => Refusal::Failed(TakeoverError::Kernel {
                interface: self.place.interface.clone(),
                doing: "move the card into its namespace",
                cause,
            }),
        })?;
        self.touched = true;
        Ok(())
    }

    pub(super) fn card_here(&mut self, apart: Option<BorrowedFd<'_>>) -> Result<Link, TakeoverError> {
        let found = card_among(&mut self.host, &self.state, apart).doing(&self.place.interface, "look for the card")?;
        found.ok_or_else(|| TakeoverError::NicGone { interface: self.place.interface.clone() })
    }

    /// Closes the card where it is. The filter stands before anything else changes.
    fn by_filter(&mut self) -> Result<Secluded, TakeoverError> {
        let card = self.card_here(None)?;
        filter::close(self.interface(), &[&card.name])?;
        self.touched = true;
        settings::disable_ipv6(&card.name).doing(self.interface(), "turn IPv6 off on the card")?;
        self.strip(&card).doing(self.interface(), "take addresses from the card")?;
        let name = if card.name == self.place.interface { self.rename_away(&card)? } else { card.name };
        // The inner device will have the old name: the filter must not wait for it there.
        filter::close(self.interface(), &[&name])?;
        let change = LinkChange::of(card.index).flag(ALL_MULTICAST, true).flag(UP, true);
        self.host.change_link(&change).doing(self.interface(), "turn the card on")?;
        let link = self.host.link_by_name(&name).doing(self.interface(), "look for the card")?;
        let link = link.ok_or_else(|| TakeoverError::NicGone { interface: self.interface().to_owned() })?;
        Ok(Secluded { link, own: None, fence: None })
    }

    /// Takes addresses and routes from the card. Those that go together with others are gone when their turn comes.
    fn strip(&mut self, card: &Link) -> io::Result<()> {
        for address in self.host.addresses(card.index)? {
            ignore(self.host.delete_address(card.index, &address), libc::EADDRNOTAVAIL)?;
        }
        for route in self.host.routes(&Dependence { index: card.index, sources: Vec::new() })? {
            ignore(self.host.delete_route(&route), libc::ESRCH)?;
        }
        Ok(())
    }

    fn rename_away(&mut self, card: &Link) -> Result<String, TakeoverError> {
        let links = self.host.links().doing(&self.place.interface, "list the interfaces")?;
        let name = free_name(&self.place.interface, &links);
        self.state.nic_name.clone_from(&name);
        self.save()?;
        // Where the filter cannot wait for the new name the card is off while it is renamed, so that there is no moment
        // at which it is on and open.
        let waits = filter::close(self.interface(), &[&card.name, &name]).is_ok();
        if !waits {
            let off = LinkChange::of(card.index).flag(UP, false);
            self.host.change_link(&off).doing(&self.place.interface, "turn the card off")?;
        }
        let live = rename(&mut self.host, card, &name).doing(&self.place.interface, "rename the card")?;
        self.state.probe("rename", if waits && live { "while up" } else { "the card was off for a moment" });
        Ok(name)
    }
}

/// Takes an error that says that the thing is gone already for success.
fn ignore(result: io::Result<()>, code: i32) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(code) => Ok(()),
        other => other,
    }
}
