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
    /// The ring of keys.
    pub keys: Vec<KeyReport>,
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
            keys: self.ring.report(now),
        }
    }
}
