//! The line in virtual time. What is expected is arithmetic over the options, never our own output.

use bump::sink::Collected;
use bump::{Gso, GsoKind, VlanTag};
use clap::Parser;

use super::*;

const TO: Side = Side::Outer;

fn line(impairment: Impairment) -> Line {
    Line::new(impairment, TO, Generator::from_seed([7; 32]))
}

fn at(milliseconds: u64) -> Instant {
    Instant::from_millis(milliseconds)
}

/// A sealed frame of `len` bytes that carries `number` in its ciphertext.
fn sealed(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[12..14].copy_from_slice(&[0x07, 0xd0]);
    bytes[28..32].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[28..32].try_into().expect("four bytes"))
}

fn offer(line: &mut Line, now: Instant, mut bytes: Vec<u8>) {
    line.offer(now, &Frame { bytes: &mut bytes, meta: Meta::plain() });
}

fn offer_numbered(line: &mut Line, now: Instant, count: u32) {
    (0..count).for_each(|number| offer(line, now, sealed(number, 100)));
}

/// All frames that leave until `now`.
fn released(line: &mut Line, now: Instant) -> Vec<Vec<u8>> {
    let mut sink = Collected::new();
    line.release(now, &mut sink);
    sink.take().into_iter().map(|(_, bytes, _)| bytes).collect()
}

fn numbers(line: &mut Line, now: Instant) -> Vec<u32> {
    released(line, now).iter().map(|bytes| number_of(bytes)).collect()
}

fn assert_adds_up(line: &Line) {
    let LineCounters { taken, delivered, lost, duplicated, overflowed, offloaded, .. } = line.counters();
    let waiting = line.waiting.len() as u64;
    assert_eq!(taken + duplicated, delivered + lost + overflowed + offloaded + waiting);
}

#[test]
fn a_line_without_faults_gives_back_what_it_takes_at_once_and_in_order() {
    let mut line = line(Impairment::default());
    offer_numbered(&mut line, at(5), 100);
    assert_eq!(line.deadline(), Some(at(5)));
    assert_eq!(numbers(&mut line, at(5)), (0..100).collect::<Vec<_>>());
    assert_eq!((line.deadline(), line.waiting_bytes), (None, 0));
    assert_eq!(line.counters(), LineCounters { taken: 100, delivered: 100, ..LineCounters::default() });
}

#[test]
fn shares_come_out_as_asked_and_the_counters_add_up() {
    let five = Percent::whole(5);
    let mut line =
        line(Impairment { loss: five, duplicate: five, corrupt: five, reorder: five, ..Impairment::default() });
    for number in 0..20_000 {
        offer(&mut line, at(u64::from(number)), sealed(number, 100));
        released(&mut line, at(u64::from(number)));
    }
    let counters = line.counters();
    // 5 % of 20,000 is 1,000 with a standard deviation of 31; seven of those are far beyond chance.
    for count in [counters.lost, counters.duplicated, counters.corrupted, counters.reordered] {
        assert!((780..=1220).contains(&count), "{counters:?}");
    }
    assert_adds_up(&line);
}

#[test]
fn one_seed_gives_one_course_and_another_seed_another() {
    let faults = Impairment {
        loss: Percent::whole(20),
        duplicate: Percent::whole(20),
        corrupt: Percent::whole(20),
        jitter: Duration::from_millis(3),
        ..Impairment::default()
    };
    let course = |seed| {
        let mut line = Line::new(faults.clone(), TO, Generator::from_seed([seed; 32]));
        offer_numbered(&mut line, at(0), 200);
        (0..5).map(|ms| released(&mut line, at(ms))).collect::<Vec<_>>()
    };
    assert_eq!(course(1), course(1));
    assert_ne!(course(1), course(2));
}

#[test]
fn delay_and_jitter_bound_the_time_under_way_and_keep_the_order() {
    let (delay, jitter) = (Duration::from_millis(10), Duration::from_millis(5));
    let mut line = line(Impairment { delay, jitter, ..Impairment::default() });
    offer_numbered(&mut line, at(100), 50);
    assert_eq!(numbers(&mut line, at(110) - Duration::from_nanos(1)), Vec::<u32>::new());
    let first_half = numbers(&mut line, at(113));
    assert!(first_half.len() < 50, "jitter spreads them");
    let rest = numbers(&mut line, at(115));
    assert_eq!([first_half, rest].concat(), (0..50).collect::<Vec<_>>());
}

#[test]
fn reordered_frames_are_overtaken_but_never_late_by_more_than_the_limit() {
    let mut line = line(Impairment { reorder: Percent::whole(10), ..Impairment::default() });
    offer_numbered(&mut line, at(0), 200);
    let punctual = numbers(&mut line, at(0));
    let late = numbers(&mut line, at(0) + BEHIND_MAX);
    assert_eq!(late.len() as u64, line.counters().reordered);
    assert!(!late.is_empty() && punctual.is_sorted());
    let mut all = [punctual, late].concat();
    all.sort_unstable();
    assert_eq!(all, (0..200).collect::<Vec<_>>());
}

#[test]
fn a_rate_spaces_frames_and_its_queue_is_bounded_in_time() {
    // 1250 bytes at 10 Mbit/s take 1 ms.
    let mut line = line(Impairment { rate: Some(Rate::mbit(10)), ..Impairment::default() });
    (0..100).for_each(|number| offer(&mut line, at(0), sealed(number, 1250)));
    assert_eq!(line.deadline(), Some(at(1)));
    assert_eq!(numbers(&mut line, at(10)), (0..10).collect::<Vec<_>>());
    // The one whose turn comes after exactly 50 ms is still taken.
    assert_eq!(line.counters().overflowed, 49);
    assert_adds_up(&line);
}

#[test]
fn what_waits_is_bounded_in_frames_and_in_bytes() {
    let late = Impairment { delay: Duration::from_secs(1), ..Impairment::default() };
    let mut many = line(late.clone());
    offer_numbered(&mut many, at(0), WAITING_MAX_FRAMES as u32 + 3);
    assert_eq!((many.waiting.len(), many.counters().overflowed), (WAITING_MAX_FRAMES, 3));

    let mut large = line(late);
    let fitting = WAITING_MAX_BYTES / 9000;
    (0..fitting as u32 + 3).for_each(|number| offer(&mut large, at(0), sealed(number, 9000)));
    assert_eq!((large.waiting.len(), large.counters().overflowed), (fitting, 3));
}

#[test]
fn flips_hit_one_bit_in_the_named_places_by_turns() {
    let places = [Place::Header, Place::Body, Place::Tag];
    let mut line = line(Impairment { corrupt: Percent::whole(100), flip_at: places.to_vec(), ..Impairment::default() });
    let original = sealed(9, 200);
    (0..300).for_each(|_| offer(&mut line, at(0), original.clone()));
    // Ethernet 14 bytes, clear header 14 (docs/protocol.md), tag 16.
    let ranges = [14..28, 28..184, 184..200];
    for (count, frame) in released(&mut line, at(0)).iter().enumerate() {
        let changed: Vec<usize> = (0..200).filter(|&byte| frame[byte] != original[byte]).collect();
        assert_eq!(changed.len(), 1);
        assert_eq!((frame[changed[0]] ^ original[changed[0]]).count_ones(), 1);
        assert!(ranges[count % 3].contains(&changed[0]), "frame {count}, byte {}", changed[0]);
    }
    assert_eq!(line.counters().corrupted, 300);
}

#[test]
fn corrupted_plain_udp_is_mended_only_when_asked() {
    let mut frame = vec![0; 100];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&86_u16.to_be_bytes());
    frame[23] = 17;
    frame[38..40].copy_from_slice(&66_u16.to_be_bytes());
    frame[40..42].copy_from_slice(&[0xab, 0xcd]);
    for mend_udp in [false, true] {
        let (corrupt, flip_at) = (Percent::whole(100), vec![Place::Body]);
        let mut line = line(Impairment { corrupt, flip_at, mend_udp, ..Impairment::default() });
        (0..100).for_each(|_| offer(&mut line, at(0), frame.clone()));
        for hit in released(&mut line, at(0)) {
            assert_eq!(hit[..40], frame[..40], "headers stay");
            assert_eq!(hit[40..42], if mend_udp { [0, 0] } else { [0xab, 0xcd] });
            assert_ne!(hit[42..], frame[42..]);
        }
    }
}

#[test]
fn frames_too_short_for_a_place_do_not_bring_the_line_down() {
    for len in 0..40 {
        for place in [Place::Header, Place::Body, Place::Tag, Place::Any] {
            let (corrupt, flip_at) = (Percent::whole(100), vec![place]);
            let mut line = line(Impairment { corrupt, flip_at, mend_udp: true, ..Impairment::default() });
            let mut bytes = vec![0x45; len];
            bytes.get_mut(12..14).into_iter().for_each(|ethertype| ethertype.copy_from_slice(&[0x07, 0xd0]));
            offer(&mut line, at(0), bytes);
            assert_eq!(line.counters().corrupted, u64::from(len > 0));
        }
    }
}

#[test]
fn filters_spare_other_frames_but_not_their_order() {
    let all = Percent::whole(100);
    let only_ethertype = Some(EtherType::CLL);
    let mut line = line(Impairment { loss: all, only_ethertype, only_from_bytes: 80, ..Impairment::default() });
    let mut plain = sealed(1, 100);
    plain[12..14].copy_from_slice(&[0x08, 0x00]);
    offer(&mut line, at(0), plain);
    offer(&mut line, at(0), sealed(2, 79));
    offer(&mut line, at(0), sealed(3, 80));
    assert_eq!(numbers(&mut line, at(0)), [1, 2]);
    assert_eq!(line.counters().lost, 1);
}

#[test]
fn a_full_port_keeps_frames_waiting() {
    let mut line = line(Impairment::default());
    offer_numbered(&mut line, at(0), 10);
    let mut narrow = Collected::with_room_for(4);
    line.release(at(0), &mut narrow);
    assert_eq!(narrow.take().len(), 4);
    assert_adds_up(&line);
    assert_eq!(numbers(&mut line, at(0)), [4, 5, 6, 7, 8, 9]);
}

#[test]
fn metadata_of_a_plain_frame_goes_along_and_offloaded_frames_are_refused() {
    let mut line = line(Impairment::default());
    let tagged = Meta { vlan: Some(VlanTag { tpid: 0x8100, tci: 5 }), checksum: Checksum::Complete, ..Meta::plain() };
    line.offer(at(0), &Frame { bytes: &mut sealed(1, 100), meta: tagged });
    let gso = Some(Gso { kind: GsoKind::TcpV4, size: 1448, ecn: false });
    line.offer(at(0), &Frame { bytes: &mut sealed(2, 100), meta: Meta { gso, ..Meta::plain() } });
    let checksum = Checksum::Partial { start: 34, offset: 16 };
    line.offer(at(0), &Frame { bytes: &mut sealed(3, 100), meta: Meta { checksum, ..Meta::plain() } });
    let mut sink = Collected::new();
    line.release(at(0), &mut sink);
    let left = sink.take();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].0, left[0].2), (TO, Meta { checksum: Checksum::Unknown, ..tagged }));
    assert_eq!(line.counters().offloaded, 2);
}

#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    impairment: Impairment,
}

fn parse<S: AsRef<str>>(options: &[S]) -> Result<Impairment, String> {
    let words = ["link"].into_iter().chain(options.iter().map(AsRef::as_ref));
    Options::try_parse_from(words).map(|options| options.impairment).map_err(|error| error.to_string())
}

#[test]
fn options_read_back_as_what_they_were_made_of() {
    let full = Impairment {
        loss: Percent(50_001),
        duplicate: Percent::whole(2),
        reorder: Percent::whole(100),
        delay: Duration::from_micros(2_345),
        jitter: Duration::from_micros(1),
        corrupt: Percent(1),
        flip_at: vec![Place::Tag, Place::Any],
        resize_by: vec![-3, 5],
        mend_udp: true,
        only_ethertype: Some(EtherType::CLL),
        only_from_bytes: 700,
        rate: Some(Rate { bits_per_second: 1_500_000 }),
    };
    for impairment in [full, Impairment::default()] {
        assert_eq!(parse(&impairment.options()), Ok(impairment));
    }
}

#[test]
fn options_are_read_as_a_person_writes_them() {
    let words = "--loss-percent 0.5 --delay-ms 1.5 --flip-at header,body --only-ethertype 0x07D0 --rate-mbit 2.5";
    let impairment = parse(&words.split(' ').collect::<Vec<_>>()).expect("they are right");
    assert_eq!((impairment.loss, impairment.delay), (Percent(5_000), Duration::from_micros(1500)));
    assert_eq!(
        (impairment.flip_at, impairment.only_ethertype),
        (vec![Place::Header, Place::Body], Some(EtherType::CLL))
    );
    assert_eq!(impairment.rate.map(|rate| rate.time_of(2500)), Some(Duration::from_millis(8)));
    for wrong in ["--loss-percent=101", "--loss-percent=-1", "--delay-ms=NaN", "--rate-mbit=0", "--only-ethertype=x"] {
        assert!(parse(&[wrong]).is_err(), "{wrong}");
    }
}

/// A plain UDP datagram of ten bytes over IPv4, with checksums that say nothing.
fn plain_udp() -> Vec<u8> {
    let mut bytes = vec![0; 14 + 20 + 8 + 10];
    bytes[12..14].copy_from_slice(&[8, 0]);
    (bytes[14], bytes[17], bytes[23], bytes[39]) = (0x45, 38, 17, 18);
    bytes
}

#[test]
fn lengths_change_in_turn_and_plain_udp_says_so() {
    let impairment =
        Impairment { corrupt: Percent::whole(100), resize_by: vec![-3, 5], mend_udp: true, ..Impairment::default() };
    let mut line = line(impairment);
    (0..3).for_each(|_| offer(&mut line, at(0), plain_udp()));
    let lengths: Vec<_> = released(&mut line, at(0)).iter().map(|bytes| (bytes.len(), bytes[17], bytes[39])).collect();
    assert_eq!(lengths, [(49, 35, 15), (57, 43, 23), (49, 35, 15)]);
    assert_eq!(line.counters().corrupted, 3);
}

#[test]
fn a_frame_keeps_its_ethernet_header_whatever_it_loses() {
    let mut line = line(Impairment { corrupt: Percent::whole(100), resize_by: vec![-1000], ..Impairment::default() });
    offer(&mut line, at(0), sealed(7, 100));
    assert_eq!(released(&mut line, at(0)), [sealed(7, 100)[..14].to_vec()]);
}
