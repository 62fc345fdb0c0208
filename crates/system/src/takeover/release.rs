//! Giving back: from whatever is there to the interface as it would be without us.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use super::ends::{self, Pair};
use super::error::Doing;
use super::nic::{card_among, card_in_namespace, rename, send};
use super::place::Place;
use super::snapshot::Snapshot;
use super::state::{Phase, State};
use super::{TakeoverError, Way, in_place, nft};
use crate::files;
use crate::namespace;
use crate::netlink::Connection;
use crate::netlink::link::{ALL_MULTICAST, Link, LinkChange, UP};

/// What came of giving an interface back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether the card was found. If it was unplugged, everything else has been cleaned up all the same.
    pub nic_found: bool,
    /// What the kernel refused to restore, one line each.
    pub warnings: Vec<String>,
}

/// Gives `interface` back in the calling thread's network namespace, from any state in which a daemon, living or
/// killed, may have left it. Addresses, routes and settings are those that the inner device has now.
///
/// # Errors
/// Fails if the interface is not taken, is held by a living daemon, or if the kernel refuses a step; calling again goes
/// on where it stopped.
pub fn release(interface: &str, run_dir: &Path, state_dir: &Path) -> Result<Report, TakeoverError> {
    let place = Place::of(interface, run_dir, state_dir)?;
    let not_taken = || TakeoverError::NotTaken { interface: interface.to_owned(), file: place.state.clone() };
    if !place.state.exists() {
        return Err(not_taken());
    }
    let _lock = place.lock()?;
    let Some(state) = State::read(&place.state)? else {
        // The boot ended, and with it everything but the file.
        files::remove_if_there(&place.state).doing(interface, "remove the state file")?;
        return Err(not_taken());
    };
    let host = Connection::open().doing(interface, "open a routing socket")?;
    let here = namespace::current().and_then(|here| namespace::identity(here.as_fd()));
    if here.doing(interface, "look at the network namespace")? != state.host_namespace {
        return Err(TakeoverError::OtherNamespace { interface: interface.to_owned(), file: place.state });
    }
    let report = Undoing { place: &place, host, state }.run()?;
    files::remove_if_there(&place.state).doing(interface, "remove the state file")?;
    files::remove_if_there(&place.lock).doing(interface, "remove the lock file")?;
    Ok(report)
}

/// The pair with its inner end, and a routing socket beside its outer end.
struct Ends {
    wire: Connection,
    pair: Pair,
    inner: Option<Link>,
}

struct Undoing<'a> {
    place: &'a Place,
    host: Connection,
    state: State,
}

impl Undoing<'_> {
    fn run(mut self) -> Result<Report, TakeoverError> {
        if self.state.way == Way::InPlace {
            return self.open_in_place();
        }
        let interface = self.place.interface.as_str();
        let namespace = namespace::open_pin(&self.place.pin).doing(interface, "open the card's namespace")?;
        self.remove_inner_device(namespace.as_ref())?;
        if let Some(namespace) = &namespace {
            self.bring_home(namespace)?;
        }
        namespace::unpin(&self.place.pin).doing(interface, "remove the card's namespace")?;
        let card = card_among(&mut self.host, &self.state, None).doing(interface, "look for the card")?;
        // Nothing else of a former version's way is another than here.
        if self.state.way == Way::Filter {
            nft::remove_table(interface)?;
        }
        let Some(card) = card else { return Ok(Report { nic_found: false, warnings: Vec::new() }) };
        let warnings = self.restore(&card).doing(interface, "restore the card")?;
        Ok(Report { nic_found: true, warnings })
    }

    /// The card never left.
    fn open_in_place(mut self) -> Result<Report, TakeoverError> {
        self.state.phase = Phase::Releasing;
        self.state.save(&self.place.state)?;
        let Undoing { place, host, state } = &mut self;
        let delete = |tap: &str| host.link_by_name(tap)?.map_or(Ok(()), |tap| host.delete_link(tap.index));
        let warnings = in_place::open(place, state, delete)?;
        let card = card_among(host, state, None).doing(&place.interface, "look for the card")?;
        // What the daemon told the stack of neighbours is on the card itself.
        if let Some(card) = &card {
            host.forget_learned_neighbours(card.index).doing(&place.interface, "forget neighbours")?;
        }
        Ok(Report { nic_found: card.is_some(), warnings })
    }

    /// Takes down what the inner device has, writes it into the state file, and only then deletes the device.
    fn remove_inner_device(&mut self, namespace: Option<&OwnedFd>) -> Result<(), TakeoverError> {
        let interface = self.place.interface.as_str();
        let found = self.host.link_by_name(interface).doing(interface, "look for the inner device")?;
        let tap = found.filter(Link::is_tap);
        let ends = self.pair(namespace).doing(interface, "look for the pair")?;
        let inner_end = ends.as_ref().and_then(|ends| ends.inner.as_ref());
        if let (Some(inner), Phase::Taken) = (tap.as_ref().or(inner_end), self.state.phase) {
            let now = Snapshot::take(&mut self.host, inner).doing(interface, "take down addresses and routes")?;
            self.state.home.follow(now);
        }
        self.state.phase = Phase::Releasing;
        self.state.save(&self.place.state)?;
        if let Some(tap) = tap {
            self.host.delete_link(tap.index).doing(interface, "remove the inner device")?;
        }
        // One end takes the other with it, wherever that is.
        ends.map_or(Ok(()), |mut ends| ends.wire.delete_link(ends.pair.outer.index)).doing(interface, "remove the pair")
    }

    fn pair(&mut self, namespace: Option<&OwnedFd>) -> io::Result<Option<Ends>> {
        let Some(namespace) = namespace else { return Ok(None) };
        let mut wire = namespace::run_inside(namespace.as_fd(), Connection::open)??;
        let Some(pair) = ends::find(&mut wire, &self.state)? else { return Ok(None) };
        let inner = pair.inner_end(&mut self.host, namespace.as_fd())?;
        Ok(Some(Ends { wire, pair, inner }))
    }

    /// Moves the card from its namespace back to where it was.
    fn bring_home(&self, namespace: &OwnedFd) -> Result<(), TakeoverError> {
        let interface = self.place.interface.as_str();
        let home = namespace::current().doing(interface, "look at the network namespace")?;
        let work = || {
            let mut wire = Connection::open()?;
            let Some(card) = card_in_namespace(&mut wire, &self.state)? else { return Ok(()) };
            wire.change_link(&LinkChange::of(card.index).flag(UP, false))?;
            if card.name != interface {
                wire.change_link(&LinkChange::of(card.index).name(interface))?;
            }
            send(&mut wire, &LinkChange::of(card.index), home.as_fd(), self.state.home.index)
        };
        let moved = namespace::run_inside(namespace.as_fd(), work).and_then(|result: io::Result<()>| result);
        moved.doing(interface, "bring the card home")
    }

    /// Gives the card its name, state, addresses and routes.
    fn restore(&mut self, card: &Link) -> io::Result<Vec<String>> {
        let home = &self.state.home;
        if card.name != self.place.interface {
            rename(&mut self.host, card, &self.place.interface)?;
        }
        let flags = LinkChange::of(card.index).flag(ALL_MULTICAST, home.all_multicast);
        let flags = if home.up { flags } else { flags.flag(UP, false) };
        self.host.change_link(&flags)?;
        home.give(&mut self.host, card.index, &self.place.interface)
    }
}
