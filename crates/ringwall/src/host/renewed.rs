//! The identity file, read again while the daemon runs: a renewed certificate comes into force
//! without a restart, and so do keys that hosts share.
//!
//! Only that: who has another name, address or authority is another host, and what a lease hangs on does not change under it.

use std::sync::Arc;

use identity::HostIdentity;
use identity::certificate::utc_text;

use super::identity::load_identity;
use super::interface::Held;
use crate::failure::Failure;
use crate::modes::file::Config;

/// What the file holds now, if it is a renewal of what is in force; nothing if it is the same.
pub(crate) fn reread(held: &Held, in_force: &HostIdentity) -> Result<Option<Arc<HostIdentity>>, Failure> {
    let config = &held.config;
    let read = load_identity(config, config.clock().now(), &held.disk)?;
    let (old, new) = (in_force.certificate(), read.certificate());
    let is_same_anchor = in_force.anchor().der() == read.anchor().der();
    if old.der() == new.der() && in_force.shared_keys() == read.shared_keys() && is_same_anchor {
        return Ok(None);
    }
    if !in_force.anchor().is_renewed_by(read.anchor()) {
        return Err(another(config, "it is of another authority, or its certificate is not signed by ours"));
    }
    if (old.name(), old.role(), old.names()) != (new.name(), new.role(), new.names()) {
        return Err(another(config, "its certificate has another name, role or address"));
    }
    Ok(Some(read))
}

/// It is no renewal, because of this.
pub(crate) fn another(config: &Config, what: &str) -> Failure {
    Failure::file(&config.host.identity, what, "restart the daemon to have it in force")
}

/// What is said of other shared keys.
pub(crate) fn shared_keys_line(identity: &HostIdentity) -> String {
    let (term, _) = identity.site_keys().newest();
    let from = utc_text(term.from_unix_s);
    format!("this host has the site key of generation {} and sends with it from {from}", term.generation)
}
