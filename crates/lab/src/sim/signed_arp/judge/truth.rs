//! Who may say what: which hardware address belongs to an address since when, and for how long others may still believe it.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::Instant;
use sarp::limits::{KEY_GOOD_FOR, WINDOW};
use wire::MacAddress;

/// What a recorded answer may still deceive beyond the window: the way to the receiver, its jobs, and how far two S-ARP clocks
/// may be apart.
const SLACK: Duration = Duration::from_secs(15);
/// How long after the first message under an old key a host may take to learn that it is over.
const LEARNS_WITHIN: Duration = Duration::from_secs(10);

/// How a claim ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its owner says it no more: only recordings are left, and they are good for the window.
    Honest,
    /// Who has the key goes on saying it: until others ask for the key again (docs/s-arp.md, section 7).
    Lingering,
}

/// A claim that is true for a time.
#[derive(Clone, Copy, Debug)]
struct Holding {
    /// Whose.
    station: usize,
    /// Where the address is; anywhere if the site binds nothing.
    mac: Option<MacAddress>,
    from: Instant,
    ended: Option<(Instant, End)>,
}

/// All claims of a run.
#[derive(Debug)]
pub struct Truth {
    holdings: BTreeMap<Ipv4Addr, Vec<Holding>>,
    /// When a host believed first what it should not for long.
    late: HashMap<(usize, Ipv4Addr), Instant>,
    faults_stop: Instant,
}

impl Truth {
    /// Nobody has anything. While there are faults nobody need hear from a distributor.
    pub fn new(faults_stop: Instant) -> Truth {
        Truth { holdings: BTreeMap::new(), late: HashMap::new(), faults_stop }
    }

    /// From now on `ip` is at `mac`.
    pub fn begin(&mut self, at: Instant, station: usize, ip: Ipv4Addr, mac: Option<MacAddress>) {
        self.holdings.entry(ip).or_default().push(Holding { station, mac, from: at, ended: None });
    }

    /// What `station` held of `ip`, or of all addresses, is over.
    pub fn end(&mut self, at: Instant, station: usize, ip: Option<Ipv4Addr>, how: End) {
        let held = self.holdings.iter_mut().filter(|(address, _)| ip.is_none_or(|ip| ip == **address));
        for holding in held.flat_map(|(_, holdings)| holdings) {
            if holding.station == station && holding.ended.is_none() {
                holding.ended = Some((at, how));
            }
        }
    }

    /// Who holds `ip` now.
    pub fn holders(&self, ip: Ipv4Addr) -> Vec<usize> {
        let holdings = self.holdings.get(&ip).into_iter().flatten();
        holdings.filter(|holding| holding.ended.is_none()).map(|holding| holding.station).collect()
    }

    /// Whether `victim` may be told at `at` that `ip` is at `mac`.
    pub fn admits(&mut self, at: Instant, victim: usize, ip: Ipv4Addr, mac: MacAddress) -> bool {
        let mut is_late = false;
        for holding in self.holdings.get(&ip).into_iter().flatten() {
            if holding.from > at || holding.mac.is_some_and(|bound| bound != mac) {
                continue;
            }
            match holding.ended {
                None => return true,
                Some((until, _)) if at <= until + WINDOW + SLACK => return true,
                Some((_, End::Honest)) => {}
                Some((until, End::Lingering)) => {
                    if at <= (until + KEY_GOOD_FOR + SLACK).max(self.faults_stop) {
                        return true;
                    }
                    is_late = true;
                }
            }
        }
        is_late && at <= *self.late.entry((victim, ip)).or_insert(at) + LEARNS_WITHIN
    }
}
