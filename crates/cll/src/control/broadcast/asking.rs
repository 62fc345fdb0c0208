//! Who is it that sends to the group, and does it live now?
//!
//! A receiver that knows nothing of a sender, or nothing of this run of it, cannot tell its frame from a recorded one: not
//! after the receiver's own start, and not by any clock. So it asks, with a nonce, and the sender's signed answer says what
//! its clock shows. From that follows which of the frames that waited were made after this host began to remember, and those
//! cannot have been delivered before.

use std::collections::VecDeque;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, Side};
use identity::Verified;
use identity::certificate::HostCertificate;
use wire::MacAddress;
use wire::cll::broadcast::Stamp;
use wire::cll::{Announcement, NONCE_LEN, Question, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::super::core::{Call, Verdict};
use super::frame::Heard;
use super::receiving::{Judges, Receiving, drop_frames_of};
use super::senders::Sender;
use super::{Duty, check_tag, refuse};
use crate::event::Event;
use crate::job::Refusal;
use crate::job::broadcast::{CheckAnnouncement, Work, tag};
use crate::limits::{
    GROUP_ASK_AGAIN, GROUP_ASKED_MAX, GROUP_HELD_PER_SENDER_MAX, GROUP_PROOF_REACH, GROUP_QUESTION_INTERVAL,
    GROUP_QUESTIONS_MAX, GROUP_STRANGERS_ASKED_MAX,
};

/// Announcements that are checked for one question; an honest sender needs one.
const CHECKS_MAX: u8 = 4;

/// A host that was asked.
pub(super) struct Asked {
    nonce: [u8; NONCE_LEN],
    began: Instant,
    /// When the question is repeated, or given up.
    pub(super) due: Instant,
    questions: u32,
    checks: u8,
    /// An announcement that is being checked, and its stamp.
    judged: Option<(Vec<u8>, Stamp)>,
    /// Frames of the wire that wait for the answer.
    held: VecDeque<Vec<u8>>,
}

impl Receiving {
    /// A frame of a sender that must prove itself: it waits for the answer, within limits.
    pub(super) fn hold_unproved(&mut self, call: &mut Call<'_>, mac: MacAddress, frame: &[u8]) -> Verdict {
        if !self.asked.contains_key(&mac) {
            self.begin_to_ask(call, mac)?;
            self.send_question(call, mac);
        }
        let asked = self.asked.get_mut(&mac).ok_or(DropReason::GroupUnproved)?;
        if asked.held.len() >= GROUP_HELD_PER_SENDER_MAX {
            return Err(DropReason::GroupUnproved);
        }
        asked.held.push_back(frame.to_vec());
        Ok(Fate::Held)
    }

    fn begin_to_ask(&mut self, call: &mut Call<'_>, mac: MacAddress) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        // A recorded frame of an earlier run must not buy a question each time that it is played.
        let just_proved = |sender: &Sender| now.since(sender.proved) < GROUP_QUESTION_INTERVAL;
        let is_proved = call.is_proved(mac);
        let room = if is_proved { GROUP_ASKED_MAX } else { GROUP_STRANGERS_ASKED_MAX };
        if self.senders.get(mac).is_some_and(just_proved)
            || self.asked.len() >= room
            || !self.question_budget.of(is_proved).take(now)
        {
            return Err(DropReason::GroupUnproved);
        }
        let asked = Asked {
            nonce: call.core.random.bytes(),
            began: now,
            due: now,
            questions: 0,
            checks: 0,
            judged: None,
            held: VecDeque::new(),
        };
        self.asked.insert(mac, asked);
        Ok(())
    }

    fn send_question(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let Some(asked) = self.asked.get_mut(&mac) else { return };
        asked.due = call.now.since_boot + GROUP_ASK_AGAIN * (1 << asked.questions.min(8));
        asked.questions += 1;
        let time_ms = call.now.wall.map_or(0, |wall| wall.unix_ms);
        let question = Question { site_tag: [0; SITE_TAG_LEN], nonce: asked.nonce, time_ms };
        let header =
            Header { destination: mac, source: call.core.settings.mac, ethertype: call.core.settings.ethertype };
        let mut frame = [&header.emit()[..], &question.emit()].concat();
        // A question that nobody answers is repeated under the other site key: perhaps the sender
        // has only that.
        let is_repeated = asked.questions % 2 == 0;
        let under = is_repeated.then(|| call.core.site_keys.other_than(None)).flatten();
        let Some(site_key) = call.core.site_keys.get(under) else { return };
        tag(site_key, &mut frame);
        call.make(Side::WIRE, &frame);
    }

    /// Asks again, or gives up, where no answer came.
    pub(super) fn repeat_questions(&mut self, call: &mut Call<'_>) {
        let now = call.now.since_boot;
        let is_due = |asked: &Asked| asked.due <= now;
        let due: Vec<_> = self.asked.iter().filter(|(_, asked)| is_due(asked)).map(|(mac, _)| *mac).collect();
        for mac in due {
            let Some(asked) = self.asked.get_mut(&mac) else { continue };
            if asked.judged.is_some() {
                asked.due = now + GROUP_ASK_AGAIN;
            } else if asked.questions < GROUP_QUESTIONS_MAX {
                self.send_question(call, mac);
            } else {
                self.give_up_asking(call, mac);
            }
        }
    }

    fn give_up_asking(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let Some(asked) = self.asked.remove(&mac) else { return };
        call.out.event(Event::GroupSilent { mac });
        for frame in asked.held {
            call.release(Side::WIRE, Fate::Dropped(DropReason::GroupUnproved), &frame);
        }
    }

    /// An announcement from the wire, unproved.
    pub(super) fn on_announcement(&mut self, call: &mut Call<'_>, header: &Header, frame: &[u8]) -> Verdict {
        let announcement = Announcement::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if header.destination != call.core.settings.mac {
            return Err(DropReason::NotForUs);
        }
        check_tag(call, frame)?;
        let stamp = announcement.head.stamp;
        let nonce_fits = |asked: &&mut Asked| asked.nonce == announcement.nonce && asked.judged.is_none();
        let asked = self.asked.get_mut(&header.source).filter(nonce_fits).ok_or(DropReason::GroupUnasked)?;
        if asked.checks >= CHECKS_MAX {
            return Err(DropReason::GroupBudget);
        }
        asked.checks += 1;
        asked.judged = Some((frame.to_vec(), stamp));
        if !self.judge_announcement(call, header.source, frame) {
            if let Some(asked) = self.asked.get_mut(&header.source) {
                asked.judged = None;
            }
            return Err(DropReason::ControlBusy);
        }
        Ok(Fate::Held)
    }

    fn judge_announcement(&mut self, call: &mut Call<'_>, mac: MacAddress, frame: &[u8]) -> bool {
        let work = CheckAnnouncement { origins: call.origins(), asked: mac, frame: frame.to_vec() };
        call.broadcast_task(Duty::Announcement(mac), Work::CheckAnnouncement(Box::new(work)))
    }

    /// The verdict on an announcement. A bad one leaves the question open.
    pub(super) fn on_judged(
        &mut self,
        call: &mut Call<'_>,
        judges: &mut Judges<'_>,
        mac: MacAddress,
        result: Result<Box<Verified<HostCertificate>>, Refusal>,
    ) {
        let Some(asked) = self.asked.get_mut(&mac) else { return };
        let Some((frame, stamp)) = asked.judged.take() else { return };
        match result {
            Err(refusal) => refuse(call, mac, &frame, refusal),
            Ok(certificate) if call.core.revoked.names(&certificate) => {
                call.release(Side::WIRE, Fate::Dropped(DropReason::BadCertificate), &frame);
            }
            Ok(certificate) => {
                call.release(Side::WIRE, Fate::Consumed, &frame);
                self.believe(call, judges, mac, *certificate, stamp);
            }
        }
    }

    /// The sender is who it says, and lives: what waited of it is judged like any other frame.
    fn believe(
        &mut self,
        call: &mut Call<'_>,
        judges: &mut Judges<'_>,
        mac: MacAddress,
        certificate: Verified<HostCertificate>,
        stamp: Stamp,
    ) {
        let now = call.now.since_boot;
        let Some(asked) = self.asked.remove(&mac) else { return };
        judges.addresses.learn_certificate(call, &certificate);
        call.remember_proof(&certificate);
        call.out.event(Event::GroupSender { name: certificate.name().to_owned(), mac });
        match self.senders.get_mut(mac).filter(|known| known.incarnation == stamp.incarnation) {
            // A recording of an earlier run was why it was asked: nothing of this run is forgotten.
            Some(known) => known.renew(now, certificate),
            None => {
                let from = from_when(&stamp, asked.began.since(self.senders.complete_since));
                let sender = Sender::new(now, certificate, Stamp { time_ms: from, counter: u32::MAX, ..stamp });
                if let Some(replaced) = self.senders.insert(now, mac, sender) {
                    drop_frames_of(call, &replaced, DropReason::GroupUnproved);
                }
            }
        }
        for frame in asked.held {
            let judged = Heard::read(&frame).and_then(|heard| self.judge_group_frame(call, judges, heard));
            let fate = judged.unwrap_or_else(Fate::Dropped);
            if fate != Fate::Held {
                call.release(Side::WIRE, fate, &frame);
            }
        }
    }
}

/// The sender's time from which on its frames are believed, if its clock showed `stamp` no sooner than `remembered` after
/// this host began to remember what it delivers. All that is newer was made since then, so none of it was delivered before.
fn from_when(stamp: &Stamp, remembered: Duration) -> u64 {
    let reach = remembered.min(GROUP_PROOF_REACH).as_millis();
    stamp.time_ms.saturating_sub(u64::try_from(reach).unwrap_or(u64::MAX))
}
