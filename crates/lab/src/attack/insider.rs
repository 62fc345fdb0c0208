//! Attack 13: a host with a certificate of its own speaks in another's name, inside an honest association.

use std::time::Duration;

use crate::attack::injection::{UDP_PROGRAM, datagram};
use crate::attack::scene::{Finding, MARKED_LEN, Scene, count};
use crate::failure::Failure;
use crate::net::talk::Mailbox;
use crate::net::{Frame, process};

const PORT: u16 = 9013;

/// Attack 13: host i sends a datagram with b's address; its own daemon seals it without objection.
pub fn claims_another_address(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, i) = (scene.host("a")?, scene.host("b")?, scene.host("i")?);
    let inbox = Mailbox::open(&a, PORT)?;
    let token = scene.token("lie");
    let file = scene.file("payload");
    std::fs::write(&file, &token).map_err(Failure::file("writing", &file))?;
    scene.lan.acquaint(&i, &a)?;
    let window = scene.open()?;
    scene.scapy(&i, UDP_PROGRAM, &datagram(&i, &b, &a, PORT, &file.to_string_lossy()))?;
    process::pause(Duration::from_millis(200))?;
    let record = scene.close(window)?;
    let lies = |frame: &Frame| frame.contains(&token);
    let sealed = |frame: &Frame| frame.is_between(i.mac, a.mac) && frame.0.len() >= MARKED_LEN;
    let delivered = inbox.take()?.iter().filter(|(sender, payload)| sender.ip() == b.ip && *payload == token).count();
    Ok(Finding {
        reached: delivered > 0,
        harmless: delivered == 0 && count(&record.inside, lies) == 0,
        struck: count(&record.wire, sealed),
        said: format!("{delivered} datagrams of i reached a in b's name"),
        record,
    })
}
