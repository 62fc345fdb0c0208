//! The golden vectors of `vectors/s-dhcp.txt`, which an independent program made from the written protocol alone.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::Instant;
use dhcp::client::Outcome;
use dhcp::server::{Relay, Step};
use dhcp::{Client, Server, client, server};
use identity::Verified;
use identity::certificate::TrustAnchor;
use identity::distributor::{DistributorKey, HostRecord};
use identity::signing::{SigningKey, ed25519_pkcs8_from_seed};
use identity::site_key::SiteKey;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::dhcp::View;
use wire::dhcp::proof::{Claim, Proof};
use wire::sarp::data::{Answer, Lease, LeaseAction, Record};
use wire::sarp::{Kind, Message, seal};

const DHCP: &str = include_str!("../../../vectors/s-dhcp.txt");
const SITE: &str = include_str!("../../../vectors/site.txt");
const NOW: Instant = Instant::from_millis(1000);

struct Vectors(BTreeMap<&'static str, Vec<u8>>);

fn vectors() -> Vectors {
    let lines = DHCP.lines().chain(SITE.lines()).filter(|line| !line.is_empty() && !line.starts_with('#'));
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

    fn key(&self, name: &str) -> Arc<SigningKey> {
        Arc::new(SigningKey::from_pkcs8_der(&ed25519_pkcs8_from_seed(&self.array(name)).unwrap()).unwrap())
    }

    fn site_key(&self) -> SiteKey {
        SiteKey::from_bytes(self.array("site_key"))
    }

    fn client(&self) -> Client {
        let anchor = TrustAnchor::from_der(&self.0["authority.certificate"]).unwrap();
        Client::new(client::Settings {
            mac: MacAddress(self.array("alpha.mac")),
            host: self.number("alpha.number"),
            site_keys: self.site_key().into(),
            servers: vec![anchor.verify_whenever(&self.0["sigma.certificate"]).unwrap()],
            window: Duration::from_secs(30),
        })
    }

    fn server(&self) -> Server {
        let relay = Relay { ip: Ipv4Addr::new(10, 9, 0, 1), mac: MacAddress(self.array("alpha.mac")) };
        Server::new(server::Settings {
            order: server::Order::AtRequest,
            key_name: self.number("sigma.key_name"),
            addresses: vec![Ipv4Addr::from(self.array::<4>("sigma.address"))],
            site_keys: self.site_key().into(),
            relays: vec![relay],
            window: Duration::from_secs(30),
        })
    }
}

/// What a distributor, whose key is sigma's, says of alpha.
fn record(vectors: &Vectors) -> Verified<HostRecord> {
    let (alpha, distributor) = (vectors.key("alpha.seed"), vectors.key("sigma.seed"));
    let rest = Record { algorithm: 1, mac: None, key: alpha.record_key().unwrap().1 }.emit();
    let data = Answer { fraction: 0, host: 9, nonce: [0; 16], rest: &rest }.emit();
    let (sender_ip, target_ip) = (Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
    let (sender_mac, target_mac) = (MacAddress::ZERO, MacAddress::ZERO);
    let arp = Arp { operation: Operation::Reply, sender_mac, sender_ip, target_mac, target_ip };
    let unsigned = Message { arp, kind: Kind::LeaseAgreed, seconds: 1, data: &data, signature: &[] }.signed_bytes();
    let sealed = seal(unsigned.clone(), &distributor.sign(&unsigned).unwrap());
    let key = DistributorKey::new(1, distributor.record_key().unwrap().1).unwrap();
    key.verify(&Message::parse(&sealed).unwrap()).unwrap().record().unwrap()
}

#[test]
fn a_client_writes_and_reads_what_the_vectors_have() {
    let vectors = vectors();
    for answer in ["ack.wire", "ack.relayed"] {
        let (mut client, stamp) = (vectors.client(), Some(vectors.number("stamp")));
        let proving = client.outgoing(NOW, stamp, vectors.array("nonce"), &vectors.0["request.plain"]).unwrap();
        assert_eq!(proving.run(&vectors.key("alpha.seed")).unwrap(), vectors.0["request.wire"]);
        let claimed = client.incoming(NOW, stamp, &vectors.0[answer]).unwrap().run().unwrap();
        let (bare, outcome) = client.verified(NOW, &claimed).unwrap();
        assert_eq!(outcome, Outcome::Gained(Ipv4Addr::from(vectors.array::<4>("leased"))));
        if answer == "ack.wire" {
            assert_eq!(bare, vectors.0["ack.plain"]);
        }
    }
}

fn whose(data: &Lease<'_>) -> (LeaseAction, u64, Ipv4Addr, u32, bool) {
    (data.action, data.host, data.address, data.seconds, data.claim.is_none())
}

#[test]
fn a_server_asks_as_the_vectors_have_it() {
    let vectors = vectors();
    for request in ["request.wire", "request.relayed"] {
        let (mut server, stamp) = (vectors.server(), Some(vectors.number("stamp")));
        let step = server.incoming(NOW, stamp, &vectors.0[request]);
        let Ok(Step::AskWhose(waiting)) = step else { panic!("{request}: {step:?}") };
        let (asked, data) = (waiting.question(), Lease::parse(&vectors.0["check.data"]).unwrap());
        assert_eq!((asked.action, asked.host, asked.address, asked.lease_s, asked.claimed.is_none()), whose(&data));
        assert_eq!(data.emit(), vectors.0["check.data"]);
        let step = server.told(NOW, stamp, *waiting, record(&vectors));
        let Ok(Step::Check(checking)) = step else { panic!("{request}: {step:?}") };
        let step = server.checked(NOW, stamp, checking.run());
        let Ok(Step::Ask(question)) = step else { panic!("{request}: {step:?}") };
        let claimed = question.claimed.unwrap();
        assert_eq!((question.action, question.host), (LeaseAction::Bind, vectors.number("alpha.number")));
        assert_eq!(claimed.claim.emit()[..], vectors.0["request.claim"]);
        let data = Lease::parse(&vectors.0["lease.data"]).unwrap();
        assert_eq!(data.emit(), vectors.0["lease.data"]);
        assert_eq!((data.action, data.address, data.seconds), (LeaseAction::Bind, question.address, 0));
        assert_eq!(data.claim, Some((claimed.claim, claimed.signature.as_slice())));
        if request == "request.wire" {
            assert_eq!(claimed.bare().unwrap(), vectors.0["request.plain"]);
        }
    }
}

#[test]
fn proofs_and_claims_read_and_write_the_same_bytes() {
    let vectors = vectors();
    for word in ["request", "ack"] {
        let (proof, claim) =
            (&vectors.0[format!("{word}.proof").as_str()], &vectors.0[format!("{word}.claim").as_str()]);
        assert_eq!(&Proof::parse(proof).unwrap().emit(), proof);
        assert_eq!(&Claim::parse(claim).unwrap().emit()[..], claim);
        let frame = &vectors.0[format!("{word}.plain").as_str()];
        let proved = View::new(frame).unwrap().with_proof(proof).unwrap();
        assert_eq!(&proved, &vectors.0[format!("{word}.wire").as_str()]);
    }
    let public = vectors.key("sigma.seed");
    assert_eq!(dhcp::proof::key_name(public.record_key().unwrap().1), vectors.number("sigma.key_name"));
}
