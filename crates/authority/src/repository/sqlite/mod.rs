//! The repository in one file, by SQLite (record 0012).
//!
//! One connection changes and another one answers, so that a question never waits for the disk. A change is one transaction
//! that has been synced when it returns. A new file is built under a name of its own and renamed, so that a repository is
//! there whole or not at all.

mod failure;
mod remembered;
mod rows;

use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use tempfile::Builder;

use remembered::Remembered;

use super::{
    Bound, Contents, Enrolment, Holder, HostEntry, NewHost, Standing, Store, StoreError, check_key, give_address,
};
use crate::files::{directory_of, sync_directory};
use crate::limits::{BUSY_TIMEOUT, MAX_HOSTS};
use crate::repository::Sharing;

/// "RwHs": tells a repository of hosts from other files of SQLite.
const APPLICATION_ID: i64 = 0x5277_4873;

/// The form of the tables. Whoever changes them counts it up and teaches [`SqliteStore::open`] the way from the old form.
const VERSION: i64 = 3;

/// Hosts are never removed, and the numbers of removed ones would not come again. An address may have several hosts: those
/// that had it before, and those that share it.
const SCHEMA: &str = "
CREATE TABLE hosts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    mac BLOB CHECK (length(mac) = 6),
    algorithm INTEGER NOT NULL CHECK (algorithm BETWEEN 0 AND 255),
    key BLOB NOT NULL,
    revoked INTEGER NOT NULL CHECK (revoked IN (0, 1)),
    not_before INTEGER NOT NULL,
    not_after INTEGER NOT NULL
) STRICT;
CREATE INDEX hosts_by_mac ON hosts (mac) WHERE mac IS NOT NULL;
CREATE TABLE addresses (
    host INTEGER NOT NULL REFERENCES hosts (number),
    position INTEGER NOT NULL,
    address INTEGER NOT NULL,
    PRIMARY KEY (host, position),
    UNIQUE (address, host)
) STRICT, WITHOUT ROWID;
CREATE TABLE subnets (
    host INTEGER NOT NULL REFERENCES hosts (number),
    position INTEGER NOT NULL,
    network INTEGER NOT NULL,
    prefix_len INTEGER NOT NULL,
    PRIMARY KEY (host, position)
) STRICT, WITHOUT ROWID;
";

/// What the second form has beside the first: until when addresses are leased. Those without a row stay.
const LEASES: &str = "
CREATE TABLE leases (
    host INTEGER NOT NULL REFERENCES hosts (number),
    address INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (host, address)
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_end ON leases (until);
";

/// What the third form has beside the second: tokens, each as it is written down.
const ENROLMENTS: &str = "
CREATE TABLE enrolments (
    number INTEGER PRIMARY KEY,
    written BLOB NOT NULL
) STRICT;
";

/// What each form has beside the one before, the second first.
const ADDED: [&str; 2] = [LEASES, ENROLMENTS];

/// A repository in a file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
    remembered: Mutex<Remembered>,
}

impl SqliteStore {
    /// Makes an empty repository, which only its owner may read.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if anything is there, also the rest of an older repository; or what the operating system says.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        Self::create_with(path, &Contents::default())
    }

    /// Makes a repository that holds all of this, each host under its number.
    ///
    /// # Errors
    /// As [`create`](SqliteStore::create).
    pub fn create_with(path: &Path, contents: &Contents) -> Result<Self, StoreError> {
        build(path, |connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(SCHEMA)?;
            ADDED.iter().try_for_each(|tables| transaction.execute_batch(tables))?;
            rows::insert_all(&transaction, contents)?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.commit()?;
            use_write_ahead_log(connection)
        })
        .map_err(|error| error.with_file(path))?;
        Self::open(path)
    }

    /// Opens the repository in a file.
    ///
    /// # Errors
    /// [`StoreError::NotThere`], [`StoreError::Foreign`], [`StoreError::NewerVersion`], [`StoreError::Damaged`], or what the
    /// operating system says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let open = || -> Result<Self, StoreError> {
            path.metadata()?;
            let writer = connect(path)?;
            use_write_ahead_log(&writer)?;
            // The log may have been made just now. SQLite syncs its directory but passes over an error of that.
            sync_directory(directory_of(path))?;
            let reader = connect(path)?;
            reader.pragma_update(None, "query_only", true)?;
            let (writer, reader) = (Mutex::new(writer), Mutex::new(reader));
            Ok(SqliteStore { path: path.to_owned(), writer, reader, remembered: Mutex::default() })
        };
        open().map_err(|error| error.with_file(path))
    }

    /// Writes a copy as of now to a new file, while the repository is used.
    ///
    /// # Errors
    /// [`StoreError::Exists`] if anything is there; what is wrong with the repository; or what the operating system says.
    pub fn backup_to(&self, target: &Path) -> Result<(), StoreError> {
        // A connection of its own, since the copy of a large repository takes longer than a question may wait.
        let source = connect(&self.path).map_err(|error| error.with_file(&self.path))?;
        build(target, |copy| match Backup::new(&source, copy)?.step(-1)? {
            StepResult::Done => Ok(()),
            _ => Err(StoreError::Busy),
        })
        .map_err(|error| error.with_file(target))
    }

    /// All that it holds.
    ///
    /// # Errors
    /// What is wrong with the repository.
    pub fn contents(&self) -> Result<Contents, StoreError> {
        // A connection of its own, since reading a large repository takes longer than a question may wait.
        let contents = || {
            let mut connection = connect(&self.path)?;
            let transaction = connection.transaction()?;
            let (hosts, leases) = (rows::all(&transaction)?, rows::leases(&transaction)?);
            Ok(Contents { hosts, leases, enrolments: rows::enrolments(&transaction)? })
        };
        contents().map_err(|error: StoreError| error.with_file(&self.path))
    }

    /// Runs `change` whole or not at all; what it did has been synced when this returns.
    fn write<T>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut connection = lock(&self.writer);
        let attempt = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let outcome = change(&transaction)?;
            transaction.commit()?;
            Ok(outcome)
        };
        attempt().map_err(|error: StoreError| error.with_file(&self.path))
    }

    /// Runs `question` on what is there now; no change comes between its parts.
    fn read<T>(&self, question: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut connection = lock(&self.reader);
        let attempt = || question(&*connection.transaction()?);
        attempt().map_err(|error: StoreError| error.with_file(&self.path))
    }
}

impl Store for SqliteStore {
    fn add(&self, host: &NewHost, sharing: Sharing, now_unix_s: u64) -> Result<u64, StoreError> {
        host.check()?;
        self.write(|connection| {
            rows::end_leases(connection, now_unix_s)?;
            if sharing == Sharing::Refused {
                check_holders(connection, host, now_unix_s)?;
            }
            match rows::number_of(connection, &host.name)? {
                Some(number) => rows::renew(connection, number, host),
                None if rows::highest_number(connection)? >= MAX_HOSTS => Err(StoreError::Full),
                None => rows::insert(connection, host),
            }
        })
    }

    fn find(&self, ip: Ipv4Addr) -> Result<Option<HostEntry>, StoreError> {
        self.read(|connection| rows::find(connection, ip))
    }

    fn holders(&self, ips: &[Ipv4Addr]) -> Result<Vec<Option<Holder>>, StoreError> {
        let mut remembered = lock(&self.remembered);
        remembered.keep_up(&lock(&self.reader)).map_err(|error| error.with_file(&self.path))?;
        let known: Vec<_> = ips.iter().map(|ip| remembered.get(*ip)).collect();
        if known.iter().all(Option::is_some) {
            return Ok(known);
        }
        let find = |connection: &Connection, (ip, known): (&Ipv4Addr, Option<Holder>)| match known {
            Some(holder) => Ok(Some(holder)),
            None => rows::holder(connection, *ip),
        };
        let found: Vec<_> = self
            .read(|connection| ips.iter().zip(known).map(|asked| find(connection, asked)).collect::<Result<_, _>>())?;
        for (ip, holder) in ips.iter().zip(&found) {
            holder.iter().for_each(|holder| remembered.keep(*ip, holder));
        }
        Ok(found)
    }

    fn by_name(&self, name: &str) -> Result<Option<HostEntry>, StoreError> {
        self.read(|connection| rows::by_name(connection, name))
    }

    fn by_number(&self, number: u64) -> Result<Option<HostEntry>, StoreError> {
        self.read(|connection| rows::by_number(connection, number))
    }

    fn list(&self) -> Result<Vec<HostEntry>, StoreError> {
        // A connection of its own, since reading a large repository takes longer than a question may wait.
        let list = || rows::all(&*connect(&self.path)?.transaction()?);
        list().map_err(|error| error.with_file(&self.path))
    }

    fn replace_key(&self, ip: Ipv4Addr, old: &[u8], algorithm: u8, new: &[u8]) -> Result<bool, StoreError> {
        check_key(new)?;
        self.write(|connection| match rows::find(connection, ip)? {
            Some(host) if host.standing == Standing::Good && host.key == old => {
                rows::set_key(connection, &host.name, algorithm, new)
            }
            _ => Ok(false),
        })
    }

    fn rekey(&self, name: &str, algorithm: u8, key: &[u8]) -> Result<bool, StoreError> {
        check_key(key)?;
        self.write(|connection| rows::set_key(connection, name, algorithm, key))
    }

    fn revoke(&self, name: &str) -> Result<bool, StoreError> {
        self.write(|connection| {
            let changed = connection.prepare_cached("UPDATE hosts SET revoked = 1 WHERE name = ?1")?.execute([name])?;
            Ok(changed > 0)
        })
    }

    fn bind(&self, number: u64, ip: Ipv4Addr, now_unix_s: u64) -> Result<(), StoreError> {
        self.write(|connection| bind(connection, number, ip, now_unix_s).map(drop))
    }

    fn lease(&self, number: u64, ip: Ipv4Addr, until_unix_s: u64, now_unix_s: u64) -> Result<(), StoreError> {
        self.write(|connection| {
            if bind(connection, number, ip, now_unix_s)? == Bound::Before {
                return rows::prolong(connection, number, ip, until_unix_s);
            }
            rows::insert_lease(connection, number, ip, until_unix_s)
        })
    }

    fn unbind(&self, number: u64, ip: Ipv4Addr) -> Result<bool, StoreError> {
        let Ok(number) = i64::try_from(number) else { return Ok(false) };
        self.write(|connection| rows::remove_address(connection, number, ip))
    }

    fn enrolments(&self) -> Result<Vec<Enrolment>, StoreError> {
        self.read(rows::enrolments)
    }

    fn enrolment(&self, number: u64) -> Result<Option<Enrolment>, StoreError> {
        self.read(|connection| rows::enrolment(connection, number))
    }

    fn change_enrolment(&self, before: Option<&Enrolment>, after: Option<&Enrolment>) -> Result<bool, StoreError> {
        self.write(|connection| rows::change_enrolment(connection, before, after))
    }
}

fn bind(connection: &Connection, number: u64, ip: Ipv4Addr, now_unix_s: u64) -> Result<Bound, StoreError> {
    rows::end_leases(connection, now_unix_s)?;
    let (host, bound) = give_address(rows::by_number(connection, number)?, number, ip, now_unix_s)?;
    if bound == Bound::Now {
        check_address(connection, ip, &host.name, now_unix_s)?;
        rows::append_address(connection, number, ip)?;
    }
    Ok(bound)
}

/// Whether no other good host holds an address of `host`.
fn check_holders(connection: &Connection, host: &NewHost, now_unix_s: u64) -> Result<(), StoreError> {
    if let Some(mac) = host.mac {
        let mut holder = connection.prepare_cached(
            "SELECT name FROM hosts WHERE mac = ?1 AND revoked = 0 AND not_after >= ?2 AND name <> ?3 LIMIT 1",
        )?;
        let found = holder.query_row(params![mac.0, seconds(now_unix_s), host.name], |row| row.get(0)).optional()?;
        if let Some(holder) = found {
            return Err(StoreError::MacTaken { mac, holder });
        }
    }
    host.addresses.iter().try_for_each(|address| check_address(connection, *address, &host.name, now_unix_s))
}

fn check_address(connection: &Connection, ip: Ipv4Addr, name: &str, now_unix_s: u64) -> Result<(), StoreError> {
    let mut holder = connection.prepare_cached(
        "SELECT name FROM addresses JOIN hosts ON number = host
         WHERE address = ?1 AND revoked = 0 AND not_after >= ?2 AND name <> ?3 LIMIT 1",
    )?;
    let found = holder.query_row(params![ip.to_bits(), seconds(now_unix_s), name], |row| row.get(0)).optional()?;
    found.map_or(Ok(()), |holder| Err(StoreError::AddressTaken { address: ip, holder }))
}

/// A time as SQLite compares it; what it cannot hold lies behind every period.
fn seconds(unix_s: u64) -> i64 {
    i64::try_from(unix_s).unwrap_or(i64::MAX)
}

/// Another caller's panic leaves a connection usable: its transaction was rolled back on the way out. What is remembered is
/// entered in one step.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a file that is a repository, and leaves any other as it is.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let connection = connect_to_any(path)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    // An application's own number is stored with a sign.
    if number("application_id")? != APPLICATION_ID {
        return Err(StoreError::Foreign);
    }
    match number("user_version")? {
        VERSION => {}
        1..VERSION => bring_up(&connection)?,
        newer if newer > VERSION => return Err(StoreError::NewerVersion(newer)),
        older => return Err(StoreError::Damaged(format!("its form has the number {older}"))),
    }
    rows::check_tables(&connection)?;
    Ok(connection)
}

/// Brings a repository of an earlier form to this one, unless another program has just done so.
fn bring_up(connection: &Connection) -> Result<(), StoreError> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (form, tables) in (2..).zip(ADDED) {
        if version < form {
            transaction.execute_batch(tables)?;
        }
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}

fn connect_to_any(path: &Path) -> Result<Connection, StoreError> {
    // With a directory in front, no path is one of the words that mean something else to SQLite.
    let path = Path::new(".").join(path);
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.set_prepared_statement_cache_capacity(rows::STATEMENTS);
    // Else SQLite may plan a prepared statement anew for each value, which takes ten times as long as to run it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Whoever was told that a key is changed has thrown the old one away: each change is synced before it is told.
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// File systems without shared memory cannot have the log, and SQLite says so only by the mode that it keeps.
fn use_write_ahead_log(connection: &Connection) -> Result<(), StoreError> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(StoreError::Failed(format!("this file system allows no write-ahead log, only {mode:?}")))
}

/// Fills a new file and gives it its name when it is whole and synced.
fn build(target: &Path, fill: impl FnOnce(&mut Connection) -> Result<(), StoreError>) -> Result<(), StoreError> {
    refuse_existing(target)?;
    let directory = directory_of(target);
    directory.metadata()?;
    let staged = Builder::new().prefix(".new-").permissions(Permissions::from_mode(0o600)).tempfile_in(directory)?;
    let mut connection = connect_to_any(staged.path())?;
    fill(&mut connection)?;
    connection.close().map_err(|(_, error)| error)?;
    // SQLite has synced what it wrote; what is left is the name.
    staged.persist_noclobber(target).map_err(|failed| failed.error)?;
    sync_directory(directory_of(target))?;
    Ok(())
}

/// A log that an older repository of this name left would be played into the new one.
fn refuse_existing(target: &Path) -> Result<(), StoreError> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = target.as_os_str().to_owned();
        name.push(suffix);
        if Path::new(&name).symlink_metadata().is_ok() {
            return Err(StoreError::Exists.with_file(Path::new(&name)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_store() -> (tempfile::TempDir, SqliteStore) {
        let place = tempfile::tempdir().expect("directory");
        let store = SqliteStore::create(&place.path().join("hosts.db")).expect("created");
        (place, store)
    }

    /// Broke the constraint `UNIQUE (address, host)` of the table: the plan became a walk.
    #[test]
    fn a_host_is_found_without_a_walk_over_any_table() {
        let (_place, store) = new_store();
        let connection = lock(&store.reader);
        for statement in [rows::FIND, rows::BY_NAME] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).expect("prepared");
            let steps = plan.query_map(["x"], |row| row.get::<_, String>(3)).expect("asked");
            let steps: Vec<String> = steps.map(|step| step.expect("row")).collect();
            assert!(steps.iter().any(|step| step.starts_with("SEARCH")), "{steps:?}");
            assert!(!steps.iter().any(|step| step.starts_with("SCAN")), "{steps:?}");
        }
    }

    #[test]
    fn each_connection_syncs_and_checks() {
        let (_place, store) = new_store();
        for connection in [&store.writer, &store.reader] {
            let connection = lock(connection);
            let number =
                |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).expect(name);
            assert_eq!((number("synchronous"), number("foreign_keys")), (2, 1));
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).expect("mode");
            assert_eq!(mode, "wal");
        }
    }

    /// Broke the comparison of versions: the second store went on giving the old key.
    #[test]
    fn what_is_remembered_holds_until_anybody_changes_anything() {
        let (place, store) = new_store();
        let other = SqliteStore::open(&place.path().join("hosts.db")).expect("opened");
        let ip = Ipv4Addr::new(10, 0, 0, 1);
        let host = |key: u8| NewHost {
            name: "a".to_owned(),
            role: identity::certificate::Role::Host,
            mac: None,
            addresses: vec![ip],
            algorithm: 1,
            key: vec![key],
            not_before_unix: 0,
            not_after_unix: 1,
            subnets: vec![],
        };
        let key = |store: &SqliteStore| {
            let holders = store.holders(&[ip]).expect("read");
            holders.into_iter().next().flatten().map(|holder| holder.key.to_vec())
        };
        assert_eq!(key(&other), None);
        for writer in [&store, &other] {
            for newest in [1, 2] {
                writer.add(&host(newest), Sharing::Refused, 0).expect("added");
                for reader in [&store, &other, &other] {
                    assert_eq!(key(reader), Some(vec![newest]));
                }
            }
        }
        assert_eq!(lock(&other.remembered).get(ip).map(|holder| holder.key.to_vec()), Some(vec![2]));
    }

    #[test]
    fn the_last_number_is_the_last() {
        let (_place, store) = new_store();
        let fill = "INSERT INTO hosts VALUES (?1, 'last', 'host', NULL, 1, x'01', 0, 0, 1)";
        lock(&store.writer).execute(fill, [i64::try_from(MAX_HOSTS).expect("small") - 1]).expect("filled");
        let host = |name: &str| NewHost {
            name: name.to_owned(),
            role: identity::certificate::Role::Host,
            mac: None,
            addresses: vec![],
            algorithm: 1,
            key: vec![1],
            not_before_unix: 0,
            not_after_unix: 1,
            subnets: vec![],
        };
        let add = |name: &str| store.add(&host(name), Sharing::Refused, 0);
        assert_eq!(add("one"), Ok(MAX_HOSTS));
        assert_eq!(add("two").expect_err("full").reason(), &StoreError::Full);
        assert_eq!(add("last"), Ok(MAX_HOSTS - 1), "who has a number keeps it");
    }
}
