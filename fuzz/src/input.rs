//! Bytes of a fuzzer read as a sequence of choices. At the end every choice is zero, so that no input is refused.

use bump::{Checksum, Gso, GsoKind, Meta, VlanTag};

/// What is left of an input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// The whole of `data`.
    #[must_use]
    pub fn new(data: &'a [u8]) -> Self {
        Input(data)
    }

    /// Whether all of it is used up.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// The next two bytes.
    pub fn word(&mut self) -> u16 {
        u16::from(self.byte()) << 8 | u16::from(self.byte())
    }

    /// A choice among `count`, which is not zero.
    pub fn below(&mut self, count: usize) -> usize {
        if count <= 256 { usize::from(self.byte()) % count } else { usize::from(self.word()) % count }
    }

    /// A yes or no.
    pub fn chance(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// Up to `len` bytes.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        head
    }

    /// Up to `len_max` bytes behind a length of one or two bytes.
    pub fn counted(&mut self, len_max: usize) -> &'a [u8] {
        let len = self.below(len_max + 1);
        self.take(len)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// What a port might say about a frame, and what it should never say.
    pub fn meta(&mut self) -> Meta {
        let checksum = match self.below(5) {
            0 | 1 => Checksum::Unknown,
            2 => Checksum::Complete,
            3 => Checksum::Bad,
            _ => Checksum::Partial { start: self.word(), offset: u16::from(self.byte()) },
        };
        let gso = match self.below(8) {
            0 => Some(GsoKind::TcpV4),
            1 => Some(GsoKind::TcpV6),
            2 => Some(GsoKind::Udp),
            3 => Some(GsoKind::TunnelledTcpV4),
            4 => Some(GsoKind::TunnelledTcpV6),
            _ => None,
        };
        let gso = gso.map(|kind| Gso { kind, size: self.word(), ecn: self.chance() });
        let vlan = (self.below(16) == 1).then(|| VlanTag { tpid: 0x8100, tci: self.word() });
        Meta { checksum, gso, vlan, queue: 0 }
    }
}
