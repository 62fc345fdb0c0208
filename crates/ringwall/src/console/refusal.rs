//! Why the door turns somebody away.

use crate::serving::http::Fault;

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
    /// News are wanted as something else than news: a picture, a frame, a page.
    NoStream,
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
    /// TLS is spoken here, and somebody does not.
    InClear,
    /// The page is of the site, which is not asked.
    NoSite,
}

impl Refusal {
    /// Its word in counters.
    pub(super) fn word(self) -> &'static str {
        match self {
            Refusal::Malformed => "request-malformed",
            Refusal::TooLong => "request-too-long",
            Refusal::Stranger => "request-by-another-name",
            Refusal::CrossSite => "request-of-another-site",
            Refusal::NoStream => "request-of-no-stream",
            Refusal::Method => "request-method",
            Refusal::Elsewhere => "request-elsewhere",
            Refusal::NotSignedIn => "not-signed-in",
            Refusal::Token => "no-token",
            Refusal::TooOften => "too-often",
            Refusal::TooMany => "too-many",
            Refusal::Silent => "reader-silent",
            Refusal::InClear => "in-clear",
            Refusal::NoSite => "no-site",
        }
    }

    /// As HTTP has it.
    pub(super) fn status(self) -> &'static str {
        match self {
            Refusal::Malformed | Refusal::InClear => "400 Bad Request",
            Refusal::TooLong => "431 Request Header Fields Too Large",
            Refusal::Stranger => "421 Misdirected Request",
            Refusal::CrossSite | Refusal::NoStream | Refusal::Token => "403 Forbidden",
            Refusal::Method => "405 Method Not Allowed",
            Refusal::Elsewhere | Refusal::NoSite => "404 Not Found",
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
            Refusal::Stranger => "Ask for this console as localhost, or by a name or an address in its certificate.",
            Refusal::CrossSite => "The request came from a page of somebody else.",
            Refusal::NoStream => "News come to the pages of this console. They are no page.",
            Refusal::Method => "This console only shows. It takes no orders.",
            Refusal::Elsewhere => "There is no such page.",
            Refusal::NotSignedIn => "You are not signed in, or it was too long ago.",
            Refusal::Token => "This link has been used, is over, or never was one.",
            Refusal::TooOften => "Too many links failed lately. Wait ten seconds.",
            Refusal::TooMany => "Too many ask at one time. Ask again.",
            Refusal::Silent => "The part of the console that asks the daemons gives no answer. See its log.",
            Refusal::NoSite => "This console knows its machine alone. Start it with --site and --as to see the LAN.",
            Refusal::InClear => "This console is not shown in clear. Write https:// in the place of http://.",
        }
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        match fault {
            Fault::Malformed | Fault::OtherLength => Refusal::Malformed,
            Fault::TooLong => Refusal::TooLong,
        }
    }
}
