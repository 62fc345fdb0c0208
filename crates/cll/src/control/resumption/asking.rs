//! Resumptions that we open: a handshake whose first request carries a ticket in the place of a signature.

use std::sync::Arc;

use bump::{DropReason, Fate};
use identity::agreement::KeyPair;
use wire::cll::resumption::{BINDER_LEN, Kind, Resumption};
use wire::cll::{COOKIE_LEN, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use crate::control::initiator::{OpeningId, State};
use crate::control::{Call, Control, Task};
use crate::job::{FinishResumption, JobKind, Origins, bind_request};
use crate::ticket::HeldTicket;

impl Control {
    /// What a judgement needs beside the messages.
    pub(super) fn origins(&self, call: &Call<'_>) -> Origins {
        let time = self.certificate_time(call.now);
        Origins { settings: Arc::clone(&self.settings), revoked: Arc::clone(&self.revoked), time }
    }

    /// Sends the request with the ticket, to its issuer alone: nobody else can read it.
    pub(in crate::control) fn ask_to_resume(
        &mut self,
        call: &mut Call<'_>,
        id: OpeningId,
        held: &HeldTicket,
        key_pair: &KeyPair,
    ) {
        let Some(opening) = self.openings.by_id.get(&id) else { return };
        let unbound = Resumption {
            kind: Kind::Request(&held.ticket),
            site_tag: [0; SITE_TAG_LEN],
            resolution: opening.question,
            timestamp_ms: call.now.wall.map_or(0, |wall| wall.unix_ms),
            nonce: opening.nonce,
            offer: self.offer(opening.receiver_index),
            key_share: key_pair.public(),
            binder: [0; BINDER_LEN],
        }
        .emit_unbound();
        let message = bind_request(&held.secret, unbound);
        self.send_request(call, id, held.mac(), message);
    }

    /// Nobody answered the ticket in time: the handshake takes over, with a nonce and a key pair of its own. The ticket is
    /// kept, for its issuer may only be away.
    pub(in crate::control) fn ask_without_ticket(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let nonce = self.random.bytes();
        let Some(opening) = self.openings.by_id.get_mut(&id) else { return };
        opening.resuming = None;
        opening.nonce = nonce;
        opening.cookie = [0; COOKIE_LEN];
        opening.key_pair = None;
        opening.message.clear();
        self.sign(call, id);
    }

    /// A reply from the wire, unproved.
    pub(in crate::control) fn take_resumption_reply(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        frame: &[u8],
    ) -> Result<Fate, DropReason> {
        let reply = Resumption::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if reply.resolution.sender_mac() != header.source || header.destination != self.settings.mac {
            return Err(DropReason::HandshakeSource);
        }
        let id = self.openings.by_nonce(&reply.nonce).ok_or(DropReason::HandshakeUnasked)?;
        if !self.is_own_site(frame, &reply.site_tag) {
            return Err(DropReason::HandshakeSiteMac);
        }
        let finish = self.await_resumption_verdict(call, id, frame).ok_or(DropReason::HandshakeUnasked)?;
        if !self.task(call.out, Task::Opening(id), JobKind::FinishResumption(Box::new(finish))) {
            self.reopen(call, id);
            return Err(DropReason::ControlBusy);
        }
        Ok(Fate::Held)
    }

    /// Has the opening wait for the verdict on the reply in `frame`, if it waits for one to its ticket.
    fn await_resumption_verdict(&mut self, call: &Call<'_>, id: OpeningId, frame: &[u8]) -> Option<FinishResumption> {
        let origins = self.origins(call);
        let opening = self.openings.by_id.get_mut(&id)?;
        let State::Reply { interval, .. } = opening.state else { return None };
        let finish = FinishResumption {
            origins,
            held: opening.resuming.clone()?,
            request: opening.message.clone(),
            reply: frame[ETHERNET_LEN..].to_vec(),
            key_pair: opening.key_pair.clone()?,
            asked_ip: opening.asked_ip(),
        };
        opening.state = State::Verdict { reply_frame: frame.to_vec(), interval };
        Some(finish)
    }
}
