//! A bounded queue between the parts of a bump: what does not fit is refused to the sender, never lost in silence.

use std::collections::VecDeque;

use crate::inject::point;

/// At most `limit` messages, first in, first out.
#[derive(Debug)]
pub struct Mailbox<M> {
    messages: VecDeque<M>,
    limit: usize,
}

impl<M> Mailbox<M> {
    /// An empty mailbox that holds at most `limit` messages.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Mailbox { messages: VecDeque::new(), limit }
    }

    /// Appends `message`.
    ///
    /// # Errors
    /// Gives the message back when the mailbox is full.
    pub fn push(&mut self, message: M) -> Result<(), M> {
        point();
        if self.messages.len() >= self.limit {
            return Err(message);
        }
        self.messages.push_back(message);
        Ok(())
    }

    /// The oldest message.
    pub fn pop(&mut self) -> Option<M> {
        point();
        self.messages.pop_front()
    }

    /// How many messages wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether the next push would be refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.messages.len() >= self.limit
    }
}
