//! Waiting: for descriptors, for a deadline, for another thread. Never by spinning.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec};
use rustix::io::Errno;

pub use rustix::event::{PollFd, PollFlags};

/// Waits until one of `descriptors` is ready or `timeout` has passed (`None`: for ever), and returns how many are ready.
/// A signal ends the wait early with zero.
///
/// # Errors
/// The kernel refuses, which means a descriptor that is not open.
pub fn wait(descriptors: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    });
    match rustix::event::poll(descriptors, timeout.as_ref()) {
        Ok(ready) => Ok(ready),
        Err(Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Ends another thread's wait. Clones wake the same thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Bell>);

#[derive(Debug)]
struct Bell {
    event: OwnedFd,
    /// It was rung and nobody has looked since, so that to ring again would only cost a system call.
    rings: AtomicBool,
}

impl Waker {
    /// A waker; the thread to be woken waits for it to become readable.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Waker> {
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Waker(Arc::new(Bell { event, rings: AtomicBool::new(false) })))
    }

    /// Wakes. Many calls before the thread looks count as one.
    pub fn wake(&self) {
        if !self.0.rings.swap(true, Ordering::AcqRel) {
            // The only refusal is a counter at its end, and then the thread is awake anyway.
            let _ = rustix::io::write(&self.0.event, &1_u64.to_ne_bytes());
        }
    }

    /// Takes the wake-ups that have arrived; called by the woken thread before it looks for work.
    pub fn drain(&self) {
        let _ = rustix::io::read(&self.0.event, &mut [0_u8; 8]);
        // After the read: who rings in between is not lost, because his work is looked for from here on; and the exchange,
        // unlike a plain store, sees what he did before he rang.
        self.0.rings.swap(false, Ordering::AcqRel);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_wait_ends_at_its_timeout() {
        let waker = Waker::new().expect("eventfd");
        let begin = Instant::now();
        let ready = wait(&mut [PollFd::new(&waker, PollFlags::IN)], Some(Duration::from_millis(20))).expect("poll");
        assert_eq!(ready, 0);
        assert!(begin.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn another_thread_ends_a_wait_and_draining_rearms_it() {
        let waker = Waker::new().expect("eventfd");
        let clone = waker.clone();
        let thread = std::thread::spawn(move || {
            clone.wake();
            clone.wake();
        });
        let ready = wait(&mut [PollFd::new(&waker, PollFlags::IN)], Some(Duration::from_secs(10))).expect("poll");
        assert_eq!(ready, 1);
        thread.join().expect("thread");
        waker.drain();
        let ready = wait(&mut [PollFd::new(&waker, PollFlags::IN)], Some(Duration::ZERO)).expect("poll");
        assert_eq!(ready, 0);
        waker.wake();
        let ready = wait(&mut [PollFd::new(&waker, PollFlags::IN)], Some(Duration::ZERO)).expect("poll");
        assert_eq!(ready, 1, "it can be rung again");
        waker.drain();
        let ready = wait(&mut [PollFd::new(&waker, PollFlags::IN)], Some(Duration::ZERO)).expect("poll");
        assert_eq!(ready, 0);
    }
}
