//! What is asked for: a name, a role, addresses and how long.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use identity::certificate::names::Names;
use identity::certificate::{CertificateRequest, Role};
use identity::profile::PaperKey;
use wire::MacAddress;

use crate::Error;
use crate::limits::{HOST_VALIDITY, MAX_SUBNETS_PER_HOST, MAX_VALIDITY};
use crate::names::is_name;
use crate::repository::{StoreError, Subnet};

/// What a host's certificate shall say. It cannot hold nonsense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    name: String,
    role: Role,
    names: Names,
    validity: Duration,
    subnets: Vec<Subnet>,
    served: Vec<Subnet>,
    paper_key: Option<PaperKey>,
}

impl Request {
    /// A request for the role of a host and the usual period.
    ///
    /// # Errors
    /// [`Error::BadName`] or [`Error::BadNames`].
    pub fn new(name: &str, mac: MacAddress, addresses: Vec<Ipv4Addr>) -> Result<Self, Error> {
        check_name(name)?;
        let names = Names::new(mac, addresses)?;
        Ok(Request {
            name: name.to_owned(),
            role: Role::Host,
            names,
            validity: HOST_VALIDITY,
            subnets: Vec::new(),
            served: Vec::new(),
            paper_key: None,
        })
    }

    /// What a host's own request asks for, with the role of a host whatever it asks: roles are given, not taken.
    ///
    /// # Errors
    /// [`Error::BadName`].
    pub fn from_certificate_request(request: &CertificateRequest) -> Result<Self, Error> {
        Self::new(request.name(), request.mac(), request.addresses().to_vec())
    }

    /// The same with these IPv6 addresses. A host's own request does not get any: they are given, not taken.
    ///
    /// # Errors
    /// [`Error::BadNames`].
    pub fn with_ipv6(self, addresses: Vec<Ipv6Addr>) -> Result<Self, Error> {
        let names = self.names.with_ipv6(addresses)?;
        Ok(Request { names, ..self })
    }

    /// The same with this role.
    #[must_use]
    pub fn with_role(self, role: Role) -> Self {
        Request { role, ..self }
    }

    /// The same for this period.
    ///
    /// # Errors
    /// [`Error::BadPeriod`] for zero or more than a century.
    pub fn with_validity(self, validity: Duration) -> Result<Self, Error> {
        check_validity(validity)?;
        Ok(Request { validity, ..self })
    }

    /// The same for a host that may be given an address in `subnets` (its profile; S-ARP paper, section 3.5.2). The certificate
    /// does not say so, the repository does.
    ///
    /// # Errors
    /// Too many of them, or [`Error::OwnSubnet`] if one of the host's own addresses lies there: what is given must be told
    /// from what was certified.
    pub fn with_subnets(self, subnets: Vec<Subnet>) -> Result<Self, Error> {
        if subnets.len() > MAX_SUBNETS_PER_HOST {
            return Err(StoreError::TooManySubnets.into());
        }
        let own = self.names.addresses().iter().find(|own| subnets.iter().any(|subnet| subnet.contains(**own)));
        if let Some(address) = own {
            return Err(Error::OwnSubnet(*address));
        }
        Ok(Request { subnets, ..self })
    }

    /// Where the addresses lie that the host may be given.
    #[must_use]
    pub fn subnets(&self) -> &[Subnet] {
        &self.subnets
    }

    /// The same for a DHCP server that makes the certificates of its clients (CLL paper, section 6), with addresses in `served`.
    ///
    /// # Errors
    /// Too many of them, or [`Error::ServesWithoutRole`] for another role.
    pub fn with_served(self, served: Vec<Subnet>) -> Result<Self, Error> {
        if served.len() > MAX_SUBNETS_PER_HOST {
            return Err(StoreError::TooManySubnets.into());
        }
        if !served.is_empty() && self.role != Role::DhcpServer {
            return Err(Error::ServesWithoutRole);
        }
        Ok(Request { served, ..self })
    }

    /// Where the addresses lie that a DHCP server gives with certificates.
    #[must_use]
    pub fn served(&self) -> &[Subnet] {
        &self.served
    }

    /// The same with this second key, to sign S-ARP or the handshakes of CLL with; only for a site of the paper profile.
    #[must_use]
    pub fn with_paper_key(self, key: PaperKey) -> Self {
        Request { paper_key: Some(key), ..self }
    }

    /// The second key, if it was chosen.
    #[must_use]
    pub fn paper_key(&self) -> Option<PaperKey> {
        self.paper_key
    }

    /// The host's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its addresses.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// How long the certificate shall last.
    #[must_use]
    pub fn validity(&self) -> Duration {
        self.validity
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if is_name(name) { Ok(()) } else { Err(Error::BadName(name.to_owned())) }
}

pub(crate) fn check_validity(validity: Duration) -> Result<(), Error> {
    if validity.is_zero() || validity > MAX_VALIDITY {
        return Err(Error::BadPeriod);
    }
    Ok(())
}
