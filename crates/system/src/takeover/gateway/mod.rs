//! The cards of a gateway: two of them, and perhaps a third for a mirror, alone in one pinned network namespace.
//!
//! There no address, route, bridge or other program's socket can reach them, and the kernel is told to neither answer nor
//! forward. So what one card receives leaves by the other through the daemon or not at all, also while the daemon is dead
//! (record 0022). A card that cannot leave its namespace cannot be a gateway's.
//!
//! As with a single interface, every step looks at what is there before it acts: one procedure takes, goes on after a crash
//! and adopts; another gives back from any point.

mod follow;
mod state;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use wire::MacAddress;

pub use follow::GatewayFollower;

use self::state::{Kept, State};
use super::error::Doing;
use super::nic::{card_like, send};
use super::place::{Lock, Place};
use super::settings;
use super::snapshot::Snapshot;
use super::take::inspect_card;
use super::{Report, TakeoverError};
use crate::files;
use crate::namespace;
use crate::netlink::Connection;
use crate::netlink::address::local;
use crate::netlink::link::{ALL_MULTICAST, Link, LinkChange, UP};

/// Which of a gateway's cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Towards the hosts that are protected.
    Trusted,
    /// Towards everybody else.
    Untrusted,
    /// Where a copy of all that leaves goes.
    Mirror,
}

impl Role {
    const ALL: [Role; 3] = [Role::Trusted, Role::Untrusted, Role::Mirror];

    /// The word in logs and events.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::Trusted => "trusted",
            Role::Untrusted => "untrusted",
            Role::Mirror => "mirror",
        }
    }
}

/// Which interfaces to take.
#[derive(Clone, Debug)]
pub struct GatewayRequest {
    /// Name of the interface towards the protected hosts; the gateway's files bear it.
    pub trusted: String,
    /// Name of the interface towards everybody else.
    pub untrusted: String,
    /// Name of the interface for a copy of all that leaves.
    pub mirror: Option<String>,
    /// Directory for locks and the pinned namespace; must not outlive a boot.
    pub run_dir: PathBuf,
    /// Directory for the state file.
    pub state_dir: PathBuf,
}

impl GatewayRequest {
    fn interfaces(&self) -> impl Iterator<Item = &String> {
        [&self.trusted, &self.untrusted].into_iter().chain(&self.mirror)
    }
}

/// A card in the gateway's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayCard {
    /// What it is for.
    pub role: Role,
    /// Its name, the same as outside.
    pub name: String,
    /// Its interface index there.
    pub index: u32,
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Whether it has a carrier.
    pub carrier: bool,
    /// Whether it has a driver and a device of its own. A bond, a VLAN, a TAP and the end of a cable
    /// between namespaces have none.
    pub has_device: bool,
}

/// The cards of a gateway. Dropping it gives nothing back: nothing passes between them then. Who wants to give them back
/// drops this value first, because [`release_gateway`] refuses what a living daemon holds.
#[derive(Debug)]
pub struct Gateway {
    /// Its cards: trusted, untrusted and, if there is one, the mirror.
    pub cards: Vec<GatewayCard>,
    /// Whether they had been taken before and were adopted.
    pub adopted: bool,
    namespace: OwnedFd,
    _locks: Vec<Lock>,
}

impl Gateway {
    /// The card with `role`.
    #[must_use]
    pub fn card(&self, role: Role) -> Option<&GatewayCard> {
        self.cards.iter().find(|card| card.role == role)
    }

    /// The smallest MTU of trusted and untrusted card, in bytes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        let sides = self.cards.iter().filter(|card| card.role != Role::Mirror);
        sides.map(|card| card.mtu).min().unwrap_or(0)
    }

    /// Runs `work` on a short-lived thread in the namespace of the cards: what `work` opens there stays there.
    ///
    /// # Errors
    /// Fails if the namespace cannot be entered.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
        namespace::run_inside(self.namespace.as_fd(), work)
    }
}

/// Where the files of a gateway lie.
struct Files {
    /// Of each interface, the trusted one first.
    places: Vec<Place>,
    state: PathBuf,
}

impl Files {
    fn of<'a>(
        interfaces: impl Iterator<Item = &'a String>,
        run_dir: &Path,
        state_dir: &Path,
    ) -> Result<Files, TakeoverError> {
        let places = interfaces.map(|name| Place::of(name, run_dir, state_dir)).collect::<Result<Vec<_>, _>>()?;
        let state = state::path(&places[0], state_dir);
        Ok(Files { places, state })
    }

    /// The name that stands for the gateway.
    fn name(&self) -> &str {
        &self.places[0].interface
    }

    /// Where the namespace is pinned.
    fn pin(&self) -> &Path {
        &self.places[0].pin
    }

    fn lock(&self) -> Result<Vec<Lock>, TakeoverError> {
        self.places.iter().map(Place::lock).collect()
    }

    fn remove_locks(&self) -> Result<(), TakeoverError> {
        let remove = |place: &Place| files::remove_if_there(&place.lock).doing(self.name(), "remove the lock file");
        self.places.iter().try_for_each(remove)
    }
}

/// Takes the cards of a gateway in the calling thread's network namespace, or goes on with what an earlier call began,
/// finished or failed to finish.
///
/// # Errors
/// Fails if a card cannot be taken; what this call did is undone then, and what an earlier one did stays.
pub fn take_gateway(request: &GatewayRequest) -> Result<Gateway, TakeoverError> {
    let files = Files::of(request.interfaces(), &request.run_dir, &request.state_dir)?;
    let mut host = Connection::open().doing(files.name(), "open a routing socket")?;
    let found = State::read(&files.state)?;
    let homes = match &found {
        Some(_) => Vec::new(),
        None => files.places.iter().map(|place| inspect(&mut host, place)).collect::<Result<Vec<_>, _>>()?,
    };
    let locks = files.lock()?;
    let here = this_namespace(files.name())?;
    let adopted = found.is_some();
    let state = match found {
        Some(state) => adoptable(&files, state, here)?,
        None => {
            let state = State::begin(here, homes).doing(files.name(), "read the boot's number")?;
            state.save(&files.state)?;
            state
        }
    };
    match gather(&mut host, &files, &state) {
        Ok((namespace, cards)) => Ok(Gateway { cards, adopted, namespace, _locks: locks }),
        Err(error) if adopted => Err(error),
        Err(error) => {
            disperse(&mut host, &files, &state)?;
            files.remove_locks()?;
            Err(error)
        }
    }
}

fn this_namespace(interface: &str) -> Result<u64, TakeoverError> {
    let here = namespace::current().and_then(|here| namespace::identity(here.as_fd()));
    here.doing(interface, "look at the network namespace")
}

/// Makes sure that a card can be taken, before anything is written anywhere, and takes down what it has.
fn inspect(host: &mut Connection, place: &Place) -> Result<Kept, TakeoverError> {
    let interface = place.interface.clone();
    let link = inspect_card(host, place)?;
    let home = Snapshot::take(host, &link).doing(&interface, "take down its settings")?;
    match home.addresses.iter().filter_map(|address| local(address)).find_map(set_address) {
        Some(address) => Err(TakeoverError::HasAddress { interface, address }),
        None => Ok(Kept { interface, home }),
    }
}

/// An address that somebody set; those that the kernel makes for every link do not count.
fn set_address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => {
            let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?);
            Some(address).filter(|address| !address.is_unicast_link_local()).map(IpAddr::from)
        }
    }
}

/// What an earlier start left is good only for the same cards in the same place.
fn adoptable(files: &Files, state: State, here: u64) -> Result<State, TakeoverError> {
    let interface = files.name().to_owned();
    if state.host_namespace != here {
        return Err(TakeoverError::OtherNamespace { interface, file: files.state.clone() });
    }
    let held = state.cards.iter().map(|card| &card.interface);
    if held.clone().ne(files.places.iter().map(|place| &place.interface)) {
        let held = held.cloned().collect::<Vec<_>>().join(", ");
        return Err(TakeoverError::OtherCards { interface, held });
    }
    Ok(state)
}

/// Makes and pins the namespace of the gateway whose trusted interface is `trusted`, for a daemon
/// that may enter one and mount nothing. One that is there already stays.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn hold_gateway(trusted: &str, run_dir: &Path, state_dir: &Path) -> Result<(), TakeoverError> {
    let place = Place::of(trusted, run_dir, state_dir)?;
    pinned(trusted, &place.pin).map(drop)
}

/// Undoes [`hold_gateway`], unless the namespace has cards.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn let_gateway_go(trusted: &str, run_dir: &Path, state_dir: &Path) -> Result<(), TakeoverError> {
    let place = Place::of(trusted, run_dir, state_dir)?;
    if State::read(&state::path(&place, state_dir))?.is_some() {
        return Ok(());
    }
    namespace::unpin(&place.pin).doing(trusted, "remove the cards' namespace")
}

/// The pinned namespace, which is made if there is none.
fn pinned(name: &str, pin: &Path) -> Result<OwnedFd, TakeoverError> {
    if let Some(namespace) = namespace::open_pin(pin).doing(name, "open the cards' namespace")? {
        return Ok(namespace);
    }
    let fresh = namespace::create(settings::silence_namespace).doing(name, "make a network namespace")?;
    namespace::pin(fresh.as_fd(), pin).doing(name, "pin the cards' namespace")?;
    Ok(fresh)
}

/// Brings every card into the pinned namespace and turns it on.
fn gather(host: &mut Connection, files: &Files, state: &State) -> Result<(OwnedFd, Vec<GatewayCard>), TakeoverError> {
    let name = files.name();
    let namespace = pinned(name, files.pin())?;
    let inside = namespace::run_inside(namespace.as_fd(), Connection::open).and_then(|opened| opened);
    let mut inside = inside.doing(name, "enter the cards' namespace")?;
    let mut cards = Vec::new();
    for (role, kept) in Role::ALL.into_iter().zip(&state.cards) {
        cards.push(bring_in(host, &mut inside, &namespace, role, kept)?);
    }
    Ok((namespace, cards))
}

fn bring_in(
    host: &mut Connection,
    inside: &mut Connection,
    namespace: &OwnedFd,
    role: Role,
    kept: &Kept,
) -> Result<GatewayCard, TakeoverError> {
    let interface = kept.interface.as_str();
    let gone = || TakeoverError::NicGone { interface: interface.to_owned() };
    if find(inside, kept)?.is_none() {
        let card = find(host, kept)?.ok_or_else(gone)?;
        let moved = send(host, &LinkChange::of(card.index), namespace.as_fd(), kept.home.index);
        moved.map_err(|cause| TakeoverError::CannotLeave { interface: interface.to_owned(), cause })?;
    }
    let card = find(inside, kept)?.ok_or_else(gone)?;
    let change = LinkChange::of(card.index).flag(ALL_MULTICAST, true).flag(UP, true);
    inside.change_link(&change).doing(interface, "turn the card on")?;
    let card = find(inside, kept)?.ok_or_else(gone)?;
    let carrier = card.has_carrier();
    let has_device = card.has_device();
    Ok(GatewayCard { role, name: card.name, index: card.index, mac: card.mac, mtu: card.mtu, carrier, has_device })
}

/// The card, if it is in the namespace of `connection`.
fn find(connection: &mut Connection, kept: &Kept) -> Result<Option<Link>, TakeoverError> {
    let links = connection.links().doing(&kept.interface, "look for the card")?;
    Ok(card_like(links, &kept.home, &[&kept.interface]))
}

/// Gives the cards of the gateway with the trusted interface `trusted` back in the calling thread's network namespace, from
/// any state in which a daemon, living or killed, may have left them.
///
/// # Errors
/// Fails if there is no such gateway, if a living daemon holds it, or if the kernel refuses a step; calling again goes on
/// where it stopped.
pub fn release_gateway(trusted: &str, run_dir: &Path, state_dir: &Path) -> Result<Report, TakeoverError> {
    let trusted = trusted.to_owned();
    let file = Files::of(std::iter::once(&trusted), run_dir, state_dir)?.state;
    let not_taken = || TakeoverError::NotTaken { interface: trusted.clone(), file: file.clone() };
    let Some(state) = State::read(&file)? else {
        // A file from before the last boot speaks of nothing that is still there.
        files::remove_if_there(&file).doing(&trusted, "remove the state file")?;
        return Err(not_taken());
    };
    let files = Files::of(state.cards.iter().map(|card| &card.interface), run_dir, state_dir)?;
    let _locks = files.lock()?;
    if this_namespace(files.name())? != state.host_namespace {
        return Err(TakeoverError::OtherNamespace { interface: trusted, file });
    }
    let mut host = Connection::open().doing(files.name(), "open a routing socket")?;
    let report = disperse(&mut host, &files, &state)?;
    files.remove_locks()?;
    Ok(report)
}

/// Sends every card home and gives it what it had; the namespace and the state file go.
fn disperse(host: &mut Connection, files: &Files, state: &State) -> Result<Report, TakeoverError> {
    let name = files.name();
    if let Some(namespace) = namespace::open_pin(files.pin()).doing(name, "open the cards' namespace")? {
        let home = namespace::current().doing(name, "look at the network namespace")?;
        let work = || send_home(&home, state);
        namespace::run_inside(namespace.as_fd(), work).doing(name, "enter the cards' namespace")??;
    }
    namespace::unpin(files.pin()).doing(name, "remove the cards' namespace")?;
    let mut report = Report { nic_found: true, warnings: Vec::new() };
    for kept in &state.cards {
        match find(host, kept)? {
            Some(card) => report.warnings.extend(restore(host, kept, &card)?),
            None => report.nic_found = false,
        }
    }
    files::remove_if_there(&files.state).doing(name, "remove the state file")?;
    Ok(report)
}

/// Runs in the cards' namespace.
fn send_home(home: &OwnedFd, state: &State) -> Result<(), TakeoverError> {
    for kept in &state.cards {
        let interface = kept.interface.as_str();
        let mut inside = Connection::open().doing(interface, "open a routing socket")?;
        let Some(card) = find(&mut inside, kept)? else { continue };
        inside.change_link(&LinkChange::of(card.index).flag(UP, false)).doing(interface, "turn the card off")?;
        let change = LinkChange::of(card.index);
        send(&mut inside, &change, home.as_fd(), kept.home.index).doing(interface, "bring the card home")?;
    }
    Ok(())
}

fn restore(host: &mut Connection, kept: &Kept, card: &Link) -> Result<Vec<String>, TakeoverError> {
    let Kept { interface, home } = kept;
    let flags = LinkChange::of(card.index).flag(ALL_MULTICAST, home.all_multicast);
    let flags = if home.up { flags } else { flags.flag(UP, false) };
    host.change_link(&flags).doing(interface, "restore the card")?;
    home.give(host, card.index, interface).doing(interface, "restore the card")
}
