//! The repository of hosts that the distributors of S-ARP answer from (section 3.1 of the paper): whose key belongs to an
//! address, and whether it still counts.
//!
//! [`Store`] says what a repository does, whatever keeps it; [`sqlite`] keeps it in a file, [`etcd`] in a cluster that
//! several distributors share. Beside hosts it keeps the tokens by which hosts [enrol](enrolment). Every change is whole or not there at all, and lasts over a power cut once it has returned. No clock is read here: what depends on the time is handed
//! Unix seconds, and [`find`](Store::find) leaves it to its caller to compare the period.

pub(crate) mod encoded;
pub mod enrolment;
mod error;
pub mod etcd;
pub mod sqlite;

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use identity::certificate::Role;
use identity::certificate::names::{BadNames, Names};
use smallvec::SmallVec;
use wire::MacAddress;

use crate::limits::{MAX_END_UNIX_S, MAX_KEY_LEN, MAX_SUBNETS_PER_HOST};
use crate::names::is_name;

pub use enrolment::Enrolment;
pub use error::StoreError;
pub use etcd::EtcdStore;
pub use sqlite::SqliteStore;

/// Whether two hosts may hold the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each address has one holder; a second name for it is refused.
    Refused,
    /// Several may hold it, as with addresses that move between redundant routers.
    Allowed,
}

/// Whether the site still stands by a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does, within the host's period.
    Good,
    /// It does not, until the host is enrolled again under its name.
    Revoked,
}

/// A range of IPv4 addresses by network and length of its prefix. It cannot hold nonsense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    network: Ipv4Addr,
    prefix_len: u8,
}

impl Subnet {
    /// The subnet of `network` whose first `prefix_len` bits count.
    ///
    /// # Errors
    /// [`StoreError::BadSubnet`] for more than 32 bits, or bits beyond the prefix.
    pub fn new(network: Ipv4Addr, prefix_len: u8) -> Result<Self, StoreError> {
        if prefix_len > 32 || network.to_bits() & !mask(prefix_len) != 0 {
            return Err(StoreError::BadSubnet { network, prefix_len });
        }
        Ok(Subnet { network, prefix_len })
    }

    /// Its first address.
    #[must_use]
    pub fn network(self) -> Ipv4Addr {
        self.network
    }

    /// How many bits all its addresses share.
    #[must_use]
    pub fn prefix_len(self) -> u8 {
        self.prefix_len
    }

    /// Whether `address` is one of its addresses.
    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.prefix_len) == self.network.to_bits()
    }
}

/// The bits of a prefix; a shift by all 32 bits would not be defined.
fn mask(prefix_len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(prefix_len)).unwrap_or(0)
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(network, len)| Some((network.parse().ok()?, len.parse().ok()?)));
        let (network, prefix_len) = parts.ok_or_else(|| "write it as 10.0.0.0/24".to_owned())?;
        Subnet::new(network, prefix_len).map_err(|error| error.to_string())
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix_len)
    }
}

/// What shall be known of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewHost {
    /// Its name, which no other host has.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The hardware address that the site binds it to, if any.
    pub mac: Option<MacAddress>,
    /// Its IPv4 addresses; none if it will be given one.
    pub addresses: Vec<Ipv4Addr>,
    /// The number of its key's algorithm.
    pub algorithm: u8,
    /// Its public key, as S-ARP carries it.
    pub key: Vec<u8>,
    /// First second of its period, in Unix seconds.
    pub not_before_unix: u64,
    /// Last second of its period, in Unix seconds.
    pub not_after_unix: u64,
    /// Where the addresses lie that it may be given; nowhere if empty.
    pub subnets: Vec<Subnet>,
}

impl NewHost {
    /// Whether it can be a host at all, whoever else there is.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if !is_name(&self.name) {
            return Err(StoreError::BadName(self.name.clone()));
        }
        check_addresses(self.mac, &self.addresses)?;
        check_key(&self.key)?;
        if self.not_before_unix > self.not_after_unix || self.not_after_unix > MAX_END_UNIX_S {
            return Err(StoreError::BadPeriod);
        }
        if self.subnets.len() > MAX_SUBNETS_PER_HOST {
            return Err(StoreError::TooManySubnets);
        }
        Ok(())
    }
}

/// The rules are those of certificates, which always name a hardware address.
pub(crate) fn check_addresses(mac: Option<MacAddress>, addresses: &[Ipv4Addr]) -> Result<(), BadNames> {
    const ANY_MACHINE: MacAddress = MacAddress([2, 0, 0, 0, 0, 0]);
    Names::new(mac.unwrap_or(ANY_MACHINE), addresses.to_vec()).map(drop)
}

pub(crate) fn check_key(key: &[u8]) -> Result<(), StoreError> {
    if key.is_empty() || key.len() > MAX_KEY_LEN { Err(StoreError::BadKey) } else { Ok(()) }
}

/// Since when a host has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Before,
    Now,
}

/// Gives the host that has `number` one more address, as far as that is its own business: nothing changes if it has it already,
/// and whether another host holds it is still to be asked.
pub(crate) fn give_address(
    host: Option<HostEntry>,
    number: u64,
    ip: Ipv4Addr,
    now_unix_s: u64,
) -> Result<(HostEntry, Bound), StoreError> {
    let good = host.filter(|host| host.standing == Standing::Good && host.not_after_unix >= now_unix_s);
    let mut host = good.ok_or(StoreError::NotGood(number))?;
    if host.addresses.contains(&ip) {
        return Ok((host, Bound::Before));
    }
    host.addresses.push(ip);
    check_addresses(host.mac, &host.addresses)?;
    if !host.subnets.iter().any(|subnet| subnet.contains(ip)) {
        return Err(StoreError::OutsideSubnets { name: host.name, address: ip });
    }
    Ok((host, Bound::Now))
}

/// Until when a host has an address that it was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The host's number.
    pub host: u64,
    /// The address.
    pub address: Ipv4Addr,
    /// Its last second, in Unix seconds.
    pub until_unix_s: u64,
}

/// What is known of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Its number, by which it speaks to distributors. It keeps it for ever and nobody else gets it.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The hardware address that the site binds it to, if any.
    pub mac: Option<MacAddress>,
    /// Its IPv4 addresses, in the order in which it got them.
    pub addresses: Vec<Ipv4Addr>,
    /// The number of its key's algorithm.
    pub algorithm: u8,
    /// Its public key, as S-ARP carries it.
    pub key: Vec<u8>,
    /// Whether the site still stands by it.
    pub standing: Standing,
    /// First second of its period, in Unix seconds.
    pub not_before_unix: u64,
    /// Last second of its period, in Unix seconds.
    pub not_after_unix: u64,
    /// Where the addresses lie that it may be given.
    pub subnets: Vec<Subnet>,
}

/// What a distributor says of an address: the key of its host and whether that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The hardware address that the site binds the host to, if any.
    pub mac: Option<MacAddress>,
    /// The number of its key's algorithm.
    pub algorithm: u8,
    /// Its public key, as S-ARP carries it; an Ed25519 key lies in place, so that to copy one touches no other memory.
    pub key: SmallVec<[u8; 32]>,
    /// Whether the site still stands by it.
    pub standing: Standing,
    /// Last second of its period, in Unix seconds.
    pub not_after_unix: u64,
}

impl From<HostEntry> for Holder {
    fn from(entry: HostEntry) -> Holder {
        let HostEntry { mac, algorithm, key, standing, not_after_unix, .. } = entry;
        Holder { mac, algorithm, key: SmallVec::from_slice(&key), standing, not_after_unix }
    }
}

/// All that a repository holds, as of one moment: what moves to another one, or into a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Every host, by number.
    pub hosts: Vec<HostEntry>,
    /// Every lease.
    pub leases: Vec<Lease>,
    /// Every token that is not forgotten yet.
    pub enrolments: Vec<Enrolment>,
}

/// A repository of hosts. A change that returned an error was not acknowledged: it is there whole or not at all, and may
/// be asked for again.
pub trait Store: Send + Sync {
    /// Enters a host and gives its number, from 1 upwards. A host whose name is known already is renewed: it keeps its
    /// number, is good (again), and has only what `host` says.
    ///
    /// # Errors
    /// What is wrong with `host`; [`StoreError::MacTaken`] or [`StoreError::AddressTaken`] if `sharing` is refused and
    /// another host holds it that is good and whose period is not over at `now_unix_s`; [`StoreError::Full`]; or what is
    /// wrong with the repository.
    fn add(&self, host: &NewHost, sharing: Sharing, now_unix_s: u64) -> Result<u64, StoreError>;

    /// The host that has this address. If several have had it, a good one goes before a revoked one, then the one whose
    /// period ends last, then the one with the highest number.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn find(&self, ip: Ipv4Addr) -> Result<Option<HostEntry>, StoreError>;

    /// What a distributor has to know of the hosts that [`find`](Store::find) gives for these addresses, in their order. What
    /// was changed before the call is in the answers.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn holders(&self, ips: &[Ipv4Addr]) -> Result<Vec<Option<Holder>>, StoreError> {
        ips.iter().map(|ip| Ok(self.find(*ip)?.map(Holder::from))).collect()
    }

    /// The host of this name.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn by_name(&self, name: &str) -> Result<Option<HostEntry>, StoreError>;

    /// The host with this number.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn by_number(&self, number: u64) -> Result<Option<HostEntry>, StoreError>;

    /// Every host, by number.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn list(&self) -> Result<Vec<HostEntry>, StoreError>;

    /// Puts the key `new` in the place of `old`; false, with nothing changed, unless the host that
    /// [`find`](Store::find) gives for `ip` is good and its key is `old`.
    ///
    /// # Errors
    /// [`StoreError::BadKey`], or what is wrong with the repository.
    fn replace_key(&self, ip: Ipv4Addr, old: &[u8], algorithm: u8, new: &[u8]) -> Result<bool, StoreError>;

    /// Gives the host of this name a key, whatever key it had; false, with nothing changed, unless it is there and good.
    ///
    /// # Errors
    /// [`StoreError::BadKey`], or what is wrong with the repository.
    fn rekey(&self, name: &str, algorithm: u8, key: &[u8]) -> Result<bool, StoreError>;

    /// Revokes the host of this name, also one that is revoked already; false if there is none.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn revoke(&self, name: &str) -> Result<bool, StoreError>;

    /// Gives a host one more address, or one that it has already.
    ///
    /// # Errors
    /// [`StoreError::NotGood`] unless the host is good and its period is not over at `now_unix_s`;
    /// [`StoreError::OutsideSubnets`]; [`StoreError::AddressTaken`] as in [`add`](Store::add), since nobody is given an
    /// address to share it; [`StoreError::BadNames`] if it has too many; or what is wrong with the repository.
    fn bind(&self, number: u64, ip: Ipv4Addr, now_unix_s: u64) -> Result<(), StoreError>;

    /// Gives a host an address until `until_unix_s` as [`bind`](Store::bind) does, or more time with one that it has by lease;
    /// never less. When a lease is over its address is free for others.
    ///
    /// # Errors
    /// As [`bind`](Store::bind).
    fn lease(&self, number: u64, ip: Ipv4Addr, until_unix_s: u64, now_unix_s: u64) -> Result<(), StoreError>;

    /// Takes an address from a host; false if it does not have it.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn unbind(&self, number: u64, ip: Ipv4Addr) -> Result<bool, StoreError>;

    /// Every token that is not forgotten yet, by number, also those that are over.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn enrolments(&self) -> Result<Vec<Enrolment>, StoreError>;

    /// The token with this number, also when it is over.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn enrolment(&self, number: u64) -> Result<Option<Enrolment>, StoreError>;

    /// Puts `after` in the place of `before`, which has the same number; false, with nothing changed, unless the repository has
    /// exactly `before`. Nothing stands for a token that is not there, before or after.
    ///
    /// # Errors
    /// What is wrong with the repository.
    fn change_enrolment(&self, before: Option<&Enrolment>, after: Option<&Enrolment>) -> Result<bool, StoreError>;
}
