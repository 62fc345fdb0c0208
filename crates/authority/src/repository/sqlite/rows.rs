//! Hosts as rows of the tables. Each function runs inside a transaction that its caller began.

use std::net::Ipv4Addr;

use identity::certificate::Role;
use rusqlite::{Connection, OptionalExtension, Row, params};
use smallvec::SmallVec;
use wire::MacAddress;

use super::seconds;
use crate::repository::{
    Contents, Enrolment, Holder, HostEntry, Lease, NewHost, Standing, StoreError, Subnet, enrolment,
};

/// How many statements stay prepared on a connection: all that there are.
pub(super) const STATEMENTS: usize = 32;

pub(super) const FIND: &str = "SELECT number, name, role, mac, algorithm, key, revoked, not_before, not_after
    FROM addresses JOIN hosts ON number = host WHERE address = ?1 ORDER BY revoked, not_after DESC, number DESC LIMIT 1";

pub(super) const BY_NAME: &str =
    "SELECT number, name, role, mac, algorithm, key, revoked, not_before, not_after FROM hosts WHERE name = ?1";

const BY_NUMBER: &str =
    "SELECT number, name, role, mac, algorithm, key, revoked, not_before, not_after FROM hosts WHERE number = ?1";

const ALL: &str =
    "SELECT number, name, role, mac, algorithm, key, revoked, not_before, not_after FROM hosts ORDER BY number";

const ADDRESSES: &str = "SELECT address FROM addresses WHERE host = ?1 ORDER BY position";

const LEASES: &str = "SELECT until FROM leases WHERE host = ?1 AND address = ?2";

const ENROLMENT: &str = "SELECT written FROM enrolments WHERE number = ?1";

const SUBNETS: &str = "SELECT network, prefix_len FROM subnets WHERE host = ?1 ORDER BY position";

/// Whether the tables are there as they are used.
pub(super) fn check_tables(connection: &Connection) -> Result<(), StoreError> {
    for statement in [FIND, BY_NAME, BY_NUMBER, ALL, ADDRESSES, LEASES, SUBNETS, ENROLMENT] {
        connection.prepare_cached(statement)?;
    }
    Ok(())
}

pub(super) fn find(connection: &Connection, ip: Ipv4Addr) -> Result<Option<HostEntry>, StoreError> {
    let row = connection.prepare_cached(FIND)?.query_row([ip.to_bits()], columns).optional()?;
    row.map(|row| entry(connection, row)).transpose()
}

/// As [`find`], of what a distributor has to know.
pub(super) fn holder(connection: &Connection, ip: Ipv4Addr) -> Result<Option<Holder>, StoreError> {
    let row = connection.prepare_cached(FIND)?.query_row([ip.to_bits()], columns).optional()?;
    row.map(|row| {
        let (mac, standing) = (row.mac.map(MacAddress), standing(row.is_revoked));
        let key = SmallVec::from_slice(&row.key);
        Ok(Holder { mac, algorithm: row.algorithm, key, standing, not_after_unix: unsigned(row.not_after)? })
    })
    .transpose()
}

pub(super) fn by_name(connection: &Connection, name: &str) -> Result<Option<HostEntry>, StoreError> {
    let row = connection.prepare_cached(BY_NAME)?.query_row([name], columns).optional()?;
    row.map(|row| entry(connection, row)).transpose()
}

pub(super) fn by_number(connection: &Connection, number: u64) -> Result<Option<HostEntry>, StoreError> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let row = connection.prepare_cached(BY_NUMBER)?.query_row([number], columns).optional()?;
    row.map(|row| entry(connection, row)).transpose()
}

pub(super) fn all(connection: &Connection) -> Result<Vec<HostEntry>, StoreError> {
    let mut statement = connection.prepare_cached(ALL)?;
    let rows = statement.query_map([], columns)?;
    rows.map(|row| entry(connection, row?)).collect()
}

pub(super) fn leases(connection: &Connection) -> Result<Vec<Lease>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT host, address, until FROM leases ORDER BY host, address")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1).map(Ipv4Addr::from_bits)?, row.get::<_, i64>(2)?))
    })?;
    rows.map(|row| {
        let (host, address, until) = row?;
        Ok(Lease { host: unsigned(host)?, address, until_unix_s: unsigned(until)? })
    })
    .collect()
}

pub(super) fn number_of(connection: &Connection, name: &str) -> Result<Option<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT number FROM hosts WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// No host is ever removed, so this is also how many there are, without counting them.
pub(super) fn highest_number(connection: &Connection) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached("SELECT coalesce(max(number), 0) FROM hosts")?;
    unsigned(statement.query_row([], |row| row.get(0))?)
}

/// Enters all that another repository held. A host that was revoked there is so here.
pub(super) fn insert_all(connection: &Connection, contents: &Contents) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO hosts (number, name, role, mac, algorithm, key, revoked, not_before, not_after)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    for host in &contents.hosts {
        let number = seconds(host.number);
        statement.execute(params![
            number,
            host.name,
            host.role.name(),
            host.mac.map(|mac| mac.0),
            host.algorithm,
            host.key,
            host.standing == Standing::Revoked,
            seconds(host.not_before_unix),
            seconds(host.not_after_unix),
        ])?;
        insert_lists(connection, number, &host.addresses, &host.subnets)?;
    }
    for lease in &contents.leases {
        insert_lease(connection, lease.host, lease.address, lease.until_unix_s)?;
    }
    for enrolment in &contents.enrolments {
        change_enrolment(connection, None, Some(enrolment))?;
    }
    Ok(())
}

pub(super) fn enrolments(connection: &Connection) -> Result<Vec<Enrolment>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT written FROM enrolments ORDER BY number")?;
    let rows = statement.query_map([], |row| row.get::<_, Vec<u8>>(0))?;
    rows.map(|row| read_enrolment(&row?)).collect()
}

pub(super) fn enrolment(connection: &Connection, number: u64) -> Result<Option<Enrolment>, StoreError> {
    let Ok(number) = i64::try_from(number) else { return Ok(None) };
    let written: Option<Vec<u8>> =
        connection.prepare_cached(ENROLMENT)?.query_row([number], |row| row.get(0)).optional()?;
    written.map(|written| read_enrolment(&written)).transpose()
}

fn read_enrolment(written: &[u8]) -> Result<Enrolment, StoreError> {
    enrolment::read(written).ok_or_else(|| StoreError::Damaged("a token is not as it was written".to_owned()))
}

/// Puts `after` in the place of exactly `before`; false if that is not there.
pub(super) fn change_enrolment(
    connection: &Connection,
    before: Option<&Enrolment>,
    after: Option<&Enrolment>,
) -> Result<bool, StoreError> {
    let Some(number) = before.or(after).map(|one| seconds(one.number)) else { return Ok(true) };
    let before = before.map(enrolment::write).transpose()?;
    let found: Option<Vec<u8>> =
        connection.prepare_cached(ENROLMENT)?.query_row([number], |row| row.get(0)).optional()?;
    if found != before {
        return Ok(false);
    }
    match after {
        Some(after) => connection
            .prepare_cached("INSERT OR REPLACE INTO enrolments (number, written) VALUES (?1, ?2)")?
            .execute(params![number, enrolment::write(after)?])?,
        None => connection.prepare_cached("DELETE FROM enrolments WHERE number = ?1")?.execute([number])?,
    };
    Ok(true)
}

pub(super) fn insert(connection: &Connection, host: &NewHost) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO hosts (name, role, mac, algorithm, key, revoked, not_before, not_after)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7)",
    )?;
    let number = statement.insert(params![
        host.name,
        host.role.name(),
        host.mac.map(|mac| mac.0),
        host.algorithm,
        host.key,
        seconds(host.not_before_unix),
        seconds(host.not_after_unix),
    ])?;
    insert_lists(connection, number, &host.addresses, &host.subnets)?;
    unsigned(number)
}

pub(super) fn renew(connection: &Connection, number: i64, host: &NewHost) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(
        "UPDATE hosts SET role = ?2, mac = ?3, algorithm = ?4, key = ?5, revoked = 0, not_before = ?6, not_after = ?7
         WHERE number = ?1",
    )?;
    statement.execute(params![
        number,
        host.role.name(),
        host.mac.map(|mac| mac.0),
        host.algorithm,
        host.key,
        seconds(host.not_before_unix),
        seconds(host.not_after_unix),
    ])?;
    connection.prepare_cached("DELETE FROM addresses WHERE host = ?1")?.execute([number])?;
    connection.prepare_cached("DELETE FROM leases WHERE host = ?1")?.execute([number])?;
    connection.prepare_cached("DELETE FROM subnets WHERE host = ?1")?.execute([number])?;
    insert_lists(connection, number, &host.addresses, &host.subnets)?;
    unsigned(number)
}

fn insert_lists(
    connection: &Connection,
    number: i64,
    addresses: &[Ipv4Addr],
    subnets: &[Subnet],
) -> Result<(), StoreError> {
    let mut address_row =
        connection.prepare_cached("INSERT INTO addresses (host, position, address) VALUES (?1, ?2, ?3)")?;
    for (position, address) in (0i64..).zip(addresses) {
        address_row.execute(params![number, position, address.to_bits()])?;
    }
    let mut subnet_row = connection
        .prepare_cached("INSERT INTO subnets (host, position, network, prefix_len) VALUES (?1, ?2, ?3, ?4)")?;
    for (position, subnet) in (0i64..).zip(subnets) {
        subnet_row.execute(params![number, position, subnet.network().to_bits(), subnet.prefix_len()])?;
    }
    Ok(())
}

pub(super) fn append_address(connection: &Connection, number: u64, ip: Ipv4Addr) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO addresses (host, position, address)
         SELECT ?1, coalesce(max(position) + 1, 0), ?2 FROM addresses WHERE host = ?1",
    )?;
    statement.execute(params![seconds(number), ip.to_bits()])?;
    Ok(())
}

/// Takes back every address whose lease is over.
pub(super) fn end_leases(connection: &Connection, now_unix_s: u64) -> Result<(), StoreError> {
    let now = seconds(now_unix_s);
    let mut addresses = connection.prepare_cached(
        "DELETE FROM addresses WHERE (host, address) IN (SELECT host, address FROM leases WHERE until < ?1)",
    )?;
    addresses.execute([now])?;
    connection.prepare_cached("DELETE FROM leases WHERE until < ?1")?.execute([now])?;
    Ok(())
}

pub(super) fn insert_lease(
    connection: &Connection,
    number: u64,
    ip: Ipv4Addr,
    until_unix_s: u64,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("INSERT INTO leases (host, address, until) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![seconds(number), ip.to_bits(), seconds(until_unix_s)])?;
    Ok(())
}

/// Lets a lease end later. An address that was not leased stays as it is.
pub(super) fn prolong(connection: &Connection, number: u64, ip: Ipv4Addr, until_unix_s: u64) -> Result<(), StoreError> {
    let mut statement =
        connection.prepare_cached("UPDATE leases SET until = max(until, ?3) WHERE host = ?1 AND address = ?2")?;
    statement.execute(params![seconds(number), ip.to_bits(), seconds(until_unix_s)])?;
    Ok(())
}

pub(super) fn remove_address(connection: &Connection, number: i64, ip: Ipv4Addr) -> Result<bool, StoreError> {
    let row = params![number, ip.to_bits()];
    connection.prepare_cached("DELETE FROM leases WHERE host = ?1 AND address = ?2")?.execute(row)?;
    let mut removal = connection.prepare_cached("DELETE FROM addresses WHERE host = ?1 AND address = ?2")?;
    Ok(removal.execute(row)? > 0)
}

/// Gives a good host a key; false if there is none of this name.
pub(super) fn set_key(connection: &Connection, name: &str, algorithm: u8, key: &[u8]) -> Result<bool, StoreError> {
    let mut statement =
        connection.prepare_cached("UPDATE hosts SET algorithm = ?2, key = ?3 WHERE name = ?1 AND revoked = 0")?;
    Ok(statement.execute(params![name, algorithm, key])? > 0)
}

/// A row of `hosts` as it is stored.
struct Columns {
    number: i64,
    name: String,
    role: String,
    mac: Option<[u8; 6]>,
    algorithm: u8,
    key: Vec<u8>,
    is_revoked: bool,
    not_before: i64,
    not_after: i64,
}

fn columns(row: &Row<'_>) -> rusqlite::Result<Columns> {
    Ok(Columns {
        number: row.get(0)?,
        name: row.get(1)?,
        role: row.get(2)?,
        mac: row.get(3)?,
        algorithm: row.get(4)?,
        key: row.get(5)?,
        is_revoked: row.get(6)?,
        not_before: row.get(7)?,
        not_after: row.get(8)?,
    })
}

fn entry(connection: &Connection, row: Columns) -> Result<HostEntry, StoreError> {
    let Some(role) = Role::from_name(&row.role) else {
        return Err(StoreError::Damaged(format!("{:?} has the role {:?}", row.name, row.role)));
    };
    Ok(HostEntry {
        number: unsigned(row.number)?,
        addresses: addresses_of(connection, row.number)?,
        subnets: subnets_of(connection, row.number)?,
        name: row.name,
        role,
        mac: row.mac.map(MacAddress),
        algorithm: row.algorithm,
        key: row.key,
        standing: standing(row.is_revoked),
        not_before_unix: unsigned(row.not_before)?,
        not_after_unix: unsigned(row.not_after)?,
    })
}

fn standing(is_revoked: bool) -> Standing {
    if is_revoked { Standing::Revoked } else { Standing::Good }
}

fn addresses_of(connection: &Connection, number: i64) -> Result<Vec<Ipv4Addr>, StoreError> {
    let mut statement = connection.prepare_cached(ADDRESSES)?;
    let rows = statement.query_map([number], |row| row.get(0).map(Ipv4Addr::from_bits))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn subnets_of(connection: &Connection, number: i64) -> Result<Vec<Subnet>, StoreError> {
    let mut statement = connection.prepare_cached(SUBNETS)?;
    let rows = statement.query_map([number], |row| Ok((row.get(0).map(Ipv4Addr::from_bits)?, row.get(1)?)))?;
    rows.map(|row| {
        let (network, prefix_len) = row?;
        Subnet::new(network, prefix_len).map_err(|error| StoreError::Damaged(error.to_string()))
    })
    .collect()
}

fn unsigned(stored: i64) -> Result<u64, StoreError> {
    u64::try_from(stored).map_err(|_| StoreError::Damaged(format!("the number {stored} is below zero")))
}
