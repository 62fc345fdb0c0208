//! How the members of a cluster are reached, as an operator writes it down.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits::MAX_ETCD_MEMBERS;

/// The members of a cluster and what protects the way to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// `https://address:port` of each member.
    pub members: Vec<String>,
    /// Certificates of the authority that the members' own certificates come from, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// This machine's certificate for the members, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// The key of that certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Whether `http` may leave this machine, because something else protects it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unprotected: bool,
}

/// Why members cannot be reached in this way at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadAccess {
    /// No members, or more than any cluster has.
    Members(usize),
    /// This is no address of a member.
    Address(String),
    /// The way to this member is protected by nothing.
    Unprotected(String),
    /// `https` needs an authority to believe.
    NoAuthority,
    /// A certificate without its key, or the other way round.
    HalfCertificate,
}

impl BadAccess {
    /// The setting that is wrong, as configuration and command line call it.
    #[must_use]
    pub fn setting(&self) -> &'static str {
        match self {
            BadAccess::Members(_) | BadAccess::Address(_) | BadAccess::Unprotected(_) => "etcd",
            BadAccess::NoAuthority => "ca",
            BadAccess::HalfCertificate => "certificate",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            BadAccess::Members(_) => "name each member of the cluster once, usually three",
            BadAccess::Address(_) => "write https://ADDRESS:PORT, no name and nothing behind it",
            BadAccess::Unprotected(_) => "use https, or set \"unprotected\" if something else protects the way",
            BadAccess::NoAuthority => "name the file of the authority that the members' certificates come from",
            BadAccess::HalfCertificate => "name both files, or none",
        }
    }
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAccess::Members(count) => write!(f, "{count} members do not serve"),
            BadAccess::Address(text) => write!(f, "{text:?} is no address of a member of etcd"),
            BadAccess::Unprotected(text) => write!(f, "{text} leaves this machine in clear, for anybody to change"),
            BadAccess::NoAuthority => f.write_str("https without an authority to believe"),
            BadAccess::HalfCertificate => f.write_str("a certificate needs its key, and a key its certificate"),
        }
    }
}

impl Access {
    /// Whether members can be reached in this way.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), BadAccess> {
        let count = self.members.len();
        let is_repeated = |(at, member): (usize, &String)| self.members[..at].contains(member);
        if count == 0 || count > MAX_ETCD_MEMBERS || self.members.iter().enumerate().any(is_repeated) {
            return Err(BadAccess::Members(count));
        }
        for member in &self.members {
            let (is_sealed, address) = split(member).ok_or_else(|| BadAccess::Address(member.clone()))?;
            if is_sealed && self.ca.is_none() {
                return Err(BadAccess::NoAuthority);
            }
            if !is_sealed && !self.unprotected && !address.ip().is_loopback() {
                return Err(BadAccess::Unprotected(member.clone()));
            }
        }
        if self.certificate.is_some() != self.key.is_some() { Err(BadAccess::HalfCertificate) } else { Ok(()) }
    }

    /// Where the members are.
    pub fn sockets(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.members.iter().filter_map(|member| Some(split(member)?.1))
    }

    /// The files that protect the way to them.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.ca, &self.certificate, &self.key].into_iter().filter_map(|file| file.as_deref())
    }
}

/// Whether a member is spoken to by TLS, and where it is. Names are no addresses: a resolver would decide where they lead,
/// and might itself need the network that the distributors serve.
fn split(member: &str) -> Option<(bool, SocketAddr)> {
    let (scheme, rest) = member.split_once("://")?;
    let address = rest.parse::<SocketAddr>().ok().filter(|address| address.port() > 0)?;
    match scheme {
        "https" => Some((true, address)),
        "http" => Some((false, address)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(members: &[&str]) -> Access {
        Access { members: members.iter().map(|&member| member.to_owned()).collect(), ..Access::default() }
    }

    #[test]
    fn what_leaves_the_machine_is_sealed_unless_somebody_says_so() {
        assert_eq!(access(&["http://127.0.0.1:2379", "http://[::1]:2379"]).check(), Ok(()));
        for open in ["http://10.0.0.21:2379", "http://[fd00::1]:2379"] {
            assert_eq!(access(&[open]).check(), Err(BadAccess::Unprotected(open.to_owned())));
            assert_eq!(Access { unprotected: true, ..access(&[open]) }.check(), Ok(()));
        }
        let sealed = access(&["https://10.0.0.21:2379"]);
        assert_eq!(sealed.check(), Err(BadAccess::NoAuthority));
        let sealed = Access { ca: Some("ca.pem".into()), ..sealed };
        assert_eq!(sealed.check(), Ok(()));
        assert_eq!(Access { key: Some("k.pem".into()), ..sealed }.check(), Err(BadAccess::HalfCertificate));
    }

    #[test]
    fn what_is_no_address_of_a_member_is_refused() {
        for bad in [
            "10.0.0.21:2379",
            "https://10.0.0.21",
            "https://:2379",
            "https://10.0.0.21:0",
            "https://10.0.0.21:70000",
            "ftp://10.0.0.21:1",
            "https://10.0.0.21:1/path",
            "https://user@10.0.0.21:1",
            "https://localhost:1",
            "",
        ] {
            let refused = Access { ca: Some("ca.pem".into()), ..access(&[bad]) }.check();
            assert_eq!(refused, Err(BadAccess::Address(bad.to_owned())));
        }
        assert_eq!(access(&[]).check(), Err(BadAccess::Members(0)));
        assert_eq!(access(&["http://127.0.0.1:1"; 2]).check(), Err(BadAccess::Members(2)));
    }
}
