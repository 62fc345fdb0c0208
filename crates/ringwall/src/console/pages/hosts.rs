//! Whom the daemons know, in groups.

use std::collections::BTreeSet;

use super::super::look::{Daemon, Known};
use super::frame::span;
use crate::output::clean;
use crate::protocol::{Answer, Key, Pair, Peer};

/// How somebody speaks with this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    Sealed,
    Signed,
    Plain,
    Legacy,
    Unknown,
}

impl Group {
    pub(super) const ALL: [Group; 5] = [Group::Sealed, Group::Signed, Group::Plain, Group::Legacy, Group::Unknown];

    pub(super) fn word(self) -> &'static str {
        match self {
            Group::Sealed => "sealed",
            Group::Signed => "signed",
            Group::Plain => "plain",
            Group::Legacy => "legacy",
            Group::Unknown => "unknown",
        }
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Group::Sealed => "every frame encrypted and authenticated, or every packet behind the shield",
            Group::Signed => "ARP signed; what it carries is not",
            Group::Plain => "in clear, and let in by the mode of migration",
            Group::Legacy => "in clear, because it is on the list for that",
            Group::Unknown => "agreeing on keys now, or never heard",
        }
    }
}

/// By whom it is known.
enum Of<'a> {
    Peer(&'a Peer),
    Key(&'a Key),
    Pair(&'a Pair),
    /// On the list of hosts that speak in clear: address and hardware address.
    Listed(&'a str, &'a str),
}

/// One host, as the daemon of one interface knows it.
pub(super) struct Seen<'a> {
    pub(super) interface: &'a str,
    pub(super) group: Group,
    of: Of<'a>,
}

impl<'a> Seen<'a> {
    pub(super) fn peer(&self) -> Option<&'a Peer> {
        if let Of::Peer(peer) = self.of { Some(peer) } else { None }
    }

    /// Its name; what it has instead, if it has none.
    pub(super) fn name(&self) -> String {
        match self.of {
            Of::Peer(peer) if peer.name != "-" => clean(&peer.name),
            _ => "no name".to_owned(),
        }
    }

    pub(super) fn mac(&self) -> &'a str {
        match self.of {
            Of::Peer(peer) => &peer.mac,
            Of::Key(key) => key.mac.as_deref().unwrap_or("-"),
            Of::Pair(_) => "-",
            Of::Listed(_, mac) => mac,
        }
    }

    pub(super) fn addresses(&self) -> String {
        match self.of {
            Of::Peer(peer) if peer.addresses.is_empty() => "-".to_owned(),
            Of::Peer(peer) => clean(&peer.addresses.join(" ")),
            Of::Key(key) => clean(&key.address),
            Of::Pair(pair) => pair.address.to_string(),
            Of::Listed(address, _) => clean(address),
        }
    }

    /// What a link to it names: an address of its card, or one of the network.
    pub(super) fn id(&self) -> String {
        if self.mac() == "-" { self.addresses() } else { self.mac().to_owned() }
    }

    pub(super) fn state(&self) -> String {
        match self.of {
            Of::Peer(peer) if peer.resumed => format!("{}, resumed by a ticket", clean(&peer.state)),
            Of::Peer(peer) => clean(&peer.state),
            Of::Key(key) if key.heard => "key verified".to_owned(),
            Of::Key(_) => "key fetched, never heard".to_owned(),
            Of::Pair(pair) if pair.has_shield => "behind the shield".to_owned(),
            Of::Pair(_) => "without a shield".to_owned(),
            Of::Listed(..) => "on the legacy list".to_owned(),
        }
    }

    pub(super) fn heard(&self) -> String {
        let ago = |seconds: u64| format!("{} ago", span(seconds));
        match self.of {
            Of::Peer(peer) => peer.last_opened_s.map_or_else(|| "never".to_owned(), ago),
            Of::Key(key) => format!("key {}", ago(key.fetched_s)),
            Of::Pair(_) | Of::Listed(..) => "-".to_owned(),
        }
    }

    /// Whether it has `text`, which is in small letters.
    fn has(&self, text: &str) -> bool {
        let has = |other: &str| other.to_lowercase().contains(text);
        let in_addresses = match self.of {
            Of::Peer(peer) => has(&peer.name) || peer.addresses.iter().any(|address| has(address)),
            _ => has(&self.addresses()),
        };
        in_addresses || has(self.mac()) || has(self.interface)
    }
}

/// All of them, in the daemons' order.
pub(super) fn seen<'a>(daemons: &'a [Daemon], known: &'a [Known]) -> Vec<Seen<'a>> {
    let listed: Vec<(&str, &str, &str)> = daemons.iter().flat_map(of_list).collect();
    // A list is one interface's: on another one the same hardware address is somebody else.
    let listed_macs: BTreeSet<(&str, &str)> = listed.iter().map(|(interface, _, mac)| (*interface, *mac)).collect();
    let mut seen: Vec<Seen<'_>> = known.iter().flat_map(|known| of_known(known, &listed_macs)).collect();
    let heard: BTreeSet<(&str, &str)> = seen.iter().map(|seen| (seen.interface, seen.mac())).collect();
    let silent: Vec<Seen<'_>> = listed
        .into_iter()
        .filter(|(interface, _, mac)| !heard.contains(&(*interface, *mac)))
        .map(|(interface, address, mac)| Seen { interface, group: Group::Legacy, of: Of::Listed(address, mac) })
        .collect();
    seen.extend(silent);
    seen
}

/// Interface, address and hardware address of those that may speak in clear.
fn of_list(daemon: &Daemon) -> Vec<(&str, &str, &str)> {
    let migration = daemon.host().and_then(|status| status.parts.migration.as_ref());
    let legacy = migration.iter().flat_map(|migration| &migration.legacy);
    legacy.map(|(address, mac)| (daemon.interface(), address.as_str(), mac.as_str())).collect()
}

fn of_known<'a>(known: &'a Known, listed: &BTreeSet<(&str, &str)>) -> Vec<Seen<'a>> {
    let interface = known.interface.as_str();
    match &known.answer {
        Answer::Peers { peers } => {
            let group = |peer: &Peer| match peer.state.as_str() {
                "established" => Group::Sealed,
                "plain" if listed.contains(&(interface, peer.mac.as_str())) => Group::Legacy,
                "plain" => Group::Plain,
                _ => Group::Unknown,
            };
            peers.iter().map(|peer| Seen { interface, group: group(peer), of: Of::Peer(peer) }).collect()
        }
        Answer::Keys { keys } => {
            let group = |key: &Key| if key.heard { Group::Signed } else { Group::Unknown };
            keys.iter().map(|key| Seen { interface, group: group(key), of: Of::Key(key) }).collect()
        }
        Answer::Pairs { pairs } => {
            let group = |pair: &Pair| if pair.has_shield { Group::Sealed } else { Group::Plain };
            pairs.iter().map(|pair| Seen { interface, group: group(pair), of: Of::Pair(pair) }).collect()
        }
        _ => Vec::new(),
    }
}

/// How many of each group there are, in the order of [`Group::ALL`].
pub(super) fn counts(seen: &[Seen<'_>]) -> [usize; Group::ALL.len()] {
    Group::ALL.map(|group| seen.iter().filter(|one| one.group == group).count())
}

/// Those of a group, where one is named, that have this text.
pub(super) fn keep(seen: &mut Vec<Seen<'_>>, group: &str, text: &str) {
    let text = text.to_lowercase();
    seen.retain(|one| (group.is_empty() || one.group.word() == group) && (text.is_empty() || one.has(&text)));
}
