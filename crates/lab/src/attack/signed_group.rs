//! Attacks 55 to 57 on frames to groups that are signed: recorded before a restart, hiding a packet for one host, and the
//! certificates that come with them.

use std::time::Duration;

use bump::Generator;
use wire::cll::PacketType;
use wire::ethernet::HEADER_LEN;

use crate::attack::injection::UDP_PROGRAM;
use crate::attack::scene::{Finding, MARKED_LEN, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, process};

const PORT: u16 = 9055;
/// How often the recorded frame is sent.
const COPIES: usize = 5;
const PER_SECOND: u32 = 20;
/// Announcements of a flood, and how fast they come.
const ANNOUNCEMENTS: usize = 2000;
const ANNOUNCED_PER_SECOND: u32 = 2000;
/// Where an announcement repeats the nonce of a question (docs/protocol.md, section 21).
const NONCE_AT: usize = HEADER_LEN + 40;
const CAPTURE_LIMIT: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_millis(300);
/// Public key work, done in vain, ends in one of these.
const PUBLIC_KEY_WORK: [&str; 3] = ["bad-certificate", "bad-signature", "certificate-address"];

/// Attack 55: what b said to all is said again, after a was restarted and remembers nothing of it.
pub fn replay_across_a_restart(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let (inbox, outbox) = (Mailbox::open(&a, PORT)?, Mailbox::open(&b, PORT)?);
    let token = scene.token("to all");
    let spy = scene.spy()?;
    outbox.shout(PORT, &token)?;
    let is_said =
        |frame: &Frame| frame.source() == b.mac && frame.destination().is_broadcast() && frame.0.len() >= MARKED_LEN;
    let recorded = spy.await_frame("b's frame to all", CAPTURE_LIMIT, is_said)?;
    let mut heard = 0;
    process::until("b's words at a", CAPTURE_LIMIT, || {
        heard += inbox.take()?.len();
        Ok(heard > 0)
    })?;
    if let Some(daemon) = scene.daemon("a") {
        daemon.restart()?;
    }
    let window = scene.open()?;
    scene.replay(&vec![recorded.clone(); COPIES], PER_SECOND)?;
    process::pause(Duration::from_secs(2))?;
    let record = scene.close(window)?;
    let again = inbox.take()?.iter().filter(|(_, payload)| *payload == token).count();
    Ok(Finding {
        reached: again > 0,
        harmless: again == 0 && count(&record.inside, |frame| frame.contains(&token)) == 0,
        struck: count(&record.wire, |frame| *frame == recorded),
        said: format!("{again} copies of what b said to all delivered again"),
        record,
    })
}

/// Attack 56: an enrolled host sends a packet for a alone in a frame to all, which passes filters for one and costs all.
pub fn packet_for_one(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, i) = (scene.host("a")?, scene.host("i")?);
    let inbox = Mailbox::open(&a, PORT)?;
    let token = scene.token("for one");
    let file = scene.file("payload");
    std::fs::write(&file, &token).map_err(Failure::file("writing", &file))?;
    scene.lan.acquaint(&i, &a)?;
    let window = scene.open()?;
    let addresses = [i.mac.to_string(), wire::MacAddress::BROADCAST.to_string(), i.ip.to_string(), a.ip.to_string()];
    let rest = [PORT.to_string(), COPIES.to_string(), file.to_string_lossy().into_owned()];
    let words: Vec<String> = [INTERFACE.to_owned()].into_iter().chain(addresses).chain(rest).collect();
    scene.scapy(&i, UDP_PROGRAM, &words)?;
    process::pause(REST)?;
    let record = scene.close(window)?;
    let delivered = inbox.take()?.iter().filter(|(_, payload)| *payload == token).count();
    let said_to_all =
        |frame: &Frame| frame.source() == i.mac && frame.destination().is_broadcast() && frame.0.len() >= MARKED_LEN;
    Ok(Finding {
        reached: delivered > 0,
        harmless: delivered == 0 && count(&record.inside, |frame| frame.contains(&token)) == 0,
        struck: count(&record.wire, said_to_all),
        said: format!("{delivered} packets for a alone, in frames to all, delivered"),
        record,
    })
}

/// Attack 57: the certificate by which b proved itself to a is sent to a again and again, as it was and under other nonces. The aim
/// is public key work.
pub fn flood_of_certificates(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let spy = scene.spy()?;
    Mailbox::open(&b, PORT)?.shout(PORT, &scene.token("to all"))?;
    let announcement = spy.await_frame("b's announcement to a", CAPTURE_LIMIT, |frame| {
        frame.is_between(b.mac, a.mac) && frame.cll_type() == Some(PacketType::Announcement)
    })?;
    let mut random = Generator::from_seed([57; 32]);
    let renamed = |number: usize| {
        let mut frame = announcement.clone();
        if number % 2 == 1 {
            frame.0[NONCE_AT..NONCE_AT + 16].copy_from_slice(&random.bytes::<16>());
        }
        frame
    };
    let flood: Vec<Frame> = (0..ANNOUNCEMENTS).map(renamed).collect();
    let window = scene.open()?;
    scene.replay(&flood, ANNOUNCED_PER_SECOND)?;
    process::pause(REST)?;
    let record = scene.close(window)?;
    let work: u64 = PUBLIC_KEY_WORK.iter().filter_map(|word| record.drops.get(*word)).sum();
    let is_announcement = |frame: &Frame| frame.cll_type() == Some(PacketType::Announcement);
    Ok(Finding {
        reached: work >= 100,
        harmless: work == 0 && record.ping.lived(),
        struck: count(&record.wire, is_announcement),
        said: format!("{work} certificates or signatures were checked for {ANNOUNCEMENTS} announcements"),
        record,
    })
}
