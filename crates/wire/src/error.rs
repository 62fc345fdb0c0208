//! What bytes did wrong, and in which field.

use std::fmt;

/// The field in which the bytes went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// An Ethernet header.
    Ethernet,
    /// A VLAN tag.
    Vlan,
    /// An ARP message.
    Arp,
    /// An IPv4 header.
    Ipv4,
    /// An IPv6 header.
    Ipv6,
    /// A message of neighbour discovery.
    NeighbourDiscovery,
    /// A TCP header.
    Tcp,
    /// A UDP header.
    Udp,
    /// Metadata handed over by the kernel.
    Offload,
    /// The fixed part of a CLL header.
    CllHeader,
    /// The body of a CLL handshake message.
    CllHandshake,
    /// The certificate in a CLL handshake message.
    CllCertificate,
    /// The signature in a CLL handshake message.
    CllSignature,
    /// The body of a CLL rollover message.
    CllRollover,
    /// A CLL message about a revocation list.
    CllRevocationList,
    /// A site's policy.
    SitePolicy,
    /// The body of a signed CLL group frame, an announcement or a question.
    CllBroadcast,
    /// A DHCP frame of CLL.
    CllDhcp,
    /// The body of a CLL resumption message.
    CllResumption,
    /// A ticket, or the message that grants one.
    CllTicket,
    /// The header that S-ARP puts behind an ARP message.
    SarpHeader,
    /// The data of an S-ARP message.
    SarpData,
    /// The fixed part of a DHCP message.
    Dhcp,
    /// The options of a DHCP message.
    DhcpOptions,
    /// The option with which S-DHCP proves a message.
    DhcpProof,
    /// A textual hardware address.
    MacText,
}

/// Why bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// They end before this field does.
    Truncated(Field),
    /// This field holds a value that has no meaning.
    Invalid(Field),
    /// This field is of a version or kind that is not spoken here.
    Unsupported(Field),
    /// Bytes follow where this field should be the last.
    Trailing(Field),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Truncated(field) => write!(f, "{field:?} is cut short"),
            Error::Invalid(field) => write!(f, "{field:?} is invalid"),
            Error::Unsupported(field) => write!(f, "{field:?} is not supported"),
            Error::Trailing(field) => write!(f, "bytes follow {field:?}"),
        }
    }
}

impl std::error::Error for Error {}
