//! Attacks 32 to 35 and 37: what a host believes about its routers.

use std::time::Duration;

use wire::icmp::v6::{REDIRECT, ROUTER_ADVERTISEMENT};

use super::{Cast, FLOOD_MBIT, LIE, NETWORK, SOON, TRIAL, address_lines, await_address, default_routes};
use crate::attack::scene::{Finding, Record, Scene, count};
use crate::failure::Failure;
use crate::guard::Guard;
use crate::net::lan::{INTERFACE, limit_rate};
use crate::net::{Frame, process};

/// A host far away.
const FAR: &str = "2001:db8:77::1";
/// How long the flood lasts.
const FLOOD: Duration = Duration::from_secs(1);
/// As many routers are nobody's.
const FLOODED_MIN: usize = 10;

/// Attack 32: the attacker says that it is a router and which network is here.
pub fn rogue_router(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    believe_router(scene, "atk6-fake_router6", &[INTERFACE, &format!("{LIE}:/64")])
}

/// Attack 33: the same behind an extension header, as guards in switches are passed by.
pub fn hidden_router(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    believe_router(scene, "atk6-fake_router26", &["-E", "H", "-A", &format!("{LIE}:/64"), INTERFACE])
}

fn believe_router(scene: &Scene<'_>, tool: &str, words: &[&str]) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let gateway = Some(cast.attacker.link_local());
    let window = scene.open()?;
    let tool = cast.launch(scene, tool, words)?;
    let (mut routes, mut addresses) = (0, 0);
    let fooled = process::within(TRIAL, || {
        routes = default_routes(&cast.victim, gateway)?;
        addresses = address_lines(&cast.victim, LIE)?.len();
        Ok(routes > 0 && addresses > 0)
    })?;
    drop(tool);
    let record = scene.close(window)?;
    let said = format!("a has {routes} routes through m, {addresses} addresses in m's network");
    Ok(finding(&cast, record, fooled, routes + addresses == 0, said, ROUTER_ADVERTISEMENT))
}

/// Frames of the attack are of one kind, from the attacker; nothing happened only if the victim's stack got none of them.
fn finding(cast: &Cast, record: Record, reached: bool, untouched: bool, said: String, kind: u8) -> Finding {
    let lies = |frame: &Frame| cast.has_sent(frame, kind);
    let harmless = untouched && count(&record.inside, lies) == 0;
    Finding { reached, harmless, struck: count(&record.wire, lies), said, record }
}

/// Attack 34: more and more routers, each with many networks.
pub fn flood_of_routers(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    limit_rate(&cast.attacker.namespace, INTERFACE, FLOOD_MBIT)?;
    let window = scene.open()?;
    let tool = cast.launch(scene, "atk6-flood_router26", &[INTERFACE])?;
    process::pause(FLOOD)?;
    drop(tool);
    let routes = default_routes(&cast.victim, None)?;
    let record = scene.close(window)?;
    // Each comes from another made-up hardware address, and no honest host of this LAN advertises.
    let lies = |frame: &Frame| super::Icmp::is(frame, ROUTER_ADVERTISEMENT);
    Ok(Finding {
        reached: routes >= FLOODED_MIN,
        harmless: routes == 0 && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said: format!("a has {routes} routers"),
        record,
    })
}

/// Attack 35: the attacker says in the router's name that it is none any more.
pub fn killed_router(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let gateway = cast.router.link_local();
    let _server = cast.serve(scene)?;
    let is_routed = || Ok(default_routes(&cast.victim, Some(gateway))? > 0);
    process::until("a route through the router", SOON, is_routed)?;
    let window = scene.open()?;
    let tool = cast.launch(scene, "atk6-kill_router6", &[INTERFACE, &gateway.to_string()])?;
    let killed = process::within(TRIAL, || is_routed().map(|is_routed| !is_routed))?;
    drop(tool);
    let record = scene.close(window)?;
    let said = format!("a {} its router", if killed { "loses" } else { "keeps" });
    Ok(finding(&cast, record, killed, !killed, said, ROUTER_ADVERTISEMENT))
}

/// Attack 37: the attacker says in the router's name that it knows a better way to a host far away.
pub fn false_redirect(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let (router, attacker) = (cast.router.link_local().to_string(), cast.attacker.link_local().to_string());
    let _server = cast.serve(scene)?;
    let own = await_address(&cast.victim, NETWORK)?;
    await_address(&cast.router, NETWORK)?;
    let window = scene.open()?;
    let words = [cast.victim.mac, cast.router.mac].map(|mac| mac.to_string());
    let addresses = [own.clone(), router.clone(), FAR.to_owned(), attacker.clone()];
    let _voice = match scene.guard {
        Guard::None => cast.launch(scene, "atk6-redir6", &[INTERFACE, &own, FAR, &router, &attacker])?,
        // The tool wants to be told first where router and victim are.
        _ => cast.say(scene, "redirect", &[&words[..], &addresses].concat())?,
    };
    let fooled = process::within(TRIAL, || {
        let way = cast.victim.namespace.ip(&format!("-6 route get {FAR}"))?;
        Ok(way.contains(&format!("via {attacker} ")))
    })?;
    let record = scene.close(window)?;
    let said = format!("a sends what is for far away {}", if fooled { "to m" } else { "to the router" });
    let lies = |frame: &Frame| super::Icmp::is(frame, REDIRECT);
    Ok(Finding {
        reached: fooled,
        harmless: !fooled && count(&record.inside, lies) == 0,
        struck: count(&record.wire, lies),
        said,
        record,
    })
}
