//! What the messages of an enrolment by token carry. Where other requests name a host, these name the token, and tags under its
//! secret stand where signatures would, both ways.

use super::data::{NONCE_LEN, Question};
use crate::reader::Reader;
use crate::{Error, Field};

/// Bytes of the key that the identity is sealed to.
pub const SEALING_KEY_LEN: usize = 32;
/// Bytes of the identity in one answer, so that the answer fits any Ethernet.
pub const PIECE_MAX_BYTES: usize = 1024;

/// The data of a request to become a host.
///
/// ```text
///  0  number of the token, 8   8  nonce, 16   24  key that the identity is sealed to, 32   56  certificate request
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application<'a> {
    /// The token in the place of a host, and the nonce.
    pub question: Question,
    /// The public half of an X25519 key.
    pub sealing_key: [u8; SEALING_KEY_LEN],
    /// A request for a certificate (PKCS#10) in DER.
    pub request: &'a [u8],
}

impl<'a> Application<'a> {
    /// Reads the data.
    ///
    /// # Errors
    /// Fewer than 57 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Application<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let question = Question { host: reader.u64()?, nonce: reader.array()? };
        let sealing_key = reader.array()?;
        match reader.rest() {
            [] => Err(Error::Truncated(Field::SarpData)),
            request => Ok(Application { question, sealing_key, request }),
        }
    }

    /// The data as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        [&self.question.emit()[..], &self.sealing_key, self.request].concat()
    }
}

/// The data of a question for the sealed identity from `offset` on. Who asks for what lies at its end has all of it.
///
/// ```text
///  0  number of the token, 8   8  nonce, 16   24  offset, 2
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The token in the place of a host, and the nonce.
    pub question: Question,
    /// Bytes that are here already.
    pub offset: u16,
}

impl Fetch {
    /// Reads the data.
    ///
    /// # Errors
    /// Any length but 26.
    pub fn parse(bytes: &[u8]) -> Result<Fetch, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let question = Question { host: reader.u64()?, nonce: reader.array()? };
        let offset = reader.u16()?;
        if reader.rest().is_empty() { Ok(Fetch { question, offset }) } else { Err(Error::Trailing(Field::SarpData)) }
    }

    /// The data as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        [&self.question.emit()[..], &self.offset.to_be_bytes()].concat()
    }
}

/// What became of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It waits for the manager.
    Waiting = 1,
    /// The manager has approved it; a piece of the sealed identity follows.
    Approved = 2,
    /// The manager has refused it.
    Refused = 3,
    /// The identity was fetched.
    Fetched = 4,
    /// There is no such token, or it is over.
    NotOpen = 5,
    /// Nobody has applied with this token yet.
    NotApplied = 6,
    /// Somebody has applied with this token and another key.
    OtherKey = 7,
    /// The token is for another hardware address.
    OtherMac = 8,
    /// The certificate request is none, or asks for what the token is not for.
    BadRequest = 9,
}

impl State {
    const ALL: [State; 9] = [
        State::Waiting,
        State::Approved,
        State::Refused,
        State::Fetched,
        State::NotOpen,
        State::NotApplied,
        State::OtherKey,
        State::OtherMac,
        State::BadRequest,
    ];

    fn from_byte(byte: u8) -> Result<State, Error> {
        State::ALL.into_iter().find(|state| *state as u8 == byte).ok_or(Error::Unsupported(Field::SarpData))
    }
}

/// Bytes of a sealed identity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece<'a> {
    /// How many there are in all.
    pub total: u16,
    /// Where these stand.
    pub offset: u16,
    /// These; none at the end.
    pub bytes: &'a [u8],
}

/// The data of a distributor's answer to either.
///
/// ```text
///  0  number of the token, 8   8  nonce of the request, 16   24  state, 1   25  total, 2   27  offset, 2   29  piece
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enrolment<'a> {
    /// The token in the place of a host, and the nonce of the request.
    pub question: Question,
    /// What became of it.
    pub state: State,
    /// What there is to fetch; empty, with zeros, in any state but [`State::Approved`].
    pub piece: Piece<'a>,
}

impl<'a> Enrolment<'a> {
    /// Reads the data.
    ///
    /// # Errors
    /// Fewer than 29 bytes, an unknown state, a piece beyond the total, a longer one than [`PIECE_MAX_BYTES`], or one where there
    /// is nothing to fetch.
    pub fn parse(bytes: &'a [u8]) -> Result<Enrolment<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let question = Question { host: reader.u64()?, nonce: reader.array::<NONCE_LEN>()? };
        let state = State::from_byte(reader.u8()?)?;
        let piece = Piece { total: reader.u16()?, offset: reader.u16()?, bytes: reader.rest() };
        let end = usize::from(piece.offset) + piece.bytes.len();
        let fits = end <= usize::from(piece.total) && piece.bytes.len() <= PIECE_MAX_BYTES;
        if !fits || (state != State::Approved && piece != Piece::default()) {
            return Err(Error::Invalid(Field::SarpData));
        }
        Ok(Enrolment { question, state, piece })
    }

    /// The data as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let Piece { total, offset, bytes } = self.piece;
        let numbers = [total.to_be_bytes(), offset.to_be_bytes()].concat();
        [&self.question.emit()[..], &[self.state as u8], &numbers, bytes].concat()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_application_has_a_request() {
        let bytes: Vec<u8> = (0..57).collect();
        let application = Application::parse(&bytes).expect("valid");
        assert_eq!((application.question.nonce[0], application.sealing_key[0]), (8, 24));
        assert_eq!((application.request, application.emit()), (&[56][..], bytes.clone()));
        assert!(Application::parse(&bytes[..56]).is_err());
    }

    #[test]
    fn a_fetch_has_one_length() {
        let bytes: Vec<u8> = (0..26).collect();
        let fetch = Fetch::parse(&bytes).expect("valid");
        assert_eq!((fetch.offset, fetch.emit()), (0x1819, bytes.clone()));
        assert!(Fetch::parse(&bytes[..25]).is_err() && Fetch::parse(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_piece_lies_within_what_was_approved() {
        let answer = |state: u8, total: u16, offset: u16, len: usize| {
            let mut bytes = vec![7; 24];
            bytes.push(state);
            bytes.extend([total.to_be_bytes(), offset.to_be_bytes()].concat());
            bytes.resize(29 + len, 9);
            Enrolment::parse(&bytes).map(|parsed| assert_eq!(parsed.emit(), bytes)).is_ok()
        };
        assert!(answer(2, 10, 4, 6) && answer(2, 10, 10, 0) && answer(2, 5000, 0, PIECE_MAX_BYTES));
        assert!(!answer(2, 10, 4, 7) && !answer(2, 10, 11, 0) && !answer(2, 5000, 0, PIECE_MAX_BYTES + 1));
        assert!((1..=9).filter(|state| *state != 2).all(|state| answer(state, 0, 0, 0)));
        assert!(!answer(1, 10, 0, 10) && !answer(3, 1, 0, 0) && !answer(0, 0, 0, 0) && !answer(10, 0, 0, 0));
        assert!(Enrolment::parse(&[1; 28]).is_err());
    }

    proptest! {
        #[test]
        fn what_is_read_writes_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(data) = Application::parse(&bytes) { prop_assert_eq!(data.emit(), bytes.clone()); }
            if let Ok(data) = Fetch::parse(&bytes) { prop_assert_eq!(data.emit(), bytes.clone()); }
            if let Ok(data) = Enrolment::parse(&bytes) { prop_assert_eq!(data.emit(), bytes); }
        }
    }
}
