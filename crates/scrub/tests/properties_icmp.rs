//! What holds for any frames of UDP, ICMP and opaque protocols: every frame that leaves parses and has right checksums, our
//! output comes out of a fresh scrubber as it went in, the books balance, and no bytes make it fail.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]
#![allow(dead_code, reason = "each test uses its share of the helpers")]

mod icmp;

use std::net::IpAddr;
use std::time::Duration;

use bump::{Meta, Side};
use icmp::{Gate, HOSTS, ICMP, ICMP_V6, Ip, UDP, assert_valid, datagram, error, message, transport_sum_is_right};
use proptest::prelude::*;
use scrub::settings::IcmpTiming;
use scrub::{Action, Preset, Rule, Settings};

/// A frame from one of the two sides, and how long after the last one it comes.
#[derive(Clone, Debug)]
struct Step {
    from: Side,
    frame: Vec<u8>,
    wait: Duration,
}

/// Something that a host sends: few hosts and numbers, so that answers and errors often fit what was sent.
fn packet() -> impl Strategy<Value = (Side, Ip)> {
    let kinds =
        prop_oneof![Just(0_u8), Just(8), Just(128), Just(129), Just(3), Just(11), Just(12), Just(1), any::<u8>()];
    let body = proptest::collection::vec(any::<u8>(), 0..64);
    let what = (any::<bool>(), any::<bool>(), 0..4_u8, kinds, prop_oneof![4 => Just(0_u8), 1 => any::<u8>()]);
    (what, 0..3_u16, body, 1_u8..=255, any::<bool>(), any::<u8>()).prop_map(
        |((is_v6, is_inside, form, kind, code), number, body, hop_limit, dont_fragment, class)| {
            let (source, destination) = ends(is_v6, is_inside);
            let ip = match form {
                0 => datagram(source, destination, [number, 53], &body),
                1 => message(source, destination, (kind, code), [0, 7, 0, number as u8], &body),
                2 => {
                    let about = datagram(destination, source, [number, 53], &body);
                    let (kind, code) = if is_v6 { (1 + code % 4, code) } else { (3 + code % 10, code % 16) };
                    error(source, (kind, code), [0, class, 5, 0xdc], &about, usize::from(hop_limit))
                }
                _ => Ip::new(source, destination, 47 + (kind & 3), body),
            };
            (if is_inside { Side::TRUSTED } else { Side::UNTRUSTED }, Ip { hop_limit, dont_fragment, class, ..ip })
        },
    )
}

fn ends(is_v6: bool, is_inside: bool) -> (IpAddr, IpAddr) {
    let (inside, outside) = HOSTS[usize::from(is_v6)];
    if is_inside { (inside, outside) } else { (outside, inside) }
}

/// A packet, of which sometimes a few bytes are changed, under a checksum that is then wrong or made right again.
fn step() -> impl Strategy<Value = Step> {
    let changes = prop_oneof![
        3 => Just(Vec::new()),
        1 => proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ];
    (packet(), changes, any::<bool>(), 0..200_u64).prop_map(|((from, mut ip), changes, is_repaired, wait)| {
        for (at, byte) in &changes {
            if !ip.payload.is_empty() {
                let at = at.index(ip.payload.len());
                ip.payload[at] = *byte;
            }
        }
        let at = if ip.protocol == UDP { 6 } else { 2 };
        let has_sum = matches!(ip.protocol, UDP | ICMP | ICMP_V6) && ip.payload.len() > at + 1;
        let ip = if is_repaired && has_sum { ip.summed(at) } else { ip };
        Step { from, frame: ip.frame(), wait: Duration::from_millis(wait) }
    })
}

fn settings(preset: Preset) -> Settings {
    Settings { exchanges_max: 256, ..Settings::preset(preset) }
}

/// `frame` without what differs from run to run: the identification of a packet that can be fragmented, and the header
/// checksum over it.
fn comparable(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if frame.get(12..14) == Some(&[8, 0]) {
        frame[18..20].fill(0);
        frame[24..26].fill(0);
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_leaves_is_valid_and_comes_out_of_a_fresh_scrubber_unchanged(
        steps in proptest::collection::vec(step(), 1..24),
        preset in prop_oneof![Just(Preset::Paper), Just(Preset::Balanced), Just(Preset::Strict)],
    ) {
        let mut settings = settings(preset);
        settings.both_directions = true;
        // The paper lets datagrams and messages pass that are none; they are not for this law.
        for rule in [Rule::UdpLength, Rule::UdpChecksum, Rule::IcmpTypes] {
            settings.rules.set(rule, Action::Scrub);
        }
        let (mut first, mut second) = (Gate::new(settings.clone()), Gate::new(settings));
        for Step { from, frame, wait } in steps {
            first.wait(wait);
            second.wait(wait);
            for (_, left, _) in first.pass_with(from, &frame, Meta::plain()) {
                assert_valid(&left);
                let again = second.pass_with(from, &left, Meta::plain());
                prop_assert_eq!(again.len(), 1, "{:02x?} does not pass twice", left);
                prop_assert_eq!(comparable(&again[0].1), comparable(&left));
            }
        }
    }

    #[test]
    fn with_jitter_the_books_balance_and_all_that_waited_is_valid(steps in proptest::collection::vec(step(), 1..24)) {
        let icmp = IcmpTiming::Jitter(Duration::from_millis(300));
        let mut gate = Gate::new(Settings { icmp, both_directions: true, ..settings(Preset::Balanced) });
        for Step { from, frame, wait } in steps {
            gate.wait(wait);
            gate.pass_with(from, &frame, Meta::plain()).iter().for_each(|(_, left, _)| assert_valid(left));
            gate.tick().iter().for_each(|(_, left, _)| assert_valid(left));
            prop_assert_eq!(gate.ledger().balance(), 0);
        }
        gate.wait(Duration::from_secs(1));
        gate.tick().iter().for_each(|(_, left, _)| assert_valid(left));
        prop_assert_eq!(gate.ledger().held, 0);
    }

    #[test]
    fn a_wrong_checksum_stays_wrong(step in step(), preset in prop_oneof![Just(Preset::Paper), Just(Preset::Balanced)]) {
        let is_wrong = |frame: &[u8]| etherparse::SlicedPacket::from_ethernet(frame).is_ok()
            && transport_sum_is_right(frame) == Some(false);
        let mut gate = Gate::new(settings(preset));
        if is_wrong(&step.frame) {
            for (_, left, _) in gate.pass_with(step.from, &step.frame, Meta::plain()) {
                prop_assert!(is_wrong(&left), "{:02x?}", left);
            }
        }
    }

    #[test]
    fn no_bytes_make_it_fail(
        frames in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..120)), 0..20),
        ethertype in prop_oneof![Just([8_u8, 0]), Just([0x86, 0xdd]), Just([0x81, 0]), Just([0, 40])],
    ) {
        let mut gate = Gate::new(settings(Preset::Strict));
        for (is_inside, mut frame) in frames {
            if let Some(place) = frame.get_mut(12..14) {
                place.copy_from_slice(&ethertype);
            }
            if let Some(version) = frame.get_mut(14) {
                *version = if ethertype[0] == 8 { 0x45 } else { 0x60 };
            }
            let from = if is_inside { Side::TRUSTED } else { Side::UNTRUSTED };
            gate.pass_with(from, &frame, Meta::plain());
        }
    }
}
