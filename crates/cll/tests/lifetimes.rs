//! How long an association lives, and one key: no longer than either certificate, and no longer
//! than the limits.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::time::Duration;

use cll::Settings;
use common::{Lan, START_UNIX_S, Site, datagram, request, settings};
use wire::EtherType;

const HOUR: Duration = Duration::from_secs(3600);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Two hosts, of which one has a certificate for an hour, ten seconds before its end.
fn near_the_end(short: usize) -> Lan {
    let mut site = Site::new(1);
    let mut of = |number: u8, is_short: bool| {
        let request = if is_short { request(number).with_validity(HOUR).unwrap() } else { request(number) };
        settings(site.identity_for(request, START_UNIX_S))
    };
    let mut lan = Lan::new([of(1, short == 0), of(2, short == 1)]);
    // The first host starts 1000 s after the certificates were made.
    lan.pass(seconds(2590));
    lan.ask(0, 2);
    assert!(lan.hosts[1].established_with(1));
    lan
}

/// Seconds after which a datagram of `from` was last delivered to the other, one being sent each
/// second.
fn last_delivery(lan: &mut Lan, from: usize) -> u64 {
    let to = 1 - from;
    let mut last = 0;
    for second in 1..2400 {
        lan.pass(seconds(1));
        let before = lan.hosts[to].payloads(EtherType::IPV4).len();
        lan.send(from, datagram(from as u8 + 1, to as u8 + 1, b"still there"));
        if lan.hosts[to].payloads(EtherType::IPV4).len() > before {
            last = second;
        }
    }
    last
}

#[test]
fn no_association_outlives_the_certificate_of_either_side() {
    for short in [0, 1] {
        for from in [0, 1] {
            let last = last_delivery(&mut near_the_end(short), from);
            assert!((5..=12).contains(&last), "certificate of host {short}, sent by {from}: {last} s");
        }
    }
}

#[test]
fn a_replaced_association_does_not_outlive_the_certificate_either() {
    let mut lan = near_the_end(0);
    lan.restart(1);
    lan.pass(seconds(20));
    assert!(lan.hosts.iter().all(|host| host.cll.control.peers(lan.at).is_empty()));
}

/// A lifetime that both sides claim is cut to a day, and keys are replaced long before.
#[test]
fn keys_are_replaced_however_long_both_sides_want_to_keep_them() {
    let mut site = Site::new(1);
    let forever = |settings: Settings| Settings { lifetime: seconds(u64::from(u32::MAX)), ..settings };
    let mut lan = Lan::new([1, 2].map(|number| forever(settings(site.identity(number)))));
    lan.ask(0, 2);
    let peer = |lan: &Lan| lan.hosts[0].cll.control.peers(lan.at).remove(0);
    assert!(peer(&lan).remaining <= cll::limits::LIFETIME_MAX);
    let mut sent_under_one_key = seconds(0);
    let mut rollovers = 0;
    for _ in 0..6 * 60 {
        lan.pass(seconds(60));
        lan.send(0, datagram(1, 2, b"x"));
        lan.send(1, datagram(2, 1, b"x"));
        sent_under_one_key += seconds(60);
        if peer(&lan).rollovers > rollovers {
            (rollovers, sent_under_one_key) = (peer(&lan).rollovers, seconds(0));
        }
        assert!(sent_under_one_key <= cll::limits::REKEY_AFTER.mul_f32(1.1), "after {rollovers} rollovers");
    }
    assert!(rollovers >= 13, "{rollovers} in six hours");
}
