//! Another request master takes the place of the one before while hosts ask and distributors answer (record 0074).
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::time::Duration;

use bump::DropReason;
use common::{DISTRIBUTORS, Lan, MASTER, START_UNIX_S};
use identity::distributor::RequestMaster;
use identity::shared_keys::NO_END;
use identity::site_key::SiteKey;
use identity::{Generation, Succession, Term};
use sarp::SharedKeys;

const SECOND: Duration = Duration::from_secs(1);
/// From then on hosts prove themselves under the newer master, and until then the older one is
/// accepted; in seconds of the test.
const CHANGE_S: u64 = 30;
const END_S: u64 = 60;

fn masters() -> Succession<RequestMaster> {
    let older = Term { until_unix_s: START_UNIX_S + END_S, ..Term::FIRST };
    let newest = Term { generation: Generation(1), from_unix_s: START_UNIX_S + CHANGE_S, until_unix_s: NO_END };
    let [former, next] = [MASTER, [43; 32]].map(RequestMaster::from_bytes);
    Succession::new(vec![(older, former), (newest, next)]).unwrap()
}

/// A machine has asked for shared keys and been given both generations.
fn give(lan: &mut Lan, number: u8) {
    let masters = masters();
    let keys = SharedKeys {
        site_keys: SiteKey::from_bytes([1; 32]).into(),
        request_keys: masters.map(|master| master.key_of(u64::from(number))),
        masters: DISTRIBUTORS.contains(&number).then_some(masters),
    };
    lan.station(number).host.share(&keys);
}

/// Lets the test come to its second `at_s`.
fn run_until(lan: &mut Lan, at_s: u64) {
    let now = Duration::from_nanos(lan.now.as_nanos());
    lan.run(Duration::from_secs(at_s).saturating_sub(now));
}

/// Whether `one` learns where `other` is.
fn finds(lan: &mut Lan, one: u8, other: u8) -> bool {
    lan.ask(one, other);
    lan.run(4 * SECOND);
    lan.station(one).knows(other).is_some()
}

/// Requests that distributors took for those of nobody.
fn refused(lan: &mut Lan) -> u64 {
    DISTRIBUTORS.map(|number| lan.station(number).drops(DropReason::SarpRequestCheck)).iter().sum()
}

fn lan(hosts: u8) -> Lan {
    let mut lan = Lan::with_hosts(1, hosts);
    lan.run(SECOND);
    lan
}

/// Broke `Masters::share` by leaving what is given, then `follow` by never looking.
#[test]
fn each_machine_takes_another_master_when_it_likes_and_who_never_does_is_nobody_after_it() {
    let mut lan = lan(6);
    DISTRIBUTORS.into_iter().chain([1, 3, 4, 5, 6]).for_each(|number| give(&mut lan, number));
    assert!(finds(&mut lan, 1, 3) && finds(&mut lan, 2, 4), "handed out");
    run_until(&mut lan, CHANGE_S + 1);
    assert!(finds(&mut lan, 1, 4) && finds(&mut lan, 2, 5), "changed");
    assert_eq!(refused(&mut lan), 0);
    run_until(&mut lan, END_S + 1);
    assert!(finds(&mut lan, 1, 6), "over");
    assert_eq!(refused(&mut lan), 0, "hosts with both keys need one try");
    assert!(!finds(&mut lan, 2, 3), "host 2 has the former key alone");
    assert!(refused(&mut lan) > 0);
}

/// Broke `round` by leaving it at zero.
#[test]
fn a_distributor_that_has_not_fetched_the_other_master_is_asked_under_the_former() {
    let mut lan = lan(2);
    [1, 2].into_iter().for_each(|number| give(&mut lan, number));
    run_until(&mut lan, CHANGE_S + 1);
    assert!(finds(&mut lan, 1, 2));
    assert!(refused(&mut lan) > 0, "the newer one was tried first");
}

#[test]
fn a_host_whose_clock_is_wrong_meets_distributors_all_the_same() {
    let mut lan = lan(2);
    DISTRIBUTORS.into_iter().for_each(|number| give(&mut lan, number));
    run_until(&mut lan, END_S + 1);
    // A year behind, and without the time of the site: the former key counts there.
    lan.station(1).wall_error_s = -365 * 24 * 60 * 60;
    [1, 2].into_iter().for_each(|number| lan.restart(number));
    [1, 2].into_iter().for_each(|number| give(&mut lan, number));
    lan.run(3 * SECOND);
    assert!(finds(&mut lan, 1, 2));
}
