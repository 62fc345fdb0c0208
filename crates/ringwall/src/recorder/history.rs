//! The history: what happened, on disk, within bounds of size and age
//! (docs/decisions/0085-history.md).
//!
//! One table. An attack is one row from its first frame to its end, an address that somebody had is
//! one row from when to when, a change is a row of one moment. When the file is full the oldest
//! rows make room.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, params};
use serde::{Deserialize, Serialize};

use crate::protocol::attacks::{Attack, Change, Holding};

/// Tells our files from other databases.
const APPLICATION_ID: i32 = 0x5257_4853;
/// Of the table's form.
const VERSION: i32 = 1;
const PAGE_BYTES: u64 = 4096;
/// Pages that wait beside the file (`-wal`) before they are moved into it.
const LOG_PAGES: i64 = 64;
/// How long a reader or another daemon may hold the file.
const BUSY_MAX: Duration = Duration::from_secs(2);
/// Which part of the rows makes room when the file is full.
const PART_REMOVED: i64 = 8;
const DAY_MS: u64 = 86_400_000;
/// How often rows that are too old are looked for, and what goes on is confirmed.
pub(super) const TURN_MS: u64 = 60_000;

/// Kind of the rows that say who had which address.
pub(crate) const ADDRESS: &str = "address";

/// A row, as it is read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) number: i64,
    /// `address`, a kind of attack, or what changed.
    pub(crate) kind: String,
    pub(crate) interface: String,
    pub(crate) first_unix_ms: u64,
    pub(crate) last_unix_ms: u64,
    /// Whether it goes on, as far as is known.
    pub(crate) is_open: bool,
    pub(crate) count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mac: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) text: String,
}

/// Which rows are wanted.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Wanted {
    /// Those that ended later.
    pub(crate) since_unix_ms: u64,
    pub(crate) kind: Option<String>,
    /// With this address, hardware address or name.
    pub(crate) about: Option<String>,
    /// Attacks, and nothing else.
    pub(crate) attacks_only: bool,
    /// At most so many of those that began last, after this many that began later.
    pub(crate) newest: Option<(u32, u32)>,
}

/// What is entered.
struct Entry<'a> {
    /// The same for all that is said of one thing.
    key: String,
    kind: &'a str,
    interface: &'a str,
    first_ms: u64,
    last_ms: u64,
    is_open: bool,
    count: u64,
    party: [Option<&'a str>; 3],
    text: &'a str,
}

/// The file that is written.
pub(super) struct History {
    connection: Connection,
    days: u32,
    turned_ms: u64,
}

fn other(error: rusqlite::Error) -> io::Error {
    io::Error::other(error)
}

/// Numbers of SQLite have a sign.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl History {
    /// Opens `file`, which is made where it is not there. What `interface` left open in an earlier
    /// run ended when it was seen last.
    pub(super) fn open(file: &Path, max_bytes: u64, days: u32, interface: &str) -> io::Result<History> {
        // SQLite would make it readable for whom the mask lets.
        OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags).map_err(other)?;
        connection.busy_timeout(BUSY_MAX).map_err(other)?;
        prepare(&connection, max_bytes).map_err(other)?;
        let closed = "UPDATE entry SET is_open = 0 WHERE is_open = 1 AND interface = ?1";
        connection.execute(closed, [interface]).map_err(other)?;
        Ok(History { connection, days, turned_ms: 0 })
    }

    pub(super) fn attack(&self, attack: &Attack) -> io::Result<()> {
        let span = &attack.span;
        let source = attack.source.mac.as_deref();
        self.enter(&Entry {
            key: format!("attack {} {} {}", attack.place.interface, span.first_unix_ms, attack.number),
            kind: &attack.sort.kind,
            interface: &attack.place.interface,
            first_ms: span.first_unix_ms,
            last_ms: span.last_unix_ms,
            is_open: attack.phase != bump::record::Phase::Closed.word(),
            count: attack.count,
            party: [attack.claimed.ip.as_deref(), source, attack.claimed.name.as_deref()],
            text: &attack.sentence,
        })
    }

    pub(super) fn change(&self, change: &Change) -> io::Result<()> {
        self.enter(&Entry {
            key: format!("change {} {} {}", change.interface, change.unix_ms, change.text),
            kind: &change.kind,
            interface: &change.interface,
            first_ms: change.unix_ms,
            last_ms: change.unix_ms,
            is_open: false,
            count: 1,
            party: [None, None, None],
            text: &change.text,
        })
    }

    pub(super) fn holding(&self, holding: &Holding) -> io::Result<()> {
        let Holding { interface, ip, mac, name, .. } = holding;
        let [mac, name] = [mac, name].map(Option::as_deref);
        let text = format!("{ip} is {} ({})", name.unwrap_or("of a host without a name"), mac.unwrap_or("any card"));
        self.enter(&Entry {
            key: format!(
                "address {interface} {} {ip} {} {}",
                holding.first_unix_ms,
                mac.unwrap_or("-"),
                name.unwrap_or("-")
            ),
            kind: ADDRESS,
            interface,
            first_ms: holding.first_unix_ms,
            last_ms: holding.last_unix_ms,
            is_open: holding.is_open,
            count: 1,
            party: [Some(ip), mac, name],
            text: &text,
        })
    }

    /// Enters it, or what is new of it. A full file makes room once.
    fn enter(&self, entry: &Entry<'_>) -> io::Result<()> {
        match self.insert(entry) {
            Err(rusqlite::Error::SqliteFailure(error, _)) if error.code == ErrorCode::DiskFull => {
                self.make_room().map_err(other)?;
                self.insert(entry).map_err(other)
            }
            outcome => outcome.map_err(other),
        }
    }

    fn insert(&self, entry: &Entry<'_>) -> rusqlite::Result<()> {
        let text = "INSERT INTO entry (key, kind, interface, first_ms, last_ms, is_open, count, ip, mac, name, text) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (key) DO UPDATE SET \
            last_ms = excluded.last_ms, is_open = excluded.is_open, count = excluded.count, text = excluded.text";
        let [ip, mac, name] = entry.party;
        let values = params![
            entry.key,
            entry.kind,
            entry.interface,
            signed(entry.first_ms),
            signed(entry.last_ms),
            entry.is_open,
            signed(entry.count),
            ip,
            mac,
            name,
            entry.text
        ];
        self.connection.prepare_cached(text)?.execute(values).map(drop)
    }

    /// The oldest rows go.
    fn make_room(&self) -> rusqlite::Result<()> {
        let count: i64 = self.connection.query_row("SELECT count(*) FROM entry", [], |row| row.get(0))?;
        let gone = "DELETE FROM entry WHERE number IN (SELECT number FROM entry ORDER BY last_ms, number LIMIT ?1)";
        self.connection.execute(gone, [count / PART_REMOVED + 1]).map(drop)
    }

    /// From time to time: what is too old goes, and addresses of `interface` that are still held
    /// are so until now.
    pub(super) fn turn(&mut self, now_ms: u64, interface: &str) -> io::Result<()> {
        if now_ms.saturating_sub(self.turned_ms) < TURN_MS {
            return Ok(());
        }
        self.turned_ms = now_ms;
        let held = "UPDATE entry SET last_ms = max(last_ms, ?1) WHERE is_open = 1 AND kind = ?2 AND interface = ?3";
        self.connection.execute(held, params![signed(now_ms), ADDRESS, interface]).map_err(other)?;
        let oldest = now_ms.saturating_sub(u64::from(self.days) * DAY_MS);
        self.connection.execute("DELETE FROM entry WHERE last_ms < ?1", [signed(oldest)]).map_err(other).map(drop)
    }
}

/// Nothing is changed in a file that is somebody else's.
fn prepare(connection: &Connection, max_bytes: u64) -> rusqlite::Result<()> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let is_new = match (number("application_id")?, number("user_version")?) {
        (APPLICATION_ID, VERSION) => false,
        (0, 0) if tables == 0 => true,
        _ => {
            let what = "it is another database, or of another version; name another file";
            return Err(rusqlite::Error::InvalidPath(what.into()));
        }
    };
    connection.pragma_update(None, "page_size", signed(PAGE_BYTES))?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Nobody waits for the disk at each row: a loss of power costs the last of them, and the file
    // stays whole.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", LOG_PAGES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "max_page_count", signed(max_bytes / PAGE_BYTES), |_| Ok(()))?;
    if is_new {
        make(connection)?;
    }
    match connection.execute_batch(ORDER) {
        // A file of an earlier version has no room for it before rows make some.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Ok(()),
        made => made,
    }
}

/// The console asks for what began last, of a hundred thousand rows. Files of earlier versions get it
/// when they are opened next.
const ORDER: &str = "CREATE INDEX IF NOT EXISTS by_start ON entry (first_ms)";

fn make(connection: &Connection) -> rusqlite::Result<()> {
    let table = format!(
        "BEGIN IMMEDIATE; CREATE TABLE entry (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, \
         interface TEXT NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, is_open INTEGER NOT NULL, \
         count INTEGER NOT NULL, ip TEXT, mac TEXT, name TEXT, text TEXT NOT NULL) STRICT; \
         CREATE INDEX by_end ON entry (last_ms); PRAGMA application_id = {APPLICATION_ID}; \
         PRAGMA user_version = {VERSION}; COMMIT"
    );
    connection.execute_batch(&table)
}

/// The statement that reads rows. The plus before a column keeps SQLite from its index.
///
/// Rows come in the order of `by_start`, so that a page of the newest reads no others; the index by
/// their end would have SQLite sort all of them. Who looks for one host among all rows reads all of
/// them: in the order in which they lie on disk, a third of the time, and the few found are sorted.
fn statement(is_about_one: bool) -> String {
    let (searched, order) =
        if is_about_one { ("?3 IN (ip, mac, name)", "+first_ms") } else { ("?3 IS NULL", "first_ms") };
    format!(
        "SELECT number, kind, interface, first_ms, last_ms, is_open, count, ip, mac, name, text FROM entry \
         WHERE {searched} AND +last_ms >= ?1 AND (?2 IS NULL OR kind = ?2) \
         AND (NOT ?4 OR kind NOT IN ('address', 'started', 'stopped', 'policy', 'order')) \
         ORDER BY {order} DESC, number DESC LIMIT ?5 OFFSET ?6"
    )
}

fn open_to_read(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_MAX)?;
    // A reader in a sandbox has no folder for temporary files, in which SQLite would sort a far page.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// The rows of one history, the newest first, as they are asked for.
fn rows<'a>(
    statement: &'a mut Statement<'_>,
    wanted: &Wanted,
) -> rusqlite::Result<impl Iterator<Item = rusqlite::Result<Row>> + use<'a>> {
    // SQLite has no limit where it is below zero.
    let (most, after) = wanted.newest.map_or((-1, 0), |(most, after)| (i64::from(most), i64::from(after)));
    let values = params![signed(wanted.since_unix_ms), wanted.kind, wanted.about, wanted.attacks_only, most, after];
    let unsigned = |value: i64| u64::try_from(value).unwrap_or(0);
    statement.query_map(values, move |row| {
        Ok(Row {
            number: row.get(0)?,
            kind: row.get(1)?,
            interface: row.get(2)?,
            first_unix_ms: unsigned(row.get(3)?),
            last_unix_ms: unsigned(row.get(4)?),
            is_open: row.get(5)?,
            count: unsigned(row.get(6)?),
            ip: row.get(7)?,
            mac: row.get(8)?,
            name: row.get(9)?,
            text: row.get(10)?,
        })
    })
}

/// Reads `file`, what began first coming first.
pub(crate) fn read(file: &Path, wanted: &Wanted) -> io::Result<Vec<Row>> {
    let read = || {
        let connection = open_to_read(file)?;
        let mut found = connection.prepare(&statement(wanted.about.is_some()))?;
        let mut rows = rows(&mut found, wanted)?.collect::<rusqlite::Result<Vec<_>>>()?;
        rows.reverse();
        Ok(rows)
    };
    read().map_err(other)
}

/// The same of several histories, as if they were one. What cannot be read has no rows, and the log
/// says why.
pub(crate) fn read_all(files: &[PathBuf], wanted: &Wanted) -> Vec<Row> {
    let there = files.iter().filter(|file| file.exists());
    let connections: Vec<Connection> = there.filter_map(|file| readable(open_to_read(file))).collect();
    let (most, mut after) = wanted.newest.unwrap_or((u32::MAX, 0));
    let mut wanted = wanted.clone();
    if connections.len() > 1 {
        // How many of a file's rows come before is known when those of the others are seen.
        wanted.newest = Some((most.saturating_add(after), 0));
    } else {
        after = 0;
    }
    let select = statement(wanted.about.is_some());
    let mut statements: Vec<_> = connections.iter().filter_map(|one| readable(one.prepare(&select))).collect();
    let selected = statements.iter_mut().filter_map(|statement| readable(rows(statement, &wanted)));
    let mut selected: Vec<_> = selected.map(|rows| rows.map_while(readable).peekable()).collect();
    let newest_first = std::iter::from_fn(|| {
        let firsts = selected.iter_mut().enumerate().filter_map(|(at, rows)| Some((rows.peek()?.first_unix_ms, at)));
        let (_, at) = firsts.max()?;
        selected[at].next()
    });
    let mut rows: Vec<Row> = newest_first.skip(after as usize).take(most as usize).collect();
    rows.reverse();
    rows
}

fn readable<T>(found: rusqlite::Result<T>) -> Option<T> {
    found.inspect_err(|error| tracing::warn!("a history cannot be read: {error}")).ok()
}

#[cfg(test)]
mod tests {
    use super::super::process::tests::attack;
    use super::*;

    const START: u64 = 1_790_000_000_000;
    const MAX: u64 = 1 << 20;

    fn holding(ip: &str, name: &str, from: u64, to: u64, is_open: bool) -> Holding {
        Holding {
            interface: "eth0".to_owned(),
            ip: ip.to_owned(),
            mac: Some("02:00:00:00:00:11".to_owned()),
            name: Some(name.to_owned()),
            first_unix_ms: START + from,
            last_unix_ms: START + to,
            is_open,
        }
    }

    fn all(file: &Path) -> Vec<Row> {
        read(file, &Wanted::default()).expect("read")
    }

    #[test]
    fn an_attack_is_one_row_that_grows_and_ends_and_outlives_the_daemon() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("history.db");
        let history = History::open(&file, MAX, 30, "eth0").expect("open");
        let mut attack = attack();
        history.attack(&attack).expect("entered");
        attack.count = 4120;
        attack.phase = "growing".to_owned();
        history.attack(&attack).expect("entered");
        drop(history);
        let _again = History::open(&file, MAX, 30, "eth0").expect("open");
        let rows = all(&file);
        assert_eq!((rows.len(), rows[0].count, rows[0].is_open), (1, 4120, false), "{rows:?}");
        assert_eq!((rows[0].kind.as_str(), rows[0].mac.as_deref()), ("arp-spoofing", Some("02:00:00:00:00:66")));
        attack.number = 2;
        _again.attack(&attack).expect("entered");
        assert!(all(&file)[1].is_open);
        // Another daemon of the machine does not close it.
        let _other = History::open(&file, MAX, 30, "eth1").expect("open");
        assert!(all(&file)[1].is_open);
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
    }

    /// "Who was .17 last Tuesday at 10:04?"
    #[test]
    fn it_says_who_had_an_address_when() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("history.db");
        let mut history = History::open(&file, MAX, 30, "eth0").expect("open");
        history.holding(&holding("192.0.2.17", "desk-17", 0, 0, true)).expect("entered");
        history.holding(&holding("192.0.2.18", "desk-18", 0, 0, true)).expect("entered");
        history.holding(&holding("192.0.2.17", "desk-17", 0, 1000, false)).expect("entered");
        history.holding(&holding("192.0.2.17", "desk-30", 5000, 5000, true)).expect("entered");
        history.turn(START + 90_000, "eth0").expect("turned");
        let about = Wanted { about: Some("192.0.2.17".to_owned()), ..Wanted::default() };
        let rows = read(&file, &about).expect("read");
        let told: Vec<_> =
            rows.iter().map(|row| (row.name.as_deref(), row.first_unix_ms - START, row.last_unix_ms - START)).collect();
        assert_eq!(told, [(Some("desk-17"), 0, 1000), (Some("desk-30"), 5000, 90_000)]);
        let later = Wanted { since_unix_ms: START + 2000, kind: Some(ADDRESS.to_owned()), ..Wanted::default() };
        let names: Vec<_> = read(&file, &later).expect("read").into_iter().filter_map(|row| row.name).collect();
        assert_eq!(names, ["desk-18", "desk-30"]);
    }

    #[test]
    fn what_is_older_than_it_may_be_goes() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("history.db");
        let mut history = History::open(&file, MAX, 2, "eth0").expect("open");
        history.holding(&holding("192.0.2.17", "old", 0, 0, false)).expect("entered");
        history.holding(&holding("192.0.2.18", "held", 0, 0, true)).expect("entered");
        history.turn(START + 3 * DAY_MS, "eth0").expect("turned");
        let names: Vec<_> = all(&file).into_iter().filter_map(|row| row.name).collect();
        assert_eq!(names, ["held"]);
    }

    #[test]
    fn a_flood_fills_the_file_and_no_more_and_the_newest_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("history.db");
        let max = 128 << 10;
        let history = History::open(&file, max, 30, "eth0").expect("open");
        let (mut attack, mut most) = (attack(), [0; 2]);
        let size = |name: &str| std::fs::metadata(place.path().join(name)).map_or(0, |found| found.len());
        for number in 0..2000 {
            attack.number = number;
            attack.span.last_unix_ms += 1;
            history.attack(&attack).expect("entered");
            most = [most[0].max(size("history.db")), most[1].max(size("history.db-wal"))];
        }
        assert!(most[0] <= max && most[1] <= 4 * PAGE_BYTES * LOG_PAGES.unsigned_abs(), "{most:?}");
        let rows = all(&file);
        assert!(rows.len() > 50 && rows.len() < 2000, "{}", rows.len());
        let newest = rows.iter().map(|row| row.last_unix_ms).max();
        assert_eq!(newest, Some(attack.span.last_unix_ms));
        assert!(rows.iter().all(|row| row.last_unix_ms > attack.span.last_unix_ms - 1000), "the oldest went");
    }

    #[test]
    fn what_began_last_is_read_without_sorting_all_rows() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("history.db");
        drop(History::open(&file, MAX, 30, "eth0").expect("open"));
        let plan_of = |about: Option<&str>| {
            let connection = open_to_read(&file).expect("open");
            let mut statement =
                connection.prepare(&format!("EXPLAIN QUERY PLAN {}", statement(about.is_some()))).expect("prepared");
            let values = params![0, None::<String>, about, true, 100, 0];
            let steps = statement.query_map(values, |row| row.get::<_, String>(3)).expect("explained");
            steps.collect::<rusqlite::Result<Vec<_>>>().expect("steps").join("; ")
        };
        // One host is looked for in the order in which the rows lie on disk.
        let about = plan_of(Some("192.0.2.17"));
        assert!(about.starts_with("SCAN entry;") && about.contains("TEMP B-TREE"), "{about}");
        let plan = || plan_of(None);
        assert!(plan().contains("by_start") && !plan().contains("TEMP B-TREE"), "{}", plan());
        // A file of an earlier version gets it.
        Connection::open(&file).and_then(|it| it.execute_batch("DROP INDEX by_start")).expect("dropped");
        assert!(plan().contains("TEMP B-TREE"), "{}", plan());
        drop(History::open(&file, MAX, 30, "eth0").expect("open"));
        assert!(plan().contains("by_start"), "{}", plan());
    }

    #[test]
    fn a_full_file_of_an_earlier_version_goes_on_without_an_order() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("history.db");
        let max = 128 << 10;
        let fill = |history: &History, numbers: std::ops::Range<u64>| {
            let mut attack = attack();
            for number in numbers {
                (attack.number, attack.span.last_unix_ms) = (number, attack.span.last_unix_ms + 1);
                history.attack(&attack).expect("entered");
            }
        };
        fill(&History::open(&file, max, 30, "eth0").expect("open"), 0..1);
        Connection::open(&file).and_then(|it| it.execute_batch("DROP INDEX by_start; VACUUM")).expect("dropped");
        let pages = |name: &str| -> i64 {
            open_to_read(&file).and_then(|it| it.pragma_query_value(None, name, |row| row.get(0))).expect("a number")
        };
        // As full as its rows make it, and nothing is left for an index.
        let full = u64::try_from(pages("page_count")).expect("pages") * PAGE_BYTES;
        let history = History::open(&file, full, 30, "eth0").expect("a full file is opened");
        fill(&history, 1..40);
        assert_eq!(all(&file).last().map(|row| row.count), Some(attack().count));
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("hosts.db");
        Connection::open(&file).and_then(|it| it.execute_batch("CREATE TABLE host (name TEXT)")).expect("made");
        let before = std::fs::read(&file).expect("there");
        let error = History::open(&file, MAX, 30, "eth0").err().expect("refused").to_string();
        assert!(error.contains("another database"), "{error}");
        std::fs::write(place.path().join("text"), "no database, but long enough to be looked at").expect("written");
        assert!(History::open(&place.path().join("text"), MAX, 30, "eth0").is_err());
        assert_eq!(std::fs::read(&file).expect("there"), before);
    }

    /// A file of which more than one page was read skipped rows on the second.
    #[test]
    fn pages_of_several_histories_have_each_row_once_in_the_order_of_time() {
        let place = tempfile::tempdir().expect("a directory");
        let files = ["a.db", "b.db", "c.db"].map(|name| place.path().join(name));
        // The second one has all that is newest, the third one nothing.
        let began = [vec![1, 4, 7, 9], vec![2, 20, 21, 22, 23], vec![]];
        for (file, began) in files.iter().zip(&began) {
            let history = History::open(file, MAX, 400, "eth0").expect("opened");
            for from in began {
                let holding = holding(&format!("192.0.2.{from}"), "a", *from, from + 1, false);
                history.holding(&holding).expect("entered");
            }
        }
        let files = [files.to_vec(), vec![place.path().join("missing.db")]].concat();
        let mut expected: Vec<u64> = began.concat().iter().map(|from| START + from).collect();
        expected.sort_unstable();
        let firsts = |rows: Vec<Row>| rows.iter().map(|row| row.first_unix_ms).collect::<Vec<_>>();
        assert_eq!(firsts(read_all(&files, &Wanted::default())), expected);
        for size in 1..=4 {
            let page = |number: u32| Wanted { newest: Some((size, number * size)), ..Wanted::default() };
            let pages = (0..9).rev().flat_map(|number| firsts(read_all(&files, &page(number))));
            assert_eq!(pages.collect::<Vec<_>>(), expected, "pages of {size}");
        }
    }
}
