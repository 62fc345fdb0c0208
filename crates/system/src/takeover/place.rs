//! Where the things of one interface lie: its name checked once, its files, its lock.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::TakeoverError;

/// Where a file system of kind `bpf` is mounted, by systemd or `tc` if not by us.
pub(super) const BPF_FILES: &str = "/sys/fs/bpf";

/// Longest interface name in bytes (`IFNAMSIZ` less the ending zero).
pub(super) const MAX_NAME_LEN: usize = 15;

/// The files of one interface.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The interface's name.
    pub(super) interface: String,
    /// Where the card's namespace is pinned.
    pub(super) pin: PathBuf,
    /// Held by the living daemon.
    pub(super) lock: PathBuf,
    /// What must be known to give the interface back.
    pub(super) state: PathBuf,
    /// Card and number of a VLAN, for the next boot.
    pub(super) vlan: PathBuf,
}

/// Whether `name` can be an interface's and leads out of no directory.
#[must_use]
pub fn is_interface_name(name: &str) -> bool {
    let forbidden = |byte: u8| !byte.is_ascii_graphic() || b"/:\"\\%".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME_LEN && !name.bytes().any(forbidden) && name != "." && name != ".."
}

/// Where the state of `interface` lies.
#[must_use]
pub fn state_file(state_dir: &Path, interface: &str) -> PathBuf {
    state_dir.join(format!("{interface}.takeover.json"))
}

impl Place {
    /// The files of `interface`. A name that could lead out of the directories is refused.
    pub(super) fn of(interface: &str, run_dir: &Path, state_dir: &Path) -> Result<Place, TakeoverError> {
        if !is_interface_name(interface) {
            return Err(TakeoverError::BadName { interface: interface.to_owned() });
        }
        Ok(Place {
            interface: interface.to_owned(),
            pin: run_dir.join(format!("{interface}.netns")),
            lock: run_dir.join(format!("{interface}.lock")),
            state: state_file(state_dir, interface),
            vlan: state_dir.join(format!("{interface}.vlan")),
        })
    }

    /// Takes the lock.
    pub(super) fn lock(&self) -> Result<Lock, TakeoverError> {
        let failed = |cause| TakeoverError::File { file: self.lock.clone(), cause };
        if let Some(parent) = self.lock.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        loop {
            let mut options = OpenOptions::new();
            let mut file =
                options.read(true).write(true).create(true).truncate(false).open(&self.lock).map_err(failed)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                let mut text = String::new();
                let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(TakeoverError::Busy { interface: self.interface.clone(), holder });
            }
            // Whoever held it before may have removed the file between our opening and locking it.
            let locked = file.metadata().map_err(failed)?.ino();
            if fs::metadata(&self.lock).is_ok_and(|present| present.ino() == locked) {
                file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
                return Ok(Lock(file));
            }
        }
    }
}

/// Held as long as it lives. A killed process loses it too.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child between fork and exec still has a copy of the descriptor.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_out_of_the_directories() {
        for bad in ["", ".", "..", "../x", "a/b", "sixteen_letters_", "a b", "a\"b", "a:b", "\u{e9}th0"] {
            assert!(Place::of(bad, Path::new("/run/x"), Path::new("/var/x")).is_err(), "{bad:?}");
        }
        let place = Place::of("eth0.5", Path::new("/run/x"), Path::new("/var/x")).expect("a VLAN's usual name");
        assert_eq!(place.pin, Path::new("/run/x/eth0.5.netns"));
    }

    #[test]
    fn a_held_lock_names_its_holder() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place::of("eth0", directory.path(), directory.path()).expect("a good name");
        let held = place.lock().expect("free");
        match place.lock() {
            Err(TakeoverError::Busy { holder, .. }) => assert_eq!(holder, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(held);
        place.lock().expect("free again");
    }
}
