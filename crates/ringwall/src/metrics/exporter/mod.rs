//! The exporter: a process of its own that answers scrapers.
//!
//! The daemon is in a sandbox and never listens to a network. The exporter does, has no privilege,
//! sees no file, and can put one question to the daemon: what was measured. It is a byte; the
//! answer is a line of JSON.
//!
//! - `process.rs`: the process; `http.rs`: requests and answers.

mod http;
mod process;

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::companion;
use crate::config::Records;
use crate::failure::Failure;
use crate::protocol::Answer;

pub(crate) use process::run;

/// The word of the command line that starts an exporter.
pub(crate) const COMMAND: &str = "exporter";

/// The one question there is.
const QUESTION: u8 = b'?';
/// How long an exporter may take to read an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);

/// The daemon's side.
pub(crate) struct Exporter {
    stream: UnixStream,
}

impl Exporter {
    /// Starts an exporter, if scrapers are to be answered.
    pub(crate) fn start(records: &Records) -> Result<Option<Exporter>, Failure> {
        let Some(listen) = &records.metrics_listen else { return Ok(None) };
        let failed = |error: io::Error| Failure::new(format!("the exporter does not start: {error}"));
        let mut stream = companion::start(COMMAND).map_err(failed)?;
        stream.write_all(format!("{listen}\n").as_bytes()).map_err(failed)?;
        stream.set_write_timeout(Some(ANSWER_TIME_MAX)).map_err(failed)?;
        Ok(Some(Exporter { stream }))
    }

    /// Whether there is a question.
    ///
    /// # Errors
    /// The exporter is gone.
    pub(crate) fn is_asking(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 1];
        // An answer must not be half written, so it waits, and questions do not.
        self.stream.set_nonblocking(true)?;
        let read = self.stream.read(&mut bytes);
        self.stream.set_nonblocking(false)?;
        match read {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(bytes == [QUESTION]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Answers the question.
    ///
    /// # Errors
    /// The exporter is gone, or does not read.
    pub(crate) fn tell(&mut self, answer: &Answer) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }
}

impl AsFd for Exporter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
