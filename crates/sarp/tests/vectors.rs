//! The golden vectors of `vectors/s-arp.txt`, which an independent program made from the written protocol alone.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, Generator, Instant, Meta, Now, Side, Wall};
use identity::distributor::{DistributorKey, RequestMaster};
use identity::signing::{SigningKey, ed25519_pkcs8_from_seed};
use sarp::akd::{Akd, Lookup, RecordKey, Records};
use sarp::{Distributor, Host, Settings};
use wire::MacAddress;
use wire::sarp::data::{Answer, Change, Question, Record, Resolution};
use wire::sarp::{Kind, Message};

const SARP: &str = include_str!("../../../vectors/s-arp.txt");
const SITE: &str = include_str!("../../../vectors/site.txt");
/// The time in the vectors: seconds since 1970, and the fraction.
const TIME: (u32, u32) = (1_800_000_005, 0x8000_0001);

fn values() -> BTreeMap<&'static str, Vec<u8>> {
    let lines = SARP.lines().chain(SITE.lines()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once(" = ").unwrap());
    pairs.map(|(name, digits)| (name, bytes(digits))).collect()
}

fn bytes(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

struct Vectors(BTreeMap<&'static str, Vec<u8>>);

impl Vectors {
    fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.0[name][..N].try_into().unwrap()
    }

    fn key(&self, name: &str) -> SigningKey {
        SigningKey::from_pkcs8_der(&ed25519_pkcs8_from_seed(&self.array(name)).unwrap()).unwrap()
    }

    fn mac(&self, name: &str) -> MacAddress {
        MacAddress(self.array(name))
    }

    fn ip(&self, name: &str) -> Ipv4Addr {
        Ipv4Addr::from(self.array::<4>(name))
    }

    fn master(&self) -> RequestMaster {
        RequestMaster::from_bytes(self.array("master"))
    }

    fn number(&self) -> u64 {
        u64::from_be_bytes(self.array("alpha.number"))
    }

    fn message(&self, name: &str) -> Message<'_> {
        Message::parse(&self.0[name][14..]).unwrap()
    }

    fn distributor_key(&self) -> DistributorKey {
        DistributorKey::new(1, &self.0["distributor.public"]).unwrap()
    }
}

fn vectors() -> Vectors {
    Vectors(values())
}

#[test]
fn every_message_reads_and_writes_the_same_bytes() {
    let vectors = vectors();
    let names = [
        ("request", Kind::Resolution),
        ("reply", Kind::Resolution),
        ("time-request", Kind::TimeRequest),
        ("key-request", Kind::KeyRequest),
        ("key-change", Kind::KeyChange),
        ("time-reply", Kind::TimeReply),
        ("key-reply", Kind::KeyReply),
        ("key-not-found", Kind::KeyNotFound),
        ("key-invalid", Kind::KeyInvalid),
        ("key-changed", Kind::KeyChanged),
    ];
    for (name, kind) in names {
        let frame = &vectors.0[format!("{name}.frame").as_str()];
        let message = Message::parse(&frame[14..]).unwrap();
        assert_eq!(message.kind, kind, "{name}");
        assert_eq!(message.emit(), frame[14..], "{name}");
        let data = match kind {
            Kind::Resolution => Resolution::parse(message.data).unwrap().emit(),
            Kind::TimeRequest | Kind::KeyRequest => Question::parse(message.data).unwrap().emit(),
            Kind::KeyChange => Change::parse(message.data).unwrap().emit(),
            _ => Answer::parse(message.data).unwrap().emit(),
        };
        assert_eq!(data, message.data, "{name}");
    }
}

#[test]
fn tags_follow_from_the_masters_key() {
    let vectors = vectors();
    let key = vectors.master().key_of(vectors.number());
    for name in ["time-request.frame", "key-request.frame"] {
        let message = vectors.message(name);
        assert_eq!(key.credential(&message.signed_bytes()), message.signature, "{name}");
    }
    // The key itself is in the vectors, too.
    let site_key = identity::site_key::SiteKey::from_bytes(vectors.array("alpha.request_key"));
    let message = vectors.message("time-request.frame");
    assert_eq!(site_key.tag(b"s-arp request", &[&message.signed_bytes()]), message.signature[8..]);
}

#[test]
fn answers_are_statements_and_the_record_verifies_the_reply() {
    let vectors = vectors();
    let key = vectors.distributor_key();
    for name in ["time-reply.frame", "key-not-found.frame", "key-invalid.frame", "key-changed.frame"] {
        let statement = key.verify(&vectors.message(name)).unwrap();
        assert!(statement.time() == TIME && statement.record().is_none(), "{name}");
    }
    let statement = key.verify(&vectors.message("key-reply.frame")).unwrap();
    let asked = Question::parse(vectors.message("key-request.frame").data).unwrap();
    assert_eq!(statement.nonce(), &asked.nonce);
    let omega = statement.record().unwrap();
    assert_eq!(omega.address(), vectors.ip("omega.addresses"));
    assert!(omega.admits(vectors.mac("omega.mac")) && !omega.admits(vectors.mac("alpha.mac")));
    let reply = vectors.message("reply.frame");
    assert!(omega.verify_signature(&reply.signed_bytes(), reply.signature).is_ok());
    let request = vectors.message("request.frame");
    assert!(omega.verify_signature(&request.signed_bytes(), request.signature).is_err(), "that is alpha's");
}

/// Knows alpha and omega.
struct Repository(RefCell<BTreeMap<Ipv4Addr, Lookup>>);

impl Records for Repository {
    fn find(&self, ip: Ipv4Addr) -> Lookup {
        self.0.borrow().get(&ip).cloned().unwrap_or(Lookup::NotFound)
    }

    fn replace(&self, ip: Ipv4Addr, _old: &[u8], new: RecordKey<'_>) -> bool {
        let entry = Lookup::Good { algorithm: new.algorithm, key: new.key.to_vec(), mac: None };
        self.0.borrow_mut().insert(ip, entry).is_some()
    }
}

fn repository(vectors: &Vectors) -> Repository {
    let entry = |name: &str| {
        let key = vectors.key(&format!("{name}.seed")).record_key().unwrap().1.to_vec();
        let good = Lookup::Good { algorithm: 1, key, mac: Some(vectors.mac(&format!("{name}.mac"))) };
        (vectors.ip(&format!("{name}.addresses")), good)
    };
    Repository(RefCell::new(["alpha", "omega"].map(entry).into_iter().collect()))
}

/// The distributor of the vectors.
fn distributor(vectors: &Vectors) -> Host {
    let (mac, ip) = (vectors.mac("distributor.mac"), vectors.ip("distributor.address"));
    let key = Arc::new(vectors.key("distributor.seed"));
    let settings = Settings {
        key: Arc::clone(&key),
        mac,
        addresses: vec![ip],
        distributors: vec![Distributor { ip, mac, key: vectors.distributor_key() }],
        request_keys: vectors.master().key_of(1).into(),
        known_hosts: Vec::new(),
        window: Duration::from_secs(30),
        dhcp_client: None,
        dhcp_server: None,
        sign_requests: false,
        weaken: sarp::Weaken::default(),
    };
    Host::new(Arc::new(settings), Some(Akd::new(key, vectors.master())), Generator::from_seed([1; 32]))
}

/// What `host` answers to `frame`.
fn answer(host: &mut Host, records: &Repository, frame: &[u8]) -> Vec<u8> {
    let wall = Some(Wall { unix_ms: 1_800_000_005_500, trust: ClockTrust::Plausible });
    let now = Now { since_boot: Instant::from_millis(1), wall };
    let mut sink = Collected::new();
    host.process(now, Side::WIRE, &mut Frames::new(&mut [(frame.to_vec(), Meta::plain())]), &mut sink);
    while let Some((ticket, job)) = host.next_job() {
        host.complete(now, ticket, job.run(records), &mut sink);
    }
    let mut out = sink.take();
    assert_eq!(out.len(), 1, "one answer");
    out.remove(0).1
}

#[test]
fn the_distributor_answers_requests_of_another_program() {
    let vectors = vectors();
    let (mut host, records) = (distributor(&vectors), repository(&vectors));
    for (asked, expected) in
        [("time-request", "time-reply"), ("key-request", "key-reply"), ("key-change", "key-changed")]
    {
        let frame = answer(&mut host, &records, &vectors.0[format!("{asked}.frame").as_str()]);
        let expected_frame = &vectors.0[format!("{expected}.frame").as_str()];
        let (ours, theirs) = (Message::parse(&frame[14..]).unwrap(), Message::parse(&expected_frame[14..]).unwrap());
        assert_eq!(frame[..14], expected_frame[..14], "{expected}");
        assert_eq!((ours.arp, ours.kind, ours.seconds), (theirs.arp, theirs.kind, theirs.seconds), "{expected}");
        // Half a second, where the vectors have a little more.
        assert_eq!(ours.data[..4], 0x8000_0000_u32.to_be_bytes(), "{expected}");
        assert_eq!(ours.data[4..], theirs.data[4..], "{expected}");
        assert!(vectors.distributor_key().verify(&ours).is_ok(), "{expected}");
    }
    let entered = records.find(vectors.ip("alpha.addresses"));
    let new = vectors.key("alpha.new_seed").record_key().unwrap().1.to_vec();
    assert!(matches!(entered, Lookup::Good { key, .. } if key == new));
}

#[test]
fn a_record_is_written_as_the_vectors_have_it() {
    let vectors = vectors();
    let record = Answer::parse(vectors.message("key-reply.frame").data).unwrap().rest.to_vec();
    let key = vectors.key("omega.seed").record_key().unwrap().1.to_vec();
    assert_eq!(Record { algorithm: 1, mac: Some(vectors.mac("omega.mac")), key: &key }.emit(), record);
}
