//! Attacks 11, 12, 13, 16 and 17 in their S-ARP form: what is signed is replayed, lied about by who may sign, broken, or
//! made up in masses.

use std::time::Duration;

use wire::EtherType;

use crate::attack::cloning::clone_mac;
use crate::attack::poisoning::{ARP_PROGRAM, Lie, poison};
use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::guard::{DISTRIBUTOR, Guard};
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, process};

pub(super) const SIGNED_PROGRAM: &str = include_str!("signed.py");
const PORT: u16 = 9012;
const PER_SECOND: u32 = 50;
/// How often the recorded answers are sent.
const ROUNDS: usize = 50;
/// Longer than the window that the attacks with a stale answer set.
const STALE_AFTER: Duration = Duration::from_secs(3);
/// Entries for addresses that nobody has, from which on a neighbour table counts as flooded.
const FLOODED: usize = 500;

/// Attack 11: the answer that b gave to a itself is replayed after b has left.
pub fn replayed_answer(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let spy = scene.spy()?;
    scene.lan.acquaint(&a, &b)?;
    let answers = answers_of(&spy.stop()?, &b, &a);
    replay_after_departure(scene, &answers, Duration::ZERO)
}

/// Attack 12 against a host that signs its requests: a recorded answer that a never heard, at once.
pub fn unheard_answer_at_once(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let answers = elicit(scene)?;
    replay_after_departure(scene, &answers, Duration::ZERO)
}

/// Attack 12 against a host that does not: the same, when the window is over.
pub fn unheard_answer_later(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let answers = elicit(scene)?;
    replay_after_departure(scene, &answers, STALE_AFTER)
}

/// Has b answer a question that a never asked, and records the answer.
fn elicit(scene: &Scene<'_>) -> Result<Vec<Frame>, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    scene.lan.acquaint(&a, &b)?;
    let question = Lie {
        ethernet_source: a.mac,
        ethernet_destination: b.mac,
        operation: "who-has",
        sender: (&a, a.mac),
        target: (&b, wire::MacAddress::ZERO),
    };
    let spy = scene.spy()?;
    scene.scapy(&m, ARP_PROGRAM, &question.arguments(1))?;
    process::pause(Duration::from_millis(200))?;
    Ok(answers_of(&spy.stop()?, &b, &a))
}

fn answers_of(heard: &[Frame], from: &Host, to: &Host) -> Vec<Frame> {
    let answers = |frame: &&Frame| frame.is_between(from.mac, to.mac) && frame.claims(from.ip, from.mac);
    heard.iter().filter(answers).cloned().collect()
}

/// b leaves, the attacker takes its hardware address and, after `pause`, replays what b said while a asks for b.
fn replay_after_departure(scene: &Scene<'_>, answers: &[Frame], pause: Duration) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    if answers.is_empty() {
        return Err(Failure::Unreadable("b gave no answer that could be recorded".to_owned()));
    }
    let outbox = Mailbox::open(&a, PORT)?;
    let token = scene.token("present");
    scene.lan.unplug(&b)?;
    clone_mac(&m, b.mac)?;
    process::pause(pause)?;
    a.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
    let window = scene.open()?;
    outbox.send(&b, PORT, &token);
    scene.replay(&std::iter::repeat_n(answers, ROUNDS).flatten().cloned().collect::<Vec<_>>(), PER_SECOND)?;
    outbox.send(&b, PORT, &token);
    process::pause(Duration::from_millis(200))?;
    let record = scene.close(window)?;
    let stolen = count(&record.loot, |frame| frame.contains(&token));
    let recorded = |frame: &Frame| answers.contains(frame);
    Ok(Finding {
        reached: stolen > 0,
        harmless: stolen == 0 && count(&record.inside, recorded) == 0,
        struck: count(&record.wire, recorded),
        said: format!("m reads {stolen} of a's payloads for b"),
        record,
    })
}

/// Attack 13: i, an enrolled host, signs that its own address is at the attacker's hardware address.
pub fn false_hardware_address(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, i, m) = (scene.host("a")?, scene.host("i")?, scene.host("m")?);
    let lie = Lie {
        ethernet_source: m.mac,
        ethernet_destination: a.mac,
        operation: "is-at",
        sender: (&i, m.mac),
        target: (&a, a.mac),
    };
    let (program, arguments) = match scene.identity(&i)? {
        Some(identity) => {
            (SIGNED_PROGRAM, signed("signed", &lie, 12, "0.2", &[identity.to_string_lossy().into_owned()]))
        }
        None => (ARP_PROGRAM, lie.arguments(12)),
    };
    let outbox = Mailbox::open(&a, PORT)?;
    let token = scene.token("payload");
    let window = scene.open()?;
    let tool = scene.launch_scapy(&m, program, &arguments)?;
    let poisoned = process::within(Duration::from_secs(4), || {
        outbox.send(&i, PORT, &token);
        Ok(a.neighbour(i.ip)?.is_some_and(|entry| entry.mac == m.mac))
    })?;
    outbox.send(&i, PORT, &token);
    process::pause(Duration::from_millis(200))?;
    drop(tool);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| frame.claims(i.ip, m.mac);
    let stolen = count(&record.loot, |frame| frame.contains(&token));
    Ok(Finding {
        reached: poisoned && stolen > 0,
        harmless: !poisoned && stolen == 0 && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("m reads {stolen} of a's payloads for i"),
        record,
    })
}

/// Attack 16: answers whose trailer is broken, around an ARP message that a plain host believes.
pub fn malformed(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let lie = Lie {
        ethernet_source: m.mac,
        ethernet_destination: a.mac,
        operation: "is-at",
        sender: (&b, m.mac),
        target: (&a, a.mac),
    };
    poison(scene, &b, || scene.scapy(&m, SIGNED_PROGRAM, &signed("malformed", &lie, 5, "0.4", &[])).map(|()| None))
}

/// Attack 17: a thousand made-up hosts ask and answer, each with a signature that nobody made.
pub fn flood_of_strangers(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, m) = (scene.host("a")?, scene.host("m")?);
    let lie = |operation| Lie {
        ethernet_source: m.mac,
        ethernet_destination: a.mac,
        operation,
        sender: (&a, m.mac),
        target: (&a, a.mac),
    };
    let asked_before = distributor_answers(scene)?;
    let window = scene.open()?;
    for operation in ["who-has", "is-at"] {
        scene.scapy(&m, SIGNED_PROGRAM, &signed("flood", &lie(operation), 1, "0", &[]))?;
    }
    let table = a.namespace.ip(&format!("neigh show dev {INTERFACE}"))?;
    let believed = table.lines().filter(|line| line.contains(&m.mac.to_string())).count();
    let record = scene.close(window)?;
    let asked = distributor_answers(scene)? - asked_before;
    Ok(Finding {
        reached: believed >= FLOODED,
        harmless: believed == 0 && asked < 20,
        struck: count(&record.wire, |frame| frame.is_between(m.mac, a.mac) && frame.is(EtherType::ARP)),
        said: format!("a's table has {believed} made-up hosts, the key distributor was asked {asked} times meanwhile"),
        record,
    })
}

/// What the key distributor has answered so far, all hosts together; nothing where there is none.
fn distributor_answers(scene: &Scene<'_>) -> Result<u64, Failure> {
    let daemon = scene.daemons.iter().find(|daemon| daemon.host.name == DISTRIBUTOR);
    match daemon.filter(|_| scene.guard == Guard::Sarp) {
        Some(daemon) => Ok(daemon.counters()?.get(crate::guard::ANSWERED).copied().unwrap_or(0)),
        None => Ok(0),
    }
}

/// Arguments of the program that signs.
pub(super) fn signed(kind: &str, lie: &Lie<'_>, times: u32, pause_s: &str, more: &[String]) -> Vec<String> {
    let mut arguments = vec![kind.to_owned()];
    arguments.extend(lie.arguments(times));
    arguments.pop();
    arguments.push(pause_s.to_owned());
    arguments.extend_from_slice(more);
    arguments
}
