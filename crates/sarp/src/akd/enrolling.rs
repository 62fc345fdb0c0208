//! Enrolment by token, as distributors serve it: they check tags, enter who applies, and hand out what the manager has sealed.
//! They decide nothing, sign nothing, and keep nothing between two messages but what they have spent.
//!
//! Whoever applies holds no key of the site, so the first check is in what the message names: the number of a token shows by
//! itself that the site made it. A number that was overheard leads to a tag, of which only so many are checked in a second.

use bump::{DropReason, Instant, Now};
use identity::token::TokenKey;
use shield::{Bucket, PerSource};
use wire::MacAddress;
use wire::arp::Arp;
use wire::sarp::enrolment::{Application, Enrolment, Fetch, PIECE_MAX_BYTES, Piece, State};
use wire::sarp::{Kind, Message, seal};

use super::{Akd, Records, answer_to};
use crate::limits;

/// What a host that enrols is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What became of it.
    pub state: State,
    /// The whole sealed identity; empty in any state but [`State::Approved`].
    pub sealed: Vec<u8>,
}

impl From<State> for Outcome {
    /// A state without anything to fetch.
    fn from(state: State) -> Outcome {
        Outcome { state, sealed: Vec::new() }
    }
}

/// A message about a token that has proved itself, ready to be looked up and answered.
#[derive(Debug)]
pub(crate) struct Enrolling {
    key: TokenKey,
    mac: MacAddress,
    arp: Arp,
    /// The whole data of the message, which was read before.
    data: Vec<u8>,
    asked: Asked,
}

#[derive(Clone, Copy, Debug)]
enum Asked {
    Apply,
    Fetch,
}

/// What stands in front of the tag of a message about a token, and between the tag and the repository.
pub(super) struct EnrolmentGate {
    checks: Shares,
    answers: Shares,
}

/// What is spent for one token, and for all.
struct Shares {
    per_token: PerSource<u64>,
    all: Bucket,
}

impl Shares {
    fn new(per_token: u32, all: u32) -> Shares {
        Shares { per_token: PerSource::new(per_token, limits::ENROLLING_MAX), all: Bucket::new(all, all) }
    }

    fn take(&mut self, now: Instant, token: u64) -> bool {
        self.per_token.take(now, token) && self.all.take(now)
    }
}

impl EnrolmentGate {
    pub(super) fn new() -> EnrolmentGate {
        EnrolmentGate {
            checks: Shares::new(limits::ENROLMENT_CHECKS_PER_TOKEN_PER_SECOND, limits::ENROLMENT_CHECKS_PER_SECOND),
            answers: Shares::new(limits::ENROLMENTS_PER_TOKEN_PER_SECOND, limits::ENROLMENTS_PER_SECOND),
        }
    }

    /// Whether the tag of a message about this token may be checked.
    fn admit(&mut self, now: Instant, token: u64) -> Result<(), DropReason> {
        if self.checks.take(now, token) { Ok(()) } else { Err(DropReason::SarpEnrolBudget) }
    }
}

impl Akd {
    /// Judges a message about a token; what is returned runs as a job.
    pub(crate) fn enrol(&mut self, now: Now, message: &Message<'_>) -> Result<Enrolling, DropReason> {
        let malformed = |_| DropReason::SarpMalformed;
        let (token, asked) = match message.kind {
            Kind::Apply => (Application::parse(message.data).map_err(malformed)?.question.host, Asked::Apply),
            _ => (Fetch::parse(message.data).map_err(malformed)?.question.host, Asked::Fetch),
        };
        let master = self.masters.of_number(token).ok_or(DropReason::SarpEnrolNumber)?;
        self.gate.admit(now.since_boot, token)?;
        let key = TokenKey::from_master(master, token);
        if !key.verify_request(&message.signed_bytes(), message.signature) {
            return Err(DropReason::SarpEnrolTag);
        }
        // A token ends at a time.
        now.trusted_unix_ms().ok_or(DropReason::SarpNoClock)?;
        if !self.gate.answers.take(now.since_boot, token) {
            return Err(DropReason::SarpBudget);
        }
        Ok(Enrolling { key, mac: message.arp.sender_mac, arp: message.arp, data: message.data.to_vec(), asked })
    }
}

impl Enrolling {
    /// Looks up, enters and answers; `None` when the repository cannot be read or written.
    pub(crate) fn run(self, records: &dyn Records) -> Option<Vec<u8>> {
        let (question, offset, outcome) = match self.asked {
            Asked::Apply => {
                let application = Application::parse(&self.data).ok()?;
                (application.question, 0, records.apply(&application, self.mac)?)
            }
            Asked::Fetch => {
                let Fetch { question, offset } = Fetch::parse(&self.data).ok()?;
                let outcome = records.fetch(question.host)?;
                let has_all = outcome.state == State::Approved && usize::from(offset) == outcome.sealed.len();
                let outcome = if has_all { records.close(question.host)? } else { outcome };
                (question, usize::from(offset), outcome)
            }
        };
        let data = Enrolment { question, state: outcome.state, piece: piece(&outcome, offset) }.emit();
        let message =
            Message { arp: answer_to(&self.arp), kind: Kind::Enrolment, seconds: 0, data: &data, signature: &[] };
        let unsigned = message.signed_bytes();
        let tag = self.key.answer_tag(&unsigned);
        Some(seal(unsigned, &tag))
    }
}

fn piece(outcome: &Outcome, offset: usize) -> Piece<'_> {
    // A repository keeps nothing longer.
    let total = u16::try_from(outcome.sealed.len()).unwrap_or(u16::MAX);
    let sealed = &outcome.sealed[..usize::from(total)];
    let offset = offset.min(sealed.len());
    let bytes = &sealed[offset..sealed.len().min(offset + PIECE_MAX_BYTES)];
    Piece { total, offset: offset as u16, bytes }
}
