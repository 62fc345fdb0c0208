//! The certificates that a DHCP server makes with its leases, as every peer checks them and as openssl does.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

mod common;

use std::net::Ipv4Addr;
use std::process::Command;

use authority::lease::Grant;
use authority::{Error, LeaseAuthority, Request, Site};
use common::random;
use identity::certificate::{HostCertificate, Role, Verified};
use identity::{HostIdentity, IdentityError, Refusal, pem};
use wire::MacAddress;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;
const HOUR_S: u64 = 3600;
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const SERVER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 129);

/// A site, its DHCP server's identity, and a host's without an address.
struct Cast {
    site: Site,
    server: HostIdentity,
    host: HostIdentity,
}

impl Cast {
    fn named(site: &str, server: &str, host: &str) -> Cast {
        let site = Site::create(site, &mut random(1), NOW_UNIX_S).expect("site");
        let asked = Request::new(server, SERVER_MAC, vec![Ipv4Addr::new(10, 0, 0, 9)]).expect("request");
        let text = site.issue_identity(&asked.with_role(Role::DhcpServer), &mut random(2), NOW_UNIX_S).expect("server");
        let plain = HostIdentity::from_pem(&text).expect("identity");
        let served = ["10.0.0.128/25".parse().expect("a subnet")];
        let authority = site.lease_authority(plain.certificate(), &served, &mut random(3)).expect("authority");
        let text = format!("{}{}", *text, *pem::encode(pem::CERTIFICATE, &authority));
        let server = HostIdentity::from_pem(&text).expect("identity with an authority");
        let asked = Request::new(host, MAC, Vec::new()).expect("request");
        let host = site.issue_identity(&asked, &mut random(4), NOW_UNIX_S).expect("host");
        Cast { site, server, host: HostIdentity::from_pem(&host).expect("identity") }
    }

    fn certify(&self, grant: &Grant) -> Result<Vec<u8>, Error> {
        LeaseAuthority::open(&self.server).expect("a DHCP server").certify(self.host.certificate(), grant)
    }

    fn verify(&self, chain: &[u8]) -> Result<Verified<HostCertificate>, Refusal> {
        self.host.anchor().verify(chain, NOW_UNIX_S)
    }
}

fn cast() -> Cast {
    Cast::named("lab", "d", "a")
}

fn grant() -> Grant {
    Grant { address: ADDRESS, from_unix_s: NOW_UNIX_S, until_unix_s: NOW_UNIX_S + HOUR_S, serial: [7; 16] }
}

#[test]
fn a_leased_certificate_is_the_hosts_own_for_the_lease() {
    let cast = cast();
    let chain = cast.certify(&grant()).expect("certified");
    let leased = cast.verify(&chain).expect("verified");
    assert_eq!((leased.name(), leased.mac(), leased.addresses()), ("a", MAC, &[ADDRESS][..]));
    assert_eq!((leased.not_before_unix(), leased.not_after_unix()), (NOW_UNIX_S - 300, NOW_UNIX_S + HOUR_S));
    assert!(leased.is_leased() && leased.role() == Role::Host && leased.der() == chain);
    assert_eq!(leased.public_key(), cast.host.certificate().public_key());
    let now = cast.host.with_certificate(leased).expect("its own");
    assert_eq!(now.certificate().addresses(), [ADDRESS]);
    let late = cast.host.anchor().verify(&chain, NOW_UNIX_S + HOUR_S + 1).map(drop);
    assert_eq!(late, Err(Refusal::Expired { not_after_unix: NOW_UNIX_S + HOUR_S }));
}

#[test]
fn it_never_outlasts_what_it_was_made_from() {
    let chain = cast().certify(&Grant { until_unix_s: u64::MAX, ..grant() }).expect("certified");
    let leased = cast().verify(&chain).expect("verified");
    assert_eq!(leased.not_after_unix(), cast().host.certificate().not_after_unix());
}

#[test]
fn an_authority_is_good_for_its_subnets_and_for_no_other_address() {
    let outside = Grant { address: Ipv4Addr::new(10, 0, 0, 7), ..grant() };
    let refused = cast().certify(&outside).expect_err("outside");
    assert!(matches!(refused, Error::SelfCheck(Refusal::NotPermitted)), "{refused}");
    let own = Grant { address: Ipv4Addr::new(10, 0, 0, 9), ..grant() };
    assert!(matches!(cast().certify(&own), Err(Error::BadLease(_))));
    let group = Grant { address: Ipv4Addr::new(224, 0, 0, 1), ..grant() };
    assert!(matches!(cast().certify(&group), Err(Error::BadLease(_))));
}

#[test]
fn who_is_no_dhcp_server_has_no_authority() {
    let cast = cast();
    assert!(matches!(LeaseAuthority::open(&cast.host), Err(Error::NoLeaseAuthority)));
    assert!(matches!(
        Request::new("a", MAC, Vec::new())
            .and_then(|asked| asked.with_served(vec!["10.0.0.0/24".parse().expect("subnet")])),
        Err(Error::ServesWithoutRole)
    ));
}

#[test]
fn a_chain_is_two_certificates_that_belong_together() {
    let cast = cast();
    let chain = cast.certify(&grant()).expect("certified");
    let base = cast.host.certificate().der();
    let authority = cast.server.dhcp_authority().expect("a server's");
    let leaf = &chain[..chain.len() - authority.len()];
    let verify = |parts: &[&[u8]]| cast.verify(&parts.concat()).map(drop);
    assert_eq!(verify(&[leaf]), Err(Refusal::ForeignIssuer), "alone it leads nowhere");
    assert_eq!(verify(&[base, authority]), Err(Refusal::Malformed("chain")), "the second has no business here");
    assert_eq!(verify(&[leaf, cast.site.anchor().der()]), Err(Refusal::Malformed("chain")));
    assert!(verify(&[&chain, &[0x30, 0]]).is_err() && verify(&[leaf, &authority[..100]]).is_err());
    assert_eq!(verify(&[authority]), Err(Refusal::NotAHost), "an authority is no host");
    let other = Cast::named("lab", "d", "a");
    let foreign = Site::create("lab", &mut random(9), NOW_UNIX_S).expect("a site of the same name");
    assert_eq!(foreign.anchor().verify(&chain, NOW_UNIX_S).map(drop), Err(Refusal::BadSignature));
    assert!(other.verify(&chain).is_ok(), "the same random bytes make the same site");
    for at in (0..chain.len()).step_by(7) {
        let mut changed = chain.clone();
        changed[at] ^= 1;
        assert!(cast.verify(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn it_is_for_one_host_and_ends_with_what_it_stands_on() {
    let cast = cast();
    let leased = cast.verify(&cast.certify(&grant()).expect("certified")).expect("verified");
    assert!(matches!(cast.server.with_certificate(leased.clone()), Err(IdentityError::KeyMismatch)));
    for taken_back in [cast.host.certificate().serial(), cast.server.certificate().serial(), leased.serial()] {
        let text = cast.site.revocation_list(&[taken_back], NOW_UNIX_S).expect("a list");
        let der = pem::single(&text, pem::REVOCATION_LIST).expect("PEM");
        let list = cast.site.anchor().verify_revocation_list(&der).expect("its own");
        assert!(list.names(&leased));
    }
    let text = cast.site.revocation_list(&[&[1, 2, 3]], NOW_UNIX_S).expect("a list");
    let der = pem::single(&text, pem::REVOCATION_LIST).expect("PEM");
    assert!(!cast.site.anchor().verify_revocation_list(&der).expect("its own").names(&leased));
}

#[test]
fn names_of_any_length_fit_a_message() {
    let name = "n".repeat(authority::limits::MAX_NAME_LEN);
    let chain = Cast::named(&name, &name, &name).certify(&grant()).expect("certified");
    assert!(chain.len() <= wire::cll::handshake::CERTIFICATE_LEN_MAX_V6, "{} bytes", chain.len());
}

#[test]
fn openssl_agrees() {
    let cast = cast();
    let chain = cast.certify(&grant()).expect("certified");
    let place = tempfile::tempdir().expect("directory");
    let authority = cast.server.dhcp_authority().expect("a server's");
    let write = |name: &str, text: &str| {
        let file = place.path().join(name);
        std::fs::write(&file, text).expect("written");
        file
    };
    let leaf = write("leaf.pem", &pem::encode(pem::CERTIFICATE, &chain[..chain.len() - authority.len()]));
    let between = write("between.pem", &pem::encode(pem::CERTIFICATE, authority));
    let root = write("root.pem", &cast.site.certificate_pem());
    let mut command = Command::new("openssl");
    command.args(["verify", "-x509_strict", "-attime", &NOW_UNIX_S.to_string(), "-CAfile"]).arg(root);
    let Ok(output) = command.arg("-untrusted").arg(between).arg(leaf).output() else {
        eprintln!("SKIPPED openssl_agrees: needs openssl");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
