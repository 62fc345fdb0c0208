//! The repository of hosts: the rules of every repository, and what a file can do to one.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[path = "repository/rules.rs"]
mod rules;

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use authority::directory::Sharing;
use authority::repository::{SqliteStore, Store, StoreError, Subnet};
use rusqlite::Connection;
use tempfile::TempDir;

use rules::{host, store_rules};

const NOW_UNIX_S: u64 = 1_800_000_000;

fn new_sqlite() -> (TempDir, SqliteStore) {
    let place = tempfile::tempdir().expect("directory");
    let store = SqliteStore::create(&place.path().join("hosts.db")).expect("created");
    (place, store)
}

fn empty(_rule: &str) -> Option<(TempDir, SqliteStore)> {
    Some(new_sqlite())
}

store_rules! { empty }

fn refusal(outcome: Result<SqliteStore, StoreError>) -> StoreError {
    let error = outcome.expect_err("refused");
    let text = error.to_string();
    assert!(!text.contains('\n') && text.contains("; "), "one line with a remedy: {text}");
    error.reason().clone()
}

/// Everything in `directory`, by name.
fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("listed");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_subnet_holds_what_begins_like_it() {
    let subnet = |network: [u8; 4], len| Subnet::new(network.into(), len);
    assert!(subnet([10, 1, 0, 0], 16).expect("subnet").contains([10, 1, 255, 255].into()));
    assert!(!subnet([10, 1, 0, 0], 16).expect("subnet").contains([10, 2, 0, 0].into()));
    assert!(subnet([0, 0, 0, 0], 0).expect("subnet").contains([255, 0, 0, 1].into()));
    assert!(!subnet([10, 0, 0, 1], 32).expect("subnet").contains([10, 0, 0, 2].into()));
    for (network, len) in [([10, 0, 0, 0], 33), ([10, 0, 0, 0], 255), ([10, 0, 0, 1], 31), ([128, 0, 0, 0], 0)] {
        let bad = StoreError::BadSubnet { network: network.into(), prefix_len: len };
        assert_eq!(subnet(network, len), Err(bad));
    }
}

#[test]
fn what_was_entered_is_there_when_it_is_opened_again() {
    let (place, store) = new_sqlite();
    store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
    let before = store.list();
    drop(store);
    assert_eq!(names_in(place.path()), ["hosts.db"], "a store that is closed leaves one file");
    let store = SqliteStore::open(&place.path().join("hosts.db")).expect("opened");
    assert_eq!(store.list(), before);
    assert_eq!(store.add(&host("beta", 2), Sharing::Refused, NOW_UNIX_S), Ok(2));
}

#[test]
fn only_the_owner_may_read_any_of_its_files() {
    let (place, store) = new_sqlite();
    store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
    store.backup_to(&place.path().join("backup.db")).expect("copied");
    let names = names_in(place.path());
    assert_eq!(names, ["backup.db", "hosts.db", "hosts.db-shm", "hosts.db-wal"]);
    for name in names {
        let mode = fs::metadata(place.path().join(&name)).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn two_programs_see_each_others_changes() {
    let (place, store) = new_sqlite();
    let other = SqliteStore::open(&place.path().join("hosts.db")).expect("opened");
    assert_eq!(store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S), Ok(1));
    assert_eq!(other.add(&host("beta", 2), Sharing::Refused, NOW_UNIX_S), Ok(2));
    assert_eq!(store.list(), other.list());
    assert_eq!(store.list().expect("listed").len(), 2);
}

/// Broke `write` by a transaction that takes the right to change only when it changes: it was refused as busy.
#[test]
fn changes_of_two_programs_come_one_after_another() {
    const EACH: u8 = 40;
    let (place, store) = new_sqlite();
    let other = SqliteStore::open(&place.path().join("hosts.db")).expect("opened");
    let enter = |store: &SqliteStore, from: u8| {
        for last in from..from + EACH {
            let outcome = store.add(&host(&format!("host-{last}"), last), Sharing::Refused, NOW_UNIX_S);
            assert!(outcome.is_ok(), "{outcome:?}");
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| enter(&store, 1));
        scope.spawn(|| enter(&other, 1 + EACH));
    });
    let numbers: Vec<u64> = store.list().expect("listed").iter().map(|host| host.number).collect();
    assert_eq!(numbers, (1..=2 * u64::from(EACH)).collect::<Vec<_>>());
}

/// Broke `busy_timeout`: without it the change is refused at once, which the measured time shows.
#[test]
fn a_change_waits_for_another_program_but_not_for_ever() {
    let (place, store) = new_sqlite();
    let other = Connection::open(place.path().join("hosts.db")).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("begun");
    let began_at = std::time::Instant::now();
    let outcome = store.revoke("alpha");
    let waited = began_at.elapsed();
    assert_eq!(outcome.expect_err("refused").reason(), &StoreError::Busy);
    let limit = authority::limits::BUSY_TIMEOUT;
    assert!(limit / 2 < waited && waited < limit * 5, "{waited:?}");
    assert_eq!(store.find([10, 0, 0, 1].into()), Ok(None), "questions do not wait");
    other.execute_batch("ROLLBACK").expect("ended");
    assert_eq!(store.revoke("alpha"), Ok(false));
}

#[test]
fn nothing_is_made_where_something_is() {
    let (place, store) = new_sqlite();
    drop(store);
    let path = place.path().join("hosts.db");
    assert_eq!(refusal(SqliteStore::create(&path)), StoreError::Exists);
    // The log of a repository that was removed would be played into the new one.
    for suffix in ["-wal", "-journal", "-shm"] {
        let rest = place.path().join(format!("other.db{suffix}"));
        fs::write(&rest, "").expect("written");
        assert_eq!(refusal(SqliteStore::create(&place.path().join("other.db"))), StoreError::Exists);
        fs::remove_file(&rest).expect("removed");
    }
    assert_eq!(names_in(place.path()), ["hosts.db"]);
    assert_eq!(refusal(SqliteStore::create(&place.path().join("missing/hosts.db"))), StoreError::NotThere);
}

#[test]
fn what_is_not_there_is_not_opened() {
    let place = tempfile::tempdir().expect("directory");
    assert_eq!(refusal(SqliteStore::open(&place.path().join("hosts.db"))), StoreError::NotThere);
    assert_eq!(names_in(place.path()), [""; 0]);
    assert!(matches!(refusal(SqliteStore::open(place.path())), StoreError::Failed(_)));
}

#[test]
fn other_files_are_refused_and_left_as_they_are() {
    let place = tempfile::tempdir().expect("directory");
    let path = place.path().join("hosts.db");
    let database = place.path().join("database");
    let other = Connection::open(&database).expect("opened");
    other.execute_batch("CREATE TABLE hosts (number INTEGER); PRAGMA user_version = 1").expect("made");
    other.close().expect("closed");
    let text = "a text that is longer than the header of a database, which has a hundred bytes.".repeat(3);
    for content in [vec![], b"short".to_vec(), text.into_bytes(), fs::read(&database).expect("read")] {
        fs::write(&path, &content).expect("written");
        assert_eq!(refusal(SqliteStore::open(&path)), StoreError::Foreign);
        assert_eq!(fs::read(&path).expect("read"), content);
    }
}

#[test]
fn a_later_form_is_refused_by_its_number() {
    let (place, store) = new_sqlite();
    drop(store);
    let path = place.path().join("hosts.db");
    Connection::open(&path).expect("opened").pragma_update(None, "user_version", 4).expect("set");
    assert_eq!(refusal(SqliteStore::open(&path)), StoreError::NewerVersion(4));
    Connection::open(&path).expect("opened").pragma_update(None, "user_version", 0).expect("set");
    assert!(matches!(refusal(SqliteStore::open(&path)), StoreError::Damaged(_)));
}

#[test]
fn a_repository_of_the_first_form_gets_leases() {
    let (place, store) = new_sqlite();
    let number = store.add(&host("a", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
    drop(store);
    let path = place.path().join("hosts.db");
    let first = Connection::open(&path).expect("opened");
    first.execute_batch("DROP TABLE leases; DROP TABLE enrolments; PRAGMA user_version = 1").expect("as it was");
    drop(first);
    let store = SqliteStore::open(&path).expect("brought up");
    let leased = Ipv4Addr::new(10, 0, 1, 7);
    assert_eq!(store.lease(number, leased, NOW_UNIX_S + 60, NOW_UNIX_S), Ok(()));
    drop(store);
    let entry = SqliteStore::open(&path).expect("opened").find(leased).expect("asked");
    assert_eq!(entry.map(|host| host.number), Some(number));
}

#[test]
fn a_table_that_is_missing_or_holds_nonsense_is_damage() {
    let damage = [
        "DROP TABLE subnets",
        "UPDATE hosts SET role = 'king'",
        "UPDATE hosts SET not_after = -1",
        "UPDATE addresses SET address = -1",
        "UPDATE addresses SET address = 4294967296",
        "UPDATE subnets SET prefix_len = 99",
    ];
    for statement in damage {
        let (place, store) = new_sqlite();
        store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
        drop(store);
        let path = place.path().join("hosts.db");
        Connection::open(&path).expect("opened").execute_batch(statement).expect("damaged");
        let outcome = SqliteStore::open(&path).and_then(|store| store.list());
        let error = outcome.expect_err(statement);
        assert!(matches!(error.reason(), StoreError::Damaged(_)), "{statement}: {error}");
    }
}

/// Sixteen bytes are turned over at a time, at every place of the head and at many of the rest. What comes out may be right,
/// wrong or an error, but it comes out.
#[test]
fn a_broken_file_is_an_error_and_no_panic() {
    let (place, store) = new_sqlite();
    for last in 1..=40 {
        store.add(&host(&format!("host-{last}"), last), Sharing::Refused, NOW_UNIX_S).expect("added");
    }
    drop(store);
    let whole = fs::read(place.path().join("hosts.db")).expect("read");
    let path = place.path().join("broken.db");
    let mut named = 0;
    for at in (0..512).chain((512..whole.len()).step_by(509)) {
        let mut broken = whole.clone();
        broken[at..].iter_mut().take(16).for_each(|byte| *byte ^= 0xff);
        fs::write(&path, &broken).expect("written");
        let use_it = |store: SqliteStore| {
            store.list()?;
            store.find([10, 0, 0, 7].into())?;
            store.add(&host("host-7", 7), Sharing::Refused, NOW_UNIX_S)
        };
        let outcome = SqliteStore::open(&path).and_then(use_it);
        named += usize::from(outcome.is_err());
        for suffix in ["-wal", "-shm"] {
            drop(fs::remove_file(place.path().join(format!("broken.db{suffix}"))));
        }
    }
    assert!(named > 50, "most of it is noticed: {named}");
}

#[test]
fn a_file_that_was_cut_is_damage() {
    let (place, store) = new_sqlite();
    store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
    drop(store);
    let path = place.path().join("hosts.db");
    let whole = fs::read(&path).expect("read");
    fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    let outcome = SqliteStore::open(&path).and_then(|store| store.list());
    let error = outcome.expect_err("refused");
    assert!(matches!(error.reason(), StoreError::Damaged(_)), "{error}");
}

#[test]
fn a_backup_is_the_repository_as_it_was() {
    let (place, store) = new_sqlite();
    store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
    store.revoke("alpha").expect("revoked");
    let target = place.path().join("backup.db");
    let then = store.list();
    store.backup_to(&target).expect("copied");
    store.add(&host("beta", 2), Sharing::Refused, NOW_UNIX_S).expect("added");
    let copy = SqliteStore::open(&target).expect("opened");
    assert_eq!(copy.list(), then);
    // It goes on from there, and the repository from where it is.
    assert_eq!(copy.add(&host("gamma", 3), Sharing::Refused, NOW_UNIX_S), Ok(2));
    assert_eq!(store.list().expect("listed").len(), 2);
    let again = store.backup_to(&target).expect_err("refused");
    assert_eq!(again.reason(), &StoreError::Exists);
}

/// Names that mean something to SQLite are names of files like any other.
#[test]
fn no_path_is_special() {
    let place = tempfile::tempdir().expect("directory");
    for name in ["file:hosts.db?mode=memory", "a b%20c#d", ":memory:"] {
        let path = place.path().join(name);
        let store = SqliteStore::create(&path).expect("created");
        store.add(&host("alpha", 1), Sharing::Refused, NOW_UNIX_S).expect("added");
        drop(store);
        assert!(path.is_file(), "{name}");
        assert_eq!(SqliteStore::open(&path).expect("opened").list().expect("listed").len(), 1);
    }
}
