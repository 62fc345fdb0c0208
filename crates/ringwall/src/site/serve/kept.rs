//! The newest report of each host, and whom the service turned away: a database in the site's
//! directory.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use authority::rollout::told::Row;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, params};

use super::Kept;
use super::brought::{Brought, Sort};
use crate::failure::Failure;
use crate::report::Report;

/// Its name in the site's directory.
pub(in crate::site) const FILE: &str = "reports.db";
/// Hosts that are kept; a site's record has no more good certificates at once.
pub(super) const HOSTS_MAX: u64 = 20_000;
/// Reasons that are counted; there are fewer.
const REASONS_MAX: u64 = 64;
/// Tells our files from other databases.
const APPLICATION_ID: i32 = 0x5257_5250;
/// Of the tables' form.
const VERSION: i32 = 1;
/// How long a reader may hold the file.
const BUSY_MAX: Duration = Duration::from_secs(5);
const TABLES: &str = "CREATE TABLE host (name TEXT PRIMARY KEY, received_ms INTEGER NOT NULL, \
    made_ms INTEGER NOT NULL, report TEXT NOT NULL) WITHOUT ROWID; \
    CREATE TABLE refusal (word TEXT PRIMARY KEY, count INTEGER NOT NULL, last_ms INTEGER NOT NULL) WITHOUT ROWID;";

/// Made also in a file of an earlier version, which does without it.
const BROUGHT: &str = "CREATE TABLE IF NOT EXISTS brought (sort TEXT, name TEXT, number INTEGER NOT NULL, \
    host TEXT NOT NULL, received_ms INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (sort, name)) WITHOUT ROWID";

/// The database.
pub(in crate::site) struct Reports {
    connection: Connection,
}

/// What a host has brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::site) struct BroughtBy {
    pub(in crate::site) host: String,
    pub(in crate::site) what: Brought,
}

/// Somebody who was turned away.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(in crate::site) struct Refused {
    pub(in crate::site) reason: String,
    pub(in crate::site) count: u64,
    pub(in crate::site) last_unix_ms: u64,
}

/// Numbers of SQLite have a sign.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

impl Reports {
    /// Opens the database of the site in `directory`, which is made where it is not there.
    pub(in crate::site) fn open(directory: &Path) -> Result<Reports, Failure> {
        let file = directory.join(FILE);
        let made = OpenOptions::new().append(true).create(true).mode(0o600).open(&file);
        made.map_err(|error| Failure::file(&file, error, "run this as root, and name the site with --dir"))?;
        Reports::with(&file, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    /// Opens it to read; none where nobody has reported yet.
    pub(in crate::site) fn look(directory: &Path) -> Result<Option<Reports>, Failure> {
        let file = directory.join(FILE);
        if !file.exists() { Ok(None) } else { Reports::with(&file, OpenFlags::SQLITE_OPEN_READ_WRITE).map(Some) }
    }

    fn with(file: &Path, flags: OpenFlags) -> Result<Reports, Failure> {
        let prepared =
            Connection::open_with_flags(file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).and_then(|connection| {
                connection.busy_timeout(BUSY_MAX)?;
                prepare(&connection)?;
                Ok(Reports { connection })
            });
        prepared.map_err(|error| Failure::file(file, error, "end the service, and remove it: hosts report each minute"))
    }

    /// Keeps `report` as the newest of `host`, if it is.
    pub(in crate::site) fn keep(&self, host: &str, received_unix_ms: u64, report: &Report) -> Kept {
        self.try_keep(host, received_unix_ms, report).unwrap_or(Kept::Failed)
    }

    fn try_keep(&self, host: &str, received_unix_ms: u64, report: &Report) -> rusqlite::Result<Kept> {
        let made = "SELECT made_ms FROM host WHERE name = ?1";
        let before: Option<i64> = self.connection.query_row(made, [host], |row| row.get(0)).optional()?;
        match before {
            Some(before) if before >= signed(report.made_unix_ms) => return Ok(Kept::Older),
            None if self.count("host")? >= HOSTS_MAX => return Ok(Kept::Full),
            _ => {}
        }
        let put = "INSERT OR REPLACE INTO host (name, received_ms, made_ms, report) VALUES (?1, ?2, ?3, ?4)";
        let text = String::from_utf8(report.bytes()).unwrap_or_default();
        let values = params![host, signed(received_unix_ms), signed(report.made_unix_ms), text];
        self.connection.execute(put, values)?;
        Ok(Kept::Newest)
    }

    /// Keeps what `host` has brought, if nobody has brought that or what is newer.
    pub(in crate::site) fn bring(&self, host: &str, unix_ms: u64, brought: &Brought) -> Kept {
        self.try_bring(host, unix_ms, brought).unwrap_or(Kept::Failed)
    }

    fn try_bring(&self, host: &str, unix_ms: u64, brought: &Brought) -> rusqlite::Result<Kept> {
        let Brought { sort, name, number, text } = brought;
        let known = "SELECT number FROM brought WHERE sort = ?1 AND name = ?2";
        let known: Option<i64> =
            self.connection.query_row(known, params![sort.word(), name], |row| row.get(0)).optional()?;
        match known {
            Some(known) if known >= signed(*number) => return Ok(Kept::Older),
            None if *sort == Sort::Certificate && self.count("brought")? >= HOSTS_MAX => return Ok(Kept::Full),
            _ => {}
        }
        let put = "INSERT OR REPLACE INTO brought (sort, name, number, host, received_ms, text) \
            VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.connection.execute(put, params![sort.word(), name, signed(*number), host, signed(unix_ms), text])?;
        Ok(Kept::Newest)
    }

    /// What was brought of one sort, the newest last.
    pub(in crate::site) fn brought(&self, sort: Sort) -> Result<Vec<BroughtBy>, Failure> {
        let read = || {
            let text = "SELECT host, name, number, text FROM brought WHERE sort = ?1 ORDER BY number, name";
            let mut query = self.connection.prepare(text)?;
            let rows = query.query_map([sort.word()], |row| {
                let (host, number) = (row.get(0)?, unsigned(row.get(2)?));
                Ok(BroughtBy { host, what: Brought { sort, name: row.get(1)?, number, text: row.get(3)? } })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(Failure::new)
    }

    /// How much was brought.
    pub(in crate::site) fn count_brought(&self) -> Result<u64, Failure> {
        self.count("brought").map_err(Failure::new)
    }

    /// Forgets what was brought, unless something newer has been since it was read.
    pub(in crate::site) fn forget_brought<'b>(
        &self,
        all: impl IntoIterator<Item = &'b BroughtBy>,
    ) -> Result<(), Failure> {
        let forget = "DELETE FROM brought WHERE sort = ?1 AND name = ?2 AND number <= ?3";
        for BroughtBy { what: Brought { sort, name, number, .. }, .. } in all {
            let values = params![sort.word(), name, signed(*number)];
            self.connection.execute(forget, values).map_err(Failure::new)?;
        }
        Ok(())
    }

    /// So many more were turned away.
    pub(super) fn count_refused(&self, counts: &[(String, u64)], unix_ms: u64) -> rusqlite::Result<()> {
        let text = "INSERT INTO refusal (word, count, last_ms) VALUES (?1, ?2, ?3) ON CONFLICT (word) DO UPDATE \
            SET count = count + excluded.count, last_ms = excluded.last_ms";
        for (word, count) in counts {
            if self.count("refusal")? < REASONS_MAX {
                self.connection.execute(text, params![word, signed(*count), signed(unix_ms)])?;
            }
        }
        Ok(())
    }

    fn count(&self, table: &str) -> rusqlite::Result<u64> {
        self.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).map(unsigned)
    }

    /// All of them, by name of the host. What cannot be read is of another version, and comes
    /// again.
    pub(in crate::site) fn all(&self) -> Result<Vec<Row>, Failure> {
        let read = || {
            let mut query = self.connection.prepare("SELECT name, received_ms, report FROM host ORDER BY name")?;
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            rows.collect::<rusqlite::Result<Vec<(String, i64, String)>>>()
        };
        let row = |(host, received, text): (String, i64, String)| {
            let report = Report::parse(text.as_bytes()).ok()?;
            Some(Row { host, received_unix_ms: unsigned(received), report })
        };
        read().map(|rows| rows.into_iter().filter_map(row).collect()).map_err(Failure::new)
    }

    /// Who was turned away, by reason.
    pub(in crate::site) fn refused(&self) -> Result<Vec<Refused>, Failure> {
        let read = || {
            let mut query = self.connection.prepare("SELECT word, count, last_ms FROM refusal ORDER BY word")?;
            let rows = query.query_map([], |row| {
                let (count, last) = (unsigned(row.get(1)?), unsigned(row.get(2)?));
                Ok(Refused { reason: row.get(0)?, count, last_unix_ms: last })
            })?;
            rows.collect::<rusqlite::Result<Vec<Refused>>>()
        };
        read().map_err(Failure::new)
    }

    /// Forgets hosts that have not reported since then.
    pub(super) fn forget_before(&self, unix_ms: u64) -> rusqlite::Result<()> {
        self.connection.execute("DELETE FROM host WHERE received_ms < ?1", [signed(unix_ms)]).map(drop)
    }
}

/// Nothing is changed in a file that is somebody else's.
fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (number("application_id")?, number("user_version")?) {
        (APPLICATION_ID, VERSION) => return connection.execute_batch(BROUGHT),
        (0, 0) if tables == 0 => {}
        _ => return Err(rusqlite::Error::InvalidPath("it is another database, or of another version".into())),
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.execute_batch(&format!("BEGIN; {TABLES} {BROUGHT}; COMMIT;"))?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[test]
    fn the_newest_report_of_each_host_is_kept_and_one_that_comes_again_is_not() {
        let place = tempfile::tempdir().expect("directory");
        assert!(Reports::look(place.path()).expect("looked").is_none());
        let reports = Reports::open(place.path()).expect("opened");
        assert_eq!(reports.keep("a", 2000, &report(1000)), Kept::Newest);
        assert_eq!(reports.keep("a", 3000, &report(1000)), Kept::Older, "replayed");
        assert_eq!(reports.keep("a", 3000, &report(999)), Kept::Older);
        assert_eq!(reports.keep("a", 4000, &report(1001)), Kept::Newest);
        assert_eq!(reports.keep("b", 4000, &report(7)), Kept::Newest, "each has its own time");
        drop(reports);
        let reports = Reports::open(place.path()).expect("opened again");
        assert_eq!(reports.keep("a", 5000, &report(1001)), Kept::Older, "also after a restart");
        let all = reports.all().expect("read");
        let told: Vec<_> = all.iter().map(|row| (row.host.as_str(), row.received_unix_ms)).collect();
        assert_eq!(told, [("a", 4000), ("b", 4000)]);
        assert_eq!(all[0].report, report(1001));
        reports.forget_before(4001).expect("forgot");
        assert!(reports.all().expect("read").is_empty());
    }

    #[test]
    fn refusals_add_up() {
        let place = tempfile::tempdir().expect("directory");
        let reports = Reports::open(place.path()).expect("opened");
        for unix_ms in [10, 20] {
            reports.count_refused(&[("revoked".to_owned(), 3), ("no-tls".to_owned(), 1)], unix_ms).expect("counted");
        }
        let refused = reports.refused().expect("read");
        let wanted = |reason: &str, count| Refused { reason: reason.to_owned(), count, last_unix_ms: 20 };
        assert_eq!(refused, [wanted("no-tls", 2), wanted("revoked", 6)]);
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let place = tempfile::tempdir().expect("directory");
        let file = place.path().join(FILE);
        let other = Connection::open(&file).expect("made");
        other.execute_batch("CREATE TABLE theirs (x)").expect("made");
        let line = Reports::open(place.path()).err().expect("refused").to_string();
        assert!(line.contains("another database"), "{line}");
    }
}
