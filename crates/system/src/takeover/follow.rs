//! What happens to card and inner device after the take-over, and making the inner device follow the card.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use wire::MacAddress;

use super::{StackSide, Taken, in_wire_namespace};
use crate::netlink::link::{Link, LinkChange, UP};
use crate::netlink::{Connection, Message, Subscription};
use crate::tap_device;

/// Something that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The card found or lost its carrier: see [`Follower::apply_carrier`].
    Carrier(bool),
    /// The card's MTU in bytes is another: see [`Follower::apply_mtu`].
    Mtu(u32),
    /// The card's hardware address is another.
    Mac(MacAddress),
    /// Somebody turned the card off (false) or on.
    NicUp(bool),
    /// The card is gone.
    NicGone,
    /// Somebody turned the inner device off (false) or on. The kernel has then forgotten its permanent neighbours.
    InnerUp(bool),
    /// Somebody gave the inner device another MTU, in bytes.
    InnerMtu(u32),
    /// The inner device has another hardware address. The kernel has then forgotten its permanent neighbours.
    InnerMac(MacAddress),
    /// The inner device is gone.
    InnerGone,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on_off = |on: &bool| if *on { "on" } else { "off" };
        match self {
            Change::Carrier(on) => write!(f, "carrier {}", on_off(on)),
            Change::Mtu(mtu) => write!(f, "the card's MTU is {mtu}"),
            Change::Mac(mac) => write!(f, "the card's hardware address is {mac}"),
            Change::NicUp(on) => write!(f, "the card is turned {}", on_off(on)),
            Change::NicGone => f.write_str("the card is gone"),
            Change::InnerUp(on) => write!(f, "the device of programs is turned {}", on_off(on)),
            Change::InnerMtu(mtu) => write!(f, "the MTU of the device of programs is {mtu}"),
            Change::InnerMac(mac) => write!(f, "the hardware address of the device of programs is {mac}"),
            Change::InnerGone => f.write_str("the device of programs is gone"),
        }
    }
}

/// Follows card and inner device. Lost notifications are made good by reading both again.
pub struct Follower {
    card: Watch,
    inner: Watch,
    stack: Counterpart,
    pending: VecDeque<Change>,
}

/// Through what the inner device gets its carrier.
enum Counterpart {
    /// The queue of the TAP.
    Queue(OwnedFd),
    /// The outer end of the pair, in the card's namespace.
    OuterEnd(u32),
}

impl Counterpart {
    fn of(stack: &StackSide) -> io::Result<Counterpart> {
        match stack {
            StackSide::Tap { queue } => Ok(Counterpart::Queue(queue.try_clone()?)),
            StackSide::Veth { outer_index, .. } => Ok(Counterpart::OuterEnd(*outer_index)),
        }
    }
}

impl Follower {
    /// Begins to follow. What changed since the interface was taken is reported first. Everything that later work in the
    /// card's namespace needs is opened here, because that namespace can be entered with more privileges only.
    ///
    /// # Errors
    /// Fails if the kernel gives no routing sockets.
    pub fn open(taken: &Taken) -> io::Result<Follower> {
        let mut card = in_wire_namespace(taken, || Watch::open(taken.wire_index))??;
        let mut inner = Watch::open(taken.inner_index)?;
        card.resynchronise()?;
        inner.resynchronise()?;
        let stack = Counterpart::of(&taken.stack)?;
        let mut follower = Follower { card, inner, stack, pending: VecDeque::new() };
        follower.report_difference(taken);
        Ok(follower)
    }

    /// What to wait on: readable when [`next_change`](Self::next_change) may have something.
    #[must_use]
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.card.descriptor(), self.inner.descriptor()]
    }

    /// The next change; none if nothing is left to report. Never blocks.
    ///
    /// # Errors
    /// Fails if a routing socket fails.
    pub fn next_change(&mut self) -> io::Result<Option<Change>> {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return Ok(Some(change));
            }
            let of_card = self.card.observe()?;
            let of_inner = self.inner.observe()?;
            if of_card.is_empty() && of_inner.is_empty() {
                return Ok(None);
            }
            for step in of_card {
                card_changes(&step, &mut self.pending);
            }
            for step in of_inner {
                inner_changes(&step, &mut self.pending);
            }
        }
    }

    /// Gives the inner device the card's carrier.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub fn apply_carrier(&mut self, carrier: bool) -> io::Result<()> {
        match &self.stack {
            Counterpart::Queue(queue) => tap_device::set_carrier(queue.as_fd(), carrier),
            Counterpart::OuterEnd(index) => self.card.connection.change_link(&LinkChange::of(*index).flag(UP, carrier)),
        }
    }

    /// Gives the inner device an MTU of `mtu` bytes, and the outer end of a pair that of the card.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub fn apply_mtu(&mut self, mtu: u32) -> io::Result<()> {
        if let (Counterpart::OuterEnd(index), Some(card)) = (&self.stack, &self.card.last) {
            self.card.connection.change_link(&LinkChange::of(*index).mtu(card.mtu))?;
        }
        self.inner.connection.change_link(&LinkChange::of(self.inner.index).mtu(mtu))
    }

    fn report_difference(&mut self, taken: &Taken) {
        match &self.card.last {
            None => self.pending.push_back(Change::NicGone),
            Some(card) => {
                self.pending.push_back(Change::Carrier(card.has_carrier()));
                if card.mtu != taken.nic_mtu {
                    self.pending.push_back(Change::Mtu(card.mtu));
                }
                if card.mac != taken.inner_mac {
                    self.pending.push_back(Change::Mac(card.mac));
                }
            }
        }
        if self.inner.last.is_none() {
            self.pending.push_back(Change::InnerGone);
        }
    }
}

/// One device before and after something happened.
pub(super) struct Step {
    before: Option<Link>,
    after: Option<Link>,
}

/// One device under observation.
pub(super) struct Watch {
    subscription: Subscription,
    connection: Connection,
    index: u32,
    last: Option<Link>,
}

impl Watch {
    /// Watches the device with this index in the calling thread's namespace.
    pub(super) fn open(index: u32) -> io::Result<Watch> {
        let subscription = Subscription::open(libc::RTNLGRP_LINK)?;
        Ok(Watch { subscription, connection: Connection::open()?, index, last: None })
    }

    /// What to wait on.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.subscription.as_fd()
    }

    /// Reads the device again; the result is what changed, if anything.
    pub(super) fn resynchronise(&mut self) -> io::Result<Vec<Step>> {
        let now = self.connection.link_by_index(self.index)?;
        Ok(self.advance(now).into_iter().collect())
    }

    /// What changed since the last call. Never blocks.
    pub(super) fn observe(&mut self) -> io::Result<Vec<Step>> {
        let messages = match self.subscription.next() {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return self.resynchronise(),
            other => other?,
        };
        let mut steps = Vec::new();
        for message in messages {
            if let Some(now) = self.meaning(&message) {
                steps.extend(self.advance(now));
            }
        }
        Ok(steps)
    }

    /// What a message says about our device: its state, or that it is gone. Bridges report their ports in messages of
    /// their own family, which look alike and mean something else.
    fn meaning(&self, message: &Message) -> Option<Option<Link>> {
        let is_link = i32::from(*message.body.first()?) == libc::AF_UNSPEC;
        let link = Link::parse(message).filter(|link| is_link && link.index == self.index)?;
        match message.kind {
            libc::RTM_NEWLINK => Some(Some(link)),
            libc::RTM_DELLINK => Some(None),
            _ => None,
        }
    }

    fn advance(&mut self, now: Option<Link>) -> Option<Step> {
        let before = std::mem::replace(&mut self.last, now.clone());
        (before != now).then_some(Step { before, after: now })
    }
}

/// Says what a step of a card means.
pub(super) fn card_changes(step: &Step, changes: &mut VecDeque<Change>) {
    let Some(after) = &step.after else {
        changes.push_back(Change::NicGone);
        return;
    };
    let differs = |of: fn(&Link) -> u64| step.before.as_ref().is_none_or(|before| of(before) != of(after));
    if differs(|link| link.is_up().into()) {
        changes.push_back(Change::NicUp(after.is_up()));
    }
    if differs(|link| link.has_carrier().into()) {
        changes.push_back(Change::Carrier(after.has_carrier()));
    }
    if differs(|link| link.mtu.into()) {
        changes.push_back(Change::Mtu(after.mtu));
    }
    if step.before.as_ref().is_none_or(|before| before.mac != after.mac) {
        changes.push_back(Change::Mac(after.mac));
    }
}

fn inner_changes(step: &Step, changes: &mut VecDeque<Change>) {
    let Some(after) = &step.after else {
        changes.push_back(Change::InnerGone);
        return;
    };
    let Some(before) = &step.before else { return };
    if before.is_up() != after.is_up() {
        changes.push_back(Change::InnerUp(after.is_up()));
    }
    if before.mtu != after.mtu {
        changes.push_back(Change::InnerMtu(after.mtu));
    }
    if before.mac != after.mac {
        changes.push_back(Change::InnerMac(after.mac));
    }
}
