//! Every bound and default of this crate, with its unit and its reason.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a host's certificate lasts unless told otherwise.
pub const HOST_VALIDITY: Duration = DAY.saturating_mul(365);

/// How long an authority lasts unless told otherwise; every host is enrolled anew after it.
pub const SITE_VALIDITY: Duration = DAY.saturating_mul(3650);

/// Longest period that is issued; a century keeps dates far from the end of X.509's calendar.
pub const MAX_VALIDITY: Duration = DAY.saturating_mul(36_525);

/// Latest time at which anything is issued, in Unix seconds: the year 2200. A clock beyond it is broken.
pub const MAX_UNIX_S: u64 = 7_258_118_400;

/// How far back a period begins, so that a host whose clock is a little behind can use its certificate at once.
pub const BACKDATE: Duration = Duration::from_secs(5 * 60);

/// Most certificates that one site directory holds; each issue reads them all, about 50 microseconds each.
pub const MAX_ISSUED: usize = 65_536;

/// Bytes of a serial number; random, so that two authorities of one name never agree (RFC 5280 allows 20).
pub const SERIAL_LEN: usize = 16;

/// Longest file that is read, in bytes.
pub const MAX_FILE_LEN: u64 = identity::limits::MAX_PEM_LEN as u64;
