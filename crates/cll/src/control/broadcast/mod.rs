//! Frames to a group (paper, section 5.5): signed by their sender, and believed from nobody else.
//!
//! - `clock.rs`: the stamps that we give.
//! - `sending.rs`: what our stack sends to groups, in batches under one signature each, and who
//!   asks for our certificate.
//! - `receiving.rs`: frames of others, in the order of cost; `frame.rs`: what each check has proved of them.
//! - `asking.rs`: who a sender is and whether it lives now, which nothing but its own answer can prove.
//! - `senders.rs`: what is remembered of senders.
//!
//! Nothing here asks a wall clock: a sender's time is compared with nothing but that sender's earlier time.

mod asking;
mod clock;
mod frame;
mod receiving;
mod senders;
mod sending;

use bump::{DropReason, Fate, Generator, Now, Side};
use wire::MacAddress;
use wire::cll::PacketType;
use wire::cll::handshake::tagged_parts;
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::Task;
use super::core::{Call, Verdict};
use crate::event::Event;
use crate::job::broadcast::{Outcome, TAG_LABEL, Work};
use crate::job::{CompletionKind, JobKind, Refusal};
use crate::settings::Settings;
pub(super) use receiving::Judges;
use receiving::Receiving;
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

/// Both halves of what is said to groups.
pub(super) struct Broadcasts {
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
}

impl Broadcasts {
    pub(super) fn new(random: &mut Generator, now: Now, settings: &Settings) -> Broadcasts {
        Broadcasts { sending: Sending::new(random, now, settings), receiving: Receiving::new(now.since_boot) }
    }

    /// A group frame, an announcement or a question of the wire.
    pub(super) fn on_message(
        &mut self,
        call: &mut Call<'_>,
        judges: &mut Judges<'_>,
        kind: PacketType,
        header: &Header,
        frame: &[u8],
    ) -> Verdict {
        if !call.core.settings.broadcasting.carried {
            return Err(switched_off(header.destination));
        }
        match kind {
            PacketType::GroupFrame => self.receiving.on_frame(call, judges, frame),
            PacketType::Announcement => self.receiving.on_announcement(call, header, frame),
            _ => self.sending.on_question(call, header, frame),
        }
    }

    /// What a job came to; anything unexpected means that it was lost.
    pub(super) fn on_done(
        &mut self,
        call: &mut Call<'_>,
        judges: &mut Judges<'_>,
        duty: Duty,
        completion: CompletionKind,
    ) {
        let lost = || Refusal { reason: DropReason::JobLost, detail: "its check was not made".to_owned() };
        let outcome = if let CompletionKind::Broadcast(outcome) = completion { Some(outcome) } else { None };
        match (duty, outcome) {
            (Duty::Batch, Some(Outcome::Signed(frames))) => self.sending.on_signed(call, frames),
            (Duty::Batch, _) => self.sending.on_signed(call, None),
            (Duty::Root(mac, check), outcome) => {
                let result = if let Some(Outcome::Root(result)) = outcome { result } else { Err(lost()) };
                self.receiving.on_root(call, judges, (mac, check), result);
            }
            (Duty::Announcement(mac), outcome) => {
                let result = if let Some(Outcome::Announced(result)) = outcome { result } else { Err(lost()) };
                self.receiving.on_judged(call, judges, mac, result);
            }
        }
    }
}

impl Call<'_> {
    fn broadcast_task(&mut self, duty: Duty, work: Work) -> bool {
        self.task(Task::Broadcast(duty), JobKind::Broadcast(work))
    }
}

/// The tag under the site key: what fails here costs no signature.
fn check_tag(call: &Call<'_>, frame: &[u8]) -> Result<(), DropReason> {
    let (ethernet, message) = frame.split_at(ETHERNET_LEN);
    let [before, after] = tagged_parts(message);
    let tag = message.get(before.len()..message.len() - after.len()).and_then(|tag| tag.try_into().ok());
    let fits = tag.is_some_and(|tag| call.core.site_keys.verify(TAG_LABEL, &[ethernet, before, after], tag).is_some());
    if fits || call.core.settings.weaken.site_tag { Ok(()) } else { Err(DropReason::GroupTag) }
}

/// Names the refusal of a group frame to the operator and in the counters.
fn refuse(call: &mut Call<'_>, mac: MacAddress, frame: &[u8], Refusal { reason, detail }: Refusal) {
    call.out.event(Event::GroupRefused { mac, reason, detail });
    call.release(Side::WIRE, Fate::Dropped(reason), frame);
}

/// Why a group frame ends here while none are carried.
pub(crate) fn switched_off(destination: MacAddress) -> DropReason {
    if destination.is_group() && !destination.is_broadcast() { DropReason::Multicast } else { DropReason::Broadcast }
}
