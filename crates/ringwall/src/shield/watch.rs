//! Follows the key files: a changed one is in force within seconds, one that cannot be read leaves the old keys in force.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use shield::ipsec::PeerSettings;

use crate::config::Config;
use crate::daemon::Journal;

/// The files as they were when they were read last.
pub(crate) struct KeyWatch {
    config: Config,
    files: Vec<(PathBuf, Option<Stamp>)>,
}

/// Changes with every new content: files are replaced, not written over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    inode: u64,
}

fn stamp(file: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(file).ok()?;
    Some(Stamp { modified: metadata.modified().ok()?, inode: metadata.ino() })
}

impl KeyWatch {
    /// Of the files that `config` names.
    pub(crate) fn new(config: &Config) -> KeyWatch {
        let named = config.shield.iter().flat_map(|section| &section.peers).filter_map(|peer| peer.keys.clone());
        let files = named.map(|file| (file.clone(), stamp(&file))).collect();
        KeyWatch { config: config.clone(), files }
    }

    /// The peers with their new keys, if a file has changed since the last time and all can be read.
    pub(crate) fn changed(&mut self, journal: &mut Journal) -> Option<Vec<PeerSettings>> {
        let mut has_changed = false;
        for (file, known) in &mut self.files {
            let now = stamp(file);
            has_changed |= now != *known;
            *known = now;
        }
        if !has_changed {
            return None;
        }
        match super::peers(&self.config) {
            Ok(peers) => {
                journal.note("keys-read", "the pairs' key files have changed and are in force");
                Some(peers)
            }
            Err(failure) => {
                journal.note("keys-kept", &format!("the keys before stay in force: {failure}"));
                None
            }
        }
    }
}
