//! What the two say to each other: plaintexts of [`channel`](crate::channel).
//!
//! Numbers are in network order. A message has one form only, so what is read is written again to
//! the byte.

use crate::limits::RECORD_MAX_BYTES;

const HEARTBEAT: u8 = 1;
const RECORDS: u8 = 2;
const ROUND_OVER: u8 = 3;

/// What a gateway does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It forwards nothing.
    Standby,
    /// It forwards.
    Active,
}

impl Role {
    /// The word in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Role::Standby => "standby",
            Role::Active => "active",
        }
    }
}

/// Which cards have a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cards {
    /// Towards the protected hosts.
    pub trusted: bool,
    /// Towards everybody else.
    pub untrusted: bool,
}

impl Cards {
    /// Whether a frame can pass.
    #[must_use]
    pub fn are_well(self) -> bool {
        self.trusted && self.untrusted
    }
}

/// How a gateway is, and whom it heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// What it does.
    pub role: Role,
    /// Which of its cards have a link.
    pub cards: Cards,
    /// It handed over, and leaves the other one the turn.
    pub yields: bool,
    /// It asks for the turn, because its priority is higher and it is configured to.
    pub preempts: bool,
    /// It knows all that the other one told.
    pub in_sync: bool,
    /// The higher one keeps the turn where both have it.
    pub priority: u8,
    /// A number that nobody could know before: whoever repeats it was there now.
    pub challenge: u64,
    /// The challenge of the peer that was heard, and of one that did not prove itself yet.
    pub echoes: [u64; 2],
    /// The round of all records that it wants.
    pub wanted: u32,
    /// The number of its next batch of records.
    pub next_batch: u64,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// From time to time.
    Heartbeat(Heartbeat),
    /// Records, each behind its length.
    Records {
        /// Counts batches and ends of rounds.
        batch: u64,
        /// The records.
        records: Records<'a>,
    },
    /// All records were told since this round was asked for.
    RoundOver {
        /// Counts batches and ends of rounds.
        batch: u64,
        /// Which round.
        round: u32,
    },
}

/// Records of which every one is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    /// `bytes` if they are whole records.
    fn read(bytes: &'a [u8]) -> Option<Records<'a>> {
        let mut rest = bytes;
        while let Some((len, behind)) = rest.split_first() {
            rest = behind.get(usize::from(*len)..)?;
        }
        Some(Records(bytes))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (len, behind) = self.0.split_first()?;
        let (record, rest) = behind.split_at_checked(usize::from(*len))?;
        self.0 = rest;
        Some(record)
    }
}

/// Appends `record` behind its length; false if it is too long to be one.
pub(crate) fn append(records: &mut Vec<u8>, record: &[u8]) -> bool {
    const _: () = assert!(RECORD_MAX_BYTES == u8::MAX as usize);
    let Ok(len) = u8::try_from(record.len()) else { return false };
    records.push(len);
    records.extend_from_slice(record);
    true
}

/// The beginning of a message of records.
pub(crate) fn records_head(batch: u64) -> Vec<u8> {
    let mut head = vec![RECORDS];
    head.extend_from_slice(&batch.to_be_bytes());
    head
}

/// A message that says that a round is over.
pub(crate) fn round_over(batch: u64, round: u32) -> Vec<u8> {
    [&[ROUND_OVER][..], &batch.to_be_bytes(), &round.to_be_bytes()].concat()
}

impl Heartbeat {
    /// It as a message.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let bits = [
            self.role == Role::Active,
            self.cards.trusted,
            self.cards.untrusted,
            self.yields,
            self.preempts,
            self.in_sync,
        ];
        let flags = bits.iter().enumerate().fold(0, |flags, (at, bit)| flags | u8::from(*bit) << at);
        [
            &[HEARTBEAT, flags, self.priority][..],
            &self.challenge.to_be_bytes(),
            &self.echoes[0].to_be_bytes(),
            &self.echoes[1].to_be_bytes(),
            &self.wanted.to_be_bytes(),
            &self.next_batch.to_be_bytes(),
        ]
        .concat()
    }
}

/// Takes numbers off the front.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Reads a plaintext; `None` if it is no message.
#[must_use]
pub fn read(plaintext: &[u8]) -> Option<Message<'_>> {
    let mut reader = Reader(plaintext);
    match reader.byte()? {
        HEARTBEAT => heartbeat(&mut reader).map(Message::Heartbeat),
        RECORDS => {
            let batch = reader.long()?;
            Some(Message::Records { batch, records: Records::read(reader.0)? })
        }
        ROUND_OVER => {
            let (batch, round) = (reader.long()?, reader.word()?);
            reader.end()?;
            Some(Message::RoundOver { batch, round })
        }
        _ => None,
    }
}

fn heartbeat(reader: &mut Reader<'_>) -> Option<Heartbeat> {
    let flags = reader.byte()?;
    let bit = |at: u8| flags >> at & 1 == 1;
    if flags >> 6 != 0 {
        return None;
    }
    let heartbeat = Heartbeat {
        role: if bit(0) { Role::Active } else { Role::Standby },
        cards: Cards { trusted: bit(1), untrusted: bit(2) },
        yields: bit(3),
        preempts: bit(4),
        in_sync: bit(5),
        priority: reader.byte()?,
        challenge: reader.long()?,
        echoes: [reader.long()?, reader.long()?],
        wanted: reader.word()?,
        next_batch: reader.long()?,
    };
    reader.end()?;
    Some(heartbeat)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever can be read has one form, and nothing panics.
        #[test]
        fn what_is_read_is_written_to_the_byte(kind in 0_u8..5, rest in proptest::collection::vec(any::<u8>(), 0..80)) {
            let plaintext = [&[kind][..], &rest].concat();
            let again = match read(&plaintext) {
                Some(Message::Heartbeat(heartbeat)) => heartbeat.write(),
                Some(Message::RoundOver { batch, round }) => round_over(batch, round),
                Some(Message::Records { batch, records }) => {
                    let mut again = records_head(batch);
                    records.for_each(|record| assert!(append(&mut again, record)));
                    again
                }
                None => return Ok(()),
            };
            prop_assert_eq!(again, plaintext);
        }

        #[test]
        fn a_heartbeat_says_what_was_said(flags in 0_u8..64, numbers in any::<(u8, u64, u64, u64, u32, u64)>()) {
            let (priority, challenge, one, two, wanted, next_batch) = numbers;
            let bit = |at: u8| flags >> at & 1 == 1;
            let heartbeat = Heartbeat {
                role: if bit(0) { Role::Active } else { Role::Standby },
                cards: Cards { trusted: bit(1), untrusted: bit(2) },
                yields: bit(3), preempts: bit(4), in_sync: bit(5),
                priority, challenge, echoes: [one, two], wanted, next_batch,
            };
            let written = heartbeat.write();
            prop_assert_eq!(read(&written), Some(Message::Heartbeat(heartbeat)));
        }
    }

    #[test]
    fn a_record_that_is_cut_short_is_none() {
        let mut message = records_head(7);
        assert!(append(&mut message, b"one") && append(&mut message, b""));
        let Some(Message::Records { batch: 7, records }) = read(&message) else { panic!("whole") };
        assert_eq!(records.collect::<Vec<_>>(), [&b"one"[..], b""]);
        message.pop();
        message.pop();
        assert_eq!(read(&message), None);
        assert!(!append(&mut message, &[0; RECORD_MAX_BYTES + 1]));
    }
}
