//! The asker: asks the site's service again and again, and tells the reader what is known.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use system::sandbox::{Ports, Reach};

use super::reading::{self, Look};
use super::{COMMAND, Duty, Failing, Site, Told};
use crate::companion;
use crate::failure::Failure;
use crate::report::unix_s;
use crate::serving::{Patience, Way, door, locked};
use crate::site::Viewer;

/// How often the service is asked. Hosts report once a minute.
const EVERY: Duration = Duration::from_secs(30);
/// A site of 10,000 hosts takes seconds to tell, in which the service tells nobody else: the pauses
/// are so many times as long as the answers took.
const PAUSE_TIMES: u32 = 20;
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(10 * 60);
/// Between two questions: an operator who comes sooner is refused.
const BETWEEN: Duration = Duration::from_millis(400);
/// The reader asks when somebody looks at a page, and nobody may for days. When it is gone its socket
/// says so.
const PATIENCE: Patience = Patience { say: None, hear: Duration::from_secs(30) };
/// Its questions are numbers, and its first line has the operator's file in it.
const QUESTION_BYTES_MAX: u64 = 256 << 10;

/// `ringwall console-asker`, which `ringwall console` starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = companion::socket("`ringwall console` starts its asker by itself")?;
    let mut reader = Way::new(stream, PATIENCE, QUESTION_BYTES_MAX).map_err(Failure::new)?;
    let duty: Duty = reader.receive().map_err(Failure::new)?;
    door::confine_to(COMMAND, &Reach { connects: Ports::All, ..Reach::default() }).map_err(Failure::new)?;
    let viewer = Viewer::new(&duty.operator, duty.service, duty.service_name)?;
    let site = Arc::new(Mutex::new(Site { number: 1, service: duty.service.to_string(), ..Site::default() }));
    let shared = Arc::clone(&site);
    std::thread::Builder::new().spawn(move || ask_again(&viewer, &shared)).map_err(Failure::new)?;
    loop {
        // Nobody is left to be told anything.
        let Ok(known) = reader.receive::<u64>() else { return Ok(()) };
        let newer = Some(locked(&site).clone()).filter(|site| site.number != known);
        reader.say(&newer).map_err(Failure::new)?;
    }
}

fn ask_again(viewer: &Viewer, site: &Mutex<Site>) {
    let mut look = |words: &[&str]| {
        std::thread::sleep(BETWEEN);
        viewer.look(words).map_err(|failure| failure.to_string())
    };
    loop {
        let began = Instant::now();
        let told = reading::read(&mut look as &mut Look<'_>);
        locked(site).enter(told, unix_s().unwrap_or_default());
        std::thread::sleep(pause(began.elapsed()));
    }
}

/// How long to wait after answers that took so long.
fn pause(took: Duration) -> Duration {
    took.saturating_mul(PAUSE_TIMES).clamp(EVERY, PAUSE_MAX)
}

impl Site {
    /// Enters what came of a question. What was told before stays, with the time at which it was.
    pub(super) fn enter(&mut self, told: Result<Told, String>, now_unix: u64) {
        self.number += 1;
        match told {
            Ok(told) => {
                if self.failing.take().is_some() || self.told_unix.is_none() {
                    tracing::info!("the site's service tells of {} hosts", told.hosts.len());
                }
                (self.told, self.told_unix) = (told, Some(now_unix));
            }
            Err(why) => {
                let why: String = why.chars().take(reading::TEXT_CHARS_MAX).collect();
                let since_unix = self.failing.as_ref().map_or(now_unix, |failing| failing.since_unix);
                if self.failing.is_none() {
                    tracing::warn!("the site is not known any more: {why}");
                }
                self.failing = Some(Failing { since_unix, why });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_stays_while_the_service_is_away_and_it_is_known_since_when() {
        let mut site = Site::default();
        let told = Told { policy_version: Some(3), ..Told::default() };
        site.enter(Ok(told.clone()), 1000);
        site.enter(Err("away".to_owned()), 1030);
        site.enter(Err("refused".repeat(1000)), 1060);
        assert_eq!((&site.told, site.told_unix, site.number), (&told, Some(1000), 3));
        let failing = site.failing.clone().expect("it is away");
        assert_eq!((failing.since_unix, failing.why.len()), (1030, reading::TEXT_CHARS_MAX));
        site.enter(Ok(Told::default()), 1090);
        assert_eq!((&site.told, site.told_unix, site.failing), (&Told::default(), Some(1090), None));
    }

    #[test]
    fn the_longer_a_service_takes_the_less_often_it_is_asked() {
        assert_eq!(pause(Duration::ZERO), EVERY);
        assert_eq!(pause(Duration::from_secs(5)), Duration::from_secs(100));
        assert_eq!(pause(Duration::MAX), PAUSE_MAX);
    }
}
