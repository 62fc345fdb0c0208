//! The table of associations: for each peer at most one in use, a few on their way out, and a few candidates.
//!
//! A request of the peer only ever makes a candidate; the first frame that opens under a candidate proves that the peer
//! holds the keys, and promotes it. So nothing that a stranger can send or replay removes a working association.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Instant};
use identity::Verified;
use identity::certificate::HostCertificate;
use wire::MacAddress;
use wire::cll::{Agreement, Offer, Resolution};

use super::PeerReport;
use crate::event::{EndCause, Event};
use crate::job::{Finished, Successor};
use crate::keys::{ReceiveKey, SendKey, TicketSecrets};
use crate::limits::{
    CANDIDATE_LIFETIME, CANDIDATES_PER_PEER_MAX, HANDSHAKE_GIVE_UP, KEEPALIVE_AFTER, LEAVING_PER_PEER_MAX, REKEY_AFTER,
    SILENCE_MAX, SIMULTANEOUS,
};
use crate::message::{Activity, AssociationId};
use crate::origin::Origin;
use crate::ticket::Proof;

/// One association, as control sees it.
pub(crate) struct Association {
    pub(crate) id: AssociationId,
    pub(crate) certificate: Verified<HostCertificate>,
    pub(crate) origin: Arc<Origin>,
    pub(crate) initiated_by_us: bool,
    pub(crate) own: Offer,
    pub(crate) peers: Offer,
    pub(crate) term: Term,
    /// How many rollovers led to it; 0 after a handshake.
    pub(crate) rollovers: u32,
    /// How the peer proved itself.
    pub(crate) proof: Proof,
    /// What the tickets of both sides are made for.
    pub(crate) tickets: TicketSecrets,
    /// What it hands on to the association that replaces it, and what went into its keys beside its
    /// key agreement.
    pub(crate) successor: Successor,
    /// Both sides do ML-KEM, and this association has no fresh secret of it yet.
    pub(crate) wants_kem: bool,
    /// That it came into use is no news.
    pub(crate) is_quiet: bool,
    pub(crate) life: Life,
}

/// When an association began and ends.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    /// When its handshake began here: we asked, or believed the peer's request.
    asked: Instant,
    born: Instant,
    pub(crate) expires: Instant,
}

/// What lanes saw under an association.
pub(crate) struct Life {
    last_opened: Option<Instant>,
    /// Payload was sent and nothing was opened since.
    unanswered_since: Option<Instant>,
    /// Payload was opened and nothing was sent since.
    owes_since: Option<Instant>,
    /// Payload moved since the last renewal was considered.
    pub(crate) in_use: bool,
    /// When payload moved for the last time, or when it was born.
    last_used: Instant,
    /// A new handshake was asked for because this association is silent.
    pub(crate) doubted: bool,
    /// The peer spoke in clear, and nothing was opened since.
    plain_since: Option<Instant>,
}

impl Life {
    fn beginning(last_used: Instant) -> Life {
        Life {
            last_opened: None,
            unanswered_since: None,
            owes_since: None,
            in_use: false,
            last_used,
            doubted: false,
            plain_since: None,
        }
    }

    fn note(&mut self, now: Instant, activity: Activity) {
        if activity.opened {
            self.last_opened = Some(now);
            self.unanswered_since = None;
            self.plain_since = None;
            self.doubted = false;
        } else if activity.sealed_payload {
            self.unanswered_since.get_or_insert(now);
        }
        if activity.sealed_payload {
            self.owes_since = None;
        } else if activity.opened_payload {
            self.owes_since.get_or_insert(now);
        }
        if activity.sealed_payload || activity.opened_payload {
            self.in_use = true;
            self.last_used = now;
        }
    }

    /// Whether the peer seems to be gone.
    pub(crate) fn is_silent(&self, now: Instant) -> bool {
        self.unanswered_since.is_some_and(|since| now.since(since) >= SILENCE_MAX)
    }

    /// Whether the peer should be told that we live; counts as told.
    pub(crate) fn take_owed_sign_of_life(&mut self, now: Instant) -> bool {
        self.owes_since.take_if(|since| now.since(*since) >= KEEPALIVE_AFTER).is_some()
    }
}

/// What it takes to make an [`Association`].
pub(crate) struct Birth {
    pub(crate) agreed: Finished,
    pub(crate) initiated_by_us: bool,
    pub(crate) own: Offer,
    pub(crate) peers: Offer,
    pub(crate) lifetime: Duration,
    pub(crate) asked: Instant,
    pub(crate) rollovers: u32,
    /// Whether an ML-KEM exchange made it.
    pub(crate) by_kem: bool,
    pub(crate) is_quiet: bool,
}

/// An association that an exchange has made, and what is said when it is there.
pub(crate) struct Born {
    pub(crate) birth: Birth,
    /// The last message of the exchange, under a seal.
    pub(crate) message: Option<Vec<u8>>,
    /// What our stack had asked, answered, and whether the peer forwards for others.
    pub(crate) answer: Option<(Resolution, bool)>,
}

impl Birth {
    fn does_kem(&self) -> bool {
        self.own.post_quantum && self.peers.post_quantum
    }

    /// Whether no payload may move under it: the secret that both sides want in its keys is still
    /// to come.
    fn is_bare(&self) -> bool {
        self.does_kem() && !self.agreed.secrecy.post_quantum
    }
}

impl Association {
    /// The indices under which this host receives.
    pub(crate) fn receiver_indices(&self) -> impl Iterator<Item = u32> + use<> {
        let base = self.own.receiver_index;
        (0..u32::from(self.peers.lanes)).map(move |lane| base + lane)
    }

    /// Whether no payload moves under it, because an ML-KEM exchange that both sides want is still
    /// to come.
    pub(crate) fn is_bare(&self) -> bool {
        self.own.post_quantum && self.peers.post_quantum && !self.successor.secrecy.post_quantum
    }

    /// Whether the peer was heard under this association lately.
    pub(crate) fn is_lively(&self, now: Instant) -> bool {
        now.since(self.life.last_opened.unwrap_or(self.term.born)) < SILENCE_MAX && !self.life.doubted
    }

    /// Whether it is used and a successor is due: `rekey_every` after its birth, or after four
    /// fifths of its life and [`REKEY_AFTER`] at the latest. The host with the lower address waits
    /// a sixteenth longer, so that as a rule only one side asks.
    pub(crate) fn wants_successor(&self, now: Instant, own_mac: MacAddress, rekey_every: Option<Duration>) -> bool {
        let due = rekey_every.unwrap_or_else(|| self.term.expires.since(self.term.born).mul_f32(0.8).min(REKEY_AFTER));
        let patience = if own_mac > self.certificate.mac() { Duration::ZERO } else { due / 16 };
        self.life.in_use && now.since(self.term.born) >= due + patience
    }

    /// Whether the peer has no ticket of it yet.
    pub(crate) fn owes_ticket(&self) -> bool {
        self.tickets.given.is_some()
    }

    /// Whether it was made by a ticket.
    pub(crate) fn is_resumed(&self) -> bool {
        self.proof.ticket.is_some()
    }

    /// Whether no payload has moved for so long.
    fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        now.since(self.life.last_used) >= idle
    }

    fn initiator(&self, own_mac: MacAddress) -> MacAddress {
        if self.initiated_by_us { own_mac } else { self.certificate.mac() }
    }

    /// What an operator hears when it comes into use.
    pub(crate) fn established(&self) -> Event {
        let certificate = &self.certificate;
        if self.rollovers > 0 {
            let (name, mac) = (certificate.name().to_owned(), certificate.mac());
            return Event::Renewed { name, mac, initiated: self.initiated_by_us, rollovers: self.rollovers };
        }
        let (name, mac, initiated) = (certificate.name().to_owned(), certificate.mac(), self.initiated_by_us);
        let receives = protection(&self.peers, &self.own);
        let sends = protection(&self.own, &self.peers);
        if self.is_resumed() {
            return Event::Resumed { name, mac, initiated, receives, sends };
        }
        Event::Established { name, mac, addresses: certificate.addresses().to_vec(), initiated, receives, sends }
    }

    /// What an operator hears when it ends.
    pub(crate) fn ended(&self, cause: EndCause) -> Event {
        let certificate = &self.certificate;
        Event::Ended { name: certificate.name().to_owned(), mac: certificate.mac(), cause }
    }

    /// As an operator sees it; without its IPv6 addresses.
    pub(crate) fn report(&self, state: &'static str, now: Instant) -> PeerReport {
        let certificate = &self.certificate;
        PeerReport {
            name: certificate.name().to_owned(),
            mac: certificate.mac(),
            addresses: certificate.addresses().to_vec(),
            ipv6_addresses: Vec::new(),
            router: certificate.is_router(),
            certificate_not_after_unix: certificate.not_after_unix(),
            state,
            initiated: self.initiated_by_us,
            rollovers: self.rollovers,
            resumed: self.is_resumed(),
            age: now.since(self.term.born),
            remaining: self.term.expires.since(now),
            last_opened_ago: self.life.last_opened.map(|at| now.since(at)),
            agreement: self.successor.secrecy.describe(agreement_name(self.own.agreement)),
            sends: protection(&self.own, &self.peers),
            receives: protection(&self.peers, &self.own),
        }
    }
}

/// How the side that offered `sender` protects what it sends to the other.
fn protection(sender: &Offer, receiver: &Offer) -> String {
    let name = identity::aead::Suite::from_id(sender.suite).map_or("unknown", identity::aead::Suite::name);
    let only = if sender.confidential { "" } else { " (authentication only)" };
    let compression = sender.compression.towards(receiver.compression);
    let compression = compression.map_or_else(String::new, |algorithm| format!(", {}", algorithm.name()));
    format!("{name}{only}{compression}")
}

fn agreement_name(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::X25519 => "X25519",
        Agreement::Group14 => "group 14",
    }
}

/// An association that no frame has confirmed yet, with the keys that must not be used before.
pub(crate) struct Candidate {
    pub(crate) association: Association,
    pub(crate) send: Vec<SendKey>,
    until: Instant,
}

/// A replaced association that still opens frames.
pub(crate) struct Leaving {
    pub(crate) association: Association,
    pub(crate) until: Instant,
}

/// All associations with one peer.
#[derive(Default)]
pub(crate) struct Peer {
    pub(crate) current: Option<Association>,
    /// Oldest first.
    pub(crate) leaving: Vec<Leaving>,
    pub(crate) candidates: Vec<Candidate>,
}

impl Peer {
    fn is_empty(&self) -> bool {
        self.current.is_none() && self.leaving.is_empty() && self.candidates.is_empty()
    }

    fn associations(&self) -> impl Iterator<Item = &Association> {
        let leaving = self.leaving.iter().map(|leaving| &leaving.association);
        let candidates = self.candidates.iter().map(|candidate| &candidate.association);
        self.current.iter().chain(leaving).chain(candidates)
    }

    /// Whether `new` must not replace the current association, because both sides asked at once and the host with the
    /// higher address wins (paper, section 5.2). Both hosts see the same two associations and decide alike. A handshake
    /// that began when the other was over is no such conflict: its host has lost the other, for instance by a restart.
    pub(crate) fn keeps_current_against(&self, new: &Association, own_mac: MacAddress) -> bool {
        self.current.as_ref().is_some_and(|current| {
            let apart = new.term.born.since(current.term.born).max(current.term.born.since(new.term.born));
            apart <= SIMULTANEOUS
                && new.term.asked <= current.term.born
                && current.initiator(own_mac) > new.initiator(own_mac)
        })
    }
}

/// The table.
#[derive(Default)]
pub(crate) struct Peers {
    by_mac: BTreeMap<MacAddress, Peer>,
    by_association: BTreeMap<AssociationId, MacAddress>,
    next_id: u64,
}

impl Peers {
    /// The name of the association that [`bear`](Peers::bear) makes next.
    pub(crate) fn next_association(&self) -> AssociationId {
        AssociationId(self.next_id + 1)
    }

    /// An association that is not in the table yet, and its keys.
    pub(crate) fn bear(&mut self, now: Instant, birth: Birth) -> (Association, Vec<SendKey>, Vec<ReceiveKey>) {
        self.next_id += 1;
        let (is_bare, does_kem) = (birth.is_bare(), birth.does_kem());
        let Birth { agreed: Finished { peer: certificate, keys, transcript, proof, secrecy }, .. } = birth;
        // One that carries no payload lives as long as a handshake is tried, and gives no tickets.
        let lifetime = if is_bare { birth.lifetime.min(HANDSHAKE_GIVE_UP) } else { birth.lifetime };
        let has_secrets = does_kem || !secrecy.is_plain();
        let kept = has_secrets.then(|| Arc::new(keys.kept));
        let association = Association {
            id: AssociationId(self.next_id),
            successor: Successor { of: transcript, peer: certificate.mac(), kept, secrecy },
            wants_kem: does_kem && !birth.by_kem,
            is_quiet: birth.is_quiet || is_bare,
            origin: Arc::new(Origin::of(&certificate)),
            certificate,
            initiated_by_us: birth.initiated_by_us,
            own: birth.own,
            peers: birth.peers,
            term: Term { asked: birth.asked, born: now, expires: now + lifetime },
            rollovers: birth.rollovers,
            proof,
            tickets: if is_bare { TicketSecrets::default() } else { keys.tickets },
            life: Life::beginning(now),
        };
        (association, keys.send, keys.receive)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_mac.len()
    }

    pub(crate) fn get(&self, mac: MacAddress) -> Option<&Peer> {
        self.by_mac.get(&mac)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&MacAddress, &Peer)> {
        self.by_mac.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&MacAddress, &mut Peer)> {
        self.by_mac.iter_mut()
    }

    /// The association in use with the host that has this address in its certificate.
    pub(crate) fn current_by_ip(&self, ip: Ipv4Addr) -> Option<&Association> {
        self.by_mac
            .values()
            .filter_map(|peer| peer.current.as_ref())
            .find(|current| current.certificate.addresses().contains(&ip))
    }

    /// The peer of an association that is in the table.
    pub(crate) fn peer_of(&self, id: AssociationId) -> Option<MacAddress> {
        self.by_association.get(&id).copied()
    }

    pub(crate) fn current_by_mac(&self, mac: MacAddress) -> Option<&Association> {
        self.by_mac.get(&mac)?.current.as_ref()
    }

    pub(crate) fn current_by_mac_mut(&mut self, mac: MacAddress) -> Option<&mut Association> {
        self.by_mac.get_mut(&mac)?.current.as_mut()
    }

    /// The association in use with its peer, if this is it.
    pub(crate) fn current_of(&self, id: AssociationId) -> Result<&Association, DropReason> {
        let current = self.peer_of(id).and_then(|mac| self.current_by_mac(mac));
        current.filter(|current| current.id == id).ok_or(DropReason::HandshakeUnasked)
    }

    /// All hosts with which there is some association.
    pub(crate) fn macs(&self) -> Vec<MacAddress> {
        self.by_mac.keys().copied().collect()
    }

    /// The name in the certificate of the host at `mac`.
    pub(crate) fn name_of(&self, mac: MacAddress) -> Option<&str> {
        self.current_by_mac(mac).map(|current| current.certificate.name())
    }

    /// All associations, without IPv6 addresses.
    pub(crate) fn reports(&self, now: Instant) -> Vec<PeerReport> {
        let mut reports = Vec::new();
        for peer in self.by_mac.values() {
            let current = peer.current.iter().map(|one| (one, if one.is_bare() { "agreeing" } else { "established" }));
            let leaving = peer.leaving.iter().map(|one| (&one.association, "leaving"));
            let candidates = peer.candidates.iter().map(|one| (&one.association, "candidate"));
            let all = current.chain(leaving).chain(candidates);
            reports.extend(all.map(|(association, state)| association.report(state, now)));
        }
        reports
    }

    /// Enters a candidate; returns the one that had to make room for it.
    pub(crate) fn add_candidate(
        &mut self,
        now: Instant,
        association: Association,
        send: Vec<SendKey>,
    ) -> Option<Association> {
        let mac = association.certificate.mac();
        self.by_association.insert(association.id, mac);
        let candidates = &mut self.by_mac.entry(mac).or_default().candidates;
        let evicted = (candidates.len() >= CANDIDATES_PER_PEER_MAX).then(|| candidates.remove(0).association);
        candidates.push(Candidate { association, send, until: now + CANDIDATE_LIFETIME });
        if let Some(evicted) = &evicted {
            self.forget(evicted);
        }
        evicted
    }

    /// Takes a candidate out of its peer, to be promoted.
    pub(crate) fn take_candidate(&mut self, id: AssociationId) -> Option<Candidate> {
        let mac = self.by_association.get(&id)?;
        let candidates = &mut self.by_mac.get_mut(mac)?.candidates;
        let at = candidates.iter().position(|candidate| candidate.association.id == id)?;
        Some(candidates.remove(at))
    }

    /// Makes `association` the one in use; returns the one that was.
    pub(crate) fn set_current(&mut self, association: Association) -> Option<Association> {
        let mac = association.certificate.mac();
        self.by_association.insert(association.id, mac);
        self.by_mac.entry(mac).or_default().current.replace(association)
    }

    /// Lets a replaced association open frames until `until`; returns the one that had to make room for it.
    pub(crate) fn add_leaving(&mut self, association: Association, until: Instant) -> Option<Association> {
        let mac = association.certificate.mac();
        self.by_association.insert(association.id, mac);
        let leaving = &mut self.by_mac.entry(mac).or_default().leaving;
        let evicted = (leaving.len() >= LEAVING_PER_PEER_MAX).then(|| leaving.remove(0).association);
        leaving.push(Leaving { association, until });
        evicted
    }

    /// Forgets everything about an association that is out of its peer already.
    pub(crate) fn forget(&mut self, association: &Association) {
        self.by_association.remove(&association.id);
        let mac = association.certificate.mac();
        if self.by_mac.get(&mac).is_some_and(Peer::is_empty) {
            self.by_mac.remove(&mac);
        }
    }

    /// Notes what lanes saw.
    pub(crate) fn note(&mut self, now: Instant, id: AssociationId, activity: Activity) {
        let Some(mac) = self.by_association.get(&id) else { return };
        let Some(current) = self.by_mac.get_mut(mac).and_then(|peer| peer.current.as_mut()) else { return };
        if current.id == id {
            current.life.note(now, activity);
        }
    }

    /// The peer speaks in clear: for how long it has done nothing else.
    pub(crate) fn speaks_in_clear(&mut self, now: Instant, mac: MacAddress) -> Option<Duration> {
        let current = self.by_mac.get_mut(&mac)?.current.as_mut()?;
        Some(now.since(*current.life.plain_since.get_or_insert(now)))
    }

    /// Takes out up to `budget` associations whose time is over. The flag tells which were in use.
    pub(crate) fn take_expired(&mut self, now: Instant, budget: usize) -> Vec<(Association, bool)> {
        let mut expired = Vec::new();
        for peer in self.by_mac.values_mut() {
            if expired.len() >= budget {
                break;
            }
            expired.extend(peer.current.take_if(|current| current.term.expires <= now).map(|old| (old, true)));
            let gone = peer.leaving.extract_if(.., |leaving| leaving.until <= now);
            expired.extend(gone.map(|old| (old.association, false)));
            let (over, live) = std::mem::take(&mut peer.candidates).into_iter().partition(|one| one.until <= now);
            peer.candidates = live;
            let over: Vec<Candidate> = over;
            expired.extend(over.into_iter().map(|candidate| (candidate.association, false)));
        }
        for (association, _) in &expired {
            self.forget(association);
        }
        expired
    }

    /// Takes up to `budget` associations out of use under which no payload has moved for `idle`. They are not forgotten.
    pub(crate) fn take_idle(&mut self, now: Instant, idle: Duration, budget: usize) -> Vec<Association> {
        let peers = self.by_mac.values_mut();
        peers.filter_map(|peer| peer.current.take_if(|current| current.is_idle(now, idle))).take(budget).collect()
    }

    /// Hosts of which some association holds a certificate that `is_wanted` names.
    pub(crate) fn with_certificate(&self, is_wanted: impl Fn(&HostCertificate) -> bool) -> Vec<MacAddress> {
        let has = |peer: &Peer| peer.associations().any(|association| is_wanted(&association.certificate));
        self.by_mac.iter().filter(|(_, peer)| has(peer)).map(|(mac, _)| *mac).collect()
    }

    /// Takes out the association in use with `mac`.
    pub(crate) fn take_current(&mut self, mac: MacAddress) -> Option<Association> {
        let current = self.by_mac.get_mut(&mac)?.current.take()?;
        self.forget(&current);
        Some(current)
    }

    /// Takes out every association with `mac`.
    pub(crate) fn take_all(&mut self, mac: MacAddress) -> Vec<Association> {
        let Some(peer) = self.by_mac.remove(&mac) else { return Vec::new() };
        let leaving = peer.leaving.into_iter().map(|leaving| leaving.association);
        let candidates = peer.candidates.into_iter().map(|candidate| candidate.association);
        let all: Vec<Association> = peer.current.into_iter().chain(leaving).chain(candidates).collect();
        for association in &all {
            self.forget(association);
        }
        all
    }

    /// How many peers have an association in use.
    pub(crate) fn established(&self) -> usize {
        self.by_mac.values().filter(|peer| peer.current.is_some()).count()
    }

    /// The peer whose association in use was silent for longest, to make room.
    pub(crate) fn least_useful(&self) -> Option<MacAddress> {
        let in_use = self.by_mac.iter().filter_map(|(mac, peer)| Some((mac, peer.current.as_ref()?.life.last_opened)));
        in_use.min_by_key(|(_, last_opened)| *last_opened).map(|(mac, _)| *mac)
    }

    /// The peer without an association in use that has waited for longest for one.
    pub(crate) fn oldest_unconfirmed(&self) -> Option<MacAddress> {
        let youngest = |peer: &Peer| peer.associations().map(|association| association.term.born).max();
        let unconfirmed = self.by_mac.iter().filter(|(_, peer)| peer.current.is_none());
        unconfirmed.min_by_key(|(_, peer)| youngest(peer)).map(|(mac, _)| *mac)
    }
}
