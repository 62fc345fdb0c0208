//! What this host has by lease, on disk, so that a daemon that is started anew goes on with it: the
//! DHCP program beside it asks again only when half of the lease is over, hours later.
//!
//! It counts in the boot in which it came. After another one the DHCP program asks at once. The
//! certificate is no secret, and is checked as if it had just come.

use std::net::Ipv4Addr;

use authority::files;
use bump::Instant;
use cll::{Effect, KeptLease};
use identity::pem;

use crate::modes::file::Config;
use crate::monitor::{Disk, Home, Kept};

/// How long the kernel's number of a boot is, as text.
const BOOT_LEN: usize = 36;
/// The end of a lease without end.
const NEVER: u64 = u64::MAX;

/// The file, and what is still to be written there.
pub(super) struct LeaseFile {
    disk: Disk,
    boot: [u8; BOOT_LEN],
    /// What is to be kept; `Some(None)` to forget it.
    waiting: Option<Option<KeptLease>>,
}

impl LeaseFile {
    /// Reads what an earlier run has kept in this boot. `None` in the place of the file where the
    /// kernel does not tell boots apart.
    pub(super) fn open(config: &Config, disk: &Disk) -> Option<(LeaseFile, Option<KeptLease>)> {
        let boot = system::takeover::boot_id().ok()?.into_bytes().try_into().ok()?;
        let file = LeaseFile { disk: disk.clone(), boot, waiting: None };
        let path = Home::new(&config.host.state_dir, &config.host.interface).path(&Kept::Lease);
        let bytes = files::read(&path).ok().and_then(|text| pem::single(&text, pem::LEASE).ok());
        let lease = bytes.and_then(|bytes| from_bytes(&bytes, &file.boot));
        Some((file, lease))
    }

    /// Takes in what the link layer wants kept or forgotten; false if the effect is about something
    /// else.
    pub(super) fn take(&mut self, effect: &Effect) -> bool {
        match effect {
            Effect::KeepLease(lease) => self.waiting = Some(Some(lease.clone())),
            Effect::ForgetLease => self.waiting = Some(None),
            _ => return false,
        }
        true
    }

    /// Writes what waits; what went wrong, if something did.
    pub(super) fn write(&mut self) -> Result<(), String> {
        let written = match self.waiting.take() {
            None => return Ok(()),
            Some(Some(lease)) => self.disk.write(&Kept::Lease, &pem::encode(pem::LEASE, &to_bytes(&lease, &self.boot))),
            Some(None) => self.disk.remove(&Kept::Lease),
        };
        written.map_err(|error| error.to_string())
    }
}

fn to_bytes(lease: &KeptLease, boot: &[u8; BOOT_LEN]) -> Vec<u8> {
    let until = lease.until.map_or(NEVER, Instant::as_nanos);
    [&boot[..], &lease.address.octets(), &until.to_be_bytes(), &lease.certificate].concat()
}

/// None if it is of another boot, or damaged.
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

    #[test]
    fn a_lease_comes_back_in_its_own_boot_alone() {
        let boot = *b"12345678-1234-1234-1234-123456789abc";
        let other = *b"22345678-1234-1234-1234-123456789abc";
        for until in [None, Some(Instant::from_millis(90_000))] {
            let lease = KeptLease { address: Ipv4Addr::new(192, 0, 2, 9), until, certificate: vec![0x30, 1, 2] };
            let bytes = to_bytes(&lease, &boot);
            assert_eq!(from_bytes(&bytes, &boot), Some(lease));
            assert_eq!(from_bytes(&bytes, &other), None);
            assert_eq!(from_bytes(&bytes[..BOOT_LEN + 11], &boot), None);
        }
    }
}
