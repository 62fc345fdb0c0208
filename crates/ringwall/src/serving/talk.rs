//! A client that is talked to, in clear or through TLS, and not for longer than it may take.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use identity::tls::Served;

use super::hurried::Hurried;
use super::listener::Client;

/// The stream of a client under a deadline, whoever listens.
type Plain = Hurried<Box<dyn Client>>;

/// A client that is talked to. The deadline is below TLS: one who sends a record byte by byte has no
/// more time than another.
pub(crate) enum Talk {
    Plain(Plain),
    Tls(Box<Served<Plain>>),
}

impl Talk {
    fn stream(&mut self) -> &mut Plain {
        match self {
            Talk::Plain(stream) => stream,
            Talk::Tls(served) => &mut served.sock,
        }
    }

    /// It is over after `time` from now, and no longer when it was to be.
    pub(crate) fn give(&mut self, time: Duration) {
        self.stream().give(time);
    }

    /// Waits so long for the other side to go away, or to say more than it may; whether it did not.
    pub(crate) fn stays(&mut self, time: Duration) -> io::Result<bool> {
        let end = self.stream().hurry(time)?;
        let heard = self.read(&mut [0]).map_err(|error| error.kind());
        self.stream().give_until(end);
        Ok(matches!(heard, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)))
    }

    /// Says that no more comes. A browser takes an answer without length for cut off otherwise.
    pub(crate) fn end(mut self) -> io::Result<()> {
        if let Talk::Tls(served) = &mut self {
            served.conn.send_close_notify();
        }
        self.flush()
    }
}

impl Read for Talk {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Talk::Plain(stream) => stream.read(bytes),
            Talk::Tls(served) => served.read(bytes),
        }
    }
}

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Talk::Plain(stream) => stream.write(bytes),
            Talk::Tls(served) => served.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Talk::Plain(stream) => stream.flush(),
            Talk::Tls(served) => served.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn talk(near: UnixStream, time: Duration) -> Talk {
        Talk::Plain(Hurried::new(Box::new(near), time))
    }

    #[test]
    fn who_goes_away_or_says_more_does_not_stay() {
        let (near, far) = UnixStream::pair().expect("a pair");
        let mut near = talk(near, LONG);
        assert_eq!(near.stays(Duration::from_millis(1)).ok(), Some(true));
        // Without a reader at the other end, the wait ends at once; the test would last otherwise.
        drop(far);
        assert_eq!(near.stays(LONG).ok(), Some(false));
        let (near, mut far) = UnixStream::pair().expect("a pair");
        far.write_all(b"GET").expect("sent");
        assert_eq!(talk(near, LONG).stays(LONG).ok(), Some(false));
        let (near, _far) = UnixStream::pair().expect("a pair");
        assert!(talk(near, Duration::ZERO).stays(LONG).is_err(), "its time is over");
    }
}
