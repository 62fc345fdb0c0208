//! Attacks 19 to 27: on the DHCP server's leases, and on what a client believes.

use std::time::Duration;

use crate::attack::lease::{Client, Server};
use crate::attack::scene::{Finding, Record, Scene, count};
use crate::failure::Failure;
use crate::guard::{DHCP_CLIENT, DHCP_SERVER};
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, Watch, process};

const PROGRAM: &str = include_str!("dhcp.py");
const REPLY_PROGRAM: &str = include_str!("dhcp_reply.py");
/// What the programs write into their messages.
const MARK: &[u8] = b"ringwall lab, forged DHCP";
/// What the server gives: addresses 10.77.0.20 to 10.77.0.43.
const POOL: [u8; 2] = [20, 43];
const POOL_LEN: usize = 24;
/// How many made-up clients ask; more than there are addresses, since an answer may be late.
const STARVING: &str = "36";
/// What the attacker's server gives.
const ROGUE_POOL: [u8; 2] = [200, 210];
/// The address that is reserved for whoever is behind one circuit of a relay agent, and that circuit.
const RESERVED: &str = "10.77.0.60";
const CIRCUIT: &str = "vault-port";
/// Offers an address without pinging it first.
const AT_ONCE: &[&str] = &["--no-ping"];
/// How long a client is made to renew, again and again, while its answers are forged; and how often.
const RENEWALS: Duration = Duration::from_millis(2500);
const RENEWAL_INTERVAL: Duration = Duration::from_millis(300);
/// How often the recorded request is sent, and how fast.
const ROUNDS: usize = 10;
const PER_SECOND: u32 = 20;
/// How long a server may take to what it does without being asked twice.
const SOON: Duration = Duration::from_secs(5);

/// The hosts that take part.
struct Cast {
    server: Host,
    client: Host,
    attacker: Host,
}

impl Cast {
    fn of(scene: &Scene<'_>) -> Result<Cast, Failure> {
        Ok(Cast { server: scene.host(DHCP_SERVER)?, client: scene.host(DHCP_CLIENT)?, attacker: scene.host("m")? })
    }

    fn serve(&self, scene: &Scene<'_>, more: &[&str]) -> Result<Server, Failure> {
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

fn is_forged(frame: &Frame) -> bool {
    frame.contains(MARK)
}

/// Nothing happened only if nothing of the attack came to a packet socket of the victim either.
fn finding(
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

/// Attack 21: the attacker's dnsmasq answers faster than the server, which pings what it offers, and names itself as router
/// and DNS server.
pub fn rogue_server(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let _server = cast.serve(scene, &[])?;
    let _rogue = Server::start(scene, &cast.attacker, ROGUE_POOL, AT_ONCE)?;
    let window = scene.open()?;
    let client = Client::start(scene, &cast.client)?;
    let belief = Belief::of(&client, &cast)?;
    let record = scene.close(window)?;
    let is_rogue = |frame: &Frame| frame.source() == cast.attacker.mac && frame.dhcp().is_some();
    Ok(finding(record, belief.is_false, belief.is_right, belief.said, is_rogue))
}

/// Which router and which DNS server a client believes in.
struct Belief {
    is_right: bool,
    is_false: bool,
    said: String,
}

impl Belief {
    fn of(client: &Client, cast: &Cast) -> Result<Belief, Failure> {
        let (router, resolver) = (client.router()?, client.resolver()?);
        let is = |host: &Host| router == Some(host.ip) && resolver == Some(host.ip);
        let (is_right, is_false) = (is(&cast.server), is(&cast.attacker));
        let name = match (is_right, is_false) {
            (true, _) => "the server's",
            (_, true) => "the attacker's",
            _ => "neither's",
        };
        Ok(Belief { is_right, is_false, said: format!("e has {}, router and DNS {name}", client.ip) })
    }
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

/// Attack 24: while e renews its lease, the attacker refuses in the server's name.
pub fn injected_refusal(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    answer_first(scene, "nak", |client, _| Ok(client.wrote("nak")? > 0 && !client.has_address()?))
}

/// Attack 26: while e renews its lease, the attacker grants it in the server's name, with itself as router and DNS server.
pub fn injected_options(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    answer_first(scene, "ack", |client, cast| Ok(Belief::of(client, cast)?.is_false))
}

fn answer_first(
    scene: &Scene<'_>,
    kind: &str,
    is_fooled: fn(&Client, &Cast) -> Result<bool, Failure>,
) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let _server = cast.serve(scene, AT_ONCE)?;
    let spy = scene.spy()?;
    let client = Client::start(scene, &cast.client)?;
    let transaction = transaction_of(&spy.stop()?, &cast)?;
    let window = scene.open()?;
    let (own, other) = (&cast.attacker, &cast.client);
    let mut words = vec![kind.to_owned(), INTERFACE.to_owned(), own.mac.to_string(), own.ip.to_string()];
    words.extend([other.mac.to_string(), client.ip.to_string(), cast.server.ip.to_string(), transaction]);
    words.push("6".to_owned());
    let mut flood = scene.launch_scapy(own, REPLY_PROGRAM, &words)?;
    flood.await_output("sending", SOON)?;
    let fooled = process::within(RENEWALS, || {
        client.renew();
        process::pause(RENEWAL_INTERVAL)?;
        is_fooled(&client, &cast)
    })?;
    drop(flood);
    let renewals = client.wrote("renew")?;
    let keeps = client.has_address()? && Belief::of(&client, &cast)?.is_right && client.wrote("nak")? == 0;
    let fate = if client.has_address()? { Belief::of(&client, &cast)?.said } else { "e left its address".to_owned() };
    let record = scene.close(window)?;
    let said = format!("{fate}, {renewals} renewals");
    Ok(finding(record, fooled, keeps && renewals > 0, said, is_forged))
}

/// The transaction of e's exchange, as the attacker hears it: a client keeps it for as long as it has the lease.
fn transaction_of(heard: &[Frame], cast: &Cast) -> Result<String, Failure> {
    let mut asked = heard.iter().filter(|frame| frame.source() == cast.client.mac).filter_map(Frame::dhcp);
    let message = asked.next().ok_or_else(|| Failure::Unreadable("the attacker heard no DISCOVER".to_owned()))?;
    Ok(message[4..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Attack 25: what e sent for its lease is sent again when it has given the lease back and is gone.
pub fn replayed_request(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let server = cast.serve(scene, AT_ONCE)?;
    let spy = scene.spy()?;
    let requests = departed(scene, &cast, &server, spy)?;
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

/// e gets a lease and gives it back; returns its REQUESTs.
fn departed(scene: &Scene<'_>, cast: &Cast, server: &Server, spy: Watch) -> Result<Vec<Frame>, Failure> {
    let client = Client::start(scene, &cast.client)?;
    let mac = cast.client.mac;
    process::until("the lease in the server's file", SOON, || server.knows(mac))?;
    let heard = spy.stop()?;
    // udhcpc takes the address away as soon as it has sent its RELEASE, which must not still wait for an answer to ARP then.
    scene.lan.acquaint(&cast.client, &cast.server)?;
    client.release();
    process::until("the end of the lease", SOON, || Ok(!server.knows(mac)?))?;
    let is_request = |frame: &&Frame| {
        // The type stands behind the cookie in what udhcpc writes.
        frame.source() == mac && frame.dhcp().is_some_and(|message| message[240..].starts_with(&[53, 1, 3]))
    };
    let requests: Vec<Frame> = heard.iter().filter(is_request).cloned().collect();
    if requests.is_empty() {
        return Err(Failure::Unreadable("the attacker heard no REQUEST".to_owned()));
    }
    Ok(requests)
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
