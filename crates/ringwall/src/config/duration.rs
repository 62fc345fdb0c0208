//! Spans of time as an operator writes them: 30s, 5m, 1h, 2d.

use std::time::Duration;

/// Reads a whole number with its unit.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let seconds_per_unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err("write it as 30s, 5m, 1h or 2d".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "write it as 30s, 5m, 1h or 2d".to_owned())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds_per_unit)))
}
