//! Network namespaces: making one, pinning it to a file, and running code inside it.
//!
//! A namespace lives as long as something refers to it; when it dies, a physical card falls back into the initial
//! namespace in clear and a virtual one is destroyed. So the namespace that holds a guarded card is pinned by a bind
//! mount. `ip netns exec` and service managers give processes private mount trees, in which a mount would be invisible
//! to others and die with the process: the pin is therefore made in the initial mount namespace, that of process 1,
//! wherever it can be entered. Every change of namespace happens on a thread made for it, so that no other code is ever displaced.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::fstatfs;
use rustix::mount::{UnmountFlags, mount_bind, unmount};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// File system type of namespace files (`NSFS_MAGIC` in linux/magic.h).
const NAMESPACE_FILE_SYSTEM: i64 = 0x6e73_6673;

/// Which mount tree holds a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MountTree {
    /// That of process 1: survives every process of ours.
    Initial,
    /// The caller's own, because the initial one cannot be entered: survives as long as the caller's mount tree.
    Own,
}

/// Runs `work` on a short-lived thread inside network namespace `namespace`.
///
/// # Errors
/// Fails if the thread cannot be made or may not enter the namespace.
pub fn run_inside<T: Send>(namespace: BorrowedFd<'_>, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_own_thread(|| {
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
        Ok(work())
    })
}

/// The network namespace of the calling thread.
///
/// # Errors
/// Fails without `/proc`.
pub fn current() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// A number that identifies a namespace while it lives.
pub(crate) fn identity(namespace: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(rustix::fs::fstat(namespace)?.st_ino)
}

/// Makes a network namespace and runs `prepare` in it before anybody else can see it.
pub(crate) fn create(prepare: impl FnOnce() -> io::Result<()> + Send) -> io::Result<OwnedFd> {
    on_own_thread(|| {
        // SAFETY: only the network namespace of this thread is unshared; no file table or memory that others use.
        unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
        prepare()?;
        current()
    })
}

/// Keeps `namespace` alive by mounting it on `path`.
pub(crate) fn pin(namespace: BorrowedFd<'_>, path: &Path) -> io::Result<MountTree> {
    let source = format!("/proc/thread-self/fd/{}", namespace.as_raw_fd());
    in_mount_tree(|| {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        File::create(path)?;
        Ok(mount_bind(&source, path)?)
    })
}

/// Opens the namespace pinned to `path`, if there is one.
pub(crate) fn open_pin(path: &Path) -> io::Result<Option<OwnedFd>> {
    let mut found = None;
    in_mount_tree(|| {
        let file: OwnedFd = match File::open(path) {
            Ok(file) => file.into(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if fstatfs(&file)?.f_type == NAMESPACE_FILE_SYSTEM {
            found = Some(file);
        }
        Ok(())
    })?;
    Ok(found)
}

/// Ends a pin and removes its file; that there is none is no error. The namespace dies with its last user, and a card
/// inside it goes the way of its kind: so this is for namespaces that are empty or whose card is to vanish with them.
/// Where nothing may be unmounted the pin stays, for whoever made it.
///
/// # Errors
/// Fails if the mount cannot be ended.
pub fn unpin(path: &Path) -> io::Result<()> {
    in_mount_tree(|| {
        loop {
            match unmount(path, UnmountFlags::DETACH) {
                Ok(()) => {}
                Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOENT) => break,
                Err(rustix::io::Errno::PERM) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        crate::files::remove_if_there(path)
    })?;
    Ok(())
}

/// Runs `work` where pins live: in the initial mount tree, or in ours if that is the same or out of reach.
pub(crate) fn in_mount_tree(work: impl FnOnce() -> io::Result<()> + Send) -> io::Result<MountTree> {
    let Some(initial) = initial_mount_tree() else { return work().map(|()| MountTree::Own) };
    if initial.metadata()?.ino() == fs::metadata("/proc/thread-self/ns/mnt")?.ino() {
        return work().map(|()| MountTree::Initial);
    }
    on_own_thread(|| {
        // SAFETY: only this thread's root and working directory become its own, which entering a mount tree needs.
        unsafe { unshare_unsafe(UnshareFlags::FS)? };
        match move_into_link_name_space(initial.as_fd(), Some(LinkNameSpaceType::Mount)) {
            Ok(()) => work().map(|()| MountTree::Initial),
            Err(rustix::io::Errno::PERM) => work().map(|()| MountTree::Own),
            Err(error) => Err(error.into()),
        }
    })
}

/// The mount tree of process 1 or, where that process is closed even to root, of the kernel's own thread 2, which lives
/// in the same one. In a container process 2 is an ordinary one and does not count.
fn initial_mount_tree() -> Option<File> {
    if let Ok(file) = File::open("/proc/1/ns/mnt") {
        return Some(file);
    }
    let status = fs::read_to_string("/proc/2/status").ok()?;
    let is_kernel_thread =
        ["Name:\tkthreadd", "PPid:\t0"].iter().all(|line| status.lines().any(|other| other == *line));
    File::open("/proc/2/ns/mnt").ok().filter(|_| is_kernel_thread)
}

fn on_own_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("namespace".into()).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread inside the namespace died")))
    })
}
