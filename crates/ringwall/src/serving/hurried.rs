//! A connection that cannot last.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::listener::Client;

/// A connection that is over at a time, however slowly the other side reads or writes.
pub(crate) struct Hurried<S> {
    stream: S,
    deadline: Instant,
    /// What was looked at before it was read.
    seen: Option<u8>,
}

impl<S: Client> Hurried<S> {
    /// One that is over after `time`.
    pub(crate) fn new(stream: S, time: Duration) -> Hurried<S> {
        Hurried { stream, deadline: Instant::now() + time, seen: None }
    }

    /// It is over after `time` from now, and no longer when it was to be.
    pub(crate) fn give(&mut self, time: Duration) {
        self.deadline = Instant::now() + time;
    }

    /// The same at this time.
    pub(super) fn give_until(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Has the next readings and writings take no longer than `time`; when it is over then.
    ///
    /// # Errors
    /// It is over now.
    pub(super) fn hurry(&mut self, time: Duration) -> io::Result<Instant> {
        let (end, left) = (self.deadline, self.left()?);
        self.give(time.min(left));
        Ok(end)
    }

    /// The first byte that the other side says, which is read again; none where it says nothing more.
    pub(crate) fn look(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        if self.read(&mut byte)? == 0 {
            return Ok(None);
        }
        self.seen = Some(byte[0]);
        Ok(self.seen)
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl<S: Client> Read for Hurried<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if let (Some(seen), Some(first)) = (self.seen, bytes.first_mut()) {
            (*first, self.seen) = (seen, None);
            return Ok(1);
        }
        self.stream.limit(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl<S: Client> Write for Hurried<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.limit(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_connection_whose_time_is_over_is_read_and_written_no_more() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        far.write_all(b"a").expect("sent");
        let mut near = Hurried::new(near, Duration::ZERO);
        let over = ErrorKind::TimedOut;
        assert_eq!(near.read(&mut [0]).map_err(|error| error.kind()), Err(over));
        assert_eq!(near.write(b"b").map_err(|error| error.kind()), Err(over));
        assert_eq!(near.hurry(LONG).map_err(|error| error.kind()).err(), Some(over));
        near.give(LONG);
        assert_eq!(near.read(&mut [0]).ok(), Some(1));
    }

    #[test]
    fn what_was_looked_at_is_read_still() {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        far.write_all(b"GET").expect("sent");
        drop(far);
        let mut near = Hurried::new(near, LONG);
        assert_eq!((near.look().ok(), near.look().ok()), (Some(Some(b'G')), Some(Some(b'G'))));
        let mut all = String::new();
        near.read_to_string(&mut all).expect("read");
        assert_eq!(all, "GET");
        assert_eq!(near.look().ok(), Some(None));
    }
}
