//! What happened under each association since control was last told.

use std::collections::BTreeMap;

use bump::{Instant, Mailbox, Now};

use crate::limits::SWEEP_INTERVAL;
use crate::message::{Activity, AssociationId, Request};

/// All of that, and when control is told next.
#[derive(Default)]
pub(super) struct Activities {
    of: BTreeMap<AssociationId, Activity>,
    report_at: Option<Instant>,
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

    /// Tells control of up to `budget` associations, if it is time.
    pub(super) fn sweep(&mut self, now: Now, budget: usize, requests: &mut Mailbox<Request>) {
        if self.report_at.is_none_or(|at| at > now.since_boot) {
            return;
        }
        for _ in 0..budget {
            let Some((association, _)) = self.of.first_key_value() else { break };
            let association = *association;
            if !self.tell(association, requests) {
                break;
            }
        }
        self.report_at = (!self.of.is_empty()).then_some(now.since_boot + SWEEP_INTERVAL);
    }

    /// When control is told next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.report_at
    }
}
