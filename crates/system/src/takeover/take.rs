//! Taking: from whatever is there to a taken interface.

use std::os::fd::AsFd;

use wire::MacAddress;

use super::error::Doing;
use super::place::{Lock, Place};
use super::secluded::{OwnNamespace, Secluded};
use super::snapshot::Snapshot;
use super::state::{Phase, State};
use super::work::Work;
use super::{Request, StackSide, Taken, TakeoverError, Way, ends, nft};
use crate::namespace;
use crate::netlink::Connection;
use crate::netlink::link::Link;
use crate::tap_device;

/// Smallest MTU of the inner device in bytes: every IPv4 host must take packets of this size (RFC 791).
const MIN_INNER_MTU: u32 = 576;

/// Takes an interface over in the calling thread's network namespace, or goes on with what an earlier call began,
/// finished or failed to finish.
///
/// # Errors
/// Fails without a trace if the interface cannot be taken at all. If the kernel refuses a later step, what was done
/// stays closed; calling again goes on, and [`release`](super::release) undoes it.
pub fn take(request: &Request) -> Result<Taken, TakeoverError> {
    let place = Place::of(&request.interface, &request.run_dir, &request.state_dir)?;
    let interface = place.interface.as_str();
    let mut host = Connection::open().doing(interface, "open a routing socket")?;
    if State::read(&place.state)?.is_none() {
        inspect(&mut host, request, &place)?;
    }
    let lock = place.lock()?;
    let result = take_locked(host, request, &place, lock);
    if result.is_err() && !place.state.exists() {
        crate::files::remove_if_there(&place.lock).doing(interface, "remove the lock file")?;
    }
    result
}

fn take_locked(mut host: Connection, request: &Request, place: &Place, lock: Lock) -> Result<Taken, TakeoverError> {
    let interface = place.interface.as_str();
    let here = namespace::current().and_then(|here| namespace::identity(here.as_fd()));
    let here = here.doing(interface, "look at the network namespace")?;
    let found = State::read(&place.state)?;
    let touched = found.is_some();
    let state = match found {
        Some(state) if state.host_namespace != here => {
            return Err(TakeoverError::OtherNamespace { interface: interface.to_owned(), file: place.state.clone() });
        }
        Some(state) => state,
        None => begin(&mut host, request, place, here)?,
    };
    let adopted = state.phase == Phase::Taken;
    let mut work = Work { request, place, host, state, touched, warnings: Vec::new() };
    match work.run() {
        Ok(parts) => Ok(work.finish(parts, adopted, lock)),
        Err(error) => {
            work.withdraw()?;
            Err(error)
        }
    }
}

/// Makes sure that the interface can be taken, before anything is written anywhere.
fn inspect(host: &mut Connection, request: &Request, place: &Place) -> Result<Link, TakeoverError> {
    let link = inspect_card(host, place)?;
    inner_mtu(&request.interface, link.mtu, request.overhead_bytes)?;
    Ok(link)
}

/// Makes sure that an interface is a card of its own.
pub(super) fn inspect_card(host: &mut Connection, place: &Place) -> Result<Link, TakeoverError> {
    let interface = place.interface.clone();
    let links = host.links().doing(&interface, "list the interfaces")?;
    let Some(link) = links.iter().find(|link| link.name == interface) else {
        return Err(TakeoverError::NoSuchInterface { interface });
    };
    let other_name = |index: u32| {
        let other = links.iter().find(|other| other.index == index);
        other.map_or_else(|| format!("interface number {index}"), |other| other.name.clone())
    };
    if !link.is_ethernet {
        return Err(TakeoverError::NotEthernet { interface, what: "no Ethernet interface" });
    }
    if link.is_tap() {
        return Err(TakeoverError::NotEthernet { interface, what: "a TAP device, made by a program" });
    }
    let unreadable = |cause| TakeoverError::File { file: place.pin.clone(), cause };
    if ends::leads_to(host, link, &place.pin).map_err(unreadable)? {
        return Err(TakeoverError::StateLost { interface, file: place.state.clone() });
    }
    if let Some(master) = link.master {
        return Err(TakeoverError::Enslaved { interface, master: other_name(master) });
    }
    // Two ends of one cable in the same namespace name each other; that is no device on top.
    let is_upper = |other: &&Link| other.below == Some(link.index) && link.below != Some(other.index);
    if let Some(upper) = links.iter().find(is_upper) {
        return Err(TakeoverError::Carries { interface, upper: upper.name.clone() });
    }
    Ok(link.clone())
}

fn begin(host: &mut Connection, request: &Request, place: &Place, here: u64) -> Result<State, TakeoverError> {
    let link = inspect(host, request, place)?;
    let home = Snapshot::take(host, &link).doing(&place.interface, "take down addresses and routes")?;
    let state = State::begin(place, request.way, here, home).doing(&place.interface, "read the boot's number")?;
    state.save(&place.state)?;
    Ok(state)
}

fn inner_mtu(interface: &str, mtu: u32, overhead: u16) -> Result<u32, TakeoverError> {
    mtu.checked_sub(u32::from(overhead))
        .filter(|inner| *inner >= MIN_INNER_MTU)
        .ok_or_else(|| TakeoverError::MtuTooSmall { interface: interface.to_owned(), mtu, overhead })
}

/// What a finished take-over consists of.
struct Parts {
    card: Secluded,
    stack: StackSide,
    inner_index: u32,
    inner_mtu: u32,
}

impl Work<'_> {
    fn run(&mut self) -> Result<Parts, TakeoverError> {
        let mut card = self.seclude()?;
        let inner_mtu = inner_mtu(self.interface(), card.link.mtu, self.request.overhead_bytes)?;
        let (stack, inner_index) = match &mut card.own {
            None => self.stand_beside(&mut card)?,
            Some(own) => self.stand_in(&card.link, own, inner_mtu)?,
        };
        self.state.phase = Phase::Taken;
        self.save()?;
        Ok(Parts { card, stack, inner_index, inner_mtu })
    }

    /// Puts the inner device where the card was; what the daemon has of it, and its number.
    fn stand_in(&mut self, card: &Link, own: &mut OwnNamespace, mtu: u32) -> Result<(StackSide, u32), TakeoverError> {
        let Some(pair) = self.joined(card, own)? else { return self.stand_in_by_tap(card.mac, mtu) };
        let index = self.stand_in_by_pair(&pair, card, own, mtu)?;
        let shortcut = self.shortcut(&pair, card, own);
        Ok((StackSide::Veth { outer_index: pair.outer.index, outer_name: pair.outer.name, shortcut }, index))
    }

    fn finish(self, parts: Parts, adopted: bool, lock: Lock) -> Taken {
        let Parts { card, stack, inner_index, inner_mtu } = parts;
        let way = self.state.way;
        Taken {
            stack,
            inner_index,
            inner_mac: card.link.mac,
            nic_mtu: card.link.mtu,
            inner_mtu,
            way,
            wire_index: card.link.index,
            wire_name: card.link.name,
            wire_namespace: card.own.map(|own| own.descriptor),
            mark: (way == Way::InPlace).then_some(nft::MARK),
            fence: card.fence,
            probes: self.state.probes,
            adopted,
            warnings: self.warnings,
            _lock: lock,
        }
    }

    /// Removes our own files after a failure, if nothing else has been changed.
    fn withdraw(&self) -> Result<(), TakeoverError> {
        if self.touched {
            return Ok(());
        }
        namespace::unpin(&self.place.pin).doing(self.interface(), "remove the empty namespace")?;
        crate::files::remove_if_there(&self.place.state).doing(self.interface(), "remove the state file")
    }

    /// Puts a TAP where the card was, or opens the one that is there.
    fn stand_in_by_tap(&mut self, mac: MacAddress, mtu: u32) -> Result<(StackSide, u32), TakeoverError> {
        let present = self.tap_here()?;
        if present.is_none() || self.state.phase != Phase::Taken {
            self.state.phase = Phase::Taking;
        }
        self.save()?;
        // Sockets that are bound to the card's number go on working.
        let index = Some(self.state.home.index).filter(|_| present.is_none());
        let (queue, offloads) =
            tap_device::open(&self.place.interface, index).doing(&self.place.interface, "open the inner device")?;
        self.state.probe("inner device offloads", offloads);
        let index = self.configure(mac, mtu).doing(&self.place.interface, "set the inner device up")?;
        Ok((StackSide::Tap { queue }, index))
    }
}
