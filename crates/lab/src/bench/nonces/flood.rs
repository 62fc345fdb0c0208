//! The forged frames: those of an honest host, changed where a layer is to tell them, as fast as is wanted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bump::Meta;
use system::port::{PacketPort, Sender};
use wire::ethernet::HEADER_LEN;

use super::stage::{SENDER_CORE, sit_on};
use crate::bench::cpu;
use crate::failure::Failure;
use crate::net::Frame;

/// Where a message has its fields.
const INDEX_AT: usize = HEADER_LEN + 2;
const SPIN_AT: usize = HEADER_LEN + 10;
/// Frames between two looks at the clock.
const HANDFUL_PACED: u64 = 16;
const HANDFUL_MAX: u64 = 64;
/// How long a paced flood rests.
const REST: Duration = Duration::from_micros(40);
/// How far the attacker steps back. At real-time priority it would starve what the kernel does for the stream beside it.
const NICENESS: i32 = 19;
/// After a pause of the machine the flood does not make up for more than this.
const BEHIND_MAX: u64 = 2000;

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
    /// As fast as the machine can beside the stream's sender.
    Max,
}

impl Pace {
    /// Both.
    pub const ALL: [Pace; 2] = [Pace::Steady, Pace::Max];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Pace::Steady => "200k",
            Pace::Max => "max",
        }
    }

    /// Forged frames in a second on the wire below which a run says nothing.
    pub fn least_per_second(self) -> f64 {
        match self {
            Pace::Steady => 190_000.0,
            Pace::Max => 200_000.0,
        }
    }

    fn per_second(self) -> Option<f64> {
        match self {
            Pace::Steady => Some(200_000.0),
            Pace::Max => None,
        }
    }
}

/// Sends `frames` over and over until it is stopped, on the sender's processor when the stream does not want it. What the thread has
/// worked: the kernel carries a frame over the bridge in its name.
///
/// # Errors
/// The thread cannot be bound to its processor.
pub fn run(port: &mut PacketPort, frames: &[Vec<u8>], pace: Pace, stop: &AtomicBool) -> Result<Duration, Failure> {
    sit_on(SENDER_CORE, None)?;
    // A thread's own number names it alone.
    let own = rustix::thread::gettid();
    rustix::process::setpriority_process(Some(own), NICENESS)
        .map_err(|error| Failure::Io { doing: "stepping back".to_owned(), source: error.into() })?;
    let (start, mut sent) = (Instant::now(), 0_u64);
    let mut frames = frames.iter().cycle();
    while !stop.load(Ordering::Relaxed) {
        let due = pace.per_second().map(|rate| (start.elapsed().as_secs_f64() * rate) as u64);
        let handful = match due {
            None => HANDFUL_MAX,
            Some(due) if due >= sent + HANDFUL_PACED => HANDFUL_PACED,
            Some(_) => {
                thread::sleep(REST);
                continue;
            }
        };
        for frame in frames.by_ref().take(handful as usize) {
            put(port, frame);
        }
        port.sender.flush();
        sent = (sent + handful).max(due.unwrap_or(0).saturating_sub(BEHIND_MAX));
    }
    Ok(cpu::own_thread())
}

fn put(port: &mut PacketPort, frame: &[u8]) {
    if let Some(room) = port.sender.reserve(frame.len()) {
        room[..frame.len()].copy_from_slice(frame);
        port.sender.commit(frame.len(), Meta::plain());
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
