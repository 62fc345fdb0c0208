//! The site: its keys, and the certificates it gives to hosts.
//!
//! Issuing and storing are apart. [`site`] holds the authority in memory and turns requests into
//! certificates. It touches no file, reads no clock (callers pass Unix seconds) and draws no
//! randomness (callers pass a [`Random`]). [`directory`] keeps a site in files, and [`files`] writes
//! so that nothing is ever half done. [`key`] is the authority's key, there or in a token.
//! [`enrolment`] is the host's half, [`lease`] a DHCP server's: the certificates of its clients.
//! [`repository`] keeps the hosts whose keys the distributors of S-ARP give out. [`rollout`] is what
//! reports of hosts come to.
//!
//! It trusts the manager who calls it: what a request asks for is granted because he passes it here.

pub mod audit;
pub mod directory;
pub mod enrolment;
pub mod error;
pub mod files;
pub mod key;
pub mod lease;
pub mod limits;
mod names;
pub mod repository;
pub mod request;
pub mod rollout;
pub mod site;

pub use directory::{Directory, Entry};
pub use error::Error;
pub use lease::LeaseAuthority;
pub use request::Request;
pub use site::{Bundle, Site};

/// A source of random bytes for keys and serial numbers: it fills the whole slice. The program seeds it from the kernel,
/// the lab from its seed.
pub type Random<'a> = dyn FnMut(&mut [u8]) + 'a;

pub(crate) fn random_bytes<const N: usize>(random: &mut Random<'_>) -> zeroize::Zeroizing<[u8; N]> {
    let mut bytes = zeroize::Zeroizing::new([0; N]);
    random(&mut *bytes);
    bytes
}
