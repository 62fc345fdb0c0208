//! Linux, and the only room with unsafe code.
//!
//! Reading order: [`takeover`] (an interface becomes ours, and back), [`port`] (frames in and out),
//! [`wait`], [`clock`], [`random`] and [`priority`] (what a run loop needs beside them),
//! [`boundary`] (a panic costs a frame), [`null`] (the simplest bump, the yardstick of benchmarks),
//! [`memory`] and [`capture`] (ports without a kernel: for tests, and over capture files), [`bpf`]
//! (programs in the kernel; [`xdp`]: in front of a card's receive path).
//!
//! It knows no protocol of ours, no key and no policy.

pub mod boundary;
pub mod bpf;
pub mod capture;
pub mod card_features;
pub mod clock;
mod files;
pub mod ingress;
mod instruction;
pub mod memory;
pub mod namespace;
mod netlink;
pub mod null;
pub mod port;
pub mod priority;
pub mod privilege;
pub mod random;
pub mod sandbox;
pub mod takeover;
pub mod tap_device;
pub mod wait;
pub mod xdp;

/// Bytes that users without a privilege may still fill where `directory` is.
///
/// # Errors
/// The directory cannot be looked at.
pub fn free_bytes(directory: &std::path::Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// The name of this machine.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
