//! The site's revocation list and its policy, from peer to peer (docs/protocol.md, sections 24 and
//! 30): who has one says so to every peer, and who has an older one asks for it, piece by piece.
//! Both are a *list* here, and there is a machine for each.
//!
//! Any enrolled host may offer anything, so one list of each kind is fetched at a time, its length
//! is bounded, it is fetched in a bounded time, and it counts for nothing before the program around
//! the link layer has checked the authority's signature under it. A peer whose list came to nothing
//! is not asked again for a while.

use std::collections::BTreeMap;

use bump::{DropReason, Instant, time};
use identity::limits::{MAX_POLICY_LEN, MAX_REVOCATION_LIST_LEN};
use shield::Bucket;
use wire::MacAddress;
use wire::cll::revocation::{ListName, Message, Subject, piece_len};

use super::core::{Call, Core};
use super::machines::Machine;
use super::peers::Peers;
use crate::event::Effect;
use crate::limits::{
    LIST_ASK_EVERY, LIST_ASKED_MAX, LIST_FETCH_MAX, LIST_PIECES_PER_SECOND, LIST_SUSPECT_FOR, LIST_SUSPECTS_MAX,
};

/// A list that is being fetched.
struct Fetch {
    from: MacAddress,
    list: ListName,
    bytes: Vec<u8>,
    ends: Instant,
    ask_at: Instant,
    asked: u8,
}

/// What control knows about lists of one kind.
pub(super) struct Lists {
    subject: Subject,
    fetch: Option<Fetch>,
    /// Who gave, or did not finish to give, a list that is not in force: which, and until when he is not asked.
    suspects: BTreeMap<MacAddress, (u64, Instant)>,
    pieces: Bucket,
}

impl Lists {
    pub(super) fn new(subject: Subject) -> Lists {
        let pieces = Bucket::new(LIST_PIECES_PER_SECOND, LIST_PIECES_PER_SECOND);
        Lists { subject, fetch: None, suspects: BTreeMap::new(), pieces }
    }

    fn suspect(&mut self, now: Instant, mac: MacAddress, number: u64) {
        self.suspects.retain(|_, (_, until)| *until > now);
        if self.suspects.len() < LIST_SUSPECTS_MAX {
            self.suspects.insert(mac, (number, now + LIST_SUSPECT_FOR));
        }
    }

    fn is_suspect(&self, now: Instant, mac: MacAddress) -> bool {
        self.suspects.get(&mac).is_some_and(|(_, until)| *until > now)
    }

    /// A list is in force: whoever gave it, or an older one, did well.
    fn settle(&mut self, number: u64) {
        self.suspects.retain(|_, (given, _)| *given > number);
        self.fetch.take_if(|fetch| fetch.list.number <= number);
    }

    /// Why an offer, or a question about one, cannot be meant.
    fn bad(&self) -> DropReason {
        match self.subject {
            Subject::Revocations => DropReason::RevocationList,
            Subject::Policy => DropReason::SitePolicy,
        }
    }

    fn longest(&self) -> usize {
        match self.subject {
            Subject::Revocations => MAX_REVOCATION_LIST_LEN,
            Subject::Policy => MAX_POLICY_LEN,
        }
    }
}

impl Lists {
    /// What is in force here, and its bytes.
    fn own_list<'a>(&self, core: &'a Core) -> Option<(ListName, &'a [u8])> {
        let (number, bytes) = match self.subject {
            Subject::Revocations => core.revoked.list().map(|list| (list.issued_unix(), list.der()))?,
            Subject::Policy => core.site_policy.as_ref().map(|policy| (policy.version(), policy.bytes()))?,
        };
        Some((ListName { subject: self.subject, number, len: u32::try_from(bytes.len()).ok()? }, bytes))
    }

    /// Another list is in force: tells every peer.
    pub(super) fn offer_to_all(&mut self, call: &mut Call<'_>, peers: &Peers) {
        let Some((list, _)) = self.own_list(call.core) else { return };
        self.settle(list.number);
        let peers: Vec<MacAddress> =
            peers.iter().filter(|(_, peer)| peer.current.is_some()).map(|(mac, _)| *mac).collect();
        peers.into_iter().for_each(|mac| Self::send_list(call, mac, &Message::Offer(list)));
    }

    /// Tells a peer which list is in force here.
    pub(super) fn offer(&self, call: &mut Call<'_>, mac: MacAddress) {
        if let Some((list, _)) = self.own_list(call.core) {
            Self::send_list(call, mac, &Message::Offer(list));
        }
    }

    fn send_list(call: &mut Call<'_>, mac: MacAddress, message: &Message<'_>) {
        call.send_sealed(mac, &message.emit());
    }

    /// A message of a peer about a list of this kind.
    pub(super) fn on_message(
        &mut self,
        call: &mut Call<'_>,
        mac: MacAddress,
        message: &Message<'_>,
    ) -> Result<(), DropReason> {
        match *message {
            Message::Offer(list) => self.take_offer(call, mac, list),
            Message::Question(list, offset) => self.give_piece(call, mac, list, offset),
            Message::Piece(list, offset, piece) => self.take_piece(call, mac, (list, offset), piece),
        }
    }

    /// A peer has a list. Whether it is worth asking for says its number alone, which the peer may
    /// have made up.
    fn take_offer(&mut self, call: &mut Call<'_>, mac: MacAddress, list: ListName) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        let is_newer = self.own_list(call.core).is_none_or(|(own, _)| own.number < list.number);
        let is_busy = self.fetch.as_ref().is_some_and(|fetch| fetch.ends > now);
        if list.len == 0 || list.len as usize > self.longest() {
            return Err(self.bad());
        }
        if !is_newer || is_busy || self.is_suspect(now, mac) {
            return Ok(());
        }
        let ends = now + LIST_FETCH_MAX;
        self.fetch = Some(Fetch { from: mac, list, bytes: Vec::new(), ends, ask_at: now, asked: 0 });
        self.ask_for_list(call);
        Ok(())
    }

    /// Asks for the next piece, or again for the last one; gives up who does not answer.
    fn ask_for_list(&mut self, call: &mut Call<'_>) {
        let now = call.now.since_boot;
        let Some(fetch) = self.fetch.as_mut().filter(|fetch| fetch.ask_at <= now || fetch.ends <= now) else {
            return;
        };
        if fetch.asked >= LIST_ASKED_MAX || fetch.ends <= now {
            let (mac, number) = (fetch.from, fetch.list.number);
            self.fetch = None;
            return self.suspect(now, mac, number);
        }
        fetch.asked += 1;
        fetch.ask_at = now + LIST_ASK_EVERY;
        let question = Message::Question(fetch.list, fetch.bytes.len() as u32);
        Self::send_list(call, fetch.from, &question);
    }

    fn give_piece(
        &mut self,
        call: &mut Call<'_>,
        mac: MacAddress,
        list: ListName,
        offset: u32,
    ) -> Result<(), DropReason> {
        let own = self.own_list(call.core).filter(|(own, _)| *own == list);
        // Whoever asks for a list that is not in force any more has been told of the newer one.
        let Some((_, bytes)) = own else { return Ok(()) };
        let start = offset as usize;
        let piece = bytes.get(start..start + piece_len(list, offset)).ok_or(self.bad())?;
        let message = Message::Piece(list, offset, piece).emit();
        if !self.pieces.take(call.now.since_boot) {
            return Err(DropReason::HandshakeBudget);
        }
        call.send_sealed(mac, &message);
        Ok(())
    }

    fn take_piece(
        &mut self,
        call: &mut Call<'_>,
        mac: MacAddress,
        (list, offset): (ListName, u32),
        piece: &[u8],
    ) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        let awaited = |fetch: &&mut Fetch| {
            fetch.from == mac && fetch.list == list && fetch.bytes.len() == offset as usize && fetch.ends > now
        };
        let fetch = self.fetch.as_mut().filter(awaited).ok_or(DropReason::HandshakeUnasked)?;
        fetch.bytes.extend_from_slice(piece);
        (fetch.asked, fetch.ask_at) = (0, now);
        if fetch.bytes.len() < list.len as usize {
            self.ask_for_list(call);
            return Ok(());
        }
        let bytes = std::mem::take(&mut fetch.bytes);
        self.fetch = None;
        // Until it is in force, which takes back this word.
        self.suspect(now, mac, list.number);
        call.out.effect(match self.subject {
            Subject::Revocations => Effect::CheckRevocationList { from: mac, der: bytes },
            Subject::Policy => Effect::CheckPolicy { from: mac, bytes },
        });
        Ok(())
    }
}

impl Machine for Lists {
    fn deadline(&self) -> Option<Instant> {
        self.fetch.as_ref().and_then(|fetch| time::earlier(Some(fetch.ask_at), Some(fetch.ends)))
    }

    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        self.ask_for_list(call);
        false
    }
}
