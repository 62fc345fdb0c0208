//! Tickets given, taken, held and spent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Instant};
use identity::certificate::HostCertificate;
use identity::ticket::TicketKey;
use wire::MacAddress;
use wire::cll::resumption::Grant;

use crate::control::Task;
use crate::control::core::{Call, Verdict};
use crate::control::peers::Peers;
use crate::control::rollover::Sealed;
use crate::event::Effect;
use crate::job::{CompletionKind, JobKind};
use crate::limits::{TICKET_KEYS, TICKET_LIFETIME_MAX, TICKETS_HELD_MAX, TICKETS_SPENT_MAX};
use crate::message::OrderKind;
use crate::ticket::{Content, HeldTicket, IssuingKey, Remembered, Span, TicketId, id_of, name_of};

/// What there is to come back with.
#[derive(Default)]
pub(crate) struct Resumptions {
    /// Tickets of peers, one for each.
    held: BTreeMap<MacAddress, Arc<HeldTicket>>,
    /// Keys of our own tickets, newest first.
    keys: Vec<IssuingKey>,
    /// Since when the newest has been in use here.
    key_since: Instant,
    key_ordered: bool,
    /// The last ticket that each peer was given.
    given: BTreeMap<MacAddress, TicketId>,
    spent: Spent,
}

/// Our own tickets that were used, or replaced by a newer one; the oldest is forgotten first.
#[derive(Default)]
struct Spent {
    known: BTreeSet<TicketId>,
    in_order: VecDeque<TicketId>,
}

impl Spent {
    fn enter(&mut self, id: TicketId) {
        if !self.known.insert(id) {
            return;
        }
        self.in_order.push_back(id);
        if self.in_order.len() > TICKETS_SPENT_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Resumptions {
    /// Whether this ticket of ours was used or replaced, as far as is remembered.
    pub(super) fn is_spent(&self, id: &TicketId) -> bool {
        self.spent.known.contains(id)
    }

    /// How many tickets of peers this host holds.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// All keys that may open a ticket of ours.
    pub(super) fn keys(&self) -> Vec<TicketKey> {
        self.keys.iter().map(|issuing| issuing.key.clone()).collect()
    }

    /// The key for a ticket that is made now; none if a new one is due.
    fn issuing_key(&self, since_boot: Instant, unix_s: u64, lifetime: Duration) -> Option<&TicketKey> {
        let newest = self.keys.first()?;
        let is_young = is_since(newest.made_unix_s, unix_s, lifetime) && since_boot.since(self.key_since) < lifetime;
        is_young.then_some(&newest.key)
    }

    /// Enters a ticket; returns the peer whose ticket had to make room for it.
    fn hold(&mut self, ticket: HeldTicket) -> Option<MacAddress> {
        let mac = ticket.mac();
        let is_full = self.held.len() >= TICKETS_HELD_MAX && !self.held.contains_key(&mac);
        let evicted = if is_full { self.held.values().min_by_key(|held| held.span.ends) } else { None };
        let evicted = evicted.map(|held| held.mac());
        evicted.and_then(|mac| self.held.remove(&mac));
        self.held.insert(mac, Arc::new(ticket));
        evicted
    }

    /// That of the wanted host. An IPv6 address alone does not say whose it is.
    fn find(&self, ip: Option<IpAddr>, mac: Option<MacAddress>) -> Option<&Arc<HeldTicket>> {
        match (mac, ip) {
            (Some(mac), _) => self.held.get(&mac),
            (None, Some(IpAddr::V4(ip))) => self.held.values().find(|held| held.issuer.addresses().contains(&ip)),
            (None, Some(IpAddr::V6(_)) | None) => None,
        }
    }
}

/// Whether `unix_s` is less than `time` after `from`, and not before it.
fn is_since(from: u64, unix_s: u64, time: Duration) -> bool {
    unix_s.checked_sub(from).is_some_and(|age| age < time.as_secs())
}

impl Resumptions {
    /// What an earlier run has kept, before the first frame. What is over, or of another identity, is forgotten.
    pub(crate) fn remember(&mut self, call: &mut Call<'_>, remembered: Remembered) {
        if call.core.settings.resumption.is_none() {
            return;
        }
        let unix_s = call.certificate_time().unix_s();
        // A ticket lives at most a day, so a key that is older than two opens none that is still good.
        let is_young = |key: &IssuingKey| is_since(key.made_unix_s, unix_s, 2 * TICKET_LIFETIME_MAX);
        self.keys = remembered.keys.into_iter().filter(is_young).take(TICKET_KEYS).collect();
        self.key_since = call.now.since_boot;
        remembered.spent.into_iter().for_each(|id| self.spent.enter(id));
        for ticket in remembered.tickets {
            let mac = ticket.mac();
            let forgotten = if is_of_use(call, &ticket, unix_s) { self.hold(ticket) } else { Some(mac) };
            forgotten.into_iter().for_each(|mac| call.out.effect(Effect::ForgetTicket(mac)));
        }
    }

    /// This ticket of ours is not taken any more, also not after a restart.
    pub(crate) fn spend(&mut self, call: &mut Call<'_>, id: TicketId) {
        self.spent.enter(id);
        call.out.effect(Effect::KeepSpent(id));
    }

    /// The ticket with which a handshake for this address or host can be tried first.
    pub(crate) fn ticket_for(
        &self,
        call: &Call<'_>,
        ip: Option<IpAddr>,
        mac: Option<MacAddress>,
    ) -> Option<Arc<HeldTicket>> {
        call.core.settings.resumption?;
        let held = self.find(ip, mac)?;
        is_of_use(call, held, call.certificate_time().unix_s()).then(|| Arc::clone(held))
    }

    /// Forgets a ticket that is used up, unless a newer one of the same peer has come meanwhile.
    pub(crate) fn forget(&mut self, call: &mut Call<'_>, ticket: &Arc<HeldTicket>) {
        let mac = ticket.mac();
        if self.held.get(&mac).is_some_and(|held| Arc::ptr_eq(held, ticket)) {
            self.held.remove(&mac);
            call.out.effect(Effect::ForgetTicket(mac));
        }
    }

    /// Forgets the tickets of all whose certificate `is_wanted` names.
    pub(crate) fn forget_of(&mut self, call: &mut Call<'_>, is_wanted: impl Fn(&HostCertificate) -> bool) {
        let gone = self.held.extract_if(.., |_, held| is_wanted(&held.issuer));
        gone.for_each(|(mac, _)| call.out.effect(Effect::ForgetTicket(mac)));
    }

    /// Gives the peer a ticket. It waits for the first sweep after the association came into use, so that it does not delay the
    /// first frames; what cannot be given now is tried again in the next.
    pub(crate) fn give(&mut self, call: &mut Call<'_>, peers: &mut Peers, mac: MacAddress) {
        let Some(lifetime) = call.core.settings.resumption else { return };
        let unix_s = call.certificate_time().unix_s();
        let Some(key) = self.issuing_key(call.now.since_boot, unix_s, lifetime) else {
            return self.order_ticket_key(call);
        };
        let own = call.core.settings.identity.certificate();
        let Some(current) = peers.current_by_mac_mut(mac) else { return };
        let Some(secret) = current.tickets.given.take() else { return };
        let certificates_end = own.not_after_unix().min(current.certificate.not_after_unix());
        let Some(span) = Span::new(unix_s, current.proof.signed_unix_s, lifetime, certificates_end) else { return };
        let (secrecy, certificate) = (current.successor.secrecy, current.certificate.der().to_vec());
        let content = Content { secrecy, span, secret, issuer: name_of(own), certificate };
        let Ok(ticket) = key.seal(call.core.random.bytes(), &content.emit()) else { return };
        if let Some(before) = id_of(&ticket).and_then(|id| self.given.insert(mac, id)) {
            self.spend(call, before);
        }
        if self.given.len() > TICKETS_SPENT_MAX {
            // The peer's older ticket is then taken beside its newer one.
            self.given.pop_first();
        }
        let lifetime_s = u32::try_from(span.ends - span.begins).unwrap_or(u32::MAX);
        call.order(0, OrderKind::Control(mac, Grant { lifetime_s, ticket: &ticket }.emit()));
    }

    fn order_ticket_key(&mut self, call: &mut Call<'_>) {
        if !self.key_ordered {
            self.key_ordered = call.task(Task::TicketKey, JobKind::MakeTicketKey);
        }
    }

    /// A new key for tickets, in the place of the last but one.
    pub(crate) fn on_key(&mut self, call: &mut Call<'_>, kind: CompletionKind) {
        self.key_ordered = false;
        let CompletionKind::TicketKey(key) = kind else { return };
        let made_unix_s = call.certificate_time().unix_s();
        self.keys.insert(0, IssuingKey { made_unix_s, key });
        self.keys.truncate(TICKET_KEYS);
        self.key_since = call.now.since_boot;
        call.out.effect(Effect::KeepTicketKeys(self.keys.clone()));
    }

    /// The peer gives us a ticket, one for each association.
    pub(crate) fn take(&mut self, call: &mut Call<'_>, peers: &mut Peers, sealed: &Sealed<'_>) -> Verdict {
        let grant = Grant::parse(sealed.message).map_err(|_| DropReason::InnerMalformed)?;
        id_of(grant.ticket).ok_or(DropReason::InnerMalformed)?;
        let mac = peers.current_of(sealed.association)?.certificate.mac();
        if call.core.settings.resumption.is_none() {
            return Ok(Fate::Consumed);
        }
        let unix_s = call.certificate_time().unix_s();
        let own = call.core.settings.identity.certificate();
        let current = peers.current_by_mac_mut(mac).ok_or(DropReason::HandshakeUnasked)?;
        let secret = current.tickets.taken.take().ok_or(DropReason::HandshakeUnasked)?;
        let certificates_end = own.not_after_unix().min(current.certificate.not_after_unix());
        let ends = unix_s.saturating_add(u64::from(grant.lifetime_s)).min(certificates_end);
        let held = HeldTicket {
            secrecy: current.successor.secrecy,
            span: Span { begins: unix_s, ends, signed: current.proof.signed_unix_s },
            secret,
            holder: name_of(own),
            issuer: current.certificate.clone(),
            ticket: grant.ticket.to_vec(),
        };
        call.out.effect(Effect::KeepTicket(Box::new(held.clone())));
        if let Some(evicted) = self.hold(held) {
            call.out.effect(Effect::ForgetTicket(evicted));
        }
        Ok(Fate::Consumed)
    }
}

fn is_of_use(call: &Call<'_>, ticket: &HeldTicket, unix_s: u64) -> bool {
    ticket.holder == name_of(call.core.settings.identity.certificate())
        && ticket.secrecy.is_in_force(&call.core.settings)
        && ticket.span.includes(unix_s, call.core.settings.clock_tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_tickets_are_bounded_and_the_oldest_goes_first() {
        let mut spent = Spent::default();
        let id = |number: usize| -> TicketId { (number as u128).to_be_bytes() };
        for number in 0..=TICKETS_SPENT_MAX {
            spent.enter(id(number));
            spent.enter(id(number));
        }
        assert_eq!((spent.known.len(), spent.in_order.len()), (TICKETS_SPENT_MAX, TICKETS_SPENT_MAX));
        assert!(!spent.known.contains(&id(0)) && spent.known.contains(&id(1)));
    }

    #[test]
    fn a_key_gives_way_by_either_clock() {
        let hour = Duration::from_secs(3600);
        let key = IssuingKey { made_unix_s: 10_000, key: TicketKey::from_bytes([1; 32]) };
        let resumptions = Resumptions { keys: vec![key], ..Resumptions::default() };
        let young =
            |boot_s: u64, unix_s| resumptions.issuing_key(Instant::from_millis(boot_s * 1000), unix_s, hour).is_some();
        assert!(young(0, 10_000) && young(3599, 13_599));
        assert!(!young(0, 13_600), "an hour by the wall clock");
        assert!(!young(3600, 10_000), "an hour since it came into use, though the wall clock stands");
        assert!(!young(0, 9_999), "from the future");
    }
}
