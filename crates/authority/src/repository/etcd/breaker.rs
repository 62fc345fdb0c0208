//! A circuit breaker. After an operation that no member served, others are refused at once for a
//! moment; then one operation tries one member. Nobody waits behind one attempt after the other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::ETCD_PAUSE;
use crate::repository::StoreError;

/// Whom an operation asks that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tries {
    /// All members, several times.
    All,
    /// One member, once: the cluster did not serve the last time.
    One,
}

/// Lets operations through, or not.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<Times>);

impl Breaker {
    /// Carries an operation out, unless the cluster did not serve a moment ago.
    pub(super) fn carry_out<T>(&self, operation: impl FnOnce(Tries) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let began = Instant::now();
        let entered = self.times().enter(began);
        let tries = entered.map_err(|left| {
            let said = format!("no member served a moment ago; one is asked again in {} ms", left.as_millis());
            StoreError::Unreachable(said)
        })?;
        let outcome = operation(tries);
        let is_served = !matches!(outcome, Err(StoreError::Unreachable(_)));
        self.times().leave(began, Instant::now(), is_served);
        outcome
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the cluster served, and when it did not.
#[derive(Debug, Default)]
struct Times {
    failed_at: Option<Instant>,
    served_at: Option<Instant>,
}

impl Times {
    /// An operation begins, unless it must wait for so long. Whoever tries a cluster that failed keeps
    /// the others out meanwhile.
    fn enter(&mut self, now: Instant) -> Result<Tries, Duration> {
        let Some(failed_at) = self.failed_at else { return Ok(Tries::All) };
        let left = ETCD_PAUSE.saturating_sub(now.saturating_duration_since(failed_at));
        if !left.is_zero() {
            return Err(left);
        }
        self.failed_at = Some(now);
        Ok(Tries::One)
    }

    /// An operation that began then is over. That it was not served says nothing if another was served
    /// since it began.
    fn leave(&mut self, began: Instant, now: Instant, is_served: bool) {
        if is_served {
            (self.failed_at, self.served_at) = (None, Some(now));
        } else if self.served_at.is_none_or(|served_at| served_at < began) {
            self.failed_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::limits::ETCD_ROUNDS;
    use crate::repository::Store;
    use crate::repository::etcd::{Access, EtcdStore};

    #[test]
    fn a_cluster_that_did_not_serve_is_left_alone_and_then_tried_by_one() {
        let (mut breaker, began) = (Times::default(), Instant::now());
        assert_eq!(breaker.enter(began), Ok(Tries::All));
        breaker.leave(began, began, false);
        assert_eq!(breaker.enter(began + ETCD_PAUSE / 4), Err(ETCD_PAUSE * 3 / 4));
        let again = began + ETCD_PAUSE;
        assert_eq!(breaker.enter(again), Ok(Tries::One));
        assert_eq!(breaker.enter(again), Err(ETCD_PAUSE), "somebody tries it");
        breaker.leave(again, again, true);
        assert_eq!(breaker.enter(again), Ok(Tries::All));
    }

    #[test]
    fn what_began_before_another_was_served_opens_nothing() {
        let (mut breaker, began) = (Times::default(), Instant::now());
        let [served, late] = [1, 2].map(|seconds| began + Duration::from_secs(seconds));
        breaker.leave(began, served, true);
        breaker.leave(began, late, false);
        assert_eq!(breaker.enter(late), Ok(Tries::All));
        breaker.leave(late, late, false);
        assert_eq!(breaker.enter(late), Err(ETCD_PAUSE));
    }

    /// Broke `carry_out` by leaving the breaker out: each question behind the first one took six seconds.
    #[test]
    fn a_cluster_that_hangs_is_tried_by_one_member_now_and_then() {
        // The kernel completes connections to them, and nobody answers.
        let members = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        members.iter().for_each(|member| member.set_nonblocking(true).expect("a socket"));
        let connections_to = |member: &TcpListener| std::iter::from_fn(|| member.accept().ok()).count();
        let connections = || members.iter().map(connections_to).sum::<usize>();
        let url = |member: &TcpListener| format!("http://{}", member.local_addr().expect("an address"));
        let access = Access { members: members.iter().map(url).collect(), ..Access::default() };
        let store = EtcdStore::new(&access, "site").expect("a store");
        let refused = || store.probe().expect_err("nobody answers").to_string();
        assert!(!refused().contains("a moment ago"));
        assert_eq!(connections(), members.len() * ETCD_ROUNDS);
        // As if that were of the hour to come, however busy this machine is.
        store.breaker.times().leave(Instant::now(), Instant::now() + Duration::from_secs(3600), false);
        for _ in 0..10 {
            assert!(refused().contains("a moment ago"));
            let change = store.revoke("a").expect_err("nobody answers").to_string();
            assert!(change.contains("a moment ago"), "{change}");
        }
        assert_eq!(connections(), 0);
        let before = Instant::now().checked_sub(ETCD_PAUSE).expect("this machine runs for longer");
        store.breaker.times().leave(before, before, false);
        assert!(!refused().contains("a moment ago"));
        assert_eq!(connections(), 1, "one member is tried once");
    }
}
