//! Rollover: new keys through an association that there is, what may be lost on the way, and how associations end.

mod common;

use std::time::Duration;

use bump::DropReason;
use cll::Settings;
use common::{Lan, Site, arp_frame, arp_request, datagram, ip, mac, request, settings};
use wire::EtherType;
use wire::arp::Arp;
use wire::cll::PacketType;

/// A sealed request or reply is longer than this, with its certificate; no other frame of these tests is.
const KEYS_LEN_MIN: usize = 300;
/// The length of a sealed acknowledgement: 47 bytes around 18.
const ACKNOWLEDGEMENT_LEN: usize = 65;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Two hosts that have spoken.
fn pair(configure: impl Fn(&mut Settings)) -> Lan {
    let mut site = Site::new(1);
    let mut lan = Lan::new([1, 2].map(|number| {
        let mut settings = settings(site.identity(number));
        configure(&mut settings);
        settings
    }));
    lan.ask(0, 2);
    lan.send(1, datagram(2, 1, b"hello"));
    lan
}

fn every(time: Duration) -> impl Fn(&mut Settings) {
    move |settings| settings.rekey_every = Some(time)
}

fn handshakes(lan: &Lan) -> usize {
    let is_request = |frame: &[u8]| frame[14] == PacketType::HandshakeRequest.first_byte();
    lan.seen.iter().filter(|(_, frame)| is_request(frame)).count()
}

fn is_sealed(frame: &[u8]) -> bool {
    frame[14] == PacketType::Unicast.first_byte()
}

fn rollovers(lan: &Lan, host: usize) -> u32 {
    let peers = lan.hosts[host].cll.control.peers(lan.at);
    peers.iter().find(|peer| peer.state == "established").map_or(0, |peer| peer.rollovers)
}

/// Sends a datagram each way five times a second; all must arrive, and none twice.
fn talk(lan: &mut Lan, time: Duration) {
    let before = [0, 1].map(|host| lan.hosts[host].payloads(EtherType::IPV4).len());
    let mut sent = 0;
    for number in 0..time.as_millis() / 200 {
        lan.pass(Duration::from_millis(200));
        for (from, to) in [(0, 1), (1, 0)] {
            lan.send(from, datagram(from as u8 + 1, to as u8 + 1, &number.to_be_bytes()));
        }
        sent += 1;
    }
    let after = [0, 1].map(|host| lan.hosts[host].payloads(EtherType::IPV4).len());
    assert_eq!([after[0] - before[0], after[1] - before[1]], [sent, sent]);
}

#[test]
fn keys_are_replaced_by_time_through_the_association_and_nothing_is_lost() {
    let mut lan = pair(every(seconds(10)));
    let (before, peers) = (handshakes(&lan), lan.hosts[0].cll.control.peers(lan.at).len());
    talk(&mut lan, seconds(200));
    assert_eq!(handshakes(&lan), before, "no handshake beside it");
    for host in [0, 1] {
        assert!((14..=20).contains(&rollovers(&lan, host)), "{} rollovers", rollovers(&lan, host));
        assert_eq!(lan.hosts[host].count("renewed") as u32, rollovers(&lan, host));
        assert_eq!(lan.hosts[host].count("established"), 1);
        assert_eq!(lan.hosts[host].cll.control.open_rollovers(), 0);
    }
    let initiated = lan.hosts[1].cll.control.peers(lan.at).iter().all(|peer| peer.initiated);
    assert!(initiated && peers == 1, "the host with the higher address asks as a rule");
}

#[test]
fn worn_keys_are_replaced_through_the_association_and_nothing_is_lost() {
    let mut lan = pair(|settings| settings.rekey_after_frames = 50);
    let before = handshakes(&lan);
    talk(&mut lan, seconds(100));
    assert!(rollovers(&lan, 0) > 5);
    assert_eq!(handshakes(&lan), before);
}

#[test]
fn keys_are_replaced_no_more_than_once_a_second_whoever_asks() {
    let mut lan = pair(|settings| settings.rekey_after_frames = 2);
    talk(&mut lan, seconds(20));
    assert!((10..=20).contains(&rollovers(&lan, 0)), "{}", rollovers(&lan, 0));
}

#[test]
fn an_association_in_use_is_renewed_before_it_ends_and_an_idle_one_ends() {
    let mut lan = pair(|settings| {
        settings.lifetime = seconds(20);
        settings.lifetime_min = seconds(20);
    });
    let before = handshakes(&lan);
    talk(&mut lan, seconds(100));
    assert_eq!(handshakes(&lan), before);
    lan.pass(seconds(60));
    assert_eq!(lan.hosts[0].cll.control.peers(lan.at).len(), 0);
    assert_eq!(lan.hosts[0].cll.lanes[0].sending_to() + lan.hosts[1].cll.lanes[0].receiving_keys(), 0);
}

/// Loses the first `count` sealed frames for which `is_wanted` holds.
fn lose(lan: &mut Lan, count: usize, is_wanted: fn(&[u8]) -> bool) {
    let mut left = count;
    lan.wire = Box::new(move |frame, _, _| {
        let is_lost = left > 0 && is_sealed(frame) && is_wanted(frame);
        left -= usize::from(is_lost);
        !is_lost
    });
}

#[test]
fn whatever_message_is_lost_is_repeated_and_data_goes_on() {
    // The request twice; the request and the reply; the acknowledgement twice.
    for (count, is_wanted) in [
        (1, (|frame| frame.len() > KEYS_LEN_MIN) as fn(&[u8]) -> bool),
        (2, |frame| frame.len() > KEYS_LEN_MIN),
        (3, |frame| frame.len() > KEYS_LEN_MIN),
        (1, |frame| frame.len() == ACKNOWLEDGEMENT_LEN),
        (2, |frame| frame.len() == ACKNOWLEDGEMENT_LEN),
    ] {
        let mut lan = pair(every(seconds(30)));
        let before = handshakes(&lan);
        talk(&mut lan, seconds(25));
        lose(&mut lan, count, is_wanted);
        talk(&mut lan, seconds(25));
        assert_eq!((rollovers(&lan, 0), rollovers(&lan, 1)), (1, 1), "{count} lost");
        assert_eq!(handshakes(&lan), before);
    }
}

#[test]
fn a_lost_acknowledgement_is_asked_for_again_also_when_nobody_sends() {
    let mut lan = pair(every(seconds(30)));
    talk(&mut lan, seconds(20));
    lan.pass(seconds(6));
    lose(&mut lan, 1, |frame| frame.len() == ACKNOWLEDGEMENT_LEN);
    lan.pass(seconds(8));
    assert_eq!((rollovers(&lan, 0), rollovers(&lan, 1)), (1, 1));
}

#[test]
fn the_side_that_answers_seals_nothing_under_the_new_keys_before_it_opened_a_frame_under_them() {
    let mut lan = pair(every(seconds(10)));
    talk(&mut lan, seconds(9));
    lan.wire = Box::new(|frame, from, _| !(from == 1 && frame.len() == ACKNOWLEDGEMENT_LEN));
    lan.pass(seconds(2));
    assert_eq!(
        (rollovers(&lan, 0), rollovers(&lan, 1)),
        (0, 1),
        "host 1 asked, and host 0 does not know that it was heard"
    );
    lan.send(0, datagram(1, 2, b"under the old keys"));
    assert!(lan.hosts[1].delivered.last().unwrap().0.ends_with(b"under the old keys"));
    lan.send(1, datagram(2, 1, b"under the new ones"));
    assert!(lan.hosts[0].delivered.last().unwrap().0.ends_with(b"under the new ones"));
    assert_eq!(rollovers(&lan, 0), 1, "any frame confirms them");
}

#[test]
fn hosts_that_ask_at_once_agree_on_the_request_of_the_higher_address() {
    let mut lan = pair(|settings| settings.rekey_after_frames = 20);
    let before = handshakes(&lan);
    lan.pass(seconds(2));
    // Both keys are worn and both requests are signed before either arrives.
    lan.wire = Box::new(|frame, _, _| frame.len() < KEYS_LEN_MIN);
    for number in 0..20_u32 {
        lan.send(0, datagram(1, 2, &number.to_be_bytes()));
        lan.send(1, datagram(2, 1, &number.to_be_bytes()));
    }
    assert_eq!([0, 1].map(|host| lan.hosts[host].cll.control.open_rollovers()), [1, 1]);
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(4));
    assert_eq!((rollovers(&lan, 0), rollovers(&lan, 1)), (1, 1));
    let initiated = |host: usize| {
        let peers = lan.hosts[host].cll.control.peers(lan.at);
        peers.iter().find(|peer| peer.state == "established").unwrap().initiated
    };
    assert!(!initiated(0) && initiated(1));
    assert_eq!(handshakes(&lan), before);
    talk(&mut lan, seconds(5));
}

#[test]
fn a_rollover_that_nobody_answers_becomes_a_handshake_beside_the_association() {
    let mut lan = pair(every(seconds(30)));
    let before = handshakes(&lan);
    lan.wire = Box::new(|frame, _, _| !is_sealed(frame) || frame.len() < KEYS_LEN_MIN);
    talk(&mut lan, seconds(60));
    assert!(handshakes(&lan) > before);
    assert!(lan.hosts[0].count("established") > 1);
}

#[test]
fn lost_jobs_are_tried_again() {
    for loser in [0, 1] {
        let mut lan = pair(every(seconds(10)));
        talk(&mut lan, seconds(9));
        lan.hosts[loser].loses_jobs = true;
        talk(&mut lan, seconds(3));
        lan.hosts[loser].loses_jobs = false;
        talk(&mut lan, seconds(6));
        assert!(rollovers(&lan, 0) > 0, "{loser} lost its jobs");
    }
}

#[test]
fn replaced_keys_open_frames_for_a_while_and_then_no_more() {
    let mut lan = pair(|settings| settings.rekey_after_frames = 20);
    lan.wire = Box::new(|frame, from, _| !(from == 0 && frame.len() == 14 + 33 + 20 + 8 + 4));
    lan.send(0, datagram(1, 2, b"late"));
    let late = lan.seen.last().unwrap().1.clone();
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(2));
    talk(&mut lan, seconds(6));
    assert!(rollovers(&lan, 1) > 0);
    lan.inject(1, late.clone());
    assert!(lan.hosts[1].delivered.iter().any(|(frame, _)| frame.ends_with(b"late")), "it was only slow");
    lan.inject(1, late.clone());
    assert_eq!(lan.hosts[1].drops(DropReason::Replayed), 1);
    lan.pass(seconds(40));
    lan.inject(1, late);
    assert_eq!(lan.hosts[1].drops(DropReason::UnknownIndex), 1);
}

#[test]
fn certificates_are_judged_again() {
    let mut site = Site::new(1);
    let short = request(1).with_validity(Duration::from_secs(70)).unwrap();
    let expiring = settings(site.identity_for(short, common::START_UNIX_S + 1000));
    let lasting = settings(site.identity(2));
    let mut lan = Lan::new([expiring, lasting].map(|mut settings| {
        settings.rekey_every = Some(seconds(20));
        settings
    }));
    lan.ask(0, 2);
    talk(&mut lan, seconds(66));
    let reached = rollovers(&lan, 1);
    assert!(reached >= 2);
    lan.pass(seconds(10));
    let before = [0, 1].map(|host| lan.hosts[host].payloads(EtherType::IPV4).len());
    for _ in 0..40 {
        lan.send(0, datagram(1, 2, b"certificate over"));
        lan.send(1, datagram(2, 1, b"certificate over"));
        lan.pass(seconds(1));
    }
    assert_eq!([0, 1].map(|host| lan.hosts[host].payloads(EtherType::IPV4).len()), before, "what it proved is over");
    assert!(!lan.hosts[0].established_with(2) && !lan.hosts[1].established_with(1));
    assert!(lan.hosts[1].drops(DropReason::BadCertificate) > 0);
}

#[test]
fn a_revocation_ends_what_there_is_and_lets_nothing_new_begin() {
    let mut site = Site::new(1);
    let identities = [site.identity(1), site.identity(2)];
    let list = site.revocation_of(&identities[0]);
    let mut lan = Lan::new(identities.map(settings));
    lan.ask(0, 2);
    lan.send(1, datagram(2, 1, b"hello"));
    lan.restart(0);
    lan.ask(0, 2);
    assert!(lan.hosts[1].cll.control.peers(lan.at).len() > 1, "one in use and one that leaves");
    lan.revoke(1, &list);
    assert!(!lan.hosts[1].established_with(1));
    assert_eq!((lan.hosts[1].count("ended"), lan.hosts[1].cll.lanes[0].receiving_keys()), (1, 0));
    let before = lan.hosts[1].delivered.len();
    lan.send(0, datagram(1, 2, b"I am still here"));
    lan.pass(seconds(30));
    lan.ask(0, 2);
    lan.send(1, datagram(2, 1, b"are you?"));
    lan.pass(seconds(30));
    assert_eq!(lan.hosts[1].delivered.len(), before);
    assert!(lan.hosts[1].drops(DropReason::BadCertificate) > 0);
    assert!(lan.hosts[1].events.iter().any(|event| event.to_string().contains("was revoked")));
}

#[test]
fn a_revocation_that_comes_in_the_middle_of_a_rollover_counts() {
    let mut site = Site::new(1);
    let identities = [site.identity(1), site.identity(2)];
    let list = site.revocation_of(&identities[0]);
    let mut lan =
        Lan::new(identities.map(|identity| Settings { rekey_every: Some(seconds(10)), ..settings(identity) }));
    lan.ask(0, 2);
    talk(&mut lan, seconds(9));
    // Host 1 asks and hears nothing; then it learns who it asked.
    lan.wire = Box::new(|frame, _, _| frame.len() < KEYS_LEN_MIN);
    lan.pass(seconds(2));
    assert_eq!(lan.hosts[1].cll.control.open_rollovers(), 1);
    lan.revoke(1, &list);
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(40));
    assert_eq!((rollovers(&lan, 0), lan.hosts[1].cll.control.open_rollovers()), (0, 0));
    assert!(!lan.hosts[1].established_with(1));
}

#[test]
fn an_association_that_nobody_uses_ends_and_the_next_frame_makes_another() {
    let mut lan = pair(|settings| settings.idle = seconds(60));
    lan.pass(seconds(55));
    lan.send(0, datagram(1, 2, b"in time"));
    lan.pass(seconds(50));
    assert!(lan.hosts[0].established_with(2), "the last frame counts");
    lan.pass(seconds(15));
    for host in [0, 1] {
        assert_eq!((lan.hosts[host].count("ended"), lan.hosts[host].cll.lanes[0].sending_to()), (1, 0));
    }
    lan.send(0, datagram(1, 2, b"again"));
    assert!(lan.hosts[1].delivered.last().unwrap().0.ends_with(b"again"));
    assert_eq!(lan.hosts[0].count("established"), 2);
}

#[test]
fn what_a_peer_sends_while_its_clock_still_says_so_is_opened_after_the_end() {
    let mut lan = pair(|settings| settings.idle = seconds(60));
    lan.hosts[1].settings.idle = seconds(300);
    lan.restart(1);
    lan.send(1, datagram(2, 1, b"hello"));
    lan.pass(seconds(62));
    assert_eq!(lan.hosts[0].count("ended"), 1);
    lan.send(1, datagram(2, 1, b"are you there"));
    assert!(lan.hosts[0].delivered.last().unwrap().0.ends_with(b"are you there"));
    lan.send(0, datagram(1, 2, b"I am"));
    assert!(lan.hosts[1].delivered.last().unwrap().0.ends_with(b"I am"));
    assert!(lan.hosts[0].established_with(2));
}

#[test]
fn a_stack_cannot_speak_for_the_link_layer() {
    let mut lan = pair(|_| {});
    let (before, mut frame) = (lan.seen.len(), datagram(1, 2, &[0x27; 40]));
    for ethertype in [0, 1] {
        frame[12..14].copy_from_slice(&[0, ethertype]);
        lan.send(0, frame.clone());
    }
    assert_eq!((lan.seen.len(), lan.hosts[0].drops(DropReason::Malformed)), (before, 2));
}

#[test]
fn arp_goes_on_through_a_rollover() {
    let mut lan = pair(every(seconds(10)));
    for _ in 0..30 {
        lan.pass(seconds(1));
        lan.send(0, arp_frame(mac(2), Arp { target_mac: mac(2), ..Arp::parse(&arp_request(1, 2)[14..]).unwrap() }));
        let answer = lan.hosts[0].payloads(EtherType::ARP).pop().unwrap();
        assert_eq!(Arp::parse(&answer).unwrap().sender_ip, ip(2));
    }
}
