//! Mode `shield`: layered nonces in front of an IPsec stack that knows nothing of them.
//!
//! The kernel joins card and stack, and only what is or may be IPsec comes to the bump
//! `shield::ipsec`.
//!
//! - `config.rs`: its section; `plan.rs`: from its files to the bump at work; `kernel.rs`: its
//!   programs
//!   in the kernel; `guard.rs`: the bump as the data path sees it.
//! - `key_file.rs`: what both ends of a pair share; `watch.rs`: following its changes; `beside.rs`:
//!   that
//!   in the daemon; `reports.rs`: what it says.
//! - `command.rs`, `keys.rs`: `ringwall shield`.

mod beside;
pub(crate) mod command;
pub(crate) mod config;
mod guard;
mod kernel;
mod key_file;
mod keys;
pub(crate) mod parts;
mod plan;
mod reports;
mod watch;

use std::path::PathBuf;

use system::port::PacketOptions;
use system::port::limits::SOCKET_BUFFER_BYTES;
use system::sandbox::Calls;
use system::takeover::Kept;

use super::contract::{HostMode, Plan, Surroundings};
use super::file::Config;
use crate::failure::Failure;
use crate::host::start::Needs;
pub(super) use guard::IpsecShield;
use plan::Shielding;

/// All of IPsec passes a shield, super-frames too, which no slot of a ring holds.
fn for_super_frames(options: PacketOptions) -> PacketOptions {
    PacketOptions { buffer_bytes: SOCKET_BUFFER_BYTES, ring: None, ..options }
}

impl HostMode for IpsecShield {
    fn plan(&self, surroundings: &Surroundings<'_>) -> Result<Box<dyn Plan>, Failure> {
        Shielding::make(surroundings).map(|shielding| Box::new(shielding) as Box<dyn Plan>)
    }

    fn needs(&self, _config: &Config) -> Needs {
        let not_protected = &["everything but the IPsec stack's processor time: what passes is proved by IPsec itself"];
        Needs { kept: Some(Kept::Ipsec), ports: for_super_frames, not_protected, calls: Calls::Frames }
    }

    fn watched_files(&self, config: &Config) -> Vec<PathBuf> {
        let peers = config.shield.iter().flat_map(|section| &section.peers);
        peers.filter_map(|peer| peer.keys.clone()).collect()
    }
}
