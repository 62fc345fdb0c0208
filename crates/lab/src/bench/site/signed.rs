//! What the signer is asked for while a site reports: machines that join by token, all at once, and
//! hosts that renew.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use authority::enrolment::by_service::{Application, Outcome};
use authority::enrolment::by_token::Applying;
use bump::Generator;
use identity::tls::{self, Service};
use identity::token::Token;

use super::client::{Client, address_of, mac_of, unix_s};
use super::talk;
use crate::cleanup;
use crate::failure::Failure;

/// Questions at one time, beside those of hosts that report.
const WORKERS: usize = 16;
/// When one that was put off asks again, as `ringwall join` does.
const AGAIN: Duration = Duration::from_secs(1);
/// When all of them are given up.
const TIME_MAX: Duration = Duration::from_secs(1800);

/// Somebody who wants something signed.
pub(super) trait Asker: Send {
    /// Asks once.
    fn ask(&mut self, service: SocketAddr) -> io::Result<Step>;

    /// Whether there is nothing more to ask for.
    fn is_done(&self) -> bool;
}

/// What a question led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It was told to ask again later.
    PutOff,
    /// It has what it wanted.
    Granted,
    /// The site has heard that it may forget it.
    Told,
}

/// What was seen of it.
#[derive(Default)]
pub(super) struct Signed {
    /// When each had what it wanted, in seconds since the beginning.
    pub(super) granted_s: Vec<f64>,
    /// How long each question took, in milliseconds.
    pub(super) answers_ms: Vec<f64>,
    /// How often one was told to ask again later.
    pub(super) put_off: u32,
    /// What failed, by what was said.
    pub(super) failed: BTreeMap<String, u32>,
}

/// Says when those who ask are done, or have failed: when it is dropped.
pub(super) struct GoesOn<'a>(pub(super) &'a AtomicBool);

impl Drop for GoesOn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Has all `askers` ask until each is done.
pub(super) fn have_signed<A: Asker>(askers: &mut [A], service: SocketAddr) -> Result<Signed, Failure> {
    let (start, signed) = (Instant::now(), Mutex::new(Signed::default()));
    let share = askers.len().div_ceil(WORKERS).max(1);
    std::thread::scope(|scope| {
        for some in askers.chunks_mut(share) {
            let signed = &signed;
            scope.spawn(move || {
                let own = ask_for_all(some, service, start);
                if let Ok(mut signed) = signed.lock() {
                    signed.add(own);
                }
            });
        }
    });
    drop(cleanup::permit()?);
    signed.into_inner().map_err(|_| Failure::Unreadable("somebody who asked panicked".to_owned()))
}

fn ask_for_all<A: Asker>(askers: &mut [A], service: SocketAddr, start: Instant) -> Signed {
    let mut signed = Signed::default();
    let mut waiting: Vec<&mut A> = askers.iter_mut().collect();
    while !waiting.is_empty() && start.elapsed() < TIME_MAX {
        let pass = Instant::now();
        waiting.retain_mut(|asker| {
            signed.ask(&mut **asker, service, start);
            cleanup::permit().is_ok() && !asker.is_done()
        });
        sleep(AGAIN.saturating_sub(pass.elapsed()));
    }
    signed
}

impl Signed {
    fn ask<A: Asker>(&mut self, asker: &mut A, service: SocketAddr, start: Instant) {
        let began = Instant::now();
        let asked = asker.ask(service);
        self.answers_ms.push(began.elapsed().as_secs_f64() * 1000.0);
        match asked {
            Ok(Step::PutOff) => self.put_off += 1,
            Ok(Step::Granted) => self.granted_s.push(start.elapsed().as_secs_f64()),
            Ok(Step::Told) => {}
            Err(error) => *self.failed.entry(error.to_string()).or_default() += 1,
        }
    }

    fn add(&mut self, other: Signed) {
        self.granted_s.extend(other.granted_s);
        self.answers_ms.extend(other.answers_ms);
        self.put_off += other.put_off;
        for (what, count) in other.failed {
            *self.failed.entry(what).or_default() += count;
        }
    }
}

/// A machine with a token.
pub(super) struct Newcomer {
    number: u16,
    token: Token,
    applying: Applying,
    /// It has its identity, and the site may forget it.
    has_installed: bool,
    has_told: bool,
}

impl Newcomer {
    /// Machine `number`, which got this token.
    pub(super) fn new(number: u16, token: &str, random: &mut Generator) -> Result<Newcomer, Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::Unreadable(format!("a token: {error}"));
        let token: Token = token.parse().map_err(|error| wrong(&error))?;
        let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0]);
        let applying = Applying::begin(&token, mac_of(number), &[], &mut fill).map_err(|error| wrong(&error))?;
        Ok(Newcomer { number, token, applying, has_installed: false, has_told: false })
    }

    /// The name that it gets.
    pub(super) fn name(&self) -> &str {
        self.token.name()
    }
}

impl Asker for Newcomer {
    fn ask(&mut self, service: SocketAddr) -> io::Result<Step> {
        let application = Application::new(&self.token, &self.applying, mac_of(self.number), self.has_installed);
        let stream = talk::connect(address_of(self.number), service)?;
        let stream = tls::ask_with_token(&self.token, Service::At(service.ip()), || Some(unix_s()), stream);
        let body = serde_json::to_vec(&application)?;
        let answer = talk::exchange(stream.map_err(io::Error::other)?, "/v1/enrolment", Some(&body))?;
        if answer.is_for_later() {
            return Ok(Step::PutOff);
        }
        match serde_json::from_slice(&answer.good()?.body)? {
            Outcome::Approved(sealed) if !self.has_installed => {
                let installed = self.applying.install(&self.token, sealed.bytes(), unix_s());
                installed.map_err(io::Error::other)?;
                self.has_installed = true;
                Ok(Step::Granted)
            }
            Outcome::Fetched if self.has_installed => {
                self.has_told = true;
                Ok(Step::Told)
            }
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    fn is_done(&self) -> bool {
        self.has_told
    }
}

/// A host whose certificate is in its second half.
pub(super) struct Renewing<'a> {
    host: &'a mut Client,
    has_renewed: bool,
}

impl<'a> Renewing<'a> {
    pub(super) fn new(host: &'a mut Client) -> Renewing<'a> {
        Renewing { host, has_renewed: false }
    }
}

impl Asker for Renewing<'_> {
    fn ask(&mut self, service: SocketAddr) -> io::Result<Step> {
        self.has_renewed = self.host.renew(service)?;
        Ok(if self.has_renewed { Step::Granted } else { Step::PutOff })
    }

    fn is_done(&self) -> bool {
        self.has_renewed
    }
}
