//! All hosts of a site as they report, each on its own second of the minute, or as fast as the
//! service answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::client::Client;
use crate::cleanup;
use crate::failure::Failure;

/// Questions at one time: below the connections that the service holds open.
const WORKERS: usize = 32;

/// When hosts report.
#[derive(Clone, Copy)]
pub(super) enum Pace<'a> {
    /// Each once in this time, evenly spread, so often.
    Every(Duration, u32),
    /// The same for as long as this holds.
    While(Duration, &'a AtomicBool),
    /// One after the other without a rest, for this time.
    Unlimited(Duration),
}

/// What was seen of it.
#[derive(Default)]
pub(super) struct Seen {
    /// From the first packet of a report to the end of its answer, in milliseconds.
    pub(super) answers_ms: Vec<f64>,
    /// Bytes of TLS of each report, both ways.
    pub(super) bytes: Vec<f64>,
    /// When each host had fetched a newer policy, in seconds since the beginning.
    pub(super) fetched_s: Vec<f64>,
    /// How much later than planned a report began at the most, in milliseconds.
    pub(super) late_ms: f64,
    /// What failed, by what was said.
    pub(super) failed: BTreeMap<String, u32>,
    /// How long all of it took, in seconds.
    pub(super) time_s: f64,
}

/// Lets all `clients` report; this thread is where they are.
pub(super) fn put(clients: &mut [Client], service: SocketAddr, pace: Pace<'_>) -> Result<Seen, Failure> {
    let (start, seen) = (Instant::now(), Mutex::new(Seen::default()));
    let share = clients.len().div_ceil(WORKERS).max(1);
    std::thread::scope(|scope| {
        for (number, hosts) in clients.chunks_mut(share).enumerate() {
            let seen = &seen;
            scope.spawn(move || {
                let own = Worker { service, start, pace, number: number as u32 }.run(hosts);
                if let Ok(mut seen) = seen.lock() {
                    seen.add(own);
                }
            });
        }
    });
    drop(cleanup::permit()?);
    let mut seen = seen.into_inner().map_err(|_| Failure::Unreadable("a host that panicked".to_owned()))?;
    seen.time_s = start.elapsed().as_secs_f64();
    Ok(seen)
}

/// One of those who put the questions of a share of the hosts.
struct Worker<'a> {
    service: SocketAddr,
    start: Instant,
    pace: Pace<'a>,
    number: u32,
}

impl Worker<'_> {
    fn run(&self, hosts: &mut [Client]) -> Seen {
        let (mut seen, count) = (Seen::default(), hosts.len() as u32);
        for round in 0.. {
            for (place, host) in hosts.iter_mut().enumerate() {
                if !self.await_turn(round, (place as u32, count), &mut seen) || cleanup::permit().is_err() {
                    return seen;
                }
                self.report(host, &mut seen);
            }
        }
        seen
    }

    /// Waits until the host in this place of so many is due; whether there is such a turn.
    fn await_turn(&self, round: u32, (place, count): (u32, u32), seen: &mut Seen) -> bool {
        match self.pace {
            Pace::Unlimited(time) => self.start.elapsed() < time,
            Pace::Every(_, rounds) if round >= rounds => false,
            Pace::While(_, goes_on) if !goes_on.load(Ordering::Relaxed) => false,
            Pace::Every(every, _) | Pace::While(every, _) => {
                let between = every / count;
                let due = every * round + between * place + between * self.number / WORKERS as u32;
                match due.checked_sub(self.start.elapsed()) {
                    Some(wait) => std::thread::sleep(wait),
                    None => seen.late_ms = seen.late_ms.max((self.start.elapsed() - due).as_secs_f64() * 1000.0),
                }
                true
            }
        }
    }

    fn report(&self, host: &mut Client, seen: &mut Seen) {
        let began = Instant::now();
        let newest = match host.report(self.service) {
            Ok((newest, answer)) => {
                seen.answers_ms.push(began.elapsed().as_secs_f64() * 1000.0);
                seen.bytes.push(answer.bytes as f64);
                newest
            }
            Err(error) => return seen.fail(&error),
        };
        if newest <= host.policy {
            return;
        }
        match host.fetch(self.service) {
            Ok(_) => {
                host.policy = newest;
                seen.fetched_s.push(self.start.elapsed().as_secs_f64());
            }
            Err(error) => seen.fail(&error),
        }
    }
}

impl Seen {
    fn fail(&mut self, error: &std::io::Error) {
        *self.failed.entry(error.to_string()).or_default() += 1;
    }

    fn add(&mut self, other: Seen) {
        self.answers_ms.extend(other.answers_ms);
        self.bytes.extend(other.bytes);
        self.fetched_s.extend(other.fetched_s);
        self.late_ms = self.late_ms.max(other.late_ms);
        for (what, count) in other.failed {
            *self.failed.entry(what).or_default() += count;
        }
    }
}
