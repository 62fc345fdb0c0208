//! Talks to the members of a cluster, one request at a time, within bounded time.
//!
//! A question may be asked again wherever it fails. A change may not: once its request has left, only looking tells whether
//! it happened, so the client says [`Trouble::Unknown`] and leaves the looking to its caller.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Timeout};

use super::access::Access;
use super::breaker::Tries;
use super::message::{Outcome, Refusal, Transaction};
use crate::files;
use crate::limits::{ETCD_CONNECT_TIMEOUT, ETCD_REQUEST_TIMEOUT, ETCD_ROUNDS, MAX_ETCD_ANSWER_LEN};
use crate::repository::StoreError;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// No member serves; a change did not happen.
    Unreachable(String),
    /// The answer to a change is missing: it happened, will happen, or never does.
    Unknown(String),
    /// The state that was asked about has been cleared away meanwhile.
    Compacted,
    /// The cluster will not do this.
    Refused(String),
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unreachable(what) | Trouble::Unknown(what) => StoreError::Unreachable(what),
            Trouble::Compacted => StoreError::Busy,
            Trouble::Refused(what) => StoreError::Refused(what),
        }
    }
}

/// What came of asking one member.
enum Single<T> {
    Answer(T),
    /// It certainly did nothing.
    NotAsked(String),
    /// It may have done what it was asked.
    NoAnswer(String),
    /// It refused, and so would the others.
    Refused(Trouble),
}

/// Members have addresses, so nobody is asked for names: the usual resolver would start a thread for each connection.
#[derive(Debug)]
struct AddressesOnly;

impl Resolver for AddressesOnly {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let address = uri.authority().and_then(|authority| authority.as_str().parse().ok());
        let mut found = self.empty();
        found.push(address.ok_or(ureq::Error::HostNotFound)?);
        Ok(found)
    }
}

/// The members, and which of them answered last.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    members: Vec<String>,
    answered_last: AtomicUsize,
}

impl Client {
    pub(super) fn new(access: &Access) -> Result<Client, StoreError> {
        let config = Agent::config_builder()
            // The way to the cluster is configured here and nowhere else.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(ETCD_CONNECT_TIMEOUT))
            .timeout_global(Some(ETCD_REQUEST_TIMEOUT))
            .tls_config(tls(access)?)
            .build();
        let agent = Agent::with_parts(config, DefaultConnector::default(), AddressesOnly);
        Ok(Client { agent, members: access.members.clone(), answered_last: AtomicUsize::new(0) })
    }

    /// Asks until a member answers.
    pub(super) fn ask(&self, question: &Transaction, tries: Tries) -> Result<Outcome, Trouble> {
        let (first, count) = (self.answered_last.load(Ordering::Relaxed), self.members.len());
        let (rounds, asked) = if tries == Tries::One { (1, 1) } else { (ETCD_ROUNDS, count) };
        let mut reasons = Vec::new();
        for _ in 0..rounds {
            reasons.clear();
            for at in self.order().take(asked) {
                match self.send(question, at) {
                    Single::Answer(outcome) => return Ok(outcome),
                    Single::Refused(trouble) => return Err(trouble),
                    Single::NotAsked(reason) | Single::NoAnswer(reason) => reasons.push(reason),
                }
            }
        }
        // Whoever asks next had better begin with another member.
        self.answered_last.store((first + 1) % count, Ordering::Relaxed);
        Err(Trouble::Unreachable(reasons.join(", ")))
    }

    /// Hands a change to the first member that can be reached.
    pub(super) fn change(&self, change: &Transaction) -> Result<Outcome, Trouble> {
        let mut reasons = Vec::new();
        for at in self.order() {
            match self.send(change, at) {
                Single::Answer(outcome) => return Ok(outcome),
                Single::Refused(trouble) => return Err(trouble),
                Single::NotAsked(reason) => reasons.push(reason),
                Single::NoAnswer(reason) => {
                    // Whoever looks whether it happened had better begin with another member.
                    self.answered_last.store((at + 1) % self.members.len(), Ordering::Relaxed);
                    return Err(Trouble::Unknown(reason));
                }
            }
        }
        Err(Trouble::Unreachable(reasons.join(", ")))
    }

    /// All members, the one that answered last first.
    fn order(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.answered_last.load(Ordering::Relaxed), self.members.len());
        (0..count).map(move |step| (first + step) % count)
    }

    fn send<T: DeserializeOwned>(&self, request: &impl Serialize, at: usize) -> Single<T> {
        let member = &self.members[at];
        let body = match serde_json::to_vec(request) {
            Ok(body) => body,
            Err(error) => return Single::Refused(Trouble::Refused(error.to_string())),
        };
        let url = format!("{member}/v3/kv/txn");
        let answer = match self.agent.post(&url).header("content-type", "application/json").send(&body[..]) {
            Ok(answer) => answer,
            Err(error) => return of_error(member, &error),
        };
        let status = answer.status().as_u16();
        let limit = MAX_ETCD_ANSWER_LEN;
        let bytes = match answer.into_body().into_with_config().limit(limit).read_to_vec() {
            Ok(bytes) => bytes,
            Err(error) => return Single::NoAnswer(format!("{member}: {error}")),
        };
        if status != 200 {
            return of_status(member, status, &bytes);
        }
        match serde_json::from_slice(&bytes) {
            Ok(answer) => {
                self.answered_last.store(at, Ordering::Relaxed);
                Single::Answer(answer)
            }
            Err(error) => Single::NoAnswer(format!("{member} answers what etcd does not: {error}")),
        }
    }
}

/// Only what cannot happen after the request has left counts as not asked.
fn of_error<T>(member: &str, error: &ureq::Error) -> Single<T> {
    use ureq::Error::{BadUri, HostNotFound, Io};
    let text = format!("{member}: {error}");
    match error {
        Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => Single::NotAsked(text),
        ureq::Error::Timeout(Timeout::Connect) | HostNotFound | BadUri(_) => Single::NotAsked(text),
        _ => Single::NoAnswer(text),
    }
}

/// etcd's refusals carry the codes of gRPC.
fn of_status<T>(member: &str, status: u16, body: &[u8]) -> Single<T> {
    const RESOURCE_EXHAUSTED: u32 = 8;
    const OUT_OF_RANGE: u32 = 11;
    const MAY_PASS: [u32; 6] = [1, 2, 4, 10, 13, 14];
    let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let text = format!("{member}: {}", if refusal.error.is_empty() { "no reason" } else { &refusal.error });
    match refusal.code {
        OUT_OF_RANGE => Single::Refused(Trouble::Compacted),
        RESOURCE_EXHAUSTED if refusal.error.contains("too many requests") => Single::NotAsked(text),
        code if MAY_PASS.contains(&code) => Single::NoAnswer(text),
        0 => Single::NoAnswer(format!("{member} answers with HTTP {status}; etcd 3.4 or newer would not")),
        _ => Single::Refused(Trouble::Refused(text)),
    }
}

fn tls(access: &Access) -> Result<TlsConfig, StoreError> {
    let mut config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    let authorities = access.ca.as_deref().map(certificates).transpose()?.unwrap_or_default();
    config = config.root_certs(RootCerts::new_with_certs(&authorities));
    if let (Some(certificate), Some(key)) = (&access.certificate, &access.key) {
        let chain = certificates(certificate)?;
        let text = read(key)?;
        let key = PrivateKey::from_pem(text.as_bytes()).map_err(|_| {
            StoreError::BadAccess("it holds no private key; give the right file".to_owned()).with_file(key)
        })?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    Ok(config.build())
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, StoreError> {
    let text = read(file)?;
    let items = parse_pem(text.as_bytes()).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    });
    let found: Vec<_> = items.collect();
    if found.is_empty() {
        let what = "it holds no certificate; give the right file".to_owned();
        return Err(StoreError::BadAccess(what).with_file(file));
    }
    Ok(found)
}

fn read(file: &Path) -> Result<zeroize::Zeroizing<String>, StoreError> {
    files::read(file).map_err(|error| StoreError::BadAccess(error.reason().to_string()).with_file(file))
}
