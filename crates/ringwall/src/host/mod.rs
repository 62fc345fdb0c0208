//! `ringwall host`: one daemon guards one interface.
//!
//! - `plan.rs`: what files decide; `start.rs`: from the configuration to a taken interface, in an order that leaves nothing half done.
//! - `interface.rs`: the taken interface, as the supervisor sees it; `reports.rs`: what it says of its bump.
//! - `around.rs`: whose address is whose, for the watch.
//! - `outpost.rs`: the cheap checks of the link layer in the kernel.
//! - `leases.rs`: DHCP under the link layer.
//! - `refresh.rs`: the host's own key for S-ARP, and its change.
//! - `revocation.rs`: the site's list of revoked certificates, for the link layer; `policy.rs`: the
//!   site's policy; `rules.rs`: what is in
//!   force of that and of the host's own file; `signed.rs`: all three as one;
//!   `known_hosts.rs`: the policy in mode `sarp`.
//! - `progress.rs`: how far the move to sealed frames is; `known.rs`: who has proved himself, kept in a file.
//! - `expiry.rs`: certificates that end soon.
//! - `renewal.rs`: another certificate for the same key; `renewed.rs`: the daemon takes it.
//! - `tickets.rs`: what associations are resumed with, on disk.
//! - `revert.rs`: the guard that gives the interface back unless somebody confirms.

mod around;
mod expiry;
mod interface;
mod known;
mod known_hosts;
mod leases;
mod outpost;
mod plan;
mod policy;
mod progress;
mod refresh;
mod renewal;
mod renewed;
mod reports;
mod revert;
mod revocation;
mod rules;
mod signed;
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
use crate::monitor::Home;
use crate::output::{complain, say};
use crate::protocol::{Answer, Ask};

pub(crate) use plan::Duty;
use renewal::RenewArguments;
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
    /// Reads the configuration again: mode of migration, exceptions and management machines, without a pause
    ///
    /// A renewed certificate in the identity file comes into force, too. What else has changed in the file needs a restart of the daemon and is named.
    #[command(verbatim_doc_comment)]
    Reload {
        #[command(flatten)]
        config: ConfigArgs,
    },
    /// Forgets that a host has proved itself, so that it may speak in clear again in mode prefer
    ///
    /// Example: ringwall host forget desk-17
    #[command(verbatim_doc_comment)]
    Forget {
        #[command(flatten)]
        config: ConfigArgs,
        /// Its name or hardware address, as `ringwall peers` shows it.
        who: String,
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
    /// Gets another certificate for the key that this host has, before the one it has ends
    ///
    /// Through a command that takes the request on its standard input and writes the bundle to its standard output; that of
    /// host.renew_through, or:
    ///   ringwall host renew --through "ssh renewals@authority"
    ///
    /// Where 'authority' answers each request with: ringwall site renew --request - --out -
    ///
    /// By file:
    ///   ringwall host renew request --out desk-17.csr
    ///   ringwall host renew install --bundle desk-17.bundle
    ///
    /// The daemon takes the certificate without a pause and shows it to its peers; associations live on.
    #[command(verbatim_doc_comment)]
    Renew(Box<RenewArguments>),
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
            HostCommand::Reload { config } => order(&config, &Ask::Reload),
            HostCommand::Forget { config, who } => order(&config, &Ask::Forget { who }),
            HostCommand::Enroll(arguments) => arguments.run(),
            HostCommand::Renew(arguments) => arguments.run(),
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

/// Has the daemon carry out an order.
fn order(args: &ConfigArgs, ask: &Ask) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    match client::ask(&config.socket(), ask)? {
        Answer::Done { lines } => lines.iter().for_each(|line| say!("{line}")),
        _ => return Err(Failure::new("the daemon gave another answer; use the same version of both")),
    }
    Ok(())
}

/// How long a daemon that was told to stop may take.
pub(crate) const STOP_TIME_MAX: Duration = Duration::from_secs(10);

fn release(args: &ConfigArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    if release_interface(&config)? {
        say!("{} is given back; its traffic is in clear", config.host.interface);
    } else {
        say!("{} is not taken over", config.host.interface);
    }
    Ok(())
}

/// Stops the daemon, if one runs, and gives the interface back, if it is taken; whether it was.
pub(crate) fn release_interface(config: &Config) -> Result<bool, Failure> {
    client::stop(&config.socket(), &config.host.interface, STOP_TIME_MAX)?;
    let is_taken = system::takeover::state::load(&config.host.state_dir, &config.host.interface)?.is_some();
    if is_taken {
        give_back(config)?;
    }
    Ok(is_taken)
}

/// Gives the interface back after its daemon has ended. One that was killed has left its socket behind.
fn give_back(config: &Config) -> Result<(), Failure> {
    let report = system::takeover::release(&config.host.interface, &config.host.run_dir, &config.host.state_dir)?;
    for warning in &report.warnings {
        complain(format_args!("{warning}"));
    }
    client::remove_socket(&config.socket())
}

/// Where a host's daemon keeps its own files.
fn home(config: &Config) -> Home {
    Home::new(&config.host.state_dir, &config.host.interface)
}
