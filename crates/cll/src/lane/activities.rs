//! What happened under each association since control was last told.

use std::collections::BTreeMap;
use std::ops::Bound;

use bump::{Instant, Mailbox, Now};

use crate::limits::SWEEP_INTERVAL;
use crate::message::{Activity, AssociationId, Request};

/// All of that, and when control is told next.
#[derive(Default)]
pub(super) struct Activities {
    of: BTreeMap<AssociationId, Activity>,
    report_at: Option<Instant>,
    /// The one that was told last in a sweep that is not over. It goes on behind it, or those before
    /// it, which are in use again, would be told for ever and the others never.
    told: Option<AssociationId>,
}

impl Activities {
    /// Notes what happened under `association`, to be reported with the next sweep.
    pub(super) fn note(&mut self, now: Now, association: AssociationId, note: impl FnOnce(&mut Activity)) {
        note(self.of.entry(association).or_default());
        self.report_at.get_or_insert(now.since_boot + SWEEP_INTERVAL);
    }

    /// Tells control at once what happened under `association`; whether it knows all of it now.
    pub(super) fn tell(&mut self, association: AssociationId, requests: &mut Mailbox<Request>) -> bool {
        let Some(activity) = self.of.remove(&association) else { return true };
        let is_told = requests.push(Request::Activity(association, activity)).is_ok();
        if !is_told {
            self.of.insert(association, activity);
        }
        is_told
    }

    /// Tells control of up to `budget` associations, if it is time; a sweep that is not over then goes
    /// on with the next call.
    pub(super) fn sweep(&mut self, now: Now, budget: usize, requests: &mut Mailbox<Request>) {
        if self.report_at.is_none_or(|at| at > now.since_boot) {
            return;
        }
        for _ in 0..budget {
            let Some(association) = self.next_to_tell() else { break };
            if !self.tell(association, requests) {
                break;
            }
            self.told = Some(association);
        }
        let is_over = self.next_to_tell().is_none();
        self.told = self.told.filter(|_| !is_over);
        let next = if is_over { now.since_boot + SWEEP_INTERVAL } else { now.since_boot };
        self.report_at = (!self.of.is_empty()).then_some(next);
    }

    fn next_to_tell(&self) -> Option<AssociationId> {
        let behind = self.told.map_or(Bound::Unbounded, Bound::Excluded);
        self.of.range((behind, Bound::Unbounded)).next().map(|(association, _)| *association)
    }

    /// When control is told next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.report_at
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const HOSTS: u64 = 1000;
    const BUDGET: usize = 64;

    fn at(millis: u64) -> Now {
        Now { since_boot: Instant::from_millis(millis), wall: None }
    }

    /// All of them are in use all the time, so those that were told first have news again before the
    /// last ones are told.
    #[test]
    fn control_hears_of_every_association_in_each_sweep() {
        let (mut activities, mut requests) = (Activities::default(), Mailbox::new(BUDGET));
        let use_all = |activities: &mut Activities, now| {
            (0..HOSTS).for_each(|host| activities.note(now, AssociationId(host), |activity| activity.opened = true));
        };
        use_all(&mut activities, at(0));
        let mut told = BTreeSet::new();
        while activities.deadline().is_some_and(|due| due <= at(1000).since_boot) {
            activities.sweep(at(1000), BUDGET, &mut requests);
            use_all(&mut activities, at(1000));
            told.extend(std::iter::from_fn(|| requests.pop()).map(|request| match request {
                Request::Activity(association, _) => association.0,
                other => panic!("{other:?}"),
            }));
        }
        assert_eq!(told, (0..HOSTS).collect());
        assert_eq!(activities.deadline(), Some(at(1000).since_boot + SWEEP_INTERVAL));
    }

    /// What control has no room for is told with the next call.
    #[test]
    fn nothing_is_lost_when_control_has_no_room() {
        let (mut activities, mut requests) = (Activities::default(), Mailbox::new(3));
        (0..10).for_each(|host| activities.note(at(0), AssociationId(host), |activity| activity.opened = true));
        let mut told = 0;
        for _ in 0..4 {
            activities.sweep(at(1000), BUDGET, &mut requests);
            told += std::iter::from_fn(|| requests.pop()).count();
        }
        assert_eq!((told, activities.deadline()), (10, None));
    }
}
