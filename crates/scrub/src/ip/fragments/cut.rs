//! Cutting a packet that came in pieces into pieces again.

use crate::ip::{Fragment, Ip};

/// How a packet is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Bytes of the longest piece, headers included.
    pub(crate) longest: usize,
}

impl Cut {
    /// The cut of a packet whose longest fragment had `longest` bytes: into pieces no longer, because a link on its way may
    /// carry no more, and no longer than `mtu`. Pieces shorter than any link needs are not made again.
    pub(crate) fn new(ip: &Ip, longest: usize, mtu: usize) -> Cut {
        Cut { longest: longest.min(mtu).max(ip.piece_min()) }
    }

    /// Whether a packet with the header `ip` and `payload_len` bytes behind it goes in one piece.
    pub(crate) fn is_needless(&self, ip: &Ip, payload_len: usize) -> bool {
        ip.header_len() + payload_len <= self.longest
    }

    /// The headers of the pieces, each with the bytes that it carries of `cut`, which is all that is cut of the packet.
    pub(crate) fn pieces<'a>(&self, ip: &'a Ip, cut: &'a [u8]) -> impl Iterator<Item = (Ip, &'a [u8])> {
        // The first piece has the longest header: options that are not copied are in it alone.
        let header_len = ip.piece(Fragment { offset: 0, more: true }).header_len();
        let len = (self.longest.saturating_sub(header_len) / 8 * 8).max(8);
        cut.chunks(len).scan(0, move |offset, bytes| {
            let at = *offset;
            *offset += bytes.len();
            Some((ip.piece(Fragment { offset: at, more: *offset < cut.len() }), bytes))
        })
    }
}
