//! Keys of DHCP clients that change: by the host itself and by the site, and what wrong signatures
//! cost.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::sync::Arc;

use bump::DropReason;
use common::dhcp::*;
use common::{ip, mac, signing_key};
use sarp::Event;
use wire::dhcp::MessageType;
use wire::sarp::data::{Lease, LeaseAction};
use wire::sarp::{Kind, Message};

/// Questions of the DHCP server about `host` that were on the wire since this was last asked.
fn questions(site: &mut Site, host: u8, wanted: LeaseAction) -> usize {
    let seen = std::mem::take(&mut site.lan.seen);
    let about_host = |frame: &&Vec<u8>| {
        let Ok(message) = Message::parse(&frame[14..]) else { return false };
        let lease = (message.kind == Kind::Lease).then(|| Lease::parse(message.data).unwrap());
        lease.is_some_and(|lease| lease.host == u64::from(host) && lease.action == wanted)
    };
    seen.iter().filter(about_host).count()
}

/// The site gives `number` another key, as after `site rekey`.
fn rekey(site: &mut Site, number: u8, seed: u8) {
    let key = signing_key(seed).record_key().unwrap().1.to_vec();
    site.lan.repository.members.borrow_mut().get_mut(&u64::from(number)).unwrap().key = key;
}

/// The machine of `number` has its new identity.
fn is_enrolled_again(site: &mut Site, number: u8, seed: u8) {
    site.lan.station(number).settings.key = Arc::new(signing_key(seed));
    site.lan.restart(number);
    site.lan.run(SECOND);
}

fn renews(site: &mut Site, number: u8, xid: u32) {
    site.says(number, renewal(number, xid, ip(20)));
    assert_eq!(site.heard(SERVER), [MessageType::Request], "exchange {xid}");
    site.says(SERVER, answer(MessageType::Ack, SERVER, number, xid, ip(20)));
    assert_eq!(site.heard(number), [MessageType::Ack], "exchange {xid}");
}

/// The paper's section 3.5.2: "if the host wanted to change its key". Dropped the first signature
/// under the new key, and all that came in ten minutes after it: the lease was over by then.
#[test]
fn a_host_that_changes_its_key_keeps_its_lease() {
    let firsts = [
        (discover(CLIENT, 8), MessageType::Discover),
        (request(CLIENT, 8, ip(20)), MessageType::Request),
        (renewal(CLIENT, 8, ip(20)), MessageType::Request),
    ];
    for (frame, kind) in firsts {
        let mut site = site();
        site.lease(CLIENT, 7, ip(20));
        assert!(site.lan.change_key(CLIENT, 200));
        site.lan.run(SECOND);
        assert!(site.events(CLIENT).contains(&Event::OwnKeyChanged));
        site.says(CLIENT, frame);
        assert_eq!(site.heard(SERVER), [kind], "the first message under the new key");
        for xid in 10..14 {
            renews(&mut site, CLIENT, xid);
            site.lan.run(SECOND * LEASE_S / 2);
        }
        assert!(!site.events(CLIENT).contains(&Event::LeaseLost { ip: ip(20) }));
        assert_eq!(site.drops(SERVER, DropReason::DhcpSignature), 0);
        // Back and forth as often as it likes, once an address is its own.
        for seed in [201, 202] {
            renews(&mut site, CLIENT, u32::from(seed));
            assert!(site.lan.change_key(CLIENT, seed));
            site.lan.run(SECOND * 2);
            renews(&mut site, CLIENT, 100 + u32::from(seed));
        }
    }
}

#[test]
fn a_former_key_is_worth_nothing_at_once_and_the_new_one_is_served() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    rekey(&mut site, CLIENT, 200);
    // Who has the old identity.
    let with_the_former =
        [renewal(CLIENT, 8, ip(20)), discover(CLIENT, 9), request(CLIENT, 10, ip(21)), release(CLIENT, ip(20))];
    for frame in with_the_former.clone() {
        site.says(CLIENT, frame);
        assert_eq!(site.heard(SERVER), []);
    }
    let dropped =
        |site: &mut Site| site.drops(SERVER, DropReason::DhcpSignature) + site.drops(SERVER, DropReason::DhcpRefused);
    assert_eq!(dropped(&mut site), 4);
    let later = with_the_former.map(|frame| site.intercept(CLIENT, frame));
    is_enrolled_again(&mut site, CLIENT, 200);
    site.says(CLIENT, request(CLIENT, 11, ip(20)));
    assert_eq!(site.heard(SERVER), [MessageType::Request]);
    site.says(SERVER, answer(MessageType::Ack, SERVER, CLIENT, 11, ip(20)));
    assert_eq!(site.heard(CLIENT), [MessageType::Ack], "the lease is the new key's");
    renews(&mut site, CLIENT, 12);
    // The thief goes on, and keeps nobody out.
    for frame in later {
        site.inject(frame);
        assert_eq!(site.heard(SERVER), []);
        renews(&mut site, CLIENT, 13);
    }
    assert_eq!(site.lan.repository.leases.borrow()[&ip(20)].0, u64::from(CLIENT));
}

/// The thief's message came first: it is what the key was asked for with.
#[test]
fn a_former_key_does_not_keep_the_new_one_out() {
    let mut site = site();
    site.lan.run(SECOND);
    let thiefs = [8, 9].map(|xid| site.intercept(CLIENT, discover(CLIENT, xid)));
    rekey(&mut site, CLIENT, 200);
    is_enrolled_again(&mut site, CLIENT, 200);
    for (frame, xid) in thiefs.into_iter().zip(20..) {
        site.inject(frame);
        site.says(CLIENT, discover(CLIENT, xid));
        assert_eq!(site.heard(SERVER), [MessageType::Discover], "the host's own");
    }
}

#[test]
fn while_no_distributor_answers_the_last_word_counts_for_ten_minutes() {
    let mut site = site();
    site.lease(CLIENT, 7, ip(20));
    for distributor in common::DISTRIBUTORS {
        site.lan.station(distributor).is_off = true;
    }
    let forged = site.insiders(CLIENT, mac(CLIENT), &discover(CLIENT, 8));
    site.inject(forged);
    site.says(CLIENT, discover(CLIENT, 9));
    site.lan.run(SECOND * 4);
    assert_eq!(site.heard(SERVER), [MessageType::Discover]);
    assert_eq!(site.drops(SERVER, DropReason::DhcpSignature), 1);
    site.lan.run(dhcp::limits::CLIENT_GOOD_FOR);
    site.says(CLIENT, discover(CLIENT, 10));
    site.lan.run(SECOND * 4);
    assert_eq!((site.heard(SERVER), site.drops(SERVER, DropReason::DhcpNoAnswer)), (vec![], 1));
}

/// From one source, as a machine that was taken over sends them, and from made-up ones.
#[test]
fn wrong_signatures_are_few_questions_and_keep_nobody_out() {
    const SECONDS: usize = 10;
    for from_one in [true, false] {
        let mut site = site();
        site.lease(CLIENT, 7, ip(20));
        site.lease(OTHER, 8, ip(21));
        site.lan.seen.clear();
        let mut of_client = 0;
        for second in 0..SECONDS as u32 {
            for number in 0..40_u8 {
                let source = if from_one { 100 } else { 100 + number };
                let xid = 1000 + second * 100 + u32::from(number);
                let forged = site.insiders(CLIENT, mac(source), &discover(source, xid));
                site.lan.inject(forged);
            }
            site.lan.run(SECOND / 4);
            assert_eq!(site.heard(SERVER), []);
            for honest in [CLIENT, OTHER] {
                site.lan.deliver(honest, bump::Side::STACK, discover(honest, 10 + second));
            }
            site.lan.run(SECOND * 3 / 4);
            // The other host always; the one in whose name all is said as far as its share of
            // checks goes.
            let heard = site.heard(SERVER).len();
            assert!(heard == 2 || heard == 1 && !from_one, "{heard} in {second}, {from_one}");
            of_client += heard - 1;
        }
        assert!(site.drops(SERVER, DropReason::DhcpSignature) > 0);
        let asked = questions(&mut site, CLIENT, LeaseAction::Check);
        assert!(asked <= of_client + SECONDS / 2 + 1, "{asked} questions, {of_client} heard, {from_one}");
        // The key is still here, and nothing has to be learnt again.
        site.lan.run(SECOND);
        renews(&mut site, CLIENT, 99);
    }
}
