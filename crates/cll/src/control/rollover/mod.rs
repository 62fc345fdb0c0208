//! Rollover (paper, section 5.4): the keys of an association are replaced through the association itself.
//!
//! - `asking.rs`: this host asks; `answering.rs`: the peer does. `kem.rs`: the same with ML-KEM in
//!   the place of a signed key share, before any payload moves under an association that is to have
//!   it, and once after each signature.
//!
//! There is one rollover at a time with each peer. All three messages travel sealed: request and reply under the old keys,
//! the acknowledgement as the first frame under the new ones. Data goes on under the old keys until the new ones are
//! confirmed. Each side repeats what it waits for by its own timer. If nobody answers at all, a handshake beside the
//! association takes over.

mod answering;
mod asking;
mod kem;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, Side, time};
use wire::MacAddress;
use wire::cll::rollover::Kind;
use wire::cll::{NONCE_LEN, Rollover};

use super::core::Call;
use super::machines::{Machine, Wish};
use super::peers::{Association, Peers};
use crate::event::Event;
use crate::job::Refusal;
use crate::limits::{HANDSHAKE_GIVE_UP, PEERS_MAX, ROLLOVER_INTERVAL_MIN, ROLLOVERS_OPEN_MAX};
use crate::message::AssociationId;
use answering::Answering;
use asking::Asking;
use kem::KemStock;

/// Names a rollover for as long as the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RolloverId {
    mac: MacAddress,
    number: u64,
}

/// What makes the new keys of a rollover other than the old ones, and proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Means {
    /// A key agreement that both sides sign.
    Signature,
    /// A secret of ML-KEM; the seal is its proof.
    Kem,
}

impl Means {
    fn of(message: &Rollover<'_>) -> Means {
        if matches!(message, Rollover::Kem(_)) { Means::Kem } else { Means::Signature }
    }
}

/// What counts of an association when another replaces it.
#[derive(Clone, Copy, Debug)]
struct Before {
    rollovers: u32,
    is_bare: bool,
    expires: Instant,
}

impl Before {
    fn of(association: &Association) -> Before {
        let (rollovers, expires) = (association.rollovers, association.term.expires);
        Before { rollovers, is_bare: association.is_bare(), expires }
    }
}

/// How many rollovers lead to the new association, how long it lives, and whether it is no news.
/// Without a signature nobody lives longer than with the last one.
fn heritage(now: Instant, before: Before, means: Means, agreed: Duration) -> (u32, Duration, bool) {
    match means {
        Means::Signature => (before.rollovers.saturating_add(1), agreed, false),
        Means::Kem if before.is_bare => (before.rollovers, agreed, false),
        Means::Kem => (before.rollovers, agreed.min(before.expires.since(now)), true),
    }
}

/// What this host does in a rollover.
#[derive(Debug)]
enum Part {
    Asking(Asking),
    Answering(Answering),
    /// It is over, and remembered so that a late copy of its messages is recognised.
    Done,
}

/// The last rollover with a peer.
#[derive(Debug)]
struct Last {
    number: u64,
    /// The association that it replaces.
    of: AssociationId,
    nonce: [u8; NONCE_LEN],
    means: Means,
    started: Instant,
    part: Part,
}

impl Last {
    fn ends(&self) -> Instant {
        self.started + HANDSHAKE_GIVE_UP
    }

    fn next_send(&self) -> Option<Instant> {
        match &self.part {
            Part::Asking(asking) => asking.next_send(),
            Part::Answering(answering) => answering.next_send(),
            Part::Done => None,
        }
    }
}

/// The last rollover with each peer, for [`HANDSHAKE_GIVE_UP`] after it began.
#[derive(Debug, Default)]
pub(super) struct Rollovers {
    by_mac: BTreeMap<MacAddress, Last>,
    next_number: u64,
    stock: KemStock,
}

impl Rollovers {
    /// Rollovers that are under way.
    pub(super) fn open(&self) -> usize {
        self.by_mac.values().filter(|last| !matches!(last.part, Part::Done)).count()
    }

    fn by_id(&mut self, id: RolloverId) -> Option<&mut Last> {
        self.by_mac.get_mut(&id.mac).filter(|last| last.number == id.number)
    }

    /// Whether another may begin in `of` now. Where payload waits for it, the first in this
    /// association does not wait for the one before, and there is one for each peer.
    fn has_room(&self, now: Instant, of: &Association) -> bool {
        let is_first = |last: &Last| of.is_bare() && last.of != of.id;
        let has_rested = |last: &Last| now.since(last.started) >= ROLLOVER_INTERVAL_MIN;
        let last = self.by_mac.get(&of.certificate.mac());
        let room = if of.is_bare() { PEERS_MAX } else { ROLLOVERS_OPEN_MAX };
        last.is_none_or(|last| is_first(last) || has_rested(last)) && self.by_mac.len() < room
    }

    /// Begins one in the place of the last with that peer.
    fn begin(
        &mut self,
        now: Instant,
        of: &Association,
        nonce: [u8; NONCE_LEN],
        means: Means,
        part: Part,
    ) -> RolloverId {
        self.next_number += 1;
        let id = RolloverId { mac: of.certificate.mac(), number: self.next_number };
        self.by_mac.insert(id.mac, Last { number: id.number, of: of.id, nonce, means, started: now, part });
        id
    }
}

/// What the sealed frame of a rollover message says beside the message.
pub(super) struct Sealed<'a> {
    /// The association under which it was opened.
    pub(super) association: AssociationId,
    /// The whole sealed frame, for the books.
    pub(super) frame: &'a [u8],
    /// The message.
    pub(super) message: &'a [u8],
}

impl Rollovers {
    /// The fate of a frame with a rollover message. `Held` means that a job decides.
    pub(super) fn on_message(&mut self, call: &mut Call<'_>, peers: &Peers, sealed: &Sealed<'_>) -> Fate {
        let outcome = match Rollover::parse(sealed.message) {
            Ok(Rollover::Acknowledgement(nonce)) => self.take_acknowledgement(peers, sealed, &nonce),
            Ok(message) if message.kind() == Some(Kind::Request) => self.answer_rollover(call, peers, sealed, &message),
            Ok(message) => self.take_rollover_reply(call, peers, sealed, &message),
            Err(_) => Err(DropReason::InnerMalformed),
        };
        outcome.unwrap_or_else(Fate::Dropped)
    }

    fn repeat_rollover(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let now = call.now.since_boot;
        let Some(last) = self.by_mac.get_mut(&mac) else { return };
        let id = RolloverId { mac, number: last.number };
        let message = match &mut last.part {
            Part::Asking(asking) => asking.repeat(now),
            Part::Answering(answering) => answering.repeat(now),
            Part::Done => return,
        };
        match message {
            Some(message) => call.send_sealed(mac, &message),
            None => self.sign_rollover(call, id),
        }
    }

    /// Forgets a rollover whose time is over. One that this host wanted and nobody answered becomes a handshake.
    fn give_up_rollover(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let Some(last) = self.by_mac.remove(&mac) else { return };
        // Where payload waits for ML-KEM the association itself is over by now; where it does not,
        // the old secrets are as good.
        let of = last.of;
        let was_asking = matches!(last.part, Part::Asking(_)) && last.means == Means::Signature;
        discard(call, last, DropReason::JobLost);
        if was_asking {
            call.wishes.push_back(Wish::HandshakeInstead(mac, of));
        }
    }

    /// An association with `mac` came into use: the rollover that made it is done, and any other is pointless.
    pub(super) fn on_established(&mut self, call: &mut Call<'_>, mac: MacAddress, established: AssociationId) {
        let Some(last) = self.by_mac.get_mut(&mac) else { return };
        match &last.part {
            Part::Answering(answering) if answering.made() == Some(established) => last.part = Part::Done,
            Part::Done => {}
            Part::Asking(_) | Part::Answering(_) => {
                if let Some(last) = self.by_mac.remove(&mac) {
                    discard(call, last, DropReason::HandshakeUnasked);
                }
            }
        }
    }

    /// A job for a rollover did not come back.
    pub(super) fn on_job_lost(&mut self, call: &mut Call<'_>, id: RolloverId) {
        let Some(last) = self.by_id(id) else { return };
        match &mut last.part {
            Part::Asking(asking) => {
                if let Some(frame) = asking.lose_job(call.now.since_boot) {
                    let fate = Fate::Dropped(DropReason::JobLost);
                    call.release(Side::WIRE, fate, &frame);
                }
            }
            // The peer repeats its request.
            Part::Answering(_) => {
                if let Some(last) = self.by_mac.remove(&id.mac) {
                    discard(call, last, DropReason::JobLost);
                }
            }
            Part::Done => {}
        }
    }
}

/// Gives back what a rollover held, and their fate to frames that waited for its verdict.
fn discard(call: &mut Call<'_>, last: Last, reason: DropReason) {
    let (index, frame) = match last.part {
        Part::Asking(asking) => asking.into_rest(),
        Part::Answering(answering) => answering.into_rest(),
        Part::Done => (None, None),
    };
    index.into_iter().for_each(|index| call.return_index(index));
    if let Some(frame) = frame {
        call.release(Side::WIRE, Fate::Dropped(reason), &frame);
    }
}

/// Names the refusal of a rollover message to the operator and in the books.
fn refuse(call: &mut Call<'_>, peers: &Peers, mac: MacAddress, frame: &[u8], refusal: Refusal) {
    let Refusal { reason, detail } = refusal;
    let current = peers.current_by_mac(mac);
    if let Some(current) = current {
        let ip = current.certificate.names().all_addresses().first().copied();
        let ip = ip.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        call.out.event(Event::Refused { mac, ip, reason, detail: format!("rollover: {detail}") });
    }
    call.release(Side::WIRE, Fate::Dropped(reason), frame);
}

impl Machine for Rollovers {
    fn deadline(&self) -> Option<Instant> {
        self.by_mac.values().filter_map(|last| time::earlier(last.next_send(), Some(last.ends()))).min()
    }

    /// Repeats what waits for an answer, or ends what waited for too long.
    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        let now = call.now.since_boot;
        let is_due = |last: &Last| last.ends() <= now || last.next_send().is_some_and(|at| at <= now);
        let Some((mac, last)) = self.by_mac.iter().find(|(_, last)| is_due(last)) else { return false };
        let (mac, is_over) = (*mac, last.ends() <= now);
        if is_over {
            self.give_up_rollover(call, mac)
        } else {
            self.repeat_rollover(call, mac)
        }
        true
    }
}
