//! What our own stack has asked: answers to anything else change nothing.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bump::Instant;
use wire::sarp::data::RESOLUTION_NONCE_LEN;

use crate::limits::{QUESTION_OPEN, QUESTIONS_MAX};

/// An open question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    asked_at: Instant,
    /// What the answer must repeat; `None` for a plain request.
    pub(crate) nonce: Option<[u8; RESOLUTION_NONCE_LEN]>,
    /// Whether an answer had a time that is far from ours.
    is_far: bool,
}

/// All open questions.
#[derive(Debug, Default)]
pub(crate) struct Questions(BTreeMap<Ipv4Addr, Question>);

impl Questions {
    /// Notes a question about `ip`; false when too many are open.
    pub(crate) fn ask(&mut self, now: Instant, ip: Ipv4Addr, nonce: Option<[u8; RESOLUTION_NONCE_LEN]>) -> bool {
        if self.0.len() >= QUESTIONS_MAX && !self.0.contains_key(&ip) {
            self.0.retain(|_, question| is_open(question, now));
            if self.0.len() >= QUESTIONS_MAX {
                return false;
            }
        }
        let is_far = self.is_far(now, ip);
        self.0.insert(ip, Question { asked_at: now, nonce, is_far });
        true
    }

    /// The answer to the question about `ip` had a time that is far from ours.
    pub(crate) fn note_far(&mut self, ip: Ipv4Addr) {
        if let Some(question) = self.0.get_mut(&ip) {
            question.is_far = true;
        }
    }

    /// Whether that was so for the question about `ip` that is still open.
    pub(crate) fn is_far(&self, now: Instant, ip: Ipv4Addr) -> bool {
        self.open(now, ip).is_some_and(|question| question.is_far)
    }

    /// The question about `ip`, if it is open.
    pub(crate) fn open(&self, now: Instant, ip: Ipv4Addr) -> Option<Question> {
        self.0.get(&ip).copied().filter(|question| is_open(question, now))
    }

    /// The nonce of the question about `ip` that is still open, for a repetition of it.
    pub(crate) fn nonce(&self, now: Instant, ip: Ipv4Addr) -> Option<[u8; RESOLUTION_NONCE_LEN]> {
        self.open(now, ip)?.nonce
    }

    /// Closes the question about `ip`.
    pub(crate) fn answered(&mut self, ip: Ipv4Addr) {
        self.0.remove(&ip);
    }
}

fn is_open(question: &Question, now: Instant) -> bool {
    now.since(question.asked_at) < QUESTION_OPEN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_closes_by_its_answer_and_by_time() {
        let mut questions = Questions::default();
        let (now, ip) = (Instant::from_millis(1), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(questions.open(now, ip), None);
        assert!(questions.ask(now, ip, Some([7; 8])));
        assert_eq!(questions.nonce(now, ip), Some([7; 8]));
        assert!(questions.open(now + QUESTION_OPEN, ip).is_none());
        questions.answered(ip);
        assert!(questions.open(now, ip).is_none());
    }

    #[test]
    fn a_sweep_is_bounded_and_old_questions_make_room() {
        let mut questions = Questions::default();
        let now = Instant::from_millis(1);
        let asked = (0..QUESTIONS_MAX as u32 + 10).filter(|&ip| questions.ask(now, Ipv4Addr::from(ip), None)).count();
        assert_eq!(asked, QUESTIONS_MAX);
        assert!(questions.ask(now + QUESTION_OPEN, Ipv4Addr::from(u32::MAX), None));
        assert_eq!(questions.0.len(), 1);
    }
}
