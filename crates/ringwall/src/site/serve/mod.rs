//! `ringwall site serve`: the service that hosts report to
//! (docs/decisions/0088-a-service-of-the-site.md).
//!
//! It is two processes. The *keeper* stays with the site's directory: it keeps the newest report of
//! each host, and hands out what the site has signed. It hears no network. The *door* listens, has
//! no privilege and sees no file: it speaks TLS, reads HTTP, says who asks, and puts one question
//! at a time to the keeper, and one to its clerk, who asks the signer.
//!
//! - `keeper.rs`: the keeper; `kept.rs`: its database; `door.rs`: the door; `http.rs`: requests and
//!   answers; `refusal.rs`: why somebody is turned away; `brought.rs`: what hosts bring back to a
//!   site that was restored. What doors have in common is in `serving/`.

pub(super) mod brought;
mod door;
mod http;
mod keeper;
pub(super) mod kept;
mod refusal;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::DEFAULT_DIRECTORY;

pub(crate) use door::run;
pub(super) use keeper::serve;

/// The word of the command line that starts a door.
pub(crate) const COMMAND: &str = "site-door";

/// The port where hosts report if no other is named.
const PORT: u16 = 9478;

/// Arguments of `site serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The identity that hosts see: that of this machine, or one of its own
    #[arg(long, value_name = "FILE", default_value = "/etc/ringwall/identity.pem")]
    identity: PathBuf,
    /// Where to listen, an address and a port; repeat it for several. Without it: port 9478 of each
    /// address that the identity's certificate has
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<SocketAddr>,
    /// Where `ringwall site signer` is asked, for renewals and enrolments; while nobody answers
    /// there these are refused, and hosts try again
    #[arg(long, value_name = "FILE", default_value = super::signer::DEFAULT_SOCKET)]
    signer: PathBuf,
}

/// What a door is told first.
#[derive(Deserialize, Serialize)]
struct Duty {
    listen: Vec<SocketAddr>,
    /// The identity file. It is the service's key, so it goes through nothing but the socket
    /// between both.
    identity: String,
}

/// What a door asks its keeper, one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Question {
    /// Keep this report of the host with this name, which it has proved by a certificate with this
    /// serial number.
    Keep { host: String, serial: String, certificate: String, report: Box<crate::report::Report> },
    /// This host has brought something that the site has signed, in PEM.
    Bring { host: String, text: String },
    /// The site's policy, as the file is.
    Policy,
    /// Its list of revoked certificates.
    Revoked,
    /// So many were turned away since the last time, by reason.
    Count(Vec<(String, u64)>),
}

/// What a door asks the clerk, one line of JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Task {
    /// Have this signed.
    Sign(super::signer::Question),
    /// What an operator orders, in PEM.
    Order(String),
}

/// What the keeper or the clerk answers.
#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Reply {
    Kept(Kept),
    /// Nothing, where the site has none.
    Text(Option<String>),
    /// Nothing, where the signer does not answer.
    Signed(Option<super::signer::Answer>),
    /// What came of an order, sealed for its operator; nothing where nobody could carry it out.
    Ordered(Option<Result<String, super::orders::NotHeard>>),
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kept {
    Newest,
    /// There is one that was made at that time or later.
    Older,
    /// The site has not signed it.
    NotSigned,
    /// There are as many hosts as are kept.
    Full,
    /// The disk is full, or the file is damaged.
    Failed,
}
