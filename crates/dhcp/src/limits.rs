//! Every limit of S-DHCP and of DHCP under the link layer, with its unit and its reason.

use std::time::Duration;

/// How long an exchange stays open after its last request: servers ping an address before they offer it, and clients wait
/// up to 64 s before they ask anew (RFC 2131, section 4.1).
pub const EXCHANGE_OPEN: Duration = Duration::from_secs(70);
/// Exchanges that a client has open: each takes one request, and programs that are started again begin anew.
pub const CLIENT_EXCHANGES_MAX: usize = 16;
/// Messages of our own DHCP client that are signed in a second; programs repeat themselves after seconds.
pub const CLIENT_MESSAGES_PER_SECOND: u32 = 10;
/// Replies whose signature a client checks in a second: its exchanges are few, and each has a handful of servers.
pub const REPLY_CHECKS_PER_SECOND: u32 = 50;
/// Addresses that this host holds by lease at a time: one, and those whose end a program did not wait for.
pub const OWN_LEASES_MAX: usize = 4;

/// Messages of one source that a server looks at in a second. Clients send two for a lease, and repeat them after seconds.
pub const MESSAGES_PER_SOURCE_PER_SECOND: u32 = 8;
/// Sources that are counted apart.
pub const SOURCES_MAX: usize = 4096;
/// Signatures of clients that a server checks in a second, for all of them: a tenth of a processor.
pub const CLIENT_CHECKS_PER_SECOND: u32 = 1000;
/// The same for one client. Who has the site key can write any client's number, and uses up no
/// other client's share. A message may be checked twice, under two keys.
pub const CHECKS_PER_CLIENT_PER_SECOND: u32 = 2 * MESSAGES_PER_SOURCE_PER_SECOND;
/// Replies that a server signs in a second.
pub const REPLIES_PER_SECOND: u32 = 1000;
/// Questions to key distributors in a second for clients whose signature was right. With three
/// questions for a first lease and two for a renewal, a hall of 200 machines that are switched on
/// together has its leases in ten seconds.
pub const QUESTIONS_PER_SECOND: u32 = 60;
/// The same for one client: each of its messages may lead to one.
pub const QUESTIONS_PER_CLIENT_PER_SECOND: u32 = MESSAGES_PER_SOURCE_PER_SECOND;
/// Questions in a second whose key a client has, for messages whose signature is not proved: those
/// of a client that is not known yet, and those that are wrong under the key that is here. They
/// take nothing from the questions above. While no distributor answers, those of 3.2 s are open,
/// and leave a third of the places to clients with a right signature.
pub const UNPROVED_QUESTIONS_PER_SECOND: u32 = 20;
/// How often that is asked about one client (S-ARP paper, section 3.4, asks each time, which lets
/// whoever sends wrong signatures load the distributor). The answer brings the key whoever caused
/// the question, so that nobody keeps a client out.
pub const UNPROVED_QUESTION_INTERVAL: Duration = Duration::from_secs(2);
/// Clients whose key a server remembers, as many as the largest pool that it keeps leases of.
pub const CLIENTS_MAX: usize = 4096;
/// For how long a client's key is used while no distributor answers, which bounds what a former key
/// and a revoked host can still do then. While one answers they can do nothing.
pub const CLIENT_GOOD_FOR: Duration = Duration::from_secs(600);
/// Exchanges that a server has open.
pub const SERVER_EXCHANGES_MAX: usize = 4096;
/// Leases that a server remembers.
pub const LEASES_MAX: usize = 4096;
/// Leases of one host: an enrolled host must not empty the pool with made-up client identifiers.
pub const LEASES_PER_HOST_MAX: usize = 4;

/// For how long a nonce of a server under the link layer may be repeated: a client takes seconds from the OFFER to its REQUEST, and
/// repeats that for a minute.
pub const SERVER_NONCE_GOOD_FOR: Duration = Duration::from_secs(120);
/// To how many servers a question is sent again because they want their nonce repeated.
pub const REPEATS_PER_EXCHANGE_MAX: usize = identity::limits::MAX_DHCP_SERVERS;
/// Nonces of servers that a client remembers from OFFERs.
pub const HEARD_NONCES_MAX: usize = 16;
/// Frames that are not new, of one client, to which a server answers with a nonce in a second. Frames that were recorded are
/// answered, too, and must leave room for the client's own.
pub const NONCES_PER_CLIENT_PER_SECOND: u32 = 4;
/// The same for all clients: each costs two tags, and the answer is shorter than the question.
pub const NONCES_PER_SECOND: u32 = 2000;
/// New frames of one client that a server under the link layer looks at in [`CLIENT_INTERVAL`], unless it is configured otherwise
/// (CLL paper, section 6). An impatient program asks once a second for some seconds.
pub const MESSAGES_PER_CLIENT: u32 = 30;
/// The time in which they are counted.
pub const CLIENT_INTERVAL: Duration = Duration::from_secs(60);
