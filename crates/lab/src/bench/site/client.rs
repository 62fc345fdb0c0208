//! A simulated host: its own key, certificate and address, and the questions that `ringwall report`
//! puts.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use authority::{Request, Site};
use bump::Generator;
use identity::tls::{Credentials, Service};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use serde::Deserialize;
use serde_json::json;
use wire::MacAddress;

use crate::failure::Failure;

/// How long a question may take, as in the program.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Where hosts have their addresses: the upper half of 10.0.0.0/8.
pub(super) const SUBNET: &str = "10.128.0.0/9";

/// One host.
pub(super) struct Client {
    address: Ipv4Addr,
    credentials: Credentials,
    certificate_not_after_unix: u64,
    /// The policy that it has.
    pub(super) policy: u64,
}

/// What the service said, and what it cost on the wire.
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    /// Bytes of TLS both ways.
    pub(super) bytes: u64,
}

/// What is newest of what the site has signed.
#[derive(Deserialize)]
struct Newest {
    policy_version: Option<u64>,
}

impl Client {
    /// Host `number` of `site`; numbers below 2^16.
    pub(super) fn enrol(site: &Site, number: u16, random: &mut Generator) -> Result<Client, Failure> {
        let [high, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(10, 128, high, low);
        let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0]);
        let wrong = |error: &dyn std::fmt::Display| Failure::Unreadable(format!("an identity: {error}"));
        let request = Request::new(&format!("h{number}"), MacAddress([2, 0x10, 0, 0, high, low]), vec![address]);
        let text = request.and_then(|request| site.issue_identity(&request, &mut fill, unix_ms() / 1000));
        let credentials = Credentials::from_pem(&text.map_err(|error| wrong(&error))?, unix_s);
        let credentials = credentials.map_err(|error| wrong(&error))?;
        Ok(Client { address, credentials, certificate_not_after_unix: unix_ms() / 1000 + 86_400, policy: 0 })
    }

    /// Reports, and gives the newest policy's version.
    pub(super) fn report(&self, service: SocketAddr) -> io::Result<(u64, Answer)> {
        let answer = self.ask(service, "/v1/report", Some(self.told().as_bytes()))?;
        let newest: Newest = serde_json::from_slice(&answer.body)?;
        Ok((newest.policy_version.unwrap_or_default(), answer))
    }

    /// Fetches the policy.
    pub(super) fn fetch(&self, service: SocketAddr) -> io::Result<Answer> {
        self.ask(service, "/v1/policy", None)
    }

    /// A host that observes and hears one printer.
    fn told(&self) -> String {
        let now_unix_ms = unix_ms();
        let used = json!({
            "protocol": "tcp/9100", "frames": 7, "last_unix_ms": now_unix_ms,
            "source": "10.0.0.9", "destination": self.address,
        });
        let told = json!({
            "schema": "ringwall-report", "schema_version": 1, "made_unix_ms": now_unix_ms,
            "daemon": {"version": env!("CARGO_PKG_VERSION"), "interface": "eth0", "mode": "cll",
                       "state": "guarding", "way": "in-place", "uptime_s": 60},
            "policy": {"version": self.policy, "migration": "observe"},
            "sealed": 12, "attacks_open": 0, "attacks_opened": 0,
            "certificate_not_after_unix": self.certificate_not_after_unix,
            "breaks": [{"mac": "02:00:00:00:00:09", "uses": [used]}], "breaks_left_out": 0,
        });
        told.to_string()
    }

    fn ask(&self, service: SocketAddr, path: &str, body: Option<&[u8]>) -> io::Result<Answer> {
        let counted = Counted { stream: self.connect(service)?, bytes: 0 };
        let asked = self.credentials.ask(Service::At(service.ip()), counted);
        let mut stream = asked.map_err(io::Error::other)?;
        let (method, content) = (if body.is_some() { "POST" } else { "GET" }, body.unwrap_or_default());
        let length = content.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {service}\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(content)?;
        stream.flush()?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() != ErrorKind::UnexpectedEof || answer.is_empty() => return Err(error),
            _ => {}
        }
        let at = answer.windows(4).position(|end| end == b"\r\n\r\n").ok_or(ErrorKind::InvalidData)? + 4;
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            let said = String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned();
            return Err(io::Error::other(said));
        }
        Ok(Answer { body: answer.split_off(at), bytes: stream.sock.bytes })
    }

    /// A connection from its own address.
    fn connect(&self, service: SocketAddr) -> io::Result<TcpStream> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        bind(&socket, &SocketAddrV4::new(self.address, 0))?;
        connect(&socket, &service)?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(TIME_MAX))?;
        stream.set_write_timeout(Some(TIME_MAX))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// A stream whose bytes are counted, both ways.
struct Counted {
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

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn unix_s() -> Option<u64> {
    Some(unix_ms() / 1000)
}

/// The address at which the service is asked.
pub(super) fn address_of(ip: Ipv4Addr, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(ip), port)
}
