//! The thread for slow work: signatures, certificates, key agreement. Beside the data path, never on it.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use bump::Ticket;
use system::wait::Waker;

use super::guard::Guard;

/// Jobs that may wait; what comes beyond is lost, and the handshake is repeated.
const JOBS_WAITING_MAX: usize = 256;

/// The data path's end of the worker.
pub(crate) struct Worker<G: Guard> {
    jobs: Option<SyncSender<(Ticket, G::Job)>>,
    results: Receiver<(Ticket, G::Completion)>,
    thread: Option<JoinHandle<()>>,
}

impl<G: Guard> Worker<G>
where
    G::Job: Send + 'static,
    G::Completion: Send + 'static,
{
    /// Starts the worker. `waker` wakes the data path whenever a result is ready.
    pub(crate) fn start(mut tools: G::Tools, waker: Waker) -> std::io::Result<Worker<G>> {
        let (jobs, inbox) = sync_channel::<(Ticket, G::Job)>(JOBS_WAITING_MAX);
        // Results never wait for the data path: there are at most as many as jobs were accepted.
        let (outbox, results) = sync_channel(2 * JOBS_WAITING_MAX);
        let thread = std::thread::Builder::new().name("ringwall-worker".to_owned()).spawn(move || {
            while let Ok((ticket, job)) = inbox.recv() {
                if outbox.send((ticket, G::run_job(job, &mut tools))).is_err() {
                    return;
                }
                waker.wake();
            }
        })?;
        Ok(Worker { jobs: Some(jobs), results, thread: Some(thread) })
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

impl<G: Guard> Drop for Worker<G> {
    fn drop(&mut self) {
        self.jobs = None;
        // Results that nobody will read must not keep the worker from ending.
        while self.results.try_recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
