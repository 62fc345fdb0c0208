//! What waits after a takeover, where strangers guess, hosts send again and connections end.

use super::*;

fn both() -> Settings {
    Settings { both_directions: true, ..plain() }
}

/// A gate that has not heard yet how far the hosts of an open connection are.
fn took_over(settings: impl Fn() -> Settings) -> Gate {
    let mut first = followed(settings());
    first.open();
    successor(&mut first, settings())
}

/// The same for a connection with timestamps.
fn took_over_with_stamps() -> Gate {
    let mut first = followed(plain());
    first.open_with_stamps(1, 1);
    successor(&mut first, plain())
}

fn heard(out: &Out) -> Vec<u8> {
    out.inside.iter().flat_map(|seg| seg.data.clone()).collect()
}

/// Who does not see a connection guesses its numbers (RFC 5961, section 1.2). A window of 60,000
/// bytes was told, and what lies outside takes no room from what is inside.
#[test]
fn a_stranger_who_guesses_takes_no_room_from_the_connection() {
    let before: Vec<u32> = (1..100).map(|number| C - 200_000 + 1000 * number).collect();
    let beyond: Vec<u32> = (0..100).map(|number| C + 60_001 + 1000 * number).collect();
    let around: Vec<u32> = (1..64).map(|number| C.wrapping_add(number << 26)).collect();
    for (name, guesses) in [("before", before), ("beyond", beyond), ("around", around)] {
        let mut gate = took_over(plain);
        let guess = |gate: &mut Gate| {
            for sequence in &guesses {
                let question = gate.client(seg(ACK, *sequence, S).data(&[b'!'; 1000]));
                assert_eq!(heard(&question), b"", "{name}");
            }
        };
        guess(&mut gate);
        let flight: Vec<u8> = (0..10_000_u32).map(|at| (at / 1000) as u8).collect();
        for (number, piece) in (0..).zip(flight.chunks(1000)) {
            gate.client(seg(ACK, C + 1000 * number, S).data(piece));
        }
        guess(&mut gate);
        let answer = gate.server(seg(ACK, S, C));
        assert_eq!(heard(&answer)[..10_000], flight, "{name}");
    }
}

/// What no receiver takes is not kept, and that is counted.
#[test]
fn what_lies_outside_does_not_wait_and_no_reset_or_syn() {
    let mut gate = took_over(plain);
    for sequence in [C - 1000, C - 4, C.wrapping_add(1 << 31), C + (1 << 26) + 1] {
        gate.client(seg(ACK, sequence, S).data(b"word"));
    }
    let waits = gate.scrubber.waits();
    assert_eq!((waits.kept, waits.outside), (0, 4));
    gate.client(seg(RST | ACK, C, S).data(b"word"));
    gate.client(seg(SYN, C, 0).data(b"word"));
    assert_eq!(gate.scrubber.waits(), waits, "resets and SYNs became questions of their own kind");
    gate.client(seg(ACK, C - 2, S).data(b"word"));
    assert_eq!(gate.scrubber.waits().kept, 1, "a part of it is new");
}

/// What it acknowledges reaches its receiver: without it, that one would wait for its timer.
#[test]
fn a_bare_acknowledgement_waits_as_data_does() {
    for (settings, from) in
        [(plain as fn() -> Settings, Side::UNTRUSTED), (both, Side::UNTRUSTED), (both, Side::TRUSTED)]
    {
        let mut first = followed(settings());
        first.open();
        first.pass(from.other(), &data_from(from.other()));
        let mut gate = successor(&mut first, settings());
        let (own, other) = if from == Side::UNTRUSTED { (C, S) } else { (S, C) };
        let acknowledges = |gate: &mut Gate, number| gate.pass(from, &seg(ACK, own, number));
        for number in [other + 2, other + 4] {
            let question = acknowledges(&mut gate, number);
            let left = [question.inside, question.outside].concat();
            assert_eq!((left.len(), left[0].sequence), (1, own - 1));
        }
        let answer = gate.pass(from.other(), &seg(ACK, other + 4, own));
        let heard = if from == Side::UNTRUSTED { answer.inside } else { answer.outside };
        let last = heard.last().expect("what waited");
        assert_eq!((last.sequence, last.acknowledgement, heard.len()), (own, other + 4, 1), "the newest");
        assert_eq!((gate.scrubber.waits().kept, gate.scrubber.waits().went_on), (1, 1));
    }
}

/// Four bytes that the client or the server said.
fn data_from(side: Side) -> Seg {
    if side == Side::UNTRUSTED { seg(ACK, C, S) } else { seg(ACK, S, C) }.data(b"word")
}

#[test]
fn nothing_waits_behind_the_end_of_the_stream() {
    let mut first = followed(plain());
    first.open();
    first.client(seg(ACK | FIN, C, S));
    let mut second = successor(&mut first, plain());
    second.client(seg(ACK, C + 1, S).data(b"more"));
    assert_eq!((second.scrubber.waits().kept, second.scrubber.waits().outside), (0, 1));
    second.client(seg(ACK | FIN, C, S));
    assert_eq!(second.scrubber.waits().kept, 1, "the end itself");
    second.client(seg(ACK, C + 1, S));
    assert_eq!(second.scrubber.waits().kept, 2, "what is acknowledged behind it");
    second.client(seg(ACK, C + 2, S));
    assert_eq!((second.scrubber.waits().kept, second.scrubber.waits().outside), (2, 2));
}

/// Its number is checked before what it acknowledges (RFC 9293, section 3.10.7.4).
#[test]
fn a_stranger_who_guesses_does_not_answer_for_a_host() {
    let mut gate = took_over(both);
    assert_eq!(gate.server(seg(ACK, S, C).data(b"reply")).to_client().data, b"");
    for number in 1..64_u32 {
        gate.client(seg(ACK, C.wrapping_add(number << 26), S + 1_000_000));
    }
    let answer = gate.client(seg(ACK, C, S));
    assert_eq!(answer.to_client().data, b"reply");
}

/// The host that was asked knows no such connection, and says so.
#[test]
fn a_reset_of_the_host_that_was_asked_ends_the_waiting() {
    let sides: [(fn() -> Settings, Side); 3] =
        [(plain, Side::UNTRUSTED), (both, Side::UNTRUSTED), (both, Side::TRUSTED)];
    for (settings, from) in sides {
        let mut gate = took_over(settings);
        let left = |out: Out| [out.inside, out.outside].concat();
        let question = left(gate.pass(from, &data_from(from)));
        let reset = seg(RST, question[0].acknowledgement, 0);
        let to = if from == Side::UNTRUSTED { gate.server(reset).outside } else { gate.client(reset).inside };
        assert!(question[0].data.is_empty() && to[0].has(RST), "{to:?}");
        assert_eq!(gate.elapse(PARKED_TIME), Out::default(), "nobody is asked any more");
        let again = left(gate.pass(from, &data_from(from)));
        assert_eq!(again[0].data, b"", "it may have been lost: who goes on hears it again");
        assert_eq!(gate.elapse(PARKED_TIME), Out::default());
        let waits = gate.scrubber.waits();
        assert_eq!((waits.kept, waits.ended, waits.in_vain, waits.asked_again), (1, 1, 0, 0));
    }
}

/// As that of the untrusted host where only its half is scrubbed (RFC 5961, section 3.2).
#[test]
fn a_reset_before_its_receiver_has_spoken_is_a_question_if_it_may_be_right() {
    for (settings, side, first, other) in
        [(plain as fn() -> Settings, Side::UNTRUSTED, C, S), (both as fn() -> Settings, Side::TRUSTED, S, C)]
    {
        let mut gate = took_over(settings);
        for outside in [first - 1, first.wrapping_add(1 << 31), first.wrapping_sub(1 << 26)] {
            gate.pass(side, &seg(RST, outside, 0)).is_dropped_for(Reason::TcpReset);
        }
        let question = gate.pass(side, &seg(RST, first + 7, 0));
        let asked = if side == Side::TRUSTED { question.to_client() } else { question.to_server() };
        assert!(!asked.has(RST) && asked.sequence == first - 1, "{asked:?}");
        gate.pass(side.other(), &seg(ACK, other, first));
        let reset = gate.pass(side, &seg(RST, first, 0));
        let left = if side == Side::TRUSTED { reset.to_client() } else { reset.to_server() };
        assert!(left.has(RST), "{left:?}");
    }
}

/// Where both directions are scrubbed and neither host was heard, a reset asks its receiver, and
/// what that answers asks for the reset once more.
#[test]
fn a_reset_is_not_lost_where_both_directions_are_scrubbed() {
    let mut gate = took_over(both);
    // What it acknowledges is older than what was told.
    gate.client(seg(ACK, C, S - 9).data(b"word"));
    let question = gate.server(seg(RST, S + 3, 0));
    assert!(!question.to_client().has(RST));
    let answer = gate.client(seg(ACK, C + 4, S + 3));
    assert_eq!((answer.to_server().data.len(), answer.to_server().acknowledgement), (0, S + 3));
    assert!(gate.server(seg(RST, S + 3, 0)).to_client().has(RST));
    assert_eq!(gate.elapse(PARKED_TIME), Out::default());
    // The word, and what it was answered by.
    assert_eq!((gate.scrubber.waits().ended, gate.scrubber.waits().in_vain), (2, 0));
}

/// Where both hosts are further than was told the client's word does not count before the server's.
/// A server that knows nothing never has one, but its reset has the number of the question that it
/// answers (RFC 9293, section 3.10.7.1), and any other asks the client.
#[test]
fn a_reset_that_answers_the_latest_question_is_right() {
    let mut gate = took_over(both);
    let far = 1_000_000;
    let question = gate.client(seg(ACK, C + far, S + far).data(b"word"));
    assert_eq!(question.to_server().acknowledgement, S + far);
    for other in [S + far - 1, S + far + 1] {
        assert!(!gate.server(seg(RST, other, 0)).to_client().has(RST));
    }
    assert!(gate.server(seg(RST, S + far, 0)).to_client().has(RST));
    assert_eq!(gate.elapse(PARKED_TIME), Out::default());
    assert_eq!((gate.scrubber.waits().ended, gate.scrubber.waits().asked_again), (1, 0));
}

/// The server's word on the client's half waits itself, and the client's word on the server's half
/// counts only behind it.
#[test]
fn what_is_let_go_may_be_the_word_for_which_the_other_half_waits() {
    let mut gate = took_over(both);
    let far = 1_000_000;
    for (number, word) in (0..).zip(["a", "b", "c"]) {
        gate.client(seg(ACK, C + far + number, S + far).data(word.as_bytes()));
    }
    let out = gate.server(seg(ACK, S + far, C + far).data(b"reply"));
    assert_eq!(heard(&out), b"abc");
    assert_eq!(out.outside.iter().flat_map(|seg| seg.data.clone()).collect::<Vec<_>>(), b"reply");
    assert_eq!(gate.elapse(PARKED_TIME), Out::default(), "nobody is asked any more");
    assert_eq!((gate.scrubber.waits().kept, gate.scrubber.waits().in_vain), (4, 0));
}

/// The place of a connection that is gone is another one's.
#[test]
fn what_waits_ends_with_its_connection() {
    let ends: [fn(&mut Gate); 2] = [
        |gate| drop(gate.server(seg(SYN, S + 1_000_000, 0))),
        |gate| assert!(gate.scrubber.block(gate.now, &gate.id())),
    ];
    for end in ends {
        let mut gate = took_over(plain);
        gate.client(seg(ACK, C, S).data(b"word"));
        end(&mut gate);
        assert_eq!(gate.elapse(PARKED_TIME), Out::default());
        assert_eq!((gate.scrubber.waits().ended, gate.scrubber.waits().asked_again), (1, 0));
    }
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
