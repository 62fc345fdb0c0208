//! The honest stream: datagrams at a steady rate, each with its number and the time at which it was sent.
//!
//! One program has both ends, so they have one clock. The sender waits for nobody: what is not there in time is lost.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::stage::{RECEIVER_CORE, Receive, SENDER_CORE, STREAM_PRIORITY, sit_on};
use crate::bench::stats::quantile_of;
use crate::failure::Failure;
use crate::net::Host;
use crate::net::lan::INTERFACE;

/// Datagrams in a second, unless it is said otherwise.
pub const PER_SECOND: f64 = 20_000.0;
/// Bytes of a datagram.
pub const PAYLOAD_LEN: usize = 1300;
/// Port of the receiver.
const PORT: u16 = 7000;
/// What the receiver's socket holds, in bytes: losses are to be the daemon's.
const BUFFER_BYTES: usize = 4 << 20;
/// How long the last datagrams may take.
const LATE: Duration = Duration::from_millis(800);
/// How long the receiver waits before it looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// How long the sender rests between two looks at the clock: four datagrams, or it would leave the attacker no time.
const REST: Duration = Duration::from_micros(200);

/// What came of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub sent: u64,
    pub delivered: u64,
    pub delay_median_ms: f64,
    pub delay_p99_ms: f64,
}

/// Both ends, ready to begin.
pub struct Stream {
    sender: UdpSocket,
    receiver: UdpSocket,
    per_second: f64,
    /// The real-time priority of who reads, if it has any.
    reader_priority: Option<&'static str>,
}

impl Stream {
    /// Opens both ends; who reads stands to the kernel's receive thread as the receiver's daemon does.
    ///
    /// # Errors
    /// A socket cannot be opened.
    pub fn open(from: &Host, to: &Host, receive: Receive) -> Result<Stream, Failure> {
        let address = SocketAddr::from((to.ip, PORT));
        let receiver = to.namespace.enter(|| {
            let socket = UdpSocket::bind(address).map_err(Failure::io("opening the receiver's socket"))?;
            let widened = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES);
            widened.map_err(|error| Failure::Io { doing: "widening a socket".to_owned(), source: error.into() })?;
            socket.set_read_timeout(Some(LOOK)).map_err(Failure::io("setting a socket's patience"))?;
            Ok(socket)
        })?;
        let sender = from.namespace.enter(|| {
            let socket =
                UdpSocket::bind((from.ip, 0)).map_err(Failure::io(format!("opening a socket on {INTERFACE}")))?;
            socket.connect(address).map_err(Failure::io("naming the receiver"))?;
            Ok(socket)
        })?;
        Ok(Stream { sender, receiver, per_second: PER_SECOND, reader_priority: receive.of_daemon() })
    }

    /// With so many datagrams a second.
    pub fn at(self, per_second: f64) -> Stream {
        Stream { per_second, ..self }
    }

    /// Sends for as long as `time`, and calls `sent` when that is over.
    ///
    /// # Errors
    /// A thread cannot be bound to its processor.
    pub fn run(self, time: Duration, sent: impl FnOnce()) -> Result<Sample, Failure> {
        let (start, over) = (Instant::now(), AtomicBool::new(false));
        thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(&self.receiver, self.reader_priority, start, &over));
            let sender = scope.spawn(|| send(&self.sender, self.per_second, start, time));
            let count = sender.join();
            sent();
            thread::sleep(LATE);
            over.store(true, Ordering::Relaxed);
            let mut delays = receiver.join().map_err(|_| Failure::Unreadable("the receiver ended".to_owned()))??;
            delays.sort_by(f64::total_cmp);
            let at = |share| quantile_of(&delays, share).unwrap_or(0.0);
            let sent = count.map_err(|_| Failure::Unreadable("the sender ended".to_owned()))??;
            Ok(Sample { sent, delivered: delays.len() as u64, delay_median_ms: at(0.5), delay_p99_ms: at(0.99) })
        })
    }
}

fn send(socket: &UdpSocket, per_second: f64, start: Instant, time: Duration) -> Result<u64, Failure> {
    sit_on(SENDER_CORE, Some(STREAM_PRIORITY))?;
    let mut payload = [0; PAYLOAD_LEN];
    let mut sent = 0;
    while start.elapsed() < time {
        let due = (start.elapsed().as_secs_f64() * per_second) as u64;
        while sent < due {
            payload[..8].copy_from_slice(&(start.elapsed().as_nanos() as u64).to_be_bytes());
            // A full queue of the sender loses what it would have to hold.
            let _ = socket.send(&payload);
            sent += 1;
        }
        thread::sleep(REST);
    }
    Ok(sent)
}

/// Milliseconds that each datagram took.
fn receive(socket: &UdpSocket, priority: Option<&str>, start: Instant, over: &AtomicBool) -> Result<Vec<f64>, Failure> {
    sit_on(RECEIVER_CORE, priority)?;
    let mut delays = Vec::new();
    let mut payload = [0; PAYLOAD_LEN];
    while !over.load(Ordering::Relaxed) {
        let Ok(PAYLOAD_LEN) = socket.recv(&mut payload) else { continue };
        let mut sent_ns = [0; 8];
        sent_ns.copy_from_slice(&payload[..8]);
        let took = start.elapsed().saturating_sub(Duration::from_nanos(u64::from_be_bytes(sent_ns)));
        delays.push(took.as_secs_f64() * 1e3);
    }
    Ok(delays)
}
