//! `ringwall report`: tells the site's service how this host is, and fetches what the site has
//! signed since.

use std::fs;
use std::path::{Path, PathBuf};

use authority::files::{self, Overwrite, Secrecy};
use clap::Args;
use identity::tls::Credentials;
use identity::{HostIdentity, pem};
use serde::{Deserialize, Serialize};

use super::asking::{Proof, Way};
use super::forecast::{now_unix_ms, unix_s};
use super::{Report, gather};
use crate::client::print_json;
use crate::config::DEFAULT_FILE;
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::output::{complain, say};

/// Where reports go.
pub(crate) const REPORT_PATH: &str = "/v1/report";
/// Where the site's policy is.
pub(crate) const POLICY_PATH: &str = "/v1/policy";
/// Where its list of revoked certificates is.
pub(crate) const REVOKED_PATH: &str = "/v1/revoked";

/// Where what the site has signed goes, if the service's is older.
pub(crate) const NEWER_PATH: &str = "/v1/newer";
/// Where a request for another certificate goes.
pub(crate) const RENEWAL_PATH: &str = "/v1/renewal";
/// Where a machine applies with a token; no certificate is shown there.
pub(crate) const ENROLMENT_PATH: &str = "/v1/enrolment";
/// Where orders of operators go.
pub(crate) const ORDER_PATH: &str = "/v1/order";

/// What HTTP says to who brings what the service has.
const HAS_IT: u16 = 409;
/// And where the service is of an earlier version.
const OF_BEFORE: u16 = 404;

/// What the service answers to a report: what is newest of what the site has signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Newest {
    pub(crate) policy_version: Option<u64>,
    pub(crate) revoked_issued_unix: Option<u64>,
    /// What others have brought, which nobody has to bring again.
    #[serde(flatten)]
    pub(crate) brought: NewestBrought,
}

/// The newest that hosts have [brought](NEWER_PATH) to the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct NewestBrought {
    #[serde(default)]
    pub(crate) brought_policy_version: Option<u64>,
    #[serde(default)]
    pub(crate) brought_revoked_issued_unix: Option<u64>,
}

impl NewestBrought {
    /// One more of them.
    pub(crate) fn add_policy(&mut self, version: u64) {
        self.brought_policy_version = self.brought_policy_version.max(Some(version));
    }

    /// Likewise of a list.
    pub(crate) fn add_revoked(&mut self, issued_unix: u64) {
        self.brought_revoked_issued_unix = self.brought_revoked_issued_unix.max(Some(issued_unix));
    }
}

/// Options of `ringwall report`
#[derive(Args, Debug)]
pub(crate) struct ReportArguments {
    /// Configuration file of the daemon, whose site.service says where to report.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
    config: PathBuf,
    /// Prints the report instead of sending it.
    #[arg(long)]
    show: bool,
}

/// `ringwall report`
pub(crate) fn report(arguments: &ReportArguments) -> Result<(), Failure> {
    let config = Config::load(&arguments.config)?;
    let report = gather::gather(&config.socket(), now_unix_ms())?;
    let wrong = |error: &dyn std::fmt::Display| Failure::file(&config.host.identity, error, "enrol this host anew");
    if arguments.show {
        // Who may not read the identity is shown the rest.
        let identity = files::read(&config.host.identity).ok().and_then(|text| HostIdentity::from_pem(&text).ok());
        return print_json(&with_generation(report, identity.as_ref()));
    }
    let text = files::read(&config.host.identity)?;
    let identity = HostIdentity::from_pem(&text).map_err(|error| wrong(&error))?;
    let report = with_generation(report, Some(&identity));
    let credentials = Credentials::from_pem(&text, unix_s).map_err(|error| wrong(&error))?;
    let (address, service) = config.site.way(&arguments.config)?;
    let way = Way { address, service, proof: Proof::Certificate(credentials) };
    let answer = way.ask(REPORT_PATH, Some(&report.bytes()))?;
    let newest = serde_json::from_slice(&answer);
    let newest: Newest =
        newest.map_err(|error| Failure::new(format!("the site's service: {error}; use one version")))?;
    say!("reported to {address}");
    // One that fails keeps no host from the other.
    let policy = exchange_policy(&way, &config, &identity, newest);
    policy.and(exchange_revoked(&way, &config, &identity, newest))
}

fn with_generation(report: Report, identity: Option<&HostIdentity>) -> Report {
    Report { site_key_generation: identity.map(|identity| identity.generation().0), ..report }
}

/// Puts a newer policy where the daemon looks for it, or brings it to the service. The authority's
/// signature is what counts.
fn exchange_policy(way: &Way, config: &Config, identity: &HostIdentity, newest: Newest) -> Result<(), Failure> {
    let file = config.policy_file();
    let version = |text: &str| {
        let bytes = pem::single(text, pem::SITE_POLICY).ok()?;
        identity.anchor().verify_policy(&bytes).ok().map(|policy| policy.version())
    };
    let theirs = Theirs { newest: newest.policy_version, brought: newest.brought.brought_policy_version };
    exchange(way, (POLICY_PATH, "policy"), &file, theirs, version, |_, _| false)
}

/// Likewise a newer list, where one is followed; elsewhere peers give it.
fn exchange_revoked(way: &Way, config: &Config, identity: &HostIdentity, newest: Newest) -> Result<(), Failure> {
    let Some(file) = &config.cll.revocation_list else { return Ok(()) };
    let issued = |text: &str| {
        let der = pem::single(text, pem::REVOCATION_LIST).ok()?;
        identity.anchor().verify_revocation_list(&der).ok().map(|list| list.issued_unix())
    };
    let theirs = Theirs { newest: newest.revoked_issued_unix, brought: newest.brought.brought_revoked_issued_unix };
    // It leaves out what is over, so a newer list may well be shorter; the service knows better.
    let loses = |own: &str, fetched: &str| {
        let list = |text: &str| {
            let der = pem::single(text, pem::REVOCATION_LIST).ok()?;
            identity.anchor().verify_revocation_list(&der).ok()
        };
        let (Some(own), Some(fetched)) = (list(own), list(fetched)) else { return false };
        own.serials().any(|serial| !fetched.has(serial))
    };
    exchange(way, (REVOKED_PATH, "list of revoked certificates"), file, theirs, issued, loses)
}

/// How new the service's is, and what others have brought to it.
struct Theirs {
    newest: Option<u64>,
    brought: Option<u64>,
}

/// Fetches what `path` has into `file` if it is newer than what is there by `number`. If what is
/// there is newer, or has what would be lost, the site was restored from a backup: it is brought to
/// the service first.
fn exchange(
    way: &Way,
    (path, what): (&str, &str),
    file: &Path,
    Theirs { newest, brought }: Theirs,
    number: impl Fn(&str) -> Option<u64>,
    loses: impl Fn(&str, &str) -> bool,
) -> Result<(), Failure> {
    let own_text = fs::read_to_string(file).unwrap_or_default();
    let own = number(&own_text);
    // Whether there is nothing more to bring.
    let bring = || -> Result<bool, Failure> {
        let (status, body) = way.answer(NEWER_PATH, Some(own_text.as_bytes()))?;
        match status {
            200 => say!("the site's service has an older {what}; it was brought the one in {}", file.display()),
            HAS_IT | OF_BEFORE => {}
            _ => complain(format_args!("{}", way.refused(status, &body))),
        }
        Ok([200, HAS_IT, OF_BEFORE].contains(&status))
    };
    if newest < own && brought < own {
        bring()?;
    }
    if newest <= own {
        return Ok(());
    }
    let bytes = way.ask(path, None)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    match number(&text) {
        Some(fetched) if Some(fetched) > own => {
            if brought < own && loses(&own_text, &text) && !bring()? {
                return Ok(());
            }
            files::write(file, &text, Secrecy::Public, Overwrite::Force)?;
            say!("a newer {what} is in {}", file.display());
            Ok(())
        }
        _ => {
            Err(Failure::new(format!("the site's service gave a {what} that the site has not signed; nothing changed")))
        }
    }
}
