//! The shield in front of IPsec.

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, Instant, Ledger, Now, Side};
use shield::ipsec::{End, EpochKey, PairKeys, PeerSettings, Settings, Shield};
use wire::offload::SUPER_FRAME_MAX_BYTES;

use crate::input::Input;

const BATCHES_MAX: usize = 16;
/// An SPI and a UDP checksum.
const CHANGED_BYTES_MAX: usize = 4 + 2;

fn end(address: &str, end: End) -> Shield {
    let epochs = vec![EpochKey { number: 1, key: [7; 16] }];
    let peer =
        PeerSettings { address: address.parse().expect("an address"), keys: Some(PairKeys { end, epochs, send: 1 }) };
    Shield::new(Settings { peers: vec![peer], ..Settings::default() })
}

/// Any frames of either side: each has one fate, leaves with its length, and with no more changed than an SPI and a checksum; and what
/// the other end's shield is given besides makes no difference to that.
pub fn shield_ipsec(data: &[u8]) {
    let mut input = Input::new(data);
    // The addresses of the seed's frame.
    let mut shields = [end("10.0.0.254", End::A), end("10.0.0.1", End::B)];
    for turn in 0..BATCHES_MAX {
        let from = if input.chance() { Side::STACK } else { Side::WIRE };
        let now = Now { since_boot: Instant::from_millis(turn as u64 * 10), wall: None };
        let mut batch: Vec<_> = (0..input.below(4)).map(|_| (input.counted(4000).to_vec(), input.meta())).collect();
        for shield in &mut shields {
            pass(shield, now, from, &mut batch);
        }
    }
}

fn pass(shield: &mut Shield, now: Now, from: Side, batch: &mut Vec<(Vec<u8>, bump::Meta)>) {
    let sent = batch.clone();
    let mut sink = Collected::new();
    shield.process(now, from, &mut Frames::new(batch), &mut sink);
    let left = sink.take();
    for (to, frame, _) in &left {
        assert!(*to == from.other() && frame.len() <= SUPER_FRAME_MAX_BYTES);
        let is_whole =
            sent.iter().any(|(old, _)| old.len() == frame.len() && differing(old, frame) <= CHANGED_BYTES_MAX);
        assert!(is_whole || sent.iter().any(|(_, meta)| meta.gso.is_some()));
    }
    let mut ledger = Ledger::new();
    shield.add_to_ledger(&mut ledger);
    assert_eq!(ledger.balance(), 0);
    *batch = left.into_iter().map(|(_, frame, meta)| (frame, meta)).collect();
}

fn differing(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).filter(|(a, b)| a != b).count()
}
