//! Certificates that end soon, this host's own and that of the site's authority: an operator hears of it in time, and of each
//! warning once. Who reads neither log nor metrics finds it in `status`.

use std::sync::Arc;
use std::time::Duration;

use bump::{Instant, Now};
use identity::HostIdentity;

use super::reports::days_left;
use crate::config::Host;
use crate::daemon::Journal;

/// How often the dates are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

/// A certificate that is watched.
struct Watched {
    what: &'static str,
    remedy: &'static str,
    not_after_unix: u64,
    /// The warning that was given last, as the time before the end.
    told: Option<Duration>,
}

/// The certificates that are watched.
pub(crate) struct Expiry {
    /// This host's first.
    watched: Vec<Watched>,
    /// When to warn, the longest first.
    warn_before: Vec<Duration>,
    look_at: Instant,
}

impl Expiry {
    pub(crate) fn new(settings: &Host, identity: &Arc<HostIdentity>) -> Expiry {
        let host = Watched {
            what: "this host's certificate",
            remedy: "renew it (`ringwall host renew`)",
            not_after_unix: identity.certificate().not_after_unix(),
            told: None,
        };
        let authority = Watched {
            what: "the certificate of the site's authority",
            remedy: "have it replaced (`ringwall site renew-authority`), then renew (`ringwall host renew`)",
            not_after_unix: identity.anchor().not_after_unix(),
            told: None,
        };
        let warn_before = settings.warn_before();
        Expiry { watched: vec![host, authority], warn_before, look_at: Instant::default() }
    }

    /// This host's certificate, and that of the authority, are these from now on.
    pub(crate) fn follow(&mut self, identity: &HostIdentity) {
        let ends = [identity.certificate().not_after_unix(), identity.anchor().not_after_unix()];
        for (watched, end) in self.watched.iter_mut().zip(ends) {
            if watched.not_after_unix != end {
                (watched.not_after_unix, watched.told) = (end, None);
            }
        }
        self.look_at = Instant::default();
    }

    /// Warns where it is time; each warning once.
    pub(crate) fn look(&mut self, now: Now, journal: &mut Journal) {
        if now.since_boot < self.look_at {
            return;
        }
        self.look_at = now.since_boot + LOOK_EVERY;
        let Some(unix_ms) = now.trusted_unix_ms() else { return };
        for watched in &mut self.watched {
            let due = due(&self.warn_before, watched.not_after_unix, unix_ms / 1000);
            if due.is_some() && due != watched.told {
                journal.note("certificate-ends", &line(watched, now));
            }
            watched.told = due;
        }
    }

    /// What is due at this moment, one line each.
    pub(crate) fn warnings(&self, now: Now) -> Vec<String> {
        let Some(unix_ms) = now.trusted_unix_ms() else { return Vec::new() };
        let is_due = |watched: &&Watched| due(&self.warn_before, watched.not_after_unix, unix_ms / 1000).is_some();
        self.watched.iter().filter(is_due).map(|watched| line(watched, now)).collect()
    }
}

/// The last warning whose time has come: the shortest that is longer than what is left.
fn due(warn_before: &[Duration], not_after_unix: u64, unix_s: u64) -> Option<Duration> {
    let left = Duration::from_secs(not_after_unix.saturating_sub(unix_s));
    warn_before.iter().copied().filter(|before| left <= *before).min()
}

fn line(watched: &Watched, now: Now) -> String {
    let Watched { what, remedy, not_after_unix, .. } = watched;
    match days_left(*not_after_unix, now) {
        ..0 => format!("{what} has ended; {remedy}"),
        0 => format!("{what} ends in less than a day; {remedy}"),
        1 => format!("{what} ends in 1 day; {remedy}"),
        days => format!("{what} ends in {days} days; {remedy}"),
    }
}

#[cfg(test)]
mod tests {
    use bump::{ClockTrust, Wall};

    use super::*;

    const DAY_S: u64 = 24 * 60 * 60;
    const END_UNIX_S: u64 = 1_900_000_000;

    fn expiry(days: &[u64]) -> Expiry {
        let watched = Watched { what: "it", remedy: "renew it", not_after_unix: END_UNIX_S, told: None };
        let warn_before = days.iter().map(|days| Duration::from_secs(days * DAY_S)).collect();
        Expiry { watched: vec![watched], warn_before, look_at: Instant::default() }
    }

    fn before_end(seconds: u64) -> Now {
        let unix_ms = (END_UNIX_S - seconds) * 1000;
        let since_boot = Instant::from_millis(unix_ms - 1_800_000_000_000);
        Now { since_boot, wall: Some(Wall { unix_ms, trust: ClockTrust::Plausible }) }
    }

    #[test]
    fn each_warning_comes_once() {
        let (mut expiry, mut journal) = (expiry(&[30, 7, 1]), Journal::default());
        for hours in (0..40 * 24).rev() {
            expiry.look(before_end(hours * 3600), &mut journal);
        }
        let texts: Vec<String> = journal.after(0).into_iter().map(|event| event.text).collect();
        let expected = ["it ends in 30 days; renew it", "it ends in 7 days; renew it", "it ends in 1 day; renew it"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_has_ended_says_so_and_a_wrong_clock_says_nothing() {
        let expiry = expiry(&[30]);
        let mut now = before_end(0);
        assert_eq!(expiry.warnings(now), ["it ends in less than a day; renew it"]);
        now.wall = Some(Wall { unix_ms: (END_UNIX_S + DAY_S) * 1000, trust: ClockTrust::Plausible });
        assert_eq!(expiry.warnings(now), ["it has ended; renew it"]);
        assert!(expiry.warnings(before_end(31 * DAY_S)).is_empty());
        now.wall = None;
        assert!(expiry.warnings(now).is_empty());
    }
}
