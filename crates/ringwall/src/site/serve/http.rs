//! What hosts ask for.

use std::io::{self, Read};

use authority::enrolment::by_service::APPLICATION_LEN_MAX;
use identity::limits::MAX_PEM_LEN;

use crate::report::BYTES_MAX;
use crate::serving::http::{self, Fault, Head};

/// What a host wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// To report this.
    Report(Vec<u8>),
    Policy,
    Revoked,
    /// To bring this, which the site has signed.
    Newer(Vec<u8>),
    /// Another certificate, by this request for it.
    Renewal(Vec<u8>),
    /// What a token is for.
    Enrolment(Vec<u8>),
    /// What an operator orders.
    Order(Vec<u8>),
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

impl From<Fault> for BadRequest {
    fn from(fault: Fault) -> BadRequest {
        match fault {
            Fault::Malformed => BadRequest::Malformed,
            Fault::TooLong => BadRequest::TooLong,
            Fault::OtherLength => BadRequest::NoLength,
        }
    }
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Report,
    Policy,
    Revoked,
    Newer,
    Renewal,
    Enrolment,
    Order,
}

impl Place {
    pub(super) const ALL: [Place; 7] =
        [Place::Report, Place::Policy, Place::Revoked, Place::Newer, Place::Renewal, Place::Enrolment, Place::Order];

    /// By which method, and where.
    pub(super) fn target(self) -> (&'static str, &'static str) {
        match self {
            Place::Report => ("POST", crate::report::REPORT_PATH),
            Place::Policy => ("GET", crate::report::POLICY_PATH),
            Place::Revoked => ("GET", crate::report::REVOKED_PATH),
            Place::Newer => ("POST", crate::report::NEWER_PATH),
            Place::Renewal => ("POST", crate::report::RENEWAL_PATH),
            Place::Enrolment => ("POST", crate::report::ENROLMENT_PATH),
            Place::Order => ("POST", crate::report::ORDER_PATH),
        }
    }

    /// The longest body that is sent there; none where nothing is.
    pub(super) fn body_max(self) -> Option<usize> {
        match self {
            Place::Report => Some(BYTES_MAX),
            Place::Newer => Some(MAX_PEM_LEN),
            Place::Renewal | Place::Enrolment | Place::Order => Some(APPLICATION_LEN_MAX),
            Place::Policy | Place::Revoked => None,
        }
    }
}

/// Reads a request.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Result<Wanted, BadRequest>> {
    Ok(http::read(stream, judge)?.map(|(place, body)| match place {
        Place::Report => Wanted::Report(body),
        Place::Policy => Wanted::Policy,
        Place::Revoked => Wanted::Revoked,
        Place::Newer => Wanted::Newer(body),
        Place::Renewal => Wanted::Renewal(body),
        Place::Enrolment => Wanted::Enrolment(body),
        Place::Order => Wanted::Order(body),
    }))
}

/// What a head asks for, and the length of the body behind it.
fn judge(head: &Head<'_>) -> Result<(Place, usize), BadRequest> {
    let place = Place::ALL.into_iter().find(|place| place.target().1 == head.target);
    let place = place.ok_or(BadRequest::Elsewhere)?;
    if head.method != place.target().0 {
        return Err(BadRequest::Method);
    }
    let body_len = match (head.body_len()?, place.body_max()) {
        (None, Some(_)) => return Err(BadRequest::NoLength),
        (len, _) => len.unwrap_or(0),
    };
    if body_len > place.body_max().unwrap_or(0) { Err(BadRequest::TooLong) } else { Ok((place, body_len)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serving::http::{FIELDS_MAX, HEAD_BYTES_MAX};

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
    const REQUEST: &str = "(GET|POST) /v1/(report|policy|revoked|newer|renewal|enrolment|order) HTTP/1.1\r\n\
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
