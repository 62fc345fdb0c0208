//! The shield as a bump that a daemon drives.

use std::convert::Infallible;

use bump::{Instant, Now, Sink};
use cll::Effect;
use shield::ipsec::{Event, Shield};

use crate::daemon::{Described, Guard, Order, Report};

impl Guard for Shield {
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
        let Event::SpiLearned { peer, spi } = event;
        Described { word: "spi-learned", text: format!("{peer} sends under the SPI {spi:08x}") }
    }

    fn neighbour(effect: Infallible) -> Effect {
        match effect {}
    }

    // Packets keep their size.
    fn set_wire_mtu(&mut self, _wire_mtu: u16) {}

    fn obey(&mut self, _now: Now, order: Order, _sink: &mut dyn Sink) {
        if let Order::SetPeers(peers) = order {
            self.set_keys(&peers);
        }
    }

    fn report(&self, _now: Instant) -> Report {
        Report::Shielding(Shield::report(self))
    }
}
