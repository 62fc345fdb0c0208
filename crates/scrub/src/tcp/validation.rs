//! Address validation: who opens a connection shows first that it receives.
//!
//! A SYN costs nothing, and its source may be spoofed. While many connections that untrusted hosts
//! begin are not completed, the SYN of an address that is not validated ends here. It is answered
//! with an ACK of a number that the initiator never sent: a keyed function of the connection. An
//! initiator resets exactly that number and goes on waiting (RFC 9293, section 3.10.7.3), and its
//! next SYN passes. So nothing is remembered of those who do not answer. The sequence numbers
//! remain those of the two hosts, unlike behind a proxy that sends cookies (RFC 4987, section 3.6).
//!
//! An ACK and not a SYN-ACK, since what translates addresses in front of the initiator lets that
//! through: it is what a host says that remembers an older connection (section 3.5.1, figure 9).

use bump::{Instant, Side};

use crate::context::Context;
use crate::keys::{self, Keys, Subject};
use crate::lately::Lately;
use crate::limits::{
    CHALLENGE_LIFETIME, HOP_LIMIT_FIRST, REQUEST_PERIOD, VALIDATED_ANSWERS, VALIDATED_LIFETIME, VALIDATED_MAX,
    VALIDATED_UNASKED,
};
use crate::settings::Settings;
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;
use crate::tcp::sources;
use crate::tcp::work::seconds;

/// What the key is asked for here.
const CHALLENGE: u8 = 0xfd;
const ADDRESS: u8 = 0xfc;
/// SYNs that an initiator may send for an answer: it may begin anew from the same port.
const SYNS_OF_ANSWER: u8 = 4;

/// Which untrusted hosts have shown that they receive.
#[derive(Debug)]
pub(crate) struct Validation {
    secret: keys::Key,
    hashing: keys::Key,
    /// As many requests begin to be too many; never if `None`.
    from: Option<u32>,
    requests: Requests,
    /// What each validated address may still begin and not complete.
    addresses: Lately<Budget>,
    /// Connections whose own initiator answered, and SYNs that it may still send with other numbers.
    connections: Lately<u8>,
}

/// Connections that an address may begin and not complete.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    /// Without an answer for this very connection. Whoever spoofs the address uses these up.
    unasked: u8,
    /// With one. They come back with time: the address's host resets what others ask in its name,
    /// too, so who spoofs it uses these up as well, and must not keep it out for good.
    answers: u8,
    /// Since when none came back, in whole seconds since boot.
    since: u32,
}

impl Budget {
    const FULL: Budget = Budget { unasked: VALIDATED_UNASKED, answers: VALIDATED_ANSWERS, since: 0 };

    /// The budget at `now`: one more answer for each second.
    fn at(self, now: Instant) -> Budget {
        let now = seconds(now);
        let back = now.saturating_sub(self.since).min(VALIDATED_ANSWERS.into()) as u8;
        Budget { answers: self.answers.saturating_add(back).min(VALIDATED_ANSWERS), since: now, ..self }
    }
}

/// Connections that untrusted hosts asked for, of which nothing came yet: those of the last one or
/// two periods.
#[derive(Debug, Default)]
struct Requests {
    since: Instant,
    latest: u32,
    before: u32,
}

impl Validation {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Validation {
        Validation {
            secret: keys::Key::new(&keys.sequence),
            hashing: keys::Key::new(&keys.tables),
            from: settings.flows.half_open,
            requests: Requests::default(),
            addresses: Lately::new(VALIDATED_MAX, VALIDATED_LIFETIME),
            connections: Lately::new(VALIDATED_MAX, 2 * CHALLENGE_LIFETIME),
        }
    }

    /// How many requests there are, if they are too many.
    pub(crate) fn excess(&self, now: Instant) -> Option<u32> {
        let count = self.requests.count(now);
        self.from.is_some_and(|from| count >= from).then_some(count)
    }

    /// Admits a SYN, or says what its sender is asked instead.
    pub(crate) fn admit(&mut self, context: &Context<'_>, key: &Key, syn: &Segment<'_>) -> Result<(), Option<Made>> {
        if self.from.is_none() || context.from == Side::TRUSTED {
            return Ok(());
        }
        let now = context.now;
        let is_calm = self.excess(now).is_none();
        self.requests.enter(now);
        if is_calm || self.has_place(now, key) {
            return Ok(());
        }
        Err(self.challenge(now, key, syn))
    }

    /// Whether an initiator answered or its address may begin one more, which is entered.
    fn has_place(&mut self, now: Instant, key: &Key) -> bool {
        let connection = self.hashing.place(&key.subject());
        let left = self.connections.get(now, connection).and_then(|(_, left)| left.checked_sub(1));
        if let Some(left) = left {
            self.connections.put(now, connection, left);
            return true;
        }
        let address = self.address(key);
        let Some(mut budget) = self.addresses.get(now, address).map(|(_, budget)| *budget) else { return false };
        let Some(left) = budget.unasked.checked_sub(1) else { return false };
        budget.unasked = left;
        self.addresses.put(now, address, budget);
        true
    }

    /// What asks the sender of a SYN whether it receives. `None` if it would take that for an
    /// answer to what it sent, which no key makes likely.
    fn challenge(&self, now: Instant, key: &Key, syn: &Segment<'_>) -> Option<Made> {
        let number = self.number(key, period(now));
        let acknowledgement = number as u32;
        let sent = 1 + syn.data().len() as i32;
        if (1..=sent).contains(&ahead(acknowledgement, syn.sequence)) {
            return None;
        }
        Some(Made {
            key: *key,
            to: Side::UNTRUSTED,
            hop_limit: HOP_LIMIT_FIRST,
            flags: flag::ACK,
            sequence: (number >> 32) as u32,
            acknowledgement,
            window: 0,
            timestamps: None,
            sack: None,
        })
    }

    /// Whether a segment answers a challenge. Then it is for nobody else, and its sender's address
    /// is validated.
    pub(crate) fn hear(&mut self, context: &Context<'_>, key: &Key, segment: &Segment<'_>) -> bool {
        let is_bare_reset = segment.flags & (flag::RST | flag::ACK | flag::SYN | flag::FIN) == flag::RST;
        if self.from.is_none() || context.from != Side::UNTRUSTED || !is_bare_reset {
            return false;
        }
        let period = period(context.now);
        let periods = [Some(period), period.checked_sub(1)];
        let is_answer = periods.into_iter().flatten().any(|period| self.number(key, period) as u32 == segment.sequence);
        if is_answer {
            self.validate(context.now, key);
        }
        is_answer
    }

    /// The initiator of a connection receives. Each connection is answered for once.
    fn validate(&mut self, now: Instant, key: &Key) {
        let (connection, address) = (self.hashing.place(&key.subject()), self.address(key));
        if self.connections.get(now, connection).is_some() {
            return;
        }
        let known = self.addresses.get(now, address).map(|(_, budget)| *budget);
        let mut budget = known.unwrap_or(Budget::FULL).at(now);
        let Some(left) = budget.answers.checked_sub(1) else { return };
        budget.answers = left;
        self.addresses.put(now, address, budget);
        self.connections.put(now, connection, SYNS_OF_ANSWER);
        self.requests.settle(now);
    }

    /// An untrusted host completed the handshake of a connection that it `opened` then, in whole
    /// seconds since boot: it may begin another one.
    pub(crate) fn completed(&mut self, now: Instant, key: &Key, opened: u32) {
        if self.from.is_none() {
            return;
        }
        // An older one is in no count any more.
        if seconds(now).saturating_sub(opened) < REQUEST_PERIOD.as_secs() as u32 {
            self.requests.settle(now);
        }
        let address = self.address(key);
        if let Some(budget) = self.addresses.get(now, address).map(|(_, budget)| budget.at(now)) {
            let unasked = (budget.unasked + 1).min(VALIDATED_UNASKED);
            let answers = (budget.answers + 1).min(VALIDATED_ANSWERS);
            self.addresses.put(now, address, Budget { unasked, answers, ..budget });
        }
    }

    /// Whether a segment of no known connection from an untrusted host may become a question to a
    /// trusted one. It is a request as a SYN is, and nobody is challenged for it.
    pub(crate) fn may_ask(&mut self, now: Instant) -> bool {
        if self.from.is_none() {
            return true;
        }
        let is_calm = self.excess(now).is_none();
        self.requests.enter(now);
        is_calm
    }

    /// What only the initiator of a connection hears in a period.
    fn number(&self, key: &Key, period: u64) -> u64 {
        let ports = u64::from(key.trusted_port) << 16 | u64::from(key.untrusted_port);
        let rest = ports << 32 | u64::from(key.vlans);
        self.secret.number(&Subject::new(CHALLENGE).between(key.trusted, key.untrusted).number(rest).number(period))
    }

    /// The untrusted host's address, or its network where it may have any address of that.
    fn address(&self, key: &Key) -> u64 {
        let levels = [1, 0].map(|level| sources::network(key, Side::UNTRUSTED, level));
        let address = levels.into_iter().flatten().next().map_or(key.untrusted, |network| network.address);
        self.hashing.place(&Subject::new(ADDRESS).between(address, address).number(key.vlans.into()))
    }
}

impl Requests {
    /// Enters one.
    fn enter(&mut self, now: Instant) {
        self.turn(now);
        self.latest = self.latest.saturating_add(1);
    }

    /// One came to something: its initiator answered, or completed the handshake.
    fn settle(&mut self, now: Instant) {
        self.turn(now);
        let settled = if self.latest > 0 { &mut self.latest } else { &mut self.before };
        *settled = settled.saturating_sub(1);
    }

    fn count(&self, now: Instant) -> u32 {
        match self.periods(now) {
            0 => self.latest.saturating_add(self.before),
            1 => self.latest,
            _ => 0,
        }
    }

    /// Whole periods that are over since the latest one began.
    fn periods(&self, now: Instant) -> u64 {
        (now.since(self.since).as_nanos() / REQUEST_PERIOD.as_nanos()) as u64
    }

    fn turn(&mut self, now: Instant) {
        let periods = self.periods(now);
        if periods > 0 {
            self.before = if periods == 1 { self.latest } else { 0 };
            self.latest = 0;
            self.since = self.since + REQUEST_PERIOD * u32::try_from(periods).unwrap_or(u32::MAX);
        }
    }
}

/// The period in which a challenge is made. It is good in this one and the next.
fn period(now: Instant) -> u64 {
    now.since(Instant::default()).as_secs() / CHALLENGE_LIFETIME.as_secs()
}
