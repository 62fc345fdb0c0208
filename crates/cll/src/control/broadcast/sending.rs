//! What our stack sends to groups: gathered, signed and sent (paper, section 5.5).
//!
//! A quiet host has each frame signed at once and by itself. Above the configured rate frames wait, for a bounded time, and
//! then share a signature; so do those that arrive while a signature is made. A message that does not fit the wire with its
//! proof travels in parts, each a leaf of its own.

use std::collections::VecDeque;
use std::sync::Arc;

use bump::{DropReason, Fate, Generator, Instant, Now, Side};
use shield::{Bucket, ByRecency};
use wire::cll::broadcast::{self, HASH_LEN, Head, LEAVES_MAX, PARTS_MAX, PATH_NODES_MAX, Part, Place, Proof};
use wire::cll::{GroupFrame, Question};
use wire::cll::{NONCE_LEN, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::layer::protocol;
use wire::{EtherType, MacAddress};

use super::super::core::{Call, Verdict, by_recency};
use super::super::machines::Machine;
use super::clock::Clock;
use super::{Duty, check_tag, switched_off};
use crate::job::broadcast::{Batch, Work};
use crate::limits::{
    GROUP_ANSWERS_PER_SECOND, GROUP_ANSWERS_WAITING_MAX, GROUP_BURST, GROUP_BYTES_WAITING_MAX, GROUP_FRAMES_WAITING_MAX,
};
use crate::settings::{Broadcasting, Settings};

/// What is being signed.
enum Under {
    /// These frames of our stack, each in so many parts.
    Frames(Vec<(Vec<u8>, usize)>),
    /// So many announcements.
    Announcements,
}

/// Frames and announcements that wait for a signature.
pub(crate) struct Sending {
    clock: Clock,
    answer_budget: ByRecency,
    /// Bytes of a packet on the wire.
    pub(crate) wire_mtu: u16,
    frames: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The first of `frames` waits until then at most.
    due: Option<Instant>,
    /// Who asked, and the nonce of the question.
    answers: VecDeque<(MacAddress, [u8; NONCE_LEN])>,
    under: Option<Under>,
    /// Frames that are signed by themselves.
    pace: Bucket,
}

impl Sending {
    pub(crate) fn new(random: &mut Generator, now: Now, settings: &Settings) -> Sending {
        let rate = settings.broadcasting.batch_above_per_second;
        Sending {
            clock: Clock::new(random, now),
            answer_budget: by_recency(GROUP_ANSWERS_PER_SECOND, GROUP_ANSWERS_PER_SECOND),
            wire_mtu: settings.wire_mtu,
            frames: VecDeque::new(),
            bytes: 0,
            due: None,
            answers: VecDeque::new(),
            under: None,
            pace: Bucket::new(rate, rate.clamp(1, GROUP_BURST)),
        }
    }

    /// This host has other addresses: it is a new sender to those who know it under its earlier
    /// certificate, and they ask again.
    pub(crate) fn on_other_addresses(&mut self, call: &mut Call<'_>) {
        self.clock = Clock::new(&mut call.core.random, call.now);
    }

    fn has_room(&self, len: usize) -> bool {
        self.frames.len() < GROUP_FRAMES_WAITING_MAX && self.bytes + len <= GROUP_BYTES_WAITING_MAX
    }

    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.answers.is_empty()
    }

    /// Whether the frames that wait are signed now.
    fn is_due(&mut self, now: Instant, settings: &Broadcasting) -> bool {
        let due = self.frames.len() >= usize::from(settings.batch_frames)
            || self.due.is_some_and(|due| due <= now)
            || self.pace.take(now);
        if !due {
            self.due.get_or_insert(now + settings.batch_delay);
        }
        due
    }

    fn take_frames(&mut self, count: usize) -> Vec<Vec<u8>> {
        let taken: Vec<Vec<u8>> = self.frames.drain(..count.min(self.frames.len())).collect();
        self.bytes -= taken.iter().map(Vec::len).sum::<usize>();
        self.due = None;
        taken
    }
}

/// What a message costs beside its payload, and how much of that fits.
#[derive(Clone, Copy)]
struct Room {
    wire_mtu: usize,
    signature_len: usize,
}

impl Room {
    /// Bytes of payload in a group frame whose path has `nodes` hashes.
    fn payload(self, nodes: usize) -> usize {
        let overhead = broadcast::PAYLOAD_AT + nodes * HASH_LEN + 2 + self.signature_len;
        self.wire_mtu.saturating_sub(overhead).max(1)
    }

    fn parts(self, len: usize, nodes: usize) -> usize {
        len.div_ceil(self.payload(nodes)).max(1)
    }

    /// Whether a payload can travel at all, wherever it stands in a batch.
    fn fits(self, len: usize) -> bool {
        self.parts(len, PATH_NODES_MAX) <= usize::from(PARTS_MAX)
    }

    /// How many of these payloads make the next batch, and how long the paths in it may be: as short as all of them allow.
    fn batch(self, payloads: impl Iterator<Item = usize> + Clone) -> (usize, usize) {
        let fitting = |nodes: usize| {
            let leaves = payloads.clone().scan(0, move |leaves, len| {
                *leaves += self.parts(len, nodes);
                Some(*leaves)
            });
            leaves.take_while(|leaves| *leaves <= 1 << nodes).count()
        };
        let all = payloads.clone().count();
        let nodes = (0..=PATH_NODES_MAX).find(|nodes| fitting(*nodes) == all).unwrap_or(PATH_NODES_MAX);
        (fitting(nodes), nodes)
    }

    /// How many announcements with `unproved` bytes in front of the proof share a signature and still fit.
    fn announcements(self, unproved: usize) -> usize {
        let left = self.wire_mtu.saturating_sub(unproved + 2 + self.signature_len);
        1 << (left / HASH_LEN).min(PATH_NODES_MAX)
    }
}

impl Sending {
    /// A frame of our stack to a group: it waits for its signature.
    pub(crate) fn on_frame(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Fate {
        let Ok((header, payload)) = Header::parse(frame) else { return Fate::Dropped(DropReason::Runt) };
        if wants_clear_copy(call, &header, payload) {
            call.make(Side::WIRE, frame);
        }
        if !call.core.settings.broadcasting.carried {
            return call.uncarried(frame, switched_off(header.destination));
        }
        if !self.room(call).fits(payload.len()) {
            return Fate::Dropped(DropReason::TooBig);
        }
        if !self.has_room(frame.len()) {
            return Fate::Dropped(DropReason::GroupQueueFull);
        }
        self.bytes += frame.len();
        self.frames.push_back(frame.to_vec());
        self.sign_next(call);
        Fate::Held
    }

    /// A question of the wire: who asks for our certificate and for what our clock shows. It costs
    /// us a signature at most, often shared with other questions, and only within budgets. The tag
    /// shows that the asker has the site key; its time in it keeps recordings from the budget of
    /// live questions.
    pub(super) fn on_question(&mut self, call: &mut Call<'_>, header: &Header, frame: &[u8]) -> Verdict {
        let now = call.now.since_boot;
        let question = Question::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if header.destination != call.core.settings.mac {
            return Err(DropReason::NotForUs);
        }
        check_tag(call, frame)?;
        let is_proved = call.is_proved(header.source);
        let may_ask = self.answer_budget.take(now, header.source, is_proved, question.time_ms)
            && self.queue_answer(header.source, question.nonce);
        if !may_ask {
            return Err(DropReason::GroupBudget);
        }
        self.sign_next(call);
        Ok(Fate::Answered)
    }

    fn room(&self, call: &Call<'_>) -> Room {
        let signature_len = call.core.settings.identity.handshake_key().signature_len();
        Room { wire_mtu: usize::from(self.wire_mtu), signature_len }
    }

    /// Has what waits signed, if its time has come and nothing is being signed.
    fn sign_next(&mut self, call: &mut Call<'_>) {
        let now = call.now.since_boot;
        if self.under.is_some() {
            return;
        }
        if self.is_empty() {
            self.due = None;
        } else if call.out.jobs.is_full() {
            self.due = Some(now + call.core.settings.broadcasting.batch_delay);
        } else if !self.answers.is_empty() {
            let announcements = self.next_announcements(call);
            self.sign_batch(call, Under::Announcements, announcements);
        } else if self.is_due(now, &call.core.settings.broadcasting) {
            self.drop_oversized(call);
            let (under, frames) = self.next_frames(call);
            if !frames.is_empty() {
                self.sign_batch(call, under, frames);
            }
        }
    }

    fn sign_batch(&mut self, call: &mut Call<'_>, under: Under, frames: Vec<Vec<u8>>) {
        let (identity, incarnation) = (Arc::clone(&call.core.settings.identity), self.clock.incarnation());
        let Some(site_key) = call.core.site_keys.get(None).cloned() else { return };
        let batch = Batch { identity, site_key, incarnation, frames };
        if call.broadcast_task(Duty::Batch, Work::Sign(Box::new(batch))) {
            self.under = Some(under);
        }
    }

    /// Drops what fitted the wire when it came, if the wire has become narrower since.
    fn drop_oversized(&mut self, call: &mut Call<'_>) {
        let room = self.room(call);
        let fits = |frame: &Vec<u8>| room.fits(frame.len() - ETHERNET_LEN);
        if self.frames.iter().all(fits) {
            return;
        }
        let (fitting, oversized): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.frames).into_iter().partition(fits);
        self.frames = fitting;
        for frame in oversized {
            self.bytes -= frame.len();
            call.release(Side::STACK, Fate::Dropped(DropReason::TooBig), &frame);
        }
    }

    fn next_frames(&mut self, call: &Call<'_>) -> (Under, Vec<Vec<u8>>) {
        let room = self.room(call);
        let frames_max = usize::from(call.core.settings.broadcasting.batch_frames).clamp(1, usize::from(LEAVES_MAX));
        let payloads = self.frames.iter().take(frames_max).map(|frame| frame.len() - ETHERNET_LEN);
        let (count, nodes) = room.batch(payloads);
        let taken: Vec<(Vec<u8>, usize)> = self
            .take_frames(count)
            .into_iter()
            .map(|frame| {
                let parts = room.parts(frame.len() - ETHERNET_LEN, nodes);
                (frame, parts)
            })
            .collect();
        let leaves = taken.iter().map(|(_, parts)| *parts).sum::<usize>() as u8;
        let mut unproved = Vec::with_capacity(usize::from(leaves));
        for (frame, parts) in &taken {
            self.write_parts(call, frame, *parts, room.payload(nodes), leaves, &mut unproved);
        }
        (Under::Frames(taken), unproved)
    }

    /// Writes a frame of the stack as `parts` unproved messages behind those that are there.
    fn write_parts(
        &mut self,
        call: &Call<'_>,
        frame: &[u8],
        parts: usize,
        room: usize,
        leaves: u8,
        out: &mut Vec<Vec<u8>>,
    ) {
        let Ok((header, payload)) = Header::parse(frame) else { return };
        let outer = Header { ethertype: call.core.settings.ethertype, ..header };
        for number in 0..parts {
            let from = number * room;
            let message = GroupFrame {
                head: Head {
                    site_tag: [0; SITE_TAG_LEN],
                    stamp: self.clock.next(call.now.since_boot),
                    place: Place { leaf: out.len() as u8, leaves },
                },
                part: Part { number: number as u8, of: parts as u8 },
                ethertype: header.ethertype,
                payload: &payload[from.min(payload.len())..(from + room).min(payload.len())],
                proof: Proof { path: &[], signature: &[] },
            };
            out.push([&outer.emit()[..], &message.emit_unproved()].concat());
        }
    }

    fn next_announcements(&mut self, call: &Call<'_>) -> Vec<Vec<u8>> {
        let certificate = call.core.settings.identity.certificate().der();
        let together = self.room(call).announcements(broadcast::CERTIFICATE_AT + certificate.len());
        let answers: Vec<_> = self.answers.drain(..together.min(self.answers.len())).collect();
        let leaves = answers.len() as u8;
        let announce = |(leaf, (asker, nonce))| {
            let stamp = self.clock.next(call.now.since_boot);
            let place = Place { leaf: leaf as u8, leaves };
            let head = Head { site_tag: [0; SITE_TAG_LEN], stamp, place };
            let proof = Proof { path: &[], signature: &[] };
            let message = broadcast::Announcement { head, nonce, certificate, proof }.emit_unproved();
            let (source, ethertype) = (call.core.settings.mac, call.core.settings.ethertype);
            [&Header { destination: asker, source, ethertype }.emit()[..], &message].concat()
        };
        answers.into_iter().enumerate().map(announce).collect()
    }

    /// The batch under way is signed, or its job was lost.
    pub(super) fn on_signed(&mut self, call: &mut Call<'_>, frames: Option<Vec<Vec<u8>>>) {
        let mut proved = frames.into_iter().flatten();
        match self.under.take() {
            Some(Under::Frames(of_stack)) => {
                for (frame, parts) in of_stack {
                    let fate = self.send_parts(call, proved.by_ref().take(parts));
                    call.release(Side::STACK, fate, &frame);
                }
            }
            // Whoever asked and hears nothing asks again.
            Some(Under::Announcements) => {
                for frame in proved {
                    call.make(Side::WIRE, &frame);
                }
            }
            None => {}
        }
        self.sign_next(call);
    }

    /// Sends all parts of one frame of our stack; none means that nothing was signed.
    fn send_parts(&mut self, call: &mut Call<'_>, parts: impl Iterator<Item = Vec<u8>>) -> Fate {
        let mut fate = Fate::Dropped(DropReason::JobLost);
        for part in parts {
            if call.pass(Side::WIRE, &part) != Fate::Forwarded {
                return Fate::Dropped(DropReason::PortFull);
            }
            call.core.ledger.emitted[Side::WIRE as usize] += 1;
            fate = Fate::Forwarded;
        }
        fate
    }

    /// Enters a question that is to be answered; false when too many wait.
    fn queue_answer(&mut self, asker: MacAddress, nonce: [u8; NONCE_LEN]) -> bool {
        let has_room = self.answers.len() < GROUP_ANSWERS_WAITING_MAX;
        if has_room {
            self.answers.push_back((asker, nonce));
        }
        has_room
    }
}

impl Machine for Sending {
    fn deadline(&self) -> Option<Instant> {
        self.due.filter(|_| self.under.is_none())
    }

    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        self.sign_next(call);
        false
    }
}

/// Legacy hosts, hosts that are not moved to CLL yet, and switches that listen for who is in which
/// group, understand nothing but clear frames. A stack's tag would lead into another network.
fn wants_clear_copy(call: &Call<'_>, header: &Header, payload: &[u8]) -> bool {
    let is_membership = header.ethertype == EtherType::IPV4
        && wire::ipv4::View::new(payload).is_ok_and(|packet| packet.protocol() == protocol::IGMP);
    let Broadcasting { to_legacy, membership_in_clear, carried, .. } = call.core.settings.broadcasting;
    let is_loose = carried && call.core.rules.is_lenient_to_groups() && !header.ethertype.is_vlan();
    is_loose || (to_legacy && !call.core.settings.legacy.is_empty()) || (membership_in_clear && is_membership)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ED25519: Room = Room { wire_mtu: 1500, signature_len: 64 };
    const RSA: Room = Room { wire_mtu: 1500, signature_len: 256 };

    /// By docs/protocol.md, section 21: 45 bytes in front of the payload, 2 and the signature behind it, 32 for each hash.
    #[test]
    fn a_full_packet_of_the_inner_mtu_travels_in_two_parts() {
        assert_eq!((ED25519.payload(0), ED25519.payload(6)), (1389, 1197));
        assert_eq!((RSA.payload(0), RSA.payload(6)), (1197, 1005));
        for room in [ED25519, RSA] {
            assert_eq!(room.batch([1463].into_iter()), (1, 1), "alone: two leaves, one hash");
            assert_eq!(room.parts(1463, PATH_NODES_MAX), 2);
        }
    }

    #[test]
    fn a_batch_takes_the_shortest_paths_that_hold_all_or_as_many_as_fit() {
        assert_eq!(ED25519.batch([100].into_iter()), (1, 0));
        assert_eq!(ED25519.batch([100; 3].into_iter()), (3, 2));
        assert_eq!(ED25519.batch([100; 64].into_iter()), (64, 6));
        assert_eq!(ED25519.batch([1463; 64].into_iter()), (32, 6));
        assert_eq!(ED25519.batch([1380; 2].into_iter()), (2, 2), "with a path each needs two parts");
    }

    #[test]
    fn announcements_share_a_signature_as_far_as_the_wire_allows() {
        assert_eq!(ED25519.announcements(broadcast::CERTIFICATE_AT + 450), 64);
        assert_eq!(RSA.announcements(broadcast::CERTIFICATE_AT + 1100), 4);
    }
}
