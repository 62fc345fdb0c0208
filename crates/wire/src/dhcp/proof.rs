//! What S-DHCP proves a message with, and what a proof is about.

use std::net::Ipv4Addr;

use super::{MessageType, OPTION_REQUESTED, OPTION_SERVER, View};
use crate::reader::Reader;
use crate::{Error, Field, MacAddress};

/// Bytes of the nonce that ties a reply to its request.
pub const NONCE_LEN: usize = 16;
/// Bytes of the tag under the site key.
pub const TAG_LEN: usize = 16;
/// Bytes of a claim.
pub const CLAIM_LEN: usize = 87;

/// The value of the option.
///
/// ```text
///  0  1 by a client, 2 by a server   1  number of the host, or name of the server's key, 8   9  stamp, 8   17  nonce, 16
/// 33  tag, 16   49  signature
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// Who made it.
    pub maker: Maker,
    /// The number of the host, or the name of the server's key.
    pub who: u64,
    /// The maker's S-ARP clock in units of 2^-32 s.
    pub stamp: u64,
    /// Chosen by the client, repeated by the server.
    pub nonce: [u8; NONCE_LEN],
    /// The tag under the site key, which spares others than hosts of the site a look at the signature.
    pub tag: [u8; TAG_LEN],
    /// The signature over the claim.
    pub signature: &'a [u8],
}

/// Who makes a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Maker {
    /// A client.
    Client = 1,
    /// A server.
    Server = 2,
}

impl<'a> Proof<'a> {
    /// Reads the value of the option.
    ///
    /// # Errors
    /// Cut short, or made by neither.
    pub fn parse(bytes: &'a [u8]) -> Result<Proof<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::DhcpProof);
        let maker = match reader.u8()? {
            1 => Maker::Client,
            2 => Maker::Server,
            _ => return Err(Error::Unsupported(Field::DhcpProof)),
        };
        let (who, stamp) = (reader.u64()?, reader.u64()?);
        let (nonce, tag) = (reader.array()?, reader.array()?);
        Ok(Proof { maker, who, stamp, nonce, tag, signature: reader.rest() })
    }

    /// The value of the option.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let (who, stamp) = (self.who.to_be_bytes(), self.stamp.to_be_bytes());
        [&[self.maker as u8][..], &who, &stamp, &self.nonce, &self.tag, self.signature].concat()
    }
}

/// What is signed: who says what, when, in which exchange, and a digest of the whole message.
///
/// ```text
///  0  who, 8   8  stamp, 8   16  nonce, 16   32  message type   33  xid, 4   37  chaddr, 6   43  ciaddr, 4
/// 47  address, 4   51  server identifier, 4   55  digest, 32
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// As in the proof.
    pub who: u64,
    /// As in the proof.
    pub stamp: u64,
    /// As in the proof.
    pub nonce: [u8; NONCE_LEN],
    /// The type of the message.
    pub kind: MessageType,
    /// What ties the messages of the exchange together.
    pub xid: u32,
    /// The client's hardware address.
    pub chaddr: MacAddress,
    /// The address that the client uses already.
    pub ciaddr: Ipv4Addr,
    /// What the client asks for, or what the server gives; unspecified if nothing.
    pub address: Ipv4Addr,
    /// Which server is meant or answers; unspecified if none.
    pub server: Ipv4Addr,
    /// SHA-256 of [`View::canonical`].
    pub digest: [u8; 32],
}

impl Claim {
    /// What `message` claims with a proof of `who`; `digest` is that of its canonical form.
    ///
    /// # Errors
    /// An option for one address holds something else.
    pub fn of(
        message: &View<'_>,
        who: u64,
        stamp: u64,
        nonce: [u8; NONCE_LEN],
        digest: [u8; 32],
    ) -> Result<Claim, Error> {
        let none = Ipv4Addr::UNSPECIFIED;
        let requested = message.address_option(OPTION_REQUESTED)?.unwrap_or(none);
        let is_reply = message.kind().operation() == super::Operation::Reply;
        Ok(Claim {
            who,
            stamp,
            nonce,
            kind: message.kind(),
            xid: message.xid(),
            chaddr: message.chaddr(),
            ciaddr: message.ciaddr(),
            address: if is_reply { message.yiaddr() } else { requested },
            server: message.address_option(OPTION_SERVER)?.unwrap_or(none),
            digest,
        })
    }

    /// The address that the client wants to have: what it asks for, or what it uses already.
    #[must_use]
    pub fn wanted(&self) -> Option<Ipv4Addr> {
        [self.address, self.ciaddr].into_iter().find(|address| !address.is_unspecified())
    }

    /// Reads a claim.
    ///
    /// # Errors
    /// Any length but [`CLAIM_LEN`], or an unknown type.
    pub fn parse(bytes: &[u8]) -> Result<Claim, Error> {
        let mut reader = Reader::new(bytes, Field::DhcpProof);
        let claim = Claim {
            who: reader.u64()?,
            stamp: reader.u64()?,
            nonce: reader.array()?,
            kind: MessageType::from_byte(reader.u8()?)?,
            xid: reader.u32()?,
            chaddr: MacAddress(reader.array()?),
            ciaddr: Ipv4Addr::from(reader.array::<4>()?),
            address: Ipv4Addr::from(reader.array::<4>()?),
            server: Ipv4Addr::from(reader.array::<4>()?),
            digest: reader.array()?,
        };
        if reader.rest().is_empty() { Ok(claim) } else { Err(Error::Trailing(Field::DhcpProof)) }
    }

    /// The claim as bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; CLAIM_LEN] {
        let fields: [&[u8]; 10] = [
            &self.who.to_be_bytes(),
            &self.stamp.to_be_bytes(),
            &self.nonce,
            &[self.kind as u8],
            &self.xid.to_be_bytes(),
            &self.chaddr.0,
            &self.ciaddr.octets(),
            &self.address.octets(),
            &self.server.octets(),
            &self.digest,
        ];
        let mut bytes = [0; CLAIM_LEN];
        for (byte, value) in bytes.iter_mut().zip(fields.concat()) {
            *byte = value;
        }
        bytes
    }
}
