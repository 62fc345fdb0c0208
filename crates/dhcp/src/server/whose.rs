//! Whose key a client's message is checked under (S-ARP paper, sections 3.4 and 3.5.2).
//!
//! A key that is here may be a former one: its host has changed it, or the site has. So a
//! distributor is asked about each message whose signature is right under it, and about one that is
//! wrong under it. The question names the client and nothing of the message, so the answer is the
//! same whoever caused it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bump::{DropReason, Instant};
use identity::Verified;
use identity::distributor::HostRecord;
use shield::Bucket;
use wire::dhcp::MessageType;
use wire::sarp::data::LeaseAction;

use super::{Order, Question, Server, Step};
use crate::limits;
use crate::proof::Claimed;

/// A client's message whose signature is to be checked under a key that is here.
#[derive(Debug)]
pub struct Checking {
    /// The message.
    pub claimed: Claimed,
    record: Verified<HostRecord>,
    /// Whether a distributor has said that this is the key since the message came.
    is_told: bool,
}

/// A client's message whose signature was checked.
#[derive(Debug)]
pub struct Checked {
    checking: Checking,
    is_right: bool,
}

impl Checking {
    /// Checks the signature.
    #[must_use]
    pub fn run(self) -> Checked {
        let Claimed { signature, .. } = &self.claimed;
        let is_right = self.record.verify_signature(&self.claimed.signed_bytes(), signature).is_ok();
        Checked { checking: self, is_right }
    }
}

/// A client's message that waits for a distributor to say whose key is the client's.
#[derive(Debug)]
pub struct Waiting {
    /// The message.
    pub claimed: Claimed,
    /// The key under which its signature was checked, and whether it was right.
    pub(super) tried: Option<(Verified<HostRecord>, bool)>,
}

impl Waiting {
    pub(super) fn for_a_key(claimed: Claimed) -> Waiting {
        Waiting { claimed, tried: None }
    }

    /// What a distributor is asked.
    #[must_use]
    pub fn question(&self) -> Question {
        let (action, host, address) = (LeaseAction::Check, self.claimed.claim.who, Ipv4Addr::UNSPECIFIED);
        Question { action, host, address, lease_s: 0, claimed: None }
    }

    fn is_right(&self) -> bool {
        self.tried.as_ref().is_some_and(|(_, is_right)| *is_right)
    }
}

/// Which clients were asked about lately for messages whose signature is not proved.
#[derive(Debug)]
pub(super) struct Asked {
    /// No more than the budget allows in an interval.
    at: BTreeMap<u64, Instant>,
    budget: Bucket,
}

impl Default for Asked {
    fn default() -> Asked {
        let per_second = limits::UNPROVED_QUESTIONS_PER_SECOND;
        Asked { at: BTreeMap::new(), budget: Bucket::new(per_second, per_second) }
    }
}

impl Asked {
    /// Whether this client may be asked about once more. A client that was asked about just now
    /// costs the others nothing.
    fn take(&mut self, now: Instant, host: u64) -> bool {
        let is_recent = |at: &Instant| now.since(*at) < limits::UNPROVED_QUESTION_INTERVAL;
        if self.at.get(&host).is_some_and(is_recent) || !self.budget.take(now) {
            return false;
        }
        self.at.retain(|_, at| is_recent(at));
        self.at.insert(host, now);
        true
    }
}

impl Server {
    /// Has a signature checked under `record`.
    pub(super) fn check(
        &mut self,
        now: Instant,
        claimed: Claimed,
        record: Verified<HostRecord>,
        is_told: bool,
    ) -> Result<Step, DropReason> {
        let is_within = self.check_budget_per_client.take(now, claimed.claim.who) && self.check_budget.take(now);
        let checking = Checking { claimed, record, is_told };
        if is_within { Ok(Step::Check(Box::new(checking))) } else { Err(DropReason::DhcpBudget) }
    }

    /// Asks a distributor whose key is the client's now, if that is not asked too often.
    pub(super) fn ask_whose(&mut self, now: Instant, waiting: Waiting) -> Result<Step, DropReason> {
        let host = waiting.claimed.claim.who;
        let is_within = if waiting.is_right() { self.may_ask(now, host) } else { self.asked.take(now, host) };
        match (is_within, &waiting.tried) {
            (true, _) => Ok(Step::AskWhose(Box::new(waiting))),
            (false, Some((_, false))) => Err(DropReason::DhcpSignature),
            (false, _) => Err(DropReason::DhcpBudget),
        }
    }

    /// The signature of a message was checked.
    ///
    /// # Errors
    /// Why the message must not come in.
    pub fn checked(&mut self, now: Instant, stamp: Option<u64>, checked: Checked) -> Result<Step, DropReason> {
        let Checked { checking: Checking { claimed, record, is_told }, is_right } = checked;
        if !is_told && let Some(newer) = self.key_told_meanwhile(&claimed, &record) {
            return self.check(now, claimed, newer, true);
        }
        if is_right && (is_told || self.is_judged_later(now, &claimed)) {
            return self.pass(now, stamp, claimed);
        }
        // The paper's rule for unchanged keys (section 3.4): what is wrong under this very key is
        // forged.
        if is_told {
            return Err(DropReason::DhcpSignature);
        }
        self.ask_whose(now, Waiting { claimed, tried: Some((record, is_right)) })
    }

    /// Another key that a distributor has told since the check began.
    fn key_told_meanwhile(&self, claimed: &Claimed, checked: &HostRecord) -> Option<Verified<HostRecord>> {
        let client = self.clients.get(&claimed.claim.who)?;
        (client.is_vouched && !client.record.same_key(checked)).then(|| client.record.clone())
    }

    /// Whether a distributor judges the client's signature before the message has done anything:
    /// with the address that it asks for. In the paper's order a REQUEST goes through at once under
    /// a key that was told lately, a renewal to its end (section 3.5.2), and a first one until its
    /// ACK.
    fn is_judged_later(&self, now: Instant, claimed: &Claimed) -> bool {
        let is_papers = self.settings.order == Order::AtAck && claimed.claim.kind == MessageType::Request;
        let goes_on = is_papers && self.key_without_asking(now, claimed.claim.who).is_some();
        goes_on || self.binds(now, &claimed.claim)
    }

    /// A distributor says whose key is the client's. A right signature under the same key comes in;
    /// under another key it is checked again.
    ///
    /// # Errors
    /// Why the message that waited must not come in.
    pub fn told(
        &mut self,
        now: Instant,
        stamp: Option<u64>,
        waiting: Waiting,
        record: Verified<HostRecord>,
    ) -> Result<Step, DropReason> {
        let Waiting { claimed, tried } = waiting;
        self.learn(now, claimed.claim.who, record.clone());
        match tried {
            Some((checked, true)) if checked.same_key(&record) => self.pass(now, stamp, claimed),
            Some((checked, false)) if checked.same_key(&record) => Err(DropReason::DhcpSignature),
            _ => self.check(now, claimed, record, true),
        }
    }

    /// No distributor says whose key is the client's. The last word counts for a while, so that
    /// leases do not end with the distributors.
    ///
    /// # Errors
    /// Why the message that waited must not come in.
    pub fn not_told(&mut self, now: Instant, stamp: Option<u64>, waiting: Waiting) -> Result<Step, DropReason> {
        let Waiting { claimed, tried } = waiting;
        match (tried, self.key_without_asking(now, claimed.claim.who)) {
            (Some((checked, true)), Some(last)) if checked.same_key(last) => self.pass(now, stamp, claimed),
            (Some((_, false)), _) => Err(DropReason::DhcpSignature),
            _ => Err(DropReason::DhcpNoAnswer),
        }
    }
}
