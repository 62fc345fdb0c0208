//! The paper profile: hosts and distributors that sign with DSA and SHA-1, and S-DHCP in the paper's order.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use bump::DropReason;
use common::dhcp::{CLIENT, LEASE_S, OTHER, SECOND, SERVER, answer, discover, renewal, request, site, site_of_paper};
use common::{DISTRIBUTORS, Lan, ip, mac};
use dhcp::server::Order;
use identity::Profile;
use identity::profile::KeyLength;
use sarp::Event;
use sarp::akd::Lookup;
use wire::dhcp::MessageType;
use wire::sarp::data::Refusal;
use wire::sarp::{Kind, Message};

#[test]
fn hosts_resolve_each_other_with_keys_of_both_lengths() {
    let mut lan = Lan::with_hosts_of(1, 3, Profile::Paper);
    lan.run(SECOND);
    for (asking, asked) in [(1, 2), (2, 1), (1, 3), (3, 1)] {
        lan.ask(asking, asked);
        lan.run(SECOND);
        assert_eq!(lan.station(asking).knows(asked), Some(mac(asked)), "{asking} asks for {asked}");
    }
    let messages: Vec<_> = lan.seen.iter().filter_map(|frame| Message::parse(&frame[14..]).ok()).collect();
    let signed = messages.iter().filter(|message| matches!(message.kind, Kind::Resolution | Kind::KeyReply));
    let lengths: Vec<usize> = signed.map(|message| message.signature.len()).collect();
    assert!(lengths.len() >= 8 && lengths.iter().all(|len| *len == 40), "{lengths:?}");
    // Algorithm and key of every record that was given out: 512 bits for even hosts, 1024 for odd ones.
    for message in messages.iter().filter(|message| message.kind == Kind::KeyReply) {
        let host = message.arp.sender_ip.octets()[3];
        let (algorithm, len) = if host % 2 == 0 { (3, 64) } else { (4, 128) };
        assert_eq!((message.data[28], message.data.len() - 36), (algorithm, len), "host {host}");
    }
}

#[test]
fn an_answer_that_was_changed_or_signed_by_another_is_not_believed() {
    let mut lan = Lan::with_hosts_of(1, 2, Profile::Paper);
    lan.run(SECOND);
    lan.fault = Some(Box::new(|_, frame| {
        let is_answer = Message::parse(&frame[14..]).is_ok_and(|message| message.kind == Kind::Resolution);
        if is_answer && frame[21] == 2 {
            // The first byte behind the data, which is the signature's.
            frame[14 + 44] ^= 1;
        }
        vec![std::time::Duration::ZERO]
    }));
    lan.ask(1, 2);
    lan.run(SECOND * 5);
    assert_eq!(lan.station(1).knows(2), None);
    assert!(lan.station(1).drops(DropReason::SarpSignature) > 0);
}

/// The exponentials are made when a host has nothing else to do, and again after they were used.
#[test]
fn signatures_are_prepared_in_idle_moments() {
    let mut lan = Lan::with_hosts_of(1, 2, Profile::Paper);
    assert!(lan.station(2).settings.key.wants_preparation(), "nothing is there before the first turn");
    lan.run(SECOND);
    assert!(!lan.station(2).settings.key.wants_preparation());
    lan.run(SECOND);
    // Asked often enough to use up a batch: the host goes on preparing.
    for _ in 0..40 {
        lan.station(1).stack.table.clear();
        lan.ask(1, 2);
        lan.run(SECOND);
    }
    assert_eq!(lan.station(1).knows(2), Some(mac(2)));
    assert!(!lan.station(2).settings.key.wants_preparation(), "what was used was made again");
    let mut modern = Lan::with_hosts(1, 2);
    modern.run(SECOND);
    assert!(!modern.station(1).settings.key.wants_preparation(), "a modern key has nothing to prepare");
}

#[test]
fn a_modern_host_refuses_the_key_of_a_paper_host_though_its_distributor_gives_it() {
    let mut lan = Lan::with_hosts(1, 2);
    let weak = common::paper_key(KeyLength::Bits1024, 2);
    let (algorithm, key) = weak.record_key().map(|(algorithm, key)| (algorithm, key.to_vec())).unwrap();
    lan.repository.hosts.borrow_mut().insert(ip(2), Lookup::Good { algorithm, key, mac: None });
    lan.station(2).settings.key = std::sync::Arc::new(weak);
    lan.restart(2);
    lan.run(SECOND);
    lan.ask(1, 2);
    lan.run(SECOND * 6);
    assert_eq!(lan.station(1).knows(2), None);
    assert!(lan.station(1).drops(DropReason::SarpSignature) > 0);
}

#[test]
fn a_modern_distributor_enters_no_key_of_the_paper_profile() {
    let mut lan = Lan::with_hosts(1, 1);
    lan.run(SECOND);
    assert!(lan.change_key_to(1, common::paper_key(KeyLength::Bits512, 7)));
    lan.run(SECOND);
    assert!(lan.station(1).events.contains(&Event::OwnKeyKept));
    let entry = lan.repository.hosts.borrow()[&ip(1)].clone();
    assert!(matches!(entry, Lookup::Good { algorithm: 1, .. }), "{entry:?}");
    // In a site of its own profile a host changes to the other length.
    let mut lan = Lan::with_hosts_of(1, 2, Profile::Paper);
    lan.run(SECOND);
    assert!(lan.change_key_to(1, common::paper_key(KeyLength::Bits1024, 7)));
    lan.run(SECOND);
    assert!(lan.station(1).events.contains(&Event::OwnKeyChanged));
    lan.ask(2, 1);
    lan.run(SECOND);
    assert_eq!(lan.station(2).knows(1), Some(mac(1)));
}

#[test]
fn a_lease_under_the_paper_profile_in_either_order() {
    for order in [Order::AtRequest, Order::AtAck] {
        let mut site = site_of_paper(order);
        site.lease(CLIENT, 7, ip(20));
        site.lease(OTHER, 8, ip(21));
        let leases = site.lan.repository.leases.borrow().clone();
        assert_eq!(leases[&ip(20)], (u64::from(CLIENT), Some(SECOND * LEASE_S)), "{order:?}");
        // A renewal goes through at once.
        site.says(CLIENT, renewal(CLIENT, 9, ip(20)));
        site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 9, ip(20)));
        assert_eq!((site.heard(SERVER), site.heard(CLIENT)), (vec![MessageType::Request], vec![MessageType::Ack]));
    }
}

#[test]
fn the_papers_order_holds_the_ack_until_a_distributor_has_answered() {
    let mut site = site_of_paper(Order::AtAck);
    site.says(CLIENT, discover(CLIENT, 7));
    site.says(SERVER, answer(MessageType::Offer, SERVER, CLIENT, 7, ip(20)));
    site.says(CLIENT, request(CLIENT, 7, ip(20)));
    assert_eq!(site.heard(SERVER), [MessageType::Discover, MessageType::Request]);
    assert_eq!(site.heard(CLIENT), [MessageType::Offer]);
    assert!(site.lan.repository.leases.borrow().is_empty(), "nobody was asked yet");
    for distributor in DISTRIBUTORS {
        site.lan.station(distributor).is_off = true;
    }
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(20)));
    assert_eq!(site.heard(CLIENT), [], "the ACK waits");
    assert_eq!(site.lan.station(SERVER).ledger().held, 1);
    for distributor in DISTRIBUTORS {
        site.lan.station(distributor).is_off = false;
    }
    site.lan.run(SECOND);
    assert_eq!(site.heard(CLIENT), [MessageType::Ack]);
    assert_eq!(site.lan.station(SERVER).ledger().held, 0);
    assert_eq!(site.lan.repository.leases.borrow()[&ip(20)], (u64::from(CLIENT), Some(SECOND * LEASE_S)));
}

/// Why the modern order asks at the REQUEST: a program that has sent an ACK has committed the lease.
#[test]
fn the_papers_order_leaves_a_program_with_a_lease_that_was_refused() {
    let refuse = |site: &mut common::dhcp::Site| {
        site.says(CLIENT, discover(CLIENT, 7));
        site.says(SERVER, answer(MessageType::Offer, SERVER, CLIENT, 7, ip(20)));
        // Meanwhile another host got the address.
        site.lan.repository.leases.borrow_mut().insert(ip(20), (77, None));
        let _ = (site.heard(SERVER), site.heard(CLIENT));
        site.says(CLIENT, request(CLIENT, 7, ip(20)));
        site.heard(SERVER)
    };
    let mut modern = site();
    assert_eq!(refuse(&mut modern), [], "the program commits nothing");
    assert_eq!(modern.drops(SERVER, DropReason::DhcpRefused), 1);

    let mut paper = site_of_paper(Order::AtAck);
    assert_eq!(refuse(&mut paper), [MessageType::Request]);
    // The program writes its lease down and says so.
    paper.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(20)));
    assert_eq!(paper.heard(CLIENT), [], "the client never hears of it");
    assert_eq!(paper.drops(SERVER, DropReason::DhcpRefused), 1);
    let why = Some(Refusal::Taken);
    assert!(paper.events(SERVER).contains(&Event::LeaseRefused { ip: ip(20), host: u64::from(CLIENT), why }));
    assert_eq!(paper.lan.repository.leases.borrow()[&ip(20)].0, 77, "the repository says otherwise than the program");
    assert!(paper.lan.station(SERVER).host.report(bump::Instant::from_millis(1)).leases.is_empty());
}

#[test]
fn an_ack_for_which_no_distributor_is_there_ends_with_the_question() {
    let mut site = site_of_paper(Order::AtAck);
    site.says(CLIENT, request(CLIENT, 7, ip(20)));
    assert_eq!(site.heard(SERVER), [MessageType::Request]);
    for distributor in DISTRIBUTORS {
        site.lan.station(distributor).is_off = true;
    }
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(20)));
    site.lan.run(SECOND * 5);
    assert_eq!((site.heard(CLIENT), site.drops(SERVER, DropReason::DhcpNoAnswer)), (vec![], 1));
    assert_eq!(site.lan.station(SERVER).ledger().held, 0);
    // An ACK of another address than was asked for is not even asked about.
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 7, ip(21)));
    assert_eq!(site.drops(SERVER, DropReason::DhcpAddress), 1);
}
