//! Every limit of S-ARP, with its unit and its reason.

use std::time::Duration;

use shield::limits::{KERNEL_REPEAT_INTERVAL, KERNEL_REQUESTS_PER_HOST_PER_SECOND};

/// How far a stamp may be from this host's S-ARP clock by default (section 3.4: 30 s).
pub const WINDOW: Duration = Duration::from_secs(30);
/// A question of the stack stays open for this long; Linux repeats it after a second, three times.
pub const QUESTION_OPEN: Duration = Duration::from_secs(3);
/// Questions of the stack that are open at a time; a sweep of a /24 fits.
pub const QUESTIONS_MAX: usize = 1024;

/// Keys in the ring: more hosts than the kernel keeps neighbours for (its hard limit is 1,024).
pub const RING_MAX: usize = 4096;
/// A key that did not verify a signature is asked for again at most this often (section 3.4 asks each time, which lets
/// whoever sends bad signatures load the distributor).
pub const REFETCH_INTERVAL: Duration = Duration::from_secs(2);

/// Replies that wait for a key, from all senders.
pub const PENDING_MAX: usize = 256;
/// Replies of one sender that wait for its key.
pub const PENDING_PER_SENDER_MAX: usize = 4;
/// The longest ARP frame of the wire, in bytes: header, ARP, data and the longest signature fit twice.
pub const ARP_FRAME_MAX_BYTES: usize = 640;
/// How long a reply waits; the stack has given up by then.
pub const PENDING_TIME: Duration = Duration::from_secs(5);

/// Requests to distributors that are open at a time.
pub const ENQUIRIES_MAX: usize = 128;
const _: () = assert!(ENQUIRIES_MAX <= PENDING_MAX, "every open request has room for the reply that caused it");
/// Of these, questions about leases; each may hold one DHCP message of 1,514 bytes, a request or (in the paper's order) an ACK.
pub const LEASE_ENQUIRIES_MAX: usize = 96;
/// A request is repeated after this, to the next distributor if there is one.
pub const ENQUIRY_REPEAT: Duration = Duration::from_millis(400);
/// How often a request is sent before it is given up.
pub const ENQUIRY_TRIES: u32 = 8;
const _: () = assert!(
    ENQUIRY_REPEAT.as_millis() * (ENQUIRY_TRIES as u128) < PENDING_TIME.as_millis(),
    "a reply waits for as long as its key is asked for"
);
/// An address without a key is not asked about again for this long.
pub const UNKNOWN_TIME: Duration = Duration::from_secs(5);
/// Addresses without a key that are remembered.
pub const UNKNOWN_MAX: usize = 1024;
/// The clock is set anew after this: quartz drifts by less than a second a day.
pub const CLOCK_GOOD_FOR: Duration = Duration::from_secs(600);
/// The time is asked for at most this often: while nobody answers, and when a stamp outside the window makes this host doubt
/// its own clock.
pub const TIME_REQUEST_INTERVAL: Duration = Duration::from_secs(5);
const _: () = assert!(
    TIME_REQUEST_INTERVAL.as_millis() > ENQUIRY_REPEAT.as_millis() * (ENQUIRY_TRIES as u128),
    "one request for the time ends before the next begins"
);

/// Answers that this host signs in a second, for all who have proved their addresses: a tenth of a processor.
pub const ANSWERS_PER_SECOND: u32 = 3000;
/// Answers that this host signs in a second for strangers. Fewer, because their addresses may all be made up by one; and because each
/// host is a stranger until it is spoken with.
pub const STRANGERS_ANSWERED_PER_SECOND: u32 = 1000;
/// Answers that this host signs in a second for one pair of hardware and IP address. Who forges another's addresses can use
/// up that other's share, for as long as he goes on.
pub const ANSWERS_PER_SOURCE_PER_SECOND: u32 = 10;
/// Pairs of addresses that are counted apart.
pub const SOURCES_MAX: usize = 4096;
/// Signatures of answers to open questions that are checked in a second.
pub const CHECKS_PER_SECOND: u32 = 1000;
/// Signatures of requests and announcements, which nobody asked for, that are checked in a second for each sender's IP address.
pub const UNASKED_CHECKS_PER_SENDER_PER_SECOND: u32 = 4;
/// The same for all senders.
pub const UNASKED_CHECKS_PER_SECOND: u32 = 400;
/// Signatures of distributors that are checked in a second. Only answers with the nonce of an open request come so far.
pub const ANSWER_CHECKS_PER_SECOND: u32 = 400;
/// Keys that are asked for in a second. What is left of a distributor's budget for this host is for the time and for a new key.
pub const KEY_REQUESTS_PER_SECOND: u32 = 20;
const _: () = assert!(
    KEY_REQUESTS_PER_SECOND * 2 <= REQUESTS_PER_HOST_PER_SECOND,
    "each request may be sent twice in a second and still leaves room"
);
/// Who was proved to the stack so short a time ago is not proved again because he asks: of two strangers the one who answered
/// asks next.
pub const TOLD_JUST_NOW: Duration = Duration::from_millis(100);
/// Keys that are asked for in a second before their owners have answered.
pub const KEYS_AHEAD_PER_SECOND: u32 = 8;
const _: () =
    assert!(KEYS_AHEAD_PER_SECOND * 2 < KEY_REQUESTS_PER_SECOND, "most requests are for answers that are there");
/// A key that is older is asked for again when it is used, so that a revoked one does not stay for ever. It goes on being
/// used while no distributor answers.
pub const KEY_GOOD_FOR: Duration = Duration::from_secs(600);
/// Open requests that only the time and our own new key may take.
pub const ENQUIRIES_RESERVED: usize = 4;
/// Jobs under way at a time.
pub const JOBS_MAX: usize = 512;
/// News that wait for the program; older ones are more telling in a flood, so new ones are lost and counted.
pub const EVENTS_MAX: usize = 256;

/// News of forged messages in a second: a flood must not fill the log.
pub const STRANGER_EVENTS_PER_SECOND: u32 = 8;

/// Requests of one host that a distributor answers in a second.
pub const REQUESTS_PER_HOST_PER_SECOND: u32 = 50;
/// Questions of one DHCP server about leases that a distributor answers in a second, beside its other requests.
pub const LEASE_QUESTIONS_PER_HOST_PER_SECOND: u32 = 100;
/// How long an address stays with a client to which a distributor has agreed before the DHCP server says that it granted it.
pub const PROPOSAL_TIME: Duration = Duration::from_secs(90);
const _: () = assert!(
    KERNEL_REQUESTS_PER_HOST_PER_SECOND
        >= 3 * (REQUESTS_PER_HOST_PER_SECOND + LEASE_QUESTIONS_PER_HOST_PER_SECOND + REPEATS_PER_HOST_PER_SECOND)
        && KERNEL_REPEAT_INTERVAL.as_millis() * 2 <= ENQUIRY_REPEAT.as_millis(),
    "the kernel lets through whatever may be answered"
);
/// Repeated and unstamped requests of one host that a distributor answers in a second. Recordings can use up this share, not the
/// one above.
pub const REPEATS_PER_HOST_PER_SECOND: u32 = 10;
/// How far the stamp of a request may be from a distributor's clock.
pub const REQUEST_WINDOW: Duration = Duration::from_secs(60);
/// Nonces of requests that a distributor remembers, in two generations of two minutes. Beyond 270 requests a second from all
/// hosts each host has its small share only.
pub const REQUEST_NONCES_MAX: usize = 65_536;
/// Hosts whose requests are counted apart, some 50 bytes each. Only who holds a request key is counted, so there are no more than
/// the site has enrolled; a site of 100,000 can come back all at once after a power cut.
pub const REQUESTING_HOSTS_MAX: usize = 131_072;

/// Messages that name one token whose tags a distributor checks in a second. Who has heard the number of a token can use up this
/// share of it, and no other token's.
pub const ENROLMENT_CHECKS_PER_TOKEN_PER_SECOND: u32 = 2000;
/// The same for all tokens: a tag costs some two microseconds, so forgers buy two hundredths of a processor.
pub const ENROLMENT_CHECKS_PER_SECOND: u32 = 10_000;
const _: () = assert!(
    ENROLMENT_CHECKS_PER_SECOND > ENROLMENT_CHECKS_PER_TOKEN_PER_SECOND
        && ENROLMENT_CHECKS_PER_TOKEN_PER_SECOND > ENROLMENTS_PER_TOKEN_PER_SECOND,
    "one token in the wrong ears is not all tokens, and what is answered was checked"
);
/// Messages about one token that a distributor answers in a second: a longest identity is fetched in four.
pub const ENROLMENTS_PER_TOKEN_PER_SECOND: u32 = 20;
/// The same for all tokens: each is a look into the repository, and requests of hosts go before.
pub const ENROLMENTS_PER_SECOND: u32 = 200;
/// Tokens whose messages are counted apart.
pub const ENROLLING_MAX: usize = 1024;
/// A machine that enrols repeats what nobody answers after this, to the next distributor if there is one.
pub const APPLICATION_REPEAT: Duration = Duration::from_secs(1);
/// How often it asks whether the manager has decided.
pub const DECISION_POLL: Duration = Duration::from_secs(2);
/// How often it says that it has its identity before it leaves that to the token's end.
pub const FAREWELL_TRIES: u32 = 4;
