//! Shuts a VLAN, a bond or a bridge as soon as a manager of the network makes it.
//!
//! udev shuts it as well (record 0092), which is soon enough for networkd: that one waits for udev.
//! NetworkManager does not, and udev can be seconds behind on a busy machine.

use std::path::Path;
use std::process::Command;

use system::takeover::Made;

use crate::daemon::Notice;
use crate::failure::Failure;
use crate::output::complain;

/// Where udev writes what it knows of a device, under its index.
const UDEV_DATA: &str = "/run/udev/data";

/// Runs `closing close INTERFACE` for each device of this name that is made, until it is told to end.
pub(super) fn close_when_made(interface: &str, closing: &Path) -> Result<(), Failure> {
    let mut made = Made::watch(interface).map_err(Failure::new)?;
    Notice::open().say(Notice::READY);
    loop {
        let index = made.await_next().map_err(Failure::new)?;
        // Behind udev its rule has shut the device, and a daemon may have opened it since.
        if !Path::new(UDEV_DATA).join(format!("n{index}")).exists() {
            close(interface, closing);
        }
    }
}

/// A device that is gone again cannot be closed; the next one can.
fn close(interface: &str, closing: &Path) {
    match Command::new(closing).args(["close", interface]).status() {
        Ok(status) if status.success() => {}
        Ok(status) => complain(format_args!("{} close {interface}: {status}", closing.display())),
        Err(error) => complain(format_args!("{}: {error}", closing.display())),
    }
}
