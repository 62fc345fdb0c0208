//! Questions for which there was no room among the handshakes that are open, told together: a sweep
//! makes hundreds a second, and an operator needs to know of the sweep.

use bump::Instant;

use crate::event::Event;
use crate::limits::CROWDED_TOLD_AFTER;

/// What there was no room for since it was told last.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    displaced: u32,
    not_asked: u32,
    /// When it is told.
    due: Option<Instant>,
}

impl Crowd {
    /// A question gave way to another.
    pub(super) fn displaced(&mut self, now: Instant) {
        self.displaced = self.displaced.saturating_add(1);
        self.due.get_or_insert(now + CROWDED_TOLD_AFTER);
    }

    /// A question was not asked at all.
    pub(super) fn not_asked(&mut self, now: Instant) {
        self.not_asked = self.not_asked.saturating_add(1);
        self.due.get_or_insert(now + CROWDED_TOLD_AFTER);
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What is to be told at `now`; the next is told of what comes from here on.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Event> {
        self.due.filter(|due| *due <= now)?;
        let Crowd { displaced, not_asked, .. } = std::mem::take(self);
        Some(Event::Crowded { displaced, not_asked })
    }
}
