//! The sandbox in which a daemon reads frames: a user of its own, no privilege but those that it is
//! given, no files, few system calls, and memory that reaches neither disk nor dump
//! (docs/decisions/0062-a-sandbox-that-holds.md).
//!
//! Four fences stand behind each other, so that one that a kernel lacks is not the last:
//! - `user.rs` and [`privilege`](crate::privilege): another user than root, so that files of root
//!   are out of reach;
//! - `calls.rs`: a list of allowed system calls; `refused.rs`: what was refused, for the log;
//! - `landlock.rs`: no file and no port, also for calls that the list allows;
//! - `memory.rs`: pages that are never swapped out and never dumped.

mod calls;
mod landlock;
mod memory;
mod refused;
pub(crate) mod user;

use std::fmt;
use std::io;

use crate::privilege::{self, Capability};

pub use calls::{Calls, Sockets, end_at_attacks, forbid_sockets};
pub use landlock::{Landlocked, Ports, Reach, confine};
pub use memory::forbid_dumps;
pub use refused::Refused;
pub use user::{NAME, UNNAMED_ID, User};

/// What a daemon may do inside.
#[derive(Clone, Copy, Debug)]
pub struct Sandbox {
    /// The privileges that it keeps.
    pub capabilities: &'static [Capability],
    /// The system calls that it may make.
    pub calls: Calls,
}

/// How the fences stand.
#[derive(Debug)]
pub struct Entered {
    /// Who the process is now.
    pub user: User,
    /// What of Landlock is in force.
    pub landlock: Landlocked,
    /// Why memory may be swapped out, if it may.
    pub unlocked: Option<io::Error>,
    /// System calls that are refused from now on.
    pub refused: Refused,
}

/// The step that failed, and why.
#[derive(Debug)]
pub struct SandboxError {
    step: &'static str,
    cause: io::Error,
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.cause)
    }
}

impl std::error::Error for SandboxError {}

impl Sandbox {
    /// Puts this process into the sandbox, for good. It must have one thread only: threads that it
    /// starts later are inside, those that run already would stay outside.
    ///
    /// # Errors
    /// Fails if there are more threads, if no user can be had, or if the kernel refuses a step that
    /// it must not. A kernel without Landlock, and one that does not lock memory, are no errors.
    pub fn enter(&self) -> Result<Entered, SandboxError> {
        let failed = |step: &'static str| move |cause: io::Error| SandboxError { step, cause };
        check_threads().map_err(failed("counting threads"))?;
        let user = User::find().map_err(failed("choosing a user"))?;
        forbid_dumps().map_err(failed("forbidding dumps"))?;
        let locked = memory::lock();
        let unlocked = locked.as_ref().err().map(|error| io::Error::new(error.kind(), error.to_string()));
        let mut kept = self.capabilities.to_vec();
        if locked.is_ok_and(memory::Locked::needs_privilege) {
            kept.push(Capability::IpcLock);
        }
        // Where the kernel keeps its clock is looked up at the first question, in a file.
        let _ = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let filters = self.calls.filters().map_err(failed("making the filter of system calls"))?;
        let refused = refused::watch().map_err(failed("watching for refused system calls"))?;
        privilege::become_user(&user, &kept).map_err(failed("dropping privileges"))?;
        let landlock = landlock::confine(&self.calls.reach()).map_err(failed("shutting files out"))?;
        calls::install(&filters).map_err(failed("installing the filter of system calls"))?;
        Ok(Entered { user, landlock, unlocked, refused })
    }
}

/// Privileges, filters and Landlock are of a thread, not of a process.
fn check_threads() -> io::Result<()> {
    match std::fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        count => Err(io::Error::other(format!("{count} threads run already, and only one can enter a sandbox"))),
    }
}
