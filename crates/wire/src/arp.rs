//! ARP for Ethernet and IPv4 (RFC 826): 28 bytes.

use std::net::Ipv4Addr;

use crate::reader::Reader;
use crate::{Error, Field, MacAddress};

/// Length of an ARP message for Ethernet and IPv4.
pub const LEN: usize = 28;

const HARDWARE_ETHERNET: u16 = 1;
const PROTOCOL_IPV4: u16 = 0x0800;

/// What an ARP message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Who has the target address?
    Request,
    /// The sender has it.
    Reply,
}

/// An ARP message for Ethernet and IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// Request or reply.
    pub operation: Operation,
    /// Hardware address of the sender.
    pub sender_mac: MacAddress,
    /// Protocol address of the sender; unspecified in an address probe (RFC 5227, section 2.1.1).
    pub sender_ip: Ipv4Addr,
    /// Hardware address of the target; zero in a request for it.
    pub target_mac: MacAddress,
    /// Protocol address of the target.
    pub target_ip: Ipv4Addr,
}

impl Arp {
    /// Reads a message; bytes after it (Ethernet padding) are ignored.
    ///
    /// # Errors
    /// Too short, other hardware or protocol than Ethernet and IPv4, or an operation that is neither request nor reply.
    pub fn parse(bytes: &[u8]) -> Result<Arp, Error> {
        let mut reader = Reader::new(bytes, Field::Arp);
        let kinds = (reader.u16()?, reader.u16()?, reader.u8()?, reader.u8()?);
        if kinds != (HARDWARE_ETHERNET, PROTOCOL_IPV4, 6, 4) {
            return Err(Error::Unsupported(Field::Arp));
        }
        let operation = match reader.u16()? {
            1 => Operation::Request,
            2 => Operation::Reply,
            _ => return Err(Error::Unsupported(Field::Arp)),
        };
        Ok(Arp {
            operation,
            sender_mac: MacAddress(reader.array()?),
            sender_ip: Ipv4Addr::from(reader.array::<4>()?),
            target_mac: MacAddress(reader.array()?),
            target_ip: Ipv4Addr::from(reader.array::<4>()?),
        })
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let operation: u16 = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        let mut bytes = [0; LEN];
        bytes[..2].copy_from_slice(&HARDWARE_ETHERNET.to_be_bytes());
        bytes[2..4].copy_from_slice(&PROTOCOL_IPV4.to_be_bytes());
        bytes[4] = 6;
        bytes[5] = 4;
        bytes[6..8].copy_from_slice(&operation.to_be_bytes());
        bytes[8..14].copy_from_slice(&self.sender_mac.0);
        bytes[14..18].copy_from_slice(&self.sender_ip.octets());
        bytes[18..24].copy_from_slice(&self.target_mac.0);
        bytes[24..28].copy_from_slice(&self.target_ip.octets());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captured from a Linux host: 10.0.0.1 asks for 10.0.0.2.
    const REQUEST: [u8; LEN] = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];

    #[test]
    fn a_request_reads_and_writes_the_same_bytes() {
        let arp = Arp::parse(&REQUEST).expect("valid");
        assert_eq!(arp.operation, Operation::Request);
        assert_eq!(arp.sender_mac, MacAddress([2, 0, 0, 0, 0, 1]));
        assert_eq!(arp.sender_ip, Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(arp.target_mac, MacAddress::ZERO);
        assert_eq!(arp.target_ip, Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(arp.emit(), REQUEST);
    }

    #[test]
    fn every_truncation_is_named() {
        for len in 0..LEN {
            assert_eq!(Arp::parse(&REQUEST[..len]), Err(Error::Truncated(Field::Arp)), "{len} bytes");
        }
    }

    #[test]
    fn other_hardware_protocols_and_operations_are_refused() {
        for (at, value) in [(1, 6), (2, 0x86), (4, 8), (5, 16), (7, 3), (6, 1)] {
            let mut bytes = REQUEST;
            bytes[at] = value;
            assert_eq!(Arp::parse(&bytes), Err(Error::Unsupported(Field::Arp)), "byte {at}");
        }
    }
}
