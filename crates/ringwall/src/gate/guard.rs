//! The scrubber as a bump that a daemon drives, and the null bump in its place for measurements.

use std::convert::Infallible;

use bump::Instant;
use cll::Effect;
use scrub::{Event, Scrubber};

use crate::daemon::{Described, Guard, Report, Scrubbing};

impl Guard for Scrubber {
    type Tools = ();

    fn run_job(job: Infallible, _tools: &mut ()) -> Infallible {
        match job {}
    }

    // Its work is all on the data path.
    fn self_test(&self, _tools: &mut ()) -> Result<(), String> {
        Ok(())
    }

    fn is_urgent(job: &Infallible, _tools: &()) -> bool {
        match *job {}
    }

    fn lost() -> Option<Infallible> {
        None
    }

    fn describe(event: &Event) -> Described {
        match event {
            Event::Severed { rule } => Described { word: "severed", text: format!("a flow ended by the rule {rule}") },
        }
    }

    fn neighbour(effect: Infallible) -> Effect {
        match effect {}
    }

    fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.set_mtu(wire_mtu.into());
    }

    fn report(&self, _now: Instant) -> Report {
        Report::Scrubbing(Box::new(Scrubbing { counters: self.counters().clone(), mirror: None }))
    }
}
