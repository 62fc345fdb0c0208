//! The slow half as a host sees it: what each job under way belongs to, and how many were done.

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::{DropReason, Fate, Generator, Mailbox, Side, Ticket};
use identity::Verified;
use identity::distributor::HostRecord;
use identity::signing::SigningKey;
use wire::MacAddress;

use crate::job::{CompletionKind, Job, JobKind};
use crate::limits;

/// What a job under way belongs to. The frame has its fate when the job is done.
#[derive(Debug)]
pub(super) enum Task {
    /// A message of our stack is being signed.
    Send { frame: Vec<u8>, to: MacAddress },
    /// Our answer to a request is being signed.
    Answer { frame: Vec<u8>, to: MacAddress },
    /// The signature of another host's message is being checked.
    Check(Checking),
    /// The signature of a distributor's answer is being checked.
    Learn { frame: Option<Vec<u8>>, distributor: usize },
    /// Our request to replace our key is being signed.
    Change { to: MacAddress },
    /// A DHCP message of our own is being proved.
    ProveDhcp { frame: Vec<u8> },
    /// The proof of a DHCP message is being checked.
    CheckDhcp { frame: Vec<u8> },
    /// Our answer as a distributor is being made. Without a frame it is for this very host, here and above.
    Serve { frame: Option<Vec<u8>>, to: MacAddress },
}

impl Task {
    /// The frame that is held for it, and the side it came from.
    pub(super) fn held(&self) -> Option<(Side, &[u8])> {
        match self {
            Task::Send { frame, .. } | Task::ProveDhcp { frame } => Some((Side::STACK, frame)),
            Task::Answer { frame, .. } | Task::CheckDhcp { frame } | Task::Check(Checking { frame, .. }) => {
                Some((Side::WIRE, frame))
            }
            Task::Learn { frame, .. } | Task::Serve { frame, .. } => Some((Side::WIRE, frame.as_deref()?)),
            Task::Change { .. } => None,
        }
    }
}

/// A message whose signature is being checked under the key of `record`.
#[derive(Debug)]
pub(super) struct Checking {
    pub(super) frame: Vec<u8>,
    /// Whether it is judged for the second time, under a key that was just fetched.
    pub(super) retried: bool,
    pub(super) record: Verified<HostRecord>,
}

/// Jobs that wait for a worker or are under way.
#[derive(Debug)]
pub(super) struct Work {
    waiting: Mailbox<(Ticket, Job)>,
    tasks: BTreeMap<Ticket, Task>,
    last_ticket: u64,
    /// Something was signed since it was last looked whether signatures should be prepared.
    may_prepare: bool,
    signatures: u64,
    verifications: u64,
}

impl Work {
    pub(super) fn new() -> Work {
        let waiting = Mailbox::new(limits::JOBS_MAX);
        Work { waiting, tasks: BTreeMap::new(), last_ticket: 0, may_prepare: true, signatures: 0, verifications: 0 }
    }

    /// Starts `job` for a frame, which is held until then.
    pub(super) fn start(&mut self, job: JobKind, task: Task) -> Fate {
        let ticket = self.ticket();
        if self.tasks.len() >= limits::JOBS_MAX || self.waiting.push((ticket, Job(job))).is_err() {
            return Fate::Dropped(DropReason::ControlBusy);
        }
        self.tasks.insert(ticket, task);
        Fate::Held
    }

    fn ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// The next job: one that is waited for, or else the preparation of signatures if `key` wants it. That belongs to
    /// no frame, so nobody looks for its end.
    pub(super) fn next(&mut self, key: &Arc<SigningKey>, random: &mut Generator) -> Option<(Ticket, Job)> {
        if let Some(job) = self.waiting.pop() {
            return Some(job);
        }
        if !std::mem::take(&mut self.may_prepare) || !key.wants_preparation() {
            return None;
        }
        Some((self.ticket(), Job(JobKind::Prepare { key: Arc::clone(key), random: random.bytes() })))
    }

    /// Notes what a job has done; what it belongs to. Preparation that came to nothing is tried again after the next
    /// signature, not at once.
    pub(super) fn end(&mut self, ticket: Ticket, completion: &CompletionKind) -> Option<Task> {
        match completion {
            CompletionKind::Signed(Some(_)) | CompletionKind::DhcpProved(Ok(_)) => {
                self.signatures += 1;
                self.may_prepare = true;
            }
            CompletionKind::Checked(_)
            | CompletionKind::Learnt(_)
            | CompletionKind::ReplyChecked(_)
            | CompletionKind::RequestChecked(_) => self.verifications += 1,
            CompletionKind::Prepared => self.may_prepare = true,
            CompletionKind::Signed(None) | CompletionKind::DhcpProved(Err(_)) | CompletionKind::Lost => {}
        }
        self.tasks.remove(&ticket)
    }

    /// Signatures made, and signatures of others checked.
    pub(super) fn done(&self) -> (u64, u64) {
        (self.signatures, self.verifications)
    }
}
