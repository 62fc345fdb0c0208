//! The addresses in a certificate: the extension subjectAltName (RFC 5280, section 4.2.1.6).
//!
//! A hardware address is an otherName of type id-on-MACAddress whose value is an OCTET STRING of six bytes
//! (draft-ietf-lamps-macaddress-on, section 3); an IPv4 address is an iPAddress of four.

use std::fmt;
use std::net::Ipv4Addr;

use wire::MacAddress;
use x509_cert::der::asn1::{Any, ObjectIdentifier, OctetString, OctetStringRef};
use x509_cert::der::{self, Encode, Tag};
use x509_cert::ext::pkix::name::{GeneralName, GeneralNames, OtherName};

use super::Refusal;
use crate::KeyError;
use crate::limits::MAX_ADDRESSES;

const MAC_ADDRESS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.8.12");

/// The addresses of a host: one hardware address and up to 16 IPv4 addresses, none of them a group's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    mac: MacAddress,
    addresses: Vec<Ipv4Addr>,
}

/// Why a set of addresses cannot name a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadNames {
    /// The hardware address is zero or a group's.
    Mac(MacAddress),
    /// The IPv4 address is unspecified, multicast or broadcast.
    Address(Ipv4Addr),
    /// The IPv4 address stands there twice.
    Repeated(Ipv4Addr),
    /// There are more than 16 IPv4 addresses.
    TooMany,
}

impl fmt::Display for BadNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadNames::Mac(mac) => write!(f, "the hardware address {mac} cannot be one host's"),
            BadNames::Address(address) => write!(f, "the address {address} cannot be one host's"),
            BadNames::Repeated(address) => write!(f, "the address {address} stands there twice"),
            BadNames::TooMany => write!(f, "there are more than {MAX_ADDRESSES} IPv4 addresses"),
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
        if addresses.len() > MAX_ADDRESSES {
            return Err(BadNames::TooMany);
        }
        for (at, address) in addresses.iter().enumerate() {
            if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
                return Err(BadNames::Address(*address));
            }
            if addresses[..at].contains(address) {
                return Err(BadNames::Repeated(*address));
            }
        }
        Ok(Names { mac, addresses })
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
        let mut addresses = Vec::new();
        for name in names {
            match name {
                GeneralName::OtherName(other) if other.type_id == MAC_ADDRESS => macs.push(mac_of(&other.value)?),
                GeneralName::IpAddress(bytes) => addresses.extend(ipv4_of(bytes.as_bytes())?),
                _ => {}
            }
        }
        let mac = match *macs {
            [] => return Err(Refusal::NoMac),
            [mac] => mac,
            _ => return Err(Refusal::Malformed("second hardware address")),
        };
        Names::new(mac, addresses).map_err(|bad| match bad {
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

/// The IPv4 address in an iPAddress, or none for an IPv6 address.
fn ipv4_of(bytes: &[u8]) -> Result<Option<Ipv4Addr>, Refusal> {
    match bytes.len() {
        16 => Ok(None),
        _ => {
            let octets: [u8; 4] = bytes.try_into().map_err(|_| Refusal::Malformed("IP address"))?;
            Ok(Some(octets.into()))
        }
    }
}
