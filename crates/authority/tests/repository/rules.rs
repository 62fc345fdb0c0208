//! What every repository does, whatever keeps it. Each rule is handed an empty one.

#[path = "tokens.rs"]
mod tokens;

use std::net::Ipv4Addr;

use authority::directory::Sharing;
use authority::limits::{MAX_ADDRESSES_PER_HOST, MAX_END_UNIX_S, MAX_KEY_LEN, MAX_NAME_LEN, MAX_SUBNETS_PER_HOST};
use authority::repository::{HostEntry, NewHost, Standing, Store, StoreError, Subnet};
use identity::certificate::Role;
use identity::certificate::names::BadNames;
use wire::MacAddress;

pub(crate) use tokens::*;

/// 2027-01-15T08:00:00Z.
const NOW_UNIX_S: u64 = 1_800_000_000;
const YEAR_S: u64 = 31_536_000;

/// Makes each rule a test of the repositories that `$new` makes. It is told the rule's name and gives the store and what keeps
/// its place; nothing where there can be no such store.
macro_rules! store_rules {
    ($new:path) => {
        store_rules! { $new:
            an_empty_repository_knows_nobody
            a_host_is_found_as_it_was_entered
            a_host_needs_no_address_and_no_mac
            numbers_begin_at_one_and_never_come_again
            a_known_name_is_renewed
            names_differ_by_case
            addresses_of_a_good_host_are_taken
            addresses_of_a_revoked_or_expired_host_are_free
            addresses_are_shared_where_that_is_allowed
            a_good_host_is_found_before_a_revoked_one
            a_key_is_replaced_only_by_who_knows_the_old_one
            a_key_of_a_revoked_host_stays
            where_an_address_is_shared_the_key_of_who_is_found_is_replaced
            a_manager_replaces_a_key_without_the_old_one
            revoking_twice_is_revoking
            an_address_is_given_and_taken
            no_address_is_given_to_two_good_hosts
            a_lease_ends_and_its_address_is_free_for_others
            leases_that_are_over_end_with_the_next_change
            an_address_is_free_however_many_leases_are_over
            a_lease_is_not_lost_by_what_happens_to_its_host
            addresses_are_given_to_good_hosts_only
            a_host_without_subnets_is_given_nothing
            a_host_is_given_no_more_addresses_than_it_may_have
            what_cannot_be_a_host_is_refused
            the_largest_host_fits
            a_bad_key_replaces_nothing
            changes_at_once_come_one_after_another
            a_token_is_kept_as_it_was_entered
            a_token_changes_only_from_what_it_was
            a_host_applies_is_approved_and_fetches
            who_applies_first_has_the_token
            a_token_that_is_over_is_closed_and_forgotten
            tokens_are_bounded_and_a_name_has_one
            of_hosts_that_apply_at_once_one_has_the_token
        }
    };
    ($new:path: $($rule:ident)*) => {
        $(#[test]
        fn $rule() {
            if let Some((_place, store)) = $new(stringify!($rule)) {
                rules::$rule(&store);
            }
        })*
    };
}
pub(crate) use store_rules;

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn subnet(network: [u8; 4], prefix_len: u8) -> Subnet {
    Subnet::new(network.into(), prefix_len).expect("subnet")
}

pub(crate) fn host(name: &str, last: u8) -> NewHost {
    NewHost {
        name: name.to_owned(),
        role: Role::Host,
        mac: Some(MacAddress([2, 0, 0, 0, 0, last])),
        addresses: vec![ip(last)],
        algorithm: 1,
        key: vec![last; 32],
        not_before_unix: NOW_UNIX_S,
        not_after_unix: NOW_UNIX_S + YEAR_S,
        subnets: vec![subnet([10, 0, 1, 0], 24)],
    }
}

fn add(store: &dyn Store, host: &NewHost) -> Result<u64, StoreError> {
    store.add(host, Sharing::Refused, NOW_UNIX_S)
}

fn added(store: &dyn Store, host: &NewHost) -> u64 {
    add(store, host).expect("added")
}

fn named(store: &dyn Store, name: &str) -> HostEntry {
    store.by_name(name).expect("asked").expect("known")
}

fn name_at(store: &dyn Store, ip: Ipv4Addr) -> Option<String> {
    store.find(ip).expect("asked").map(|host| host.name)
}

fn refusal<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> StoreError {
    outcome.expect_err("refused").reason().clone()
}

pub(crate) fn an_empty_repository_knows_nobody(store: &dyn Store) {
    assert_eq!(store.find(ip(1)), Ok(None));
    assert_eq!(store.by_name("alpha"), Ok(None));
    assert_eq!(store.list(), Ok(vec![]));
    assert_eq!(store.revoke("alpha"), Ok(false));
    assert_eq!(store.rekey("alpha", 1, &[1; 32]), Ok(false));
    assert_eq!(store.replace_key(ip(1), &[1; 32], 1, &[2; 32]), Ok(false));
    assert_eq!(store.unbind(1, ip(1)), Ok(false));
    assert_eq!(store.unbind(u64::MAX, ip(1)), Ok(false));
}

pub(crate) fn a_host_is_found_as_it_was_entered(store: &dyn Store) {
    let mut new = host("alpha", 1);
    new.role = Role::Router;
    new.algorithm = 255;
    new.key = (0..=255).collect();
    // Neither list is in the order of its numbers.
    new.addresses = vec![ip(9), ip(1), Ipv4Addr::new(255, 255, 255, 254), ip(5)];
    new.subnets = vec![subnet([192, 168, 0, 0], 16), subnet([10, 0, 0, 0], 8), subnet([0, 0, 0, 0], 0)];
    let number = added(store, &new);
    let wanted = HostEntry {
        number,
        name: new.name.clone(),
        role: new.role,
        mac: new.mac,
        addresses: new.addresses.clone(),
        algorithm: new.algorithm,
        key: new.key.clone(),
        standing: Standing::Good,
        not_before_unix: new.not_before_unix,
        not_after_unix: new.not_after_unix,
        subnets: new.subnets.clone(),
    };
    for address in &new.addresses {
        assert_eq!(store.find(*address), Ok(Some(wanted.clone())), "{address}");
    }
    assert_eq!(store.by_name("alpha"), Ok(Some(wanted.clone())));
    assert_eq!(store.list(), Ok(vec![wanted]));
}

pub(crate) fn a_host_needs_no_address_and_no_mac(store: &dyn Store) {
    let bare = |name: &str| NewHost { mac: None, addresses: vec![], subnets: vec![], ..host(name, 1) };
    added(store, &bare("alpha"));
    added(store, &bare("beta"));
    let alpha = named(store, "alpha");
    assert_eq!((alpha.mac, alpha.addresses, alpha.subnets), (None, vec![], vec![]));
}

pub(crate) fn numbers_begin_at_one_and_never_come_again(store: &dyn Store) {
    assert_eq!(added(store, &host("alpha", 1)), 1);
    assert_eq!(added(store, &host("beta", 2)), 2);
    // Neither a refused host nor a revoked one makes a number free.
    refusal(add(store, &NewHost { name: "gamma".to_owned(), ..host("beta", 2) }));
    assert_eq!(store.revoke("beta"), Ok(true));
    assert_eq!(added(store, &host("gamma", 3)), 3);
    assert_eq!(added(store, &host("beta", 2)), 2);
    let listed: Vec<u64> = store.list().expect("listed").iter().map(|host| host.number).collect();
    assert_eq!(listed, [1, 2, 3]);
}

pub(crate) fn a_known_name_is_renewed(store: &dyn Store) {
    let number = added(store, &host("alpha", 1));
    assert_eq!(store.revoke("alpha"), Ok(true));
    let renewed = NewHost {
        role: Role::Router,
        algorithm: 2,
        not_before_unix: NOW_UNIX_S + 5,
        subnets: vec![],
        ..host("alpha", 7)
    };
    assert_eq!(added(store, &renewed), number);
    let found = named(store, "alpha");
    assert_eq!((found.role, found.algorithm, found.standing), (Role::Router, 2, Standing::Good));
    assert_eq!((found.mac, found.addresses, found.key), (renewed.mac, vec![ip(7)], vec![7; 32]));
    assert_eq!((found.not_before_unix, found.subnets), (NOW_UNIX_S + 5, vec![]));
    assert_eq!(store.find(ip(1)), Ok(None), "it has left its old address");
    assert_eq!(store.list().expect("listed").len(), 1);
}

pub(crate) fn names_differ_by_case(store: &dyn Store) {
    added(store, &host("alpha", 1));
    assert_eq!(added(store, &host("Alpha", 2)), 2);
    assert_eq!(store.by_name("ALPHA"), Ok(None));
}

pub(crate) fn addresses_of_a_good_host_are_taken(store: &dyn Store) {
    added(store, &host("alpha", 1));
    let holder = || "alpha".to_owned();
    let same_mac = NewHost { addresses: vec![ip(2)], ..host("beta", 1) };
    let mac = MacAddress([2, 0, 0, 0, 0, 1]);
    assert_eq!(refusal(add(store, &same_mac)), StoreError::MacTaken { mac, holder: holder() });
    let same_address = NewHost { addresses: vec![ip(2), ip(1)], ..host("beta", 2) };
    let taken = StoreError::AddressTaken { address: ip(1), holder: holder() };
    assert_eq!(refusal(add(store, &same_address)), taken);
    assert_eq!(store.by_name("beta"), Ok(None), "nothing of a refused host is there");
    assert_eq!(store.find(ip(2)), Ok(None));
}

pub(crate) fn addresses_of_a_revoked_or_expired_host_are_free(store: &dyn Store) {
    added(store, &host("alpha", 1));
    let end = NOW_UNIX_S + YEAR_S;
    let heir = NewHost { not_after_unix: end + YEAR_S, ..host("beta", 1) };
    refusal(store.add(&heir, Sharing::Refused, end));
    assert_eq!(store.add(&heir, Sharing::Refused, end + 1), Ok(2));
    assert_eq!(name_at(store, ip(1)).as_deref(), Some("beta"), "its period ends later");
    // And now the first one cannot come back.
    refusal(store.add(&heir_of("alpha", &heir), Sharing::Refused, end + 1));
    assert_eq!(store.revoke("beta"), Ok(true));
    assert_eq!(store.add(&heir_of("gamma", &heir), Sharing::Refused, end + 1), Ok(3));
}

fn heir_of(name: &str, host: &NewHost) -> NewHost {
    NewHost { name: name.to_owned(), ..host.clone() }
}

pub(crate) fn addresses_are_shared_where_that_is_allowed(store: &dyn Store) {
    added(store, &host("alpha", 1));
    let other = NewHost { key: vec![9; 32], ..heir_of("beta", &host("alpha", 1)) };
    assert_eq!(store.add(&other, Sharing::Allowed, NOW_UNIX_S), Ok(2));
    assert_eq!(name_at(store, ip(1)).as_deref(), Some("beta"), "the same period, so the higher number");
    // Whoever shares an address is refused it once that is not allowed any more.
    refusal(add(store, &host("alpha", 1)));
}

pub(crate) fn a_good_host_is_found_before_a_revoked_one(store: &dyn Store) {
    added(store, &host("alpha", 1));
    let other = NewHost { not_after_unix: NOW_UNIX_S + 2 * YEAR_S, ..heir_of("beta", &host("alpha", 1)) };
    assert_eq!(store.add(&other, Sharing::Allowed, NOW_UNIX_S), Ok(2));
    assert_eq!(store.revoke("beta"), Ok(true));
    assert_eq!(name_at(store, ip(1)).as_deref(), Some("alpha"));
    assert_eq!(store.revoke("alpha"), Ok(true));
    assert_eq!(store.find(ip(1)).expect("asked").map(|host| host.standing), Some(Standing::Revoked));
}

pub(crate) fn a_key_is_replaced_only_by_who_knows_the_old_one(store: &dyn Store) {
    added(store, &host("alpha", 1));
    added(store, &host("beta", 2));
    assert_eq!(store.replace_key(ip(1), &[9; 32], 2, &[8; 65]), Ok(false));
    assert_eq!(named(store, "alpha").key, [1; 32]);
    assert_eq!(store.replace_key(ip(1), &[1; 32], 2, &[8; 65]), Ok(true));
    let found = named(store, "alpha");
    assert_eq!((found.algorithm, found.key), (2, vec![8; 65]));
    assert_eq!(store.replace_key(ip(1), &[1; 32], 1, &[7; 32]), Ok(false), "the old key counts once");
    assert_eq!(named(store, "beta").key, [2; 32]);
}

pub(crate) fn a_key_of_a_revoked_host_stays(store: &dyn Store) {
    added(store, &host("alpha", 1));
    assert_eq!(store.revoke("alpha"), Ok(true));
    assert_eq!(store.replace_key(ip(1), &[1; 32], 1, &[7; 32]), Ok(false));
    assert_eq!(store.rekey("alpha", 1, &[7; 32]), Ok(false));
    let found = named(store, "alpha");
    assert_eq!((found.key, found.standing), (vec![1; 32], Standing::Revoked));
}

pub(crate) fn where_an_address_is_shared_the_key_of_who_is_found_is_replaced(store: &dyn Store) {
    added(store, &host("alpha", 1));
    let other = NewHost { key: vec![9; 32], ..heir_of("beta", &host("alpha", 1)) };
    assert_eq!(store.add(&other, Sharing::Allowed, NOW_UNIX_S), Ok(2));
    assert_eq!(store.replace_key(ip(1), &[1; 32], 1, &[7; 32]), Ok(false));
    assert_eq!(store.replace_key(ip(1), &[9; 32], 1, &[7; 32]), Ok(true));
    assert_eq!((named(store, "alpha").key, named(store, "beta").key), (vec![1; 32], vec![7; 32]));
}

pub(crate) fn a_manager_replaces_a_key_without_the_old_one(store: &dyn Store) {
    added(store, &host("alpha", 1));
    assert_eq!(store.rekey("alpha", 2, &[8; 65]), Ok(true));
    let found = named(store, "alpha");
    assert_eq!((found.algorithm, found.key, found.addresses), (2, vec![8; 65], vec![ip(1)]));
}

pub(crate) fn revoking_twice_is_revoking(store: &dyn Store) {
    added(store, &host("alpha", 1));
    assert_eq!(store.revoke("alpha"), Ok(true));
    assert_eq!(store.revoke("alpha"), Ok(true));
    assert_eq!(named(store, "alpha").standing, Standing::Revoked);
}

pub(crate) fn an_address_is_given_and_taken(store: &dyn Store) {
    let number = added(store, &host("alpha", 1));
    let leased = Ipv4Addr::new(10, 0, 1, 7);
    assert_eq!(store.bind(number, leased, NOW_UNIX_S), Ok(()));
    assert_eq!(store.bind(number, leased, NOW_UNIX_S), Ok(()), "once more what it has already");
    assert_eq!(named(store, "alpha").addresses, [ip(1), leased]);
    assert_eq!(name_at(store, leased).as_deref(), Some("alpha"));
    assert_eq!(store.unbind(number, ip(1)), Ok(true));
    assert_eq!(store.unbind(number, ip(1)), Ok(false));
    assert_eq!(store.find(ip(1)), Ok(None));
    assert_eq!(named(store, "alpha").addresses, [leased]);
    // What was entered is not outside of anything, but what is given is.
    let back = store.bind(number, ip(1), NOW_UNIX_S);
    assert_eq!(refusal(back), StoreError::OutsideSubnets { name: "alpha".to_owned(), address: ip(1) });
}

pub(crate) fn no_address_is_given_to_two_good_hosts(store: &dyn Store) {
    let leased = Ipv4Addr::new(10, 0, 1, 7);
    let [one, two] = [("alpha", 1), ("beta", 2)].map(|(name, last)| added(store, &host(name, last)));
    assert_eq!(store.bind(one, leased, NOW_UNIX_S), Ok(()));
    let taken = StoreError::AddressTaken { address: leased, holder: "alpha".to_owned() };
    assert_eq!(refusal(store.bind(two, leased, NOW_UNIX_S)), taken);
    assert_eq!(store.unbind(one, leased), Ok(true));
    assert_eq!(store.bind(two, leased, NOW_UNIX_S), Ok(()));
    assert_eq!(store.revoke("beta"), Ok(true));
    assert_eq!(store.bind(one, leased, NOW_UNIX_S), Ok(()));
}

pub(crate) fn addresses_are_given_to_good_hosts_only(store: &dyn Store) {
    let leased = Ipv4Addr::new(10, 0, 1, 7);
    let number = added(store, &host("alpha", 1));
    let end = NOW_UNIX_S + YEAR_S;
    assert_eq!(refusal(store.bind(number, leased, end + 1)), StoreError::NotGood(number));
    assert_eq!(store.bind(number, leased, end), Ok(()));
    assert_eq!(store.revoke("alpha"), Ok(true));
    assert_eq!(refusal(store.bind(number, leased, NOW_UNIX_S)), StoreError::NotGood(number));
    for unknown in [0, number + 1, u64::MAX] {
        assert_eq!(refusal(store.bind(unknown, leased, NOW_UNIX_S)), StoreError::NotGood(unknown));
    }
}

pub(crate) fn a_host_without_subnets_is_given_nothing(store: &dyn Store) {
    let number = added(store, &NewHost { subnets: vec![], ..host("alpha", 1) });
    let outcome = store.bind(number, ip(2), NOW_UNIX_S);
    assert_eq!(refusal(outcome), StoreError::OutsideSubnets { name: "alpha".to_owned(), address: ip(2) });
}

pub(crate) fn a_host_is_given_no_more_addresses_than_it_may_have(store: &dyn Store) {
    let anywhere = NewHost { subnets: vec![subnet([0, 0, 0, 0], 0)], ..host("alpha", 1) };
    let number = added(store, &anywhere);
    for last in 2..=MAX_ADDRESSES_PER_HOST {
        assert_eq!(store.bind(number, ip(u8::try_from(last).expect("small")), NOW_UNIX_S), Ok(()));
    }
    let one_more = store.bind(number, ip(200), NOW_UNIX_S);
    assert_eq!(refusal(one_more), StoreError::BadNames(BadNames::TooMany));
    assert_eq!(named(store, "alpha").addresses.len(), MAX_ADDRESSES_PER_HOST);
    assert_eq!(store.unbind(number, ip(1)), Ok(true));
    let group = Ipv4Addr::new(224, 0, 0, 1);
    let bad = store.bind(number, group, NOW_UNIX_S);
    assert_eq!(refusal(bad), StoreError::BadNames(BadNames::Address(group.into())));
}

pub(crate) fn what_cannot_be_a_host_is_refused(store: &dyn Store) {
    let good = || host("alpha", 1);
    let many = (1..=1 + MAX_ADDRESSES_PER_HOST).map(|last| ip(u8::try_from(last).expect("small"))).collect();
    let long_name = "n".repeat(MAX_NAME_LEN + 1);
    let [zero, group] = [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST];
    let subnets = vec![subnet([10, 0, 0, 0], 8); MAX_SUBNETS_PER_HOST + 1];
    let cases = [
        (NewHost { name: String::new(), ..good() }, StoreError::BadName(String::new())),
        (NewHost { name: "a b".to_owned(), ..good() }, StoreError::BadName("a b".to_owned())),
        (NewHost { name: long_name.clone(), ..good() }, StoreError::BadName(long_name)),
        (NewHost { mac: Some(MacAddress::ZERO), ..good() }, StoreError::BadNames(BadNames::Mac(MacAddress::ZERO))),
        (NewHost { addresses: vec![zero], ..good() }, StoreError::BadNames(BadNames::Address(zero.into()))),
        (NewHost { addresses: vec![group], ..good() }, StoreError::BadNames(BadNames::Address(group.into()))),
        (NewHost { addresses: vec![ip(1), ip(1)], ..good() }, StoreError::BadNames(BadNames::Repeated(ip(1).into()))),
        (NewHost { addresses: many, ..good() }, StoreError::BadNames(BadNames::TooMany)),
        (NewHost { key: vec![], ..good() }, StoreError::BadKey),
        (NewHost { key: vec![1; MAX_KEY_LEN + 1], ..good() }, StoreError::BadKey),
        (NewHost { not_before_unix: good().not_after_unix + 1, ..good() }, StoreError::BadPeriod),
        (NewHost { not_after_unix: MAX_END_UNIX_S + 1, ..good() }, StoreError::BadPeriod),
        (NewHost { subnets, ..good() }, StoreError::TooManySubnets),
    ];
    for (host, reason) in cases {
        assert_eq!(refusal(add(store, &host)), reason);
    }
    assert_eq!(store.list(), Ok(vec![]));
}

pub(crate) fn the_largest_host_fits(store: &dyn Store) {
    let largest = NewHost {
        name: "n".repeat(MAX_NAME_LEN),
        addresses: (1..=MAX_ADDRESSES_PER_HOST).map(|last| ip(u8::try_from(last).expect("small"))).collect(),
        key: vec![255; MAX_KEY_LEN],
        not_before_unix: 0,
        not_after_unix: MAX_END_UNIX_S,
        subnets: vec![subnet([255, 255, 255, 255], 32); MAX_SUBNETS_PER_HOST],
        ..host("", 1)
    };
    assert_eq!(store.add(&largest, Sharing::Refused, u64::MAX), Ok(1));
    assert_eq!(named(store, &largest.name).key, largest.key);
}

pub(crate) fn a_bad_key_replaces_nothing(store: &dyn Store) {
    added(store, &host("alpha", 1));
    for bad in [vec![], vec![1; MAX_KEY_LEN + 1]] {
        assert_eq!(refusal(store.rekey("alpha", 1, &bad)), StoreError::BadKey);
        assert_eq!(refusal(store.replace_key(ip(1), &[1; 32], 1, &bad)), StoreError::BadKey);
    }
    assert_eq!(named(store, "alpha").key, [1; 32]);
}

/// Eight threads raise one key in turns by comparing it: none is lost and none counts twice.
pub(crate) fn changes_at_once_come_one_after_another(store: &dyn Store) {
    const THREADS: u8 = 8;
    const TURNS: u8 = 5;
    added(store, &NewHost { key: vec![0], ..host("alpha", 1) });
    let raise = || {
        let mut done = 0;
        while done < TURNS {
            let key = named(store, "alpha").key;
            done += u8::from(store.replace_key(ip(1), &key, 1, &[key[0] + 1]).expect("asked"));
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(raise))));
    assert_eq!(named(store, "alpha").key, [THREADS * TURNS]);
}

pub(crate) fn a_lease_ends_and_its_address_is_free_for_others(store: &dyn Store) {
    let (one, two) = (added(store, &host("one", 1)), added(store, &host("two", 2)));
    let leased = Ipv4Addr::new(10, 0, 1, 7);
    assert_eq!(store.lease(one, leased, NOW_UNIX_S + 60, NOW_UNIX_S), Ok(()));
    assert_eq!(store.find(leased).expect("asked").map(|host| host.number), Some(one));
    let taken = StoreError::AddressTaken { address: leased, holder: "one".to_owned() };
    assert_eq!(refusal(store.lease(two, leased, NOW_UNIX_S + 60, NOW_UNIX_S)), taken);
    // More time counts, less does not.
    assert_eq!(store.lease(one, leased, NOW_UNIX_S + 600, NOW_UNIX_S + 10), Ok(()));
    assert_eq!(store.lease(one, leased, NOW_UNIX_S + 60, NOW_UNIX_S + 20), Ok(()));
    assert_eq!(refusal(store.lease(two, leased, NOW_UNIX_S + 660, NOW_UNIX_S + 600)), taken);
    assert_eq!(store.lease(two, leased, NOW_UNIX_S + 660, NOW_UNIX_S + 601), Ok(()));
    assert_eq!(named(store, "one").addresses, [ip(1)], "what the certificate names stays");
    assert_eq!(store.find(leased).expect("asked").map(|host| host.number), Some(two));
    assert_eq!(store.unbind(two, leased), Ok(true));
    assert_eq!(store.bind(one, leased, NOW_UNIX_S + 601), Ok(()));
    // A bound address is no lease, whatever is said of it later.
    assert_eq!(store.lease(one, leased, NOW_UNIX_S + 700, NOW_UNIX_S + 601), Ok(()));
    assert!(store.lease(two, leased, NOW_UNIX_S + 9000, NOW_UNIX_S + 8000).is_err());
    let outside = store.lease(one, ip(200), NOW_UNIX_S + 60, NOW_UNIX_S);
    assert!(matches!(refusal(outside), StoreError::OutsideSubnets { .. }));
    assert_eq!(store.by_number(two).expect("asked").map(|host| host.name), Some("two".to_owned()));
    assert_eq!(store.by_number(99).expect("asked"), None);
}

/// Broke the etcd store by ending only what one change can end: the last addresses still had their host.
pub(crate) fn leases_that_are_over_end_with_the_next_change(store: &dyn Store) {
    let leased = |number: u64, last: usize| {
        Ipv4Addr::new(10, 0, 1, u8::try_from(usize::try_from(number).expect("small") * 20 + last).expect("small"))
    };
    let each = MAX_ADDRESSES_PER_HOST - 1;
    let numbers = [1, 2, 3].map(|last| added(store, &host(&format!("host-{last}"), last)));
    for (number, last) in numbers.iter().flat_map(|number| (0..each).map(move |last| (*number, last))) {
        let until = NOW_UNIX_S + if last == 0 { 1000 } else { 60 };
        assert_eq!(store.lease(number, leased(number, last), until, NOW_UNIX_S), Ok(()));
    }
    assert_eq!(named(store, "host-1").addresses.len(), MAX_ADDRESSES_PER_HOST);
    // The last second counts, and a change at an earlier time takes nothing back.
    added(store, &host("early", 4));
    assert_eq!(store.bind(numbers[0], leased(1, 0), NOW_UNIX_S + 60), Ok(()));
    assert_eq!(named(store, "host-3").addresses.len(), MAX_ADDRESSES_PER_HOST);
    assert_eq!(store.add(&host("late", 5), Sharing::Refused, NOW_UNIX_S + 61), Ok(5));
    for number in numbers {
        let found = store.by_number(number).expect("asked").expect("known");
        assert_eq!(found.addresses, [ip(u8::try_from(number).expect("small")), leased(number, 0)]);
        assert_eq!(name_at(store, leased(number, 1)), None);
        assert_eq!(name_at(store, leased(number, each - 1)), None);
    }
}

/// Broke the etcd store by not looking for the address in question first: it was still taken.
pub(crate) fn an_address_is_free_however_many_leases_are_over(store: &dyn Store) {
    let anywhere = |last| NewHost { subnets: vec![subnet([10, 0, 0, 0], 8)], ..host(&format!("host-{last}"), last) };
    let numbers = [1, 2, 3, 4, 5, 6, 7].map(|last| added(store, &anywhere(last)));
    let leased = |number: u64, last: u8| Ipv4Addr::new(10, 1, u8::try_from(number).expect("small"), last);
    for number in numbers {
        for last in 1..u8::try_from(MAX_ADDRESSES_PER_HOST).expect("small") {
            let until = NOW_UNIX_S + 60 * number;
            assert_eq!(store.lease(number, leased(number, last), until, NOW_UNIX_S), Ok(()));
        }
    }
    let heir = added(store, &anywhere(8));
    // Those that ended last are the last that are looked at.
    let [given, entered] = [1, 2].map(|last| leased(numbers[6], last));
    assert_eq!(store.lease(heir, given, NOW_UNIX_S + 3600, NOW_UNIX_S + 600), Ok(()));
    assert_eq!(name_at(store, given).as_deref(), Some("host-8"));
    let named_so = NewHost { addresses: vec![entered], ..host("host-9", 9) };
    assert_eq!(store.add(&named_so, Sharing::Refused, NOW_UNIX_S + 600), Ok(9));
    assert_eq!(name_at(store, entered).as_deref(), Some("host-9"));
    assert_eq!(named(store, "host-7").addresses, [ip(7)]);
}

/// A key, a revocation or more time with another address leaves a lease as it is; whoever renews a host ends its leases.
pub(crate) fn a_lease_is_not_lost_by_what_happens_to_its_host(store: &dyn Store) {
    let [one, two] = [("one", 1), ("two", 2)].map(|(name, last)| added(store, &host(name, last)));
    let [first, second] = [7, 8].map(|last| Ipv4Addr::new(10, 0, 1, last));
    assert_eq!(store.lease(one, first, NOW_UNIX_S + 60, NOW_UNIX_S), Ok(()));
    assert_eq!(store.lease(one, second, NOW_UNIX_S + 600, NOW_UNIX_S), Ok(()));
    // Bound once more: it stays a lease.
    assert_eq!(store.bind(one, first, NOW_UNIX_S), Ok(()));
    assert_eq!(store.replace_key(first, &[1; 32], 1, &[9; 32]), Ok(true));
    assert_eq!(store.rekey("one", 1, &[8; 32]), Ok(true));
    assert_eq!(store.lease(two, first, NOW_UNIX_S + 100, NOW_UNIX_S + 61), Ok(()));
    assert_eq!(named(store, "one").addresses, [ip(1), second]);
    assert_eq!(store.revoke("one"), Ok(true));
    assert_eq!(refusal(store.lease(one, second, NOW_UNIX_S + 900, NOW_UNIX_S + 62)), StoreError::NotGood(one));
    assert_eq!(named(store, "one").addresses, [ip(1), second]);
    // Renewed with the same address for good, it loses the lease and keeps the address.
    let renewed = NewHost { addresses: vec![ip(1), second], ..host("one", 1) };
    assert_eq!(store.add(&renewed, Sharing::Refused, NOW_UNIX_S + 63), Ok(one));
    assert_eq!(store.lease(two, first, NOW_UNIX_S + 9000, NOW_UNIX_S + 90), Ok(()));
    let taken = StoreError::AddressTaken { address: second, holder: "one".to_owned() };
    assert_eq!(refusal(store.lease(two, second, NOW_UNIX_S + 9000, NOW_UNIX_S + 1000)), taken);
    // Taken back and given anew, nothing of the old lease is left.
    assert_eq!(store.unbind(two, first), Ok(true));
    assert_eq!(store.bind(two, first, NOW_UNIX_S + 1000), Ok(()));
    added(store, &host("later", 3));
    assert_eq!(store.add(&host("last", 4), Sharing::Refused, NOW_UNIX_S + 10_000), Ok(4));
    assert_eq!(name_at(store, first).as_deref(), Some("two"));
}
