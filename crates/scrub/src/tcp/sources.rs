//! What each host holds of what all share: places of the table of connections, memory.
//!
//! Whoever has an address and answers there opens connections that look like anybody's. So a host
//! may have more while it holds less than a part of what is free: the threshold of Choudhury and
//! Hahne (IEEE/ACM Transactions on Networking 6(2), 1998) for a buffer that many share. A host
//! alone may have much. The fuller it is the less each may have, and something stays free for
//! whoever comes last. Half-open connections do not count, since their source may be spoofed.

use std::net::{IpAddr, Ipv6Addr};

use bump::Side;

use crate::keys::{self, Subject};
use crate::settings::Network;
use crate::tcp::key::Key;

/// Tells this use of the key from others.
const PURPOSE: u8 = 0xfe;
/// Counters of a row, where no more are asked for.
const COUNTERS_MIN: usize = 1024;
/// A host, and two networks of which it may have any address.
pub(crate) const LEVELS: usize = 3;
/// Bits of those networks.
const NETWORKS: [u8; LEVELS - 1] = [64, 48];

/// What is held, by who holds it. Two rows of counters by a keyed hash take the same memory whatever
/// comes; of a host's two counters the lower one counts, and nobody can choose with whom he shares
/// both.
#[derive(Debug)]
pub(crate) struct Sources {
    key: keys::Key,
    rows: [Vec<u32>; 2],
    share: Share,
}

/// What a host may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// One part of so many of what is free; as much as it likes if zero.
    pub(crate) part: u32,
    /// And so much, if there is any.
    pub(crate) least: usize,
    /// How many times the share of a host each level has.
    pub(crate) of_level: [usize; LEVELS],
}

/// The counters of a host and of its networks, one of each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    places: [[u32; 2]; LEVELS],
    levels: u8,
    /// It is of a connection that is older than the scrubber, of which nobody knows who opened it.
    pub(crate) is_older: bool,
}

impl Sources {
    /// Rows of at least `counters`.
    pub(crate) fn new(key: keys::Key, counters: usize, share: Share) -> Sources {
        let len = counters.max(COUNTERS_MIN).next_power_of_two();
        Sources { key, rows: [vec![0; len], vec![0; len]], share }
    }

    /// The account of the host on side `holder` of the connection of `key`.
    pub(crate) fn account(&self, key: &Key, holder: Side) -> Account {
        let mut account = Account { places: [[0; 2]; LEVELS], levels: 0, is_older: false };
        for (places, network) in account.places.iter_mut().zip(networks(key, holder)) {
            let rest = u64::from(key.vlans) << 8 | u64::from(network.prefix_len);
            let place = self.key.place(&Subject::new(PURPOSE).between(network.address, network.address).number(rest));
            let mask = self.rows[0].len() as u64 - 1;
            *places = [place & mask, (place >> 32) & mask].map(|place| place as u32);
            account.levels += 1;
        }
        account
    }

    /// Which level of an account has all that it may while `free` is, if it had `more`; for
    /// [`network`].
    pub(crate) fn exhausted(&self, account: &Account, more: usize, free: usize) -> Option<usize> {
        let part = self.share.part as usize;
        if part == 0 {
            return None;
        }
        account.levels().zip(self.share.of_level).position(|(places, shares)| {
            let held = self.rows.iter().zip(places).map(|(row, place)| row[*place as usize]).min().unwrap_or(0);
            held as usize + more > (free * shares / part).max(self.share.least * shares)
        })
    }

    /// Enters `more` into an account.
    pub(crate) fn add(&mut self, account: &Account, more: u32) {
        self.change(account, |count| count.saturating_add(more));
    }

    /// Takes what was [added](Sources::add) out of it.
    pub(crate) fn subtract(&mut self, account: &Account, less: u32) {
        self.change(account, |count| count.saturating_sub(less));
    }

    fn change(&mut self, account: &Account, change: impl Fn(u32) -> u32) {
        for places in account.levels() {
            for (row, place) in self.rows.iter_mut().zip(places) {
                row[*place as usize] = change(row[*place as usize]);
            }
        }
    }
}

impl Account {
    fn levels(&self) -> impl Iterator<Item = &[u32; 2]> {
        self.places.iter().take(self.levels.into())
    }
}

/// The host, or network, of a level of the account of the host on side `holder` of the connection of
/// `key`.
pub(crate) fn network(key: &Key, holder: Side, level: usize) -> Option<Network> {
    networks(key, holder).nth(level)
}

/// The untrusted host of the connection of `key`, or the largest network of which it may have any
/// address.
pub(crate) fn untrusted(key: &Key) -> Network {
    networks(key, Side::UNTRUSTED).last().unwrap_or(Network::host(key.untrusted))
}

/// The host on side `holder` of the connection of `key`. An untrusted host of IPv6 takes any address
/// of its network, and whoever has a line at home has 65,536 such networks (RFC 6177): those are
/// counted as well. Behind a translator (RFC 6052) all hosts of IPv4 are in one.
fn networks(key: &Key, holder: Side) -> impl Iterator<Item = Network> {
    let address = if holder == Side::TRUSTED { key.trusted } else { key.untrusted };
    let networks = match address {
        IpAddr::V6(address) if holder == Side::UNTRUSTED && !is_translated(address) => {
            Some(NETWORKS.map(|prefix_len| {
                let kept = u128::MAX << (128 - prefix_len);
                Network { address: Ipv6Addr::from_bits(address.to_bits() & kept).into(), prefix_len }
            }))
        }
        _ => None,
    };
    std::iter::once(Network::host(address)).chain(networks.into_iter().flatten())
}

/// Whether it stands for an address of IPv4: 64:ff9b::/96 (RFC 6052, section 2.1).
fn is_translated(address: Ipv6Addr) -> bool {
    address.to_bits() >> 32 == 0x0064_ff9b << 64
}
