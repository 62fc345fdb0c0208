//! What can go wrong at the authority, for its operator: one line with file, reason and remedy.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use identity::certificate::names::BadNames;
use identity::certificate::{RequestError, utc_text};
use identity::limits::MAX_REVOKED;
use identity::pem::PemError;
use identity::policy::BadPolicy;
use identity::revocation::BadRevocationList;
use identity::{Generation, IdentityError, KeyError, Refusal};
use wire::MacAddress;

use crate::key::TokenError;
use crate::repository::StoreError;

/// Why nothing was issued, stored or installed.
#[derive(Debug)]
pub enum Error {
    /// The name is empty, too long, or has characters beyond letters, digits, dot, hyphen and underscore.
    BadName(String),
    /// The addresses cannot be one host's.
    BadNames(BadNames),
    /// The period is empty or longer than a century.
    BadPeriod,
    /// The clock shows no plausible time, in Unix seconds.
    BadTime(u64),
    /// The authority itself has expired, at this Unix second.
    AuthorityExpired(u64),
    /// Another certificate of the authority would end no later than this Unix second.
    EndsNoLater(u64),
    /// A key cannot be read or used.
    Key(KeyError),
    /// The text is not what PEM files look like.
    Pem(PemError),
    /// The authority's certificate is refused.
    Authority(Refusal),
    /// The authority's key is in a token, and cannot be used there.
    Token(TokenError),
    /// A backup names a key in a token, and so a library to be run.
    KeyInToken(String),
    /// A backup has the authority's key itself.
    KeyInBackup,
    /// The authority's key does not belong to its certificate.
    KeyOfAnotherAuthority,
    /// The request is refused.
    Request(RequestError),
    /// A host of a paper site cannot make its keys itself.
    KeysOfPaperSite,
    /// A host of a modern site has no key of the paper profile.
    NoPaperSite,
    /// Only a DHCP server serves subnets.
    ServesWithoutRole,
    /// A DHCP server whose key cannot sign the certificates of its clients.
    ServesWithOtherKey,
    /// The identity is not that of a DHCP server that makes certificates.
    NoLeaseAuthority,
    /// An address that a DHCP server must not give with a certificate.
    BadLease(Ipv4Addr),
    /// The encoder of certificates failed.
    Encoder(rcgen::Error),
    /// A certificate that was just made does not verify.
    SelfCheck(Refusal),
    /// The identity that was put together cannot be used.
    Identity(IdentityError),
    /// The certificate to install has expired.
    Expired(Refusal),
    /// The site's list of revoked certificates is refused.
    RevocationList(BadRevocationList),
    /// The site's own policy is refused.
    Policy(BadPolicy),
    /// The policy would have more entries, or more bytes, than a host reads; how many bytes those
    /// are.
    PolicyFull(usize),
    /// The list of revoked certificates is full.
    TooManyRevoked,
    /// A certificate in the site's record is refused.
    Recorded(Refusal),
    /// Another host holds this hardware address in a certificate that has not expired.
    MacTaken {
        /// The address.
        mac: MacAddress,
        /// Who holds it.
        holder: String,
    },
    /// Another host holds this IP address in a certificate that has not expired.
    AddressTaken {
        /// The address.
        address: IpAddr,
        /// Who holds it.
        holder: String,
    },
    /// The site holds as many certificates as it can.
    SiteFull,
    /// The site has as many key distributors as hosts can ask.
    TooManyDistributors,
    /// The site has as many DHCP servers as an identity can name.
    TooManyDhcpServers,
    /// An address of the host lies where it may be given one.
    OwnSubnet(Ipv4Addr),
    /// The repository of hosts refused.
    Repository(StoreError),
    /// The site's repository is in etcd already.
    Shared,
    /// The file does not say how etcd is reached.
    BadSetting(String),
    /// The directory is not empty, so no new site goes there.
    SiteExists,
    /// A file is there already.
    Exists,
    /// The operating system refused.
    Io(io::Error),
    /// The file is longer than anything read here.
    TooLong,
    /// The directory holds no site.
    NoSite,
    /// A token serves for no time or too long.
    BadTokenPeriod,
    /// This host was to be approved beforehand, whatever hardware address it has.
    PreapprovedForAnybody(String),
    /// Two tokens at once for a host of this name.
    InvitedTwice(String),
    /// The site has no key distributor that a host could enrol at.
    NoDistributor,
    /// Nobody applies under this name or number.
    NoApplicant(String),
    /// What should be an application is none, or who sent it has no token of the site.
    NoApplication,
    /// The applicant's fingerprint is this one, not the one that the manager expects.
    OtherFingerprint(String),
    /// The identity is longer than can be fetched.
    BundleTooLong,
    /// The repository knows no host of this name.
    NoHost(String),
    /// The new key is the old one.
    SameKey,
    /// What came back was not sealed for this machine.
    NotSealed,
    /// The bundle is sealed for another key than the one that is to open it.
    SealedForOther,
    /// What came back is of another authority than the token.
    OtherAuthority,
    /// It is for another host.
    OtherHost,
    /// The host of this name gets no other certificate without its manager, for this reason.
    NotRenewed(String, &'static str),
    /// The bundle does not renew the identity, for this reason.
    NoRenewal(&'static str),
    /// The certificate in the bundle is that which the host has, and so are the shared keys, of
    /// this generation.
    NothingNew(Generation),
    /// There is no operator of this name.
    NoOperator(String),
    /// There are as many operators as a site has.
    TooManyOperators(usize),
    /// The list of operators cannot be read.
    BadOperators,
    /// The file of the orders that an operator was refused cannot be read, or was changed.
    BadRefusals,
    /// The file is no backup of a site.
    NoBackup,
    /// The error happened with this file.
    In(PathBuf, Box<Error>),
}

impl Error {
    /// The same error, with the file it happened with.
    #[must_use]
    pub fn with_file(self, path: &Path) -> Error {
        match self {
            Error::In(..) => self,
            other => Error::In(path.to_owned(), Box::new(other)),
        }
    }

    /// The reason, without the file.
    #[must_use]
    pub fn reason(&self) -> &Error {
        match self {
            Error::In(_, inner) => inner.reason(),
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::In(path, inner) => write!(f, "{}: {inner}", path.display()),
            Error::BadName(name) => {
                write!(f, "the name {name:?} does not serve; use up to 63 letters, digits, dots, hyphens, underscores")
            }
            Error::BadNames(bad) => write!(f, "{bad}; give the host's own addresses"),
            Error::OwnSubnet(address) => {
                write!(f, "{address} lies in a subnet in which the host may be given an address; leave one of them out")
            }
            Error::BadPeriod => f.write_str("the period does not serve; use 1 to 36525 days"),
            Error::BadTime(unix_s) => write!(f, "the clock shows {}; set it right", utc_text(*unix_s)),
            Error::AuthorityExpired(unix_s) => {
                write!(f, "the authority expired at {}; give it another certificate ('ringwall site renew-authority')",
                    utc_text(*unix_s))
            }
            Error::EndsNoLater(unix_s) => {
                write!(f, "the authority lasts until {} already; give more --days", utc_text(*unix_s))
            }
            Error::Key(error) => write!(f, "{error}; give the right key file"),
            Error::Pem(error) => write!(f, "{error}; give the right file"),
            Error::Authority(refusal) => {
                write!(f, "the authority's certificate is refused: {refusal}; restore it from the backup")
            }
            Error::KeyInToken(uri) => write!(
                f,
                "its key is in a token, {uri}, whose library would run here; say with --key which one to use"
            ),
            Error::KeyInBackup => f.write_str("it has the authority's key itself; restore it without --key"),
            Error::Token(error) => write!(f, "{error}; see that the token is there and its PIN is right"),
            Error::KeyOfAnotherAuthority => {
                f.write_str("the key does not belong to ca.crt.pem; restore both from the same backup")
            }
            Error::Request(error) => write!(f, "{error}; have the host make a new request"),
            Error::KeysOfPaperSite => {
                f.write_str("a site of the paper profile makes a key for each host, which this request names nothing to seal to; have the host make one with 'ringwall host enroll request', or issue without a request")
            }
            Error::NoPaperSite => f.write_str(
                "the site is of the modern profile and has neither DSA nor short RSA keys; found one with 'site init --profile paper'",
            ),
            Error::ServesWithoutRole => f.write_str("only a DHCP server serves a subnet; add --role dhcp, or leave --serves out"),
            Error::ServesWithOtherKey => f.write_str(
                "a DHCP server signs its clients' certificates with an Ed25519 key; have it make such a key, or leave --serves out",
            ),
            Error::NoLeaseAuthority => f.write_str(
                "the identity is not that of a DHCP server that makes certificates; issue it with --role dhcp and --serves",
            ),
            Error::BadLease(address) => write!(f, "{address} is not an address to lease; correct the DHCP server's pool"),
            _ => self.fmt_storage(f),
        }
    }
}

impl Error {
    fn fmt_storage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Encoder(rcgen::Error::RemoteKeyError) => {
                f.write_str("the token with the authority's key does not sign; see that it is there")
            }
            Error::Encoder(error) => write!(f, "the certificate cannot be encoded: {error}; report this"),
            Error::SelfCheck(refusal) => {
                write!(f, "the new certificate does not verify: {refusal}; was ca.crt.pem made by 'site init'?")
            }
            Error::Identity(error) => write!(f, "{error}"),
            Error::Expired(refusal) => write!(f, "the host's certificate is refused: {refusal}; request a new one"),
            Error::Recorded(refusal) => {
                write!(f, "the recorded certificate is refused: {refusal}; move it out of 'issued'")
            }
            Error::Policy(bad) => write!(f, "the policy is {bad}; take it from a backup, or remove it and decide anew"),
            Error::PolicyFull(most) => {
                write!(f, "the policy would be longer than its limits ({most} bytes in all); remove entries first")
            }
            Error::RevocationList(bad) => {
                write!(f, "{bad}; restore it from the last backup (`ringwall site restore`)")
            }
            Error::TooManyRevoked => {
                write!(f, "{MAX_REVOKED} certificates are revoked already; wait until some expire, or found a new site")
            }
            Error::MacTaken { mac, holder } => {
                write!(f, "{holder:?} holds {mac}; use its name to renew, revoke it, or --allow-shared-addresses")
            }
            Error::AddressTaken { address, holder } => {
                write!(f, "{holder:?} holds {address}; use its name to renew, revoke it, or --allow-shared-addresses")
            }
            Error::SiteFull => f.write_str("the site is full; move certificates that have expired out of 'issued'"),
            Error::TooManyDistributors => {
                f.write_str("the site has as many key distributors as hosts ask; let one expire or use its name again")
            }
            Error::TooManyDhcpServers => {
                f.write_str("the site has as many DHCP servers as hosts know; let one expire or use its name again")
            }
            Error::Repository(error) => write!(f, "{error}"),
            Error::BadSetting(what) => write!(f, "{what}; write it anew with 'ringwall site repository use'"),
            Error::Shared => f.write_str(
                "the repository is in etcd already; change how it is reached with 'ringwall site repository use'",
            ),
            Error::SiteExists => f.write_str("the directory is not empty; choose another, a site is never overwritten"),
            Error::Exists => f.write_str("the file exists; choose another name or overwrite it with --force"),
            Error::Io(error) => write!(f, "{error}; check the path and its permissions"),
            Error::TooLong => f.write_str("the file is too long to be a key or certificate; give the right file"),
            Error::NoSite => f.write_str("no site is here; make one with 'ringwall site init' or give its directory"),
            // The other variants are in `fmt`, those of enrolment by token follow.
            _ => self.fmt_enrolment(f),
        }
    }

    fn fmt_enrolment(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::BadTokenPeriod => f.write_str("the token's time does not serve; use 1 minute to 30 days"),
            Error::PreapprovedForAnybody(name) => {
                write!(f, "{name} cannot be approved beforehand for any hardware address; say which it has")
            }
            Error::InvitedTwice(name) => write!(f, "{name} is there twice; give each host a name of its own"),
            Error::NoDistributor => f.write_str(
                "the site has no key distributor that a host could enrol at; make one with 'ringwall site issue --role akd'",
            ),
            Error::NoApplicant(which) => {
                write!(f, "nobody applies as {which:?}; see 'ringwall site pending', or make a token")
            }
            Error::NoApplication => f.write_str("this is no application with a token of this site; make a new token"),
            Error::OtherFingerprint(shown) => {
                write!(f, "the applicant's fingerprint is {shown}; if the host shows another one, refuse it")
            }
            Error::BundleTooLong => f.write_str("the identity is too long to be fetched; enrol the host by file"),
            Error::NoHost(name) => write!(f, "no host {name:?} is in the repository; see 'ringwall site list'"),
            Error::SameKey => f.write_str("the request is for the key that the host has; have it make a new one"),
            Error::SealedForOther => {
                f.write_str("the bundle is sealed for another key; give the key file that was made with its request")
            }
            Error::NotSealed => f.write_str("what came back is not sealed for this machine; ask for another token"),
            Error::OtherAuthority => {
                f.write_str("what came back is of another authority than the token; ask the manager what is wrong there")
            }
            Error::OtherHost => f.write_str("it is for another host; compare name and hardware address"),
            Error::NotRenewed(name, why) => {
                write!(f, "{name:?} is not renewed: {why}; have the manager issue to it ('ringwall site issue --request')")
            }
            Error::NoRenewal(why) => {
                write!(f, "the bundle does not renew this host's identity: {why}; ask the manager for the right one")
            }
            Error::NothingNew(generation) => write!(
                f,
                "the bundle holds what this host has: its certificate ends no later, and its shared keys are of generation {generation}"
            ),
            Error::NoOperator(name) => write!(f, "no operator {name:?} is there; see 'ringwall site operator list'"),
            Error::TooManyOperators(most) => write!(f, "the site has {most} operators; remove one first"),
            Error::BadOperators => f.write_str("the list of operators is damaged; remove it, and add them again"),
            Error::BadRefusals => {
                f.write_str("it was damaged or changed; put back the one of a backup, and see who could write there")
            }
            Error::NoBackup => f.write_str("the file is no backup of a site; give one that 'ringwall site backup' made"),
            // The other variants are above.
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<BadNames> for Error {
    fn from(bad: BadNames) -> Self {
        Error::BadNames(bad)
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Error::Key(error)
    }
}

impl From<PemError> for Error {
    fn from(error: PemError) -> Self {
        Error::Pem(error)
    }
}

impl From<RequestError> for Error {
    fn from(error: RequestError) -> Self {
        Error::Request(error)
    }
}

impl From<rcgen::Error> for Error {
    fn from(error: rcgen::Error) -> Self {
        Error::Encoder(error)
    }
}

impl From<IdentityError> for Error {
    fn from(error: IdentityError) -> Self {
        Error::Identity(error)
    }
}

impl From<TokenError> for Error {
    fn from(error: TokenError) -> Self {
        Error::Token(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Error::Repository(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}
