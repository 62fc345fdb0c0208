//! What the CLL paper measured (its tables 2 and 3), for the column beside our own.
//!
//! Two hosts of 2007 at 100 Mbit/s: a laptop at 1.8 GHz with Linux and a PC at 2.13 GHz with Windows. RSA-1024,
//! Diffie-Hellman with 2048 bits, Twofish and HMAC-MD5.

use super::mode::Mode;
use super::rate::Rate;
use super::tcp::Direction;

/// How many times a first ping with CLL took the time of one without, as the paper says it.
pub const FIRST_PING_RATIO: f64 = 29.8;

/// Throughput and loads of one line of table 3.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tcp {
    /// Payload in Mbit/s.
    pub goodput_mbit: f64,
    /// Load of the sender in percent.
    pub sender_percent: f64,
    /// Load of the receiver in percent.
    pub receiver_percent: f64,
}

/// Table 3: TCP throughput. The paper's tool counts a kilobyte as 1024 bytes.
pub fn tcp(rate: Rate, mode: Mode, direction: Direction) -> Option<Tcp> {
    let (kilobytes, sender_percent, receiver_percent) = match (rate, mode, direction) {
        (Rate::Mbit100, Mode::Plain, Direction::Forward) => (11_522.0, 45.0, 17.0),
        (Rate::Mbit100, Mode::Plain, Direction::Reverse) => (11_519.0, 10.0, 44.0),
        (Rate::Mbit100, Mode::Authenticated, Direction::Forward) => (11_263.0, 55.0, 26.0),
        (Rate::Mbit100, Mode::Authenticated, Direction::Reverse) => (11_312.0, 22.0, 60.0),
        (Rate::Mbit100, Mode::Encrypted, Direction::Forward) => (11_113.0, 75.0, 38.0),
        (Rate::Mbit100, Mode::Encrypted, Direction::Reverse) => (11_160.0, 31.0, 76.0),
        _ => return None,
    };
    Some(Tcp { goodput_mbit: kilobytes * 1024.0 * 8.0 / 1e6, sender_percent, receiver_percent })
}

/// Table 3: mean round trip of 100 pings in microseconds.
pub fn round_trip_us(mode: Mode) -> Option<f64> {
    match mode {
        Mode::Plain => Some(198.0),
        Mode::Encrypted => Some(377.0),
        Mode::Null | Mode::Authenticated | Mode::Resuming | Mode::PostQuantum | Mode::Compressing | Mode::Sarp => None,
        Mode::Rekeying | Mode::RekeyingOften => None,
    }
}

/// Table 2: the first ping in microseconds.
pub fn first_ping_us(mode: Mode) -> Option<f64> {
    match mode {
        Mode::Plain => Some(920.0),
        Mode::Encrypted => Some(27_400.0),
        Mode::Null | Mode::Authenticated | Mode::Resuming | Mode::PostQuantum | Mode::Compressing | Mode::Sarp => None,
        Mode::Rekeying | Mode::RekeyingOften => None,
    }
}

/// Table 2: one operation in microseconds; the mean of the two hosts for signing, which they do in turn, and for making a key
/// pair, and the slower host for the agreement, which they do at the same time.
pub fn step_us(operation: &str) -> Option<f64> {
    match operation {
        "sign" => Some((3_100.0 + 5_700.0) / 2.0),
        "agree" => Some(15_700.0),
        "key_pair" => Some((26_300.0 + 44_100.0) / 2.0),
        _ => None,
    }
}
