//! `ringwall console`: pages for a browser about the daemons of this machine
//! (docs/decisions/0096-a-console.md).
//!
//! It is two processes, and a third one that asks the site's service (`site/`). The *reader* asks
//! the daemons and reads the history; it hears no network. The *door* listens, has no privilege
//! and sees no file: it reads HTTP, signs people in, makes the pages, and puts one question at a
//! time to the reader. No question changes anything.
//!
//! - `reader.rs`: the reader; `tokens.rs`: the links that it gives out; `login.rs`: who asks for one.
//! - `listening.rs`: where the door is to listen, and with which certificate.
//! - `door.rs`: the door; `http.rs`: requests and answers; `reached.rs`: the names for which they are;
//!   `sessions.rs`: who is signed in; `refusal.rs`: why somebody is turned away. What doors have in
//!   common is in `serving/`.
//! - `look.rs`: what the door knows of the daemons; `trend.rs`: drops over time.
//! - `routes.rs`: which page is where; `pages/`: the pages; `../templates/console`: their HTML.

#[cfg(test)]
mod agreement;
mod door;
mod http;
mod listening;
mod login;
mod look;
mod pages;
mod reached;
mod reader;
mod refusal;
mod routes;
mod sessions;
pub(crate) mod site;
#[cfg(test)]
mod tests;
mod tokens;
mod trend;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::recorder::history::{Row, Wanted};

pub(crate) use door::run as run_door;

/// The word of the command line that starts a door.
pub(crate) const COMMAND: &str = "console-door";

/// Where it listens if nothing else is said.
const LISTEN: &str = "127.0.0.1:9479";
/// The history that docs/manual/configuration.md proposes.
const HISTORY: &str = "/var/lib/ringwall/history.db";

/// Options of `ringwall console`
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ConsoleArgs {
    #[command(subcommand)]
    command: Option<ConsoleCommand>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand, Debug)]
enum ConsoleCommand {
    /// Prints a link that signs one person in, once, within five minutes (needs root)
    Login(LoginArgs),
}

/// Where it listens and what it reads.
#[derive(Args, Debug)]
struct ServeArgs {
    /// Where browsers come to: a port of this machine alone, an absolute name for a socket, or, with
    /// --identity, any address and port
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    listen: String,
    /// Speak TLS with this: the identity that the site has issued, or a certificate for web servers, the
    /// chain behind it and its key (PKCS#8) in one file
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
    /// Show all hosts of the site, as its service there tells
    #[arg(long, value_name = "ADDRESS:PORT", requires = "operator")]
    site: Option<SocketAddr>,
    /// The name in the service's certificate, where that has another address
    #[arg(long, value_name = "NAME", requires = "site")]
    service_name: Option<String>,
    /// The file of an operator of the site who may only look (role viewer), as whom it is asked
    #[arg(long = "as", value_name = "FILE", requires = "site")]
    operator: Option<PathBuf>,
    /// Where the daemons' command sockets are
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
    /// The history of a daemon (records.history_file); repeat it for several. It need not be there
    #[arg(long, value_name = "FILE", default_value = HISTORY)]
    history: Vec<PathBuf>,
}

/// Which console is meant.
#[derive(Args, Debug)]
struct LoginArgs {
    /// Where the daemons' command sockets are, as the console was told
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

/// `ringwall console`
pub(crate) fn console(args: &ConsoleArgs) -> Result<(), Failure> {
    match &args.command {
        Some(ConsoleCommand::Login(args)) => login::login(args),
        None => reader::serve(&args.serve),
    }
}

/// What a door is to do, the first line that it hears.
#[derive(Deserialize, Serialize)]
struct Duty {
    listen: String,
    /// What it shows browsers, in PEM; none where it speaks no TLS.
    identity: Option<String>,
    /// Whether the site's service is asked.
    has_site: bool,
}

/// What a door asks its reader, one line of JSON. There is no order among them.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Question {
    /// Which daemons are there?
    Daemons,
    /// Ask the daemon with this name.
    Ask { daemon: String, what: What },
    /// Rows of the history.
    History(Wanted),
    /// Is this a token that nobody has used, in base64?
    Redeem(String),
    /// What is known of the site, where it is not what has this number?
    Site(u64),
}

/// What a daemon may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    Status,
    Known,
    Drops,
    Flows,
}

/// What the reader answers.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Reply {
    Daemons(Vec<String>),
    /// What a daemon said, as it said it: the door reads it, which has no privilege.
    Told(Box<RawValue>),
    /// Nobody answers, and why.
    Silent(String),
    Rows(Vec<Row>),
    Redeemed(bool),
    Site(Option<Box<site::Site>>),
}
