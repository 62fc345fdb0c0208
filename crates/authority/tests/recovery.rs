//! A site is lost and restored from an older backup: what it did after that comes back from its
//! hosts.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "common/counted.rs"]
mod counted;

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use authority::directory::{
    Brought, Delivery, Pace, Record, Restored, Sharing, Terms, acting, change_policy, missing, recover,
};
use authority::files::Overwrite;
use authority::repository::Standing;
use authority::{Directory, Error, Request, enrolment};
use identity::certificate::CertificateRequest;
use identity::policy::LegacyHost;
use identity::{Generation, HostIdentity, Profile, pem};
use wire::MacAddress;

use counted::random;

const START: u64 = 1_800_000_000;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const TERMS: Terms = Terms { validity: Duration::from_secs(60 * 24 * 60 * 60), early: true, late: Duration::ZERO };

struct Stage {
    place: tempfile::TempDir,
}

impl Stage {
    fn set() -> Stage {
        let place = tempfile::tempdir().expect("directory");
        let path = place.path().join("site");
        Directory::init(&path, "lab", 3650 * DAY, Profile::Modern, &mut random(), START).expect("founded");
        Stage { place }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("site")
    }

    fn site(&self) -> Directory {
        acting(Directory::open(&self.path()).expect("opened"), "tester")
    }

    /// The identity of a new host.
    fn issue(&self, number: u8, unix_s: u64) -> String {
        let output = self.place.path().join("host.pem");
        let delivery = Delivery { output: &output, overwrite: Overwrite::Force, sharing: Sharing::Refused };
        let address = Ipv4Addr::new(192, 0, 2, number);
        let request = Request::new(&name(number), MacAddress([2, 0, 0, 0, 0, number]), vec![address]);
        let request = request.expect("a request").with_validity(30 * DAY).expect("a month");
        self.site().issue_identity(&request, &delivery, &mut random(), unix_s).expect("issued");
        fs::read_to_string(output).expect("there")
    }

    fn renew(&self, own: &str, unix_s: u64) -> Result<String, Error> {
        let request = CertificateRequest::from_pem(&enrolment::renewal(own).expect("a request")).expect("signed");
        let answer = self.site().renew(&request, TERMS, &mut random(), unix_s)?.answer;
        enrolment::renewed(own, &answer, unix_s).map(|(text, _)| text.to_string())
    }

    fn add_to_policy(&self, number: u8, unix_s: u64) -> u64 {
        let (ip, mac) = (Ipv4Addr::new(192, 0, 2, number), MacAddress([2, 0, 0, 0, 1, number]));
        let host = LegacyHost { ip, mac, router: false, broadcast: false };
        let changed = change_policy(&self.site(), unix_s, |content| {
            content.legacy.push(host);
            Ok::<_, Error>(())
        });
        changed.expect("changed").version()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("there")
    }

    /// Loses the site and makes that of the backup.
    fn lose(&self) {
        fs::remove_dir_all(self.path()).expect("lost");
        Directory::restore(&self.place.path().join("backup"), &self.path(), Restored::AsItWas).expect("restored");
    }

    fn standing(&self, number: u8) -> Option<Standing> {
        let store = self.site().repository().expect("a repository");
        store.by_name(&name(number)).expect("read").map(|host| host.standing)
    }

    fn is_listed(&self, identity: &str) -> bool {
        let list = self.site().revocation_list().expect("read").expect("a list");
        list.names(load(identity).certificate())
    }
}

fn name(number: u8) -> String {
    format!("desk-{number}")
}

fn load(identity: &str) -> HostIdentity {
    HostIdentity::from_pem(identity).expect("an identity")
}

fn certificate(identity: &str) -> String {
    pem::encode(pem::CERTIFICATE, load(identity).certificate().der()).to_string()
}

#[test]
fn what_was_done_after_the_backup_comes_back_from_hosts() {
    let stage = Stage::set();
    let [before, later] = [START + 1000, START + 5000];
    let hosts: Vec<String> = (1..=3).map(|number| stage.issue(number, before)).collect();
    assert_eq!(stage.add_to_policy(90, before), 1);
    stage.site().backup(&stage.place.path().join("backup")).expect("kept");

    let [joined, unseen] = [6, 7].map(|number| stage.issue(number, later));
    let renewed = stage.renew(&hosts[0], later).expect("renewed");
    stage.site().revoke("desk-2", later).expect("revoked");
    stage.site().revoke("desk-7", later + 1).expect("revoked");
    let pace = Pace { after: Duration::ZERO, ..Pace::default() };
    let change = stage.site().rekey_shared(pace, &mut random(), later + 2).expect("changed");
    let fresh = stage.renew(&hosts[2], later + 3).expect("renewed");
    assert_eq!((stage.add_to_policy(91, later), stage.add_to_policy(92, later)), (2, 3));
    let (policy, revoked) = (stage.text("policy.pem"), stage.text("revoked.crl.pem"));
    stage.lose();
    assert!(!stage.is_listed(&hosts[1]) && stage.standing(6).is_none(), "a backup knows nothing of it");

    let certificates = [&joined, &renewed, &fresh, &hosts[0]].map(|text| certificate(text));
    let fresh_identity = load(&fresh);
    let brought = Brought {
        policy: Some(&policy),
        revoked: Some(&revoked),
        certificates: certificates.iter().map(String::as_str).collect(),
        identity: Some(&fresh_identity),
    };
    // Somebody did not wait, and the site has a newer list than its hosts.
    stage.site().revoke("desk-1", later + 99).expect("revoked");
    let mut site = stage.site();
    let found = recover(&mut site, &brought, later + 100).expect("recovered");
    assert_eq!(found.certificates.len(), 3, "the first of desk-1 is known");
    assert_eq!(found.policy.as_ref().map(|policy| policy.version()), Some(3));
    assert!(missing(&stage.site(), &brought, later + 100).expect("read").is_empty(), "there is nothing more");
    assert!(matches!(Record::open(&stage.path()).expect("opened").check(None), Ok(Ok(_))), "each act is told");

    assert_eq!(stage.add_to_policy(93, later + 101), 4, "which hosts take for newer than theirs");
    assert_eq!((stage.standing(6), stage.standing(2)), (Some(Standing::Good), Some(Standing::Revoked)));
    stage.site().revoke("desk-3", later + 102).expect("revoked");
    assert!([&hosts[1], &unseen, &hosts[2], &fresh].iter().all(|text| stage.is_listed(text)), "also who is unknown");
    assert!(stage.is_listed(&renewed), "as desk-1 is revoked here");
    assert!(!stage.is_listed(&joined));
    assert_eq!(stage.site().site().site_keys().newest().0.generation, change.generation);
    let again = stage.renew(&joined, later + 103).expect("a host of after the backup is renewed");
    assert_eq!(load(&again).generation(), change.generation);
    assert!(stage.renew(&hosts[1], later + 103).is_err(), "and one that was revoked is not");
}

#[test]
fn nothing_older_and_nothing_of_another_site_is_taken() {
    let (stage, other) = (Stage::set(), Stage::set());
    let own = stage.issue(1, START + 1000);
    stage.add_to_policy(90, START + 1000);
    let (policy, revoked) = (stage.text("policy.pem"), stage.text("revoked.crl.pem"));
    stage.add_to_policy(91, START + 2000);
    stage.site().revoke("desk-1", START + 2000).expect("revoked");
    let (identity, foreign) = (load(&own), load(&other.issue(1, START + 1000)));
    other.site().rekey_shared(Pace::default(), &mut random(), START + 2000).expect("changed");
    let later_foreign = load(&other.issue(2, START + 3000));
    assert!(later_foreign.generation() > Generation(0));
    let older =
        Brought { policy: Some(&policy), revoked: Some(&revoked), identity: Some(&identity), ..Brought::default() };
    assert!(missing(&stage.site(), &older, START + 5000).expect("read").is_empty());
    let keys = Brought { identity: Some(&later_foreign), ..Brought::default() };
    assert!(missing(&stage.site(), &keys, START + 5000).expect("read").is_empty());

    other.add_to_policy(90, START + 1000);
    other.site().revoke("desk-1", START + 9000).expect("revoked");
    let (policy, revoked) = (other.text("policy.pem"), other.text("revoked.crl.pem"));
    let refused = |brought: Brought<'_>| missing(&stage.site(), &brought, START + 9000).expect_err("foreign");
    assert!(matches!(refused(Brought { policy: Some(&policy), ..Brought::default() }), Error::Policy(_)));
    assert!(matches!(refused(Brought { revoked: Some(&revoked), ..Brought::default() }), Error::RevocationList(_)));
    let certificate = pem::encode(pem::CERTIFICATE, foreign.certificate().der());
    let brought = Brought { certificates: vec![&certificate], ..Brought::default() };
    assert!(matches!(refused(brought), Error::Recorded(_)));
}

#[test]
fn a_repository_that_outlived_the_site_knows_better() {
    let stage = Stage::set();
    let [before, later] = [START + 1000, START + 5000];
    stage.issue(1, before);
    stage.site().backup(&stage.place.path().join("backup")).expect("kept");
    let revoked = stage.issue(7, later);
    let rekeyed = stage.issue(8, later);
    stage.site().revoke("desk-7", later + 1).expect("revoked");
    stage.site().revoke("desk-8", later + 1).expect("revoked");
    let again = stage.issue(8, later + 10);
    let (list, repository) = (stage.text("revoked.crl.pem"), fs::read(stage.path().join("hosts.db")).expect("there"));
    stage.lose();
    // As a cluster of etcd would.
    fs::write(stage.path().join("hosts.db"), repository).expect("back");
    let certificates = [&revoked, &rekeyed].map(|text| certificate(text));
    let certificates: Vec<&str> = certificates.iter().map(String::as_str).collect();
    let brought = Brought { certificates: certificates.clone(), ..Brought::default() };
    recover(&mut stage.site(), &brought, later + 100).expect("recovered");
    assert_eq!(stage.standing(7), Some(Standing::Revoked), "no list was brought");
    let brought = Brought { certificates, revoked: Some(&list), ..Brought::default() };
    recover(&mut stage.site(), &brought, later + 200).expect("recovered");
    assert_eq!((stage.standing(7), stage.standing(8)), (Some(Standing::Revoked), Some(Standing::Good)));
    assert!(!stage.is_listed(&again) && stage.is_listed(&rekeyed));
}

#[test]
fn a_policy_of_the_same_version_is_made_the_next_one() {
    let stage = Stage::set();
    stage.site().backup(&stage.place.path().join("backup")).expect("kept");
    assert_eq!(stage.add_to_policy(90, START + 1000), 1);
    let policy = stage.text("policy.pem");
    stage.lose();
    assert_eq!(stage.add_to_policy(91, START + 2000), 1, "hosts have another one");
    let brought = Brought { policy: Some(&policy), ..Brought::default() };
    recover(&mut stage.site(), &brought, START + 3000).expect("recovered");
    let taken = authority::directory::policy(&stage.site()).expect("read").expect("a policy");
    assert_eq!(taken.version(), 2);
    assert_eq!(taken.content().legacy.first().map(|host| host.ip), Some(Ipv4Addr::new(192, 0, 2, 90)));
    assert!(missing(&stage.site(), &brought, START + 3000).expect("read").is_empty());
}

#[test]
fn a_host_that_was_let_in_again_is_good_whenever_it_brings_its_certificate() {
    let stage = Stage::set();
    stage.issue(8, START + 1000);
    stage.site().backup(&stage.place.path().join("backup")).expect("kept");
    stage.site().revoke("desk-8", START + 5000).expect("revoked");
    let again = stage.issue(8, START + 6000);
    let list = stage.text("revoked.crl.pem");
    stage.lose();
    recover(&mut stage.site(), &Brought { revoked: Some(&list), ..Brought::default() }, START + 7000).expect("once");
    assert_eq!(stage.standing(8), Some(Standing::Revoked), "it sleeps");
    let certificate = certificate(&again);
    let brought = Brought { certificates: vec![&certificate], ..Brought::default() };
    recover(&mut stage.site(), &brought, START + 8000).expect("again");
    assert_eq!(stage.standing(8), Some(Standing::Good));
    assert!(!stage.is_listed(&again));
}

#[test]
fn who_is_revoked_on_the_restored_site_stays_so_also_after_a_crash() {
    let stage = Stage::set();
    let first = stage.issue(1, START + 1000);
    stage.site().backup(&stage.place.path().join("backup")).expect("kept");
    let renewed = stage.renew(&first, START + 2000).expect("renewed");
    stage.lose();
    stage.site().revoke("desk-1", START + 3000).expect("revoked");
    let text = certificate(&renewed);
    let brought = Brought { certificates: vec![&text], ..Brought::default() };
    recover(&mut stage.site(), &brought, START + 4000).expect("recovered");
    assert_eq!((stage.standing(1), stage.is_listed(&renewed)), (Some(Standing::Revoked), true));
    // As if the machine had gone down before its certificate was listed.
    let list = stage.site().site().revocation_list(&[], START + 5000).expect("signed");
    fs::write(stage.path().join("revoked.crl.pem"), list).expect("written");
    recover(&mut stage.site(), &Brought::default(), START + 6000).expect("again");
    assert!(stage.is_listed(&renewed));
}
