//! The shield as a bump that a daemon drives.

use std::convert::Infallible;

use bump::{Instant, Now, Sink};
use shield::ipsec::{Event, PeerReport, PeerSettings, Shield};

use crate::daemon::{Described, Guard, Kind};
use crate::protocol::About;

/// The mode.
pub(crate) struct IpsecShield;

impl Kind for IpsecShield {
    /// Other keys of its peers.
    type Order = Vec<PeerSettings>;
    type Report = Vec<PeerReport>;
    type Effect = Infallible;
}

/// Packets keep their size, so it is nothing to it.
impl Guard<IpsecShield> for Shield {
    fn describe(event: &Event) -> Described {
        let Event::SpiLearned { peer, spi } = event;
        let text = format!("{peer} sends under the SPI {spi:08x}");
        Described { word: "spi-learned", text, about: About { ip: Some(peer.to_string()), ..About::default() } }
    }

    fn obey(&mut self, _now: Now, peers: Vec<PeerSettings>, _sink: &mut dyn Sink) {
        self.set_keys(&peers);
    }

    fn report(&self, _now: Instant) -> Vec<PeerReport> {
        Shield::report(self)
    }
}
