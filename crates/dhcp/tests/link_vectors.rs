//! The golden vectors of `vectors/cll-dhcp.txt`, which an independent program made from the written protocol alone.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::time::Duration;

use bump::{ClockTrust, DropReason, Instant, Now, Wall};
use dhcp::link::{Client, Link, Server, client, server};
use identity::dhcp_key::DhcpMaster;
use wire::cll::DhcpFrame;
use wire::cll::dhcp::ClientId;
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

const VECTORS: &str = include_str!("../../../vectors/cll-dhcp.txt");
const LINK: Link = Link { ethertype: EtherType::CLL, mtu: 1500 };

struct Vectors(BTreeMap<&'static str, Vec<u8>>);

fn vectors() -> Vectors {
    let lines = VECTORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once(" = ").unwrap());
    Vectors(pairs.map(|(name, digits)| (name, bytes(digits))).collect())
}

fn bytes(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

impl Vectors {
    fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.0[name][..N].try_into().unwrap()
    }

    fn number(&self, name: &str) -> u64 {
        u64::from_be_bytes(self.array(name))
    }

    fn now(&self, later_s: i64) -> Now {
        let unix_ms = self.number("timestamp").saturating_add_signed(later_s) * 1000;
        let since_boot = Instant::from_millis(1_000_000u64.saturating_add_signed(later_s * 1000));
        Now { since_boot, wall: Some(Wall { unix_ms, trust: ClockTrust::Plausible }) }
    }

    fn client(&self) -> Client {
        let id = ClientId { mac: MacAddress(self.array("alpha.mac")), expires_unix_s: self.number("expires") };
        let key = DhcpMaster::from_bytes(self.array("master")).key_of(id);
        Client::new(client::Settings { keys: key.into(), base: self.0["certificate"].clone(), link: LINK })
    }

    fn server(&self, started_s: i64) -> Server {
        let settings = server::Settings {
            masters: DhcpMaster::from_bytes(self.array("master")).into(),
            mac: MacAddress([2, 0, 0, 0, 0, 0xdd]),
            addresses: vec![[10, 0, 0, 67].into()],
            link: LINK,
            tolerance: Duration::from_secs(120),
            messages_per_minute: 30,
        };
        Server::new(self.now(started_s), settings, [7; 32])
    }
}

#[test]
fn a_client_writes_and_reads_what_the_vectors_have() {
    let vectors = vectors();
    let (mut client, now) = (vectors.client(), vectors.now(0));
    let said = client.outgoing(now, vectors.array("nonce.discover"), &vectors.0["discover.plain"]).unwrap();
    assert_eq!(said, vectors.0["discover.wire"]);
    let mut incoming = |name: &str| {
        let (header, message) = Header::parse(&vectors.0[name]).unwrap();
        client.incoming(now, &header, message)
    };
    let Ok(client::Step::Repeat(again)) = incoming("challenge.wire") else { panic!("it is challenged") };
    assert_eq!(again, vectors.0["again.wire"]);
    assert_eq!(incoming("challenge.wire").err(), Some(DropReason::DhcpUnasked), "once");
    let Ok(client::Step::Deliver(offer)) = incoming("offer.wire") else { panic!("it is offered an address") };
    assert_eq!(offer, vectors.0["offer.plain"]);
    let asked = client.outgoing(now, vectors.array("nonce.request"), &vectors.0["request.plain"]).unwrap();
    assert_eq!(asked, vectors.0["request.wire"]);
}

#[test]
fn a_server_reads_what_the_vectors_have() {
    let vectors = vectors();
    let (header, message) = Header::parse(&vectors.0["discover.wire"]).unwrap();
    let step = vectors.server(-1).incoming(vectors.now(0), &header, message).unwrap();
    let server::Step::Deliver(plain) = step else { panic!("{step:?}") };
    assert_eq!(plain, vectors.0["discover.plain"]);
    // Started later, the server cannot tell it from a recording, and its challenge is one of these vectors but for its own nonce.
    let step = vectors.server(1).incoming(vectors.now(2), &header, message).unwrap();
    let server::Step::Challenge(challenge) = step else { panic!("{step:?}") };
    let (ours, theirs) = (&challenge[14..], &vectors.0["challenge.wire"][14..]);
    let [ours, theirs] = [ours, theirs].map(|message| DhcpFrame::parse(message).unwrap());
    assert_eq!((ours.client, ours.client_nonce, ours.packet), (theirs.client, theirs.client_nonce, theirs.packet));
    let (header, message) = Header::parse(&vectors.0["request.wire"]).unwrap();
    let step = vectors.server(-1).incoming(vectors.now(0), &header, message).unwrap();
    let server::Step::Check(asked) = step else { panic!("{step:?}") };
    assert_eq!(
        (asked.frame, asked.certificate),
        (vectors.0["request.plain"].clone(), vectors.0["certificate"].clone())
    );
}
