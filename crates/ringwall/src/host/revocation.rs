//! The site's list of revoked certificates, as a file that whoever runs the site's hosts puts in its place.
//!
//! It is read at the start and again whenever the file changed. The authority's signature is what counts, not who wrote the
//! file; an older list than the one in use is refused, and so is one that cannot be read: what is known stays known.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use authority::files;
use bump::Instant;
use identity::revocation::RevocationList;
use identity::{HostIdentity, Verified, pem};

use crate::failure::Failure;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const REMEDY: &str = "copy `revoked.crl.pem` of the site's directory there, whole";

/// What tells one version of a file from another: file system, number, length, and time of change.
type Version = (u64, u64, u64, i64, i64);

/// The file and what was last read from it.
pub(super) struct Revocations {
    file: PathBuf,
    identity: Arc<HostIdentity>,
    version: Option<Version>,
    list: Arc<Verified<RevocationList>>,
    look_at: Instant,
}

/// What a look at the file came to.
pub(super) enum Look {
    /// Nothing new.
    Same,
    /// A newer list.
    Newer(Arc<Verified<RevocationList>>),
    /// The file changed, and the list before stays in force; why.
    Refused(String),
}

impl Revocations {
    /// Reads the list for the first time.
    pub(super) fn open(file: &Path, identity: &Arc<HostIdentity>) -> Result<Revocations, Failure> {
        let version = version_of(file);
        let list = Arc::new(read(file, identity)?);
        let identity = Arc::clone(identity);
        Ok(Revocations { file: file.to_owned(), identity, version, list, look_at: Instant::default() })
    }

    /// The list in force.
    pub(super) fn list(&self) -> &Arc<Verified<RevocationList>> {
        &self.list
    }

    /// Whether this host's own certificate is on it.
    pub(super) fn names_us(&self) -> bool {
        self.list.names(self.identity.certificate())
    }

    /// Looks whether the file changed, from time to time.
    pub(super) fn look(&mut self, now: Instant) -> Look {
        if now < self.look_at {
            return Look::Same;
        }
        self.look_at = now + LOOK_EVERY;
        let version = version_of(&self.file);
        if version == self.version {
            return Look::Same;
        }
        self.version = version;
        match read(&self.file, &self.identity) {
            Err(failure) => Look::Refused(failure.to_string()),
            Ok(list) if list.issued_unix() < self.list.issued_unix() => {
                Look::Refused(format!("{}: it is older than the list in force; {REMEDY}", self.file.display()))
            }
            Ok(list) => {
                self.list = Arc::new(list);
                Look::Newer(Arc::clone(&self.list))
            }
        }
    }
}

fn version_of(file: &Path) -> Option<Version> {
    let data = std::fs::metadata(file).ok()?;
    Some((data.dev(), data.ino(), data.size(), data.mtime(), data.mtime_nsec()))
}

fn read(file: &Path, identity: &HostIdentity) -> Result<Verified<RevocationList>, Failure> {
    let text = files::read(file).map_err(|error| Failure::file(file, error.reason(), REMEDY))?;
    let der = pem::single(&text, pem::REVOCATION_LIST).map_err(|error| Failure::file(file, error, REMEDY))?;
    let list = identity.anchor().verify_revocation_list(&der);
    list.map_err(|error| Failure::file(file, error, REMEDY))
}
