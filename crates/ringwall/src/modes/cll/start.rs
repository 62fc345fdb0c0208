//! From the files of mode `cll` to the bump at work.

use std::sync::Arc;

use cll::{Remembered, Settings};
use identity::HostIdentity;
use shield::kernel::{HintKeys, Own};
use system::random::KernelSource;
use wire::cll::data::OVERHEAD_MAX;
use wire::cll::handshake::CERTIFICATE_LEN_MAX_V6;

use super::beside::Keeping;
use super::config::Trains;
use super::kernel::{self, Outpost};
use super::leases;
use super::progress::Progress;
use super::signed::Signed;
use super::tickets::TicketFiles;
use crate::daemon::{Crew, Load, serve};
use crate::failure::Failure;
use crate::host::expiry::Expiry;
use crate::host::identity::load_identity;
use crate::host::start::{Checks, Ground, Opened, Ready, Start, overhead};
use crate::modes::contract::{Plan, Surroundings};
use crate::modes::file::Config;
use crate::modes::kept_leases::LeaseFile;
use crate::monitor::Disk;
use crate::randomness::generator;

/// All that the link layer needs beside the configuration.
pub(super) struct Sealing {
    identity: Arc<HostIdentity>,
    signed: Signed,
    progress: Progress,
    expiry: Expiry,
}

impl Sealing {
    pub(super) fn make(surroundings: &Surroundings<'_>) -> Result<Sealing, Failure> {
        let Surroundings { file, config, disk, now } = *surroundings;
        let identity = load_identity(config, now, disk)?;
        // What is wrong with it must show before the interface is touched; the wire is not known
        // yet.
        leases::settings(config, &identity, config.cll.ipv6, 0)?;
        let signed = Signed::open(config, &identity, now, disk)?;
        let progress = Progress::open(file, signed.rules().policy.clone(), disk)?;
        let expiry = Expiry::new(&config.host, &identity);
        Ok(Sealing { identity, signed, progress, expiry })
    }
}

impl Plan for Sealing {
    fn identity(&self) -> Option<&Arc<HostIdentity>> {
        Some(&self.identity)
    }

    fn carry_out(self: Box<Self>, start: Start<'_>) -> Result<(), Failure> {
        let Sealing { identity, signed, progress, expiry } = *self;
        let (config, disk) = (start.config, start.disk);
        let (tickets, remembered) = kept_tickets(config, &identity, disk).unzip();
        let (lease_file, leases) = LeaseFile::open(config, identity.certificate(), disk).unzip();
        let keeping = Keeping { progress, expiry, signed, tickets, lease_file, legacy: Vec::new() };
        let ready = start.prepare(Some(&identity), keeping, |ground| checks(config, &identity, ground))?;
        let load = ready.load(Load::new(config.trains() == Trains::Always));
        let Ready { ports, maps, mut clock, supervisor, .. } = ready;
        let (ward, mut ports) = (supervisor.ward(), ports.tap()?);
        let Keeping { progress, signed, .. } = &ward.beside;
        let settings = settings(config, identity, ward.held.wire_mtu(), signed, progress)?;
        let mut cll = cll::start(clock.now(), settings, generator()?, &mut ports.sinks());
        // There is one lane, and no key yet.
        if let (Some(lane), Some(mut outpost)) = (cll.lanes.first_mut(), maps) {
            progress.proved().iter().for_each(|host| outpost.acquaint(host.mac));
            lane.set_outpost(Box::new(outpost));
        }
        if let Some(remembered) = remembered {
            cll::remember(&mut cll, clock.now(), remembered, &mut ports.sinks());
        }
        if let Some(list) = signed.revocations().list() {
            cll::revoke(&mut cll, clock.now(), Arc::clone(list), &mut ports.sinks());
        }
        if let Some(policy) = signed.policy() {
            cll::begin_with_policy(&mut cll, clock.now(), Arc::clone(policy), &mut ports.sinks());
        }
        // The newest one is the last.
        if let Some(lease) = leases.unwrap_or_default().pop() {
            cll::remember_lease(&mut cll, clock.now(), leases::of_file(lease), &mut ports.sinks());
        }
        let crew = Crew { here: KernelSource, beside: vec![KernelSource] };
        serve(cll, crew, load, ports, clock, supervisor)
    }
}

/// What earlier runs have kept to resume associations with. A host that cannot keep any makes
/// handshakes instead.
fn kept_tickets(config: &Config, identity: &HostIdentity, disk: &Disk) -> Option<(TicketFiles, Remembered)> {
    TicketFiles::open(config, identity, disk).unwrap_or_else(|failure| {
        tracing::warn!(interface = config.host.interface, "{failure}");
        None
    })
}

/// The program in front of the wire's port or card. It has frames to check where all come to this
/// program.
fn checks(config: &Config, identity: &HostIdentity, ground: &Ground<'_>) -> Checks<Outpost> {
    let Opened::Tap(ports) = ground.ports else { return None };
    let (mac, ethertype) = (identity.certificate().mac(), config.cll.ethertype.ethertype());
    let (hint_keys, rates) = (hint_keys(config, identity), config.cll.kernel_rates());
    let own = Own { mac, ethertype, strangers_pass: false, joined_unmarked: false, hint_keys, rates };
    let front = ground.front(config.cll.kernel_hook, &ports.wire);
    Some(kernel::open(config.cll.layers(config.lab.as_ref()), own, &front))
}

/// By what the kernel tells tags of the site until the data path says it again.
fn hint_keys(config: &Config, identity: &HostIdentity) -> HintKeys {
    let unix_s = config.clock().now().trusted_unix_ms().unwrap_or(0) / 1000;
    let unix_s = unix_s.max(identity.certificate().not_before_unix());
    identity.site_keys().accepted(unix_s).map(|(_, key)| key.hint_key()).collect()
}

/// What the link layer goes by on a wire with this MTU.
fn settings(
    config: &Config,
    identity: Arc<HostIdentity>,
    wire_mtu: u16,
    signed: &Signed,
    progress: &Progress,
) -> Result<Settings, Failure> {
    let ipv6 = config.cll.ipv6 && fits_ipv6(&identity);
    let dhcp = leases::settings(config, &identity, ipv6, wire_mtu)?;
    let kept_free = u16::try_from(overhead(config).saturating_sub(OVERHEAD_MAX)).unwrap_or(0);
    let of_file = config.cll.settings(config.host.profile, config.lab.as_ref(), identity, wire_mtu)?;
    let (policy, legacy) = (signed.rules().policy.clone(), signed.rules().legacy.clone());
    let (proved, heard) = (progress.proved().to_vec(), progress.heard());
    Ok(Settings { pass: config.passing(), dhcp, ipv6, kept_free, policy, legacy, proved, heard, ..of_file })
}

/// Whether handshakes about IPv6 addresses have room for this host's certificate.
fn fits_ipv6(identity: &HostIdentity) -> bool {
    let (len, most) = (identity.certificate().der().len(), CERTIFICATE_LEN_MAX_V6);
    if len > most {
        tracing::warn!(
            "IPv6 is off: the certificate has {len} bytes, {most} fit; issue one with fewer names or a smaller key"
        );
    }
    len <= most
}
