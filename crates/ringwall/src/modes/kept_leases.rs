//! What this host has by lease, on disk, so that a daemon that is started anew goes on with it: the
//! DHCP program beside it asks again only when half of the lease is over, hours later.
//!
//! It counts in the boot in which it came. After another one the DHCP program asks at once. Nothing
//! of it is secret. A certificate is checked as if it had just come.

use std::net::Ipv4Addr;
use std::time::Duration;

use authority::files;
use bump::Instant;
use identity::pem;

use super::file::Config;
use crate::monitor::{Disk, Home, Kept};

/// How long the kernel's number of a boot is, as text.
const BOOT_LEN: usize = 36;
/// The end of a lease without end.
const NEVER: u64 = u64::MAX;
/// By how much the end of a lease may seem to move, as it is counted from another moment.
const SAME: Duration = Duration::from_secs(1);
/// Leases that are read; a host has fewer.
const LEASES_MAX: usize = 16;

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptLease {
    pub(crate) address: Ipv4Addr,
    /// When it ends, since the boot; `None` for never.
    pub(crate) until: Option<Instant>,
    /// The certificate that came with it, in mode `cll`.
    pub(crate) certificate: Vec<u8>,
}

/// The file, and what is still to be written there.
pub(crate) struct LeaseFile {
    disk: Disk,
    boot: [u8; BOOT_LEN],
    written: Vec<KeptLease>,
    waiting: Option<Vec<KeptLease>>,
}

impl LeaseFile {
    /// Reads what an earlier run has kept in this boot. Nothing where the kernel does not tell boots
    /// apart.
    pub(crate) fn open(config: &Config, disk: &Disk) -> Option<(LeaseFile, Vec<KeptLease>)> {
        let boot = system::takeover::boot_id().ok()?.into_bytes().try_into().ok()?;
        let path = Home::new(&config.host.state_dir, &config.host.interface).path(&Kept::Leases);
        let leases = from_text(&files::read(&path).unwrap_or_default(), &boot);
        Some((LeaseFile { disk: disk.clone(), boot, written: leases.clone(), waiting: None }, leases))
    }

    /// These are the leases now.
    pub(crate) fn keep(&mut self, leases: Vec<KeptLease>) {
        self.waiting = (!is_same(&leases, &self.written)).then_some(leases);
    }

    /// Writes what waits; what went wrong, if something did.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        let Some(leases) = self.waiting.take() else { return Ok(()) };
        let done = if leases.is_empty() {
            self.disk.remove(&Kept::Leases)
        } else {
            self.disk.write(&Kept::Leases, &to_text(&leases, &self.boot))
        };
        self.written = leases;
        done.map_err(|error| format!("{error}; after a restart the next renewal takes its place"))
    }
}

fn is_same(leases: &[KeptLease], others: &[KeptLease]) -> bool {
    let is_near = |one: Option<Instant>, other: Option<Instant>| match (one, other) {
        (Some(one), Some(other)) => one.since(other).max(other.since(one)) <= SAME,
        (one, other) => one == other,
    };
    leases.len() == others.len()
        && leases.iter().zip(others).all(|(lease, other)| {
            (lease.address, &lease.certificate) == (other.address, &other.certificate)
                && is_near(lease.until, other.until)
        })
}

fn to_text(leases: &[KeptLease], boot: &[u8; BOOT_LEN]) -> String {
    let block = |lease: &KeptLease| {
        let until = lease.until.map_or(NEVER, Instant::as_nanos);
        let bytes = [&boot[..], &lease.address.octets(), &until.to_be_bytes(), &lease.certificate].concat();
        pem::encode(pem::LEASE, &bytes).to_string()
    };
    leases.iter().map(block).collect()
}

/// What is of another boot, or damaged, is left out.
fn from_text(text: &str, boot: &[u8; BOOT_LEN]) -> Vec<KeptLease> {
    let blocks = pem::blocks(text).unwrap_or_default();
    let leases = blocks.iter().filter(|block| block.label == pem::LEASE);
    leases.filter_map(|block| from_bytes(&block.bytes, boot)).take(LEASES_MAX).collect()
}

fn from_bytes(bytes: &[u8], boot: &[u8; BOOT_LEN]) -> Option<KeptLease> {
    let rest = bytes.strip_prefix(boot)?;
    let (address, rest) = rest.split_first_chunk::<4>()?;
    let (until, certificate) = rest.split_first_chunk()?;
    let until = Some(u64::from_be_bytes(*until)).filter(|until| *until != NEVER).map(Instant::from_nanos);
    Some(KeptLease { address: Ipv4Addr::from(*address), until, certificate: certificate.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOT: [u8; BOOT_LEN] = *b"12345678-1234-1234-1234-123456789abc";

    fn leases() -> Vec<KeptLease> {
        let lease =
            |last, until| KeptLease { address: Ipv4Addr::new(192, 0, 2, last), until, certificate: vec![48, last] };
        vec![lease(9, None), lease(7, Some(Instant::from_millis(90_000)))]
    }

    #[test]
    fn leases_come_back_in_their_own_boot_alone() {
        let text = to_text(&leases(), &BOOT);
        assert_eq!(from_text(&text, &BOOT), leases());
        assert_eq!(from_text(&text, b"22345678-1234-1234-1234-123456789abc"), []);
        let short = pem::encode(pem::LEASE, &BOOT).to_string();
        assert_eq!(from_text(&(short + &text), &BOOT), leases(), "the damaged one is left out");
        assert_eq!(from_text("no PEM at all", &BOOT), []);
    }

    #[test]
    fn an_end_that_is_counted_from_another_moment_is_the_same() {
        let mut moved = leases();
        moved[1].until = Some(Instant::from_millis(90_900));
        assert!(is_same(&moved, &leases()));
        moved[1].until = Some(Instant::from_millis(95_000));
        assert!(!is_same(&moved, &leases()) && !is_same(&leases()[1..], &leases()));
    }
}
