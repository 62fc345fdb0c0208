//! `ringwall akd`: a host that also distributes the site's keys (the AKD of the S-ARP paper).

use std::time::Duration;

use clap::Subcommand;

use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::host::{ConfigArgs, Duty, run_daemon};

/// `ringwall akd …`
#[derive(Subcommand, Debug)]
pub(crate) enum AkdCommand {
    /// Guards the interface like `host run` and answers the site's hosts from the repository (needs root).
    #[command(
        after_help = "The configuration needs mode = \"sarp\" and a section [akd]; the identity, the role akd:\n  \
        ringwall site issue --role akd --name k --mac 02:00:00:00:00:09 --ip 10.0.0.9 --out identity.pem\n\n\
        `host release` and `status` work as for any host."
    )]
    Run {
        #[command(flatten)]
        config: ConfigArgs,
        /// As with `host run`.
        #[arg(long, value_name = "TIME", value_parser = parse_time)]
        revert_after: Option<Duration>,
    },
}

impl AkdCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let AkdCommand::Run { config, revert_after } = self;
        run_daemon(&config.config, revert_after, Duty::Distributor)
    }
}
