//! The supervisor's end of the data path: commands and questions to it, news of it.

use std::io;
use std::sync::PoisonError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use system::wait::{PollFd, PollFlags, Waker, wait};

use super::data_path::{Command, News, Snapshot};
use super::guard::Kind;
use super::queue::{Drain, Feed, Reply};

/// How long the data path may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The data path takes no questions, or took too long.
    Silence,
    /// The bump has nothing of the kind; or the data path ended in this moment, which its thread
    /// then says.
    Declined,
}

/// The supervisor's end of the data path.
pub(crate) struct Link<K: Kind> {
    pub(super) commands: Feed<Command<K>>,
    pub(super) news: Drain<News<K>>,
    pub(super) thread: JoinHandle<io::Result<()>>,
}

impl<K: Kind> Link<K> {
    pub(crate) fn command(&self, command: Command<K>) -> io::Result<()> {
        let has_room = self.commands.put(std::iter::once(command));
        if has_room { Ok(()) } else { Err(io::Error::other("the data path takes no commands")) }
    }

    /// Has the bump carry out an order.
    pub(crate) fn order(&self, order: K::Order) -> io::Result<()> {
        self.command(Command::Order(order))
    }

    pub(super) fn snapshot(&self) -> Option<Snapshot<K>> {
        self.question(Command::Snapshot).ok()
    }

    /// Asks the data path.
    pub(crate) fn question<T>(&self, command: impl FnOnce(Reply<T>) -> Command<K>) -> Result<T, Unanswered> {
        let waker = Waker::new().map_err(|_| Unanswered::Silence)?;
        let (reply, answer) = Reply::new(&waker);
        self.command(command(reply)).map_err(|_| Unanswered::Silence)?;
        let deadline = Instant::now() + ANSWER_TIME_MAX;
        // A signal may end a wait early.
        while !is_woken(&waker, deadline.saturating_duration_since(Instant::now())) {
            if Instant::now() >= deadline {
                return Err(Unanswered::Silence);
            }
        }
        answer.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or(Unanswered::Declined)
    }
}

/// Waits until `waker` has been rung, no longer than `time`, and says whether it was.
fn is_woken(waker: &Waker, time: Duration) -> bool {
    wait(&mut [PollFd::new(waker, PollFlags::IN)], Some(time)).is_ok_and(|ready| ready > 0)
}
