//! Constant questions between all hosts and to all printers, and how long each pair went without an
//! answer.
//!
//! One thread does it for all: a datagram socket in each namespace, and a question of each to each
//! in turn. So the questions cost little beside thirty daemons on two processors.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::net::Host;

const PORT: u16 = 4100;
/// Each pair asks so often.
pub(super) const EVERY: Duration = Duration::from_millis(500);
/// Sockets are looked at so often.
const TICK: Duration = Duration::from_millis(10);
const QUESTION: u8 = b'Q';
const ANSWER: u8 = b'A';

/// What somebody does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Asks all others, and answers.
    Host,
    /// Is asked, and answers.
    Printer,
    /// Answers for a printer, once it has its address.
    Spare,
}

/// Somebody who asks, or only answers.
struct Member {
    name: &'static str,
    ip: Ipv4Addr,
    part: Part,
    socket: UdpSocket,
}

/// What is known of who asks whom: when the last answer came, and the longest time without one.
#[derive(Clone, Copy)]
struct Pair {
    last: Instant,
    worst: Duration,
}

/// The longest times without an answer in a stage.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Between two hosts.
    pub hosts: Duration,
    /// From a host to a printer.
    pub printers: Duration,
    /// Whose the longer one of both was.
    pub whose: String,
}

/// All questions and answers.
pub(super) struct Pings {
    members: Vec<Member>,
    pairs: Mutex<BTreeMap<(usize, usize), Pair>>,
}

impl Pings {
    /// Opens the sockets of `hosts`, who ask each other and all `printers`, in the place of one of
    /// which `spare` answers later.
    pub(super) fn open(hosts: &[&Host], printers: &[&Host], spare: &Host) -> Result<Pings, Failure> {
        let mut members = Vec::new();
        for (all, part) in [(hosts, Part::Host), (printers, Part::Printer), (&[spare][..], Part::Spare)] {
            for host in all {
                let socket = host.namespace.enter(socket)?;
                members.push(Member { name: host.name, ip: host.ip, part, socket });
            }
        }
        let mut pings = Pings { members, pairs: Mutex::default() };
        let now = Instant::now();
        let pairs = pings.asking().map(|pair| (pair, Pair { last: now, worst: Duration::ZERO })).collect();
        pings.pairs = Mutex::new(pairs);
        Ok(pings)
    }

    fn asking(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = 0..self.members.len();
        let pairs = all.clone().flat_map(move |from| all.clone().map(move |to| (from, to)));
        let part = |at: usize| self.members[at].part;
        pairs.filter(move |(from, to)| from != to && part(*from) == Part::Host && part(*to) != Part::Spare)
    }

    /// Asks and answers until it is told to end.
    pub(super) fn run(&self, ended: &AtomicBool) {
        let mut due = Instant::now();
        while !ended.load(Ordering::Relaxed) {
            if Instant::now() >= due {
                due = Instant::now() + EVERY;
                for (from, to) in self.asking() {
                    // Who cannot be asked does not answer, which is counted.
                    let _lost = self.members[from].socket.send_to(&[QUESTION], (self.members[to].ip, PORT));
                }
            }
            (0..self.members.len()).for_each(|at| self.hear(at));
            thread::sleep(TICK);
        }
    }

    /// Takes what has come for one, answers, and notes answers.
    fn hear(&self, at: usize) {
        let member = &self.members[at];
        let mut buffer = [0; 8];
        loop {
            match member.socket.recv_from(&mut buffer) {
                Ok((1.., source)) if buffer[0] == QUESTION => {
                    let _lost = member.socket.send_to(&[ANSWER], source);
                }
                Ok((_, SocketAddr::V4(source))) => self.answered(at, *source.ip()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // What the network says of something that was sent earlier.
                Err(_) => {}
            }
        }
    }

    fn answered(&self, asker: usize, by: Ipv4Addr) {
        let Some(other) = self.members.iter().position(|member| member.ip == by) else { return };
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = pairs.get_mut(&(asker, other)) {
            let now = Instant::now();
            pair.worst = pair.worst.max(now - pair.last);
            pair.last = now;
        }
    }

    /// The longest times since the last look, those included that go on. A new stage begins.
    pub(super) fn take(&self) -> Gaps {
        let mut gaps = Gaps::default();
        let now = Instant::now();
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        for ((from, to), pair) in pairs.iter_mut() {
            let worst = pair.worst.max(now - pair.last);
            let (from, to) = (&self.members[*from], &self.members[*to]);
            if worst > gaps.hosts.max(gaps.printers) {
                gaps.whose = format!("{} to {}", from.name, to.name);
            }
            let longest = if to.part == Part::Printer { &mut gaps.printers } else { &mut gaps.hosts };
            *longest = (*longest).max(worst);
            pair.worst = Duration::ZERO;
        }
        gaps
    }

    /// Who has no answer from whom within `time`.
    pub(super) fn silent(&self, time: Duration) -> Vec<String> {
        let now = Instant::now();
        let pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = pairs.iter().filter(|(_, pair)| now - pair.last > time);
        silent.map(|((from, to), _)| format!("{} to {}", self.members[*from].name, self.members[*to].name)).collect()
    }
}

fn socket() -> Result<UdpSocket, Failure> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).map_err(Failure::io("opening a port for questions"))?;
    socket.set_nonblocking(true).map_err(Failure::io("opening a port for questions"))?;
    Ok(socket)
}
