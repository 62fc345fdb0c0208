//! Connections over which both hosts talk all the time, each byte of which is looked at.
//!
//! The client says a *word* and the server says one back; at the connection's next turn comes the
//! next. A word of one connection in ten fills many segments. What a byte must be follows from its
//! connection, its direction and its place in the stream, so bytes that are lost, doubled or moved
//! are found.

use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::pair::{Pair, TRUSTED};
use crate::failure::Failure;
use crate::net::process;

/// The server's port.
pub const PORT: u16 = 5001;
/// How long an end waits for a connection, or for all to go on.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long either side sleeps at most before it looks at the clock.
const TURN: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Bytes of a word, and of one of a connection that says much.
const WORD: u64 = 64;
const LONG_WORD: u64 = 20_000;
const LONG_ONE_IN: usize = 10;
/// Words of all connections in a second, so that any number of them is the same load.
const WORDS_PER_S: u32 = 2000;
/// Connections without an answer that are named.
const NAMED_MAX: usize = 10;
/// Least time between two words of a connection.
const PACE_MIN: Duration = Duration::from_millis(5);

/// What is seen of the connections.
#[derive(Debug, Default)]
struct Seen {
    words: u64,
    /// Connections that broke, and how.
    broken: BTreeMap<usize, String>,
    /// Bytes that were not what was said.
    wrong_bytes: u64,
    /// From when on a word must be said to show that its connection goes on.
    awaited_since: Option<Instant>,
    /// When a word was answered last, and the longest time in which none was.
    answered_at: Option<Instant>,
    silence: Duration,
    /// The longest wait for an answer that came under watch, and whose it was.
    wait: Duration,
    waited: usize,
    /// Connections that have said a word since then and had it answered, or broke.
    is_done: Vec<bool>,
    left: usize,
}

/// What a failure of a gateway did to the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    /// The longest time that any connection waited for an answer.
    pub wait: Duration,
    /// The longest time in which no connection had one.
    pub silence: Duration,
    /// The client's port of the connection that waited longest, by which it is found in a capture.
    pub port: u16,
    /// The gateway that failed.
    pub struck: usize,
}

/// How they fared, when they are over.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Why connections broke, one line each.
    pub broken: Vec<String>,
    /// Bytes that were not what was said.
    pub wrong_bytes: u64,
    /// Words that were answered.
    pub words: u64,
}

/// Connections from the untrusted host to the trusted one.
pub struct Talks {
    seen: Arc<Mutex<Seen>>,
    ends: Arc<AtomicBool>,
    /// The clients' ports, by connection.
    ports: Vec<u16>,
    /// Each gives its ends back: one that closed them would break connections for the other.
    threads: Vec<JoinHandle<Result<Ends, Failure>>>,
}

impl Talks {
    /// Opens `count` connections, and has them talk.
    ///
    /// # Errors
    /// One cannot be opened.
    pub fn start(pair: &Pair, count: usize) -> Result<Talks, Failure> {
        raise_descriptor_limit();
        let address = SocketAddr::from((TRUSTED, PORT));
        let failed = || Failure::io(format!("TCP connections to {address}"));
        let listener = pair.hosts[0].enter(|| TcpListener::bind(address).map_err(failed()))?;
        let (ends, ports) = pair.hosts[1].enter(|| {
            let (mut ends, mut ports) = ([Vec::new(), Vec::new()], Vec::new());
            for number in 0..count {
                let client = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed())?;
                let (server, client_address) = listener.accept().map_err(failed())?;
                ports.push(client_address.port());
                for (side, (stream, ends)) in [client, server].into_iter().zip(&mut ends).enumerate() {
                    ends.push(End::new(number, side, stream).map_err(failed())?);
                }
            }
            Ok((ends, ports))
        })?;
        let seen = Seen { is_done: vec![false; count], ..Seen::default() };
        let (seen, stops) = (Arc::new(Mutex::new(seen)), Arc::new(AtomicBool::new(false)));
        let mut talks = Talks { seen, ends: stops, ports, threads: Vec::new() };
        let pace = (Duration::from_secs(1) * count as u32 / WORDS_PER_S).max(PACE_MIN);
        let [clients, servers] = ends;
        let (seen, stop) = (Arc::clone(&talks.seen), Arc::clone(&talks.ends));
        talks.threads.push(thread::spawn(move || Clients::new(clients, pace)?.talk(&seen, &stop)));
        let (seen, stop) = (Arc::clone(&talks.seen), Arc::clone(&talks.ends));
        talks.threads.push(thread::spawn(move || serve(servers, &seen, &stop)));
        talks.go_on()?;
        Ok(talks)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        lock(&self.seen)
    }

    /// Does `work`, and waits until every connection had a word answered that it said after it. So
    /// each word that was said during the work has its answer by then, and its wait is counted.
    ///
    /// # Errors
    /// That of `work`, or the connections do not go on.
    pub fn watch(&self, work: impl FnOnce() -> Result<(), Failure>) -> Result<Outage, Failure> {
        self.seen().watch(Instant::now());
        work()?;
        self.seen().await_all(Instant::now());
        let waited = process::until("words of all connections", PATIENCE, || Ok(self.seen().left == 0));
        let seen = self.seen();
        if waited.is_err() {
            let left = seen.is_done.iter().zip(&self.ports).filter(|(is_done, _)| !**is_done);
            let ports: Vec<_> = left.map(|(_, port)| port.to_string()).take(NAMED_MAX).collect();
            eprintln!("ringwall-lab: {} connections without an answer: ports {}", seen.left, ports.join(", "));
        }
        waited?;
        let port = self.ports.get(seen.waited).copied().unwrap_or_default();
        Ok(Outage { wait: seen.wait, silence: seen.silence, port, struck: 0 })
    }

    /// Waits until every connection has said a word and had it answered.
    ///
    /// # Errors
    /// They do not.
    pub fn go_on(&self) -> Result<(), Failure> {
        self.watch(|| Ok(())).map(drop)
    }

    /// Ends them.
    #[must_use]
    pub fn end(self) -> Ended {
        self.ends.store(true, Ordering::Relaxed);
        let (mut broken, mut open) = (Vec::new(), Vec::new());
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(ends)) => open.push(ends),
                Ok(Err(failure)) => broken.push(failure.to_string()),
                Err(_) => broken.push("a side of the connections ended".to_owned()),
            }
        }
        let seen = lock(&self.seen);
        broken.extend(seen.broken.values().cloned());
        Ended { broken, wrong_bytes: seen.wrong_bytes, words: seen.words }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connections by the thousand need as many descriptors. Where there are no more, opening them says so.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _refused = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

impl Seen {
    fn watch(&mut self, now: Instant) {
        self.answered_at = Some(now);
        (self.silence, self.wait) = (Duration::ZERO, Duration::ZERO);
        self.await_all(now);
    }

    /// Who is to be heard of is to say its word from now on.
    fn await_all(&mut self, now: Instant) {
        self.awaited_since = Some(now);
        for (connection, is_done) in self.is_done.iter_mut().enumerate() {
            *is_done = self.broken.contains_key(&connection);
        }
        self.left = self.is_done.iter().filter(|is_done| !**is_done).count();
    }

    /// A word of `connection` that was said at `said_at` was answered.
    fn answer(&mut self, connection: usize, said_at: Instant, now: Instant) {
        self.words += 1;
        self.silence = self.silence.max(self.answered_at.map_or(Duration::ZERO, |at| now - at));
        self.answered_at = Some(now);
        if now - said_at > self.wait {
            (self.wait, self.waited) = (now - said_at, connection);
        }
        if self.awaited_since.is_some_and(|since| said_at >= since) {
            self.finish(connection);
        }
    }

    /// Whatever follows, nobody waits for this connection.
    fn finish(&mut self, connection: usize) {
        self.left -= usize::from(!std::mem::replace(&mut self.is_done[connection], true));
    }

    fn lose(&mut self, connection: usize, error: &std::io::Error) {
        self.broken.entry(connection).or_insert_with(|| format!("connection {connection}: {error}"));
        self.finish(connection);
    }
}

/// One end of a connection.
struct End {
    connection: usize,
    /// 0 for the client, 1 for the server.
    side: usize,
    stream: TcpStream,
    word: u64,
    /// Bytes that were said, and those that it wants to have said.
    said: u64,
    wanted: u64,
    heard: u64,
}

impl AsFd for End {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// What the byte at `place` of a stream is.
fn byte(connection: usize, side: usize, place: u64) -> u8 {
    let seed = place ^ (connection as u64) << 40 ^ (side as u64) << 63;
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl End {
    fn new(connection: usize, side: usize, stream: TcpStream) -> std::io::Result<End> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let word = if connection.is_multiple_of(LONG_ONE_IN) { LONG_WORD } else { WORD };
        Ok(End { connection, side, stream, word, said: 0, wanted: 0, heard: 0 })
    }

    /// Says what is to be said, as far as there is room.
    fn say(&mut self) -> std::io::Result<()> {
        while self.said < self.wanted {
            let until = self.wanted.min(self.said + LONG_WORD);
            let bytes: Vec<u8> = (self.said..until).map(|place| byte(self.connection, self.side, place)).collect();
            match self.stream.write(&bytes) {
                Ok(len) => self.said += len as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Hears what is there; how many bytes were wrong.
    fn hear(&mut self) -> std::io::Result<u64> {
        let (mut buffer, mut wrong) = ([0; 4096], 0);
        loop {
            let len = match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(wrong),
                Err(error) => return Err(error),
            };
            let expected = (self.heard..).map(|place| byte(self.connection, 1 - self.side, place));
            wrong += buffer[..len].iter().zip(expected).filter(|(heard, said)| **heard != *said).count() as u64;
            self.heard += len as u64;
        }
    }

    /// Hears and says what can be; what was wrong is counted.
    fn go_on(&mut self, seen: &Mutex<Seen>) -> std::io::Result<()> {
        let wrong = self.hear()?;
        if wrong > 0 {
            lock(seen).wrong_bytes += wrong;
        }
        if self.side == 1 {
            self.wanted = self.heard - self.heard % self.word;
        }
        self.say()
    }
}

/// All ends of a side, and the kernel's list of those that are ready.
struct Ends {
    poll: OwnedFd,
    /// None where a connection broke.
    ends: Vec<Option<End>>,
}

impl Ends {
    fn new(ends: Vec<End>) -> Result<Ends, Failure> {
        let failed = |error: Errno| Failure::Io { doing: "waiting for sockets".to_owned(), source: error.into() };
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        for (number, end) in ends.iter().enumerate() {
            let both = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            epoll::add(&poll, end, EventData::new_u64(number as u64), both).map_err(failed)?;
        }
        Ok(Ends { poll, ends: ends.into_iter().map(Some).collect() })
    }

    /// Numbers of those that are ready.
    fn ready(&self, events: &mut Vec<Event>) -> Result<(), Failure> {
        events.clear();
        match epoll::wait(&self.poll, rustix::buffer::spare_capacity(events), Some(&TURN)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Failure::Io { doing: "waiting for sockets".to_owned(), source: error.into() }),
        }
    }

    /// Has an end go on; one that breaks is counted and forgotten. None if it is.
    fn go_on(&mut self, number: usize, seen: &Mutex<Seen>) -> Option<&mut End> {
        let place = self.ends.get_mut(number)?;
        if let Err(error) = place.as_mut()?.go_on(seen) {
            *place = None;
            lock(seen).lose(number, &error);
        }
        place.as_mut()
    }
}

fn serve(servers: Vec<End>, seen: &Mutex<Seen>, stop: &AtomicBool) -> Result<Ends, Failure> {
    let mut servers = Ends::new(servers)?;
    let mut events = Vec::with_capacity(256);
    while !stop.load(Ordering::Relaxed) {
        servers.ready(&mut events)?;
        for event in &events {
            servers.go_on(event.data.u64() as usize, seen);
        }
    }
    Ok(servers)
}

/// The side that begins.
struct Clients {
    ends: Ends,
    pace: Duration,
    /// When each says its next word, in order. Each keeps its place in the pace: those that waited
    /// for a gateway would all speak at one time ever after, and the next failure meet nobody.
    due: VecDeque<(Instant, usize)>,
    /// When each said the word that waits for its answer.
    said_at: Vec<Option<Instant>>,
}

impl Clients {
    fn new(ends: Vec<End>, pace: Duration) -> Result<Clients, Failure> {
        let (count, now) = (ends.len(), Instant::now());
        // Spread over the pace, so that a failure meets them in all states.
        let due = (0..count).map(|number| (now + pace * number as u32 / count as u32, number)).collect();
        Ok(Clients { ends: Ends::new(ends)?, pace, due, said_at: vec![None; count] })
    }

    fn talk(mut self, seen: &Mutex<Seen>, stop: &AtomicBool) -> Result<Ends, Failure> {
        let mut events = Vec::with_capacity(256);
        while !stop.load(Ordering::Relaxed) {
            self.ends.ready(&mut events)?;
            for event in &events {
                self.go_on(event.data.u64() as usize, seen);
            }
            let now = Instant::now();
            while let Some((at, number)) = self.due.pop_front_if(|(at, _)| *at <= now) {
                self.begin(number, now, seen);
                self.due.push_back((at + self.pace, number));
            }
        }
        Ok(self.ends)
    }

    /// Says the next word, unless the last one waits for its answer.
    fn begin(&mut self, number: usize, now: Instant, seen: &Mutex<Seen>) {
        if self.said_at[number].is_some() {
            return;
        }
        if let Some(Some(end)) = self.ends.ends.get_mut(number) {
            end.wanted += end.word;
            self.said_at[number] = Some(now);
        }
        self.go_on(number, seen);
    }

    fn go_on(&mut self, number: usize, seen: &Mutex<Seen>) {
        let Some(end) = self.ends.go_on(number, seen) else { return };
        if end.heard < end.wanted {
            return;
        }
        if let Some(said_at) = self.said_at[number].take() {
            lock(seen).answer(number, said_at, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair_of_ends(number: usize) -> [End; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
        let (server, _) = listener.accept().expect("a connection");
        [End::new(number, 0, client), End::new(number, 1, server)].map(|end| end.expect("set"))
    }

    /// Takes both further until `done`.
    fn exchange(ends: &mut [End; 2], seen: &Mutex<Seen>, done: impl Fn(&[End; 2]) -> bool) {
        while !done(ends) {
            ends.iter_mut().for_each(|end| end.go_on(seen).expect("open"));
        }
    }

    #[test]
    fn words_are_answered_and_bytes_that_were_changed_are_found() {
        for number in [3, LONG_ONE_IN] {
            let seen = Mutex::new(Seen::default());
            let mut ends = pair_of_ends(number);
            ends[0].wanted = 2 * ends[0].word;
            exchange(&mut ends, &seen, |[client, _]| client.heard == client.wanted);
            assert_eq!(lock(&seen).wrong_bytes, 0);
            // A byte too many moves all that follow.
            ends[0].stream.write_all(&[byte(number, 0, ends[0].said)]).expect("open");
            ends[0].wanted += 10 * WORD;
            let target = ends[1].heard + 10 * WORD;
            exchange(&mut ends, &seen, |[_, server]| server.heard > target);
            assert!(lock(&seen).wrong_bytes > 9 * WORD, "{}", lock(&seen).wrong_bytes);
        }
    }

    #[test]
    fn an_outage_is_the_longest_wait_and_every_connection_must_go_on() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut seen = Seen { is_done: vec![false; 2], ..Seen::default() };
        seen.answer(0, at(0), at(1));
        seen.watch(at(100));
        // It was said before, so it shows how long it waited, and not that the connection goes on.
        seen.answer(0, at(90), at(500));
        assert_eq!((seen.left, seen.wait, seen.silence), (2, Duration::from_millis(410), Duration::from_millis(400)));
        seen.answer(0, at(505), at(506));
        seen.answer(0, at(510), at(511));
        seen.answer(1, at(100), at(700));
        assert_eq!((seen.left, seen.wait, seen.silence), (0, Duration::from_millis(600), Duration::from_millis(400)));
    }

    #[test]
    fn a_word_said_while_the_gateway_failed_is_waited_for() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut seen = Seen { is_done: vec![false], ..Seen::default() };
        seen.watch(at(0));
        seen.answer(0, at(10), at(11));
        // The failure took until now; the connection had gone on before it, and has said a word since.
        seen.await_all(at(300));
        assert_eq!(seen.left, 1);
        seen.answer(0, at(20), at(900));
        assert_eq!((seen.left, seen.wait), (1, Duration::from_millis(880)));
        seen.answer(0, at(905), at(906));
        assert_eq!((seen.left, seen.wait), (0, Duration::from_millis(880)));
    }
}
