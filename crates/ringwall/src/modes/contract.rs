//! What the rest of the program asks of a mode of a host, whichever it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bump::Now;
use identity::HostIdentity;
use system::takeover::Taken;

use super::file::Config;
use crate::failure::Failure;
use crate::host::start::{Needs, Start};
use crate::monitor::Disk;
use crate::protocol::{Peer, Status};

/// What a plan is made from.
#[derive(Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    pub(crate) file: &'a Path,
    pub(crate) config: &'a Config,
    pub(crate) disk: &'a Disk,
    pub(crate) now: Now,
}

/// What is going to guard an interface: everything that files decide, read before it is touched.
pub(crate) trait Plan {
    /// Who this host is, in a mode that shows it.
    fn identity(&self) -> Option<&Arc<HostIdentity>> {
        None
    }

    /// Makes the bump, and lets it work.
    fn carry_out(self: Box<Self>, start: Start<'_>) -> Result<(), Failure>;
}

/// What a daemon says of whom it knows, for `ringwall join`.
pub(crate) struct Told<'a> {
    pub(crate) status: &'a dyn Fn() -> Result<Option<Box<Status>>, Failure>,
    pub(crate) peers: &'a dyn Fn() -> Result<Vec<Peer>, Failure>,
}

/// A mode of a host.
pub(crate) trait HostMode {
    /// Reads all files that the configuration names.
    fn plan(&self, surroundings: &Surroundings<'_>) -> Result<Box<dyn Plan>, Failure>;

    /// How the interface is taken and opened.
    fn needs(&self, config: &Config) -> Needs;

    /// Files that are read again while the daemon runs, beside those of every mode.
    fn watched_files(&self, _config: &Config) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Says at the start what is not as an operator may expect it.
    fn warn(&self, _config: &Config, _taken: &Taken) {}

    /// The section that a new configuration of this mode has, with this mode of migration.
    fn first_section(&self, _migration: &str) -> Option<String> {
        None
    }

    /// Whether nobody can be reached before somebody has proved himself.
    fn needs_proof(&self, _config: &Config) -> bool {
        false
    }

    /// Who has proved himself to this host, in words.
    fn proved(&self, _told: &Told<'_>) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// What lets a host be reached that has no daemon.
    fn remedy(&self) -> &'static str {
        "put whoever is not guarded on the legacy list, as with --append legacy.toml, or join with --migration observe"
    }
}
