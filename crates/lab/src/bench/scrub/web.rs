//! Web clients and a web server as the paper has them (section III-D): the server returns one page for every connection
//! without parsing what is asked, and each client asks for it again and again.
//!
//! Each side is one thread with many sockets, so that hundreds of clients cost two processors no more than their packets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};

use crate::failure::Failure;
use crate::net::Host;

/// The server's port.
pub const PORT: u16 = 8000;
/// How the server reacts to loss, as most hosts do. Some machines' default is BBR, which takes no notice of it.
const CONGESTION: &str = "cubic";
/// How long either side sleeps at most before it looks at the clock.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// Events taken at a time.
const EVENTS: usize = 256;
/// Bytes read or written at a time.
const CHUNK: usize = 64 << 10;
/// What stands for the listening socket among the sockets.
const LISTENER: u64 = u64::MAX;
/// More failures than one in so many make a run worthless.
const FAILED_ONE_IN: u64 = 100;
/// A page without end.
pub const ENDLESS: u64 = 1 << 50;

/// What is fetched, by how many at a time, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Bytes of the page.
    pub page_len: u64,
    /// Connections at a time.
    pub clients: usize,
    /// How long until what is fetched counts.
    pub warm_up: Duration,
    /// How long it counts.
    pub time: Duration,
}

/// What was fetched while it counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetched {
    /// Whole pages in a second.
    pub pages_per_second: f64,
    /// Payload in Mbit/s.
    pub goodput_mbit: f64,
}

/// Who serves, who asks, and whom they ask: the server itself, or a proxy in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Ends<'a> {
    /// The host of the server.
    pub server: &'a Host,
    /// The host of the clients.
    pub clients: &'a Host,
    /// The proxy, if there is one.
    pub proxy: Option<SocketAddrV4>,
}

/// Fetches pages for a while.
///
/// # Errors
/// A socket cannot be opened, or nothing was fetched.
pub fn fetch(ends: &Ends<'_>, load: &Load) -> Result<Fetched, Failure> {
    let address = SocketAddrV4::new(ends.server.ip, PORT);
    let listener = ends.server.namespace.enter(|| listen(address))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (stopped, page_len) = (&stop, load.page_len);
        let server = scope.spawn(move || Server::new(listener, page_len)?.serve(stopped));
        let fetched = ends.clients.namespace.enter(|| Clients::new(ends, load)?.fetch(load));
        stop.store(true, Ordering::Relaxed);
        let served = server.join().unwrap_or_else(|_| Err(Failure::Unreadable("the web server ended".to_owned())));
        served.and(fetched)
    })
}

fn listen(address: SocketAddrV4) -> Result<TcpListener, Failure> {
    let listener =
        TcpListener::bind(SocketAddr::from(address)).map_err(Failure::io("opening the web server's port"))?;
    // The library's backlog of 128 would refuse what hundreds of clients begin at once.
    rustix::net::listen(&listener, 4096).map_err(|error| failed("listening", error))?;
    sockopt::set_tcp_congestion(&listener, CONGESTION).map_err(|error| failed("choosing CUBIC", error))?;
    listener.set_nonblocking(true).map_err(Failure::io("listening"))?;
    Ok(listener)
}

fn failed(doing: &str, error: Errno) -> Failure {
    Failure::Io { doing: doing.to_owned(), source: error.into() }
}

/// Sockets by number, and the kernel's list of those that are ready.
struct Sockets<T> {
    poll: OwnedFd,
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T: AsFd> Sockets<T> {
    fn new() -> Result<Sockets<T>, Failure> {
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| failed("making a list of sockets", error))?;
        Ok(Sockets { poll, slots: Vec::new(), free: Vec::new() })
    }

    /// Keeps a socket under a number from now on, and waits for whatever happens to it.
    fn insert(&mut self, socket: T) -> Result<(), Failure> {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let both = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
        epoll::add(&self.poll, &socket, EventData::new_u64(slot as u64), both)
            .map_err(|error| failed("waiting for a socket", error))?;
        self.slots[slot] = Some(socket);
        Ok(())
    }

    /// Forgets a socket; the kernel forgets it with its last descriptor.
    fn remove(&mut self, slot: usize) {
        self.slots[slot] = None;
        self.free.push(slot);
    }

    /// Numbers of sockets that are ready, with what for.
    fn ready(&self, events: &mut Vec<Event>) -> Result<(), Failure> {
        events.clear();
        match epoll::wait(&self.poll, rustix::buffer::spare_capacity(events), Some(&TURN)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(failed("waiting for sockets", error)),
        }
    }
}

/// A connection at the server: what of the page is still to be sent, once it was asked for.
struct Served {
    stream: TcpStream,
    header: Vec<u8>,
    left: Option<u64>,
}

struct Server {
    listener: TcpListener,
    page_len: u64,
    sockets: Sockets<Served>,
    body: Vec<u8>,
}

impl Server {
    fn new(listener: TcpListener, page_len: u64) -> Result<Server, Failure> {
        let sockets = Sockets::new()?;
        epoll::add(&sockets.poll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)
            .map_err(|error| failed("waiting for connections", error))?;
        Ok(Server { listener, page_len, sockets, body: vec![b'x'; CHUNK] })
    }

    fn serve(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        let mut events = Vec::with_capacity(EVENTS);
        while !stop.load(Ordering::Relaxed) {
            self.sockets.ready(&mut events)?;
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    slot => self.go_on(slot as usize),
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), Failure> {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).map_err(Failure::io("serving"))?;
            let header = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", self.page_len).into_bytes();
            self.sockets.insert(Served { stream, header, left: None })?;
        }
        Ok(())
    }

    fn go_on(&mut self, slot: usize) {
        let Some(served) = self.sockets.slots.get_mut(slot).and_then(Option::as_mut) else { return };
        match served.go_on(&self.body, self.page_len) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // The client is done, or has gone away.
            Ok(()) | Err(_) => self.sockets.remove(slot),
        }
    }
}

impl AsFd for Served {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Served {
    /// Sends as much as the socket takes, then waits until the client closes.
    fn go_on(&mut self, body: &[u8], page_len: u64) -> std::io::Result<()> {
        if self.left.is_none() {
            let mut request = [0; 2048];
            if self.stream.read(&mut request)? == 0 {
                return Ok(());
            }
            self.left = Some(page_len);
        }
        while !self.header.is_empty() {
            let sent = self.stream.write(&self.header)?;
            self.header.drain(..sent);
        }
        while let Some(left) = self.left.filter(|left| *left > 0) {
            let len = left.min(body.len() as u64) as usize;
            let sent = self.stream.write(&body[..len])? as u64;
            self.left = Some(left - sent);
        }
        self.stream.shutdown(std::net::Shutdown::Write)?;
        let mut rest = [0; 2048];
        while self.stream.read(&mut rest)? > 0 {}
        Ok(())
    }
}

/// A connection of a client.
struct Asking {
    stream: TcpStream,
    asked: bool,
    received: u64,
}

struct Clients {
    sockets: Sockets<Asking>,
    to: SocketAddrV4,
    request: Vec<u8>,
    page_len: u64,
    pages: u64,
    bytes: u64,
    failed: u64,
    buffer: Vec<u8>,
}

impl Clients {
    fn new(ends: &Ends<'_>, load: &Load) -> Result<Clients, Failure> {
        let page = match ends.proxy {
            Some(_) => format!("http://{}:{PORT}/", ends.server.ip),
            None => "/".to_owned(),
        };
        Ok(Clients {
            sockets: Sockets::new()?,
            to: ends.proxy.unwrap_or(SocketAddrV4::new(ends.server.ip, PORT)),
            request: format!("GET {page} HTTP/1.0\r\n\r\n").into_bytes(),
            page_len: load.page_len,
            pages: 0,
            bytes: 0,
            failed: 0,
            buffer: vec![0; CHUNK],
        })
    }

    fn fetch(&mut self, load: &Load) -> Result<Fetched, Failure> {
        for _ in 0..load.clients {
            self.begin()?;
        }
        self.run_for(load.warm_up)?;
        (self.pages, self.bytes, self.failed) = (0, 0, 0);
        let elapsed = self.run_for(load.time)?.as_secs_f64();
        if self.bytes == 0 || self.failed * FAILED_ONE_IN > self.pages {
            let (failed, pages) = (self.failed, self.pages);
            return Err(Failure::Unreadable(format!("from {} came {pages} pages, {failed} failed", self.to)));
        }
        Ok(Fetched { pages_per_second: self.pages as f64 / elapsed, goodput_mbit: self.bytes as f64 * 8e-6 / elapsed })
    }

    fn run_for(&mut self, time: Duration) -> Result<Duration, Failure> {
        let start = Instant::now();
        let mut events = Vec::with_capacity(EVENTS);
        while start.elapsed() < time {
            self.sockets.ready(&mut events)?;
            for event in &events {
                self.go_on(event.data.u64() as usize)?;
            }
        }
        Ok(start.elapsed())
    }

    /// Opens one more connection.
    fn begin(&mut self) -> Result<(), Failure> {
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)
                .map_err(|error| failed("opening a socket", error))?;
        match connect(&socket, &self.to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(failed("connecting", error)),
        }
        self.sockets.insert(Asking { stream: socket.into(), asked: false, received: 0 })
    }

    /// Goes on with a connection; where it has ended the client begins again.
    fn go_on(&mut self, slot: usize) -> Result<(), Failure> {
        let Some(asking) = self.sockets.slots.get_mut(slot).and_then(Option::as_mut) else { return Ok(()) };
        let before = asking.received;
        let outcome = asking.go_on(&self.request, &mut self.buffer);
        self.bytes += asking.received - before;
        let is_whole = asking.received >= self.page_len;
        match outcome {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Ok(()) if is_whole => self.pages += 1,
            Ok(()) | Err(_) => self.failed += 1,
        }
        self.sockets.remove(slot);
        self.begin()
    }
}

impl AsFd for Asking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Asking {
    fn go_on(&mut self, request: &[u8], buffer: &mut [u8]) -> std::io::Result<()> {
        if !self.asked {
            // Before the handshake is over the kernel says "not connected", and tells when it is.
            match self.stream.write(request) {
                Err(error) if error.kind() == ErrorKind::NotConnected => return Err(ErrorKind::WouldBlock.into()),
                other => other?,
            };
            self.asked = true;
        }
        loop {
            match self.stream.read(buffer)? {
                0 => return Ok(()),
                len => self.received += len as u64,
            }
        }
    }
}
