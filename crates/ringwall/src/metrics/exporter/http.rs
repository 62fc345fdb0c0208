//! As much of HTTP/1.1 as a scraper needs: one request for one page, and the end of the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

use super::super::family::Format;

/// Longest head of a request, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 8192;
/// Most fields in it.
const FIELDS_MAX: usize = 64;
/// Where the metrics are.
const PATH: &str = "/metrics";

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

/// Reads a request until `deadline`.
pub(super) fn read(stream: &mut impl Read, deadline: Instant) -> io::Result<Result<Wanted, Refusal>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        if Instant::now() >= deadline {
            return Err(ErrorKind::TimedOut.into());
        }
        let count = match stream.read(&mut part) {
            Ok(0) => return Ok(Err(Refusal::Malformed)),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&part[..count]);
        if let Some(wanted) = parse(&head) {
            return Ok(wanted);
        }
        if head.len() >= HEAD_BYTES_MAX {
            return Ok(Err(Refusal::TooLong));
        }
    }
}

/// None for a head that goes on.
pub(super) fn parse(head: &[u8]) -> Option<Result<Wanted, Refusal>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Err(httparse::Error::TooManyHeaders) => Some(Err(Refusal::TooLong)),
        Err(_) => Some(Err(Refusal::Malformed)),
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(_)) => Some(judge(&request)),
    }
}

fn judge(request: &httparse::Request<'_, '_>) -> Result<Wanted, Refusal> {
    let field = |name: &str| {
        let fields = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        fields.filter_map(|field| str::from_utf8(field.value).ok()).collect::<Vec<_>>().join(",")
    };
    let body = match request.method {
        Some("GET") => true,
        Some("HEAD") => false,
        _ => return Err(Refusal::Method),
    };
    if !is_this_machine(&field("host")) {
        return Err(Refusal::Stranger);
    }
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    if path != PATH {
        return Err(Refusal::Elsewhere);
    }
    Ok(Wanted { format: negotiate(&field("accept")), body })
}

/// An address, or localhost; clients of HTTP/1.0 say nothing.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
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
    put(stream, "200 OK", wanted.format.content_type(), text, wanted.body)
}

/// Answers that there is no page.
pub(super) fn refuse(stream: &mut impl Write, refusal: Refusal) -> io::Result<()> {
    let (status, why) = refusal.status();
    put(stream, status, "text/plain; charset=utf-8", &format!("{why}\n"), true)
}

fn put(stream: &mut impl Write, status: &str, kind: &str, text: &str, body: bool) -> io::Result<()> {
    let (length, body) = (text.len(), if body { text } else { "" });
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nVary: Accept\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parsed(text: &str) -> Option<Result<Wanted, Refusal>> {
        parse(text.as_bytes())
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
        let page = |body| Some(Ok(Wanted { format: Format::Plain, body }));
        for host in ["127.0.0.1:9477", "localhost", "[::1]:9477", "LOCALHOST:1"] {
            assert_eq!(asks("GET /metrics?x=1", host), page(true), "{host}");
        }
        assert_eq!(asks("HEAD /metrics", "127.0.0.1"), page(false));
        assert_eq!(parsed("GET /metrics HTTP/1.0\r\n\r\n"), page(true));
        assert_eq!(asks("GET /metrics", "evil.example:9477"), Some(Err(Refusal::Stranger)));
        assert_eq!(asks("POST /metrics", "127.0.0.1"), Some(Err(Refusal::Method)));
        assert_eq!(asks("GET /", "127.0.0.1"), Some(Err(Refusal::Elsewhere)));
    }

    #[test]
    fn what_is_no_request_or_too_long_is_refused() {
        assert_eq!(parsed("GET /metr"), None);
        assert_eq!(parsed("\x16\x03\x01\x02\0"), Some(Err(Refusal::Malformed)));
        let fields = "a: b\r\n".repeat(FIELDS_MAX + 1);
        assert_eq!(parsed(&format!("GET /metrics HTTP/1.1\r\n{fields}\r\n")), Some(Err(Refusal::TooLong)));
        let later = Instant::now() + Duration::from_secs(60);
        let endless = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(2 * HEAD_BYTES_MAX));
        assert_eq!(read(&mut endless.as_bytes(), later).expect("read"), Err(Refusal::TooLong));
        assert_eq!(read(&mut &b"GET"[..], later).expect("read"), Err(Refusal::Malformed));
        assert!(read(&mut &b"GET"[..], Instant::now()).is_err(), "its time is over");
    }
}
