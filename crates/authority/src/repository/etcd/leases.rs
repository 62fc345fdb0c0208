//! Addresses that are given and taken, for good or until a lease is over.
//!
//! A lease is a key of its own beside its host, and once more a key by its end, so that those that are over are found without
//! a walk over the others. They end in transactions of their own before a change for which it matters: how many there are
//! does not bound that change, and an address is free exactly when nobody stands in its index.

use std::net::Ipv4Addr;

use super::entry::{from_json, to_json};
use super::message::Bytes;
use super::snapshot::Snapshot;
use super::{Again, EtcdStore, check_holders, numbers_in};
use crate::limits::{ETCD_ENDED_LEASES, ETCD_ENDINGS};
use crate::repository::{Bound, HostEntry, Lease, StoreError, give_address};

impl EtcdStore {
    pub(super) fn lease_key(&self, number: u64, ip: Ipv4Addr) -> String {
        self.key(&format!("hosts/lease/{number:020}/{ip}"))
    }

    /// Digits enough for every time, so that the order of keys is that of ends.
    pub(super) fn end_key(&self, lease: &Lease) -> String {
        let Lease { host, address, until_unix_s } = lease;
        self.key(&format!("hosts/end/{until_unix_s:020}/{host:020}/{address}"))
    }

    /// Gives a good host an address, unless it has it.
    pub(super) fn give(
        &self,
        snapshot: &mut Snapshot<'_>,
        number: u64,
        ip: Ipv4Addr,
        now_unix_s: u64,
    ) -> Result<Bound, StoreError> {
        let key = self.address_key(ip);
        snapshot.fetch(&[self.host_key(number), key.clone(), self.lease_key(number, ip)])?;
        let (host, bound) = give_address(self.numbered(snapshot, number)?, number, ip, now_unix_s)?;
        if bound == Bound::Before {
            return Ok(bound);
        }
        let holders = self.holders(snapshot, std::slice::from_ref(&key))?;
        check_holders(&holders, None, &[ip], &host.name, now_unix_s)?;
        let mut numbers = numbers_in(&key, snapshot.peek(&key))?;
        numbers.push(number);
        snapshot.put(&key, to_json(&numbers)?);
        self.write_host(snapshot, &host).map(|()| bound)
    }

    /// Takes an address from a host, with its lease if there is one; false if it does not have it.
    pub(super) fn take_back(
        &self,
        snapshot: &mut Snapshot<'_>,
        mut host: HostEntry,
        ip: Ipv4Addr,
    ) -> Result<bool, StoreError> {
        let Some(at) = host.addresses.iter().position(|address| *address == ip) else { return Ok(false) };
        host.addresses.remove(at);
        let key = self.address_key(ip);
        snapshot.fetch(&[self.host_key(host.number), key.clone(), self.lease_key(host.number, ip)])?;
        let mut numbers = numbers_in(&key, snapshot.peek(&key))?;
        numbers.retain(|holder| *holder != host.number);
        if numbers.is_empty() {
            snapshot.delete(&key)
        } else {
            snapshot.put(&key, to_json(&numbers)?)
        }
        self.write_host(snapshot, &host)?;
        if let Some(lease) = self.lease_of(snapshot, host.number, ip)? {
            self.drop_lease(snapshot, &lease)?;
        }
        Ok(true)
    }

    /// The lease by which a host has an address, whose key was fetched; nothing if it has it for good.
    fn lease_of(
        &self,
        snapshot: &mut Snapshot<'_>,
        number: u64,
        address: Ipv4Addr,
    ) -> Result<Option<Lease>, StoreError> {
        let key = self.lease_key(number, address);
        let Some(value) = snapshot.get(&key) else { return Ok(None) };
        Ok(Some(Lease { host: number, address, until_unix_s: from_json(&key, value)? }))
    }

    /// Enters a lease; its key was fetched.
    pub(super) fn write_lease(&self, snapshot: &mut Snapshot<'_>, lease: &Lease) -> Result<(), StoreError> {
        let end_key = self.end_key(lease);
        snapshot.fetch(std::slice::from_ref(&end_key))?;
        snapshot.put(&self.lease_key(lease.host, lease.address), to_json(&lease.until_unix_s)?);
        snapshot.put(&end_key, to_json(&(lease.host, lease.address))?);
        Ok(())
    }

    fn drop_lease(&self, snapshot: &mut Snapshot<'_>, lease: &Lease) -> Result<(), StoreError> {
        let end_key = self.end_key(lease);
        snapshot.fetch(std::slice::from_ref(&end_key))?;
        snapshot.delete(&self.lease_key(lease.host, lease.address));
        snapshot.delete(&end_key);
        Ok(())
    }

    /// Lets a lease end later, never earlier. An address that was not lent stays as it is.
    pub(super) fn prolong(&self, snapshot: &mut Snapshot<'_>, wanted: &Lease) -> Result<(), StoreError> {
        let lease = self.lease_of(snapshot, wanted.host, wanted.address)?;
        let Some(lease) = lease.filter(|lease| lease.until_unix_s < wanted.until_unix_s) else { return Ok(()) };
        // Only a host that is good still, and still has the address, gets more time.
        let _depends = snapshot.get(&self.host_key(wanted.host));
        self.drop_lease(snapshot, &lease)?;
        self.write_lease(snapshot, wanted)
    }

    /// Takes all its leases from a host that is renewed; whoever renews it writes its addresses anew.
    pub(super) fn drop_leases(&self, snapshot: &mut Snapshot<'_>, host: &HostEntry) -> Result<(), StoreError> {
        let keys: Vec<String> = host.addresses.iter().map(|ip| self.lease_key(host.number, *ip)).collect();
        snapshot.fetch(&keys)?;
        for ip in &host.addresses {
            if let Some(lease) = self.lease_of(snapshot, host.number, *ip)? {
                self.drop_lease(snapshot, &lease)?;
            }
        }
        Ok(())
    }

    /// Takes back addresses whose lease is over, `wanted` first if there are more than can be taken back at once.
    pub(super) fn end_leases(&self, wanted: &[Ipv4Addr], now_unix_s: u64) -> Result<(), StoreError> {
        for _ in 0..ETCD_ENDINGS {
            let is_rest = self.change(Again::Harmless, |snapshot| self.end_some(snapshot, wanted, now_unix_s))?;
            if !is_rest {
                break;
            }
        }
        Ok(())
    }

    /// Whether more are over than were ended.
    fn end_some(&self, snapshot: &mut Snapshot<'_>, wanted: &[Ipv4Addr], now_unix_s: u64) -> Result<bool, StoreError> {
        let ends = |unix_s: u64| self.key(&format!("hosts/end/{unix_s:020}/"));
        let (from, to) = (ends(0), Bytes::of(&ends(now_unix_s)));
        let (page, is_rest) = snapshot.keys_between(&from, to, ETCD_ENDED_LEASES as u64)?;
        let mut over: Vec<(u64, Ipv4Addr)> =
            page.iter().map(|(key, value)| from_json(key, value)).collect::<Result<_, _>>()?;
        if is_rest {
            let first = self.over_at(snapshot, wanted, now_unix_s)?;
            over.retain(|one| !first.contains(one));
            over.splice(0..0, first);
            over.truncate(ETCD_ENDED_LEASES);
        }
        let keys = |(number, ip): &(u64, Ipv4Addr)| {
            [self.host_key(*number), self.address_key(*ip), self.lease_key(*number, *ip)]
        };
        snapshot.fetch(&over.iter().flat_map(keys).collect::<Vec<_>>())?;
        for (number, ip) in over {
            let host = self.host_at(snapshot, &self.host_key(number))?;
            self.take_back(snapshot, host, ip)?;
        }
        Ok(is_rest)
    }

    /// Who has one of `wanted` by a lease that is over.
    fn over_at(
        &self,
        snapshot: &mut Snapshot<'_>,
        wanted: &[Ipv4Addr],
        now_unix_s: u64,
    ) -> Result<Vec<(u64, Ipv4Addr)>, StoreError> {
        snapshot.fetch(&wanted.iter().map(|ip| self.address_key(*ip)).collect::<Vec<_>>())?;
        let mut over = Vec::new();
        for ip in wanted {
            let key = self.address_key(*ip);
            let numbers = numbers_in(&key, snapshot.peek(&key))?;
            snapshot.fetch(&numbers.iter().map(|number| self.lease_key(*number, *ip)).collect::<Vec<_>>())?;
            for number in numbers {
                // Without depending on it: those that do not end here may be more than a transaction compares.
                let key = self.lease_key(number, *ip);
                let until: Option<u64> = snapshot.peek(&key).map(|value| from_json(&key, value)).transpose()?;
                over.extend(until.filter(|until| *until < now_unix_s).map(|_| (number, *ip)));
            }
        }
        Ok(over)
    }
}
