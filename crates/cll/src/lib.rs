//! The cryptographic link layer (CLL): every frame between two hosts is authenticated and, by choice, encrypted.
//!
//! From the paper "CLL: A Cryptographic Link Layer for Local Area Networks" (Jerschow, Lochert, Scheuermann, Mauve),
//! whose sections the modules follow:
//!
//! - section 3, the cross-layer check: `origin`
//! - section 5.1, the frames: `wire::cll`
//! - section 5.2, the ARP handshake: `control`, its public key work: `job`, its keys: `keys`
//! - section 5.3, unicast frames: `lane`; compressed ones: `compression`
//! - section 5.5, frames to groups: `control/broadcast`, their public key work: `job/broadcast`, their batches: `merkle`
//! - section 5.2, who is believed: the site's revocation list and policy go from peer to peer,
//!   `control/lists`
//! - section 5.4, rollover: `control/rollover`, its public key work: `job/rollover`; with ML-KEM,
//!   which the paper does not know: `job/kem`, `secrecy`
//! - section 6, DHCP: `control/dhcp`, `dhcp::link`
//! - section 7.1, legacy hosts: `settings`, `lane`; step by step: `migration`, `control/clear`, `lane/clear`; persistence:
//!   `control/resumption`, `ticket`, `job/resumption`
//!
//! Beyond the paper: IPv6 (`origin`, `neighbours`, `control/discovery`), candidates and promotion, challenges, liveness, a replay window and spinning nonces (both in `shield`), a tag
//! under the site key in front of every signature. `docs/protocol.md` has every byte.
//!
//! Trust: nothing from the wire is believed before a tag or signature is verified, and what an enrolled host says about
//! its addresses is compared with its certificate even then. `identity` alone makes `Verified` values.

mod compression;
mod control;
mod event;
mod glimpse;
mod hold;
mod job;
mod keys;
mod lane;
pub mod limits;
mod merkle;
mod message;
mod migration;
mod neighbours;
mod observed;
mod origin;
#[cfg(test)]
mod paper_vectors;
mod revocation;
mod secrecy;
mod self_test;
mod settings;
mod ticket;
#[cfg(test)]
mod vectors;

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::{Generator, Instant, Now, Sink, Whole};
use identity::policy::SitePolicy;
use identity::revocation::RevocationList;
use identity::{HostIdentity, Verified};
use wire::MacAddress;

pub use compression::CompressionReport;
pub use control::{Control, LeaseReport, PeerReport};
pub use event::{Effect, EndCause, Event, KeptLease};
pub use glimpse::Protocol;
pub use job::{Completion, Job};
pub use lane::Lane;
pub use message::{Activity, AssociationId, Claim, Order, PlainWord, Request};
pub use migration::{Management, Migration, Policy, ProvedHost};
pub use observed::{PlainReport, UseReport};
pub use self_test::SelfTestError;
pub use settings::{Broadcasting, Dhcp, DhcpServer, Legacy, PostQuantum, Requirement, Settings, Weaken};
pub use ticket::{HeldTicket, IssuingKey, Remembered, TicketId};

/// The link layer of one interface, on one thread.
pub type Cll = Whole<Control, Lane>;

/// Builds the link layer of one interface and starts it. `random` is for nonces and indices, never for keys.
#[must_use]
pub fn start(now: Now, settings: Settings, random: Generator, sink: &mut dyn Sink) -> Cll {
    let settings = Arc::new(settings);
    let lanes = (0..settings.lanes).map(|_| Lane::new(Arc::clone(&settings))).collect();
    let mut cll = Whole::new(Control::new(now, settings, random), lanes);
    cll.with_control(now, sink, |control, sink, out| control.start(now, sink, out));
    cll
}

/// What an operator, or whoever acts for him, tells a link layer that runs.
#[derive(Clone, Debug)]
pub enum Instruction {
    /// The site has taken these certificates back.
    Revoke(Arc<Verified<RevocationList>>),
    /// The site's policy is this: hand it on. What follows from it for this host is told apart.
    SitePolicy(Arc<Verified<SitePolicy>>),
    /// The hosts admitted in clear are these from now on.
    Legacy(Vec<Legacy>),
    /// How strictly to keep to sealed frames from now on.
    Policy(Policy),
    /// Forget that the host with this hardware address has proved itself.
    Forget(MacAddress),
    /// This host's certificate is renewed: another for the same site, name and addresses, of a host that neither gives nor gets
    /// addresses by DHCP.
    Renewed(Arc<HostIdentity>),
}

/// Tells a running link layer something.
pub fn instruct(cll: &mut Cll, now: Now, instruction: Instruction, sink: &mut dyn Sink) {
    cll.with_control(now, sink, |control, sink, out| control.instruct(now, instruction, sink, out));
}

/// The hosts that speak in clear and were let in, with what mode `enforce` would have dropped.
#[must_use]
pub fn plain_hosts(cll: &Cll, now: Instant) -> Vec<PlainReport> {
    let mut reports = BTreeMap::new();
    cll.lanes.iter().for_each(|lane| lane.report_plain_hosts(now, &mut reports));
    cll.control.report_plain_hosts(now, &mut reports);
    reports.into_values().collect()
}

/// What compression did.
#[must_use]
pub fn compression(cll: &Cll) -> CompressionReport {
    let mut report = CompressionReport::default();
    cll.lanes.iter().for_each(|lane| report.add(lane.compression()));
    report
}

/// This host begins with this policy of the site, and hands it on.
pub fn begin_with_policy(cll: &mut Cll, now: Now, policy: Arc<Verified<SitePolicy>>, sink: &mut dyn Sink) {
    cll.with_control(now, sink, |control, sink, out| control.follow(now, Instruction::SitePolicy(policy), sink, out));
}

/// The site has taken certificates back: nobody with one of them is believed from now on, and associations with them end.
pub fn revoke(cll: &mut Cll, now: Now, list: Arc<Verified<RevocationList>>, sink: &mut dyn Sink) {
    cll.with_control(now, sink, |control, sink, out| control.follow(now, Instruction::Revoke(list), sink, out));
}

/// Hands over what this host had by lease in an earlier run since the same boot. To be called once,
/// before the first frame, and behind [`revoke`].
pub fn remember_lease(cll: &mut Cll, now: Now, lease: KeptLease, sink: &mut dyn Sink) {
    cll.with_control(now, sink, |control, sink, out| control.remember_lease(now, lease, sink, out));
}

/// Hands over what an earlier run has kept, so that its associations can be resumed. To be called once, before the first frame.
pub fn remember(cll: &mut Cll, now: Now, remembered: Remembered, sink: &mut dyn Sink) {
    cll.with_control(now, sink, |control, sink, out| control.remember(now, remembered, sink, out));
}
