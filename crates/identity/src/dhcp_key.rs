//! The keys under which DHCP frames of the link layer are proved (CLL paper, section 6).
//!
//! The site has one master, which only its DHCP servers are given. The key of a host follows from the master and the host's
//! client ID, so a server knows every host's key without a table, and the key ends with the base certificate.

use std::fmt;

use wire::cll::dhcp::{CLIENT_ID_LEN, ClientId, TAG_LEN};
use wire::reader::Reader;
use wire::{Field, MacAddress};
use zeroize::Zeroizing;

use crate::certificate::HostCertificate;
use crate::shared_keys::Shared;
use crate::site_key::{LEN as KEY_LEN, SiteKey};
use crate::{KeyError, pem};

/// Bytes of a host's key as it is kept: its client ID and the key.
const BLOCK_LEN: usize = CLIENT_ID_LEN + KEY_LEN;

/// Keep these tags apart from all others under keys of the same form.
const KEY_LABEL: &[u8] = b"cll dhcp key";
const FRAME_LABEL: &[u8] = b"cll dhcp";

/// The client ID of the host with this base certificate.
#[must_use]
pub fn client_id(base: &HostCertificate) -> ClientId {
    ClientId { mac: base.mac(), expires_unix_s: base.not_after_unix() }
}

/// What the keys of all hosts follow from; overwritten when dropped.
#[derive(Clone, Debug)]
pub struct DhcpMaster(SiteKey);

impl DhcpMaster {
    /// The master made of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> DhcpMaster {
        DhcpMaster(SiteKey::from_bytes(bytes))
    }

    /// The key of the host with this client ID.
    #[must_use]
    pub fn key_of(&self, client: ClientId) -> DhcpKey {
        let bytes = self.0.whole_tag(KEY_LABEL, &[&client.emit()]);
        DhcpKey { client, key: SiteKey::from_bytes(*bytes) }
    }

    /// The master as one PEM block.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        pem::encode(pem::DHCP_MASTER, self.0.bytes())
    }

    /// Reads the master from a text that holds exactly one PEM block.
    ///
    /// # Errors
    /// Malformed PEM, another label, or another length than 32 bytes.
    pub fn from_pem(text: &str) -> Result<DhcpMaster, KeyError> {
        Self::from_block(&pem::single(text, pem::DHCP_MASTER)?)
    }

    pub(crate) fn from_block(bytes: &[u8]) -> Result<DhcpMaster, KeyError> {
        SiteKey::from_block(bytes).map(DhcpMaster)
    }
}

impl Shared for DhcpMaster {
    const LABEL: &'static str = pem::DHCP_MASTER;
    const LEN: usize = KEY_LEN;

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.0.bytes().to_vec())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::from_block(bytes)
    }
}

/// What one host proves its DHCP with, and its servers what they answer it; overwritten when dropped.
#[derive(Clone)]
pub struct DhcpKey {
    client: ClientId,
    key: SiteKey,
}

impl DhcpKey {
    /// Whose key it is.
    #[must_use]
    pub fn client(&self) -> ClientId {
        self.client
    }

    /// The tag of a frame: over its Ethernet header and both parts of its message.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_LEN] {
        self.key.tag(FRAME_LABEL, parts)
    }

    /// Whether `tag` is the tag of a frame; takes the same time wherever it differs.
    #[must_use]
    pub fn verify(&self, parts: &[&[u8]], tag: &[u8; TAG_LEN]) -> bool {
        self.key.verify(FRAME_LABEL, parts, tag)
    }

    /// The key as one PEM block.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        pem::encode(pem::DHCP_KEY, &self.to_bytes())
    }

    pub(crate) fn from_block(bytes: &[u8]) -> Result<DhcpKey, KeyError> {
        let length = || KeyError::Length { expected: BLOCK_LEN, found: bytes.len() };
        let mut reader = Reader::new(bytes, Field::CllDhcp);
        let client = ClientId::read(&mut reader).map_err(|_| length())?;
        let key = SiteKey::from_block(reader.rest()).map_err(|_| length())?;
        Ok(DhcpKey { client, key })
    }
}

impl Shared for DhcpKey {
    const LABEL: &'static str = pem::DHCP_KEY;
    const LEN: usize = BLOCK_LEN;

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(self.client.emit().to_vec());
        bytes.extend_from_slice(self.key.bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::from_block(bytes)
    }
}

impl fmt::Debug for DhcpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClientId { mac: MacAddress(_), expires_unix_s } = self.client;
        write!(f, "DhcpKey({}, until {expires_unix_s}, redacted)", self.client.mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_hex::array;

    const CLIENT: ClientId = ClientId { mac: MacAddress([2, 0, 0, 0, 0, 1]), expires_unix_s: 1_900_000_000 };

    fn master() -> DhcpMaster {
        DhcpMaster::from_bytes(std::array::from_fn(|at| u8::try_from(at).expect("below 32")))
    }

    /// Computed with Python's hmac module from docs/protocol.md, section 22.
    #[test]
    fn keys_and_tags_are_those_of_the_written_protocol() {
        let key = master().key_of(CLIENT);
        assert_eq!(*key.key.bytes(), array("bc7e83a9b820c8240992eaf874371ab622d18530901f3828772b9f3a8de50973"));
        assert_eq!(key.tag(&[b"ethernet", b"message"]), array("1183f8434f58af1eaa0374e058c98dd0"));
        assert!(key.verify(&[b"ethern", b"etmessage"], &array("1183f8434f58af1eaa0374e058c98dd0")));
    }

    #[test]
    fn keys_of_other_clients_are_others() {
        let of = |client: ClientId| *master().key_of(client).key.bytes();
        let later = ClientId { expires_unix_s: CLIENT.expires_unix_s + 1, ..CLIENT };
        let other = ClientId { mac: MacAddress([2, 0, 0, 0, 0, 2]), ..CLIENT };
        assert!(of(CLIENT) != of(later) && of(CLIENT) != of(other) && of(later) != of(other));
    }

    #[test]
    fn both_survive_their_files() {
        assert_eq!(DhcpMaster::from_pem(&master().to_pem()).expect("own text").to_pem(), master().to_pem());
        let key = master().key_of(CLIENT);
        let block = pem::single(&key.to_pem(), pem::DHCP_KEY).expect("own text");
        let read = DhcpKey::from_block(&block).expect("own block");
        assert_eq!((read.client(), read.tag(&[b"x"])), (CLIENT, key.tag(&[b"x"])));
        assert!(DhcpKey::from_block(&block[1..]).is_err() && DhcpKey::from_block(&[]).is_err());
        assert!(!format!("{key:?}{:?}", master()).contains(&format!("{:?}", key.key.bytes())));
    }
}
