//! Ethernet II frames (IEEE 802.3, clause 3): two addresses, an EtherType, a payload. The check sequence is the card's.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Field};

/// Bytes before the payload of an untagged frame.
pub const HEADER_LEN: usize = 14;
/// Shortest frame on a wire, without the check sequence; cards pad up to it.
pub const MIN_LEN: usize = 60;

/// A 48-bit hardware address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);
    /// No station.
    pub const ZERO: MacAddress = MacAddress([0; 6]);

    /// Whether it names a group: broadcast or multicast.
    #[must_use]
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether it names every station.
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = text.split([':', '-']);
        let mut bytes = [0; 6];
        for byte in &mut bytes {
            let part = parts
                .next()
                .filter(|part| part.len() == 2 && !part.starts_with('+'))
                .ok_or(Error::Invalid(Field::MacText))?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| Error::Invalid(Field::MacText))?;
        }
        if parts.next().is_some() {
            return Err(Error::Trailing(Field::MacText));
        }
        Ok(MacAddress(bytes))
    }
}

/// What an Ethernet frame carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP.
    pub const ARP: EtherType = EtherType(0x0806);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// An 802.1Q customer tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// An 802.1ad service tag.
    pub const SERVICE_VLAN: EtherType = EtherType(0x88a8);
    /// Port access control (IEEE 802.1X).
    pub const EAPOL: EtherType = EtherType(0x888e);
    /// Link layer discovery (IEEE 802.1AB).
    pub const LLDP: EtherType = EtherType(0x88cc);
    /// Link aggregation and other slow protocols (IEEE 802.3, annex 57A).
    pub const SLOW: EtherType = EtherType(0x8809);
    /// Precision time (IEEE 1588).
    pub const PTP: EtherType = EtherType(0x88f7);
    /// The identifier that the CLL paper chose (section 5.1).
    pub const CLL: EtherType = EtherType(0x07d0);

    /// Whether it is a VLAN tag's protocol identifier.
    #[must_use]
    pub fn is_vlan(self) -> bool {
        self == Self::VLAN || self == Self::SERVICE_VLAN
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// To whom.
    pub destination: MacAddress,
    /// From whom, as the sender claims.
    pub source: MacAddress,
    /// What follows.
    pub ethertype: EtherType,
}

impl Header {
    /// Reads the header of `frame` and returns it with the payload.
    ///
    /// # Errors
    /// [`Error::Truncated`] when the frame is shorter than a header.
    pub fn parse(frame: &[u8]) -> Result<(Header, &[u8]), Error> {
        let (head, payload) = frame.split_first_chunk::<HEADER_LEN>().ok_or(Error::Truncated(Field::Ethernet))?;
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *head;
        let header = Header {
            destination: MacAddress([d0, d1, d2, d3, d4, d5]),
            source: MacAddress([s0, s1, s2, s3, s4, s5]),
            ethertype: EtherType(u16::from_be_bytes([t0, t1])),
        };
        Ok((header, payload))
    }

    /// The header as bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..6].copy_from_slice(&self.destination.0);
        bytes[6..12].copy_from_slice(&self.source.0);
        bytes[12..].copy_from_slice(&self.ethertype.0.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_reads_and_writes_the_same_bytes() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x06, 0xee];
        let (header, payload) = Header::parse(&bytes).expect("long enough");
        assert_eq!(header.destination, MacAddress::BROADCAST);
        assert_eq!(header.source, MacAddress([2, 0, 0, 0, 0, 1]));
        assert_eq!(header.ethertype, EtherType::ARP);
        assert_eq!(payload, [0xee]);
        assert_eq!(header.emit(), bytes[..HEADER_LEN]);
        assert_eq!(Header::parse(&bytes[..13]), Err(Error::Truncated(Field::Ethernet)));
    }

    #[test]
    fn addresses_read_from_text() {
        assert_eq!("02:00:00:00:0a:FF".parse(), Ok(MacAddress([2, 0, 0, 0, 10, 255])));
        assert_eq!(MacAddress([2, 0, 0, 0, 10, 255]).to_string(), "02:00:00:00:0a:ff");
        for bad in
            ["", "02:00:00:00:0a", "02:00:00:00:0a:ff:00", "2:0:0:0:a:ff", "02:00:00:00:0a:fg", "+2:00:00:00:0a:ff"]
        {
            assert!(bad.parse::<MacAddress>().is_err(), "{bad}");
        }
    }
}
