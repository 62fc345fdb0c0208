//! Resumption: back to an association by a ticket, after a restart of either side or both, and what a ticket is not good for.

mod common;

use std::sync::Arc;
use std::time::Duration;

use bump::DropReason;
use cll::{HeldTicket, Settings};
use common::{Lan, Site, datagram, ip, mac, request, settings};
use identity::agreement::KeyPair;
use identity::ticket::ResumptionSecret;
use wire::EtherType;
use wire::cll::handshake::{set_site_tag, tagged_parts};
use wire::cll::resumption::{Kind, Resumption};
use wire::cll::{Offer, PacketType};
use wire::ethernet::HEADER_LEN as ETHERNET_LEN;

const HOUR: Duration = Duration::from_secs(3600);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn resuming(settings: &mut Settings) {
    settings.resumption = Some(HOUR);
}

/// Two hosts that have spoken and have a ticket of each other on disk.
fn pair() -> Lan {
    pair_of(&mut Site::new(1))
}

fn pair_of(site: &mut Site) -> Lan {
    let mut lan = Lan::new([1, 2].map(|number| {
        let mut settings = settings(site.identity(number));
        resuming(&mut settings);
        settings
    }));
    acquaint(&mut lan);
    lan
}

fn acquaint(lan: &mut Lan) {
    lan.ask(0, 2);
    // The first sweep has the keys made, the second gives the tickets.
    lan.pass(seconds(3));
    for host in [0, 1] {
        assert_eq!((lan.hosts[host].disk.tickets.len(), lan.hosts[host].disk.keys.len()), (1, 1), "host {host}");
    }
    lan.seen.clear();
}

/// Messages in clear of this type that were sent.
fn sent(lan: &Lan, kind: PacketType) -> usize {
    lan.seen.iter().filter(|(_, frame)| frame[14] == kind.first_byte()).count()
}

fn frame_of(lan: &Lan, kind: PacketType) -> Vec<u8> {
    let found = lan.seen.iter().find(|(_, frame)| frame[14] == kind.first_byte());
    found.map(|(_, frame)| frame.clone()).unwrap_or_default()
}

/// Messages of the handshake.
fn handshake(lan: &Lan) -> usize {
    [PacketType::HandshakeRequest, PacketType::HandshakeReply, PacketType::Challenge]
        .iter()
        .map(|kind| sent(lan, *kind))
        .sum()
}

/// A datagram of each host reaches the other at once.
fn talk(lan: &mut Lan) {
    for (from, to) in [(0, 1), (1, 0)] {
        let before = lan.hosts[to].payloads(EtherType::IPV4).len();
        lan.send(from, datagram(from as u8 + 1, to as u8 + 1, b"there"));
        assert_eq!(lan.hosts[to].payloads(EtherType::IPV4).len(), before + 1, "from {from}");
    }
}

fn is_resumed(lan: &Lan, host: usize) -> bool {
    let peers = lan.hosts[host].cll.control.peers(lan.at);
    peers.iter().find(|peer| peer.state == "established").is_some_and(|peer| peer.resumed)
}

/// One request, one reply, and no signature anywhere.
fn assert_resumed(lan: &mut Lan) {
    assert_eq!((sent(lan, PacketType::ResumptionRequest), sent(lan, PacketType::ResumptionReply)), (1, 1));
    assert_eq!(handshake(lan), 0, "no handshake beside it");
    talk(lan);
    for host in [0, 1] {
        assert!(is_resumed(lan, host) && lan.hosts[host].established_with(2 - host as u8), "host {host}");
        assert_eq!(lan.hosts[host].count("resumed"), 1);
    }
}

#[test]
fn a_restarted_holder_is_back_in_one_exchange() {
    let mut lan = pair();
    lan.restart(0);
    lan.ask(0, 2);
    assert_resumed(&mut lan);
    let arps = lan.hosts[0].payloads(EtherType::ARP);
    assert_eq!(arps.len(), 2, "the stack has its answer, of the first handshake and of this one");
}

#[test]
fn who_is_spoken_to_after_its_restart_comes_back_by_its_own_ticket() {
    let mut lan = pair();
    lan.restart(1);
    // Sealed under what host 2 has lost; the unknown index makes it ask.
    lan.send(0, datagram(1, 2, b"lost"));
    assert_resumed(&mut lan);
}

#[test]
fn both_come_back_after_both_restarted() {
    for first in [0, 1] {
        let mut lan = pair();
        lan.restart(first);
        lan.restart(1 - first);
        lan.ask(first, 2 - first as u8);
        assert_resumed(&mut lan);
    }
}

#[test]
fn tickets_are_renewed_by_every_association_and_a_second_restart_is_as_good() {
    let mut lan = pair();
    let mut tickets: Vec<HeldTicket> = lan.hosts[0].disk.tickets.values().cloned().collect();
    for _ in 0..3 {
        lan.restart(0);
        lan.ask(0, 2);
        assert!(is_resumed(&lan, 0) && handshake(&lan) == 0);
        assert!(lan.hosts[0].disk.tickets.is_empty(), "a ticket is used once");
        lan.pass(seconds(3));
        let next = lan.hosts[0].disk.tickets[&mac(2)].clone();
        assert!(!tickets.contains(&next));
        tickets.push(next);
    }
}

#[test]
fn what_was_resumed_is_signed_for_at_the_next_rollover() {
    let mut lan = pair();
    for host in [0, 1] {
        lan.hosts[host].settings.rekey_every = Some(seconds(20));
    }
    lan.restart(0);
    lan.restart(1);
    lan.ask(0, 2);
    assert!(is_resumed(&lan, 0));
    for _ in 0..25 {
        lan.pass(seconds(1));
        talk(&mut lan);
    }
    assert!(!is_resumed(&lan, 0) && !is_resumed(&lan, 1));
    assert!(lan.hosts[0].count("renewed") > 0);
}

/// Whoever only ever resumes has signed nothing for an hour, and is asked to.
#[test]
fn a_chain_of_tickets_ends_a_lifetime_after_the_last_signature() {
    let mut lan = pair();
    let mut resumptions = 0;
    for _ in 0..14 {
        lan.pass(seconds(300));
        lan.seen.clear();
        lan.restart(0);
        lan.ask(0, 2);
        lan.pass(seconds(3));
        resumptions += sent(&lan, PacketType::ResumptionReply);
        if handshake(&lan) > 0 {
            break;
        }
    }
    assert!((10..=11).contains(&resumptions), "{resumptions} in an hour");
    assert!(!is_resumed(&lan, 0));
}

#[test]
fn a_lost_request_and_a_lost_reply_cost_a_second_and_a_handshake() {
    for lost in [PacketType::ResumptionRequest, PacketType::ResumptionReply] {
        let mut lan = pair();
        lan.restart(0);
        lan.wire = Box::new(move |frame, _, _| frame[14] != lost.first_byte());
        lan.ask(0, 2);
        assert!(!lan.hosts[0].established_with(2));
        lan.pass(seconds(2));
        assert!(!is_resumed(&lan, 0), "{lost:?}");
        talk(&mut lan);
        let spent = lan.hosts[0].disk.tickets.len();
        assert_eq!(spent, 1, "it may only be away, so the ticket is kept until a newer one comes");
    }
}

/// The refusal that each case wants, the host that asks, and its handshake at once.
fn assert_refused(mut lan: Lan, reason: DropReason) -> Lan {
    lan.seen.clear();
    lan.ask(0, 2);
    assert_eq!(lan.hosts[1].drops(reason), 1, "{reason:?}");
    assert!(lan.hosts[0].established_with(2) && !is_resumed(&lan, 0), "{reason:?}: the handshake came at once");
    talk(&mut lan);
    assert!(lan.hosts[0].disk.tickets.is_empty(), "{reason:?}: what was refused is forgotten");
    lan
}

/// The handshake that follows a refusal gives both hosts tickets, and they are as good as any: for the host that was refused, for
/// the other, and for both.
fn assert_good_again(lan: Lan, reason: DropReason) {
    let mut lan = assert_refused(lan, reason);
    for restarted in [&[0][..], &[1], &[1, 0]] {
        lan.pass(seconds(3));
        for host in [0, 1] {
            assert_eq!(lan.hosts[host].disk.tickets.len(), 1, "{reason:?}, before {restarted:?}: host {host}");
        }
        lan.seen.clear();
        restarted.iter().for_each(|host| lan.restart(*host));
        lan.ask(restarted[0], 2 - restarted[0] as u8);
        assert_eq!(handshake(&lan), 0, "{reason:?}, {restarted:?}");
        assert!(is_resumed(&lan, 0) && is_resumed(&lan, 1), "{reason:?}, {restarted:?}");
        talk(&mut lan);
    }
}

#[test]
fn a_ticket_whose_key_is_gone_leads_to_a_handshake_at_once() {
    let mut lan = pair();
    lan.hosts[1].disk = Default::default();
    lan.restart(1);
    lan.restart(0);
    assert_good_again(lan, DropReason::TicketUnknown);
}

#[test]
fn an_issuer_that_takes_no_tickets_any_more_asks_for_a_handshake() {
    let mut lan = pair();
    lan.hosts[1].settings.resumption = None;
    lan.restart(1);
    lan.restart(0);
    let lan = assert_refused(lan, DropReason::TicketUnknown);
    assert_eq!(lan.hosts[1].cll.control.tickets_held(), 0, "and keeps none");
}

#[test]
fn a_ticket_of_another_certificate_of_the_issuer_leads_to_a_handshake() {
    let mut site = Site::new(1);
    let mut lan = pair_of(&mut site);
    lan.hosts[1].settings.identity = site.identity(2);
    lan.restart(1);
    lan.restart(0);
    assert_good_again(lan, DropReason::TicketUnknown);
}

#[test]
fn a_holder_with_another_certificate_does_not_use_its_ticket() {
    let mut site = Site::new(1);
    let mut lan = pair_of(&mut site);
    lan.hosts[0].settings.identity = site.identity(1);
    lan.restart(0);
    lan.ask(0, 2);
    assert_eq!(sent(&lan, PacketType::ResumptionRequest), 0);
    assert!(lan.hosts[0].established_with(2) && lan.hosts[0].disk.tickets.is_empty());
}

#[test]
fn a_ticket_is_not_used_after_its_end_nor_taken() {
    let mut lan = pair();
    lan.pass(HOUR);
    lan.restart(0);
    lan.ask(0, 2);
    assert_eq!((sent(&lan, PacketType::ResumptionRequest), lan.hosts[0].established_with(2)), (0, true));
    // A holder whose clock is late does not know that it is over.
    let mut lan = pair();
    lan.pass(HOUR);
    lan.hosts[0].clock_error_s = Some(-3600);
    lan.restart(0);
    assert_good_again(lan, DropReason::TicketExpired);
}

#[test]
fn an_issuer_whose_clock_was_set_back_does_not_know_how_old_a_ticket_is() {
    let mut lan = pair();
    lan.hosts[1].clock_error_s = Some(-3600);
    lan.restart(0);
    assert_good_again(lan, DropReason::TicketExpired);
}

#[test]
fn after_a_used_ticket_was_refused_the_next_one_is_as_good() {
    let mut lan = pair();
    let old = lan.hosts[0].disk.clone();
    lan.restart(0);
    lan.ask(0, 2);
    lan.pass(seconds(1));
    lan.hosts[0].disk = old;
    lan.restart(0);
    assert_good_again(lan, DropReason::TicketSpent);
}

#[test]
fn a_used_ticket_is_refused_and_so_is_one_that_a_newer_one_has_replaced() {
    let mut lan = pair();
    let old = lan.hosts[0].disk.clone();
    lan.restart(0);
    lan.ask(0, 2);
    assert!(is_resumed(&lan, 0));
    lan.pass(seconds(1));
    lan.hosts[0].disk = old;
    lan.restart(0);
    let mut lan = assert_refused(lan, DropReason::TicketSpent);
    // The handshake has given another; the one before was never used.
    lan.pass(seconds(3));
    let replaced = lan.hosts[0].disk.clone();
    for host in [0, 1] {
        lan.hosts[host].settings.rekey_every = Some(seconds(5));
    }
    lan.restart(0);
    lan.ask(0, 2);
    lan.pass(seconds(3));
    lan.hosts[0].disk = replaced;
    lan.restart(0);
    lan.seen.clear();
    lan.ask(0, 2);
    assert_eq!((lan.hosts[1].drops(DropReason::TicketSpent), is_resumed(&lan, 0)), (2, false));
}

/// The site's key makes the tag right again, as every host of the site can.
fn retag(lan: &Lan, frame: &mut [u8]) {
    let (ethernet, message) = frame.split_at_mut(ETHERNET_LEN);
    let [before, after] = tagged_parts(message);
    let tag = lan.hosts[0].settings.identity.site_key().frame_tag(b"handshake", &[ethernet, before, after]);
    set_site_tag(message, &tag);
}

#[test]
fn a_changed_request_or_reply_is_refused_by_its_binder() {
    for (kind, judge) in [(PacketType::ResumptionRequest, 1), (PacketType::ResumptionReply, 0)] {
        let mut lan = pair();
        let site_key = lan.hosts[0].settings.identity.site_key().clone();
        lan.restart(0);
        lan.wire = Box::new(move |frame, _, _| {
            if frame[14] == kind.first_byte() {
                let (ethernet, message) = frame.split_at_mut(ETHERNET_LEN);
                // The peer's lifetime, which decides nothing that could be refused.
                message[81] ^= 1;
                let [before, after] = tagged_parts(message);
                let tag = site_key.frame_tag(b"handshake", &[ethernet, before, after]);
                set_site_tag(message, &tag);
            }
            true
        });
        lan.ask(0, 2);
        assert_eq!(lan.hosts[judge].drops(DropReason::BadBinder), 1, "{kind:?}");
        assert_eq!(sent(&lan, PacketType::Challenge), 0, "who lacks the secret is told nothing");
        assert!(!lan.hosts[0].established_with(2));
        lan.pass(seconds(2));
        assert!(lan.hosts[0].established_with(2) && !is_resumed(&lan, 0));
    }
}

/// An enrolled host has seen the ticket on the wire, and asks with it in its own name and in that of its holder.
#[test]
fn a_ticket_off_the_wire_is_of_no_use_to_another_host() {
    let mut lan = pair();
    lan.restart(0);
    lan.wire = Box::new(|_, _, _| false);
    lan.ask(0, 2);
    let stolen = frame_of(&lan, PacketType::ResumptionRequest);
    lan.wire = Box::new(|_, _, _| true);
    let mut own = stolen.clone();
    own[6..12].copy_from_slice(&mac(9).0);
    own[ETHERNET_LEN + 26..ETHERNET_LEN + 32].copy_from_slice(&mac(9).0);
    retag(&lan, &mut own);
    lan.inject(1, own);
    assert_eq!(lan.hosts[1].drops(DropReason::BadBinder), 1, "in its own name");
    let mut other_share = stolen;
    other_share[ETHERNET_LEN + 84] ^= 1;
    retag(&lan, &mut other_share);
    lan.inject(1, other_share);
    assert_eq!(lan.hosts[1].drops(DropReason::BadBinder), 2, "with a key share of its own");
    assert!(lan.hosts[1].cll.control.peers(lan.at).iter().all(|peer| peer.state != "candidate"));
}

/// A whole ticket file on a card with another address: the certificate in the ticket is that of its holder.
#[test]
fn a_stolen_file_on_another_machine_is_refused_by_the_addresses() {
    let mut site = Site::new(1);
    let mut lan = pair_of(&mut site);
    let thief = lan.add(
        {
            let mut settings = settings(site.identity(3));
            resuming(&mut settings);
            // It says that it is host 1 where only this program would look.
            settings.identity = Arc::clone(&lan.hosts[0].settings.identity);
            settings.mac = mac(3);
            settings
        },
        Some(0),
    );
    lan.hosts[thief].disk = lan.hosts[0].disk.clone();
    lan.restart(thief);
    lan.send(thief, datagram(3, 2, b"let me in"));
    assert_eq!(lan.hosts[1].drops(DropReason::CertificateAddress), 1);
    assert!(!lan.hosts[thief].established_with(2));
}

/// A thief on the path has a copy of the holder's ticket file and a key of the site, and no private
/// key of anybody. Before replies were signed, the holder took him for the issuer and sealed to
/// him.
#[test]
fn who_has_a_copy_of_the_holders_tickets_is_not_the_issuer_to_it() {
    let mut lan = pair();
    let stolen = lan.hosts[0].disk.tickets[&mac(2)].to_bytes();
    let secret = ResumptionSecret::from_bytes(stolen[25..57].try_into().unwrap());
    lan.restart(0);
    lan.wire = Box::new(|_, _, _| false);
    lan.ask(0, 2);
    let asked = frame_of(&lan, PacketType::ResumptionRequest);
    let request = Resumption::parse(&asked[ETHERNET_LEN..]).unwrap();
    let pair = KeyPair::from_random(&[99; 32]).unwrap();
    let reply = |binder, signature| Resumption {
        kind: Kind::Reply(signature),
        site_tag: [0; 16],
        resolution: request.resolution.reply(mac(2), None),
        timestamp_ms: request.timestamp_ms,
        nonce: request.nonce,
        offer: Offer { receiver_index: 8, ..request.offer },
        key_share: pair.public(),
        binder,
    };
    let unbound = reply([0; 32], &[]).emit_unbound();
    let [before, after] = tagged_parts(&asked[ETHERNET_LEN..]);
    let hash = identity::hash::sha256(&[before, after]);
    let binder = secret.binder(b"ringwall cll 2 resumption reply", &[&hash, &unbound[..2], &unbound[18..]]);
    // Whatever he signs with, it is not the issuer's key.
    let own_signature = lan.hosts[0].settings.identity.sign(b"anything").unwrap();
    for signature in [&[][..], &[0; 64], &own_signature] {
        let message = reply(binder, signature).emit();
        let mut frame = [&asked[6..12], &mac(2).0, &asked[12..14], &message].concat();
        retag(&lan, &mut frame);
        lan.inject(0, frame);
    }
    assert_eq!(lan.hosts[0].drops(DropReason::BadSignature), 3, "the binder was right, so only that refuses it");
    assert!(!lan.hosts[0].established_with(2));
}

/// The keys of tickets outlive a restart, and so must what was done with them.
#[test]
fn a_used_ticket_stays_used_after_a_restart_of_its_issuer() {
    let mut lan = pair();
    lan.restart(0);
    lan.ask(0, 2);
    assert!(is_resumed(&lan, 0));
    let used = frame_of(&lan, PacketType::ResumptionRequest);
    let before = lan.hosts[1].drops(DropReason::TicketSpent);
    lan.restart(1);
    lan.inject(1, used);
    assert_eq!(lan.hosts[1].drops(DropReason::TicketSpent), before + 1);
}

#[test]
fn a_replayed_request_is_answered_from_the_cache_then_refused_also_after_a_restart() {
    let mut lan = pair();
    lan.restart(0);
    lan.ask(0, 2);
    let request = frame_of(&lan, PacketType::ResumptionRequest);
    lan.pass(seconds(1));
    lan.inject(1, request.clone());
    assert_eq!(sent(&lan, PacketType::ResumptionReply), 2, "its reply may have been lost");
    lan.pass(seconds(40));
    talk(&mut lan);
    let association = lan.hosts[0].cll.control.peers(lan.at);
    lan.inject(1, request.clone());
    assert_eq!(lan.hosts[1].drops(DropReason::HandshakeStale), 1);
    assert_eq!(lan.hosts[0].cll.control.peers(lan.at), association, "nothing changed");
    lan.restart(1);
    lan.seen.clear();
    lan.inject(1, request.clone());
    assert!(lan.hosts[1].cll.control.peers(lan.at).is_empty(), "its ticket was used, which is on disk");
    lan.inject(1, request.clone());
    assert_eq!(lan.hosts[1].drops(DropReason::TicketSpent), 2);
    // A daemon that was killed has not written what came last: a candidate, that nobody confirms.
    lan.hosts[1].disk.spent.clear();
    lan.restart(1);
    lan.inject(1, request);
    assert_eq!(lan.hosts[1].cll.control.peers(lan.at).iter().filter(|peer| peer.state == "candidate").count(), 1);
    lan.send(0, datagram(1, 2, b"where are you"));
    lan.pass(seconds(2));
    talk(&mut lan);
}

#[test]
fn a_revoked_host_cannot_resume() {
    let mut site = Site::new(1);
    let mut lan = pair_of(&mut site);
    let list = site.revocation_of(&lan.hosts[0].settings.identity);
    lan.revoke(1, &list);
    assert_eq!(lan.hosts[1].cll.control.tickets_held(), 0, "its ticket goes at once");
    assert!(lan.hosts[1].disk.tickets.is_empty());
    lan.restart(0);
    lan.ask(0, 2);
    assert_eq!(lan.hosts[1].drops(DropReason::BadCertificate), 1);
    lan.pass(seconds(20));
    assert!(!lan.hosts[0].established_with(2), "nor shake hands");
}

#[test]
fn no_ticket_outlives_a_certificate() {
    let mut site = Site::new(1);
    let mut own = settings(site.identity_for(request(1).with_validity(seconds(1800)).unwrap(), common::START_UNIX_S));
    let mut peers = settings(site.identity(2));
    resuming(&mut own);
    resuming(&mut peers);
    let mut lan = Lan::new([own, peers]);
    lan.at = bump::Instant::from_millis(0);
    acquaint(&mut lan);
    // The end of the first certificate, in whose last second nobody has it yet.
    lan.pass(seconds(1830));
    lan.restart(1);
    lan.restart(0);
    lan.ask(1, 1);
    assert_eq!(sent(&lan, PacketType::ResumptionRequest), 0);
}

#[test]
fn simultaneous_resumptions_leave_one_association() {
    let mut lan = pair();
    lan.restart(0);
    lan.restart(1);
    let held = std::rc::Rc::new(std::cell::Cell::new(true));
    let gate = std::rc::Rc::clone(&held);
    // Both requests are lost once, so that both are open when they are repeated.
    lan.wire = Box::new(move |_, _, _| !gate.get());
    lan.ask(0, 2);
    lan.ask(1, 1);
    held.set(false);
    lan.pass(seconds(4));
    talk(&mut lan);
    for host in [0, 1] {
        let peers = lan.hosts[host].cll.control.peers(lan.at);
        assert_eq!(peers.iter().filter(|peer| peer.state == "established").count(), 1);
    }
}

#[test]
fn resumptions_are_answered_within_a_budget() {
    let mut lan = pair();
    lan.restart(0);
    lan.wire = Box::new(|_, _, _| false);
    lan.ask(0, 2);
    let request = frame_of(&lan, PacketType::ResumptionRequest);
    for number in 0..10 {
        let mut changed = request.clone();
        // Another nonce each time: none is a duplicate, and the binder is wrong.
        changed[ETHERNET_LEN + 54] = number;
        retag(&lan, &mut changed);
        lan.inject(1, changed);
    }
    assert!(lan.hosts[1].drops(DropReason::HandshakeBudget) >= 5);
    assert_eq!(lan.hosts[1].drops(DropReason::HandshakeBudget) + lan.hosts[1].drops(DropReason::BadBinder), 10);
}

#[test]
fn lost_jobs_cost_the_handshake() {
    for loser in [0, 1] {
        let mut lan = pair();
        lan.restart(0);
        lan.pass(seconds(1));
        lan.hosts[loser].loses_jobs = true;
        lan.ask(0, 2);
        assert!(!lan.hosts[0].established_with(2));
        lan.hosts[loser].loses_jobs = false;
        lan.pass(seconds(6));
        assert!(lan.hosts[0].established_with(2), "host {loser} lost its jobs");
    }
}

#[test]
fn a_host_without_tickets_is_as_before() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    lan.pass(seconds(5));
    for host in [0, 1] {
        assert!(lan.hosts[host].disk.tickets.is_empty() && lan.hosts[host].disk.keys.is_empty());
        assert!(!is_resumed(&lan, host));
    }
    lan.restart(0);
    lan.ask(0, 2);
    assert_eq!(sent(&lan, PacketType::ResumptionRequest), 0);
    assert!(lan.hosts[0].established_with(2));
}

#[test]
fn a_ticket_survives_its_file_and_no_damage() {
    let lan = pair();
    let held = &lan.hosts[0].disk.tickets[&mac(2)];
    let anchor = lan.hosts[0].settings.identity.anchor();
    let bytes = held.to_bytes();
    assert_eq!(HeldTicket::from_bytes(&bytes, anchor).as_ref(), Some(held));
    for len in 0..bytes.len() {
        assert_eq!(HeldTicket::from_bytes(&bytes[..len], anchor), None, "{len} bytes");
    }
    assert_eq!(HeldTicket::from_bytes(&[&bytes[..], &[0]].concat(), anchor), None);
    let stranger = Site::new(2).identity(2);
    assert_eq!(HeldTicket::from_bytes(&bytes, stranger.anchor()), None, "another site's");
    assert_eq!(format!("{held:?}"), format!("HeldTicket({}, redacted)", mac(2)));
    assert_eq!(ip(2), lan.hosts[1].settings.identity.certificate().addresses()[0]);
}
