//! What is going to guard the interface: everything that files decide, read and checked before the interface is touched.

use std::path::Path;
use std::sync::Arc;

use bump::{ClockTrust, Now};
use identity::certificate::{HostCertificate, Role, Verified};
use identity::distributor::DistributorKey;
use identity::{HostIdentity, pem};
use sarp::akd::{Akd, NoRecords, Records};

use crate::akd::Repository;
use crate::config::{Config, Mode};
use crate::failure::Failure;
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
    Cll(Arc<HostIdentity>),
    Sarp(Box<SignedArp>),
}

/// All that S-ARP needs.
pub(super) struct SignedArp {
    pub(super) identity: Arc<HostIdentity>,
    pub(super) settings: sarp::Settings,
    pub(super) distributors: Vec<Distributor>,
    pub(super) akd: Option<Akd>,
    pub(super) records: Arc<dyn Records + Send + Sync>,
}

impl Plan {
    /// Reads all files that `config` names.
    pub(super) fn make(file: &Path, config: &Config, duty: Duty, now: Now) -> Result<Plan, Failure> {
        check_duty(file, config, duty)?;
        match config.host.mode {
            Mode::Null => Ok(Plan::Null),
            Mode::Cll => load_identity(config, now).map(Plan::Cll),
            Mode::Sarp => {
                let identity = load_identity(config, now)?;
                SignedArp::make(file, config, identity, now).map(|sarp| Plan::Sarp(Box::new(sarp)))
            }
        }
    }

    pub(super) fn identity(&self) -> Option<&Arc<HostIdentity>> {
        match self {
            Plan::Null => None,
            Plan::Cll(identity) => Some(identity),
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

fn load_identity(config: &Config, now: Now) -> Result<Arc<HostIdentity>, Failure> {
    let file = &config.host.identity;
    let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, error, ENROL))?;
    let identity = HostIdentity::from_pem(&text).map_err(|error| Failure::file(file, error, ENROL))?;
    // Without a believable clock nobody can say that a certificate is over (never need a clock before first contact).
    if let Some(unix_s) = believable_unix_s(now) {
        let renew = "have the authority issue a new certificate (`ringwall site issue`)";
        identity.check_validity(unix_s).map_err(|refusal| Failure::file(file, refusal, renew))?;
    }
    Ok(Arc::new(identity))
}

fn believable_unix_s(now: Now) -> Option<u64> {
    now.wall.filter(|wall| wall.trust != ClockTrust::Wrong).map(|wall| wall.unix_ms / 1000)
}

impl SignedArp {
    fn make(file: &Path, config: &Config, identity: Arc<HostIdentity>, now: Now) -> Result<SignedArp, Failure> {
        let lacks = |what: &str, remedy: &str| Failure::file(&config.host.identity, what, remedy);
        let again = "have the authority issue the identity again (`ringwall site issue`)";
        let certificate = identity.certificate();
        if certificate.addresses().is_empty() {
            return Err(lacks("the certificate names no IP address, so there is nothing to speak for", again));
        }
        if certificate.record_key().is_none() {
            return Err(lacks("S-ARP knows no RSA keys", "enrol with an Ed25519 or ECDSA P-256 key"));
        }
        let request_key = identity.request_key().cloned();
        let request_key = request_key.ok_or_else(|| lacks("it holds no RINGWALL REQUEST KEY", again))?;
        let named = distributors(config, &identity, now)?;
        let settings = sarp::Settings {
            key: identity.signing_key(),
            mac: certificate.mac(),
            addresses: certificate.addresses().to_vec(),
            distributors: named.iter().filter_map(as_setting).collect(),
            request_key,
            known_hosts: config.sarp.known_hosts(file)?,
            window: config.sarp.window(),
            sign_requests: config.sarp.sign_requests,
        };
        let (akd, records) = distribute(config, &identity)?;
        let distributors = named.iter().map(in_status).collect();
        Ok(SignedArp { identity, settings, distributors, akd, records })
    }
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
    let master = identity.request_master().cloned();
    let master = master.ok_or_else(|| refused("it holds no RINGWALL REQUEST MASTER"))?;
    let records = Repository::open(section, &identity.site_name())?;
    Ok((Some(Akd::new(identity.signing_key(), master)), Arc::new(records)))
}

/// The site's distributors: those in the identity, then those in files. One whose certificate is over is left out.
fn distributors(config: &Config, identity: &HostIdentity, now: Now) -> Result<Vec<Verified<HostCertificate>>, Failure> {
    let mut found = identity.distributors().to_vec();
    for file in &config.sarp.distributors {
        let certificate = read_distributor(file, identity)?;
        if found.iter().all(|other| other.mac() != certificate.mac()) {
            found.push(certificate);
        }
    }
    found.retain(|certificate| serves(certificate, now));
    if found.is_empty() {
        let remedy = "issue one with `ringwall site issue --role akd`, then this host's identity again, \
            or name its certificate in sarp.distributors";
        return Err(Failure::file(&config.host.identity, "it names no key distributor that can be asked", remedy));
    }
    Ok(found)
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
    }
}
