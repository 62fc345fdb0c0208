//! DHCP messages as programs send them, written down for this laboratory alone.

use std::net::Ipv4Addr;

use wire::MacAddress;
use wire::dhcp::{MessageType, OPTION_LEASE_TIME, OPTION_REQUESTED, OPTION_SERVER, OPTION_TYPE, Operation};

/// No address.
pub const NOBODY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const FIXED_LEN: usize = 240;
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// A message; what is left out is zero.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Its type.
    pub kind: MessageType,
    /// Whose card sends it.
    pub from: MacAddress,
    /// The client's hardware address.
    pub chaddr: MacAddress,
    /// What ties an exchange together.
    pub xid: u32,
    /// The address that the client uses already.
    pub ciaddr: Ipv4Addr,
    /// The address that the server gives.
    pub yiaddr: Ipv4Addr,
    /// The address that the client asks for.
    pub requested: Option<Ipv4Addr>,
    /// The server that is meant or speaks.
    pub server: Option<Ipv4Addr>,
    /// For how many seconds.
    pub lease_s: Option<u32>,
}

impl Words {
    /// A message of this type in which nothing is said yet.
    pub fn new(kind: MessageType, from: MacAddress, chaddr: MacAddress, xid: u32) -> Words {
        let [ciaddr, yiaddr] = [NOBODY; 2];
        Words { kind, from, chaddr, xid, ciaddr, yiaddr, requested: None, server: None, lease_s: None }
    }

    /// The broadcast frame.
    pub fn frame(&self) -> Vec<u8> {
        let is_request = self.kind.operation() == Operation::Request;
        let mut bootp = vec![0_u8; FIXED_LEN];
        bootp[..3].copy_from_slice(&[if is_request { 1 } else { 2 }, 1, 6]);
        bootp[4..8].copy_from_slice(&self.xid.to_be_bytes());
        bootp[12..16].copy_from_slice(&self.ciaddr.octets());
        bootp[16..20].copy_from_slice(&self.yiaddr.octets());
        bootp[28..34].copy_from_slice(&self.chaddr.0);
        bootp[236..].copy_from_slice(&COOKIE);
        bootp.extend([OPTION_TYPE, 1, self.kind as u8]);
        let addresses = [(OPTION_REQUESTED, self.requested), (OPTION_SERVER, self.server)];
        for (code, address) in addresses.iter().filter_map(|(code, address)| Some((*code, (*address)?))) {
            bootp.extend([&[code, 4][..], &address.octets()].concat());
        }
        if let Some(lease_s) = self.lease_s {
            bootp.extend([&[OPTION_LEASE_TIME, 4][..], &lease_s.to_be_bytes()].concat());
        }
        bootp.push(255);
        let ports: [u8; 4] = if is_request { [0, 68, 0, 67] } else { [0, 67, 0, 68] };
        let (ip_len, udp_len) = ((28 + bootp.len()) as u16, (8 + bootp.len()) as u16);
        let mut frame = [&[0xff; 6][..], &self.from.0, &[8, 0, 0x45, 0], &ip_len.to_be_bytes()].concat();
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]);
        frame.extend(ports);
        frame.extend(udp_len.to_be_bytes());
        frame.extend([0, 0]);
        [frame, bootp].concat()
    }
}
