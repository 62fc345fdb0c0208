//! Attributes: the type-length-value lists inside every message (RFC 3549, section 2.2, and linux/netlink.h).

use netlink_packet_core::{NLA_ALIGNTO, NLA_HEADER_SIZE, NLA_TYPE_MASK, NlasIterator};

/// The attributes in `bytes`, up to the first that is cut short.
pub(crate) fn each(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    each_flagged(bytes).map(|(kind, value)| (kind & NLA_TYPE_MASK, value))
}

/// As [`each`], with the flag bits left in the type, for those who pass attributes on.
pub(crate) fn each_flagged(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(|attribute| {
        let attribute = attribute.ok()?;
        let end = usize::from(attribute.length());
        let bytes = attribute.into_inner();
        Some((u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]), bytes.get(NLA_HEADER_SIZE..end)?))
    })
}

/// The value of the first attribute of type `kind`.
pub(crate) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    each(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// The value of an attribute that holds a 32-bit number.
pub(crate) fn find_number(bytes: &[u8], kind: u16) -> Option<u32> {
    number(find(bytes, kind)?)
}

/// A 32-bit number in the machine's byte order.
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?))
}

/// A string that may end with a zero byte.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

/// Appends an attribute with its padding.
pub(crate) fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(NLA_HEADER_SIZE + value.len()).unwrap_or(u16::MAX);
    body.extend_from_slice(&length.to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(NLA_ALIGNTO), 0);
}

/// Appends an attribute that holds a zero-terminated string.
pub(crate) fn put_text(body: &mut Vec<u8>, kind: u16, value: &str) {
    let mut bytes = value.as_bytes().to_vec();
    bytes.push(0);
    put(body, kind, &bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_is_padded_and_found_again() {
        let mut body = Vec::new();
        put(&mut body, 7, &[1, 2, 3, 4, 5]);
        put_text(&mut body, 3, "eth0");
        // Lengths count header and value but not the padding (linux/netlink.h).
        assert_eq!(body[..12], [9, 0, 7, 0, 1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(find(&body, 7), Some(&[1, 2, 3, 4, 5][..]));
        assert_eq!(find(&body, 3).map(text).as_deref(), Some("eth0"));
        assert_eq!(find(&body, 9), None);
    }

    #[test]
    fn a_cut_attribute_ends_the_list() {
        let mut body = Vec::new();
        put(&mut body, 1, &[0; 4]);
        put(&mut body, 2, &[0; 8]);
        body.truncate(body.len() - 5);
        assert_eq!(each(&body).count(), 1);
        assert_eq!(each(&[3, 0, 1, 0, 0, 0, 0, 0]).count(), 0);
    }
}
