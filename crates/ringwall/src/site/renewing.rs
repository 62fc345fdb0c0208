//! `ringwall site renew`: another certificate for the key that a host has, or the keys that it
//! shares with others. It decides nothing, so a program may call it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::directory::{Given, Renewed, Terms};
use authority::files::{self, Secrecy, Staged};
use authority::limits::{HOST_VALIDITY, MAX_FILE_LEN};
use clap::Args;
use identity::certificate::CertificateRequest;
use serde_json::{Value, json};

use super::arguments::{overwrite, whole_days};
use super::listing::{entry_json, entry_text};
use super::{DAY, DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// Stands for standard input and output.
const STANDARD: &str = "-";

/// Arguments of `site renew`.
#[derive(Debug, Args)]
pub(crate) struct RenewArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The host's request; - reads it from the standard input
    #[arg(long, value_name = "FILE")]
    request: PathBuf,
    /// Where the answer is written, sealed for the host; - writes it to the standard output, and nothing else
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long the certificate lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// Issue another certificate even if the newest one is in its first half. Without it the host
    /// gets that one again, since such a request may be a recorded one
    #[arg(long)]
    early: bool,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn renew(arguments: &RenewArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RenewArguments { dir, request, out, days, early, force, json } = arguments;
    let is_standard = out == Path::new(STANDARD);
    let proved = CertificateRequest::from_pem(&read(request)?);
    let proved = proved.map_err(|error| authority::Error::from(error).with_file(request))?;
    if !is_standard {
        // Nothing is issued that cannot be put down.
        drop(Staged::new(out, "", Secrecy::Public, overwrite(*force))?);
    }
    let directory = surroundings.open(dir)?;
    let terms = Terms { validity: DAY * *days, early: *early, late: Duration::ZERO };
    let renewed = directory.renew(&proved, terms, surroundings.random, surroundings.unix_s)?;
    if is_standard {
        return surroundings.print(false, &json!(null), renewed.answer.trim_end());
    }
    files::write(out, &renewed.answer, Secrecy::Public, overwrite(*force))?;
    let (value, text) = told(&renewed, out);
    surroundings.print(*json, &value, &text)
}

/// What the manager is told, for programs and in words.
fn told(renewed: &Renewed, out: &Path) -> (Value, String) {
    let Renewed { entry, given, .. } = renewed;
    let (name, what, hint) = match given {
        Given::Certificate => ("certificate", "renewed", ""),
        Given::SharedKeys => ("shared keys", "shared keys for", ""),
        Given::SameCertificate => {
            ("same certificate", "given again:", "\nit is in its first half; --early issues another one all the same")
        }
    };
    let mut value = entry_json(entry);
    value["file"] = json!(out);
    value["given"] = json!(name);
    let text = format!("{what} {}{hint}\nwritten to {}; only that host can open it", entry_text(entry), out.display());
    (value, text)
}

/// The request, of a length that a request may have.
fn read(file: &Path) -> Result<String, Failure> {
    if file != Path::new(STANDARD) {
        return Ok(files::read(file)?.to_string());
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_FILE_LEN).read_to_string(&mut text);
    read.map_err(|error| Failure::new(format!("standard input: {error}; write the request into it")))?;
    Ok(text)
}
