//! Attack 41: a datagram that says it comes from b, put on the wire by somebody else.

use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, process};

/// Sends spoofed datagrams, see its head for the arguments.
pub(super) const UDP_PROGRAM: &str = include_str!("udp.py");
const PORT: u16 = 9041;
const TIMES: &str = "5";

/// Arguments for [`UDP_PROGRAM`]: Ethernet from `sender`, IP from `claimed`.
pub(super) fn datagram(sender: &Host, claimed: &Host, victim: &Host, port: u16, payload: &str) -> Vec<String> {
    let macs = [sender.mac, victim.mac].map(|mac| mac.to_string());
    let ips = [claimed.ip, victim.ip].map(|ip| ip.to_string());
    let rest = [port.to_string(), TIMES.to_owned(), payload.to_owned()];
    [INTERFACE.to_owned()].into_iter().chain(macs).chain(ips).chain(rest).collect()
}

/// Attack 41: with hping3 from the attacker's own MAC address, then with scapy from b's.
pub fn spoofed_source(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let inbox = Mailbox::open(&a, PORT)?;
    let token = scene.token("forged");
    let file = scene.file("payload");
    std::fs::write(&file, &token).map_err(Failure::file("writing", &file))?;
    let file = file.to_string_lossy().into_owned();
    m.pin_neighbour(&a)?;
    let window = scene.open()?;
    let mut hping = m.namespace.command("hping3");
    hping.args(["--udp", "-q", "-c", TIMES, "-i", "u100000", "-k", "-s", "9041", "-p", "9041"]);
    hping.args(["-a", &b.ip.to_string(), "-d", &token.len().to_string(), "-E", &file, &a.ip.to_string()]);
    // Nobody answers, which hping3 calls a failure.
    process::ask(hping, &[])?;
    scene.scapy(&m, UDP_PROGRAM, &datagram(&b, &b, &a, PORT, &file))?;
    let record = scene.close(window)?;
    let forged = |frame: &Frame| frame.contains(&token) && frame.ipv4_source() == Some(b.ip);
    let delivered = inbox.take()?.iter().filter(|(sender, payload)| sender.ip() == b.ip && *payload == token).count();
    Ok(Finding {
        reached: delivered > 0,
        harmless: delivered == 0 && count(&record.inside, forged) == 0,
        struck: count(&record.wire, forged),
        said: format!("{delivered} datagrams of m reached a in b's name"),
        record,
    })
}
