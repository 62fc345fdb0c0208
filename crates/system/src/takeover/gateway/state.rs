//! The state file of a gateway: which cards it holds and what they were like, written before the first of them moves.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::takeover::TakeoverError;
use crate::takeover::place::Place;
use crate::takeover::snapshot::Snapshot;
use crate::takeover::state::{self, boot_id};

/// Layout of the file.
const VERSION: u32 = 1;

/// What is known about the cards of a gateway.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    version: u32,
    boot: String,
    /// Number of the network namespace in which they were taken.
    pub(super) host_namespace: u64,
    /// The cards, the trusted one first.
    pub(super) cards: Vec<Kept>,
}

/// A card and what to give back to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) interface: String,
    pub(super) home: Snapshot,
}

impl State {
    pub(super) fn begin(host_namespace: u64, cards: Vec<Kept>) -> io::Result<State> {
        Ok(State { version: VERSION, boot: boot_id()?, host_namespace, cards })
    }

    pub(super) fn save(&self, file: &Path) -> Result<(), TakeoverError> {
        state::save(self, file)
    }

    /// Reads the file; none if there is none or if it was written before the last boot, which sent every card home.
    pub(super) fn read(file: &Path) -> Result<Option<State>, TakeoverError> {
        state::read(file, VERSION, |state: &State| (state.version, &state.boot))
    }
}

/// Where the state of the gateway whose trusted interface is that of `place` lies.
pub(super) fn path(place: &Place, state_dir: &Path) -> PathBuf {
    state_dir.join(format!("{}.gateway.json", place.interface))
}
