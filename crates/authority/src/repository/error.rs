//! What can go wrong with a repository, for its operator: one line with file, reason and remedy.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use identity::certificate::names::BadNames;
use wire::MacAddress;

use crate::limits::{MAX_ENROLMENTS, MAX_HOSTS, MAX_KEY_LEN, MAX_NAME_LEN, MAX_SUBNETS_PER_HOST};

/// Why a repository was not opened, asked or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The name is empty, too long, or has characters beyond letters, digits, dot, hyphen and underscore.
    BadName(String),
    /// The addresses cannot be one host's.
    BadNames(BadNames),
    /// The key is empty or too long.
    BadKey,
    /// The period ends before it begins, or centuries from now.
    BadPeriod,
    /// The prefix has more than 32 bits, or the network has bits beyond the prefix.
    BadSubnet {
        /// The network.
        network: Ipv4Addr,
        /// The length of its prefix.
        prefix_len: u8,
    },
    /// A host with too many subnets.
    TooManySubnets,
    /// Another good host holds this hardware address.
    MacTaken {
        /// The address.
        mac: MacAddress,
        /// Who holds it.
        holder: String,
    },
    /// Another good host holds this IP address.
    AddressTaken {
        /// The address.
        address: Ipv4Addr,
        /// Who holds it.
        holder: String,
    },
    /// The address lies in none of the host's subnets.
    OutsideSubnets {
        /// The host.
        name: String,
        /// The address.
        address: Ipv4Addr,
    },
    /// The host of this number is unknown or revoked, or its period is over.
    NotGood(u64),
    /// As many hosts have numbers as can have.
    Full,
    /// As many tokens are open as can be.
    TooManyEnrolments,
    /// No repository is there.
    NotThere,
    /// Something is there already, so no new repository goes there.
    Exists,
    /// Another program was changing the repository all the time.
    Busy,
    /// The file is something else.
    Foreign,
    /// The repository has the form of this number, which a later version of this program made.
    NewerVersion(i64),
    /// What is stored contradicts itself.
    Damaged(String),
    /// What keeps the repository refused.
    Failed(String),
    /// The cluster cannot be reached in the way that is written down.
    BadAccess(String),
    /// No member of the cluster serves.
    Unreachable(String),
    /// The cluster will not do what it was asked.
    Refused(String),
    /// The cluster holds no repository of this site.
    NotShared,
    /// The cluster holds a repository of this site already.
    SharedExists,
    /// What the cluster holds at a key contradicts itself.
    DamagedKey(String, String),
    /// The error happened with this file.
    In(PathBuf, Box<StoreError>),
}

impl StoreError {
    /// The same error with the file it happened with, if it is about the repository and not about what was asked of it.
    #[must_use]
    pub fn with_file(self, path: &Path) -> StoreError {
        match self {
            StoreError::Full
            | StoreError::NotThere
            | StoreError::Exists
            | StoreError::Busy
            | StoreError::Foreign
            | StoreError::NewerVersion(_)
            | StoreError::Damaged(_)
            | StoreError::Failed(_)
            | StoreError::BadAccess(_)
            | StoreError::Unreachable(_)
            | StoreError::Refused(_)
            | StoreError::NotShared
            | StoreError::SharedExists
            | StoreError::DamagedKey(..) => StoreError::In(path.to_owned(), Box::new(self)),
            other => other,
        }
    }

    /// The reason, without the file.
    #[must_use]
    pub fn reason(&self) -> &StoreError {
        match self {
            StoreError::In(_, inner) => inner.reason(),
            other => other,
        }
    }

    fn fmt_repository(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::NotThere => f.write_str("no repository is here; make one or give the right path"),
            StoreError::Exists => f.write_str("a file is here already; choose another name, none is ever overwritten"),
            StoreError::Busy => f.write_str("another program is changing the repository; try again"),
            StoreError::Foreign => f.write_str("the file is no repository of hosts; give the right path"),
            StoreError::NewerVersion(version) => {
                write!(f, "the repository has form {version}, which a later version made; use that version or a backup")
            }
            StoreError::Damaged(what) => {
                write!(
                    f,
                    "the repository is damaged: {what}; move it and its -wal and -shm files away, restore a backup"
                )
            }
            StoreError::Failed(what) => {
                write!(
                    f,
                    "the repository cannot be read or written: {what}; check the disk, the path and its permissions"
                )
            }
            _ => self.fmt_cluster(f),
        }
    }

    fn fmt_cluster(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::BadAccess(what) => f.write_str(what),
            StoreError::Unreachable(what) => {
                write!(f, "no member serves ({what}); see that more than half of them run and can be reached")
            }
            StoreError::Refused(what) => write!(f, "the cluster refuses ({what}); see its members' logs"),
            StoreError::NotShared => {
                f.write_str("it holds no repository of this site; put it there with `ringwall site repository import`")
            }
            StoreError::SharedExists => f.write_str(
                "it holds a repository of this site already; use it with `ringwall site repository use`, or clear it away",
            ),
            StoreError::DamagedKey(key, what) => write!(f, "{key} is damaged: {what}; restore a backup of the cluster"),
            // The other variants are in `fmt` and `fmt_repository`.
            _ => Ok(()),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::In(path, inner) => write!(f, "{}: {inner}", path.display()),
            StoreError::BadName(name) => {
                write!(
                    f,
                    "the name {name:?} does not serve; use up to {MAX_NAME_LEN} letters, digits, dots, hyphens, underscores"
                )
            }
            StoreError::BadNames(bad) => write!(f, "{bad}; give the host's own addresses"),
            StoreError::BadKey => write!(f, "the key does not serve; give one of 1 to {MAX_KEY_LEN} bytes"),
            StoreError::BadPeriod => f.write_str("the period does not serve; let it end after it begins, before 2300"),
            StoreError::BadSubnet { network, prefix_len } => {
                write!(f, "{network}/{prefix_len} is no subnet; give its first address and a prefix of 0 to 32 bits")
            }
            StoreError::TooManySubnets => {
                write!(f, "there are more than {MAX_SUBNETS_PER_HOST} subnets; give fewer and larger ones")
            }
            StoreError::MacTaken { mac, holder } => {
                write!(f, "{holder:?} holds {mac}; use its name to renew, or --allow-shared-addresses")
            }
            StoreError::AddressTaken { address, holder } => {
                write!(f, "{holder:?} holds {address}; use its name to renew, or --allow-shared-addresses")
            }
            StoreError::OutsideSubnets { name, address } => {
                write!(f, "{name:?} may not be given {address}; enrol it again with a subnet that has it")
            }
            StoreError::NotGood(number) => {
                write!(f, "host {number} is unknown, revoked or past its period; enrol it again")
            }
            StoreError::TooManyEnrolments => {
                write!(f, "{MAX_ENROLMENTS} tokens are open; let some end, or refuse them with `ringwall site refuse`")
            }
            StoreError::Full => {
                write!(f, "all {MAX_HOSTS} numbers are given; use names again or make a new repository")
            }
            _ => self.fmt_repository(f),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<BadNames> for StoreError {
    fn from(bad: BadNames) -> Self {
        StoreError::BadNames(bad)
    }
}
