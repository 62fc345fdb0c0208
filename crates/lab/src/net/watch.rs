//! Witnesses: tcpdump on an interface, its frames read from the capture file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::failure::Failure;
use crate::net::{Frame, Namespace, Running, pcap, process};

/// How long tcpdump may take to open its socket.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long a frame may take from the interface into the file.
const SETTLE: Duration = Duration::from_millis(150);
/// What waits for a slow disk, in KiB, where no frame may be missing.
const ROOM_KIB: &str = "98304";

/// Which way the watched frames go, as the interface's own namespace sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Received by the interface.
    In,
    /// Sent by the interface.
    Out,
    /// Both.
    Both,
}

/// A running tcpdump.
#[derive(Debug)]
pub struct Watch {
    process: Running,
    file: PathBuf,
}

impl Watch {
    /// Starts watching `interface` in `namespace`; returns once every further frame will be seen. `label` names the
    /// capture file in `directory`.
    ///
    /// # Errors
    /// tcpdump is missing or cannot open the interface.
    pub fn start(
        namespace: &Namespace,
        interface: &str,
        direction: Direction,
        directory: &Path,
        label: &str,
    ) -> Result<Watch, Failure> {
        Watch::start_matching(namespace, interface, direction, directory, label, "")
    }

    /// As [`start`](Watch::start), for frames that match `expression` (pcap-filter(7)) only, as bulk traffic needs.
    ///
    /// # Errors
    /// As [`start`](Watch::start), or the expression is none.
    pub fn start_matching(
        namespace: &Namespace,
        interface: &str,
        direction: Direction,
        directory: &Path,
        label: &str,
        expression: &str,
    ) -> Result<Watch, Failure> {
        let options = ["-U", "--immediate-mode"];
        Watch::start_with(namespace, (interface, direction), (directory, label), (expression, &options))
    }

    /// As [`start_matching`](Watch::start_matching), for tens of megabytes of which no frame may be missing. They can be read at the end
    /// only.
    ///
    /// # Errors
    /// As [`start_matching`](Watch::start_matching).
    pub fn start_with_room(
        namespace: &Namespace,
        place: (&str, Direction),
        file: (&Path, &str),
        expression: &str,
    ) -> Result<Watch, Failure> {
        Watch::start_with(namespace, place, file, (expression, &["--immediate-mode", "-B", ROOM_KIB]))
    }

    fn start_with(
        namespace: &Namespace,
        (interface, direction): (&str, Direction),
        (directory, label): (&Path, &str),
        (expression, options): (&str, &[&str]),
    ) -> Result<Watch, Failure> {
        let file = directory.join(format!("{label}.pcap"));
        let mut command = namespace.command("tcpdump");
        // Debian's tcpdump changes to a user of its own, which may not write here, unless told otherwise.
        command.args(["-Z", "root", "-n", "-s", "0"]).args(options).args(["-i", interface, "-w"]).arg(&file);
        match direction {
            Direction::In => command.args(["-Q", "in"]),
            Direction::Out => command.args(["-Q", "out"]),
            Direction::Both => &mut command,
        };
        command.args(expression.split_whitespace());
        let mut process = Running::start(command, &directory.join(format!("{label}.log")))?;
        process.await_output("listening on", READY_LIMIT)?;
        Ok(Watch { process, file })
    }

    /// The process that watches.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The frames seen so far.
    ///
    /// # Errors
    /// The capture file cannot be read.
    pub fn so_far(&self) -> Result<Vec<Frame>, Failure> {
        pcap::read(&self.file)
    }

    /// The frames seen so far, each with the moment since 1970 at which it was.
    ///
    /// # Errors
    /// The capture file cannot be read.
    pub fn timed(&self) -> Result<Vec<(Duration, Frame)>, Failure> {
        pcap::read_timed(&self.file)
    }

    /// Waits until a frame that satisfies `wanted` has been seen and returns the first.
    ///
    /// # Errors
    /// [`Failure::Late`] naming `what`.
    pub fn await_frame(&self, what: &str, limit: Duration, wanted: impl Fn(&Frame) -> bool) -> Result<Frame, Failure> {
        let mut found = None;
        process::until(what, limit, || {
            found = self.so_far()?.into_iter().find(&wanted);
            Ok(found.is_some())
        })?;
        found.ok_or_else(|| Failure::Unreadable(what.to_owned()))
    }

    /// Stops watching and returns all frames, in the order in which they were seen.
    ///
    /// # Errors
    /// The capture file cannot be read.
    pub fn stop(self) -> Result<Vec<Frame>, Failure> {
        process::pause(SETTLE)?;
        let Watch { process, file } = self;
        process.stop(Signal::INT);
        pcap::read(&file)
    }
}
