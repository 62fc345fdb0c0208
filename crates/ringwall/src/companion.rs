//! Processes beside another that run the same program: the monitor, the recorder, doors.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

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

/// In such a process: the socket to the one that started it, whose end is to be this one's. Signals
/// end it no more, because a service manager may send them to every process of a service, and the
/// other one's last words still come.
///
/// # Errors
/// `alone` says what to do instead of starting it by hand.
pub(crate) fn socket(alone: &str) -> Result<UnixStream, Failure> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(Failure::new)?);
    if stream.peer_addr().is_err() {
        return Err(Failure::new(alone));
    }
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map_err(Failure::new)?;
    }
    Ok(stream)
}
