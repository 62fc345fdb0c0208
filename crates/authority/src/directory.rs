//! A site in a directory.
//!
//! ```text
//! ca.crt.pem     the authority's certificate
//! ca.first.pem   its first certificate, once that was replaced
//! ca.key.pem     its key, or the URI of the one that is in a token (0600)
//! site.key.pem   the site keys in force (0600)
//! request.key.pem  the masters of all request keys (0600)
//! dhcp.key.pem   the master of all DHCP keys of the link layer (0600)
//! hosts.db       the repository that key distributors answer from (0600)
//! etcd.json      in its place: the cluster of etcd that keeps the repository, and how it is reached
//! revoked.crl.pem  the certificates that it has taken back, signed; hosts are given it
//! audit.*        what was done with it, each entry signed and bound to the one before (0600)
//! refused.*      orders that its operators were refused, counted (0600)
//! policy.pem     what it decides for all hosts, signed; hosts are given it
//! operators.json who may give its service orders, and when each did last (0600)
//! issued/        one certificate a file, named by serial number, and index.tsv, for people to read
//! ```
//! The certificates are the record. The index is written from them, has a line more with every issue,
//! and nothing reads it.

mod acts;
mod backup;
mod cluster;
mod enrolling;
mod founding;
mod issued;
mod operators;
mod policy;
mod record;
mod recovering;
mod renewing;
mod revoking;
mod serving;
mod sharing;
mod stamp;
mod succession;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use identity::certificate::{CertificateRequest, HostCertificate, Role, Verified, utc_text};
use identity::dhcp_key::{DhcpKey, DhcpMaster, client_id};
use identity::distributor::RequestMaster;
use identity::limits::{MAX_DHCP_SERVERS, MAX_DISTRIBUTORS};
use identity::site_key::SiteKey;
use identity::{Profile, Succession};
use wire::MacAddress;

use crate::audit::Act;
pub use crate::enrolment::number_text;
use crate::files::{self, Overwrite, Secrecy, Staged, sync_directory};
use crate::limits::MAX_ISSUED;
pub use crate::repository::Sharing;
use crate::repository::etcd::Access;
use crate::repository::{NewHost, SqliteStore, Standing, Store, Subnet};
use crate::site::{ForDhcp, ForSarp};
use crate::{Bundle, Error, Random, Request, Site, random_bytes};

pub use acts::{acting, caching, note};
pub use backup::{Restored, restore};
pub use cluster::repository_access;
pub use enrolling::{Application, AskedFor, Invitation};
pub use founding::{init_in_token, token_of};
pub use issued::Cache;
use issued::{Certificate, Issued};
pub use operators::{
    KnownOperator, add_operator, add_operator_by_request, begin_order, put_down_refused, remove_operator,
};
pub use policy::{change_policy, policy, policy_file};
use record::Lock;
pub use record::Record;
pub use recovering::{Brought, Missing, missing, recover};
pub use renewing::{Given, Renewed, Terms, check_may_be_late};
pub use revoking::{Revoked, is_revoked};
pub use serving::apply;
pub use sharing::{Change, Pace};
pub use succession::renew_authority;

const CERTIFICATE: &str = "ca.crt.pem";
const KEY: &str = "ca.key.pem";
const SITE_KEY: &str = "site.key.pem";
const REQUEST_MASTER: &str = "request.key.pem";
const DHCP_MASTER: &str = "dhcp.key.pem";
const REPOSITORY: &str = "hosts.db";
const SHARED: &str = "etcd.json";
const REVOKED: &str = "revoked.crl.pem";
const POLICY: &str = "policy.pem";
const OPERATORS: &str = "operators.json";
const MOVED: &str = "hosts.db.moved";
const ISSUED: &str = "issued";
const RETIRED: &str = "retired";
const INDEX: &str = "index.tsv";
/// Stands in the record for who did not say who he is.
const NOBODY_NAMED: &str = "-";
const INDEX_HEADER: &str = "serial\tname\trole\tmac\taddresses\tnot_before\tnot_after\n";

/// A site directory that was opened.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    site: Site,
    /// Who acts, for the record.
    by: String,
    cache: Cache,
}

/// One certificate that the site has issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Serial number, in hexadecimal digits.
    pub serial: String,
    /// Name of the host.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its IPv4 addresses, then its IPv6 addresses.
    pub addresses: Vec<IpAddr>,
    /// First second of its period, in Unix seconds.
    pub not_before_unix: u64,
    /// Last second of its period, in Unix seconds.
    pub not_after_unix: u64,
    /// Whether the site has taken it back.
    pub revoked: bool,
}

impl Entry {
    fn of(certificate: &HostCertificate) -> Self {
        Entry {
            serial: certificate.serial_hex(),
            name: certificate.name().to_owned(),
            role: certificate.role(),
            mac: certificate.mac(),
            addresses: certificate.names().all_addresses(),
            not_before_unix: certificate.not_before_unix(),
            not_after_unix: certificate.not_after_unix(),
            revoked: false,
        }
    }

    /// Whether the certificate is neither over nor taken back.
    #[must_use]
    pub fn is_live(&self, unix_s: u64) -> bool {
        self.not_after_unix >= unix_s && !self.revoked
    }

    fn index_line(&self) -> String {
        let addresses: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        let Entry { serial, name, role, mac, .. } = self;
        let (from, until) = (utc_text(self.not_before_unix), utc_text(self.not_after_unix));
        format!("{serial}\t{name}\t{role}\t{mac}\t{}\t{from}\t{until}\n", addresses.join(","))
    }
}

/// How the result of an issue is stored.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// Where the host's file goes.
    pub output: &'a Path,
    /// Whether a file there may be replaced.
    pub overwrite: Overwrite,
    /// Whether addresses may have several holders.
    pub sharing: Sharing,
}

impl Delivery<'_> {
    fn stage(&self, text: &str) -> Result<Staged, Error> {
        Staged::new(self.output, text, Secrecy::Secret, self.overwrite)
    }
}

/// What goes to a host that can open it, and to nobody else.
fn sealed(receiver: &[u8; identity::sealing::KEY_LEN], bundle: &Bundle) -> Result<String, Error> {
    let answer = identity::renewal::seal(receiver, &bundle.to_pem())?;
    if answer.len() as u64 > crate::limits::MAX_FILE_LEN {
        return Err(Error::BundleTooLong);
    }
    Ok(answer)
}

impl Directory {
    /// Makes a new site in `path`, which must be missing or empty. An existing site is never replaced, not even by force:
    /// that would lock out every host.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::BadName`], [`Error::BadPeriod`], or what the operating system says.
    pub fn init(
        path: &Path,
        name: &str,
        validity: Duration,
        profile: Profile,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Self, Error> {
        founding::found(path, Site::create_for(name, validity, profile, random, unix_s)?, random, unix_s)
    }

    /// Opens the site in `path`.
    ///
    /// # Errors
    /// [`Error::NoSite`], or what is wrong with which of its files.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let [certificate, key, site_key] = [CERTIFICATE, KEY, SITE_KEY].map(|name| path.join(name));
        if !certificate.exists() {
            return Err(Error::NoSite.with_file(path));
        }
        let site_key_text = files::read(&site_key)?;
        let parsed =
            Succession::<SiteKey>::from_pem(&site_key_text).map_err(|error| Error::from(error).with_file(&site_key))?;
        let site =
            Site::from_pem(&files::read(&certificate)?, &files::read(&key)?, parsed).map_err(|error| match error {
                Error::Authority(_) | Error::Pem(_) => error.with_file(&certificate),
                Error::Token(_) => error,
                _ => error.with_file(&key),
            })?;
        Ok(Directory { path: path.to_owned(), site, by: NOBODY_NAMED.to_owned(), cache: Cache::default() })
    }

    /// The authority itself.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Issues for a request that a host made, and writes the bundle for it (0600): sealed for the
    /// host, if the request names what to seal to (CLL paper, section 6.2), else in clear.
    ///
    /// # Errors
    /// As [`Site::issue`], but in a site of the paper profile only without a key to seal to;
    /// [`Error::BundleTooLong`]; [`Error::MacTaken`], [`Error::AddressTaken`], [`Error::SiteFull`];
    /// or what the operating system says. After an error nothing was handed out.
    pub fn issue(
        &self,
        request: &Request,
        proved: &CertificateRequest,
        delivery: &Delivery<'_>,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Entry, Error> {
        let lock = self.lock()?;
        let entries = self.admit_to_file(&lock, request, delivery, unix_s)?;
        let bundle = match proved.answer_key() {
            Some(_) => self.site.issue_to_be_sealed(request, proved, random, unix_s)?,
            None => self.site.issue(request, proved, random, unix_s)?,
        };
        let (bundle, renewal) = self.enter(&lock, bundle, request, delivery.sharing, random, unix_s)?;
        let output = match proved.answer_key() {
            Some(receiver) => delivery.stage(&sealed(&receiver, &bundle)?)?,
            None => delivery.stage(&bundle.to_pem())?,
        };
        self.record((entries, Act::Issued), &bundle, renewal, || output.commit(), &lock)
    }

    /// Makes key and certificate in one step and writes the identity file (0600). The site keeps no copy of the key.
    ///
    /// # Errors
    /// As [`issue`](Directory::issue).
    pub fn issue_identity(
        &self,
        request: &Request,
        delivery: &Delivery<'_>,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Entry, Error> {
        let lock = self.lock()?;
        let entries = self.admit_to_file(&lock, request, delivery, unix_s)?;
        let (bundle, key_pem) = self.site.issue_with_key(request, random, unix_s)?;
        let (bundle, renewal) = self.enter(&lock, bundle, request, delivery.sharing, random, unix_s)?;
        let output = delivery.stage(&bundle.join_key(&key_pem)?)?;
        self.record((entries, Act::Issued), &bundle, renewal, || output.commit(), &lock)
    }

    /// The certificates of all hosts, by name and then by age, without what is long over;
    /// [`list_all`](Directory::list_all) has that as well.
    ///
    /// # Errors
    /// A file that does not hold a certificate of this site, or what the operating system says.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        Record::from(self).list()
    }

    /// Every certificate that the site has issued, by name and then by age.
    ///
    /// # Errors
    /// As [`list`](Directory::list).
    pub fn list_all(&self) -> Result<Vec<Entry>, Error> {
        Record::from(self).list_all()
    }

    /// The repository that the site's key distributors answer from: in a cluster if one is written down, else in a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn repository(&self) -> Result<Box<dyn Store>, Error> {
        if let Some(access) = repository_access(&self.path)? {
            return Ok(Box::new(self.cache.cluster(self, &access)?));
        }
        let path = self.path.join(REPOSITORY);
        let store = if path.exists() { SqliteStore::open(&path) } else { SqliteStore::create(&path) };
        Ok(Box::new(store.map_err(|error| Error::Repository(error).with_file(&path))?))
    }

    /// Whether the repository can be reached; one in a file can.
    ///
    /// # Errors
    /// The cluster cannot be reached or has no repository of this site.
    pub fn probe_repository(&self) -> Result<(), Error> {
        match repository_access(&self.path)? {
            Some(access) => Ok(self.cache.cluster(self, &access)?.probe()?),
            None => Ok(()),
        }
    }

    /// Moves the repository from its file into a cluster and works with that from now on; gives how many hosts it has. The
    /// file gets another name, so that no distributor answers from it by mistake.
    ///
    /// # Errors
    /// [`Error::Shared`], or what is wrong with file or cluster. The site then works with the file as before.
    pub fn import_repository(&self, access: &Access) -> Result<usize, Error> {
        let _lock = self.lock()?;
        let [setting, file, moved] = [SHARED, REPOSITORY, MOVED].map(|name| self.path.join(name));
        if setting.exists() {
            return Err(Error::Shared.with_file(&setting));
        }
        if moved.exists() {
            return Err(Error::Exists.with_file(&moved));
        }
        let cluster = self.cache.cluster(self, access)?;
        let store = SqliteStore::open(&file)?;
        let contents = store.contents()?;
        let setting = self.stage_access(access, Overwrite::Never)?;
        cluster.create(&contents)?;
        setting.commit()?;
        // The last to close it also takes its log away.
        drop(store);
        fs::rename(&file, &moved).map_err(|error| Error::from(error).with_file(&file))?;
        sync_directory(&self.path).map_err(|error| Error::from(error).with_file(&self.path))?;
        Ok(contents.hosts.len())
    }

    /// Works from now on with the repository that is in a cluster already, or reaches it in another way.
    ///
    /// # Errors
    /// The cluster cannot be reached or has no repository of this site; or what the operating system says.
    pub fn use_repository(&self, access: &Access) -> Result<(), Error> {
        let _lock = self.lock()?;
        self.cache.cluster(self, access)?.probe()?;
        self.stage_access(access, Overwrite::Force)?.commit()
    }

    fn stage_access(&self, access: &Access, overwrite: Overwrite) -> Result<Staged, Error> {
        let path = self.path.join(SHARED);
        let text = serde_json::to_string_pretty(access).map_err(|error| Error::BadSetting(error.to_string()))?;
        Staged::new(&path, &format!("{text}\n"), Secrecy::Public, overwrite)
    }

    fn issued(&self) -> Issued<'_> {
        Issued { site: &self.path, anchor: self.site.anchor(), cache: &self.cache }
    }

    /// As [`admit`](Directory::admit), and whether the host's file can be written.
    fn admit_to_file(
        &self,
        lock: &Lock,
        request: &Request,
        delivery: &Delivery<'_>,
        unix_s: u64,
    ) -> Result<Vec<Entry>, Error> {
        let entries = self.admit(lock, request, delivery.sharing, unix_s)?;
        // The repository hears of a host only if its files can be handed out.
        drop(delivery.stage("")?);
        Ok(entries)
    }

    /// Whether the site has room for `request`; returns what it has issued so far.
    fn admit(&self, lock: &Lock, request: &Request, sharing: Sharing, unix_s: u64) -> Result<Vec<Entry>, Error> {
        let mut entries = record::entries(lock.recent(&self.issued())?, self.revocation_list()?.as_ref());
        // Before anything is handed out: what fails here has changed nothing that anybody sees.
        self.issued().retire(&issued::take_retired(&mut entries, unix_s))?;
        if entries.len() == MAX_ISSUED {
            return Err(Error::SiteFull.with_file(&self.path.join(ISSUED)));
        }
        if sharing == Sharing::Refused {
            check_holders(&entries, request, unix_s)?;
        }
        Ok(entries)
    }

    /// Gives the host a number in the repository and its bundle what S-ARP and DHCP need. A host that has one already keeps it, and
    /// its entry is renewed only when its files are about to be handed out: until then it works with its old key. A key that
    /// S-ARP does not know is left out.
    fn enter(
        &self,
        lock: &Lock,
        bundle: Bundle,
        request: &Request,
        sharing: Sharing,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<(Bundle, Option<Renewal>), Error> {
        let certificate = bundle.certificate().clone();
        let dhcp = self.for_dhcp(&certificate, request, random)?;
        let Some(host) = as_new_host(&certificate, request.subnets()) else {
            return Ok((self.site.bundle(certificate, None, dhcp)?.with_second_key_of(bundle), None));
        };
        let store = self.repository()?;
        let number = match store.by_name(&host.name)? {
            Some(known) => known.number,
            None => store.add(&host, sharing, unix_s)?,
        };
        let sarp = self.for_sarp(lock, &certificate, number, &*store, random, unix_s)?;
        let bundle = self.site.bundle(certificate, Some(sarp), dhcp)?.with_second_key_of(bundle);
        Ok((bundle, Some(Renewal { store, host, sharing, unix_s })))
    }

    /// What the host of this number needs for S-ARP.
    fn for_sarp(
        &self,
        lock: &Lock,
        certificate: &HostCertificate,
        number: u64,
        store: &dyn Store,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<ForSarp, Error> {
        let masters = self.request_masters(random)?;
        let (name, own_role) = (certificate.name(), certificate.role());
        let others = |role| self.others(lock, role, store, name, own_role, unix_s);
        Ok(ForSarp {
            request_keys: masters.map(|master| master.key_of(number)),
            distributors: others(Role::Distributor)?,
            dhcp_servers: others(Role::DhcpServer)?,
            masters: (own_role == Role::Distributor).then_some(masters),
        })
    }

    /// The site's secrets for request keys; a site of an earlier version gets one now.
    fn request_masters(&self, random: &mut Random<'_>) -> Result<Succession<RequestMaster>, Error> {
        let path = self.path.join(REQUEST_MASTER);
        if !path.exists() {
            let master = RequestMaster::from_bytes(*random_bytes(random));
            files::write(&path, &master.to_pem(), Secrecy::Secret, Overwrite::Never)?;
            return Ok(master.into());
        }
        Succession::from_pem(&files::read(&path)?).map_err(|error| Error::from(error).with_file(&path))
    }

    /// What a host needs for DHCP under the link layer: its key if its certificate names no address, and a server what it serves
    /// its clients with.
    fn for_dhcp(
        &self,
        certificate: &HostCertificate,
        request: &Request,
        random: &mut Random<'_>,
    ) -> Result<ForDhcp, Error> {
        let keys = self.dhcp_keys(certificate, random)?;
        if request.served().is_empty() {
            return Ok(ForDhcp { keys, ..ForDhcp::default() });
        }
        let authority = self.site.lease_authority(certificate, request.served(), random)?;
        Ok(ForDhcp { keys, masters: Some(self.dhcp_masters(random)?), authority: Some(authority) })
    }

    /// What a host that gets its address by DHCP proves itself with.
    fn dhcp_keys(
        &self,
        certificate: &HostCertificate,
        random: &mut Random<'_>,
    ) -> Result<Option<Succession<DhcpKey>>, Error> {
        if !certificate.is_base() || certificate.role() != Role::Host {
            return Ok(None);
        }
        let client = client_id(certificate);
        Ok(Some(self.dhcp_masters(random)?.map(|master| master.key_of(client))))
    }

    /// The site's secrets for DHCP keys; a site of an earlier version gets one now.
    fn dhcp_masters(&self, random: &mut Random<'_>) -> Result<Succession<DhcpMaster>, Error> {
        let path = self.path.join(DHCP_MASTER);
        if !path.exists() {
            let master = DhcpMaster::from_bytes(*random_bytes(random));
            files::write(&path, &master.to_pem(), Secrecy::Secret, Overwrite::Never)?;
            return Ok(master.into());
        }
        Succession::from_pem(&files::read(&path)?).map_err(|error| Error::from(error).with_file(&path))
    }

    /// The certificates of the hosts of `role` but the one called `own_name`, which has `own_role`:
    /// of each host the newest, if that still has the role, its period is not over, and the host is
    /// not revoked.
    fn others(
        &self,
        lock: &Lock,
        role: Role,
        store: &dyn Store,
        own_name: &str,
        own_role: Role,
        unix_s: u64,
    ) -> Result<Vec<Verified<HostCertificate>>, Error> {
        let recent = lock.recent(&self.issued())?;
        // They are sorted by name and then by age: the last of a name is its newest.
        let newest = recent.chunk_by(|one, other| one.name() == other.name()).filter_map(<[_]>::last);
        let may_serve =
            |one: &&Certificate| one.role() == role && one.not_after_unix() >= unix_s && one.name() != own_name;
        let mut found = Vec::new();
        for certificate in newest.filter(may_serve) {
            if store.by_name(certificate.name())?.is_some_and(|entry| entry.standing == Standing::Good) {
                found.push(Verified::clone(certificate));
            }
        }
        let in_all = found.len() + usize::from(own_role == role);
        match role {
            Role::DhcpServer if in_all > MAX_DHCP_SERVERS => Err(Error::TooManyDhcpServers),
            Role::Distributor if in_all > MAX_DISTRIBUTORS => Err(Error::TooManyDistributors),
            _ => Ok(found),
        }
    }

    /// Stores record and index, and hands the bundle out. The certificate is staged before anything
    /// changes, and that it is issued is told before. The record comes first, so that no host ever
    /// holds a certificate that the site does not know of.
    fn record(
        &self,
        (mut entries, act): (Vec<Entry>, Act),
        bundle: &Bundle,
        renewal: Option<Renewal>,
        hand_out: impl FnOnce() -> Result<(), Error>,
        _lock: &Lock,
    ) -> Result<Entry, Error> {
        let entry = Entry::of(bundle.certificate());
        entries.push(entry.clone());
        let record_path = self.path.join(ISSUED).join(format!("{}.pem", entry.serial));
        let record = Staged::new(&record_path, &bundle.certificate_pem(), Secrecy::Public, Overwrite::Never)?;
        acts::tell_of(self, act, &entry)?;
        if let Some(renewal) = renewal {
            renewal.store.add(&renewal.host, renewal.sharing, renewal.unix_s)?;
        }
        record.commit()?;
        hand_out()?;
        self.issued().index(&entries);
        Ok(entry)
    }

    /// Two managers at once would each miss what the other is about to record.
    fn lock(&self) -> Result<Lock, Error> {
        record::lock(&self.path)
    }
}

/// What is written to the repository when a host's files are ready.
struct Renewal {
    store: Box<dyn Store>,
    host: NewHost,
    sharing: Sharing,
    unix_s: u64,
}

/// The host as the repository keeps it; none if S-ARP does not know its kind of key.
fn as_new_host(certificate: &HostCertificate, subnets: &[Subnet]) -> Option<NewHost> {
    let (algorithm, key) = certificate.record_key()?;
    Some(NewHost {
        name: certificate.name().to_owned(),
        role: certificate.role(),
        mac: Some(certificate.mac()),
        addresses: certificate.addresses().to_vec(),
        algorithm,
        key: key.to_vec(),
        not_before_unix: certificate.not_before_unix(),
        not_after_unix: certificate.not_after_unix(),
        subnets: subnets.to_vec(),
    })
}

fn check_holders(entries: &[Entry], request: &Request, unix_s: u64) -> Result<(), Error> {
    let others = entries.iter().filter(|entry| entry.is_live(unix_s) && entry.name != request.name());
    for other in others {
        let holder = || other.name.clone();
        if other.mac == request.names().mac() {
            return Err(Error::MacTaken { mac: other.mac, holder: holder() });
        }
        let wanted = request.names().all_addresses();
        if let Some(address) = wanted.into_iter().find(|address| other.addresses.contains(address)) {
            return Err(Error::AddressTaken { address, holder: holder() });
        }
    }
    Ok(())
}
