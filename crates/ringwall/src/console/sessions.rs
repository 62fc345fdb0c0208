//! Who is signed in.

use std::time::{Duration, Instant};

use super::tokens::Secret;

/// How long a session lasts in which nothing is asked.
const IDLE_MAX: Duration = Duration::from_secs(60 * 60);
/// How long any session lasts.
const LIFE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// Sessions at one time.
pub(super) const SESSIONS_MAX: usize = 32;

#[derive(Debug)]
struct Session {
    secret: Secret,
    began: Instant,
    asked: Instant,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        let since = |then| now.saturating_duration_since(then);
        since(self.began) >= LIFE_MAX || since(self.asked) >= IDLE_MAX
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Sessions(Vec<Session>);

impl Sessions {
    /// Begins one; where there are as many as may be, the one that asked longest ago ends.
    pub(super) fn begin(&mut self, secret: Secret, now: Instant) {
        self.0.retain(|one| !one.is_over(now));
        if self.0.len() >= SESSIONS_MAX {
            let oldest = self.0.iter().enumerate().min_by_key(|(_, one)| one.asked).map(|(at, _)| at);
            oldest.into_iter().for_each(|at| drop(self.0.remove(at)));
        }
        self.0.push(Session { secret, began: now, asked: now });
    }

    /// Whether it goes on; somebody has used it now.
    pub(super) fn is_in(&mut self, secret: &Secret, now: Instant) -> bool {
        self.find(secret, now, |one| one.asked = now)
    }

    /// The same of one that nobody used: what a page does by itself keeps nobody signed in.
    pub(super) fn goes_on(&mut self, secret: &Secret, now: Instant) -> bool {
        self.find(secret, now, |_| {})
    }

    /// All are compared, so that the time does not tell which it is.
    fn find(&mut self, secret: &Secret, now: Instant, found: impl Fn(&mut Session)) -> bool {
        self.0.retain(|one| !one.is_over(now));
        self.0.iter_mut().filter(|one| one.secret.is(secret)).map(found).count() > 0
    }

    pub(super) fn end(&mut self, secret: &Secret) {
        self.0.retain(|one| !one.secret.is(secret));
    }

    pub(super) fn count(&mut self, now: Instant) -> usize {
        self.0.retain(|one| !one.is_over(now));
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tokens::SECRET_LEN;
    use super::*;

    fn secret(number: u8) -> Secret {
        Secret::new([number; SECRET_LEN])
    }

    #[test]
    fn a_session_ends_when_nobody_asks_and_after_its_life_and_when_it_is_told_to() {
        let start = Instant::now();
        let mut sessions = Sessions::default();
        sessions.begin(secret(1), start);
        sessions.begin(secret(2), start);
        sessions.begin(secret(3), start);
        assert!(!sessions.is_in(&secret(9), start));
        sessions.end(&secret(2));
        assert!(!sessions.is_in(&secret(2), start));
        let mut now = start;
        while now < start + LIFE_MAX {
            assert!(sessions.is_in(&secret(1), now));
            now += IDLE_MAX / 2;
        }
        assert!(!sessions.is_in(&secret(1), now), "its life is over");
        assert!(!sessions.is_in(&secret(3), now), "nobody asked");
    }

    #[test]
    fn a_page_that_nobody_touches_keeps_nobody_signed_in() {
        let start = Instant::now();
        let mut sessions = Sessions::default();
        sessions.begin(secret(1), start);
        let minutes = |minutes: u64| start + Duration::from_secs(60 * minutes);
        assert!(sessions.goes_on(&secret(1), minutes(59)) && !sessions.goes_on(&secret(2), minutes(59)));
        assert!(!sessions.is_in(&secret(1), minutes(60)));
    }

    proptest! {
        /// However many sign in, there are no more than may be, and the newest is among them.
        #[test]
        fn there_are_never_more_than_may_be(steps in proptest::collection::vec((0_u8..60, 0_u64..4000), 1..100)) {
            let mut now = Instant::now();
            let mut sessions = Sessions::default();
            for (number, seconds) in steps {
                now += Duration::from_secs(seconds);
                sessions.begin(secret(number), now);
                prop_assert!(sessions.count(now) <= SESSIONS_MAX);
                prop_assert!(sessions.is_in(&secret(number), now));
                prop_assert!(!sessions.is_in(&secret(200), now));
            }
        }
    }
}
