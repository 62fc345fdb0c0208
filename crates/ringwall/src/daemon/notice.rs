//! What a service manager hears of a daemon (sd_notify(3)).
//!
//! The socket is connected while files can still be reached; in the sandbox there is no way to it.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where the service manager listens, if one does.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The way to the service manager.
pub(crate) struct Notice(Option<UnixDatagram>);

impl Notice {
    pub(crate) const READY: &str = "READY=1";
    pub(crate) const STOPPING: &str = "STOPPING=1";
    pub(crate) const WATCHDOG: &str = "WATCHDOG=1";

    pub(crate) fn open() -> Notice {
        let Some(name) = std::env::var_os(VARIABLE) else { return Notice(None) };
        let connected = connect(&name);
        if let Err(error) = &connected {
            tracing::warn!("the service manager does not hear this daemon: {}: {error}", name.display());
        }
        Notice(connected.ok())
    }

    /// Says it. Nobody waits for a manager that does not listen.
    pub(crate) fn say(&self, what: &str) {
        if let Some(socket) = &self.0 {
            let _ = socket.send(what.as_bytes());
        }
    }
}

/// A name that begins with @ is none of a file.
fn connect(name: &OsString) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names_lead_to_the_manager() {
        let place = tempfile::tempdir().expect("a directory");
        let by_file = place.path().join("notify");
        let manager = UnixDatagram::bind(&by_file).expect("bound");
        let abstract_name = format!("ringwall-notice-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&abstract_name).expect("a name");
        let hidden = UnixDatagram::bind_addr(&address).expect("bound");
        for (name, manager) in [(by_file.into_os_string(), manager), (format!("@{abstract_name}").into(), hidden)] {
            Notice(Some(connect(&name).expect("connected"))).say(Notice::READY);
            let mut bytes = [0; 16];
            let count = manager.recv(&mut bytes).expect("heard");
            assert_eq!(&bytes[..count], Notice::READY.as_bytes());
        }
        assert!(connect(&OsString::from("/nowhere/notify")).is_err());
    }
}
