//! What tells connections apart.

use std::net::{IpAddr, SocketAddr};

use bump::Side;
use wire::layer::protocol;

use crate::ethernet::Link;
use crate::ip::Ip;
use crate::keys::Subject;

/// What tells connections apart. Sides take the place of source and destination, so that both
/// directions have one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) trusted: IpAddr,
    pub(crate) untrusted: IpAddr,
    pub(crate) trusted_port: u16,
    pub(crate) untrusted_port: u16,
    /// The VLAN identifiers, the outer one above the inner one.
    pub(crate) vlans: u32,
}

/// A connection, for whoever looks at it from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowId {
    /// Address and port of the trusted host.
    pub trusted: SocketAddr,
    /// Address and port of the untrusted host.
    pub untrusted: SocketAddr,
    /// VLAN identifiers, the outer one 12 bits above the inner one; zero without a tag.
    pub vlans: u32,
}

impl Key {
    /// The key of a packet from side `from`.
    pub(crate) fn of(from: Side, link: &Link<'_>, ip: &Ip, source_port: u16, destination_port: u16) -> Key {
        let (source, destination) = (ip.source(), ip.recipient());
        let vlans = link.vlans();
        if from == Side::TRUSTED {
            let (trusted_port, untrusted_port) = (source_port, destination_port);
            Key { trusted: source, untrusted: destination, trusted_port, untrusted_port, vlans }
        } else {
            let (trusted_port, untrusted_port) = (destination_port, source_port);
            Key { trusted: destination, untrusted: source, trusted_port, untrusted_port, vlans }
        }
    }

    /// What keyed functions are asked about.
    pub(crate) fn subject(&self) -> Subject {
        let ports = u64::from(self.trusted_port) << 16 | u64::from(self.untrusted_port);
        let rest = ports << 32 | u64::from(self.vlans);
        Subject::new(protocol::TCP).between(self.trusted, self.untrusted).number(rest)
    }

    pub(crate) fn id(&self) -> FlowId {
        FlowId {
            trusted: SocketAddr::new(self.trusted, self.trusted_port),
            untrusted: SocketAddr::new(self.untrusted, self.untrusted_port),
            vlans: self.vlans,
        }
    }
}

impl From<&FlowId> for Key {
    fn from(id: &FlowId) -> Key {
        Key {
            trusted: id.trusted.ip(),
            untrusted: id.untrusted.ip(),
            trusted_port: id.trusted.port(),
            untrusted_port: id.untrusted.port(),
            vlans: id.vlans,
        }
    }
}
