//! What a handshake asks or answers: an ARP message (RFC 826), or the same for IPv6.
//!
//! The paper wraps the ARP message that a stack sends. IPv6 has no ARP; for its addresses a handshake carries a message of
//! ARP's own layout with the protocol type of IPv6 and addresses of 16 bytes, 52 bytes in all. Stacks never see that one:
//! they are given neighbour discovery (RFC 4861).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::arp::{self, Arp, Operation};
use crate::reader::Reader;
use crate::{Error, EtherType, Field, MacAddress};

/// Length of the message for IPv6 addresses.
pub const NEIGHBOUR_LEN: usize = 52;
/// How much longer than an ARP message it is.
pub const NEIGHBOUR_EXTRA: usize = NEIGHBOUR_LEN - arp::LEN;

const HARDWARE_ETHERNET: u16 = 1;

/// ARP's message with IPv6 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Request or reply.
    pub operation: Operation,
    /// Hardware address of the sender.
    pub sender_mac: MacAddress,
    /// Address of the sender.
    pub sender_ip: Ipv6Addr,
    /// Hardware address of the target; zero in a request for it.
    pub target_mac: MacAddress,
    /// Address of the target.
    pub target_ip: Ipv6Addr,
}

/// What a handshake asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// About IPv4 addresses, or about a hardware address alone.
    Arp(Arp),
    /// About IPv6 addresses.
    Neighbour(Neighbour),
}

impl From<Arp> for Resolution {
    fn from(arp: Arp) -> Self {
        Resolution::Arp(arp)
    }
}

impl From<Neighbour> for Resolution {
    fn from(neighbour: Neighbour) -> Self {
        Resolution::Neighbour(neighbour)
    }
}

impl Resolution {
    /// A request by hardware address: from the host at `sender_mac`, one of whose addresses is `sender_ip` if it has any.
    #[must_use]
    pub fn by_hardware_address(sender_mac: MacAddress, sender_ip: Option<Ipv4Addr>, target_mac: MacAddress) -> Self {
        Resolution::Arp(Arp {
            operation: Operation::Request,
            sender_mac,
            sender_ip: sender_ip.unwrap_or(Ipv4Addr::UNSPECIFIED),
            target_mac,
            target_ip: Ipv4Addr::UNSPECIFIED,
        })
    }

    /// The reply of the host at `mac` to this request. To a request by hardware address it says `first`, an address of the
    /// host if it has any.
    #[must_use]
    pub fn reply(&self, mac: MacAddress, first: Option<Ipv4Addr>) -> Self {
        match *self {
            Resolution::Arp(request) => {
                let by_mac = request.target_ip.is_unspecified();
                let sender_ip = if by_mac { first.unwrap_or(Ipv4Addr::UNSPECIFIED) } else { request.target_ip };
                Resolution::Arp(Arp {
                    operation: Operation::Reply,
                    sender_mac: mac,
                    sender_ip,
                    target_mac: request.sender_mac,
                    target_ip: request.sender_ip,
                })
            }
            Resolution::Neighbour(request) => Resolution::Neighbour(Neighbour {
                operation: Operation::Reply,
                sender_mac: mac,
                sender_ip: request.target_ip,
                target_mac: request.sender_mac,
                target_ip: request.sender_ip,
            }),
        }
    }

    /// The same, for the host with this hardware address.
    #[must_use]
    pub fn with_target_mac(self, target_mac: MacAddress) -> Self {
        match self {
            Resolution::Arp(arp) => Resolution::Arp(Arp { target_mac, ..arp }),
            Resolution::Neighbour(neighbour) => Resolution::Neighbour(Neighbour { target_mac, ..neighbour }),
        }
    }

    /// Request or reply.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match self {
            Resolution::Arp(arp) => arp.operation,
            Resolution::Neighbour(neighbour) => neighbour.operation,
        }
    }

    /// Hardware address of the sender.
    #[must_use]
    pub fn sender_mac(&self) -> MacAddress {
        match self {
            Resolution::Arp(arp) => arp.sender_mac,
            Resolution::Neighbour(neighbour) => neighbour.sender_mac,
        }
    }

    /// Address of the sender; 0.0.0.0 where none is claimed.
    #[must_use]
    pub fn sender_ip(&self) -> IpAddr {
        match self {
            Resolution::Arp(arp) => arp.sender_ip.into(),
            Resolution::Neighbour(neighbour) => neighbour.sender_ip.into(),
        }
    }

    /// Hardware address of the target; zero in a request for it.
    #[must_use]
    pub fn target_mac(&self) -> MacAddress {
        match self {
            Resolution::Arp(arp) => arp.target_mac,
            Resolution::Neighbour(neighbour) => neighbour.target_mac,
        }
    }

    /// Address of the target; 0.0.0.0 in a request by hardware address.
    #[must_use]
    pub fn target_ip(&self) -> IpAddr {
        match self {
            Resolution::Arp(arp) => arp.target_ip.into(),
            Resolution::Neighbour(neighbour) => neighbour.target_ip.into(),
        }
    }

    /// Whether it asks for a hardware address alone.
    #[must_use]
    pub fn is_by_hardware_address(&self) -> bool {
        matches!(self, Resolution::Arp(arp) if arp.operation == Operation::Request && arp.target_ip.is_unspecified())
    }

    /// Reads one; its protocol type says how long it is.
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Resolution, Error> {
        let head = reader.rest();
        if head.get(2..4) != Some(&EtherType::IPV6.0.to_be_bytes()) {
            return Ok(Resolution::Arp(Arp::parse(reader.bytes(arp::LEN)?)?));
        }
        let mut reader = Reader::new(reader.bytes(NEIGHBOUR_LEN)?, Field::Arp);
        let kinds = (reader.u16()?, reader.u16()?, reader.u8()?, reader.u8()?);
        if kinds != (HARDWARE_ETHERNET, EtherType::IPV6.0, 6, 16) {
            return Err(Error::Unsupported(Field::Arp));
        }
        let operation = match reader.u16()? {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(Error::Unsupported(Field::Arp)),
        };
        let neighbour = Neighbour {
            operation,
            sender_mac: MacAddress(reader.array()?),
            sender_ip: reader.array::<16>()?.into(),
            target_mac: MacAddress(reader.array()?),
            target_ip: reader.array::<16>()?.into(),
        };
        let is_no_host = |ip: Ipv6Addr| ip.is_unspecified() || ip.is_multicast();
        if is_no_host(neighbour.sender_ip) || is_no_host(neighbour.target_ip) {
            return Err(Error::Invalid(Field::Arp));
        }
        Ok(Resolution::Neighbour(neighbour))
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let neighbour = match self {
            Resolution::Arp(arp) => return out.extend(arp.emit()),
            Resolution::Neighbour(neighbour) => neighbour,
        };
        out.extend(HARDWARE_ETHERNET.to_be_bytes());
        out.extend(EtherType::IPV6.0.to_be_bytes());
        out.extend([6, 16]);
        let operation: u16 = match neighbour.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        out.extend(operation.to_be_bytes());
        out.extend(neighbour.sender_mac.0);
        out.extend(neighbour.sender_ip.octets());
        out.extend(neighbour.target_mac.0);
        out.extend(neighbour.target_ip.octets());
    }
}
