//! S-DHCP over a repository that two distributors share in a cluster: leases begin, are renewed and end while one thing of each
//! kind fails.

use std::net::Ipv4Addr;
use std::time::Duration;

use authority::repository::{EtcdStore, Store};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::etcd::Cluster;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::process;
use rustix::process::Signal;

use crate::dhcp::{Client, kea_for};
use crate::distributors::{DISTRIBUTORS, MEMBERS, SharedSite, await_time, connect};
use crate::stage::{Guarded, Plan, SOON, Stage, perform};

/// How long a lease lasts.
const LEASE_S: u32 = 25;
const POOL: [u8; 2] = [20, 49];
/// A lease, and room for a loaded machine.
const OVER_LIMIT: Duration = Duration::from_secs(LEASE_S as u64 + 20);

/// Nothing is done by hand between the failures and the renewal.
#[test]
fn leases_live_and_end_while_a_member_and_a_distributor_fail() {
    let missing: Vec<&str> =
        ["etcd", "kea-dhcp4", "udhcpc"].into_iter().filter(|one| !process::installed(one)).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED S-DHCP over a cluster: needs {}", missing.join(", "));
        return;
    }
    perform(&["a", "d", "j", "k"], |stage| {
        let mut cluster = Cluster::start(stage.run, "etcd", MEMBERS, None, |members| connect(stage, members))?;
        let site = SharedSite::found(stage, &cluster)?;
        let mut distributors: Vec<Guarded> =
            DISTRIBUTORS.iter().map(|name| site.distribute(name, &cluster)).collect::<Result<_, _>>()?;
        let hosts = Hosts::guard(stage, &site)?;
        let directory = stage.file("server");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let server = kea_for(stage.host("d"), &directory, POOL, LEASE_S)?;
        let client = Client::start(stage, "a", "udhcpc")?;
        assert_eq!(addresses(&cluster)?, [client.address], "the cluster knows who has the address");

        cluster.kill_member(0);
        distributors[1].stop(Signal::KILL);
        process::pause(Duration::from_secs(2))?;
        let before = hosts.remaining_s()?;
        client.process.signal(Signal::USR1);
        process::until("the renewal", SOON, || Ok(hosts.remaining_s()? > before))?;
        assert_eq!(addresses(&cluster)?, [client.address]);

        // Its program is gone, so nobody renews.
        client.stop();
        hosts.a.await_event("has ended; this host no longer speaks for it", OVER_LIMIT)?;
        stage.host("a").namespace.ip(&format!("addr flush dev {INTERFACE}"))?;

        let again = Client::start(stage, "a", "udhcpc")?;
        again.process.signal(Signal::USR2);
        process::until("the release in the cluster", SOON, || Ok(addresses(&cluster)?.is_empty()))?;
        again.stop();
        server.stop(Signal::TERM);
        Ok(())
    });
}

/// A DHCP server and a client.
struct Hosts {
    a: Guarded,
    d: Guarded,
}

impl Hosts {
    fn guard(stage: &Stage, site: &SharedSite<'_>) -> Result<Hosts, Failure> {
        let plan = |tail: &str| Plan::sarp().tail(tail);
        let identity = site.issue(stage.host("d"), "--role dhcp")?;
        let d = stage.guard("d", plan("[dhcp]\nserver = true\n").identity(identity))?;
        let a = stage.host("a");
        a.namespace.ip(&format!("addr flush dev {INTERFACE}"))?;
        let identity = site.issue_with(a, "--subnet 10.77.0.0/24")?;
        let a = stage.guard("a", plan("[dhcp]\nclient = true\n").identity(identity))?;
        [&a, &d].into_iter().try_for_each(await_time)?;
        Ok(Hosts { a, d })
    }

    /// How long the only lease that the server gave still lasts.
    fn remaining_s(&self) -> Result<Option<u64>, Failure> {
        Ok(self.d.status()?["sarp"]["leases"][0]["remaining_s"].as_u64())
    }
}

/// What the cluster knows of host a.
fn addresses(cluster: &Cluster) -> Result<Vec<Ipv4Addr>, Failure> {
    cluster.namespace().enter(|| {
        let unreadable = |error| Failure::Unreadable(format!("the cluster: {error}"));
        let store = EtcdStore::new(&cluster.access(), "lab").map_err(unreadable)?;
        let entry = store.by_name("a").map_err(unreadable)?;
        Ok(entry.map(|entry| entry.addresses).unwrap_or_default())
    })
}
