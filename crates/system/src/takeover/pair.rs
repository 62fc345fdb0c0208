//! The pair: a cable between namespaces whose inner end is the inner device, and whose outer end lies beside the card,
//! where the kernel joins the two.
//!
//! Both ends are made in the card's namespace and joined there before the inner end goes to the stack. So whatever the
//! kernel cannot do is known before anything that works is taken away.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use super::ends::{Pair, find};
use super::error::Doing;
use super::nic::{free_name, rename, send};
use super::secluded::OwnNamespace;
use super::state::{InnerKind, Phase};
use super::work::Work;
use super::{Inner, Kept, Shortcut, TakeoverError, join, shortcut};
use crate::namespace;
use crate::netlink::Connection;
use crate::netlink::link::{Link, LinkChange, NO_ARP, UP};

impl Work<'_> {
    /// The pair, joined with the card; none if the inner device is to be a TAP. A pair that is not wanted any more is
    /// gone then.
    pub(super) fn joined(&mut self, card: &Link, own: &mut OwnNamespace) -> Result<Option<Pair>, TakeoverError> {
        let Inner::Veth { kept } = self.request.inner else {
            self.part(own)?;
            self.state.probe("inner device", "TAP");
            self.state.forget_probe("bulk");
            return Ok(None);
        };
        let pair = self.join(card, own, kept)?;
        self.state.probe("inner device", "veth, joined in the kernel");
        Ok(Some(pair))
    }

    fn join(&mut self, card: &Link, own: &mut OwnNamespace, kept: Kept) -> Result<Pair, TakeoverError> {
        let pair = match self.whole_pair(own)? {
            Some(pair) => pair,
            None => self.make_pair(card, own)?,
        };
        let outer = &pair.outer;
        // The daemon speaks ARP there, the kernel never.
        let change = LinkChange::of(outer.index).flag(NO_ARP, true).mtu(card.mtu);
        own.wire.change_link(&change).doing(self.interface(), "prepare the outer end of the pair")?;
        join::close(self.interface(), own.descriptor.as_fd(), kept, [&card.name, &outer.name])?;
        let change = LinkChange::of(outer.index).flag(UP, true);
        own.wire.change_link(&change).doing(self.interface(), "turn the outer end of the pair on")?;
        Ok(pair)
    }

    /// The pair that is there. One whose inner end the stack does not have, not yet or not any more, goes.
    fn whole_pair(&mut self, own: &mut OwnNamespace) -> Result<Option<Pair>, TakeoverError> {
        let interface = self.place.interface.as_str();
        let found = find(&mut own.wire, &self.state).doing(interface, "look for the pair")?;
        let Some(pair) = found else { return Ok(None) };
        let inner = pair.inner_end(&mut self.host, own.descriptor.as_fd()).doing(interface, "look for the pair")?;
        if inner.is_some() {
            return Ok(Some(pair));
        }
        own.wire.delete_link(pair.outer.index).doing(interface, "remove the pair")?;
        Ok(None)
    }

    fn make_pair(&mut self, card: &Link, own: &mut OwnNamespace) -> Result<Pair, TakeoverError> {
        let links = own.wire.links().doing(self.interface(), "list the interfaces")?;
        let outer = free_name(self.interface(), &links);
        self.state.inner = InnerKind::Veth { outer: outer.clone() };
        self.save()?;
        own.wire.create_veth(&outer, card.mac, card.mtu).doing(self.interface(), "make a pair of veth devices")?;
        let made = find(&mut own.wire, &self.state).doing(self.interface(), "look for the pair")?;
        made.ok_or_else(|| io::ErrorKind::NotFound.into()).doing(self.interface(), "look for the pair")
    }

    /// Puts the inner end of `pair` where the card was, or leaves it there; its interface index.
    pub(super) fn stand_in_by_pair(
        &mut self,
        pair: &Pair,
        card: &Link,
        own: &OwnNamespace,
        mtu: u32,
    ) -> Result<u32, TakeoverError> {
        let interface = self.place.interface.as_str();
        let apart = own.descriptor.as_fd();
        let present = pair.inner_end(&mut self.host, apart).doing(interface, "look for the inner device")?;
        match present {
            Some(inner) if inner.name == interface => {}
            Some(inner) => rename(&mut self.host, &inner, interface).doing(interface, "name the inner device")?,
            None => self.hand_over(pair, apart)?,
        }
        self.state.forget_probe("inner device offloads");
        self.configure(card.mac, mtu).doing(&self.place.interface, "set the inner device up")
    }

    /// A way past the rules for the bulk, if the kernel has one: Linux since 6.6 does. The rules do the same otherwise.
    pub(super) fn shortcut(&mut self, pair: &Pair, card: &Link, own: &OwnNamespace) -> Option<Shortcut> {
        let Inner::Veth { kept } = self.request.inner else { return None };
        let opened = shortcut::open(own.descriptor.as_fd(), kept, card.index, pair.outer.index);
        let outcome = match &opened {
            Ok(_) => "past the rules".to_owned(),
            Err(error) => format!("by the rules, because the kernel has no shortcut: {error}"),
        };
        self.state.probe("bulk", outcome);
        opened.ok()
    }

    /// Brings the inner end from the card's namespace to the stack.
    fn hand_over(&mut self, pair: &Pair, apart: BorrowedFd<'_>) -> Result<(), TakeoverError> {
        if let Some(tap) = self.tap_here()? {
            self.put_away(&tap)?;
        }
        self.state.phase = Phase::Taking;
        self.save()?;
        let Some(staged) = &pair.staged else { return Ok(()) };
        let interface = self.place.interface.as_str();
        let home = namespace::current().doing(interface, "look at the network namespace")?;
        let work = || {
            let mut wire = Connection::open()?;
            let change = LinkChange::of(staged.index).name(interface);
            // Sockets that are bound to the card's number go on working.
            send(&mut wire, &change, home.as_fd(), self.state.home.index)
        };
        let moved = namespace::run_inside(apart, work).and_then(|result: io::Result<()>| result);
        moved.doing(interface, "put the inner device in place")
    }

    /// Ends the pair, if there is one, and writes down what its inner end had.
    fn part(&mut self, own: &mut OwnNamespace) -> Result<(), TakeoverError> {
        if self.state.inner == InnerKind::Tap {
            return Ok(());
        }
        let interface = self.place.interface.as_str();
        // Rules that stay behind for want of `nft` do no harm: the TAP's counterpart, a socket for all EtherTypes, is served
        // before them.
        if let Err(error) = join::open(interface, own.descriptor.as_fd()) {
            self.warnings.push(error.to_string());
        }
        if let Some(pair) = find(&mut own.wire, &self.state).doing(interface, "look for the pair")? {
            let inner = pair.inner_end(&mut self.host, own.descriptor.as_fd()).doing(interface, "look for the pair")?;
            match inner {
                Some(inner) => self.put_away(&inner)?,
                None => own.wire.delete_link(pair.outer.index).doing(interface, "remove the pair")?,
            }
        }
        self.state.inner = InnerKind::Tap;
        self.save()
    }
}
