//! Whom the door turned away, by reason.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Why nobody was answered, or not with what was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Refusal {
    /// It is no request.
    Malformed,
    TooLong,
    /// The name of the server is none of this machine alone: a page in a browser asks by a name
    /// that it made up (DNS rebinding).
    Stranger,
    /// A page of somebody else sent it.
    CrossSite,
    Method,
    Elsewhere,
    /// Nobody is signed in with it.
    NotSignedIn,
    /// The link was used, is over, or never was.
    Token,
    TooOften,
    TooMany,
    /// The reader gives no answer.
    Silent,
}

impl Refusal {
    /// Its word in counters.
    pub(super) fn word(self) -> &'static str {
        match self {
            Refusal::Malformed => "request-malformed",
            Refusal::TooLong => "request-too-long",
            Refusal::Stranger => "request-by-another-name",
            Refusal::CrossSite => "request-of-another-site",
            Refusal::Method => "request-method",
            Refusal::Elsewhere => "request-elsewhere",
            Refusal::NotSignedIn => "not-signed-in",
            Refusal::Token => "no-token",
            Refusal::TooOften => "too-often",
            Refusal::TooMany => "too-many",
            Refusal::Silent => "reader-silent",
        }
    }

    /// As HTTP has it.
    pub(super) fn status(self) -> &'static str {
        match self {
            Refusal::Malformed => "400 Bad Request",
            Refusal::TooLong => "431 Request Header Fields Too Large",
            Refusal::Stranger => "421 Misdirected Request",
            Refusal::CrossSite | Refusal::Token => "403 Forbidden",
            Refusal::Method => "405 Method Not Allowed",
            Refusal::Elsewhere => "404 Not Found",
            Refusal::NotSignedIn => "401 Unauthorized",
            Refusal::TooOften => "429 Too Many Requests",
            Refusal::TooMany | Refusal::Silent => "503 Service Unavailable",
        }
    }

    /// In words for a person.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Refusal::Malformed => "That was no request that this console understands.",
            Refusal::TooLong => "The request is too long.",
            Refusal::Stranger => "Ask for this console as localhost or by an address of this machine alone.",
            Refusal::CrossSite => "The request came from a page of somebody else.",
            Refusal::Method => "This console only shows. It takes no orders.",
            Refusal::Elsewhere => "There is no such page.",
            Refusal::NotSignedIn => "You are not signed in, or it was too long ago.",
            Refusal::Token => "This link has been used, is over, or never was one.",
            Refusal::TooOften => "Too many links failed lately. Wait ten seconds.",
            Refusal::TooMany => "Too many ask at one time. Ask again.",
            Refusal::Silent => "The part of the console that asks the daemons gives no answer. See its log.",
        }
    }
}

/// So many since the start.
#[derive(Debug, Default)]
pub(super) struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub(super) fn add(&self, refusal: Refusal) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(refusal.word()).or_default() += 1;
    }

    pub(super) fn all(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
