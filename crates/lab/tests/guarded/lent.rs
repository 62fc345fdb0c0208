//! Runs of the lab, lent to tests that go on beside each other: no two have the same one, and what
//! could not be cleared away is lent to nobody.

use std::fs;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;

use ringwall_lab::cleanup::{self, Run};

static LOANS: Mutex<Loans> = Mutex::new(Loans { free: Vec::new(), lent: 0 });
static CAME_BACK: Condvar = Condvar::new();
static BEGINNING: Once = Once::new();

struct Loans {
    /// Runs that no test uses at the moment.
    free: Vec<&'static Run>,
    /// How many are used.
    lent: usize,
}

fn loans() -> MutexGuard<'static, Loans> {
    LOANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run for the time of one test, with its directory. When the test fails, its logs are shown.
/// However it ends, all of it is removed.
pub struct Borrowed {
    pub run: &'static Run,
}

impl Borrowed {
    /// Waits for one if there can be no more of them.
    ///
    /// # Panics
    /// No run can begin, or none will come back.
    pub fn take() -> Borrowed {
        // Other runs of the lab clear away what belongs to no living lab, and know one by this
        // name.
        BEGINNING.call_once(|| fs::write("/proc/self/comm", "ringwall-lab-t").expect("a process may name itself"));
        let mut loans = loans();
        let run = loop {
            let free = loans.free.pop();
            if let Some(run) = free.or_else(|| cleanup::begin_beside().expect("root can begin a run")) {
                break run;
            }
            assert!(loans.lent > 0, "no run could be cleared away");
            loans = CAME_BACK.wait(loans).unwrap_or_else(PoisonError::into_inner);
        };
        loans.lent += 1;
        drop(loans);
        let borrowed = Borrowed { run };
        fs::create_dir_all(run.directory()).expect("root can make a directory");
        borrowed
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        if thread::panicking() {
            show_logs(&self.run.directory());
        }
        let left = cleanup::sweep(self.run);
        cleanup::report(&left);
        let mut loans = loans();
        loans.lent -= 1;
        loans.free.extend(left.is_empty().then_some(self.run));
        // All of them, since each must know when nothing will come back any more.
        CAME_BACK.notify_all();
    }
}

/// Shows the end of each daemon's log.
fn show_logs(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let log = entry.path().join("log");
        if let Ok(text) = fs::read_to_string(&log) {
            let start = text.len().saturating_sub(4000);
            eprintln!("--- {}\n{}", log.display(), text.get(start..).unwrap_or(&text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::perform_alone;

    #[test]
    fn a_run_that_could_not_be_cleared_away_is_lent_to_nobody() {
        perform_alone("a_run_that_could_not_be_cleared_away_is_lent_to_nobody", &[], |_| {
            let borrowed = Borrowed::take();
            let run = borrowed.run;
            // `ip netns del` removes no directory.
            let stuck = Path::new("/run/netns").join(run.namespace("stuck"));
            fs::create_dir_all(&stuck).expect("made");
            drop(borrowed);
            let is_free = loans().free.contains(&run);
            fs::remove_dir(&stuck).expect("it is still there");
            assert!(!is_free);
            Ok(())
        });
    }

    #[test]
    fn a_run_that_was_lent_before_has_its_directory() {
        perform_alone("a_run_that_was_lent_before_has_its_directory", &[], |_| {
            let first = Borrowed::take().run;
            assert!(!first.directory().exists());
            let again = Borrowed::take();
            assert_eq!(again.run, first);
            assert!(first.directory().is_dir());
            Ok(())
        });
    }

    #[test]
    fn who_finds_all_runs_lent_waits_for_one() {
        perform_alone("who_finds_all_runs_lent_waits_for_one", &[], |_| {
            let free = loans().free.len();
            let mut held: Vec<Borrowed> = std::iter::repeat_with(Borrowed::take).take(free).collect();
            while let Some(run) = cleanup::begin_beside()? {
                loans().lent += 1;
                held.push(Borrowed { run });
            }
            let waiting = thread::spawn(|| drop(Borrowed::take()));
            // They come back one after another, each after a look at all processes.
            drop(held);
            waiting.join().expect("a run came back");
            Ok(())
        });
    }
}
