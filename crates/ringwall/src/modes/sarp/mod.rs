//! Mode `sarp`: signed ARP; everything else passes as it is.
//!
//! - `config.rs`: its sections; `plan.rs`: what its files decide; `start.rs`: from there to the
//!   bump at
//!   work; `kernel.rs`: its program in the kernel; `guard.rs`: the bump as the data path sees it.
//! - `beside.rs`: what its daemon keeps beside frames; `reports.rs`: what it says of that.
//! - `refresh.rs`: the host's own key, and its change; `known_hosts.rs`: whom it believes without a
//!   signature.
//! - `repository.rs`: where a distributor looks the site's keys up.

mod beside;
pub(crate) mod config;
mod guard;
mod kernel;
mod known_hosts;
pub(crate) mod parts;
mod plan;
mod refresh;
mod reports;
mod repository;
mod start;

use system::port::limits::SOCKET_BUFFER_BYTES;
use system::port::{PacketOptions, RingSlots};
use system::sandbox::Calls;

use super::contract::{HostMode, Plan, Surroundings, Told};
use super::file::Config;
use crate::failure::Failure;
use crate::host::start::Needs;
use config::Keeper;
pub(super) use guard::SignedArp;
use plan::Signing;
use start::kept;

/// A distributor is asked by everybody.
fn for_everybody(options: PacketOptions) -> PacketOptions {
    PacketOptions { buffer_bytes: SOCKET_BUFFER_BYTES, ring: Some(RingSlots::Many), ..options }
}

impl HostMode for SignedArp {
    fn plan(&self, surroundings: &Surroundings<'_>) -> Result<Box<dyn Plan>, Failure> {
        Signing::make(surroundings).map(|signing| Box::new(signing) as Box<dyn Plan>)
    }

    /// A distributor also works with its repository.
    fn needs(&self, config: &Config) -> Needs {
        let calls = match config.akd.as_ref().map(|section| section.keeper()) {
            None => Calls::Frames,
            Some(Keeper::File(_)) => Calls::Database,
            Some(Keeper::Cluster(_)) => Calls::Connections,
        };
        let not_protected = &["everything but ARP (and DHCP where [dhcp] guards it), so IPv6 neighbour discovery, too"];
        let ports = if config.akd.is_some() { for_everybody } else { |options| options };
        Needs { kept: Some(kept(config)), ports, not_protected, calls }
    }

    fn needs_proof(&self, _config: &Config) -> bool {
        true
    }

    fn proved(&self, told: &Told<'_>) -> Result<Option<String>, Failure> {
        let sarp = (told.status)()?.and_then(|status| status.parts.sarp);
        let Some(sarp) = sarp.filter(|sarp| sarp.clock_unix_s.is_some()) else { return Ok(None) };
        let first = sarp.asked_first.as_deref().unwrap_or("of the site");
        Ok(Some(format!("key distributor {first} has answered")))
    }

    fn remedy(&self) -> &'static str {
        "put whoever is not guarded into [[sarp.known_hosts]], as with --append known.toml of `site import`"
    }
}
