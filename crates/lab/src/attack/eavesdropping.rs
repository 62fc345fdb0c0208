//! Attack 46: somebody listens on a mirror port for something known.

use std::time::Duration;

use wire::EtherType;

use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::talk::Mailbox;
use crate::net::{Frame, process};

const PORT: u16 = 9046;
const TIMES: usize = 10;

/// Attack 46: a and b exchange a payload that the attacker looks for in all it can hear.
pub fn known_payload(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let (box_a, box_b) = (Mailbox::open(&a, PORT)?, Mailbox::open(&b, PORT)?);
    let token = scene.token("secret");
    let window = scene.open()?;
    for _ in 0..TIMES {
        box_a.send(&b, PORT, &token);
        box_b.send(&a, PORT, &token);
        process::pause(Duration::from_millis(50))?;
    }
    let record = scene.close(window)?;
    let arrived = box_a.take()?.len() + box_b.take()?.len();
    let theirs = |frame: &Frame| frame.is_between(a.mac, b.mac) || frame.is_between(b.mac, a.mac);
    let heard = count(&record.loot, theirs);
    let readable = count(&record.loot, |frame| frame.contains(&token));
    let kinds_shown = count(&record.loot, |frame| theirs(frame) && !frame.is(EtherType::CLL));
    Ok(Finding {
        reached: readable > 0,
        harmless: readable == 0 && kinds_shown == 0 && arrived == 2 * TIMES,
        struck: heard,
        said: format!("m reads {readable} of {arrived} payloads, hears {heard} frames"),
        record,
    })
}
