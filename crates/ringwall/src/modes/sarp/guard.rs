//! A host that signs ARP as a bump that a daemon drives.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::{DropReason, Instant, Now, Sink};
use identity::signing::SigningKey;
use sarp::akd::Records;
use sarp::{Completion, Event, Host, Job, KnownHost, Report, SharedKeys};
use wire::MacAddress;

use crate::daemon::{Described, Guard, Jobs, Kind};
use crate::protocol::About;

/// Answers that a distributor makes before it hands them over: the price of looking and waking is
/// shared, and the first waits for less than half a millisecond.
const ANSWERS_AT_ONCE_MAX: usize = 32;

/// The mode.
pub(crate) struct SignedArp;

impl Kind for SignedArp {
    type Order = Order;
    type Report = Report;
    type Effect = Infallible;
}

/// An order to the bump.
pub(crate) enum Order {
    /// Have the host's own key replaced; how that ends is in the report.
    ChangeKey(Arc<SigningKey>),
    /// What this host shares with others is this from now on.
    Share(Box<SharedKeys>),
    /// The hosts that are believed without a signature are these from now on.
    KnownHosts(Vec<KnownHost>),
}

/// Does jobs with the repository that a distributor answers from. Every key that a host works with
/// has been read and used when its identity was loaded, so there is nothing to test.
#[derive(Clone)]
pub(super) struct Signer(pub(super) Arc<dyn Records + Send + Sync>);

impl Jobs<Host> for Signer {
    fn run(&mut self, job: Job) -> Completion {
        job.run(&*self.0)
    }

    fn run_all(&mut self, jobs: Vec<Job>) -> Vec<Completion> {
        Job::run_all(jobs, &*self.0)
    }

    fn at_once(&self) -> usize {
        // Nobody is kept waiting by others' questions to a repository that is far away.
        if self.0.is_at_hand() { ANSWERS_AT_ONCE_MAX } else { 1 }
    }

    fn is_urgent(&self, job: &Job) -> bool {
        job.is_urgent(&*self.0)
    }

    fn lost() -> Option<Completion> {
        Some(Completion::lost())
    }
}

/// Whom an event is about.
fn subject(event: &Event) -> About {
    let about = |ip: Option<Ipv4Addr>, mac: Option<MacAddress>, reason: Option<DropReason>| About {
        ip: ip.map(|ip| ip.to_string()),
        mac: mac.map(|mac| mac.to_string()),
        reason: reason.map(|reason| reason.word().to_owned()),
        ..About::default()
    };
    match event {
        Event::NoKey { ip } | Event::KeyChanged { ip } => about(Some(*ip), None, None),
        Event::Refused { ip, mac, reason } => about(Some(*ip), Some(*mac), Some(*reason)),
        Event::DhcpRefused { mac, reason } | Event::DhcpServerRefused { mac, reason } => {
            about(None, Some(*mac), Some(*reason))
        }
        Event::AddressClaimed { ip, by } => about(Some(*ip), Some(*by), None),
        _ => About::default(),
    }
}

/// Its own messages are short, and the rest passes as it is, so the size of packets is nothing to
/// it.
impl Guard<SignedArp> for Host {
    fn describe(event: &Event) -> Described {
        Described { word: event.word(), text: event.to_string(), about: subject(event) }
    }

    fn obey(&mut self, now: Now, order: Order, sink: &mut dyn Sink) {
        match order {
            // Whoever asked for it looks whether it began.
            Order::ChangeKey(new) => _ = self.change_key(now, new, sink),
            Order::Share(keys) => self.share(&keys),
            Order::KnownHosts(hosts) => self.know(hosts),
        }
    }

    fn report(&self, now: Instant) -> Report {
        Host::report(self, now)
    }
}
