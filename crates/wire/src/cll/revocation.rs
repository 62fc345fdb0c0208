//! Messages by which a host hands the site's revocation list and its policy to its peers (sections
//! 24 and 30 of `docs/protocol.md`). They travel sealed, as rollover messages do. What they carry
//! is signed by the site's authority, so nothing here needs to be believed.
//!
//! ```text
//!  0  version and type      1  kind: 1 to 3 about a list, 4 to 6 about a policy
//!  2  thisUpdate of the list in seconds since 1970, or version of the policy, 8
//! 10  length of the list or policy, 4      14  offset, 4
//! 18  of the kinds 3 and 6 alone: the piece that begins there
//! ```

use super::VERSION;
use crate::reader::Reader;
use crate::{Error, Field};

/// Low four bits of the first byte.
pub const TYPE: u8 = 0xf;
/// Bytes before the piece.
pub const FIXED_LEN: usize = 18;
/// Bytes of a piece, but for the last of a list.
pub const PIECE_LEN: usize = 1024;

const OFFER: u8 = 1;
const QUESTION: u8 = 2;
const PIECE: u8 = 3;

/// Kinds of messages about each subject.
const KINDS: u8 = 3;

/// What a site signs for all its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The certificates that it has taken back.
    Revocations,
    /// Its policy.
    Policy,
}

impl Subject {
    /// Both.
    pub const ALL: [Subject; 2] = [Subject::Revocations, Subject::Policy];
}

/// Which list or policy is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListName {
    /// What it is.
    pub subject: Subject,
    /// A list's thisUpdate, in seconds since 1970, or a policy's version: the higher is the newer.
    pub number: u64,
    /// Its length in bytes.
    pub len: u32,
}

/// A message about a revocation list or a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// "I have this list."
    Offer(ListName),
    /// "Give me what begins at this offset, a multiple of [`PIECE_LEN`]."
    Question(ListName, u32),
    /// "Here it is": offset and bytes.
    Piece(ListName, u32, &'a [u8]),
}

impl<'a> Message<'a> {
    /// Whether `bytes` are to be read as one of these.
    #[must_use]
    pub fn is(bytes: &[u8]) -> bool {
        bytes.first() == Some(&(VERSION << 4 | TYPE))
    }

    /// Which list or policy it is about.
    #[must_use]
    pub fn list(&self) -> ListName {
        match self {
            Message::Offer(list) | Message::Question(list, _) | Message::Piece(list, ..) => *list,
        }
    }

    /// Reads a message from the payload of a sealed frame.
    ///
    /// # Errors
    /// The field that is cut short, invalid, unsupported, or followed by more bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::CllRevocationList);
        if reader.u8()? != VERSION << 4 | TYPE {
            return Err(Error::Unsupported(Field::CllRevocationList));
        }
        let kind = reader.u8()?;
        let subject = if kind > KINDS { Subject::Policy } else { Subject::Revocations };
        let list = ListName { subject, number: reader.u64()?, len: reader.u32()? };
        let (offset, rest) = (reader.u32()?, reader.rest());
        match (kind - subject as u8 * KINDS, offset) {
            (OFFER | QUESTION, _) if !rest.is_empty() => Err(Error::Trailing(Field::CllRevocationList)),
            (OFFER, 0) => Ok(Message::Offer(list)),
            (QUESTION, _) if is_place(list, offset) => Ok(Message::Question(list, offset)),
            (PIECE, _) if is_place(list, offset) && rest.len() == piece_len(list, offset) => {
                Ok(Message::Piece(list, offset, rest))
            }
            _ => Err(Error::Invalid(Field::CllRevocationList)),
        }
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let (kind, list, offset, piece): (u8, &ListName, u32, &[u8]) = match self {
            Message::Offer(list) => (OFFER, list, 0, &[]),
            Message::Question(list, offset) => (QUESTION, list, *offset, &[]),
            Message::Piece(list, offset, piece) => (PIECE, list, *offset, piece),
        };
        let mut out = vec![VERSION << 4 | TYPE, kind + list.subject as u8 * KINDS];
        out.extend(list.number.to_be_bytes());
        out.extend(list.len.to_be_bytes());
        out.extend(offset.to_be_bytes());
        out.extend(piece);
        out
    }
}

fn is_place(list: ListName, offset: u32) -> bool {
    offset < list.len && (offset as usize).is_multiple_of(PIECE_LEN)
}

/// Bytes of the piece that begins at `offset`.
#[must_use]
pub fn piece_len(list: ListName, offset: u32) -> usize {
    (list.len.saturating_sub(offset) as usize).min(PIECE_LEN)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIST: ListName = ListName { subject: Subject::Revocations, number: 0x0102_0304_0506_0708, len: 1030 };
    const POLICY: ListName = ListName { subject: Subject::Policy, ..LIST };

    #[test]
    fn the_layout_is_the_documented_one() {
        let head = [0x2f, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 4, 6, 0, 0, 0, 0];
        assert_eq!(Message::Offer(LIST).emit(), head);
        let question = Message::Question(LIST, 1024).emit();
        assert_eq!((question[1], &question[14..]), (2, &[0, 0, 4, 0][..]));
        let piece = Message::Piece(LIST, 1024, &[9; 6]).emit();
        assert_eq!((piece[1], &piece[14..]), (3, &[0, 0, 4, 0, 9, 9, 9, 9, 9, 9][..]));
        let of_policy =
            [Message::Offer(POLICY), Message::Question(POLICY, 1024), Message::Piece(POLICY, 1024, &[9; 6])];
        assert_eq!(of_policy.map(|message| message.emit()[1]), [4, 5, 6]);
        assert!(Message::is(&piece) && !Message::is(&[0x25]) && !Message::is(&[]));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let about = |list| [Message::Offer(list), Message::Question(list, 1024), Message::Piece(list, 1024, &[9; 6])];
        for message in [LIST, POLICY].into_iter().flat_map(about) {
            let bytes = message.emit();
            assert_eq!(Message::parse(&bytes), Ok(message));
            for len in 0..bytes.len() {
                assert!(Message::parse(&bytes[..len]).is_err(), "{len} bytes");
            }
            assert!(Message::parse(&[&bytes[..], &[0]].concat()).is_err(), "one more");
        }
        for (at, value) in [(0, 0x1f), (0, 0x25), (1, 0), (1, 7), (17, 1)] {
            let mut bytes = Message::Question(LIST, 1024).emit();
            bytes[at] = value;
            assert!(Message::parse(&bytes).is_err(), "byte {at}");
        }
        assert!(Message::parse(&Message::Question(LIST, 2048).emit()).is_err(), "behind the end");
        assert!(Message::parse(&Message::Piece(LIST, 0, &[9; 6]).emit()).is_err(), "too short for its place");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic_and_what_parses_emits_itself(
            kind in 0_u8..8, rest in proptest::collection::vec(any::<u8>(), 0..40), small: bool,
        ) {
            let mut bytes = vec![0x2f, kind];
            bytes.extend(rest);
            if small && bytes.len() >= FIXED_LEN {
                let len = (bytes.len() - FIXED_LEN) as u8;
                bytes[10..18].copy_from_slice(&[0, 0, 0, len, 0, 0, 0, 0]);
            }
            if let Ok(parsed) = Message::parse(&bytes) {
                prop_assert_eq!(parsed.emit(), bytes);
            }
        }
    }
}
