//! A site with a DHCP server and clients, whose DHCP programs the test itself is.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use ::dhcp::server::Order;
use bump::{DropReason, Side};
use identity::certificate::Role;
use identity::site_key::SiteKey;
use identity::{HostIdentity, Profile};
use sarp::Event;
use sarp::akd::Member;
use wire::MacAddress;
use wire::dhcp::{MessageType, OPTION_PROOF, View};

use super::{Lan, ip, mac};

pub const SECOND: Duration = Duration::from_secs(1);
/// The DHCP server.
pub const SERVER: u8 = 50;
/// Two clients, and a host of the site that has turned bad.
pub const CLIENT: u8 = 1;
pub const OTHER: u8 = 2;
pub const INSIDER: u8 = 3;
pub const LEASE_S: u32 = 600;

/// A DHCP message as a program would send it. The first 4 bytes of `fields` are ciaddr, the next yiaddr.
pub fn message(
    kind: MessageType,
    from: MacAddress,
    chaddr: MacAddress,
    xid: u32,
    fields: [Ipv4Addr; 2],
    more: &[u8],
) -> Vec<u8> {
    let is_request = kind.operation() == wire::dhcp::Operation::Request;
    let mut bootp = vec![0_u8; 240];
    bootp[..3].copy_from_slice(&[if is_request { 1 } else { 2 }, 1, 6]);
    bootp[4..8].copy_from_slice(&xid.to_be_bytes());
    bootp[12..16].copy_from_slice(&fields[0].octets());
    bootp[16..20].copy_from_slice(&fields[1].octets());
    bootp[28..34].copy_from_slice(&chaddr.0);
    bootp[236..].copy_from_slice(&[99, 130, 83, 99]);
    bootp.extend([53, 1, kind as u8]);
    bootp.extend(more);
    bootp.push(255);
    let (ports, to) = if is_request { ([0, 68, 0, 67], 255) } else { ([0, 67, 0, 68], 255) };
    let (ip_len, udp_len) = ((28 + bootp.len()) as u16, (8 + bootp.len()) as u16);
    let mut frame = [&[0xff; 6][..], &from.0, &[8, 0, 0x45, 0], &ip_len.to_be_bytes()].concat();
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, to, to, to, to]);
    frame.extend(ports);
    frame.extend(udp_len.to_be_bytes());
    frame.extend([0, 0]);
    [frame, bootp].concat()
}

pub const NOBODY: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

pub fn option(code: u8, value: &[u8]) -> Vec<u8> {
    [&[code, value.len() as u8], value].concat()
}

pub fn discover(number: u8, xid: u32) -> Vec<u8> {
    message(MessageType::Discover, mac(number), mac(number), xid, [NOBODY; 2], &[])
}

pub fn request(number: u8, xid: u32, wanted: Ipv4Addr) -> Vec<u8> {
    let more = [option(50, &wanted.octets()), option(54, &ip(SERVER).octets())].concat();
    message(MessageType::Request, mac(number), mac(number), xid, [NOBODY; 2], &more)
}

pub fn renewal(number: u8, xid: u32, held: Ipv4Addr) -> Vec<u8> {
    message(MessageType::Request, mac(number), mac(number), xid, [held, NOBODY], &[])
}

pub fn release(number: u8, held: Ipv4Addr) -> Vec<u8> {
    let more = option(54, &ip(SERVER).octets());
    message(MessageType::Release, mac(number), mac(number), 99, [held, NOBODY], &more)
}

pub fn answer(kind: MessageType, from: u8, to: u8, xid: u32, given: Ipv4Addr) -> Vec<u8> {
    let more =
        [option(54, &ip(from).octets()), option(51, &LEASE_S.to_be_bytes()), option(3, &ip(from).octets())].concat();
    message(kind, mac(from), mac(to), xid, [NOBODY, given], &more)
}

pub struct Site {
    pub lan: Lan,
    pub identities: Vec<(u8, Arc<HostIdentity>)>,
}

/// Two distributors, a server, two clients without an address and an insider with one.
pub fn site() -> Site {
    site_with(Vec::new())
}

/// The same with another seed for what is random.
pub fn site_of(seed: u64) -> Site {
    site_made_of(Lan::with_hosts(seed, 0), Vec::new(), Order::AtRequest)
}

pub fn site_with(relays: Vec<::dhcp::server::Relay>) -> Site {
    site_made_of(Lan::with_hosts(1, 0), relays, Order::AtRequest)
}

/// The same under the paper profile.
pub fn site_of_paper(order: Order) -> Site {
    site_made_of(Lan::with_hosts_of(1, 0, Profile::Paper), Vec::new(), order)
}

fn site_made_of(mut lan: Lan, relays: Vec<::dhcp::server::Relay>, order: Order) -> Site {
    let server = lan.identity_as(SERVER, Role::DhcpServer, vec![ip(SERVER)]);
    let certificate = server.certificate().clone();
    let (_, key) = certificate.record_key().unwrap();
    let key_name = ::dhcp::proof::key_name(key);
    let mut identities = vec![(SERVER, Arc::clone(&server))];
    lan.record(SERVER, &server, true);
    lan.add_as(SERVER, Arc::clone(&server), |settings| {
        settings.dhcp_server = Some(::dhcp::server::Settings {
            key_name,
            addresses: vec![ip(SERVER)],
            site_keys: server.site_keys().clone(),
            relays,
            window: settings.window,
            order,
        });
    });
    for number in [CLIENT, OTHER, INSIDER] {
        let identity = lan.identity_as(number, Role::Host, vec![]);
        identities.push((number, Arc::clone(&identity)));
        let servers = vec![certificate.clone()];
        lan.add_as(number, Arc::clone(&identity), |settings| {
            settings.addresses.clear();
            let (host, site_keys) = (u64::from(number), identity.site_keys().clone());
            let (mac, window) = (settings.mac, settings.window);
            settings.dhcp_client = Some(::dhcp::client::Settings { mac, host, site_keys, servers, window });
        });
    }
    for (number, identity) in &identities {
        let (algorithm, key) = identity.certificate().record_key().unwrap();
        let member = Member { algorithm, key: key.to_vec(), mac: Some(mac(*number)), serves_dhcp: *number == SERVER };
        lan.repository.members.borrow_mut().insert(u64::from(*number), member);
    }
    lan.run(SECOND);
    lan.seen.clear();
    Site { lan, identities }
}

impl Site {
    /// The program of `number` sends this; what the programs of others heard until a second later is taken from them.
    pub fn says(&mut self, number: u8, frame: Vec<u8>) {
        self.lan.deliver(number, Side::STACK, frame);
        self.lan.run(SECOND);
    }

    pub fn heard(&mut self, number: u8) -> Vec<MessageType> {
        let frames = std::mem::take(&mut self.lan.station(number).stack.dhcp);
        let kind = |frame: &Vec<u8>| {
            let view = View::new(frame).unwrap();
            assert!(view.option(OPTION_PROOF).is_none(), "programs never see a proof");
            view.kind()
        };
        frames.iter().map(kind).collect()
    }

    pub fn drops(&mut self, number: u8, reason: DropReason) -> u64 {
        self.lan.station(number).drops(reason)
    }

    pub fn events(&mut self, number: u8) -> Vec<Event> {
        std::mem::take(&mut self.lan.station(number).events)
    }

    /// A whole exchange.
    pub fn lease(&mut self, number: u8, xid: u32, given: Ipv4Addr) {
        self.says(number, discover(number, xid));
        assert_eq!(self.heard(SERVER), [MessageType::Discover]);
        self.says(SERVER, answer(MessageType::Offer, SERVER, number, xid, given));
        assert_eq!(self.heard(number), [MessageType::Offer]);
        self.says(number, request(number, xid, given));
        assert_eq!(self.heard(SERVER), [MessageType::Request]);
        self.says(SERVER, answer(MessageType::Ack, SERVER, number, xid, given));
        assert_eq!(self.heard(number), [MessageType::Ack]);
    }

    /// What `number` puts on the wire when its program says this, kept from everybody.
    pub fn intercept(&mut self, number: u8, frame: Vec<u8>) -> Vec<u8> {
        for other in [SERVER, CLIENT, OTHER, INSIDER] {
            self.lan.station(other).is_off = other != number;
        }
        self.lan.seen.clear();
        self.says(number, frame);
        for other in [SERVER, CLIENT, OTHER, INSIDER] {
            self.lan.station(other).is_off = false;
        }
        let is_dhcp = |frame: &&Vec<u8>| wire::dhcp::recognise(frame) == wire::dhcp::Kind::Dhcp;
        self.lan.seen.iter().rev().find(is_dhcp).unwrap().clone()
    }

    pub fn inject(&mut self, frame: Vec<u8>) {
        self.lan.inject(frame);
        self.lan.run(SECOND);
    }

    pub fn site_key(&self) -> SiteKey {
        self.identities[0].1.site_key().clone()
    }

    /// A message that the insider signs with its own key in the name of `host`, whatever it says.
    pub fn insiders(&mut self, host: u8, chaddr: MacAddress, frame: &[u8]) -> Vec<u8> {
        let settings = ::dhcp::client::Settings {
            mac: chaddr,
            host: u64::from(host),
            site_keys: self.site_key().into(),
            servers: Vec::new(),
            window: sarp::limits::WINDOW,
        };
        let (now, start) = (self.lan.now, sarp::Stamp::from_unix_ms(super::START_UNIX_S * 1000).to_bits());
        let stamp = start + ((u128::from(now.as_nanos()) << 32) / 1_000_000_000) as u64;
        let nonce = self.lan.random.bytes();
        let proving = ::dhcp::Client::new(settings).outgoing(now, Some(stamp), nonce, frame).unwrap();
        let identity = &self.identities.iter().find(|(number, _)| *number == INSIDER).unwrap().1;
        proving.run(&identity.record_signing_key()).unwrap()
    }
}
