//! What is known here of the host that is asked about.

use std::net::IpAddr;

use crate::protocol::{About, Event, Example, Key, Peer, Status};

/// How long what happened says something about now.
pub(super) const LATELY_MS: u64 = 600_000;

/// The host that is asked about, under all names that it has here.
#[derive(Clone, Debug, Default)]
pub(super) struct Target {
    /// As it was given.
    pub(super) asked: String,
    pub(super) name: Option<String>,
    pub(super) macs: Vec<String>,
    pub(super) ips: Vec<IpAddr>,
}

impl Target {
    pub(super) fn has_mac(&self, mac: &str) -> bool {
        self.macs.iter().any(|own| own == mac)
    }

    pub(super) fn has_ip(&self, ip: &str) -> bool {
        ip.parse().is_ok_and(|ip: IpAddr| self.ips.contains(&ip))
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Whether an event is about it, or about somebody who claims to be it.
    pub(super) fn is_in(&self, about: &About) -> bool {
        about.mac.as_ref().is_some_and(|mac| self.has_mac(mac))
            || about.ip.as_ref().is_some_and(|ip| self.has_ip(ip))
            || about.name.as_ref().is_some_and(|name| self.has_name(name))
    }

    /// Whether this is what the daemon knows of it.
    pub(super) fn is_peer(&self, peer: &Peer) -> bool {
        self.has_mac(&peer.mac) || self.has_name(&peer.name) || peer.addresses.iter().any(|ip| self.has_ip(ip))
    }

    /// The address to type elsewhere.
    pub(super) fn word(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.asked)
    }
}

/// Whom the daemon knows.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Associations, in mode `cll`.
    Peers(Vec<Peer>),
    /// Keys, in mode `sarp`.
    Keys(Vec<Key>),
    /// A mode that knows no hosts.
    Nobody,
}

/// Where packets to it go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To this host itself.
    Here,
    /// Over the guarded interface, straight to it.
    Link,
    /// To a router.
    Via(IpAddr),
    /// Over another interface.
    Elsewhere(String),
    /// Nowhere, in the kernel's words.
    Nowhere(String),
    /// Only its hardware address or name is known.
    Unknown,
}

/// What came of packets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// None was sent.
    Untried,
    /// It answers no ping, which many hosts do.
    Silent,
    /// It answers short pings and long ones.
    Whole,
    /// It answers short ones only; this long is too long, in bytes of IP.
    Short(u32),
}

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) target: Target,
    pub(super) status: Box<Status>,
    pub(super) known: Known,
    pub(super) events: Vec<Event>,
    pub(super) examples: Vec<Example>,
    pub(super) way: Way,
    /// The state of the kernel's neighbour entry.
    pub(super) neighbour: Option<String>,
    pub(super) path: Path,
    /// Whether a packet was sent to see what happens.
    pub(super) is_tried: bool,
    pub(super) unix_ms: u64,
}

impl Facts {
    /// What the daemon knows of it, the association in use first.
    pub(super) fn peer(&self) -> Option<&Peer> {
        let Known::Peers(peers) = &self.known else { return None };
        let of_target = || peers.iter().filter(|peer| self.target.is_peer(peer));
        of_target().find(|peer| peer.state == "established").or_else(|| of_target().next())
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.peer().is_some_and(|peer| peer.state == "established")
    }

    /// When what happened before does not count any more, in milliseconds since 1970: an association that came after it
    /// has settled it.
    fn settled_ms(&self) -> u64 {
        let lately = self.unix_ms.saturating_sub(LATELY_MS);
        let since = self.peer().filter(|peer| peer.state == "established").map(|peer| peer.age_s);
        since.map_or(lately, |age_s| lately.max(self.unix_ms.saturating_sub(age_s * 1000)))
    }

    /// What happened with it and is not settled, the newest first.
    pub(super) fn news(&self) -> impl Iterator<Item = &Event> {
        let settled = self.settled_ms();
        let is_news = move |event: &&Event| event.unix_ms >= settled && self.target.is_in(&event.about);
        self.events.iter().rev().filter(is_news)
    }

    /// Frames of it that were dropped lately.
    pub(super) fn dropped(&self) -> impl Iterator<Item = &Example> {
        let reach_ms = self.unix_ms.saturating_sub(self.settled_ms());
        self.examples.iter().filter(move |one| one.ago_ms <= reach_ms && self.target.has_mac(&one.source))
    }

    /// The hardware address that the list in force of plain hosts gives it.
    pub(super) fn listed(&self) -> Option<(&str, &str)> {
        let listed = &self.status.parts.migration.as_ref()?.legacy;
        let found = listed.iter().find(|(ip, mac)| self.target.has_ip(ip) || self.target.has_mac(mac));
        found.map(|(ip, mac)| (ip.as_str(), mac.as_str()))
    }

    /// What to type at the other end.
    pub(super) fn ask_there(&self) -> String {
        let own = self.status.identity.as_ref();
        let own = own.map_or("THIS-HOST", |own| own.addresses.first().unwrap_or(&own.mac));
        format!("only {} can say more: type there `ringwall why {own}`", self.target.word())
    }
}
