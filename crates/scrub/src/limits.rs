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

/// How long fragments wait for the rest of their packet. Linux waits 30 s for IPv4 and 60 s for IPv6 (RFC 8200, section 4.5),
/// RFC 1122 asks for 60 s and more; those of honest senders come within milliseconds, and less time is less memory for others.
pub const FRAGMENTS_TIMEOUT: Duration = Duration::from_secs(30);
/// Packets of which fragments wait.
pub const FRAGMENTED_PACKETS_MAX: usize = 1 << 16;
/// Fragments of one packet: the longest packet over links of 576 bytes comes in 119.
pub const FRAGMENTS_PER_PACKET_MAX: usize = 256;
/// Fragments may take one part in this many of the memory for retained data.
pub const FRAGMENTS_MEMORY_PART: usize = 8;
/// The packets of one source may take one part in this many of the memory for fragments.
pub const FRAGMENTS_SOURCE_PART: usize = 8;
/// What a packet of which fragments wait costs beside its bytes: its rows in the tables and their free places, in bytes.
pub const FRAGMENTED_PACKET_COST_BYTES: usize = 768;

/// Shortest piece into which an IPv4 packet is cut, in bytes: every link carries it whole (RFC 791, section 3.2), and ports
/// and flags of TCP are in the first (RFC 1858).
pub const PIECE_MIN_BYTES_V4: usize = 68;
/// Shortest piece into which an IPv6 packet is cut, in bytes: every link carries it whole (RFC 8200, section 5).
pub const PIECE_MIN_BYTES_V6: usize = 1280;
/// Extension headers that are followed: one of each kind, and destination options twice (RFC 8200, section 4.1).
pub const EXTENSION_HEADERS_MAX: usize = 5;
