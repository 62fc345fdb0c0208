//! DHCP under the link layer (CLL paper, section 6; docs/protocol.md, section 22), beside unmodified DHCP programs.
//!
//! - [`client`]: what this host asks leaves under its DHCP key, and only answers under that key come in.
//! - [`server`]: only what a host of the site asks comes in, and each lease leaves with a certificate.
//! - `freshness`: whether a client's frame is new, whatever its clock says.
//! - `wrapping`: a DHCP message becomes a DHCP frame and is one again.
//!
//! Both halves are handed frames and say what is to be sent, delivered, checked or certified. `cll::Control` does so. They trust a
//! tag under the client's key, and of what is under it only what fits the addresses that it came with.

pub mod client;
mod freshness;
pub mod server;
mod wrapping;

use std::fmt;
use std::net::Ipv4Addr;

use bump::Instant;
use identity::Verified;
use identity::certificate::HostCertificate;
use wire::{EtherType, MacAddress};

pub use client::Client;
pub use server::Server;

/// Random bytes of a certificate's serial number.
pub const SERIAL_LEN: usize = 16;

/// The wire that DHCP frames travel on.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// EtherType of our frames.
    pub ethertype: EtherType,
    /// Its MTU, in bytes.
    pub mtu: u16,
}

/// An address that a client has from this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leased {
    /// The address.
    pub address: Ipv4Addr,
    /// Whose it is.
    pub mac: MacAddress,
    /// When it is free again; `None` for never.
    pub until: Option<Instant>,
}

impl Leased {
    fn holds(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// What a client is to have a certificate for.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The certificate that it showed.
    pub base: Verified<HostCertificate>,
    /// Its address.
    pub address: Ipv4Addr,
    /// When it is given, in Unix seconds.
    pub from_unix_s: u64,
    /// The last second of the lease, in Unix seconds.
    pub until_unix_s: u64,
    /// A fresh random number.
    pub serial: [u8; SERIAL_LEN],
}

/// Makes the certificates of leases: the second authority of a site. Slow: it signs.
pub trait LeaseAuthority: fmt::Debug + Send + Sync {
    /// The certificate of a lease as it travels.
    ///
    /// # Errors
    /// Why there is none, in words for the operator.
    fn certify(&self, grant: &Grant) -> Result<Vec<u8>, String>;
}
