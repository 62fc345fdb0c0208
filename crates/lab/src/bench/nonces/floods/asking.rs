//! Somebody who asks a host that signs its ARP where it is, as every stack does from time to time of those it speaks with, while others
//! flood that host with questions. Who is not answered loses the host, however well the streams of others fare.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bump::Batch as _;
use system::port::{PacketPort, Receiver, Sender};
use wire::EtherType;
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header};

use crate::bench::nonces::peer::question;
use crate::failure::Failure;
use crate::net::frame::Frame;
use crate::net::lan::INTERFACE;
use crate::net::{Host, link};

/// Between two questions; what is not answered before the next is late.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long it rests between two looks for an answer, which is how exact the times are.
const REST: Duration = Duration::from_micros(100);

/// What came of the questions.
#[derive(Clone, Debug, Default)]
pub struct Answered {
    /// How long each answer took that was in time, in milliseconds.
    pub after_ms: Vec<f64>,
    /// Questions that were asked.
    pub asked: usize,
}

/// Asks as the stack of `own` does where `other` is, through the daemon that stands between, one question after the other until it is over.
///
/// # Errors
/// The port cannot be opened, or it breaks.
pub fn ask_until(over: &AtomicBool, own: &Host, other: &Host) -> Result<Answered, Failure> {
    let mut port = own.namespace.enter(|| link::open_for_arp(INTERFACE))?;
    let (question, mut answered) = (Frame(question(own, other)), Answered::default());
    while !over.load(Ordering::Relaxed) {
        let start = Instant::now();
        link::put(&mut port, &question);
        port.sender.flush();
        answered.asked += 1;
        if let Some(time) = await_answer(&mut port, start, (own, other))? {
            answered.after_ms.push(time.as_secs_f64() * 1e3);
        }
        thread::sleep(INTERVAL.saturating_sub(start.elapsed()));
    }
    Ok(answered)
}

/// How long the answer takes to what was asked at `start`, if it comes in time.
fn await_answer(
    port: &mut PacketPort,
    start: Instant,
    (own, other): (&Host, &Host),
) -> Result<Option<Duration>, Failure> {
    while start.elapsed() < INTERVAL {
        if is_answered(port, own, other)? {
            return Ok(Some(start.elapsed()));
        }
        thread::sleep(REST);
    }
    Ok(None)
}

fn is_answered(port: &mut PacketPort, own: &Host, other: &Host) -> Result<bool, Failure> {
    let mut is_answered = false;
    while port.receiver.fill().map_err(Failure::io("hearing an answer"))? {
        while let Some(frame) = port.receiver.next_frame() {
            is_answered |= is_answer(frame.bytes, own, other);
        }
    }
    Ok(is_answered)
}

/// Whether this is an answer of `other` to `own`. It came with a signature, which the daemon of `own` has checked and taken off.
fn is_answer(frame: &[u8], own: &Host, other: &Host) -> bool {
    let of_arp = Header::parse(frame).is_ok_and(|(header, _)| header.ethertype == EtherType::ARP);
    let Some(Ok(said)) = frame.get(HEADER_LEN..).filter(|_| of_arp).map(Arp::parse) else { return false };
    (said.operation, said.sender_ip, said.target_mac) == (Operation::Reply, other.ip, own.mac)
}
