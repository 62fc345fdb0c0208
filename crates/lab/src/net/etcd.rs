//! A cluster of etcd in a namespace of its own: real members, their data below the run's directory.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::repository::etcd::Access;
use authority::repository::{EtcdStore, StoreError};
use rustix::process::Signal;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Namespace, Running, process};

/// How many members a cluster has: one of them may fail.
pub const MEMBERS: usize = 3;
/// How long a new cluster may take until it serves, with room for a loaded machine.
const SERVES_LIMIT: Duration = Duration::from_secs(30);
/// The ports of the first member; each further one has the next two.
const FIRST_PORT: u16 = 2379;

/// What seals the way between members and those who ask them.
#[derive(Clone, Debug)]
pub struct Seal {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The certificate of all members and of those who ask, and its key.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Three members. Dropping it ends them and removes the namespace.
#[derive(Debug)]
pub struct Cluster {
    namespace: Namespace,
    address: Ipv4Addr,
    directory: PathBuf,
    seal: Option<Seal>,
    members: [Option<Running>; MEMBERS],
}

impl Cluster {
    /// Starts the members in the new namespace `name`, where they listen at `address`, which `prepare` may put there.
    ///
    /// # Errors
    /// The namespace, a member, or that they do not serve in time.
    pub fn start(
        run: &Run,
        name: &str,
        address: Ipv4Addr,
        seal: Option<Seal>,
        prepare: impl FnOnce(&Namespace) -> Result<(), Failure>,
    ) -> Result<Cluster, Failure> {
        let directory = run.directory().join(name);
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let namespace = Namespace::create(run, name)?;
        let mut cluster = Cluster { namespace, address, directory, seal, members: [None, None, None] };
        prepare(&cluster.namespace)?;
        (0..MEMBERS).try_for_each(|at| cluster.start_member(at))?;
        cluster.await_service()?;
        Ok(cluster)
    }

    /// Where the members are.
    #[must_use]
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// How the members are reached from where their address is.
    #[must_use]
    pub fn access(&self) -> Access {
        let seal = self.seal.as_ref();
        Access {
            members: (0..MEMBERS).map(|at| self.url(at, 0)).collect(),
            ca: seal.map(|seal| seal.ca.clone()),
            certificate: seal.map(|seal| seal.certificate.clone()),
            key: seal.map(|seal| seal.key.clone()),
            unprotected: true,
        }
    }

    fn url(&self, at: usize, purpose: u16) -> String {
        let scheme = if self.seal.is_some() { "https" } else { "http" };
        let port = FIRST_PORT + 2 * u16::try_from(at).unwrap_or_default() + purpose;
        format!("{scheme}://{}:{port}", self.address)
    }

    /// Starts a member, with the data that it has.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_member(&mut self, at: usize) -> Result<(), Failure> {
        let mut command = self.namespace.command("etcd");
        let peers: Vec<String> = (0..MEMBERS).map(|at| format!("m{at}={}", self.url(at, 1))).collect();
        let data = self.directory.join(format!("m{at}"));
        for (option, value) in [
            ("name", format!("m{at}")),
            ("data-dir", data.display().to_string()),
            ("listen-client-urls", self.url(at, 0).replace(&self.address.to_string(), "0.0.0.0")),
            ("advertise-client-urls", self.url(at, 0)),
            ("listen-peer-urls", self.url(at, 1)),
            ("initial-advertise-peer-urls", self.url(at, 1)),
            ("initial-cluster", peers.join(",")),
            ("initial-cluster-token", self.namespace.name().to_owned()),
            ("logger", "zap".to_owned()),
        ] {
            command.arg(format!("--{option}={value}"));
        }
        if let Some(seal) = &self.seal {
            for kind in ["", "peer-"] {
                command.arg(format!("--{kind}client-cert-auth"));
                for (option, file) in
                    [("trusted-ca-file", &seal.ca), ("cert-file", &seal.certificate), ("key-file", &seal.key)]
                {
                    command.arg(format!("--{kind}{option}={}", file.display()));
                }
            }
        }
        self.members[at] = Some(Running::start(command, &self.directory.join(format!("log-{at}")))?);
        Ok(())
    }

    /// Ends a member at once, as a power cut would.
    pub fn kill_member(&mut self, at: usize) {
        if let Some(member) = self.members[at].take() {
            member.stop(Signal::KILL);
        }
    }

    /// Sends a signal to a member that runs.
    pub fn signal(&self, at: usize, signal: Signal) {
        if let Some(member) = &self.members[at] {
            member.signal(signal);
        }
    }

    /// Waits until each member that runs answers questions.
    ///
    /// # Errors
    /// One does not in time.
    pub fn await_service(&self) -> Result<(), Failure> {
        for at in (0..MEMBERS).filter(|at| self.members[*at].is_some()) {
            let access = Access { members: vec![self.url(at, 0)], ..self.access() };
            let store = EtcdStore::new(&access, "none").map_err(|error| Failure::Usage(error.to_string()))?;
            self.namespace.enter(|| {
                process::until(&format!("member {at} of etcd"), SERVES_LIMIT, || {
                    let answer = store.probe();
                    Ok(answer.is_err_and(|error| *error.reason() == StoreError::NotShared))
                })
            })?;
        }
        Ok(())
    }

    /// Moves the calling thread, and all that it starts from now on, to where the members are.
    ///
    /// # Errors
    /// The namespace cannot be entered.
    pub fn move_here(&self) -> Result<(), Failure> {
        let path = Path::new("/run/netns").join(self.namespace.name());
        let file = File::open(&path).map_err(Failure::file("opening", &path))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| Failure::Io { doing: format!("entering {}", path.display()), source: error.into() })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..MEMBERS).for_each(|at| self.kill_member(at));
        // What stays is found by the test's own look at what it left, and by the sweep.
        let _gone = self.namespace.delete();
        let _removed = std::fs::remove_dir_all(&self.directory);
        // The run's directory goes with the last thing in it.
        let _left = self.directory.parent().map(std::fs::remove_dir);
    }
}
