//! As much of HTTP/1.1 as a small server needs: one request, one answer, and the end of the
//! connection.

use std::io::{self, ErrorKind, Read, Write};

/// Longest head of a request, in bytes: browsers send much of themselves.
pub(crate) const HEAD_BYTES_MAX: usize = 8192;
/// Most fields in it.
pub(crate) const FIELDS_MAX: usize = 64;

/// Why it is no request, whoever it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Malformed,
    TooLong,
    /// It says its length in another way than `Content-Length`.
    OtherLength,
}

/// What stands before the body.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    fields: &'a [httparse::Header<'a>],
}

impl Head<'_> {
    /// The value of a field that may be there once.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut found = self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (None, _) => Ok(None),
            (Some(field), None) => str::from_utf8(field.value).map(Some).map_err(|_| Fault::Malformed),
            (Some(_), Some(_)) => Err(Fault::Malformed),
        }
    }

    /// The values of a field that is a list, however often it is there.
    pub(crate) fn all(&self, name: &str) -> String {
        let found = self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        found.filter_map(|field| str::from_utf8(field.value).ok()).collect::<Vec<_>>().join(",")
    }

    /// How long the body is, where it says so. There is one way alone to say that, and it is said
    /// once: no two readers may see different requests. A number that does not fit is as long as
    /// anything may be.
    pub(crate) fn body_len(&self) -> Result<Option<usize>, Fault> {
        if self.fields.iter().any(|field| field.name.eq_ignore_ascii_case("transfer-encoding")) {
            return Err(Fault::OtherLength);
        }
        match self.one("content-length")? {
            None => Ok(None),
            Some(text) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Some(text.parse().unwrap_or(usize::MAX)))
            }
            Some(_) => Err(Fault::Malformed),
        }
    }
}

/// Reads a request: what `judge` makes of its head, which says how long a body it takes, and the
/// body. What follows the body is never read as anything, so an answer does not depend on whether
/// TCP delivered it with the request or later.
///
/// # Errors
/// The stream's own.
pub(crate) fn read<T, R: From<Fault>>(
    stream: &mut impl Read,
    judge: impl Fn(&Head<'_>) -> Result<(T, usize), R>,
) -> io::Result<Result<(T, Vec<u8>), R>> {
    let mut bytes = Vec::new();
    let (judged, body_at) = loop {
        if !more(stream, &mut bytes, HEAD_BYTES_MAX)? {
            return Ok(Err(Fault::Malformed.into()));
        }
        match parse(&bytes, &judge) {
            Some(outcome) => break outcome,
            None if bytes.len() >= HEAD_BYTES_MAX => return Ok(Err(Fault::TooLong.into())),
            None => {}
        }
    };
    let (judged, body_len) = match judged {
        Ok(judged) => judged,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let whole = body_at + body_len;
    while bytes.len() < whole {
        if !more(stream, &mut bytes, whole)? {
            return Ok(Err(Fault::Malformed.into()));
        }
    }
    bytes.truncate(whole);
    Ok(Ok((judged, bytes.split_off(body_at))))
}

/// Reads on, to `most` and a part; whether there was more.
fn more(stream: &mut impl Read, bytes: &mut Vec<u8>, most: usize) -> io::Result<bool> {
    let mut part = [0; 4096];
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

/// What comes of a head, and where the body begins; none for one that goes on.
fn parse<T, R: From<Fault>>(bytes: &[u8], judge: impl Fn(&Head<'_>) -> Result<T, R>) -> Option<(Result<T, R>, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Err(httparse::Error::TooManyHeaders) => Some((Err(Fault::TooLong.into()), 0)),
        Err(_) => Some((Err(Fault::Malformed.into()), 0)),
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(body_at)) => {
            let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
            Some((judge(&Head { method, target, fields: request.headers }), body_at))
        }
    }
}

/// The name of a host without its port, an IPv6 address without its brackets; none for what is no
/// name.
pub(crate) fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    is_port.then_some(name)
}

/// Writes an answer. `fields` are further lines of its head, each with its end.
///
/// # Errors
/// The stream's own.
pub(crate) fn write(stream: &mut impl Write, status: &str, kind: &str, fields: &str, body: &[u8]) -> io::Result<()> {
    write_head(stream, status, kind, fields, Some(body.len()))?;
    stream.write_all(body)?;
    stream.flush()
}

/// Writes the head alone, of an answer that has no body or, without a length, no end.
///
/// # Errors
/// The stream's own.
pub(crate) fn write_head(
    stream: &mut impl Write,
    status: &str,
    kind: &str,
    fields: &str,
    len: Option<usize>,
) -> io::Result<()> {
    let len = len.map(|len| format!("Content-Length: {len}\r\n")).unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{len}Cache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\n{fields}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())
}
