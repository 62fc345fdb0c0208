//! Compression between hosts: agreed for each direction by itself, seen in lengths alone, and bounded where it is undone.

#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

mod common;

use std::time::Duration;

use bump::{DropReason, Generator, Gso, GsoKind, Meta};
use cll::Settings;
use common::{EXPERIMENT, Lan, Site, datagram, partial, plain_frame, settings};
use wire::cll::Compression;
use wire::cll::compression::Algorithm;
use wire::cll::data::{HEADER_LEN, OVERHEAD};
use wire::ethernet::HEADER_LEN as ETHERNET_LEN;

const NONE: Compression = Compression::NONE;

fn writes_and_reads() -> Compression {
    Compression::new(Some(Algorithm::Lz4), &[Algorithm::Lz4])
}

fn reads() -> Compression {
    Compression::new(None, &[Algorithm::Lz4])
}

/// Two hosts with an association, the first of which offers `offers.0`.
fn talking(offers: (Compression, Compression), configure: impl Fn(u8, &mut Settings)) -> Lan {
    let mut site = Site::new(1);
    let mut lan = Lan::new([1, 2].map(|number| {
        let mut settings = settings(site.identity(number));
        settings.compression = if number == 1 { offers.0 } else { offers.1 };
        configure(number, &mut settings);
        settings
    }));
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
    lan
}

fn text() -> Vec<u8> {
    b"GET /index.html HTTP/1.1\r\nHost: printer.example\r\nAccept: text/html\r\n\r\n".repeat(15)
}

fn noise() -> Vec<u8> {
    Generator::from_seed([9; 32]).bytes::<1000>().to_vec()
}

/// Has `from` send a payload; returns the bytes of it that the wire saw, after the other had it as it was.
fn travels(lan: &mut Lan, from: usize, payload: &[u8]) -> usize {
    let frame = plain_frame(from as u8 + 1, 2 - from as u8, payload);
    lan.send(from, frame.clone());
    assert_eq!(lan.hosts[1 - from].delivered.last().expect("delivered").0, frame);
    lan.seen.last().expect("seen").1.len() - ETHERNET_LEN - OVERHEAD
}

#[test]
fn each_direction_is_compressed_if_one_side_wants_and_the_other_reads() {
    let later = Compression(0x81);
    for (first, second, there, back) in [
        (writes_and_reads(), writes_and_reads(), true, true),
        (writes_and_reads(), reads(), true, false),
        (reads(), writes_and_reads(), false, true),
        (writes_and_reads(), NONE, false, false),
        (NONE, writes_and_reads(), false, false),
        (writes_and_reads(), later, false, true),
        (NONE, NONE, false, false),
    ] {
        let mut lan = talking((first, second), |_, _| {});
        for (from, compressed) in [(0, there), (1, back)] {
            let len = travels(&mut lan, from, &text());
            assert_eq!(len < text().len() / 2, compressed, "{first:?} {second:?} from {from}: {len} bytes");
            assert_eq!(travels(&mut lan, from, &noise()), noise().len());
            let said = lan.hosts[from].cll.control.peers(lan.at)[0].sends.clone();
            assert_eq!(said.ends_with(", lz4"), compressed, "{said}");
        }
        let report = cll::compression(&lan.hosts[0].cll);
        assert_eq!((report.compressed_frames, report.expanded_frames), (u64::from(there), u64::from(back)));
        assert_eq!(report.left_frames > 0, there, "what did not get smaller is counted where compression was agreed");
        assert!(!there || report.bytes_before - report.bytes_after > 500, "{report:?}");
    }
}

#[test]
fn a_super_frame_is_compressed_piece_by_piece_until_one_gets_no_smaller() {
    let mut lan = talking((writes_and_reads(), reads()), |_, _| {});
    let gso = Gso { kind: GsoKind::Udp, size: 1000, ecn: false };
    let meta = Meta { gso: Some(gso), ..partial(34, 6) };
    for (payload, compressed) in [(text().repeat(3), 4), ([noise(), text().repeat(2)].concat(), 0)] {
        let report = cll::compression(&lan.hosts[0].cll);
        let before = (lan.hosts[1].delivered.len(), report.compressed_frames, report.left_frames);
        lan.send_with(0, datagram(1, 2, &payload), meta);
        let arrived: Vec<u8> =
            lan.hosts[1].delivered[before.0..].iter().flat_map(|(frame, _)| frame[42..].to_vec()).collect();
        assert_eq!(arrived, payload);
        let report = cll::compression(&lan.hosts[0].cll);
        assert_eq!(report.compressed_frames - before.1, compressed);
        let frames = (lan.hosts[1].delivered.len() - before.0) as u64;
        assert_eq!(report.left_frames - before.2, frames - compressed, "what was not even tried is counted, too");
    }
}

#[test]
fn what_fits_does_not_hang_on_what_it_says() {
    let mut lan = talking((writes_and_reads(), reads()), |_, _| {});
    let fits = usize::from(lan.hosts[0].settings.wire_mtu) - OVERHEAD;
    assert!(travels(&mut lan, 0, &vec![7; fits]) < 100, "and the longest is expanded");
    lan.send(0, plain_frame(1, 2, &vec![7; fits + 1]));
    assert_eq!(lan.hosts[0].drops(DropReason::TooBig), 1);
}

#[test]
fn rollovers_and_resumptions_agree_anew() {
    let mut lan = talking((writes_and_reads(), reads()), |_, settings| {
        settings.rekey_after_frames = 8;
        settings.resumption = Some(Duration::from_secs(3600));
    });
    for _ in 0..12 {
        assert!(travels(&mut lan, 0, &text()) < 500);
        lan.pass(Duration::from_secs(1));
    }
    assert!(lan.hosts[0].count("renewed") > 0, "no rollover");
    // The one who reads is started again, and reads no more.
    lan.hosts[1].settings.compression = NONE;
    lan.restart(1);
    lan.ask(1, 1);
    lan.pass(Duration::from_secs(2));
    assert!(lan.hosts[1].count("resumed") == 1, "no resumption");
    assert_eq!(travels(&mut lan, 0, &text()), text().len());
}

/// Hosts of which the first only authenticates and the second takes frames with a wrong tag: so what an enrolled host could
/// seal can be written by hand.
fn forgeable() -> (Lan, Vec<u8>) {
    let mut lan = talking((writes_and_reads(), reads()), |number, settings| {
        settings.confidential = false;
        settings.weaken.tag = number == 2;
    });
    travels(&mut lan, 0, &noise());
    let frame = lan.seen.last().expect("seen").1.clone();
    lan.wire = Box::new(|_, _, _| false);
    (lan, frame)
}

/// `frame` with another payload behind these inner flags, and another sequence number.
fn rewritten(frame: &[u8], sequence: u32, ethertype: [u8; 2], flags: u8, payload: &[u8]) -> Vec<u8> {
    let body_at = ETHERNET_LEN + HEADER_LEN;
    let mut out = frame[..body_at].to_vec();
    let number = u32::from_be_bytes(out[body_at - 8..body_at - 4].try_into().expect("four bytes"));
    out[body_at - 8..body_at - 4].copy_from_slice(&(number + sequence).to_be_bytes());
    [&out[..], &ethertype, &[flags], payload, &[0; 16]].concat()
}

#[test]
fn what_an_enrolled_host_may_not_compress_is_dropped_by_name() {
    let (mut lan, frame) = forgeable();
    let type_of = EXPERIMENT.0.to_be_bytes();
    let bomb = [&[0xea, 0x60, 0x1f, b'x', 1, 0][..], &[0xff; 200]].concat();
    let good = [&[0, 100, 0x1f, b'x', 1, 0, 75, 0x50][..], b"xxxxx"].concat();
    let cases = [
        (type_of, &bomb[..], DropReason::CompressedTooLong),
        (type_of, &[0, 200, 0x1f, b'x', 0, 0, 75, 0x50, 1, 2, 3, 4, 5][..], DropReason::CompressedMalformed),
        (type_of, &[0, 5, 0x50, 1, 2, 3, 4, 5], DropReason::CompressedMalformed),
        (type_of, &[0], DropReason::CompressedMalformed),
        ([0, 0], &good, DropReason::InnerMalformed),
        ([0, 1], &good, DropReason::InnerMalformed),
    ];
    let before = lan.hosts[1].delivered.len();
    for (at, (ethertype, payload, reason)) in (1..).zip(cases) {
        let drops = lan.hosts[1].drops(reason);
        lan.inject(1, rewritten(&frame, at, ethertype, 0x02, payload));
        assert_eq!(
            (lan.hosts[1].drops(reason), lan.hosts[1].delivered.len()),
            (drops + 1, before),
            "{reason:?} {payload:02x?}"
        );
    }
    lan.inject(1, rewritten(&frame, 20, type_of, 0x02, &good));
    assert_eq!(lan.hosts[1].payloads(EXPERIMENT).last(), Some(&vec![b'x'; 100]), "the same, well made");
    assert_eq!(lan.hosts[1].ledger().balance(), 0);
}

#[test]
fn the_other_direction_is_not_expanded() {
    let mut lan = talking((reads(), writes_and_reads()), |number, settings| {
        settings.confidential = false;
        settings.weaken.tag = number == 2;
    });
    travels(&mut lan, 0, &noise());
    let frame = lan.seen.last().expect("seen").1.clone();
    lan.wire = Box::new(|_, _, _| false);
    let good = [&[0, 100, 0x1f, b'x', 1, 0, 75, 0x50][..], b"xxxxx"].concat();
    lan.inject(1, rewritten(&frame, 1, EXPERIMENT.0.to_be_bytes(), 0x02, &good));
    assert_eq!(lan.hosts[1].drops(DropReason::Compressed), 1);
}
