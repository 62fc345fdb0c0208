//! The repository of the site in three members of etcd, of which one ends while machines join, and
//! while hosts renew.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Stage;
use crate::failure::Failure;
use crate::net::etcd::Cluster;

const MEMBERS: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);
const SIGNER_SIDE: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);
/// When the member that is asked first is killed.
const KILLED_AFTER: Duration = Duration::from_secs(20);

/// The cluster, which one thread at a time changes.
pub(super) struct Shared(Mutex<Cluster>);

impl Shared {
    /// Starts the members beside the service, and moves the repository there.
    pub(super) fn start(stage: &Stage) -> Result<Shared, Failure> {
        let cluster = Cluster::start(&stage.run, "etcd", MEMBERS, None, |members| {
            members.ip(&format!("link add r0 type veth peer name r0 netns {}", stage.service.name()))?;
            for (namespace, address) in [(members, MEMBERS), (&stage.service, SIGNER_SIDE)] {
                namespace.ip(&format!("address add {address}/24 dev r0"))?;
                namespace.ip("link set r0 up")?;
            }
            Ok(())
        })?;
        let members = cluster.access().members;
        let named = members.iter().flat_map(|member| ["--etcd", member]);
        let words: Vec<&str> = ["repository", "import", "--unprotected"].into_iter().chain(named).collect();
        stage.order(&words)?;
        Ok(Shared(Mutex::new(cluster)))
    }

    /// Kills the first member in the midst of it, and starts it again at the end.
    pub(super) fn disturb_while(&self, goes_on: &AtomicBool) -> Result<(), Failure> {
        let mut cluster = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let mut is_killed = false;
        while goes_on.load(Ordering::Relaxed) {
            if !is_killed && start.elapsed() >= KILLED_AFTER {
                cluster.kill_member(0);
                is_killed = true;
            }
            sleep(Duration::from_millis(100));
        }
        if !is_killed {
            return Ok(());
        }
        cluster.start_member(0)?;
        cluster.await_service()
    }
}
