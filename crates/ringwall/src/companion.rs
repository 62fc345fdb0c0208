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
    spawn(command, theirs, Stdio::null())?;
    Ok(ours)
}

/// The same with a second socket, which is its standard output: what is slow there keeps nobody
/// waiting who asks by the first one.
pub(crate) fn start_with_two(command: &str) -> io::Result<[UnixStream; 2]> {
    let [(ours, theirs), (second, their_second)] = [UnixStream::pair()?, UnixStream::pair()?];
    spawn(command, theirs, OwnedFd::from(their_second).into())?;
    Ok([ours, second])
}

fn spawn(command: &str, input: UnixStream, output: Stdio) -> io::Result<()> {
    let mut process = Command::new(std::env::current_exe()?);
    // Ctrl-C is for the daemon, which may have something to say to it then.
    let process = process.arg(command).stdin(Stdio::from(OwnedFd::from(input))).stdout(output).process_group(0);
    process.spawn().map(drop)
}

/// In a process that [`start_with_two`] has started: its second socket.
pub(crate) fn second_socket() -> io::Result<UnixStream> {
    let stream = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    stream.peer_addr().map(|_| stream)
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
