//! Honest traffic: pings, and datagrams from one host's stack to another's.

use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::failure::Failure;
use crate::net::link::{BROADCAST, INTERFACE};
use crate::net::{Host, Namespace, Running, process};

/// Longest datagram a [`Mailbox`] takes, in bytes.
const DATAGRAM_MAX: usize = 2048;

/// What became of a series of pings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PingTally {
    /// Requests sent.
    pub sent: u32,
    /// Answers received.
    pub received: u32,
}

impl PingTally {
    /// Whether the two hosts could talk: at least eight of ten requests were answered. The last one may still have been
    /// under way when the series was stopped, and is forgiven.
    #[must_use]
    pub fn lived(self) -> bool {
        self.received > 0 && (self.received + 1) * 10 >= self.sent * 8
    }
}

/// Pings at five a second until stopped.
#[derive(Debug)]
pub struct Ping {
    process: Running,
}

impl Ping {
    /// Starts pinging `to` from `from`; the output goes to a file in `directory`.
    ///
    /// # Errors
    /// ping cannot be started.
    pub fn start(from: &Host, to: &Host, directory: &Path) -> Result<Ping, Failure> {
        Ping::start_to(from, to, &to.ip.to_string(), directory)
    }

    /// As [`start`](Ping::start), over IPv6.
    ///
    /// # Errors
    /// As [`start`](Ping::start).
    pub fn start_over_ipv6(from: &Host, to: &Host, directory: &Path) -> Result<Ping, Failure> {
        Ping::start_to(from, to, &format!("{}%{INTERFACE}", to.link_local()), directory)
    }

    fn start_to(from: &Host, to: &Host, address: &str, directory: &Path) -> Result<Ping, Failure> {
        let mut command = from.namespace.command("ping");
        command.args(["-n", "-i", "0.2", address]);
        let process = Running::start(command, &directory.join(format!("ping-{}-{}.log", from.name, to.name)))?;
        Ok(Ping { process })
    }

    /// Ends the series.
    ///
    /// # Errors
    /// The output has no summary.
    pub fn stop(self) -> Result<PingTally, Failure> {
        tally(&self.process.stop(Signal::INT)).ok_or_else(|| Failure::Unreadable("ping's summary".to_owned()))
    }
}

/// Reads "12 packets transmitted, 11 received".
fn tally(output: &str) -> Option<PingTally> {
    let line = output.lines().find(|line| line.contains("packets transmitted"))?;
    let count_before = |word: &str| {
        let before = line.split(word).next()?.trim_end();
        before.rsplit(' ').next()?.parse().ok()
    };
    Some(PingTally { sent: count_before("packets transmitted")?, received: count_before("received")? })
}

/// Pings `to` from `namespace` until it answers; returns how long that took.
///
/// # Errors
/// No answer within `limit`.
pub fn reach(namespace: &Namespace, to: impl Display, limit: Duration) -> Result<Duration, Failure> {
    let start = Instant::now();
    process::until(&format!("an answer of {to} to a ping"), limit, || {
        let mut command = namespace.command("ping");
        command.args(["-n", "-c", "1", "-W", "1", &to.to_string()]);
        Ok(process::ask(command, &[])?.status.success())
    })?;
    Ok(start.elapsed())
}

/// A datagram socket in a host's stack.
#[derive(Debug)]
pub struct Mailbox {
    socket: UdpSocket,
}

impl Mailbox {
    /// Opens one at `port` of `host`.
    ///
    /// # Errors
    /// The port is taken.
    pub fn open(host: &Host, port: u16) -> Result<Mailbox, Failure> {
        let doing = || format!("opening UDP port {port} on host {}", host.name);
        host.namespace.enter(|| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).map_err(Failure::io(doing()))?;
            socket.set_nonblocking(true).map_err(Failure::io(doing()))?;
            Ok(Mailbox { socket })
        })
    }

    /// Sends `payload` to `port` of `to`. Like the network, it does not say whether it arrived.
    pub fn send(&self, to: &Host, port: u16, payload: &[u8]) {
        // "No route" and "unreachable" are what an attack may bring about; the receiver's count shows it.
        let _lost = self.socket.send_to(payload, (to.ip, port));
    }

    /// Sends `payload` to `port` of everybody on the LAN.
    ///
    /// # Errors
    /// The socket may not.
    pub fn shout(&self, port: u16, payload: &[u8]) -> Result<(), Failure> {
        self.socket.set_broadcast(true).map_err(Failure::io("making a socket shout"))?;
        let _lost = self.socket.send_to(payload, (BROADCAST, port));
        Ok(())
    }

    /// Takes all datagrams that have arrived, with their senders.
    ///
    /// # Errors
    /// The socket fails otherwise than by being empty.
    pub fn take(&self) -> Result<Vec<(SocketAddr, Vec<u8>)>, Failure> {
        let mut taken = Vec::new();
        let mut buffer = [0; DATAGRAM_MAX];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((len, sender)) => taken.push((sender, buffer[..len].to_vec())),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(taken),
                // An ICMP error for something sent earlier; what has arrived is still there.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(Failure::Io { doing: "receiving a datagram".to_owned(), source: error }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_iputils_are_read() {
        let text =
            "--- 10.77.0.2 ping statistics ---\n12 packets transmitted, 11 received, 8.3% packet loss, time 2ms\n";
        assert_eq!(tally(text), Some(PingTally { sent: 12, received: 11 }));
        let unreachable = "3 packets transmitted, 0 received, +3 errors, 100% packet loss, time 2034ms\n";
        assert_eq!(tally(unreachable), Some(PingTally { sent: 3, received: 0 }));
        assert_eq!(tally("ping: unknown host"), None);
    }

    #[test]
    fn a_series_lives_only_with_most_answers() {
        let lived = |sent, received| PingTally { sent, received }.lived();
        assert!(lived(12, 12) && lived(12, 11) && lived(1, 1));
        assert!(!lived(0, 0) && !lived(1, 0) && !lived(12, 6));
    }
}
