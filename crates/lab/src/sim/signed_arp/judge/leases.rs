//! What DHCP programs say and hear: nothing that no honest program said, nothing old, nothing twice.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bump::Instant;
use dhcp::limits::CLIENT_GOOD_FOR;
use sarp::limits::WINDOW;
use wire::MacAddress;
use wire::dhcp::{OPTION_PROOF, Operation, View};

/// What a message may be older than the window: the way, the jobs, and two clocks.
const SLACK: Duration = Duration::from_secs(15);

/// What honest programs said: how often, and when last. Keyed by what a proof covers.
#[derive(Debug, Default)]
pub struct Said {
    said: HashMap<Vec<u8>, (u64, Instant)>,
    /// How often the program of a station heard it.
    heard: HashMap<(usize, Vec<u8>), u64>,
    /// Hosts that a liar may speak for, and since when it may not.
    liars: BTreeMap<MacAddress, Option<Instant>>,
}

impl Said {
    /// An honest program says this.
    pub fn say(&mut self, at: Instant, frame: &[u8]) {
        let Ok(view) = View::new(frame) else { return };
        let said = self.said.entry(view.canonical()).or_insert((0, at));
        *said = (said.0 + 1, at);
    }

    /// A liar has the key of the host with this card; a host that was revoked at `fallen` counts as one.
    pub fn lie(&mut self, mac: MacAddress, fallen: Option<Instant>) {
        self.liars.insert(mac, fallen);
    }

    /// The program of `station`, whose card is `mac`, hears this. Returns what is wrong with that.
    pub fn hear(&mut self, at: Instant, station: usize, mac: MacAddress, frame: &[u8]) -> Result<(), &'static str> {
        let Ok(view) = View::new(frame) else { return Err("malformed DHCP delivered") };
        if view.option(OPTION_PROOF).is_some() {
            return Err("proof delivered to a program");
        }
        let key = view.canonical();
        let fallen = self.liars.get(&view.chaddr());
        let is_over = |since: &Option<Instant>| since.is_some_and(|since| at > since + CLIENT_GOOD_FOR + SLACK);
        let (is_request, is_liar) = (view.operation() == Operation::Request, fallen.is_some());
        if is_request && fallen.is_some_and(is_over) {
            return Err("revoked host heard by a DHCP server");
        }
        let Some(&(said, last)) = self.said.get(&key) else {
            return if is_request && is_liar { Ok(()) } else { Err("forged DHCP delivered") };
        };
        if !is_request && view.chaddr() != mac {
            return Err("DHCP for another client delivered");
        }
        if at > last + WINDOW + SLACK {
            return Err("old DHCP delivered");
        }
        let heard = self.heard.entry((station, key)).or_insert(0);
        *heard += 1;
        // An offer may come twice; a request counts once.
        if is_request && *heard > said { Err("DHCP request delivered twice") } else { Ok(()) }
    }
}
