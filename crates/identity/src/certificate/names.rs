//! The addresses in a certificate: the extension subjectAltName (RFC 5280, section 4.2.1.6).
//!
//! A hardware address is an otherName of type id-on-MACAddress whose value is an OCTET STRING of six bytes
//! (draft-ietf-lamps-macaddress-on, section 3); an IPv4 address is an iPAddress of four, an IPv6 address one of 16.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::MacAddress;
use x509_cert::der::asn1::{Any, ObjectIdentifier, OctetString, OctetStringRef};
use x509_cert::der::{self, Encode, Tag};
use x509_cert::ext::pkix::name::{GeneralName, GeneralNames, OtherName};

use super::Refusal;
use crate::KeyError;
use crate::limits::MAX_ADDRESSES;

const MAC_ADDRESS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.8.12");

/// The addresses of a host: one hardware address, up to 16 IPv4 and up to 16 IPv6 addresses, none of them a group's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    mac: MacAddress,
    addresses: Vec<Ipv4Addr>,
    ipv6_addresses: Vec<Ipv6Addr>,
}

/// Why a set of addresses cannot name a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadNames {
    /// The hardware address is zero or a group's.
    Mac(MacAddress),
    /// The address is unspecified, multicast, broadcast, or of an IPv6 host itself.
    Address(IpAddr),
    /// The address stands there twice.
    Repeated(IpAddr),
    /// There are more than 16 addresses of one kind.
    TooMany,
}

impl fmt::Display for BadNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadNames::Mac(mac) => write!(f, "the hardware address {mac} cannot be one host's"),
            BadNames::Address(address) => write!(f, "the address {address} cannot be one host's"),
            BadNames::Repeated(address) => write!(f, "the address {address} stands there twice"),
            BadNames::TooMany => write!(f, "there are more than {MAX_ADDRESSES} addresses of one kind"),
        }
    }
}

impl std::error::Error for BadNames {}

impl Names {
    /// Takes addresses that can be one host's.
    ///
    /// # Errors
    /// [`BadNames`] with the first address that cannot.
    pub fn new(mac: MacAddress, addresses: Vec<Ipv4Addr>) -> Result<Self, BadNames> {
        if mac.is_group() || mac == MacAddress::ZERO {
            return Err(BadNames::Mac(mac));
        }
        let is_a_hosts =
            |address: &Ipv4Addr| !(address.is_unspecified() || address.is_multicast() || address.is_broadcast());
        check(&addresses, is_a_hosts)?;
        Ok(Names { mac, addresses, ipv6_addresses: Vec::new() })
    }

    /// The same with these IPv6 addresses.
    ///
    /// # Errors
    /// As [`new`](Names::new).
    pub fn with_ipv6(self, ipv6_addresses: Vec<Ipv6Addr>) -> Result<Self, BadNames> {
        let is_a_hosts =
            |address: &Ipv6Addr| !(address.is_unspecified() || address.is_multicast() || address.is_loopback());
        check(&ipv6_addresses, is_a_hosts)?;
        Ok(Names { ipv6_addresses, ..self })
    }

    /// The hardware address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// The IPv4 addresses; empty in a base certificate.
    #[must_use]
    pub fn addresses(&self) -> &[Ipv4Addr] {
        &self.addresses
    }

    /// The IPv6 addresses.
    #[must_use]
    pub fn ipv6_addresses(&self) -> &[Ipv6Addr] {
        &self.ipv6_addresses
    }

    /// All IP addresses: the IPv4 addresses, then the IPv6 addresses.
    #[must_use]
    pub fn all_addresses(&self) -> Vec<IpAddr> {
        let ipv4 = self.addresses.iter().copied().map(IpAddr::V4);
        ipv4.chain(self.ipv6_addresses.iter().copied().map(IpAddr::V6)).collect()
    }

    /// The names as the value of the extension subjectAltName, in DER.
    ///
    /// # Errors
    /// [`KeyError::Refused`] when the encoder fails, which it does for no names that this type can hold.
    pub fn to_extension_value(&self) -> Result<Vec<u8>, KeyError> {
        self.encode().map_err(|_| KeyError::Refused)
    }

    fn encode(&self) -> der::Result<Vec<u8>> {
        let value = Any::new(Tag::OctetString, self.mac.0.as_slice())?;
        let mut names: GeneralNames = vec![GeneralName::OtherName(OtherName { type_id: MAC_ADDRESS, value })];
        for address in &self.addresses {
            names.push(GeneralName::IpAddress(OctetString::new(address.octets().as_slice())?));
        }
        for address in &self.ipv6_addresses {
            names.push(GeneralName::IpAddress(OctetString::new(address.octets().as_slice())?));
        }
        names.to_der()
    }

    /// Reads the names from the value of the extension subjectAltName. Names of other kinds bind nothing here and are
    /// passed over.
    ///
    /// # Errors
    /// [`Refusal::NoMac`] without a hardware address, [`Refusal::Malformed`] for two of them, one that is not six bytes
    /// long, or addresses that cannot be one host's.
    pub fn from_general_names(names: &GeneralNames) -> Result<Self, Refusal> {
        let mut macs = Vec::new();
        let (mut addresses, mut ipv6_addresses) = (Vec::new(), Vec::new());
        for name in names {
            match name {
                GeneralName::OtherName(other) if other.type_id == MAC_ADDRESS => macs.push(mac_of(&other.value)?),
                GeneralName::IpAddress(bytes) => match ip_of(bytes.as_bytes())? {
                    IpAddr::V4(address) => addresses.push(address),
                    IpAddr::V6(address) => ipv6_addresses.push(address),
                },
                _ => {}
            }
        }
        let mac = match *macs {
            [] => return Err(Refusal::NoMac),
            [mac] => mac,
            _ => return Err(Refusal::Malformed("second hardware address")),
        };
        let names = Names::new(mac, addresses).and_then(|names| names.with_ipv6(ipv6_addresses));
        names.map_err(|bad| match bad {
            BadNames::Mac(_) => Refusal::Malformed("hardware address"),
            _ => Refusal::Malformed("list of IP addresses"),
        })
    }
}

fn mac_of(value: &Any) -> Result<MacAddress, Refusal> {
    let octets = value.decode_as::<&OctetStringRef>().map_err(|_| Refusal::Malformed("hardware address"))?;
    let bytes = octets.as_bytes().try_into().map_err(|_| Refusal::Malformed("hardware address"))?;
    Ok(MacAddress(bytes))
}

/// The address in an iPAddress.
fn ip_of(bytes: &[u8]) -> Result<IpAddr, Refusal> {
    let unreadable = Refusal::Malformed("IP address");
    if let Ok(octets) = <[u8; 4]>::try_from(bytes) {
        return Ok(octets.into());
    }
    Ok(<[u8; 16]>::try_from(bytes).map_err(|_| unreadable)?.into())
}

fn check<A: Copy + PartialEq + Into<IpAddr>>(addresses: &[A], is_a_hosts: impl Fn(&A) -> bool) -> Result<(), BadNames> {
    if addresses.len() > MAX_ADDRESSES {
        return Err(BadNames::TooMany);
    }
    for (at, address) in addresses.iter().enumerate() {
        if !is_a_hosts(address) {
            return Err(BadNames::Address((*address).into()));
        }
        if addresses[..at].contains(address) {
            return Err(BadNames::Repeated((*address).into()));
        }
    }
    Ok(())
}
