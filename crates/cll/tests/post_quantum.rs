//! ML-KEM inside an association, and pre-shared keys: who agrees to what, what waits for it, what
//! may be lost on the way, and what nobody can take out of it again.

mod common;

use std::time::Duration;

use bump::DropReason;
use cll::{PostQuantum, Settings};
use common::{Lan, Site, datagram, mac, settings};
use identity::pre_shared::PreSharedKey;
use wire::EtherType;
use wire::cll::PacketType;
use wire::cll::handshake::{set_site_tag, tagged_parts};

use PostQuantum::{Off, Prefer, Require};

const HYBRID: &str = "X25519+ML-KEM-768";
/// Lengths on the wire of the sealed messages of an exchange: 47 bytes around them.
const REQUEST_LEN: usize = 47 + 1216;
const REPLY_LEN: usize = 47 + 1120;
/// Where the offer's byte of compression and further secrets stands in a handshake message's frame.
const SECRETS_AT: usize = 14 + 82;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Two hosts, not yet acquainted.
fn strangers(sides: [PostQuantum; 2], configure: impl Fn(&mut Settings)) -> Lan {
    let mut site = Site::new(1);
    let mut lan = Lan::new([(1, sides[0]), (2, sides[1])].map(|(number, post_quantum)| {
        let mut settings = settings(site.identity(number));
        settings.post_quantum = post_quantum;
        configure(&mut settings);
        settings
    }));
    lan.seen.clear();
    lan
}

fn pair(sides: [PostQuantum; 2], configure: impl Fn(&mut Settings)) -> Lan {
    let mut lan = strangers(sides, configure);
    lan.ask(0, 2);
    lan
}

fn sealed_of(lan: &Lan, len: usize) -> Vec<(usize, Vec<u8>)> {
    let is_wanted = |frame: &[u8]| frame[14] == PacketType::Unicast.first_byte() && frame.len() == len;
    lan.seen.iter().filter(|(_, frame)| is_wanted(frame)).cloned().collect()
}

/// What the keys of the association in use come from.
fn agreement(lan: &Lan, host: usize) -> Option<String> {
    let peers = lan.hosts[host].cll.control.peers(lan.at);
    peers.into_iter().find(|peer| peer.state == "established").map(|peer| peer.agreement)
}

fn rollovers(lan: &Lan, host: usize) -> u32 {
    let peers = lan.hosts[host].cll.control.peers(lan.at);
    peers.iter().find(|peer| peer.state == "established").map_or(0, |peer| peer.rollovers)
}

fn assert_agreement(lan: &Lan, expected: &str) {
    assert_eq!([agreement(lan, 0), agreement(lan, 1)], [Some(expected.to_owned()), Some(expected.to_owned())]);
}

/// A datagram of each host reaches the other at once.
fn talk(lan: &mut Lan) {
    for (from, to) in [(0, 1), (1, 0)] {
        let before = lan.hosts[to].payloads(EtherType::IPV4).len();
        lan.send(from, datagram(from as u8 + 1, to as u8 + 1, b"there"));
        assert_eq!(lan.hosts[to].payloads(EtherType::IPV4).len(), before + 1, "from {from}");
    }
}

fn talk_for(lan: &mut Lan, time: Duration) {
    for _ in 0..time.as_millis() / 500 {
        lan.pass(Duration::from_millis(500));
        talk(lan);
    }
}

#[test]
fn hosts_that_both_do_it_have_a_secret_of_ml_kem_before_the_first_payload() {
    for sides in [[Prefer, Prefer], [Prefer, Require], [Require, Prefer], [Require, Require]] {
        let mut lan = pair(sides, |_| {});
        assert_eq!((sealed_of(&lan, REQUEST_LEN).len(), sealed_of(&lan, REPLY_LEN).len()), (1, 1));
        assert_agreement(&lan, HYBRID);
        talk(&mut lan);
        for host in [0, 1] {
            assert_eq!((lan.hosts[host].count("established"), lan.hosts[host].count("renewed")), (1, 0), "one event");
            assert_eq!(lan.hosts[host].ledger().balance(), 0);
        }
        assert_eq!(lan.hosts[0].payloads(EtherType::ARP).len(), 1, "the stack has its answer");
        lan.pass(seconds(40));
        assert_agreement(&lan, HYBRID);
        assert_eq!(lan.hosts[0].cll.control.peers(lan.at).len(), 1, "the first keys are gone");
    }
}

#[test]
fn with_a_host_that_does_without_prefer_does_without_and_require_refuses() {
    for sides in [[Prefer, Off], [Off, Prefer], [Off, Off]] {
        let mut lan = pair(sides, |_| {});
        talk(&mut lan);
        assert_agreement(&lan, "X25519");
        lan.pass(seconds(20));
        assert!(sealed_of(&lan, REQUEST_LEN).is_empty() && sealed_of(&lan, REPLY_LEN).is_empty());
    }
    for (sides, judge) in [([Require, Off], 0), ([Off, Require], 1)] {
        let mut lan = pair(sides, |_| {});
        lan.send(1, datagram(2, 1, b"let me in"));
        lan.pass(seconds(20));
        assert!(lan.hosts[judge].drops(DropReason::WeakOffer) > 0, "{sides:?}");
        assert_eq!([agreement(&lan, 0), agreement(&lan, 1)], [None, None]);
        let refused = |event: &cll::Event| event.to_string().contains("does without ML-KEM, which this host requires");
        assert!(lan.hosts[judge].events.iter().any(refused));
        assert!([0, 1].iter().all(|host| lan.hosts[*host].payloads(EtherType::IPV4).is_empty()));
    }
}

/// Whoever has the site key can make the tag of a changed message right, but not its signature.
fn strip(frame: &mut [u8], site_key: &identity::site_key::SiteKey) {
    frame[SECRETS_AT] &= !0x80;
    let (ethernet, message) = frame.split_at_mut(14);
    let [before, after] = tagged_parts(message);
    let tag = site_key.frame_tag(b"handshake", &[ethernet, before, after]);
    set_site_tag(message, &tag);
}

#[test]
fn nobody_on_the_way_takes_it_out_of_an_offer() {
    for (kind, judge) in [(PacketType::HandshakeRequest, 1), (PacketType::HandshakeReply, 0)] {
        let mut lan = strangers([Prefer, Prefer], |_| {});
        let site_key = lan.hosts[0].settings.identity.site_key().clone();
        lan.wire = Box::new(move |frame, _, _| {
            if frame[14] == kind.first_byte() {
                strip(frame, &site_key);
            }
            true
        });
        lan.ask(0, 2);
        lan.pass(seconds(3));
        assert!(lan.hosts[judge].drops(DropReason::BadSignature) > 0, "{kind:?}");
        assert_eq!([agreement(&lan, 0), agreement(&lan, 1)], [None, None], "{kind:?}");
    }
}

#[test]
fn whatever_message_is_lost_is_repeated_and_payload_waits_for_it() {
    for (len, count) in [(REQUEST_LEN, 1), (REQUEST_LEN, 2), (REPLY_LEN, 1), (REPLY_LEN, 2), (65, 1)] {
        let mut lan = strangers([Require, Require], |_| {});
        let mut left = count;
        lan.wire = Box::new(move |frame, _, _| {
            let is_lost = left > 0 && frame[14] == PacketType::Unicast.first_byte() && frame.len() == len;
            left -= usize::from(is_lost);
            !is_lost
        });
        lan.ask(0, 2);
        let waits = len != 65;
        assert_eq!(agreement(&lan, 0).is_none(), waits, "{count} of {len}");
        // What is sent meanwhile waits and arrives once.
        lan.send(0, datagram(1, 2, b"first"));
        lan.pass(seconds(8));
        assert_agreement(&lan, HYBRID);
        assert_eq!(lan.hosts[1].payloads(EtherType::IPV4).len(), 1, "{count} of {len}");
        talk(&mut lan);
        let requests = lan.seen.iter().filter(|(_, frame)| frame[14] == PacketType::HandshakeRequest.first_byte());
        assert_eq!(requests.count(), 2, "one, which was challenged, and no other handshake");
    }
}

#[test]
fn no_payload_moves_while_the_exchange_is_under_way_and_what_waits_is_given_up_with_it() {
    let mut lan = strangers([Require, Prefer], |_| {});
    lan.wire = Box::new(|frame, _, _| frame.len() != REPLY_LEN);
    lan.ask(0, 2);
    for host in [0, 1] {
        let (from, to) = (host as u8 + 1, 2 - host as u8);
        lan.send(host, datagram(from, to, b"too early"));
        assert_eq!(lan.hosts[host].cll.lanes[0].sending_to(), 0);
        let peers = lan.hosts[host].cll.control.peers(lan.at);
        assert!(peers.iter().any(|peer| peer.state == "agreeing" && peer.agreement == "X25519"), "{peers:?}");
        assert!(!lan.hosts[host].established_with(to));
    }
    lan.pass(seconds(60));
    let early = 14 + 33 + 28 + b"too early".len();
    assert!(sealed_of(&lan, early).is_empty(), "neither under these keys nor under others");
    for host in [0, 1] {
        assert_eq!(lan.hosts[host].payloads(EtherType::IPV4).len(), 0);
        assert!(lan.hosts[host].drops(DropReason::HoldExpired) > 0);
        assert!(lan.hosts[host].events.iter().any(|event| event.to_string().contains("did not come to an end")));
        assert_eq!(lan.hosts[host].cll.lanes[0].held_bytes(), 0);
    }
}

#[test]
fn messages_of_an_exchange_mean_nothing_a_second_time_or_elsewhere() {
    let mut lan = pair([Require, Require], |_| {});
    let request = sealed_of(&lan, REQUEST_LEN).remove(0).1;
    let reply = sealed_of(&lan, REPLY_LEN).remove(0).1;
    lan.inject(1, request.clone());
    lan.inject(0, reply.clone());
    assert_eq!([lan.hosts[1].drops(DropReason::Replayed), lan.hosts[0].drops(DropReason::Replayed)], [1, 1]);
    talk(&mut lan);
    lan.restart(1);
    lan.inject(1, request);
    assert_eq!(lan.hosts[1].drops(DropReason::UnknownIndex), 1);
    lan.pass(seconds(3));
    lan.inject(0, reply);
    talk(&mut lan);
    assert_agreement(&lan, HYBRID);
}

#[test]
fn a_rollover_keeps_the_secret_and_a_fresh_one_follows_it() {
    let mut lan = pair([Require, Require], |settings| settings.rekey_every = Some(seconds(10)));
    talk_for(&mut lan, seconds(60));
    for host in [0, 1] {
        assert!((3..=6).contains(&rollovers(&lan, host)), "{} rollovers", rollovers(&lan, host));
        assert_eq!(lan.hosts[host].count("renewed") as u32, rollovers(&lan, host), "an exchange is no news");
        assert_eq!(lan.hosts[host].count("established"), 1);
    }
    assert_agreement(&lan, HYBRID);
    let exchanges = sealed_of(&lan, REQUEST_LEN).len() as u32;
    assert!(exchanges > rollovers(&lan, 0), "{exchanges} exchanges");
    assert!(exchanges <= rollovers(&lan, 0) + 2, "{exchanges} exchanges");
}

#[test]
fn a_rollover_needs_no_exchange_to_stay_secret() {
    let mut lan = pair([Require, Require], |settings| settings.rekey_every = Some(seconds(10)));
    let mut left_alone = 1;
    lan.wire = Box::new(move |frame, _, _| {
        left_alone -= i32::from(left_alone > 0 && frame.len() == REPLY_LEN);
        frame.len() != REQUEST_LEN
    });
    talk_for(&mut lan, seconds(40));
    assert!(rollovers(&lan, 0) >= 2);
    assert_agreement(&lan, HYBRID);
}

#[test]
fn a_resumption_carries_payload_at_once_and_a_fresh_secret_follows_it() {
    let mut lan = pair([Require, Require], |settings| settings.resumption = Some(seconds(3600)));
    lan.pass(seconds(4));
    lan.restart(0);
    lan.seen.clear();
    lan.ask(0, 2);
    assert_agreement(&lan, HYBRID);
    assert!(sealed_of(&lan, REQUEST_LEN).is_empty(), "the ticket's secret is as good");
    assert_eq!([0, 1].map(|host| lan.hosts[host].count("resumed")), [1, 1]);
    talk(&mut lan);
    lan.pass(seconds(3));
    assert_eq!(sealed_of(&lan, REQUEST_LEN).len(), 1);
    assert_agreement(&lan, HYBRID);
    talk(&mut lan);
    lan.pass(seconds(40));
    assert_eq!(sealed_of(&lan, REQUEST_LEN).len(), 1, "once");
}

#[test]
fn a_ticket_of_an_association_without_it_leads_to_one_that_waits() {
    let mut lan = pair([Prefer, Off], |settings| settings.resumption = Some(seconds(3600)));
    lan.pass(seconds(4));
    for host in [0, 1] {
        lan.hosts[host].settings.post_quantum = Require;
        lan.restart(host);
    }
    lan.seen.clear();
    lan.ask(0, 2);
    assert!(lan.seen.iter().any(|(_, frame)| frame[14] == PacketType::ResumptionReply.first_byte()));
    assert_eq!(sealed_of(&lan, REQUEST_LEN).len(), 1);
    assert_agreement(&lan, HYBRID);
    talk(&mut lan);
}

#[test]
fn both_ask_at_once_and_agree_on_one_exchange() {
    let mut lan = strangers([Require, Require], |_| {});
    for (host, number) in [(0, 2), (1, 1)] {
        lan.hosts[host].is_busy = true;
        lan.ask(host, number);
    }
    for host in [0, 1] {
        lan.hosts[host].is_busy = false;
    }
    lan.settle();
    lan.pass(seconds(4));
    assert_agreement(&lan, HYBRID);
    talk(&mut lan);
}

#[test]
fn lost_jobs_are_tried_again() {
    for loser in [0, 1] {
        let mut lan = strangers([Require, Require], |_| {});
        lan.wire = Box::new(|frame, _, _| frame.len() != REQUEST_LEN && frame.len() != REPLY_LEN);
        lan.ask(0, 2);
        lan.wire = Box::new(|_, _, _| true);
        lan.hosts[loser].loses_jobs = true;
        lan.pass(seconds(2));
        lan.hosts[loser].loses_jobs = false;
        lan.pass(seconds(9));
        assert_agreement(&lan, HYBRID);
        talk(&mut lan);
    }
}

#[test]
fn a_handshake_beside_an_association_interrupts_nothing() {
    let mut lan = pair([Require, Require], |_| {});
    talk(&mut lan);
    // Host 1 hears nothing sealed any more and opens a handshake beside, whose exchange cannot come
    // to an end.
    lan.wire = Box::new(|frame, from, _| from == 0 || frame[14] != PacketType::Unicast.first_byte());
    for _ in 0..24 {
        lan.send(0, datagram(1, 2, b"anybody there"));
        lan.pass(Duration::from_millis(500));
    }
    let delivered = lan.hosts[1].payloads(EtherType::IPV4).len();
    assert_eq!(delivered, 25, "while the exchange goes on, the old keys carry payload");
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(10));
    assert_agreement(&lan, HYBRID);
    talk(&mut lan);
}

fn key(seed: u8) -> PreSharedKey {
    PreSharedKey::from_bytes([seed; 32])
}

/// Two hosts with these pre-shared keys, the first one used.
fn keyed(sides: [&[u8]; 2], post_quantum: PostQuantum, resumption: Option<Duration>) -> Lan {
    let mut site = Site::new(1);
    Lan::new([(1, sides[0]), (2, sides[1])].map(|(number, seeds)| {
        let mut settings = settings(site.identity(number));
        settings.pre_shared = seeds.iter().copied().map(key).collect();
        (settings.post_quantum, settings.resumption) = (post_quantum, resumption);
        settings
    }))
}

#[test]
fn a_pre_shared_key_goes_in_beside_ml_kem_or_without_it() {
    for (post_quantum, expected) in [(Off, "X25519+PSK"), (Prefer, "X25519+ML-KEM-768+PSK")] {
        let mut lan = keyed([&[1], &[1]], post_quantum, None);
        lan.ask(0, 2);
        assert_agreement(&lan, expected);
        talk(&mut lan);
    }
}

#[test]
fn hosts_with_different_pre_shared_keys_or_none_have_no_association_and_their_operators_hear_why() {
    for (sides, judge, words) in [
        ([&[1][..], &[2][..]], 0, "pre-shared keys differ"),
        ([&[1], &[]], 0, "the peer has no pre-shared key"),
        ([&[], &[1]], 1, "the peer has no pre-shared key"),
    ] {
        let mut lan = keyed(sides, Off, None);
        lan.ask(0, 2);
        lan.send(1, datagram(2, 1, b"hello"));
        lan.pass(seconds(4));
        assert!(lan.hosts[judge].drops(DropReason::PreSharedKey) > 0, "{sides:?}");
        assert!(lan.hosts[judge].events.iter().any(|event| event.to_string().contains(words)), "{sides:?}");
        assert!([0, 1].iter().all(|host| lan.hosts[*host].payloads(EtherType::IPV4).is_empty()));
        assert!(!lan.hosts[0].established_with(2) && !lan.hosts[1].established_with(1));
    }
}

#[test]
fn a_pre_shared_key_is_changed_host_by_host() {
    // The new key comes second everywhere, then goes first everywhere, then the old one goes.
    for sides in [[&[1, 2][..], &[1][..]], [&[1, 2], &[1, 2]], [&[2, 1], &[1, 2]], [&[2, 1], &[2]]] {
        for (asks, number) in [(0, 2), (1, 1)] {
            let mut lan = keyed(sides, Off, None);
            lan.ask(asks, number);
            assert_agreement(&lan, "X25519+PSK");
            talk(&mut lan);
        }
    }
}

#[test]
fn rollovers_and_tickets_keep_to_the_pre_shared_key() {
    let mut lan = keyed([&[1], &[1]], Off, Some(seconds(3600)));
    for host in [0, 1] {
        lan.hosts[host].settings.rekey_every = Some(seconds(10));
        lan.restart(host);
    }
    lan.ask(0, 2);
    talk_for(&mut lan, seconds(25));
    assert!(rollovers(&lan, 0) > 0);
    assert_agreement(&lan, "X25519+PSK");
    lan.restart(0);
    lan.ask(0, 2);
    assert_eq!(lan.hosts[0].count("resumed"), 1);
    assert_agreement(&lan, "X25519+PSK");
    lan.pass(seconds(3));
    // The key is changed: a ticket that was given under the old one is worth nothing.
    for host in [0, 1] {
        lan.hosts[host].settings.pre_shared = vec![key(2)];
        lan.restart(host);
    }
    lan.seen.clear();
    lan.ask(0, 2);
    lan.pass(seconds(1));
    assert!(lan.seen.iter().all(|(_, frame)| frame[14] != PacketType::ResumptionRequest.first_byte()));
    assert_agreement(&lan, "X25519+PSK");
    assert!(lan.hosts[0].established_with(2) && lan.hosts[1].cll.control.established_with(mac(1)) == 1);
}

#[test]
fn an_issuer_whose_pre_shared_key_was_changed_takes_no_older_ticket() {
    let mut lan = keyed([&[1, 2], &[1]], Off, Some(seconds(3600)));
    lan.ask(0, 2);
    lan.pass(seconds(4));
    lan.hosts[1].settings.pre_shared = vec![key(2)];
    lan.restart(1);
    lan.restart(0);
    lan.ask(0, 2);
    lan.pass(seconds(2));
    assert_eq!(lan.hosts[1].drops(DropReason::TicketUnknown), 1);
    assert_agreement(&lan, "X25519+PSK");
    talk(&mut lan);
}
