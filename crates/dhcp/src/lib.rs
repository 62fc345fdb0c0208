//! S-DHCP: DHCP that is proved, beside unmodified DHCP programs (S-ARP paper, section 3.5.2; docs/s-dhcp.md).
//!
//! Two state machines that stand between a DHCP program and the wire. [`Client`] adds a proof to what this host asks and lets
//! in what a DHCP server of the site proves to be its answer. [`Server`] lets in what a host of the site asks, after a key
//! distributor has agreed to the address, and adds a proof to what the server program answers. Neither sends or receives:
//! they are handed messages, say what is to be signed, checked or asked, and are told how that ended. `sarp::Host` does so.
//!
//! [`link`] is the same for the link layer, where leases come with certificates: the CLL paper's section 6.
//!
//! Reading order: [`proof`], [`client`], [`server`], [`link`], [`limits`]. They trust what `identity` verified and what a key
//! distributor signed, and nothing that a message says.

pub mod client;
pub mod limits;
pub mod link;
pub mod proof;
pub mod server;
mod stamp;

pub use client::Client;
pub use proof::{Claimed, Proving};
pub use server::Server;

use std::net::Ipv4Addr;

use bump::Instant;

/// An address that was given to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// To which host, by its number.
    pub host: u64,
    /// When it ends; `None` for never.
    pub until: Option<Instant>,
}

impl Lease {
    /// Whether it lasts at `now`.
    #[must_use]
    pub fn holds(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// When a lease of so many seconds ends (RFC 2131, section 3.3: the largest number is for ever).
fn end_of(now: Instant, lease_s: u32) -> Option<Instant> {
    (lease_s != u32::MAX).then(|| now + std::time::Duration::from_secs(u64::from(lease_s)))
}
