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
/// Longest lifetime of an association, whatever both sides claim.
pub const LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);
/// A used association gets new keys by a rollover after this, however long it may live: from then
/// on a key that leaked opens nothing new.
pub const REKEY_AFTER: Duration = Duration::from_secs(24 * 60);
const _: () = assert!(
    REKEY_AFTER.as_secs() == LIFETIME_DEFAULT.as_secs() * 4 / 5,
    "by default both rules for a rollover, this one and four fifths of the lifetime, say the same"
);
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
/// Peers of which there are only candidates, beside those with an association.
pub const CANDIDATE_PEERS_MAX: usize = 1024;
/// Candidates of one peer.
pub const CANDIDATES_PER_PEER_MAX: usize = 4;
/// Handshakes that this host has open at a time, as many as it signs in one go: a host that joins a
/// site of 300 may ask all of them at once. One more takes the place of the question that has waited
/// longest for an answer, so that questions for nobody keep no host out.
pub const HANDSHAKES_OPEN_MAX: usize = SIGNATURES_PER_SECOND as usize;
/// Questions that take the place of another in a second. Hosts that have proved themselves are asked
/// beyond that.
pub const DISPLACED_PER_SECOND: u32 = SIGNATURES_PER_SECOND / 2;
/// An operator hears of such questions, and of those that were not asked at all, so long after the
/// first: of all in one event.
pub const CROWDED_TOLD_AFTER: Duration = Duration::from_secs(10);
/// The longest time for which a ticket is taken after the last signature of its holder: a night, and a late start.
pub const TICKET_LIFETIME_MAX: Duration = Duration::from_secs(wire::cll::resumption::TICKET_LIFETIME_MAX_S as u64);
/// That time by default.
pub const TICKET_LIFETIME_DEFAULT: Duration = Duration::from_secs(12 * 3600);
/// A ticket that would end sooner is not given.
pub const TICKET_LIFETIME_MIN: Duration = Duration::from_secs(60);
/// Tickets of others that this host holds, one for each peer.
pub const TICKETS_HELD_MAX: usize = 1024;
/// Own tickets that are known to be used or replaced. Whatever is forgotten beyond it makes a candidate once more, and no more.
pub const TICKETS_SPENT_MAX: usize = 8192;
const _: () = assert!(TICKETS_SPENT_MAX >= 2 * PEERS_MAX, "the last two tickets of every peer are known");
/// Tickets that are given in one sweep, so that a power failure of a large site does not have thousands sealed at once.
pub const TICKETS_PER_SWEEP: usize = 64;
/// Keys of own tickets: that in use, and the one before it.
pub const TICKET_KEYS: usize = 2;
/// Resumptions of others that are answered in a second, each with one key agreement, one verification, and no signature.
pub const RESUMPTIONS_PER_SECOND: u32 = 400;
/// Resumptions of others that may be answered in one go.
pub const RESUMPTIONS_BURST: u32 = 800;
/// Requests of others that are being answered or remembered. When it is full, the oldest remembered
/// reply makes room: a repetition of its request is then judged anew.
pub const ANSWERS_MAX: usize = 8192;
const _: () = assert!(
    ANSWERS_MAX as u64
        >= (ANSWERS_PER_SECOND + STRANGERS_ANSWERED_PER_SECOND) as u64 * ANSWER_CACHED.as_secs()
            + (ANSWERS_BURST + STRANGERS_ANSWERED_BURST) as u64,
    "handshakes at the full rate have room for as long as they are remembered"
);
/// Senders whose last timestamp is remembered.
pub const STAMPS_MAX: usize = 8192;
/// Key pairs prepared ahead, so that a handshake does not wait for one (paper, section 7.2).
pub const KEY_PAIRS_AHEAD: usize = 16;
/// Of these the last ones are kept for handshakes of hosts that have proved themselves before, and for our own.
pub const KEY_PAIRS_RESERVED: usize = 4;
const _: () = assert!(2 * KEY_PAIRS_RESERVED < KEY_PAIRS_AHEAD, "more are ordered before strangers find none");
/// Pairs of ML-KEM prepared ahead: a host that starts opens no more handshakes than this in one go,
/// as a rule.
pub const KEM_PAIRS_AHEAD: usize = 16;
/// Addresses that were asked for a handshake because of an unknown index, remembered for a second.
pub const UNKNOWN_ASKED_MAX: usize = 256;

/// Handshakes of hosts that have proved themselves before and are answered in a second, each with a signature and three verifications.
pub const ANSWERS_PER_SECOND: u32 = 200;
/// Such handshakes that may be answered in one go, such as after a power failure.
pub const ANSWERS_BURST: u32 = 400;
/// Handshakes of strangers that are answered in a second. Fewer, because their names may all be made up by one host, which has this
/// much computed for as long as it likes; and because each host is a stranger once.
pub const STRANGERS_ANSWERED_PER_SECOND: u32 = 50;
/// Handshakes of strangers that may be answered in one go: new hosts come by the room, not by the site.
pub const STRANGERS_ANSWERED_BURST: u32 = 100;
/// Handshakes of one source address that are answered in a second. This holds for hosts that have proved themselves before and once more
/// for strangers, as does [`CHALLENGES_PER_SECOND`]. Challenges have the same share beside it.
pub const ANSWERS_PER_SOURCE_PER_SECOND: u32 = 4;
/// Source addresses whose handshakes are counted apart.
pub const SOURCES_MAX: usize = 1024;
/// Challenges sent in a second to strangers, and as many again for requests that are not the newest
/// of their sender, which recordings never are.
pub const CHALLENGES_PER_SECOND: u32 = 200;
/// Challenges sent in a second to hosts that have proved themselves before, for the newest request
/// of each. A challenge is two HMACs and a frame shorter than the request. The share of each host
/// is the bound that matters: in so many seconds all hosts that there can be have been challenged
/// once.
pub const CHALLENGES_OF_PROVED_PER_SECOND: u32 = 4000;
/// Hosts whose challenges, or whose questions about groups, are counted apart.
pub const CHALLENGED_SOURCES_MAX: usize = PEERS_MAX;
/// Replies to our own handshakes that are judged in a second, each with three verifications: of hosts that have proved themselves before,
/// and as many of strangers. An honest host replies once; whoever hears our question can reply to it as often as he likes.
pub const REPLIES_PER_SECOND: u32 = SIGNATURES_PER_SECOND;
/// Replies that may be judged in one go: one to each handshake that can be open.
pub const REPLIES_BURST: u32 = REPLIES_PER_SECOND;
const _: () = assert!(REPLIES_BURST as usize >= HANDSHAKES_OPEN_MAX, "what is asked in one go is answered in one go");
/// Handshakes started in a second because of unknown indices, with hosts that have proved
/// themselves before.
pub const UNKNOWN_PER_SECOND: u32 = 6;
/// The same with strangers, whose addresses may all be spoofed.
pub const UNKNOWN_OF_STRANGERS_PER_SECOND: u32 = 2;
const _: () = assert!(
    (UNKNOWN_PER_SECOND + UNKNOWN_OF_STRANGERS_PER_SECOND) as u64 * HANDSHAKE_GIVE_UP.as_secs()
        <= HANDSHAKES_OPEN_MAX as u64 / 2,
    "a flood of unknown indices from forged addresses leaves room for the handshakes that our own stack asks for"
);
/// Handshakes signed by this host in a second, for whatever cause.
pub const SIGNATURES_PER_SECOND: u32 = 400;

/// IPv6 addresses that one host may hold: a link-local one, and for three networks a lasting one and those of four days
/// (RFC 8981 makes one a day).
pub const ADDRESSES_PER_HOST_MAX: usize = 16;
/// IPv6 addresses of all hosts.
pub const ADDRESSES_MAX: usize = ADDRESSES_PER_HOST_MAX * PEERS_MAX;
/// IPv6 addresses of this host; one with containers has many.
pub const ADDRESSES_OWN_MAX: usize = 256;
/// An address that its host has not used for this long may be claimed by another.
pub const ADDRESS_HELD: Duration = Duration::from_secs(30 * 60);
/// A lane uses a binding for this long, then control hears that the address is used.
pub const ADDRESS_REFRESH: Duration = Duration::from_secs(5 * 60);
/// An address that was not heard of for this long makes room for another one of its host.
pub const ADDRESS_IN_USE: Duration = Duration::from_secs(10 * 60);
const _: () = assert!(
    ADDRESS_IN_USE.as_secs() >= 2 * ADDRESS_REFRESH.as_secs() && ADDRESS_HELD.as_secs() > ADDRESS_IN_USE.as_secs(),
    "an address whose frames a lane lets through is known as used"
);
/// Our stack has taken an address this long after it asked whether somebody has it: three times a kernel's own second.
pub const ADDRESS_TENTATIVE: Duration = Duration::from_secs(3);
/// Addresses that our stack is about to take.
pub const TENTATIVE_MAX: usize = 64;
/// How often one host may say in a [`DENIAL_PERIOD`] that it already has an address that our stack is about to take. A
/// kernel tries three others.
pub const DENIALS_PER_HOST_MAX: u32 = 2;
/// See [`DENIALS_PER_HOST_MAX`].
pub const DENIAL_PERIOD: Duration = Duration::from_secs(60 * 60);
/// Questions to our own stack in a second, whether it has an address that somebody asks for.
pub const PROBES_PER_SECOND: u32 = 50;
/// Our stack has this long to answer one.
pub const PROBE_ANSWER_MAX: Duration = Duration::from_secs(1);
/// Questions to our own stack that wait for an answer.
pub const PROBES_OPEN_MAX: usize = 2 * PROBES_PER_SECOND as usize;
/// Refused claims of which an operator hears in one go; afterwards of one a second. All are counted.
pub const CLAIMS_TOLD_BURST: u32 = 10;
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

/// A peer that was asked for a piece of a revocation list is asked again after this.
pub const LIST_ASK_EVERY: Duration = Duration::from_secs(2);
/// How often it is asked for one piece.
pub const LIST_ASKED_MAX: u8 = 4;
/// Handshakes that a host opens when it has something newer for all: with as many at each host,
/// three rounds reach 500.
pub const SPREAD_TO_MAX: usize = 8;
/// A whole list, of at most 45 pieces, has come within this or is given up.
pub const LIST_FETCH_MAX: Duration = Duration::from_secs(60);
/// A peer whose list is not in force is asked for no other for this long.
pub const LIST_SUSPECT_FOR: Duration = Duration::from_secs(10 * 60);
/// Peers of which that is remembered. Each had a certificate, and gave a list of its own making or none.
pub const LIST_SUSPECTS_MAX: usize = 1024;
/// Pieces of the list given to peers in a second: the whole list to four of them.
pub const LIST_PIECES_PER_SECOND: u32 = 200;

/// In modes `observe` and `prefer`: for so long whoever can prove himself goes first, before a question or a frame leaves in clear.
/// A handshake on a quiet network takes a few milliseconds.
pub const CLEAR_WAIT: Duration = Duration::from_millis(250);
/// Questions and hosts that wait for that; one more goes in clear at once, as every question does in mode `observe`.
pub const CLEAR_WAITING_MAX: usize = 256;
/// There, a handshake that nobody answers is given up after this: most that are asked do not speak CLL yet.
pub const LENIENT_GIVE_UP: Duration = Duration::from_secs(4);
const _: () = assert!(LENIENT_GIVE_UP.as_secs() < HANDSHAKE_GIVE_UP.as_secs(), "it makes room sooner");
/// A host that speaks in clear is asked again whether it speaks CLL once in this time, while frames go to it.
pub const ASK_AGAIN: Duration = Duration::from_secs(60);
/// So soon one is asked for which there was no room, or no signature left.
pub const ASK_AGAIN_UNASKED: Duration = Duration::from_secs(1);
/// Hosts to which a lane sends in clear. Who is beyond is asked first, as if he were new.
pub const CLEAR_HOSTS_MAX: usize = 4096;
/// A peer that only speaks in clear for this long has fallen back, as far as mode `observe` is
/// concerned. Two frames of a program that sends one a second are enough, also where the second one
/// comes a little early.
pub const FALL_BACK_AFTER: Duration = Duration::from_millis(900);
/// How often at most a lane tells control of that.
pub const FALL_BACK_LOOK: Duration = Duration::from_millis(200);
const _: () = assert!(4 * FALL_BACK_LOOK.as_millis() <= FALL_BACK_AFTER.as_millis(), "control hears of it in time");
/// Hosts that have proved themselves and are remembered for that.
pub const PROVED_MAX: usize = PEERS_MAX;
/// Hosts in clear that are named in `peers`, for each lane and for control.
pub const OBSERVED_MAX: usize = 1024;
/// Uses of the network that are told apart for each of them: a printer has six or so.
pub const OBSERVED_PROTOCOLS_MAX: usize = 16;
/// One of them that was silent for this long makes room for another.
pub const OBSERVED_SILENT_MAX: Duration = Duration::from_secs(10 * 60);
/// How long after a host proved itself its frames in clear may still arrive, with the longest queue.
pub const PROOF_SETTLES: Duration = Duration::from_secs(1);
/// How often an operator hears of each.
pub const OBSERVED_TOLD_EVERY: Duration = Duration::from_secs(60 * 60);
/// How often an operator hears that somebody speaks in clear in the name of one host that has proved itself.
pub const DOWNGRADE_TOLD_EVERY: Duration = Duration::from_secs(60);
/// A question in clear that the stack was given is answered in clear within this time.
pub const CLEAR_ANSWER_MAX: Duration = STACK_ANSWER_MAX;
/// Askers that wait for such an answer.
pub const CLEAR_ASKERS_MAX: usize = 256;
/// How often an operator hears that a manager's machine was answered in clear.
pub const MANAGEMENT_TOLD_EVERY: Duration = Duration::from_secs(10 * 60);
/// Group frames of our stack that wait for a signature.
pub const GROUP_FRAMES_WAITING_MAX: usize = 512;
/// Bytes of them.
pub const GROUP_BYTES_WAITING_MAX: usize = 512 * 1024;
/// Group frames that are signed by themselves before the configured rate is looked at: what a program says at its start.
pub const GROUP_BURST: u32 = 16;
/// By default group frames share signatures above so many in a second.
pub const GROUP_BATCH_ABOVE_DEFAULT: u32 = 200;
/// The most that may be configured: what a receiver checks of one sender.
pub const GROUP_BATCH_ABOVE_MAX: u32 = GROUP_CHECKS_PER_SOURCE_PER_SECOND / 2;
/// How long a group frame waits by default for others to share its signature.
pub const GROUP_BATCH_DELAY_DEFAULT: Duration = Duration::from_millis(5);
/// The longest such wait that may be configured.
pub const GROUP_BATCH_DELAY_MAX: Duration = Duration::from_millis(100);
const _: () = assert!(
    GROUP_BATCH_ABOVE_DEFAULT + 1000 / GROUP_BATCH_DELAY_DEFAULT.as_millis() as u32
        <= GROUP_CHECKS_PER_SOURCE_PER_SECOND,
    "a sender that signs at its rate and at the end of every wait makes no more signatures than a receiver checks"
);
/// Announcements that wait for a signature.
pub const GROUP_ANSWERS_WAITING_MAX: usize = 256;
/// Questions of others that are answered in a second, many under one signature.
pub const GROUP_ANSWERS_PER_SECOND: u32 = 1000;
/// Questions to others in a second.
pub const GROUP_QUESTIONS_PER_SECOND: u32 = 200;
/// Hosts that are being asked.
pub const GROUP_ASKED_MAX: usize = 256;
/// With so many under way, hosts that have not proved themselves before are not asked.
pub const GROUP_STRANGERS_ASKED_MAX: usize = GROUP_ASKED_MAX / 2;
/// First wait for an announcement; it doubles with each question.
pub const GROUP_ASK_AGAIN: Duration = Duration::from_millis(250);
/// Questions before a host is given up.
pub const GROUP_QUESTIONS_MAX: u32 = 3;
/// A sender that has proved itself is not asked again for so long.
pub const GROUP_QUESTION_INTERVAL: Duration = Duration::from_secs(1);
/// An announcement reaches so far back: frames that its sender made longer ago are not believed by it.
pub const GROUP_PROOF_REACH: Duration = Duration::from_secs(2);
const _: () = assert!(
    GROUP_ASK_AGAIN.as_millis() * ((1 << GROUP_QUESTIONS_MAX) - 1) < GROUP_PROOF_REACH.as_millis(),
    "an announcement reaches back to all frames that wait for it"
);
/// Frames of one sender that wait for its announcement.
pub const GROUP_HELD_PER_SENDER_MAX: usize = 32;
/// Frames of one sender that wait for a signature to be checked. An honest sender's processor may sign all that it has gathered
/// before this host's comes to the first check.
pub const GROUP_WAITING_PER_SENDER_MAX: usize = 512;
const _: () = assert!(
    GROUP_WAITING_PER_SENDER_MAX >= GROUP_FRAMES_WAITING_MAX,
    "what a sender gathers and lets go in one moment has room at a receiver"
);
/// Senders of which a signature is being checked. It bounds what waits in all: these times what waits of one.
pub const GROUP_SENDERS_IN_CHECK_MAX: usize = 40;
const _: () = assert!(
    GROUP_SENDERS_IN_CHECK_MAX * GROUP_WAITING_PER_SENDER_MAX * 1600 < 32 * 1024 * 1024,
    "many certified hosts together cannot fill the memory"
);
/// Senders of group frames that are remembered. Who is forgotten is asked again.
pub const GROUP_SENDERS_MAX: usize = 1024;
/// Roots that are remembered of each sender; batches come one behind the other.
pub const GROUP_ROOTS_MAX: usize = 4;
/// Signatures over roots that are checked in a second.
pub const GROUP_CHECKS_PER_SECOND: u32 = 2000;
/// Signatures over roots of one sender that are checked in a second.
pub const GROUP_CHECKS_PER_SOURCE_PER_SECOND: u32 = 500;
/// The first parts of a frame wait for the rest for so long.
pub const GROUP_PARTS_WAIT_MAX: Duration = Duration::from_secs(1);
