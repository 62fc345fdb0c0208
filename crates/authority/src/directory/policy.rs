//! What the site decides for all its hosts, as a policy that it signs (docs/protocol.md, section
//! 30).
//!
//! The policy is its own record: it is read, changed and signed anew with the next number.

use std::path::PathBuf;

use identity::limits::MAX_POLICY_LEN;
use identity::policy::{Content, Group, SitePolicy};
use identity::{Verified, pem};

use super::{Directory, POLICY, Record, acts};
use crate::Error;
use crate::audit::Act;
use crate::files::{self, Overwrite, Secrecy};

/// Where the policy of a site is.
#[must_use]
pub fn policy_file(directory: &Directory) -> PathBuf {
    directory.path.join(POLICY)
}

/// The policy in force; a site has none before the first change.
///
/// # Errors
/// What is wrong with the file.
pub fn policy(directory: &Directory) -> Result<Option<Verified<SitePolicy>>, Error> {
    Record::from(directory).policy()
}

/// Makes the next version of the policy, with what `change` does to the one in force, and signs it.
/// What `change` leaves out of order is put in order; it says why nothing is to change.
///
/// # Errors What `change` says; [`Error::Policy`]; or what the operating system says. Then the
/// policy before stays.
pub fn change_policy<E: From<Error>>(
    directory: &Directory,
    unix_s: u64,
    change: impl FnOnce(&mut Content) -> Result<(), E>,
) -> Result<Verified<SitePolicy>, E> {
    let _lock = directory.lock()?;
    let mut content = policy(directory)?.map(|policy| policy.content().clone()).unwrap_or_default();
    change(&mut content)?;
    content.version += 1;
    content.issued_unix = unix_s;
    sort(&mut content);
    let signed = directory.site.policy(&content).map_err(|error| match error {
        Error::Policy(_) => Error::PolicyFull(MAX_POLICY_LEN),
        other => other,
    })?;
    let text = pem::encode(pem::SITE_POLICY, signed.bytes());
    let (about, detail) = (format!("version {}", content.version), summary(&content));
    acts::tell(directory, &[(Act::Policy, &about, &detail)], unix_s)?;
    files::write(&policy_file(directory), &text, Secrecy::Public, Overwrite::Force)?;
    Ok(signed)
}

/// What it holds now, in a line.
fn summary(content: &Content) -> String {
    let group = |group: &Group| format!("{} {}", group.patterns.join(","), group.mode.word());
    let Content { legacy, known, exceptions, groups, .. } = content;
    let counts = format!("legacy {}, known {}, exceptions {}", legacy.len(), known.len(), exceptions.len());
    let groups: Vec<String> = groups.iter().map(group).collect();
    format!("{counts}, modes {}", groups.join("; "))
}

fn sort(content: &mut Content) {
    content.legacy.sort_unstable();
    content.known.sort_unstable();
    content.exceptions.sort_unstable();
    content.groups.iter_mut().for_each(|group| group.patterns.sort_unstable());
    content.groups.sort_unstable();
}
