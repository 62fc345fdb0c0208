//! Numbers that wrap around: sequence numbers (RFC 9293, section 3.4) and timestamps (RFC 7323, section 5.2).

/// How far `a` is ahead of `b`; negative if it is behind.
pub(crate) fn ahead(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b).cast_signed()
}

/// The one that is ahead of the other.
pub(crate) fn later(a: u32, b: u32) -> u32 {
    if ahead(a, b) > 0 { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        assert_eq!(ahead(5, u32::MAX), 6);
        assert_eq!(ahead(u32::MAX, 5), -6);
        assert_eq!(later(2, u32::MAX - 2), 2);
        assert_eq!(later(7, 7), 7);
    }
}
