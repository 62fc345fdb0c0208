//! ICMP for both versions of IP: RFC 792 and RFC 4443, the fixed part of a message.

/// Protocol number of ICMP.
pub const PROTOCOL_V4: u8 = 1;
/// Next header of ICMPv6.
pub const PROTOCOL_V6: u8 = 58;

/// Length of the part that all messages have: type, code, checksum, and four bytes that depend on the type.
pub const HEADER_LEN: usize = 8;
/// Offset of the code.
pub const CODE: usize = 1;
/// Offset of the checksum. ICMPv6 sums a pseudo header too.
pub const CHECKSUM: usize = 2;
/// Offset of what depends on the type: identifier and sequence number of an echo message, an MTU, a pointer, or nothing.
pub const REST: usize = 4;

/// Types of ICMP (IANA, ICMP parameters).
pub mod v4 {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Code of [`UNREACHABLE`]: fragmentation needed; the MTU stands in the last two bytes of the header (RFC 1191).
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Source quench (deprecated by RFC 6633).
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect; the address of the router stands in the header.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem; a pointer of one byte stands in the header.
    pub const PARAMETER_PROBLEM: u8 = 12;

    /// Types that are assigned and in use: those above but source quench and redirects, router
    /// discovery (9 and 10: RFC 1256, RFC 5944), security failures of Photuris (40: RFC 2521),
    /// mobility (41: RFC 4065), extended echo (42 and 43: RFC 8335).
    pub const OF_USE: [u8; 11] =
        [ECHO_REPLY, UNREACHABLE, ECHO_REQUEST, 9, 10, TIME_EXCEEDED, PARAMETER_PROBLEM, 40, 41, 42, 43];
}

/// Types of ICMPv6 (IANA, ICMPv6 parameters).
pub mod v6 {
    use std::ops::RangeInclusive;

    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big; the MTU stands in the header.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem; a pointer stands in the header.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Multicast listener query (RFC 2710).
    pub const LISTENER_QUERY: u8 = 130;
    /// Multicast listener done.
    pub const LISTENER_DONE: u8 = 132;
    /// Router solicitation, the first of neighbour discovery (RFC 4861).
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Router advertisement.
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Neighbour solicitation.
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    /// Neighbour advertisement.
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
    /// Redirect, the last of neighbour discovery.
    pub const REDIRECT: u8 = 137;
    /// Inverse neighbour solicitation (RFC 3122).
    pub const INVERSE_SOLICITATION: u8 = 141;
    /// Multicast listener report, version 2 (RFC 3810).
    pub const LISTENER_REPORT_V2: u8 = 143;
    /// Home agent address discovery request, the first of mobility (RFC 6275).
    pub const HOME_AGENT_REQUEST: u8 = 144;
    /// Certification path advertisement (RFC 3971).
    pub const CERTIFICATION_PATH: u8 = 149;
    /// Multicast router advertisement, the first of three (RFC 4286).
    pub const MULTICAST_ROUTER: u8 = 151;
    /// Multicast router termination.
    pub const MULTICAST_ROUTER_TERMINATION: u8 = 153;
    /// Extended echo reply (RFC 8335), the last type that is assigned.
    pub const EXTENDED_ECHO_REPLY: u8 = 161;

    /// Types that are assigned and in use: all but redirects, router renumbering (138: RFC 2894)
    /// and node information (139 and 140: RFC 4620).
    pub const OF_USE: [RangeInclusive<u8>; 4] = [
        UNREACHABLE..=PARAMETER_PROBLEM,
        ECHO_REQUEST..=NEIGHBOUR_ADVERTISEMENT,
        INVERSE_SOLICITATION..=MULTICAST_ROUTER_TERMINATION,
        MULTICAST_ROUTER_TERMINATION + 1..=EXTENDED_ECHO_REPLY,
    ];
}
