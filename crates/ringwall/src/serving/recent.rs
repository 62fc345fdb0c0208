//! What was fetched a moment ago: however many ask, the process behind the door is asked no more
//! often than that.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::locked;

/// A value, and when it was fetched.
#[derive(Debug)]
pub(crate) struct Recent<T>(Mutex<Option<(Instant, T)>>);

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent(Mutex::default())
    }
}

impl<T: Clone> Recent<T> {
    /// The value, fetched anew where it is as old as `fresh`. Who looks for it waits for who
    /// fetches it.
    pub(crate) fn get<E>(&self, fresh: Duration, fetch: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let mut held = locked(&self.0);
        if let Some((at, value)) = &*held
            && at.elapsed() < fresh
        {
            return Ok(value.clone());
        }
        // What is old goes before what is new comes: both would be twice the memory.
        *held = None;
        let value = fetch()?;
        *held = Some((Instant::now(), value.clone()));
        Ok(value)
    }
}
