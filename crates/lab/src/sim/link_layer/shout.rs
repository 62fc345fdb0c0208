//! What hosts send to groups: numbered datagrams, small and as long as a packet can be, alone and as super-frames.

use std::net::Ipv4Addr;

use bump::Generator;
use wire::MacAddress;

use super::datagram::{Number, Packed, Parcel, Shape};
use super::site;

/// Most datagrams of one super-frame.
pub const COUNT_MAX: u64 = 4;
/// The longest UDP payload that the guarded interface carries: its MTU less both headers.
const LONGEST: u64 = 1435 - 28;

/// A frame of `own` to a group; its datagrams have numbers from `first` on, at most [`COUNT_MAX`].
pub fn shout(random: &mut Generator, own: usize, first: Number) -> Packed {
    let size = if random.chance(3) { LONGEST } else { 8 + random.below(LONGEST - 8) } as usize;
    let shape = match random.below(4) {
        0 => Shape::UdpSuper { size, count: (2 + random.below(COUNT_MAX - 1)) as usize },
        1 => Shape::Udp { payload_len: size, partial: true },
        _ => Shape::Udp { payload_len: size, partial: false },
    };
    let (destination, to) = if random.chance(2) {
        (Ipv4Addr::BROADCAST, MacAddress::BROADCAST)
    } else {
        (Ipv4Addr::new(224, 0, 0, 251), MacAddress([1, 0, 0x5e, 0, 0, 0xfb]))
    };
    Parcel { first, shape, source: site::ip(own), destination, port: 5353, secret: false }.pack(site::mac(own), to)
}
