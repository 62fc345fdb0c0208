//! From the configuration to a taken interface.
//!
//! Everything that can be wrong with files is found before the interface is touched.

use std::path::Path;
use std::time::Duration;

use system::takeover::{self, Taken, state};

use super::identity::check_interface;
use super::rights;
use super::start::{Start, take};
use crate::config::OnExit;
use crate::daemon::companions::Companions;
use crate::failure::Failure;
use crate::modes::contract::{HostMode, Surroundings};
use crate::modes::file::Config;
use crate::modes::of;
use crate::monitor::{Back, Charge, Disk, Home};

/// What a daemon is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// To guard this host.
    Host,
    /// To guard this host and to distribute the site's keys from it.
    Distributor,
}

fn check_duty(file: &Path, config: &Config, duty: Duty) -> Result<(), Failure> {
    match (duty, &config.akd) {
        (Duty::Host, Some(_)) => {
            let remedy = "start it with `ringwall akd run`, or remove the section";
            Err(Failure::file(file, "[akd] makes this host a key distributor", remedy))
        }
        (Duty::Distributor, None) => {
            let remedy = "add it with `repository = \"/etc/ringwall/site/hosts.db\"`, or with `etcd`";
            Err(Failure::file(file, "section [akd] is missing", remedy))
        }
        _ => Ok(()),
    }
}

/// `ringwall host run` and `ringwall akd run`
pub(crate) fn run_daemon(file: &Path, revert_after: Option<Duration>, duty: Duty) -> Result<(), Failure> {
    system::sandbox::forbid_dumps().map_err(Failure::new)?;
    let mut config = Config::load(file)?;
    rights::check(&config)?;
    // Only who may take an interface over may ask; whoever may not is told so there.
    config.kernel_cuts = system::tap_device::kernel_cuts_datagrams().ok();
    config.is_wireless = takeover::is_wireless(&config.host.interface);
    let mode = of(config.host.mode);
    let mut clock = config.clock();
    let disk = Disk::separate(charge(file, mode, &config))?;
    let companions = Companions::start(&config.records, &config.host.interface)?;
    check_duty(file, &config, duty)?;
    let plan = mode.plan(&Surroundings { file, config: &config, disk: &disk, now: clock.now() })?;
    let was_taken = state::load(&config.host.state_dir, &config.host.interface)?.is_some();
    if let (Some(identity), Some(mac)) = (plan.identity(), takeover::hardware_address(&config.host.interface)?) {
        check_interface(&config, identity, mac)?;
    }
    let needs = mode.needs(&config);
    let taken = take(&config, needs.kept, was_taken)?;
    log_start(mode, &config, &taken);
    let (config, disk) = (&config, &disk);
    plan.carry_out(Start { file, config, disk, clock, needs, companions, taken, was_taken, revert_after })
}

/// What the monitor of this daemon is there for: the files that are read again while it runs, its
/// own, and the way out.
fn charge(file: &Path, mode: &dyn HostMode, config: &Config) -> Charge {
    let host = &config.host;
    let named = [file.to_owned(), host.identity.clone(), config.policy_file()];
    let (interface, run_dir, state_dir) = (host.interface.clone(), host.run_dir.clone(), host.state_dir.clone());
    let back = (host.on_exit == OnExit::Restore).then_some(Back::Host { interface, run_dir, state_dir });
    let readable = named.into_iter().chain(mode.watched_files(config)).collect();
    Charge { readable, home: Some(Home::new(&host.state_dir, &host.interface)), socket: config.socket(), back }
}

fn log_start(mode: &dyn HostMode, config: &Config, taken: &Taken) {
    let interface = config.host.interface.as_str();
    tracing::info!(interface, way = ?taken.way, adopted = taken.adopted, mtu = taken.inner_mtu, "taken over");
    let weakened = config.weakened();
    if !weakened.is_empty() {
        tracing::warn!(interface, ?weakened, "switched off by [lab]: this host is NOT protected");
    }
    for warning in config.warnings().iter().chain(&taken.warnings) {
        tracing::warn!(interface, "{warning}");
    }
    mode.warn(config, taken);
}
