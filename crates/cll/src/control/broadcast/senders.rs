//! What is remembered of senders of group frames: who they are, which run of theirs it is, what of it was delivered last.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bump::{Instant, time};
use identity::Verified;
use identity::certificate::HostCertificate;
use wire::cll::GroupFrame;
use wire::cll::broadcast::{INCARNATION_LEN, Part, Stamp};
use wire::{EtherType, MacAddress};

use crate::limits::{GROUP_PARTS_WAIT_MAX, GROUP_SENDERS_MAX};
use crate::merkle::{Batches, Way};
use crate::origin::Origin;

/// A sender whose announcement was believed.
pub(super) struct Sender {
    pub(super) certificate: Arc<Verified<HostCertificate>>,
    pub(super) origin: Origin,
    pub(super) incarnation: [u8; INCARNATION_LEN],
    /// Time and counter of the newest frame that was taken; nothing that is not newer is taken again.
    pub(super) last: (u64, u32),
    /// The batches whose root was found right, so that a batch costs one check.
    pub(super) batches: Batches,
    /// Frames of the wire behind a check that is under way, in the order in which they came.
    pub(super) waiting: VecDeque<Vec<u8>>,
    /// The check that the first of them waits for.
    pub(super) check: Option<Check>,
    pub(super) parts: Option<Parts>,
    pub(super) proved: Instant,
    last_used: Instant,
}

/// A signature that is being checked.
pub(super) struct Check {
    /// Among all checks.
    pub(super) number: u64,
    /// From the first frame that waits to the root that is signed.
    pub(super) way: Box<Way>,
}

impl Sender {
    pub(super) fn new(now: Instant, certificate: Verified<HostCertificate>, stamp: Stamp) -> Sender {
        Sender {
            origin: Origin::of(&certificate),
            certificate: Arc::new(certificate),
            incarnation: stamp.incarnation,
            last: (stamp.time_ms, stamp.counter),
            batches: Batches::default(),
            waiting: VecDeque::new(),
            check: None,
            parts: None,
            proved: now,
            last_used: now,
        }
    }

    /// The same run of the sender proved itself again, perhaps with a renewed certificate.
    pub(super) fn renew(&mut self, now: Instant, certificate: Verified<HostCertificate>) {
        self.origin = Origin::of(&certificate);
        self.certificate = Arc::new(certificate);
        (self.proved, self.last_used) = (now, now);
    }

    pub(super) fn is_newer(&self, stamp: &Stamp) -> bool {
        (stamp.time_ms, stamp.counter) > self.last
    }

    /// Notes an authentic frame: its stamp is spent, whatever else may be wrong with it.
    pub(super) fn take_stamp(&mut self, now: Instant, stamp: &Stamp) {
        self.last = (stamp.time_ms, stamp.counter);
        self.last_used = now;
    }
}

/// The first parts of a frame, all authentic.
pub(super) struct Parts {
    destination: MacAddress,
    ethertype: EtherType,
    next: (u64, u32),
    next_part: Part,
    pub(super) payload: Vec<u8>,
    /// The frames of the wire that brought them.
    pub(super) frames: Vec<Vec<u8>>,
    until: Instant,
}

impl Parts {
    /// The first part of a frame.
    pub(super) fn begin(now: Instant, destination: MacAddress, message: &GroupFrame<'_>, frame: &[u8]) -> Parts {
        Parts {
            destination,
            ethertype: message.ethertype,
            next: next(&message.head.stamp),
            next_part: Part { number: 1, of: message.part.of },
            payload: message.payload.to_vec(),
            frames: vec![frame.to_vec()],
            until: now + GROUP_PARTS_WAIT_MAX,
        }
    }

    /// Appends `message` if it is the next part; false if it is not.
    pub(super) fn append(&mut self, destination: MacAddress, message: &GroupFrame<'_>) -> bool {
        let stamp = (message.head.stamp.time_ms, message.head.stamp.counter);
        let fits = (destination, message.ethertype, message.part, stamp)
            == (self.destination, self.ethertype, self.next_part, self.next);
        if fits {
            self.payload.extend_from_slice(message.payload);
            self.next = next(&message.head.stamp);
            self.next_part.number += 1;
        }
        fits
    }

    /// Whether its last part is there.
    pub(super) fn is_whole(&self) -> bool {
        self.next_part.number == self.next_part.of
    }
}

/// The stamp of the part behind this one.
fn next(stamp: &Stamp) -> (u64, u32) {
    (stamp.time_ms, stamp.counter.wrapping_add(1))
}

/// The table.
pub(super) struct Senders {
    by_mac: BTreeMap<MacAddress, Sender>,
    /// No parts have waited for long enough before this.
    parts_due: Option<Instant>,
    /// Since when nothing was forgotten: what is older may have been delivered.
    pub(super) complete_since: Instant,
}

impl Senders {
    pub(super) fn new(now: Instant) -> Senders {
        Senders { by_mac: BTreeMap::new(), parts_due: None, complete_since: now }
    }

    pub(super) fn len(&self) -> usize {
        self.by_mac.len()
    }

    /// Senders of which a signature is being checked. Asked once for each check, of which there are few in a second.
    pub(super) fn in_check(&self) -> usize {
        self.by_mac.values().filter(|sender| sender.check.is_some()).count()
    }

    pub(super) fn get(&self, mac: MacAddress) -> Option<&Sender> {
        self.by_mac.get(&mac)
    }

    pub(super) fn get_mut(&mut self, mac: MacAddress) -> Option<&mut Sender> {
        self.by_mac.get_mut(&mac)
    }

    /// Enters a sender; returns those whose frames are to be dropped: the one it replaces, or the one that made room.
    pub(super) fn insert(&mut self, now: Instant, mac: MacAddress, sender: Sender) -> Option<Sender> {
        let full = self.by_mac.len() >= GROUP_SENDERS_MAX && !self.by_mac.contains_key(&mac);
        let unused = full.then(|| self.by_mac.iter().min_by_key(|(_, one)| one.last_used).map(|(mac, _)| *mac));
        let evicted = unused.flatten().and_then(|mac| self.remove(now, mac));
        self.by_mac.insert(mac, sender).or(evicted)
    }

    /// Forgets a sender, and with it what of it was delivered.
    pub(super) fn remove(&mut self, now: Instant, mac: MacAddress) -> Option<Sender> {
        let removed = self.by_mac.remove(&mac)?;
        self.complete_since = now;
        Some(removed)
    }

    pub(super) fn with_certificate(&self, is_wanted: impl Fn(&HostCertificate) -> bool) -> Vec<MacAddress> {
        self.by_mac.iter().filter(|(_, sender)| is_wanted(&sender.certificate)).map(|(mac, _)| *mac).collect()
    }

    /// When the first parts of some frame have waited for long enough.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.parts_due
    }

    /// Keeps the first parts of a frame of this sender.
    pub(super) fn keep_parts(&mut self, mac: MacAddress, parts: Parts) {
        if let Some(sender) = self.by_mac.get_mut(&mac) {
            self.parts_due = time::earlier(self.parts_due, Some(parts.until));
            sender.parts = Some(parts);
        }
    }

    /// Takes out parts whose rest has not come.
    pub(super) fn take_old_parts(&mut self, now: Instant) -> Vec<Parts> {
        if self.parts_due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        let senders = self.by_mac.values_mut();
        let old = senders.filter_map(|sender| sender.parts.take_if(|parts| parts.until <= now)).collect();
        let waits = self.by_mac.values().filter_map(|sender| sender.parts.as_ref().map(|parts| parts.until));
        self.parts_due = waits.min();
        old
    }
}
