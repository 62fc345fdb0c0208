//! The lab leaves nothing behind.
//!
//! Everything a run makes carries the run's name: namespaces as a prefix, processes (and their children) as a variable
//! in their environment, files below one directory. So one stateless [`sweep`] removes a run, whether it ended well, by
//! Ctrl-C, by a panic, or was killed long ago and is found by `ringwall-lab down`. Processes are ended by their id.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// Variable that marks every process of a run.
const MARK: &str = "RINGWALL_LAB";
/// The run of the LAN that `ringwall-lab up` leaves standing.
const STANDING: &str = "rlup";
/// Where runs keep their files: only root writes there, so nobody can have laid anything in the way.
const DIRECTORIES: &str = "/run";
/// Where `ip netns` keeps the names of namespaces.
const NAMESPACES: &str = "/run/netns";
/// Where daemons give names to programs in the kernel.
const KERNEL_NAMES: &str = "/sys/fs/bpf/ringwall";
/// How long processes may take to end before they are killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// What this process has started; programs have one, tests that run beside each other have one
/// each.
static RUNS: Mutex<Vec<&'static Run>> = Mutex::new(Vec::new());
/// Readers make things; the one writer is the clean-up, which never lets go again.
static GATE: RwLock<()> = RwLock::new(());

/// One run of the lab, named after its process, with a letter if there are several in it, or the
/// standing LAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    name: String,
}

impl Run {
    /// The run of this process.
    fn transient() -> Run {
        Run { name: format!("rl{}", std::process::id()) }
    }

    /// The run of the LAN that outlives the program that made it.
    #[must_use]
    pub fn standing() -> Run {
        Run { name: STANDING.to_owned() }
    }

    /// The run whose name starts `entry`, the name of a namespace or directory; `None` if it is not the lab's.
    fn of(entry: &str) -> Option<Run> {
        let name = entry.split('-').next()?;
        let known = name == STANDING || process_of(name).is_some();
        known.then(|| Run { name: name.to_owned() })
    }

    /// Name of the namespace of `member`.
    #[must_use]
    pub fn namespace(&self, member: &str) -> String {
        format!("{}-{member}", self.name)
    }

    /// Where the run keeps its files.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        Path::new(DIRECTORIES).join(format!("{}-lab", self.name))
    }

    /// Marks `command` as belonging to this run.
    pub fn mark(&self, command: &mut Command) {
        command.env(MARK, &self.name);
    }

    /// Whether the process that made this run is gone.
    fn is_dead(&self) -> bool {
        let pid = process_of(&self.name).unwrap_or_default();
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        !name.starts_with("ringwall-lab")
    }
}

/// The process in the name of a run: `123` of `rl123` and of `rl123b`.
fn process_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("rl")?;
    let digits = rest.strip_suffix(|letter: char| letter.is_ascii_lowercase()).unwrap_or(rest);
    let known = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    known.then_some(digits)
}

/// Starts a run and arms the clean-up for signals and panics. A process that has one gets that one.
///
/// # Errors
/// Not root, or the directory or the signal handler cannot be made.
pub fn begin(run: Run) -> Result<&'static Run, Failure> {
    let mut runs = runs();
    if let Some(run) = runs.first() {
        make_directory(run)?;
        return Ok(run);
    }
    let run = start(&mut runs, run)?;
    sweep_on_panic(run);
    Ok(run)
}

/// Checks for root, makes the directory of `run` and arms the clean-up for signals.
fn start(runs: &mut Vec<&'static Run>, run: Run) -> Result<&'static Run, Failure> {
    if !geteuid().is_root() {
        return Err(Failure::NotRoot);
    }
    make_directory(&run)?;
    if runs.is_empty() {
        sweep_on_signal()?;
    }
    let run = Box::leak(Box::new(run));
    runs.push(run);
    Ok(run)
}

fn make_directory(run: &Run) -> Result<(), Failure> {
    let directory = run.directory();
    fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))
}

fn runs() -> MutexGuard<'static, Vec<&'static Run>> {
    RUNS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the run of this process; see [`begin`].
///
/// # Errors
/// As [`begin`].
pub fn begin_transient() -> Result<&'static Run, Failure> {
    begin(Run::transient())
}

/// Starts one more run of this process, whose names no other has; `None` where there are 26. Nobody
/// removes it on a panic but the caller.
///
/// # Errors
/// As [`begin`].
pub fn begin_beside() -> Result<Option<&'static Run>, Failure> {
    let mut runs = runs();
    let letter = (b'a'..=b'z').nth(runs.len()).map(char::from);
    let run = letter.map(|letter| Run { name: format!("rl{}{letter}", std::process::id()) });
    run.map(|run| start(&mut runs, run)).transpose()
}

/// Permission to make a process or a namespace. While it is held the clean-up waits; once it started there is none.
///
/// # Errors
/// [`Failure::Interrupted`] when the clean-up is under way.
pub fn permit() -> Result<RwLockReadGuard<'static, ()>, Failure> {
    GATE.try_read().map_err(|_| Failure::Interrupted)
}

fn sweep_on_signal() -> Result<(), Failure> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(Failure::io("arming signal handlers"))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let _closed = GATE.write();
            eprintln!("ringwall-lab: interrupted, cleaning up");
            for run in runs().iter() {
                report(&sweep(run));
            }
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

fn sweep_on_panic(run: &'static Run) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |cause| {
        usual(cause);
        report(&sweep(run));
    }));
}

/// Prints what could not be removed.
pub fn report(left: &[String]) {
    for what in left {
        eprintln!("ringwall-lab: left behind: {what}");
    }
}

/// Removes everything of `run`: processes, namespaces, mounts, files. Returns what is still there.
#[must_use]
pub fn sweep(run: &Run) -> Vec<String> {
    end_processes(run);
    let mut left = Vec::new();
    for name in namespaces_of(run) {
        forget_kernel_names(&name);
        if !quiet(Command::new("ip").args(["netns", "del", &name])) {
            left.push(format!("namespace {name}"));
        }
    }
    let directory = run.directory();
    left.extend(unmount_all(&directory));
    if directory.exists() && fs::remove_dir_all(&directory).is_err() {
        left.push(format!("directory {}", directory.display()));
    }
    left
}

/// Removes the names of programs in the kernel around cards of this namespace, which outlive daemons and namespaces.
fn forget_kernel_names(namespace: &str) {
    let Ok(file) = fs::metadata(Path::new(NAMESPACES).join(namespace)) else { return };
    let prefix = format!("{}_", file.ino());
    let directory = Path::new(KERNEL_NAMES);
    for name in entries(directory).into_iter().filter(|name| name.starts_with(&prefix)) {
        let _gone = fs::remove_file(directory.join(name));
    }
}

/// Removes what this process made, except a LAN that went `well` and is to stay. Returns what is still there.
#[must_use]
pub fn sweep_own(well: bool) -> Vec<String> {
    let own = runs().first().copied();
    match own {
        Some(run) if *run != Run::standing() || !well => sweep(run),
        _ => Vec::new(),
    }
}

/// Removes the standing LAN and whatever dead runs left. Returns the names of the runs it removed and what stays.
#[must_use]
pub fn sweep_leftovers() -> (Vec<String>, Vec<String>) {
    let mut removed = Vec::new();
    let mut left = Vec::new();
    for run in runs_found() {
        if run == Run::standing() || run.is_dead() {
            left.extend(sweep(&run));
            removed.push(run.name);
        }
    }
    (removed, left)
}

fn runs_found() -> Vec<Run> {
    let marks = process_ids().into_iter().filter_map(mark_of);
    let mut runs: Vec<Run> = entries(Path::new(NAMESPACES))
        .into_iter()
        .chain(entries(Path::new(DIRECTORIES)).into_iter().filter(|name| name.ends_with("-lab")))
        .chain(marks)
        .filter_map(|name| Run::of(&name))
        .collect();
    runs.sort_by(|one, other| one.name.cmp(&other.name));
    runs.dedup();
    runs
}

fn end_processes(run: &Run) {
    for (signal, patience) in [(Signal::TERM, PATIENCE), (Signal::KILL, PATIENCE)] {
        let mut members = members(run);
        for &pid in &members {
            // A process that ended meanwhile is what is wanted.
            let _gone = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
        }
        let deadline = Instant::now() + patience;
        while !members.is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
            members.retain(|&pid| mark_of(pid).as_deref() == Some(&run.name));
        }
    }
}

/// Processes of `run`, without this one, which may have been started on a host of the run.
fn members(run: &Run) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).ok();
    let others = process_ids().into_iter().filter(|&pid| Some(pid) != own);
    others.filter(|&pid| mark_of(pid).as_deref() == Some(&run.name)).collect()
}

fn process_ids() -> Vec<i32> {
    entries(Path::new("/proc")).iter().filter_map(|name| name.parse().ok()).collect()
}

/// The run that marks process `pid`, if any. A process that is gone, or a zombie, has no environment.
fn mark_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{MARK}=");
    let value = environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(prefix.as_bytes()))?;
    String::from_utf8(value.to_vec()).ok()
}

fn namespaces_of(run: &Run) -> Vec<String> {
    let prefix = run.namespace("");
    entries(Path::new(NAMESPACES)).into_iter().filter(|name| name.starts_with(&prefix)).collect()
}

/// Ends every mount below `directory`, in this program's mount tree and in that of process 1, where daemons pin the
/// namespaces of their cards. Returns what is still mounted.
fn unmount_all(directory: &Path) -> Vec<String> {
    let mut left = Vec::new();
    for process in ["self", "1"] {
        for point in mounts_below(directory, process) {
            let target = format!("--mount=/proc/{process}/ns/mnt");
            if !quiet(Command::new("nsenter").args([&target, "--", "umount", "--lazy", &point])) {
                left.push(format!("mount {point}"));
            }
        }
    }
    left
}

/// Mount points below `directory` that `process` sees, deepest first.
fn mounts_below(directory: &Path, process: &str) -> Vec<String> {
    let table = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let mut below: Vec<String> =
        points.filter(|point| Path::new(point).starts_with(directory)).map(str::to_owned).collect();
    below.sort_by_key(|point| std::cmp::Reverse(point.len()));
    below
}

fn entries(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_lab_belong_to_a_run() {
        assert_eq!(Run::of("rl123-a"), Some(Run { name: "rl123".to_owned() }));
        assert_eq!(Run::of("rl123b-a"), Some(Run { name: "rl123b".to_owned() }));
        assert_eq!(Run::of("rlup-bridge"), Some(Run::standing()));
        for foreign in ["rl-a", "rlx-a", "docker-a", "rl12xy", "rl1x2", "rl12X", "", "rlupper-a"] {
            assert_eq!(Run::of(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_run_does_not_claim_the_namespaces_of_one_with_a_longer_name() {
        let short = Run { name: "rl12".to_owned() };
        for long in ["rl123", "rl12b"] {
            let long = Run { name: long.to_owned() };
            assert!(!long.namespace("a").starts_with(&short.namespace("")));
        }
    }

    #[test]
    fn this_process_is_no_lab() {
        let run = Run { name: "rl1".to_owned() };
        assert!(run.is_dead(), "process 1 is not the lab");
    }
}
