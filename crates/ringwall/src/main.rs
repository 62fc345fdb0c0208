//! The program `ringwall`: reads its arguments and calls the room that does the work.

mod akd;
mod client;
mod companion;
mod config;
mod console;
mod crypto_bench;
mod daemon;
mod doctor;
mod enroll;
mod failure;
mod finding;
mod history;
mod host;
mod join;
mod metrics;
mod modes;
mod monitor;
mod output;
#[cfg(test)]
mod pages;
mod protocol;
mod randomness;
mod recorder;
mod report;
mod serving;
mod site;
mod status;
mod top;
mod verdict;
mod why;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use akd::AkdCommand;
use client::{AskArgs, EventsArgs, ExplainArgs};
use console::ConsoleArgs;
use doctor::DoctorArgs;
use failure::Failure;
use history::HistoryArgs;
use host::HostCommand;
use join::{JoinArguments, LeaveArguments};
use metrics::MetricsArgs;
use modes::ConfigFile;
use modes::gateway::GateCommand;
use modes::ipsec::command::ShieldCommand;
use output::say;
use report::{ForecastArguments, ReportArguments};
use site::{OperateArguments, SiteCommand};
use top::TopArgs;
use why::WhyArgs;

/// Secures a local network: every frame between two hosts authenticated and encrypted, or at least ARP signed.
#[derive(Parser, Debug)]
#[command(
    version,
    after_help = "First steps: `ringwall site init --help`, then `ringwall join --help`. \
    Manual: ringwall(8)."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Writes the log as JSON.
    #[arg(long, global = true)]
    log_json: bool,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Makes this machine a guarded host of a site: enrols, configures, tries, and keeps what is
    /// good (needs root)
    ///
    /// With the token that the manager has from 'ringwall site token':
    ///   ringwall join --token-file desk-17.token
    ///   ssh desk-17 ringwall join - < desk-17.token
    ///
    /// It looks at the machine first and changes nothing if something is wrong. The interface is
    /// guarded on trial: unless gateway, name server and site answer as before, it is given back at
    /// once, and if this command dies, after 3 minutes. Interrupted, it goes on where it was when
    /// it is given again.
    #[command(verbatim_doc_comment)]
    Join(Box<JoinArguments>),
    /// Undoes 'ringwall join': gives the interface back, in clear, and removes units and
    /// configuration (needs root)
    Leave(LeaveArguments),
    /// The authority of a site: who belongs to it.
    #[command(subcommand)]
    Site(SiteCommand),
    /// Gives the site's service an order, as an operator of the site: a command of 'ringwall site'
    ///
    /// With the file from 'ringwall site operator add', on any machine that reaches the service. A
    /// viewer may look (hosts, list, forecast, pending, audit, policy show), an operator also let
    /// in (token, approve, refuse, policy legacy and known), a manager everything that the service
    /// does (revoke, rekey-shared, policy mode and exception, enforce).
    ///
    /// Example: ringwall operate --service 192.0.2.5:9478 --as ann.pem policy mode 'desk-*' observe
    #[command(verbatim_doc_comment)]
    Operate(OperateArguments),
    /// Guards one interface of this host.
    #[command(subcommand)]
    Host(HostCommand),
    /// Distributes the site's keys to hosts that speak S-ARP.
    #[command(subcommand)]
    Akd(AkdCommand),
    /// Scrubs what passes between two networks, or a capture of it.
    #[command(subcommand)]
    Gate(GateCommand),
    /// Layered nonces in front of an IPsec stack: forged packets end before it.
    #[command(subcommand)]
    Shield(ShieldCommand),
    /// How the daemon is: what is wrong and what to do, then everything else
    ///
    /// Without a file and an interface: all daemons of this machine. Exit status: 0 good, 1
    /// warning, 2 critical, 3 no answer.
    #[command(verbatim_doc_comment)]
    Status(AskArgs),
    /// What is around the daemons of this machine: one line and one remedy each, nothing is changed
    ///
    /// It looks at kernel, tools, clock, network managers, card, certificate, unit, daemon, peers
    /// and disk; without root and without a daemon as far as that goes. Exit status as with status;
    /// 3 where nothing is wrong and something could not be looked at.
    #[command(verbatim_doc_comment)]
    Doctor(DoctorArgs),
    /// What keeps this host and HOST apart, or in clear, or that all is well
    ///
    /// It asks the daemon and the kernel, and sends HOST one datagram and some pings. One line and
    /// one remedy each; what only HOST can tell is said, with what to type there. Exit status: 0
    /// good, 1 warning, 2 critical, 3 where nothing worse is known. Example:
    ///   ringwall why 192.0.2.17
    #[command(verbatim_doc_comment)]
    Why(WhyArgs),
    /// How the daemons of this machine are, again and again: drops per second by reason, peers,
    /// attacks, connections, certificates
    ///
    /// Keys: q ends, Tab or 1 to 5 chooses a table, arrows a row, which is explained below, / filters,
    /// p pauses, s writes all tables to a new file. NO_COLOR is heeded. With --once the exit status
    /// says how it is, as that of status does.
    #[command(verbatim_doc_comment)]
    Top(TopArgs),
    /// Pages for a browser about the daemons of this machine: health, peers, attacks, history,
    /// certificates, gateway (needs root)
    ///
    /// It listens on this machine alone, shows and takes no orders, and needs no JavaScript. A
    /// person is let in by a link that works once:
    ///   systemctl enable --now ringwall-console.service
    ///   ringwall console login
    /// From another machine: ssh -L 9479:127.0.0.1:9479 HOST
    #[command(verbatim_doc_comment)]
    Console(ConsoleArgs),
    /// Associations with other hosts.
    Peers(AskArgs),
    /// What happened lately.
    Events(EventsArgs),
    /// What happened before: attacks, changes, and who had which address when
    ///
    /// From records.history_file, with or without a daemon. Example, who had an address last week:
    ///   ringwall history --since 7d --about 192.0.2.17
    #[command(verbatim_doc_comment)]
    History(HistoryArgs),
    /// Why frames were dropped, and what to do about it.
    Explain(ExplainArgs),
    /// Who would be cut off, and which uses of the network, if this host enforced now
    ///
    /// From what it lets pass in mode observe or prefer. Without a file and an interface: of all
    /// daemons of this machine. For the whole site: 'ringwall site forecast'.
    #[command(verbatim_doc_comment)]
    Forecast(ForecastArguments),
    /// Tells the site's service how this host is, and fetches what the site has signed since (needs
    /// root)
    ///
    /// The service is that of site.service. A timer does this each minute:
    ///   systemctl enable --now ringwall-report@eth0.timer
    #[command(verbatim_doc_comment)]
    Report(ReportArguments),
    /// What Prometheus scrapes, in its text format
    ///
    /// Without a file and an interface: of all daemons of this machine.
    #[command(verbatim_doc_comment)]
    Metrics(MetricsArgs),
    /// Looks at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The part of a daemon that stays root; a daemon starts it by itself.
    #[command(hide = true, name = monitor::COMMAND)]
    Monitor,
    /// The part of a daemon that tells of attacks; a daemon starts it by itself.
    #[command(hide = true, name = recorder::COMMAND)]
    Recorder,
    /// The part of a daemon that answers scrapers; a daemon starts it by itself.
    #[command(hide = true, name = metrics::exporter::COMMAND)]
    Exporter,
    /// The part of the site's service that listens; the service starts it by itself.
    #[command(hide = true, name = site::serve::COMMAND)]
    SiteDoor,
    /// The part of the console that listens; the console starts it by itself.
    #[command(hide = true, name = console::COMMAND)]
    ConsoleDoor,
    /// The part of the console that asks the site's service; the console starts it by itself.
    #[command(hide = true, name = console::site::COMMAND)]
    ConsoleAsker,
    /// Times the cryptographic operations of a handshake, for the laboratory.
    #[command(hide = true)]
    BenchCrypto(crypto_bench::BenchArgs),
}

#[derive(Subcommand, Debug)]
enum ConfigCommand {
    /// Checks the file and says what is wrong.
    Check(FileArgs),
    /// Prints the configuration in force, defaults included.
    Show(FileArgs),
}

/// Options that name a file of a host or of a gateway.
#[derive(Args, Debug)]
struct FileArgs {
    /// Configuration file; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl FileArgs {
    fn load(&self) -> Result<(PathBuf, ConfigFile), Failure> {
        let file = self.config.clone().unwrap_or_else(config::default_file);
        Ok((file.clone(), ConfigFile::load(&file)?))
    }
}

fn main() -> ExitCode {
    // What no boundary contains ends the process where it stands: no destructor gives an interface
    // back.
    system::boundary::install(|| std::process::abort());
    let cli = Cli::parse();
    start_log(cli.log_json);
    let (outcome, failed) = match cli.command {
        // Whoever asks how it is takes a failure for no answer.
        Command::Status(args) => (client::status(&args), ExitCode::from(verdict::Level::Unknown as u8)),
        Command::Doctor(args) => (doctor::doctor(&args), ExitCode::from(verdict::Level::Unknown as u8)),
        Command::Top(args) => (top::top(&args), ExitCode::from(verdict::Level::Unknown as u8)),
        Command::Why(args) => (why::why(&args), ExitCode::from(verdict::Level::Unknown as u8)),
        command => (run(command).map(|()| ExitCode::SUCCESS), ExitCode::FAILURE),
    };
    outcome.unwrap_or_else(|failure| {
        output::complain(format_args!("{failure}"));
        failure.status().map_or(failed, ExitCode::from)
    })
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        // They have an exit status of their own.
        Command::Status(args) => client::status(&args).map(drop),
        Command::Doctor(args) => doctor::doctor(&args).map(drop),
        Command::Top(args) => top::top(&args).map(drop),
        Command::Why(args) => why::why(&args).map(drop),
        Command::Join(arguments) => arguments.run(),
        Command::Leave(arguments) => arguments.run(),
        Command::Site(command) => command.run().map_err(Failure::new),
        Command::Operate(arguments) => site::operate(&arguments),
        Command::Host(command) => command.run(),
        Command::Akd(command) => command.run(),
        Command::Gate(command) => command.run(),
        Command::Shield(command) => command.run(),
        Command::Console(args) => console::console(&args),
        Command::Peers(args) => client::peers(&args),
        Command::Events(args) => client::events(&args),
        Command::History(args) => history::history(&args),
        Command::Explain(args) => client::explain(&args),
        Command::Forecast(arguments) => report::forecast(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Metrics(args) => metrics::metrics(&args),
        Command::Config(ConfigCommand::Check(args)) => check_config(&args),
        Command::Config(ConfigCommand::Show(args)) => show_config(&args),
        Command::Monitor => monitor::run(),
        Command::Recorder => recorder::run(),
        Command::Exporter => metrics::exporter::run(),
        Command::SiteDoor => site::serve::run(),
        Command::ConsoleDoor => console::run_door(),
        Command::ConsoleAsker => console::site::run_asker(),
        Command::BenchCrypto(args) => crypto_bench::run(&args),
    }
}

/// The log goes to the standard error. Where systemd reads it, it has its own times, and each line says its priority.
/// `RINGWALL_LOG` sets the level.
fn start_log(json: bool) {
    let wanted = std::env::var("RINGWALL_LOG").ok().and_then(|level| level.parse::<LevelFilter>().ok());
    let log = tracing_subscriber::fmt().with_max_level(wanted.unwrap_or(LevelFilter::INFO)).with_target(false);
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    match (json, is_journal) {
        (true, _) => log.with_writer(std::io::stderr).json().init(),
        (false, true) => log.with_writer(output::Prioritised).without_time().init(),
        (false, false) => log.with_writer(std::io::stderr).init(),
    }
}

fn check_config(args: &FileArgs) -> Result<(), Failure> {
    let (file, config) = args.load()?;
    for warning in config.warnings() {
        say!("{}: warning: {warning}", file.display());
    }
    say!("{}: no mistake found", file.display());
    Ok(())
}

fn show_config(args: &FileArgs) -> Result<(), Failure> {
    let (_, config) = args.load()?;
    say!("{}", config.shown()?.trim_end());
    let ConfigFile::Host(config) = config else { return Ok(()) };
    for what in config.not_carried() {
        say!("# dropped by name in this version: {what}");
    }
    for what in modes::of(config.host.mode).needs(&config).not_protected {
        say!("# not protected: {what}");
    }
    Ok(())
}
