//! Resumptions of the vectors: tickets, both messages, and the keys that they lead to.

use super::*;
use crate::job::{AnswerResumption, CertificateTime, FinishResumption, Origins, bind_request};
use crate::ticket::{Content, HeldTicket, Span, name_of};
use identity::ticket::{ResumptionSecret, TicketKey};
use wire::cll::Resumption;
use wire::cll::resumption::{BINDER_LEN, Grant, Kind as Part};

const RESUMPTIONS: &str = include_str!("../../../../vectors/resumption.txt");

/// One resumption of an association of a handshake.
pub(super) struct Resumed {
    scene: Scene,
    vectors: Vectors,
    number: u8,
}

impl Resumed {
    pub(super) fn all() -> [Resumed; 2] {
        let resumed = |number, handshake| {
            let scene = Scene::all().nth(handshake).expect("a handshake");
            Resumed { scene, vectors: Vectors::read(RESUMPTIONS), number }
        };
        [resumed(1, 0), resumed(2, 2)]
    }

    fn bytes(&self, name: &str) -> &[u8] {
        self.vectors.bytes(&format!("resumption{}.{name}", self.number))
    }

    fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.bytes(name).try_into().expect("the right length")
    }

    /// Holder and issuer; in the second the responder of the handshake holds the ticket.
    fn parties(&self) -> [&Party; 2] {
        let parties = [&self.scene.initiator, &self.scene.responder];
        if self.number == 1 { parties } else { [parties[1], parties[0]] }
    }

    pub(super) fn message(&self, name: &str) -> &[u8] {
        &self.bytes(&format!("resumption.{name}"))[ETHERNET_LEN..]
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

    pub(super) fn secret(&self) -> ResumptionSecret {
        ResumptionSecret::from_bytes(self.array("secret"))
    }

    fn span(&self) -> Span {
        let moment = |name| u64::from_be_bytes(self.array(name));
        Span { begins: moment("begins"), ends: moment("ends"), signed: moment("signed") }
    }

    fn ticket(&self) -> &[u8] {
        Grant::parse(self.bytes("grant")).expect("a grant").ticket
    }

    fn unbound(&self, kind: Part<'_>, name: &str, like: &Resumption<'_>) -> Vec<u8> {
        Resumption {
            kind,
            site_tag: [0; SITE_TAG_LEN],
            resolution: like.resolution,
            timestamp_ms: u64::from_be_bytes(self.array(&format!("{name}.timestamp_ms"))),
            nonce: self.array("nonce"),
            offer: self.offer(name),
            key_share: self.key_pair(name).public(),
            binder: [0; BINDER_LEN],
        }
        .emit_unbound()
    }

    fn origins(&self, of: &Party) -> Origins {
        Origins {
            settings: Arc::clone(&of.settings),
            revoked: Arc::default(),
            time: CertificateTime::Shown(START_UNIX_S + 60),
        }
    }

    pub(super) fn answer(&self) -> Answered {
        let answer = self.answering(self.message("request"));
        answer.run().map_err(|refusal| refusal.detail).expect("a good request")
    }

    /// What the issuer does with this request.
    pub(super) fn answering(&self, request: &[u8]) -> AnswerResumption {
        let [_, issuer] = self.parties();
        let like = Resumption::parse(self.message("reply")).expect("a reply");
        AnswerResumption {
            origins: self.origins(issuer),
            ticket_keys: vec![TicketKey::from_bytes([7; 32]), TicketKey::from_bytes(self.array("ticket_key"))],
            request: request.to_vec(),
            unbound_reply: self.unbound(Part::Reply(&[]), "responder", &like),
            own: Chosen { offer: self.offer("responder"), suite: issuer.settings.send_suite },
            key_pair: self.key_pair("responder"),
        }
    }

    pub(super) fn finish(&self) -> Finished {
        let finish = self.finishing(self.message("request"), self.message("reply"));
        finish.run().map_err(|refusal| refusal.detail).expect("a good reply")
    }

    /// What the holder of the ticket, who sent this request, does with this reply.
    pub(super) fn finishing(&self, request: &[u8], reply: &[u8]) -> FinishResumption {
        let [holder, issuer] = self.parties();
        let held = HeldTicket {
            secrecy: Secrecy::default(),
            span: self.span(),
            secret: self.secret(),
            holder: name_of(holder.settings.identity.certificate()),
            issuer: issuer.settings.identity.certificate().clone(),
            ticket: self.ticket().to_vec(),
        };
        FinishResumption {
            origins: self.origins(holder),
            held: Arc::new(held),
            request: request.to_vec(),
            reply: reply.to_vec(),
            key_pair: Arc::new(self.key_pair("initiator")),
            asked_ip: None,
        }
    }
}

/// The secret comes from the association in which the ticket was given: what the issuer gives is what the holder takes.
#[test]
fn tickets_are_made_alike() {
    for resumed in Resumed::all() {
        let [holder, issuer] = resumed.parties();
        assert_eq!(resumed.array::<32>("old_transcript"), resumed.scene.finish().transcript);
        let (initiator, responder) = (resumed.scene.finish().keys.tickets, resumed.scene.answer().keys.tickets);
        let (given, taken) =
            if resumed.number == 1 { (responder.given, initiator.taken) } else { (initiator.given, responder.taken) };
        assert_eq!((given, taken), (Some(resumed.secret()), Some(resumed.secret())));
        let content = Content {
            secrecy: Secrecy::default(),
            span: resumed.span(),
            secret: resumed.secret(),
            issuer: name_of(issuer.settings.identity.certificate()),
            certificate: holder.settings.identity.certificate().der().to_vec(),
        };
        let key = TicketKey::from_bytes(resumed.array("ticket_key"));
        let ticket = key.seal(resumed.array("ticket_number"), &content.emit()).expect("sealed");
        let lifetime_s = (resumed.span().ends - resumed.span().begins) as u32;
        assert_eq!(Grant { lifetime_s, ticket: &ticket }.emit(), resumed.bytes("grant"));
    }
}

#[test]
fn both_messages_are_bound_and_tagged_alike() {
    for resumed in Resumed::all() {
        let [holder, issuer] = resumed.parties();
        let like = Resumption::parse(resumed.message("request")).expect("a request");
        assert_eq!(like.emit(), resumed.message("request"));
        let unbound = resumed.unbound(Part::Request(resumed.ticket()), "initiator", &like);
        let request = bind_request(&resumed.secret(), unbound);
        assert_eq!(holder.frame(issuer.settings.mac, request), resumed.bytes("resumption.request"));
        let answered = resumed.answer();
        assert_eq!(issuer.frame(holder.settings.mac, answered.reply), resumed.bytes("resumption.reply"));
        let transcript = resumed.array("transcript");
        assert_eq!((answered.transcript, resumed.finish().transcript), (transcript, transcript));
        assert_eq!(answered.proof.signed_unix_s, START_UNIX_S);
        assert_eq!((answered.peer.mac(), resumed.finish().peer.mac()), (holder.settings.mac, issuer.settings.mac));
    }
}

#[test]
fn keys_of_a_resumption_are_derived_alike() {
    for resumed in Resumed::all() {
        let shared = resumed.key_pair("initiator").agree(resumed.key_pair("responder").public()).expect("agreed");
        let schedule = resumed.secret().schedule(&shared, None, &resumed.array("transcript")).expect("X25519");
        let ends = ["initiator", "responder"].into_iter().zip([Direction::FromInitiator, Direction::FromResponder]);
        for ((name, direction), party) in ends.zip(resumed.parties()) {
            let suite = party.settings.send_suite;
            let material = Material::derive(&schedule, direction, 0, suite);
            assert_eq!(material.key(suite), resumed.bytes(&format!("{name}.lane0.key")));
            assert_eq!(*material.iv, resumed.array(&format!("{name}.lane0.iv")));
            assert_eq!(*material.spin, resumed.array(&format!("{name}.lane0.spin_key")));
        }
        let next = |name: &str| Some(ResumptionSecret::from_bytes(resumed.array(&format!("{name}.next_secret"))));
        let (there, back) = (resumed.finish().keys.tickets, resumed.answer().keys.tickets);
        assert_eq!((there.given, there.taken), (next("initiator"), next("responder")));
        assert_eq!((back.given, back.taken), (next("responder"), next("initiator")));
    }
}
