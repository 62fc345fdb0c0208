//! What distributors sign: answers to hosts of the site, and no more of them than their budgets allow.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use bump::Instant;
use sarp::limits::{LEASE_QUESTIONS_PER_HOST_PER_SECOND, REPEATS_PER_HOST_PER_SECOND, REQUESTS_PER_HOST_PER_SECOND};
use wire::sarp::data::{Answer, Change, Lease, NONCE_LEN, Question};
use wire::sarp::{Kind, Message};

/// A bucket that was full gives twice its rate in the first second.
const BURST: u32 = 2;
const SECOND: Duration = Duration::from_secs(1);

/// The answers of a distributor for one host in the last second.
type Recent = VecDeque<Instant>;

/// All that was asked and answered.
#[derive(Debug, Default)]
pub struct Duties {
    asked: HashSet<[u8; NONCE_LEN]>,
    /// By distributor, its life, and the request.
    answered: HashSet<(usize, u32, [u8; NONCE_LEN])>,
    /// By distributor and host: all answers, and repeated ones.
    recent: HashMap<(usize, u64), [Recent; 2]>,
}

/// The nonce of a request.
fn asked_with(message: &Message<'_>) -> Option<[u8; NONCE_LEN]> {
    match message.kind {
        Kind::TimeRequest | Kind::KeyRequest => Question::parse(message.data).ok().map(|question| question.nonce),
        Kind::KeyChange => Change::parse(message.data).ok().map(|change| change.question.nonce),
        Kind::Lease => Lease::parse(message.data).ok().map(|lease| lease.question.nonce),
        _ => None,
    }
}

impl Duties {
    /// Somebody who has a key of the site asks.
    pub fn ask(&mut self, message: &Message<'_>) {
        self.asked.extend(asked_with(message));
    }

    /// A distributor answers. Returns what is wrong with that.
    pub fn answer(
        &mut self,
        at: Instant,
        (station, life): (usize, u32),
        message: &Message<'_>,
    ) -> Result<(), &'static str> {
        if !matches!(
            message.kind,
            Kind::TimeReply
                | Kind::KeyReply
                | Kind::KeyNotFound
                | Kind::KeyInvalid
                | Kind::KeyChanged
                | Kind::LeaseAgreed
                | Kind::LeaseRefused
        ) {
            return Ok(());
        }
        let Ok(answer) = Answer::parse(message.data) else { return Err("unreadable answer of a distributor") };
        if !self.asked.contains(&answer.nonce) {
            return Err("distributor signed for a stranger");
        }
        let is_repeated = !self.answered.insert((station, life, answer.nonce));
        let [all, repeated] = self.recent.entry((station, answer.host)).or_default();
        let all_max = REQUESTS_PER_HOST_PER_SECOND + LEASE_QUESTIONS_PER_HOST_PER_SECOND + REPEATS_PER_HOST_PER_SECOND;
        let too_many = count(all, at) > BURST * all_max
            || (is_repeated && count(repeated, at) > BURST * REPEATS_PER_HOST_PER_SECOND);
        if too_many { Err("distributor's budget exceeded") } else { Ok(()) }
    }
}

/// How many there were in the last second, with this one.
fn count(recent: &mut Recent, at: Instant) -> u32 {
    recent.push_back(at);
    while recent.front().is_some_and(|first| at.since(*first) >= SECOND) {
        recent.pop_front();
    }
    recent.len() as u32
}
