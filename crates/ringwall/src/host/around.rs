//! Whose address is whose, as far as a host knows by proof or by its lists.

use std::net::IpAddr;

use cll::ProvedHost;
use identity::HostIdentity;
use watch::{Around, Known};
use wire::MacAddress;

use crate::config::{Config, MigrationName, Mode};
use crate::daemon::{Report, Snapshot};

/// What the watch must know of this host and others.
pub(super) fn of_host(
    config: &Config,
    identity: Option<&HostIdentity>,
    proved: &[ProvedHost],
    snapshot: &Snapshot,
) -> Around {
    let is_enforcing = config.host.mode == Mode::Cll && config.cll.migration == MigrationName::Enforce;
    let own = identity.map_or_else(Known::default, |identity| {
        let certificate = identity.certificate();
        let addresses = certificate.addresses().iter().map(|ip| IpAddr::V4(*ip)).chain(leased(snapshot));
        let name = Some(certificate.name().to_owned());
        Known { name, mac: Some(certificate.mac()), addresses: addresses.collect() }
    });
    let present = met(snapshot);
    let met = present.len();
    let known = present.into_iter().chain(proved.iter().map(proved_host)).chain(listed(config));
    Around { own, known: known.collect(), met, asks_in_clear: !is_enforcing, known_are_sealed: is_enforcing }
}

/// Those that the bump knows at this moment.
fn met(snapshot: &Snapshot) -> Vec<Known> {
    match &snapshot.report {
        Report::Associations(link) => {
            let peer = |peer: &cll::PeerReport| {
                let addresses = peer.addresses.iter().map(|ip| IpAddr::V4(*ip));
                let addresses = addresses.chain(peer.ipv6_addresses.iter().map(|ip| IpAddr::V6(*ip)));
                Known { name: Some(peer.name.clone()), mac: Some(peer.mac), addresses: addresses.collect() }
            };
            link.peers.iter().map(peer).collect()
        }
        Report::Keys(report) => {
            let key = |key: &sarp::KeyReport| Known { name: None, mac: key.mac, addresses: vec![key.ip.into()] };
            report.keys.iter().map(key).collect()
        }
        Report::Nothing | Report::Scrubbing(_) | Report::Shielding(_) => Vec::new(),
    }
}

fn proved_host(host: &ProvedHost) -> Known {
    Known { name: Some(host.name.clone()), mac: Some(host.mac), addresses: host.addresses.clone() }
}

/// A host that is believed without a signature.
pub(super) fn believed(host: &sarp::KnownHost) -> Known {
    Known { name: None, mac: Some(host.mac), addresses: vec![host.ip.into()] }
}

/// Addresses of this host by DHCP.
fn leased(snapshot: &Snapshot) -> Vec<IpAddr> {
    match &snapshot.report {
        Report::Associations(link) => {
            link.leases.iter().filter(|lease| !lease.given).map(|one| one.ip.into()).collect()
        }
        Report::Keys(report) => report.leases.iter().filter(|lease| !lease.given).map(|one| one.ip.into()).collect(),
        _ => Vec::new(),
    }
}

/// Those that the configuration lists, which speak in clear.
fn listed(config: &Config) -> Vec<Known> {
    let known = |ip: IpAddr, mac: &str| {
        let mac: Option<MacAddress> = mac.parse().ok();
        Known { name: None, mac, addresses: vec![ip] }
    };
    let legacy = config.cll.legacy.iter().map(|host| known(host.ip.into(), &host.mac));
    let of_sarp = config.sarp.known_hosts.iter().map(|host| known(host.ip.into(), &host.mac));
    match config.host.mode {
        Mode::Cll => legacy.collect(),
        Mode::Sarp => of_sarp.collect(),
        Mode::Shield | Mode::Null => Vec::new(),
    }
}
