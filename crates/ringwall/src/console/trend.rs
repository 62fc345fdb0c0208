//! Drops over time, from samples of counters: so many in each ten seconds of the last hour.

use std::collections::{BTreeMap, VecDeque};

/// Seconds of one step.
pub(super) const STEP_S: u64 = 10;
/// Steps that are kept.
const STEPS_MAX: usize = 360;

/// Counters, by reason.
pub(super) type Drops = BTreeMap<String, u64>;

/// The last hour.
#[derive(Debug, Default)]
pub(super) struct Trend {
    /// What each daemon had counted, and for how long it had run then.
    last: BTreeMap<String, (u64, Drops)>,
    /// The number of the step, and what was dropped in it.
    steps: VecDeque<(u64, Drops)>,
}

impl Trend {
    /// Enters what the daemon of `interface`, which has run for so long, has counted.
    pub(super) fn enter(&mut self, unix_s: u64, interface: &str, uptime_s: u64, drops: &Drops) {
        let step = unix_s / STEP_S;
        if self.steps.back().is_none_or(|(last, _)| *last < step) {
            self.steps.push_back((step, Drops::new()));
        }
        if self.steps.len() > STEPS_MAX {
            self.steps.pop_front();
        }
        // Of one that started anew all counts are new; of one that was never seen none are known
        // to be.
        let before = self.last.insert(interface.to_owned(), (uptime_s, drops.clone()));
        let Some((before_s, before)) = before else { return };
        let Some((_, now)) = self.steps.back_mut() else { return };
        for (reason, count) in drops {
            let old = if uptime_s < before_s { 0 } else { before.get(reason).copied().unwrap_or(0) };
            let more = count.saturating_sub(old);
            if more > 0 {
                *now.entry(reason.clone()).or_default() += more;
            }
        }
    }

    /// Forgets daemons that are gone.
    pub(super) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.last.retain(|interface, _| is_there(interface));
    }

    /// The last `count` spans of so many steps, the oldest first.
    pub(super) fn spans(&self, unix_s: u64, count: usize, steps: u64) -> Vec<Drops> {
        let mut spans = vec![Drops::new(); count];
        let now = unix_s / STEP_S;
        for (step, drops) in &self.steps {
            let Some(ago) = now.checked_sub(*step) else { continue };
            let Ok(back) = usize::try_from(ago / steps.max(1)) else { continue };
            let Some(span) = count.checked_sub(back + 1).and_then(|at| spans.get_mut(at)) else { continue };
            drops.iter().for_each(|(reason, more)| *span.entry(reason.clone()).or_default() += more);
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drops(replayed: u64) -> Drops {
        Drops::from([("replayed".to_owned(), replayed)])
    }

    fn told(trend: &Trend, unix_s: u64) -> Vec<u64> {
        trend.spans(unix_s, 4, 1).iter().map(|span| span.get("replayed").copied().unwrap_or(0)).collect()
    }

    #[test]
    fn what_is_new_is_told_of_the_step_in_which_it_came() {
        let mut trend = Trend::default();
        trend.enter(1000, "e0", 5, &drops(7));
        assert_eq!(told(&trend, 1000), [0, 0, 0, 0], "nobody knows when these came");
        trend.enter(1005, "e0", 10, &drops(9));
        trend.enter(1010, "e0", 15, &drops(19));
        trend.enter(1015, "e0", 1, &drops(4));
        assert_eq!(told(&trend, 1015), [0, 0, 2, 14], "it started anew");
        assert_eq!(told(&trend, 1035), [2, 14, 0, 0]);
        assert_eq!(trend.spans(1035, 1, 4)[0], drops(16));
    }

    proptest! {
        /// However daemons count, no drop is told twice and the memory has an end.
        #[test]
        fn the_sum_is_what_was_counted(steps in proptest::collection::vec((1_u64..60, 0_u64..1000), 1..500)) {
            let (mut trend, mut now, mut count, mut shown) = (Trend::default(), 10_000, 0, Vec::new());
            trend.enter(now, "e0", now, &drops(0));
            for (seconds, more) in steps {
                (now, count) = (now + seconds, count + more);
                trend.enter(now, "e0", now, &drops(count));
                shown.push((now / STEP_S, more));
                prop_assert!(trend.steps.len() <= STEPS_MAX);
            }
            let within = |step: u64| now / STEP_S - step < 60;
            let expected: u64 = shown.iter().filter(|(step, _)| within(*step)).map(|(_, more)| more).sum();
            let told: u64 = trend.spans(now, 60, 1).iter().flat_map(|span| span.values()).sum();
            prop_assert_eq!(told, expected);
        }
    }
}
