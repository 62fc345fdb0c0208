//! Memory that holds keys reaches no disk: neither as swap nor in a dump.

#![allow(unsafe_code)]

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Memory is locked, and this is what lets it stay so when it grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locked {
    /// No limit.
    WithoutLimit,
    /// A privilege, because the limit could not be lifted.
    ByPrivilege,
}

impl Locked {
    pub(super) fn needs_privilege(self) -> bool {
        self == Locked::ByPrivilege
    }
}

/// No core file is written, no handler of cores hears of a crash, and only root may trace this
/// process or read its memory. Another user or other privileges end that, so it is called again
/// after each change.
///
/// # Errors
/// The kernel refuses.
pub fn forbid_dumps() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Locks every page that the process has and will have, each as soon as it is used. The limit goes
/// first: with one, a heap that has reached it could not grow, and the process would end.
pub(super) fn lock() -> io::Result<Locked> {
    let unlimited = Rlimit { current: None, maximum: None };
    let lifted = setrlimit(Resource::Memlock, unlimited).is_ok() || getrlimit(Resource::Memlock).current.is_none();
    let may_grow = lifted || has_privilege()?;
    if !may_grow {
        return Err(io::Error::other("the limit of locked memory (RLIMIT_MEMLOCK) cannot be lifted"));
    }
    // SAFETY: the call changes no memory, only what the kernel does with it.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } {
        0 if lifted => Ok(Locked::WithoutLimit),
        0 => Ok(Locked::ByPrivilege),
        _ => Err(io::Error::last_os_error()),
    }
}

fn has_privilege() -> io::Result<bool> {
    Ok(rustix::thread::capabilities(None)?.permitted.contains(rustix::thread::CapabilitySet::IPC_LOCK))
}
