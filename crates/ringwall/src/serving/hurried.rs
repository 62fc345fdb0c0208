//! A connection that cannot last.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use super::listener::Client;

/// A connection that is over at a time, however slowly the other side reads or writes.
pub(crate) struct Hurried<S> {
    stream: S,
    deadline: Instant,
}

impl<S: Client> Hurried<S> {
    /// One that is over after `time`.
    pub(crate) fn new(stream: S, time: Duration) -> Hurried<S> {
        Hurried { stream, deadline: Instant::now() + time }
    }

    /// It is over after `time` from now, and no longer when it was to be.
    pub(crate) fn give(&mut self, time: Duration) {
        self.deadline = Instant::now() + time;
    }

    /// Waits so long for the other side to go away, or to say more than it may; whether it did not.
    pub(crate) fn stays(&mut self, time: Duration) -> io::Result<bool> {
        self.stream.limit(time.min(self.left()?))?;
        let heard = self.stream.read(&mut [0]).map_err(|error| error.kind());
        Ok(matches!(heard, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)))
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl<S: Client> Read for Hurried<S> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
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
        assert_eq!(near.stays(LONG).map_err(|error| error.kind()), Err(over));
        near.give(LONG);
        assert_eq!(near.read(&mut [0]).ok(), Some(1));
    }

    #[test]
    fn who_goes_away_or_says_more_does_not_stay() {
        let (near, far) = UnixStream::pair().expect("a pair");
        let mut near = Hurried::new(near, LONG);
        assert_eq!(near.stays(Duration::from_millis(1)).ok(), Some(true));
        // Without a reader at the other end, the wait ends at once; the test would last otherwise.
        drop(far);
        assert_eq!(near.stays(LONG).ok(), Some(false));
        let (near, mut far) = UnixStream::pair().expect("a pair");
        far.write_all(b"GET").expect("sent");
        assert_eq!(Hurried::new(near, LONG).stays(LONG).ok(), Some(false));
    }
}
