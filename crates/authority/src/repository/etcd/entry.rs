//! Hosts as they are written down in etcd, so that a person with `etcdctl` can read them.

use std::net::Ipv4Addr;

use identity::certificate::Role;
use serde::{Deserialize, Serialize};

use super::message::Bytes;
use crate::repository::{HostEntry, NewHost, Standing, StoreError, Subnet};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    number: u64,
    name: String,
    role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    addresses: Vec<Ipv4Addr>,
    algorithm: u8,
    key: Bytes,
    revoked: bool,
    not_before: u64,
    not_after: u64,
    subnets: Vec<(Ipv4Addr, u8)>,
}

pub(super) fn write(host: &HostEntry) -> Result<Vec<u8>, StoreError> {
    let written = Written {
        number: host.number,
        name: host.name.clone(),
        role: host.role.name().to_owned(),
        mac: host.mac.map(|mac| mac.to_string()),
        addresses: host.addresses.clone(),
        algorithm: host.algorithm,
        key: Bytes(host.key.clone()),
        revoked: host.standing == Standing::Revoked,
        not_before: host.not_before_unix,
        not_after: host.not_after_unix,
        subnets: host.subnets.iter().map(|subnet| (subnet.network(), subnet.prefix_len())).collect(),
    };
    to_json(&written)
}

pub(super) fn read(key: &str, value: &[u8]) -> Result<HostEntry, StoreError> {
    let written: Written = from_json(key, value)?;
    let damaged = |what: &str| StoreError::DamagedKey(key.to_owned(), what.to_owned());
    let mac =
        written.mac.as_deref().map(str::parse).transpose().map_err(|_| damaged("it names no hardware address"))?;
    let subnet = |(network, prefix_len): &(Ipv4Addr, u8)| Subnet::new(*network, *prefix_len);
    let subnets: Result<Vec<Subnet>, StoreError> = written.subnets.iter().map(subnet).collect();
    Ok(HostEntry {
        number: written.number,
        role: Role::from_name(&written.role).ok_or_else(|| damaged("it names no role"))?,
        mac,
        addresses: written.addresses,
        algorithm: written.algorithm,
        key: written.key.0,
        standing: if written.revoked { Standing::Revoked } else { Standing::Good },
        not_before_unix: written.not_before,
        not_after_unix: written.not_after,
        subnets: subnets.map_err(|error| damaged(&error.to_string()))?,
        name: written.name,
    })
}

/// The host that `new` asks for, with its number.
pub(super) fn numbered(number: u64, new: &NewHost) -> HostEntry {
    HostEntry {
        number,
        name: new.name.clone(),
        role: new.role,
        mac: new.mac,
        addresses: new.addresses.clone(),
        algorithm: new.algorithm,
        key: new.key.clone(),
        standing: Standing::Good,
        not_before_unix: new.not_before_unix,
        not_after_unix: new.not_after_unix,
        subnets: new.subnets.clone(),
    }
}

pub(super) fn to_json(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|error| StoreError::Refused(error.to_string()))
}

pub(super) fn from_json<'a, T: Deserialize<'a>>(key: &str, value: &'a [u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|error| StoreError::DamagedKey(key.to_owned(), error.to_string()))
}
