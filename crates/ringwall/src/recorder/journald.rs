//! journald's own protocol: fields with names, one datagram a record.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::protocol::attacks::Attack;

/// Where journald listens.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Set where a service's output goes to journald.
const VARIABLE: &str = "JOURNAL_STREAM";

/// Whether journald hears this program, and has fields for it.
pub(crate) fn is_there() -> bool {
    std::env::var_os(VARIABLE).is_some() && Path::new(SOCKET).exists()
}

pub(super) fn open() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(SOCKET)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// One attack as fields. No value has a newline, so each is one line.
pub(super) fn fields(attack: &Attack) -> String {
    let (priority, count) = (attack.sort.priority.to_string(), attack.count.to_string());
    let message = format!("{} ({})", attack.sentence, attack.phase);
    let fields = [
        ("MESSAGE", Some(&message)),
        ("PRIORITY", Some(&priority)),
        ("RINGWALL_KIND", Some(&attack.sort.kind)),
        ("RINGWALL_PHASE", Some(&attack.phase)),
        ("RINGWALL_INTERFACE", Some(&attack.place.interface)),
        ("RINGWALL_REASON", Some(&attack.reason)),
        ("RINGWALL_COUNT", Some(&count)),
        ("RINGWALL_FIRST", Some(&attack.span.first)),
        ("RINGWALL_LAST", Some(&attack.span.last)),
        ("RINGWALL_SOURCE_MAC", attack.source.mac.as_ref()),
        ("RINGWALL_SOURCE_IP", attack.source.ip.as_ref()),
        ("RINGWALL_CLAIMED_NAME", attack.claimed.name.as_ref()),
        ("RINGWALL_CLAIMED_IP", attack.claimed.ip.as_ref()),
        ("RINGWALL_CLAIMED_MAC", attack.claimed.mac.as_ref()),
        ("RINGWALL_ADVICE", Some(&attack.sort.advice)),
    ];
    let line = |(name, value): &(&str, Option<&String>)| Some(format!("{name}={}\n", (*value)?.replace('\n', " ")));
    let fields: String = fields.iter().filter_map(line).collect();
    format!("SYSLOG_IDENTIFIER=ringwall\n{fields}")
}

#[cfg(test)]
mod tests {
    use super::super::process::tests::attack;
    use super::*;

    #[test]
    fn each_field_is_one_line_with_the_priority_of_a_warning() {
        let mut attack = attack();
        attack.claimed.name = Some("a\nPRIORITY=7".to_owned());
        let text = fields(&attack);
        assert_eq!(text.lines().filter(|line| line.starts_with("PRIORITY=")).collect::<Vec<_>>(), ["PRIORITY=4"]);
        assert!(text.lines().any(|line| line == "RINGWALL_SOURCE_MAC=02:00:00:00:00:66"), "{text}");
    }
}
