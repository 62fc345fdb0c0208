//! Attacks 8 and 9: the victim is made to believe that somebody else has its own address.

use std::time::Duration;

use crate::attack::poisoning::{ARP_PROGRAM, Lie};
use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Frame, process};

/// How long the attacker's program takes until its first message.
const START: Duration = Duration::from_millis(800);

/// Attack 8: a probes for its address, as a host does before it takes one (RFC 5227), and the attacker says that it is taken.
pub fn denied_address(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, m) = (scene.host("a")?, scene.host("m")?);
    let lie = Lie {
        ethernet_source: m.mac,
        ethernet_destination: a.mac,
        operation: "is-at",
        sender: (&a, m.mac),
        target: (&a, a.mac),
    };
    let window = scene.open()?;
    let tool = scene.launch_scapy(&m, ARP_PROGRAM, &lie.arguments(10))?;
    process::pause(START)?;
    let mut probe = a.namespace.command("arping");
    probe.args(["-D", "-q", "-c", "2", "-w", "2", "-I", INTERFACE, &a.ip.to_string()]);
    let is_free = process::ask(probe, &[])?.status.success();
    drop(tool);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| frame.claims(a.ip, m.mac);
    Ok(Finding {
        reached: !is_free,
        harmless: is_free && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("a finds its address {}", if is_free { "free" } else { "taken" }),
        record,
    })
}

/// Attack 9: the attacker keeps asking in a's name, so that a program on a that watches for conflicts gives the address up.
pub fn fake_conflict(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let lie = Lie {
        ethernet_source: m.mac,
        ethernet_destination: wire::MacAddress::BROADCAST,
        operation: "who-has",
        sender: (&a, m.mac),
        target: (&b, wire::MacAddress::ZERO),
    };
    let window = scene.open()?;
    scene.scapy(&m, ARP_PROGRAM, &lie.arguments(4))?;
    let record = scene.close(window)?;
    let lies = |frame: &Frame| frame.claims(a.ip, m.mac);
    let heard = count(&record.inside, lies);
    Ok(Finding {
        reached: heard > 0,
        harmless: heard == 0,
        struck: count(&record.wire, lies),
        said: format!("a packet socket of a hears of {heard} conflicts"),
        record,
    })
}
