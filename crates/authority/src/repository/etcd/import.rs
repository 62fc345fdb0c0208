//! Moves hosts into a cluster. Nobody sees any of them before all are there.

use std::collections::BTreeMap;

use super::entry::{self, from_json, to_json};
use super::message::{Compare, Outcome, Step, Transaction};
use super::{EtcdStore, FORM, NEXT, VERSION};
use crate::limits::{ETCD_PAGE, ETCD_STEPS};
use crate::repository::{Contents, Lease, StoreError, enrolment};

/// Whose turn it is to move hosts in; a second import takes it from the first, which then fails.
const IMPORTING: &str = "importing";

impl EtcdStore {
    /// All that it holds.
    ///
    /// # Errors
    /// What is wrong with the cluster.
    pub fn contents(&self) -> Result<Contents, StoreError> {
        self.read(|snapshot| {
            let hosts = self.all_hosts(snapshot)?;
            let prefix = self.key("hosts/lease/");
            let leases = snapshot.all(&prefix, ETCD_PAGE, |key, value| read_lease(&prefix, key, value))?;
            Ok(Contents { hosts, leases, enrolments: self.all_enrolments(snapshot)? })
        })
    }

    /// Makes the site's repository in the cluster, with these hosts under the numbers they have, their leases, and the tokens.
    ///
    /// # Errors
    /// [`StoreError::SharedExists`] if there is one; or what is wrong with the cluster. Then nobody has seen anything of
    /// this, and it may be repeated.
    pub fn create(&self, contents: &Contents) -> Result<(), StoreError> {
        self.import(contents).map_err(|error| self.with_place(error))
    }

    fn import(&self, contents: &Contents) -> Result<(), StoreError> {
        let Contents { hosts, leases, enrolments } = contents;
        let turn = self.begin()?;
        let mut steps = Vec::new();
        let mut indexes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for host in hosts {
            steps.push(Step::put(&self.host_key(host.number), &entry::write(host)?));
            steps.push(Step::put(&self.name_key(&host.name), &to_json(&host.number)?));
            for key in self.index_keys(host.mac, &host.addresses) {
                indexes.entry(key).or_default().push(host.number);
            }
        }
        for (key, numbers) in &indexes {
            steps.push(Step::put(key, &to_json(numbers)?));
        }
        for lease in leases {
            steps.push(Step::put(&self.lease_key(lease.host, lease.address), &to_json(&lease.until_unix_s)?));
            steps.push(Step::put(&self.end_key(lease), &to_json(&(lease.host, lease.address))?));
        }
        for one in enrolments {
            steps.push(Step::put(&self.enrolment_key(one.number), &enrolment::write(one)?));
        }
        for part in steps.chunks(ETCD_STEPS) {
            self.step(turn, part.to_vec())?;
        }
        let next = hosts.iter().map(|host| host.number).max().unwrap_or(0) + 1;
        let finish = vec![
            Step::put(&self.key(NEXT), &to_json(&next)?),
            Step::put(&self.key(FORM), &to_json(&VERSION)?),
            Step::delete(&self.key(IMPORTING)),
        ];
        self.step(turn, finish)
    }

    /// Takes the turn and clears away what an import that broke off has left; gives the revision that stands for the turn.
    fn begin(&self) -> Result<u64, StoreError> {
        let begin = Transaction {
            compare: vec![Compare::unchanged(&self.key(FORM), 0)],
            success: vec![
                Step::delete_all(&self.hosts()),
                Step::delete_all(&self.key("enrolments/")),
                Step::put(&self.key(IMPORTING), b""),
            ],
        };
        let Outcome { header, succeeded, .. } = self.client.change(&begin)?;
        if succeeded { Ok(header.revision) } else { Err(StoreError::SharedExists) }
    }

    fn step(&self, turn: u64, success: Vec<Step>) -> Result<(), StoreError> {
        let compare = vec![Compare::unchanged(&self.key(FORM), 0), Compare::unchanged(&self.key(IMPORTING), turn)];
        let done = self.client.change(&Transaction { compare, success })?.succeeded;
        if done { Ok(()) } else { Err(StoreError::Busy) }
    }
}

/// The lease at a key, which says whose it is and of which address.
fn read_lease(prefix: &str, key: &str, value: &[u8]) -> Result<Lease, StoreError> {
    let place = || {
        let (host, address) = key.strip_prefix(prefix)?.split_once('/')?;
        Some((host.parse().ok()?, address.parse().ok()?))
    };
    let unreadable = || StoreError::DamagedKey(key.to_owned(), "it names no host and address".to_owned());
    let (host, address) = place().ok_or_else(unreadable)?;
    Ok(Lease { host, address, until_unix_s: from_json(key, value)? })
}
