//! What an operator should hear, and what the host around the link layer must do.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bump::{DropReason, Instant};
use wire::MacAddress;

use crate::migration::ProvedHost;
use crate::ticket::{HeldTicket, IssuingKey, TicketId};

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
    /// The peer speaks in clear again, and mode `observe` lets it.
    FellBack,
    /// This host has another address than the one for which it was made.
    OwnAddress,
    /// Payload waited for ML-KEM, and the exchange did not come to an end.
    Unfinished,
    /// The program itself failed on one of its frames.
    InternalError,
}

impl EndCause {
    fn text(self) -> &'static str {
        match self {
            EndCause::Expired => "its lifetime is over",
            EndCause::Silent => "the peer is silent",
            EndCause::Replaced => "a newer one took its place",
            EndCause::Evicted => "too many peers",
            EndCause::Idle => "nobody used it",
            EndCause::OwnAddress => "this host has another address",
            EndCause::Unfinished => "the ML-KEM exchange did not come to an end",
            EndCause::InternalError => "the program failed on a frame of it",
            EndCause::Revoked => "the site has revoked the peer's certificate",
            EndCause::FellBack => "the peer speaks in clear again",
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
    /// More hosts were asked for than handshakes may be open, for ten seconds.
    Crowded {
        /// Questions that gave way to others before they were answered.
        displaced: u32,
        /// Questions that were not asked.
        not_asked: u32,
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
    /// This host has an address by DHCP, and the certificate for it.
    AddressLeased {
        /// The address.
        ip: Ipv4Addr,
    },
    /// This host has lost the address that it had by DHCP.
    LeaseLost {
        /// The address.
        ip: Ipv4Addr,
    },
    /// This host has made a certificate for an address that its DHCP server gives.
    LeaseCertified {
        /// Who gets it.
        mac: MacAddress,
        /// The address.
        ip: Ipv4Addr,
    },
    /// A DHCP frame was refused although its sender is of this site.
    DhcpRefused {
        /// Its sender.
        mac: MacAddress,
        /// Why.
        reason: DropReason,
        /// In the words of the check that failed.
        detail: String,
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
    /// A host speaks in clear, and was let in.
    Plain {
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// Why mode `enforce` would have dropped its frame.
        reason: DropReason,
    },
    /// Somebody spoke in clear for a host that has proved itself, and was dropped.
    Downgrade {
        /// His source address, which is a claim.
        mac: MacAddress,
        /// Name of the host for which he spoke.
        name: String,
        /// Its hardware address.
        owner: MacAddress,
    },
    /// A manager's machine speaks in clear and is answered so.
    Management {
        /// Its hardware address.
        mac: MacAddress,
        /// Its address.
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
            Event::Crowded { .. } => "handshakes-crowded",
            Event::GroupSender { .. } => "group-sender",
            Event::GroupSilent { .. } => "group-silent",
            Event::GroupRefused { .. } => "group-refused",
            Event::Challenged { .. } => "challenged",
            Event::AddressLeased { .. } => "address-leased",
            Event::LeaseLost { .. } => "lease-lost",
            Event::LeaseCertified { .. } => "lease-certified",
            Event::DhcpRefused { .. } => "dhcp-refused",
            Event::StackSilent { .. } => "stack-silent",
            Event::Plain { .. } => "plain",
            Event::Downgrade { .. } => "downgrade",
            Event::Management { .. } => "management-in-clear",
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
            Event::Crowded { displaced, not_asked } => write!(
                f,
                "more hosts were asked for than handshakes may be open: {displaced} questions gave way to others, \
                 {not_asked} were not asked; if no host has just joined, somebody sweeps addresses, through this \
                 host or on it"
            ),
            Event::GroupSender { name, mac } => write!(f, "group frames of {name} ({mac}) are proved"),
            Event::GroupSilent { mac } => write!(f, "group frames came from {mac}, which does not say that it lives"),
            Event::GroupRefused { mac, reason, detail } => {
                write!(f, "group frame from {mac} refused ({}): {detail}", reason.word())
            }
            Event::Challenged { mac } => write!(f, "{mac} must prove that its handshake is fresh"),
            Event::Plain { mac, reason } => {
                write!(f, "{mac} speaks in clear; mode enforce would drop that ({})", reason.word())
            }
            Event::Downgrade { mac, name, owner } => {
                write!(f, "{mac} speaks in clear for {name} ({owner}), which has proved itself: dropped")
            }
            Event::Management { mac, ip } => write!(f, "the management machine {mac} ({ip}) is answered in clear"),
            Event::AddressLeased { ip } => write!(f, "this host has {ip} by DHCP, with a certificate"),
            Event::LeaseLost { ip } => write!(f, "this host has lost {ip}, which it had by DHCP"),
            Event::LeaseCertified { mac, ip } => write!(f, "{mac} has {ip} by DHCP, with a certificate"),
            Event::DhcpRefused { mac, reason, detail } => {
                write!(f, "DHCP of {mac} refused ({}): {detail}", reason.word())
            }
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
    /// This host is no legacy host any more: forget its permanent neighbour entry.
    ForgetNeighbour {
        /// Its address.
        ip: Ipv4Addr,
        /// Its hardware address.
        mac: MacAddress,
    },
    /// Check this site policy, which a peer gave, and have it in force if the site's authority
    /// signed it and it is newer.
    CheckPolicy {
        /// Who gave it.
        from: MacAddress,
        /// The policy with its signature.
        bytes: Vec<u8>,
    },
    /// Check this revocation list, which a peer gave, and have it in force if the site's authority signed it and it is newer.
    CheckRevocationList {
        /// Who gave it.
        from: MacAddress,
        /// The list in DER.
        der: Vec<u8>,
    },
    /// Remember, beyond the end of this program, that this host has proved itself.
    Remember(ProvedHost),
    /// Remember, beyond the end of this program, what this host's clock showed in a handshake that
    /// was verified: what it said before is a recording.
    RememberTime {
        /// Whose clock.
        mac: MacAddress,
        /// What it showed, in milliseconds since 1970.
        unix_ms: u64,
    },
    /// Keep this ticket for the next run, in the place of another of the same peer (paper, section 7.1).
    KeepTicket(Box<HeldTicket>),
    /// Forget the ticket of this peer.
    ForgetTicket(MacAddress),
    /// Keep these keys of tickets for the next run, in the place of those before; newest first.
    KeepTicketKeys(Vec<IssuingKey>),
    /// Keep, for the next run, that our ticket of this number is not taken any more.
    KeepSpent(TicketId),
    /// Keep, for a next run since the same boot, what this host has by lease. Its DHCP program does
    /// not ask again until half of the lease is over.
    KeepLease(KeptLease),
    /// The lease is over.
    ForgetLease,
}

/// What a host has by lease, beyond the end of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLease {
    /// The address.
    pub address: Ipv4Addr,
    /// When it ends, since the boot; `None` for never.
    pub until: Option<Instant>,
    /// The certificate that came with it, as it came. It is checked anew.
    pub certificate: Vec<u8>,
}
