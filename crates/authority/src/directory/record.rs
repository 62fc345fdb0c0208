//! What a site has decided and issued, as who has no key of it may read it: the site's service does.

use std::cell::OnceCell;
use std::fs::File;
use std::path::{Path, PathBuf};

use identity::certificate::{HostCertificate, TrustAnchor, Verified};
use identity::pem;
use identity::policy::SitePolicy;
use identity::revocation::RevocationList;

use super::issued::{Cache, Certificate, Issued};
use super::{CERTIFICATE, Directory, Entry, ISSUED, POLICY, RETIRED, REVOKED, acts, operators};
use crate::audit::{self, Checked, Doubt, Kept, RefusedOrders};
use crate::{Error, files};

/// A site's directory without its keys.
#[derive(Clone, Debug)]
pub struct Record {
    pub(super) path: PathBuf,
    pub(super) anchor: TrustAnchor,
    cache: Cache,
}

impl From<&Directory> for Record {
    fn from(directory: &Directory) -> Record {
        Record { path: directory.path.clone(), anchor: directory.site.anchor().clone(), cache: directory.cache.clone() }
    }
}

impl Record {
    /// That of the site in `path`.
    ///
    /// # Errors
    /// [`Error::NoSite`], or what is wrong with its certificate.
    pub fn open(path: &Path) -> Result<Record, Error> {
        let certificate = path.join(CERTIFICATE);
        if !certificate.exists() {
            return Err(Error::NoSite.with_file(path));
        }
        let read = || -> Result<TrustAnchor, Error> {
            let der = pem::single(&files::read(&certificate)?, pem::CERTIFICATE)?;
            TrustAnchor::from_der(&der).map_err(Error::Authority)
        };
        let anchor = read().map_err(|error| error.with_file(&certificate))?;
        Ok(Record { path: path.to_owned(), anchor, cache: Cache::default() })
    }

    /// The same, whose certificates are read anew only where `cache` does not have them.
    #[must_use]
    pub fn caching(self, cache: &Cache) -> Record {
        Record { cache: cache.clone(), ..self }
    }

    /// The authority, as hosts know it.
    #[must_use]
    pub fn anchor(&self) -> &TrustAnchor {
        &self.anchor
    }

    fn issued(&self) -> Issued<'_> {
        Issued { site: &self.path, anchor: &self.anchor, cache: &self.cache }
    }

    /// As [`Directory::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        Ok(entries(&self.issued().recent()?, self.revocation_list()?.as_ref()))
    }

    /// Whether it has a certificate with this serial number, in hexadecimal digits.
    #[must_use]
    pub fn has(&self, serial: &str) -> bool {
        let is_serial = !serial.is_empty() && serial.bytes().all(|byte| byte.is_ascii_hexdigit());
        let file = format!("{serial}.pem");
        is_serial && [ISSUED, RETIRED].iter().any(|folder| self.path.join(folder).join(&file).exists())
    }

    /// As [`Directory::list_all`].
    ///
    /// # Errors
    /// As there.
    pub fn list_all(&self) -> Result<Vec<Entry>, Error> {
        Ok(entries(&self.issued().all()?, self.revocation_list()?.as_ref()))
    }

    /// The newest list of what was taken back; a site of an earlier version has none yet.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn revocation_list(&self) -> Result<Option<Verified<RevocationList>>, Error> {
        self.read(REVOKED, |text| {
            let der = pem::single(text, pem::REVOCATION_LIST)?;
            self.anchor.verify_revocation_list(&der).map_err(Error::RevocationList)
        })
    }

    /// Whether `list` names a certificate that the site's own list lacks, and that is not over.
    ///
    /// # Errors
    /// What is wrong with a file.
    pub fn lacks(&self, list: &RevocationList, unix_s: u64) -> Result<bool, Error> {
        let own = self.revocation_list()?;
        for serial in list.serials().filter(|serial| !own.as_ref().is_some_and(|own| own.has(serial))) {
            let digits: String = serial.iter().map(|byte| format!("{byte:02x}")).collect();
            let is_over = self.read_certificate(&digits)?.is_some_and(|one| one.not_after_unix() < unix_s);
            if !is_over {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The certificate with this serial number, if the record has it.
    fn read_certificate(&self, digits: &str) -> Result<Option<Verified<HostCertificate>>, Error> {
        let files = [ISSUED, RETIRED].map(|folder| format!("{folder}/{digits}.pem"));
        let read =
            |text: &str| self.anchor.verify_whenever(&pem::single(text, pem::CERTIFICATE)?).map_err(Error::Recorded);
        let found = files.iter().find(|file| self.path.join(file).exists());
        found.map_or(Ok(None), |file| self.read(file, read))
    }

    /// The policy in force; a site has none before the first change.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn policy(&self) -> Result<Option<Verified<SitePolicy>>, Error> {
        self.read(POLICY, |text| {
            let bytes = pem::single(text, pem::SITE_POLICY)?;
            self.anchor.verify_policy(&bytes).map_err(Error::Policy)
        })
    }

    /// What `parse` makes of a file, if it is there.
    pub(super) fn read<T>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, Error>) -> Result<Option<T>, Error> {
        let path = self.path.join(name);
        if !path.exists() {
            return Ok(None);
        }
        files::read(&path).and_then(|text| parse(&text)).map(Some).map_err(|error| error.with_file(&path))
    }

    /// All entries of the record of what was done, if it is as it was written, has every certificate
    /// and all that operators were refused; else the first doubt. `noted` is number and digest of an
    /// entry that was noted elsewhere.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn check(&self, noted: Option<(u64, &str)>) -> Result<Result<Checked, Doubt>, Error> {
        let acts = self.check_acts(noted)?;
        Ok(acts.and_then(|(checked, refused)| refused.map_or(Ok(checked), Err)))
    }

    /// As [`check`](Record::check), and a doubt about what operators were refused hides no act: it
    /// comes beside them.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn check_acts(&self, noted: Option<(u64, &str)>) -> Result<Result<(Checked, Option<Doubt>), Doubt>, Error> {
        let _lock = lock(&self.path)?;
        let checked = match audit::check(&self.path, &self.anchor, noted)? {
            Ok(checked) => checked,
            Err(doubt) => return Ok(Err(doubt)),
        };
        let hosts = self.list_all()?.into_iter().map(|entry| (acts::issued_unix(&entry), entry.serial));
        let people = self.operators()?.into_iter().map(|one| operators::issue_of(&one.certificate));
        let issued: Vec<(u64, String)> = hosts.chain(people).collect();
        if checked.entries.is_empty() && !issued.is_empty() {
            return Ok(Err(Doubt::Empty));
        }
        let issued = issued.iter().map(|(unix_s, serial)| (serial.as_str(), *unix_s));
        if let Some(doubt) = audit::untold(&checked, issued) {
            return Ok(Err(doubt));
        }
        let refused = match audit::refused(&self.path, &self.anchor, None, usize::MAX)? {
            Ok(refused) => audit::missing(&checked, &refused),
            Err(doubt) => Some(doubt),
        };
        Ok(Ok((checked, refused)))
    }

    /// The newest `count` entries of the record of what was done, or those before the one of the
    /// number `before`, if they are as they were written, one behind the other up to the last or to
    /// that one; else the first doubt. The others, and whether each certificate has an entry,
    /// [`check`](Record::check) looks at.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn acts_before(&self, before: Option<u64>, count: usize) -> Result<Result<Vec<Kept>, Doubt>, Error> {
        let _lock = lock(&self.path)?;
        audit::page(&self.path, &self.anchor, before, count)
    }

    /// The orders that `operator` was refused, or all were, by command. The newest `count` alone,
    /// the last one last; a doubt if the authority did not sign them.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn refused_orders(
        &self,
        operator: Option<&str>,
        count: usize,
    ) -> Result<Result<Vec<RefusedOrders>, Doubt>, Error> {
        let _lock = lock(&self.path)?;
        audit::refused(&self.path, &self.anchor, operator, count)
    }
}

/// The lock of a site, until it is dropped. No other program changes the certificates meanwhile, so
/// its holder reads them once.
pub(super) struct Lock {
    _directory: File,
    recent: OnceCell<Vec<Certificate>>,
}

impl Lock {
    /// As [`Issued::recent`], as it was when this was asked first.
    pub(super) fn recent(&self, issued: &Issued<'_>) -> Result<&[Certificate], Error> {
        if let Some(recent) = self.recent.get() {
            return Ok(recent);
        }
        let recent = issued.recent()?;
        Ok(self.recent.get_or_init(|| recent))
    }
}

/// Two managers at once would each miss what the other is about to record.
pub(super) fn lock(path: &Path) -> Result<Lock, Error> {
    let lock = || -> Result<File, Error> {
        let directory = File::open(path)?;
        directory.lock()?;
        Ok(directory)
    };
    let directory = lock().map_err(|error| error.with_file(path))?;
    Ok(Lock { _directory: directory, recent: OnceCell::new() })
}

pub(super) fn entries(certificates: &[Certificate], listed: Option<&Verified<RevocationList>>) -> Vec<Entry> {
    let entry = |certificate: &Certificate| Entry {
        revoked: listed.is_some_and(|list| list.names(certificate)),
        ..Entry::of(certificate)
    };
    certificates.iter().map(entry).collect()
}
