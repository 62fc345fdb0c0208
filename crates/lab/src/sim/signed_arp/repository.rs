//! The repository of a run: the real store in a file in memory, and how distributors see it at a moment of their clocks.

use std::cell::RefCell;
use std::net::Ipv4Addr;
use std::path::Path;

use authority::directory::Sharing;
use authority::repository::{HostEntry, NewHost, SqliteStore, Standing, Store, StoreError, Subnet};
use identity::certificate::Role;
use sarp::akd::{Binding, Grant, HostLookup, Lookup, Member, RecordKey, Records};
use tempfile::TempDir;
use wire::sarp::data::Refusal;

use super::scenario::Plan;
use super::site::{self, Pool};
use crate::failure::Failure;
use crate::sim::clock::START_UNIX_S;

/// Where files cost no disk.
const MEMORY: &str = "/dev/shm";

/// An address that was given to a host, or taken from it.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The host's number in the repository.
    pub host: u64,
    /// Which address.
    pub ip: Ipv4Addr,
    /// Whether it has it from now on.
    pub is_given: bool,
}

/// The repository.
pub struct Repository {
    store: SqliteStore,
    /// What was given and taken since the world last looked.
    changes: RefCell<Vec<Change>>,
    _place: TempDir,
}

/// The repository as one distributor asks it now.
pub struct AsOf<'a> {
    repository: &'a Repository,
    /// Its clock, if that is believable.
    unix_s: Option<u64>,
}

impl Repository {
    /// A repository that holds the hosts of `plans`; also returns their numbers.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(plans: &[Plan], pool: &Pool) -> Result<(Repository, Vec<u64>), Failure> {
        let memory = Path::new(MEMORY);
        let mut builder = tempfile::Builder::new();
        builder.prefix("ringwall-sim");
        let place = if memory.is_dir() { builder.tempdir_in(memory) } else { builder.tempdir() };
        let place = place.map_err(Failure::io("making a directory for the simulated repository"))?;
        let unreadable = |error: StoreError| Failure::Unreadable(format!("the simulated repository: {error}"));
        let store = SqliteStore::create(&place.path().join("hosts.db")).map_err(unreadable)?;
        let mut numbers = Vec::new();
        for plan in plans {
            numbers.push(match new_host(plan, pool) {
                Some(host) => store.add(&host, Sharing::Refused, START_UNIX_S).map_err(unreadable)?,
                None => 0,
            });
        }
        Ok((Repository { store, changes: RefCell::default(), _place: place }, numbers))
    }

    /// As a distributor asks it whose clock shows `unix_s`.
    pub fn as_of(&self, unix_s: Option<u64>) -> AsOf<'_> {
        AsOf { repository: self, unix_s }
    }

    /// What was given and taken since this was last asked.
    pub fn take_changes(&self) -> Vec<Change> {
        self.changes.take()
    }

    /// The manager takes a host out of the site.
    pub fn revoke(&self, number: u8) -> bool {
        self.store.revoke(&site::name(number)) == Ok(true)
    }

    /// The manager gives a host a new key.
    pub fn rekey(&self, number: u8, algorithm: u8, key: &[u8]) -> bool {
        self.store.rekey(&site::name(number), algorithm, key) == Ok(true)
    }

    /// The key that the site has of a host.
    pub fn key_of(&self, number: u8) -> Option<Vec<u8>> {
        self.store.by_name(&site::name(number)).ok().flatten().map(|entry| entry.key)
    }
}

/// What the manager enters of a machine; nothing of one that is not enrolled.
fn new_host(plan: &Plan, pool: &Pool) -> Option<NewHost> {
    let identity = pool.identity(plan.number)?;
    let certificate = identity.certificate();
    let (algorithm, key) = certificate.record_key()?;
    let gets_leases = certificate.addresses().is_empty() || plan.number == site::INSIDER;
    let leased = Subnet::new(Ipv4Addr::new(10, 0, 1, 0), 24).ok().filter(|_| gets_leases);
    Some(NewHost {
        name: site::name(plan.number),
        role: certificate.role(),
        mac: plan.is_bound.then(|| site::mac(plan.number)),
        addresses: certificate.addresses().to_vec(),
        algorithm,
        key: key.to_vec(),
        not_before_unix: START_UNIX_S - 3600,
        not_after_unix: START_UNIX_S + 30 * 86_400,
        subnets: leased.into_iter().collect(),
    })
}

impl AsOf<'_> {
    fn is_good(&self, entry: &HostEntry) -> bool {
        entry.standing == Standing::Good && self.unix_s.is_none_or(|unix_s| unix_s <= entry.not_after_unix)
    }

    fn note(&self, host: u64, ip: Ipv4Addr, is_given: bool) {
        self.repository.changes.borrow_mut().push(Change { host, ip, is_given });
    }

    fn enter(&self, grant: &Grant, now_unix_s: u64) -> Result<Binding, StoreError> {
        let (store, Grant { host, ip, time, only_if_held }) = (&self.repository.store, *grant);
        if only_if_held && !store.by_number(host)?.is_some_and(|entry| entry.addresses.contains(&ip)) {
            return Ok(Binding::Refused(Refusal::NotHeld));
        }
        let until_unix_s = time.map_or(u64::MAX, |time| now_unix_s.saturating_add(time.as_secs()));
        store.lease(host, ip, until_unix_s, now_unix_s)?;
        self.note(host, ip, true);
        Ok(Binding::Done)
    }

    fn take_back(&self, host: u64, ip: Ipv4Addr) -> Result<Binding, StoreError> {
        let store = &self.repository.store;
        let is_leased = |entry: &HostEntry| entry.subnets.iter().any(|subnet| subnet.contains(ip));
        if !store.by_number(host)?.as_ref().is_some_and(is_leased) || !store.unbind(host, ip)? {
            return Ok(Binding::Refused(Refusal::NotHeld));
        }
        self.note(host, ip, false);
        Ok(Binding::Done)
    }
}

fn not_bound(error: &StoreError) -> Binding {
    match error.reason() {
        StoreError::NotGood(_) => Binding::Refused(Refusal::NotGood),
        StoreError::OutsideSubnets { .. } | StoreError::BadNames(_) => Binding::Refused(Refusal::OutsideSubnets),
        StoreError::AddressTaken { .. } => Binding::Refused(Refusal::Taken),
        _ => Binding::Failed,
    }
}

impl Records for AsOf<'_> {
    fn find(&self, ip: Ipv4Addr) -> Lookup {
        match self.repository.store.find(ip) {
            Ok(Some(entry)) if self.is_good(&entry) => {
                Lookup::Good { algorithm: entry.algorithm, key: entry.key, mac: entry.mac }
            }
            Ok(Some(_)) => Lookup::Invalid,
            Ok(None) => Lookup::NotFound,
            Err(_) => Lookup::Failed,
        }
    }

    fn replace(&self, ip: Ipv4Addr, old: &[u8], new: RecordKey<'_>) -> bool {
        self.repository.store.replace_key(ip, old, new.algorithm, new.key).unwrap_or(false)
    }

    fn host(&self, number: u64) -> HostLookup {
        match self.repository.store.by_number(number) {
            Ok(Some(entry)) if self.is_good(&entry) => HostLookup::Good(Member {
                algorithm: entry.algorithm,
                key: entry.key,
                mac: entry.mac,
                serves_dhcp: entry.role == Role::DhcpServer,
            }),
            Ok(_) => HostLookup::NotGood,
            Err(_) => HostLookup::Failed,
        }
    }

    fn lease(&self, grant: &Grant) -> Binding {
        let Some(now_unix_s) = self.unix_s else { return Binding::Failed };
        self.enter(grant, now_unix_s).unwrap_or_else(|error| not_bound(&error))
    }

    fn unbind(&self, host: u64, ip: Ipv4Addr) -> Binding {
        self.take_back(host, ip).unwrap_or_else(|error| not_bound(&error))
    }
}
