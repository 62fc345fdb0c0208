//! A site in files: nothing is overwritten, nothing is half done, nothing is issued twice.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod common;

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Barrier;
use std::time::Duration;

use authority::directory::{Cache, Delivery, Entry, Invitation, Restored, Sharing, caching};
use authority::enrolment::by_token::Applying;
use authority::files::{self, Overwrite, Secrecy, Staged};
use authority::limits::SITE_VALIDITY;
use authority::repository::enrolment::{Answer, Applicant};
use authority::repository::{Standing, Subnet};
use authority::{Directory, Error, Request, directory, enrolment, repository};
use common::random;
use identity::certificate::{CertificateRequest, Role};
use identity::distributor::RequestKey;
use identity::token::Token;
use identity::{HostIdentity, Profile};
use tempfile::TempDir;
use wire::MacAddress;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;

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
        ("site/dhcp.key.pem", 0o600),
        ("site/hosts.db", 0o600),
        ("site/issued/index.tsv", 0o644),
        ("site/request.key.pem", 0o600),
        ("site/revoked.crl.pem", 0o644),
        ("site/site.key.pem", 0o600),
    ];
    assert_eq!(tree(place.path()), expected.map(|(name, mode)| (name.to_owned(), mode)));
    let mode = fs::metadata(place.path().join("site")).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
}

#[test]
fn a_site_is_never_overwritten() {
    let (place, _) = new_site();
    let files = tree(place.path()).len();
    let before = fs::read(place.path().join("site/ca.key.pem")).expect("there");
    let again =
        Directory::init(&place.path().join("site"), "lab", SITE_VALIDITY, Profile::Modern, &mut random(2), NOW_UNIX_S);
    assert!(matches!(again.expect_err("refused").reason(), Error::SiteExists));
    assert_eq!(fs::read(place.path().join("site/ca.key.pem")).expect("there"), before);

    fs::write(place.path().join("note"), "mine").expect("written");
    assert!(matches!(init(&place.path().join("note")).expect_err("refused").reason(), Error::SiteExists));
    assert_eq!(fs::read(place.path().join("note")).expect("there"), b"mine");
    assert_eq!(tree(place.path()).len(), files + 1, "nothing is left behind");
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

/// A process that keeps what it has read sees what others do to the record all the same.
#[test]
fn what_others_do_to_the_record_is_seen_through_a_cache() {
    let (place, site) = new_site();
    let cache = Cache::default();
    let listed = || {
        let opened = Directory::open(&place.path().join("site")).expect("opened");
        caching(opened, &cache).list().map(|list| list.into_iter().map(|entry| entry.name).collect::<Vec<_>>())
    };
    let issue = |name: &str, last: u8| {
        let output = place.path().join(format!("{name}.pem"));
        let entry = site.issue_identity(&request(name, last), &to(&output), &mut random(last), NOW_UNIX_S);
        place.path().join(format!("site/issued/{}.pem", entry.expect("issued").serial))
    };
    let (b, a) = (issue("b", 2), issue("a", 1));
    assert_eq!(listed().expect("list"), ["a", "b"]);
    issue("c", 3);
    assert_eq!(listed().expect("list"), ["a", "b", "c"], "it was issued meanwhile");
    let good = fs::read(&a).expect("there");
    fs::write(&a, "no certificate").expect("written");
    let error = listed().expect_err("it is none any more");
    assert!(error.to_string().contains(&a.display().to_string()), "{error}");
    fs::write(&a, good).expect("written");
    fs::remove_file(&b).expect("removed");
    assert_eq!(listed().expect("list"), ["a", "c"]);
}

/// Another authority of the same name is none: what was good under the first one is not under it.
#[test]
fn what_a_cache_has_is_good_under_its_authority_alone() {
    let (place, site) = new_site();
    let cache = Cache::default();
    let output = place.path().join("a.pem");
    site.issue_identity(&request("a", 1), &to(&output), &mut random(2), NOW_UNIX_S).expect("issued");
    let open = || caching(Directory::open(&place.path().join("site")).expect("opened"), &cache);
    assert_eq!(open().list().expect("list").len(), 1);
    let other = place.path().join("other");
    Directory::init(&other, "lab", SITE_VALIDITY, Profile::Modern, &mut random(9), NOW_UNIX_S).expect("site");
    for file in ["ca.crt.pem", "ca.key.pem"] {
        fs::copy(other.join(file), place.path().join("site").join(file)).expect("copied");
    }
    assert!(matches!(open().list().map_err(|error| error.to_string()), Err(text) if text.contains("issued")));
}

/// It gets a line with each issue; one that has become too long, or is gone, is written anew.
#[test]
fn the_index_has_a_line_of_each_certificate() {
    let (place, site) = new_site();
    let file = place.path().join("site/issued/index.tsv");
    let issue = |name: &str, last: u8| {
        let output = place.path().join(format!("{name}.pem"));
        site.issue_identity(&request(name, last), &to(&output), &mut random(last), NOW_UNIX_S).expect("issued");
        let text = fs::read_to_string(&file).expect("there");
        let names = text.lines().skip(1).filter_map(|line| line.split('\t').nth(1));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!((issue("b", 2), issue("a", 1)), (vec!["b".to_owned()], vec!["b".to_owned(), "a".to_owned()]));
    // Lines of what was put away become most of it in the end.
    let other = "0".repeat(64 * 512 + 1);
    fs::write(&file, other).expect("written");
    assert_eq!(issue("c", 3), ["a", "b", "c"]);
    assert_eq!(issue("d", 4), ["a", "b", "c", "d"]);
    fs::remove_file(&file).expect("removed");
    assert_eq!(issue("e", 5), ["a", "b", "c", "d", "e"]);
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
    assert!(site.revoke("k", NOW_UNIX_S).expect("written").in_repository);
    assert_eq!(names_after("a", 1, Role::Host), ["n"]);
    assert!(!site.revoke("nobody", NOW_UNIX_S).expect("read").found());
    for number in 20..27 {
        names_after(&format!("more-{number}"), number, Role::Distributor);
    }
    assert_eq!(names_after("a", 1, Role::Host).len(), 8, "as many as hosts ask");
    let ninth = request("ninth", 30).with_role(Role::Distributor);
    let output = place.path().join("ninth.pem");
    let refused = site.issue_identity(&ninth, &to(&output), &mut random(99), NOW_UNIX_S).expect_err("one too many");
    assert!(matches!(refused.reason(), Error::TooManyDistributors));
}

// ---- Enrolment by token ----

const DAY: Duration = Duration::from_secs(86_400);

fn invitation(name: &str) -> Invitation {
    Invitation {
        name: name.to_owned(),
        role: Role::Host,
        mac: None,
        addresses: vec![],
        subnets: vec![],
        preapproved: false,
        by_service: false,
        validity: DAY * 30,
        valid: DAY,
    }
}

/// A site with the distributor "keys".
fn site_with_distributor() -> (TempDir, Directory) {
    let (place, site) = new_site();
    let keys = request("keys", 200).with_role(Role::Distributor);
    site.issue_identity(&keys, &to(&place.path().join("keys.pem")), &mut random(3), NOW_UNIX_S).expect("issued");
    (place, site)
}

/// A machine with this hardware address applies with `token`.
fn apply(site: &Directory, token: &Token, last: u8) -> Applying {
    let mac = MacAddress([2, 0, 0, 0, 0, last]);
    let applying = Applying::begin(token, mac, &[[10, 0, 0, last].into()], &mut random(last)).expect("begun");
    let (sealing_key, request) = (applying.sealing_key(), applying.request().to_vec());
    let applicant = Applicant { mac, sealing_key, request, asked_unix_s: NOW_UNIX_S };
    let store = site.repository().expect("there");
    assert_eq!(repository::enrolment::apply(&*store, token.number(), &applicant, NOW_UNIX_S), Ok(Answer::Waiting));
    applying
}

/// What the machine fetches, and the identity that it makes of it, with a clock of 1970.
fn fetch(site: &Directory, token: &Token, applying: &Applying) -> HostIdentity {
    let store = site.repository().expect("there");
    let answer = repository::enrolment::ask(&*store, token.number(), NOW_UNIX_S).expect("asked");
    let Answer::Approved(sealed) = answer else { panic!("{answer:?}") };
    applying.install(token, &sealed, 0).expect("installed").1
}

fn approve(site: &Directory, which: &str, fingerprint: Option<&str>) -> Result<Entry, Error> {
    site.approve(which, fingerprint, Sharing::Refused, &mut random(5), NOW_UNIX_S)
}

#[test]
fn a_host_enrols_by_token_and_the_manager_approves() {
    let (_place, site) = site_with_distributor();
    let token = site.invite(&invitation("desk"), &mut random(4), NOW_UNIX_S).expect("token");
    assert_eq!(token.distributors().len(), 1);
    assert!(matches!(approve(&site, "desk", None), Err(Error::NoApplicant(_))), "nobody has applied");
    let applying = apply(&site, &token, 7);
    let waiting = site.applications(NOW_UNIX_S).expect("listed");
    let asked = waiting[0].applicant.as_ref().expect("somebody");
    assert_eq!((asked.mac, &asked.addresses[..]), (MacAddress([2, 0, 0, 0, 0, 7]), &[[10, 0, 0, 7].into()][..]));
    assert_eq!(asked.fingerprint, applying.fingerprint());

    let wrong = approve(&site, "desk", Some("0000-0000-0000-0000-0000-0000-0000-0000")).expect_err("refused");
    assert!(wrong.to_string().contains(&applying.fingerprint()), "{wrong}");
    assert_eq!(site.list().expect("listed").len(), 1, "nothing was issued");
    let entry = approve(&site, "desk", Some(&applying.fingerprint().to_uppercase())).expect("approved");
    assert_eq!(entry.not_after_unix, NOW_UNIX_S + (DAY * 30).as_secs());
    let identity = fetch(&site, &token, &applying);
    assert_eq!(identity.certificate().addresses(), [Ipv4Addr::new(10, 0, 0, 7)], "as it asked");
    assert_eq!((identity.distributors().len(), identity.request_key().map(RequestKey::host)), (1, Some(2)));
    let known = site.repository().expect("there").by_name("desk").expect("read").expect("there");
    assert_eq!(Some((known.algorithm, &known.key[..])), identity.certificate().record_key());
    assert!(matches!(approve(&site, "desk", None), Err(Error::NoApplicant(_))), "once");
}

#[test]
fn what_a_token_says_is_not_the_hosts_to_ask_for() {
    let (_place, site) = site_with_distributor();
    let invitation = Invitation {
        addresses: vec![[10, 0, 0, 50].into()],
        role: Role::Router,
        mac: Some(MacAddress([2, 0, 0, 0, 0, 7])),
        ..invitation("gate")
    };
    let token = site.invite(&invitation, &mut random(4), NOW_UNIX_S).expect("token");
    let applying = apply(&site, &token, 7);
    approve(&site, &directory::number_text(token.number()), None).expect("approved by number");
    let certificate = fetch(&site, &token, &applying).certificate().clone();
    assert_eq!((certificate.addresses(), certificate.role()), (&[[10, 0, 0, 50].into()][..], Role::Router));
    for bad in [
        Invitation { valid: Duration::ZERO, ..invitation.clone() },
        Invitation { valid: DAY * 31, ..invitation.clone() },
        Invitation { name: "a b".to_owned(), ..invitation.clone() },
        Invitation { subnets: vec!["10.0.0.0/24".parse::<Subnet>().expect("subnet")], ..invitation.clone() },
    ] {
        assert!(site.invite(&bad, &mut random(9), NOW_UNIX_S).is_err(), "{bad:?}");
    }
    let (_other_place, alone) = new_site();
    let refused = alone.invite(&invitation, &mut random(4), NOW_UNIX_S).expect_err("nobody to ask");
    assert!(matches!(refused, Error::NoDistributor));
}

#[test]
fn addresses_of_others_are_not_approved_unless_they_may_be_shared() {
    let (_place, site) = site_with_distributor();
    let token = site.invite(&invitation("desk"), &mut random(4), NOW_UNIX_S).expect("token");
    apply(&site, &token, 200);
    assert!(matches!(approve(&site, "desk", None), Err(Error::MacTaken { .. })));
    site.approve("desk", None, Sharing::Allowed, &mut random(5), NOW_UNIX_S).expect("approved");
}

#[test]
fn who_is_refused_gets_nothing() {
    let (_place, site) = site_with_distributor();
    let token = site.invite(&invitation("desk"), &mut random(4), NOW_UNIX_S).expect("token");
    apply(&site, &token, 7);
    assert_eq!(site.refuse("desk", NOW_UNIX_S).expect("refused"), "desk");
    assert!(matches!(site.refuse("desk", NOW_UNIX_S), Err(Error::NoApplicant(_))));
    assert!(matches!(approve(&site, "desk", None), Err(Error::NoApplicant(_))));
    let store = site.repository().expect("there");
    assert_eq!(repository::enrolment::ask(&*store, token.number(), NOW_UNIX_S), Ok(Answer::Refused));
    assert_eq!(store.by_name("desk"), Ok(None));
}

#[test]
fn a_key_that_is_no_longer_the_hosts_alone_is_replaced() {
    let (place, site) = site_with_distributor();
    let subnet = "10.0.1.0/24".parse::<Subnet>().expect("subnet");
    let desk = request("desk", 7).with_subnets(vec![subnet]).expect("request");
    site.issue_identity(&desk, &to(&place.path().join("desk.pem")), &mut random(6), NOW_UNIX_S).expect("issued");
    let store = site.repository().expect("there");
    let known = || store.by_name("desk").expect("read").expect("there");
    let first = known();
    store.lease(first.number, [10, 0, 1, 9].into(), NOW_UNIX_S + 60, NOW_UNIX_S).expect("leased");

    // By file.
    let output = place.path().join("desk.bundle");
    let by_file = |request: &Request| {
        let made = enrolment::request(request, &mut random(8)).expect("made");
        let proved = CertificateRequest::from_pem(&made.request_pem).expect("request");
        site.rekey("desk", &proved, DAY, &to(&output), &mut random(9), NOW_UNIX_S)
    };
    assert!(matches!(by_file(&request("door", 7)), Err(Error::OtherHost)));
    assert!(matches!(by_file(&request("desk", 8)), Err(Error::OtherHost)));
    let entry = by_file(&request("desk", 7)).expect("another key");
    assert_eq!(entry.addresses, [Ipv4Addr::new(10, 0, 0, 7)], "what was lent is not certified");
    let second = known();
    assert!(second.key != first.key && second.number == first.number && second.subnets == [subnet]);
    assert!(matches!(by_file(&request("desk", 7)), Err(Error::SameKey)));
    let taken_back = || site.revocation_list().expect("readable").expect("there").len();
    assert_eq!(taken_back(), 1, "the certificate of the old key");

    // What the old key proves is out also if no bundle can be written.
    let made = enrolment::request(&request("desk", 7), &mut random(10)).expect("made");
    let proved = CertificateRequest::from_pem(&made.request_pem).expect("request");
    let nowhere = place.path().join("none/desk.bundle");
    site.rekey("desk", &proved, DAY, &to(&nowhere), &mut random(11), NOW_UNIX_S).expect_err("no such directory");
    assert_eq!((known().standing, taken_back()), (Standing::Revoked, 2));

    // By token.
    let no_host = site.rekey_by_token("door", DAY, DAY, &mut random(4), NOW_UNIX_S);
    assert!(matches!(no_host, Err(Error::NoHost(_))));
    let token = site.rekey_by_token("desk", DAY, DAY, &mut random(4), NOW_UNIX_S).expect("token");
    assert_eq!(known().standing, Standing::Revoked, "the old key is out at once");
    let applying = apply(&site, &token, 7);
    approve(&site, "desk", None).expect("approved");
    let identity = fetch(&site, &token, &applying);
    let third = known();
    assert_eq!((third.number, third.standing), (first.number, Standing::Good));
    assert_eq!(Some((third.algorithm, &third.key[..])), identity.certificate().record_key());
    assert_eq!(third.addresses, [Ipv4Addr::new(10, 0, 0, 7)]);
    assert_eq!(taken_back(), 2);
}

// ---- Backup ----

#[test]
fn a_site_comes_back_from_its_backup() {
    let (place, site) = site_with_distributor();
    let token = site.invite(&invitation("desk"), &mut random(4), NOW_UNIX_S).expect("token");
    let applying = apply(&site, &token, 7);
    let backup = place.path().join("site.backup");
    site.backup(&backup).expect("written");
    assert_eq!(fs::metadata(&backup).expect("there").permissions().mode() & 0o777, 0o600);
    assert!(matches!(site.backup(&backup).expect_err("there").reason(), Error::Exists));
    let (before, hosts) = (tree(&place.path().join("site")), site.repository().expect("there").list());
    fs::remove_dir_all(place.path().join("site")).expect("lost");

    let path = place.path().join("new/site");
    let restored = Directory::restore(&backup, &path, Restored::AsItWas).expect("restored");
    assert_eq!(tree(&path), before);
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
    assert_eq!(restored.repository().expect("there").list(), hosts);
    // It goes on where it was.
    approve(&restored, "desk", None).expect("approved");
    assert_eq!(fetch(&restored, &token, &applying).distributors().len(), 1);
    let again = Directory::restore(&backup, &path, Restored::AsItWas).expect_err("it is there");
    assert!(matches!(again.reason(), Error::SiteExists));
    assert_eq!(tree(place.path()).iter().filter(|(name, _)| name.contains(".new-")).count(), 0, "nothing left behind");
}

/// Broke `belongs` by letting every name pass: the file was there.
#[test]
fn a_file_that_is_no_backup_leaves_nothing() {
    let (place, site) = site_with_distributor();
    let backup = place.path().join("site.backup");
    site.backup(&backup).expect("written");
    let path = place.path().join("restored");
    let restore = |file: &Path| Directory::restore(file, &path, Restored::AsItWas).expect_err("refused");
    for (statement, what) in [
        ("INSERT INTO sqlar VALUES ('../evil', 420, 0, 1, x'00')", "a name that leads away"),
        ("UPDATE sqlar SET name = 'issued/../../evil.pem' WHERE name LIKE 'issued/%.pem'", "the same below issued"),
        ("UPDATE sqlar SET sz = 1 WHERE name = 'ca.key.pem'", "a length that is not its own"),
        ("DELETE FROM sqlar WHERE name = 'ca.key.pem'", "a site without its key"),
        ("PRAGMA application_id = 1", "another archive"),
        ("DROP TABLE sqlar", "an empty one"),
    ] {
        let changed = place.path().join("changed");
        fs::copy(&backup, &changed).expect("copied");
        rusqlite::Connection::open(&changed).expect("opened").execute_batch(statement).expect("changed");
        let refused = restore(&changed);
        assert!(!refused.to_string().contains('\n') && !path.exists(), "{what}: {refused}");
        assert!(!place.path().join("evil").exists() && !place.path().join("evil.pem").exists(), "{what}");
    }
    fs::write(place.path().join("text"), "no database").expect("written");
    assert!(matches!(restore(&place.path().join("text")).reason(), Error::NoBackup));
    assert!(matches!(restore(&place.path().join("missing")).reason(), Error::Io(_)));
}

#[test]
fn what_is_revoked_is_on_the_list_until_it_expires_and_what_is_issued_later_is_not() {
    let (place, site) = new_site();
    let issue = |name: &str, number: u8, seed: u8| {
        let output = place.path().join(format!("{name}.pem"));
        let delivery = Delivery { overwrite: Overwrite::Force, ..to(&output) };
        site.issue_identity(&request(name, number), &delivery, &mut random(seed), NOW_UNIX_S).expect("issued");
        let identity = HostIdentity::from_pem(&files::read(&output).expect("there")).expect("identity");
        identity.certificate().clone()
    };
    let list = || site.revocation_list().expect("readable").expect("there from the start");
    assert!(list().is_empty());
    let (first, second, other) = (issue("a", 1, 2), issue("a", 1, 3), issue("b", 2, 4));
    assert_eq!(site.revoke("a", NOW_UNIX_S).expect("written").certificates, 2);
    assert!(list().names(&first) && list().names(&second) && !list().names(&other));
    let again = issue("a", 1, 5);
    assert!(!list().names(&again), "another serial number");
    let before = list().issued_unix();
    assert_eq!(site.revoke("b", NOW_UNIX_S).expect("written").certificates, 1);
    assert!(list().names(&first) && list().names(&other) && !list().names(&again));
    assert!(list().issued_unix() > before, "newer, also within a second");
    let later = first.not_after_unix() + 1;
    site.revoke("nobody", later).expect("written");
    assert!(list().is_empty(), "expired certificates prove nothing anyway");
}

#[test]
fn a_list_that_another_authority_signed_or_somebody_changed_is_refused() {
    let (place, site) = new_site();
    let file = place.path().join("site/revoked.crl.pem");
    let own = fs::read_to_string(&file).expect("there");
    let other =
        Directory::init(&place.path().join("o"), "other", SITE_VALIDITY, Profile::Modern, &mut random(9), NOW_UNIX_S);
    drop(other.expect("made"));
    fs::copy(place.path().join("o/revoked.crl.pem"), &file).expect("copied");
    assert!(site.revocation_list().expect_err("foreign").to_string().contains("another site's authority"));
    let der = identity::pem::single(&own, identity::pem::REVOCATION_LIST).expect("one block");
    for at in 0..der.len() {
        let mut changed = der.to_vec();
        changed[at] ^= 1;
        assert!(site.site().anchor().verify_revocation_list(&changed).is_err(), "byte {at}");
    }
    // The reference implementation reads it, too.
    fs::write(&file, own).expect("written");
    let asked = std::process::Command::new("openssl")
        .args(["crl", "-noout", "-verify", "-CAfile"])
        .arg(place.path().join("site/ca.crt.pem"))
        .arg("-in")
        .arg(&file)
        .output();
    match asked {
        Ok(answer) => assert!(String::from_utf8_lossy(&answer.stderr).contains("verify OK"), "{answer:?}"),
        Err(error) => eprintln!("SKIPPED the check by openssl: {error}"),
    }
}
