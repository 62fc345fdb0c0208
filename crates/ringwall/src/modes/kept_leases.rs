//! What this host has by lease, on disk, so that a daemon that is started anew goes on with it: the
//! DHCP program beside it asks again only when half of the lease is over, hours later.
//!
//! It counts in the boot in which it came, in the same mode, for the same name and hardware address.
//! After another boot the DHCP program asks at once. Nothing of it is secret. A certificate is checked
//! as if it had just come.

use std::net::Ipv4Addr;
use std::time::Duration;

use authority::files;
use bump::Instant;
use identity::certificate::HostCertificate;
use identity::pem;

use super::file::Config;
use crate::monitor::{Disk, Home, Kept};

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
    /// What tells this boot and this host from others.
    mark: Vec<u8>,
    written: Vec<KeptLease>,
    waiting: Option<Vec<KeptLease>>,
}

impl LeaseFile {
    /// Reads what an earlier run has kept in this boot. Nothing where the kernel does not tell boots
    /// apart.
    pub(crate) fn open(config: &Config, own: &HostCertificate, disk: &Disk) -> Option<(LeaseFile, Vec<KeptLease>)> {
        let boot = system::takeover::boot_id().ok()?;
        let mark = format!("{boot} {} {} {}", config.host.mode.word(), own.mac(), own.name()).into_bytes();
        let path = Home::new(&config.host.state_dir, &config.host.interface).path(&Kept::Leases);
        let text = files::read(&path).unwrap_or_default();
        let leases = from_text(&text, &mark);
        // What is there of others goes with the first turn.
        let waiting = (leases.is_empty() && !text.is_empty()).then(Vec::new);
        Some((LeaseFile { disk: disk.clone(), mark, written: leases.clone(), waiting }, leases))
    }

    /// These are the leases now.
    pub(crate) fn keep(&mut self, leases: Vec<KeptLease>) {
        if !is_same(&leases, self.waiting.as_ref().unwrap_or(&self.written)) {
            self.waiting = Some(leases);
        }
    }

    /// Writes what waits; what went wrong, if something did. It is tried again then.
    pub(crate) fn write(&mut self) -> Result<(), String> {
        let Some(leases) = &self.waiting else { return Ok(()) };
        let done = if leases.is_empty() {
            self.disk.remove(&Kept::Leases)
        } else {
            self.disk.write(&Kept::Leases, &to_text(leases, &self.mark))
        };
        done.map_err(|error| format!("{error}; after a restart the next renewal takes its place"))?;
        self.written = self.waiting.take().unwrap_or_default();
        Ok(())
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

fn to_text(leases: &[KeptLease], mark: &[u8]) -> String {
    let block = |lease: &KeptLease| {
        let until = lease.until.map_or(NEVER, Instant::as_nanos);
        let len = u16::try_from(mark.len()).unwrap_or(u16::MAX).to_be_bytes();
        let bytes = [&len[..], mark, &lease.address.octets(), &until.to_be_bytes(), &lease.certificate].concat();
        pem::encode(pem::LEASE, &bytes).to_string()
    };
    leases.iter().map(block).collect()
}

/// What is of another boot or host, or damaged, is left out.
fn from_text(text: &str, mark: &[u8]) -> Vec<KeptLease> {
    let blocks = pem::blocks(text).unwrap_or_default();
    let leases = blocks.iter().filter(|block| block.label == pem::LEASE);
    leases.filter_map(|block| from_bytes(&block.bytes, mark)).take(LEASES_MAX).collect()
}

fn from_bytes(bytes: &[u8], mark: &[u8]) -> Option<KeptLease> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (its, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    if its != mark {
        return None;
    }
    let (address, rest) = rest.split_first_chunk::<4>()?;
    let (until, certificate) = rest.split_first_chunk()?;
    let until = Some(u64::from_be_bytes(*until)).filter(|until| *until != NEVER).map(Instant::from_nanos);
    Some(KeptLease { address: Ipv4Addr::from(*address), until, certificate: certificate.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &[u8] = b"boot mode mac name";

    fn leases() -> Vec<KeptLease> {
        let lease =
            |last, until| KeptLease { address: Ipv4Addr::new(192, 0, 2, last), until, certificate: vec![48, last] };
        vec![lease(9, None), lease(7, Some(Instant::from_millis(90_000)))]
    }

    #[test]
    fn leases_come_back_in_their_own_boot_and_to_their_own_host_alone() {
        let text = to_text(&leases(), MARK);
        assert_eq!(from_text(&text, MARK), leases());
        for other in [&b"boot mode mac other"[..], b"boot mode mac", b"boot mode mac name longer"] {
            assert_eq!(from_text(&text, other), []);
        }
        let short = pem::encode(pem::LEASE, &[0, 18]).to_string();
        assert_eq!(from_text(&(short + &text), MARK), leases(), "the damaged one is left out");
        assert_eq!(from_text("no PEM at all", MARK), []);
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
