//! Routes that depend on an interface, kept as the kernel's own messages.

use std::io;

use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE};

use super::Connection;
use super::attribute::{each_flagged, find, find_number, number, put};
use netlink_packet_core::NLA_TYPE_MASK;

/// `struct rtmsg`: family, prefix lengths, service, table, protocol, scope, type, flags.
const HEADER_LEN: usize = 12;
/// `struct rtnexthop`: length, flags, hops, interface index; then attributes.
const HOP_LEN: usize = 8;
/// `RTNH_F_PERVASIVE` and `RTNH_F_ONLINK` (linux/rtnetlink.h): what somebody asked for. Other flags are the kernel's
/// own report, which it refuses to take back.
const REQUESTED_FLAGS: u32 = 2 | 4;
/// `RTA_NH_ID`: the number of a next hop object.
const NEXT_HOP_OBJECT: u16 = 30;

/// Which routes a dump is searched for.
pub(crate) struct Dependence<'a> {
    /// Routes that leave through this interface.
    pub(crate) index: u32,
    /// Routes elsewhere that prefer one of these source addresses: the kernel drops them with the address.
    pub(crate) sources: Vec<&'a [u8]>,
}

impl Connection {
    /// The routes of every table that depend on an interface, ready to be sent again.
    pub(crate) fn routes(&mut self, dependence: &Dependence<'_>) -> io::Result<Vec<Vec<u8>>> {
        let messages = self.dump(libc::RTM_GETROUTE, &[0; HEADER_LEN])?;
        let bodies = messages.into_iter().map(|message| message.body);
        Ok(bodies.filter(|body| dependence.covers(body)).filter_map(|body| restorable(&body)).collect())
    }

    /// Adds a route that another interface had; that it exists already is no error.
    pub(crate) fn add_route(&mut self, body: &[u8]) -> io::Result<()> {
        // IPv4 tells routes that differ only in their next hop apart by appending; IPv6 would merge them.
        let append = if is_ipv4(body) { NLM_F_APPEND } else { 0 };
        match self.change(libc::RTM_NEWROUTE, NLM_F_CREATE | append, body) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            other => other,
        }
    }

    /// Deletes a route.
    pub(crate) fn delete_route(&mut self, body: &[u8]) -> io::Result<()> {
        self.change(libc::RTM_DELROUTE, 0, body)
    }
}

impl Dependence<'_> {
    fn covers(&self, body: &[u8]) -> bool {
        let Some(attributes) = body.get(HEADER_LEN..) else { return false };
        let leaves = find_number(attributes, libc::RTA_OIF) == Some(self.index);
        let hops = find(attributes, libc::RTA_MULTIPATH).unwrap_or_default();
        let shares = each_hop(hops).any(|hop| hop.get(4..).and_then(number) == Some(self.index));
        let prefers = find(attributes, libc::RTA_PREFSRC).is_some_and(|source| self.sources.contains(&source));
        (leaves || shares || prefers) && !is_cached(body)
    }
}

/// Whether the kernel made the route by itself, from an address.
pub(crate) fn is_kernel_made(body: &[u8]) -> bool {
    body.get(5) == Some(&libc::RTPROT_KERNEL)
}

/// Whether the route is an IPv4 one.
pub(crate) fn is_ipv4(body: &[u8]) -> bool {
    body.first().is_some_and(|&family| i32::from(family) == libc::AF_INET)
}

/// The route with interface `from` replaced by `to`.
pub(crate) fn with_index(body: &[u8], from: u32, to: u32) -> Vec<u8> {
    let Some((header, attributes)) = body.split_at_checked(HEADER_LEN) else { return body.to_vec() };
    let moved = |value: &[u8]| {
        if number(value) == Some(from) { to.to_ne_bytes().to_vec() } else { value.to_vec() }
    };
    let mut result = header.to_vec();
    for (kind, value) in each_flagged(attributes) {
        match kind & NLA_TYPE_MASK {
            libc::RTA_OIF => put(&mut result, kind, &moved(value)),
            libc::RTA_MULTIPATH => {
                let hops = rewrite_hops(value, |hop| {
                    let index = moved(&hop[4..HOP_LEN]);
                    hop[4..HOP_LEN].copy_from_slice(&index);
                });
                put(&mut result, kind, &hops);
            }
            _ => put(&mut result, kind, value),
        }
    }
    result
}

/// Routes learned from packets live in a cache and are nobody's configuration.
fn is_cached(body: &[u8]) -> bool {
    const RTM_F_CLONED: u32 = 0x200;
    let flags = body.get(8..).and_then(number).unwrap_or_default();
    flags & RTM_F_CLONED != 0 || body.get(5) == Some(&libc::RTPROT_REDIRECT)
}

/// The message without what the kernel reports but does not accept. A next hop object disappears together with the
/// interface; the kernel reports its content beside its number, and the content is what can be restored.
fn restorable(body: &[u8]) -> Option<Vec<u8>> {
    let (header, attributes) = body.split_at_checked(HEADER_LEN)?;
    let mut result = header.to_vec();
    let flags = number(&header[8..])? & REQUESTED_FLAGS;
    result[8..12].copy_from_slice(&flags.to_ne_bytes());
    for (kind, value) in each_flagged(attributes) {
        match kind & NLA_TYPE_MASK {
            NEXT_HOP_OBJECT => {}
            libc::RTA_CACHEINFO => {
                if let Some(seconds) = expiry(value) {
                    put(&mut result, libc::RTA_EXPIRES, &seconds.to_ne_bytes());
                }
            }
            libc::RTA_MULTIPATH => {
                let hops = rewrite_hops(value, |hop| hop[2] &= REQUESTED_FLAGS as u8);
                put(&mut result, kind, &hops);
            }
            _ => put(&mut result, kind, value),
        }
    }
    Some(result)
}

/// Seconds until the route expires, from `struct rta_cacheinfo` (clock ticks of 1/100 s); none if it never does.
fn expiry(value: &[u8]) -> Option<u32> {
    const TICKS_PER_SECOND: u32 = 100;
    number(value.get(8..)?).filter(|&ticks| ticks > 0 && ticks <= i32::MAX as u32).map(|ticks| ticks / TICKS_PER_SECOND)
}

fn each_hop(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes([*rest.first()?, *rest.get(1)?]));
        let hop = rest.get(..length).filter(|hop| hop.len() >= HOP_LEN)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(hop)
    })
}

fn rewrite_hops(bytes: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len());
    for hop in each_hop(bytes) {
        let mut hop = hop.to_vec();
        change(&mut hop);
        result.extend_from_slice(&hop);
        result.resize(result.len().next_multiple_of(4), 0);
    }
    result
}
