//! The monitor's own process: gives up what its charge does not need, and carries out requests
//! until the daemon is gone.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use authority::files::{self, Overwrite, Secrecy};
use authority::limits::MAX_FILE_LEN;
use system::privilege::{self, Capability};
use system::sandbox::{self, Ports, Reach};
use system::takeover;
use zeroize::Zeroizing;

use super::message::{Back, Charge, Home, Kept, Reply, Request, Version, receive, send};
use super::{Text, text};
use crate::companion;
use crate::failure::Failure;

/// Where the kernel says which boot this is, which the state of a take-over names.
const BOOT: &str = "/proc/sys/kernel/random";

/// `ringwall monitor`, which a daemon starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let mut stream = companion::socket("a daemon starts its monitor by itself; use `ringwall host run`")?;
    let (charge, _): (Charge, _) = receive(&mut stream).map_err(Failure::new)?;
    let confined = confine(&charge);
    send(&mut stream, &reply(confined), &[]).map_err(Failure::new)?;
    // The end of the daemon is the end of this loop.
    while let Ok((request, body)) = receive::<Request>(&mut stream) {
        let (reply, body) = carry_out(&charge, &request, &body);
        if send(&mut stream, &reply, &body).is_err() {
            break;
        }
    }
    Ok(())
}

/// Giving an interface back takes namespaces, mounts and `nft`, of which a unit may allow less, as
/// for a card that stays in place; whoever only has files to see to gets no more than those.
fn confine(charge: &Charge) -> io::Result<()> {
    sandbox::forbid_dumps()?;
    if charge.back.is_some() {
        return privilege::keep_of(&Capability::FOR_RELEASE);
    }
    privilege::keep(&[])?;
    let state_dir = charge.home.iter().map(|home| home.state_dir.clone());
    let writable: Vec<PathBuf> = state_dir.chain(charge.socket.parent().map(Path::to_owned)).collect();
    writable.iter().try_for_each(|directory| make(directory))?;
    let readable = charge.readable.iter().map(|file| directory_of(file)).chain([PathBuf::from(BOOT)]);
    // A directory that is not there yet has no file that could be read again.
    let readable = readable.filter(|directory| directory.is_dir()).collect();
    let landlocked = sandbox::confine(&Reach { readable, writable, connects: Ports::Closed })?;
    tracing::debug!("monitor: Landlock is {landlocked}");
    sandbox::end_at_attacks()
}

fn make(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory).map_err(|error| {
        io::Error::other(format!("{}: {error}; name another directory in the configuration", directory.display()))
    })
}

fn directory_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn carry_out(charge: &Charge, request: &Request, body: &[u8]) -> (Reply, Zeroizing<Vec<u8>>) {
    let file = |place: &usize| charge.readable.get(*place).ok_or_else(|| io::Error::from(ErrorKind::PermissionDenied));
    let home = || charge.home.as_ref().ok_or_else(|| io::Error::from(ErrorKind::PermissionDenied));
    let nothing = Zeroizing::new(Vec::new());
    let done = match request {
        Request::Version(place) => {
            return (Reply::Version(file(place).ok().and_then(|file| Version::of(file))), nothing);
        }
        Request::Read(place) => match file(place).and_then(|file| read(file)) {
            Ok(mut read) => {
                let body = std::mem::take(&mut *read.text).into_bytes();
                return (Reply::Text { mode: read.mode }, Zeroizing::new(body));
            }
            Err(error) => Err(error),
        },
        Request::Write(kept) => home().and_then(|home| {
            let content = std::str::from_utf8(body).map_err(io::Error::other)?;
            write(home, kept, content)
        }),
        Request::Remove(kept) => home().and_then(|home| remove(&home.path(kept))),
        Request::RevertsAt => {
            let at = charge.home.as_ref().and_then(Home::reverts_at);
            return (Reply::RevertsAt(at.map(|at| at.as_nanos())), nothing);
        }
        Request::GiveBack => give_back(charge),
        Request::RemoveSocket => remove(&charge.socket),
    };
    (reply(done), nothing)
}

fn reply(done: io::Result<()>) -> Reply {
    done.map_or_else(|error| Reply::Refused(error.to_string()), |()| Reply::Done)
}

fn give_back(charge: &Charge) -> io::Result<()> {
    let released = match &charge.back {
        None => return Err(ErrorKind::PermissionDenied.into()),
        Some(Back::Host { interface, run_dir, state_dir }) => takeover::release(interface, run_dir, state_dir),
        Some(Back::Gateway { trusted, run_dir, state_dir }) => takeover::release_gateway(trusted, run_dir, state_dir),
    };
    let report = released.map_err(io::Error::other)?;
    report.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    Ok(())
}

/// Reads a file, and who may read it.
pub(super) fn read(file: &Path) -> io::Result<Text> {
    let opened = File::open(file)?;
    let mode = opened.metadata()?.mode();
    let mut body = Zeroizing::new(Vec::new());
    opened.take(MAX_FILE_LEN + 1).read_to_end(&mut body)?;
    if body.len() as u64 > MAX_FILE_LEN {
        return Err(io::Error::other(format!("it is longer than {MAX_FILE_LEN} bytes")));
    }
    text(body, mode)
}

/// Replaces a file of the daemon.
pub(super) fn write(home: &Home, kept: &Kept, content: &str) -> io::Result<()> {
    let secrecy = match kept {
        Kept::Revoked | Kept::Policy | Kept::Leases => Secrecy::Public,
        Kept::Peers | Kept::OwnKeys | Kept::TicketKeys | Kept::SpentTickets | Kept::Ticket(_) => Secrecy::Secret,
    };
    files::write(&home.path(kept), content, secrecy, Overwrite::Force)
        .map_err(|error| io::Error::other(error.to_string()))
}

/// Removes a file; that it is not there is no error.
pub(super) fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(place: &Path) -> Charge {
        let home = Some(Home::new(place, "e0"));
        Charge { readable: vec![place.join("host.toml")], home, socket: place.join("e0.sock"), back: None }
    }

    fn is_refused(charge: &Charge, request: &Request) -> bool {
        matches!(carry_out(charge, request, b"x").0, Reply::Refused(_))
    }

    #[test]
    fn a_request_goes_no_further_than_the_charge() {
        let place = tempfile::tempdir().expect("a directory");
        fs::write(place.path().join("host.toml"), "text").expect("written");
        let charge = charge(place.path());
        let (reply, body) = carry_out(&charge, &Request::Read(0), &[]);
        assert!(matches!(reply, Reply::Text { .. }) && body[..] == *b"text");
        assert!(matches!(carry_out(&charge, &Request::Version(0), &[]).0, Reply::Version(Some(_))));
        assert!(is_refused(&charge, &Request::Read(1)), "no such file in the charge");
        assert!(matches!(carry_out(&charge, &Request::Version(1), &[]).0, Reply::Version(None)));
        assert!(is_refused(&charge, &Request::GiveBack), "nothing goes back");
        let homeless = Charge { home: None, ..charge };
        assert!(is_refused(&homeless, &Request::Write(Kept::Peers)));
        assert!(is_refused(&homeless, &Request::Remove(Kept::Peers)));
    }

    #[test]
    fn what_the_daemon_keeps_is_written_whole_and_for_root_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let charge = charge(place.path());
        for (kept, mode) in [(Kept::Peers, 0o600), (Kept::OwnKeys, 0o600), (Kept::Revoked, 0o644)] {
            let (reply, _) = carry_out(&charge, &Request::Write(kept.clone()), b"content");
            assert!(matches!(reply, Reply::Done), "{reply:?}");
            let written = read(&Home::new(place.path(), "e0").path(&kept)).expect("there");
            assert_eq!((written.text.as_str(), written.mode & 0o777), ("content", mode), "{kept:?}");
            for _ in 0..2 {
                assert!(matches!(carry_out(&charge, &Request::Remove(kept.clone()), &[]).0, Reply::Done));
            }
            assert!(read(&Home::new(place.path(), "e0").path(&kept)).is_err());
        }
    }
}
