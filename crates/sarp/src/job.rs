//! The slow half: signatures and look-ups. A job owns all it needs, so that it can run on any thread.

use std::sync::Arc;

use identity::distributor::{DistributorKey, HostRecord, Statement};
use identity::{HostIdentity, Verified};
use wire::sarp::{Message, seal};

use crate::akd::{Answering, Records};

/// Slow work of S-ARP.
#[derive(Debug)]
pub struct Job(pub(crate) JobKind);

#[derive(Debug)]
pub(crate) enum JobKind {
    /// Sign our own message, given without its signature.
    Sign { identity: Arc<HostIdentity>, unsigned: Vec<u8> },
    /// Check another host's message.
    Check { record: Verified<HostRecord>, message: Vec<u8> },
    /// Check a distributor's answer.
    Learn { key: DistributorKey, message: Vec<u8> },
    /// As a distributor: look up and sign.
    Answer(Box<Answering>),
}

/// What a job came to.
#[derive(Debug)]
pub struct Completion(pub(crate) CompletionKind);

#[derive(Debug)]
pub(crate) enum CompletionKind {
    /// The whole message.
    Signed(Option<Vec<u8>>),
    Checked(bool),
    Learnt(Option<Box<Verified<Statement>>>),
    /// The worker died or was too busy.
    Lost,
}

impl Completion {
    /// The completion of a job that could not be run.
    #[must_use]
    pub fn lost() -> Completion {
        Completion(CompletionKind::Lost)
    }
}

impl Job {
    /// Does the work. Only a distributor's jobs look into `records`.
    #[must_use]
    pub fn run(self, records: &dyn Records) -> Completion {
        Completion(match self.0 {
            JobKind::Sign { identity, unsigned } => CompletionKind::Signed(sign(&identity, unsigned)),
            JobKind::Check { record, message } => CompletionKind::Checked(check(&record, &message)),
            JobKind::Learn { key, message } => CompletionKind::Learnt(learn(&key, &message)),
            JobKind::Answer(answering) => CompletionKind::Signed(answering.run(records)),
        })
    }
}

fn sign(identity: &HostIdentity, unsigned: Vec<u8>) -> Option<Vec<u8>> {
    let signature = identity.sign(&unsigned).ok()?;
    Some(seal(unsigned, &signature))
}

fn check(record: &Verified<HostRecord>, message: &[u8]) -> bool {
    Message::parse(message)
        .is_ok_and(|message| record.verify_signature(&message.signed_bytes(), message.signature).is_ok())
}

fn learn(key: &DistributorKey, message: &[u8]) -> Option<Box<Verified<Statement>>> {
    key.verify(&Message::parse(message).ok()?).ok().map(Box::new)
}
