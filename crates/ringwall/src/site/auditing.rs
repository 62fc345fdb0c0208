//! `ringwall site audit`: what was done with the authority, and whether the record of it is whole.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use authority::audit::{Checked, Kept};
use authority::directory::Record;
use clap::{Args, Subcommand};
use identity::certificate::utc_text;
use serde_json::{Value, json};

use super::{DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// Says who has logged in, whatever he became since (audit in the kernel, `CONFIG_AUDIT`).
const LOGIN: &str = "/proc/self/loginuid";
/// What it says of a process that nobody logged in for.
const NOBODY: u32 = u32::MAX;

/// What to do about a record that is not whole.
const REMEDY: &str = "see who could write there, and compare with a backup (`ringwall site backup`)";
/// Entries that the service looks at for one order: two megabytes at most of a record that may have
/// sixty, each with a signature to verify, while it answers nobody else.
pub(super) const WITHIN: usize = 1000;

/// Arguments of `site audit`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct AuditArguments {
    #[command(subcommand)]
    pub(super) command: Option<AuditCommand>,
    #[command(flatten)]
    pub(super) show: ShowArguments,
}

/// What is done with the record.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Look whether it is whole
    Verify(VerifyArguments),
}

/// How it is shown.
#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// The last so many entries alone
    #[arg(long, value_name = "COUNT")]
    last: Option<usize>,
    /// Entries about this host or thing alone
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Print a list of JSON objects
    #[arg(long)]
    json: bool,
    /// Of this many newest entries alone, also where 'about' finds none among them
    #[arg(skip)]
    pub(super) within: Option<usize>,
}

/// What it is compared with.
#[derive(Debug, Args)]
pub(super) struct VerifyArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Number and digest of an entry, as an earlier 'verify' printed them
    #[arg(long, value_name = "NUMBER:DIGEST")]
    noted: Option<Noted>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// An entry that was noted elsewhere.
#[derive(Clone, Debug)]
struct Noted {
    number: u64,
    digest: String,
}

impl FromStr for Noted {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Noted, &'static str> {
        let parts = text.split_once(':').and_then(|(number, digest)| Some((number.parse().ok()?, digest)));
        let (number, digest) =
            parts.filter(|(_, digest)| digest.len() == 64).ok_or("write it as 'verify' prints it")?;
        Ok(Noted { number, digest: digest.to_ascii_lowercase() })
    }
}

/// As whom the manager at this machine stands in the record: the user that he has logged in as
/// counts more than the one that he has become.
pub(super) fn manager() -> String {
    let user = system::privilege::own_user();
    let login = fs::read_to_string(LOGIN).ok().and_then(|text| text.trim().parse().ok());
    match login.filter(|login: &u32| *login != NOBODY) {
        Some(login) => format!("user {user}, logged in as user {login}"),
        None => format!("user {user}"),
    }
}

pub(super) fn audit(arguments: &AuditArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    match &arguments.command {
        None => show(&arguments.show, surroundings),
        Some(AuditCommand::Verify(arguments)) => verify(arguments, surroundings),
    }
}

fn show(arguments: &ShowArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let entries = match arguments.within {
        None => whole(&arguments.dir, None)?.entries,
        Some(within) => {
            let newest = Record::open(&arguments.dir)?.newest_acts(within)?;
            newest.map_err(|doubt| Failure::file(&arguments.dir, doubt, REMEDY))?
        }
    };
    let is_meant = |kept: &&Kept| arguments.about.as_ref().is_none_or(|about| *about == kept.entry.about);
    let meant: Vec<&Kept> = entries.iter().filter(is_meant).collect();
    let from = arguments.last.map_or(0, |last| meant.len().saturating_sub(last));
    let meant = &meant[from..];
    let mut lines: Vec<String> = meant.iter().map(|kept| line(kept)).collect();
    if lines.is_empty() {
        lines.push("no entry".to_owned());
    }
    // Somebody who looks for more than there is room for should know.
    let first = entries.first().map_or(1, |kept| kept.entry.number);
    if arguments.within.is_some() && first > 1 && arguments.last.is_none_or(|last| last > meant.len()) {
        lines.push(format!("entries before {first} are shown at the authority's machine alone"));
    }
    let value = Value::Array(meant.iter().map(|kept| object(kept)).collect());
    surroundings.print(arguments.json, &value, &lines.join("\n"))
}

fn verify(arguments: &VerifyArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let noted = arguments.noted.as_ref();
    let checked = whole(&arguments.dir, noted.map(|noted| (noted.number, noted.digest.as_str())))?;
    let number = |kept: Option<&Kept>| kept.map_or(0, |kept| kept.entry.number);
    let (first, last) = (number(checked.entries.first()), number(checked.entries.last()));
    let digest = &checked.digest;
    let value = json!({"whole": true, "first": first, "last": last, "digest": digest});
    let text = match last {
        0 => "nothing was done yet".to_owned(),
        _ => format!("entries {first} to {last} are whole\nnote this elsewhere: {last}:{digest}"),
    };
    surroundings.print(arguments.json, &value, &text)
}

/// The record, if it is whole.
fn whole(dir: &std::path::Path, noted: Option<(u64, &str)>) -> Result<Checked, Failure> {
    Record::open(dir)?.check(noted)?.map_err(|doubt| Failure::file(dir, doubt, REMEDY))
}

fn line(kept: &Kept) -> String {
    let entry = &kept.entry;
    let rest = if entry.detail.is_empty() { String::new() } else { format!(": {}", entry.detail) };
    format!("{} {} {} {}{rest} (by {})", entry.number, utc_text(entry.unix_s), entry.act, entry.about, entry.by)
}

fn object(kept: &Kept) -> Value {
    let entry = &kept.entry;
    json!({
        "number": entry.number,
        "at": utc_text(entry.unix_s),
        "by": entry.by,
        "act": entry.act,
        "about": entry.about,
        "detail": entry.detail,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::super::testing::{new_site, order, run};
    use super::manager;

    #[test]
    fn what_was_done_is_shown_with_who_did_it_and_a_change_of_it_is_found() {
        let place = new_site();
        let audit = |what: &str| run(place.path(), &format!("site audit {what} --dir @/site").replace("  ", " "));
        assert!(audit("verify").expect("whole").starts_with("nothing was done yet"));
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        order(place.path(), "policy legacy add --ip 10.0.0.9 --mac 02:00:00:00:00:09").expect("added");
        run(place.path(), "site backup --dir @/site @/kept").expect("kept");
        let shown = audit("").expect("shown");
        for line in ["1 2027-01-15T08:00:00Z issued a: serial ", " policy version 1: legacy 1,", "backed-up"] {
            assert!(shown.contains(line), "{shown}");
        }
        assert_eq!(shown.matches(&format!("(by {})", manager())).count(), 3, "{shown}");
        let last: Value = serde_json::from_str(&audit("--last 1 --json").expect("shown")).expect("json");
        assert_eq!((&last[0]["act"], &last[0]["number"], &last[1]), (&json!("backed-up"), &json!(3), &Value::Null));
        let verified = audit("verify").expect("whole");
        let noted = verified.trim().rsplit(' ').next().expect("a word").to_owned();
        audit(&format!("verify --noted {noted}")).expect("there");
        run(place.path(), "site restore --dir @/again @/kept").expect("restored");
        let again = run(place.path(), "site audit --dir @/again").expect("shown");
        assert!(again.contains("4 2027-01-15T08:00:00Z restored @/kept: "), "{again}");
        let file = place.path().join("site/audit.jsonl");
        let text = fs::read_to_string(&file).expect("there").replace("legacy 1,", "legacy 0,");
        fs::write(&file, text).expect("changed");
        for what in ["verify", ""] {
            let doubt = audit(what).expect_err("changed");
            assert!(doubt.contains("entry 2 was changed: the authority did not sign it; "), "{doubt}");
        }
        assert!(audit("verify --noted 3").expect_err("no digest").contains("--noted"));
    }
}
