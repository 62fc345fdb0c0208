//! Real-time priorities (sched(7)): a thread that has one runs before all that have none, as soon as it wants to.
//!
//! The kernel keeps a part of each processor's time for the others (`kernel.sched_rt_runtime_us`, 5 % by default), so a thread that
//! never sleeps slows a machine down and does not stop it.

#![allow(unsafe_code)]

use std::fmt;
use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

/// The highest one: a kernel that handles interrupts in threads gives them 50, and no program should come before those.
pub const MAX: u8 = 49;

/// A real-time priority, 1 to [`MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealTimePriority(u8);

impl RealTimePriority {
    /// `None` where `value` is none, or would come before the kernel's own work.
    #[must_use]
    pub fn new(value: u8) -> Option<RealTimePriority> {
        (1..=MAX).contains(&value).then_some(RealTimePriority(value))
    }

    /// The number.
    #[must_use]
    pub fn value(self) -> u8 {
        self.0
    }

    /// Gives the calling thread the priority; among equals who comes first is served first. Threads that it starts have it as well,
    /// also when the process has dropped its privileges by then, until they [`leave`] it.
    ///
    /// # Errors
    /// The kernel refuses: no privilege (`CAP_SYS_NICE`), no limit that allows it (`RLIMIT_RTPRIO`), or a sandbox.
    pub fn take(self) -> io::Result<()> {
        schedule(libc::SCHED_FIFO, i32::from(self.0))
    }
}

/// Takes the limit away that would let this process take a priority without a privilege. Who has one keeps it.
///
/// # Errors
/// The kernel refuses.
pub fn forbid() -> io::Result<()> {
    Ok(setrlimit(Resource::Rtprio, Rlimit { current: Some(0), maximum: Some(0) })?)
}

/// Has the calling thread run as every program does. It has no way back without a privilege.
///
/// # Errors
/// The kernel refuses.
pub fn leave() -> io::Result<()> {
    schedule(libc::SCHED_OTHER, 0)
}

fn schedule(policy: i32, sched_priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the kernel reads `parameters`, which live until the call has returned, and keeps nothing of them; 0 is the calling
    // thread.
    let done = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl fmt::Display for RealTimePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policy and priority of a thread, from its line in /proc (proc_pid_stat(5), fields 40 and 41).
    fn scheduling(thread: &str) -> (u32, u32) {
        let line = std::fs::read_to_string(format!("/proc/{thread}/stat")).expect("a thread");
        let (_, fields) = line.rsplit_once(')').expect("its name in brackets");
        let fields: Vec<_> = fields.split_whitespace().collect();
        let field = |number: usize| fields[number - 3].parse().expect("a number");
        (field(41), field(40))
    }

    #[test]
    fn the_kernels_own_work_is_not_overtaken() {
        assert_eq!(
            [0, 1, 49, 50, 99].map(|value| RealTimePriority::new(value).is_some()),
            [false, true, true, false, false]
        );
    }

    #[test]
    fn a_thread_hands_its_priority_on_without_privileges_until_it_leaves() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED a_thread_hands_its_priority_on_without_privileges_until_it_leaves: needs root");
            return;
        }
        let priority = RealTimePriority::new(7).expect("a priority");
        let threads = std::thread::spawn(move || {
            priority.take().expect("root may");
            forbid().expect("less is always allowed");
            crate::privilege::keep(&[]).expect("root may drop");
            let child = std::thread::spawn(|| scheduling("thread-self")).join().expect("a thread");
            let own = scheduling("thread-self");
            leave().expect("less is always allowed");
            assert!(priority.take().is_err(), "it has no way back");
            (child, own, scheduling("thread-self"))
        });
        let (first_come_first_served, others) = (1, 0);
        let expected = ((first_come_first_served, 7), (first_come_first_served, 7), (others, 0));
        assert_eq!(threads.join().expect("a thread"), expected);
    }
}
