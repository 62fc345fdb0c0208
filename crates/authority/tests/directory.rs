//! A site in files: nothing is overwritten, nothing is half done, nothing is issued twice.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use authority::directory::{Delivery, Sharing};
use authority::files::{self, Overwrite, Secrecy, Staged};
use authority::limits::SITE_VALIDITY;
use authority::repository::Subnet;
use authority::{Directory, Error, Request, enrolment};
use identity::certificate::{CertificateRequest, Role};
use identity::{HostIdentity, Profile};
use tempfile::TempDir;
use wire::MacAddress;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;

fn random(seed: u8) -> impl FnMut(&mut [u8]) {
    let mut counter = 0u64;
    move |bytes| {
        for chunk in bytes.chunks_mut(32) {
            counter += 1;
            chunk.copy_from_slice(&identity::hash::sha256(&[&[seed], &counter.to_be_bytes()])[..chunk.len()]);
        }
    }
}

fn request(name: &str, last: u8) -> Request {
    Request::new(name, MacAddress([2, 0, 0, 0, 0, last]), vec![Ipv4Addr::new(10, 0, 0, last)]).expect("request")
}

fn new_site() -> (TempDir, Directory) {
    let place = tempfile::tempdir().expect("directory");
    let site = init(&place.path().join("site")).expect("site");
    (place, site)
}

fn init(path: &Path) -> Result<Directory, Error> {
    Directory::init(path, "lab", SITE_VALIDITY, Profile::Modern, &mut random(1), NOW_UNIX_S)
}

fn to(output: &Path) -> Delivery<'_> {
    Delivery { output, overwrite: Overwrite::Never, sharing: Sharing::Refused }
}

/// Every file below `directory` with its permission bits, without temporary ones.
fn tree(directory: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("listed") {
        let entry = entry.expect("entry");
        let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
        let name = entry.file_name().into_string().expect("text");
        if entry.path().is_dir() {
            found.extend(tree(&entry.path()).into_iter().map(|(inner, mode)| (format!("{name}/{inner}"), mode)));
        } else {
            found.push((name, mode));
        }
    }
    found.sort();
    found
}

#[test]
fn a_new_site_has_its_files_and_keeps_its_secrets() {
    let (place, _) = new_site();
    let expected = [
        ("site/ca.crt.pem", 0o644),
        ("site/ca.key.pem", 0o600),
        ("site/hosts.db", 0o600),
        ("site/issued/index.tsv", 0o644),
        ("site/request.key.pem", 0o600),
        ("site/site.key.pem", 0o600),
    ];
    assert_eq!(tree(place.path()), expected.map(|(name, mode)| (name.to_owned(), mode)));
    let mode = fs::metadata(place.path().join("site")).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
}

#[test]
fn a_site_is_never_overwritten() {
    let (place, _) = new_site();
    let before = fs::read(place.path().join("site/ca.key.pem")).expect("there");
    let again =
        Directory::init(&place.path().join("site"), "lab", SITE_VALIDITY, Profile::Modern, &mut random(2), NOW_UNIX_S);
    assert!(matches!(again.expect_err("refused").reason(), Error::SiteExists));
    assert_eq!(fs::read(place.path().join("site/ca.key.pem")).expect("there"), before);

    fs::write(place.path().join("note"), "mine").expect("written");
    assert!(matches!(init(&place.path().join("note")).expect_err("refused").reason(), Error::SiteExists));
    assert_eq!(fs::read(place.path().join("note")).expect("there"), b"mine");
    assert_eq!(tree(place.path()).len(), 7, "nothing is left behind");
}

#[test]
fn an_empty_directory_and_missing_parents_serve() {
    let place = tempfile::tempdir().expect("directory");
    fs::create_dir(place.path().join("empty")).expect("made");
    init(&place.path().join("empty")).expect("site");
    init(&place.path().join("one/two/site")).expect("site");
}

#[test]
fn one_step_writes_identity_record_and_index() {
    let (place, site) = new_site();
    let output = place.path().join("a.pem");
    let entry = site.issue_identity(&request("a", 1), &to(&output), &mut random(2), NOW_UNIX_S).expect("issued");
    let identity = HostIdentity::from_pem(&files::read(&output).expect("there")).expect("identity");
    assert_eq!(identity.certificate().serial_hex(), entry.serial);
    assert_eq!(fs::metadata(&output).expect("there").permissions().mode() & 0o777, 0o600);

    let opened = Directory::open(&place.path().join("site")).expect("opened");
    assert_eq!(opened.list().expect("list"), std::slice::from_ref(&entry));
    let record = files::read(&place.path().join(format!("site/issued/{}.pem", entry.serial))).expect("recorded");
    assert!(!record.contains("KEY"), "the site keeps no copy of the host's key");
    let index = files::read(&place.path().join("site/issued/index.tsv")).expect("there");
    let line =
        format!("{}\ta\thost\t02:00:00:00:00:01\t10.0.0.1\t2027-01-15T07:55:00Z\t2028-01-15T08:00:00Z", entry.serial);
    assert_eq!(index.lines().nth(1), Some(line.as_str()));
}

#[test]
fn by_file_writes_a_bundle_that_fits_the_key() {
    let (place, site) = new_site();
    let made = enrolment::request(&request("a", 1), &mut random(3)).expect("request");
    let proved = CertificateRequest::from_pem(&made.request_pem).expect("proved");
    let output = place.path().join("a.bundle.pem");
    site.issue(&request("a", 1), &proved, &to(&output), &mut random(2), NOW_UNIX_S).expect("issued");
    let bundle = files::read(&output).expect("there");
    assert!(!bundle.contains("PRIVATE"));
    assert_eq!(fs::metadata(&output).expect("there").permissions().mode() & 0o777, 0o600, "it holds the site key");
    assert!(enrolment::install(&made.key_pem, &bundle, NOW_UNIX_S).is_ok());
}

#[test]
fn after_an_error_nothing_was_issued() {
    let (place, site) = new_site();
    let taken = place.path().join("taken.pem");
    fs::write(&taken, "mine").expect("written");
    let before = tree(place.path());
    let issue = |output: &Path, unix_s| {
        site.issue_identity(&request("a", 1), &to(output), &mut random(2), unix_s).expect_err("refused")
    };
    assert!(matches!(issue(&taken, NOW_UNIX_S).reason(), Error::Exists));
    let missing = issue(&place.path().join("missing/a.pem"), NOW_UNIX_S);
    assert!(matches!(missing.reason(), Error::Io(_)));
    assert!(missing.to_string().starts_with(&format!("{}/missing/a.pem: No such file", place.path().display())));
    assert!(matches!(issue(&place.path().join("a.pem"), u64::MAX).reason(), Error::AuthorityExpired(_)));
    assert_eq!(tree(place.path()), before);
    assert_eq!(fs::read(&taken).expect("there"), b"mine");
    assert_eq!(site.list().expect("list"), []);
}

#[test]
fn force_replaces_the_output_only() {
    let (place, site) = new_site();
    let output = place.path().join("a.pem");
    fs::write(&output, "old").expect("written");
    let delivery = Delivery { overwrite: Overwrite::Force, ..to(&output) };
    for _ in 0..2 {
        site.issue_identity(&request("a", 1), &delivery, &mut random(fresh()), NOW_UNIX_S).expect("issued");
    }
    assert!(HostIdentity::from_pem(&files::read(&output).expect("there")).is_ok());
    assert_eq!(site.list().expect("list").len(), 2, "both certificates are on record");
}

/// Another seed with every call.
fn fresh() -> u8 {
    use std::sync::atomic::{AtomicU8, Ordering};
    static NEXT: AtomicU8 = AtomicU8::new(50);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn an_address_has_one_holder_until_its_certificate_expires() {
    let (place, site) = new_site();
    let week = request("a", 1).with_validity(Duration::from_secs(7 * 86_400)).expect("a week");
    let issue = |request: &Request, name: &str, sharing, unix_s| {
        let output = place.path().join(name);
        let delivery = Delivery { sharing, ..to(&output) };
        site.issue_identity(request, &delivery, &mut random(fresh()), unix_s).map(|_| ())
    };
    issue(&week, "1", Sharing::Refused, NOW_UNIX_S).expect("first holder");
    issue(&week, "2", Sharing::Refused, NOW_UNIX_S).expect("renewal");

    let same_mac = Request::new("b", MacAddress([2, 0, 0, 0, 0, 1]), vec![]).expect("request");
    let refused = issue(&same_mac, "3", Sharing::Refused, NOW_UNIX_S).expect_err("taken");
    assert!(matches!(refused, Error::MacTaken { ref holder, .. } if holder == "a"));
    let same_address =
        Request::new("b", MacAddress([2, 0, 0, 0, 0, 2]), vec![Ipv4Addr::new(10, 0, 0, 1)]).expect("request");
    let refused = issue(&same_address, "3", Sharing::Refused, NOW_UNIX_S).expect_err("taken");
    assert!(matches!(refused, Error::AddressTaken { ref holder, .. } if holder == "a"));

    issue(&same_address, "3", Sharing::Allowed, NOW_UNIX_S).expect("shared by choice");
    issue(&same_mac, "4", Sharing::Refused, NOW_UNIX_S + 8 * 86_400).expect("expired");
}

#[test]
fn two_managers_at_once_do_not_give_one_address_twice() {
    let (place, _) = new_site();
    let barrier = Barrier::new(4);
    let issue = |number: u8| {
        let site = Directory::open(&place.path().join("site")).expect("opened");
        let output = place.path().join(format!("{number}.pem"));
        let wanted = request(&format!("host-{number}"), 7);
        barrier.wait();
        site.issue_identity(&wanted, &to(&output), &mut random(number), NOW_UNIX_S).is_ok()
    };
    let issue = &issue;
    let successes = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || issue(number))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|&issued| issued).count()
    });
    assert_eq!(successes, 1);
    assert_eq!(Directory::open(&place.path().join("site")).expect("opened").list().expect("list").len(), 1);
}

#[test]
fn what_is_wrong_is_named_with_its_file() {
    let (place, site) = new_site();
    let path = place.path().join("site");
    let shown = |error: Error| error.to_string().replace(&place.path().display().to_string(), "PLACE");
    let no_site = shown(Directory::open(place.path()).expect_err("no site"));
    assert_eq!(no_site, "PLACE: no site is here; make one with 'ringwall site init' or give its directory");

    fs::write(path.join("issued/junk.pem"), "junk").expect("written");
    let listed = shown(site.list().expect_err("junk"));
    assert_eq!(listed, "PLACE/site/issued/junk.pem: the file holds no PEM block; give the right file");

    fs::copy(path.join("site.key.pem"), path.join("ca.key.pem")).expect("copied");
    let wrong_key = shown(Directory::open(&path).expect_err("wrong key"));
    assert_eq!(wrong_key, "PLACE/site/ca.key.pem: the file's PEM block is no PRIVATE KEY; give the right key file");

    fs::remove_file(path.join("site.key.pem")).expect("removed");
    let missing = shown(Directory::open(&path).expect_err("missing"));
    assert!(missing.starts_with("PLACE/site/site.key.pem: No such file"), "{missing}");
}

#[test]
fn a_foreign_record_is_not_taken_for_ones_own() {
    let (place, site) = new_site();
    let other =
        Directory::init(&place.path().join("other"), "lab", SITE_VALIDITY, Profile::Modern, &mut random(9), NOW_UNIX_S);
    let output = place.path().join("b.pem");
    let other = other.expect("site");
    let entry = other.issue_identity(&request("b", 2), &to(&output), &mut random(8), NOW_UNIX_S).expect("issued");
    let record = format!("issued/{}.pem", entry.serial);
    fs::copy(place.path().join("other").join(&record), place.path().join("site").join(&record)).expect("copied");
    assert!(matches!(site.list().expect_err("foreign").reason(), Error::Recorded(_)));
}

#[test]
fn a_staged_file_that_is_dropped_leaves_nothing() {
    let place = tempfile::tempdir().expect("directory");
    let target = place.path().join("x");
    drop(Staged::new(&target, "text", Secrecy::Secret, Overwrite::Never).expect("staged"));
    assert_eq!(tree(place.path()), []);

    let staged = Staged::new(&target, "text", Secrecy::Secret, Overwrite::Never).expect("staged");
    fs::write(&target, "another program was faster").expect("written");
    assert!(matches!(staged.commit().expect_err("refused").reason(), Error::Exists));
    assert_eq!(fs::read(&target).expect("there"), b"another program was faster");
    assert_eq!(tree(place.path()).len(), 1);
}

#[test]
fn files_that_cannot_be_keys_are_not_read() {
    let place = tempfile::tempdir().expect("directory");
    let target = place.path().join("x");
    fs::write(&target, vec![b'a'; 65 * 1024]).expect("written");
    assert!(matches!(files::read(&target).expect_err("refused").reason(), Error::TooLong));
    fs::write(&target, [0xff, 0xfe]).expect("written");
    assert!(matches!(files::read(&target).expect_err("refused").reason(), Error::Io(_)));
}

#[test]
fn every_host_can_prove_itself_to_the_distributors_that_its_identity_names() {
    let (place, site) = new_site();
    let mut seed = 1;
    let mut identity = |name: &str, number: u8, role: Role| {
        seed += 1;
        let output = place.path().join(format!("{name}.pem"));
        let delivery = Delivery { overwrite: Overwrite::Force, ..to(&output) };
        let asked = request(name, number).with_role(role);
        site.issue_identity(&asked, &delivery, &mut random(seed), NOW_UNIX_S).expect("issued");
        HostIdentity::from_pem(&files::read(&output).expect("there")).expect("identity")
    };
    let early = identity("early", 1, Role::Host);
    let (akd, akd2) = (identity("k", 9, Role::Distributor), identity("l", 10, Role::Distributor));
    let host = identity("a", 2, Role::Host);
    let names = |identity: &HostIdentity| {
        identity.distributors().iter().map(|certificate| certificate.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&early), names(&akd)), (vec![], vec!["k".to_owned()]));
    assert_eq!(
        (names(&akd2), names(&host)),
        (vec!["l".to_owned(), "k".to_owned()], vec!["k".to_owned(), "l".to_owned()])
    );
    let key = host.request_key().expect("there");
    let master = akd.request_master().expect("on a distributor");
    assert_eq!(master.key_of(key.host()).tag(b"x"), key.tag(b"x"));
    assert!(host.request_master().is_none(), "who has the master can speak for every host");
    let other = early.request_key().expect("there");
    assert!(other.host() != key.host() && other.tag(b"x") != key.tag(b"x"));

    let store = site.repository().expect("there");
    let entry = store.find(Ipv4Addr::new(10, 0, 0, 2)).expect("read").expect("entered");
    assert_eq!((entry.name.as_str(), entry.number, entry.mac), ("a", key.host(), Some(host.certificate().mac())));
    assert_eq!(Some((entry.algorithm, entry.key.as_slice())), host.certificate().record_key());
    let renewed = identity("a", 2, Role::Host);
    assert_eq!(renewed.request_key().expect("there").host(), key.host(), "a host keeps its number");
}

#[test]
fn a_renewal_that_fails_leaves_the_host_its_old_key() {
    let (place, site) = new_site();
    let output = place.path().join("a.pem");
    site.issue_identity(&request("a", 1), &to(&output), &mut random(2), NOW_UNIX_S).expect("issued");
    let before = site.repository().expect("there").by_name("a").expect("read").expect("entered");
    assert!(site.issue_identity(&request("a", 1), &to(&output), &mut random(3), NOW_UNIX_S).is_err(), "it exists");
    assert_eq!(site.repository().expect("there").by_name("a").expect("read"), Some(before));
}

#[test]
fn identities_name_the_dhcp_servers_and_the_repository_knows_where_addresses_may_be_given() {
    let (place, site) = new_site();
    let subnet: Subnet = "10.9.0.0/24".parse().expect("a subnet");
    let issue = |seed: u8, request: Request| {
        let output = place.path().join(format!("{}.pem", request.name()));
        site.issue_identity(&request, &to(&output), &mut random(seed), NOW_UNIX_S).expect("issued");
        HostIdentity::from_pem(&files::read(&output).expect("there")).expect("identity")
    };
    let server = issue(2, request("d", 9).with_role(Role::DhcpServer));
    let nowhere = Request::new("a", MacAddress([2, 0, 0, 0, 0, 1]), Vec::new()).expect("a request");
    let host = issue(3, nowhere.with_subnets(vec![subnet]).expect("one subnet"));
    let names = |identity: &HostIdentity| {
        identity.dhcp_servers().iter().map(|certificate| certificate.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&server), names(&host)), (vec!["d".to_owned()], vec!["d".to_owned()]));
    assert!(host.distributors().is_empty(), "a DHCP server distributes no keys");
    let store = site.repository().expect("there");
    let number = host.request_key().expect("there").host();
    let entry = store.by_number(number).expect("read").expect("entered");
    assert_eq!((entry.name.as_str(), entry.addresses.len(), entry.subnets), ("a", 0, vec![subnet]));
    let overlap = request("b", 2).with_subnets(vec!["10.0.0.0/8".parse().expect("a subnet")]);
    assert!(matches!(overlap, Err(Error::OwnSubnet(_))), "what is given must be told from what was certified");
    assert!("10.0.0.1/8".parse::<Subnet>().is_err() && "10.0.0.0".parse::<Subnet>().is_err());
}

#[test]
fn identities_name_no_distributor_that_is_revoked_or_something_else_by_now() {
    let (place, site) = new_site();
    let mut seed = 1;
    let mut names_after = |name: &str, number: u8, role: Role| {
        seed += 1;
        let output = place.path().join(format!("{name}.pem"));
        let delivery = Delivery { overwrite: Overwrite::Force, ..to(&output) };
        let asked = request(name, number).with_role(role);
        site.issue_identity(&asked, &delivery, &mut random(seed), NOW_UNIX_S + u64::from(seed)).expect("issued");
        let identity = HostIdentity::from_pem(&files::read(&output).expect("there")).expect("identity");
        identity.distributors().iter().map(|certificate| certificate.name().to_owned()).collect::<Vec<_>>()
    };
    for (name, number) in [("k", 9), ("l", 10), ("n", 11)] {
        names_after(name, number, Role::Distributor);
    }
    assert_eq!(names_after("a", 1, Role::Host), ["k", "l", "n"]);
    names_after("l", 10, Role::Host);
    assert!(site.revoke("k").expect("written"));
    assert_eq!(names_after("a", 1, Role::Host), ["n"]);
    assert!(!site.revoke("nobody").expect("read"));
    for number in 20..27 {
        names_after(&format!("more-{number}"), number, Role::Distributor);
    }
    assert_eq!(names_after("a", 1, Role::Host).len(), 8, "as many as hosts ask");
    let ninth = request("ninth", 30).with_role(Role::Distributor);
    let output = place.path().join("ninth.pem");
    let refused = site.issue_identity(&ninth, &to(&output), &mut random(99), NOW_UNIX_S).expect_err("one too many");
    assert!(matches!(refused.reason(), Error::TooManyDistributors));
}
