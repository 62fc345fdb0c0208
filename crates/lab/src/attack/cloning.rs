//! Attacks 12 and 49: the attacker takes an honest host's MAC address.

use std::time::Duration;

use wire::MacAddress;

use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, process};

const ARP_PROGRAM: &str = include_str!("arp.py");
const PORT: u16 = 9049;
const PER_SECOND: u32 = 50;
/// Most frames that are replayed, the earliest first.
const REPLAYED_MAX: usize = 100;
/// How often the stolen address is shown to the switch: 20 times a second for 2.5 s.
const SHOWN: u32 = 50;
const THEFT_LIMIT: Duration = Duration::from_secs(8);

pub(super) fn clone_mac(host: &Host, mac: MacAddress) -> Result<(), Failure> {
    for setting in ["down".to_owned(), format!("address {mac}"), "up".to_owned()] {
        host.namespace.ip(&format!("link set {INTERFACE} {setting}"))?;
    }
    Ok(())
}

/// Attack 12: b leaves; the attacker takes its MAC address and replays all that b ever sent, so that a goes on talking to
/// "b". The payload that a sends then is what the attacker wants.
pub fn replay_of_the_departed(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let (box_a, box_b) = (Mailbox::open(&a, PORT)?, Mailbox::open(&b, PORT)?);
    let (past, present) = (scene.token("past"), scene.token("present"));
    let spy = scene.spy()?;
    scene.lan.acquaint(&b, &a)?;
    box_b.send(&a, PORT, &past);
    let heard = spy.stop()?;
    box_a.take()?;
    scene.lan.unplug(&b)?;
    // What a still knew of b ages away.
    a.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
    clone_mac(&m, b.mac)?;
    let captured: Vec<Frame> = heard.into_iter().filter(|frame| frame.source() == b.mac).take(REPLAYED_MAX).collect();
    let window = scene.open()?;
    scene.replay(&captured, PER_SECOND)?;
    for _ in 0..3 {
        box_a.send(&b, PORT, &present);
        process::pause(Duration::from_millis(100))?;
    }
    let record = scene.close(window)?;
    let again = box_a.take()?.iter().filter(|(_, payload)| *payload == past).count();
    let stolen = count(&record.loot, |frame| frame.contains(&present));
    Ok(Finding {
        reached: stolen > 0 && again > 0,
        harmless: stolen == 0 && again == 0 && count(&record.inside, |frame| frame.contains(&past)) == 0,
        struck: count(&record.wire, |frame| captured.contains(frame)),
        said: format!("m reads {stolen} of a's 3 payloads for b, {again} old datagrams delivered again"),
        record,
    })
}

/// Attack 49: the attacker shows a's MAC address to the switch, which then sends it what is meant for a.
pub fn stolen_switch_entry(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let outbox = Mailbox::open(&b, PORT)?;
    let token = scene.token("payload");
    scene.lan.acquaint(&b, &a)?;
    clone_mac(&m, a.mac)?;
    let window = scene.open()?;
    let thief = show_address(scene, &m, a.mac)?;
    let meant_for_a = |frame: &Frame| frame.is_between(b.mac, a.mac);
    let mut sent = 0;
    let stole = process::within(THEFT_LIMIT, || {
        outbox.send(&a, PORT, &token);
        sent += 1;
        process::pause(Duration::from_millis(50))?;
        Ok(count(&window.loot_so_far()?, meant_for_a) >= 5)
    })?;
    drop(thief);
    let record = scene.close(window)?;
    clone_mac(&m, m.mac)?;
    let recovery = scene.lan.acquaint(&a, &b)?;
    let readable = count(&record.loot, |frame| frame.contains(&token));
    let stolen = count(&record.loot, meant_for_a);
    Ok(Finding {
        reached: readable > 0,
        harmless: readable == 0 && stole,
        struck: count(&record.wire, |frame| frame.source() == a.mac),
        said: format!(
            "m received {stolen} frames for a and reads {readable}, a is back after {:.1} s",
            recovery.as_secs_f64()
        ),
        record,
    })
}

/// Starts sending broadcasts of nothing from `mac`.
fn show_address(scene: &Scene<'_>, thief: &Host, mac: MacAddress) -> Result<crate::net::Running, Failure> {
    let nobody = "10.77.0.250".to_owned();
    let broadcast = MacAddress::BROADCAST.to_string();
    let mut arguments = vec!["-c".to_owned(), ARP_PROGRAM.to_owned(), INTERFACE.to_owned()];
    arguments.extend([mac.to_string(), broadcast, "who-has".to_owned()]);
    arguments.extend([mac.to_string(), thief.ip.to_string(), MacAddress::ZERO.to_string(), nobody]);
    arguments.extend([SHOWN.to_string(), "0.05".to_owned()]);
    scene.launch(thief, crate::attack::PYTHON, &arguments)
}
