//! What S-ARP messages carry between header and signature. The paper's own messages carry nothing between hosts; ours
//! split the second and tie an answer to its question.

use std::net::Ipv4Addr;

use crate::dhcp::proof::{CLAIM_LEN, Claim};
use crate::reader::Reader;
use crate::{Error, Field, MacAddress};

/// Bytes of the nonce in a signed ARP request.
pub const RESOLUTION_NONCE_LEN: usize = 8;
/// Bytes of the nonce in a request to a distributor.
pub const NONCE_LEN: usize = 16;
/// Bytes of the check that any host of the site can make, at the front of a credential.
pub const CHECK_LEN: usize = 8;
/// Bytes of the tag that only the asking host can make, behind it.
pub const TAG_LEN: usize = 16;
/// Bytes of what proves a request to a distributor, in place of a signature: check and tag.
pub const CREDENTIAL_LEN: usize = CHECK_LEN + TAG_LEN;

/// The data of a signed ARP message: nothing (the paper's form), the fraction of the second, or also a nonce.
///
/// ```text
///  0  fraction of the second in units of 2^-32, 4   4  nonce, 8: chosen by the request, repeated by its reply
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The fraction; without it two messages of one second could not be told apart.
    pub fraction: Option<u32>,
    /// The nonce.
    pub nonce: Option<[u8; RESOLUTION_NONCE_LEN]>,
}

impl Resolution {
    /// Reads the data.
    ///
    /// # Errors
    /// Any length but 0, 4 and 12.
    pub fn parse(bytes: &[u8]) -> Result<Resolution, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        Ok(match bytes.len() {
            0 => Resolution::default(),
            4 => Resolution { fraction: Some(reader.u32()?), nonce: None },
            12 => Resolution { fraction: Some(reader.u32()?), nonce: Some(reader.array()?) },
            _ => return Err(Error::Invalid(Field::SarpData)),
        })
    }

    /// The data as bytes; a nonce without a fraction is not a form that there is, and gets the fraction zero.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let fraction = self.fraction.or(self.nonce.map(|_| 0));
        let mut bytes = fraction.map(|fraction| fraction.to_be_bytes().to_vec()).unwrap_or_default();
        bytes.extend(self.nonce.iter().flatten());
        bytes
    }
}

/// The data of a request to a distributor; its credential stands where a signature would.
///
/// ```text
///  0  number of the asking host, 8   8  nonce, 16
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Under whose key the tag is.
    pub host: u64,
    /// Repeated by the answer.
    pub nonce: [u8; NONCE_LEN],
}

impl Question {
    /// Bytes of it.
    pub const LEN: usize = 8 + NONCE_LEN;

    /// Reads the data.
    ///
    /// # Errors
    /// Any length but 24.
    pub fn parse(bytes: &[u8]) -> Result<Question, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let question = Question { host: reader.u64()?, nonce: reader.array()? };
        end(&reader).map(|()| question)
    }

    /// The data as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        [&self.host.to_be_bytes()[..], &self.nonce].concat()
    }
}

/// The data of a request to replace the asking host's key. The signature of the message is made by the old key.
///
/// ```text
///  0  question, 24   24  credential, 24   48  algorithm   49  length of the proof   50  proof   then  new public key
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// Who asks, and the nonce.
    pub question: Question,
    /// Check and tag of the asking host.
    pub credential: [u8; CREDENTIAL_LEN],
    /// The algorithm of the new key.
    pub algorithm: u8,
    /// A signature by the new key: nobody can have a key entered that is not his.
    pub proof: &'a [u8],
    /// The new public key.
    pub key: &'a [u8],
}

impl<'a> Change<'a> {
    /// Where the credential stands in the data.
    pub const CREDENTIAL: std::ops::Range<usize> = Question::LEN..Question::LEN + CREDENTIAL_LEN;

    /// Reads the data.
    ///
    /// # Errors
    /// It ends before the proof does.
    pub fn parse(bytes: &'a [u8]) -> Result<Change<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let question = Question { host: reader.u64()?, nonce: reader.array()? };
        let (credential, algorithm) = (reader.array()?, reader.u8()?);
        let proof_len = usize::from(reader.u8()?);
        let proof = reader.bytes(proof_len)?;
        Ok(Change { question, credential, algorithm, proof, key: reader.rest() })
    }

    /// The data as bytes; a proof of more than 255 bytes is cut and proves nothing.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let proof = &self.proof[..self.proof.len().min(usize::from(u8::MAX))];
        [&self.question.emit()[..], &self.credential, &[self.algorithm, proof.len() as u8], proof, self.key].concat()
    }

    /// What the proof signs.
    #[must_use]
    pub fn proved_bytes(&self) -> Vec<u8> {
        [&b"ringwall s-arp new key"[..], &self.question.emit(), self.key].concat()
    }
}

/// The data of a distributor's answer; in a key reply a [`Record`] follows.
///
/// ```text
///  0  fraction of the second in units of 2^-32, 4   4  number of the host that asked, 8   12  its nonce, 16   28  record
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The fraction of the second.
    pub fraction: u32,
    /// Who asked: an answer to another host that chose the same nonce is not ours.
    pub host: u64,
    /// The nonce of the request.
    pub nonce: [u8; NONCE_LEN],
    /// What was asked for, if anything.
    pub rest: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Reads the data.
    ///
    /// # Errors
    /// Fewer than 28 bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Answer<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let (fraction, host, nonce) = (reader.u32()?, reader.u64()?, reader.array()?);
        Ok(Answer { fraction, host, nonce, rest: reader.rest() })
    }

    /// The data as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        [&self.fraction.to_be_bytes()[..], &self.host.to_be_bytes(), &self.nonce, self.rest].concat()
    }
}

/// What a distributor says of a host: its key and, where the site binds it, its hardware address.
///
/// ```text
///  0  algorithm   1  flags: 1 the hardware address is bound   2  hardware address or zeros, 6   8  public key
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The algorithm of the key, a number of the identity room.
    pub algorithm: u8,
    /// The only hardware address that may speak for the host; `None` when any may.
    pub mac: Option<MacAddress>,
    /// The public key.
    pub key: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads a record.
    ///
    /// # Errors
    /// Truncated, unknown flags, or an address that is there without its flag.
    pub fn parse(bytes: &'a [u8]) -> Result<Record<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let algorithm = reader.u8()?;
        let mac = match (reader.u8()?, MacAddress(reader.array()?)) {
            (0, MacAddress::ZERO) => None,
            (1, mac) => Some(mac),
            _ => return Err(Error::Invalid(Field::SarpData)),
        };
        Ok(Record { algorithm, mac, key: reader.rest() })
    }

    /// The record as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mac = self.mac.unwrap_or(MacAddress::ZERO);
        [&[self.algorithm, u8::from(self.mac.is_some())][..], &mac.0, self.key].concat()
    }
}

/// What a DHCP server wants of a distributor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LeaseAction {
    /// To know whether the client is good, and whose key is its.
    Check = 1,
    /// The same, and that the client, who signed for it, gets the address.
    Bind = 2,
    /// That the client has the address for this long from now on.
    Extend = 3,
    /// That the client has the address no more.
    Unbind = 4,
}

/// Why a distributor refuses a client or its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// Who asks is no DHCP server.
    NotServer = 1,
    /// The client is not enrolled, is revoked, or its time is over.
    NotGood = 2,
    /// The client did not sign this.
    Signature = 3,
    /// The site binds the client to another hardware address.
    Mac = 4,
    /// The address lies outside the client's subnets.
    OutsideSubnets = 5,
    /// Another host has the address.
    Taken = 6,
    /// The client does not have the address that it should have.
    NotHeld = 7,
}

impl Refusal {
    const ALL: [Refusal; 7] = [
        Refusal::NotServer,
        Refusal::NotGood,
        Refusal::Signature,
        Refusal::Mac,
        Refusal::OutsideSubnets,
        Refusal::Taken,
        Refusal::NotHeld,
    ];

    /// Reads what follows the answer in a refusal.
    ///
    /// # Errors
    /// Anything but one known byte.
    pub fn parse(bytes: &[u8]) -> Result<Refusal, Error> {
        let found = Refusal::ALL.into_iter().find(|one| bytes == [*one as u8]);
        found.ok_or(Error::Invalid(Field::SarpData))
    }
}

/// The data of a DHCP server's question about a client. Its credential stands where a signature would.
///
/// ```text
///  0  question, 24   24  action   25  address, 4   29  seconds, 4   33  number of the client, 8
/// 41  claim of the client, 87   128  its signature; neither where the server speaks for itself
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease<'a> {
    /// Who asks, and the nonce.
    pub question: Question,
    /// What for.
    pub action: LeaseAction,
    /// The address that is proposed, held or given back; unspecified where there is none.
    pub address: Ipv4Addr,
    /// How long the client has it; zero where that is not known yet.
    pub seconds: u32,
    /// The client.
    pub host: u64,
    /// What the client signed, and the signature.
    pub claim: Option<(Claim, &'a [u8])>,
}

impl<'a> Lease<'a> {
    /// Reads the data.
    ///
    /// # Errors
    /// Cut short, an unknown action, or a claim of somebody else.
    pub fn parse(bytes: &'a [u8]) -> Result<Lease<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::SarpData);
        let question = Question { host: reader.u64()?, nonce: reader.array()? };
        let action = match reader.u8()? {
            1 => LeaseAction::Check,
            2 => LeaseAction::Bind,
            3 => LeaseAction::Extend,
            4 => LeaseAction::Unbind,
            _ => return Err(Error::Unsupported(Field::SarpData)),
        };
        let address = Ipv4Addr::from(reader.array::<4>()?);
        let (seconds, host) = (reader.u32()?, reader.u64()?);
        let claim = match reader.rest() {
            [] => None,
            _ => Some((Claim::parse(reader.bytes(CLAIM_LEN)?)?, reader.rest())),
        };
        if claim.is_some_and(|(claim, _)| claim.who != host) {
            return Err(Error::Invalid(Field::SarpData));
        }
        Ok(Lease { question, action, address, seconds, host, claim })
    }

    /// The data as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = self.question.emit();
        bytes.push(self.action as u8);
        bytes.extend(self.address.octets());
        bytes.extend(self.seconds.to_be_bytes());
        bytes.extend(self.host.to_be_bytes());
        if let Some((claim, signature)) = &self.claim {
            bytes.extend(claim.emit());
            bytes.extend(*signature);
        }
        bytes
    }
}

fn end(reader: &Reader<'_>) -> Result<(), Error> {
    if reader.rest().is_empty() { Ok(()) } else { Err(Error::Trailing(Field::SarpData)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_forms_of_resolution_data() {
        for bytes in [&[][..], &[1, 2, 3, 4], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]] {
            assert_eq!(Resolution::parse(bytes).expect("a form").emit(), bytes);
        }
        for len in [1, 3, 5, 11, 13] {
            assert!(Resolution::parse(&vec![0; len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn a_question_has_one_length() {
        let bytes: Vec<u8> = (0..24).collect();
        let question = Question::parse(&bytes).expect("valid");
        assert_eq!((question.host, question.nonce[0]), (0x0001_0203_0405_0607, 8));
        assert_eq!(question.emit(), bytes);
        assert_eq!(Question::parse(&bytes[..23]), Err(Error::Truncated(Field::SarpData)));
        assert_eq!(Question::parse(&[&bytes[..], &[0]].concat()), Err(Error::Trailing(Field::SarpData)));
    }

    #[test]
    fn a_record_binds_an_address_or_does_not() {
        let bound = [1, 1, 2, 0, 0, 0, 0, 9, 0xaa];
        assert_eq!(Record::parse(&bound).expect("valid").mac, Some(MacAddress([2, 0, 0, 0, 0, 9])));
        let free = [1, 0, 0, 0, 0, 0, 0, 0, 0xaa];
        assert_eq!(Record::parse(&free).expect("valid").mac, None);
        for bad in [[1, 0, 2, 0, 0, 0, 0, 9, 0xaa], [1, 2, 0, 0, 0, 0, 0, 0, 0xaa]] {
            assert_eq!(Record::parse(&bad), Err(Error::Invalid(Field::SarpData)));
        }
        assert_eq!(Record::parse(&bound[..7]), Err(Error::Truncated(Field::SarpData)));
    }

    #[test]
    fn a_lease_speaks_of_one_client() {
        let mut bytes: Vec<u8> = (0..41).collect();
        bytes[24] = 3;
        let lease = Lease::parse(&bytes).expect("valid");
        assert_eq!(
            (lease.action, lease.address, lease.seconds),
            (LeaseAction::Extend, [25, 26, 27, 28].into(), 0x1d1e_1f20)
        );
        assert_eq!((lease.host, lease.claim, lease.emit() == bytes), (0x2122_2324_2526_2728, None, true));
        let mut claim = [0_u8; CLAIM_LEN];
        claim[..8].copy_from_slice(&bytes[33..41]);
        claim[32] = 1;
        let whole = [&bytes[..], &claim, &[9; 64]].concat();
        assert_eq!(Lease::parse(&whole).expect("valid").emit(), whole);
        claim[0] ^= 1;
        assert!(Lease::parse(&[&bytes[..], &claim, &[9; 64]].concat()).is_err(), "another client's claim");
        assert!(Lease::parse(&whole[..100]).is_err() && Lease::parse(&bytes[..40]).is_err());
        bytes[24] = 5;
        assert!(Lease::parse(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn what_is_read_writes_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(data) = Resolution::parse(&bytes) { prop_assert_eq!(data.emit(), bytes.clone()); }
            if let Ok(data) = Question::parse(&bytes) { prop_assert_eq!(data.emit(), bytes.clone()); }
            if let Ok(data) = Change::parse(&bytes) { prop_assert_eq!(data.emit(), bytes.clone()); }
            if let Ok(data) = Lease::parse(&bytes) { prop_assert_eq!(data.emit(), bytes.clone()); }
            if let Ok(data) = Refusal::parse(&bytes) { prop_assert_eq!(vec![data as u8], bytes.clone()); }
            if let Ok(data) = Answer::parse(&bytes) { prop_assert_eq!(data.emit(), bytes.clone()); }
            if let Ok(data) = Record::parse(&bytes) { prop_assert_eq!(data.emit(), bytes); }
        }
    }
}
