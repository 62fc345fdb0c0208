//! A take-over under way: what its steps share, and what several of them do.

use std::io;

use wire::MacAddress;

use super::error::Doing;
use super::place::Place;
use super::snapshot::Snapshot;
use super::state::{Phase, State};
use super::{Request, TakeoverError};
use crate::netlink::Connection;
use crate::netlink::link::{Link, LinkChange};

/// A take-over under way.
pub(super) struct Work<'a> {
    pub(super) request: &'a Request,
    pub(super) place: &'a Place,
    pub(super) host: Connection,
    pub(super) state: State,
    /// Whether anything but our own files has been changed, now or earlier.
    pub(super) touched: bool,
    pub(super) warnings: Vec<String>,
}

impl Work<'_> {
    pub(super) fn interface(&self) -> &str {
        &self.place.interface
    }

    pub(super) fn save(&self) -> Result<(), TakeoverError> {
        self.state.save(&self.place.state)
    }

    /// The TAP that has the card's name, if any device has it.
    pub(super) fn tap_here(&mut self) -> Result<Option<Link>, TakeoverError> {
        let found =
            self.host.link_by_name(&self.place.interface).doing(&self.place.interface, "look for the device")?;
        match found {
            Some(other) if !other.is_tap() => {
                let cause = io::Error::other("another device has taken the name meanwhile");
                Err(cause).doing(self.interface(), "put the inner device in place")
            }
            found => Ok(found),
        }
    }

    /// Removes an inner device that is made anew, as another or otherwise; the new one gets what
    /// this one had.
    pub(super) fn put_away(&mut self, inner: &Link) -> Result<(), TakeoverError> {
        if self.state.phase == Phase::Taken {
            let now = Snapshot::take(&mut self.host, inner).doing(&self.place.interface, "take down addresses")?;
            self.state.home.follow(now);
            self.state.phase = Phase::Taking;
            self.save()?;
        }
        self.host.delete_link(inner.index).doing(&self.place.interface, "remove the inner device")
    }

    /// Gives the inner device what it must have; its interface index.
    pub(super) fn configure(&mut self, mac: MacAddress, mtu: u32) -> io::Result<u32> {
        let inner = self.host.link_by_name(&self.place.interface)?.ok_or(io::ErrorKind::NotFound)?;
        if inner.mac != mac {
            self.host.change_link(&LinkChange::of(inner.index).mac(mac))?;
        }
        if inner.mtu != mtu {
            self.host.change_link(&LinkChange::of(inner.index).mtu(mtu))?;
        }
        if self.state.phase != Phase::Taken {
            let refused = self.state.home.give(&mut self.host, inner.index, &self.place.interface)?;
            self.warnings.extend(refused);
        }
        Ok(inner.index)
    }
}
