//! `ringwall host enroll --token`, and the enrolment of `ringwall join`: a machine becomes a host
//! of a site over the network, before it has an identity, an address or the time.
//!
//! By frames at key distributors, or with an address at the site's service (`by_service.rs`).
//!
//! What it needs on the way is on disk before the first frame leaves, beside the identity's place, so that an interrupted
//! enrolment goes on. The identity is on disk before the distributors hear that they may forget it.

mod by_service;

use std::fs;
use std::io::{self, BufRead};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::enrolment::by_token::Applying;
use authority::files::{self, Overwrite, Secrecy, Staged};
use bump::{Batch, Generator, Instant, Meta};
use clap::Args;
use identity::HostIdentity;
use identity::certificate::utc_text;
use identity::token::Token;
use sarp::applicant::{Applicant, News, Settings};
use serde_json::json;
use system::clock::Clock;
use system::port::{PacketOptions, PacketPort, Receiver, Sender};
use system::takeover::{self, Card, Kept, state};
use system::wait::{PollFd, PollFlags, wait};
use wire::sarp::enrolment::State;
use zeroize::Zeroizing;

use crate::config::DEFAULT_FILE;
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::output::{complain, say};
use crate::randomness;
use crate::site::EnrollCommand;

/// After so many tries without an answer the operator hears of it.
const SILENT_TRIES: u32 = 10;
/// After so many, one a second, it is given up where nobody waits beside it.
const SILENT_TRIES_MAX: u32 = 20;
/// Longest sleep; the end of the time that the operator gives is looked at as often.
const SLEEP_MAX: Duration = Duration::from_secs(1);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60 * 60);
const DEFAULT_STATE_DIR: &str = "/var/lib/ringwall";
const DEFAULT_IDENTITY: &str = "/etc/ringwall/identity.pem";

/// Arguments of `host enroll`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EnrollArguments {
    #[command(subcommand)]
    by_file: Option<EnrollCommand>,
    #[command(flatten)]
    by_token: TokenArguments,
}

/// Arguments of `host enroll --token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// The token that the manager made; - reads it from the standard input, where no other user sees it
    #[arg(long)]
    token: Option<String>,
    /// The interface; without it the one that the configuration names
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Enrol over the site's service at this address and port, and not by key distributors
    #[arg(long, value_name = "ADDRESS")]
    service: Option<SocketAddr>,
    /// An IPv4 address that this host would like, if the token says none; repeat it for several
    #[arg(long, value_name = "IP")]
    ip: Vec<Ipv4Addr>,
    /// Where the identity is written; without it where the configuration says, else /etc/ringwall/identity.pem
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How long to wait for the manager: 30s, 5m, 1h (the default), 2d
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
    /// Configuration file, if there is one already
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Replace the identity if there is one, and forget an enrolment by another token that was not finished
    #[arg(long)]
    force: bool,
    /// Print one JSON object when all is done
    #[arg(long)]
    json: bool,
}

impl EnrollArguments {
    /// Carries the command out and prints what it did.
    pub(crate) fn run(self) -> Result<(), Failure> {
        match (self.by_file, &self.by_token.token) {
            (Some(command), _) => command.run(),
            (None, Some(text)) => {
                let token = read_token(text)?;
                enrol_by(&self.by_token, &token)
            }
            (None, None) => Err(Failure::new(
                "nothing says how to enrol; give --token TOKEN, or see `ringwall host enroll request --help` for the way by file",
            )),
        }
    }
}

/// A token from the command line, or from the standard input for `-`.
pub(crate) fn read_token(text: &str) -> Result<Token, Failure> {
    let mut line = Zeroizing::new(String::new());
    if text == "-" {
        let read = io::stdin().lock().read_line(&mut line);
        read.map_err(|error| Failure::new(format!("standard input: {error}; write the token into it")))?;
    } else {
        line.push_str(text);
    }
    line.trim().parse().map_err(|error| Failure::new(format!("the token: {error}")))
}

/// Where a machine enrols, and how patiently.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// Who is asked in the place of key distributors.
    pub(crate) service: Option<SocketAddr>,
    /// The addresses that the host would like, if the token says none.
    pub(crate) ips: Vec<Ipv4Addr>,
    /// How long the manager may take.
    pub(crate) timeout: Duration,
    /// Whether it ends when no distributor has ever answered, after [`SILENT_TRIES_MAX`] tries.
    pub(crate) ends_in_silence: bool,
    /// Whether an identity that is there is replaced, and an enrolment by another token forgotten.
    pub(crate) force: bool,
}

/// What arguments and configuration say.
pub(crate) struct Place {
    interface: String,
    card: Card,
    out: PathBuf,
    /// Keeps the keys while the manager decides.
    kept: PathBuf,
    clock: Clock,
}

impl Place {
    fn find(arguments: &TokenArguments) -> Result<Place, Failure> {
        let config = match &arguments.config {
            Some(file) => Some(Config::load(file)?),
            None if Path::new(DEFAULT_FILE).exists() => Some(Config::load(Path::new(DEFAULT_FILE))?),
            None => None,
        };
        let of_config = |value: fn(&Config) -> PathBuf| config.as_ref().map(value);
        let interface = arguments.interface.clone().or_else(|| Some(config.as_ref()?.host.interface.clone()));
        let interface = interface.ok_or_else(|| Failure::new("--interface is missing; name the interface to enrol"))?;
        let state_dir = of_config(|config| config.host.state_dir.clone()).unwrap_or_else(|| DEFAULT_STATE_DIR.into());
        let out = arguments.out.clone().or_else(|| of_config(|config| config.host.identity.clone()));
        let out = out.unwrap_or_else(|| DEFAULT_IDENTITY.into());
        let clock = config.as_ref().map_or_else(Clock::new, Config::clock);
        Place::at(&interface, &state_dir, out, clock)
    }

    /// On this interface, with the identity to be written to `out`.
    pub(crate) fn at(interface: &str, state_dir: &Path, out: PathBuf, clock: Clock) -> Result<Place, Failure> {
        let interface = interface.to_owned();
        if state::load(state_dir, &interface)?.is_some() {
            let what = format!("{interface} is guarded, so only its daemon speaks ARP there");
            return Err(Failure::new(format!(
                "{what}; enrol by file, or give it back first with `ringwall host release`"
            )));
        }
        let card = takeover::card(&interface)?;
        let card =
            card.ok_or_else(|| Failure::new(format!("{interface}: no such Ethernet interface; name another")))?;
        if !card.is_up {
            let remedy = format!("`ip link set {interface} up`");
            return Err(Failure::new(format!("{interface} is switched off; switch it on with {remedy}")));
        }
        let kept = kept_beside(&out);
        Ok(Place { interface, card, out, kept, clock })
    }
}

/// Where the keys of an enrolment are while the manager decides.
pub(crate) fn kept_beside(identity: &Path) -> PathBuf {
    let mut name = identity.as_os_str().to_owned();
    name.push(".enrolling");
    name.into()
}

fn enrol_by(arguments: &TokenArguments, token: &Token) -> Result<(), Failure> {
    let place = Place::find(arguments)?;
    let out = place.out.clone();
    let manner = Manner {
        service: arguments.service,
        ips: arguments.ip.clone(),
        timeout: arguments.timeout.unwrap_or(DEFAULT_TIMEOUT),
        ends_in_silence: false,
        force: arguments.force,
    };
    let identity = enrol(place, &manner, token)?;
    let certificate = identity.certificate();
    let (name, site, until) = (certificate.name(), identity.site_name(), utc_text(certificate.not_after_unix()));
    if arguments.json {
        let addresses = certificate.addresses();
        say!("{}", json!({"name": name, "site": site, "not_after": until, "addresses": addresses, "file": out}));
    } else {
        say!("{name} of site {site} is in {} until {until}", out.display());
    }
    Ok(())
}

/// Enrols to the end: the identity is on disk, and nothing else of the enrolment is.
pub(crate) fn enrol(mut place: Place, manner: &Manner, token: &Token) -> Result<HostIdentity, Failure> {
    let overwrite = if manner.force { Overwrite::Force } else { Overwrite::Never };
    // Nobody is asked for an identity that cannot be put down.
    drop(Staged::new(&place.out, "", Secrecy::Secret, overwrite)?);
    let applying = begin(manner, token, &place)?;
    if let Some(address) = manner.service {
        let identity = by_service::enrol(&mut place, &applying, address, (manner, token), overwrite)?;
        finish(&place)?;
        return Ok(identity);
    }
    if token.distributors().is_empty() {
        return Err(Failure::new(
            "the token names no key distributor; give --service ADDRESS:PORT, where the site's is",
        ));
    }
    let settings = Settings {
        mac: place.card.mac,
        key: token.key(),
        distributors: token.distributors().to_vec(),
        sealing_key: applying.sealing_key(),
        request: applying.request().to_vec(),
    };
    let mut errand = Errand::open(manner, place, applying, settings, randomness::generator()?)?;
    let identity = errand.run(token, overwrite)?;
    finish(&errand.place)?;
    Ok(identity)
}

/// The keys of this enrolment: those that are on disk already, or new ones, which then are.
fn begin(manner: &Manner, token: &Token, place: &Place) -> Result<Applying, Failure> {
    if place.kept.exists() {
        let kept = Applying::from_pem(&files::read(&place.kept)?).map_err(|error| error.with_file(&place.kept));
        match kept {
            Ok(kept) if kept.is_for(token, place.card.mac) => return Ok(kept),
            _ if manner.force => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let what = "an enrolment by another token, or for another interface, was not finished";
                return Err(Failure::file(&place.kept, what, "go on with that, or forget it with --force"));
            }
        }
    }
    let mut secrets = randomness::secrets()?;
    let mut random = |bytes: &mut [u8]| secrets.fill(bytes);
    let applying = Applying::begin(token, place.card.mac, &manner.ips, &mut random)?;
    files::write(&place.kept, &applying.to_pem(), Secrecy::Secret, Overwrite::Force)?;
    Ok(applying)
}

/// An enrolment under way.
struct Errand {
    place: Place,
    applying: Applying,
    applicant: Applicant,
    port: PacketPort,
    end: Instant,
    is_silent: bool,
    ends_in_silence: bool,
}

impl Errand {
    fn open(
        manner: &Manner,
        mut place: Place,
        applying: Applying,
        settings: Settings,
        random: Generator,
    ) -> Result<Errand, Failure> {
        let options = PacketOptions::kept(Kept::Arp, place.card.index);
        let port = PacketPort::open(&options).map_err(|error| Failure::new(format!("{}: {error}", place.interface)))?;
        let now = place.clock.now().since_boot;
        let end = now + manner.timeout;
        let applicant = Applicant::new(settings, random, now);
        let ends_in_silence = manner.ends_in_silence;
        Ok(Errand { place, applying, applicant, port, end, is_silent: false, ends_in_silence })
    }

    /// Asks until the identity is on disk and the distributors have been told, or it comes to nothing.
    fn run(&mut self, token: &Token, overwrite: Overwrite) -> Result<HostIdentity, Failure> {
        let mut installed = None;
        loop {
            match (self.turn()?, installed.take()) {
                (Some(News::Applied), _) => {
                    self.ends_in_silence = false;
                    say_applied(&self.applying, token);
                }
                (Some(News::Sealed(sealed)), _) => installed = Some(self.install(token, &sealed, overwrite)?),
                (Some(News::Done), Some(identity)) => return Ok(identity),
                (Some(News::Ended(state)), _) => return Err(ended(&self.place, state)),
                (_, identity) => installed = identity,
            }
            // An identity that is there counts, whether or not anybody can be told.
            let is_in_vain = self.ends_in_silence && self.applicant.tries() >= SILENT_TRIES_MAX;
            if installed.is_none() && (is_in_vain || self.place.clock.now().since_boot >= self.end) {
                return Err(self.too_late(token));
            }
        }
    }

    /// Sends what is due, hears what came, and sleeps until there is more to do.
    fn turn(&mut self) -> Result<Option<News>, Failure> {
        let now = self.place.clock.now().since_boot;
        if let Some(news) = self.applicant.give_up() {
            return Ok(Some(news));
        }
        if let Some(frame) = self.applicant.send(now) {
            self.transmit(&frame);
            self.note_silence();
        }
        let broken = |error: io::Error| Failure::new(format!("{}: {error}; is it still there?", self.place.interface));
        while self.port.receiver.fill().map_err(&broken)? {
            while let Some(frame) = self.port.receiver.next_frame() {
                if let Some(news) = self.applicant.hear(now, frame.bytes) {
                    return Ok(Some(news));
                }
            }
        }
        let until = self.applicant.deadline().map_or(SLEEP_MAX, |at| at.since(now)).min(SLEEP_MAX);
        wait(&mut [PollFd::new(&self.port, PollFlags::IN)], Some(until)).map_err(&broken)?;
        Ok(None)
    }

    /// What has no room is sent again with the next try.
    fn transmit(&mut self, frame: &[u8]) {
        let sender = &mut self.port.sender;
        if let Some(room) = sender.reserve(frame.len()) {
            room[..frame.len()].copy_from_slice(frame);
            sender.commit(frame.len(), Meta::plain());
        }
        sender.flush();
    }

    fn note_silence(&mut self) {
        if self.applicant.tries() == SILENT_TRIES && !self.is_silent {
            self.is_silent = true;
            complain(format_args!(
                "{}: no key distributor of the token answers; see that one runs on this network, its clock is right, and the \
                 token is of its site. Still asking",
                self.place.interface
            ));
        }
    }

    fn install(&mut self, token: &Token, sealed: &[u8], overwrite: Overwrite) -> Result<HostIdentity, Failure> {
        let now = self.place.clock.now();
        let unix_s = now.trusted_unix_ms().map_or(0, |unix_ms| unix_ms / 1000);
        let (text, identity) = self.applying.install(token, sealed, unix_s)?;
        files::write(&self.place.out, &text, Secrecy::Secret, overwrite)?;
        self.applicant.installed(now.since_boot);
        Ok(identity)
    }

    fn too_late(&self, token: &Token) -> Failure {
        let silent = "no key distributor of the token's site answered on this network";
        let what = if self.is_silent { silent } else { "the manager has not approved it" };
        let kept = self.place.kept.display();
        let again = format!("run it again with the same token to go on; its keys are kept in {kept}");
        Failure::new(format!("{}: {what} in the time given; {again}", token.name()))
    }
}

fn finish(place: &Place) -> Result<(), Failure> {
    let kept = &place.kept;
    fs::remove_file(kept).map_err(|error| Failure::file(kept, error, "remove it; the identity is installed"))
}

fn say_applied(applying: &Applying, token: &Token) {
    let name = token.name();
    let shown = applying.fingerprint();
    complain(format_args!("applied as {name}; fingerprint {shown}"));
    complain(format_args!("waiting for the manager: ringwall site approve {name} --fingerprint {shown}"));
}

/// A token that is over serves no more, and neither do the keys that were made for it.
fn ended(place: &Place, state: State) -> Failure {
    let (why, is_final) = because(state);
    if is_final {
        let _ = fs::remove_file(&place.kept);
    }
    Failure::new(format!("{}: {why}", place.interface))
}

/// Why an enrolment ended, with what to do about it, and whether its keys are of no more use.
fn because(state: State) -> (&'static str, bool) {
    match state {
        State::Refused => ("the manager has refused; ask why, and for another token", true),
        State::Fetched => ("the token was used already; ask for another one", true),
        State::NotOpen | State::NotApplied => {
            ("the token is over, or was replaced by another; ask for a new one", true)
        }
        State::OtherKey => {
            ("somebody else has applied with this token; tell the manager to refuse it, and ask for another one", true)
        }
        State::OtherMac => {
            ("the token is for another hardware address; use that interface, or ask for another token", true)
        }
        State::BadRequest => ("the distributor does not take the request; update both programs", false),
        State::Waiting | State::Approved => ("the distributor contradicts itself; try again", false),
    }
}
