//! Orders that operators were refused, in a file for each operator:
//!
//! ```text
//! refused.NAME.jsonl  for each command the first refusal, and the newest with how many there were
//! ```
//! An operator may order without end what is not his to order. In the chain of what was done he
//! would push the acts of all others out; here he takes the place of nobody, and what he tried
//! first stays whatever he tries later. The lines have the form and signature of entries. They are
//! no part of the chain: none stands before them, and the number of one is a count.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use identity::TrustAnchor;
use identity::audit::Entry;

use super::check::lines;
use super::written::write_line;
use super::{Act, Checked, Doubt, Kept, operator_of, plain};
use crate::files::{self, Overwrite, Secrecy, sync_directory};
use crate::limits::{MAX_REFUSED_COMMANDS, MAX_REFUSED_OPERATORS};
use crate::names::is_name;
use crate::{Error, Site};

/// How the entry in the chain begins that tells of an operator's first refused order.
pub(crate) const FIRST_OF_HIS: &str = "the first of his that was refused, ";
/// Stands for commands beyond those that are told apart.
const OTHERS: &str = "others";
/// In the place of a digest: no entry of the chain has this before it.
const NOTHING_BEFORE: [u8; 32] = [0; 32];

/// What an operator was refused of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedOrders {
    /// Whose orders they were.
    pub operator: String,
    /// The first of them.
    pub first: Kept,
    /// The newest, the first itself where there was one only.
    pub newest: Kept,
}

impl RefusedOrders {
    /// The command that was ordered, without its arguments.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.first.entry.about
    }

    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.newest.entry.number
    }

    fn is_signed(&self, anchor: &TrustAnchor) -> bool {
        let is_one = |kept: &Kept| {
            let Entry { by, act, before, .. } = &kept.entry;
            let is_his = operator_of(by) == Some(self.operator.as_str());
            let is_refusal = act == Act::OrderRefused.word() && *before == NOTHING_BEFORE;
            is_his && is_refusal && anchor.verify_audit_entry(&kept.entry, &kept.signature).is_ok()
        };
        is_one(&self.first) && (self.first == self.newest || is_one(&self.newest))
    }
}

fn name_of(operator: &str) -> String {
    format!("refused.{operator}.jsonl")
}

/// Whose orders are in a file of this name.
pub(super) fn operator_in(file: &str) -> Option<&str> {
    file.strip_prefix("refused.")?.strip_suffix(".jsonl").filter(|name| is_name(name))
}

/// All who have such a file.
fn operators(directory: &Path) -> Result<Vec<String>, Error> {
    let mut found: Vec<String> =
        parts(directory)?.iter().filter_map(|name| operator_in(name)).map(str::to_owned).collect();
    found.sort_unstable();
    Ok(found)
}

/// The names of the files.
pub(super) fn parts(directory: &Path) -> Result<Vec<String>, Error> {
    let listing = fs::read_dir(directory).map_err(|error| Error::from(error).with_file(directory))?;
    let mut found = Vec::new();
    for file in listing {
        let name = file.map_err(|error| Error::from(error).with_file(directory))?.file_name();
        found.extend(name.to_str().filter(|name| operator_in(name).is_some()).map(str::to_owned));
    }
    Ok(found)
}

/// What is in an operator's file, by command; nothing if that cannot be what was written.
fn read(directory: &Path, operator: &str) -> Result<Option<Vec<RefusedOrders>>, Error> {
    let file = directory.join(name_of(operator));
    if !file.exists() {
        return Ok(Some(Vec::new()));
    }
    let Ok(lines) = lines(&file)? else { return Ok(None) };
    let mut found: Vec<RefusedOrders> = Vec::new();
    for kept in lines {
        let is_known = found.iter().any(|one| one.command() == kept.entry.about);
        match found.last_mut() {
            Some(last) if kept.entry.number > 1 && last.count() == 1 && last.command() == kept.entry.about => {
                last.newest = kept;
            }
            _ if kept.entry.number == 1 && !is_known => {
                let operator = operator.to_owned();
                found.push(RefusedOrders { operator, first: kept.clone(), newest: kept });
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// One refusal.
pub(crate) struct Refusal<'a> {
    /// Whose order it was.
    pub(crate) operator: &'a str,
    /// As whom he stands in the record.
    pub(crate) by: &'a str,
    /// The command, without its arguments.
    pub(crate) command: &'a str,
    /// Why, and the whole order.
    pub(crate) detail: &'a str,
}

/// Counts a refusal; whether it is the first of its operator. It is on the disk when this returns.
/// The caller holds the site's lock.
///
/// # Errors
/// What is wrong with the file, or what the operating system says.
pub(crate) fn put_down((directory, site): (&Path, &Site), refusal: &Refusal<'_>, unix_s: u64) -> Result<bool, Error> {
    let Refusal { operator, by, command, detail } = refusal;
    let file = directory.join(name_of(operator));
    let damaged = || Error::BadRefusals.with_file(&file);
    let mut found = read(directory, operator)?.ok_or_else(damaged)?;
    let is_first = found.is_empty();
    let mut about = plain(command);
    if found.len() >= MAX_REFUSED_COMMANDS && found.iter().all(|one| one.command() != about) {
        about = OTHERS.to_owned();
    }
    let known = found.iter_mut().find(|one| one.command() == about);
    // Who has no key of the site must not have a count signed that he made up.
    if known.as_ref().is_some_and(|one| !one.is_signed(site.anchor())) {
        return Err(damaged());
    }
    let number = known.as_ref().map_or(1, |one| one.count().saturating_add(1));
    let act = Act::OrderRefused.word().to_owned();
    let (by, detail) = (plain(by), plain(detail));
    let entry = Entry { number, unix_s, by, act, about, detail, before: NOTHING_BEFORE };
    let kept = Kept { signature: site.sign_audit_entry(&entry)?, entry };
    match known {
        Some(known) => known.newest = kept,
        None => {
            let operator = (*operator).to_owned();
            found.push(RefusedOrders { operator, first: kept.clone(), newest: kept });
        }
    }
    let newest = |one: &RefusedOrders| if one.count() > 1 { write_line(&one.newest) } else { String::new() };
    let text: String = found.iter().map(|one| write_line(&one.first) + &newest(one)).collect();
    files::write(&file, &text, Secrecy::Secret, Overwrite::Force)?;
    Ok(is_first)
}

/// Where there are more files than may be, takes away those that were written to longest ago, of
/// operators whom the site has no more. `now` are those it has. The file of `written` stays: his
/// order may have been on its way when he was removed. The caller holds the site's lock.
///
/// # Errors
/// What the operating system says.
pub(crate) fn make_room(directory: &Path, written: &str, now: &[String]) -> Result<(), Error> {
    let mut gone = operators(directory)?;
    let surplus = gone.len().saturating_sub(MAX_REFUSED_OPERATORS);
    if surplus == 0 {
        return Ok(());
    }
    gone.retain(|name| name != written && !now.contains(name));
    gone.sort_by_cached_key(|name| {
        let found = read(directory, name).ok().flatten().unwrap_or_default();
        found.iter().map(|one| one.newest.entry.unix_s).max()
    });
    for name in gone.iter().take(surplus) {
        let file = directory.join(name_of(name));
        fs::remove_file(&file).map_err(|error| Error::from(error).with_file(&file))?;
    }
    Ok(sync_directory(directory)?)
}

/// What was refused to `operator`, or to all, as many as `count` alone: those that were refused
/// last, in that order. A doubt if the authority did not sign it.
///
/// # Errors
/// What the operating system says.
pub(crate) fn refused(
    directory: &Path,
    anchor: &TrustAnchor,
    operator: Option<&str>,
    count: usize,
) -> Result<Result<Vec<RefusedOrders>, Doubt>, Error> {
    let names = match operator {
        None => operators(directory)?,
        Some(one) => Some(one).filter(|one| is_name(one)).map(str::to_owned).into_iter().collect(),
    };
    let mut found = Vec::new();
    for name in names {
        match read(directory, &name)? {
            Some(of_one) => found.extend(of_one),
            None => return Ok(Err(Doubt::Refused(name))),
        }
    }
    found.sort_by_key(|one| one.newest.entry.unix_s);
    found.drain(..found.len().saturating_sub(count));
    let changed = found.iter().find(|one| !one.is_signed(anchor)).map(|one| Doubt::Refused(one.operator.clone()));
    Ok(changed.map_or(Ok(found), Err))
}

/// The first operator of whom the chain says that he was refused an order, and who has no file. Or
/// it says twice that it was his first: then the file was taken away in between. Where there are as
/// many files as may be, those of earlier operators were taken away.
pub(crate) fn missing(checked: &Checked, refused: &[RefusedOrders]) -> Option<Doubt> {
    let named: BTreeSet<&str> = refused.iter().map(|one| one.operator.as_str()).collect();
    if named.len() >= MAX_REFUSED_OPERATORS {
        return None;
    }
    let entries = checked.entries.iter().map(|kept| &kept.entry);
    let mut told = entries.filter(|one| one.act == Act::OrderRefused.word() && one.detail.starts_with(FIRST_OF_HIS));
    let mut before = BTreeSet::new();
    let lost = told.find(|one| !named.contains(one.about.as_str()) || !before.insert(one.about.as_str()));
    lost.map(|one| {
        let name = one.about.clone();
        if named.contains(name.as_str()) { Doubt::EarlierRefused(name) } else { Doubt::NoRefused(name) }
    })
}
