//! Where a capture comes from: the parser says that reading failed, and this remembers why.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Why reading failed, if it did.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure(Arc<Mutex<Option<io::Error>>>);

impl Failure {
    pub(super) fn take(&self) -> io::Error {
        let error = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.unwrap_or_else(|| io::Error::other("the capture cannot be read on"))
    }
}

/// A reader whose last error is kept.
pub(super) struct Source<R> {
    pub(super) source: R,
    pub(super) failure: Failure,
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer).map_err(|error| {
            let kind = error.kind();
            *self.failure.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            kind.into()
        })
    }
}
