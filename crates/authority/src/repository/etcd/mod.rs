//! The repository in a cluster of etcd, which several distributors share (record 0015).
//!
//! ```text
//! /ringwall/SITE/form                     the form of all this: 1
//! /ringwall/SITE/next                     the next number
//! /ringwall/SITE/importing                there while hosts are moved in
//! /ringwall/SITE/hosts/number/NUMBER      a host
//! /ringwall/SITE/hosts/name/NAME          its number
//! /ringwall/SITE/hosts/address/ADDRESS    the numbers of all that have this address
//! /ringwall/SITE/hosts/mac/MAC            the same for a hardware address
//! /ringwall/SITE/hosts/lease/NUMBER/ADDRESS       until when the host has this address, if not for good
//! /ringwall/SITE/hosts/end/UNTIL/NUMBER/ADDRESS   the same by time: host and address
//! /ringwall/SITE/enrolments/NUMBER        a token, and what became of it
//! ```
//! Questions are linearizable: whoever asks after a change was acknowledged anywhere sees it. A change is one transaction.
//! It compares what it read; a host that becomes good, or good for longer, or gets or loses an address, writes to the key
//! of each of its addresses, so a change that compares such a key has seen who holds that address.

mod access;
mod breaker;
mod client;
mod enrolments;
mod entry;
mod import;
mod leases;
mod message;
mod snapshot;

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use wire::MacAddress;

use self::breaker::{Breaker, Tries};
use self::client::{Client, Trouble};
use self::entry::{from_json, to_json};
use self::snapshot::Snapshot;
use super::{Bound, Enrolment, HostEntry, Lease, NewHost, Standing, Store, StoreError, check_key};
use crate::limits::{ETCD_ATTEMPTS, ETCD_LOST_ANSWERS, ETCD_PAGE, MAX_HOSTS};
use crate::repository::Sharing;

pub use access::{Access, BadAccess};

/// Says that a repository is there, and in which form.
const FORM: &str = "form";
/// Whoever changes the keys or what they hold counts it up and teaches [`check_form`] the way from the old form.
const VERSION: i64 = 1;
/// Holds the number that the next host gets.
const NEXT: &str = "next";

/// A repository in a cluster. Its clones share connections, which member answered last, and whether any
/// did.
#[derive(Clone, Debug)]
pub struct EtcdStore {
    client: Arc<Client>,
    breaker: Arc<Breaker>,
    /// What all keys begin with.
    prefix: String,
    /// The cluster, for errors.
    place: String,
    /// Changes of one program wait here for each other rather than collide in the cluster.
    turn: Arc<Mutex<()>>,
}

/// Whether a change whose answer was lost may be made again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Twice is as good as once.
    Harmless,
    /// Its answer would be another one.
    Differs,
}

impl EtcdStore {
    /// The repository of the site of this name. Nobody is asked yet, because a distributor may start before the cluster.
    ///
    /// # Errors
    /// [`StoreError::BadAccess`].
    pub fn new(access: &Access, site: &str) -> Result<Self, StoreError> {
        access.check().map_err(|bad| StoreError::BadAccess(format!("{bad}; {}", bad.remedy())))?;
        let place = format!("etcd at {}", access.members.join(", "));
        let prefix = format!("/ringwall/{site}/");
        let (client, breaker) = (Arc::new(Client::new(access)?), Arc::default());
        Ok(EtcdStore { client, breaker, prefix, place, turn: Arc::default() })
    }

    /// Asks whether the cluster can be reached and holds the site's repository.
    ///
    /// # Errors
    /// It does not, or what is wrong with the cluster.
    pub fn probe(&self) -> Result<(), StoreError> {
        self.read(|snapshot| snapshot.fetch(&[]))
    }

    fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    fn hosts(&self) -> String {
        self.key("hosts/")
    }

    /// Digits enough for every number, so that the order of keys is that of numbers.
    fn host_key(&self, number: u64) -> String {
        self.key(&format!("hosts/number/{number:020}"))
    }

    fn name_key(&self, name: &str) -> String {
        self.key(&format!("hosts/name/{name}"))
    }

    fn address_key(&self, ip: Ipv4Addr) -> String {
        self.key(&format!("hosts/address/{ip}"))
    }

    fn mac_key(&self, mac: MacAddress) -> String {
        self.key(&format!("hosts/mac/{mac}"))
    }

    /// The keys by which a host with these addresses is found.
    fn index_keys(&self, mac: Option<MacAddress>, addresses: &[Ipv4Addr]) -> Vec<String> {
        let addresses = addresses.iter().map(|ip| self.address_key(*ip));
        mac.map(|mac| self.mac_key(mac)).into_iter().chain(addresses).collect()
    }

    fn with_place(&self, error: StoreError) -> StoreError {
        error.with_file(Path::new(&self.place))
    }

    /// Answers from one state of the repository.
    fn read<T>(&self, question: impl Fn(&mut Snapshot<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let answered = self.breaker.carry_out(|mut tries| {
            let mut next_tries = || std::mem::replace(&mut tries, Tries::All);
            let answers = (0..ETCD_LOST_ANSWERS).map(|_| question(&mut Snapshot::new(self, next_tries())));
            // A state is cleared away under a question only if it is asked slowly or the cluster keeps nothing.
            let is_final = |outcome: &Result<T, StoreError>| !matches!(outcome, Err(StoreError::Busy));
            let mut answers = answers.filter(is_final);
            answers.next().unwrap_or(Err(StoreError::Busy))
        });
        answered.map_err(|error| self.with_place(error))
    }

    /// Makes the change that `decide` writes, whole and on exactly the state that `decide` saw, or not at all.
    fn change<T>(
        &self,
        again: Again,
        decide: impl Fn(&mut Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.breaker.carry_out(|tries| self.attempt(tries, again, decide));
        changed.map_err(|error| self.with_place(error))
    }

    fn attempt<T>(
        &self,
        mut tries: Tries,
        again: Again,
        decide: impl Fn(&mut Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut lost: Option<(Snapshot<'_>, T)> = None;
        let mut lost_answers = 0;
        for _ in 0..ETCD_ATTEMPTS {
            let mut snapshot = Snapshot::new(self, std::mem::replace(&mut tries, Tries::All));
            if let Some((before, outcome)) = lost.take() {
                if snapshot.holds(before.writes())? {
                    return Ok(outcome);
                }
                // As long as nothing was written, the transaction that was lost may come yet; but it and the next one
                // compare the same revisions, so only one of them happens.
                if snapshot.is_untouched(&before) {
                    lost = Some((before, outcome));
                } else if again == Again::Differs {
                    let what = "the answer to a change was lost, and others have changed the host since";
                    return Err(StoreError::Unreachable(what.to_owned()));
                }
            }
            let outcome = match decide(&mut snapshot) {
                Err(StoreError::Busy) => continue,
                decided => decided?,
            };
            if !snapshot.has_writes() {
                return Ok(outcome);
            }
            match snapshot.commit() {
                Ok(true) => return Ok(outcome),
                Ok(false) => {}
                Err(Trouble::Unknown(_)) if lost_answers < ETCD_LOST_ANSWERS => {
                    lost_answers += 1;
                    lost = Some((snapshot, outcome));
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
        Err(StoreError::Busy)
    }

    /// The hosts that the indexes `keys` name, which were fetched.
    fn holders(&self, snapshot: &mut Snapshot<'_>, keys: &[String]) -> Result<Vec<HostEntry>, StoreError> {
        let mut numbers = Vec::new();
        for key in keys {
            numbers.extend(numbers_in(key, snapshot.peek(key))?);
        }
        numbers.sort_unstable();
        numbers.dedup();
        let keys: Vec<String> = numbers.into_iter().map(|number| self.host_key(number)).collect();
        snapshot.fetch(&keys)?;
        keys.iter().map(|key| self.host_at(snapshot, key)).collect()
    }

    /// The host at a key that an index names.
    fn host_at(&self, snapshot: &Snapshot<'_>, key: &str) -> Result<HostEntry, StoreError> {
        let value = snapshot.peek(key);
        entry::read(key, value.ok_or_else(|| StoreError::DamagedKey(key.to_owned(), "it is missing".to_owned()))?)
    }

    /// Who is found for an address: a good host first, then the period that ends last, then the highest number.
    fn found(&self, snapshot: &mut Snapshot<'_>, ip: Ipv4Addr) -> Result<Option<HostEntry>, StoreError> {
        let key = self.address_key(ip);
        snapshot.fetch(std::slice::from_ref(&key))?;
        let holders = self.holders(snapshot, &[key])?;
        Ok(holders.into_iter().max_by_key(|host| (host.standing == Standing::Good, host.not_after_unix, host.number)))
    }

    fn named(&self, snapshot: &mut Snapshot<'_>, name: &str) -> Result<Option<HostEntry>, StoreError> {
        let key = self.name_key(name);
        snapshot.fetch(std::slice::from_ref(&key))?;
        let Some(value) = snapshot.get(&key) else { return Ok(None) };
        let host_key = self.host_key(from_json(&key, value)?);
        snapshot.fetch(std::slice::from_ref(&host_key))?;
        self.host_at(snapshot, &host_key).map(Some)
    }

    fn numbered(&self, snapshot: &mut Snapshot<'_>, number: u64) -> Result<Option<HostEntry>, StoreError> {
        let key = self.host_key(number);
        snapshot.fetch(std::slice::from_ref(&key))?;
        snapshot.peek(&key).map(|value| entry::read(&key, value)).transpose()
    }

    fn write_host(&self, snapshot: &mut Snapshot<'_>, host: &HostEntry) -> Result<(), StoreError> {
        snapshot.put(&self.host_key(host.number), entry::write(host)?);
        Ok(())
    }

    /// Writes the host into its indexes, also where it stands already, and takes it out of those of `before`.
    fn index(
        &self,
        snapshot: &mut Snapshot<'_>,
        host: &HostEntry,
        before: Option<&HostEntry>,
    ) -> Result<(), StoreError> {
        let keys = self.index_keys(host.mac, &host.addresses);
        let left = before.map(|before| self.index_keys(before.mac, &before.addresses)).unwrap_or_default();
        snapshot.fetch(&left)?;
        for key in left.iter().filter(|key| !keys.contains(key)) {
            let mut numbers = numbers_in(key, snapshot.peek(key))?;
            numbers.retain(|number| *number != host.number);
            if numbers.is_empty() { snapshot.delete(key) } else { snapshot.put(key, to_json(&numbers)?) }
        }
        for key in &keys {
            let mut numbers = numbers_in(key, snapshot.peek(key))?;
            if !numbers.contains(&host.number) {
                numbers.push(host.number);
            }
            snapshot.put(key, to_json(&numbers)?);
        }
        Ok(())
    }

    fn all_hosts(&self, snapshot: &mut Snapshot<'_>) -> Result<Vec<HostEntry>, StoreError> {
        snapshot.all(&self.key("hosts/number/"), ETCD_PAGE, entry::read)
    }

    /// The number for a host without one.
    fn next_number(&self, snapshot: &mut Snapshot<'_>, name: &str) -> Result<u64, StoreError> {
        let key = self.key(NEXT);
        let missing = || StoreError::DamagedKey(key.clone(), "it is missing".to_owned());
        let number: u64 = from_json(&key, snapshot.get(&key).ok_or_else(missing)?)?;
        if number > MAX_HOSTS {
            return Err(StoreError::Full);
        }
        snapshot.put(&key, to_json(&(number + 1))?);
        snapshot.put(&self.name_key(name), to_json(&number)?);
        Ok(number)
    }

    fn rekey_host(
        &self,
        snapshot: &mut Snapshot<'_>,
        mut host: HostEntry,
        algorithm: u8,
        key: &[u8],
    ) -> Result<bool, StoreError> {
        if host.standing != Standing::Good {
            return Ok(false);
        }
        (host.algorithm, host.key) = (algorithm, key.to_vec());
        self.write_host(snapshot, &host).map(|()| true)
    }
}

impl Store for EtcdStore {
    fn add(&self, host: &NewHost, sharing: Sharing, now_unix_s: u64) -> Result<u64, StoreError> {
        host.check()?;
        self.end_leases(&host.addresses, now_unix_s)?;
        self.change(Again::Harmless, |snapshot| {
            let indexes = self.index_keys(host.mac, &host.addresses);
            let mut keys = vec![self.key(NEXT), self.name_key(&host.name)];
            keys.extend_from_slice(&indexes);
            snapshot.fetch(&keys)?;
            if sharing == Sharing::Refused {
                let holders = self.holders(snapshot, &indexes)?;
                check_holders(&holders, host.mac, &host.addresses, &host.name, now_unix_s)?;
            }
            let before = self.named(snapshot, &host.name)?;
            let number = match &before {
                Some(before) => before.number,
                None => self.next_number(snapshot, &host.name)?,
            };
            let entry = entry::numbered(number, host);
            self.write_host(snapshot, &entry)?;
            self.index(snapshot, &entry, before.as_ref())?;
            if let Some(before) = &before {
                self.drop_leases(snapshot, before)?;
            }
            Ok(number)
        })
    }

    fn find(&self, ip: Ipv4Addr) -> Result<Option<HostEntry>, StoreError> {
        self.read(|snapshot| self.found(snapshot, ip))
    }

    fn by_name(&self, name: &str) -> Result<Option<HostEntry>, StoreError> {
        self.read(|snapshot| self.named(snapshot, name))
    }

    fn by_number(&self, number: u64) -> Result<Option<HostEntry>, StoreError> {
        self.read(|snapshot| self.numbered(snapshot, number))
    }

    fn list(&self) -> Result<Vec<HostEntry>, StoreError> {
        self.read(|snapshot| self.all_hosts(snapshot))
    }

    fn replace_key(&self, ip: Ipv4Addr, old: &[u8], algorithm: u8, new: &[u8]) -> Result<bool, StoreError> {
        check_key(new)?;
        self.change(Again::Differs, |snapshot| {
            let host = self.found(snapshot, ip)?;
            // Who else has the address decides who is found.
            let _depends = snapshot.get(&self.address_key(ip));
            match host {
                Some(host) if host.key == old => self.rekey_host(snapshot, host, algorithm, new),
                _ => Ok(false),
            }
        })
    }

    fn rekey(&self, name: &str, algorithm: u8, key: &[u8]) -> Result<bool, StoreError> {
        check_key(key)?;
        self.change(Again::Harmless, |snapshot| match self.named(snapshot, name)? {
            Some(host) => self.rekey_host(snapshot, host, algorithm, key),
            None => Ok(false),
        })
    }

    fn revoke(&self, name: &str) -> Result<bool, StoreError> {
        self.change(Again::Harmless, |snapshot| {
            let Some(mut host) = self.named(snapshot, name)? else { return Ok(false) };
            if host.standing == Standing::Good {
                host.standing = Standing::Revoked;
                self.write_host(snapshot, &host)?;
            }
            Ok(true)
        })
    }

    fn bind(&self, number: u64, ip: Ipv4Addr, now_unix_s: u64) -> Result<(), StoreError> {
        self.end_leases(&[ip], now_unix_s)?;
        self.change(Again::Harmless, |snapshot| self.give(snapshot, number, ip, now_unix_s).map(drop))
    }

    fn lease(&self, number: u64, ip: Ipv4Addr, until_unix_s: u64, now_unix_s: u64) -> Result<(), StoreError> {
        self.end_leases(&[ip], now_unix_s)?;
        let wanted = Lease { host: number, address: ip, until_unix_s };
        self.change(Again::Harmless, |snapshot| match self.give(snapshot, number, ip, now_unix_s)? {
            Bound::Now => self.write_lease(snapshot, &wanted),
            Bound::Before => self.prolong(snapshot, &wanted),
        })
    }

    fn unbind(&self, number: u64, ip: Ipv4Addr) -> Result<bool, StoreError> {
        self.change(Again::Differs, |snapshot| {
            let Some(host) = self.numbered(snapshot, number)? else { return Ok(false) };
            self.take_back(snapshot, host, ip)
        })
    }

    fn enrolments(&self) -> Result<Vec<Enrolment>, StoreError> {
        self.read(|snapshot| self.all_enrolments(snapshot))
    }

    fn enrolment(&self, number: u64) -> Result<Option<Enrolment>, StoreError> {
        self.read(|snapshot| self.enrolment_at(snapshot, number))
    }

    fn change_enrolment(&self, before: Option<&Enrolment>, after: Option<&Enrolment>) -> Result<bool, StoreError> {
        self.change(Again::Differs, |snapshot| self.replace_enrolment(snapshot, before, after))
    }
}

/// What an index says; nobody is in one that is not there.
fn numbers_in(key: &str, value: Option<&[u8]>) -> Result<Vec<u64>, StoreError> {
    value.map_or(Ok(Vec::new()), |value| from_json(key, value))
}

/// Whether none of `holders` but the host called `name` holds one of the addresses and is good.
fn check_holders(
    holders: &[HostEntry],
    mac: Option<MacAddress>,
    addresses: &[Ipv4Addr],
    name: &str,
    now_unix_s: u64,
) -> Result<(), StoreError> {
    let is_good = |host: &&HostEntry| host.standing == Standing::Good && host.not_after_unix >= now_unix_s;
    let others: Vec<&HostEntry> = holders.iter().filter(is_good).filter(|host| host.name != name).collect();
    let holder_of_mac = mac.and_then(|mac| others.iter().find(|host| host.mac == Some(mac)).map(|host| (mac, host)));
    if let Some((mac, holder)) = holder_of_mac {
        return Err(StoreError::MacTaken { mac, holder: holder.name.clone() });
    }
    for &address in addresses {
        if let Some(holder) = others.iter().find(|host| host.addresses.contains(&address)) {
            return Err(StoreError::AddressTaken { address, holder: holder.name.clone() });
        }
    }
    Ok(())
}

fn check_form(value: &[u8]) -> Result<(), StoreError> {
    match from_json::<i64>(FORM, value)? {
        VERSION => Ok(()),
        newer if newer > VERSION => Err(StoreError::NewerVersion(newer)),
        older => Err(StoreError::DamagedKey(FORM.to_owned(), format!("it has the number {older}"))),
    }
}
