//! The threads for slow work: signatures, certificates, key agreement. Beside the data path, never on it.

use std::thread::JoinHandle;

use bump::{Bump, Ticket};
use system::boundary::contain;
use system::wait::Waker;

use super::jobs::Jobs;
use super::precedence::Precedence;
use super::queue::{Drain, Feed, Inbox, Outbox, inbound, outbound};

/// Jobs that may wait, and as many again while the worker takes some; what comes beyond is lost, and the handshake is repeated.
const JOBS_WAITING_MAX: usize = 512;

/// The data path's end of the worker.
pub(crate) struct Worker<B: Bump> {
    jobs: Option<Outbox<(Ticket, B::Job)>>,
    results: Inbox<(Ticket, B::Completion)>,
    threads: Vec<JoinHandle<()>>,
}

impl<B: Bump> Worker<B>
where
    B::Job: Send + 'static,
    B::Completion: Send + 'static,
{
    /// Starts a thread for each of `crew`. `waker` wakes the data path whenever results are ready.
    pub(crate) fn start<J: Jobs<B>>(
        crew: Vec<J>,
        waker: &Waker,
        precedence: &Precedence,
    ) -> std::io::Result<Worker<B>> {
        let (jobs, inbox) = outbound(JOBS_WAITING_MAX);
        // Without a bound of its own: there are at most as many as jobs were accepted.
        let (outbox, results) = inbound(usize::MAX, waker);
        let start = |one| {
            let (inbox, outbox, precedence) = (inbox.clone(), outbox.clone(), precedence.clone());
            let name = "ringwall-worker".to_owned();
            std::thread::Builder::new().name(name).spawn(move || {
                precedence.leave();
                work(&inbox, one, &outbox);
            })
        };
        let threads = crew.into_iter().map(start).collect::<std::io::Result<_>>()?;
        Ok(Worker { jobs: Some(jobs), results, threads })
    }

    /// Takes a job on, or gives its ticket back when too many wait. It goes out with the next [`hand_over`](Worker::hand_over).
    pub(crate) fn accept(&mut self, ticket: Ticket, job: B::Job) -> Result<(), Ticket> {
        let Some(jobs) = &mut self.jobs else { return Err(ticket) };
        jobs.post((ticket, job)).map_err(|(ticket, _)| ticket)
    }

    /// Hands jobs over that were taken on.
    pub(crate) fn hand_over(&mut self) {
        self.jobs.iter_mut().for_each(Outbox::hand_over);
    }

    /// Whether jobs are yet to be handed over.
    pub(crate) fn waits(&self) -> bool {
        self.jobs.as_ref().is_some_and(Outbox::waits)
    }

    /// The next result, if one is ready.
    pub(crate) fn result(&mut self) -> Option<(Ticket, B::Completion)> {
        self.results.next()
    }
}

/// Runs jobs until no more will come, and takes those along that wait behind the first.
fn work<B: Bump, J: Jobs<B>>(inbox: &Drain<(Ticket, B::Job)>, mut one: J, outbox: &Feed<(Ticket, B::Completion)>) {
    loop {
        let (tickets, jobs): (Vec<_>, Vec<_>) = inbox.wait_for(one.at_once()).into_iter().unzip();
        if jobs.is_empty() {
            return;
        }
        let Ok(completions) = contain(|| one.run_all(jobs)) else {
            // With this bump no job can be lost, because there are none.
            let lost = tickets.into_iter().filter_map(|ticket| J::lost().map(|lost| (ticket, lost)));
            outbox.put(lost.collect::<Vec<_>>().into_iter());
            continue;
        };
        outbox.put(tickets.into_iter().zip(completions));
    }
}

impl<B: Bump> Drop for Worker<B> {
    fn drop(&mut self) {
        // Which tells the threads that no more will come.
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use system::wait::{PollFd, PollFlags, wait};

    use super::*;
    use crate::daemon::bounded::tests::{Brittle, OfBrittle};

    #[test]
    fn a_job_that_panics_beside_the_data_path_is_a_lost_one_and_the_thread_goes_on() {
        let waker = Waker::new().expect("eventfd");
        let mut worker = Worker::<Brittle>::start(vec![OfBrittle], &waker, &Precedence::Unwanted).expect("a thread");
        for job in [5, 0, 6] {
            worker.accept(Ticket(job), job as u8).expect("room");
        }
        worker.hand_over();
        let mut results = Vec::new();
        while results.len() < 3 {
            wait(&mut [PollFd::new(&waker, PollFlags::IN)], None).expect("poll");
            waker.drain();
            results.extend(std::iter::from_fn(|| worker.result()));
        }
        assert_eq!(results, [(Ticket(5), Some(5)), (Ticket(0), None), (Ticket(6), Some(6))]);
    }
}
