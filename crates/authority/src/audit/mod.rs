//! The record of what was done with a site's authority: a chain of signed entries in the site's
//! directory (docs/decisions/0095-a-signer-of-its-own.md).
//!
//! ```text
//! audit.jsonl         the newest entries, one a line
//! audit.N.jsonl       earlier ones, from number N on
//! audit.head          number and digest of the last entry, and where its line ends
//! refused.NAME.jsonl  what an operator was refused, beside the chain
//! ```
//! An entry is on the disk before what it tells of is done. So a crash leaves an entry without an
//! effect at worst, and never an effect without an entry. `written.rs` has the form of a line,
//! `check.rs` looks whether all is as it was written, `refused.rs` counts refused orders.

mod check;
mod refused;
mod written;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use identity::audit::Entry;
use identity::certificate::OperatorRole;
use identity::{TrustAnchor, pem};

use crate::files::{self, Overwrite, Secrecy, sync_directory};
use crate::limits::{AUDIT_FILE_LEN, AUDIT_FILES, AUDIT_WORD_LEN};
use crate::{Error, Site};

pub(crate) use check::untold;
pub use check::{Checked, Doubt, check, page};
pub use refused::RefusedOrders;
pub(crate) use refused::{FIRST_OF_HIS, Refusal, make_room, missing, put_down, refused};
use written::{Head, read_head, read_line, write_head, write_line};

/// The authority's first certificate, once it has another one: the record begins with its digest.
pub(crate) const FIRST: &str = "ca.first.pem";
const CURRENT: &str = "audit.jsonl";
const HEAD: &str = "audit.head";
/// Behind who acts, where the service carries it out.
const BY_SERVICE: &str = ", by the service";

/// What can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// A certificate for a request, or an identity with its key.
    Issued,
    /// Another certificate for the key that a host has.
    Renewed,
    /// A certificate for who applied with a token.
    Enrolled,
    /// A token.
    Invited,
    /// A token, or who applied with it, refused.
    Refused,
    /// A host's key is out.
    Rekeyed,
    /// A host is out.
    Revoked,
    /// Other keys for all hosts.
    SharedKeys,
    /// Another version of the policy.
    Policy,
    /// Another place for the repository.
    Repository,
    /// A copy of the site, its keys among it.
    BackedUp,
    /// The site was made from such a copy.
    Restored,
    /// What was done after such a copy, and hosts have brought back.
    Recovered,
    /// Another certificate of the authority itself.
    AuthorityRenewed,
    /// An operator's certificate.
    OperatorAdded,
    /// An operator is out.
    OperatorRemoved,
    /// An order that its operator may not give: in the chain his first alone.
    OrderRefused,
    /// The earliest entries are left out from now on.
    Shortened,
}

impl Act {
    /// Its word in entries.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Act::Issued => "issued",
            Act::Renewed => "renewed",
            Act::Enrolled => "enrolled",
            Act::Invited => "invited",
            Act::Refused => "refused",
            Act::Rekeyed => "rekeyed",
            Act::Revoked => "revoked",
            Act::SharedKeys => "shared-keys",
            Act::Policy => "policy",
            Act::Repository => "repository",
            Act::BackedUp => "backed-up",
            Act::Restored => "restored",
            Act::Recovered => "recovered",
            Act::AuthorityRenewed => "authority-renewed",
            Act::OperatorAdded => "operator-added",
            Act::OperatorRemoved => "operator-removed",
            Act::OrderRefused => "order-refused",
            Act::Shortened => "shortened",
        }
    }
}

/// An entry as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// What it says.
    pub entry: Entry,
    /// The authority's, under it.
    pub signature: Vec<u8>,
}

/// As whom an operator stands in the record, where the service carries out his order.
#[must_use]
pub fn by_operator(role: OperatorRole, name: &str) -> String {
    format!("{role} {name}{BY_SERVICE}")
}

/// The operator who stands in the record so; nothing for everybody else.
#[must_use]
pub fn operator_of(by: &str) -> Option<&str> {
    let (role, name) = by.strip_suffix(BY_SERVICE)?.split_once(' ')?;
    OperatorRole::from_name(role).map(|_| name)
}

/// Whether a file of this name is a part of the record.
pub(crate) fn is_part(name: &str) -> bool {
    name == CURRENT || name == HEAD || first_of(name).is_some() || refused::operator_in(name).is_some()
}

/// The names of its files: those of refused orders, and those of the chain in the order in which
/// they were written, the head last.
///
/// # Errors
/// What the operating system says.
pub(crate) fn parts(directory: &Path) -> Result<Vec<String>, Error> {
    let mut names = refused::parts(directory)?;
    names.extend(earlier(directory)?.into_iter().map(name_of));
    names.extend([CURRENT, HEAD].map(str::to_owned).into_iter().filter(|name| directory.join(name).exists()));
    Ok(names)
}

/// The earlier files, by the number of their first entries.
fn earlier(directory: &Path) -> Result<Vec<u64>, Error> {
    let listing = fs::read_dir(directory).map_err(|error| Error::from(error).with_file(directory))?;
    let mut found = Vec::new();
    for file in listing {
        let name = file.map_err(|error| Error::from(error).with_file(directory))?.file_name();
        found.extend(name.to_str().and_then(first_of));
    }
    found.sort_unstable();
    Ok(found)
}

fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("audit.")?.strip_suffix(".jsonl")?;
    let first = digits.parse().ok()?;
    (name_of(first) == name).then_some(first)
}

fn name_of(first: u64) -> String {
    format!("audit.{first:012}.jsonl")
}

/// What the first entry has in the place of one before. A file in the way of the right one only
/// makes a doubt: the first entry is signed.
fn beginning(directory: &Path, anchor: &TrustAnchor) -> [u8; 32] {
    let first = || {
        let der = pem::single(&files::read(&directory.join(FIRST)).ok()?, pem::CERTIFICATE).ok()?;
        TrustAnchor::from_der(&der).ok().filter(|first| first.is_same_authority(anchor))
    };
    first().map_or_else(|| anchor.audit_beginning(), |first| first.audit_beginning())
}

/// A word as it is kept: what a terminal would obey is left out, and what is too long.
fn plain(text: &str) -> String {
    let shown = |one: char| if one.is_ascii_graphic() || one == ' ' { one } else { '?' };
    text.chars().take(AUDIT_WORD_LEN).map(shown).collect()
}

/// One thing that is about to be done: what, to whom, and the rest.
pub(crate) type Deed<'a> = (Act, &'a str, &'a str);

/// Adds entries for what `by` does; they are on the disk when this returns. The caller holds the
/// site's lock.
///
/// # Errors
/// What the operating system says. Then what they would tell of must not be done.
pub(crate) fn append(directory: &Path, site: &Site, by: &str, deeds: &[Deed<'_>], unix_s: u64) -> Result<(), Error> {
    let mut trail = Trail { directory, site, head: Head::default(), unwritten: String::new() };
    trail.head = trail.settled()?;
    if let Some(first) = trail.rotate()? {
        trail.add(by, (Act::Shortened, &first.to_string(), "earlier entries are left out"), unix_s)?;
        trail.write()?;
        trail.remove_before(first)?;
    }
    deeds.iter().try_for_each(|deed| trail.add(by, *deed, unix_s))?;
    trail.write()
}

struct Trail<'a> {
    directory: &'a Path,
    site: &'a Site,
    head: Head,
    /// Lines that are counted in the head, and not in the file yet.
    unwritten: String,
}

impl Trail<'_> {
    fn current(&self) -> PathBuf {
        self.directory.join(CURRENT)
    }

    fn anchor(&self) -> &TrustAnchor {
        self.site.anchor()
    }

    /// The last entry there is. A line that was being written when the machine went down is taken
    /// out again, since nobody heard of what it told of; if it is whole it counts.
    fn settled(&self) -> Result<Head, Error> {
        let file = self.current();
        let mut head = match read_head(&self.directory.join(HEAD))? {
            Some(head) => head,
            None => self.last(&file)?,
        };
        if !file.exists() {
            return Ok(Head { length: 0, ..head });
        }
        let mut tail = Vec::new();
        let mut open = File::open(&file).map_err(|error| Error::from(error).with_file(&file))?;
        let length = open.seek(SeekFrom::End(0))?;
        if length <= head.length {
            // Somebody has shortened it. What follows stands behind the gap, which `check` finds.
            return Ok(Head { length, ..head });
        }
        open.seek(SeekFrom::Start(head.length))?;
        open.take(AUDIT_FILE_LEN).read_to_end(&mut tail)?;
        for line in tail.split_inclusive(|byte| *byte == b'\n') {
            match self.next(line, &head) {
                Some(digest) => {
                    let length = head.length + line.len() as u64;
                    head = Head { number: after(&head), digest, length };
                }
                None => break,
            }
        }
        if head.length < length {
            let open = OpenOptions::new().write(true).open(&file)?;
            open.set_len(head.length).and_then(|()| open.sync_all())?;
        }
        Ok(head)
    }

    /// The last entry of the newest file, where the head does not say it. What is behind it stays,
    /// for `check` to find, unless it is a line that was never ended.
    fn last(&self, file: &Path) -> Result<Head, Error> {
        let mut head = Head { number: 0, digest: beginning(self.directory, self.anchor()), length: 0 };
        let mut text = Vec::new();
        if file.exists() {
            File::open(file)?.take(2 * AUDIT_FILE_LEN).read_to_end(&mut text)?;
        }
        let mut length = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            length += line.len() as u64;
            if let Some(kept) = read_line(line.strip_suffix(b"\n").unwrap_or(line))
                && self.anchor().verify_audit_entry(&kept.entry, &kept.signature).is_ok()
            {
                head = Head { number: kept.entry.number, digest: kept.entry.digest(&kept.signature), length };
            }
        }
        Ok(Head { length, ..head })
    }

    /// The digest of the entry in `line`, if it is the one behind `head`.
    fn next(&self, line: &[u8], head: &Head) -> Option<[u8; 32]> {
        let kept = read_line(line.strip_suffix(b"\n")?)?;
        let follows = kept.entry.number == after(head) && kept.entry.before == head.digest;
        let signed = self.anchor().verify_audit_entry(&kept.entry, &kept.signature).is_ok();
        (follows && signed).then(|| kept.entry.digest(&kept.signature))
    }

    /// Begins another file when this one is full; the number that entries begin with from now on,
    /// if the earliest are to go.
    fn rotate(&mut self) -> Result<Option<u64>, Error> {
        if self.head.length < AUDIT_FILE_LEN {
            return Ok(None);
        }
        let file = self.current();
        let first = first_number(&file)?.unwrap_or(self.head.number);
        fs::rename(&file, self.directory.join(name_of(first))).map_err(|error| Error::from(error).with_file(&file))?;
        sync_directory(self.directory)?;
        self.head.length = 0;
        let files = earlier(self.directory)?;
        let surplus = files.len().saturating_sub(AUDIT_FILES);
        Ok(files.get(surplus).copied().filter(|_| surplus > 0))
    }

    fn remove_before(&self, first: u64) -> Result<(), Error> {
        for one in earlier(self.directory)?.into_iter().filter(|one| *one < first) {
            fs::remove_file(self.directory.join(name_of(one)))?;
        }
        Ok(sync_directory(self.directory)?)
    }

    fn add(&mut self, by: &str, (act, about, detail): Deed<'_>, unix_s: u64) -> Result<(), Error> {
        let entry = Entry {
            number: after(&self.head),
            unix_s,
            by: plain(by),
            act: act.word().to_owned(),
            about: plain(about),
            detail: plain(detail),
            before: self.head.digest,
        };
        let signature = self.site.sign_audit_entry(&entry)?;
        let digest = entry.digest(&signature);
        let line = write_line(&Kept { entry, signature });
        self.head = Head { number: after(&self.head), digest, length: self.head.length + line.len() as u64 };
        self.unwritten.push_str(&line);
        Ok(())
    }

    /// Writes what was added, and then the head.
    fn write(&mut self) -> Result<(), Error> {
        let file = self.current();
        let is_new = !file.exists();
        let put = || -> std::io::Result<()> {
            let mut open = OpenOptions::new().append(true).create(true).mode(0o600).open(&file)?;
            open.write_all(self.unwritten.as_bytes())?;
            open.sync_all()
        };
        put().map_err(|error| Error::from(error).with_file(&file))?;
        if is_new {
            sync_directory(self.directory)?;
        }
        self.unwritten.clear();
        files::write(&self.directory.join(HEAD), &write_head(&self.head), Secrecy::Secret, Overwrite::Force)
    }
}

/// The number of the entry behind `head`. Who changes the head may have it say the highest one: then
/// the number stays, and `check` finds it.
fn after(head: &Head) -> u64 {
    head.number.saturating_add(1)
}

/// The number of the first entry of a file.
fn first_number(file: &Path) -> Result<Option<u64>, Error> {
    let mut text = Vec::new();
    File::open(file)?.take(2 * AUDIT_FILE_LEN).read_to_end(&mut text)?;
    let first = text.split(|byte| *byte == b'\n').next().and_then(read_line);
    Ok(first.map(|kept| kept.entry.number))
}
