//! The state file: what must be known to give an interface back, written before the first change.
//!
//! Whatever happens to the daemon, this file and the kernel's own state together say how far it came. The file names
//! the boot in which it was written, because a reboot undoes every take-over by itself.

use std::fs;
use std::io;
use std::path::Path;

use bump::Instant;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::place::Place;
pub use super::place::state_file as path;
use super::snapshot::Snapshot;
use super::{Probe, TakeoverError, Way};
use crate::files;

/// Layout of the file.
const VERSION: u32 = 1;
/// A random number that the kernel draws at every boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How far a take-over is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Begun; the card may be at home or away, the inner device may be there or not. What the file says about addresses
    /// and routes is the truth.
    Taking,
    /// Finished. What the inner device has is the truth.
    Taken,
    /// Being given back. What the file says is the truth.
    Releasing,
}

/// What stands, or is about to stand, in the card's place. Files from before there was a choice had a TAP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum InnerKind {
    /// A TAP.
    #[default]
    Tap,
    /// One end of a pair. Between two kinds a TAP may still be there.
    Veth {
        /// Name of the other end, in the card's namespace.
        outer: String,
    },
    /// Nothing: the card is where it was, with a TAP beside it.
    Beside {
        /// The TAP's name.
        tap: String,
    },
}

/// What the device of a VLAN is made on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Below {
    /// The name of the card, or of another device, when the VLAN was taken.
    pub(crate) card: String,
    /// The card's number, which it keeps under another name. In a former version's file 0.
    #[serde(default)]
    pub(crate) index: u32,
    /// The VLAN's number.
    pub(crate) vlan: u16,
}

/// What is known about a taken interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    version: u32,
    boot: String,
    /// The interface's name.
    pub interface: String,
    /// How far it is.
    pub phase: Phase,
    /// How it is kept away from the wire.
    pub way: Way,
    /// The card's name where it is now.
    pub nic_name: String,
    /// Number of the network namespace in which it was taken.
    pub(crate) host_namespace: u64,
    /// What the inner device is.
    #[serde(default)]
    pub(crate) inner: InnerKind,
    /// Whether the card's place for filters of `tc` was made for ours.
    #[serde(default)]
    pub(crate) own_clsact: bool,
    /// Where the VLAN is shut whenever its device is gone.
    #[serde(default)]
    pub(crate) below: Option<Below>,
    /// What was found out about the kernel.
    pub probes: Vec<Probe>,
    /// What to give back.
    pub(crate) home: Snapshot,
    /// When to give the interface back unless somebody confirmed, in nanoseconds since boot.
    revert_at: Option<u64>,
    /// Whether somebody confirmed that the host can still be reached.
    pub confirmed: bool,
}

impl State {
    /// The state of a take-over that is about to begin.
    pub(super) fn begin(place: &Place, way: Way, host_namespace: u64, home: Snapshot) -> io::Result<State> {
        Ok(State {
            version: VERSION,
            boot: boot_id()?,
            interface: place.interface.clone(),
            phase: Phase::Taking,
            way,
            nic_name: place.interface.clone(),
            host_namespace,
            inner: InnerKind::Tap,
            own_clsact: false,
            below: None,
            probes: Vec::new(),
            home,
            revert_at: None,
            confirmed: false,
        })
    }

    /// When the interface is to be given back unless somebody confirms, on the clock that counts from boot.
    #[must_use]
    pub fn revert_at(&self) -> Option<Instant> {
        self.revert_at.filter(|_| !self.confirmed).map(Instant::from_nanos)
    }

    /// Notes what was found out about the kernel, in place of what was known about the same thing.
    pub(super) fn probe(&mut self, name: &str, outcome: impl Into<String>) {
        let outcome = outcome.into();
        match self.probes.iter_mut().find(|probe| probe.name == name) {
            Some(probe) => probe.outcome = outcome,
            None => self.probes.push(Probe { name: name.to_owned(), outcome }),
        }
    }

    /// Forgets what was found out about a thing that is not in use any more.
    pub(super) fn forget_probe(&mut self, name: &str) {
        self.probes.retain(|probe| probe.name != name);
    }

    /// Writes the file.
    pub(super) fn save(&self, file: &Path) -> Result<(), TakeoverError> {
        save(self, file)
    }

    /// Reads the file; none if there is none or if it was written before the last boot.
    pub(super) fn read(file: &Path) -> Result<Option<State>, TakeoverError> {
        read(file, VERSION, |state: &State| (state.version, &state.boot))
    }
}

/// Writes a state to its file.
pub(super) fn save(state: &impl Serialize, file: &Path) -> Result<(), TakeoverError> {
    let failed = |cause| TakeoverError::File { file: file.to_owned(), cause };
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    let text = serde_json::to_vec_pretty(state).map_err(|error| failed(error.into()))?;
    files::replace_private(file, &text).map_err(failed)
}

/// The state in a file of this `version`; none if there is none or if it was written before the last boot, which undid
/// all. `stamp` says version and boot of one.
pub(super) fn read<T: DeserializeOwned>(
    file: &Path,
    version: u32,
    stamp: fn(&T) -> (u32, &str),
) -> Result<Option<T>, TakeoverError> {
    let failed = |cause| TakeoverError::File { file: file.to_owned(), cause };
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let state: T = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    if stamp(&state).0 != version {
        return Err(failed(io::Error::other("was written by another version of Ringwall")));
    }
    let boot = boot_id().map_err(failed)?;
    Ok(Some(state).filter(|state| stamp(state).1 == boot))
}

/// What tells this boot from others.
pub fn boot_id() -> io::Result<String> {
    files::read_line(Path::new(BOOT_ID))
}

/// Reads the state of `interface`; none if it is not taken.
///
/// # Errors
/// Fails if the file cannot be read or is not one of ours.
pub fn load(state_dir: &Path, interface: &str) -> Result<Option<State>, TakeoverError> {
    State::read(&Place::of(interface, state_dir, state_dir)?.state)
}

/// Sets the time at which `interface` is to be given back unless [`confirm`] is called before.
///
/// # Errors
/// Fails if the interface is not taken or the file cannot be written.
pub fn set_revert_at(state_dir: &Path, interface: &str, at: Instant) -> Result<(), TakeoverError> {
    change(state_dir, interface, |state| {
        state.revert_at = Some(at.as_nanos());
        state.confirmed = false;
    })
}

/// Notes that the host can still be reached and that `interface` is to stay taken.
///
/// # Errors
/// Fails if the interface is not taken or the file cannot be written.
pub fn confirm(state_dir: &Path, interface: &str) -> Result<(), TakeoverError> {
    change(state_dir, interface, |state| state.confirmed = true)
}

fn change(state_dir: &Path, interface: &str, edit: impl FnOnce(&mut State)) -> Result<(), TakeoverError> {
    let place = Place::of(interface, state_dir, state_dir)?;
    let not_taken = || TakeoverError::NotTaken { interface: interface.to_owned(), file: place.state.clone() };
    let mut state = State::read(&place.state)?.ok_or_else(not_taken)?;
    edit(&mut state);
    state.save(&place.state)
}
