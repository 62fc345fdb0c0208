//! The null bump.

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, Instant, Ledger, Now, Side};
use system::null::NullBump;
use wire::offload::SUPER_FRAME_MAX_BYTES;

use crate::input::Input;

const BATCHES_MAX: usize = 16;

/// Frames of either side with any metadata: each has one fate, and what is not cut leaves as it came.
pub fn null_bump(data: &[u8]) {
    let mut input = Input::new(data);
    let mut bump = NullBump::new();
    let now = Now { since_boot: Instant::default(), wall: None };
    for _ in 0..BATCHES_MAX {
        let from = if input.chance() { Side::STACK } else { Side::WIRE };
        let room = input.below(256);
        let mut batch: Vec<_> = (0..input.below(4)).map(|_| (input.counted(4000).to_vec(), input.meta())).collect();
        let sent = batch.clone();
        let mut sink = Collected::with_room_for(room);
        bump.process(now, from, &mut Frames::new(&mut batch), &mut sink);
        let left = sink.take();
        assert!(left.len() <= room);
        if sent.iter().all(|(_, meta)| meta.gso.is_none()) {
            let expected: Vec<_> =
                sent.into_iter().take(room).map(|(frame, meta)| (from.other(), frame, meta)).collect();
            assert_eq!(left, expected);
        }
        assert!(left.iter().all(|(to, frame, _)| *to == from.other() && frame.len() <= SUPER_FRAME_MAX_BYTES));
        let mut ledger = Ledger::new();
        bump.add_to_ledger(&mut ledger);
        assert_eq!(ledger.balance(), 0);
    }
}
