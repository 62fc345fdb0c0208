//! Step by step from clear to sealed: what each mode lets pass, who is believed, and that nobody who has proved himself falls back
//! where he must not. The wire is an attacker's as much as ours.

mod common;

use std::time::Duration;

use bump::DropReason;
use cll::limits::{ASK_AGAIN, CLEAR_WAIT, DOWNGRADE_TOLD_EVERY, LENIENT_GIVE_UP};
use cll::{Effect, Event, Instruction, Management, Migration, Policy, Settings};
use common::{
    Lan, Site, arp_frame, arp_request, client_settings, datagram, datagram_from, ip, mac, plain_frame, settings,
};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

const STRANGER: u8 = 9;
const SECOND: Duration = Duration::from_secs(1);

fn mode(mut settings: Settings, migration: Migration) -> Settings {
    settings.policy.migration = migration;
    settings
}

/// Hosts 1 and 2 of one site in these modes.
fn pair(first: Migration, second: Migration) -> Lan {
    let mut site = Site::new(1);
    Lan::new([mode(settings(site.identity(1)), first), mode(settings(site.identity(2)), second)])
}

fn alone(migration: Migration) -> Lan {
    let mut site = Site::new(1);
    Lan::new([mode(settings(site.identity(1)), migration)])
}

/// A plain reply of `from`, which says that it has the address of `claimed`, to host 1.
fn plain_reply(from: u8, claimed: u8) -> Vec<u8> {
    let (operation, sender_mac, sender_ip) = (Operation::Reply, mac(from), ip(claimed));
    arp_frame(mac(1), Arp { operation, sender_mac, sender_ip, target_mac: mac(1), target_ip: ip(1) })
}

/// Frames of this EtherType that host 1 has sent.
fn sent(lan: &Lan, ethertype: EtherType) -> Vec<Vec<u8>> {
    let of_first = lan.seen.iter().filter(|(from, _)| *from == 0).map(|(_, frame)| frame.clone());
    of_first.filter(|frame| Header::parse(frame).is_ok_and(|(header, _)| header.ethertype == ethertype)).collect()
}

fn got(lan: &Lan, frame: &[u8]) -> bool {
    lan.hosts[0].delivered.iter().any(|(delivered, _)| delivered == frame)
}

fn gave(lan: &Lan, word: &str) -> usize {
    lan.hosts[0].count(word)
}

#[test]
fn whatever_their_modes_are_two_hosts_of_a_site_seal() {
    for first in Migration::ALL {
        for second in Migration::ALL {
            let mut lan = pair(first, second);
            lan.ask(0, 2);
            assert!(lan.hosts[0].established_with(2) && lan.hosts[1].established_with(1), "{first:?} {second:?}");
            for (from, to) in [(0, 1), (1, 0)] {
                let frame = datagram(from as u8 + 1, to as u8 + 1, b"payload");
                lan.send(from, frame.clone());
                assert_eq!(lan.hosts[to].delivered.last().unwrap().0, frame, "{first:?} {second:?}");
                assert_eq!(lan.seen.last().unwrap().1[12..14], [0x07, 0xd0], "{first:?} {second:?}");
            }
        }
    }
}

#[test]
fn a_question_goes_out_in_clear_at_once_after_a_moment_or_never() {
    for (migration, at_once, after_a_moment) in
        [(Migration::Observe, 1, 1), (Migration::Prefer, 0, 1), (Migration::Enforce, 0, 0)]
    {
        let mut lan = alone(migration);
        lan.ask(0, STRANGER);
        assert_eq!(sent(&lan, EtherType::ARP).len(), at_once, "{migration:?}");
        assert_eq!(sent(&lan, EtherType::CLL).len(), 1, "a handshake is tried in any case");
        lan.pass(CLEAR_WAIT);
        assert_eq!(sent(&lan, EtherType::ARP).len(), after_a_moment, "{migration:?}");
        if after_a_moment > 0 {
            assert_eq!(sent(&lan, EtherType::ARP), [arp_request(1, STRANGER)]);
        }
    }
}

#[test]
fn a_host_without_cll_is_talked_to_in_clear_both_ways() {
    for migration in [Migration::Observe, Migration::Prefer] {
        let mut lan = alone(migration);
        lan.ask(0, STRANGER);
        lan.pass(CLEAR_WAIT);
        lan.inject(0, plain_reply(STRANGER, STRANGER));
        assert!(got(&lan, &plain_reply(STRANGER, STRANGER)), "{migration:?}");
        lan.send(0, datagram(1, STRANGER, b"to it"));
        assert_eq!(sent(&lan, EtherType::IPV4), [datagram(1, STRANGER, b"to it")], "{migration:?}");
        lan.inject(0, datagram(STRANGER, 1, b"from it"));
        assert!(got(&lan, &datagram(STRANGER, 1, b"from it")));
        // It asks, too, and is answered in clear.
        lan.inject(0, arp_request(STRANGER, 1));
        assert_eq!(sent(&lan, EtherType::ARP).last().unwrap()[..6], mac(STRANGER).0);
        let ledger = lan.hosts[0].ledger();
        assert_eq!(ledger.excused[DropReason::PlainArp as usize], 2, "its reply and its question");
        assert_eq!(ledger.excused[DropReason::Unsealed as usize], 1);
        let reports = cll::plain_hosts(&lan.hosts[0].cll, lan.at);
        assert_eq!((reports.len(), reports[0].mac), (1, mac(STRANGER)));
        assert_eq!(reports[0].would_drop.values().sum::<u64>(), 3);
        lan.pass(LENIENT_GIVE_UP);
        assert_eq!(
            (gave(&lan, "plain"), gave(&lan, "no-answer")),
            (2, 0),
            "once for ARP and once for frames: {migration:?}"
        );
    }
}

/// Who answers a handshake sends under its key only when it has heard from the other, so a frame in
/// clear can come behind the answer.
#[test]
fn what_a_peer_sent_in_clear_before_its_first_sealed_frame_is_not_held_against_it() {
    let mut lan = pair(Migration::Observe, Migration::Observe);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
    lan.pass(SECOND);
    // One is noted by a lane, the other one by control.
    lan.inject(0, datagram(2, 1, b"overtaken"));
    lan.inject(0, arp_request(2, 1));
    let reports = cll::plain_hosts(&lan.hosts[0].cll, lan.at);
    assert_eq!((reports.len(), reports[0].uses.len()), (1, 2));
    lan.send(1, datagram(2, 1, b"sealed"));
    assert!(cll::plain_hosts(&lan.hosts[0].cll, lan.at).is_empty());
    lan.pass(SECOND);
    // From then on it has the key, so what it sends in clear would be cut off.
    lan.inject(0, datagram(2, 1, b"in clear again"));
    assert_eq!(cll::plain_hosts(&lan.hosts[0].cll, lan.at).len(), 1);
    lan.send(1, datagram(2, 1, b"sealed again"));
    assert_eq!(cll::plain_hosts(&lan.hosts[0].cll, lan.at).len(), 1);
}

#[test]
fn in_mode_enforce_nothing_of_it_passes() {
    let mut lan = alone(Migration::Enforce);
    lan.ask(0, STRANGER);
    lan.inject(0, plain_reply(STRANGER, STRANGER));
    lan.inject(0, datagram(STRANGER, 1, b"from it"));
    lan.send(0, datagram(1, STRANGER, b"to it"));
    lan.pass(Duration::from_secs(20));
    assert!(sent(&lan, EtherType::IPV4).is_empty() && lan.hosts[0].delivered.is_empty());
    let host = &lan.hosts[0];
    assert_eq!([DropReason::PlainArp, DropReason::Unsealed].map(|reason| host.drops(reason)), [1, 1]);
    // One for the question and one for the frame.
    assert_eq!((host.count("no-answer"), host.ledger().excused.iter().sum::<u64>()), (2, 0));
}

#[test]
fn in_mode_prefer_a_proof_comes_before_the_quickest_liar() {
    let mut lan = pair(Migration::Prefer, Migration::Enforce);
    // The liar hears the handshake and answers in clear before anybody else can.
    lan.wire = Box::new(|_, _, _| false);
    lan.ask(0, 2);
    lan.inject(0, plain_reply(STRANGER, 2));
    assert!(!got(&lan, &plain_reply(STRANGER, 2)));
    assert_eq!(lan.hosts[0].drops(DropReason::PlainArp), 1);
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(2 * SECOND);
    assert!(lan.hosts[0].established_with(2));
    lan.inject(0, plain_reply(STRANGER, 2));
    assert!(!got(&lan, &plain_reply(STRANGER, 2)));
    assert_eq!(lan.hosts[0].drops(DropReason::Downgrade), 1);
}

/// Host 1 in this mode, after host 2 has proved itself and then gone.
fn proved_and_gone(migration: Migration) -> Lan {
    let mut lan = pair(migration, Migration::Enforce);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
    lan.wire = Box::new(|_, _, _| false);
    lan.hosts[0].delivered.clear();
    lan
}

#[test]
fn who_has_proved_himself_never_falls_back_in_mode_prefer() {
    let mut lan = proved_and_gone(Migration::Prefer);
    let lies = [
        plain_reply(2, 2),
        plain_reply(STRANGER, 2),
        arp_request(2, 1),
        datagram(2, 1, b"as host 2"),
        datagram_from(STRANGER, ip(2), 1, b"with its address"),
        plain_frame(2, 1, b"in whatever protocol it may be"),
    ];
    for hours in 0..5 {
        for lie in &lies {
            lan.inject(0, lie.clone());
            assert!(!got(&lan, lie), "after {hours} hours");
        }
        lan.pass(Duration::from_secs(3600));
    }
    assert_eq!(lan.hosts[0].drops(DropReason::Downgrade), 5 * lies.len() as u64);
    assert!(!lan.hosts[0].established_with(2), "the association has ended, the memory has not");
    lan.seen.clear();
    lan.ask(0, 2);
    lan.send(0, datagram(1, 2, b"a secret"));
    lan.pass(Duration::from_secs(20));
    assert!(sent(&lan, EtherType::IPV4).is_empty() && sent(&lan, EtherType::ARP).is_empty(), "nothing left in clear");
    assert!(lan.hosts[0].drops(DropReason::HoldExpired) > 0);
}

#[test]
fn an_operator_hears_of_a_downgrade_once_in_a_while() {
    let mut lan = proved_and_gone(Migration::Prefer);
    for _ in 0..50 {
        lan.inject(0, datagram(2, 1, b"as host 2"));
        lan.inject(0, plain_reply(STRANGER, 2));
    }
    // The lane tells once, and so does control.
    assert_eq!(gave(&lan, "downgrade"), 2);
    let named =
        |event: &Event| matches!(event, Event::Downgrade { name, owner, .. } if name == "h2" && *owner == mac(2));
    assert!(lan.hosts[0].events.iter().any(named));
    lan.pass(DOWNGRADE_TOLD_EVERY);
    lan.inject(0, datagram(2, 1, b"as host 2"));
    assert_eq!(gave(&lan, "downgrade"), 3);
}

#[test]
fn the_memory_outlives_the_program_and_an_operator_ends_it() {
    let mut lan = proved_and_gone(Migration::Prefer);
    let remembered: Vec<_> = lan.hosts[0]
        .effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Remember(host) => Some(host.clone()),
            _ => None,
        })
        .collect();
    assert_eq!((remembered.len(), remembered[0].mac, &remembered[0].addresses[..]), (1, mac(2), &[ip(2).into()][..]));
    lan.hosts[0].settings.proved = remembered;
    lan.restart(0);
    lan.inject(0, datagram(2, 1, b"as host 2"));
    assert_eq!(lan.hosts[0].drops(DropReason::Downgrade), 1);
    lan.instruct(0, Instruction::Forget(mac(2)));
    lan.inject(0, datagram(2, 1, b"as host 2"));
    assert!(got(&lan, &datagram(2, 1, b"as host 2")));
    // Without the memory a restart believes whoever comes.
    lan.hosts[0].settings.proved.clear();
    lan.restart(0);
    lan.inject(0, datagram(2, 1, b"again"));
    assert!(got(&lan, &datagram(2, 1, b"again")));
}

#[test]
fn in_mode_observe_a_host_may_fall_back_and_is_sealed_with_again_when_it_can() {
    let mut lan = proved_and_gone(Migration::Observe);
    for number in 0..8_u8 {
        lan.inject(0, datagram(2, 1, &[number]));
        assert!(got(&lan, &datagram(2, 1, &[number])), "nothing is refused meanwhile");
        lan.pass(Duration::from_millis(200));
    }
    assert!(!lan.hosts[0].established_with(2));
    assert!(lan.hosts[0].events.iter().any(|event| event.to_string().contains("speaks in clear again")));
    lan.send(0, datagram(1, 2, b"in clear"));
    assert_eq!(sent(&lan, EtherType::IPV4), [datagram(1, 2, b"in clear")]);
    assert!(lan.hosts[0].ledger().excused[DropReason::Downgrade as usize] >= 8);
    lan.wire = Box::new(|_, _, _| true);
    lan.restart(1);
    lan.ask(1, 1);
    assert!(lan.hosts[0].established_with(2));
    lan.seen.clear();
    lan.send(0, datagram(1, 2, b"sealed"));
    assert!(sent(&lan, EtherType::IPV4).is_empty());
}

#[test]
fn a_stray_frame_in_clear_ends_no_association_that_is_in_use() {
    let mut lan = pair(Migration::Observe, Migration::Observe);
    lan.ask(0, 2);
    for number in 0..40_u8 {
        lan.send(1, datagram(2, 1, &[number; 30]));
        lan.inject(0, datagram(2, 1, b"forged"));
        lan.pass(Duration::from_millis(200));
    }
    assert!(lan.hosts[0].established_with(2));
    assert_eq!(gave(&lan, "ended"), 0);
}

/// Control hears once a second what a lane has opened, and of ARP at once.
#[test]
fn arp_in_the_name_of_a_peer_ends_no_association_that_is_in_use() {
    let mut lan = pair(Migration::Observe, Migration::Observe);
    lan.ask(0, 2);
    for number in 0..80_u8 {
        lan.send(1, datagram(2, 1, &[number; 30]));
        lan.send(0, datagram(1, 2, &[number; 30]));
        lan.inject(0, arp_request(2, 1));
        lan.pass(Duration::from_millis(50));
    }
    assert!(lan.hosts[0].established_with(2));
    assert_eq!(gave(&lan, "ended"), 0);
}

#[test]
fn a_host_in_clear_is_asked_again_from_time_to_time_and_frames_do_not_wait_for_it() {
    let mut lan = alone(Migration::Prefer);
    lan.inject(0, arp_request(STRANGER, 1));
    lan.seen.clear();
    let seconds = 3 * ASK_AGAIN.as_secs();
    for _ in 0..seconds {
        lan.send(0, datagram(1, STRANGER, b"payload"));
        lan.pass(SECOND);
    }
    assert_eq!(sent(&lan, EtherType::IPV4).len() as u64, seconds);
    let handshakes = sent(&lan, EtherType::CLL).len();
    assert!((4..=12).contains(&handshakes), "two rounds of a few tries each: {handshakes}");
}

/// A host that joins a large LAN asks more hosts in a moment than it may sign for.
#[test]
fn who_could_not_be_asked_when_many_were_is_asked_in_a_moment() {
    let mut lan = pair(Migration::Observe, Migration::Observe);
    for number in 0..2 * cll::limits::SIGNATURES_PER_SECOND {
        let [_, a, b, c] = number.to_be_bytes();
        let mut frame = datagram(1, STRANGER, b"to nobody");
        frame[..6].copy_from_slice(&[2, 7, 7, a, b, c]);
        lan.send(0, frame);
    }
    lan.send(0, datagram(1, 2, b"in clear"));
    assert!(!lan.hosts[0].established_with(2), "nothing was left for it");
    // What it says in clear, or somebody in its name, puts that off no further.
    lan.inject(0, arp_request(2, 1));
    for _ in 0..3 {
        lan.pass(SECOND);
        lan.send(0, datagram(1, 2, b"goes on"));
    }
    assert!(lan.hosts[0].established_with(2));
    let got = lan.hosts[1].payloads(EtherType::IPV4);
    assert_eq!(got.len(), 4, "and nothing was lost meanwhile");
}

#[test]
fn groups_and_what_is_not_carried_pass_in_clear_until_mode_enforce() {
    let group = |from: u8, destination: MacAddress, ethertype: u16| {
        let mut frame = datagram(from, 2, b"to everybody");
        frame[..6].copy_from_slice(&destination.0);
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame
    };
    let kinds = [(MacAddress::BROADCAST, 0x0800), (MacAddress([1, 0, 0x5e, 0, 0, 1]), 0x0800)];
    for migration in Migration::ALL {
        let mut lan = pair(migration, Migration::Observe);
        lan.ask(0, 2);
        for (destination, ethertype) in kinds {
            let passes = migration != Migration::Enforce;
            lan.seen.clear();
            let out = group(1, destination, ethertype);
            lan.send(0, out.clone());
            assert_eq!(lan.seen.iter().any(|(_, frame)| *frame == out), passes, "{migration:?} {destination}");
            let inwards = group(STRANGER, destination, ethertype);
            lan.inject(0, inwards.clone());
            assert_eq!(got(&lan, &inwards), passes, "{migration:?} {destination}");
            // Host 2 signs, and so its copy in clear is not heard beside that.
            let copy = group(2, destination, ethertype);
            lan.inject(0, copy.clone());
            assert!(!got(&lan, &copy), "{migration:?} {destination}");
        }
        // With another's address that other host has something to say about.
        let mut lie = group(STRANGER, MacAddress::BROADCAST, 0x0800);
        lie[26..30].copy_from_slice(&ip(2).octets());
        wire::ipv4::fill_checksum(&mut lie[14..]);
        lan.inject(0, lie.clone());
        assert_eq!(got(&lan, &lie), migration == Migration::Observe, "{migration:?}");
    }
}

#[test]
fn an_insider_that_lies_is_only_noted_in_mode_observe() {
    for migration in Migration::ALL {
        let mut site = Site::new(1);
        let mut liar = settings(site.identity(2));
        liar.weaken.cross_layer = true;
        let mut lan = Lan::new([mode(settings(site.identity(1)), migration), liar]);
        lan.ask(1, 1);
        let lie = datagram_from(2, ip(77), 1, b"another address");
        lan.send(1, lie.clone());
        assert_eq!(got(&lan, &lie), migration == Migration::Observe, "{migration:?}");
    }
}

#[test]
fn an_exception_is_for_one_host() {
    let mut site = Site::new(1);
    let mut strict = mode(settings(site.identity(1)), Migration::Enforce);
    strict.policy.exceptions.insert(mac(STRANGER), Migration::Observe);
    let mut lan = Lan::new([strict]);
    lan.inject(0, datagram(STRANGER, 1, b"the exception"));
    lan.inject(0, datagram(8, 1, b"another"));
    assert!(got(&lan, &datagram(STRANGER, 1, b"the exception")) && !got(&lan, &datagram(8, 1, b"another")));
    lan.ask(0, STRANGER);
    lan.pass(CLEAR_WAIT);
    assert_eq!(sent(&lan, EtherType::ARP).len(), 1, "a question may be for it");
    lan.inject(0, plain_reply(8, 8));
    assert!(!got(&lan, &plain_reply(8, 8)));
}

#[test]
fn the_mode_changes_while_it_runs_and_associations_stay() {
    let mut lan = pair(Migration::Observe, Migration::Enforce);
    lan.ask(0, 2);
    lan.inject(0, datagram(STRANGER, 1, b"in observe"));
    assert!(got(&lan, &datagram(STRANGER, 1, b"in observe")));
    let enforce = Policy { migration: Migration::Enforce, ..Policy::default() };
    lan.instruct(0, Instruction::Policy(enforce));
    lan.inject(0, datagram(STRANGER, 1, b"in enforce"));
    assert!(!got(&lan, &datagram(STRANGER, 1, b"in enforce")));
    lan.send(0, datagram(1, STRANGER, b"to it"));
    assert!(sent(&lan, EtherType::IPV4).is_empty());
    lan.send(1, datagram(2, 1, b"under the old keys"));
    assert!(got(&lan, &datagram(2, 1, b"under the old keys")));
    assert_eq!(gave(&lan, "ended"), 0);
}

fn tcp(from: u8, to: u8, ports: (u16, u16)) -> Vec<u8> {
    let mut frame = datagram(from, to, &[0; 20]);
    frame[23] = 6;
    frame[24..26].fill(0);
    wire::ipv4::fill_checksum(&mut frame[14..]);
    frame[34..36].copy_from_slice(&ports.0.to_be_bytes());
    frame[36..38].copy_from_slice(&ports.1.to_be_bytes());
    frame
}

/// Host 1 in mode enforce with host 2 as the manager's machine.
fn managed() -> Lan {
    let mut site = Site::new(1);
    let mut strict = settings(site.identity(1));
    strict.policy.management = vec![Management { mac: mac(2), ip: ip(2), port: 22 }];
    Lan::new([strict, settings(site.identity(2))])
}

#[test]
fn a_managers_machine_reaches_one_port_in_clear_when_sealing_fails() {
    let mut lan = managed();
    lan.wire = Box::new(|_, _, _| false);
    lan.inject(0, arp_request(2, 1));
    assert_eq!(sent(&lan, EtherType::ARP).len(), 1, "it is told where this host is");
    let question = tcp(2, 1, (40_000, 22));
    lan.inject(0, question.clone());
    assert!(got(&lan, &question));
    let answer = tcp(1, 2, (22, 40_000));
    lan.send(0, answer.clone());
    assert_eq!(sent(&lan, EtherType::IPV4), [answer]);
    assert_eq!(gave(&lan, "management-in-clear"), 1);
    // Nothing else: no other port, no other address, no other host, no group.
    for frame in [
        tcp(2, 1, (40_000, 23)),
        tcp(2, 1, (22, 40_000)),
        datagram(2, 1, b"no TCP"),
        tcp(STRANGER, 1, (40_000, 22)),
        datagram_from(2, ip(7), 1, b"another address"),
    ] {
        lan.inject(0, frame.clone());
        assert!(!got(&lan, &frame));
    }
    lan.seen.clear();
    lan.send(0, tcp(1, 2, (40_000, 22)));
    lan.send(0, datagram(1, 2, b"no TCP"));
    lan.pass(Duration::from_secs(20));
    assert!(sent(&lan, EtherType::IPV4).is_empty());
    // Who asks for it hears what the operator wrote, whatever others say.
    lan.ask(0, 2);
    let told = lan.hosts[0].payloads(EtherType::ARP).iter().any(|payload| {
        Arp::parse(payload).is_ok_and(|arp| arp.operation == Operation::Reply && arp.sender_mac == mac(2))
    });
    assert!(told);
}

#[test]
fn a_managers_machine_that_seals_is_answered_under_the_seal() {
    let mut lan = managed();
    lan.ask(1, 1);
    assert!(lan.hosts[0].established_with(2));
    lan.send(1, tcp(2, 1, (40_000, 22)));
    lan.seen.clear();
    lan.send(0, tcp(1, 2, (22, 40_000)));
    assert!(sent(&lan, EtherType::IPV4).is_empty());
    // Its daemon has died; this host has a key still, and the answer goes the way in which it was asked.
    lan.inject(0, tcp(2, 1, (40_001, 22)));
    lan.send(0, tcp(1, 2, (22, 40_001)));
    assert_eq!(sent(&lan, EtherType::IPV4), [tcp(1, 2, (22, 40_001))]);
    lan.send(1, tcp(2, 1, (40_002, 22)));
    lan.seen.clear();
    lan.send(0, tcp(1, 2, (22, 40_002)));
    assert!(sent(&lan, EtherType::IPV4).is_empty(), "it was heard under the seal again");
}

#[test]
fn a_flood_of_forged_addresses_stays_within_the_limits() {
    let mut lan = alone(Migration::Prefer);
    for number in 0..6000_u32 {
        let [_, a, b, c] = number.to_be_bytes();
        for mut frame in [datagram(STRANGER, 1, b"flood"), arp_request(STRANGER, 1)] {
            frame[6..12].copy_from_slice(&[2, 7, 7, a, b, c]);
            lan.inject(0, frame);
        }
    }
    assert!(cll::plain_hosts(&lan.hosts[0].cll, lan.at).len() <= 2 * cll::limits::OBSERVED_MAX);
    assert!(gave(&lan, "plain") <= 2 * cll::limits::OBSERVED_MAX);
    lan.inject(0, arp_request(STRANGER, 1));
    assert_eq!(sent(&lan, EtherType::ARP).last().unwrap()[..6], mac(STRANGER).0, "honest hosts are still served");
}

/// A DHCP message as programs write it, as far as the link layer looks: UDP between ports 67 and 68 in IPv4.
fn dhcp(from: u8, destination: MacAddress, ports: [u8; 4]) -> Vec<u8> {
    let mut frame = datagram(from, 2, b"a message that is no DHCP further in");
    frame[..6].copy_from_slice(&destination.0);
    frame[34..38].copy_from_slice(&ports);
    frame
}

const TO_SERVER: [u8; 4] = [0, 68, 0, 67];
const TO_CLIENT: [u8; 4] = [0, 67, 0, 68];

#[test]
fn dhcp_of_hosts_without_a_part_in_it_passes_in_clear_until_mode_enforce() {
    for migration in Migration::ALL {
        let passes = migration != Migration::Enforce;
        for destination in [MacAddress::BROADCAST, mac(2)] {
            let mut lan = pair(migration, Migration::Observe);
            lan.ask(0, 2);
            let question = dhcp(1, destination, TO_SERVER);
            lan.send(0, question.clone());
            assert_eq!(lan.seen.iter().any(|(_, frame)| *frame == question), passes, "{migration:?} {destination}");
            // The server may be one that has proved itself: its DHCP in clear is no falling back.
            let own = if destination == mac(2) { mac(1) } else { destination };
            let answer = dhcp(2, own, TO_CLIENT);
            lan.inject(0, answer.clone());
            assert_eq!(got(&lan, &answer), passes, "{migration:?} {destination}");
            assert!(lan.hosts[0].established_with(2));
            assert_eq!(gave(&lan, "downgrade"), 0);
        }
    }
}

#[test]
fn a_client_of_proved_dhcp_takes_nothing_unasked_in_clear_in_any_mode() {
    for migration in Migration::ALL {
        let mut site = Site::new(1);
        let mut lan = Lan::new([mode(client_settings(site.base(1)), migration)]);
        for destination in [MacAddress::BROADCAST, mac(1)] {
            let answer = dhcp(STRANGER, destination, TO_CLIENT);
            lan.inject(0, answer.clone());
            assert!(!got(&lan, &answer), "{migration:?} {destination}");
        }
        let dropped = if migration == Migration::Enforce { [0, 2] } else { [2, 0] };
        let reasons = [DropReason::DhcpMalformed, DropReason::Unsealed];
        assert_eq!(reasons.map(|reason| lan.hosts[0].drops(reason)), dropped);
    }
}

/// Host 1 in this mode with host 9, a printer, on its list.
fn with_printer(migration: Migration) -> Lan {
    let mut site = Site::new(1);
    let mut settings = mode(settings(site.identity(1)), migration);
    settings.legacy = vec![cll::Legacy { mac: mac(STRANGER), ip: ip(STRANGER), router: false, broadcast: false }];
    Lan::new([settings])
}

/// What a printer sends beside IPv4 to us: IPv6 with its questions, multicasts, DHCP, and an
/// address that is not on the list.
fn beside_the_list() -> Vec<(Vec<u8>, DropReason)> {
    let to = |destination: MacAddress, ethertype, packet: &[u8]| {
        [&Header { destination, source: mac(STRANGER), ethertype }.emit()[..], packet].concat()
    };
    let echo = ipv6_packet(58, &[128, 0, 0, 0, 0, 1, 0, 1], 0x01);
    let solicits = ipv6_packet(17, &[2, 34, 2, 35, 0, 12, 0, 0, 1, 0, 0, 1], 0x02);
    let all = MacAddress([0x33, 0x33, 0, 1, 0, 2]);
    let mdns = MacAddress([1, 0, 0x5e, 0, 0, 0xfb]);
    let dhcp = datagram(STRANGER, 1, &[0; 8])[14..].to_vec();
    let mut dhcp = to(MacAddress::BROADCAST, EtherType::IPV4, &dhcp);
    dhcp[14 + 20..14 + 24].copy_from_slice(&[0, 68, 0, 67]);
    vec![
        (to(mac(1), EtherType::IPV6, &echo), DropReason::Ipv6),
        (to(all, EtherType::IPV6, &solicits), DropReason::Ipv6),
        (to(MacAddress::BROADCAST, EtherType::IPV4, &datagram(STRANGER, 1, b"all")[14..]), DropReason::Broadcast),
        (to(mdns, EtherType::IPV4, &datagram(STRANGER, 1, b"mdns")[14..]), DropReason::Multicast),
        (dhcp, DropReason::Dhcp),
        (datagram_from(STRANGER, ip(77), 1, b"a second address"), DropReason::LegacyAddress),
    ]
}

/// An IPv6 packet of the printer's link-local address to one that ends in `to`.
fn ipv6_packet(next_header: u8, payload: &[u8], to: u8) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next_header, 64];
    packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, STRANGER]);
    packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, to]);
    packet.extend(payload);
    packet
}

#[test]
fn a_host_on_the_list_is_refused_nothing_that_one_on_none_may_do() {
    for (frame, reason) in beside_the_list() {
        for migration in [Migration::Observe, Migration::Prefer] {
            let (mut unlisted, mut listed) = (alone(migration), with_printer(migration));
            for lan in [&mut unlisted, &mut listed] {
                lan.inject(0, frame.clone());
                assert!(got(lan, &frame), "{reason:?} in {migration:?}");
            }
            let excused = listed.hosts[0].ledger().excused[reason as usize];
            assert_eq!(excused, 1, "enforcing would drop it for {reason:?}, and an operator can see that");
        }
        let mut lan = with_printer(Migration::Enforce);
        lan.inject(0, frame.clone());
        assert!(!got(&lan, &frame), "{reason:?}");
        assert_eq!(lan.hosts[0].drops(reason), 1);
    }
}

#[test]
fn a_listed_host_that_speaks_for_a_proved_one_is_refused_like_any_other() {
    let mut site = Site::new(1);
    let mut first = mode(settings(site.identity(1)), Migration::Prefer);
    first.legacy = vec![cll::Legacy { mac: mac(STRANGER), ip: ip(STRANGER), router: false, broadcast: false }];
    let mut lan = Lan::new([first, settings(site.identity(2))]);
    lan.ask(0, 2);
    let lie = datagram_from(STRANGER, ip(2), 1, b"as host 2");
    lan.inject(0, lie.clone());
    assert!(!got(&lan, &lie) && lan.hosts[0].drops(DropReason::Downgrade) == 1);
}

#[test]
fn who_has_proved_himself_is_not_shown_as_plain_and_nobody_is_where_nothing_passes() {
    let shown = |lan: &Lan| -> Vec<MacAddress> {
        cll::plain_hosts(&lan.hosts[0].cll, lan.at).iter().map(|report| report.mac).collect()
    };
    let mut lan = pair(Migration::Observe, Migration::Observe);
    // Frames to a group, of all kinds, and to us before there is a proof.
    for frame in [common::to_group(2, MacAddress::BROADCAST, b"before"), arp_request(2, 2), datagram(2, 1, b"before")] {
        lan.inject(0, frame);
    }
    lan.inject(0, datagram(STRANGER, 1, b"who never proves himself"));
    assert_eq!(shown(&lan), [mac(2), mac(STRANGER)]);
    lan.pass(SECOND);
    lan.send(1, common::to_group(2, MacAddress::BROADCAST, b"signed"));
    lan.pass(SECOND);
    assert_eq!(gave(&lan, "group-sender"), 1);
    assert_eq!(shown(&lan), [mac(STRANGER)], "a proof as a sender to groups is one");
    lan.inject(0, common::to_group(2, MacAddress::BROADCAST, b"the copy in clear"));
    assert_eq!(shown(&lan), [mac(STRANGER)]);
    let enforce = Policy { migration: Migration::Enforce, ..Policy::default() };
    lan.instruct(0, Instruction::Policy(enforce));
    assert_eq!(shown(&lan), [], "nobody is let in in clear any more");
}

#[test]
fn who_falls_back_to_clear_after_a_proof_is_shown_again() {
    let mut lan = pair(Migration::Observe, Migration::Observe);
    lan.ask(0, 2);
    lan.pass(SECOND);
    lan.inject(0, datagram(2, 1, b"in clear again"));
    assert_eq!(cll::plain_hosts(&lan.hosts[0].cll, lan.at).iter().map(|one| one.mac).collect::<Vec<_>>(), [mac(2)]);
}
