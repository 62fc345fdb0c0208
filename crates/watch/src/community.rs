//! The Community ID of a flow, version 1: the name under which other tools know the same flow.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::packet::{flow, network_destination, network_source};

/// The Community ID of the TCP or UDP packet in the frame `bytes`, with seed 0.
#[must_use]
pub fn id(bytes: &[u8]) -> Option<String> {
    let (protocol, from, to) = flow(bytes)?;
    let ends = ((network_source(bytes)?, from), (network_destination(bytes)?, to));
    Some(of(protocol, ends.0, ends.1))
}

/// The same of a protocol and two ends; the smaller end goes first, so both directions have one name.
#[must_use]
pub fn of(protocol: u8, one: (IpAddr, u16), other: (IpAddr, u16)) -> String {
    let (first, second) = if one <= other { (one, other) } else { (other, one) };
    let mut hash = Sha1::new();
    hash.update([0, 0]);
    hash.update(octets(first.0));
    hash.update(octets(second.0));
    hash.update([protocol, 0]);
    hash.update(first.1.to_be_bytes());
    hash.update(second.1.to_be_bytes());
    format!("1:{}", STANDARD.encode(hash.finalize()))
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the table of the specification's own baseline, seed 0.
    #[test]
    fn both_directions_have_the_published_name() {
        let ends = [(IpAddr::from([128, 232, 110, 120]), 34855), (IpAddr::from([66, 35, 250, 204]), 80)];
        assert_eq!(of(6, ends[0], ends[1]), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
        assert_eq!(of(6, ends[1], ends[0]), "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
    }
}
