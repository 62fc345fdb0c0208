//! Address validation: who opens a connection shows first that it receives what its address is sent.
//!
//! A SYN costs nothing, and its source may be spoofed. While many connections are half open, the SYN
//! of an address that is not validated ends here. It is answered with a SYN-ACK whose acknowledgement
//! is a keyed function of the connection, and not what the initiator sent. An initiator resets exactly
//! that number and goes on waiting (RFC 9293, section 3.10.7.3), and its next SYN passes. So nothing is
//! remembered of those who do not answer, and the sequence numbers remain those of the two hosts,
//! unlike behind a proxy that sends cookies (RFC 4987, section 3.6).

use bump::{Instant, Side};

use crate::context::Context;
use crate::keys::{self, Keys, Subject};
use crate::lately::Lately;
use crate::limits::{CHALLENGE_LIFETIME, HOP_LIMIT_FIRST, VALIDATED_CONNECTIONS, VALIDATED_LIFETIME, VALIDATED_MAX};
use crate::settings::Settings;
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;
use crate::tcp::sources;

/// What the key is asked for here.
const CHALLENGE: u8 = 0xfd;
const ADDRESS: u8 = 0xfc;

/// Which untrusted hosts have shown that they receive.
#[derive(Debug)]
pub(crate) struct Validation {
    secret: keys::Key,
    hashing: keys::Key,
    /// As many half-open connections begin before addresses are validated; never if `None`.
    from: Option<usize>,
    /// Connections that may still be half open in the name of each validated address.
    addresses: Lately<u8>,
    /// Connections whose own initiator answered. Whoever spoofs a validated address uses up what it
    /// may have, and keeps its host out of none of these.
    connections: Lately<()>,
}

impl Validation {
    pub(crate) fn new(settings: &Settings, keys: &Keys) -> Validation {
        Validation {
            secret: keys::Key::new(&keys.sequence),
            hashing: keys::Key::new(&keys.tables),
            from: settings.flows.half_open,
            addresses: Lately::new(VALIDATED_MAX, VALIDATED_LIFETIME),
            connections: Lately::new(VALIDATED_MAX, CHALLENGE_LIFETIME),
        }
    }

    /// Admits a SYN while `half_open` connections are half open, or says what its sender is asked
    /// instead.
    pub(crate) fn admit(
        &mut self,
        context: &Context<'_>,
        key: &Key,
        syn: &Segment<'_>,
        half_open: usize,
    ) -> Result<(), Option<Made>> {
        let is_calm = self.from.is_none_or(|from| half_open < from);
        if is_calm || context.from == Side::TRUSTED || self.has_place(context.now, key) {
            return Ok(());
        }
        Err(self.challenge(context.now, key, syn))
    }

    /// Whether an initiator is validated and may have another connection half open, which is entered.
    fn has_place(&mut self, now: Instant, key: &Key) -> bool {
        if self.connections.get(now, self.hashing.place(&key.subject())).is_some() {
            return true;
        }
        let address = self.address(key);
        let left = self.addresses.get(now, address).map_or(0, |(_, left)| *left);
        let Some(left) = left.checked_sub(1) else { return false };
        self.addresses.put(now, address, left);
        true
    }

    /// What asks the sender of a SYN whether it receives. `None` if it would take that for an answer
    /// to what it sent, which no key makes likely.
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
            flags: flag::SYN | flag::ACK,
            sequence: (number >> 32) as u32,
            acknowledgement,
            window: 0,
            timestamps: None,
            sack: None,
        })
    }

    /// Whether a segment answers a challenge. Then its sender is validated, and the segment is for
    /// nobody else.
    pub(crate) fn hear(&mut self, context: &Context<'_>, key: &Key, segment: &Segment<'_>) -> bool {
        let is_bare_reset = segment.flags & (flag::RST | flag::ACK | flag::SYN | flag::FIN) == flag::RST;
        if self.from.is_none() || context.from != Side::UNTRUSTED || !is_bare_reset {
            return false;
        }
        let (now, period) = (context.now, period(context.now));
        let periods = [Some(period), period.checked_sub(1)];
        let is_answer = periods.into_iter().flatten().any(|period| self.number(key, period) as u32 == segment.sequence);
        if is_answer {
            self.connections.put(now, self.hashing.place(&key.subject()), ());
            self.addresses.put(now, self.address(key), VALIDATED_CONNECTIONS);
        }
        is_answer
    }

    /// An untrusted host completed the handshake of a connection that it opened: it may have another
    /// one half open.
    pub(crate) fn completed(&mut self, now: Instant, key: &Key) {
        let address = self.address(key);
        let left = self.addresses.get(now, address).map(|(_, left)| *left);
        if let Some(left) = left.filter(|left| *left < VALIDATED_CONNECTIONS) {
            self.addresses.put(now, address, left + 1);
        }
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

/// The period in which a challenge is made. It is good in this one and the next.
fn period(now: Instant) -> u64 {
    now.since(Instant::default()).as_secs() / CHALLENGE_LIFETIME.as_secs()
}
