//! Before whom the data path runs.
//!
//! The main thread takes the priority while it has the privilege, hands it on to the data path, and is then, like the threads for slow
//! work, a program among others: a flood of signatures must not be what comes first.

use system::priority::{self, RealTimePriority};

/// What came of a priority that was wanted.
#[derive(Clone, Debug, Default)]
pub(crate) enum Precedence {
    /// None was.
    #[default]
    Unwanted,
    /// The calling thread has it, and what it starts.
    Taken(RealTimePriority),
    /// Frames are moved all the same.
    Refused(String),
}

impl Precedence {
    /// Has the calling thread take the priority, if one is wanted, and no other thread ever after.
    pub(crate) fn take(wanted: Option<RealTimePriority>) -> Precedence {
        let taken = wanted.map(|priority| (priority, priority.take()));
        // The units have a limit that allows it. Nobody in this process shall take one later; without privileges this is all it takes.
        let _ = priority::forbid();
        let Some((priority, outcome)) = taken else { return Precedence::Unwanted };
        match outcome {
            Ok(()) => Precedence::Taken(priority),
            Err(error) => {
                tracing::warn!(
                    "real_time_priority: the kernel refuses: {error}; the data path runs as every program does"
                );
                Precedence::Refused(error.to_string())
            }
        }
    }

    /// The calling thread is not the data path.
    pub(crate) fn leave(&self) {
        if matches!(self, Precedence::Taken(_)) {
            // Less than a thread has is never refused.
            let _ = priority::leave();
        }
    }

    /// For the status; nothing where none was wanted.
    pub(crate) fn told(&self) -> Option<String> {
        match self {
            Precedence::Unwanted => None,
            Precedence::Taken(priority) => Some(priority.to_string()),
            Precedence::Refused(reason) => Some(format!("none: the kernel refuses: {reason}")),
        }
    }
}
