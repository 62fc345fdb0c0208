//! What a daemon and its monitor say to each other: a head in JSON and a body of bytes, each with
//! its length before it.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bump::Instant;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use system::takeover::state;
use wire::MacAddress;
use zeroize::Zeroizing;

/// Longest head in bytes: a charge with the key files of all pairs that a shield can have.
const HEAD_LEN_MAX: usize = 1 << 20;
/// Longest body in bytes: the file of all hosts that can have proved themselves is the longest that
/// is kept.
const BODY_LEN_MAX: usize = 1 << 23;

/// What a monitor is there for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Charge {
    /// Files that are read again while the daemon runs.
    pub(crate) readable: Vec<PathBuf>,
    /// Where its own files are, if it has any.
    pub(crate) home: Option<Home>,
    /// Its command socket.
    pub(crate) socket: PathBuf,
    /// What goes back when it ends, if something does.
    pub(crate) back: Option<Back>,
}

/// What goes back, and where the traces of its take-over are.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum Back {
    /// The interface of a host.
    Host { interface: String, run_dir: PathBuf, state_dir: PathBuf },
    /// The cards of a gateway.
    Gateway { trusted: String, run_dir: PathBuf, state_dir: PathBuf },
}

/// Where a daemon's own files are.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Home {
    pub(crate) state_dir: PathBuf,
    pub(crate) interface: String,
}

/// A file that a daemon keeps for itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Kept {
    /// The hosts that have proved themselves.
    Peers,
    /// The keys that it made for itself.
    OwnKeys,
    /// The list of revoked certificates that peers gave.
    Revoked,
    /// The newest policy of the site.
    Policy,
    /// What it issues tickets with.
    TicketKeys,
    /// Numbers of its own tickets that it does not take any more.
    SpentTickets,
    /// What it has by lease.
    Leases,
    /// A ticket of the host with this hardware address.
    Ticket([u8; 6]),
}

impl Kept {
    pub(crate) fn ticket(mac: MacAddress) -> Kept {
        Kept::Ticket(mac.0)
    }
}

impl Home {
    pub(crate) fn new(state_dir: &Path, interface: &str) -> Home {
        Home { state_dir: state_dir.to_owned(), interface: interface.to_owned() }
    }

    /// The name of a file follows from what it is: nothing that a request says becomes part of a
    /// path but six bytes, as hexadecimal digits.
    pub(crate) fn path(&self, kept: &Kept) -> PathBuf {
        let beside = |name: &str| self.state_dir.join(format!("{}.{name}", self.interface));
        match kept {
            Kept::Peers => beside("peers.json"),
            Kept::OwnKeys => beside("keys.pem"),
            Kept::Revoked => beside("revoked.crl.pem"),
            Kept::Policy => beside("policy.pem"),
            Kept::Leases => beside("leases.pem"),
            Kept::TicketKeys => self.tickets().join("keys.pem"),
            Kept::SpentTickets => self.tickets().join("spent.pem"),
            Kept::Ticket(mac) => self.tickets().join(format!("{}.pem", MacAddress(*mac))),
        }
    }

    /// The directory of tickets.
    pub(crate) fn tickets(&self) -> PathBuf {
        self.state_dir.join(format!("{}.tickets", self.interface))
    }

    pub(super) fn reverts_at(&self) -> Option<Instant> {
        state::load(&self.state_dir, &self.interface).ok().flatten()?.revert_at()
    }
}

/// What tells one version of a file from another: file system, number, length, and time of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Version(u64, u64, u64, i64, i64);

impl Version {
    pub(super) fn of(file: &Path) -> Option<Version> {
        use std::os::unix::fs::MetadataExt;
        let data = std::fs::metadata(file).ok()?;
        Some(Version(data.dev(), data.ino(), data.size(), data.mtime(), data.mtime_nsec()))
    }
}

/// What a daemon may ask for. Numbers are places in its charge.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Request {
    Version(usize),
    Read(usize),
    Write(Kept),
    Remove(Kept),
    RevertsAt,
    GiveBack,
    RemoveSocket,
}

/// What comes of it.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Reply {
    Done,
    Version(Option<Version>),
    Text { mode: u32 },
    RevertsAt(Option<u64>),
    Refused(String),
}

pub(super) fn send(stream: &mut impl Write, head: &impl Serialize, body: &[u8]) -> io::Result<()> {
    let head = serde_json::to_vec(head)?;
    if head.len() > HEAD_LEN_MAX || body.len() > BODY_LEN_MAX {
        return Err(io::Error::other("it is too long"));
    }
    let lengths = [head.len() as u32, body.len() as u32].map(u32::to_le_bytes).concat();
    stream.write_all(&lengths)?;
    stream.write_all(&head)?;
    stream.write_all(body)
}

pub(super) fn receive<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<(T, Zeroizing<Vec<u8>>)> {
    let head_len = length(stream, HEAD_LEN_MAX)?;
    let body_len = length(stream, BODY_LEN_MAX)?;
    let mut head = vec![0; head_len];
    stream.read_exact(&mut head)?;
    let mut body = Zeroizing::new(vec![0; body_len]);
    stream.read_exact(&mut body)?;
    Ok((serde_json::from_slice(&head)?, body))
}

fn length(stream: &mut impl Read, most: usize) -> io::Result<usize> {
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes)?;
    let length = u32::from_le_bytes(bytes) as usize;
    if length > most { Err(io::Error::other("it is too long")) } else { Ok(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard_and_too_much_is_refused() {
        let mut said = Vec::new();
        send(&mut said, &Request::Write(Kept::Ticket([2, 0, 0, 0, 0, 9])), b"content").expect("room");
        let (request, body) = receive::<Request>(&mut said.as_slice()).expect("whole");
        assert!(matches!(request, Request::Write(Kept::Ticket([2, 0, 0, 0, 0, 9]))), "{request:?}");
        assert_eq!(&body[..], b"content");
        assert!(receive::<Request>(&mut &said[..said.len() - 1]).is_err(), "cut short");
        let too_long = [[0; 4], (BODY_LEN_MAX as u32 + 1).to_le_bytes()].concat();
        assert!(receive::<Request>(&mut too_long.as_slice()).is_err());
        assert!(send(&mut Vec::new(), &Request::GiveBack, &vec![0; BODY_LEN_MAX + 1]).is_err());
    }

    #[test]
    fn own_files_lie_where_they_always_did() {
        let home = Home::new(Path::new("/s"), "e0");
        let name = |kept| home.path(&kept).display().to_string();
        assert_eq!(name(Kept::Peers), "/s/e0.peers.json");
        assert_eq!(name(Kept::OwnKeys), "/s/e0.keys.pem");
        assert_eq!(name(Kept::Revoked), "/s/e0.revoked.crl.pem");
        assert_eq!(name(Kept::Policy), "/s/e0.policy.pem");
        assert_eq!(name(Kept::TicketKeys), "/s/e0.tickets/keys.pem");
        assert_eq!(name(Kept::SpentTickets), "/s/e0.tickets/spent.pem");
        assert_eq!(name(Kept::Ticket([2, 0, 0, 0, 0, 9])), "/s/e0.tickets/02:00:00:00:00:09.pem");
    }
}
