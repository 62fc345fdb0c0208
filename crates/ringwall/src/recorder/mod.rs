//! The recorder: a process of its own that carries attacks to where people and programs look
//! (docs/decisions/0075-attacks-are-told.md).
//!
//! The daemon is in a sandbox: it opens no file and no socket, and starts no program. The recorder can, hears no
//! network, and has no privilege. The daemon starts it first and hands it lines of JSON through a socket that it
//! never waits for: what does not fit is counted and gone.
//!
//! - `process.rs`: the recorder itself; `eve.rs`, `syslog.rs`, `journald.rs`, `command.rs`: the
//!   places;
//!   `history.rs`: what is kept on disk.

mod command;
mod eve;
pub(crate) mod history;
mod journald;
mod process;
mod syslog;
mod time;

use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;

use serde::{Deserialize, Serialize};

use crate::companion;
use crate::config::Records;
use crate::failure::Failure;
use crate::protocol::attacks::{Attack, Change, Holding};
use crate::protocol::flow_record::FlowRecord;

pub(crate) use journald::is_there as is_journald_there;
pub(crate) use process::run;
pub(crate) use time::rfc3339;

/// The word of the command line that starts a recorder.
pub(crate) const COMMAND: &str = "recorder";

/// Connections in one line: far below the longest that is read, and a line that is lost costs no more.
const FLOWS_OF_LINE: usize = 50;

/// What a daemon hands over, one line each.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Message {
    /// Where to tell it from now on, and the interface that it is about.
    Configure(Records, String),
    /// Files were moved away: open them anew.
    Reopen,
    /// Something to tell.
    Tell(Box<Attack>),
    /// Connections of a gateway that are over, on this machine.
    Flows(String, Vec<FlowRecord>),
    /// For the history alone.
    Change(Change),
    Holding(Holding),
}

/// The daemon's side.
pub(crate) struct Recorder {
    stream: UnixStream,
    interface: String,
    /// The rest of a line that was begun.
    rest: Vec<u8>,
    lost: u64,
}

impl Recorder {
    /// Starts a recorder for the daemon of `interface`.
    pub(crate) fn start(records: &Records, interface: &str) -> Result<Recorder, Failure> {
        let failed = |error: io::Error| Failure::new(format!("the recorder does not start: {error}"));
        let ours = companion::start(COMMAND).map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let mut recorder = Recorder::through(ours, interface);
        recorder.hand_over(&Message::Configure(records.clone(), interface.to_owned()));
        Ok(recorder)
    }

    fn through(stream: UnixStream, interface: &str) -> Recorder {
        Recorder { stream, interface: interface.to_owned(), rest: Vec::new(), lost: 0 }
    }

    /// Tells of an attack.
    pub(crate) fn tell(&mut self, attack: Attack) {
        self.hand_over(&Message::Tell(Box::new(attack)));
    }

    /// Tells of connections that are over; how many of them were not told.
    pub(crate) fn flows(&mut self, host: &str, flows: &[FlowRecord]) -> usize {
        let mut lost = 0;
        for some in flows.chunks(FLOWS_OF_LINE) {
            let before = self.lost;
            self.hand_over(&Message::Flows(host.to_owned(), some.to_vec()));
            lost += if self.lost > before { some.len() } else { 0 };
            self.lost = before;
        }
        lost
    }

    /// Notes that something was changed here.
    pub(crate) fn change(&mut self, kind: &str, unix_ms: u64, text: &str) {
        let interface = self.interface.clone();
        let (kind, text) = (kind.to_owned(), text.to_owned());
        self.hand_over(&Message::Change(Change { kind, interface, unix_ms, text }));
    }

    /// Notes who has an address, or has it no longer.
    pub(crate) fn holding(&mut self, holding: Holding) {
        self.hand_over(&Message::Holding(Holding { interface: self.interface.clone(), ..holding }));
    }

    /// Takes other settings, and opens files anew.
    pub(crate) fn follow(&mut self, records: &Records) {
        self.hand_over(&Message::Configure(records.clone(), self.interface.clone()));
        self.hand_over(&Message::Reopen);
    }

    /// What was not told because the recorder was too slow, or is gone.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    fn hand_over(&mut self, message: &Message) {
        if !self.rest.is_empty() && self.flush().is_err() {
            self.lost += 1;
            return;
        }
        let Ok(mut line) = serde_json::to_vec(message) else { return };
        line.push(b'\n');
        self.rest = line;
        // A line that was begun is ended before the next; one of which nothing left is not told.
        let whole = self.rest.len();
        if self.flush().is_err() && self.rest.len() == whole {
            self.rest.clear();
            self.lost += 1;
        }
    }

    /// Writes the rest as far as it goes without waiting; an error if some is left.
    fn flush(&mut self) -> io::Result<()> {
        while !self.rest.is_empty() {
            match self.stream.write(&self.rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => _ = self.rest.drain(..count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_recorder_that_does_not_read_holds_nobody_up_and_hears_whole_lines_later() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("set");
        let mut recorder = Recorder::through(ours, "eth0");
        for _ in 0..5000 {
            recorder.follow(&Records::default());
        }
        let lost = recorder.lost();
        assert!(lost > 0, "the socket has no room for so many");
        let mut heard = Vec::new();
        drop(recorder);
        theirs.read_to_end(&mut heard).expect("read");
        let text = String::from_utf8(heard).expect("text");
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let heard: Vec<Message> = whole.map(|line| serde_json::from_str(line).expect("a whole line")).collect();
        let count = heard.len() as u64;
        assert!((9999..=10_000).contains(&(count + lost)), "{count} heard and {lost} lost");
    }
}
