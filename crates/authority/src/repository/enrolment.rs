//! Tokens and what became of them. A repository keeps one [`Enrolment`] for each token and knows a single change: exactly this
//! one in the place of exactly that one. What hosts and managers do to them is decided here, once for every repository.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use identity::certificate::{CertificateRequest, Role};
use identity::token::fingerprint;
use serde::{Deserialize, Serialize};
use wire::MacAddress;

use super::encoded::Bytes;
use super::{Store, StoreError, Subnet};
use crate::limits::{APPROVAL_VALIDITY, ENROLMENT_ATTEMPTS, MAX_ENROLMENTS};

/// A token: what it is for, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// The number of the token.
    pub number: u64,
    /// The name that the host gets.
    pub name: String,
    /// The role that it gets.
    pub role: Role,
    /// The hardware address that must ask; any may if there is none.
    pub mac: Option<MacAddress>,
    /// The addresses that the host gets; if there are none, and no subnets, those that it asks for.
    pub addresses: Vec<Ipv4Addr>,
    /// Where the addresses lie that it may be given.
    pub subnets: Vec<Subnet>,
    /// Whether the manager has approved whoever applies first from that hardware address.
    pub preapproved: bool,
    /// How long the certificate lasts.
    pub validity: Duration,
    /// Its last second, in Unix seconds.
    pub until_unix_s: u64,
    /// What became of it.
    pub progress: Progress,
}

/// What a token awaits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A host that applies.
    AwaitsHost,
    /// The manager.
    AwaitsManager(Applicant),
    /// The host, which fetches its identity, sealed to it.
    AwaitsFetch(Applicant, Vec<u8>),
    /// Nothing: the manager has refused.
    Refused,
    /// Nothing: the host has its identity.
    Fetched,
}

/// Who has applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// The hardware address that asked.
    pub mac: MacAddress,
    /// What its identity is sealed to.
    pub sealing_key: [u8; 32],
    /// Its request for a certificate (PKCS#10) in DER.
    pub request: Vec<u8>,
    /// When it asked first, in Unix seconds.
    pub asked_unix_s: u64,
}

impl Applicant {
    /// The request, whose maker has proved to hold its key.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn certificate_request(&self) -> Result<CertificateRequest, identity::certificate::RequestError> {
        CertificateRequest::from_der(&self.request)
    }

    /// What the manager compares with what the host shows.
    ///
    /// # Errors
    /// What is wrong with the request.
    pub fn fingerprint(&self) -> Result<String, identity::certificate::RequestError> {
        Ok(fingerprint(self.certificate_request()?.public_key(), &self.sealing_key))
    }

    fn has_keys_of(&self, other: &Applicant) -> bool {
        self.sealing_key == other.sealing_key && self.request == other.request
    }
}

impl Enrolment {
    /// Whether its time is over.
    #[must_use]
    pub fn is_over(&self, now_unix_s: u64) -> bool {
        now_unix_s > self.until_unix_s
    }

    fn becoming(&self, progress: Progress) -> Enrolment {
        Enrolment { progress, ..self.clone() }
    }
}

/// What a host is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The manager has not decided.
    Waiting,
    /// The manager has approved; the sealed identity.
    Approved(Vec<u8>),
    /// The manager has refused.
    Refused,
    /// The identity was fetched.
    Fetched,
    /// There is no such token, or it is over.
    NotOpen,
    /// Nobody has applied yet.
    NotApplied,
    /// Somebody has applied with another key.
    OtherKey,
    /// The token is for another hardware address.
    OtherMac,
    /// The request is none, or asks for what the token is not for.
    BadRequest,
}

/// Enters new tokens, each in the place of earlier ones for the same name; tokens that are over go.
///
/// # Errors [`StoreError::TooManyEnrolments`], before the first is entered, or what is wrong with
/// the repository.
pub fn open(store: &dyn Store, new: &[Enrolment], now_unix_s: u64) -> Result<(), StoreError> {
    let mut left = sweep(store, now_unix_s)?;
    let names: BTreeSet<&str> = new.iter().map(|one| one.name.as_str()).collect();
    for earlier in left.extract_if(.., |one| names.contains(one.name.as_str())) {
        store.change_enrolment(Some(&earlier), None)?;
    }
    if left.len() + new.len() > MAX_ENROLMENTS {
        return Err(StoreError::TooManyEnrolments);
    }
    for one in new {
        if !store.change_enrolment(None, Some(one))? {
            return Err(StoreError::Busy);
        }
    }
    Ok(())
}

/// Takes out the tokens that are over, and what was sealed under them; gives the others.
///
/// # Errors
/// What is wrong with the repository.
pub fn sweep(store: &dyn Store, now_unix_s: u64) -> Result<Vec<Enrolment>, StoreError> {
    let (over, left) = store.enrolments()?.into_iter().partition(|one| one.is_over(now_unix_s));
    for enrolment in over as Vec<Enrolment> {
        // Somebody else may have taken it out meanwhile.
        store.change_enrolment(Some(&enrolment), None)?;
    }
    Ok(left)
}

/// Enters who applies with a token, if it is the first or the same again, and tells what became of it.
///
/// # Errors
/// What is wrong with the repository.
pub fn apply(store: &dyn Store, number: u64, applicant: &Applicant, now_unix_s: u64) -> Result<Answer, StoreError> {
    change(store, number, now_unix_s, |enrolment| {
        let awaits_host = matches!(enrolment.progress, Progress::AwaitsHost);
        match what_is_wrong(enrolment, applicant) {
            Some(answer) => (answer, None),
            None if awaits_host => (Answer::Waiting, Some(Progress::AwaitsManager(applicant.clone()))),
            None => (answer_of(enrolment), None),
        }
    })
}

/// What became of a token, for a host that has applied.
///
/// # Errors
/// What is wrong with the repository.
pub fn ask(store: &dyn Store, number: u64, now_unix_s: u64) -> Result<Answer, StoreError> {
    change(store, number, now_unix_s, |enrolment| (answer_of(enrolment), None))
}

/// Forgets the sealed identity of a token, because the host has installed it.
///
/// # Errors
/// What is wrong with the repository.
pub fn close(store: &dyn Store, number: u64, now_unix_s: u64) -> Result<Answer, StoreError> {
    change(store, number, now_unix_s, |enrolment| match enrolment.progress {
        Progress::AwaitsFetch(..) => (Answer::Fetched, Some(Progress::Fetched)),
        _ => (answer_of(enrolment), None),
    })
}

/// Stores what the manager has sealed for who applied; from now on it can be fetched for a day. False if it is not `asked` any
/// more.
///
/// # Errors
/// What is wrong with the repository.
pub fn approve(
    store: &dyn Store,
    asked: &Enrolment,
    applicant: &Applicant,
    sealed: Vec<u8>,
    now_unix_s: u64,
) -> Result<bool, StoreError> {
    let until_unix_s = now_unix_s.saturating_add(APPROVAL_VALIDITY.as_secs());
    let approved = asked.becoming(Progress::AwaitsFetch(applicant.clone(), sealed));
    store.change_enrolment(Some(asked), Some(&Enrolment { until_unix_s, ..approved }))
}

/// Ends a token by the manager's word. False if it is not `asked` any more.
///
/// # Errors
/// What is wrong with the repository.
pub fn refuse(store: &dyn Store, asked: &Enrolment) -> Result<bool, StoreError> {
    store.change_enrolment(Some(asked), Some(&asked.becoming(Progress::Refused)))
}

/// Decides on what the repository has, and once more if another distributor or the manager was faster.
fn change(
    store: &dyn Store,
    number: u64,
    now_unix_s: u64,
    decide: impl Fn(&Enrolment) -> (Answer, Option<Progress>),
) -> Result<Answer, StoreError> {
    for _ in 0..ENROLMENT_ATTEMPTS {
        let Some(before) = store.enrolment(number)? else { return Ok(Answer::NotOpen) };
        let (answer, after) = match before.is_over(now_unix_s) {
            true => (Answer::NotOpen, None),
            false => match decide(&before) {
                (answer, Some(progress)) => (answer, Some(before.becoming(progress))),
                (answer, None) => return Ok(answer),
            },
        };
        if store.change_enrolment(Some(&before), after.as_ref())? {
            return Ok(answer);
        }
    }
    Err(StoreError::Busy)
}

/// Why nobody may apply so.
fn what_is_wrong(enrolment: &Enrolment, applicant: &Applicant) -> Option<Answer> {
    if enrolment.mac.is_some_and(|mac| mac != applicant.mac) {
        return Some(Answer::OtherMac);
    }
    match &enrolment.progress {
        Progress::AwaitsManager(first) | Progress::AwaitsFetch(first, _) => {
            (!first.has_keys_of(applicant)).then_some(Answer::OtherKey)
        }
        Progress::AwaitsHost => {
            let is_right = applicant.certificate_request().is_ok_and(|request| {
                request.name() == enrolment.name
                    && request.mac() == applicant.mac
                    && request.key_kind().record_number().is_some()
            });
            (!is_right).then_some(Answer::BadRequest)
        }
        Progress::Refused | Progress::Fetched => None,
    }
}

fn answer_of(enrolment: &Enrolment) -> Answer {
    match &enrolment.progress {
        Progress::AwaitsHost => Answer::NotApplied,
        Progress::AwaitsManager(_) => Answer::Waiting,
        Progress::AwaitsFetch(_, sealed) => Answer::Approved(sealed.clone()),
        Progress::Refused => Answer::Refused,
        Progress::Fetched => Answer::Fetched,
    }
}

/// An enrolment as repositories write it down, so that a person can read it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    number: u64,
    name: String,
    role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    addresses: Vec<Ipv4Addr>,
    subnets: Vec<(Ipv4Addr, u8)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    preapproved: bool,
    validity_s: u64,
    until: u64,
    progress: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    applicant: Option<WrittenApplicant>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<Bytes>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenApplicant {
    mac: String,
    sealing_key: Bytes,
    request: Bytes,
    asked: u64,
}

/// The enrolment as bytes; the same for equal ones.
pub(super) fn write(enrolment: &Enrolment) -> Result<Vec<u8>, StoreError> {
    let (word, applicant, sealed) = match &enrolment.progress {
        Progress::AwaitsHost => ("awaits-host", None, None),
        Progress::AwaitsManager(applicant) => ("awaits-manager", Some(applicant), None),
        Progress::AwaitsFetch(applicant, sealed) => ("awaits-fetch", Some(applicant), Some(Bytes(sealed.clone()))),
        Progress::Refused => ("refused", None, None),
        Progress::Fetched => ("fetched", None, None),
    };
    let written = Written {
        number: enrolment.number,
        name: enrolment.name.clone(),
        role: enrolment.role.name().to_owned(),
        mac: enrolment.mac.map(|mac| mac.to_string()),
        addresses: enrolment.addresses.clone(),
        subnets: enrolment.subnets.iter().map(|subnet| (subnet.network(), subnet.prefix_len())).collect(),
        preapproved: enrolment.preapproved,
        validity_s: enrolment.validity.as_secs(),
        until: enrolment.until_unix_s,
        progress: word.to_owned(),
        applicant: applicant.map(|applicant| WrittenApplicant {
            mac: applicant.mac.to_string(),
            sealing_key: Bytes(applicant.sealing_key.to_vec()),
            request: Bytes(applicant.request.clone()),
            asked: applicant.asked_unix_s,
        }),
        sealed,
    };
    serde_json::to_vec(&written).map_err(|error| StoreError::Refused(error.to_string()))
}

/// Reads what [`write`] wrote; nothing if it cannot have.
pub(super) fn read(bytes: &[u8]) -> Option<Enrolment> {
    let written: Written = serde_json::from_slice(bytes).ok()?;
    let applicant = match written.applicant {
        Some(applicant) => Some(Applicant {
            mac: applicant.mac.parse().ok()?,
            sealing_key: applicant.sealing_key.0.try_into().ok()?,
            request: applicant.request.0,
            asked_unix_s: applicant.asked,
        }),
        None => None,
    };
    let progress = match (written.progress.as_str(), applicant, written.sealed) {
        ("awaits-host", None, None) => Progress::AwaitsHost,
        ("awaits-manager", Some(applicant), None) => Progress::AwaitsManager(applicant),
        ("awaits-fetch", Some(applicant), Some(sealed)) => Progress::AwaitsFetch(applicant, sealed.0),
        ("refused", None, None) => Progress::Refused,
        ("fetched", None, None) => Progress::Fetched,
        _ => return None,
    };
    let mac = match written.mac {
        Some(mac) => Some(mac.parse().ok()?),
        None => None,
    };
    let subnets = written.subnets.iter().map(|(network, prefix_len)| Subnet::new(*network, *prefix_len).ok());
    Some(Enrolment {
        number: written.number,
        name: written.name,
        role: Role::from_name(&written.role)?,
        mac,
        addresses: written.addresses,
        subnets: subnets.collect::<Option<_>>()?,
        preapproved: written.preapproved,
        validity: Duration::from_secs(written.validity_s),
        until_unix_s: written.until,
        progress,
    })
}
