//! What a site that was restored takes back of what it did after the backup (record 0124). Hosts have
//! it: each its own certificate, and all the policy, the revocation list and the site keys. What the
//! authority has signed is believed whoever brings it.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use identity::certificate::{HostCertificate, utc_text};
use identity::policy::SitePolicy;
use identity::revocation::RevocationList;
use identity::site_key::SiteKey;
use identity::{HostIdentity, Succession, Verified, pem};

use super::issued::Certificate;
use super::{Directory, Entry, INDEX, ISSUED, POLICY, REVOKED, SITE_KEY, Sharing, acts, as_new_host, policy};
use crate::Error;
use crate::audit::Act;
use crate::files::{self, Overwrite, Secrecy};
use crate::limits::MAX_ISSUED;

/// What hosts have brought, in PEM.
#[derive(Debug, Default)]
pub struct Brought<'a> {
    /// A policy.
    pub policy: Option<&'a str>,
    /// A revocation list.
    pub revoked: Option<&'a str>,
    /// Certificates of hosts, one block each.
    pub certificates: Vec<&'a str>,
    /// A host of this site, for the site keys that it has.
    pub identity: Option<&'a HostIdentity>,
}

/// What a site does not have of it.
#[derive(Debug, Default)]
pub struct Missing {
    /// A newer policy.
    pub policy: Option<Verified<SitePolicy>>,
    /// A newer list.
    pub revoked: Option<Verified<RevocationList>>,
    /// Certificates of no record, by age.
    pub certificates: Vec<Verified<HostCertificate>>,
    /// Site keys of a later generation.
    pub site_keys: Option<Succession<SiteKey>>,
}

impl Missing {
    /// Whether the site has all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.policy.is_none() && self.revoked.is_none() && self.certificates.is_empty() && self.site_keys.is_none()
    }
}

/// What `directory` does not have of what was brought.
///
/// # Errors
/// What the authority has not signed: [`Error::Policy`], [`Error::RevocationList`],
/// [`Error::Recorded`]; or what is wrong with a file.
pub fn missing(directory: &Directory, brought: &Brought<'_>) -> Result<Missing, Error> {
    let anchor = directory.site.anchor();
    let read_policy = |text: &str| -> Result<Verified<SitePolicy>, Error> {
        anchor.verify_policy(&pem::single(text, pem::SITE_POLICY)?).map_err(Error::Policy)
    };
    let read_list = |text: &str| -> Result<Verified<RevocationList>, Error> {
        anchor.verify_revocation_list(&pem::single(text, pem::REVOCATION_LIST)?).map_err(Error::RevocationList)
    };
    let read_certificate = |text: &&str| -> Result<Verified<HostCertificate>, Error> {
        anchor.verify_whenever(&pem::single(text, pem::CERTIFICATE)?).map_err(Error::Recorded)
    };
    let own_version = policy(directory)?.map(|own| own.version());
    let own_list = directory.revocation_list()?.map(|own| own.issued_unix());
    let known: BTreeSet<String> = directory.issued().all()?.iter().map(|one| one.serial_hex()).collect();
    let certificates = brought.certificates.iter().map(read_certificate).collect::<Result<Vec<_>, _>>()?;
    let mut certificates: Vec<_> = certificates.into_iter().filter(|one| !known.contains(&one.serial_hex())).collect();
    certificates.sort_by_key(|one| (one.not_before_unix(), one.serial_hex()));
    certificates.dedup_by_key(|one| one.serial_hex());
    Ok(Missing {
        policy: brought.policy.map(read_policy).transpose()?.filter(|one| Some(one.version()) > own_version),
        revoked: brought.revoked.map(read_list).transpose()?.filter(|one| Some(one.issued_unix()) > own_list),
        certificates,
        site_keys: brought.identity.and_then(|identity| later_keys(directory, identity)),
    })
}

fn later_keys(directory: &Directory, identity: &HostIdentity) -> Option<Succession<SiteKey>> {
    let is_ours = directory.site.anchor().is_same_authority(identity.anchor());
    let own = directory.site.site_keys().newest().0.generation;
    (is_ours && identity.generation() > own).then(|| identity.site_keys().clone())
}

/// Takes `missing` into the site. What a crash leaves undone is done when it is called again.
///
/// # Errors
/// [`Error::SiteFull`], or what is wrong with a file or the repository.
pub fn recover(directory: &mut Directory, missing: &Missing, unix_s: u64) -> Result<(), Error> {
    let _lock = directory.lock()?;
    let folder = directory.path.join(ISSUED);
    if directory.issued().recent()?.len() + missing.certificates.len() > MAX_ISSUED {
        return Err(Error::SiteFull.with_file(&folder));
    }
    // First: nobody who is on it is entered as a host.
    if let Some(list) = &missing.revoked {
        let detail = format!("of {}, with {} certificates", utc_text(list.issued_unix()), list.len());
        acts::tell(directory, &[(Act::Recovered, "revocation list", &detail)], unix_s)?;
        let text = pem::encode(pem::REVOCATION_LIST, list.der());
        files::write(&directory.path.join(REVOKED), &text, Secrecy::Public, Overwrite::Force)?;
    }
    take_in(directory, &missing.certificates, unix_s)?;
    revoke_listed(directory, unix_s)?;
    if let Some(policy) = &missing.policy {
        acts::tell(directory, &[(Act::Recovered, &format!("policy version {}", policy.version()), "")], unix_s)?;
        let text = pem::encode(pem::SITE_POLICY, policy.bytes());
        files::write(&directory.path.join(POLICY), &text, Secrecy::Public, Overwrite::Force)?;
    }
    if let Some(keys) = &missing.site_keys {
        let about = format!("site key generation {}", keys.newest().0.generation);
        acts::tell(directory, &[(Act::Recovered, &about, "")], unix_s)?;
        files::write(&directory.path.join(SITE_KEY), &keys.to_pem(), Secrecy::Secret, Overwrite::Force)?;
        directory.site.share(keys.clone());
    }
    Ok(())
}

/// Enters certificates into record and repository, as issues do.
fn take_in(directory: &Directory, certificates: &[Verified<HostCertificate>], unix_s: u64) -> Result<(), Error> {
    if certificates.is_empty() {
        return Ok(());
    }
    let (store, list) = (directory.repository()?, directory.revocation_list()?);
    let recent = directory.issued().recent()?;
    // They are sorted by age, here as there.
    let mut newest: HashMap<&str, u64> = recent.iter().map(|one| (one.name(), one.not_before_unix())).collect();
    let folder = directory.path.join(ISSUED);
    for certificate in certificates {
        let entry = Entry::of(certificate);
        acts::tell_of_at(directory, Act::Recovered, &entry, unix_s)?;
        let is_listed = list.as_ref().is_some_and(|list| list.names(certificate));
        let before = newest.entry(certificate.name()).or_default();
        if *before <= certificate.not_before_unix() && !is_listed && !certificate.is_leased() {
            let subnets = store.by_name(certificate.name())?.map(|host| host.subnets).unwrap_or_default();
            if let Some(host) = as_new_host(certificate, &subnets) {
                store.add(&host, Sharing::Allowed, unix_s)?;
            }
            *before = certificate.not_before_unix();
        }
        let text = pem::encode(pem::CERTIFICATE, certificate.der());
        files::write(&folder.join(format!("{}.pem", entry.serial)), &text, Secrecy::Public, Overwrite::Force)?;
    }
    let _nobody_reads_it = fs::remove_file(folder.join(INDEX));
    directory.issued().index(&directory.list()?);
    Ok(())
}

/// The repository says of each host whose good certificates are all on the list that it is revoked.
fn revoke_listed(directory: &Directory, unix_s: u64) -> Result<(), Error> {
    let Some(list) = directory.revocation_list()? else { return Ok(()) };
    let recent = directory.issued().recent()?;
    let live: Vec<&Certificate> = recent.iter().filter(|one| one.not_after_unix() >= unix_s).collect();
    let names = |is_listed: bool| {
        let those = live.iter().filter(|one| list.names(one) == is_listed);
        those.map(|one| one.name()).collect::<BTreeSet<&str>>()
    };
    let store = directory.repository()?;
    for name in names(true).difference(&names(false)) {
        store.revoke(name)?;
    }
    Ok(())
}
