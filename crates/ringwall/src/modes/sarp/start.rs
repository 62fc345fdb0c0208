//! From the files of mode `sarp` to the bump at work.

use std::num::NonZero;
use std::sync::Arc;

use identity::HostIdentity;
use identity::token::NumberKey;
use shield::sarp::Keeps;
use system::takeover::Kept;

use super::guard::Signer;
use super::kernel::{self, SarpMaps};
use super::plan::Signing;
use crate::daemon::{Crew, Load, serve};
use crate::failure::Failure;
use crate::host::kernel::Standing;
use crate::host::start::{Ground, Opened, Ready, Start};
use crate::modes::contract::Plan;
use crate::modes::file::Config;
use crate::modes::kept_leases::LeaseFile;
use crate::randomness::generator;

/// Threads that sign for a distributor, at most. One data path feeds no more than these.
const SIGNING_THREADS_MAX: usize = 4;

impl Plan for Signing {
    fn identity(&self) -> Option<&Arc<HostIdentity>> {
        Some(&self.identity)
    }

    fn carry_out(self: Box<Self>, start: Start<'_>) -> Result<(), Failure> {
        let Signing { identity, settings, akd, records, mut keeping } = *self;
        let config = start.config;
        let (lease_file, leases) = LeaseFile::open(config, identity.certificate(), start.disk).unzip();
        keeping.lease_file = lease_file;
        let workers = if config.akd.is_some() { signing_threads() } else { 1 };
        let ready = start.prepare(Some(&identity), keeping, |ground| Some(checks(config, &identity, ground)))?;
        let load = ready.load(Load::of_kept());
        let Ready { ports, maps, mut clock, supervisor, .. } = ready;
        let mut host = sarp::Host::new(Arc::new(settings), akd, generator()?);
        if let Some(maps) = maps {
            host.set_outpost(Box::new(maps));
        }
        let leases: Vec<_> = leases.into_iter().flatten().map(|lease| (lease.address, lease.until)).collect();
        host.resume_leases(clock.now().since_boot, &leases);
        let signer = Signer(records);
        let crew = Crew { beside: vec![signer.clone(); workers], here: signer };
        match ports {
            Opened::Tap(ports) => serve(host, crew, load, ports, clock, supervisor),
            Opened::Pair(ports) => serve(host, crew, load, ports, clock, supervisor),
        }
    }
}

/// What the kernel leaves to this program where it can join card and stack.
pub(super) fn kept(config: &Config) -> Kept {
    if config.dhcp.is_on() { Kept::ArpAndDhcp } else { Kept::Arp }
}

/// The program in front of the wire's port or card.
fn checks(config: &Config, identity: &HostIdentity, ground: &Ground<'_>) -> (Option<SarpMaps>, Standing) {
    let front = ground.front(config.sarp.kernel_hook, ground.ports.wire());
    let own = own_for_kernel(config, identity);
    kernel::open(config.sarp.is_in_kernel(config.lab.as_ref()), &own, &front)
}

/// What the kernel must know of a host that signs ARP.
fn own_for_kernel(config: &Config, identity: &HostIdentity) -> shield::sarp::Own {
    shield::sarp::Own {
        numbers: numbers(config, identity),
        keeps: if config.dhcp.is_on() { Keeps::ArpAndDhcp } else { Keeps::Arp },
        answers_per_source_per_second: sarp::limits::ANSWERS_PER_SOURCE_PER_SECOND,
        strangers_answered_per_second: sarp::limits::STRANGERS_ANSWERED_PER_SECOND,
        checks_per_token_per_second: sarp::limits::ENROLMENT_CHECKS_PER_TOKEN_PER_SECOND,
    }
}

/// By what the kernel tells the number of a token, if this host is a distributor. Which master is
/// over it hears from the data path.
fn numbers(config: &Config, identity: &HostIdentity) -> Vec<shield::sarp::Key> {
    let masters = identity.request_masters().filter(|_| config.akd.is_some());
    let masters = masters.into_iter().flat_map(|masters| masters.iter());
    masters.map(|(_, master)| NumberKey::of(master).bytes().clone()).collect()
}

/// Threads on which a distributor signs: one for each processor, as far as it can feed them.
fn signing_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).min(SIGNING_THREADS_MAX)
}
