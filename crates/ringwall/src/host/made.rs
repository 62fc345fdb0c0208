//! Shuts a VLAN, a bond or a bridge as soon as a manager of the network makes it.
//!
//! udev shuts it as well (record 0092), which is soon enough for networkd: that one waits for udev.
//! NetworkManager does not, and udev can be seconds behind on a busy machine.

use std::io;
use std::path::Path;
use std::process::Command;

use system::takeover::{Appearance, Made};

use crate::daemon::Notice;
use crate::failure::Failure;
use crate::output::complain;

/// Where udev writes what it knows of a device, under its index.
const UDEV_DATA: &str = "/run/udev/data";

/// Runs `closing made INTERFACE INDEX` for each device of this name that is made, until it is told to
/// end.
/// When it is gone `closing ahead` shuts what can be shut before the next one is there.
pub(super) fn close_when_made(interface: &str, closing: &Path) -> Result<(), Failure> {
    let mut made = Made::watch(interface).map_err(Failure::new)?;
    Notice::open().say(Notice::READY);
    loop {
        match made.await_next().map_err(Failure::new)? {
            // Silenced devices of a process that was killed are let send as well.
            Appearance::Made(index) => {
                if is_shut(&mut made, index, closing, interface) {
                    tell(interface, made.let_send(index));
                }
            }
            Appearance::Gone => _ = run(closing, &["ahead"]),
        }
    }
}

/// Shuts the device for good; until its rules stand it sends nothing. Behind udev its rule has shut
/// the device, and a daemon may have opened it since. One that cannot be shut stays silent until
/// somebody opens it; the next one of its name is another.
fn is_shut(made: &mut Made, index: u32, closing: &Path, interface: &str) -> bool {
    if Path::new(UDEV_DATA).join(format!("n{index}")).exists() {
        return true;
    }
    tell(interface, made.keep_silent(index));
    run(closing, &["made", interface, &index.to_string()])
}

fn tell(interface: &str, outcome: io::Result<()>) {
    if let Err(error) = outcome {
        complain(format_args!("{interface}: {error}"));
    }
}

/// Whether it has done so.
fn run(closing: &Path, arguments: &[&str]) -> bool {
    let why = match Command::new(closing).args(arguments).status() {
        Ok(status) if status.success() => return true,
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    complain(format_args!("{} {}: {why}", closing.display(), arguments.join(" ")));
    false
}
