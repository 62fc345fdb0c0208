//! When upkeep of a host is due: it is scheduled for the soonest moment at which it was ever wanted, and not again for later ones.

use bump::Instant;

/// The moment for which one kind of upkeep is scheduled.
#[derive(Debug, Default)]
pub struct Due(Option<Instant>);

impl Due {
    /// It is wanted at `next`, if at all: the moment to schedule it for, unless it is scheduled for that or sooner.
    pub fn plan(&mut self, now: Instant, next: Option<Instant>) -> Option<Instant> {
        let next = next?.max(now);
        if self.0.is_some_and(|scheduled| scheduled <= next) {
            return None;
        }
        self.0 = Some(next);
        self.0
    }

    /// Whether it is due at last. Then it is not scheduled any more.
    pub fn take(&mut self, now: Instant) -> bool {
        self.0.take_if(|scheduled| *scheduled <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upkeep_is_scheduled_for_the_soonest_moment_and_once() {
        let [past, soon, later] = [1, 2, 3].map(Instant::from_millis);
        let mut due = Due::default();
        assert_eq!(due.plan(past, None), None);
        assert!(!due.take(later), "nothing is scheduled");
        assert_eq!(due.plan(past, Some(later)), Some(later));
        assert_eq!(due.plan(past, Some(later)), None, "it is scheduled for that");
        assert_eq!(due.plan(past, Some(soon)), Some(soon));
        assert!(!due.take(past));
        assert!(due.take(soon));
        assert!(!due.take(later), "the later one was replaced");
        assert_eq!(due.plan(later, Some(past)), Some(later), "what is late is due now");
    }
}
