//! Whether a client's frame is new.
//!
//! The paper's rule is a UNIX timestamp with a counter (section 6), which a host whose clock says 1970 cannot keep, though it needs
//! its lease to ask anybody for the time. So a frame is new in one of two ways: it repeats a nonce that this server gave to this
//! client a moment ago, or its stamp is near the server's own clock. Either way it must be newer than all of this client before.
//! Nonces are not kept: each is a moment and a tag over it.

use std::collections::BTreeMap;
use std::time::Duration;

use bump::{Instant, Now};
use identity::site_key::SiteKey;
use subtle::ConstantTimeEq;
use wire::cll::NONCE_LEN;
use wire::cll::dhcp::{ClientId, Stamp};

use crate::limits::{CLIENTS_MAX, SERVER_NONCE_GOOD_FOR};

/// Keeps the tag apart from other uses of a key of this form.
const LABEL: &[u8] = b"cll dhcp nonce";
/// Bytes of a nonce that say when it was made: milliseconds since boot.
const MOMENT_LEN: usize = 6;

/// What was heard of a client last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// The newest nonce that it repeated, and the newest stamp beside that.
    repeated: (u64, Stamp),
    /// The newest stamp in all.
    stamp: Stamp,
    heard_at: Instant,
}

/// What a server needs to tell new frames from recordings.
#[derive(Debug)]
pub(super) struct Freshness {
    key: SiteKey,
    tolerance: Duration,
    clients: BTreeMap<ClientId, Seen>,
    /// Stands for all clients that are not in the table: whatever they may have said before.
    floor: Seen,
}

impl Freshness {
    /// `secret` is fresh; stamps from before `now` may be recordings that were heard before this program started.
    pub(super) fn new(now: Now, secret: [u8; 32], tolerance: Duration) -> Freshness {
        let unix_s = now.trusted_unix_ms().map_or(u64::MAX, |unix_ms| unix_ms / 1000);
        let floor = Seen { stamp: Stamp { unix_s, counter: u32::MAX }, ..Seen::default() };
        Freshness { key: SiteKey::from_bytes(secret), tolerance, clients: BTreeMap::new(), floor }
    }

    /// A nonce for this client, to be repeated soon.
    pub(super) fn nonce(&self, now: Instant, client: ClientId) -> [u8; NONCE_LEN] {
        let moment = now.as_nanos() / 1_000_000;
        let mut nonce = [0; NONCE_LEN];
        nonce[..MOMENT_LEN].copy_from_slice(&moment.to_be_bytes()[8 - MOMENT_LEN..]);
        let tag = self.tag(&nonce[..MOMENT_LEN], client);
        nonce[MOMENT_LEN..].copy_from_slice(&tag[..NONCE_LEN - MOMENT_LEN]);
        nonce
    }

    fn tag(&self, moment: &[u8], client: ClientId) -> [u8; 16] {
        self.key.tag(LABEL, &[&client.emit(), moment])
    }

    /// When the nonce was made, in milliseconds since boot, if this server made it for this client a moment ago.
    fn moment_of(&self, now: Instant, client: ClientId, nonce: &[u8; NONCE_LEN]) -> Option<u64> {
        let mut moment = [0; 8];
        moment[8 - MOMENT_LEN..].copy_from_slice(&nonce[..MOMENT_LEN]);
        let moment = u64::from_be_bytes(moment);
        let age = (now.as_nanos() / 1_000_000).checked_sub(moment)?;
        let tag = self.tag(&nonce[..MOMENT_LEN], client);
        let is_ours = bool::from(tag[..NONCE_LEN - MOMENT_LEN].ct_eq(&nonce[MOMENT_LEN..]));
        (is_ours && Duration::from_millis(age) <= SERVER_NONCE_GOOD_FOR).then_some(moment)
    }

    /// Whether a frame of this client is new; from then on it is old.
    pub(super) fn take(&mut self, now: Now, client: ClientId, stamp: Stamp, nonce: &[u8; NONCE_LEN]) -> bool {
        let moment = self.moment_of(now.since_boot, client, nonce);
        let seen = self.clients.get(&client).copied().unwrap_or(self.floor);
        let by_nonce = moment.is_some_and(|moment| (moment, stamp) > seen.repeated);
        let by_stamp = self.is_near(now, stamp) && stamp > seen.stamp;
        if !(by_nonce || by_stamp) {
            return false;
        }
        self.make_room(client);
        let repeated = moment.map_or(seen.repeated, |moment| seen.repeated.max((moment, stamp)));
        // A clock that was wrong ahead only makes this client repeat nonces from now on.
        let stamp = seen.stamp.max(stamp);
        self.clients.insert(client, Seen { repeated, stamp, heard_at: now.since_boot });
        true
    }

    fn is_near(&self, now: Now, stamp: Stamp) -> bool {
        let ours = now.trusted_unix_ms().map(|unix_ms| unix_ms / 1000);
        ours.is_some_and(|ours| ours.abs_diff(stamp.unix_s) <= self.tolerance.as_secs())
    }

    /// Forgets who was heard longest ago. Nothing as old as that client's last frame is new any more, from whomever.
    fn make_room(&mut self, newcomer: ClientId) {
        if self.clients.len() < CLIENTS_MAX || self.clients.contains_key(&newcomer) {
            return;
        }
        let oldest = self.clients.iter().min_by_key(|(_, seen)| seen.heard_at).map(|(client, _)| *client);
        if let Some(gone) = oldest.and_then(|client| self.clients.remove(&client)) {
            self.floor.repeated = self.floor.repeated.max(gone.repeated);
            self.floor.stamp = self.floor.stamp.max(gone.stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use bump::{ClockTrust, Wall};
    use wire::MacAddress;

    use super::*;

    const CLIENT: ClientId = ClientId { mac: MacAddress([2, 0, 0, 0, 0, 1]), expires_unix_s: 9 };
    const NONE: [u8; NONCE_LEN] = [0; NONCE_LEN];
    const START_UNIX_S: u64 = 1_800_000_000;

    fn at(second: u64) -> Now {
        let wall = Wall { unix_ms: (START_UNIX_S + second) * 1000, trust: ClockTrust::Plausible };
        Now { since_boot: Instant::from_millis(1_000_000 + second * 1000), wall: Some(wall) }
    }

    fn stamp(second: i64, counter: u32) -> Stamp {
        Stamp { unix_s: START_UNIX_S.saturating_add_signed(second), counter }
    }

    fn server() -> Freshness {
        Freshness::new(at(0), [7; 32], Duration::from_secs(120))
    }

    #[test]
    fn a_stamp_near_the_clock_is_good_once_and_only_later_ones_after_it() {
        let mut server = server();
        assert!(!server.take(at(5), CLIENT, stamp(0, 0), &NONE), "from before the start");
        assert!(server.take(at(5), CLIENT, stamp(4, 1), &NONE));
        for old in [stamp(4, 1), stamp(4, 0), stamp(3, 9)] {
            assert!(!server.take(at(5), CLIENT, old, &NONE), "{old:?}");
        }
        assert!(server.take(at(5), CLIENT, stamp(4, 2), &NONE) && server.take(at(5), CLIENT, stamp(125, 0), &NONE));
        assert!(!server.take(at(5), CLIENT, stamp(126, 0), &NONE), "too far ahead");
        assert!(!server.take(at(500), CLIENT, stamp(379, 0), &NONE), "too far behind");
    }

    #[test]
    fn a_nonce_stands_in_for_a_clock_that_is_wrong() {
        let mut server = server();
        let in_1970 = |counter: u32| Stamp { unix_s: 60, counter };
        assert!(!server.take(at(5), CLIENT, in_1970(0), &NONE));
        let nonce = server.nonce(at(5).since_boot, CLIENT);
        assert!(server.take(at(6), CLIENT, in_1970(1), &nonce));
        assert!(!server.take(at(6), CLIENT, in_1970(1), &nonce), "once");
        assert!(server.take(at(6), CLIENT, in_1970(2), &nonce), "a repetition has a later stamp");
        let newer = server.nonce(at(7).since_boot, CLIENT);
        assert!(server.take(at(7), CLIENT, in_1970(0), &newer), "after a restart of the client its count begins anew");
        assert!(!server.take(at(8), CLIENT, in_1970(9), &nonce), "an older nonce has had its time");
        let late = at(7 + SERVER_NONCE_GOOD_FOR.as_secs() + 1);
        assert!(!server.take(late, CLIENT, in_1970(9), &newer));
    }

    #[test]
    fn a_nonce_is_for_one_client_of_one_server() {
        let mut server = server();
        let nonce = server.nonce(at(5).since_boot, CLIENT);
        let other = ClientId { expires_unix_s: 10, ..CLIENT };
        assert!(!server.take(at(5), other, Stamp::default(), &nonce));
        let mut forged = nonce;
        forged[15] ^= 1;
        assert!(!server.take(at(5), CLIENT, Stamp::default(), &forged));
        let mut restarted = Freshness::new(at(5), [8; 32], Duration::from_secs(120));
        assert!(!restarted.take(at(5), CLIENT, Stamp::default(), &nonce));
    }

    #[test]
    fn who_is_forgotten_cannot_be_replayed() {
        let mut server = server();
        let client = |number: usize| ClientId { expires_unix_s: number as u64, ..CLIENT };
        let nonce = server.nonce(at(1).since_boot, client(0));
        assert!(server.take(at(1), client(0), stamp(1, 0), &nonce));
        for number in 1..=CLIENTS_MAX {
            assert!(server.take(at(2), client(number), stamp(2, 0), &NONE));
        }
        assert_eq!(server.clients.len(), CLIENTS_MAX);
        assert!(!server.clients.contains_key(&client(0)));
        assert!(!server.take(at(3), client(0), stamp(1, 0), &nonce), "neither by stamp nor by nonce");
        assert!(server.take(at(3), client(0), stamp(3, 0), &NONE));
    }
}
