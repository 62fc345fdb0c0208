//! Mode `cll`: the cryptographic link layer.
//!
//! - `config.rs`: its section; `start.rs`: from its files to the bump at work; `kernel.rs`: its
//!   program
//!   in the kernel; `guard.rs`: the bump as the data path sees it.
//! - `beside.rs`: what its daemon keeps beside frames; `reports.rs`: what it says of that.
//! - `revocation.rs`: the site's list of revoked certificates; `rules.rs`: what is in force of the
//!   site's
//!   policy and of the host's own file; `signed.rs`: both as one.
//! - `progress.rs`: how far the move to sealed frames is; `known.rs`: who has proved himself, kept
//!   in a file.
//! - `subject.rs`: whom an event is about.
//! - `leases.rs`: DHCP under the link layer; `tickets.rs`: what associations are resumed with, on
//!   disk.

mod beside;
pub(crate) mod config;
mod guard;
pub(super) mod kernel;
mod known;
mod leases;
pub(crate) mod parts;
pub(crate) mod peers;
mod progress;
mod reports;
mod revocation;
mod rules;
mod signed;
mod start;
mod subject;
mod tickets;

use std::path::PathBuf;

use system::sandbox::Calls;
use system::takeover::Taken;

use super::contract::{HostMode, Plan, Surroundings, Told};
use super::file::Config;
use crate::failure::Failure;
use crate::host::start::Needs;
use config::MigrationName;
pub(super) use guard::LinkLayer;
use start::Sealing;

/// The smallest MTU on which a kernel speaks IPv6 (RFC 8200, section 5).
const IPV6_MTU_MIN: u32 = 1280;

impl HostMode for LinkLayer {
    fn plan(&self, surroundings: &Surroundings<'_>) -> Result<Box<dyn Plan>, Failure> {
        Sealing::make(surroundings).map(|sealing| Box::new(sealing) as Box<dyn Plan>)
    }

    fn needs(&self, _config: &Config) -> Needs {
        Needs { kept: None, ports: |options| options, not_protected: &[], calls: Calls::Frames }
    }

    fn watched_files(&self, config: &Config) -> Vec<PathBuf> {
        config.cll.revocation_list.iter().cloned().collect()
    }

    fn warn(&self, config: &Config, taken: &Taken) {
        if config.cll.ipv6 && taken.inner_mtu < IPV6_MTU_MIN {
            let interface = config.host.interface.as_str();
            let remedy = "raise the MTU of the card, or set ipv6 = false in [cll]";
            tracing::warn!(
                interface,
                mtu = taken.inner_mtu,
                "IPv6 needs an MTU of {IPV6_MTU_MIN}: the kernel uses none here; {remedy}"
            );
        }
    }

    fn first_section(&self, migration: &str) -> Option<String> {
        Some(format!("[cll]\nmigration = \"{migration}\"\n"))
    }

    fn needs_proof(&self, config: &Config) -> bool {
        config.cll.migration == MigrationName::Enforce
    }

    fn proved(&self, told: &Told<'_>) -> Result<Option<String>, Failure> {
        let peers = (told.peers)()?;
        let sealed = peers.iter().find(|peer| peer.state == "established");
        Ok(sealed.map(|peer| format!("{} seals with this host", peer.name)))
    }
}
