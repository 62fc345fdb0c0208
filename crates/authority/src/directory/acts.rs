//! What the record of a site (`audit`) is told before it is done.

use super::{Cache, Directory, Entry};
use crate::Error;
use crate::audit::{self, Act, Deed};
use crate::limits::BACKDATE;

/// The same site, in whose record `by` stands for who acts.
#[must_use]
pub fn acting(directory: Directory, by: &str) -> Directory {
    Directory { by: by.to_owned(), ..directory }
}

/// The same site, whose certificates are read anew only where `cache` does not have them.
#[must_use]
pub fn caching(directory: Directory, cache: &Cache) -> Directory {
    Directory { cache: cache.clone(), ..directory }
}

/// Puts down what is about to be done. The caller holds the lock.
pub(super) fn tell(directory: &Directory, deeds: &[Deed<'_>], unix_s: u64) -> Result<(), Error> {
    audit::append(&directory.path, &directory.site, &directory.by, deeds, unix_s)
}

/// The same of a certificate that is about to be recorded.
pub(super) fn tell_of(directory: &Directory, act: Act, entry: &Entry) -> Result<(), Error> {
    tell(directory, &[(act, &entry.name, &detail(entry))], issued_unix(entry))
}

/// What is put down of a certificate.
pub(super) fn detail(entry: &Entry) -> String {
    let addresses: Vec<String> = entry.addresses.iter().map(|address| address.to_string()).collect();
    let Entry { serial, role, mac, .. } = entry;
    let until = identity::certificate::utc_text(entry.not_after_unix);
    format!("serial {serial} until {until}, {role}, {mac}, {}", addresses.join(" "))
}

pub(super) fn issued_unix(entry: &Entry) -> u64 {
    entry.not_before_unix + BACKDATE.as_secs()
}

/// Puts down what is about to be done beside the directory, or to it as a whole.
///
/// # Errors
/// What the operating system says. Then it must not be done.
pub fn note(directory: &Directory, act: Act, about: &str, detail: &str, unix_s: u64) -> Result<(), Error> {
    let _lock = directory.lock()?;
    tell(directory, &[(act, about, detail)], unix_s)
}
