//! The honest stream: datagrams at a steady rate, each with its number and the time at which it was sent.
//!
//! One program has both ends, so they have one clock. The sender waits for nobody: what is not there in time is lost. Where sealing takes
//! a processor of its own, it is done before the clock starts, and what leaves meanwhile are the frames.

use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use system::port::{PacketPort, Sender};

use super::placement::{RECEIVER_CORE, Receive, SENDER_CORE, STREAM_PRIORITY, sit_on};
use crate::bench::stats::quantile_of;
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, link};

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
/// Datagrams in a second where they are sealed before the clock starts: a processor has time for more, and for who takes them down.
const SEALED_PER_SECOND: f64 = 12_000.0;
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

/// Where datagrams come from.
enum Source {
    /// A program above the sender's daemon.
    Program(UdpSocket),
    /// A wire on which frames leave that were sealed before.
    Sealed(Box<PacketPort>, Vec<Frame>),
}

/// Both ends, ready to begin.
pub struct Stream {
    source: Source,
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
        let source = Source::Program(sender);
        Ok(Stream { source, receiver, per_second: PER_SECOND, reader_priority: receive.of_daemon() })
    }

    /// Sends the datagrams of so much time now, slowly: who takes down the frames that become of them can have them
    /// [leave](Stream::leaving) at their time. Returns how many there are.
    ///
    /// # Errors
    /// A thread cannot be bound to its processor, or the datagrams of this stream were sealed before.
    pub fn seal(&self, time: Duration) -> Result<usize, Failure> {
        let Source::Program(socket) = &self.source else {
            return Err(Failure::Usage("a stream that was sealed before".to_owned()));
        };
        let (per_second, count) = (self.per_second, (time.as_secs_f64() * self.per_second) as usize);
        thread::scope(|scope| scope.spawn(|| seal(socket, per_second, count)).join())
            .map_err(|_| Failure::Unreadable("the sender ended".to_owned()))??;
        Ok(count)
    }

    /// The same stream of `frames`, which [sealing](Stream::seal) it made, from the wire of `from`.
    ///
    /// # Errors
    /// There is no such wire.
    pub fn leaving(self, from: &Host, frames: Vec<Frame>) -> Result<Stream, Failure> {
        let port = from.namespace.enter(|| link::open_to_send(INTERFACE))?;
        Ok(Stream { source: Source::Sealed(Box::new(port), frames), ..self })
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
        let Stream { source, receiver, per_second, reader_priority } = self;
        let (start, over) = (Instant::now(), AtomicBool::new(false));
        thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(&receiver, reader_priority, start, &over));
            let sender = scope.spawn(move || send(source, per_second, start, time));
            let count = sender.join();
            sent();
            thread::sleep(LATE);
            over.store(true, Ordering::Relaxed);
            let mut delays = receiver.join().map_err(|_| Failure::Unreadable("the receiver ended".to_owned()))??;
            delays.sort_by(f64::total_cmp);
            // What never arrives is no early arrival.
            let never_ms = (time + LATE).as_secs_f64() * 1e3;
            let at = |share| quantile_of(&delays, share).unwrap_or(never_ms);
            let sent = count.map_err(|_| Failure::Unreadable("the sender ended".to_owned()))??;
            Ok(Sample { sent, delivered: delays.len() as u64, delay_median_ms: at(0.5), delay_p99_ms: at(0.99) })
        })
    }
}

impl Source {
    /// Sends the datagrams of these numbers.
    fn send(&mut self, numbers: Range<usize>, start: Instant) {
        match self {
            // A full queue of the sender loses what it would have to hold.
            Source::Program(socket) => numbers.for_each(|_| drop(socket.send(&payload(start.elapsed())))),
            Source::Sealed(port, frames) => {
                frames[numbers].iter().for_each(|frame| link::put(port, frame));
                port.sender.flush();
            }
        }
    }

    /// Most datagrams that there are.
    fn count(&self) -> usize {
        match self {
            Source::Program(_) => usize::MAX,
            Source::Sealed(_, frames) => frames.len(),
        }
    }
}

/// Sends `count` datagrams, each with the moment at which it is due in a stream of so many a second.
fn seal(socket: &UdpSocket, per_second: f64, count: usize) -> Result<(), Failure> {
    sit_on(SENDER_CORE, Some(STREAM_PRIORITY))?;
    let (start, mut sent) = (Instant::now(), 0);
    while sent < count {
        let due = count.min((start.elapsed().as_secs_f64() * SEALED_PER_SECOND) as usize);
        for number in sent..due {
            let _ = socket.send(&payload(Duration::from_secs_f64(number as f64 / per_second)));
        }
        sent = due;
        thread::sleep(REST);
    }
    Ok(())
}

fn send(mut source: Source, per_second: f64, start: Instant, time: Duration) -> Result<u64, Failure> {
    sit_on(SENDER_CORE, Some(STREAM_PRIORITY))?;
    let mut sent = 0;
    while start.elapsed() < time {
        let due = (start.elapsed().as_secs_f64() * per_second) as usize;
        let due = due.min(source.count());
        source.send(sent..due, start);
        sent = due;
        thread::sleep(REST);
    }
    Ok(sent as u64)
}

/// A datagram of this moment of the stream.
fn payload(at: Duration) -> [u8; PAYLOAD_LEN] {
    let mut payload = [0; PAYLOAD_LEN];
    payload[..8].copy_from_slice(&(at.as_nanos() as u64).to_be_bytes());
    payload
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
