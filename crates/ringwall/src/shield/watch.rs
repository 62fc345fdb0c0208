//! Follows the key files: a changed one is in force within seconds, one that cannot be read leaves the old keys in force.

use std::path::PathBuf;

use shield::ipsec::PeerSettings;

use crate::config::Config;
use crate::daemon::Journal;
use crate::monitor::{Disk, Version};

/// The files as they were when they were read last.
pub(crate) struct KeyWatch {
    config: Config,
    disk: Disk,
    files: Vec<(PathBuf, Option<Version>)>,
}

impl KeyWatch {
    /// Of the files that `config` names.
    pub(crate) fn new(config: &Config, disk: &Disk) -> KeyWatch {
        let named = config.shield.iter().flat_map(|section| &section.peers).filter_map(|peer| peer.keys.clone());
        let files = named.map(|file| (file.clone(), disk.version(&file))).collect();
        KeyWatch { config: config.clone(), disk: disk.clone(), files }
    }

    /// The peers with their new keys, if a file has changed since the last time and all can be read.
    pub(crate) fn changed(&mut self, journal: &mut Journal) -> Option<Vec<PeerSettings>> {
        let mut has_changed = false;
        for (file, known) in &mut self.files {
            let now = self.disk.version(file);
            has_changed |= now != *known;
            *known = now;
        }
        if !has_changed {
            return None;
        }
        match super::peers(&self.config, &self.disk) {
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
