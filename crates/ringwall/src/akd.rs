//! `ringwall akd`: a host that also distributes the site's keys (the AKD of the S-ARP paper), and where it looks them up.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use authority::repository::{HostEntry, SqliteStore, Standing, Store};
use clap::Subcommand;
use sarp::akd::{Lookup, RecordKey, Records};
use system::clock::Clock;

use crate::failure::Failure;
use crate::host::{ConfigArgs, Duty, parse_time, run_daemon};

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

/// The site's repository as a distributor asks it.
pub(crate) struct Repository {
    file: PathBuf,
    store: SqliteStore,
    clock: Mutex<Clock>,
}

impl Repository {
    pub(crate) fn open(file: &Path, clock: Clock) -> Result<Repository, Failure> {
        let store = SqliteStore::open(file).map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
        Ok(Repository { file: file.to_owned(), store, clock: Mutex::new(clock) })
    }

    /// Whether the host belongs to the site now. Without a believable clock nobody can say that its time is over.
    fn is_good(&self, entry: &HostEntry) -> bool {
        let now = self.clock.lock().unwrap_or_else(PoisonError::into_inner).now();
        let is_over = now.trusted_unix_ms().is_some_and(|unix_ms| unix_ms / 1000 > entry.not_after_unix);
        entry.standing == Standing::Good && !is_over
    }

    fn complain(&self, what: &str, error: &dyn std::fmt::Display) {
        let file = self.file.display();
        tracing::error!(%file, "{what}: {error}");
    }
}

impl Records for Repository {
    fn find(&self, ip: Ipv4Addr) -> Lookup {
        match self.store.find(ip) {
            Ok(Some(entry)) if self.is_good(&entry) => {
                let HostEntry { algorithm, key, mac, .. } = entry;
                Lookup::Good { algorithm, key, mac }
            }
            Ok(Some(_)) => Lookup::Invalid,
            Ok(None) => Lookup::NotFound,
            Err(error) => {
                self.complain("the repository cannot be read, so hosts have to ask another distributor", &error);
                Lookup::Failed
            }
        }
    }

    fn is_at_hand(&self) -> bool {
        true
    }

    fn replace(&self, ip: Ipv4Addr, old: &[u8], new: RecordKey<'_>) -> bool {
        self.store.replace_key(ip, old, new.algorithm, new.key).unwrap_or_else(|error| {
            self.complain("a host's new key cannot be entered", &error);
            false
        })
    }
}
