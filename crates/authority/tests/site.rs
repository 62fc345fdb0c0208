//! The authority in memory: what it issues, and what openssl says of it.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

mod common;

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use authority::{Error, Request, Site, enrolment};
use common::random;
use identity::certificate::{CertificateRequest, RequestError, Role};
use identity::profile::{KeyLength, PaperKey, RsaHash, RsaKey};
use identity::site_key::SiteKey;
use identity::{HostIdentity, IdentityError, Profile, Refusal, pem};
use wire::MacAddress;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;
const DAY_S: u64 = 86_400;
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

fn site(seed: u8) -> Site {
    Site::create("lab", &mut random(seed), NOW_UNIX_S).expect("site")
}

fn request() -> Request {
    Request::new("a", MAC, vec![Ipv4Addr::new(10, 0, 0, 1)]).expect("request")
}

#[test]
fn the_same_random_bytes_make_the_same_site_and_hosts() {
    let make = |seed| {
        let site = site(seed);
        let host = site.issue_identity(&request(), &mut random(seed + 100), NOW_UNIX_S).expect("host");
        (site.certificate_pem(), site.key_text().to_string(), host.to_string())
    };
    assert_eq!(make(1), make(1));
    let (one, other) = (make(1), make(2));
    assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2);
}

#[test]
fn an_identity_has_what_was_asked_for() {
    let site = site(1);
    let asked = request().with_role(Role::Router).with_validity(Duration::from_secs(7 * DAY_S)).expect("a week");
    let text = site.issue_identity(&asked, &mut random(2), NOW_UNIX_S).expect("host");
    let identity = HostIdentity::from_pem(&text).expect("identity");
    let certificate = identity.certificate();
    assert_eq!((certificate.name(), certificate.mac(), certificate.is_router()), ("a", MAC, true));
    assert_eq!(certificate.not_before_unix(), NOW_UNIX_S - 300, "a clock a little behind does not hurt");
    assert_eq!(certificate.not_after_unix(), NOW_UNIX_S + 7 * DAY_S);
    assert_eq!(identity.site_name(), "lab");
    assert_eq!(identity.site_key().tag(b"x", &[]), site.site_key().tag(b"x", &[]));
    assert!(site.anchor().verify(certificate.der(), NOW_UNIX_S).is_ok());
}

/// A handshake message with a certificate stays below 1,000 bytes; the rest of it takes less than 500.
#[test]
fn certificates_stay_small() {
    let addresses = (1..=4).map(|last| Ipv4Addr::new(10, 0, 0, last)).collect();
    let asked = Request::new("host-with-a-long-name.example", MAC, addresses).expect("request");
    let text = site(1).issue_identity(&asked, &mut random(2), NOW_UNIX_S).expect("host");
    let len = HostIdentity::from_pem(&text).expect("identity").certificate().der().len();
    assert!(len < 400, "{len} bytes");
}

#[test]
fn openssl_agrees_with_what_is_issued() {
    let directory = tempfile::tempdir().expect("directory");
    let openssl = |arguments: &str| {
        let output = Command::new("openssl").current_dir(directory.path()).args(arguments.split(' ')).output();
        let output = output.expect("these tests need the program openssl (Debian package openssl)");
        let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "openssl {arguments}: {errors}");
        text.into_owned()
    };
    let site = site(1);
    fs::write(directory.path().join("ca.pem"), site.certificate_pem()).expect("written");
    let host = site.issue_identity(&request(), &mut random(2), NOW_UNIX_S).expect("host");
    fs::write(directory.path().join("a.pem"), host.as_bytes()).expect("written");

    assert_eq!(openssl(&format!("verify -x509_strict -attime {NOW_UNIX_S} -CAfile ca.pem a.pem")).trim(), "a.pem: OK");
    assert_eq!(openssl("x509 -in a.pem -noout -pubkey"), openssl("pkey -in a.pem -pubout"), "certificate and key fit");
    let text = openssl("x509 -in a.pem -noout -text");
    for line in [
        "Version: 3 (0x2)",
        "Issuer: CN = lab",
        "Subject: OU = host, CN = a",
        "Not Before: Jan 15 07:55:00 2027 GMT",
        "Not After : Jan 15 08:00:00 2028 GMT",
        "othername: 1.3.6.1.5.5.7.8.12::<unsupported>, IP Address:10.0.0.1",
        "Digital Signature",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let authority = openssl("x509 -in ca.pem -noout -text");
    assert!(
        authority.contains("CA:TRUE, pathlen:1") && authority.contains("Certificate Sign, CRL Sign"),
        "{authority}"
    );
    let structure = openssl("asn1parse -in a.pem");
    assert!(structure.contains("X509v3 Subject Alternative Name"), "{structure}");
}

#[test]
fn a_host_enrols_by_file() {
    let site = site(1);
    let made = enrolment::request(&request(), &mut random(3)).expect("request");
    let proved = CertificateRequest::from_pem(&made.request_pem).expect("proved");
    let granted = Request::from_certificate_request(&proved).expect("granted");
    assert_eq!(granted, request());
    let bundle = site.issue(&granted, &proved, &mut random(4), NOW_UNIX_S).expect("bundle");
    let (text, identity) = enrolment::install(&made.key_pem, &bundle.to_pem(), NOW_UNIX_S).expect("installed");
    assert_eq!(identity.certificate().der(), bundle.certificate().der());
    assert!(HostIdentity::from_pem(&text).is_ok());
}

#[test]
fn a_host_cannot_make_itself_a_router() {
    let made = enrolment::request(&request().with_role(Role::Router), &mut random(3)).expect("request");
    let proved = CertificateRequest::from_pem(&made.request_pem).expect("proved");
    assert_eq!(proved.role(), Role::Router);
    assert_eq!(Request::from_certificate_request(&proved).expect("granted").role(), Role::Host);
}

#[test]
fn install_wants_the_key_of_the_request_and_a_certificate_that_lasts() {
    let site = site(1);
    let made = enrolment::request(&request(), &mut random(3)).expect("request");
    let proved = CertificateRequest::from_pem(&made.request_pem).expect("proved");
    let bundle = site.issue(&request(), &proved, &mut random(4), NOW_UNIX_S).expect("bundle").to_pem();
    let refused =
        |key: &str, bundle: &str, unix_s| enrolment::install(key, bundle, unix_s).map(|_| ()).expect_err("refused");

    let other = enrolment::request(&request(), &mut random(5)).expect("request");
    let mismatch = refused(&other.key_pem, &bundle, NOW_UNIX_S);
    assert!(matches!(mismatch, Error::Identity(IdentityError::KeyMismatch)));
    let late = refused(&made.key_pem, &bundle, NOW_UNIX_S + 366 * DAY_S);
    assert!(matches!(late, Error::Expired(Refusal::Expired { .. })));
    assert!(matches!(refused("", &bundle, NOW_UNIX_S), Error::Identity(IdentityError::Missing(_))));
    assert!(enrolment::install(&made.key_pem, &bundle, 0).is_ok(), "a clock that was never set does not hurt");
}

#[test]
fn forged_requests_are_refused() {
    let made = enrolment::request(&request(), &mut random(3)).expect("request");
    let der = pem::single(&made.request_pem, pem::CERTIFICATE_REQUEST).expect("one block");
    for at in 0..der.len() {
        let mut forged = der.to_vec();
        forged[at] ^= 1;
        assert!(CertificateRequest::from_pem(&pem::encode(pem::CERTIFICATE_REQUEST, &forged)).is_err(), "byte {at}");
    }
    let mut forged = der.to_vec();
    *forged.last_mut().expect("not empty") ^= 1;
    let refused = CertificateRequest::from_pem(&pem::encode(pem::CERTIFICATE_REQUEST, &forged)).map(|_| ());
    assert!(matches!(refused, Err(RequestError::Signature(_))));
}

#[test]
fn nothing_outlives_its_authority() {
    let week = Duration::from_secs(7 * DAY_S);
    let site = Site::create_for("lab", week, Profile::Modern, &mut random(1), NOW_UNIX_S).expect("site");
    let end = NOW_UNIX_S + week.as_secs();
    assert_eq!(site.anchor().not_after_unix(), end);
    let text = site.issue_identity(&request(), &mut random(2), NOW_UNIX_S).expect("host");
    assert_eq!(HostIdentity::from_pem(&text).expect("identity").certificate().not_after_unix(), end);
    let late = site.issue_identity(&request(), &mut random(2), end).map(|_| ());
    assert!(matches!(late, Err(Error::AuthorityExpired(at)) if at == end));
}

#[test]
fn nonsense_is_refused_before_anything_is_made() {
    for name in ["", "two words", "tab\t", "päron", "a/b", &"a".repeat(64)] {
        assert!(matches!(Request::new(name, MAC, vec![]), Err(Error::BadName(_))), "{name:?}");
        assert!(matches!(Site::create(name, &mut random(1), NOW_UNIX_S), Err(Error::BadName(_))), "{name:?}");
    }
    assert!(matches!(Request::new("a", MacAddress::BROADCAST, vec![]), Err(Error::BadNames(_))));
    assert!(matches!(Request::new("a", MAC, vec![Ipv4Addr::UNSPECIFIED]), Err(Error::BadNames(_))));
    assert!(matches!(Request::new("a", MAC, vec![Ipv4Addr::LOCALHOST; 2]), Err(Error::BadNames(_))));
    let century_and_a_day = Duration::from_secs(36_526 * DAY_S);
    for validity in [Duration::ZERO, century_and_a_day, Duration::MAX] {
        assert!(matches!(request().with_validity(validity), Err(Error::BadPeriod)));
    }
    for unix_s in [0, 7_258_118_401, u64::MAX] {
        assert!(matches!(Site::create("lab", &mut random(1), unix_s), Err(Error::BadTime(_))), "{unix_s}");
    }
}

#[test]
fn a_site_survives_its_files_and_notices_a_foreign_key() {
    let (one, other) = (site(1), site(2));
    let site_key = || SiteKey::from_pem(&one.site_key().to_pem()).expect("own text");
    let again = Site::from_pem(&one.certificate_pem(), &one.key_text(), site_key()).expect("own files");
    let issue = |site: &Site| site.issue_identity(&request(), &mut random(3), NOW_UNIX_S).expect("host");
    assert_eq!(*issue(&one), *issue(&again));

    let mixed = Site::from_pem(&one.certificate_pem(), &other.key_text(), site_key()).map(|_| ());
    assert!(matches!(mixed, Err(Error::KeyOfAnotherAuthority)));
    let swapped = Site::from_pem(&one.key_text(), &one.certificate_pem(), site_key()).map(|_| ());
    assert!(matches!(swapped, Err(Error::Pem(_))));
    let host = issue(&one);
    let certificate = pem::encode(pem::CERTIFICATE, &pem::blocks(&host).expect("own text")[0].bytes);
    let no_authority = Site::from_pem(&certificate, &one.key_text(), site_key()).map(|_| ());
    assert!(matches!(no_authority, Err(Error::Authority(Refusal::WrongUsage))));
}

#[test]
fn nothing_secret_is_printed() {
    let site = site(1);
    let shown = format!("{site:?}");
    let digits = site.key_text().lines().nth(1).expect("base64").to_owned();
    assert!(!shown.contains(&digits) && shown.contains("lab"), "{shown}");
}

#[test]
fn a_paper_site_gives_each_host_a_second_key_and_stays_what_it_is() {
    let year = Duration::from_secs(365 * DAY_S);
    let found = |profile| Site::create_for("lab", year, profile, &mut random(1), NOW_UNIX_S).expect("site");
    let made = found(Profile::Paper);
    let site = Site::from_pem(&made.certificate_pem(), &made.key_text(), made.site_key().clone()).expect("read again");
    assert_eq!((site.profile(), site.name().as_str()), (Profile::Paper, "lab"));
    for (asked, length) in [
        (request(), KeyLength::Bits1024),
        (request().with_paper_key(PaperKey::Dsa(KeyLength::Bits512)), KeyLength::Bits512),
    ] {
        let text = site.issue_identity(&asked, &mut random(2), NOW_UNIX_S).expect("host");
        let identity = HostIdentity::from_pem(&text).expect("identity");
        let (algorithm, key) = identity.certificate().record_key().expect("DSA");
        assert_eq!((algorithm, key.len()), (length.record_number(), length.bytes()));
        let signature = identity.record_signing_key().sign(b"ARP").expect("signed");
        assert!(identity.certificate().verify_record_signature(b"ARP", &signature).is_ok());
    }
    for (number, hash) in (4..).zip(RsaHash::ALL) {
        let key = RsaKey::new(1024, hash).expect("a length of the paper");
        let text = site.issue_identity(&request().with_paper_key(PaperKey::Rsa(key)), &mut random(number), NOW_UNIX_S);
        let identity = HostIdentity::from_pem(&text.expect("host")).expect("identity");
        let certificate = identity.certificate();
        assert!(certificate.signs_as_the_cll_paper() && certificate.record_key().is_none());
        let signature = identity.sign(b"handshake").expect("signed");
        assert_eq!(signature.len(), 128);
        assert!(certificate.verify_signature(b"handshake", &signature).is_ok());
        assert!(certificate.verify_signature(b"handshaken", &signature).is_err());
        assert!(
            certificate
                .verify_signature(b"handshake", &identity.record_signing_key().sign(b"handshake").expect("signed"))
                .is_err()
        );
        // The certificate has to leave room in a handshake of one frame, with a share of 256 bytes.
        assert!(certificate.der().len() < 800, "{}", certificate.der().len());
    }
    let modern = found(Profile::Modern);
    let weak =
        modern.issue_identity(&request().with_paper_key(PaperKey::Dsa(KeyLength::Bits512)), &mut random(2), NOW_UNIX_S);
    assert!(matches!(weak, Err(Error::NoPaperSite)));
    let own = enrolment::request(&request(), &mut random(3)).expect("requested");
    let own = CertificateRequest::from_pem(&own.request_pem).expect("signed");
    assert!(matches!(site.issue(&request(), &own, &mut random(4), NOW_UNIX_S), Err(Error::KeysOfPaperSite)));
}
