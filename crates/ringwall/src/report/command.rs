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
use crate::output::say;

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

/// What the service answers to a report: what is newest of what the site has signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Newest {
    pub(crate) policy_version: Option<u64>,
    pub(crate) revoked_issued_unix: Option<u64>,
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
    let text = files::read(&config.host.identity)?;
    let wrong = |error: &dyn std::fmt::Display| Failure::file(&config.host.identity, error, "enrol this host anew");
    let identity = HostIdentity::from_pem(&text).map_err(|error| wrong(&error))?;
    let report = Report { site_key_generation: Some(identity.generation().0), ..report };
    if arguments.show {
        return print_json(&report);
    }
    let credentials = Credentials::from_pem(&text, unix_s).map_err(|error| wrong(&error))?;
    let (address, service) = config.site.way(&arguments.config)?;
    let way = Way { address, service, proof: Proof::Certificate(credentials) };
    let answer = way.ask(REPORT_PATH, Some(&report.bytes()))?;
    let newest = serde_json::from_slice(&answer);
    let newest: Newest =
        newest.map_err(|error| Failure::new(format!("the site's service: {error}; use one version")))?;
    say!("reported to {address}");
    fetch_policy(&way, &config, &identity, newest)?;
    fetch_revoked(&way, &config, &identity, newest)
}

/// Puts a newer policy where the daemon looks for it, or brings it to the service. The authority's
/// signature is what counts.
fn fetch_policy(way: &Way, config: &Config, identity: &HostIdentity, newest: Newest) -> Result<(), Failure> {
    let file = config.policy_file();
    let version = |text: &str| {
        let bytes = pem::single(text, pem::SITE_POLICY).ok()?;
        identity.anchor().verify_policy(&bytes).ok().map(|policy| policy.version())
    };
    fetch(way, POLICY_PATH, &file, newest.policy_version, version, "policy")
}

/// Likewise a newer list, where one is followed; elsewhere peers give it.
fn fetch_revoked(way: &Way, config: &Config, identity: &HostIdentity, newest: Newest) -> Result<(), Failure> {
    let Some(file) = &config.cll.revocation_list else { return Ok(()) };
    let issued = |text: &str| {
        let der = pem::single(text, pem::REVOCATION_LIST).ok()?;
        identity.anchor().verify_revocation_list(&der).ok().map(|list| list.issued_unix())
    };
    fetch(way, REVOKED_PATH, file, newest.revoked_issued_unix, issued, "list of revoked certificates")
}

/// Fetches what `path` has into `file` if it is `newest`, and newer than what is there by `number`. If
/// that is newer, the site was restored from a backup, and it is brought to the service.
fn fetch(
    way: &Way,
    path: &str,
    file: &Path,
    newest: Option<u64>,
    number: impl Fn(&str) -> Option<u64>,
    what: &str,
) -> Result<(), Failure> {
    let own_text = fs::read_to_string(file).unwrap_or_default();
    let own = number(&own_text);
    if newest < own {
        way.ask(NEWER_PATH, Some(own_text.as_bytes()))?;
        say!("the site's service has an older {what}; it was brought the one in {}", file.display());
        return Ok(());
    }
    if newest == own {
        return Ok(());
    }
    let bytes = way.ask(path, None)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    match number(&text) {
        Some(fetched) if Some(fetched) > own => {
            files::write(file, &text, Secrecy::Public, Overwrite::Force)?;
            say!("a newer {what} is in {}", file.display());
            Ok(())
        }
        _ => {
            Err(Failure::new(format!("the site's service gave a {what} that the site has not signed; nothing changed")))
        }
    }
}
