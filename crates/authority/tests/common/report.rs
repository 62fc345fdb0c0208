//! A report for tests, of this crate and of the program. What it is made of is in the module around
//! it.

use std::net::IpAddr;

use super::{Break, BreakUse, DaemonPart, PolicyPart, Report, SCHEMA, SCHEMA_VERSION};

/// A host that observes, and a printer at 02:00:00:00:00:09 that it hears.
pub(crate) fn report(made_unix_ms: u64) -> Report {
    Report {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        made_unix_ms,
        daemon: DaemonPart {
            version: "0.1.0".to_owned(),
            interface: "eth0".to_owned(),
            mode: "cll".to_owned(),
            state: "guarding".to_owned(),
            way: "in-place".to_owned(),
            uptime_s: 60,
        },
        policy: PolicyPart { version: Some(3), migration: Some("observe".to_owned()) },
        sealed: 2,
        attacks_open: 0,
        attacks_opened: 1,
        site_key_generation: Some(2),
        dropped: Some(12),
        certificate_not_after_unix: 1_800_000_000,
        breaks: vec![break_of(9, "tcp/9100", made_unix_ms)],
        breaks_left_out: 0,
    }
}

pub(crate) fn break_of(mac: u8, protocol: &str, last_unix_ms: u64) -> Break {
    let ip = |last| Some(IpAddr::from([192, 0, 2, last]));
    let (source, destination) = (ip(mac), ip(10));
    let one = BreakUse { protocol: protocol.to_owned(), frames: 7, last_unix_ms, source, destination };
    Break { mac: format!("02:00:00:00:00:{mac:02x}"), uses: vec![one] }
}
