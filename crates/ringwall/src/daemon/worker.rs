//! The threads for slow work: signatures, certificates, key agreement. Beside the data path, never on it.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use bump::Ticket;
use system::wait::Waker;

use super::guard::Guard;
use super::precedence::Precedence;

/// Jobs that may wait; what comes beyond is lost, and the handshake is repeated.
const JOBS_WAITING_MAX: usize = 512;

/// The data path's end of the worker.
pub(crate) struct Worker<G: Guard> {
    jobs: Option<SyncSender<(Ticket, G::Job)>>,
    results: Receiver<(Ticket, G::Completion)>,
    threads: Vec<JoinHandle<()>>,
}

impl<G: Guard> Worker<G>
where
    G::Job: Send + 'static,
    G::Completion: Send + 'static,
{
    /// Starts a thread for each of `tools`. `waker` wakes the data path whenever results are ready.
    pub(crate) fn start(tools: Vec<G::Tools>, waker: &Waker, precedence: &Precedence) -> std::io::Result<Worker<G>> {
        let (jobs, inbox) = sync_channel::<(Ticket, G::Job)>(JOBS_WAITING_MAX);
        // Results never wait for the data path: there are at most as many as jobs were accepted.
        let (outbox, results) = sync_channel(2 * JOBS_WAITING_MAX);
        let inbox = Arc::new(Mutex::new(inbox));
        let start = |tools| {
            let (inbox, outbox, waker) = (Arc::clone(&inbox), outbox.clone(), waker.clone());
            let precedence = precedence.clone();
            let name = "ringwall-worker".to_owned();
            std::thread::Builder::new().name(name).spawn(move || {
                precedence.leave();
                work::<G>(&inbox, tools, &outbox, &waker);
            })
        };
        let threads = tools.into_iter().map(start).collect::<std::io::Result<_>>()?;
        Ok(Worker { jobs: Some(jobs), results, threads })
    }

    /// Takes a job on, or gives its ticket back when too many wait.
    pub(crate) fn accept(&self, ticket: Ticket, job: G::Job) -> Result<(), Ticket> {
        let Some(jobs) = &self.jobs else { return Err(ticket) };
        match jobs.try_send((ticket, job)) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Err(ticket),
        }
    }

    /// The next result, if one is ready.
    pub(crate) fn result(&self) -> Option<(Ticket, G::Completion)> {
        self.results.try_recv().ok()
    }
}

/// Runs jobs until no more will come.
fn work<G: Guard>(
    inbox: &Mutex<Receiver<(Ticket, G::Job)>>,
    mut tools: G::Tools,
    outbox: &SyncSender<(Ticket, G::Completion)>,
    waker: &Waker,
) {
    while let Some((tickets, jobs)) = next_jobs(inbox, G::jobs_at_once(&tools)) {
        for result in tickets.into_iter().zip(G::run_jobs(jobs, &mut tools)) {
            if outbox.send(result).is_err() {
                return;
            }
        }
        waker.wake();
    }
}

/// Waits for a job, and takes those along that wait behind it; `None` when no more will come. Of several threads one waits for
/// the job, the others for their turn.
fn next_jobs<J>(inbox: &Mutex<Receiver<(Ticket, J)>>, at_once: usize) -> Option<(Vec<Ticket>, Vec<J>)> {
    let inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
    let first = inbox.recv().ok()?;
    Some(std::iter::once(first).chain(inbox.try_iter().take(at_once - 1)).unzip())
}

impl<G: Guard> Drop for Worker<G> {
    fn drop(&mut self) {
        self.jobs = None;
        // Results that nobody will read must not keep the worker from ending.
        while self.results.try_recv().is_ok() {}
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
