//! `ringwall host`: one daemon guards one interface.
//!
//! - `run.rs`: from the configuration to a taken interface, in an order that leaves nothing half
//!   done;
//!   `start.rs`: from there to the first frame; `release.rs`: the end.
//! - `interface.rs`: the taken interface, as the supervisor sees it; `reports.rs`: what it says of
//!   itself.
//! - `kernel.rs`: where a mode's program stands in the kernel.
//! - `identity.rs`: who this host is; `renewal.rs`: another certificate for the same key;
//!   `renewed.rs`: the daemon takes it; `expiry.rs`: certificates that end soon.
//! - `policy.rs`: the site's policy, as it was signed.
//! - `made.rs`: shuts a VLAN, a bond or a bridge as soon as it is made.
//! - `rights.rs`: what the unit lets a daemon do, and what its take-over needs.
//! - `revert.rs`: the guard that gives the interface back unless somebody confirms.
//!
//! What only one mode has is in its folder in `modes`.

mod args;
pub(crate) mod expiry;
pub(crate) mod identity;
pub(crate) mod interface;
pub(crate) mod kernel;
mod made;
pub(crate) mod policy;
mod release;
mod renewal;
pub(crate) mod renewed;
pub(crate) mod reports;
mod revert;
pub(crate) mod rights;
mod run;
pub(crate) mod start;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Subcommand;

use crate::client;
use crate::config::DIRECTORY;
use crate::config::duration::parse_time;
use crate::enroll::EnrollArguments;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::output::say;
use crate::protocol::{Answer, Ask};

pub(crate) use args::ConfigArgs;
pub(crate) use release::{STOP_TIME_MAX, release_interface};
use renewal::RenewArguments;
pub(crate) use run::{Duty, run_daemon};

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
    /// Shuts a VLAN, a bond or a bridge of this name as soon as it is made; `ringwall-made@` runs it.
    #[command(hide = true)]
    CloseWhenMade {
        /// Its name.
        interface: String,
        /// What closes an interface: called with `close` and its name.
        #[arg(value_name = "PROGRAM")]
        closing: PathBuf,
    },
    /// Loosens the units of hosts that need a namespace; a generator of systemd runs it.
    #[command(hide = true)]
    UnitRights {
        /// Where units of this boot are.
        directory: PathBuf,
        /// What loosens one.
        drop_in: PathBuf,
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
            HostCommand::CloseWhenMade { interface, closing } => made::close_when_made(&interface, &closing),
            HostCommand::UnitRights { directory, drop_in } => {
                rights::generate(Path::new(DIRECTORY), &directory, &drop_in)
            }
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

fn release(args: &ConfigArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config)?;
    if release_interface(&config)? {
        say!("{} is given back; its traffic is in clear", config.host.interface);
    } else {
        say!("{} is not taken over", config.host.interface);
    }
    Ok(())
}
