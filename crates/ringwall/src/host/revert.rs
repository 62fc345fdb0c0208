//! The dead man's switch of a remote roll-out: `run --revert-after` gives the interface back unless somebody who can still
//! reach the host confirms.
//!
//! The guard is a process of its own, so that it works also when the daemon dies. Deadline and confirmation stand in the
//! state file of the take-over.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bump::Instant;
use system::clock::Clock;
use system::takeover::state;

use super::release::{STOP_TIME_MAX, give_back};
use crate::client;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::output::complain;

/// How often the guard looks whether somebody confirmed.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Sets the deadline and starts the guard.
pub(super) fn arm(file: &Path, config: &Config, now: Instant, time: Duration) -> Result<(), Failure> {
    state::set_revert_at(&config.host.state_dir, &config.host.interface, now + time)?;
    let program = std::env::current_exe().map_err(Failure::new)?;
    Command::new(program)
        .args(["host", "revert-guard", "--config"])
        .arg(file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Not in the daemon's group: Ctrl-C or the end of the terminal, which end the daemon, must not end its guard.
        .process_group(0)
        .spawn()
        .map_err(|error| Failure::new(format!("the guard for --revert-after does not start: {error}")))?;
    tracing::info!(seconds = time.as_secs(), "run `ringwall host confirm` or the interface is given back");
    Ok(())
}

/// Waits for the deadline or for the confirmation, and gives the interface back if it was not given.
pub(super) fn stand_guard(file: &Path) -> Result<(), Failure> {
    let config = Config::load(file)?;
    let mut clock = Clock::new();
    loop {
        let taken = state::load(&config.host.state_dir, &config.host.interface)?;
        let Some(deadline) = taken.and_then(|state| state.revert_at()) else { return Ok(()) };
        if clock.now().since_boot >= deadline {
            break;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    complain(format_args!("{} was not confirmed in time and is given back", config.host.interface));
    client::stop(&config.socket(), &config.host.interface, STOP_TIME_MAX)?;
    give_back(&config)
}
