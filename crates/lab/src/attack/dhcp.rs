//! Attacks 19, 20, 22, 23, 25 and 27: the leases of a DHCP server; those on its client are in `belief`, those with a stolen key in
//! `stolen_key`.

use std::time::Duration;

use crate::attack::lease::{Client, Server};
use crate::attack::scene::{Finding, Record, Scene, count};
use crate::failure::Failure;
use crate::guard::{DHCP_CLIENT, DHCP_SERVER, Guard};
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, Watch, process};

const PROGRAM: &str = include_str!("dhcp.py");
/// What the programs write into their messages.
const MARK: &[u8] = b"ringwall lab, forged DHCP";
/// What the server gives: addresses 10.77.0.20 to 10.77.0.43.
pub(super) const POOL: [u8; 2] = [20, 43];
pub(super) const POOL_LEN: usize = 24;
/// How long yersinia has for its start and its flood, in seconds.
const FLOOD_S: &str = "1";
/// How many made-up clients ask; more than there are addresses, since an answer may be late.
const STARVING: &str = "36";
/// The address that is reserved for whoever is behind one circuit of a relay agent, and that circuit.
const RESERVED: &str = "10.77.0.60";
const CIRCUIT: &str = "vault-port";
/// Offers an address without pinging it first.
pub(super) const AT_ONCE: &[&str] = &["--no-ping"];
/// How often the recorded request is sent, and how fast.
const ROUNDS: usize = 10;
const PER_SECOND: u32 = 20;
/// How long a server may take to what it does without being asked twice.
pub(super) const SOON: Duration = Duration::from_secs(5);

/// The hosts that take part.
pub(super) struct Cast {
    pub(super) server: Host,
    pub(super) client: Host,
    pub(super) attacker: Host,
}

impl Cast {
    pub(super) fn of(scene: &Scene<'_>) -> Result<Cast, Failure> {
        Ok(Cast { server: scene.host(DHCP_SERVER)?, client: scene.host(DHCP_CLIENT)?, attacker: scene.host("m")? })
    }

    pub(super) fn serve(&self, scene: &Scene<'_>, more: &[&str]) -> Result<Server, Failure> {
        Server::start(scene, &self.server, POOL, more)
    }

    /// Runs the program that speaks in clients' names.
    fn forge(&self, scene: &Scene<'_>, kind: &str, more: &[String]) -> Result<(), Failure> {
        let (own, other) = (&self.attacker, &self.server);
        let mut words = vec![kind.to_owned(), INTERFACE.to_owned(), own.mac.to_string(), own.ip.to_string()];
        words.extend([other.mac.to_string(), other.ip.to_string()]);
        words.extend_from_slice(more);
        scene.scapy(&self.attacker, PROGRAM, &words)
    }
}

pub(super) fn is_forged(frame: &Frame) -> bool {
    frame.contains(MARK)
}

/// Nothing happened only if nothing of the attack came to a packet socket of the victim either.
pub(super) fn finding(
    record: Record,
    reached: bool,
    untouched: bool,
    said: String,
    is_forged: impl Fn(&Frame) -> bool,
) -> Finding {
    let harmless = !reached && untouched && count(&record.inside, &is_forged) == 0;
    Finding { reached, harmless, struck: count(&record.wire, is_forged), said, record }
}

/// Attack 19: made-up clients take every address, all from the attacker's own hardware address.
pub fn starvation(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    starve(scene, "starve")
}

/// Attack 19 with a tool that only asks: the server is kept busy with clients that nobody has.
pub fn flood_of_questions(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let server = cast.serve(scene, AT_ONCE)?;
    let window = scene.open()?;
    // yersinia floods for as long as its input is open; it forks, so that it can be ended in no other way.
    let mut flood = cast.attacker.namespace.command("sh");
    // It keeps a log where it stands.
    flood.current_dir(&scene.lan.directory);
    flood.args(["-c", &format!("sleep {FLOOD_S} | yersinia dhcp -attack 1 -interface {INTERFACE}")]);
    process::ask(flood, &[])?;
    process::pause(Duration::from_millis(300))?;
    let offers = server.offers();
    let served = Client::is_served(scene, &cast.client)?;
    let record = scene.close(window)?;
    let honest = [&cast.client, &cast.server].map(|host| host.mac);
    let is_made_up = |frame: &Frame| frame.dhcp().is_some() && !honest.contains(&frame.source());
    let said = format!("{offers} addresses offered to made-up clients");
    Ok(finding(record, offers >= POOL_LEN, offers == 0 && served, said, is_made_up))
}

/// Attack 20: the same, in frames that come from whom they speak of.
pub fn starvation_in_pairs(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    starve(scene, "starve-matching")
}

fn starve(scene: &Scene<'_>, kind: &str) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let server = cast.serve(scene, AT_ONCE)?;
    let window = scene.open()?;
    cast.forge(scene, kind, &[STARVING.to_owned()])?;
    let taken = server.leases()?.len();
    let served = Client::is_served(scene, &cast.client)?;
    let record = scene.close(window)?;
    let fate = if served { "an honest client has its lease" } else { "an honest client gets none" };
    let said = format!("{taken} of {POOL_LEN} addresses taken, {fate}");
    Ok(finding(record, taken == POOL_LEN && !served, taken == 0 && served, said, is_forged))
}

/// Attack 22: the server is told in the client's name that its lease is given back.
pub fn foreign_release(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    take_away(scene, "release", |client| vec![client.ip.to_string()])
}

/// Attack 23: the server is told in the client's name that each of its addresses is in use by somebody else.
pub fn foreign_decline(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    take_away(scene, "decline", |_| (POOL[0]..=POOL[1]).map(|number| format!("10.77.0.{number}")).collect())
}

fn take_away(scene: &Scene<'_>, kind: &str, addresses: fn(&Client) -> Vec<String>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let server = cast.serve(scene, AT_ONCE)?;
    let client = Client::start(scene, &cast.client)?;
    process::until("the lease in the server's file", SOON, || server.knows(cast.client.mac))?;
    let window = scene.open()?;
    let mut words = vec![cast.client.mac.to_string()];
    words.extend(addresses(&client));
    cast.forge(scene, kind, &words)?;
    process::pause(Duration::from_millis(300))?;
    let known = server.knows(cast.client.mac)?;
    let record = scene.close(window)?;
    let said = format!("the lease of e is {} the server's file", if known { "in" } else { "gone from" });
    Ok(finding(record, !known, known, said, is_forged))
}

/// Attack 25: what e sent for its lease is sent again when it has given the lease back and is gone.
pub fn replayed_request(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let server = cast.serve(scene, AT_ONCE)?;
    let spy = scene.spy()?;
    let (server, requests) = departed(scene, &cast, server, spy)?;
    let window = scene.open()?;
    scene.replay(&std::iter::repeat_n(&requests, ROUNDS).flatten().cloned().collect::<Vec<_>>(), PER_SECOND)?;
    process::pause(Duration::from_millis(200))?;
    let again = server.knows(cast.client.mac)?;
    let record = scene.close(window)?;
    let said = format!("the server has {} for e, who is gone", if again { "a lease" } else { "no lease" });
    // A daemon that lets a message in takes its proof out: every one that came in counts.
    let let_in = count(&record.inside, |frame| frame.dhcp().is_some());
    Ok(finding(record, again, let_in == 0, said, |frame| requests.contains(frame)))
}

/// e gets a lease and leaves, and its lease ends; returns the server and e's REQUESTs.
fn departed(scene: &Scene<'_>, cast: &Cast, server: Server, spy: Watch) -> Result<(Server, Vec<Frame>), Failure> {
    let client = Client::start(scene, &cast.client)?;
    let mac = cast.client.mac;
    process::until("the lease in the server's file", SOON, || server.knows(mac))?;
    let heard = spy.stop()?;
    let server = if scene.guard == Guard::Cll {
        // No RELEASE leaves, and the shortest lease of dnsmasq is too long to wait for.
        drop((client, server));
        cast.serve(scene, AT_ONCE)?
    } else {
        // udhcpc takes the address away as soon as it has sent its RELEASE, which must not still wait for an answer to ARP then.
        scene.lan.acquaint(&cast.client, &cast.server)?;
        client.release();
        process::until("the end of the lease", SOON, || Ok(!server.knows(mac)?))?;
        server
    };
    let is_request = |frame: &&Frame| {
        // The type stands behind the cookie in what udhcpc writes.
        frame.source() == mac && frame.dhcp().is_some_and(|message| message[240..].starts_with(&[53, 1, 3]))
    };
    let requests: Vec<Frame> = heard.iter().filter(is_request).cloned().collect();
    if requests.is_empty() {
        return Err(Failure::Unreadable("the attacker heard no REQUEST".to_owned()));
    }
    Ok((server, requests))
}

/// Attack 27: the attacker makes up a relay agent and the circuit behind which an address is reserved.
pub fn forged_relay(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let circuit = format!("--dhcp-circuitid=set:vault,{CIRCUIT}");
    let range = format!("--dhcp-range=tag:vault,{RESERVED},{RESERVED},10m");
    let server = cast.serve(scene, &[AT_ONCE[0], &circuit, &range])?;
    let window = scene.open()?;
    cast.forge(scene, "relay", &[CIRCUIT.to_owned()])?;
    let leases = server.leases()?;
    let has_reserved = leases.iter().any(|(_, ip)| ip.to_string() == RESERVED);
    let served = Client::is_served(scene, &cast.client)?;
    let record = scene.close(window)?;
    let said = format!("the address of a circuit is {}", if has_reserved { "the attacker's" } else { "nobody's" });
    Ok(finding(record, has_reserved, leases.is_empty() && served, said, is_forged))
}
