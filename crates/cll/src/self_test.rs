//! A handshake with ourselves, before the first frame: does this machine's cryptography work with this identity?
//!
//! It finds a broken library, a key that does not fit, or an identity that no peer would accept, at start and not at the
//! first contact. And it brings all code of the handshake into memory, which halves the time of the first one.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::SecretSource;
use identity::agreement::KeyPair;
use identity::kem::{KemPair, encapsulate};
use shield::Nonces;
use wire::arp::{Arp, Operation};
use wire::cll::data::TAG_LEN;
use wire::cll::{COOKIE_LEN, Handshake, NONCE_LEN, Offer, PacketType, Resolution, SITE_TAG_LEN};

use crate::job::{Answer, CertificateTime, Finish, Origins, SignRequest, pre_shared_check};
use crate::keys::{AssociationKeys, ReceiveKey, SendKey};
use crate::settings::{Requirement, Settings};

/// What went wrong, in words.
pub type SelfTestError = String;

const BROKEN: &str = "the cryptographic library does not work on this machine";

/// Opens a handshake, answers it, judges the answer, and sends one frame each way, all within this function.
pub(crate) fn run(settings: &Arc<Settings>, keys: &mut dyn SecretSource) -> Result<(), SelfTestError> {
    let certificate = settings.identity.certificate();
    // A host without an IPv4 address asks by hardware address.
    let first = certificate.addresses().first().copied();
    let own_ip = first.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let time = CertificateTime::NotBefore(certificate.not_before_unix());
    let (ours, theirs) = (key_pair(settings, keys)?, key_pair(settings, keys)?);
    let unsigned = message(settings, PacketType::HandshakeRequest, own_ip, &ours, [0; COOKIE_LEN]);
    let sign = SignRequest { identity: Arc::clone(&settings.identity), unsigned };
    let request = sign.run().ok_or(BROKEN)?;
    let check = pre_shared_check(settings, &request);
    let unsigned_reply = message(settings, PacketType::HandshakeReply, own_ip, &theirs, check);
    if settings.post_quantum.is_on() {
        exchange_with_kem()?;
    }
    // What we demand of peers need not hold for ourselves: each side chooses how it sends.
    let require = Requirement { suites: vec![settings.send_suite], confidential: false };
    let settings = Arc::new(Settings { require, ..Settings::clone(settings) });
    let origins = Origins { settings, revoked: Arc::default(), time };
    let answer = Answer { origins: origins.clone(), request: request.clone(), unsigned_reply, key_pair: theirs };
    let answered = answer.run().map_err(|refusal| refusal.detail)?;
    let reply = answered.reply;
    let key_pair = Arc::new(ours);
    let finish = Finish { origins, request, reply, key_pair, asked_ip: first.map(Into::into), asked_mac: None };
    let finished = finish.run().map_err(|refusal| refusal.detail)?;
    exchange(&finished.keys, &answered.keys)?;
    exchange(&answered.keys, &finished.keys)
}

fn key_pair(settings: &Settings, keys: &mut dyn SecretSource) -> Result<KeyPair, SelfTestError> {
    let secret = keys.secret().ok_or("the kernel gives no randomness")?;
    KeyPair::of_profile(settings.profile(), &secret).map_err(|error| error.to_string())
}

fn exchange_with_kem() -> Result<(), SelfTestError> {
    let pair = KemPair::generate().map_err(|error| error.to_string())?;
    let (ciphertext, secret) = encapsulate(pair.public()).map_err(|error| error.to_string())?;
    let theirs = pair.decapsulate(&ciphertext).map_err(|error| error.to_string())?;
    if theirs == secret { Ok(()) } else { Err(BROKEN.to_owned()) }
}

fn message(
    settings: &Settings,
    kind: PacketType,
    own_ip: Ipv4Addr,
    key_pair: &KeyPair,
    cookie: [u8; COOKIE_LEN],
) -> Vec<u8> {
    let mac = settings.identity.certificate().mac();
    let operation = match kind {
        PacketType::HandshakeRequest => Operation::Request,
        _ => Operation::Reply,
    };
    let offer = Offer {
        agreement: settings.agreement(),
        suite: settings.send_suite.id(),
        confidential: settings.confidential,
        slow_nonce: settings.slow_nonce,
        lanes: 1,
        receiver_index: 0,
        lifetime_s: 0,
        compression: settings.compression,
        post_quantum: settings.post_quantum.is_on(),
        pre_shared: !settings.pre_shared.is_empty(),
    };
    Handshake {
        kind,
        site_tag: [0; SITE_TAG_LEN],
        resolution: Resolution::Arp(Arp {
            operation,
            sender_mac: mac,
            sender_ip: own_ip,
            target_mac: mac,
            target_ip: own_ip,
        }),
        timestamp_ms: 0,
        nonce: [0; NONCE_LEN],
        offer,
        key_share: key_pair.public(),
        cookie,
        certificate: settings.identity.certificate().der(),
        signature: &[],
    }
    .emit_unsigned()
}

/// Seals with the one's keys and opens with the other's.
fn exchange(sender: &AssociationKeys, receiver: &AssociationKeys) -> Result<(), SelfTestError> {
    let pair: Option<(&SendKey, &ReceiveKey)> = sender.send.first().zip(receiver.receive.first());
    let (send, receive) = pair.ok_or(BROKEN)?;
    // Who only authenticates encrypts nothing, and may not be able to.
    let (clear, text) = ([1; 28], vec![2; if send.confidential { 64 } else { 0 }]);
    let mut sealed = text.clone();
    let tag: [u8; TAG_LEN] = send.key.seal(7, &clear, &mut sealed).map_err(|error| error.to_string())?;
    let mut opened = vec![0; sealed.len()];
    receive.key.open(7, &clear, &sealed, &tag, &mut opened).map_err(|error| error.to_string())?;
    let is_hidden = sealed != text || !send.confidential;
    let same_nonces = send.nonces.header(0, 7) == Nonces::new(&receive.nonces).header(0, 7);
    if opened == text && is_hidden && same_nonces { Ok(()) } else { Err(BROKEN.to_owned()) }
}
