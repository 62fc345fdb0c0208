//! Attack 44: somebody on the path changes single bits.

use std::time::Duration;

use crate::attack::scene::{Finding, MARKED_LEN, Scene, count};
use crate::failure::Failure;
use crate::net::talk::Mailbox;
use crate::net::{Frame, process};

const PORT: u16 = 9044;
const TIMES: usize = 60;

/// Attack 44: b sends to a over a link that flips one bit in each long frame; header, ciphertext and tag take turns.
pub fn flipped_bits(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let (inbox, outbox) = (Mailbox::open(&a, PORT)?, Mailbox::open(&b, PORT)?);
    let token = scene.token("payload");
    scene.lan.acquaint(&b, &a)?;
    let window = scene.open()?;
    for _ in 0..TIMES {
        outbox.send(&a, PORT, &token);
        process::pause(Duration::from_millis(10))?;
    }
    let record = scene.close(window)?;
    let flipped = usize::try_from(scene.lan.end_link()?.left.corrupted).unwrap_or(usize::MAX);
    let delivered = inbox.take()?;
    let altered = delivered.iter().filter(|(_, payload)| *payload != token).count();
    let long = |frame: &Frame| frame.source() == b.mac && frame.0.len() >= MARKED_LEN;
    Ok(Finding {
        reached: altered > 0,
        harmless: delivered.is_empty() && count(&record.inside, long) == 0,
        struck: count(&record.wire, long).min(flipped),
        said: format!("{altered} altered datagrams delivered"),
        record,
    })
}
