//! One run: a stream that keeps its receiver busy, alone or beside other frames.
//!
//! The sender is never more than a few frames ahead of what the receiver's programs have read, so nothing queues and nothing is lost
//! to a queue: what is measured is what the receiver's processor can do. Frames beside the stream come one for one, as from a second
//! sender of the same speed.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bump::Meta;
use system::port::{PacketPort, Sender};

use crate::bench::cpu;
use crate::bench::nonces::books::worked;
use crate::bench::nonces::placement::{RECEIVER_CORE, SENDER_CORE, sit_on};
use crate::failure::Failure;
use crate::guard::Daemon;
use crate::net::Host;

/// Port of the stream, and of a second valid one.
pub const PORT: u16 = 7000;
pub const PORT_BESIDE: u16 = 7001;
/// Frames of the stream that are sent and not yet read; twice as many fit the 256 places of the receiver's card.
const WINDOW: usize = 96;
/// Frames in one call to the kernel.
const HANDFUL: usize = 16;
/// What is not read after so long is lost.
const PATIENCE: Duration = Duration::from_millis(30);
/// How long a program waits for a message before it looks whether it is over.
const LOOK: Duration = Duration::from_millis(50);
/// What sockets hold, in bytes.
const BUFFER_BYTES: usize = 4 << 20;

/// Frames in the order in which they leave.
pub struct Feed<'a> {
    pub port: &'a mut PacketPort,
    pub frames: &'a [Vec<u8>],
    /// Frames of a message; 1 for what is no message.
    pub of_message: usize,
}

impl Feed<'_> {
    /// Sends `count` frames from number `at` on, beginning anew behind the last.
    fn send(&mut self, at: usize, count: usize) {
        for frame in (at..at + count).map(|at| &self.frames[at % self.frames.len()]) {
            if let Some(room) = self.port.sender.reserve(frame.len()) {
                room[..frame.len()].copy_from_slice(frame);
                self.port.sender.commit(frame.len(), Meta::plain());
            }
        }
        self.port.sender.flush();
    }
}

/// Who receives.
#[derive(Clone, Copy, Debug)]
pub struct Receiver<'a> {
    pub host: &'a Host,
    pub daemon: Option<&'a Daemon>,
    pub receive_threads: &'a [u32],
}

/// What a run showed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    pub messages_per_second: f64,
    /// Share of the messages that nobody read.
    pub lost: f64,
    /// How busy the receiver's processor was.
    pub load: f64,
    /// Processor time for each frame of the stream, in nanoseconds: of the receiver's daemon, and of the kernel's receive thread.
    pub daemon_ns: f64,
    pub receive_ns: f64,
}

/// What has been sent and read.
#[derive(Default)]
struct Progress {
    sent: usize,
    read: usize,
    lost: usize,
}

/// Sends `stream` for as long as `time`, or once if `once`, with as many frames of `beside`.
///
/// # Errors
/// A socket cannot be opened, or nothing was read.
pub fn run(
    receiver: Receiver<'_>,
    mut stream: Feed<'_>,
    mut beside: Option<Feed<'_>>,
    time: Duration,
    once: bool,
) -> Result<Measured, Failure> {
    let sockets = [open(receiver.host, PORT)?, open(receiver.host, PORT_BESIDE)?];
    let (counts, over) = ([AtomicU64::new(0), AtomicU64::new(0)], AtomicBool::new(false));
    let before = Spent::look(receiver)?;
    let start = Instant::now();
    let (progress, end) = thread::scope(|scope| {
        for (socket, count) in sockets.iter().zip(&counts) {
            scope.spawn(|| read(socket, count, &over));
        }
        let (stream, beside, count) = (&mut stream, beside.as_mut(), &counts[0]);
        let sender = scope.spawn(|| sit_on(SENDER_CORE, None).map(|()| feed(stream, beside, count, time, once)));
        let outcome = sender.join();
        over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|_| Err(Failure::Unreadable("the sender ended".to_owned())))
    })?;
    let spent = Spent::look(receiver)?.since(before);
    let elapsed = (end - start).as_secs_f64();
    if progress.read == 0 {
        return Err(Failure::Unreadable(format!("{} read nothing of {} messages", receiver.host.name, progress.sent)));
    }
    let frames = (progress.read * stream.of_message) as f64;
    Ok(Measured {
        messages_per_second: progress.read as f64 / elapsed,
        lost: progress.lost as f64 / progress.sent as f64,
        load: spent.core.as_secs_f64() / elapsed,
        daemon_ns: spent.daemon.as_secs_f64() * 1e9 / frames,
        receive_ns: spent.receive.as_secs_f64() * 1e9 / frames,
    })
}

/// Sends until it is over; what came of it, and when the last message was read.
fn feed(
    stream: &mut Feed<'_>,
    mut beside: Option<&mut Feed<'_>>,
    count: &AtomicU64,
    time: Duration,
    once: bool,
) -> (Progress, Instant) {
    let (mut progress, messages) = (Progress::default(), stream.frames.len() / stream.of_message);
    let at_once = (HANDFUL / stream.of_message).max(1);
    let start = Instant::now();
    let mut read_at = start;
    loop {
        let read = count.load(Ordering::Relaxed) as usize;
        if read > progress.read {
            (progress.read, read_at) = (read, Instant::now());
        }
        let under_way = progress.sent.saturating_sub(progress.read + progress.lost);
        let is_over = start.elapsed() >= time || (once && progress.sent + at_once > messages);
        if is_over && (under_way == 0 || read_at.elapsed() > PATIENCE) {
            progress.lost = progress.sent.saturating_sub(progress.read);
            return (progress, read_at);
        }
        if !is_over && (under_way + at_once) * stream.of_message <= WINDOW {
            let (at, frames) = (progress.sent * stream.of_message, at_once * stream.of_message);
            beside.iter_mut().for_each(|beside| beside.send(at, frames));
            stream.send(at, frames);
            progress.sent += at_once;
        } else if read_at.elapsed() > PATIENCE {
            progress.lost += under_way;
            read_at = Instant::now();
        } else {
            std::hint::spin_loop();
        }
    }
}

fn open(host: &Host, port: u16) -> Result<UdpSocket, Failure> {
    host.namespace.enter(|| {
        let address = SocketAddr::from((host.ip, port));
        let socket = UdpSocket::bind(address).map_err(Failure::io("opening the receiver's socket"))?;
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)
            .map_err(|error| Failure::Io { doing: "widening a socket".to_owned(), source: error.into() })?;
        socket.set_read_timeout(Some(LOOK)).map_err(Failure::io("setting a socket's patience"))?;
        Ok(socket)
    })
}

/// The program that the stream is for.
fn read(socket: &UdpSocket, count: &AtomicU64, over: &AtomicBool) {
    // Without its place it would only be slower, and the load would show it.
    let _ = sit_on(RECEIVER_CORE, None);
    let mut payload = [0; 1 << 14];
    while !over.load(Ordering::Relaxed) {
        if socket.recv(&mut payload).is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Processor time at one moment.
#[derive(Clone, Copy, Debug)]
struct Spent {
    core: Duration,
    daemon: Duration,
    receive: Duration,
}

impl Spent {
    fn look(receiver: Receiver<'_>) -> Result<Spent, Failure> {
        Ok(Spent {
            core: cpu::core(RECEIVER_CORE)?,
            daemon: receiver.daemon.map_or(Ok(Duration::ZERO), worked)?,
            receive: receiver.receive_threads.iter().map(|&thread| cpu::exact(thread)).sum::<Result<_, _>>()?,
        })
    }

    fn since(self, before: Spent) -> Spent {
        Spent {
            core: self.core.saturating_sub(before.core),
            daemon: self.daemon.saturating_sub(before.daemon),
            receive: self.receive.saturating_sub(before.receive),
        }
    }
}
