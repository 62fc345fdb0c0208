//! The pending replies list (section 3.4): what cannot be judged before a key or the time is there. The original daemon's
//! grew without bound; this one is bounded for each sender, in all, in bytes and in time.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use bump::Instant;

use crate::limits::{ARP_FRAME_MAX_BYTES, PENDING_MAX, PENDING_PER_SENDER_MAX, PENDING_TIME};

/// A frame that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) sender: Ipv4Addr,
    pub(crate) arrived: Instant,
    /// Whether its signature failed under the key that was in the ring.
    pub(crate) failed_before: bool,
    pub(crate) frame: Vec<u8>,
}

/// All frames that wait, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pending(VecDeque<Waiting>);

impl Pending {
    /// Keeps `waiting` unless it is too long or too many wait already; then it is given back.
    pub(crate) fn keep(&mut self, waiting: Waiting) -> Result<(), Waiting> {
        let of_sender = self.0.iter().filter(|other| other.sender == waiting.sender).count();
        let full = self.0.len() >= PENDING_MAX || of_sender >= PENDING_PER_SENDER_MAX;
        if full || waiting.frame.len() > ARP_FRAME_MAX_BYTES {
            return Err(waiting);
        }
        self.0.push_back(waiting);
        Ok(())
    }

    /// Whether anything waits for `sender`.
    pub(crate) fn holds(&self, sender: Ipv4Addr) -> bool {
        self.0.iter().any(|waiting| waiting.sender == sender)
    }

    /// Takes out what waits for `sender`, or for anybody.
    pub(crate) fn take(&mut self, sender: Option<Ipv4Addr>) -> Vec<Waiting> {
        let (taken, kept) = self.0.drain(..).partition(|waiting| sender.is_none_or(|ip| ip == waiting.sender));
        self.0 = kept;
        Vec::from(taken as VecDeque<Waiting>)
    }

    /// Takes out one frame that has waited too long.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Waiting> {
        self.0.pop_front_if(|waiting| now >= waiting.arrived + PENDING_TIME)
    }

    /// When the next one has waited too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.front().map(|waiting| waiting.arrived + PENDING_TIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(sender: u32, len: usize) -> Waiting {
        let sender = Ipv4Addr::from(sender);
        Waiting { sender, arrived: Instant::from_millis(1), failed_before: false, frame: vec![0; len] }
    }

    #[test]
    fn it_is_bounded_in_every_way() {
        let mut pending = Pending::default();
        let kept = (0..10).filter(|_| pending.keep(waiting(1, 100)).is_ok()).count();
        assert_eq!(kept, PENDING_PER_SENDER_MAX);
        assert!(pending.keep(waiting(2, ARP_FRAME_MAX_BYTES + 1)).is_err());
        let kept = (2..1000).filter(|&sender| pending.keep(waiting(sender, 100)).is_ok()).count();
        assert_eq!(kept, PENDING_MAX - PENDING_PER_SENDER_MAX);
        assert_eq!(pending.take(Some(Ipv4Addr::from(1))).len(), PENDING_PER_SENDER_MAX);
        let late = Instant::from_millis(1) + PENDING_TIME;
        assert!(pending.expired(Instant::from_millis(2)).is_none());
        assert_eq!(std::iter::from_fn(|| pending.expired(late)).count(), kept);
    }
}
