//! The end of guarding: the daemon stopped, the interface given back.

use std::time::Duration;

use super::rights;
use crate::client;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::output::complain;

/// How long a daemon that was told to stop may take.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// Stops the daemon, if one runs, and gives the interface back, if it is taken; whether it was.
pub(crate) fn release_interface(config: &Config) -> Result<bool, Failure> {
    client::stop(&config.socket(), &config.host.interface, STOP_TIME_MAX)?;
    let is_taken = system::takeover::state::load(&config.host.state_dir, &config.host.interface)?.is_some();
    if is_taken {
        give_back(config)?;
        rights::forget(config)?;
    }
    Ok(is_taken)
}

/// Gives the interface back after its daemon has ended. One that was killed has left its socket
/// behind.
pub(super) fn give_back(config: &Config) -> Result<(), Failure> {
    let report = system::takeover::release(&config.host.interface, &config.host.run_dir, &config.host.state_dir)?;
    for warning in &report.warnings {
        complain(format_args!("{warning}"));
    }
    client::remove_socket(&config.socket())
}
