//! The repository in a cluster of etcd with real members: the rules of every repository, and what a cluster can go through.
//!
//! Needs root and etcd; skips by name without. All of it happens on the loopback of a namespace that this test makes.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[path = "shared_repository/faults.rs"]
mod faults;
#[path = "../../authority/tests/repository/rules.rs"]
mod rules;
#[path = "shared_repository/sealed.rs"]
mod sealed;
#[path = "shared_repository/site.rs"]
mod site;

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use authority::repository::{Contents, EtcdStore};
use ringwall_lab::cleanup::{self, Run};
use ringwall_lab::net::etcd::Cluster;
use ringwall_lab::net::process;
use rustix::process::geteuid;

use rules::store_rules;

/// The cluster that tests share which do it no harm, as long as one of them runs.
static SHARED: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());
static RUN: OnceLock<&'static Run> = OnceLock::new();

/// The run of this process; says so by name if `test` cannot run here.
fn run_for(test: &str) -> Option<&'static Run> {
    let reason = match (geteuid().is_root(), process::installed("etcd")) {
        (true, true) => return Some(RUN.get_or_init(begin)),
        (false, _) => "needs root",
        _ => "needs etcd (Debian: etcd-server)",
    };
    eprintln!("SKIPPED {test}: {reason}");
    None
}

fn begin() -> &'static Run {
    // Other runs of the lab clear away what belongs to no living lab, and know one by this name.
    std::fs::write("/proc/self/comm", "ringwall-lab-t").expect("a process may name itself");
    cleanup::begin_transient().expect("root can begin a run")
}

/// A new, empty repository of the site `site` in a cluster.
fn repository(cluster: &Cluster, site: &str) -> EtcdStore {
    let store = EtcdStore::new(&cluster.access(), site).expect("an access");
    store.create(&Contents::default()).expect("made");
    store
}

/// Each rule has a site of its own in the cluster.
fn empty(rule: &str) -> Option<(Arc<Cluster>, EtcdStore)> {
    let run = run_for(rule)?;
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let cluster = shared.upgrade().unwrap_or_else(|| {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let name = format!("s{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let cluster = Cluster::start(run, &name, Ipv4Addr::LOCALHOST, None, |_| Ok(()));
        Arc::new(cluster.expect("a cluster"))
    });
    *shared = Arc::downgrade(&cluster);
    cluster.move_here().expect("entered");
    let store = repository(&cluster, rule);
    Some((cluster, store))
}

store_rules! { empty }
