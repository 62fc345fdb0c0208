//! Packets that their receiver is to work for in vain, made from genuine ones that somebody heard on the wire.

use std::net::Ipv4Addr;

use bump::Generator;
use wire::MacAddress;

use crate::net::strongswan::{SPI_AT, forged};
use crate::net::{Frame, Host};

/// Frames of a flood before it begins anew.
const FRAMES: u32 = 1024;
/// How far ahead of the packet that was heard the sequence numbers begin, so that no window refuses them unread.
const AHEAD: u32 = 1 << 20;
/// Bytes of ciphertext that are changed, and where: behind sequence number and initialisation vector.
const CHANGED: std::ops::Range<usize> = SPI_AT + 32..SPI_AT + 52;
/// Where a message of IKE on its own port has the SPI of its initiator, in a frame (RFC 7296, section 3.1).
const INITIATOR_SPI_AT: usize = 14 + 20 + 8;
const UDP_CHECKSUM_AT: usize = 14 + 20 + 6;

/// What is wrong with packets of ESP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// The SPI, or what stands in its place.
    WrongSpi,
    /// The tag, under an SPI that was heard and sequence numbers that were not yet.
    WrongKey,
}

impl Forgery {
    /// Both.
    pub const ALL: [Forgery; 2] = [Forgery::WrongSpi, Forgery::WrongKey];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Forgery::WrongSpi => "wrong_spi",
            Forgery::WrongKey => "wrong_key",
        }
    }

    /// The frames that `attacker` makes of one that was heard.
    pub fn frames(self, heard: &Frame, attacker: MacAddress) -> Vec<Vec<u8>> {
        let (spi, sequence) = (word(heard, SPI_AT), word(heard, SPI_AT + 4));
        let spi = if self == Forgery::WrongSpi { spi ^ 0x5a5a_5a5a } else { spi };
        let heard = heard.with_addresses(attacker, heard.destination());
        let each = |ahead: u32| {
            let mut frame = forged(&heard, Some(spi), Some(sequence.wrapping_add(ahead)));
            frame.0[CHANGED].iter_mut().for_each(|byte| *byte ^= 0x5a);
            frame.0
        };
        (AHEAD..AHEAD + FRAMES).map(each).collect()
    }
}

/// In whose name first messages of IKE come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pretence {
    /// In the peer's who opens a tunnel meanwhile, each with another SPI.
    Peer,
    /// Each in the name of another address that there may be.
    Anybody,
}

impl Pretence {
    /// Both.
    pub const ALL: [Pretence; 2] = [Pretence::Peer, Pretence::Anybody];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Pretence::Peer => "ike_random_spi",
            Pretence::Anybody => "ike_spoofed_source",
        }
    }

    /// The frames that `attacker` makes of a genuine first message.
    pub fn frames(self, heard: &Frame, attacker: &Host, receiver: &Host) -> Vec<Vec<u8>> {
        let mut random = Generator::from_seed([6; 32]);
        let heard = heard.with_addresses(attacker.mac, receiver.mac);
        let each = |_| {
            let mut frame = match self {
                Pretence::Peer => heard.clone(),
                Pretence::Anybody => heard.with_ipv4(anybody(&mut random), receiver.ip),
            };
            frame.0[UDP_CHECKSUM_AT..UDP_CHECKSUM_AT + 2].fill(0);
            frame.0[INITIATOR_SPI_AT..INITIATOR_SPI_AT + 8].copy_from_slice(&random.bytes::<8>());
            frame.0
        };
        (0..FRAMES).map(each).collect()
    }
}

/// An address of a private network that no host here has, so that answers go nowhere.
fn anybody(random: &mut Generator) -> Ipv4Addr {
    let [b, c, d] = random.bytes::<3>();
    Ipv4Addr::new(10, 128 | b, c, d)
}

fn word(frame: &Frame, at: usize) -> u32 {
    u32::from_be_bytes([frame.0[at], frame.0[at + 1], frame.0[at + 2], frame.0[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where `forged` differs from `heard`.
    fn changed(heard: &Frame, forged: &[u8]) -> Vec<usize> {
        (0..forged.len()).filter(|&at| heard.0[at] != forged[at]).collect()
    }

    #[test]
    fn a_wrong_spi_changes_that_and_a_wrong_key_does_not() {
        // The attacker's own hardware address is no news.
        let heard = Frame(vec![1; 200]);
        let (_, mac) = crate::net::lan::address_of("m");
        let kept = heard.with_addresses(mac, heard.destination());
        let body: Vec<usize> = CHANGED.collect();
        for (forgery, is_spi) in [(Forgery::WrongSpi, true), (Forgery::WrongKey, false)] {
            let frame = forgery.frames(&heard, mac).remove(0);
            let changed = changed(&kept, &frame);
            assert_eq!((SPI_AT..SPI_AT + 4).all(|at| changed.contains(&at)), is_spi);
            assert!(body.iter().all(|at| changed.contains(at)));
            assert_ne!(word(&Frame(frame), SPI_AT + 4), word(&kept, SPI_AT + 4));
        }
    }
}
