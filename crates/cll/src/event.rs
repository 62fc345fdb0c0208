//! What an operator should hear, and what the host around the link layer must do.

use std::fmt;
use std::net::Ipv4Addr;

use bump::DropReason;
use wire::MacAddress;

use crate::ticket::{HeldTicket, IssuingKey};

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
    /// An association is in use that a ticket led to, without a signature.
    Resumed {
        /// Name in the peer's certificate.
        name: String,
        /// The peer.
        mac: MacAddress,
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
        ip: Ipv4Addr,
        /// Why.
        reason: DropReason,
        /// In the words of the check that failed.
        detail: String,
    },
    /// Nobody answered our handshake.
    NoAnswer {
        /// The address that was asked for.
        ip: Option<Ipv4Addr>,
        /// The host that was asked.
        mac: Option<MacAddress>,
    },
    /// A host was asked to prove that it is there now.
    Challenged {
        /// Its source address, which is a claim.
        mac: MacAddress,
    },
    /// Our own stack did not answer a verified request for our address.
    StackSilent {
        /// The address that was asked for.
        ip: Ipv4Addr,
    },
}

impl Event {
    /// One word for filters and metrics.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Event::Established { .. } => "established",
            Event::Resumed { .. } => "resumed",
            Event::Renewed { .. } => "renewed",
            Event::Ended { .. } => "ended",
            Event::Refused { .. } => "refused",
            Event::NoAnswer { .. } => "no-answer",
            Event::Challenged { .. } => "challenged",
            Event::StackSilent { .. } => "stack-silent",
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
            Event::Resumed { name, mac, initiated, receives, sends } => {
                let who = if *initiated { "we asked" } else { "they asked" };
                write!(f, "association with {name} ({mac}) resumed, {who}; we send {sends}, they send {receives}")
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
            Event::Challenged { mac } => write!(f, "{mac} must prove that its handshake is fresh"),
            Event::StackSilent { ip } => write!(f, "our own stack did not answer for {ip}: is it configured?"),
        }
    }
}

/// Something the host around the link layer must do. Those of tickets carry secrets, and none is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Set a permanent neighbour entry for a legacy host (paper, section 7.1).
    PermanentNeighbour {
        /// Its address.
        ip: Ipv4Addr,
        /// Its hardware address.
        mac: MacAddress,
    },
    /// Keep this ticket for the next run, in the place of another of the same peer (paper, section 7.1).
    KeepTicket(Box<HeldTicket>),
    /// Forget the ticket of this peer.
    ForgetTicket(MacAddress),
    /// Keep these keys of tickets for the next run, in the place of those before; newest first.
    KeepTicketKeys(Vec<IssuingKey>),
}
