//! DHCP in clear, where the mode of migration or the legacy list lets it pass: servers and clients
//! move one by one.
//!
//! A server answers as it was asked. A client asks under its key alone at first; where the mode
//! lets everything pass and no server of the site has answered, it asks again in clear, so a proof
//! comes first where there is one.

use std::net::Ipv4Addr;

use bump::{DropReason, Side};
use wire::MacAddress;
use wire::dhcp::{MessageType, Operation, View};
use wire::ethernet::Header;

use super::core::{Call, Verdict};
use super::dhcp::Dhcp;
use super::machines::Wish;
use crate::glimpse::Glimpse;
use crate::migration::{Claim, Migration};

/// What a client has without a proof.
#[derive(Debug, Default)]
pub(super) struct Unproved {
    /// Questions of our program since a server of the site answered one.
    unanswered: u32,
    /// The address that a server gave in clear.
    address: Option<Ipv4Addr>,
}

impl Unproved {
    /// Whether the next question leaves in clear as well, and answers in clear count.
    fn asks_in_clear(&self) -> bool {
        self.unanswered > 1
    }

    /// A server of the site has answered.
    pub(super) fn answered(&mut self) {
        self.unanswered = 0;
    }
}

impl Dhcp {
    /// The address that this host has by a lease in clear.
    pub(super) fn unproved_address(&self) -> Option<Ipv4Addr> {
        self.unproved.address
    }

    /// A question of our program leaves under its key; in clear as well if no server of the site
    /// answers.
    pub(super) fn ask_in_clear(&mut self, call: &mut Call<'_>, frame: &[u8]) {
        self.unproved.unanswered = self.unproved.unanswered.saturating_add(1);
        let may_ask = call.core.rules.is_lenient_to_groups() && self.unproved.asks_in_clear();
        if may_ask && call.make(Side::WIRE, frame) {
            call.core.ledger.excuse(DropReason::Dhcp);
        }
    }

    /// Our server program answers who asked in clear: a host on the legacy list with the address
    /// that it has there, others as the mode says.
    pub(super) fn answer_in_clear(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Verdict {
        let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
        let client = message.chaddr();
        let legacy = call.core.settings.legacy_by_mac(client);
        let is_listed = legacy.is_some_and(|one| message.yiaddr() == one.ip || message.kind() == MessageType::Nak);
        if !is_listed {
            if !call.core.rules.is_lenient_towards(client) {
                return Err(DropReason::DhcpUnasked);
            }
            call.core.ledger.excuse(DropReason::DhcpUnasked);
        }
        self.forward_dhcp(call, Side::WIRE, frame)
    }

    /// The fate of a DHCP message that came in clear from a host towards which the mode is lenient.
    pub(super) fn on_plain(&mut self, call: &mut Call<'_>, header: &Header, frame: &[u8]) -> Verdict {
        if !call.core.rules.is_lenient_towards(header.source) {
            return Err(DropReason::Dhcp);
        }
        let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
        let spoken_for = match message.operation() {
            Operation::Request => self.claimed_by_question(call, header, &message),
            Operation::Reply => self.claimed_by_answer(call, header, &message)?,
        };
        if let Some(owner) = spoken_for {
            call.wishes.push_back(Wish::TellDowngrade { mac: header.source, owner });
            return Err(DropReason::Downgrade);
        }
        call.note_plain(header.source, DropReason::Dhcp, Glimpse::of(frame));
        self.forward_dhcp(call, Side::STACK, frame)
    }

    /// The host with a proved lease for which a question in clear speaks, where such a host never
    /// falls back.
    fn claimed_by_question(&self, call: &Call<'_>, header: &Header, message: &View<'_>) -> Option<MacAddress> {
        let server = self.server.as_ref()?;
        let claims = [header.source, message.chaddr()];
        let claimed = server.leases(call.now.since_boot).map(|lease| lease.mac).find(|mac| claims.contains(mac))?;
        (call.core.rules.towards(claimed) != Migration::Observe).then_some(claimed)
    }

    /// An answer in clear counts if our program has asked in clear. Gives the proved host for which
    /// it speaks.
    fn claimed_by_answer(
        &mut self,
        call: &Call<'_>,
        header: &Header,
        message: &View<'_>,
    ) -> Result<Option<MacAddress>, DropReason> {
        if self.client.is_none() {
            // It is for other hosts, and their programs.
            return Ok(None);
        }
        if message.chaddr() != call.core.settings.mac || !self.unproved.asks_in_clear() {
            return Err(DropReason::Dhcp);
        }
        let claim = call.core.rules.claim_of_address(header.source, Some(message.source().into()));
        if let Claim::Refused(owner) = claim {
            return Ok(Some(owner));
        }
        match message.kind() {
            MessageType::Ack => self.unproved.address = Some(message.yiaddr()),
            MessageType::Nak => self.unproved.address = None,
            _ => {}
        }
        Ok(None)
    }
}
