//! Syslog in the form of RFC 5424, to a socket of this machine or over UDP (RFC 5426).

use std::io;
use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use crate::config::SyslogAddress;
use crate::protocol::attacks::Attack;

/// Facility authpriv: who may be what is private (RFC 5424, section 6.2.1).
const FACILITY: u8 = 10;
/// The number that RFC 5612 reserves for examples; this project has none of its own.
const ENTERPRISE: &str = "32473";

/// The way to a syslog daemon.
pub(super) enum Syslog {
    Socket(UnixDatagram),
    Udp(UdpSocket),
}

impl Syslog {
    pub(super) fn open(address: &SyslogAddress) -> io::Result<Syslog> {
        match address {
            SyslogAddress::Socket(name) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(name)?;
                socket.set_nonblocking(true)?;
                Ok(Syslog::Socket(socket))
            }
            SyslogAddress::Udp(address) => {
                let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                Ok(Syslog::Udp(socket))
            }
        }
    }

    pub(super) fn send(&self, text: &str) -> io::Result<()> {
        match self {
            Syslog::Socket(socket) => socket.send(text.as_bytes()),
            Syslog::Udp(socket) => socket.send(text.as_bytes()),
        }
        .map(drop)
    }
}

/// One attack as a message.
pub(super) fn message(attack: &Attack) -> String {
    let priority = FACILITY * 8 + attack.sort.priority;
    let (time, host, process) = (&attack.span.last, word(&attack.place.host), std::process::id());
    let count = attack.count.to_string();
    let fields = [
        ("kind", Some(&attack.sort.kind)),
        ("phase", Some(&attack.phase)),
        ("interface", Some(&attack.place.interface)),
        ("reason", Some(&attack.reason)),
        ("count", Some(&count)),
        ("first", Some(&attack.span.first)),
        ("sourceMac", attack.source.mac.as_ref()),
        ("sourceIp", attack.source.ip.as_ref()),
        ("claimedName", attack.claimed.name.as_ref()),
        ("claimedIp", attack.claimed.ip.as_ref()),
        ("claimedMac", attack.claimed.mac.as_ref()),
    ];
    let fields = fields.iter().filter_map(|(name, value)| Some(format!(" {name}=\"{}\"", escaped(value.as_ref()?))));
    let fields: String = fields.collect();
    let kind = word(&attack.sort.kind);
    format!("<{priority}>1 {time} {host} ringwall {process} {kind} [ringwall@{ENTERPRISE}{fields}] {}", attack.sentence)
}

/// A field of the header: printable, without blanks; a dash stands for none.
fn word(text: &str) -> String {
    let word: String = text.chars().filter(char::is_ascii_graphic).take(255).collect();
    if word.is_empty() { "-".to_owned() } else { word }
}

/// Three letters are special within quotes (RFC 5424, section 6.3.3).
fn escaped(value: &str) -> String {
    value
        .chars()
        .flat_map(|letter| matches!(letter, '"' | '\\' | ']').then_some('\\').into_iter().chain([letter]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::process::tests::attack;
    use super::*;

    #[test]
    fn a_message_has_the_form_of_rfc_5424() {
        let text = message(&attack());
        let start = format!(
            "<84>1 2026-09-21T14:13:20.000Z desk-10 ringwall {} arp-spoofing [ringwall@32473 ",
            std::process::id()
        );
        assert!(text.starts_with(&start), "{text}");
        assert!(text.contains(" sourceMac=\"02:00:00:00:00:66\"") && text.contains(" count=\"200\""), "{text}");
        assert!(text.contains("] 02:00:00:00:00:66 says by ARP"), "{text}");
    }

    #[test]
    fn what_a_name_contains_ends_no_field() {
        assert_eq!(escaped("a\"b\\c]d"), "a\\\"b\\\\c\\]d");
        assert_eq!((word("a b\n"), word(" ")), ("ab".to_owned(), "-".to_owned()));
    }
}
