//! `ringwall shield`: layered nonces in front of an IPsec stack that knows nothing of them.
//!
//! The daemon is that of `ringwall host` in mode `shield`: the kernel joins card and stack, and only what is or may be IPsec comes to
//! the bump `shield::ipsec`.
//!
//! - `key_file.rs`: what both ends of a pair share; `command.rs`: making and changing it; `watch.rs`: following its changes.
//! - `guard.rs`: the bump as the data path sees it; `reports.rs`: what it says.

mod command;
mod guard;
mod key_file;
pub(crate) mod reports;
mod watch;

use std::path::Path;
use std::time::Duration;

use clap::Subcommand;
use shield::ipsec::{PeerSettings, Settings};

use crate::config::duration::parse_time;
use crate::config::{Config, Mode};
use crate::failure::Failure;
use crate::host::{ConfigArgs, Duty, run_daemon};
use crate::monitor::Disk;
use command::KeysCommand;
pub(crate) use watch::KeyWatch;

/// `ringwall shield …`
#[derive(Subcommand, Debug)]
pub(crate) enum ShieldCommand {
    /// Guards the IPsec stack behind the interface like `host run` (needs root).
    #[command(after_help = "The configuration needs mode = \"shield\" and a section [shield] with its peers:\n\n  \
        [host]\n  interface = \"eth0\"\n  mode = \"shield\"\n  [shield]\n  [[shield.peers]]\n  address = \"192.0.2.7\"\n  \
        keys = \"/etc/ringwall/pair.keys\"\n\n`host release`, `host confirm` and `status` work as for any host.")]
    Run {
        #[command(flatten)]
        config: ConfigArgs,
        /// As with `host run`.
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        revert_after: Option<Duration>,
    },
    /// Makes and changes the files that both ends of a pair share.
    #[command(subcommand)]
    Keys(KeysCommand),
}

impl ShieldCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            ShieldCommand::Run { config, revert_after } => {
                check_mode(&config.config)?;
                run_daemon(&config.config, revert_after, Duty::Host)
            }
            ShieldCommand::Keys(command) => command.run(),
        }
    }
}

fn check_mode(file: &Path) -> Result<(), Failure> {
    match Config::load(file)?.host.mode {
        Mode::Shield => Ok(()),
        other => {
            let what = format!("host.mode is \"{}\", not \"shield\"", other.word());
            Err(Failure::file(file, what, "set it, or start with `ringwall host run`"))
        }
    }
}

/// Everything that the bump needs, with the keys out of their files.
pub(crate) fn settings(config: &Config, disk: &Disk) -> Result<Settings, Failure> {
    let Some(section) = &config.shield else { return Err(Failure::new("the section [shield] is missing")) };
    Ok(Settings { peers: peers(config, disk)?, ..section.settings() })
}

/// The peers with their keys.
fn peers(config: &Config, disk: &Disk) -> Result<Vec<PeerSettings>, Failure> {
    let listed = config.shield.iter().flat_map(|section| &section.peers);
    let read = |peer: &crate::config::ShieldPeer| {
        let keys = peer.keys.as_deref().map(|file| key_file::load(disk, file)).transpose()?;
        Ok(PeerSettings { address: peer.address, keys })
    };
    listed.map(read).collect()
}
