//! Processes beside a daemon that run the same program: the monitor, the recorder, the exporter.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Starts this program with the word `command`; its standard input is the other end of what is
/// returned.
pub(crate) fn start(command: &str) -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    Command::new(std::env::current_exe()?)
        .arg(command)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        // Ctrl-C is for the daemon, which may have something to say to it then.
        .process_group(0)
        .spawn()?;
    Ok(ours)
}
