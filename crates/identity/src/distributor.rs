//! To be looked up instead of carrying a certificate: what a key distributor (AKD) of the S-ARP paper vouches for.
//!
//! A [`DistributorKey`] turns an answer into [`Verified`] statements; a [`RequestKey`] is what a host shares with the
//! distributors of its site, so that nobody else can make them sign; its [`CheckKey`] makes whoever lacks that cost a distributor
//! next to nothing (records 0016 and 0048).

use std::fmt;
use std::hash::Hasher;
use std::net::Ipv4Addr;

use siphasher::sip::SipHasher24;
use subtle::ConstantTimeEq;
use wire::MacAddress;
use wire::sarp::data::{Answer, CHECK_LEN, CREDENTIAL_LEN, NONCE_LEN, Record, Refusal, TAG_LEN};
use wire::sarp::{Kind, Message, REQUEST_HEAD_LEN};

use zeroize::Zeroizing;

use crate::certificate::{BadSignature, HostCertificate, Role, Verified};
use crate::profile::Profile;
use crate::record_key::RecordKey;
use crate::shared_keys::Shared;
use crate::site_key::SiteKey;
use crate::{KeyError, pem};

/// Bytes of a request key as it is kept: the host's number and the key.
const REQUEST_KEY_LEN: usize = 8 + crate::site_key::LEN;

/// Separates these tags from all others under keys of the same form.
const REQUEST_LABEL: &[u8] = b"s-arp request";
const CHANGE_LABEL: &[u8] = b"s-arp key change";
const KEY_LABEL: &[u8] = b"s-arp request key";
const CHECK_LABEL: &[u8] = b"s-arp check";

/// What only one host and the distributors of its site can make: the first check of a request. It costs a tenth of a tag.
#[derive(Clone)]
pub struct CheckKey(Zeroizing<[u8; TAG_LEN]>);

impl CheckKey {
    /// The key of SipHash that checks are made with.
    #[must_use]
    pub fn bytes(&self) -> &Zeroizing<[u8; TAG_LEN]> {
        &self.0
    }

    /// The check of a request that begins with `head`: SipHash-2-4, least significant byte first.
    #[must_use]
    pub fn check(&self, head: &[u8; REQUEST_HEAD_LEN]) -> [u8; CHECK_LEN] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(head);
        hasher.finish().to_le_bytes()
    }

    /// Whether `check` is the check of a request that begins with `head`; takes the same time wherever it differs.
    #[must_use]
    pub fn verify(&self, head: &[u8; REQUEST_HEAD_LEN], check: &[u8; CHECK_LEN]) -> bool {
        self.check(head).ct_eq(check).into()
    }
}

impl fmt::Debug for CheckKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckKey(redacted)")
    }
}

/// The secret of all distributors of a site, from which the key of every host follows: no table of secrets has to be kept
/// or shared, and what a distributor must do before it believes a request needs no look-up.
#[derive(Clone, Debug)]
pub struct RequestMaster(SiteKey);

impl RequestMaster {
    /// The master made of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: [u8; crate::site_key::LEN]) -> Self {
        RequestMaster(SiteKey::from_bytes(bytes))
    }

    /// The key of the host with this number.
    #[must_use]
    pub fn key_of(&self, host: u64) -> RequestKey {
        let bytes = self.0.whole_tag(KEY_LABEL, &[&host.to_be_bytes()]);
        RequestKey { host, key: SiteKey::from_bytes(*bytes) }
    }

    /// The master as one PEM block.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        pem::encode(pem::REQUEST_MASTER, self.0.bytes())
    }

    /// Reads the master from a text that holds exactly one PEM block.
    ///
    /// # Errors
    /// Malformed PEM, another label, or another length than 32 bytes.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        Self::from_block(&pem::single(text, pem::REQUEST_MASTER)?)
    }

    pub(crate) fn site_key(&self) -> &SiteKey {
        &self.0
    }

    pub(crate) fn from_block(bytes: &[u8]) -> Result<Self, KeyError> {
        SiteKey::from_block(bytes).map(RequestMaster)
    }
}

impl Shared for RequestMaster {
    const LABEL: &'static str = pem::REQUEST_MASTER;
    const LEN: usize = crate::site_key::LEN;

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.0.bytes().to_vec())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::from_block(bytes)
    }
}

/// What one host shares with the distributors of its site.
#[derive(Clone, Debug)]
pub struct RequestKey {
    host: u64,
    key: SiteKey,
}

impl RequestKey {
    /// The number of the host.
    #[must_use]
    pub fn host(&self) -> u64 {
        self.host
    }

    /// The key as one PEM block.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        pem::encode(pem::REQUEST_KEY, &self.to_bytes())
    }

    pub(crate) fn from_block(bytes: &[u8]) -> Result<Self, KeyError> {
        let length = || KeyError::Length { expected: REQUEST_KEY_LEN, found: bytes.len() };
        let (number, key) = bytes.split_first_chunk::<8>().ok_or_else(length)?;
        let key = SiteKey::from_block(key).map_err(|_| length())?;
        Ok(RequestKey { host: u64::from_be_bytes(*number), key })
    }

    /// The tag of a request: over all bytes that a signature would cover.
    #[must_use]
    pub fn tag(&self, signed_bytes: &[u8]) -> [u8; TAG_LEN] {
        self.key.tag(REQUEST_LABEL, &[signed_bytes])
    }

    /// The key of the host's checks, which follows from this one. Whoever needs it often keeps it.
    #[must_use]
    pub fn check_key(&self) -> CheckKey {
        CheckKey(Zeroizing::new(self.key.tag(CHECK_LABEL, &[])))
    }

    /// What proves a request: its check, and its tag.
    #[must_use]
    pub fn credential(&self, signed_bytes: &[u8]) -> [u8; CREDENTIAL_LEN] {
        self.with_check(signed_bytes, self.tag(signed_bytes))
    }

    /// What proves a request to change the key: over all bytes that its signature covers, the credential as zeros.
    #[must_use]
    pub fn change_credential(&self, signed_bytes: &[u8]) -> [u8; CREDENTIAL_LEN] {
        self.with_check(signed_bytes, self.key.tag(CHANGE_LABEL, &[signed_bytes]))
    }

    /// Check and tag. What is too short for a request gets a check that is never right.
    fn with_check(&self, signed_bytes: &[u8], tag: [u8; TAG_LEN]) -> [u8; CREDENTIAL_LEN] {
        let check = signed_bytes.first_chunk().map_or([0; CHECK_LEN], |head| self.check_key().check(head));
        let mut credential = [0; CREDENTIAL_LEN];
        credential[..CHECK_LEN].copy_from_slice(&check);
        credential[CHECK_LEN..].copy_from_slice(&tag);
        credential
    }

    /// Whether `tag` is the tag of a request to change the key; takes the same time wherever it differs.
    #[must_use]
    pub fn verify_change(&self, signed_bytes: &[u8], tag: &[u8; TAG_LEN]) -> bool {
        self.key.verify(CHANGE_LABEL, &[signed_bytes], tag)
    }

    /// Whether `tag` is the tag of a request; takes the same time wherever it differs.
    #[must_use]
    pub fn verify(&self, signed_bytes: &[u8], tag: &[u8; TAG_LEN]) -> bool {
        self.key.verify(REQUEST_LABEL, &[signed_bytes], tag)
    }
}

impl Shared for RequestKey {
    const LABEL: &'static str = pem::REQUEST_KEY;
    const LEN: usize = REQUEST_KEY_LEN;

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(self.host.to_be_bytes().to_vec());
        bytes.extend_from_slice(self.key.bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::from_block(bytes)
    }
}

/// Checks a signature against a key of a distributor's own repository, given by its algorithm's number and its bytes. What
/// comes from the network is checked by [`DistributorKey::verify`] and [`Verified`] records instead.
///
/// # Errors
/// [`BadSignature`] also when the key is none, or none of the distributor's own `profile`.
pub fn verify_with_record(
    profile: Profile,
    (algorithm, key): (u8, &[u8]),
    message: &[u8],
    signature: &[u8],
) -> Result<(), BadSignature> {
    RecordKey::of_profile(profile, algorithm, key).ok_or(BadSignature)?.verify(message, signature)
}

/// What a distributor says in answer to a request, and when.
#[derive(Clone, Debug)]
pub struct Statement {
    kind: Kind,
    seconds: u32,
    fraction: u32,
    host: u64,
    nonce: [u8; NONCE_LEN],
    record: Option<HostRecord>,
    refusal: Option<Refusal>,
}

impl Statement {
    /// Which answer it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The distributor's time: seconds since 1970, and the fraction in units of 2^-32 s.
    #[must_use]
    pub fn time(&self) -> (u32, u32) {
        (self.seconds, self.fraction)
    }

    /// The number of the host that asked.
    #[must_use]
    pub fn host(&self) -> u64 {
        self.host
    }

    /// Why a DHCP client was refused; only in that answer.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.refusal
    }

    /// The nonce of the request. Whoever made no such request must not act on the answer.
    #[must_use]
    pub fn nonce(&self) -> &[u8; NONCE_LEN] {
        &self.nonce
    }
}

impl Verified<Statement> {
    /// The key that was asked for, or that of a DHCP client to which was agreed.
    #[must_use]
    pub fn record(&self) -> Option<Verified<HostRecord>> {
        self.record.clone().map(Verified::vouch)
    }
}

/// A host as a distributor knows it.
#[derive(Clone)]
pub struct HostRecord {
    address: Ipv4Addr,
    mac: Option<MacAddress>,
    key: RecordKey,
}

impl HostRecord {
    /// Whose key it is.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The only hardware address that may speak for the host, if the site binds one.
    #[must_use]
    pub fn mac(&self) -> Option<MacAddress> {
        self.mac
    }

    /// Whether this hardware address may speak for the host: any may where the site binds none (paper, section 3.5.1).
    #[must_use]
    pub fn admits(&self, mac: MacAddress) -> bool {
        self.mac.is_none_or(|bound| bound == mac)
    }

    /// Whether both hold the same key.
    #[must_use]
    pub fn same_key(&self, other: &HostRecord) -> bool {
        self.key.bytes() == other.key.bytes()
    }
}

impl Verified<HostRecord> {
    /// Checks that the host signed `message`.
    ///
    /// # Errors
    /// [`BadSignature`], whatever is wrong with the signature.
    pub fn verify_signature(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.key.verify(message, signature)
    }
}

impl fmt::Debug for HostRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostRecord").field("address", &self.address).field("mac", &self.mac).finish_non_exhaustive()
    }
}

/// The public key of a distributor, which a host holds from its enrolment.
#[derive(Clone)]
pub struct DistributorKey(RecordKey);

impl DistributorKey {
    /// The key of algorithm `number` (see [`KeyKind::record_number`](crate::certificate::KeyKind::record_number) and
    /// [`KeyLength::record_number`](crate::profile::KeyLength::record_number)).
    #[must_use]
    pub fn new(number: u8, bytes: &[u8]) -> Option<Self> {
        RecordKey::new(number, bytes).map(DistributorKey)
    }

    /// The key of a host that the site made a distributor; `None` for any other, and for a kind of key that has no number.
    #[must_use]
    pub fn of(certificate: &Verified<HostCertificate>) -> Option<Self> {
        let (number, bytes) = certificate.record_key()?;
        if certificate.role() == Role::Distributor { Self::new(number, bytes) } else { None }
    }

    /// Checks that the distributor signed `answer`, and reads it. Whose own key is of one profile vouches for no key of the
    /// other.
    ///
    /// # Errors
    /// [`BadSignature`] also when what it signed is no answer, or its record holds no usable key.
    pub fn verify(&self, answer: &Message<'_>) -> Result<Verified<Statement>, BadSignature> {
        self.0.verify(&answer.signed_bytes(), answer.signature)?;
        let data = Answer::parse(answer.data).map_err(|_| BadSignature)?;
        let refusal = match answer.kind {
            Kind::LeaseRefused => Some(Refusal::parse(data.rest).map_err(|_| BadSignature)?),
            _ => None,
        };
        let record = match answer.kind {
            Kind::LeaseRefused => None,
            Kind::KeyReply | Kind::LeaseAgreed => {
                Some(read_record(self.0.profile(), answer.arp.sender_ip, data.rest).ok_or(BadSignature)?)
            }
            Kind::TimeReply | Kind::KeyNotFound | Kind::KeyInvalid | Kind::KeyChanged if data.rest.is_empty() => None,
            _ => return Err(BadSignature),
        };
        let Answer { fraction, host, nonce, .. } = data;
        let (kind, seconds) = (answer.kind, answer.seconds);
        Ok(Verified::vouch(Statement { kind, seconds, fraction, host, nonce, record, refusal }))
    }
}

impl fmt::Debug for DistributorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DistributorKey")
    }
}

fn read_record(profile: Profile, address: Ipv4Addr, bytes: &[u8]) -> Option<HostRecord> {
    let record = Record::parse(bytes).ok()?;
    let key = RecordKey::of_profile(profile, record.algorithm, record.key)?;
    Some(HostRecord { address, mac: record.mac, key })
}

#[cfg(test)]
mod tests {
    use wire::arp::{Arp, Operation};

    use super::*;
    use crate::signing::{SigningKey, ed25519_pkcs8_from_seed};

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_pkcs8_der(&ed25519_pkcs8_from_seed(&[seed; 32]).expect("a seed")).expect("a key")
    }

    fn distributor(seed: u8) -> DistributorKey {
        DistributorKey::new(1, key(seed).public_bytes()).expect("Ed25519")
    }

    /// A signed answer of `kind` whose data ends with `rest`.
    fn answer(signer: &SigningKey, kind: Kind, rest: &[u8]) -> Vec<u8> {
        let arp = Arp {
            operation: Operation::Reply,
            sender_mac: MacAddress::ZERO,
            sender_ip: Ipv4Addr::new(10, 0, 0, 2),
            target_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            target_ip: Ipv4Addr::new(10, 0, 0, 1),
        };
        let data = Answer { fraction: 7, host: 3, nonce: [9; NONCE_LEN], rest }.emit();
        let unsigned = Message { arp, kind, seconds: 1000, data: &data, signature: &[] };
        let bytes = unsigned.signed_bytes();
        wire::sarp::seal(bytes.clone(), &signer.sign(&bytes).expect("signed"))
    }

    fn record(mac: Option<MacAddress>) -> Vec<u8> {
        Record { algorithm: 1, mac, key: key(5).public_bytes() }.emit()
    }

    #[test]
    fn a_key_reply_gives_a_record_that_verifies_the_hosts_signatures() {
        let bytes = answer(&key(1), Kind::KeyReply, &record(Some(MacAddress([2, 0, 0, 0, 0, 2]))));
        let statement = distributor(1).verify(&Message::parse(&bytes).expect("valid")).expect("signed");
        assert_eq!((statement.time(), statement.nonce()), ((1000, 7), &[9; NONCE_LEN]));
        let host = statement.record().expect("a key reply");
        assert_eq!(host.address(), Ipv4Addr::new(10, 0, 0, 2));
        assert!(host.admits(MacAddress([2, 0, 0, 0, 0, 2])) && !host.admits(MacAddress([2, 0, 0, 0, 0, 3])));
        assert!(host.verify_signature(b"x", &key(5).sign(b"x").expect("signed")).is_ok());
        assert!(host.verify_signature(b"x", &key(6).sign(b"x").expect("signed")).is_err());
    }

    #[test]
    fn every_changed_byte_breaks_the_signature() {
        let bytes = answer(&key(1), Kind::KeyReply, &record(None));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let accepted = Message::parse(&changed).is_ok_and(|message| distributor(1).verify(&message).is_ok());
            assert!(!accepted, "byte {at}");
        }
        assert!(distributor(2).verify(&Message::parse(&bytes).expect("valid")).is_err());
    }

    #[test]
    fn only_answers_with_the_right_contents_are_statements() {
        let accepted = |kind, rest: &[u8]| {
            let bytes = answer(&key(1), kind, rest);
            distributor(1).verify(&Message::parse(&bytes).expect("valid")).is_ok()
        };
        assert!(accepted(Kind::TimeReply, &[]) && accepted(Kind::KeyNotFound, &[]));
        assert!(!accepted(Kind::TimeReply, &[0]));
        assert!(!accepted(Kind::KeyReply, &[]));
        assert!(!accepted(Kind::KeyReply, &[7; 40]), "an algorithm that is not there");
    }

    /// Broke `read_record` by taking keys of any profile: a distributor with a modern key could vouch for a weak one.
    #[cfg(feature = "paper")]
    #[test]
    fn no_distributor_vouches_for_a_key_of_the_other_profile() {
        use crate::profile::{KEY_RANDOM_LEN, KeyLength};

        let weak = SigningKey::from_paper_block(&crate::new_key_block(KeyLength::Bits512, &[7; KEY_RANDOM_LEN]));
        let weak = weak.expect("a key");
        let (algorithm, public) = weak.record_key().expect("DSA");
        let of_weak = Record { algorithm, mac: None, key: public }.emit();
        let vouches = |signer: &SigningKey, record: &[u8]| {
            let (number, bytes) = signer.record_key().expect("a number");
            let known = DistributorKey::new(number, bytes).expect("a key");
            let bytes = answer(signer, Kind::KeyReply, record);
            known.verify(&Message::parse(&bytes).expect("valid")).is_ok()
        };
        assert!(vouches(&weak, &of_weak) && vouches(&key(1), &record(None)));
        assert!(!vouches(&key(1), &of_weak) && !vouches(&weak, &record(None)));
        let signature = weak.sign(b"x").expect("signed");
        assert!(verify_with_record(Profile::Paper, (algorithm, public), b"x", &signature).is_ok());
        assert!(verify_with_record(Profile::Modern, (algorithm, public), b"x", &signature).is_err());
    }

    #[test]
    fn the_first_check_is_that_of_one_host_and_of_every_byte_in_front() {
        let key_of = |master: u8, host| RequestMaster::from_bytes([master; 32]).key_of(host).check_key();
        let own = key_of(5, 1);
        let head: [u8; REQUEST_HEAD_LEN] = std::array::from_fn(|at| at as u8);
        let check = own.check(&head);
        assert!(own.verify(&head, &check));
        assert!(!key_of(5, 2).verify(&head, &check) && !key_of(6, 1).verify(&head, &check));
        for at in 0..REQUEST_HEAD_LEN {
            let mut other = head;
            other[at] ^= 1;
            assert!(!own.verify(&other, &check), "byte {at}");
        }
        for bit in 0..8 * CHECK_LEN {
            let mut other = check;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!own.verify(&head, &other), "bit {bit}");
        }
    }

    #[test]
    fn each_host_has_its_own_request_key() {
        let master = RequestMaster::from_bytes([3; 32]);
        let tag = master.key_of(1).tag(b"request");
        assert!(master.key_of(1).verify(b"request", &tag));
        assert!(!master.key_of(2).verify(b"request", &tag));
        assert!(!master.key_of(1).verify(b"other", &tag));
        assert!(!RequestMaster::from_bytes([4; 32]).key_of(1).verify(b"request", &tag));
    }
}
