//! Frames to groups: who gets them, what they prove, and that nothing forged, recorded or joined wrongly is delivered.

mod common;

use std::sync::Arc;
use std::time::Duration;

use bump::{Checksum, DropReason, Gso, GsoKind, Meta};
use cll::limits::{GROUP_FRAMES_WAITING_MAX, GROUP_QUESTION_INTERVAL};
use cll::{Legacy, Settings};
use common::{Host, Lan, Site, arp_frame, datagram_from, ip, mac, settings, to_group};
use identity::HostIdentity;
use wire::arp::{Arp, Operation};
use wire::cll::handshake::{set_site_tag, tagged_parts};
use wire::cll::{GroupFrame, PacketType};
use wire::{EtherType, MacAddress};

const MDNS: MacAddress = MacAddress([1, 0, 0x5e, 0, 0, 0xfb]);
const GROUP_FRAME: u8 = PacketType::GroupFrame.first_byte();
/// What fits the guarded interface of a wire that carries packets of 1500 bytes.
const INNER_MTU: usize = 1435;

fn lan_of(count: u8) -> Lan {
    let mut site = Site::new(1);
    Lan::new((1..=count).map(|number| settings(site.identity(number))))
}

/// Three hosts that know each other as senders.
fn proved() -> Lan {
    let mut lan = lan_of(3);
    lan.pass(Duration::from_secs(1));
    for host in 0..3 {
        lan.send(host, to_group(host as u8 + 1, MDNS, b"hello"));
    }
    lan
}

fn kinds(lan: &Lan, kind: PacketType) -> Vec<Vec<u8>> {
    let sent = lan.seen.iter().map(|(_, frame)| frame).filter(|frame| frame[14] == kind.first_byte());
    sent.cloned().collect()
}

fn got(host: &Host, frame: &[u8]) -> usize {
    host.delivered.iter().filter(|(delivered, _)| delivered == frame).count()
}

/// Makes the tag of a frame right, as whoever has the site key can.
fn retag(identity: &HostIdentity, frame: &mut [u8]) {
    let (ethernet, message) = frame.split_at_mut(14);
    let [before, after] = tagged_parts(message);
    let tag = identity.site_key().frame_tag(b"broadcast", &[ethernet, before, after]);
    set_site_tag(message, &tag);
}

#[test]
fn a_broadcast_and_a_multicast_reach_all_hosts_once_and_one_question_is_enough() {
    let mut lan = lan_of(3);
    lan.pass(Duration::from_millis(10));
    for (number, group) in [MacAddress::BROADCAST, MDNS, MDNS].into_iter().enumerate() {
        let frame = to_group(1, group, &[number as u8; 40]);
        lan.send(0, frame.clone());
        for receiver in [1, 2] {
            assert_eq!(got(&lan.hosts[receiver], &frame), 1, "frame {number}, host {receiver}");
        }
        assert_eq!(lan.hosts[0].delivered.len(), 0);
    }
    assert_eq!(kinds(&lan, PacketType::Question).len(), 2, "each receiver asks once");
    assert_eq!(kinds(&lan, PacketType::Announcement).len(), 2);
    assert_eq!((lan.hosts[1].count("group-sender"), lan.hosts[1].cll.control.group_senders()), (1, 1));
    assert!(lan.hosts.iter().all(|host| host.count("established") == 0), "no association is needed");
}

#[test]
fn no_clock_is_asked() {
    const DAY: i64 = 86_400;
    for errors in
        [[Some(0), Some(400 * DAY)], [Some(-400 * DAY), Some(0)], [None, Some(0)], [Some(0), None], [None, None]]
    {
        let mut site = Site::new(1);
        let mut lan = Lan::new([]);
        for (number, error) in errors.into_iter().enumerate() {
            lan.add(settings(site.identity(number as u8 + 1)), error);
        }
        // Certificates are judged by a clock, so only a small error leaves them valid.
        for host in &mut lan.hosts {
            host.clock_error_s = host.clock_error_s.map(|error| error.signum() * 3600);
        }
        lan.pass(Duration::from_secs(5));
        for number in 0..3 {
            lan.hosts[0].clock_error_s = errors[0].map(|_| 3600 - number * 3000);
            let frame = to_group(1, MDNS, &[number as u8; 40]);
            lan.send(0, frame.clone());
            assert_eq!(got(&lan.hosts[1], &frame), 1, "{errors:?}, frame {number}");
            lan.pass(Duration::from_millis(300));
        }
    }
}

#[test]
fn a_changed_bit_anywhere_is_noticed_also_where_the_tag_is_right() {
    for insider in [false, true] {
        let mut lan = proved();
        let identity = Arc::clone(&lan.hosts[2].settings.identity);
        lan.wire = Box::new(|_, _, _| false);
        lan.send(0, to_group(1, MDNS, b"the true one"));
        let (_, frame) = lan.seen.last().cloned().unwrap();
        let before = lan.hosts[1].delivered.len();
        for at in 0..frame.len() {
            lan.pass(Duration::from_millis(20));
            for bit in [0, 3, 7] {
                let mut changed = frame.clone();
                changed[at] ^= 1 << bit;
                if insider {
                    retag(&identity, &mut changed);
                }
                if changed != frame {
                    lan.inject(1, changed);
                    assert_eq!(lan.hosts[1].delivered.len(), before, "byte {at} bit {bit}");
                }
            }
        }
        lan.pass(Duration::from_secs(3));
        assert!(lan.hosts[1].drops(if insider { DropReason::BadSignature } else { DropReason::GroupTag }) > 0);
        let replayed = lan.hosts[1].drops(DropReason::GroupReplayed);
        lan.inject(1, frame.clone());
        assert_eq!(lan.hosts[1].delivered.len(), before + 1, "the true one still arrives");
        lan.inject(1, frame);
        assert_eq!(
            (lan.hosts[1].delivered.len(), lan.hosts[1].drops(DropReason::GroupReplayed)),
            (before + 1, replayed + 1)
        );
    }
}

#[test]
fn nobody_else_speaks_in_a_hosts_name() {
    let mut lan = proved();
    let identity = Arc::clone(&lan.hosts[2].settings.identity);
    lan.wire = Box::new(|_, _, _| false);
    lan.send(2, to_group(3, MDNS, b"I am host 1"));
    let (_, mut frame) = lan.seen.last().cloned().unwrap();
    let incarnation: [u8; 8] = kinds(&lan, PacketType::GroupFrame)[0][32..40].try_into().unwrap();
    frame[6..12].copy_from_slice(&mac(1).0);
    frame[32..40].copy_from_slice(&incarnation);
    // Later than anything that host 1 has sent.
    frame[40..48].copy_from_slice(&u64::MAX.to_be_bytes());
    let before = lan.hosts[1].delivered.len();
    lan.inject(1, frame.clone());
    assert_eq!(lan.hosts[1].drops(DropReason::GroupTag), 1, "an outsider's costs no signature check");
    retag(&identity, &mut frame);
    lan.inject(1, frame);
    assert_eq!((lan.hosts[1].drops(DropReason::BadSignature), lan.hosts[1].count("group-refused")), (1, 1));
    assert_eq!(lan.hosts[1].delivered.len(), before);
    lan.wire = Box::new(|_, _, _| true);
    lan.send(0, to_group(1, MDNS, b"I am"));
    assert_eq!(lan.hosts[1].delivered.len(), before + 1, "the forged time did not make the true one old");
}

#[test]
fn what_a_frame_says_of_its_sender_agrees_with_the_certificate() {
    let mut site = Site::new(1);
    let mut liar = settings(site.identity(3));
    liar.weaken.cross_layer = true;
    let mut lan = Lan::new([settings(site.identity(1)), settings(site.identity(2)), liar]);
    lan.pass(Duration::from_secs(1));
    let mut lie = datagram_from(3, ip(1), 255, b"from host 1");
    lie[..6].copy_from_slice(&MDNS.0);
    lan.send(2, lie.clone());
    let false_arp = Arp {
        operation: Operation::Request,
        sender_mac: mac(3),
        sender_ip: ip(1),
        target_mac: MacAddress::ZERO,
        target_ip: ip(1),
    };
    lan.send(2, arp_frame(MacAddress::BROADCAST, false_arp));
    for host in [0, 1] {
        assert_eq!(
            (lan.hosts[host].drops(DropReason::InnerSource), lan.hosts[host].drops(DropReason::InnerArp)),
            (1, 1)
        );
        assert!(lan.hosts[host].delivered.is_empty());
        // Whose name was used is seen in what was sealed only.
        let opened = |reason, ethertype: EtherType| {
            let is_it =
                |seen: &&bump::Sighting| seen.reason == reason && seen.head[12..14] == ethertype.0.to_be_bytes();
            lan.hosts[host].ledger().sightings().filter(is_it).map(|seen| seen.head.clone()).collect::<Vec<_>>()
        };
        assert_eq!(opened(DropReason::InnerSource, EtherType::IPV4), [lie[..lie.len().min(96)].to_vec()]);
        assert_eq!(opened(DropReason::InnerArp, EtherType::ARP).len(), 1);
    }
}

#[test]
fn unsigned_group_frames_are_dropped() {
    let mut lan = proved();
    lan.inject(1, to_group(1, MDNS, b"plain"));
    assert_eq!(lan.hosts[1].drops(DropReason::Unsealed), 1);
}

#[test]
fn after_its_restart_a_receiver_believes_no_recording() {
    let mut lan = proved();
    lan.send(0, to_group(1, MDNS, b"recorded"));
    let (_, recording) = lan.seen.last().cloned().unwrap();
    lan.pass(Duration::from_millis(1));
    lan.restart(1);
    let before = lan.hosts[1].delivered.len();
    lan.inject(1, recording.clone());
    assert_eq!(lan.hosts[1].cll.control.group_senders(), 1, "its sender lives and says so");
    assert_eq!(lan.hosts[1].drops(DropReason::GroupReplayed), 1);
    lan.inject(1, recording);
    assert_eq!(lan.hosts[1].delivered.len(), before);
    lan.pass(Duration::from_millis(1));
    let fresh = to_group(1, MDNS, b"fresh");
    lan.send(0, fresh.clone());
    assert_eq!(got(&lan.hosts[1], &fresh), 1);
}

#[test]
fn after_a_senders_restart_nothing_of_its_earlier_life_is_believed_whatever_its_clock_says() {
    let mut lan = proved();
    lan.hosts[0].clock_error_s = Some(5000);
    lan.restart(0);
    lan.pass(Duration::from_secs(2));
    lan.send(0, to_group(1, MDNS, b"recorded"));
    let recording = kinds(&lan, PacketType::GroupFrame).pop().unwrap();
    lan.hosts[0].clock_error_s = Some(0);
    lan.restart(0);
    lan.pass(Duration::from_secs(2));
    let fresh = to_group(1, MDNS, b"the clock was set back");
    lan.send(0, fresh.clone());
    assert_eq!(got(&lan.hosts[1], &fresh), 1);
    let before = lan.hosts[1].delivered.len();
    lan.inject(1, recording.clone());
    lan.pass(Duration::from_secs(3));
    lan.inject(1, recording);
    lan.pass(Duration::from_secs(3));
    assert_eq!(lan.hosts[1].delivered.len(), before);
    assert_eq!(lan.hosts[1].drops(DropReason::GroupUnproved), 2);
    let later = to_group(1, MDNS, b"later");
    lan.send(0, later.clone());
    assert_eq!(got(&lan.hosts[1], &later), 1);
}

#[test]
fn a_silent_sender_is_asked_three_times_and_its_frames_are_dropped() {
    let mut lan = lan_of(2);
    lan.pass(Duration::from_secs(1));
    lan.wire = Box::new(|frame, _, _| frame[14] != PacketType::Announcement.first_byte());
    lan.send(0, to_group(1, MDNS, b"who am I?"));
    assert_eq!(lan.hosts[1].ledger().held, 1);
    lan.pass(Duration::from_secs(2));
    assert_eq!(kinds(&lan, PacketType::Question).len(), 3);
    assert_eq!((lan.hosts[1].drops(DropReason::GroupUnproved), lan.hosts[1].ledger().held), (1, 0));
    assert_eq!(lan.hosts[1].count("group-silent"), 1);
}

#[test]
fn a_lost_question_or_answer_costs_time_and_no_frame() {
    for lost in [PacketType::Question, PacketType::Announcement] {
        let mut lan = lan_of(2);
        lan.pass(Duration::from_secs(3));
        let mut first = true;
        lan.wire = Box::new(move |frame, _, _| {
            let is_first = frame[14] == lost.first_byte() && std::mem::take(&mut first);
            !is_first
        });
        let frame = to_group(1, MDNS, b"once more");
        lan.send(0, frame.clone());
        assert_eq!(got(&lan.hosts[1], &frame), 0);
        lan.pass(Duration::from_secs(1));
        assert_eq!(got(&lan.hosts[1], &frame), 1, "{lost:?}");
    }
}

#[test]
fn a_full_packet_travels_in_two_signed_parts_that_fit_the_wire() {
    let mut lan = proved();
    let frame = to_group(1, MDNS, &[7; INNER_MTU - 28]);
    assert_eq!(frame.len(), INNER_MTU + 14);
    let before = lan.seen.len();
    lan.send(0, frame.clone());
    assert_eq!((got(&lan.hosts[1], &frame), got(&lan.hosts[2], &frame)), (1, 1));
    assert_eq!(lan.seen.len(), before + 2);
    assert!(lan.seen[before..].iter().all(|(_, part)| part.len() <= 1514));
}

#[test]
fn a_frame_of_which_a_part_is_lost_is_dropped_and_the_next_arrives() {
    for lost in [0_u8, 1] {
        let mut lan = proved();
        let in_two = to_group(1, MDNS, &[7; INNER_MTU - 28]);
        lan.wire = Box::new(move |frame, _, _| frame.len() < 54 || frame[54] >> 4 != lost || frame[54] & 15 == 1);
        lan.send(0, in_two.clone());
        lan.pass(Duration::from_secs(2));
        for host in [1, 2] {
            assert_eq!(got(&lan.hosts[host], &in_two), 0);
            assert_eq!((lan.hosts[host].drops(DropReason::GroupIncomplete), lan.hosts[host].ledger().held), (1, 0));
        }
        lan.wire = Box::new(|_, _, _| true);
        lan.send(0, in_two.clone());
        assert_eq!((got(&lan.hosts[1], &in_two), got(&lan.hosts[2], &in_two)), (1, 1));
    }
}

#[test]
fn frames_of_one_moment_share_signatures_and_each_proves_itself_alone() {
    let mut lan = proved();
    let frames: Vec<_> = (0..100).map(|number| to_group(1, MDNS, &[number; 60])).collect();
    let before = kinds(&lan, PacketType::GroupFrame).len();
    let mut number = 0_u32;
    lan.wire = Box::new(move |_, _, to| {
        number += 1;
        to != 2 || !number.is_multiple_of(3)
    });
    lan.send_all(0, frames.clone());
    lan.pass(Duration::from_secs(1));
    let sent = kinds(&lan, PacketType::GroupFrame).split_off(before);
    assert_eq!(sent.len(), 100);
    let mut signatures: Vec<_> =
        sent.iter().map(|frame| GroupFrame::parse(&frame[14..]).unwrap().proof.signature).collect();
    signatures.dedup();
    assert!(signatures.len() <= 4, "{} signatures for 100 frames", signatures.len());
    assert!(frames.iter().all(|frame| got(&lan.hosts[1], frame) == 1), "without loss all arrive");
    let arrived = frames.iter().filter(|frame| got(&lan.hosts[2], frame) == 1).count();
    assert!((60..=70).contains(&arrived), "{arrived} of about 67 that were not lost");
    assert_eq!(lan.hosts[2].drops(DropReason::BadSignature), 0);
}

/// A receiver whose processor is busy comes to the first check when the sender has signed all that it had gathered.
#[test]
fn all_that_a_sender_lets_go_at_once_arrives_where_checks_come_late() {
    let mut lan = proved();
    let frames: Vec<_> = (0..GROUP_FRAMES_WAITING_MAX).map(|n| to_group(1, MDNS, &(n as u32).to_be_bytes())).collect();
    lan.wire = Box::new(|_, _, _| false);
    let before = kinds(&lan, PacketType::GroupFrame).len();
    lan.send_all(0, frames.clone());
    lan.pass(Duration::from_secs(1));
    let sent = kinds(&lan, PacketType::GroupFrame).split_off(before);
    assert_eq!(sent.len(), frames.len());
    lan.inject_all(1, sent);
    let arrived = frames.iter().filter(|frame| got(&lan.hosts[1], frame) == 1).count();
    assert_eq!((arrived, lan.hosts[1].drops(DropReason::GroupBudget)), (frames.len(), 0));
}

#[test]
fn below_the_rate_each_frame_leaves_at_once_and_above_it_none_waits_for_long() {
    let mut lan = proved();
    lan.pass(Duration::from_secs(1));
    let before = kinds(&lan, PacketType::GroupFrame).len();
    for number in 0..50_u8 {
        lan.send(0, to_group(1, MDNS, &[number; 60]));
        assert_eq!(kinds(&lan, PacketType::GroupFrame).len(), before + 1 + usize::from(number));
        lan.pass(Duration::from_millis(10));
    }
    for number in 0..100_u8 {
        lan.send(0, to_group(1, MDNS, &[number; 61]));
    }
    let at_once = kinds(&lan, PacketType::GroupFrame).len() - before - 50;
    assert!(at_once < 100, "above the rate some wait");
    lan.pass(Duration::from_millis(5));
    assert_eq!(kinds(&lan, PacketType::GroupFrame).len(), before + 150);
}

#[test]
fn a_batch_of_one_can_be_demanded() {
    let mut site = Site::new(1);
    let mut alone = settings(site.identity(1));
    alone.broadcasting.batch_frames = 1;
    let mut lan = Lan::new([alone, settings(site.identity(2))]);
    lan.send_all(0, (0..20).map(|number| to_group(1, MDNS, &[number; 60])).collect());
    let sent = kinds(&lan, PacketType::GroupFrame);
    assert_eq!(sent.len(), 20);
    assert!(sent.iter().all(|frame| GroupFrame::parse(&frame[14..]).unwrap().head.place.leaves == 1));
}

#[test]
fn a_super_frame_to_a_group_is_cut_and_its_checksums_are_complete() {
    let mut lan = proved();
    let gso = Gso { kind: GsoKind::Udp, size: 1000, ecn: false };
    let partial = Checksum::Partial { start: 34, offset: 6 };
    let meta = Meta { gso: Some(gso), checksum: partial, ..Meta::plain() };
    let before = lan.hosts[1].delivered.len();
    lan.send_with(0, to_group(1, MDNS, &[5; 2500]), meta);
    let delivered = &lan.hosts[1].delivered[before..];
    assert_eq!(delivered.iter().map(|(frame, _)| frame.len() - 42).collect::<Vec<_>>(), [1000, 1000, 500]);
    for (frame, meta) in delivered {
        assert_eq!(*meta, Meta::plain());
        assert_eq!(udp_sum(frame), 0xffff, "RFC 768: everything with the pseudo header sums up to ones");
    }
}

/// The ones' complement sum of a UDP datagram with its pseudo header (RFC 768), by the book.
fn udp_sum(frame: &[u8]) -> u16 {
    let (packet, datagram) = (&frame[14..34], &frame[34..]);
    let mut sum = 17 + datagram.len() as u32;
    for pair in packet[12..20].chunks(2).chain(datagram.chunks(2)) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn an_announcement_of_an_address_is_signed_and_a_probe_ends_here() {
    let mut lan = proved();
    let gratuitous = |sender_ip| {
        let target_mac = MacAddress::ZERO;
        let arp = Arp { operation: Operation::Request, sender_mac: mac(1), sender_ip, target_mac, target_ip: ip(1) };
        arp_frame(MacAddress::BROADCAST, arp)
    };
    lan.send(0, gratuitous(ip(1)));
    assert_eq!((got(&lan.hosts[1], &gratuitous(ip(1))), got(&lan.hosts[2], &gratuitous(ip(1)))), (1, 1));
    lan.send(0, gratuitous([0, 0, 0, 0].into()));
    assert_eq!(lan.hosts[0].drops(DropReason::ArpProbe), 1);
}

#[test]
fn a_revoked_sender_is_forgotten_and_not_believed_again() {
    let mut site = Site::new(1);
    let mut lan = Lan::new([settings(site.identity(1)), settings(site.identity(2))]);
    lan.pass(Duration::from_secs(1));
    lan.send(0, to_group(1, MDNS, b"good"));
    let list = site.revocation_of(&lan.hosts[0].settings.identity);
    lan.revoke(1, &list);
    assert_eq!(lan.hosts[1].cll.control.group_senders(), 0);
    let before = lan.hosts[1].delivered.len();
    lan.pass(Duration::from_secs(2));
    lan.send(0, to_group(1, MDNS, b"bad"));
    lan.pass(Duration::from_secs(3));
    assert_eq!(lan.hosts[1].delivered.len(), before);
    assert!(lan.hosts[1].drops(DropReason::BadCertificate) > 0);
}

#[test]
fn an_expired_sender_proves_itself_anew() {
    let mut lan = proved();
    let year = Duration::from_secs(366 * 86_400);
    lan.pass(year);
    let before = lan.hosts[1].delivered.len();
    lan.send(0, to_group(1, MDNS, b"too late"));
    lan.pass(Duration::from_secs(3));
    assert_eq!(lan.hosts[1].delivered.len(), before);
    assert!(lan.hosts[1].drops(DropReason::BadCertificate) > 0);
}

fn with_legacy(change: impl FnOnce(&mut Settings)) -> Lan {
    let mut site = Site::new(1);
    let mut guarded = settings(site.identity(1));
    guarded.legacy = vec![Legacy { mac: mac(9), ip: ip(9), router: false, broadcast: false }];
    change(&mut guarded);
    Lan::new([guarded])
}

#[test]
fn group_frames_leave_in_clear_for_legacy_hosts_only_if_the_operator_says_so() {
    for wanted in [false, true] {
        let mut lan = with_legacy(|settings| settings.broadcasting.to_legacy = wanted);
        lan.send(0, to_group(1, MDNS, b"to all"));
        let clear = lan.seen.iter().filter(|(_, frame)| *frame == to_group(1, MDNS, b"to all")).count();
        assert_eq!((clear, kinds(&lan, PacketType::GroupFrame).len()), (usize::from(wanted), 1));
    }
}

#[test]
fn group_frames_of_a_legacy_host_are_let_in_only_if_the_operator_says_so_and_never_as_another() {
    for wanted in [false, true] {
        let mut lan = with_legacy(|settings| settings.legacy[0].broadcast = wanted);
        let frame = to_group(9, MDNS, b"a printer");
        lan.inject(0, frame.clone());
        assert_eq!(got(&lan.hosts[0], &frame), usize::from(wanted));
        assert_eq!(lan.hosts[0].drops(DropReason::Multicast), u64::from(!wanted));
        let mut lie = datagram_from(9, ip(1), 255, b"not a printer");
        lie[..6].copy_from_slice(&MDNS.0);
        lan.inject(0, lie.clone());
        assert_eq!(got(&lan.hosts[0], &lie), 0);
    }
}

#[test]
fn memberships_leave_in_clear_beside_for_switches_that_listen_if_the_operator_says_so() {
    for wanted in [false, true] {
        let mut lan = with_legacy(|settings| settings.broadcasting.membership_in_clear = wanted);
        let mut report = to_group(1, MacAddress([1, 0, 0x5e, 0, 0, 22]), &[0x22, 0, 0, 0, 0, 0, 0, 1]);
        report[14 + 9] = 2;
        lan.send(0, report.clone());
        lan.send(0, to_group(1, MDNS, b"no report"));
        let clear: Vec<_> =
            lan.seen.iter().filter(|(_, frame)| frame[12..14] == [8, 0]).map(|(_, frame)| frame).collect();
        assert_eq!(clear, vec![&report; usize::from(wanted)]);
        assert_eq!(kinds(&lan, PacketType::GroupFrame).len(), 2);
    }
}

#[test]
fn switched_off_nothing_is_signed_and_nothing_let_in() {
    let mut site = Site::new(1);
    let mut off = settings(site.identity(1));
    off.broadcasting.carried = false;
    let mut lan = Lan::new([off, settings(site.identity(2))]);
    lan.send(0, to_group(1, MacAddress::BROADCAST, b"out"));
    lan.send(0, to_group(1, MDNS, b"out"));
    lan.send(1, to_group(2, MDNS, b"in"));
    assert!(lan.hosts.iter().all(|host| host.delivered.is_empty()));
    assert_eq!((lan.hosts[0].drops(DropReason::Broadcast), lan.hosts[0].drops(DropReason::Multicast)), (1, 2));
    assert_eq!(kinds(&lan, PacketType::GroupFrame).len(), 1);
}

#[test]
fn dhcp_is_not_carried_in_group_frames_in_either_direction() {
    let mut lan = proved();
    let mut offer = to_group(1, MacAddress::BROADCAST, &[0; 300]);
    offer[36..38].copy_from_slice(&68_u16.to_be_bytes());
    let before = lan.seen.len();
    lan.send(0, offer);
    assert_eq!((lan.hosts[0].drops(DropReason::Dhcp), lan.seen.len()), (1, before));
}

#[test]
fn a_flood_of_forged_signatures_is_bounded_and_the_others_still_talk() {
    let mut lan = proved();
    let identity = Arc::clone(&lan.hosts[2].settings.identity);
    lan.wire = Box::new(|_, _, _| false);
    lan.send(0, to_group(1, MDNS, b"a model"));
    let (_, model) = lan.seen.last().cloned().unwrap();
    for number in 0..5000_u32 {
        let mut forged = model.clone();
        forged[60..64].copy_from_slice(&number.to_be_bytes());
        retag(&identity, &mut forged);
        lan.inject(1, forged);
    }
    let checked = lan.hosts[1].drops(DropReason::BadSignature);
    assert!((400..=600).contains(&checked), "{checked} checks for one source at one moment");
    assert_eq!(lan.hosts[1].drops(DropReason::GroupBudget), 5000 - checked);
    lan.wire = Box::new(|_, _, _| true);
    let other = to_group(3, MDNS, b"still here");
    lan.send(2, other.clone());
    assert_eq!(got(&lan.hosts[1], &other), 1);
    lan.pass(Duration::from_secs(1));
    let victim = to_group(1, MDNS, b"and so am I");
    lan.send(0, victim.clone());
    assert_eq!(got(&lan.hosts[1], &victim), 1);
}

#[test]
fn a_flood_of_questions_is_answered_within_a_budget() {
    let mut lan = proved();
    lan.pass(Duration::from_secs(5));
    let identity = Arc::clone(&lan.hosts[1].settings.identity);
    let (_, before) = (lan.seen.len(), kinds(&lan, PacketType::Announcement).len());
    let question = kinds(&lan, PacketType::Question).remove(0);
    lan.wire = Box::new(|_, _, _| false);
    for number in 0..500_u32 {
        let mut flood = question.clone();
        flood[..6].copy_from_slice(&mac(1).0);
        flood[6..12].copy_from_slice(&mac(2).0);
        flood[32..36].copy_from_slice(&number.to_be_bytes());
        retag(&identity, &mut flood);
        lan.inject(0, flood);
    }
    let answered = kinds(&lan, PacketType::Announcement).len() - before;
    assert!((1..=8).contains(&answered), "{answered} answers to one source at one moment");
    assert_eq!(lan.hosts[0].drops(DropReason::GroupBudget) + answered as u64, 500);
}

/// `frame` in the name of stranger `number`, under the right tag: whoever has the site's key can make it.
fn in_a_strangers_name(frame: &[u8], number: u32, identity: &HostIdentity) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[6..8].copy_from_slice(&[2, 0xff]);
    frame[8..12].copy_from_slice(&number.to_be_bytes());
    retag(identity, &mut frame);
    frame
}

#[test]
fn strangers_without_end_leave_answers_to_who_has_proved_himself() {
    let mut lan = proved();
    // Both have associations as well, as hosts that talk to each other do.
    lan.ask(1, 1);
    lan.pass(Duration::from_secs(5));
    let identity = Arc::clone(&lan.hosts[1].settings.identity);
    let mut question = kinds(&lan, PacketType::Question).remove(0);
    question[..6].copy_from_slice(&mac(1).0);
    lan.wire = Box::new(|_, _, _| false);
    for number in 0..3000 {
        lan.inject(0, in_a_strangers_name(&question, number, &identity));
    }
    assert!(lan.hosts[0].drops(DropReason::GroupBudget) >= 1000, "strangers have no answers left");
    lan.wire = Box::new(|_, _, _| true);
    lan.restart(1);
    assert_eq!(lan.hosts[1].cll.control.group_senders(), 0);
    lan.send(0, to_group(1, MDNS, b"who does not know me asks who I am"));
    assert_eq!(lan.hosts[1].cll.control.group_senders(), 1, "its question was answered");
}

#[test]
fn strangers_without_end_leave_questions_for_who_has_proved_himself() {
    let mut lan = proved();
    lan.pass(Duration::from_secs(5));
    let identity = Arc::clone(&lan.hosts[1].settings.identity);
    let group_frame = kinds(&lan, PacketType::GroupFrame).remove(0);
    lan.wire = Box::new(|_, _, _| false);
    for number in 0..3000 {
        lan.inject(1, in_a_strangers_name(&group_frame, number, &identity));
    }
    assert!(lan.hosts[1].drops(DropReason::GroupUnproved) >= 2000, "no more strangers are asked");
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(Duration::from_millis(100));
    lan.restart(0);
    let frame = to_group(1, MDNS, b"another run of mine");
    lan.send(0, frame.clone());
    assert_eq!(got(&lan.hosts[1], &frame), 1);
}

/// Whoever has heard an earlier run of a sender can have it asked again at any time.
#[test]
fn a_recording_of_an_earlier_run_costs_no_frame_that_waits_for_a_check() {
    let mut lan = proved();
    let of_first_run = lan.seen.iter().find(|(from, frame)| *from == 0 && frame[14] == GROUP_FRAME);
    let (_, recorded) = of_first_run.cloned().unwrap();
    lan.restart(0);
    lan.pass(GROUP_QUESTION_INTERVAL);
    lan.send(0, to_group(1, MDNS, b"of the second run"));
    lan.pass(GROUP_QUESTION_INTERVAL);
    lan.hosts[1].is_busy = true;
    let questions = kinds(&lan, PacketType::Question).len();
    lan.inject(1, recorded);
    assert_eq!(kinds(&lan, PacketType::Question).len(), questions + 1, "the recording has it asked");
    let frames = [1, 2, 3].map(|number| to_group(1, MDNS, &[number; 40]));
    lan.send_all(0, frames.to_vec());
    lan.hosts[1].is_busy = false;
    lan.pass(Duration::from_secs(1));
    let got = frames.each_ref().map(|frame| got(&lan.hosts[1], frame));
    assert_eq!((got, lan.hosts[1].count("group-sender")), ([1; 3], 4), "asked and proved again, and nothing lost");
}

#[test]
fn lost_jobs_lose_frames_by_name_and_nothing_for_ever() {
    let mut lan = proved();
    lan.hosts[0].loses_jobs = true;
    lan.send(0, to_group(1, MDNS, b"never signed"));
    assert_eq!((lan.hosts[0].drops(DropReason::JobLost), lan.hosts[0].ledger().held), (1, 0));
    lan.hosts[0].loses_jobs = false;
    lan.hosts[1].loses_jobs = true;
    lan.send(0, to_group(1, MDNS, b"never checked"));
    assert_eq!((lan.hosts[1].drops(DropReason::JobLost), lan.hosts[1].ledger().held), (1, 0));
    lan.hosts[1].loses_jobs = false;
    let frame = to_group(1, MDNS, b"signed and checked");
    lan.send(0, frame.clone());
    assert_eq!((got(&lan.hosts[1], &frame), got(&lan.hosts[2], &frame)), (1, 1));
}

#[test]
fn frames_in_other_order_or_twice_are_delivered_once_at_most() {
    let mut lan = proved();
    lan.wire = Box::new(|_, _, _| false);
    for number in 0..10_u8 {
        lan.send(0, to_group(1, MDNS, &[number; 70]));
        lan.pass(Duration::from_millis(10));
    }
    let sent = kinds(&lan, PacketType::GroupFrame).split_off(3);
    let before = lan.hosts[1].delivered.len();
    for at in [3, 2, 3, 5, 4, 9, 0, 9, 8] {
        lan.inject(1, sent[at].clone());
    }
    let order: Vec<u8> = lan.hosts[1].delivered[before..].iter().map(|(frame, _)| frame[60]).collect();
    assert_eq!(order, [3, 5, 9], "strictly newer, as in the paper's section 5.5");
    assert_eq!(lan.hosts[1].drops(DropReason::GroupReplayed), 6);
}

#[test]
fn frames_of_no_ip_reach_all() {
    let mut lan = proved();
    // Wake-on-LAN: its pattern stands in clear in the signed frame, where a sleeping card finds it.
    let mut magic = [&MacAddress::BROADCAST.0[..], &mac(1).0, &[0x08, 0x42], &[0xff; 6]].concat();
    magic.extend(mac(7).0.repeat(16));
    lan.send(0, magic.clone());
    assert_eq!((got(&lan.hosts[1], &magic), got(&lan.hosts[2], &magic)), (1, 1));
    let (_, on_the_wire) = lan.seen.last().unwrap();
    assert!(on_the_wire.windows(102).any(|window| window == &magic[14..]));
    assert_eq!(lan.hosts[1].payloads(EtherType(0x0842)).len(), 1);
}

/// RFC 1122, section 3.3.6.
#[test]
fn a_packet_for_one_host_does_not_come_in_a_frame_to_all() {
    let mut lan = proved();
    let mut frame = datagram_from(1, ip(1), 2, b"for host 2 alone");
    frame[..6].copy_from_slice(&MacAddress::BROADCAST.0);
    lan.send(0, frame.clone());
    assert_eq!((got(&lan.hosts[1], &frame), lan.hosts[1].drops(DropReason::GroupUnicast)), (0, 1));
}

#[test]
fn frames_that_wait_while_the_wire_becomes_too_narrow_are_dropped_by_name() {
    let mut lan = proved();
    lan.pass(Duration::from_secs(1));
    // More than leave at once, so that the last ones wait.
    for number in 0..40_u8 {
        lan.send(0, to_group(1, MDNS, &[number; 1000]));
    }
    let waiting = lan.hosts[0].ledger().held;
    assert!(waiting > 0);
    lan.hosts[0].cll.control.set_wire_mtu(330);
    lan.pass(Duration::from_secs(1));
    assert_eq!((lan.hosts[0].ledger().held, lan.hosts[0].drops(DropReason::TooBig)), (0, waiting));
}
