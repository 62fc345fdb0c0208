//! Limits on everything that a stranger can make grow, and the values that a configuration leaves unsaid.

use std::time::Duration;

/// Longest packet on a link, in bytes, unless told.
pub const MTU: usize = 1500;
/// Hops that a packet must be able to make behind the scrubber: enough for a small routed site.
pub const HOPS_BEHIND: u8 = 8;
/// Hop limit towards the untrusted side: what most stacks begin with.
pub const HOP_LIMIT: u8 = 64;
/// Least time between two ICMP messages of a pair: the paper's figure 9.
pub const ICMP_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes behind the quoted IP header (RFC 792).
pub const ICMP_QUOTE_LEN: usize = 8;
/// Memory for retained data and fragments, in bytes.
pub const MEMORY_MAX_BYTES: usize = 1 << 30;
/// Connections that are remembered.
pub const FLOWS_MAX: usize = 1 << 20;
/// Events that wait for whoever drains them.
pub const EVENTS_MAX: usize = 1024;
