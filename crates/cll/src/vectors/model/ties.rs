//! Each tie of the models: evaluated on the golden messages, and then field for field by what the
//! code refuses.

use std::collections::BTreeSet;

use bump::DropReason;
use identity::hash::sha256;
use identity::site_key::SiteKey;
use wire::cll::GroupFrame;

use super::super::resumption::Resumed;
use super::super::*;
use super::{Exchange, Message, Model, counted};
use crate::job::broadcast::{Batch, CheckAnnouncement, CheckRoot, Outcome, Work};
use crate::merkle;
use crate::secrecy::Secrecy;

const CHALLENGE: &str = include_str!("../../../../../model/challenge.vp");
const GROUP: &str = include_str!("../../../../../model/group.vp");
const HANDSHAKE: &str = include_str!("../../../../../model/handshake.vp");
const RESUMPTION: &str = include_str!("../../../../../model/resumption.vp");
const ROLLOVER: &str = include_str!("../../../../../model/rollover.vp");

/// What the code says to a changed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Accepted,
    Refused(DropReason),
}

impl Verdict {
    fn of<T>(result: Result<T, crate::job::Refusal>) -> Verdict {
        result.map_or_else(|refusal| Verdict::Refused(refusal.reason), |_| Verdict::Accepted)
    }
}

/// One change to one field that leaves a message readable.
struct Change {
    field: &'static str,
    what: &'static str,
    /// The byte to change within the field, and the bits.
    at: usize,
    bits: u8,
}

const fn change(field: &'static str, what: &'static str, at: usize, bits: u8) -> Change {
    Change { field, what, at, bits }
}

/// One of each part of a handshake message that has another value with which the message is still
/// one.
const OF_HANDSHAKES: [Change; 20] = [
    change("kind", "request or reply", 0, 0x07),
    change("site_tag", "proof", 0, 1),
    change("site_tag", "hint", 15, 1),
    change("arp", "operation", 7, 3),
    change("arp", "sender's hardware address", 13, 1),
    change("arp", "sender's address", 17, 1),
    change("arp", "target's hardware address", 23, 1),
    change("arp", "target's address", 27, 1),
    change("timestamp", "highest byte", 0, 1),
    change("timestamp", "lowest byte", 7, 1),
    change("nonce", "first byte", 0, 1),
    change("nonce", "last byte", 15, 1),
    change("offer", "suite", 1, 3),
    change("offer", "protection", 2, 1),
    change("offer", "receiver index", 7, 8),
    change("offer", "lifetime", 11, 1),
    change("offer", "compression", 12, 1),
    change("offer", "slow nonce", 13, 2),
    change("key_share", "a byte", 5, 1),
    change("cookie", "a byte", 15, 1),
];

/// The same of a rollover message.
const OF_ROLLOVERS: [Change; 10] = [
    change("kind", "request or reply", 0, 0x03),
    change("nonce", "first byte", 0, 1),
    change("nonce", "last byte", 15, 1),
    change("offer", "suite", 1, 3),
    change("offer", "protection", 2, 1),
    change("offer", "receiver index", 7, 8),
    change("offer", "lifetime", 11, 1),
    change("offer", "compression", 12, 1),
    change("offer", "slow nonce", 13, 2),
    change("key_share", "a byte", 5, 1),
];

/// The same of a resumption message.
const OF_RESUMPTIONS: [Change; 18] = [
    change("site_tag", "proof", 0, 1),
    change("site_tag", "hint", 15, 1),
    change("arp_head", "operation", 7, 3),
    change("sender", "hardware address", 5, 1),
    change("sender", "address", 9, 1),
    change("target", "hardware address", 5, 1),
    change("target", "address", 9, 1),
    change("timestamp", "highest byte", 0, 1),
    change("timestamp", "lowest byte", 7, 1),
    change("nonce", "first byte", 0, 1),
    change("nonce", "last byte", 15, 1),
    change("offer", "suite", 1, 3),
    change("offer", "protection", 2, 1),
    change("offer", "receiver index", 7, 8),
    change("offer", "lifetime", 11, 1),
    change("offer", "compression", 12, 1),
    change("offer", "slow nonce", 13, 2),
    change("key_share", "a byte", 5, 1),
];

/// What a request has beside that, and a reply covers.
const OF_TICKETS: [Change; 4] = [
    change("number", "first byte", 0, 1),
    change("ticket", "first byte", 0, 1),
    change("binder", "first byte", 0, 1),
    change("binder", "last byte", 31, 1),
];

fn handshake(name: &'static str, bytes: &[u8]) -> Message {
    let certificate = counted(bytes, 132);
    let lengths = [
        ("kind", 1),
        ("flags", 1),
        ("site_tag", 16),
        ("arp", 28),
        ("timestamp", 8),
        ("nonce", 16),
        ("offer", 14),
        ("key_share", 32),
        ("cookie", 16),
        ("certificate", certificate),
    ];
    Message::cut(name, bytes, &lengths, "signature")
}

fn rollover(name: &'static str, bytes: &[u8]) -> Message {
    let certificate = counted(bytes, 64);
    let lengths =
        [("kind", 1), ("flags", 1), ("nonce", 16), ("offer", 14), ("key_share", 32), ("certificate", certificate)];
    Message::cut(name, bytes, &lengths, "signature")
}

fn resumption(name: &'static str, bytes: &[u8]) -> Message {
    let mut lengths = vec![
        ("kind", 1),
        ("flags", 1),
        ("site_tag", 16),
        ("arp_head", 8),
        ("sender", 10),
        ("target", 10),
        ("timestamp", 8),
        ("nonce", 16),
        ("offer", 14),
        ("key_share", 32),
    ];
    if name == "reply" {
        lengths.push(("binder", 32));
        return Message::cut(name, bytes, &lengths, "signature");
    }
    lengths.extend([("length", 2), ("number", 16), ("ticket", counted(bytes, 116) - 2 - 16)]);
    Message::cut(name, bytes, &lengths, "binder")
}

fn context(old: &[u8]) -> Message {
    Message::cut("context", old, &[], "old")
}

/// Another certificate of the same key, name and addresses, by the same authority: what a renewal
/// gives.
fn renewed(site: &Vectors, host: &str) -> Vec<u8> {
    let mut seed = [0; 32];
    seed.copy_from_slice(site.bytes("authority.seed"));
    let key = pem::encode(pem::PRIVATE_KEY, &ed25519_pkcs8_from_seed(&seed).expect("a key"));
    let authority = pem::encode(pem::CERTIFICATE, site.bytes("authority.certificate"));
    let site_key = SiteKey::from_bytes(site.array("site_key"));
    let authority = authority::Site::from_pem(&authority, &key, site_key).expect("a site");
    let block = |label, name: &str| pem::encode(label, site.bytes(name));
    let identity = [
        block(pem::CERTIFICATE, &format!("{host}.certificate")),
        block(pem::CERTIFICATE, "authority.certificate"),
        block(pem::PRIVATE_KEY, &format!("{host}.pkcs8")),
        block(pem::SITE_KEY, "site_key"),
    ];
    let identity = identity.map(|block| block.to_string()).concat();
    let asked = authority::enrolment::renewal(&identity).expect("a request");
    let asked = pem::single(&asked, pem::CERTIFICATE_REQUEST).expect("a request");
    let asked = identity::certificate::CertificateRequest::from_der(&asked).expect("a request");
    let wanted = authority::Request::from_certificate_request(&asked).expect("a request");
    let mut random = |bytes: &mut [u8]| bytes.fill(0x5a);
    let bundle = authority.issue(&wanted, &asked, &mut random, START_UNIX_S).expect("a certificate");
    bundle.certificate().der().to_vec()
}

/// The message with another certificate in its place.
fn with_certificate(message: &Message, certificate: &[u8]) -> Vec<u8> {
    let range = message.range("certificate");
    let len = u16::try_from(certificate.len()).expect("a short one").to_be_bytes();
    [&message.bytes[..range.start], &len, certificate, &message.bytes[range.end..]].concat()
}

/// The code must refuse exactly the changes to fields that the model says this signature covers,
/// and for the signature's sake.
fn check_each(message: &Message, covered: &BTreeSet<String>, changes: &[&Change], judge: impl Fn(&[u8]) -> Verdict) {
    check_each_for(DropReason::BadSignature, message, covered, changes, judge);
}

/// The same of what covers fields otherwise, and is refused for this reason.
fn check_each_for(
    reason: DropReason,
    message: &Message,
    covered: &BTreeSet<String>,
    changes: &[&Change],
    judge: impl Fn(&[u8]) -> Verdict,
) {
    assert_eq!(judge(&message.bytes), Verdict::Accepted, "as it came");
    for Change { field, what, at, bits } in changes.iter().copied() {
        let mut changed = message.bytes.clone();
        changed[message.range(field).start + at] ^= bits;
        let is_covered = covered.contains(&format!("{}.{field}", message.name));
        let expected = if is_covered { Verdict::Refused(reason) } else { Verdict::Accepted };
        assert_eq!(judge(&changed), expected, "{}.{field}, {what}", message.name);
    }
    for (field, _) in &message.fields {
        let is_tried = changes.iter().any(|change| change.field == *field);
        assert!(is_tried || ELSEWHERE.contains(field), "nobody changes {field}");
        let name = format!("{}.{field}", message.name);
        assert!(ALSO_COVERED.contains(field) <= covered.contains(&name), "{name} is not covered");
    }
}

/// The certificate is changed into another good one, and the signature is what is checked.
const ELSEWHERE: [&str; 10] =
    ["kind", "flags", "certificate", "signature", "leaves", "length", "old", "number", "ticket", "binder"];
/// Fields that nothing here leaves out.
const ALSO_COVERED: [&str; 7] = ["kind", "flags", "certificate", "leaves", "length", "number", "ticket"];

/// Another good certificate of the same key is refused because it is not the one that was signed.
fn check_certificate(message: &Message, host: &str, judge: impl Fn(&[u8]) -> Verdict) {
    let changed = with_certificate(message, &renewed(&Vectors::read(SITE), host));
    assert_eq!(judge(&changed), Verdict::Refused(DropReason::BadSignature), "{}.certificate", message.name);
}

/// The signature of `message` is one by `host` over what the model says.
fn check_signed(model: &Model, tie: &str, exchange: &Exchange, message: &Message, host: &str) -> BTreeSet<String> {
    let term = model.tied(tie).argument("SIGN", 1);
    let signed = model.evaluate(term, exchange);
    let certificate = identity_of(&Vectors::read(SITE), host).certificate().clone();
    let signature = &message.field("signature")[2..];
    assert!(certificate.verify_signature(&signed, signature).is_ok(), "{tie} of {} is signed otherwise", model.file);
    model.fields(term)
}

/// Handshakes about IPv4 addresses; with IPv6 the same fields stand elsewhere.
fn scenes() -> impl Iterator<Item = Scene> {
    Scene::all()
        .filter(|scene| matches!(Handshake::parse(scene.request()).expect("a request").resolution, Resolution::Arp(_)))
}

impl Scene {
    fn exchange(&self) -> Exchange {
        Exchange(vec![handshake("request", self.request()), handshake("reply", self.reply())])
    }

    fn judge_request(&self, request: &[u8]) -> Verdict {
        let like = Handshake::parse(self.request()).expect("a request");
        let first = self.responder.settings.identity.certificate().addresses().first().copied();
        let resolution = like.resolution.reply(self.responder.settings.mac, first);
        let answer = Answer {
            origins: Origins {
                settings: Arc::clone(&self.responder.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            request: request.to_vec(),
            unsigned_reply: self.responder.unsigned(PacketType::HandshakeReply, resolution, like.nonce, [0; 16]),
            key_pair: self.responder.key_pair(),
        };
        Verdict::of(answer.run())
    }

    fn judge_reply(&self, request: &[u8], reply: &[u8]) -> Verdict {
        let finish = Finish {
            origins: Origins {
                settings: Arc::clone(&self.initiator.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            request: request.to_vec(),
            reply: reply.to_vec(),
            key_pair: Arc::new(self.initiator.key_pair()),
            asked_ip: None,
            asked_mac: None,
        };
        Verdict::of(finish.run())
    }
}

#[test]
fn a_handshake_signs_what_the_model_says() {
    let model = Model::read("handshake.vp", HANDSHAKE);
    for scene in scenes() {
        let exchange = scene.exchange();
        let [request, reply] = &exchange.0[..] else { panic!("two messages") };
        let of_request = check_signed(&model, "handshake_request", &exchange, request, "alpha");
        check_each(request, &of_request, &OF_HANDSHAKES.each_ref(), |changed| scene.judge_request(changed));
        check_certificate(request, "alpha", |changed| scene.judge_request(changed));
        let of_reply = check_signed(&model, "handshake_reply", &exchange, reply, "omega");
        check_each(reply, &of_reply, &OF_HANDSHAKES.each_ref(), |changed| scene.judge_reply(&request.bytes, changed));
        check_certificate(reply, "omega", |changed| scene.judge_reply(&request.bytes, changed));
        // The reply covers the request as it was sent, its signature included.
        check_each(request, &of_reply, &OF_HANDSHAKES.each_ref(), |changed| scene.judge_reply(changed, &reply.bytes));
        assert!(of_reply.contains("request.signature"));
        let transcript = model.evaluate(model.tied("handshake_transcript"), &exchange);
        assert_eq!(transcript, scene.answer().transcript);
        assert_eq!(transcript, scene.finish().transcript);
    }
}

#[test]
fn a_challenged_request_is_that_of_the_handshake() {
    let model = Model::read("challenge.vp", CHALLENGE);
    for scene in scenes() {
        let exchange = scene.exchange();
        let covered = check_signed(&model, "handshake_request", &exchange, &exchange.0[0], "alpha");
        assert!(covered.contains("request.cookie"));
    }
}

impl Roll {
    /// The old transcript, the request and the reply.
    fn exchange(&self) -> Exchange {
        let [request, reply] = ["request", "reply"].map(|name| rollover(name, self.bytes(name)));
        Exchange(vec![context(self.bytes("old_transcript")), request, reply])
    }

    fn judge_request(&self, old: &[u8], request: &[u8]) -> Verdict {
        let [initiator, responder] = self.parties();
        let answer = AnswerRollover {
            origins: Origins {
                settings: Arc::clone(&responder.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            successor: Successor {
                of: old.try_into().expect("32 bytes"),
                peer: initiator.settings.mac,
                kept: None,
                secrecy: Secrecy::default(),
            },
            request: request.to_vec(),
            unsigned_reply: self.unsigned(Kind::Reply, "responder", responder),
            own: Chosen { offer: self.offer("responder"), suite: responder.settings.send_suite },
            key_pair: self.key_pair("responder"),
        };
        Verdict::of(answer.run())
    }

    fn judge_reply(&self, old: &[u8], request: &[u8], reply: &[u8]) -> Verdict {
        let [initiator, responder] = self.parties();
        let finish = FinishRollover {
            origins: Origins {
                settings: Arc::clone(&initiator.settings),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            successor: Successor {
                of: old.try_into().expect("32 bytes"),
                peer: responder.settings.mac,
                kept: None,
                secrecy: Secrecy::default(),
            },
            request: request.to_vec(),
            reply: reply.to_vec(),
            key_pair: Arc::new(self.key_pair("initiator")),
        };
        Verdict::of(finish.run())
    }
}

const OF_CONTEXT: [Change; 2] = [change("old", "first byte", 0, 1), change("old", "last byte", 31, 1)];

#[test]
fn a_rollover_signs_what_the_model_says() {
    let model = Model::read("rollover.vp", ROLLOVER);
    for (roll, [initiator, responder]) in Roll::all().into_iter().zip([["alpha", "omega"], ["omega", "alpha"]]) {
        let exchange = roll.exchange();
        let [context, request, reply] = &exchange.0[..] else { panic!("three") };
        let (old, q, r) = (&context.bytes[..], &request.bytes[..], &reply.bytes[..]);
        let of_request = check_signed(&model, "rollover_request", &exchange, request, initiator);
        check_each(request, &of_request, &OF_ROLLOVERS.each_ref(), |changed| roll.judge_request(old, changed));
        check_each(context, &of_request, &OF_CONTEXT.each_ref(), |changed| roll.judge_request(changed, q));
        check_certificate(request, initiator, |changed| roll.judge_request(old, changed));
        let of_reply = check_signed(&model, "rollover_reply", &exchange, reply, responder);
        check_each(reply, &of_reply, &OF_ROLLOVERS.each_ref(), |changed| roll.judge_reply(old, q, changed));
        check_each(request, &of_reply, &OF_ROLLOVERS.each_ref(), |changed| roll.judge_reply(old, changed, r));
        check_each(context, &of_reply, &OF_CONTEXT.each_ref(), |changed| roll.judge_reply(changed, q, r));
        check_certificate(reply, responder, |changed| roll.judge_reply(old, q, changed));
        let transcript = model.evaluate(model.tied("rollover_transcript"), &exchange);
        assert_eq!(transcript, roll.answer().transcript);
        assert_eq!(transcript, roll.finish().transcript);
    }
}

impl Resumed {
    fn exchange(&self) -> Exchange {
        Exchange(["request", "reply"].map(|name| resumption(name, self.message(name))).into())
    }

    fn judge_request(&self, request: &[u8]) -> Verdict {
        Verdict::of(self.answering(request).run())
    }

    fn judge_reply(&self, request: &[u8], reply: &[u8]) -> Verdict {
        Verdict::of(self.finishing(request, reply).run())
    }

    /// The binder of a message is what the code makes of what the model says; the fields of that.
    fn check_bound(&self, model: &Model, tie: &str, exchange: &Exchange, message: &Message) -> BTreeSet<String> {
        let term = model.tied(tie).argument("MAC", 1);
        let bound = model.evaluate(term, exchange);
        let label = model.evaluate(term.argument("CONCAT", 0), exchange);
        let binder = self.secret().binder(&label, &[&bound[label.len()..]]);
        assert_eq!(binder, message.field("binder"), "{tie} of {} is bound otherwise", model.file);
        model.fields(term)
    }

    /// The reply as who has stolen the ticket's secret binds it anew, and cannot sign it.
    fn bound_anew(&self, model: &Model, request: &Message, reply: &[u8]) -> Vec<u8> {
        let changed = Exchange(vec![resumption("request", &request.bytes), resumption("reply", reply)]);
        let term = model.tied("resumption_bound_reply").argument("MAC", 1);
        let label = model.evaluate(term.argument("CONCAT", 0), &changed);
        // Names that stand in both messages differ now, so the message says what is bound.
        let covered = |field: &str| changed.field(field).expect("a field").to_vec();
        let hash = sha256(&[&request.bytes[..2], &request.bytes[18..]]);
        let fields = ["kind", "flags", "arp_head", "sender", "target", "timestamp", "nonce", "offer", "key_share"];
        let fields = fields.map(|field| covered(&format!("reply.{field}"))).concat();
        let binder = self.secret().binder(&label, &[&hash, &fields]);
        let range = changed.0[1].range("binder");
        [&reply[..range.start], &binder, &reply[range.end..]].concat()
    }
}

#[test]
fn a_resumption_binds_and_signs_what_the_model_says() {
    let model = Model::read("resumption.vp", RESUMPTION);
    for (resumed, issuer) in Resumed::all().into_iter().zip(["omega", "alpha"]) {
        let exchange = resumed.exchange();
        let [request, reply] = &exchange.0[..] else { panic!("two messages") };
        let (q, r) = (&request.bytes[..], &reply.bytes[..]);
        let changes = OF_RESUMPTIONS.each_ref();
        let of_request = resumed.check_bound(&model, "resumption_request", &exchange, request);
        check_each_for(DropReason::BadBinder, request, &of_request, &changes, |changed| resumed.judge_request(changed));
        let of_binder = resumed.check_bound(&model, "resumption_bound_reply", &exchange, reply);
        let judge = |changed: &[u8]| resumed.judge_reply(q, changed);
        check_each_for(DropReason::BadBinder, reply, &of_binder, &changes, judge);
        let of_all = [&changes[..], &OF_TICKETS.each_ref()].concat();
        let judge = |changed: &[u8]| resumed.judge_reply(changed, r);
        check_each_for(DropReason::BadBinder, request, &of_binder, &of_all, judge);
        // Who has the secret of the ticket can bind, and is stopped by the signature.
        let of_reply = check_signed(&model, "resumption_reply", &exchange, reply, issuer);
        assert_eq!(of_reply, of_binder.into_iter().chain(["reply.binder".to_owned()]).collect());
        let judge = |changed: &[u8]| match resumed.judge_reply(q, &resumed.bound_anew(&model, request, changed)) {
            // Another sender is not whom the certificate names, which shows before the signature.
            Verdict::Refused(DropReason::CertificateAddress) => Verdict::Refused(DropReason::BadSignature),
            verdict => verdict,
        };
        check_each(reply, &of_reply, &changes, judge);
        let transcript = model.evaluate(model.tied("resumption_transcript"), &exchange);
        assert_eq!(transcript, resumed.answer().transcript);
        assert_eq!(transcript, resumed.finish().transcript);
    }
}

/// A frame and an announcement, which the code put in batches of two: the frame first, the
/// announcement second.
fn group_messages() -> (Vectors, [Vec<u8>; 2]) {
    let vectors = Vectors::read(include_str!("../../../../../vectors/broadcast.txt"));
    let batch = |unproved: [&str; 2]| {
        let frames = unproved.iter().enumerate().map(|(at, name)| {
            let mut frame = vectors.bytes(name).to_vec();
            frame[ETHERNET_LEN + 38] = u8::try_from(at).expect("0 or 1");
            frame[ETHERNET_LEN + 39] = 2;
            frame
        });
        let (identity, incarnation) = (identity_of(&Vectors::read(SITE), "alpha"), vectors.array("incarnation"));
        let site_key = identity.site_key().clone();
        let work = Work::Sign(Box::new(Batch { identity, site_key, incarnation, frames: frames.collect() }));
        let Outcome::Signed(Some(frames)) = work.run() else { panic!("not signed") };
        frames
    };
    let frames = batch(["batch.unproved.0", "batch.unproved.1"]);
    let announcements = batch(["announcements.unproved.0", "announcements.unproved.1"]);
    let both = [frames[0].clone(), announcements[1].clone()];
    (vectors, both)
}

const HEAD: [(&str, usize); 9] = [
    ("ethernet", ETHERNET_LEN),
    ("kind", 1),
    ("flags", 1),
    ("site_tag", 16),
    ("incarnation", 8),
    ("time", 8),
    ("counter", 4),
    ("leaf", 1),
    ("leaves", 1),
];
const GROUP_AT: usize = ETHERNET_LEN + 40;

fn group_frame(bytes: &[u8]) -> Message {
    let payload = counted(bytes, GROUP_AT + 1) - 2;
    let rest = [("part", 1), ("length", 2), ("ethertype", 2), ("payload", payload), ("path", 32)];
    Message::cut("frame", bytes, &[&HEAD[..], &rest].concat(), "signature")
}

fn announcement(bytes: &[u8]) -> Message {
    let rest = [("nonce", 16), ("certificate", counted(bytes, GROUP_AT + 16)), ("path", 32)];
    Message::cut("announcement", bytes, &[&HEAD[..], &rest].concat(), "signature")
}

fn judge_frame(bytes: &[u8]) -> Verdict {
    let (ethernet, message) = bytes.split_at(ETHERNET_LEN);
    let frame = GroupFrame::parse(message).expect("a frame");
    let leaf = merkle::leaf(ethernet, &message[..frame.unproved_len()]);
    let root = merkle::Way::of(leaf, frame.head.place, frame.proof.path).root();
    let check = CheckRoot {
        certificate: Arc::new(identity_of(&Vectors::read(SITE), "alpha").certificate().clone()),
        signed: merkle::signed(frame.head.stamp.incarnation, frame.head.place.leaves, &root),
        signature: frame.proof.signature.to_vec(),
    };
    let Outcome::Root(result) = Work::CheckRoot(Box::new(check)).run() else { panic!("a root") };
    Verdict::of(result)
}

fn judge_announcement(bytes: &[u8]) -> Verdict {
    let check = CheckAnnouncement {
        origins: Origins {
            settings: Arc::new(Settings::new(identity_of(&Vectors::read(SITE), "omega"), WIRE_MTU)),
            revoked: Arc::default(),
            time: CertificateTime::Shown(START_UNIX_S),
        },
        asked: identity_of(&Vectors::read(SITE), "alpha").certificate().mac(),
        frame: bytes.to_vec(),
    };
    let Outcome::Announced(result) = Work::CheckAnnouncement(Box::new(check)).run() else { panic!("an announcement") };
    Verdict::of(result)
}

/// Changes to what both messages to groups begin with, and to the path.
const OF_HEADS: [Change; 10] = [
    change("ethernet", "destination", 5, 1),
    change("ethernet", "source", 11, 1),
    change("ethernet", "EtherType", 13, 1),
    change("site_tag", "proof", 0, 1),
    change("incarnation", "a byte", 3, 1),
    change("time", "highest byte", 0, 1),
    change("time", "lowest byte", 7, 1),
    change("counter", "lowest byte", 3, 1),
    change("leaf", "the other", 0, 1),
    change("path", "a byte", 31, 1),
];
const OF_FRAMES: [Change; 3] = [
    change("part", "of how many", 0, 2),
    change("ethertype", "lowest byte", 1, 1),
    change("payload", "first byte", 0, 1),
];
const OF_ANNOUNCEMENTS: [Change; 1] = [change("nonce", "a byte", 9, 1)];

#[test]
fn frames_to_groups_sign_what_the_model_says() {
    let model = Model::read("group.vp", GROUP);
    let (_, [frame, announced]) = group_messages();
    let exchange = Exchange(vec![group_frame(&frame), announcement(&announced)]);
    for (at, (tie, judge)) in
        [("group_frame", judge_frame as fn(&[u8]) -> Verdict), ("announcement", judge_announcement)]
            .into_iter()
            .enumerate()
    {
        let message = &exchange.0[at];
        let covered = check_signed(&model, tie, &exchange, message, "alpha");
        let own: &[Change] = if at == 0 { &OF_FRAMES } else { &OF_ANNOUNCEMENTS };
        let changes: Vec<&Change> = OF_HEADS.iter().chain(own).collect();
        check_each(message, &covered, &changes, judge);
        if at == 1 {
            check_certificate(message, "alpha", judge);
        }
    }
}
