//! The identity file, read again while the daemon runs: a renewed certificate comes into force
//! without a restart, and so do keys that hosts share.
//!
//! Only that: who has another name, address or authority is another host, and what a lease hangs on does not change under it.

use std::sync::Arc;

use bump::Now;
use identity::HostIdentity;

use super::leases;
use super::plan::load_identity;
use crate::config::{Config, Mode};
use crate::failure::Failure;
use crate::monitor::Disk;

/// What the file holds now, if it is a renewal of what is in force; nothing if it is the same.
pub(super) fn reread(
    config: &Config,
    in_force: &HostIdentity,
    now: Now,
    disk: &Disk,
) -> Result<Option<Arc<HostIdentity>>, Failure> {
    let read = load_identity(config, now, disk)?;
    let (old, new) = (in_force.certificate(), read.certificate());
    if old.der() == new.der() && in_force.shared_keys() == read.shared_keys() {
        return Ok(None);
    }
    let another =
        |what: &str| Err(Failure::file(&config.host.identity, what, "restart the daemon to have it in force"));
    if in_force.anchor().der() != read.anchor().der() {
        return another("it is of another authority");
    }
    if (old.name(), old.role(), old.names()) != (new.name(), new.role(), new.names()) {
        return another("its certificate has another name, role or address");
    }
    if config.host.mode == Mode::Cll {
        leases::settings(config, &read, config.cll.ipv6, 0)?;
        if config.dhcp.server && old.der() != new.der() {
            return another("it is renewed, and leases that this host gave hang on the certificate before");
        }
    }
    Ok(Some(read))
}
