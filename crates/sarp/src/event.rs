//! What an operator should hear.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::DropReason;
use wire::MacAddress;
use wire::sarp::data::Refusal;

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
    /// This host has an address by DHCP, from a server that proved itself.
    AddressLeased {
        /// Which.
        ip: Ipv4Addr,
    },
    /// A lease of this host has ended or was withdrawn.
    LeaseLost {
        /// Of which address.
        ip: Ipv4Addr,
    },
    /// As a DHCP server: a distributor refused a client.
    LeaseRefused {
        /// The address that it was to have; unspecified if none yet.
        ip: Ipv4Addr,
        /// The client's number.
        host: u64,
        /// Why.
        why: Option<Refusal>,
    },
    /// As a DHCP server: the distributors could not be told of a lease.
    LeaseUntold {
        /// Of which address.
        ip: Ipv4Addr,
    },
    /// A DHCP reply was refused.
    DhcpServerRefused {
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// Why.
        reason: DropReason,
    },
    /// Another DHCP message was refused.
    DhcpRefused {
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// Why.
        reason: DropReason,
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
            Event::AddressLeased { .. } => "address-leased",
            Event::LeaseLost { .. } => "lease-lost",
            Event::LeaseRefused { .. } => "lease-refused",
            Event::LeaseUntold { .. } => "lease-untold",
            Event::DhcpServerRefused { .. } => "dhcp-server-refused",
            Event::DhcpRefused { .. } => "dhcp-refused",
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
            Event::AddressLeased { ip } => write!(f, "this host has {ip} by DHCP and speaks for it"),
            Event::LeaseLost { ip } => write!(f, "the lease of {ip} has ended; this host no longer speaks for it"),
            Event::LeaseRefused { ip, host, why } => {
                write!(f, "host number {host} gets no lease of {ip}: {}", because(*why))
            }
            Event::LeaseUntold { ip } => write!(f, "no key distributor could be told of the lease of {ip}"),
            Event::DhcpServerRefused { mac, reason } => {
                write!(f, "a DHCP reply from {mac} was refused: {}", reason.meaning())
            }
            Event::DhcpRefused { mac, reason } => write!(f, "DHCP from {mac} was refused: {}", reason.meaning()),
            Event::Refused { ip, mac, reason } => write!(f, "{ip} at {mac} was refused: {}", reason.meaning()),
        }
    }
}

fn because(why: Option<Refusal>) -> &'static str {
    match why {
        Some(Refusal::NotServer) => "this host has not the role dhcp in the site's repository",
        Some(Refusal::NotGood) => "it is not enrolled, is revoked, or its time is over",
        Some(Refusal::Signature) => "the request is not signed by its key",
        Some(Refusal::Mac) => "the site binds it to another hardware address",
        Some(Refusal::OutsideSubnets) => "the address lies outside the subnets of its profile",
        Some(Refusal::Taken) => "another host has the address",
        Some(Refusal::NotHeld) => "the repository does not know that it has the address",
        None => "the distributor did not say why",
    }
}
