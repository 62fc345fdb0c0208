//! Resumptions that we open: a handshake whose first request carries a ticket in the place of a signature.

use identity::agreement::KeyPair;
use wire::cll::resumption::{BINDER_LEN, Kind, Resumption};
use wire::cll::{COOKIE_LEN, SITE_TAG_LEN};
use wire::ethernet::HEADER_LEN as ETHERNET_LEN;

use crate::control::core::Call;
use crate::control::initiator::{OpeningId, Openings};
use crate::job::{FinishResumption, JobKind, bind_request};
use crate::ticket::HeldTicket;

impl Openings {
    /// Sends the request with the ticket, to its issuer alone: nobody else can read it.
    pub(crate) fn ask_to_resume(&mut self, call: &mut Call<'_>, id: OpeningId, held: &HeldTicket, key_pair: &KeyPair) {
        let Some(opening) = self.by_id.get(&id) else { return };
        let unbound = Resumption {
            kind: Kind::Request(&held.ticket),
            site_tag: [0; SITE_TAG_LEN],
            resolution: opening.question,
            timestamp_ms: call.now.wall.map_or(0, |wall| wall.unix_ms),
            nonce: opening.nonce,
            offer: call.offer(opening.receiver_index),
            key_share: key_pair.public(),
            binder: [0; BINDER_LEN],
        }
        .emit_unbound();
        let message = bind_request(&held.secret, unbound);
        self.send_request(call, id, held.mac(), message);
    }

    /// Nobody answered the ticket in time: the handshake takes over, with a nonce and a key pair of its own. The ticket is
    /// kept, for its issuer may only be away.
    pub(crate) fn ask_without_ticket(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let nonce = call.core.random.bytes();
        let Some(opening) = self.by_id.get_mut(&id) else { return };
        opening.resuming = None;
        opening.nonce = nonce;
        opening.cookie = [0; COOKIE_LEN];
        opening.key_pair = None;
        opening.message.clear();
        self.sign(call, id);
    }

    /// What judges the reply in `frame`, if it is a ticket that was answered.
    pub(crate) fn resumption_verdict(&self, call: &Call<'_>, id: OpeningId, frame: &[u8]) -> Option<JobKind> {
        let opening = self.by_id.get(&id)?;
        Some(JobKind::FinishResumption(Box::new(FinishResumption {
            origins: call.origins(),
            held: opening.resuming.clone()?,
            request: opening.message.clone(),
            reply: frame[ETHERNET_LEN..].to_vec(),
            key_pair: opening.key_pair.clone()?,
            asked_ip: opening.asked_ip(),
        })))
    }
}
