//! What is going to sign ARP: everything that files decide, read and checked before the interface
//! is touched.

use std::path::Path;
use std::sync::Arc;

use bump::Now;
use dhcp::{client, server};
use identity::certificate::{HostCertificate, Role, Verified};
use identity::distributor::{DistributorKey, RequestKey};
use identity::{HostIdentity, pem};
use sarp::akd::{Akd, Lookup, NoRecords, Records};

use super::beside::Keeping;
use super::config::{self, Keeper, Sarp};
use super::known_hosts::KnownHosts;
use super::parts::Distributor;
use super::refresh::Refresh;
use super::repository::Repository;
use crate::failure::Failure;
use crate::host::identity::{believable_unix_s, load_identity};
use crate::modes::contract::Surroundings;
use crate::modes::file::Config;

/// All that S-ARP needs.
pub(super) struct Signing {
    pub(super) identity: Arc<HostIdentity>,
    pub(super) settings: sarp::Settings,
    pub(super) akd: Option<Akd>,
    pub(super) records: Arc<dyn Records + Send + Sync>,
    pub(super) keeping: Keeping,
}

impl Signing {
    pub(super) fn make(surroundings: &Surroundings<'_>) -> Result<Signing, Failure> {
        let Surroundings { config, disk, now, .. } = *surroundings;
        let identity = load_identity(config, now, disk)?;
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
        let known = KnownHosts::open(config, &identity, now, disk);
        let request_keys = identity.request_keys().cloned();
        let request_keys = request_keys.ok_or_else(|| lacks("it holds no RINGWALL REQUEST KEY", again))?;
        let named = distributors(config, &identity, now)?;
        let settings = sarp::Settings {
            dhcp_client: dhcp_client(config, &identity, request_keys.newest().1.host())?,
            dhcp_server: dhcp_server(config, &identity)?,
            key: refresh.signing_key()?,
            mac: certificate.mac(),
            addresses: certificate.addresses().to_vec(),
            distributors: named.iter().filter_map(as_setting).collect(),
            request_keys,
            known_hosts: known.hosts().to_vec(),
            window: config.sarp.window(),
            sign_requests: config.sarp.sign_requests,
            weaken: Sarp::weaken(config.lab.as_ref()),
        };
        let (akd, records) = distribute(config, &identity)?;
        let distributors = named.iter().map(in_status).collect();
        let keeping = Keeping { refresh, known, distributors, lease_file: None };
        Ok(Signing { identity, settings, akd, records, keeping })
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
fn dhcp_server(config: &Config, identity: &HostIdentity) -> Result<Option<server::Settings>, Failure> {
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
        relays: config.dhcp.relays(),
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

/// A site's repository has its distributors, too: one that lacks this host is another site's, and
/// whoever is in it would be believed here. One that has another key for it may only be newer than
/// the identity.
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

/// The site's distributors: those in the identity, then those in files. One whose certificate is
/// over is left out, and so is this machine unless it distributes.
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

/// A renewed certificate takes the place of the one before, wherever it stands; of two of the same
/// second, the one that is named last, in a file.
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
