//! Attack 38: who gives addresses by DHCPv6.

use std::os::unix::fs::PermissionsExt;

use wire::EtherType;
use wire::layer::protocol;

use super::{Cast, LIE, NETWORK, TRIAL, address_lines, await_address};
use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::guard::Guard;
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, Running, process};

/// What dhclient runs when something happens: it enters an address that it got.
const SCRIPT: &str =
    "#!/bin/sh\n[ -z \"$new_ip6_address\" ] || ip -6 addr replace \"$new_ip6_address/128\" dev \"$interface\"\n";
/// Where the next header of an IPv6 packet stands in a frame, and the destination port of what is behind it.
const NEXT_HEADER: usize = 20;
const DESTINATION_PORT: std::ops::Range<usize> = 56..58;
/// Where clients listen (RFC 8415, section 7.2). The tool sends from any port.
const CLIENT_PORT: [u8; 2] = 546_u16.to_be_bytes();

/// Attack 38: the attacker gives addresses and a name server by DHCPv6; later the site's own server is there as well.
pub fn rogue_server(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let window = scene.open()?;
    let words = [INTERFACE, &format!("{LIE}:/64"), &format!("{LIE}:53")];
    let tool = cast.launch(scene, "atk6-fake_dhcps6", &words)?;
    let addresses = [cast.victim.link_local().to_string(), cast.attacker.link_local().to_string()];
    let [to, from] = addresses;
    let _voice = cast.say_for_tool(scene, "lease", &[cast.victim.mac.to_string(), to, from, format!("{LIE}:38")])?;
    let _client = ask_for_lease(scene, &cast.victim)?;
    let fooled = process::within(TRIAL * 2, || Ok(!address_lines(&cast.victim, LIE)?.is_empty()))?;
    drop(tool);
    let leased = if scene.guard == Guard::None { None } else { Some(await_genuine(scene, &cast)?) };
    let record = scene.close(window)?;
    let lies = |frame: &Frame| frame.source() == cast.attacker.mac && is_to_client(frame);
    let of_site = leased.as_ref().map_or(String::new(), |leased| format!(", and {leased} by the site's server"));
    Ok(Finding {
        reached: fooled,
        harmless: !fooled && leased.is_some() && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("a has {} of m{of_site}", if fooled { "an address" } else { "nothing" }),
        record,
    })
}

/// Starts a client on `host`.
fn ask_for_lease(scene: &Scene<'_>, host: &Host) -> Result<Running, Failure> {
    let script = scene.file("dhclient-script");
    std::fs::write(&script, SCRIPT).map_err(Failure::file("writing", &script))?;
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&script, executable).map_err(Failure::file("changing", &script))?;
    let mut command = host.namespace.command("dhclient");
    command.args(["-6", "-d", "-cf", "/dev/null", "-sf"]).arg(&script);
    command.arg("-lf").arg(scene.file("leases6")).arg("-pf").arg(scene.file("pid6")).arg(INTERFACE);
    Running::start(command, &scene.file("dhclient6.log"))
}

/// The address that the site's own server gives.
fn await_genuine(scene: &Scene<'_>, cast: &Cast) -> Result<String, Failure> {
    let _server = cast.serve(scene)?;
    // What a makes itself of the router's advertisement has other bits behind the network.
    await_address(&cast.victim, &format!("{NETWORK}:1"))
}

fn is_to_client(frame: &Frame) -> bool {
    let is_udp = frame.is(EtherType::IPV6) && frame.0.get(NEXT_HEADER) == Some(&protocol::UDP);
    is_udp && frame.0.get(DESTINATION_PORT) == Some(&CLIENT_PORT[..])
}
