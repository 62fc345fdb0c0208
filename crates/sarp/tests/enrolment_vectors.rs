//! The golden vectors of `vectors/enrolment.txt`, which an independent program made from the written protocol alone.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, Generator, Instant, Meta, Now, Side, Wall};
use identity::certificate::CertificateRequest;
use identity::distributor::{DistributorKey, RequestMaster};
use identity::sealing;
use identity::signing::{SigningKey, ed25519_pkcs8_from_seed};
use identity::token::{NumberKey, SEALING_INFO, Token, TokenKey, fingerprint};
use sarp::akd::{Akd, Lookup, Outcome, RecordKey, Records};
use sarp::{Distributor, Host, Settings};
use wire::MacAddress;
use wire::sarp::enrolment::{Application, Enrolment, Fetch, State};
use wire::sarp::{Kind, Message};

const ENROLMENT: &str = include_str!("../../../vectors/enrolment.txt");
const SITE: &str = include_str!("../../../vectors/site.txt");
const DISTRIBUTOR: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xaa]);

struct Vectors(BTreeMap<&'static str, Vec<u8>>);

fn vectors() -> Vectors {
    let bytes = |digits: &str| -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    };
    let lines = ENROLMENT.lines().chain(SITE.lines()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| line.split_once(" = ").unwrap());
    Vectors(pairs.map(|(name, digits)| (name, bytes(digits))).collect())
}

impl Vectors {
    fn text(&self, name: &str) -> &str {
        std::str::from_utf8(&self.0[name]).unwrap()
    }

    fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.0[name].as_slice().try_into().unwrap()
    }

    fn master(&self) -> RequestMaster {
        RequestMaster::from_bytes(self.array("master"))
    }

    fn token(&self) -> Token {
        self.text("token.text").parse().unwrap()
    }

    fn message(&self, name: &str) -> Message<'_> {
        Message::parse(&self.0[name][14..]).unwrap()
    }
}

#[test]
fn the_number_follows_from_what_was_drawn() {
    let vectors = vectors();
    let (key, number) = (NumberKey::of(&vectors.master()), u64::from_be_bytes(vectors.array("token.number")));
    assert_eq!(key.number(vectors.array("token.drawn")), number);
    assert!(key.knows(number) && !key.knows(number ^ 1) && !key.knows(number ^ 1 << 24));
}

#[test]
fn the_token_reads_and_writes_the_same_text() {
    let vectors = vectors();
    let token = vectors.token();
    assert_eq!((token.number().to_be_bytes(), token.name()), (vectors.array("token.number"), "alpha"));
    assert_eq!((token.distributors()[0].ip, token.distributors()[0].mac), ([10, 0, 0, 53].into(), DISTRIBUTOR));
    assert!(token.is_of(&vectors.0["authority.certificate"]) && !token.is_of(&vectors.0["alpha.certificate"]));
    assert_eq!(token.to_text().as_str(), vectors.text("token.text"));
    let certificate = &vectors.0["authority.certificate"];
    let made = Token::new(&vectors.master(), token.number(), certificate, "alpha", token.distributors());
    assert_eq!(made.to_text().as_str(), vectors.text("token.text"));
}

#[test]
fn every_message_reads_and_writes_the_same_bytes_and_has_the_right_tag() {
    let vectors = vectors();
    let key = TokenKey::from_master(&vectors.master(), vectors.token().number());
    let names = [
        ("application.frame", Kind::Apply),
        ("fetch.frame", Kind::Fetch),
        ("waiting.frame", Kind::Enrolment),
        ("piece.frame", Kind::Enrolment),
        ("refused.frame", Kind::Enrolment),
    ];
    for (name, kind) in names {
        let message = vectors.message(name);
        assert_eq!((message.kind, message.emit()), (kind, vectors.0[name][14..].to_vec()), "{name}");
        let data = match kind {
            Kind::Apply => Application::parse(message.data).unwrap().emit(),
            Kind::Fetch => Fetch::parse(message.data).unwrap().emit(),
            _ => Enrolment::parse(message.data).unwrap().emit(),
        };
        assert_eq!(data, message.data, "{name}");
        let signed = message.signed_bytes();
        let tag = if kind == Kind::Enrolment { key.answer_tag(&signed) } else { key.request_tag(&signed) };
        assert_eq!(tag, message.signature, "{name}");
        assert_eq!(vectors.token().key().verify_answer(&signed, message.signature), kind == Kind::Enrolment, "{name}");
    }
}

#[test]
fn what_another_program_sealed_opens() {
    let vectors = vectors();
    let associated = [&vectors.0["token.number"][..], &vectors.0["request"]].concat();
    let private = vectors.array("sealing.private");
    let opened = sealing::open(&private, SEALING_INFO, &associated, &vectors.0["sealed"]).unwrap();
    assert_eq!(*opened, vectors.0["bundle"]);
}

#[test]
fn a_request_of_another_program_is_read_and_has_the_fingerprint() {
    let vectors = vectors();
    let message = vectors.message("application.frame");
    let application = Application::parse(message.data).unwrap();
    let request = CertificateRequest::from_der(application.request).unwrap();
    assert_eq!((request.name(), request.mac()), ("alpha", MacAddress(vectors.array("alpha.mac"))));
    assert_eq!(fingerprint(request.public_key(), &application.sealing_key), vectors.text("fingerprint.text"));
}

/// Has the sealed identity once somebody has applied.
struct Repository(Vec<u8>);

impl Records for Repository {
    fn find(&self, _ip: Ipv4Addr) -> Lookup {
        Lookup::Failed
    }

    fn replace(&self, _ip: Ipv4Addr, _old: &[u8], _new: RecordKey<'_>) -> bool {
        false
    }

    fn apply(&self, _application: &Application<'_>, _mac: MacAddress) -> Option<Outcome> {
        Some(State::Waiting.into())
    }

    fn fetch(&self, _token: u64) -> Option<Outcome> {
        Some(Outcome { state: State::Approved, sealed: self.0.clone() })
    }
}

#[test]
fn a_distributor_answers_another_program_byte_for_byte() {
    let vectors = vectors();
    let der = ed25519_pkcs8_from_seed(&[1; 32]).unwrap();
    let key = Arc::new(SigningKey::from_pkcs8_der(&der).unwrap());
    let public = DistributorKey::new(1, key.record_key().unwrap().1).unwrap();
    // Who enrols does not have it yet.
    let settings = Settings {
        key: Arc::clone(&key),
        mac: DISTRIBUTOR,
        addresses: vec![[10, 0, 0, 53].into()],
        distributors: vec![Distributor { ip: [10, 0, 0, 53].into(), mac: DISTRIBUTOR, key: public }],
        request_keys: vectors.master().key_of(1).into(),
        known_hosts: Vec::new(),
        window: Duration::from_secs(30),
        dhcp_client: None,
        dhcp_server: None,
        sign_requests: false,
        weaken: sarp::Weaken::default(),
    };
    let akd = Akd::new(key, vectors.master());
    let mut host = Host::new(Arc::new(settings), Some(akd), Generator::from_seed([1; 32]));
    let records = Repository(vectors.0["sealed"].clone());
    let wall = Some(Wall { unix_ms: 1_800_000_005_500, trust: ClockTrust::Plausible });
    let now = Now { since_boot: Instant::from_millis(1), wall };
    for (asked, answer) in [("application.frame", "waiting.frame"), ("fetch.frame", "piece.frame")] {
        let mut sink = Collected::new();
        let mut frames = [(vectors.0[asked].clone(), Meta::plain())];
        host.process(now, Side::WIRE, &mut Frames::new(&mut frames), &mut sink);
        while let Some((ticket, job)) = host.next_job() {
            host.complete(now, ticket, job.run(&records), &mut sink);
        }
        let sent: Vec<Vec<u8>> = sink.take().into_iter().map(|(_, frame, _)| frame).collect();
        assert_eq!(sent, [vectors.0[answer].clone()], "{asked}");
    }
}
