//! The golden vectors of `vectors/`, which an independent program made from the written protocol alone. Everything in them
//! is made again here by the code that runs in the daemon, and what the other program made is read, judged and opened.

mod broadcast;
mod model;
mod post_quantum;
mod resumption;

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{
    Bump, Checksum, ClockTrust, ErasingGenerator, Generator, Instant, Lane as _, Mailbox, Meta, Now, Side, Wall,
};
use identity::aead::Suite;
use identity::agreement::KeyPair;
use identity::schedule::Schedule;
use identity::signing::ed25519_pkcs8_from_seed;
use identity::{HostIdentity, Role, pem};
use shield::spin::Spin;
use siphasher::sip::SipHasher24;
use wire::cll::compression::Algorithm;
use wire::cll::handshake::{set_site_tag, tagged_parts};
use wire::cll::revocation::{ListName, Message as ListMessage, PIECE_LEN, Subject};
use wire::cll::rollover::{Keys, Kind};
use wire::cll::{Agreement, Challenge, Compression, Handshake, Offer, PacketType, Resolution, Rollover, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::nd::{advertisement, group_mac};
use wire::{EtherType, MacAddress};

use crate::job::{
    Answer, AnswerRollover, Answered, CertificateTime, Finish, FinishRollover, Finished, Origins, SignRequest,
    SignRollover, Successor, transcript,
};
use crate::keys::{AssociationKeys, Chosen, Direction, Material, ReceiveKey, SendKey};
use crate::limits::CLOCK_TOLERANCE;
use crate::message::{AssociationId, Incoming, Order, OrderKind, Outgoing, Request};
use crate::origin::Origin;
use crate::secrecy::Secrecy;
use crate::{Lane, Settings};

const SIPHASH: &str = include_str!("../../../vectors/siphash.txt");
const SITE: &str = include_str!("../../../vectors/site.txt");
const HANDSHAKES: [&str; 6] = [
    include_str!("../../../vectors/handshake-1.txt"),
    include_str!("../../../vectors/handshake-2.txt"),
    include_str!("../../../vectors/handshake-3.txt"),
    include_str!("../../../vectors/handshake-4.txt"),
    include_str!("../../../vectors/handshake-5.txt"),
    include_str!("../../../vectors/handshake-6.txt"),
];
const LIST_MESSAGES: &str = include_str!("../../../vectors/list-messages.txt");
const ROLLOVERS: &str = include_str!("../../../vectors/rollover.txt");
pub(crate) const START_UNIX_S: u64 = 1_800_000_000;
pub(crate) const WIRE_MTU: u16 = 1500;

/// One vector file: lines of `name = hex`, and comments.
pub(crate) struct Vectors(BTreeMap<&'static str, Vec<u8>>);

impl Vectors {
    pub(crate) fn read(text: &'static str) -> Vectors {
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pairs = lines.map(|line| line.split_once(" =").expect("name = hex"));
        Vectors(pairs.map(|(name, digits)| (name, bytes_of(digits.trim()))).collect())
    }

    pub(crate) fn bytes(&self, name: &str) -> &[u8] {
        self.0.get(name).unwrap_or_else(|| panic!("no vector {name}"))
    }

    fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.bytes(name).try_into().unwrap_or_else(|_| panic!("{name} has not {N} bytes"))
    }

    fn number(&self, name: &str) -> u32 {
        u32::from_be_bytes(self.array(name))
    }

    pub(crate) fn byte(&self, name: &str) -> u8 {
        self.array::<1>(name)[0]
    }

    /// Values whose names start with `prefix`, with the rest of the name.
    fn under(&self, prefix: &'static str) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_slice())))
    }
}

fn bytes_of(digits: &str) -> Vec<u8> {
    assert!(digits.len().is_multiple_of(2), "{digits}");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hex")).collect()
}

fn identity_of(site: &Vectors, host: &str) -> Arc<HostIdentity> {
    let block = |label, name: &str| pem::encode(label, site.bytes(name));
    let text = [
        block(pem::CERTIFICATE, &format!("{host}.certificate")),
        block(pem::CERTIFICATE, "authority.certificate"),
        block(pem::PRIVATE_KEY, &format!("{host}.pkcs8")),
        block(pem::SITE_KEY, "site_key"),
    ];
    Arc::new(HostIdentity::from_pem(&text.map(|block| block.to_string()).concat()).expect("an identity"))
}

/// One of the two hosts of a handshake, with what it chose.
struct Party {
    prefix: &'static str,
    settings: Arc<Settings>,
    offer: Offer,
    private: [u8; 32],
    timestamp_ms: u64,
}

impl Party {
    fn read(site: &Vectors, vectors: &Vectors, prefix: &'static str, host: &str) -> Party {
        let name = |field: &str| format!("{prefix}.{field}");
        let mut settings = Settings::new(identity_of(site, host), WIRE_MTU);
        settings.send_suite = Suite::from_id(vectors.byte(&name("suite"))).expect("a suite");
        settings.confidential = vectors.byte(&name("confidential")) != 0;
        settings.slow_nonce = vectors.byte(&name("slow_nonce")) != 0;
        settings.lanes = vectors.byte(&name("lanes"));
        settings.compression = Compression(vectors.byte(&name("compression")));
        let offer = Offer {
            agreement: Agreement::X25519,
            suite: settings.send_suite.id(),
            confidential: settings.confidential,
            slow_nonce: settings.slow_nonce,
            lanes: settings.lanes,
            receiver_index: vectors.number(&name("receiver_index")),
            lifetime_s: vectors.number(&name("lifetime_s")),
            compression: settings.compression,
            post_quantum: false,
            pre_shared: false,
        };
        Party {
            prefix,
            settings: Arc::new(settings),
            offer,
            private: vectors.array(&name("x25519_private")),
            timestamp_ms: u64::from_be_bytes(vectors.array(&name("timestamp_ms"))),
        }
    }

    fn key_pair(&self) -> KeyPair {
        KeyPair::from_random(&self.private).expect("a key pair")
    }

    fn lane(&self) -> Lane {
        Lane::new(Arc::clone(&self.settings))
    }

    /// The message up to the certificate.
    fn unsigned(&self, kind: PacketType, resolution: Resolution, nonce: [u8; 16], cookie: [u8; 16]) -> Vec<u8> {
        Handshake {
            kind,
            site_tag: [0; SITE_TAG_LEN],
            resolution,
            timestamp_ms: self.timestamp_ms,
            nonce,
            offer: self.offer,
            key_share: self.key_pair().public(),
            cookie,
            certificate: self.settings.identity.certificate().der(),
            signature: &[],
        }
        .emit_unsigned()
    }

    /// The whole frame of `message` to `destination`, tagged.
    fn frame(&self, destination: MacAddress, mut message: Vec<u8>) -> Vec<u8> {
        let header = Header { destination, source: self.settings.mac, ethertype: self.settings.ethertype }.emit();
        let [before, after] = tagged_parts(&message);
        let tag = self.settings.identity.site_key().frame_tag(b"handshake", &[&header, before, after]);
        set_site_tag(&mut message, &tag);
        [&header[..], &message].concat()
    }
}

/// One handshake of the vectors.
struct Scene {
    vectors: Vectors,
    initiator: Party,
    responder: Party,
}

impl Scene {
    fn all() -> impl Iterator<Item = Scene> {
        HANDSHAKES.into_iter().map(|text| {
            let (site, vectors) = (Vectors::read(SITE), Vectors::read(text));
            let initiator = Party::read(&site, &vectors, "initiator", "alpha");
            let responder = Party::read(&site, &vectors, "responder", "omega");
            Scene { vectors, initiator, responder }
        })
    }

    fn request(&self) -> &[u8] {
        &self.vectors.bytes("request.frame")[ETHERNET_LEN..]
    }

    fn reply(&self) -> &[u8] {
        &self.vectors.bytes("reply.frame")[ETHERNET_LEN..]
    }

    fn answer(&self) -> Answered {
        let request = Handshake::parse(self.request()).expect("a request");
        let first = self.responder.settings.identity.certificate().addresses().first().copied();
        let resolution = request.resolution.reply(self.responder.settings.mac, first);
        let unsigned_reply = self.responder.unsigned(PacketType::HandshakeReply, resolution, request.nonce, [0; 16]);
        let answer = Answer {
            origins: Origins {
                settings: Arc::clone(&self.responder.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            request: self.request().to_vec(),
            unsigned_reply,
            key_pair: self.responder.key_pair(),
        };
        answer.run().map_err(|refusal| refusal.detail).expect("a good request")
    }

    fn finish(&self) -> Finished {
        let finish = Finish {
            origins: Origins {
                settings: Arc::clone(&self.initiator.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            request: self.request().to_vec(),
            reply: self.reply().to_vec(),
            key_pair: Arc::new(self.initiator.key_pair()),
            asked_ip: None,
            asked_mac: Some(self.responder.settings.mac),
        };
        finish.run().map_err(|refusal| refusal.detail).expect("a good reply")
    }

    /// Both ways, each with the keys that its two ends derived apart.
    fn directions(&self) -> [Way<'_>; 2] {
        let AssociationKeys { send: from_initiator, receive: at_initiator, .. } = self.finish().keys;
        let AssociationKeys { send: from_responder, receive: at_responder, .. } = self.answer().keys;
        let (initiator, responder) = (&self.initiator, &self.responder);
        let (there, back) = (Direction::FromInitiator, Direction::FromResponder);
        [
            Way {
                sender: initiator,
                receiver: responder,
                direction: there,
                send: from_initiator,
                receive: at_responder,
            },
            Way {
                sender: responder,
                receiver: initiator,
                direction: back,
                send: from_responder,
                receive: at_initiator,
            },
        ]
    }
}

/// One direction of an association.
struct Way<'s> {
    sender: &'s Party,
    receiver: &'s Party,
    direction: Direction,
    send: Vec<SendKey>,
    receive: Vec<ReceiveKey>,
}

/// The examples of one lane in the order of their sequence numbers, with what the port of the stack knows of them.
fn examples() -> [(&'static str, Option<Meta>); 5] {
    // A TCP header behind Ethernet's 14 and IPv4's 20 bytes keeps its checksum at 16.
    let partial = Meta { checksum: Checksum::Partial { start: 34, offset: 16 }, ..Meta::plain() };
    let plain = Some(Meta::plain());
    [("udp", plain), ("short", plain), ("least", plain), ("partial", Some(partial)), ("empty", None)]
}

pub(crate) fn now(unix_s: u64) -> Now {
    let wall = Wall { unix_ms: unix_s * 1000, trust: ClockTrust::Synchronised };
    Now { since_boot: Instant::from_millis(unix_s * 1000), wall: Some(wall) }
}

#[test]
fn spinning_nonces_follow_the_published_hash() {
    let vectors = Vectors::read(SIPHASH);
    let message: [u8; 16] = std::array::from_fn(|at| at as u8);
    for (len, value) in vectors.under("siphash.") {
        let mut hasher = SipHasher24::new_with_key(&message);
        hasher.write(&message[..len.parse().expect("a length")]);
        assert_eq!(hasher.finish().to_le_bytes(), value, "{len} bytes");
    }
    let spin = Spin::new(&vectors.array("spin.key"));
    for (sequence, value) in vectors.under("spin.").filter(|(name, _)| *name != "key") {
        assert_eq!(spin.at(u32::from_str_radix(sequence, 16).expect("hex")).to_be_bytes(), value, "{sequence}");
    }
}

#[test]
fn keys_and_certificates_of_the_site_are_read() {
    let site = Vectors::read(SITE);
    for (host, role) in [("alpha", Role::Host), ("omega", Role::Router)] {
        let identity = identity_of(&site, host);
        let certificate = identity.anchor().verify(site.bytes(&format!("{host}.certificate")), START_UNIX_S);
        let certificate = certificate.expect("a certificate of this site");
        assert_eq!((certificate.name(), certificate.role()), (host, role));
        assert_eq!(certificate.mac().0, site.array(&format!("{host}.mac")));
        let addresses: Vec<u8> = certificate.addresses().iter().flat_map(|address| address.octets()).collect();
        assert_eq!(addresses, site.bytes(&format!("{host}.addresses")));
        let pkcs8 = ed25519_pkcs8_from_seed(&site.array(&format!("{host}.seed"))).expect("a key");
        assert_eq!(*pkcs8, site.bytes(&format!("{host}.pkcs8")));
    }
}

#[test]
fn requests_are_signed_and_tagged_alike() {
    for scene in Scene::all() {
        let parsed = Handshake::parse(scene.request()).expect("a request");
        assert_eq!(parsed.emit(), scene.request());
        let (nonce, cookie) = (scene.vectors.array("nonce"), scene.vectors.array("cookie"));
        let party = &scene.initiator;
        assert_eq!(party.key_pair().public(), scene.vectors.bytes("initiator.x25519_public"));
        let unsigned = party.unsigned(PacketType::HandshakeRequest, parsed.resolution, nonce, cookie);
        let signed = SignRequest { identity: Arc::clone(&party.settings.identity), unsigned }.run().expect("signed");
        let by_address = !parsed.resolution.is_by_hardware_address();
        let destination = if by_address { MacAddress::BROADCAST } else { scene.responder.settings.mac };
        assert_eq!(party.frame(destination, signed), scene.vectors.bytes("request.frame"));
    }
}

#[test]
fn replies_and_challenges_are_signed_and_tagged_alike() {
    for scene in Scene::all() {
        let reply = scene.answer().reply;
        assert_eq!(scene.responder.key_pair().public(), scene.vectors.bytes("responder.x25519_public"));
        let destination = scene.initiator.settings.mac;
        assert_eq!(scene.responder.frame(destination, reply), scene.vectors.bytes("reply.frame"));
        assert_eq!(transcript(scene.request(), scene.reply()), scene.vectors.array("transcript"));
        if scene.vectors.array("cookie") != [0; 16] {
            let (nonce, cookie) = (scene.vectors.array("nonce"), scene.vectors.array("cookie"));
            let challenge = Challenge { site_tag: [0; SITE_TAG_LEN], nonce, cookie };
            let frame = scene.responder.frame(destination, challenge.emit().to_vec());
            assert_eq!(frame, scene.vectors.bytes("challenge.frame"));
            let parsed = Challenge::parse(&frame[ETHERNET_LEN..]).expect("a challenge");
            assert_eq!((parsed.nonce, parsed.cookie), (nonce, cookie));
        }
    }
}

#[test]
fn every_key_is_derived_alike() {
    for scene in Scene::all() {
        let shared = scene.initiator.key_pair().agree(scene.responder.key_pair().public()).expect("agreed");
        let schedule = Schedule::new(&shared, &scene.vectors.array("transcript"));
        for Way { sender, direction, .. } in scene.directions() {
            for lane in 0..sender.offer.lanes {
                let name = |field| format!("{}.lane{lane}.{field}", sender.prefix);
                let suite = sender.settings.send_suite;
                let material = Material::derive(&schedule, direction, lane, suite);
                assert_eq!(material.key(suite), scene.vectors.bytes(&name("key")));
                assert_eq!(*material.iv, scene.vectors.array(&name("iv")));
                assert_eq!(*material.spin, scene.vectors.array(&name("spin_key")));
                assert_eq!(*material.slow, scene.vectors.array(&name("slow_key")));
            }
        }
    }
}

#[test]
fn frames_of_the_stack_are_sealed_alike() {
    for scene in Scene::all() {
        for Way { sender, receiver, send: keys, .. } in scene.directions() {
            for (lane, key) in keys.into_iter().enumerate() {
                let prefix = format!("{}.lane{lane}", sender.prefix);
                let first_sequence = scene.vectors.number(&format!("{prefix}.first_sequence"));
                let peer = receiver.settings.mac;
                let outgoing =
                    Outgoing { association: AssociationId(1), peer, key, first_sequence, carries_payload: true };
                let sealed = seal_all(&scene, sender.lane(), outgoing, &prefix);
                let expected = examples().map(|(name, _)| scene.vectors.bytes(&format!("{prefix}.{name}.wire")));
                assert_eq!(sealed, expected, "{prefix}");
            }
        }
    }
}

/// Gives a lane this key and all plain frames; what it sends to the wire.
fn seal_all(scene: &Scene, mut lane: Lane, outgoing: Outgoing, prefix: &str) -> Vec<Vec<u8>> {
    let (mut sink, mut requests) = (Collected::new(), Mailbox::new(8));
    let (at, peer) = (now(START_UNIX_S), outgoing.peer);
    lane.obey(at, Order(OrderKind::Send(Box::new(outgoing))), &mut sink, &mut requests);
    for (name, meta) in examples() {
        let Some(meta) = meta else {
            lane.obey(at, Order(OrderKind::ShowLife(peer)), &mut sink, &mut requests);
            continue;
        };
        let mut batch = [(scene.vectors.bytes(&format!("{prefix}.{name}.plain")).to_vec(), meta)];
        lane.process(at, Side::STACK, &mut Frames::new(&mut batch), &mut sink, &mut requests);
    }
    sink.take().into_iter().inspect(|(side, ..)| assert_eq!(*side, Side::WIRE)).map(|(_, frame, _)| frame).collect()
}

#[test]
fn sealed_frames_are_opened_once() {
    for scene in Scene::all() {
        for Way { sender, receiver, receive: keys, .. } in scene.directions() {
            for (lane, key) in keys.into_iter().enumerate() {
                let prefix = format!("{}.lane{lane}", sender.prefix);
                let origin = Arc::new(Origin::of(sender.settings.identity.certificate()));
                let association = AssociationId(1);
                let incoming = Incoming { association, origin, key, awaits_first_frame: false, carries_payload: true };
                open_all(&scene, receiver.lane(), incoming, &prefix);
            }
        }
    }
}

/// Gives a lane this key and all sealed frames, each of them twice.
fn open_all(scene: &Scene, mut lane: Lane, incoming: Incoming, prefix: &str) {
    let (mut sink, mut requests) = (Collected::new(), Mailbox::new(8));
    let at = now(START_UNIX_S);
    lane.obey(at, Order(OrderKind::Receive(Box::new(incoming))), &mut sink, &mut requests);
    for (name, meta) in examples() {
        let sealed = scene.vectors.bytes(&format!("{prefix}.{name}.wire"));
        let mut batch = [(sealed.to_vec(), Meta::plain()), (sealed.to_vec(), Meta::plain())];
        lane.process(at, Side::WIRE, &mut Frames::new(&mut batch), &mut sink, &mut requests);
        let opened =
            meta.map(|meta| (Side::STACK, scene.vectors.bytes(&format!("{prefix}.{name}.opened")).to_vec(), meta));
        assert_eq!(sink.take(), Vec::from_iter(opened), "{prefix}.{name}");
    }
    let ledger = lane.ledger();
    let wire = Side::WIRE as usize;
    assert_eq!((ledger.forwarded[wire], ledger.consumed[wire]), (4, 1));
    assert_eq!(ledger.drops(bump::DropReason::Replayed), 5);
}

/// A peer that seals payload before the ML-KEM exchange is over breaks the rule; what the link
/// layer itself says goes through.
#[test]
fn under_keys_that_carry_no_payload_none_is_let_in() {
    let scene = Scene::all().next().expect("a handshake");
    let Some(Way { sender, receiver, receive, .. }) = scene.directions().into_iter().next() else { return };
    let (mut lane, mut sink, mut requests) = (receiver.lane(), Collected::new(), Mailbox::new(8));
    let origin = Arc::new(Origin::of(sender.settings.identity.certificate()));
    let key = receive.into_iter().next().expect("a key");
    let incoming =
        Incoming { association: AssociationId(1), origin, key, awaits_first_frame: false, carries_payload: false };
    let at = now(START_UNIX_S);
    lane.obey(at, Order(OrderKind::Receive(Box::new(incoming))), &mut sink, &mut requests);
    for (name, _) in examples() {
        let sealed = scene.vectors.bytes(&format!("{}.lane0.{name}.wire", sender.prefix));
        lane.process(
            at,
            Side::WIRE,
            &mut Frames::new(&mut [(sealed.to_vec(), Meta::plain())]),
            &mut sink,
            &mut requests,
        );
    }
    assert_eq!(sink.take(), [], "nothing for the stack");
    let ledger = lane.ledger();
    assert_eq!((ledger.drops(bump::DropReason::KemPending), ledger.consumed[Side::WIRE as usize]), (4, 1));
}

#[test]
fn compressed_frames_are_expanded() {
    let scene = Scene::all().nth(5).expect("the sixth handshake");
    let [Way { sender, receiver, receive, send, .. }, back] = scene.directions();
    let agreed =
        [&send[0].compression, &receive[0].compression, &back.send[0].compression, &back.receive[0].compression];
    assert_eq!(agreed, [&Some(Algorithm::Lz4), &Some(Algorithm::Lz4), &None, &None], "each direction by itself");
    let (mut lane, mut sink, mut requests) = (receiver.lane(), Collected::new(), Mailbox::new(8));
    let origin = Arc::new(Origin::of(sender.settings.identity.certificate()));
    let key = receive.into_iter().next().expect("a key");
    let incoming =
        Incoming { association: AssociationId(1), origin, key, awaits_first_frame: false, carries_payload: true };
    let at = now(START_UNIX_S);
    lane.obey(at, Order(OrderKind::Receive(Box::new(incoming))), &mut sink, &mut requests);
    let partial = Meta { checksum: Checksum::Partial { start: 34, offset: 16 }, ..Meta::plain() };
    for (name, meta) in [("text", Meta::plain()), ("equal", partial), ("other", Meta::plain())] {
        let bytes = |part| scene.vectors.bytes(&format!("initiator.lane0.{name}.{part}")).to_vec();
        assert!(bytes("wire").len() < bytes("plain").len(), "{name}");
        let mut batch = [(bytes("wire"), Meta::plain())];
        lane.process(at, Side::WIRE, &mut Frames::new(&mut batch), &mut sink, &mut requests);
        assert_eq!(sink.take(), [(Side::STACK, bytes("plain"), meta)], "{name}");
    }
    assert_eq!(lane.compression().expanded_frames, 3);
}

/// The whole program, not only its parts, believes the other one: a host that started long enough ago answers its request.
#[test]
fn a_host_answers_the_requests() {
    for scene in Scene::all().filter(|scene| scene.vectors.array("cookie") == [0; 16]) {
        let started = now(START_UNIX_S - 2 * CLOCK_TOLERANCE.as_secs());
        let mut sink = Collected::new();
        let settings = Settings::clone(&scene.responder.settings);
        let mut host = crate::start(started, settings, Generator::from_seed([1; 32]), &mut sink);
        let mut keys = ErasingGenerator::from_seed(&[2; 32]);
        let at = now(START_UNIX_S);
        let mut batch = [(scene.vectors.bytes("request.frame").to_vec(), Meta::plain())];
        let parsed = Handshake::parse(scene.request()).expect("a request");
        while let Some((ticket, job)) = host.next_job() {
            host.complete(at, ticket, job.run(&mut keys), &mut sink);
        }
        if let IpAddr::V6(own) = parsed.resolution.target_ip() {
            // The stack says that it has the address.
            let mut said = [(advertisement_to_all(own, scene.responder.settings.mac), Meta::plain())];
            host.process(at, Side::STACK, &mut Frames::new(&mut said), &mut sink);
            while let Some((ticket, job)) = host.next_job() {
                host.complete(at, ticket, job.run(&mut keys), &mut sink);
            }
            sink.take();
        }
        host.process(at, Side::WIRE, &mut Frames::new(&mut batch), &mut sink);
        while let Some((ticket, job)) = host.next_job() {
            host.complete(at, ticket, job.run(&mut keys), &mut sink);
        }
        let expected = if parsed.resolution.is_by_hardware_address() { Side::WIRE } else { Side::STACK };
        let sent: Vec<Side> = sink.take().into_iter().map(|(side, ..)| side).collect();
        assert_eq!(sent, [expected], "a reply, or the proved question for the stack");
        let peers = host.control.peers(at.since_boot);
        assert_eq!(peers.iter().map(|peer| peer.name.as_str()).collect::<Vec<_>>(), ["alpha"]);
    }
}

/// A frame of a stack that says on its own that it has an address.
fn advertisement_to_all(address: Ipv6Addr, mac: MacAddress) -> Vec<u8> {
    let all = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let header = Header { destination: group_mac(all), source: mac, ethertype: EtherType::IPV6 };
    [&header.emit()[..], &advertisement(address, mac, all, false)].concat()
}

/// One rollover of the vectors, through the association of a handshake.
struct Roll {
    scene: Scene,
    vectors: Vectors,
    number: u8,
}

impl Roll {
    fn all() -> [Roll; 2] {
        let roll = |number, handshake| {
            let scene = Scene::all().nth(handshake).expect("a handshake");
            Roll { scene, vectors: Vectors::read(ROLLOVERS), number }
        };
        [roll(1, 0), roll(2, 2)]
    }

    fn bytes(&self, name: &str) -> &[u8] {
        self.vectors.bytes(&format!("rollover{}.{name}", self.number))
    }

    fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.bytes(name).try_into().expect("the right length")
    }

    /// Initiator and responder of the rollover; in the second the responder of the handshake asks.
    fn parties(&self) -> [&Party; 2] {
        let parties = [&self.scene.initiator, &self.scene.responder];
        if self.number == 1 { parties } else { [parties[1], parties[0]] }
    }

    fn offer(&self, name: &str) -> Offer {
        Offer {
            agreement: Agreement::X25519,
            suite: self.array::<1>(&format!("{name}.suite"))[0],
            confidential: self.array(&format!("{name}.confidential")) == [1],
            slow_nonce: self.array(&format!("{name}.slow_nonce")) == [1],
            lanes: self.array::<1>(&format!("{name}.lanes"))[0],
            receiver_index: u32::from_be_bytes(self.array(&format!("{name}.receiver_index"))),
            lifetime_s: u32::from_be_bytes(self.array(&format!("{name}.lifetime_s"))),
            compression: Compression::NONE,
            post_quantum: false,
            pre_shared: false,
        }
    }

    fn key_pair(&self, name: &str) -> KeyPair {
        KeyPair::from_random(&self.array(&format!("{name}.x25519_private"))).expect("a key pair")
    }

    fn unsigned(&self, kind: Kind, name: &str, party: &Party) -> Vec<u8> {
        let (offer, key_pair) = (self.offer(name), self.key_pair(name));
        let (certificate, key_share) = (party.settings.identity.certificate().der(), key_pair.public());
        Keys { kind, nonce: self.array("nonce"), offer, key_share, certificate, signature: &[] }.emit_unsigned()
    }

    fn successor(&self, of: &Party) -> Successor {
        let (peer, secrecy) = (of.settings.mac, Secrecy::default());
        Successor { of: self.array("old_transcript"), peer, kept: None, secrecy }
    }

    fn answer(&self) -> Answered {
        let [initiator, responder] = self.parties();
        let answer = AnswerRollover {
            origins: Origins {
                settings: Arc::clone(&responder.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            successor: self.successor(initiator),
            request: self.bytes("request").to_vec(),
            unsigned_reply: self.unsigned(Kind::Reply, "responder", responder),
            own: Chosen { offer: self.offer("responder"), suite: responder.settings.send_suite },
            key_pair: self.key_pair("responder"),
        };
        answer.run().map_err(|refusal| refusal.detail).expect("a good request")
    }

    fn finish(&self) -> Finished {
        let [initiator, responder] = self.parties();
        let finish = FinishRollover {
            origins: Origins {
                settings: Arc::clone(&initiator.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            successor: self.successor(responder),
            request: self.bytes("request").to_vec(),
            reply: self.bytes("reply").to_vec(),
            key_pair: Arc::new(self.key_pair("initiator")),
        };
        finish.run().map_err(|refusal| refusal.detail).expect("a good reply")
    }
}

#[test]
fn rollovers_are_signed_and_answered_alike() {
    for roll in Roll::all() {
        let [initiator, responder] = roll.parties();
        assert_eq!(roll.array::<32>("old_transcript"), roll.scene.finish().transcript);
        let sign = SignRollover {
            identity: Arc::clone(&initiator.settings.identity),
            successor: roll.successor(responder),
            unsigned: roll.unsigned(Kind::Request, "initiator", initiator),
        };
        assert_eq!(sign.run().expect("signed"), roll.bytes("request"));
        let answered = roll.answer();
        assert_eq!(answered.reply, roll.bytes("reply"));
        assert_eq!(
            (answered.transcript, roll.finish().transcript),
            (roll.array("transcript"), roll.array("transcript"))
        );
        assert_eq!(Rollover::Acknowledgement(roll.array("nonce")).emit(), roll.bytes("acknowledgement"));
    }
}

#[test]
fn keys_of_a_rollover_are_derived_alike() {
    for roll in Roll::all() {
        let shared = roll.key_pair("initiator").agree(roll.key_pair("responder").public()).expect("agreed");
        let schedule = Schedule::new(&shared, &roll.array("transcript"));
        let ends = ["initiator", "responder"].into_iter().zip([Direction::FromInitiator, Direction::FromResponder]);
        for ((name, direction), party) in ends.zip(roll.parties()) {
            let suite = party.settings.send_suite;
            let material = Material::derive(&schedule, direction, 0, suite);
            assert_eq!(material.key(suite), roll.bytes(&format!("{name}.lane0.key")));
            assert_eq!(*material.iv, roll.array(&format!("{name}.lane0.iv")));
            assert_eq!(*material.spin, roll.array(&format!("{name}.lane0.spin_key")));
        }
    }
}

/// Each message is sealed by a lane of its sender and opened by one of its receiver, which hands it to control.
#[test]
fn rollover_messages_travel_sealed_alike() {
    for roll in Roll::all() {
        let [initiator, responder] = roll.parties();
        let old = || {
            let [there, back] = roll.scene.directions();
            if roll.number == 1 { [there, back] } else { [back, there] }
        };
        let [asking, answering] = old();
        check_sealed(&roll, "request", initiator, responder, asking.send, asking.receive);
        check_sealed(&roll, "reply", responder, initiator, answering.send, answering.receive);
        let (send, receive) = (roll.finish().keys.send, roll.answer().keys.receive);
        check_sealed(&roll, "acknowledgement", initiator, responder, send, receive);
    }
}

#[test]
fn messages_about_lists_are_read_and_written_alike() {
    let vectors = Vectors::read(LIST_MESSAGES);
    let der = vectors.bytes("list.der");
    let number = u64::from_be_bytes(vectors.array("list.issued_unix"));
    let list = ListName { subject: Subject::Revocations, number, len: der.len() as u32 };
    let check = |name: String, message: ListMessage<'_>| {
        assert_eq!(message.emit(), vectors.bytes(&name), "{name}");
        assert_eq!(ListMessage::parse(vectors.bytes(&name)), Ok(message), "{name}");
    };
    check("offer".to_owned(), ListMessage::Offer(list));
    for (number, piece) in der.chunks(PIECE_LEN).enumerate() {
        let offset = (number * PIECE_LEN) as u32;
        check(format!("question.{number}"), ListMessage::Question(list, offset));
        check(format!("piece.{number}"), ListMessage::Piece(list, offset, piece));
    }
}

#[test]
fn messages_about_a_policy_are_read_and_written_alike() {
    let vectors = Vectors::read(include_str!("../../../vectors/policy.txt"));
    let policy = vectors.bytes("policy");
    let number = u64::from_be_bytes(vectors.array("version"));
    let list = ListName { subject: Subject::Policy, number, len: policy.len() as u32 };
    for (name, message) in [
        ("offer", ListMessage::Offer(list)),
        ("question", ListMessage::Question(list, 0)),
        ("piece", ListMessage::Piece(list, 0, policy)),
    ] {
        assert_eq!(message.emit(), vectors.bytes(name), "{name}");
        assert_eq!(ListMessage::parse(vectors.bytes(name)), Ok(message), "{name}");
    }
}

fn check_sealed(
    roll: &Roll,
    name: &str,
    sender: &Party,
    receiver: &Party,
    send: Vec<SendKey>,
    receive: Vec<ReceiveKey>,
) {
    let (mut sink, mut requests) = (Collected::new(), Mailbox::new(8));
    let (at, association) = (now(START_UNIX_S), AssociationId(1));
    let (message, sealed) = (roll.bytes(name).to_vec(), roll.bytes(&format!("{name}.wire")).to_vec());
    let first_sequence = u32::from_be_bytes(sealed[20..24].try_into().expect("four bytes"));
    let mut lane = sender.lane();
    let key = send.into_iter().next().expect("lane 0");
    let outgoing = Outgoing { association, peer: receiver.settings.mac, key, first_sequence, carries_payload: true };
    lane.obey(at, Order(OrderKind::Send(Box::new(outgoing))), &mut sink, &mut requests);
    lane.obey(at, Order(OrderKind::Control(receiver.settings.mac, message.clone())), &mut sink, &mut requests);
    let sent: Vec<Vec<u8>> = sink.take().into_iter().map(|(_, frame, _)| frame).collect();
    assert_eq!(sent, std::slice::from_ref(&sealed), "{name}");
    let mut lane = receiver.lane();
    let key = receive.into_iter().next().expect("lane 0");
    let origin = Arc::new(Origin::of(sender.settings.identity.certificate()));
    let incoming = Incoming { association, origin, key, awaits_first_frame: false, carries_payload: true };
    lane.obey(at, Order(OrderKind::Receive(Box::new(incoming))), &mut sink, &mut requests);
    lane.process(at, Side::WIRE, &mut Frames::new(&mut [(sealed.clone(), Meta::plain())]), &mut sink, &mut requests);
    assert_eq!(sink.take(), [], "nothing for the stack");
    match requests.pop() {
        Some(Request::Control(id, frame, opened)) => assert_eq!((id, frame, opened), (association, sealed, message)),
        other => panic!("{name}: {other:?}"),
    }
}
