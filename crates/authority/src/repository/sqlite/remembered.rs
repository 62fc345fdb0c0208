//! Answers that were given before and still hold. A distributor is asked for the same hosts over and over, and SQLite takes
//! several times as long as a signature to look one up; it takes a fraction of that to say whether anybody has changed
//! anything.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use rusqlite::Connection;

use crate::limits::MAX_REMEMBERED;
use crate::repository::{Holder, StoreError};

/// What was found while the file had one version.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    version: Option<i64>,
    found: HashMap<Ipv4Addr, Holder>,
}

impl Remembered {
    /// Forgets everything if another connection has changed the file since; `connection` is the same each time, because
    /// SQLite counts for each connection apart.
    pub(super) fn keep_up(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let version = connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if self.version != Some(version) {
            self.found.clear();
            self.version = Some(version);
        }
        Ok(())
    }

    pub(super) fn get(&self, ip: Ipv4Addr) -> Option<Holder> {
        self.found.get(&ip).cloned()
    }

    /// Remembers a host. What is read after [`keep_up`](Remembered::keep_up) may be newer than the version that it noted, never
    /// older, and is forgotten with the next question then.
    pub(super) fn keep(&mut self, ip: Ipv4Addr, holder: &Holder) {
        if self.found.len() >= MAX_REMEMBERED {
            self.found.clear();
        }
        self.found.insert(ip, holder.clone());
    }
}
