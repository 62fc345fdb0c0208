//! Who gets another certificate for the key that he has, and what he takes for one.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod common;

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use authority::directory::{Delivery, Given, Record, Renewed, Restored, Sharing, Terms};
use authority::files::{self, Overwrite};
use authority::limits::{MAX_LIVE_CERTIFICATES, SITE_VALIDITY};
use authority::repository::Subnet;
use authority::{Directory, Error, Request, enrolment};
use common::random;
use identity::certificate::{CertificateRequest, Role};
use identity::dhcp_key::client_id;
use identity::signing::ed25519_pkcs8_from_seed;
use identity::{HostIdentity, Profile, pem};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair};
use tempfile::TempDir;
use wire::MacAddress;
use zeroize::Zeroizing;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Some time before the end of a certificate of 30 days.
const LATER_UNIX_S: u64 = NOW_UNIX_S + 20 * DAY.as_secs();

const TERMS: Terms = Terms { validity: Duration::from_secs(30 * DAY.as_secs()), early: false, late: Duration::ZERO };

/// A site with a host `a` that is good for 30 days.
struct Stage {
    place: TempDir,
    site: Directory,
    identity: Zeroizing<String>,
}

impl Stage {
    fn set(role: Role) -> Stage {
        let place = tempfile::tempdir().expect("directory");
        let path = place.path().join("site");
        let site = Directory::init(&path, "lab", SITE_VALIDITY, Profile::Modern, &mut random(1), NOW_UNIX_S);
        let mut stage = Stage { place, site: site.expect("site"), identity: Zeroizing::default() };
        stage.identity = stage.issue(&request().with_role(role), 2, NOW_UNIX_S);
        stage
    }

    fn issue(&self, request: &Request, seed: u8, unix_s: u64) -> Zeroizing<String> {
        let file: PathBuf = self.place.path().join(format!("{seed}.pem"));
        let delivery = Delivery { output: &file, overwrite: Overwrite::Never, sharing: Sharing::Refused };
        self.site.issue_identity(request, &delivery, &mut random(seed), unix_s).expect("issued");
        files::read(&file).expect("written")
    }

    fn asked(&self) -> CertificateRequest {
        let text = enrolment::renewal(&self.identity).expect("requested");
        CertificateRequest::from_pem(&text).expect("signed by the key that it names")
    }

    fn renew(&self, seed: u8, unix_s: u64) -> Result<Renewed, Error> {
        self.site.renew(&self.asked(), TERMS, &mut random(seed), unix_s)
    }

    fn refusal(&self) -> String {
        self.renew(9, LATER_UNIX_S).expect_err("refused").to_string()
    }
}

fn request() -> Request {
    let subnet: Subnet = "10.1.0.0/16".parse().expect("a subnet");
    let request = Request::new("a", MacAddress([2, 0, 0, 0, 0, 1]), vec![Ipv4Addr::new(10, 0, 0, 1)]);
    let request = request.and_then(|request| request.with_ipv6(vec!["2001:db8::1".parse().expect("an address")]));
    request.and_then(|request| request.with_validity(30 * DAY)?.with_subnets(vec![subnet])).expect("request")
}

#[test]
fn a_host_gets_what_it_had_for_longer_and_keeps_its_key() {
    for role in [Role::Host, Role::Router] {
        let stage = Stage::set(role);
        let answer = stage.renew(3, LATER_UNIX_S).expect("renewed").answer;
        let (text, after) = enrolment::renewed(&stage.identity, &answer, LATER_UNIX_S).expect("its own");
        let before = HostIdentity::from_pem(&stage.identity).expect("identity");
        let (old, new) = (before.certificate(), after.certificate());
        assert_eq!((old.names(), old.role(), old.public_key()), (new.names(), new.role(), new.public_key()));
        assert_eq!(new.not_after_unix(), LATER_UNIX_S + 30 * DAY.as_secs());
        assert!(HostIdentity::from_pem(&text).is_ok() && old.serial() != new.serial());
        let entry = stage.site.repository().expect("there").by_name("a").expect("asked").expect("known");
        assert_eq!((entry.not_after_unix, entry.subnets.len()), (new.not_after_unix(), 1));
        // Once more with what it has now.
        enrolment::renewal(&text).expect("requested");
    }
}

/// A host that gets its address by DHCP, whose bundle has each secret that a host is given. Gave the bundle as it is: it was all
/// in the answer.
#[test]
fn a_recorded_request_gives_nothing_secret_to_anybody_but_its_host() {
    let mut stage = Stage::set(Role::Host);
    let base = |name: &str, last: u8| {
        let request = Request::new(name, MacAddress([2, 0, 0, 0, 1, last]), vec![]);
        request.and_then(|request| request.with_validity(30 * DAY)).expect("request")
    };
    stage.identity = stage.issue(&base("roamer", 1), 20, NOW_UNIX_S);
    let neighbour = stage.issue(&base("neighbour", 2), 21, NOW_UNIX_S);
    let recorded = stage.asked();
    // Shown twice: once by the neighbour, which takes it apart, and once by the host itself.
    let answer = stage.site.renew(&recorded, TERMS, &mut random(22), LATER_UNIX_S).expect("renewed").answer;
    let refused = enrolment::renewed(&neighbour, &answer, LATER_UNIX_S).map(drop).expect_err("not its own");
    assert!(refused.to_string().contains("not sealed for this host's key"), "{refused}");
    let (text, after) = enrolment::renewed(&stage.identity, &answer, LATER_UNIX_S).expect("its own");
    assert_eq!(after.dhcp_key().expect("a new one").client(), client_id(after.certificate()));
    let blocks = pem::blocks(&text).expect("an identity");
    let secrets: Vec<_> = blocks.iter().filter(|block| block.label != pem::CERTIFICATE).collect();
    let labels = [pem::SITE_KEY, pem::REQUEST_KEY, pem::DHCP_KEY];
    assert!(labels.iter().all(|label| secrets.iter().any(|block| block.label == *label)), "there is something to hide");
    let seen = pem::single(&answer, pem::SEALED_BUNDLE).expect("one block, and no certificate");
    for secret in secrets {
        let tail = &secret.bytes[secret.bytes.len() - 32..];
        assert!(!seen.windows(32).any(|window| window == tail), "{}", secret.label);
    }
}

/// As another program writes it: a request for what `wanted` says, with nothing to seal to.
fn plain_request(wanted: &Request) -> CertificateRequest {
    let pair = KeyPair::try_from(ed25519_pkcs8_from_seed(&[30; 32]).expect("a seed").as_slice()).expect("a key");
    let names = wanted.names().to_extension_value().expect("names");
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, wanted.name());
    params.custom_extensions = vec![CustomExtension::from_oid_content(&[2, 5, 29, 17], names)];
    let signed = params.serialize_request(&pair).expect("signed");
    CertificateRequest::from_der(signed.der()).expect("read")
}

#[test]
fn a_request_that_names_no_key_for_the_answer_is_not_answered() {
    let stage = Stage::set(Role::Host);
    let c = Request::new("c", MacAddress([2, 0, 0, 0, 0, 3]), vec![]).expect("request");
    let enrolled = plain_request(&c);
    let file = stage.place.path().join("c.bundle");
    let delivery = Delivery { output: &file, overwrite: Overwrite::Never, sharing: Sharing::Refused };
    stage.site.issue(&c, &enrolled, &delivery, &mut random(31), NOW_UNIX_S).expect("issued");
    let blocks = pem::blocks(&fs::read_to_string(&file).expect("there")).expect("a bundle");
    assert!(blocks.iter().any(|block| block.label == pem::SITE_KEY), "in clear, since there is nobody to seal to");
    let refused = stage.site.renew(&enrolled, TERMS, &mut random(32), LATER_UNIX_S).map(drop).expect_err("refused");
    assert!(refused.to_string().contains("names no key that the answer"), "{refused}");
}

/// Broke each check of `renewable` in turn.
#[test]
fn nobody_else_is_renewed_and_nobody_whom_the_manager_has_let_go() {
    let stage = Stage::set(Role::Host);
    let b = Request::new("b", MacAddress([2, 0, 0, 0, 0, 2]), vec![]).expect("request");
    let stranger = Stage { identity: stage.issue(&b, 4, NOW_UNIX_S), ..Stage::set(Role::Host) };
    assert!(stranger.refusal().contains("no certificate that is still good"), "{}", stranger.refusal());
    let after_end = stage.renew(9, NOW_UNIX_S + 31 * DAY.as_secs()).expect_err("over").to_string();
    assert!(after_end.contains("no certificate that is still good"), "{after_end}");
    // The same name, another key.
    let mut elsewhere = Stage::set(Role::Host);
    elsewhere.identity = elsewhere.issue(&request(), 77, NOW_UNIX_S + 1);
    let forged = elsewhere.asked();
    let refused = stage.site.renew(&forged, TERMS, &mut random(9), LATER_UNIX_S).map(drop).expect_err("another key");
    assert!(refused.to_string().contains("another key than its certificate") && !refused.to_string().contains('\n'));
    let distributor = Stage::set(Role::Distributor);
    assert!(distributor.refusal().contains("other hosts' identities name it"), "{}", distributor.refusal());
    stage.site.revoke("a", NOW_UNIX_S + 1).expect("revoked");
    assert!(stage.refusal().contains("no certificate that is still good"), "{}", stage.refusal());
}

#[test]
fn a_key_that_s_arp_has_changed_by_itself_is_not_put_back() {
    let stage = Stage::set(Role::Host);
    let store = stage.site.repository().expect("there");
    let known = store.by_name("a").expect("asked").expect("known");
    let changed = authority::repository::NewHost {
        name: known.name,
        role: known.role,
        mac: known.mac,
        addresses: vec![Ipv4Addr::new(10, 0, 0, 1)],
        algorithm: known.algorithm,
        key: vec![7; 32],
        not_before_unix: known.not_before_unix,
        not_after_unix: known.not_after_unix,
        subnets: known.subnets,
    };
    store.add(&changed, Sharing::Refused, NOW_UNIX_S).expect("changed");
    assert!(stage.refusal().contains("has changed its key for S-ARP"), "{}", stage.refusal());
}

/// Seven copies of one request gave a host as many certificates as it may have, and then its own
/// request was refused for as long as these were good: for a year.
#[test]
fn copies_of_a_request_bring_the_certificate_that_is_there() {
    let mut stage = Stage::set(Role::Host);
    let recorded = stage.asked();
    let copies = |first_unix_s: u64| {
        for copy in 0..2 * MAX_LIVE_CERTIFICATES as u64 {
            let answered = stage.site.renew(&recorded, TERMS, &mut random(10), first_unix_s + copy).expect("answered");
            assert_eq!(answered.given, Given::SameCertificate);
        }
    };
    copies(NOW_UNIX_S);
    let first = stage.renew(11, LATER_UNIX_S).expect("renewed");
    assert_eq!(first.given, Given::Certificate);
    copies(LATER_UNIX_S + 1);
    assert_eq!(stage.site.list().expect("listed").len(), 2);
    // An answer that was lost on its way is given again, sealed anew.
    let again = stage.renew(12, LATER_UNIX_S + 60).expect("answered");
    assert!(again.entry.serial == first.entry.serial && again.answer != first.answer);
    let (text, after) = enrolment::renewed(&stage.identity, &again.answer, LATER_UNIX_S).expect("its own");
    assert_eq!(after.certificate().not_after_unix(), LATER_UNIX_S + 30 * DAY.as_secs());
    stage.identity = text;
    let later = stage.renew(13, LATER_UNIX_S + 20 * DAY.as_secs()).expect("renewed");
    assert!(later.given == Given::Certificate && later.entry.serial != first.entry.serial);
}

#[test]
fn a_manager_renews_early_and_a_host_gets_no_more_than_it_can_use() {
    let stage = Stage::set(Role::Host);
    let early = |second: u64| {
        let terms = Terms { early: true, ..TERMS };
        stage.site.renew(&stage.asked(), terms, &mut random(second as u8 + 10), NOW_UNIX_S + second)
    };
    for second in 1..MAX_LIVE_CERTIFICATES as u64 {
        assert_eq!(early(second).expect("renewed").given, Given::Certificate);
    }
    let refused = early(20).expect_err("refused").to_string();
    assert!(refused.contains("as many good certificates"), "{refused}");
    assert_eq!(stage.site.list().expect("listed").len(), MAX_LIVE_CERTIFICATES);
}

/// A host renews for nine years. What each act reads stays as short as it was, and nothing of the
/// record is lost, also over a backup.
#[test]
fn what_is_long_over_leaves_what_each_act_reads_and_stays_in_the_record() {
    const RENEWALS: u8 = 160;
    let stage = Stage::set(Role::Host);
    let gone = Request::new("gone", MacAddress([2, 0, 0, 0, 0, 9]), vec![Ipv4Addr::new(10, 0, 0, 9)]);
    stage.issue(&gone.and_then(|request| request.with_validity(30 * DAY)).expect("request"), 250, NOW_UNIX_S);
    for number in 1..=RENEWALS {
        let unix_s = NOW_UNIX_S + u64::from(number) * 20 * DAY.as_secs();
        let given = stage.renew(number + 2, unix_s).expect("renewed").given;
        assert_eq!(given, Given::Certificate);
    }
    // One that is good, one that ends, and two that ended within 30 days; and the newest of who has
    // gone.
    let [listed, all] = [stage.site.list(), stage.site.list_all()].map(|entries| entries.expect("listed"));
    assert_eq!(listed.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["a", "a", "a", "a", "gone"]);
    assert_eq!(all.len(), usize::from(RENEWALS) + 2);
    assert!(Record::from(&stage.site).check(None).expect("read").is_ok());
    let backup = stage.place.path().join("backup");
    stage.site.backup(&backup).expect("backed up");
    let again = Directory::restore(&backup, &stage.place.path().join("again"), Restored::AsItWas).expect("restored");
    assert_eq!(again.list_all().expect("listed"), all);
    // What is no certificate there stops who reads the whole record, and no act.
    fs::write(stage.place.path().join("site/retired/00.pem"), "nothing").expect("written");
    assert!(stage.site.list_all().is_err() && stage.site.list().is_ok());
}

/// For one act the clock is two years ahead, and puts away a certificate that is good.
#[test]
fn a_revocation_takes_back_what_a_wrong_clock_has_put_away() {
    let stage = Stage::set(Role::Host);
    stage.renew(3, LATER_UNIX_S).expect("renewed");
    let other = Request::new("b", MacAddress([2, 0, 0, 0, 0, 2]), vec![Ipv4Addr::new(10, 0, 0, 2)]);
    stage.issue(&other.expect("request"), 4, NOW_UNIX_S + 730 * DAY.as_secs());
    assert_eq!(stage.site.list().expect("listed").iter().filter(|entry| entry.name == "a").count(), 1);
    let revoked = stage.site.revoke("a", LATER_UNIX_S).expect("revoked");
    assert_eq!(revoked.certificates, 2);
    let is_listed = |entry: &authority::Entry| entry.name != "a" || entry.revoked;
    assert!(stage.site.list_all().expect("listed").iter().all(is_listed));
}

/// Broke each check of `renewed` in turn.
#[test]
fn a_host_takes_only_what_renews_its_own_identity() {
    let stage = Stage::set(Role::Host);
    let refused = |bundle: &str| {
        let refused = enrolment::renewed(&stage.identity, bundle, LATER_UNIX_S).map(drop).expect_err("refused");
        refused.to_string()
    };
    let asked = stage.asked();
    let issue = |request: &Request, days: u32, seed: u8| {
        let request = request.clone().with_validity(days * DAY).expect("a period");
        stage.site.site().issue(&request, &asked, &mut random(seed), LATER_UNIX_S).expect("issued").to_pem()
    };
    let moved = Request::new("a", MacAddress([2, 0, 0, 0, 0, 1]), vec![Ipv4Addr::new(10, 0, 0, 9)]).expect("request");
    assert!(refused(&issue(&moved, 30, 5)).contains("another name, role or address"));
    assert!(refused(&issue(&request().with_role(Role::Router), 30, 6)).contains("another name, role or address"));
    assert!(refused(&issue(&request(), 5, 7)).contains("ends no later"));
    let elsewhere = authority::Site::create("lab", &mut random(50), NOW_UNIX_S).expect("site");
    let bundle = elsewhere.issue(&request(), &asked, &mut random(51), LATER_UNIX_S).expect("issued");
    assert!(refused(&bundle.to_pem()).contains("another authority"));
    let other = enrolment::request(&request(), &mut random(52)).expect("requested");
    let other = CertificateRequest::from_pem(&other.request_pem).expect("signed");
    let of_other_key = stage.site.site().issue(&request(), &other, &mut random(53), LATER_UNIX_S).expect("issued");
    assert!(refused(&of_other_key.to_pem()).contains("PRIVATE KEY does not belong"));
}
