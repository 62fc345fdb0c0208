//! A simulated host: its own key, certificate and address, and the questions that `ringwall report`
//! and `ringwall host renew` put.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use authority::{Request, Site, enrolment};
use bump::Generator;
use identity::HostIdentity;
use identity::certificate::HostCertificate;
use identity::pem;
use identity::tls::{Credentials, Service};
use serde::Deserialize;
use serde_json::json;
use wire::MacAddress;

use super::talk::{self, Answer};
use crate::failure::Failure;

/// Where hosts have their addresses: the upper half of 10.0.0.0/8.
pub(super) const SUBNET: &str = "10.128.0.0/9";
/// How long a certificate lasts.
const VALIDITY: Duration = Duration::from_secs(24 * 3600);
/// How long ago it began: it is time to renew it.
const AGE_S: u64 = 13 * 3600;

/// One host.
pub(super) struct Client {
    name: String,
    address: Ipv4Addr,
    credentials: Credentials,
    identity_pem: String,
    certificate_not_after_unix: u64,
    /// The policy that it has.
    pub(super) policy: u64,
}

/// What is newest of what the site has signed.
#[derive(Deserialize)]
struct Newest {
    policy_version: Option<u64>,
}

/// The address of host `number`.
pub(super) fn address_of(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(10, 128, high, low)
}

/// Its hardware address.
pub(super) fn mac_of(number: u16) -> MacAddress {
    let [high, low] = number.to_be_bytes();
    MacAddress([2, 0x10, 0, 0, high, low])
}

impl Client {
    /// Host `number` of `site`. Its certificate is in the record below `issued`, as if it had been
    /// enrolled yesterday.
    pub(super) fn enrol(site: &Site, issued: &Path, number: u16, random: &mut Generator) -> Result<Client, Failure> {
        let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0]);
        let wrong = |error: &dyn std::fmt::Display| Failure::Unreadable(format!("an identity: {error}"));
        let (name, address) = (format!("h{number}"), address_of(number));
        let request = Request::new(&name, mac_of(number), vec![address]);
        let request = request.and_then(|request| request.with_validity(VALIDITY));
        let text = request.and_then(|request| site.issue_identity(&request, &mut fill, unix_s() - AGE_S));
        let identity_pem = text.map_err(|error| wrong(&error))?;
        let identity = HostIdentity::from_pem(&identity_pem).map_err(|error| wrong(&error))?;
        put_down(issued, identity.certificate())?;
        let credentials = Credentials::from_pem(&identity_pem, || Some(unix_s())).map_err(|error| wrong(&error))?;
        let certificate_not_after_unix = identity.certificate().not_after_unix();
        let identity_pem = identity_pem.to_string();
        Ok(Client { name, address, credentials, identity_pem, certificate_not_after_unix, policy: 0 })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Reports, and gives the newest policy's version.
    pub(super) fn report(&self, service: SocketAddr) -> io::Result<(u64, Answer)> {
        let answer = self.ask(service, "/v1/report", Some(self.told().as_bytes()))?.good()?;
        let newest: Newest = serde_json::from_slice(&answer.body)?;
        Ok((newest.policy_version.unwrap_or_default(), answer))
    }

    /// Fetches the policy.
    pub(super) fn fetch(&self, service: SocketAddr) -> io::Result<Answer> {
        self.ask(service, "/v1/policy", None)?.good()
    }

    /// Asks for another certificate, once; whether it has one now.
    pub(super) fn renew(&mut self, service: SocketAddr) -> io::Result<bool> {
        let request = enrolment::renewal(&self.identity_pem).map_err(io::Error::other)?;
        let answer = self.ask(service, "/v1/renewal", Some(request.as_bytes()))?;
        if answer.is_for_later() {
            return Ok(false);
        }
        let bundle = String::from_utf8(answer.good()?.body).map_err(io::Error::other)?;
        let renewed = enrolment::renewed(&self.identity_pem, &bundle, unix_s());
        self.identity_pem = renewed.map_err(io::Error::other)?.0.to_string();
        Ok(true)
    }

    /// A host that observes and hears one printer.
    fn told(&self) -> String {
        let now_unix_ms = unix_ms();
        let used = json!({
            "protocol": "tcp/9100", "frames": 7, "last_unix_ms": now_unix_ms,
            "source": "10.0.0.9", "destination": self.address,
        });
        let told = json!({
            "schema": "ringwall-report", "schema_version": 1, "made_unix_ms": now_unix_ms,
            "daemon": {"version": env!("CARGO_PKG_VERSION"), "interface": "eth0", "mode": "cll",
                       "state": "guarding", "way": "in-place", "uptime_s": 60},
            "policy": {"version": self.policy, "migration": "observe"},
            "sealed": 12, "attacks_open": 0, "attacks_opened": 0,
            "certificate_not_after_unix": self.certificate_not_after_unix,
            "breaks": [{"mac": "02:00:00:00:00:09", "uses": [used]}], "breaks_left_out": 0,
        });
        told.to_string()
    }

    fn ask(&self, service: SocketAddr, path: &str, body: Option<&[u8]>) -> io::Result<Answer> {
        let stream = talk::connect(self.address, service)?;
        let asked = self.credentials.ask(Service::At(service.ip()), stream);
        talk::exchange(asked.map_err(io::Error::other)?, path, body)
    }
}

/// Puts a certificate into the record of a site, a file named by its serial number.
fn put_down(issued: &Path, certificate: &HostCertificate) -> Result<(), Failure> {
    let file = issued.join(format!("{}.pem", certificate.serial_hex()));
    let text = pem::encode(pem::CERTIFICATE, certificate.der());
    std::fs::write(&file, text.as_bytes()).map_err(Failure::file("writing", &file))
}

pub(super) fn unix_s() -> u64 {
    unix_ms() / 1000
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Where the service is asked.
pub(super) fn service_at(ip: Ipv4Addr, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(ip), port)
}
