//! The way to the site's service: one question over one connection, TLS with both certificates.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use identity::tls::{self, Credentials, Service};
use identity::token::Token;

use super::forecast::unix_s;
use crate::failure::Failure;
use crate::output::complain;
use crate::randomness;
use crate::serving::Hurried;

/// How long a question may take, all in all.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Longest answer to a host, in bytes: as long as any file of a site may be, and its head.
const ANSWER_BYTES_MAX: u64 = authority::limits::MAX_FILE_LEN + 8192;
const FIELDS_MAX: usize = 32;
/// What HTTP says to who comes too often, or while too many others wait.
const TOO_MANY_REQUESTS: u16 = 429;
/// How long the service tells him to wait. He waits up to twice as long, since others were told the
/// same at the same time.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(2);
/// How long he goes on asking. The service takes no order that was made five minutes ago.
const TURN_TIME_MAX: Duration = Duration::from_secs(60);

/// The service, and how it is reached.
pub(crate) struct Way {
    pub(crate) address: SocketAddr,
    /// Whose certificate it is to show.
    pub(crate) service: Service,
    pub(crate) proof: Proof,
}

/// How who asks proves that he may.
pub(crate) enum Proof {
    /// As a host of the site.
    Certificate(Credentials),
    /// Not here, as a host whose certificate is over: its request says who it is.
    Over(Credentials),
    /// As an operator of it, who hears longer answers.
    Operator(Credentials, u64),
    /// Not here: what he sends has the tag of his token, which also says whom to believe.
    Token(Token),
}

impl Way {
    /// Puts a question; the body of the answer. A body makes it a POST.
    pub(crate) fn ask(&self, path: &str, body: Option<&[u8]>) -> Result<Vec<u8>, Failure> {
        match self.answer(path, body)? {
            (200, body) => Ok(body),
            (status, body) => Err(self.refused(status, &body)),
        }
    }

    /// The same, with whatever status the answer has.
    pub(crate) fn answer(&self, path: &str, body: Option<&[u8]>) -> Result<(u16, Vec<u8>), Failure> {
        let answer = self.exchange(path, body).map_err(|error| self.failed(&words(&error)))?;
        let (status, body) = parse(&answer).ok_or_else(|| self.failed("its answer is none"))?;
        Ok((status, body.to_vec()))
    }

    /// What `ask` gets, for who would rather wait than be told to come later; `heard` is status and body
    /// of the answer. Of what is refused so the service has done nothing, so it may be asked for again.
    pub(crate) fn in_turn<T>(
        &self,
        mut ask: impl FnMut() -> Result<T, Failure>,
        heard: impl Fn(&T) -> (u16, &[u8]),
    ) -> Result<T, Failure> {
        let (since, mut has_waited) = (Instant::now(), false);
        loop {
            let answer = ask()?;
            let (status, said) = heard(&answer);
            if status != TOO_MANY_REQUESTS || since.elapsed() >= TURN_TIME_MAX {
                return Ok(answer);
            }
            if !has_waited {
                let why = shown(said);
                complain(format_args!("the site's service at {} asks to come later ({why}); waiting", self.address));
            }
            has_waited = true;
            sleep(RETRY_AFTER.mul_f64(1.0 + f64::from(randomness::generator()?.bytes::<1>()[0]) / 256.0));
        }
    }

    /// What there is to say of an answer that gives nothing.
    pub(crate) fn refused(&self, status: u16, body: &[u8]) -> Failure {
        self.failed(&format!("refused ({status}): {}", shown(body)))
    }

    fn failed(&self, what: &str) -> Failure {
        let remedy = "see `ringwall site hosts` and the log of ringwall-site on the authority's machine";
        Failure::new(format!("the site's service at {}: {what}; {remedy}", self.address))
    }

    fn exchange(&self, path: &str, body: Option<&[u8]>) -> io::Result<Vec<u8>> {
        let stream = TcpStream::connect_timeout(&self.address, TIME_MAX)?;
        // Its proof, head and body are small writes behind each other; see the service's listener.
        stream.set_nodelay(true)?;
        let (stream, service) = (Hurried::new(stream, TIME_MAX), self.service.clone());
        let stream = match &self.proof {
            Proof::Certificate(credentials) | Proof::Operator(credentials, _) => credentials.ask(service, stream),
            Proof::Over(credentials) => credentials.ask_nameless(service, stream),
            Proof::Token(token) => tls::ask_with_token(token, service, unix_s, stream),
        };
        let mut stream = stream.map_err(io::Error::other)?;
        let (method, content) = (if body.is_some() { "POST" } else { "GET" }, body.unwrap_or_default());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            content.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(content)?;
        stream.flush()?;
        let mut answer = Vec::new();
        let most = if let Proof::Operator(_, most) = self.proof { most } else { ANSWER_BYTES_MAX };
        match stream.take(most).read_to_end(&mut answer) {
            // Its length says whether it is whole; the end of the connection need not be proved.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof && !answer.is_empty() => Ok(answer),
            read => read.map(|_| answer),
        }
    }
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("no answer within {} s", TIME_MAX.as_secs()),
        _ => error.to_string(),
    }
}

/// The status and the body, if the body is as long as the head says.
fn parse(answer: &[u8]) -> Option<(u16, &[u8])> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(at)) = response.parse(answer) else { return None };
    let status = response.code?;
    let field = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"))?;
    let length: usize = str::from_utf8(field.value).ok()?.trim().parse().ok()?;
    let body = answer.get(at..)?;
    (body.len() == length).then_some((status, body))
}

/// What it says of a refusal, as a terminal may have it.
fn shown(body: &[u8]) -> String {
    let text = body.iter().take(200).map(|byte| char::from(*byte));
    text.map(|one| if one.is_ascii_graphic() { one } else { ' ' }).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_if_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(parse(whole), Some((200, &b"abc"[..])));
        assert_eq!(parse(&whole[..whole.len() - 1]), None);
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\n\r\nabc"), None, "of any length");
        assert_eq!(parse(b"\x15\x03\x03\0\x02"), None);
        assert_eq!(shown(b"no\x1b[2J\n"), "no [2J");
    }
}
