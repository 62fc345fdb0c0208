//! CPU time: of the whole machine and of single processes, from `/proc`.
//!
//! The kernel shows both in ticks of 10 ms, which is half a percent of what a two-second run consumes. It derives a
//! process's figure from the scheduler's exact clock, and a daemon's figure holds the work that the kernel does for it
//! inside system calls, deliveries to the peer's socket included.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::net::process;

/// Ticks in which `/proc` counts, per second; fixed for user space on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// How long a run waits at most for the machine to become quiet.
const SETTLE_LIMIT: Duration = Duration::from_millis(1500);
/// How long the machine is watched to call it quiet.
const SETTLE_WINDOW: Duration = Duration::from_millis(100);
/// The load below which it is quiet, as a share of all processors.
const QUIET_LOAD: f64 = 0.1;

/// Seconds that all processors spent busy since the machine started.
///
/// # Errors
/// `/proc` is not there.
pub fn machine() -> Result<Duration, Failure> {
    let text = fs::read_to_string("/proc/stat").map_err(Failure::io("reading /proc/stat"))?;
    busy_ticks(&text).map(from_ticks).ok_or_else(|| Failure::Unreadable("/proc/stat".to_owned()))
}

/// User and system time of the processes `ids`, all their threads together.
///
/// # Errors
/// One of them has ended.
pub fn processes(ids: &[u32]) -> Result<Duration, Failure> {
    let mut total = Duration::ZERO;
    for id in ids {
        let path = format!("/proc/{id}/stat");
        let text = fs::read_to_string(&path).map_err(Failure::io(format!("reading {path}")))?;
        total += process_ticks(&text).map(from_ticks).ok_or(Failure::Unreadable(path))?;
    }
    Ok(total)
}

/// Memory that a process takes, in bytes.
///
/// # Errors
/// It has ended.
pub fn resident_bytes(id: u32) -> Result<f64, Failure> {
    bytes_of(id, "VmRSS:")
}

/// The most that a process has taken so far, in bytes.
///
/// # Errors
/// It has ended.
pub fn peak_bytes(id: u32) -> Result<f64, Failure> {
    bytes_of(id, "VmHWM:")
}

fn bytes_of(id: u32, what: &str) -> Result<f64, Failure> {
    let path = format!("/proc/{id}/status");
    let text = fs::read_to_string(&path).map_err(Failure::io(format!("reading {path}")))?;
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.split_whitespace().next());
    let kibibytes = line.and_then(|word| word.parse::<f64>().ok());
    kibibytes.map(|kibibytes| kibibytes * 1024.0).ok_or(Failure::Unreadable(path))
}

/// The processes that this one has started.
///
/// # Errors
/// It has ended.
pub fn children(id: u32) -> Result<Vec<u32>, Failure> {
    let path = format!("/proc/{id}/task/{id}/children");
    let text = fs::read_to_string(&path).map_err(Failure::io(format!("reading {path}")))?;
    Ok(text.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// Time that all threads of a process have run, as exact as the scheduler knows it. Threads that have ended do not count.
///
/// # Errors
/// It has ended, or the kernel does not count.
pub fn exact(id: u32) -> Result<Duration, Failure> {
    let tasks = format!("/proc/{id}/task");
    let threads = fs::read_dir(&tasks).map_err(Failure::io(format!("reading {tasks}")))?;
    let mut total = Duration::ZERO;
    for thread in threads {
        let path = thread.map_err(Failure::io(format!("reading {tasks}")))?.path().join("schedstat");
        let text = fs::read_to_string(&path).map_err(Failure::file("reading", &path))?;
        let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
        total += nanos.map(Duration::from_nanos).ok_or_else(|| Failure::Unreadable(path.display().to_string()))?;
    }
    Ok(total)
}

/// Seconds that one processor spent busy since the machine started.
///
/// # Errors
/// `/proc` or the processor is not there.
pub fn core(number: usize) -> Result<Duration, Failure> {
    let text = fs::read_to_string("/proc/stat").map_err(Failure::io("reading /proc/stat"))?;
    let ticks = busy_ticks_of(&text, &format!("cpu{number} "));
    ticks.map(from_ticks).ok_or_else(|| Failure::Unreadable(format!("/proc/stat, processor {number}")))
}

/// Waits until the machine is quiet, or for a second and a half, so that one run's tail does not load the next. Returns
/// whether it became quiet.
///
/// # Errors
/// `/proc` is not there, or the lab is interrupted.
pub fn settle() -> Result<bool, Failure> {
    let start = Instant::now();
    let cores = thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    while start.elapsed() < SETTLE_LIMIT {
        let before = machine()?;
        process::pause(SETTLE_WINDOW)?;
        let busy = machine()?.saturating_sub(before);
        if busy.as_secs_f64() <= QUIET_LOAD * cores * SETTLE_WINDOW.as_secs_f64() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn from_ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND)
}

/// All of the first line but idle and iowait; the guest columns are part of user and nice already (proc(5)).
fn busy_ticks(stat: &str) -> Option<u64> {
    busy_ticks_of(stat, "cpu ")
}

/// The same of the line that begins so.
fn busy_ticks_of(stat: &str, name: &str) -> Option<u64> {
    let line = stat.lines().find(|line| line.starts_with(name))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks.try_into().ok()?;
    Some(user + nice + system + irq + softirq + steal)
}

/// Fields 14 and 15; counted from behind the name, which may contain blanks and parentheses.
fn process_ticks(stat: &str) -> Option<u64> {
    let (_name, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_may_look_like_fields() {
        let line = "17 (a) 1 2) S 1 17 17 0 -1 4194560 100 0 0 0 250 31 0 0 20 0 1 0 5 1000 50";
        assert_eq!(process_ticks(line), Some(281));
        assert_eq!(process_ticks("17 (a"), None);
    }

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 500 8 16 32 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"), Some(63));
        assert_eq!(busy_ticks("intr 5"), None);
        let two = "cpu  3 0 0 9 0 0 0 0 0 0\ncpu0 1 0 0 4 0 0 0 0 0 0\ncpu1 2 0 0 5 0 0 0 0 0 0\n";
        assert_eq!((busy_ticks_of(two, "cpu1 "), busy_ticks_of(two, "cpu2 ")), (Some(2), None));
    }

    #[test]
    fn work_shows_in_the_process_and_the_machine() {
        let id = std::process::id();
        let (own, all) = (processes(&[id]).unwrap(), machine().unwrap());
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(300) {
            std::hint::black_box(start.elapsed());
        }
        assert!(processes(&[id]).unwrap() > own);
        let exact = exact(id).unwrap();
        assert!(exact > own && exact < processes(&[id]).unwrap() + Duration::from_secs(1), "{exact:?}");
        assert!(machine().unwrap() > all);
    }
}
