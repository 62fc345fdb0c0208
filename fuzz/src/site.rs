//! The site of the golden vectors: one authority, the host alpha and the router omega.

use std::sync::{Arc, OnceLock};

use identity::{HostIdentity, pem};

use crate::vectors;

/// The moment at which the site's certificates are valid, in seconds since 1970.
pub const START_UNIX_S: u64 = 1_800_000_000;
/// The hosts of the site.
pub const HOSTS: [&str; 2] = ["alpha", "omega"];

/// The value `name` of the site's file.
#[must_use]
pub fn value(name: &str) -> &'static [u8] {
    vectors::files()[0].get(name).unwrap_or_else(|| panic!("no vector {name}"))
}

/// The identity file of `host`, with `block` in place of the block of that label if there is one.
#[must_use]
pub fn identity_text(host: &str, replaced: Option<(&str, &[u8])>) -> String {
    let blocks = [
        (pem::CERTIFICATE, value(&format!("{host}.certificate"))),
        (pem::PRIVATE_KEY, value(&format!("{host}.pkcs8"))),
        (pem::SITE_KEY, value("site_key")),
        (pem::CERTIFICATE, value("authority.certificate")),
    ];
    let mut replaced = replaced;
    let encode = |(label, bytes)| {
        let bytes = replaced.take_if(|(wanted, _)| *wanted == label).map_or(bytes, |(_, other)| other);
        pem::encode(label, bytes).to_string()
    };
    blocks.map(encode).concat()
}

/// The identities of both hosts.
pub fn identities() -> &'static [Arc<HostIdentity>; 2] {
    static READ: OnceLock<[Arc<HostIdentity>; 2]> = OnceLock::new();
    READ.get_or_init(|| {
        HOSTS.map(|host| Arc::new(HostIdentity::from_pem(&identity_text(host, None)).expect("an identity")))
    })
}
