//! `ringwall site operator`: who may give the site's service orders.

use std::path::{Path, PathBuf};

use authority::directory::{KnownOperator, Record, add_operator, add_operator_by_request, remove_operator};
use authority::enrolment;
use authority::files::{self, Secrecy, Staged};
use authority::limits::OPERATOR_VALIDITY;
use clap::{Args, Subcommand};
use identity::certificate::{OperatorRequest, OperatorRole, utc_text};
use serde_json::{Value, json};

use super::arguments::{overwrite, whole_days};
use super::{DAY, DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// What can be done with operators.
#[derive(Debug, Subcommand)]
pub(crate) enum OperatorCommand {
    /// Make somebody an operator, or give him another role, and write the file for him
    ///
    /// The file is secret: who has it is he. It takes the place of one that he had.
    Add(AddArguments),
    /// Make a key on one's own machine, and a request for the manager
    ///
    /// The key stays here. 'ringwall site operator add --request' answers the request; what comes
    /// back and the key are one file with: (umask 077; cat CERTIFICATE KEY > FILE)
    Request(RequestArguments),
    /// List all operators
    List(ListArguments),
    /// Put one out; nothing that he orders is done from now on
    Remove(RemoveArguments),
}

/// Arguments of `site operator add`.
#[derive(Debug, Args)]
pub(crate) struct AddArguments {
    /// His name
    name: String,
    /// viewer (looks), operator (also lets hosts and printers in) or manager (also puts hosts out,
    /// and decides how strict they are)
    #[arg(long, value_parser = parse_role)]
    role: OperatorRole,
    /// What he has made with 'site operator request'; his key stays with him then, and the file for
    /// him is no secret
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Where the file for him is written
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long it serves
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(OPERATOR_VALIDITY))]
    days: u32,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site operator request`.
#[derive(Debug, Args)]
pub(crate) struct RequestArguments {
    /// Name of who is to be an operator
    name: String,
    /// Where the private key is written
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where the request is written
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace both files if they exist
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site operator list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// Print a list of JSON objects
    #[arg(long)]
    json: bool,
}

/// Arguments of `site operator remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArguments {
    /// His name
    name: String,
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_role(word: &str) -> Result<OperatorRole, &'static str> {
    OperatorRole::from_name(word).ok_or("a role is 'viewer', 'operator' or 'manager'")
}

impl OperatorCommand {
    pub(super) fn run_in(&self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        match self {
            OperatorCommand::Add(arguments) => add(arguments, surroundings),
            OperatorCommand::Request(arguments) => request(arguments, surroundings),
            OperatorCommand::List(arguments) => list(arguments, surroundings),
            OperatorCommand::Remove(RemoveArguments { name, dir, json }) => {
                let directory = surroundings.open(dir)?;
                remove_operator(&directory, name, surroundings.unix_s)?;
                let text = format!("{name} is no operator any more");
                surroundings.print(*json, &json!({"name": name, "removed": true}), &text)
            }
        }
    }
}

fn add(arguments: &AddArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let AddArguments { name, role, request, out, days, force, dir, json } = arguments;
    let directory = surroundings.open(dir)?;
    let (output, unix_s, validity) = ((out.as_path(), overwrite(*force)), surroundings.unix_s, DAY * *days);
    let file = out.display();
    let (added, next) = match request {
        None => {
            let added = add_operator(&directory, (name, *role), validity, output, surroundings.random, unix_s)?;
            let next = format!(
                "his file is {file}, secret; with it:\nringwall operate --service ADDRESS:PORT --as {file} hosts"
            );
            (added, next)
        }
        Some(request) => {
            let asked = asked_by(name, request)?;
            let shown = asked.fingerprint();
            let random = &mut *surroundings.random;
            let added = add_operator_by_request(&directory, (&asked, *role), validity, output, random, unix_s)?;
            let next = format!(
                "for the key {shown}, which {name} must show as well\n\
                 on his machine: (umask 077; cat {file} KEY > FILE)"
            );
            (added, next)
        }
    };
    let mut value = operator_json(&added);
    value["file"] = json!(out);
    surroundings.print(*json, &value, &format!("{}\n{next}", operator_text(&added)))
}

/// What somebody of this name has made.
fn asked_by(name: &str, file: &Path) -> Result<OperatorRequest, Failure> {
    let remedy = "let him make one with `ringwall site operator request`";
    let asked = OperatorRequest::from_pem(&files::read(file)?).map_err(|error| Failure::file(file, error, remedy))?;
    if asked.name() != name {
        return Err(Failure::file(file, format!("it is the request of {}, not of {name}", asked.name()), remedy));
    }
    Ok(asked)
}

fn request(arguments: &RequestArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RequestArguments { name, key, out, force, json } = arguments;
    let made = enrolment::operator_request(name, surroundings.random)?;
    let asked = OperatorRequest::from_pem(&made.request_pem).map_err(Failure::new)?;
    let staged = [
        Staged::new(key, &made.key_pem, Secrecy::Secret, overwrite(*force))?,
        Staged::new(out, &made.request_pem, Secrecy::Public, overwrite(*force))?,
    ];
    staged.into_iter().try_for_each(Staged::commit)?;
    let (shown, request) = (asked.fingerprint(), out.display());
    let text = format!(
        "the key {shown} is in {}, secret\nat the authority: ringwall site operator add {name} --role ROLE \
         --request {request} --out FILE",
        key.display()
    );
    surroundings.print(*json, &json!({"name": name, "fingerprint": shown, "key": key, "request": out}), &text)
}

fn list(arguments: &ListArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let operators = Record::open(&arguments.dir)?.operators()?;
    let value = Value::Array(operators.iter().map(operator_json).collect());
    let over = |one: &KnownOperator| {
        if one.certificate.not_after_unix() < surroundings.unix_s { ", OVER" } else { "" }
    };
    let lines: Vec<String> = operators.iter().map(|one| format!("{}{}", operator_text(one), over(one))).collect();
    let text = if lines.is_empty() { "there is no operator".to_owned() } else { lines.join("\n") };
    surroundings.print(arguments.json, &value, &text)
}

/// When he ordered last; nothing where he never did.
fn last(operator: &KnownOperator) -> Option<String> {
    Some(operator.last_order_unix_ms).filter(|last| *last > 0).map(|last| utc_text(last / 1000))
}

fn operator_json(operator: &KnownOperator) -> Value {
    let certificate = &operator.certificate;
    json!({
        "name": certificate.name(), "role": certificate.role().name(), "serial": certificate.serial_hex(),
        "not_after": utc_text(certificate.not_after_unix()), "last_order": last(operator),
    })
}

fn operator_text(operator: &KnownOperator) -> String {
    let certificate = &operator.certificate;
    let (role, name, until) = (certificate.role(), certificate.name(), utc_text(certificate.not_after_unix()));
    let ordered = last(operator).map_or_else(String::new, |last| format!(", ordered last {last}"));
    format!("{role} {name}: until {until}, serial {}{ordered}", certificate.serial_hex())
}
