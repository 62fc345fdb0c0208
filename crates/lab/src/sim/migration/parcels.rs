//! What hosts say to each other.

use crate::sim::link_layer::datagram::{Number, Parcel, Shape};
use crate::sim::link_layer::site;

/// Bytes of a datagram's payload.
const PAYLOAD_LEN: usize = 64;
/// The first of two equal ports of UDP, one for each pair.
const PORT: u16 = 40_000;

/// What host `from` says to host `to`.
pub fn parcel(first: Number, from: usize, to: usize) -> Parcel {
    Parcel {
        first,
        shape: Shape::Udp { payload_len: PAYLOAD_LEN, partial: false },
        source: site::ip(from),
        destination: site::ip(to),
        port: PORT + (from * (site::POOL + 1) + to) as u16,
        secret: false,
    }
}
