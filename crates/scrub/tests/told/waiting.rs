//! What waits after a takeover, where strangers guess, hosts send again and connections end.

use super::*;

/// A gate that has not heard yet how far the hosts of a connection with timestamps are.
fn took_over_with_stamps() -> Gate {
    let mut first = followed(plain());
    first.open_with_stamps(1, 1);
    successor(&mut first, plain())
}

/// The first of a flight was lost and came last, so its timestamp is the newest: let go before the
/// others it would make them old (RFC 7323, section 5.3).
#[test]
fn what_was_sent_again_does_not_make_what_waited_old() {
    let mut gate = took_over_with_stamps();
    gate.client(seg(ACK, C + 5, S).stamps(101, 1).data(b"later"));
    gate.client(seg(ACK, C, S).stamps(400, 1).data(b"first"));
    let answer = gate.server(seg(ACK, S, C).stamps(2, 1));
    let left: Vec<_> = answer.inside.iter().map(|seg| (&seg.data[..], seg.read_stamps())).collect();
    assert_eq!(left, [(&b"later"[..], Some((101, 1))), (b"first", Some((400, 1)))]);
    assert_eq!(gate.scrubber.waits().refused, 0);
}

/// A receiver as RFC 7323, section 5.3, has it, which acknowledges at once.
struct Receiver {
    next: u32,
    stamp: u32,
    has: std::collections::BTreeSet<u32>,
}

impl Receiver {
    /// Hears a piece of a thousand bytes; false if its timestamp is too old.
    fn hear(&mut self, seg: &Seg) -> bool {
        let (stamp, _) = seg.read_stamps().expect("agreed");
        if stamp < self.stamp {
            return false;
        }
        if seg.sequence <= self.next {
            self.stamp = stamp;
        }
        self.has.insert(seg.sequence);
        while self.has.contains(&self.next) {
            self.next += 1000;
        }
        true
    }
}

proptest! {
    /// Whatever of a flight is lost or overtaken on its way to the gateway, and sent again in later
    /// flights: its receiver takes each piece that waited.
    #[test]
    fn the_receiver_takes_what_waited(flights in proptest::collection::vec(
        proptest::sample::subsequence((0..20_u32).collect::<Vec<_>>(), 0..20).prop_shuffle(), 1..4,
    )) {
        let mut gate = took_over_with_stamps();
        let mut arrived = std::collections::BTreeSet::new();
        for (stamp, flight) in (100..).step_by(100).zip(&flights) {
            for piece in flight {
                let sequence = C + 1000 * piece;
                gate.client(seg(ACK, sequence, S).stamps(stamp, 1).data(&[b'x'; 1000]));
                arrived.insert(sequence);
            }
        }
        let mut receiver = Receiver { next: C, stamp: 1, has: std::collections::BTreeSet::new() };
        for seg in gate.server(seg(ACK, S, C).stamps(2, 1)).inside {
            prop_assert!(receiver.hear(&seg), "{:?} of {:?}", seg.read_stamps(), flights);
        }
        prop_assert_eq!(receiver.has, arrived);
    }
}
