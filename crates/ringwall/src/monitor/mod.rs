//! The monitor: the part of a daemon that stays root, so that the part that reads frames need not
//! (privilege separation, Provos, Friedl and Honeyman 2003;
//! docs/decisions/0062-a-sandbox-that-holds.md).
//!
//! It is a process of its own that hears nothing from any network. While it is still root, the
//! daemon sends it one [`Charge`]: which files it reads again, under which names it keeps its own,
//! and which interface goes back at the end. Afterwards the monitor carries out a closed list of
//! requests within that charge and nothing else.
//!
//! - `message.rs`: what both say; `process.rs`: the monitor itself; [`Disk`]: the daemon's side of
//!   it.

mod message;
mod process;

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bump::Instant;
use zeroize::Zeroizing;

use crate::companion;
use crate::failure::Failure;
use message::{Reply, Request, receive, send};

pub(crate) use message::{Back, Charge, Home, Kept, Version};
pub(crate) use process::run;

/// The word of the command line that starts a monitor.
pub(crate) const COMMAND: &str = "monitor";

/// A file as it was read.
pub(crate) struct Text {
    pub(crate) text: Zeroizing<String>,
    /// Who may read it.
    pub(crate) mode: u32,
}

/// Files, as a daemon has them: its own hands before there is a sandbox, and the monitor's for a
/// daemon in one.
#[derive(Clone)]
pub(crate) struct Disk {
    home: Option<Home>,
    through: Option<Rc<Link>>,
}

/// The way to the monitor.
struct Link {
    stream: RefCell<UnixStream>,
    charge: Charge,
}

impl Disk {
    /// Without a monitor, for programs that stay what they are.
    pub(crate) fn own(home: Option<Home>) -> Disk {
        Disk { home, through: None }
    }

    /// The same for the daemon of `interface`.
    #[cfg(test)]
    pub(crate) fn of_interface(state_dir: &Path, interface: &str) -> Disk {
        Disk::own(Some(Home::new(state_dir, interface)))
    }

    /// The name of one of the daemon's own files, if it keeps any.
    pub(crate) fn path(&self, kept: &Kept) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.path(kept))
    }

    /// Starts a monitor with this charge.
    pub(crate) fn separate(charge: Charge) -> Result<Disk, Failure> {
        let failed = |error: io::Error| Failure::new(format!("the monitor does not start: {error}"));
        let ours = companion::start(COMMAND).map_err(failed)?;
        let home = charge.home.clone();
        let link = Link { stream: RefCell::new(ours), charge };
        link.begin().map_err(failed)?;
        Ok(Disk { home, through: Some(Rc::new(link)) })
    }

    /// The configuration file, which is the first that may be read again; none if there is no file.
    pub(crate) fn configuration(&self) -> Option<&Path> {
        self.through.as_ref()?.charge.readable.first().map(PathBuf::as_path)
    }

    /// What tells this version of `file` from others; none if it cannot be seen.
    pub(crate) fn version(&self, file: &Path) -> Option<Version> {
        let Some(link) = &self.through else { return Version::of(file) };
        match link.about(file, Request::Version).ok()? {
            (Reply::Version(version), _) => version,
            _ => None,
        }
    }

    /// Reads `file`.
    pub(crate) fn read(&self, file: &Path) -> io::Result<Text> {
        let Some(link) = &self.through else { return process::read(file) };
        match link.about(file, Request::Read)? {
            (Reply::Text { mode }, body) => text(body, mode),
            _ => Err(unexpected()),
        }
    }

    /// Replaces one of the daemon's own files as a whole.
    pub(crate) fn write(&self, kept: &Kept, content: &str) -> io::Result<()> {
        match &self.through {
            None => process::write(self.home()?, kept, content),
            Some(link) => link.order(&Request::Write(kept.clone()), content.as_bytes()),
        }
    }

    /// Removes one of the daemon's own files; that it is not there is no error.
    pub(crate) fn remove(&self, kept: &Kept) -> io::Result<()> {
        match &self.through {
            None => process::remove(&self.home()?.path(kept)),
            Some(link) => link.order(&Request::Remove(kept.clone()), &[]),
        }
    }

    /// When the interface goes back unless somebody confirms.
    pub(crate) fn reverts_at(&self) -> Option<Instant> {
        let Some(link) = &self.through else { return self.home.as_ref()?.reverts_at() };
        match link.exchange(&Request::RevertsAt, &[]).ok()? {
            (Reply::RevertsAt(nanos), _) => nanos.map(Instant::from_nanos),
            _ => None,
        }
    }

    /// Gives back what the charge says, after the daemon has let it go.
    pub(crate) fn give_back(&self) -> Result<(), Failure> {
        let Some(link) = &self.through else { return Err(Failure::new("there is no monitor to give it back")) };
        link.order(&Request::GiveBack, &[]).map_err(Failure::new)
    }

    /// Removes the command socket, as the last act.
    pub(crate) fn remove_socket(&self, socket: &Path) -> io::Result<()> {
        match &self.through {
            None => process::remove(socket),
            Some(link) => link.order(&Request::RemoveSocket, &[]),
        }
    }

    fn home(&self) -> io::Result<&Home> {
        self.home.as_ref().ok_or_else(|| io::Error::other("this daemon keeps no files"))
    }
}

impl Link {
    /// Hands the charge over, and waits until the monitor has given up what it does not need for
    /// it.
    fn begin(&self) -> io::Result<()> {
        let mut stream = self.stream.borrow_mut();
        send(&mut *stream, &self.charge, &[])?;
        done(receive(&mut *stream)?)
    }

    fn exchange(&self, request: &Request, body: &[u8]) -> io::Result<(Reply, Zeroizing<Vec<u8>>)> {
        let mut stream = self.stream.borrow_mut();
        let answer = send(&mut *stream, request, body).and_then(|()| receive(&mut *stream));
        answer.map_err(|error| io::Error::other(format!("the monitor is gone, restart the daemon: {error}")))
    }

    fn order(&self, request: &Request, body: &[u8]) -> io::Result<()> {
        done(self.exchange(request, body)?)
    }

    /// A request about a file that the charge names.
    fn about(&self, file: &Path, request: impl Fn(usize) -> Request) -> io::Result<(Reply, Zeroizing<Vec<u8>>)> {
        let place = self.charge.readable.iter().position(|named| named == file);
        let place =
            place.ok_or_else(|| io::Error::new(ErrorKind::PermissionDenied, "named after the start, restart"))?;
        match self.exchange(&request(place), &[])? {
            (Reply::Refused(line), _) => Err(io::Error::other(line)),
            answer => Ok(answer),
        }
    }
}

fn done(answer: (Reply, Zeroizing<Vec<u8>>)) -> io::Result<()> {
    match answer.0 {
        Reply::Done => Ok(()),
        Reply::Refused(line) => Err(io::Error::other(line)),
        _ => Err(unexpected()),
    }
}

fn unexpected() -> io::Error {
    io::Error::other("the monitor gave another answer")
}

fn text(mut body: Zeroizing<Vec<u8>>, mode: u32) -> io::Result<Text> {
    let text = String::from_utf8(std::mem::take(&mut *body)).map_err(|error| {
        drop(Zeroizing::new(error.into_bytes()));
        io::Error::new(ErrorKind::InvalidData, "it is not text")
    })?;
    Ok(Text { text: Zeroizing::new(text), mode })
}
