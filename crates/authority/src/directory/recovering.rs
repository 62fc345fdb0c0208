//! What a site that was restored takes back of what it did after the backup (record 0124). Hosts
//! have it: each its own certificate, and all the policy, the revocation list and the site keys.
//! What the authority has signed is believed whoever brings it.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use identity::certificate::{HostCertificate, utc_text};
use identity::limits::MAX_REVOKED;
use identity::policy::{Content, SitePolicy};
use identity::revocation::RevocationList;
use identity::site_key::SiteKey;
use identity::{HostIdentity, Succession, Verified, pem};

use super::issued::Certificate;
use super::repository_access;
use super::{Directory, Entry, INDEX, ISSUED, POLICY, REVOKED, SITE_KEY, Sharing, acts, as_new_host, policy};
use crate::Error;
use crate::audit::{self, Act, Deed, Kept};
use crate::files::{self, Overwrite, Secrecy};
use crate::limits::MAX_ISSUED;
use crate::repository::{HostEntry, Standing};

/// Entries of the record that are written at once: each write waits for the disk.
const TOLD_AT_ONCE: usize = 256;
/// The newest entries in which the restoration is looked for.
const ACTS_READ: usize = 10_000;

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
    /// A newer policy, or another one of the same version: hosts have it, and believe no other.
    pub policy: Option<Verified<SitePolicy>>,
    /// A list that names certificates which the site's own does not.
    pub revoked: Option<Verified<RevocationList>>,
    /// Certificates of no record, by age.
    pub certificates: Vec<Verified<HostCertificate>>,
    /// Site keys of a later generation, or others of the same.
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
pub fn missing(directory: &Directory, brought: &Brought<'_>, unix_s: u64) -> Result<Missing, Error> {
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
    let own = policy(directory)?;
    let is_missing = |one: &Verified<SitePolicy>| {
        own.as_ref().is_none_or(|own| one.version() >= own.version() && one.bytes() != own.bytes())
    };
    let all = directory.issued().all()?;
    let known: BTreeSet<String> = all.iter().map(|one| one.serial_hex()).collect();
    let certificates = brought.certificates.iter().map(read_certificate).collect::<Result<Vec<_>, _>>()?;
    // One that a DHCP server made is no part of the record.
    let is_new = |one: &Verified<HostCertificate>| !one.is_leased() && !known.contains(&one.serial_hex());
    let mut certificates: Vec<_> = certificates.into_iter().filter(is_new).collect();
    certificates.sort_by_key(|one| (one.not_before_unix(), one.serial_hex()));
    certificates.dedup_by_key(|one| one.serial_hex());
    let revoked = brought.revoked.map(read_list).transpose()?;
    let own_list = directory.revocation_list()?;
    let adds = |list: &Verified<RevocationList>| !added(list, own_list.as_deref(), &all, unix_s).is_empty();
    Ok(Missing {
        policy: brought.policy.map(read_policy).transpose()?.filter(is_missing),
        revoked: revoked.filter(adds),
        certificates,
        site_keys: brought.identity.and_then(|identity| later_keys(directory, identity)),
    })
}

/// The serial numbers that `list` has and `own` lacks, without those of certificates that are over:
/// newer lists leave them out.
fn added<'l>(
    list: &'l RevocationList,
    own: Option<&RevocationList>,
    all: &[Certificate],
    unix_s: u64,
) -> Vec<&'l [u8]> {
    let own: BTreeSet<&[u8]> = own.iter().flat_map(|own| own.serials()).collect();
    let over = over(all, unix_s);
    list.serials().filter(|serial| !own.contains(serial) && !over.contains(serial)).collect()
}

/// The serial numbers of certificates that are over.
fn over(all: &[Certificate], unix_s: u64) -> BTreeSet<&[u8]> {
    all.iter().filter(|one| one.not_after_unix() < unix_s).map(|one| one.serial()).collect()
}

fn later_keys(directory: &Directory, identity: &HostIdentity) -> Option<Succession<SiteKey>> {
    let is_ours = directory.site.anchor().is_same_authority(identity.anchor());
    let (own, theirs) = (directory.site.site_keys(), identity.site_keys());
    let (generation, later) = (own.newest().0.generation, theirs.newest().0.generation);
    let is_other = later == generation && theirs.to_pem() != own.to_pem();
    (is_ours && (later > generation || is_other)).then(|| theirs.clone())
}

/// Takes what is [missing](missing) into the site; what that was. What a crash leaves undone is done
/// when it is called again.
///
/// # Errors
/// As of [`missing`]; [`Error::SiteFull`], [`Error::TooManyRevoked`], or what is wrong with a file or
/// the repository.
pub fn recover(directory: &mut Directory, brought: &Brought<'_>, unix_s: u64) -> Result<Missing, Error> {
    let _lock = directory.lock()?;
    let missing = missing(directory, brought, unix_s)?;
    if directory.issued().recent()?.len() + missing.certificates.len() > MAX_ISSUED {
        return Err(Error::SiteFull.with_file(&directory.path.join(ISSUED)));
    }
    // First: nobody who is on it is entered as a host.
    missing.revoked.as_ref().map_or(Ok(()), |list| join(directory, list, unix_s))?;
    let decided = Decided::read(directory, &missing.certificates)?;
    take_in(directory, &decided, &missing.certificates, unix_s)?;
    revoke_listed(directory, &decided)?;
    list_revoked(directory, &decided, unix_s)?;
    missing.policy.as_ref().map_or(Ok(()), |policy| replace_policy(directory, policy, unix_s))?;
    if let Some(keys) = &missing.site_keys {
        let about = format!("site key generation {}", keys.newest().0.generation);
        acts::tell(directory, &[(Act::Recovered, &about, "")], unix_s)?;
        files::write(&directory.path.join(SITE_KEY), &keys.to_pem(), Secrecy::Secret, Overwrite::Force)?;
        directory.site.share(keys.clone());
    }
    Ok(missing)
}

/// Signs a list of what is on the site's own and on `list`, newer than both: the site may have
/// revoked somebody since it was restored.
fn join(directory: &Directory, list: &RevocationList, unix_s: u64) -> Result<(), Error> {
    let (own, all) = (directory.revocation_list()?, directory.issued().all()?);
    let over = over(&all, unix_s);
    let still = own.iter().flat_map(|own| own.serials()).filter(|serial| !over.contains(serial));
    let serials: Vec<&[u8]> = still.chain(added(list, own.as_deref(), &all, unix_s)).collect();
    if serials.len() > MAX_REVOKED {
        return Err(Error::TooManyRevoked);
    }
    let newest = own.iter().map(|own| own.issued_unix()).chain([list.issued_unix()]).max().unwrap_or_default();
    let text = directory.site.revocation_list(&serials, unix_s.max(newest.saturating_add(1)))?;
    let detail = format!("of {}, with {} certificates", utc_text(list.issued_unix()), list.len());
    acts::tell(directory, &[(Act::Recovered, "revocation list", &detail)], unix_s)?;
    files::write(&directory.path.join(REVOKED), &text, Secrecy::Public, Overwrite::Force)
}

/// Puts this policy into force. One of the site's own version is signed anew with the next: hosts
/// have either.
fn replace_policy(directory: &Directory, brought: &Verified<SitePolicy>, unix_s: u64) -> Result<(), Error> {
    let is_rival = policy(directory)?.is_some_and(|own| own.version() == brought.version());
    let version = brought.version() + u64::from(is_rival);
    let signed = match is_rival {
        true => &directory.site.policy(&Content { version, issued_unix: unix_s, ..brought.content().clone() })?,
        false => brought,
    };
    acts::tell(directory, &[(Act::Recovered, &format!("policy version {version}"), "")], unix_s)?;
    let text = pem::encode(pem::SITE_POLICY, signed.bytes());
    files::write(&directory.path.join(POLICY), &text, Secrecy::Public, Overwrite::Force)
}

/// Enters certificates into record and repository, as issues do.
fn take_in(
    directory: &Directory,
    decided: &Decided,
    certificates: &[Verified<HostCertificate>],
    unix_s: u64,
) -> Result<(), Error> {
    let folder = directory.path.join(ISSUED);
    for part in certificates.chunks(TOLD_AT_ONCE) {
        let entries: Vec<Entry> = part.iter().map(|one| Entry::of(one)).collect();
        let details: Vec<String> = entries.iter().map(acts::detail).collect();
        let deeds = entries.iter().zip(&details);
        let deeds: Vec<Deed<'_>> = deeds.map(|(entry, detail)| (Act::Recovered, &*entry.name, &**detail)).collect();
        acts::tell(directory, &deeds, unix_s)?;
        enter_hosts(directory, decided, part, unix_s)?;
        for (certificate, entry) in part.iter().zip(&entries) {
            let text = pem::encode(pem::CERTIFICATE, certificate.der());
            files::write(&folder.join(format!("{}.pem", entry.serial)), &text, Secrecy::Public, Overwrite::Force)?;
        }
    }
    if !certificates.is_empty() {
        let _nobody_reads_it = fs::remove_file(folder.join(INDEX));
        directory.issued().index(&directory.list()?);
    }
    Ok(())
}

/// Enters the hosts of `certificates` into the repository, unless it knows better: a cluster outlives
/// the site's directory.
fn enter_hosts(
    directory: &Directory,
    decided: &Decided,
    certificates: &[Verified<HostCertificate>],
    unix_s: u64,
) -> Result<(), Error> {
    let (store, list) = (directory.repository()?, directory.revocation_list()?);
    let recent = directory.issued().recent()?;
    // They are sorted by age, here as there.
    let mut newest: HashMap<&str, u64> = recent.iter().map(|one| (one.name(), one.not_before_unix())).collect();
    for certificate in certificates {
        let is_listed = list.as_ref().is_some_and(|list| list.names(certificate));
        let before = newest.entry(certificate.name()).or_default();
        if *before > certificate.not_before_unix() || is_listed {
            continue;
        }
        *before = certificate.not_before_unix();
        let known = store.by_name(certificate.name())?;
        let knows_better =
            |host: &HostEntry| host.not_before_unix >= certificate.not_before_unix() || decided.stays_revoked(host);
        if known.as_ref().is_some_and(knows_better) {
            continue;
        }
        let subnets = known.map(|host| host.subnets).unwrap_or_default();
        if let Some(host) = as_new_host(certificate, &subnets) {
            store.add(&host, Sharing::Allowed, unix_s)?;
        }
    }
    Ok(())
}

/// What was decided since the site was restored, which nothing that is brought changes.
struct Decided {
    /// Whether the repository is in a cluster, which has lost nothing.
    in_cluster: bool,
    /// Hosts that were revoked since, or whose key was; nothing where the record of that is in doubt.
    revoked: Option<BTreeSet<String>>,
    /// Those, and hosts of which certificates were or are brought.
    touched: BTreeSet<String>,
}

impl Decided {
    /// By the record of what was done; the caller has the lock.
    fn read(directory: &Directory, brought: &[Verified<HostCertificate>]) -> Result<Decided, Error> {
        let acts = audit::page(&directory.path, directory.site.anchor(), None, ACTS_READ)?;
        let (acts, is_in_doubt) = acts.map_or_else(|_| (Vec::new(), true), |acts| (acts, false));
        let is = |kept: &Kept, act: Act| kept.entry.act == act.word();
        let begin = acts.iter().rposition(|kept| is(kept, Act::Restored)).unwrap_or_default();
        let about = |which: &[Act]| {
            let those = acts[begin..].iter().filter(|kept| which.iter().any(|act| is(kept, *act)));
            those.map(|kept| kept.entry.about.clone()).collect::<BTreeSet<String>>()
        };
        let mut touched = about(&[Act::Revoked, Act::Rekeyed, Act::Recovered]);
        touched.extend(brought.iter().map(|one| one.name().to_owned()));
        let revoked = (!is_in_doubt).then(|| about(&[Act::Revoked, Act::Rekeyed]));
        Ok(Decided { in_cluster: repository_access(&directory.path)?.is_some(), revoked, touched })
    }

    /// Whether a host is revoked by what was not lost. One that was revoked before the backup may have
    /// been let in again after it.
    fn stays_revoked(&self, host: &HostEntry) -> bool {
        let is_decided = self.in_cluster || self.revoked.as_ref().is_none_or(|names| names.contains(&host.name));
        host.standing == Standing::Revoked && is_decided
    }
}

/// The repository says of each host whose newest certificate is on the list that it is revoked, as
/// long as it knows of none that is newer. One that is over counts too: it may come back late. A
/// cluster knows it already.
fn revoke_listed(directory: &Directory, decided: &Decided) -> Result<(), Error> {
    let Some(list) = directory.revocation_list()?.filter(|_| !decided.in_cluster) else { return Ok(()) };
    let recent = directory.issued().recent()?;
    let store = directory.repository()?;
    // They are sorted by name and then by age.
    let newest = recent.chunk_by(|one, other| one.name() == other.name()).filter_map(<[_]>::last);
    for certificate in newest.filter(|one| list.names(one)) {
        let known = store.by_name(certificate.name())?;
        if known.is_some_and(|host| host.not_before_unix <= certificate.not_before_unix()) {
            store.revoke(certificate.name())?;
        }
    }
    Ok(())
}

/// Takes back what was brought of a host that stays revoked here.
fn list_revoked(directory: &Directory, decided: &Decided, unix_s: u64) -> Result<(), Error> {
    let (store, list) = (directory.repository()?, directory.revocation_list()?);
    let recent = directory.issued().recent()?;
    let is_good =
        |one: &&Certificate| one.not_after_unix() >= unix_s && !list.as_ref().is_some_and(|list| list.names(one));
    let good: BTreeSet<&str> = recent.iter().filter(is_good).map(|one| one.name()).collect();
    for name in decided.touched.iter().filter(|name| good.contains(name.as_str())) {
        if store.by_name(name)?.is_some_and(|host| decided.stays_revoked(&host)) {
            acts::tell(directory, &[(Act::Recovered, name, "taken back again: it is revoked here")], unix_s)?;
            directory.take_back(name, unix_s)?;
        }
    }
    Ok(())
}
