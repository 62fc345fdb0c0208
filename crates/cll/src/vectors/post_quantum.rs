//! The golden ML-KEM exchange, and what pre-shared keys lead to. The pair of ML-KEM was made by
//! another program from the standard.

use std::sync::Arc;

use identity::certificate::HostCertificate;
use identity::kem::KemPair;
use identity::pre_shared::PreSharedKey;
use identity::schedule::{AddedSecret, Schedule};
use identity::{Verified, hash};
use wire::cll::rollover::{Kem, Kind};
use wire::cll::{Offer, Rollover};

use super::*;
use crate::job::{FinishKem, Inside};
use crate::ticket::Proof;

const POST_QUANTUM: &str = include_str!("../../../../vectors/post-quantum.txt");
const RESUMPTIONS: &str = include_str!("../../../../vectors/resumption.txt");

/// What two of the golden key shares lead to.
fn shared(vectors: &Vectors, prefix: &str) -> identity::agreement::SharedSecret {
    let pair = |side: &str| {
        let private = vectors.array(&format!("{prefix}{side}.x25519_private"));
        KeyPair::from_random(&private).expect("a key pair")
    };
    pair("initiator").agree(pair("responder").public()).expect("agreed")
}

fn added(vectors: &Vectors, name: &str) -> AddedSecret {
    AddedSecret::from_bytes(vectors.array(name))
}

/// Keys of lane 0 in both directions are those of the file.
fn assert_keys(vectors: &Vectors, prefix: &str, schedule: &Schedule, suites: [Suite; 2]) {
    let ends = [("initiator", Direction::FromInitiator), ("responder", Direction::FromResponder)];
    for ((name, direction), suite) in ends.into_iter().zip(suites) {
        let material = Material::derive(schedule, direction, 0, suite);
        assert_eq!(material.key(suite), vectors.bytes(&format!("{prefix}.{name}.lane0.key")));
        assert_eq!(*material.iv, vectors.array(&format!("{prefix}.{name}.lane0.iv")));
        assert_eq!(*material.spin, vectors.array(&format!("{prefix}.{name}.lane0.spin_key")));
    }
}

const SUITES: [Suite; 2] = [Suite::Aes256Gcm, Suite::Aes256Gcm];

#[test]
fn ml_kem_of_another_program_is_decapsulated() {
    let vectors = Vectors::read(POST_QUANTUM);
    let pair = KemPair::from_bytes(vectors.bytes("ml_kem.private"), vectors.bytes("ml_kem.public")).expect("a pair");
    let secret = pair.decapsulate(vectors.bytes("ml_kem.ciphertext")).expect("decapsulated");
    assert!(secret == added(&vectors, "ml_kem.secret"));
    let (ciphertext, ours) = identity::kem::encapsulate(vectors.bytes("ml_kem.public")).expect("encapsulated");
    assert!(pair.decapsulate(&ciphertext).expect("decapsulated") == ours, "its key is one to us, too");
}

#[test]
fn an_exchange_is_written_and_finished_alike() {
    let (vectors, scene) = (Vectors::read(POST_QUANTUM), Scene::all().next().expect("a handshake"));
    let nonce = vectors.array("exchange.nonce");
    let offer = |side: &str| -> Offer {
        let message = vectors.bytes(&format!("exchange.{side}"));
        Rollover::parse(message).expect("a message").offer().expect("an offer")
    };
    for (kind, side, value) in [(Kind::Request, "request", "public"), (Kind::Reply, "reply", "ciphertext")] {
        let (offer, value) = (offer(side), vectors.bytes(&format!("ml_kem.{value}")));
        assert!(offer.post_quantum && !offer.pre_shared);
        assert_eq!(Kem { kind, nonce, offer, value }.emit(), vectors.bytes(&format!("exchange.{side}")));
    }
    let old = Schedule::new(&shared(&scene.vectors, ""), &vectors.array("old.transcript"));
    assert!(old.kept() == added(&vectors, "old.kept"));
    let peer: Verified<HostCertificate> = scene.responder.settings.identity.certificate().clone();
    let successor = Successor {
        of: vectors.array("old.transcript"),
        peer: peer.mac(),
        kept: Some(Arc::new(old.kept())),
        secrecy: Secrecy::default(),
    };
    let settings = Arc::clone(&scene.initiator.settings);
    let finish = FinishKem {
        inside: Inside { settings, successor, certificate: peer, proof: Proof::signed(START_UNIX_S) },
        request: vectors.bytes("exchange.request").to_vec(),
        reply: vectors.bytes("exchange.reply").to_vec(),
        pair: Arc::new(
            KemPair::from_bytes(vectors.bytes("ml_kem.private"), vectors.bytes("ml_kem.public")).expect("a pair"),
        ),
    };
    let finished = finish.run().map_err(|refusal| refusal.detail).expect("a good reply");
    assert_eq!(finished.transcript, vectors.array("exchange.transcript"));
    assert!(finished.secrecy.post_quantum);
    let schedule =
        Schedule::encapsulated(&added(&vectors, "ml_kem.secret"), &old.kept(), &vectors.array("exchange.transcript"));
    assert!(finished.keys.kept == schedule.kept(), "the keys of the job are those of the file");
    assert_keys(&vectors, "exchange", &schedule, SUITES);
}

#[test]
fn the_sealed_messages_of_an_exchange_are_those_of_the_association() {
    let (vectors, scene) = (Vectors::read(POST_QUANTUM), Scene::all().next().expect("a handshake"));
    for (way, name) in scene.directions().into_iter().zip(["request", "reply"]) {
        let Way { sender, receiver, receive, .. } = way;
        let (mut lane, mut sink, mut requests) = (receiver.lane(), Collected::new(), Mailbox::new(8));
        let origin = Arc::new(Origin::of(sender.settings.identity.certificate()));
        let key = receive.into_iter().next().expect("a key");
        let association = AssociationId(1);
        let incoming = Incoming { association, origin, key, awaits_first_frame: false, carries_payload: false };
        let at = now(START_UNIX_S);
        lane.obey(at, Order(OrderKind::Receive(Box::new(incoming))), &mut sink, &mut requests);
        let mut batch = [(vectors.bytes(&format!("exchange.{name}.wire")).to_vec(), Meta::plain())];
        lane.process(at, Side::WIRE, &mut Frames::new(&mut batch), &mut sink, &mut requests);
        let message = vectors.bytes(&format!("exchange.{name}"));
        assert!(matches!(requests.pop(), Some(Request::Control(_, _, opened)) if opened == message), "{name}");
    }
}

#[test]
fn a_rollover_mixes_in_what_the_association_keeps() {
    let (vectors, rollovers) = (Vectors::read(POST_QUANTUM), Vectors::read(ROLLOVERS));
    let (shared, kept) = (shared(&rollovers, "rollover1."), added(&vectors, "old.kept"));
    let schedule = Schedule::with(&shared, &[&kept], &rollovers.array("rollover1.transcript")).expect("X25519");
    assert_keys(&vectors, "rollover", &schedule, SUITES);
}

#[test]
fn a_pre_shared_key_is_named_proved_and_mixed_in_alike() {
    let (vectors, scene) = (Vectors::read(POST_QUANTUM), Scene::all().next().expect("a handshake"));
    let key = PreSharedKey::from_bytes(vectors.array("pre_shared.key"));
    assert_eq!(key.name(), vectors.array("pre_shared.name"));
    let [before, after] = tagged_parts(scene.request());
    assert_eq!(hash::sha256(&[before, after]), vectors.array("pre_shared.request_hash"));
    assert_eq!(key.check(&vectors.array("pre_shared.request_hash")), vectors.array("pre_shared.proof"));
    let transcript = vectors.array("old.transcript");
    let schedule = Schedule::with(&shared(&scene.vectors, ""), &[key.secret()], &transcript).expect("X25519");
    assert_keys(&vectors, "pre_shared.handshake", &schedule, SUITES);
    let resumptions = Vectors::read(RESUMPTIONS);
    let secret = identity::ticket::ResumptionSecret::from_bytes(resumptions.array("resumption1.secret"));
    let (shared, transcript) = (shared(&resumptions, "resumption1."), resumptions.array("resumption1.transcript"));
    let schedule = secret.schedule(&shared, Some(key.secret()), &transcript).expect("X25519");
    assert_keys(&vectors, "pre_shared.resumption", &schedule, SUITES);
}
