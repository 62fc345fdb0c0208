//! Enrolment by token at the site: tokens are made, applications approved or refused, and hosts whose key is no longer theirs
//! alone get another.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use identity::certificate::{CertificateRequest, HostCertificate, Role, utc_text};
use identity::sealing;
use identity::token::{NumberKey, Place, SEALING_INFO, Token};
use identity::{Profile, Verified};
use wire::MacAddress;

use super::renewing::is_in_first_half;
use super::{Delivery, Directory, Entry, Lock, Sharing, acts};
use crate::audit::Act;
use crate::enrolment::by_token::associated;
use crate::enrolment::{number_of, number_text};
use crate::limits::{MAX_SEALED_LEN, MAX_TOKEN_VALIDITY};
use crate::repository::enrolment::{self, Applicant, Enrolment, Progress};
use crate::repository::{HostEntry, Subnet};
use crate::{Error, Random, Request, random_bytes};

/// Stands for the hardware address in checks of what is asked for, where any will do.
const ANY_MACHINE: MacAddress = MacAddress([2, 0, 0, 0, 0, 0]);

/// What a token is for.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// The name that the host gets.
    pub name: String,
    /// The role that it gets.
    pub role: Role,
    /// The hardware address that must ask; any may if there is none.
    pub mac: Option<MacAddress>,
    /// The addresses that it gets; if there are none, and no subnets, those that it asks for.
    pub addresses: Vec<Ipv4Addr>,
    /// Where the addresses lie that it may be given.
    pub subnets: Vec<Subnet>,
    /// Whether whoever applies first from that hardware address is approved by `site approve
    /// --all`.
    pub preapproved: bool,
    /// Whether it serves at the site's service, so that no key distributor is needed.
    pub by_service: bool,
    /// How long the certificate lasts.
    pub validity: Duration,
    /// How long the token serves.
    pub valid: Duration,
}

impl Invitation {
    fn check(&self) -> Result<(), Error> {
        if self.valid.is_zero() || self.valid > MAX_TOKEN_VALIDITY {
            return Err(Error::BadTokenPeriod);
        }
        if self.preapproved && self.mac.is_none() {
            return Err(Error::PreapprovedForAnybody(self.name.clone()));
        }
        let mac = self.mac.unwrap_or(ANY_MACHINE);
        let request = Request::new(&self.name, mac, self.addresses.clone())?.with_validity(self.validity)?;
        request.with_subnets(self.subnets.clone()).map(drop)
    }

    /// What the repository keeps of it, under the token's number.
    fn entry(&self, number: u64, unix_s: u64) -> Enrolment {
        Enrolment {
            number,
            name: self.name.clone(),
            role: self.role,
            mac: self.mac,
            addresses: self.addresses.clone(),
            subnets: self.subnets.clone(),
            preapproved: self.preapproved,
            validity: self.validity,
            until_unix_s: unix_s.saturating_add(self.valid.as_secs()),
            progress: Progress::AwaitsHost,
        }
    }
}

/// An application that a manager looks at.
#[derive(Clone, Debug)]
pub struct Application {
    /// The token.
    pub enrolment: Enrolment,
    /// Who applies, and what for; nobody yet if there is none.
    pub applicant: Option<AskedFor>,
}

/// What an applicant asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedFor {
    /// Its hardware address.
    pub mac: MacAddress,
    /// The addresses that it would like.
    pub addresses: Vec<Ipv4Addr>,
    /// What to compare with what it shows.
    pub fingerprint: String,
    /// When it asked first, in Unix seconds.
    pub asked_unix_s: u64,
}

impl Directory {
    /// Makes a token. Earlier ones for the same name end.
    ///
    /// # Errors
    /// What is wrong with `invitation`; [`Error::NoDistributor`]; too many tokens; or what is wrong with the repository.
    pub fn invite(&self, invitation: &Invitation, random: &mut Random<'_>, unix_s: u64) -> Result<Token, Error> {
        let mut made = self.invite_all(std::slice::from_ref(invitation), random, unix_s)?;
        made.pop().ok_or(Error::NoDistributor)
    }

    /// Makes a token for each of `invitations`, in their order. Earlier ones for the same names
    /// end. Nothing is made if something is wrong with one of them.
    ///
    /// # Errors
    /// As [`invite`](Directory::invite); [`Error::InvitedTwice`].
    pub fn invite_all(
        &self,
        invitations: &[Invitation],
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Vec<Token>, Error> {
        let mut names = BTreeSet::new();
        for invitation in invitations {
            invitation.check()?;
            if !names.insert(invitation.name.as_str()) {
                return Err(Error::InvitedTwice(invitation.name.clone()));
            }
        }
        let lock = self.lock()?;
        let store = self.repository()?;
        // What distributors have already; it lasts longer than a token where the site's manager
        // does not haste.
        let masters = self.request_masters(random)?;
        let master = masters.sending(unix_s).1;
        let distributors = self.others(&lock, Role::Distributor, &*store, "", Role::Host, unix_s)?;
        let (mut tokens, mut entries) = (Vec::new(), Vec::new());
        for invitation in invitations {
            let others = distributors.iter().filter(|one| one.name() != invitation.name);
            let places = others.filter_map(|one| Some(Place { ip: *one.addresses().first()?, mac: one.mac() }));
            let places: Vec<Place> = places.collect();
            if places.is_empty() && !invitation.by_service {
                return Err(Error::NoDistributor);
            }
            // At random, so that a site that was restored from a backup does not make the token of
            // a former one again.
            let number = NumberKey::of(master).number(*random_bytes(random));
            entries.push(invitation.entry(number, unix_s));
            tokens.push(Token::new(master, number, self.site().anchor().der(), &invitation.name, &places));
        }
        let details: Vec<String> = entries.iter().map(described).collect();
        let deeds = entries.iter().zip(&details).map(|(one, detail)| (Act::Invited, &*one.name, &**detail));
        acts::tell(self, &deeds.collect::<Vec<_>>(), unix_s)?;
        enrolment::open(&*store, &entries, unix_s)?;
        Ok(tokens)
    }

    /// Every token that is not over, with who applies.
    ///
    /// # Errors
    /// What is wrong with the repository.
    pub fn applications(&self, unix_s: u64) -> Result<Vec<Application>, Error> {
        let _lock = self.lock()?;
        enrolment::sweep(&*self.repository()?, unix_s)?.into_iter().map(look_at).collect()
    }

    /// Issues what a token is for to who applies with it, as [`issue`](Directory::issue) does, and seals the bundle for the host to
    /// fetch. `which` is the name or the number of the token; `expected`, if given, is the fingerprint that the host shows.
    ///
    /// # Errors
    /// [`Error::NoApplicant`], [`Error::OtherFingerprint`], [`Error::BundleTooLong`], or as `issue`. After an error nothing can be
    /// fetched.
    pub fn approve(
        &self,
        which: &str,
        expected: Option<&str>,
        sharing: Sharing,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Entry, Error> {
        let lock = self.lock()?;
        let store = self.repository()?;
        let (asked, applicant) = self.waiting(which, unix_s)?;
        let proved = applicant.certificate_request()?;
        let shown = applicant.fingerprint()?;
        if expected.is_some_and(|expected| !expected.eq_ignore_ascii_case(&shown)) {
            return Err(Error::OtherFingerprint(shown));
        }
        let request = granted(&asked, &applicant, &proved)?;
        let (bundle, fresh) = match issued_before(self, &lock, &request, &proved, unix_s)? {
            Some(certificate) => (self.with_shared_keys(&lock, certificate, random, unix_s)?, None),
            None => {
                let entries = self.admit(&lock, &request, sharing, unix_s)?;
                let bundle = self.site().issue(&request, &proved, random, unix_s)?;
                let (bundle, renewal) = self.enter(&lock, bundle, &request, sharing, random, unix_s)?;
                (bundle, Some((entries, renewal)))
            }
        };
        let associated = associated(asked.number, &applicant.request);
        let sealed = sealing::seal(&applicant.sealing_key, SEALING_INFO, &associated, bundle.to_pem().as_bytes())?;
        if sealed.len() > MAX_SEALED_LEN {
            return Err(Error::BundleTooLong);
        }
        let hand_out = || match enrolment::approve(&*store, &asked, &applicant, sealed, unix_s)? {
            true => Ok(()),
            false => Err(Error::NoApplicant(which.to_owned())),
        };
        match fresh {
            Some((entries, renewal)) => self.record((entries, Act::Enrolled), &bundle, renewal, hand_out, &lock),
            None => hand_out().map(|()| Entry::of(bundle.certificate())),
        }
    }

    /// Refuses who applies with a token, or ends a token that nobody has applied with yet; gives its name.
    ///
    /// # Errors
    /// [`Error::NoApplicant`], or what is wrong with the repository.
    pub fn refuse(&self, which: &str, unix_s: u64) -> Result<String, Error> {
        let _lock = self.lock()?;
        let store = self.repository()?;
        let found = self.named(which, unix_s)?;
        let is_open = matches!(found.progress, Progress::AwaitsHost | Progress::AwaitsManager(_));
        if is_open {
            acts::tell(self, &[(Act::Refused, &found.name, &described(&found))], unix_s)?;
        }
        if is_open && enrolment::refuse(&*store, &found)? {
            return Ok(found.name);
        }
        Err(Error::NoApplicant(which.to_owned()))
    }

    /// Gives a host that is known another key, by a request that it made: from now on the old one counts no more.
    ///
    /// # Errors
    /// [`Error::NoHost`], [`Error::OtherHost`] if the request is another host's, [`Error::SameKey`], or as
    /// [`issue`](Directory::issue).
    pub fn rekey(
        &self,
        name: &str,
        proved: &CertificateRequest,
        validity: Duration,
        delivery: &Delivery<'_>,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Entry, Error> {
        let host = self.known(name)?;
        if proved.name() != name || host.mac.is_some_and(|mac| mac != proved.mac()) {
            return Err(Error::OtherHost);
        }
        if proved.public_key() == host.key {
            return Err(Error::SameKey);
        }
        // Which second key it should have is not said here.
        if self.site().profile() == Profile::Paper {
            return Err(Error::KeysOfPaperSite);
        }
        let request = Request::new(name, proved.mac(), certified(&host))?.with_role(host.role);
        let request = request.with_validity(validity)?.with_subnets(host.subnets)?;
        // As by token: what the old key proves is out also if nothing new can be issued.
        let lock = self.lock()?;
        acts::tell(self, &[(Act::Rekeyed, name, "by a request")], unix_s)?;
        self.repository()?.revoke(name)?;
        self.take_back(name, unix_s)?;
        drop(lock);
        self.issue(&request, proved, delivery, random, unix_s)
    }

    /// Takes a host's key from it and makes a token by which it gets another, under its name and number, with all that it has
    /// now. Until then key distributors say that it is invalid.
    ///
    /// # Errors
    /// [`Error::NoHost`], or as [`invite`](Directory::invite). If that fails the host may be revoked all the same.
    pub fn rekey_by_token(
        &self,
        name: &str,
        validity: Duration,
        valid: Duration,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Token, Error> {
        let host = self.known(name)?;
        let invitation = Invitation {
            name: name.to_owned(),
            role: host.role,
            mac: host.mac,
            addresses: certified(&host),
            subnets: host.subnets,
            preapproved: false,
            by_service: false,
            validity,
            valid,
        };
        invitation.check()?;
        let lock = self.lock()?;
        acts::tell(self, &[(Act::Rekeyed, name, "by a token")], unix_s)?;
        // The old key is out also if no token can be made.
        self.repository()?.revoke(name)?;
        self.take_back(name, unix_s)?;
        drop(lock);
        self.invite(&invitation, random, unix_s)
    }

    fn known(&self, name: &str) -> Result<HostEntry, Error> {
        self.repository()?.by_name(name)?.ok_or_else(|| Error::NoHost(name.to_owned()))
    }

    /// The token of this number or name. A number is looked up, since a site can have a thousand
    /// tokens and the signer approves one after the other.
    fn named(&self, which: &str, unix_s: u64) -> Result<Enrolment, Error> {
        let store = self.repository()?;
        if let Some(number) = number_of(which)
            && let Some(found) = store.enrolment(number)?.filter(|one| !one.is_over(unix_s))
        {
            return Ok(found);
        }
        let found = enrolment::sweep(&*store, unix_s)?;
        found.into_iter().find(|one| one.name == which).ok_or_else(|| Error::NoApplicant(which.to_owned()))
    }

    fn waiting(&self, which: &str, unix_s: u64) -> Result<(Enrolment, Applicant), Error> {
        let found = self.named(which, unix_s)?;
        match &found.progress {
            Progress::AwaitsManager(applicant) => {
                let applicant = applicant.clone();
                Ok((found, applicant))
            }
            _ => Err(Error::NoApplicant(which.to_owned())),
        }
    }
}

/// A token as the record has it.
fn described(enrolment: &Enrolment) -> String {
    let Enrolment { number, role, until_unix_s, preapproved, .. } = enrolment;
    let approved = if *preapproved { ", preapproved" } else { "" };
    format!("token {} until {}, {role}{approved}", number_text(*number), utc_text(*until_unix_s))
}

fn look_at(enrolment: Enrolment) -> Result<Application, Error> {
    let applicant = match &enrolment.progress {
        Progress::AwaitsManager(applicant) | Progress::AwaitsFetch(applicant, _) => Some(AskedFor {
            mac: applicant.mac,
            addresses: applicant.certificate_request()?.addresses().to_vec(),
            fingerprint: applicant.fingerprint()?,
            asked_unix_s: applicant.asked_unix_s,
        }),
        Progress::AwaitsHost | Progress::Refused | Progress::Fetched => None,
    };
    Ok(Application { enrolment, applicant })
}

/// What the manager grants by approving: what the token says, and of what the host asks for only what the token leaves to it.
fn granted(asked: &Enrolment, applicant: &Applicant, proved: &CertificateRequest) -> Result<Request, Error> {
    let is_said = !asked.addresses.is_empty() || !asked.subnets.is_empty();
    let addresses = if is_said { asked.addresses.clone() } else { proved.addresses().to_vec() };
    let request = Request::new(&asked.name, applicant.mac, addresses)?.with_role(asked.role);
    request.with_validity(asked.validity)?.with_subnets(asked.subnets.clone())
}

/// The certificate that was issued to who applies, by an approval that ended before it could be
/// fetched: nothing is granted twice. A key is made for one application, so nobody else has it.
fn issued_before(
    directory: &Directory,
    lock: &Lock,
    request: &Request,
    proved: &CertificateRequest,
    unix_s: u64,
) -> Result<Option<Verified<HostCertificate>>, Error> {
    // Others' identities name what servers are given, and these are given more.
    if matches!(request.role(), Role::Distributor | Role::DhcpServer) {
        return Ok(None);
    }
    let is_it = |one: &Verified<HostCertificate>| {
        (one.key_kind(), one.public_key()) == (proved.key_kind(), proved.public_key())
            && one.role() == request.role()
            && one.names() == request.names()
            && is_in_first_half(one, unix_s)
    };
    Ok(directory.live(lock, request.name(), unix_s)?.into_iter().rfind(is_it))
}

/// The addresses that a host has by certificate: what it was given lies in its subnets.
fn certified(host: &HostEntry) -> Vec<Ipv4Addr> {
    let is_given = |ip: &Ipv4Addr| host.subnets.iter().any(|subnet| subnet.contains(*ip));
    host.addresses.iter().copied().filter(|ip| !is_given(ip)).collect()
}
