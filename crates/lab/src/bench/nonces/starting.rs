//! Daemons with their layers, where a run wants them.

use identity::Profile;
use shield::{Hook, Layers};

use super::placement::Receive;
use crate::bench::work::Work;
use crate::failure::Failure;
use crate::guard::{Daemon, Site};
use crate::net::{Host, Lan};

/// Starts the daemon of `host` and waits until it guards the interface.
///
/// # Errors
/// It does not, or not with these layers.
pub fn start(site: &Site, lan: &Lan, host: &Host, layers: Layers) -> Result<Daemon, Failure> {
    start_as(site, lan, host, (Work::Encrypt, layers))
}

/// As [`start`], for what the daemon does to frames.
///
/// # Errors
/// As [`start`].
pub fn start_as(site: &Site, lan: &Lan, host: &Host, how: (Work, Layers)) -> Result<Daemon, Failure> {
    start_at(site, lan, host, how, (Hook::Socket, Receive::default()))
}

/// As [`start_as`], with the kernel's program at `hook`, and before the others where it is to come
/// first.
///
/// # Errors
/// As [`start`].
pub fn start_at(
    site: &Site,
    lan: &Lan,
    host: &Host,
    (work, layers): (Work, Layers),
    (hook, receive): (Hook, Receive),
) -> Result<Daemon, Failure> {
    let profile = if site.is_paper() { Profile::Paper } else { Profile::Modern };
    let mut daemon = site.launch(lan, host, |identity, directory| {
        let lines = work.configuration(profile, identity, directory);
        let lines = lines.replacen("[host]\n", &format!("[host]\n{}", receive.of_host()), 1);
        format!("{lines}layers = \"{}\"\nkernel_hook = \"{}\"\n", layers.word(), hook.word())
    })?;
    daemon.await_ready()?;
    let said = daemon.status()?;
    let at = (layers == Layers::Kernel).then_some(hook.word());
    match said["layers"]["in_force"].as_str() {
        Some(in_force) if in_force == layers.word() && said["layers"]["hook"].as_str() == at => Ok(daemon),
        _ => Err(Failure::Unreadable(format!("layers of {}: {}", host.name, said["layers"]))),
    }
}
