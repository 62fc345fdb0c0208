//! The cryptographic link layer (CLL): every frame between two hosts is authenticated and, by choice, encrypted.
//!
//! From the paper "CLL: A Cryptographic Link Layer for Local Area Networks" (Jerschow, Lochert, Scheuermann, Mauve),
//! whose sections the modules follow:
//!
//! - section 3, the cross-layer check: `origin`
//! - section 5.1, the frames: `wire::cll`
//! - section 5.2, the ARP handshake: `control`, its public key work: `job`, its keys: `keys`
//! - section 5.3, unicast frames: `lane`
//! - section 5.5, frames to groups: `control/broadcast`, their public key work: `job/broadcast`, their batches: `merkle`
//! - section 5.4, rollover: `control/rollover`, its public key work: `job/rollover`
//! - section 7.1, legacy hosts: `settings`, `lane`
//!
//! Beyond the paper: IPv6 (`origin`, `neighbours`, `control/discovery`), candidates and promotion, challenges, liveness, a replay window and spinning nonces (both in `shield`), a tag
//! under the site key in front of every signature. `docs/protocol.md` has every byte.
//!
//! Trust: nothing from the wire is believed before a tag or signature is verified, and what an enrolled host says about
//! its addresses is compared with its certificate even then. `identity` alone makes `Verified` values.

mod control;
mod event;
mod hold;
mod job;
mod keys;
mod lane;
pub mod limits;
mod merkle;
mod message;
mod neighbours;
mod origin;
#[cfg(test)]
mod paper_vectors;
mod revocation;
mod self_test;
mod settings;
#[cfg(test)]
mod vectors;

use std::sync::Arc;

use bump::{Generator, Now, Sink, Whole};
use identity::Verified;
use identity::revocation::RevocationList;

pub use control::{Control, PeerReport};
pub use event::{Effect, EndCause, Event};
pub use job::{Completion, Job};
pub use lane::Lane;
pub use message::{Activity, AssociationId, Claim, Order, Request};
pub use self_test::SelfTestError;
pub use settings::{Broadcasting, Legacy, Requirement, Settings, Weaken};

/// The link layer of one interface, on one thread.
pub type Cll = Whole<Control, Lane>;

/// Builds the link layer of one interface and starts it. `random` is for nonces and indices, never for keys.
#[must_use]
pub fn start(now: Now, settings: Settings, random: Generator, sink: &mut dyn Sink) -> Cll {
    let settings = Arc::new(settings);
    let lanes = (0..settings.lanes).map(|_| Lane::new(Arc::clone(&settings))).collect();
    let mut cll = Whole::new(Control::new(now, settings, random), lanes);
    cll.with_control(now, sink, |control, _, out| control.start(out));
    cll
}

/// The site has taken certificates back: nobody with one of them is believed from now on, and associations with them end.
pub fn revoke(cll: &mut Cll, now: Now, list: Arc<Verified<RevocationList>>, sink: &mut dyn Sink) {
    cll.with_control(now, sink, |control, sink, out| control.revoke(now, list, sink, out));
}
