//! Every bound of this crate, with its unit and its reason.

/// Longest certificate that is looked at, in bytes. A host certificate with Ed25519 has about 400, one with RSA-4096 keys
/// about 1,500; a frame carries no more than its MTU.
pub const MAX_CERTIFICATE_LEN: usize = 4096;

/// Longest revocation list, in bytes; in PEM it stays below [`MAX_PEM_LEN`].
pub const MAX_REVOCATION_LIST_LEN: usize = 45 * 1024;
/// Most certificates that are taken back at a time, each of 40 bytes. An expired one need not be on a list.
pub const MAX_REVOKED: usize = 1000;

/// Longest site policy with its signature, in bytes; in PEM it stays below [`MAX_PEM_LEN`].
pub const MAX_POLICY_LEN: usize = 45 * 1024;

/// Most IPv4 addresses in one certificate. Each takes six bytes of a handshake message, which has to stay below 1,000.
pub const MAX_ADDRESSES: usize = 16;

/// Longest name of a host or a site, in bytes (RFC 5280, appendix A: ub-common-name).
pub const MAX_NAME_LEN: usize = 64;

/// Longest PEM file that is read, in bytes; an identity with RSA-8192 keys stays below a third of it.
pub const MAX_PEM_LEN: usize = 64 * 1024;

/// Most blocks in one PEM file. An identity has at most fifteen and the certificates of the site's
/// distributors and DHCP servers.
pub const MAX_PEM_BLOCKS: usize = 32;

/// Highest number of a host in a repository. Distributors keep some bytes for each number, so that whoever makes numbers up finds
/// a limit.
pub const MAX_HOST_NUMBER: u64 = 262_144;
/// Most key distributors of a site: a host tries them one after the other and gives up after eight tries.
pub const MAX_DISTRIBUTORS: usize = 8;
/// Most DHCP servers of a site: two that stand in for each other are usual.
pub const MAX_DHCP_SERVERS: usize = 8;
const _: () = assert!(MAX_DISTRIBUTORS + MAX_DHCP_SERVERS + 15 <= MAX_PEM_BLOCKS, "an identity names all of them");

/// Signatures of the paper profile whose exponentials are there ahead: more than a host signs in a second, 3 kB.
pub const PAIRS_AHEAD_MAX: usize = 64;
/// How many are made at a time, so that no other slow work waits long behind them: 3 ms with keys of 1024 bits.
pub const PAIRS_PER_BATCH: usize = 16;
const _: () = assert!(PAIRS_PER_BATCH <= PAIRS_AHEAD_MAX, "a batch has room");
