//! Numbers that wrap around: sequence numbers (RFC 9293, section 3.4) and timestamps (RFC 7323, section 5.2).

/// How far `a` is ahead of `b`; negative if it is behind.
pub(crate) fn ahead(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b).cast_signed()
}

/// The one that is ahead of the other.
pub(crate) fn later(a: u32, b: u32) -> u32 {
    if ahead(a, b) > 0 { a } else { b }
}

/// Whether `number` lies from `first` to `last`, both included. Unlike two comparisons this knows no blind spot half way round.
pub(crate) fn is_within(number: u32, first: u32, last: u32) -> bool {
    number.wrapping_sub(first) <= last.wrapping_sub(first)
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
        assert!(is_within(3, u32::MAX, 3) && is_within(u32::MAX, u32::MAX, 3) && !is_within(4, u32::MAX, 3));
        assert!(!is_within(1 << 31, 0, 9) && !is_within(u32::MAX, 0, 9));
    }
}
