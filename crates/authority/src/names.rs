//! Names of hosts and sites.

use crate::limits::MAX_NAME_LEN;

/// Whether it is a name: letters, digits, dots, hyphens and underscores.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && name.len() <= MAX_NAME_LEN && name.bytes().all(is_plain)
}
