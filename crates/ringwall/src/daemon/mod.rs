//! What every daemon consists of, whatever bump it drives and whatever interfaces it holds.
//!
//! - `data_path.rs`: the thread that moves frames; `worker.rs`: the thread for slow work;
//!   `guard.rs`: what the first needs
//!   of a bump, `jobs.rs`: what the second does; `link.rs`: the way to the data path; `queue.rs`:
//!   what these threads hand to each other.
//! - `bounded.rs`: the bump behind a boundary, so that a panic costs a frame; `fail_closed` where
//!   it costs the daemon.
//! - `supervisor.rs`: the main thread: commands, signals, what happens to the cards, the watchdog; `journal.rs`: its memory;
//!   `notice.rs`: what the service manager hears;
//!   `reports.rs`: what it says; `telling.rs`: attacks, and whom they are told.
//! - `bulk.rs`, `gather.rs`, `quiet.rs`: what the data path notices about its load; `precedence.rs`: before whom it runs.

mod bounded;
mod bulk;
pub(crate) mod companions;
mod data_path;
mod gather;
mod guard;
mod jobs;
mod journal;
mod link;
mod notice;
mod precedence;
mod queue;
mod quiet;
pub(crate) mod reports;
mod supervisor;
mod telling;
mod worker;

use std::os::fd::AsFd;

use system::clock::Clock;
use system::port::{Port, Ports};
use system::wait::Waker;

use crate::failure::Failure;
use bounded::Bounded;
use bulk::Bulk;
use data_path::DataPath;
pub(crate) use data_path::{Command, Snapshot};
use gather::Gather;
pub(crate) use guard::{Described, Guard, Kind};
pub(crate) use jobs::{Jobs, NoJobs};
pub(crate) use journal::{Journal, unix_ms};
pub(crate) use link::{Link, Unanswered};
pub(crate) use notice::Notice;
pub(crate) use precedence::Precedence;
pub(crate) use queue::Reply;
use quiet::Quiet;
pub(crate) use reports::SideNames;
pub(crate) use supervisor::{Being, Supervisor, Ward};
pub(crate) use telling::Here;
use worker::Worker;

/// Messages that may wait between supervisor and data path.
const MESSAGES_WAITING_MAX: usize = 256;

/// Who does jobs: those that the data path runs itself, and those of each thread beside it.
pub(crate) struct Crew<J> {
    pub(crate) here: J,
    pub(crate) beside: Vec<J>,
}

impl Crew<NoJobs> {
    /// Of a bump that has none.
    pub(crate) fn none() -> Crew<NoJobs> {
        Crew { here: NoJobs, beside: Vec::new() }
    }
}

/// What the data path is to make of its load.
pub(crate) struct Load {
    gather: Gather,
    bulk: Bulk,
    precedence: Precedence,
}

impl Load {
    /// For ports that carry all frames; `trains` has every frame to the wire leave in trains where it may.
    pub(crate) fn new(trains: bool) -> Load {
        Load { gather: Gather::default(), bulk: Bulk::new(trains), precedence: Precedence::Unwanted }
    }

    /// For ports that hear only what is kept for the daemon.
    pub(crate) fn of_kept() -> Load {
        Load { gather: Gather::of_kept(), bulk: Bulk::new(false), precedence: Precedence::Unwanted }
    }

    /// For a data path that runs before the rest of the machine as the calling thread does.
    pub(crate) fn with(self, precedence: Precedence) -> Load {
        Load { precedence, ..self }
    }
}

/// Starts the data path and the worker, and supervises until the end.
pub(crate) fn serve<G, J, S, W>(
    guard: G,
    crew: Crew<J>,
    load: Load,
    ports: Ports<S>,
    clock: Clock,
    supervisor: Supervisor<W>,
) -> Result<(), Failure>
where
    W: Ward,
    G: Guard<W::Kind> + Send + 'static,
    G::Job: Send + 'static,
    G::Completion: Send + 'static,
    J: Jobs<G>,
    S: Port + AsFd + Send + 'static,
{
    let waker = Waker::new().map_err(Failure::new)?;
    let (command_sender, commands) = queue::inbound(MESSAGES_WAITING_MAX, &waker);
    let (news, news_receiver) = queue::outbound(MESSAGES_WAITING_MAX);
    let worker = Worker::start(crew.beside, &waker, &load.precedence).map_err(Failure::new)?;
    let data_path = DataPath {
        guard: Bounded::new(guard),
        ports,
        clock,
        worker,
        commands,
        waker,
        news,
        supervisor: supervisor.waker(),
        news_lost: 0,
        jobs: crew.here,
        quiet: Quiet::default(),
        gather: load.gather,
        bulk: load.bulk,
        precedence: load.precedence.clone(),
    };
    let ring = supervisor.waker();
    let thread = std::thread::Builder::new()
        .name("ringwall-data".to_owned())
        .spawn(move || {
            let result = data_path.run();
            ring.wake();
            result
        })
        .map_err(Failure::new)?;
    load.precedence.leave();
    supervisor.run(Link { commands: command_sender, news: news_receiver, thread })
}
