//! Attack 11 in its CLL form: a handshake that was captured earlier is played again.
//!
//! Both hosts are restarted in between, so that neither remembers the handshake: only proofs of freshness can stop it.

use std::time::Duration;

use wire::cll::PacketType;

use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::lan::Lan;
use crate::net::{Direction, Frame, Host, Watch, process};

/// Rounds of the replay.
const ROUNDS: usize = 20;
const PER_SECOND: u32 = 20;
/// How long two hosts get to settle into a new association.
const SETTLE: Duration = Duration::from_millis(1200);

/// Attack 11: b's request and a's reply of their previous lives are replayed while both talk under a newer association.
/// The aim is that a moves to an association whose other end is gone, so that the two lose each other.
pub fn replayed_handshake(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let request = |frame: &Frame| frame.source() == b.mac && frame.cll_type() == Some(PacketType::HandshakeRequest);
    let from_a = |frame: &Frame, kind| frame.is_between(a.mac, b.mac) && frame.cll_type() == Some(kind);
    let reply = |frame: &Frame| from_a(frame, PacketType::HandshakeReply);
    let captured = capture(scene, &a, &b, |frame| request(frame) || reply(frame))?;
    let replayed = |frame: &Frame| captured.contains(frame);
    let window = scene.open()?;
    let wire_of_a = Watch::start(&scene.lan.bridge, &Lan::port(&a), Direction::Out, &scene.lan.directory, "wire-of-a")?;
    scene.replay(&std::iter::repeat_n(&captured, ROUNDS).flatten().cloned().collect::<Vec<_>>(), PER_SECOND)?;
    let requests = count(&wire_of_a.stop()?, |frame| request(frame) && replayed(frame));
    let record = scene.close(window)?;
    let replies = count(&record.wire, |frame| reply(frame) && replayed(frame));
    let challenges = count(&record.loot, |frame| from_a(frame, PacketType::Challenge));
    let answers = count(&record.loot, |frame| reply(frame) && !replayed(frame));
    let ping = record.ping;
    Ok(Finding {
        reached: !ping.lived(),
        harmless: ping.lived() && answers == 0,
        struck: requests.min(replies),
        said: format!(
            "a challenged {challenges} times and gave {answers} new answers, {} of {} pings lived",
            ping.received, ping.sent
        ),
        record,
    })
}

/// Listens to a handshake that b opens, restarts both, and lets them settle into the next association.
pub(super) fn capture(
    scene: &mut Scene<'_>,
    a: &Host,
    b: &Host,
    wanted: impl Fn(&Frame) -> bool,
) -> Result<Vec<Frame>, Failure> {
    let spy = scene.spy()?;
    scene.lan.acquaint(b, a)?;
    let captured: Vec<Frame> = spy.stop()?.into_iter().filter(wanted).collect();
    for name in [a.name, b.name] {
        if let Some(daemon) = scene.daemon(name) {
            daemon.restart()?;
        }
    }
    scene.lan.acquaint(b, a)?;
    process::pause(SETTLE)?;
    Ok(captured)
}
