//! `ringwall host`: one daemon guards one interface.
//!
//! - `plan.rs`: what files decide; `start.rs`: from the configuration to a taken interface, in an order that leaves nothing half done.
//! - `interface.rs`: the taken interface, as the supervisor sees it; `reports.rs`: what it says of its bump.
//! - `outpost.rs`: the cheap checks of the link layer in the kernel.
//! - `refresh.rs`: the host's own key for S-ARP, and its change.
//! - `revocation.rs`: the site's list of revoked certificates, for the link layer.
//! - `tickets.rs`: what associations are resumed with, on disk.
//! - `revert.rs`: the guard that gives the interface back unless somebody confirms.

mod interface;
mod outpost;
mod plan;
mod refresh;
mod reports;
mod revert;
mod revocation;
mod start;
mod tickets;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::client;
use crate::config::duration::parse_time;
use crate::config::{Config, DEFAULT_FILE};
use crate::enroll::EnrollArguments;
use crate::failure::Failure;
use crate::output::{complain, say};

pub(crate) use plan::Duty;
pub(crate) use start::run_daemon;

/// Options that name the configuration.
#[derive(Args, Debug, Clone)]
pub(crate) struct ConfigArgs {
    /// Configuration file.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    pub(crate) config: PathBuf,
}

/// `ringwall host …`
#[derive(Subcommand, Debug)]
pub(crate) enum HostCommand {
    /// Guards the interface until it is told to stop (needs root).
    #[command(
        after_help = "Example, on a host far away:\n  ringwall host run --revert-after 5m\n  ringwall host confirm\n\n\
        Stop it with SIGTERM; with on_exit = \"closed\" the interface stays closed until the next start or `host release`."
    )]
    Run {
        #[command(flatten)]
        config: ConfigArgs,
        /// Gives the interface back after this time unless `ringwall host confirm` is run before, even if the daemon
        /// dies: 30s, 5m, 1h.
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        revert_after: Option<Duration>,
    },
    /// Keeps the interface guarded after `run --revert-after`.
    Confirm {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Stops the daemon, if one runs, and gives the interface back to the stack, in clear (needs root).
    Release {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Makes this host's key, asks the authority for a certificate, and installs the answer: by token, or by file
    ///
    /// By token, which the manager has from 'ringwall site token' (needs root). The interface is up, needs no address, and is not
    /// guarded yet. The right time is not needed:
    ///   ringwall host enroll --token TOKEN --interface eth0
    ///
    /// The program shows a fingerprint and waits until the manager has approved it. Interrupted, it goes on where it was when it is
    /// started again with the same token.
    #[command(verbatim_doc_comment)]
    Enroll(Box<EnrollArguments>),
    /// Waits for the confirmation that `run --revert-after` asks for.
    #[command(hide = true)]
    RevertGuard {
        #[command(flatten)]
        config: ConfigArgs,
    },
}

impl HostCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            HostCommand::Run { config, revert_after } => run_daemon(&config.config, revert_after, Duty::Host),
            HostCommand::Confirm { config } => confirm(&config),
            HostCommand::Release { config } => release(&config),
            HostCommand::Enroll(arguments) => arguments.run(),
            HostCommand::RevertGuard { config } => revert::stand_guard(&config.config),
        }
    }
}

fn confirm(args: &ConfigArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    system::takeover::state::confirm(&config.host.state_dir, &config.host.interface)?;
    say!("{} stays guarded", config.host.interface);
    Ok(())
}

/// How long a daemon that was told to stop may take.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(10);

fn release(args: &ConfigArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    client::stop(&config.socket(), &config.host.interface, STOP_TIME_MAX)?;
    if system::takeover::state::load(&config.host.state_dir, &config.host.interface)?.is_none() {
        say!("{} is not taken over", config.host.interface);
        return Ok(());
    }
    give_back(&config)?;
    say!("{} is given back; its traffic is in clear", config.host.interface);
    Ok(())
}

/// Gives the interface back after its daemon has ended. One that was killed has left its socket behind.
fn give_back(config: &Config) -> Result<(), Failure> {
    let report = system::takeover::release(&config.host.interface, &config.host.run_dir, &config.host.state_dir)?;
    for warning in &report.warnings {
        complain(format_args!("{warning}"));
    }
    client::remove_socket(&config.socket())
}
