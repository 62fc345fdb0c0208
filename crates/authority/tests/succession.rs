//! The authority's certificate is replaced: three hundred hosts over forty virtual days, none of which
//! is visited.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "common/counted.rs"]
mod counted;

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use authority::directory::{Delivery, Record, Restored, Sharing, Terms, acting, change_policy, renew_authority};
use authority::files::Overwrite;
use authority::{Directory, Error, Request, enrolment};
use identity::certificate::{CertificateRequest, Role, TrustAnchor};
use identity::{HostIdentity, Profile, Refusal, pem};
use wire::MacAddress;

use counted::random;

const START: u64 = 1_800_000_000;
const DAY_S: u64 = 24 * 60 * 60;
const DAY: Duration = Duration::from_secs(DAY_S);
const HOSTS: u16 = 300;
/// Certificates of four days: renewed in their second half.
const TERMS: Terms = Terms { validity: Duration::from_secs(4 * DAY_S), early: false, late: Duration::ZERO };

fn on_day(day: u64) -> u64 {
    START + day * DAY_S
}

struct Stage {
    place: tempfile::TempDir,
}

impl Stage {
    /// A site whose authority ends in ten days.
    fn set() -> Stage {
        let place = tempfile::tempdir().expect("directory");
        let path = place.path().join("site");
        Directory::init(&path, "lab", 10 * DAY, Profile::Modern, &mut random(), START).expect("founded");
        Stage { place }
    }

    /// As each command opens it anew.
    fn site(&self) -> Directory {
        acting(Directory::open(&self.place.path().join("site")).expect("opened"), "tester")
    }

    /// Issues to a host, as the record of the site has it.
    fn issue(&self, number: u16) -> String {
        let output = self.place.path().join("host.pem");
        let delivery = Delivery { output: &output, overwrite: Overwrite::Force, sharing: Sharing::Refused };
        self.site().issue_identity(&request(number), &delivery, &mut random(), START).expect("issued");
        fs::read_to_string(output).expect("there")
    }

    /// What `ringwall host renew` has of the site's service, and what it makes of it.
    fn renew(&self, own: &str, terms: Terms, unix_s: u64) -> Result<String, Error> {
        let request = CertificateRequest::from_pem(&enrolment::renewal(own).expect("a request")).expect("signed");
        let answer = self.site().renew(&request, terms, &mut random(), unix_s)?.answer;
        enrolment::renewed(own, &answer, unix_s).map(|(text, _)| text.to_string())
    }
}

fn request(number: u16) -> Request {
    let [high, low] = number.to_be_bytes();
    let mac = MacAddress([2, 0, 0, 0, high, low]);
    let request = Request::new(&format!("h{number}"), mac, vec![Ipv4Addr::new(10, 0, high, low)]);
    request.and_then(|request| request.with_validity(TERMS.validity)).expect("a request")
}

/// The same of many hosts, without a file for each certificate of each.
fn renew_all(site: &Directory, hosts: &mut [(u16, String)], unix_s: u64) {
    for (number, own) in hosts {
        let asked = CertificateRequest::from_pem(&enrolment::renewal(own).expect("a request")).expect("signed");
        let bundle = site.site().issue(&request(*number), &asked, &mut random(), unix_s).expect("issued");
        *own = enrolment::renewed(own, &bundle.to_pem(), unix_s).expect("renewed").0.to_string();
    }
}

fn read(text: &str) -> HostIdentity {
    HostIdentity::from_pem(text).expect("an identity")
}

/// What one makes of the other's certificate, as at the beginning of a handshake.
fn hears(one: &HostIdentity, other: &HostIdentity, unix_s: u64) -> Result<(), Refusal> {
    one.anchor().verify(other.certificate().der(), unix_s).map(drop)
}

#[test]
fn an_authority_that_ends_in_ten_days_is_replaced_on_the_ninth_and_nobody_is_visited() {
    let stage = Stage::set();
    let site = stage.site();
    let issue = |number| site.site().issue_identity(&request(number), &mut random(), START).expect("issued");
    let mut hosts: Vec<(u16, String)> = (1..HOSTS).map(|number| (number, issue(number).to_string())).collect();
    let asleep = stage.issue(HOSTS);
    assert_eq!(read(&asleep).anchor().not_after_unix(), on_day(10));
    for day in [3, 6] {
        renew_all(&site, &mut hosts, on_day(day));
    }
    let until = renew_authority(&stage.site(), 3650 * DAY, &mut random(), on_day(9)).expect("replaced");
    assert_eq!(until, on_day(9 + 3650));
    // As whoever opens it from now on. Half of the hosts ask on that day.
    let site = stage.site();
    renew_all(&site, &mut hosts[..150], on_day(9));
    let read_all = |hosts: &[(u16, String)]| -> Vec<HostIdentity> { hosts.iter().map(|(_, own)| read(own)).collect() };
    let before = read_all(&hosts);
    let has_new = before.iter().filter(|one| one.anchor().not_after_unix() == until).count();
    assert_eq!(has_new, 150, "the other 149 have the old one");
    let everybody_hears = |identities: &[HostIdentity], unix_s: u64| {
        for (at, one) in identities.iter().enumerate() {
            for step in [1, 2, 7, 150] {
                let other = &identities[(at + step) % identities.len()];
                assert_eq!(
                    hears(one, other, unix_s),
                    Ok(()),
                    "{} {}",
                    one.certificate().name(),
                    other.certificate().name()
                );
            }
        }
    };
    everybody_hears(&before, on_day(9) + 3600);
    // The service's policy is heard by both kinds.
    let signed = change_policy(&stage.site(), on_day(9), |_| Ok::<(), Error>(())).expect("signed");
    assert!(before.iter().all(|one| one.anchor().verify_policy(signed.bytes()).is_ok()));
    // The others ask in the last second of the old one.
    renew_all(&site, &mut hosts[150..], on_day(10) - 1);
    let after = read_all(&hosts);
    everybody_hears(&after, on_day(11));
    // Who has not read his file again since hears all of them as well.
    let behind = &before[150..];
    assert!(behind.iter().all(|one| one.anchor().not_after_unix() == on_day(10)));
    for (one, other) in behind.iter().zip(&after) {
        assert_eq!(hears(one, other, on_day(11)), Ok(()), "{}", other.certificate().name());
    }
    comes_back_late(&stage, &asleep, &after[0]);
    Record::from(&stage.site()).check(None).expect("read").expect("the record is whole");
}

/// A host that has had nothing of the site since the beginning.
fn comes_back_late(stage: &Stage, asleep: &str, other: &HostIdentity) {
    let own = read(asleep);
    let now = on_day(40);
    assert!(matches!(hears(other, &own, now), Err(Refusal::Expired { .. })));
    let refused = stage.renew(asleep, TERMS, now).expect_err("nobody has said that it may");
    assert!(matches!(refused.reason(), Error::NotRenewed(..)), "{refused}");
    let late = |days: u32| Terms { late: days * DAY, ..TERMS };
    // Its certificate was over on day 4.
    assert!(stage.renew(asleep, late(35), now).is_err());
    let back = read(&stage.renew(asleep, late(37), now).expect("it is renewed"));
    assert_eq!(back.anchor().not_after_unix(), on_day(9 + 3650));
    assert_eq!(
        (back.certificate().name(), back.certificate().addresses()),
        (own.certificate().name(), own.certificate().addresses())
    );
    let awake = [other, &back].map(|one| one.anchor().is_same_authority(own.anchor()));
    assert_eq!((awake, hears(other, &back, now)), ([true; 2], Ok(())));
}

#[test]
fn a_replaced_certificate_is_of_the_same_authority_and_another_authority_is_not() {
    let stage = Stage::set();
    let first = read(&stage.issue(1));
    let again = renew_authority(&stage.site(), 10 * DAY, &mut random(), START);
    assert!(matches!(again.map_err(|error| matches!(error.reason(), Error::EndsNoLater(_))), Err(true)));
    renew_authority(&stage.site(), 20 * DAY, &mut random(), on_day(1)).expect("replaced");
    renew_authority(&stage.site(), 30 * DAY, &mut random(), on_day(2)).expect("and again");
    let newest = Record::open(&stage.place.path().join("site")).expect("opened");
    assert!(newest.anchor().is_same_authority(first.anchor()) && newest.anchor().der() != first.anchor().der());
    let namesake = Stage::set();
    let stranger = read(&namesake.issue(1));
    assert!(!newest.anchor().is_same_authority(stranger.anchor()));
    assert!(newest.anchor().verify(stranger.certificate().der(), on_day(1)).is_err());
    // The record begins with the first of them, also in a site that was restored.
    newest.check(None).expect("read").expect("whole");
    let kept = stage.place.path().join("kept");
    stage.site().backup(&kept).expect("kept");
    let restored = Directory::restore(&kept, &stage.place.path().join("again"), Restored::AsItWas).expect("restored");
    Record::from(&restored).check(None).expect("read").expect("whole");
    fs::remove_file(stage.place.path().join("again/ca.first.pem")).expect("removed");
    assert!(Record::from(&restored).check(None).expect("read").is_err(), "the first entry is of the first certificate");
    // An answer of before brings no host back to the old certificate.
    let own = stage.issue(7);
    let renewed = stage.renew(&own, TERMS, on_day(3)).expect("renewed");
    assert_eq!(read(&renewed).anchor().not_after_unix(), on_day(2 + 30));
}

/// An answer in which the authority's certificate is replaced by another.
fn with_authority(bundle: &str, before: &[u8], after: &[u8]) -> String {
    pem::replaced(bundle, pem::CERTIFICATE, before, after).expect("it has the one before").to_string()
}

#[test]
fn a_certificate_that_the_authority_has_not_signed_is_no_renewal_of_its_own() {
    let stage = Stage::set();
    let own = stage.issue(1);
    let before = read(&own);
    renew_authority(&stage.site(), 20 * DAY, &mut random(), on_day(1)).expect("replaced");
    let newest = Record::open(&stage.place.path().join("site")).expect("opened").anchor().clone();
    let asked = CertificateRequest::from_pem(&enrolment::renewal(&own).expect("a request")).expect("signed");
    let issued = stage.site().site().issue(&request(1), &asked, &mut random(), on_day(1)).expect("issued").to_pem();
    enrolment::renewed(&own, &issued, on_day(1)).expect("the genuine one");
    assert!(before.anchor().is_renewed_by(&newest) && before.anchor().is_renewed_by(before.anchor()));
    // Name and key are the same, the signature is none.
    let mut forged = newest.der().to_vec();
    *forged.last_mut().expect("a byte") ^= 1;
    // That of the old one under a certificate that says something else.
    let (old, len) = (before.anchor().der(), newest.der().len());
    let mut copied = newest.der().to_vec();
    copied[len - 64..].copy_from_slice(&old[old.len() - 64..]);
    for der in [forged, copied] {
        let anchor = TrustAnchor::from_der(&der).expect("it can be read");
        assert!(anchor.is_same_authority(before.anchor()) && !before.anchor().is_renewed_by(&anchor));
        for (bundle, has) in [(&*issued, newest.der()), (&own_bundle(&own), old)] {
            let refused = enrolment::renewed(&own, &with_authority(bundle, has, &der), on_day(1));
            assert!(matches!(refused, Err(Error::NoRenewal(_))));
        }
    }
}

/// What a host was given, without its key.
fn own_bundle(own: &str) -> String {
    let start = own.find("-----BEGIN PRIVATE KEY").expect("a key");
    own[..start].to_owned()
}

#[test]
fn where_the_authoritys_certificate_alone_is_new_all_else_stays_as_the_host_has_it() {
    let stage = Stage::set();
    let own = format!("# kept by hand\n{}", stage.issue(1));
    let server = request(2).with_role(Role::Distributor);
    let server = stage.site().site().issue_identity(&server, &mut random(), START).expect("issued");
    let server = pem::encode(pem::CERTIFICATE, read(&server).certificate().der());
    renew_authority(&stage.site(), 20 * DAY, &mut random(), on_day(1)).expect("replaced");
    let newest = Record::open(&stage.place.path().join("site")).expect("opened").anchor().clone();
    let old = read(&own).anchor().der().to_vec();
    // A key distributor that this host has not, and that nobody has signed for it.
    let answer = format!("{}{}", with_authority(&own_bundle(&own), &old, newest.der()), *server);
    let (text, renewed) = enrolment::renewed(&own, &answer, on_day(1)).expect("another certificate of the authority");
    assert_eq!((renewed.anchor().der(), renewed.distributors().len()), (newest.der(), 0));
    assert_eq!(*text, *pem::replaced(&own, pem::CERTIFICATE, &old, newest.der()).expect("it had it"));
    assert!(text.starts_with("# kept by hand\n"));
    let again = enrolment::renewed(&text, &answer, on_day(1));
    assert!(matches!(again, Err(Error::NothingNew(_))));
}
