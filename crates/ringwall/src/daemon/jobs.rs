//! The slow work of a bump, for those that have some.

use std::convert::Infallible;

use bump::Bump;

/// Who does the jobs of a bump, with all that they need beside themselves; each thread has its own.
pub(crate) trait Jobs<B: Bump>: Send + 'static {
    /// Runs a job.
    fn run(&mut self, job: B::Job) -> B::Completion;

    /// Runs jobs that have waited together, in their order.
    fn run_all(&mut self, jobs: Vec<B::Job>) -> Vec<B::Completion> {
        jobs.into_iter().map(|job| self.run(job)).collect()
    }

    /// How many jobs at most run before the results of the first are handed over.
    fn at_once(&self) -> usize {
        1
    }

    /// Shows before the first frame that slow work can be done at all, and what is wrong if not.
    fn self_test(&mut self, _bump: &B) -> Result<(), String> {
        Ok(())
    }

    /// Whether somebody waits for the result, so that it may be run on a quiet data path.
    fn is_urgent(&self, job: &B::Job) -> bool;

    /// What stands for a job that could not be run; `None` where there are no jobs.
    fn lost() -> Option<B::Completion>;
}

/// Of a bump whose work is all on the data path.
pub(crate) struct NoJobs;

impl<B: Bump<Job = Infallible>> Jobs<B> for NoJobs {
    fn run(&mut self, job: Infallible) -> B::Completion {
        match job {}
    }

    fn is_urgent(&self, job: &Infallible) -> bool {
        match *job {}
    }

    fn lost() -> Option<B::Completion> {
        None
    }
}
