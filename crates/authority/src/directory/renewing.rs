//! Renewal: another certificate for the key that a host has, which says what the one before says
//! (as RFC 7030, section 4.2.2).
//!
//! The manager has decided all of it before: the key, the name, the addresses, the role. So a
//! program may grant it, and whoever holds the key of a good certificate gets it again for longer.
//! What the manager has taken back, or let end, is not renewed. A request is not fresh: whoever has
//! recorded one can show it again. So the answer is sealed for the host whose key signed it, and
//! all requests in the first half of a certificate come to that certificate (record 0041).

use std::time::Duration;

use identity::certificate::{CertificateRequest, HostCertificate, Role};
use identity::renewal::seal;
use identity::{Profile, Verified};

use super::{Certificate, Directory, Entry, Lock, Sharing};
use crate::audit::Act;
use crate::limits::{MAX_FILE_LEN, MAX_LIVE_CERTIFICATES};
use crate::repository::Standing;
use crate::site::Bundle;
use crate::{Error, Random, Request};

/// What a manager lets a renewal come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long another certificate lasts.
    pub validity: Duration,
    /// Another certificate even while the newest one is in its first half.
    pub early: bool,
    /// How long after the end of its newest certificate a host may come back.
    pub late: Duration,
}

/// What a host is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Another certificate, and all that comes with it.
    Certificate,
    /// The certificate that it was given last, which is in its first half, beside the shared keys
    /// as they are now.
    SameCertificate,
    /// The shared keys alone, for which it asked.
    SharedKeys,
}

/// How a request was answered.
#[derive(Clone, Debug)]
pub struct Renewed {
    /// The certificate in the answer.
    pub entry: Entry,
    /// What it is.
    pub given: Given,
    /// The bundle, sealed for the host that asked.
    pub answer: String,
}

impl Directory {
    /// Issues to the host that made `proved` what it has already, for as long as `terms` say from
    /// now on. Of the request only name, key, and what to seal to count. A host that asks for the
    /// keys alone that it shares with others gets these, and so does one whose newest certificate
    /// is in its first half.
    ///
    /// # Errors
    /// [`Error::NotRenewed`] with the reason, [`Error::SiteFull`], or what the operating system
    /// says. After an error nothing was handed out.
    pub fn renew(
        &self,
        proved: &CertificateRequest,
        terms: Terms,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Renewed, Error> {
        let lock = self.lock()?;
        let mut live = self.live(&lock, proved.name(), unix_s)?;
        let in_all = live.len();
        let (newest, sharing) = match live.pop() {
            // It held its addresses before, alone or not.
            Some(newest) => (newest, Sharing::Allowed),
            // Somebody else may hold them by now.
            None => (late(self, &lock, proved, terms.late, unix_s)?, Sharing::Refused),
        };
        self.check_may_ask(&newest, proved)?;
        let given = match proved.has_generation() {
            Some(_) => Given::SharedKeys,
            None if !terms.early && is_in_first_half(&newest, unix_s) => Given::SameCertificate,
            None => Given::Certificate,
        };
        if given != Given::Certificate {
            let bundle = self.with_shared_keys(&lock, newest, random, unix_s)?;
            let answer = sealed_for(proved, &bundle)?;
            return Ok(Renewed { entry: Entry::of(bundle.certificate()), given, answer });
        }
        if in_all >= MAX_LIVE_CERTIFICATES {
            return Err(not_renewed(proved, "it has as many good certificates as a host can use"));
        }
        let request = self.once_more(&newest)?.with_validity(terms.validity)?;
        let entries = self.admit(&lock, &request, sharing, unix_s)?;
        let bundle = self.site.issue(&request, proved, random, unix_s)?;
        let (bundle, renewal) = self.enter(&lock, bundle, &request, sharing, random, unix_s)?;
        let answer = sealed_for(proved, &bundle)?;
        let entry = self.record((entries, Act::Renewed), &bundle, renewal, || Ok(()), &lock)?;
        Ok(Renewed { entry, given, answer })
    }

    /// Whether the host of this certificate asks, and the site still knows it.
    fn check_may_ask(&self, newest: &HostCertificate, proved: &CertificateRequest) -> Result<(), Error> {
        if (newest.key_kind(), newest.public_key()) != (proved.key_kind(), proved.public_key()) {
            return Err(not_renewed(proved, "the request is for another key than its certificate"));
        }
        let known = self.repository()?.by_name(newest.name())?;
        if known.is_some_and(|host| host.standing == Standing::Revoked) {
            return Err(not_renewed(proved, "it is revoked"));
        }
        Ok(())
    }

    /// What a certificate says, if it may be said once more.
    fn once_more(&self, newest: &HostCertificate) -> Result<Request, Error> {
        let name = newest.name();
        let refused = |why: &'static str| Err(Error::NotRenewed(name.to_owned(), why));
        if matches!(newest.role(), Role::Distributor | Role::DhcpServer) {
            return refused("other hosts' identities name its certificate");
        }
        let known = self.repository()?.by_name(name)?;
        if known.as_ref().is_some_and(|host| newest.record_key() != Some((host.algorithm, &host.key))) {
            return refused("it has changed its key for S-ARP by itself, and would lose that");
        }
        let names = newest.names();
        let request = Request::new(name, names.mac(), names.addresses().to_vec())?;
        let request = request.with_ipv6(newest.ipv6_addresses().to_vec())?.with_role(newest.role());
        request.with_subnets(known.map(|host| host.subnets).unwrap_or_default())
    }

    /// The certificates of a host that are neither over nor taken back, by age.
    pub(super) fn live(&self, lock: &Lock, name: &str, unix_s: u64) -> Result<Vec<Verified<HostCertificate>>, Error> {
        let listed = self.revocation_list()?;
        let is_live = |one: &&Certificate| {
            let is_listed = listed.as_ref().is_some_and(|list| list.names(one));
            one.name() == name && one.not_after_unix() >= unix_s && !is_listed
        };
        Ok(lock.recent(&self.issued())?.iter().filter(is_live).map(|one| Verified::clone(one)).collect())
    }
}

/// Whether a host whose certificate may be over is one that could come back late, by what the
/// repository alone says. It is asked before anything that takes long is done for somebody who
/// may be a stranger; [`renew`](Directory::renew) looks at the rest.
///
/// # Errors
/// [`Error::NotRenewed`] with the reason, or what is wrong with the repository.
pub fn check_may_be_late(directory: &Directory, proved: &CertificateRequest) -> Result<(), Error> {
    let known = directory.repository()?.by_name(proved.name())?;
    let known = known.ok_or_else(|| not_renewed(proved, "the site has no host of this name"))?;
    if known.standing == Standing::Revoked {
        return Err(not_renewed(proved, "it is revoked"));
    }
    let is_key = proved.key_kind().record_number() == Some(known.algorithm) && proved.public_key() == known.key;
    // There the repository has the host's second key.
    if is_key || directory.site().profile() == Profile::Paper {
        return Ok(());
    }
    Err(not_renewed(proved, "the request is for another key than its certificate"))
}

/// The newest certificate of a host that has none which is good, if it is over for no longer than
/// `late`. Lists of what was taken back leave out what is over, so the repository alone knows who
/// is revoked, and who is not in it stays out.
fn late(
    directory: &Directory,
    lock: &Lock,
    proved: &CertificateRequest,
    late: Duration,
    unix_s: u64,
) -> Result<Verified<HostCertificate>, Error> {
    let refused = not_renewed(proved, "the site has given it no certificate that is still good");
    if late.is_zero() || proved.has_generation().is_some() {
        return Err(refused);
    }
    let own = lock.recent(&directory.issued())?.iter().rfind(|one| one.name() == proved.name());
    let is_late = |one: &HostCertificate| {
        one.not_after_unix() < unix_s && one.not_after_unix().saturating_add(late.as_secs()) >= unix_s
    };
    let known = directory.repository()?.by_name(proved.name())?;
    let is_good = known.is_some_and(|host| host.standing == Standing::Good);
    own.filter(|one| is_good && is_late(one)).map(|one| Verified::clone(one)).ok_or(refused)
}

fn not_renewed(proved: &CertificateRequest, why: &'static str) -> Error {
    Error::NotRenewed(proved.name().to_owned(), why)
}

/// A bundle as only the host that asked can open it.
fn sealed_for(proved: &CertificateRequest, bundle: &Bundle) -> Result<String, Error> {
    let receiver = proved.answer_key().ok_or("the request names no key that the answer could be sealed to");
    let answer = seal(&receiver.map_err(|why| not_renewed(proved, why))?, &bundle.to_pem())?;
    if answer.len() as u64 > MAX_FILE_LEN {
        return Err(not_renewed(proved, "what it would be given is longer than a host reads"));
    }
    Ok(answer)
}

/// Hosts ask in the second half (`host.renew_before`), so an earlier request is a recorded one, or
/// a manager's. Without this, copies of one request would bring a host as many certificates as it
/// may have, and its own request the refusal.
pub(super) fn is_in_first_half(certificate: &HostCertificate, unix_s: u64) -> bool {
    let (from, until) = (certificate.not_before_unix(), certificate.not_after_unix());
    unix_s < from + until.saturating_sub(from) / 2
}
