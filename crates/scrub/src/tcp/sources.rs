//! How many places of the table each host holds by connections that it opened.
//!
//! Whoever has an address and answers there opens connections that look like anybody's. So a host
//! may open one more while it holds less than a part of the places that are free: the threshold of
//! Choudhury and Hahne (IEEE/ACM Transactions on Networking 6(2), 1998) for a buffer that many
//! share. A host alone may have many. The fuller the table is the fewer each may have, and places
//! stay free for whoever comes last. Half-open connections do not count, since their source may be
//! spoofed.

use std::net::{IpAddr, Ipv6Addr};

use bump::Side;

use crate::keys::{self, Subject};
use crate::limits::SOURCE_FLOWS_MIN;
use crate::settings::Network;
use crate::tcp::key::Key;

/// Tells this use of the key from others.
const PURPOSE: u8 = 0xfe;
/// Counters of a row, one for each connection where those are more.
const COUNTERS_MIN: usize = 1024;

/// Connections by who holds them. Two rows of counters by a keyed hash take the same memory whatever
/// comes; of a host's two counters the lower one counts, and nobody can choose with whom he shares
/// both.
#[derive(Debug)]
pub(crate) struct Sources {
    key: keys::Key,
    rows: [Vec<u32>; 2],
    /// A host may hold as many as one part of so many of the free places; as many as it likes if zero.
    part: u32,
}

/// A host, or a network of which a host may have any address.
#[derive(Clone, Copy, Debug)]
struct Level {
    network: Network,
    /// How many times the share of a host it has.
    shares: usize,
}

impl Sources {
    /// Counters for a table of at most `flows_max` connections.
    pub(crate) fn new(key: keys::Key, flows_max: usize, part: u32) -> Sources {
        let len = flows_max.max(COUNTERS_MIN).next_power_of_two();
        Sources { key, rows: [vec![0; len], vec![0; len]], part }
    }

    /// Which host or network has all that it may while `free` places are, if the host on side `holder`
    /// of the connection of `key` held one more.
    pub(crate) fn exhausted(&self, key: &Key, holder: Side, free: usize) -> Option<Network> {
        let part = self.part as usize;
        let is_exhausted = |level: &Level| {
            let places = self.places(key, *level);
            let count = self.rows.iter().zip(places).map(|(row, place)| row[place]).min().unwrap_or(0);
            (count as usize) >= (free * level.shares / part).max(SOURCE_FLOWS_MIN * level.shares)
        };
        if part == 0 {
            return None;
        }
        levels(key, holder).find(is_exhausted).map(|level| level.network)
    }

    /// The host on side `holder` of the connection of `key` holds its place.
    pub(crate) fn add(&mut self, key: &Key, holder: Side) {
        self.change(key, holder, |count| count.saturating_add(1));
    }

    /// The place of a connection that was [added](Sources::add) is free again.
    pub(crate) fn subtract(&mut self, key: &Key, holder: Side) {
        self.change(key, holder, |count| count.saturating_sub(1));
    }

    fn change(&mut self, key: &Key, holder: Side, change: impl Fn(u32) -> u32) {
        for level in levels(key, holder) {
            let places = self.places(key, level);
            for (row, place) in self.rows.iter_mut().zip(places) {
                row[place] = change(row[place]);
            }
        }
    }

    /// The counters of a host or network, one of each row.
    fn places(&self, key: &Key, level: Level) -> [usize; 2] {
        let Network { address, prefix_len } = level.network;
        let rest = u64::from(key.vlans) << 8 | u64::from(prefix_len);
        let place = self.key.place(&Subject::new(PURPOSE).between(address, address).number(rest));
        let mask = self.rows[0].len() - 1;
        [place as usize & mask, (place >> 32) as usize & mask]
    }
}

/// The host on side `holder` of the connection of `key`. An untrusted host of IPv6 takes any address
/// of its network, and whoever has a line at home has 65,536 such networks (RFC 6177): those are
/// counted as well. Behind a translator (RFC 6052) all hosts of IPv4 are in one.
fn levels(key: &Key, holder: Side) -> impl Iterator<Item = Level> {
    let address = if holder == Side::TRUSTED { key.trusted } else { key.untrusted };
    let host = Level { network: Network::host(address), shares: 1 };
    let networks = match address {
        IpAddr::V6(address) if holder == Side::UNTRUSTED && !is_translated(address) => {
            Some([(64, 4), (48, 8)].map(|(prefix_len, shares)| {
                let kept = u128::MAX << (128 - prefix_len);
                let address = Ipv6Addr::from_bits(address.to_bits() & kept).into();
                Level { network: Network { address, prefix_len }, shares }
            }))
        }
        _ => None,
    };
    std::iter::once(host).chain(networks.into_iter().flatten())
}

/// Whether it stands for an address of IPv4: 64:ff9b::/96 (RFC 6052, section 2.1).
fn is_translated(address: Ipv6Addr) -> bool {
    address.to_bits() >> 32 == 0x0064_ff9b << 64
}
