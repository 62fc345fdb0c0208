//! The site's revocation list, from peer to peer (docs/protocol.md, section 24): who has a list says so to every peer, and who has an
//! older one asks for it, piece by piece.
//!
//! Any enrolled host may offer anything, so one list is fetched at a time, its length is bounded, it is fetched in a bounded
//! time, and it counts for nothing before the program around the link layer has checked the authority's signature under it. A
//! peer whose list came to nothing is not asked again for a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::{DropReason, Fate, Instant, time};
use identity::limits::MAX_REVOCATION_LIST_LEN;
use shield::Bucket;
use wire::MacAddress;
use wire::cll::revocation::{ListName, Message, piece_len};

use super::core::Call;
use super::machines::Machine;
use super::peers::Peers;
use super::rollover::Sealed;
use crate::event::Effect;
use crate::limits::{
    LIST_ASK_EVERY, LIST_ASKED_MAX, LIST_FETCH_MAX, LIST_PIECES_PER_SECOND, LIST_SUSPECT_FOR, LIST_SUSPECTS_MAX,
};
use crate::message::OrderKind;

/// A list that is being fetched.
struct Fetch {
    from: MacAddress,
    list: ListName,
    bytes: Vec<u8>,
    ends: Instant,
    ask_at: Instant,
    asked: u8,
}

/// What control knows about lists.
pub(super) struct Lists {
    fetch: Option<Fetch>,
    /// Who gave, or did not finish to give, a list that is not in force: which, and until when he is not asked.
    suspects: BTreeMap<MacAddress, (u64, Instant)>,
    pieces: Bucket,
}

impl Default for Lists {
    fn default() -> Lists {
        let pieces = Bucket::new(LIST_PIECES_PER_SECOND, LIST_PIECES_PER_SECOND);
        Lists { fetch: None, suspects: BTreeMap::new(), pieces }
    }
}

impl Lists {
    fn suspect(&mut self, now: Instant, mac: MacAddress, issued_unix: u64) {
        self.suspects.retain(|_, (_, until)| *until > now);
        if self.suspects.len() < LIST_SUSPECTS_MAX {
            self.suspects.insert(mac, (issued_unix, now + LIST_SUSPECT_FOR));
        }
    }

    fn is_suspect(&self, now: Instant, mac: MacAddress) -> bool {
        self.suspects.get(&mac).is_some_and(|(_, until)| *until > now)
    }

    /// A list is in force: whoever gave it, or an older one, did well.
    fn settle(&mut self, issued_unix: u64) {
        self.suspects.retain(|_, (given, _)| *given > issued_unix);
        self.fetch.take_if(|fetch| fetch.list.issued_unix <= issued_unix);
    }
}

impl Lists {
    fn own_list(call: &Call<'_>) -> Option<ListName> {
        let list = call.core.revoked.list()?;
        Some(ListName { issued_unix: list.issued_unix(), len: u32::try_from(list.der().len()).ok()? })
    }

    /// Another list is in force: tells every peer.
    pub(super) fn offer_to_all(&mut self, call: &mut Call<'_>, peers: &Peers) {
        let Some(list) = Self::own_list(call) else { return };
        self.settle(list.issued_unix);
        let peers: Vec<MacAddress> =
            peers.iter().filter(|(_, peer)| peer.current.is_some()).map(|(mac, _)| *mac).collect();
        peers.into_iter().for_each(|mac| Self::send_list(call, mac, &Message::Offer(list)));
    }

    /// Tells a peer which list is in force here.
    pub(super) fn offer(call: &mut Call<'_>, mac: MacAddress) {
        if let Some(list) = Self::own_list(call) {
            Self::send_list(call, mac, &Message::Offer(list));
        }
    }

    fn send_list(call: &mut Call<'_>, mac: MacAddress, message: &Message<'_>) {
        call.order(0, OrderKind::Control(mac, message.emit()));
    }

    /// The fate of a sealed frame with a message about a list.
    pub(super) fn on_message(&mut self, call: &mut Call<'_>, peers: &Peers, sealed: &Sealed<'_>) -> Fate {
        let Some(mac) = peers.peer_of(sealed.association) else {
            return Fate::Dropped(DropReason::HandshakeUnasked);
        };
        let outcome = match Message::parse(sealed.message) {
            Ok(Message::Offer(list)) => self.take_offer(call, mac, list),
            Ok(Message::Question(list, offset)) => self.give_piece(call, mac, list, offset),
            Ok(Message::Piece(list, offset, piece)) => self.take_piece(call, mac, (list, offset), piece),
            Err(_) => Err(DropReason::InnerMalformed),
        };
        outcome.map_or_else(Fate::Dropped, |()| Fate::Consumed)
    }

    /// A peer has a list. Whether it is worth asking for says its date alone, which the peer may have made up.
    fn take_offer(&mut self, call: &mut Call<'_>, mac: MacAddress, list: ListName) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        let is_newer = Self::own_list(call).is_none_or(|own| own.issued_unix < list.issued_unix);
        let is_busy = self.fetch.as_ref().is_some_and(|fetch| fetch.ends > now);
        if list.len == 0 || list.len as usize > MAX_REVOCATION_LIST_LEN {
            return Err(DropReason::RevocationList);
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
            let (mac, issued_unix) = (fetch.from, fetch.list.issued_unix);
            self.fetch = None;
            return self.suspect(now, mac, issued_unix);
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
        let revoked = Arc::clone(&call.core.revoked);
        let own = Self::own_list(call).filter(|own| *own == list).and_then(|_| revoked.list());
        // Whoever asks for a list that is not in force any more has been told of the newer one.
        let Some(own) = own else { return Ok(()) };
        let start = offset as usize;
        let piece = own.der().get(start..start + piece_len(list, offset)).ok_or(DropReason::RevocationList)?;
        if !self.pieces.take(call.now.since_boot) {
            return Err(DropReason::HandshakeBudget);
        }
        Self::send_list(call, mac, &Message::Piece(list, offset, piece));
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
        let der = std::mem::take(&mut fetch.bytes);
        self.fetch = None;
        // Until it is in force, which takes back this word.
        self.suspect(now, mac, list.issued_unix);
        call.out.effect(Effect::CheckRevocationList { from: mac, der });
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
