//! Frames to a group (paper, section 5.5): signed by their sender, and believed from nobody else.
//!
//! - `clock.rs`: the stamps that we give.
//! - `sending.rs`: what our stack sends to groups, in batches under one signature each.
//! - `answering.rs`: who asks for our certificate.
//! - `receiving.rs`: frames of others, in the order of cost; `frame.rs`: what each check has proved of them.
//! - `asking.rs`: who a sender is and whether it lives now, which nothing but its own answer can prove.
//! - `senders.rs`: what is remembered of senders.
//!
//! Nothing here asks a wall clock: a sender's time is compared with nothing but that sender's earlier time.

mod answering;
mod asking;
mod clock;
mod frame;
mod receiving;
mod senders;
mod sending;

use std::collections::BTreeMap;

use bump::{DropReason, Fate, Generator, Instant, Now, Side, time};
use identity::certificate::HostCertificate;
use shield::{Apart, Bucket, ByRecency, PerSource};
use wire::MacAddress;
use wire::cll::PacketType;
use wire::cll::handshake::tagged_parts;
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::Task;
use super::core::{Call, by_recency};
use super::machines::Machines;
use crate::event::Event;
use crate::job::broadcast::{Outcome, TAG_LABEL, Work};
use crate::job::{CompletionKind, JobKind, Refusal};
use crate::limits;
use crate::settings::Settings;
use asking::Asked;
use clock::Clock;
use senders::Senders;
use sending::Sending;

/// What a job of this part belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duty {
    /// The batch under way.
    Batch,
    /// The root of what waits first of this sender, under the number of the check.
    Root(MacAddress, u64),
    /// This host's answer to our question.
    Announcement(MacAddress),
}

/// Everything about group frames.
pub(super) struct Broadcasts {
    clock: Clock,
    sending: Sending,
    answer_budget: ByRecency,
    senders: Senders,
    asked: BTreeMap<MacAddress, Asked>,
    question_budget: Apart<Bucket>,
    check_budget: Bucket,
    check_budget_per_source: PerSource,
    /// Checks of roots so far.
    checks: u64,
}

impl Broadcasts {
    pub(super) fn new(random: &mut Generator, now: Now, settings: &Settings) -> Broadcasts {
        let (answers, checks) = (limits::GROUP_ANSWERS_PER_SECOND, limits::GROUP_CHECKS_PER_SECOND);
        let questions = limits::GROUP_QUESTIONS_PER_SECOND;
        Broadcasts {
            clock: Clock::new(random, now),
            sending: Sending::new(&settings.broadcasting),
            answer_budget: by_recency(answers, answers),
            senders: Senders::new(now.since_boot),
            asked: BTreeMap::new(),
            question_budget: Apart::new(|| Bucket::new(questions, questions)),
            check_budget: Bucket::new(checks, checks),
            check_budget_per_source: PerSource::new(limits::GROUP_CHECKS_PER_SOURCE_PER_SECOND, limits::SOURCES_MAX),
            checks: 0,
        }
    }

    /// This host has other addresses: it is a new sender to those who know it under its earlier certificate, and they ask again.
    pub(super) fn renew_incarnation(&mut self, random: &mut Generator, now: Now) {
        self.clock = Clock::new(random, now);
    }

    /// Senders of group frames that have proved themselves.
    pub(super) fn senders(&self) -> usize {
        self.senders.len()
    }

    /// The name in the certificate of a sender that has proved itself.
    pub(super) fn name_of(&self, mac: MacAddress) -> Option<&str> {
        self.senders.get(mac).map(|sender| sender.certificate.name())
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let asked = self.asked.values().map(|asked| asked.due).min();
        time::earlier(time::earlier(self.sending.deadline(), asked), self.senders.deadline())
    }
}

impl Call<'_> {
    fn broadcast_task(&mut self, duty: Duty, work: Work) -> bool {
        self.task(Task::Broadcast(duty), JobKind::Broadcast(work))
    }
}

impl Machines {
    /// A group frame, an announcement or a question of the wire.
    pub(super) fn group_message(
        &mut self,
        call: &mut Call<'_>,
        kind: PacketType,
        header: &Header,
        frame: &[u8],
    ) -> Result<Fate, DropReason> {
        if !call.core.settings.broadcasting.carried {
            return Err(switched_off(header.destination));
        }
        match kind {
            PacketType::GroupFrame => self.group_frame(call, frame),
            PacketType::Announcement => self.announcement(call, header, frame),
            _ => self.question(call, header, frame),
        }
    }

    /// What a job came to; anything unexpected means that it was lost.
    pub(super) fn broadcast_done(&mut self, call: &mut Call<'_>, duty: Duty, completion: CompletionKind) {
        let CompletionKind::Broadcast(outcome) = completion else { return self.broadcast_job_lost(call, duty) };
        match (duty, outcome) {
            (Duty::Batch, Outcome::Signed(frames)) => self.batch_signed(call, frames),
            (Duty::Root(mac, check), Outcome::Root(result)) => self.root_checked(call, mac, check, result),
            (Duty::Announcement(mac), Outcome::Announced(result)) => self.announcement_judged(call, mac, result),
            (duty, _) => self.broadcast_job_lost(call, duty),
        }
    }

    fn broadcast_job_lost(&mut self, call: &mut Call<'_>, duty: Duty) {
        let lost = || Refusal { reason: DropReason::JobLost, detail: "its check was not made".to_owned() };
        match duty {
            Duty::Batch => self.batch_signed(call, None),
            Duty::Root(mac, check) => self.root_checked(call, mac, check, Err(lost())),
            Duty::Announcement(mac) => self.announcement_judged(call, mac, Err(lost())),
        }
    }

    pub(super) fn broadcast_tick(&mut self, call: &mut Call<'_>) {
        self.sign_next(call);
        self.repeat_questions(call);
        self.expire_parts(call);
    }

    /// Forgets senders with a certificate that `is_wanted` names.
    pub(super) fn forget_group_senders(&mut self, call: &mut Call<'_>, is_wanted: impl Fn(&HostCertificate) -> bool) {
        for mac in self.broadcasts.senders.with_certificate(is_wanted) {
            self.addresses.forget_host(call, mac);
            self.forget_group_sender(call, mac, DropReason::BadCertificate);
        }
    }

    /// The tag under the site key: what fails here costs no signature.
    fn check_group_tag(&self, call: &Call<'_>, frame: &[u8]) -> Result<(), DropReason> {
        let (ethernet, message) = frame.split_at(ETHERNET_LEN);
        let [before, after] = tagged_parts(message);
        let tag = message.get(before.len()..message.len() - after.len()).and_then(|tag| tag.try_into().ok());
        let fits =
            tag.is_some_and(|tag| call.core.site_keys.verify(TAG_LABEL, &[ethernet, before, after], tag).is_some());
        if fits || call.core.settings.weaken.site_tag { Ok(()) } else { Err(DropReason::GroupTag) }
    }

    fn refuse_group(&mut self, call: &mut Call<'_>, mac: MacAddress, frame: &[u8], refusal: Refusal) {
        let Refusal { reason, detail } = refusal;
        call.out.event(Event::GroupRefused { mac, reason, detail });
        call.release(Side::WIRE, Fate::Dropped(reason), frame);
    }
}

/// Why a group frame ends here while none are carried.
pub(crate) fn switched_off(destination: MacAddress) -> DropReason {
    if destination.is_group() && !destination.is_broadcast() { DropReason::Multicast } else { DropReason::Broadcast }
}
