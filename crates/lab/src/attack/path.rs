//! Attacks 43 to 45 sit on the wire of host b: what the link there does to frames, and the two of them that double, delay and resize
//! frames. The one that flips bits is in `flipping`.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::attack::scene::{Finding, MARKED_LEN, Record, Scene, count};
use crate::failure::Failure;
use crate::net::process;
use crate::net::talk::Mailbox;

const PORT: u16 = 9043;
/// Datagrams of b; with their copies they fit the receiver's socket.
const TIMES: u8 = 40;
/// They leave so many at a time, close enough to be overtaken.
const AT_A_TIME: u8 = 5;
const BETWEEN: Duration = Duration::from_millis(25);
/// So much of a payload is in every frame of it, however short.
const PIECE_LEN: usize = 64;

/// Attack 43: each long frame of b comes twice, and later ones overtake it.
pub fn doubled_and_reordered(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (delivered, record) = send(scene)?;
    let link_did = scene.lan.end_link()?.left;
    let different = delivered.iter().collect::<BTreeSet<_>>().len();
    let (again, missing) = (delivered.len() - different, usize::from(TIMES) - different);
    let b = scene.host("b")?;
    let from_b = count(&record.wire, |frame| frame.source() == b.mac && frame.0.len() >= MARKED_LEN);
    Ok(Finding {
        reached: again > 0,
        harmless: again == 0 && missing == 0,
        struck: from_b.min(usize::try_from(link_did.duplicated).unwrap_or(usize::MAX)),
        said: format!(
            "{again} of {TIMES} datagrams delivered again, {missing} missing, {} overtaken",
            link_did.reordered
        ),
        record,
    })
}

/// Attack 45: each long frame of b loses bytes at its end, or gets some.
pub fn resized(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (delivered, record) = send(scene)?;
    let resized = usize::try_from(scene.lan.end_link()?.left.corrupted).unwrap_or(usize::MAX);
    let altered = delivered.iter().filter(|payload| payload.len() != MARKED_LEN).count();
    let piece = &scene.token("payload")[..PIECE_LEN];
    Ok(Finding {
        reached: altered > 0,
        harmless: delivered.is_empty() && count(&record.inside, |frame| frame.contains(piece)) == 0,
        struck: resized,
        said: format!("{altered} datagrams delivered with another length"),
        record,
    })
}

/// Sends numbered payloads from b to a; returns what a was given, and what the witnesses saw.
fn send(scene: &Scene<'_>) -> Result<(Vec<Vec<u8>>, Record), Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let (inbox, outbox) = (Mailbox::open(&a, PORT)?, Mailbox::open(&b, PORT)?);
    scene.lan.acquaint(&b, &a)?;
    let window = scene.open()?;
    let mut payload = scene.token("payload");
    for number in 0..TIMES {
        payload[MARKED_LEN - 1] = number;
        outbox.send(&a, PORT, &payload);
        if number % AT_A_TIME == 0 {
            process::pause(BETWEEN)?;
        }
    }
    process::pause(Duration::from_millis(100))?;
    let record = scene.close(window)?;
    Ok((inbox.take()?.into_iter().map(|(_, payload)| payload).collect(), record))
}
