//! The slow half: signatures and look-ups. A job owns all it needs, so that it can run on any thread.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::DropReason;
use dhcp::{Claimed, Proving};
use identity::Verified;
use identity::distributor::{DistributorKey, HostRecord, RequestKey, Statement};
use identity::limits::PAIRS_PER_BATCH;
use identity::profile::PAIR_RANDOM_LEN;
use identity::signing::SigningKey;
use wire::arp::Arp;
use wire::sarp::data::{CREDENTIAL_LEN, Change, Question};
use wire::sarp::{DATA_AT, Kind, Message, seal};

use crate::akd::{Answering, Enrolling, Lookup, Records};

/// Slow work of S-ARP.
#[derive(Debug)]
pub struct Job(pub(crate) JobKind);

#[derive(Debug)]
pub(crate) enum JobKind {
    /// Sign our own message, given without its signature.
    Sign { key: Arc<SigningKey>, unsigned: Vec<u8> },
    /// Write the request that replaces our key.
    Change(Box<Changing>),
    /// Check another host's message.
    Check { record: Verified<HostRecord>, message: Vec<u8> },
    /// Check a distributor's answer.
    Learn { key: DistributorKey, message: Vec<u8> },
    /// Prove a DHCP message of our own.
    ProveDhcp { key: Arc<SigningKey>, proving: Box<Proving> },
    /// Check the proof of a DHCP server's reply.
    CheckReply(Box<dhcp::client::Checking>),
    /// Check the proof of a DHCP client's request.
    CheckRequest(Box<dhcp::server::Checking>),
    /// As a distributor: look up and sign.
    Answer(Box<Answering>),
    /// Compute what the next signatures need, while nobody waits (section 5.1). Only for keys of the paper profile.
    Prepare { key: Arc<SigningKey>, random: [u8; PAIR_RANDOM_LEN] },
    /// As a distributor: look a token up and answer.
    Enrol(Box<Enrolling>),
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
    DhcpProved(Result<Vec<u8>, DropReason>),
    /// A DHCP server's reply whose proof is right.
    ReplyChecked(Option<Box<Claimed>>),
    RequestChecked(Box<dhcp::server::Checked>),
    Prepared,
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
    /// Whether somebody waits for the result and it never waits itself, so that it may be run on a quiet data path.
    #[must_use]
    pub fn is_urgent(&self, records: &dyn Records) -> bool {
        match &self.0 {
            JobKind::Answer(answering) => !answering.may_wait(records),
            JobKind::Change(_) | JobKind::Enrol(_) | JobKind::Prepare { .. } => false,
            JobKind::Sign { .. }
            | JobKind::Check { .. }
            | JobKind::Learn { .. }
            | JobKind::ProveDhcp { .. }
            | JobKind::CheckReply(_)
            | JobKind::CheckRequest(_) => true,
        }
    }

    /// Does the work. Only a distributor's jobs look into `records`.
    #[must_use]
    pub fn run(self, records: &dyn Records) -> Completion {
        self.run_with(records, None)
    }

    /// Does the work of many, in their order; the keys that they are asked for are looked up at once.
    #[must_use]
    pub fn run_all(jobs: Vec<Job>, records: &dyn Records) -> Vec<Completion> {
        let wanted: Vec<_> = jobs.iter().filter_map(Job::wanted).collect();
        let mut found = records.find_all(&wanted).into_iter();
        let run = |job: Job| {
            let found = if job.wanted().is_some() { found.next() } else { None };
            job.run_with(records, found)
        };
        jobs.into_iter().map(run).collect()
    }

    fn wanted(&self) -> Option<Ipv4Addr> {
        if let JobKind::Answer(answering) = &self.0 { answering.wanted() } else { None }
    }

    fn run_with(self, records: &dyn Records, found: Option<Lookup>) -> Completion {
        Completion(match self.0 {
            JobKind::Sign { key, unsigned } => CompletionKind::Signed(sign(&key, unsigned)),
            JobKind::Change(changing) => CompletionKind::Signed(changing.run()),
            JobKind::Check { record, message } => CompletionKind::Checked(check(&record, &message)),
            JobKind::Learn { key, message } => CompletionKind::Learnt(learn(&key, &message)),
            JobKind::ProveDhcp { key, proving } => CompletionKind::DhcpProved(proving.run(&key)),
            JobKind::CheckReply(checking) => CompletionKind::ReplyChecked(checking.run().map(Box::new)),
            JobKind::CheckRequest(checking) => CompletionKind::RequestChecked(Box::new(checking.run())),
            JobKind::Answer(answering) => CompletionKind::Signed(answering.run(records, found)),
            JobKind::Prepare { key, random } => {
                key.prepare(&random, PAIRS_PER_BATCH);
                CompletionKind::Prepared
            }
            JobKind::Enrol(enrolling) => CompletionKind::Signed(enrolling.run(records)),
        })
    }
}

fn sign(key: &SigningKey, unsigned: Vec<u8>) -> Option<Vec<u8>> {
    let signature = key.sign(&unsigned).ok()?;
    Some(seal(unsigned, &signature))
}

fn check(record: &Verified<HostRecord>, message: &[u8]) -> bool {
    Message::parse(message)
        .is_ok_and(|message| record.verify_signature(&message.signed_bytes(), message.signature).is_ok())
}

fn learn(key: &DistributorKey, message: &[u8]) -> Option<Box<Verified<Statement>>> {
    key.verify(&Message::parse(message).ok()?).ok().map(Box::new)
}

/// A host's request to replace its own key (section 3.2): proved by the new key, with a credential, signed by the old key.
#[derive(Debug)]
pub(crate) struct Changing {
    pub(crate) old: Arc<SigningKey>,
    pub(crate) new: Arc<SigningKey>,
    pub(crate) request_key: RequestKey,
    pub(crate) arp: Arp,
    pub(crate) seconds: u32,
    pub(crate) question: Question,
}

impl Changing {
    fn run(self) -> Option<Vec<u8>> {
        let (algorithm, key) = self.new.record_key()?;
        let credential = [0; CREDENTIAL_LEN];
        let unproved = Change { question: self.question, credential, algorithm, proof: &[], key };
        let proof = self.new.sign(&unproved.proved_bytes()).ok()?;
        let data = Change { proof: &proof, ..unproved }.emit();
        let message =
            Message { arp: self.arp, kind: Kind::KeyChange, seconds: self.seconds, data: &data, signature: &[] };
        let mut unsigned = message.signed_bytes();
        let credential = self.request_key.change_credential(&unsigned);
        unsigned.get_mut(DATA_AT..)?.get_mut(Change::CREDENTIAL)?.copy_from_slice(&credential);
        sign(&self.old, unsigned)
    }
}
