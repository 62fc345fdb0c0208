//! `ringwall akd`: a host that also distributes the site's keys (the AKD of the S-ARP paper), and where it looks them up.

use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use authority::repository::etcd::Access;
use authority::repository::{EtcdStore, HostEntry, SqliteStore, Standing, Store, StoreError};
use bump::ClockTrust;
use clap::Subcommand;
use sarp::akd::{Lookup, RecordKey, Records};
use system::clock::Clock;

use crate::config::{Akd, Keeper};
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

/// How long a cluster that could not be reached is left alone. Whoever asks meanwhile is not kept waiting behind one
/// attempt after the other, and asks another distributor.
const PAUSE: Duration = Duration::from_secs(1);

/// The site's repository as a distributor asks it.
pub(crate) struct Repository {
    store: Box<dyn Store>,
    /// When the last attempt to reach the cluster came to nothing.
    failed_at: Mutex<Option<Instant>>,
}

impl Repository {
    pub(crate) fn open(section: &Akd, site: &str) -> Result<Repository, Failure> {
        let store: Box<dyn Store> = match section.keeper() {
            Keeper::File(file) => Box::new(SqliteStore::open(file).map_err(Failure::new)?),
            Keeper::Cluster(access) => Box::new(reach(&access, site)?),
        };
        Ok(Repository { store, failed_at: Mutex::new(None) })
    }

    fn failed_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the repository, unless it just could not be reached.
    fn ask<T>(&self, what: &str, question: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Option<T> {
        if self.failed_at().is_some_and(|failed_at| failed_at.elapsed() < PAUSE) {
            return None;
        }
        let outcome = question(&*self.store);
        let is_away = matches!(&outcome, Err(error) if matches!(error.reason(), StoreError::Unreachable(_)));
        *self.failed_at() = is_away.then(Instant::now);
        outcome.inspect_err(|error| tracing::error!("{what}: {error}")).ok()
    }
}

/// A cluster that cannot be reached yet may be later; one that holds no repository of this site is the wrong one.
fn reach(access: &Access, site: &str) -> Result<EtcdStore, Failure> {
    let store = EtcdStore::new(access, site).map_err(Failure::new)?;
    match store.probe() {
        Err(error) if matches!(error.reason(), StoreError::Unreachable(_)) => {
            tracing::warn!("hosts get no answer until the repository is there: {error}");
            Ok(store)
        }
        outcome => outcome.map(|()| store).map_err(Failure::new),
    }
}

impl Records for Repository {
    fn find(&self, ip: Ipv4Addr) -> Lookup {
        let what = "the repository cannot be read, so hosts have to ask another distributor";
        match self.ask(what, |store| store.find(ip)) {
            Some(Some(entry)) if is_good(&entry) => {
                let HostEntry { algorithm, key, mac, .. } = entry;
                Lookup::Good { algorithm, key, mac }
            }
            Some(Some(_)) => Lookup::Invalid,
            Some(None) => Lookup::NotFound,
            None => Lookup::Failed,
        }
    }

    fn replace(&self, ip: Ipv4Addr, old: &[u8], new: RecordKey<'_>) -> bool {
        let replace = |store: &dyn Store| store.replace_key(ip, old, new.algorithm, new.key);
        self.ask("a host's new key cannot be entered", replace).unwrap_or(false)
    }
}

/// Whether the host belongs to the site now. Without a believable clock nobody can say that its time is over.
fn is_good(entry: &HostEntry) -> bool {
    let wall = Clock::new().now().wall.filter(|wall| wall.trust != ClockTrust::Wrong);
    entry.standing == Standing::Good && wall.is_none_or(|wall| wall.unix_ms / 1000 <= entry.not_after_unix)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use authority::directory::Sharing;
    use authority::repository::NewHost;

    use super::*;

    /// A repository that is never there and counts how often it is asked.
    struct Away(Arc<AtomicU32>, StoreError);

    impl Away {
        fn answer<T>(&self) -> Result<T, StoreError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(self.1.clone())
        }
    }

    impl Store for Away {
        fn add(&self, _: &NewHost, _: Sharing, _: u64) -> Result<u64, StoreError> {
            self.answer()
        }
        fn find(&self, _: Ipv4Addr) -> Result<Option<HostEntry>, StoreError> {
            self.answer()
        }
        fn by_name(&self, _: &str) -> Result<Option<HostEntry>, StoreError> {
            self.answer()
        }
        fn list(&self) -> Result<Vec<HostEntry>, StoreError> {
            self.answer()
        }
        fn replace_key(&self, _: Ipv4Addr, _: &[u8], _: u8, _: &[u8]) -> Result<bool, StoreError> {
            self.answer()
        }
        fn rekey(&self, _: &str, _: u8, _: &[u8]) -> Result<bool, StoreError> {
            self.answer()
        }
        fn revoke(&self, _: &str) -> Result<bool, StoreError> {
            self.answer()
        }
        fn bind(&self, _: u64, _: Ipv4Addr, _: u64) -> Result<(), StoreError> {
            self.answer()
        }
        fn unbind(&self, _: u64, _: Ipv4Addr) -> Result<bool, StoreError> {
            self.answer()
        }
    }

    /// Broke `ask` by not looking at the time of the last failure: each question was an attempt.
    #[test]
    fn a_cluster_that_is_away_is_left_alone_for_a_moment() {
        let ip = Ipv4Addr::new(10, 0, 0, 1);
        let asked_in_five = |error: StoreError| {
            let asked = Arc::new(AtomicU32::new(0));
            let store = Box::new(Away(Arc::clone(&asked), error));
            let records = Repository { store, failed_at: Mutex::new(None) };
            for _ in 0..4 {
                assert!(matches!(records.find(ip), Lookup::Failed));
            }
            // As if the moment were over.
            *records.failed_at() = None;
            assert!(!records.replace(ip, &[1], RecordKey { algorithm: 1, key: &[2] }));
            asked.load(Ordering::Relaxed)
        };
        assert_eq!(asked_in_five(StoreError::Unreachable("all".to_owned()).with_file("etcd".as_ref())), 2);
        assert_eq!(asked_in_five(StoreError::Busy), 5, "a file that is there is asked each time");
    }
}
