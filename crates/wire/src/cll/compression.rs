//! What a side says of compression in its offer, and what stands in front of a compressed payload (section 5.2 of the paper: "a
//! compression algorithm may be specified as well, if a host intends to compress its outgoing unicast IP packets").
//!
//! Nothing is compressed or expanded here; bytes and values only.

use crate::reader::Reader;
use crate::{Error, Field};

/// Bytes in front of a compressed payload: how long it was.
pub const LENGTH_LEN: usize = 2;

/// An algorithm, by its number in an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Algorithm {
    /// A block of LZ4 (github.com/lz4/lz4, doc/lz4_Block_format.md), for each frame by itself.
    Lz4 = 1,
}

impl Algorithm {
    /// All that there are.
    pub const ALL: [Algorithm; 1] = [Algorithm::Lz4];

    /// Its name in configuration and status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Lz4 => "lz4",
        }
    }

    /// The bit in the high half of an offer's byte that says that its sender reads this.
    const fn bit(self) -> u8 {
        match self {
            Algorithm::Lz4 => 0x10,
        }
    }
}

/// The byte of an offer: in the low half with what its sender would compress the frames that it sends, in the high half what it
/// reads. What this version does not know is read and leads to nothing, so that later ones can have more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression(pub u8);

impl Compression {
    /// Neither compresses nor reads.
    pub const NONE: Compression = Compression(0);

    /// Compresses with `sends`, if anything, and reads `reads`.
    #[must_use]
    pub fn new(sends: Option<Algorithm>, reads: &[Algorithm]) -> Compression {
        let sends = sends.map_or(0, |algorithm| algorithm as u8);
        Compression(reads.iter().fold(sends, |byte, algorithm| byte | algorithm.bit()))
    }

    /// With what the sender of the offer would compress.
    #[must_use]
    pub fn sends(self) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| *algorithm as u8 == self.0 & 0x0f)
    }

    /// Whether the sender of the offer reads what was compressed so.
    #[must_use]
    pub fn reads(self, algorithm: Algorithm) -> bool {
        self.0 & algorithm.bit() != 0
    }

    /// With what frames may be compressed that go from the side of this offer to the side that offers `receiver`: what the one
    /// wants and the other reads.
    #[must_use]
    pub fn towards(self, receiver: Compression) -> Option<Algorithm> {
        self.sends().filter(|algorithm| receiver.reads(*algorithm))
    }
}

/// Reads how long a compressed payload was, and returns it with the block behind.
///
/// # Errors
/// Truncated.
pub fn parse_payload(payload: &[u8]) -> Result<(usize, &[u8]), Error> {
    let mut reader = Reader::new(payload, Field::CllHeader);
    let len = usize::from(reader.u16()?);
    Ok((len, reader.rest()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_one_side_wants_and_the_other_reads_is_agreed() {
        let lz4 = Some(Algorithm::Lz4);
        let both = Compression::new(lz4, &[Algorithm::Lz4]);
        let writes = Compression::new(lz4, &[]);
        let reads = Compression::new(None, &[Algorithm::Lz4]);
        assert_eq!([both.0, writes.0, reads.0, Compression::NONE.0], [0x11, 0x01, 0x10, 0x00]);
        assert_eq!([both.towards(both), both.towards(reads), writes.towards(reads)], [lz4; 3]);
        assert_eq!([both.towards(writes), both.towards(Compression::NONE), reads.towards(both)], [None; 3]);
    }

    #[test]
    fn what_is_not_known_leads_to_nothing() {
        let lz4 = Compression::new(Some(Algorithm::Lz4), &[Algorithm::Lz4]);
        for unknown in [0x02, 0x0f, 0x22, 0xef] {
            assert_eq!(Compression(unknown).towards(lz4), None, "{unknown:#04x} wants what nobody knows");
            assert_eq!(lz4.towards(Compression(unknown & 0xef)), None, "{unknown:#04x} does not read LZ4");
        }
        assert_eq!(lz4.towards(Compression(0xf0)), Some(Algorithm::Lz4), "it reads others, too");
    }

    #[test]
    fn a_payload_starts_with_its_length() {
        assert_eq!(parse_payload(&[0x01, 0x02, 0xaa]), Ok((0x0102, &[0xaa][..])));
        assert_eq!(parse_payload(&[0, 0]), Ok((0, &[][..])));
        assert_eq!(parse_payload(&[1]), Err(Error::Truncated(Field::CllHeader)));
    }
}
