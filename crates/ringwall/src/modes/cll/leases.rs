//! DHCP under the link layer: what this host's halves work with, and a DHCP server's authority over
//! certificates.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use authority::lease;
use cll::DhcpServer;
use dhcp::link::{Grant, LeaseAuthority, Link, client, server};
use identity::{HostIdentity, Profile};

use crate::failure::Failure;
use crate::modes::file::Config;
use crate::modes::kept_leases::KeptLease;

const AGAIN: &str = "have the authority issue the identity again";

/// The same lease, as the link layer has it.
pub(super) fn of_file(lease: KeptLease) -> cll::KeptLease {
    let KeptLease { address, until, certificate } = lease;
    cll::KeptLease { address, until, certificate }
}

/// What the link layer wants kept, for the file.
pub(super) fn for_file(lease: cll::KeptLease) -> KeptLease {
    let cll::KeptLease { address, until, certificate } = lease;
    KeptLease { address, until, certificate }
}

/// How this host speaks DHCP on a wire with this MTU.
pub(super) fn settings(
    config: &Config,
    identity: &HostIdentity,
    ipv6: bool,
    wire_mtu: u16,
) -> Result<cll::Dhcp, Failure> {
    let link = Link { ethertype: config.cll.ethertype.ethertype(), mtu: wire_mtu };
    let file = &config.host.identity;
    let has_address = ipv6 || !identity.certificate().addresses().is_empty();
    if !has_address && !config.dhcp.client {
        let remedy = "set dhcp.client or cll.ipv6, or have the authority issue the identity with --ip";
        return Err(Failure::file(
            file,
            "the certificate names no IP address, so there is nothing to speak for",
            remedy,
        ));
    }
    let client = config.dhcp.client.then(|| client_settings(file, identity, link)).transpose()?;
    let server = config.dhcp.server.then(|| server_settings(config, identity, link)).transpose()?;
    Ok(cll::Dhcp { client, server })
}

fn client_settings(file: &Path, identity: &HostIdentity, link: Link) -> Result<client::Settings, Failure> {
    let certificate = identity.certificate();
    if !certificate.is_base() {
        let what = "dhcp.client = true, but the certificate names an IP address";
        return Err(Failure::file(
            file,
            what,
            "remove dhcp.client, or have the authority issue the identity without --ip and --ip6",
        ));
    }
    if certificate.profile() == Profile::Paper {
        let what = "dhcp.client = true, but the certificate names a second key, and no certificate of a lease does";
        return Err(Failure::file(file, what, "remove dhcp.client, or use an identity of another site"));
    }
    let keys = identity.dhcp_keys().cloned();
    let keys = keys.ok_or_else(|| Failure::file(file, "it holds no RINGWALL DHCP KEY", AGAIN))?;
    if keys.newest().1.client() != identity::dhcp_key::client_id(certificate) {
        return Err(Failure::file(file, "its RINGWALL DHCP KEY is another certificate's", AGAIN));
    }
    Ok(client::Settings { keys, base: certificate.der().to_vec(), link })
}

fn server_settings(config: &Config, identity: &HostIdentity, link: Link) -> Result<DhcpServer, Failure> {
    let file = &config.host.identity;
    let remedy = "issue this host's identity with `ringwall site issue --role dhcp --serves SUBNET`";
    let lacks = |what: &str| Failure::file(file, what, remedy);
    let masters = identity.dhcp_masters().cloned();
    let masters =
        masters.ok_or_else(|| lacks("it holds no RINGWALL DHCP MASTER, so clients could not be told apart"))?;
    let authority = lease::LeaseAuthority::open(identity).map_err(|error| Failure::file(file, error, remedy))?;
    let certificate = identity.certificate();
    let settings = server::Settings {
        masters,
        mac: certificate.mac(),
        addresses: certificate.addresses().to_vec(),
        link,
        tolerance: Duration::from_secs(config.cll.clock_tolerance_s),
        messages_per_minute: config.dhcp.messages_per_minute,
    };
    Ok(DhcpServer { settings, authority: Arc::new(Signing(authority)) })
}

/// The authority of the site's own crate, as the link layer wants it.
#[derive(Debug)]
struct Signing(lease::LeaseAuthority);

impl LeaseAuthority for Signing {
    fn certify(&self, grant: &Grant) -> Result<Vec<u8>, String> {
        let Grant { base, address, from_unix_s, until_unix_s, serial } = grant;
        let asked =
            lease::Grant { address: *address, from_unix_s: *from_unix_s, until_unix_s: *until_unix_s, serial: *serial };
        self.0.certify(base, &asked).map_err(|error| error.to_string())
    }
}
