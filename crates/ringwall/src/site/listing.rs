//! `ringwall site list`, and how a certificate that was issued is shown.

use std::path::PathBuf;

use authority::Entry;
use clap::Args;
use identity::certificate::utc_text;
use serde_json::{Value, json};

use super::{DAY, DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// Arguments of `site list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Also those that are over for more than a month and were followed by another one
    #[arg(long)]
    pub(super) all: bool,
    /// Print a list of JSON objects
    #[arg(long)]
    json: bool,
}

pub(super) fn list(arguments: &ListArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let directory = surroundings.actor.record(&arguments.dir)?;
    let entries = if arguments.all { directory.list_all()? } else { directory.list()? };
    let unix_s = surroundings.unix_s;
    let listed = |entry: &Entry| {
        let mut value = entry_json(entry);
        value["revoked"] = json!(entry.revoked);
        value["days_left"] = json!(entry.not_after_unix.saturating_sub(unix_s) / DAY.as_secs());
        value
    };
    let value = Value::Array(entries.iter().map(listed).collect());
    let lines: Vec<String> =
        entries.iter().map(|entry| format!("{}, {}", entry_text(entry), standing_text(entry, unix_s))).collect();
    let text = if lines.is_empty() { "nothing was issued yet".to_owned() } else { lines.join("\n") };
    surroundings.print(arguments.json, &value, &text)
}

pub(super) fn entry_json(entry: &Entry) -> Value {
    json!({
        "serial": entry.serial,
        "name": entry.name,
        "role": entry.role.name(),
        "mac": entry.mac.to_string(),
        "addresses": entry.addresses,
        "not_before": utc_text(entry.not_before_unix),
        "not_after": utc_text(entry.not_after_unix),
    })
}

pub(super) fn entry_text(entry: &Entry) -> String {
    let addresses: Vec<String> = entry.addresses.iter().map(ToString::to_string).collect();
    let addresses = if addresses.is_empty() { "no address".to_owned() } else { addresses.join(", ") };
    let until = utc_text(entry.not_after_unix);
    format!("{} {}: {}, {addresses}, until {until}, serial {}", entry.role, entry.name, entry.mac, entry.serial)
}

fn standing_text(entry: &Entry, unix_s: u64) -> String {
    match entry.not_after_unix.checked_sub(unix_s) {
        _ if entry.revoked => "revoked".to_owned(),
        Some(left) => format!("{} days left", left / DAY.as_secs()),
        None => "over".to_owned(),
    }
}
