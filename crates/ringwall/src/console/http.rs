//! What browsers ask for, and answers that are safe in one.

use std::io::{self, Read, Write};

use super::reached::Reached;
use super::refusal::Refusal;
use super::tokens::{SECRET_TEXT_LEN, Secret};
use crate::serving::http::{self, Head};

/// Longest path with its query.
const TARGET_BYTES_MAX: usize = 1024;
/// Longest body: the form with a token.
const BODY_BYTES_MAX: usize = 256;
/// Where a link leads, where its form goes, and what ends a session.
pub(super) const SIGN_IN: &str = "/sign-in";
pub(super) const SIGN_OUT: &str = "/sign-out";
/// Where news are.
const NEWS: &str = "/news";
/// What a script asks for has no destination (Fetch Metadata, section 2.1).
const OF_SCRIPT: &str = "empty";
/// Nothing but what this server itself sent is run, shown or asked for, and nobody frames it.
/// `same-origin`: under `no-referrer` a browser sends its own forms with `Origin: null` (Fetch,
/// section "append a request Origin header").
const SAFETY: &str = "Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; \
    connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'\r\n\
    Referrer-Policy: same-origin\r\nX-Frame-Options: DENY\r\nCross-Origin-Opener-Policy: same-origin\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n";

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A page, and nothing changes.
    Get,
    /// The same, which a page's script fetches by itself.
    Renew,
    /// To be told of news.
    Listen,
    /// To be signed in with this token.
    SignIn(String),
    SignOut,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) act: Act,
    pub(super) path: String,
    pub(super) query: String,
    /// What the cookie says, as far as it is a session's.
    pub(super) session: Option<Secret>,
}

/// Reads a request to who is reached so.
pub(super) fn read(stream: &mut impl Read, reached: &Reached) -> io::Result<Result<Request, Refusal>> {
    let outcome = http::read(stream, |head| judge(head, reached))?;
    Ok(outcome.map(|(mut request, body)| {
        if let Act::SignIn(token) = &mut request.act {
            *token = value(str::from_utf8(&body).unwrap_or_default(), "token").unwrap_or_default();
        }
        request
    }))
}

/// The request that a head makes, and the length of the body behind it.
fn judge(head: &Head<'_>, reached: &Reached) -> Result<(Request, usize), Refusal> {
    let host = head.one("host")?.unwrap_or_default();
    if !reached.is(host) {
        return Err(Refusal::Stranger);
    }
    if head.target.len() > TARGET_BYTES_MAX {
        return Err(Refusal::TooLong);
    }
    let (path, query) = head.target.split_once('?').unwrap_or((head.target, ""));
    let act = match (head.method, path) {
        ("GET", NEWS) => Act::Listen,
        ("GET", _) if head.one("sec-fetch-dest")? == Some(OF_SCRIPT) => Act::Renew,
        ("GET", _) => Act::Get,
        ("POST", SIGN_IN) => Act::SignIn(String::new()),
        ("POST", SIGN_OUT) => Act::SignOut,
        _ => return Err(Refusal::Method),
    };
    if act != Act::Get && !is_of_own_page(head, host, reached)? {
        return Err(Refusal::CrossSite);
    }
    // Pages of others on this machine are of the same site, and a browser sends the cookie for what
    // they show.
    if act == Act::Listen && head.one("sec-fetch-dest")?.is_some_and(|kind| kind != OF_SCRIPT) {
        return Err(Refusal::NoStream);
    }
    let most = if head.method == "GET" { 0 } else { BODY_BYTES_MAX };
    let body_len = head.body_len()?.unwrap_or(0);
    if body_len > most {
        return Err(Refusal::TooLong);
    }
    let session = head.one("cookie")?.and_then(|cookies| session(cookies, reached.cookie()));
    Ok((Request { act, path: path.to_owned(), query: query.to_owned(), session }, body_len))
}

/// Whether a page of this server sent it, as far as the browser says. No page can make up
/// `Sec-Fetch-Site` (Fetch Metadata), and behind a proxy with TLS the browser's origin is the proxy's:
/// the origin decides only where a browser says nothing else.
fn is_of_own_page(head: &Head<'_>, host: &str, reached: &Reached) -> Result<bool, Refusal> {
    let origin = head.one("origin")?;
    Ok(match head.one("sec-fetch-site")? {
        Some(site) => matches!(site, "same-origin" | "none"),
        None => origin.is_none_or(|origin| origin.strip_prefix(reached.scheme()).is_some_and(|name| name == host)),
    })
}

fn session(cookies: &str, own: &str) -> Option<Secret> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    Secret::parse(pairs.find(|(name, _)| *name == own)?.1)
}

/// The value of a field of a form or of a query, decoded; none where it is not there.
pub(super) fn value(form: &str, name: &str) -> Option<String> {
    let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    Some(decode(pairs.find(|(field, _)| *field == name)?.1))
}

/// What percent signs and plus signs stand for; what stands for nothing stays.
fn decode(text: &str) -> String {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let pair = (digit(bytes.get(at + 1)), digit(bytes.get(at + 2)));
        match (bytes[at], pair) {
            (b'%', (Some(high), Some(low))) => {
                decoded.push(high << 4 | low);
                at += 2;
            }
            (b'+', _) => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// `text` as a value in a query.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// An answer that has an end.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub(super) status: &'static str,
    pub(super) kind: &'static str,
    pub(super) body: Vec<u8>,
    /// Further fields, each with its end.
    pub(super) fields: String,
}

impl Response {
    pub(super) fn page(status: &'static str, html: String) -> Response {
        Response { status, kind: "text/html; charset=utf-8", body: html.into_bytes(), fields: String::new() }
    }

    /// To another page, with a cookie.
    pub(super) fn moved(to: &str, cookie: &str) -> Response {
        let fields = format!("Location: {to}\r\n{cookie}\r\n");
        Response { status: "303 See Other", kind: "text/plain; charset=utf-8", body: Vec::new(), fields }
    }

    pub(super) fn write(&self, stream: &mut impl Write, reached: &Reached) -> io::Result<()> {
        let fields = format!("{SAFETY}{}{}", reached.transport(), self.fields);
        http::write(stream, self.status, self.kind, &fields, &self.body)
    }
}

/// The field that gives a browser its session.
pub(super) fn cookie_of(session: &Secret, reached: &Reached) -> String {
    format!("Set-Cookie: {}={}{}", reached.cookie(), session.text().as_str(), reached.cookie_terms())
}

/// The field that takes it away.
pub(super) fn cookie_gone(reached: &Reached) -> String {
    let nothing = "-".repeat(SECRET_TEXT_LEN);
    format!("Set-Cookie: {}={nothing}{}; Max-Age=0", reached.cookie(), reached.cookie_terms())
}

/// The head of an answer that goes on as long as somebody listens.
pub(super) fn write_stream_head(stream: &mut impl Write, reached: &Reached) -> io::Result<()> {
    let fields = format!("{SAFETY}{}", reached.transport());
    http::write_head(stream, "200 OK", "text/event-stream", &fields, None)
}
