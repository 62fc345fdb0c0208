//! Attack 44: somebody on the path changes single bits.

use std::time::Duration;

use crate::attack::scene::{Finding, MARKED_LEN, Scene, count};
use crate::failure::Failure;
use crate::net::talk::Mailbox;
use crate::net::{Frame, process};

const PORT: u16 = 9044;
const TIMES: usize = 60;
const FLIP_LIMIT: Duration = Duration::from_secs(5);

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
    let flips = |scene: &Scene<'_>| {
        let output = scene.link.as_ref().map(|link| link.output()).unwrap_or_default();
        output.lines().filter(|line| line.starts_with("flipped")).count()
    };
    process::within(FLIP_LIMIT, || Ok(flips(scene) >= TIMES))?;
    let record = scene.close(window)?;
    let delivered = inbox.take()?;
    let altered = delivered.iter().filter(|(_, payload)| *payload != token).count();
    let long = |frame: &Frame| frame.source() == b.mac && frame.0.len() >= MARKED_LEN;
    Ok(Finding {
        reached: altered > 0,
        harmless: delivered.is_empty() && count(&record.inside, long) == 0,
        struck: count(&record.wire, long).min(flips(scene)),
        said: format!("{altered} altered datagrams delivered"),
        record,
    })
}
