//! Whether the record is as it was written.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use identity::TrustAnchor;
use identity::audit::Entry;

use super::written::{digits, read_head, read_line};
use super::{Act, CURRENT, HEAD, Kept, beginning, earlier, name_of};
use crate::limits::AUDIT_FILE_LEN;
use crate::{Error, files};

/// A record that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Its entries, by number.
    pub entries: Vec<Kept>,
    /// The last digest, in hexadecimal digits; with it and its number somebody else can tell later
    /// that nothing before was changed.
    pub digest: String,
}

/// What does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// A line of this file, counted from 1, is none.
    Line(String, usize),
    /// The entry of this number is not signed by the authority, or was changed.
    Signature(u64),
    /// Behind an entry should be this number, and there is another one.
    Missing(u64, u64),
    /// The entry of this number does not follow the one before it.
    Order(u64),
    /// Entries before this number are gone, and none says that they were left out.
    Beginning(u64),
    /// The head says that the last entry is another one: number there, and number found.
    End(u64, u64),
    /// There is no head that could be read, or no entry beside it.
    Head,
    /// The entry that was noted elsewhere is not there, or is another one.
    Noted(u64),
    /// This certificate was issued, and no entry says so.
    Untold(String),
    /// There are certificates and no entry at all.
    Empty,
    /// The file of what was refused to this operator was damaged or changed.
    Refused(String),
    /// This operator was refused an order, and there is no file of it.
    NoRefused(String),
    /// This operator's first refusal was put down twice: the file of the earlier ones is missing.
    EarlierRefused(String),
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::Line(file, line) => write!(f, "line {line} of {file} was damaged or changed"),
            Doubt::Signature(number) => write!(f, "entry {number} was changed: the authority did not sign it"),
            Doubt::Missing(expected, found) => write!(f, "entry {expected} is missing: {found} is in its place"),
            Doubt::Order(number) => write!(f, "entry {number} does not follow the one before it"),
            Doubt::Beginning(number) => write!(f, "the entries before {number} are missing"),
            Doubt::End(head, found) => write!(f, "the last entry should be {head}, and is {found}"),
            Doubt::Head => f.write_str("audit.head or the entries beside it are missing or damaged"),
            Doubt::Noted(number) => write!(f, "entry {number} is not the one that was noted"),
            Doubt::Untold(serial) => write!(f, "certificate {serial} was issued, and no entry says so"),
            Doubt::Empty => f.write_str("there is no entry: all was done by an earlier version, or they were removed"),
            Doubt::Refused(name) => write!(f, "the orders that {name} was refused were damaged or changed"),
            Doubt::NoRefused(name) => {
                write!(f, "{name} was refused orders, and the file that tells of them is missing")
            }
            Doubt::EarlierRefused(name) => {
                write!(f, "{name} was refused orders earlier, and the file that told of them was taken away")
            }
        }
    }
}

/// Reads all entries of the site in `directory`; a doubt if they are not what its authority wrote,
/// from the first to the last. `noted` is number and digest of one that was noted elsewhere.
///
/// # Errors
/// What the operating system says.
pub fn check(
    directory: &Path,
    anchor: &TrustAnchor,
    noted: Option<(u64, &str)>,
) -> Result<Result<Checked, Doubt>, Error> {
    let mut found = Vec::new();
    let mut names: Vec<String> = earlier(directory)?.into_iter().map(name_of).collect();
    names.extend(directory.join(CURRENT).exists().then(|| CURRENT.to_owned()));
    for name in names {
        match lines(&directory.join(&name))? {
            Ok(lines) => found.extend(lines),
            Err(number) => return Ok(Err(Doubt::Line(name, number))),
        }
    }
    let file = directory.join(HEAD);
    let head = read_head(&file)?;
    if found.is_empty() && !file.exists() {
        let nothing_noted = noted.map_or(Ok(()), |(number, _)| Err(Doubt::Noted(number)));
        return Ok(nothing_noted.map(|()| Checked::default()));
    }
    let Some(head) = head.filter(|_| !found.is_empty()) else { return Ok(Err(Doubt::Head)) };
    let length = files::read_len(&directory.join(CURRENT))?;
    let chain = || {
        let digest = follow(&found, (anchor, beginning(directory, anchor)), noted)?;
        let last = found.last().map_or(0, |kept| kept.entry.number);
        // The machine may have gone down between an entry and the head.
        let is_end = (head.number, head.digest, head.length) == (last, digest, length);
        let is_one_behind = head.number.checked_add(1) == Some(last)
            && found.last().is_some_and(|kept| kept.entry.before == head.digest)
            && head.length < length;
        if is_end || is_one_behind { Ok(digits(&digest)) } else { Err(Doubt::End(head.number, last)) }
    };
    Ok(chain().map(|digest| Checked { entries: found, digest }))
}

/// Reads the newest `count` entries, or with `before` those before the one of that number, of as
/// few files as have them. A doubt if they are not what the site's authority wrote, one behind the
/// other, up to the last or to that one. What is before and behind them is not looked at.
///
/// # Errors
/// What the operating system says.
pub fn page(
    directory: &Path,
    anchor: &TrustAnchor,
    before: Option<u64>,
    count: usize,
) -> Result<Result<Vec<Kept>, Doubt>, Error> {
    let file = directory.join(HEAD);
    let head = read_head(&file)?;
    // Behind the end there is nothing to leave out.
    let before = before.filter(|before| head.as_ref().is_some_and(|head| *before <= head.number));
    // The entry that they are before has the digest of the last of them.
    let wanted = count.saturating_add(usize::from(before.is_some()));
    let (mut found, is_whole) = match tail(directory, before, wanted)? {
        Ok(found) => found,
        Err(doubt) => return Ok(Err(doubt)),
    };
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return Ok(if file.exists() && before.is_none() { Err(Doubt::Head) } else { Ok(found) });
    };
    let Some(head) = head else { return Ok(Err(Doubt::Head)) };
    let number = last.entry.number;
    let chain = || {
        let start = match first.entry.number {
            1 => beginning(directory, anchor),
            _ => first.entry.before,
        };
        // All that there is begins as a whole record does, or its beginning was taken away.
        let digest = match (is_whole, before) {
            (true, None) => follow(&found, (anchor, start), None)?,
            _ => chained(&found, anchor, (first.entry.number, start), |_, _| {})?,
        };
        if let Some(before) = before {
            return if number == before { Ok(()) } else { Err(Doubt::Missing(before, number)) };
        }
        let is_end = (head.number, head.digest) == (number, digest);
        let is_one_behind = head.number.checked_add(1) == Some(number) && last.entry.before == head.digest;
        if is_end || is_one_behind { Ok(()) } else { Err(Doubt::End(head.number, number)) }
    };
    let judged = chain();
    if before.is_some() {
        found.pop();
    }
    Ok(judged.map(|()| found))
}

/// The newest `count` entries, none beyond the number `up_to`, and whether these are all; a doubt
/// if a line is none.
fn tail(directory: &Path, up_to: Option<u64>, count: usize) -> Result<Result<(Vec<Kept>, bool), Doubt>, Error> {
    let mut names: Vec<(u64, String)> = earlier(directory)?.into_iter().map(|first| (first, name_of(first))).collect();
    // The name of the newest file does not say what it begins with.
    names.extend(directory.join(CURRENT).exists().then(|| (0, CURRENT.to_owned())));
    let mut found: Vec<Kept> = Vec::new();
    while found.len() < count
        && let Some((first, name)) = names.pop()
    {
        if up_to.is_some_and(|up_to| first > up_to) {
            continue;
        }
        match lines(&directory.join(&name))? {
            Ok(mut before) => {
                before.retain(|kept| up_to.is_none_or(|up_to| kept.entry.number <= up_to));
                found.splice(0..0, before).for_each(drop);
            }
            Err(number) => return Ok(Err(Doubt::Line(name, number))),
        }
    }
    let is_whole = names.is_empty() && found.len() <= count;
    found.drain(..found.len().saturating_sub(count));
    Ok(Ok((found, is_whole)))
}

/// The entries of a file, or the line that is none.
pub(super) fn lines(file: &Path) -> Result<Result<Vec<Kept>, usize>, Error> {
    let mut text = Vec::new();
    let open = File::open(file).map_err(|error| Error::from(error).with_file(file))?;
    open.take(2 * AUDIT_FILE_LEN).read_to_end(&mut text)?;
    let read = |(at, line): (usize, &[u8])| line.strip_suffix(b"\n").and_then(read_line).ok_or(at + 1);
    Ok(text.split_inclusive(|byte| *byte == b'\n').enumerate().map(read).collect())
}

/// The digest of the last entry, if each follows the one before.
fn follow(
    found: &[Kept],
    (anchor, beginning): (&TrustAnchor, [u8; 32]),
    noted: Option<(u64, &str)>,
) -> Result<[u8; 32], Doubt> {
    let first = found.first().map_or(1, |kept| kept.entry.number);
    let digest = match first {
        1 => beginning,
        // What it was is not known any more.
        _ => found.first().map_or([0; 32], |kept| kept.entry.before),
    };
    let mut is_noted = noted.is_none();
    let mut is_told = first == 1;
    let digest = chained(found, anchor, (first, digest), |entry, digest| {
        is_noted |= noted == Some((entry.number, &digits(digest)));
        is_told |= entry.act == Act::Shortened.word() && entry.about == first.to_string();
    })?;
    match noted {
        _ if !is_told => Err(Doubt::Beginning(first)),
        Some((number, _)) if !is_noted => Err(Doubt::Noted(number)),
        _ => Ok(digest),
    }
}

/// The digest of the last entry, if the first has this number and follows this digest, and each
/// other one the one before it. `see` is told each, with its digest.
fn chained(
    found: &[Kept],
    anchor: &TrustAnchor,
    (first, before): (u64, [u8; 32]),
    mut see: impl FnMut(&Entry, &[u8; 32]),
) -> Result<[u8; 32], Doubt> {
    let mut digest = before;
    let mut next = Some(first);
    for kept in found {
        let entry = &kept.entry;
        // Behind the highest number comes none.
        let expected = next.ok_or(Doubt::Order(entry.number))?;
        if entry.number != expected {
            return Err(Doubt::Missing(expected, entry.number));
        }
        next = expected.checked_add(1);
        anchor.verify_audit_entry(entry, &kept.signature).map_err(|_| Doubt::Signature(entry.number))?;
        if entry.before != digest {
            return Err(Doubt::Order(entry.number));
        }
        digest = entry.digest(&kept.signature);
        see(entry, &digest);
    }
    Ok(digest)
}

/// The first certificate that no entry tells of, of those with a serial number and the second at
/// which each was issued. Those of before the first entry are of an earlier version.
#[must_use]
pub(crate) fn untold<'a>(checked: &Checked, issued: impl Iterator<Item = (&'a str, u64)>) -> Option<Doubt> {
    let begun = checked.entries.first()?.entry.unix_s;
    let serial = |kept: &Kept| kept.entry.detail.strip_prefix("serial ")?.split(' ').next().map(str::to_owned);
    let told: BTreeSet<String> = checked.entries.iter().filter_map(serial).collect();
    let mut untold = issued.filter(|(serial, unix_s)| *unix_s >= begun && !told.contains(*serial));
    untold.next().map(|(serial, _)| Doubt::Untold(serial.to_owned()))
}
