//! A DHCP frame: a DHCP message of a client or a server under the host's own DHCP key (section 6 of the paper).
//!
//! The host's key follows from its *client ID*, so a server needs no table of keys. The paper's stamp is a UNIX timestamp with a
//! counter; the two nonces stand beside it for hosts whose clock nobody can believe.
//!
//! ```text
//!  0  version and type   1  flags   2  tag, 16   18  client ID: hardware address 6, end of the base certificate 8
//! 32  timestamp, 8   40  counter, 4   44  nonce of the client, 16   60  nonce of the server, 16
//! 76  length of the certificate, 2   78  certificate, then the IPv4 packet
//! ```

use super::handshake::{CERTIFICATE_LEN_MAX, append_counted, read_counted};
use super::{NONCE_LEN, PacketType};
use crate::reader::Reader;
use crate::{Error, Field, MacAddress};

/// Bytes of the tag.
pub const TAG_LEN: usize = 16;
/// Bytes of a client ID.
pub const CLIENT_ID_LEN: usize = 14;
/// Bytes in front of the certificate.
pub const FIXED_LEN: usize = 78;

const TAG_AT: usize = 2;
const TAGGED_FROM: usize = TAG_AT + TAG_LEN;
const FLAG_SERVER: u8 = 1;

/// What names a client, and what its key follows from: the paper's "client ID".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId {
    /// Its hardware address.
    pub mac: MacAddress,
    /// The last second of its base certificate, in Unix seconds. After it the key is worth nothing.
    pub expires_unix_s: u64,
}

impl ClientId {
    /// As it travels, and as keys are derived from it.
    #[must_use]
    pub fn emit(&self) -> [u8; CLIENT_ID_LEN] {
        let mut out = [0; CLIENT_ID_LEN];
        out[..6].copy_from_slice(&self.mac.0);
        out[6..].copy_from_slice(&self.expires_unix_s.to_be_bytes());
        out
    }

    /// Reads one.
    ///
    /// # Errors
    /// Fewer bytes than one has.
    pub fn read(reader: &mut Reader<'_>) -> Result<ClientId, Error> {
        Ok(ClientId { mac: MacAddress(reader.array()?), expires_unix_s: reader.u64()? })
    }
}

/// Who made a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The client whose ID it carries.
    Client,
    /// A DHCP server, for that client.
    Server,
}

/// When a frame was made: the wall clock, and a count of the frames of the same second (paper, section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Unix seconds.
    pub unix_s: u64,
    /// How many frames of the same second came before.
    pub counter: u32,
}

/// A DHCP frame. Nothing in it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpFrame<'a> {
    /// Who made it.
    pub speaker: Speaker,
    /// Tag under the client's DHCP key over the Ethernet header and all of the message but the tag.
    pub tag: [u8; TAG_LEN],
    /// Whose frame it is, or for whom.
    pub client: ClientId,
    /// When it was made.
    pub stamp: Stamp,
    /// Drawn by the client for each question, and repeated in the answer.
    pub client_nonce: [u8; NONCE_LEN],
    /// Made by the server, and repeated by the client; zeros while it has none.
    pub server_nonce: [u8; NONCE_LEN],
    /// The client's base certificate in a question for an address, its new certificate in the answer, else empty.
    pub certificate: &'a [u8],
    /// The IPv4 packet with the DHCP message. Empty where a server only asks for its nonce.
    pub packet: &'a [u8],
}

impl<'a> DhcpFrame<'a> {
    /// Reads a frame from `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// The field that is cut short, invalid, or unsupported; and a client's frame without a packet.
    pub fn parse(bytes: &'a [u8]) -> Result<DhcpFrame<'a>, Error> {
        if PacketType::of(bytes)? != PacketType::Dhcp {
            return Err(Error::Invalid(Field::CllHeader));
        }
        let mut reader = Reader::new(bytes, Field::CllDhcp);
        let _version_and_type = reader.u8()?;
        let speaker = match reader.u8()? {
            0 => Speaker::Client,
            FLAG_SERVER => Speaker::Server,
            _ => return Err(Error::Unsupported(Field::CllDhcp)),
        };
        let tag = reader.array()?;
        let client = ClientId::read(&mut reader)?;
        let stamp = Stamp { unix_s: reader.u64()?, counter: reader.u32()? };
        let (client_nonce, server_nonce) = (reader.array()?, reader.array()?);
        let certificate = read_counted(&mut reader, Field::CllCertificate, CERTIFICATE_LEN_MAX)?;
        let packet = reader.rest();
        if packet.is_empty() && (speaker == Speaker::Client || !certificate.is_empty()) {
            return Err(Error::Truncated(Field::CllDhcp));
        }
        Ok(DhcpFrame { speaker, tag, client, stamp, client_nonce, server_nonce, certificate, packet })
    }

    /// The frame as bytes, to stand after the Ethernet header.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIXED_LEN + self.certificate.len() + self.packet.len());
        let flags = if self.speaker == Speaker::Server { FLAG_SERVER } else { 0 };
        out.extend_from_slice(&[PacketType::Dhcp.first_byte(), flags]);
        out.extend_from_slice(&self.tag);
        out.extend_from_slice(&self.client.emit());
        out.extend_from_slice(&self.stamp.unix_s.to_be_bytes());
        out.extend_from_slice(&self.stamp.counter.to_be_bytes());
        out.extend_from_slice(&self.client_nonce);
        out.extend_from_slice(&self.server_nonce);
        append_counted(&mut out, self.certificate);
        out.extend_from_slice(self.packet);
        out
    }
}

/// The two pieces of a frame (bytes after the Ethernet header) that the tag covers: all but the tag itself.
#[must_use]
pub fn tagged_parts(message: &[u8]) -> [&[u8]; 2] {
    [&message[..TAG_AT.min(message.len())], &message[TAGGED_FROM.min(message.len())..]]
}

/// Writes the tag into its place.
pub fn set_tag(message: &mut [u8], tag: &[u8; TAG_LEN]) {
    if let Some(place) = message.get_mut(TAG_AT..TAGGED_FROM) {
        place.copy_from_slice(tag);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example<'a>(certificate: &'a [u8], packet: &'a [u8]) -> DhcpFrame<'a> {
        DhcpFrame {
            speaker: Speaker::Server,
            tag: [0x11; TAG_LEN],
            client: ClientId { mac: MacAddress([2, 0, 0, 0, 0, 1]), expires_unix_s: 0x0102_0304_0506_0708 },
            stamp: Stamp { unix_s: 0x1112_1314_1516_1718, counter: 0x2122_2324 },
            client_nonce: [0x33; NONCE_LEN],
            server_nonce: [0x44; NONCE_LEN],
            certificate,
            packet,
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = example(&[0xcc; 3], &[0x45, 0]).emit();
        assert_eq!(bytes[..2], [0x2b, 1]);
        assert_eq!(bytes[2..18], [0x11; 16]);
        assert_eq!(bytes[18..32], [2, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[32..44], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x21, 0x22, 0x23, 0x24]);
        assert_eq!((&bytes[44..60], &bytes[60..76]), (&[0x33; 16][..], &[0x44; 16][..]));
        assert_eq!(bytes[76..], [0, 3, 0xcc, 0xcc, 0xcc, 0x45, 0]);
        assert_eq!(tagged_parts(&bytes).concat().len(), bytes.len() - TAG_LEN);
        let mut other = bytes.clone();
        set_tag(&mut other, &[9; TAG_LEN]);
        assert_eq!((&other[2..18], tagged_parts(&other)), (&[9; 16][..], tagged_parts(&bytes)));
    }

    #[test]
    fn only_a_server_may_say_nothing_and_other_flags_are_refused() {
        let empty = example(&[], &[]);
        assert_eq!(DhcpFrame::parse(&empty.emit()), Ok(empty));
        let client = DhcpFrame { speaker: Speaker::Client, ..empty };
        assert_eq!(DhcpFrame::parse(&client.emit()), Err(Error::Truncated(Field::CllDhcp)));
        assert_eq!(DhcpFrame::parse(&example(&[1], &[]).emit()), Err(Error::Truncated(Field::CllDhcp)));
        let mut flagged = empty.emit();
        flagged[1] = 2;
        assert_eq!(DhcpFrame::parse(&flagged), Err(Error::Unsupported(Field::CllDhcp)));
    }

    proptest! {
        #[test]
        fn a_frame_survives_emit_and_parse(
            certificate in proptest::collection::vec(any::<u8>(), 0..CERTIFICATE_LEN_MAX),
            packet in proptest::collection::vec(any::<u8>(), 1..600),
            from_client: bool, unix_s: u64, counter: u32,
        ) {
            let mut frame = example(&certificate, &packet);
            frame.speaker = if from_client { Speaker::Client } else { Speaker::Server };
            frame.stamp = Stamp { unix_s, counter };
            let bytes = frame.emit();
            prop_assert_eq!(DhcpFrame::parse(&bytes), Ok(frame));
        }

        #[test]
        fn mutated_bytes_that_parse_emit_themselves(at in 0_usize..140, value: u8, cut in 0_usize..150) {
            let mut bytes = example(&[7; 40], &[9; 20]).emit();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut);
            if let Ok(parsed) = DhcpFrame::parse(&bytes) {
                prop_assert_eq!(parsed.emit(), bytes);
            }
        }
    }
}
