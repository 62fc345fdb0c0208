//! Hosts with different network stacks, to be scanned: the kernel's in two settings, smoltcp and lwIP.
//!
//! Each has the address [`ADDRESS`] in a namespace of its own, one open TCP port, and calls the prober once a second, so that
//! passive tools see what its connections begin with. Stacks that are not the kernel's stand on a TAP that a bridge joins with
//! the host's interface, where the kernel itself has no address.

mod kernel;
mod lwip;
mod smoltcp;

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use clap::ValueEnum;

use crate::failure::Failure;
use crate::net::{Namespace, Running};

/// The address of every stack.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 1);
/// Who scans it.
pub const PROBER: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 2);
/// The TCP port that is open; all others are closed.
pub const OPEN_PORT: u16 = 22;
/// The port of the prober that it calls.
pub const CALLED_PORT: u16 = 80;
/// Interface of the host's namespace.
pub const INTERFACE: &str = "e0";
/// The TAP of stacks that are not the kernel's.
const TAP: &str = "tap0";
/// How often a stack calls the prober.
const CALL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a stack may take to stand.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// A stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stack {
    /// The kernel as it comes.
    Linux,
    /// The kernel with other settings: no timestamps, window scale or SACK, hop limit 128, no path MTU discovery.
    LinuxTuned,
    /// smoltcp.
    Smoltcp,
    /// lwIP.
    Lwip,
}

/// A standing stack. Dropping it ends it; its namespace is the caller's.
#[derive(Debug)]
pub struct Standing {
    should_end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Ends when it is dropped.
    _program: Option<Running>,
}

impl Stack {
    /// All of them.
    pub const ALL: [Stack; 4] = [Stack::Linux, Stack::LinuxTuned, Stack::Smoltcp, Stack::Lwip];

    /// What it is called in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stack::Linux => "linux",
            Stack::LinuxTuned => "linux-tuned",
            Stack::Smoltcp => "smoltcp",
            Stack::Lwip => "lwip",
        }
    }

    /// What this machine lacks to run it, if so.
    #[must_use]
    pub fn missing(self) -> Option<&'static str> {
        (self == Stack::Lwip).then(lwip::missing).flatten()
    }

    /// Makes it stand behind [`INTERFACE`] of `host`, with files in `directory`.
    ///
    /// # Errors
    /// A tool or the kernel refuses.
    pub fn stand(self, host: &Namespace, directory: &Path) -> Result<Standing, Failure> {
        let mut standing =
            Standing { should_end: Arc::new(AtomicBool::new(false)), threads: Vec::new(), _program: None };
        let flag = standing.should_end.clone();
        match self {
            Stack::Linux => standing.threads.extend(kernel::stand(host, &[], &flag)?),
            Stack::LinuxTuned => standing.threads.extend(kernel::stand(host, &kernel::TUNED, &flag)?),
            Stack::Smoltcp => {
                lay_tap(host)?;
                standing.threads.push(smoltcp::stand(host, flag)?);
            }
            Stack::Lwip => {
                lay_tap(host)?;
                standing._program = Some(lwip::stand(host, directory)?);
            }
        }
        Ok(standing)
    }
}

/// Joins a TAP with the host's interface.
fn lay_tap(host: &Namespace) -> Result<(), Failure> {
    host.ip("link add br0 type bridge")?;
    host.ip(&format!("tuntap add {TAP} mode tap"))?;
    for interface in [TAP, INTERFACE] {
        host.ip(&format!("link set {interface} master br0"))?;
    }
    for interface in [TAP, INTERFACE, "br0"] {
        host.ip(&format!("link set {interface} up"))?;
    }
    Ok(())
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.should_end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that failed has said so by what the scans saw.
            let _ended = thread.join();
        }
    }
}
