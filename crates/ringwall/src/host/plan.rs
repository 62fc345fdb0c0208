//! What is going to guard the interface: everything that files decide, read and checked before the interface is touched.

use std::path::Path;
use std::sync::Arc;

use bump::Now;
use dhcp::{client, server};
use identity::certificate::{HostCertificate, Role, Verified};
use identity::distributor::{DistributorKey, RequestKey};
use identity::{HostIdentity, Profile, pem};
use sarp::akd::{Akd, Lookup, NoRecords, Records};

use super::expiry::Expiry;
use super::known_hosts::{KnownHosts, SarpSide};
use super::progress::Progress;
use super::refresh::Refresh;
use super::signed::Signed;
use crate::akd::Repository;
use crate::config::{self, Config, Keeper, Mode};
use crate::failure::Failure;
use crate::monitor::Disk;
use crate::protocol::Distributor;

const ENROL: &str = "enrol this host (`ringwall site issue`, `ringwall host enroll`) or correct host.identity";

/// What a daemon is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// To guard this host.
    Host,
    /// To guard this host and to distribute the site's keys from it.
    Distributor,
}

/// What is going to guard the interface.
pub(super) enum Plan {
    Null,
    Shield(Box<shield::ipsec::Settings>),
    Cll(Box<Sealing>),
    Sarp(Box<SignedArp>),
}

/// All that the link layer needs beside the configuration.
pub(super) struct Sealing {
    pub(super) identity: Arc<HostIdentity>,
    pub(super) signed: Signed,
    pub(super) progress: Progress,
    pub(super) expiry: Expiry,
}

/// All that S-ARP needs.
pub(super) struct SignedArp {
    pub(super) identity: Arc<HostIdentity>,
    pub(super) settings: sarp::Settings,
    pub(super) distributors: Vec<Distributor>,
    pub(super) akd: Option<Akd>,
    pub(super) records: Arc<dyn Records + Send + Sync>,
    pub(super) side: SarpSide,
}

impl Plan {
    /// Reads all files that `config` names.
    pub(super) fn make(file: &Path, config: &Config, duty: Duty, now: Now, disk: &Disk) -> Result<Plan, Failure> {
        check_duty(file, config, duty)?;
        match config.host.mode {
            Mode::Null => Ok(Plan::Null),
            Mode::Shield => crate::shield::settings(config, disk).map(|settings| Plan::Shield(Box::new(settings))),
            Mode::Cll => {
                let identity = load_identity(config, now, disk)?;
                // What is wrong with it must show before the interface is touched; the wire is not known yet.
                super::leases::settings(config, &identity, config.cll.ipv6, 0)?;
                let signed = Signed::open(file, config, &identity, now, disk)?;
                let sealing = Sealing {
                    progress: Progress::open(file, signed.rules().policy.clone(), disk)?,
                    signed,
                    expiry: Expiry::new(file, config, &identity)?,
                    identity,
                };
                Ok(Plan::Cll(Box::new(sealing)))
            }
            Mode::Sarp => {
                let identity = load_identity(config, now, disk)?;
                SignedArp::make(file, config, identity, now, disk).map(|sarp| Plan::Sarp(Box::new(sarp)))
            }
        }
    }

    pub(super) fn identity(&self) -> Option<&Arc<HostIdentity>> {
        match self {
            Plan::Null | Plan::Shield(_) => None,
            Plan::Cll(sealing) => Some(&sealing.identity),
            Plan::Sarp(sarp) => Some(&sarp.identity),
        }
    }
}

fn check_duty(file: &Path, config: &Config, duty: Duty) -> Result<(), Failure> {
    match (duty, &config.akd) {
        (Duty::Host, Some(_)) => {
            let remedy = "start it with `ringwall akd run`, or remove the section";
            Err(Failure::file(file, "[akd] makes this host a key distributor", remedy))
        }
        (Duty::Distributor, None) => {
            let remedy = "add it with `repository = \"/etc/ringwall/site/hosts.db\"`, or with `etcd`";
            Err(Failure::file(file, "section [akd] is missing", remedy))
        }
        _ => Ok(()),
    }
}

pub(super) fn load_identity(config: &Config, now: Now, disk: &Disk) -> Result<Arc<HostIdentity>, Failure> {
    let file = &config.host.identity;
    let read = disk.read(file).map_err(|error| Failure::file(file, error, ENROL))?;
    let identity = HostIdentity::from_pem(&read.text).map_err(|error| Failure::file(file, error, ENROL))?;
    check_profile(config, &identity)?;
    // Without a believable clock nobody can say that a certificate is over (never need a clock before first contact).
    // A clock that is behind the certificate's first day is taken for that day: a host must reach its time server.
    if let Some(unix_s) = believable_unix_s(now) {
        let unix_s = unix_s.max(identity.certificate().not_before_unix());
        let renew = "have the authority issue a new certificate (`ringwall site issue`)";
        identity.check_validity(unix_s).map_err(|refusal| Failure::file(file, refusal, renew))?;
    }
    Ok(Arc::new(identity))
}

/// Keys of the paper profile are forged easily, so nobody works with them who did not say so.
fn check_profile(config: &Config, identity: &HostIdentity) -> Result<(), Failure> {
    let (wanted, found) = (config.host.profile.of_keys(), identity.profile());
    let lacks_rsa = config.host.mode == Mode::Cll && !identity.certificate().signs_as_the_cll_paper();
    let (what, remedy) = match found {
        Profile::Paper if wanted == found && lacks_rsa => (
            "mode = \"cll\" of the paper profile signs with RSA, and it holds a DSA key",
            "have the authority issue it with `ringwall site issue --rsa-bits 1024`",
        ),
        _ if wanted == found => return Ok(()),
        Profile::Paper => (
            "its site is of the paper profile, which is NOT for real use (the papers' own algorithms)",
            "enrol in a site of the modern profile, or set profile = \"paper\" for a measurement",
        ),
        Profile::Modern => (
            "profile = \"paper\", but its site is of the modern profile",
            "use profile = \"modern\", or found a site with `ringwall site init --profile paper`",
        ),
    };
    Err(Failure::file(&config.host.identity, what, remedy))
}

fn believable_unix_s(now: Now) -> Option<u64> {
    now.trusted_unix_ms().map(|unix_ms| unix_ms / 1000)
}

impl SignedArp {
    fn make(
        file: &Path,
        config: &Config,
        identity: Arc<HostIdentity>,
        now: Now,
        disk: &Disk,
    ) -> Result<SignedArp, Failure> {
        let lacks = |what: &str, remedy: &str| Failure::file(&config.host.identity, what, remedy);
        let again = "have the authority issue the identity again (`ringwall site issue`)";
        let certificate = identity.certificate();
        if certificate.addresses().is_empty() && !config.dhcp.client {
            let remedy = "set dhcp.client if it is to get one, or have the authority issue the identity with --ip";
            return Err(lacks("the certificate names no IP address, so there is nothing to speak for", remedy));
        }
        if certificate.record_key().is_none() {
            return Err(lacks(
                "S-ARP knows no RSA keys",
                "enrol with an Ed25519 or ECDSA P-256 key, in a paper site with a DSA key",
            ));
        }
        let refresh = Refresh::open(config, &identity, disk)?;
        let known = KnownHosts::open(file, config, &identity, now, disk)?;
        let request_keys = identity.request_keys().cloned();
        let request_keys = request_keys.ok_or_else(|| lacks("it holds no RINGWALL REQUEST KEY", again))?;
        let named = distributors(config, &identity, now)?;
        let settings = sarp::Settings {
            dhcp_client: dhcp_client(config, &identity, request_keys.newest().1.host())?,
            dhcp_server: dhcp_server(file, config, &identity)?,
            key: refresh.signing_key()?,
            mac: certificate.mac(),
            addresses: certificate.addresses().to_vec(),
            distributors: named.iter().filter_map(as_setting).collect(),
            request_keys,
            known_hosts: known.hosts().to_vec(),
            window: config.sarp.window(),
            sign_requests: config.sarp.sign_requests,
            weaken: config.sarp_weaken(file)?,
        };
        let (akd, records) = distribute(config, &identity)?;
        let distributors = named.iter().map(in_status).collect();
        let side = SarpSide { refresh, known };
        Ok(SignedArp { identity, settings, distributors, akd, records, side })
    }
}

/// What a DHCP client of this host works with.
fn dhcp_client(config: &Config, identity: &HostIdentity, host: u64) -> Result<Option<client::Settings>, Failure> {
    if !config.dhcp.client {
        return Ok(None);
    }
    let servers = identity.dhcp_servers().to_vec();
    if servers.is_empty() {
        let remedy = "issue one with `ringwall site issue --role dhcp`, then this host's identity again";
        return Err(Failure::file(&config.host.identity, "it names no DHCP server that could be believed", remedy));
    }
    let certificate = identity.certificate();
    let (mac, site_keys, window) = (certificate.mac(), identity.site_keys().clone(), config.sarp.window());
    Ok(Some(client::Settings { mac, host, site_keys, servers, window }))
}

/// What a DHCP server of this host works with.
fn dhcp_server(file: &Path, config: &Config, identity: &HostIdentity) -> Result<Option<server::Settings>, Failure> {
    if !config.dhcp.server {
        return Ok(None);
    }
    let certificate = identity.certificate();
    let key = certificate.record_key().filter(|_| certificate.role() == Role::DhcpServer);
    let Some((_, key)) = key else {
        let remedy = "issue this host's identity with `ringwall site issue --role dhcp`";
        let what = "this host's role is not dhcp, so nobody would believe its leases";
        return Err(Failure::file(&config.host.identity, what, remedy));
    };
    Ok(Some(server::Settings {
        key_name: dhcp::proof::key_name(key),
        addresses: certificate.addresses().to_vec(),
        site_keys: identity.site_keys().clone(),
        relays: config.dhcp.relays(file)?,
        window: config.sarp.window(),
        order: config.dhcp.order.of_server(),
    }))
}

type Distributing = (Option<Akd>, Arc<dyn Records + Send + Sync>);

/// What a distributor's machine has beside its own S-ARP.
fn distribute(config: &Config, identity: &HostIdentity) -> Result<Distributing, Failure> {
    let Some(section) = &config.akd else { return Ok((None, Arc::new(NoRecords))) };
    let refused = |what: &str| {
        let remedy = "issue this host's identity with `ringwall site issue --role akd`";
        Failure::file(&config.host.identity, what, remedy)
    };
    if identity.certificate().role() != Role::Distributor {
        return Err(refused("this host's role is not akd, so nobody would believe its answers"));
    }
    let masters = identity.request_masters().cloned();
    let masters = masters.ok_or_else(|| refused("it holds no RINGWALL REQUEST MASTER"))?;
    let own = identity.request_key().map_or(0, RequestKey::host);
    let records = Repository::open(section, &identity.site_name(), own, config.clock())?;
    check_site(section, &records, identity)?;
    Ok((Some(Akd::new(identity.record_signing_key(), masters)), Arc::new(records)))
}

/// A site's repository has its distributors, too: one that lacks this host is another site's, and whoever is in it would
/// be believed here. One that has another key for it may only be newer than the identity.
fn check_site(section: &config::Akd, records: &Repository, identity: &HostIdentity) -> Result<(), Failure> {
    let certificate = identity.certificate();
    let Some(ip) = certificate.addresses().first() else { return Ok(()) };
    match records.find(*ip) {
        Lookup::NotFound => {
            let (place, key) = match section.keeper() {
                Keeper::File(file) => (file.display().to_string(), "akd.repository"),
                Keeper::Cluster(access) => (format!("etcd at {}", access.members.join(", ")), "akd.etcd"),
            };
            let what = format!("{place}: it does not have this host ({ip}), so it is not the repository of this site");
            Err(Failure::new(format!("{what}; name the site's own in {key}")))
        }
        Lookup::Good { algorithm, key, .. } if certificate.record_key() != Some((algorithm, &key[..])) => {
            tracing::warn!(%ip, "the repository has another key for this host: install the identity issued last");
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The site's distributors: those in the identity, then those in files. One whose certificate is over is left out, and so is this
/// machine unless it distributes.
fn distributors(config: &Config, identity: &HostIdentity, now: Now) -> Result<Vec<Verified<HostCertificate>>, Failure> {
    let mut found = identity.distributors().to_vec();
    for file in &config.sarp.distributors {
        found.push(read_distributor(file, identity)?);
    }
    let is_here = |certificate: &HostCertificate| certificate.mac() == identity.certificate().mac();
    found.retain(|certificate| serves(certificate, now) && (config.akd.is_some() || !is_here(certificate)));
    let found = newest_of_each(found);
    if found.is_empty() {
        let remedy = "issue one with `ringwall site issue --role akd`, then this host's identity again, \
            or name its certificate in sarp.distributors";
        return Err(Failure::file(&config.host.identity, "it names no key distributor that can be asked", remedy));
    }
    Ok(found)
}

/// A renewed certificate takes the place of the one before, wherever it stands; of two of the same second, the one that is named
/// last, in a file.
fn newest_of_each(certificates: Vec<Verified<HostCertificate>>) -> Vec<Verified<HostCertificate>> {
    let mut newest: Vec<Verified<HostCertificate>> = Vec::new();
    for certificate in certificates {
        match newest.iter_mut().find(|other| other.mac() == certificate.mac()) {
            Some(other) if other.not_before_unix() <= certificate.not_before_unix() => *other = certificate,
            Some(_) => {}
            None => newest.push(certificate),
        }
    }
    newest
}

fn read_distributor(file: &Path, identity: &HostIdentity) -> Result<Verified<HostCertificate>, Failure> {
    let remedy = "name the certificate of a distributor of this site";
    let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, error, remedy))?;
    let der = pem::single(&text, pem::CERTIFICATE).map_err(|error| Failure::file(file, error, remedy))?;
    let certificate =
        identity.anchor().verify_whenever(&der).map_err(|refusal| Failure::file(file, refusal, remedy))?;
    match certificate.role() {
        Role::Distributor => Ok(certificate),
        other => Err(Failure::file(file, format!("its role is {other}, not akd"), remedy)),
    }
}

fn serves(certificate: &Verified<HostCertificate>, now: Now) -> bool {
    let name = certificate.name();
    let is_over = believable_unix_s(now).is_some_and(|unix_s| unix_s > certificate.not_after_unix());
    if is_over {
        tracing::warn!(name, "this distributor's certificate is over; renew it and name the new one");
    }
    let can_be_asked = as_setting(certificate).is_some();
    if !can_be_asked {
        tracing::warn!(name, "this distributor cannot be asked: its certificate has no IP address, or an RSA key");
    }
    can_be_asked && !is_over
}

fn as_setting(certificate: &Verified<HostCertificate>) -> Option<sarp::Distributor> {
    let ip = *certificate.addresses().first()?;
    Some(sarp::Distributor { ip, mac: certificate.mac(), key: DistributorKey::of(certificate)? })
}

fn in_status(certificate: &Verified<HostCertificate>) -> Distributor {
    Distributor {
        name: certificate.name().to_owned(),
        address: certificate.addresses().first().map(ToString::to_string).unwrap_or_default(),
        mac: certificate.mac().to_string(),
        certificate_not_after_unix: certificate.not_after_unix(),
        certificate_days_left: 0,
    }
}
