//! Shuts a VLAN, a bond or a bridge as soon as a manager of the network makes it.
//!
//! udev shuts it as well (record 0092), which is soon enough for networkd: that one waits for udev.
//! NetworkManager does not, and udev can be seconds behind on a busy machine.

use std::path::Path;
use std::process::Command;

use system::takeover::{Appearance, Made};

use crate::daemon::Notice;
use crate::failure::Failure;
use crate::output::complain;

/// Where udev writes what it knows of a device, under its index.
const UDEV_DATA: &str = "/run/udev/data";

/// Runs `closing close INTERFACE` for each device of this name that is made, until it is told to end.
/// When it is gone `closing ahead` shuts what can be shut before the next one is there.
pub(super) fn close_when_made(interface: &str, closing: &Path) -> Result<(), Failure> {
    let mut made = Made::watch(interface).map_err(Failure::new)?;
    Notice::open().say(Notice::READY);
    loop {
        match made.await_next().map_err(Failure::new)? {
            // Behind udev its rule has shut the device, and a daemon may have opened it since.
            Appearance::Made(index) if Path::new(UDEV_DATA).join(format!("n{index}")).exists() => {}
            // A device that is gone again cannot be closed; the next one can.
            Appearance::Made(_) => run(closing, &["close", interface]),
            Appearance::Gone => run(closing, &["ahead"]),
        }
    }
}

fn run(closing: &Path, arguments: &[&str]) {
    let failed = |why: String| complain(format_args!("{} {}: {why}", closing.display(), arguments.join(" ")));
    match Command::new(closing).args(arguments).status() {
        Ok(status) if status.success() => {}
        Ok(status) => failed(status.to_string()),
        Err(error) => failed(error.to_string()),
    }
}
