//! How a door gives up what it may not have, and when it ends.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use system::privilege;
use system::sandbox::{self, Reach, User};
use system::wait::{PollFd, PollFlags, wait};

/// Another user than root, no privilege, no file, no other port.
///
/// # Errors
/// The kernel refuses, or there is no such user.
pub(crate) fn confine(command: &str) -> io::Result<()> {
    confine_to(command, &Reach::default())
}

/// The same for one that has something within its reach.
///
/// # Errors
/// As [`confine`].
pub(crate) fn confine_to(command: &str, reach: &Reach) -> io::Result<()> {
    let user = User::find()?;
    sandbox::forbid_dumps()?;
    privilege::become_user(&user, &[])?;
    let landlocked = sandbox::confine(reach)?;
    tracing::debug!("{command}: Landlock is {landlocked}");
    sandbox::end_at_attacks()
}

/// Returns when the process behind the door is gone, or `turn`, which is called each so often, says
/// that it is of no use any more.
pub(crate) fn wait_for_end(behind: &UnixStream, every: Option<Duration>, mut turn: impl FnMut() -> bool) {
    loop {
        // Without a wanted event, only the end of the other side is one.
        let mut watched = [PollFd::new(behind, PollFlags::RDHUP)];
        match wait(&mut watched, every) {
            Ok(0) if turn() => {}
            Ok(_) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test would last without an end where one of them is not noticed.
    #[test]
    fn a_door_ends_with_the_process_behind_it_and_when_that_is_of_no_use() {
        let (near, far) = UnixStream::pair().expect("a pair");
        let mut turns = 3;
        wait_for_end(&near, Some(Duration::from_millis(1)), || {
            turns -= 1;
            turns > 0
        });
        assert_eq!(turns, 0);
        drop(far);
        wait_for_end(&near, None, || true);
    }
}
