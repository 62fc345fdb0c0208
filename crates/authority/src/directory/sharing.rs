//! Keys that all hosts of the site share: how one takes the place of another (record 0064).
//!
//! A change makes the next generation. Every bundle from then on has both, with the times at which
//! they take turns, so no host needs a hand as long as it asks in time. A host that was taken out
//! gets no bundle.

use std::time::Duration;

use identity::Verified;
use identity::certificate::HostCertificate;
use identity::shared_keys::{NO_END, Shared, Term};
use identity::site_key::SiteKey;
use identity::{Generation, KeyError, Succession};

use super::{Directory, SITE_KEY};
use crate::files::{self, Overwrite, Secrecy};
use crate::limits::{MAX_UNIX_S, MAX_VALIDITY, SHARED_KEY_AFTER, SHARED_KEY_GRACE, SHARED_KEY_TAKEN_OVER};
use crate::site::{Bundle, ForDhcp};
use crate::{Error, Random, random_bytes};

/// How fast a change goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long hosts have to fetch the new key before anybody sends with it.
    pub after: Duration,
    /// How long the one before is still accepted then.
    pub grace: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { after: SHARED_KEY_AFTER, grace: SHARED_KEY_GRACE }
    }
}

/// What a change comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The new generation.
    pub generation: Generation,
    /// From then on hosts send with it, in Unix seconds.
    pub from_unix_s: u64,
    /// The one that it follows.
    pub former: Generation,
    /// Until then hosts accept that, in Unix seconds.
    pub until_unix_s: u64,
    /// One that was in force until now, or was about to be, and is given to nobody any more.
    pub given_up: Option<Generation>,
}

impl Directory {
    /// Makes another site key. Hosts get it with what they ask for from now on.
    ///
    /// # Errors
    /// [`Error::BadPeriod`] for a pace of more than a century, or what is wrong with a file. Then
    /// nothing has changed.
    pub fn rekey_shared(&mut self, pace: Pace, random: &mut Random<'_>, unix_s: u64) -> Result<Change, Error> {
        let _lock = self.lock()?;
        if pace.after > MAX_VALIDITY || pace.grace > MAX_VALIDITY || unix_s > MAX_UNIX_S {
            return Err(Error::BadPeriod);
        }
        let path = self.path.join(SITE_KEY);
        let in_force = Succession::<SiteKey>::from_pem(&files::read(&path)?);
        let in_force = in_force.map_err(|error| Error::from(error).with_file(&path))?;
        let (keys, change) = follow(&in_force, SiteKey::from_bytes(*random_bytes(random)), pace, unix_s)?;
        files::write(&path, &keys.to_pem(), Secrecy::Secret, Overwrite::Force)?;
        self.site.share(keys);
        Ok(change)
    }

    /// The keys that the host of `certificate` shares with others, as they are now, beside that
    /// certificate. That holds for distributors and DHCP servers as well: others' identities name
    /// their certificates, and those stay.
    pub(super) fn with_shared_keys(
        &self,
        certificate: Verified<HostCertificate>,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Bundle, Error> {
        let store = self.repository()?;
        let number = store.by_name(certificate.name())?.map(|host| host.number);
        let sarp = number.map(|number| self.for_sarp(&certificate, number, &*store, random, unix_s)).transpose()?;
        let dhcp = ForDhcp { keys: self.dhcp_keys(&certificate, random)?, serving: None };
        self.site.bundle(certificate, sarp, dhcp)
    }
}

/// The keys in force when `key` is the newest. What is sent with now becomes the former one; a key
/// that was only about to be sent with is given up, and so is one that is only accepted still.
fn follow<K: Shared + Clone>(
    in_force: &Succession<K>,
    key: K,
    pace: Pace,
    unix_s: u64,
) -> Result<(Succession<K>, Change), Error> {
    let newest = in_force.newest().0;
    let (former, former_key) = in_force.sending(unix_s);
    let others = in_force.iter().filter(|(term, _)| term.generation != former.generation);
    let given_up = others.map(|(term, _)| term).find(|term| term.until_unix_s >= unix_s).map(|term| term.generation);
    let generation = newest.generation.0.checked_add(1).map(Generation).ok_or(KeyError::Succession)?;
    let from_unix_s = begin(newest, unix_s, pace);
    let until_unix_s = from_unix_s + pace.grace.as_secs();
    let change = Change { generation, from_unix_s, former: former.generation, until_unix_s, given_up };
    let former = (Term { until_unix_s, ..former }, former_key.clone());
    let next = (Term { generation, from_unix_s, until_unix_s: NO_END }, key);
    Ok((Succession::new(vec![former, next])?, change))
}

/// When hosts begin to send with another key. A change that is ahead keeps its date where hosts
/// hear of the other key in time, or one change after the other would keep the former key in force
/// without end.
fn begin(newest: Term, unix_s: u64, pace: Pace) -> u64 {
    let wanted = unix_s + pace.after.as_secs();
    let is_in_time = newest.from_unix_s >= unix_s + SHARED_KEY_TAKEN_OVER.as_secs();
    if is_in_time { wanted.min(newest.from_unix_s) } else { wanted }
}
