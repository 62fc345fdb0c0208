//! What the site's service says of all hosts of the LAN (record 0117).
//!
//! A third process asks it, the *asker*: as an operator who may only look, at a bounded rate. It has
//! the operator's key, hears nobody but the service, and has neither privilege nor file. What it was
//! told goes through the reader to the door.
//!
//! - `asker.rs`: the process; `reading.rs`: from what the service prints to what is kept of it.

mod asker;
mod reading;

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use authority::files;
use identity::certificate::{OperatorRole, utc_text};
use identity::order::Operator;
use serde::{Deserialize, Serialize};

use super::ServeArgs;
use crate::companion;
use crate::failure::Failure;
use crate::report::unix_s;
use crate::serving::{Patience, Way};
use crate::site::BriefHost;

pub(crate) use asker::run as run_asker;
#[cfg(test)]
pub(super) use reading::HOSTS_MAX;

/// How long an asker may take, which says what it knows already.
const ASKER_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest of its lines: 20,000 hosts.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// The word of the command line that starts an asker.
pub(crate) const COMMAND: &str = "console-asker";

/// What an asker is to do, the first line that it hears.
#[derive(Deserialize, Serialize)]
struct Duty {
    service: SocketAddr,
    service_name: Option<String>,
    /// The operator's file, in PEM.
    operator: String,
}

/// What is known of the site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Site {
    /// Another one with each change.
    pub(super) number: u64,
    /// Where the service is asked.
    pub(super) service: String,
    /// When it was asked last with success.
    pub(super) told_unix: Option<u64>,
    pub(super) told: Told,
    /// Why it says nothing newer.
    pub(super) failing: Option<Failing>,
}

/// The service is away, or refuses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Failing {
    pub(super) since_unix: u64,
    pub(super) why: String,
}

/// What the service said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Told {
    pub(super) policy_version: Option<u64>,
    /// By name.
    pub(super) hosts: Vec<BriefHost>,
    /// Whether there are more than are kept.
    pub(super) is_cut: bool,
    /// Who would be cut off if all enforced.
    pub(super) clear: Vec<Clear>,
    /// How many more there are.
    pub(super) clear_left_out: u64,
    /// Why it is not known who that is.
    pub(super) no_forecast: Option<String>,
    /// Whom the policy lists as unable to speak under seal.
    pub(super) legacy: Vec<Legacy>,
    pub(super) legacy_left_out: u64,
}

/// A host in clear that no list has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Clear {
    pub(super) mac: String,
    /// Its name, if it is enrolled.
    pub(super) enrolled_as: Option<String>,
    pub(super) addresses: Vec<String>,
    pub(super) protocols: Vec<String>,
    pub(super) frames: u64,
    pub(super) last_unix: u64,
    /// How many hosts hear it.
    pub(super) heard_by: u64,
}

/// A host on the policy's list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Legacy {
    pub(super) ip: String,
    pub(super) mac: String,
    #[serde(default)]
    pub(super) router: bool,
}

impl Site {
    /// What is said when nobody asks the service any more.
    pub(super) fn without_asker(error: &io::Error, now_unix: u64) -> Site {
        let why = format!("the process that asks it has ended ({error}); start ringwall-console again");
        Site { number: u64::MAX, failing: Some(Failing { since_unix: now_unix, why }), ..Site::default() }
    }
}

/// Starts the asker, where the site is to be asked, with a key that is read here: once the sandbox
/// is closed nobody reads it.
pub(super) fn start(args: &ServeArgs) -> Result<Option<Way>, Failure> {
    let Some((service, file)) = args.site.zip(args.operator.as_ref()) else { return Ok(None) };
    let text = files::read(file)?;
    let wrong = |what: &dyn std::fmt::Display, remedy: &str| Failure::file(file, what, remedy);
    let operator = Operator::from_pem(&text)
        .map_err(|error| wrong(&error, "name the file of an operator with --as; see `ringwall site operator add`"))?;
    let (name, role) = (operator.certificate().name(), operator.certificate().role());
    if role != OperatorRole::Viewer {
        let what = format!("{name} is {role}, and a console only looks");
        return Err(wrong(&what, "give it an operator of its own: ringwall site operator add console --role viewer"));
    }
    let ends_unix = operator.certificate().not_after_unix();
    // The pages of this machine are there all the same, and the one of the site says why it is empty.
    if unix_s().is_none_or(|now_unix| ends_unix < now_unix) {
        let until = utc_text(ends_unix);
        tracing::warn!("{name} was an operator until {until}: make another file with `ringwall site operator add`");
    }
    let failed = |error: io::Error| Failure::new(format!("the asker of the console does not start: {error}"));
    let mut asker = companion::start(COMMAND).and_then(way).map_err(failed)?;
    let duty = Duty { service, service_name: args.service_name.clone(), operator: text.to_string() };
    asker.say(&duty).map_err(failed)?;
    tracing::info!("the site is asked at {service} as {name}, whose file is good until {}", utc_text(ends_unix));
    Ok(Some(asker))
}

/// The way to an asker, through which a socket leads.
fn way(stream: UnixStream) -> io::Result<Way> {
    Way::new(stream, Patience { say: Some(ASKER_TIME_MAX), hear: ASKER_TIME_MAX }, LINE_BYTES_MAX)
}
