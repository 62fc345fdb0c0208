//! What scrapers ask for: one page.

use std::io::{self, Read, Write};

use super::super::family::Format;
use crate::serving::http::{self, Fault, Head};

/// Where the metrics are.
const PATH: &str = "/metrics";
/// The same address has two forms.
const VARY: &str = "Vary: Accept\r\n";

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) format: Format,
    /// Without HEAD: the page itself.
    pub(super) body: bool,
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Malformed,
    /// The name of the server is none of this machine: a page in a browser asks by a name that it
    /// made up.
    Stranger,
    Elsewhere,
    Method,
    TooLong,
    TooMany,
    Silent,
}

impl Refusal {
    fn status(self) -> (&'static str, &'static str) {
        match self {
            Refusal::Malformed => ("400 Bad Request", "not a request"),
            Refusal::Stranger => ("403 Forbidden", "ask by an address or as localhost"),
            Refusal::Elsewhere => ("404 Not Found", "the metrics are at /metrics"),
            Refusal::Method => ("405 Method Not Allowed", "use GET"),
            Refusal::TooLong => ("431 Request Header Fields Too Large", "the request is too long"),
            Refusal::TooMany => ("503 Service Unavailable", "too many ask at one time"),
            Refusal::Silent => ("503 Service Unavailable", "the daemon gives no answer"),
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        match fault {
            Fault::Malformed | Fault::OtherLength => Refusal::Malformed,
            Fault::TooLong => Refusal::TooLong,
        }
    }
}

/// Reads a request.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Result<Wanted, Refusal>> {
    Ok(http::read(stream, |head| Ok((judge(head)?, 0)))?.map(|(wanted, _)| wanted))
}

fn judge(head: &Head<'_>) -> Result<Wanted, Refusal> {
    let body = match head.method {
        "GET" => true,
        "HEAD" => false,
        _ => return Err(Refusal::Method),
    };
    if !http::host_name(&head.all("host")).is_some_and(is_this_machine) {
        return Err(Refusal::Stranger);
    }
    if head.target.split('?').next() != Some(PATH) {
        return Err(Refusal::Elsewhere);
    }
    Ok(Wanted { format: negotiate(&head.all("accept")), body })
}

/// An address, or localhost; clients of HTTP/1.0 say nothing.
fn is_this_machine(name: &str) -> bool {
    name.is_empty() || name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

/// The format that a client likes best (RFC 9110, section 12.5.1); of equals OpenMetrics, which was
/// asked for by name.
pub(super) fn negotiate(accept: &str) -> Format {
    let (mut open, mut plain) = (0.0_f32, 0.0_f32);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut weight, mut version) = (1.0_f32, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => weight = value.trim().parse().unwrap_or(0.0),
                "version" => version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        match media.as_str() {
            "application/openmetrics-text" if version.is_none_or(|version| version == "1.0.0") => {
                open = open.max(weight)
            }
            "text/plain" | "text/*" | "*/*" => plain = plain.max(weight),
            _ => {}
        }
    }
    if open > 0.0 && open >= plain { Format::OpenMetrics } else { Format::Plain }
}

/// Answers with `text`.
pub(super) fn answer(stream: &mut impl Write, wanted: Wanted, text: &str) -> io::Result<()> {
    let kind = wanted.format.content_type();
    if wanted.body {
        http::write(stream, "200 OK", kind, VARY, text.as_bytes())
    } else {
        http::write_head(stream, "200 OK", kind, VARY, Some(text.len()))
    }
}

/// Answers that there is no page.
pub(super) fn refuse(stream: &mut impl Write, refusal: Refusal) -> io::Result<()> {
    let (status, why) = refusal.status();
    http::write(stream, status, "text/plain; charset=utf-8", VARY, format!("{why}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::http::{FIELDS_MAX, HEAD_BYTES_MAX};

    fn parsed(text: &str) -> Result<Wanted, Refusal> {
        read(&mut text.as_bytes()).expect("read")
    }

    /// What Prometheus 2.42 sends.
    const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
        q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

    #[test]
    fn the_format_is_the_one_that_is_liked_best() {
        for (accept, format) in [
            (PROMETHEUS, Format::OpenMetrics),
            ("", Format::Plain),
            ("*/*", Format::Plain),
            ("text/html,*/*;q=0.8", Format::Plain),
            ("application/openmetrics-text; version=0.0.1, text/plain;q=0.1", Format::Plain),
            ("Application/OpenMetrics-Text; version=\"1.0.0\"; q=0.5, text/plain; q=0.9", Format::Plain),
            ("application/openmetrics-text;q=0", Format::Plain),
            ("application/openmetrics-text", Format::OpenMetrics),
        ] {
            assert_eq!(negotiate(accept), format, "{accept}");
        }
    }

    #[test]
    fn only_the_page_that_there_is_is_given_to_who_asks_by_address() {
        let asks = |line: &str, host: &str| parsed(&format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let page = |body| Ok(Wanted { format: Format::Plain, body });
        for host in ["127.0.0.1:9477", "localhost", "[::1]:9477", "LOCALHOST:1"] {
            assert_eq!(asks("GET /metrics?x=1", host), page(true), "{host}");
        }
        assert_eq!(asks("HEAD /metrics", "127.0.0.1"), page(false));
        assert_eq!(parsed("GET /metrics HTTP/1.0\r\n\r\n"), page(true));
        assert_eq!(asks("GET /metrics", "evil.example:9477"), Err(Refusal::Stranger));
        assert_eq!(asks("POST /metrics", "127.0.0.1"), Err(Refusal::Method));
        assert_eq!(asks("GET /", "127.0.0.1"), Err(Refusal::Elsewhere));
    }

    #[test]
    fn what_is_no_request_or_too_long_is_refused() {
        assert_eq!(parsed("GET /metr"), Err(Refusal::Malformed));
        assert_eq!(parsed("\x16\x03\x01\x02\0"), Err(Refusal::Malformed));
        let fields = "a: b\r\n".repeat(FIELDS_MAX + 1);
        assert_eq!(parsed(&format!("GET /metrics HTTP/1.1\r\n{fields}\r\n")), Err(Refusal::TooLong));
        let endless = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(2 * HEAD_BYTES_MAX));
        assert_eq!(parsed(&endless), Err(Refusal::TooLong));
    }
}
