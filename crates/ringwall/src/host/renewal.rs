//! `ringwall host renew`: another certificate for the key that this host has, by a pair of files or through a command that takes the
//! request and gives the answer. The daemon takes it without a pause.
//!
//! How request and answer travel is left to that command, which knows the site's machines (ssh, for example): a renewal needs no
//! server of its own. What comes back is sealed for this host, and trusted for its signatures only.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use authority::enrolment;
use authority::files::{self, Overwrite, Secrecy};
use clap::{Args, Subcommand};
use identity::HostIdentity;
use identity::certificate::utc_text;
use identity::tls::Credentials;
use zeroize::Zeroizing;

use super::ConfigArgs;
use crate::client;
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::output::say;
use crate::protocol::{Answer, Ask};
use crate::report::{Proof, RENEWAL_PATH, Way, unix_s};

/// Longest bundle that is read, in bytes: as long as any file of this program may be.
const BUNDLE_LEN_MAX: u64 = authority::limits::MAX_FILE_LEN;

/// Arguments of `host renew`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RenewArguments {
    #[command(subcommand)]
    by_file: Option<RenewCommand>,
    #[command(flatten)]
    through: ThroughArguments,
}

/// Renewal by a pair of files.
#[derive(Debug, Subcommand)]
pub(crate) enum RenewCommand {
    /// Write a request for another certificate, signed with the key that this host has
    ///
    /// The manager answers it with 'ringwall site renew --request'. Neither it nor the answer is secret: only this host can open that.
    #[command(verbatim_doc_comment)]
    Request {
        #[command(flatten)]
        config: ConfigArgs,
        /// Where the request is written.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Ask for no other certificate, but for the keys alone that all hosts share, as they are
        /// now
        #[arg(long)]
        keys: bool,
        /// Replace the file if it exists.
        #[arg(long)]
        force: bool,
    },
    /// Put the bundle that came back into the identity file, and have the daemon take it
    Install {
        #[command(flatten)]
        config: ConfigArgs,
        /// What the manager sent.
        #[arg(long, value_name = "FILE")]
        bundle: PathBuf,
    },
}

/// Renewal through a command.
#[derive(Debug, Args)]
pub(crate) struct ThroughArguments {
    #[command(flatten)]
    config: ConfigArgs,
    /// A shell's command that reads the request and writes the answer; without it the one of
    /// host.renew_through, or the site's service (site.service).
    #[arg(long, value_name = "COMMAND")]
    through: Option<String>,
    /// Renew only what ends within this time, without it host.renew_before. What lasts less than twice as long is renewed in its
    /// second half.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    before: Option<Duration>,
}

impl RenewArguments {
    /// Carries the command out and prints what it did.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.by_file {
            Some(RenewCommand::Request { config, out, keys, force }) => {
                let wanted = if keys { Wanted::SharedKeys } else { Wanted::Certificate };
                request(&config.config, &out, wanted, force)
            }
            Some(RenewCommand::Install { config, bundle }) => {
                Present::read(&config.config)?.install(&files::read(&bundle)?)
            }
            None => renew(&self.through),
        }
    }
}

/// What a host asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Another certificate, and all that comes with it.
    Certificate,
    /// The keys that it shares with others.
    SharedKeys,
}

fn request(config: &Path, out: &Path, wanted: Wanted, force: bool) -> Result<(), Failure> {
    let present = Present::read(config)?;
    let overwrite = if force { Overwrite::Force } else { Overwrite::Never };
    files::write(out, &present.request(wanted)?, Secrecy::Public, overwrite)?;
    say!("send {} to the manager, for `ringwall site renew --request`", out.display());
    Ok(())
}

fn renew(arguments: &ThroughArguments) -> Result<(), Failure> {
    let file = &arguments.config.config;
    let present = Present::read(file)?;
    let host = &present.config.host;
    let through = present.through(file, arguments.through.as_deref())?;
    let before = arguments.before.unwrap_or(host.renew_before.time);
    let Some(until) = present.lasts(before)? else {
        let bundle = through.answer(&present.request(Wanted::Certificate)?)?;
        return present.install(&bundle);
    };
    say!("the certificate is good until {until}; it is not time yet");
    // The site's shared keys change at other times, and nobody tells a host but the site.
    let bundle = through.answer(&present.request(Wanted::SharedKeys)?)?;
    if present.has_all_of(&bundle) {
        say!("its shared keys are those of generation {}, as before", present.identity.generation());
        return Ok(());
    }
    present.install(&bundle)
}

/// What takes the request and gives the answer.
enum Through {
    /// A shell's command.
    Command(String),
    /// The site's service, which has its signer answer.
    Service(Box<Way>),
}

impl Through {
    fn answer(&self, request: &str) -> Result<Zeroizing<String>, Failure> {
        let way = match self {
            Through::Command(command) => return converse(command, request),
            Through::Service(way) => way,
        };
        let ask = || way.answer(RENEWAL_PATH, Some(request.as_bytes()));
        match way.in_turn(ask, |(status, body)| (*status, body))? {
            (200, sealed) => String::from_utf8(sealed).map(Zeroizing::new).map_err(|_| way.refused(200, b"no bundle")),
            (status, body) => Err(way.refused(status, &body)),
        }
    }
}

/// Has a shell's command answer the request.
fn converse(command: &str, request: &str) -> Result<Zeroizing<String>, Failure> {
    let failed = |what: String| Failure::new(format!("`{command}` {what}; nothing has changed"));
    let child = Command::new("/bin/sh").args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| failed(format!("cannot be started: {error}")))?;
    let bundle = exchange(&mut child, request);
    if bundle.is_err() {
        // It may be writing without an end.
        let _gone = child.kill();
    }
    let status = child.wait().map_err(|error| failed(format!("cannot be waited for: {error}")))?;
    let bundle = bundle.map_err(|error| failed(format!("gave no bundle: {error}")))?;
    if !status.success() {
        return Err(failed(format!("ended with {status}")));
    }
    Ok(bundle)
}

fn exchange(child: &mut Child, request: &str) -> std::io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    if let Some(mut input) = child.stdin.take() {
        // Shorter than any pipe. Who ends without reading says why by himself.
        let _unread = input.write_all(request.as_bytes());
    }
    if let Some(output) = child.stdout.take() {
        output.take(BUNDLE_LEN_MAX + 1).read_to_string(&mut text)?;
    }
    if text.len() as u64 > BUNDLE_LEN_MAX {
        return Err(std::io::Error::other("it is too long"));
    }
    Ok(text)
}

/// The configuration and the identity that this host has now.
struct Present {
    config: Config,
    text: Zeroizing<String>,
    identity: HostIdentity,
}

impl Present {
    fn read(file: &Path) -> Result<Present, Failure> {
        let config = Config::load(file)?;
        let text = files::read(&config.host.identity)?;
        let identity = HostIdentity::from_pem(&text);
        let identity = identity.map_err(|error| Failure::file(&config.host.identity, error, "enrol this host anew"))?;
        Ok(Present { config, text, identity })
    }

    /// A command that somebody has named comes before the site's service.
    fn through(&self, file: &Path, command: Option<&str>) -> Result<Through, Failure> {
        if let Some(command) = command.or(self.config.host.renew_through.as_deref()) {
            return Ok(Through::Command(command.to_owned()));
        }
        if self.config.site.service.is_none() {
            let what = "nothing says through what to renew";
            let remedy = "set site.service or host.renew_through, give --through, or see `ringwall host renew request \
                          --help` for the way by file";
            return Err(Failure::file(file, what, remedy));
        }
        let (address, service) = self.config.site.way(file)?;
        let credentials = Credentials::from_pem(&self.text, unix_s);
        let credentials =
            credentials.map_err(|error| Failure::file(&self.config.host.identity, error, "enrol this host anew"))?;
        // The service lets nobody in by a certificate that is over; the request says who this is.
        let is_over = unix_s().is_some_and(|now| now > self.identity.certificate().not_after_unix());
        let proof = if is_over { Proof::Over(credentials) } else { Proof::Certificate(credentials) };
        Ok(Through::Service(Box::new(Way { address, service, proof })))
    }

    fn request(&self, wanted: Wanted) -> Result<String, Failure> {
        let request = match wanted {
            Wanted::Certificate => enrolment::renewal(&self.text),
            Wanted::SharedKeys => enrolment::shared_keys(&self.text),
        };
        Ok(request.map_err(|error| error.with_file(&self.config.host.identity))?)
    }

    /// Until when the certificate is good, if that is longer than it need be.
    fn lasts(&self, before: Duration) -> Result<Option<String>, Failure> {
        let unix_ms = self.config.clock().now().trusted_unix_ms();
        let unix_ms = unix_ms.ok_or_else(|| Failure::new("the clock is wrong, so nobody knows what is due; set it"))?;
        let certificate = self.identity.certificate();
        let (from, until) = (certificate.not_before_unix(), certificate.not_after_unix());
        Ok((!is_due(from, until, before, unix_ms / 1000)).then(|| utc_text(until)))
    }

    /// Whether a bundle holds nothing that this host does not have.
    fn has_all_of(&self, bundle: &str) -> bool {
        matches!(enrolment::renewed(&self.text, bundle, 0), Err(authority::Error::NothingNew(_)))
    }

    /// Puts key and bundle together, writes the identity, and tells the daemon.
    fn install(&self, bundle: &str) -> Result<(), Failure> {
        let unix_s = self.config.clock().now().trusted_unix_ms().map_or(0, |unix_ms| unix_ms / 1000);
        let (text, renewed) = enrolment::renewed(&self.text, bundle, unix_s)?;
        let file = &self.config.host.identity;
        files::write(file, &text, Secrecy::Secret, Overwrite::Force)?;
        let (certificate, generation) = (renewed.certificate(), renewed.generation());
        let (name, until) = (certificate.name(), utc_text(certificate.not_after_unix()));
        if certificate.der() == self.identity.certificate().der() {
            say!("{name} has shared keys of generation {generation} in {}", file.display());
        } else {
            say!("{name} is renewed until {until} in {}", file.display());
        }
        self.tell_daemon()
    }

    fn tell_daemon(&self) -> Result<(), Failure> {
        let socket = self.config.socket();
        if !self.config.host.mode.has_identity() || !socket.exists() {
            say!("in force with the next start of the daemon");
            return Ok(());
        }
        match client::ask(&socket, &Ask::Renewed)? {
            Answer::Done { lines } => lines.iter().for_each(|line| say!("{line}")),
            _ => return Err(Failure::new("the daemon gave another answer; use the same version of both")),
        }
        Ok(())
    }
}

/// Whether a certificate ends within `before`, or is in its second half where it lasts less than twice as long.
fn is_due(from_unix_s: u64, until_unix_s: u64, before: Duration, unix_s: u64) -> bool {
    let half = until_unix_s.saturating_sub(from_unix_s) / 2;
    until_unix_s.saturating_sub(unix_s) <= before.as_secs().min(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u64 = 24 * 60 * 60;

    #[test]
    fn a_long_certificate_is_due_before_its_end_and_a_short_one_in_its_second_half() {
        let before = Duration::from_secs(45 * DAY_S);
        let due_after = |days: u64, age: u64| is_due(1000, 1000 + days * DAY_S, before, 1000 + age * DAY_S);
        assert!(!due_after(365, 319) && due_after(365, 320) && due_after(365, 400));
        assert!(!due_after(30, 14) && due_after(30, 15));
    }

    #[test]
    fn a_command_is_given_the_request_and_believed_only_if_it_ends_well() {
        assert_eq!(converse("tr a b", "aaa").expect("answered").as_str(), "bbb");
        for (command, what) in [
            ("cat; exit 3", "exit status: 3"),
            ("exec cat /dev/zero", "too long"),
            ("printf '\\377'", "gave no bundle"),
            ("/no/such/program", "exit status: 127"),
        ] {
            let line = converse(command, "request").expect_err("no bundle").to_string();
            assert!(line.contains(what) && line.ends_with("nothing has changed") && !line.contains('\n'), "{line}");
        }
    }
}
