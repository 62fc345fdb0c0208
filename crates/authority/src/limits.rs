//! Every bound and default of this crate, with its unit and its reason.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a host's certificate lasts unless told otherwise.
pub const HOST_VALIDITY: Duration = DAY.saturating_mul(365);

/// How long an authority lasts unless told otherwise; every host is enrolled anew after it.
pub const SITE_VALIDITY: Duration = DAY.saturating_mul(3650);

/// Longest period that is issued; a century keeps dates far from the end of X.509's calendar.
pub const MAX_VALIDITY: Duration = DAY.saturating_mul(36_525);

/// Latest time at which anything is issued, in Unix seconds: the year 2200. A clock beyond it is broken.
pub const MAX_UNIX_S: u64 = 7_258_118_400;

/// How far back a period begins, so that a host whose clock is a little behind can use its certificate at once.
pub const BACKDATE: Duration = Duration::from_secs(5 * 60);

/// Most certificates that one site directory holds beside those that are long over; each issue
/// reads them all.
pub const MAX_ISSUED: usize = 65_536;

/// How long a certificate is over when nothing but the record of the site needs it any more.
pub const RETIRED_AFTER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Most certificates that one act puts away, so that the first one of a large site takes no minutes.
pub const RETIRED_AT_ONCE: usize = 64;

/// When the index of certificates is written anew: as it has so many bytes for each that is in the
/// record, where a line has about 150.
pub const INDEX_LEN_EACH: u64 = 512;

/// Bytes of a serial number; random, so that two authorities of one name never agree (RFC 5280 allows 20).
pub const SERIAL_LEN: usize = 16;

/// Longest file that is read, in bytes.
pub const MAX_FILE_LEN: u64 = identity::limits::MAX_PEM_LEN as u64;

/// Longest name of a host, in bytes; one less than a label of the DNS, in which such names usually end up.
pub const MAX_NAME_LEN: usize = 63;

/// Most hosts that a repository has ever numbered. Listing reads them all, some hundred bytes each.
pub const MAX_HOSTS: u64 = identity::limits::MAX_HOST_NUMBER;

/// Most addresses of one host in a repository, as many as its certificate can hold.
pub const MAX_ADDRESSES_PER_HOST: usize = identity::limits::MAX_ADDRESSES;

/// Most subnets from which one host may be given addresses; a machine has few interfaces, and each lookup reads them all.
pub const MAX_SUBNETS_PER_HOST: usize = 16;

/// Most tokens of a site that are not over: enough for a building that joins in an afternoon. Each
/// takes some kilobytes once its host is approved, and the manager looks at all of them.
pub const MAX_ENROLMENTS: usize = 1024;

/// How long a token serves unless told otherwise.
pub const TOKEN_VALIDITY: Duration = DAY;

/// Longest time for which a token serves.
pub const MAX_TOKEN_VALIDITY: Duration = DAY.saturating_mul(30);

/// How long an identity can be fetched once the manager has approved it.
pub const APPROVAL_VALIDITY: Duration = DAY;

/// How often a change of a token is decided anew because another program was faster.
pub const ENROLMENT_ATTEMPTS: usize = 8;

/// Longest identity that is sealed for a host, in bytes: its length has two bytes on the wire.
pub const MAX_SEALED_LEN: usize = u16::MAX as usize;

/// Tokens that one question of a listing brings from etcd; the largest have 88 kB there.
pub const ETCD_ENROLMENTS_PAGE: u64 = 16;

/// Longest public key in a repository, in bytes. A point on P-256 has 65; S-ARP carries no message above 640.
pub const MAX_KEY_LEN: usize = 512;

/// Last second that a period in a repository may have, in Unix seconds: what can be issued last, for as long as possible.
pub const MAX_END_UNIX_S: u64 = MAX_UNIX_S + MAX_VALIDITY.as_secs();

/// How long a change waits for another program that changes the same repository. A change takes one sync of the disk; a
/// disk that takes longer than this is broken, and a distributor must not keep its host waiting.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// Most hosts that an open repository remembers having found; each takes about 300 bytes.
pub const MAX_REMEMBERED: usize = 131_072;

/// Most members of a cluster of etcd; its makers advise against more than seven.
pub const MAX_ETCD_MEMBERS: usize = 9;

/// Certificates of one host that are good at the same time, for it to be renewed without its manager. One that renews in time has
/// two; who asks again and again must not fill the site.
pub const MAX_LIVE_CERTIFICATES: usize = 8;

/// How long an operator's certificate lasts unless told otherwise.
pub const OPERATOR_VALIDITY: Duration = DAY.saturating_mul(90);

/// Most operators of a site; each order reads all of them.
pub const MAX_OPERATORS: usize = 64;

/// Longest file of the record of what was done, in bytes, but for one entry; each entry reads at
/// most one file.
pub const AUDIT_FILE_LEN: u64 = 1 << 20;

/// Most earlier files of it. With about 500 bytes an entry these are 130,000 entries: a site of
/// 10,000 hosts that renews each month keeps a year.
pub const AUDIT_FILES: usize = 64;

/// Most operators of whom refused orders are kept: those of the site, and as many earlier ones.
pub const MAX_REFUSED_OPERATORS: usize = 2 * MAX_OPERATORS;

/// Most commands of one operator that refused orders are counted by, beside one count for all
/// others: more than there are. His file has two lines for each.
pub const MAX_REFUSED_COMMANDS: usize = 64;

/// Longest word of an entry, in bytes.
pub const AUDIT_WORD_LEN: usize = 400;

/// Longest line of it, in bytes: four words, which JSON may double, with numbers, digest and
/// signature.
pub const AUDIT_LINE_LEN: usize = 8 * AUDIT_WORD_LEN + 1024;

/// How long hosts have to fetch a new shared key before anybody sends with it. They ask daily; one
/// that is off for longer comes back by hand.
pub const SHARED_KEY_AFTER: Duration = DAY.saturating_mul(7);
/// How long the one before is still accepted then: for clocks that are wrong.
pub const SHARED_KEY_GRACE: Duration = DAY;
/// A change that begins no sooner than this may take over another key without another date: hosts
/// ask daily, and get it in time.
pub const SHARED_KEY_TAKEN_OVER: Duration = DAY.saturating_mul(2);

/// How long a member of etcd may take to be connected to. It is on the same site; one that is switched off must not keep the
/// others waiting.
pub const ETCD_CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a member may take for one request, connecting and all. An election takes one to two seconds; whoever asks
/// during it asks once more.
pub const ETCD_REQUEST_TIMEOUT: Duration = Duration::from_millis(1500);

/// How often all members are asked a question in turn. With three of them that hang it takes nine seconds until the
/// question has failed, with three that are gone no time.
pub const ETCD_ROUNDS: usize = 2;

/// How long a cluster that did not serve is left alone: longer than one request takes, so one is
/// under way at a time. A distributor's hosts ask another distributor meanwhile.
pub const ETCD_PAUSE: Duration = Duration::from_secs(2);
const _: () = assert!(ETCD_PAUSE.as_millis() > ETCD_REQUEST_TIMEOUT.as_millis());

/// How often a change is tried anew because others were faster. Each time one of them was, so only more distributors than
/// any site has would come to the end of it.
pub const ETCD_ATTEMPTS: usize = 64;

/// How often a change, or a question, is tried anew because its answer was lost.
pub const ETCD_LOST_ANSWERS: usize = 4;

/// Most steps of one transaction; etcd allows 128 unless told otherwise (`--max-txn-ops`).
pub const ETCD_STEPS: usize = 100;

/// Hosts that one question of a listing brings, some hundred bytes each.
pub const ETCD_PAGE: u64 = 500;

/// Longest answer that is read, in bytes: a page of the largest hosts and as much again.
pub const MAX_ETCD_ANSWER_LEN: u64 = 4 * 1024 * 1024;

/// Leases that one change ends once they are over, and how many such changes come before one for which it matters. The rest is
/// left to the next; each of those lends one address at most, so what is over grows less with each.
pub const ETCD_ENDED_LEASES: usize = 20;
/// See [`ETCD_ENDED_LEASES`].
pub const ETCD_ENDINGS: usize = 4;

/// A renewed host writes itself, its name, the next number, and the indexes of its addresses and hardware address before
/// and after; it takes back the leases that it had, each with the mark of its end.
const _: () = assert!(3 + 2 * (MAX_ADDRESSES_PER_HOST + 1) + 2 * MAX_ADDRESSES_PER_HOST <= ETCD_STEPS);

/// Each lease that ends is taken from its host and from the address's index, with itself and the mark of its end.
const _: () = assert!(4 * ETCD_ENDED_LEASES <= ETCD_STEPS);

/// The file of who was refused every command, with the longest lines, is still read whole.
const _: () = assert!((2 * (MAX_REFUSED_COMMANDS + 1) * AUDIT_LINE_LEN) as u64 <= 2 * AUDIT_FILE_LEN);
