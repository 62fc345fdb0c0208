//! Is a handshake request new? (paper, section 5.2, "Safeguarding against Replay Attacks")
//!
//! The paper compares timestamps: a request must be within the clock tolerance and newer than the last one of its sender.
//! That refuses a host whose clock is wrong and believes a replay after this host restarted, because then nothing is
//! remembered. So whoever cannot be judged by timestamp is challenged: it repeats its request with a cookie that only
//! this host can make and only since it started. No clock is needed for that.

use std::collections::BTreeMap;
use std::time::Duration;

use bump::{Generator, Instant, Now};
use identity::site_key::SiteKey;
use shield::ByRecency;
use wire::MacAddress;
use wire::cll::{COOKIE_LEN, NONCE_LEN};

use super::core::by_recency;
use crate::limits::{CHALLENGES_OF_PROVED_PER_SECOND, CHALLENGES_PER_SECOND, COOKIE_EPOCH, STAMPS_MAX};

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// It is new.
    Fresh,
    /// It was accepted before.
    Replay,
    /// Its sender must prove it.
    Unknown,
}

/// The parts of a request that tell its age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp<'a> {
    pub(crate) sender: MacAddress,
    pub(crate) timestamp_ms: u64,
    pub(crate) nonce: &'a [u8; NONCE_LEN],
    pub(crate) cookie: &'a [u8; COOKIE_LEN],
}

/// The newest stamp of a verified sender. Its nonce tells a replay, or a late copy of what was signed anew since, from
/// another request of the same moment, which is all that a host without a clock ever sends.
#[derive(Clone, Copy, Debug)]
struct Last {
    timestamp_ms: u64,
    nonce: [u8; NONCE_LEN],
}

/// Last stamps of verified senders, and the secret of the cookies.
#[derive(Debug)]
pub(crate) struct Freshness {
    stamps: BTreeMap<MacAddress, Last>,
    secret: SiteKey,
    started_ms: Option<u64>,
    tolerance: Duration,
    /// Challenges: whoever was heard lately, by what its clock showed, has its own.
    pub(crate) challenges: ByRecency,
}

impl Freshness {
    pub(crate) fn new(random: &mut Generator, now: Now, tolerance: Duration, heard: &[(MacAddress, u64)]) -> Freshness {
        let mut challenges = by_recency(CHALLENGES_OF_PROVED_PER_SECOND, CHALLENGES_PER_SECOND);
        heard.iter().for_each(|&(mac, unix_ms)| challenges.hear(mac, unix_ms));
        Freshness {
            stamps: BTreeMap::new(),
            secret: SiteKey::from_bytes(random.bytes()),
            started_ms: now.trusted_unix_ms(),
            tolerance,
            challenges,
        }
    }

    /// Judges a request that nobody has verified yet.
    pub(crate) fn judge(&self, now: Now, stamp: &Stamp<'_>) -> Age {
        let last = self.stamps.get(&stamp.sender);
        if last.is_some_and(|last| last.nonce == *stamp.nonce && stamp.timestamp_ms <= last.timestamp_ms) {
            return Age::Replay;
        }
        if *stamp.cookie != [0; COOKIE_LEN] {
            return if self.cookie_fits(now.since_boot, stamp) { Age::Fresh } else { Age::Unknown };
        }
        let newer_than_last = last.is_some_and(|last| stamp.timestamp_ms > last.timestamp_ms);
        let known = newer_than_last || (last.is_none() && self.is_after_start(stamp.timestamp_ms));
        if known && self.is_within_tolerance(now, stamp.timestamp_ms) { Age::Fresh } else { Age::Unknown }
    }

    /// A request of an unknown sender can only be a replay from before our start if it is not clearly newer than that.
    fn is_after_start(&self, timestamp_ms: u64) -> bool {
        self.started_ms.is_some_and(|started| timestamp_ms > started.saturating_add(self.tolerance_ms()))
    }

    fn is_within_tolerance(&self, now: Now, timestamp_ms: u64) -> bool {
        now.trusted_unix_ms().is_none_or(|wall| wall.abs_diff(timestamp_ms) <= self.tolerance_ms())
    }

    fn tolerance_ms(&self) -> u64 {
        u64::try_from(self.tolerance.as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a request or reply of this sender was verified since our start.
    pub(crate) fn remembers(&self, sender: MacAddress) -> bool {
        self.stamps.contains_key(&sender)
    }

    /// Remembers the stamp of a request or reply that was verified.
    pub(crate) fn remember(&mut self, sender: MacAddress, timestamp_ms: u64, nonce: [u8; NONCE_LEN]) {
        self.challenges.hear(sender, timestamp_ms);
        if self.stamps.len() >= STAMPS_MAX && !self.stamps.contains_key(&sender) {
            // Whoever is forgotten is challenged next time; forgetting the oldest stamp costs the least.
            let oldest = self.stamps.iter().min_by_key(|(_, last)| last.timestamp_ms).map(|(mac, _)| *mac);
            oldest.and_then(|mac| self.stamps.remove(&mac));
        }
        let new = Last { timestamp_ms, nonce };
        let last = self.stamps.entry(sender).or_insert(new);
        if last.timestamp_ms <= timestamp_ms {
            *last = new;
        }
    }

    /// The cookie that `sender` must repeat for this nonce. Stateless, so that a flood of requests costs no memory.
    pub(crate) fn cookie(&self, now: Instant, sender: MacAddress, nonce: &[u8; NONCE_LEN]) -> [u8; COOKIE_LEN] {
        self.cookie_of(epoch(now), sender, nonce)
    }

    fn cookie_of(&self, epoch: u64, sender: MacAddress, nonce: &[u8; NONCE_LEN]) -> [u8; COOKIE_LEN] {
        self.secret.tag(b"cookie", &[&epoch.to_be_bytes(), &sender.0, nonce])
    }

    fn cookie_fits(&self, now: Instant, stamp: &Stamp<'_>) -> bool {
        let current = epoch(now);
        [current, current.wrapping_sub(1)].iter().any(|epoch| {
            let parts: [&[u8]; 3] = [&epoch.to_be_bytes(), &stamp.sender.0, stamp.nonce];
            self.secret.verify(b"cookie", &parts, stamp.cookie)
        })
    }
}

fn epoch(now: Instant) -> u64 {
    now.as_nanos() / u64::try_from(COOKIE_EPOCH.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use bump::{ClockTrust, Wall};

    use super::*;

    const SENDER: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const NONCE: [u8; NONCE_LEN] = [7; NONCE_LEN];
    const NONE: [u8; COOKIE_LEN] = [0; COOKIE_LEN];

    fn at(seconds: u64) -> Now {
        let wall = Wall { unix_ms: 1_700_000_000_000 + seconds * 1000, trust: ClockTrust::Plausible };
        Now { since_boot: Instant::from_millis(seconds * 1000), wall: Some(wall) }
    }

    fn stamp(seconds: u64) -> Stamp<'static> {
        let timestamp_ms = 1_700_000_000_000 + seconds * 1000;
        Stamp { sender: SENDER, timestamp_ms, nonce: &NONCE, cookie: &NONE }
    }

    fn started_at(seconds: u64) -> Freshness {
        Freshness::new(&mut Generator::from_seed([1; 32]), at(seconds), Duration::from_secs(120), &[])
    }

    #[test]
    fn after_a_restart_an_old_request_must_be_proved() {
        let freshness = started_at(1000);
        assert_eq!(freshness.judge(at(1001), &stamp(990)), Age::Unknown);
        assert_eq!(freshness.judge(at(1060), &stamp(1060)), Age::Unknown, "a clock ahead by 2 min could be older");
        assert_eq!(freshness.judge(at(1130), &stamp(1130)), Age::Fresh);
    }

    #[test]
    fn known_senders_are_judged_by_their_last_stamp() {
        let mut freshness = started_at(1000);
        freshness.remember(SENDER, stamp(1010).timestamp_ms, NONCE);
        assert_eq!(freshness.judge(at(1020), &stamp(1010)), Age::Replay);
        let same_moment = Stamp { nonce: &[8; NONCE_LEN], ..stamp(1010) };
        assert_eq!(freshness.judge(at(1020), &same_moment), Age::Unknown, "another request of the same moment");
        assert_eq!(freshness.judge(at(1020), &stamp(1011)), Age::Fresh);
        assert_eq!(freshness.judge(at(1020), &stamp(1009)), Age::Replay, "a late copy of the same request");
        let set_back = Stamp { nonce: &[8; NONCE_LEN], ..stamp(1009) };
        assert_eq!(freshness.judge(at(1020), &set_back), Age::Unknown, "its clock may have been set back");
        assert_eq!(freshness.judge(at(1020), &stamp(1300)), Age::Unknown, "its clock is far ahead");
    }

    #[test]
    fn a_cookie_proves_a_request_whatever_the_clocks_say() {
        let freshness = started_at(1000);
        let cookie = freshness.cookie(at(1001).since_boot, SENDER, &NONCE);
        let proved = Stamp { timestamp_ms: 12, cookie: &cookie, ..stamp(0) };
        assert_eq!(freshness.judge(at(1001), &proved), Age::Fresh);
        assert_eq!(freshness.judge(at(1001 + 61), &proved), Age::Unknown, "cookies expire");
        let other = Stamp { sender: MacAddress([2, 0, 0, 0, 0, 2]), ..proved };
        assert_eq!(freshness.judge(at(1001), &other), Age::Unknown);
        assert_eq!(started_at(2000).judge(at(1001), &Stamp { nonce: &[8; 16], ..proved }), Age::Unknown);
    }

    #[test]
    fn without_a_clock_of_its_own_a_host_challenges_strangers_only() {
        let mut freshness = Freshness::new(
            &mut Generator::from_seed([1; 32]),
            Now { since_boot: Instant::default(), wall: None },
            Duration::from_secs(120),
            &[],
        );
        let blind = Now { since_boot: Instant::from_millis(5), wall: None };
        assert_eq!(freshness.judge(blind, &stamp(1)), Age::Unknown);
        freshness.remember(SENDER, stamp(1).timestamp_ms, NONCE);
        assert_eq!(freshness.judge(blind, &stamp(2)), Age::Fresh);
    }
}
