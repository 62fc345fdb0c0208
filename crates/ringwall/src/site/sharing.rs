//! `ringwall site rekey-shared`: another site key and other masters, which hosts fetch by
//! themselves; and what `site revoke` says of it.

use std::path::PathBuf;
use std::time::Duration;

use authority::directory::{Change, Pace};
use clap::Args;
use identity::certificate::utc_text;
use serde_json::{Value, json};

use super::{DEFAULT_DIRECTORY, Surroundings};
use crate::config::duration::parse_time;
use crate::failure::Failure;

/// Arguments of `site rekey-shared`.
#[derive(Debug, Args)]
pub(crate) struct RekeySharedArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// How long hosts have to fetch the new key before anybody sends with it
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_time)]
    after: Duration,
    /// How long the one before is still accepted then
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = parse_time)]
    grace: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn rekey(arguments: &RekeySharedArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RekeySharedArguments { dir, after, grace, json } = arguments;
    let mut directory = surroundings.open(dir)?;
    let pace = Pace { after: *after, grace: *grace };
    let change = directory.rekey_shared(pace, surroundings.random, surroundings.unix_s)?;
    surroundings.print(*json, &value(&change), &text(&change))
}

pub(super) fn value(change: &Change) -> Value {
    json!({
        "generation": change.generation.0,
        "sent_from": utc_text(change.from_unix_s),
        "former": change.former.0,
        "former_accepted_until": utc_text(change.until_unix_s),
        "given_up": change.given_up.map(|generation| generation.0),
    })
}

pub(super) fn text(change: &Change) -> String {
    let Change { generation, from_unix_s, former, until_unix_s, given_up } = change;
    let (from, until) = (utc_text(*from_unix_s), utc_text(*until_unix_s));
    let given_up = given_up.map_or_else(String::new, |given_up| format!("; {given_up} is given up"));
    format!(
        "the site key changes: hosts fetch generation {generation} with their next `ringwall host renew`, send with it from {from}, and \
         refuse {former} after {until}{given_up}\ndistributors and DHCP servers fetch it in the same way; one that is off until then gets \
         it by file"
    )
}
