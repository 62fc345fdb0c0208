//! The forged frames: those of an honest host, changed where a layer is to tell them, as fast as is wanted.

use std::path::Path;
use std::time::Duration;

use wire::ethernet::HEADER_LEN;

use super::placement::SENDER_CORE;
use crate::bench::cpu;
use crate::failure::Failure;
use crate::net::flood::{Forged, Rate};
use crate::net::{self, Frame, Host, Lan, Namespace};

/// How far a flood runs ahead of the stream.
pub const AHEAD: Duration = Duration::from_millis(250);

/// Where a message has its fields.
const INDEX_AT: usize = HEADER_LEN + 2;
const SPIN_AT: usize = HEADER_LEN + 10;
/// What is wrong with the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// The receiver index.
    WrongIndex,
    /// The spinning nonce.
    WrongNonce,
    /// Nothing but that they were delivered before.
    Replayed,
    /// The tag, under right nonces of frames that were never delivered: who is on the path and outruns them has such.
    WrongKey,
}

impl Attack {
    /// All of them, in the order of the layers that tell them.
    pub const ALL: [Attack; 4] = [Attack::WrongIndex, Attack::WrongNonce, Attack::Replayed, Attack::WrongKey];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Attack::WrongIndex => "wrong_index",
            Attack::WrongNonce => "wrong_nonce",
            Attack::Replayed => "replayed",
            Attack::WrongKey => "wrong_key",
        }
    }

    /// The frames of the attack, made of such that were delivered and such that were held back.
    pub fn forge(self, delivered: &[Frame], held: &[Frame]) -> Vec<Vec<u8>> {
        let of = if self == Attack::Replayed { delivered } else { held };
        let change = |frame: &Frame| {
            let mut bytes = frame.0.clone();
            let last = bytes.len() - 1;
            match self {
                Attack::WrongIndex => bytes[INDEX_AT..INDEX_AT + 4].iter_mut().for_each(|byte| *byte ^= 0x5a),
                Attack::WrongNonce => bytes[SPIN_AT..SPIN_AT + 4].iter_mut().for_each(|byte| *byte ^= 0x5a),
                Attack::Replayed => {}
                Attack::WrongKey => bytes[last] ^= 0x5a,
            }
            bytes
        };
        of.iter().map(change).collect()
    }
}

/// How fast they come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// 200,000 a second.
    Steady,
    /// 500,000 a second.
    Fast,
    /// As fast as a program with a packet socket can beside the stream's sender, which is what an attacker on a host has.
    OfProgram,
    /// As fast as the kernel itself can beside the stream's sender: more than a link of 10 Gbit/s carries of full frames.
    Max,
}

impl Pace {
    /// Every part has these.
    pub const ALL: [Pace; 3] = [Pace::Steady, Pace::OfProgram, Pace::Max];
    /// Floods of data frames have one more.
    pub const OF_DATA: [Pace; 4] = [Pace::Steady, Pace::Fast, Pace::OfProgram, Pace::Max];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Pace::Steady => "200k",
            Pace::Fast => "500k",
            Pace::OfProgram => "program",
            Pace::Max => "max",
        }
    }

    /// Forged frames in a second on the wire below which a run says nothing.
    pub fn least_per_second(self) -> f64 {
        match self {
            Pace::Steady => 190_000.0,
            Pace::Fast => 475_000.0,
            Pace::OfProgram | Pace::Max => 200_000.0,
        }
    }

    fn rate(self) -> Rate {
        match self {
            Pace::Steady => Rate::PerSecond(200_000.0),
            Pace::Fast => Rate::PerSecond(500_000.0),
            Pace::OfProgram => Rate::OfSocket,
            Pace::Max => Rate::OfKernel,
        }
    }
}

/// A flood that goes on.
pub struct Flood(net::flood::Flood);

/// Begins to flood the wire of `victim` with what is `forged`, over and over, on the sender's processor when the stream does not want it.
///
/// # Errors
/// The kernel cannot.
pub fn start(lan: &Lan, victim: &Host, forged: Forged, pace: Pace) -> Result<Flood, Failure> {
    start_at((&lan.bridge, &Lan::port(victim)), forged, pace, &lan.directory)
}

/// As [`start`], by the near end of any wire; files go to `directory`.
///
/// # Errors
/// As [`start`].
pub fn start_at(near_end: (&Namespace, &str), forged: Forged, pace: Pace, directory: &Path) -> Result<Flood, Failure> {
    net::flood::Flood::start(near_end, forged, pace.rate(), SENDER_CORE, directory).map(Flood)
}

impl Flood {
    /// Ends it; what it has worked, the waiting for its turn included where it is paced.
    ///
    /// # Errors
    /// It had ended before.
    pub fn stop(self) -> Result<Duration, Failure> {
        let worked = cpu::exact(self.0.id())?;
        self.0.stop().map(|()| worked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attack_is_wrong_in_one_place() {
        let (delivered, held) = ([Frame(vec![1; 90])], [Frame(vec![2; 90])]);
        let differs = |attack: Attack, of: &Frame| -> Vec<usize> {
            let forged = attack.forge(&delivered, &held).remove(0);
            (0..90).filter(|&at| forged[at] != of.0[at]).collect()
        };
        assert_eq!(differs(Attack::WrongIndex, &held[0]), [16, 17, 18, 19]);
        assert_eq!(differs(Attack::WrongNonce, &held[0]), [24, 25, 26, 27]);
        assert_eq!(differs(Attack::WrongKey, &held[0]), [89]);
        assert!(differs(Attack::Replayed, &delivered[0]).is_empty());
    }
}
