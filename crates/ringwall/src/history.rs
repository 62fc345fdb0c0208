//! `ringwall history`: what a recorder has kept on disk.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;

use crate::client::print_json;
use crate::config;
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::modes::ConfigFile;
use crate::output::say;
use crate::recorder::history::{Row, Wanted, read};
use crate::recorder::rfc3339;

/// What the JSON is called, and its version, which changes when a field goes or means something
/// else.
const SCHEMA: &str = "ringwall-history";
const SCHEMA_VERSION: u32 = 1;

/// Options of `ringwall history`
#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Configuration file, whose records.history_file is read; without it /etc/ringwall/host.toml
    /// or gate.toml.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Reads this history instead.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// What went on within this time: 30s, 5m, 1h, 7d.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<Duration>,
    /// Of this kind: address, started, stopped, policy, order, or a kind of attack
    /// (docs/records.md).
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// With this network address, hardware address or name.
    #[arg(long, value_name = "WHO")]
    about: Option<String>,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// `ringwall history`
pub(crate) fn history(args: &HistoryArgs) -> Result<(), Failure> {
    let file = args.file.clone().map_or_else(|| configured(args.config.as_deref()), Ok)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since = args.since.map_or(Duration::ZERO, |time| now.saturating_sub(time));
    let wanted = Wanted {
        since_unix_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        kind: args.kind.clone(),
        about: args.about.clone(),
        ..Wanted::default()
    };
    let rows =
        read(&file, &wanted).map_err(|error| Failure::file(&file, error, "ask as root, or name another file"))?;
    if args.json {
        let rows = rows.iter().map(json).collect::<Result<Vec<_>, _>>()?;
        return print_json(&serde_json::json!({ "schema": SCHEMA, "schema_version": SCHEMA_VERSION, "rows": rows }));
    }
    rows.iter().for_each(print);
    Ok(())
}

fn configured(file: Option<&Path>) -> Result<PathBuf, Failure> {
    let file = file.map_or_else(config::default_file, Path::to_owned);
    let records = match ConfigFile::load(&file)? {
        ConfigFile::Host(config) => config.records,
        ConfigFile::Gate(config) => config.records,
    };
    let remedy = "write records.history_file = \"/var/lib/ringwall/history.db\" and restart the daemon";
    records.history_file.ok_or_else(|| Failure::file(&file, "no history is kept", remedy))
}

/// With times that a person reads, too.
fn json(row: &Row) -> Result<serde_json::Value, Failure> {
    let mut value = serde_json::to_value(row).map_err(Failure::new)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("first".to_owned(), rfc3339(row.first_unix_ms).into());
        fields.insert("last".to_owned(), rfc3339(row.last_unix_ms).into());
    }
    Ok(value)
}

fn print(row: &Row) {
    let last = if row.is_open { "goes on".to_owned() } else { rfc3339(row.last_unix_ms) };
    let first = rfc3339(row.first_unix_ms);
    say!("{first}  {last:<24}  {:<10}  {:<18}  {}", row.interface, row.kind, row.text);
}
