//! Whether a file is still the one that was read.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{fs, io};

/// What tells that a file is still the one that was read. No program sets the time of change
/// (`ctime`) at will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(file: &Path) -> io::Result<Stamp> {
        let file = fs::metadata(file)?;
        let changed = (file.ctime(), file.ctime_nsec());
        Ok(Stamp { device: file.dev(), inode: file.ino(), len: file.len(), changed })
    }
}
