//! What an operator should hear.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::DropReason;
use wire::MacAddress;

/// News of S-ARP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The S-ARP clock was set for the first time.
    ClockSet,
    /// The distributor's time has moved by more than the window; all hosts follow it.
    ClockStepped {
        /// By how much.
        by: Duration,
        /// Whether it went back.
        back: bool,
    },
    /// No distributor answers.
    DistributorsSilent,
    /// A host's key is another than before.
    KeyChanged {
        /// Whose.
        ip: Ipv4Addr,
    },
    /// The distributors have our new key, and we sign with it from now on.
    OwnKeyChanged,
    /// The distributors did not take our new key; we go on signing with the old one.
    OwnKeyKept,
    /// A distributor knows no good key for an address that answered.
    NoKey {
        /// Which.
        ip: Ipv4Addr,
    },
    /// Somebody claims an address of ours.
    AddressClaimed {
        /// Which.
        ip: Ipv4Addr,
        /// His hardware address.
        by: MacAddress,
    },
    /// A signed message was refused.
    Refused {
        /// The address it spoke for, which is a claim.
        ip: Ipv4Addr,
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// Why.
        reason: DropReason,
    },
}

impl Event {
    /// One word for filters and counters.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Event::ClockSet => "clock-set",
            Event::ClockStepped { .. } => "clock-stepped",
            Event::DistributorsSilent => "distributors-silent",
            Event::KeyChanged { .. } => "key-changed",
            Event::OwnKeyChanged => "own-key-changed",
            Event::OwnKeyKept => "own-key-kept",
            Event::NoKey { .. } => "no-key",
            Event::AddressClaimed { .. } => "address-claimed",
            Event::Refused { .. } => "refused",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::ClockSet => f.write_str("the S-ARP clock is set"),
            Event::ClockStepped { by, back } => {
                let direction = if *back { "back" } else { "ahead" };
                write!(f, "the distributor's clock went {direction} by {} s; this host follows", by.as_secs())
            }
            Event::DistributorsSilent => f.write_str("no key distributor answers; known keys go on working"),
            Event::KeyChanged { ip } => write!(f, "{ip} has a new key"),
            Event::OwnKeyChanged => f.write_str("this host signs with its new key"),
            Event::OwnKeyKept => f.write_str("no distributor took this host's new key; the old one stays"),
            Event::NoKey { ip } => write!(f, "{ip} answers but has no good key in this site"),
            Event::AddressClaimed { ip, by } => write!(f, "{by} claims our address {ip}"),
            Event::Refused { ip, mac, reason } => write!(f, "{ip} at {mac} was refused: {}", reason.meaning()),
        }
    }
}
