//! Requests with their answers, and subscriptions.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Bytes before a message's body: length, type, flags, sequence number, port.
const HEADER_LEN: usize = 16;
/// Bytes of one read. The kernel never packs more of a dump into one datagram.
const READ_BYTES: usize = 64 * 1024;
/// Times a dump is repeated when the table changed under it.
const DUMP_ATTEMPTS: usize = 8;
/// Bytes of pending changes that a subscription holds before it must start over.
const SUBSCRIPTION_BYTES: usize = 256 * 1024;

/// A message without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// Message type (`RTM_*`).
    pub(crate) kind: u16,
    /// The family's fixed header, then attributes.
    pub(crate) body: Vec<u8>,
}

/// A socket for requests, bound to the network namespace in which it was opened.
pub(crate) struct Connection {
    socket: Socket,
    sequence: u32,
}

impl Connection {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Connection> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Connection { socket, sequence: 0 })
    }

    /// Asks for a change and waits until the kernel made or refused it.
    pub(crate) fn change(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.send(kind, NLM_F_REQUEST | NLM_F_ACK | flags, body)?;
        self.receive().map(drop)
    }

    /// Asks for one object.
    pub(crate) fn get(&mut self, kind: u16, body: &[u8]) -> io::Result<Option<Message>> {
        self.send(kind, NLM_F_REQUEST | NLM_F_ACK, body)?;
        Ok(self.receive()?.0.pop())
    }

    /// Asks for a whole table.
    pub(crate) fn dump(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<Message>> {
        for _ in 0..DUMP_ATTEMPTS {
            self.send(kind, NLM_F_REQUEST | NLM_F_DUMP, body)?;
            let (messages, whole) = self.receive()?;
            if whole {
                return Ok(messages);
            }
        }
        Err(io::Error::other("a kernel table changes faster than it can be read"))
    }

    fn send(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = vec![0; HEADER_LEN];
        let mut header = NetlinkBuffer::new(&mut bytes[..]);
        header.set_length(u32::try_from(HEADER_LEN + body.len()).unwrap_or(u32::MAX));
        header.set_message_type(kind);
        header.set_flags(flags);
        header.set_sequence_number(self.sequence);
        bytes.extend_from_slice(body);
        self.socket.send(&bytes, 0).map(drop)
    }

    /// Collects the answer to the last request, and whether it is a picture of one moment.
    fn receive(&mut self) -> io::Result<(Vec<Message>, bool)> {
        let mut messages = Vec::new();
        let mut whole = true;
        loop {
            let mut bytes = Vec::with_capacity(READ_BYTES);
            self.socket.recv(&mut bytes, 0)?;
            for part in split(&bytes) {
                if part.sequence_number() != self.sequence {
                    continue;
                }
                whole &= part.flags() & NLM_F_DUMP_INTR == 0;
                match part.message_type() {
                    NLMSG_DONE => return Ok((messages, whole)),
                    NLMSG_ERROR => return refusal(part.payload()).map_or(Ok((messages, whole)), Err),
                    kind => messages.push(Message { kind, body: part.payload().to_vec() }),
                }
            }
        }
    }
}

/// The messages of one datagram, up to the first that is cut short.
fn split(bytes: &[u8]) -> impl Iterator<Item = NetlinkBuffer<&[u8]>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let part = NetlinkBuffer::new_checked(rest).ok()?;
        let length = usize::try_from(part.length()).ok()?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(part)
    })
}

/// The error in an acknowledgement, if it is one.
fn refusal(payload: &[u8]) -> Option<io::Error> {
    let code = payload.get(..4).and_then(|code| Some(i32::from_ne_bytes(code.try_into().ok()?)))?;
    (code != 0).then(|| io::Error::from_raw_os_error(-code))
}

/// A socket that hears of changes in the network namespace in which it was opened.
pub(crate) struct Subscription {
    socket: Socket,
}

impl Subscription {
    /// Subscribes to multicast group `group` (`RTNLGRP_*`).
    pub(crate) fn open(group: u32) -> io::Result<Subscription> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.set_rx_buf_sz(i32::try_from(SUBSCRIPTION_BYTES).unwrap_or(i32::MAX))?;
        socket.add_membership(group)?;
        socket.set_non_blocking(true)?;
        Ok(Subscription { socket })
    }

    /// The next changes; none if nothing happened. `ENOBUFS` means that some were lost.
    pub(crate) fn next(&mut self) -> io::Result<Vec<Message>> {
        let mut bytes = Vec::with_capacity(READ_BYTES);
        match self.socket.recv_from(&mut bytes, 0) {
            // Only the kernel may tell us about changes; any process can send to a socket's port.
            Ok((_, sender)) if sender.port_number() != 0 => Ok(Vec::new()),
            Ok(_) => Ok(split(&bytes)
                .map(|part| Message { kind: part.message_type(), body: part.payload().to_vec() })
                .collect()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Subscription {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Subscription {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.socket.as_raw_fd()
    }
}
