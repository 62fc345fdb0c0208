//! One question to the service over one connection, with TLS, and what it cost on the wire.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use identity::tls::Asked;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect as connect_socket, socket_with};

/// How long a question may take, as in the program.
const TIME_MAX: Duration = Duration::from_secs(20);

/// What the service said.
pub(super) struct Answer {
    status: String,
    pub(super) body: Vec<u8>,
    /// Bytes of TLS both ways.
    pub(super) bytes: u64,
}

impl Answer {
    /// The answer, if it gives what was asked for.
    pub(super) fn good(self) -> io::Result<Answer> {
        if self.status.starts_with("HTTP/1.1 200 ") { Ok(self) } else { Err(io::Error::other(self.status)) }
    }

    /// Whether one is to ask again a moment later.
    pub(super) fn is_for_later(&self) -> bool {
        self.status.starts_with("HTTP/1.1 429 ")
    }
}

/// A connection from an address of one's own.
pub(super) fn connect(address: Ipv4Addr, service: SocketAddr) -> io::Result<Counted> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrV4::new(address, 0))?;
    connect_socket(&socket, &service)?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIME_MAX))?;
    stream.set_write_timeout(Some(TIME_MAX))?;
    stream.set_nodelay(true)?;
    Ok(Counted { stream, bytes: 0 })
}

/// Puts a question; a body makes it a POST.
pub(super) fn exchange(mut stream: Asked<Counted>, path: &str, body: Option<&[u8]>) -> io::Result<Answer> {
    let (method, content) = (if body.is_some() { "POST" } else { "GET" }, body.unwrap_or_default());
    let length = content.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: site\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(content)?;
    stream.flush()?;
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof || answer.is_empty() => return Err(error),
        _ => {}
    }
    let at = answer.windows(4).position(|end| end == b"\r\n\r\n").ok_or(ErrorKind::InvalidData)? + 4;
    let status = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
    Ok(Answer { status, body: answer.split_off(at), bytes: stream.sock.bytes })
}

/// A stream whose bytes are counted, both ways.
pub(super) struct Counted {
    stream: TcpStream,
    bytes: u64,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes).inspect(|read| self.bytes += *read as u64)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes).inspect(|written| self.bytes += *written as u64)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
