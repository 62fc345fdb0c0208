//! Giving up every privilege but those that the way out needs.

use std::io;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use crate::sandbox::user::User;

/// A privilege that can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Interfaces, addresses, routes, neighbours, firewall tables.
    NetAdmin,
    /// Packet sockets.
    NetRaw,
    /// Namespaces and mounts: needed to give an interface back.
    SysAdmin,
    /// Entering the mount tree of process 1, where the card's namespace is pinned.
    SysPtrace,
    /// Changing the root directory of a thread, which entering a mount tree does.
    SysChroot,
    /// Locking memory beyond its limit.
    IpcLock,
}

impl Capability {
    /// What giving an interface back needs.
    pub const FOR_RELEASE: [Capability; 4] =
        [Capability::NetAdmin, Capability::SysAdmin, Capability::SysPtrace, Capability::SysChroot];

    fn set(self) -> CapabilitySet {
        match self {
            Capability::NetAdmin => CapabilitySet::NET_ADMIN,
            Capability::NetRaw => CapabilitySet::NET_RAW,
            Capability::SysAdmin => CapabilitySet::SYS_ADMIN,
            Capability::SysPtrace => CapabilitySet::SYS_PTRACE,
            Capability::SysChroot => CapabilitySet::SYS_CHROOT,
            Capability::IpcLock => CapabilitySet::IPC_LOCK,
        }
    }
}

/// Drops every capability of the calling thread but `capabilities`: permitted, effective, inheritable and ambient ones,
/// and the bounding set where that is permitted. No program started later gains any, and no other process may trace
/// this one or read its memory. Threads started afterwards inherit this; those that run already do not, so call it
/// before the first.
///
/// # Errors
/// Fails if the kernel refuses, for instance because a capability to be kept is not there.
pub fn keep(capabilities: &[Capability]) -> io::Result<()> {
    let kept = set_of(capabilities);
    clear_ambient_capability_set()?;
    bound(kept)?;
    settle(kept)
}

/// As [`keep`], where some of `capabilities` may not be there.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn keep_of(capabilities: &[Capability]) -> io::Result<()> {
    let permitted = rustix::thread::capabilities(None)?.permitted;
    let there: Vec<_> = capabilities.iter().copied().filter(|one| permitted.contains(one.set())).collect();
    keep(&there)
}

/// As whom the process at the other end of a connection runs on this machine (`SO_PEERCRED`,
/// unix(7)).
///
/// # Errors
/// The kernel does not say.
pub fn user_of_peer(connection: &std::os::unix::net::UnixStream) -> io::Result<u32> {
    Ok(rustix::net::sockopt::socket_peercred(connection)?.uid.as_raw())
}

/// As whom this process runs.
#[must_use]
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// As [`keep`], and the thread runs as `user` from now on, in no other group than its own. Nothing
/// leads back.
///
/// # Errors
/// Fails if the kernel refuses, for instance because the privileges to change the user (CAP_SETUID,
/// CAP_SETGID) or to be kept are not there.
pub fn become_user(user: &User, capabilities: &[Capability]) -> io::Result<()> {
    let kept = set_of(capabilities);
    clear_ambient_capability_set()?;
    bound(kept)?;
    let (uid, gid) = (Uid::from_raw(user.uid()), Gid::from_raw(user.gid()));
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    set_keep_capabilities(false)?;
    settle(kept)
}

fn set_of(capabilities: &[Capability]) -> CapabilitySet {
    capabilities.iter().fold(CapabilitySet::empty(), |kept, capability| kept | capability.set())
}

/// Takes all but `kept` out of the bounding set.
fn bound(kept: CapabilitySet) -> io::Result<()> {
    for bit in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        if kept.contains(one) {
            continue;
        }
        match capability_is_in_bounding_set(one) {
            Ok(true) => leave_bounding_set(one)?,
            Ok(false) => {}
            // The first number that the kernel does not know ends the list.
            Err(_) => break,
        }
    }
    Ok(())
}

/// What remains is `kept`. A change of user or privileges makes a process traceable again, so that
/// comes last.
fn settle(kept: CapabilitySet) -> io::Result<()> {
    set_no_new_privs(true)?;
    let inheritable = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Without CAP_SETPCAP the bounding set stays as it is; the other sets are dropped all the same.
fn leave_bounding_set(one: CapabilitySet) -> io::Result<()> {
    match remove_capability_from_bounding_set(one) {
        Err(error) if error != rustix::io::Errno::PERM => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_what_it_names_and_nothing_else() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED a_thread_keeps_what_it_names_and_nothing_else: needs root");
            return;
        }
        let sets = std::thread::spawn(|| {
            keep(&[Capability::NetAdmin]).expect("root may drop");
            let bounding = capability_is_in_bounding_set(CapabilitySet::SYS_ADMIN).expect("known");
            (rustix::thread::capabilities(None).expect("readable"), bounding)
        });
        let (sets, bounding) = sets.join().expect("the thread ends well");
        assert_eq!(sets.effective, CapabilitySet::NET_ADMIN);
        assert_eq!(sets.permitted, CapabilitySet::NET_ADMIN);
        assert!(sets.inheritable.is_empty());
        assert!(!bounding);
    }
}
