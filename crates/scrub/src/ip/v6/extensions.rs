//! The chain of extension headers (RFC 8200, section 4): followed, judged, and linked again without what does not leave.

use std::net::Ipv6Addr;
use std::ops::Range;

use bump::DropReason;
use wire::layer::protocol;

use super::options::HOP_BY_HOP;
use super::{Header, options};
use crate::context::Context;
use crate::ip::Fragment;
use crate::limits;
use crate::rule::Rule;

const ROUTING: u8 = 43;
/// The type of routing by segments.
const SEGMENTS: u8 = 4;
pub(super) const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// A Fragment header (RFC 8200, section 4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentHeader {
    pub(crate) identification: u32,
    /// The reserved byte, and the two reserved bits behind the offset.
    reserved: (u8, u8),
    pub(crate) part: Fragment,
    /// Bytes of extension headers in front of it, and where the last of these begins.
    in_front: (usize, Option<usize>),
}

impl FragmentHeader {
    pub(crate) const LEN: usize = 8;

    /// Writes it in front of `next_header`.
    pub(super) fn emit(&self, next_header: u8, room: &mut [u8]) {
        let offset = self.part.offset as u16 | u16::from(self.reserved.1) << 1 | u16::from(self.part.more);
        (room[0], room[1]) = (next_header, self.reserved.0);
        room[2..4].copy_from_slice(&offset.to_be_bytes());
        room[4..8].copy_from_slice(&self.identification.to_be_bytes());
    }
}

impl Header {
    /// Takes in the extension headers at the beginning of `bytes`, which follow those it has, up to anything else or up to
    /// the header that makes this a fragment. Gives how many bytes they are.
    pub(crate) fn extend(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Result<usize, DropReason> {
        let (mut at, mut previous) = (0, self.kinds().last());
        for _ in 0..=limits::EXTENSION_HEADERS_MAX {
            let kind = self.protocol;
            let rest = &bytes[at..];
            at += match kind {
                FRAGMENT if context.on(Rule::Ipv6Fragments) || !is_atomic(rest) => self.fragment(context, rest)?,
                HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS => {
                    let may_stand_here = self.may_hold(kind, previous);
                    context.refuse_if(!may_stand_here, Rule::Ipv6Extensions, DropReason::Ipv6Extensions)?;
                    self.extension(context, rest)?
                }
                _ => return Ok(at),
            };
            if self.is_fragment() {
                return Ok(at);
            }
            previous = if kind == FRAGMENT { previous } else { Some(kind) };
        }
        Err(context.refused(Rule::Ipv6Extensions, DropReason::Ipv6Extensions))
    }

    /// Whether a header of `kind` may follow `previous` (RFC 8200, section 4.1): options for every hop come first, routing
    /// once and before a Fragment header, destination options in front of routing and at the end.
    fn may_hold(&self, kind: u8, previous: Option<u8>) -> bool {
        match kind {
            HOP_BY_HOP => previous.is_none() && self.fragment.is_none(),
            ROUTING => self.kinds().all(|seen| seen != ROUTING) && self.fragment.is_none(),
            _ => previous != Some(kind),
        }
    }

    /// The kind of every extension header.
    fn kinds(&self) -> impl Iterator<Item = u8> {
        let (mut kind, mut rest) = (self.next_header, &self.extensions[..]);
        std::iter::from_fn(move || {
            let (found, len) = (kind, len(kind, rest)?);
            (kind, rest) = (rest[0], &rest[len..]);
            Some(found)
        })
    }

    /// Who is to read a packet that is still to be routed, while the header names who forwards it
    /// next: the last of the addresses (RFC 8200, section 8.1), in segment routing the first of
    /// them (RFC 8754, section 2).
    pub(crate) fn recipient(&self) -> Option<Ipv6Addr> {
        let (mut kind, mut rest) = (self.next_header, &self.extensions[..]);
        while kind != ROUTING {
            let len = len(kind, rest)?;
            (kind, rest) = (rest[0], &rest[len..]);
        }
        let header = rest.get(..len(kind, rest)?)?;
        let addresses = header.get(8..).filter(|_| header[3] > 0)?;
        let address = match header[2] {
            0 | 2 => addresses.last_chunk::<16>()?,
            SEGMENTS => addresses.first_chunk::<16>()?,
            _ => return None,
        };
        Some(Ipv6Addr::from(*address))
    }

    /// Takes in the extension header that begins `rest`.
    fn extension(&mut self, context: &mut Context<'_>, rest: &[u8]) -> Result<usize, DropReason> {
        let kind = self.protocol;
        let Some(header) = len(kind, rest).map(|len| &rest[..len]) else {
            return Err(context.refused(Rule::Ipv6Extensions, DropReason::Ipv6Extensions));
        };
        if kind == ROUTING {
            // Type 0 is forbidden (RFC 5095), and what is still to be routed has no receiver that could be foreseen.
            let is_wrong = header[2] == 0 || header[3] != 0;
            context.refuse_if(is_wrong, Rule::Ipv6Extensions, DropReason::Ipv6Extensions)?;
        }
        let has_options = kind == HOP_BY_HOP || kind == DESTINATION_OPTIONS;
        let rewritten = if has_options { options::scrub(context, kind, header)? } else { None };
        self.append(kind, header[0], rewritten.as_deref().unwrap_or(header));
        Ok(header.len())
    }

    /// Appends an extension header, or nothing in its place if `header` is empty.
    fn append(&mut self, kind: u8, next_header: u8, header: &[u8]) {
        if !header.is_empty() {
            self.link(kind);
            self.last = Some(self.extensions.len());
            self.extensions.extend_from_slice(header);
        }
        self.protocol = next_header;
        self.link(next_header);
    }

    /// Says in the last header that `kind` follows.
    fn link(&mut self, kind: u8) {
        match self.last {
            Some(last) => self.extensions[last] = kind,
            None => self.next_header = kind,
        }
    }

    /// Takes in the Fragment header that begins `rest`. One that says that nothing was cut does not leave (RFC 6946).
    fn fragment(&mut self, context: &mut Context<'_>, rest: &[u8]) -> Result<usize, DropReason> {
        let Some((bytes, _)) = rest.split_first_chunk::<{ FragmentHeader::LEN }>() else {
            return Err(context.refused(Rule::Ipv6Extensions, DropReason::Ipv6Extensions));
        };
        let is_nested = self.fragment.is_some();
        context.refuse_if(is_nested, Rule::Ipv6Fragments, DropReason::FragmentMalformed)?;
        let [next_header, reserved, high, low, identification @ ..] = *bytes;
        let part = Fragment { offset: usize::from(u16::from_be_bytes([high, low & 0xf8])), more: low & 1 != 0 };
        let reserved = (reserved, low >> 1 & 0b11);
        let clears = context.acts_if(reserved != (0, 0) || part == Fragment::WHOLE, Rule::Ipv6Fragments);
        self.fragment = Some(FragmentHeader {
            identification: u32::from_be_bytes(identification),
            reserved: if clears { (0, 0) } else { reserved },
            part,
            in_front: (self.extensions.len(), self.last),
        });
        self.append(FRAGMENT, next_header, &[]);
        Ok(FragmentHeader::LEN)
    }

    /// Makes the headers of the first fragment those of the whole packet, which continues with `bytes`; `first_len` of them
    /// came with the first fragment. Gives where lies what the packet carries.
    ///
    /// # Errors
    /// Not all headers came with the first fragment (RFC 7112, section 5), or there is another Fragment header.
    pub(crate) fn joined(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
        first_len: usize,
    ) -> Result<Range<usize>, DropReason> {
        if let Some(fragment) = &mut self.fragment {
            fragment.part = Fragment::WHOLE;
        }
        let start = self.extend(context, bytes)?;
        let headers_end = start + upper_header_len(self.protocol, &bytes[start..]);
        context.refuse_if(headers_end > first_len, Rule::Ipv6Fragments, DropReason::FragmentMalformed)?;
        let len = self.carried(context, &bytes[start..])?;
        Ok(start..start + len)
    }

    /// The headers in front of one piece of the packet.
    pub(crate) fn piece(&self, part: Fragment) -> Header {
        let mut piece = self.clone();
        if let Some(fragment) = &mut piece.fragment {
            fragment.part = part;
            let (len, last) = fragment.in_front;
            piece.extensions.truncate(len);
            piece.last = last;
        }
        piece
    }

    /// The extension headers that are cut with the packet: those that stood behind its Fragment header.
    pub(crate) fn fragmentable(&self) -> &[u8] {
        let in_front = self.fragment.map_or(self.extensions.len(), |fragment| fragment.in_front.0);
        &self.extensions[in_front..]
    }
}

/// Offset of the byte of a TCP header whose high half is the header's length in words.
const TCP_DATA_OFFSET: usize = 12;

/// How many bytes of `carried` a host needs to know what a packet of `protocol` is for: the TCP header, ports or type.
fn upper_header_len(protocol: u8, carried: &[u8]) -> usize {
    let len = match (protocol, carried.get(TCP_DATA_OFFSET)) {
        (protocol::TCP, Some(offset)) => usize::from(offset >> 4) * 4,
        _ => 8,
    };
    len.min(carried.len())
}

/// Length in bytes of the extension header of `kind` that begins `rest`, if it is all there.
fn len(kind: u8, rest: &[u8]) -> Option<usize> {
    let words = if kind == FRAGMENT { 1 } else { 1 + usize::from(*rest.get(1)?) };
    (words * 8 <= rest.len()).then_some(words * 8)
}

/// Whether the Fragment header that begins `rest` says that nothing was cut.
fn is_atomic(rest: &[u8]) -> bool {
    matches!(rest, [_, _, 0, low, ..] if low & 0xf9 == 0)
}
