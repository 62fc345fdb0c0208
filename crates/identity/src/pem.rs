//! PEM (RFC 7468): the text form of keys and certificates in files.

use std::fmt;
use std::ops::Range;

use x509_cert::der::pem::{LineEnding, decode_vec, encode_string};
use zeroize::Zeroizing;

use crate::limits::{MAX_PEM_BLOCKS, MAX_PEM_LEN};

/// The label of an X.509 certificate.
pub const CERTIFICATE: &str = "CERTIFICATE";
/// The label of a PKCS#10 certificate request.
pub const CERTIFICATE_REQUEST: &str = "CERTIFICATE REQUEST";
/// The label of a certificate revocation list.
pub const REVOCATION_LIST: &str = "X509 CRL";
/// The label of a site's policy: see [`policy`](crate::policy).
pub const SITE_POLICY: &str = "RINGWALL SITE POLICY";
/// The label of a private key in PKCS#8, not encrypted.
pub const PRIVATE_KEY: &str = "PRIVATE KEY";
/// The label of a site key: 32 bytes; this and the other keys that hosts share may have a term in
/// front (see [`shared_keys`](crate::shared_keys)).
pub const SITE_KEY: &str = "RINGWALL SITE KEY";
/// The label of a request key: the number of the host in 8 bytes, network order, and 32 bytes of key.
pub const REQUEST_KEY: &str = "RINGWALL REQUEST KEY";
/// The label of a key of the paper profile: the number of its algorithm in one byte, and 20 bytes of key.
pub const PAPER_KEY: &str = "RINGWALL PAPER KEY";
/// The label of the master of a site's request keys: 32 bytes, no structure around them.
pub const REQUEST_MASTER: &str = "RINGWALL REQUEST MASTER";

/// The label of a host's DHCP key of the link layer: the client ID in 14 bytes, and 32 bytes of key.
pub const DHCP_KEY: &str = "RINGWALL DHCP KEY";
/// The label of the master of a site's DHCP keys: 32 bytes, no structure around them.
pub const DHCP_MASTER: &str = "RINGWALL DHCP MASTER";

/// The label of a key that all hosts of a site have beside their certificates: see
/// [`pre_shared`](crate::pre_shared).
pub const PRE_SHARED_KEY: &str = "RINGWALL PRESHARED KEY";

/// The label of a ticket that a host of the link layer holds, with what belongs to it: see `cll::HeldTicket`.
pub const TICKET: &str = "RINGWALL TICKET";
/// The label of a key under which a host seals the tickets that it issues: when it was made, in seconds since 1970 and 8 bytes,
/// network order, and 32 bytes of key.
pub const TICKET_KEY: &str = "RINGWALL TICKET KEY";
/// The label of what a host has by lease: behind their length in 2 bytes the boot in which it came and
/// whose it is, as text; the address; when it ends, in nanoseconds since that boot and 8 bytes, all
/// ones for never, network order; and the certificate in DER.
pub const LEASE: &str = "RINGWALL LEASE";
/// The label of the numbers of tickets that their issuer does not take any more, 16 bytes each.
pub const SPENT_TICKETS: &str = "RINGWALL SPENT TICKETS";

/// The label of what a machine keeps while it enrols by token: the number of the token in 8 bytes, network order, and the private
/// half of the X25519 key that its identity is sealed to.
pub const SEALING_KEY: &str = "RINGWALL SEALING KEY";

/// The label of a bundle that is sealed for the host that asked for it: see [`renewal`](crate::renewal).
pub const SEALED_BUNDLE: &str = "RINGWALL SEALED BUNDLE";

/// The label of a key that a host made for itself: see [`own_keys`](crate::own_keys).
pub const HOST_KEY: &str = "RINGWALL HOST KEY";

/// The label of the authority's signature under the keys that a host shares with others.
pub const SHARED_KEYS_SIGNATURE: &str = "RINGWALL SHARED KEYS SIGNATURE";

/// The label of what an operator orders: see [`order`](crate::order).
pub const ORDER: &str = "RINGWALL ORDER";
/// The label of his signature under it.
pub const ORDER_SIGNATURE: &str = "RINGWALL ORDER SIGNATURE";

/// What a PEM text did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PemError {
    /// It holds no block at all.
    Empty,
    /// A block does not end, ends under another label, or is not proper base64 of one line width.
    Malformed,
    /// It is longer, or has more blocks, than any file of this program.
    TooLong,
    /// It holds several blocks where one was wanted.
    Several,
    /// Its block has another label than this.
    WrongLabel(&'static str),
}

impl fmt::Display for PemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            PemError::Empty => "the file holds no PEM block",
            PemError::Malformed => "a PEM block is cut short or damaged",
            PemError::TooLong => "the file is too long to be a key or certificate file",
            PemError::Several => "the file holds several PEM blocks where one is wanted",
            PemError::WrongLabel(expected) => return write!(f, "the file's PEM block is no {expected}"),
        };
        f.write_str(text)
    }
}

impl std::error::Error for PemError {}

/// One block: its label and its bytes, which are overwritten when dropped because they may be a private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The word between BEGIN and the dashes.
    pub label: String,
    /// What the base64 text stands for.
    pub bytes: Zeroizing<Vec<u8>>,
}

/// Every block of `text` in order; whatever stands outside blocks is a comment.
///
/// # Errors
/// [`PemError`] for the first block that cannot be read, or when there is none.
pub fn blocks(text: &str) -> Result<Vec<Block>, PemError> {
    Ok(placed(text)?.into_iter().map(|(_, block)| block).collect())
}

/// `text` with the block that holds `before` replaced by one with `after`, and all else as it is.
///
/// # Errors
/// As [`blocks`], and if there is no such block.
pub fn replaced(text: &str, label: &'static str, before: &[u8], after: &[u8]) -> Result<Zeroizing<String>, PemError> {
    let is_meant = |block: &Block| block.label == label && block.bytes.as_slice() == before;
    let found = placed(text)?.into_iter().find(|(_, block)| is_meant(block));
    let (place, _) = found.ok_or(PemError::WrongLabel(label))?;
    let block = encode(label, after);
    // No room is made later, so no copy of a key stays behind.
    let mut made = Zeroizing::new(String::with_capacity(text.len() + block.len()));
    for part in [&text[..place.start], &block, &text[place.end..]] {
        made.push_str(part);
    }
    Ok(made)
}

/// The blocks with where they stand.
fn placed(text: &str) -> Result<Vec<(Range<usize>, Block)>, PemError> {
    if text.len() > MAX_PEM_LEN {
        return Err(PemError::TooLong);
    }
    let (mut found, mut after) = (Vec::new(), 0);
    while let Some(start) = find_at_line_start(&text[after..], "-----BEGIN ") {
        if found.len() == MAX_PEM_BLOCKS {
            return Err(PemError::TooLong);
        }
        let start = after + start;
        let rest = &text[start..];
        let end = find_at_line_start(rest, "-----END ").ok_or(PemError::Malformed)?;
        let end = rest[end..].find('\n').map_or(rest.len(), |newline| end + newline + 1);
        let (label, bytes) = decode_vec(rest[..end].trim_end().as_bytes()).map_err(|_| PemError::Malformed)?;
        after = start + end;
        found.push((start..after, Block { label: label.to_owned(), bytes: Zeroizing::new(bytes) }));
    }
    if found.is_empty() { Err(PemError::Empty) } else { Ok(found) }
}

/// The bytes of the one block of `text`, which has to be labelled `label`.
///
/// # Errors
/// Malformed PEM, several blocks, or another label.
pub fn single(text: &str, label: &'static str) -> Result<Zeroizing<Vec<u8>>, PemError> {
    let mut found = blocks(text)?;
    match (found.pop(), found.is_empty()) {
        (Some(block), true) if block.label == label => Ok(block.bytes),
        (Some(_), true) => Err(PemError::WrongLabel(label)),
        _ => Err(PemError::Several),
    }
}

/// `bytes` as one block labelled `label`, which is one of this module's labels.
#[must_use]
pub fn encode(label: &'static str, bytes: &[u8]) -> Zeroizing<String> {
    // Encoding fails only for a label that PEM forbids or for lengths near the address space.
    Zeroizing::new(encode_string(label, LineEnding::LF, bytes).unwrap_or_default())
}

fn find_at_line_start(text: &str, marker: &str) -> Option<usize> {
    text.match_indices(marker).map(|(at, _)| at).find(|&at| at == 0 || text.as_bytes()[at - 1] == b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn blocks_come_in_order_and_text_around_them_is_a_comment() {
        let text = format!(
            "subject=a\n{}\n-- in between --\n{}tail -----BEGIN X-----",
            *encode(CERTIFICATE, b"one"),
            *encode(SITE_KEY, b"two")
        );
        let found = blocks(&text).expect("two blocks");
        let pairs: Vec<_> = found.iter().map(|block| (block.label.as_str(), block.bytes.as_slice())).collect();
        assert_eq!(pairs, [(CERTIFICATE, b"one".as_slice()), (SITE_KEY, b"two".as_slice())]);
    }

    #[test]
    fn files_with_windows_line_ends_and_without_a_last_one_are_read() {
        let text = encode(CERTIFICATE, &[7; 100]).replace('\n', "\r\n");
        assert_eq!(*blocks(text.trim_end()).expect("one block")[0].bytes, [7; 100]);
    }

    #[test]
    fn damage_is_named() {
        let whole = encode(CERTIFICATE, &[7; 100]);
        assert_eq!(blocks("hello"), Err(PemError::Empty));
        assert_eq!(blocks(&encode(CERTIFICATE, &[])), Err(PemError::Malformed), "a block holds something");
        assert_eq!(blocks(&whole[..80]), Err(PemError::Malformed));
        assert_eq!(blocks(&whole.replacen("BwcH", "Bw*H", 1)), Err(PemError::Malformed));
        assert_eq!(blocks(&whole.replacen("END CERT", "END CART", 1)), Err(PemError::Malformed));
        assert_eq!(blocks(&whole.repeat(MAX_PEM_BLOCKS + 1)), Err(PemError::TooLong));
        assert_eq!(blocks(&" ".repeat(MAX_PEM_LEN + 1)), Err(PemError::TooLong));
    }

    proptest! {
        #[test]
        fn every_block_reads_back(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            prop_assert_eq!(&*single(&encode(PRIVATE_KEY, &bytes), PRIVATE_KEY).expect("own text"), &bytes);
        }

        #[test]
        fn no_text_panics(text in ".{0,40}(-----(BEGIN|END) [A-Z]{0,3}-----\n?.{0,20}\n?){0,4}") {
            let _ = blocks(&text);
        }
    }
}
