//! What an operator may want to see of a host's S-ARP.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::ring::KeyReport;

/// The state of a host's S-ARP at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Seconds since 1970 on the S-ARP clock, once a distributor has told the time.
    pub clock_unix_s: Option<u32>,
    /// Requests to distributors that are open.
    pub open_requests: usize,
    /// Whether the distributors were silent when they were last asked.
    pub distributors_silent: bool,
    /// The place in the list of the distributor that is asked first.
    pub preferred_distributor: usize,
    /// Signatures that this host has made since its start, as a distributor, too.
    pub signatures: u64,
    /// Signatures of others that it has checked.
    pub verifications: u64,
    /// The public half of what this host signs with.
    pub own_key: Vec<u8>,
    /// Whether the distributors are being asked to take another one.
    pub key_is_changing: bool,
    /// The ring of keys.
    pub keys: Vec<KeyReport>,
    /// Addresses that this host has by lease, and, on a DHCP server, those that it gave.
    pub leases: Vec<LeaseReport>,
}

/// A lease that lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseReport {
    /// The address.
    pub ip: Ipv4Addr,
    /// The number of the host that has it.
    pub host: u64,
    /// How long it still lasts; `None` for ever.
    pub remaining: Option<Duration>,
    /// Whether this host gave it to another.
    pub given: bool,
}
