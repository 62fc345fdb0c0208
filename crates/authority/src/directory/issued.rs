//! The certificates that a site has issued, as files: the record that every act looks at.
//!
//! What is long over leaves it. Hosts renew theirs every few weeks, so in ten years a site issues a
//! hundred times as many as it has hosts.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use identity::certificate::{HostCertificate, TrustAnchor, Verified};
use identity::pem;

use super::cluster::Cluster;
use super::stamp::Stamp;
use super::{Entry, INDEX, INDEX_HEADER, ISSUED, RETIRED};
use crate::error::Error;
use crate::files::{self, Overwrite, Secrecy};
use crate::limits::{INDEX_LEN_EACH, MAX_ISSUED, RETIRED_AFTER, RETIRED_AT_ONCE};

/// A certificate of the record.
pub(super) type Certificate = Arc<Verified<HostCertificate>>;

/// What a process that acts again and again keeps of one site: the certificates that were read from
/// its folder and verified, and the way to the cluster that has its repository. It reads anew only
/// what has changed: ten thousand files take most of a second to verify and ten milliseconds to look
/// at.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    read: Arc<Mutex<Read>>,
    pub(super) cluster: Arc<Mutex<Option<Cluster>>>,
}

#[derive(Debug, Default)]
struct Read {
    /// The authority's certificate under which they are good, in DER.
    anchor: Vec<u8>,
    files: HashMap<PathBuf, (Stamp, Certificate)>,
}

/// The two folders of a site.
pub(super) struct Issued<'a> {
    pub(super) site: &'a Path,
    pub(super) anchor: &'a TrustAnchor,
    pub(super) cache: &'a Cache,
}

impl Issued<'_> {
    /// Of each host the newest, and what is or was good lately, by name and then by age.
    pub(super) fn recent(&self) -> Result<Vec<Certificate>, Error> {
        let mut read = self.cache.read.lock().unwrap_or_else(PoisonError::into_inner);
        // Files that are gone, or not as they were, are forgotten.
        let before = std::mem::take(&mut *read);
        let is_same_anchor = before.anchor == self.anchor.der();
        self.anchor.der().clone_into(&mut read.anchor);
        let mut known = before.files;
        let mut paths = self.files(ISSUED, MAX_ISSUED)?.into_iter();
        let read_all = paths.try_for_each(|path| {
            // Who only looks has no lock, so one may have been put away since.
            let stamp = match Stamp::of(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                stamp => stamp.map_err(|error| Error::from(error).with_file(&path))?,
            };
            let kept = known.remove(&path).filter(|(of, _)| is_same_anchor && *of == stamp);
            let certificate = kept.map_or_else(|| self.read_one(&path).map(Arc::new), |(_, kept)| Ok(kept))?;
            read.files.insert(path, (stamp, certificate));
            Ok(())
        });
        if let Err(error) = read_all {
            read.files.extend(known.into_iter().filter(|_| is_same_anchor));
            return Err(error);
        }
        let mut found: Vec<Certificate> = read.files.values().map(|(_, one)| Arc::clone(one)).collect();
        sort(&mut found);
        Ok(found)
    }

    /// All of them.
    pub(super) fn all(&self) -> Result<Vec<Certificate>, Error> {
        let mut found = self.recent()?;
        if self.site.join(RETIRED).exists() {
            for path in self.files(RETIRED, usize::MAX)? {
                found.push(Arc::new(self.read_one(&path)?));
            }
        }
        sort(&mut found);
        found.dedup_by(|one, other| one.serial() == other.serial());
        Ok(found)
    }

    /// The certificates' files in one folder, at most so many.
    fn files(&self, folder: &str, most: usize) -> Result<Vec<PathBuf>, Error> {
        let directory = self.site.join(folder);
        let wrong = |error: io::Error| Error::from(error).with_file(&directory);
        let listing = fs::read_dir(&directory).map_err(wrong)?;
        let paths = listing.map(|file| file.map(|file| file.path())).collect::<io::Result<Vec<_>>>().map_err(wrong)?;
        let found: Vec<PathBuf> = paths.into_iter().filter(|path| is_certificate_file(path)).collect();
        if found.len() > most { Err(Error::SiteFull.with_file(&directory)) } else { Ok(found) }
    }

    fn read_one(&self, path: &Path) -> Result<Verified<HostCertificate>, Error> {
        let read = || {
            let der = pem::single(&files::read(path)?, pem::CERTIFICATE)?;
            self.anchor.verify_whenever(&der).map_err(Error::Recorded)
        };
        read().map_err(|error: Error| error.with_file(path))
    }

    /// Writes the last of `entries` into the index, or all of them where there is none: it has
    /// megabytes in a large site. Lines of what was put away stay until they are most of it. What was
    /// issued is handed out by then, so nothing fails because of the index; one that cannot be written
    /// goes, and the next issue writes it anew.
    pub(super) fn index(&self, entries: &[Entry]) {
        let path = self.site.join(ISSUED).join(INDEX);
        let Some(last) = entries.last() else { return };
        let append = |mut file: File| file.write_all(last.index_line().as_bytes());
        let most = entries.len().max(RETIRED_AT_ONCE) as u64 * INDEX_LEN_EACH;
        if files::read_len(&path).is_ok_and(|len| len > most) {
            let _ = fs::remove_file(&path);
        }
        let written = match OpenOptions::new().append(true).open(&path).and_then(append) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let lines: String = entries.iter().map(Entry::index_line).collect();
                files::write(&path, &[INDEX_HEADER, &lines].concat(), Secrecy::Public, Overwrite::Force).is_ok()
            }
            appended => appended.is_ok(),
        };
        if !written {
            let _ = fs::remove_file(&path);
        }
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

fn sort(certificates: &mut [Certificate]) {
    certificates.sort_unstable_by(|one, other| {
        let name = one.name().cmp(other.name());
        let age = one.not_before_unix().cmp(&other.not_before_unix());
        name.then(age).then_with(|| one.serial().cmp(other.serial()))
    });
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
