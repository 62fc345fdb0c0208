//! `ringwall shield`: layered nonces in front of an IPsec stack that knows nothing of them.
//!
//! The daemon is that of `ringwall host` in mode `shield`.

use std::path::Path;
use std::time::Duration;

use clap::Subcommand;

use super::keys::KeysCommand;
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::host::{ConfigArgs, Duty, run_daemon};
use crate::modes::file::Config;
use crate::modes::name::Mode;

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
