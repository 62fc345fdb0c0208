//! Listening where this machine alone comes to: at a port of the loopback interface, or at a socket
//! in the file system.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::config::LocalAddress;

/// Where clients come to.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A client, by whatever way it came.
pub(crate) trait Client: Read + Write + Send {
    fn limit(&self, time: Duration) -> io::Result<()>;
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

    /// Hands over each client that comes, without end.
    pub(crate) fn serve(&self, mut take_in: impl FnMut(Box<dyn Client>)) {
        loop {
            let client: io::Result<Box<dyn Client>> = match self {
                Listener::Tcp(listener) => listener.accept().map(|(client, _)| Box::new(client) as Box<dyn Client>),
                Listener::Unix(listener) => listener.accept().map(|(client, _)| Box::new(client) as Box<dyn Client>),
            };
            match client {
                Ok(client) => take_in(client),
                // No descriptor is left, for instance.
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
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

/// A client with a time by which all must be over, however slowly it reads or writes.
pub(crate) struct Hurried<'a> {
    pub(crate) client: &'a mut dyn Client,
    pub(crate) deadline: Instant,
}

impl Hurried<'_> {
    fn hurry(&self) -> io::Result<()> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => self.client.limit(left),
        }
    }
}

impl Read for Hurried<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.hurry()?;
        self.client.read(bytes)
    }
}

impl Write for Hurried<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hurry()?;
        self.client.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.client.flush()
    }
}
