//! The paper profile: group 14, KDF2, RSA-PSS, CBC and HMAC, from the first question to the rollover; and that it stays apart.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use bump::DropReason;
use cll::Settings;
use common::{Lan, START_UNIX_S, Site, datagram, request, settings, to_group};
use identity::aead::Suite;
use identity::profile::{PaperKey, RsaHash, RsaKey};
use identity::{HostIdentity, PaperSuite, Profile};
use wire::MacAddress;
use wire::ethernet::HEADER_LEN as ETHERNET_LEN;

/// Headers of IPv4 and UDP.
const IP_AND_UDP_LEN: usize = 28;

fn identity(site: &mut Site, number: u8, bits: u16, hash: RsaHash) -> Arc<HostIdentity> {
    let key = RsaKey::new(bits, hash).unwrap();
    site.identity_for(request(number).with_paper_key(PaperKey::Rsa(key)), START_UNIX_S)
}

fn suite(name: &str) -> Suite {
    Suite::Paper(PaperSuite::from_name(name).unwrap())
}

/// Two hosts of a paper site, the second with RSA-2048 and another hash.
fn pair(site: &mut Site) -> [Settings; 2] {
    [settings(identity(site, 1, 1024, RsaHash::Sha1)), settings(identity(site, 2, 2048, RsaHash::Ripemd160))]
}

fn exchange(lan: &mut Lan) {
    for (from, to) in [(0, 2), (1, 1)] {
        let payload = vec![from as u8 + 1; 300];
        lan.send(from, datagram(from as u8 + 1, to, &payload));
        let received = &lan.hosts[usize::from(to) - 1].delivered;
        assert!(received.iter().any(|(frame, _)| frame.ends_with(&payload)), "from {from}");
    }
}

#[test]
fn hosts_of_a_paper_site_speak_in_their_suites() {
    let mut site = Site::of_profile(1, Profile::Paper);
    let [mut one, mut other] = pair(&mut site);
    assert_eq!(one.send_suite, suite("twofish-128-hmac-md5"));
    other.send_suite = suite("gost-256-hmac-has160");
    one.confidential = true;
    let mut lan = Lan::new([one, other]);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2) && lan.hosts[1].established_with(1));
    exchange(&mut lan);
}

#[test]
fn a_suite_that_is_not_required_is_too_weak_here_too() {
    let mut site = Site::of_profile(1, Profile::Paper);
    let [one, mut choosy] = pair(&mut site);
    choosy.require.suites = vec![suite("aes-256-hmac-sha256")];
    let mut lan = Lan::new([one, choosy]);
    lan.ask(0, 2);
    assert!(lan.hosts[1].drops(DropReason::WeakOffer) > 0 && !lan.hosts[1].established_with(1));
}

/// A suite of the other profile is refused even by a host whose list names it: the agreement does not fit.
#[test]
fn profiles_do_not_mix() {
    let mut site = Site::of_profile(1, Profile::Paper);
    let [mut mixed, mut careless] = pair(&mut site);
    mixed.send_suite = Suite::Aes256Gcm;
    careless.require.suites.push(Suite::Aes256Gcm);
    let mut lan = Lan::new([mixed, careless]);
    lan.ask(0, 2);
    assert!(lan.hosts[1].drops(DropReason::WeakOffer) > 0 && !lan.hosts[1].established_with(1));

    let mut modern = Site::new(2);
    let mut lan = Lan::new([settings(modern.identity(1)), pair(&mut site)[1].clone()]);
    lan.hosts[0].settings.weaken.site_tag = true;
    lan.ask(0, 2);
    lan.ask(1, 1);
    assert!(!lan.hosts[0].established_with(2) && !lan.hosts[1].established_with(1));
}

/// Nobody is talked into frames without a tag: a host takes them only where its own list has nothing else, and then nothing else.
#[test]
fn frames_without_a_tag_are_between_hosts_that_both_want_them() {
    let mut site = Site::of_profile(1, Profile::Paper);
    let [usual, other] = pair(&mut site);
    let nonce_only = |mut settings: Settings| {
        settings.send_suite = suite("nonce-only");
        settings.require.suites = vec![settings.send_suite];
        settings.confidential = false;
        settings
    };
    let secret = Settings { confidential: true, ..nonce_only(usual.clone()) };
    for ends in [
        [nonce_only(usual.clone()), other.clone()],
        [usual.clone(), nonce_only(other.clone())],
        [secret, nonce_only(other.clone())],
    ] {
        let mut lan = Lan::new(ends);
        lan.ask(0, 2);
        assert!(lan.hosts[1].drops(DropReason::WeakOffer) > 0 && !lan.hosts[1].established_with(1));
    }

    let mut lan = Lan::new([nonce_only(usual), nonce_only(other)]);
    lan.ask(0, 2);
    exchange(&mut lan);
}

#[test]
fn keys_are_replaced_through_the_association() {
    let mut site = Site::of_profile(1, Profile::Paper);
    let ends = pair(&mut site).map(|mut settings| {
        settings.rekey_every = Some(Duration::from_secs(20));
        settings
    });
    let mut lan = Lan::new(ends);
    lan.ask(0, 2);
    exchange(&mut lan);
    for _ in 0..60 {
        lan.pass(Duration::from_secs(1));
        exchange(&mut lan);
    }
    let peers = lan.hosts[0].cll.control.peers(lan.at);
    assert!(peers.iter().any(|peer| peer.state == "established" && peer.rollovers > 0));
}

/// A full packet to a group goes out in parts that the wire takes, however long a signature is; and comes together again.
#[test]
fn a_full_group_frame_fits_the_wire_under_either_key() {
    let mut site = Site::of_profile(1, Profile::Paper);
    let mut lan = Lan::new(pair(&mut site));
    let settings = &lan.hosts[0].settings;
    let (wire_mtu, inner_mtu) = (usize::from(settings.wire_mtu), usize::from(settings.inner_mtu()));
    // What is as old as its receiver may be a recording.
    lan.pass(Duration::from_secs(1));
    for from in [0, 1] {
        let frame = to_group(from as u8 + 1, MacAddress::BROADCAST, &vec![7; inner_mtu - IP_AND_UDP_LEN]);
        lan.seen.clear();
        lan.send(from, frame.clone());
        lan.pass(Duration::from_secs(1));
        let lengths: Vec<usize> = lan.seen.iter().map(|(_, frame)| frame.len()).collect();
        assert!(lengths.iter().all(|&length| length <= wire_mtu + ETHERNET_LEN), "from {from}: {lengths:?}");
        let received = &lan.hosts[1 - from].delivered;
        assert!(received.iter().any(|(delivered, _)| *delivered == frame), "from {from}: {lengths:?}");
    }
}
