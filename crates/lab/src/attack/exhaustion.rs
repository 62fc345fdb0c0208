//! Attack 58: floods of frames that cost their receiver more than they cost the attacker, layer by layer (Touch and Yang, section 3.3).
//!
//! What an attacker buys is counted and not timed: frames that the daemon had to look at, tags that it computed, public key work that
//! it did. How much of a stream that takes away is what `bench nonces` measures.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bump::Generator;
use wire::cll::PacketType;
use wire::ethernet::HEADER_LEN;

use crate::attack::scene::{Finding, MARKED_LEN, Record, Scene};
use crate::failure::Failure;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, process};

const PORT: u16 = 9058;
/// Frames of a flood, and how fast they come.
const FRAMES: u32 = 2000;
const PER_SECOND: u32 = 2000;
const CAPTURE_LIMIT: Duration = Duration::from_secs(5);
/// How long the last frames get to have their fate.
const REST: Duration = Duration::from_millis(300);
/// Where a data frame has its fields (docs/protocol.md, section 5).
const INDEX_AT: usize = HEADER_LEN + 2;
const SEQUENCE_AT: usize = HEADER_LEN + 6;
const SPIN_AT: usize = HEADER_LEN + 10;
/// How far the number of a frame may be ahead of the newest.
const FAR_AHEAD: u32 = 1 << 24;
/// How often an attacker who burns numbers goes as far ahead as he may.
const LEAPS: u32 = 8;
/// Where a handshake has its fields (docs/protocol.md, section 4).
const SITE_TAG_AT: usize = HEADER_LEN + 2;
const ARP_SENDER_AT: usize = HEADER_LEN + 18 + 8;
const TIMESTAMP_AT: usize = HEADER_LEN + 46;
const NONCE_AT: usize = HEADER_LEN + 54;
/// Where a group frame has its fields (docs/protocol.md, section 21).
const GROUP_TIME_AT: usize = HEADER_LEN + 26;
const GROUP_PAYLOAD_AT: usize = HEADER_LEN + 45;
/// Where a host of the LAN sends what is for all.
const ALL: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 255);
/// Frames to all by which others come to know who sends them, and the time between two.
const GREETINGS: usize = 4;
const GREETING_PAUSE: Duration = Duration::from_millis(250);
/// Answers to replayed requests from which on they are a price: a host gives four a second to one source.
const ANSWERS_DEAR: usize = 4;
/// The same where nothing holds it back but the work itself.
const ANSWERS_WITHOUT_BUDGETS: usize = 100;
/// Public key work, done in vain, ends in one of these.
const PUBLIC_KEY_WORK: [&str; 3] = ["bad-certificate", "bad-signature", "certificate-address"];
/// So many of them in a second and a half are a price.
const DEAR: u64 = 100;

/// 58 a: frames of no association. The aim is that the daemon is woken for each of them, instead of the kernel dropping it.
pub fn wrong_index(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let sealed = sealed_frame(scene)?;
    let flood = data_flood(&sealed, |frame, number| {
        put(frame, INDEX_AT, !word(frame, INDEX_AT));
        put(frame, SEQUENCE_AT, word(frame, SEQUENCE_AT).wrapping_add(1 + number));
    });
    let in_kernel = |scene: &mut Scene<'_>| -> Result<u64, Failure> {
        let victim = scene.attack.victim;
        let said = scene.daemon(victim).map(|daemon| daemon.status()).transpose()?;
        Ok(said.and_then(|said| said["layers"]["dropped_in_kernel"]["unknown-index"].as_u64()).unwrap_or(0))
    };
    let before = in_kernel(scene)?;
    let record = strike(scene, &flood, PER_SECOND)?;
    let dropped = risen(&record, "unknown-index");
    let looked_at = dropped.saturating_sub(in_kernel(scene)?.saturating_sub(before));
    Ok(Finding {
        reached: looked_at * 10 >= u64::from(FRAMES) * 9,
        harmless: dropped * 10 >= u64::from(FRAMES) * 9 && looked_at * 10 <= u64::from(FRAMES),
        struck: arrived(&record, &flood),
        said: format!("the daemon had to look at {looked_at} of {FRAMES} forged frames"),
        record,
    })
}

/// 58 b: frames of an association, under numbers that are due, with a wrong nonce. The aim is that each costs a tag.
pub fn wrong_nonce(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let sealed = sealed_frame(scene)?;
    let flood = data_flood(&sealed, |frame, number| {
        put(frame, SEQUENCE_AT, word(frame, SEQUENCE_AT).wrapping_add(1000 + number));
        put(frame, SPIN_AT, !word(frame, SPIN_AT));
    });
    let record = strike(scene, &flood, PER_SECOND)?;
    Ok(tags_computed(record, &flood, "forged frames"))
}

/// 58 c: a frame of b that a has taken, again and again, with all nonces as they were and a wrong tag. The aim is that each costs a tag.
pub fn wrong_tag(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let sealed = sealed_frame(scene)?;
    let flood = data_flood(&sealed, |frame, number| {
        if let Some(end) = frame.last_chunk_mut::<4>() {
            // Never the tag that was right.
            *end = (u32::from_be_bytes(*end) ^ (1 + number)).to_be_bytes();
        }
    });
    let record = strike(scene, &flood, PER_SECOND)?;
    Ok(tags_computed(record, &flood, "frames with right nonces and wrong tags"))
}

/// How many tags the victim computed for a flood of data frames, `what` they were. The aim is one for each.
fn tags_computed(record: Record, flood: &[Frame], what: &str) -> Finding {
    let tags = risen(&record, "bad-tag");
    Finding {
        reached: tags * 10 >= u64::from(FRAMES) * 9,
        harmless: tags == 0,
        struck: arrived(&record, flood),
        said: format!("{tags} tags were computed for {FRAMES} {what}"),
        record,
    }
}

/// 58 e: a request of b from before both were restarted, again and again. The aim is that each has a certificate and a signature
/// checked and an answer signed.
pub fn handshake_replay(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    replayed_requests(scene, ANSWERS_DEAR)
}

/// 58 e where no budget stands behind freshness either: as many as there is time for.
pub fn handshake_replay_without_budgets(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    replayed_requests(scene, ANSWERS_WITHOUT_BUDGETS)
}

/// From `dear` answers on they are a price.
fn replayed_requests(scene: &mut Scene<'_>, dear: usize) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let is_request = |frame: &Frame| frame.cll_type() == Some(PacketType::HandshakeRequest);
    let recorded = super::handshake::capture(scene, &a, &b, |frame| frame.source() == b.mac && is_request(frame))?;
    let flood: Vec<Frame> = recorded.first().into_iter().cycle().take(FRAMES as usize).cloned().collect();
    let record = strike(scene, &flood, PER_SECOND)?;
    let is_answer =
        |frame: &&Frame| frame.is_between(a.mac, b.mac) && frame.cll_type() == Some(PacketType::HandshakeReply);
    let answers = record.loot.iter().filter(is_answer).count();
    Ok(Finding {
        reached: answers >= dear,
        harmless: answers == 0,
        struck: arrived(&record, &flood),
        said: format!("a checked and signed for {answers} of {FRAMES} replayed requests"),
        record,
    })
}

/// 58 f: frames to all in b's name, newer than any, each with another payload and so with a signature to check.
pub fn group_flood(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let b = scene.host("b")?;
    let heard = group_frame(scene, &b)?;
    let mut random = Generator::from_seed([59; 32]);
    let flood: Vec<Frame> = (0..FRAMES).map(|number| forged_group_frame(&heard, number, &mut random)).collect();
    let record = strike(scene, &flood, PER_SECOND)?;
    let checked = risen(&record, "bad-signature");
    Ok(Finding {
        reached: checked >= DEAR,
        harmless: checked == 0,
        struck: arrived(&record, &flood),
        said: format!("{checked} signatures were checked for {FRAMES} forged frames to all"),
        record,
    })
}

/// 58 d: requests for a handshake, each from another hardware address and with b's certificate. The aim is public key work.
pub fn handshake_flood(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let spy = scene.spy()?;
    scene.lan.acquaint(&b, &a)?;
    let request = spy.await_frame("a request of b", CAPTURE_LIMIT, |frame| {
        frame.source() == b.mac && frame.cll_type() == Some(PacketType::HandshakeRequest)
    })?;
    let mut random = Generator::from_seed([58; 32]);
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let flood: Vec<Frame> = (0..FRAMES).map(|_| forged_request(&request, now_ms, &mut random)).collect();
    let record = strike(scene, &flood, PER_SECOND)?;
    let work: u64 = PUBLIC_KEY_WORK.iter().map(|word| risen(&record, word)).sum();
    Ok(Finding {
        reached: work >= DEAR,
        harmless: work == 0,
        struck: arrived(&record, &flood),
        said: format!("{work} certificates or signatures were checked for {FRAMES} forged requests"),
        record,
    })
}

/// 58 g: frames under numbers as far ahead as they may be. The aim is that those of b are old from then on.
pub fn burnt_numbers(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let sealed = sealed_frame(scene)?;
    let start = word(&sealed.0, SEQUENCE_AT);
    let leaps = (1..=LEAPS).map(|leap| {
        let mut frame = sealed.clone();
        // A little less, for b goes on meanwhile in none but the right direction.
        put(&mut frame.0, SEQUENCE_AT, start.wrapping_add(leap * (FAR_AHEAD - 1000)));
        frame
    });
    let flood: Vec<Frame> = leaps.collect();
    let record = strike(scene, &flood, PER_SECOND / 100)?;
    let ping = record.ping;
    Ok(Finding {
        reached: !ping.lived() && risen(&record, "too-old") > 0,
        harmless: ping.lived(),
        struck: arrived(&record, &flood),
        said: format!("{} of b's frames were too old for a", risen(&record, "too-old")),
        record,
    })
}

/// Opens the window, sends the flood, and closes the window when its frames have had their fate.
pub(super) fn strike(scene: &Scene<'_>, flood: &[Frame], per_second: u32) -> Result<Record, Failure> {
    let window = scene.open()?;
    scene.replay(flood, per_second)?;
    process::pause(REST)?;
    scene.close(window)
}

/// A sealed frame of b to a, which a has opened.
fn sealed_frame(scene: &Scene<'_>) -> Result<Frame, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    scene.lan.acquaint(&b, &a)?;
    let spy = scene.spy()?;
    let (from, _to) = (Mailbox::open(&b, PORT)?, Mailbox::open(&a, PORT)?);
    from.send(&a, PORT, &scene.token("payload"));
    let said = |frame: &Frame| frame.is_between(b.mac, a.mac) && frame.0.len() >= MARKED_LEN;
    spy.await_frame("a sealed frame of b", CAPTURE_LIMIT, said)
}

/// A frame to all made of a genuine one: newer, with another payload, and a tag and so a signature that do not fit.
pub fn forged_group_frame(heard: &Frame, number: u32, random: &mut Generator) -> Frame {
    let mut frame = heard.clone();
    frame.0[SITE_TAG_AT..SITE_TAG_AT + 16].copy_from_slice(&random.bytes::<16>());
    let mut time_ms = [0; 8];
    time_ms.copy_from_slice(&frame.0[GROUP_TIME_AT..GROUP_TIME_AT + 8]);
    let newer = u64::from_be_bytes(time_ms) + 60_000 + u64::from(number);
    frame.0[GROUP_TIME_AT..GROUP_TIME_AT + 8].copy_from_slice(&newer.to_be_bytes());
    put(&mut frame.0, GROUP_PAYLOAD_AT + 40, number);
    frame
}

/// A frame of `sender` to all, of whom all know by then who he is.
fn group_frame(scene: &Scene<'_>, sender: &Host) -> Result<Frame, Failure> {
    let spy = scene.spy()?;
    greet(sender, &scene.token("greeting"))?;
    let said = |frame: &Frame| frame.source() == sender.mac && frame.cll_type() == Some(PacketType::GroupFrame);
    spy.await_frame("a frame to all", CAPTURE_LIMIT, said)
}

/// Has `sender` say `payload` to all often enough for all to know who it is.
pub fn greet(sender: &Host, payload: &[u8]) -> Result<(), Failure> {
    let socket = sender.namespace.enter(|| {
        let socket = UdpSocket::bind((sender.ip, 0)).map_err(Failure::io("opening a socket"))?;
        socket.set_broadcast(true).map_err(Failure::io("sending to all"))?;
        Ok(socket)
    })?;
    for _ in 0..GREETINGS {
        socket.send_to(payload, (ALL, PORT)).map_err(Failure::io("sending to all"))?;
        process::pause(GREETING_PAUSE)?;
    }
    Ok(())
}

fn data_flood(sealed: &Frame, change: impl Fn(&mut [u8], u32)) -> Vec<Frame> {
    let forge = |number| {
        let mut frame = sealed.clone();
        change(&mut frame.0, number);
        frame
    };
    (0..FRAMES).map(forge).collect()
}

/// A request under a made-up address, nonce and site tag, as fresh as its sender's clock makes it.
fn forged_request(request: &Frame, now_ms: u64, random: &mut Generator) -> Frame {
    let mut frame = request.clone();
    let mut mac: [u8; 6] = random.bytes();
    // Of one host, and administered locally.
    mac[0] = mac[0] & 0xfc | 2;
    frame.0[6..12].copy_from_slice(&mac);
    frame.0[ARP_SENDER_AT..ARP_SENDER_AT + 6].copy_from_slice(&mac);
    frame.0[SITE_TAG_AT..SITE_TAG_AT + 16].copy_from_slice(&random.bytes::<16>());
    frame.0[TIMESTAMP_AT..TIMESTAMP_AT + 8].copy_from_slice(&now_ms.to_be_bytes());
    frame.0[NONCE_AT..NONCE_AT + 16].copy_from_slice(&random.bytes::<16>());
    frame
}

fn word(frame: &[u8], at: usize) -> u32 {
    frame.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn put(frame: &mut [u8], at: usize, value: u32) {
    if let Some(place) = frame.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn risen(record: &Record, word: &str) -> u64 {
    record.drops.get(word).copied().unwrap_or(0)
}

/// Frames of the flood that passed on the victim's wire.
pub(super) fn arrived(record: &Record, flood: &[Frame]) -> usize {
    let flood: BTreeSet<&[u8]> = flood.iter().map(|frame| frame.0.as_slice()).collect();
    record.wire.iter().filter(|frame| flood.contains(frame.0.as_slice())).count()
}
