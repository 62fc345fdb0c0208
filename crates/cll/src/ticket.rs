//! Tickets, as their issuer and their holder keep them (docs/protocol.md, section 25; paper, section 7.1).
//!
//! What an issuer says to itself is in [`Content`], sealed under a key of its own; it keeps the key and no ticket. What a
//! holder needs to use a ticket is in [`HeldTicket`]. Both have a form for a file, so that they outlive the program; no
//! traffic key and no counter ever does.

use std::fmt;
use std::time::Duration;

use identity::certificate::{HostCertificate, TrustAnchor};
use identity::ticket::{ID_LEN, KEY_LEN, OVERHEAD, ResumptionSecret, TicketKey};
use identity::{Verified, hash};
use wire::cll::handshake::CERTIFICATE_LEN_MAX;
use wire::cll::resumption::TICKET_LEN_MAX;
use zeroize::Zeroizing;

use crate::secrecy::{FORM_LEN as SECRECY_LEN, Secrecy};

/// The number in front of a ticket, which names it.
/// The number of a ticket, drawn at random by its issuer.
pub type TicketId = [u8; ID_LEN];

/// The first byte of both forms; another says that another version wrote it.
const FORM: u8 = 1;
/// The same where the association has more secrets than its key agreement, which are named behind
/// it.
const FORM_WITH_SECRECY: u8 = 2;
const HASH_LEN: usize = 32;
/// Form, three moments, secret, and the issuer's certificate as a hash.
const CONTENT_FIXED_LEN: usize = 1 + 3 * 8 + KEY_LEN + HASH_LEN;

const _: () = assert!(
    CONTENT_FIXED_LEN + SECRECY_LEN + CERTIFICATE_LEN_MAX + OVERHEAD <= TICKET_LEN_MAX,
    "there is a ticket for every certificate that fits a handshake"
);

/// The number of a ticket.
pub(crate) fn id_of(ticket: &[u8]) -> Option<TicketId> {
    ticket.first_chunk().copied()
}

/// What names a certificate where there is no room for it.
pub(crate) fn name_of(certificate: &HostCertificate) -> [u8; HASH_LEN] {
    hash::sha256(&[certificate.der()])
}

/// How the peer of an association proved itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// When it last signed, in seconds since 1970.
    pub(crate) signed_unix_s: u64,
    /// The ticket with which it came back since.
    pub(crate) ticket: Option<TicketId>,
}

impl Proof {
    /// It signed just now.
    pub(crate) fn signed(unix_s: u64) -> Proof {
        Proof { signed_unix_s: unix_s, ticket: None }
    }
}

/// From when until when a ticket is good, in seconds since 1970, and when its two hosts last signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) begins: u64,
    pub(crate) ends: u64,
    pub(crate) signed: u64,
}

impl Span {
    /// The span of a ticket that is issued at `unix_s`. It ends `lifetime` after the last signature, so that no chain of
    /// tickets goes on for ever, and with the first of the two certificates. `None` if that is too soon to be of use.
    pub(crate) fn new(unix_s: u64, signed: u64, lifetime: Duration, certificates_end: u64) -> Option<Span> {
        let ends = signed.saturating_add(lifetime.as_secs()).min(certificates_end);
        let is_useful = ends >= unix_s.saturating_add(crate::limits::TICKET_LIFETIME_MIN.as_secs());
        is_useful.then_some(Span { begins: unix_s, ends, signed })
    }

    /// Whether it is good at `unix_s`. A clock that shows an earlier time than its beginning, by more than `tolerance`, can
    /// tell nothing.
    pub(crate) fn includes(&self, unix_s: u64, tolerance: Duration) -> bool {
        unix_s.saturating_add(tolerance.as_secs()) >= self.begins && unix_s < self.ends
    }

    fn emit(&self, out: &mut Vec<u8>) {
        for moment in [self.begins, self.ends, self.signed] {
            out.extend_from_slice(&moment.to_be_bytes());
        }
    }

    fn take(reader: &mut &[u8]) -> Option<Span> {
        let mut moment = || take(reader).map(u64::from_be_bytes);
        Some(Span { begins: moment()?, ends: moment()?, signed: moment()? })
    }
}

/// What a ticket says, to its issuer alone.
#[derive(Debug)]
pub(crate) struct Content {
    /// What went into the keys of the association in which the ticket is given.
    pub(crate) secrecy: Secrecy,
    pub(crate) span: Span,
    pub(crate) secret: ResumptionSecret,
    /// The issuer's certificate when it issued the ticket.
    pub(crate) issuer: [u8; HASH_LEN],
    /// The holder's certificate, DER.
    pub(crate) certificate: Vec<u8>,
}

impl Content {
    pub(crate) fn emit(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(CONTENT_FIXED_LEN + SECRECY_LEN + self.certificate.len()));
        emit_form(self.secrecy, &mut out);
        self.span.emit(&mut out);
        out.extend_from_slice(self.secret.bytes());
        out.extend_from_slice(&self.issuer);
        out.extend_from_slice(&self.certificate);
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Content> {
        let mut rest = bytes;
        Some(Content {
            secrecy: take_form(&mut rest)?,
            span: Span::take(&mut rest)?,
            secret: ResumptionSecret::from_bytes(take(&mut rest)?),
            issuer: take(&mut rest)?,
            certificate: rest.to_vec(),
        })
    }
}

/// A ticket that this host holds, with all it needs to use it.
#[derive(Clone)]
pub struct HeldTicket {
    /// What went into the keys of the association in which it was given.
    pub(crate) secrecy: Secrecy,
    pub(crate) span: Span,
    pub(crate) secret: ResumptionSecret,
    /// This host's own certificate when it got the ticket.
    pub(crate) holder: [u8; HASH_LEN],
    /// The issuer's certificate, as it was then.
    pub(crate) issuer: Verified<HostCertificate>,
    pub(crate) ticket: Vec<u8>,
}

impl HeldTicket {
    /// The host that issued it.
    #[must_use]
    pub fn mac(&self) -> wire::MacAddress {
        self.issuer.mac()
    }

    /// The form for a file. It holds a secret.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let len_max = CONTENT_FIXED_LEN + SECRECY_LEN + 4 + TICKET_LEN_MAX + CERTIFICATE_LEN_MAX;
        let mut out = Zeroizing::new(Vec::with_capacity(len_max));
        emit_form(self.secrecy, &mut out);
        self.span.emit(&mut out);
        out.extend_from_slice(self.secret.bytes());
        out.extend_from_slice(&self.holder);
        append_counted(&mut out, self.issuer.der());
        append_counted(&mut out, &self.ticket);
        out
    }

    /// Reads the form for a file; `None` if it is damaged, of another version, or names a host of another site. Whether
    /// it is still good is judged when it is used.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], anchor: &TrustAnchor) -> Option<HeldTicket> {
        let mut rest = bytes;
        let secrecy = take_form(&mut rest)?;
        let span = Span::take(&mut rest)?;
        let secret = ResumptionSecret::from_bytes(take(&mut rest)?);
        let holder = take(&mut rest)?;
        let issuer = anchor.verify_whenever(take_counted(&mut rest)?).ok()?;
        let ticket = take_counted(&mut rest)?.to_vec();
        let is_whole = rest.is_empty() && id_of(&ticket).is_some() && ticket.len() <= TICKET_LEN_MAX;
        is_whole.then_some(HeldTicket { secrecy, span, secret, holder, issuer, ticket })
    }
}

impl PartialEq for HeldTicket {
    fn eq(&self, other: &HeldTicket) -> bool {
        let clear =
            |held: &HeldTicket| (held.secrecy, held.span, held.holder, held.issuer.der().to_vec(), held.ticket.clone());
        self.secret == other.secret && clear(self) == clear(other)
    }
}

impl Eq for HeldTicket {}

impl fmt::Debug for HeldTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldTicket({}, redacted)", self.mac())
    }
}

/// A key under which this host seals the tickets that it issues, and when it was made, in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuingKey {
    pub(crate) made_unix_s: u64,
    pub(crate) key: TicketKey,
}

impl IssuingKey {
    /// The form for a file. It is a secret.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(8 + KEY_LEN));
        out.extend_from_slice(&self.made_unix_s.to_be_bytes());
        out.extend_from_slice(self.key.bytes());
        out
    }

    /// Reads the form for a file.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<IssuingKey> {
        let mut rest = bytes;
        let made_unix_s = take(&mut rest).map(u64::from_be_bytes)?;
        let key = TicketKey::from_bytes(take(&mut rest)?);
        rest.is_empty().then_some(IssuingKey { made_unix_s, key })
    }
}

/// What an earlier run of the program has kept for this one.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// Tickets of peers.
    pub tickets: Vec<HeldTicket>,
    /// The keys of this host's own tickets, newest first.
    pub keys: Vec<IssuingKey>,
    /// Numbers of this host's own tickets that are not taken any more, the oldest first.
    pub spent: Vec<TicketId>,
}

fn emit_form(secrecy: Secrecy, out: &mut Vec<u8>) {
    if secrecy.is_plain() {
        return out.push(FORM);
    }
    out.push(FORM_WITH_SECRECY);
    secrecy.emit(out);
}

fn take_form(rest: &mut &[u8]) -> Option<Secrecy> {
    match take(rest)? {
        [FORM] => Some(Secrecy::default()),
        [FORM_WITH_SECRECY] => Secrecy::parse(take(rest)?),
        _ => None,
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*array)
}

fn take_counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::from(u16::from_be_bytes(take(rest)?));
    let (bytes, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(bytes)
}

fn append_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&bytes[..usize::from(len)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span { begins: 1000, ends: 2000, signed: 900 };

    #[test]
    fn a_span_ends_a_lifetime_after_the_last_signature_and_with_a_certificate() {
        let hour = Duration::from_secs(3600);
        let span = |unix_s, signed, end| Span::new(unix_s, signed, hour, end).map(|span| span.ends);
        assert_eq!(span(10_000, 10_000, u64::MAX), Some(13_600));
        assert_eq!(span(12_000, 10_000, u64::MAX), Some(13_600), "a later ticket lives no longer");
        assert_eq!(span(10_000, 10_000, 11_000), Some(11_000));
        assert_eq!(span(13_599, 10_000, u64::MAX), None, "it would be over before it is used");
        assert_eq!(span(14_000, 10_000, u64::MAX), None);
    }

    #[test]
    fn a_clock_that_was_set_back_can_tell_nothing() {
        let good = |unix_s| SPAN.includes(unix_s, Duration::from_secs(120));
        assert_eq!([879, 880, 1999, 2000].map(good), [false, true, true, false]);
    }

    #[test]
    fn a_content_survives_and_no_shorter_one_is_read() {
        let secrecies = [(Secrecy::default(), 0), (Secrecy { post_quantum: true, pre_shared: None }, SECRECY_LEN)];
        for (secrecy, more) in secrecies {
            let secret = ResumptionSecret::from_bytes([7; 32]);
            let bytes = Content { secrecy, span: SPAN, secret, issuer: [8; 32], certificate: vec![9; 5] }.emit();
            assert_eq!(bytes.len(), CONTENT_FIXED_LEN + more + 5);
            let parsed = Content::parse(&bytes).expect("a content");
            assert_eq!((parsed.emit(), parsed.secrecy), (bytes.clone(), secrecy));
            for len in 0..CONTENT_FIXED_LEN + more {
                assert!(Content::parse(&bytes[..len]).is_none(), "{len} bytes");
            }
            assert!(Content::parse(&[&[3][..], &bytes[1..]].concat()).is_none(), "another form");
        }
    }

    #[test]
    fn a_key_survives_its_file() {
        let key = IssuingKey { made_unix_s: 0x0102, key: TicketKey::from_bytes([3; 32]) };
        let bytes = key.to_bytes();
        assert_eq!(IssuingKey::from_bytes(&bytes), Some(key));
        assert_eq!(IssuingKey::from_bytes(&bytes[1..]), None);
        assert_eq!(IssuingKey::from_bytes(&[&bytes[..], &[0]].concat()), None);
    }
}
