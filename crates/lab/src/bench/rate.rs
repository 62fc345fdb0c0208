//! Rate limits on the bridge's ports, and what header arithmetic allows under them.
//!
//! The limits sit on the bridge, out of reach of whatever a host does to its own interface. tbf counts a frame as the
//! Ethernet header and what follows it, without preamble, check sequence and gap; super-frames count as the frames they
//! stand for, and are cut when they exceed the bucket.

use std::process::Command;

use wire::{cll, ethernet};

use crate::failure::Failure;
use crate::net::{Host, Lan, process};

/// Bytes of the largest packet on the wire, everywhere in the experiments.
const WIRE_MTU: usize = 1500;
/// IPv4 header, TCP header and the timestamps option, which Linux always uses.
const TCP_HEADERS_LEN: usize = 20 + 20 + 12;
/// The bucket in milliseconds of the rate: 12 kB at 100 Mbit/s, so that the burst at the start of a two-second run adds
/// less than a thousandth to its result.
const BUCKET_MS: u64 = 1;
/// How long a frame may wait in the queue, in milliseconds: enough for TCP to keep the link busy after a loss.
const QUEUE_MS: u64 = 30;

/// How fast the bridge's ports send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    /// The paper's LAN.
    Mbit100,
    /// Today's.
    Gbit1,
    /// As fast as the machine.
    Unlimited,
}

impl Rate {
    /// All, in the order of the table.
    pub const ALL: [Rate; 3] = [Rate::Mbit100, Rate::Gbit1, Rate::Unlimited];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Rate::Mbit100 => "100M",
            Rate::Gbit1 => "1G",
            Rate::Unlimited => "unlimited",
        }
    }

    /// In Mbit/s; `None` without a limit.
    fn mbit(self) -> Option<u64> {
        match self {
            Rate::Mbit100 => Some(100),
            Rate::Gbit1 => Some(1000),
            Rate::Unlimited => None,
        }
    }

    /// Makes the bridge's port towards `host` send at this rate.
    ///
    /// # Errors
    /// `tc` fails.
    pub fn apply(self, lan: &Lan, host: &Host) -> Result<(), Failure> {
        let mut command = Command::new("tc");
        command.args(["-n", lan.bridge.name(), "qdisc"]);
        let port = Lan::port(host);
        match self.mbit() {
            Some(mbit) => {
                command.args(["replace", "dev", &port, "root", "tbf", "rate", &format!("{mbit}mbit"), "burst"]);
                command.args([&(mbit * BUCKET_MS * 125).to_string(), "latency", &format!("{QUEUE_MS}ms")]);
            }
            None => {
                command.args(["replace", "dev", &port, "root", "noqueue"]);
            }
        }
        process::must(command).map(drop)
    }

    /// The payload that TCP can move at this rate when every frame is full and carries `overhead` bytes more than IP
    /// needs, in Mbit/s; `None` without a limit.
    pub fn attainable_mbit(self, overhead: Overhead) -> Option<f64> {
        let payload = WIRE_MTU - overhead.bytes() - TCP_HEADERS_LEN;
        let frame = ethernet::HEADER_LEN + WIRE_MTU;
        self.mbit().map(|mbit| mbit as f64 * payload as f64 / frame as f64)
    }
}

/// What a frame carries besides the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overhead {
    /// Nothing.
    None,
    /// The headers and the tag of a sealed frame.
    Sealed,
}

impl Overhead {
    fn bytes(self) -> usize {
        match self {
            Overhead::None => 0,
            Overhead::Sealed => cll::data::OVERHEAD,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1448 of 1514 bytes are payload in a plain full frame with timestamps: 95.64 %, as every table of Ethernet says.
    #[test]
    fn plain_ethernet_carries_95_percent() {
        let attainable = Rate::Mbit100.attainable_mbit(Overhead::None).unwrap();
        assert!((attainable - 95.640_7).abs() < 1e-3, "{attainable}");
        assert_eq!(Rate::Unlimited.attainable_mbit(Overhead::None), None);
    }

    /// At most 40 bytes of overhead cost at most 2.7 % of the rate.
    #[test]
    fn a_seal_costs_little() {
        let (plain, sealed) = (Overhead::None, Overhead::Sealed);
        let share = |overhead| Rate::Gbit1.attainable_mbit(overhead).unwrap();
        assert!(share(sealed) / share(plain) > 0.97);
        assert!(share(sealed) < share(plain));
    }
}
