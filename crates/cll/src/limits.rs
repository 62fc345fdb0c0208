//! Every limit of the link layer, with its unit, its reason, and the relations between them.

use std::time::Duration;

/// Frames under one key before a rollover replaces it. RFC 9001, section 6.6 and appendix B, allow 2^28
/// AES-GCM packets of up to 2^11 bytes.
pub const REKEY_AFTER_FRAMES: u32 = 1 << 28;
/// The first sequence number is drawn below this, so that it does not tell how much was sent (paper, section 5.3).
pub const SEQUENCE_START_BELOW: u32 = 1 << 31;
/// The last sequence number that is ever used; a key is dead beyond it.
pub const SEQUENCE_LAST: u32 = u32::MAX - 1;
const _: () = assert!(
    SEQUENCE_LAST - SEQUENCE_START_BELOW > 2 * REKEY_AFTER_FRAMES,
    "wherever a counter starts, the rollover that replaces it has as many frames again to finish"
);

/// Shortest lifetime of an association, whatever both sides claim (paper, section 5.2).
pub const LIFETIME_MIN: Duration = Duration::from_secs(15 * 60);
/// Lifetime claimed by default (paper, Table 1: 30 minutes).
pub const LIFETIME_DEFAULT: Duration = Duration::from_secs(30 * 60);
/// An association that carries nothing for this long ends by default.
pub const IDLE_DEFAULT: Duration = Duration::from_secs(15 * 60);
/// The shortest time that may be configured for that. Shorter ones would have associations end between two frames of
/// quiet hosts, and each end costs a handshake.
pub const IDLE_MIN: Duration = Duration::from_secs(60);
const _: () = assert!(
    IDLE_MIN.as_secs() > SILENCE_MAX.as_secs() + HANDSHAKE_GIVE_UP.as_secs(),
    "a peer that is gone is named as silent, not as idle"
);
/// How far a handshake's timestamp may be from this host's clock before the sender is challenged (paper: 2 to 5
/// minutes).
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(2 * 60);
const _: () = assert!(
    CLOCK_TOLERANCE.as_secs() < LIFETIME_MIN.as_secs(),
    "a request must be stale before the association that it made can have ended (paper, section 5.2)"
);

/// First wait for an answer to a handshake; it doubles up to [`RETRANSMIT_MAX`].
pub const RETRANSMIT_FIRST: Duration = Duration::from_secs(1);
/// Longest wait for an answer to a handshake.
pub const RETRANSMIT_MAX: Duration = Duration::from_secs(8);
/// After this a handshake is given up and the frames held for it are dropped.
pub const HANDSHAKE_GIVE_UP: Duration = Duration::from_secs(16);
/// For this long after its own transmission the side with the higher address ignores the other's request.
pub const YIELD_TIME: Duration = Duration::from_secs(1);
/// Associations made within this time of each other count as simultaneous.
pub const SIMULTANEOUS: Duration = Duration::from_secs(5);

/// Payload was sent but nothing opened for this long: a new handshake is started beside the association.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Payload was opened but nothing sent for this long: an empty frame tells the peer that we live.
pub const KEEPALIVE_AFTER: Duration = Duration::from_secs(4);
const _: () = assert!(
    shield::limits::FAR_AHEAD_FRAMES as u64 / SILENCE_MAX.as_secs() > 1_600_000,
    "whoever sends faster than any card and goes unheard is asked for a new handshake before he is too far ahead"
);
/// How often lanes report activity and control looks over its peers.
pub const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
const _: () = assert!(
    KEEPALIVE_AFTER.as_secs() + 3 * SWEEP_INTERVAL.as_secs() < SILENCE_MAX.as_secs(),
    "traffic in one direction never looks like a dead peer, even when a report comes a sweep late"
);

/// A candidate that no frame confirms is forgotten after this.
pub const CANDIDATE_LIFETIME: Duration = Duration::from_secs(30);
/// A replaced association still opens frames for this long.
pub const OUTGOING_GRACE: Duration = Duration::from_secs(30);
/// Replaced associations of one peer that still open frames; the oldest goes for a new one.
pub const LEAVING_PER_PEER_MAX: usize = 2;
/// A rollover with a peer begins no sooner than this after the one before, whoever asks.
pub const ROLLOVER_INTERVAL_MIN: Duration = Duration::from_secs(1);
/// Peers whose last rollover is remembered, each for [`HANDSHAKE_GIVE_UP`]. After a power failure all associations of a very
/// large site are of one age; they are through in a fifth of [`LIFETIME_MIN`].
pub const ROLLOVERS_OPEN_MAX: usize = 1024;
const _: () = assert!(
    (PEERS_MAX / ROLLOVERS_OPEN_MAX) as u64 * HANDSHAKE_GIVE_UP.as_secs() < LIFETIME_MIN.as_secs() / 5,
    "associations that grew old together are renewed before they end"
);
/// The stack has this long to answer the ARP request of a verified handshake.
pub const STACK_ANSWER_MAX: Duration = Duration::from_secs(2);
/// An answered request is recognised as a duplicate for this long.
pub const ANSWER_CACHED: Duration = Duration::from_secs(30);
/// A cached reply is not repeated sooner than this.
pub const REPLY_REPEAT_MIN: Duration = Duration::from_millis(200);
/// A challenge's cookie is good for one to two of these.
pub const COOKIE_EPOCH: Duration = Duration::from_secs(15);
const _: () = assert!(
    ANSWER_CACHED.as_secs() >= 2 * COOKIE_EPOCH.as_secs(),
    "while its cookie is good, a repeated request is known as a duplicate and never accepted a second time"
);

/// Peers with an association. A peer needs a certificate, so only a very large site reaches this.
pub const PEERS_MAX: usize = 4096;
/// Candidates of one peer.
pub const CANDIDATES_PER_PEER_MAX: usize = 4;
/// Handshakes that this host has open at a time; a sweep of a /24 by its own stack fits.
pub const HANDSHAKES_OPEN_MAX: usize = 256;
/// Requests of others that are being answered or remembered.
pub const ANSWERS_MAX: usize = 1024;
/// Senders whose last timestamp is remembered.
pub const STAMPS_MAX: usize = 8192;
/// Key pairs prepared ahead, so that a handshake does not wait for one (paper, section 7.2).
pub const KEY_PAIRS_AHEAD: usize = 16;
/// Addresses that were asked for a handshake because of an unknown index, remembered for a second.
pub const UNKNOWN_ASKED_MAX: usize = 256;

/// Handshakes of others that are answered in a second, each with a signature and three verifications.
pub const ANSWERS_PER_SECOND: u32 = 200;
/// Handshakes of others that may be answered in one go, such as after a power failure.
pub const ANSWERS_BURST: u32 = 400;
/// Handshakes of one source address that are answered in a second.
pub const ANSWERS_PER_SOURCE_PER_SECOND: u32 = 4;
/// Source addresses whose handshakes are counted apart.
pub const SOURCES_MAX: usize = 1024;
/// Challenges sent in a second.
pub const CHALLENGES_PER_SECOND: u32 = 200;
/// Handshakes started in a second because of unknown indices.
pub const UNKNOWN_PER_SECOND: u32 = 8;
const _: () = assert!(
    UNKNOWN_PER_SECOND as u64 * HANDSHAKE_GIVE_UP.as_secs() <= HANDSHAKES_OPEN_MAX as u64 / 2,
    "a flood of unknown indices from forged addresses leaves room for the handshakes that our own stack asks for"
);
/// Handshakes signed by this host in a second, for whatever cause.
pub const SIGNATURES_PER_SECOND: u32 = 400;

/// Certificates of DHCP that are being checked or made.
pub const DHCP_JOBS_MAX: usize = 256;
/// Refusals of DHCP that an operator hears of in a second; enrolled hosts cause them.
pub const DHCP_EVENTS_PER_SECOND: u32 = 10;

/// Frames held for one peer while its handshake runs.
pub const HELD_FRAMES_PER_PEER_MAX: usize = 32;
/// Bytes held for one peer: two super-frames and small change.
pub const HELD_BYTES_PER_PEER_MAX: usize = 192 * 1024;
/// Bytes held for all peers of a lane.
pub const HELD_BYTES_MAX: usize = 4 * 1024 * 1024;
