//! What is done over a way beside bulk: echoes, floods of small datagrams, connections.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::track::Track;
use crate::bench::tcp::Direction;
use crate::failure::Failure;

const PORT: u16 = 7000;
/// How long the other end may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Payload of an echoed datagram, as `ping` sends.
const ECHO_LEN: usize = 56;
/// Payload of a frame of 64 bytes, check sequence included.
const SMALL_LEN: usize = 18;
/// Echoes ahead of a block that are not counted.
const WARM_UP: usize = 3;
/// Pause between two echoes. After longer ones the caches are cold, and their misses, not the path, are measured.
const INTERVAL: Duration = Duration::from_millis(2);

fn bind(track: &Track, trusted: bool, port: u16) -> Result<UdpSocket, Failure> {
    let host = if trusted { &track.trusted } else { &track.untrusted };
    let address = SocketAddr::from((host.ip, port));
    let socket = host.namespace.enter(|| UdpSocket::bind(address).map_err(Failure::io("binding a socket")))?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(Failure::io("setting a time-out"))?;
    Ok(socket)
}

/// Times of `count` echoes of a datagram, in microseconds. Not by ICMP, whose timing a gateway hides.
///
/// # Errors
/// An answer does not come.
pub fn echoes(track: &Track, count: usize) -> Result<Vec<f64>, Failure> {
    let (near, far) = (bind(track, false, PORT)?, bind(track, true, PORT)?);
    let failed = || Failure::io("waiting for an echo");
    near.connect((track.trusted.ip, PORT)).map_err(failed())?;
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; ECHO_LEN];
            for _ in 0..WARM_UP + count {
                let Ok((len, from)) = far.recv_from(&mut buffer) else { return };
                // A lost echo shows at the other end.
                let _sent = far.send_to(&buffer[..len], from);
            }
        });
        let mut times = Vec::new();
        for number in 0..WARM_UP + count {
            thread::sleep(INTERVAL);
            let mut buffer = [0; ECHO_LEN];
            let start = Instant::now();
            near.send(&[7; ECHO_LEN]).map_err(failed())?;
            near.recv(&mut buffer).map_err(failed())?;
            if number >= WARM_UP {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok(times)
    })
}

/// A flood of datagrams.
#[derive(Clone, Copy, Debug)]
pub struct Datagrams {
    /// From the untrusted to the trusted host, or back.
    pub direction: Direction,
    /// Payload of one, in bytes.
    pub len: usize,
    /// Source ports, used in turns.
    pub flows: usize,
    /// How long it lasts.
    pub time: Duration,
}

impl Datagrams {
    /// Frames of 64 bytes, check sequence included, to the trusted host.
    pub fn small(flows: usize, time: Duration) -> Datagrams {
        Datagrams { direction: Direction::Forward, len: SMALL_LEN, flows, time }
    }
}

/// Datagrams that arrive in a second while as many are sent as one thread can.
///
/// # Errors
/// A socket cannot be opened.
pub fn datagrams(track: &Track, flood: &Datagrams) -> Result<f64, Failure> {
    let to_trusted = flood.direction == Direction::Forward;
    let target = if to_trusted { track.trusted.ip } else { track.untrusted.ip };
    let far = bind(track, to_trusted, PORT + 1)?;
    let senders = (0..flood.flows).map(|_| {
        let socket = bind(track, !to_trusted, 0)?;
        socket.connect((target, PORT + 1)).map_err(Failure::io("naming the receiver"))?;
        Ok(socket)
    });
    let senders = senders.collect::<Result<Vec<_>, Failure>>()?;
    far.set_read_timeout(Some(Duration::from_millis(20))).map_err(Failure::io("setting a time-out"))?;
    let (arrived, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = vec![0; flood.len];
            while !stop.load(Ordering::Relaxed) {
                arrived.fetch_add(u64::from(far.recv(&mut buffer).is_ok()), Ordering::Relaxed);
            }
        });
        let payload = vec![7; flood.len];
        let mut turns = senders.iter().cycle();
        let start = Instant::now();
        while start.elapsed() < flood.time {
            for sender in turns.by_ref().take(64) {
                // A full queue is what is wanted here.
                let _sent = sender.send(&payload);
            }
        }
        let elapsed = start.elapsed();
        let count = arrived.load(Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
        Ok(count as f64 / elapsed.as_secs_f64())
    })
}

/// Times in microseconds of `count` TCP segments with `len` bytes from the untrusted host, each answered by one byte.
///
/// # Errors
/// The connection cannot be made, or breaks.
pub fn segments(track: &Track, len: usize, count: usize) -> Result<Vec<f64>, Failure> {
    let address = SocketAddr::from((track.trusted.ip, PORT + 3));
    let listener = track.trusted.namespace.enter(|| TcpListener::bind(address).map_err(Failure::io("listening")))?;
    let mut near = track
        .untrusted
        .namespace
        .enter(|| TcpStream::connect_timeout(&address, PATIENCE).map_err(Failure::io("connecting for round trips")))?;
    let (mut far, _) = listener.accept().map_err(Failure::io("accepting"))?;
    for stream in [&near, &far] {
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        set.map_err(Failure::io("setting up a connection"))?;
    }
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut buffer = vec![0; len];
            // It ends with the connection.
            while far.read_exact(&mut buffer).and_then(|()| far.write_all(&[2])).is_ok() {}
        });
        let mut times = Vec::new();
        let payload = vec![7; len];
        for number in 0..WARM_UP + count {
            thread::sleep(INTERVAL);
            let start = Instant::now();
            let answered = near.write_all(&payload).and_then(|()| near.read_exact(&mut [0]));
            answered.map_err(Failure::io("waiting for an answer of one byte"))?;
            if number >= WARM_UP {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
        }
        drop(near);
        Ok(times)
    })
}

/// TCP connections in a second, one after the other: opened, a byte each way, closed by the server.
///
/// # Errors
/// One cannot be made.
pub fn connections(track: &Track, time: Duration) -> Result<f64, Failure> {
    let address = SocketAddr::from((track.trusted.ip, PORT + 2));
    let listener = track.trusted.namespace.enter(|| TcpListener::bind(address).map_err(Failure::io("listening")))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stopped = &stop;
        scope.spawn(move || serve(&listener, stopped));
        let made = track.untrusted.namespace.enter(|| {
            let start = Instant::now();
            let mut count = 0_u64;
            while start.elapsed() < time {
                connect(address).map_err(Failure::io("a connection"))?;
                count += 1;
            }
            Ok(count as f64 / start.elapsed().as_secs_f64())
        });
        stop.store(true, Ordering::Relaxed);
        // The server waits for one more; where that fails it has ended already.
        let _last = track.untrusted.namespace.enter(|| connect(address).map_err(Failure::io("the last connection")));
        made
    })
}

fn connect(address: SocketAddr) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[1])?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    if answer == [2] { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
}

fn serve(listener: &TcpListener, stop: &AtomicBool) {
    while let Ok((mut stream, _)) = listener.accept() {
        let mut byte = [0];
        let _answered = stream.read_exact(&mut byte).and_then(|()| stream.write_all(&[2]));
        if stop.load(Ordering::Relaxed) {
            return;
        }
    }
}
