//! Renewal: another certificate for the key that a host has, which says what the one before says (as RFC 7030, section 4.2.2).
//!
//! The manager has decided all of it before: the key, the name, the addresses, the role. So a program may grant it, and whoever holds
//! the key of a certificate that is good gets it again for longer. What the manager has taken back, or let end, is not renewed.
//! Whoever has recorded a request can show it again, so the answer is sealed for the host whose key signed it.

use std::time::Duration;

use identity::Verified;
use identity::certificate::{CertificateRequest, HostCertificate, Role};
use identity::renewal::seal;

use super::{Directory, Entry, Sharing};
use crate::limits::{MAX_FILE_LEN, MAX_LIVE_CERTIFICATES};
use crate::repository::Standing;
use crate::{Error, Random, Request};

impl Directory {
    /// Issues to the host that made `proved` what it has already, for `validity` from now on; gives
    /// the bundle, sealed for that host alone. Of the request only name, key, and what to seal to
    /// count. A host that asks for the keys alone that it shares with others gets these
    /// ([`shared_keys`](Directory::shared_keys)).
    ///
    /// # Errors
    /// [`Error::NotRenewed`] with the reason, [`Error::SiteFull`], or what the operating system says. After an error nothing
    /// was handed out.
    pub fn renew(
        &self,
        proved: &CertificateRequest,
        validity: Duration,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<(Entry, String), Error> {
        if proved.has_generation().is_some() {
            return self.shared_keys(proved, random, unix_s);
        }
        let refused = |why| Error::NotRenewed(proved.name().to_owned(), why);
        let receiver = proved.answer_key();
        let receiver =
            receiver.ok_or_else(|| refused("the request names no key that the answer could be sealed to"))?;
        let lock = self.lock()?;
        let request = self.renewable(proved, unix_s)?.with_validity(validity)?;
        // It held its addresses before, alone or not.
        let entries = self.admit(&request, Sharing::Allowed, unix_s)?;
        let bundle = self.site.issue(&request, proved, random, unix_s)?;
        let (bundle, renewal) = self.enter(bundle, &request, Sharing::Allowed, random, unix_s)?;
        let answer = seal(&receiver, &bundle.to_pem())?;
        if answer.len() as u64 > MAX_FILE_LEN {
            return Err(refused("what it would be given is longer than a host reads"));
        }
        let entry = self.record(entries, &bundle, renewal, || Ok(()), &lock)?;
        Ok((entry, answer))
    }

    /// What the newest certificate of the host says, if it may be said once more.
    fn renewable(&self, proved: &CertificateRequest, unix_s: u64) -> Result<Request, Error> {
        let name = proved.name();
        let refused = |why: &'static str| Err(Error::NotRenewed(name.to_owned(), why));
        let live = self.live(name, unix_s)?;
        let Some(newest) = live.last() else {
            return refused("the site has given it no certificate that is still good");
        };
        if (newest.key_kind(), newest.public_key()) != (proved.key_kind(), proved.public_key()) {
            return refused("the request is for another key than its certificate");
        }
        if live.len() >= MAX_LIVE_CERTIFICATES {
            return refused("it has as many good certificates as a host can use");
        }
        if matches!(newest.role(), Role::Distributor | Role::DhcpServer) {
            return refused("other hosts' identities name its certificate");
        }
        let known = self.repository()?.by_name(name)?;
        if known.as_ref().is_some_and(|host| host.standing == Standing::Revoked) {
            return refused("it is revoked");
        }
        if known.as_ref().is_some_and(|host| newest.record_key() != Some((host.algorithm, &host.key))) {
            return refused("it has changed its key for S-ARP by itself, and would lose that");
        }
        let names = newest.names();
        let request = Request::new(name, names.mac(), names.addresses().to_vec())?;
        let request = request.with_ipv6(newest.ipv6_addresses().to_vec())?.with_role(newest.role());
        request.with_subnets(known.map(|host| host.subnets).unwrap_or_default())
    }

    /// The certificates of a host that are neither over nor taken back, by age.
    pub(super) fn live(&self, name: &str, unix_s: u64) -> Result<Vec<Verified<HostCertificate>>, Error> {
        let listed = self.revocation_list()?;
        let is_live = |one: &Verified<HostCertificate>| {
            let is_listed = listed.as_ref().is_some_and(|list| list.names(one));
            one.name() == name && one.not_after_unix() >= unix_s && !is_listed
        };
        Ok(self.certificates()?.into_iter().filter(is_live).collect())
    }
}
