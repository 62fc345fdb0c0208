//! Spans of time as an operator writes them: 30s, 5m, 1h, 2d.

use std::time::Duration;

use serde::{Deserialize, Serialize};

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

/// Such a span, in the words in which it was written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Span {
    text: String,
    pub(crate) time: Duration,
}

impl Span {
    pub(crate) fn of_days(days: u32) -> Span {
        Span { text: format!("{days}d"), time: Duration::from_secs(u64::from(days) * 24 * 3600) }
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Span, String> {
        let time = parse_time(&text).map_err(|remedy| format!("\"{text}\" is no time; {remedy}"))?;
        Ok(Span { text, time })
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.text
    }
}
