//! The order of checks in front of the tag, for one receiver index: who, how near, which nonces, which number.
//!
//! Each layer is worth its place: it costs less than the next one and stops most of what would reach it. Which of them stop a frame
//! is seen in the drop counters, one for each. The kernel makes the same checks ([`outpost`](crate::outpost)), if it is there.

use bump::DropReason;
use wire::MacAddress;
use wire::cll::DataHeader;
use wire::cll::data::{HEADER_LEN, SLOW_NONCE_LEN};
use zeroize::Zeroizing;

use crate::spin::{KEY_LEN, SlowSpin, Spin};
use crate::window::{Refused, Window};

/// Where forged frames are to end. Neither choice lets one through that another would not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layers {
    /// At the tag; nonces are compared behind it. Shows what they are worth.
    None,
    /// At the nonces, in this program.
    Twin,
    /// At the nonces, in the kernel, and here what it lets pass.
    #[default]
    Kernel,
}

impl Layers {
    /// All of them.
    pub const ALL: [Layers; 3] = [Layers::None, Layers::Twin, Layers::Kernel];

    /// The word in the configuration and in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Layers::None => "none",
            Layers::Twin => "twin",
            Layers::Kernel => "kernel",
        }
    }

    /// Whether nonces are compared before the tag.
    #[must_use]
    pub fn nonces_first(self) -> bool {
        self != Layers::None
    }
}

/// Why a frame is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The Ethernet source is not the peer's.
    WrongPeer,
    /// A slow nonce where none was agreed, or none where one was.
    Malformed,
    /// By its number.
    Number(Refused),
    /// The slow nonce is wrong.
    BadSlowNonce,
    /// The spinning nonce is wrong.
    BadSpin,
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Refusal {
        Refusal::Number(refused)
    }
}

impl From<Refusal> for DropReason {
    fn from(refusal: Refusal) -> DropReason {
        match refusal {
            Refusal::WrongPeer => DropReason::WrongPeer,
            Refusal::Malformed => DropReason::Malformed,
            Refusal::Number(Refused::TooFar) => DropReason::TooFar,
            Refusal::Number(Refused::TooOld) => DropReason::TooOld,
            Refusal::Number(Refused::Replayed) => DropReason::Replayed,
            Refusal::BadSlowNonce => DropReason::BadSlowNonce,
            Refusal::BadSpin => DropReason::BadSpin,
        }
    }
}

/// The keys of the nonces of one direction, lane and epoch.
#[derive(Clone)]
pub struct NonceKeys {
    /// Of the nonce for each frame.
    pub spin: Zeroizing<[u8; KEY_LEN]>,
    /// Of the slow nonce, where one was agreed.
    pub slow: Option<Zeroizing<[u8; KEY_LEN]>>,
}

/// The nonces of one direction, lane and epoch, as sender and receiver compute them.
pub struct Nonces {
    spin: Spin,
    slow: Option<SlowSpin>,
}

impl Nonces {
    /// The nonces under `keys`.
    #[must_use]
    pub fn new(keys: &NonceKeys) -> Nonces {
        Nonces { spin: Spin::new(&keys.spin), slow: keys.slow.as_ref().map(|key| SlowSpin::new(key)) }
    }

    /// The header of the frame with this number to `receiver_index`.
    #[must_use]
    pub fn header(&self, receiver_index: u32, sequence: u32) -> DataHeader {
        let slow_nonce = self.slow.as_ref().map(|slow| slow.at(sequence));
        DataHeader { receiver_index, sequence, spin: self.spin.at(sequence), slow_nonce }
    }

    /// Bytes of such a header.
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + if self.slow.is_some() { SLOW_NONCE_LEN } else { 0 }
    }

    /// Compares those in `header`, the slow one first, because it is at hand.
    fn compare(&self, header: &DataHeader) -> Result<(), Refusal> {
        if let Some(slow) = &self.slow
            && header.slow_nonce != Some(slow.at(header.sequence))
        {
            return Err(Refusal::BadSlowNonce);
        }
        if self.spin.at(header.sequence) == header.spin { Ok(()) } else { Err(Refusal::BadSpin) }
    }
}

/// Which checks are made, and when.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// Nonces are compared before the tag.
    pub nonces_first: bool,
    /// Nonces are compared behind the tag.
    pub nonces_last: bool,
    /// Numbers are compared with those delivered.
    pub window: bool,
}

/// What frames with one receiver index are checked by.
pub struct Checks {
    peer: MacAddress,
    nonces: Nonces,
    window: Window,
}

impl Checks {
    /// For frames of `peer` under `keys`, of which `window` knows the numbers.
    #[must_use]
    pub fn new(peer: MacAddress, keys: &NonceKeys, window: Window) -> Checks {
        Checks { peer, nonces: Nonces::new(keys), window }
    }

    /// What is looked at before the tag, in the order of cost.
    ///
    /// # Errors
    /// The first check that failed.
    #[inline]
    pub fn before_tag(&self, source: MacAddress, header: &DataHeader, switches: Switches) -> Result<(), Refusal> {
        if self.peer != source {
            return Err(Refusal::WrongPeer);
        }
        if header.slow_nonce.is_some() != self.nonces.slow.is_some() {
            return Err(Refusal::Malformed);
        }
        if switches.window {
            self.window.near(header.sequence)?;
        }
        if switches.nonces_first {
            self.nonces.compare(header)?;
        }
        if switches.window {
            self.window.fresh(header.sequence)?;
        }
        Ok(())
    }

    /// The frame is authentic: its number is spent.
    ///
    /// # Errors
    /// Its nonces, which were not looked at before, are wrong.
    #[inline]
    pub fn after_tag(&mut self, header: &DataHeader, switches: Switches) -> Result<(), Refusal> {
        self.window.enter(header.sequence);
        if switches.nonces_last { self.nonces.compare(header) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
    const ALL: Switches = Switches { nonces_first: true, nonces_last: false, window: true };

    fn keys(slow: bool) -> NonceKeys {
        NonceKeys { spin: [1; KEY_LEN].into(), slow: slow.then(|| [2; KEY_LEN].into()) }
    }

    #[test]
    fn each_layer_stops_what_is_its_own() {
        let mut checks = Checks::new(PEER, &keys(true), Window::new());
        let nonces = Nonces::new(&keys(true));
        let good = nonces.header(8, 5_000_000);
        let judge = |checks: &Checks, header| checks.before_tag(PEER, &header, ALL);
        assert_eq!(judge(&checks, good), Ok(()));
        assert_eq!(checks.before_tag(MacAddress([2; 6]), &good, ALL), Err(Refusal::WrongPeer));
        assert_eq!(judge(&checks, DataHeader { slow_nonce: None, ..good }), Err(Refusal::Malformed));
        assert_eq!(judge(&checks, DataHeader { slow_nonce: Some(7), ..good }), Err(Refusal::BadSlowNonce));
        assert_eq!(judge(&checks, DataHeader { spin: !good.spin, ..good }), Err(Refusal::BadSpin));
        checks.after_tag(&good, ALL).expect("not looked at");
        assert_eq!(judge(&checks, good), Err(Refusal::Number(Refused::Replayed)));
        assert_eq!(judge(&checks, nonces.header(8, 4_000_000)), Err(Refusal::Number(Refused::TooOld)));
        assert_eq!(judge(&checks, nonces.header(8, 50_000_000)), Err(Refusal::Number(Refused::TooFar)));
        assert_eq!(judge(&checks, nonces.header(8, 5_000_001)), Ok(()));
    }

    #[test]
    fn a_wrong_nonce_is_told_behind_the_tag_where_it_was_not_before() {
        let mut checks = Checks::new(PEER, &keys(false), Window::new());
        let wrong = DataHeader { spin: 7, ..Nonces::new(&keys(false)).header(8, 9) };
        let late = Switches { nonces_first: false, nonces_last: true, window: true };
        assert_eq!(checks.before_tag(PEER, &wrong, late), Ok(()));
        assert_eq!(checks.after_tag(&wrong, late), Err(Refusal::BadSpin));
        assert_eq!(checks.before_tag(PEER, &wrong, late), Err(Refusal::Number(Refused::Replayed)));
    }

    #[test]
    fn the_two_nonces_spin_at_their_own_pace() {
        let nonces = Nonces::new(&keys(true));
        let (a, b, c) = (nonces.header(8, 1024), nonces.header(8, 1025), nonces.header(8, 2048));
        assert_eq!(a.slow_nonce, b.slow_nonce);
        assert_ne!(a.slow_nonce, c.slow_nonce);
        assert_ne!(a.spin, b.spin);
    }
}
