//! What an operator should hear, and what the host around the link layer must do.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bump::DropReason;
use wire::MacAddress;

/// Why an association ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// Its lifetime is over.
    Expired,
    /// The peer did not answer any more.
    Silent,
    /// A newer one took its place.
    Replaced,
    /// There was no room for one more.
    Evicted,
    /// Nobody used it.
    Idle,
    /// The site has taken the peer's certificate back.
    Revoked,
}

impl EndCause {
    fn text(self) -> &'static str {
        match self {
            EndCause::Expired => "its lifetime is over",
            EndCause::Silent => "the peer is silent",
            EndCause::Replaced => "a newer one took its place",
            EndCause::Evicted => "too many peers",
            EndCause::Idle => "nobody used it",
            EndCause::Revoked => "the site has revoked the peer's certificate",
        }
    }
}

/// News of the link layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An association is in use.
    Established {
        /// Name in the peer's certificate.
        name: String,
        /// The peer.
        mac: MacAddress,
        /// Addresses in the peer's certificate.
        addresses: Vec<Ipv4Addr>,
        /// Whether this host asked.
        initiated: bool,
        /// How the peer protects what it sends.
        receives: String,
        /// How this host protects what it sends.
        sends: String,
    },
    /// The keys of an association were replaced through it.
    Renewed {
        /// Name in the peer's certificate.
        name: String,
        /// The peer.
        mac: MacAddress,
        /// Whether this host asked.
        initiated: bool,
        /// How many times since the handshake.
        rollovers: u32,
    },
    /// An association is over.
    Ended {
        /// Name in the peer's certificate.
        name: String,
        /// The peer.
        mac: MacAddress,
        /// Why.
        cause: EndCause,
    },
    /// A handshake message that came as far as a certificate or signature was refused.
    Refused {
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// The address it spoke for, which is a claim.
        ip: IpAddr,
        /// Why.
        reason: DropReason,
        /// In the words of the check that failed.
        detail: String,
    },
    /// Nobody answered our handshake.
    NoAnswer {
        /// The address that was asked for.
        ip: Option<IpAddr>,
        /// The host that was asked.
        mac: Option<MacAddress>,
    },
    /// A host that sends to groups has proved who it is and that it lives.
    GroupSender {
        /// Name in its certificate.
        name: String,
        /// The host.
        mac: MacAddress,
    },
    /// A host in whose name frames to groups came did not say that it lives.
    GroupSilent {
        /// Their source address, which is a claim.
        mac: MacAddress,
    },
    /// A group frame or an announcement that came as far as a certificate or signature was refused.
    GroupRefused {
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// Why.
        reason: DropReason,
        /// In the words of the check that failed.
        detail: String,
    },
    /// A host was asked to prove that it is there now.
    Challenged {
        /// Its source address, which is a claim.
        mac: MacAddress,
    },
    /// Our own stack did not answer a verified request for our address.
    StackSilent {
        /// The address that was asked for.
        ip: IpAddr,
    },
    /// A proved host used an IPv6 address that another has, or more than it may.
    ClaimRefused {
        /// Name in the peer's certificate.
        name: String,
        /// The peer.
        mac: MacAddress,
        /// The address.
        ip: Ipv6Addr,
        /// Why.
        reason: DropReason,
    },
    /// A proved host says that it has an IPv6 address which our stack was about to take.
    AddressDenied {
        /// Name in the peer's certificate.
        name: String,
        /// The peer.
        mac: MacAddress,
        /// The address.
        ip: Ipv6Addr,
    },
}

impl Event {
    /// One word for filters and metrics.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Event::Established { .. } => "established",
            Event::Renewed { .. } => "renewed",
            Event::Ended { .. } => "ended",
            Event::Refused { .. } => "refused",
            Event::NoAnswer { .. } => "no-answer",
            Event::GroupSender { .. } => "group-sender",
            Event::GroupSilent { .. } => "group-silent",
            Event::GroupRefused { .. } => "group-refused",
            Event::Challenged { .. } => "challenged",
            Event::StackSilent { .. } => "stack-silent",
            Event::ClaimRefused { .. } => "claim-refused",
            Event::AddressDenied { .. } => "address-denied",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Established { name, mac, initiated, receives, sends, .. } => {
                let who = if *initiated { "we asked" } else { "they asked" };
                write!(f, "association with {name} ({mac}), {who}; we send {sends}, they send {receives}")
            }
            Event::Renewed { name, mac, initiated, rollovers } => {
                let who = if *initiated { "we asked" } else { "they asked" };
                write!(f, "new keys with {name} ({mac}), {who}; rollover {rollovers} since the handshake")
            }
            Event::Ended { name, mac, cause } => write!(f, "association with {name} ({mac}) ended: {}", cause.text()),
            Event::Refused { mac, ip, reason, detail } => {
                write!(f, "handshake from {mac} for {ip} refused ({}): {detail}", reason.word())
            }
            Event::NoAnswer { ip, mac } => {
                let ip = ip.map_or_else(|| "any address".to_owned(), |ip| ip.to_string());
                let mac = mac.map_or_else(|| "anybody".to_owned(), |mac| mac.to_string());
                write!(f, "no answer to our handshake for {ip} at {mac}")
            }
            Event::GroupSender { name, mac } => write!(f, "group frames of {name} ({mac}) are proved"),
            Event::GroupSilent { mac } => write!(f, "group frames came from {mac}, which does not say that it lives"),
            Event::GroupRefused { mac, reason, detail } => {
                write!(f, "group frame from {mac} refused ({}): {detail}", reason.word())
            }
            Event::Challenged { mac } => write!(f, "{mac} must prove that its handshake is fresh"),
            Event::ClaimRefused { name, mac, ip, reason } => {
                write!(f, "{name} ({mac}) may not use {ip} ({})", reason.word())
            }
            Event::AddressDenied { name, mac, ip } => {
                write!(f, "{name} ({mac}) says that it has {ip}, which our own stack was about to take")
            }
            Event::StackSilent { ip } => write!(f, "our own stack did not answer for {ip}: is it configured?"),
        }
    }
}

/// Something the host around the link layer must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Set a permanent neighbour entry for a legacy host (paper, section 7.1).
    PermanentNeighbour {
        /// Its address.
        ip: Ipv4Addr,
        /// Its hardware address.
        mac: MacAddress,
    },
}
