//! Times that a person and a program read.

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

/// A moment in UTC as RFC 3339 has it, with milliseconds.
pub(crate) fn rfc3339(unix_ms: u64) -> String {
    format!("{}Z", clock(unix_ms))
}

/// The same with an offset in digits, as EVE has it.
pub(super) fn with_offset(unix_ms: u64) -> String {
    format!("{}+0000", clock(unix_ms))
}

fn clock(unix_ms: u64) -> String {
    let (year, month, day) = date(unix_ms / DAY_MS);
    let (seconds, millis) = (unix_ms % DAY_MS / 1000, unix_ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}")
}

/// Year, month and day of a day since 1970, by years that begin in March, whose leap day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `date -u -d @... +%FT%T`.
    #[test]
    fn moments_are_those_of_date() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_709_251_199, "2024-02-29T23:59:59"),
            (1_790_000_000, "2026-09-21T14:13:20"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            assert_eq!(rfc3339(unix_s * 1000 + 7), format!("{text}.007Z"));
        }
        assert!(with_offset(0).ends_with(".000+0000"));
    }
}
