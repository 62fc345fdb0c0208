//! The neighbour table: which hardware address an IP address has.

use std::io;
use std::net::Ipv4Addr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use wire::MacAddress;

use super::attribute::{find, number, put};
use super::{Connection, Message};

/// `struct ndmsg`: family, padding, interface index, state, flags, type.
const HEADER_LEN: usize = 12;
/// From linux/neighbour.h; who has set an entry. Before Linux 5.0 it is not kept.
const NDA_PROTOCOL: u16 = 12;
/// This program, among the numbers that nobody else has taken (`ip neigh` shows it as `proto 82`).
const OURS: u8 = 82;

/// A message about an address or a neighbour with another interface index: both have it at the same place.
pub(crate) fn with_index(body: &[u8], index: u32) -> Vec<u8> {
    let mut body = body.to_vec();
    if let Some(field) = body.get_mut(4..8) {
        field.copy_from_slice(&index.to_ne_bytes());
    }
    body
}

impl Connection {
    /// The entries of interface `index` that somebody else set for good.
    pub(crate) fn permanent_neighbours(&mut self, index: u32) -> io::Result<Vec<Vec<u8>>> {
        self.neighbours(index, |body| state(body) & libc::NUD_PERMANENT != 0 && !is_ours(body))
    }

    /// Gives interface `index` an entry that another interface had.
    pub(crate) fn add_neighbour(&mut self, index: u32, body: &[u8]) -> io::Result<()> {
        self.change(libc::RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &with_index(body, index))
    }

    /// Forgets every entry of interface `index` that was learned, or set for good by an earlier run of this program.
    pub(crate) fn forget_learned_neighbours(&mut self, index: u32) -> io::Result<()> {
        self.forget(index, |body| is_learned(body) || is_ours(body))
    }

    /// Forgets what the stack learned, and leaves what this program has set.
    pub(crate) fn forget_heard_neighbours(&mut self, index: u32) -> io::Result<()> {
        self.forget(index, is_learned)
    }

    fn forget(&mut self, index: u32, is_meant: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        for body in self.neighbours(index, is_meant)? {
            match self.change(libc::RTM_DELNEIGH, 0, &body) {
                // The kernel forgot it meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// Sets a permanent entry. Where somebody has set the same it stays his, who may want it for longer.
    pub(crate) fn set_neighbour(&mut self, index: u32, ip: Ipv4Addr, mac: MacAddress) -> io::Result<()> {
        let is_same = |body: &Vec<u8>| {
            let attributes = body.get(HEADER_LEN..).unwrap_or_default();
            find(attributes, libc::NDA_DST) == Some(&ip.octets()[..])
                && find(attributes, libc::NDA_LLADDR) == Some(&mac.0[..])
        };
        if self.permanent_neighbours(index)?.iter().any(is_same) {
            return Ok(());
        }
        let mut body = entry(index, ip);
        put(&mut body, libc::NDA_LLADDR, &mac.0);
        put(&mut body, NDA_PROTOCOL, &[OURS]);
        self.change(libc::RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &body)
    }

    /// Removes an entry.
    pub(crate) fn remove_neighbour(&mut self, index: u32, ip: Ipv4Addr) -> io::Result<()> {
        self.change(libc::RTM_DELNEIGH, 0, &entry(index, ip))
    }

    fn neighbours(&mut self, index: u32, wanted: impl Fn(&[u8]) -> bool) -> io::Result<Vec<Vec<u8>>> {
        let messages = self.dump(libc::RTM_GETNEIGH, &[0; HEADER_LEN])?;
        let is_wanted = |message: &Message| {
            let body = &message.body;
            // Bridge forwarding entries come with the same dump and have a family of their own.
            let is_ip =
                body.first().is_some_and(|&family| [libc::AF_INET, libc::AF_INET6].contains(&i32::from(family)));
            is_ip && body.get(4..).and_then(number) == Some(index) && wanted(body)
        };
        Ok(messages.into_iter().filter(is_wanted).map(|message| message.body).collect())
    }
}

/// How sure the kernel is of an entry.
fn state(body: &[u8]) -> u16 {
    body.get(8..10).map_or(libc::NUD_NONE, |state| u16::from_ne_bytes([state[0], state[1]]))
}

fn is_learned(body: &[u8]) -> bool {
    state(body) & (libc::NUD_PERMANENT | libc::NUD_NOARP) == 0
}

fn is_ours(body: &[u8]) -> bool {
    body.get(HEADER_LEN..).and_then(|attributes| find(attributes, NDA_PROTOCOL)) == Some(&[OURS])
}

fn entry(index: u32, ip: Ipv4Addr) -> Vec<u8> {
    let mut body = vec![0; HEADER_LEN];
    body[0] = libc::AF_INET as u8;
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
    put(&mut body, libc::NDA_DST, &ip.octets());
    body
}
