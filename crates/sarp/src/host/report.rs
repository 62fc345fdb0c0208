//! What an operator may want to see of a host's S-ARP.

use std::net::Ipv4Addr;
use std::time::Duration;

use bump::Instant;
use wire::MacAddress;

use super::Host;

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

/// A key in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReport {
    /// Whose.
    pub ip: Ipv4Addr,
    /// The only hardware address that may speak for it, if the site binds one.
    pub mac: Option<MacAddress>,
    /// How long ago a distributor vouched for it.
    pub fetched_ago: Duration,
    /// Whether a message of its owner has been verified.
    pub heard: bool,
}

impl Host {
    /// The state at `now`, the keys in the order of their addresses.
    #[must_use]
    pub fn report(&self, now: Instant) -> Report {
        Report {
            clock_unix_s: self.clock.read(now).map(crate::Stamp::seconds),
            open_requests: self.enquiries.len(),
            distributors_silent: self.silence_reported,
            preferred_distributor: self.enquiries.preferred(),
            signatures: self.signatures,
            verifications: self.verifications,
            keys: self.ring.report(now),
            leases: self.leases(now),
        }
    }

    fn leases(&self, now: Instant) -> Vec<LeaseReport> {
        let report = |lease: dhcp::Lease, given: bool| LeaseReport {
            ip: lease.address,
            host: lease.host,
            remaining: lease.until.map(|until| until.since(now)),
            given,
        };
        let own = self.dhcp_client.iter().flat_map(|client| client.leases(now)).map(|lease| report(lease, false));
        let given = self.dhcp_server.iter().flat_map(|server| server.leases(now)).map(|lease| report(lease, true));
        own.chain(given).collect()
    }
}
