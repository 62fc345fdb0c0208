//! A machine that enrols by token: what it sends, and what it makes of the answers. It has no address, no time and no identity;
//! it believes who proves to know the token's secret, as far as that goes: what it gets in the end is sealed to it and has to
//! prove itself.

use std::time::Duration;

use bump::{Generator, Instant};
use identity::token::{Place, TokenKey};
use wire::arp::{Arp, Operation};
use wire::ethernet::{Header, MIN_LEN};
use wire::sarp::data::{NONCE_LEN, Question};
use wire::sarp::enrolment::{Application, Enrolment, Fetch, Piece, State};
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

use crate::limits;

/// What a machine applies with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The hardware address of its interface.
    pub mac: MacAddress,
    /// The key of its token.
    pub key: TokenKey,
    /// The distributors that can be asked; at least one.
    pub distributors: Vec<Place>,
    /// The key that its identity is to be sealed to.
    pub sealing_key: [u8; 32],
    /// Its request for a certificate.
    pub request: Vec<u8>,
}

/// News of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A distributor has taken the application; the manager is to decide.
    Applied,
    /// The identity is here, sealed. Once it is installed, say so.
    Sealed(Vec<u8>),
    /// The distributors know that it is installed, or will not hear of it any more.
    Done,
    /// It has come to nothing.
    Ended(State),
}

/// What it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// That a distributor takes the application.
    Admission,
    /// That the manager decides.
    Decision,
    /// The next piece of the identity.
    Piece,
    /// That its own program has installed the identity.
    Installation,
    /// That a distributor hears of that.
    Farewell,
    /// Nothing more.
    Nothing,
}

/// A machine that enrols.
#[derive(Debug)]
pub struct Applicant {
    settings: Settings,
    random: Generator,
    awaits: Awaits,
    /// Of the question that is open; another one with every other question.
    nonce: [u8; NONCE_LEN],
    /// The place in the list of the distributor that is asked next.
    asked: usize,
    tries: u32,
    next_try: Instant,
    received: Vec<u8>,
    total: u16,
}

impl Applicant {
    /// A machine that is about to apply. `random` is for nonces.
    #[must_use]
    pub fn new(settings: Settings, random: Generator, now: Instant) -> Applicant {
        let mut applicant = Applicant {
            settings,
            random,
            awaits: Awaits::Admission,
            nonce: [0; NONCE_LEN],
            asked: 0,
            tries: 0,
            next_try: now,
            received: Vec::new(),
            total: 0,
        };
        applicant.turn_to(Awaits::Admission, now);
        applicant
    }

    /// When [`send`](Applicant::send) has something to send next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        (!matches!(self.awaits, Awaits::Installation | Awaits::Nothing)).then_some(self.next_try)
    }

    /// How long no distributor has answered the open question, in tries.
    #[must_use]
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// The frame that is due. Each try goes to another distributor.
    pub fn send(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.deadline().is_none_or(|at| at > now) {
            return None;
        }
        let place = *self.settings.distributors.get(self.asked % self.settings.distributors.len().max(1))?;
        self.tries = self.tries.saturating_add(1);
        self.asked = self.asked.wrapping_add(1);
        self.next_try = now + limits::APPLICATION_REPEAT;
        let question = Question { host: self.settings.key.number(), nonce: self.nonce };
        let (kind, data) = match self.awaits {
            Awaits::Admission => {
                let Settings { sealing_key, request, .. } = &self.settings;
                (Kind::Apply, Application { question, sealing_key: *sealing_key, request }.emit())
            }
            _ => (Kind::Fetch, Fetch { question, offset: self.received.len() as u16 }.emit()),
        };
        Some(self.frame(&place, kind, &data))
    }

    fn frame(&self, place: &Place, kind: Kind, data: &[u8]) -> Vec<u8> {
        let arp = Arp {
            operation: Operation::Request,
            sender_mac: self.settings.mac,
            sender_ip: std::net::Ipv4Addr::UNSPECIFIED,
            target_mac: place.mac,
            target_ip: place.ip,
        };
        let unsigned = Message { arp, kind, seconds: 0, data, signature: &[] }.signed_bytes();
        let tag = self.settings.key.request_tag(&unsigned);
        let header = Header { destination: place.mac, source: self.settings.mac, ethertype: EtherType::ARP };
        let mut frame = [&header.emit()[..], &seal(unsigned, &tag)].concat();
        frame.resize(frame.len().max(MIN_LEN), 0);
        frame
    }

    /// What a frame of the wire means, if it answers the open question.
    pub fn hear(&mut self, now: Instant, frame: &[u8]) -> Option<News> {
        let (header, bytes) = Header::parse(frame).ok()?;
        if header.ethertype != EtherType::ARP || header.destination != self.settings.mac {
            return None;
        }
        let message = Message::parse(bytes).ok().filter(|message| message.kind == Kind::Enrolment)?;
        let answer = Enrolment::parse(message.data).ok()?;
        let question = Question { host: self.settings.key.number(), nonce: self.nonce };
        let is_open = self.deadline().is_some() && self.tries > 0 && answer.question == question;
        if !is_open || !self.settings.key.verify_answer(&message.signed_bytes(), message.signature) {
            return None;
        }
        // Who has answered is asked again.
        self.asked = self.asked.wrapping_sub(1);
        self.act(now, answer.state, &answer.piece)
    }

    fn act(&mut self, now: Instant, state: State, piece: &Piece<'_>) -> Option<News> {
        match (self.awaits, state) {
            (Awaits::Admission, State::Waiting) => {
                self.turn_to(Awaits::Decision, now + limits::DECISION_POLL);
                Some(News::Applied)
            }
            (Awaits::Decision, State::Waiting) => {
                self.turn_to(Awaits::Decision, now + limits::DECISION_POLL);
                None
            }
            // The site was restored from a backup meanwhile, or the manager decided anew.
            (Awaits::Decision | Awaits::Piece, State::NotApplied) | (Awaits::Piece, State::Waiting) => {
                self.received.clear();
                self.turn_to(Awaits::Admission, now);
                None
            }
            (Awaits::Admission | Awaits::Decision | Awaits::Piece, State::Approved) => self.take(now, piece),
            (Awaits::Farewell, _) => self.end(News::Done),
            (_, state) => self.end(News::Ended(state)),
        }
    }

    fn end(&mut self, news: News) -> Option<News> {
        self.awaits = Awaits::Nothing;
        Some(news)
    }

    fn take(&mut self, now: Instant, piece: &Piece<'_>) -> Option<News> {
        if piece.total != self.total {
            // Sealed once more, so what is here belongs to another.
            self.received.clear();
            self.total = piece.total;
        }
        if usize::from(piece.offset) == self.received.len() {
            self.received.extend_from_slice(piece.bytes);
        }
        if self.total == 0 || self.received.len() < usize::from(self.total) {
            let pause = if piece.bytes.is_empty() { limits::APPLICATION_REPEAT } else { Duration::ZERO };
            self.turn_to(Awaits::Piece, now + pause);
            return None;
        }
        self.awaits = Awaits::Installation;
        Some(News::Sealed(self.received.clone()))
    }

    /// The identity is installed: the distributors may forget it.
    pub fn installed(&mut self, now: Instant) {
        if self.awaits == Awaits::Installation {
            self.turn_to(Awaits::Farewell, now);
        }
    }

    /// Gives the farewell up when nobody has answered it for long enough; what was sealed is forgotten with its time.
    pub fn give_up(&mut self) -> Option<News> {
        let is_late = self.awaits == Awaits::Farewell && self.tries >= limits::FAREWELL_TRIES;
        if is_late { self.end(News::Done) } else { None }
    }

    fn turn_to(&mut self, awaits: Awaits, at: Instant) {
        self.awaits = awaits;
        self.nonce = self.random.bytes();
        self.tries = 0;
        self.next_try = at;
    }
}
