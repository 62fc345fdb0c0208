//! The site's list of revoked certificates: from a file that whoever runs the site's hosts puts in
//! its place, and from peers.
//!
//! The file is read at the start and again whenever it changed; what a peer gives is kept in the
//! state directory. The authority's signature is what counts, not who wrote the file or gave the
//! list; an older list than the one in use is refused, and so is one that cannot be read: what is
//! known stays known.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bump::Instant;
use identity::revocation::RevocationList;
use identity::{HostIdentity, Verified, pem};
use wire::MacAddress;

use crate::daemon::Journal;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::monitor::{Disk, Home, Kept, Version};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const REMEDY: &str = "copy `revoked.crl.pem` of the site's directory there, whole";

/// The list in force, and where newer ones come from.
pub(super) struct Revocations {
    /// The file that an operator puts in its place, if one is named, and its version when it was
    /// last read.
    followed: Option<(PathBuf, Option<Version>)>,
    /// Where these files are, and where a list is kept that came from a peer.
    disk: Disk,
    identity: Arc<HostIdentity>,
    list: Option<Arc<Verified<RevocationList>>>,
    /// A peer gave the list in force, and the link layer has not been told yet.
    is_news: bool,
    look_at: Instant,
}

/// What a look for a newer list came to.
pub(super) enum Look {
    /// Nothing new.
    Same,
    /// A newer list.
    Newer(Arc<Verified<RevocationList>>),
    /// The file changed, and the list before stays in force; why.
    Refused(String),
}

impl Revocations {
    /// Reads the lists for the first time: that of the operator's file, which must be there if one
    /// is named, and the one that peers gave. The newer is in force.
    pub(super) fn open(config: &Config, identity: &Arc<HostIdentity>, disk: &Disk) -> Result<Revocations, Failure> {
        let kept = Home::new(&config.host.state_dir, &config.host.interface).path(&Kept::Revoked);
        let file = config.cll.revocation_list.as_deref();
        let followed = file.map(|file| (file.to_owned(), disk.version(file)));
        let mut list = file.map(|file| read(disk, file, identity)).transpose()?;
        if kept.exists() {
            // The monitor writes this file, and reads it to nobody: it is there for the next start.
            match read(&Disk::own(None), &kept, identity) {
                Ok(of_peers) if is_newer(&of_peers, list.as_ref()) => list = Some(of_peers),
                Ok(_) => {}
                // Peers give it again. A host that enrolled at another site has no use for it.
                Err(failure) => tracing::warn!("{failure}; it is left out"),
            }
        }
        let (list, identity) = (list.map(Arc::new), Arc::clone(identity));
        let disk = disk.clone();
        Ok(Revocations { followed, disk, identity, list, is_news: false, look_at: Instant::default() })
    }

    /// The list in force, if there is one.
    pub(super) fn list(&self) -> Option<&Arc<Verified<RevocationList>>> {
        self.list.as_ref()
    }

    /// Whether this host's own certificate is on it.
    pub(super) fn names_us(&self) -> bool {
        self.list.as_ref().is_some_and(|list| list.names(self.identity.certificate()))
    }

    /// This host's certificate is this one from now on.
    pub(super) fn follow(&mut self, identity: &Arc<HostIdentity>) {
        self.identity = Arc::clone(identity);
    }

    /// A peer gave this list. The authority's signature decides, not the peer.
    pub(super) fn take(&mut self, from: MacAddress, der: &[u8], journal: &mut Journal) {
        let list = match self.identity.anchor().verify_revocation_list(der) {
            Ok(list) if is_newer(&list, self.list.as_deref()) => list,
            Ok(_) => return,
            Err(error) => {
                return journal.note("revocations", &format!("the list that {from} gave is refused: {error}"));
            }
        };
        journal.note("revocations", &format!("{from} gave a newer list"));
        let text = pem::encode(pem::REVOCATION_LIST, der);
        if let Err(error) = self.disk.write(&Kept::Revoked, &text) {
            journal.note("revocations", &format!("it is not kept beyond the end of this daemon: {error}"));
        }
        (self.list, self.is_news) = (Some(Arc::new(list)), true);
    }

    /// Looks whether there is a newer list, from time to time.
    pub(super) fn look(&mut self, now: Instant) -> Look {
        if std::mem::take(&mut self.is_news)
            && let Some(list) = &self.list
        {
            return Look::Newer(Arc::clone(list));
        }
        if now < self.look_at {
            return Look::Same;
        }
        self.look_at = now + LOOK_EVERY;
        self.look_at_file()
    }

    fn look_at_file(&mut self) -> Look {
        let Some((file, before)) = &mut self.followed else { return Look::Same };
        let version = self.disk.version(file);
        if version == *before {
            return Look::Same;
        }
        *before = version;
        match read(&self.disk, file, &self.identity) {
            Err(failure) => Look::Refused(failure.to_string()),
            Ok(list) if self.list.as_ref().is_some_and(|own| list.issued_unix() < own.issued_unix()) => {
                Look::Refused(format!("{}: it is older than the list in force; {REMEDY}", file.display()))
            }
            Ok(list) => {
                let list = Arc::new(list);
                self.list = Some(Arc::clone(&list));
                Look::Newer(list)
            }
        }
    }
}

fn is_newer(list: &RevocationList, than: Option<&Verified<RevocationList>>) -> bool {
    than.is_none_or(|than| list.issued_unix() > than.issued_unix())
}

fn read(disk: &Disk, file: &Path, identity: &HostIdentity) -> Result<Verified<RevocationList>, Failure> {
    let read = disk.read(file).map_err(|error| Failure::file(file, error, REMEDY))?;
    let der = pem::single(&read.text, pem::REVOCATION_LIST).map_err(|error| Failure::file(file, error, REMEDY))?;
    let list = identity.anchor().verify_revocation_list(&der);
    list.map_err(|error| Failure::file(file, error, REMEDY))
}
