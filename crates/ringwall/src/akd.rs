//! `ringwall akd`: a host that also distributes the site's keys (the AKD of the S-ARP paper), and where it looks them up.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use authority::repository::{HostEntry, SqliteStore, Standing, Store, StoreError};
use clap::Subcommand;
use identity::certificate::Role;
use sarp::akd::{Binding, Grant, HostLookup, Lookup, Member, RecordKey, Records};
use system::clock::Clock;
use wire::sarp::data::Refusal;

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

const UNREADABLE: &str = "the repository cannot be read, so hosts have to ask another distributor";

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
        entry.standing == Standing::Good && self.unix_s().is_none_or(|unix_s| unix_s <= entry.not_after_unix)
    }

    /// The time, if the clock is believable.
    fn unix_s(&self) -> Option<u64> {
        let now = self.clock.lock().unwrap_or_else(PoisonError::into_inner).now();
        now.trusted_unix_ms().map(|unix_ms| unix_ms / 1000)
    }

    fn not_bound(&self, error: &StoreError) -> Binding {
        match error.reason() {
            StoreError::NotGood(_) => Binding::Refused(Refusal::NotGood),
            StoreError::OutsideSubnets { .. } | StoreError::BadNames(_) => Binding::Refused(Refusal::OutsideSubnets),
            StoreError::AddressTaken { .. } => Binding::Refused(Refusal::Taken),
            error => {
                self.complain("a lease cannot be entered", error);
                Binding::Failed
            }
        }
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
                self.complain(UNREADABLE, &error);
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

    fn host(&self, number: u64) -> HostLookup {
        match self.store.by_number(number) {
            Ok(Some(entry)) if self.is_good(&entry) => {
                let HostEntry { algorithm, key, mac, role, .. } = entry;
                HostLookup::Good(Member { algorithm, key, mac, serves_dhcp: role == Role::DhcpServer })
            }
            Ok(_) => HostLookup::NotGood,
            Err(error) => {
                self.complain(UNREADABLE, &error);
                HostLookup::Failed
            }
        }
    }

    fn lease(&self, grant: &Grant) -> Binding {
        let Grant { host, ip, time, only_if_held } = *grant;
        let Some(now_unix_s) = self.unix_s() else { return Binding::Failed };
        let until_unix_s = time.map_or(u64::MAX, |time| now_unix_s.saturating_add(time.as_secs()));
        let lease = || {
            let entry = self.store.by_number(host)?;
            if only_if_held && !entry.is_some_and(|entry| entry.addresses.contains(&ip)) {
                return Ok(Binding::Refused(Refusal::NotHeld));
            }
            self.store.lease(host, ip, until_unix_s, now_unix_s).map(|()| Binding::Done)
        };
        lease().unwrap_or_else(|error: StoreError| self.not_bound(&error))
    }

    /// Only what was given is taken back, never what a certificate names.
    fn unbind(&self, host: u64, ip: Ipv4Addr) -> Binding {
        let unbind = || match self.store.by_number(host)? {
            Some(entry) if entry.subnets.iter().any(|subnet| subnet.contains(ip)) => self.store.unbind(host, ip),
            _ => Ok(false),
        };
        match unbind() {
            Ok(true) => Binding::Done,
            Ok(false) => Binding::Refused(Refusal::NotHeld),
            Err(error) => self.not_bound(&error),
        }
    }
}
