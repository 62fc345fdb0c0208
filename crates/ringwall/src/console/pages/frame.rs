//! What all pages have around them.

use super::super::look::{Daemon, Look, unix_s};
use crate::output::clean;
use crate::recorder::rfc3339;

/// Pages that are always there: where, and what they are called.
const PAGES: &[(&str, &str)] = &[
    ("/", "Overview"),
    ("/peers", "Peers"),
    ("/map", "Map"),
    ("/attacks", "Attacks"),
    ("/drops", "Drops"),
    ("/history", "History"),
    ("/certificates", "Certificates"),
];
/// One that is there where the site's service is asked, one with a gateway, and one that comes last.
const SITE: (&str, &str) = ("/site", "Site");
const GATEWAY: (&str, &str) = ("/gateway", "Gateway");
const ABOUT: (&str, &str) = ("/about", "About");

/// A link to a page.
pub(super) struct Entry {
    pub(super) path: &'static str,
    pub(super) name: &'static str,
    pub(super) is_here: bool,
}

/// The frame of a page.
pub(super) struct Frame {
    pub(super) title: String,
    /// None for who is not signed in.
    pub(super) entries: Vec<Entry>,
    /// When the page was made.
    pub(super) time: String,
}

impl Frame {
    /// Of the page at `here`.
    pub(super) fn of(here: &'static str, title: &str, look: &Look, daemons: &[Daemon]) -> Frame {
        let has_gateway = daemons.iter().any(|daemon| daemon.gate().is_some());
        let gateway = has_gateway.then_some(&GATEWAY);
        let site = look.has_site().then_some(&SITE);
        let pages = PAGES.iter().chain(site).chain(gateway).chain([&ABOUT]);
        let entries = pages.map(|(path, name)| Entry { path, name, is_here: *path == here }).collect();
        Frame { title: clean(title), entries, time: time(unix_s() * 1000) }
    }

    /// Of a page for who is not signed in.
    pub(super) fn outside(title: &str) -> Frame {
        Frame { title: title.to_owned(), entries: Vec::new(), time: String::new() }
    }
}

/// A time as a person reads it, to the second.
pub(super) fn time(unix_ms: u64) -> String {
    rfc3339(unix_ms / 1000 * 1000).replace(".000", "").replace('T', " ")
}

/// So many seconds, in the unit in which a person thinks of them.
pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A number with a gap after each three digits.
pub(super) fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_spans_and_numbers_are_as_persons_read_them() {
        assert_eq!(time(1_795_000_000_123), "2026-11-18 11:06:40Z");
        assert_eq!([span(7), span(600), span(10_800), span(864_000)], ["7 s", "10 min", "3 h", "10 days"]);
        assert_eq!(
            [number(0), number(999), number(1000), number(1_234_567)],
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
    }
}
