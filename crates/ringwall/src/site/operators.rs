//! `ringwall site operator`: who may give the site's service orders.

use std::io;
use std::path::{Path, PathBuf};

use authority::directory::{KnownOperator, add_operator, add_operator_by_request, remove_operator};
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
    /// The file is secret: who has it is he. It takes the place of one that he had. With --request
    /// nothing is issued before the fingerprint of his key was compared.
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
    /// The fingerprint that 'site operator request' showed him; a request for another key is not
    /// answered. Without it whoever sits at the terminal is asked whether the two are the same
    #[arg(long, value_name = "FINGERPRINT", requires = "request")]
    key: Option<String>,
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
    let AddArguments { name, role, request, key, out, days, force, dir, json } = arguments;
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
            compare(&asked, (request, key.as_deref()), surroundings.person)?;
            let random = &mut *surroundings.random;
            let added = add_operator_by_request(&directory, (&asked, *role), validity, output, random, unix_s)?;
            let shown = asked.fingerprint();
            (added, format!("for the key {shown}\non his machine: (umask 077; cat {file} KEY > FILE)"))
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

/// Who brings a request could have written any name in it. So nothing is issued before somebody has
/// compared its key with the one that its owner sees.
fn compare(
    asked: &OperatorRequest,
    (file, key): (&Path, Option<&str>),
    person: Option<fn(&str) -> io::Result<bool>>,
) -> Result<(), Failure> {
    let (shown, name) = (asked.fingerprint(), asked.name());
    let another = format!("if {name} was shown another one, somebody else has made the request: let him make one anew");
    let is_compared = match (key, person) {
        (Some(key), _) => is_same(key, &shown),
        (None, Some(ask)) => {
            let question = format!("the key of the request is {shown}; was {name} shown the same?");
            ask(&question).map_err(Failure::new)?
        }
        (None, None) => {
            let what = "nobody has compared its key";
            let remedy =
                format!("ask {name} for the fingerprint that he was shown, and give it with --key FINGERPRINT");
            return Err(Failure::file(file, what, &remedy));
        }
    };
    if is_compared {
        return Ok(());
    }
    Err(Failure::file(file, format!("its key is {shown}, not the one that was compared; nothing was issued"), &another))
}

/// Fingerprints are read out, in groups and in either case.
fn is_same(given: &str, shown: &str) -> bool {
    let digits: String = given.chars().filter(|one| !matches!(one, '-' | ':' | ' ')).collect();
    digits.eq_ignore_ascii_case(shown)
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
         --request {request} --key {shown} --out FILE",
        key.display()
    );
    surroundings.print(*json, &json!({"name": name, "fingerprint": shown, "key": key, "request": out}), &text)
}

fn list(arguments: &ListArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let operators = surroundings.actor.record(&arguments.dir)?.operators()?;
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

#[cfg(test)]
mod tests {
    use super::super::testing::{new_site, run, run_before};

    #[test]
    fn a_request_is_answered_for_the_key_that_was_compared_and_for_no_other() {
        let place = new_site();
        let run = |line: &str| run(place.path(), line);
        let made = run("site operator request ann --key @/ann.key --out @/ann.csr").expect("made");
        let shown = made.split(' ').nth(2).expect("a fingerprint").to_owned();
        assert!(made.contains(&format!(" --request @/ann.csr --key {shown} --out FILE")), "{made}");
        let add = "site operator add ann --role viewer --dir @/site --request @/ann.csr --out @/ann.crt";
        let is_added = || {
            let listed = run("site operator list --dir @/site").expect("listed");
            assert_eq!(listed == "there is no operator\n", !place.path().join("ann.crt").exists(), "{listed}");
            listed.starts_with("viewer ann: ")
        };
        let refused = run(add).expect_err("nobody has compared the key");
        assert!(refused.contains("nobody has compared its key") && refused.contains("--key FINGERPRINT"), "{refused}");
        // That of somebody else, who has written her name; a part of hers; none.
        run("site operator request ann --key @/eve.key --out @/eve.csr").expect("made");
        let other = add.replace("ann.csr", "eve.csr");
        for (line, key) in [(other.as_str(), shown.as_str()), (add, &shown[..32]), (add, "-")] {
            let refused = run(&format!("{line} --key={key}")).expect_err("another key");
            assert!(refused.contains("nothing was issued") && refused.contains("let him make one anew"), "{refused}");
        }
        assert!(!is_added());
        let grouped = format!("{}:{}", &shown[..8], &shown[8..]).to_ascii_uppercase();
        let done = run(&format!("{add} --key {grouped}")).expect("hers");
        assert!(is_added() && done.contains(&format!("for the key {shown}")), "{done}");
        let keyless = run(&add.replace(" --request @/ann.csr", &format!(" --key {shown}"))).expect_err("no request");
        assert!(keyless.contains("--request"), "{keyless}");
    }

    #[test]
    fn who_sits_at_a_terminal_is_asked_before_anything_is_issued() {
        let place = new_site();
        run(place.path(), "site operator request ann --key @/ann.key --out @/ann.csr").expect("made");
        let add = "site operator add ann --role viewer --dir @/site --request @/ann.csr --out @/ann.crt";
        let refused = run_before(Some(|_| Ok(false)), place.path(), add).expect_err("he did not agree");
        assert!(refused.contains("nothing was issued") && !place.path().join("ann.crt").exists(), "{refused}");
        let reads = |question: &str| {
            assert!(question.contains("was ann shown the same?"), "{question}");
            Ok(question.split(' ').filter(|word| word.trim_end_matches(';').len() == 64).count() == 1)
        };
        let done = run_before(Some(reads), place.path(), add).expect("he agreed");
        assert!(done.starts_with("viewer ann: ") && place.path().join("ann.crt").exists(), "{done}");
        // Who has given the key is asked nothing.
        let shown = done.split("for the key ").nth(1).and_then(|rest| rest.lines().next()).expect("a fingerprint");
        run_before(Some(|_| Ok(false)), place.path(), &format!("{add} --force --key {shown}")).expect("compared");
    }
}
