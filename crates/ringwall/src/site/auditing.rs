//! `ringwall site audit`: what was done with the authority, and whether the record of it is whole.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

use authority::audit::{Doubt, Kept, RefusedOrders, operator_of};
use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use identity::certificate::utc_text;
use serde_json::{Value, json};

use super::{Actor, DEFAULT_DIRECTORY, Surroundings};
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
    #[arg(long, visible_alias = "limit", value_name = "COUNT", value_parser = from_one())]
    last: Option<usize>,
    /// Entries before the one of this number alone
    #[arg(long, value_name = "NUMBER", conflicts_with = "refused")]
    before: Option<u64>,
    /// Entries about this host or thing alone
    #[arg(long, value_name = "NAME", conflicts_with = "refused")]
    about: Option<String>,
    /// What this operator has ordered over the service alone
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// In their place the orders that operators were refused: for each operator and command the
    /// first and the last one, and how many there were
    #[arg(long)]
    refused: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Of so many entries before that number alone, also where the filters find none among them
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

fn from_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
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
    if arguments.refused {
        return show_refused(arguments, surroundings);
    }
    let ShowArguments { last, before, json, within, .. } = arguments;
    let (mut entries, doubt) = looked_at(arguments, &surroundings.actor)?;
    entries.retain(|kept| before.is_none_or(|before| kept.entry.number < before));
    let meant: Vec<&Kept> = entries.iter().filter(|kept| arguments.means(kept)).collect();
    let from = last.map_or(0, |last| meant.len().saturating_sub(last));
    let (left_out, meant) = meant.split_at(from);
    let mut lines: Vec<String> = meant.iter().map(|kept| line(kept)).collect();
    if lines.is_empty() {
        lines.push("no entry".to_owned());
    }
    let number = |kept: &Kept| kept.entry.number;
    let is_page = within.is_some() && entries.first().is_some_and(|kept| number(kept) > 1);
    let unseen = entries.first().filter(|_| is_page && last.is_none_or(|last| last > meant.len())).map(number);
    // Somebody who looks for more than there is room for should know.
    lines.extend(unseen.map(|first| format!("entries before {first} were not looked at: --before {first}")));
    let doubt = doubt.map(|doubt| format!("{doubt}; {REMEDY}"));
    lines.extend(doubt.clone());
    let next = if left_out.is_empty() { entries.first().filter(|_| is_page) } else { meant.first().copied() };
    let shown: Vec<Value> = meant.iter().map(|kept| object(kept)).collect();
    let shown = json!({"entries": shown, "before": next.map(number), "doubt": doubt});
    surroundings.print(*json, &shown, &lines.join("\n"))
}

/// The entries that are looked at. Where these are all, also what does not fit of the files beside
/// them: it must not hide the acts.
fn looked_at(arguments: &ShowArguments, actor: &Actor) -> Result<(Vec<Kept>, Option<Doubt>), Failure> {
    let ShowArguments { dir, before, within, .. } = arguments;
    let record = actor.record(dir)?;
    let found = match within {
        None => record.check_acts(None)?.map(|(checked, doubt)| (checked.entries, doubt)),
        Some(within) => record.acts_before(*before, *within)?.map(|page| (page, None)),
    };
    found.map_err(|doubt| Failure::file(dir, doubt, REMEDY))
}

impl ShowArguments {
    /// Whether an entry is one of those that are asked for.
    fn means(&self, kept: &Kept) -> bool {
        let is_his = |name: &String| operator_of(&kept.entry.by) == Some(name.as_str());
        self.about.as_ref().is_none_or(|about| *about == kept.entry.about) && self.operator.as_ref().is_none_or(is_his)
    }
}

fn show_refused(arguments: &ShowArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let ShowArguments { dir, last, operator, json, within, .. } = arguments;
    // Each has two signatures.
    let room = within.map_or(usize::MAX, |within| within / 2);
    let count = last.unwrap_or(usize::MAX).min(room);
    let found = surroundings.actor.record(dir)?.refused_orders(operator.as_deref(), count)?;
    let found = found.map_err(|doubt| Failure::file(dir, doubt, REMEDY))?;
    let mut lines: Vec<String> = found.iter().map(refused_text).collect();
    if lines.is_empty() {
        lines.push("no order was refused".to_owned());
    }
    if found.len() == room && last.is_none_or(|last| last > room) {
        lines.push("these are as many as fit: for further ones --operator NAME".to_owned());
    }
    let shown: Vec<Value> = found.iter().map(refused_object).collect();
    surroundings.print(*json, &json!({"refused": shown}), &lines.join("\n"))
}

fn verify(arguments: &VerifyArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let noted = arguments.noted.as_ref();
    let noted = noted.map(|noted| (noted.number, noted.digest.as_str()));
    let checked = surroundings.actor.record(&arguments.dir)?.check(noted)?;
    let checked = checked.map_err(|doubt| Failure::file(&arguments.dir, doubt, REMEDY))?;
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

fn refused_text(one: &RefusedOrders) -> String {
    let told = |kept: &Kept| format!("{} {}", utc_text(kept.entry.unix_s), kept.entry.detail);
    let (operator, command, count) = (&one.operator, one.command(), one.count());
    match count {
        1 => format!("{operator}: {command}, once\n    {}", told(&one.first)),
        _ => {
            let (first, last) = (told(&one.first), told(&one.newest));
            format!("{operator}: {command}, {count} times\n    first {first}\n    last  {last}")
        }
    }
}

fn refused_object(one: &RefusedOrders) -> Value {
    let told =
        |kept: &Kept| json!({"at": utc_text(kept.entry.unix_s), "by": kept.entry.by, "detail": kept.entry.detail});
    json!({
        "operator": one.operator,
        "command": one.command(),
        "count": one.count(),
        "first": told(&one.first),
        "last": told(&one.newest),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use authority::Directory;
    use authority::audit::Act;
    use authority::directory::{Record, acting, note, put_down_refused};
    use serde_json::{Value, json};

    use super::super::orders::parse;
    use super::super::testing::{NOW_UNIX_S, new_site, order, run};
    use super::super::{SiteCommand, Surroundings};
    use super::{Actor, audit, manager};

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
        let (entries, before) = (&last["entries"], &last["before"]);
        assert_eq!((&entries[0]["act"], &entries[0]["number"], before), (&json!("backed-up"), &json!(3), &json!(3)));
        assert!(entries[1].is_null(), "{last}");
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

    #[test]
    fn damaged_refusals_are_told_below_the_acts_and_verify_ends_with_an_error() {
        let place = new_site();
        let audit = |what: &str| run(place.path(), &format!("site audit {what} --dir @/site").replace("  ", " "));
        run(place.path(), "site operator add vic --role viewer --dir @/site --out @/vic.pem").expect("added");
        let record = Record::open(&place.path().join("site")).expect("opened");
        let vic = &record.operators().expect("read")[0].certificate;
        let site = Directory::open(&place.path().join("site")).expect("opened");
        put_down_refused(&site, vic, ("revoke", "needs manager"), NOW_UNIX_S).expect("counted");
        let doubt = |words: &str| -> Value {
            let shown: Value = serde_json::from_str(&audit(words).expect("shown")).expect("JSON");
            assert_eq!(shown["entries"].as_array().expect("a list").len(), 2, "{shown}");
            shown["doubt"].clone()
        };
        assert_eq!(doubt("--json"), Value::Null);
        let file = place.path().join("site/refused.vic.jsonl");
        fs::write(&file, "{}\n").expect("damaged");
        for wanted in ["the orders that vic was refused were damaged or changed; ", "vic was refused orders, and "] {
            let shown = audit("").expect("shown");
            let lines: Vec<&str> = shown.lines().collect();
            assert!(lines.len() == 3 && lines[2].starts_with(wanted), "{shown}");
            assert_eq!(doubt("--json"), json!(lines[2]));
            let error = audit("verify").expect_err("strict");
            assert!(error.contains(wanted), "{error}");
            // The next time there is none.
            let _ = fs::remove_file(&file);
        }
        assert!(audit("--last 0").expect_err("nothing to show").contains("--last"));
        let is_order = |count: &str| parse(&["audit", "--last", count].map(str::to_owned)).is_ok();
        assert_eq!((is_order("0"), is_order("1")), (false, true));
    }

    /// What an order would print that looks at so many entries.
    fn page(place: &Path, within: usize, words: &str) -> String {
        let Ok(SiteCommand::Audit(mut arguments)) = parse(&words.split(' ').map(str::to_owned).collect::<Vec<_>>())
        else {
            panic!("{words}")
        };
        (arguments.show.dir, arguments.show.within) = (place.join("site"), Some(within));
        let mut output = Vec::new();
        let random = &mut |_: &mut [u8]| {};
        let actor = Actor::new(manager());
        let mut surroundings = Surroundings { unix_s: NOW_UNIX_S, random, output: &mut output, actor, person: None };
        audit(&arguments, &mut surroundings).expect(words);
        String::from_utf8(output).expect("text")
    }

    #[test]
    fn page_by_page_the_whole_record_is_read_and_each_act_comes_once() {
        let place = new_site();
        for number in 1..=11 {
            let by = if number % 4 == 0 { "manager mia, by the service" } else { "host mia, by the service" };
            let site = acting(Directory::open(&place.path().join("site")).expect("opened"), by);
            note(&site, Act::Policy, &format!("version {number}"), "", NOW_UNIX_S).expect("noted");
        }
        for (filter, wanted) in [("", (1..=11).collect::<Vec<u64>>()), (" --operator mia", vec![4, 8])] {
            let (mut found, mut before) = (Vec::new(), String::new());
            for _ in 0..9 {
                let shown = page(place.path(), 3, &format!("audit --json{filter}{before}"));
                let shown: Value = serde_json::from_str(&shown).expect("JSON");
                let numbers = shown["entries"].as_array().expect("a list").iter();
                let numbers: Vec<u64> = numbers.filter_map(|one| one["number"].as_u64()).collect();
                found.splice(0..0, numbers);
                match shown["before"].as_u64() {
                    Some(number) => before = format!(" --before {number}"),
                    None => break,
                }
            }
            assert_eq!(found, wanted, "{filter}");
        }
        let shown = page(place.path(), 3, "audit --about nobody --before 9");
        assert_eq!(shown, "no entry\nentries before 6 were not looked at: --before 6\n");
        assert_eq!(page(place.path(), 3, "audit --limit 2 --before 9").lines().count(), 2);
        let all = run(place.path(), "site audit --dir @/site --before 9 --last 2").expect("shown");
        let numbers: Vec<&str> = all.lines().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(numbers, ["7", "8"]);
        assert_eq!(run(place.path(), "site audit --dir @/site --refused").expect("shown"), "no order was refused\n");
        for words in ["--refused --before 3", "--refused --about a"] {
            run(place.path(), &format!("site audit --dir @/site {words}")).expect_err(words);
        }
    }
}
