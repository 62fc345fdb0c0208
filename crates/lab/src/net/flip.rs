//! Our own impairing link: it joins two interfaces and flips one bit in each marked frame, where a seed says.
//!
//! A frame is marked by its length, so that the rest of the traffic shows whether the link itself works.

use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;
use crate::net::{Namespace, Running};

const SCRIPT: &str = include_str!("flip.py");
const READY_LIMIT: Duration = Duration::from_secs(10);

/// In which part of a marked frame bits are flipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// Sealed frames: header, ciphertext and tag in turn.
    Sealed {
        /// Bytes of the header after the Ethernet header.
        header_len: usize,
        /// Bytes of the tag at the end.
        tag_len: usize,
    },
    /// Plain UDP: the payload, and the checksum is set to "none" (RFC 768), as a liar on the path would.
    PlainUdp,
}

/// Starts the link in `namespace` between its interfaces `inner` and `outer`. Frames of at least `marked_len` bytes that
/// come from `inner` are flipped; one line of output is written for each.
///
/// # Errors
/// Python is missing or cannot open the interfaces.
pub fn start(
    namespace: &Namespace,
    zones: Zones,
    marked_len: usize,
    seed: u64,
    directory: &Path,
) -> Result<Running, Failure> {
    let (header_len, tag_len) = match zones {
        Zones::Sealed { header_len, tag_len } => (header_len, tag_len),
        Zones::PlainUdp => (0, 0),
    };
    let mut command = namespace.command("/usr/bin/python3");
    command.args(["-u", "-c", SCRIPT, "inner", "outer"]);
    command.args([marked_len.to_string(), header_len.to_string(), tag_len.to_string(), seed.to_string()]);
    let mut link = Running::start(command, &directory.join("flip.log"))?;
    link.await_output("ready", READY_LIMIT)?;
    Ok(link)
}
