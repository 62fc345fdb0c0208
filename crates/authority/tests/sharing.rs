//! One site key follows another: who gets it, when it counts, and who gets nothing.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod common;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use authority::directory::{Change, Delivery, Given, Pace, Restored, Sharing, Terms};
use authority::files::{self, Overwrite};
use authority::limits::{SHARED_KEY_AFTER, SHARED_KEY_GRACE, SITE_VALIDITY};
use authority::{Directory, Error, Request, enrolment};
use common::random;
use identity::certificate::{CertificateRequest, Role};
use identity::host::{IdentityBlock, IdentityError};
use identity::shared_keys::NO_END;
use identity::{Generation, HostIdentity, Profile, Term, pem};
use tempfile::TempDir;
use wire::MacAddress;
use zeroize::Zeroizing;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;
const DAY_S: u64 = 24 * 60 * 60;

struct Stage {
    place: TempDir,
    site: Directory,
}

impl Stage {
    fn set() -> Stage {
        Stage::of(Profile::Modern)
    }

    fn of(profile: Profile) -> Stage {
        let place = tempfile::tempdir().expect("directory");
        let path = place.path().join("site");
        let site = Directory::init(&path, "lab", SITE_VALIDITY, profile, &mut random(1), NOW_UNIX_S);
        Stage { place, site: site.expect("site") }
    }

    fn issue(&self, number: u8, role: Role, unix_s: u64) -> Zeroizing<String> {
        self.issue_with(number, role, number + 10, unix_s)
    }

    /// With a key that follows from `seed`.
    fn issue_with(&self, number: u8, role: Role, seed: u8, unix_s: u64) -> Zeroizing<String> {
        let file: PathBuf = self.place.path().join(format!("{number}-{unix_s}.pem"));
        let mac = MacAddress([2, 0, 0, 0, 0, number]);
        let request = Request::new(&format!("h{number}"), mac, vec![Ipv4Addr::new(10, 0, 0, number)]);
        let delivery = Delivery { output: &file, overwrite: Overwrite::Never, sharing: Sharing::Refused };
        let request = request.expect("request").with_role(role);
        self.site.issue_identity(&request, &delivery, &mut random(seed), unix_s).expect("issued");
        files::read(&file).expect("written")
    }

    fn change(&mut self, seed: u8, unix_s: u64) -> Change {
        self.site.rekey_shared(Pace::default(), &mut random(seed), unix_s).expect("changed")
    }

    fn answer(&self, identity: &str, unix_s: u64) -> Result<String, Error> {
        let asked = CertificateRequest::from_pem(&enrolment::shared_keys(identity).expect("requested"));
        let terms = Terms { validity: Duration::from_secs(DAY_S), early: true, late: Duration::ZERO };
        let renewed = self.site.renew(&asked.expect("signed"), terms, &mut random(90), unix_s)?;
        assert_eq!(renewed.given, Given::SharedKeys);
        Ok(renewed.answer)
    }

    /// What the host has after it has asked for shared keys.
    fn asked(&self, identity: &str, unix_s: u64) -> Result<(Zeroizing<String>, HostIdentity), Error> {
        enrolment::renewed(identity, &self.answer(identity, unix_s)?, unix_s)
    }
}

fn generations(identity: &HostIdentity, unix_s: u64) -> Vec<u32> {
    identity.site_keys().accepted(unix_s).map(|(term, _)| term.generation.0).collect()
}

#[test]
fn hosts_fetch_the_next_key_beside_the_certificate_that_they_have() {
    let mut stage = Stage::set();
    let texts = [(1, Role::Host), (2, Role::Router), (3, Role::Distributor), (4, Role::DhcpServer)]
        .map(|(number, role)| stage.issue(number, role, NOW_UNIX_S));
    assert!(stage.asked(&texts[0], NOW_UNIX_S).is_err_and(|error| matches!(error, Error::NothingNew(Generation(0)))));
    let change = stage.change(60, NOW_UNIX_S + 5);
    let from_unix_s = NOW_UNIX_S + 5 + SHARED_KEY_AFTER.as_secs();
    let until_unix_s = from_unix_s + SHARED_KEY_GRACE.as_secs();
    let former = Generation(0);
    assert_eq!(change, Change { generation: Generation(1), from_unix_s, former, until_unix_s, given_up: None });
    for text in &texts {
        let before = HostIdentity::from_pem(text).expect("identity");
        let (text, after) = stage.asked(text, NOW_UNIX_S + 6).expect("given");
        assert_eq!(after.certificate().der(), before.certificate().der());
        assert_eq!(after.distributors().len(), before.distributors().len().max(1), "as the site has them now");
        let terms: Vec<Term> = after.site_keys().iter().map(|(term, _)| term).collect();
        let newest = Term { generation: Generation(1), from_unix_s, until_unix_s: NO_END };
        assert_eq!(terms, [Term { until_unix_s, ..Term::FIRST }, newest]);
        assert_eq!(generations(&after, from_unix_s), [1, 0]);
        let same = |old: &HostIdentity, new: &HostIdentity| {
            old.site_key().tag(b"x", &[]) == new.site_keys().iter().next().expect("two").1.tag(b"x", &[])
        };
        assert!(same(&before, &after), "the former one is still there");
        assert!(HostIdentity::from_pem(&text).is_ok());
    }
    // Nothing was issued for it, and who enrols now has both.
    assert_eq!(stage.site.list().expect("listed").len(), texts.len());
    let late = HostIdentity::from_pem(&stage.issue(5, Role::Host, NOW_UNIX_S + 7)).expect("identity");
    assert_eq!(generations(&late, NOW_UNIX_S + 7), [0, 1]);
    assert_eq!(generations(&late, until_unix_s + 1), [1]);
}

/// Broke `with_shared_keys` by giving a DHCP server no master.
#[test]
fn masters_change_with_the_site_key_and_go_to_whom_they_are_for() {
    let mut stage = Stage::set();
    let texts = [(1, Role::Host), (3, Role::Distributor), (4, Role::DhcpServer)]
        .map(|(number, role)| stage.issue(number, role, NOW_UNIX_S));
    let change = stage.change(60, NOW_UNIX_S + 5);
    let [host, distributor, dhcp] = texts.each_ref().map(|text| stage.asked(text, NOW_UNIX_S + 6).expect("given").1);
    let before = HostIdentity::from_pem(&texts[1]).expect("identity");
    let terms: Vec<Term> = host.site_keys().iter().map(|(term, _)| term).collect();
    let [requests, leases] = [distributor.request_masters(), dhcp.request_masters()];
    assert!(leases.is_none() && distributor.dhcp_masters().is_none() && host.request_masters().is_none());
    let requests = requests.expect("on a distributor");
    assert!(requests.iter().map(|(term, _)| term).eq(terms.iter().copied()));
    assert!(dhcp.dhcp_masters().expect("on a server").iter().map(|(term, _)| term).eq(terms));
    let tags = |identity: &HostIdentity| -> Vec<_> {
        let keys = identity.request_keys().expect("there");
        keys.iter().map(|(_, key)| key.tag(b"x").to_vec()).collect()
    };
    let number = host.request_key().expect("there").host();
    assert!(requests.iter().map(|(_, master)| master.key_of(number).tag(b"x").to_vec()).eq(tags(&host)));
    let former = before.request_master().expect("there").key_of(number).tag(b"x");
    assert!(tags(&host)[0] == former && tags(&host)[1] != former);
    // What a distributor of before the change knows ends with it.
    let over = change.until_unix_s + 1;
    assert_eq!(host.request_keys().expect("there").accepted(over).count(), 1);
    assert_eq!(requests.accepted(over).next().expect("one").0.generation, change.generation);
}

/// A site of before has changed its site key alone.
#[test]
fn masters_that_were_left_behind_catch_up() {
    let mut stage = Stage::set();
    let master = |stage: &Stage| files::read(&stage.place.path().join("site/request.key.pem")).expect("a file");
    let first = master(&stage);
    stage.change(60, NOW_UNIX_S);
    let file = stage.place.path().join("site/request.key.pem");
    std::fs::write(&file, first.as_bytes()).expect("written");
    let change = stage.change(61, NOW_UNIX_S + 30 * DAY_S);
    let identity = HostIdentity::from_pem(&stage.issue(1, Role::Distributor, NOW_UNIX_S + 30 * DAY_S)).expect("one");
    let generations = |terms: Vec<Term>| terms.into_iter().map(|term| term.generation.0).collect::<Vec<_>>();
    let of_masters = identity.request_masters().expect("there").iter().map(|(term, _)| term).collect();
    assert_eq!(generations(of_masters), [0, change.generation.0]);
    assert_eq!(generations(identity.site_keys().iter().map(|(term, _)| term).collect()), [1, 2]);
}

/// Broke `shared_keys` by not looking at the list, then by not looking at the key.
#[test]
fn who_was_taken_out_and_who_is_another_gets_none() {
    let mut stage = Stage::set();
    let (good, bad) = (stage.issue(1, Role::Host, NOW_UNIX_S), stage.issue(2, Role::Host, NOW_UNIX_S));
    stage.site.revoke("h2", NOW_UNIX_S + 1).expect("revoked");
    stage.change(60, NOW_UNIX_S + 1);
    let refused = stage.answer(&bad, NOW_UNIX_S + 2).expect_err("taken out").to_string();
    assert!(refused.contains("no certificate that is still good"), "{refused}");
    let answer = stage.answer(&good, NOW_UNIX_S + 2).expect("given");
    assert!(enrolment::renewed(&bad, &answer, NOW_UNIX_S + 2).is_err(), "it is sealed for another");
    // The same name, another key.
    let elsewhere = Stage::set().issue_with(1, Role::Host, 99, NOW_UNIX_S);
    let refused = stage.answer(&elsewhere, NOW_UNIX_S + 4).expect_err("another key").to_string();
    assert!(refused.contains("another key than its certificate"), "{refused}");
}

/// Broke `check_shared_keys` by taking keys without a signature, `Statement` by leaving the terms
/// out.
#[test]
fn keys_with_a_term_count_only_under_the_authoritys_signature() {
    let mut stage = Stage::set();
    let text = stage.issue(1, Role::Host, NOW_UNIX_S);
    let other = stage.issue(2, Role::Host, NOW_UNIX_S);
    stage.change(60, NOW_UNIX_S);
    let (text, _) = stage.asked(&text, NOW_UNIX_S).expect("given");
    let (other, _) = stage.asked(&other, NOW_UNIX_S).expect("given");
    let blocks = |text: &str| pem::blocks(text).expect("an identity");
    let with = |change: &dyn Fn(&mut Vec<u8>, &str)| {
        let mut whole = String::new();
        for block in blocks(&text) {
            let mut bytes = block.bytes.to_vec();
            change(&mut bytes, &block.label);
            let label =
                [pem::CERTIFICATE, pem::PRIVATE_KEY, pem::SITE_KEY, pem::REQUEST_KEY, pem::SHARED_KEYS_SIGNATURE]
                    .into_iter()
                    .find(|known| **known == block.label);
            if !bytes.is_empty() {
                whole.push_str(&pem::encode(label.expect("a known block"), &bytes));
            }
        }
        HostIdentity::from_pem(&whole).map(drop)
    };
    assert_eq!(with(&|_, _| {}), Ok(()));
    let missing = IdentityError::Missing(IdentityBlock::SharedKeysSignature);
    assert_eq!(
        with(&|bytes, label| if label == pem::SHARED_KEYS_SIGNATURE {
            bytes.clear()
        }),
        Err(missing)
    );
    for at in [0, 3, 11, 19, 20, 51] {
        let changed = with(&|bytes, label| {
            if label == pem::SITE_KEY && bytes[3] == 0 {
                bytes[at] ^= 1
            }
        });
        assert!(changed.is_err(), "byte {at}: another generation, time or key");
    }
    let of_other = blocks(&other).into_iter().find(|block| block.label == pem::SHARED_KEYS_SIGNATURE).expect("signed");
    let swapped = with(&|bytes, label| {
        if label == pem::SHARED_KEYS_SIGNATURE {
            *bytes = of_other.bytes.to_vec()
        }
    });
    assert_eq!(swapped, Err(IdentityError::SharedKeysNotSigned), "it was given to another host");
}

#[test]
fn an_older_bundle_takes_nothing_back() {
    let mut stage = Stage::set();
    let text = stage.issue(1, Role::Host, NOW_UNIX_S);
    stage.change(60, NOW_UNIX_S);
    let recorded = stage.answer(&text, NOW_UNIX_S).expect("given");
    let later = NOW_UNIX_S + 30 * DAY_S;
    stage.change(61, later);
    let (text, after) = stage.asked(&text, later).expect("given");
    assert_eq!(generations(&after, later), [1, 2]);
    let refused = enrolment::renewed(&text, &recorded, later).map(drop).expect_err("older").to_string();
    assert!(refused.contains("shared keys are older"), "{refused}");
}

/// Broke `begin` by beginning anew each time: who takes a host out every few days never changes the
/// key.
#[test]
fn a_change_under_way_is_taken_over_and_keeps_its_date_while_hosts_hear_of_it_in_time() {
    let mut stage = Stage::set();
    let first = stage.change(60, NOW_UNIX_S);
    let second = stage.change(61, NOW_UNIX_S + 4 * DAY_S);
    assert_eq!(
        (second.generation, second.former, second.given_up),
        (Generation(2), Generation(0), Some(Generation(1)))
    );
    assert_eq!((second.from_unix_s, second.until_unix_s), (first.from_unix_s, first.until_unix_s));
    // Too late for that date.
    let third = stage.change(62, NOW_UNIX_S + 6 * DAY_S);
    assert_eq!((third.generation, third.former, third.given_up), (Generation(3), Generation(0), Some(Generation(2))));
    assert_eq!(third.from_unix_s, NOW_UNIX_S + 6 * DAY_S + SHARED_KEY_AFTER.as_secs());
    // Within the grace: the one that only some clocks need is given up.
    let fourth = stage.change(63, third.from_unix_s + 60);
    assert_eq!((fourth.former, fourth.given_up), (Generation(3), Some(Generation(0))));
    let fifth = stage.change(64, fourth.until_unix_s + 1);
    assert_eq!((fifth.generation, fifth.former, fifth.given_up), (Generation(5), Generation(4), None));
    let late = HostIdentity::from_pem(&stage.issue(1, Role::Host, fourth.until_unix_s + 2)).expect("identity");
    assert_eq!(generations(&late, fourth.until_unix_s + 2), [4, 5]);
}

#[test]
fn a_backup_holds_both_keys() {
    let mut stage = Stage::set();
    stage.change(60, NOW_UNIX_S);
    let (backup, again) = (stage.place.path().join("backup"), stage.place.path().join("again"));
    stage.site.backup(&backup).expect("written");
    let restored = Directory::restore(&backup, &again, Restored::AsItWas).expect("restored");
    assert_eq!(*restored.site().site_keys().to_pem(), *stage.site.site().site_keys().to_pem());
    assert_eq!(restored.site().site_keys().newest().0.generation, Generation(1));
}

/// The second key of a paper site was lost: what came back held the certificate that names it, and
/// the host's file no key for it.
#[test]
fn a_host_of_a_paper_site_keeps_its_second_key() {
    let mut stage = Stage::of(Profile::Paper);
    let text = stage.issue(1, Role::Host, NOW_UNIX_S);
    stage.change(60, NOW_UNIX_S + 5);
    let (after, _) = stage.asked(&text, NOW_UNIX_S + 6).expect("given");
    let paper_key = |text: &str| {
        let blocks = pem::blocks(text).expect("an identity");
        blocks.into_iter().find(|block| block.label == pem::PAPER_KEY).map(|block| block.bytes.to_vec())
    };
    assert!(paper_key(&text).is_some_and(|key| paper_key(&after) == Some(key)));
}
