//! Bringing the card where the stack cannot reach it: into a namespace of its own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::error::Doing;
use super::nic::{card_among, card_in_namespace};
use super::secluded::{OwnNamespace, Secluded};
use super::work::Work;
use super::{TakeoverError, Way, nft, settings};
use crate::namespace::{self, MountTree};
use crate::netlink::Connection;
use crate::netlink::link::{ALL_MULTICAST, Link, LinkChange, UP};

impl Work<'_> {
    /// Brings the card where the stack cannot reach it, in the way that was asked for or taken before.
    pub(super) fn seclude(&mut self) -> Result<Secluded, TakeoverError> {
        match self.state.way {
            Way::InPlace => self.close_in_place(),
            Way::Namespace | Way::Filter => self.by_namespace(),
        }
    }

    fn by_namespace(&mut self) -> Result<Secluded, TakeoverError> {
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
        if self.state.way == Way::Filter {
            nft::remove_table(self.interface())?;
        }
        let change = LinkChange::of(link.index).flag(ALL_MULTICAST, true).flag(UP, true);
        wire.change_link(&change).doing(self.interface(), "turn the card on")?;
        self.state.way = Way::Namespace;
        self.state.nic_name = link.name.clone();
        self.state.probe("way", "namespace");
        self.save()?;
        Ok(Secluded { link, own: Some(OwnNamespace { descriptor: namespace, wire }), fence: None })
    }

    /// The card's namespace: the one that is pinned, or a new one.
    fn namespace(&mut self) -> Result<OwnedFd, TakeoverError> {
        let pin = &self.place.pin;
        if let Some(namespace) = namespace::open_pin(pin).doing(self.interface(), "open the card's namespace")? {
            return Ok(namespace);
        }
        let fresh = namespace::create(settings::silence_namespace).map_err(|cause| self.cannot_move(cause))?;
        let tree = namespace::pin(fresh.as_fd(), pin).map_err(|cause| self.cannot_move(cause))?;
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
    fn move_card(&mut self, namespace: &OwnedFd) -> Result<(), TakeoverError> {
        let card = self.card_here(Some(namespace.as_fd()))?;
        let change = LinkChange::of(card.index).namespace(namespace.as_fd(), None);
        self.host.change_link(&change).map_err(|cause| match cause.raw_os_error() {
            Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM | libc::EBUSY) => self.cannot_move(cause),
            _ => TakeoverError::Kernel {
                interface: self.place.interface.clone(),
                doing: "move the card into its namespace",
                cause,
            },
        })?;
        self.touched = true;
        Ok(())
    }

    fn cannot_move(&self, cause: io::Error) -> TakeoverError {
        let interface = self.interface().to_owned();
        match self.state.way {
            Way::Filter => TakeoverError::BehindFilter { interface, cause },
            Way::Namespace | Way::InPlace => TakeoverError::CannotMove { interface, cause },
        }
    }

    pub(super) fn card_here(&mut self, apart: Option<BorrowedFd<'_>>) -> Result<Link, TakeoverError> {
        let found = card_among(&mut self.host, &self.state, apart).doing(&self.place.interface, "look for the card")?;
        found.ok_or_else(|| TakeoverError::NicGone { interface: self.place.interface.clone() })
    }
}
