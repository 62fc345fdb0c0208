//! What every repository does with tokens, and what hosts and managers do to them.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use authority::enrolment::by_token::Applying;
use authority::limits::{APPROVAL_VALIDITY, MAX_ENROLMENTS};
use authority::repository::enrolment::{self, Answer, Applicant, Progress};
use authority::repository::{Enrolment, Store, StoreError, Subnet};
use identity::certificate::Role;
use identity::distributor::RequestMaster;
use identity::token::{Place, Token};
use wire::MacAddress;

use super::NOW_UNIX_S;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);
const HOUR_S: u64 = 3600;

/// A token for "desk" that nobody has used, good for an hour.
pub(crate) fn open_token(number: u64) -> Enrolment {
    Enrolment {
        number,
        name: "desk".to_owned(),
        role: Role::Router,
        mac: Some(MAC),
        addresses: vec![Ipv4Addr::new(10, 0, 0, 7), Ipv4Addr::new(10, 0, 0, 1)],
        subnets: vec![Subnet::new([10, 9, 0, 0].into(), 16).expect("subnet")],
        preapproved: true,
        validity: Duration::from_secs(86_400),
        until_unix_s: NOW_UNIX_S + HOUR_S,
        progress: Progress::AwaitsHost,
    }
}

fn applicant(seed: u8) -> Applicant {
    applicant_of(seed, MAC, "desk")
}

fn applicant_of(seed: u8, mac: MacAddress, name: &str) -> Applicant {
    let place = Place { ip: [10, 0, 0, 9].into(), mac };
    let token = Token::new(&RequestMaster::from_bytes([1; 32]), 1, b"authority", name, &[place]);
    let applying = Applying::begin(&token, mac, &[], &mut |bytes| bytes.fill(seed)).expect("begun");
    let (sealing_key, request) = (applying.sealing_key(), applying.request().to_vec());
    Applicant { mac, sealing_key, request, asked_unix_s: NOW_UNIX_S }
}

fn stored(store: &dyn Store, number: u64) -> Enrolment {
    store.enrolment(number).expect("asked").expect("there")
}

fn opened(store: &dyn Store, number: u64) -> Enrolment {
    let token = open_token(number);
    enrolment::open(store, std::slice::from_ref(&token), NOW_UNIX_S).expect("opened");
    token
}

pub(crate) fn a_token_is_kept_as_it_was_entered(store: &dyn Store) {
    let fetch = Progress::AwaitsFetch(applicant(1), (0..=255).collect());
    let all =
        [Progress::AwaitsHost, Progress::AwaitsManager(applicant(2)), fetch, Progress::Refused, Progress::Fetched];
    let tokens: Vec<Enrolment> =
        (10..).zip(all).map(|(number, progress)| Enrolment { progress, ..open_token(number) }).collect();
    for token in tokens.iter().rev() {
        assert_eq!(store.change_enrolment(None, Some(token)), Ok(true));
    }
    let bare =
        Enrolment { mac: None, addresses: vec![], subnets: vec![], preapproved: false, ..open_token(u64::MAX >> 1) };
    assert_eq!(store.change_enrolment(None, Some(&bare)), Ok(true));
    assert_eq!(store.enrolments().expect("asked"), [&tokens[..], &[bare]].concat());
    assert_eq!(store.enrolment(12), Ok(Some(tokens[2].clone())));
    assert_eq!((store.enrolment(9), store.enrolment(u64::MAX)), (Ok(None), Ok(None)));
    assert_eq!(store.list(), Ok(vec![]), "a token is no host");
}

pub(crate) fn a_token_changes_only_from_what_it_was(store: &dyn Store) {
    let token = open_token(1);
    let refused = Enrolment { progress: Progress::Refused, ..token.clone() };
    assert_eq!(store.change_enrolment(Some(&token), Some(&refused)), Ok(false), "it is not there");
    assert_eq!(store.change_enrolment(None, Some(&token)), Ok(true));
    assert_eq!(store.change_enrolment(None, Some(&refused)), Ok(false), "it is there already");
    assert_eq!(store.change_enrolment(Some(&refused), None), Ok(false), "it is another one");
    assert_eq!(store.change_enrolment(Some(&token), Some(&refused)), Ok(true));
    assert_eq!(store.enrolments(), Ok(vec![refused.clone()]));
    assert_eq!(store.change_enrolment(Some(&refused), None), Ok(true));
    assert_eq!(store.change_enrolment(None, None), Ok(true));
    assert_eq!(store.enrolments(), Ok(vec![]));
}

pub(crate) fn a_host_applies_is_approved_and_fetches(store: &dyn Store) {
    opened(store, 1);
    let host = applicant(1);
    let apply = |host: &Applicant, now| enrolment::apply(store, 1, host, now).expect("asked");
    let ask = |now| enrolment::ask(store, 1, now).expect("asked");
    assert_eq!(ask(NOW_UNIX_S), Answer::NotApplied);
    assert_eq!(apply(&host, NOW_UNIX_S), Answer::Waiting);
    // It asks again, some seconds later: what is kept is the first time.
    assert_eq!(apply(&Applicant { asked_unix_s: NOW_UNIX_S + 5, ..host.clone() }, NOW_UNIX_S + 5), Answer::Waiting);
    let asked = stored(store, 1);
    assert_eq!(asked.progress, Progress::AwaitsManager(host.clone()));
    assert_eq!((ask(NOW_UNIX_S), enrolment::close(store, 1, NOW_UNIX_S)), (Answer::Waiting, Ok(Answer::Waiting)));

    let approved_at = NOW_UNIX_S + HOUR_S;
    assert_eq!(enrolment::approve(store, &asked, &host, vec![1, 2, 3], approved_at), Ok(true));
    assert_eq!(enrolment::approve(store, &asked, &host, vec![4], approved_at), Ok(false), "once");
    // It can be fetched for longer than the token could be used.
    let later = approved_at + APPROVAL_VALIDITY.as_secs();
    assert_eq!(ask(later), Answer::Approved(vec![1, 2, 3]));
    assert_eq!(apply(&host, later), Answer::Approved(vec![1, 2, 3]));
    assert_eq!(apply(&applicant(2), later), Answer::OtherKey);
    assert_eq!(enrolment::close(store, 1, later), Ok(Answer::Fetched));
    assert_eq!((ask(later), apply(&applicant(2), later)), (Answer::Fetched, Answer::Fetched));
    assert_eq!(stored(store, 1).progress, Progress::Fetched, "nothing sealed stays");
}

/// Broke `what_is_wrong` by leaving the keys out: the second took the first one's place.
pub(crate) fn who_applies_first_has_the_token(store: &dyn Store) {
    opened(store, 1);
    let apply = |host: &Applicant| enrolment::apply(store, 1, host, NOW_UNIX_S).expect("asked");
    let elsewhere = MacAddress([2, 0, 0, 0, 0, 8]);
    assert_eq!(apply(&applicant_of(1, elsewhere, "desk")), Answer::OtherMac);
    assert_eq!(apply(&applicant_of(1, MAC, "door")), Answer::BadRequest);
    assert_eq!(apply(&Applicant { mac: MAC, ..applicant_of(1, elsewhere, "desk") }), Answer::BadRequest);
    let mut forged = applicant(1);
    *forged.request.last_mut().expect("bytes") ^= 1;
    assert_eq!(apply(&forged), Answer::BadRequest, "nobody holds its key");
    assert_eq!(apply(&applicant(1)), Answer::Waiting);
    assert_eq!(apply(&applicant(2)), Answer::OtherKey);
    assert_eq!(apply(&Applicant { sealing_key: [9; 32], ..applicant(1) }), Answer::OtherKey);
    let asked = stored(store, 1);
    assert_eq!(asked.progress, Progress::AwaitsManager(applicant(1)));
    assert_eq!(enrolment::refuse(store, &asked), Ok(true));
    assert_eq!((apply(&applicant(1)), apply(&applicant(2))), (Answer::Refused, Answer::Refused));
}

pub(crate) fn a_token_that_is_over_is_closed_and_forgotten(store: &dyn Store) {
    let host = applicant(1);
    assert_eq!(enrolment::apply(store, 1, &host, NOW_UNIX_S), Ok(Answer::NotOpen), "there is none");
    let token = opened(store, 1);
    assert_eq!(enrolment::apply(store, 1, &host, token.until_unix_s + 1), Ok(Answer::NotOpen));
    assert_eq!(store.enrolment(1), Ok(None), "who finds it over takes it away");
    let token = opened(store, 2);
    assert_eq!(enrolment::apply(store, 2, &host, token.until_unix_s), Ok(Answer::Waiting), "its last second");
    let asked = stored(store, 2);
    assert_eq!(enrolment::approve(store, &asked, &host, vec![1], NOW_UNIX_S), Ok(true));
    let over = NOW_UNIX_S + APPROVAL_VALIDITY.as_secs() + 1;
    assert_eq!(enrolment::sweep(store, over - 1).map(|left| left.len()), Ok(1));
    assert_eq!(enrolment::sweep(store, over), Ok(vec![]));
    assert_eq!(store.enrolments(), Ok(vec![]));
}

pub(crate) fn tokens_are_bounded_and_a_name_has_one(store: &dyn Store) {
    opened(store, 1);
    opened(store, 2);
    assert_eq!(enrolment::ask(store, 1, NOW_UNIX_S), Ok(Answer::NotOpen), "a later one took its place");
    let named = |number: u64| Enrolment { name: format!("n{number}"), ..open_token(number) };
    let many: Vec<Enrolment> = (3..=MAX_ENROLMENTS as u64 + 1).map(named).collect();
    assert_eq!(enrolment::open(store, &many, NOW_UNIX_S), Ok(()));
    let more = [named(MAX_ENROLMENTS as u64 + 2)];
    assert_eq!(enrolment::open(store, &more, NOW_UNIX_S), Err(StoreError::TooManyEnrolments));
    assert_eq!(store.enrolments().map(|all| all.len()), Ok(MAX_ENROLMENTS));
    // Others for names that have one are none more, and those that are over make room.
    let again = [open_token(9999), Enrolment { number: 9998, ..named(3) }];
    assert_eq!(enrolment::open(store, &again, NOW_UNIX_S), Ok(()));
    assert_eq!(store.enrolments().map(|all| all.len()), Ok(MAX_ENROLMENTS));
    let [more] = more;
    let late = [Enrolment { until_unix_s: u64::MAX >> 1, ..more }];
    assert_eq!(enrolment::open(store, &late, NOW_UNIX_S + 7200), Ok(()));
    assert_eq!(store.enrolments().map(|all| all.len()), Ok(1));
}

/// Distributors share nothing but the repository.
pub(crate) fn of_hosts_that_apply_at_once_one_has_the_token(store: &dyn Store) {
    opened(store, 1);
    let (waiting, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    let apply = |seed: u8| {
        let answer = enrolment::apply(store, 1, &applicant(seed), NOW_UNIX_S).expect("asked");
        assert!([Answer::Waiting, Answer::OtherKey].contains(&answer), "{answer:?}");
        let counted = if answer == Answer::Waiting { &waiting } else { &refused };
        counted.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for seed in 1..=8 {
            scope.spawn({
                let apply = &apply;
                move || apply(seed)
            });
        }
    });
    assert_eq!((waiting.into_inner(), refused.into_inner()), (1, 7));
}
