//! The slow half of the link layer: who may speak with us, and under which keys.
//!
//! It is made of machines, and each changes nothing but its own state. `core.rs` has what all of
//! them share, `machines.rs` which of them each message belongs to.
//!
//! - `stack.rs`: what our own stack's ARP and neighbour discovery ask for; `discovery.rs`: who has
//!   which IPv6 address.
//! - `initiator.rs`: handshakes that we open; `replies.rs`: what is replied to them, until it is judged.
//! - `responder.rs`: handshakes of others that we answer.
//! - `clear.rs`: questions and hosts in clear, in the modes of migration that have them.
//! - `lists.rs`: the site's revocation list and policy, from peer to peer.
//! - `rollover`: new keys through an association that there is.
//! - `broadcast`: frames to groups.
//! - `resumption`: back to one that was, by a ticket.
//! - `freshness.rs`, and the budgets of `shield`: what stands in front of the first signature.
//! - `peers.rs`: the table of associations; `associations.rs`: how they come into use, grow old and
//!   end.
//! - `site_keys.rs`: under which site key a message goes out, and under which ones it is heard.
//! - `dhcp.rs`: DHCP, and the certificate that this host shows; `dhcp_clear.rs`: DHCP in clear, in
//!   the modes that have it.

mod associations;
mod broadcast;
mod clear;
mod core;
mod crowd;
mod dhcp;
mod dhcp_clear;
mod discovery;
mod freshness;
mod initiator;
mod lists;
mod machines;
mod peers;
mod replies;
mod responder;
mod resumption;
mod rollover;
mod site_keys;
mod stack;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use bump::{Generator, Instant, LaneId, Ledger, Now, Outbox, Sink, Ticket, Torn, time};
use wire::MacAddress;

pub use self::dhcp::LeaseReport;
use crate::Instruction;
use crate::event::{Effect, Event, KeptLease};
use crate::job::{Completion, Job};
use crate::limits;
use crate::message::{Order, Request};
use crate::migration::Rules;
use crate::observed::{PlainHosts, PlainReport, Proofs};
use crate::revocation::Revoked;
use crate::settings::Settings;
use crate::ticket::Remembered;
use core::{Call, Core, KeyPairs, Tasks, certificate_time, steady};
use machines::Machines;

/// What a job under way belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    KeyPairs,
    KemPairs,
    Opening(initiator::OpeningId),
    Answer(responder::AnswerId),
    Rollover(rollover::RolloverId),
    Broadcast(broadcast::Duty),
    Dhcp(u64),
    TicketKey,
}

/// The slow half of the link layer.
pub struct Control {
    core: Core,
    machines: Machines,
}

/// One association, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerReport {
    /// Name in its certificate.
    pub name: String,
    /// Its hardware address.
    pub mac: MacAddress,
    /// Addresses in its certificate.
    pub addresses: Vec<Ipv4Addr>,
    /// IPv6 addresses that it holds here.
    pub ipv6_addresses: Vec<Ipv6Addr>,
    /// Whether its certificate says that it forwards for others.
    pub router: bool,
    /// End of its certificate, in seconds since 1970.
    pub certificate_not_after_unix: u64,
    /// `established`, `agreeing` (payload waits for ML-KEM), `leaving` or `candidate`.
    pub state: &'static str,
    /// Whether this host asked.
    pub initiated: bool,
    /// How many rollovers led to it since the handshake.
    pub rollovers: u32,
    /// Whether a ticket led to it, and no signature.
    pub resumed: bool,
    /// How old the association is.
    pub age: Duration,
    /// How long it may still live.
    pub remaining: Duration,
    /// How long ago a frame was opened.
    pub last_opened_ago: Option<Duration>,
    /// What its keys come from: `X25519`, `X25519+ML-KEM-768`, and `+PSK` behind it where there is
    /// a pre-shared key.
    pub agreement: String,
    /// How we protect what we send.
    pub sends: String,
    /// How the peer protects what it sends.
    pub receives: String,
}

impl Control {
    /// A control without associations. `random` is for nonces and indices, never for keys.
    #[must_use]
    pub fn new(now: Now, settings: Arc<Settings>, mut random: Generator) -> Control {
        let identity = &settings.identity;
        let unix_s = certificate_time(&settings, &Revoked::default(), now).unix_s();
        let machines = Machines::new(now, &settings, &mut random);
        let core = Core {
            ledger: Ledger::new(),
            revoked: Arc::default(),
            site_policy: None,
            site_keys: site_keys::SiteKeys::of(identity.site_keys(), unix_s, now.since_boot),
            rules: settings.rules(),
            freshness: machines.1,
            observed: PlainHosts::default(),
            proofs: Proofs::default(),
            key_pairs: KeyPairs::default(),
            signature_budget: steady(limits::SIGNATURES_PER_SECOND),
            indices: BTreeSet::new(),
            tasks: Tasks::default(),
            random,
            settings,
        };
        Control { core, machines: machines.0 }
    }

    fn call<'a>(
        &'a mut self,
        now: Now,
        sink: &'a mut dyn Sink,
        out: &'a mut Outbox<Control>,
    ) -> (&'a mut Machines, Call<'a>) {
        (&mut self.machines, Call { now, core: &mut self.core, sink, out, wishes: VecDeque::new() })
    }

    /// To be called once before the first frame: prepares key pairs, and names the legacy hosts to the kernel.
    pub fn start(&mut self, now: Now, sink: &mut dyn Sink, out: &mut Outbox<Control>) {
        for legacy in &self.core.settings.legacy {
            out.effect(Effect::PermanentNeighbour { ip: legacy.ip, mac: legacy.mac });
        }
        let (machines, mut call) = self.call(now, sink, out);
        call.order_key_pairs();
        machines.rollovers.order_kem_pairs(&mut call);
    }

    /// A handshake with ourselves, to be called once before the first frame. Its key pairs come
    /// from `keys`.
    ///
    /// # Errors
    /// What does not work, in words.
    pub fn self_test(&self, keys: &mut dyn bump::SecretSource) -> Result<(), crate::SelfTestError> {
        crate::self_test::run(&self.core.settings, keys)
    }

    /// The wire carries packets of another size from now on, in bytes.
    pub fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.machines.broadcasts.sending.wire_mtu = wire_mtu;
    }

    /// All associations.
    #[must_use]
    pub fn peers(&self, now: Instant) -> Vec<PeerReport> {
        self.machines.peer_reports(now)
    }

    /// The address that this host has by lease, and, on a DHCP server, those that it has given
    /// since its start.
    #[must_use]
    pub fn leases(&self, now: Instant) -> Vec<LeaseReport> {
        self.machines.dhcp.leases(now)
    }

    /// Adds the hosts that spoke ARP in clear to the `reports` of lanes, and takes out who has
    /// proved himself since.
    pub(crate) fn report_plain_hosts(&self, now: Instant, reports: &mut BTreeMap<MacAddress, PlainReport>) {
        self.core.observed.report(now, reports);
        // A lane that knows nothing of a proof keeps what it heard before.
        reports.retain(|mac, report| !self.core.proofs.is_since(*mac, now - report.heard_ago));
    }

    /// Associations in use with one hardware address under which payload moves; never more than
    /// one.
    #[must_use]
    pub fn established_with(&self, mac: MacAddress) -> usize {
        usize::from(self.machines.associations.peers.current_by_mac(mac).is_some_and(|current| !current.is_bare()))
    }

    /// Handshakes that this host has open.
    #[must_use]
    pub fn open_handshakes(&self) -> usize {
        self.machines.openings.len()
    }

    /// Rollovers that are under way, whoever asked.
    #[must_use]
    pub fn open_rollovers(&self) -> usize {
        self.machines.rollovers.open()
    }

    /// Senders of group frames that have proved themselves.
    #[must_use]
    pub fn group_senders(&self) -> usize {
        self.machines.broadcasts.receiving.len()
    }

    /// Tickets of peers that this host holds.
    #[must_use]
    pub fn tickets_held(&self) -> usize {
        self.machines.resumptions.held()
    }

    /// What an operator, or whoever acts for him, tells. What the site has signed goes on to hosts
    /// that are no peers now.
    pub(crate) fn instruct(&mut self, now: Now, told: Instruction, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let is_for_all = matches!(told, Instruction::Revoke(_) | Instruction::SitePolicy(_));
        self.follow(now, told, sink, out);
        if is_for_all {
            let (machines, mut call) = self.call(now, sink, out);
            machines.spread(&mut call);
            machines.fulfil(&mut call);
        }
    }

    /// What this host is told, it follows; its peers hear of it.
    pub(crate) fn follow(&mut self, now: Now, told: Instruction, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let (machines, mut call) = self.call(now, sink, out);
        let mut rules = (*call.core.rules).clone();
        match told {
            Instruction::Revoke(list) => machines.revoke(&mut call, list),
            Instruction::SitePolicy(policy) => machines.set_site_policy(&mut call, policy),
            Instruction::Legacy(legacy) => call.set_legacy(legacy),
            Instruction::Policy(policy) => call.change_rules(Rules { policy, ..rules }),
            // It may fall back now.
            Instruction::Forget(mac) if rules.proved.forget(mac) => {
                call.core.proofs.forget(mac);
                call.change_rules(rules);
            }
            Instruction::Forget(_) => {}
            Instruction::Renewed(identity) => machines.dhcp.renew(&mut call, identity),
        }
        machines.fulfil(&mut call);
    }

    /// What an earlier run has kept, before the first frame.
    pub(crate) fn remember(&mut self, now: Now, kept: Remembered, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let (machines, mut call) = self.call(now, sink, out);
        machines.resumptions.remember(&mut call, kept);
    }

    /// What an earlier run had by lease, once it is known which certificates are revoked.
    pub(crate) fn remember_lease(&mut self, now: Now, kept: KeptLease, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let (machines, mut call) = self.call(now, sink, out);
        machines.dhcp.remember(&mut call, kept);
    }
}

impl bump::Control for Control {
    type Request = Request;
    type Order = Order;
    type Job = Job;
    type Completion = Completion;
    type Effect = Effect;
    type Event = Event;

    fn request(&mut self, now: Now, lane: LaneId, request: Request, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let (machines, mut call) = self.call(now, sink, out);
        machines.request(&mut call, lane, request);
    }

    fn complete(
        &mut self,
        now: Now,
        ticket: Ticket,
        completion: Completion,
        sink: &mut dyn Sink,
        out: &mut Outbox<Self>,
    ) {
        if let Some(task) = self.core.tasks.end(ticket) {
            let (machines, mut call) = self.call(now, sink, out);
            machines.complete(&mut call, task, completion.0);
        }
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let (machines, mut call) = self.call(now, sink, out);
        machines.tick(&mut call, budget);
    }

    fn about(&self, request: &Request) -> Torn {
        self.machines.about(request)
    }

    /// The associations that may be half done end, on both sides by the next handshake; openings
    /// and answers go by their own time.
    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let (machines, mut call) = self.call(now, sink, out);
        machines.associations.mend(&mut call, torn);
    }

    fn deadline(&self) -> Option<Instant> {
        time::earlier(self.core.site_keys.deadline(), self.machines.deadline())
    }

    fn ledger(&self) -> &Ledger {
        &self.core.ledger
    }
}
