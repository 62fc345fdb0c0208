//! The last events, for `events`, and each of them once to the log.

use std::collections::VecDeque;

use crate::protocol::{About, Event};

/// Events that are remembered.
const EVENTS_MAX: usize = 1024;
/// Events logged in a second; what comes beyond is in the journal and counted, because a flood must not fill a disk.
const LOGGED_PER_SECOND: u32 = 20;

/// Events that an operator should look at, beside attacks.
const ALARMING: &[&str] = &[
    "address-claimed",
    "address-denied",
    "certificate-ends",
    "claim-refused",
    "dhcp-server-refused",
    "distributors-silent",
    "downgrade",
    "handshakes-crowded",
    "internal-error",
    "own-key-kept",
    "sandbox",
    "source-full",
    "source-memory-full",
    "tickets-lost",
];

/// The last events.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    events: VecDeque<Event>,
    last_number: u64,
    second: u64,
    /// Whether attacks reach the log by another way.
    told_elsewhere: bool,
    logged_in_second: u32,
}

impl Journal {
    /// Leaves attacks to another way to the log.
    pub(super) fn leave_attacks(&mut self, told_elsewhere: bool) {
        self.told_elsewhere = told_elsewhere;
    }

    /// Enters an event that happens now.
    pub(crate) fn note(&mut self, word: &str, text: &str) {
        self.note_about(word, text, About::default());
    }

    /// The same, of an event about one host.
    pub(super) fn note_about(&mut self, word: &str, text: &str, about: About) {
        self.enter(unix_ms(), word, text, about);
        let is_alarming = ALARMING.contains(&word);
        self.log(is_alarming, word, text);
    }

    /// Enters an attack that was noticed now.
    pub(crate) fn alarm(&mut self, word: &str, text: &str) {
        self.enter(unix_ms(), word, text, About::default());
        if !self.told_elsewhere {
            self.log(true, word, text);
        }
    }

    fn enter(&mut self, unix_ms: u64, word: &str, text: &str, about: About) {
        self.last_number += 1;
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        let event = Event { number: self.last_number, unix_ms, event: word.to_owned(), text: text.to_owned(), about };
        self.events.push_back(event);
    }

    fn log(&mut self, is_alarming: bool, word: &str, text: &str) {
        let second = unix_ms() / 1000;
        if second != self.second {
            let unlogged = self.logged_in_second.saturating_sub(LOGGED_PER_SECOND);
            if unlogged > 0 {
                tracing::warn!(unlogged, "more events than are logged in a second: see `ringwall events`");
            }
            (self.second, self.logged_in_second) = (second, 0);
        }
        self.logged_in_second += 1;
        match self.logged_in_second <= LOGGED_PER_SECOND {
            true if is_alarming => tracing::warn!(event = word, "{text}"),
            true => tracing::info!(event = word, "{text}"),
            false => {}
        }
    }

    /// The events after the one with this number.
    pub(crate) fn after(&self, number: u64) -> Vec<Event> {
        self.events.iter().filter(|event| event.number > number).cloned().collect()
    }
}

pub(crate) fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_bounded_and_numbers_go_on() {
        let mut journal = Journal::default();
        for count in 0..2000 {
            journal.enter(count, "test", "something", About::default());
        }
        assert_eq!(journal.after(0).len(), EVENTS_MAX);
        assert_eq!(journal.after(1998).iter().map(|event| event.number).collect::<Vec<_>>(), [1999, 2000]);
    }
}
