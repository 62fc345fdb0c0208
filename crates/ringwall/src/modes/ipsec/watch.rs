//! Follows the key files: a changed one is in force within seconds, one that cannot be read leaves
//! the old keys in force.

use std::path::PathBuf;

use shield::ipsec::PeerSettings;

use super::config::{Shield, ShieldPeer};
use super::key_file;
use crate::daemon::Journal;
use crate::failure::Failure;
use crate::monitor::{Disk, Version};

/// The peers with their keys.
pub(super) fn peers(section: &Shield, disk: &Disk) -> Result<Vec<PeerSettings>, Failure> {
    let read = |peer: &ShieldPeer| {
        let keys = peer.keys.as_deref().map(|file| key_file::load(disk, file)).transpose()?;
        Ok(PeerSettings { address: peer.address, keys })
    };
    section.peers.iter().map(read).collect()
}

/// The files as they were when they were read last.
pub(crate) struct KeyWatch {
    section: Shield,
    disk: Disk,
    files: Vec<(PathBuf, Option<Version>)>,
}

impl KeyWatch {
    /// Of the files that the section names.
    pub(crate) fn new(section: &Shield, disk: &Disk) -> KeyWatch {
        let named = section.peers.iter().filter_map(|peer| peer.keys.clone());
        let files = named.map(|file| (file.clone(), disk.version(&file))).collect();
        KeyWatch { section: section.clone(), disk: disk.clone(), files }
    }

    /// The peers with their new keys, if a file has changed since the last time and all can be
    /// read.
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
        match peers(&self.section, &self.disk) {
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
