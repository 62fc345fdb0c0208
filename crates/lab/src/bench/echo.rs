//! Our own ping: ICMP echo over a raw socket, timed around the two system calls.
//!
//! `ping` starts a process, resolves and prints between the packets and rounds to a microsecond; a first ping is too
//! short for that. The answer comes from the other host's kernel, so that nothing but the path is timed.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, recv, sendto, socket};

use crate::cleanup;
use crate::failure::Failure;
use crate::net::Host;

/// Payload bytes, as `ping` sends.
const PAYLOAD_LEN: usize = 56;
/// Length of an echo message.
const MESSAGE_LEN: usize = 8 + PAYLOAD_LEN;
/// Type of an echo request (RFC 792).
const REQUEST: u8 = 8;
/// Type of an echo reply (RFC 792).
const REPLY: u8 = 0;
/// How long an answer may take; a lost first request is repeated by nobody.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// After this an address that has not answered is asked again.
const SWEEP_AGAIN: Duration = Duration::from_millis(250);
/// How often a sweep looks at the time while nobody answers.
const SWEEP_WAKE: Duration = Duration::from_millis(50);
/// Bytes of the largest answer, its IP header included.
const ANSWER_MAX: usize = 2048;

/// A socket that pings one address.
#[derive(Debug)]
pub struct Pinger {
    socket: OwnedFd,
    to: Ipv4Addr,
    identifier: u16,
    sequence: u16,
}

impl Pinger {
    /// Opens the socket in the stack of `from`. Nothing is sent yet.
    ///
    /// # Errors
    /// The kernel refuses a raw socket.
    pub fn open(from: &Host, to: Ipv4Addr) -> Result<Pinger, Failure> {
        let refused = |error: rustix::io::Errno| Failure::Io {
            doing: format!("opening a raw ICMP socket on host {}", from.name),
            source: error.into(),
        };
        let socket = from.namespace.enter(|| {
            let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).map_err(refused)?;
            set_socket_timeout(&socket, Timeout::Recv, Some(ANSWER_LIMIT)).map_err(refused)?;
            Ok(socket)
        })?;
        // The low half of the process id, as `ping` does: only our own answers are taken.
        let identifier = (std::process::id() & 0xffff) as u16;
        Ok(Pinger { socket, to, identifier, sequence: 0 })
    }

    /// Sends one request and waits for its answer; returns the time between the two.
    ///
    /// # Errors
    /// No answer within 5 s.
    pub fn once(&mut self) -> Result<Duration, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let message = request(self.identifier, self.sequence);
        let failed = |error: rustix::io::Errno| Failure::Io {
            doing: format!("waiting for the answer of {} to a ping", self.to),
            source: error.into(),
        };
        let start = Instant::now();
        sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrV4::new(self.to, 0)).map_err(failed)?;
        let mut answer = [0; ANSWER_MAX];
        loop {
            let (len, _) = recv(&self.socket, &mut answer[..], RecvFlags::empty()).map_err(failed)?;
            let elapsed = start.elapsed();
            if answers(&answer[..len], self.identifier, self.sequence) {
                return Ok(elapsed);
            }
            if elapsed > ANSWER_LIMIT {
                return Err(Failure::Late {
                    what: format!("the answer of {} to a ping", self.to),
                    limit: ANSWER_LIMIT,
                });
            }
        }
    }

    /// Sends `count` requests, `interval` after each answer; returns the times.
    ///
    /// # Errors
    /// One of them is not answered.
    pub fn series(&mut self, count: usize, interval: Duration) -> Result<Vec<Duration>, Failure> {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            thread::sleep(interval);
            times.push(self.once()?);
        }
        Ok(times)
    }
}

/// Pings all of `peers` from the namespace that the calling thread is in, each again and again until it has answered; returns how
/// long it took until the last one had.
///
/// # Errors
/// The kernel refuses a raw socket, the lab is interrupted, or somebody has not answered within `limit`.
pub fn sweep(peers: &[Ipv4Addr], limit: Duration) -> Result<Duration, Failure> {
    let refused = |error: rustix::io::Errno| Failure::Io { doing: "pinging many".to_owned(), source: error.into() };
    let socket = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::ICMP)).map_err(refused)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(SWEEP_WAKE)).map_err(refused)?;
    let identifier = (std::process::id() & 0xffff) as u16;
    let (start, mut silent, mut asked) = (Instant::now(), peers.to_vec(), None::<Instant>);
    while !silent.is_empty() {
        let _permit = cleanup::permit()?;
        if start.elapsed() > limit {
            return Err(Failure::Late { what: format!("the answer of {} to a ping", silent[0]), limit });
        }
        if asked.is_none_or(|asked| asked.elapsed() >= SWEEP_AGAIN) {
            asked = Some(Instant::now());
            for to in &silent {
                // Who has no address yet is unreachable, and is asked again.
                let _unreachable =
                    sendto(&socket, &request(identifier, 0), SendFlags::empty(), &SocketAddrV4::new(*to, 0));
            }
        }
        let mut answer = [0; ANSWER_MAX];
        if let Ok((len, _)) = recv(&socket, &mut answer[..], RecvFlags::empty())
            && answers(&answer[..len], identifier, 0)
        {
            silent.retain(|peer| answer[12..16] != peer.octets());
        }
    }
    Ok(start.elapsed())
}

/// An echo request with a payload of zeros.
fn request(identifier: u16, sequence: u16) -> [u8; MESSAGE_LEN] {
    let mut message = [0; MESSAGE_LEN];
    message[0] = REQUEST;
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = wire::checksum::Sum::default().bytes(&message).checksum();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    message
}

/// Whether `packet`, which a raw socket delivers with its IP header, answers our request.
fn answers(packet: &[u8], identifier: u16, sequence: u16) -> bool {
    let header_len = packet.first().map_or(0, |byte| usize::from(byte & 0x0f) * 4);
    let Some(message) = packet.get(header_len..).filter(|message| message.len() >= 8) else { return false };
    message[0] == REPLY && message[4..6] == identifier.to_be_bytes() && message[6..8] == sequence.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksum by hand: 0x0800 + 0x1234 + 0x0001 = 0x1a35, complement 0xe5ca.
    #[test]
    fn a_request_carries_its_checksum() {
        let message = request(0x1234, 1);
        assert_eq!(message[..8], [8, 0, 0xe5, 0xca, 0x12, 0x34, 0, 1]);
    }

    #[test]
    fn only_the_reply_to_the_last_request_counts() {
        let mut packet = vec![0x45; 1];
        packet.resize(20, 0);
        packet.extend([0, 0, 0, 0, 0x12, 0x34, 0, 7]);
        assert!(answers(&packet, 0x1234, 7));
        assert!(!answers(&packet, 0x1234, 8), "an answer that came late");
        assert!(!answers(&packet, 0x1235, 7), "somebody else's");
        packet[20] = REQUEST;
        assert!(!answers(&packet, 0x1234, 7), "our own request over loopback");
        assert!(!answers(&packet[..25], 0x1234, 7));
        assert!(!answers(&[], 0x1234, 7));
    }
}
