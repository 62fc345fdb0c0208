//! Commands that ask a running daemon: `status`, `peers`, `events`, `explain`.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bump::DropReason;
use clap::Args;

use crate::config;
use crate::failure::Failure;
use crate::modes::any_file::ConfigFile;
use crate::modes::part::Account;
use crate::output::say;
use crate::protocol::attacks::Attacks;
use crate::protocol::{Answer, Ask, Event, Example};
use crate::verdict::{self, Verdict};

/// How long a daemon may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a question is put again that the daemon hung up on: it does not wait for who takes half a second to ask.
const ASKED_AGAIN_MAX: usize = 3;
/// How often it is looked whether a daemon has stopped.
const STOP_LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// What the JSON of `status` is called, and its version, which changes when a field goes or means something else.
const STATUS_SCHEMA: &str = "ringwall-status";
const STATUS_VERSION: u32 = 1;
/// How often `events --follow` asks.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Which daemon is meant.
#[derive(Args, Debug, Clone)]
pub(crate) struct DaemonArgs {
    /// Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one.
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    interface: Option<String>,
}

impl DaemonArgs {
    /// Where the daemon listens.
    pub(crate) fn socket(&self) -> Result<PathBuf, Failure> {
        self.socket_of(config::default_file)
    }

    /// The same, where without file or interface the daemon of `usual` is meant.
    pub(crate) fn socket_or(&self, usual: &str) -> Result<PathBuf, Failure> {
        self.socket_of(|| usual.into())
    }

    /// All daemons of this machine where none is named and several run; otherwise the one that is meant.
    pub(crate) fn sockets(&self) -> Result<Vec<PathBuf>, Failure> {
        let named = self.config.is_some() || self.interface.is_some();
        let running = if named { Vec::new() } else { sockets_in(&config::default_run_dir()) };
        if running.is_empty() { Ok(vec![self.socket()?]) } else { Ok(running) }
    }

    fn socket_of(&self, usual: impl FnOnce() -> PathBuf) -> Result<PathBuf, Failure> {
        if let Some(interface) = &self.interface {
            return Ok(config::socket(&config::default_run_dir(), interface));
        }
        let file = self.config.clone().unwrap_or_else(usual);
        ConfigFile::load(&file)?.socket(&file)
    }
}

/// The command sockets in a directory, by name.
pub(crate) fn sockets_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    sockets.sort_unstable();
    sockets
}

/// Options of every question.
#[derive(Args, Debug)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Asks the daemon that listens on `socket`.
pub(crate) fn ask(socket: &Path, question: &Ask) -> Result<Answer, Failure> {
    understood(socket, &ask_for_text(socket, question)?)
}

/// What a daemon has answered in JSON.
pub(crate) fn understood(socket: &Path, text: &str) -> Result<Answer, Failure> {
    match Answer::from_json(text) {
        Ok(Answer::Error { line }) => Err(Failure::file(socket, line, "see the log of the daemon")),
        Ok(answer) => Ok(answer),
        Err(error) => Err(Failure::file(socket, error, "use the same version of both")),
    }
}

/// What it says in JSON, for who hands that on and does not read it.
pub(crate) fn ask_for_text(socket: &Path, ask: &Ask) -> Result<String, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            let what = format!("the daemon did not answer within {} s", ANSWER_TIME_MAX.as_secs());
            Failure::file(socket, what, "ask again; if it stays so, see the log of the daemon")
        }
        _ => {
            let remedy = "start the daemon with `ringwall host run` or `ringwall gate run`, and ask as root";
            Failure::file(socket, error, remedy)
        }
    };
    let mut line = serde_json::to_string(ask).map_err(Failure::new)?;
    line.push('\n');
    let is_hung_up = |text: &std::io::Result<String>| match text {
        Ok(text) => text.is_empty(),
        Err(error) => matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
    };
    let mut text = exchange(socket, &line);
    for _ in 0..ASKED_AGAIN_MAX {
        if is_hung_up(&text) {
            text = exchange(socket, &line);
        }
    }
    let mut text = text.map_err(failed)?;
    if text.is_empty() {
        return Err(Failure::file(
            socket,
            "the daemon hung up",
            "ask again; if it stays so, see the log of the daemon",
        ));
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// Puts one line to the daemon; what it says is empty if it hung up. Every question may be put twice.
fn exchange(socket: &Path, line: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(line.as_bytes())?;
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text)?;
    Ok(text)
}

/// Tells a living daemon, that of `interface`, to stop and waits until it has.
pub(crate) fn stop(socket: &Path, interface: &str, time_max: Duration) -> Result<(), Failure> {
    if ask(socket, &Ask::Stop).is_err() {
        return Ok(());
    }
    let end = Instant::now() + time_max;
    while socket.exists() {
        if Instant::now() > end {
            let line = format!("the daemon of {interface} does not stop; end it by its process id");
            return Err(Failure::new(line));
        }
        std::thread::sleep(STOP_LOOK_INTERVAL);
    }
    Ok(())
}

/// Removes what a killed daemon has left. The lock on its interface has shown that nobody listens there.
pub(crate) fn remove_socket(socket: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file(socket, error, "remove it")),
        _ => Ok(()),
    }
}

pub(crate) fn unexpected(socket: &Path) -> Failure {
    Failure::file(socket, "the daemon answered something else", "use the same version of both")
}

pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    say!("{}", serde_json::to_string_pretty(value).map_err(Failure::new)?);
    Ok(())
}

/// What a daemon says of itself; what went wrong if it says nothing.
struct Told {
    /// The name of the socket, which stands for a daemon that does not answer.
    name: String,
    answer: Result<Answer, Failure>,
}

/// `ringwall status`: the exit status says how it is.
pub(crate) fn status(args: &AskArgs) -> Result<ExitCode, Failure> {
    let sockets = args.daemon.sockets()?;
    let mut told: Vec<Told> = sockets.iter().map(|socket| Told::ask(socket)).collect();
    if let [Told { answer: Err(_), .. }] = told[..] {
        let failure = told.pop().and_then(|one| one.answer.err());
        return Err(failure.unwrap_or_else(|| Failure::new("no daemon answers")));
    }
    if args.json {
        print_statuses_json(&told, args.daemon.config.is_some() || args.daemon.interface.is_some())?;
    } else {
        told.iter().for_each(Told::print);
    }
    let worst = told.iter().map(|one| one.verdict().level).max().unwrap_or(verdict::Level::Unknown);
    Ok(ExitCode::from(worst as u8))
}

pub(crate) fn stem(socket: &Path) -> String {
    socket.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// One that was named is an object; all of a machine are a list in one.
fn print_statuses_json(told: &[Told], is_named: bool) -> Result<(), Failure> {
    let all: Vec<_> = told.iter().map(Told::json).collect::<Result<_, _>>()?;
    match &all[..] {
        [one] if is_named => print_json(one),
        _ => print_json(&serde_json::json!({
            "schema": STATUS_SCHEMA, "schema_version": STATUS_VERSION, "daemons": all,
        })),
    }
}

impl Told {
    fn ask(socket: &Path) -> Told {
        let told = |answer: &Answer| answer.account().is_some();
        let answer = ask(socket, &Ask::Status);
        let answer = answer.and_then(|answer| if told(&answer) { Ok(answer) } else { Err(unexpected(socket)) });
        Told { name: stem(socket), answer }
    }

    fn account(&self) -> Option<&dyn Account> {
        self.answer.as_ref().ok()?.account()
    }

    fn verdict(&self) -> Verdict {
        match (self.account(), &self.answer) {
            (Some(account), _) => account.verdict(),
            (None, Err(failure)) => Verdict::unknown(&failure.to_string()),
            (None, Ok(_)) => Verdict::unknown("the daemon answered something else"),
        }
    }

    fn print(&self) {
        let verdict = self.verdict();
        let Some(account) = self.account() else { return say!("{}", verdict.line(&self.name)) };
        say!("{}", verdict.line(account.interface()));
        print_attacks(account.attacks());
        account.lines().iter().for_each(|line| say!("{line}"));
    }

    fn json(&self) -> Result<serde_json::Value, Failure> {
        let mut value = match self.account() {
            Some(account) => account.json().map_err(Failure::new)?,
            None => serde_json::json!({ "interface": self.name, "state": "silent" }),
        };
        let verdict = serde_json::to_value(self.verdict()).map_err(Failure::new)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("schema".to_owned(), STATUS_SCHEMA.into());
            fields.insert("schema_version".to_owned(), STATUS_VERSION.into());
            fields.insert("verdict".to_owned(), verdict);
        }
        Ok(value)
    }
}

/// Who attacks, one line each, and what to do.
fn print_attacks(attacks: &Attacks) {
    for attack in &attacks.open {
        say!("attack {}, {}: {} Last {}.", attack.number, attack.sort.kind, attack.sentence, attack.span.last);
        say!("  do: {}", attack.sort.advice);
    }
    if attacks.opened > attacks.open.len() as u64 {
        say!("attacks since the start: {}, of which {} go on", attacks.opened, attacks.open.len());
    }
}

/// `ringwall peers`
pub(crate) fn peers(args: &AskArgs) -> Result<(), Failure> {
    let socket = args.daemon.socket()?;
    let answer = ask(&socket, &Ask::Peers)?;
    let known = answer.known().ok_or_else(|| unexpected(&socket))?;
    if args.json {
        say!("{}", known.json().map_err(Failure::new)?);
    } else {
        known.lines().iter().for_each(|line| say!("{line}"));
    }
    Ok(())
}

/// Options of `ringwall events`
#[derive(Args, Debug)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// Goes on until it is interrupted.
    #[arg(long, short)]
    follow: bool,
}

/// `ringwall events`
pub(crate) fn events(args: &EventsArgs) -> Result<(), Failure> {
    let socket = args.ask.daemon.socket()?;
    let mut after = 0;
    loop {
        let Answer::Events { events } = ask(&socket, &Ask::Events { after })? else { return Err(unexpected(&socket)) };
        after = events.last().map_or(after, |event| event.number);
        for event in &events {
            print_event(event, args.ask.json)?;
        }
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(FOLLOW_INTERVAL);
    }
}

fn print_event(event: &Event, json: bool) -> Result<(), Failure> {
    if json {
        say!("{}", serde_json::to_string(event).map_err(Failure::new)?);
    } else {
        say!(
            "{:>6}  {}.{:03}  {:<12}  {}",
            event.number,
            event.unix_ms / 1000,
            event.unix_ms % 1000,
            event.event,
            event.text
        );
    }
    Ok(())
}

/// Options of `ringwall explain`
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// A reason to explain, as `status` names it; without it, what was dropped lately.
    reason: Option<String>,
}

/// `ringwall explain`
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    if let Some(word) = &args.reason
        && !DropReason::ALL.iter().any(|reason| reason.word() == word)
    {
        let words: Vec<_> = DropReason::ALL.iter().map(|reason| reason.word()).collect();
        return Err(Failure::new(format!("no drop reason \"{word}\"; there are {}", words.join(", "))));
    }
    let socket = args.ask.daemon.socket()?;
    let Answer::Drops { counts, examples } = ask(&socket, &Ask::Drops)? else { return Err(unexpected(&socket)) };
    let wanted = |word: &str| args.reason.as_ref().is_none_or(|reason| reason == word);
    if args.ask.json {
        let examples: Vec<&Example> = examples.iter().filter(|example| wanted(&example.reason)).collect();
        return print_json(&serde_json::json!({ "counts": counts, "examples": examples }));
    }
    for reason in DropReason::ALL {
        let count = counts.get(reason.word()).copied().unwrap_or(0);
        let asked = args.reason.is_some() && wanted(reason.word());
        if asked || (args.reason.is_none() && count > 0) {
            print_reason(*reason, count, &examples);
        }
    }
    Ok(())
}

fn print_reason(reason: DropReason, count: u64, examples: &[Example]) {
    let lines = reason_lines(reason, count, examples);
    lines.iter().enumerate().for_each(|(at, line)| say!("{}{line}", if at == 0 { "" } else { "  " }));
}

/// What a drop reason means, what to do, and who was dropped for it lately.
pub(crate) fn reason_lines(reason: DropReason, count: u64, examples: &[Example]) -> Vec<String> {
    let mut lines = vec![
        format!("{} ({count} frames)", reason.word()),
        format!("what: {}", reason.meaning()),
        format!("do:   {}", reason.remedy()),
    ];
    for example in examples.iter().filter(|example| example.reason == reason.word()) {
        let packet = example.packet.as_ref().map_or_else(String::new, |packet| format!(": {packet}"));
        lines.push(format!(
            "seen {} ms ago from the {}: {} -> {}, {}, {} bytes{packet}",
            example.ago_ms, example.from, example.source, example.destination, example.ethertype, example.len
        ));
    }
    lines
}
