//! Addresses of an interface, kept as the kernel's own messages.

use std::io;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};

use super::Connection;
use super::attribute::{find, find_number, number};
use super::neighbour::with_index;

/// `struct ifaddrmsg`: family, prefix length, flags, scope, interface index.
const HEADER_LEN: usize = 8;

impl Connection {
    /// The addresses of interface `index` that somebody set or learned, in an order in which they can be given to
    /// another interface: the kernel appends IPv4 addresses, of which the first of a subnet is the primary one, and
    /// inserts IPv6 addresses before those of their scope.
    pub(crate) fn addresses(&mut self, index: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut mine = Vec::new();
        for message in self.dump(libc::RTM_GETADDR, &[0; HEADER_LEN])? {
            let ours = message.body.get(4..).and_then(number) == Some(index);
            if ours && message.body.len() >= HEADER_LEN && !is_temporary(&message.body) {
                mine.push(message.body);
            }
        }
        let (mut ordered, sixes): (Vec<_>, Vec<_>) =
            mine.into_iter().partition(|body| i32::from(body[0]) == libc::AF_INET);
        ordered.extend(sixes.into_iter().rev());
        Ok(ordered)
    }

    /// Gives interface `index` an address that another interface had.
    pub(crate) fn add_address(&mut self, index: u32, body: &[u8]) -> io::Result<()> {
        self.change(libc::RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &with_index(body, index))
    }
}

/// The address itself, as routes name it when they prefer it as their source.
pub(crate) fn local(body: &[u8]) -> Option<&[u8]> {
    let attributes = body.get(HEADER_LEN..)?;
    find(attributes, libc::IFA_LOCAL).or_else(|| find(attributes, libc::IFA_ADDRESS))
}

/// Temporary IPv6 addresses (RFC 8981) are made by the kernel and cannot be given to it.
fn is_temporary(body: &[u8]) -> bool {
    let flags = find_number(&body[HEADER_LEN..], libc::IFA_FLAGS).unwrap_or_default();
    i32::from(body[0]) == libc::AF_INET6 && flags & libc::IFA_F_TEMPORARY != 0
}
