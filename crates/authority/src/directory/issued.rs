//! The certificates that a site has issued, as files: the record that every act reads whole.
//!
//! What is long over leaves it. Hosts renew theirs every few weeks, so in ten years a site issues a
//! hundred times as many as it has hosts.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use identity::certificate::{HostCertificate, TrustAnchor, Verified};
use identity::pem;

use super::{Entry, ISSUED, RETIRED};
use crate::error::Error;
use crate::files::{self, Overwrite, Secrecy};
use crate::limits::{MAX_ISSUED, RETIRED_AFTER, RETIRED_AT_ONCE};

/// The two folders of a site.
pub(super) struct Issued<'a> {
    pub(super) site: &'a Path,
    pub(super) anchor: &'a TrustAnchor,
}

impl Issued<'_> {
    /// Of each host the newest, and what is or was good lately, by name and then by age.
    pub(super) fn recent(&self) -> Result<Vec<Verified<HostCertificate>>, Error> {
        let mut found = self.read(ISSUED, MAX_ISSUED)?;
        sort(&mut found);
        Ok(found)
    }

    /// All of them.
    pub(super) fn all(&self) -> Result<Vec<Verified<HostCertificate>>, Error> {
        let mut found = self.read(ISSUED, MAX_ISSUED)?;
        if self.site.join(RETIRED).exists() {
            found.extend(self.read(RETIRED, usize::MAX)?);
        }
        sort(&mut found);
        found.dedup_by(|one, other| one.serial() == other.serial());
        Ok(found)
    }

    /// Those in one folder, at most so many.
    fn read(&self, folder: &str, most: usize) -> Result<Vec<Verified<HostCertificate>>, Error> {
        let directory = self.site.join(folder);
        let mut found = Vec::new();
        let listing = fs::read_dir(&directory).map_err(|error| Error::from(error).with_file(&directory))?;
        for file in listing {
            let path = file.map_err(|error| Error::from(error).with_file(&directory))?.path();
            if !is_certificate_file(&path) {
                continue;
            }
            if found.len() == most {
                return Err(Error::SiteFull.with_file(&directory));
            }
            found.push(self.read_one(&path).map_err(|error| error.with_file(&path))?);
        }
        Ok(found)
    }

    fn read_one(&self, path: &Path) -> Result<Verified<HostCertificate>, Error> {
        let der = pem::single(&files::read(path)?, pem::CERTIFICATE)?;
        self.anchor.verify_whenever(&der).map_err(Error::Recorded)
    }

    /// Puts these away. What a crash leaves in both places goes with the next act.
    pub(super) fn retire(&self, retired: &[Entry]) -> Result<(), Error> {
        if retired.is_empty() {
            return Ok(());
        }
        let [issued, folder] = [ISSUED, RETIRED].map(|name| self.site.join(name));
        fs::create_dir_all(&folder).map_err(|error| Error::from(error).with_file(&folder))?;
        for entry in retired {
            let file = format!("{}.pem", entry.serial);
            let from = issued.join(&file);
            // A copy under another name, which people make, goes when they take it away.
            if !from.exists() {
                continue;
            }
            // No rename: a signer's Landlock of the first version lets nothing change its folder.
            files::write(&folder.join(&file), &files::read(&from)?, Secrecy::Public, Overwrite::Force)?;
            fs::remove_file(&from).map_err(|error| Error::from(error).with_file(&from))?;
        }
        Ok(())
    }
}

fn sort(certificates: &mut [Verified<HostCertificate>]) {
    certificates.sort_by_cached_key(|one| (one.name().to_owned(), one.not_before_unix(), one.serial_hex()));
}

pub(super) fn is_certificate_file(path: &Path) -> bool {
    let hidden = path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with('.'));
    !hidden && path.extension() == Some(OsStr::new("pem"))
}

/// Takes out [`RETIRED_AT_ONCE`] at most of what is over for [`RETIRED_AFTER`] at `unix_s` and is
/// not the newest of its host, which says who it was. `entries` are sorted by age for each name.
pub(super) fn take_retired(entries: &mut Vec<Entry>, unix_s: u64) -> Vec<Entry> {
    let newest: BTreeMap<String, String> =
        entries.iter().map(|entry| (entry.name.clone(), entry.serial.clone())).collect();
    let is_over = |entry: &Entry| entry.not_after_unix.saturating_add(RETIRED_AFTER.as_secs()) < unix_s;
    let retired = entries.extract_if(.., |entry| is_over(entry) && newest[&entry.name] != entry.serial);
    retired.take(RETIRED_AT_ONCE).collect()
}
