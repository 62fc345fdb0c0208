//! Limits on everything that a stranger can make grow, and the values that a configuration leaves unsaid.

use std::time::Duration;

/// Longest packet on a link, in bytes, unless told.
pub const MTU: usize = 1500;
/// Hops that a packet must be able to make behind the scrubber: enough for a small routed site.
pub const HOPS_BEHIND: u8 = 8;
/// Trusted hosts on the link that are remembered, 16 bytes each.
pub const NEIGHBOURS_MAX: usize = 1 << 14;
/// How long a host counts as one on the link after it last said so: hosts ask each other within
/// minutes while they speak.
pub const NEIGHBOUR_LIFETIME: Duration = Duration::from_secs(3600);
/// Hop limit towards the untrusted side: the least with which common stacks begin, less the hops behind the scrubber. Every
/// trusted host's packets arrive with at least this, so all can be lowered to it, and it takes them across any internet.
pub const HOP_LIMIT: u8 = HOP_LIMIT_FIRST - HOPS_BEHIND;
/// The least hop limit with which common stacks begin (RFC 1700), and that of the scrubber's own packets.
pub const HOP_LIMIT_FIRST: u8 = 64;
/// Least time between two ICMP messages of a pair: the paper's figure 9.
pub const ICMP_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes behind the quoted IP header (RFC 792), also where they are a tunnel's.
pub const ICMP_QUOTE_LEN: usize = 8;
/// Longest echo message in bytes, where that is limited: what fits the IPv4 packet that every host takes (RFC 791, 3.1).
pub const ICMP_ECHO_MAX_BYTES: usize = 576 - 20;
/// Pairs of hosts whose last ICMP message is remembered. Beyond them the pace of the oldest is forgotten, which tells more
/// about its timing and drops nothing.
pub const ICMP_PAIRS_MAX: usize = 1 << 14;
/// Memory for delayed messages, in bytes.
pub const ICMP_DELAYED_MAX_BYTES: usize = 1 << 20;
/// What a delayed frame costs beside its bytes.
pub const ICMP_DELAYED_OVERHEAD_BYTES: usize = 128;
/// Exchanges of UDP, echo and unknown protocols that are remembered of each side, 64 bytes each.
pub const EXCHANGES_MAX: usize = 1 << 16;
/// How long an exchange is remembered: longer than the longest wait before an error, for the rest of a packet in fragments
/// (RFC 8200, 4.5: 60 s).
pub const EXCHANGE_LIFETIME: Duration = Duration::from_secs(90);
/// Counters from which identifications of IPv4 packets that can be fragmented are made. Pairs of hosts share them.
pub const IDENTIFICATION_COUNTERS: usize = 1 << 12;
/// Memory for retained data and fragments, in bytes.
pub const MEMORY_MAX_BYTES: usize = 1 << 30;
/// Connections that are remembered.
pub const FLOWS_MAX: usize = 1 << 20;
/// A host may hold as many connections that it opened as one part of so many of the free places.
/// One host alone may hold 61,681 of a table of 2^20; 10,000 hosts that take all they may leave
/// 1,675 places free.
pub const SOURCE_PART: u32 = 16;
/// What a host may hold in any case.
pub const SOURCE_FLOWS_MIN: usize = 16;
/// How many times that a host may hold, and a network of IPv6 of 64 bits, and one of 48.
pub const SOURCE_FLOWS_OF_LEVEL: [usize; 3] = [1, 4, 8];
/// A host may hold as much memory by connections that it opened as one part of so many of what is
/// free: alone a fifth of all, 179 MiB of the usual.
pub const SOURCE_MEMORY_PART: u32 = 4;
/// What a host may hold while there is any, in bytes: a window without scale.
pub const SOURCE_MEMORY_MIN_BYTES: usize = 64 << 10;
/// As [`SOURCE_FLOWS_OF_LEVEL`]; a part is larger here, so networks have less beyond it.
pub const SOURCE_MEMORY_OF_LEVEL: [usize; 3] = [1, 2, 3];
/// Acknowledgements after which it is looked at how much of a buffer was used since the last time.
pub const RETAINED_SHRINK_EVERY: u32 = 64;
/// A buffer of which one part in so many at most is used is exchanged for a smaller one.
pub const RETAINED_UNUSED_PART: usize = 8;
/// If it is at least so long, in bytes.
pub const RETAINED_SHRINK_MIN_BYTES: usize = 256 << 10;
/// Memory for segments that wait until their receiver has said how far it is, after a takeover, in
/// bytes: first flights of some thousand connections.
pub const PARKED_MAX_BYTES: usize = 16 << 20;
/// What such a segment costs beside its frame's bytes.
pub const PARKED_OVERHEAD_BYTES: usize = 128;
/// One half of a connection may have one part in this many of that memory, and less where more than
/// a few wait: of a thousand each has 15 KiB, of eight thousand one long segment.
pub const PARKED_SHARE: usize = 32;
/// Segments of one half that wait: six first flights (RFC 6928), or as many super-frames.
pub const PARKED_FRAMES_MAX: usize = 64;
/// How long they wait. A sender whose timer was doubled three times has sent again by then.
pub const PARKED_TIME: Duration = Duration::from_millis(2400);
/// Between two questions while something waits. Linux answers a segment without data only half a
/// second after the last one, and a gateway that is busy has no use for more of them.
pub const PARKED_ASK_AGAIN: Duration = Duration::from_millis(600);
/// Between two looks for those that are to be asked again.
pub const PARKED_LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Receivers that are asked again in one look.
pub const PARKED_ASKS_PER_LOOK: usize = 256;
/// Between two looks at connections that the kernel carries.
pub const CARRIED_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A connection that says nothing for so long makes room for another in the kernel.
pub const CARRIED_IDLE: Duration = Duration::from_secs(10);
/// An untrusted host may have one part of so many of the kernel's places, and of its rings of each
/// length.
pub const CARRIED_SOURCE_PART: u32 = 4;
/// Clean segments of a connection before it is handed over, and between two attempts; each time twice
/// as many while it comes back soon.
pub const CARRIED_PACKETS_MIN: u32 = 8;
/// How often that doubles: to 1,024.
pub const CARRIED_STAYS_MAX: u8 = 7;
/// Fewer segments than these are not worth what handing a connection over and back costs.
pub const CARRIED_FAR: u64 = 1000;
/// What may be under way of each half of a connection that is handed over, in bytes: a window without
/// scale.
pub const CARRIED_OPEN_MAX_BYTES: u32 = 64 << 10;
/// Clean segments since the last attempt after which a busy connection may be drained.
pub const DRAIN_PACKETS: u32 = 32;
/// How long windows are held. That costs nothing until they are exhausted.
pub const DRAIN_TIME: Duration = Duration::from_secs(2);
/// At the end of a drain a connection stands still for about a round trip. So the pause behind it
/// is so many times as long, and twice as long with each that was in vain.
pub const DRAIN_PAUSE: u32 = 16;
/// The shortest such pause.
pub const DRAIN_PAUSE_MIN: Duration = Duration::from_millis(10);
/// The longest, doublings included.
pub const DRAIN_PAUSE_MAX: Duration = Duration::from_secs(64);
/// How often that doubles.
pub const DRAIN_DOUBLINGS_MAX: u8 = 9;
/// What a sender has under way in front of the gateway is taken to be at most so many times what it
/// has behind it, and at least so many bytes.
pub const DRAIN_ROOM: u32 = 4;
/// See [`DRAIN_ROOM`].
pub const DRAIN_ROOM_MIN_BYTES: u32 = 512 << 10;
/// What a connection that was drained may have under way at least, in bytes: it is one of the fast
/// ones.
pub const DRAINED_ROOM_BYTES: u32 = 1 << 20;
/// What a half has under way that takes a shorter ring than a drained one.
pub const SHORT_ROOM_MAX_BYTES: u32 = 128 << 10;
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

/// How long a connection may take from one segment of its handshake to the next: longer than the gap between the first five
/// SYNs of a host that tries again (1, 2, 4, 8 and 16 s).
pub const HALF_OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a challenge is good, at least, by which a host shows that it receives; at most twice that.
/// A host repeats its SYN within 32 s, five times.
pub const CHALLENGE_LIFETIME: Duration = Duration::from_secs(32);
/// Requests for connections that come to nothing count for one or two of these.
pub const REQUEST_PERIOD: Duration = Duration::from_secs(15);
/// How long an address counts as validated after it last opened a connection.
pub const VALIDATED_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// Connections that a validated address may begin and not complete before it is challenged again.
pub const VALIDATED_UNASKED: u8 = 32;
/// Those that it may begin beside them, each with an answer of its own.
pub const VALIDATED_ANSWERS: u8 = 64;
/// Addresses that are remembered as validated, 32 bytes each, and as many single connections.
pub const VALIDATED_MAX: usize = 1 << 16;
/// How long the two sides of a connection that is older than the keys may say what does not agree, before it is ended. In
/// that time a host has sent the first unacknowledged byte again at least twice (RFC 6298, section 2).
pub const PROOF_TIME: Duration = Duration::from_secs(5);
/// How long an established connection may be silent, unless told: as long as Linux tracks one. RFC
/// 5382, REQ-5, asks for 2 hours 4 minutes, and pools of connections and shells are silent longer.
/// A full table takes the place of those that are idle.
pub const ESTABLISHED_TIMEOUT: Duration = Duration::from_secs(5 * 24 * 3600);
/// How long a connection may be silent after its first FIN (RFC 5382, REQ-5: not less than 4 minutes).
pub const CLOSING_TIMEOUT: Duration = Duration::from_secs(4 * 60);
/// How long a connection is remembered after its end, so that late segments are answered: twice what hosts here take for the
/// longest life of a segment (RFC 9293, section 3.4.2).
pub const CLOSED_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection that fell silent, or was severed, is refused rather than taken for an unknown one.
pub const ENDED_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How long an established connection must have been silent before a new one may take its place in a full table.
pub const IDLE_BEFORE_EVICTION: Duration = Duration::from_secs(5 * 60);
/// Connections that an operator may block at a time.
pub const BLOCKED_MAX: usize = 4096;

/// Unacknowledged bytes that are kept of one half of a connection: more than the buffers that systems give by themselves.
pub const RETAINED_MAX_BYTES: usize = 16 << 20;
/// Least memory for unacknowledged bytes of a connection that has any, in bytes.
pub const RETAINED_MIN_BYTES: usize = 512;
/// Pieces behind holes of one half of a connection; a tenth of all segments lost in a window of 2500 makes as many.
pub const ISLANDS_MAX: usize = 256;
/// Memory that waits to be used again for unacknowledged bytes, in bytes; never more than connections leave of their account.
pub const POOL_MAX_BYTES: usize = 32 << 20;

/// The window of trusted hosts in the handshake under `tcp-initial-window`, in bytes: less than nine of ten systems of nmap's list
/// begin with, and what none of them begins with, so that what leaves resembles none.
pub const INITIAL_WINDOW: u16 = 4001;
/// Bytes by which the segment size under `tcp-initial-window` is less than the link takes, which hardly any system announces.
pub const SEGMENT_UNUSED: usize = 4;
/// The window scale of trusted hosts under `tcp-initial-window`: what Linux has, so that few windows are rounded.
pub const WINDOW_SCALE: u8 = 7;

const _: () = assert!(RETAINED_MAX_BYTES.is_power_of_two() && RETAINED_MIN_BYTES.is_power_of_two());
const _: () = assert!(IDLE_BEFORE_EVICTION.as_secs() < ESTABLISHED_TIMEOUT.as_secs());
