//! Where clients come to: at a port, or at a socket in the file system.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use system::privilege;

use crate::config::LocalAddress;

/// Where clients come to.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// Who is at the other end, as far as the kernel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Address(IpAddr),
    /// An account of this machine.
    User(u32),
}

/// A client, by whatever way it came.
pub(crate) trait Client: Read + Write + Send {
    /// Has each reading and each writing from now on take no longer than `time`, which is not zero.
    fn limit(&self, time: Duration) -> io::Result<()>;
}

impl Client for Box<dyn Client> {
    fn limit(&self, time: Duration) -> io::Result<()> {
        (**self).limit(time)
    }
}

impl Client for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Client for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Listener {
    pub(crate) fn open(address: &LocalAddress) -> io::Result<Listener> {
        match address {
            LocalAddress::Tcp(address) => Ok(Listener::Tcp(TcpListener::bind(address)?)),
            LocalAddress::Socket(name) => {
                remove_socket(name)?;
                let listener = UnixListener::bind(name)?;
                // Who may enter the directory may ask.
                std::fs::set_permissions(name, std::fs::Permissions::from_mode(0o666))?;
                Ok(Listener::Unix(listener))
            }
        }
    }

    /// The next client that comes.
    pub(super) fn accept(&self) -> io::Result<(Box<dyn Client>, Who)> {
        match self {
            Listener::Tcp(listener) => {
                let (client, address) = listener.accept()?;
                // A short answer in several writes would wait 40 ms for a delayed acknowledgement.
                let _slower = client.set_nodelay(true);
                Ok((Box::new(client), Who::Address(address.ip())))
            }
            Listener::Unix(listener) => {
                let (client, _) = listener.accept()?;
                let user = privilege::user_of_peer(&client)?;
                Ok((Box::new(client), Who::User(user)))
            }
        }
    }
}

/// A socket that another start has left; nothing else is removed, and none that is listened at.
pub(crate) fn remove_socket(name: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.file_type().is_socket() => match UnixStream::connect(name) {
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(_) => std::fs::remove_file(name),
        },
        Ok(_) => Err(io::Error::other("something else than a socket has this name")),
    }
}
