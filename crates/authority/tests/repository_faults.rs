//! A crash at any point loses nothing acknowledged.
//!
//! This program runs itself once more as a writer that makes a fixed series of changes and notes each outcome in a file,
//! with `writev`, which nothing else here uses. strace kills the writer at its first write to the disk, then at its second,
//! and so on until one lives; or it makes one sync after another fail. Killing keeps what the kernel had been handed, so
//! whether it was synced before it was acknowledged is read from a trace, and what a power cut does to the end of the log is
//! done to copies of it.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{IoSlice, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use authority::directory::Sharing;
use authority::limits::MAX_KEY_LEN;
use authority::repository::{HostEntry, NewHost, SqliteStore, Store, StoreError, Subnet};
use identity::certificate::Role;
use rusqlite::Connection;
use tempfile::TempDir;
use wire::MacAddress;

const NOW_UNIX_S: u64 = 1_800_000_000;
const PLACE: &str = "RINGWALL_FAULTS_PLACE";
const STEPS: &str = "RINGWALL_FAULTS_STEPS";
const DATABASE: &str = "hosts.db";
const BACKUP: &str = "backup.db";
const NOTES: &str = "notes";

/// Changes of each kind.
const SHORT: usize = 10;
/// So many that SQLite moves the log into the database on the way, at 1000 pages, and begins the log anew.
const LONG: usize = 180;
/// After this step the writer closes the repository and opens it again.
const REOPEN_AFTER: usize = 4;
/// strace counts the calls of each thread, and the thread of the test runner also opens files. The writer's thread opens more
/// at first, so that the numbers above this one are its own.
const OPENED_FIRST: usize = 64;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn host(name: &str, last: u8, key: &[u8]) -> NewHost {
    NewHost {
        name: name.to_owned(),
        role: Role::Host,
        mac: Some(MacAddress([2, 0, 0, 0, 0, last])),
        addresses: vec![ip(last), Ipv4Addr::new(10, 0, 1, last)],
        algorithm: 1,
        key: key.to_vec(),
        not_before_unix: NOW_UNIX_S,
        not_after_unix: NOW_UNIX_S + 1000,
        subnets: vec![Subnet::new([10, 0, 2, 0].into(), 24).expect("subnet"), Subnet::new(ip(0), 24).expect("subnet")],
    }
}

/// One change of the series. The outcome of some depends on whether those before them were made; each leaves a trace.
fn step(store: &dyn Store, number: usize) -> Result<(), StoreError> {
    let add = |host: &NewHost| store.add(host, Sharing::Refused, NOW_UNIX_S).map(drop);
    match number {
        0 => add(&host("alpha", 1, &[1; 32])),
        1 => add(&host("beta", 2, &[2; 32])),
        2 => store.replace_key(ip(1), &[1; 32], 2, &[3; 65]).map(drop),
        3 => store.revoke("beta").map(drop),
        4 => add(&host("gamma", 3, &[4; 32])),
        5 => add(&host("beta", 4, &[5; 32])),
        6 => store.rekey("alpha", 1, &[6; 32]).map(drop),
        7 => store.bind(1, Ipv4Addr::new(10, 0, 2, 7), NOW_UNIX_S),
        8 => store.unbind(1, ip(1)).map(drop),
        9 => store.revoke("gamma").map(drop),
        _ => add(&host(&format!("host-{number}"), u8::try_from(number).expect("small"), &[7; MAX_KEY_LEN])),
    }
}

/// Where a killed process and a failed sync are tried: in memory, if that is a place for files. Nothing there depends on the
/// disk, and hundreds of runs would wait for it.
fn place() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("directory")
}

/// What there is after each step but those left out; the first is before any step.
fn states(steps: usize, left_out: &BTreeSet<usize>) -> Vec<Vec<HostEntry>> {
    let place = place();
    let store = SqliteStore::create(&place.path().join(DATABASE)).expect("created");
    let mut states = vec![vec![]];
    for number in 0..steps {
        if !left_out.contains(&number) {
            step(&store, number).expect("done");
        }
        states.push(store.list().expect("listed"));
    }
    states
}

/// The writer; a test that does nothing unless it is started by another one.
#[test]
fn writer() {
    let Some(place) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let steps = std::env::var(STEPS).expect("steps").parse().expect("number");
    for _ in 0..OPENED_FIRST {
        drop(File::open("/dev/null").expect("opened"));
    }
    let mut notes = File::options().create(true).append(true).open(place.join(NOTES)).expect("notes");
    let mut note = |text: String| {
        let line = text + "\n";
        assert_eq!(notes.write_vectored(&[IoSlice::new(line.as_bytes())]).expect("noted"), line.len());
    };
    let path = place.join(DATABASE);
    let mut opened = SqliteStore::create(&path);
    for number in 0..steps {
        let Ok(store) = &opened else { return note("failed to open".to_owned()) };
        match step(store, number) {
            Ok(()) => note(format!("done {number}")),
            Err(_) => note(format!("failed {number}")),
        }
        if number == REOPEN_AFTER {
            note("closing".to_owned());
            drop(opened);
            opened = SqliteStore::open(&path);
        }
    }
    let Ok(store) = &opened else { return note("failed to open".to_owned()) };
    match store.backup_to(&place.join(BACKUP)) {
        Ok(()) => note("copied".to_owned()),
        Err(_) => note("failed to copy".to_owned()),
    }
    note("closing".to_owned());
}

/// What became of a writer.
struct Outcome {
    place: TempDir,
    was_killed: bool,
    trace: String,
}

impl Outcome {
    fn notes(&self) -> Vec<String> {
        let text = fs::read_to_string(self.place.path().join(NOTES)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The steps whose note begins with `word`.
    fn noted(&self, word: &str) -> BTreeSet<usize> {
        self.notes().iter().filter_map(|note| note.strip_prefix(word)?.trim().parse().ok()).collect()
    }

    fn database(&self) -> PathBuf {
        self.place.path().join(DATABASE)
    }
}

/// Runs a writer under strace.
fn run_writer(steps: usize, arguments: &[&str]) -> Outcome {
    let place = place();
    let trace = tempfile::NamedTempFile::new().expect("file");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "32", "-o"]).arg(trace.path()).args(arguments);
    command.arg(std::env::current_exe().expect("this program")).args(["--exact", "writer", "--test-threads=1"]);
    let output = command.env(PLACE, place.path()).env(STEPS, steps.to_string()).output().expect("strace");
    let was_killed = output.status.signal() == Some(9);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(was_killed || output.status.success(), "{:?}: {said}", output.status);
    Outcome { place, was_killed, trace: fs::read_to_string(trace.path()).expect("trace") }
}

/// Whether strace can be used; otherwise says why `test` is left out.
fn can_trace(test: &str) -> bool {
    let reason = match Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).output() {
        Err(error) => format!("strace does not start: {error}"),
        Ok(output) if !output.status.success() => {
            format!("strace may not trace: {}", String::from_utf8_lossy(&output.stderr).trim())
        }
        Ok(_) => return true,
    };
    // Not by a macro: what those print is kept back while the test passes.
    writeln!(std::io::stderr(), "skipped: {test}: {reason}").expect("said");
    false
}

fn assert_sound(path: &Path) {
    let connection = Connection::open(path).expect("opened");
    let said: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
    assert_eq!(said, "ok");
    let mut orphans = connection.prepare("PRAGMA foreign_key_check").expect("prepared");
    assert!(!orphans.exists([]).expect("checked"));
}

/// What a killed writer left has every step that was acknowledged, at most the next one, and the rest can be done.
fn assert_nothing_lost(outcome: &Outcome, states: &[Vec<HostEntry>], context: &str) {
    let acknowledged = outcome.noted("done").len();
    let path = outcome.database();
    let backup = outcome.place.path().join(BACKUP);
    if backup.exists() {
        let copied = SqliteStore::open(&backup).expect(context).list();
        assert_eq!(copied.as_ref(), Ok(&states[states.len() - 1]), "{context}: a copy is there whole or not at all");
    }
    if !path.exists() {
        assert_eq!(acknowledged, 0, "{context}");
        SqliteStore::create(&path).expect(context);
    }
    assert_sound(&path);
    let store = SqliteStore::open(&path).expect(context);
    let found = store.list().expect(context);
    let candidates = acknowledged..(acknowledged + 2).min(states.len());
    let steps_there = candidates.clone().find(|steps| states[*steps] == found);
    let Some(steps_there) = steps_there else { panic!("{context}: not after any of {candidates:?}: {found:#?}") };
    for number in steps_there..states.len() - 1 {
        step(&store, number).expect(context);
    }
    assert_eq!(store.list().as_ref(), Ok(&states[states.len() - 1]), "{context}");
    drop(store);
    assert_sound(&path);
}

/// Kills writers at each call of `system_call` from `first` on until one lives or `runs` are over; how many were killed.
fn kill_at_each(system_call: &str, steps: usize, first: usize, runs: usize) -> usize {
    let states = states(steps, &BTreeSet::new());
    for number in first..first + runs {
        let inject = format!("inject={system_call}:signal=SIGKILL:when={number}");
        let outcome = run_writer(steps, &["-e", &format!("trace={system_call}"), "-e", &inject]);
        assert_nothing_lost(&outcome, &states, &format!("{system_call} {number}"));
        if !outcome.was_killed {
            assert_eq!(outcome.noted("done").len(), steps);
            return number - first;
        }
    }
    runs
}

/// Broke `insert` in the store by committing before the host's addresses: it was found without them, here and in the three
/// other tests that look at what a crash leaves.
#[test]
fn killed_at_any_write_nothing_is_lost() {
    if !can_trace("killed_at_any_write_nothing_is_lost") {
        return;
    }
    let killed = kill_at_each("pwrite64", SHORT, 1, usize::MAX - 1);
    // Each step writes more than two pages, each with its header in the log.
    assert!(killed > SHORT * 4, "killed {killed} times");
}

#[test]
fn killed_at_any_sync_nothing_is_lost() {
    if !can_trace("killed_at_any_sync_nothing_is_lost") {
        return;
    }
    let killed: usize = ["fsync", "fdatasync"].iter().map(|call| kill_at_each(call, SHORT, 1, usize::MAX - 1)).sum();
    assert!(killed >= SHORT, "killed {killed} times");
}

#[test]
fn killed_where_files_come_and_go_nothing_is_lost() {
    if !can_trace("killed_where_files_come_and_go_nothing_is_lost") {
        return;
    }
    for system_call in ["renameat2", "unlink", "ftruncate"] {
        assert!(kill_at_each(system_call, SHORT, 1, usize::MAX - 1) > 0, "{system_call}");
    }
    assert!(kill_at_each("openat", SHORT, OPENED_FIRST + 1, usize::MAX - OPENED_FIRST - 1) > 4);
}

/// One call of a trace: its name, the path of its first argument, and the line.
fn calls(trace: &str) -> Vec<(String, String, &str)> {
    let call = |line| -> Option<(String, String, &str)> {
        let (_, call): (&str, &str) = str::split_once(line, ' ')?;
        let (name, arguments) = call.trim_start().split_once('(')?;
        let path = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(path, _)| path);
        Some((name.to_owned(), path.unwrap_or_default().to_owned(), line))
    };
    trace.lines().filter_map(call).collect()
}

/// The writer's calls that change or sync files, in order.
const CHANGES: &str = "trace=pwrite64,writev,fsync,fdatasync,ftruncate,unlink,renameat2,openat";

/// Kills from a little before the log is moved into the database until the log has begun anew.
#[test]
fn killed_while_the_log_is_moved_nothing_is_lost() {
    if !can_trace("killed_while_the_log_is_moved_nothing_is_lost") {
        return;
    }
    let whole = run_writer(LONG, &["-e", "trace=pwrite64,writev"]);
    let all = calls(&whole.trace);
    // Behind the last note before the next closing: what closing moves is killed at elsewhere.
    let is_reopened = all.iter().position(|(_, _, line)| line.contains("done 5")).expect("note");
    let is_write = |(name, _, _): &&(String, String, &str)| name == "pwrite64";
    let moved = all.iter().skip(is_reopened).position(|(name, path, _)| name == "pwrite64" && path.ends_with(DATABASE));
    let moved = is_reopened + moved.expect("the log is moved on the way");
    let closing = all.iter().rposition(|(_, _, line)| line.contains("closing")).expect("note");
    let anew = all.iter().skip(moved).position(|(_, path, line)| path.ends_with("-wal") && line.contains(", 32, 0)"));
    let anew = moved + anew.expect("the log begins anew on the way");
    assert!(anew < closing, "before it is closed");
    let [first, last] = [moved, anew].map(|end| all.iter().take(end).filter(is_write).count());
    let first = first.saturating_sub(8);
    let runs = last + 12 - first;
    assert_eq!(kill_at_each("pwrite64", LONG, first, runs), runs);
}

/// What a power cut would lose: the files, and the directory for their names, that were changed and not synced since.
struct Unsynced<'a> {
    directory: &'a str,
    paths: BTreeSet<String>,
    has_log: bool,
    notes: usize,
    /// How often the log was removed or begun anew.
    given_up: usize,
}

impl Unsynced<'_> {
    fn follow(&mut self, (name, path, line): &(String, String, &str)) {
        let is_done = !line.contains("= -1 ");
        match name.as_str() {
            // What stands in shared memory is made anew from the log.
            "pwrite64" | "ftruncate" if path.starts_with(self.directory) && !path.ends_with("-shm") => {
                if path.ends_with("-wal") && line.contains(", 32, 0)") {
                    self.give_up_log(line);
                }
                self.paths.insert(path.clone());
            }
            "fsync" | "fdatasync" if is_done => drop(self.paths.remove(path)),
            "openat" if is_done && line.contains("hosts.db-wal\"") && !self.has_log => {
                self.paths.insert(self.directory.to_owned());
                self.has_log = true;
            }
            "unlink" => {
                if line.contains("hosts.db-wal\"") {
                    self.give_up_log(line);
                    self.has_log = false;
                }
                self.paths.retain(|path| !line.contains(&format!("\"{path}\"")));
            }
            "renameat2" => {
                assert!(!self.paths.iter().any(|path| path.contains("/.new-")), "{line} with {:?}", self.paths);
                self.paths.insert(self.directory.to_owned());
            }
            "writev" if path.ends_with(NOTES) => self.note(line),
            _ => {}
        }
    }

    fn give_up_log(&mut self, line: &str) {
        assert!(!self.paths.contains(&format!("{}/{DATABASE}", self.directory)), "{line}");
        self.given_up += 1;
    }

    fn note(&mut self, line: &str) {
        self.notes += 1;
        if line.contains("failed") {
            // What was not acknowledged may be lost; what was acknowledged before it had been synced at its own note.
            self.paths.retain(|path| !path.ends_with("-wal"));
        }
        // The log has what of the database is not synced.
        let lost = self.paths.iter().find(|path| !path.ends_with(DATABASE));
        assert!(lost.is_none() || line.contains("failed") || line.contains("closing"), "{line}: {lost:?} is unsynced");
    }
}

/// Follows a whole trace: at each note of a success everything before it has been synced, and the log is given up only when
/// the database that has taken its place was.
fn follow<'a>(outcome: &'a Outcome, all: &[(String, String, &str)]) -> Unsynced<'a> {
    let directory = outcome.place.path().to_str().expect("text");
    let mut unsynced = Unsynced { directory, paths: BTreeSet::new(), has_log: false, notes: 0, given_up: 0 };
    all.iter().for_each(|call| unsynced.follow(call));
    unsynced
}

/// Broke `synchronous`: with `OFF` and with `NORMAL` the first acknowledged step fails this test. Broke `sync_directory` behind
/// the renaming: the copy fails it.
#[test]
fn what_is_acknowledged_was_synced_before() {
    if !can_trace("what_is_acknowledged_was_synced_before") {
        return;
    }
    let outcome = run_writer(LONG, &["-e", CHANGES]);
    let unsynced = follow(&outcome, &calls(&outcome.trace));
    // Every step, the copy, two closings; the log begins, ends and begins, is moved and begun anew, and ends.
    assert_eq!(unsynced.notes, LONG + 3);
    assert!(unsynced.given_up >= 5, "{}", unsynced.given_up);
}

/// A step whose sync fails is not acknowledged; nothing of it is there, and those behind it go on.
///
/// Broke `synchronous`: with `OFF` and with `NORMAL` the set of steps that failed is not that of all steps. Broke `write` by
/// passing over the error of the commit: a step was acknowledged behind a sync that failed. Broke `sync_directory` in `open`:
/// SQLite passed over the error of its own, and the name of the log was unsynced.
#[test]
fn a_failed_sync_is_no_acknowledgement() {
    if !can_trace("a_failed_sync_is_no_acknowledgement") {
        return;
    }
    fail_each("fsync,fdatasync:error=EIO");
}

/// The same where the disk is full.
#[test]
fn a_full_disk_is_no_acknowledgement() {
    if can_trace("a_full_disk_is_no_acknowledgement") {
        fail_each("pwrite64:error=ENOSPC");
    }
}

/// Runs writers with one failing call after another until none of theirs fails.
fn fail_each(failure: &str) {
    let (mut failed, mut notes) = (BTreeSet::new(), BTreeSet::new());
    for number in 1.. {
        let outcome = run_writer(SHORT, &["-e", CHANGES, "-e", &format!("inject={failure}:when={number}")]);
        let all = calls(&outcome.trace);
        follow(&outcome, &all);
        let Some(at) = all.iter().position(|(_, _, line)| line.contains("(INJECTED)")) else { break };
        assert_after_failure(&outcome, &all, at);
        failed.extend(outcome.noted("failed"));
        notes.extend(outcome.notes());
    }
    assert_eq!(failed, (0..SHORT).collect());
    assert!(notes.contains("failed to open") && notes.contains("failed to copy"), "{notes:?}");
}

fn assert_after_failure(outcome: &Outcome, all: &[(String, String, &str)], at: usize) {
    let context = all[at].2;
    let is_note = |(name, _, _): &&(String, String, &str)| name == "writev";
    let is_closing = all[..at].iter().rfind(is_note).is_some_and(|(_, _, line)| line.contains("closing"));
    let next = all[at..].iter().find(is_note).map_or("", |(_, _, line)| *line);
    // A closing that cannot move the log leaves it.
    if all[at].1.ends_with("-wal") && !is_closing {
        assert!(next.contains("failed"), "{context}, and then {next}");
    }
    if outcome.notes().iter().any(|note| note == "failed to open") {
        // The repository may have its name already, but nothing is in it that was not acknowledged.
        let done = outcome.noted("done").len();
        let opened = outcome.database().exists().then(|| SqliteStore::open(&outcome.database()).expect(context));
        let found = opened.map_or(vec![], |store| store.list().expect(context));
        assert_eq!(found, states(done, &BTreeSet::new())[done], "{context}");
        return;
    }
    assert_sound(&outcome.database());
    let found = SqliteStore::open(&outcome.database()).expect(context).list();
    let failed = outcome.noted("failed");
    assert_eq!(failed.len() + outcome.noted("done").len(), SHORT, "{context}");
    assert_eq!(found.as_ref(), Ok(&states(SHORT, &failed)[SHORT]), "{context}");
}

/// Length of a frame of the log: its header and a page.
const FRAME_LEN: usize = 24 + 4096;

/// The places in `from..to` where a log is cut: all in each frame's header and about it, and one in 211 of the rest.
fn cuts(from: usize, to: usize) -> Vec<usize> {
    let is_at_header = |at: &usize| (at + 4).saturating_sub(32) % FRAME_LEN < 40;
    (from..to).filter(|at| is_at_header(at) || at % 211 == 0).collect()
}

/// What a power cut leaves of a log whose last step was not synced: its beginning, its length with zeros at the end, or all
/// but one sector of 512 bytes that was not written yet. Everything before that step is there; the step is whole or not.
#[test]
fn a_log_with_a_torn_end_has_all_that_was_synced() {
    let place = place();
    let path = place.path().join(DATABASE);
    let log = place.path().join("hosts.db-wal");
    let store = SqliteStore::create(&path).expect("created");
    let states = states(SHORT, &BTreeSet::new());
    let mut tried = 0;
    for number in 0..SHORT {
        let synced = fs::read(&log).expect("log").len();
        step(&store, number).expect("done");
        let (database, whole) = (fs::read(&path).expect("database"), fs::read(&log).expect("log"));
        for cut in cuts(synced, whole.len()) {
            let mut zeroed = whole.clone();
            zeroed[cut..].fill(0);
            assert_eq!(after_power_cut(&database, &whole[..cut]), states[number], "step {number} cut at {cut}");
            let found = after_power_cut(&database, &zeroed);
            assert!(states[number..number + 2].contains(&found), "step {number} zero from {cut}: {found:#?}");
            tried += 2;
        }
        for sector in (synced.next_multiple_of(512)..whole.len()).step_by(512) {
            let mut holed = whole.clone();
            holed.iter_mut().skip(sector).take(512).for_each(|byte| *byte = 0);
            let found = after_power_cut(&database, &holed);
            assert!(states[number..number + 2].contains(&found), "step {number} without {sector}: {found:#?}");
            tried += 1;
        }
        assert_eq!(after_power_cut(&database, &whole), states[number + 1]);
    }
    assert!(tried > SHORT * 100, "{tried}");
}

fn after_power_cut(database: &[u8], log: &[u8]) -> Vec<HostEntry> {
    let place = place();
    let path = place.path().join(DATABASE);
    fs::write(&path, database).expect("written");
    fs::write(place.path().join("hosts.db-wal"), log).expect("written");
    let store = SqliteStore::open(&path).expect("opened");
    let found = store.list().expect("listed");
    store.add(&host("omega", 200, &[9; 32]), Sharing::Refused, NOW_UNIX_S).expect("it goes on");
    drop(store);
    assert_sound(&path);
    found
}
