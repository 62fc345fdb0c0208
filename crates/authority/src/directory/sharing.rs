//! Keys that hosts of the site share: how others take their place (records 0064 and 0074).
//!
//! A change makes the next generation: another site key, and other masters, from which what hosts
//! prove themselves with to distributors and DHCP servers follows. Every bundle from then on has
//! both generations, with the times at which they take turns, so no host needs a hand as long as it
//! asks in time. A host that was taken out gets no bundle.

use std::time::Duration;

use identity::Verified;
use identity::certificate::{HostCertificate, Role, utc_text};
use identity::dhcp_key::DhcpMaster;
use identity::distributor::RequestMaster;
use identity::shared_keys::{NO_END, Shared, Term};
use identity::site_key::SiteKey;
use identity::{Generation, KeyError, Succession};

use super::{DHCP_MASTER, Directory, Lock, REQUEST_MASTER, SITE_KEY, acts};
use crate::audit::Act;
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
    /// Makes another site key and other masters. Hosts get what they need of them with what they
    /// ask for from now on.
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
        let site_keys = Succession::<SiteKey>::from_pem(&files::read(&path)?);
        let site_keys = site_keys.map_err(|error| Error::from(error).with_file(&path))?;
        let (requests, leases) = (self.request_masters(random)?, self.dhcp_masters(random)?);
        let newest = [site_keys.newest().0, requests.newest().0, leases.newest().0].map(|term| term.generation);
        let turn = Turn::behind(newest, site_keys.newest().0, pace, unix_s)?;
        let (site_keys, change) = turn.take(&site_keys, SiteKey::from_bytes(*random_bytes(random)))?;
        let requests = turn.take(&requests, RequestMaster::from_bytes(*random_bytes(random)))?.0;
        let leases = turn.take(&leases, DhcpMaster::from_bytes(*random_bytes(random)))?.0;
        let about = format!("generation {}", change.generation);
        acts::tell(
            self,
            &[(Act::SharedKeys, &about, &format!("sent with from {}", utc_text(change.from_unix_s)))],
            unix_s,
        )?;
        // The site key last: by its generation hosts say what they have.
        self.replace(REQUEST_MASTER, &requests)?;
        self.replace(DHCP_MASTER, &leases)?;
        self.replace(SITE_KEY, &site_keys)?;
        self.site.share(site_keys);
        Ok(change)
    }

    fn replace<K: Shared>(&self, name: &str, keys: &Succession<K>) -> Result<(), Error> {
        files::write(&self.path.join(name), &keys.to_pem(), Secrecy::Secret, Overwrite::Force)
    }

    /// The keys that the host of `certificate` shares with others, as they are now, beside that
    /// certificate. That holds for distributors and DHCP servers as well: others' identities name
    /// their certificates, and those stay.
    pub(super) fn with_shared_keys(
        &self,
        lock: &Lock,
        certificate: Verified<HostCertificate>,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Bundle, Error> {
        let store = self.repository()?;
        let number = store.by_name(certificate.name())?.map(|host| host.number);
        let sarp =
            number.map(|number| self.for_sarp(lock, &certificate, number, &*store, random, unix_s)).transpose()?;
        // Whether a DHCP server also serves under the link layer stands nowhere but in its own file.
        let serves = certificate.role() == Role::DhcpServer;
        let masters = serves.then(|| self.dhcp_masters(random)).transpose()?;
        let dhcp = ForDhcp { keys: self.dhcp_keys(&certificate, random)?, masters, authority: None };
        self.site.bundle(certificate, sarp, dhcp)
    }
}

/// One change, of all keys that are shared.
struct Turn {
    generation: Generation,
    now_unix_s: u64,
    from_unix_s: u64,
    until_unix_s: u64,
}

impl Turn {
    /// The one behind all these generations, and at a time that goes by the site key's `term`.
    fn behind(newest: [Generation; 3], term: Term, pace: Pace, unix_s: u64) -> Result<Turn, KeyError> {
        let Generation(number) = newest.into_iter().max().unwrap_or_default();
        let generation = number.checked_add(1).map(Generation).ok_or(KeyError::Succession)?;
        let from_unix_s = begin(term, unix_s, pace);
        Ok(Turn { generation, now_unix_s: unix_s, from_unix_s, until_unix_s: from_unix_s + pace.grace.as_secs() })
    }

    /// The keys in force when `key` is the newest. What is sent with now becomes the former one; a
    /// key that was only about to be sent with is given up, and so is one that is only accepted
    /// still.
    fn take<K: Shared + Clone>(&self, in_force: &Succession<K>, key: K) -> Result<(Succession<K>, Change), KeyError> {
        let Turn { generation, now_unix_s, from_unix_s, until_unix_s } = *self;
        let (former, former_key) = in_force.sending(now_unix_s);
        let mut others = in_force.iter().map(|(term, _)| term).filter(|term| term.generation != former.generation);
        let given_up = others.find(|term| term.until_unix_s >= now_unix_s).map(|term| term.generation);
        let change = Change { generation, from_unix_s, former: former.generation, until_unix_s, given_up };
        let former = (Term { until_unix_s, ..former }, former_key.clone());
        let next = (Term { generation, from_unix_s, until_unix_s: NO_END }, key);
        Ok((Succession::new(vec![former, next])?, change))
    }
}

/// When hosts begin to send with another key. A change that is ahead keeps its date where hosts
/// hear of the other key in time, or one change after the other would keep the former key in force
/// without end.
fn begin(newest: Term, unix_s: u64, pace: Pace) -> u64 {
    let wanted = unix_s + pace.after.as_secs();
    let is_in_time = newest.from_unix_s >= unix_s + SHARED_KEY_TAKEN_OVER.as_secs();
    if is_in_time { wanted.min(newest.from_unix_s) } else { wanted }
}
