//! As much of HTTP/1.1 as a browser needs: one request, one answer, and the end of the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;

use super::refusal::Refusal;
use super::tokens::{SECRET_TEXT_LEN, Secret};

/// Longest head of a request, in bytes: browsers send much of themselves.
pub(super) const HEAD_BYTES_MAX: usize = 8192;
/// Most fields in it.
const FIELDS_MAX: usize = 64;
/// Longest path with its query.
const TARGET_BYTES_MAX: usize = 1024;
/// Longest body: the form with a token.
const BODY_BYTES_MAX: usize = 256;
/// The name of the cookie.
pub(super) const COOKIE: &str = "ringwall-console";
/// Where a link leads, where its form goes, and what ends a session.
pub(super) const SIGN_IN: &str = "/sign-in";
pub(super) const SIGN_OUT: &str = "/sign-out";
/// Nothing but what this server itself sent is run, shown or asked for, and nobody frames it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What a request wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// A page, and nothing changes.
    Get,
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

/// What a head says, and the length of the body behind it.
struct Head {
    request: Request,
    body_at: usize,
    body_len: usize,
}

/// Reads a request.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Result<Request, Refusal>> {
    let mut bytes = Vec::new();
    let mut head = loop {
        if !more(stream, &mut bytes, HEAD_BYTES_MAX)? {
            return Ok(Err(Refusal::Malformed));
        }
        match parse(&bytes) {
            Some(Ok(head)) => break head,
            Some(Err(refusal)) => return Ok(Err(refusal)),
            None if bytes.len() >= HEAD_BYTES_MAX => return Ok(Err(Refusal::TooLong)),
            None => {}
        }
    };
    let whole = head.body_at + head.body_len;
    while bytes.len() < whole {
        if !more(stream, &mut bytes, whole)? {
            return Ok(Err(Refusal::Malformed));
        }
    }
    if let Act::SignIn(token) = &mut head.request.act {
        let body = str::from_utf8(&bytes[head.body_at..whole]).unwrap_or_default();
        *token = value(body, "token").unwrap_or_default();
    }
    Ok(Ok(head.request))
}

/// Reads on, to `most` and a part; whether there was more.
fn more(stream: &mut impl Read, bytes: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let mut part = [0; 2048];
    let room = part.len().min(most.saturating_sub(bytes.len()).max(1));
    loop {
        match stream.read(&mut part[..room]) {
            Ok(count) => {
                bytes.extend_from_slice(&part[..count]);
                return Ok(count > 0);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// None for a head that goes on.
fn parse(bytes: &[u8]) -> Option<Result<Head, Refusal>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Err(httparse::Error::TooManyHeaders) => Some(Err(Refusal::TooLong)),
        Err(_) => Some(Err(Refusal::Malformed)),
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(at)) => Some(judge(&request, at)),
    }
}

/// The fields of a head.
struct Fields<'a>(&'a [httparse::Header<'a>]);

impl Fields<'_> {
    /// The value of a field that may be there once.
    fn one(&self, name: &str) -> Result<Option<&str>, Refusal> {
        let mut found = self.0.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some(field), None) => str::from_utf8(field.value).map(Some).map_err(|_| Refusal::Malformed),
            (Some(_), Some(_)) => Err(Refusal::Malformed),
        }
    }
}

fn judge(request: &httparse::Request<'_, '_>, body_at: usize) -> Result<Head, Refusal> {
    let fields = Fields(request.headers);
    let target = request.path.unwrap_or_default();
    let host = fields.one("host")?.unwrap_or_default();
    if !is_this_machine_alone(host) {
        return Err(Refusal::Stranger);
    }
    if target.len() > TARGET_BYTES_MAX {
        return Err(Refusal::TooLong);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let act = match (request.method.unwrap_or_default(), path) {
        ("GET", _) => Act::Get,
        ("POST", SIGN_IN) => Act::SignIn(String::new()),
        ("POST", SIGN_OUT) => Act::SignOut,
        _ => return Err(Refusal::Method),
    };
    if act != Act::Get && !is_of_own_page(&fields, host)? {
        return Err(Refusal::CrossSite);
    }
    let body_len = body_len(&fields, &act)?;
    let session = fields.one("cookie")?.and_then(session);
    let request = Request { act, path: path.to_owned(), query: query.to_owned(), session };
    Ok(Head { request, body_at, body_len })
}

/// An address of the loopback interface, or localhost, with any port. A name that an attacker's
/// server resolves to this machine is none of these.
fn is_this_machine_alone(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_port && (name.eq_ignore_ascii_case("localhost") || is_loopback)
}

/// Whether a page of this server sent it, as far as the browser says. No page can make up
/// `Sec-Fetch-Site` (Fetch Metadata), and behind a proxy with TLS the browser's origin is the proxy's:
/// the origin decides only where a browser says nothing else.
fn is_of_own_page(fields: &Fields<'_>, host: &str) -> Result<bool, Refusal> {
    let origin = fields.one("origin")?;
    Ok(match fields.one("sec-fetch-site")? {
        Some(site) => matches!(site, "same-origin" | "none"),
        None => origin.is_none_or(|origin| origin.strip_prefix("http://").is_some_and(|name| name == host)),
    })
}

/// One way alone to say how long it is, and said once: no two readers may see different requests.
fn body_len(fields: &Fields<'_>, act: &Act) -> Result<usize, Refusal> {
    if fields.one("transfer-encoding")?.is_some() {
        return Err(Refusal::Malformed);
    }
    let len = match fields.one("content-length")? {
        None => 0,
        Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().unwrap_or(usize::MAX)
        }
        Some(_) => return Err(Refusal::Malformed),
    };
    let most = if *act == Act::Get { 0 } else { BODY_BYTES_MAX };
    if len > most { Err(Refusal::TooLong) } else { Ok(len) }
}

fn session(cookies: &str) -> Option<Secret> {
    let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    Secret::parse(pairs.find(|(name, _)| *name == COOKIE)?.1)
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
    /// Further fields, each whole.
    pub(super) fields: Vec<String>,
}

impl Response {
    pub(super) fn page(status: &'static str, html: String) -> Response {
        Response { status, kind: "text/html; charset=utf-8", body: html.into_bytes(), fields: Vec::new() }
    }

    /// To another page, with a cookie.
    pub(super) fn moved(to: &str, cookie: &str) -> Response {
        let fields = vec![format!("Location: {to}"), cookie.to_owned()];
        Response { status: "303 See Other", kind: "text/plain; charset=utf-8", body: Vec::new(), fields }
    }

    pub(super) fn write(&self, stream: &mut impl Write) -> io::Result<()> {
        let length = format!("Content-Length: {}", self.body.len());
        write_head(stream, self.status, self.kind, self.fields.iter().chain([&length]))?;
        stream.write_all(&self.body)?;
        stream.flush()
    }
}

/// The field that gives a browser its session.
pub(super) fn cookie_of(session: &Secret) -> String {
    format!("Set-Cookie: {COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", session.text().as_str())
}

/// The field that takes it away.
pub(super) fn cookie_gone() -> String {
    format!("Set-Cookie: {COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", "-".repeat(SECRET_TEXT_LEN))
}

/// The head of an answer that goes on as long as somebody listens.
pub(super) fn write_stream_head(stream: &mut impl Write) -> io::Result<()> {
    write_head(stream, "200 OK", "text/event-stream", [].iter())?;
    stream.flush()
}

/// `same-origin`: under `no-referrer` a browser sends its own forms with `Origin: null` (Fetch, section
/// "append a request Origin header").
fn write_head<'a>(
    stream: &mut impl Write,
    status: &str,
    kind: &str,
    fields: impl Iterator<Item = &'a String>,
) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: {POLICY}\r\nReferrer-Policy: same-origin\r\nX-Frame-Options: DENY\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Connection: close\r\n"
    );
    fields.for_each(|field| {
        head.push_str(field);
        head.push_str("\r\n");
    });
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())
}
