//! The ARP handshake between hosts of one site: first contact, repetition, simultaneity, restarts, wrong clocks.

mod common;

use std::time::Duration;

use bump::{ClockTrust, DropReason};
use cll::{Effect, Event};
use common::{Lan, Site, arp_frame, arp_request, datagram, ip, mac, settings};
use identity::HostIdentity;
use wire::arp::{Arp, Operation};
use wire::cll::PacketType;
use wire::cll::handshake::{set_site_tag, tagged_parts};
use wire::{EtherType, MacAddress};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Messages of this type that host `from` sent.
fn sent(lan: &Lan, from: usize, kind: PacketType) -> Vec<Vec<u8>> {
    let is_kind = |frame: &[u8]| frame[12..14] == [0x07, 0xd0] && frame[14] == kind.first_byte();
    lan.seen.iter().filter(|(host, frame)| *host == from && is_kind(frame)).map(|(_, frame)| frame.clone()).collect()
}

/// Both hosts can send to each other now, without any further handshake.
fn assert_they_talk(lan: &mut Lan) {
    let before = lan.seen.len();
    for (from, to) in [(0, 1), (1, 0)] {
        let frame = datagram(from as u8 + 1, to as u8 + 1, &lan.at.as_nanos().to_be_bytes());
        lan.send(from, frame.clone());
        assert_eq!(lan.hosts[to].delivered.last().map(|(bytes, _)| bytes), Some(&frame), "{from} to {to}");
    }
    assert_eq!(lan.seen.len(), before + 2, "one sealed frame each");
}

#[test]
fn first_contact_makes_one_association_and_answers_the_arp_request() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2) && lan.hosts[1].established_with(1));
    let question = Arp::parse(&lan.hosts[1].payloads(EtherType::ARP)[0]).unwrap();
    assert_eq!((question.sender_mac, question.sender_ip, question.target_ip), (mac(1), ip(1), ip(2)));
    let answer = Arp::parse(&lan.hosts[0].payloads(EtherType::ARP)[0]).unwrap();
    assert_eq!((answer.sender_mac, answer.sender_ip), (mac(2), ip(2)));
    assert_they_talk(&mut lan);
    for kind in [PacketType::HandshakeRequest, PacketType::HandshakeReply] {
        assert_eq!(
            sent(&lan, 0, kind).len() + sent(&lan, 1, kind).len(),
            1 + sent(&lan, 1, PacketType::Challenge).len() * usize::from(kind == PacketType::HandshakeRequest)
        );
    }
    assert_eq!(lan.hosts[0].ledger().held + lan.hosts[1].ledger().held, 0);
}

#[test]
fn frames_for_a_host_without_association_wait_and_then_leave_in_order() {
    let mut lan = Lan::pair();
    lan.wire = Box::new(|_, _, _| false);
    let frames: Vec<_> = (0..5_u8).map(|number| datagram(1, 2, &[number; 20])).collect();
    for frame in &frames {
        lan.send(0, frame.clone());
    }
    assert_eq!(lan.hosts[0].ledger().held, 5);
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(1));
    let delivered: Vec<_> = lan.hosts[1].delivered.iter().map(|(bytes, _)| bytes.clone()).collect();
    assert_eq!(delivered, frames);
    assert_eq!(lan.hosts[0].ledger().held, 0);
}

#[test]
fn frames_for_a_host_that_never_answers_are_dropped_by_name_and_asked_for_again_later() {
    let mut lan = Lan::pair();
    lan.wire = Box::new(|_, _, _| false);
    lan.send(0, datagram(1, 2, b"too early"));
    lan.pass(seconds(17));
    assert_eq!(lan.hosts[0].ledger().held, 0);
    assert_eq!(lan.hosts[0].drops(DropReason::HoldExpired), 1);
    assert_eq!(lan.hosts[0].count("no-answer"), 1);
    lan.wire = Box::new(|_, _, _| true);
    lan.send(0, datagram(1, 2, b"in time"));
    assert_they_talk(&mut lan);
}

#[test]
fn a_lost_reply_is_repeated_from_the_cache() {
    let mut lan = Lan::pair();
    let mut replies = 0;
    lan.wire = Box::new(move |frame, _, _| {
        replies += i32::from(frame[14] == PacketType::HandshakeReply.first_byte());
        frame[14] != PacketType::HandshakeReply.first_byte() || replies > 1
    });
    lan.ask(0, 2);
    assert!(!lan.hosts[0].established_with(2));
    lan.pass(seconds(2));
    assert!(lan.hosts[0].established_with(2));
    let replies = sent(&lan, 1, PacketType::HandshakeReply);
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0], replies[1], "the very same reply");
    assert_they_talk(&mut lan);
}

#[test]
fn a_duplicate_of_a_request_is_answered_from_the_cache_and_makes_nothing_new() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    lan.pass(seconds(1));
    let request = sent(&lan, 0, PacketType::HandshakeRequest).pop().unwrap();
    let before = lan.hosts[1].cll.control.peers(lan.at).len();
    lan.inject(1, request);
    assert_eq!(lan.hosts[1].ledger().answered[1], 2);
    assert_eq!(lan.hosts[1].cll.control.peers(lan.at).len(), before);
    assert_eq!(lan.hosts[0].drops(DropReason::HandshakeUnasked), 1);
    assert_they_talk(&mut lan);
}

#[test]
fn a_challenge_that_comes_twice_does_no_harm() {
    let mut lan = Lan::pair();
    lan.wire = Box::new(|frame, _, _| frame[14] != PacketType::HandshakeReply.first_byte());
    lan.ask(0, 2);
    let challenge = sent(&lan, 1, PacketType::Challenge).pop().expect("a host that just started asks for proof");
    lan.inject(0, challenge);
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(2));
    assert!(lan.hosts[0].established_with(2));
    assert_they_talk(&mut lan);
}

#[test]
fn a_request_that_was_challenged_twice_is_answered_as_it_stands() {
    let is_reply = |frame: &[u8]| frame[14] == PacketType::HandshakeReply.first_byte();
    let has_cookie =
        |frame: &[u8]| frame[14] == PacketType::HandshakeRequest.first_byte() && frame[130..146] != [0; 16];
    let mut lan = Lan::pair();
    // Just before cookies change, a first request is lost; the cookie for the second one brings forth a third.
    lan.pass(Duration::from_millis(18_200));
    lan.wire = Box::new(|_, _, _| false);
    lan.ask(0, 2);
    lan.wire = Box::new(move |frame, _, _| !has_cookie(frame));
    lan.pass(Duration::from_millis(1_100));
    lan.pass(Duration::from_millis(750));
    let requests = sent(&lan, 0, PacketType::HandshakeRequest);
    lan.inject(1, requests[0].clone());
    let requests = sent(&lan, 0, PacketType::HandshakeRequest);
    assert_eq!(requests.len(), 4, "twice without a cookie and once with either");
    // Both requests with cookies arrive, and the reply to the first does not.
    lan.wire = Box::new(move |frame, _, _| !is_reply(frame));
    lan.inject(1, requests[2].clone());
    lan.wire = Box::new(|_, _, _| true);
    lan.inject(1, requests[3].clone());
    assert!(lan.hosts[0].established_with(2));
    assert_eq!(lan.hosts[0].count("refused"), 0);
    assert_they_talk(&mut lan);
    let before = lan.hosts[1].cll.control.peers(lan.at).len();
    lan.inject(1, requests[2].clone());
    assert_eq!(lan.hosts[1].cll.control.peers(lan.at).len(), before, "a late copy is not a new request");
}

#[test]
fn hosts_that_ask_at_once_agree_on_the_handshake_of_the_higher_address() {
    let mut lan = Lan::pair();
    // Nothing arrives before both requests are on the wire.
    let (mut first, mut second) = (arp_request(1, 2), arp_request(2, 1));
    lan.wire = Box::new(|_, _, _| false);
    lan.send(0, std::mem::take(&mut first));
    lan.send(1, std::mem::take(&mut second));
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(3));
    assert!(lan.hosts[0].established_with(2) && lan.hosts[1].established_with(1));
    let initiated = |host: usize| {
        let peers = lan.hosts[host].cll.control.peers(lan.at);
        peers.iter().find(|peer| peer.state == "established").unwrap().initiated
    };
    assert!(!initiated(0) && initiated(1));
    assert_they_talk(&mut lan);
}

#[test]
fn traffic_flows_again_after_a_restart_of_the_side_that_sends() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    lan.pass(seconds(5));
    lan.restart(0);
    lan.send(0, datagram(1, 2, b"I was away"));
    lan.pass(seconds(2));
    assert_they_talk(&mut lan);
}

#[test]
fn traffic_flows_again_after_a_restart_of_the_side_that_receives() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    lan.pass(seconds(5));
    lan.restart(1);
    lan.send(0, datagram(1, 2, b"are you there?"));
    assert_eq!(lan.hosts[1].drops(DropReason::UnknownIndex), 1);
    lan.pass(seconds(2));
    assert_they_talk(&mut lan);
}

#[test]
fn a_host_that_starts_again_at_once_is_not_taken_for_one_that_asked_at_once() {
    let mut lan = Lan::pair();
    // The host with the higher address asks, which would go first had both asked at once.
    lan.ask(1, 1);
    assert_they_talk(&mut lan);
    lan.pass(Duration::from_millis(1200));
    lan.restart(0);
    lan.send(1, datagram(2, 1, b"are you there?"));
    lan.pass(seconds(1));
    assert_they_talk(&mut lan);
}

#[test]
fn wrong_clocks_cost_a_challenge_and_nothing_else() {
    const DAY_S: i64 = 86_400;
    for (first, second) in [(None, None), (Some(-3 * DAY_S), Some(0)), (Some(0), Some(5 * DAY_S)), (None, Some(0))] {
        let mut site = Site::new(1);
        let mut lan = Lan::new([]);
        lan.add(settings(site.identity(1)), first);
        lan.add(settings(site.identity(2)), second);
        for round in 0..4 {
            lan.ask(0, 2);
            assert!(lan.hosts[0].established_with(2), "{first:?} {second:?} round {round}");
            assert_they_talk(&mut lan);
            lan.pass(seconds(40));
            lan.restart(round % 2);
        }
        lan.send(1, datagram(2, 1, b"the other way round"));
        lan.pass(seconds(1));
        assert_they_talk(&mut lan);
    }
}

#[test]
fn a_host_in_1970_gets_in() {
    let mut site = Site::new(1);
    let mut lan = Lan::new([settings(site.identity(1)), settings(site.identity(2))]);
    lan.hosts[0].clock_error_s = Some(-(common::START_UNIX_S as i64) - 900);
    lan.hosts[0].trust = ClockTrust::Wrong;
    lan.restart(0);
    lan.ask(0, 2);
    assert_they_talk(&mut lan);
    lan.pass(seconds(1));
    lan.restart(1);
    lan.ask(1, 1);
    assert_they_talk(&mut lan);
}

#[test]
fn a_replayed_request_changes_nothing_also_after_the_victim_restarted() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    let requests = sent(&lan, 0, PacketType::HandshakeRequest);
    lan.pass(seconds(300));
    lan.wire = Box::new(|_, _, _| false);
    for request in &requests {
        lan.inject(1, request.clone());
    }
    assert_eq!(lan.hosts[1].count("established"), 1);
    lan.restart(1);
    for request in &requests {
        lan.inject(1, request.clone());
    }
    assert_eq!(lan.hosts[1].cll.control.peers(lan.at).len(), 0);
    assert_eq!(lan.hosts[1].payloads(EtherType::ARP).len(), 1);
}

/// `request` in the name of stranger `number`, of this moment, under the right tag: whoever has the site's key can make it.
fn in_a_strangers_name(request: &[u8], number: u32, unix_ms: u64, identity: &HostIdentity) -> Vec<u8> {
    const SENDER_AT: usize = 18 + 8;
    const TIMESTAMP_AT: usize = 46;
    let mac = [&[2, 0xff][..], &number.to_be_bytes()].concat();
    let mut frame = request.to_vec();
    frame[6..12].copy_from_slice(&mac);
    let (ethernet, message) = frame.split_at_mut(14);
    message[SENDER_AT..SENDER_AT + 6].copy_from_slice(&mac);
    message[TIMESTAMP_AT..TIMESTAMP_AT + 8].copy_from_slice(&unix_ms.to_be_bytes());
    let [before, after] = tagged_parts(message);
    let tag = identity.site_key().frame_tag(b"handshake", &[ethernet, before, after]);
    set_site_tag(message, &tag);
    frame
}

/// Has the host at `victim` hear of `count` strangers in one moment, each with its own request.
fn flood_with_strangers(lan: &mut Lan, victim: usize, count: u32) {
    let request = sent(lan, 0, PacketType::HandshakeRequest).remove(0);
    let identity = std::sync::Arc::clone(&lan.hosts[0].settings.identity);
    let unix_ms = common::START_UNIX_S * 1000 + lan.at.as_nanos() / 1_000_000;
    let frames = (0..count).map(|number| in_a_strangers_name(&request, number, unix_ms, &identity));
    let frames: Vec<_> = frames.collect();
    for frame in frames {
        lan.inject(victim, frame);
    }
}

/// Asks for so many addresses that nobody has, one after such a time.
fn sweep(lan: &mut Lan, count: usize, every: Duration) {
    for number in 0..count as u16 {
        let [high, low] = number.to_be_bytes();
        let (sender_mac, sender_ip, target_ip) = (mac(1), ip(1), [10, 1, high, low].into());
        let (operation, target_mac) = (Operation::Request, MacAddress::ZERO);
        let question = Arp { operation, sender_mac, sender_ip, target_mac, target_ip };
        lan.send(0, arp_frame(MacAddress::BROADCAST, question));
        lan.pass(every);
    }
}

/// A router asks for each address that a sweep from outside names.
#[test]
fn questions_for_nobody_keep_no_host_out() {
    let mut lan = Lan::pair();
    sweep(&mut lan, 2 * cll::limits::HANDSHAKES_OPEN_MAX, Duration::from_millis(10));
    assert_eq!(lan.hosts[0].cll.control.open_handshakes(), cll::limits::HANDSHAKES_OPEN_MAX);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
    assert_they_talk(&mut lan);
    lan.pass(cll::limits::CROWDED_TOLD_AFTER);
    // One opening is the pair's own, which took a place as well.
    let told = Event::Crowded { displaced: cll::limits::HANDSHAKES_OPEN_MAX as u32 + 1, not_asked: 0 };
    let crowded = |event: &&Event| matches!(event, Event::Crowded { .. });
    assert_eq!(lan.hosts[0].events.iter().filter(crowded).collect::<Vec<_>>(), [&told], "all of them at once");
}

/// A sweep that asks for more than can be signed leaves signatures to who has proved himself.
#[test]
fn a_fast_sweep_keeps_out_nobody_who_has_proved_himself() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    let kept = |effect: &Effect| if let Effect::Remember(host) = effect { Some(host.clone()) } else { None };
    lan.hosts[0].settings.proved = lan.hosts[0].effects.iter().filter_map(kept).collect();
    lan.restart(0);
    sweep(&mut lan, 3000, Duration::from_millis(1));
    // Whatever was left to sign with at this moment would be gone.
    sweep(&mut lan, 20, Duration::ZERO);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
    assert_they_talk(&mut lan);
}

/// Two minutes after its start a host believes the time in a stranger's request, and a flood of them used up what all handshakes had.
#[test]
fn strangers_without_end_leave_handshakes_to_who_has_proved_himself() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    assert!(lan.hosts[1].established_with(1));
    lan.pass(seconds(130));
    lan.wire = Box::new(|_, _, to| to != 1);
    flood_with_strangers(&mut lan, 1, 3000);
    let checked = lan.hosts[1].drops(DropReason::BadSignature);
    let budget = u64::from(cll::limits::STRANGERS_ANSWERED_BURST);
    assert!((1..=budget).contains(&checked), "{checked} checks of strangers in one moment");
    assert_eq!(lan.hosts[1].drops(DropReason::HandshakeBudget), 3000 - checked);
    lan.wire = Box::new(|_, _, _| true);
    lan.restart(0);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2), "at once, while strangers would have to wait");
    assert_they_talk(&mut lan);
}

/// The same where the one who is flooded has started anew since: who proved himself is kept beyond that.
#[test]
fn strangers_without_end_leave_challenges_to_who_has_proved_himself_earlier() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    assert_they_talk(&mut lan);
    let kept = |effect: &Effect| if let Effect::Remember(host) = effect { Some(host.clone()) } else { None };
    lan.hosts[1].settings.proved = lan.hosts[1].effects.iter().filter_map(kept).collect();
    lan.restart(1);
    lan.wire = Box::new(|_, _, to| to != 1);
    let before = sent(&lan, 1, PacketType::Challenge).len();
    flood_with_strangers(&mut lan, 1, 3000);
    let challenged = sent(&lan, 1, PacketType::Challenge).len() - before;
    assert_eq!(challenged as u32, cll::limits::CHALLENGES_PER_SECOND, "strangers have no more for now");
    lan.wire = Box::new(|_, _, _| true);
    lan.restart(0);
    lan.ask(0, 2);
    assert_they_talk(&mut lan);
}

/// Replies of host 1 in strangers' names to what host 0 asks now: under the right tag, and with a signature that is none. Host 1 hears
/// nothing of the question.
fn strangers_replies(lan: &mut Lan, reply: &[u8], numbers: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    let mut requests = sent(lan, 0, PacketType::HandshakeRequest);
    let request = requests.swap_remove(requests.len() - 1);
    let mut reply = reply.to_vec();
    let nonce = 14 + 54..14 + 70;
    reply[nonce.clone()].copy_from_slice(&request[nonce]);
    let identity = std::sync::Arc::clone(&lan.hosts[1].settings.identity);
    let unix_ms = common::START_UNIX_S * 1000 + lan.at.as_nanos() / 1_000_000;
    numbers.map(|number| in_a_strangers_name(&reply, number, unix_ms, &identity)).collect()
}

/// Each put the next repetition of the request off by a second, so that one in a second kept two hosts apart.
#[test]
fn a_reply_that_is_no_good_does_not_put_off_what_would_bring_a_good_one() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    let reply = sent(&lan, 1, PacketType::HandshakeReply).remove(0);
    lan.restart(0);
    lan.wire = Box::new(|_, _, _| false);
    let before = sent(&lan, 0, PacketType::HandshakeRequest).len();
    lan.ask(0, 2);
    for number in 0..12 {
        let forged = strangers_replies(&mut lan, &reply, number..number + 1);
        lan.inject(0, forged[0].clone());
        assert_eq!(lan.hosts[0].drops(DropReason::BadSignature), u64::from(number) + 1);
        lan.pass(Duration::from_millis(500));
    }
    let requests = sent(&lan, 0, PacketType::HandshakeRequest).len() - before;
    assert_eq!(requests, 3, "at 0, 1 and 3 s");
}

#[test]
fn a_good_reply_waits_while_one_that_is_none_is_judged() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    let reply = sent(&lan, 1, PacketType::HandshakeReply).remove(0);
    // Later than that, or host 1 would challenge.
    lan.pass(seconds(1));
    lan.restart(0);
    lan.wire = Box::new(|_, _, _| false);
    lan.ask(0, 2);
    let request = sent(&lan, 0, PacketType::HandshakeRequest).pop().unwrap();
    let forged = strangers_replies(&mut lan, &reply, 0..2);
    lan.wire = Box::new(|_, _, _| true);
    lan.hosts[0].is_busy = true;
    lan.inject(0, forged[0].clone());
    lan.inject(1, request);
    lan.inject(0, forged[1].clone());
    assert_eq!(lan.hosts[0].ledger().held, 2, "one is judged and one waits");
    assert_eq!(lan.hosts[0].drops(DropReason::HandshakeUnasked), 1, "a stranger does not displace it");
    lan.hosts[0].is_busy = false;
    lan.settle();
    assert_eq!(lan.hosts[0].drops(DropReason::BadSignature), 1);
    assert_they_talk(&mut lan);
    assert_eq!(lan.hosts[0].ledger().held, 0);
}

#[test]
fn replies_without_end_are_judged_within_a_budget_and_leave_that_of_who_has_proved_himself() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    assert_they_talk(&mut lan);
    let reply = sent(&lan, 1, PacketType::HandshakeReply).remove(0);
    let kept = |effect: &Effect| if let Effect::Remember(host) = effect { Some(host.clone()) } else { None };
    lan.hosts[0].settings.proved = lan.hosts[0].effects.iter().filter_map(kept).collect();
    lan.restart(0);
    lan.wire = Box::new(|_, _, _| false);
    lan.ask(0, 2);
    for forged in strangers_replies(&mut lan, &reply, 0..3000) {
        lan.inject(0, forged);
    }
    let judged = lan.hosts[0].drops(DropReason::BadSignature);
    assert!((1..=u64::from(cll::limits::REPLIES_BURST)).contains(&judged), "{judged} judged in one moment");
    assert_eq!(lan.hosts[0].drops(DropReason::HandshakeBudget), 3000 - judged);
    let request = sent(&lan, 0, PacketType::HandshakeRequest).pop().unwrap();
    lan.wire = Box::new(|_, _, _| true);
    lan.inject(1, request);
    assert_they_talk(&mut lan);
}

#[test]
fn traffic_in_one_direction_needs_one_handshake() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    let before = sent(&lan, 0, PacketType::HandshakeRequest).len();
    for _ in 0..600 {
        lan.send(0, datagram(1, 2, &[7; 100]));
        lan.pass(Duration::from_millis(500));
    }
    let after = sent(&lan, 0, PacketType::HandshakeRequest).len() + sent(&lan, 1, PacketType::HandshakeRequest).len();
    assert_eq!(after, before);
}

#[test]
fn a_silent_stack_delays_the_answer_but_does_not_spoil_it() {
    let mut lan = Lan::pair();
    lan.hosts[1].answers = false;
    lan.ask(0, 2);
    lan.pass(seconds(5));
    assert!(lan.hosts[1].count("stack-silent") > 0);
    lan.hosts[1].answers = true;
    lan.pass(seconds(6));
    assert!(lan.hosts[0].established_with(2), "the repetition is put to the stack again");
}

#[test]
fn lost_jobs_are_tried_again() {
    for loser in [0, 1] {
        let mut lan = Lan::pair();
        lan.hosts[loser].loses_jobs = true;
        lan.ask(0, 2);
        lan.pass(seconds(3));
        lan.hosts[loser].loses_jobs = false;
        lan.pass(seconds(6));
        assert!(lan.hosts[0].established_with(2), "{loser} lost its jobs");
        assert_they_talk(&mut lan);
    }
}

#[test]
fn an_association_answers_only_for_addresses_in_the_peers_certificate() {
    let mut lan = Lan::pair();
    lan.wire = Box::new(|_, from, _| from != 0);
    // As the kernel asks again for an entry that it has: one host alone, here for an address that is not that host's.
    let target = Arp { target_mac: mac(2), target_ip: ip(77), ..Arp::parse(&arp_request(1, 2)[14..]).unwrap() };
    lan.send(0, arp_frame(mac(2), target));
    lan.wire = Box::new(|_, _, _| true);
    lan.ask(1, 1);
    assert!(lan.hosts[0].established_with(2));
    let answered = lan.hosts[0].payloads(EtherType::ARP).iter().any(|arp| Arp::parse(arp).unwrap().sender_ip == ip(77));
    assert!(!answered, "its certificate does not say so");
}
