//! Room for neighbours: the kernel has one limit for all network namespaces together (arp(7),
//! `gc_thresh3`, 1,024 by default). Thirty hosts that all talk with each other reach it, and then other
//! namespaces of the machine cannot send either.

use std::fs;
use std::io::ErrorKind;

use crate::failure::Failure;

/// Entries from which on none of them is collected, some are, and no more are made.
const LIMITS: [&str; 3] = ["gc_thresh1", "gc_thresh2", "gc_thresh3"];

/// More room than there was, until it is dropped.
pub struct Room {
    /// What there was, of each limit.
    before: [u64; 3],
}

impl Room {
    /// Makes room for so many entries beside what there is room for. Belongs to the machine's own
    /// network namespace, so the calling thread must be there.
    ///
    /// # Errors
    /// The limits cannot be read or set.
    pub fn make(entries: u64) -> Result<Room, Failure> {
        let mut before = [0; 3];
        for (limit, value) in LIMITS.iter().zip(&mut before) {
            let number = |text: String| text.trim().parse().map_err(|_| ErrorKind::InvalidData.into());
            *value = fs::read_to_string(file(limit)).and_then(number).map_err(Failure::io(*limit))?;
        }
        let room = Room { before };
        room.set(|value| value + entries)?;
        Ok(room)
    }

    fn set(&self, of: impl Fn(u64) -> u64) -> Result<(), Failure> {
        for (limit, value) in LIMITS.iter().zip(self.before) {
            fs::write(file(limit), of(value).to_string()).map_err(Failure::io(*limit))?;
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // It was written a while ago.
        let _ = self.set(|value| value);
    }
}

fn file(limit: &str) -> String {
    format!("/proc/sys/net/ipv4/neigh/default/{limit}")
}
