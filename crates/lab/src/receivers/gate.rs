//! The scrubber between an attacker and a receiver, with virtual time.

use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, Instant, Meta, Now, Side};
use scrub::keys::KEY_LEN;
use scrub::{FlowLimits, Keys, Preset, Scrubber, Settings};

/// The same numbers in every run.
const KEYS: Keys = Keys { tables: [1; KEY_LEN], sequence: [2; KEY_LEN], identification: [3; KEY_LEN] };
/// From one frame to the next.
const STEP: Duration = Duration::from_millis(1);
/// A case has one connection and few datagrams; tables for more would only have to be cleared for each case.
const FLOWS_MAX: usize = 16;
const EXCHANGES_MAX: usize = 64;

/// A scrubber in `balanced`, as it is without a configuration.
#[derive(Debug)]
pub(super) struct Gate {
    scrubber: Scrubber,
    now: Instant,
}

impl Gate {
    pub(super) fn new() -> Gate {
        let settings = Settings {
            flows: FlowLimits::at_most(FLOWS_MAX),
            exchanges_max: EXCHANGES_MAX,
            ..Settings::preset(Preset::Balanced)
        };
        Gate { scrubber: Scrubber::new(settings, KEYS), now: Instant::from_millis(1000) }
    }

    /// What leaves when `frame` comes, and to which side.
    pub(super) fn pass(&mut self, from: Side, frame: Vec<u8>) -> Vec<(Side, Vec<u8>)> {
        self.now = self.now + STEP;
        let now = Now { since_boot: self.now, wall: None };
        let mut sink = Collected::new();
        self.scrubber.process(now, from, &mut Frames::new(&mut [(frame, Meta::plain())]), &mut sink);
        while self.scrubber.next_event().is_some() {}
        sink.take().into_iter().map(|(to, frame, _)| (to, frame)).collect()
    }
}
