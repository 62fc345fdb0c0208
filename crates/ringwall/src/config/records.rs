//! Section `[records]`: where attacks are told.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Smallest file of records, in bytes: one of them always fits.
const FILE_BYTES_MIN: u64 = 65_536;
/// Smallest history, in bytes: some hundred rows.
const HISTORY_BYTES_MIN: u64 = 262_144;
/// Longest history.
const HISTORY_DAYS_MAX: u32 = 3650;
/// Most records of flows in a second: what the recorder's socket takes at once.
const FLOWS_MAX: u32 = 500;
/// Most commands in an hour.
const COMMANDS_MAX: u32 = 3600;

/// Section `[records]`, of hosts and of gateways.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Records {
    /// Whether journald is told with fields, where it starts the daemon.
    pub(crate) journal: bool,
    /// A file of lines in the form of Suricata's EVE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) eve_file: Option<PathBuf>,
    /// When that file makes room for the next; one older one is kept.
    pub(crate) eve_max_bytes: u64,
    /// Connections of a gateway that are over, each with a line in that file: so many in a second
    /// at most.
    pub(crate) flows_per_s: u32,
    /// A socket in the file system, or an address with a port for UDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) syslog: Option<String>,
    /// A shell's command that is run for each attack that opens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) command: Option<String>,
    /// How many of them at most.
    pub(crate) commands_per_hour: u32,
    /// A database of what happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history_file: Option<PathBuf>,
    /// It grows no larger, and keeps nothing that is older.
    pub(crate) history_max_bytes: u64,
    pub(crate) history_days: u32,
    /// Where scrapers are answered: an address of this machine alone with a port, or a socket in
    /// the file system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics_listen: Option<String>,
}

impl Default for Records {
    fn default() -> Self {
        Records {
            journal: true,
            eve_file: None,
            eve_max_bytes: 10 << 20,
            flows_per_s: 0,
            syslog: None,
            command: None,
            commands_per_hour: 12,
            history_file: None,
            history_max_bytes: 50 << 20,
            history_days: 30,
            metrics_listen: None,
        }
    }
}

/// Where a syslog daemon listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SyslogAddress {
    /// A datagram socket in the file system.
    Socket(PathBuf),
    /// Over UDP (RFC 5426).
    Udp(SocketAddr),
}

/// Where scrapers or browsers are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LocalAddress {
    /// A stream socket in the file system.
    Socket(PathBuf),
    /// An address that leads to this machine alone.
    Tcp(SocketAddr),
}

impl LocalAddress {
    /// None for what is neither, or what others could reach.
    pub(crate) fn parse(text: &str) -> Option<LocalAddress> {
        if text.starts_with('/') {
            return Some(LocalAddress::Socket(text.into()));
        }
        let address: SocketAddr = text.parse().ok()?;
        (address.ip().is_loopback() && address.port() > 0).then_some(LocalAddress::Tcp(address))
    }
}

impl Records {
    /// Takes what needs no restart from `read`: a sandbox is not left to listen elsewhere.
    pub(crate) fn follow(&mut self, read: &Records) {
        *self = Records { metrics_listen: self.metrics_listen.take(), ..read.clone() };
    }

    pub(crate) fn check(&self, file: &Path) -> Result<(), Failure> {
        let wrong = |what: String, remedy: &str| Err(Failure::file(file, what, remedy));
        if self.syslog.is_some() && self.syslog_address().is_none() {
            let what = format!("records.syslog = \"{}\"", self.syslog.as_deref().unwrap_or_default());
            return wrong(what, "write \"/dev/log\", or an address and a port such as \"192.0.2.5:514\"");
        }
        if let Some(listen) = self.metrics_listen.as_ref().filter(|text| LocalAddress::parse(text).is_none()) {
            let what = format!("records.metrics_listen = \"{listen}\" is no socket, and no port of this machine alone");
            let remedy = "write \"127.0.0.1:9477\" or \"/run/ringwall/metrics.sock\"; others are let in by a proxy that \
                asks who they are";
            return wrong(what, remedy);
        }
        if self.eve_file.as_ref().is_some_and(|name| !name.is_absolute()) {
            return wrong("records.eve_file is no absolute path".to_owned(), "write /var/log/ringwall/eve.json");
        }
        self.check_history(file)?;
        if self.eve_max_bytes < FILE_BYTES_MIN {
            let what = format!("records.eve_max_bytes = {} is too small", self.eve_max_bytes);
            return wrong(what, &format!("use at least {FILE_BYTES_MIN}"));
        }
        if self.flows_per_s > FLOWS_MAX {
            let what = format!("records.flows_per_s = {} is out of range", self.flows_per_s);
            return wrong(what, &format!("use 0 to {FLOWS_MAX}; what is left out is counted"));
        }
        if self.flows_per_s > 0 && self.eve_file.is_none() {
            return wrong("records.flows_per_s without records.eve_file".to_owned(), "name the file to write them to");
        }
        if !(1..=COMMANDS_MAX).contains(&self.commands_per_hour) {
            let what = format!("records.commands_per_hour = {} is out of range", self.commands_per_hour);
            return wrong(what, &format!("use 1 to {COMMANDS_MAX}, or remove records.command"));
        }
        Ok(())
    }

    fn check_history(&self, file: &Path) -> Result<(), Failure> {
        let wrong = |what: String, remedy: &str| Err(Failure::file(file, what, remedy));
        if self.history_file.as_ref().is_some_and(|name| !name.is_absolute()) {
            return wrong("records.history_file is no absolute path".to_owned(), "write /var/lib/ringwall/history.db");
        }
        if self.history_max_bytes < HISTORY_BYTES_MIN {
            let what = format!("records.history_max_bytes = {} is too small", self.history_max_bytes);
            return wrong(what, &format!("use at least {HISTORY_BYTES_MIN}"));
        }
        if !(1..=HISTORY_DAYS_MAX).contains(&self.history_days) {
            let what = format!("records.history_days = {} is out of range", self.history_days);
            return wrong(what, &format!("use 1 to {HISTORY_DAYS_MAX}, or remove records.history_file"));
        }
        Ok(())
    }

    pub(crate) fn syslog_address(&self) -> Option<SyslogAddress> {
        let text = self.syslog.as_deref()?;
        let socket = text.starts_with('/').then(|| SyslogAddress::Socket(text.into()));
        socket.or_else(|| text.parse().ok().map(SyslogAddress::Udp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Records, String> {
        let records: Records = toml::from_str(text).map_err(|error| error.to_string())?;
        records.check(Path::new("host.toml")).map_err(|failure| failure.to_string())?;
        Ok(records)
    }

    #[test]
    fn mistakes_are_named_with_what_to_write() {
        for (text, word) in [
            ("syslog = \"example.org:514\"", "/dev/log"),
            ("eve_file = \"eve.json\"", "absolute"),
            ("eve_max_bytes = 100", "at least"),
            ("eve_file = \"/eve.json\"\nflows_per_s = 501", "0 to 500"),
            ("flows_per_s = 10", "records.eve_file"),
            ("commands_per_hour = 0", "remove records.command"),
            ("metrics_listen = \"0.0.0.0:9477\"", "records.metrics_listen"),
            ("metrics_listen = \"192.0.2.5:9477\"", "proxy"),
            ("metrics_listen = \"[::]:9477\"", "127.0.0.1:9477"),
            ("metrics_listen = \"127.0.0.1:0\"", "no port of this machine"),
            ("metrics_listen = \"localhost:9477\"", "127.0.0.1:9477"),
            ("history_file = \"history.db\"", "absolute"),
            ("history_max_bytes = 100", "at least"),
            ("history_days = 0", "remove records.history_file"),
            ("eve = \"x\"", "unknown field"),
        ] {
            let line = check(text).expect_err("a mistake");
            assert!(line.contains(word), "{line}");
        }
    }

    #[test]
    fn scrapers_are_answered_on_this_machine_alone() {
        let listen = |text: &str| check(&format!("metrics_listen = \"{text}\"")).map(|it| it.metrics_listen);
        for text in ["127.0.0.1:9477", "127.9.9.9:1", "[::1]:9477", "/run/ringwall/metrics.sock"] {
            assert_eq!(listen(text), Ok(Some(text.to_owned())));
        }
        let mut before = check("metrics_listen = \"[::1]:1\"").expect("valid");
        before.follow(&check("metrics_listen = \"[::1]:2\"\ncommands_per_hour = 3").expect("valid"));
        assert_eq!((before.metrics_listen.as_deref(), before.commands_per_hour), (Some("[::1]:1"), 3));
    }

    #[test]
    fn a_socket_and_an_address_are_told_apart() {
        let address = |text: &str| check(&format!("syslog = \"{text}\"")).map(|records| records.syslog_address());
        assert_eq!(address("/dev/log"), Ok(Some(SyslogAddress::Socket("/dev/log".into()))));
        assert_eq!(
            address("[fd00::5]:514"),
            Ok(Some(SyslogAddress::Udp("[fd00::5]:514".parse().expect("an address"))))
        );
        assert_eq!(check("").map(|records| records.syslog_address()), Ok(None));
    }
}
