//! The golden vectors of the paper profile (`vectors/paper-profile.txt`), which an independent program made from section 27 of the
//! written protocol. The salts of signatures are everybody's own, so theirs are judged and ours are not compared.

use std::sync::Arc;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Lane as _, Mailbox, Meta, Side};
use identity::aead::Suite;
use identity::agreement::KeyPair;
use identity::{HostIdentity, Profile, pem};
use wire::cll::handshake::unsigned_parts;
use wire::cll::{Agreement, Handshake, SITE_TAG_LEN};
use wire::ethernet::HEADER_LEN as ETHERNET_LEN;

use crate::job::{Answer, CertificateTime, Finish, Origins, SignRequest, transcript};
use crate::keys::{AssociationKeys, Chosen, Direction, derive};
use crate::message::{AssociationId, Incoming, Order, OrderKind, Outgoing};
use crate::origin::Origin;
use crate::vectors::{START_UNIX_S, Vectors, WIRE_MTU, now};
use crate::{Lane, Settings};

const FILE: &str = include_str!("../../../vectors/paper-profile.txt");
const FRAMES: usize = 7;

/// One of the handshakes.
struct Scene {
    vectors: Vectors,
    number: u8,
    initiator: Arc<Settings>,
    responder: Arc<Settings>,
}

impl Scene {
    fn all() -> impl Iterator<Item = Scene> {
        [1, 2, 3].into_iter().map(|number| {
            let vectors = Vectors::read(FILE);
            let settings = |host: &str, side: &str| {
                let suite = vectors.byte(&format!("handshake-{number}.{side}.suite"));
                let mut settings = Settings::new(identity_of(&vectors, host), WIRE_MTU);
                settings.send_suite = Suite::from_id(suite).expect("a suite");
                if settings.send_suite.is_nonce_only() {
                    settings.require.suites = vec![settings.send_suite];
                }
                settings.confidential = vectors.byte(&format!("handshake-{number}.{side}.confidential")) == 1;
                Arc::new(settings)
            };
            let (initiator, responder) = (settings("alpha", "initiator"), settings("omega", "responder"));
            Scene { initiator, responder, vectors, number }
        })
    }

    fn bytes(&self, name: &str) -> &[u8] {
        self.vectors.bytes(&format!("handshake-{}.{name}", self.number))
    }

    fn message(&self, name: &str) -> &[u8] {
        &self.bytes(name)[ETHERNET_LEN..]
    }

    fn key_pair(&self, side: &str) -> KeyPair {
        let exponent = self.bytes(&format!("{side}.exponent")).try_into().expect("32 bytes");
        KeyPair::of_profile(Profile::Paper, &exponent).expect("a key pair")
    }

    /// The keys that a side derives from the vectors' own messages.
    fn keys(&self, side: &str) -> AssociationKeys {
        let (request, reply) = (self.parsed("request.frame"), self.parsed("reply.frame"));
        let chosen =
            |message: &Handshake<'_>, settings: &Settings| Chosen { offer: message.offer, suite: settings.send_suite };
        let ends = [chosen(&request, &self.initiator), chosen(&reply, &self.responder)];
        let (direction, [own, peers], share) = match side {
            "initiator" => (Direction::FromInitiator, ends, reply.key_share),
            _ => (Direction::FromResponder, [ends[1], ends[0]], request.key_share),
        };
        let shared = self.key_pair(side).agree(share).expect("agreed");
        let transcript = transcript(self.message("request.frame"), self.message("reply.frame"));
        assert_eq!(transcript, *self.bytes("transcript"));
        derive(&shared, &[], &transcript, direction, own, peers).expect("derived")
    }

    /// A message of the vectors without site tag and signature.
    fn unsigned(&self, name: &str) -> Vec<u8> {
        let mut message = self.parsed(name);
        message.site_tag = [0; SITE_TAG_LEN];
        message.emit_unsigned()
    }

    /// Whether the responder believes `request`.
    fn answers(&self, request: Vec<u8>) -> bool {
        let settings = Arc::clone(&self.responder);
        let (unsigned_reply, key_pair) = (self.unsigned("reply.frame"), self.key_pair("responder"));
        Answer { origins: origins(settings), request, unsigned_reply, key_pair }.run().is_ok()
    }

    /// Whether the initiator believes `reply`.
    fn finishes(&self, reply: Vec<u8>) -> bool {
        let (settings, request) = (Arc::clone(&self.initiator), self.message("request.frame").to_vec());
        let key_pair = Arc::new(self.key_pair("initiator"));
        let (asked_ip, asked_mac) = (None, Some(self.responder.mac));
        Finish { origins: origins(settings), request, reply, key_pair, asked_ip, asked_mac }.run().is_ok()
    }

    fn parsed(&self, name: &str) -> Handshake<'_> {
        Handshake::parse(self.message(name)).expect("a handshake")
    }
}

fn origins(settings: Arc<Settings>) -> Origins {
    Origins { settings, revoked: Arc::default(), time: CertificateTime::Shown(START_UNIX_S) }
}

fn identity_of(vectors: &Vectors, host: &str) -> Arc<HostIdentity> {
    let block = |label, name: &str| pem::encode(label, vectors.bytes(name));
    let text = [
        block(pem::CERTIFICATE, &format!("{host}.certificate")),
        block(pem::CERTIFICATE, "authority.certificate"),
        block(pem::PRIVATE_KEY, &format!("{host}.pkcs8")),
        block(pem::PAPER_KEY, &format!("{host}.paper_key")),
        block(pem::SITE_KEY, "site_key"),
    ];
    Arc::new(HostIdentity::from_pem(&text.map(|block| block.to_string()).concat()).expect("an identity"))
}

#[test]
fn identities_with_rsa_keys_of_both_hashes_are_read() {
    for (host, length) in [("alpha", 128), ("omega", 128)] {
        let identity = identity_of(&Vectors::read(FILE), host);
        assert_eq!(identity.profile(), Profile::Paper);
        assert!(identity.certificate().signs_as_the_cll_paper(), "{host}");
        assert_eq!(identity.sign(b"x").expect("signed").len(), length);
    }
}

#[test]
fn messages_are_laid_out_alike() {
    for scene in Scene::all() {
        for (name, side) in [("request.frame", "initiator"), ("reply.frame", "responder")] {
            let parsed = scene.parsed(name);
            assert_eq!(parsed.offer.agreement, Agreement::Group14);
            assert_eq!(parsed.key_share, scene.key_pair(side).public());
            let unsigned = scene.unsigned(name);
            assert_eq!(unsigned_parts(&unsigned), parsed.signed_parts(scene.message(name)));
        }
        let identity = Arc::clone(&scene.initiator.identity);
        let ours = SignRequest { identity, unsigned: scene.unsigned("request.frame") }.run().expect("signed");
        assert_eq!(ours.len(), scene.message("request.frame").len());
        assert!(scene.answers(ours));
    }
}

#[test]
fn the_other_programs_signatures_hold() {
    for scene in Scene::all() {
        for name in ["request.frame", "reply.frame"] {
            let judges =
                |message| if name == "request.frame" { scene.answers(message) } else { scene.finishes(message) };
            let mut message = scene.message(name).to_vec();
            assert!(judges(message.clone()), "{name}");
            *message.last_mut().expect("a signature") ^= 1;
            assert!(!judges(message), "a damaged {name}");
        }
    }
}

#[test]
fn frames_are_sealed_and_opened_alike() {
    for scene in Scene::all() {
        for (from, to) in [("initiator", "responder"), ("responder", "initiator")] {
            let side = |name| if name == "initiator" { &scene.initiator } else { &scene.responder };
            let (sender, receiver) = (side(from), side(to));
            let example = |count: usize, field: &str| scene.bytes(&format!("{from}.{count}.{field}")).to_vec();
            let all = |field: &str| (0..FRAMES).map(|count| example(count, field)).collect::<Vec<_>>();
            let (mut sink, mut requests) = (Collected::new(), Mailbox::new(8));
            let (at, association) = (now(START_UNIX_S), AssociationId(1));

            let mut lane = Lane::new(Arc::clone(sender));
            let key = scene.keys(from).send.into_iter().next().expect("lane 0");
            let first_sequence =
                u32::from_be_bytes(scene.bytes(&format!("{from}.first_sequence")).try_into().expect("4"));
            let outgoing = Outgoing { association, peer: receiver.mac, key, first_sequence, carries_payload: true };
            lane.obey(at, Order(OrderKind::Send(Box::new(outgoing))), &mut sink, &mut requests);
            let mut batch: Vec<_> = all("plain").into_iter().map(|frame| (frame, Meta::plain())).collect();
            lane.process(at, Side::STACK, &mut Frames::new(&mut batch), &mut sink, &mut requests);
            let sent: Vec<Vec<u8>> = sink.take().into_iter().map(|(_, frame, _)| frame).collect();
            assert_eq!(sent, all("wire"), "{from}");

            let mut lane = Lane::new(Arc::clone(receiver));
            let key = scene.keys(to).receive.into_iter().next().expect("lane 0");
            let origin = Arc::new(Origin::of(sender.identity.certificate()));
            let incoming = Incoming { association, origin, key, awaits_first_frame: false, carries_payload: true };
            lane.obey(at, Order(OrderKind::Receive(Box::new(incoming))), &mut sink, &mut requests);
            let mut batch: Vec<_> = sent.into_iter().map(|frame| (frame, Meta::plain())).collect();
            lane.process(at, Side::WIRE, &mut Frames::new(&mut batch), &mut sink, &mut requests);
            let opened: Vec<Vec<u8>> = sink.take().into_iter().map(|(_, frame, _)| frame).collect();
            assert_eq!(opened, all("plain"), "{to}");
        }
    }
}
