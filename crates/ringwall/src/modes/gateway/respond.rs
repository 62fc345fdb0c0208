//! `ringwall gate respond`: connections end that an intrusion detection system condemns.
//!
//! The system reads the mirror, so it cannot cut anything itself; its alerts come here as EVE.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use clap::Args;

use super::condemned::{Condemned, Said};
use crate::client::{self, DaemonArgs, unexpected};
use crate::config::DEFAULT_GATE_FILE;
use crate::failure::Failure;
use crate::output::{complain, say};
use crate::protocol::{Answer, Ask};

/// Longest line, in bytes; Suricata's are shorter unless it writes payloads.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Options of `ringwall gate respond`
#[derive(Args, Debug)]
pub(crate) struct RespondArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    choice: Choice,
    /// Says what would be ended, and ends nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Where the alerts come from.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Source {
    /// A Unix socket that is made here and that Suricata connects to (`filetype: unix_stream`).
    #[arg(long, value_name = "FILE")]
    eve_socket: Option<PathBuf>,
    /// EVE records from a file, or from the standard input if it is -, to the end.
    #[arg(long, value_name = "FILE")]
    eve: Option<PathBuf>,
}

/// For which alerts a connection is ended.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
struct Choice {
    /// Alerts of this severity and worse; 1 is the worst.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..))]
    severity: Option<u8>,
    /// Alerts of this signature (may be given several times).
    #[arg(long, value_name = "ID")]
    signature: Vec<u64>,
}

impl Choice {
    fn takes(&self, alert: &Condemned) -> bool {
        self.severity.is_some_and(|worst| alert.severity <= worst) || self.signature.contains(&alert.signature_id)
    }
}

/// `ringwall gate respond`
pub(crate) fn respond(args: &RespondArgs) -> Result<(), Failure> {
    let socket = args.daemon.socket_or(DEFAULT_GATE_FILE)?;
    let mut responder = Responder { args, socket, counts: Counts::default() };
    match (&args.source.eve_socket, &args.source.eve) {
        (Some(path), _) => responder.listen(path),
        (_, Some(path)) if path == Path::new("-") => responder.read(path, io::stdin().lock()),
        (_, Some(path)) => {
            let file =
                fs::File::open(path).map_err(|error| Failure::file(path, error, "name a file of EVE records"))?;
            responder.read(path, file)
        }
        (None, None) => Err(Failure::new("name --eve-socket or --eve".to_owned())),
    }
}

/// How many lines came to what.
#[derive(Default)]
struct Counts {
    ended: u64,
    /// Alerts that were not chosen.
    not_chosen: u64,
    /// Alerts about connections that the gateway does not remember, or that are blocked already.
    unknown: u64,
    /// Alerts whose connection the gateway did not end, because it is on standby or starting anew.
    refused: u64,
    /// Alerts about something other than TCP.
    no_connection: u64,
    malformed: u64,
}

struct Responder<'a> {
    args: &'a RespondArgs,
    /// Of the gateway's daemon.
    socket: PathBuf,
    counts: Counts,
}

impl Responder<'_> {
    /// Reads what one writer after the other sends, for ever.
    fn listen(&mut self, path: &Path) -> Result<(), Failure> {
        let refused = |error| Failure::file(path, error, "name a file in a folder that root alone may write to");
        // A socket that a run before has left.
        if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
            fs::remove_file(path).map_err(refused)?;
        }
        let listener = UnixListener::bind(path).map_err(refused)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(refused)?;
        loop {
            let (stream, _) = listener.accept().map_err(refused)?;
            if let Err(failure) = self.read(path, stream) {
                complain(format_args!("{failure}"));
            }
        }
    }

    /// Reads lines to the end, and says what came of them.
    fn read(&mut self, path: &Path, source: impl Read) -> Result<(), Failure> {
        let mut source = BufReader::new(source);
        loop {
            match next_line(&mut source).map_err(|error| Failure::file(path, error, "see whether its writer runs"))? {
                Next::Line(line) => self.take(&line),
                Next::TooLong => self.counts.malformed += 1,
                Next::End => break,
            }
        }
        let Counts { ended, not_chosen, unknown, refused, no_connection, malformed } = &self.counts;
        say!(
            "{ended} ended; alerts that ended nothing: {not_chosen} not chosen, {unknown} of connections that are \
             unknown or blocked already, {refused} that the gateway did not take, {no_connection} not of TCP; \
             {malformed} lines malformed"
        );
        Ok(())
    }

    /// One alert that the gateway does not take must not cost those behind it.
    fn take(&mut self, line: &[u8]) {
        match Said::read(line) {
            Said::Condemned(alert) if !self.args.choice.takes(&alert) => self.counts.not_chosen += 1,
            Said::Condemned(alert) => {
                if let Err(failure) = self.end(&alert) {
                    complain(format_args!("{failure}"));
                    self.counts.refused += 1;
                }
            }
            Said::NoConnection => self.counts.no_connection += 1,
            Said::Malformed => self.counts.malformed += 1,
            Said::Nothing => {}
        }
    }

    /// Ends the connection, whichever of its ends is the trusted one.
    fn end(&mut self, alert: &Condemned) -> Result<(), Failure> {
        let [one, other] = alert.ends;
        let would = if self.args.dry_run { "would be " } else { "" };
        if !self.args.dry_run && !self.block(one, other, alert.vlans)? && !self.block(other, one, alert.vlans)? {
            self.counts.unknown += 1;
            return Ok(());
        }
        say!("{one} - {other} {would}ended: {} {} (severity {})", alert.signature_id, alert.signature, alert.severity);
        self.counts.ended += 1;
        Ok(())
    }

    fn block(&self, trusted: SocketAddr, untrusted: SocketAddr, vlans: u32) -> Result<bool, Failure> {
        let order = Ask::Block { trusted, untrusted, vlans, undo: false, if_remembered: true };
        match client::ask(&self.socket, &order)? {
            Answer::Blocked { changed } => Ok(changed),
            _ => Err(unexpected(&self.socket)),
        }
    }
}

enum Next {
    Line(Vec<u8>),
    /// The rest of it was passed over.
    TooLong,
    End,
}

/// The next line, without its end.
fn next_line(source: &mut impl BufRead) -> io::Result<Next> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let bytes = match source.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        };
        if bytes.is_empty() {
            return Ok(if line.is_empty() && !is_too_long { Next::End } else { ended(line, is_too_long) });
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.unwrap_or(bytes.len())];
        is_too_long |= line.len() + part.len() > LINE_BYTES_MAX;
        if !is_too_long {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        source.consume(used);
        if end.is_some() {
            return Ok(ended(line, is_too_long));
        }
    }
}

fn ended(line: Vec<u8>, is_too_long: bool) -> Next {
    if is_too_long { Next::TooLong } else { Next::Line(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_costs_no_memory_and_hides_no_other() {
        let text = [&b"one\n"[..], &vec![b'x'; 3 * LINE_BYTES_MAX], b"\n\nlast"].concat();
        let mut source = BufReader::new(&text[..]);
        let mut seen = Vec::new();
        loop {
            match next_line(&mut source).expect("read") {
                Next::Line(line) => seen.push(String::from_utf8(line).expect("text")),
                Next::TooLong => seen.push("too long".to_owned()),
                Next::End => break,
            }
        }
        assert_eq!(seen, ["one", "too long", "", "last"]);
    }
}
