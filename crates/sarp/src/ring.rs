//! The ring of public keys (section 3.4), and what is remembered of each sender.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{Instant, Torn};
use identity::Verified;
use identity::distributor::HostRecord;
use wire::MacAddress;

use crate::clock::Stamp;
use crate::limits::{RING_MAX, TOLD_JUST_NOW, UNKNOWN_MAX, UNKNOWN_TIME};

/// A key in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReport {
    /// Whose.
    pub ip: Ipv4Addr,
    /// The only hardware address that may speak for it, if the site binds one.
    pub mac: Option<MacAddress>,
    /// How long ago a distributor vouched for it.
    pub fetched_ago: Duration,
    /// Whether a message of its owner has been verified.
    pub heard: bool,
}

/// A key that a distributor vouched for.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) record: Verified<HostRecord>,
    pub(crate) fetched_at: Instant,
    /// The newest stamp that verified; what is not newer is a replay.
    pub(crate) last_stamp: Stamp,
    /// When this key came, by the S-ARP clock. What was said before cannot be told from a replay, unless it answers a question.
    pub(crate) known_since: Stamp,
    /// Which hardware address of it the stack was told last, and when.
    told: Option<(MacAddress, Instant)>,
    used_at: Instant,
}

/// What a key reply changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Learnt {
    /// There was no key.
    New,
    /// It is the key that was there.
    Same,
    /// There was another key.
    Changed,
}

/// The keys, and the addresses that have none.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    entries: BTreeMap<Ipv4Addr, Entry>,
    unknown_until: BTreeMap<Ipv4Addr, Instant>,
}

impl Ring {
    pub(crate) fn get(&mut self, now: Instant, ip: Ipv4Addr) -> Option<&mut Entry> {
        let entry = self.entries.get_mut(&ip)?;
        entry.used_at = now;
        Some(entry)
    }

    pub(crate) fn contains(&self, ip: Ipv4Addr) -> bool {
        self.entries.contains_key(&ip)
    }

    /// The stack was told that `ip` has the hardware address `mac`.
    pub(crate) fn note_told(&mut self, now: Instant, ip: Ipv4Addr, mac: MacAddress) {
        if let Some(entry) = self.entries.get_mut(&ip) {
            entry.told = Some((mac, now));
        }
    }

    /// Whether a message under the key of `ip` has proved that this is its hardware address.
    pub(crate) fn has_proved(&self, ip: Ipv4Addr, mac: MacAddress) -> bool {
        self.entries.get(&ip).and_then(|entry| entry.told).is_some_and(|(told, _)| told == mac)
    }

    /// Whether the stack was told so just now.
    pub(crate) fn was_just_told(&self, now: Instant, ip: Ipv4Addr, mac: MacAddress) -> bool {
        let told = self.entries.get(&ip).and_then(|entry| entry.told);
        told.is_some_and(|(told, at)| told == mac && now.since(at) < TOLD_JUST_NOW)
    }

    /// Whether a distributor has just said that it knows no key for `ip`.
    pub(crate) fn is_unknown(&self, now: Instant, ip: Ipv4Addr) -> bool {
        self.unknown_until.get(&ip).is_some_and(|&until| now < until)
    }

    pub(crate) fn learn(&mut self, now: Instant, clock: Stamp, record: Verified<HostRecord>) -> Learnt {
        let ip = record.address();
        self.unknown_until.remove(&ip);
        if let Some(entry) = self.entries.get_mut(&ip) {
            let same = entry.record.same_key(&record);
            (entry.record, entry.fetched_at) = (record, now);
            if same {
                return Learnt::Same;
            }
            entry.known_since = clock;
            return Learnt::Changed;
        }
        self.make_room();
        let (last_stamp, known_since) = (Stamp::default(), clock);
        self.entries.insert(ip, Entry { record, fetched_at: now, last_stamp, known_since, told: None, used_at: now });
        Learnt::New
    }

    /// Forgets the key of `ip`, which a distributor does not vouch for; whether there was one.
    pub(crate) fn forget(&mut self, now: Instant, ip: Ipv4Addr) -> bool {
        let was_known = self.entries.remove(&ip).is_some();
        if self.unknown_until.len() >= UNKNOWN_MAX {
            self.unknown_until.retain(|_, until| now < *until);
        }
        if self.unknown_until.len() < UNKNOWN_MAX {
            self.unknown_until.insert(ip, now + UNKNOWN_TIME);
        }
        was_known
    }

    /// Forgets the keys of those whose entries may be half done: whom the stack was told under
    /// these hardware addresses.
    pub(crate) fn forget_torn(&mut self, torn: Torn) {
        let is_torn = |entry: &Entry| match entry.told {
            Some((mac, _)) => torn.includes(mac.0),
            None => torn == Torn::Anything,
        };
        self.entries.retain(|_, entry| !is_torn(entry));
    }

    /// The distributor's time has moved to `stamp`. If it went `back`, every sender follows and stamps begin again; what nobody
    /// asked for counts from now on in any case, since the time may have been there before.
    pub(crate) fn begin_stamps(&mut self, stamp: Stamp, back: bool) {
        for entry in self.entries.values_mut() {
            entry.known_since = stamp;
            if back {
                entry.last_stamp = Stamp::default();
            }
        }
    }

    pub(crate) fn report(&self, now: Instant) -> Vec<KeyReport> {
        let report = |(ip, entry): (&Ipv4Addr, &Entry)| KeyReport {
            ip: *ip,
            mac: entry.record.mac(),
            fetched_ago: now.since(entry.fetched_at),
            heard: entry.last_stamp != Stamp::default(),
        };
        self.entries.iter().map(report).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn make_room(&mut self) {
        if self.entries.len() < RING_MAX {
            return;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used_at).map(|(ip, _)| *ip);
        if let Some(ip) = oldest {
            self.entries.remove(&ip);
        }
    }
}
