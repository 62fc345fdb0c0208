//! Why the door turns somebody away.

use identity::tls::NotLetIn;

use super::super::orders::NotHeard;
use super::super::signer;
use super::Kept;
use super::http::BadRequest;
use crate::report::{BadReport, RETRY_AFTER};

/// Why nobody was answered, or not with what he wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// He did not prove that he is a host of the site.
    NotLetIn(NotLetIn),
    /// His certificate is on the site's list.
    Revoked,
    /// What he sent is no request that there is.
    Request(BadRequest),
    Report(BadReport),
    NotKept(Kept),
    /// The service has it already, or what is newer.
    NotNewer,
    /// The site has not signed what was brought.
    NotOfSite,
    /// He reports too often.
    TooOften,
    /// As many are being answered as may be, of all or of his address.
    TooMany,
    /// The site has none.
    Absent,
    /// The keeper, or its clerk, gives no answer.
    Silent,
    /// The signer gives none.
    NoSigner,
    /// It does not sign this.
    NotSigned(NotSigned),
    /// This order is not carried out.
    NotHeard(NotHeard),
    /// He is no operator, and what he wants is for operators.
    NoOperator,
    /// He is an operator, and what he wants is for hosts.
    NoHost,
}

/// Why the signer signs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotSigned {
    Request,
    Token,
    NotRenewed,
    TooOften,
    Failed,
}

impl Refusal {
    /// What becomes of a refusal of the signer, whose log says more.
    pub(super) fn of(why: &signer::Refusal) -> Refusal {
        Refusal::NotSigned(match why {
            signer::Refusal::Order(why) => return Refusal::NotHeard(*why),
            signer::Refusal::Request => NotSigned::Request,
            signer::Refusal::Token => NotSigned::Token,
            signer::Refusal::NotRenewed(_) => NotSigned::NotRenewed,
            signer::Refusal::TooOften => NotSigned::TooOften,
            signer::Refusal::Failed => NotSigned::Failed,
        })
    }

    /// Its word in counters.
    pub(super) fn word(self) -> &'static str {
        match self {
            Refusal::NotLetIn(why) => why.word(),
            Refusal::Revoked => "revoked",
            Refusal::Request(bad) => bad.word(),
            Refusal::Report(BadReport::TooLong) => "report-too-long",
            Refusal::Report(BadReport::Malformed) => "report-malformed",
            Refusal::Report(BadReport::Version) => "report-version",
            Refusal::Report(BadReport::Limits) => "report-limits",
            Refusal::NotKept(Kept::Older) => "report-older",
            Refusal::NotKept(Kept::Full) => "too-many-hosts",
            Refusal::NotKept(_) => "not-kept",
            Refusal::NotNewer => "not-newer",
            Refusal::NotOfSite => "not-of-site",
            Refusal::TooOften => "too-often",
            Refusal::TooMany => "too-many",
            Refusal::Absent => "absent",
            Refusal::Silent => "keeper-silent",
            Refusal::NoSigner => "signer-silent",
            Refusal::NotHeard(why) => why.word(),
            Refusal::NoOperator => "no-operator",
            Refusal::NoHost => "no-host",
            Refusal::NotSigned(NotSigned::Request) => "request-not-signed",
            Refusal::NotSigned(NotSigned::Token) => "no-token",
            Refusal::NotSigned(NotSigned::NotRenewed) => "not-renewed",
            Refusal::NotSigned(NotSigned::TooOften) => "signer-too-often",
            Refusal::NotSigned(NotSigned::Failed) => "signer-failed",
        }
    }

    /// What stands in the head of the answer besides: when to come again (RFC 9110, section 10.2.3).
    pub(super) fn fields(self) -> String {
        match self {
            Refusal::TooOften | Refusal::NotSigned(NotSigned::TooOften) => {
                format!("Retry-After: {}\r\n", RETRY_AFTER.as_secs())
            }
            _ => String::new(),
        }
    }

    /// As HTTP has it.
    pub(super) fn status(self) -> &'static str {
        match self {
            Refusal::NotHeard(NotHeard::Malformed) => "400 Bad Request",
            Refusal::NotHeard(NotHeard::Again) => "409 Conflict",
            Refusal::NotLetIn(_)
            | Refusal::Revoked
            | Refusal::NotHeard(_)
            | Refusal::NoOperator
            | Refusal::NoHost
            | Refusal::NotSigned(NotSigned::Token | NotSigned::NotRenewed) => "403 Forbidden",
            Refusal::NotSigned(NotSigned::Request) => "400 Bad Request",
            Refusal::NotSigned(NotSigned::TooOften) => "429 Too Many Requests",
            Refusal::NoSigner | Refusal::NotSigned(NotSigned::Failed) => "503 Service Unavailable",
            Refusal::Request(bad) => bad.status(),
            Refusal::Report(BadReport::TooLong) => "413 Content Too Large",
            Refusal::Report(_) => "400 Bad Request",
            Refusal::NotKept(Kept::Older) | Refusal::NotNewer => "409 Conflict",
            Refusal::NotOfSite => "400 Bad Request",
            Refusal::TooOften => "429 Too Many Requests",
            Refusal::Absent => "404 Not Found",
            Refusal::NotKept(_) | Refusal::TooMany | Refusal::Silent => "503 Service Unavailable",
        }
    }
}
