//! Attacks 16 to 18 in their CLL form: frames that are no messages, and strangers in masses who want to be looked up, answered and
//! remembered.

use std::collections::BTreeSet;
use std::time::Duration;

use bump::Generator;
use wire::cll::PacketType;
use wire::ethernet::{HEADER_LEN, Header};
use wire::{EtherType, MacAddress};

use crate::attack::scene::{Finding, MARKED_LEN, Record, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, process};

const SWEEP_PROGRAM: &str = include_str!("sweep.py");
const PORT: u16 = 9016;
/// Frames of made-up hosts, and how fast they come.
const STRANGERS: u16 = 2000;
const PER_SECOND: u32 = 2000;
/// Hosts of the LAN in whose name a is pinged: those from 10.77.0.30 to 10.77.0.229.
const SWEPT: [u8; 2] = [30, 229];
/// Entries for addresses that nobody has, from which on the table of a counts as swept.
const SWEPT_ENTRIES: usize = 150;
/// A host opens at most eight handshakes a second for unknown indices, and repeats each; on a loaded machine the window is seconds.
const HANDSHAKES_MAX: usize = 100;
const CAPTURE_LIMIT: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_millis(300);

/// Attack 16: messages of every type that are cut short, or random behind their first byte, and other versions.
pub fn malformed_messages(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, m) = (scene.host("a")?, scene.host("m")?);
    let genuine = genuine_messages(scene)?;
    let mut random = Generator::from_seed([16; 32]);
    let mut flood: Vec<Frame> = Vec::new();
    for frame in &genuine {
        let body = &frame.0[HEADER_LEN..];
        flood.extend((1..body.len()).step_by(7).map(|len| message(m.mac, a.mac, &body[..len])));
    }
    for first in 0..=u8::MAX {
        let mut body = vec![first; 1 + random.below(200) as usize];
        body[1..].iter_mut().for_each(|byte| *byte = random.bytes::<1>()[0]);
        flood.push(message(m.mac, a.mac, &body));
    }
    let window = scene.open()?;
    scene.replay(&flood, PER_SECOND / 4)?;
    process::pause(REST)?;
    let record = scene.close(window)?;
    let from_m = count(&record.inside, |frame| frame.source() == m.mac);
    Ok(Finding {
        reached: from_m > 0 || !record.ping.lived(),
        harmless: from_m == 0 && record.ping.lived(),
        struck: count(&record.wire, |frame| frame.is_between(m.mac, a.mac)),
        said: format!("{from_m} of {} broken messages reached a's stack, and a lives", flood.len()),
        record,
    })
}

/// A message of each kind that b says to a, or to all, while they get to know each other.
fn genuine_messages(scene: &Scene<'_>) -> Result<Vec<Frame>, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let spy = scene.spy()?;
    scene.lan.acquaint(&b, &a)?;
    Mailbox::open(&b, PORT)?.shout(PORT, &scene.token("to all"))?;
    spy.await_frame("b's announcement", CAPTURE_LIMIT, |frame| frame.cll_type() == Some(PacketType::Announcement))?;
    let mut kinds = BTreeSet::new();
    let mut heard = spy.stop()?;
    heard.retain(|frame| frame.cll_type().is_some_and(|kind| kinds.insert(kind.first_byte())));
    Ok(heard)
}

fn message(source: MacAddress, destination: MacAddress, body: &[u8]) -> Frame {
    let header = Header { destination, source, ethertype: EtherType::CLL };
    Frame([&header.emit()[..], body].concat())
}

/// Attack 17: sealed frames of made-up hosts under made-up indices, each of which might be a peer that was forgotten. The aim is that
/// a opens a handshake with each.
pub fn forgotten_peers(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    scene.lan.acquaint(&b, &a)?;
    let spy = scene.spy()?;
    Mailbox::open(&b, PORT)?.send(&a, PORT, &scene.token("payload"));
    let is_sealed = |frame: &Frame| frame.is_between(b.mac, a.mac) && frame.0.len() >= MARKED_LEN;
    let sealed = spy.await_frame("a sealed frame of b", CAPTURE_LIMIT, is_sealed)?;
    let made_up = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let mut frame = sealed.with_addresses(MacAddress([2, 0x17, 0, 0, high, low]), a.mac);
        frame.0[HEADER_LEN + 2..HEADER_LEN + 6].copy_from_slice(&[0x17, 0, high, low]);
        frame
    };
    let flood: Vec<Frame> = (0..STRANGERS).map(made_up).collect();
    let window = scene.open()?;
    scene.replay(&flood, PER_SECOND)?;
    process::pause(REST)?;
    let record = scene.close(window)?;
    let asked = asked_by(a.mac, &record);
    Ok(Finding {
        reached: asked * 10 >= usize::from(STRANGERS) * 9,
        harmless: asked <= HANDSHAKES_MAX && record.ping.lived(),
        struck: count(&record.wire, |frame| frame.source().0.starts_with(&[2, 0x17])),
        said: format!("a asked {asked} of {STRANGERS} made-up hosts for a handshake"),
        record,
    })
}

fn asked_by(mac: MacAddress, record: &Record) -> usize {
    count(&record.loot, |frame| frame.source() == mac && frame.cll_type() == Some(PacketType::HandshakeRequest))
}

/// Attack 18: a is pinged in the name of every host that the LAN could have, and is to resolve and remember them all.
pub fn swept_table(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, m) = (scene.host("a")?, scene.host("m")?);
    let window = scene.open()?;
    let words = [m.mac.to_string(), a.mac.to_string(), a.ip.to_string(), SWEPT[0].to_string(), SWEPT[1].to_string()];
    let words: Vec<String> = [INTERFACE.to_owned()].into_iter().chain(words).collect();
    scene.scapy(&m, SWEEP_PROGRAM, &words)?;
    process::pause(REST)?;
    let table = a.namespace.ip(&format!("neigh show dev {INTERFACE} nud all"))?;
    let is_swept = |line: &&str| {
        let address = line.split_whitespace().next().and_then(|word| word.strip_prefix("10.77.0."));
        address.and_then(|last| last.parse::<u8>().ok()).is_some_and(|last| (SWEPT[0]..=SWEPT[1]).contains(&last))
    };
    let entries = table.lines().filter(is_swept).count();
    let record = scene.close(window)?;
    let in_names = |frame: &Frame| frame.is_between(m.mac, a.mac) && frame.ipv4_source().is_some();
    Ok(Finding {
        reached: entries >= SWEPT_ENTRIES,
        harmless: entries == 0 && asked_by(a.mac, &record) == 0 && count(&record.inside, in_names) == 0,
        struck: count(&record.wire, in_names),
        said: format!("a's table has {entries} entries for hosts that do not exist"),
        record,
    })
}
