//! As much of HTTP/1.1 as a host needs: one request, one answer, and the end of the connection.

use std::io::{self, ErrorKind, Read, Write};

use authority::enrolment::by_service::APPLICATION_LEN_MAX;

use crate::report::BYTES_MAX;

/// Longest head of a request, in bytes.
const HEAD_BYTES_MAX: usize = 4096;
/// Most fields in it.
const FIELDS_MAX: usize = 32;

/// What a host wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// To report this.
    Report(Vec<u8>),
    Policy,
    Revoked,
    /// Another certificate, by this request for it.
    Renewal(Vec<u8>),
    /// What a token is for.
    Enrolment(Vec<u8>),
}

/// Why it is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadRequest {
    Malformed,
    Elsewhere,
    Method,
    /// It does not say how long it is.
    NoLength,
    TooLong,
}

impl BadRequest {
    pub(super) fn word(self) -> &'static str {
        match self {
            BadRequest::Malformed => "request-malformed",
            BadRequest::Elsewhere => "request-elsewhere",
            BadRequest::Method => "request-method",
            BadRequest::NoLength => "request-without-length",
            BadRequest::TooLong => "request-too-long",
        }
    }

    pub(super) fn status(self) -> &'static str {
        match self {
            BadRequest::Malformed => "400 Bad Request",
            BadRequest::Elsewhere => "404 Not Found",
            BadRequest::Method => "405 Method Not Allowed",
            BadRequest::NoLength => "411 Length Required",
            BadRequest::TooLong => "413 Content Too Large",
        }
    }
}

/// What a head asks for, and the length of the body behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    path: Place,
    body_at: usize,
    body_len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Report,
    Policy,
    Revoked,
    Renewal,
    Enrolment,
}

impl Place {
    /// The longest body that is sent there; none where nothing is.
    fn body_max(self) -> Option<usize> {
        match self {
            Place::Report => Some(BYTES_MAX),
            Place::Renewal | Place::Enrolment => Some(APPLICATION_LEN_MAX),
            Place::Policy | Place::Revoked => None,
        }
    }
}

/// Reads a request.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Result<Wanted, BadRequest>> {
    let mut bytes = Vec::new();
    let head = loop {
        if !more(stream, &mut bytes, HEAD_BYTES_MAX)? {
            return Ok(Err(BadRequest::Malformed));
        }
        match parse(&bytes) {
            Some(Ok(head)) => break head,
            Some(Err(bad)) => return Ok(Err(bad)),
            None if bytes.len() >= HEAD_BYTES_MAX => return Ok(Err(BadRequest::TooLong)),
            None => {}
        }
    };
    let whole = head.body_at + head.body_len;
    while bytes.len() < whole {
        if !more(stream, &mut bytes, whole)? {
            return Ok(Err(BadRequest::Malformed));
        }
    }
    // One request per connection: what follows it is never read as anything, so an answer does
    // not depend on whether TCP delivered it with the request or later.
    bytes.truncate(whole);
    Ok(Ok(match head.path {
        Place::Report => Wanted::Report(bytes.split_off(head.body_at)),
        Place::Policy => Wanted::Policy,
        Place::Revoked => Wanted::Revoked,
        Place::Renewal => Wanted::Renewal(bytes.split_off(head.body_at)),
        Place::Enrolment => Wanted::Enrolment(bytes.split_off(head.body_at)),
    }))
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

/// None for a head that goes on.
fn parse(bytes: &[u8]) -> Option<Result<Head, BadRequest>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Err(httparse::Error::TooManyHeaders) => Some(Err(BadRequest::TooLong)),
        Err(_) => Some(Err(BadRequest::Malformed)),
        Ok(httparse::Status::Partial) => None,
        Ok(httparse::Status::Complete(at)) => Some(judge(&request, at)),
    }
}

fn judge(request: &httparse::Request<'_, '_>, body_at: usize) -> Result<Head, BadRequest> {
    let field = |name: &str| {
        let mut found = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        (found.next(), found.next().is_some())
    };
    let (method, path) = match request.path.unwrap_or_default() {
        crate::report::REPORT_PATH => ("POST", Place::Report),
        crate::report::POLICY_PATH => ("GET", Place::Policy),
        crate::report::REVOKED_PATH => ("GET", Place::Revoked),
        crate::report::RENEWAL_PATH => ("POST", Place::Renewal),
        crate::report::ENROLMENT_PATH => ("POST", Place::Enrolment),
        _ => return Err(BadRequest::Elsewhere),
    };
    if request.method != Some(method) {
        return Err(BadRequest::Method);
    }
    // One way alone to say how long it is, and said once: no two readers may see different
    // requests.
    if field("transfer-encoding").0.is_some() {
        return Err(BadRequest::NoLength);
    }
    let body_len = match field("content-length") {
        (_, true) => return Err(BadRequest::Malformed),
        (None, false) if path.body_max().is_some() => return Err(BadRequest::NoLength),
        (None, false) => 0,
        (Some(field), false) => length(field.value).ok_or(BadRequest::Malformed)?,
    };
    if body_len > path.body_max().unwrap_or(0) {
        Err(BadRequest::TooLong)
    } else {
        Ok(Head { path, body_at, body_len })
    }
}

/// Digits and nothing else; what does not fit is as long as anything may be.
fn length(value: &[u8]) -> Option<usize> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(value).ok()?.parse().ok().or(Some(usize::MAX))).flatten()
}

/// Answers.
pub(super) fn answer(stream: &mut impl Write, status: &str, kind: &str, body: &[u8]) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<Wanted, BadRequest> {
        read(&mut text.as_bytes()).expect("read")
    }

    #[test]
    fn what_a_host_asks_is_read() {
        let report = "POST /v1/report HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(asked(report), Ok(Wanted::Report(b"{}".to_vec())));
        assert_eq!(asked("GET /v1/policy HTTP/1.1\r\n\r\n"), Ok(Wanted::Policy));
        assert_eq!(asked("GET /v1/revoked HTTP/1.1\r\nContent-Length: 0\r\n\r\n"), Ok(Wanted::Revoked));
    }

    #[test]
    fn what_follows_a_request_is_no_part_of_it() {
        let report = "POST /v1/report HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}{}";
        assert_eq!(asked(report), Ok(Wanted::Report(b"{}".to_vec())));
        let second = "GET /v1/policy HTTP/1.1\r\n\r\nGET /v1/revoked HTTP/1.1\r\n\r\n";
        assert_eq!(asked(second), Ok(Wanted::Policy));
        assert_eq!(asked("GET /v1/revoked HTTP/1.1\r\n\r\na"), Ok(Wanted::Revoked));
    }

    #[test]
    fn what_is_no_request_or_says_its_length_in_two_ways_is_refused_by_name() {
        let long = format!("GET /v1/policy HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(HEAD_BYTES_MAX));
        let many = format!("GET /v1/policy HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELDS_MAX + 1));
        let too_long = format!("POST /v1/report HTTP/1.1\r\nContent-Length: {}\r\n\r\n", BYTES_MAX + 1);
        let endless = format!("POST /v1/report HTTP/1.1\r\nContent-Length: {}\r\n\r\n", "9".repeat(40));
        for (text, bad) in [
            ("\x16\x03\x01\x02\0", BadRequest::Malformed),
            ("GET /v1/policy", BadRequest::Malformed),
            ("GET / HTTP/1.1\r\n\r\n", BadRequest::Elsewhere),
            ("GET /v1/report HTTP/1.1\r\n\r\n", BadRequest::Method),
            ("POST /v1/policy HTTP/1.1\r\n\r\n", BadRequest::Method),
            ("POST /v1/report HTTP/1.1\r\n\r\n", BadRequest::NoLength),
            ("POST /v1/report HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BadRequest::NoLength),
            ("POST /v1/report HTTP/1.1\r\nContent-Length: +2\r\n\r\n{}", BadRequest::Malformed),
            ("POST /v1/report HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", BadRequest::Malformed),
            ("POST /v1/report HTTP/1.1\r\nContent-Length: 3\r\n\r\n{}", BadRequest::Malformed),
            ("GET /v1/policy HTTP/1.1\r\nContent-Length: 1\r\n\r\na", BadRequest::TooLong),
            (&long, BadRequest::TooLong),
            (&many, BadRequest::TooLong),
            (&too_long, BadRequest::TooLong),
            (&endless, BadRequest::TooLong),
        ] {
            assert_eq!(asked(text), Err(bad), "{}", &text[..text.len().min(80)]);
        }
    }

    /// A request, as a pattern.
    const REQUEST: &str = "(GET|POST) /v1/(report|policy|revoked|renewal|enrolment) HTTP/1.1\r\n\
        (Content-Length: [0-9]{1,3}\r\n)?\r\n[a-z]{0,30}";

    proptest::proptest! {
        /// However it comes in pieces, it is the same request.
        #[test]
        fn pieces_make_no_difference(text in REQUEST, size in 1_usize..50) {
            struct Pieces<'a>(&'a [u8], usize);
            impl Read for Pieces<'_> {
                fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                    let count = self.1.min(self.0.len()).min(bytes.len());
                    bytes[..count].copy_from_slice(&self.0[..count]);
                    self.0 = &self.0[count..];
                    Ok(count)
                }
            }
            let of_pieces = read(&mut Pieces(text.as_bytes(), size)).expect("read");
            proptest::prop_assert_eq!(of_pieces, asked(&text));
        }
    }
}
