//! S-DHCP step by step: a lease, a renewal, its end, and what each attack on DHCP comes to. The test itself is the DHCP program
//! of every host.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, DropReason, Gso, GsoKind, Instant, Meta, Now, Side};
use common::dhcp::*;
use common::{Lan, ip, mac};
use identity::distributor::RequestMaster;
use identity::site_key::SiteKey;
use sarp::Event;
use sarp::akd::Member;
use shield::sarp::{COUNTED, Count, Key, Outpost};
use wire::arp::{Arp, Operation};
use wire::dhcp::proof::{Claim, Proof};
use wire::dhcp::{MessageType, OPTION_PROOF, View};
use wire::ethernet::Header;
use wire::sarp::data::{self, CREDENTIAL_LEN, Lease, LeaseAction, Question, Refusal};
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

#[test]
fn a_host_gets_its_lease_and_may_then_speak_for_its_address() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    site.lease(OTHER, 8, ip(21));
    // The repository learnt it at the REQUEST, and with the ACK for how long.
    let leases = site.lan.repository.leases.borrow().clone();
    assert_eq!(leases[&ip(20)], (u64::from(CLIENT), Some(SECOND * LEASE_S)));
    assert!(site.events(CLIENT).contains(&Event::AddressLeased { ip: ip(20) }));
    let report = site.lan.station(SERVER).host.report(bump::Instant::from_millis(1));
    assert_eq!(
        report.leases.iter().map(|lease| (lease.ip, lease.host)).collect::<Vec<_>>(),
        [(ip(20), 1), (ip(21), 2)]
    );
    // Host 2 asks for 10.0.0.20 and believes host 1's signed answer.
    let question = wire::arp::Arp { sender_ip: ip(21), ..common::request(OTHER, ip(20)) };
    site.lan.station(OTHER).stack.table.clear();
    site.lan.stack_says(OTHER, question);
    site.lan.run(SECOND);
    let heard = site.lan.station(OTHER).stack.heard.last().copied().unwrap();
    assert_eq!((heard.sender_ip, heard.sender_mac), (ip(20), mac(CLIENT)));
    // When the lease has ended, the host says nothing for the address any more.
    site.lan.run(SECOND * LEASE_S);
    assert!(site.events(CLIENT).contains(&Event::LeaseLost { ip: ip(20) }));
    let dropped = site.drops(CLIENT, DropReason::ArpTarget);
    site.lan.inject(common::arp_frame(MacAddress::BROADCAST, mac(66), &common::request(66, ip(20))));
    site.lan.run(SECOND);
    assert_eq!(site.drops(CLIENT, DropReason::ArpTarget), dropped + 1);
    let own = wire::arp::Arp { sender_ip: ip(20), ..common::request(CLIENT, ip(21)) };
    site.lan.stack_says(CLIENT, own);
    assert_eq!(site.drops(CLIENT, DropReason::ArpNotOurs), 1);
}

type Shared<T> = Arc<Mutex<T>>;

/// What stands in front of a host, as told: until when answers about an address are wanted, until when it is its own, and what hosts'
/// requests are checked with.
#[derive(Clone, Debug, Default)]
struct Told {
    wanted: Shared<BTreeMap<Ipv4Addr, Instant>>,
    own: Shared<BTreeMap<Ipv4Addr, Instant>>,
    known: Shared<Vec<(u64, [u8; 16])>>,
    acquainted: Shared<BTreeSet<(MacAddress, Ipv4Addr)>>,
}

impl Outpost for Told {
    fn expect(&mut self, ip: Ipv4Addr, until: Instant) {
        self.wanted.lock().unwrap().insert(ip, until);
    }

    fn own(&mut self, ip: Ipv4Addr, until: Instant) {
        self.own.lock().unwrap().insert(ip, until);
    }

    fn acquaint(&mut self, mac: MacAddress, ip: Ipv4Addr) {
        self.acquainted.lock().unwrap().insert((mac, ip));
    }

    fn know(&mut self, host: u64, check_keys: &[Key]) {
        self.known.lock().unwrap().extend(check_keys.iter().map(|key| (host, **key)));
    }

    fn begin_anew(&mut self, _numbers: &[Key]) {
        self.known.lock().unwrap().clear();
    }

    fn dropped(&self) -> Count {
        COUNTED.map(|reason| if reason == DropReason::SarpUnasked { 3 } else { 0 })
    }
}

/// Left it out of what is done once a message is believed.
#[test]
fn a_host_tells_who_checks_in_front_who_has_proved_his_addresses() {
    let (mut lan, told) = (Lan::with_hosts(1, 2), Told::default());
    lan.run(SECOND);
    lan.station(1).host.set_outpost(Box::new(told.clone()));
    lan.ask(2, 1);
    lan.run(SECOND);
    assert!(told.acquainted.lock().unwrap().is_empty(), "who asks has proved nothing");
    lan.ask(1, 2);
    lan.run(SECOND);
    assert_eq!(*told.acquainted.lock().unwrap(), BTreeSet::from([(mac(2), ip(2))]));
}

/// Told it at every request: a system's memory was written each time.
#[test]
fn a_distributor_tells_who_checks_in_front_each_hosts_key_once() {
    let (mut site, told) = (site(), Told::default());
    let distributor = common::DISTRIBUTORS[0];
    site.lan.station(distributor).host.set_outpost(Box::new(told.clone()));
    let asks = |host: u64, nonce: u8| {
        let data = Question { host, nonce: [nonce; 16] }.emit();
        let arp = Arp { target_mac: mac(distributor), ..common::request(CLIENT, ip(1)) };
        let unsigned = Message { arp, kind: Kind::KeyRequest, seconds: 0, data: &data, signature: &[] }.signed_bytes();
        let message = seal(unsigned, &[9; CREDENTIAL_LEN]);
        [&mac(distributor).0[..], &mac(CLIENT).0, &[0x08, 0x06], &message].concat()
    };
    told.known.lock().unwrap().clear();
    let (one, last) = (1000, identity::limits::MAX_HOST_NUMBER);
    for (nonce, host) in [one, last, one, last + 1, u64::MAX, last, one].into_iter().enumerate() {
        site.lan.deliver(distributor, Side::WIRE, asks(host, nonce as u8));
    }
    let key = |host| **RequestMaster::from_bytes(common::MASTER).key_of(host).check_key().bytes();
    assert_eq!(*told.known.lock().unwrap(), [(one, key(one)), (last, key(last))]);
    assert_eq!(site.drops(distributor, DropReason::SarpRequestCheck), 7);
}

#[test]
fn who_checks_in_front_is_told_of_leases_and_questions_and_is_in_the_books() {
    let (mut site, told) = (site(), Told::default());
    site.lan.station(CLIENT).host.set_outpost(Box::new(told.clone()));
    let own_until = || told.own.lock().unwrap().get(&ip(20)).copied();
    assert_eq!(own_until(), None);
    site.lease(CLIENT, 7, ip(20));
    let first = own_until().unwrap();
    let lease = SECOND * LEASE_S;
    assert!(first > site.lan.now && first <= site.lan.now + lease, "{first:?} at {:?}", site.lan.now);
    site.lan.run(lease / 2);
    site.says(CLIENT, renewal(CLIENT, 9, ip(20)));
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 9, ip(20)));
    assert_eq!(site.heard(CLIENT), [MessageType::Ack]);
    let renewed = own_until().unwrap();
    assert!(renewed > first && renewed <= site.lan.now + lease, "{renewed:?} after {first:?}");
    let question = Arp { sender_ip: ip(20), ..common::request(CLIENT, ip(21)) };
    site.lan.stack_says(CLIENT, question);
    assert_eq!(told.wanted.lock().unwrap().get(&ip(21)), Some(&(site.lan.now + sarp::limits::QUESTION_OPEN)));
    assert_eq!(site.drops(CLIENT, DropReason::SarpUnasked), 3);
}

#[test]
fn a_renewal_goes_through_without_distributors_and_they_hear_of_it_later() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    for distributor in common::DISTRIBUTORS {
        site.lan.station(distributor).is_off = true;
    }
    site.lan.repository.leases.borrow_mut().insert(ip(20), (u64::from(CLIENT), None));
    site.says(CLIENT, renewal(CLIENT, 9, ip(20)));
    assert_eq!(site.heard(SERVER), [], "the question is open");
    site.lan.run(sarp::limits::ENQUIRY_REPEAT * sarp::limits::ENQUIRY_TRIES);
    assert_eq!(site.heard(SERVER), [MessageType::Request]);
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 9, ip(20)));
    assert_eq!(site.heard(CLIENT), [MessageType::Ack]);
    // The distributors come back after the question was given up; it is asked again until one answers.
    site.lan.run(SECOND * 20);
    for distributor in common::DISTRIBUTORS {
        site.lan.station(distributor).is_off = false;
    }
    site.lan.run(SECOND * 20);
    assert_eq!(site.lan.repository.leases.borrow()[&ip(20)].1, Some(SECOND * LEASE_S));
}

/// The DHCP program beside it has its address still, and asks again when half of the lease is over.
#[test]
fn a_daemon_that_is_started_anew_goes_on_with_its_lease() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    site.lease(OTHER, 8, ip(21));
    let now = site.lan.now;
    let report = site.lan.station(CLIENT).host.report(now);
    let own = report.leases.iter().filter(|lease| !lease.given);
    let kept: Vec<_> = own.map(|lease| (lease.ip, lease.remaining.map(|left| now + left))).collect();
    assert_eq!(kept.len(), 1);
    let heard = |site: &mut Site| {
        let question = wire::arp::Arp { sender_ip: ip(21), ..common::request(OTHER, ip(20)) };
        let before = site.lan.station(OTHER).stack.heard.len();
        site.lan.station(OTHER).stack.table.clear();
        site.lan.stack_says(OTHER, question);
        site.lan.run(SECOND);
        site.lan.station(OTHER).stack.heard.len() - before
    };
    site.lan.restart(CLIENT);
    site.lan.run(SECOND);
    assert_eq!(heard(&mut site), 0, "nobody speaks for it");
    site.lan.restart(CLIENT);
    site.lan.station(CLIENT).host.resume_leases(now, &kept);
    site.lan.run(SECOND);
    assert_eq!(heard(&mut site), 1);
    // It ends when it would have ended, and what is over does not come back.
    site.lan.run(SECOND * LEASE_S);
    assert!(site.events(CLIENT).contains(&Event::LeaseLost { ip: ip(20) }));
    site.lan.restart(CLIENT);
    let later = site.lan.now;
    site.lan.station(CLIENT).host.resume_leases(later, &kept);
    assert_eq!(site.lan.station(CLIENT).host.report(later).leases, []);
}

#[test]
fn a_lease_that_is_given_back_is_unbound() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    site.says(CLIENT, release(CLIENT, ip(20)));
    // From that moment the host speaks for it no longer.
    site.lan.stack_says(CLIENT, wire::arp::Arp { sender_ip: ip(20), ..common::request(CLIENT, ip(21)) });
    assert_eq!(site.drops(CLIENT, DropReason::ArpNotOurs), 1);
    assert_eq!(site.heard(SERVER), [MessageType::Release]);
    assert!(site.lan.repository.leases.borrow().is_empty());
    assert!(site.lan.station(SERVER).host.report(bump::Instant::from_millis(1)).leases.is_empty());
    // Now another may have it; before, nobody could.
    site.lease(OTHER, 8, ip(20));
}

#[test]
fn what_a_distributor_refuses_the_server_program_never_sees() {
    let mut site = site();
    let refused = |site: &mut Site, xid: u32, wanted: Ipv4Addr, why: Refusal| {
        site.says(CLIENT, request(CLIENT, xid, wanted));
        assert_eq!(site.heard(SERVER), [], "{why:?}");
        let event = Event::LeaseRefused { ip: wanted, host: u64::from(CLIENT), why: Some(why) };
        assert!(site.events(SERVER).contains(&event), "{why:?}");
    };
    refused(&mut site, 1, ip(210), Refusal::OutsideSubnets);
    site.lan.repository.leases.borrow_mut().insert(ip(30), (77, None));
    refused(&mut site, 2, ip(30), Refusal::Taken);
    let member = site.lan.repository.members.borrow_mut().remove(&u64::from(CLIENT)).unwrap();
    refused(&mut site, 3, ip(20), Refusal::NotGood);
    let moved = Member { mac: Some(mac(9)), ..member.clone() };
    site.lan.repository.members.borrow_mut().insert(u64::from(CLIENT), moved);
    refused(&mut site, 4, ip(20), Refusal::Mac);
    let other_key = site.lan.repository.members.borrow()[&u64::from(OTHER)].key.clone();
    let rekeyed = Member { key: other_key, ..member.clone() };
    site.lan.repository.members.borrow_mut().insert(u64::from(CLIENT), rekeyed);
    refused(&mut site, 5, ip(20), Refusal::Signature);
    site.lan.repository.members.borrow_mut().insert(u64::from(CLIENT), member);
    site.lan.repository.members.borrow_mut().get_mut(&u64::from(SERVER)).unwrap().serves_dhcp = false;
    refused(&mut site, 6, ip(20), Refusal::NotServer);
    assert_eq!(site.drops(SERVER, DropReason::DhcpRefused), 6);
    // And when none can be asked, it waits and then ends.
    site.lan.repository.fails = true;
    site.says(CLIENT, request(CLIENT, 7, ip(20)));
    site.lan.run(SECOND * 5);
    assert_eq!((site.heard(SERVER), site.drops(SERVER, DropReason::DhcpNoAnswer)), (vec![], 1));
}

#[test]
fn a_host_that_is_revoked_renews_nothing() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    site.lan.repository.members.borrow_mut().remove(&u64::from(CLIENT));
    for (xid, frame) in
        [renewal(CLIENT, 9, ip(20)), discover(CLIENT, 10), release(CLIENT, ip(20))].into_iter().enumerate()
    {
        site.says(CLIENT, frame);
        assert_eq!((site.heard(SERVER), site.drops(SERVER, DropReason::DhcpRefused)), (vec![], xid as u64 + 1));
    }
}

#[test]
fn starvation_by_outsiders_and_insiders_costs_no_address() {
    let mut site = site();
    for number in 100..120 {
        let frame = message(MessageType::Discover, mac(66), mac(number), 1, [NOBODY; 2], &[]);
        site.lan.inject(frame);
        site.lan.inject(discover(number, 1));
    }
    site.lan.run(SECOND);
    assert_eq!(site.drops(SERVER, DropReason::DhcpChaddr), 20, "not the frame's own address");
    assert_eq!(site.drops(SERVER, DropReason::DhcpUnsigned), 20);
    // A host of the site that asks under made-up hardware addresses: the distributor knows its own.
    let forged = site.insiders(INSIDER, mac(120), &discover(120, 1));
    site.inject(forged);
    assert_eq!(site.drops(SERVER, DropReason::DhcpChaddr), 21);
    // Under its own it gets a few addresses and no more.
    for xid in 0..6 {
        site.says(INSIDER, request(INSIDER, xid, ip(30 + xid as u8)));
        site.says(SERVER, answer(MessageType::Ack, SERVER, INSIDER, xid, ip(30 + xid as u8)));
    }
    assert_eq!(site.heard(SERVER).len(), dhcp::limits::LEASES_PER_HOST_MAX);
    assert_eq!(site.drops(SERVER, DropReason::DhcpLeasesFull), 2);
    // Another site's key, and somebody who changes a number.
    let stranger = Client::of_another_site();
    site.inject(stranger);
    assert_eq!(site.drops(SERVER, DropReason::DhcpTag), 1);
    assert!(site.heard(SERVER).is_empty());
}

struct Client;

impl Client {
    fn of_another_site() -> Vec<u8> {
        let settings = dhcp::client::Settings {
            mac: mac(66),
            host: 1,
            site_keys: SiteKey::from_bytes([9; 32]).into(),
            servers: Vec::new(),
            window: sarp::limits::WINDOW,
        };
        let now = bump::Instant::from_millis(1);
        let proving = dhcp::Client::new(settings).outgoing(now, Some(5), [0; 16], &discover(66, 1)).unwrap();
        let lan = &mut Lan::new(9);
        let identity = lan.identity(66);
        proving.run(&identity.signing_key()).unwrap()
    }
}

#[test]
fn a_rogue_server_is_not_heard() {
    let mut site = site();
    site.says(CLIENT, discover(CLIENT, 7));
    site.inject(answer(MessageType::Offer, 66, CLIENT, 7, ip(66)));
    site.inject(answer(MessageType::Ack, 66, CLIENT, 7, ip(66)));
    // For an exchange that is not open, and for another host.
    site.inject(answer(MessageType::Offer, 66, CLIENT, 8, ip(66)));
    site.inject(answer(MessageType::Offer, 66, 77, 7, ip(66)));
    assert_eq!(site.heard(CLIENT), []);
    assert_eq!(site.drops(CLIENT, DropReason::DhcpUnsigned), 2);
    assert_eq!((site.drops(CLIENT, DropReason::DhcpUnasked), site.drops(CLIENT, DropReason::NotForUs)), (1, 1));
    let event = Event::DhcpServerRefused { mac: mac(66), reason: DropReason::DhcpUnsigned };
    assert!(site.events(CLIENT).contains(&event));
    // A host of the site that is no server: its own daemon does not let it, and its signature is no server's.
    site.says(INSIDER, answer(MessageType::Offer, INSIDER, CLIENT, 7, ip(66)));
    assert_eq!(site.drops(INSIDER, DropReason::DhcpNotServer), 1 + 1, "the client's request, and its own answer");
    let genuine = site.intercept(SERVER, answer(MessageType::Offer, SERVER, CLIENT, 7, ip(20)));
    let mut renamed = genuine.clone();
    let proof = View::new(&genuine).unwrap().option(OPTION_PROOF).unwrap().to_vec();
    let at = genuine.windows(proof.len()).position(|part| part == proof).unwrap();
    renamed[at + 100] ^= 1;
    site.inject(renamed);
    assert_eq!(site.drops(CLIENT, DropReason::DhcpSignature), 1);
    site.inject(genuine);
    assert_eq!(site.heard(CLIENT), [MessageType::Offer], "and the right one still counts");
}

#[test]
fn every_byte_of_an_answer_counts_but_those_that_relays_change() {
    let mut site = site();
    site.says(CLIENT, discover(CLIENT, 7));
    let genuine = site.intercept(SERVER, answer(MessageType::Offer, SERVER, CLIENT, 7, ip(20)));
    // An option more: routes, name servers, a proxy's address.
    let view = View::new(&genuine).unwrap();
    let proof = view.option(OPTION_PROOF).unwrap().to_vec();
    let bare = View::new(&genuine).unwrap().without_proof().unwrap();
    let end = bare.iter().rposition(|byte| *byte == 255).unwrap();
    let mut more = bare[..end].to_vec();
    more.extend(option(121, &[0, 10, 0, 0, 66]));
    more.push(255);
    more.resize(bare.len().max(more.len()), 0);
    site.inject(View::new(&more).unwrap().with_proof(&proof).unwrap());
    assert_eq!((site.heard(CLIENT), site.drops(CLIENT, DropReason::DhcpTag)), (vec![], 1));
    for at in 42..genuine.len() {
        let mut changed = genuine.clone();
        changed[at] ^= 0x10;
        site.lan.inject(changed);
    }
    // Slowly, so that no budget hides a mistake.
    site.lan.run(SECOND);
    // hops, secs and giaddr of the offer, and the zeros behind its end.
    let free = 1 + 2 + 4;
    let heard = site.heard(CLIENT).len();
    let padding = genuine.len() - 1 - genuine.iter().rposition(|byte| *byte == 255).unwrap();
    assert!(heard <= free + padding, "{heard} changed offers came in");
    assert!(heard > 0, "an offer stays open");
}

#[test]
fn forged_releases_declines_and_refusals_change_nothing() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    site.inject(release(CLIENT, ip(20)));
    let decline =
        message(MessageType::Decline, mac(CLIENT), mac(CLIENT), 5, [NOBODY; 2], &option(50, &ip(20).octets()));
    site.inject(decline);
    assert_eq!(site.drops(SERVER, DropReason::DhcpUnsigned), 2);
    // An enrolled host gives back what another has.
    site.says(INSIDER, release(INSIDER, ip(20)));
    site.says(INSIDER, request(INSIDER, 4, ip(20)));
    assert_eq!(site.drops(SERVER, DropReason::DhcpNotHolder), 2);
    // A refusal of the client's renewal.
    site.says(CLIENT, renewal(CLIENT, 9, ip(20)));
    site.inject(answer(MessageType::Nak, 66, CLIENT, 9, NOBODY));
    assert_eq!((site.heard(CLIENT), site.drops(CLIENT, DropReason::DhcpUnsigned)), (vec![], 1));
    assert!(site.lan.repository.leases.borrow().contains_key(&ip(20)));
    // The server's own refusal counts.
    site.says(SERVER, answer(MessageType::Nak, SERVER, CLIENT, 9, NOBODY));
    assert_eq!(site.heard(CLIENT), [MessageType::Nak]);
    assert!(site.events(CLIENT).contains(&Event::LeaseLost { ip: ip(20) }));
    assert!(!site.lan.repository.leases.borrow().contains_key(&ip(20)));
}

#[test]
fn recordings_of_either_side_come_to_nothing() {
    let mut site = site();
    site.lan.seen.clear();
    site.lease(CLIENT, 7, ip(20));
    let recorded: Vec<_> = site.lan.seen.iter().filter(|frame| View::new(frame).is_ok()).cloned().collect();
    assert_eq!(recorded.len(), 4);
    let again = |site: &mut Site| {
        for frame in recorded.clone() {
            site.inject(frame);
        }
        assert_eq!((site.heard(SERVER), site.heard(CLIENT)), (vec![], vec![]));
    };
    again(&mut site);
    assert_eq!(site.drops(SERVER, DropReason::DhcpStale), 2);
    assert_eq!(site.drops(CLIENT, DropReason::DhcpUnasked), 2);
    // A server that was started again remembers nobody, and believes nothing that is older than itself.
    site.lan.restart(SERVER);
    site.lan.run(SECOND);
    again(&mut site);
    assert_eq!(site.drops(SERVER, DropReason::DhcpStale), 2);
    site.lan.run(SECOND * 60);
    again(&mut site);
}

#[test]
fn fields_of_relays_are_believed_from_listed_relays_only() {
    let relay = dhcp::server::Relay { ip: Ipv4Addr::new(10, 9, 0, 1), mac: mac(70) };
    let mut site = site_with(vec![relay]);
    let relayed = |site: &mut Site, xid: u32, from: MacAddress, giaddr: Ipv4Addr| {
        let mut frame = site.intercept(CLIENT, discover(CLIENT, xid));
        frame[6..12].copy_from_slice(&from.0);
        frame[42 + 3] = 1;
        frame[42 + 24..42 + 28].copy_from_slice(&giaddr.octets());
        site.inject(frame);
    };
    relayed(&mut site, 1, mac(66), relay.ip);
    relayed(&mut site, 2, mac(70), ip(66));
    relayed(&mut site, 3, mac(CLIENT), relay.ip);
    // A client cannot say of itself where it is plugged in.
    let mut frame = site.intercept(CLIENT, discover(CLIENT, 4));
    let proof = View::new(&frame).unwrap().option(OPTION_PROOF).unwrap().to_vec();
    let option82 = message(MessageType::Discover, mac(CLIENT), mac(CLIENT), 4, [NOBODY; 2], &option(82, &[1, 1, 7]));
    frame = View::new(&option82).unwrap().with_proof(&proof).unwrap();
    site.inject(frame);
    assert_eq!((site.heard(SERVER), site.drops(SERVER, DropReason::DhcpRelay)), (vec![], 4));
    relayed(&mut site, 5, mac(70), relay.ip);
    assert_eq!(site.heard(SERVER), [MessageType::Discover]);
    // Nor does this host's own program play a relay.
    let mut own = discover(CLIENT, 6);
    own[42 + 24..42 + 28].copy_from_slice(&relay.ip.octets());
    site.says(CLIENT, own);
    assert_eq!(site.drops(CLIENT, DropReason::DhcpRelay), 1);
}

#[test]
fn the_server_program_is_held_to_what_was_agreed() {
    let mut site = site();
    site.says(CLIENT, request(CLIENT, 7, ip(20)));
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(21)));
    assert_eq!(site.drops(SERVER, DropReason::DhcpAddress), 1);
    // It answers only what it was asked, once for each question's kind.
    site.says(SERVER, answer(MessageType::Offer, SERVER, CLIENT, 7, ip(20)));
    site.says(SERVER, answer(MessageType::Ack, SERVER, OTHER, 7, ip(20)));
    assert_eq!(site.drops(SERVER, DropReason::DhcpUnasked), 2);
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(20)));
    assert_eq!(site.heard(CLIENT), [MessageType::Ack]);
    assert_eq!(site.heard(OTHER), []);
}

#[test]
fn an_answer_to_a_request_for_another_server_does_not_leave() {
    let mut site = site();
    let more = [option(50, &ip(20).octets()), option(54, &ip(51).octets())].concat();
    let elsewhere = message(MessageType::Request, mac(CLIENT), mac(CLIENT), 7, [NOBODY; 2], &more);
    site.says(CLIENT, elsewhere);
    // The program hears that its offer was not taken. No distributor has bound anything.
    assert_eq!(site.heard(SERVER), [MessageType::Request]);
    assert!(site.lan.repository.leases.borrow().is_empty());
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(20)));
    assert_eq!((site.heard(CLIENT), site.drops(SERVER, DropReason::DhcpAddress)), (vec![], 1));
}

#[test]
fn a_repeated_request_may_be_answered_by_either_answer() {
    let mut site = site();
    site.says(CLIENT, discover(CLIENT, 7));
    let late = site.intercept(SERVER, answer(MessageType::Offer, SERVER, CLIENT, 7, ip(20)));
    site.says(CLIENT, discover(CLIENT, 7));
    site.inject(late);
    assert_eq!(site.heard(CLIENT), [MessageType::Offer]);
    assert_eq!(site.heard(SERVER), [MessageType::Discover; 2], "a repetition is no replay");
}

#[test]
fn nothing_hides_from_the_guard_and_the_rest_passes() {
    let mut site = site();
    let mut fragment = discover(CLIENT, 1);
    fragment[20] = 0x20;
    let mut with_options = discover(CLIENT, 1);
    with_options[14] = 0x46;
    with_options.splice(34..34, [1, 1, 1, 0]);
    let mut tagged = discover(CLIENT, 1);
    tagged.splice(12..12, [0x81, 0, 0, 0]);
    for (frame, reason) in
        [(fragment, DropReason::DhcpHidden), (with_options, DropReason::DhcpMalformed), (tagged, DropReason::Vlan)]
    {
        site.inject(frame.clone());
        site.says(CLIENT, frame);
        assert_eq!((site.drops(SERVER, reason), site.drops(CLIENT, reason)), (1, 2), "{reason:?}");
    }
    assert_eq!(site.heard(SERVER), []);
    let mut dns = discover(CLIENT, 1);
    (dns[35], dns[37]) = (53, 53);
    let before = site.lan.station(SERVER).stack.others;
    site.says(CLIENT, dns);
    assert_eq!(site.lan.station(SERVER).stack.others, before + 1);
}

#[test]
fn without_the_time_a_host_asks_nothing() {
    let mut site = site();
    for distributor in common::DISTRIBUTORS {
        site.lan.station(distributor).is_off = true;
    }
    site.lan.restart(CLIENT);
    site.says(CLIENT, discover(CLIENT, 1));
    assert_eq!((site.heard(SERVER), site.drops(CLIENT, DropReason::SarpNoClock)), (vec![], 1));
    for distributor in common::DISTRIBUTORS {
        site.lan.station(distributor).is_off = false;
    }
    // It needs no address to ask for the time.
    site.lan.run(SECOND * 6);
    site.says(CLIENT, discover(CLIENT, 2));
    assert_eq!(site.heard(SERVER), [MessageType::Discover]);
}

#[test]
fn a_host_that_is_neither_client_nor_server_lets_dhcp_pass_as_it_is() {
    let mut site = site();
    site.lan.add(9, |_| {});
    site.says(9, discover(9, 1));
    assert_eq!(site.drops(SERVER, DropReason::DhcpUnsigned), 1);
    site.inject(answer(MessageType::Offer, 66, 9, 1, ip(66)));
    assert_eq!(site.heard(9), [MessageType::Offer]);
}

#[test]
fn a_flood_of_one_source_is_bounded() {
    let mut site = site();
    site.says(CLIENT, discover(CLIENT, 1));
    assert_eq!(site.heard(SERVER), [MessageType::Discover]);
    // Different recordings of one second, each with its own stamp.
    let frames: Vec<_> = (10..18).map(|xid| site.intercept(CLIENT, discover(CLIENT, xid))).collect();
    for frame in frames.iter().chain(&frames).chain(&frames) {
        site.lan.inject(frame.clone());
    }
    site.lan.run(SECOND);
    let heard = site.heard(SERVER).len();
    assert!(heard <= dhcp::limits::MESSAGES_PER_SOURCE_PER_SECOND as usize, "{heard}");
    // And the host's own program cannot make it sign without end.
    for xid in 100..200 {
        site.lan.deliver(CLIENT, Side::STACK, discover(CLIENT, xid));
    }
    assert!(site.drops(CLIENT, DropReason::DhcpBudget) >= 80);
}

#[test]
fn a_host_of_the_site_cannot_ask_in_anothers_name_or_from_anothers_card() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    site.lease(INSIDER, 8, ip(21));
    // The server has both keys by now; what a distributor says is the same.
    for frame in [release(CLIENT, ip(20)), discover(CLIENT, 9)] {
        let forged = site.insiders(CLIENT, mac(CLIENT), &frame);
        site.inject(forged);
    }
    assert_eq!((site.heard(SERVER), site.drops(SERVER, DropReason::DhcpSignature)), (vec![], 2));
    let forged = site.insiders(INSIDER, mac(120), &discover(120, 9));
    site.inject(forged);
    assert_eq!((site.heard(SERVER), site.drops(SERVER, DropReason::DhcpChaddr)), (vec![], 1));
}

#[test]
fn an_answer_belongs_to_one_request_and_to_its_time() {
    let mut site = site();
    site.lan.seen.clear();
    site.lease(CLIENT, 7, ip(20));
    let is_ack = |frame: &&Vec<u8>| View::new(frame).is_ok_and(|view| view.kind() == MessageType::Ack);
    let recorded = site.lan.seen.iter().find(is_ack).unwrap().clone();
    // A program may use its xid again; the answer to the request before is none to this one.
    site.says(CLIENT, renewal(CLIENT, 7, ip(20)));
    site.inject(recorded);
    assert_eq!((site.heard(CLIENT), site.drops(CLIENT, DropReason::DhcpUnasked)), (vec![], 1));
    let late = site.intercept(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(20)));
    site.lan.run(sarp::limits::WINDOW);
    site.inject(late);
    assert_eq!((site.heard(CLIENT), site.drops(CLIENT, DropReason::DhcpStale)), (vec![], 1));
}

#[test]
fn a_source_is_looked_at_a_few_times_in_a_second() {
    let mut site = site();
    site.says(CLIENT, discover(CLIENT, 1));
    for xid in 10..20 {
        site.lan.deliver(CLIENT, Side::STACK, discover(CLIENT, xid));
    }
    site.lan.run(SECOND);
    let limit = dhcp::limits::MESSAGES_PER_SOURCE_PER_SECOND as usize;
    assert_eq!(site.heard(SERVER).len(), 1 + limit);
    assert_eq!(site.drops(SERVER, DropReason::DhcpBudget), 10 - limit as u64);
}

/// What a distributor answers when the DHCP server itself asks this, `age_s` seconds ago.
fn asked_by_the_server(site: &mut Site, lease: &Lease<'_>, age_s: u32) -> Option<(Kind, Vec<u8>)> {
    let distributor = common::DISTRIBUTORS[0];
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: mac(SERVER),
        sender_ip: ip(SERVER),
        target_mac: mac(distributor),
        target_ip: lease.address,
    };
    let seconds = common::START_UNIX_S as u32 + (site.lan.now.as_nanos() / 1_000_000_000) as u32 - age_s;
    let data = lease.emit();
    let unsigned = Message { arp, kind: Kind::Lease, seconds, data: &data, signature: &[] }.signed_bytes();
    let key = RequestMaster::from_bytes(common::MASTER).key_of(u64::from(SERVER));
    let credential = key.credential(&unsigned);
    let header = Header { destination: mac(distributor), source: mac(SERVER), ethertype: EtherType::ARP };
    site.lan.seen.clear();
    site.inject([&header.emit()[..], &seal(unsigned, &credential)].concat());
    let answer = site.lan.seen.last().and_then(|frame| Message::parse(&frame[14..]).ok()).map(|message| {
        (message.kind, data::Answer::parse(message.data).map(|answer| answer.rest.to_vec()).unwrap_or_default())
    });
    answer.filter(|(kind, _)| *kind != Kind::Lease)
}

#[test]
fn a_distributor_does_not_take_a_servers_word_for_what_a_client_wants() {
    let mut site = site();
    let frame = site.intercept(CLIENT, request(CLIENT, 7, ip(20)));
    let view = View::new(&frame).unwrap();
    let option = view.option(OPTION_PROOF).unwrap().to_vec();
    let proof = Proof::parse(&option).unwrap();
    let digest = identity::hash::sha256(&[&view.canonical()]);
    let claim = Claim::of(&view, proof.who, proof.stamp, proof.nonce, digest).unwrap();
    let mut nonce = 0;
    let mut lease = |action, address, host: u8, claim| {
        nonce += 1;
        let question = Question { host: u64::from(SERVER), nonce: [nonce; 16] };
        Lease { question, action, address, seconds: 600, host: u64::from(host), claim }
    };
    let signed = Some((claim, proof.signature));
    let refused = |why: Refusal| Some((Kind::LeaseRefused, vec![why as u8]));
    let elsewhere = lease(LeaseAction::Bind, ip(21), CLIENT, signed);
    assert_eq!(asked_by_the_server(&mut site, &elsewhere, 0), refused(Refusal::Signature));
    let unsigned = lease(LeaseAction::Bind, ip(20), CLIENT, None);
    assert_eq!(asked_by_the_server(&mut site, &unsigned, 0), refused(Refusal::Signature));
    let unheld = lease(LeaseAction::Extend, ip(20), CLIENT, None);
    assert_eq!(asked_by_the_server(&mut site, &unheld, 0), refused(Refusal::NotHeld));
    let free = lease(LeaseAction::Unbind, ip(20), CLIENT, None);
    assert_eq!(asked_by_the_server(&mut site, &free, 0), refused(Refusal::NotHeld));
    let old = lease(LeaseAction::Bind, ip(20), CLIENT, signed);
    assert_eq!(asked_by_the_server(&mut site, &old, 120), None);
    assert_eq!(site.lan.station(common::DISTRIBUTORS[0]).drops(DropReason::SarpStale), 1);
    let right = lease(LeaseAction::Bind, ip(20), CLIENT, signed);
    assert_eq!(asked_by_the_server(&mut site, &right, 0).map(|(kind, _)| kind), Some(Kind::LeaseAgreed));
    assert_eq!(site.lan.repository.leases.borrow()[&ip(20)], (1, Some(sarp::limits::PROPOSAL_TIME)));
}

#[test]
fn dhcp_in_one_large_frame_does_not_pass() {
    let mut site = site();
    let gso = Some(Gso { kind: GsoKind::Udp, size: 300, ecn: false });
    let now = Now { since_boot: site.lan.now, wall: None };
    for side in [Side::STACK, Side::WIRE] {
        let mut frames = [(discover(CLIENT, 1), Meta { gso, ..Meta::plain() })];
        let mut sink = Collected::new();
        site.lan.station(CLIENT).host.process(now, side, &mut Frames::new(&mut frames), &mut sink);
        assert!(sink.take().is_empty());
    }
    assert_eq!(site.drops(CLIENT, DropReason::DhcpMalformed), 2);
}

/// Distributors are a day ahead before anybody has heard of them, and are put right. Broke it by not asking for the time where a
/// DHCP message is out of the window: the client was kept out until the server asked by itself, ten minutes later.
#[test]
fn distributors_a_day_ahead_before_first_contact_are_followed_and_so_is_what_puts_them_right() {
    const DAY_S: i64 = 86_400;
    let mut site = site();
    let set = |site: &mut Site, error_s: i64| {
        for distributor in common::DISTRIBUTORS {
            site.lan.station(distributor).wall_error_s = error_s;
        }
    };
    set(&mut site, DAY_S);
    for number in common::DISTRIBUTORS.into_iter().chain([SERVER, CLIENT, OTHER]) {
        site.lan.restart(number);
    }
    site.lan.run(SECOND);
    // Nobody can know better, so all is well, a day ahead.
    site.lease(CLIENT, 7, ip(20));
    set(&mut site, 0);
    // Who comes now has the right time, which is out of the window of all others.
    site.lan.restart(OTHER);
    site.lan.run(SECOND * 6);
    site.says(OTHER, discover(OTHER, 8));
    assert_eq!(site.heard(SERVER), [], "an answer of a distributor puts the server right");
    assert!(site.drops(SERVER, DropReason::DhcpStale) > 0);
    site.lease(OTHER, 9, ip(21));
    // And who is ahead still is put right by what it sends in vain.
    site.says(CLIENT, renewal(CLIENT, 10, ip(20)));
    assert_eq!(site.heard(SERVER), []);
    site.says(CLIENT, renewal(CLIENT, 10, ip(20)));
    assert_eq!(site.heard(SERVER), [MessageType::Request]);
}
