//! Two scrubbers with the same keys, of which the second goes on with what the first one told.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;
#[path = "told/waiting.rs"]
mod waiting;

use bump::{DropReason as Reason, Side};
use proptest::prelude::*;
use scrub::limits::{PARKED_ASK_AGAIN, PARKED_TIME};
use scrub::settings::Adopt;
use scrub::{BadRecord, Preset, Settings, Told};

use tcp_support::*;

const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;
const RECORD_MAX: usize = 200;

fn records(gate: &mut Gate) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    loop {
        let mut record = Vec::new();
        match gate.scrubber.next_record(gate.now, &mut record) {
            Told::Record => records.push(record),
            Told::Later => {}
            Told::Nothing => return records,
        }
        assert!(records.last().is_none_or(|record| record.len() <= RECORD_MAX));
    }
}

/// A gate that knows what `first` told.
fn successor(first: &mut Gate, settings: Settings) -> Gate {
    let mut second = Gate::new(settings);
    (second.ends, second.now) = (first.ends, first.now);
    first.scrubber.begin_round();
    for record in records(first) {
        assert_eq!(second.scrubber.take_record(second.now, &record), Ok(()));
    }
    assert!(first.scrubber.is_round_over());
    second
}

fn followed(settings: Settings) -> Gate {
    let mut gate = Gate::new(settings);
    gate.scrubber.follow_changes();
    gate
}

/// The receiver says first how far it is; then bytes pass, and what it acknowledged is not heard again.
#[test]
fn a_connection_goes_on_where_its_receiver_is() {
    let mut first = followed(plain());
    first.open();
    first.client(seg(ACK, C, S).data(b"acknowledged"));
    first.server(seg(ACK, S, C + 12));
    let mut second = successor(&mut first, plain());
    // It passed the first one and was not told any more.
    first.client(seg(ACK, C + 12, S).data(b"under way"));
    let question = second.client(seg(ACK, C + 12, S).data(b"under way"));
    assert_eq!((question.to_server().data.len(), question.to_server().sequence), (0, C + 11));
    let answer = second.server(seg(ACK, S, C + 21));
    assert_eq!(answer.to_client().acknowledgement, C + 21, "it is believed");
    let again = second.client(seg(ACK, C + 12, S).data(b"something"));
    assert!(again.inside.iter().all(|seg| seg.data.is_empty()), "nobody hears acknowledged bytes again: {again:?}");
    assert_eq!(second.client(seg(ACK, C + 21, S).data(b"new")).to_server().data, b"new");
    assert_eq!(second.client(seg(ACK, C + 21, S).data(b"NEW")).to_server().data, b"new", "the first version");
}

/// Its sender need not send it again, which would take as long as its timer says.
#[test]
fn what_became_a_question_goes_on_when_its_receiver_has_answered() {
    let mut first = followed(plain());
    first.open();
    let mut second = successor(&mut first, plain());
    assert_eq!(second.client(seg(ACK, C, S).data(b"word")).to_server().data, b"");
    assert_eq!(second.client(seg(ACK, C, S).data(b"WORD")).to_server().data, b"", "the first one waits");
    let answer = second.server(seg(ACK, S, C));
    assert_eq!((answer.to_client().acknowledgement, &answer.to_server().data[..]), (C, &b"word"[..]));
    assert_eq!(second.server(seg(ACK, S, C)).inside.len(), 0, "once");
    assert_eq!(second.client(seg(ACK, C, S).data(b"WORD")).to_server().data, b"word", "the first version");
}

/// Behind a hole its receiver would not answer, and its sender waits for the oldest byte.
#[test]
fn a_flight_whose_beginning_was_lost_is_asked_for_before_the_hole() {
    let mut first = followed(plain());
    first.open();
    let mut second = successor(&mut first, plain());
    for (at, data) in [(10, b"later"), (5, b"older"), (15, b"newer")] {
        let question = second.client(seg(ACK, C + at, S).data(data));
        assert_eq!((question.to_server().data.len(), question.to_server().sequence), (0, C - 1));
    }
    let heard: Vec<_> = second.server(seg(ACK, S, C + 5)).inside.into_iter().map(|seg| seg.data).collect();
    assert_eq!(heard, [b"later", b"older", b"newer"], "the whole flight, as it came");
    let waits = second.scrubber.waits();
    assert_eq!((waits.kept, waits.went_on, waits.in_vain), (3, 3, 0));
}

/// Its sender would ask again only when its timer is due, which may have doubled often.
#[test]
fn a_question_that_was_lost_is_asked_again() {
    let mut first = followed(plain());
    first.open();
    first.client(seg(ACK, C, S).data(b"heard"));
    first.server(seg(ACK, S, C + 5));
    let mut second = successor(&mut first, plain());
    second.client(seg(ACK, C + 5, S).data(b"word"));
    second.client(seg(ACK, C + 9, S).data(b"next"));
    let again = second.elapse(PARKED_ASK_AGAIN);
    assert_eq!((again.to_server().data.len(), again.to_server().sequence), (0, C + 4));
    assert_eq!(second.elapse(PARKED_ASK_AGAIN).inside.len(), 1);
    let heard: Vec<_> = second.server(seg(ACK, S, C + 5)).inside.into_iter().map(|seg| seg.data).collect();
    assert_eq!(heard, [b"word", b"next"]);
    assert_eq!(second.elapse(PARKED_TIME).inside.len(), 0, "nothing is asked any more");
    assert_eq!(second.scrubber.waits().asked_again, 2);
}

/// Where both directions are scrubbed a segment is a question to its receiver and the answer that
/// the other end waits for: it must not be taken for its own answer.
#[test]
fn what_answers_the_other_end_waits_for_its_own_answer() {
    let settings = || Settings { both_directions: true, ..plain() };
    let mut first = followed(settings());
    first.open();
    let mut second = successor(&mut first, settings());
    assert_eq!(second.client(seg(ACK, C, S).data(b"word")).to_server().data, b"");
    assert_eq!(second.server(seg(ACK, S, C)).to_server().data, b"word");
}

#[test]
fn a_fin_waits_as_well_and_super_frames_stay_whole() {
    let mut first = followed(plain());
    first.open();
    let mut second = successor(&mut first, plain());
    let long = vec![b'x'; 3000];
    let (question, _) = second.super_frame(Side::UNTRUSTED, &seg(ACK, C, S).data(&long), 1000);
    assert_eq!(question.to_server().data, b"");
    let answer = second.server(seg(ACK, S, C));
    let heard: Vec<u8> = answer.inside.iter().flat_map(|seg| seg.data.clone()).collect();
    assert_eq!(heard, long);
    let mut third = successor(&mut second, plain());
    assert_eq!(third.client(seg(ACK | FIN, C + 3000, S)).to_server().flags & FIN, 0);
    assert_eq!(third.server(seg(ACK, S, C + 3000)).to_server().flags & FIN, FIN);
}

#[test]
fn what_waits_in_vain_is_forgotten() {
    let mut first = followed(plain());
    first.open();
    let mut second = successor(&mut first, plain());
    second.client(seg(ACK, C, S).data(b"word"));
    second.elapse(PARKED_TIME);
    assert_eq!(second.server(seg(ACK, S, C)).inside.len(), 0);
    assert_eq!(second.scrubber.waits().in_vain, 1);
    let mut third = successor(&mut first, plain());
    third.client(seg(ACK, C, S).data(b"word"));
    third.scrubber.stand_by();
    assert_eq!(third.server(seg(ACK, S, C)).inside.len(), 0, "another one goes on");
}

/// However far the flow came since it was told, it goes on.
#[test]
fn a_flow_that_was_told_long_ago_goes_on() {
    let mut first = followed(plain());
    first.open();
    let mut second = successor(&mut first, plain());
    let far = 50_000_000;
    second.client(seg(ACK, C + far, S + far).data(b"x"));
    let reply = second.server(seg(ACK, S + far, C + far).data(b"reply"));
    assert_eq!((&reply.to_client().data[..], &reply.to_server().data[..]), (&b"reply"[..], &b"x"[..]));
    assert_eq!(second.client(seg(ACK, C + far + 1, S + far + 5).data(b"more")).to_server().data, b"more");
}

#[test]
fn what_was_refused_stays_refused() {
    let mut first = followed(plain());
    first.open();
    assert!(first.scrubber.block(first.now, &first.id()));
    let mut second = successor(&mut first, Settings { adopt: Adopt::All, ..plain() });
    second.client(seg(ACK, C, S).data(b"on")).is_dropped_for(Reason::FlowSevered);
    second.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::FlowSevered);
    assert!(second.scrubber.unblock(&second.id()));
}

#[test]
fn shifts_agree() {
    let settings = || Settings::preset(Preset::Balanced);
    let mut first = followed(settings());
    first.client(seg(SYN, CLIENT, 0));
    let shift = first.server(seg(SYN | ACK, SERVER, C)).to_client().sequence.wrapping_sub(SERVER);
    first.client(seg(ACK, C, S.wrapping_add(shift)));
    let mut second = successor(&mut first, settings());
    assert_eq!(second.server(seg(ACK, S, C).data(b"on")).to_client().sequence, S.wrapping_add(shift));
    let heard = second.client(seg(ACK, C, S.wrapping_add(shift) + 2).data(b"yes"));
    assert_eq!((heard.to_server().acknowledgement, &heard.to_server().data[..]), (S + 2, &b"yes"[..]));
}

/// A handshake is repeated by its hosts, so it is not told.
#[test]
fn only_what_stands_is_told() {
    let mut first = followed(plain());
    first.client(seg(SYN, CLIENT, 0));
    first.server(seg(SYN | ACK, SERVER, C));
    assert_eq!(records(&mut first).len(), 0);
    first.client(seg(ACK, C, S));
    (0..9).for_each(|_| drop(first.client(seg(ACK, C, S))));
    assert_eq!(records(&mut first).len(), 1, "once, however often it changed");
    assert_eq!(records(&mut first).len(), 0);
}

/// The one that stands by keeps nothing that it would believe later.
#[test]
fn a_gateway_that_stands_by_gives_back_what_it_retained() {
    let mut first = followed(plain());
    first.open();
    first.client(seg(ACK, C, S).data(b"retained"));
    assert!(first.scrubber.retained_bytes() > 0);
    first.scrubber.stand_by();
    assert_eq!((first.scrubber.retained_bytes(), first.scrubber.flow_counts(first.now).all), (0, 1));
    assert_eq!(first.client(seg(ACK, C + 8, S).data(b"x")).to_server().data.len(), 0, "it asks");
}

proptest! {
    #[test]
    fn no_bytes_make_a_record_that_panics(
        record in proptest::collection::vec(any::<u8>(), 0..200),
        from in 0..120_usize,
        bit in 0..8_u8,
    ) {
        let mut gate = Gate::new(plain());
        let _refused = gate.scrubber.take_record(gate.now, &record);
        let mut first = followed(plain());
        first.open();
        let mut told = records(&mut first).remove(0);
        let at = from % told.len();
        told[at] ^= 1 << bit;
        if gate.scrubber.take_record(gate.now, &told).is_ok() {
            gate.client(seg(ACK, C, S).data(b"x"));
            gate.server(seg(ACK, S, C + 1).data(b"y"));
            gate.client(seg(ACK | FIN, C + 1, S + 1));
            gate.server(seg(RST, S, 0));
        }
        told.truncate(at);
        prop_assert_eq!(gate.scrubber.take_record(gate.now, &told), Err(BadRecord));
    }
}
